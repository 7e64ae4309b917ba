//! Which folders lie on other machines, or are served by a program: known before one of them is touched, because to touch is to connect.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Kinds of file systems that ask somebody else, as the kernel calls them; those of programs begin with `fuse.`.
const ELSEWHERE: [&str; 13] = [
    "9p", "afs", "autofs", "ceph", "cifs", "coda", "fuse", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs",
];

/// The mounts of this machine, and of each whether it lies elsewhere.
pub(crate) struct Mounts(BTreeMap<PathBuf, bool>);

impl Mounts {
    /// Reads the kernel's list; other systems than Linux have none, and there nothing is known.
    pub(crate) fn of_machine() -> Self {
        Self::listed(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Takes a list as the kernel writes it (`man 5 proc_pid_mountinfo`). Of two mounts on one folder the later lies on top.
    pub(crate) fn listed(list: &[u8]) -> Self {
        let mount = |line: &[u8]| {
            let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
            let point = fields.get(4)?;
            let end = fields.iter().position(|field| *field == b"-")?;
            let kind = std::str::from_utf8(fields.get(end + 1)?).ok()?;
            let is_elsewhere = ELSEWHERE.contains(&kind) || kind.starts_with("fuse.");
            Some((PathBuf::from(OsString::from_vec(plain(point))), is_elsewhere))
        };
        Self(list.split(|b| *b == b'\n').filter_map(mount).collect())
    }

    /// Says whether a path lies on a mount that lies elsewhere, or below one.
    pub(crate) fn is_below_elsewhere(&self, path: &Path) -> bool {
        let mut mounts = self.0.iter();
        mounts.any(|(folder, is_elsewhere)| *is_elsewhere && path.starts_with(folder))
    }

    /// Says whether what is mounted on a folder lies elsewhere.
    pub(crate) fn lies_elsewhere(&self, folder: &Path) -> bool {
        self.0.get(folder).copied().unwrap_or_default()
    }
}

/// Returns a name of the list with its octal escapes undone.
fn plain(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let [byte, behind @ ..] = text {
        let digits = behind.get(..3).and_then(|octal| std::str::from_utf8(octal).ok());
        let escaped = digits
            .and_then(|octal| u8::from_str_radix(octal, 8).ok())
            .filter(|_| *byte == b'\\');
        bytes.push(escaped.unwrap_or(*byte));
        text = behind
            .get(if escaped.is_some() { 3 } else { 0 }..)
            .unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_other_machines_and_of_programs_are_known_by_their_kind() {
        let list = b"22 1 0:21 / / rw - ext4 /dev/sda rw\n\
            23 22 0:22 / /net rw,relatime shared:3 - autofs auto rw\n\
            24 22 0:23 / /srv/my\\040files rw - fuse.sshfs a:/ rw\n\
            25 22 0:24 / /mnt/c rw - 9p C: rw\n\
            26 22 0:25 / /home rw - autofs auto rw\n\
            27 22 0:26 / /home rw - ext4 /dev/sdb rw\n\
            no mount\n";
        let mounts = Mounts::listed(list);
        for (path, is_elsewhere) in [
            ("/", false),
            ("/net", true),
            ("/srv/my files", true),
            ("/mnt/c", true),
            ("/home", false),
            ("/none", false),
        ] {
            assert_eq!(mounts.lies_elsewhere(Path::new(path)), is_elsewhere, "{path}");
            let below = Path::new(path).join("some/file");
            assert_eq!(mounts.is_below_elsewhere(&below), is_elsewhere, "{path}");
        }
    }
}
