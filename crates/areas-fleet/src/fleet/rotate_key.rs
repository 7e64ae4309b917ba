//! `POST …/devices/{deviceId}/key`
//!
//! ```text
//! the request is proven by the key that the device has, its body holds a proof of the one that it will have
//! ─► the device is the new key     the tokens beside the earlier one live on to their own ends
//! ─► whoever calls with the earlier key after that has the device quarantined: there are two who had it
//! ```
//!
//! Whoever stole key and token may come first and make a key of their own. Then the machine itself is the one that calls with the
//! earlier key: it goes on being managed, and a person who looks at the device decides. Nobody is shut out without a word.
//!
//! INVARIANT FL-6: a key that a device gave up is nobody's any more, and the first call with it that is not the same rotation again
//! quarantines the device while it is active, whatever is called. The same rotation with a proof of the new key that is late is refused.

use super::clones::TamperReason;
use super::command::{CommandKind, Outcome};
use super::issue::{IssuedDeviceToken, issue};
use super::model::{Device, MOST_ANSWERS, MOST_FORMER, Status};
use super::view::DevicePath;
use super::{command_result, command_store, credentials, fences, store, token_store, verbs};
use provost_kernel::error::{Code, Error};
use provost_kernel::expose::http::BASE;
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation, RateClass};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use provost_oauth::dpop;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The operation that says by itself what a use of a former key is.
pub const ROTATE: &str = "rotateHeadlessDeviceKey";

pub struct RotateDeviceKey;

/// LIMIT: characters of a proof: a key, a URL and a signature. Ours.
const MAX_PROOF: usize = 4096;

/// A proof as it was sent; what it says is judged with the request.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct ProofText(String);

impl TryFrom<String> for ProofText {
    type Error = &'static str;
    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        if text.chars().count() <= MAX_PROOF {
            return Ok(Self(text));
        }
        Err("must have at most 4096 characters")
    }
}

impl JsonSchema for ProofText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ProofText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MAX_PROOF })
    }
}

/// What a device says to have another key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct RotationBody {
    /// A proof of the new key for this request (RFC 9449, without `ath`): the key stands in it.
    new_key_proof: ProofText,
    /// How often the device called, as at a heartbeat: of two machines with one key the one that called more often goes on. It is
    /// the caller's word: it tells a copy that lags behind from the machine, and keeps off nobody who counts higher on purpose.
    counter: IntegerBetween<1, 9_007_199_254_740_991>,
}

/// The key that the device is now, and a token that serves beside it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Rotated {
    /// The thumbprint of the key that the device is.
    key_thumbprint: String,
    /// Absent where the device has another key than the one of the body: somebody made it who had the key of this request. The
    /// machine goes on with what it has, and the device is quarantined.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<IssuedDeviceToken>,
}

impl Operation for RotateDeviceKey {
    const META: Meta = Meta::write(ROTATE, Method::Post, "/devices/{deviceId}/key", "fleet")
        .rule(Access::OfKind {
            kind: credentials::DEVICE,
            parameter: "deviceId",
        })
        .rate(RateClass::Machine)
        .example(r#"{"newKeyProof": "eyJ0eXAiOiJkcG9wK2p3dCJ9.eyJqdGkiOiJhIn0.c2ln", "counter": 813}"#)
        .reveals_secret()
        .consents_in_headers()
        .errors(&[400, 401, 403])
        .says(
            "Give a device another key",
            "A device calls this for itself: the request proves the key that it has, the body the one that it will have. A machine \
             that lost the answer asks again with the same new key, and calls nothing else by the earlier one: any other call with \
             it quarantines the device. A refusal names the key that the device has (keyThumbprint). Of two machines with one key only \
             the one that called more often may.",
        );
    type Path = DevicePath;
    type Query = Empty;
    type Body = RotationBody;
    type Output = Rotated;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Rotated> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        note_own_use(ctx)?;
        let new = proven(ctx, input);
        let mut device = store::get(ctx, id)?;
        let own = ctx.actor().key.clone();
        let own = own.ok_or_else(|| Error::internal("a device without a proven key"))?;
        if own != device.key_thumbprint {
            // Whoever has such a proof has the new key: a machine whose clock moved while the answer was lost asks once more.
            let new = match new {
                Err(refused) if is_late_proof_of(ctx, input, &device.key_thumbprint) => {
                    return Err(naming(refused, &device));
                }
                new => new,
            };
            let is_again = new.is_ok_and(|new| new == device.key_thumbprint);
            return by_former_key(ctx, &mut device, is_again);
        }
        let new = new.and_then(|new| {
            may_rotate(ctx, &device, &new, input.body.counter.get())?;
            Ok(new)
        });
        let new = new.map_err(|refused| naming(refused, &device))?;
        ctx.change("/keyThumbprint", own, new.as_str());
        device.key_thumbprint = new;
        device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
        store::rotate(ctx, &device)?;
        // Who calls with the earlier key in the same batch was looked up before.
        ctx.invalidate_cached_credentials();
        let of = fences::OfDevice {
            device_id: device.id.clone(),
        };
        ctx.emit(&fences::KEY_ROTATED, &of);
        // Keeps FL-11.
        for mut command in command_store::waiting(ctx, &device.id)? {
            if command.kind == CommandKind::RotateKey {
                command_result::finish(ctx, &mut command, Outcome::Succeeded, None)?;
            }
        }
        Ok(Rotated {
            token: Some(issue(ctx, &device, None)?),
            key_thumbprint: device.key_thumbprint,
        })
    }
}

/// Notes that the token of the request is used, which is left to this operation.
fn note_own_use(ctx: &mut OperationContext<'_>) -> Result<()> {
    let token = ctx.actor().token.as_ref().map(|token| token.id.clone());
    let token = token.ok_or_else(|| Error::internal("a device without a token of its own"))?;
    ctx.erase_replay(&token)?;
    credentials::note_use(ctx, &token)
}

/// Answers who calls with a key that the device gave up. It is the machine that lost the answer to its own rotation while it has the
/// new key as well and nobody used that one; else there are two who had the earlier key.
///
/// Keeps FL-6: nothing here refuses what says that there are two, so that it stays noted.
///
/// Errors: `Conflict` where it asked as often as it may.
fn by_former_key(ctx: &mut OperationContext<'_>, device: &mut Device, is_again: bool) -> Result<Rotated> {
    let key_thumbprint = device.key_thumbprint.clone();
    let is_again = is_again && !token_store::is_used_key(ctx, &key_thumbprint)?;
    if !is_again {
        verbs::quarantine_for_former_key(ctx, &device.id)?;
        return Ok(Rotated {
            key_thumbprint,
            token: None,
        });
    }
    let answers = token_store::count_beside(ctx, &key_thumbprint)?;
    if answers >= MOST_ANSWERS {
        let message = "this rotation was answered as often as it may be; somebody looks at the device, or this machine enrols again";
        return Err(naming(Error::new(Code::Conflict, message), device));
    }
    // The last answer says so, because a refusal keeps nothing.
    if answers + 1 == MOST_ANSWERS {
        verbs::suspect(ctx, device, TamperReason::FormerKey)?;
    }
    token_store::revoke_unused(ctx, device)?;
    Ok(Rotated {
        key_thumbprint,
        token: Some(issue(ctx, device, None)?),
    })
}

/// Adds to a refusal which key the device has: a machine that lost an answer gives no key up that may be its only one.
fn naming(refused: Error, device: &Device) -> Error {
    refused.with("keyThumbprint", device.key_thumbprint.as_str())
}

/// Says whether the body proves a key for this request at another time.
fn is_late_proof_of(ctx: &OperationContext<'_>, input: &Input<RotateDeviceKey>, key: &str) -> bool {
    let proof = dpop::read(&input.body.new_key_proof.0, "POST", &url(ctx, input));
    proof.is_ok_and(|proof| proof.thumbprint == key)
}

fn url(ctx: &OperationContext<'_>, input: &Input<RotateDeviceKey>) -> String {
    let base = &ctx.services().settings.public_url;
    let path = BASE.replace("{organizationId}", ctx.org());
    format!("{base}{path}/devices/{}/key", input.path.device_id.as_str())
}

/// Returns the thumbprint of the key that the body proves.
///
/// Errors: `InvalidDefinition`.
fn proven(ctx: &OperationContext<'_>, input: &Input<RotateDeviceKey>) -> Result<String> {
    let (text, now) = (&input.body.new_key_proof.0, ctx.now().as_ms() / 1000);
    // Of the same kinds as at the enrolment.
    let proof = dpop::verify(text, "POST", &url(ctx, input), None, now);
    match proof {
        Ok(proof) if dpop::is_elliptic(text) => Ok(proof.thumbprint),
        _ => {
            let message = "is no proof of an Ed25519 or P-256 key for this request";
            Err(Error::unfit("/newKeyProof", message))
        }
    }
}

/// Says whether a device may have another key.
///
/// Errors: `Conflict`.
fn may_rotate(ctx: &mut OperationContext<'_>, device: &Device, new: &str, counter: i64) -> Result<()> {
    let refuse = |message: &'static str| Err(Error::new(Code::Conflict, message));
    if !matches!(device.status, Status::Active | Status::Quarantined) {
        let status = device.status.as_str();
        let message = format!("the device is {status}; one that is active has its key changed");
        return Err(Error::new(Code::Conflict, message).with("status", status));
    }
    let last = device.heartbeat.as_ref();
    if last.is_some_and(|last| counter <= last.counter) {
        return refuse(
            "another machine with this key called more often; somebody looks at the device, or this one enrols again",
        );
    }
    if new == device.key_thumbprint
        || token_store::is_known_key(ctx, new)?
        || store::of_key(ctx, new)?.is_some()
    {
        return refuse("this key is or was a device's; make another one");
    }
    if token_store::count_former(ctx, device)? >= MOST_FORMER {
        return refuse(
            "the device changed its key often, and tokens of earlier ones work still; try again in some days",
        );
    }
    Ok(())
}
