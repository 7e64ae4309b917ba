//! Rounds of the loop.

use super::{Scratch, Told, agent, home, now};
use crate::run::Loop;
use crate::{Agent, Cause, Once, State, Trouble, once, run, uploads};
use provost_words::entropy::SystemEntropy;
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

fn beat() -> Value {
    json!({ "now": "2026-11-27T10:00:00.000Z", "nextHeartbeatSeconds": 300 })
}

fn taken() -> Value {
    json!({ "accepted": true, "unknownDigests": [] })
}

fn round(agent: &Agent, home: &Path, door: &Told) -> Result<Once, Trouble> {
    now(once(&Loop {
        agent,
        door,
        home,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
        say: &|_| {},
        stop: Arc::default(),
    }))
}

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
    assert_eq!(kept[0].body, asked[1].3);
    assert_eq!(kept[1].body, asked[0].3);
    // The next round has nothing to scan.
    door.will(200, &beat());
    let done = round(&agent, &home, &door).unwrap();
    assert!(!done.has_scanned && done.uploads == 0);
    assert_eq!(door.asked.borrow().len(), 3);
}

fn scan_again(agent: &Agent) {
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
        stop: Arc::default(),
    };
    let trouble = now(run(&work, std::future::pending())).unwrap_err();
    assert_eq!(trouble.cause, Cause::Gone);
    assert!(trouble.line.contains("retired"), "{}", trouble.line);
    assert!(State::load(&folder).unwrap().is_gone);
    assert_eq!(door.asked.borrow().len(), 1);
}

/// A clock of which the test says what it reads; asleep it goes on by as much as somebody waits.
struct Jumping(Mutex<(Timestamp, Duration)>);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }
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

#[test]
fn a_token_is_renewed_in_the_second_half_of_its_life_and_calls_are_counted() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let _ = agent(&folder);
    let clock = SystemClock::new();
    let path = folder.file("device.json");
    let mut device: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    device["tokenExpiresAt"] = json!(clock.now().plus_secs(14 * 86_400));
    folder
        .replace("device.json", device.to_string().as_bytes())
        .unwrap();
    let agent = Agent::open(&folder).unwrap();
    // A lost answer is asked for again, and the earlier token goes on meanwhile.
    door.will(200, &beat());
    assert!(round(&agent, &home, &door).unwrap().problem.is_some());
    door.will(200, &beat());
    door.will(
        200,
        &json!({ "token": { "token": "prov_dvt_new", "expiresAt": "2099-01-01T00:00:00.000Z" } }),
    );
    door.will(200, &taken());
    assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
    door.will(200, &beat());
    round(&agent, &home, &door).unwrap();
    let asked = door.asked.borrow();
    let last = |place: usize| asked[place].0.rsplit('/').next().unwrap().to_owned();
    let tokens: Vec<(String, &str)> = (0..asked.len())
        .map(|place| (last(place), asked[place].1.as_str()))
        .collect();
    let (old, new) = ("prov_dvt_canary", "prov_dvt_new");
    let expected = [
        ("heartbeat", old),
        ("token", old),
        ("heartbeat", old),
        ("token", old),
        ("scans", new),
        ("heartbeat", new),
    ];
    assert_eq!(tokens, expected.map(|(path, token)| (path.to_owned(), token)));
    assert_eq!(
        Agent::open(&folder).unwrap().device.token_expires_at,
        Timestamp::parse("2099-01-01T00:00:00Z").unwrap()
    );
    let counts: Vec<Value> = [0, 2, 5]
        .map(|place| serde_json::from_slice::<Value>(&asked[place].3).unwrap()["counter"].clone())
        .to_vec();
    assert_eq!(counts, [json!(1), json!(2), json!(3)]);
}

#[test]
fn a_server_that_counts_nothing_is_told_no_counter() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    door.will(
        400,
        &json!({ "message": "/counter: unknown member", "code": "invalid_request" }),
    );
    door.will(200, &beat());
    door.will(200, &taken());
    assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
    let said: Value = serde_json::from_slice(&door.asked.borrow()[1].3).unwrap();
    assert_eq!(said.as_object().unwrap().len(), 2);
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
