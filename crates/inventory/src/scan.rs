//! The walk over what [`readers`](crate::readers) names.

use crate::client::{Client, Platform};
use crate::disk::{Disk, Fault, MAX_FILE};
use crate::fingerprint::InventoryKey;
use crate::hide;
use crate::identity::Ground;
use crate::readers::{At, FILES, File, Part, SESSIONS, SKILLS};
use crate::report::{Found, Observation, Place, Scan, Section, SectionFault};
use crate::secrets::{self, Pattern};
use crate::{server, skills, syntax};
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
    found: BTreeMap<Client, Vec<Found>>,
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
        for file in FILES {
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

    /// Reads a part of a file; `None` when something has a type that its client does not read.
    fn part(&mut self, file: &File, spot: &Spot, value: &Value, part: Part) -> Option<()> {
        match part {
            Part::Servers(pointer) => {
                let scope = file.scope;
                pointed(value, pointer).map_or(Some(()), |servers| self.servers(spot, scope, servers))
            }
            Part::ServersOfProjects([first, _, last]) => {
                let Some(projects) = value.get(first) else {
                    return Some(());
                };
                for (path, project) in projects.as_object()? {
                    let spot = Spot {
                        client: spot.client,
                        path: spot.path.clone(),
                        fence: spot.fence.clone(),
                        class: spot.class,
                        project: Some(self.on_disk(path)),
                    };
                    if let Some(servers) = project.get(last) {
                        self.servers(&spot, "project", servers)?;
                    }
                }
                Some(())
            }
            Part::ServersOfProjects(_) => None,
            Part::Projects(pointer) => {
                let Some(projects) = pointed(value, pointer) else {
                    return Some(());
                };
                for path in projects.as_object()?.keys() {
                    self.project(spot, path);
                }
                Some(())
            }
            Part::Workspace(pointer) => {
                if let Some(folder) = pointed(value, pointer).and_then(Value::as_str)
                    && let Some(path) = folder.strip_prefix("file://")
                {
                    self.project(spot, &unescaped(path));
                }
                Some(())
            }
            Part::Hooks(pointer) => {
                let Some(hooks) = pointed(value, pointer) else {
                    return Some(());
                };
                for (event, groups) in hooks.as_object()? {
                    let commands = commands(groups);
                    if commands > 0 {
                        let event = hide::name(self.key, event);
                        self.note(spot, Observation::Hook { event, commands });
                    }
                }
                Some(())
            }
            Part::Environment(pointer) => {
                let Some(names) = pointed(value, pointer) else {
                    return Some(());
                };
                let names: Vec<String> = names
                    .as_object()?
                    .keys()
                    .take(64)
                    .map(|name| hide::name(self.key, name))
                    .collect();
                if !names.is_empty() {
                    self.note(spot, Observation::Environment { names });
                }
                Some(())
            }
            Part::Extensions(pointer) => {
                let Some(names) = pointed(value, pointer) else {
                    return Some(());
                };
                for (name, enabled) in names.as_object()? {
                    let name = hide::name(self.key, name);
                    let enabled = enabled != &Value::Bool(false);
                    self.note(spot, Observation::Extension { name, enabled });
                }
                Some(())
            }
            Part::Switch(pointer, name, words) => {
                if let Some(value) = pointed(value, pointer) {
                    let value = setting(value, words);
                    self.note(spot, Observation::Setting { name, value });
                }
                Some(())
            }
        }
    }

    fn servers(&mut self, spot: &Spot, scope: &'static str, servers: &Value) -> Option<()> {
        let named: Vec<(String, &Value)> = match servers {
            Value::Null => Vec::new(),
            Value::Object(servers) => servers
                .iter()
                .map(|(name, server)| (name.clone(), server))
                .collect(),
            Value::Array(servers) => servers
                .iter()
                .enumerate()
                .map(|(at, server)| {
                    let name = server.get("name").and_then(Value::as_str);
                    (name.map_or_else(|| at.to_string(), str::to_owned), server)
                })
                .collect(),
            _ => return None,
        };
        let mut outcome = Some(());
        for (name, server) in named {
            // VS Code's Claude-like form and Goose keep notes among the servers; a text is no server.
            let base = spot.project.as_deref().unwrap_or(self.home);
            let ground = Ground {
                disk: self.disk,
                root: self.root,
                home: self.home,
                base: (
                    base,
                    if base.starts_with(self.home) {
                        self.home
                    } else {
                        base
                    },
                ),
            };
            match server::facts(&name, server, scope, spot.client.word(), self.key, &ground) {
                Some(facts) => self.note(spot, Observation::McpServer(facts)),
                None => outcome = None,
            }
        }
        outcome
    }

    /// Returns where a path of the machine lies on this disk.
    fn on_disk(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn project(&mut self, spot: &Spot, path: &str) {
        if !path.starts_with('/') {
            return;
        }
        let Ok(project) = self.on_disk(path).canonicalize() else {
            return;
        };
        // macOS asks the person before a program may look there.
        let asks = ["Documents", "Desktop", "Downloads"]
            .iter()
            .any(|name| project.starts_with(self.home.join(name)));
        if !project.starts_with(self.root) || (asks && self.platform == Platform::Macos) {
            self.fault(spot, Fault::NotPermitted);
        } else if self.projects.len() >= MAX_PROJECTS {
            self.fault(spot, Fault::Truncated);
        } else if project != self.home && project.parent().is_some() {
            // The home's own files are read already.
            self.projects.insert(project);
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

    fn credentials(
        &mut self,
        spot: &Spot,
        member: &str,
        value: &Value,
        mode: u32,
        seen: &mut BTreeSet<String>,
        levels: usize,
    ) {
        if levels == 0 {
            return;
        }
        match value {
            Value::String(text) => {
                let Some((pattern, text)) = secrets::found(member, text) else {
                    return;
                };
                let fingerprint = match pattern {
                    Pattern::ProvostToken => public_part(text),
                    _ => None,
                };
                let fingerprint = fingerprint.unwrap_or_else(|| self.key.of("credential", text));
                if seen.insert(format!("{member}\n{fingerprint}")) {
                    let member_name = hide::name(self.key, member);
                    self.note(
                        spot,
                        Observation::Credential {
                            pattern,
                            member_name,
                            fingerprint,
                            file_mode: format!("{mode:04o}"),
                            world_readable: mode & 0o004 != 0,
                        },
                    );
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.credentials(spot, member, item, mode, seen, levels - 1);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.credentials(spot, name, value, mode, seen, levels - 1);
                }
            }
            _ => {}
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
        let found = Found {
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

fn pointed<'a>(value: &'a Value, pointer: &[&str]) -> Option<&'a Value> {
    pointer.iter().try_fold(value, |value, name| value.get(name))
}

/// Counts the commands below an event.
fn commands(groups: &Value) -> usize {
    match groups {
        Value::Array(items) => items.iter().map(commands).sum(),
        Value::Object(group) => match group.get("hooks") {
            Some(hooks) => commands(hooks),
            None => 1,
        },
        _ => 0,
    }
}

/// Returns a setting without what a person may have written into it.
fn setting(value: &Value, words: &[&str]) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Array(items) => items.len().to_string(),
        Value::Object(members) => members.len().to_string(),
        Value::String(text) if words.contains(&text.as_str()) => text.clone(),
        _ => "set".to_owned(),
    }
}

/// Returns `prov_sat_` and the lookup id of one of our tokens.
fn public_part(token: &str) -> Option<String> {
    let mut parts = token.splitn(4, '_');
    let (lead, kind, lookup) = (parts.next()?, parts.next()?, parts.next()?);
    let is_id = lookup.len() == 12 && lookup.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_id && kind.len() == 3 && parts.next().is_some()).then(|| format!("{lead}_{kind}_{lookup}"))
}

/// Returns a path of an address with its escapes undone.
fn unescaped(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, behind @ ..] = rest {
        let escape = behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = escape
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .filter(|_| *byte == b'%');
        bytes.push(escaped.unwrap_or(*byte));
        rest = behind
            .get(if escaped.is_some() { 2 } else { 0 }..)
            .unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
