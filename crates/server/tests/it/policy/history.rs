//! Recorded events, over HTTP and through the ports (invariants HS-1 to HS-11).

mod evidence;
mod importing;
mod listing;
mod order;
mod places;
mod recording;
mod sealing;

use crate::areas::history::NDJSON;
use crate::support::{App, Reply};
use provost_areas_policy::history::{self, SegmentPlace};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Returns a line: event `number` of `source`, so many seconds before now.
fn line(app: &App, number: usize, ago_secs: i64) -> Value {
    let user = format!("user-{}", number % 7);
    json!({
        "id": format!("e{number}"),
        "at": app.now().plus_secs(-ago_secs).plus_ms(i64::try_from(number % 1_000).unwrap()).to_rfc3339(),
        "occasion": if number.is_multiple_of(3) { "pre_tool" } else { "prompt" },
        "session": format!("session-{}", number % 11),
        "callId": format!("call-{}", number % 17),
        "attributes": {
            "identity.user_id": user,
            "tool.id": format!("tool-{}", number % 5),
            "tool.input": { "path": format!("/srv/{}", number % 13) },
            "llm.input_tokens": number,
        },
        "decision": { "action": if number.is_multiple_of(2) { "allow" } else { "block" }, "policyIds": [format!("p{}", number % 4)] },
    })
}

/// Returns lines of events, one a second, the first one oldest.
pub fn lines(app: &App, from: usize, count: usize) -> String {
    let secs = |number: usize| i64::try_from(from + count - number).unwrap();
    let all = (from..from + count).map(|number| line(app, number, secs(number)).to_string());
    all.collect::<Vec<_>>().join("\n")
}

pub async fn import(app: &App, source: &str, body: impl Into<Vec<u8>>) -> Reply {
    let call = app.request("POST", &format!("/policies/history/import?source={source}"));
    call.content(NDJSON, body.into()).send().await
}

/// Returns the events of every page.
async fn all_events(app: &App, query: &str) -> Vec<Value> {
    let (mut events, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app
            .get(&format!("/policies/history?limit=100{query}{cursor}"))
            .await;
        let page = page.ok().clone();
        assert!(page.get("unreadable").is_none(), "{page}");
        events.extend(page["events"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return events,
        }
    }
}

fn external(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["externalId"].as_str().unwrap())
        .collect()
}

/// Asserts that these are the events of all numbers, each once, newest first.
fn assert_all(events: &[Value], numbers: impl Iterator<Item = usize>) {
    let ids: Vec<String> = external(events).into_iter().map(str::to_owned).collect();
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "an event came twice");
    let expected: BTreeSet<String> = numbers.map(|number| format!("e{number}")).collect();
    let found: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(found.len(), expected.len());
    assert!(found == expected);
    let keys = events
        .iter()
        .map(|event| (event["at"].as_str().unwrap(), event["eventId"].as_str().unwrap()));
    assert!(keys.clone().zip(keys.skip(1)).all(|(newer, older)| newer > older));
}

async fn status(app: &App) -> Value {
    app.get("/policies/history/status").await.ok().clone()
}

/// Lets chunks become old enough to be sealed, and seals.
async fn seal(app: &App) {
    app.advance(601);
    history::seal(&app.kernel).await.unwrap();
}

/// Returns the names of the files in the place of the segments.
fn files(app: &App) -> Vec<String> {
    let names = std::fs::read_dir(app.keys_dir.join("history")).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "place.json")
        .collect();
    names.sort();
    names
}

fn place(app: &App) -> SegmentPlace {
    crate::support::segments(&app.keys_dir)
}

async fn soon(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} did not happen");
}
