//! From readable names to ids: what a definition names is looked up once, when it is planned or written.
//!
//! | place | kind | a name that nothing has |
//! | --- | --- | --- |
//! | `appliesTo` and `subjects`: users, groups, service accounts, resources; `skillId` | the record's | 422 |
//! | conditions that compare `identity.user_id`, `identity.group_ids`, `identity.service_account_id`, `resource.id` or `skill.id` with a whole text | the record's | stays as it is |
//! | agents, products, devices, integrations, MCP servers and tools | none yet | stays as it is |
//!
//! Events carry ids, so that a condition that kept a name would never hold; but a condition may also speak of somebody
//! whom the directory does not know. A name that several have is refused in both places.
//!
//! Absent on purpose: agents, products, devices, integrations and MCP servers as records; what a policy calls them is
//! compared as written.

use crate::areas::subjects::{self, SubjectKind};
use crate::areas::{resources, skill_registry};
use provost_kernel::error::{Code, Error};
use provost_kernel::{Cx, Result};
use provost_policy::{Family, Violations, document_sha256};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    User,
    Group,
    ServiceAccount,
    Resource,
    Skill,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Group => "group",
            Kind::ServiceAccount => "service account",
            Kind::Resource => "resource",
            Kind::Skill => "skill",
        }
    }

    const fn how_to_tell_apart(self) -> &'static str {
        match self {
            Kind::User | Kind::Group => "name the directory with directoryId, or write the id",
            Kind::Skill => "write namespace/name, or the id",
            Kind::ServiceAccount | Kind::Resource => "write the id",
        }
    }
}

/// One place that names something.
struct Named<'a> {
    pointer: String,
    kind: Kind,
    name: &'a str,
    directory: Option<&'a str>,
    /// Something must have the name.
    strict: bool,
}

/// Returns a definition that keeps every rule with its names resolved.
///
/// Errors: `InvalidDefinition` with the places, behind `base`, whose names nothing or several things have.
/// Cost: some statements for each 256 names; one for each skill.
pub fn bind(cx: &mut Cx<'_>, family: Family, definition: &Value, base: &str) -> Result<Binding> {
    let named = names(family, definition);
    let found = look_up(cx, &named)?;
    let mut bound = definition.clone();
    let mut references = Vec::new();
    let mut breaches = Vec::new();
    for named in &named {
        let hits = found
            .get(&(named.kind, named.name))
            .map_or(&[][..], Vec::as_slice);
        let fitting: Vec<&String> = hits
            .iter()
            .filter(|(_, directory)| {
                hits.len() < 2 || named.directory.is_none() || named.directory == directory.as_deref()
            })
            .map(|(id, _)| id)
            .collect();
        match fitting.as_slice() {
            [id] => {
                references.push(json!([named.pointer, named.kind.word(), id]));
                if let Some(place) = bound.pointer_mut(&named.pointer) {
                    *place = Value::from(id.as_str());
                }
            }
            [] if named.strict => {
                breaches.push((
                    &named.pointer,
                    format!("names no {} of this organization", named.kind.word()),
                ));
            }
            [] => {}
            several => {
                let (count, kind) = (several.len(), named.kind);
                let message = format!("names {count} {}s; {}", kind.word(), kind.how_to_tell_apart());
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

type Found<'a> = BTreeMap<(Kind, &'a str), Vec<(String, Option<String>)>>;

fn look_up<'a>(cx: &mut Cx<'_>, places: &[Named<'a>]) -> Result<Found<'a>> {
    let mut asked: BTreeMap<Kind, BTreeSet<&'a str>> = BTreeMap::new();
    for place in places {
        asked.entry(place.kind).or_default().insert(place.name);
    }
    let mut found = Found::new();
    for (kind, names) in asked {
        let names: Vec<&str> = names.into_iter().collect();
        let subject = match kind {
            Kind::User => Some(SubjectKind::User),
            Kind::Group => Some(SubjectKind::Group),
            Kind::ServiceAccount => Some(SubjectKind::ServiceAccount),
            Kind::Resource | Kind::Skill => None,
        };
        if let Some(subject) = subject {
            let hits = subjects::find(cx, subject, &names)?;
            found.extend(hits.into_iter().map(|(name, hits)| ((kind, name), hits)));
        } else if kind == Kind::Resource {
            let hits = resources::find(cx, &names)?;
            let hits = hits
                .into_iter()
                .map(|(name, ids)| ((kind, name), undirected(ids)));
            found.extend(hits);
        } else {
            for name in names.into_iter().filter(|name| !name.contains('\0')) {
                let ids = skill_registry::find_exact(cx, name)?
                    .into_iter()
                    .map(|(id, _)| id);
                found.insert((kind, name), undirected(ids));
            }
        }
    }
    Ok(found)
}

fn undirected(ids: impl IntoIterator<Item = String>) -> Vec<(String, Option<String>)> {
    ids.into_iter().map(|id| (id, None)).collect()
}

/// Returns every place of a definition that names something.
fn names(family: Family, definition: &Value) -> Vec<Named<'_>> {
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
            named.extend(name.map(|name| Named {
                pointer: format!("/{scope}/{member}/{at}"),
                kind,
                name,
                directory: item["directoryId"].as_str(),
                strict: true,
            }));
        }
    }
    if family == Family::SkillAcl {
        named.extend(definition["skillId"].as_str().map(|name| Named {
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
fn compared<'a>(node: &'a Value, pointer: &str, named: &mut Vec<Named<'a>>) {
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
                named.extend(whole.into_iter().chain(items).map(|(pointer, name)| Named {
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
