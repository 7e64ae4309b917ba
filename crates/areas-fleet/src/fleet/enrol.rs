//! `POST …/devices/enrol`

use super::enrolment::EnrolmentToken;
use super::issue::{IssuedDeviceToken, issue};
use super::model::{
    Device, EnrolmentTokenId, KeyProtection, MOST_ANSWERS, MOST_OWNED, MOST_PENDING, PENDING_SECS, Platform,
    Status,
};
use super::view::DeviceView;
use super::{credentials, enrolment, fences, own_token, owners, store, taken, token_store};
use provost_areas_platform::settings;
use provost_kernel::auth::Origin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation, RateClass};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct EnrolDevice;

/// What a machine says of itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct EnrolBody {
    /// What people call the machine.
    name: Name,
    /// What it runs.
    platform: Platform,
    /// Its processor.
    arch: Name,
    /// Where it keeps its key.
    key_protection: KeyProtection,
}

/// The device, and its token once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Enrolled {
    device: DeviceView,
    token: IssuedDeviceToken,
    /// Why gateways take the device for nobody though it has an owner; absent where they take it for the owner once it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_for_nobody: Option<&'static str>,
}

impl Operation for EnrolDevice {
    const META: Meta = Meta::write("enrolHeadlessDevice", Method::Post, "/devices/enrol", "fleet")
        .rule(Access::OfKind {
            kind: credentials::ENROLMENT_TOKEN,
            parameter: "",
        })
        .example(r#"{"name": "anna-laptop", "platform": "linux", "arch": "x86_64", "keyProtection": "file"}"#)
        .rate(RateClass::Machine)
        .status(201)
        .also(200)
        .reveals_secret()
        .consents_in_headers()
        .errors(&[400, 401, 403])
        .says(
            "Enrol a device",
            "The bearer is an enrolment token, and the header DPoP proves the key that the device will be (RFC 9449, with \
             ath). A machine that lost the answer asks again with the same key until its first heartbeat, for a day, seven times at \
             most: it is the same device, with a new token. It gets the labels that the enrolment token names, and one that the token is \
             not for is refused. Where the settings say so, an admin approves each device before it is active.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = EnrolBody;
    type Output = Enrolled;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Enrolled> {
        let key = ctx.actor().key.clone();
        let key = key.ok_or_else(|| Error::internal("an enrolment without a proven key"))?;
        let by = EnrolmentTokenId::from_text(&ctx.actor().id);
        let device = match store::of_key(ctx, &key)? {
            Some(known) => {
                may_repeat(ctx, &known, &by)?;
                admit(ctx, &by, &input.body)?;
                ctx.target(&fences::DEVICE, known.id.as_str());
                token_store::revoke_tokens(ctx, &known.id, "superseded")?;
                ctx.status(200);
                known
            }
            None => make(ctx, &input.body, key, by)?,
        };
        let token = issue(ctx, &device, None)?;
        let taken_for_nobody = match &device.owner {
            Some(owner) => taken::unfit_owner(ctx, &owner.user_id, owner.reach)?,
            None => None,
        };
        Ok(Enrolled {
            taken_for_nobody,
            device: DeviceView::of_itself(ctx, device)?,
            token,
        })
    }
}

/// Says whether a machine may have another token for the key with which it enrolled.
///
/// Errors: `Conflict`.
fn may_repeat(ctx: &mut OperationContext<'_>, known: &Device, by: &EnrolmentTokenId) -> Result<()> {
    let refuse = |message: &'static str| Err(Error::new(Code::Conflict, message));
    // INVARIANT FL-3: the key of a retired device is dead for ever.
    if known.status == Status::Retired {
        return refuse("this key was a device's that is retired; make a new key and enrol again");
    }
    let is_open = known.status == Status::Pending
        && known.heartbeat.is_none()
        && known.held_at.is_none()
        && is_by_the_same(ctx, &known.enrolment_token_id, by)?
        && ctx.now() < known.created_at.plus_secs(PENDING_SECS);
    if is_open {
        // Each answer is a token that is kept for more than a year.
        if token_store::count_beside(ctx, &known.key_thumbprint)? < MOST_ANSWERS {
            return Ok(());
        }
        return refuse(
            "this enrolment was answered as often as it may be; an admin makes another enrolment token for a machine with a new key",
        );
    }
    refuse("this key is enrolled already; have the device retired, make a new key and enrol again")
}

/// Says whether two enrolment tokens are one, or both of one maker for a machine of their own: who signs in again because an answer was
/// lost brings another one.
fn is_by_the_same(
    ctx: &mut OperationContext<'_>,
    first: &EnrolmentTokenId,
    by: &EnrolmentTokenId,
) -> Result<bool> {
    if first == by {
        return Ok(true);
    }
    let (first, by) = (enrolment::get(ctx, first)?, enrolment::get(ctx, by)?);
    Ok(first.is_own && by.is_own && first.created_by == by.created_by)
}

/// Returns the enrolment token where the machine is one that it enrols. Each answer is asked anew, those to a machine that lost one among them.
///
/// Keeps FL-12.
///
/// Errors: `Conflict`.
fn admit(ctx: &mut OperationContext<'_>, by: &EnrolmentTokenId, body: &EnrolBody) -> Result<EnrolmentToken> {
    let by = enrolment::get(ctx, by)?;
    if by.is_own {
        // The settings may have changed since it was made.
        own_token::may_enrol(ctx)?;
    }
    let from = ctx.origin().and_then(Origin::certain_address);
    by.bounds.admit(body.platform, body.name.as_str(), from)?;
    Ok(by)
}

/// Makes the device of a key.
///
/// Errors: `Conflict` when the enrolment token has no use left.
fn make(
    ctx: &mut OperationContext<'_>,
    body: &EnrolBody,
    key_thumbprint: String,
    enrolment_token_id: EnrolmentTokenId,
) -> Result<Device> {
    // INVARIANT FL-6: a key that a device gave up is nobody's any more.
    if token_store::is_known_key(ctx, &key_thumbprint)? {
        let message = "this key was a device's that has another one now; make a new key and enrol again";
        return Err(Error::new(Code::Conflict, message));
    }
    let by = admit(ctx, &enrolment_token_id, body)?;
    if let Some(owner) = &by.owner {
        owners::must_be_there(ctx, owner)?;
    }
    let device = Device {
        id: ctx.new_id(),
        organization_id: ctx.org().to_owned(),
        seq: 0,
        name: body.name.as_str().to_owned(),
        status: Status::Pending,
        needs_approval: by.require_approval || settings::load(ctx)?.fleet.enrolment.require_approval,
        mode: by.mode,
        platform: body.platform,
        arch: body.arch.as_str().to_owned(),
        key_thumbprint,
        key_protection: body.key_protection,
        enrolment_token_id,
        created_at: ctx.now(),
        updated_at: ctx.now(),
        quarantined_at: None,
        retired_at: None,
        retire_reason: None,
        held_at: None,
        labels: by.labels,
        owner: by.owner,
        tamper: None,
        heartbeat: None,
        coverage: None,
        bypass: None,
    };
    ctx.target(&fences::DEVICE, device.id.as_str());
    if store::count_pending(ctx, &device.enrolment_token_id)? >= MOST_PENDING {
        let message = "as many devices as may wait for their first call or for approval enrolled by this token; an admin looks at them";
        return Err(Error::new(Code::Conflict, message));
    }
    // INVARIANT FL-4: the store counts, so that two machines at once do not share the last use.
    if !enrolment::use_up(ctx, &device.enrolment_token_id)? {
        let message = "this enrolment token has been used as often as it may be; ask for another one";
        return Err(Error::new(Code::Conflict, message));
    }
    store::insert(ctx, &device)?;
    if let Some(owner) = &device.owner {
        if owners::count(ctx, &owner.user_id)? >= MOST_OWNED {
            return Err(owners::too_many());
        }
        ctx.change("/ownerUserId", Value::Null, owner.user_id.as_str());
    }
    if !device.labels.is_empty() {
        ctx.change("/labels", Value::Null, json!(device.labels));
    }
    if device.owner.is_some() || !device.labels.is_empty() {
        store::describe(ctx, &device)?;
    }
    ctx.change("/name", Value::Null, device.name.as_str());
    ctx.change("/keyThumbprint", Value::Null, device.key_thumbprint.as_str());
    let enrolment = fences::Enrolment {
        device_id: device.id.clone(),
        enrolment_token_id: device.enrolment_token_id.clone(),
    };
    ctx.emit(&fences::ENROLLED, &enrolment);
    Ok(device)
}
