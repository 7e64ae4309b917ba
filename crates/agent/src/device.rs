//! What an enrolled machine is: its device, its key, its token.

use crate::folder::Folder;
use crate::key::DeviceKey;
use crate::trouble::{Cause, Trouble};
use provost_words::Secret;
use provost_words::digest::sha256_hex;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;

const NAME: &str = "device.json";
const TOKEN: &str = "token";

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

/// What the agent keeps of its enrolment. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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
    /// The end of its token's life.
    pub token_expires_at: Timestamp,
    /// Whether the token may travel unencrypted to a host that is not this machine.
    #[serde(default)]
    pub allow_plain_http: bool,
    /// The certificates that vouch for the server, instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<PathBuf>,
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
    pub(crate) key: DeviceKey,
    /// Renewed while the agent works.
    pub(crate) token: RefCell<Secret<String>>,
    pub(crate) token_expires_at: Cell<Timestamp>,
    /// The token is newer than what lies on the disk.
    pub(crate) is_unkept: Cell<bool>,
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
            Trouble::new(Cause::Folder, line).fix("have the device retired, remove the folder and enrol anew")
        });
        read.map(Some)
    }

    /// Keeps what an enrolment came to. The file comes last: with it the machine is enrolled.
    ///
    /// Errors: disk.
    pub fn keep(&self, folder: &Folder, token: &Secret<String>) -> Result<(), Trouble> {
        let line = Secret::new(format!("{}\n", token.expose()));
        folder.replace(TOKEN, line.expose().as_bytes())?;
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Trouble::new(Cause::Disk, format!("device.json cannot be written: {error}")))?;
        folder.replace(NAME, &text)
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

/// Says whether a text can be the token of a device.
pub(crate) fn is_device_token(text: &str) -> bool {
    text.starts_with("prov_dvt_") && text.len() <= 8_192 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Agent {
    /// Reads what an enrolment left.
    ///
    /// Errors: enrolment, when there was none; folder, when something is missing or not as it has to be.
    pub fn open(folder: &Folder) -> Result<Self, Trouble> {
        let missing = |name: &str| {
            let line = format!("{} is missing", folder.file(name).display());
            Trouble::new(Cause::Folder, line).fix("have the device retired, remove the folder and enrol anew")
        };
        let device = DeviceFile::load(folder)?.ok_or_else(|| {
            let line = format!(
                "this machine is not enrolled: {} is missing",
                folder.file(NAME).display()
            );
            Trouble::new(Cause::Enrolment, line)
                .fix("provost agent enrol --server URL --organization KEY --token-file FILE")
        })?;
        let key = DeviceKey::load(folder)?.ok_or_else(|| missing("device.key"))?;
        if key.thumbprint() != device.key_thumbprint {
            let line = format!(
                "{} is not the key of the device {}",
                folder.file("device.key").display(),
                device.device_id
            );
            return Err(Trouble::new(Cause::Folder, line)
                .fix("put back the file that belongs there, or have the device retired and enrol anew"));
        }
        let token = Secret::new(folder.read(TOKEN)?.ok_or_else(|| missing(TOKEN))?);
        let token = std::str::from_utf8(token.expose())
            .unwrap_or_default()
            .trim()
            .to_owned();
        let token = Secret::new(token);
        let is_token =
            !token.expose().is_empty() && token.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token {
            let line = format!(
                "{} does not hold one token on one line",
                folder.file(TOKEN).display()
            );
            return Err(Trouble::new(Cause::Folder, line).fix("have the device retired and enrol anew"));
        }
        Ok(Self {
            folder: folder.clone(),
            token_expires_at: Cell::new(device.token_expires_at),
            device,
            key,
            token: RefCell::new(token),
            is_unkept: Cell::new(false),
        })
    }
}
