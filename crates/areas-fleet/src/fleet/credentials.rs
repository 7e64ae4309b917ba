//! The tokens of devices, and those by which they enrol, as schemes of the kernel.
//!
//! Keeps FL-1, FL-2.

use super::model::Status;
use provost_kernel::auth::OrganizationId;
use provost_kernel::credential::{Binding, Credential, Reach, TokenScheme, Use};
use provost_kernel::db::{Row, Statement};
use provost_kernel::token::Form;
use provost_kernel::{OperationContext, Result, params, statements};

statements! {
    /// Finds a token of a device by its public lookup id.
    LOOKUP = unscoped("the lookup id is unique everywhere and says whose the token is") "SELECT t.organization_id, t.id, t.token_prefix, t.mac, t.pepper_id, t.created_at, t.expires_at, t.revoked_at, t.replay_pending, t.last_used_at, d.id, d.name, d.status, d.held_at, t.key_thumbprint FROM device_tokens t JOIN devices d ON d.organization_id = t.organization_id AND d.id = t.device_id WHERE t.lookup_id = ?1";
    /// Finds an enrolment token by its public lookup id.
    LOOKUP_ENROLMENT = unscoped("the lookup id is unique everywhere and says whose the token is") "SELECT organization_id, id, token_prefix, mac, pepper_id, created_at, expires_at, revoked_at, replay_pending, last_used_at, name FROM enrolment_tokens WHERE lookup_id = ?1";
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
        let is_retired = Status::from_store(row.str(12)?)? == Status::Retired;
        let is_held = row.get::<Option<i64>>(13)?.is_some();
        Ok(Credential {
            principal_id: row.get(10)?,
            enabled: !is_retired && !is_held,
            ..credential
        })
    }

    fn first_use(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        let org = ctx.org();
        ctx.queue(&FIRST_USE, params![org, token_id, false])
    }

    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
        let org = ctx.org();
        ctx.queue(
            &TOUCH,
            params![org, used.token_id.as_str(), used.at, used.source_ip.to_string()],
        )
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
        token(row, ENROLMENT_TOKEN, Binding::AnyKey)
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
