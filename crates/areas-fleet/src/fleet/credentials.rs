//! The tokens of devices, and those by which they enrol, as schemes of the kernel.
//!
//! Keeps FL-1, FL-2, FL-5, FL-6.

use super::clones::TamperReason;
use super::model::{DeviceId, GRACE_SECS, Status};
use super::{fences, rotate_key, store, verbs};
use provost_kernel::auth::OrganizationId;
use provost_kernel::credential::{Binding, Credential, Reach, TokenScheme, Use};
use provost_kernel::db::{Row, Statement};
use provost_kernel::error::Error;
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::token::Form;
use provost_kernel::{OperationContext, Result, params, statements};
use serde_json::{Value, json};

statements! {
    /// Finds a token of a device by its public lookup id.
    LOOKUP = unscoped("the lookup id is unique everywhere and says whose the token is") "SELECT t.organization_id, t.id, t.token_prefix, t.mac, t.pepper_id, t.created_at, t.expires_at, t.revoked_at, t.replay_pending, t.last_used_at, d.id, d.name, d.status, d.held_at, t.key_thumbprint, d.key_thumbprint FROM device_tokens t JOIN devices d ON d.organization_id = t.organization_id AND d.id = t.device_id WHERE t.lookup_id = ?1";
    /// Finds an enrolment token by its public lookup id, with the end of the session by which it was made.
    LOOKUP_ENROLMENT = unscoped("the lookup id is unique everywhere and says whose the token is") concat!("SELECT e.organization_id, e.id, e.token_prefix, e.mac, e.pepper_id, e.created_at, e.expires_at, e.revoked_at, e.replay_pending, e.last_used_at, e.name, CASE s.state WHEN 0 THEN ", provost_areas_access::cut!("s"), " WHEN 1 THEN s.ended_at END FROM enrolment_tokens e LEFT JOIN mcp_sessions s ON s.organization_id = e.organization_id AND s.id = e.came_by WHERE e.lookup_id = ?1");
    /// The active device of a token whose key it gave up.
    FORMER_KEY = "SELECT d.id FROM device_tokens t JOIN devices d ON d.organization_id = t.organization_id AND d.id = t.device_id WHERE t.organization_id = ?1 AND t.id = ?2 AND d.status = 'active' AND d.key_thumbprint <> t.key_thumbprint";
    /// The device of a token beside which another successor of the same token works that somebody used.
    FORKED = "SELECT t.device_id FROM device_tokens t JOIN device_tokens o ON o.organization_id = t.organization_id AND o.parent_id = t.parent_id WHERE t.organization_id = ?1 AND t.id = ?2 AND o.id <> t.id AND o.replay_pending = ?3 AND o.revoked_at IS NULL ORDER BY o.created_at, o.id LIMIT 1";
    /// The device of a token that has a successor which was made until an instant and which somebody used, while nothing is suspected.
    LATE = "SELECT t.device_id FROM device_tokens t JOIN devices d ON d.organization_id = t.organization_id AND d.id = t.device_id JOIN device_tokens o ON o.organization_id = t.organization_id AND o.parent_id = t.id WHERE t.organization_id = ?1 AND t.id = ?2 AND d.tamper_reason IS NULL AND d.status <> 'retired' AND o.created_at <= ?4 AND o.replay_pending = ?3 AND COALESCE(o.revoke_reason, '') <> 'superseded' ORDER BY o.created_at, o.id LIMIT 1";
    /// Ends the replay of a token of a device.
    FIRST_USE = "UPDATE device_tokens SET replay_pending = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Ends the replay of an enrolment token.
    FIRST_ENROLMENT = "UPDATE enrolment_tokens SET replay_pending = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Notes a use of a token of a device.
    TOUCH = "UPDATE device_tokens SET last_used_at = ?3, last_used_ip = ?4 WHERE organization_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)";
    /// Notes a use of an enrolment token.
    TOUCH_ENROLMENT = "UPDATE enrolment_tokens SET last_used_at = ?3, last_used_ip = ?4 WHERE organization_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)";
}

/// The kind of the principal that a device is.
pub const DEVICE: &str = "device";
/// The kind of the principal that an enrolment token is: it has no other.
pub const ENROLMENT_TOKEN: &str = "enrolment_token";

/// What tokens of devices look like.
pub const DEVICE_FORM: Form = Form::new("prov_dvt_");
/// What enrolment tokens look like.
pub const ENROLMENT_FORM: Form = Form::new("prov_ent_");

/// The scheme of the tokens of devices.
pub struct DeviceTokens;

/// The scheme of enrolment tokens.
pub struct EnrolmentTokens;

/// Reads what tokens of both kinds have in their first columns; the principal has no role and no scopes.
fn token(row: &Row<'_>, kind: &'static str, binding: Binding) -> Result<Credential> {
    let id: String = row.get(1)?;
    Ok(Credential {
        organization: OrganizationId::from_store(row.get(0)?),
        kind,
        principal_id: id.clone(),
        display: row.get(if kind == DEVICE { 11 } else { 10 })?,
        // INVARIANT FL-1: without a role nothing but operations of the caller's own kind admits it.
        role: None,
        account_scopes: None,
        token_scopes: None,
        enabled: true,
        token_id: id,
        prefix: row.get(2)?,
        is_own: true,
        mac: row.get(3)?,
        pepper_id: row.get(4)?,
        issued_at: row.get(5)?,
        expires_at: row.get(6)?,
        revoked_at: row.get(7)?,
        self_rotated: false,
        replay_pending: row.get(8)?,
        last_used_at: row.get(9)?,
        item: None,
        client: None,
        binding,
    })
}

/// Notes the first use of a token of a device, with which its replay ends.
pub fn note_use(ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FIRST_USE, params![org, token_id, false])
}

/// Says that there are two of a device where a token is used beside another successor of the same token: whoever is one machine uses
/// one of them alone.
fn tell_of_fork(ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
    let org = ctx.org();
    let found = ctx.query_opt(&FORKED, params![org, token_id, false], |row| {
        Ok(DeviceId::from_store(row.get(0)?))
    })?;
    let Some(id) = found else {
        return Ok(());
    };
    let mut device = store::get(ctx, &id)?;
    // It is said once; and whoever retired it knows.
    if device.tamper.is_some() || device.status == Status::Retired {
        return Ok(());
    }
    ctx.action(fences::CLONE);
    ctx.target(&fences::DEVICE, id.as_str());
    verbs::suspect(ctx, &mut device, TamperReason::TokenForked)
}

/// The job that says of a device that there may be two of it.
pub const LATE_USE: Handler = Handler {
    kind: "fleet.token_used_late",
    action: fences::CLONE,
    work: Work::Inside(tell_of_late_use),
};

/// Sees whether a token is used longer behind the first use of its successor than a renewal takes: a copy that says no heartbeat is
/// told of as well. The unit that notes uses is of many devices, so that each is told of in one of its own.
fn look_for_late_use(ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
    let (org, until) = (ctx.org(), used.at.plus_secs(-GRACE_SECS));
    let found = ctx.query_opt(&LATE, params![org, used.token_id.as_str(), false, until], |row| {
        row.get::<String>(0)
    })?;
    if let Some(device) = found {
        ctx.enqueue(NewJob {
            kind: LATE_USE.kind,
            payload: json!({ "deviceId": device }),
            run_at: ctx.now(),
        });
    }
    Ok(())
}

/// Keeps FL-5.
fn tell_of_late_use(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
    let id = payload["deviceId"].as_str();
    let id = id.ok_or_else(|| Error::internal("a job names no device"))?;
    ctx.target(&fences::DEVICE, id);
    let mut device = store::get(ctx, &DeviceId::from_store(id.to_owned()))?;
    verbs::suspect(ctx, &mut device, TamperReason::TokenForked)
}

impl TokenScheme for DeviceTokens {
    fn name(&self) -> &'static str {
        DEVICE
    }

    fn form(&self) -> Option<Form> {
        Some(DEVICE_FORM)
    }

    fn reach(&self) -> Reach {
        Reach::Kind
    }

    fn is_bound(&self) -> bool {
        true
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&LOOKUP)
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        let credential = token(row, DEVICE, Binding::Key(row.get(14)?))?;
        let status = Status::from_store(row.str(12)?)?;
        let is_held = row.get::<Option<i64>>(13)?.is_some();
        // INVARIANT FL-6: the first use of a former key is one whenever the device works; it is quarantined before anything is answered.
        let is_former = status == Status::Active && row.str(14)? != row.str(15)?;
        Ok(Credential {
            principal_id: row.get(10)?,
            enabled: status != Status::Retired && !is_held,
            replay_pending: credential.replay_pending || is_former,
            ..credential
        })
    }

    fn first_use(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        note_use(ctx, token_id)?;
        let org = ctx.org();
        let found = ctx.query_opt(&FORMER_KEY, params![org, token_id], |row| {
            Ok(DeviceId::from_store(row.get(0)?))
        })?;
        match found {
            Some(device) => {
                ctx.action(fences::FORMER_KEY);
                verbs::quarantine_for_former_key(ctx, &device)
            }
            None => tell_of_fork(ctx, token_id),
        }
    }

    fn is_noted_by(&self, operation: &str) -> bool {
        operation == rotate_key::ROTATE
    }

    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
        let org = ctx.org();
        ctx.queue(
            &TOUCH,
            params![org, used.token_id.as_str(), used.at, used.source_ip.to_string()],
        )?;
        look_for_late_use(ctx, used)
    }
}

impl TokenScheme for EnrolmentTokens {
    fn name(&self) -> &'static str {
        ENROLMENT_TOKEN
    }

    fn form(&self) -> Option<Form> {
        Some(ENROLMENT_FORM)
    }

    fn reach(&self) -> Reach {
        Reach::Kind
    }

    /// Whoever enrols proves the key that the device will be.
    fn is_bound(&self) -> bool {
        true
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&LOOKUP_ENROLMENT)
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        let credential = token(row, ENROLMENT_TOKEN, Binding::AnyKey)?;
        // INVARIANT FL-10: also while a job is still to write the end down.
        let origin_ended_at = row.get(11)?;
        Ok(Credential {
            revoked_at: credential.revoked_at.or(origin_ended_at),
            ..credential
        })
    }

    fn first_use(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        let org = ctx.org();
        ctx.queue(&FIRST_ENROLMENT, params![org, token_id, false])
    }

    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
        let org = ctx.org();
        ctx.queue(
            &TOUCH_ENROLMENT,
            params![org, used.token_id.as_str(), used.at, used.source_ip.to_string()],
        )
    }
}
