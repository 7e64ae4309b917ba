//! One throw-away cluster: created, started, ready; gone when dropped.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::install::Binaries;
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

/// What a crash of the machine may cost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is synced: the tests' cluster does not outlive them.
    None,
    /// As in production: every commit is on the disk before it is acknowledged.
    Full,
}

/// A running cluster that listens on a socket in its own folder only.
///
/// A guardian process of its own process group holds the server; it ends with the pipe to us, so
/// that Ctrl-C and even `kill -9` leave neither server nor folder behind.
pub struct Cluster {
    binaries: Binaries,
    folder: PathBuf,
    guardian: Child,
}

const FOLDER_PREFIX: &str = "provost-pg-";

impl Cluster {
    pub fn start(binaries: &Binaries, durability: Durability) -> Outcome<Self> {
        remove_stale();
        let folder = create_folder(durability)?;
        let launched = hand_over(&folder).and_then(|()| launch(binaries, &folder, durability));
        let guardian = launched.inspect_err(|_| drop(std::fs::remove_dir_all(&folder)))?;
        let cluster = Self {
            binaries: binaries.clone(),
            folder,
            guardian,
        };
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// The connection string of a database in the key=value form of libpq.
    pub fn connection(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.folder.display())
    }

    /// The connection string of a database as a URL.
    pub fn url(&self, database: &str) -> String {
        let host = self.folder.to_string_lossy().replace('/', "%2F");
        format!("postgresql://postgres@{host}/{database}")
    }

    pub fn create_database(&self, name: &str) -> Outcome {
        let mut command = self.binaries.program("createdb");
        command.args(["-U", "postgres", "-h"]).arg(&self.folder).arg(name);
        process::output(&mut command).map(drop)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server's first process.
    pub fn pid(&self) -> Option<u32> {
        let state = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).ok()?;
        state.lines().next()?.trim().parse().ok()
    }

    fn wait_until_ready(&self) -> Outcome {
        let state = self.folder.join("data/postmaster.pid");
        let log = self.folder.join("log");
        let mut refused = false;
        let ready = clock::poll_until(Duration::from_mins(1), Duration::from_millis(20), || {
            refused = std::fs::read_to_string(&log).is_ok_and(|log| log.contains("FATAL:"));
            // The eighth line of this file is the server's own statement that it takes connections.
            let lines = std::fs::read_to_string(&state).unwrap_or_default();
            refused || lines.lines().nth(7).is_some_and(|line| line.trim() == "ready")
        });
        if ready && !refused {
            return Ok(());
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        Err(Failure::new(format!(
            "the throw-away PostgreSQL did not start:\n{}",
            said.trim()
        )))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        // Nothing to say when it fails: the next run removes what is left.
        drop(self.guardian.wait());
    }
}

/// The folder is a temporary one with a short path (a socket's path may have 107 bytes). A durable
/// cluster lives in /var/tmp, because /tmp is often memory, where a sync costs nothing.
fn create_folder(durability: Durability) -> Outcome<PathBuf> {
    let disk = Path::new("/var/tmp");
    let parent = if durability == Durability::Full && disk.is_dir() {
        disk
    } else {
        Path::new("/tmp")
    };
    let mut attempt = 0;
    loop {
        let folder = parent.join(format!("{FOLDER_PREFIX}{}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
            Err(error) => {
                return Err(Failure::new(format!(
                    "cannot create {}: {error}",
                    folder.display()
                )));
            }
        }
    }
}

/// The server refuses to be root: then the folder belongs to somebody with fewer rights.
fn hand_over(folder: &Path) -> Outcome {
    if process::is_root() {
        let (uid, gid) = unprivileged()?;
        let opened = std::fs::File::open(folder).context("cannot open the folder")?;
        std::os::unix::fs::fchown(opened, Some(uid), Some(gid)).context("cannot hand the folder over")?;
    }
    Ok(())
}

fn launch(binaries: &Binaries, folder: &Path, durability: Durability) -> Outcome<Child> {
    let me = std::env::current_exe().context("cannot find this program")?;
    let mut guardian = Command::new(me);
    guardian
        .arg("guard-cluster")
        .arg("--folder")
        .arg(folder)
        .arg("--binaries")
        .arg(&binaries.folder);
    if durability == Durability::Full {
        guardian.arg("--durable");
    }
    guardian
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    guardian
        .process_group(0)
        .spawn()
        .context("cannot start the cluster's guardian")
}

/// The command that makes the data of a throw-away server, in this folder.
pub fn initdb(binaries: &Path, data: &Path) -> Command {
    let mut initdb = Command::new(binaries.join("initdb"));
    initdb.args([
        "-A",
        "trust",
        "-U",
        "postgres",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
        "-D",
    ]);
    initdb.arg(data);
    initdb
}

/// Lets a command run as the folder's owner.
pub fn as_owner_of(folder: &Path, command: &mut Command) -> Outcome {
    command.current_dir(folder);
    if process::is_root() {
        let owner = folder.metadata().context("cannot read the folder's owner")?;
        command.uid(owner.uid()).gid(owner.gid());
    }
    Ok(())
}

fn unprivileged() -> Outcome<(u32, u32)> {
    let id = |flag, user| process::output(Command::new("id").args([flag, user]));
    for user in ["postgres", "nobody"] {
        let (Ok(uid), Ok(gid)) = (id("-u", user), id("-g", user)) else {
            continue;
        };
        if let (Ok(uid), Ok(gid)) = (uid.trim().parse(), gid.trim().parse()) {
            return Ok((uid, gid));
        }
    }
    Err(Failure::new(
        "PostgreSQL refuses to run as root and there is neither a user postgres nor nobody",
    ))
}

/// Ends and removes clusters whose task and guardian were both killed.
fn remove_stale() {
    for parent in ["/tmp", "/var/tmp"] {
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(task) = task_of(&name) else { continue };
            let folder = entry.path();
            let guardian = super::guardian::pid_of(&folder);
            if process::is_running(task, "xtask")
                || guardian.is_some_and(|pid| process::is_running(pid, "guard-cluster"))
            {
                continue;
            }
            eprintln!("removing {}, left behind by a killed run", folder.display());
            super::guardian::stop_server(&folder);
            drop(std::fs::remove_dir_all(&folder));
        }
    }
}

/// The task's pid in a folder's name.
fn task_of(name: &str) -> Option<u32> {
    let (pid, attempt) = name.strip_prefix(FOLDER_PREFIX)?.split_once('-')?;
    attempt.parse::<u32>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_their_task() {
        assert_eq!(task_of("provost-pg-4711-0"), Some(4711));
        assert_eq!(task_of("provost-pg-4711"), None);
        assert_eq!(task_of("provost-pg-x-0"), None);
        assert_eq!(task_of("elsewhere-4711-0"), None);
    }
}
