//! Where an event comes from: who handed it in, under which name, and whether this server saw it happen or was told.

use super::column::{IMPORTED, PRINCIPAL, SOURCE, schema};
use super::owned::OwnedRecord;
use provost_history::{Batch, Column, Entry, Error, Result};
use std::sync::LazyLock;

/// The source of what was decided here.
pub const DECISIONS: &str = "decisions";
/// The source of what exporters of telemetry sent.
pub const OTLP: &str = "otlp";

/// What the sources begin with of what devices judged and tell of.
const DEVICE: &str = "device:";

/// Returns the source of what a device judged and tells of.
pub fn device_source(device_id: &str) -> String {
    format!("{DEVICE}{device_id}")
}

/// Says whether a source is a device that tells of what it judged. No import has such a name (HS-10).
pub fn is_device(source: &str) -> bool {
    source.starts_with(DEVICE)
}

/// Where an event comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name under which it came.
    pub source: Option<String>,
    /// The id of the principal that handed it in; none of events from before that was noted.
    pub principal: Option<String>,
    /// Whether it was imported.
    pub is_imported: bool,
}

impl OwnedRecord {
    /// Returns whether the event was imported: somebody told of it, and this server did not see it.
    ///
    /// Events from before that was noted (version 1 of the columns) are told by their source: all but decisions and
    /// telemetry were imported.
    pub fn is_imported(&self) -> bool {
        self.imported.unwrap_or_else(|| is_import(self.source.as_deref()))
    }
}

fn is_import(source: Option<&str>) -> bool {
    source.is_some_and(|source| ![DECISIONS, OTLP].contains(&source))
}

static PLACES: LazyLock<[usize; 3]> = LazyLock::new(|| {
    let place = |name| schema().position(name).unwrap_or(usize::MAX);
    [SOURCE, IMPORTED, PRINCIPAL].map(place)
});

/// Which rows of a batch were imported.
#[derive(Debug)]
pub struct Imports {
    /// By code of the column `source`.
    by_source: Vec<bool>,
    /// By code of the column `imported`; nothing where it says nothing.
    by_word: Vec<Option<bool>>,
    /// By code of the column `source`.
    devices: Vec<bool>,
}

impl Imports {
    /// Returns the positions in the schema of the two columns that tell it.
    pub fn positions() -> [usize; 2] {
        [PLACES[0], PLACES[1]]
    }

    /// Looks at the dictionaries of these columns.
    ///
    /// Errors: `Corrupt` when one of them is of another type.
    pub fn new([source, imported]: [&Column; 2]) -> Result<Self> {
        let by_source = entries(source, |entry| match entry {
            Entry::Text(text) => is_import(Some(text)),
            _ => is_import(None),
        });
        let by_word = entries(imported, |entry| match entry {
            Entry::Boolean(is) => Some(is),
            _ => None,
        });
        let devices = entries(source, |entry| match entry {
            Entry::Text(text) => is_device(text),
            _ => false,
        });
        Ok(Self {
            by_source: by_source?,
            by_word: by_word?,
            devices: devices?,
        })
    }

    /// Returns whether the row of these codes of the two columns is what a device told; of one that nobody can read it is not known, and
    /// it counts as that.
    pub fn is_of_device(&self, [source, _]: [u32; 2]) -> bool {
        self.devices.get(source as usize).copied().unwrap_or(true)
    }

    /// Returns whether the row of these codes of the two columns was imported; one that nobody can read was.
    pub fn is_imported(&self, [source, imported]: [u32; 2]) -> bool {
        let word = self.by_word.get(imported as usize).copied().flatten();
        word.unwrap_or_else(|| self.by_source.get(source as usize).copied().unwrap_or(true))
    }
}

fn entries<T>(column: &Column, each: impl Fn(Entry<'_>) -> T) -> Result<Vec<T>> {
    let last = u32::try_from(column.dictionary.len()).map_err(|_| Error::Corrupt("dictionary"))?;
    (0..=last)
        .map(|code| column.dictionary.entry(code).map(&each))
        .collect()
}

/// The positions in the schema of the columns that [`origin`] reads, in its order.
pub(crate) fn origin_positions() -> [usize; 3] {
    *PLACES
}

/// Returns where the event of a row comes from; the batch has the columns of [`origin_positions`].
///
/// Errors: `Corrupt` when the batch has other columns.
pub(crate) fn origin(batch: &Batch, row: usize) -> Result<Origin> {
    let [source, imported, principal] = batch.columns.as_slice() else {
        return Err(Error::Corrupt("columns"));
    };
    let entry =
        |column: &'_ Column| -> Result<u32> { column.codes.get(row).copied().ok_or(Error::Corrupt("row")) };
    let text = |column: &Column| {
        Ok::<_, Error>(match column.dictionary.entry(entry(column)?)? {
            Entry::Text(text) => Some(text.to_owned()),
            _ => None,
        })
    };
    let source = text(source)?;
    let is_imported = match imported.dictionary.entry(entry(imported)?)? {
        Entry::Boolean(is) => is,
        _ => is_import(source.as_deref()),
    };
    Ok(Origin {
        source,
        principal: text(principal)?,
        is_imported,
    })
}
