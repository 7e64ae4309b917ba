//! Where what clients keep for people may lie on a machine, and whether somebody may be there of whom nothing says so.
//!
//! ```text
//! /etc/passwd ──► the home of each account, whatever its number and its shell ────────────┐
//! /home, /var/home, where useradd makes homes, where those of accounts lie ──► folders ───┼──► places to look at
//! what services with dynamic accounts keep (/var/lib/private) ────────────────────────────┘
//!
//! nsswitch.conf   files, compat without + and -        the file is everything
//!                 systemd                              it adds nobody where no record of a person is to be seen
//!                 sss, ldap, winbind, nis, …           somebody else names accounts: not everybody is known
//! no such line    as the C library's documents say: files, in earlier ones compat
//! macOS           people are not in the file at all
//! ```
//!
//! Keeps FH-6: where somebody may be on the machine whom nobody looked at, a client is not `enforced`: an account that asked and is in no list,
//! a folder among homes whose owner is none, a source of accounts other than the file. A process of a number that is in no list, that keeps
//! nothing among homes and asks nothing, is not seen.
//!
//! Source: nsswitch.conf(5), the manual of the GNU C Library (Notes on NSS Configuration File), nss-systemd(8), and what systemd says of records of
//! users (`USER_RECORD`).

use provost_inventory::Platform;
use provost_inventory::traces::{Inside, inside};
use provost_words::durable::folder_of;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// LIMIT: homes that are looked at. Ours.
const MOST_HOMES: usize = 256;
/// LIMIT: bytes of a file that names accounts or says where they come from.
const MOST_BYTES: u64 = 4 << 20;
/// Where homes lie: each folder of these is somebody's.
const HOMES: [&str; 3] = ["home", "var/home", "Users"];
/// Where services whose accounts come and go with them keep what is theirs.
const SERVICES: &str = "var/lib/private";
/// Where homes lie that can be locked, and then are not to be read by name.
const LOCKED: [&str; 2] = [".ecryptfs", ".fscrypt"];
/// Folders of the system in which homes of accounts lie among other things.
const SHARED: [&str; 8] = ["var", "var/lib", "usr", "opt", "srv", "run", "etc", "tmp"];
/// Where records of people lie that systemd adds to the file.
const RECORDS: [&str; 5] = [
    "etc/userdb",
    "run/userdb",
    "run/host/userdb",
    "usr/lib/userdb",
    "usr/local/lib/userdb",
];
/// What says of accounts what is known here by other means: dynamic accounts of services, records in folders, homes of systemd, users inside
/// of containers, and what the C library knows.
const SPEAKERS: [&str; 7] = [
    "io.systemd.DropIn",
    "io.systemd.DynamicUser",
    "io.systemd.Home",
    "io.systemd.Machine",
    "io.systemd.Multiplexer",
    "io.systemd.NameServiceSwitch",
    "io.systemd.NamespaceResource",
];

/// Where to look, and whether that is everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// The homes.
    pub homes: Vec<PathBuf>,
    /// Whether nobody can be there who has none of these.
    pub has_all: bool,
}

/// An account of the file.
struct Account {
    number: u32,
    home: PathBuf,
    logs_in: bool,
}

impl People {
    fn add(&mut self, home: PathBuf) {
        if self.homes.contains(&home) {
        } else if self.homes.len() == MOST_HOMES {
            self.has_all = false;
        } else {
            self.homes.push(home);
        }
    }
}

/// Returns who may be on a machine below a root; `asked` are the accounts that asked the desk.
///
/// Keeps FH-6.
pub fn people(root: &Path, platform: Platform, asked: &BTreeSet<u32>) -> People {
    let (accounts, is_whole) = listed(root);
    let known: BTreeSet<u32> = accounts.iter().map(|account| account.number).collect();
    let mut people = People {
        homes: Vec::new(),
        has_all: is_whole
            && platform == Platform::Linux
            && is_file_everything(root)
            && asked.is_subset(&known)
            && LOCKED.iter().all(|name| is_nothing(&root.join(name))),
    };
    for account in &accounts {
        if !is_gone(&account.home) {
            people.add(account.home.clone());
        }
    }
    let own: BTreeSet<&Path> = accounts.iter().map(|account| account.home.as_path()).collect();
    let homes: BTreeSet<PathBuf> = HOMES.iter().map(|below| root.join(below)).collect();
    let homes: BTreeSet<PathBuf> = homes.into_iter().chain(made(root)).collect();
    for folder in &homes {
        let Some(found) = inside(folder) else {
            people.has_all = false;
            continue;
        };
        for one in found {
            people.has_all &= !is_locked(&one);
            if one.is_folder && !own.contains(one.path.as_path()) {
                people.has_all &= one.owner.is_some_and(|owner| known.contains(&owner));
                people.add(one.path);
            }
        }
    }
    // Where homes of people lie among other things, what belongs to nobody who is known is somebody's.
    let shared: BTreeSet<&Path> = accounts
        .iter()
        .filter(|account| account.logs_in && account.number != 0)
        .map(|account| folder_of(&account.home))
        .filter(|folder| *folder != root && !homes.contains(*folder))
        .filter(|folder| !SHARED.iter().any(|below| root.join(below) == *folder))
        .collect();
    for folder in shared {
        let Some(found) = inside(folder) else {
            people.has_all = false;
            continue;
        };
        for one in found {
            let is_known = one.owner.is_some_and(|owner| known.contains(&owner));
            if one.is_folder && !is_known && !own.contains(one.path.as_path()) {
                people.has_all = false;
                people.add(one.path);
            }
        }
    }
    match inside(&root.join(SERVICES)) {
        Some(found) => {
            for one in found.into_iter().filter(|one| one.is_folder) {
                people.add(one.path);
            }
        }
        None => people.has_all = false,
    }
    people
}

/// Returns a small text, nothing of a file that is not there.
///
/// Errors: it cannot be read, or is none.
fn text(path: &Path) -> Result<Option<String>, ()> {
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Ok(found) if found.is_file() && found.len() <= MOST_BYTES => {
            fs::read_to_string(path).map(Some).map_err(drop)
        }
        _ => Err(()),
    }
}

/// Returns the accounts of the file, and whether every line of it was understood.
fn listed(root: &Path) -> (Vec<Account>, bool) {
    let Ok(Some(text)) = text(&root.join("etc/passwd")) else {
        return (Vec::new(), false);
    };
    let (mut accounts, mut is_whole) = (Vec::new(), !text.is_empty());
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(':').collect();
        let number = fields.get(2).and_then(|number| number.parse().ok());
        match (number, fields.get(5)) {
            // A line of these signs asks elsewhere, or takes somebody away, where the file is read so.
            (Some(number), Some(home)) if !line.starts_with(['+', '-']) => {
                let shell = fields.get(6).copied().unwrap_or_default();
                let below = home.trim_start_matches('/');
                accounts.push(Account {
                    number,
                    home: if below.is_empty() {
                        root.to_owned()
                    } else {
                        root.join(below)
                    },
                    logs_in: !shell.ends_with("/nologin") && !shell.ends_with("/false"),
                });
            }
            _ => is_whole = false,
        }
    }
    (accounts, is_whole)
}

/// Says whether no source names accounts but the file.
fn is_file_everything(root: &Path) -> bool {
    // Some systems have one of their maker beside that of the machine.
    ["etc/nsswitch.conf", "usr/etc/nsswitch.conf"]
        .iter()
        .all(|below| match text(&root.join(below)) {
            Ok(None) => true,
            Ok(Some(text)) => text.lines().all(|line| is_of_file(root, line)),
            Err(()) => false,
        })
}

/// Says the same of one line.
fn is_of_file(root: &Path, line: &str) -> bool {
    let line = line.split_once('#').map_or(line, |(line, _)| line);
    let Some((name, sources)) = line.split_once(':') else {
        return true;
    };
    if name.trim() != "passwd" {
        return true;
    }
    let mut has_ended = true;
    sources
        .replace('[', " [ ")
        .replace(']', " ] ")
        .split_whitespace()
        .all(|word| match word {
            // What stands between these says what happens next, and names no source.
            "[" | "]" => {
                has_ended = word == "]";
                true
            }
            _ if !has_ended => true,
            "files" | "compat" => true,
            "systemd" => has_no_records(root),
            _ => false,
        })
}

/// Says whether systemd adds no people: there is no record of one, and nobody speaks of accounts but those whose word is known otherwise.
fn has_no_records(root: &Path) -> bool {
    let are_all = |below: &str, is_fine: &dyn Fn(&str) -> bool| {
        inside(&root.join(below)).is_some_and(|found| {
            let mut names = found
                .iter()
                .map(|one| one.path.file_name().and_then(|name| name.to_str()));
            names.all(|name| name.is_some_and(is_fine))
        })
    };
    let is_of_groups = |name: &str| {
        let endings = [".group", ".group-privileged", ".membership"];
        endings.iter().any(|ending| name.ends_with(ending))
    };
    RECORDS.iter().all(|below| are_all(below, &is_of_groups))
        && are_all("var/lib/systemd/home", &|name| !name.ends_with(".identity"))
        && are_all("run/systemd/userdb", &|name| SPEAKERS.contains(&name))
}

/// Returns where this machine makes homes, as far as that is another place.
fn made(root: &Path) -> Vec<PathBuf> {
    let said = [("etc/default/useradd", "HOME"), ("etc/adduser.conf", "DHOME")];
    let found = said.iter().filter_map(|(below, member)| {
        let text = text(&root.join(below)).ok().flatten()?;
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let (_, folder) = lines.rfind(|(name, _)| name.trim() == *member)?;
        let folder = folder.trim().trim_matches(['"', '\'']).trim_matches('/');
        (!folder.is_empty()).then(|| root.join(folder))
    });
    found.collect()
}

/// Says whether something among homes shows that one may be locked: its folder looks empty then.
fn is_locked(one: &Inside) -> bool {
    let is = |part: Option<&OsStr>, words: &[&str]| {
        let part = part.and_then(OsStr::to_str);
        part.is_some_and(|part| words.contains(&part))
    };
    is(one.path.file_name(), &LOCKED) || is(one.path.extension(), &["home", "homedir"])
}

fn is_nothing(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Says whether a home is known not to be there: the folder above it can be seen, and has others. Where there are none, homes may be hidden.
fn is_gone(home: &Path) -> bool {
    is_nothing(home) && fs::read_dir(folder_of(home)).is_ok_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
mod tests;
