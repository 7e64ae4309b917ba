//! A bypass at the desk: what passes by it, what is recorded of it, and what it is no match for.

use super::servers::server;
use super::{action, bench, block, call, open, registered};
use crate::desk::bench::{Standing, Word};
use crate::desk::frame::Intent;
use crate::desk::latest::Latest;
use crate::quarantine::Quarantine;
use crate::tests::Jumping;
use provost_bundle::{
    BundleBypass, BundleServer, HookMode, OnUnknown, PolicyBundle, Recording, ServerStanding,
};
use provost_hooks::{Client, Mode};
use provost_words::time::{Clock, SystemClock};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn with(clients: &[&str], secs: i64) -> impl FnOnce(&mut PolicyBundle) {
    let clients = clients.iter().map(|client| (*client).to_owned()).collect();
    move |bundle: &mut PolicyBundle| {
        bundle.bypass = vec![BundleBypass {
            id: "byp_1".into(),
            not_after: bundle.issued_at.plus_secs(secs),
            clients,
        }];
    }
}

/// Proves LJ-15.
#[test]
fn what_a_bypass_lets_pass_is_recorded_with_what_policies_say_and_the_rest_is_as_without() {
    let policies = [block("no-shell", &json!({}))];
    for clients in [&[][..], &["codex", "claude_code"][..]] {
        let open = open(
            Some(bench(&policies, with(clients, 3_600))),
            registered(Word::OfAccount),
        );
        let told = open.ask_in(Mode::Enforce, Intent::Judge, &call("Bash"));
        assert_eq!(action(&told), Some("block"));
        assert_eq!(
            told.bypass.as_ref().map(|bypass| bypass.id.as_str()),
            Some("byp_1")
        );
        let entries = open.entries();
        assert_eq!(entries.len(), 2, "{entries:?}");
        for entry in &entries {
            assert_eq!(
                (&entry["basis"], &entry["bypass"], &entry["decision"]["mode"]),
                (&json!("bypass"), &json!("byp_1"), &json!("monitor"))
            );
        }
        assert_eq!(entries[0]["decision"]["action"], "block");
        assert_eq!(entries[0]["decision"]["policyIds"], json!(["no-shell"]));
        // What passes anyway needs none.
        let told = open.ask_in(Mode::Enforce, Intent::Judge, &call("Read"));
        assert_eq!((action(&told), &told.bypass), (Some("allow"), &None));
    }
    let open = open(
        Some(bench(&policies, with(&["codex"], 3_600))),
        registered(Word::OfAccount),
    );
    let told = open.ask_in(Mode::Enforce, Intent::Judge, &call("Bash"));
    assert_eq!(
        (action(&told), &told.bypass),
        (Some("block"), &None),
        "another client"
    );
    assert_eq!(open.entries()[0]["basis"], "judged");
}

/// Proves LJ-15.
#[test]
fn what_would_be_asked_about_passes_by_a_bypass_without_the_server_and_a_denied_server_as_well() {
    // What a policy of the past decides is recorded as what holds.
    let policies = [block("no-shell", &json!({}))];
    let open_past = open(
        Some(bench(&policies, |bundle| {
            with(&[], 3_600)(bundle);
            bundle.record_all = true;
            bundle.record = Recording::All;
        })),
        registered(Word::OfAccount),
    );
    let told = open_past.ask_in(Mode::Enforce, Intent::Judge, &call("Read"));
    assert!(told.bypass.is_some() && told.decided.is_some(), "{told:?}");
    assert!(open_past.entries().iter().all(|entry| entry["bypass"] == "byp_1"));
    let denying = open(
        Some(bench(&[], |bundle| {
            with(&[], 3_600)(bundle);
            bundle.servers = vec![BundleServer {
                key: "npm:evil".into(),
                standing: ServerStanding::Denied,
            }];
        })),
        registered(Word::OfAccount),
    );
    denying.configure(".claude.json", &server("github", "evil"));
    let told = denying.call(Intent::Judge, "github");
    assert_eq!(
        (action(&told), told.bypass.is_some()),
        (Some("block"), true),
        "{told:?}"
    );
    assert_eq!(denying.entries()[0]["decision"]["action"], "block");
}

/// Proves LJ-15.
#[test]
fn no_bypass_counts_on_a_machine_that_is_held_apart_in_monitor_or_where_it_cannot_be_recorded() {
    let policies = [block("no-shell", &json!({}))];
    let open = open(
        Some(bench(&policies, with(&[], 3_600))),
        registered(Word::OfAccount),
    );
    let bypassed = || {
        open.ask_in(Mode::Enforce, Intent::Judge, &call("Bash"))
            .bypass
            .is_some()
    };
    assert!(bypassed());
    for quarantine in [Quarantine::Monitor, Quarantine::Block] {
        open.standing.lock().unwrap().quarantine = Some(quarantine);
        assert!(!bypassed(), "{quarantine:?}");
    }
    open.standing.lock().unwrap().quarantine = None;
    assert!(bypassed());
    open.standing.lock().unwrap().mode = Some(HookMode::Monitor);
    let told = open.ask(Intent::Judge, &call("Bash"));
    assert_eq!(
        (action(&told), &told.bypass),
        (Some("block"), &None),
        "nobody enforces"
    );
    // Nothing is held to by a question that holds.
    open.standing.lock().unwrap().mode = Some(HookMode::Enforce);
    assert!(
        open.ask_in(Mode::Enforce, Intent::Hold, &call("Bash"))
            .bypass
            .is_none()
    );
    open.standing.lock().unwrap().bench = None;
    assert!(!bypassed());
}

/// Proves LJ-15.
#[test]
fn no_clock_no_bundle_and_no_word_of_it_make_a_bypass_last_longer() {
    const HOUR: i64 = 3_600;
    let issued = SystemClock::new().now();
    let at = |secs: i64, booted: i64| {
        let since = Duration::from_secs(booted.unsigned_abs());
        Jumping(Mutex::new((issued.plus_secs(secs), since)))
    };
    let standing = |secs: i64, days: i64, latest| Standing {
        bench: Some(Arc::new(bench(&[], |bundle| {
            bundle.issued_at = issued;
            bundle.not_after = issued.plus_secs(days * 24 * HOUR);
            with(&[], secs)(bundle);
        }))),
        latest,
        ..Standing::default()
    };
    let is_on = |standing: &Standing, clock: &Jumping| standing.bypass(Client::Codex, clock).is_some();
    let an_hour = standing(HOUR, 7, None);
    assert!(is_on(&an_hour, &at(HOUR - 1, 0)) && !is_on(&an_hour, &at(HOUR, 0)));
    // Before its bundle was made.
    assert!(!is_on(&an_hour, &at(-HOUR, 0)));
    // It says a week, or the bundle a day less.
    let week = standing(7 * 24 * HOUR, 30, None);
    assert!(is_on(&week, &at(24 * HOUR - 1, 0)) && !is_on(&week, &at(24 * HOUR, 0)));
    let longer = standing(20 * HOUR, 0, None);
    assert!(!is_on(&longer, &at(1, 0)), "the bundle is out of date");
    // A clock that is set back by less than what makes a bundle old prolongs nothing by that: time went by that nobody sets back.
    let seen = |secs: i64, booted: i64| Some(Latest::new(issued.plus_secs(secs), &at(secs, booted)));
    let watched = standing(HOUR, 7, seen(HOUR - 60, 0));
    assert!(is_on(&watched, &at(HOUR - 60, 30)));
    assert!(!is_on(&watched, &at(HOUR - 300, 60)));
    assert!(!is_on(&watched, &at(0, 60)), "nor by more");
    // What the server's clock is ahead counts.
    let ahead = Standing {
        skew_ms: HOUR * 1_000,
        ..standing(HOUR, 7, None)
    };
    assert!(!is_on(&ahead, &at(0, 0)));
}

/// Proves LJ-12, LJ-15.
#[test]
fn of_nobody_no_bypass_and_no_old_policies_let_anything_pass() {
    let denies = |bundle: &mut PolicyBundle| {
        with(&[], 3_600)(bundle);
        bundle.servers = vec![BundleServer {
            key: "npm:evil".into(),
            standing: ServerStanding::Denied,
        }];
    };
    let of_nobody = open(Some(bench(&[], denies)), registered(Word::Unsaid));
    of_nobody.configure(".claude.json", &server("nice", "evil@1.0.0"));
    let told = of_nobody.call(Intent::Judge, "nice");
    assert_eq!((action(&told), &told.bypass), (Some("block"), &None));
    // The same bypass lets one of the device's people pass.
    let of_account = open(Some(bench(&[], denies)), registered(Word::OfAccount));
    of_account.configure(".claude.json", &server("nice", "evil@1.0.0"));
    assert!(of_account.call(Intent::Judge, "nice").bypass.is_some());
    // What an organization says of policies that are old is about its people as well.
    let policies = [block("no-shell", &json!({}))];
    let old = |bundle: &mut PolicyBundle| {
        bundle.hooks.on_unknown = OnUnknown::Allow;
        (bundle.issued_at, bundle.not_after) = (
            bundle.issued_at.plus_secs(-86_400),
            bundle.issued_at.plus_secs(-3_600),
        );
    };
    for (word, says) in [(Word::Unsaid, None), (Word::OfAccount, Some(OnUnknown::Allow))] {
        let open = open(Some(bench(&policies, old)), registered(word.clone()));
        let told = open.ask_in(Mode::Enforce, Intent::Judge, &call("Read"));
        assert_eq!((&told.decided, told.on_unknown), (&None, says), "{word:?}");
    }
}
