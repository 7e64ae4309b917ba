//! The keys in one file for another machine, encrypted with a passphrase (age, scrypt).

use super::passphrase;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store_flags::StoreFlags;
use age::{Decryptor, Encryptor, scrypt};
use provost_kernel::Secret;
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// LIMIT: the largest export that is read. A key has 130 bytes, a checkpoint 400; a year of minutes fits.
const LARGEST: u64 = 1 << 30;
/// LIMIT: the work that an export may ask of the importing machine, as a power of two.
const MOST_WORK: u8 = 22;

/// Write every key into one file, encrypted with a passphrase.
///
/// The file can be opened with the passphrase by `provost keys import` and by age. It is never overwritten.
#[derive(clap::Parser)]
#[command(
    name = "export",
    after_help = "Examples:
  provost keys export keys.age
  provost keys export keys.age --passphrase-file /run/secrets/passphrase"
)]
pub struct Export {
    /// The new file
    file: PathBuf,
    /// Read the passphrase from this file instead of asking for it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreFlags,
}

impl Export {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let (dir, _) = self.store.load_quietly()?.store.keys_dir();
        let keys = Keys::open(&dir)?;
        let plain = keys.export_plain()?;
        let failed = |error| Failure::of_file("the export cannot be written to", &self.file, &error);
        if self.file.exists() {
            return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
        }
        let passphrase = passphrase::new(self.passphrase_file.as_deref())?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.file)
            .map_err(failed)?;
        let mut encrypted = Vec::new();
        let written = Encryptor::with_user_passphrase(passphrase)
            .wrap_output(&mut encrypted)
            .and_then(|mut writer| {
                writer.write_all(plain.expose().as_bytes())?;
                writer.finish().map(drop)
            })
            .and_then(|()| file.write_all(&encrypted))
            .and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Half an export would only be mistaken for one.
            let _ = std::fs::remove_file(&self.file);
            return Err(failed(error));
        }
        show::out(&format!(
            "{} keys were written to {}. Keep it apart from the backups.\n",
            keys.ids().len(),
            self.file.display()
        ))?;
        Ok(())
    }
}

/// Bring the keys of an export into an empty keys folder.
#[derive(clap::Parser)]
#[command(
    name = "import",
    after_help = "Examples:
  provost keys import keys.age --keys-dir /etc/provost/keys
  provost keys import keys.age --passphrase-file /run/secrets/passphrase"
)]
pub struct Import {
    /// The file that `provost keys export` wrote
    file: PathBuf,
    /// Read the passphrase from this file instead of asking for it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreFlags,
}

impl Import {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let (dir, _) = self.store.load_quietly()?.store.keys_dir();
        if Keys::exists(&dir) {
            return Err(Failure::new(format!(
                "{} already holds keys; they are never overwritten",
                dir.display()
            )));
        }
        let passphrase = passphrase::known(self.passphrase_file.as_deref())?;
        let plain = decrypt(&self.file, passphrase)?;
        let keys = Keys::import_plain(&dir, &plain, SystemClock::new().now())?;
        show::out(&format!(
            "{} keys were brought into {}.\n",
            keys.ids().len(),
            dir.display()
        ))?;
        Ok(())
    }
}

fn decrypt(path: &Path, passphrase: age::secrecy::SecretString) -> Result<Secret<String>, Failure> {
    let unreadable = |error| Failure::of_file("the export cannot be read", path, &error);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(MOST_WORK);
    let closed = |error: age::DecryptError| match error {
        age::DecryptError::DecryptionFailed
        | age::DecryptError::KeyDecryptionFailed
        | age::DecryptError::NoMatchingKeys => {
            Failure::new(format!("{} does not open with this passphrase", path.display()))
        }
        other => Failure::new(format!(
            "{} is no export of provost keys: {other}",
            path.display()
        )),
    };
    let decryptor = Decryptor::new_buffered(std::io::BufReader::new(file)).map_err(closed)?;
    let reader = decryptor
        .decrypt(std::iter::once(&identity as &dyn age::Identity))
        .map_err(closed)?;
    let mut plain = Zeroizing::new(String::new());
    reader
        .take(LARGEST)
        .read_to_string(&mut plain)
        .map_err(unreadable)?;
    Ok(Secret::new(std::mem::take(&mut *plain)))
}
