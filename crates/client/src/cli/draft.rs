//! From what was said on the command line to a request.

use super::api::{Api, Effect, MetadataPlacement, Operation, Shape};
use super::connection::Place;
use super::consent::Consent;
use super::content;
use super::failure::{Exit, Failure};
use super::flags::{self, FlagTarget};
use super::instant::instant;
use super::names::Names;
use super::server::{Call, Reply};
use super::terminal::Terminal;
use clap::ArgMatches;
use http::{HeaderMap, header};
use provost_words::Timestamp;
use provost_words::url::IN_QUERY;
use provost_words::url::{encoded, fits_path};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// LIMIT: larger than any body that a server takes (D1.10).
const MAX_BODY_BYTES: u64 = 32 << 20;

/// The header that names what an answer is about, where its body does not.
const NAMED: &str = "x-policy-id";

/// A request whose query can still change, from page to page.
#[derive(Clone)]
pub(super) struct Draft {
    path: String,
    query: Vec<(String, String)>,
    call: Call,
    /// What an id with slashes said, for a look at the answer.
    named: Option<String>,
}

impl Draft {
    /// Reads path, query and body from the command line.
    pub(super) fn new(
        operation: &Operation,
        matches: &ArgMatches,
        place: &Place,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let (path, mut query, named) = path_of(operation, matches, place, &Names::default());
        for field in &operation.query {
            if let Some(value) = flags::value(FlagTarget::Query, field, matches)? {
                let text = plain(&value);
                // What is no time of ours is for the server to refuse, as ever.
                let at = field
                    .is_time()
                    .then(|| instant(&text, terminal.clock.now()).ok())
                    .flatten();
                query.push((field.name(), at.map_or(text, Timestamp::to_rfc3339)));
            }
        }
        let mut headers = HeaderMap::new();
        let body = match &operation.body {
            Some(content) if !content.media_types.is_empty() => {
                let (media_type, bytes) = content::read(content, matches, terminal)?;
                headers.insert(header::CONTENT_TYPE, media_type);
                Some(bytes)
            }
            Some(_) => Some(body(operation, matches, terminal)?.to_string().into()),
            None => None,
        };
        let call = Call {
            method: operation.method.clone(),
            target: String::new(),
            headers,
            body,
            is_download: matches!(operation.answer, Shape::Bytes | Shape::Lines),
        };
        Ok(Self {
            path,
            query,
            call,
            named,
        })
    }

    /// Puts the ids that names stand for into the path, the query and the body.
    pub(super) fn name(&mut self, operation: &Operation, matches: &ArgMatches, place: &Place, names: &Names) {
        for field in &operation.query {
            if let Some(id) = names.of_flag(FlagTarget::Query, field) {
                self.set_query(&field.name(), id.to_owned());
            }
        }
        for field in operation.body.iter().flat_map(|body| &body.fields) {
            let Some(id) = names.of_flag(FlagTarget::Body, field) else {
                continue;
            };
            let body = self.call.body.as_deref().map(serde_json::from_slice::<Value>);
            if let Some(Ok(mut body)) = body
                && insert(&mut body, &field.path, id.into()).is_some()
            {
                self.call.body = Some(body.to_string().into());
            }
        }
        let (path, query, about) = path_of(operation, matches, place, names);
        if let Some(slashed) = &operation.slashed {
            self.query.retain(|(known, _)| known != slashed);
        }
        self.query.splice(0..0, query);
        (self.path, self.named) = (path, about);
    }

    /// Looks whether the answer is about what was asked for: a path that was rewritten on its way names something else.
    ///
    /// Errors: a fault of what stands between, with what the server did.
    pub(super) fn must_be_about(&self, reply: &Reply) -> Result<(), Failure> {
        let Some(asked) = &self.named else {
            return Ok(());
        };
        let said = reply.headers.get(NAMED).and_then(|id| id.to_str().ok());
        let answered = said.map(str::to_owned).or_else(|| {
            let answer: Value = serde_json::from_slice(&reply.body).ok()?;
            answer.pointer("/item/id")?.as_str().map(str::to_owned)
        });
        match answered {
            Some(answered) if answered != *asked => {
                let line = format!("the server answered for {answered}, and {asked} was asked for");
                let failure = Failure::new(Exit::ServerFault, line);
                Err(failure.and("something between here and the server rewrites paths; look at what became of the other one"))
            }
            _ => Ok(()),
        }
    }

    /// Adds the mutation metadata where the operation takes it.
    pub(super) fn consent(&mut self, operation: &Operation, consent: &Consent) -> Result<(), Failure> {
        let Effect::Write { metadata, .. } = operation.kind else {
            return Ok(());
        };
        if metadata != MetadataPlacement::Body {
            return consent.add_to_headers(&mut self.call.headers);
        }
        self.call.body = Some(consent.add_to_body(self.call.body.as_deref())?);
        Ok(())
    }

    /// Returns a query parameter.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Sets a query parameter.
    pub(super) fn set_query(&mut self, name: &str, value: String) {
        self.query.retain(|(known, _)| known != name);
        self.query.push((name.to_owned(), value));
    }

    /// Returns the request as it stands.
    pub(super) fn call(&self) -> Call {
        Call {
            target: target(&self.path, &self.query),
            ..self.call.clone()
        }
    }
}

/// Returns the path, what of it stands in the query, and the id that the answer must be about.
fn path_of(
    operation: &Operation,
    matches: &ArgMatches,
    place: &Place,
    names: &Names,
) -> (String, Vec<(String, String)>, Option<String>) {
    let mut query = Vec::new();
    let mut about = None;
    let mut path = operation
        .path
        .replace("{organizationId}", &encoded(&place.organization).to_string());
    for field in &operation.path_parameters {
        let word = matches
            .get_one::<String>(&FlagTarget::Path.id(field))
            .map_or("", String::as_str);
        let name = field.name();
        let value = names.id(&name, word);
        let mut shown = value;
        if operation.slashed.as_ref() == Some(&name) {
            about = Some(value.to_owned());
            if !fits_path(value) {
                // Something between here and the server would make another id of it.
                query.push((name.clone(), value.to_owned()));
                shown = IN_QUERY;
            }
        }
        path = path.replace(&format!("{{{name}}}"), &encoded(shown).to_string());
    }
    (path, query, about)
}

/// Returns a path with its query behind it.
pub(super) fn target(path: &str, query: &[(String, String)]) -> String {
    let mut target = path.to_owned();
    for (place, (name, value)) in query.iter().enumerate() {
        let separator = if place == 0 { '?' } else { '&' };
        let _ = write!(target, "{separator}{}={}", encoded(name), encoded(value));
    }
    target
}

/// Returns the body that the flags of an operation's command say.
///
/// Errors: usage, when there is no such operation or a flag cannot be read.
pub fn body_of(
    api: &Api,
    (group, verb): (&str, &str),
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<Value, Failure> {
    let operation = api.find(group, verb);
    let operation = operation.ok_or_else(|| Failure::usage(format!("there is no command {group} {verb}")))?;
    body(operation, matches, terminal)
}

fn body(operation: &Operation, matches: &ArgMatches, terminal: &Terminal) -> Result<Value, Failure> {
    let mut body = whole(operation, matches, terminal)?;
    for field in operation.body.iter().flat_map(|body| &body.fields) {
        let is_cleared = matches
            .try_get_one::<bool>(&flags::clear_id(field))
            .ok()
            .flatten()
            == Some(&true);
        let value = if is_cleared {
            Some(Value::Null)
        } else {
            flags::value(FlagTarget::Body, field, matches)?
        };
        if let Some(value) = value {
            insert(&mut body, &field.path, value)
                .ok_or_else(|| Failure::usage(format!("--body has no place for {}", field.name())))?;
        }
    }
    Ok(body)
}

fn whole(operation: &Operation, matches: &ArgMatches, terminal: &Terminal) -> Result<Value, Failure> {
    let is_whole = operation.body.as_ref().is_some_and(|body| body.whole);
    let said = if is_whole {
        matches.get_one::<String>("global.body")
    } else {
        None
    };
    let Some(said) = said else {
        return Ok(Value::Object(Map::new()));
    };
    let (from, bytes) = if said.starts_with(['{', '[']) {
        ("--body".to_owned(), said.clone().into_bytes())
    } else if said == "-" {
        let read = terminal.read_input(MAX_BODY_BYTES);
        (
            "standard input".into(),
            read.map_err(|error| Failure::usage(error.to_string()))?,
        )
    } else {
        let read = std::fs::read(said);
        (
            said.clone(),
            read.map_err(|error| Failure::usage(format!("cannot read {said}: {error}")))?,
        )
    };
    serde_json::from_slice(&bytes).map_err(|error| Failure::usage(format!("{from} is not JSON: {error}")))
}

/// Puts a value behind the names of the objects around it, which are made when they are missing.
fn insert(body: &mut Value, path: &[String], value: Value) -> Option<()> {
    let (name, outer) = path.split_last()?;
    let mut object = body.as_object_mut()?;
    for name in outer {
        object = object
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()?;
    }
    object.insert(name.clone(), value);
    Some(())
}

/// A query says a list as its items between commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
