//! Where the paths of a command lead, and what of it may be hashed.

use super::Identity;
use crate::disk::Disk;
use crate::fingerprint::InventoryKey;
use crate::packages;
use crate::report::Pin;
use crate::syntax::{self, Format};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// LIMIT: a program whose content is its identity. Ours.
const MAX_PROGRAM: u64 = 64 << 20;
/// A shorter file could be found by trying what it may hold; it might be a credential that a command names. Ours.
const LEAST_PROGRAM: u64 = 64;
/// Where systems have their programs. Other files outside of homes and projects are nobody's server.
const PROGRAMS: [&str; 7] = [
    "usr/bin",
    "usr/sbin",
    "usr/local/bin",
    "bin",
    "opt/homebrew",
    "usr/lib",
    "usr/local/lib",
];

/// Where the paths of a command lead.
pub(crate) struct Ground<'a> {
    pub(crate) disk: &'a Disk<'a>,
    pub(crate) root: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) key: &'a InventoryKey,
    /// Where a relative path begins, and the fence around it.
    pub(crate) base: (&'a Path, &'a Path),
}

impl Ground<'_> {
    /// Returns where a path of a command leads, and whether that is sure: where a client starts what stands in a home is not known.
    fn place(&self, text: &str) -> (PathBuf, bool) {
        for begin in ["~/", "$HOME/", "${HOME}/", "${env:HOME}/", "${userHome}/"] {
            if let Some(rest) = text.strip_prefix(begin) {
                return (self.home.join(rest), true);
            }
        }
        if let Some(rest) = text.strip_prefix('/') {
            return (self.root.join(rest), true);
        }
        let text = text.strip_prefix("${workspaceFolder}/").unwrap_or(text);
        (self.base.0.join(text), self.base.0 != self.home)
    }

    fn own_home(&self) -> Option<&Path> {
        Some(self.home).filter(|home| *home != self.root)
    }

    /// Returns a canonical path and the fence around it, if there is one of those behind which a file may be hashed.
    fn fenced(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let path = self.disk.resolved(path).ok()??;
        let programs = PROGRAMS.iter().map(|folder| self.root.join(folder));
        // A project around the home is none, and an account whose home is the whole machine has none.
        let project = Some(self.base.1).filter(|project| !self.home.starts_with(project));
        let own = [self.own_home(), project]
            .into_iter()
            .flatten()
            .map(Path::to_owned);
        let mut fences = own.chain(programs);
        let fence = fences.find(|fence| path.starts_with(fence))?;
        Some((path, fence))
    }

    /// Returns the identity of a file by its content. What lies outside of the home must be readable by everybody: a digest of it tells
    /// who may not read it what it may hold, and a project's name is what a configuration says.
    pub(super) fn hashed(&self, text: &str, kind: &str) -> Option<Identity> {
        let (path, is_sure) = self.place(text);
        let (path, fence) = self.fenced(&path)?;
        let content = self.disk.digest(&path, &fence, MAX_PROGRAM).ok()??;
        let is_own = self.own_home().is_some_and(|home| path.starts_with(home));
        let is_open = is_own || content.mode & 0o004 != 0;
        (is_open && content.length >= LEAST_PROGRAM).then(|| Identity {
            pin: Pin::Digest,
            is_weak: !is_sure,
            ..Identity::named(format!("{kind}:sha256:{}", content.hex))
        })
    }

    /// Returns the version that stands in a package's own file.
    pub(super) fn installed(&self, text: &str) -> Option<String> {
        let (path, fence) = self.fenced(&self.place(text).0)?;
        let value = self.json(&path, &fence)?;
        value["version"]
            .as_str()
            .filter(|version| packages::is_exact(version, packages::NPM_NUMBERS))
            .map(str::to_owned)
    }

    /// Returns what a JSON file says, behind the same bounds as a configuration.
    fn json(&self, path: &Path, fence: &Path) -> Option<Value> {
        let content = self.disk.read(path, fence, Format::Json.most()).ok()??;
        syntax::value(&content.bytes, Format::Json, &|| self.disk.is_over()).ok()
    }

    /// Returns the names in a folder of a command.
    pub(super) fn names(&self, text: &str) -> Option<Vec<String>> {
        let (path, fence) = self.fenced(&self.place(text).0)?;
        self.disk.names(&path, &fence).ok()
    }
}
