//! From readable names to ids: what a definition names is looked up once, when it is planned or written.
//!
//! | place | kind | a name that nothing has |
//! | --- | --- | --- |
//! | `appliesTo` and `subjects`: users, groups, service accounts, resources; `skillId` | the record's | 422 |
//! | conditions that compare `identity.user_id`, `identity.group_ids`, `identity.service_account_id`, `resource.id` or `skill.id` with a whole text | the record's | stays as it is |
//! | agents, products, devices, integrations, MCP servers and tools | none yet | stays as it is |
//!
//! Names are found by their match keys, in any spelling, whatever the state of the record: somebody suspended can be named, a
//! deleted one cannot. A condition may also speak of somebody whom the directory does not know yet: its word is compared with
//! every word that the event's user has by then. A name that several have is refused in both places, and so is one of which
//! nothing is left when it is compared.
//!
//! Absent on purpose: agents, products, devices, integrations and MCP servers as records; what a policy calls them is
//! compared as written.

use provost_areas_identity::words::{self, Kind, WordMatches, WordQuery, key_of};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result};
use provost_policy::{Family, Violations, document_sha256, match_key};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// LIMIT: breaches that a refusal lists (D1.5).
const BREACHES: usize = 20;

/// A definition with ids in place of names.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The definition that decides.
    pub definition: Value,
    /// The digest of every place with what it names. Units: 64 hexadecimal digits.
    pub fingerprint: String,
}

/// Returns what a refusal calls a kind.
const fn called(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Group => "group",
        Kind::ServiceAccount => "service account",
        Kind::Resource => "resource",
        Kind::Skill => "skill",
    }
}

const fn how_to_tell_apart(kind: Kind) -> &'static str {
    match kind {
        Kind::User | Kind::Group => "name the directory with directoryId, or write the id",
        Kind::Skill => "write namespace/name, or the id",
        Kind::ServiceAccount | Kind::Resource => "write the id",
    }
}

/// One place that names something.
pub struct NameUse<'a> {
    /// Where it stands.
    pub pointer: String,
    /// What it names.
    pub kind: Kind,
    /// By which word.
    pub name: &'a str,
    directory: Option<&'a str>,
    /// Something must have the name.
    strict: bool,
}

impl NameUse<'_> {
    /// Returns the directory that selectors name for this place: that of the one entry of its list with its name; nothing where the
    /// entries of that name do not agree.
    fn selected_directory<'s>(&self, selectors: &'s Value) -> Option<&'s str> {
        let list = list_of(&self.pointer)?;
        let entries = selectors.pointer(list)?.as_array()?.iter();
        let name = |entry: &'s Value| entry.as_str().or_else(|| entry["name"].as_str());
        let own = key_of(self.kind, self.name);
        let mut directories = entries
            .filter(|entry| name(entry).is_some_and(|name| key_of(self.kind, name) == own))
            .map(|entry| entry["directoryId"].as_str());
        let first = directories.next()?;
        directories.all(|other| other == first).then_some(first)?
    }
}

/// Returns a definition that keeps every rule with its names resolved. Selectors, of a source reference, may name the directory of
/// a user or group that several have (client contract §3.3).
///
/// Errors: `InvalidDefinition` with the places, behind `base`, whose names nothing or several things have.
/// Cost: two statements, whatever the number of names.
pub fn bind(
    ctx: &mut OperationContext<'_>,
    family: Family,
    definition: &Value,
    selectors: Option<&Value>,
    base: &str,
) -> Result<Binding> {
    let named = names_in(family, definition);
    let found = look_up(ctx, &named)?;
    let mut bound = definition.clone();
    let mut references = Vec::new();
    let mut breaches = Vec::new();
    for named in &named {
        if match_key(named.name).is_empty() {
            let message =
                "has no character that is seen: blanks and invisible ones are left out of a comparison";
            breaches.push((&named.pointer, message.to_owned()));
            continue;
        }
        if named.strict
            && named.kind == Kind::Skill
            && key_of(named.kind, named.name) != match_key(named.name)
        {
            let message = "names a version; a policy is about every version of a skill: leave @version out";
            breaches.push((&named.pointer, message.to_owned()));
            continue;
        }
        let hits = found.of(named.kind, named.name);
        let directory = named
            .directory
            .or_else(|| selectors.and_then(|selectors| named.selected_directory(selectors)));
        let fitting: Vec<&String> = hits
            .iter()
            .filter(|hit| hits.len() < 2 || directory.is_none() || directory == hit.directory_id.as_deref())
            .map(|hit| &hit.id)
            .collect();
        match fitting.as_slice() {
            [id] => {
                references.push(json!([named.pointer, called(named.kind), id]));
                if let Some(place) = bound.pointer_mut(&named.pointer) {
                    *place = Value::from(id.as_str());
                }
            }
            [] if named.strict => {
                breaches.push((
                    &named.pointer,
                    format!("names no {} of this organization", called(named.kind)),
                ));
            }
            [] => {}
            several => {
                let (count, kind) = (several.len(), named.kind);
                let message = format!("names {count} {}s; {}", called(kind), how_to_tell_apart(kind));
                breaches.push((&named.pointer, message));
            }
        }
    }
    if !breaches.is_empty() {
        return Err(refusal(
            breaches
                .into_iter()
                .map(|(path, message)| (format!("{base}{path}"), message)),
        ));
    }
    let lists: BTreeSet<&str> = named.iter().filter_map(|n| list_of(&n.pointer)).collect();
    for list in lists {
        // Two names of one record are one id.
        if let Some(Value::Array(items)) = bound.pointer_mut(list) {
            let mut seen = BTreeSet::new();
            items.retain(|item| item.as_str().is_none_or(|id| seen.insert(id.to_owned())));
        }
    }
    Ok(Binding {
        definition: bound,
        fingerprint: document_sha256(&references.into()),
    })
}

/// Returns the refusal of a definition that breaks rules, with its first places.
pub fn refusal(breaches: impl IntoIterator<Item = (String, String)>) -> Error {
    let breaches: Vec<(String, String)> = breaches.into_iter().take(BREACHES).collect();
    let whole = breaches
        .first()
        .map_or_else(String::new, |(path, message)| format!(": {path} {message}"));
    let error = Error::new(
        Code::InvalidDefinition,
        format!("the definition breaks its contract{whole}"),
    );
    breaches
        .into_iter()
        .fold(error, |error, (path, message)| error.and_field(path, message))
}

/// Returns the refusal of what the engine found wrong with a definition that stands at `base`.
pub fn violated(violations: &Violations, base: &str) -> Error {
    refusal(
        violations
            .kept()
            .iter()
            .map(|v| (format!("{base}{}", v.path), v.message.clone())),
    )
}

/// Returns the pointer of the list that an item stands in.
fn list_of(pointer: &str) -> Option<&str> {
    let (list, place) = pointer.rsplit_once('/')?;
    place.bytes().all(|b| b.is_ascii_digit()).then_some(list)
}

/// Returns what the names mean, by the match keys by which events are compared too.
fn look_up(ctx: &mut OperationContext<'_>, places: &[NameUse<'_>]) -> Result<WordMatches> {
    let mut asked = WordQuery::default();
    for place in places {
        asked.add(place.kind, place.name);
    }
    let org = ctx.org();
    words::living(&mut ctx.tx(), org, &asked)
}

/// Whom a definition names: of each name all that it may mean.
#[derive(Debug, Default)]
pub struct NamedIds {
    /// The ids of users and accounts that it names by themselves.
    pub alone: BTreeSet<String>,
    /// The ids of groups.
    pub groups: BTreeSet<String>,
}

/// Adds whom a definition names.
pub fn add_named(
    ctx: &mut OperationContext<'_>,
    family: Family,
    definition: &Value,
    ids: &mut NamedIds,
) -> Result<()> {
    let named = names_in(family, definition);
    let found = look_up(ctx, &named)?;
    for named in &named {
        let into = match named.kind {
            Kind::User | Kind::ServiceAccount => &mut ids.alone,
            Kind::Group => &mut ids.groups,
            _ => continue,
        };
        into.extend(
            found
                .of(named.kind, named.name)
                .iter()
                .map(|record| record.id.clone()),
        );
    }
    Ok(())
}

/// Returns every place of a definition that names something.
pub fn names_in(family: Family, definition: &Value) -> Vec<NameUse<'_>> {
    let mut named = Vec::new();
    let scope = if family == Family::SkillAcl {
        "subjects"
    } else {
        "appliesTo"
    };
    let lists = [
        ("users", Kind::User),
        ("groups", Kind::Group),
        ("serviceAccounts", Kind::ServiceAccount),
        ("resources", Kind::Resource),
    ];
    for (member, kind) in lists {
        let items = definition[scope][member]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        for (at, item) in items {
            let name = item.as_str().or_else(|| item["name"].as_str());
            named.extend(name.map(|name| NameUse {
                pointer: format!("/{scope}/{member}/{at}"),
                kind,
                name,
                directory: item["directoryId"].as_str(),
                strict: true,
            }));
        }
    }
    if family == Family::SkillAcl {
        named.extend(definition["skillId"].as_str().map(|name| NameUse {
            pointer: "/skillId".into(),
            kind: Kind::Skill,
            name,
            directory: None,
            strict: true,
        }));
    }
    for member in ["conditions", "except", "exceptions"] {
        compared(&definition[member], &format!("/{member}"), &mut named);
    }
    named
}

/// Adds the texts that a condition compares a whole attribute with. The walk is as deep as the engine lets conditions be.
fn compared<'a>(node: &'a Value, pointer: &str, named: &mut Vec<NameUse<'a>>) {
    match node {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                compared(item, &format!("{pointer}/{at}"), named);
            }
        }
        Value::Object(members) => {
            if let Some(kind) = compares(node) {
                let value = &node["value"];
                let items = value.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate();
                let items =
                    items.filter_map(|(at, item)| Some((format!("{pointer}/value/{at}"), item.as_str()?)));
                let whole = value.as_str().map(|name| (format!("{pointer}/value"), name));
                named.extend(whole.into_iter().chain(items).map(|(pointer, name)| NameUse {
                    pointer,
                    kind,
                    name,
                    directory: None,
                    strict: false,
                }));
            }
            for (name, member) in members.iter().filter(|(name, _)| *name != "value") {
                // The names of a condition's members hold nothing that a pointer escapes.
                compared(member, &format!("{pointer}/{name}"), named);
            }
        }
        _ => {}
    }
}

/// Returns of what kind the record is that a predicate compares with, if it compares with whole names.
fn compares(predicate: &Value) -> Option<Kind> {
    let (kind, is_set) = match predicate["field"].as_str()? {
        "identity.user_id" => (Kind::User, false),
        "identity.group_ids" => (Kind::Group, true),
        "identity.service_account_id" => (Kind::ServiceAccount, false),
        "resource.id" => (Kind::Resource, false),
        "skill.id" => (Kind::Skill, false),
        _ => return None,
    };
    let whole = match predicate["op"].as_str()? {
        "eq" | "neq" => true,
        "in" | "not_in" => !is_set,
        "contains" | "contains_any" | "contains_all" => is_set,
        _ => false,
    };
    whole.then_some(kind)
}
