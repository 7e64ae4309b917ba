//! What clients do with each answer of a hook, and with a hook that fails: Claude Code, Codex and Gemini CLI of the pinned versions, a model that
//! is a script, and a hook that answers what `crates/hooks/measured/forms.json` says.
//!
//! ```text
//! forms.json ──► the client runs once for each ──► one word ──► CLIENT_VERSION.json, which is committed
//!                before a tool    ran, stopped
//!                after a tool     what the model was shown: result, reason, both, neither
//!                before a prompt  asked, not asked
//! ```
//!
//! A version that behaves otherwise than what is kept of it fails by its name, and so does a version of which nothing is kept, until `--record`
//! keeps it. What the product relies on stands in the forms and has to hold for every version: nothing of a version for which it does not is kept.
//! Tests of the crate `hooks` read the same files: each answer that it gives is a form that every version was seen to obey.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Scene;
use super::hooks::{called, program, put_place};
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

const CLIENTS: [(&str, &str); 3] = [
    ("claude-code", "Claude Code"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
];
/// What the hook says why it refuses.
const REASON: &str = "why-it-is-refused";
/// What the tool brings; its command does not spell it.
const RESULT: &str = "result-42-of-the-tool";
const PROMPT: &str = "Tidy up, please.";
/// How long the client waits for its hook. Units: seconds.
const WAITS: u32 = 3;

/// One way for a hook to answer or to fail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Form {
    moment: String,
    name: String,
    /// Of which clients it is asked.
    clients: Vec<String>,
    /// What the product relies on.
    relied: Option<String>,
    /// An object, or a text as it is.
    #[serde(default)]
    stdout: Value,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    exit: u8,
    /// A command line in the place of an answer.
    line: Option<String>,
    /// Whether the client is told to refuse where the hook fails, by a switch of its own.
    #[serde(default)]
    on_failure: bool,
}

/// What a version did, by moments and forms.
type Words = BTreeMap<String, BTreeMap<String, String>>;

/// What is kept of a version.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kept {
    client: String,
    version: String,
    /// The day, as YYYY-MM-DD.
    date: String,
    did: Words,
}

fn folder() -> PathBuf {
    process::root().join("crates/hooks/measured")
}

fn file(client: &str, version: &str) -> PathBuf {
    folder().join(format!("{}_{version}.json", client.replace('-', "_")))
}

pub fn run(scene: &Scene<'_>, record: bool) -> Outcome {
    let path = folder().join("forms.json");
    let text = std::fs::read_to_string(&path).context(path.display())?;
    let forms: Vec<Form> = serde_json::from_str(&text).context(path.display())?;
    let mut wrong = Vec::new();
    for (client, name) in CLIENTS {
        let version = scene.tools.version_of(client)?;
        println!("    {name} {version}");
        let found = Kept {
            client: client.to_owned(),
            version,
            date: clock::today(),
            did: asked(scene, client, &forms)?,
        };
        let path = file(client, &found.version);
        let kept = match std::fs::read_to_string(&path) {
            Ok(text) => Some(serde_json::from_str::<Kept>(&text).context(path.display())?),
            Err(_) => None,
        };
        let weak = unreliable(name, &found, &forms);
        let keeps = record && weak.is_empty();
        if keeps {
            let text = serde_json::to_string_pretty(&found).context("cannot write what a client did")? + "\n";
            std::fs::write(&path, text).context(path.display())?;
            println!("      kept in {}", path.display());
        }
        wrong.extend(weak);
        if !keeps {
            wrong.extend(changed(name, &found, kept.as_ref()));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(wrong.join("\n  ")))
}

/// Lets a client meet each form of its own.
fn asked(scene: &Scene<'_>, client: &str, forms: &[Form]) -> Outcome<Words> {
    let mut words = Words::new();
    let of_client = |form: &&Form| form.clients.iter().any(|one| one == client);
    for (number, form) in forms.iter().filter(of_client).enumerate() {
        let place = scene.folder.join(format!("{client}-answers-{number}"));
        let word =
            tried(scene, client, form, &place).context(format_args!("{}: {}", form.moment, form.name))?;
        println!("      {}, {}: {word}", form.moment, form.name);
        let of_moment = words.entry(form.moment.clone()).or_default();
        if of_moment.insert(form.name.clone(), word.to_owned()).is_some() {
            return Err(Failure::new(format!(
                "two forms of {client} are called {}",
                form.name
            )));
        }
    }
    Ok(words)
}

/// Runs a client once, and says what it did.
fn tried(scene: &Scene<'_>, client: &str, form: &Form, place: &Path) -> Outcome<&'static str> {
    let victim = put_place(place)?;
    // Codex refuses `rm -f` of its own accord.
    let remove = if client == "codex" { "rm -r" } else { "rm -rf" };
    let said = called(&json!({
        "client": client, "program": program(scene, client), "place": place, "victim": victim,
        "command": format!("{remove} {}; printf 'result-%s-of-the-tool' 42", victim.display()),
        "looks_for": [RESULT, REASON, PROMPT],
        "hook": { "moment": form.moment, "line": form.line(), "seconds": WAITS, "on_failure": form.on_failure },
    }))?;
    word(form, &said)
}

/// Returns what the client did, in one word.
fn word(form: &Form, said: &Value) -> Outcome<&'static str> {
    let shown = said["shown"]
        .as_array()
        .context(format_args!("no answer in {said}"))?;
    let is_shown = |text: &str| shown.iter().any(|one| one == text);
    Ok(match (form.moment.as_str(), is_shown(RESULT), is_shown(REASON)) {
        ("pre_tool", ..) if said["ran"] == true => "ran",
        // A client that did not come so far stopped nothing.
        ("pre_tool", ..) if is_shown(PROMPT) => "stopped",
        ("prompt", ..) if is_shown(PROMPT) => "asked",
        ("prompt", ..) => "not asked",
        ("post_tool", ..) if said["ran"] != true => {
            return Err(Failure::new(format!("the tool did not run: {said}")));
        }
        ("post_tool", true, true) => "both",
        ("post_tool", true, false) => "result",
        ("post_tool", false, true) => "reason",
        ("post_tool", false, false) => "neither",
        _ => return Err(Failure::new(format!("the client did nothing: {said}"))),
    })
}

impl Form {
    /// Returns the command line that answers so.
    fn line(&self) -> String {
        if let Some(line) = &self.line {
            return line.clone();
        }
        let stdout = match &self.stdout {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            object => object.to_string(),
        };
        format!(
            "cat >/dev/null; printf %s {}; printf %s {} >&2; exit {}",
            quoted(&stdout),
            quoted(&self.stderr),
            self.exit
        )
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Says what a version does not do that the product relies on.
fn unreliable(name: &str, found: &Kept, forms: &[Form]) -> Vec<String> {
    let relied = forms.iter().filter(|form| form.clients.contains(&found.client));
    let weak = relied.filter_map(|form| {
        let relied = form.relied.as_ref()?;
        let did = found
            .did
            .get(&form.moment)
            .and_then(|words| words.get(&form.name));
        (did != Some(relied)).then(|| {
            format!(
                "{name} {} does not do what is relied on: {}, {}: {}, and it has to be: {relied}",
                found.version,
                form.moment,
                form.name,
                did.map_or("nothing", String::as_str)
            )
        })
    });
    weak.collect()
}

/// Says what a version does otherwise than what is kept of it.
fn changed(name: &str, found: &Kept, kept: Option<&Kept>) -> Vec<String> {
    let version = &found.version;
    let Some(kept) = kept else {
        return vec![format!(
            "nothing is kept of {name} {version}; look at what it does above, and keep it: cargo xtask clients hook-answers --record"
        )];
    };
    let mut places: Vec<(&String, &String)> = Vec::new();
    for words in [&kept.did, &found.did] {
        places.extend(
            words
                .iter()
                .flat_map(|(moment, words)| words.keys().map(move |form| (moment, form))),
        );
    }
    places.sort_unstable();
    places.dedup();
    let of = |words: &Words, (moment, form): (&String, &String)| {
        let word = words.get(moment).and_then(|words| words.get(form));
        word.map_or_else(|| "nothing".to_owned(), Clone::clone)
    };
    let other = places.into_iter().filter_map(|place| {
        let (before, now) = (of(&kept.did, place), of(&found.did, place));
        (before != now).then(|| {
            format!(
                "{name} {version} behaves otherwise than it was seen to on {}: {}, {}: {now}, and it was: {before}",
                kept.date, place.0, place.1
            )
        })
    });
    other.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(relied: Option<&str>) -> Form {
        Form {
            moment: "pre_tool".into(),
            name: "deny".into(),
            clients: vec!["codex".into()],
            relied: relied.map(str::to_owned),
            stdout: json!({ "a": "it's" }),
            stderr: String::new(),
            exit: 0,
            line: None,
            on_failure: false,
        }
    }

    fn kept(word: &str) -> Kept {
        let of_moment = BTreeMap::from([("deny".to_owned(), word.to_owned())]);
        Kept {
            client: "codex".into(),
            version: "0.170.0".into(),
            date: "2026-11-29".into(),
            did: BTreeMap::from([("pre_tool".to_owned(), of_moment)]),
        }
    }

    #[test]
    fn a_version_that_behaves_otherwise_is_named() {
        assert!(changed("Codex", &kept("ran"), Some(&kept("ran"))).is_empty());
        let other = changed("Codex", &kept("ran"), Some(&kept("stopped")));
        assert_eq!(other.len(), 1);
        assert!(
            other[0].starts_with("Codex 0.170.0 behaves otherwise"),
            "{other:?}"
        );
        let none = changed("Codex", &kept("ran"), None);
        assert!(
            none[0].starts_with("nothing is kept of Codex 0.170.0"),
            "{none:?}"
        );
    }

    #[test]
    fn nothing_is_kept_of_a_version_that_does_not_do_what_is_relied_on() {
        let forms = [form(Some("stopped"))];
        assert!(unreliable("Codex", &kept("stopped"), &forms).is_empty());
        let weak = unreliable("Codex", &kept("ran"), &forms);
        assert!(
            weak[0].contains("Codex 0.170.0 does not do what is relied on"),
            "{weak:?}"
        );
        assert!(unreliable("Codex", &kept("ran"), &[form(None)]).is_empty());
    }

    #[test]
    fn an_answer_is_a_line_of_a_shell() {
        let line = form(None).line();
        assert_eq!(
            line,
            r#"cat >/dev/null; printf %s '{"a":"it'\''s"}'; printf %s '' >&2; exit 0"#
        );
    }

    #[test]
    fn what_a_client_did_is_one_word_and_one_that_did_nothing_is_none() {
        let said = |ran: bool, shown: &[&str]| json!({ "ran": ran, "shown": shown });
        let mut form = form(None);
        assert_eq!(word(&form, &said(true, &[PROMPT])).unwrap(), "ran");
        assert_eq!(word(&form, &said(false, &[PROMPT])).unwrap(), "stopped");
        assert!(word(&form, &said(false, &[])).is_err());
        form.moment = "post_tool".into();
        assert_eq!(word(&form, &said(true, &[REASON])).unwrap(), "reason");
        assert!(word(&form, &said(false, &[PROMPT])).is_err());
        form.moment = "prompt".into();
        assert_eq!(word(&form, &said(false, &[])).unwrap(), "not asked");
    }
}
