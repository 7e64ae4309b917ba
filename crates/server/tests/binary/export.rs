//! Entries and decisions for another system: oldest first, each once, from where the last run ended.

use crate::harness::{Home, Server, home, homes, post, refuse, succeed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn export(home: &Home, server: &Server, token: &str, words: &[&str]) -> Command {
    let all = [&["export", "--cursor", "cursor", "--lag", "1"], words].concat();
    let mut command = home.command(&all);
    command
        .env("PROVOST_URL", format!("http://127.0.0.1:{}", server.port))
        .env("PROVOST_ORGANIZATION", "default")
        .env("PROVOST_TOKEN", token);
    command
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn seqs(lines: &[Value]) -> Vec<usize> {
    let entries = lines.iter().filter(|line| line["kind"] == "audit");
    entries
        .map(|line| usize::try_from(line["record"]["seq"].as_u64().unwrap()).unwrap())
        .collect()
}

#[test]
fn every_entry_and_every_decision_is_written_once_over_several_runs() {
    for home in homes("export") {
        let server = home.serve(&[]);
        let token = server.token();
        let path = "/api/headless/v1/organizations/default/policies/decisions";
        for number in 0..3 {
            let body = format!(
                r#"{{"events":[{{"occasion":"pre_tool","callId":"call-{number}","attributes":{{"tool.id":"Bash"}}}}]}}"#
            );
            assert_eq!(post(server.port, path, &token, &body).0, 200);
        }
        // A decision is written when it is a second old.
        let mut written = Vec::new();
        let decisions = |written: &[Value]| {
            let found = written.iter().filter(|line| line["kind"] == "decision");
            found
                .map(|line| line["record"]["callId"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        for _ in 0..1_000 {
            written.extend(lines(&succeed(export(&home, &server, &token, &[]))));
            if decisions(&written).len() == 3 {
                break;
            }
        }
        assert_eq!(decisions(&written), ["call-0", "call-1", "call-2"]);
        let before = seqs(&written);
        assert_eq!(before, (1..=before.len()).collect::<Vec<_>>());
        let exports = |lines: &[Value]| {
            let found = lines
                .iter()
                .filter(|line| line["record"]["action"] == "exportHeadlessAuditEvents");
            found.count()
        };
        // A run is an entry itself, which a later one writes: the log keeps such entries a moment after the answer.
        let mut next = Vec::new();
        for _ in 0..1_000 {
            next.extend(lines(&succeed(export(
                &home,
                &server,
                &token,
                &["--what", "audit"],
            ))));
            if exports(&next) > 0 {
                break;
            }
        }
        assert!(exports(&next) > 0, "{next:?}");
        let all: BTreeSet<usize> = before.iter().copied().chain(seqs(&next)).collect();
        assert_eq!(all.len(), before.len() + seqs(&next).len());
        assert_eq!(all.last().copied(), Some(all.len()));
        let mode = std::fs::metadata(home.path("cursor"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_cursor_is_of_one_organization_and_of_one_log() {
    let home = home("export_cursor");
    let server = home.serve(&[]);
    let token = server.token();
    succeed(export(&home, &server, &token, &["--what", "audit"]));
    let mut other = export(&home, &server, &token, &["--what", "audit"]);
    other.env("PROVOST_ORGANIZATION", "another");
    let (code, said) = refuse(other);
    assert!(
        code == 2 && said.contains("is of default at") && said.contains("name another file"),
        "{said}"
    );
    // As it would be after the store went back: the log is not the one that was exported.
    let cursor = home.path("cursor");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&cursor).unwrap()).unwrap();
    kept["auditHash"] = "00".repeat(32).into();
    std::fs::write(&cursor, kept.to_string()).unwrap();
    let (code, said) = refuse(export(&home, &server, &token, &["--what", "audit"]));
    assert!(
        code == 5 && said.contains("is not the one that was exported"),
        "{said}"
    );
    std::fs::write(&cursor, "{}").unwrap();
    let (code, said) = refuse(export(&home, &server, &token, &[]));
    assert!(code == 2 && said.contains("is no cursor of an export"), "{said}");
}

#[test]
fn whoever_follows_leaves_one_entry_and_gets_what_comes() {
    let home = home("export_follow");
    let server = home.serve(&[]);
    let token = server.token();
    let out = home.path("followed");
    let mut follow = export(
        &home,
        &server,
        &token,
        &["--what", "audit", "--follow", "--every", "1"],
    );
    let mut following = follow
        .stdout(std::fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    let path = "/api/headless/v1/organizations/default/service-accounts";
    let (mut written, mut names) = (Vec::new(), 0);
    for _ in 0..200 {
        let text = std::fs::read_to_string(&out).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        written = lines(whole);
        let of = |action: &str| {
            written
                .iter()
                .filter(|line| line["record"]["action"] == action)
                .count()
        };
        // Another change each time that the one before has arrived.
        if of("createHeadlessServiceAccount") == names {
            if names == 3 {
                break;
            }
            names += 1;
            let body = format!(r#"{{"name":"follow-{names}","permissionRole":"viewer","allOfRole":true}}"#);
            assert_eq!(post(server.port, path, &token, &body).0, 201);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    following.kill().unwrap();
    following.wait().unwrap();
    let of = |action: &str| {
        written
            .iter()
            .filter(|line| line["record"]["action"] == action)
            .count()
    };
    assert_eq!(of("createHeadlessServiceAccount"), 3, "{written:?}");
    assert_eq!(of("exportHeadlessAuditEvents"), 1, "{written:?}");
    let seqs = seqs(&written);
    assert_eq!(seqs, (1..=seqs.len()).collect::<Vec<_>>());
}
