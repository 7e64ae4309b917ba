//! What other areas ask of a device.

use super::model::{DeviceId, Status};
use super::view::DeviceView;
use super::{store, taken};
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::json::canonical;
use provost_kernel::keys::MacPurpose;
use provost_kernel::{OperationContext, Result, Timestamp, hex::hex};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The hash of whom gateways may take a device for, under a key of the installation.
const BOUND: MacPurpose = MacPurpose::Own("provost/mac/device-owners/v1");
/// Members of a device that whoever says yes to an act on it is shown; where one of them is another, so is the act.
const SHOWN: [&str; 9] = [
    "name",
    "status",
    "needsApproval",
    "tamper",
    "ownerUserId",
    "platform",
    "keyThumbprint",
    "quarantinedAt",
    "heldAt",
];

/// Whether a device may say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was not heard of yet, or an admin has yet to approve it.
    Waits,
    /// It is active, or quarantined: what it says is kept and trusted no more than before.
    Works,
    /// It is retired, or a restore holds it back.
    Ended,
}

/// Returns whether a device may say something.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn standing(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Standing> {
    let device = store::get(ctx, id)?;
    Ok(match device.status {
        _ if device.held_at.is_some() => Standing::Ended,
        Status::Retired => Standing::Ended,
        Status::Pending => Standing::Waits,
        Status::Active | Status::Quarantined => Standing::Works,
    })
}

/// Returns what somebody who says yes to an act on a device says yes to, as the caller may see it: behind an id is a machine of this owner in
/// this state.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn shown_to_voters(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Value> {
    let device = store::get(ctx, id)?;
    let assigned = taken::assigned(ctx, id)?;
    // What the caller may not see is bound all the same: a digest under a key of the installation, from which nobody guesses an owner.
    let owner = device.owner.as_ref();
    let bound = json!([
        ctx.org(),
        id.as_str(),
        owner.map(|owner| owner.user_id.as_str()),
        owner.map(|owner| owner.reach.words()),
        assigned.account,
        assigned.reach.words(),
    ]);
    let bound = hex(&ctx.services().keys.mac(BOUND, &[canonical(&bound).as_bytes()]));
    let view = serde_json::to_value(DeviceView::seen(ctx, device)?).map_err(Error::internal)?;
    let mut shown: Map<String, Value> = SHOWN
        .map(|name| (name.to_owned(), view[name].clone()))
        .into_iter()
        .collect();
    shown.insert("gatewayAccountId".to_owned(), json!(assigned.account));
    shown.insert("owners".to_owned(), bound.into());
    Ok(Value::Object(shown))
}

/// Returns who gets something by a device that acts, or is taken for an account: whose machine it is. What the caller may see of them makes no
/// difference.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn owner(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Vec<String>> {
    let device = store::get(ctx, id)?;
    Ok(device.owner.into_iter().map(|owner| owner.user_id).collect())
}

/// Returns who gets something by a device that acts again, or for the first time: whose machine it is, and the account that gateways take it for.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn who_acts(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Vec<String>> {
    let mut ids = owner(ctx, id)?;
    ids.extend(taken::assigned(ctx, id)?.account);
    Ok(ids)
}

/// Says whether a device is quarantined.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn is_quarantined(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<bool> {
    Ok(store::get(ctx, id)?.status == Status::Quarantined)
}

/// Returns the ids of the devices that are quarantined.
pub fn quarantined(tx: &mut Tx<'_>, org: &str) -> Result<BTreeSet<String>> {
    store::quarantined(tx, org)
}

/// Of whom a device may speak, and since when.
#[derive(Clone, Debug)]
pub struct People {
    /// Whose machine it is: a user of the directory, suspended or not. Nobody, where the user can do more than whoever named the owner
    /// could give.
    pub owner: Option<String>,
    /// The account that gateways take it for.
    pub account: Option<String>,
    /// When it enrolled.
    pub enrolled_at: Timestamp,
}

/// Returns of whom a device may speak: what it may know of them, and what it says of them, goes no further than the word of whoever
/// named them.
///
/// Keeps FL-7. Errors: `NotFound` for an unknown and another organization's device alike.
pub fn people(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<People> {
    let device = store::get(ctx, id)?;
    let assignment = taken::assigned(ctx, id)?;
    let account = match assignment.account {
        Some(account) if taken::account_is_within(ctx, &account, assignment.reach)? => Some(account),
        _ => None,
    };
    let owner = match device.owner {
        Some(owner) if taken::owner_is_within(ctx, &owner.user_id, owner.reach)? => Some(owner.user_id),
        _ => None,
    };
    Ok(People {
        owner,
        account,
        enrolled_at: device.created_at,
    })
}
