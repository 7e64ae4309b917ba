//! Modules that take long or fail: bounded time, their own action, and a server that lives (DE-5, DE-8).

#![expect(clippy::disallowed_methods, reason = "a test measures how long others wait")]

use super::{ask, call, content, decide_one, policy, rego};
use crate::support::{App, START, each};
use provost_kernel::Timestamp;
use provost_kernel::time::{Clock, SystemClock};
use provost_policy::Family;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps without an end in sight: 40^5 of them.
const LOOP: &str = "package forge.content\n\
    import rego.v1\n\
    default match := {\"matched\": false}\n\
    list := [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40]\n\
    match := {\"matched\": true} if {\n\
    some a in list\nsome b in list\nsome c in list\nsome d in list\nsome e in list\na + b + c + d + e == 1000\n}\n";

const MATCHES: &str = "package forge.content\nimport rego.v1\n\
    default match := {\"matched\": false}\n\
    match := {\"matched\": true, \"reasonCode\": \"called\"} if input.tool.id == \"t\"\n";

/// A clock that is some milliseconds further at each look: what is judged takes as long as somebody looks at it.
#[derive(Default)]
struct SteppingClock(AtomicU64);

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        START
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(5 * self.0.fetch_add(1, Ordering::SeqCst))
    }
}

#[test]
fn native_policies_have_two_seconds_for_the_events_of_a_request() {
    each("decide_native", |app: Arc<App>| async move {
        policy(&app, Family::Content, content("native", "block", &json!({}))).await;
        let server = app.beside(
            Vec::new(),
            Arc::new(SteppingClock::default()),
            app.kernel.settings.clone(),
            app.location(),
        );
        let events = |count: usize| json!({ "events": vec![call(&json!({ "tool.id": "t" })); count] });
        let reply = ask(&server, events(1_000)).await;
        reply.refused(503, "unavailable");
        assert!(
            reply.text().contains("longer than two seconds"),
            "{}",
            reply.text()
        );
        // No half of an answer is given out, and the next request has its own two seconds.
        let reply = ask(&server, events(50)).await;
        let decisions = reply.ok()["decisions"].as_array().unwrap().clone();
        assert_eq!(decisions.len(), 50);
        assert!(decisions.iter().all(|one| one["action"] == "block"));
        server.kernel.stop().await;
    });
}

/// Proves DE-5, DE-8.
#[test]
fn a_module_that_loops_counts_as_matched_within_bounded_time() {
    each("decide_loops", |app: Arc<App>| async move {
        for n in 0..40 {
            policy(
                &app,
                Family::Content,
                rego(&format!("loop-{n}"), &format!("{LOOP}# {n}\n")),
            )
            .await;
        }
        policy(&app, Family::Content, content("native", "redact", &json!({}))).await;
        let events = vec![call(&json!({ "tool.id": "t" })); 200];
        // The limit is one of time: this server has a clock that goes.
        let server = app.beside(
            Vec::new(),
            Arc::new(SystemClock::new()),
            app.kernel.settings.clone(),
            app.location(),
        );
        let start = Instant::now();
        let (looping, reading) = tokio::join!(ask(&server, json!({ "events": events })), async {
            // Who reads meanwhile is not kept waiting: each read is answered before the decisions are.
            let mut slowest = Duration::ZERO;
            for _ in 0..20 {
                let start = Instant::now();
                server.get("/service-accounts").await.ok();
                slowest = slowest.max(start.elapsed());
            }
            slowest
        });
        let took = start.elapsed();
        // The limit is two seconds, and one module may be at work when it comes; the rest is a slow machine's.
        assert!(took < Duration::from_secs(15), "{took:?}");
        assert!(reading < took, "a read took {reading:?} of {took:?}");
        for decision in looping.ok()["decisions"].as_array().unwrap() {
            assert_eq!(
                (&decision["action"], &decision["unknown"]),
                (&json!("block"), &json!(true))
            );
            let reasons = decision["reasons"].as_array().unwrap();
            assert_eq!(reasons.len(), 41);
            for reason in reasons {
                let is_native = reason["policyId"] == "native";
                let expected = if is_native { "matched" } else { "evaluation_failed" };
                assert_eq!(reason["reason"], expected);
            }
        }
        server.get("/service-accounts").await.ok();
        server.kernel.stop().await;
    });
}

#[test]
fn a_module_says_why_in_its_own_word() {
    each("decide_rego", |app: Arc<App>| async move {
        policy(&app, Family::Content, rego("r", MATCHES)).await;
        let decision = decide_one(&app, &json!({ "tool.id": "t" })).await;
        assert_eq!(
            (&decision["action"], &decision["unknown"]),
            (&json!("block"), &json!(false))
        );
        assert_eq!(decision["reasons"][0]["reasonCode"], "called");
        assert_eq!(
            decide_one(&app, &json!({ "tool.id": "u" })).await["action"],
            "allow"
        );
    });
}
