//! The name and the home of an account, as the machine's own file has it.
//!
//! Keeps LJ-4.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// LIMIT: bytes of the file of accounts.
const MOST: u64 = 4 << 20;
/// What the kernel calls an account that it cannot name here: one of another namespace.
const NOBODY: u32 = 65_534;

/// Returns the name that an account has in a file of the form of `/etc/passwd`; `None` where it has none there, or several.
///
/// An account of a directory is in no such file: then the hook asks the server, and says itself who it is.
pub fn account_of(uid: u32, file: &Path) -> Option<String> {
    entry_of(uid, file).map(|(name, _)| name)
}

/// Returns the home that an account has in a file of the form of `/etc/passwd`; `None` where it has none there, or several.
pub fn home_of(uid: u32, file: &Path) -> Option<PathBuf> {
    let (_, home) = entry_of(uid, file)?;
    Some(PathBuf::from(home)).filter(|home| home.is_absolute() && home.parent().is_some())
}

/// Returns the name and the home of an account.
fn entry_of(uid: u32, file: &Path) -> Option<(String, String)> {
    if uid == NOBODY {
        return None;
    }
    let mut text = String::new();
    let read = File::open(file)
        .ok()?
        .take(MOST + 1)
        .read_to_string(&mut text)
        .ok()?;
    if read as u64 > MOST {
        return None;
    }
    let mut found: Option<(&str, &str)> = None;
    for line in text.lines() {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1));
        let home = fields.nth(2).unwrap_or_default();
        if number.and_then(|number| number.parse().ok()) != Some(uid) || name.is_empty() {
            continue;
        }
        // Two names of one number are two people to whoever reads the one or the other.
        if found.is_some_and(|(found, _)| found != name) {
            return None;
        }
        // Of two lines of one name nobody knows whose home counts.
        let is_other = found.is_some_and(|(_, before)| before != home);
        found = Some((name, if is_other { "" } else { home }));
    }
    found.map(|(name, home)| (name.to_owned(), home.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LJ-4.
    #[test]
    fn an_account_has_the_one_name_of_the_machines_file() {
        let folder = crate::tests::Scratch::new();
        let path = folder.0.join("passwd");
        let text = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\nbob:x:1001:1::/:/bin/sh\nbert:x:1001:1::/:/bin/sh\n\
                    nobody:x:65534:65534::/:/bin/false\n:x:1002:1::/:/bin/sh\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(account_of(1000, &path).as_deref(), Some("ada"));
        assert_eq!(account_of(0, &path).as_deref(), Some("root"));
        for uid in [1001, 1002, 1003, 65_534] {
            assert_eq!(account_of(uid, &path), None, "{uid}");
        }
        assert_eq!(account_of(0, &folder.0.join("none")), None);
        assert_eq!(home_of(1000, &path), Some("/home/ada".into()));
        // Two names, no home of its own, none at all.
        for uid in [1001, 1002, 1003, 65_534] {
            assert_eq!(home_of(uid, &path), None, "{uid}");
        }
        let text = "ada:x:1000:1000::/home/ada:/bin/sh\nada:x:1000:1000::/srv/ada:/bin/sh\nbob:x:1001:1::/:/bin/sh\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(account_of(1000, &path).as_deref(), Some("ada"));
        assert_eq!((home_of(1000, &path), home_of(1001, &path)), (None, None));
    }
}
