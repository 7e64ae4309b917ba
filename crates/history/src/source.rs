//! Where recorded events lie, sealed or not: a plan treats both alike.

use crate::batch::Batch;
use crate::chunk;
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::segment::Segment;
use crate::storage::Storage;
use std::sync::Arc;

/// Where recorded events lie.
#[derive(Clone)]
pub enum Source {
    /// Sealed events.
    Segment(Segment),
    /// Events that are not sealed yet.
    Chunk(Chunk),
}

/// A stored chunk.
#[derive(Clone)]
pub struct Chunk {
    storage: Arc<dyn Storage>,
    name: Arc<str>,
    summary: chunk::Summary,
}

impl Chunk {
    /// Returns the chunk with this name, whose summary the database has.
    ///
    /// The summary is compared with the chunk whenever it is read.
    pub fn new(storage: Arc<dyn Storage>, name: &str, summary: chunk::Summary) -> Self {
        Self {
            storage,
            name: name.into(),
            summary,
        }
    }

    /// Returns all events of the chunk.
    pub(crate) fn batch(&self, schema: &Schema) -> Result<Batch> {
        let size = usize::try_from(self.storage.size(&self.name)?).map_err(|_| Error::Corrupt("length"))?;
        let bytes = self.storage.read(&self.name, 0, size)?;
        if chunk::summary(&bytes)? != self.summary {
            return Err(Error::Corrupt("summary of a chunk"));
        }
        chunk::decode(schema, &bytes)
    }
}

impl Source {
    /// Returns the name under which it is stored.
    pub fn name(&self) -> &str {
        match self {
            Self::Segment(segment) => segment.name(),
            Self::Chunk(chunk) => &chunk.name,
        }
    }

    /// Returns how many events it holds.
    pub fn rows(&self) -> u32 {
        match self {
            Self::Segment(segment) => segment.rows(),
            Self::Chunk(chunk) => chunk.summary.rows,
        }
    }

    /// Returns the instants of the oldest and the newest event. Units: milliseconds since the Unix epoch.
    pub fn span(&self) -> (i64, i64) {
        match self {
            Self::Segment(segment) => segment.span(),
            Self::Chunk(chunk) => (chunk.summary.min_at, chunk.summary.max_at),
        }
    }

    /// Returns for each row group the number of its rows and the instants of the first and the last.
    pub(crate) fn groups(&self) -> Vec<(usize, (i64, i64))> {
        match self {
            Self::Segment(segment) => segment
                .row_groups()
                .iter()
                .map(|group| (group.rows as usize, (group.min_at, group.max_at)))
                .collect(),
            Self::Chunk(chunk) => vec![(chunk.summary.rows as usize, self.span())],
        }
    }
}
