//! The agent of this machine, as a hook asks it before it asks the server.
//!
//! ```text
//! /etc/provost/hook.toml   ──► root's agent at its one place, whose process the kernel says to be root's
//! a person's hook.toml     ──► that person's agent, in the folder of that very file
//! any other file           ──► nobody: the server is asked
//! ```
//!
//! INVARIANT LJ-8: where root's file registers the hook, root's agent alone is believed, and nothing that a person could have put in its
//! place: no socket, no file and no folder of anybody else, and no word of the environment.
//! INVARIANT LJ-9: where the organization is known to enforce, nothing passes for want of an answer, whatever the registration says.

use super::behind;
use super::preloaded::is_preloaded;
use super::settings::{self, Homes, HookSettings, OF_THE_MACHINE, UserFrom};
use crate::cli::Terminal;
use provost_agent::Quarantine;
use provost_agent::desk::{Asked, Intent, MOST_REPLY, Place, Registered, Told, Word, guarded, reply_of};
use provost_bundle::HookMode;
use provost_hooks::{Client, Mode};
use provost_words::durable::folder_of;
use provost_words::time::{Clock, SystemClock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::geteuid;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a desk that is full is left alone.
const AGAIN: Duration = Duration::from_millis(2);

/// Returns where a person's registration is.
pub fn registration(terminal: &Terminal) -> Option<PathBuf> {
    settings::of_the_user(&Homes::of(terminal))
}

/// Returns what a registration says for whoever judges by it.
///
/// Errors: why it is not believed: others than its owner could have written it, or it cannot be read.
pub fn registered(path: &Path, top: &Path, owner: u32) -> Result<Registered, String> {
    check_file(path, top, owner)?;
    let settings = HookSettings::load(path)?;
    let word = match (settings.user, settings.user_from) {
        (Some(word), _) => Word::Named(word),
        (None, Some(UserFrom::Os)) => Word::OfAccount,
        // What git says stands in a file of the person, and whose the token is the server knows.
        (None, Some(UserFrom::Git) | None) => Word::Unsaid,
    };
    Ok(Registered {
        url: settings.url.trim_end_matches('/').to_owned(),
        organization: settings.organization,
        word,
    })
}

fn check_file(path: &Path, top: &Path, owner: u32) -> Result<(), String> {
    guarded(top, folder_of(path), owner)?;
    let shown = path.display();
    let found = path
        .symlink_metadata()
        .map_err(|error| format!("cannot look at {shown}: {error}"))?;
    if found.is_file() && found.uid() == owner && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(format!(
        "{shown} is no file that the account {owner} alone can change"
    ))
}

/// The agent that a registration believes.
pub struct Desk {
    place: Place,
    registration: PathBuf,
    top: PathBuf,
    /// Whether this process was started with code that is not its own.
    is_preloaded: bool,
}

impl Desk {
    /// Returns that of a registration; `None` where it believes nobody.
    pub fn of(path: &Path, homes: &Homes) -> Option<Self> {
        if path == Path::new(OF_THE_MACHINE) {
            return Some(Self::of_machine(Path::new("/"), 0));
        }
        if settings::of_the_user(homes).as_deref() == Some(path) {
            return Self::of_person(path, geteuid().as_raw());
        }
        None
    }

    /// Returns that of the machine, below a root and of an account: `/` and 0, or what stands for them.
    pub(super) fn of_machine(root: &Path, owner: u32) -> Self {
        Self {
            place: Place::of_machine(root, owner),
            registration: root.join(OF_THE_MACHINE.trim_start_matches('/')),
            top: root.to_owned(),
            is_preloaded: is_preloaded(),
        }
    }

    fn of_person(path: &Path, owner: u32) -> Option<Self> {
        let folder = path.parent()?;
        Some(Self {
            place: Place::of_person(folder, owner),
            registration: path.to_owned(),
            top: folder.parent()?.to_owned(),
            is_preloaded: is_preloaded(),
        })
    }

    /// The same desk, asked by a process that was started with code that is not its own, or was not.
    #[cfg(test)]
    pub(super) fn preloaded(self, is_preloaded: bool) -> Self {
        Self { is_preloaded, ..self }
    }

    /// Returns the organization's mode, as it was known last; without settings that can be read, that of whatever organization it was.
    pub fn known_mode(&self, settings: Option<&HookSettings>) -> Option<HookMode> {
        let of =
            settings.map(|settings| (settings.url.trim_end_matches('/'), settings.organization.as_str()));
        self.place.known_mode(of)
    }

    /// Says whether servers of MCP were known to be denied last; without settings that can be read, by whatever organization it was.
    pub fn knows_denials(&self, settings: Option<&HookSettings>) -> bool {
        let of =
            settings.map(|settings| (settings.url.trim_end_matches('/'), settings.organization.as_str()));
        self.place.knows_denials(of)
    }

    /// Returns how an organization holds this machine apart; without settings that can be read, whatever organization it was.
    pub fn quarantine(&self, settings: Option<&HookSettings>) -> Option<Quarantine> {
        let of =
            settings.map(|settings| (settings.url.trim_end_matches('/'), settings.organization.as_str()));
        self.place.quarantine(of)
    }

    /// Asks, and returns what an agent of the same server and organization says.
    ///
    /// Errors: why nobody is believed, or nobody answered in time.
    pub fn ask(
        &self,
        settings: &HookSettings,
        (intent, client, mode): (Intent, Client, Mode),
        payload: &[u8],
        limit: Duration,
    ) -> Result<Told, String> {
        check_file(&self.registration, &self.top, self.place.owner)?;
        self.place.check_socket()?;
        let time = Time::new(limit);
        let shown = self.place.socket.display();
        let lost = |error: &std::io::Error| format!("the agent at {shown} does not answer: {error}");
        let mut asked = Asked {
            intent,
            client,
            mode,
            length: payload.len(),
            by_hand: behind::is_by_hand(Path::new("/proc")),
            preloaded: self.is_preloaded,
        };
        let ask = |asked: &Asked| {
            let mut stream = connected(&self.place.socket, &time).map_err(|error| lost(&error))?;
            // Whoever listens there is the owner, whatever the folder says.
            if !is_of(&stream, self.place.owner) {
                return Err(format!(
                    "{shown} is not the agent's of the account {}",
                    self.place.owner
                ));
            }
            exchanged(&mut stream, asked, payload, &time).map_err(|error| lost(&error))
        };
        let mut told = ask(&asked);
        // An agent of before this word hangs up on it, and hears of the call without.
        if asked.preloaded && told.as_ref().map_or(true, Vec::is_empty) {
            asked.preloaded = false;
            told = ask(&asked);
        }
        let told = told?;
        let told: Option<Told> = reply_of(&told).and_then(|json| serde_json::from_slice(json).ok());
        let told =
            told.ok_or_else(|| format!("the agent at {shown} does not answer as one of this version"))?;
        if told.server != settings.url.trim_end_matches('/') || told.organization != settings.organization {
            return Err(format!(
                "the agent at {shown} is of another server or organization"
            ));
        }
        Ok(told)
    }
}

/// Returns how root's agent holds the machine apart, for every hook of it, whatever server that one names and however it spells it: the mark
/// is about this machine.
pub fn quarantine_of_machine() -> Option<Quarantine> {
    Desk::of_machine(Path::new("/"), 0).quarantine(None)
}

/// Returns what counts: an organization that enforces is obeyed by every registration.
pub fn strongest(registration: Mode, organization: Option<HookMode>) -> Mode {
    match organization {
        Some(HookMode::Enforce) => Mode::Enforce,
        Some(HookMode::Monitor) | None => registration,
    }
}

/// How much time there is.
struct Time {
    clock: SystemClock,
    until: Duration,
}

impl Time {
    fn new(limit: Duration) -> Self {
        let clock = SystemClock::new();
        let until = clock.monotonic() + limit;
        Self { clock, until }
    }

    /// Returns what is left.
    ///
    /// Errors: nothing is.
    fn left(&self) -> std::io::Result<Duration> {
        let left = self.until.saturating_sub(self.clock.monotonic());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// Connects without waiting for a desk whose line is full longer than there is time.
fn connected(path: &Path, time: &Time) -> std::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    loop {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(true)?;
        match rustix::net::connect(&stream, &address) {
            Ok(()) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) if time.left().is_ok() => {
                std::thread::sleep(AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn exchanged(
    stream: &mut UnixStream,
    asked: &Asked,
    payload: &[u8],
    time: &Time,
) -> std::io::Result<Vec<u8>> {
    let bytes = [asked.head().as_bytes(), payload].concat();
    let mut written = 0;
    while written < bytes.len() {
        stream.set_write_timeout(Some(time.left()?))?;
        match stream.write(&bytes[written..])? {
            0 => return Err(ErrorKind::WriteZero.into()),
            more => written += more,
        }
    }
    let mut reply = Vec::new();
    let mut part = [0; 16 << 10];
    loop {
        stream.set_read_timeout(Some(time.left()?))?;
        match stream.read(&mut part)? {
            0 => return Ok(reply),
            more => reply.extend_from_slice(&part[..more]),
        }
        if reply.len() > MOST_REPLY + 128 {
            return Err(ErrorKind::InvalidData.into());
        }
    }
}

/// Says whether an account listens at the other end.
fn is_of(stream: &UnixStream, owner: u32) -> bool {
    peer(stream) == Some(owner)
}

/// Returns the account that listens at the other end.
#[cfg(target_os = "linux")]
fn peer(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    Some(peer.uid.as_raw())
}

/// Nobody is believed where the kernel cannot be asked by safe code.
#[cfg(not(target_os = "linux"))]
fn peer(_: &UnixStream) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LJ-8.
    #[test]
    fn where_root_registers_the_hook_no_home_and_no_environment_names_an_agent() {
        let homes = Homes {
            home: Some("/home/mallory".into()),
            config: Some("/home/mallory/.config".into()),
            claude: None,
        };
        let machine = Desk::of(Path::new(OF_THE_MACHINE), &homes).unwrap();
        assert_eq!(machine.place, Place::of_machine(Path::new("/"), 0));
        assert_eq!(machine.place.socket, Path::new("/run/provost-agent/agent.sock"));
        assert_eq!(machine.registration, Path::new(OF_THE_MACHINE));
        // Somebody whose configuration is said to be in /etc is still not root.
        let claims = Homes {
            config: Some("/etc".into()),
            ..homes.clone()
        };
        assert_eq!(
            Desk::of(Path::new(OF_THE_MACHINE), &claims).unwrap().place.owner,
            0
        );
        let own = Desk::of(Path::new("/home/mallory/.config/provost/hook.toml"), &homes).unwrap();
        assert_eq!(
            own.place.socket,
            Path::new("/home/mallory/.config/provost/agent.sock")
        );
        assert_eq!(own.place.owner, geteuid().as_raw());
        assert!(Desk::of(Path::new("/srv/project/hook.toml"), &homes).is_none());
    }

    /// Proves LJ-8.
    #[test]
    fn whoever_listens_is_who_the_kernel_says() {
        let (here, _there) = UnixStream::pair().unwrap();
        let own = geteuid().as_raw();
        assert!(is_of(&here, own) && !is_of(&here, own + 1));
    }
}
