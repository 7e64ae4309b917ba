//! Where the segments of this installation lie.

use provost_history::{Folder, Storage};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

/// The place of the segments, as the operator declared it. An installation without one keeps chunks alone.
#[derive(Clone)]
pub struct Place(pub Arc<dyn Storage>);

impl Place {
    /// Opens a local folder, made for its owner alone if it is absent.
    ///
    /// Errors: those of the file system.
    pub fn folder(path: &Path) -> std::io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        Ok(Self(Arc::new(Folder::open(path)?)))
    }
}
