//! Signatures over checkpoints, and the list of them that lies outside the store (D12.5).

use super::folder;
use super::key::{Key, Purpose};
use super::later::access_token_seed;
use super::{Keys, setup};
use crate::dsse::PublicKey;
use crate::durable::sync_folder;
use crate::error::{Class, Error, Result};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The keys that access tokens are signed with.
pub struct AccessTokenSeeds {
    /// The [`Keys::version`] that they belong to.
    pub version: u64,
    /// The id and the Ed25519 seed of each, the oldest first.
    pub all: Vec<(String, Zeroizing<[u8; 32]>)>,
    /// The id of the one that signs.
    pub current: String,
}

impl Keys {
    /// Signs the text of a note and returns the key's name, the key's hash and the Ed25519 signature.
    pub fn sign_checkpoint(&self, note_body: &[u8]) -> (String, u32, [u8; 64]) {
        let ring = self.ring();
        let key = ring.current(Purpose::Checkpoint);
        let (name, pair) = (name(key), pair(key));
        let mut signature = [0; 64];
        signature.copy_from_slice(pair.sign(note_body).as_ref());
        let hash = key_hash(&name, &public(&pair));
        (name, hash, signature)
    }

    /// Returns name and public key of every checkpoint key, the oldest first.
    pub fn checkpoint_public_keys(&self) -> Vec<(String, [u8; 32])> {
        let ring = self.ring();
        let half = |key: &Arc<Key>| (name(key), public(&pair(key)));
        ring.of_purpose(Purpose::Checkpoint).map(half).collect()
    }

    /// Returns the id and the Ed25519 signature of the current signing key, or of it and every older one, the newest first.
    pub(crate) fn sign_message(&self, message: &[u8], with_every_key: bool) -> Vec<(String, [u8; 64])> {
        let ring = self.ring();
        let keys = ring.of_purpose(Purpose::Signing).rev();
        let keys = keys.filter(|key| !ring.waits(key));
        let sign = |key: &Arc<Key>| {
            let mut signature = [0; 64];
            signature.copy_from_slice(pair(key).sign(message).as_ref());
            (key.id.clone(), signature)
        };
        let count = if with_every_key { usize::MAX } else { 1 };
        keys.take(count).map(sign).collect()
    }

    /// Returns the id of the key that signs documents now.
    pub fn signing_key_id(&self) -> String {
        let ring = self.ring();
        let mut keys = ring.of_purpose(Purpose::Signing).rev();
        let found = keys.find(|key| !ring.waits(key));
        found.map_or_else(String::new, |key| key.id.clone())
    }

    /// Returns the public half of every signing key, the oldest first.
    pub fn signing_public_keys(&self) -> Vec<PublicKey> {
        let ring = self.ring();
        let half = |key: &Arc<Key>| PublicKey {
            id: key.id.clone(),
            key: public(&pair(key)),
        };
        ring.of_purpose(Purpose::Signing).map(half).collect()
    }

    /// Returns the keys that access tokens are signed with, those that wait included: one for each signing key, so that a
    /// rotation of that purpose rotates them (D2.7).
    ///
    /// A seed is derived: what signs tokens cannot sign releases, and neither tells the other.
    pub fn access_token_seeds(&self) -> AccessTokenSeeds {
        let ring = self.ring();
        AccessTokenSeeds {
            version: ring.version,
            all: ring
                .of_purpose(Purpose::Signing)
                .map(|key| access_token_seed(key))
                .collect(),
            current: access_token_seed(ring.current(Purpose::Signing)).0,
        }
    }

    /// Appends a line to `checkpoints.jsonl`, durably.
    pub fn append_checkpoint_line(&self, line: &str) -> Result<()> {
        self.append_checkpoint_lines(&[line.to_owned()])
    }

    /// Appends lines to `checkpoints.jsonl` in one write, durably.
    pub fn append_checkpoint_lines(&self, lines: &[String]) -> Result<()> {
        if lines
            .iter()
            .any(|line| line.is_empty() || line.contains(['\n', '\r']))
        {
            return Err(Error::internal("a checkpoint line must be one line"));
        }
        // A line that found no room was not written whole; the next one takes its place.
        let file = append(&self.dir, &lines.join("\n")).map_err(|e| match e.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => folder::unwritable(e),
            _ => Error::internal(e).class(Class::Broken),
        })?;
        // After a failed fsync nobody knows what is on disk.
        file.sync_all()
            .and_then(|()| sync_folder(&self.dir))
            .map_err(|e| Error::internal(e).class(Class::Broken))
    }

    /// Returns the lines of `checkpoints.jsonl`, the oldest first. A torn last line is left out.
    pub fn checkpoint_lines(&self) -> Result<Vec<String>> {
        Ok(self.checkpoint_lines_after(0)?.0)
    }

    /// Returns the lines of `checkpoints.jsonl` behind a number of bytes, and how many bytes that makes in all. A file that is
    /// shorter is read from its beginning.
    pub fn checkpoint_lines_after(&self, read: u64) -> Result<(Vec<String>, u64)> {
        lines_after(&self.dir, read)
    }

    /// Says whether `checkpoints.jsonl` in a folder has lines, whatever keys lie there.
    pub fn has_checkpoint_lines(dir: &Path) -> Result<bool> {
        Ok(!lines_after(dir, 0)?.0.is_empty())
    }
}

fn lines_after(dir: &Path, read: u64) -> Result<(Vec<String>, u64)> {
    let unreadable = |e| setup("checkpoints.jsonl in the keys folder cannot be read").caused_by(e);
    let mut file = match File::open(folder::checkpoints(dir)) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(e) => return Err(unreadable(e)),
    };
    let length = file.metadata().map_err(unreadable)?.len();
    let start = if read <= length { read } else { 0 };
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(start))
        .and_then(|_| file.read_to_end(&mut content))
        .map_err(unreadable)?;
    let whole = complete(&content);
    let text = std::str::from_utf8(&content[..whole])
        .map_err(|_| setup("checkpoints.jsonl in the keys folder is malformed"))?;
    Ok((text.lines().map(str::to_owned).collect(), start + whole as u64))
}

/// Returns the first four bytes of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key), big endian (C2SP signed-note).
pub(crate) fn key_hash(name: &str, public_key: &[u8; 32]) -> u32 {
    let hashed = digest(&SHA256, &[name.as_bytes(), b"\n\x01", public_key].concat());
    let bytes = hashed.as_ref();
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn name(key: &Key) -> String {
    format!("provost/{}", key.id)
}

#[expect(clippy::expect_used, reason = "every 32 bytes are an Ed25519 seed")]
fn pair(key: &Key) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(key.bytes()).expect("a seed of 32 bytes")
}

fn public(pair: &Ed25519KeyPair) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(pair.public_key().as_ref());
    bytes
}

/// Returns the length up to and including the last newline.
pub(super) fn complete(content: &[u8]) -> usize {
    content
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1)
}

/// Writes a line and returns the file, still locked: the line counts once the file is synced.
fn append(dir: &Path, line: &str) -> io::Result<File> {
    let path = folder::checkpoints(dir);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    // Two processes may share the folder; the lock ends when the file is closed.
    file.lock()?;
    append_to(&mut file, line)?;
    Ok(file)
}

/// Writes a line at the end of a locked file.
pub(super) fn append_to(file: &mut File, line: &str) -> io::Result<()> {
    let end = end_of_last_line(file)?;
    // A line that a crash tore was never acknowledged. Left there, it would spoil the next one.
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Finds the end of the last complete line, reading backwards in blocks: the file grows for years.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 4096;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        (&*file).take(end - start).read_to_end(&mut block)?;
        let found = complete(&block);
        if found > 0 {
            return Ok(start + found as u64);
        }
        end = start;
    }
    Ok(0)
}
