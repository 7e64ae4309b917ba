//! From rows to readable sources: the bytes of chunks from the database, those of segments from their place.
//!
//! Keeps HS-7, HS-14.

use super::SegmentPlace;
use super::store;
use bytes::Bytes;
use provost_backtest::record;
use provost_history::{Chunk, Segment, Source, Storage, chunk};
use provost_kernel::{Kernel, Result};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: 64 MiB of chunks are kept in memory for one reader; what is beyond is read again when it is asked for.
const KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// Whether events are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// They wait in a row of the database.
    Chunk,
    /// They stand in a file.
    Segment,
}

/// A chunk or segment that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// Which.
    pub kind: SourceKind,
    /// Its id.
    pub id: String,
    /// The name under which its bytes lie: a chunk's id, or the name of a file.
    pub name: String,
    /// The version of the columns; of chunks alone.
    pub schema_version: u32,
    /// How many events it holds.
    pub rows: u32,
    /// The instant of the oldest event. Units: milliseconds since the Unix epoch.
    pub min_at: i64,
    /// The instant of the newest event.
    pub max_at: i64,
    /// How many bytes it has.
    pub size_bytes: i64,
    /// SHA-256 of a segment's content, in hexadecimal; empty of a chunk.
    pub digest: String,
}

/// A source that cannot be read (HS-7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its name.
    pub name: String,
    /// How many events it holds.
    pub rows: u32,
    /// The instant of the oldest event. Units: milliseconds since the Unix epoch.
    pub min_at: i64,
    /// The instant of the newest event.
    pub max_at: i64,
}

impl Unreadable {
    pub(super) fn of(row: &SourceRow) -> Self {
        Self {
            name: row.name.clone(),
            rows: row.rows,
            min_at: row.min_at,
            max_at: row.max_at,
        }
    }
}

/// Sources, ready to be read.
#[derive(Default)]
pub struct OpenSources {
    /// What can be read, in no order.
    pub sources: Vec<Source>,
    /// What cannot.
    pub unreadable: Vec<Unreadable>,
}

/// Opens the sources. It blocks: call it, and read from what it returns, off the storage threads and off async code.
///
/// Cost: one read of 64 KiB for each segment, and the chunks up to 64 MiB of them.
pub fn open(kernel: &Arc<Kernel>, org: &str, rows: Vec<SourceRow>) -> OpenSources {
    let mut opened = OpenSources::default();
    let mut bad = Vec::new();
    open_each(kernel, org, rows, &mut opened, &mut bad);
    for segment in bad {
        let kept = kept(kernel, org, &segment);
        let rows: u64 = kept.iter().map(|chunk| u64::from(chunk.rows)).sum();
        if rows < u64::from(segment.rows) {
            opened.unreadable.push(Unreadable {
                rows: u32::try_from(u64::from(segment.rows) - rows).unwrap_or(segment.rows),
                ..Unreadable::of(&segment)
            });
        }
        open_each(kernel, org, kept, &mut opened, &mut Vec::new());
    }
    opened
}

/// Returns the chunks of a segment that are still there (HS-14); none, if they cannot be asked for.
pub(super) fn kept(kernel: &Arc<Kernel>, org: &str, segment: &SourceRow) -> Vec<SourceRow> {
    let (of, id) = (org.to_owned(), segment.id.clone());
    let kept = kernel.read_blocking(move |tx| store::kept(tx, &of, &id));
    kept.unwrap_or_else(|error| {
        tracing::error!(
            organization = org,
            name = segment.name,
            "the rows of a segment cannot be read: {error}"
        );
        Vec::new()
    })
}

/// Opens sources; segments that cannot be opened are left in `bad`.
fn open_each(
    kernel: &Arc<Kernel>,
    org: &str,
    rows: Vec<SourceRow>,
    opened: &mut OpenSources,
    bad: &mut Vec<SourceRow>,
) {
    let schema = record::schema();
    let chunks = Arc::new(Chunks::of(kernel, org, &rows));
    let place = kernel.extra::<SegmentPlace>();
    for row in rows {
        let source = match row.kind {
            SourceKind::Chunk => chunks.open(&row).map(Source::Chunk),
            SourceKind::Segment => match place {
                Some(place) => Segment::open(place.0.clone(), &row.name, &schema).and_then(|segment| {
                    if segment.digest() == row.digest && segment.rows() == row.rows {
                        Ok(Source::Segment(segment))
                    } else {
                        Err(provost_history::Error::Corrupt(
                            "segment: not the one that was sealed",
                        ))
                    }
                }),
                None => Err(io::Error::from(io::ErrorKind::NotFound).into()),
            },
        };
        match source {
            Ok(source) => opened.sources.push(source),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(
                    organization = org,
                    name = row.name,
                    cause,
                    "history cannot be read: {error}"
                );
                metrics::counter!("provost_history_unreadable_total").increment(1);
                match row.kind {
                    SourceKind::Chunk => opened.unreadable.push(Unreadable::of(&row)),
                    SourceKind::Segment => bad.push(row),
                }
            }
        }
    }
}

/// The chunks of one organization, as objects of a storage.
struct Chunks {
    kernel: Arc<Kernel>,
    org: String,
    sizes: HashMap<String, i64>,
    kept: Mutex<HashMap<String, Bytes>>,
    keeps_all: bool,
}

impl Chunks {
    fn of(kernel: &Arc<Kernel>, org: &str, rows: &[SourceRow]) -> Self {
        let chunks = rows.iter().filter(|row| row.kind == SourceKind::Chunk);
        let sizes: HashMap<String, i64> = chunks.map(|row| (row.name.clone(), row.size_bytes)).collect();
        Self {
            keeps_all: sizes.values().sum::<i64>() <= KEPT_BYTES,
            kernel: kernel.clone(),
            org: org.to_owned(),
            sizes,
            kept: Mutex::default(),
        }
    }

    fn open(self: &Arc<Self>, row: &SourceRow) -> provost_history::Result<Chunk> {
        let summary = chunk::Summary {
            schema_version: row.schema_version,
            rows: row.rows,
            min_at: row.min_at,
            max_at: row.max_at,
        };
        if self.keeps_all && chunk::summary(&self.bytes(&row.name)?)? != summary {
            return Err(provost_history::Error::Corrupt("summary of a chunk"));
        }
        Ok(Chunk::new(self.clone(), &row.name, summary))
    }

    fn bytes(&self, name: &str) -> io::Result<Bytes> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = kept.get(name) {
            return Ok(bytes.clone());
        }
        let (org, id) = (self.org.clone(), name.to_owned());
        let found: Result<_> = self.kernel.read_blocking(move |tx| store::content(tx, &org, &id));
        let bytes: Bytes = found
            .map_err(io::Error::other)?
            .ok_or(io::ErrorKind::NotFound)?
            .into();
        if !self.keeps_all {
            // The one that was read last is read again at once, for its instants and then for its columns.
            kept.clear();
        }
        kept.insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

impl Storage for Chunks {
    fn size(&self, name: &str) -> io::Result<u64> {
        let size = self.sizes.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(size.unsigned_abs())
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        let bytes = self.bytes(name)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let to = from.checked_add(length).filter(|to| *to <= bytes.len());
        to.map(|to| bytes.slice(from..to))
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn put(
        &self,
        _: &str,
        _: &mut dyn FnMut(&mut (dyn io::Write + Send)) -> provost_history::Result<()>,
    ) -> provost_history::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
