//! A plan's token is good for the one revision that was planned, by who planned it (PO-5).

use crate::areas::directory::user;
use crate::areas::policies::definition;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::sync::Arc;

/// Everything that a token is bound to and that a caller can change.
#[derive(Clone)]
struct Write<'a> {
    token: &'a str,
    manager: Option<[&'a str; 2]>,
    definition: Value,
    source_ref: Value,
    expected_revision: i64,
}

impl Write<'_> {
    async fn plan(&self, app: &App) -> Reply {
        let body = json!({ "family": "content", "definition": self.definition, "sourceRef": self.source_ref,
            "expectedRevision": self.expected_revision });
        let call = app
            .request("POST", "/policy-plans/validate")
            .token(self.token)
            .json(body);
        self.labelled(call).send().await
    }

    async fn token(&self, app: &App) -> String {
        self.plan(app).await.ok()["validationToken"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn apply(&self, app: &App, validation: &str) -> Reply {
        let id = self.definition["id"].as_str().unwrap();
        let body = json!({ "definition": self.definition, "sourceRef": self.source_ref, "validationToken": validation,
            "expectedRevision": self.expected_revision });
        let call = if self.expected_revision == 0 {
            app.request("POST", "/content-policies")
        } else {
            app.request("PUT", &format!("/content-policies/{id}"))
        };
        self.labelled(call.token(self.token).json(with_trio(body, &fresh_key())))
            .send()
            .await
    }

    fn labelled<'b>(&self, call: crate::support::Call<'b>) -> crate::support::Call<'b> {
        match self.manager {
            Some([manager, instance]) => call
                .header("x-forge-terraform-manager", manager)
                .header("x-forge-terraform-instance", instance),
            None => call,
        }
    }
}

fn first(token: &str) -> Write<'_> {
    Write {
        token,
        manager: Some(["platform", "production"]),
        definition: definition("content-policies", "planned", ""),
        source_ref: json!({ "tool": "terraform", "resource": "a", "selectors": {} }),
        expected_revision: 0,
    }
}

/// Proves PO-5.
#[test]
fn every_part_that_a_token_binds_is_bound() {
    each("plan_tokens", |app: Arc<App>| async move {
        let (_, terraform) = app.account("terraform", "admin", &["policies:write"]).await;
        let (_, other) = app.account("other", "admin", &["policies:write"]).await;
        let planned = first(&terraform);
        let token = planned.token(&app).await;
        let mut attacks: Vec<(&str, Write<'_>)> = Vec::new();
        let mut attack = |name, change: &dyn Fn(&mut Write<'_>)| {
            let mut write = planned.clone();
            change(&mut write);
            attacks.push((name, write));
        };
        attack("another definition", &|w| w.definition["name"] = "another".into());
        attack("another id", &|w| w.definition["id"] = "planned2".into());
        attack("another source", &|w| w.source_ref["resource"] = "b".into());
        attack("no source", &|w| w.source_ref = Value::Null);
        attack("another manager", &|w| {
            w.manager = Some(["platform2", "production"]);
        });
        attack("another instance", &|w| {
            w.manager = Some(["platform", "productio"]);
        });
        attack("shifted labels", &|w| {
            w.manager = Some(["platformp", "roduction"]);
        });
        attack("no labels", &|w| w.manager = None);
        attacks.push((
            "another principal",
            Write {
                token: &other,
                ..planned.clone()
            },
        ));
        for (name, write) in &attacks {
            let reply = write.apply(&app, &token).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (409, "conflict"),
                "{name}: {}",
                reply.text()
            );
        }
        // Another organization, whose keys are the same.
        let (organization, admin) = app.other_organization("Umbrella").await;
        let there = app.view_of(organization, admin.clone());
        let foreign = Write {
            token: &admin,
            ..planned.clone()
        };
        foreign.apply(&there, &token).await.refused(409, "conflict");
        // Every bit of it.
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        assert_eq!(bytes.len(), 32);
        for place in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[place / 8] ^= 1 << (place % 8);
            let reply = planned.apply(&app, &URL_SAFE_NO_PAD.encode(flipped)).await;
            reply.refused(409, "conflict");
        }
        for text in [
            "a",
            "not base64!",
            &token[..42],
            &format!("{token}A"),
            &"A".repeat(43),
            &"A".repeat(54),
            &"A".repeat(512),
        ] {
            planned.apply(&app, text).await.refused(409, "conflict");
        }
        planned.apply(&app, "").await.refused(400, "invalid_request");
        planned
            .apply(&app, &"A".repeat(513))
            .await
            .refused(400, "invalid_request");
        assert_eq!(
            app.get("/policies").await.ok()["policies"],
            json!([]),
            "nothing was written"
        );
        // The token itself is good, once.
        planned.apply(&app, &token).await.ok();
        // Said again it makes nothing.
        assert_eq!(planned.apply(&app, &token).await.status, 200);
        let second = Write {
            expected_revision: 1,
            ..planned.clone()
        };
        second.apply(&app, &token).await.refused(409, "conflict");
        let token = second.token(&app).await;
        second.apply(&app, &token).await.ok();
        second.apply(&app, &token).await.refused(409, "conflict");
    });
}

/// Terraform plans each change twice, with two idempotency keys, and refuses what is planned differently (client contract §3.2).
///
/// Proves PO-5.
#[test]
fn equal_plans_have_equal_tokens_whenever_they_are_made() {
    each("plan_twice", |app: Arc<App>| async move {
        let write = first(&app.admin);
        let planned = write.plan(&app).await;
        let mut before = planned.ok().clone();
        app.advance(3_600);
        let again = write.plan(&app).await;
        let mut after = again.ok().clone();
        let ends =
            [&mut before, &mut after].map(|plan| plan.as_object_mut().unwrap().remove("expiresAt").unwrap());
        assert_ne!(ends[0], ends[1], "always ten minutes ahead");
        assert_eq!(before, after);
        // A saved plan is applied as it is, however old it is.
        app.advance(30 * 86_400);
        let token = before["validationToken"].as_str().unwrap();
        write.apply(&app, token).await.ok();
    });
}

/// Proves PO-5.
#[test]
fn a_plan_of_before_a_deletion_brings_nothing_back() {
    each("plan_deleted", |app: Arc<App>| async move {
        let write = first(&app.admin);
        let token = write.token(&app).await;
        write.apply(&app, &token).await.ok();
        let gone = app
            .request("DELETE", "/content-policies/planned?expectedRevision=1")
            .token(write.token)
            .header("idempotency-key", &fresh_key())
            .header("x-forge-reason", "a test")
            .header("x-forge-confirm", "true");
        assert_eq!(write.labelled(gone).send().await.status, 204);
        write.apply(&app, &token).await.refused(409, "conflict");
        let token = write.token(&app).await;
        let back = write.apply(&app, &token).await;
        assert_eq!(back.ok()["item"]["currentRevision"], 2);
    });
}

#[test]
fn every_entry_of_a_managers_writes_names_its_labels() {
    each("plan_labels", |app: Arc<App>| async move {
        let write = first(&app.admin);
        write.apply(&app, "AAAA").await.refused(409, "conflict");
        let token = write.token(&app).await;
        write.apply(&app, &token).await.ok();
        let plain = Write {
            manager: None,
            definition: definition("content-policies", "plain", ""),
            ..write.clone()
        };
        let token = plain.token(&app).await;
        plain.apply(&app, &token).await.ok();
        let entries = app.get("/audit/events?limit=50").await.ok()["events"].clone();
        let labels: Vec<&Value> = entries
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["target"]["type"] == "policy")
            .map(|entry| &entry["manager"])
            .collect();
        let named = json!({ "id": "platform", "instance": "production" });
        assert_eq!(
            labels,
            [&Value::Null, &named, &named],
            "the newest first: {entries}"
        );
    });
}

#[test]
fn a_manager_needs_a_token_and_others_may_go_without() {
    each("plan_needed", |app: Arc<App>| async move {
        let body = json!({ "definition": definition("content-policies", "one", "") });
        let call = app
            .request("POST", "/content-policies")
            .header("x-forge-terraform-manager", "a")
            .header("x-forge-terraform-instance", "b");
        let refused = call.json(with_trio(body.clone(), &fresh_key())).send().await;
        refused.refused(409, "conflict");
        // One label is no manager.
        let call = app
            .request("POST", "/content-policies")
            .header("x-forge-terraform-manager", "a");
        let made = call.json(with_trio(body, &fresh_key())).send().await;
        assert_eq!(made.ok()["item"]["managementMode"], "forge");
        // Whoever sends one is held to it.
        let plain = Write {
            manager: None,
            ..first(&app.admin)
        };
        let token = plain.token(&app).await;
        let mut other = plain.clone();
        other.definition["name"] = "another".into();
        other.apply(&app, &token).await.refused(409, "conflict");
        plain.apply(&app, &token).await.ok();
        // The mutation metadata's headers with the question change nothing.
        let body = json!({ "family": "content", "definition": definition("content-policies", "two", ""), "expectedRevision": 0 });
        for _ in 0..2 {
            let call = app
                .request("POST", "/policy-plans/validate")
                .header("idempotency-key", "one-key");
            let call = call
                .header("x-forge-reason", "a")
                .header("x-forge-confirm", "true");
            let reply = call.json(body.clone()).send().await;
            reply.ok();
            assert_eq!(reply.header("idempotent-replayed"), "");
        }
    });
}

/// The client writes plain names into definitions, and says in its selectors which directory they are of.
#[test]
fn selectors_name_the_directory_of_whom_several_are_called() {
    each("plan_selectors", |app: Arc<App>| async move {
        user(&app, "twin").await;
        for (login, email) in [("twin", None), ("other", Some("solo@acme.test"))] {
            let body = json!({ "loginName": login, "email": email, "directoryId": "okta" });
            app.write("POST", "/directory/users", body).await.ok();
        }
        user(&app, "solo@acme.test").await;
        let plan = async |name: &str, selectors: Value| {
            let mut write = first(&app.admin);
            write.definition["appliesTo"] = json!({ "users": [name] });
            write.source_ref["selectors"] = selectors;
            write.plan(&app).await
        };
        let users = |users: Value| json!({ "appliesTo": { "users": users } });
        let entry = |name: &str, directory: &str| json!({ "name": name, "directoryId": directory });
        let mut bound = Vec::new();
        for (name, directory) in [
            ("twin", "default"),
            ("twin", "okta"),
            ("TWIN", "okta"),
            ("solo@acme.test", "okta"),
        ] {
            let reply = plan(name, users(json!(["else", entry(name, directory)]))).await;
            bound.push(reply.ok()["referenceBindingFingerprint"].clone());
        }
        assert_ne!(bound[0], bound[1]);
        assert_eq!(bound[1], bound[2]);
        for selectors in [
            json!({}),
            users(json!(["twin"])),
            users(json!([entry("twin", "nowhere")])),
            users(json!([entry("twim", "okta")])),
            users(json!([entry("twin", "okta"), entry("twin", "default")])),
            users(json!([entry("twin", "okta"), "twin"])),
            users(json!({ "name": "twin", "directoryId": "okta" })),
            json!({ "appliesTo": { "groups": [entry("twin", "okta")] } }),
            json!({ "subjects": { "users": [entry("twin", "okta")] } }),
        ] {
            plan("twin", selectors).await.refused(422, "invalid_definition");
        }
        // Whoever is alone with a name needs none, and another one is not chosen by it.
        let alone = plan("other", users(json!([entry("other", "nowhere")]))).await;
        alone.ok();
        plan("solo@acme.test", json!({}))
            .await
            .refused(422, "invalid_definition");
    });
}

/// Proves PO-5.
#[test]
fn a_name_that_means_another_record_makes_a_plan_stale() {
    each("plan_references", |app: Arc<App>| async move {
        let alice = user(&app, "alice").await;
        let mut write = first(&app.admin);
        write.definition["appliesTo"] = json!({ "users": ["alice"] });
        let plan = write.plan(&app).await;
        let token = plan.ok()["validationToken"].as_str().unwrap().to_owned();
        assert_eq!(
            app.delete(&format!("/directory/users/{alice}"))
                .await
                .status
                .as_u16(),
            204
        );
        let missing = write.apply(&app, &token).await;
        missing.refused(422, "invalid_definition");
        assert_eq!(missing.json["errors"][0]["path"], "/definition/appliesTo/users/0");
        // Under the same name alone it would be the same record that comes back.
        let body = json!({ "loginName": "alice", "externalId": "another" });
        app.write("POST", "/directory/users", body).await.ok();
        write.apply(&app, &token).await.refused(409, "conflict");
        let again = write.plan(&app).await;
        assert_ne!(
            again.ok()["referenceBindingFingerprint"],
            plan.json["referenceBindingFingerprint"]
        );
        assert_eq!(again.json["definitionSha256"], plan.json["definitionSha256"]);
        write
            .apply(&app, again.json["validationToken"].as_str().unwrap())
            .await
            .ok();
    });
}
