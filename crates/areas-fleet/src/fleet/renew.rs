//! `POST …/devices/{deviceId}/token`

use super::clones::TamperReason;
use super::issue::{IssuedDeviceToken, issue};
use super::model::{DeviceId, MOST_LIVING, MOST_SUCCESSORS, RENEWAL_SECS, UNUSED_SECS};
use super::view::DevicePath;
use super::{credentials, fences, store, token_store, verbs};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation, RateClass};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub struct RenewDeviceToken;

/// The new token, and until when the earlier one serves.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Renewed {
    token: IssuedDeviceToken,
    /// Until when the earlier token serves: to its own end, so that no copy of the machine ends it by a renewal.
    earlier_until: Timestamp,
}

impl Operation for RenewDeviceToken {
    const META: Meta = Meta::write(
        "renewHeadlessDeviceToken",
        Method::Post,
        "/devices/{deviceId}/token",
        "fleet",
    )
    .rule(Access::OfKind {
        kind: credentials::DEVICE,
        parameter: "deviceId",
    })
    .rate(RateClass::Machine)
    .reveals_secret()
    .consents_in_headers()
    .errors(&[401, 403])
    .says(
        "Renew the token of a device",
        "A device calls this for itself, with a token that is fifteen days old and a proof of its key. The earlier token serves \
         to its own end, so that a machine that lost the answer asks again. Whoever renews a token whose successor was used has a \
         copy: that is said of the device. An expired token renews nothing: its machine enrols again.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = Renewed;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Renewed> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let presented = ctx.actor().token.clone();
        let presented = presented.ok_or_else(|| Error::internal("a device without a token of its own"))?;
        let issued_at = presented
            .issued_at
            .ok_or_else(|| Error::internal("a token of a device without an instant"))?;
        let renewable_from = issued_at.plus_secs(RENEWAL_SECS);
        if ctx.now() < renewable_from {
            let message = "the token is too young to be renewed; ask again when it is fifteen days old";
            let error = Error::new(Code::Conflict, message);
            return Err(error.with("renewableFrom", renewable_from.to_rfc3339()));
        }
        let mut device = store::get(ctx, id)?;
        if ctx.actor().key.as_deref() != Some(device.key_thumbprint.as_str()) {
            let message =
                "the device has another key since; somebody looks at it, or this machine enrols again";
            return Err(Error::new(Code::Conflict, message));
        }
        make_room(ctx, &presented.id)?;
        make_room_of_device(ctx, id, &presented.id)?;
        // INVARIANT FL-5: whoever is one machine renews no token whose successor it has used.
        if token_store::has_used_successor(ctx, &presented.id, ctx.now())? {
            verbs::suspect(ctx, &mut device, TamperReason::TokenForked)?;
        }
        let token = issue(ctx, &device, Some(&presented.id))?;
        ctx.change(
            "/tokenExpiresAt",
            serde_json::Value::Null,
            token.expires_at().to_rfc3339(),
        );
        let earlier_until = presented.expires_at;
        Ok(Renewed { token, earlier_until })
    }
}

/// Sees that a token may have one more successor. None is ended that somebody uses, and none that a machine may still have in its
/// hands: of two machines with one key none shuts the other one out (FL-5).
///
/// Errors: `Conflict`.
fn make_room(ctx: &mut OperationContext<'_>, token: &str) -> Result<()> {
    if token_store::count_successors(ctx, token)? < MOST_SUCCESSORS {
        return Ok(());
    }
    let until = ctx.now().plus_secs(-UNUSED_SECS);
    token_store::revoke_unused_successors(ctx, token, until)?;
    if token_store::count_successors(ctx, token)? < MOST_SUCCESSORS {
        return Ok(());
    }
    let message = "this token was renewed as often as it may be; it serves to its own end, and somebody looks at the device";
    Err(Error::new(Code::Conflict, message))
}

/// Sees that a device may have one more token. Each successor has successors, so that copies would make thousands in two months, and all
/// of them are revoked when the device is retired. Before that there are many renewals by tokens whose successors were used, and each of
/// them says that there are two (FL-5).
///
/// Errors: `Conflict`.
fn make_room_of_device(ctx: &mut OperationContext<'_>, device: &DeviceId, presented: &str) -> Result<()> {
    if token_store::count_living(ctx, device)? < MOST_LIVING {
        return Ok(());
    }
    let until = ctx.now().plus_secs(-UNUSED_SECS);
    token_store::revoke_unused_long(ctx, device, until, presented)?;
    if token_store::count_living(ctx, device)? < MOST_LIVING {
        return Ok(());
    }
    let message = "this device has 32 tokens that work; this one serves to its own end, and somebody looks at the device";
    Err(Error::new(Code::Conflict, message))
}
