//! Two machines that have one key: an image that was copied, a disk that was put back.

use crate::areas::directory::run_jobs;
use crate::areas::fleet::{Machine, beat_of, enrol, enrolment_token, new_key, proof_of_a_key};
use crate::support::{App, Reply, each};
use serde_json::{Value, json};
use std::sync::Arc;

/// Calls when the next heartbeat is kept.
async fn call(app: &App, machine: &Machine, counter: i64, run: &str) -> Reply {
    app.advance(10);
    let path = format!("/devices/{}/heartbeat", machine.id);
    let call = app.request("POST", &path).token(&machine.token);
    call.json(beat_of(counter, run)).send().await
}

async fn tamper(app: &App, machine: &Machine) -> Value {
    let path = format!("/devices/{}", machine.id);
    app.get(&path).await.ok()["device"]["tamper"].clone()
}

async fn fresh(app: &App) -> Machine {
    let (_, secret) = enrolment_token(app, json!({})).await;
    enrol(app, &secret).await
}

async fn told(app: &App) -> Vec<Value> {
    let events = app.events(0).await.into_iter();
    let told = events.filter(|(kind, _)| kind == "fleet.device.cloned");
    told.map(|(_, data)| data).collect()
}

/// Proves FL-5.
#[test]
fn a_copy_that_always_calls_right_behind_the_machine_is_noticed() {
    each("fleet_copies_early", |app: Arc<App>| async move {
        let laptop = fresh(&app).await;
        let early = async |counter: i64| {
            let path = format!("/devices/{}/heartbeat", laptop.id);
            let call = app.request("POST", &path).token(&laptop.token);
            call.json(beat_of(counter, "one")).send().await.ok().clone()
        };
        call(&app, &laptop, 7, "one").await.ok();
        early(8).await;
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        early(7).await;
        let seen = tamper(&app, &laptop).await;
        assert_eq!(seen["reason"], "counter_back");
        // It is said and written once, however often both go on within ten seconds.
        app.advance(9);
        early(7).await;
        assert_eq!((tamper(&app, &laptop).await, told(&app).await.len()), (seen, 1));
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_copy_that_counts_behind_is_noticed_and_both_go_on() {
    each("fleet_copies", |app: Arc<App>| async move {
        let laptop = fresh(&app).await;
        // The image was taken at three; the copy has the key, the token and the counter.
        for counter in 1..=3 {
            call(&app, &laptop, counter, "one").await.ok();
        }
        let copy = laptop.clone();
        for counter in 4..=6 {
            app.advance(1);
            call(&app, &laptop, counter, "one").await.ok();
        }
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        call(&app, &copy, 4, "two").await.ok();
        let seen = tamper(&app, &laptop).await;
        assert_eq!(
            (&seen["state"], &seen["reason"]),
            (&json!("suspected"), &json!("counter_back"))
        );
        // It is said once, and both go on.
        for counter in 5..=9 {
            app.advance(1);
            call(&app, &copy, counter, "two").await.ok();
            call(&app, &laptop, counter + 2, "one").await.ok();
        }
        assert_eq!(tamper(&app, &laptop).await, seen);
        let told = told(&app).await;
        assert_eq!(told, [json!({ "deviceId": laptop.id, "reason": "counter_back" })]);
        let entries = app.entries(&app.organization, 0).await;
        let said = entries
            .iter()
            .filter(|entry| entry["action"] == "fleet.device.suspected");
        assert_eq!(said.count(), 1);
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_copy_that_counts_with_the_other_is_noticed_by_its_run_or_by_its_count() {
    each("fleet_runs", |app: Arc<App>| async move {
        // Each counts one further, as if they had agreed.
        let laptop = fresh(&app).await;
        call(&app, &laptop, 1, "one").await.ok();
        call(&app, &laptop, 2, "two").await.ok();
        assert_eq!(tamper(&app, &laptop).await["state"], "none");
        call(&app, &laptop, 3, "one").await.ok();
        assert_eq!(tamper(&app, &laptop).await["reason"], "boot_returned");
        // A copy of a running machine has the run as well: the same count twice is one too many.
        let other = fresh(&app).await;
        for counter in [1, 2, 2] {
            call(&app, &other, counter, "one").await.ok();
        }
        assert_eq!(tamper(&app, &other).await["reason"], "counter_back");
        app.kernel.stop().await;
    });
}

#[test]
fn restarts_and_long_sleeps_say_nothing() {
    each("fleet_restarts", |app: Arc<App>| async move {
        let laptop = fresh(&app).await;
        for (counter, run) in [
            (1, "one"),
            (2, "one"),
            (9, "two"),
            (10, "three"),
            (500, "three"),
            (501, "four"),
        ] {
            app.advance(7200);
            call(&app, &laptop, counter, run).await.ok();
        }
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        assert!(told(&app).await.is_empty());
        for wrong in [
            json!({}),
            json!({ "counter": 0, "bootId": "x" }),
            json!({ "counter": 502, "bootId": "" }),
        ] {
            let mut body = beat_of(502, "four");
            body["counter"] = wrong["counter"].clone();
            body["bootId"] = wrong["bootId"].clone();
            let path = format!("/devices/{}/heartbeat", laptop.id);
            let call = app.request("POST", &path).token(&laptop.token);
            call.json(body).send().await.refused(400, "invalid_request");
        }
        app.kernel.stop().await;
    });
}

/// Renews, and returns the machine with the new token.
async fn renewed(app: &App, machine: &Machine) -> Machine {
    let reply = machine.renew(app).await;
    let token = reply.ok()["token"]["token"].as_str().unwrap().to_owned();
    app.machines.bind(&token, &machine.key);
    Machine {
        token,
        ..machine.clone()
    }
}

/// Proves FL-5.
#[test]
fn a_copy_that_renews_first_shuts_nobody_out_and_is_told_of() {
    each("fleet_copies_renew", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let copy = laptop.clone();
        app.advance(15 * 86_400);
        // It uses what it gets, and says no heartbeat that could contradict.
        for _ in 0..2 {
            let one = renewed(&app, &copy).await;
            one.renew(&app).await.refused(409, "conflict");
        }
        assert_eq!(
            told(&app).await.len(),
            1,
            "the second time the first one was used"
        );
        assert_eq!(tamper(&app, &laptop).await["reason"], "token_forked");
        app.advance(601);
        laptop.beat(&app).await.ok();
        let mine = renewed(&app, &laptop).await;
        mine.beat(&app).await.ok();
        assert_eq!(told(&app).await.len(), 1, "it is said once");
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_copy_takes_nothing_from_a_machine_that_renewed_and_has_not_called_yet() {
    each("fleet_copies_asleep", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let copy = laptop.clone();
        app.advance(15 * 86_400);
        let mine = renewed(&app, &laptop).await;
        let other = renewed(&app, &copy).await;
        other.beat(&app).await.ok();
        app.settle().await;
        mine.beat(&app).await.ok();
        assert_eq!(told(&app).await.len(), 1, "one machine uses one successor");
        app.advance(601);
        copy.beat(&app).await.ok();
        assert_eq!(tamper(&app, &laptop).await["reason"], "token_forked");
        assert_eq!(told(&app).await.len(), 1);
        // Somebody looks at it and lets it go on: then a copy that goes on with the earlier token is news again.
        let act = async |verb: &str| {
            let path = format!("/devices/{}/{verb}", laptop.id);
            app.write("POST", &path, json!({})).await.ok();
        };
        act("quarantine").await;
        act("release").await;
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        app.advance(10);
        copy.beat(&app).await.ok();
        assert_eq!(told(&app).await.len(), 2);
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_copy_that_renews_first_and_waits_is_told_of_when_it_uses_what_it_has() {
    each("fleet_copies_wait", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(15 * 86_400);
        let other = renewed(&app, &laptop).await;
        let mine = renewed(&app, &laptop).await;
        mine.beat(&app).await.ok();
        app.settle().await;
        app.advance(601);
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        // It says no heartbeat; whatever it calls is a use.
        let path = format!("/devices/{}/skills", laptop.id);
        for _ in 0..2 {
            let call = app.request("GET", &path).token(&other.token);
            call.send().await.ok();
        }
        assert_eq!(tamper(&app, &laptop).await["reason"], "token_forked");
        let told = told(&app).await;
        assert_eq!(told, [json!({ "deviceId": laptop.id, "reason": "token_forked" })]);
        let entries = app.entries(&app.organization, 0).await;
        let said = entries
            .iter()
            .filter(|entry| entry["action"] == "fleet.device.suspected");
        assert_eq!(said.count(), 1);
        mine.beat(&app).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_copy_that_goes_on_with_the_earlier_token_is_told_of_whatever_it_calls() {
    each("fleet_copies_late", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        app.advance(15 * 86_400);
        let mine = renewed(&app, &laptop).await;
        mine.beat(&app).await.ok();
        app.settle().await;
        let path = format!("/devices/{}/skills", laptop.id);
        let uses = async |machine: &Machine| {
            let call = app.request("GET", &path).token(&machine.token);
            call.send().await.ok();
            app.kernel.flush_uses().await.unwrap();
            run_jobs(&app).await;
        };
        // Within the minutes that a renewal may take it says nothing.
        app.advance(599);
        uses(&laptop).await;
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        app.advance(86_400);
        uses(&mine).await;
        assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
        for _ in 0..2 {
            app.advance(3600);
            uses(&laptop).await;
            uses(&mine).await;
        }
        assert_eq!(tamper(&app, &laptop).await["reason"], "token_forked");
        let told = told(&app).await;
        assert_eq!(told, [json!({ "deviceId": laptop.id, "reason": "token_forked" })]);
        let entries = app.entries(&app.organization, 0).await;
        let said = entries
            .iter()
            .filter(|entry| entry["action"] == "fleet.device.suspected");
        assert_eq!(said.count(), 1);
        app.kernel.stop().await;
    });
}

/// Asks for a new key with a count.
async fn rotates(app: &App, machine: &Machine, counter: i64) -> Reply {
    let proof = proof_of_a_key(app, &machine.id, &new_key());
    let path = format!("/devices/{}/key", machine.id);
    let body = json!({ "newKeyProof": proof, "counter": counter });
    let call = app.request("POST", &path).token(&machine.token);
    call.json(body).send().await
}

/// Proves FL-5.
#[test]
fn a_count_that_leaps_is_told_of_and_takes_nothing_from_the_machine() {
    each("fleet_leaps", |app: Arc<App>| async move {
        let laptop = fresh(&app).await;
        call(&app, &laptop, 1, "one").await.ok();
        call(&app, &laptop, 9_007_199_254_740_991, "one").await.ok();
        assert_eq!(tamper(&app, &laptop).await["reason"], "counter_leapt");
        call(&app, &laptop, 2, "one").await.ok();
        let told = told(&app).await;
        assert_eq!(
            told,
            [json!({ "deviceId": laptop.id, "reason": "counter_leapt" })]
        );
        rotates(&app, &laptop, 3).await.ok();
        // Also where it is the first that is heard of a machine.
        let other = fresh(&app).await;
        call(&app, &other, 9_007_199_254_740_991, "one").await.ok();
        call(&app, &other, 1, "one").await.ok();
        assert_eq!(tamper(&app, &other).await, json!({ "state": "none" }));
        app.kernel.stop().await;
    });
}

/// Proves FL-5.
#[test]
fn a_release_lets_the_machine_count_from_where_it_is_and_change_its_key() {
    each("fleet_released_counts", |app: Arc<App>| async move {
        for is_held_apart in [true, false] {
            let laptop = fresh(&app).await;
            call(&app, &laptop, 1, "one").await.ok();
            let copy = laptop.clone();
            // As far as anybody may count: an agent that lost its file goes on with the present.
            let far = app.now().as_ms() / 1000;
            call(&app, &copy, far, "one").await.ok();
            call(&app, &laptop, 2, "one").await.ok();
            assert_eq!(tamper(&app, &laptop).await["reason"], "counter_back");
            rotates(&app, &laptop, 3).await.refused(409, "conflict");
            let before = told(&app).await.len();
            let act = async |verb: &str| {
                let path = format!("/devices/{}/{verb}", laptop.id);
                app.write("POST", &path, json!({})).await.ok().clone()
            };
            if is_held_apart {
                act("quarantine").await;
            }
            let released = act("release").await;
            assert_eq!(released["device"]["status"], "active");
            assert_eq!(released["device"]["tamper"], json!({ "state": "none" }));
            for counter in [4, 5] {
                call(&app, &laptop, counter, "two").await.ok();
            }
            assert_eq!(tamper(&app, &laptop).await, json!({ "state": "none" }));
            assert_eq!(told(&app).await.len(), before);
            rotates(&app, &laptop, 6).await.ok();
            // The copy has the former key now.
            app.advance(10);
            copy.beat(&app).await.ok();
            assert_eq!(tamper(&app, &laptop).await["reason"], "former_key");
        }
        app.kernel.stop().await;
    });
}
