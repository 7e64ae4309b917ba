//! Names that outlive a loss of power: what `fsync` of a file does not cover.
//!
//! INVARIANT DU-1: a folder that [`make_folder`] returned from is on the disk with its name, and so are those above it that
//!   it made; what is made durable inside it later cannot be lost with it.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Creates a folder for its owner alone, and those above it that are missing; each name is durable before the next is made.
///
/// A folder that is there is left as it is.
///
/// Errors: those of the file system.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = folder_of(dir);
    make_folder(parent)?;
    match DirBuilder::new().mode(0o700).create(dir) {
        // Somebody else made it meanwhile; its name may not be durable yet.
        Err(e) if e.kind() == ErrorKind::AlreadyExists && dir.is_dir() => sync_folder(parent),
        made => made.and_then(|()| sync_folder(parent)),
    }
}

/// Returns the folder in which a file or folder lies.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable.
///
/// Errors: those of the file system.
pub fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::Scratch;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_missing_is_made_for_its_owner_alone_and_what_is_there_stays() {
        let scratch = Scratch::new();
        let there = folder_of(&scratch.keys()).join("there");
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, fs::Permissions::from_mode(0o750)).unwrap();
        let deep = there.join("a/b");
        make_folder(&deep).unwrap();
        fs::write(deep.join("file"), "text").unwrap();
        make_folder(&deep).unwrap();
        let modes = [&there, &there.join("a"), &deep].map(|folder| mode(folder));
        assert_eq!(modes, [0o750, 0o700, 0o700]);
        assert_eq!(fs::read(deep.join("file")).unwrap(), b"text");
    }

    #[test]
    fn a_file_in_the_way_is_an_error_and_stays() {
        let scratch = Scratch::new();
        let file = folder_of(&scratch.keys()).join("file");
        fs::write(&file, "text").unwrap();
        assert!(make_folder(&file).is_err());
        assert!(make_folder(&file.join("below")).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"text");
    }

    #[test]
    fn a_name_without_a_folder_lies_in_this_one() {
        assert_eq!(folder_of(Path::new("name")), Path::new("."));
        assert_eq!(folder_of(Path::new("/a/name")), Path::new("/a"));
    }
}
