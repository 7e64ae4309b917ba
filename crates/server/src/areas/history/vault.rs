//! The files of segments as the store's commands see them: what a backup takes along and a check reads.

use super::Place;
use super::store::{self, File};
use provost_history::Segment;
use provost_kernel::Result;
use provost_kernel::db::Tx;
use provost_replay::record;

/// Returns the files of every organization's sealed segments, as of one snapshot.
pub fn files(tx: &mut Tx<'_>) -> Result<Vec<File>> {
    store::files(tx)
}

/// Reads a whole file and returns what is wrong with it, as a sentence.
pub fn verify(place: &Place, file: &File) -> Option<String> {
    let name = &file.name;
    let fault = |fault: String| Some(format!("the segment {name} of {} {fault}", file.organization));
    match place.0.size(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return fault("is not there".into());
        }
        Err(error) => return fault(format!("cannot be read: {error}")),
        Ok(size) if i64::try_from(size) != Ok(file.size_bytes) => {
            return fault(format!(
                "has {size} bytes, and the store says {}",
                file.size_bytes
            ));
        }
        Ok(_) => {}
    }
    let opened = Segment::open(place.0.clone(), name, &record::schema());
    match opened.and_then(|segment| segment.verify().map(|()| segment)) {
        Ok(segment) if segment.digest() == file.digest => None,
        Ok(_) => fault("is not the one that was sealed".into()),
        Err(error) => fault(format!("is damaged: {error}")),
    }
}
