//! The walk over what [`readers`](crate::readers) names.

mod parts;

use crate::client::{Client, Platform};
use crate::disk::{Disk, Fault, MAX_FILE};
use crate::fingerprint::InventoryKey;
use crate::hide;
use crate::readers::{At, FILES, File, Part, SESSIONS, SKILLS};
use crate::report::{Observation, Place, Scan, Section, SectionFault, Sighting};
use crate::{skills, syntax};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// LIMIT: projects of a scan. Ours.
const MAX_PROJECTS: usize = 500;
/// LIMIT: folders in folders that `**` stands for. Ours.
const MAX_DEPTH: usize = 5;
/// LIMIT: observations of a scan. Ours.
const MAX_OBSERVATIONS: usize = 2_000;
/// LIMIT: levels of a document in which credentials are looked for; formats allow no more than twice that.
const MAX_LEVELS: usize = 64;

/// What is scanned.
pub struct Machine<'a> {
    /// The folder of the machine: `/`, or that of an image.
    pub root: &'a Path,
    /// The home, as it lies on this disk.
    pub home: &'a Path,
    /// Whose paths are meant.
    pub platform: Platform,
    /// Says whether time is up; asked before each file.
    pub stop: &'a dyn Fn() -> bool,
}

/// Scans the files of one home and of its machine.
///
/// Errors: there is no such root or home.
pub fn scan(machine: &Machine<'_>, key: &InventoryKey) -> std::io::Result<Scan> {
    let (root, home) = (machine.root.canonicalize()?, machine.home.canonicalize()?);
    let disk = Disk::new(machine.stop);
    let mut walk = Walk {
        disk: &disk,
        root: &root,
        home: &home,
        platform: machine.platform,
        key,
        projects: BTreeSet::new(),
        found: BTreeMap::new(),
        faults: BTreeMap::new(),
        count: 0,
    };
    walk.files(false);
    walk.files(true);
    walk.skills();
    walk.sessions();
    Ok(walk.finish())
}

struct Walk<'a> {
    disk: &'a Disk<'a>,
    root: &'a Path,
    home: &'a Path,
    platform: Platform,
    key: &'a InventoryKey,
    projects: BTreeSet<PathBuf>,
    found: BTreeMap<Client, Vec<Sighting>>,
    faults: BTreeMap<Client, Vec<SectionFault>>,
    count: usize,
}

/// A folder in which files are looked for, the fence around it, and the project that it is.
type Base = (PathBuf, PathBuf, Option<PathBuf>);

/// One file, and where it counts as being.
struct Spot {
    client: Client,
    path: PathBuf,
    fence: PathBuf,
    class: &'static str,
    project: Option<PathBuf>,
}

impl Walk<'_> {
    fn files(&mut self, in_projects: bool) {
        for file in FILES.into_iter().flatten() {
            if matches!(file.at, At::Project(_)) == in_projects {
                for spot in self.spots(file.client, file.at, file.class) {
                    self.file(file, &spot);
                }
            }
        }
    }

    /// Returns the files that a pattern stands for.
    fn spots(&mut self, client: Client, at: At, class: &'static str) -> Vec<Spot> {
        let (pattern, bases): (&str, Vec<Base>) = match at {
            At::Home(pattern) => (pattern, vec![(self.home.to_owned(), self.home.to_owned(), None)]),
            At::Settings(pattern) => (
                pattern,
                vec![(
                    self.home.join(self.platform.settings()),
                    self.home.to_owned(),
                    None,
                )],
            ),
            At::Machine(patterns) => (
                match self.platform {
                    Platform::Linux => patterns[0],
                    Platform::Macos => patterns[1],
                    Platform::Windows => patterns[2],
                },
                vec![(self.root.to_owned(), self.root.to_owned(), None)],
            ),
            At::Project(pattern) => {
                let project = |path: &PathBuf| {
                    let fence = if path.starts_with(self.home) {
                        self.home
                    } else {
                        path.as_path()
                    };
                    (path.clone(), fence.to_owned(), Some(path.clone()))
                };
                (pattern, self.projects.iter().map(project).collect())
            }
        };
        let mut spots = Vec::new();
        for (base, fence, project) in bases {
            let parts: Vec<&str> = pattern.split('/').collect();
            let mut paths = Vec::new();
            let outcome = self.matching(&base, &fence, &parts, MAX_DEPTH, &mut paths);
            let spot = |path| Spot {
                client,
                path,
                fence: fence.clone(),
                class,
                project: project.clone(),
            };
            if let Err(fault) = outcome {
                self.fault(&spot(base), fault);
            }
            spots.extend(paths.into_iter().map(spot));
        }
        spots
    }

    fn matching(
        &self,
        folder: &Path,
        fence: &Path,
        parts: &[&str],
        depth: usize,
        paths: &mut Vec<PathBuf>,
    ) -> Result<(), Fault> {
        let Some((part, rest)) = parts.split_first() else {
            paths.push(folder.to_owned());
            return Ok(());
        };
        if *part == "**" {
            self.matching(folder, fence, rest, depth, paths)?;
            if depth > 0 {
                for name in self.disk.names(folder, fence)? {
                    let below = folder.join(name);
                    // Links are not walked: they may lead in a circle.
                    if below.symlink_metadata().is_ok_and(|kind| kind.is_dir()) {
                        self.matching(&below, fence, parts, depth - 1, paths)?;
                    }
                }
            }
            return Ok(());
        }
        let Some((begin, end)) = part.split_once('*') else {
            return self.matching(&folder.join(part), fence, rest, depth, paths);
        };
        for name in self.disk.names(folder, fence)? {
            if name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end) {
                self.matching(&folder.join(name), fence, rest, depth, paths)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &File, spot: &Spot) {
        let content = match self.disk.read(&spot.path, &spot.fence, MAX_FILE) {
            Ok(Some(content)) => content,
            Ok(None) => return,
            Err(fault) => return self.fault(spot, fault),
        };
        // A section is there as soon as one of the client's files is.
        self.found.entry(spot.client).or_default();
        let Some(value) = syntax::value(&content.bytes, file.format).filter(Value::is_object) else {
            return self.fault(spot, Fault::Malformed);
        };
        for part in file.parts {
            if self.part(file, spot, &value, *part).is_none() {
                self.fault(spot, Fault::Malformed);
            }
        }
        // Addresses of projects are no configuration.
        if !matches!(file.parts, [Part::Workspace(_)]) {
            let mut seen = BTreeSet::new();
            self.credentials(spot, "", &value, content.mode, &mut seen, MAX_LEVELS);
        }
    }

    fn skills(&mut self) {
        for folder in SKILLS {
            for spot in self.spots(folder.client, folder.at, folder.class) {
                let names = match self.disk.names(&spot.path, &spot.fence) {
                    Ok(names) => names,
                    Err(fault) => {
                        self.fault(&spot, fault);
                        continue;
                    }
                };
                for name in names {
                    let spot = Spot {
                        path: spot.path.join(&name),
                        ..spot_like(&spot)
                    };
                    let shown = hide::name(self.key, &name);
                    match skills::digest(self.disk, &spot.path, &spot.fence) {
                        Ok(None) => {}
                        Ok(digest) => self.note(&spot, Observation::Skill { name: shown, digest }),
                        Err(fault) => {
                            self.fault(&spot, fault);
                            self.note(
                                &spot,
                                Observation::Skill {
                                    name: shown,
                                    digest: None,
                                },
                            );
                        }
                    }
                }
            }
        }
    }

    fn sessions(&mut self) {
        for kept in SESSIONS {
            let spots = self.spots(kept.client, kept.at, kept.class);
            if let Some(first) = spots.first() {
                let spot = Spot {
                    path: self.home.to_owned(),
                    ..spot_like(first)
                };
                self.note(&spot, Observation::Sessions { files: spots.len() });
            }
        }
    }

    fn place(&self, spot: &Spot) -> Place {
        let logical = |path: &Path| {
            path.strip_prefix(self.root)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned()
        };
        Place {
            class: spot.class,
            path: self.key.of("path", &logical(&spot.path)),
            project: spot
                .project
                .as_deref()
                .map(|project| self.key.of("path", &logical(project))),
        }
    }

    fn note(&mut self, spot: &Spot, observation: Observation) {
        self.count += 1;
        if self.count > MAX_OBSERVATIONS {
            return self.fault(spot, Fault::Truncated);
        }
        let found = Sighting {
            place: self.place(spot),
            observation,
            file: spot.path.clone(),
        };
        self.found.entry(spot.client).or_default().push(found);
    }

    fn fault(&mut self, spot: &Spot, fault: Fault) {
        let fault = SectionFault {
            place: self.place(spot),
            fault,
            file: spot.path.clone(),
        };
        let faults = self.faults.entry(spot.client).or_default();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    fn finish(mut self) -> Scan {
        let user = self.home.file_name().unwrap_or_default().to_string_lossy();
        let user = hide::name(self.key, &user);
        let section = |client: Client| {
            let (found, faults) = (self.found.remove(&client), self.faults.remove(&client));
            (found.is_some() || faults.is_some()).then(|| {
                Section::new(
                    client,
                    user.clone(),
                    faults.unwrap_or_default(),
                    found.unwrap_or_default(),
                )
            })
        };
        Scan {
            sections: Client::ALL.into_iter().filter_map(section).collect(),
        }
    }
}

fn spot_like(spot: &Spot) -> Spot {
    Spot {
        client: spot.client,
        path: PathBuf::new(),
        fence: spot.fence.clone(),
        class: spot.class,
        project: spot.project.clone(),
    }
}
