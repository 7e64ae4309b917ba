//! How fast entries of devices become durable: chains that are made before, told by several devices at once.

use std::time::Duration;

use provost_words::digest::sha256_hex;
use serde_json::{Value, json};

use super::laptop::{Laptop, USER};
use crate::bench::bench_store::BenchStore;
use crate::bench::report::{Goal, Row};
use crate::bench::rounds::Rounds;
use crate::clients::administrator::{Administrator, text};
use crate::clock;
use crate::failure::{Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};
use crate::traffic::machine::Machine;
use crate::traffic::maker::Maker;

const DEVICES: usize = 4;
/// Requests of each device in a round, and entries of each.
const REQUESTS: usize = 5;
const ENTRIES: u64 = 1_000;

/// Where the chain of a device stands.
struct Chain {
    machine: Machine,
    next: u64,
    previous: String,
}

pub fn measure(
    rounds: &Rounds,
    place: &BenchStore,
    server: &Server,
    bootstrap: &Bootstrap,
    laptop: &Laptop,
) -> Outcome<Vec<Row>> {
    let mut administrator = Administrator::new(server, bootstrap);
    let mut chains = Vec::new();
    let mut connection = Connection::new(server.address);
    for number in 0..DEVICES {
        let mut maker = Maker {
            connection: &mut connection,
            bootstrap,
            unique: &format!("uploads-{number}"),
            archive: &|_, _| Err(Failure::new("no skill is made here")),
            log_bytes: &|| 0,
            sent: 0,
        };
        let machine = Machine::enrol(&mut maker, false)?;
        machine.call(&mut maker)?;
        administrator.change("PATCH", &machine.path(), json!({ "ownerUserId": laptop.owner }))?;
        chains.push(Chain {
            machine,
            next: 1,
            previous: "0".repeat(64),
        });
    }
    let version = version(&administrator)?;
    let (mut rates, mut bytes, mut cpu) = (Vec::new(), 0, Vec::new());
    for round in 1..=rounds.count {
        let made: Vec<Vec<Request>> = chains
            .iter_mut()
            .map(|chain| {
                (0..REQUESTS)
                    .map(|_| chain.request(bootstrap, &version))
                    .collect()
            })
            .collect();
        bytes = made.iter().flatten().map(|request| request.bytes().len()).sum();
        let (before, start) = (place.spent(server), clock::now());
        std::thread::scope(|scope| {
            let told: Vec<_> = made
                .iter()
                .map(|requests| scope.spawn(move || tell(server, requests)))
                .collect();
            told.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Failure::new("a thread ended")))
            })
        })?;
        let took = start.elapsed();
        let after = place.spent(server);
        let rate = entries() / took.as_secs_f64();
        let spent = |after: Option<Duration>, before: Option<Duration>| Some(after?.saturating_sub(before?));
        let own = spent(after.server, before.server).unwrap_or_default()
            + spent(after.postgres, before.postgres).unwrap_or_default();
        cpu.push(own.as_secs_f64() * 1e6 / entries());
        rates.push(rate);
        eprintln!(
            "{} round {round}/{}: {rate:.0} entries a second",
            place.engine.name(),
            rounds.count
        );
    }
    let engine = place.engine.name();
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let length = bytes as f64 / entries();
    Ok(vec![
        Row::new(
            &format!("entries of decisions told by {DEVICES} devices at once, durable"),
            engine,
            "/s",
            Goal::AtLeast(20_000.0),
            rates,
        ),
        Row::new(
            "processor time of an entry at the server",
            engine,
            " µs",
            Goal::None,
            cpu,
        ),
        Row::new(
            "length of an entry on the wire",
            engine,
            " B",
            Goal::None,
            vec![length],
        ),
    ])
}

/// The entries of a round.
#[expect(clippy::cast_precision_loss, reason = "some thousands are exact")]
fn entries() -> f64 {
    (DEVICES * REQUESTS) as f64 * ENTRIES as f64
}

/// The version of the policies, by which a device says that it judged.
fn version(administrator: &Administrator) -> Outcome<String> {
    let event = json!({ "occasion": "pre_tool", "attributes": { "tool.id": "Bash" } });
    let said = administrator.ask("policies/decisions", json!({ "events": [event] }))?;
    text(&said, "/policySetVersion/id")
}

fn tell(server: &Server, requests: &[Request]) -> Outcome {
    let mut connection = Connection::new(server.address);
    for request in requests {
        let said = connection.fetch(request)?;
        if said["accepted"] != ENTRIES
            || said["refused"]
                .as_array()
                .is_none_or(|refused| !refused.is_empty())
        {
            let text = said.to_string();
            let shown: String = text.chars().take(400).collect();
            return Err(Failure::new(format!("not every entry was taken: {shown}")));
        }
    }
    Ok(())
}

impl Chain {
    /// The next request, of entries that follow what was told before.
    fn request(&mut self, bootstrap: &Bootstrap, version: &str) -> Request {
        let (from, previous) = (self.next, self.previous.clone());
        let at = clock::rfc3339(clock::since_epoch());
        let mut texts = Vec::new();
        for number in from..from + ENTRIES {
            let entry = entry(number, &at, version).to_string();
            self.previous = sha256_hex(format!("{}{entry}", self.previous).as_bytes());
            texts.push(Value::String(entry));
        }
        self.next = from + ENTRIES;
        let body = json!({ "from": from, "previous": previous, "head": self.previous, "entries": texts });
        self.machine.signed(
            Request::new(
                "POST",
                bootstrap.path(&format!("{}/decisions", self.machine.path())),
                "",
            )
            .with_body(body),
        )
    }
}

fn entry(number: u64, at: &str, version: &str) -> Value {
    json!({
        "kind": "event", "at": at, "occasion": "pre_tool", "session": format!("session-{}", number % 50), "callId": format!("call-{number}"),
        "attributes": {
            "identity.user_id": USER, "tool.id": "Bash",
            "tool.input": json!({ "command": format!("rm -rf /srv/app/cache-{number}"), "description": "Tidy up" }).to_string(),
        },
        "missing": ["llm.model", "llm.provider"], "basis": "judged", "whole": true,
        "decision": { "action": "block", "mode": "enforce", "policyIds": ["policy-0"], "policySetVersion": version },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_of_a_hook() {
        let entry = entry(7, "2026-01-01T00:00:00.000Z", "psv_1");
        assert_eq!(entry["attributes"]["identity.user_id"], USER);
        assert_eq!(text(&entry, "/decision/policySetVersion").unwrap(), "psv_1");
    }
}
