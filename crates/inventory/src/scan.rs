//! The walk over what [`readers`](crate::readers) names.

mod bundles;
mod faults;
mod folders;
mod live;
mod parts;
mod patterns;
mod plugins;

use crate::client::{Client, Platform};
use crate::disk::{Disk, Fault};
use crate::fingerprint::InventoryKey;
use crate::identity::Manifests;
use crate::mounts::Mounts;
use crate::readers::{At, FILES, File, Part};
use crate::report::{Observation, Place, Scan, SectionFault, Sighting};
use crate::syntax;
use crate::wire::is_project_name;
pub use live::{Called, Live, LiveServer, Reach, live, said};
use patterns::MAX_DEPTH;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// LIMIT: projects of a scan. Ours.
const MAX_PROJECTS: usize = 500;
/// LIMIT: observations of a scan, and their bytes: half of what a report has. Ours. A server has up to 20 KiB of names.
const MAX_OBSERVED: (usize, usize) = (2_000, 2 << 20);
/// LIMIT: the same of one project, which may be a clone of anybody's: twenty of them are as much as all. Ours.
const MAX_OF_PROJECT: (usize, usize) = (100, 100 << 10);
/// LIMIT: the same of one file, so that one file does not take those of the others. Ours.
const MAX_OF_FILE: (usize, usize) = (200, 512 << 10);
/// LIMIT: faults of one client. Ours.
const MAX_FAULTS: usize = 100;
/// LIMIT: bytes of the file of accounts. Ours.
const MOST_ACCOUNTS: u64 = 1 << 20;
/// Where Claude Code has its plugins.
const PLUGINS: &str = ".claude/plugins";
/// LIMIT: levels of a document in which credentials are looked for; formats allow no more than twice that. What lies deeper is a fault.
pub(crate) const MAX_LEVELS: usize = 64;

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
/// Errors: there is no such root or home, or it lies on another machine.
pub fn scan(machine: &Machine<'_>, key: &InventoryKey) -> std::io::Result<Scan> {
    scan_watched(machine, key, &|_| true)
}

/// Scans as [`scan`] does. `watch` is told of each file before it is opened; one of which it says `false` is left out, which is a fault as
/// every other limit is.
///
/// Errors: as of [`scan`].
pub fn scan_watched(
    machine: &Machine<'_>,
    key: &InventoryKey,
    watch: &dyn Fn(&Path) -> bool,
) -> std::io::Result<Scan> {
    let disk = Disk::new(machine.stop, watch, Mounts::of_machine());
    let (root, home) = (begin(&disk, machine.root)?, begin(&disk, machine.home)?);
    let mut walk = Walk::new(&disk, (&root, &home), machine.platform, key);
    // What is a person's own comes first: a project may be anybody's, and has a part of its own.
    walk.files(|at| !is_in_project(at));
    walk.skills(false);
    walk.sessions();
    for folder in walk.above() {
        walk.begin(folder);
        walk.files(|at| matches!(at, At::Upwards(_)));
    }
    let projects = std::mem::take(&mut walk.projects);
    let logins = if projects.is_empty() {
        BTreeSet::new()
    } else {
        walk.logins()
    };
    for project in projects {
        walk.name(&project, &logins);
        walk.begin(project);
        walk.files(is_in_project);
        walk.skills(true);
    }
    Ok(walk.finish())
}

fn is_in_project(at: At) -> bool {
    matches!(at, At::Project(_) | At::Upwards(_))
}

fn begin(disk: &Disk<'_>, folder: &Path) -> std::io::Result<PathBuf> {
    match disk.resolved(folder) {
        Ok(Some(folder)) => Ok(folder),
        Ok(None) => Err(ErrorKind::NotFound.into()),
        Err(Fault::NotPermitted) => Err(std::io::Error::new(
            ErrorKind::PermissionDenied,
            "it may not be read, or lies on another machine",
        )),
        Err(_) => Err(std::io::Error::other("it cannot be read")),
    }
}

struct Walk<'a> {
    disk: &'a Disk<'a>,
    root: &'a Path,
    home: &'a Path,
    platform: Platform,
    key: &'a InventoryKey,
    projects: BTreeSet<PathBuf>,
    /// Whether one outside of the home is named that is not there.
    has_absent_project: bool,
    /// What they are called, by the fingerprint of their paths.
    project_names: BTreeMap<String, String>,
    /// Where plugins are installed, if something says it.
    plugins: Option<BTreeSet<PathBuf>>,
    manifests: Manifests,
    found: BTreeMap<Client, Vec<Sighting>>,
    faults: BTreeMap<Client, Vec<SectionFault>>,
    /// The faults that stand in `faults`.
    noted: BTreeSet<(Client, SectionFault)>,
    /// The faults by which projects may be missing, and with them files of every client.
    unsure: BTreeSet<SectionFault>,
    /// The project that is looked at.
    project: Option<PathBuf>,
    noted_in_all: Noted,
    of_project: Noted,
    /// Of the file that is being read.
    of_file: Noted,
    /// The servers of one client as they are written, where only those are looked for.
    live: Option<Vec<LiveServer>>,
}

/// How much was noted, in observations and in bytes.
#[derive(Clone, Copy, Default)]
struct Noted(usize, usize);

impl Noted {
    fn add(&mut self, bytes: usize) {
        self.0 += 1;
        self.1 += bytes;
    }

    fn is_full(self, (count, bytes): (usize, usize)) -> bool {
        self.0 >= count || self.1 >= bytes
    }
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

impl<'a> Walk<'a> {
    fn new(
        disk: &'a Disk<'a>,
        (root, home): (&'a Path, &'a Path),
        platform: Platform,
        key: &'a InventoryKey,
    ) -> Self {
        Self {
            disk,
            root,
            home,
            platform,
            key,
            projects: BTreeSet::new(),
            has_absent_project: false,
            project_names: BTreeMap::new(),
            plugins: None,
            manifests: Manifests::default(),
            found: BTreeMap::new(),
            faults: BTreeMap::new(),
            noted: BTreeSet::new(),
            unsure: BTreeSet::new(),
            project: None,
            noted_in_all: Noted::default(),
            of_project: Noted::default(),
            of_file: Noted::default(),
            live: None,
        }
    }
}

impl Walk<'_> {
    /// Begins with a project, or with a folder above one: it has a part of its own.
    fn begin(&mut self, folder: PathBuf) {
        self.disk.begin_project();
        self.of_project = Noted::default();
        self.project = Some(folder);
    }

    fn files(&mut self, is_wanted: fn(At) -> bool) {
        for file in FILES.into_iter().flatten() {
            if is_wanted(file.at) {
                for spot in self.spots(file.client, file.at, file.class, file.names_projects()) {
                    self.file(file, &spot);
                }
            }
        }
    }

    /// Returns the files that a pattern stands for.
    fn spots(&mut self, client: Client, at: At, class: &'static str, is_source: bool) -> Vec<Spot> {
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
            At::Plugin(place, below) => match &self.plugins {
                Some(plugins) => {
                    let base = |path: &PathBuf| (path.clone(), self.home.to_owned(), None);
                    (place, plugins.iter().map(base).collect())
                }
                None => (below, vec![(self.home.join(PLUGINS), self.home.to_owned(), None)]),
            },
            At::Machine(patterns) => (
                match self.platform {
                    Platform::Linux => patterns[0],
                    Platform::Macos => patterns[1],
                    Platform::Windows => patterns[2],
                },
                vec![(self.root.to_owned(), self.root.to_owned(), None)],
            ),
            At::Project(pattern) | At::Upwards(pattern) => {
                // In the home such a folder is the home's own, which is read as that.
                let is_own = |path: &&PathBuf| *path == self.home && pattern.starts_with(".claude/");
                let project = self.project.iter().filter(|path| !is_own(path));
                (pattern, project.map(|path| self.in_project(path)).collect())
            }
        };
        let mut spots = Vec::new();
        for (base, fence, project) in bases {
            let parts: Vec<&str> = pattern.split('/').collect();
            let mut paths = Vec::new();
            let mut faults = self.matching(&base, &fence, &parts, MAX_DEPTH, &mut paths);
            // Folders of one name in each other are found by both.
            let mut seen = BTreeSet::new();
            paths.retain(|path| seen.insert(path.clone()));
            if project.is_some() && paths.len() > MAX_OF_PROJECT.0 {
                paths.truncate(MAX_OF_PROJECT.0);
                faults.insert(Fault::Truncated);
            }
            let spot = |path| Spot {
                client,
                path,
                fence: fence.clone(),
                class,
                project: project.clone(),
            };
            for fault in faults {
                self.fault_of(&spot(base.clone()), fault, is_source);
            }
            spots.extend(paths.into_iter().map(spot));
        }
        spots
    }

    fn in_project(&self, path: &Path) -> Base {
        let fence = if path.starts_with(self.home) {
            self.home
        } else {
            path
        };
        (path.to_owned(), fence.to_owned(), Some(path.to_owned()))
    }

    /// Returns the home, and every folder above it and above a project; not the projects.
    fn above(&self) -> BTreeSet<PathBuf> {
        let begin = self.projects.iter().map(PathBuf::as_path).chain([self.home]);
        let above = begin
            .flat_map(Path::ancestors)
            .filter(|folder| folder.starts_with(self.root) && !self.projects.contains(*folder));
        above.map(Path::to_owned).collect()
    }

    fn file(&mut self, file: &File, spot: &Spot) {
        let content = match self.disk.read(&spot.path, &spot.fence, file.format.most()) {
            Ok(Some(content)) => content,
            Ok(None) => return,
            Err(fault) => return self.fault_of(spot, fault, file.names_projects()),
        };
        // What no server stands in is not read as a document: the manifests of editors' extensions are many and large.
        if matches!(file.parts, [Part::Providers]) && !bundles::may_provide(&content.bytes) {
            return;
        }
        self.of_file = Noted::default();
        // A section is there as soon as one of the client's files is.
        self.found.entry(spot.client).or_default();
        let value = match syntax::value(&content.bytes, file.format, &|| self.disk.is_over()) {
            Ok(value) if value.is_object() => value,
            Ok(_) => return self.fault_of(spot, Fault::Malformed, file.names_projects()),
            Err(fault) => return self.fault_of(spot, fault, file.names_projects()),
        };
        let mode = content.mode;
        drop(content);
        for part in file.parts {
            if self.live.is_some() && !part.leads_to_servers() {
                continue;
            }
            if self.part(file, spot, &value, *part).is_none() {
                self.fault_of(spot, Fault::Malformed, part.names_projects());
            }
        }
        // Addresses of projects are no configuration.
        if self.live.is_none() && !matches!(file.parts, [Part::Workspace(_)]) {
            self.credentials(spot, &value, mode);
        }
    }

    fn place(&self, spot: &Spot) -> Place {
        Place {
            class: spot.class,
            path: self.fingerprint(&spot.path),
            project: spot.project.as_deref().map(|project| self.fingerprint(project)),
            project_name: None,
        }
    }

    /// Returns the fingerprint of a path as the machine has it.
    fn fingerprint(&self, path: &Path) -> String {
        let logical = path.strip_prefix(self.root).unwrap_or(path);
        self.key.of("path", &logical.to_string_lossy())
    }

    /// Returns what accounts of the machine are called, and root, as its file says it: a folder of such a name is taken for a home of theirs.
    fn logins(&self) -> BTreeSet<String> {
        let file = self.root.join("etc/passwd");
        let read = self.disk.read(&file, self.root, MOST_ACCOUNTS).ok().flatten();
        let text = read.map(|content| String::from_utf8_lossy(&content.bytes).into_owned());
        let text = text.unwrap_or_default();
        let names = text.lines().filter_map(|line| line.split(':').next());
        names.chain(["root"]).map(str::to_owned).collect()
    }

    /// Notes what a project's folder is called, where that is a name and nobody's: folders beside the home are homes, and called as people.
    ///
    /// Keeps PV-2.
    fn name(&mut self, project: &Path, logins: &BTreeSet<String>) {
        let is_own = project.starts_with(self.home);
        let is_of_homes = |folder: &Path| {
            let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
            ["home", "homes", "users"].contains(&name.to_lowercase().as_str())
        };
        // Homes lie in such a folder, or in one of a domain below it, also on a disk that was another machine's.
        let is_among_homes = project.ancestors().skip(1).take(2).any(is_of_homes);
        let name = project.file_name().and_then(OsStr::to_str);
        let is_login = name.is_some_and(|name| logins.contains(name));
        let is_of_people = self.home.starts_with(project)
            || project.parent() == self.home.parent()
            || project.file_name() == self.home.file_name()
            || (!is_own && is_among_homes)
            || is_login;
        if let Some(name) = name.filter(|name| !is_of_people && is_project_name(name)) {
            self.project_names
                .insert(self.fingerprint(project), name.to_owned());
        }
    }

    /// Says whether no more is noted of the file that is being read.
    fn is_full(&self) -> bool {
        let is_full = |live: &Vec<LiveServer>| live.len() >= MAX_OBSERVED.0;
        self.noted_in_all.is_full(MAX_OBSERVED)
            || self.live.as_ref().is_some_and(is_full)
            || self.of_file.is_full(MAX_OF_FILE)
            || (self.project.is_some() && self.of_project.is_full(MAX_OF_PROJECT))
    }

    fn note(&mut self, spot: &Spot, observation: Observation) {
        // Who looks for servers alone has them before they are made fit to be told.
        if self.live.is_some() {
            return;
        }
        if self.is_full() {
            return self.fault(spot, Fault::Truncated);
        }
        let bytes = serde_json::to_vec(&observation).map_or(0, |bytes| bytes.len());
        for noted in [&mut self.noted_in_all, &mut self.of_project, &mut self.of_file] {
            noted.add(bytes);
        }
        let found = Sighting {
            place: self.place(spot),
            observation,
            file: spot.path.clone(),
        };
        self.found.entry(spot.client).or_default().push(found);
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
