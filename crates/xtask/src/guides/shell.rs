//! A person's terminal: one shell from the begin of a page to its end, in a folder of its own.
//!
//! Programs say less to a pipe than to a person, so the shell has a real terminal (of `script`, which every Debian has). What is typed
//! comes as files whose names go through a pipe; the shell says behind each how it ended.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::page::How;
use crate::failure::{Context, Failure, Outcome};
use crate::{process, product};

/// Longer takes no command of a guide.
const LIMIT: Duration = Duration::from_mins(1);

/// Stands around what the shell says about itself.
const MARK: u8 = 0x1e;

const LOOP: &str = include_str!("loop.sh");
const SERVER: &str = include_str!("server.sh");

pub struct Shell {
    process: Child,
    names: File,
    said: Receiver<Vec<u8>>,
    /// What was read and belongs to nothing yet.
    read: Vec<u8>,
    folder: PathBuf,
    /// Where this page's server listens.
    pub address: SocketAddr,
    steps: usize,
}

pub struct ShellOutput {
    pub text: String,
    pub status: i32,
}

impl Shell {
    /// Opens a terminal in a new folder, with the program on its path.
    pub fn open(binary: &Path, folder: &Path) -> Outcome<Self> {
        for name in ["home", "typed", "bin"] {
            fs::create_dir_all(folder.join(name)).context("cannot make a folder")?;
        }
        let link = |from: PathBuf, name: &str| -> Outcome {
            std::os::unix::fs::symlink(&from, folder.join(name))
                .context(format_args!("cannot link {}", from.display()))
        };
        link(binary.to_path_buf(), "bin/provost")?;
        for shared in ["docs", "skills"] {
            link(process::root().join(shared), shared)?;
        }
        fs::write(folder.join("typed/loop.sh"), LOOP).context("cannot write a file")?;
        process::output(Command::new("mkfifo").arg(folder.join("typed/names")))?;
        let address = product::free_address()?;
        let programs = std::iter::once(folder.join("bin")).chain(process::search_path());
        let path = std::env::join_paths(programs).context("the search path is none")?;
        let mut command = Command::new("script");
        process::without_settings(&mut command);
        command
            .args(["-qfec", "bash typed/loop.sh", "/dev/null"])
            .current_dir(folder)
            .env("PATH", path)
            .env("HOME", folder.join("home"))
            .env("XDG_CONFIG_HOME", folder.join("home/.config"))
            .env("SHELL", "/bin/sh")
            .env("TERM", "dumb")
            .env("NO_COLOR", "1")
            .env("PROVOST_URL", format!("http://{address}"))
            .env("PROVOST_HTTP_LISTEN", address.to_string())
            .env("PROVOST_HTTP_METRICS_LISTEN", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut process = command
            .spawn()
            .context("cannot start script (Debian and Ubuntu: apt-get install bsdutils)")?;
        let mut output = process.stdout.take().context("script has no output")?;
        let (sender, said) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut part) {
                if sender.send(part[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let names = File::options()
            .write(true)
            .open(folder.join("typed/names"))
            .context("cannot reach the shell")?;
        Ok(Self {
            process,
            names,
            said,
            read: Vec::new(),
            folder: folder.to_path_buf(),
            address,
            steps: 0,
        })
    }

    /// Starts the server of a page that starts none, with what its commands need in variables.
    pub fn start_a_server(&mut self) -> Outcome {
        let said = self.types(SERVER, How::Block)?;
        if said.status == 0 {
            return Ok(());
        }
        Err(Failure::new(format!("no server starts: {}", said.text)))
    }

    /// Writes a file that the page shows.
    pub fn write(&self, name: &str, content: &str) -> Outcome {
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context("cannot make a folder")?;
        }
        fs::write(path, content).context(format_args!("cannot write {name}"))
    }

    /// Types something and waits until it is over.
    pub fn types(&mut self, text: &str, how: How) -> Outcome<ShellOutput> {
        self.steps += 1;
        let name = format!("typed/{}", self.steps);
        let word = match how {
            How::Block => "block",
            How::One => "one",
            How::Background => "background",
        };
        let text = if how == How::Background {
            format!("{} &", text.trim_end())
        } else {
            text.to_owned()
        };
        fs::write(self.folder.join(&name), text).context("cannot write a file")?;
        writeln!(self.names, "{word} {name}").context("the shell is gone")?;
        let said = self.until_mark()?;
        let (text, status) = said;
        Ok(ShellOutput {
            text: as_seen(&text),
            status: status.parse().context("the shell says no status")?,
        })
    }

    /// Returns what was said until the shell said how it ended, and that.
    fn until_mark(&mut self) -> Outcome<(String, String)> {
        loop {
            let mut parts = self.read.splitn(3, |byte| *byte == MARK);
            if let (Some(text), Some(status), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
                let [text, status] = [text, status].map(|part| String::from_utf8_lossy(part).into_owned());
                self.read = rest.to_vec();
                return Ok((text, status));
            }
            let what = match self.said.recv_timeout(LIMIT) {
                Ok(part) => {
                    self.read.extend(part);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => format!("nothing more is said for {LIMIT:?}"),
                Err(RecvTimeoutError::Disconnected) => "the shell has ended".to_owned(),
            };
            let before = String::from_utf8_lossy(&self.read);
            return Err(Failure::new(format!("{what}; before: {before}")));
        }
    }

    /// Ends the page's server and the shell.
    pub fn close(mut self) -> Outcome {
        let said = self.types("for job in $(jobs -p); do kill \"$job\"; done; wait", How::Block)?;
        drop(said);
        writeln!(self.names, "end end").context("the shell is gone")?;
        self.process.wait().context("cannot wait for the shell").map(drop)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Already gone after close(); the terminal takes what runs in it along.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What stays on the screen: lines that a program wrote over are as it left them, and escapes are none.
fn as_seen(text: &str) -> String {
    let mut seen = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            seen.push(letter);
        } else if letters.next_if_eq(&'[').is_some() {
            while letters.next().is_some_and(|letter| !letter.is_ascii_alphabetic()) {}
        }
    }
    let lines = seen.split('\n').map(|line| {
        let line = line.trim_end_matches('\r');
        line.rsplit('\r').next().unwrap_or_default()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_written_over_is_seen_as_it_was_left() {
        assert_eq!(as_seen("10 %\r100 %\r\n\u{1b}[2Kdone\r\n"), "100 %\ndone\n");
    }

    #[test]
    fn one_shell_takes_a_whole_page() {
        let folder = product::Workplace::create("guides-shell").unwrap();
        let mut shell = Shell::open(Path::new("/bin/true"), &folder.folder.join("page")).unwrap();
        let mut types = |text: &str, how| {
            let said = shell.types(text, how).unwrap();
            (said.text.trim().to_owned(), said.status)
        };
        assert_eq!(
            types("name=ada; [ -t 1 ] && echo seen", How::Block),
            ("seen".into(), 0)
        );
        assert_eq!(
            types("echo $name; false; echo on", How::Block),
            ("ada\non".into(), 1)
        );
        assert_eq!(types("(exit 7)", How::One), (String::new(), 7));
        assert_eq!(types("echo $?", How::One), ("7".into(), 0));
        shell.close().unwrap();
        folder.remove().unwrap();
    }
}
