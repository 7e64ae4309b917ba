//! Rounds of the loop.

use super::{Jumping, Scratch, Told, agent, beat, chmod, home, now, round, taken};
use crate::run::Loop;
use crate::{Agent, Cause, State, run, uploads};
use provost_words::entropy::SystemEntropy;
use provost_words::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

#[test]
fn a_round_says_that_the_machine_is_there_scans_it_and_keeps_what_it_sent() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    door.will(200, &beat());
    door.will(200, &taken());
    let done = round(&agent, &home, &door).unwrap();
    assert!(
        done.has_scanned && done.uploads == 1 && done.problem.is_none(),
        "{done:?}"
    );
    let asked = door.asked.borrow().clone();
    let paths: Vec<&str> = asked
        .iter()
        .map(|(path, ..)| path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(paths, ["heartbeat", "scans"]);
    assert!(asked.iter().all(|(_, token, ..)| token == "prov_dvt_canary"));
    let report: Value = serde_json::from_slice(&asked[1].3).unwrap();
    assert_eq!(report["sections"][0]["client"], "claude_code");
    let text = String::from_utf8(asked[1].3.clone()).unwrap();
    assert!(
        !text.contains("hunter2") && !text.contains(home.to_str().unwrap()),
        "{text}"
    );
    // What is explained is what was sent.
    let kept = uploads(&folder).unwrap();
    assert!(kept.iter().all(|upload| upload.state == "taken"));
    assert_eq!(kept[0].body, asked[1].3);
    assert_eq!(kept[1].body, asked[0].3);
    // The next round has nothing to scan.
    door.will(200, &beat());
    let done = round(&agent, &home, &door).unwrap();
    assert!(!done.has_scanned && done.uploads == 0);
    assert_eq!(door.asked.borrow().len(), 3);
}

pub(super) fn scan_again(agent: &Agent) {
    let state = State {
        last_scan_at: None,
        ..State::load(&agent.folder).unwrap()
    };
    state.save(&agent.folder).unwrap();
}

#[test]
fn what_the_server_has_is_named_and_what_it_lost_is_sent_again() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let report = || serde_json::from_slice::<Value>(&door.asked.borrow().last().unwrap().3).unwrap();
    for _ in 0..2 {
        scan_again(&agent);
        door.will(200, &beat());
        door.will(200, &taken());
        round(&agent, &home, &door).unwrap();
    }
    let second = report();
    assert_eq!(second["sections"], json!([]));
    let digest = &second["unchanged"][0]["digest"];
    scan_again(&agent);
    door.will(200, &beat());
    door.will(200, &json!({ "accepted": true, "unknownDigests": [digest] }));
    round(&agent, &home, &door).unwrap();
    // The server did not know it: a scan is due, and it is sent whole.
    door.will(200, &beat());
    door.will(200, &taken());
    assert!(round(&agent, &home, &door).unwrap().has_scanned);
    assert_eq!(&report()["sections"][0]["digest"], digest);
}

#[test]
fn what_is_gone_from_the_machine_is_said_once() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    // The agent lies in the home that it scans.
    let home = home.parent().unwrap();
    std::fs::copy(home.join("home/.claude.json"), home.join(".claude.json")).unwrap();
    let mut sections = Vec::new();
    for gone in [false, true, true] {
        if gone {
            let _ = std::fs::remove_file(home.join(".claude.json"));
        }
        scan_again(&agent);
        door.will(200, &beat());
        door.will(200, &taken());
        round(&agent, home, &door).unwrap();
        let sent: Value = serde_json::from_slice(&door.asked.borrow().last().unwrap().3).unwrap();
        sections.push(sent["sections"].as_array().unwrap().clone());
    }
    assert_eq!(sections[0].len(), 1);
    let vanished = &sections[1][0];
    assert_eq!(vanished["client"], "claude_code");
    assert_eq!(
        (&vanished["complete"], &vanished["observations"]),
        (&json!(true), &json!([]))
    );
    assert!(sections[2].is_empty());
}

#[test]
fn a_loop_waits_while_another_agent_works_in_its_folder() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let lock = RefCell::new(Some(folder.lock().unwrap()));
    let said = RefCell::new(Vec::new());
    let say = |line: &str| {
        said.borrow_mut().push(line.to_owned());
        // Whoever looked is done.
        lock.borrow_mut().take();
    };
    let (clock, entropy) = (SystemClock::new(), SystemEntropy);
    let work = Loop {
        agent: &agent,
        door: &door,
        home: &home,
        clock: &clock,
        entropy: &entropy,
        say: &say,
        stations: &[],
        stop: Arc::default(),
    };
    door.will(
        401,
        &json!({ "message": "the token was revoked", "code": "token_revoked" }),
    );
    let trouble = now(run(&work, std::future::pending())).unwrap_err();
    assert_eq!(trouble.cause, Cause::Gone);
    assert!(said.borrow()[0].contains("another agent"), "{:?}", said.borrow());
}

#[test]
fn a_device_that_is_gone_ends_the_loop_with_a_sentence() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    door.will(
        401,
        &json!({ "message": "the token was revoked", "code": "token_revoked" }),
    );
    let (clock, entropy) = (SystemClock::new(), SystemEntropy);
    let work = Loop {
        agent: &agent,
        door: &door,
        home: &home,
        clock: &clock,
        entropy: &entropy,
        say: &|_| {},
        stations: &[],
        stop: Arc::default(),
    };
    let trouble = now(run(&work, std::future::pending())).unwrap_err();
    assert_eq!(trouble.cause, Cause::Gone);
    assert!(trouble.line.contains("retired"), "{}", trouble.line);
    assert!(State::load(&folder).unwrap().is_gone);
    assert_eq!(door.asked.borrow().len(), 1);
}

#[test]
fn a_clock_that_jumps_and_a_machine_that_slept_make_one_round() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let start = SystemClock::new().now();
    let clock = Jumping(Mutex::new((start, Duration::ZERO)));
    let state = State {
        last_scan_at: Some(start),
        ..State::default()
    };
    state.save(&folder).unwrap();
    for _ in 0..20 {
        door.will(200, &beat());
    }
    let said = RefCell::new(Vec::new());
    let work = Loop {
        agent: &agent,
        door: &door,
        home: &home,
        clock: &clock,
        entropy: &SystemEntropy,
        say: &|line| said.borrow_mut().push(line.to_owned()),
        stations: &[],
        stop: Arc::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        // The clock is set forth and back by years while nothing else passes: no further round.
        for years in [10, -10, 5] {
            clock.0.lock().unwrap().0 = start.plus_secs(years * 365 * 86_400);
        }
        clock.0.lock().unwrap().0 = start.plus_secs(60);
        let end = tokio::time::sleep(Duration::from_millis(300));
        run(&work, end).await.unwrap();
        assert_eq!(door.asked.borrow().len(), 1);
        // Eight hours asleep between two rounds: the next run makes one.
        clock.0.lock().unwrap().1 = Duration::from_hours(8);
        let end = tokio::time::sleep(Duration::from_millis(300));
        run(&work, end).await.unwrap();
        assert_eq!(door.asked.borrow().len(), 2);
    });
    assert_eq!(said.borrow().len(), 2, "{:?}", said.borrow());
}

/// Proves AG-4.
#[test]
fn a_file_that_was_opened_to_others_while_the_agent_works_ends_it_by_name() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    for (name, open, closed) in [
        ("device.key", 0o644, 0o600),
        ("token", 0o660, 0o600),
        (".", 0o755, 0o700),
    ] {
        chmod(&folder.file(name), open);
        let trouble = round(&agent, &home, &door).unwrap_err();
        assert!(
            trouble.cause == Cause::Folder && !trouble.may_pass(),
            "{name}: {trouble}"
        );
        chmod(&folder.file(name), closed);
    }
    assert_eq!(door.asked.borrow().len(), 0, "nobody was asked");
}

#[test]
fn a_count_goes_on_where_the_disk_takes_nothing_and_where_its_file_is_none() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    let counter = |door: &Told| {
        let said: Value = serde_json::from_slice(&door.asked.borrow().last().unwrap().3).unwrap();
        said["counter"].as_u64().unwrap()
    };
    std::fs::create_dir_all(folder.file(".counter.new/in the way")).unwrap();
    let mut counts = Vec::new();
    for text in [None, None, Some("no number"), Some("7"), None] {
        if let Some(text) = text {
            std::fs::write(folder.file("counter"), text).unwrap();
            chmod(&folder.file("counter"), 0o600);
        }
        door.will(200, &beat());
        let state = State {
            last_scan_at: Some(SystemClock::new().now()),
            ..State::default()
        };
        state.save(&folder).unwrap();
        round(&agent, &home, &door).unwrap();
        counts.push(counter(&door));
    }
    assert!(counts.is_sorted_by(|one, next| one < next), "{counts:?}");
}

#[test]
fn a_state_that_cannot_be_written_ends_no_heartbeats() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    // A folder in the place of a draft refuses every write of the state.
    std::fs::create_dir(folder.file(".state.json.new")).unwrap();
    std::fs::write(folder.file(".state.json.new").join("x"), "").unwrap();
    door.will(200, &beat());
    door.will(200, &taken());
    assert!(round(&agent, &home, &door).unwrap().problem.is_none());
}
