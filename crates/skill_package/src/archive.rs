//! Reading tar.gz and zip, and writing the one form in which packages travel.

use super::draft::{Draft, Kind, fault, too_much};
use super::{Fault, MAX_EXPANDED_BYTES, MAX_FILES, Package};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{self, Cursor, Read, Write};
use tar::EntryType;
use zip::ZipArchive;

/// LIMIT: what a tar may hold beside the files' bytes: headers, long names, padding.
const MAX_TAR_OVERHEAD_BYTES: u64 = 4_096 * MAX_FILES as u64;

/// Reads a tar.gz.
pub(super) fn read_tar_gz(bytes: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let gzip = GzDecoder::new(bytes);
    // INVARIANT SP-2: whatever the tar's headers say, this many bytes are expanded and not one more.
    let mut archive = tar::Archive::new(BoundedReader {
        inner: gzip,
        left: MAX_EXPANDED_BYTES + MAX_TAR_OVERHEAD_BYTES,
    });
    for entry in archive.entries().map_err(|error| broken(&error))? {
        let mut entry = entry.map_err(|error| broken(&error))?;
        let header = entry.header();
        let executable = header.mode().unwrap_or(0) & 0o111 != 0;
        let kind = match header.entry_type() {
            EntryType::Regular => Kind::File { executable },
            EntryType::Directory => Kind::Folder,
            // What `git archive` says about the commit.
            EntryType::XGlobalHeader => continue,
            EntryType::Link | EntryType::Symlink => Kind::Other("a link"),
            EntryType::Fifo => Kind::Other("a pipe"),
            EntryType::Char | EntryType::Block => Kind::Other("a device"),
            EntryType::GNUSparse => Kind::Other("a sparse file"),
            _ => Kind::Other("an entry of an unknown type"),
        };
        let kind = if is_sparse(&mut entry).map_err(|error| broken(&error))? {
            Kind::Other("a sparse file")
        } else {
            kind
        };
        let name = entry.path_bytes().into_owned();
        let declared = entry.size();
        let read = draft.take(&name, &kind, &mut entry)?;
        if matches!(kind, Kind::File { .. }) && read < declared.min(super::MAX_FILE_BYTES) {
            return Err(fault(
                &String::from_utf8_lossy(&name),
                "the archive ends inside of this file",
            ));
        }
    }
    drain(archive.into_inner())
}

/// Reads to the end, where gzip has its checksum, and refuses what stands behind the end.
fn drain(mut rest: BoundedReader<GzDecoder<&[u8]>>) -> Result<(), Fault> {
    let mut buffer = [0; 4_096];
    loop {
        match rest.read(&mut buffer).map_err(|error| broken(&error))? {
            0 => break,
            read if buffer[..read].iter().all(|byte| *byte == 0) => {}
            _ => return Err(fault("", "the archive goes on behind its end")),
        }
    }
    if rest.inner.into_inner().is_empty() {
        Ok(())
    } else {
        Err(fault("", "the archive goes on behind its end"))
    }
}

/// GNU tar can hide a sparse file in an ordinary entry.
fn is_sparse<R: Read>(entry: &mut tar::Entry<'_, R>) -> io::Result<bool> {
    let Some(extensions) = entry.pax_extensions()? else {
        return Ok(false);
    };
    for extension in extensions {
        if extension?.key_bytes().starts_with(b"GNU.sparse.") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn broken(error: &io::Error) -> Fault {
    if (error.get_ref()).is_some_and(|inner| inner.downcast_ref::<TooMuch>().is_some()) {
        return too_much();
    }
    fault("", format!("the archive is damaged or of another kind: {error}"))
}

/// Expands this much and then fails.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

#[derive(Debug)]
struct TooMuch;

impl std::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too large when expanded")
    }
}

impl std::error::Error for TooMuch {}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = (self.left)
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other(TooMuch))?;
        Ok(read)
    }
}

/// Reads a zip.
pub(super) fn read_zip(bytes: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let broken = |error: zip::result::ZipError| {
        fault("", format!("the archive is damaged or of another kind: {error}"))
    };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    if archive.has_duplicate_names() {
        return Err(fault("", "a path stands in the archive twice"));
    }
    for index in 0..archive.len() {
        let (name, kind) = {
            let entry = archive.by_index_raw(index).map_err(broken)?;
            let mode = entry.unix_mode().unwrap_or(0);
            let kind = match mode & 0o170_000 {
                _ if entry.encrypted() => Kind::Other("an encrypted file"),
                0o040_000 => Kind::Folder,
                _ if entry.is_dir() => Kind::Folder,
                0 | 0o100_000 => Kind::File {
                    executable: mode & 0o111 != 0,
                },
                0o120_000 => Kind::Other("a link"),
                _ => Kind::Other("a device or pipe"),
            };
            (entry.name_raw().to_owned(), kind)
        };
        if matches!(kind, Kind::File { .. }) {
            draft.take(&name, &kind, &mut archive.by_index(index).map_err(broken)?)?;
        } else {
            draft.take(&name, &kind, &mut io::empty())?;
        }
    }
    Ok(())
}

/// Returns the package as tar.gz: files in order, no times, no owners.
pub(super) fn write_tar_gz(package: &Package) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "memory takes every write, and tar has a header for every path that is allowed"
    )]
    try_write_tar_gz(package).expect("a package has an archive")
}

fn try_write_tar_gz(package: &Package) -> io::Result<Vec<u8>> {
    // INVARIANT SP-3: no time and no system stands in the gzip header, nor in those of the tar.
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::default());
    let mut archive = tar::Builder::new(gzip);
    for (path, file) in &package.files {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_size(file.bytes.len() as u64);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        let path = format!("{}/{path}", package.manifest.name);
        archive.append_data(&mut header, path, file.bytes.as_slice())?;
    }
    let mut gzip = archive.into_inner()?;
    gzip.flush()?;
    gzip.finish()
}
