//! Whom a device knows by name: its own people, their groups, and itself.

use crate::document::{BundleGroup, BundleUser, PolicyBundle};
use provost_policy::{Field, Record, Register, name_key};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names that the policies of a bundle may hold.
#[derive(Debug)]
pub struct KnownNames {
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
    device: String,
    /// Whether nobody knows the groups of one of the people.
    pub has_open_groups: bool,
}

impl KnownNames {
    /// Returns those of a device.
    pub fn of(device_id: &str, users: &[BundleUser], groups: &[BundleGroup]) -> Self {
        let key = |field: Field, name: &str| name_key(field, name).into_owned();
        let of_users = users
            .iter()
            .flat_map(|user| user.words.iter().chain([&user.user_id]));
        let of_groups = groups
            .iter()
            .flat_map(|group| group.words.iter().chain([&group.group_id]));
        let ids = users.iter().flat_map(|user| user.group_ids.iter().flatten());
        Self {
            users: of_users.map(|name| key(Field::USER, name)).collect(),
            groups: of_groups
                .chain(ids)
                .map(|name| key(Field::GROUPS, name))
                .collect(),
            device: key(Field::DEVICE, device_id),
            has_open_groups: users.iter().any(|user| user.group_ids.is_none()),
        }
    }

    /// Returns whether the device has people who are known.
    pub fn has_people(&self) -> bool {
        !self.users.is_empty()
    }

    /// Returns whether a name is one of the device's: what is none of these can be compared with nothing that the device knows.
    pub fn has(&self, field: Field, name: &str) -> bool {
        let key = name_key(field, name);
        match field {
            Field::USER => self.users.contains(&*key),
            Field::GROUPS => self.groups.contains(&*key),
            Field::DEVICE => *key == *self.device,
            _ => false,
        }
    }
}

/// What the words of events mean to a device.
#[derive(Debug)]
pub struct KnownWords {
    pub register: Arc<Register>,
    users: BTreeSet<String>,
    device: String,
}

impl KnownWords {
    /// Returns those of a bundle.
    pub fn of(bundle: &PolicyBundle) -> Self {
        // Whoever has no word in it is missing anyway.
        let mut register = Register::new(false);
        let mut users = BTreeSet::new();
        for group in &bundle.groups {
            let record = Record {
                id: group.group_id.clone(),
                words: group.words.clone(),
                shared: group.shared.clone(),
                groups: None,
            };
            register.put(Field::GROUPS, &group.group_id, &[record]);
        }
        for user in &bundle.users {
            let record = Record {
                id: user.user_id.clone(),
                words: user.words.clone(),
                shared: user.shared.clone(),
                groups: user.group_ids.clone(),
            };
            let key = |word: &str| name_key(Field::USER, word).into_owned();
            let shared: BTreeSet<String> = user.shared.iter().map(|word| key(word)).collect();
            let own = user.words.iter().filter(|word| !shared.contains(&key(word)));
            for word in own.chain([&user.user_id]).filter(|word| !key(word).is_empty()) {
                register.put(Field::USER, word, std::slice::from_ref(&record));
                users.insert(key(word));
            }
        }
        Self {
            register: Arc::new(register),
            users,
            device: name_key(Field::DEVICE, &bundle.device_id).into_owned(),
        }
    }

    /// Returns whether the device can say whom a word means.
    pub fn has(&self, field: Field, word: &str) -> bool {
        let key = name_key(field, word);
        match field {
            Field::USER => self.users.contains(&*key),
            Field::DEVICE => *key == *self.device,
            _ => false,
        }
    }
}
