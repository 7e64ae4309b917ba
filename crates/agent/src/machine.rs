//! What the agent knows of the machine that it works on, read from files.

use crate::device::Mode;
use std::fs;
use std::path::{Path, PathBuf};

/// LIMIT: users of a device (F2.15).
const MAX_HOMES: usize = 16;
/// LIMIT: bytes of a file of the system that is read here. Ours.
const MAX_FILE: usize = 1 << 20;

/// Returns the word for the system.
pub(crate) fn platform() -> &'static str {
    if cfg!(target_os = "macos") {
        "macos"
    } else if cfg!(windows) {
        "windows"
    } else {
        "linux"
    }
}

/// Returns the machine's name for itself.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// Returns the number of this installation of the system, where it has one.
pub(crate) fn machine_id() -> Option<String> {
    let text = fs::read_to_string("/etc/machine-id").ok()?;
    let id = text.trim();
    (id.len() == 32).then(|| id.to_owned())
}

/// Returns what the system calls this run of it; without such a name it is one run for ever.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let id: String = text
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(64)
        .collect();
    if id.is_empty() { "unknown".to_owned() } else { id }
}

/// Returns the version of the system for people: `Debian GNU/Linux 13 (trixie)`.
pub(crate) fn os_version() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let pretty = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let pretty = pretty
        .map(|name| name.trim_matches(['"', '\'']).trim())
        .filter(|name| !name.is_empty());
    let name = rustix::system::uname();
    let kernel = || {
        format!(
            "{} {}",
            name.sysname().to_string_lossy(),
            name.release().to_string_lossy()
        )
    };
    let version = pretty.map_or_else(kernel, str::to_owned);
    version
        .chars()
        .filter(|letter| !letter.is_control())
        .take(128)
        .collect()
}

/// Returns the homes that are scanned: one's own, or those of the people who have an account here.
pub fn homes(mode: Mode, own: &Path) -> Vec<PathBuf> {
    if mode == Mode::User {
        return vec![own.to_owned()];
    }
    let accounts = fs::read("/etc/passwd").unwrap_or_default();
    let text = String::from_utf8_lossy(&accounts[..accounts.len().min(MAX_FILE)]);
    let mut homes = people(&text);
    homes.retain(|home| home.is_dir());
    homes.truncate(MAX_HOMES);
    homes
}

/// Returns the homes of the accounts that are people's: those from 1000 on whose shell lets somebody in.
fn people(accounts: &str) -> Vec<PathBuf> {
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, _, _, home, shell] = fields.as_slice() else {
            return None;
        };
        let id: u32 = id.parse().ok()?;
        let is_nobody = shell.ends_with("nologin") || shell.ends_with("false");
        let is_person = (1000..65_534).contains(&id) && !is_nobody && home.starts_with('/') && *home != "/";
        is_person.then(|| PathBuf::from(home))
    };
    let mut homes: Vec<PathBuf> = accounts.lines().filter_map(home).collect();
    homes.sort();
    homes.dedup();
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_those_of_people() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n\
                        ada:x:1000:1000:Ada,,,:/home/ada:/bin/bash\nbot:x:1001:1001::/home/bot:/usr/sbin/nologin\n\
                        nobody:x:65534:65534::/:/bin/sh\nodd:x:1002:1002::/:/bin/sh\nbroken line\n\
                        bob:x:1003:1003::/srv/bob:/bin/zsh\n";
        assert_eq!(
            people(accounts),
            [PathBuf::from("/home/ada"), PathBuf::from("/srv/bob")]
        );
        assert_eq!(
            homes(Mode::User, Path::new("/somewhere")),
            [PathBuf::from("/somewhere")]
        );
    }

    #[test]
    fn the_system_has_a_version_that_fits() {
        let version = os_version();
        assert!(!version.is_empty() && version.chars().count() <= 128, "{version}");
    }
}
