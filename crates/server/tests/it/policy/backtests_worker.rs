//! Backtests at work: on a recorded past, with workers that are stopped, frozen, or two at a time (R17, R18).

use crate::policy::backtests::content;
use crate::support::{App, Dice, each, workload};
use provost_areas_policy::backtests;
use provost_areas_policy::history::{self, Durability, EventId, NewEvent};
use provost_backtest::record::OwnedRecord;
use provost_kernel::db::{Access, Call, Conn};
use provost_kernel::kernel::Extras;
use provost_kernel::params;
use provost_kernel::supervisor::Supervisor;
use provost_kernel::time::ManualClock;
use provost_policy::{Occasion, sha256_hex};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RUNS: &str = "/policies/backtests";
/// Far beyond anything that works.
const PATIENCE: Duration = Duration::from_mins(2);
const TOOLS: [&str; 4] = ["mail", "call", "shell", "search"];

/// A server's worker, stopped at the end.
pub struct Worker(Supervisor);

impl Worker {
    pub fn start(app: &App) -> Self {
        let supervisor = Supervisor::new();
        backtests::start(&app.kernel, &supervisor).unwrap();
        Self(supervisor)
    }

    pub async fn stop(self) {
        let overdue = self.0.stop(PATIENCE).await;
        assert!(overdue.is_empty(), "{overdue:?}");
    }
}

/// Records `count` events of the hour before the first one, of some users and tools.
pub async fn record(app: &App, count: i64) {
    let begin = crate::support::START.as_ms() - 3_600_000;
    let event = |n: i64| {
        let at = begin + n * 3_600_000 / count;
        let tool = TOOLS[usize::try_from(n % 4).unwrap()];
        // No two events are alike: a module is asked about each.
        let attributes = json!({
            "identity.user_id": format!("user {}", n % 7), "tool.id": tool, "tool.input.command": format!("run {n}"),
        });
        let attributes = attributes.as_object().unwrap();
        NewEvent {
            id: EventId::at(at, n.unsigned_abs(), 7).as_str().to_owned(),
            record: OwnedRecord::read(at, Occasion::PreTool, attributes, &[]).unwrap(),
        }
    };
    let mut n = 0;
    while n < count {
        let some = (n..count.min(n + 5_000)).map(event).collect();
        let recorder = history::recorder(&app.kernel);
        recorder
            .append(&app.org(), some, Durability::Durable)
            .await
            .unwrap();
        n += 5_000;
    }
}

/// A question over all of the recorded past.
#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
pub fn asking(candidate: Value) -> Value {
    json!({
        "candidate": candidate,
        "window": { "from": "2026-11-19T00:00:00.000Z", "to": "2026-11-20T03:15:00.000Z" },
    })
}

fn quick() -> Value {
    json!({ "kind": "inline", "family": "content", "definition": content("no-mail", "block", "mail") })
}

/// A candidate that costs some microseconds an event, and blocks the shell.
pub fn slow() -> Value {
    let module = "package forge.content\nimport rego.v1\nmatch := {\"matched\": true} if input.tool.id == \"shell\"\n\
        match := {\"matched\": false} if input.tool.id != \"shell\"";
    let logic = json!({
        "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
        "module": module, "moduleSha256": sha256_hex(module.as_bytes()),
    });
    let definition = json!({
        "id": "no-shell", "name": "No shell", "enabled": true, "action": "block", "evaluateOn": ["pre_tool"],
        "logic": logic, "acknowledgeBroadScope": true,
    });
    json!({ "kind": "inline", "family": "content", "definition": definition })
}

pub async fn ask(app: &App, body: Value) -> String {
    let made = app.write("POST", RUNS, body).await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

async fn read(app: &App, id: &str) -> Value {
    app.get(&format!("{RUNS}/{id}")).await.ok().clone()
}

pub async fn cancel(app: &App, id: &str) -> crate::support::Reply {
    app.write("POST", &format!("{RUNS}/{id}/cancel"), json!({ "confirm": true }))
        .await
}

/// Waits until something is so of a run.
#[expect(clippy::disallowed_methods, reason = "a test waits for another thread")]
async fn until(app: &App, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let run = read(app, id).await;
        if is_so(&run) {
            return run;
        }
        assert!(begin.elapsed() < PATIENCE, "{run}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_over(run: &Value) -> bool {
    run["finishedAt"].is_string()
}

pub async fn ended(app: &App, id: &str) -> Value {
    until(app, id, is_over).await
}

/// How often an event was told of a run.
async fn told(app: &App, id: &str, kind: &str) -> usize {
    let events = app.events(0).await;
    let of_run = events
        .iter()
        .filter(|(told, data)| told == kind && data["runId"] == id);
    of_run.count()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// The sums of D9.4.
fn adds_up(results: &Value) {
    let of = |name: &str| count(&results[name]);
    let parts = of("unchanged") + of("changed") + of("errors") + of("unknown");
    assert_eq!(parts, of("eventsEvaluated"), "{results}");
    let by_change = results["byChange"].as_object().unwrap().values().map(count);
    assert_eq!(by_change.sum::<u64>(), of("changed"), "{results}");
    let days = results["byDay"].as_array().unwrap();
    assert_eq!(
        days.iter().map(|day| count(&day["changed"])).sum::<u64>(),
        of("changed")
    );
}

/// Proves RG-4.
#[test]
fn a_module_in_a_run_is_unknown_only_for_what_it_reads() {
    each("module_unknown", |app: Arc<App>| async move {
        // Nobody knows the groups of these users, and of the second event not even the tool.
        let begin = crate::support::START.as_ms() - 3_600_000;
        let events = (0..400).map(|n| {
            let at = begin + n * 1_000;
            let attributes = json!({ "identity.user_id": format!("stranger {n}"), "tool.id": TOOLS[usize::try_from(n % 4).unwrap()] });
            let mut attributes = attributes.as_object().unwrap().clone();
            let mut missing = vec!["identity.group_ids"];
            if n % 100 == 1 {
                attributes.remove("tool.id");
                missing.push("tool.id");
            }
            NewEvent {
                id: EventId::at(at, n.unsigned_abs(), 8).as_str().to_owned(),
                record: OwnedRecord::read(at, Occasion::PreTool, &attributes, &missing).unwrap(),
            }
        });
        let recorder = history::recorder(&app.kernel);
        recorder
            .append(&app.org(), events.collect(), Durability::Durable)
            .await
            .unwrap();
        let worker = Worker::start(&app);
        let id = ask(&app, asking(slow())).await;
        let run = ended(&app, &id).await;
        assert_eq!(run["status"], "succeeded", "{run}");
        let results = &run["results"];
        adds_up(results);
        let of = |name: &str| count(&results[name]);
        assert_eq!(
            (of("eventsEvaluated"), of("unknown"), of("changed")),
            (400, 4, 100),
            "{results}"
        );
        worker.stop().await;
    });
}

#[test]
fn a_run_says_what_would_have_changed() {
    each("succeeds", |app: Arc<App>| async move {
        record(&app, 4_000).await;
        let worker = Worker::start(&app);
        let id = ask(&app, asking(quick())).await;
        let run = ended(&app, &id).await;
        assert_eq!(run["status"], "succeeded", "{run}");
        assert_eq!(
            run["progress"],
            json!({ "eventsProcessed": 4000, "eventsTotal": 4000, "percent": 100 })
        );
        assert_eq!(
            (&run["attempt"], &run["partial"], &run["truncated"]),
            (&json!(1), &json!(false), &json!(false))
        );
        let results = &run["results"];
        adds_up(results);
        assert_eq!(
            (count(&results["eventsEvaluated"]), count(&results["changed"])),
            (4000, 1000)
        );
        assert_eq!(results["byChange"], json!({ "allow_to_block": 1000 }));
        assert_eq!(
            results["byTool"][0],
            json!({ "tool": "mail", "changed": 1000, "evaluated": 1000 })
        );
        assert_eq!(
            results["byPolicy"],
            json!([
                { "policyId": "no-mail", "family": "content", "matched": 1000, "changed": 1000 },
            ])
        );
        assert_eq!(results["bySubject"].as_array().unwrap().len(), 7);
        let samples = results["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 7);
        for sample in samples {
            assert_eq!(
                (&sample["tool"], &sample["action"]),
                (&json!("mail"), &json!("pre_tool"))
            );
            assert_eq!(
                sample["baseline"],
                json!({ "decision": "allow", "policyIds": [] })
            );
            assert_eq!(
                sample["candidate"],
                json!({ "decision": "block", "policyIds": ["no-mail"] })
            );
        }
        for kind in ["queued", "started", "succeeded"] {
            assert_eq!(
                told(&app, &id, &format!("policy.backtest.{kind}")).await,
                1,
                "{kind}"
            );
        }
        // The same question has the same answer, and another record.
        let again = ended(&app, &ask(&app, asking(quick())).await).await;
        for same in ["results", "resultDigest", "datasetDigest", "engineVersion"] {
            assert_eq!(again[same], run[same], "{same}");
        }
        assert_ne!(again["id"], run["id"]);
        let refused = cancel(&app, &id).await;
        refused.refused(409, "already_terminal");
        assert_eq!(refused.json["status"], "succeeded");
        assert_eq!(read(&app, &id).await, run);

        let listed = app.get(&format!("{RUNS}?status=succeeded")).await;
        let newest = &listed.ok()["backtests"][0];
        assert!(newest["results"].get("samples").is_none());
        assert_eq!(newest["results"]["changed"], 1000);
        let path = format!("{RUNS}/{id}/samples");
        let all = app.get(&path).await;
        assert_eq!(all.ok()["samples"], results["samples"]);
        let subject = samples[3]["subjectId"].as_str().unwrap().replace(' ', "%20");
        let one = app
            .get(&format!(
                "{path}?subjectId={subject}&tool=mail&change=allow_to_block"
            ))
            .await;
        assert_eq!(one.ok()["samples"], json!([samples[3]]));
        let none = app.get(&format!("{path}?change=block_to_allow")).await;
        assert_eq!(none.ok()["samples"], json!([]));
        let first = app.get(&format!("{path}?limit=4")).await;
        let cursor = first.ok()["nextCursor"].as_str().unwrap();
        let rest = app.get(&format!("{path}?limit=4&cursor={cursor}")).await;
        assert_eq!(first.json["samples"].as_array().unwrap(), &samples[..4]);
        assert_eq!(rest.ok()["samples"].as_array().unwrap(), &samples[4..]);
        assert!(rest.json.get("nextCursor").is_none());
        app.get(&format!("{path}?limit=4&tool=mail&cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        worker.stop().await;
    });
}

/// Damages the chunks with so many events, and returns the names of all.
fn damage(app: &App, events: i64) -> Vec<String> {
    let (location, org) = (app.location(), app.organization.clone());
    std::thread::scope(|scope| {
        let work = move || {
            let mut conn = Conn::open(&location, Access::Write).unwrap();
            let bytes: &[u8] = b"no chunk";
            let damage = Call {
                statement: &DAMAGE,
                params: params![org.as_str(), events, bytes].to_vec(),
            };
            conn.begin(&[damage]).unwrap();
            conn.commit(&[]).unwrap();
            conn.read(|tx| tx.query(&NAMES, params![org.as_str()], |row| row.get(0)))
                .unwrap()
        };
        scope.spawn(work).join().unwrap()
    })
}

/// Proves BT-10.
#[test]
fn what_could_not_be_read_is_named_and_too_much_of_it_is_a_failure() {
    each("backtest_unreadable", |app: Arc<App>| async move {
        record(&app, 4_000).await;
        record(&app, 20).await;
        let worker = Worker::start(&app);
        let id = ask(&app, asking(quick())).await;
        let whole = ended(&app, &id).await;
        assert_eq!(
            (&whole["status"], &whole["partial"]),
            (&json!("succeeded"), &json!(false))
        );
        assert_eq!(whole["results"]["unreadable"], Value::Null);
        let names = damage(&app, 20);
        let id = ask(&app, asking(quick())).await;
        let some = ended(&app, &id).await;
        assert_eq!(
            (&some["status"], &some["partial"]),
            (&json!("succeeded"), &json!(true)),
            "{some}"
        );
        assert_eq!(some["results"]["errors"], 20);
        assert_eq!(
            some["results"]["unreadable"],
            json!([{ "name": names[1], "events": 20 }])
        );
        adds_up(&some["results"]);
        assert_ne!(some["resultDigest"], whole["resultDigest"]);
        assert_eq!(told(&app, &id, "policy.backtest.succeeded").await, 1);
        damage(&app, 4_000);
        let id = ask(&app, asking(quick())).await;
        let none = ended(&app, &id).await;
        assert_eq!(
            (&none["status"], &none["partial"]),
            (&json!("failed"), &json!(true)),
            "{none}"
        );
        assert_eq!(none["failure"]["code"], "unreadable_history");
        assert_eq!(none["results"]["errors"], 4_020);
        assert_eq!(
            none["results"]["unreadable"],
            json!([{ "name": names[0], "events": 4_000 }, { "name": names[1], "events": 20 }])
        );
        assert_eq!(none["resultDigest"], Value::Null);
        assert_eq!(told(&app, &id, "policy.backtest.failed").await, 1);
        assert_eq!(told(&app, &id, "policy.backtest.succeeded").await, 0);
        worker.stop().await;
    });
}

/// Proves BT-5.
#[test]
fn what_a_limit_leaves_out_is_said() {
    each("cut", |app: Arc<App>| async move {
        record(&app, 60_000).await;
        let worker = Worker::start(&app);
        let mut body = asking(quick());
        body["limits"] = json!({ "maxEvents": 59_999 });
        let cut = ended(&app, &ask(&app, body).await).await;
        assert_eq!(
            (&cut["status"], &cut["truncated"], &cut["truncatedBy"]),
            (&json!("succeeded"), &json!(true), &json!("events"))
        );
        assert_eq!(count(&cut["results"]["eventsEvaluated"]), 59_999);
        assert!(cut["resultDigest"].is_string());
        let mut body = asking(slow());
        body["limits"] = json!({ "maxDurationSeconds": 1 });
        let id = ask(&app, body).await;
        // The clock goes on meanwhile, so that no machine is fast enough to end within the second.
        let ticks = async {
            loop {
                app.advance(1);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let late = tokio::select! { late = ended(&app, &id) => late, () = ticks => unreachable!() };
        assert_eq!(
            (&late["status"], &late["truncated"], &late["truncatedBy"]),
            (&json!("succeeded"), &json!(true), &json!("duration"))
        );
        assert!(late.get("resultDigest").is_none(), "{late}");
        adds_up(&late["results"]);
        assert!(count(&late["results"]["eventsEvaluated"]) < 60_000, "{late}");
        let mut body = asking(quick());
        body["filters"] = json!({ "tools": ["mail"], "subjectIds": ["user 0", "user 1"] });
        let some = ended(&app, &ask(&app, body).await).await;
        let results = &some["results"];
        assert_eq!(results["eventsEvaluated"], results["changed"]);
        assert_eq!(results["bySubject"].as_array().unwrap().len(), 2);
        worker.stop().await;
    });
}

/// Proves BT-7.
#[test]
fn a_run_leaves_everything_else_as_it_is() {
    each("still", |app: Arc<App>| async move {
        record(&app, 4_000).await;
        let definition = content("kept", "nudge", "mail");
        app.write("POST", "/content-policies", json!({ "definition": definition }))
            .await
            .ok();
        let before = standing(&app).await;
        assert!(before.len() >= 2, "{}", before.len());
        let worker = Worker::start(&app);
        let candidates = [quick(), slow(), json!({ "kind": "set", "policies": [] })];
        for candidate in candidates {
            let run = ended(&app, &ask(&app, asking(candidate)).await).await;
            assert_eq!(run["status"], "succeeded", "{run}");
        }
        let canceled = ask(&app, asking(slow())).await;
        cancel(&app, &canceled).await.ok();
        worker.stop().await;
        assert_eq!(standing(&app).await, before);
    });
}

/// The bytes of every chunk, and the digest of the live set.
async fn standing(app: &App) -> Vec<(String, Vec<u8>)> {
    let org = app.organization.clone();
    let rows = app.kernel.read_system(move |tx| {
        let params = provost_kernel::params![org.as_str()];
        let mut rows = tx.query(&CHUNKS, params, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.extend(tx.query(&VERSIONS, params, |row| Ok((row.get(0)?, Vec::new())))?);
        Ok(rows)
    });
    rows.await.unwrap()
}

provost_kernel::statements! {
    /// Damages the chunks with so many events.
    DAMAGE = "UPDATE history_chunks SET content = ?3 WHERE organization_id = ?1 AND event_count = ?2";
    /// The names of the chunks, those with the most events first.
    NAMES = "SELECT id FROM history_chunks WHERE organization_id = ?1 ORDER BY event_count DESC, id";
    /// The recorded events, as they lie there.
    CHUNKS = "SELECT id, content FROM history_chunks WHERE organization_id = ?1 ORDER BY sequence";
    /// The versions of the policy set.
    VERSIONS = "SELECT digest FROM policy_set_versions WHERE organization_id = ?1 ORDER BY sequence";
    /// Somebody tampers with what a run asks.
    TAMPER = "UPDATE backtest_questions SET changes = '[]' WHERE organization_id = ?1 AND backtest_id = ?2";
}

/// Proves BT-6.
#[test]
fn a_run_that_cannot_be_judged_fails() {
    each("fails", |app: Arc<App>| async move {
        record(&app, 10).await;
        let id = ask(&app, asking(quick())).await;
        let (run, org) = (id.clone(), app.org());
        let tamper = app.kernel.system(org, None, move |ctx| {
            let org = ctx.org();
            ctx.execute(&TAMPER, provost_kernel::params![org, run.as_str()])
                .map(drop)
        });
        tamper.await.unwrap();
        let worker = Worker::start(&app);
        let run = ended(&app, &id).await;
        assert_eq!(
            (&run["status"], &run["failure"]["code"]),
            (&json!("failed"), &json!("internal"))
        );
        assert_eq!((&run["partial"], run.get("results")), (&json!(false), None));
        assert_eq!(told(&app, &id, "policy.backtest.failed").await, 1);
        let refused = cancel(&app, &id).await;
        refused.refused(409, "already_terminal");
        assert_eq!(refused.json["status"], "failed");
        worker.stop().await;
    });
}

/// Proves BT-1, BT-2.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test measures how soon a worker stops"
)]
fn cancel_at_any_moment_ends_a_run_once_and_frees_its_worker() {
    each("cancels", |app: Arc<App>| async move {
        // Long enough that a cancel meets every part of a run's life: waiting, being claimed, between two batches,
        // and while its end is committed.
        record(&app, 6_000).await;
        let worker = Worker::start(&app);
        let mut dice = Dice::new("cancels");
        let whole = ended(&app, &ask(&app, asking(slow())).await).await;
        assert_eq!(whole["status"], "succeeded", "{whole}");
        let begin = Instant::now();
        ended(&app, &ask(&app, asking(slow())).await).await;
        // A quarter longer, so that few cancels are enough to meet a run that is over.
        let life = usize::try_from(begin.elapsed().as_micros()).unwrap() * 5 / 4 + 20_000;
        let (mut canceled, mut succeeded, mut waits, mut runs) = (0, 0, Vec::new(), Vec::new());
        for _ in 0..workload("PROVOST_TEST_CANCELS", 40, 100) {
            let id = ask(&app, asking(slow())).await;
            tokio::time::sleep(Duration::from_micros(dice.below(life) as u64)).await;
            let reply = cancel(&app, &id).await;
            let begin = Instant::now();
            let run = read(&app, &id).await;
            match reply.status.as_u16() {
                200 => {
                    canceled += 1;
                    // A module reads content, and the answer of a cancel has no more than totals of that.
                    assert_eq!(
                        (&reply.json["id"], &run["status"]),
                        (&run["id"], &json!("canceled"))
                    );
                    assert_eq!(reply.json["finishedAt"], run["finishedAt"]);
                    while backtests::at_work(&app.kernel) > 0 {
                        assert!(begin.elapsed() < PATIENCE);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    waits.push(begin.elapsed());
                    if let Some(results) = run.get("results") {
                        adds_up(results);
                    }
                    assert_eq!(run["partial"], run.get("results").is_some());
                }
                409 => {
                    succeeded += 1;
                    assert_eq!(
                        (&reply.json["status"], &run["status"]),
                        (&json!("succeeded"), &json!("succeeded"))
                    );
                    assert_eq!(run["resultDigest"], whole["resultDigest"]);
                }
                other => panic!("{other} {}", reply.text()),
            }
            // Whatever a worker wrote after that, the record is the same.
            assert_eq!(read(&app, &id).await, run);
            runs.push(id);
        }
        let events = app.events(0).await;
        let ends = [
            "policy.backtest.canceled",
            "policy.backtest.succeeded",
            "policy.backtest.failed",
        ];
        for id in runs {
            let of_run = events.iter().filter(|(_, data)| data["runId"] == id.as_str());
            assert_eq!(
                of_run.filter(|(kind, _)| ends.contains(&kind.as_str())).count(),
                1,
                "{id}"
            );
        }
        waits.sort_unstable();
        let p99 = waits[waits.len() * 99 / 100];
        eprintln!(
            "canceled {canceled}, succeeded {succeeded}, idle after {p99:?} (p99) and {:?}",
            waits.last()
        );
        assert!(canceled > 0 && succeeded > 0, "{canceled} {succeeded}");
        // How fast is a figure of a quiet machine, printed above; that a worker is free in the end is asserted.
        assert!(p99 <= Duration::from_secs(10), "{p99:?}");
        for status in ["queued", "running"] {
            let stuck = app.get(&format!("{RUNS}?status={status}")).await;
            assert_eq!(stuck.ok()["backtests"], json!([]));
        }
        worker.stop().await;
    });
}

/// The record of a canceled run is final whatever its worker does; this is about the worker.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test compares two durations of the same machine"
)]
fn a_worker_leaves_a_canceled_run_long_before_its_end() {
    each("left", |app: Arc<App>| async move {
        record(&app, 60_000).await;
        let worker = Worker::start(&app);
        let begin = Instant::now();
        let whole = ended(&app, &ask(&app, asking(slow())).await).await;
        let life = begin.elapsed();
        assert_eq!(whole["status"], "succeeded", "{whole}");
        // The machine may halt for a moment; a worker that goes on to the end takes the whole time every time.
        let mut soonest = life;
        for _ in 0..3 {
            let id = ask(&app, asking(slow())).await;
            until(&app, &id, |_| backtests::at_work(&app.kernel) > 0).await;
            let begin = Instant::now();
            cancel(&app, &id).await.ok();
            while backtests::at_work(&app.kernel) > 0 {
                assert!(begin.elapsed() < PATIENCE);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            soonest = soonest.min(begin.elapsed());
        }
        assert!(soonest < life / 3, "{soonest:?} of {life:?}");
        worker.stop().await;
    });
}

/// Proves BT-5.
#[test]
fn a_server_that_stops_leaves_its_run_to_the_next() {
    each("stops", |app: Arc<App>| async move {
        record(&app, 60_000).await;
        let worker = Worker::start(&app);
        let whole = ended(&app, &ask(&app, asking(slow())).await).await;
        let id = ask(&app, asking(slow())).await;
        until(&app, &id, |run| run["status"] == "running").await;
        worker.stop().await;
        let left = read(&app, &id).await;
        assert_eq!(
            (&left["status"], &left["attempt"]),
            (&json!("running"), &json!(1)),
            "{left}"
        );
        // The lease was given back: no time has to pass.
        for attempt in 2..=4 {
            let worker = Worker::start(&app);
            until(&app, &id, |run| run["attempt"] == attempt).await;
            if attempt == 4 {
                let run = ended(&app, &id).await;
                assert_eq!(run["status"], "succeeded", "{run}");
                assert_eq!(run["resultDigest"], whole["resultDigest"]);
                assert_eq!(run["results"], whole["results"]);
            }
            worker.stop().await;
        }
        assert_eq!(told(&app, &id, "policy.backtest.started").await, 1);
        assert_eq!(told(&app, &id, "policy.backtest.succeeded").await, 1);
        // The fifth time is one too many.
        let id = ask(&app, asking(slow())).await;
        for attempt in 1..=4 {
            let worker = Worker::start(&app);
            until(&app, &id, |run| run["attempt"] == attempt).await;
            worker.stop().await;
        }
        let worker = Worker::start(&app);
        let run = ended(&app, &id).await;
        assert_eq!(
            (&run["status"], &run["failure"]["code"]),
            (&json!("failed"), &json!("interrupted")),
            "{run}"
        );
        assert_eq!(told(&app, &id, "policy.backtest.failed").await, 1);
        worker.stop().await;
    });
}

/// Proves BT-4.
#[test]
fn a_worker_that_was_overtaken_writes_nothing_more() {
    each("overtaken", |app: Arc<App>| async move {
        record(&app, 60_000).await;
        // To a server whose clock is ahead, every lease of the first one has ended: as if the first one were frozen.
        let ahead = Arc::new(ManualClock::new(app.now().plus_secs(11)));
        let other = app.beside(Vec::new(), ahead, app.kernel.settings.clone(), app.location());
        let worker = Worker::start(&app);
        let whole = ended(&app, &ask(&app, asking(slow())).await).await;
        let id = ask(&app, asking(slow())).await;
        until(&app, &id, |run| run["status"] == "running").await;
        let overtaker = Worker::start(&other);
        let taken = until(&app, &id, |run| run["attempt"] == 2 || is_over(run)).await;
        assert_eq!(taken["attempt"], 2, "{taken}");
        let run = ended(&app, &id).await;
        assert_eq!(run["status"], "succeeded", "{run}");
        assert_eq!(
            (&run["resultDigest"], &run["results"]),
            (&whole["resultDigest"], &whole["results"])
        );
        for kind in ["started", "succeeded"] {
            assert_eq!(
                told(&app, &id, &format!("policy.backtest.{kind}")).await,
                1,
                "{kind}"
            );
        }
        worker.stop().await;
        overtaker.stop().await;
        assert_eq!(read(&app, &id).await, run);
        other.kernel.stop().await;
    });
}

/// Proves BT-4.
#[test]
fn a_run_is_worked_on_by_one_of_two_servers() {
    each("two", |app: Arc<App>| async move {
        record(&app, 20_000).await;
        let other = app.restarted(Extras::default()).unwrap();
        let workers = [Worker::start(&app), Worker::start(&other)];
        let mut runs = Vec::new();
        for _ in 0..12 {
            runs.push(ask(&app, asking(slow())).await);
        }
        let mut most = 0;
        for id in &runs {
            loop {
                let running = app.get(&format!("{RUNS}?status=running")).await;
                most = most.max(running.ok()["backtests"].as_array().unwrap().len());
                if is_over(&read(&app, id).await) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        // An organization's runs, whoever works on them.
        assert!(most <= 2, "{most}");
        let mut digests = Vec::new();
        for id in &runs {
            let run = read(&app, id).await;
            assert_eq!(
                (&run["status"], &run["attempt"]),
                (&json!("succeeded"), &json!(1)),
                "{run}"
            );
            assert_eq!(told(&app, id, "policy.backtest.started").await, 1);
            digests.push(run["resultDigest"].clone());
        }
        digests.dedup();
        assert_eq!(digests.len(), 1);
        for worker in workers {
            worker.stop().await;
        }
        other.kernel.stop().await;
    });
}
