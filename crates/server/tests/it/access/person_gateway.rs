//! A person's gateway token: it works, as her, for what it is bound to, as long as she does (SK-7, DE-7, D10.6).

use crate::access::oauth::{token, trusting, user, workshop};
use crate::support::{App, Reply, TestServer, each, fresh_key};
use provost_policy::Family;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

const ANN: &str = "ann@acme.example";

/// A server that trusts an issuer, a user and her delegated token.
async fn person(app: &App, role: &str) -> (Arc<App>, String, String) {
    let workshop = workshop(app);
    let app = trusting(app, &workshop);
    let id = user(&app, ANN, Some(role)).await;
    let delegated = token(&workshop, |claims| {
        claims["scope"] = "registry:install policies:read".into();
    });
    (app, id, delegated)
}

async fn gateway(app: &App, token: &str, item: &str) -> String {
    let receipt = app.install(token, item, "laptop").await;
    receipt.ok()["gatewayToken"]["token"].as_str().unwrap().to_owned()
}

async fn fetch(app: &App, token: &str, item: &str) -> Reply {
    let path = format!("/skill-registry/{item}/content");
    app.request("GET", &path).token(token).send().await
}

/// Proves SK-7.
#[test]
fn a_persons_gateway_token_works_and_ends_with_the_install() {
    each("person_gateway", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        app.skill("reading").await;
        app.skill("writing").await;
        let own = gateway(&app, &delegated, "reading").await;
        fetch(&app, &own, "reading").await.ok();
        fetch(&app, &own, "writing").await.refused(404, "not_found");
        app.request("GET", "/policies")
            .token(&own)
            .send()
            .await
            .refused(401, "unauthenticated");
        // In another organization it is a stranger's.
        let (globex, _) = app.other_organization("Globex").await;
        let path = format!("/api/headless/v1/organizations/{globex}/skill-registry/reading/content");
        let reply = app.request("GET", "").at(&path).token(&own).send().await;
        reply.refused(403, "organization_forbidden");
        let installs = app.get("/skill-installs").await;
        assert_eq!(installs.ok()["installs"][0]["principalId"], id);
        let gone = app.uninstall(&delegated, "reading").await;
        assert_eq!(gone.ok()["gatewayToken"]["revokedCount"], 1);
        fetch(&app, &own, "reading").await.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

/// Runs the program as a person on a machine of hers; returns whether it succeeded and what it said.
async fn provost(served: &TestServer, home: &Path, token: &str, arguments: &[&str]) -> (bool, String) {
    let url = format!("http://{}", served.address);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_provost"));
    command
        .args(arguments)
        .args(["--url", &url, "--organization", "acme"])
        .env_clear()
        .env("HOME", home)
        .env("PROVOST_TOKEN", token)
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn a_person_installs_a_skill_with_the_program_and_takes_it_off_again() {
    each("person_program", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        app.skill("reading").await;
        let served = app.serve().await;
        let home = app.keys_dir.join("home");
        std::fs::create_dir(&home).unwrap();
        let run = async |arguments: &[&str]| provost(&served, &home, &delegated, arguments).await;
        let (is_done, said) = run(&["skills", "install", "reading", "--reason", "reads"]).await;
        assert!(is_done, "{said}");
        let file = home.join(".claude/skills/reading/SKILL.md");
        assert!(file.exists(), "{said}");
        let installs = app.get("/skill-installs").await;
        assert_eq!(installs.ok()["installs"][0]["principalId"], id);
        let (is_done, said) = run(&["skills", "install", "writing", "--reason", "writes"]).await;
        assert!(!is_done && said.contains("not_found"), "{said}");
        let (is_done, said) = run(&["skills", "uninstall", "reading", "--reason", "done"]).await;
        assert!(is_done && !file.exists(), "{said}");
        let installs = app.get("/skill-installs").await;
        assert_eq!(installs.ok()["installs"][0]["status"], "removed");
        served.stop().await;
        app.kernel.stop().await;
    });
}

/// Proves DE-7.
#[test]
fn a_persons_gateway_token_asks_as_her_and_as_nobody_else() {
    each("person_gateway_decides", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        let item = app.skill("reading").await;
        let other = app.skill("writing").await;
        let own = gateway(&app, &delegated, "reading").await;
        let acl = json!({ "id": "acl", "skillId": item, "subjects": { "users": [ANN] }, "effect": "block" });
        crate::policy::decisions::policy(&app, Family::SkillAcl, acl).await;
        let ask = async |attributes: Value| {
            let event = json!({ "occasion": "skill", "attributes": attributes });
            let call = app.request("POST", "/policies/decisions").token(&own);
            call.json(json!({ "events": [event] })).send().await
        };
        for allowed in [
            json!({ "skill.id": item }),
            json!({ "skill.id": "reading", "identity.user_id": id }),
        ] {
            assert_eq!(
                ask(allowed.clone()).await.ok()["decisions"][0]["action"],
                "block",
                "{allowed}"
            );
        }
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        for refused in [
            json!({ "skill.id": other }),
            json!({ "skill.id": item, "identity.user_id": bob }),
            json!({ "skill.id": item, "identity.user_id": "bob@acme.example" }),
            json!({ "skill.id": item, "identity.service_account_id": app.admin_id }),
            json!({ "skill.id": item, "identity.group_ids": [] }),
            json!({ "skill.id": item, "device.id": "d" }),
        ] {
            ask(refused).await.refused(403, "insufficient_scope");
        }
        app.kernel.stop().await;
    });
}

/// Proves SK-7.
#[test]
fn a_persons_gateway_token_ends_when_she_leaves_and_stays_ended() {
    each("person_gateway_leaves", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        app.skill("reading").await;
        let own = gateway(&app, &delegated, "reading").await;
        let path = format!("/directory/users/{id}");
        // Without a role she may do nothing, by this token neither.
        app.write("PATCH", &path, json!({ "permissionRole": null }))
            .await
            .ok();
        fetch(&app, &own, "reading").await.refused(403, "role_forbidden");
        app.write("PATCH", &path, json!({ "permissionRole": "viewer" }))
            .await
            .ok();
        fetch(&app, &own, "reading").await.ok();
        app.write("POST", &format!("{path}/suspend"), json!({}))
            .await
            .ok();
        fetch(&app, &own, "reading").await.refused(401, "token_revoked");
        app.write("POST", &format!("{path}/reactivate"), json!({}))
            .await
            .ok();
        fetch(&app, &own, "reading").await.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

#[test]
fn a_gateway_token_whose_session_is_over_ends_with_the_suspension_as_well() {
    each("person_gateway_over", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        app.skill("reading").await;
        let own = gateway(&app, &delegated, "reading").await;
        app.advance(7_200);
        let gone = app.request("GET", "/policies").token(&delegated).send().await;
        gone.refused(401, "token_expired");
        fetch(&app, &own, "reading").await.ok();
        let path = format!("/directory/users/{id}");
        for act in ["suspend", "reactivate"] {
            app.write("POST", &format!("{path}/{act}"), json!({})).await.ok();
            fetch(&app, &own, "reading").await.refused(401, "token_revoked");
        }
        app.kernel.stop().await;
    });
}

#[test]
fn a_deleted_persons_gateway_token_is_dead() {
    each("person_gateway_deleted", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        app.skill("reading").await;
        let own = gateway(&app, &delegated, "reading").await;
        fetch(&app, &own, "reading").await.ok();
        app.delete(&format!("/directory/users/{id}")).await.ok();
        let reply = fetch(&app, &own, "reading").await;
        assert_eq!(reply.status.as_u16(), 401, "{}", reply.text());
        app.kernel.stop().await;
    });
}

#[test]
fn what_a_persons_gateway_token_does_is_audited_as_hers() {
    each("person_gateway_audit", |app| async move {
        let (app, id, delegated) = person(&app, "viewer").await;
        let item = app.skill("reading").await;
        let own = gateway(&app, &delegated, "reading").await;
        let event = json!({ "occasion": "skill", "attributes": { "skill.id": item } });
        let call = app.request("POST", "/policies/decisions").token(&own);
        call.header("idempotency-key", &fresh_key())
            .json(json!({ "events": [event] }))
            .send()
            .await
            .ok();
        app.kernel.flush_counts();
        app.settle().await;
        let entries = app.entries(&app.organization, 0).await;
        let hers: Vec<&Value> = entries
            .iter()
            .filter(|entry| {
                entry["actor"]["id"] == id.as_str()
                    || entry["target"]["id"]
                        .as_str()
                        .is_some_and(|target| target.ends_with(&id))
            })
            .collect();
        assert!(
            hers.iter()
                .any(|entry| entry["actor"]["kind"] == "console_user"
                    || entry["actor"]["type"] == "console_user"),
            "{hers:?}"
        );
        app.kernel.stop().await;
    });
}
