//! What was installed where: one file for each place, for its owner alone.

use super::skill_folder::SkillFolder;
use crate::cli::{Exit, Failure, Terminal, config_folder, replace_file};
use clap::ArgMatches;
use provost_skill_package::{ManifestFile, sha256};
use provost_words::Secret;
use provost_words::entropy::{Entropy, SystemEntropy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How far an install is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Files may lie there or not.
    Installing,
    /// All files were written.
    Installed,
    /// Files may be gone or not.
    Uninstalling,
    /// No file of it is there any more; the server may not know.
    Removed,
}

/// One install of a skill at one place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// How far it is.
    pub state: State,
    /// The URL of the server.
    pub server: String,
    /// The organization's key.
    pub organization: String,
    /// The item's id.
    pub item_id: String,
    /// `[namespace/]name`.
    #[serde(rename = "ref")]
    pub item_ref: String,
    /// The skill's name, which is the folder's.
    pub name: String,
    /// The installed version.
    pub version: String,
    /// The digest of the package.
    pub digest: String,
    /// What the skill is for: `claude-code`.
    pub client: String,
    /// What this machine is called.
    pub device: String,
    /// The folder with the files.
    pub path: PathBuf,
    /// The install's id on the server.
    pub install_id: String,
    /// When the server counted it.
    pub installed_at: String,
    /// What was or is being written.
    pub files: Vec<ManifestFile>,
    /// What an update replaces, as long as it is under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<ManifestFile>,
    /// The signed listing; null until it was checked.
    pub envelope: Value,
}

impl Receipt {
    /// Returns every file that these commands may have written there.
    pub fn known(&self) -> Vec<ManifestFile> {
        self.files.iter().chain(&self.previous).cloned().collect()
    }
}

/// The folder of the receipts.
pub struct Receipts {
    folder: PathBuf,
    /// Held as long as something may change.
    _lock: Option<File>,
}

impl Receipts {
    /// Opens them for reading.
    pub fn read(matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        Ok(Self {
            folder: config_folder(matches, terminal)?.join("skills"),
            _lock: None,
        })
    }

    /// Opens them for a change; no other command changes them at the same time.
    ///
    /// Errors: conflict, when another one does.
    pub fn change(matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        Self::change_in(config_folder(matches, terminal)?.join("skills"))
    }

    /// Opens those of a folder for a change, which is made for its owner alone where it is missing.
    ///
    /// Errors: conflict, when another one changes them.
    pub fn change_in(folder: PathBuf) -> Result<Self, Failure> {
        let lock = folder.join("lock");
        let opened = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .and_then(|()| {
                let mut open = OpenOptions::new();
                open.write(true)
                    .create(true)
                    .truncate(false)
                    .mode(0o600)
                    .open(&lock)
            });
        let file = opened.map_err(|error| cannot("use", &lock, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                folder,
                _lock: Some(file),
            }),
            Err(TryLockError::WouldBlock) => {
                let line = "another `provost skills` command is changing the skills of this machine";
                Err(Failure::new(Exit::Conflict, line).and("wait until it is done, then repeat this one"))
            }
            Err(TryLockError::Error(error)) => Err(cannot("lock", &lock, &error)),
        }
    }

    /// Returns all receipts, by name and place.
    ///
    /// Errors: output, when one cannot be read or is none.
    pub fn all(&self) -> Result<Vec<Receipt>, Failure> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot("read", &self.folder, &error)),
        };
        let mut receipts: Vec<Receipt> = Vec::new();
        for entry in entries {
            let path = entry
                .map_err(|error| cannot("read", &self.folder, &error))?
                .path();
            if path.extension().is_some_and(|ending| ending == "json") && !is_hidden(&path) {
                let bytes = fs::read(&path).map_err(|error| cannot("read", &path, &error))?;
                receipts.push(serde_json::from_slice(&bytes).map_err(|error| {
                    let line = format!("{} is no receipt: {error}", path.display());
                    Failure::new(Exit::Output, line)
                })?);
            }
        }
        receipts.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(receipts)
    }

    /// Returns the receipt of a place.
    pub fn at(&self, place: &SkillFolder) -> Result<Option<Receipt>, Failure> {
        let all = self.all()?.into_iter();
        Ok(all.into_iter().find(|receipt| receipt.path == place.folder))
    }

    /// Writes a receipt.
    pub fn save(&self, receipt: &Receipt) -> Result<(), Failure> {
        let path = self.path(receipt, "json");
        let written = serde_json::to_vec_pretty(receipt)
            .map_err(io::Error::other)
            .and_then(|bytes| replace_file(&path, &bytes, 0o600));
        written.map_err(|error| cannot("write", &path, &error))
    }

    /// Keeps the gateway token of an install and returns where.
    pub fn keep_token(&self, receipt: &Receipt, token: &Secret<String>) -> Result<PathBuf, Failure> {
        // INVARIANT SL-4: 0600, and nothing else of these commands reads or shows it.
        let path = self.path(receipt, "token");
        replace_file(&path, format!("{}\n", token.expose()).as_bytes(), 0o600)
            .map_err(|error| cannot("write", &path, &error))?;
        Ok(path)
    }

    /// Removes the token of an install; the server has revoked it or will not take it any more.
    pub fn forget_token(&self, receipt: &Receipt) -> Result<(), Failure> {
        remove(&self.path(receipt, "token"))
    }

    /// Removes a receipt and its token.
    pub fn forget(&self, receipt: &Receipt) -> Result<(), Failure> {
        self.forget_token(receipt)?;
        remove(&self.path(receipt, "json"))
    }

    /// Returns the stable name of this machine; made at the first call.
    pub fn device(&self) -> Result<String, Failure> {
        let path = self.folder.join("device");
        if let Ok(name) = fs::read_to_string(&path)
            && !name.trim().is_empty()
        {
            return Ok(name.trim().to_owned());
        }
        // Of the host's name only what a label may hold; the rest of the name makes it unique.
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '.';
        let host: String = host.trim().chars().filter(is_plain).take(64).collect();
        let host = if host.is_empty() { "device" } else { &host };
        let unique = &sha256(&SystemEntropy.seed())[..8];
        let name = format!("{host}-{unique}");
        replace_file(&path, format!("{name}\n").as_bytes(), 0o600)
            .map_err(|error| cannot("write", &path, &error))?;
        Ok(name)
    }

    /// One name for each place, readable by people.
    fn path(&self, receipt: &Receipt, ending: &str) -> PathBuf {
        let place = &sha256(receipt.path.as_os_str().as_encoded_bytes())[..12];
        self.folder.join(format!("{}-{place}.{ending}", receipt.name))
    }
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", path, &error)),
        _ => Ok(()),
    }
}

/// Returns the failure of work on a file of this machine.
pub fn cannot(act: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Output, format!("cannot {act} {}: {error}", path.display()))
}
