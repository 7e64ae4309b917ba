//! Reading a segment: its header once, then the columns of one row group at a time.

use super::{ByteRange, FORMAT, HEADER_KEY, Header, RowGroup, SEAL, behaviour, pages};
use crate::batch::{Batch, Column};
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::storage::Storage;
use crate::texts::Texts;
use crate::wire;
use aws_lc_rs::digest;
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::ops::Range;
use std::sync::Arc;

/// How much of the end of a file is read at once: footers are mostly shorter.
const TAIL_BYTES: usize = 64 * 1024;
// LIMIT: 1 GiB of unpacked behaviours; the sealer's limit on texts keeps a table far below.
const TABLE_BYTES: usize = 1 << 30;

/// An opened segment.
#[derive(Clone)]
pub struct Segment {
    storage: Arc<dyn Storage>,
    name: Arc<str>,
    header: Arc<Header>,
    footer: Arc<ParquetMetaData>,
    /// The end of what the digest covers.
    seal_at: u64,
    /// For each column of the reader's schema its place in the file.
    places: Arc<[Option<usize>]>,
}

/// The distinct behaviours of a segment, in columns of the reader's schema.
pub(crate) struct Behaviours {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("name", &self.name)
            .field("rows", &self.header.rows)
            .finish_non_exhaustive()
    }
}

impl Segment {
    /// Opens a segment to read it with this schema.
    ///
    /// Errors: `Corrupt` when the end of the file is damaged, `Newer` when a later schema or program wrote it,
    /// `Storage` when it cannot be read.
    /// Cost: one read of 64 KiB, two where the footer is longer.
    pub fn open(storage: Arc<dyn Storage>, name: &str, schema: &Schema) -> Result<Self> {
        let (footer, footer_at) = footer(storage.as_ref(), name)?;
        let footer = ParquetMetaDataReader::decode_metadata(&footer).map_err(|_| Error::Corrupt("footer"))?;
        let pairs = footer.file_metadata().key_value_metadata();
        let text = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == HEADER_KEY));
        let text = text
            .and_then(|pair| pair.value.as_deref())
            .ok_or(Error::Corrupt("header"))?;
        let header: Header = serde_json::from_str(text).map_err(|_| Error::Corrupt("header"))?;
        if header.format != FORMAT {
            return Err(Error::Newer);
        }
        check(&header, &footer)?;
        if !schema.reads(&header.schema) {
            let is_later = header.schema.version() > schema.version();
            return Err(if is_later {
                Error::Newer
            } else {
                Error::Corrupt("schema")
            });
        }
        let columns = schema.columns().iter();
        let places = columns
            .map(|column| header.schema.position(&column.name).map(|index| index + 2))
            .collect();
        Ok(Self {
            storage,
            name: name.into(),
            header: Arc::new(header),
            footer: Arc::new(footer),
            seal_at: footer_at - 8,
            places,
        })
    }

    /// Returns the name under which it is stored.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many events it holds.
    pub fn rows(&self) -> u32 {
        self.header.rows
    }

    /// Returns the instants of the oldest and the newest event. Units: milliseconds since the Unix epoch.
    pub fn span(&self) -> (i64, i64) {
        (self.header.min_at, self.header.max_at)
    }

    /// Returns the SHA-256 of the content as the segment states it, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.header.digest
    }

    /// Reads the whole content and compares it with the digest.
    ///
    /// Errors: `Corrupt` when they differ, `Storage` when it cannot be read.
    pub fn verify(&self) -> Result<()> {
        let mut context = digest::Context::new(&digest::SHA256);
        let mut offset = 0;
        while offset < self.seal_at {
            let length = usize::try_from((self.seal_at - offset).min(1 << 20)).unwrap_or(1 << 20);
            context.update(&self.storage.read(&self.name, offset, length)?);
            offset += length as u64;
        }
        if super::seal::hex(context.finish().as_ref()) == self.header.digest {
            Ok(())
        } else {
            Err(Error::Corrupt("digest of a segment"))
        }
    }

    pub(crate) fn row_groups(&self) -> &[RowGroup] {
        &self.header.row_groups
    }

    /// Returns the instants of the events of a row group, ascending.
    pub(crate) fn instants(&self, group: usize) -> Result<Vec<i64>> {
        let at = pages::instants(self.slice(group, 1)?, self.meta(group, 1), self.group_rows(group))?;
        if at.is_sorted() {
            Ok(at)
        } else {
            Err(Error::Corrupt("instants"))
        }
    }

    /// Returns the ids of some events of a row group, by their rows, which ascend.
    pub(crate) fn ids(&self, group: usize, rows: impl Iterator<Item = usize>) -> Result<Texts> {
        let meta = self.meta(group, 0);
        pages::ids(self.slice(group, 0)?, meta, self.group_rows(group), rows)
    }

    /// Returns the column of the reader's schema for all events of a row group.
    pub(crate) fn column(&self, group: usize, index: usize, schema: &Schema) -> Result<Column> {
        let kind = schema.columns()[index].kind;
        let rows = self.group_rows(group);
        match self.places[index] {
            Some(place) => pages::column(self.slice(group, place)?, self.meta(group, place), rows, kind),
            None => Ok(Column::missing(kind, rows)),
        }
    }

    /// Returns those events of a row group that stand in this range of it.
    pub(crate) fn batch(
        &self,
        group: usize,
        range: &Range<usize>,
        columns: &[usize],
        schema: &Schema,
        with_ids: bool,
    ) -> Result<Batch> {
        let mut at = self.instants(group)?;
        at.truncate(range.end);
        at.drain(..range.start);
        let ids = if with_ids {
            self.ids(group, range.clone())?
        } else {
            Texts::default()
        };
        let mut batch = Batch {
            at,
            ids,
            columns: Vec::with_capacity(columns.len()),
        };
        for index in columns {
            let mut column = self.column(group, *index, schema)?;
            column.trim(range);
            batch.columns.push(column);
        }
        Ok(batch)
    }

    /// Returns the behaviours in these columns, if the segment has a table of them that knows every one.
    pub(crate) fn behaviours(&self, columns: &[usize], schema: &Schema) -> Result<Option<Behaviours>> {
        let Some(table) = &self.header.behaviours else {
            return Ok(None);
        };
        let stored: Vec<_> = self
            .header
            .schema
            .columns()
            .iter()
            .filter(|column| column.behaviour)
            .collect();
        let is_known = |index: &usize| {
            self.places[*index].is_none()
                || stored
                    .iter()
                    .any(|spec| spec.name == schema.columns()[*index].name)
        };
        if !columns.iter().all(is_known) {
            return Ok(None);
        }
        let place_of = |index: &usize| {
            let name = &schema.columns()[*index].name;
            stored.iter().position(|stored| stored.name == *name)
        };
        let places: Vec<Option<usize>> = columns.iter().map(place_of).collect();
        let packed = self.read(table.piece)?;
        let raw = wire::unpack(&packed, table.raw_bytes as usize, TABLE_BYTES)?;
        let rows = table.rows as usize;
        let kinds = stored.iter().map(|spec| spec.kind);
        let all = behaviour::decode(&raw, kinds, rows, |place| places.contains(&Some(place)))?;
        let columns = columns.iter().zip(&places).map(|(index, place)| {
            let known = place.and_then(|place| all[place].clone());
            known.unwrap_or_else(|| Column::missing(schema.columns()[*index].kind, rows))
        });
        Ok(Some(Behaviours {
            columns: columns.collect(),
            rows,
        }))
    }

    /// Returns for a row group a dictionary of behaviours and for each event its place in it, from 1 on.
    pub(crate) fn behaviour_codes(&self, group: usize) -> Result<(Vec<u32>, Vec<u32>)> {
        let place = self.header.schema.columns().len() + 2;
        let rows = self.header.behaviours.as_ref().map_or(0, |table| table.rows);
        let (dictionary, codes) = pages::integers(
            self.slice(group, place)?,
            self.meta(group, place),
            self.group_rows(group),
        )?;
        if dictionary.iter().any(|code| *code >= rows) {
            return Err(Error::Corrupt("behaviour"));
        }
        Ok((dictionary, codes))
    }

    fn group_rows(&self, group: usize) -> usize {
        self.header.row_groups[group].rows as usize
    }

    fn meta(&self, group: usize, column: usize) -> &parquet::file::metadata::ColumnChunkMetaData {
        self.footer.row_group(group).column(column)
    }

    fn slice(&self, group: usize, column: usize) -> Result<pages::Slice> {
        let piece = self.header.row_groups[group].columns[column];
        Ok(pages::Slice {
            base: piece.offset,
            bytes: self.read(piece)?,
        })
    }

    /// Returns the bytes of a part of the file.
    // INVARIANT HI-4: every part is read here, and here its checksum is verified.
    fn read(&self, piece: ByteRange) -> Result<Bytes> {
        let bytes = self
            .storage
            .read(&self.name, piece.offset, piece.length as usize)?;
        if crc32fast::hash(&bytes) == piece.crc {
            Ok(bytes)
        } else {
            Err(Error::Corrupt("checksum of a segment"))
        }
    }
}

/// Returns the footer, whose seal was verified, and where it begins.
fn footer(storage: &dyn Storage, name: &str) -> Result<(Bytes, u64)> {
    let size = storage.size(name)?;
    let tail_bytes = usize::try_from(size).map_or(TAIL_BYTES, |size| size.min(TAIL_BYTES));
    let tail = storage.read(name, size - tail_bytes as u64, tail_bytes)?;
    let Some((rest, end)) = tail.split_last_chunk::<8>() else {
        return Err(Error::Corrupt("end of a segment"));
    };
    let (length, magic) = end.split_at(4);
    if magic != b"PAR1" {
        return Err(Error::Corrupt("end of a segment"));
    }
    let length = length
        .try_into()
        .map(u32::from_le_bytes)
        .map_err(|_| Error::Corrupt("end of a segment"))? as usize;
    let whole_bytes = length + 16;
    if whole_bytes as u64 > size {
        return Err(Error::Corrupt("end of a segment"));
    }
    let whole = if whole_bytes <= rest.len() + 8 {
        tail.slice(tail.len() - whole_bytes..)
    } else {
        storage.read(name, size - whole_bytes as u64, whole_bytes)?
    };
    let (seal, covered) = whole.split_at(8);
    if seal[..4] != *SEAL || seal[4..] != crc32fast::hash(covered).to_le_bytes() {
        return Err(Error::Corrupt("seal of a segment"));
    }
    Ok((whole.slice(8..whole.len() - 8), size - length as u64 - 8))
}

/// Refuses a header that contradicts itself or the footer.
fn check(header: &Header, footer: &ParquetMetaData) -> Result<()> {
    header.schema.check().map_err(|_| Error::Corrupt("schema"))?;
    let columns = header.schema.columns().len() + 2 + usize::from(header.behaviours.is_some());
    let groups = &header.row_groups;
    let agrees = footer.num_row_groups() == groups.len()
        && groups.iter().zip(footer.row_groups()).all(|(ours, theirs)| {
            ours.rows > 0
                && ours.columns.len() == columns
                && theirs.num_columns() == columns
                && theirs.num_rows() == i64::from(ours.rows)
                && ours.min_at <= ours.max_at
                && ours
                    .columns
                    .iter()
                    .zip(theirs.columns())
                    .all(|(piece, meta)| meta.byte_range().0 == piece.offset)
        })
        && groups.iter().map(|group| u64::from(group.rows)).sum::<u64>() == u64::from(header.rows)
        && groups.is_sorted_by(|older, newer| older.max_at <= newer.min_at);
    if agrees {
        Ok(())
    } else {
        Err(Error::Corrupt("header"))
    }
}
