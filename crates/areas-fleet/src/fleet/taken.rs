//! Whom gateways take a device for, and who may say so.
//!
//! ```text
//! an account is assigned ─► the account, while it is enabled     nobody, when it is disabled or deleted: never the owner
//! none is                ─► the owner, while the user is active  nobody, while suspended, and when nobody owns it
//! either                 ─► nobody, while the device is not active or a restore holds it back, and while the account or the
//!                           user can do more than whoever said so could give
//! ```
//!
//! INVARIANT FL-7: nobody has a device be taken for an account or a user who can do, or could do, more than they hold; whoever is
//! given more afterwards is behind no device by the word of somebody who could not give it.
//! INVARIANT FL-8: a device is taken for somebody only while it is active, no restore holds it back, and the account or the user
//! acts; an account that ended is never replaced by the owner.
//!
//! What somebody could give is kept beside what they said and compared with each answer, so that neither a later role nor a later
//! scope of an account, given by whatever way, has to find the devices (ADR 0110).

use super::model::{Device, DeviceId, Reach, Status};
use provost_areas_access::resources::ownership::Owner as Manager;
use provost_areas_identity::service_accounts::{self, Rights, may_be_held};
use provost_areas_identity::{directory, subjects::SubjectKind};
use provost_kernel::auth::{Permission, Role, ScopeSet, may_mint};
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, params, statements, word};

statements! {
    /// The account that is assigned to a device, by whose reach, how often that changed, and who manages it.
    ASSIGNED = "SELECT service_account_id, reach_role, reach_scopes, revision, manager_id, manager_instance, owner_id FROM device_gateway_identities WHERE organization_id = ?1 AND device_id = ?2";
    /// Assigns an account to a device, or takes it away.
    ASSIGN = "INSERT INTO device_gateway_identities (organization_id, device_id, service_account_id, reach_role, reach_scopes, revision, updated_at, manager_id, manager_instance, owner_id) VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9) ON CONFLICT (organization_id, device_id) DO UPDATE SET service_account_id = excluded.service_account_id, reach_role = excluded.reach_role, reach_scopes = excluded.reach_scopes, revision = device_gateway_identities.revision + 1, updated_at = excluded.updated_at, manager_id = excluded.manager_id, manager_instance = excluded.manager_instance, owner_id = excluded.owner_id";
}

word! {
    /// How it is known whom a device is taken for.
    #[schemars(extend("x-open" = true))]
    pub enum Resolution {
        /// Somebody assigned a service account.
        Explicit = "explicit",
        /// It is the device's owner.
        AssignedUser = "assigned_user",
    }
}

/// With it, people say whom gateways take something for.
pub const SCOPE: &str = "llm_gateway:write";

/// An account that was assigned to a device.
pub struct Assignment {
    /// The account; none after it was taken away.
    pub account: Option<String>,
    /// What whoever said so could give.
    pub reach: Reach,
    /// How often that changed.
    pub revision: i64,
    /// Who manages it.
    pub manager: Manager,
}

const OWNER_ENDED: &str = "its owner is suspended or deleted";
const OWNER_BEYOND: &str =
    "its owner can do more than whoever named the owner could give; name the owner again";
/// Why a device is taken for nobody, where that says something of its owner.
pub const OF_OWNERS: [&str; 2] = [OWNER_ENDED, OWNER_BEYOND];

/// Whom a device is taken for.
pub enum Taken {
    /// Somebody.
    For(Resolution, SubjectKind, String),
    /// Nobody, for this reason.
    Nobody(&'static str),
}

/// Reads what somebody could give; of a role that this version does not know it is nothing.
pub fn reach(role: Option<&str>, scopes: Option<&str>) -> Reach {
    let Some(role) = role.and_then(Role::parse) else {
        return Reach::none();
    };
    Reach(Permission::effective(
        role,
        scopes.map(ScopeSet::from_store),
        None,
    ))
}

/// Returns what is assigned to a device; nothing where nothing ever was.
pub fn assigned(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Assignment> {
    let org = ctx.org();
    let read = |row: &Row<'_>| {
        Ok(Assignment {
            account: row.get(0)?,
            reach: reach(
                row.get::<Option<String>>(1)?.as_deref(),
                row.get::<Option<String>>(2)?.as_deref(),
            ),
            revision: row.get(3)?,
            manager: Manager::read(row, 4)?,
        })
    };
    let found = ctx.query_opt(&ASSIGNED, params![org, id.as_str()], read)?;
    Ok(found.unwrap_or(Assignment {
        account: None,
        reach: Reach::none(),
        revision: 0,
        manager: Manager::Service,
    }))
}

/// Assigns an account to a device by the word of somebody who could give so much, or none.
pub fn assign(
    ctx: &mut OperationContext<'_>,
    id: &DeviceId,
    account: Option<&str>,
    reach: Reach,
    manager: &Manager,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let scopes = reach.scopes();
    let [manager, instance, owner] = manager.columns();
    ctx.queue(
        &ASSIGN,
        params![
            org,
            id.as_str(),
            account,
            reach.role(),
            scopes.as_deref(),
            now,
            manager,
            instance,
            owner,
        ],
    )
}

/// Returns whom gateways take a device for.
///
/// Keeps FL-7, FL-8.
pub fn resolve(ctx: &mut OperationContext<'_>, device: &Device) -> Result<Taken> {
    if device.status != Status::Active {
        return Ok(Taken::Nobody("it is not active"));
    }
    if device.held_at.is_some() {
        return Ok(Taken::Nobody("a restore of the store holds it back"));
    }
    let assignment = assigned(ctx, &device.id)?;
    if let Some(id) = assignment.account {
        let why = unfit_account(ctx, &id, assignment.reach)?;
        return Ok(why.map_or(
            Taken::For(Resolution::Explicit, SubjectKind::ServiceAccount, id),
            Taken::Nobody,
        ));
    }
    let Some(owner) = &device.owner else {
        return Ok(Taken::Nobody("no account is assigned to it, and nobody owns it"));
    };
    let why = unfit_owner(ctx, &owner.user_id, owner.reach)?;
    let id = owner.user_id.clone();
    Ok(why.map_or(
        Taken::For(Resolution::AssignedUser, SubjectKind::User, id),
        Taken::Nobody,
    ))
}

/// Returns why an account is behind no device of this reach; nothing when it is.
fn unfit_account(ctx: &mut OperationContext<'_>, id: &str, reach: Reach) -> Result<Option<&'static str>> {
    let org = ctx.org();
    let account = service_accounts::principal(&mut ctx.tx(), org, id)?;
    if account.is_none_or(|account| !account.enabled) {
        return Ok(Some("the account that is assigned to it is disabled or deleted"));
    }
    if account_is_within(ctx, id, reach)? {
        return Ok(None);
    }
    let why =
        "the account that is assigned to it can do more than whoever assigned it could give; assign it again";
    Ok(Some(why))
}

/// Returns why a user is behind no device of this reach; nothing when it is.
pub fn unfit_owner(ctx: &mut OperationContext<'_>, id: &str, reach: Reach) -> Result<Option<&'static str>> {
    let org = ctx.org();
    let user = directory::principal(&mut ctx.tx(), org, id)?;
    if user.is_none_or(|user| !user.enabled) {
        return Ok(Some(OWNER_ENDED));
    }
    if owner_is_within(ctx, id, reach)? {
        return Ok(None);
    }
    Ok(Some(OWNER_BEYOND))
}

/// Says whether an account can do, and could do before somebody narrowed it, no more than a reach gives; enabled or not.
pub fn account_is_within(ctx: &mut OperationContext<'_>, id: &str, reach: Reach) -> Result<bool> {
    let org = ctx.org();
    let account = service_accounts::principal(&mut ctx.tx(), org, id)?;
    Ok(account.is_none_or(|account| {
        let rights = Rights {
            role: account.role,
            scopes: account.scopes,
        };
        may_be_held(rights, account.former, reach.0).is_ok()
    }))
}

/// Says whether a user can do no more than a reach gives, suspended or not.
pub fn owner_is_within(ctx: &mut OperationContext<'_>, id: &str, reach: Reach) -> Result<bool> {
    let org = ctx.org();
    let user = directory::principal(&mut ctx.tx(), org, id)?;
    let role = user.and_then(|user| user.role);
    Ok(role.is_none_or(|role| may_mint(reach.0, Permission::effective(role, None, None)).is_ok()))
}

/// Refuses whoever would let a device act, again or for the first time, behind which somebody is who can do more than they.
///
/// Keeps FL-7.
///
/// Errors: `EscalationForbidden`.
pub fn may_let_act(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let caller = Reach(ctx.actor().permission);
    let account = assigned(ctx, &device.id)?.account;
    let is_within = match &account {
        Some(id) => account_is_within(ctx, id, caller)?,
        None => true,
    };
    // The owner too: the assignment may be taken away as soon as the device acts.
    let is_within = is_within
        && match &device.owner {
            Some(owner) => owner_is_within(ctx, &owner.user_id, caller)?,
            None => true,
        };
    if is_within { Ok(()) } else { Err(beyond()) }
}

/// The refusal of a caller behind whose device would be somebody who can do more.
pub fn beyond() -> Error {
    Error::new(
        Code::EscalationForbidden,
        "gateways would take the device for somebody who can do more than you; somebody who holds all of that may do it",
    )
}

/// Refuses whoever may not say whom gateways take a device for.
///
/// Errors: `InsufficientScope`.
pub fn may_say(ctx: &OperationContext<'_>) -> Result<()> {
    if ctx.actor().permission.scopes.has(SCOPE) {
        return Ok(());
    }
    let message =
        "whose machine a device is says whom gateways take it for: that needs the scope llm_gateway:write";
    Err(Error::new(Code::InsufficientScope, message).with("scope", SCOPE))
}
