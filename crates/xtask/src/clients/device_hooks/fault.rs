//! What fails on a device, and how it is put right again.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::device::{Device, Start};
use crate::clients::hooks::write;
use crate::failure::{Context, Failure, Outcome};
use crate::faults::strace;
use crate::{clock, process};

/// Beyond the days for which a bundle is in date, which are 30 at most.
const AHEAD: &str = "+40d";
const BEHIND: &str = "-40d";
/// Within those days.
const NEXT_DAY: &str = "+1d";
/// How long a slow disk needs to have something for certain: longer than a client waits for its hook. Units: microseconds.
const SYNC_TAKES: u32 = 6_000_000;
/// Has a program start with another limit of memory each time, from 64 KiB to 12 MiB: too little to start, to begin a thread, to answer, and enough.
const STARVED: &str = "#!/bin/sh\nulimit -d $(( 64 * ($$ * 37 % 192 + 1) ))\nexec \"$0.real\" \"$@\"\n";
/// Listens at the agent's socket and says what no agent says.
const GARBAGE: &str = "import os, socket, sys\n\
    listener = socket.socket(socket.AF_UNIX)\n\
    os.chdir(os.path.dirname(sys.argv[1]))\n\
    listener.bind('draft')\n\
    listener.listen(64)\n\
    os.rename('draft', os.path.basename(sys.argv[1]))\n\
    while True:\n\
    \x20   stream, _ = listener.accept()\n\
    \x20   stream.recv(1 << 16)\n\
    \x20   stream.sendall(b'provost-desk 1 64\\n{\"decided\":{\"decisions\":[{\"action\":\"allow\"}]}')\n\
    \x20   stream.close()\n";

#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    Nothing,
    /// `kill -9` of the agent.
    Killed,
    /// `SIGSTOP` of the agent.
    Frozen,
    /// Another process of the same account listens at the socket, and says half an answer that allows.
    Garbage,
    /// The disk of the agent's folder has no room.
    DiskFull,
    /// The disk of the agent's folder is slow.
    DiskSlow,
    /// The agent gets no more memory.
    Starved,
    /// The program of the hook is not there.
    ProgramMissing,
    /// The program of the hook may not be started.
    ProgramClosed,
    /// The program of the hook kills itself.
    ProgramKilled,
    /// The program of the hook gets little memory.
    ProgramStarved,
    /// Anybody may write in the folder of the socket.
    SocketOpen,
    /// Anybody may write the file of the organization's mode.
    ModeOpen,
    /// Anybody may write the file of the hook.
    RegistrationOpen,
    /// A file lies where the socket was.
    SocketNone,
    /// The bundle on the disk is none.
    BundleGarbage,
    /// The bundle on the disk is out of date.
    Expired,
    /// The machine's clock is before the bundle's beginning.
    Early,
    /// The bundle on the disk is a day old.
    DayLater,
}

/// What has to be put right.
pub enum Before {
    Nothing,
    Program,
    Mode(PathBuf, u32),
    File(PathBuf, Vec<u8>),
    Listener(Child),
    Tracer(Child),
    Socket,
}

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Killed => "agent killed",
            Self::Frozen => "agent stopped (SIGSTOP)",
            Self::Garbage => "socket says garbage",
            Self::DiskFull => "agent's disk full",
            Self::DiskSlow => "agent's disk slow",
            Self::Starved => "agent without memory",
            Self::ProgramStarved => "program without memory",
            Self::ProgramMissing => "program missing",
            Self::ProgramClosed => "program may not be started",
            Self::ProgramKilled => "program killed",
            Self::SocketOpen => "folder of the socket open to all",
            Self::ModeOpen => "mode file open to all",
            Self::RegistrationOpen => "hook.toml open to all",
            Self::SocketNone => "a file in place of the socket",
            Self::BundleGarbage => "bundle is garbage",
            Self::Expired => "bundle expired",
            Self::Early => "clock before the bundle",
            Self::DayLater => "a day later",
        }
    }

    /// Says why it cannot happen here.
    pub fn unlikely(self) -> Option<&'static str> {
        match self {
            Self::Expired | Self::Early | Self::DayLater if process::faketime().is_none() => {
                Some("libfaketime is not installed (Debian: faketime)")
            }
            Self::DiskSlow if strace::find_or_install().is_err() => {
                Some("strace is not installed (Debian: strace)")
            }
            _ => None,
        }
    }

    /// Starts the agent of a device anew, and has this happen.
    pub fn happens(self, device: &mut Device) -> Outcome<Before> {
        let mut before = Before::Nothing;
        let mut start = Start::default();
        match self {
            Self::DiskFull => start.has_small_disk = true,
            Self::Expired | Self::Early | Self::DayLater => {
                let by = match self {
                    Self::Expired => AHEAD,
                    Self::Early => BEHIND,
                    _ => NEXT_DAY,
                };
                start.clock = process::faketime().map(|library| (library, by));
            }
            Self::BundleGarbage => {
                device.kill()?;
                let path = device.state().join("policy-bundle.json");
                let bytes = std::fs::read(&path).context(path.display())?;
                std::fs::write(&path, b"{\"payload\": \x00\xff garbage").context(path.display())?;
                before = Before::File(path, bytes);
            }
            _ => {}
        }
        device.start(&start)?;
        match self {
            Self::Killed => device.kill()?,
            Self::Frozen => process::signal(device.pid()?, "STOP"),
            Self::DiskFull => fill(&device.state_inside(), device.pid()?)?,
            Self::Garbage => {
                device.kill()?;
                before = Before::Listener(listener(&device.socket())?);
            }
            Self::DiskSlow => before = Before::Tracer(slowed(device.pid()?)?),
            Self::Starved => starve(device.pid()?)?,
            Self::ProgramStarved => {
                let real = device.program().with_extension("real");
                drop(std::fs::remove_file(&real));
                std::fs::rename(device.program(), real).context("cannot move the program")?;
                write(&device.program(), STARVED, 0o755)?;
                before = Before::Program;
            }
            Self::ProgramMissing => {
                std::fs::remove_file(device.program()).context("cannot remove the program")?;
                before = Before::Program;
            }
            Self::ProgramClosed | Self::ProgramKilled => {
                let mode = if self == Self::ProgramClosed { 0o644 } else { 0o755 };
                std::fs::remove_file(device.program()).context("cannot remove the program")?;
                write(&device.program(), "#!/bin/sh\nkill -9 $$\n", mode)?;
                before = Before::Program;
            }
            Self::SocketOpen => {
                let socket = device.socket();
                before = opened(socket.parent().context("a socket lies in a folder")?, 0o777)?;
            }
            Self::ModeOpen => before = opened(&device.mode_file(), 0o666)?,
            Self::RegistrationOpen => before = opened(&device.registration(), 0o666)?,
            Self::SocketNone => {
                std::fs::remove_file(device.socket()).context("cannot remove the socket")?;
                write(&device.socket(), "", 0o600)?;
                before = Before::Socket;
            }
            Self::Nothing | Self::BundleGarbage | Self::Expired | Self::Early | Self::DayLater => {}
        }
        Ok(before)
    }
}

impl Before {
    /// Puts right what failed; the agent is killed.
    pub fn restore(self, device: &mut Device) -> Outcome {
        device.kill()?;
        match self {
            Self::Nothing => Ok(()),
            Self::Program => device.put_program(),
            Self::Mode(path, mode) => set(&path, mode),
            // An agent that has fetched another one meanwhile keeps that.
            Self::File(path, bytes) => match std::fs::read(&path) {
                Ok(found) if found.starts_with(b"{\"payload\": \x00") => {
                    std::fs::write(&path, bytes).context(path.display())
                }
                Ok(_) => Ok(()),
                Err(_) => write_new(&path, &bytes),
            },
            // A tracer ends with the agent.
            Self::Listener(mut child) | Self::Tracer(mut child) => {
                drop(child.kill());
                child.wait().context("cannot wait for a process").map(drop)
            }
            Self::Socket => std::fs::remove_file(device.socket()).context("cannot remove a file"),
        }
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> Outcome {
    std::fs::write(path, bytes).context(path.display())?;
    set(path, 0o600)
}

fn set(path: &Path, mode: u32) -> Outcome {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).context(path.display())
}

fn opened(path: &Path, mode: u32) -> Outcome<Before> {
    let found = std::fs::metadata(path).context(path.display())?;
    set(path, mode)?;
    Ok(Before::Mode(path.to_owned(), found.permissions().mode() & 0o7777))
}

/// Fills the disk on which a process has its folder.
fn fill(folder: &Path, pid: u32) -> Outcome {
    let seen = folder.strip_prefix("/").unwrap_or(folder);
    let path = Path::new("/proc")
        .join(pid.to_string())
        .join("root")
        .join(seen)
        .join("full");
    let mut file = std::fs::File::create(&path).context(path.display())?;
    let mut filled = 0;
    // Block by block at the end, so that not even a short line has room.
    for size in [64 << 10, 4096, 1] {
        let block = vec![0; size];
        while file.write_all(&block).is_ok() {
            filled += size;
            if filled > 8 << 20 {
                return Err(Failure::new("the disk of the agent is larger than it should be"));
            }
        }
    }
    Ok(())
}

/// Has every sync of a process take longer than a client waits.
fn slowed(pid: u32) -> Outcome<Child> {
    let calls = "fsync,fdatasync,sync_file_range,syncfs";
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-q", "-o", "/dev/null", "-p", &pid.to_string()])
        .args(["-e", &format!("trace={calls}")])
        .args(["-e", &format!("inject={calls}:delay_enter={SYNC_TAKES}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let child = strace.spawn().context("cannot run strace")?;
    let status = format!("/proc/{pid}/status");
    let is_traced = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.strip_prefix("TracerPid:"))
            .any(|tracer| tracer.trim() != "0")
    };
    if clock::poll_until(Duration::from_secs(10), Duration::from_millis(10), is_traced) {
        return Ok(child);
    }
    Err(Failure::new("strace does not hold the agent"))
}

/// Has a process get no more memory than it has.
fn starve(pid: u32) -> Outcome {
    let mut limit = Command::new("prlimit");
    limit.args(["--pid", &pid.to_string(), "--data=4096:4096"]);
    process::output(&mut limit).map(drop)
}

fn listener(socket: &Path) -> Outcome<Child> {
    drop(std::fs::remove_file(socket));
    let mut python = Command::new("python3");
    python.args(["-c", GARBAGE]).arg(socket).stdin(Stdio::null());
    let child = python.spawn().context("the clients need Python 3")?;
    let there = clock::poll_until(Duration::from_secs(10), Duration::from_millis(10), || {
        socket.exists()
    });
    if there {
        return Ok(child);
    }
    Err(Failure::new("nobody listens in place of the agent"))
}
