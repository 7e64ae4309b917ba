//! Changes a user: absent members stay, `null` clears (D13).

use super::super::model::{OneUser, User, UserPath};
use super::super::store::users;
use super::create::may_hand_out;
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Given, Patch};
use provost_kernel::text::{LongName, name_key};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// See [`Operation::META`].
pub struct UpdateUser;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// The new login name.
    #[serde(default)]
    login_name: Given<LongName>,
    /// The new name for people; `null` clears it.
    #[serde(default)]
    display_name: Patch<LongName>,
    /// The new address; `null` clears it.
    #[serde(default)]
    email: Patch<LongName>,
    /// The new id in the user's directory; `null` clears it.
    #[serde(default)]
    external_id: Patch<LongName>,
    /// The new role; `null` takes every right away.
    #[serde(default)]
    permission_role: Patch<Role>,
}

impl Operation for UpdateUser {
    const META: Meta = Meta::write(
        "updateHeadlessDirectoryUser",
        Method::Patch,
        "/directory/users/{userId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("users", "update")
    .says(
        "Change a user",
        "Members that are absent stay as they are. Nobody gives a user a role that could do more than they can. An \
         open import keeps the change, unless a later line of its file says otherwise.",
    );
    type Path = UserPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OneUser;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<OneUser> {
        let (id, body) = (&input.path.user_id, &input.body);
        cx.target("user", id.as_str());
        let versions = users::versions(cx, id)?;
        if let Patch::Set(role) = &body.permission_role {
            may_hand_out(cx, Some(*role))?;
        }
        if let Some(name) = body.login_name.get() {
            let differs = |v: &User| name_key(&v.login_name) != name_key(name.as_str());
            if versions.iter().any(differs) {
                users::keep_name_free(cx, &versions[0].directory_id, name.as_str(), id)?;
            }
        }
        let mut shown = versions[0].clone();
        for (place, before) in versions.into_iter().enumerate() {
            let mut after = apply(&before, body);
            if after != before {
                after.touch(cx.now());
                users::save(cx, &after)?;
            }
            if place == 0 {
                note_changes(cx, &before, &after);
                shown = after;
            }
        }
        if cx.has_changes() {
            cx.emit("directory.user.updated", json!({ "userId": id }));
        }
        Ok(OneUser { user: shown.into() })
    }

    fn recheck(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<()> {
        match &input.body.permission_role {
            Patch::Set(role) => may_hand_out(cx, Some(*role)),
            _ => Ok(()),
        }
    }
}

fn apply(before: &User, body: &UpdateBody) -> User {
    let mut after = before.clone();
    if let Some(name) = body.login_name.get() {
        name.as_str().clone_into(&mut after.login_name);
    }
    let text = |value: &LongName| value.as_str().to_owned();
    body.display_name.apply(&mut after.display_name, text);
    body.email.apply(&mut after.email, text);
    body.external_id.apply(&mut after.external_id, text);
    body.permission_role.apply(&mut after.role, |role| *role);
    after
}

fn note_changes(cx: &mut Cx<'_>, before: &User, after: &User) {
    cx.change(
        "/loginName",
        before.login_name.as_str(),
        after.login_name.as_str(),
    );
    cx.change(
        "/displayName",
        before.display_name.clone(),
        after.display_name.clone(),
    );
    cx.change("/email", before.email.clone(), after.email.clone());
    cx.change(
        "/externalId",
        before.external_id.clone(),
        after.external_id.clone(),
    );
    cx.change(
        "/permissionRole",
        before.role.map(Role::as_str),
        after.role.map(Role::as_str),
    );
}
