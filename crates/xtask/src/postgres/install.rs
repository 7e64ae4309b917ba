//! Where the server's programs are, and how they get there on Debian when they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// The oldest major version that the product supports.
const OLDEST: u32 = 15;

/// The folder with `initdb`, `postgres` and `createdb` of one major version.
#[derive(Clone)]
pub struct Binaries {
    pub folder: PathBuf,
    pub version: String,
}

impl Binaries {
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.folder.join(name))
    }
}

/// The newest server on this machine; on Debian, as root, installs the package when there is none.
pub fn find_or_install() -> Outcome<Binaries> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let debian = Path::new("/etc/debian_version").exists() && process::find_program("apt-get").is_some();
    if !debian || !process::is_root() {
        return Err(Failure::new(format!(
            "no PostgreSQL {OLDEST} or newer found: install your system's server package \
             (Debian and Ubuntu: sudo apt-get install postgresql; Fedora: sudo dnf install postgresql-server; \
             macOS: brew install postgresql@{OLDEST}) and run this again"
        )));
    }
    install()?;
    find().context("Debian's package postgresql is installed, but it is older than version 15")
}

fn find() -> Option<Binaries> {
    let mut folders = Vec::new();
    if let Ok(folder) = process::output(Command::new("pg_config").arg("--bindir")) {
        folders.push(PathBuf::from(folder.trim()));
    }
    for parent in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| entry.path().join("bin")));
    }
    // A program on the PATH is often a link; its neighbours are where it really lives.
    let linked = process::find_program("initdb").and_then(|path| path.canonicalize().ok());
    folders.extend(linked.and_then(|path| path.parent().map(Path::to_path_buf)));
    folders.push(PathBuf::from("/usr/local/pgsql/bin"));

    let usable = folders.into_iter().filter_map(|folder| {
        let complete = ["initdb", "postgres", "createdb"]
            .iter()
            .all(|name| folder.join(name).is_file());
        let said =
            complete.then(|| process::output(Command::new(folder.join("postgres")).arg("--version")))?;
        let said = said.ok()?;
        let major = major_version(&said).filter(|major| *major >= OLDEST)?;
        Some((
            major,
            Binaries {
                folder,
                version: said.trim().to_owned(),
            },
        ))
    });
    usable
        .max_by_key(|(major, _)| *major)
        .map(|(_, binaries)| binaries)
}

/// The major version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn major_version(said: &str) -> Option<u32> {
    let rest = said.split("(PostgreSQL) ").nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn install() -> Outcome {
    println!("No PostgreSQL {OLDEST} or newer found. Running as root on Debian, so it will be installed:");
    println!("  apt-get update");
    println!("  apt-get install -y --no-install-recommends postgresql-common");
    println!("  apt-get install -y --no-install-recommends postgresql");
    println!("Debian's own \"main\" cluster is neither created nor started: for the last step the line");
    println!("\"create_main_cluster = false\" stands in /etc/postgresql-common/createcluster.conf.");
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", "postgresql-common"])?;
    let _no_main_cluster = NoMainCluster::declare()?;
    apt(&["install", "-y", "--no-install-recommends", "postgresql"])
}

fn apt(arguments: &[&str]) -> Outcome {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .arg("-q")
        .args(arguments);
    process::run(&mut command)
}

/// Keeps the package from creating a cluster while it is installed; the file is put back afterwards.
struct NoMainCluster {
    path: &'static str,
    before: String,
}

impl NoMainCluster {
    fn declare() -> Outcome<Self> {
        let path = "/etc/postgresql-common/createcluster.conf";
        let before = std::fs::read_to_string(path).context(format_args!("cannot read {path}"))?;
        let during = format!("{before}\ncreate_main_cluster = false\n");
        std::fs::write(path, during).context(format_args!("cannot write {path}"))?;
        Ok(Self { path, before })
    }
}

impl Drop for NoMainCluster {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(self.path, &self.before) {
            eprintln!(
                "warning: {} keeps the line \"create_main_cluster = false\": {error}",
                self.path
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_server_says() {
        assert_eq!(
            major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(major_version("postgres (PostgreSQL) 19devel"), Some(19));
        assert_eq!(major_version("mysqld 8.0"), None);
    }
}
