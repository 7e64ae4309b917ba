//! Where the segments of this installation lie.

use provost_history::{Folder, Listable};
use provost_kernel::durable::make_folder;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// The place of the segments, as the operator declared it. An installation without one keeps chunks alone.
#[derive(Clone)]
pub struct SegmentPlace(pub Arc<dyn Listable>);

impl SegmentPlace {
    /// Opens a local folder, made for its owner alone if it is absent.
    ///
    /// Errors: those of the file system.
    pub fn folder(path: &Path) -> std::io::Result<Self> {
        // A segment stands for rows that go: its file must not be lost with a new folder.
        make_folder(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        Ok(Self(Arc::new(Folder::open(path)?)))
    }

    /// Returns a local folder as it is, to be read: also beside a server that writes into it, and on a mount that is read-only.
    pub fn folder_as_it_is(path: &Path) -> Self {
        Self(Arc::new(Folder::as_it_is(path)))
    }
}
