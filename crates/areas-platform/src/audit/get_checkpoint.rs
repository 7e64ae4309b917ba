//! `GET …/audit/checkpoint`

use super::model::{READERS, origin};
use super::store::{self, StoredCheckpoint};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_kernel::audit::hex;
use provost_kernel::checkpoint::{Checkpoint, parse_and_verify};
use provost_kernel::keys::Keys;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Error, OperationContext, Result, Timestamp};
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
#[schemars(inline)]
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
        .command("audit", "checkpoint")
        .columns(&["name", "key"]);
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = AuditCheckpoint;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<AuditCheckpoint> {
        let (org, keys) = (ctx.org(), &ctx.services().keys);
        let stored = store::newest_checkpoint(ctx, org)?.ok_or_else(|| Error::not_found("checkpoint"))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::make_checkpoints;
    use crate::audit::testing::on_every_store;
    use provost_kernel::entropy::SystemEntropy;
    use serde_json::Value;

    const GET: &str = "getHeadlessAuditCheckpoint";

    fn verify(answer: &Value) -> Checkpoint {
        let keys = answer["publicKeys"].as_array().unwrap().iter().map(|key| {
            let bytes = STANDARD.decode(key["key"].as_str().unwrap()).unwrap();
            (
                key["name"].as_str().unwrap().to_owned(),
                bytes.try_into().unwrap(),
            )
        });
        let keys: Vec<(String, [u8; 32])> = keys.collect();
        parse_and_verify(answer["checkpoint"].as_str().unwrap(), &keys).unwrap()
    }

    #[test]
    fn the_newest_checkpoint_verifies_with_the_keys_beside_it() {
        on_every_store("audit_checkpoint", |world| {
            assert_eq!(world.get("admin", GET, &[], "").json()["code"], "not_found");
            world.grow(3);
            world.advance_secs(60);
            world.run(make_checkpoints(&world.kernel)).unwrap();
            let answer = world.get("operator", GET, &[], "").json();
            let signed = verify(&answer);
            assert_eq!(signed.origin, "provost.audit/acme");
            assert_eq!((signed.size, &answer["size"]), (3, &3.into()));
            assert_eq!(answer["rootHash"], hex(&signed.root));
            assert_eq!(answer["createdAt"], "2026-11-20T03:16:00.000Z");
            assert_eq!(
                world.get("stranger", GET, &[], "").status,
                404,
                "another chain has none"
            );
        });
    }

    #[test]
    fn a_checkpoint_outlives_the_rotation_of_its_key() {
        on_every_store("audit_checkpoint_key", |world| {
            world.grow(3);
            world.advance_secs(60);
            world.run(make_checkpoints(&world.kernel)).unwrap();
            Keys::rotate(&world.keys_dir, "checkpoint", Timestamp::EPOCH, &SystemEntropy).unwrap();
            world.restart();
            world
                .run(crate::audit::verify_start(
                    &world.kernel,
                    crate::audit::ForeignStorePolicy::Refuse,
                ))
                .unwrap();
            let old = world.get("admin", GET, &[], "").json();
            assert_eq!(verify(&old).size, 3);
            world.grow(1);
            world.advance_secs(60);
            world.run(make_checkpoints(&world.kernel)).unwrap();
            let new = world.get("admin", GET, &[], "").json();
            assert_eq!(verify(&new).size, 5);
            assert_eq!(new["publicKeys"].as_array().unwrap().len(), 2);
            assert!(new["checkpoint"].as_str().unwrap().contains("checkpoint-2"));
        });
    }
}
