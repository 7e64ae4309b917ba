//! When the server has to be asked, and what holds until then.

use super::{action, bench, block, call, open, past, registered};
use crate::desk::bench::{Bench, Here, Said, Standing, Word};
use crate::desk::frame::Intent;
use crate::desk::latest::Latest;
use crate::desk::servers::ServerOfCall;
use crate::tests::Jumping;
use provost_bundle::HookMode;
use provost_hooks::{Client, Mode};
use provost_policy::Action;
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where nobody knows a server.
const HERE: Here<'static> = Here {
    host: None,
    server_of: &|_| ServerOfCall::default(),
};

/// What a bench says of Ada's call of a tool at an instant.
fn says_at(bench: &Bench, tool: &str, now: Timestamp) -> Said {
    bench.say(
        Client::ClaudeCode,
        &call(tool),
        Some("ada"),
        Mode::Enforce,
        HERE,
        now,
    )
}

fn said(bench: &Bench, tool: &str) -> (Option<Action>, Option<Action>) {
    let said = says_at(bench, tool, SystemClock::new().now());
    let strongest =
        |verdicts: &Option<Vec<_>>| verdicts.as_ref().map(|all| crate::desk::bench::strongest(all));
    (strongest(&said.decided), strongest(&said.held))
}

/// Proves LJ-5.
#[test]
fn an_expired_bundle_lets_nothing_pass_and_refuses_what_it_blocks() {
    let policies = [
        block("no-shell", &json!({})),
        block(
            "ask-first",
            &json!({ "action": "require_approval", "approval": { "autoApproveOnRequest": false },
            "conditions": { "field": "tool.id", "op": "eq", "value": "Write" } }),
        ),
        block(
            "look",
            &json!({ "action": "flag_for_review", "conditions": { "field": "tool.id", "op": "eq", "value": "Edit" } }),
        ),
    ];
    let fresh = bench(&policies, |_| {});
    assert_eq!(said(&fresh, "Read"), (Some(Action::Allow), None));
    assert_eq!(said(&fresh, "Edit"), (Some(Action::FlagForReview), None));
    let old = bench(&policies, |bundle| bundle.not_after = past());
    // A clock that was set back makes nothing young.
    let early = bench(&policies, |bundle| {
        bundle.issued_at = SystemClock::new().now().plus_secs(86_400);
    });
    for expired in [old, early] {
        assert_eq!(said(&expired, "Read"), (None, None));
        assert_eq!(said(&expired, "Edit"), (None, None));
        assert_eq!(said(&expired, "Write"), (None, Some(Action::RequireApproval)));
        assert_eq!(said(&expired, "Bash"), (Some(Action::Block), None));
    }
    let open = open(
        Some(bench(&policies, |bundle| bundle.not_after = past())),
        registered(Word::OfAccount),
    );
    for intent in [Intent::Judge, Intent::Hold] {
        let told = open.ask(intent, &call("Read"));
        assert!(told.decided.is_none() && !told.holds, "{told:?}");
        assert_eq!(action(&open.ask(intent, &call("Bash"))), Some("block"));
    }
    assert!(open.entries().iter().all(|entry| entry["basis"] == "expired"));
}

#[test]
fn what_needs_the_server_is_asked_about_and_holds_to_the_policys_own_action() {
    let policy = block(
        "burst",
        &json!({ "conditions": { "eventCount": { "within": "1h", "where": { "field": "tool.id", "op": "eq", "value": "Read" },
            "op": "gte", "value": 3 } } }),
    );
    let looks_back = bench(std::slice::from_ref(&policy), |_| {});
    // Somebody may look at any event later: none is judged without the server.
    assert!(looks_back.judge().bundle().record_all);
    let (decided, held) = said(&looks_back, "Write");
    assert!(decided.is_none() && held.is_some(), "{decided:?} {held:?}");
    // One that does not say it is taken to be so.
    let unsaid = bench(&[], |bundle| bundle.record_all = true);
    assert_eq!(said(&unsaid, "Read"), (None, Some(Action::Allow)));
}

#[test]
fn an_approval_is_the_servers_and_is_waited_for() {
    let policy = block(
        "ask-first",
        &json!({ "action": "require_approval", "approval": { "autoApproveOnRequest": false } }),
    );
    let open = open(Some(bench(&[policy], |_| {})), registered(Word::OfAccount));
    let told = open.ask(Intent::Judge, &call("Bash"));
    assert!(
        told.decided.is_none() && told.holds && told.may_use_approval,
        "{told:?}"
    );
    assert!(
        open.entries().is_empty(),
        "what the server is asked about it records itself"
    );
    let told = open.ask(Intent::Hold, &call("Bash"));
    assert_eq!(action(&told), Some("require_approval"));
    assert_eq!(open.entries()[0]["basis"], "unanswered");
}

/// Proves LJ-7.
#[test]
fn what_cannot_be_recorded_is_asked_about_and_what_is_refused_stays_refused() {
    let policies = [
        block("no-shell", &json!({})),
        block(
            "look",
            &json!({ "action": "flag_for_review", "conditions": { "field": "tool.id", "op": "eq", "value": "Edit" } }),
        ),
    ];
    let open = open(Some(bench(&policies, |_| {})), registered(Word::OfAccount));
    open.log.lock().unwrap().fill();
    for tool in ["Bash", "Edit"] {
        let told = open.ask(Intent::Judge, &call(tool));
        assert!(told.decided.is_none() && told.holds, "{tool}: {told:?}");
    }
    // What could not be recorded makes what is only counted asked about as well.
    let told = open.ask(Intent::Judge, &call("Read"));
    let again = open.ask(Intent::Judge, &call("Read"));
    assert!(
        told.decided.is_none() || again.decided.is_none(),
        "{told:?} {again:?}"
    );
    assert_eq!(action(&open.ask(Intent::Hold, &call("Bash"))), Some("block"));
    assert_eq!(open.ask(Intent::Hold, &call("Edit")).decided, None);
}

#[test]
fn a_bundle_in_monitor_says_so() {
    let open = open(
        Some(bench(&[block("no-shell", &json!({}))], |bundle| {
            bundle.mode = HookMode::Monitor;
        })),
        registered(Word::OfAccount),
    );
    open.standing.lock().unwrap().mode = Some(HookMode::Monitor);
    let told = open.ask(Intent::Judge, &call("Bash"));
    assert_eq!(
        (action(&told), told.mode),
        (Some("block"), Some(HookMode::Monitor))
    );
    assert_eq!(open.entries()[0]["decision"]["mode"], "monitor");
}

/// Proves LJ-5.
///
/// A bundle of seven days, a desk that has seen the sixth, and a clock that says that it is the first.
#[test]
fn a_clock_that_was_set_back_within_the_life_of_a_bundle_makes_it_no_younger() {
    const DAY: i64 = 86_400;
    let issued = SystemClock::new().now();
    let at = |days: i64, hours: u64| {
        Jumping(Mutex::new((
            issued.plus_secs(days * DAY),
            Duration::from_secs(hours * 3_600),
        )))
    };
    let standing = |latest| Standing {
        bench: Some(Arc::new(bench(&[block("no-shell", &json!({}))], |bundle| {
            bundle.issued_at = issued;
            bundle.not_after = issued.plus_secs(7 * DAY);
        }))),
        latest,
        ..Standing::default()
    };
    let seen = Some(Latest::new(issued.plus_secs(6 * DAY), &at(6, 0)));
    let says = |latest, clock: &Jumping, tool: &str| {
        let standing = standing(latest).by(clock);
        let bench = standing.bench.unwrap();
        let said = says_at(&bench, tool, clock.now());
        (said.decided.is_some(), said.is_expired)
    };
    assert_eq!(says(seen, &at(6, 0), "Read"), (true, false));
    assert_eq!(says(seen, &at(1, 0), "Read"), (false, true));
    assert_eq!(
        says(seen, &at(1, 0), "Bash"),
        (true, true),
        "what it blocks stays blocked"
    );
    // Within a process time goes by that nobody can set back.
    assert_eq!(says(seen, &at(6, 1), "Read"), (false, true));
    assert_eq!(says(seen, &at(7, 23), "Read"), (true, false));
    // Where nothing is known the bundle's own beginning counts.
    assert_eq!(says(None, &at(1, 0), "Read"), (true, false));
    assert_eq!(says(None, &at(-1, 0), "Read"), (false, true));
    // What the server corrects is not behind.
    let clock = at(1, 0);
    let corrected = Standing {
        skew_ms: 5 * DAY * 1_000,
        ..standing(seen)
    };
    let bench = corrected.by(&clock).bench.unwrap();
    let now = clock.now().plus_ms(corrected.skew_ms);
    let said = bench.say(
        Client::ClaudeCode,
        &call("Read"),
        Some("ada"),
        Mode::Enforce,
        HERE,
        now,
    );
    assert!(!said.is_expired);
}
