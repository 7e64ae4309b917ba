//! The process that owns a throw-away cluster and outlives the task by a moment.
//!
//! ```text
//! task      starts guardian ── pipe held open ── ends in any way ─┐
//! guardian  starts server ── reads the pipe ──────────── end of file, stops server, removes folder
//! ```

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::cluster::{as_owner_of, initdb};
use crate::failure::{Context, Outcome};
use crate::{clock, process};

#[derive(clap::Args)]
pub struct Arguments {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    binaries: PathBuf,
    #[arg(long)]
    durable: bool,
}

/// Creates the cluster, runs its server until standard input ends, then removes every trace of it.
pub fn guard(arguments: &Arguments) -> Outcome {
    let folder = &arguments.folder;
    let log = File::create(folder.join("log")).context("cannot create the log")?;
    match start(arguments, &log) {
        Ok(server) => {
            wait_for_the_task();
            stop(server);
        }
        Err(failure) => {
            // In the server's own words, so that the task looks for one word only.
            writeln!(&log, "FATAL: {failure}").context("cannot write the log")?;
            wait_for_the_task();
        }
    }
    std::fs::remove_dir_all(folder).context(format_args!("cannot remove {}", folder.display()))
}

fn start(arguments: &Arguments, log: &File) -> Outcome<Child> {
    let folder = &arguments.folder;
    std::fs::write(pid_file(folder), std::process::id().to_string()).context("cannot write the pid")?;
    let own_log = || log.try_clone().context("cannot share the log");

    let mut initdb = initdb(&arguments.binaries, &folder.join("data"));
    initdb.stdout(own_log()?).stderr(own_log()?);
    as_owner_of(folder, &mut initdb)?;
    process::run(&mut initdb)?;

    let mut server = Command::new(arguments.binaries.join("postgres"));
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    let durability: &[&str] = if arguments.durable {
        &["fsync=on", "synchronous_commit=on", "full_page_writes=on"]
    } else {
        &["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
    };
    for setting in ["listen_addresses=", "max_connections=200"]
        .iter()
        .chain(durability)
    {
        server.args(["-c", setting]);
    }
    as_owner_of(folder, &mut server)?;
    server
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(own_log()?);
    server.spawn().context("cannot start the server")
}

/// The pipe ends with the task, however the task ends.
fn wait_for_the_task() {
    drop(std::io::stdin().read_to_end(&mut Vec::new()));
}

fn stop(mut server: Child) {
    // QUIT is the immediate shutdown: nothing in this cluster is worth a checkpoint.
    process::signal(server.id(), "QUIT");
    let gone = clock::poll_until(Duration::from_secs(10), Duration::from_millis(10), || {
        server.try_wait().is_ok_and(|status| status.is_some())
    });
    if !gone {
        drop(server.kill());
        drop(server.wait());
    }
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("guardian.pid")
}

/// The guardian of a folder, if it came so far.
pub fn pid_of(folder: &Path) -> Option<u32> {
    std::fs::read_to_string(pid_file(folder))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Ends the server of a folder whose guardian was killed.
pub fn stop_server(folder: &Path) {
    let state = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    let Some(pid) = state
        .lines()
        .next()
        .and_then(|line| line.trim().parse::<u32>().ok())
    else {
        return;
    };
    let word = folder.to_string_lossy().into_owned();
    if process::is_running(pid, &word) {
        process::signal(pid, "QUIT");
        clock::poll_until(Duration::from_secs(10), Duration::from_millis(20), || {
            !process::is_running(pid, &word)
        });
    }
}
