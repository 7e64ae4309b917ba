//! Reading a folder. Links are refused, not followed.

use super::Fault;
use super::draft::{Draft, Kind, fault};
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// LIMIT: folders in folders that are looked into; deeper paths are refused whatever they hold.
const MAX_FOLDERS_DEEP: usize = 2 * super::MAX_DEPTH;

/// Returns the folder's own name, also for `.`.
pub(super) fn name_of(folder: &Path) -> Option<String> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    name(folder).or_else(|| name(&folder.canonicalize().ok()?))
}

/// Reads everything below a folder.
pub(super) fn read(folder: &Path, draft: &mut Draft) -> Result<(), Fault> {
    let mut waiting = vec![(folder.to_owned(), Vec::new(), 0)];
    while let Some((place, prefix, depth)) = waiting.pop() {
        let told = String::from_utf8_lossy(&prefix).into_owned();
        let cannot = |error: io::Error| fault(&told, format!("cannot be read: {error}"));
        let mut entries: Vec<PathBuf> = fs::read_dir(&place)
            .map_err(cannot)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(cannot)?;
        entries.sort();
        for path in entries {
            let mut name: Vec<u8> = prefix.clone();
            name.extend_from_slice(path.file_name().unwrap_or_default().as_bytes());
            let meta = fs::symlink_metadata(&path).map_err(cannot)?;
            draft.take(&name, &kind(&meta), &mut Lazy::of(&path, &meta))?;
            if meta.is_dir() && depth < MAX_FOLDERS_DEEP {
                name.push(b'/');
                waiting.push((path, name, depth + 1));
            } else if meta.is_dir() {
                draft.fault(&String::from_utf8_lossy(&name), "the folders are too deep");
            }
        }
    }
    Ok(())
}

fn kind(meta: &Metadata) -> Kind {
    let file_type: FileType = meta.file_type();
    if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_file() {
        Kind::File {
            executable: meta.mode() & 0o111 != 0,
        }
    } else if file_type.is_symlink() {
        Kind::Other("a link")
    } else if file_type.is_fifo() {
        Kind::Other("a pipe")
    } else {
        Kind::Other("a device or socket")
    }
}

/// A file that is opened when it is read: what is no file never is.
struct Lazy<'a> {
    path: Option<&'a Path>,
    file: Option<File>,
}

impl<'a> Lazy<'a> {
    fn of(path: &'a Path, meta: &Metadata) -> Self {
        Self {
            path: meta.is_file().then_some(path),
            file: None,
        }
    }
}

impl Read for Lazy<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(path) = self.path.take() {
            self.file = Some(File::open(path)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.read(buffer))
    }
}
