//! The files of sealed history, as backups take them along and restores bring them back.
//!
//! A backup is one file, and beside it a folder `<file>.history` where there are segments. The rows of the copy say
//! which files belong to it; a segment's file outlives its row's last word by an hour, so they are all there still.

use super::Failure;
use crate::commands::failure::Outcome;
use crate::config::Config;
use provost_areas_policy::history::{self, File, Holder, SegmentPlace};
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::keys::Keys;
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};

/// How much is read at once. Units: bytes.
const PIECE: usize = 1 << 20;

/// Returns the folder of the segments of a backup.
pub fn beside(backup: &Path) -> PathBuf {
    let mut name = backup.as_os_str().to_owned();
    name.push(".history");
    name.into()
}

/// Returns a runtime for the requests to an object store.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(|error| Failure::new(format!("no runtime could be started: {error}")))
}

/// Returns the files that the rows of a store name.
pub fn named(location: &Location) -> Result<Vec<File>, Failure> {
    let mut conn = Conn::open(location, Access::Read)?;
    Ok(conn.read(history::files)?)
}

/// Returns the files that the rows of a store name, and what the store says of itself and its place.
pub fn named_with_holder(location: &Location, keys: &Keys) -> Result<(Vec<File>, Holder), Failure> {
    let mut conn = Conn::open_to_inspect(location)?;
    Ok(conn.read(|tx| Ok((history::files(tx)?, history::holder(tx, keys)?)))?)
}

/// Takes along the files that the backup's rows name; returns how many there are.
pub fn back_up(config: &Config, backup: &Path) -> Result<usize, Failure> {
    let files = named(&Location::Sqlite(backup.to_owned()))?;
    if files.is_empty() {
        return Ok(0);
    }
    let target = beside(backup);
    if target.exists() {
        return Err(Failure::new(format!("{} is there already", target.display())));
    }
    let data_dir = config.store.data_dir();
    let runtime = runtime()?;
    let from = config.history.open_to_inspect(&data_dir, runtime.handle())?;
    let to = opened(&target)?;
    for file in &files {
        // The same file under a second name is a copy: segments never change. Another disk gets its own.
        let link = config.history.folder(&data_dir);
        if link.is_none_or(|folder| {
            std::fs::hard_link(folder.join(&file.name), target.join(&file.name)).is_err()
        }) {
            copy(&from, &to, file)?;
        }
    }
    std::fs::File::open(&target)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Failure::of_file("the segments cannot be made durable in", &target, &error))?;
    Ok(files.len())
}

/// Brings back the files that the rows of the staged store name, and reads each of them once more.
pub fn restore(config: &Config, backup: &Path, staged: &Location) -> Outcome {
    let files = named(staged)?;
    if files.is_empty() {
        return Ok(());
    }
    let source = beside(backup);
    if !source.is_dir() {
        return Err(Failure::new(format!(
            "the backup names {} segments of recorded history, and their folder {} is not there",
            files.len(),
            source.display()
        )));
    }
    let from = opened(&source)?;
    if let Some(fault) = faults(&from, &files).into_iter().next() {
        return Err(Failure::new(format!("the backup cannot be restored: {fault}")));
    }
    let runtime = runtime()?;
    let to = config.history.open(&config.store.data_dir(), runtime.handle())?;
    files.iter().try_for_each(|file| copy(&from, &to, file))
}

/// Returns what is wrong with these files, in sentences.
pub fn faults(place: &SegmentPlace, files: &[File]) -> Vec<String> {
    files
        .iter()
        .filter_map(|file| history::verify(place, file))
        .collect()
}

pub fn opened(folder: &Path) -> Result<SegmentPlace, Failure> {
    SegmentPlace::folder(folder)
        .map_err(|error| Failure::of_file("the folder cannot be opened", folder, &error))
}

pub fn copy(from: &SegmentPlace, to: &SegmentPlace, file: &File) -> Outcome {
    let (from, name) = (&from.0, file.name.as_str());
    let failed = |error: String| Failure::new(format!("the segment {name} cannot be copied: {error}"));
    let size = from.size(name).map_err(|error| failed(error.to_string()))?;
    let put = to.0.put(name, &mut |out| {
        let mut offset = 0;
        while offset < size {
            let length = usize::try_from(size - offset).map_or(PIECE, |left| left.min(PIECE));
            out.write_all(&from.read(name, offset, length)?)?;
            offset += length as u64;
        }
        Ok::<(), provost_history::Error>(())
    });
    put.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        failed(cause.unwrap_or_else(|| error.to_string()))
    })
}
