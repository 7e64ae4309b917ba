//! The words and rules of the directory, without storage.

use super::rights::HeldLink;
use provost_kernel::auth::{Permission, Role};
use provost_kernel::text::name_key;
use provost_kernel::{Timestamp, id};
use provost_policy::match_key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(UserId, "usr", "Names a user.");
id!(GroupId, "grp", "Names a group.");

/// The directory of records that name none.
const DEFAULT_DIRECTORY: &str = "default";

/// The key of a directory: 1 to 63 of `a-z`, `0-9`, `.`, `_`, `-`, beginning with a letter or digit.
///
/// A directory is no record of its own: it is there while users or groups name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectoryId(String);

impl DirectoryId {
    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for DirectoryId {
    fn default() -> Self {
        Self(DEFAULT_DIRECTORY.to_owned())
    }
}

impl<'de> Deserialize<'de> for DirectoryId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if begins && text.len() <= 63 && text.chars().all(allowed) {
            return Ok(Self(text.into_owned()));
        }
        Err(serde::de::Error::custom(
            "must have 1 to 63 of a-z, 0-9, '.', '_', '-' and begin with a letter or digit",
        ))
    }
}

impl JsonSchema for DirectoryId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DirectoryId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$" })
    }
}

provost_kernel::word! {
    /// Whether a user counts as a subject.
    pub enum Status {
        /// It does.
        Active = "active",
        /// It does not: as if absent wherever it is named (D6.3).
        Suspended = "suspended",
    }
}

provost_kernel::word! {
    /// Who suspended a user. An import lifts only what an import did (DI-6).
    pub enum SuspendedBy {
        /// A call of the API.
        Api = "api",
        /// A line of a file.
        Import = "import",
        /// A restore of the store, which holds back everybody who can act (RH-1).
        Restore = "restore",
    }
}

/// The generations in which a version of a record is visible: from `from` to before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first.
    pub from: i64,
    /// The first that is not.
    pub to: i64,
}

/// The end of a version that nothing is staged to replace.
pub const FOR_GOOD: i64 = 9_007_199_254_740_991;

/// A version of a user as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// When it is visible.
    pub validity: Validity,
    /// Its place in lists.
    pub seq: i64,
    /// Its organization, for the view.
    pub organization_id: String,
    /// Where it comes from.
    pub directory_id: String,
    /// E-mail address or UPN.
    pub login_name: String,
    /// For people.
    pub display_name: Option<String>,
    /// Where it gets mail.
    pub email: Option<String>,
    /// Its id in the directory that it comes from.
    pub external_id: Option<String>,
    /// What it may do here; `None` is nothing.
    pub role: Option<Role>,
    /// Whether it counts as a subject.
    pub status: Status,
    /// When and by whom it was suspended.
    pub suspended: Option<(Timestamp, SuspendedBy)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl User {
    /// Suspends the user; says whether that changed anything.
    pub fn suspend(&mut self, now: Timestamp, by: SuspendedBy) -> bool {
        if self.status == Status::Suspended {
            // The stronger suspension stays: what the API says, an import does not lift.
            let strengthened = by == SuspendedBy::Api && self.suspended.is_some_and(|(_, was)| was != by);
            if strengthened {
                self.suspended = self.suspended.map(|(at, _)| (at, by));
            }
            return strengthened;
        }
        self.status = Status::Suspended;
        self.touch(now);
        self.suspended = Some((self.updated_at, by));
        true
    }

    /// Makes the user active; says whether that changed anything.
    pub fn reactivate(&mut self, now: Timestamp) -> bool {
        if self.status == Status::Active {
            return false;
        }
        self.status = Status::Active;
        self.suspended = None;
        self.touch(now);
        true
    }

    /// Notes a change: never at or before the last one (D1.2).
    pub fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.max(self.updated_at.plus_ms(1));
    }

    /// Says whether others could be taken for the user after a change: who has another login name, address or id in the
    /// directory may be another person to an identity provider.
    pub fn is_repointed(&self, after: &Self) -> bool {
        name_key(&self.login_name) != name_key(&after.login_name)
            || self.email != after.email
            || self.external_id != after.external_id
    }

    /// Returns the login name and the e-mail address that are other words after a change than before.
    pub fn new_words<'a>(&self, after: &'a Self) -> (Option<&'a str>, Option<&'a str>) {
        let is_new = |was: Option<&str>, is: &&str| was.map(match_key) != Some(match_key(is));
        (
            Some(after.login_name.as_str()).filter(|is| is_new(Some(&self.login_name), is)),
            after
                .email
                .as_deref()
                .filter(|is| is_new(self.email.as_deref(), is)),
        )
    }

    /// Says whether the user acts again after a change.
    pub fn is_revived(&self, after: &Self) -> bool {
        self.status == Status::Suspended && after.status == Status::Active
    }

    /// Returns what the user can do when it signs in.
    pub fn permission(&self) -> Option<Permission> {
        self.role.map(|role| Permission::effective(role, None, None))
    }
}

/// A version of a group as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: GroupId,
    /// When it is visible.
    pub validity: Validity,
    /// Its place in lists.
    pub seq: i64,
    /// Its organization, for the view.
    pub organization_id: String,
    /// Where it comes from.
    pub directory_id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its id in the directory that it comes from.
    pub external_id: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Group {
    /// Notes a change: never at or before the last one (D1.2).
    pub fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.max(self.updated_at.plus_ms(1));
    }
}

/// A user of the directory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DirectoryUser")]
pub struct UserView {
    id: UserId,
    organization_id: String,
    directory_id: String,
    login_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_role: Option<Role>,
    status: Status,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_at: Option<Timestamp>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            organization_id: user.organization_id,
            directory_id: user.directory_id,
            login_name: user.login_name,
            display_name: user.display_name,
            email: user.email,
            external_id: user.external_id,
            permission_role: user.role,
            status: user.status,
            created_at: user.created_at,
            updated_at: user.updated_at,
            suspended_at: user.suspended.map(|(at, _)| at),
        }
    }
}

/// A group of the directory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DirectoryGroup")]
pub struct GroupView {
    id: GroupId,
    organization_id: String,
    directory_id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Group> for GroupView {
    fn from(group: Group) -> Self {
        Self {
            id: group.id,
            organization_id: group.organization_id,
            directory_id: group.directory_id,
            name: group.name,
            description: group.description,
            external_id: group.external_id,
            created_at: group.created_at,
            updated_at: group.updated_at,
        }
    }
}

/// The answer of operations on one user.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneUser {
    /// The user, after a change if there was one.
    pub user: UserView,
}

impl From<User> for OneUser {
    fn from(user: User) -> Self {
        Self { user: user.into() }
    }
}

/// The answer of the creation of a user.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct CreatedUser {
    /// The user.
    pub user: UserView,
    /// What is perhaps not as it was meant; absent where there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<UserWarning>,
}

/// Why a user is perhaps not what was meant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UserWarning {
    /// `groups_unset`: the user came back and was in groups before. Open.
    code: &'static str,
    /// A sentence for people.
    message: String,
}

impl UserWarning {
    /// Returns what is to be said of a user who comes back and was in these groups.
    pub fn of_return(groups: &[String]) -> Self {
        /// LIMIT: groups that are named.
        const NAMED: usize = 20;
        let more = groups.len().saturating_sub(NAMED);
        let rest = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let named = groups[..groups.len() - more].join(", ") + &rest;
        Self {
            code: "groups_unset",
            message: format!(
                "the user was in these groups when it was deleted and is in none now: {named}; policies about groups count as \
                 matched for it until somebody puts it into a group or takes it out of one, at most for 90 days"
            ),
        }
    }
}

/// The answer of operations by which a user may be able to do more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ChangedUser {
    /// The user after the change.
    pub user: UserView,
    /// The identity links of the user that are held from now on, because whoever made them could not give the user's role. Look
    /// at them: `restore/release` follows them again, `identity-links/remove` takes them away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub held_identity_links: Vec<HeldLink>,
}

/// The answer of operations on one group.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneGroup {
    /// The group, after a change if there was one.
    pub group: GroupView,
}

/// The path of operations on one user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UserPath {
    /// The user.
    pub user_id: UserId,
}

/// The path of operations on one group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct GroupPath {
    /// The group.
    pub group_id: GroupId,
}

/// The path of operations on one membership.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct MemberPath {
    /// The group.
    pub group_id: GroupId,
    /// The user.
    pub user_id: UserId,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn user() -> User {
        User {
            id: UserId::from_text("usr_x"),
            validity: Validity {
                from: 0,
                to: FOR_GOOD,
            },
            seq: 1,
            organization_id: "acme".into(),
            directory_id: "default".into(),
            login_name: "a@acme.test".into(),
            display_name: None,
            email: None,
            external_id: None,
            role: None,
            status: Status::Active,
            suspended: None,
            created_at: Timestamp::from_ms(5),
            updated_at: Timestamp::from_ms(5),
        }
    }

    #[test]
    fn a_suspension_of_the_api_outlasts_one_of_an_import() {
        let mut user = user();
        assert!(user.suspend(Timestamp::from_ms(5), SuspendedBy::Import));
        assert_eq!(user.suspended, Some((Timestamp::from_ms(6), SuspendedBy::Import)));
        assert!(user.suspend(Timestamp::from_ms(9), SuspendedBy::Api));
        assert_eq!(user.suspended, Some((Timestamp::from_ms(6), SuspendedBy::Api)));
        assert!(
            !user.suspend(Timestamp::from_ms(9), SuspendedBy::Api),
            "said already"
        );
        assert!(!user.suspend(Timestamp::from_ms(10), SuspendedBy::Import));
        assert_eq!(user.suspended, Some((Timestamp::from_ms(6), SuspendedBy::Api)));
        assert!(user.reactivate(Timestamp::from_ms(3)));
        assert_eq!((user.suspended, user.updated_at), (None, Timestamp::from_ms(7)));
        assert!(!user.reactivate(Timestamp::from_ms(8)));
    }

    #[test]
    fn the_key_of_a_directory_is_a_narrow_word() {
        let read = |text: &str| serde_json::from_value::<DirectoryId>(serde_json::json!(text));
        for good in ["default", "0", "a.b_c-d", &"a".repeat(63)] {
            assert_eq!(read(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "A", "ä", "a b", &"a".repeat(64)] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
