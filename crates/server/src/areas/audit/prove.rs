//! `GET …/audit/proof`

use super::model::{AuditEntryId, Place, READERS};
use super::store;
use super::tree::StoredTree;
use super::{get, get_checkpoint};
use provost_kernel::audit::hex;
use provost_kernel::merkle::{self, Hash};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Code, Cx, Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct Prove;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ProofQuery {
    /// The entry.
    entry_id: AuditEntryId,
    /// The size of the checkpoint to prove against; the newest when absent.
    checkpoint: Option<Place<1>>,
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

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<AuditProof> {
        let (org, keys) = (cx.org(), &cx.kernel().keys);
        let (record, _) = get::find(cx, &input.query.entry_id)?;
        let stored = match input.query.checkpoint {
            Some(size) => store::checkpoint_at(cx, org, size.get())?,
            None => store::newest_checkpoint(cx, org)?,
        };
        let stored = stored.ok_or_else(|| Error::not_found("checkpoint"))?;
        if record.seq > stored.size {
            let message = "the entry is newer than the checkpoint; ask again when there is a newer one";
            return Err(Error::new(Code::Conflict, message));
        }
        let checkpoint = get_checkpoint::read(keys, org, &stored)?;
        let index = u64::try_from(record.seq - 1).map_err(Error::internal)?;
        let mut tree = StoredTree::new(cx, org, checkpoint.size);
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
