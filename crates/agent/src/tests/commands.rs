//! What the server asks for out of turn.

use super::{Scratch, Told, agent, home, now, taken};
use crate::{Agent, Cause, Loop, Once, Station, Trouble, Visit, Visited, once};
use provost_words::entropy::SystemEntropy;
use provost_words::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

/// A station that counts.
#[derive(Default)]
struct Counter {
    visits: Cell<u32>,
    commanded: Cell<u32>,
    alone: Cell<u32>,
    refused: Cell<u32>,
    trouble: RefCell<Option<Trouble>>,
}

impl Station for Counter {
    fn command(&self) -> &'static str {
        "reapply_config"
    }

    fn visit<'a>(&'a self, visit: &'a Visit<'a>) -> Visited<'a> {
        self.visits.set(self.visits.get() + 1);
        self.commanded
            .set(self.commanded.get() + u32::from(visit.is_commanded));
        let trouble = self.trouble.borrow().clone();
        Box::pin(std::future::ready(trouble.map_or(Ok(()), Err)))
    }

    fn refused(&self, _: &Agent, _: &Trouble) -> Result<(), Trouble> {
        self.refused.set(self.refused.get() + 1);
        Ok(())
    }

    fn alone<'a>(&'a self, _: &'a Agent, _: &'a dyn Fn(&str)) -> Visited<'a> {
        self.alone.set(self.alone.get() + 1);
        Box::pin(std::future::ready(Ok(())))
    }
}

fn round(agent: &Agent, home: &Path, door: &Told, station: &Counter) -> Result<Once, Trouble> {
    now(once(&Loop {
        agent,
        door,
        home,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
        say: &|_| {},
        stations: &[station],
        stop: Arc::default(),
    }))
}

fn beat_with(commands: &[(&str, &str)]) -> Value {
    let commands: Vec<Value> = commands
        .iter()
        .map(|(id, kind)| json!({ "id": id, "kind": kind, "expiresAt": "2099-01-01T00:00:00.000Z" }))
        .collect();
    json!({ "now": "2026-11-27T10:00:00.000Z", "nextHeartbeatSeconds": 300, "commands": commands })
}

/// What was asked since, by the end of its path, with its body.
fn asked(door: &Told) -> Vec<(String, Value)> {
    let asked = door.asked.take();
    let shown = asked.into_iter().map(|(path, _, _, body)| {
        let end: Vec<&str> = path.rsplit('/').take(2).collect();
        let end = format!("{}/{}", end[1], end[0]);
        (end, serde_json::from_slice(&body).unwrap_or_default())
    });
    shown.collect()
}

fn results(door: &Told) -> Vec<(String, Value)> {
    let results = asked(door)
        .into_iter()
        .filter(|(end, _)| end.ends_with("/result"));
    results.collect()
}

fn result(id: &str, body: Value) -> (String, Value) {
    (format!("{id}/result"), body)
}

/// Proves AG-5.
#[test]
fn commands_are_done_once_and_what_is_not_known_is_refused_by_a_word() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let (agent, station) = (agent(&folder), Counter::default());
    // The first round scans anyway.
    door.will(200, &beat_with(&[]));
    door.will(200, &taken());
    round(&agent, &home, &door, &station).unwrap();
    assert_eq!((station.visits.get(), station.commanded.get()), (1, 0));
    asked(&door);

    let told = [
        ("cmd_1", "reapply_config"),
        ("cmd_2", "rescan"),
        ("cmd_3", "run_a_shell"),
    ];
    door.will(200, &beat_with(&told));
    door.will(200, &taken());
    // The first result is taken, and nobody answers to the others.
    door.will(200, &json!({ "command": {} }));
    let done = round(&agent, &home, &door, &station).unwrap();
    assert!(done.has_scanned, "{done:?}");
    assert_eq!((station.visits.get(), station.commanded.get()), (2, 1));
    let succeeded = json!({ "outcome": "succeeded" });
    let unsupported = json!({ "outcome": "failed", "code": "unsupported" });
    assert_eq!(
        results(&door),
        [
            result("cmd_1", succeeded.clone()),
            result("cmd_2", succeeded.clone()),
            result("cmd_3", unsupported.clone())
        ]
    );

    // They are told again, because the server does not know: their results are said again, and nothing is done again.
    door.will(200, &beat_with(&told[1..]));
    door.will(200, &json!({ "command": {} }));
    door.will(
        409,
        &json!({ "code": "conflict", "message": "the command is over", "status": "expired" }),
    );
    let done = round(&agent, &home, &door, &station).unwrap();
    assert!(!done.has_scanned && done.problem.is_none(), "{done:?}");
    assert_eq!((station.visits.get(), station.commanded.get()), (3, 1));
    assert_eq!(
        results(&door),
        [result("cmd_2", succeeded), result("cmd_3", unsupported)]
    );
    // Now there is nothing to say any more.
    door.will(200, &beat_with(&[]));
    round(&agent, &home, &door, &station).unwrap();
    assert!(results(&door).is_empty());
}

#[test]
fn what_stands_in_the_way_of_a_station_ends_neither_reports_nor_heartbeats() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let (agent, station) = (agent(&folder), Counter::default());
    station
        .trouble
        .replace(Some(Trouble::new(Cause::Disk, "no folder for settings")));
    door.will(200, &beat_with(&[("cmd_1", "reapply_config")]));
    door.will(200, &taken());
    door.will(200, &json!({ "command": {} }));
    let done = round(&agent, &home, &door, &station).unwrap();
    assert_eq!(done.uploads, 1);
    assert_eq!(done.problem.unwrap().line, "no folder for settings");
    let failed = json!({ "outcome": "failed", "code": "failed" });
    assert_eq!(results(&door), [result("cmd_1", failed)]);
    // Without its server the machine looks after itself.
    assert_eq!(
        round(&agent, &home, &door, &station).unwrap_err().cause,
        Cause::Unreachable
    );
    assert_eq!((station.visits.get(), station.alone.get()), (1, 1));
    // A device that is gone does nothing any more.
    door.will(
        401,
        &json!({ "code": "token_revoked", "message": "the token was revoked" }),
    );
    assert_eq!(
        round(&agent, &home, &door, &station).unwrap_err().cause,
        Cause::Gone
    );
    assert_eq!((station.visits.get(), station.alone.get()), (1, 1));
}

/// Proves LJ-5.
///
/// An answer to the heartbeat by which the server takes its trust back reaches what rests on it, and none is made of silence.
#[test]
fn a_refusal_of_the_heartbeat_reaches_the_stations_and_silence_does_not() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let (agent, station) = (agent(&folder), Counter::default());
    let words = |code: &str| json!({ "code": code, "message": "no" });
    let refusals = [
        (401, words("token_expired")),
        (401, words("invalid_token")),
        (401, words("token_revoked")),
        (403, words("forbidden")),
        (404, words("not_found")),
        (409, words("conflict")),
        // Who has no words is no server that still trusts anybody.
        (403, json!({})),
    ];
    for ((status, body), number) in refusals.iter().zip(1..) {
        door.will(*status, body);
        let trouble = round(&agent, &home, &door, &station).unwrap_err();
        assert!(trouble.is_refusal(), "{status} {body}");
        assert_eq!(station.refused.get(), number, "{status} {body}");
    }
    let before = (station.refused.get(), station.alone.get());
    for status in [429, 500, 502, 503] {
        door.will(status, &words("busy"));
        let trouble = round(&agent, &home, &door, &station).unwrap_err();
        assert!(trouble.is_unanswered() && !trouble.is_refusal(), "{status}");
    }
    let trouble = round(&agent, &home, &door, &station).unwrap_err();
    assert!(trouble.is_unanswered(), "nobody answered");
    assert_eq!(
        (station.refused.get(), station.alone.get()),
        (before.0, before.1 + 5)
    );
    assert_eq!(station.visits.get(), 0);
}

/// Proves LJ-5.
///
/// A proof of another time is signed again at once, and only a second refusal counts.
#[test]
fn a_clock_that_the_server_puts_right_is_no_refusal() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let (agent, station) = (agent(&folder), Counter::default());
    door.date.set(Some(SystemClock::new().now().plus_secs(7_200)));
    let stale = json!({ "code": "invalid_token", "message": "the proof is of another time" });
    door.will(401, &stale);
    door.will(200, &beat_with(&[]));
    door.will(200, &taken());
    round(&agent, &home, &door, &station).unwrap();
    assert_eq!((station.visits.get(), station.refused.get()), (1, 0));
    // Its clock is known by now.
    door.will(401, &stale);
    round(&agent, &home, &door, &station).unwrap_err();
    assert_eq!((station.visits.get(), station.refused.get()), (1, 1));
}

/// Proves LJ-5.
///
/// Nothing else is called while the key changes, and the refusal of that is one.
#[test]
fn a_refusal_of_another_key_reaches_the_stations() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let (agent, station) = (agent(&folder), Counter::default());
    crate::key::DeviceKey::load_or_make_as(&folder, "device.key.next", &SystemEntropy).unwrap();
    door.will(503, &json!({ "code": "unavailable", "message": "later" }));
    round(&agent, &home, &door, &station).unwrap_err();
    assert_eq!(station.refused.get(), 0);
    door.will(401, &json!({ "code": "invalid_token", "message": "no" }));
    round(&agent, &home, &door, &station).unwrap_err();
    assert_eq!((station.visits.get(), station.refused.get()), (0, 1));
}
