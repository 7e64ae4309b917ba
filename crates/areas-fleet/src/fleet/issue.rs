//! Tokens of devices, as they are given out: at the enrolment, for a token that grows old, and with a new key.

use super::credentials;
use super::model::{Device, DeviceTokenId, TOKEN_SECS};
use super::token_store;
use provost_areas_platform::settings;
use provost_kernel::context::SecretPlaceholder;
use provost_kernel::{OperationContext, Result, Timestamp, token};
use schemars::JsonSchema;
use serde::Serialize;

/// A new token of a device. The value stands here and nowhere else.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct IssuedDeviceToken {
    id: DeviceTokenId,
    token: SecretPlaceholder,
    expires_at: Timestamp,
}

impl IssuedDeviceToken {
    /// Returns the end of its life.
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

/// Gives a device a token that serves beside its key, as the successor of another one or of none; its value goes into the answer alone.
pub fn issue(
    ctx: &mut OperationContext<'_>,
    device: &Device,
    parent: Option<&str>,
) -> Result<IssuedDeviceToken> {
    let minted = token::mint(credentials::DEVICE_FORM, ctx.rng());
    let id: DeviceTokenId = ctx.new_id();
    let expires_at = ctx.now().plus_secs(TOKEN_SECS);
    token_store::insert_token(ctx, device, &id, &minted, expires_at, parent)?;
    let replay_secs = settings::load(ctx)?.tokens.secret_replay_seconds;
    Ok(IssuedDeviceToken {
        token: ctx.reveal(id.as_str(), minted.token, replay_secs),
        id,
        expires_at,
    })
}
