//! What an enrolled machine is: its device, its key, its token.

use crate::folder::Folder;
use crate::key::DeviceKey;
use crate::renewal::Next;
use crate::rotation;
use crate::token::Token;
use crate::trouble::{ANEW, Cause, ENROL, Trouble};
use crate::units::systemctl;
use provost_words::digest::sha256_hex;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) const NAME: &str = "device.json";
pub(crate) const CA_CERT: &str = "ca.pem";

/// For whom the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everybody on the machine.
    System,
    /// One person.
    User,
}

impl Mode {
    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
        }
    }
}

/// What the agent keeps of its enrolment. It holds no secret. What a later version of the agent wrote beside it is left out, so that a
/// machine may go back to an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceFile {
    /// The server, without a slash at the end.
    pub server: String,
    /// The key of the organization.
    pub organization: String,
    /// The device.
    pub device_id: String,
    /// Its name.
    pub name: String,
    /// For whom it works.
    pub mode: Mode,
    /// The thumbprint of its key.
    pub key_thumbprint: String,
    /// Whether the token may travel unencrypted to a host that is not this machine.
    #[serde(default)]
    pub allow_plain_http: bool,
    /// Whether the certificates in `ca.pem` vouch for the server, instead of the system's.
    #[serde(default)]
    pub has_own_ca: bool,
    /// A digest of this installation's number, to notice that the folder was copied to another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<String>,
}

/// An enrolled machine.
#[derive(Debug)]
pub struct Agent {
    /// Where everything lies.
    pub folder: Folder,
    /// What it enrolled as.
    pub device: DeviceFile,
    /// Whether a rotation that was begun before ended in this round.
    pub(crate) has_rotated: Cell<bool>,
    /// Replaced where the device has another one.
    pub(crate) key: RefCell<Arc<DeviceKey>>,
    /// Renewed while the agent works.
    pub(crate) token: RefCell<Token>,
    /// A token that is not on the disk yet.
    pub(crate) next: RefCell<Option<Next>>,
    /// The last number that was counted.
    pub(crate) counted: Cell<u64>,
    /// A thread scans.
    pub(crate) scans: Arc<AtomicBool>,
}

impl DeviceFile {
    /// Reads the file; `None` before an enrolment.
    ///
    /// Errors: folder.
    pub fn load(folder: &Folder) -> Result<Option<Self>, Trouble> {
        let Some(bytes) = folder.read(NAME)? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&bytes).map_err(|error| {
            let line = format!("{} cannot be read: {error}", folder.file(NAME).display());
            Trouble::new(Cause::Folder, line).fix(ANEW)
        });
        read.map(Some)
    }

    /// Keeps what an enrolment came to. The file comes last: with it the machine is enrolled.
    ///
    /// Errors: disk.
    pub(crate) fn keep(&self, folder: &Folder, token: &Token) -> Result<(), Trouble> {
        token.keep(folder)?;
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Trouble::new(Cause::Disk, format!("device.json cannot be written: {error}")))?;
        folder.replace(NAME, &text)
    }

    /// Says whether the folder came here from another installation of a system.
    pub fn is_copied_here(&self) -> bool {
        self.is_copied(crate::machine::machine_id().as_deref())
    }

    /// Says whether the folder came from another installation of a system.
    pub fn is_copied(&self, machine_id: Option<&str>) -> bool {
        let here = machine_id.map(|id| installation(id, &self.key_thumbprint));
        matches!((&self.installation, here), (Some(made), Some(here)) if *made != here)
    }
}

/// Returns the digest of an installation's number, which is of no use with another key.
pub(crate) fn installation(machine_id: &str, thumbprint: &str) -> String {
    sha256_hex(format!("provost-agent\n{machine_id}\n{thumbprint}").as_bytes())
}

impl Agent {
    /// Reads what an enrolment left.
    ///
    /// Errors: enrolment, when there was none; folder, when something is missing or not as it has to be.
    pub fn open(folder: &Folder) -> Result<Self, Trouble> {
        Self::open_with(folder, None)
    }

    /// Opens the folder, with a token that is newer than the one in it where there is such a one.
    fn open_with(folder: &Folder, held: Option<Token>) -> Result<Self, Trouble> {
        // What a rotation came to counts, wherever it ended.
        let staged = rotation::staged(folder)?;
        let place = |name: &str| {
            let there = staged.as_ref();
            there
                .filter(|staged| staged.file(name).symlink_metadata().is_ok())
                .unwrap_or(folder)
        };
        let device = DeviceFile::load(place(NAME))?.ok_or_else(|| {
            let line = format!(
                "this machine is not enrolled: {} is missing",
                folder.file(NAME).display()
            );
            Trouble::new(Cause::Enrolment, line).fix(ENROL)
        })?;
        let shown = folder.file("device.key");
        let shown = shown.display();
        let missing = || Trouble::new(Cause::Folder, format!("{shown} is missing")).fix(ANEW);
        let key = DeviceKey::load(place("device.key"))?.ok_or_else(missing)?;
        if key.thumbprint() != device.key_thumbprint {
            let line = format!("{shown} is not the key of the device {}", device.device_id);
            return Err(Trouble::new(Cause::Folder, line)
                .fix(format!("put back the file that belongs there, or {ANEW}")));
        }
        if device.has_own_ca && folder.read(CA_CERT)?.is_none() {
            let line = format!("{} is missing", folder.file(CA_CERT).display());
            return Err(Trouble::new(Cause::Folder, line)
                .fix("put the certificates (PEM) that vouch for the server there, chmod 600"));
        }
        Ok(Self {
            folder: folder.clone(),
            token: RefCell::new(match held {
                Some(token) => token,
                None => Token::load(place("token"))?,
            }),
            device,
            has_rotated: Cell::new(false),
            key: RefCell::new(Arc::new(key)),
            next: RefCell::new(None),
            counted: Cell::new(0),
            scans: Arc::default(),
        })
    }

    /// Looks at the folder and at the files that hold secrets again: they may have been opened to others since, and another process may have
    /// come by another key or token before this one had the lock. Whoever calls has it.
    ///
    /// Errors: folder, also when one of them is gone, and where the folder is another device's by now.
    pub(crate) fn look_again(&self) -> Result<(), Trouble> {
        // A home that is away for a moment comes back.
        let folder = Folder::open(self.folder.path()).map_err(|trouble| match trouble.cause {
            Cause::Enrolment => Trouble {
                cause: Cause::Disk,
                ..trouble
            },
            _ => trouble,
        })?;
        for name in ["device.key", "token"] {
            if folder.read(name)?.is_none() {
                let line = format!("{} is gone", folder.file(name).display());
                return Err(Trouble::new(Cause::Folder, line).fix(ANEW));
            }
        }
        self.catch_up()
    }

    /// Takes the key and the token that lie in the folder in the place of those that were read before: whoever calls by a key that the device
    /// gave up has it quarantined, and by a token that was renewed has it suspected.
    ///
    /// Errors: folder.
    fn catch_up(&self) -> Result<(), Trouble> {
        // One that found no room on the disk yet is the latest that there is.
        let held = self.next.borrow().is_some();
        let held = held.then(|| self.token.borrow().clone());
        let mut there = Self::open_with(&self.folder, held)?;
        if there.device.device_id != self.device.device_id {
            let line = format!(
                "{} is the device {} by now, and was {}",
                self.folder.path().display(),
                there.device.device_id,
                self.device.device_id
            );
            return Err(Trouble::new(Cause::Folder, line).fix(format!(
                "start the agent again: {} restart provost-agent where it is the service",
                systemctl(self.device.mode)
            )));
        }
        if there.key().thumbprint() != self.key().thumbprint() {
            // A token has its key.
            if self.next.replace(None).is_some() {
                there = Self::open(&self.folder)?;
            }
            self.key.replace(there.key());
        }
        self.token.replace(there.token.into_inner());
        Ok(())
    }

    /// Returns the key that the device is.
    pub(crate) fn key(&self) -> Arc<DeviceKey> {
        self.key.borrow().clone()
    }

    /// Returns when its token ends, where it is not renewed before.
    pub fn token_expires_at(&self) -> Timestamp {
        self.token.borrow().expires_at
    }

    /// Returns the path of the certificates that vouch for the server, instead of the system's.
    pub fn ca_cert(&self) -> Option<PathBuf> {
        self.device.has_own_ca.then(|| self.folder.file(CA_CERT))
    }
}
