//! The profile file: named servers with an organization and, if wanted, a token.

use super::failure::{Exit, Failure};
use super::terminal::Surroundings;
use super::whole_file::{remove_drafts, replace_file};
use provost_words::Secret;
use provost_words::durable::folder_of;
use provost_words::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// LIMIT: a profile has a few hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

/// LIMIT: how long somebody waits for a change of another command, which may renew a sign-in meanwhile.
const LOCK_ATTEMPTS: u32 = 800;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// One named server.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    pub(super) url: Option<String>,
    pub(super) organization: Option<String>,
    pub(super) token: Option<Secret<String>>,
    /// What renews the token, where somebody signed in with a browser.
    pub(super) sign_in: Option<SignIn>,
}

/// What a sign-in leaves beside its access token.
#[derive(Clone, Debug)]
pub(super) struct SignIn {
    /// Serves once, for the next token.
    pub(super) refresh_token: Secret<String>,
    /// When the access token ends, by the clock of this machine.
    pub(super) expires_at: Timestamp,
    /// When somebody signed in, which a renewal does not change: another time is another sign-in.
    pub(super) began_at: Option<Timestamp>,
}

/// The whole file.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    pub(super) current: Option<String>,
    pub(super) by_name: BTreeMap<String, Profile>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    current: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Entry>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    organization: Option<String>,
    token: Option<String>,
    refresh_token: Option<String>,
    token_expires_at: Option<String>,
    signed_in_at: Option<String>,
}

impl Entry {
    fn profile(self) -> Profile {
        let sign_in = self.refresh_token.map(|token| SignIn {
            refresh_token: Secret::new(token),
            // Without a time that can be read it is renewed before it is used.
            expires_at: self
                .token_expires_at
                .and_then(|text| Timestamp::parse(&text))
                .unwrap_or(Timestamp::EPOCH),
            began_at: self.signed_in_at.and_then(|text| Timestamp::parse(&text)),
        });
        Profile {
            url: self.url,
            organization: self.organization,
            token: self.token.map(Secret::new),
            sign_in,
        }
    }
}

/// Returns where the file is when nobody says.
pub(super) fn default_path(surroundings: &Surroundings) -> Option<PathBuf> {
    let config = surroundings
        .config_home
        .clone()
        .or_else(|| Some(surroundings.home.as_ref()?.join(".config")))?;
    Some(config.join("provost").join("profiles.toml"))
}

/// Says whether a file's permissions keep other people out: the six bits of group and others are clear.
pub(super) fn is_private(mode: u32) -> bool {
    mode.trailing_zeros() >= 6
}

impl Profiles {
    /// Reads the file; `None` when there is none.
    ///
    /// Errors: usage, when it cannot be read, is not a profile file, or holds a token that others can read.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, Failure> {
        let shown = path.display();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::usage(format!("cannot read {shown}: {error}"))),
        };
        let cannot = |error: io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
        // Of the open file, so that what is judged is what is read.
        let mode = file.metadata().map_err(cannot)?.mode();
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(cannot)?;
        let document: Document = toml::from_str(&text).map_err(|error| {
            // Only the place: a line of this file may hold a token.
            let line = error
                .span()
                .map_or(0, |span| text[..span.start.min(text.len())].lines().count());
            Failure::usage(format!(
                "{shown} is not a profile file: line {}: {}",
                line.max(1),
                error.message()
            ))
        })?;
        let holds_token = |entry: &Entry| entry.token.is_some() || entry.refresh_token.is_some();
        if document.profiles.values().any(holds_token) && !is_private(mode) {
            let line = format!("{shown} holds a token and other users of this machine can read or change it");
            return Err(Failure::usage(line).and(format!("close it first: chmod 600 {shown}")));
        }
        let profiles = document.profiles.into_iter();
        Ok(Some(Self {
            current: document.current,
            by_name: profiles.map(|(name, entry)| (name, entry.profile())).collect(),
        }))
    }

    /// Takes the lock of the file, as whoever reads it to write it does; it ends with the value that is returned.
    ///
    /// Errors: output, when there can be none.
    pub(super) fn lock(path: &Path) -> Result<File, Failure> {
        for _ in 0..LOCK_ATTEMPTS {
            if let Some(lock) = Self::try_lock(path)? {
                return Ok(lock);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let line = format!("another provost has held {} for too long", path.display());
        Err(Failure::new(Exit::Output, line).and("end it, and repeat the command"))
    }

    /// Takes the lock unless somebody else has it.
    ///
    /// Errors: as [`Self::lock`].
    pub(super) fn try_lock(path: &Path) -> Result<Option<File>, Failure> {
        let (file, shown) = lock_file(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot_lock(&shown, &error)),
        }
    }

    /// Writes the file anew, readable by its owner alone, in one step; who does has its lock.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let path = &real(path);
        make_folder(path)?;
        remove_drafts(path);
        replace_file(path, self.text().expose().as_bytes(), 0o600)
    }

    fn text(&self) -> Secret<String> {
        let mut text = String::new();
        if let Some(current) = &self.current {
            line(&mut text, "current", current);
        }
        for (name, profile) in &self.by_name {
            let _ = writeln!(text, "\n[profiles.{}]", Value::from(name.as_str()));
            let token = profile.token.as_ref().map(Secret::expose);
            let sign_in = profile.sign_in.as_ref();
            let began = sign_in
                .and_then(|sign_in| sign_in.began_at)
                .map(Timestamp::to_rfc3339);
            let ends = sign_in.map(|sign_in| sign_in.expires_at.to_rfc3339());
            let members = [
                ("url", profile.url.as_ref()),
                ("organization", profile.organization.as_ref()),
                ("token", token),
                (
                    "refresh_token",
                    sign_in.map(|sign_in| sign_in.refresh_token.expose()),
                ),
                ("token_expires_at", ends.as_ref()),
                ("signed_in_at", began.as_ref()),
            ];
            for (member, value) in members {
                if let Some(value) = value {
                    line(&mut text, member, value);
                }
            }
        }
        Secret::new(text)
    }
}

/// The lock lies beside the file, which is another one after each change.
fn lock_file(path: &Path) -> Result<(File, PathBuf), Failure> {
    let path = &real(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let lock = path.with_file_name(name);
    // A link that somebody put there would have an empty file made wherever it points to.
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let open = || {
        make_folder(path)?;
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(no_link)
            .open(&lock)
    };
    let file = open().map_err(|error| cannot_lock(&lock, &error))?;
    Ok((file, lock))
}

/// Returns the file behind links: one lock for whatever path leads to it, and no second file that keeps what was renewed.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder_of(path))
}

fn cannot_lock(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Output, format!("cannot lock {}: {error}", path.display()))
}

/// No value has a character that TOML and JSON spell differently; `profile set` sees to it.
fn line(text: &mut String, member: &str, value: &str) {
    let _ = writeln!(text, "{member} = {}", Value::from(value));
}
