//! What the settings say of devices acts from the next request on.

use super::{act, lives, seen};
use crate::areas::fleet::{Machine, enrol, enrolment_token};
use crate::support::{App, Reply, each};
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: u64 = 86_400;

async fn set(app: &App, fleet: Value, confirm: bool) -> Reply {
    let mut body = json!({ "fleet": fleet });
    if confirm {
        body["confirm"] = true.into();
    }
    app.write("PATCH", "/automation/settings", body).await
}

#[test]
fn every_device_waits_for_approval_where_the_settings_say_so() {
    each("fleet_settings_approval", |app: Arc<App>| async move {
        let (_, before) = enrolment_token(&app, json!({})).await;
        let (_, after) = enrolment_token(&app, json!({})).await;
        let early = enrol(&app, &before).await;
        set(&app, json!({ "enrolment": { "requireApproval": true } }), false)
            .await
            .ok();
        let late = enrol(&app, &after).await;
        for machine in [&early, &late] {
            machine.beat(&app).await.ok();
        }
        assert_eq!(seen(&app, &early.id).await["status"], "active");
        let waiting = seen(&app, &late.id).await;
        assert_eq!(
            (&waiting["status"], &waiting["needsApproval"]),
            (&json!("pending"), &json!(true))
        );
        act(&app, &late.id, "approve").await.ok();
        assert_eq!(seen(&app, &late.id).await["status"], "active");
        app.kernel.stop().await;
    });
}

#[test]
fn a_device_is_silent_from_the_hour_that_the_settings_say() {
    each("fleet_settings_silence", |app: Arc<App>| async move {
        let machine = Machine::new(&app).await;
        app.advance(DAY + 1);
        assert_eq!(seen(&app, &machine.id).await["presence"], "away");
        set(&app, json!({ "silentAfterHours": 24 }), false).await.ok();
        assert_eq!(seen(&app, &machine.id).await["presence"], "silent");
        for (presence, count) in [("silent", 1), ("away", 0)] {
            let found = app.get(&format!("/devices?presence={presence}")).await;
            let found = found.ok()["devices"].as_array().map(Vec::len);
            assert_eq!(found, Some(count), "{presence}");
        }
        app.kernel.stop().await;
    });
}

/// Proves SE-8.
#[test]
fn approval_of_devices_ends_only_where_that_was_confirmed_and_all_of_it_is_said() {
    each("fleet_settings_approval", |app: Arc<App>| async move {
        let asks = |is: bool| json!({ "enrolment": { "requireApproval": is } });
        set(&app, asks(true), false).await.ok();
        set(&app, asks(false), false)
            .await
            .refused(400, "confirmation_required");
        let mut more = asks(false);
        more["retireAfterDays"] = 30.into();
        let reply = set(&app, more.clone(), false).await;
        assert_eq!(reply.code(), "confirmation_required");
        let said = reply.text();
        assert!(
            said.contains("without an admin's word") && said.contains("retired for good"),
            "{said}"
        );
        set(&app, asks(true), false).await.ok();
        set(&app, more, true).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves SE-7.
#[test]
fn silence_retires_when_the_settings_say_and_sooner_only_when_confirmed() {
    each("fleet_settings_retire", |app: Arc<App>| async move {
        let (active, apart, held) = (
            Machine::new(&app).await,
            Machine::new(&app).await,
            Machine::new(&app).await,
        );
        act(&app, &apart.id, "quarantine").await.ok();
        lives::hold(&app, &held.id).await;
        let status = async |machine: &Machine| seen(&app, &machine.id).await["status"].clone();
        app.advance(30 * DAY - 1);
        set(&app, json!({ "retireAfterDays": 30 }), false)
            .await
            .refused(400, "confirmation_required");
        set(&app, json!({ "retireAfterDays": 0 }), false).await.ok();
        let never = set(&app, json!({ "retireAfterDays": 730 }), false).await;
        never.refused(400, "confirmation_required");
        // What was done to one of them a moment later counts as well.
        app.advance(2);
        lives::sweep(&app).await;
        assert_eq!(status(&active).await, "active");
        set(&app, json!({ "retireAfterDays": 30 }), true).await.ok();
        let young = Machine::new(&app).await;
        lives::sweep(&app).await;
        for machine in [&active, &apart] {
            let gone = seen(&app, &machine.id).await;
            assert_eq!(
                (&gone["status"], &gone["retireReason"]),
                (&json!("retired"), &json!("silent"))
            );
        }
        assert_eq!(status(&held).await, "active", "a person lets it in, or does not");
        assert_eq!(status(&young).await, "active");
        app.kernel.stop().await;
    });
}

/// A device hears that it is held apart, and what its hooks then do, also where its heartbeat is early: that one does not say that it is not.
///
/// Proves LJ-13.
#[test]
fn a_device_hears_that_it_is_held_apart_and_when_it_is_not_any_more() {
    each("fleet_settings_quarantine", |app: Arc<App>| async move {
        let machine = Machine::new(&app).await;
        let told = async || {
            app.advance(60);
            machine.beat(&app).await.ok()["quarantine"].clone()
        };
        assert_eq!(told().await, "none");
        act(&app, &machine.id, "quarantine").await.ok();
        let early = machine.beat(&app).await;
        assert_eq!(
            (&early.ok()["quarantine"], &early.json["hooksMode"]),
            (&json!("block"), &json!("monitor"))
        );
        assert_eq!(told().await, "block");
        // It gets no bundle, and hears by this what the organization's hooks do.
        app.advance(60);
        assert_eq!(machine.beat(&app).await.ok()["hooksMode"], "monitor");
        set(&app, json!({ "hooks": { "mode": "enforce" } }), false)
            .await
            .ok();
        app.advance(60);
        assert_eq!(machine.beat(&app).await.ok()["hooksMode"], "enforce");
        set(&app, json!({ "quarantineAction": "monitor" }), false)
            .await
            .refused(400, "confirmation_required");
        assert_eq!(told().await, "block");
        set(&app, json!({ "quarantineAction": "monitor" }), true)
            .await
            .ok();
        assert_eq!(told().await, "monitor");
        act(&app, &machine.id, "release").await.ok();
        let early = machine.beat(&app).await;
        assert_eq!(early.ok().get("quarantine"), None);
        assert_eq!(told().await, "none");
        app.advance(60);
        assert_eq!(machine.beat(&app).await.ok().get("hooksMode"), None);
        app.kernel.stop().await;
    });
}
