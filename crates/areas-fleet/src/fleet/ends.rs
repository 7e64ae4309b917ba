//! What takes away from devices and their tokens, and how it is taken away again (EN-3).

use super::bypass::BypassId;
use super::model::{DeviceId, EnrolmentTokenId, Reach, Status};
use super::{bypass, enrolment, fences, gateway_identity, store, taken, token_store, verbs};
use provost_areas_platform::ends::{unclear, works_until};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::error::Code;
use provost_kernel::{OperationContext, Result, Timestamp};
use serde_json::Value;

const BYPASS: &str = "device_bypass";
const DEVICE: &str = "device";
const DEVICE_TOKEN: &str = "device_token";
const ENROLMENT_TOKEN: &str = "enrolment_token";
const OWNER: &str = "device_owner";
const GATEWAY_IDENTITY: &str = "device_gateway_identity";
const KEY: &str = "device_key";
const QUARANTINED: &str = "quarantined";

const SEEN: &[&str] = &["last_used_at", "last_used_ip"];

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("device_bypasses", bypassed),
    Right::ending("device_gateway_identities", unassigned),
    Right::ending("devices", device),
    Right::ending("device_tokens", device_token).loose(SEEN),
    Right::ending("enrolment_tokens", enrolment_token).loose(SEEN),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: BYPASS,
        again: bypass_again,
    },
    RepeatedRevocation {
        what: DEVICE,
        again: device_again,
    },
    RepeatedRevocation {
        what: OWNER,
        again: owner_again,
    },
    RepeatedRevocation {
        what: KEY,
        again: key_again,
    },
    RepeatedRevocation {
        what: GATEWAY_IDENTITY,
        again: gateway_identity_again,
    },
    RepeatedRevocation {
        what: DEVICE_TOKEN,
        again: device_token_again,
    },
    RepeatedRevocation {
        what: ENROLMENT_TOKEN,
        again: enrolment_token_again,
    },
];

fn one(what: &'static str, how: &'static str, was: &Side) -> Result<Vec<Revocation>> {
    let ids = was.ids(&["id"])?;
    Ok(vec![Revocation { what, how, ids }])
}

fn device(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let mut found = disowned(was, change.is.as_ref())?;
    let retired = Some(Status::Retired.as_str());
    if was.text("status")? == retired {
        return Ok(found);
    }
    found.extend(given_up(was, change.is.as_ref())?);
    let how = match &change.is {
        None => "deleted",
        Some(is) if is.text("status")? == retired => "retired",
        Some(is) if is.text("status")? == Some(QUARANTINED) && was.text("status")? != Some(QUARANTINED) => {
            QUARANTINED
        }
        Some(_) => return Ok(found),
    };
    found.extend(one(DEVICE, how, was)?);
    Ok(found)
}

/// A device that is there still and has another owner, or none.
fn disowned(was: &Side, is: Option<&Side>) -> Result<Vec<Revocation>> {
    let Some(is) = is else { return Ok(Vec::new()) };
    let before = was.text("owner_user_id")?;
    if before.is_none() || before == is.text("owner_user_id")? {
        return Ok(Vec::new());
    }
    let ids = was.ids(&["id", "owner_user_id"])?;
    let (what, how) = (OWNER, "disowned");
    Ok(vec![Revocation { what, how, ids }])
}

/// A device that is there still and has another key.
fn given_up(was: &Side, is: Option<&Side>) -> Result<Vec<Revocation>> {
    let Some(is) = is else { return Ok(Vec::new()) };
    if was.text("key_thumbprint")? == is.text("key_thumbprint")? {
        return Ok(Vec::new());
    }
    let ids = was.ids(&["id", "key_thumbprint"])?;
    let (what, how) = (KEY, "given_up");
    Ok(vec![Revocation { what, how, ids }])
}

/// A bypass that ended before its time. One that ended by its time has ended in every store.
fn bypassed(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let is_over = was.number("expires_at")?.is_none_or(|until| until <= now.as_ms());
    let how = match &change.is {
        _ if was.has("ended_at")? || is_over => return Ok(Vec::new()),
        None => "deleted",
        Some(is) if is.has("ended_at")? => "ended",
        Some(_) => return Ok(Vec::new()),
    };
    one(BYPASS, how, was)
}

fn bypass_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let ended = bypass::end_again(ctx, &BypassId::from_store(id.clone()));
    or_gone(ended.map(|done| {
        if done {
            Again::Done("ended; whoever needs it asks again")
        } else {
            Again::Already
        }
    }))
}

fn unassigned(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let before = was.text("service_account_id")?;
    let after = match &change.is {
        Some(is) => is.text("service_account_id")?,
        None => None,
    };
    if before.is_none() || before == after {
        return Ok(Vec::new());
    }
    let ids = was.ids(&["device_id", "service_account_id"])?;
    let (what, how) = (GATEWAY_IDENTITY, "unassigned");
    Ok(vec![Revocation { what, how, ids }])
}

fn ended(what: &'static str, named: &[&str], change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let Some(before) = works_until(was, now)? else {
        return Ok(Vec::new());
    };
    let after = match &change.is {
        Some(is) => works_until(is, now)?,
        None => None,
    };
    if after.is_some_and(|after| after >= before) {
        return Ok(Vec::new());
    }
    Ok(vec![Revocation {
        what,
        how: "revoked",
        ids: was.ids(named)?,
    }])
}

fn device_token(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    ended(DEVICE_TOKEN, &["id", "device_id"], change, now)
}

fn enrolment_token(_: &mut Tx<'_>, change: &RowChange, now: Timestamp) -> Result<Vec<Revocation>> {
    ended(ENROLMENT_TOKEN, &["id"], change, now)
}

fn or_gone(result: Result<Again>) -> Result<Again> {
    match result {
        Err(error) if error.code() == Code::NotFound => Ok(Again::Gone),
        result => result,
    }
}

fn device_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let id = DeviceId::from_store(id.clone());
    if how == QUARANTINED {
        let quarantined = verbs::quarantine_again(ctx, &id);
        return or_gone(quarantined.map(|done| {
            if done {
                Again::Done(QUARANTINED)
            } else {
                Again::Already
            }
        }));
    }
    let retired = verbs::retire(ctx, &id, None);
    or_gone(retired.map(|done| done.map_or(Again::Already, |_| Again::Done("retired"))))
}

fn owner_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id, user] = ids else { return Ok(unclear()) };
    let id = DeviceId::from_store(id.clone());
    ctx.target(&fences::DEVICE, id.as_str());
    let device = store::get(ctx, &id);
    or_gone(device.and_then(|mut device| {
        if device.owner.take_if(|owner| owner.user_id == *user).is_none() {
            return Ok(Again::Already);
        }
        device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
        store::describe(ctx, &device)?;
        ctx.change("/ownerUserId", user.as_str(), Value::Null);
        bypass::end_of(ctx, &device, bypass::OWNER_CHANGED)?;
        Ok(Again::Done("disowned"))
    }))
}

/// A device that went back to a key that it gave up is held apart: somebody else may have that key, and the machine has another one.
fn key_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id, key] = ids else { return Ok(unclear()) };
    let id = DeviceId::from_store(id.clone());
    ctx.target(&fences::DEVICE, id.as_str());
    let device = store::get(ctx, &id);
    or_gone(device.and_then(|device| {
        if device.key_thumbprint != *key || !matches!(device.status, Status::Active | Status::Pending) {
            return Ok(Again::Already);
        }
        verbs::quarantine_for_former_key(ctx, &id)?;
        Ok(Again::Done(QUARANTINED))
    }))
}

/// Nobody is known who could give what the owner can do: somebody names the owner again, unless it can do nothing.
fn gateway_identity_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id, account] = ids else { return Ok(unclear()) };
    let id = DeviceId::from_store(id.clone());
    ctx.target(&fences::DEVICE, id.as_str());
    if taken::assigned(ctx, &id)?.account.as_ref() != Some(account) {
        return Ok(Again::Already);
    }
    gateway_identity::unassign(ctx, &id, account, Reach::none())?;
    Ok(Again::Done("unassigned"))
}

fn device_token_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id, device] = ids else {
        return Ok(unclear());
    };
    let revoked = token_store::revoke_token(ctx, id, "revoked_again")?;
    if revoked {
        ctx.target(&fences::DEVICE, device.as_str());
        ctx.change("/revoked", false, true);
        ctx.invalidate_cached_credentials();
        return Ok(Again::Done("revoked"));
    }
    Ok(Again::Already)
}

fn enrolment_token_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let id = EnrolmentTokenId::from_store(id.clone());
    ctx.target(&fences::ENROLMENT_TOKEN, id.as_str());
    if enrolment::revoke(ctx, &id, Some("revoked_again"))? {
        ctx.change("/revoked", false, true);
        return Ok(Again::Done("revoked"));
    }
    Ok(Again::Already)
}
