//! What the server keeps of devices, beside what their calls were told.

use serde_json::Value;
use std::collections::BTreeMap;

use super::ENTRIES;
use super::person::{Person, verdicts};
use crate::clients::administrator::Administrator;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};

/// Faults that are told one by one.
const MOST_TOLD: usize = 20;

/// The session in which a hook that is installed asks the server whether it can be asked.
const OF_INSTALLATION: &str = "provost-hook-doctor";

/// What was compared.
#[derive(Default)]
pub struct Compared {
    pub events: u64,
    /// Calls without an answer that are there all the same.
    pub of_unsure: u64,
}

/// What was read of one device, newest first.
#[derive(Default)]
struct Read {
    /// By the number of a call, how many events it has.
    events: Vec<u8>,
    /// The number of the call of the last event that was read, which is the oldest of these.
    last: Option<u32>,
    count: u64,
}

/// Reads the whole history, and compares it with what every call of every laptop was told.
pub fn compare(people: &[Person], server: &Server, bootstrap: &Bootstrap) -> Outcome<Compared> {
    let mut reads: BTreeMap<String, (usize, Read)> = people
        .iter()
        .enumerate()
        .map(|(at, person)| {
            let read = Read {
                events: vec![0; person.asked() as usize],
                ..Read::default()
            };
            (format!("device:{}", person.device()), (at, read))
        })
        .collect();
    let mut faults = Vec::new();
    let mut connection = Connection::new(server.address);
    let path = bootstrap.path("policies/history?limit=100");
    let mut next = path.clone();
    loop {
        let page = connection.fetch(&Request::get(next, &bootstrap.token))?;
        if page["unreadable"].is_array() {
            return Err(Failure::new(format!(
                "a part of the history cannot be read: {}",
                page["unreadable"]
            )));
        }
        for event in page["events"].as_array().context("a page without events")? {
            let source = event["source"].as_str().unwrap_or_default();
            match reads.get_mut(source) {
                Some((_, read)) => faults.extend(read.take(event).err()),
                // What the hook asks when it is installed is no call.
                None if source == "decisions" && event["session"] == OF_INSTALLATION => {}
                None => faults.push(format!("{event} is of nobody who was there")),
            }
        }
        match &page["nextCursor"] {
            Value::String(cursor) => next = format!("{path}&cursor={cursor}"),
            _ => break,
        }
    }
    let administrator = Administrator::new(server, bootstrap);
    let mut compared = Compared::default();
    for (at, read) in reads.values() {
        let person = &people[*at];
        for (number, events) in (0..).zip(&read.events) {
            let is_answered = person.was_answered(number);
            match (u32::from(*events), is_answered) {
                (ENTRIES, false) => compared.of_unsure += 1,
                // The agent dies between the two entries of a call that it did not answer.
                (ENTRIES, true) | (0 | 1, false) => {}
                (count, _) => faults.push(format!(
                    "call {number} of {} has {count} events, and was {}answered",
                    person.device(),
                    if is_answered { "" } else { "not " }
                )),
            }
        }
        faults.extend(stands(person, read, &administrator)?);
        compared.events += read.count;
    }
    if faults.is_empty() {
        return Ok(compared);
    }
    let count = faults.len();
    faults.truncate(MOST_TOLD);
    Err(Failure::new(format!(
        "{count} faults, the first of them:\n  {}",
        faults.join("\n  ")
    )))
}

impl Read {
    /// Takes the next older event. Errors: what is wrong with it.
    fn take(&mut self, event: &Value) -> Result<(), String> {
        self.count += 1;
        let number = event["callId"]
            .as_str()
            .and_then(|id| id.strip_prefix("call-")?.parse::<u32>().ok());
        let Some((number, seen)) =
            number.and_then(|number| Some((number, self.events.get_mut(number as usize)?)))
        else {
            return Err(format!("{event} is of no call"));
        };
        *seen = seen.saturating_add(1);
        let before = self.last.replace(number);
        if before.is_some_and(|before| number > before) {
            return Err(format!(
                "{event} stands before what came before it, call {before:?}"
            ));
        }
        let [content, access] = verdicts(number);
        let due = match event["occasion"].as_str() {
            Some("pre_tool") => content,
            Some("inline_hook") => access,
            _ => return Err(format!("{event} is of no occasion of a call")),
        };
        let decision = &event["decision"];
        let policies = decision["policyIds"].as_array().map_or(&[][..], Vec::as_slice);
        let is_due = decision["action"] == due.action
            && decision["mode"] == "enforce"
            && policies.iter().map(Value::as_str).eq(due.policy.map(Some));
        // It was judged by the policies that there are, and nobody tells of it from elsewhere.
        if is_due && event["imported"] == false {
            return Ok(());
        }
        Err(format!("{event} is not what the call was told: {due:?}"))
    }
}

/// Says what is wrong with where a device stands at the server.
fn stands(person: &Person, read: &Read, administrator: &Administrator) -> Outcome<Option<String>> {
    let said = administrator.get(&format!("devices/{}/decisions", person.device()))?;
    let (told, chain) = (&said["told"], person.chain()?);
    let none = ["passed", "dropped", "refused", "foreign", "mismatches"];
    let is_right = told["expected"] == chain.next
        && told["events"] == read.count
        && read.count + 1 == chain.next
        && none.iter().all(|member| told[*member] == 0);
    Ok((!is_right).then(|| {
        format!(
            "of {} the server says {told}, its log goes on with entry {}, and {} events are there",
            person.device(),
            chain.next,
            read.count
        )
    }))
}
