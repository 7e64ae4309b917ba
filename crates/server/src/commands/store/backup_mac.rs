//! The MAC of a backup: one line in a file beside it.
//!
//! A backup travels and lies where the server does not, and a restore makes rights of it. The MAC is over the SHA-256 of the file,
//! under the audit key; the segments of recorded history are named by their digests in it.
//!
//! INVARIANT PF-5: a backup whose content is not the one of its MAC is not restored; one without a MAC only by the
//! operator's word, which stands in the audit logs.

use crate::commands::failure::{Failure, Outcome};
use aws_lc_rs::digest::{Context, SHA256};
use provost_kernel::audit::hex;
use provost_kernel::durable::make_private_file;
use provost_kernel::keys::{Keys, MacPurpose};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MacLine {
    key_id: String,
    mac: String,
}

/// Writes on, and keeps the digest of what it wrote.
pub struct DigestWriter<W> {
    to: W,
    context: Context,
}

impl<W: Write> DigestWriter<W> {
    /// Returns a writer to `to`.
    pub fn new(to: W) -> Self {
        let context = Context::new(&SHA256);
        Self { to, context }
    }

    /// Returns the digest of all that was written.
    pub fn digest(self) -> Vec<u8> {
        self.context.finish().as_ref().to_vec()
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.context.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns the name of the file that holds the MAC of a backup.
pub fn beside(backup: &Path) -> PathBuf {
    let mut name = backup.as_os_str().to_owned();
    name.push(".mac");
    name.into()
}

/// Writes the MAC of a backup, durably. One that is there belongs to a backup that is gone.
///
/// Errors: those of the two files; no MAC is left then.
pub fn write(keys: &Keys, backup: &Path) -> Outcome {
    let unread = |error| Failure::of_file("the backup cannot be read again", backup, &error);
    let mut source = std::fs::File::open(backup).map_err(unread)?;
    let mut digesting = DigestWriter::new(io::sink());
    io::copy(&mut source, &mut digesting).map_err(unread)?;
    let (key_id, mac) = keys.named_mac(MacPurpose::Backup, &[&digesting.digest()]);
    let line = MacLine {
        key_id,
        mac: hex(&mac),
    };
    let file = beside(backup);
    let text = serde_json::to_string(&line).map_err(provost_kernel::Error::internal)?;
    put(&file, &format!("{text}\n")).map_err(|error| {
        let _ = std::fs::remove_file(&file);
        Failure::of_file("the MAC of the backup cannot be written", &file, &error)
    })
}

fn put(file: &Path, text: &str) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if !make_private_file(file)? {
        return Err(ErrorKind::AlreadyExists.into());
    }
    std::fs::OpenOptions::new()
        .write(true)
        .open(file)?
        .write_all(text.as_bytes())?;
    super::backup::sync(file).map(drop)
}

/// Says whether there is a MAC of a backup whose content has this digest.
///
/// Errors: a sentence for a MAC that is another, that cannot be read, or whose key is missing.
pub fn fits(keys: &Keys, backup: &Path, digest: &[u8]) -> Result<bool, Failure> {
    let file = beside(backup);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(Failure::of_file(
                "the MAC of the backup cannot be read",
                &file,
                &error,
            ));
        }
    };
    let line: MacLine = serde_json::from_str(&text).map_err(|_| {
        Failure::new(format!(
            "the MAC of the backup in {} cannot be understood; bring the file back as `store backup` wrote it",
            file.display()
        ))
    })?;
    let Some(mac) = keys.mac_under(MacPurpose::Backup, &line.key_id, &[digest]) else {
        return Err(Failure::new(format!(
            "the MAC of the backup was made with the key {}, which is not in the keys folder; import the keys of this installation",
            line.key_id
        )));
    };
    // Who may try here holds the keys: there is no secret in how long this takes.
    if hex(&mac) == line.mac {
        return Ok(true);
    }
    Err(Failure::new(format!(
        "the backup {} is not the one that its MAC in {} was written for: one of the two was changed or belongs to \
         another, or the keys are those of another installation; take another copy, or name the right keys with --keys-dir",
        backup.display(),
        file.display()
    )))
}
