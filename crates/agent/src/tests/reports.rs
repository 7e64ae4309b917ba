//! Reports that a server does not take.

use super::rounds::scan_again;
use super::{Scratch, Told, agent, beat, home, round, taken};
use crate::queue::Queue;
use crate::report::fitted;
use crate::{Cause, State, uploads};
use provost_inventory::wire::{self, Place, Report, Section, Sighting};
use provost_inventory::{Client, Fault};
use provost_words::time::Timestamp;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Proves AG-3.
#[test]
fn a_device_that_waits_for_its_approval_keeps_its_report() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    for _ in 0..2 {
        door.will(200, &beat());
        door.will(
            409,
            &json!({ "message": "the device is not active yet", "code": "conflict" }),
        );
        assert!(round(&agent, &home, &door).unwrap().problem.is_some());
    }
    door.will(200, &beat());
    door.will(200, &taken());
    assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
    let bodies: Vec<Vec<u8>> = door.asked.borrow().iter().map(|asked| asked.3.clone()).collect();
    assert_eq!((&bodies[1], &bodies[1]), (&bodies[3], &bodies[5]));
}

/// Proves AG-3.
#[test]
fn a_server_that_is_away_costs_one_report_that_waits_and_one_that_refuses_it_sets_it_aside() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    // The heartbeat is taken, the report is not.
    door.will(200, &beat());
    let done = round(&agent, &home, &door).unwrap();
    assert!(done.has_scanned && done.problem.is_some());
    let first = door.asked.borrow().last().unwrap().3.clone();
    // Nobody there: nothing is scanned, nothing is lost.
    assert_eq!(round(&agent, &home, &door).unwrap_err().cause, Cause::Unreachable);
    scan_again(&agent);
    door.will(200, &beat());
    door.will(503, &json!({ "message": "later", "code": "unavailable" }));
    let done = round(&agent, &home, &door).unwrap();
    assert!(!done.has_scanned, "one waits");
    assert_eq!(door.asked.borrow().last().unwrap().3, first, "byte for byte");
    door.will(200, &beat());
    door.will(
        422,
        &json!({ "message": "no report", "code": "invalid_definition" }),
    );
    door.will(200, &taken());
    let done = round(&agent, &home, &door).unwrap();
    assert!(done.has_scanned && done.uploads == 1);
    assert!(folder.file("queue/00000000000000000001.refused").exists());
}

/// Proves AG-3.
#[test]
fn a_server_that_takes_no_reports_is_no_fault_and_the_report_waits() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    for scanned in [true, false] {
        door.will(200, &beat());
        door.will(
            404,
            &json!({ "message": "there is no such route", "code": "not_found" }),
        );
        let done = round(&agent, &home, &door).unwrap();
        assert_eq!((done.has_scanned, done.uploads, done.problem), (scanned, 0, None));
    }
    door.will(200, &beat());
    door.will(200, &taken());
    assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
}

/// Proves AG-3.
#[test]
fn a_report_that_the_server_fails_at_is_set_aside_in_the_end_and_the_next_one_follows() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    // Who is told to wait is hardly at fault.
    for _ in 0..10 {
        door.will(200, &beat());
        door.will(503, &json!({ "message": "later", "code": "unavailable" }));
        assert!(round(&agent, &home, &door).unwrap().problem.is_some());
    }
    for tries in 1..12 {
        door.will(200, &beat());
        if tries % 2 == 0 {
            door.will(500, &json!({ "message": "internal error", "code": "internal" }));
        }
        assert!(round(&agent, &home, &door).unwrap().problem.is_some(), "{tries}");
    }
    scan_again(&agent);
    door.will(200, &beat());
    door.will(500, &json!({ "message": "internal error", "code": "internal" }));
    door.will(200, &taken());
    let done = round(&agent, &home, &door).unwrap();
    assert!(
        done.has_scanned && done.uploads == 1 && done.problem.is_none(),
        "{done:?}"
    );
    assert!(folder.file("queue/00000000000000000001.refused").exists());
    // What the server never had is in the next report, and both can be looked at.
    let states: Vec<_> = uploads(&folder)
        .unwrap()
        .iter()
        .map(|upload| upload.state)
        .collect();
    assert!(
        states.contains(&"refused") && states.contains(&"taken"),
        "{states:?}"
    );
    let asked = door.asked.borrow();
    let last = String::from_utf8_lossy(&asked.last().unwrap().3).into_owned();
    assert!(
        last.contains("claude_code") && last.contains("observations"),
        "{last}"
    );
}

/// What was uninstalled in an hour in which not everything could be read is said to be gone in the next in which it can; and so is what
/// nobody here knows any more.
#[test]
fn what_is_gone_is_said_later_where_it_could_not_be_said_at_once() {
    for is_lost in [false, true] {
        let scratch = Scratch::new();
        let (folder, door) = (scratch.folder(), Told::default());
        let agent = agent(&folder);
        let home = scratch.0.clone();
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            ".claude.json",
            r#"{"mcpServers": {"a": {"command": "npx", "args": ["a"]}}}"#,
        );
        write(
            ".cursor/mcp.json",
            r#"{"mcpServers": {"b": {"command": "npx", "args": ["b"]}}}"#,
        );
        let hour = || {
            scan_again(&agent);
            door.will(200, &beat());
            door.will(200, &taken());
            round(&agent, &home, &door).unwrap();
            let asked = door.asked.borrow();
            let report: Report = serde_json::from_slice(&asked.last().unwrap().3).unwrap();
            let cursor = report
                .sections
                .into_iter()
                .find(|section| section.client == Client::Cursor);
            cursor.map(|section| (section.complete, section.observations.len()))
        };
        assert_eq!(hour(), Some((true, 1)));
        write(".claude.json", "{");
        std::fs::remove_dir_all(home.join(".cursor")).unwrap();
        assert_eq!(hour(), None, "it may have been hidden");
        write(".claude.json", "{}");
        if is_lost {
            std::fs::write(folder.file("acknowledged.json"), "torn").unwrap();
        }
        assert_eq!(hour(), Some((true, 0)), "{is_lost}");
        assert_eq!(hour(), None, "once");
        // A day later everything is said again, this as well.
        let path = folder.file("acknowledged.json");
        let mut known: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        known["fullAt"] = json!("2020-01-01T00:00:00.000Z");
        std::fs::write(&path, known.to_string()).unwrap();
        assert_eq!(hour(), Some((true, 0)), "the next day");
    }
}

/// A file that can never be read hides what stands in it, and nothing of other clients.
#[test]
fn a_fault_of_one_client_does_not_keep_another_from_being_gone() {
    let scratch = Scratch::new();
    let (folder, door) = (scratch.folder(), Told::default());
    let agent = agent(&folder);
    let home = scratch.0.clone();
    let cursor = home.join(".cursor/mcp.json");
    let goose = home.join(".config/goose/config.yaml");
    for (path, text) in [
        (
            &cursor,
            r#"{"mcpServers": {"b": {"command": "npx", "args": ["b"]}}}"#,
        ),
        (&goose, "a: ["),
    ] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    for wanted in [Some((true, 1)), Some((true, 0))] {
        scan_again(&agent);
        door.will(200, &beat());
        door.will(200, &taken());
        round(&agent, &home, &door).unwrap();
        let asked = door.asked.borrow();
        let report: Report = serde_json::from_slice(&asked.last().unwrap().3).unwrap();
        let mut sections = report.sections.into_iter();
        let of_cursor = sections.find(|section| section.client == Client::Cursor);
        let found = of_cursor.map(|section| (section.complete, section.observations.len()));
        assert_eq!(found, wanted);
        let _ = std::fs::remove_file(&cursor);
    }
}

#[test]
fn a_home_of_another_account_is_not_read() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    std::os::unix::fs::fchown(std::fs::File::open(&home).unwrap(), Some(12_345), None).unwrap();
    door.will(200, &beat());
    let done = round(&agent, &home, &door).unwrap();
    assert!(!done.has_scanned);
    assert!(
        done.problem
            .unwrap()
            .line
            .contains("belongs to the account 12345")
    );
}

#[test]
fn scans_are_counted_and_follow_the_last_one_that_the_server_knows() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let counter = || {
        let asked = door.asked.borrow();
        let report: serde_json::Value = serde_json::from_slice(&asked.last().unwrap().3).unwrap();
        report["counter"].as_u64().unwrap()
    };
    let mut counts = Vec::new();
    for answer in [
        taken(),
        json!({ "accepted": 0, "unknownDigests": [], "ignored": "older_scan", "lastCounter": 70 }),
        taken(),
    ] {
        let is_after = counts.len() == 2;
        if !is_after {
            scan_again(&agent);
        }
        door.will(200, &beat());
        door.will(200, &answer);
        // After one that was ignored the next round scans by itself.
        assert!(round(&agent, &home, &door).unwrap().has_scanned);
        counts.push(counter());
    }
    assert_eq!(counts, [1, 2, 71]);
}

/// Whatever the file of the count holds, a report is taken in the end: no number is far ahead of what the server knows.
#[test]
fn a_count_of_scans_that_is_lost_or_refused_begins_anew() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let round = |answer: &serde_json::Value, status: u16| {
        scan_again(&agent);
        door.will(200, &beat());
        door.will(status, answer);
        let done = round(&agent, &home, &door).unwrap();
        let asked = door.asked.borrow();
        let report: serde_json::Value = serde_json::from_slice(&asked.last().unwrap().3).unwrap();
        (report["counter"].as_u64().unwrap(), done.uploads, done.set_aside)
    };
    let ignored = json!({ "accepted": 0, "unknownDigests": [], "ignored": "older_scan", "lastCounter": 7 });
    let refused = json!({ "message": "counter is too far ahead", "code": "invalid_request" });
    std::fs::write(folder.file("scans"), "no number").unwrap();
    super::chmod(&folder.file("scans"), 0o600);
    assert_eq!(round(&ignored, 200), (1, 1, 0));
    assert_eq!(round(&taken(), 200), (8, 1, 0));
    // What an earlier version wrote.
    std::fs::write(folder.file("scans"), format!("{:020}\n", 1_790_000_000)).unwrap();
    assert_eq!(round(&refused, 400), (1_790_000_001, 0, 1));
    assert_eq!(round(&ignored, 200), (1, 1, 0));
    assert_eq!(round(&taken(), 200), (8, 1, 0));
}

#[test]
fn what_a_server_refuses_every_hour_fills_no_queue_and_is_named() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    for _ in 0..9 {
        scan_again(&agent);
        door.will(200, &beat());
        door.will(
            400,
            &json!({ "message": "/sections/0/news: unknown member", "code": "invalid_request" }),
        );
        round(&agent, &home, &door).unwrap();
    }
    let aside = std::fs::read_dir(folder.file("queue")).unwrap().count();
    assert!(aside <= 5, "{aside}");
    let refusal = State::load(&folder).unwrap().last_refusal.unwrap();
    assert!(
        refusal.contains("unknown member") && refusal.contains("earlier version"),
        "{refusal}"
    );
}

#[test]
fn a_report_that_is_longer_than_a_server_reads_is_cut_and_says_so() {
    let place = Place {
        class: "~/.claude.json".into(),
        path: "0123456789abcdef0123456789abcdef".into(),
        project: None,
        project_name: None,
    };
    let names = vec!["N".repeat(150); 64];
    let environment = |_| Sighting::Environment {
        place: place.clone(),
        names: names.clone(),
    };
    let observations: Vec<Sighting> = (0..900).map(environment).collect();
    let report = Report {
        scan_id: "s".into(),
        counter: None,
        started_at: Timestamp::EPOCH,
        finished_at: Timestamp::EPOCH,
        sections: vec![Section {
            client: Client::ClaudeCode,
            user: "ada".into(),
            digest: wire::digest(&observations, &[]),
            complete: true,
            faults: Vec::new(),
            observations,
        }],
        unchanged: Vec::new(),
    };
    assert_eq!(report.refusal(), None);
    let bytes = fitted(report).unwrap();
    assert!(bytes.len() <= wire::MAX_BYTES);
    let sent: Report = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(sent.refusal(), None);
    let section = &sent.sections[0];
    assert!(!section.complete && !section.observations.is_empty());
    assert_eq!(section.faults[0].fault, Fault::Truncated);
}

/// A home with a server in a project of a client.
fn with_project(scratch: &Scratch) -> PathBuf {
    let home = home(scratch);
    let project = home.join("work/billing");
    std::fs::create_dir_all(&project).unwrap();
    let server = json!({ "command": "npx", "args": ["-y", "@acme/docs@1.2.3"] });
    let settings = json!({ "projects": { project.to_str().unwrap(): { "mcpServers": { "docs": server } } } });
    std::fs::write(home.join(".claude.json"), settings.to_string()).unwrap();
    home
}

fn beat_saying(project_names: &str) -> Value {
    let mut beat = beat();
    beat["privacy"] = json!({ "people": "directory", "hostNames": "show", "projectNames": project_names });
    beat
}

/// Proves PV-2.
#[test]
fn a_project_is_named_once_the_server_said_so_and_not_in_what_waits_when_it_says_otherwise() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), with_project(&scratch), Told::default());
    let agent = agent(&folder);
    let last = || String::from_utf8(door.asked.borrow().last().unwrap().3.clone()).unwrap();
    let digest = |body: &str| serde_json::from_str::<Value>(body).unwrap()["sections"][0]["digest"].clone();
    // Nothing was said, and then that names are hidden.
    for beat in [beat(), beat_saying("hide")] {
        scan_again(&agent);
        door.will(200, &beat);
        door.will(200, &taken());
        assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
        assert!(
            !last().contains("projectName") && !last().contains("billing"),
            "{}",
            last()
        );
    }
    let hidden: Value = serde_json::from_str(&last()).unwrap();
    scan_again(&agent);
    door.will(200, &beat_saying("show"));
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    assert!(last().contains(r#""projectName":"billing""#), "{}", last());
    // A section that names its project is another one: nobody takes it for what was sent before.
    assert_ne!(hidden["unchanged"][0]["digest"], digest(&last()));
    // One waits, and the server hides names in the meantime.
    scan_again(&agent);
    std::fs::create_dir_all(home.join("work/shop")).unwrap();
    let two = ["billing", "shop"].map(|name| home.join("work").join(name).to_str().unwrap().to_owned());
    let server =
        json!({ "mcpServers": { "docs": { "command": "npx", "args": ["-y", "@acme/docs@1.2.3"] } } });
    let settings = json!({ "projects": { &two[0]: server, &two[1]: server } });
    std::fs::write(home.join(".claude.json"), settings.to_string()).unwrap();
    door.will(200, &beat_saying("show"));
    door.will(503, &json!({ "message": "later", "code": "unavailable" }));
    assert!(round(&agent, &home, &door).unwrap().problem.is_some());
    assert!(last().contains(r#""projectName":"shop""#), "{}", last());
    door.will(200, &beat_saying("hide"));
    door.will(200, &taken());
    assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
    let sent: Report = serde_json::from_str(&last()).unwrap();
    assert_eq!((sent.refusal(), sent.sections[0].observations.len()), (None, 2));
    assert!(
        !last().contains("projectName") && !last().contains("shop"),
        "{}",
        last()
    );
    // What is explained is what was sent, and the next scan knows what the server has.
    let kept = uploads(&folder).unwrap();
    let kept = kept.iter().rfind(|upload| upload.kind == "report").unwrap();
    assert_eq!(kept.body, last().into_bytes());
    scan_again(&agent);
    door.will(200, &beat_saying("hide"));
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    let next: Value = serde_json::from_str(&last()).unwrap();
    assert_eq!(next["unchanged"][0]["digest"], sent.sections[0].digest);
}

/// Proves PV-2.
#[test]
fn what_cannot_be_read_and_may_name_projects_is_set_aside_where_they_are_hidden() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let later = json!({ "later": 1, "place": { "projectName": "billing" } });
    let queue = Queue::open(&folder).unwrap();
    queue.push(later.to_string().as_bytes()).unwrap();
    door.will(200, &beat_saying("hide"));
    let done = round(&agent, &home, &door).unwrap();
    assert_eq!((done.set_aside, done.uploads), (1, 0));
    let asked = door.asked.borrow();
    let names = |body: &Vec<u8>| String::from_utf8_lossy(body).contains("billing");
    assert!(!asked.iter().any(|asked| names(&asked.3)));
    assert!(folder.file("queue/00000000000000000001.refused").exists());
}
