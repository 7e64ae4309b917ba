//! Which server a call of a tool is for, by what the client's configurations say at this moment.
//!
//! ```text
//! files of one client: its home's, the machine's, of plugins, of the folder of the call and those above it,
//!                      and the plain ones of every project that the client knows
//!     ──► every server that may be called so ──► all of one key, none weak, nothing left out ──► that key
//!                                            └─► anything else                               ──► nobody says
//! ```
//!
//! A client has its own order of what counts before what, and another one with its next release; which of them are read depends on the
//! folder in which a conversation began, and not on the one in which it is now. So no order is looked at: those that may be meant are
//! more than the one that is, and only what they all say is said.
//!
//! Nobody says which server of a plugin is meant: what a marketplace's entry or a folder of skills brings along stands in no file that is
//! read. Nor is a server meant by a name that was cut.
//!
//! What a client says beside a call of what it starts is read as an entry is, and stands in no file: it may be meant besides, takes away where it says
//! something else, and names nobody.
//!
//! Keeps IV-6 and IV-7.

use super::{Machine, Spot, Walk, begin, is_in_project};
use crate::client::Client;
use crate::disk::Disk;
use crate::disk::Fault;
use crate::fingerprint::InventoryKey;
use crate::meant::{Doubt, meant};
use crate::mounts::Mounts;
use crate::readers::{At, FILES, File};
use crate::report::{Pin, Scope, SectionFault, ServerFacts};
use crate::seen::Seen;
use crate::wire::{is_always_weak, is_server_key};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// LIMIT: things that may have been looked at where that is to be known later. Ours: more are not held.
const MAX_SEEN: usize = 4_096;
/// How a client calls the tools of servers, in front of the server's name.
const MCP: &str = "mcp__";
/// What stands between the names of a server and of a tool.
const BETWEEN: &str = "__";
/// How Claude Code begins the names of servers of plugins, in front of the plugin's name.
const OF_PLUGIN: &str = "plugin_";
/// Clients cut the names of tools at 64 characters, and put a digest at the end. From so many on one may be cut.
const MAY_BE_CUT: usize = 56;
/// So much of a cut name is whole.
const CUT_KEEPS: usize = 20;

/// Where files are read that a client may have read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everywhere: who looks is whose client it is.
    All,
    /// Of folders in which somebody works, in the home alone: who looks sees more than whose client it is, and would say to somebody what
    /// stands in the files of others; and it may see other folders than they do where each has their own (`/tmp`).
    Home,
}

/// What a client says of the server of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// The name of the tool, as a client calls it: `mcp__files__read`.
    pub tool: String,
    /// The name of the server, where the client says it apart.
    pub server: Option<String>,
    /// Whose configuration the server is of, where the client says it, in its word.
    pub source: Option<String>,
}

/// A server of a configuration, by the name that stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveServer {
    name: String,
    /// Its identity.
    pub key: String,
    /// Keys of what it may be besides, by what its entry names in another way than a key does.
    pub also: Vec<String>,
    /// What it may be where nobody can read which it is.
    pub doubts: Vec<Doubt>,
    /// The version, where one release is named.
    pub version: Option<String>,
    scope: Scope,
    is_weak: bool,
}

impl LiveServer {
    /// `written` is its entry in the configuration.
    pub(super) fn of(name: String, facts: ServerFacts, written: &Value) -> Self {
        let meant = meant(written, &facts.key);
        Self {
            name,
            also: meant.keys.into_iter().collect(),
            doubts: meant.doubts.into_iter().collect(),
            is_weak: facts.weak || is_always_weak(&facts.key) || !is_server_key(&facts.key),
            key: facts.key,
            version: facts.version.filter(|_| facts.version_pin == Pin::Exact),
            scope: facts.scope,
        }
    }

    /// Returns it as far as what its client says beside the call says the same: not where that is another one or weak, and without a version that
    /// it does not name.
    ///
    /// Keeps IV-6.
    pub fn with_said(mut self, said: &Self) -> Option<Self> {
        if said.is_weak || said.key != self.key {
            return None;
        }
        self.version = self.version.filter(|own| said.version.as_ref() == Some(own));
        Some(self)
    }

    /// Returns its address, where it is one.
    pub fn address(&self) -> Option<&str> {
        self.key.strip_prefix("url:")
    }

    /// Says whether it may be meant by a name. Clients put signs in the place of others, each in its way: two names that differ in nothing
    /// but signs and case may be one.
    fn is_called(&self, name: &str) -> bool {
        let (own, name) = (folded(&self.name), folded(name));
        let is_of_plugin = || {
            let rest = name.strip_prefix(OF_PLUGIN);
            let plugin = rest.and_then(|rest| rest.strip_suffix(own.as_str()));
            self.scope == Scope::Plugin && plugin.is_some_and(|plugin| plugin.ends_with('_'))
        };
        own == name || is_of_plugin()
    }

    /// Says whether it may be meant by the name of a tool, whatever of that is the server's.
    fn is_in(&self, tool: &str) -> bool {
        let Some(rest) = tool.strip_prefix(MCP) else {
            return false;
        };
        let mut ends = rest.match_indices(BETWEEN).map(|(at, _)| at).chain([rest.len()]);
        ends.any(|end| self.is_called(&rest[..end]))
    }

    /// Says whether it may be meant by a name that was cut: it begins as this one does, and so may others.
    fn is_cut_in(&self, tool: &str) -> bool {
        let Some(rest) = tool.strip_prefix(MCP) else {
            return false;
        };
        let (own, rest) = (folded(&self.name), folded(rest));
        let is_long = tool.len() >= MAY_BE_CUT && own.len() >= CUT_KEEPS;
        is_long && own.get(..CUT_KEEPS).is_some_and(|begin| rest.starts_with(begin))
    }
}

/// What is configured for one client now.
#[derive(Clone, Debug)]
pub struct Live {
    servers: Vec<LiveServer>,
    is_whole: bool,
    unread: Option<Fault>,
    seen: Seen,
}

impl Live {
    /// Returns every server.
    pub fn servers(&self) -> &[LiveServer] {
        &self.servers
    }

    /// Returns every server that may be meant by a call: those that are weak too, and also where something could not be read.
    pub fn candidates(&self, called: &Called) -> Vec<&LiveServer> {
        // Who asks for what all of them have, or says of none which one it is, asks any of them.
        let is_any = called.server.is_none() && !called.tool.starts_with(MCP);
        let is_said = |server: &&LiveServer| {
            let is_told = called
                .server
                .as_deref()
                .is_some_and(|told| server.is_called(told));
            is_any || is_told || server.is_in(&called.tool) || server.is_cut_in(&called.tool)
        };
        self.servers.iter().filter(is_said).collect()
    }

    /// Returns which server a call is for; `None` where nobody can say: none may be meant, several of different keys, one that is weak,
    /// or something could not be read. What a client says itself can take away what the configurations say, and add nothing.
    ///
    /// Keeps IV-6.
    pub fn resolve(&self, called: &Called) -> Option<LiveServer> {
        let candidates = self.candidates(called);
        let (first, others) = candidates.split_first()?;
        let is_one = others.iter().all(|other| other.key == first.key);
        if !self.is_whole || !is_one || candidates.iter().any(|server| server.is_weak) {
            return None;
        }
        let scope = match called.source.as_deref() {
            None => None,
            Some(source) => Some(scope_of(source)?),
        };
        let told = called.server.as_deref();
        let named = called.tool.strip_prefix(MCP);
        if told.is_none() && named.is_none() {
            return None;
        }
        let is_of_plugin = |name: &str| folded(name).starts_with(OF_PLUGIN);
        if told.is_some_and(is_of_plugin) || named.is_some_and(is_of_plugin) {
            return None;
        }
        let is_meant = |server: &&LiveServer| {
            let is_told = told.is_none_or(|told| server.is_called(told));
            let is_named = named.is_none() || server.is_in(&called.tool);
            let is_of_scope = scope.is_none_or(|scope| scope == server.scope);
            is_told && is_named && is_of_scope && server.scope != Scope::Plugin
        };
        let meant = candidates.iter().find(|server| is_meant(server))?;
        let mut server = LiveServer::clone(meant);
        // A version that not all of them name is nobody's.
        let has_versions = candidates.iter().any(|other| other.version != server.version);
        server.version = server.version.filter(|_| !has_versions);
        Some(server)
    }

    /// Returns why not all of what is configured could be read, where that is so: a call may be for any server then.
    pub fn unread(&self) -> Option<Fault> {
        self.unread
    }

    /// Says whether everything that was looked at is as it was, so that nothing else would be found now.
    ///
    /// Keeps IV-6.
    pub fn holds(&self) -> bool {
        self.seen.holds(&Mounts::of_machine())
    }

    /// Says whether it may be held at an instant (milliseconds since 1970, by the clock of the machine): a file that was changed in the
    /// same tick of a clock as it was read may be changed once more and look the same.
    pub fn may_be_held(&self, now_ms: i64) -> bool {
        const TICK_MS: i64 = 100;
        self.seen.count() <= MAX_SEEN && self.seen.latest_ms() < now_ms.saturating_sub(TICK_MS)
    }
}

/// Returns whose configuration a client means by a word; `None` for one that stands in no file that is read here: a command line, a
/// connector, a plugin's, a word of tomorrow.
fn scope_of(source: &str) -> Option<Scope> {
    match source {
        "user" | "global" => Some(Scope::User),
        "local" | "project" => Some(Scope::Project),
        "enterprise" | "managed" => Some(Scope::Managed),
        _ => None,
    }
}

/// Returns a name as whoever puts signs in the place of others may write it.
fn folded(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for sign in name.chars() {
        if sign.is_ascii_alphanumeric() {
            folded.push(sign.to_ascii_lowercase());
        } else if !folded.is_empty() && !folded.ends_with('_') {
            folded.push('_');
        }
    }
    if folded.ends_with('_') {
        folded.pop();
    }
    folded
}

/// Returns what is configured now for a client, for a call in a folder of this machine.
///
/// Errors: there is no such root or home, or it lies on another machine.
pub fn live(
    machine: &Machine<'_>,
    (client, folder): (Client, Option<&Path>),
    reach: Reach,
    key: &InventoryKey,
) -> std::io::Result<Live> {
    let disk = Disk::new(machine.stop, &|_| true, Mounts::of_machine()).noting();
    let (root, home) = (begin(&disk, machine.root)?, begin(&disk, machine.home)?);
    let mut walk = Walk::new(&disk, (&root, &home), machine.platform, key);
    walk.live = Some(Vec::new());
    walk.live_files(client, |at| !is_in_project(at));
    let mut unread = walk.unread_of(client, 0);
    let is_within = |folder: &Path| reach == Reach::All || folder.starts_with(&home);
    // Where the folder is not said, or cannot be looked at, a configuration in it may be the one that counts.
    let folder = folder.filter(|folder| folder.is_absolute());
    let place = folder.and_then(|folder| {
        let place = disk.resolved(&walk.on_disk(&folder.to_string_lossy()));
        let place = place.ok().flatten().filter(|place| place.starts_with(&root));
        place.filter(|place| is_within(place))
    });
    let mut projects = std::mem::take(&mut walk.projects);
    let known = projects.len();
    projects.retain(|project| is_within(project));
    // One that is absent here may be there for whose client it is.
    let is_all_within = projects.len() == known && (reach == Reach::All || !walk.has_absent_project);
    if let Some(place) = &place
        && *place != home
        && place.parent().is_some()
    {
        projects.insert(place.clone());
    }
    walk.projects.clone_from(&projects);
    let above = walk.above();
    // What stands in one file first: patterns may be of many files, and the time is short.
    for has_pattern in [false, true] {
        let is_now = |pattern: &str| pattern.contains('*') == has_pattern;
        for folder in &above {
            let before = walk.faults_of(client);
            walk.begin(folder.clone());
            walk.live_files(client, |at| match at {
                At::Upwards(pattern) => is_now(pattern),
                // Codex reads its configuration in every folder down to the one in which it works. The home's is read already.
                At::Project(pattern) => client == Client::Codex && *folder != home && is_now(pattern),
                _ => false,
            });
            if place.as_ref().is_some_and(|place| place.starts_with(folder)) {
                unread = unread.or(walk.unread_of(client, before));
            }
        }
        for project in &projects {
            let before = walk.faults_of(client);
            walk.begin(project.clone());
            walk.live_files(
                client,
                |at| matches!(at, At::Project(pattern) | At::Upwards(pattern) if is_now(pattern)),
            );
            // What is wrong with another project refuses nothing here: each home has some.
            if place.as_ref().is_some_and(|place| place.starts_with(project)) {
                unread = unread.or(walk.unread_of(client, before));
            }
        }
    }
    let unread = unread.or(disk.is_over().then_some(Fault::Truncated));
    let has_faults = walk.faults_of(client) > 0 || !walk.unsure.is_empty() || disk.is_over();
    let servers = walk.live.take().unwrap_or_default();
    drop(walk);
    Ok(Live {
        servers,
        is_whole: place.is_some() && is_all_within && !has_faults,
        unread,
        seen: disk.seen(),
    })
}

/// Returns what an entry is that a client says beside a call and that stands in no file which is looked at here: one server, or a fault where it cannot
/// be read. Where there is no such home, what leads there leads nowhere. It says nothing of what a configuration says besides (variables, headers),
/// so that nobody is said by it alone.
///
/// Errors: the root or the home cannot be looked at.
pub fn said(
    machine: &Machine<'_>,
    client: Client,
    (name, entry): (&str, &Value),
    key: &InventoryKey,
) -> std::io::Result<Live> {
    let disk = Disk::new(machine.stop, &|_| true, Mounts::of_machine()).noting();
    let root = begin(&disk, machine.root)?;
    let home = match begin(&disk, machine.home) {
        Err(error) if error.kind() == ErrorKind::NotFound => root.clone(),
        home => home?,
    };
    let walk = Walk::new(&disk, (&root, &home), machine.platform, key);
    let spot = Spot {
        client,
        path: PathBuf::new(),
        fence: home.clone(),
        class: "",
        project: None,
    };
    let facts = walk.facts(&spot, Scope::User, name, entry);
    let is_read = facts.is_some();
    let unread = disk.is_over().then_some(Fault::Truncated);
    let servers = facts.map(|facts| LiveServer::of(name.to_owned(), facts, entry));
    drop(walk);
    Ok(Live {
        servers: servers.into_iter().collect(),
        is_whole: false,
        unread: unread.or((!is_read).then_some(Fault::Malformed)),
        seen: disk.seen(),
    })
}

impl Walk<'_> {
    fn faults_of(&self, client: Client) -> usize {
        self.faults.get(&client).map_or(0, Vec::len)
    }

    /// Returns the first fault, behind so many of them, of a file in which servers stand by themselves. Of plugins, and of what Claude Code has in the
    /// head of a text, nobody says a server anyway; what Gemini CLI has there lies over entries of the same names.
    fn unread_of(&self, client: Client, before: usize) -> Option<Fault> {
        let is_plain = |fault: &&SectionFault| {
            let of_plugin = fault.file.components().any(|part| part.as_os_str() == "plugins");
            let kind = fault.file.extension().and_then(|kind| kind.to_str());
            let is_head = client == Client::GeminiCli && kind == Some("md");
            !of_plugin && (is_head || matches!(kind, Some("json" | "toml")))
        };
        let faults = self.faults.get(&client)?.get(before..)?;
        faults.iter().find(is_plain).map(|fault| fault.fault)
    }

    /// Reads the files of a client in which servers stand, or which say where more of them are.
    fn live_files(&mut self, client: Client, is_wanted: impl Fn(At) -> bool) {
        let of = |file: &&File| file.client == client && file.leads_to_servers();
        for file in FILES.into_iter().flatten().filter(of) {
            if is_wanted(file.at) {
                for spot in self.spots(file.client, file.at, file.class, file.names_projects()) {
                    self.file(file, &spot);
                }
            }
        }
    }
}
