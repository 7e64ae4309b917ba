//! The line that a restore leaves beside the keys (D12.9): from then on the store is measured against it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_areas_platform::audit;
use provost_areas_platform::identity::Identity;
use provost_kernel::audit::hex;
use provost_kernel::keys::Keys;
use provost_kernel::merkle::{self, Hash, MemoryNodes};
use provost_kernel::{Error, Result, Timestamp};
use serde_json::json;

/// A chain at the end of the restore.
pub struct Chain {
    /// Whose chain.
    pub organization: String,
    /// The hashes of its entries, the first one first.
    pub hashes: Vec<Hash>,
}

/// Returns the line of one chain: a checkpoint like any other, whose signed note names the epoch in a line of
/// extension; `from` is the store of the backup.
pub fn line(
    chain: &Chain,
    store: &Identity,
    from: Option<&str>,
    now: Timestamp,
    keys: &Keys,
) -> Result<String> {
    let epoch = store.epoch;
    let size = chain.hashes.len() as u64;
    let leaves = chain.hashes.iter().map(|hash| merkle::leaf(hash)).collect();
    let root = merkle::root(size, &mut MemoryNodes(leaves))?;
    let origin = audit::origin(&chain.organization);
    let text = format!("{origin}\n{size}\n{}\nrestored {epoch}\n", STANDARD.encode(root));
    let (name, key_hash, signature) = keys.sign_checkpoint(text.as_bytes());
    let signature = STANDARD.encode([key_hash.to_be_bytes().as_slice(), &signature].concat());
    let mut line = json!({
        "event": "restored",
        "storeId": store.id,
        "storeEpoch": epoch,
        "organizationId": chain.organization,
        "size": size,
        "rootHash": hex(&root),
        "note": format!("{text}\n— {name} {signature}\n"),
        "time": now,
    });
    if let Some(from) = from {
        line["from"] = from.into();
    }
    serde_json::to_string(&line).map_err(Error::internal)
}
