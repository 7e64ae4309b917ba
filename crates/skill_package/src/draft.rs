//! What a reader has found so far, and the judgement at the end. The limits are kept here, for every kind of source.

use super::path::{self, Tree};
use super::{
    Fault, File, MAX_ARCHIVE_BYTES, MAX_DEPTH, MAX_EXPANDED_BYTES, MAX_FILE_BYTES, MAX_FILES, MAX_PATH_BYTES,
    Manifest, Names, Package, SKILL_FILE, front_matter,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// LIMIT: faults that are told; who made the package looks at it after the first ten.
const MAX_FAULTS: usize = 100;
/// LIMIT: files and folders of an archive.
const MAX_ENTRIES: usize = 2 * MAX_FILES;

/// What an entry of an archive or a folder is.
pub(super) enum Kind {
    Folder,
    File {
        executable: bool,
    },
    /// Neither; the words say what.
    Other(&'static str),
}

/// The files and faults so far.
#[derive(Default)]
pub(super) struct Draft {
    files: Vec<(String, File)>,
    folders: Vec<String>,
    entries: usize,
    expanded_bytes: u64,
    faults: Vec<Fault>,
    /// The reader gave up; what it did not see cannot be judged.
    is_cut_off: bool,
}

impl Draft {
    pub(super) fn fault(&mut self, path: &str, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault(path, message));
        }
    }

    /// Takes the fault at which a reader gave up.
    pub(super) fn stopped(&mut self, read: Result<(), Fault>) {
        if let Err(last) = read {
            // It must be told, even if it is one too many: it says why the list is not complete.
            self.faults.truncate(MAX_FAULTS - 1);
            self.faults.push(last);
            self.is_cut_off = true;
        }
    }

    /// Takes one entry and returns how many bytes of content were read.
    ///
    /// Errors: a fault after which nothing more may be read.
    pub(super) fn take(&mut self, name: &[u8], kind: &Kind, content: &mut dyn Read) -> Result<u64, Fault> {
        // INVARIANT SP-2: what is counted is what was read, never what a header says.
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(fault(
                "",
                format!("there are more than {MAX_ENTRIES} files and folders"),
            ));
        }
        let lossy = String::from_utf8_lossy(name);
        let path = match path::checked(name, matches!(kind, Kind::Folder)) {
            Ok(path) => Some(path),
            Err(message) => {
                self.fault(&lossy, message);
                None
            }
        };
        match (kind, path) {
            (Kind::Folder, path) => {
                self.folders.extend(path.filter(|path| !path.is_empty()));
                Ok(0)
            }
            (Kind::File { executable }, path) => self.take_file(&lossy, path, *executable, content),
            (Kind::Other(what), path) => {
                // A bad name has been told already.
                if path.is_some() {
                    self.fault(&lossy, format!("{what} cannot be part of a skill"));
                }
                Ok(0)
            }
        }
    }

    fn take_file(
        &mut self,
        name: &str,
        path: Option<String>,
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<u64, Fault> {
        if self.files.len() == MAX_FILES {
            return Err(fault("", format!("there are more than {MAX_FILES} files")));
        }
        let left = MAX_EXPANDED_BYTES - self.expanded_bytes;
        let mut bytes = Vec::new();
        let read = content
            .take(left.min(MAX_FILE_BYTES) + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| fault(name, format!("cannot be read: {error}")))? as u64;
        if read > left {
            return Err(too_much());
        }
        self.expanded_bytes += read;
        if read > MAX_FILE_BYTES {
            self.fault(name, format!("the file has more than {MAX_FILE_BYTES} bytes"));
        } else if let Some(path) = path {
            self.files.push((path, File { executable, bytes }));
        }
        Ok(read)
    }

    /// Returns the package, if nothing is wrong. `folder` is the name of the folder that was read, `given` the name for a
    /// skill whose own names do not fit.
    pub(super) fn finish(
        mut self,
        folder: Option<String>,
        given: Option<&str>,
    ) -> Result<Package, Vec<Fault>> {
        if self.is_cut_off {
            return Err(self.faults);
        }
        let folder = folder.or_else(|| self.strip_top_folder());
        self.judge_paths();
        let Some(mut front_matter) = self.judge_skill_file() else {
            return Err(self.faults);
        };
        let names = Names {
            front_matter: front_matter.name.take(),
            folder,
        };
        let name = match names.choose(given) {
            Ok(name) => name,
            Err(message) => {
                self.fault(SKILL_FILE, message);
                return Err(self.faults);
            }
        };
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let mut warnings = std::mem::take(&mut front_matter.warnings);
        warnings.extend(names.warning(&name));
        let files: BTreeMap<String, File> = self.files.into_iter().collect();
        let package = Package {
            manifest: Manifest::of(name, front_matter, &files),
            files,
            names,
            warnings,
        };
        // What is small enough needs no trial: headers and compression add less than as much again.
        let may_be_large = self.expanded_bytes > MAX_ARCHIVE_BYTES as u64 / 2;
        if may_be_large && package.to_archive().len() > MAX_ARCHIVE_BYTES {
            let message = format!("the archive of the skill has more than {MAX_ARCHIVE_BYTES} bytes");
            return Err(vec![fault("", message)]);
        }
        Ok(package)
    }

    /// Takes off the one folder that holds everything, if `SKILL.md` does not stand at the root.
    fn strip_top_folder(&mut self) -> Option<String> {
        if self.files.iter().any(|(path, _)| path == SKILL_FILE) {
            return None;
        }
        let paths = || self.files.iter().map(|(path, _)| path).chain(&self.folders);
        let tops: BTreeSet<&str> = paths().filter_map(|path| path.split('/').next()).collect();
        let is_below = self.files.iter().all(|(path, _)| path.contains('/'));
        let (1, true) = (tops.len(), is_below) else {
            return None;
        };
        let top = (*tops.first()?).to_owned();
        let below = |path: &str| path.get(top.len() + 1..).unwrap_or_default().to_owned();
        for (path, _) in &mut self.files {
            *path = below(path);
        }
        self.folders = self.folders.iter().map(|path| below(path)).collect();
        self.folders.retain(|path| !path.is_empty());
        Some(top)
    }

    fn judge_paths(&mut self) {
        let mut tree = Tree::default();
        let mut faults = Vec::new();
        for folder in &self.folders {
            if let Err(message) = tree.add_folder(folder) {
                faults.push(fault(folder, message));
            }
        }
        for (path, _) in &self.files {
            if path.len() > MAX_PATH_BYTES {
                faults.push(fault(
                    path,
                    format!("the path has more than {MAX_PATH_BYTES} bytes"),
                ));
            } else if path.split('/').count() > MAX_DEPTH {
                faults.push(fault(path, format!("the path has more than {MAX_DEPTH} names")));
            } else if let Err(message) = tree.add_file(path) {
                faults.push(fault(path, message));
            }
        }
        self.faults.extend(faults);
        self.faults.truncate(MAX_FAULTS);
    }

    fn judge_skill_file(&mut self) -> Option<front_matter::FrontMatter> {
        let Some((_, file)) = self.files.iter().find(|(path, _)| path == SKILL_FILE) else {
            self.fault(
                SKILL_FILE,
                "there is no SKILL.md at the root, nor in one folder that holds everything",
            );
            return None;
        };
        match front_matter::read(&file.bytes) {
            Ok(found) => Some(found),
            Err(messages) => {
                for message in messages {
                    self.fault(SKILL_FILE, message);
                }
                None
            }
        }
    }
}

pub(super) fn fault(path: &str, message: impl Into<String>) -> Fault {
    Fault {
        path: path::shown(path),
        message: message.into(),
    }
}

pub(super) fn too_much() -> Fault {
    fault(
        "",
        format!("the files have more than {MAX_EXPANDED_BYTES} bytes together"),
    )
}
