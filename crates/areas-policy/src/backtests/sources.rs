//! Where the events of a run lay when its work began: sources are sealed and merged while it goes on, and a checkpoint
//! names places in them.

use crate::history::{SourceKind, SourceRow};
use provost_kernel::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Sources, and from where the work on them goes on, compressed.
#[derive(Clone)]
pub struct PinnedSources {
    /// The sources.
    pub sources: Vec<SourceRow>,
    /// From where it goes on.
    pub checkpoint: Vec<u8>,
}

/// A source as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSource {
    is_segment: bool,
    id: String,
    name: String,
    schema_version: u32,
    rows: u32,
    min_at: i64,
    max_at: i64,
    size_bytes: i64,
    digest: String,
}

impl PinnedSources {
    /// Returns what a row holds.
    ///
    /// Errors: `Internal` when it holds something else.
    pub fn from_store(sources: &str, checkpoint: Vec<u8>) -> Result<Self> {
        let stored: Vec<StoredSource> = serde_json::from_str(sources).map_err(Error::internal)?;
        let sources = stored.into_iter().map(|stored| SourceRow {
            kind: if stored.is_segment {
                SourceKind::Segment
            } else {
                SourceKind::Chunk
            },
            id: stored.id,
            name: stored.name,
            schema_version: stored.schema_version,
            rows: stored.rows,
            min_at: stored.min_at,
            max_at: stored.max_at,
            size_bytes: stored.size_bytes,
            digest: stored.digest,
        });
        Ok(Self {
            sources: sources.collect(),
            checkpoint,
        })
    }
}

/// Returns the text that is stored.
pub fn to_store(sources: &[SourceRow]) -> Result<String> {
    let stored = sources.iter().map(|source| StoredSource {
        is_segment: source.kind == SourceKind::Segment,
        id: source.id.clone(),
        name: source.name.clone(),
        schema_version: source.schema_version,
        rows: source.rows,
        min_at: source.min_at,
        max_at: source.max_at,
        size_bytes: source.size_bytes,
        digest: source.digest.clone(),
    });
    serde_json::to_string(&stored.collect::<Vec<_>>()).map_err(Error::internal)
}
