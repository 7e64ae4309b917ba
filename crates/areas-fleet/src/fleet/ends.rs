//! What takes away from devices and their tokens, and how it is taken away again (EN-3).

use super::model::{DeviceId, EnrolmentTokenId, Status};
use super::{enrolment, fences, token_store, verbs};
use provost_areas_platform::ends::{unclear, works_until};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::error::Code;
use provost_kernel::{OperationContext, Result, Timestamp};

const DEVICE: &str = "device";
const DEVICE_TOKEN: &str = "device_token";
const ENROLMENT_TOKEN: &str = "enrolment_token";
const QUARANTINED: &str = "quarantined";

const SEEN: &[&str] = &["last_used_at", "last_used_ip"];

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("devices", device),
    Right::ending("device_tokens", device_token).loose(SEEN),
    Right::ending("enrolment_tokens", enrolment_token).loose(SEEN),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: DEVICE,
        again: device_again,
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
    let retired = Some(Status::Retired.as_str());
    if was.text("status")? == retired {
        return Ok(Vec::new());
    }
    let how = match &change.is {
        None => "deleted",
        Some(is) if is.text("status")? == retired => "retired",
        Some(is) if is.text("status")? == Some(QUARANTINED) && was.text("status")? != Some(QUARANTINED) => {
            QUARANTINED
        }
        Some(_) => return Ok(Vec::new()),
    };
    one(DEVICE, how, was)
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
