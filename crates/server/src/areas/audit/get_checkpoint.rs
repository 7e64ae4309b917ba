//! `GET …/audit/checkpoint`

use super::model::{READERS, origin};
use super::store::{self, StoredCheckpoint};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_kernel::audit::hex;
use provost_kernel::checkpoint::{Checkpoint, parse_and_verify};
use provost_kernel::keys::Keys;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Cx, Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) struct GetCheckpoint;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditCheckpoint {
    /// The signed note, in the form of C2SP tlog-checkpoint.
    checkpoint: String,
    /// How many entries it covers.
    size: u64,
    /// The Merkle root over them (RFC 9162), in hexadecimal digits.
    root_hash: String,
    created_at: Timestamp,
    /// The keys that sign or signed checkpoints, the oldest first.
    public_keys: Vec<PublicKey>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublicKey {
    /// The key's name on the signature line.
    name: String,
    /// The Ed25519 public key in base64.
    key: String,
}

impl Operation for GetCheckpoint {
    const META: Meta = Meta::read("getHeadlessAuditCheckpoint", "/audit/checkpoint", "audit")
        .access("audit:read", READERS)
        .says(
            "Show the newest signed checkpoint of the audit log",
            "Keep checkpoints outside this installation: what they cover cannot be changed unnoticed.",
        )
        .command("audit", "checkpoint");
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = AuditCheckpoint;

    fn call(cx: &mut Cx<'_>, _: &Input<Self>) -> Result<AuditCheckpoint> {
        let (org, keys) = (cx.org(), &cx.kernel().keys);
        let stored = store::newest_checkpoint(cx, org)?.ok_or_else(|| Error::not_found("checkpoint"))?;
        let checkpoint = read(keys, org, &stored)?;
        let public_keys = keys.checkpoint_public_keys().into_iter();
        Ok(AuditCheckpoint {
            size: checkpoint.size,
            root_hash: hex(&checkpoint.root),
            created_at: stored.created_at,
            checkpoint: stored.note,
            public_keys: public_keys
                .map(|(name, key)| PublicKey {
                    name,
                    key: STANDARD.encode(key),
                })
                .collect(),
        })
    }
}

/// Returns what a stored note says.
///
/// Errors: `Internal` when it is not this chain's, or not signed by a key of this installation.
pub(super) fn read(keys: &Keys, organization: &str, stored: &StoredCheckpoint) -> Result<Checkpoint> {
    let checkpoint = parse_and_verify(&stored.note, &keys.checkpoint_public_keys())
        .map_err(|e| Error::internal(format!("a stored checkpoint of the chain {organization}: {e}")))?;
    let is_ours = checkpoint.origin == origin(organization)
        && u64::try_from(stored.size).is_ok_and(|size| size == checkpoint.size);
    if is_ours {
        return Ok(checkpoint);
    }
    Err(Error::internal(format!(
        "a stored checkpoint of the chain {organization} is about something else"
    )))
}
