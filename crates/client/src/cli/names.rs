//! Names where the API takes ids: `provost service-accounts disable deploy`.
//!
//! INVARIANT CL-7: a name stands for an id only when exactly one record has exactly this name; a word that has the shape of an id
//! is never looked up, and where ids are words of people's own, an id and the name of another record are two answers.
//!
//! ```text
//! word ── shape of an id ──────────────────────────────► is the id
//!     └─ otherwise: the list of its kind ─► none ──────► is sent as it is; the server says 404
//!                                         ├► one ──────► its id
//!                                         └► several ──► nothing is sent; exit code 2 with the ids
//! ```
//!
//! Absent on purpose: prefixes, another case, the nearest name. Those are said, never taken.

use super::api::{Operation, Shape};
use super::catalogue;
use super::connection::Place;
use super::draft::target;
use super::failure::{Exit, Failure};
use super::flags::{self, FlagTarget};
use super::kinds::{Kind, kind_of, kind_of_flag};
use super::pages::Trail;
use super::print::parsed;
use super::schema::Field;
use super::send::Sender;
use super::server::Call;
use clap::ArgMatches;
use http::{HeaderMap, Method};
use provost_words::url::encoded;
use serde_json::Value;
use std::collections::BTreeMap;

/// LIMIT: a person who has more records than this says ids.
const MAX_ITEMS: usize = 20_000;
/// From this likeness on a name is proposed.
const NEAR: f64 = 0.85;

/// What the words of a command line stand for.
#[derive(Default)]
pub(super) struct Names {
    ids: BTreeMap<String, String>,
    /// What flags stand for, by the ids that clap knows them by.
    of_flags: BTreeMap<String, String>,
    /// Sentences about words that are named by an id: `the service account deploy is sa_…`.
    said: Vec<String>,
    /// Words that name nothing, for a refusal.
    missed: Vec<String>,
}

impl Names {
    /// Returns the id that a parameter's word stands for.
    pub(super) fn id<'a>(&'a self, parameter: &str, word: &'a str) -> &'a str {
        self.ids.get(parameter).map_or(word, String::as_str)
    }

    /// Returns the id that a flag's word stands for, where it is a name.
    pub(super) fn of_flag(&self, target: FlagTarget, field: &Field) -> Option<&str> {
        self.of_flags.get(&target.id(field)).map(String::as_str)
    }

    /// Returns the sentences about what the names stand for.
    pub(super) fn said(&self) -> &[String] {
        &self.said
    }

    /// Returns what to say instead of a name when a command is repeated: the name may be gone by then.
    pub(super) fn repeat(&self, repeat: String) -> String {
        let ids: Vec<&str> = self
            .ids
            .values()
            .chain(self.of_flags.values())
            .map(String::as_str)
            .collect();
        if ids.is_empty() {
            return repeat;
        }
        format!("{} in the place of the name, and {repeat}", ids.join(" and "))
    }

    /// Says of a 404, and of a 422, that no record has the name either.
    pub(super) fn explained(&self, failure: Failure) -> Failure {
        if !matches!(failure.status, Some(404 | 422)) {
            return failure;
        }
        self.missed
            .iter()
            .fold(failure, |failure, line| failure.and(line.as_str()))
    }
}

/// Looks up the names among the words of an operation's path, and those that its flags say.
///
/// Errors: usage, when several records have a name; whatever keeps the list from being read but a refusal, after which words are
/// sent as they are.
pub(super) async fn resolve(
    operation: &Operation,
    matches: &ArgMatches,
    place: &Place,
    sender: &Sender<'_>,
) -> Result<Names, Failure> {
    let mut names = Names::default();
    for field in &operation.path_parameters {
        let parameter = field.name();
        let word = matches.get_one::<String>(&FlagTarget::Path.id(field));
        let (Some(kind), Some(word)) = (kind_of(&parameter), word) else {
            continue;
        };
        if kind.has_shape(word) {
            continue;
        }
        let items = match list(kind, Some(word), &names.ids, place, sender).await {
            Ok(items) => items,
            // Who may not list may still act by id; and a parent that is not there is for the act to refuse.
            Err(failure) if matches!(failure.status, Some(400..=499)) => {
                names.missed.push(format!(
                    "{word} has not the form of an id, and names of {} could not be looked up: {}",
                    kind.plural,
                    failure.lines.first().map_or("", String::as_str)
                ));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let items = of_family(items, &operation.group, kind);
        match one(kind, word, &items)? {
            Some(id) if id == word => {}
            Some(id) => {
                names.said.push(format!("the {} {word} is {id}", kind.noun));
                names.ids.insert(parameter, id.to_owned());
            }
            None => names.missed.push(missed(kind, word, &items)),
        }
    }
    for field in &operation.query {
        flag(&mut names, (FlagTarget::Query, field), matches, place, sender).await?;
    }
    for field in operation.body.iter().flat_map(|body| &body.fields) {
        flag(&mut names, (FlagTarget::Body, field), matches, place, sender).await?;
    }
    Ok(names)
}

/// Looks up the name that a flag says.
///
/// Errors: as [`resolve`]; usage also, when nothing has the name of which a list is asked for: an empty list would say that it has nothing.
async fn flag(
    names: &mut Names,
    (target, field): (FlagTarget, &Field),
    matches: &ArgMatches,
    place: &Place,
    sender: &Sender<'_>,
) -> Result<(), Failure> {
    let (Some(kind), [_]) = (kind_of_flag(&field.name()), field.path.as_slice()) else {
        return Ok(());
    };
    let Some(Value::String(word)) = flags::value(target, field, matches)? else {
        return Ok(());
    };
    if word.is_empty() || kind.has_shape(&word) {
        return Ok(());
    }
    let items = match list(kind, Some(&word), &BTreeMap::new(), place, sender).await {
        Ok(items) => items,
        Err(failure) if target == FlagTarget::Body && matches!(failure.status, Some(400..=499)) => {
            return Ok(());
        }
        Err(failure) => {
            let line = format!(
                "{word} has not the form of an id, and names of {} are not to be had",
                kind.plural
            );
            return Err(failure.and(line));
        }
    };
    match one(kind, &word, &items)? {
        Some(id) if id == word => {}
        Some(id) => {
            names.said.push(format!("the {} {word} is {id}", kind.noun));
            names.of_flags.insert(target.id(field), id.to_owned());
        }
        None if target == FlagTarget::Query => return Err(Failure::usage(missed(kind, &word, &items))),
        None => names.missed.push(missed(kind, &word, &items)),
    }
    Ok(())
}

/// Returns the id of the one record that a word names; nothing when none has it.
fn one<'a>(kind: &Kind, word: &str, items: &'a [Value]) -> Result<Option<&'a str>, Failure> {
    let text = |item: &'a Value, member: &str| item.get(member).and_then(Value::as_str);
    let mut ids: Vec<&str> = items
        .iter()
        .filter(|item| text(item, kind.name) == Some(word) || text(item, "id") == Some(word))
        .filter_map(|item| text(item, "id"))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    match ids.as_slice() {
        [] => Ok(None),
        [id] => Ok(Some(*id)),
        several => {
            let line = format!("{} {} are called {word}; say the id", several.len(), kind.plural);
            let failure = Failure::usage(line);
            Err(several
                .iter()
                .fold(failure, |failure, id| failure.and(format!("  {id}"))))
        }
    }
}

fn missed(kind: &Kind, word: &str, items: &[Value]) -> String {
    let near = items
        .iter()
        .filter_map(|item| item.get(kind.name)?.as_str())
        .map(|name| {
            (
                strsim::jaro_winkler(&name.to_lowercase(), &word.to_lowercase()),
                name,
            )
        })
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let line = format!("no {} has the id or the name {word}", kind.noun);
    match near {
        Some((_, name)) => format!("{line}; did you mean {name}?"),
        None => line,
    }
}

/// Leaves out policies of another family than the group's: `access-policies` takes no others.
fn of_family(items: Vec<Value>, group: &str, kind: &Kind) -> Vec<Value> {
    if kind.parameter != "policyId" {
        return items;
    }
    let family = match group {
        "skill-acls" => "skill_acl",
        other => match other.strip_suffix("-policies") {
            Some(family) => family,
            None => return items,
        },
    };
    let is_of = |item: &Value| {
        item.get("family")
            .and_then(Value::as_str)
            .is_none_or(|of| of == family)
    };
    items.into_iter().filter(is_of).collect()
}

/// Returns the records of a kind, those alone that may have a word where the list can tell; `parents` are ids of what they are in.
///
/// Errors: what the server refused, or why there is no answer; usage, when there are too many.
pub(super) async fn list(
    kind: &Kind,
    word: Option<&str>,
    parents: &BTreeMap<String, String>,
    place: &Place,
    sender: &Sender<'_>,
) -> Result<Vec<Value>, Failure> {
    let (group, verb) = kind.list;
    let api = catalogue::of_group(group);
    let unknown = || Failure::new(Exit::Usage, format!("this program does not list {}", kind.plural));
    let operation = api.find(group, verb).ok_or_else(unknown)?;
    let Shape::List(member) = &operation.answer else {
        return Err(unknown());
    };
    let mut path = operation
        .path
        .replace("{organizationId}", &encoded(&place.organization).to_string());
    for (parameter, id) in parents {
        path = path.replace(&format!("{{{parameter}}}"), &encoded(id).to_string());
    }
    if path.contains('{') {
        return Err(Failure {
            status: Some(400),
            ..Failure::usage("what they are in was not found")
        });
    }
    let mut query: Vec<(String, String)> = Vec::new();
    if let Some(largest) = operation.largest_page() {
        query.push(("limit".into(), largest.to_string()));
    }
    if let (Some(filter), Some(word)) = (kind.filter, word) {
        query.push((filter.into(), word.into()));
    }
    let (mut items, mut trail) = (Vec::new(), Trail::default());
    loop {
        let call = Call {
            method: Method::GET,
            target: target(&path, &query),
            headers: HeaderMap::new(),
            body: None,
            is_download: false,
        };
        let mut page = parsed(&sender.send(&call).await?)?;
        let before = items.len();
        if let Some(Value::Array(found)) = page.get_mut(member.as_str()).map(Value::take) {
            items.extend(found);
        }
        let count = items.len() - before;
        let next = if let Some(cursor) = page.get("nextCursor").and_then(Value::as_str) {
            Some(("cursor", cursor.to_owned()))
        } else {
            let total = page.get("total").and_then(Value::as_u64);
            let has_more = count > 0
                && operation.query_field("offset").is_some()
                && total.is_some_and(|total| total > items.len() as u64);
            has_more.then(|| ("offset", items.len().to_string()))
        };
        let Some((name, value)) = next else {
            return Ok(items);
        };
        if items.len() > MAX_ITEMS {
            let line = format!(
                "there are more than {MAX_ITEMS} {} to look through; say the id",
                kind.plural
            );
            return Err(Failure::usage(line));
        }
        trail.go_on(name, &value, count)?;
        query.retain(|(known, _)| known != name && !(name == "cursor" && known == "offset"));
        query.push((name.into(), value));
    }
}

/// Returns how a record that is said by its id is called, for who is asked whether it may go. Nothing when it cannot be read: the
/// act itself will say why.
pub(super) async fn called(
    operation: &Operation,
    matches: &ArgMatches,
    names: &Names,
    place: &Place,
    sender: &Sender<'_>,
) -> Option<String> {
    let field = operation.path_parameters.last()?;
    let parameter = field.name();
    let kind = kind_of(&parameter)?;
    let api = catalogue::of_group(&operation.group);
    let get = api
        .operations
        .iter()
        .find(|other| other.method == Method::GET && other.path == operation.path)?;
    let mut path = get
        .path
        .replace("{organizationId}", &encoded(&place.organization).to_string());
    for field in &operation.path_parameters {
        let word = matches.get_one::<String>(&FlagTarget::Path.id(field))?;
        let id = names.id(&field.name(), word);
        path = path.replace(&format!("{{{}}}", field.name()), &encoded(id).to_string());
    }
    let call = Call {
        method: Method::GET,
        target: path,
        headers: HeaderMap::new(),
        body: None,
        is_download: false,
    };
    let answer = parsed(&sender.send(&call).await.ok()?).ok()?;
    let name_of = |object: &Value| object.get(kind.name).and_then(Value::as_str).map(str::to_owned);
    let name = name_of(&answer).or_else(|| answer.as_object()?.values().find_map(name_of))?;
    let word = matches.get_one::<String>(&FlagTarget::Path.id(field))?;
    Some(format!(
        "the {} {} is called {name}",
        kind.noun,
        names.id(&parameter, word)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Proves CL-7.
    #[test]
    fn a_name_counts_exactly_and_once() {
        let kind = kind_of("policyId").unwrap();
        let items = [
            json!({ "id": "a", "name": "Guard" }),
            json!({ "id": "b", "name": "guard" }),
            json!({ "id": "c", "name": "twice" }),
            json!({ "id": "d", "name": "twice" }),
            json!({ "id": "stop", "name": "x" }),
            json!({ "id": "e", "name": "stop" }),
            json!({ "id": "same", "name": "same" }),
        ];
        assert_eq!(one(kind, "guard", &items).unwrap(), Some("b"));
        assert_eq!(one(kind, "gua", &items).unwrap(), None);
        assert_eq!(one(kind, "a", &items).unwrap(), Some("a"));
        assert_eq!(one(kind, "same", &items).unwrap(), Some("same"));
        for word in ["twice", "stop"] {
            let failure = one(kind, word, &items).unwrap_err();
            assert_eq!(
                (failure.exit, failure.lines.len()),
                (Exit::Usage, 3),
                "{failure:?}"
            );
        }
        assert!(missed(kind, "gaurd", &items).contains("did you mean "));
    }
}
