//! Recorded history under the traced server: imports until the sealer makes a segment of them, and some more.
//!
//! INVARIANT of the drill: every event of an import that was answered is in the history once, an import is there whole or
//! not at all, and nothing of the history is unreadable, wherever the power goes: in a chunk's row, between the segment's
//! file and the unit that makes it count, or after it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;
use crate::traffic::recorded;

/// How many events an import holds: two, so that one can be there by half.
const EVENTS: usize = 2;
/// How many imports are sent before the first look whether a segment is there.
const FIRST: usize = 2_000;
/// How many imports follow on the segment.
const AFTER: usize = 20;
/// So many imports without a segment, and something is wrong.
const TOO_MANY: usize = 20_000;

/// An import that was answered. Units: time since the Unix epoch.
pub struct Lot {
    pub number: usize,
    pub answered: Duration,
}

/// Imports one lot after the other until a segment is sealed, and [`AFTER`] more.
///
/// Errors: an import that did not succeed; no segment after [`TOO_MANY`] of them.
pub fn import(address: SocketAddr, bootstrap: &Bootstrap) -> Outcome<Vec<Lot>> {
    let mut connection = Connection::new(address);
    let mut lots = Vec::new();
    let mut left = None;
    while left != Some(0) {
        let number = lots.len();
        if number == TOO_MANY {
            return Err(Failure::new(format!("no segment after {TOO_MANY} imports")));
        }
        let answer = connection
            .send(&lot(bootstrap, number))
            .map_err(|lost| lost.why)
            .context("an import")?;
        let answered = clock::since_epoch();
        if !answer.is_success() || answer.json()?["accepted"] != json!(EVENTS) {
            return Err(Failure::new(format!("import {number}: {}", answer.summary())));
        }
        lots.push(Lot { number, answered });
        left = match left {
            Some(left) => Some(left - 1),
            None if lots.len() >= FIRST && lots.len().is_multiple_of(10) => {
                let path = bootstrap.path("policies/history/status");
                let status = connection.fetch(&Request::get(path, &bootstrap.token))?;
                (status["segments"].as_i64() > Some(0)).then_some(AFTER)
            }
            None => None,
        };
    }
    Ok(lots)
}

fn lot(bootstrap: &Bootstrap, number: usize) -> Request {
    let events = (0..EVENTS).map(|event| recorded(&name(number, event), &at(number, event), "power"));
    bootstrap.import("power", &events.collect::<Vec<_>>())
}

/// A millisecond of its own of the day before: a page of the history reads every event of one instant.
fn at(number: usize, event: usize) -> String {
    let days = clock::since_epoch().as_secs() / 86_400;
    let (year, month, day) = clock::civil_date(days - 1);
    let millis = number * EVENTS + event;
    let (minutes, seconds) = (millis / 60_000, millis / 1_000 % 60);
    format!(
        "{year}-{month:02}-{day:02}T00:{minutes:02}:{seconds:02}.{:03}Z",
        millis % 1_000
    )
}

fn name(number: usize, event: usize) -> String {
    format!("{number}-{event}")
}

/// Looks for lots that must be there; returns what is not, what is there by half, and what is there twice.
pub fn missing(connection: &mut Connection, bootstrap: &Bootstrap, lots: &[usize]) -> Outcome<Vec<String>> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = bootstrap.path(&format!("policies/history?source=power&limit=100{cursor}"));
        let page = connection.fetch(&Request::get(path, &bootstrap.token))?;
        if let Some(unreadable) = page.get("unreadable") {
            wrong.push(format!("parts of the history cannot be read: {unreadable}"));
        }
        let events = page["events"].as_array().context("a page without events")?;
        for event in events {
            let id = event["externalId"]
                .as_str()
                .context("an event without externalId")?;
            *found.entry(id.to_owned()).or_default() += 1;
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let lost = lots.iter().filter(|lot| !found.contains_key(&name(**lot, 0)));
    wrong.extend(lost.map(|lot| format!("import {lot} is gone")));
    for (id, times) in &found {
        if *times != 1 {
            wrong.push(format!("the event {id} is there {times} times"));
        }
        let number = id.split('-').next().and_then(|number| number.parse().ok());
        let number: usize = number.context(format_args!("an event {id} that nobody sent"))?;
        if !(0..EVENTS).all(|event| found.contains_key(&name(number, event))) {
            wrong.push(format!("import {number} is there by half"));
        }
    }
    Ok(wrong)
}
