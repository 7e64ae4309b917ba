//! The folder of one skill on this machine: comparing, replacing, removing.

use super::receipt::cannot;
use crate::cli::{Failure, Terminal};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, ValueHint, value_parser};
use provost_skill_package::{ManifestFile, Package, is_valid_path, remove_draft, sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where one skill lies.
#[derive(Clone, Debug)]
pub struct SkillFolder {
    /// The folder that is the skill's own.
    pub folder: PathBuf,
}

/// What is at a place, compared with what was written there.
#[derive(Debug, Default)]
pub struct FolderComparison {
    /// Written, and changed since.
    pub changed: Vec<String>,
    /// Written, and gone.
    pub missing: Vec<String>,
    /// Written and as it was.
    pub same: Vec<String>,
    /// Never written by these commands.
    pub foreign: Vec<String>,
}

/// Clients that look for skills in the home folder, and where.
const CLIENTS: [(&str, &str); 3] = [
    ("claude-code", ".claude/skills"),
    ("codex", ".agents/skills"),
    // Where clients look that follow the open format.
    ("agents", ".agents/skills"),
];

/// Returns the flags that choose a place.
pub fn args() -> [Arg; 2] {
    [
        Arg::new("client")
            .long("client")
            .value_name("CLIENT")
            .default_value("claude-code")
            .value_parser(PossibleValuesParser::new(
                CLIENTS.iter().map(|(client, _)| *client).chain(["generic"]),
            ))
            .help(
                "Who reads the skill: claude-code looks in ~/.claude/skills, codex and agents in ~/.agents/skills; generic \
                 needs --into",
            ),
        Arg::new("into")
            .long("into")
            .value_name("FOLDER")
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf))
            .help("The folder of skills; the skill becomes a folder in it"),
    ]
}

impl SkillFolder {
    /// Returns the place of a skill; the folder of skills is made when it is not there.
    ///
    /// Errors: usage, when nothing says where; output, when the folder cannot be made.
    pub fn chosen(matches: &ArgMatches, terminal: &Terminal, name: &str) -> Result<Self, Failure> {
        let client = matches.get_one::<String>("client").map(String::as_str);
        let known = CLIENTS.iter().find(|(name, _)| client == Some(name));
        let skills = match (matches.get_one::<PathBuf>("into"), known) {
            (Some(into), _) => into.clone(),
            (None, Some((_, skills))) => match &terminal.surroundings.home {
                Some(home) => home.join(skills),
                None => return Err(Failure::usage("there is no home folder; say --into FOLDER")),
            },
            (None, None) => {
                return Err(Failure::usage(
                    "say where the client keeps its skills: --into FOLDER",
                ));
            }
        };
        // What stands in the receipt must mean the same from wherever it is read.
        let skills = fs::create_dir_all(&skills)
            .and_then(|()| skills.canonicalize())
            .map_err(|error| cannot("make", &skills, &error))?;
        Ok(Self {
            folder: skills.join(name),
        })
    }

    /// Says whether there is something, be it a file or a link to nowhere.
    pub fn is_taken(&self) -> bool {
        fs::symlink_metadata(&self.folder).is_ok()
    }

    /// Compares what is there with what was written. A file of two versions may have either content.
    pub fn survey(&self, known: &[ManifestFile]) -> io::Result<FolderComparison> {
        let mut by_path: BTreeMap<&str, Vec<&ManifestFile>> = BTreeMap::new();
        for file in known {
            by_path.entry(&file.path).or_default().push(file);
        }
        let mut sight = FolderComparison::default();
        for (path, versions) in &by_path {
            let list = match look(&self.folder, path, versions)? {
                FileComparison::Absent => &mut sight.missing,
                FileComparison::Same => &mut sight.same,
                FileComparison::Changed => &mut sight.changed,
            };
            list.push((*path).to_owned());
        }
        let mut all = Vec::new();
        walk(&self.folder, "", &mut all)?;
        let is_foreign = |path: &String| !by_path.contains_key(path.as_str());
        sight.foreign = all.into_iter().filter(is_foreign).collect();
        Ok(sight)
    }

    /// Puts a package there. What lies there is replaced, except for files that are not known, which stay.
    ///
    /// ```text
    /// <name>                     the old files                   (interrupted here: the old files)
    /// .<name>.provost-old        ◄── the old files               (interrupted here: `settle` puts them back)
    /// <name>                     ◄── the package, in one step    (interrupted here: `settle` goes on)
    /// .<name>.provost-old        foreign files go over, the rest is removed
    /// ```
    pub fn replace(&self, package: &Package, known: &[ManifestFile]) -> io::Result<()> {
        self.settle(known)?;
        let old = self.old();
        let is_update = self.is_taken();
        if is_update {
            fs::rename(&self.folder, &old)?;
        }
        if let Err(error) = package.unpack(&self.folder) {
            if is_update && !self.is_taken() {
                fs::rename(&old, &self.folder)?;
            }
            return Err(error);
        }
        self.settle(known)
    }

    /// Ends what an interrupted command began.
    pub fn settle(&self, known: &[ManifestFile]) -> io::Result<()> {
        let old = self.old();
        if fs::symlink_metadata(&old).is_err() {
            return Ok(());
        }
        if !self.is_taken() {
            return fs::rename(&old, &self.folder);
        }
        // INVARIANT SL-1: what is not known goes over; where the package has a file of that name, it stays aside.
        let known_paths: BTreeSet<&str> = known.iter().map(|file| file.path.as_str()).collect();
        let mut all = Vec::new();
        walk(&old, "", &mut all)?;
        for path in all.iter().filter(|path| !known_paths.contains(path.as_str())) {
            let to = self.folder.join(path);
            if fs::symlink_metadata(&to).is_err() {
                if let Some(folder) = to.parent() {
                    fs::create_dir_all(folder)?;
                }
                fs::rename(old.join(path), to)?;
            }
        }
        for path in &known_paths {
            remove_file(&old, path)?;
        }
        remove_empty(&old)
    }

    /// Removes what was written and is as it was, and with `force` what was changed; returns what was kept.
    pub fn remove(&self, known: &[ManifestFile], force: bool) -> io::Result<FolderComparison> {
        self.settle(known)?;
        remove_draft(&self.folder)?;
        let mut sight = self.survey(known)?;
        // INVARIANT SL-1: known paths alone, and of those the changed ones only when somebody said so.
        let forced = if force {
            std::mem::take(&mut sight.changed)
        } else {
            Vec::new()
        };
        for path in sight.same.iter().chain(&forced) {
            remove_file(&self.folder, path)?;
        }
        let paths: Vec<String> = known.iter().map(|file| file.path.clone()).collect();
        remove_empty_folders(&self.folder, &paths)?;
        Ok(sight)
    }

    fn old(&self) -> PathBuf {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        self.folder.with_file_name(format!(".{name}.provost-old"))
    }
}

enum FileComparison {
    Absent,
    Same,
    Changed,
}

fn look(folder: &Path, path: &str, versions: &[&ManifestFile]) -> io::Result<FileComparison> {
    let Some(place) = inside(folder, path)? else {
        return Ok(FileComparison::Absent);
    };
    let meta = match fs::symlink_metadata(&place) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileComparison::Absent),
        Err(error) => return Err(error),
    };
    let fits = |file: &&&ManifestFile| {
        meta.is_file() && meta.len() == file.size_bytes && (meta.mode() & 0o100 != 0) == file.executable
    };
    let candidates: Vec<&&ManifestFile> = versions.iter().filter(fits).collect();
    if candidates.is_empty() {
        return Ok(FileComparison::Changed);
    }
    let digest = sha256(&fs::read(&place)?);
    let is_same = candidates.iter().any(|file| file.sha256 == digest);
    Ok(if is_same {
        FileComparison::Same
    } else {
        FileComparison::Changed
    })
}

/// Returns where a path of a listing lies; nothing if a folder on the way is none any more.
///
/// INVARIANT SL-1: a link on the way is not followed, and a path that no package can have is not touched.
fn inside(folder: &Path, path: &str) -> io::Result<Option<PathBuf>> {
    if !is_valid_path(path) {
        return Err(io::Error::other(format!(
            "a receipt names the path {path:?}, which no skill can have"
        )));
    }
    let mut place = folder.to_owned();
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        if !fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_dir()) {
            return Ok(None);
        }
        place.push(name);
        if names.peek().is_none() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

fn remove_file(folder: &Path, path: &str) -> io::Result<()> {
    let Some(place) = inside(folder, path)? else {
        return Ok(());
    };
    // Somebody's folder stands where the file was; it is not ours.
    if fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the folders of these paths, and the folder itself, as far as nothing is in them.
fn remove_empty_folders(folder: &Path, paths: &[String]) -> io::Result<()> {
    let mut folders = BTreeSet::from([folder.to_owned()]);
    for path in paths {
        let on_the_way = Path::new(path).ancestors().skip(1);
        folders.extend(on_the_way.map(|part| folder.join(part)));
    }
    // The deepest first.
    for folder in folders.iter().rev() {
        match fs::remove_dir(folder) {
            Ok(()) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
                }
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

/// Removes a folder and all folders in it, as far as nothing but folders is in them.
fn remove_empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

/// Collects everything below a folder that is no folder. Links are not followed.
fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}
