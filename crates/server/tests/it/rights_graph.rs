//! Rights as a graph: who can come to use which right by which operation (E2).
//!
//! Every operation is called, on the real server, by accounts that hold its scope and nothing else: with its example, and
//! with hostile neighbours of it. Before and behind each call every row of every table that decides rights is read, and
//! the doors to everybody's rights are found in them (`doors.rs`). What an act opened is an edge. The edges are closed by
//! computation, and both stand in a golden.
//!
//! ```text
//!   scope × role ─► operation ─► example and neighbours ─► rows before / behind ─► doors before / behind
//!                                                              │                      │ opened: within the caller's
//!                                                              │                      │ rights, or a reason is written
//!                                                              └ each changed row is an edge     │
//!                                                                  edges ─► closure ─► golden ◄──┘
//! ```
//!
//! INVARIANT GR-1: no operation opens to anybody what its caller does not hold, by one act or several, but for the
//! edges that stand with a reason in a list.
//! INVARIANT GR-2: an operation that takes away opens nothing.
//! INVARIANT GR-3: a read and a refused act change no row that decides rights, and show no secret.
//! INVARIANT GR-4: each table that decides rights is known to the graph of rights.
//!
//! Absent on purpose: the token endpoint and sign-in, which are no operations of the registry; what they hand out hangs
//! on the doors that are found here.

mod doors;
mod growth;
mod neighbours;
mod rows;
pub mod tables;

use crate::areas;
use crate::areas_beside::every_area;
use crate::samples::{self, assert_golden};
use crate::support::{App, Call, Dice, Reply, every_scope, fresh_key, seed, with_trio};
use crate::torment::run;
use doors::{Door, Power, doors, of_token};
use growth::{GROWTH, Growth};
use neighbours::{Neighbour, neighbours};
use provost_kernel::auth::{Permission, Role, ScopeSet, may_mint, toolsets};
use provost_kernel::operation::{Access, Entry, Kind, Meta, Method};
use provost_server::areas::ALL;
use rows::{Change, Reader, Rows};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use tables::TABLES;

const GOLDEN: &str = "crates/server/tests/it/golden/rights.txt";
/// Steps of the walk by chance on each engine.
const STEPS: u64 = 150;

/// Who calls.
pub struct Caller {
    pub id: String,
    pub token: String,
    pub role: Role,
    /// What the account was given; `None` is all of the role.
    scopes: Option<Vec<&'static str>>,
    permission: Permission,
    /// The kind of a principal that has no role.
    kind: Option<&'static str>,
}

impl Caller {
    async fn new(app: &App, role: Role, scopes: Option<Vec<&'static str>>) -> Self {
        let given = scopes.as_deref().unwrap_or_default();
        // Without a scope an account is given all of its role.
        assert!(
            scopes.is_none() || !given.is_empty(),
            "a caller without a scope holds every one"
        );
        let (id, token) = app.account(&fresh_key(), role.as_str(), given).await;
        let set = scopes.as_ref().map(|scopes| ScopeSet::of(scopes));
        Self {
            id,
            token,
            role,
            permission: Permission::effective(role, set, None),
            scopes,
            kind: None,
        }
    }

    /// Who has no role and calls an operation of its own kind, for a record that is the caller.
    async fn of_kind(app: &App, meta: &Meta, path: &str) -> Self {
        let Access::OfKind { kind, parameter } = meta.access else {
            panic!("{} is of no kind", meta.id);
        };
        let id = samples::named(meta, path, parameter);
        Self {
            token: areas::fleet::caller(app, kind, id.as_deref()).await,
            id: id.unwrap_or_default(),
            role: Role::Viewer,
            scopes: Some(Vec::new()),
            permission: Permission::none(),
            kind: Some(kind),
        }
    }

    fn name(&self) -> &'static str {
        self.kind.unwrap_or(self.role.as_str())
    }

    /// The scopes that it may do with, each by name.
    pub fn listed(&self) -> Vec<&'static str> {
        self.permission.scopes.to_list()
    }

    fn holds(&self, scopes: &[&str]) -> bool {
        scopes.iter().all(|scope| self.permission.scopes.has(scope))
    }
}

/// The roles that hold what everybody holds but members.
const ABOVE_MEMBERS: [Role; 4] = [Role::Admin, Role::Operator, Role::Auditor, Role::Viewer];

/// What an operation needs of its caller: one scope, or two where performing needs another than seeing.
type ScopeNeeds = Vec<&'static str>;

fn needs(meta: &Meta) -> Vec<(ScopeNeeds, &'static [Role])> {
    let mut all: Vec<(ScopeNeeds, &'static [Role])> = match meta.access {
        // No role and no scope opens it: whoever is of the kind calls, for itself (`of_kinds`).
        Access::OfKind { .. } => Vec::new(),
        // Whoever has a token.
        Access::Authenticated => vec![(vec!["policies:read"], &ABOVE_MEMBERS)],
        Access::Scoped { scope, roles } => vec![(vec![scope], roles)],
        Access::ScopedEither { scope, other, roles } => vec![(vec![scope], roles), (vec![other], roles)],
        Access::ScopedBoth { scope, other, roles } => vec![(vec![scope, other], roles)],
        Access::ScopedOrSelf {
            scope,
            roles,
            self_scope,
            ..
        } => vec![(vec![scope], roles), (vec![self_scope], &ABOVE_MEMBERS)],
    };
    // A member of its body that needs another scope beside.
    if meta.id == "updateHeadlessDevice" {
        let with = vec![all[0].0[0], "llm_gateway:write"];
        all.push((with, all[0].1));
    }
    if let Some(performance) = meta.performance {
        let seen = all[0].0[0];
        all.push((vec![seen, performance.scope], performance.roles));
    }
    all
}

/// What an act did to somebody's rights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Opens(&'static str, Size),
    Shuts(&'static str),
    Changes(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    /// The caller holds it all.
    Within,
    /// The caller holds less.
    Beyond,
    /// No role and no scope measures it.
    Other,
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Opens(kind, Size::Within) => write!(f, "+ {kind}"),
            Self::Opens(kind, Size::Beyond) => write!(f, "+ {kind} BEYOND THE CALLER"),
            Self::Opens(kind, Size::Other) => write!(f, "+ {kind} (with a reason)"),
            Self::Shuts(kind) => write!(f, "- {kind}"),
            Self::Changes(table) => write!(f, "~ {table}"),
        }
    }
}

/// What one call did.
struct CallOutcome {
    has_succeeded: bool,
    rows: Vec<(&'static str, Change)>,
    effects: BTreeSet<Effect>,
    /// What can be used that the caller did not hold.
    gains: Vec<(&'static str, Option<Permission>)>,
}

/// Measures what is behind a door of somebody by what the caller holds.
fn size(me: &Caller, kind: &str, of: &str, may: Option<Permission>) -> Size {
    let is_own_install = kind.ends_with("gateway token") && of == me.id;
    match may {
        None if is_own_install => Size::Within,
        None => Size::Other,
        Some(may) if may_mint(me.permission, may).is_ok() => Size::Within,
        Some(_) => Size::Beyond,
    }
}

/// Returns the tokens that a text shows, by their public prefixes.
fn shown(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for start in ["prov_sat_", "prov_gwt_", "prov_mrt_", "prov_ent_", "prov_dvt_"] {
        for (at, _) in text.match_indices(start) {
            let rest = &text.as_bytes()[at + start.len()..];
            let is_secret = rest.len() >= 62
                && rest[..62].iter().enumerate().all(|(n, byte)| match n {
                    12 => *byte == b'_',
                    _ => byte.is_ascii_alphanumeric(),
                });
            if is_secret {
                found.insert(&text[at..at + start.len() + 12]);
            }
        }
    }
    found
}

fn found(before: &Rows, after: &Rows, now: i64, me: &Caller, reply: &Reply) -> CallOutcome {
    let text = reply.text();
    let shown = shown(&text);
    let changes = after.changes_since(before);
    let mut found = CallOutcome {
        has_succeeded: reply.status.is_success(),
        rows: changes
            .iter()
            .map(|((table, _), change)| (*table, change.clone()))
            .collect(),
        effects: BTreeSet::new(),
        gains: Vec::new(),
    };
    if changes.is_empty() && shown.is_empty() {
        return found;
    }
    for (table, change) in &found.rows {
        let known = tables::of_name(table);
        if matches!(known.rows, tables::Rows::Things { .. }) {
            found.effects.insert(Effect::Changes(known.name));
        }
        let is_end = [
            "mcp_session_tombstones",
            "mcp_session_cuts",
            "oauth_assertions",
            "oauth_exchanges",
        ];
        if is_end.contains(table) && *change != Change::New {
            found
                .effects
                .insert(Effect::Opens("what had ended", Size::Beyond));
        }
    }
    let (was, is) = (doors(before, now), doors(after, now));
    let mut opens = |kind: &'static str, of: &str, may: Option<Permission>| {
        let size = size(me, kind, of, may);
        found.effects.insert(Effect::Opens(kind, size));
        if size != Size::Within {
            found.gains.push((kind, may));
        }
    };
    for (door, power) in is
        .iter()
        .filter(|(door, power)| power.gives_beyond(was.get(door)))
    {
        opens(door.kind, &door.of, power.may);
    }
    for prefix in shown {
        let (of, may) = of_token(after, now, prefix).unwrap_or_else(|| panic!("whose is {prefix}?"));
        let kind = match &prefix[..9] {
            "prov_sat_" => "secret of a token",
            "prov_ent_" => "secret of an enrolment token",
            "prov_dvt_" => "secret of a device",
            _ => "secret of a gateway token",
        };
        opens(kind, &of, may);
    }
    let shut = |(door, power): &(&Door, &Power)| match is.get(door) {
        None => true,
        Some(after) => power.gives_beyond(Some(after)),
    };
    for (door, _) in was.iter().filter(shut) {
        found.effects.insert(Effect::Shuts(door.kind));
    }
    found
}

/// Operations that take away: by the first word of their ids.
fn takes(meta: &Meta) -> bool {
    let verbs = [
        "delete",
        "disable",
        "suspend",
        "revoke",
        "remove",
        "unmap",
        "withdraw",
        "archive",
        "abort",
        "cancel",
        "uninstall",
        "report",
        "retire",
        "quarantine",
    ];
    verbs.iter().any(|verb| meta.id.starts_with(verb))
}

/// The edges that were found.
#[derive(Default)]
struct Graph {
    edges: BTreeMap<(&'static str, String), Edge>,
    rows: BTreeMap<&'static str, BTreeMap<&'static str, BTreeSet<String>>>,
    /// What can be used beyond what is held: with what, by which operation.
    gains: Vec<Gain>,
    /// The operations whose example succeeded for somebody.
    done: BTreeSet<&'static str>,
    calls: u64,
}

#[derive(Default)]
struct Edge {
    roles: BTreeSet<&'static str>,
    effects: BTreeSet<Effect>,
}

struct Gain {
    role: Role,
    /// The kind of a caller without a role.
    by: Option<&'static str>,
    needs: ScopeNeeds,
    operation: &'static str,
    kind: &'static str,
    may: Option<Permission>,
}

/// What somebody calls on: the server, one of its organizations, and its rows.
struct Place {
    app: App,
    reader: Reader,
    /// What must not be, once for each operation and kind.
    faults: Mutex<BTreeMap<String, String>>,
}

impl Place {
    async fn of(app: &App, name: &str) -> Self {
        let (organization, admin) = app.other_organization(name).await;
        let app = app.view_of(organization, admin);
        let reader = Reader::of(&app).await;
        Self {
            app,
            reader,
            faults: Mutex::default(),
        }
    }

    fn hold(&self, is_so: bool, meta: &Meta, what: &str, place: &str) {
        if !is_so {
            let mut faults = self.faults.lock().unwrap();
            let key = format!("{} {what}", meta.id);
            faults.entry(key).or_insert_with(|| place.to_owned());
        }
    }

    fn must_be_sound(&self) {
        let faults = self.faults.lock().unwrap();
        let told: Vec<String> = faults
            .iter()
            .map(|(what, place)| format!("{what}: {place}"))
            .collect();
        assert!(told.is_empty(), "{}", told.join("\n"));
    }

    /// Makes one call, judges it, and returns what it did.
    async fn measured(&self, meta: &Meta, me: &Caller, what: &str, call: Call<'_>) -> CallOutcome {
        let mut rows = self.reader.read(&self.app).await;
        self.measured_from(&mut rows, meta, me, what, call).await
    }

    /// As [`Self::measured`], of rows that are known already, which become those behind the call.
    async fn measured_from(
        &self,
        rows: &mut Rows,
        meta: &Meta,
        me: &Caller,
        what: &str,
        call: Call<'_>,
    ) -> CallOutcome {
        let reply = call.send().await;
        let after = self.reader.read(&self.app).await;
        let before = std::mem::replace(rows, after);
        let found = found(&before, rows, self.app.now().as_ms(), me, &reply);
        let place = format!(
            "{} ({what}) by {} with {:?}: {} {}",
            meta.id,
            me.name(),
            me.scopes,
            reply.status,
            reply.text()
        );
        assert!(reply.status.as_u16() < 500, "{place}");
        let has_effect = !found.rows.is_empty() || !found.effects.is_empty();
        // What a machine says of itself is kept by a unit of its own, behind a read (ADR 0103).
        let is_kept = meta.ingests && me.kind.is_some();
        let may_act = reply.status.is_success() && (meta.kind == Kind::Write || is_kept);
        let changed = format!("changed (GR-3) {:?} {:?}", found.rows, found.effects);
        self.hold(!has_effect || may_act, meta, &changed, &place);
        for (table, change) in &found.rows {
            let known = tables::of_name(table);
            if let tables::Rows::Things { scopes, why } = known.rows {
                let may = scopes
                    .iter()
                    .any(|scope| me.kind == Some(*scope) || (me.kind.is_none() && me.holds(&[*scope])));
                let what = format!("changed {table} ({change:?}), which only {scopes:?} may: {why}");
                self.hold(may, meta, &what, &place);
            }
        }
        for effect in &found.effects {
            let Effect::Opens(kind, size) = effect else {
                continue;
            };
            self.hold(!takes(meta), meta, &format!("opened {kind} (GR-2)"), &place);
            let is_allowed = |growth: &&Growth| {
                growth.operation == meta.id
                    && growth.door == *kind
                    && me
                        .kind
                        .map_or_else(|| me.holds(growth.needs), |kind| growth.needs == [kind])
            };
            let is_so = *size == Size::Within || GROWTH.iter().any(|growth| is_allowed(&growth));
            let what = format!("opened {kind} ({size:?}), and growth.rs has no reason for it (GR-1)");
            self.hold(is_so, meta, &what, &place);
        }
        found
    }

    /// Calls an operation with its example and with what somebody hostile would send, and returns what was done.
    async fn every_way(&self, entry: &Entry, me: &Caller) -> Vec<CallOutcome> {
        let (app, meta) = (&self.app, entry.meta);
        let mut all = Vec::new();
        let mut target = samples::fresh_target_of(app, entry).await;
        if me.scopes.as_deref() == Some(&["service_accounts:rotate_self"]) {
            target.account.clone_from(&me.id);
        }
        areas::make_own(app, meta, &me.token, &mut target.others).await;
        let call = samples::call(app, entry, &target).token(&me.token);
        all.push(self.measured(meta, me, "its example", call).await);
        let others = neighbours(app, me, meta.id).await;
        if others.is_empty() {
            return all;
        }
        let mut rows = self.reader.read(app).await;
        for other in others {
            let call = self.call(meta, me, &other);
            all.push(self.measured_from(&mut rows, meta, me, other.what, call).await);
        }
        all
    }

    /// Calls a write so that it has an effect, where its example may have none.
    async fn with_effect(&self, entry: &Entry, me: &Caller) -> Option<CallOutcome> {
        let meta = &entry.meta;
        let fixture = areas::fixture(&self.app, meta.id, &fresh_key()).await?;
        let other = Neighbour {
            what: "its fixture",
            method: fixture.method,
            path: fixture.path,
            body: fixture.body,
            content: fixture.content,
        };
        let call = self.call(meta, me, &other);
        Some(self.measured(meta, me, other.what, call).await)
    }

    fn call<'a>(&'a self, meta: &Meta, me: &Caller, other: &Neighbour) -> Call<'a> {
        let call = self.app.request(other.method, &other.path).token(&me.token);
        let needs_word = meta.confirm || meta.weighs || meta.performance.is_some();
        if meta.method == Method::Delete || other.content.is_some() || other.body.is_null() {
            let call = call
                .header("idempotency-key", &fresh_key())
                .header("x-reason", "a test");
            let call = if needs_word {
                call.header("x-confirm", "true")
            } else {
                call
            };
            return match &other.content {
                Some((media_type, bytes)) => call.content(media_type, bytes.clone()),
                None => call,
            };
        }
        let mut body = with_trio(other.body.clone(), &fresh_key());
        if needs_word {
            body["confirm"] = true.into();
        }
        call.json(body)
    }
}

impl Graph {
    fn count(&mut self, meta: &Meta, found: &[CallOutcome]) {
        self.calls += found.len() as u64;
        if found[0].has_succeeded {
            self.done.insert(meta.id);
        }
    }

    fn add(
        &mut self,
        meta: &Meta,
        role: Role,
        who: &'static str,
        needs: &ScopeNeeds,
        found: Vec<CallOutcome>,
    ) {
        let edge = self.edges.entry((meta.id, needs.join(" + "))).or_default();
        for one in found {
            if !one.effects.is_empty() {
                edge.roles.insert(who);
            }
            edge.effects.extend(one.effects);
            for (table, change) in one.rows {
                let rows = self.rows.entry(meta.id).or_default().entry(table).or_default();
                match change {
                    Change::New => drop(rows.insert("new".into())),
                    Change::Gone => drop(rows.insert("gone".into())),
                    Change::Columns(columns) => rows.extend(columns),
                }
            }
            self.gains.extend(one.gains.into_iter().map(|(kind, may)| Gain {
                role,
                by: (who != role.as_str()).then_some(who),
                needs: needs.clone(),
                operation: meta.id,
                kind,
                may,
            }));
        }
    }

    fn knows(&self, operation: &'static str, needs: &ScopeNeeds, effect: &Effect) -> bool {
        let edge = self.edges.get(&(operation, needs.join(" + ")));
        edge.is_some_and(|edge| edge.effects.contains(effect))
    }

    /// Returns what everybody reaches who begins with one scope, or with what an edge needs: what of it they did not hold,
    /// and by which operations.
    fn closure(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut starts: BTreeSet<(&'static str, ScopeNeeds)> = BTreeSet::new();
        for role in Role::ALL {
            starts.extend(role.grants().names().map(|scope| (role.as_str(), vec![scope])));
        }
        starts.extend(
            self.gains
                .iter()
                .filter(|gain| gain.by.is_none())
                .map(|gain| (gain.role.as_str(), gain.needs.clone())),
        );
        let mut reached = BTreeMap::new();
        for (role, scopes) in starts {
            let role = Role::parse(role).unwrap();
            let mut held = vec![Permission::effective(role, Some(ScopeSet::of(&scopes)), None)];
            let mut news = BTreeSet::new();
            loop {
                let usable = |gain: &&Gain| {
                    // Who has the secret of such a caller is that caller.
                    if let Some(kind) = gain.by {
                        let secret = if kind == "device" {
                            "secret of a device"
                        } else {
                            "secret of an enrolment"
                        };
                        return news.iter().any(|new: &String| new.starts_with(secret));
                    }
                    let needs = ScopeSet::of(&gain.needs);
                    let mut held = held.iter();
                    held.any(|held| held.role.covers(gain.role) && held.scopes.covers(needs))
                };
                let before = news.len();
                let mut more = Vec::new();
                let found: Vec<&Gain> = self.gains.iter().filter(usable).collect();
                for gain in found {
                    news.insert(match gain.may {
                        None => format!("{} by {}", gain.kind, gain.operation),
                        Some(may) => {
                            more.push(may);
                            let all = may.role.grants() == may.scopes || may.all_of_role;
                            let scopes = if all {
                                "everything".to_owned()
                            } else {
                                may.scopes.to_list().join(" ")
                            };
                            format!(
                                "{} with {scopes}, by {} of {}",
                                may.role.as_str(),
                                gain.operation,
                                gain.kind
                            )
                        }
                    });
                }
                held.extend(more);
                if news.len() == before {
                    break;
                }
            }
            if !news.is_empty() {
                reached.insert(format!("{} with {}", role.as_str(), scopes.join(" + ")), news);
            }
        }
        reached
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# Who can come to use which right by which operation: see rights_graph.rs.\n\
             #\n\
             # + a door that an act opened, - one that it shut, ~ something else that decides. Without a word more the caller\n\
             # holds all that is behind the door; what is not so stands with its reason in rights_graph/growth.rs.\n\n",
        );
        for ((operation, needs), edge) in &self.edges {
            if !edge.effects.is_empty() {
                let roles: Vec<&str> = edge.roles.iter().copied().collect();
                let _ = writeln!(text, "{operation} by {} with {needs}", roles.join(", "));
                for effect in &edge.effects {
                    let _ = writeln!(text, "    {effect}");
                }
            }
        }
        text += "\n# What everybody reaches, by one act or several, that they did not hold. Who is not named reaches nothing.\n\n";
        for (start, news) in self.closure() {
            let _ = writeln!(text, "{start}");
            for new in news {
                let _ = writeln!(text, "    {new}");
            }
        }
        text += "\n# The rows that each operation changes of tables that decide rights.\n\n";
        for (operation, tables) in &self.rows {
            let _ = writeln!(text, "{operation}");
            for (table, columns) in tables {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                let _ = writeln!(text, "    {table}: {}", columns.join(" "));
            }
        }
        text
    }
}

/// Calls everything that a role may call of a toolset, with as little as each operation needs, with all that no operation
/// asks for beside it, and with all of the role.
async fn of_role(place: &Place, role: Role, toolset: &str, graph: &mut Graph) {
    let entries = place.app.kernel.registry.entries();
    let asked: BTreeSet<&str> = entries
        .iter()
        .flat_map(|entry| needs(entry.meta).into_iter().flat_map(|(needs, _)| needs))
        .collect();
    let beside: Vec<&'static str> = role
        .grants()
        .names()
        .filter(|scope| !asked.contains(scope))
        .collect();
    let whole = Caller::new(&place.app, role, None).await;
    if toolset == "audit" {
        samples::fresh_target(&place.app).await;
        samples::checkpoint(&place.app).await;
    }
    for entry in entries.iter().filter(|entry| entry.meta.toolset == toolset) {
        let meta = &entry.meta;
        let may = |needs: &ScopeNeeds| needs.iter().all(|scope| role.grants().has(scope));
        let mut all = needs(meta);
        all.retain(|(needs, roles)| roles.contains(&role) && may(needs));
        for (needs, _) in &all {
            let caller = Caller::new(&place.app, role, Some(needs.clone())).await;
            let mut found = place.every_way(entry, &caller).await;
            if meta.kind == Kind::Write {
                found.extend(place.with_effect(entry, &caller).await);
            }
            graph.count(meta, &found);
            graph.add(meta, role, role.as_str(), needs, found);
            if meta.kind == Kind::Write {
                with_more(place, role, entry, needs, &beside, graph).await;
            }
        }
        if !all.is_empty() {
            let found = place.every_way(entry, &whole).await;
            graph.count(meta, &found);
        }
    }
}

/// Calls what a toolset has for whoever is of a kind, as such a principal: with its example, with its fixture, and with what
/// stands beside them.
async fn of_kinds(place: &Place, toolset: &str, graph: &mut Graph) {
    let app = &place.app;
    for entry in app.kernel.registry.entries() {
        let meta = entry.meta;
        let Access::OfKind { kind, .. } = meta.access else {
            continue;
        };
        if meta.toolset != toolset {
            continue;
        }
        let mut found = vec![of_kind(place, entry).await];
        if let Some(fixture) = areas::fixture(app, meta.id, &fresh_key()).await {
            let me = Caller::of_kind(app, meta, &fixture.path).await;
            let request = crate::mechanisms::idempotency::RepeatableRequest {
                method: fixture.method,
                path: fixture.path,
                body: fixture.body,
                event: fixture.event,
                content: fixture.content,
                token: me.token.clone(),
                key: fresh_key(),
                in_headers: meta.trio_in_headers(),
            };
            let call = request.call(app);
            found.push(place.measured(meta, &me, "its fixture", call).await);
        }
        for id in areas::fleet::beside(app, meta.id).await {
            let target = samples::Target {
                others: [("deviceId", id.clone())].into(),
                ..samples::Target::absent()
            };
            let me = Caller::of_kind(app, meta, &samples::path(meta, &target)).await;
            let call = samples::call(app, entry, &target).token(&me.token);
            found.push(place.measured(meta, &me, "another of its kind", call).await);
        }
        graph.count(meta, &found);
        graph.add(meta, Role::Viewer, kind, &vec!["itself"], found);
    }
}

/// Calls an operation of a kind with its example, as the record that its path names.
async fn of_kind(place: &Place, entry: &Entry) -> CallOutcome {
    let (app, meta) = (&place.app, entry.meta);
    let target = samples::fresh_target_of(app, entry).await;
    let me = Caller::of_kind(app, meta, &samples::path(meta, &target)).await;
    let call = samples::call(app, entry, &target).token(&me.token);
    place.measured(meta, &me, "its example", call).await
}

/// Finds what an operation does for somebody who has scopes besides that no operation asks for, and for which of them.
async fn with_more(
    place: &Place,
    role: Role,
    entry: &Entry,
    needs: &ScopeNeeds,
    beside: &[&'static str],
    graph: &mut Graph,
) {
    let meta = &entry.meta;
    let with = |more: &[&'static str]| [needs.as_slice(), more].concat();
    let caller = Caller::new(&place.app, role, Some(with(beside))).await;
    let found = place.every_way(entry, &caller).await;
    graph.count(meta, &found);
    // What is covered by the caller is more when the caller holds more, and is nothing new.
    let is_new = |graph: &Graph, effect: &Effect| {
        !matches!(effect, Effect::Opens(_, Size::Within)) && !graph.knows(meta.id, needs, effect)
    };
    if !found
        .iter()
        .flat_map(|one| &one.effects)
        .any(|effect| is_new(graph, effect))
    {
        return;
    }
    for more in beside {
        let more = with(&[*more]);
        let caller = Caller::new(&place.app, role, Some(more.clone())).await;
        let mut found = place.every_way(entry, &caller).await;
        graph.count(meta, &found);
        for one in &mut found {
            one.effects.retain(|effect| is_new(graph, effect));
            one.rows.clear();
            let new: BTreeSet<&str> = one.effects.iter().filter_map(kind_of).collect();
            one.gains.retain(|(kind, _)| new.contains(kind));
        }
        if found.iter().any(|one| !one.effects.is_empty()) {
            graph.add(meta, role, role.as_str(), &more, found);
        }
    }
}

fn kind_of(effect: &Effect) -> Option<&'static str> {
    match effect {
        Effect::Opens(kind, _) => Some(kind),
        _ => None,
    }
}

/// Acts by chance of callers with scopes by chance, one behind the other on one organization: what an act opened is there
/// for the next one. Every call is judged as above.
async fn walk(place: &Place, seed: u64, steps: u64) {
    let mut dice = Dice::of(seed);
    let entries: Vec<&Entry> = place.app.kernel.registry.entries().iter().collect();
    let writes: Vec<&Entry> = entries
        .into_iter()
        .filter(|entry| entry.meta.kind == Kind::Write)
        .collect();
    let mut callers: Vec<Caller> = Vec::new();
    for _ in 0..steps {
        let entry = *dice.pick(&writes);
        if matches!(entry.meta.access, Access::OfKind { .. }) {
            of_kind(place, entry).await;
            continue;
        }
        let ways = needs(entry.meta);
        let (needs, roles) = dice.pick(&ways);
        let role = *dice.pick(roles);
        // A role that does not hold it opens nothing by it.
        if !needs.iter().all(|scope| role.grants().has(scope)) {
            continue;
        }
        let is_there = |caller: &Caller| caller.role == role && caller.holds(needs);
        let known = callers.iter().position(is_there).filter(|_| !dice.chance(3));
        let place_of = if let Some(known) = known {
            known
        } else {
            let mut scopes = needs.clone();
            for _ in 0..dice.below(8) {
                scopes.push(*dice.pick(&every_scope()));
            }
            scopes.retain(|scope| role.grants().has(scope));
            scopes.sort_unstable();
            scopes.dedup();
            callers.push(Caller::new(&place.app, role, Some(scopes)).await);
            callers.len() - 1
        };
        let me = &callers[place_of];
        let mut others = neighbours(&place.app, me, entry.meta.id).await;
        if others.is_empty() || dice.chance(3) {
            let target = samples::fresh_target_of(&place.app, entry).await;
            let call = samples::call(&place.app, entry, &target).token(&me.token);
            place.measured(entry.meta, me, "its example", call).await;
        } else {
            let other = others.swap_remove(dice.below(others.len()));
            let call = place.call(entry.meta, me, &other);
            place.measured(entry.meta, me, other.what, call).await;
        }
    }
}

/// Proves GR-4.
#[test]
fn every_table_that_decides_rights_is_known_to_the_graph() {
    let deciding: Vec<&str> = ALL.rights().iter().map(|deciding| deciding.table).collect();
    let known: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(known, deciding, "say in rights_graph/tables.rs what its rows are");
    for table in TABLES {
        if let tables::Rows::Things { why, .. } = table.rows {
            assert!(why.len() > 10, "{}", table.name);
        }
    }
    for growth in GROWTH {
        assert!(growth.why.len() > 20, "{}", growth.operation);
    }
}

/// What holds for the areas of the product holds for one that nobody thought of.
#[test]
fn the_rights_of_a_new_area_grow_by_no_detour() {
    run::once_of(
        every_area(),
        "rights_beside",
        &run::roomy(),
        |app: Arc<App>| async move {
            let mut graph = Graph::default();
            for role in Role::ALL {
                let place = Place::of(&app, &format!("{}-beside", role.as_str())).await;
                of_role(&place, role, "operations", &mut graph).await;
                place.must_be_sound();
            }
            assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
            let changed = |operation: &str| {
                assert!(
                    graph.done.contains(operation),
                    "{operation} was refused to everybody"
                );
                let rows = graph.rows.get(operation).and_then(|tables| tables.get("notes"));
                rows.cloned().unwrap_or_default().into_iter().collect::<Vec<_>>()
            };
            assert_eq!(changed("createHeadlessNote"), ["new"]);
            assert_eq!(changed("deleteHeadlessNote"), ["gone"]);
            assert!(changed("updateHeadlessNote").contains(&"text".to_owned()));
            assert_eq!(changed("getHeadlessNote"), [""; 0]);
            json!(graph.text())
        },
    );
}

/// Proves GR-1, GR-2, GR-3, PF-1.
#[test]
fn rights_grow_by_no_detour() {
    let (steps, seed) = (run::count(STEPS), seed("rights"));
    let texts = Arc::new(Mutex::new(Vec::new()));
    run::once("rights", &run::roomy(), |app: Arc<App>| {
        let texts = texts.clone();
        async move {
            let mut graph = Graph::default();
            for role in Role::ALL {
                // Each toolset has an organization of its own: what is read before and behind each call stays little.
                for toolset in toolsets().iter().map(|toolset| toolset.name) {
                    let place = Place::of(&app, &format!("{}-{toolset}", role.as_str())).await;
                    of_role(&place, role, toolset, &mut graph).await;
                    place.must_be_sound();
                }
            }
            for toolset in toolsets().iter().map(|toolset| toolset.name) {
                let place = Place::of(&app, &format!("kinds-{toolset}")).await;
                of_kinds(&place, toolset, &mut graph).await;
                place.must_be_sound();
            }
            let place = Place::of(&app, "walk").await;
            walk(&place, seed, steps).await;
            place.must_be_sound();
            // PF-1: whatever all of them did, each row has its proof and the heads have the sum.
            assert_eq!(crate::mechanisms::proofs::found(&app).await, []);
            let operations = app.kernel.registry.entries();
            // Those whom the walk has are accounts: what people alone do is looked at where people do it.
            let meant = operations
                .iter()
                .filter(|entry| !samples::needs_a_person(entry.meta));
            let refused = meant.map(|entry| entry.meta.id);
            let refused = refused.filter(|id| !graph.done.contains(id));
            let used = |growth: &Growth| {
                let is_it = |gain: &Gain| gain.operation == growth.operation && gain.kind == growth.door;
                graph.gains.iter().any(is_it)
            };
            let unused = GROWTH
                .iter()
                .filter(|growth| !used(growth))
                .map(|growth| format!("{growth:?} has no edge"));
            let told: Vec<String> = refused
                .map(|id| format!("{id} was refused to everybody"))
                .chain(unused)
                .collect();
            texts.lock().unwrap().push((graph.text(), told));
            json!({
                "operations": operations.len(),
                "edges": graph.edges.values().map(|edge| edge.effects.len()).sum::<usize>(),
                "calls": graph.calls + steps,
            })
        }
    });
    let texts = std::mem::take(&mut *texts.lock().unwrap());
    for (text, told) in &texts {
        assert_golden(GOLDEN, text);
        assert!(told.is_empty(), "{}", told.join("\n"));
    }
}
