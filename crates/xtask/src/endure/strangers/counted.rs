//! A server whose instructions are counted, by valgrind's callgrind.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::failure::{Context, Outcome};
use crate::process;
use crate::product::{Installation, Server};

/// Installs valgrind on Debian when it is missing and we may.
pub fn find_or_install() -> Outcome {
    process::find_or_install("valgrind")
}

/// A server under callgrind.
pub struct Counted {
    server: Server,
    folder: PathBuf,
}

impl Counted {
    /// Starts the server and waits until it is ready.
    pub fn start(installation: &Installation, folder: &Path, limit: Duration) -> Outcome<Self> {
        let folder = folder.join("counts");
        std::fs::create_dir_all(&folder).context("cannot make a folder")?;
        // The server's own arguments follow; the process keeps its id. On one processor it has one worker: several look
        // for work that there is not, which is most of the noise. The program begins once more with its settings of memory,
        // which to valgrind is a child.
        let script = folder.join("provost");
        let text = format!(
            "#!/bin/sh\nexec taskset -c 0 valgrind --tool=callgrind --trace-children=yes --dump-line=no --vgdb=full \
             --vgdb-prefix='{0}/pipe' --callgrind-out-file='{0}/count' '{1}' \"$@\"\n",
            folder.display(),
            installation.binary.display()
        );
        std::fs::write(&script, text).context("cannot write a script")?;
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&script, mode).context("cannot make a script a program")?;
        let counted = Installation {
            binary: script,
            ..installation.clone()
        };
        let mut server = counted.launch()?;
        server.wait_until_ready(limit)?;
        Ok(Self { server, folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Begins to count anew.
    pub fn zero(&self) -> Outcome {
        self.tell("zero")
    }

    /// The instructions of all threads since the last `zero`.
    pub fn count(&self) -> Outcome<u64> {
        self.tell("dump")?;
        let files = std::fs::read_dir(&self.folder).context("cannot read the counts")?;
        let mut count = None;
        for file in files.flatten().map(|file| file.path()) {
            let is_count = file
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("count"));
            if is_count {
                let text = std::fs::read(&file).context("cannot read a count")?;
                count = count.or(total(&String::from_utf8_lossy(&text)));
                std::fs::remove_file(&file).context("cannot remove a count")?;
            }
        }
        count.context("callgrind wrote no count")
    }

    fn tell(&self, word: &str) -> Outcome {
        let mut command = Command::new("vgdb");
        command
            .arg(format!("--vgdb-prefix={}/pipe", self.folder.display()))
            .arg(format!("--pid={}", self.server.pid()))
            .arg(word);
        process::output(&mut command).map(drop)
    }

    pub fn stop(self) -> Outcome {
        self.server.stop().map(drop)
    }
}

/// The sum over all functions, in the last lines of a dump.
fn total(dump: &str) -> Option<u64> {
    let mut lines = dump.lines().rev();
    lines.find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_dump_is_read() {
        assert_eq!(
            total("summary: 7\n\nfn=(1) x\n+1 5\n\ntotals: 26229693\n"),
            Some(26_229_693)
        );
        assert_eq!(total("events: Ir\n"), None);
    }
}
