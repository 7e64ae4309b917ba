//! Where the paths of a command lead, and what of it may be hashed.

use super::Identity;
use crate::disk::Disk;
use crate::fingerprint::InventoryKey;
use crate::packages;
use crate::report::Pin;
use crate::syntax::{self, Format};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// LIMIT: a program whose content is its identity. Ours.
const MAX_PROGRAM: u64 = 64 << 20;
/// Ends of names of files that are programs, whatever their permissions say.
const CODE: [&str; 14] = [
    "bash", "cjs", "js", "jsx", "mjs", "mts", "php", "pl", "ps1", "py", "rb", "sh", "ts", "tsx",
];
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

/// Files of a project that say where packages come from, what replaces them, or what runs before them.
const TURNING: [&str; 14] = [
    ".npmrc",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    ".yarnrc",
    ".yarnrc.yml",
    "NuGet.Config",
    "NuGet.config",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
    "global.json",
    "import_map.json",
    "nuget.config",
    "pnpm-workspace.yaml",
];
/// Files of variables that Bun and Gemini CLI read where they are started: one of them may say where packages come from.
const VARIABLES: [&str; 9] = [
    ".env",
    ".env.development",
    ".env.development.local",
    ".env.local",
    ".env.production",
    ".env.production.local",
    ".env.test",
    ".env.test.local",
    ".gemini/.env",
];
/// LIMIT: programs that a manifest of a project names. Ours; of one with more it is not known which.
const MAX_PROGRAMS: usize = 200;

/// The programs that manifests of projects name, by their folder; `None` where it is not known.
pub(crate) type Manifests = RefCell<BTreeMap<PathBuf, Option<BTreeSet<String>>>>;

/// Where the paths of a command lead.
pub(crate) struct Ground<'a> {
    pub(crate) disk: &'a Disk<'a>,
    pub(crate) root: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) key: &'a InventoryKey,
    /// Where a relative path begins, and the fence around it.
    pub(crate) base: (&'a Path, &'a Path),
    pub(crate) manifests: &'a Manifests,
}

impl Ground<'_> {
    /// Returns where a path of a command leads, and whether that is sure: clients start in the folder in which the person is.
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
        (self.base.0.join(text), false)
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

    /// Returns the identity of a file by its content. A digest of a file tells who may not read it what it may hold, and a configuration may
    /// name any: it must be a program, and others than its owner must have the right to read it, outside of the home everybody.
    pub(super) fn hashed(&self, text: &str, kind: &str) -> Option<Identity> {
        let (path, is_sure) = self.place(text);
        let (path, fence) = self.fenced(&path)?;
        let content = self.disk.digest(&path, &fence, MAX_PROGRAM).ok()??;
        let is_own = self.own_home().is_some_and(|home| path.starts_with(home));
        let readers = if is_own { 0o044 } else { 0o004 };
        let is_open = content.mode & readers != 0;
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let is_program = content.mode & 0o111 != 0 || CODE.contains(&ending);
        // A script loads what lies beside it, and so may a program: only those of the system have nobody else's files there.
        let mut programs = PROGRAMS.iter().map(|folder| self.root.join(folder));
        let is_alone = !content.is_script && kind == "bin" && programs.any(|folder| fence == folder);
        (is_open && is_program && content.length >= LEAST_PROGRAM).then(|| Identity {
            pin: Pin::Digest,
            is_weak: !is_sure || !is_alone,
            ..Identity::named(format!("{kind}:sha256:{}", content.hex))
        })
    }

    /// Says whether something is called so in the folder in which a command begins.
    pub(super) fn has(&self, name: &str) -> bool {
        self.disk.has(&self.base.0.join(name))
    }

    /// Says whether a project, or a folder above it, has a file of variables. Those of a home are its owner's.
    pub(crate) fn brings_variables(&self) -> bool {
        let has = |folder: &Path| VARIABLES.iter().any(|name| self.disk.has(&folder.join(name)));
        self.folders()
            .iter()
            .any(|folder| folder != self.home && has(folder))
    }

    /// Returns the folder in which a command begins and those above it, up to the home or the root.
    fn folders(&self) -> Vec<PathBuf> {
        let base = self.disk.resolved(self.base.0).ok().flatten();
        let base = base.as_deref().unwrap_or(self.base.0);
        let mut is_below = true;
        base.ancestors()
            .take_while(|folder| {
                let is_taken = is_below && folder.starts_with(self.root);
                is_below &= *folder != self.home;
                is_taken
            })
            .map(Path::to_owned)
            .collect()
    }

    /// Says whether a project brings this package itself, or says where packages come from: tools of JavaScript, Deno and .NET take its
    /// word before that of a registry. They look from the project up; the settings in a home are its owner's.
    pub(super) fn brings(&self, package: Option<&str>) -> bool {
        self.folders().iter().any(|folder| {
            let is_turned = || TURNING.iter().any(|name| self.disk.has(&folder.join(name)));
            (folder != self.home && is_turned()) || package.is_some_and(|name| self.has_package(folder, name))
        })
    }

    /// Says whether a package or its program lies in a folder, or is the folder's own.
    fn has_package(&self, folder: &Path, name: &str) -> bool {
        let modules = folder.join("node_modules");
        let program = name.rsplit('/').next().unwrap_or(name);
        if self.disk.has(&modules.join(name)) || self.disk.has(&modules.join(".bin").join(program)) {
            return true;
        }
        let manifest = folder.join("package.json");
        if !self.disk.has(&manifest) {
            return false;
        }
        let mut manifests = self.manifests.borrow_mut();
        let named = manifests
            .entry(folder.to_owned())
            .or_insert_with(|| self.programs(&manifest));
        named
            .as_ref()
            .is_none_or(|named| named.contains(&program.to_lowercase()))
    }

    /// Returns the programs that a manifest names: `npx` runs them from there. Nothing where it is not wholly understood: a folder of
    /// programs (`directories`), names that are paths, settings of another tool.
    fn programs(&self, manifest: &Path) -> Option<BTreeSet<String>> {
        let (path, fence) = self.fenced(manifest)?;
        let value = self.json(&path, &fence)?;
        if ["directories", "pnpm"].iter().any(|name| !value[*name].is_null()) {
            return None;
        }
        let named: Vec<&str> = match &value["bin"] {
            Value::Null => Vec::new(),
            Value::String(_) => {
                let own = value["name"].as_str().unwrap_or_default();
                vec![own.rsplit('/').next().unwrap_or(own)]
            }
            Value::Object(named) if named.len() <= MAX_PROGRAMS => named.keys().map(String::as_str).collect(),
            _ => return None,
        };
        let is_plain = |name: &&str| {
            name.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let is_whole = value.is_object() && named.iter().all(is_plain);
        is_whole.then(|| named.iter().map(|name| name.to_lowercase()).collect())
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
