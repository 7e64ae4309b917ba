//! Each answer is a form that every measured version of its client was seen to obey: `cargo xtask clients hook-answers` asks the clients, and
//! writes the files that are read here.

use super::{MOMENTS, decision, event, obeyed, question};
use crate::registration::UNDECIDED;
use crate::*;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What a hook says why it refuses, in the forms.
const REASON: &str = "why-it-is-refused";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Form {
    moment: String,
    name: String,
    clients: Vec<String>,
    relied: Option<String>,
    #[serde(default)]
    stdout: Value,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    exit: u8,
    line: Option<String>,
    #[serde(default)]
    on_failure: bool,
}

#[derive(Deserialize)]
struct Kept {
    client: String,
    version: String,
    did: BTreeMap<String, BTreeMap<String, String>>,
}

/// Returns the forms, and what is kept of each version.
fn measured() -> (Vec<Form>, Vec<Kept>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("measured");
    let mut kept = Vec::new();
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().is_some_and(|name| name != "forms.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            kept.push(
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
            );
        }
    }
    let forms = std::fs::read_to_string(folder.join("forms.json")).unwrap();
    (serde_json::from_str(&forms).unwrap(), kept)
}

/// Puts one word in the place of every reason that a hook gives.
fn without_reasons(mut said: Value) -> Value {
    let reasons = [
        "/systemMessage",
        "/reason",
        "/stopReason",
        "/hookSpecificOutput/permissionDecisionReason",
        "/hookSpecificOutput/updatedToolOutput/stdout",
        "/hookSpecificOutput/updatedToolOutput/0/text",
    ];
    for pointer in reasons {
        if let Some(reason) = said.pointer_mut(pointer) {
            assert!(reason.is_string());
            *reason = REASON.into();
        }
    }
    said
}

fn word(moment: Moment) -> &'static str {
    match moment {
        Moment::Prompt => "prompt",
        Moment::PreTool => "pre_tool",
        Moment::PostTool => "post_tool",
    }
}

/// What the clients of an answer have to do, by what it means.
fn due(moment: Moment, obeyed: &str) -> &'static [&'static str] {
    match (moment, obeyed) {
        (Moment::PreTool, "passed" | "told") => &["ran"],
        (Moment::PreTool, _) => &["stopped"],
        (Moment::PostTool, "passed" | "told") => &["result"],
        // The result is not shown; the reason may be.
        (Moment::PostTool, _) => &["reason", "neither"],
        (Moment::Prompt, "passed" | "told") => &["asked"],
        (Moment::Prompt, _) => &["not asked"],
    }
}

/// Returns the form that an answer has.
fn form_of<'a>(forms: &'a [Form], client: Client, moment: Moment, said: &Answer) -> &'a Form {
    let stdout: Option<Value> = serde_json::from_slice(&said.stdout).ok().map(without_reasons);
    let mut found = forms.iter().filter(|form| {
        let is_of = form.moment == word(moment) && form.clients.iter().any(|one| one == client.word());
        let is_alike = match &stdout {
            Some(stdout) => form.stdout == *stdout,
            None => form.stdout.is_null() || form.stdout == "",
        };
        let is_plain = form.line.is_none() && !form.on_failure;
        is_of
            && is_plain
            && is_alike
            && form.exit == said.exit
            && form.stderr.is_empty() == said.stderr.is_empty()
    });
    let form = found.next();
    form.unwrap_or_else(|| {
        panic!(
            "nobody measured what {} does at {moment:?} with {said:?}",
            client.word()
        )
    })
}

/// Proves HK-2, HK-3, HK-9.
#[test]
fn each_answer_is_a_form_that_every_measured_version_obeys() {
    let (forms, kept) = measured();
    let mut compared = 0;
    for client in Client::ALL {
        for moment in MOMENTS {
            let question = question(client, &event(client, moment));
            let decided = Action::ALL
                .into_iter()
                .flat_map(|action| [(action, false), (action, true)]);
            let mut answers: Vec<Answer> = decided
                .map(|(action, own)| answer(&question, Mode::Enforce, &decision(action, own)))
                .collect();
            answers.push(undecided(Some(&question), Mode::Enforce, "no server"));
            answers.push(undecided(Some(&question), Mode::Monitor, "no server"));
            for said in answers {
                let form = form_of(&forms, client, moment, &said);
                let due = due(moment, obeyed(client, moment, &said));
                let relied = form.relied.as_deref().unwrap_or_default();
                assert!(due.contains(&relied), "{}, {}: {relied}", form.moment, form.name);
                let of_client = kept.iter().filter(|kept| kept.client == client.word());
                for kept in of_client {
                    let did = &kept.did[&form.moment][&form.name];
                    assert_eq!(did, relied, "{} {}: {}", client.name(), kept.version, form.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 3 * 3 * 16, "{compared}");
}

/// Proves HK-9.
#[test]
fn every_measured_version_does_what_is_relied_on_and_knows_every_form() {
    let (forms, kept) = measured();
    for client in Client::ALL {
        assert!(kept.iter().any(|kept| kept.client == client.word()), "{client:?}");
    }
    for kept in kept {
        let of_client = |form: &&Form| form.clients.contains(&kept.client);
        let mut count = 0;
        for form in forms.iter().filter(of_client) {
            let did = kept.did.get(&form.moment).and_then(|words| words.get(&form.name));
            let place = format!("{} {}: {}, {}", kept.client, kept.version, form.moment, form.name);
            assert!(did.is_some(), "{place}");
            if form.relied.is_some() {
                assert_eq!(did, form.relied.as_ref(), "{place}");
            }
            count += 1;
        }
        assert_eq!(
            kept.did.values().map(BTreeMap::len).sum::<usize>(),
            count,
            "{}",
            kept.client
        );
    }
}

/// Proves HK-9.
#[test]
fn the_end_of_a_registered_line_is_the_one_that_was_measured() {
    let (forms, _) = measured();
    let tail = |line: &str| line.split_once("||").map(|(_, tail)| tail.to_owned());
    for client in Client::ALL {
        let line = command_line("/nowhere/provost", client, Mode::Enforce, &[]);
        let written = tail(&line)
            .unwrap()
            .replace(&format!("provost: {UNDECIDED}"), REASON);
        let of_client = |form: &&Form| form.clients.iter().any(|one| one == client.word());
        let measured: Vec<String> = forms
            .iter()
            .filter(of_client)
            .filter_map(|form| tail(form.line.as_deref()?))
            .collect();
        assert!(
            measured.len() >= 3 && measured.iter().all(|tail| *tail == written),
            "{measured:?} {written}"
        );
    }
}
