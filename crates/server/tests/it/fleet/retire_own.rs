//! What people enrol by themselves, they see and take back by themselves.

use super::{act, seen};
use crate::access::oauth::{token, trusting, user, workshop};
use crate::areas::fleet::{Machine, enrolment_token, let_people_enrol, new_key, own_of, send};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

const ANN: &str = "ann@acme.example";

async fn retire(app: &App, token: &str, id: &str) -> Reply {
    let path = format!("/devices/own/{id}/retire");
    let body = with_trio(json!({ "confirm": true }), &fresh_key());
    app.request("POST", &path).token(token).json(body).send().await
}

async fn own(app: &App, token: &str) -> Vec<Value> {
    let reply = app.request("GET", "/devices/own").token(token).send().await;
    reply.ok()["devices"].as_array().unwrap().clone()
}

/// A session that may do nothing else enrols a machine, which stays; the person sees by what it came, and ends it.
/// Proves FL-2, FL-3.
#[test]
fn a_person_retires_what_was_enrolled_in_their_name_and_nothing_else() {
    each("fleet_retire_own", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, None).await;
        let members = json!({ "directory": { "defaultRole": "member" } });
        app.write("PATCH", "/automation/settings", members).await.ok();
        let hers = token(&workshop, |claims| claims["scope"] = "fleet:enrol_self".into());
        let foreign = own_of(&app, &hers).await.unwrap();
        foreign.beat(&app).await.ok();
        let listed = own(&app, &hers).await;
        assert!(
            listed[0]["enrolledWith"]
                .as_str()
                .is_some_and(|with| !with.is_empty())
        );
        // What an admin had enrolled is not its holder's to leave.
        let corporate = Machine::new(&app).await;
        let path = format!("/devices/{}", corporate.id);
        app.write("PATCH", &path, json!({ "ownerUserId": ann }))
            .await
            .ok();
        assert_eq!(own(&app, &hers).await.len(), 2);
        let (_, robot) = app.account("robot", "viewer", &["fleet:enrol_self"]).await;
        let absent = "dev_01kadh5j9v0000000000000000";
        for (token, id) in [
            (&hers, corporate.id.as_str()),
            (&robot, corporate.id.as_str()),
            (&robot, foreign.id.as_str()),
            (&app.admin, foreign.id.as_str()),
            (&hers, absent),
        ] {
            retire(&app, token, id).await.refused(404, "not_found");
        }
        let path = format!("/devices/own/{}/retire", foreign.id);
        let body = with_trio(json!({}), &fresh_key());
        let call = app.request("POST", &path).token(&hers).json(body);
        call.send().await.refused(400, "confirmation_required");
        foreign.beat(&app).await.ok();
        let answer = retire(&app, &hers, &foreign.id).await.ok().clone();
        assert_eq!(
            (&answer["device"]["status"], &answer["revoked"]["tokens"]),
            (&json!("retired"), &json!(1))
        );
        foreign.beat(&app).await.refused(401, "token_revoked");
        // It is nobody's any more, so that it is in nobody's way, and to ask again changes nothing.
        assert!(seen(&app, &foreign.id).await.get("ownerUserId").is_none());
        assert_eq!(own(&app, &hers).await.len(), 1);
        let again = retire(&app, &hers, &foreign.id).await.ok().clone();
        assert_eq!(again["revoked"]["tokens"], 0);
        corporate.beat(&app).await.ok();
        // What an account enrolled so it takes back as well, before and after an admin looked at it.
        let machine = own_of(&app, &robot).await.unwrap();
        machine.beat(&app).await.ok();
        act(&app, &machine.id, "approve").await.ok();
        retire(&app, &robot, &machine.id).await.ok();
        // Once it is somebody else's machine it is theirs.
        let machine = own_of(&app, &robot).await.unwrap();
        let path = format!("/devices/{}", machine.id);
        app.write("PATCH", &path, json!({ "ownerUserId": ann }))
            .await
            .ok();
        retire(&app, &robot, &machine.id).await.refused(404, "not_found");
        app.kernel.stop().await;
    });
}

/// Proves FL-7.
#[test]
fn who_enrols_a_machine_that_is_taken_for_nobody_hears_why() {
    each("fleet_taken_for_nobody", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, Some("viewer")).await;
        let_people_enrol(&app).await;
        let hers = token(&workshop, |claims| claims["scope"] = "fleet:enrol_self".into());
        let enrolled = async || {
            let body = with_trio(json!({ "name": "laptop" }), &fresh_key());
            let call = app.request("POST", "/devices/own/enrolment-tokens").token(&hers);
            let made = call.json(body).send().await;
            let secret = made.ok()["token"].as_str().unwrap().to_owned();
            let body = crate::areas::fleet::laptop("laptop");
            send(&app, &new_key(), &secret, "/devices/enrol", body).await
        };
        let answer = enrolled().await.ok().clone();
        assert!(
            answer["takenForNobody"]
                .as_str()
                .is_some_and(|why| why.contains("name the owner again")),
            "{answer}"
        );
        let members = json!({ "directory": { "defaultRole": "member" } });
        app.write("PATCH", "/automation/settings", members).await.ok();
        let path = format!("/directory/users/{ann}");
        app.write("PATCH", &path, json!({ "permissionRole": null }))
            .await
            .ok();
        let answer = enrolled().await.ok().clone();
        assert!(answer.get("takenForNobody").is_none(), "{answer}");
        app.kernel.stop().await;
    });
}

/// Who signs in again because an answer was lost has another token, and the machine the same key.
/// Proves FL-3.
#[test]
fn a_machine_is_the_same_by_another_token_of_whoever_enrolled_it() {
    each("fleet_self_again", |app: Arc<App>| async move {
        let_people_enrol(&app).await;
        let (_, other) = app.account("other", "viewer", &["fleet:enrol_self"]).await;
        let secret = async |token: &str| {
            let body = with_trio(json!({ "name": "laptop" }), &fresh_key());
            let call = app.request("POST", "/devices/own/enrolment-tokens").token(token);
            let made = call.json(body).send().await;
            made.ok()["token"].as_str().unwrap().to_owned()
        };
        let own = new_key();
        let enrols = async |secret: &str| {
            let body = crate::areas::fleet::laptop("laptop");
            send(&app, &own, secret, "/devices/enrol", body).await
        };
        let first = enrols(&secret(&app.admin).await).await;
        assert_eq!(first.status.as_u16(), 201);
        let again = enrols(&secret(&app.admin).await).await;
        assert_eq!(again.status.as_u16(), 200);
        assert_eq!(again.json["device"]["id"], first.json["device"]["id"]);
        enrols(&secret(&other).await).await.refused(409, "conflict");
        let (_, by_admin) = enrolment_token(&app, json!({})).await;
        enrols(&by_admin).await.refused(409, "conflict");
        Machine::of(&app, own.clone(), &again).beat(&app).await.ok();
        enrols(&secret(&app.admin).await).await.refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// The token lasts for minutes, in which somebody may have thought better of it.
#[test]
fn nobody_enrols_a_machine_of_their_own_where_the_settings_no_longer_say_so() {
    each("fleet_self_off", |app: Arc<App>| async move {
        let_people_enrol(&app).await;
        let body = with_trio(json!({ "name": "laptop" }), &fresh_key());
        let call = app
            .request("POST", "/devices/own/enrolment-tokens")
            .token(&app.admin);
        let made = call.json(body).send().await;
        let secret = made.ok()["token"].as_str().unwrap().to_owned();
        let set = async |word: &str| {
            let body = json!({ "fleet": { "enrolment": { "selfEnrol": word } } });
            app.write("PATCH", "/automation/settings", body).await.ok();
        };
        set("off").await;
        let own = new_key();
        let body = crate::areas::fleet::laptop("laptop");
        let refused = send(&app, &own, &secret, "/devices/enrol", body).await;
        refused.refused(409, "conflict");
        assert_eq!(app.get("/devices").await.ok()["devices"], json!([]));
        set("signed_in").await;
        let enrols = async || {
            let body = crate::areas::fleet::laptop("laptop");
            send(&app, &own, &secret, "/devices/enrol", body).await
        };
        enrols().await.ok();
        // Nor another answer where the first one was lost.
        set("off").await;
        enrols().await.refused(409, "conflict");
        set("signed_in").await;
        let enrolled = enrols().await;
        Machine::of(&app, own.clone(), &enrolled).beat(&app).await.ok();
        app.kernel.stop().await;
    });
}
