//! Names that outlive a loss of power: what `fsync` of a file does not cover.
//!
//! INVARIANT DU-2: the files of the store, of segments, backups and kept releases are their owner's alone, whatever
//! the mask of the process that makes them; a start takes them from others.
//! INVARIANT DU-1: a new folder is on the disk with its name, and so are the new ones above it, before anything is
//! written into it; what is made durable inside it later cannot be lost with it. Proof: in part.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
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

/// Makes an empty file for its owner alone, whatever the mask of the process says, and says whether it was made. One that
/// is there is left as it is.
///
/// Errors: those of the file system.
pub fn make_private_file(path: &Path) -> io::Result<bool> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(file) => file.set_permissions(Permissions::from_mode(0o600)).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes a file away from everybody but its owner, and says whether it was open to others. One that is not there is left so, and so is
/// what a link names: whose folder it is would have root change any file.
///
/// The file is not opened for reading: to close it would end the locks that SQLite has on it.
///
/// Errors: those of the file system; a file of somebody else stays as it is.
pub fn close_to_others(path: &Path) -> io::Result<bool> {
    let Some((file, mode)) = held(path)? else {
        return Ok(false);
    };
    let is_open = mode & 0o177 != 0;
    if is_open {
        // INVARIANT DU-2: what the owner may do stays, but for running it.
        fs::set_permissions(file.path(), Permissions::from_mode(mode & 0o600))?;
    }
    Ok(is_open)
}

/// A file that stays the same one, whatever happens to its name.
#[cfg(target_os = "linux")]
struct Held(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Held {
    fn path(&self) -> std::path::PathBuf {
        use std::os::fd::AsRawFd;
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Returns a regular file and its permissions; nothing where there is none of this name.
#[cfg(target_os = "linux")]
fn held(path: &Path) -> io::Result<Option<(Held, u32)>> {
    use rustix::fs::{FileType, Mode, OFlags, fstat, open};
    // With `PATH` nothing is opened but the name: no lock ends with it.
    let file = match open(
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mode = fstat(&file)?.st_mode;
    let is_file = FileType::from_raw_mode(mode) == FileType::RegularFile;
    Ok(is_file.then_some((Held(file), mode & 0o7777)))
}

/// A file by its name.
#[cfg(not(target_os = "linux"))]
struct Held(std::path::PathBuf);

#[cfg(not(target_os = "linux"))]
impl Held {
    fn path(&self) -> &Path {
        &self.0
    }
}

/// Returns a regular file and its permissions; nothing where there is none of this name.
#[cfg(not(target_os = "linux"))]
fn held(path: &Path) -> io::Result<Option<(Held, u32)>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some((Held(path.to_owned()), found.permissions().mode()))),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
    use crate::entropy::{Entropy, SystemEntropy};
    use std::path::PathBuf;

    /// A folder that ends with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            let seed = SystemEntropy.seed();
            let name = seed[..8].iter().map(u8::to_string).collect::<Vec<_>>().join("-");
            let path = std::env::temp_dir().join(format!("provost-durable-{name}"));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Proves DU-1.
    #[test]
    fn what_is_missing_is_made_for_its_owner_alone_and_what_is_there_stays() {
        let scratch = Scratch::new();
        let there = scratch.0.join("there");
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

    /// Proves DU-2.
    #[test]
    fn a_file_is_made_for_its_owner_and_taken_from_others() {
        let scratch = Scratch::new();
        let file = scratch.0.join("file");
        assert!(!close_to_others(&file).unwrap(), "it is not there");
        assert!(make_private_file(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        fs::write(&file, "text").unwrap();
        assert!(!make_private_file(&file).unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"text", "what is there stays");
        for (before, after, was_open) in [
            (0o644, 0o600, true),
            (0o660, 0o600, true),
            (0o601, 0o600, true),
            (0o755, 0o600, true),
            (0o444, 0o400, true),
            (0o600, 0o600, false),
            (0o400, 0o400, false),
        ] {
            fs::set_permissions(&file, Permissions::from_mode(before)).unwrap();
            assert_eq!(close_to_others(&file).unwrap(), was_open, "{before:o}");
            assert_eq!(mode(&file), after, "{before:o}");
        }
        // What a link names is somebody else's to close.
        let link = scratch.0.join("link");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(!close_to_others(&link).unwrap());
        assert_eq!(mode(&file), 0o644);
        assert!(make_private_file(&file.join("below")).is_err());
    }

    /// Proves DU-1.
    #[test]
    fn a_file_in_the_way_is_an_error_and_stays() {
        let scratch = Scratch::new();
        let file = scratch.0.join("file");
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
