//! One server for each data folder (D12.10).

use super::failure::Failure;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The folder belongs to this process until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock ends when the file is closed")] File);

/// Takes the data folder for this process alone.
///
/// Errors: a sentence with the pid of the process that has it.
pub fn take(data_dir: &Path) -> Result<FolderLock, Failure> {
    let path = data_dir.join("provost.lock");
    let failed = |error: &std::io::Error| Failure::of_file("the lock file cannot be used", &path, error);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        // The folder may be another account's, and this process root's.
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(&path)
        .map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken(&mut file, data_dir)),
        Err(TryLockError::Error(error)) => return Err(failed(&error)),
    }
    let pid = format!("{}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(pid.as_bytes()))
        .map_err(|error| failed(&error))?;
    Ok(FolderLock(file))
}

fn taken(file: &mut File, data_dir: &Path) -> Failure {
    let mut pid = String::new();
    // The holder may be about to write its pid; the refusal is the same without it.
    let _ = file.take(32).read_to_string(&mut pid);
    let holder = match pid.trim() {
        "" => "another process".to_owned(),
        pid => format!("the process with pid {pid}"),
    };
    Failure::new(format!(
        "the data folder {} is in use by {holder}; stop it first",
        data_dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_the_pid_of_the_first() {
        let folder = std::env::temp_dir().join(format!("provost-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let held = take(&folder).unwrap();
        let refused = format!("{:?}", take(&folder).unwrap_err());
        assert!(
            refused.contains(&format!("pid {}", std::process::id())),
            "{refused}"
        );
        drop(held);
        take(&folder).unwrap();
        // In a folder of somebody else a link would have root write into any file.
        let (lock, other) = (folder.join("provost.lock"), folder.join("other"));
        std::fs::write(&other, "other").unwrap();
        std::fs::remove_file(&lock).unwrap();
        std::os::unix::fs::symlink(&other, &lock).unwrap();
        take(&folder).unwrap_err();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "other");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
