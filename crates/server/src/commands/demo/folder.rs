//! The folder that a demo lives in, and what becomes of it.
//!
//! ```text
//! folder ──► demo.lock.new, locked, with the folder's own name ──► renamed to demo.lock ──► everything else
//! ```
//!
//! INVARIANT DM-1: a demo removes no folder that a demo did not make, and none whose demo still runs. A folder is a demo's if it is no
//! link, belongs to this user alone, and holds `demo.lock`, a file that says the folder's own name; its demo runs as long as that
//! file is locked, which ends with the process however that ends. The file gets its name when it is locked already, so
//! that no other start finds it free.

use super::Failure;
use provost_kernel::entropy::{Entropy, SystemEntropy, UnitRng};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the names of folders begin with.
const PREFIX: &str = "provost-demo-";
const LOCK: &str = "demo.lock";
const UNNAMED_LOCK: &str = "demo.lock.new";
/// The first line of a lock file.
const MARK: &str = "a folder of `provost demo`, which removes it when it ends";
/// A write that is on its way when everything has stopped may bring a file back into a folder that is being emptied.
const REMOVALS: u32 = 5;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(100);

/// A folder that is there.
pub struct DemoFolder {
    pub path: PathBuf,
    is_kept: bool,
    /// Locked until the process ends.
    _lock: Option<File>,
}

impl DemoFolder {
    /// Makes a new folder among the temporary files of this machine.
    pub fn temporary() -> Result<Self, Failure> {
        let mut random = [0_u8; 8];
        UnitRng::new(SystemEntropy.seed()).fill(&mut random);
        let name = format!("{PREFIX}{:016x}", u64::from_be_bytes(random));
        let path = std::env::temp_dir().join(&name);
        let cannot =
            |error: io::Error| Failure::of_file("the folder of the demo cannot be made", &path, &error);
        DirBuilder::new().mode(0o700).create(&path).map_err(cannot)?;
        let lock = lock(&path, &name).map_err(cannot)?;
        Ok(Self {
            path,
            is_kept: false,
            _lock: Some(lock),
        })
    }

    /// Takes a folder that is to stay, which is made here or holds nothing.
    pub fn kept(path: &Path) -> Result<Self, Failure> {
        let cannot =
            |error: io::Error| Failure::of_file("the folder of the demo cannot be used", path, &error);
        let path = std::path::absolute(path).map_err(cannot)?;
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if fs::read_dir(&path).map_err(cannot)?.next().is_some() {
                    return Err(Failure::new(format!(
                        "{} holds something already; name a folder that is empty or not there",
                        path.display()
                    )));
                }
            }
            made => made.map_err(cannot)?,
        }
        Ok(Self {
            path,
            is_kept: true,
            _lock: None,
        })
    }

    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file for its owner alone, and those folders above it that are missing.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.file(name);
        let cannot =
            |error: io::Error| Failure::of_file("a file of the demo cannot be written", &path, &error);
        if let Some(above) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(above)
                .map_err(cannot)?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(cannot)?;
        file.write_all(bytes).map_err(cannot)?;
        Ok(path)
    }

    /// Removes everything, unless the folder is kept. Nothing of the demo may run any more.
    pub fn end(self) -> Result<(), Failure> {
        if self.is_kept {
            return Ok(());
        }
        remove(&self.path).map_err(|error| {
            Failure::of_file("the demo has ended; remove what it left in", &self.path, &error)
        })
    }
}

fn lock(path: &Path, name: &str) -> io::Result<File> {
    let unnamed = path.join(UNNAMED_LOCK);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unnamed)?;
    file.try_lock()?;
    file.write_all(format!("{MARK}\n{name}\n").as_bytes())?;
    fs::rename(&unnamed, path.join(LOCK))?;
    Ok(file)
}

fn remove(path: &Path) -> io::Result<()> {
    let mut tries = 1;
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(_) if tries < REMOVALS => {
                tries += 1;
                std::thread::sleep(BETWEEN_REMOVALS);
            }
            outcome => return outcome,
        }
    }
}

/// Removes the folders of demos that were killed, and returns them.
pub fn remove_stale() -> Vec<PathBuf> {
    remove_stale_in(&std::env::temp_dir())
}

fn remove_stale_in(temporary: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    let mut removed = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let Some(lock) = lock_of_ended(&path) else {
            continue;
        };
        if remove(&path).is_ok() {
            removed.push(path);
        }
        drop(lock);
    }
    removed
}

/// Returns the lock of a folder whose demo has ended, taken; nothing of any other folder (DM-1).
fn lock_of_ended(path: &Path) -> Option<File> {
    let name = path.file_name()?.to_str()?;
    let random = name.strip_prefix(PREFIX)?;
    if random.len() != 16 || !random.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let me = rustix::process::getuid().as_raw();
    let is_mine = |metadata: &fs::Metadata| metadata.uid() == me;
    let folder = fs::symlink_metadata(path).ok()?;
    if !folder.is_dir() || !is_mine(&folder) || folder.mode() & 0o077 != 0 {
        return None;
    }
    let marked = path.join(LOCK);
    let metadata = fs::symlink_metadata(&marked).ok()?;
    if !metadata.is_file() || !is_mine(&metadata) {
        return None;
    }
    let mut file = File::open(&marked).ok()?;
    file.try_lock().ok()?;
    let mut said = String::new();
    (&mut file).take(256).read_to_string(&mut said).ok()?;
    (said == format!("{MARK}\n{name}\n")).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("provost-folder-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// A folder as a demo makes it, whose lock is held until it is dropped.
        fn demo(&self, number: u8) -> (PathBuf, File) {
            let name = format!("{PREFIX}{number:016x}");
            let path = self.0.join(&name);
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            let held = lock(&path, &name).unwrap();
            fs::write(path.join("token"), "t").unwrap();
            (path, held)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Proves DM-1.
    #[test]
    fn the_folder_of_a_demo_that_was_killed_is_removed_and_one_that_runs_is_not() {
        let place = Place::new("stale");
        let (killed, lock) = place.demo(1);
        drop(lock);
        let (running, held) = place.demo(2);
        assert_eq!(remove_stale_in(&place.0), [killed.as_path()]);
        assert!(!killed.exists() && running.join("token").exists());
        drop(held);
        assert_eq!(remove_stale_in(&place.0), [running]);
    }

    /// Proves DM-1.
    #[test]
    fn no_folder_is_removed_that_a_demo_did_not_make() {
        let place = Place::new("foreign");
        let ended = |number| {
            let (path, lock) = place.demo(number);
            drop(lock);
            path
        };
        let without_lock = ended(1);
        fs::remove_file(without_lock.join(LOCK)).unwrap();
        let renamed = place.0.join(format!("{PREFIX}{:016x}", 0xff));
        fs::rename(ended(2), &renamed).unwrap();
        let other_words = ended(3);
        fs::write(other_words.join(LOCK), "mine\n").unwrap();
        let open = ended(4);
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let lock_is_link = ended(5);
        fs::rename(lock_is_link.join(LOCK), lock_is_link.join("elsewhere")).unwrap();
        symlink("elsewhere", lock_is_link.join(LOCK)).unwrap();
        let other_name = place.0.join("provost-demo-notes");
        fs::create_dir(&other_name).unwrap();
        // A link in the place of a folder leads to somebody's data.
        let target = ended(6);
        let data = place.0.join("data");
        fs::rename(&target, &data).unwrap();
        symlink(&data, &target).unwrap();
        assert_eq!(remove_stale_in(&place.0), Vec::<PathBuf>::new());
        for path in [
            without_lock,
            renamed,
            other_words,
            open,
            lock_is_link,
            other_name,
            data,
        ] {
            assert!(path.exists(), "{}", path.display());
        }
    }

    #[test]
    fn a_folder_that_is_to_stay_is_empty_before_and_there_after() {
        let place = Place::new("kept");
        let folder = DemoFolder::kept(&place.0.join("new")).unwrap();
        folder.write("a/b", b"x").unwrap();
        let path = folder.path.clone();
        folder.end().unwrap();
        assert!(path.join("a/b").exists());
        assert!(
            DemoFolder::kept(&path).is_err_and(|failure| failure.to_string().contains("holds something"))
        );
    }

    #[test]
    fn the_end_of_a_demo_removes_all_of_it() {
        let folder = DemoFolder::temporary().unwrap();
        let path = folder.write("deep/er/file", b"x").unwrap();
        let top = folder.path.clone();
        assert!(path.exists());
        assert_eq!(fs::metadata(&top).unwrap().mode() & 0o777, 0o700);
        folder.end().unwrap();
        assert!(!top.exists());
    }
}
