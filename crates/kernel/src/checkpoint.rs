//! Signed checkpoints: C2SP tlog-checkpoint in a C2SP signed note (D12.5).
//!
//! ```text
//! <origin>\n<size>\n<base64 of the root>\n
//! \n
//! — <key name> <base64 of key hash ‖ Ed25519 signature>\n
//! ```

use crate::error::{Error, Result};
use crate::keys::{Keys, key_hash};
use crate::merkle::Hash;
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// LIMIT: far above the longest note, so that a file that is something else is not searched for long.
const NOTE_LIMIT: usize = 64 * 1024;

/// What is known about a log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's name: one line, not empty.
    pub origin: String,
    /// How many entries the log has.
    pub size: u64,
    /// The Merkle root over them.
    pub root: Hash,
}

impl Checkpoint {
    /// Returns the checkpoint as a note signed with the current key.
    pub fn sign(&self, keys: &Keys) -> String {
        let text = format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root));
        let (name, hash, signature) = keys.sign_checkpoint(text.as_bytes());
        let signature = STANDARD.encode([hash.to_be_bytes().as_slice(), &signature].concat());
        format!("{text}\n— {name} {signature}\n")
    }
}

/// Returns the checkpoint of a note that one of the named public keys signed.
///
/// Signatures of other keys, such as those of witnesses, are passed over; one that names a key of ours and
/// is wrong spoils the note. Lines after the root are extensions: signed, and not looked at.
///
/// Errors: `InvalidRequest`.
pub fn parse_and_verify(note: &str, public_keys: &[(String, [u8; 32])]) -> Result<Checkpoint> {
    let malformed = || Error::invalid("", "the checkpoint is malformed");
    if note.len() > NOTE_LIMIT || note.chars().any(|c| c != '\n' && c.is_ascii_control()) {
        return Err(malformed());
    }
    let (text, signatures) = note.rsplit_once("\n\n").ok_or_else(malformed)?;
    let signatures = signatures.strip_suffix('\n').ok_or_else(malformed)?;
    let signed = &note[..=text.len()];
    let mut verified = false;
    for line in signatures.split('\n') {
        let (name, hash, signature) = signature(line).ok_or_else(malformed)?;
        let known = public_keys
            .iter()
            .find(|(n, key)| *n == name && key_hash(n, key) == hash);
        let Some((_, key)) = known else {
            continue;
        };
        UnparsedPublicKey::new(&ED25519, key)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| Error::invalid("", "the checkpoint's signature is wrong"))?;
        verified = true;
    }
    if !verified {
        return Err(Error::invalid(
            "",
            "the checkpoint is signed by no key that is trusted",
        ));
    }
    checkpoint(text).ok_or_else(malformed)
}

/// Splits a signature line into the key's name, the key's hash and the signature.
fn signature(line: &str) -> Option<(&str, u32, Vec<u8>)> {
    let (name, encoded) = line.strip_prefix("— ")?.split_once(' ')?;
    let decoded = STANDARD.decode(encoded).ok()?;
    let (hash, signature) = decoded.split_first_chunk::<4>()?;
    let named = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '+');
    named.then(|| (name, u32::from_be_bytes(*hash), signature.to_vec()))
}

fn checkpoint(text: &str) -> Option<Checkpoint> {
    let mut lines = text.split('\n');
    let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
    let size = size
        .parse::<u64>()
        .ok()
        .filter(|parsed| parsed.to_string() == size)?;
    let root = STANDARD.decode(root).ok()?.try_into().ok()?;
    let well_formed = !origin.is_empty() && lines.all(|line| !line.is_empty());
    well_formed.then(|| Checkpoint {
        origin: origin.to_owned(),
        size,
        root,
    })
}

#[cfg(test)]
mod tests;
