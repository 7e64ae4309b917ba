//! Commands, signals and folders: everything that these tasks ask of the operating system.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::clock;
use crate::failure::{Context, Failure, Outcome};

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// The folder of build results, which also holds the tasks' tools and throw-away data.
pub fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").filter(|name| !name.is_empty());
    named.map_or_else(|| root().join("target"), |name| root().join(name))
}

/// The cargo that started this task, else the one on the PATH; it works in the root folder.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether a program can be started at all and likes its arguments.
pub fn works(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Runs a command with our own output; its exit status is the caller's to judge.
pub fn status(command: &mut Command) -> Outcome<ExitStatus> {
    let name = name_of(command);
    command
        .stdin(Stdio::null())
        .status()
        .context(format_args!("cannot run {name}"))
}

/// Runs a command with our own output and fails when it fails.
pub fn run(command: &mut Command) -> Outcome {
    let name = name_of(command);
    let status = status(command)?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("{name} failed ({status})")))
    }
}

/// Runs a command silently and returns what it printed; its error output becomes the failure.
pub fn output(command: &mut Command) -> Outcome<String> {
    let name = name_of(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .context(format_args!("cannot run {name}"))?;
    printed(&name, output)
}

/// Runs a command silently as [`output`] does, and ends it when it takes longer than so long: the failure names what was waited for.
pub fn output_within(command: &mut Command, limit: Duration, what: &str) -> Outcome<String> {
    let name = name_of(command);
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context(format_args!("cannot run {name}"))?;
    let said = [read_to_end(child.stdout.take()), read_to_end(child.stderr.take())];
    let end = clock::now() + limit;
    let status = wait_until(&mut child, end, what)?;
    // Whoever it started may hold its output open.
    let rest = |said: &Receiver<Vec<u8>>| {
        let left = end.saturating_duration_since(clock::now()).max(PATIENCE);
        said.recv_timeout(left).context(format_args!(
            "{name} ended, and what it started keeps its output open: {what}"
        ))
    };
    let (stdout, stderr) = (rest(&said[0])?, rest(&said[1])?);
    printed(
        &name,
        Output {
            status,
            stdout,
            stderr,
        },
    )
}

/// Runs a command with our own output as [`run`] does. Every minute it says what it waits for, and ends it after so long.
pub fn run_within(command: &mut Command, limit: Duration, what: &str) -> Outcome {
    let name = name_of(command);
    let spawned = command.stdin(Stdio::null()).spawn();
    let mut child = spawned.context(format_args!("cannot run {name}"))?;
    let status = wait_until(&mut child, clock::now() + limit, what)?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("{name} failed ({status})")))
    }
}

/// How long output may be late behind the end of its program.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether a program has ended, and how often it is said that it has not.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_mins(1));

fn read_to_end(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            drop(pipe.read_to_end(&mut bytes));
        }
        drop(send.send(bytes));
    });
    receive
}

fn wait_until(child: &mut Child, end: Instant, what: &str) -> Outcome<ExitStatus> {
    let begin = clock::now();
    let mut told = begin;
    loop {
        if let Some(status) = child.try_wait().context(what)? {
            return Ok(status);
        }
        let now = clock::now();
        if now >= end {
            drop(child.kill());
            drop(child.wait());
            let secs = now.duration_since(begin).as_secs();
            return Err(Failure::new(format!(
                "{what} took longer than {secs} s and was ended"
            )));
        }
        if now.duration_since(told) >= LOOKS.1 {
            told = now;
            eprintln!(
                "still waiting for {what} ({} s)",
                now.duration_since(begin).as_secs()
            );
        }
        std::thread::sleep(LOOKS.0);
    }
}

fn printed(name: &str, output: Output) -> Outcome<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Linters tell what is wrong as their result.
    let said = [output.stderr, output.stdout]
        .into_iter()
        .find(|said| !said.is_empty());
    let said = said.unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    Err(Failure::new(format!(
        "{name} failed ({}): {}",
        output.status,
        said.trim()
    )))
}

fn name_of(command: &Command) -> String {
    Path::new(command.get_program())
        .file_name()
        .map_or_else(String::new, |name| name.display().to_string())
}

/// Whether this process is root, who may install packages but may not run a cluster.
pub fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

/// Takes the product's settings of the developer's shell away from a command: these tasks must never
/// touch an installation that somebody uses.
pub fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROVOST_") {
            command.env_remove(name);
        }
    }
}

/// Sends a signal by name (`TERM`, `QUIT`); a process that is gone already is no failure.
pub fn signal(pid: u32, name: &str) {
    // The shell's builtin is everywhere; a `kill` program is not.
    works(Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &pid.to_string()]));
}

/// Whether a process runs whose command line holds `word`; a pid alone may have been reused.
pub fn is_running(pid: u32, word: &str) -> bool {
    let line = match std::fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(line) => String::from_utf8_lossy(&line).into_owned(),
        // No /proc on this system, or no such process: the second question tells them apart.
        Err(_) => {
            output(Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()])).unwrap_or_default()
        }
    };
    line.contains(word)
}

/// The folders of the PATH.
pub fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect())
}

/// The program of that name on the PATH.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = name.as_ref();
    search_path()
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Finds a program, or installs the Debian package of its name where that is possible, and says so.
pub fn find_or_install(name: &str) -> Outcome {
    if find_program(name).is_some() {
        return Ok(());
    }
    let debian = Path::new("/etc/debian_version").exists() && find_program("apt-get").is_some();
    if !debian || !is_root() {
        return Err(Failure::new(format!(
            "no {name} found: install your system's package (Debian and Ubuntu: sudo apt-get install {name}) and run \
             this again"
        )));
    }
    println!("No {name} found. Running as root on Debian, so it will be installed:");
    for arguments in [
        &["update"][..],
        &["install", "-y", "--no-install-recommends", name],
    ] {
        println!("  apt-get {}", arguments.join(" "));
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .arg("-q")
            .args(arguments);
        run(&mut apt)?;
    }
    Ok(())
}

/// The library of the package `faketime`, which is installed where that is possible.
pub fn faketime() -> Option<PathBuf> {
    static LIBRARY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        drop(find_or_install("faketime"));
        let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
        folders
            .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
            .find(|library| library.is_file())
    });
    LIBRARY.clone()
}

/// Returns a program of crates.io in one version, built below the target folder if it is not there.
pub fn find_or_install_crate(name: &str, version: &str) -> Outcome<PathBuf> {
    let root = target().join(format!("tools/{name}-{version}"));
    let program = root.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    println!("Installing {name} {version} into {} …", root.display());
    let mut cargo = cargo();
    cargo
        .args(["install", "--locked", "--quiet", "--root"])
        .arg(&root);
    cargo.args(["--version", &format!("={version}"), name]);
    run(&mut cargo)?;
    Ok(program)
}

/// The path and the text of every source file below a folder of the repository.
#[cfg(test)]
pub fn sources(folder: &str) -> Vec<(String, String)> {
    let mut folders = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.display().to_string(), text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_is_known_by_pid_and_word() {
        let me = std::process::id();
        assert!(is_running(me, "xtask"));
        assert!(!is_running(me, "no-such-word-in-any-command-line"));
    }

    #[test]
    fn a_failing_command_gives_its_own_words() {
        let failure = output(Command::new("sh").args(["-c", "echo because >&2; exit 3"])).unwrap_err();
        assert!(failure.to_string().contains("because"), "{failure}");
    }

    #[test]
    fn what_is_waited_for_too_long_is_ended_and_named() {
        let limit = Duration::from_millis(200);
        let mut sleeper = Command::new("sleep");
        let failure = output_within(sleeper.arg("60"), limit, "a sleeper").unwrap_err();
        assert!(failure.to_string().contains("a sleeper took longer"), "{failure}");
        let failure = run_within(&mut sleeper, limit, "a sleeper").unwrap_err();
        assert!(failure.to_string().contains("a sleeper took longer"), "{failure}");
        let mut quick = Command::new("sh");
        let long = Duration::from_mins(1);
        assert_eq!(
            output_within(quick.args(["-c", "echo here"]), long, "a shell").unwrap(),
            "here\n"
        );
        // Nor is whoever it leaves behind waited for.
        let mut parent = Command::new("sh");
        let failure = output_within(parent.args(["-c", "sleep 60 &"]), limit, "a parent").unwrap_err();
        assert!(failure.to_string().contains("keeps its output open"), "{failure}");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("crates/xtask/Cargo.toml").is_file());
    }
}
