//! What devices are told to do, and what they say of it.

use super::act;
use crate::areas::fleet::{Machine, command_for, enrol, enrolment_token, new_key, proof_of_a_key, rotation};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: u64 = 86_400;

async fn say(app: &App, machine: &Machine, of: &str, command: &str, body: Value) -> Reply {
    let path = format!("/devices/{of}/commands/{command}/result");
    let call = app.request("POST", &path).token(&machine.token);
    call.json(body).send().await
}

async fn commands(app: &App, id: &str) -> Vec<Value> {
    let reply = app.get(&format!("/devices/{id}/commands")).await;
    reply.ok()["commands"].as_array().unwrap().clone()
}

async fn states(app: &App, machine: &Machine) -> Vec<String> {
    let all = commands(app, &machine.id).await;
    let states = all
        .iter()
        .map(|command| command["state"].as_str().unwrap().to_owned());
    states.collect()
}

/// The commands that a machine hears of at its next heartbeat; it says nothing of the list where that is empty.
async fn told(app: &App, machine: &Machine) -> Vec<String> {
    app.advance(10);
    let answer = machine.beat(app).await.ok().clone();
    let Some(told) = answer.get("commands") else {
        return Vec::new();
    };
    let told = told.as_array().unwrap();
    assert!(!told.is_empty() && told.iter().all(|one| one["kind"] == "rescan"));
    told.iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

fn done() -> Value {
    json!({ "outcome": "succeeded" })
}

/// Proves FL-9.
#[test]
fn a_device_is_told_until_it_says_what_came_of_it() {
    each("fleet_commands", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let one = command_for(&app, &laptop.id).await;
        let other = command_for(&app, &laptop.id).await;
        assert_eq!(states(&app, &laptop).await, ["queued", "queued"]);
        // At the instant of the last heartbeat nothing is written, so that nothing is told.
        assert!(laptop.beat(&app).await.ok().get("commands").is_none());
        assert_eq!(told(&app, &laptop).await, [one.as_str(), other.as_str()]);
        assert_eq!(states(&app, &laptop).await, ["delivered", "delivered"]);
        // The answer may have been lost.
        assert_eq!(told(&app, &laptop).await, [one.as_str(), other.as_str()]);
        let reply = say(&app, &laptop, &laptop.id, &one, done()).await;
        assert_eq!(reply.ok()["command"]["state"], "succeeded");
        let finished = app.events(0).await.len();
        say(&app, &laptop, &laptop.id, &one, done()).await.ok();
        assert_eq!(app.events(0).await.len(), finished, "the same again is no news");
        let failed = json!({ "outcome": "failed", "code": "no_disk" });
        let late = say(&app, &laptop, &laptop.id, &one, failed.clone()).await;
        late.refused(409, "conflict");
        assert_eq!(told(&app, &laptop).await, [other.as_str()]);
        say(&app, &laptop, &laptop.id, &other, failed).await.ok();
        assert_eq!(told(&app, &laptop).await, Vec::<String>::new());
        let all = commands(&app, &laptop.id).await;
        assert_eq!(
            (&all[0]["state"], &all[0]["code"], &all[1]["state"]),
            (&json!("failed"), &json!("no_disk"), &json!("succeeded"))
        );
        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let told = kinds.iter().filter(|kind| *kind == "fleet.command.finished");
        assert_eq!(told.count(), 2);
        app.kernel.stop().await;
    });
}

/// Proves FL-9.
#[test]
fn a_command_is_of_its_device_and_ends_by_time() {
    each("fleet_command_ends", |app: Arc<App>| async move {
        let (laptop, stranger) = (Machine::new(&app).await, Machine::new(&app).await);
        let command = command_for(&app, &laptop.id).await;
        assert_eq!(told(&app, &stranger).await, Vec::<String>::new());
        let reply = say(&app, &stranger, &laptop.id, &command, done()).await;
        reply.refused(403, "role_forbidden");
        let reply = say(&app, &stranger, &stranger.id, &command, done()).await;
        reply.refused(404, "not_found");
        let absent = "cmd_01kadh5j9v0000000000000000";
        let reply = say(&app, &laptop, &laptop.id, absent, done()).await;
        reply.refused(404, "not_found");
        app.advance(DAY);
        assert_eq!(told(&app, &laptop).await, Vec::<String>::new());
        assert_eq!(states(&app, &laptop).await, ["expired"]);
        let late = say(&app, &laptop, &laptop.id, &command, done()).await;
        late.refused(409, "conflict");
        // Eight wait at most; those that ended do not count.
        for _ in 0..8 {
            command_for(&app, &laptop.id).await;
        }
        let path = format!("/devices/{}/commands", laptop.id);
        let one_more = app.write("POST", &path, json!({ "kind": "rescan" })).await;
        one_more.refused(409, "conflict");
        assert_eq!(told(&app, &laptop).await.len(), 8);
        app.kernel.stop().await;
    });
}

#[test]
fn only_what_is_on_the_list_is_told_to_devices_that_work() {
    each("fleet_command_kinds", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = format!("/devices/{}/commands", laptop.id);
        for wrong in ["shell", "retire", "upload_diagnostics", ""] {
            let reply = app.write("POST", &path, json!({ "kind": wrong })).await;
            reply.refused(400, "invalid_request");
        }
        for wrong in [3599, 604_801] {
            let body = json!({ "kind": "rescan", "expiresInSeconds": wrong });
            app.write("POST", &path, body)
                .await
                .refused(400, "invalid_request");
        }
        let asks = async |token: &str| {
            let body = with_trio(json!({ "kind": "sync_skills" }), &fresh_key());
            app.request("POST", &path).token(token).json(body).send().await
        };
        let (_, operator) = app.account("operator", "operator", &[]).await;
        asks(&operator).await.ok();
        for role in ["auditor", "viewer", "member"] {
            let (_, token) = app.account(role, role, &[]).await;
            asks(&token).await.refused(403, "role_forbidden");
        }
        // What a device says is a word of its list, and a reason belongs to a failure.
        let command = command_for(&app, &laptop.id).await;
        for wrong in ["No disk", "/home/ann", "é", "", "_x", &"x".repeat(65)] {
            let body = json!({ "outcome": "failed", "code": wrong });
            let reply = say(&app, &laptop, &laptop.id, &command, body).await;
            reply.refused(400, "invalid_request");
        }
        let body = json!({ "outcome": "succeeded", "code": "fine" });
        let reply = say(&app, &laptop, &laptop.id, &command, body).await;
        reply.refused(422, "invalid_definition");
        // A quarantined device is told, one that waits or is retired is not.
        act(&app, &laptop.id, "quarantine").await.ok();
        command_for(&app, &laptop.id).await;
        app.advance(10);
        let heard = laptop.beat(&app).await.ok()["commands"].clone();
        assert_eq!(heard.as_array().map(Vec::len), Some(3));
        act(&app, &laptop.id, "retire").await.ok();
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let waiting = enrol(&app, &secret).await;
        for id in [&laptop.id, &waiting.id] {
            let path = format!("/devices/{id}/commands");
            let reply = app.write("POST", &path, json!({ "kind": "rescan" })).await;
            reply.refused(409, "conflict");
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-11.
#[test]
fn a_change_of_the_key_is_believed_when_it_happened_and_by_nobodys_word() {
    each("fleet_command_keys", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = format!("/devices/{}/commands", laptop.id);
        let tell = async || {
            let given = app.write("POST", &path, json!({ "kind": "rotate_key" })).await;
            given.ok()["command"]["id"].as_str().unwrap().to_owned()
        };
        let finished = async || {
            let events = app.events(0).await.into_iter();
            events
                .filter(|(kind, _)| kind == "fleet.command.finished")
                .count()
        };
        let command = tell().await;
        for _ in 0..2 {
            let said = say(&app, &laptop, &laptop.id, &command, done()).await;
            said.refused(409, "conflict");
            assert_eq!(states(&app, &laptop).await, ["queued"]);
        }
        // One that another machine could do first is no matter of belief.
        let rescan = command_for(&app, &laptop.id).await;
        say(&app, &laptop, &laptop.id, &rescan, done()).await.ok();
        let key = new_key();
        let proof = proof_of_a_key(&app, &laptop.id, &key);
        let to_rotate = format!("/devices/{}/key", laptop.id);
        let call = app.request("POST", &to_rotate);
        let rotated = call.token(&laptop.token).json(rotation(&proof)).send().await;
        let token = rotated.ok()["token"]["token"].as_str().unwrap().to_owned();
        app.machines.bind(&token, &key);
        let changed = Machine {
            token,
            key,
            id: laptop.id.clone(),
        };
        // The server knows it before anybody says so, and what is said of it then is no news.
        assert_eq!(states(&app, &laptop).await, ["succeeded", "succeeded"]);
        assert_eq!(finished().await, 2);
        say(&app, &changed, &laptop.id, &command, done()).await.ok();
        let failed = json!({ "outcome": "failed", "code": "refused" });
        let other = say(&app, &changed, &laptop.id, &command, failed.clone()).await;
        other.refused(409, "conflict");
        assert_eq!(finished().await, 2);
        // That it could not, whoever has the key may say.
        let command = tell().await;
        say(&app, &changed, &laptop.id, &command, failed).await.ok();
        assert_eq!(states(&app, &laptop).await[0], "failed");
        app.kernel.stop().await;
    });
}
