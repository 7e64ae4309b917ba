//! Who may give, re-point or revive what a user can do (DI-5, D3.3).
//!
//! Whoever takes away needs nothing beyond the scope: suspending, deleting and removing a role are not judged here.
//!
//! Keeps DI-5.

use super::model::{User, UserId};
use provost_kernel::Result;
use provost_kernel::announcement::{Announcement, Question};
use provost_kernel::auth::{Permission, Role, may_mint};
use schemars::JsonSchema;
use serde::Serialize;

/// Tells that a user gets a role, or acts in one again; who vouches for the user no further answers with what it holds.
pub struct RoleGiven {
    /// The user's id.
    pub user_id: String,
    /// The role.
    pub role: Role,
}

impl Announcement for RoleGiven {
    const IS_DECISIVE: bool = true;
}
impl Question for RoleGiven {
    type Answer = HeldLink;
}

/// A link that is held from now on.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HeldIdentityLink")]
pub struct HeldLink {
    /// The issuer.
    pub issuer: String,
    /// The subject.
    pub subject: String,
    /// Its user.
    pub user_id: UserId,
}

/// Refuses a change by which somebody could do more than the caller: a role that is given, and a new login name, address
/// or id in the directory, or a life after a suspension, for a user that has a role or gets one.
///
/// Errors: `EscalationForbidden`.
pub fn may_change(caller: Permission, before: &User, after: &User) -> Result<()> {
    if before.is_repointed(after) || before.is_revived(after) {
        // What the user had as well as what it gets: behind another name, somebody else has either.
        for permission in [before, after].into_iter().filter_map(User::permission) {
            may_mint(caller, permission)?;
        }
    }
    match after.permission() {
        Some(permission) if before.role != after.role => may_mint(caller, permission),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::user;
    use super::super::model::{Status, User};
    use super::may_change;
    use provost_kernel::auth::Role::{self, Admin, Operator, Viewer};
    use provost_kernel::auth::{Permission, ScopeSet};

    fn with_role(role: Option<Role>) -> User {
        User { role, ..user() }
    }

    type Act = fn(&mut User);

    #[test]
    fn what_gives_needs_the_right_and_what_takes_away_does_not() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let narrow = Permission::effective(Admin, Some(ScopeSet::of(&["directory:write"])), None);
        let operator = Permission::effective(Operator, None, None);
        let whole = Permission::effective(Admin, None, None);
        let gives: [(&str, Act); 5] = [
            ("name", |u| u.login_name = "b@acme.test".into()),
            ("email", |u| u.email = Some("b@acme.test".into())),
            ("external id", |u| u.external_id = Some("b".into())),
            ("life", |u| u.status = Status::Active),
            ("role", |u| u.role = Some(Operator)),
        ];
        let harmless: [(&str, Act); 4] = [
            ("display name", |u| u.display_name = Some("B".into())),
            ("case", |u| u.login_name = u.login_name.to_uppercase()),
            ("suspension", |u| u.status = Status::Suspended),
            ("no role", |u| u.role = None),
        ];
        let suspended = User {
            status: Status::Suspended,
            ..with_role(Some(Admin))
        };
        for before in [with_role(Some(Admin)), suspended.clone()] {
            for (what, act) in gives {
                let mut after = before.clone();
                act(&mut after);
                if after == before {
                    continue;
                }
                assert!(may_change(narrow, &before, &after).is_err(), "{what}");
                assert!(may_change(whole, &before, &after).is_ok(), "{what}");
            }
            for (what, act) in harmless {
                let mut after = before.clone();
                act(&mut after);
                assert!(may_change(narrow, &before, &after).is_ok(), "{what}");
            }
        }
        // Of the record as it was, as well as of the result.
        let mut renamed = with_role(Some(Viewer));
        renamed.login_name = "b@acme.test".into();
        assert!(may_change(operator, &with_role(Some(Admin)), &renamed).is_err());
        assert!(may_change(operator, &with_role(Some(Viewer)), &renamed).is_ok());
        let mut nobody = with_role(None);
        nobody.login_name = "b@acme.test".into();
        assert!(may_change(narrow, &with_role(None), &nobody).is_ok());
    }
}
