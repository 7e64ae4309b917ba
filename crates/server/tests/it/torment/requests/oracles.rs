//! What no answer may be. Numbers are those of the WFC fault catalogue (R25).
//!
//! Every answer was checked against the OpenAPI document before (200): status, envelope, schema.

use super::form::Form;
use super::scene::{CANARY, SECRET, Scene};
use crate::samples;
use crate::support::Reply;
use provost_kernel::operation::{Access, Kind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// No answer may take longer, on a busy machine neither (R22).
const PATIENCE: Duration = Duration::from_secs(8);

/// Traces of the inside (309).
const TRACES: [&str; 12] = [
    "panicked",
    "stack backtrace",
    "RUST_BACKTRACE",
    ".rs:",
    "/src/",
    "rusqlite",
    "tokio_postgres",
    "SQLSTATE",
    "syntax error",
    "no such table",
    "no such column",
    "unwrap()",
];

#[derive(Default)]
pub struct Counts {
    pub requests: u64,
    pub accepted: u64,
    /// Requests after which the state was compared with what it was.
    pub unchanged: u64,
    wrong: u64,
    statuses: BTreeMap<u16, u64>,
    /// Successes by operation.
    succeeded: BTreeMap<&'static str, u64>,
    /// Answer times, in milliseconds, each with how often it was seen.
    took: BTreeMap<u128, u64>,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.accepted += other.accepted;
        self.unchanged += other.unchanged;
        self.wrong += other.wrong;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (id, count) in &other.succeeded {
            *self.succeeded.entry(id).or_default() += count;
        }
        for (millis, count) in &other.took {
            *self.took.entry(*millis).or_default() += count;
        }
    }

    /// A run says something only if many were let in, many were refused and writes were compared.
    pub fn is_telling(&self) -> bool {
        self.accepted * 20 > self.requests && self.wrong * 20 > self.requests && self.unchanged > 0
    }

    fn slowest_but(&self, one_in: u64) -> u128 {
        let mut left = self.requests / one_in;
        for (millis, count) in self.took.iter().rev() {
            if *count > left {
                return *millis;
            }
            left -= count;
        }
        0
    }

    pub fn figures(&self) -> Value {
        json!({
            "requests": self.requests, "accepted": self.accepted, "mustFail": self.wrong, "unchanged": self.unchanged,
            "statuses": self.statuses, "operationsThatSucceeded": self.succeeded.len(),
            "p999Millis": self.slowest_but(1000), "maxMillis": self.took.keys().last(),
        })
    }
}

/// Judges one answer.
pub fn judge(scene: &Scene, form: &Form, reply: &Reply, took: Duration, counts: &mut Counts) {
    let status = reply.status.as_u16();
    counts.requests += 1;
    *counts.statuses.entry(status).or_default() += 1;
    *counts.took.entry(took.as_millis()).or_default() += 1;
    assert!(took < PATIENCE, "an answer took {took:?}");
    no_fault(reply);
    says_what_is_needed(reply);
    nothing_leaks(scene, form, reply);
    if let Some(wrong) = form.wrong {
        counts.wrong += 1;
        assert!(
            !reply.status.is_success(),
            "{status}, although {wrong}: {}",
            reply.text()
        );
    }
    if let Some(place) = form.operation {
        let entry = &scene.app.kernel.registry.entries()[place];
        rights_hold(scene, form, reply, place);
        if reply.status.is_success() {
            counts.accepted += 1;
            *counts.succeeded.entry(entry.meta.id).or_default() += 1;
        }
    }
}

/// 100: no 500; a 503 says why and when to come again. A panic is answered with 500 by the catch-all.
fn no_fault(reply: &Reply) {
    let status = reply.status.as_u16();
    if status == 503 {
        assert!(
            ["unavailable", "audit_unavailable"].contains(&reply.code()),
            "{}",
            reply.text()
        );
        assert!(!reply.header("retry-after").is_empty(), "503 without Retry-After");
        return;
    }
    assert!(status < 500, "{status}: {}", reply.text());
}

/// 109 and 110: a refusal names what would be taken.
fn says_what_is_needed(reply: &Reply) {
    match reply.status.as_u16() {
        401 => assert!(
            reply.header("www-authenticate").starts_with("Bearer"),
            "401 without WWW-Authenticate: {:?}",
            reply.headers
        ),
        405 => assert!(!reply.header("allow").is_empty(), "405 without Allow"),
        _ => {}
    }
}

/// 304, 306 and 309: nothing of the inside, of another organization, or secret.
fn nothing_leaks(scene: &Scene, form: &Form, reply: &Reply) {
    let text = reply.text();
    let was_sent = |word: &str| form.sends(word);
    if reply.status.as_u16() >= 400 {
        for trace in TRACES {
            assert!(!text.contains(trace) || was_sent(trace), "{trace} in {text}");
        }
    }
    if form.caller != "stranger" {
        assert!(
            !text.contains(CANARY) || was_sent(CANARY),
            "another organization's: {text}"
        );
        let ids = scene.foreign.others.values().chain([&scene.foreign.account]);
        // The log names what was asked for in vain, history and the samples of backtests show events as they were sent;
        // policies are named by what people call them.
        let shows_sent = ["/audit/", "/policies/history", "/policies/backtests"];
        let logs = shows_sent.iter().any(|part| form.target.contains(part));
        for id in ids.filter(|id| id.contains('_') && !logs) {
            assert!(
                !text.contains(id.as_str()) || form.sends(id),
                "{id} of another organization in {text}"
            );
        }
    }
    assert!(!text.contains(SECRET), "a stored secret in {text}");
}

/// 305 to 308: who has no right is refused, whatever they ask for.
fn rights_hold(scene: &Scene, form: &Form, reply: &Reply, place: usize) {
    let entry = &scene.app.kernel.registry.entries()[place];
    let (caller, status) = (scene.caller(&form.caller), reply.status.as_u16());
    match caller.name {
        "none" | "garbage" | "broken" | "disabled" => assert!(
            [401, 404, 408, 413, 414, 431].contains(&status),
            "{status} for {}: {}",
            caller.name,
            reply.text()
        ),
        "stranger" => assert!(
            [401, 403, 404, 413, 414, 431, 503].contains(&status),
            "{status} for a stranger: {}",
            reply.text()
        ),
        _ => {}
    }
    let Some(role) = caller.role else { return };
    if let Access::Scoped { roles, .. }
    | Access::ScopedEither { roles, .. }
    | Access::ScopedBoth { roles, .. } = entry.meta.access
        && !roles.contains(&role)
    {
        assert!(
            [403, 404, 413, 414, 431, 503, 401].contains(&status),
            "{status} for {}: {}",
            caller.name,
            reply.text()
        );
    }
    let foreign = samples::names_a_record(entry) && form.names_a_foreign_record(scene);
    assert!(
        !(foreign && reply.status.is_success() && entry.meta.kind == Kind::Write),
        "a foreign record was changed: {}",
        reply.text()
    );
}
