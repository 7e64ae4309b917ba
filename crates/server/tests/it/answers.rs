//! A good answer of every operation, for those who read the document of the API: recorded from the running application.
//!
//! What changes from run to run or must not be shown has a placeholder in its place that looks like it: ids, secrets, digests,
//! cursors and signatures. Long lists keep their first items. The file is `openapi/examples.json`; the document shows each answer
//! beside its schema, and a test compares the two. Answers that are schemas are left out.
//!
//! The program holds the file from its build: where the answers change, `UPDATE_GOLDENS=1` writes this file in a first run and the
//! document in a second.

use crate::samples::{self, assert_golden};
use crate::support::{App, once_of};
use provost_kernel::db::Engine;
use provost_kernel::operation::{Entry, Kind};
use provost_server::areas::ALL;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many items of a list an example shows.
const SHOWN_ITEMS: usize = 2;
/// How the names begin that the samples make up.
const FRESH: &str = "test-key-of-some-length-";
/// Letters and digits of the base of ids, without those that look alike.
const OF_IDS: &str = "0123456789abcdefghjkmnpqrstvwxyz";
/// The digits of an id behind its kind.
const ID_DIGITS: usize = 26;
/// A text without blanks that is this long is a digest, a cursor, a key or a signature.
const OPAQUE_FROM: usize = 40;

#[test]
fn every_operation_has_an_answer_as_its_example() {
    once_of(&ALL, "answers", |app: Arc<App>| async move {
        let recorded = record(&app).await;
        // The same whichever engine it is, apart from what capabilities say of it.
        if app.location.engine() == Engine::Sqlite {
            let text = serde_json::to_string_pretty(&recorded).unwrap() + "\n";
            assert_golden("openapi/examples.json", &text);
        }
    });
}

/// Calls every operation that answers with JSON; lists after whatever puts something into them.
async fn record(app: &App) -> Map<String, Value> {
    let is_shown = |entry: &&Entry| entry.meta.produces == "application/json" && entry.meta.status != 204;
    let (reads, writes): (Vec<_>, Vec<_>) = app
        .kernel
        .registry
        .entries()
        .iter()
        .filter(is_shown)
        .partition(|entry| entry.meta.kind == Kind::Read);
    let mut recorded = BTreeMap::new();
    for entry in writes.into_iter().chain(reads) {
        let target = samples::fresh_target_of(app, entry).await;
        if entry.meta.toolset == "audit" && entry.meta.kind == Kind::Read {
            samples::checkpoint(app).await;
        }
        let reply = samples::call(app, entry, &target).send().await;
        assert!(reply.status.is_success(), "{}: {}", entry.meta.id, reply.text());
        let mut answer = reply.json.clone();
        // Programs that resolve the references of a document follow those in examples too.
        if is_schema(&answer) {
            continue;
        }
        Placeholders::default().of(&mut answer);
        recorded.insert(entry.meta.id.to_owned(), answer);
    }
    recorded.into_iter().collect()
}

/// Returns whether a value is or contains a schema.
fn is_schema(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_schema),
        Value::Object(members) => {
            members.contains_key("$ref") || members.contains_key("$schema") || members.values().any(is_schema)
        }
        _ => false,
    }
}

/// What stands for texts that an example does not show; the same text has the same placeholder within an answer.
#[derive(Default)]
struct Placeholders {
    known: BTreeMap<String, String>,
}

impl Placeholders {
    fn of(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => {
                items.truncate(SHOWN_ITEMS);
                for item in items {
                    self.of(item);
                }
            }
            Value::Object(members) => {
                for member in members.values_mut() {
                    self.of(member);
                }
            }
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    /// Replaces what is Base64 with padding whole, because a slash in it would end a word; then each word that is an id or opaque.
    fn text(&mut self, text: &str) -> String {
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        let mut replaced = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (end, is_run) = match rest.find(|c| !is_base64(c)) {
                Some(0) => (first.len_utf8(), false),
                end => (end.unwrap_or(rest.len()), true),
            };
            let (run, after) = rest.split_at(end);
            if is_run && run.ends_with('=') && run.len() >= OPAQUE_FROM {
                replaced += &filled(run);
            } else {
                // What is no run yet may be part of a word that has other characters.
                replaced += run;
            }
            rest = after;
        }
        self.words(&replaced)
    }

    /// Replaces each word of a text that is an id or opaque.
    fn words(&mut self, text: &str) -> String {
        let is_of_a_word = |c: char| c.is_ascii_alphanumeric() || "_-.=+".contains(c);
        let mut replaced = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| !is_of_a_word(c)).unwrap_or(rest.len());
            if end == 0 {
                replaced.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let (word, after) = rest.split_at(end);
            replaced += &self.word(word);
            rest = after;
        }
        replaced
    }

    fn word(&mut self, word: &str) -> String {
        if let Some(known) = self.known.get(word) {
            return known.clone();
        }
        let number = self.known.len() + 1;
        let placeholder = placeholder(word, number);
        if placeholder != word {
            self.known.insert(word.to_owned(), placeholder.clone());
        }
        placeholder
    }
}

/// Returns as many characters that say that they are an example. Only what is at fixed places stays where it is.
fn filled(text: &str) -> String {
    let filling = "Example".chars().cycle();
    let one = |(c, fill)| if ".=".contains(c) { c } else { fill };
    text.chars().zip(filling).map(one).collect()
}

/// Returns what stands for a word: for an id one of its kind, for an opaque one as many characters of the same sort.
fn placeholder(word: &str, number: usize) -> String {
    if word.starts_with(FRESH) {
        return format!("example-{number}");
    }
    if let Some((kind, digits)) = word.rsplit_once('_')
        && digits.len() == ID_DIGITS
        && digits.chars().all(|c| OF_IDS.contains(c))
    {
        return format!("{kind}_01kaf9q2m4x7t8v3c5d6e0g{number:03}");
    }
    // The beginning of a token is shown beside it: both have the same placeholder.
    if let Some((kind, secret)) = word.strip_prefix("prov_").and_then(|rest| rest.split_once('_')) {
        return format!("prov_{kind}_{}", filled(secret));
    }
    let is_hex = word.len() >= 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex {
        return "0123456789abcdef"
            .chars()
            .cycle()
            .skip(number)
            .take(word.len())
            .collect();
    }
    if word.len() >= OPAQUE_FROM {
        return filled(word);
    }
    word.to_owned()
}
