//! Text that breaks lines, in every string of every body: it is refused, or kept whole on one line (R37).
//!
//! The strings are those of the schemas, optional ones included, reason and key too. What is accepted is looked for
//! in the export of the audit log, in the events and in the log.

use super::run;
use crate::mechanisms::idempotency::{RepeatableRequest, fixture, writes};
use crate::support::{App, fresh_key, with_trio};
use provost_kernel::expose::openapi;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// How deep a schema is looked into.
const DEPTH: usize = 7;

fn texts() -> Vec<(&'static str, String)> {
    let mut texts: Vec<(&'static str, String)> = [
        ("CR", "a\rb"),
        ("LF", "a\nb"),
        ("ESC", "a\u{1b}[2Jb"),
        ("U+2028", "a\u{2028}b"),
        ("right-to-left", "a\u{202e}b"),
        ("NUL", "a\0b"),
    ]
    .map(|(name, text)| (name, text.to_owned()))
    .to_vec();
    texts.push(("64 KiB", "x".repeat(65_536)));
    texts
}

/// The places of strings in what a schema describes, as JSON pointers.
fn strings(root: &Value, schema: &Value, at: &str, depth: usize, found: &mut BTreeSet<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(place) => root.pointer(place.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    if depth == 0 {
        return;
    }
    let is_text = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
        kind => kind == "string",
    };
    if is_text || schema["enum"].is_array() {
        found.insert(at.to_owned());
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let name = name.replace('~', "~0").replace('/', "~1");
        strings(root, member, &format!("{at}/{name}"), depth - 1, found);
    }
    if schema["items"].is_object() {
        strings(root, &schema["items"], &format!("{at}/0"), depth - 1, found);
    }
    if schema["additionalProperties"].is_object() {
        strings(
            root,
            &schema["additionalProperties"],
            &format!("{at}/key"),
            depth - 1,
            found,
        );
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        for way in schema[word].as_array().into_iter().flatten() {
            strings(root, way, at, depth - 1, found);
        }
    }
}

/// Puts a value at a place of a body and makes what leads there.
fn put(body: &mut Value, place: &str, value: Value) {
    let mut node = body;
    for part in place[1..].split('/') {
        if part == "0" && !node.is_object() {
            if node.as_array().is_none_or(Vec::is_empty) {
                *node = json!([null]);
            }
            node = &mut node[0];
        } else {
            if !node.is_object() {
                *node = json!({});
            }
            node = &mut node[part.replace("~1", "/").replace("~0", "~")];
        }
    }
    *node = value;
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| name == text || holds(member, text)),
        _ => false,
    }
}

#[test]
fn no_text_breaks_a_line() {
    Log::begin().check();
    run::each("strings", &run::roomy(), |app: Arc<App>| async move {
        let document = openapi::document(&app.kernel.registry);
        let bodies = bodies(&document);
        let (mut places, mut refused, mut kept) = (0_u64, 0_u64, 0_u64);
        let mut lines = Lines::default();
        for operation in writes(&app) {
            let Some(schema) = bodies.get(operation) else {
                continue;
            };
            let mut found = BTreeSet::new();
            strings(&document, schema, "", DEPTH, &mut found);
            found.retain(|place| !place.is_empty());
            let mut wanted = fixture(&app, operation).await;
            if wanted.content.is_some() {
                continue;
            }
            for place in &found {
                places += 1;
                for (name, text) in texts() {
                    let (status, body) = send(&app, &wanted, place, &text).await;
                    assert!(
                        !body.bytes().any(|byte| byte < 0x20),
                        "{operation} {place} {name}: a raw control character in {body:?}"
                    );
                    if status < 300 {
                        kept += 1;
                        lines.find(&app, operation, place, name, &text).await;
                        // What was done once may not be to be done again.
                        wanted = fixture(&app, operation).await;
                    } else {
                        assert!(
                            (400..500).contains(&status),
                            "{operation} {place} {name}: {status} {body}"
                        );
                        refused += 1;
                    }
                }
            }
        }
        lines.whole_log(&app).await;
        assert!(kept > 0 && refused > kept, "{kept} kept, {refused} refused");
        json!({ "strings": places, "refused": refused, "kept": kept, "exportLines": lines.seen, "inTheLog": lines.found })
    });
}

fn bodies(document: &Value) -> BTreeMap<String, Value> {
    let mut bodies = BTreeMap::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let schema = operation.pointer("/requestBody/content/application~1json/schema");
            if let (Some(id), Some(schema)) = (operation["operationId"].as_str(), schema) {
                bodies.insert(id.to_owned(), schema.clone());
            }
        }
    }
    bodies
}

async fn send(app: &App, wanted: &RepeatableRequest, place: &str, text: &str) -> (u16, String) {
    let mut body = if wanted.body.is_null() {
        json!({})
    } else {
        wanted.body.clone()
    };
    if wanted.in_headers {
        put(&mut body, place, text.into());
        let request = RepeatableRequest {
            body,
            key: fresh_key(),
            ..wanted.clone()
        };
        let reply = request.send(app).await;
        return (reply.status.as_u16(), reply.text());
    }
    body = with_trio(body, &fresh_key());
    put(&mut body, place, text.into());
    let reply = app.request(wanted.method, &wanted.path).json(body).send().await;
    (reply.status.as_u16(), reply.text())
}

/// The export, read as far as it goes.
#[derive(Default)]
struct Lines {
    after: u64,
    seen: u64,
    found: u64,
}

impl Lines {
    /// Reads what is new: each line is an entry, and the one of this operation holds the text whole if it holds it.
    async fn find(&mut self, app: &App, operation: &str, place: &str, name: &str, text: &str) {
        app.settle().await;
        let entries = self.more(app).await;
        let own = entries.iter().filter(|entry| entry["action"] == operation);
        let kept = own.filter(|entry| holds(entry, text)).count();
        self.found += kept as u64;
        assert!(
            kept > 0 || place != "/reason",
            "{operation} {name}: the reason stands in no entry"
        );
    }

    async fn more(&mut self, app: &App) -> Vec<Value> {
        let mut entries = Vec::new();
        loop {
            let path = format!("/audit/export?after={}&limit=1000", self.after);
            let page = app.get(&path).await;
            assert_eq!(page.status.as_u16(), 200, "{}", page.text());
            let text = page.text();
            assert!(text.ends_with('\n') || text.is_empty());
            for line in text.split_terminator('\n') {
                let entry: Value =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert!(!line.bytes().any(|byte| byte < 0x20), "{line:?}");
                self.after = entry["sequence"]
                    .as_u64()
                    .or_else(|| entry["seq"].as_u64())
                    .unwrap();
                self.seen += 1;
                entries.push(entry);
            }
            if page.header("x-provost-next-after").is_empty() {
                return entries;
            }
        }
    }

    /// The export and the store hold the same entries, one a line.
    async fn whole_log(&mut self, app: &App) {
        self.more(app).await;
        let stored = app.entries(&app.organization, 0).await;
        // The last export is an entry itself.
        assert!(stored.len() as u64 >= self.seen && self.seen + 1 >= stored.len() as u64);
    }
}

/// What the server logs, in the form of its log for machines.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> Self {
        let log = Self(Arc::default());
        let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
        let sink = log.clone();
        let lines = lines.json().flatten_event(true).with_span_list(false);
        let lines = lines.with_writer(move || sink.clone()).finish();
        tracing::subscriber::with_default(lines, || {
            for (name, text) in texts() {
                tracing::warn!(cause = %text, name, "{text}");
            }
        });
        log
    }

    /// Every line is an event, and holds what was said.
    fn check(&self) {
        let bytes = self.0.lock().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let said: Vec<(Value, Value)> = lines
            .iter()
            .map(|line| (line["cause"].clone(), line["message"].clone()))
            .collect();
        let expected: Vec<(Value, Value)> = texts()
            .into_iter()
            .map(|(_, text)| (json!(text), json!(text)))
            .collect();
        assert_eq!(said, expected);
    }
}
