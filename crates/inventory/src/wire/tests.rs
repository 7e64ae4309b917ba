//! A report on its way: what is made of a scan is what a server reads, and what a server keeps of it holds nothing else.

use super::*;
use crate::tests::Folder;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn at(secs: i64) -> Timestamp {
    Timestamp::EPOCH.plus_secs(secs)
}

fn home(name: &str) -> Folder {
    let home = Folder::new(name);
    home.write(
        "home/ada/.claude.json",
        r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "@acme/files@1.2.3", "--root", "/home/ada/secret-plan"],
            "env": {"API_KEY": "sk-ant-REDACTED-FIXTURE-0123456789"}}},
            "projects": {"/home/ada/work/plan": {"mcpServers": {"web": {"url": "https://mcp.acme.example/mcp?token=abc"}}}}}"#,
    );
    home.write(
        "home/ada/.codex/config.toml",
        "[mcp_servers.files]\ncommand = \"uvx\"\nargs = [\"acme-files\"]\n",
    );
    home.write("home/ada/.cursor/mcp.json", "{not json");
    home
}

fn report(home: &Folder, acknowledged: &BTreeMap<(Client, String), String>) -> Report {
    Report::of("scan-1".into(), (at(10), at(11)), &[home.scan()], acknowledged)
}

#[test]
fn a_report_of_a_scan_is_read_as_it_was_made_and_loses_nothing_when_it_is_kept() {
    let home = home("wire-read");
    let (scan, report) = (home.scan(), report(&home, &BTreeMap::new()));
    let text = serde_json::to_string(&report).unwrap();
    let read: Report = serde_json::from_str(&text).unwrap();
    assert_eq!((&read, read.refusal()), (&report, None));
    assert_eq!(scan.sections.len(), report.sections.len());
    for (found, sent) in scan.sections.iter().zip(&report.sections) {
        assert_eq!((found.client, &found.digest), (sent.client, &sent.digest));
        assert_eq!(found.complete, sent.complete);
        assert_eq!(&sent.clone().kept(), sent);
        let (found, sent) = (&found.observations, &sent.observations);
        assert_eq!(
            serde_json::to_value(found).unwrap(),
            serde_json::to_value(sent).unwrap()
        );
    }
    assert!(report.sections.iter().any(|section| !section.complete));
    for value in ["secret-plan", "REDACTED", "/home/ada", "token=abc", "work/plan"] {
        assert!(!text.contains(value), "{value} stands in {text}");
    }
}

#[test]
fn what_a_server_acknowledged_is_named_and_not_sent_again() {
    let home = home("wire-again");
    let first = report(&home, &BTreeMap::new());
    let known: BTreeMap<_, _> = first
        .sections
        .iter()
        .map(|section| ((section.client, section.user.clone()), section.digest.clone()))
        .collect();
    let again = report(&home, &known);
    assert_eq!(
        (again.sections.len(), again.unchanged.len()),
        (0, first.sections.len())
    );
    assert_eq!(again.refusal(), None);
    home.write("home/ada/.codex/config.toml", "");
    assert_eq!(report(&home, &known).sections.len(), 1);
}

#[test]
fn homes_of_one_name_are_one_account_and_what_is_too_long_makes_a_section_incomplete() {
    let (one, two) = (home("wire-one"), home("wire-two"));
    let mut far = two.scan();
    for sighting in far
        .sections
        .iter_mut()
        .flat_map(|section| &mut section.observations)
    {
        if let crate::Observation::McpServer(facts) = &mut sighting.observation {
            facts.key = format!("url:https://acme.example/{}", "a/".repeat(400));
        }
    }
    let report = Report::of("s".into(), (at(1), at(2)), &[one.scan(), far], &BTreeMap::new());
    assert_eq!(report.refusal(), None);
    let codex: Vec<_> = report
        .sections
        .iter()
        .filter(|section| section.client == Client::Codex)
        .collect();
    assert_eq!((codex.len(), codex[0].observations.len()), (1, 1));
    assert_eq!(codex[0].faults[0].fault, Fault::Truncated);
    assert!(!codex[0].complete);
}

fn changed(of: &Report, pointer: &str, to: Value) -> Option<&'static str> {
    let mut value = serde_json::to_value(of).unwrap();
    *value.pointer_mut(pointer).unwrap() = to;
    let read: Report = serde_json::from_value(value).unwrap();
    read.refusal()
}

#[test]
fn what_is_no_report_is_refused_by_name() {
    let home = home("wire-refused");
    let mut good = report(&home, &BTreeMap::new());
    good.counter = Some(1);
    for (pointer, value, sentence) in [
        ("/scanId", json!("a b"), "scanId"),
        ("/startedAt", json!("2030-01-01T00:00:00Z"), "finishedAt"),
        ("/sections/0/user", json!("bob"), ""),
        ("/sections/0/user", json!("a\nb"), "account"),
        ("/sections/0/complete", json!(false), "complete"),
        ("/sections/0/digest", json!("sha256:00"), "digest"),
        ("/sections/1/client", json!("claude_code"), "at most once"),
        (
            "/sections/0/observations/0/place/path",
            json!("/home/ada"),
            "place",
        ),
        (
            "/sections/0/observations/0/key",
            json!("x".repeat(600)),
            "observation",
        ),
        (
            "/sections/0/observations/0/key",
            json!("CMD:hmac:00112233445566778899aabbccddeeff"),
            "observation",
        ),
        ("/sections/0/user", json!("/home/ada"), "account"),
        ("/counter", json!(0), "counter"),
        ("/counter", json!(7), ""),
    ] {
        let refusal = changed(&good, pointer, value.clone());
        match sentence {
            "" => assert_eq!(refusal, None, "{pointer}"),
            sentence => assert!(
                refusal.unwrap().contains(sentence),
                "{pointer} {value}: {refusal:?}"
            ),
        }
    }
    let mut more = serde_json::to_value(&good).unwrap();
    more["sections"][0]["observations"][0]["value"] = json!("x");
    assert!(serde_json::from_value::<Report>(more).is_err());
}

#[test]
fn what_is_no_known_word_cannot_be_read() {
    let home = home("wire-words");
    let good = serde_json::to_value(report(&home, &BTreeMap::new())).unwrap();
    for member in ["scope", "transport", "shape"] {
        let mut bad = good.clone();
        bad["sections"][0]["observations"][0][member] = json!("canary_project_merger");
        assert!(serde_json::from_value::<Report>(bad).is_err(), "{member}");
    }
}

#[test]
fn a_report_has_a_bound_over_all_its_sections() {
    let home = home("wire-bound");
    let mut report = report(&home, &BTreeMap::new());
    let one = report.sections[0].observations[0].clone();
    for section in &mut report.sections {
        section.observations = vec![one.clone(); MAX_OBSERVATIONS / 2 + 1];
        section.digest = digest(&section.observations, &section.faults);
    }
    assert!(report.refusal().unwrap().contains("2000"));
    // What our side makes fits, and says what it left out.
    let mut scan = home.scan();
    for section in &mut scan.sections {
        if let Some(first) = section.observations.first().cloned() {
            section.observations = vec![first; MAX_OBSERVATIONS / 2 + 1];
        }
    }
    let made = Report::of("s".into(), (at(1), at(2)), &[scan], &BTreeMap::new());
    assert_eq!(made.refusal(), None);
    let count: usize = made
        .sections
        .iter()
        .map(|section| section.observations.len())
        .sum();
    assert_eq!(count, MAX_OBSERVATIONS);
    assert!(
        made.sections
            .iter()
            .any(|section| !section.complete && section.faults[0].fault == Fault::Truncated)
    );
}

#[test]
fn a_path_and_an_assignment_are_no_names() {
    let home = home("wire-names");
    let mut section = report(&home, &BTreeMap::new()).sections.remove(0);
    for sighting in &mut section.observations {
        if let Sighting::McpServer {
            configured_name,
            version,
            env_names,
            header_names,
            ..
        } = sighting
        {
            "/home/ada/merger".clone_into(configured_name);
            *version = Some("my prompt".to_owned());
            *env_names = vec!["PROJECT=merger".to_owned()];
            *header_names = vec!["C:\\merger".to_owned()];
        }
    }
    let text = serde_json::to_string(&section.kept()).unwrap();
    assert!(!text.contains("merger") && !text.contains("prompt"), "{text}");
}

#[test]
fn a_report_makes_nothing_builtin_and_nothing_strong_that_nobody_can_know() {
    let kept_weak = |client: Client, key: &str, transport: Transport| {
        let home = home("wire-builtin");
        let mut section = report(&home, &BTreeMap::new()).sections.remove(0);
        section.client = client;
        let mut one = section.observations.remove(0);
        if let Sighting::McpServer {
            key: of,
            transport: how,
            weak,
            ..
        } = &mut one
        {
            key.clone_into(of);
            (*how, *weak) = (transport, false);
        }
        section.observations = vec![one];
        match section.kept().observations.remove(0) {
            Sighting::McpServer { weak, .. } => weak,
            _ => panic!("it was a server"),
        }
    };
    let developer = "builtin:goose/developer";
    assert!(!kept_weak(Client::Goose, developer, Transport::Builtin));
    assert!(kept_weak(Client::Goose, developer, Transport::Stdio));
    assert!(kept_weak(Client::ClaudeCode, developer, Transport::Builtin));
    assert!(kept_weak(Client::Goose, "builtin:goose/evil", Transport::Builtin));
    assert!(kept_weak(Client::Goose, "npm:files", Transport::Builtin));
    assert!(kept_weak(Client::Codex, "npm:tsx", Transport::Stdio));
    assert!(!kept_weak(Client::Codex, "npm:files", Transport::Stdio));
}

#[test]
fn a_server_keeps_no_value_that_an_agent_wrote_where_a_name_belongs() {
    let home = home("wire-kept");
    let mut section = report(&home, &BTreeMap::new()).sections.remove(0);
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let path = "/home/ada/work/plan/.mcp.json";
    for sighting in &mut section.observations {
        if let Sighting::McpServer {
            place,
            key,
            configured_name,
            version,
            arg_shapes,
            env_names,
            ..
        } = sighting
        {
            path.clone_into(&mut place.class);
            *key = format!("url:https://acme.example/{token}");
            *configured_name = format!("github {token}");
            *version = Some(token.to_owned());
            *arg_shapes = vec![
                format!("--token={token}"),
                "my prompt".into(),
                "--root".into(),
                "<path>".into(),
            ];
            env_names.push(token.to_owned());
        }
    }
    let text = serde_json::to_string(&section.kept()).unwrap();
    for value in [token, path, "my prompt"] {
        assert!(!text.contains(value), "{value} stands in {text}");
    }
    assert!(text.contains("--root") && text.contains("<path>"));
}

#[test]
fn a_server_keeps_no_text_that_is_shown_otherwise_than_it_is_written() {
    let home = home("wire-shown");
    let mut section = report(&home, &BTreeMap::new()).sections.remove(0);
    for sighting in &mut section.observations {
        if let Sighting::McpServer {
            key, configured_name, ..
        } = sighting
        {
            "npm:@acme/\u{202e}selif".clone_into(key);
            "git\u{200b}hub".clone_into(configured_name);
        }
    }
    let text = serde_json::to_string(&section.kept()).unwrap();
    assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text}");
}
