//! Changes a service account: absent members stay, `null` clears (D13).

use super::create::is_orphaned_by;
use super::model::{
    AccountPath, OneAccount, ScopeList, ServiceAccount, is_narrower, may_list, not_oneself, view,
};
use super::{rotate, store};
use crate::service_accounts::fences;
use crate::subjects::SubjectKind;
use provost_areas_platform::announcements::{AccountNarrowed, PrincipalRenamed};
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::may_mint;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Patch, RequiredChange};
use provost_kernel::text::{Description, Name, name_key};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct UpdateServiceAccount;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "required": ["scopes"], "properties": { "allOfRole": { "const": false } } },
    { "properties": { "scopes": false, "allOfRole": { "const": true } } },
]))]
pub struct UpdateBody {
    /// The new name.
    #[serde(default)]
    name: RequiredChange<Name>,
    /// The new description; `null` clears it.
    #[serde(default)]
    description: Patch<Description>,
    /// The new role.
    #[serde(default)]
    permission_role: RequiredChange<Role>,
    /// The new scopes; ends `allOfRole`.
    #[serde(default)]
    scopes: RequiredChange<ScopeList>,
    /// `true`: everything that the role can.
    #[serde(default)]
    all_of_role: RequiredChange<bool>,
    /// Who answers for it; `null` clears it.
    #[serde(default)]
    owner_console_user_id: Patch<Name>,
}

impl Operation for UpdateServiceAccount {
    const META: Meta = Meta::write(
        "updateHeadlessServiceAccount",
        Method::Patch,
        "/service-accounts/{serviceAccountId}",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("service-accounts", "update")
    .example(r#"{"description": "Deploys the policies of the platform team"}"#)
    .of_two(&["rights"])
    .says("Change a service account", "Members that are absent stay as they are. Nobody gives an account more than they hold, nor a new name or owner to one that could do more, and no account changes its own role or scopes. Its tokens can do what it can from the next request on, except those that were narrowed.");
    type Path = AccountPath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OneAccount;

    fn validate(input: &Input<Self>) -> Result<()> {
        match (input.body.scopes.get(), input.body.all_of_role.get()) {
            (Some(_), Some(true)) => Err(Error::invalid(
                "/allOfRole",
                "cannot be true together with scopes",
            )),
            (None, Some(false)) => Err(Error::invalid("/scopes", "is required when allOfRole is false")),
            _ => Ok(()),
        }
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        rotate::standing(ctx, &input.path.service_account_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAccount> {
        let id = &input.path.service_account_id;
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (before, tokens) = store::get(ctx, id)?;
        let mut after = apply(&before, &input.body);
        let rights_change = after.role != before.role || after.scopes != before.scopes;
        let name_change = name_key(&after.name) != name_key(&before.name);
        let owner_change = after.owner_console_user_id != before.owner_console_user_id;
        // INVARIANT SA-3: policies and gateways know an account by its name, and a person answers for it: who points
        // either at somebody else gives away what the account can do.
        let caller = ctx.actor().permission;
        if name_change || owner_change {
            before.may_be_held_by(caller)?;
        }
        if rights_change || name_change || owner_change {
            may_mint(caller, after.permission(None))?;
        }
        if rights_change {
            may_list(caller, after.scopes, before.scopes)?;
            after.remember(&before, caller);
            not_oneself(&ctx.actor().id, &before, "change the role or scopes of")?;
            if !after.governs() {
                store::keep_a_governor(ctx, &before)?;
            }
        }
        if name_change {
            store::keep_name_free(ctx, &after.name, id.as_str())?;
        }
        if owner_change {
            after.is_orphaned = is_orphaned_by(ctx, after.owner_console_user_id.as_deref())?;
        }
        note_changes(ctx, &before, &after);
        if after.name != before.name {
            ctx.announce(&PrincipalRenamed {
                kind: SubjectKind::ServiceAccount,
                id: id.as_str().to_owned(),
                before: before.name.clone(),
                after: after.name.clone(),
            })?;
        }
        let now = ctx.now();
        if ctx.has_changes() {
            after.updated_at = before.changed_at(now);
            store::save(ctx, &after, after.name != before.name)?;
            if rights_change && is_narrower(after.permission(None), before.permission(None)) {
                ctx.announce(&AccountNarrowed {
                    id: id.as_str().to_owned(),
                })?;
            }
            ctx.emit(&fences::UPDATED, &fences::OfAccount::of(id));
        }
        let warnings = if rights_change {
            after.warnings_after(&before)
        } else {
            Vec::new()
        };
        Ok(OneAccount {
            service_account: view(after, tokens, now),
            warnings,
        })
    }
}

fn apply(before: &ServiceAccount, body: &UpdateBody) -> ServiceAccount {
    let mut after = before.clone();
    if let Some(name) = body.name.get() {
        name.as_str().clone_into(&mut after.name);
    }
    body.description
        .apply(&mut after.description, |d| d.as_str().to_owned());
    body.owner_console_user_id
        .apply(&mut after.owner_console_user_id, |o| o.as_str().to_owned());
    after.role = body.permission_role.get().copied().unwrap_or(before.role);
    if let Some(scopes) = body.scopes.get() {
        after.scopes = Some(scopes.set());
    } else if body.all_of_role.get() == Some(&true) {
        after.scopes = None;
    }
    after
}

fn note_changes(ctx: &mut OperationContext<'_>, before: &ServiceAccount, after: &ServiceAccount) {
    let shown = |account: &ServiceAccount| account.scopes.map_or(json!("allOfRole"), |s| json!(s.to_list()));
    ctx.change("/name", before.name.as_str(), after.name.as_str());
    ctx.change(
        "/description",
        before.description.clone(),
        after.description.clone(),
    );
    ctx.change("/permissionRole", before.role.as_str(), after.role.as_str());
    ctx.change("/scopes", shown(before), shown(after));
    ctx.change(
        "/ownerConsoleUserId",
        before.owner_console_user_id.clone(),
        after.owner_console_user_id.clone(),
    );
}
