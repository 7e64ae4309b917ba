//! `GET …/audit/proof`

use super::model::{AuditEntryId, ChainRange, READERS};
use super::store;
use super::tree::StoredTree;
use super::{get, get_checkpoint};
use provost_kernel::audit::hex;
use provost_kernel::merkle::{self, Hash};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Code, Error, OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct Prove;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ProofQuery {
    /// The entry.
    entry_id: AuditEntryId,
    /// The size of the checkpoint to prove against; the newest when absent.
    checkpoint: Option<ChainRange<1>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditProof {
    entry_id: String,
    /// The entry's place in the tree, counted from 0.
    leaf_index: u64,
    /// SHA-256 of a zero byte and the entry's hash.
    leaf_hash: String,
    /// How many entries the checkpoint covers.
    tree_size: u64,
    root_hash: String,
    /// The inclusion path of RFC 9162, from the leaf up.
    hashes: Vec<String>,
    /// The signed note that states size and root.
    checkpoint: String,
}

impl Operation for Prove {
    const META: Meta = Meta::read("getHeadlessAuditProof", "/audit/proof", "audit")
        .access("audit:read", READERS)
        .says(
            "Prove that a signed checkpoint covers an audit entry",
            "The proof is checked as RFC 9162 section 2.1.3.2 says. An entry that is newer than the checkpoint \
             is answered with a conflict; a checkpoint follows within a minute.",
        )
        .command("audit", "proof");
    type Path = Empty;
    type Query = ProofQuery;
    type Body = Empty;
    type Output = AuditProof;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AuditProof> {
        let (org, keys) = (ctx.org(), &ctx.services().keys);
        let record = get::find(ctx, &input.query.entry_id)?;
        let stored = match input.query.checkpoint {
            Some(size) => store::checkpoint_at(ctx, org, size.get())?,
            None => store::newest_checkpoint(ctx, org)?,
        };
        let stored = stored.ok_or_else(|| Error::not_found("checkpoint"))?;
        if record.seq > stored.size {
            let message = "the entry is newer than the checkpoint; ask again when there is a newer one";
            return Err(Error::new(Code::Conflict, message));
        }
        let checkpoint = get_checkpoint::read(keys, org, &stored)?;
        let index = u64::try_from(record.seq - 1).map_err(Error::internal)?;
        let mut tree = StoredTree::new(ctx, org, checkpoint.size);
        let path = merkle::inclusion(index, checkpoint.size, &mut tree)?;
        let leaf = merkle::leaf(&record.hash);
        // A proof that does not hold would accuse the caller's arithmetic; the store is what is wrong.
        if !merkle::verify_inclusion(&leaf, index, checkpoint.size, &path, &checkpoint.root) {
            return Err(Error::internal(format!(
                "the chain {org} disagrees with its checkpoint"
            )));
        }
        Ok(AuditProof {
            entry_id: input.query.entry_id.to_string(),
            leaf_index: index,
            leaf_hash: hex(&leaf),
            tree_size: checkpoint.size,
            root_hash: hex(&checkpoint.root),
            hashes: path.iter().map(|hash: &Hash| hex(hash)).collect(),
            checkpoint: stored.note,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::audit::make_checkpoints;
    use crate::audit::testing::{START, World, on_every_store};
    use provost_kernel::audit::entry_id;
    use provost_kernel::checkpoint::parse_and_verify;
    use provost_kernel::merkle::{self, Hash};
    use serde_json::Value;

    const PROVE: &str = "getHeadlessAuditProof";

    fn hash(text: &Value) -> Hash {
        let text = text.as_str().unwrap();
        let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(byte)
    }

    fn prove(world: &World, line: &str, size: u64) {
        let entry: Value = serde_json::from_str(line).unwrap();
        let query = format!("entryId={}&checkpoint={size}", entry["id"].as_str().unwrap());
        let proof = world.get("auditor", PROVE, &[], &query).json();
        assert_eq!(proof["entryId"], entry["id"], "{proof}");
        let leaf = merkle::leaf(&hash(&entry["hash"]));
        assert_eq!(hash(&proof["leafHash"]), leaf);
        let keys = world.kernel.keys.checkpoint_public_keys();
        let signed = parse_and_verify(proof["checkpoint"].as_str().unwrap(), &keys).unwrap();
        assert_eq!((signed.size, proof["treeSize"].as_u64()), (size, Some(size)));
        assert_eq!(signed.root, hash(&proof["rootHash"]));
        let index = proof["leafIndex"].as_u64().unwrap();
        assert_eq!(Some(index + 1), entry["seq"].as_u64());
        let path: Vec<Hash> = proof["hashes"].as_array().unwrap().iter().map(hash).collect();
        assert!(
            merkle::verify_inclusion(&leaf, index, size, &path, &signed.root),
            "{index} in {size}"
        );
    }

    #[test]
    fn every_entry_is_proved_against_every_checkpoint_that_covers_it() {
        on_every_store("audit_proof", |world| {
            let mut sizes = Vec::new();
            for count in [1, 2, 12, 200, 41, 256] {
                world.grow(count);
                world.advance_secs(60);
                assert_eq!(world.run(make_checkpoints(&world.kernel)).unwrap(), 1);
                let newest = world
                    .get("operator", "getHeadlessAuditCheckpoint", &[], "")
                    .json();
                sizes.push(newest["size"].as_u64().unwrap());
            }
            assert_eq!(
                sizes,
                [1, 4, 17, 218, 260, 517],
                "each covers the entry of the one before"
            );
            let lines = world.exported();
            for size in sizes {
                for line in &lines[..usize::try_from(size).unwrap()] {
                    prove(world, line, size);
                }
            }
        });
    }

    #[test]
    fn what_no_checkpoint_covers_is_not_proved() {
        on_every_store("audit_proof_refused", |world| {
            world.grow(2);
            let ask = |seq: i64, more: &str| {
                let query = format!("entryId={}{more}", entry_id(START, seq));
                let reply = world.get("admin", PROVE, &[], &query);
                (
                    reply.status,
                    reply.json()["code"]
                        .as_str()
                        .map(str::to_owned)
                        .unwrap_or_default(),
                )
            };
            assert_eq!(ask(1, ""), (404, "not_found".into()), "no checkpoint yet");
            world.advance_secs(60);
            world.run(make_checkpoints(&world.kernel)).unwrap();
            assert_eq!(ask(1, "").0, 200);
            assert_eq!(ask(1, "&checkpoint=1"), (404, "not_found".into()));
            assert_eq!(ask(1, "&checkpoint=0").0, 400);
            assert_eq!(ask(9, ""), (404, "not_found".into()));
            let own = entry_id(START.plus_secs(60), 3);
            let reply = world.get("admin", PROVE, &[], &format!("entryId={own}"));
            assert_eq!(
                reply.json()["code"],
                "conflict",
                "the checkpoint's own entry is newer than it"
            );
            assert_eq!(world.get("admin", PROVE, &[], "").status, 400);
        });
    }
}
