//! What stands in one file.

use super::{LiveServer, MAX_LEVELS, MAX_PROJECTS, Spot, Walk};
use crate::client::Platform;
use crate::credentials::credentials;
use crate::disk::Fault;
use crate::hide;
use crate::identity::Ground;
use crate::readers::{File, Part};
use crate::report::Observation;
use crate::report::{Scope, ServerFacts};
use crate::server;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

impl Walk<'_> {
    /// Reads a part of a file; `None` when something has a type that its client does not read.
    pub(super) fn part(&mut self, file: &File, spot: &Spot, value: &Value, part: Part) -> Option<()> {
        match part {
            Part::Servers(pointer) => {
                for servers in every(value, pointer) {
                    self.servers(spot, file.scope, servers)?;
                }
                Some(())
            }
            Part::ServerOfLine(pointer, name) => {
                self.of_line(spot, file.scope, name, pointed(value, pointer))
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
                        self.servers(&spot, Scope::Project, servers)?;
                    }
                }
                Some(())
            }
            Part::ServersOfProjects(_) => None,
            Part::ServersOfPlugin => self.unwrapped(spot, file.scope, value),
            Part::Manifest => self.manifest(spot, file.scope, value),
            Part::ServersOfAgent(member) => {
                let servers = value.get(member);
                servers.map_or(Some(()), |servers| self.of_agent(spot, file.scope, servers))
            }
            Part::Plugins => self.installed(spot, value),
            Part::Bundle => self.bundle(spot, file.scope, value),
            Part::Providers => self.providers(spot, file.scope, value),
            // What a project says of others is nobody's list.
            Part::Projects(_) if spot.project.is_some() => Some(()),
            Part::Projects(pointer) => {
                let Some(projects) = pointed(value, pointer) else {
                    return Some(());
                };
                for path in projects.as_object()?.keys() {
                    if self.disk.is_over() {
                        self.fault_of(spot, Fault::Truncated, true);
                        break;
                    }
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
                pointed(value, pointer).map_or(Some(()), |hooks| self.hooks(spot, file.scope, hooks))
            }
            Part::Environment(pointer) => {
                let Some(names) = pointed(value, pointer) else {
                    return Some(());
                };
                let names: Vec<String> = names
                    .as_object()?
                    .keys()
                    .take(64)
                    .map(|name| hide::identifier(self.key, name))
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

    pub(super) fn servers(&mut self, spot: &Spot, scope: Scope, servers: &Value) -> Option<()> {
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
        self.named_servers(spot, scope, named)
    }

    /// Notes at which events commands run, and how many.
    pub(super) fn hooks(&mut self, spot: &Spot, _: Scope, hooks: &Value) -> Option<()> {
        for (event, groups) in hooks.as_object()? {
            let commands = commands(groups);
            if commands > 0 {
                let event = hide::name(self.key, event);
                self.note(spot, Observation::Hook { event, commands });
            }
        }
        Some(())
    }

    /// Reads the command line of a server.
    fn of_line(&mut self, spot: &Spot, scope: Scope, name: &str, line: Option<&Value>) -> Option<()> {
        match line {
            None | Some(Value::Null) => Some(()),
            Some(Value::String(line)) if line.is_empty() => Some(()),
            Some(Value::String(line)) => {
                let server = json!({ "command": line });
                self.named_servers(spot, scope, vec![(name.to_owned(), &server)])
            }
            Some(_) => None,
        }
    }

    /// Reads the servers of a subagent. A text is the name of one that is configured elsewhere.
    fn of_agent(&mut self, spot: &Spot, scope: Scope, servers: &Value) -> Option<()> {
        let items = match servers {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut outcome = Some(());
        for item in items {
            let read = match item {
                Value::Null | Value::String(_) => Some(()),
                Value::Object(_) => self.servers(spot, scope, item),
                _ => None,
            };
            outcome = outcome.and(read);
        }
        outcome
    }

    pub(super) fn named_servers(
        &mut self,
        spot: &Spot,
        scope: Scope,
        named: Vec<(String, &Value)>,
    ) -> Option<()> {
        let mut outcome = Some(());
        for (name, server) in named {
            // Each may have a program that is read; none is asked for in vain.
            if self.disk.is_over() || self.is_full() {
                self.fault(spot, Fault::Truncated);
                break;
            }
            // VS Code's Claude-like form and Goose keep notes among the servers; a text is no server.
            match self.facts(spot, scope, &name, server) {
                Some(facts) => match &mut self.live {
                    Some(live) => live.push(LiveServer::of(name, facts, server)),
                    None => self.note(spot, Observation::McpServer(facts)),
                },
                None => outcome = None,
            }
        }
        outcome
    }

    /// Returns what is known of a server; `None` when something has a type that its client does not read.
    pub(super) fn facts(&self, spot: &Spot, scope: Scope, name: &str, server: &Value) -> Option<ServerFacts> {
        let base = spot.project.as_deref().unwrap_or(self.home);
        let ground = Ground {
            disk: self.disk,
            root: self.root,
            home: self.home,
            key: self.key,
            manifests: &self.manifests,
            base: (
                base,
                if base.starts_with(self.home) {
                    self.home
                } else {
                    base
                },
            ),
        };
        server::facts(name, server, scope, spot.client, &ground)
    }

    /// Returns where a path of the machine lies on this disk.
    pub(super) fn on_disk(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn project(&mut self, spot: &Spot, path: &str) {
        if !path.starts_with('/') {
            return;
        }
        let project = match self.disk.resolved(&self.on_disk(path)) {
            Ok(Some(project)) => project,
            Ok(None) => {
                self.has_absent_project |= !self.on_disk(path).starts_with(self.home);
                return;
            }
            Err(fault) => return self.fault_of(spot, fault, true),
        };
        // macOS asks the person before a program may look there.
        let asks = ["Documents", "Desktop", "Downloads"]
            .iter()
            .any(|name| project.starts_with(self.home.join(name)));
        if !project.starts_with(self.root) || (asks && self.platform == Platform::Macos) {
            self.fault_of(spot, Fault::NotPermitted, true);
        } else if self.projects.len() >= MAX_PROJECTS {
            self.fault_of(spot, Fault::Truncated, true);
        } else if project != self.home && project.parent().is_some() {
            // The home's own files are read already.
            self.projects.insert(project);
        }
    }

    /// Notes the credentials of a file.
    pub(super) fn credentials(&mut self, spot: &Spot, value: &Value, mode: u32) {
        let (found, is_whole) = credentials(value, MAX_LEVELS);
        let file = self.fingerprint(&spot.path);
        let mut seen = BTreeSet::new();
        for credential in found {
            let member_name = hide::member(self.key, &credential.member);
            let fingerprint = credential.fingerprint(self.key, &file);
            if seen.insert((member_name.clone(), fingerprint.clone())) {
                self.note(
                    spot,
                    Observation::Credential {
                        pattern: credential.pattern,
                        member_name,
                        fingerprint,
                        file_mode: format!("{mode:04o}"),
                        world_readable: mode & 0o004 != 0,
                    },
                );
            }
        }
        if !is_whole {
            self.fault(spot, Fault::Malformed);
        }
    }
}

fn pointed<'a>(value: &'a Value, pointer: &[&str]) -> Option<&'a Value> {
    pointer.iter().try_fold(value, |value, name| value.get(name))
}

/// Returns everything at a pointer in which `*` is each member.
fn every<'a>(value: &'a Value, pointer: &[&str]) -> Vec<&'a Value> {
    let mut found = vec![value];
    for name in pointer {
        found = match *name {
            "*" => found
                .into_iter()
                .filter_map(Value::as_object)
                .flat_map(Map::values)
                .collect(),
            name => found.into_iter().filter_map(|value| value.get(name)).collect(),
        };
    }
    found
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
