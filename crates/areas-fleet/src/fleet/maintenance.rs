//! What is done without anybody asking: the sweep of devices that never called, the check of a store, and its restore.

use super::command::KEPT_SECS as COMMANDS_SECS;
use super::model::{DeviceId, EnrolmentTokenId, PENDING_SECS, Status, UNAPPROVED_SECS};
use super::{bypass, bypass_store, enrolment, fences, owners, store, token_store, verbs};
use provost_areas_platform::announcements::{
    AccountNarrowed, PrincipalEnded, SessionsEnded, TokenRevoked, UserNarrowed,
};
use provost_areas_platform::settings;
use provost_areas_platform::store::organizations;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error};
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::{Kernel, OperationContext, Result, SureTime, Timestamp, params, statements};
use serde_json::{Value, json};
use std::sync::Arc;

/// Why a device is retired that was never heard of.
const NEVER_CALLED: &str = "never_called";

statements! {
    /// Tokens of devices that ended long ago.
    PRUNE_TOKENS = unscoped("retention is the same for every organization") "DELETE FROM device_tokens WHERE (organization_id, id) IN (SELECT t.organization_id, t.id FROM device_tokens t WHERE t.expires_at < ?1 ORDER BY t.expires_at, t.organization_id, t.id LIMIT 1000)";
    /// Enrolment tokens that ended long ago and by which no device enrolled: a use and its device are made in one unit.
    PRUNE_ENROLMENT_TOKENS = unscoped("retention is the same for every organization") "DELETE FROM enrolment_tokens WHERE (organization_id, id) IN (SELECT e.organization_id, e.id FROM enrolment_tokens e WHERE e.expires_at < ?1 AND e.uses = 0 ORDER BY e.expires_at, e.organization_id, e.id LIMIT 1000)";
    /// Commands whose time ended long ago.
    PRUNE_COMMANDS = unscoped("retention is the same for every organization") "DELETE FROM device_commands WHERE (organization_id, id) IN (SELECT c.organization_id, c.id FROM device_commands c WHERE c.expires_at < ?1 ORDER BY c.expires_at, c.organization_id, c.id LIMIT 1000)";
    /// Devices of an organization that were neither heard of nor touched since an instant.
    SILENT = "SELECT d.id FROM devices d JOIN device_heartbeats h ON h.organization_id = d.organization_id AND h.device_id = d.id WHERE d.organization_id = ?1 AND d.status IN ('active', 'quarantined') AND d.held_at IS NULL AND h.at <= ?2 AND d.updated_at <= ?2 ORDER BY d.id LIMIT 100";
    /// Tokens of retired devices that have not run out, are not revoked, and wait for no job to be.
    LIVING = unscoped("a check looks at every organization") "SELECT t.organization_id, t.id FROM device_tokens t JOIN devices d ON d.organization_id = t.organization_id AND d.id = t.device_id WHERE d.status = 'retired' AND t.revoked_at IS NULL AND t.expires_at > ?1 AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.organization_id = t.organization_id AND j.kind = 'device.revoke_rest' AND j.state = 'queued') ORDER BY t.organization_id, t.id";
    /// Enrolment tokens that made more devices than they may.
    OVERUSED = unscoped("a check looks at every organization") "SELECT organization_id, id FROM enrolment_tokens WHERE uses > max_uses ORDER BY organization_id, id";
    /// Devices whose owner is not beside what whoever said so could give, or stands without it.
    UNSAID = unscoped("a check looks at every organization") "SELECT organization_id, id FROM devices WHERE (owner_user_id IS NULL) <> (owner_reach_role IS NULL) ORDER BY organization_id, id";
    /// Devices whose status and instants contradict each other.
    TORN = unscoped("a check looks at every organization") "SELECT organization_id, id FROM devices WHERE (status = 'retired') <> (retired_at IS NOT NULL) OR status NOT IN ('pending', 'active', 'quarantined', 'retired') ORDER BY organization_id, id";
}

/// Why tokens are revoked whose device is retired.
pub const RETIRED: &str = "device_retired";

/// The job that revokes the rest of them.
const REVOKE_REST: &str = "device.revoke_rest";

/// Runs it.
pub const HANDLER: Handler = Handler {
    kind: REVOKE_REST,
    action: fences::REST,
    work: Work::Inside(revoke_more),
};

/// Has a job revoke the tokens that the unit left which retired their device: `tokens` worked until then. None of them opens anything
/// meanwhile: whoever looks one up reads that the device is retired (FL-2).
pub fn revoke_rest(ctx: &mut OperationContext<'_>, id: &DeviceId, tokens: usize) {
    if tokens > token_store::MOST_REVOKED {
        ctx.enqueue(NewJob {
            kind: REVOKE_REST,
            payload: json!({ "deviceId": id.as_str() }),
            run_at: ctx.now(),
        });
    }
}

fn revoke_more(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
    let id = payload["deviceId"].as_str();
    let id = id.ok_or_else(|| Error::internal("a job names no device"))?;
    let id = DeviceId::from_store(id.to_owned());
    ctx.target(&fences::DEVICE, id.as_str());
    let tokens = token_store::revoke_tokens(ctx, &id, RETIRED)?;
    ctx.change("/revoked", Value::Null, tokens.min(token_store::MOST_REVOKED));
    revoke_rest(ctx, &id, tokens);
    Ok(())
}

/// Why a device is retired that was not heard of for as long as the settings say.
const SILENT_FOR_LONG: &str = "silent";

/// Why a device is retired that nobody approved.
const NEVER_APPROVED: &str = "never_approved";

/// Retires the devices that enrolled a day ago and never called, and those that nobody approved for thirty days, if nobody
/// doubts the clock.
pub async fn sweep(kernel: Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let silent = now.instant().plus_secs(-PENDING_SECS);
    let waiting = now.instant().plus_secs(-UNAPPROVED_SECS);
    let due = kernel
        .read_system(move |tx| store::abandoned(tx, silent, waiting))
        .await?;
    for (organization, id) in due {
        let organization = OrganizationId::from_store(organization);
        let run = move |ctx: &mut OperationContext<'_>| {
            let device = store::get(ctx, &id)?;
            // It may have called, been approved or been released in the meantime.
            if device.status != Status::Pending || device.held_at.is_some() {
                return Ok(());
            }
            let why = match device.heartbeat {
                None if device.updated_at <= silent => NEVER_CALLED,
                Some(_) if device.updated_at <= waiting => NEVER_APPROVED,
                _ => return Ok(()),
            };
            verbs::retire(ctx, &id, Some(why))?;
            Ok(())
        };
        let retired = kernel.system(organization, Some(fences::ABANDONMENT), run).await;
        go_on(retired)?;
    }
    retire_silent(kernel, now.instant()).await
}

/// Retires the devices that were not heard of for as long as the settings of their organization say, a hundred of each in a round.
/// Their tokens have expired before: none of these machines could call again.
async fn retire_silent(kernel: Arc<Kernel>, now: Timestamp) -> Result<()> {
    let organizations = kernel.read_system(organizations).await?;
    for organization in organizations {
        let place = organization.clone();
        let due = kernel
            .read_system(move |tx| silent(tx, place.as_str(), now))
            .await?;
        for (id, until) in due {
            let run = move |ctx: &mut OperationContext<'_>| {
                let device = store::get(ctx, &id)?;
                // It may have called, or somebody may have touched it, in the meantime.
                let heard = device.heartbeat.as_ref().is_some_and(|last| last.at > until);
                let is_settled = matches!(device.status, Status::Pending | Status::Retired);
                if heard || is_settled || device.held_at.is_some() || device.updated_at > until {
                    return Ok(());
                }
                verbs::retire(ctx, &id, Some(SILENT_FOR_LONG))?;
                Ok(())
            };
            let retired = kernel
                .system(organization.clone(), Some(fences::ABANDONMENT), run)
                .await;
            go_on(retired)?;
        }
    }
    Ok(())
}

/// Goes on behind one device that could not be retired, unless the store is away: those behind it are retired all the same.
fn go_on(retired: Result<()>) -> Result<()> {
    match retired {
        Err(error) if error.code() == Code::Unavailable => Err(error),
        Err(error) => {
            tracing::error!("a device could not be retired, and is tried again: {error}");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Returns devices of an organization that are given up for their silence, and until when nothing was heard of them.
fn silent(tx: &mut Tx<'_>, organization: &str, now: Timestamp) -> Result<Vec<(DeviceId, Timestamp)>> {
    let days = settings::of(tx, organization)?.fleet.retire_after_days;
    if days == 0 {
        return Ok(Vec::new());
    }
    let until = now.plus_secs(-days * 86_400);
    tx.query(&SILENT, params![organization, until], |row| {
        Ok((DeviceId::from_store(row.get(0)?), until))
    })
}

/// Ends the enrolment tokens and bypasses of whoever acts no more, and takes a user who is deleted away from devices.
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    // Before the machines lose their owner.
    bypass::principal_ended(ctx, ended)?;
    owners::principal_ended(ctx, ended)?;
    end_tokens_of(ctx, &ended.id)
}

/// Ends the enrolment tokens and bypasses of an account that can do less now: it may make none any more.
pub fn account_narrowed(ctx: &mut OperationContext<'_>, narrowed: &AccountNarrowed) -> Result<()> {
    bypass::end_of_maker(ctx, &narrowed.id)?;
    end_tokens_of(ctx, &narrowed.id)
}

/// Ends the enrolment tokens and bypasses of a user who has a lesser role now.
pub fn user_narrowed(ctx: &mut OperationContext<'_>, narrowed: &UserNarrowed) -> Result<()> {
    bypass::end_of_maker(ctx, &narrowed.id)?;
    end_tokens_of(ctx, &narrowed.id)
}

/// Ends the enrolment tokens that were made by a token of an account which is revoked. A rotation replaces the token of somebody who
/// goes on; every other end takes with it what was made by the token.
///
/// Keeps FL-10.
pub fn token_revoked(ctx: &mut OperationContext<'_>, revoked: &TokenRevoked) -> Result<()> {
    if revoked.reason == "rotated" {
        return Ok(());
    }
    let made = enrolment::of_origin(ctx, &revoked.id)?;
    end_by_origin(ctx, &made)
}

/// Ends the enrolment tokens that were made by sessions which ended.
///
/// Keeps FL-10.
pub fn sessions_ended(ctx: &mut OperationContext<'_>, ended: &SessionsEnded) -> Result<()> {
    let made = enrolment::of_ended(ctx, ended.at, &ended.reason)?;
    end_by_origin(ctx, &made)
}

fn end_by_origin(ctx: &mut OperationContext<'_>, made: &[EnrolmentTokenId]) -> Result<()> {
    for id in made {
        enrolment::revoke(ctx, id, Some("origin_ended"))?;
    }
    tell_of_ended(ctx, made);
    Ok(())
}

fn end_tokens_of(ctx: &mut OperationContext<'_>, maker: &str) -> Result<()> {
    let ended = enrolment::revoke_made_by(ctx, maker)?;
    tell_of_ended(ctx, &ended);
    Ok(())
}

fn tell_of_ended(ctx: &mut OperationContext<'_>, ended: &[EnrolmentTokenId]) {
    for id in ended {
        let of = fences::OfEnrolmentToken {
            enrolment_token_id: id.clone(),
        };
        ctx.emit(&fences::TOKEN_REVOKED, &of);
    }
    if !ended.is_empty() {
        ctx.change("/enrolmentTokens", json!(ended), Value::Null);
        // Who enrols by one of them in the same batch was looked up before.
        ctx.invalidate_cached_credentials();
    }
}

/// How long tokens are kept that ended. Units: seconds.
pub const KEPT_SECS: i64 = 400 * 86_400;

/// Removes tokens, commands and bypasses that ended long ago, a thousand of each kind in a unit. Devices stay, the retired ones too: their keys are dead
/// for ever (FL-3), and what was found on them names them.
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let before = now.earlier_by(KEPT_SECS).instant();
    ctx.prune(&PRUNE_TOKENS, params![before])?;
    ctx.prune(&PRUNE_ENROLMENT_TOKENS, params![before])?;
    let commands = now.earlier_by(COMMANDS_SECS).instant();
    ctx.prune(&PRUNE_COMMANDS, params![commands])?;
    bypass_store::forget(ctx, now.earlier_by(bypass::KEPT_SECS))
}

/// Revokes every enrolment token of the organization, and ends every bypass, in the unit that restores it. Its devices are held back.
pub fn end_every(ctx: &mut OperationContext<'_>, reason: &'static str) -> Result<()> {
    bypass::end_every(ctx)?;
    enrolment::revoke_every(ctx, reason)
}

/// Returns a sentence for everything that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<String>> {
    let found = |row: &provost_kernel::db::Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
    let mut broken = Vec::new();
    for (organization, id) in tx.query(&LIVING, params![now], found)? {
        broken.push(format!(
            "the token {id} of a retired device of {organization} is not revoked"
        ));
    }
    for (organization, id) in tx.query(&OVERUSED, params![], found)? {
        broken.push(format!(
            "the enrolment token {id} of {organization} made more devices than it may"
        ));
    }
    for (organization, id) in tx.query(&UNSAID, params![], found)? {
        broken.push(format!(
            "the device {id} of {organization} has an owner of whom nobody is known to have said so, or the other way round"
        ));
    }
    for (organization, id) in tx.query(&TORN, params![], found)? {
        broken.push(format!(
            "the device {id} of {organization} has a status that its instants contradict"
        ));
    }
    Ok(broken)
}
