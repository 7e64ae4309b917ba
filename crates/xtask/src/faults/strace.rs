//! strace: which system calls a thread made on which files, and faults in the n-th of them.
//!
//! strace counts the calls of every thread and of every name by themselves, so a point is a name and a number in one
//! thread's trace. Absent on purpose: its path filter, which knows no names that are drawn at random.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// The calls that change a file or a folder, or make a change durable.
pub const CALLS: &str = "write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,rename,renameat,\
                         renameat2,ftruncate,fallocate,unlink,unlinkat,link,linkat,mkdir,mkdirat,copy_file_range";

/// One call of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Zero when only one thread was traced.
    pub thread: u32,
    pub name: String,
    /// Which call of this name in its thread it was, from one.
    pub number: usize,
    /// What it was about: a file, a socket, an event.
    pub place: String,
    pub injected: bool,
    /// When it began. Units: time since the Unix epoch.
    pub at: Duration,
}

/// Kills what a strace runs; strace ends with it, and its trace is whole.
pub fn kill_children(strace: u32) {
    let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children"));
    for child in children.unwrap_or_default().split_whitespace() {
        if let Ok(child) = child.parse() {
            process::signal(child, "KILL");
        }
    }
}

/// Installs strace on Debian when it is missing and we may. It needs Linux, and somebody who may trace processes.
pub fn find_or_install() -> Outcome {
    process::find_or_install("strace")
}

/// A strace that is attached to threads of a running process.
pub struct AttachedStrace {
    strace: Child,
    output: PathBuf,
}

impl Drop for AttachedStrace {
    fn drop(&mut self) {
        drop(self.strace.kill());
        drop(self.strace.wait());
    }
}

/// The command up to what is traced: an injection is strace's own expression, such as `fsync:error=EIO:when=3`. It is
/// made in traced calls only.
fn strace(output: &Path, calls: &str, injection: Option<&str>) -> Command {
    let mut command = Command::new("strace");
    command.args(["-ttt", "-y", "-s", "0", "-e", "signal=none", "-e"]);
    command.arg(format!("trace={calls}"));
    if let Some(injection) = injection {
        command.arg("-e").arg(format!("inject={injection}"));
    }
    command.arg("-o").arg(output);
    command
}

/// Starts a program under strace, every thread and child of it included.
pub fn around(program: &Command, output: &Path, injection: Option<&str>) -> Command {
    with_program(strace(output, CALLS, injection), program)
}

/// Starts a program under strace that writes down the bytes of its calls, too.
pub fn recording(program: &Command, output: &Path, calls: &str) -> Command {
    let mut command = Command::new("strace");
    // Longer than any write: one that is cut could not be repeated.
    command.args(["-ttt", "-y", "-xx", "-s", "33554432", "-e", "signal=none", "-e"]);
    command.arg(format!("trace={calls}")).arg("-o").arg(output);
    with_program(command, program)
}

fn with_program(mut strace: Command, program: &Command) -> Command {
    strace
        .arg("-f")
        .arg("--")
        .arg(program.get_program())
        .args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    strace
}

/// Attaches to threads and returns once every one of them is traced.
pub fn attach(threads: &[u32], output: &Path, injection: Option<&str>) -> Outcome<AttachedStrace> {
    attached(threads, output, strace(output, CALLS, injection))
}

/// Has threads stand still at the next system call they make, whichever it is.
pub fn hold(threads: &[u32], output: &Path) -> Outcome<AttachedStrace> {
    attached(
        threads,
        output,
        strace(output, "all", Some("all:delay_enter=3600s")),
    )
}

fn attached(threads: &[u32], output: &Path, mut command: Command) -> Outcome<AttachedStrace> {
    for thread in threads {
        command.arg("-p").arg(thread.to_string());
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut strace = command.spawn().context("cannot start strace")?;
    let said = strace.stderr.take().context("strace has no error output")?;
    let attached = AttachedStrace {
        strace,
        output: output.to_path_buf(),
    };
    let mut lines = BufReader::new(said).lines();
    for _ in threads {
        match lines.next() {
            Some(Ok(line)) if line.contains("attached") => {}
            other => {
                let mut rest: Vec<String> = other.into_iter().flatten().collect();
                rest.extend(lines.map_while(Result::ok));
                let said = rest.join(" ");
                return Err(Failure::new(format!(
                    "strace did not attach (does this system allow it?): {said}"
                )));
            }
        }
    }
    Ok(attached)
}

impl AttachedStrace {
    /// Waits until the traced process is gone, and returns what its threads did.
    pub fn ended(mut self) -> Outcome<Vec<Call>> {
        self.strace.wait().context("cannot wait for strace")?;
        read(&self.output)
    }
}

/// Reads a trace.
pub fn read(file: &Path) -> Outcome<Vec<Call>> {
    let mut text = Vec::new();
    File::open(file)
        .and_then(|mut file| file.read_to_end(&mut text))
        .context(format_args!("cannot read {}", file.display()))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in text.lines() {
        let (thread, rest) = match line.split_once(' ') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (number.parse().unwrap_or(0), rest.trim_start())
            }
            _ => (0, line),
        };
        let Some((at, rest)) = rest.split_once(' ') else {
            continue;
        };
        // The second half of a call that was interrupted by another thread's.
        if let Some(name) = rest.strip_prefix("<... ").and_then(|rest| rest.split(' ').next()) {
            let open = calls
                .iter_mut()
                .rev()
                .find(|call| call.thread == thread && call.name == name);
            if let Some(call) = open.filter(|_| line.contains("(INJECTED)")) {
                call.injected = true;
            }
            continue;
        }
        let Some((name, arguments)) = rest.split_once('(') else {
            continue;
        };
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        let before = calls
            .iter()
            .filter(|call| call.thread == thread && call.name == name)
            .count();
        calls.push(Call {
            thread,
            name: name.to_owned(),
            number: before + 1,
            place: place(arguments),
            injected: line.contains("(INJECTED)"),
            at: instant(at),
        });
    }
    calls
}

/// The instant in `1795345478.453812`.
pub fn instant(text: &str) -> Duration {
    let (secs, micros) = text.split_once('.').unwrap_or((text, "0"));
    Duration::from_secs(secs.parse().unwrap_or(0)) + Duration::from_micros(micros.parse().unwrap_or(0))
}

/// The file of a descriptor, else the last name among the arguments: the new one of two.
fn place(arguments: &str) -> String {
    let is_descriptor = arguments.as_bytes().first().is_some_and(u8::is_ascii_digit);
    let named = if is_descriptor {
        arguments
            .split_once('<')
            .and_then(|(_, rest)| rest.split(['>']).next())
    } else {
        arguments.rsplit('"').nth(1)
    };
    named.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_thread_and_name() {
        let text = "\
1795345478.453812 pwrite64(18</d/provost.db-wal>, \"\"..., 24, 32) = 24
1795345478.453813 write(5<anon_inode:[eventfd]>, \"\"..., 8) = 8
1795345478.453814 pwrite64(18</d/provost.db-wal>, \"\"..., 4096, 56) = -1 EIO (Input/output error) (INJECTED)
1795345478.453815 linkat(AT_FDCWD</x>, \"/d/keys/.a.tmp\", AT_FDCWD</x>, \"/d/keys/a.key\", 0) = 0
1795345478.453816 +++ killed by SIGKILL +++
";
        let calls = parse(text);
        assert_eq!(calls[0].at, Duration::from_micros(1_795_345_478_453_812));
        let seen: Vec<_> = calls
            .iter()
            .map(|call| {
                (
                    call.name.as_str(),
                    call.number,
                    call.place.as_str(),
                    call.injected,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("pwrite64", 1, "/d/provost.db-wal", false),
                ("write", 1, "anon_inode:[eventfd]", false),
                ("pwrite64", 2, "/d/provost.db-wal", true),
                ("linkat", 1, "/d/keys/a.key", false),
            ]
        );
    }

    #[test]
    fn an_interrupted_call_is_one_call() {
        let text = "\
11 1795345478.453812 fsync(3</d/a> <unfinished ...>
12  1795345478.453813 fsync(4</d/b>) = 0
11 1795345478.453814 <... fsync resumed>) = -1 EIO (Input/output error) (INJECTED)
";
        let calls = parse(text);
        assert_eq!(calls.len(), 2);
        assert!(calls[0].injected && !calls[1].injected);
        assert_eq!((calls[1].thread, calls[1].number), (12, 1));
    }
}
