//! `POST …/devices/{deviceId}/token`

use super::issue::{IssuedDeviceToken, issue};
use super::model::{GRACE_SECS, MOST_LIVING, RENEWAL_SECS};
use super::view::DevicePath;
use super::{credentials, fences, store, token_store};
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
    /// Until when every earlier token of the device serves at the latest.
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
         for ten minutes more, so that a machine that lost the answer asks again. An expired token renews nothing: its machine \
         enrols again.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = Renewed;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Renewed> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let presented = ctx.actor().token.clone();
        let issued_at = presented.and_then(|token| token.issued_at);
        let issued_at = issued_at.ok_or_else(|| Error::internal("a device without a token of its own"))?;
        let renewable_from = issued_at.plus_secs(RENEWAL_SECS);
        if ctx.now() < renewable_from {
            let message = "the token is too young to be renewed; ask again when it is fifteen days old";
            let error = Error::new(Code::Conflict, message);
            return Err(error.with("renewableFrom", renewable_from.to_rfc3339()));
        }
        let device = store::get(ctx, id)?;
        let earlier_until = ctx.now().plus_secs(GRACE_SECS);
        // Those of a copy that renewed first and used its token go on: nobody loses a machine by a cloned image.
        token_store::revoke_unused(ctx, id, issued_at)?;
        if token_store::count_living(ctx, id)? >= MOST_LIVING {
            let message = "the device has as many tokens as it may have; ask again in ten minutes";
            return Err(Error::new(Code::Conflict, message));
        }
        token_store::shorten_tokens(ctx, id, issued_at, earlier_until)?;
        let token = issue(ctx, &device)?;
        ctx.change(
            "/tokenExpiresAt",
            serde_json::Value::Null,
            token.expires_at().to_rfc3339(),
        );
        Ok(Renewed { token, earlier_until })
    }
}
