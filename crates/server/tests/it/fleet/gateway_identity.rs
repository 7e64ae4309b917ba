//! Whom gateways take a device for (client contract #48–50), and who may say so.

use super::{act, lives};
use crate::areas::directory;
use crate::areas::fleet::{Machine, TOKENS, enrol, enrolment_token, new_key, send};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

fn path(machine: &Machine) -> String {
    format!("/devices/{}/gateway-identity", machine.id)
}

async fn resolved(app: &App, machine: &Machine) -> Value {
    app.get(&path(machine)).await.ok().clone()
}

async fn nobody(app: &App, machine: &Machine, why: &str) {
    let reply = app.get(&path(machine)).await;
    reply.refused(404, "not_found");
    let message = reply.json["message"].as_str().unwrap();
    assert!(message.contains(why), "{message}");
}

async fn assign(app: &App, token: &str, machine: &Machine, account: &str) -> Reply {
    let body = json!({ "serviceAccountId": account, "source": "terraform" });
    let call = app.request("PUT", &path(machine)).token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

async fn unassign(app: &App, token: &str, machine: &Machine) {
    let call = app.request("DELETE", &path(machine)).token(token);
    let call = call.header("idempotency-key", &fresh_key());
    let reply = call.header("x-reason", "a test").send().await;
    assert_eq!(reply.status.as_u16(), 204, "{}", reply.text());
}

async fn own(app: &App, token: &str, machine: &Machine, user: Value) -> Reply {
    let call = app
        .request("PATCH", &format!("/devices/{}", machine.id))
        .token(token);
    let body = with_trio(json!({ "ownerUserId": user }), &fresh_key());
    call.json(body).send().await
}

async fn user(app: &App, role: Option<&str>) -> String {
    let id = directory::user(app, &format!("{}@acme.test", fresh_key())).await;
    if let Some(role) = role {
        promote(app, &id, role).await;
    }
    id
}

async fn promote(app: &App, user: &str, role: &str) {
    let body = json!({ "permissionRole": role });
    app.write("PATCH", &format!("/directory/users/{user}"), body)
        .await
        .ok();
}

async fn robot(app: &App) -> String {
    app.account(&fresh_key(), "viewer", &["registry:install"]).await.0
}

async fn write(app: &App, path: String) {
    app.write("POST", &path, json!({})).await.ok();
}

/// As the published client reads it: `explicit` is assigned here, anything else and 404 is not.
#[test]
fn a_device_is_taken_for_what_is_assigned_and_else_for_its_owner() {
    each("fleet_gateway", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        nobody(&app, &laptop, "nobody owns it").await;
        let anna = user(&app, None).await;
        own(&app, &app.admin, &laptop, json!(anna)).await.ok();
        let principal = laptop.id.replacen("dev_", "mdp_", 1);
        let of_anna = json!({
            "deviceId": laptop.id, "resolution": "assigned_user", "subjectKind": "user", "subjectId": anna,
            "managedPrincipalId": principal, "revision": 0,
        });
        assert_eq!(resolved(&app, &laptop).await, of_anna);
        let robot = robot(&app).await;
        let explicit = json!({
            "deviceId": laptop.id, "resolution": "explicit", "subjectKind": "service_account", "subjectId": robot,
            "managedPrincipalId": principal, "revision": 1,
        });
        let before = app.events(0).await.len();
        assert_eq!(assign(&app, &app.admin, &laptop, &robot).await.ok(), &explicit);
        // Again it is no news.
        assert_eq!(assign(&app, &app.admin, &laptop, &robot).await.ok(), &explicit);
        assert_eq!(app.events(0).await.len(), before + 1);
        assert_eq!(resolved(&app, &laptop).await, explicit);
        unassign(&app, &app.admin, &laptop).await;
        let mut again = of_anna;
        again["revision"] = json!(2);
        assert_eq!(resolved(&app, &laptop).await, again);
        unassign(&app, &app.admin, &laptop).await;
        assert_eq!(resolved(&app, &laptop).await, again);
        app.get("/devices/dev_01kadh5j9v0000000000000000/gateway-identity")
            .await
            .refused(404, "not_found");
        app.kernel.stop().await;
    });
}

/// Proves FL-8.
#[test]
fn a_device_that_does_not_act_is_taken_for_nobody() {
    each("fleet_gateway_acts", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let (laptop, robot) = (enrol(&app, &secret).await, robot(&app).await);
        let anna = user(&app, None).await;
        own(&app, &app.admin, &laptop, json!(anna)).await.ok();
        nobody(&app, &laptop, "not active").await;
        let refused = assign(&app, &app.admin, &laptop, &robot).await;
        refused.refused(409, "conflict");
        laptop.beat(&app).await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(anna));
        assign(&app, &app.admin, &laptop, &robot).await.ok();
        act(&app, &laptop.id, "quarantine").await.ok();
        nobody(&app, &laptop, "not active").await;
        assign(&app, &app.admin, &laptop, &robot)
            .await
            .refused(409, "conflict");
        act(&app, &laptop.id, "release").await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(robot));
        lives::hold(&app, &laptop.id).await;
        nobody(&app, &laptop, "holds it back").await;
        assign(&app, &app.admin, &laptop, &robot)
            .await
            .refused(409, "conflict");
        let body = json!({ "ids": [laptop.id], "confirm": true });
        app.write("POST", "/restore/release", body).await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(robot));
        act(&app, &laptop.id, "retire").await.ok();
        nobody(&app, &laptop, "not active").await;
        assign(&app, &app.admin, &laptop, &robot)
            .await
            .refused(409, "conflict");
        own(&app, &app.admin, &laptop, json!(user(&app, None).await))
            .await
            .refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// Proves FL-8.
#[test]
fn somebody_who_ended_is_behind_no_device_and_nobody_takes_the_place() {
    each("fleet_gateway_ends", |app: Arc<App>| async move {
        let (laptop, robot) = (Machine::new(&app).await, robot(&app).await);
        let anna = user(&app, None).await;
        own(&app, &app.admin, &laptop, json!(anna)).await.ok();
        assign(&app, &app.admin, &laptop, &robot).await.ok();
        write(&app, format!("/service-accounts/{robot}/disable")).await;
        nobody(&app, &laptop, "disabled or deleted").await;
        write(&app, format!("/service-accounts/{robot}/enable")).await;
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(robot));
        app.delete(&format!("/service-accounts/{robot}")).await.ok();
        nobody(&app, &laptop, "disabled or deleted").await;
        unassign(&app, &app.admin, &laptop).await;
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(anna));
        write(&app, format!("/directory/users/{anna}/suspend")).await;
        nobody(&app, &laptop, "suspended or deleted").await;
        write(&app, format!("/directory/users/{anna}/reactivate")).await;
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(anna));
        app.delete(&format!("/directory/users/{anna}")).await.ok();
        nobody(&app, &laptop, "nobody owns it").await;
        let device = super::seen(&app, &laptop.id).await;
        assert_eq!(device.get("ownerUserId"), None);
        for unfit in [robot.as_str(), "sa_01kadh5j9v0000000000000000", "weak", "lgwsa_1"] {
            assign(&app, &app.admin, &laptop, unfit)
                .await
                .refused(409, "conflict");
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-7.
#[test]
fn nobody_assigns_an_account_that_can_do_more() {
    each("fleet_gateway_rights", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let scopes = ["llm_gateway:write", "registry:install"];
        let (_, narrow) = app.account("narrow", "admin", &scopes).await;
        let (boss, _) = app.account("boss", "admin", &[]).await;
        let weak = robot(&app).await;
        assign(&app, &narrow, &laptop, &boss)
            .await
            .refused(403, "escalation_forbidden");
        assign(&app, &narrow, &laptop, &weak).await.ok();
        // Not one either that could do more before somebody narrowed it who does not hold that.
        let (former, _) = app.account("former", "admin", &[]).await;
        let (_, writer) = app
            .account("writer", "admin", &["service_accounts:write", "registry:install"])
            .await;
        let call = app
            .request("PATCH", &format!("/service-accounts/{former}"))
            .token(&writer);
        let body = json!({ "permissionRole": "viewer", "scopes": ["registry:install"] });
        call.json(with_trio(body, &fresh_key())).send().await.ok();
        assign(&app, &narrow, &laptop, &former)
            .await
            .refused(403, "escalation_forbidden");
        for role in ["operator", "auditor", "viewer"] {
            let (_, token) = app.account(role, role, &[]).await;
            assign(&app, &token, &laptop, &weak)
                .await
                .refused(403, "role_forbidden");
        }
        // What the account is given later is not behind the device by the word of who could not give it.
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(weak));
        let body = json!({ "permissionRole": "operator", "allOfRole": true });
        app.write("PATCH", &format!("/service-accounts/{weak}"), body)
            .await
            .ok();
        nobody(&app, &laptop, "can do more than whoever assigned it").await;
        assign(&app, &narrow, &laptop, &weak)
            .await
            .refused(403, "escalation_forbidden");
        let given = assign(&app, &app.admin, &laptop, &weak).await.ok().clone();
        assert_eq!(
            (&given["subjectId"], &given["revision"]),
            (&json!(weak), &json!(2))
        );
        app.kernel.stop().await;
    });
}

/// Proves FL-7.
#[test]
fn nobody_names_an_owner_who_can_do_more() {
    each("fleet_owner_rights", |app: Arc<App>| async move {
        let (laptop, anna) = (Machine::new(&app).await, user(&app, None).await);
        let boss = user(&app, Some("admin")).await;
        let (_, without) = app.account("without", "admin", &["fleet:write"]).await;
        let scopes = ["fleet:write", "llm_gateway:write"];
        let (_, narrow) = app.account("narrow", "admin", &scopes).await;
        let refused = own(&app, &without, &laptop, json!(anna)).await;
        refused.refused(403, "insufficient_scope");
        let challenge = refused.headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.contains("scope=\"llm_gateway:write\""), "{challenge}");
        own(&app, &narrow, &laptop, json!(boss))
            .await
            .refused(403, "escalation_forbidden");
        own(&app, &narrow, &laptop, json!(anna)).await.ok();
        // What she is given later is not behind the device by the word of who could not give it, until somebody says so who can.
        promote(&app, &anna, "operator").await;
        nobody(&app, &laptop, "can do more than whoever named the owner").await;
        own(&app, &narrow, &laptop, json!(anna))
            .await
            .refused(403, "escalation_forbidden");
        own(&app, &app.admin, &laptop, json!(anna)).await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(anna));
        // Whoever takes away needs no more than the scope.
        own(&app, &without, &laptop, Value::Null).await.ok();
        nobody(&app, &laptop, "nobody owns it").await;
        for none in [
            "usr_01kadh5j9v0000000000000000",
            "anna",
            "dev_01kadh5j9v0000000000000000",
        ] {
            own(&app, &app.admin, &laptop, json!(none))
                .await
                .refused(422, "invalid_definition");
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-7.
#[test]
fn nobody_lets_a_device_act_behind_which_somebody_is_who_can_do_more() {
    each("fleet_release_rights", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let boss = user(&app, Some("admin")).await;
        own(&app, &app.admin, &laptop, json!(boss)).await.ok();
        own(&app, &app.admin, &other, json!(user(&app, None).await))
            .await
            .ok();
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let release = async |machine: &Machine| {
            let path = format!("/devices/{}/release", machine.id);
            let call = app.request("POST", &path).token(&operator);
            call.json(with_trio(json!({}), &fresh_key())).send().await
        };
        for machine in [&laptop, &other] {
            act(&app, &machine.id, "quarantine").await.ok();
        }
        release(&laptop).await.refused(403, "escalation_forbidden");
        release(&other).await.ok();
        nobody(&app, &laptop, "not active").await;
        act(&app, &laptop.id, "release").await.ok();
        // Nor one that waits for approval.
        let waiting = crate::areas::fleet::waiting(&app).await;
        let body = json!({ "ownerUserId": boss });
        app.write("PATCH", &format!("/devices/{waiting}"), body)
            .await
            .ok();
        let (_, narrow) = app.account("narrow", "admin", &["fleet:write"]).await;
        let path = format!("/devices/{waiting}/approve");
        let call = app.request("POST", &path).token(&narrow);
        let reply = call.json(with_trio(json!({}), &fresh_key())).send().await;
        reply.refused(403, "escalation_forbidden");
        // Nor one that a restore holds back, by its id or with all others.
        let scopes = ["service_accounts:write", "fleet:write"];
        let (_, releasing) = app.account("releasing", "admin", &scopes).await;
        let robot = app.account("robot", "admin", &[]).await.0;
        assign(&app, &app.admin, &other, &robot).await.ok();
        for machine in [&laptop, &other] {
            lives::hold(&app, &machine.id).await;
            for body in [
                json!({ "ids": [machine.id], "confirm": true }),
                json!({ "all": true, "confirm": true }),
            ] {
                let call = app.request("POST", "/restore/release").token(&releasing);
                let reply = call.json(with_trio(body, &fresh_key())).send().await;
                reply.refused(403, "escalation_forbidden");
            }
            nobody(&app, machine, "holds it back").await;
        }
        let body = json!({ "all": true, "confirm": true });
        app.write("POST", "/restore/release", body).await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(boss));
        assert_eq!(resolved(&app, &other).await["subjectId"], json!(robot));
        app.kernel.stop().await;
    });
}

/// Taking an account away has the device be taken for its owner: for somebody who can do more, not by the word of who does so.
///
/// Proves FL-7.
#[test]
fn whoever_takes_an_account_away_comes_to_no_owner_who_can_do_more() {
    each("fleet_gateway_away", |app: Arc<App>| async move {
        let (laptop, boss) = (Machine::new(&app).await, user(&app, Some("admin")).await);
        own(&app, &app.admin, &laptop, json!(boss)).await.ok();
        let weak = robot(&app).await;
        assign(&app, &app.admin, &laptop, &weak).await.ok();
        let scopes = ["llm_gateway:write", "registry:install"];
        let (_, narrow) = app.account("narrow", "admin", &scopes).await;
        unassign(&app, &narrow, &laptop).await;
        nobody(&app, &laptop, "name the owner again").await;
        own(&app, &app.admin, &laptop, json!(boss)).await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(boss));
        app.kernel.stop().await;
    });
}

/// What the owner is given behind it counts as well: the device is taken for her by the act of somebody who could not give that.
///
/// Proves FL-7.
#[test]
fn whoever_takes_an_account_away_waits_in_vain_for_a_role_of_the_owner() {
    each("fleet_gateway_waits", |app: Arc<App>| async move {
        let (laptop, anna) = (Machine::new(&app).await, user(&app, None).await);
        own(&app, &app.admin, &laptop, json!(anna)).await.ok();
        let weak = robot(&app).await;
        assign(&app, &app.admin, &laptop, &weak).await.ok();
        let scopes = ["llm_gateway:write", "registry:install"];
        let (_, narrow) = app.account("narrow", "admin", &scopes).await;
        unassign(&app, &narrow, &laptop).await;
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(anna));
        promote(&app, &anna, "admin").await;
        nobody(&app, &laptop, "name the owner again").await;
        own(&app, &app.admin, &laptop, json!(anna)).await.ok();
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(anna));
        // Somebody who could give it says so before the role comes: that word counts.
        let other = Machine::new(&app).await;
        let bea = user(&app, None).await;
        let scopes = ["fleet:write", "llm_gateway:write"];
        let (_, weaker) = app.account("weaker", "admin", &scopes).await;
        own(&app, &weaker, &other, json!(bea)).await.ok();
        own(&app, &app.admin, &other, json!(bea)).await.ok();
        // And no lesser one takes it back by repeating it.
        own(&app, &weaker, &other, json!(bea)).await.ok();
        promote(&app, &bea, "admin").await;
        assert_eq!(resolved(&app, &other).await["subjectId"], json!(bea));
        app.kernel.stop().await;
    });
}

/// LIMIT: devices of one owner, who ends in one unit.
#[test]
fn an_owner_has_so_many_devices_and_ends_all_the_same() {
    each("fleet_owned", |app: Arc<App>| async move {
        let anna = user(&app, None).await;
        let ids = lives::make_devices(&app, 33).await;
        let name = async |id: &str| {
            let body = json!({ "ownerUserId": anna });
            app.write("PATCH", &format!("/devices/{id}"), body).await
        };
        for id in &ids[..32] {
            name(id).await.ok();
        }
        name(&ids[32]).await.refused(409, "conflict");
        name(&ids[0]).await.ok();
        let of_anna = format!("/devices?limit=100&ownerUserId={anna}");
        let found = async || app.get(&of_anna).await.ok()["devices"].as_array().unwrap().len();
        assert_eq!(found().await, 32);
        app.delete(&format!("/directory/users/{anna}")).await.ok();
        assert_eq!(found().await, 0);
        app.kernel.stop().await;
    });
}

/// Proves RS-1.
#[test]
fn an_assignment_is_its_managers_and_nobody_else_changes_it() {
    each("fleet_gateway_managers", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let (one, other) = (robot(&app).await, robot(&app).await);
        let (terraform, token) = app.account("terraform", "admin", &[]).await;
        let (_, stranger) = app.account("stranger", "admin", &[]).await;
        let put = async |token: &str, labels: Option<[&str; 2]>, account: &str| {
            let body = json!({ "serviceAccountId": account, "source": "terraform" });
            let call = app.request("PUT", &path(&laptop)).token(token);
            let call = match labels {
                Some([manager, instance]) => call
                    .header("x-forge-terraform-manager", manager)
                    .header("x-forge-terraform-instance", instance),
                None => call,
            };
            call.json(with_trio(body, &fresh_key())).send().await
        };
        let remove = async |token: &str, labels: Option<[&str; 2]>| {
            let call = app.request("DELETE", &path(&laptop)).token(token);
            let call = call
                .header("idempotency-key", &fresh_key())
                .header("x-reason", "a test");
            let call = match labels {
                Some([manager, instance]) => call
                    .header("x-forge-terraform-manager", manager)
                    .header("x-forge-terraform-instance", instance),
                None => call,
            };
            call.send().await
        };
        let mine = Some(["terraform", "prod"]);
        put(&token, mine, &one).await.ok();
        assert_eq!(put(&token, mine, &one).await.ok()["revision"], 1);
        // The labels coordinate, and the principal is the boundary.
        for (token, labels) in [
            (&token, Some(["terraform", "test"])),
            (&token, None),
            (&stranger, mine),
            (&app.admin, None),
        ] {
            put(token, labels, &other).await.refused(409, "conflict");
            remove(token, labels).await.refused(409, "conflict");
        }
        assert_eq!(resolved(&app, &laptop).await["subjectId"], json!(one));
        assert_eq!(put(&token, mine, &other).await.ok()["revision"], 2);
        assert_eq!(remove(&token, mine).await.status.as_u16(), 204);
        assert_eq!(remove(&token, mine).await.status.as_u16(), 204);
        // What is taken away is free; what the service assigned no manager takes over.
        put(&app.admin, None, &one).await.ok();
        put(&token, mine, &other).await.refused(409, "conflict");
        remove(&token, mine).await.refused(409, "conflict");
        assert_eq!(remove(&app.admin, None).await.status.as_u16(), 204);
        // With its manager an assignment loses its owner.
        put(&token, mine, &one).await.ok();
        put(&app.admin, None, &other).await.refused(409, "conflict");
        app.delete(&format!("/service-accounts/{terraform}")).await.ok();
        put(&app.admin, None, &other).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves FL-7.
#[test]
fn a_token_of_one_use_names_whose_machine_it_makes_by_the_word_of_who_made_it() {
    each("fleet_token_owner", |app: Arc<App>| async move {
        let (anna, boss) = (user(&app, None).await, user(&app, Some("admin")).await);
        let asks = async |token: &str, owner: &str, members: Value| {
            let mut body = json!({ "name": fresh_key(), "ownerUserId": owner });
            for (name, value) in members.as_object().unwrap() {
                body[name] = value.clone();
            }
            let call = app.request("POST", TOKENS).token(token);
            call.json(with_trio(body, &fresh_key())).send().await
        };
        let many = json!({ "maxUses": 2, "requireApproval": true });
        asks(&app.admin, &anna, many)
            .await
            .refused(422, "invalid_definition");
        for none in ["usr_01kadh5j9v0000000000000000", "anna"] {
            asks(&app.admin, none, json!({}))
                .await
                .refused(422, "invalid_definition");
        }
        // Without the scope a right guess is answered as a wrong one is.
        let (_, without) = app.account("without", "admin", &["fleet:enrol"]).await;
        for guess in [anna.as_str(), "usr_01kadh5j9v0000000000000000"] {
            asks(&without, guess, json!({}))
                .await
                .refused(403, "insufficient_scope");
        }
        let scopes = ["fleet:enrol", "llm_gateway:write"];
        let (_, narrow) = app.account("narrow", "admin", &scopes).await;
        asks(&narrow, &boss, json!({}))
            .await
            .refused(403, "escalation_forbidden");
        let enrolled = async |reply: Reply| {
            let secret = reply.ok()["token"].as_str().unwrap().to_owned();
            let machine = enrol(&app, &secret).await;
            machine.beat(&app).await.ok();
            machine
        };
        let hers = enrolled(asks(&narrow, &anna, json!({})).await).await;
        assert_eq!(resolved(&app, &hers).await["subjectId"], json!(anna));
        let by_admin = enrolled(asks(&app.admin, &boss, json!({})).await).await;
        assert_eq!(resolved(&app, &by_admin).await["subjectId"], json!(boss));
        // What its maker could not give is behind it by no later role, and the audit log says who named whom.
        promote(&app, &anna, "operator").await;
        nobody(&app, &hers, "can do more than whoever named the owner").await;
        let log = app
            .get("/audit/events?action=createHeadlessEnrolmentToken&limit=1")
            .await;
        let changes = log.ok()["events"][0]["changes"].clone();
        let named = json!({ "path": "/ownerUserId", "after": boss });
        assert!(changes.as_array().unwrap().contains(&named), "{changes}");
        // Whoever was deleted meanwhile owns nothing, and nobody said that it is to be nobody's.
        let gone = user(&app, None).await;
        let secret = asks(&app.admin, &gone, json!({})).await.ok()["token"].clone();
        let call = app.request("DELETE", &format!("/directory/users/{gone}"));
        let call = call.header("idempotency-key", &fresh_key());
        let call = call.header("x-reason", "she left").header("x-confirm", "true");
        call.send().await.ok();
        let body = super::laptop_body();
        let reply = send(&app, &new_key(), secret.as_str().unwrap(), "/devices/enrol", body).await;
        reply.refused(409, "conflict");
        assert!(reply.text().contains("was deleted"), "{}", reply.text());
        app.kernel.stop().await;
    });
}
