//! A server whose instructions are counted, by valgrind's callgrind.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::product::{Installation, Server};

/// Installs valgrind on Debian when it is missing and we may.
pub fn find_or_install() -> Outcome {
    process::find_or_install("valgrind")
}

/// A function on one thread, by the numbers that callgrind gives them for as long as the process lives. The same
/// function on another thread is another place: what writes in the background and what reads for a request share most of
/// their functions, and no thread.
pub type Site = (u32, u32);

/// The instructions that were run at every place, without those of the functions that it calls.
pub type Costs = HashMap<Site, u64>;

/// A server under callgrind.
pub struct CallgrindServer {
    server: Server,
    folder: PathBuf,
    names: HashMap<u32, String>,
}

impl CallgrindServer {
    /// Starts the server and waits until it is ready.
    pub fn start(installation: &Installation, folder: &Path, limit: Duration) -> Outcome<Self> {
        let folder = folder.join("counts");
        std::fs::create_dir_all(&folder).context("cannot make a folder")?;
        // The server's own arguments follow; the process keeps its id. On one processor it has one worker: several look
        // for work that there is not, which is most of the noise. The program begins once more with its settings of memory,
        // which to valgrind is a child.
        let script = folder.join("provost");
        let text = format!(
            "#!/bin/sh\nexec taskset -c 0 valgrind --tool=callgrind --trace-children=yes --dump-line=no \
             --separate-threads=yes --vgdb=full --vgdb-prefix='{0}/pipe' --callgrind-out-file='{0}/count' '{1}' \"$@\"\n",
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
        Ok(Self {
            server,
            folder,
            names: HashMap::new(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Begins to count anew.
    pub fn zero(&self) -> Outcome {
        self.tell("zero")
    }

    /// The instructions since the last `zero`.
    pub fn count(&mut self) -> Outcome<Costs> {
        self.tell("dump")?;
        let files = std::fs::read_dir(&self.folder).context("cannot read the counts")?;
        let mut costs = Costs::new();
        for file in files.flatten().map(|file| file.path()) {
            let is_count = file
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("count"));
            if is_count {
                let text = std::fs::read(&file).context("cannot read a count")?;
                read(&String::from_utf8_lossy(&text), &mut costs, &mut self.names)?;
                std::fs::remove_file(&file).context("cannot remove a count")?;
            }
        }
        if costs.is_empty() {
            return Err(Failure::new("callgrind wrote no count"));
        }
        Ok(costs)
    }

    /// The function of a place; without symbols, its address.
    pub fn name(&self, site: Site) -> &str {
        self.names.get(&site.1).map_or("?", String::as_str)
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

/// Reads the dump of a thread, in callgrind's format: a function is a number, with its name where it is met first, and the
/// lines behind `calls=` are what a call costs whom it calls.
fn read(dump: &str, costs: &mut Costs, names: &mut HashMap<u32, String>) -> Outcome {
    let (mut thread, mut function, mut is_call) = (0, 0, false);
    let (mut sum, mut stated) = (0, None);
    for line in dump.lines() {
        if let Some(number) = line.strip_prefix("thread: ") {
            thread = number.trim().parse().context("a thread without its number")?;
        } else if let Some(total) = line.strip_prefix("totals: ") {
            stated = total.trim().parse::<u64>().ok();
        } else if let Some(reference) = line.strip_prefix("fn=") {
            function = named(reference, names).context(line)?;
        } else if let Some(reference) = line.strip_prefix("cfn=") {
            named(reference, names).context(line)?;
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost: u64 = match line.split_whitespace().nth(1) {
                Some(cost) => cost.parse().context(line)?,
                None => 0,
            };
            if !std::mem::take(&mut is_call) {
                *costs.entry((thread, function)).or_default() += cost;
                sum += cost;
            }
        }
    }
    if stated.is_some_and(|stated| stated != sum) {
        return Err(Failure::new(format!(
            "a dump was not understood: its functions are {sum} instructions, and it says {stated:?}"
        )));
    }
    Ok(())
}

/// The number of a function; `(7) its name` where it is met first, and `(7)` behind that.
fn named(reference: &str, names: &mut HashMap<u32, String>) -> Option<u32> {
    let (number, name) = reference.strip_prefix('(')?.split_once(')')?;
    let number = number.parse().ok()?;
    if !name.is_empty() {
        names.insert(number, name.trim().to_owned());
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "thread: 3\nevents: Ir\nfn=(1) reads\n0 5\n+1 2\ncfn=(2) fetches\ncalls=4 0\n* 900\n\nfn=(2)\n0 \
                        11\nfn=(1)\n-1 3\n\ntotals: 21\n";

    #[test]
    fn what_functions_do_themselves_is_read() {
        let (mut costs, mut names) = (Costs::new(), HashMap::new());
        read(DUMP, &mut costs, &mut names).expect("a dump");
        assert_eq!(costs, Costs::from([((3, 1), 10), ((3, 2), 11)]));
        assert_eq!(names[&2], "fetches");
    }

    #[test]
    fn a_dump_that_does_not_add_up_is_refused() {
        let spoilt = DUMP.replace("totals: 21", "totals: 22");
        assert!(read(&spoilt, &mut Costs::new(), &mut HashMap::new()).is_err());
    }
}
