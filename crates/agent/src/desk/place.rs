//! Where hooks find the agent, and why they believe what they find there.
//!
//! ```text
//!               socket                          the organization's mode
//! the machine   /run/provost-agent/agent.sock   /var/cache/provost-agent/mode.json    root's, and nobody else can write there
//! a person      beside their hook.toml          beside their hook.toml                that person's
//! ```
//!
//! The mode lies on a disk that outlives a restart: a machine whose agent does not come up refuses what it cannot ask about. Beside it lies
//! the mark of a machine that is held apart, `quarantine.json`, as long as it is.

use crate::quarantine::{KeptQuarantine, QUARANTINE, Quarantine, of_mark};
use crate::trouble::{Cause, Trouble};
use provost_bundle::HookMode;
use provost_words::durable::{folder_of, sync_folder};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the socket.
pub const SOCKET: &str = "agent.sock";
/// The name of the file that holds the organization's mode.
pub const MODE_FILE: &str = "mode.json";
const MACHINE_SOCKET: &str = "run/provost-agent";
const MACHINE_MODE: &str = "var/cache/provost-agent";
/// LIMIT: bytes of the file of a mode.
const MOST: u64 = 4 << 10;

/// A place where hooks find an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket.
    pub socket: PathBuf,
    /// The file of the organization's mode.
    pub mode: PathBuf,
    /// The account to which both belong, and of which the agent is.
    pub owner: u32,
    /// Whether every account of the machine may ask there.
    pub is_everybodys: bool,
    /// Above it nothing is looked at.
    top: PathBuf,
}

/// What is kept of the organization's mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptMode {
    /// The server that said it.
    pub server: String,
    /// The organization.
    pub organization: String,
    /// The mode.
    pub mode: HookMode,
    /// Whether servers of MCP are denied there: without the agent nobody can say whether a call is for one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denies: bool,
}

impl Place {
    /// Returns that of the machine, below a root: `/` and the account 0, or what stands for them.
    pub fn of_machine(root: &Path, owner: u32) -> Self {
        Self {
            socket: root.join(MACHINE_SOCKET).join(SOCKET),
            mode: root.join(MACHINE_MODE).join(MODE_FILE),
            owner,
            is_everybodys: true,
            top: root.to_owned(),
        }
    }

    /// Returns that of a person: the folder of their `hook.toml`.
    pub fn of_person(folder: &Path, owner: u32) -> Self {
        Self {
            socket: folder.join(SOCKET),
            mode: folder.join(MODE_FILE),
            owner,
            is_everybodys: false,
            top: folder_of(folder).to_owned(),
        }
    }

    /// Says whether the socket lies where its owner alone could have put it.
    ///
    /// Errors: why it does not.
    pub fn check_socket(&self) -> Result<(), String> {
        guarded(&self.top, folder_of(&self.socket), self.owner)
    }

    /// Returns the mode that an organization of a server was known to have last, or whatever organization it was; nothing where nobody
    /// knows it, or somebody else than the owner could have written it.
    pub fn known_mode(&self, of: Option<(&str, &str)>) -> Option<HookMode> {
        self.known(of).map(|kept| kept.mode)
    }

    /// Says whether servers of MCP were known to be denied there last; they are not where nobody knows it.
    pub fn knows_denials(&self, of: Option<(&str, &str)>) -> bool {
        self.known(of).is_some_and(|kept| kept.denies)
    }

    fn known(&self, of: Option<(&str, &str)>) -> Option<KeptMode> {
        let kept: KeptMode = serde_json::from_slice(&self.owners(&self.mode)?).ok()?;
        let is_meant = of.is_none_or(|of| of == (kept.server.as_str(), kept.organization.as_str()));
        is_meant.then_some(kept)
    }

    /// Returns the bytes of a file beside the mode; nothing where somebody else than the owner could have written it.
    fn owners(&self, path: &Path) -> Option<Vec<u8>> {
        guarded(&self.top, folder_of(path), self.owner).ok()?;
        let found = path.symlink_metadata().ok()?;
        if !found.is_file() || found.uid() != self.owner || found.mode() & 0o022 != 0 {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Returns the file of the mark of a machine that is held apart.
    #[must_use]
    pub fn quarantine_mark(&self) -> PathBuf {
        self.mode.with_file_name(QUARANTINE)
    }

    /// Returns how an organization of a server, or whatever organization it was, holds this machine apart; nothing where it does not. A mark
    /// that cannot be looked at, or that others could have written, holds: it is there for nothing else, and nobody gains by it.
    ///
    /// Keeps LJ-13.
    #[must_use]
    pub fn quarantine(&self, of: Option<(&str, &str)>) -> Option<Quarantine> {
        let path = self.quarantine_mark();
        if is_gone(&path) {
            return None;
        }
        match self.owners(&path) {
            Some(bytes) => of_mark(&bytes, of),
            // It may have gone meanwhile.
            None => (!is_gone(&path)).then_some(Quarantine::Block),
        }
    }

    /// Keeps the mark.
    ///
    /// Errors: disk, folder.
    pub fn keep_quarantine(&self, kept: &KeptQuarantine) -> Result<(), Trouble> {
        let path = self.quarantine_mark();
        let bytes = serde_json::to_vec(kept).unwrap_or_default();
        if self.owners(&path).as_ref() == Some(&bytes) {
            return Ok(());
        }
        self.make(folder_of(&path))?;
        let draft = path.with_extension("new");
        let written = write(&draft, &bytes, self.file_mode()).and_then(|()| fs::rename(&draft, &path));
        written
            .and_then(|()| sync_folder(folder_of(&path)))
            .map_err(|error| unwritten(&path, &error))
    }

    /// Removes the mark, whatever organization made it: the agent that does has this place now.
    ///
    /// Errors: disk.
    pub fn remove_quarantine(&self) -> Result<(), Trouble> {
        let path = self.quarantine_mark();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(unwritten(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Keeps the mode.
    ///
    /// Errors: disk, folder.
    pub fn keep_mode(&self, kept: &KeptMode) -> Result<(), Trouble> {
        if self.known(Some((&kept.server, &kept.organization))).as_ref() == Some(kept) {
            return Ok(());
        }
        self.make(folder_of(&self.mode))?;
        let draft = self.mode.with_extension("new");
        let bytes = serde_json::to_vec(kept).unwrap_or_default();
        let written = write(&draft, &bytes, self.file_mode()).and_then(|()| fs::rename(&draft, &self.mode));
        written.map_err(|error| unwritten(&self.mode, &error))
    }

    /// Removes what hooks find, but for the mark of a machine that is held apart, which the server alone takes back, and the mode by which that
    /// mark refuses.
    ///
    /// Keeps LJ-13.
    ///
    /// Errors: disk.
    pub fn clear(&self) -> Result<(), Trouble> {
        let mode = self.quarantine(None).is_none().then_some(&self.mode);
        for path in [Some(&self.socket), mode].into_iter().flatten() {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritten(path, &error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a folder where it is missing, and looks whether its owner alone can write there.
    ///
    /// Errors: disk, folder.
    pub(crate) fn make(&self, folder: &Path) -> Result<(), Trouble> {
        if folder.symlink_metadata().is_err() {
            let bits = if self.is_everybodys { 0o755 } else { 0o700 };
            // Whatever the mask says: others have to find it.
            let made = fs::DirBuilder::new()
                .recursive(true)
                .mode(bits)
                .create(folder)
                .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(bits)));
            made.map_err(|error| unwritten(folder, &error))?;
        }
        guarded(&self.top, folder, self.owner).map_err(|why| Trouble::new(Cause::Folder, why))
    }

    /// Returns the mode of files that those read who may ask.
    fn file_mode(&self) -> u32 {
        if self.is_everybodys { 0o644 } else { 0o600 }
    }
}

/// Says whether a folder, and every one above it below `top`, belongs to an account and can be changed by nobody else.
///
/// Errors: which one does not.
pub fn guarded(top: &Path, folder: &Path, owner: u32) -> Result<(), String> {
    let below = folder.strip_prefix(top).unwrap_or(folder);
    let mut path = top.to_owned();
    for part in below {
        path.push(part);
        let shown = path.display();
        let found = path
            .symlink_metadata()
            .map_err(|error| format!("cannot look at {shown}: {error}"))?;
        let is_owners = found.uid() == owner || found.uid() == 0;
        if !found.is_dir() || !is_owners || found.mode() & 0o022 != 0 {
            return Err(format!(
                "{shown} is no folder that the account {owner} alone can change"
            ));
        }
    }
    Ok(())
}

/// Says whether nothing lies at a path, not even a link; what cannot be looked at may lie there.
fn is_gone(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn unwritten(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::new(Cause::Disk, format!("cannot write {}: {error}", path.display()))
}
