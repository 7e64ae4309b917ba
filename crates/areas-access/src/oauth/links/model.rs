//! The words and rules of identity links, without storage.

use crate::resources::definition::SingleLine;
use provost_areas_identity::directory::HeldLink;
use provost_areas_identity::directory::model::UserId;
use provost_kernel::Timestamp;
use provost_kernel::auth::{Permission, Role, may_mint};
use provost_kernel::error::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// An issuer's URL.
pub type Issuer = SingleLine<1, 512>;
/// A subject in the issuer's words.
pub type Subject = SingleLine<1, 512>;

/// How long a link that ended, and a login name that was changed, is remembered. Units: seconds (90 days).
pub const REMEMBERED_SECS: i64 = 90 * 86_400;

/// A link as its readers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdentityLink")]
pub struct LinkView {
    /// The issuer that names the subject.
    pub issuer: String,
    /// The subject, in the issuer's words.
    pub subject: String,
    /// The user that it is.
    pub user_id: UserId,
    /// When it was linked.
    pub created_at: Timestamp,
    /// Since when it is held: it is not followed until it is released (`restore/release`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at: Option<Timestamp>,
    /// What its maker could give.
    #[serde(skip)]
    pub reach: Reach,
}

impl LinkView {
    /// Says whether who comes by the link is its user, who has this role: it is not held, and its maker could give the role.
    ///
    /// INVARIANT IL-5.
    pub fn is_followed(&self, role: Option<Role>) -> bool {
        self.held_at.is_none() && self.reach.covers(role)
    }
}

impl From<LinkView> for HeldLink {
    fn from(link: LinkView) -> Self {
        Self {
            issuer: link.issuer,
            subject: link.subject,
            user_id: link.user_id,
        }
    }
}

/// The roles that somebody could give who made a link, or allowed one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Every role. So it is for links of before this was noted, and for those that the issuer's word alone made.
    #[default]
    Whole,
    /// These.
    Roles(Vec<Role>),
}

impl Reach {
    /// Returns what somebody with this permission can give.
    pub fn of(permission: Permission) -> Self {
        Self::these(|role| may_mint(permission, Permission::effective(role, None, None)).is_ok())
    }

    /// Returns the reach of somebody who could give nothing.
    pub const fn none() -> Self {
        Self::Roles(Vec::new())
    }

    fn these(is_given: impl Fn(Role) -> bool) -> Self {
        let roles: Vec<Role> = Role::ALL.into_iter().filter(|role| is_given(*role)).collect();
        if roles.len() == Role::ALL.len() {
            Self::Whole
        } else {
            Self::Roles(roles)
        }
    }

    /// Says whether a role is within it; to have none is.
    pub fn covers(&self, role: Option<Role>) -> bool {
        match self {
            Self::Whole => true,
            Self::Roles(roles) => role.is_none_or(|role| roles.contains(&role)),
        }
    }

    /// Returns what both could give.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::these(|role| self.covers(Some(role)) && other.covers(Some(role)))
    }

    /// Returns the words in the store.
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Roles(roles) => Some(
                roles
                    .iter()
                    .map(|role| role.as_str())
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
        }
    }

    /// Reads the words in the store.
    pub fn from_store(words: Option<&str>) -> Result<Self> {
        let Some(words) = words else {
            return Ok(Self::Whole);
        };
        let role =
            |word| Role::parse(word).ok_or_else(|| Error::internal("maker_roles has a word that is no role"));
        let roles = words.split(' ').filter(|word| !word.is_empty()).map(role);
        Ok(Self::Roles(roles.collect::<Result<_>>()?))
    }
}

/// What is known of a user's links of an issuer.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "instants are called so everywhere")]
pub struct LinkHistory {
    /// When its newest link was made that stands.
    pub linked_at: Option<Timestamp>,
    /// When its last link ended.
    pub ended_at: Option<Timestamp>,
    /// When its login name was changed.
    pub renamed_at: Option<Timestamp>,
    /// When an admin allowed a new link, if that holds still.
    pub allowed_at: Option<Timestamp>,
}

impl LinkHistory {
    /// Says whether the issuer's word about the login name is enough to link a subject (IL-1). What an admin allowed serves
    /// for what was there before it, and so once.
    pub fn may_link_itself(&self, now: Timestamp) -> bool {
        self.newest(now)
            .is_none_or(|newest| self.allowed_at.is_some_and(|allowed| newest < allowed))
    }

    /// Returns the newest reason for which an admin has to allow a link.
    pub fn newest(&self, now: Timestamp) -> Option<Timestamp> {
        let recent = |at: &Timestamp| at.plus_secs(REMEMBERED_SECS) > now;
        let reasons = [
            self.linked_at,
            self.ended_at.filter(recent),
            self.renamed_at.filter(recent),
        ];
        reasons.into_iter().flatten().max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_kernel::auth::ScopeSet;

    /// Proves IL-5.
    #[test]
    fn a_reach_is_what_its_words_say() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let narrow = Permission::effective(Role::Admin, Some(ScopeSet::of(&["directory:write"])), None);
        let operator = Permission::effective(Role::Operator, None, None);
        let whole = Permission::effective(Role::Admin, None, None);
        assert_eq!(Reach::of(whole), Reach::Whole);
        assert_eq!(Reach::of(narrow), Reach::none());
        let some = Reach::of(operator);
        assert!(some.covers(Some(Role::Operator)) && !some.covers(Some(Role::Admin)));
        for reach in [Reach::Whole, Reach::none(), some.clone()] {
            assert!(reach.covers(None));
            assert_eq!(Reach::from_store(reach.words().as_deref()).unwrap(), reach);
            assert_eq!(reach.and(&Reach::Whole), reach);
            assert_eq!(reach.and(&Reach::none()), Reach::none());
        }
        assert!(Reach::from_store(Some("emperor")).is_err());
    }

    type Set = fn(&mut LinkHistory, Option<Timestamp>);

    /// Each reason alone, each before and behind what an admin allowed.
    /// Proves IL-1.
    #[test]
    fn who_was_somebody_before_is_linked_by_an_admin() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let at = |secs: i64| Some(Timestamp::EPOCH.plus_secs(secs));
        let now = Timestamp::EPOCH.plus_secs(REMEMBERED_SECS + 1_000);
        let none = LinkHistory::default();
        assert!(none.may_link_itself(now));
        let reasons: [(Set, bool); 3] = [
            (|past, at| past.linked_at = at, false),
            (|past, at| past.ended_at = at, true),
            (|past, at| past.renamed_at = at, true),
        ];
        for (set, is_forgotten) in reasons {
            let with = |secs, allowed_at| {
                let mut past = none;
                set(&mut past, at(secs));
                past.allowed_at = allowed_at;
                past.may_link_itself(now)
            };
            assert!(!with(1_001, None));
            assert!(!with(1_001, at(1_000)) && !with(1_001, at(1_001)));
            assert!(with(1_001, at(1_002)));
            assert_eq!(with(1_000, None), is_forgotten);
        }
    }
}
