//! The files of segments as the store's commands see them: what a backup takes along and a check reads.
//!
//! Keeps HS-12.

use super::SegmentPlace;
use super::store::{self, File};
use provost_backtest::record;
use provost_history::{Segment, Storage};
use provost_kernel::Result;
use provost_kernel::db::Tx;
use std::sync::Arc;

/// Returns the files of every organization's sealed segments, as of one snapshot.
pub fn files(tx: &mut Tx<'_>) -> Result<Vec<File>> {
    store::files(tx)
}

/// Reads a whole file and returns what is wrong with it, as a sentence.
pub fn verify(place: &SegmentPlace, file: &File) -> Option<String> {
    let size_bytes = u64::try_from(file.size_bytes).unwrap_or(0);
    let storage: Arc<dyn Storage> = place.0.clone();
    let fault = fault(&storage, &file.name, size_bytes, &file.digest)?;
    Some(format!(
        "the segment {} of {} {fault}",
        file.name, file.organization
    ))
}

/// Reads a whole segment back, of which size and digest are known, and returns what is wrong with it, as the end of a sentence.
pub(super) fn fault(storage: &Arc<dyn Storage>, name: &str, size_bytes: u64, digest: &str) -> Option<String> {
    match storage.size(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some("is not there".into()),
        Err(error) => return Some(format!("cannot be read: {error}")),
        Ok(size) if size != size_bytes => {
            return Some(format!("has {size} bytes, and the store says {size_bytes}"));
        }
        Ok(_) => {}
    }
    let opened = Segment::open(storage.clone(), name, &record::schema());
    match opened.and_then(|segment| segment.verify().map(|()| segment)) {
        Ok(segment) if segment.digest() == digest => None,
        Ok(_) => Some("is not the one that was sealed".into()),
        Err(error) => Some(format!("is damaged: {error}")),
    }
}
