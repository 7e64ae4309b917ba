//! The people of a device, as far as a device can say whom a word means.

use crate::document::{BundleGroup, BundleUser};
use provost_policy::{Field, Register};

/// The people of a device, and their groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// The users.
    pub users: Vec<BundleUser>,
    /// Every group that one of them is in and that has a record.
    pub groups: Vec<BundleGroup>,
}

impl People {
    /// Returns a user by a register that was asked about the user's id, and knows which words are another's as well; nothing where the
    /// id, or that of a group, is also a word of somebody else: a device could not say whom it means.
    ///
    /// Keeps LJ-3.
    pub fn of(register: &Register, user_id: &str) -> Option<Self> {
        let [user] = register.meant(Field::USER, user_id) else {
            return None;
        };
        let user = user.record();
        if user.id != user_id {
            return None;
        }
        let mut groups = Vec::new();
        for id in user.groups.iter().flatten() {
            match register.meant(Field::GROUPS, id) {
                [] => {}
                [group] if group.id() == id => {
                    let record = group.record();
                    groups.push(BundleGroup {
                        group_id: record.id.clone(),
                        words: sorted(&record.words),
                        shared: sorted(&record.shared),
                    });
                }
                _ => return None,
            }
        }
        groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        let users = vec![BundleUser {
            user_id: user.id.clone(),
            words: sorted(&user.words),
            shared: sorted(&user.shared),
            group_ids: user.groups.as_deref().map(sorted),
        }];
        Some(Self { users, groups })
    }
}

/// Returns texts in an order that is the same for every question.
fn sorted(texts: &[String]) -> Vec<String> {
    let mut texts = texts.to_vec();
    texts.sort_unstable();
    texts
}
