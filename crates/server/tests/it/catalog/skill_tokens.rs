//! Gateway tokens: what they open, and that they end when the install does (D10.6, D4.8, D2.10).

use crate::areas_beside::every_area;
use crate::mechanisms::replay_cell::assert_nowhere;
use crate::samples;
use crate::support::{App, Dice, Reply, each, each_of, exchange, fresh_key, number, with_trio, workload};
use provost_kernel::operation::Kind;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is a text"))
        .to_owned()
}

/// Installs an item and returns the gateway token.
async fn gateway(app: &App, token: &str, item: &str) -> String {
    let receipt = app.install(token, item, "laptop").await;
    text(&receipt.ok()["gatewayToken"]["token"])
}

async fn fetch(app: &App, token: &str, item: &str) -> Reply {
    let path = format!("/skill-registry/{item}/content");
    app.request("GET", &path).token(token).send().await
}

/// Every operation of the product, present and to come: what does not say that it takes gateway tokens does not.
/// Proves SK-7.
#[test]
fn a_gateway_token_opens_its_item_and_nothing_else() {
    each_of(every_area(), "gateway_matrix", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "admin", &[]).await;
        let item = app.skill("reading").await;
        app.skill("writing").await;
        let token = gateway(&app, &person, &item).await;
        let before = samples::state(&app).await;
        let mut opened = Vec::new();
        let mut target = samples::Target::absent();
        target.others.insert("itemRef", item.clone());
        for entry in app.kernel.registry.entries() {
            // What is sent there is kept: after the comparison.
            if entry.meta.ingests && entry.meta.of_item {
                continue;
            }
            let reply = samples::call(&app, entry, &target).token(&token).send().await;
            if entry.meta.of_item {
                reply.ok();
                opened.push((entry.meta.id, entry.meta.path));
                assert_eq!(entry.meta.kind, Kind::Read);
                continue;
            }
            reply.refused(401, "unauthenticated");
        }
        assert_eq!(samples::state(&app).await, before);
        let names: Vec<&str> = opened.iter().map(|(id, _)| *id).collect();
        assert_eq!(
            names,
            [
                "getHeadlessSkillRegistryContent",
                "getHeadlessSkillRegistryManifest"
            ]
        );
        let entries = app.kernel.registry.entries().iter();
        let ingests: Vec<_> = entries
            .filter(|entry| entry.meta.ingests && entry.meta.of_item)
            .collect();
        assert_eq!(ingests.len(), 1);
        assert_eq!(ingests[0].meta.id, "createHeadlessPolicyDecisions");
        samples::call(&app, ingests[0], &target)
            .token(&token)
            .send()
            .await
            .ok();
        // Another item, an absent one and nonsense are one answer; its own goes by every name.
        for (_, path) in opened {
            let mut answers = std::collections::BTreeSet::new();
            for other in [
                "writing",
                "nothing",
                "reading@9.9.9",
                "..%2Freading",
                "ski_01kadh5j9v0000000000000000",
            ] {
                let call = app
                    .request("GET", &path.replace("{itemRef}", other))
                    .token(&token);
                let reply = call.send().await;
                reply.refused(404, "not_found");
                answers.insert(text(&reply.json["message"]));
            }
            assert_eq!(answers.len(), 1);
            for own in ["reading", "reading@1.0.0", item.as_str()] {
                app.request("GET", &path.replace("{itemRef}", own))
                    .token(&token)
                    .send()
                    .await
                    .ok();
            }
        }
        // In another organization it is a stranger's.
        let (globex, _) = app.other_organization("Globex").await;
        let path = format!("/api/headless/v1/organizations/{globex}/skill-registry/reading/content");
        let reply = app.request("GET", "").at(&path).token(&token).send().await;
        reply.refused(403, "organization_forbidden");
        // The MCP endpoint is none of its doors.
        let knock = async |token: &str| {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
            let request = http::Request::post("/mcp")
                .header("host", "127.0.0.1")
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            let request = request.body(body.into()).unwrap();
            crate::access::oauth::answer(&app, request).await.status.as_u16()
        };
        assert_eq!(knock(&token).await, 401);
        assert_eq!(knock(&person).await, 200);
    });
}

/// Proves SK-3.
#[test]
fn no_gateway_token_is_accepted_after_the_uninstall() {
    each("gateway_revocation", |app: Arc<App>| async move {
        let mut dice = Dice::new("gateway_revocation");
        let served = app.serve().await;
        let (_, person) = app.account("a person", "viewer", &[]).await;
        app.skill("reading").await;
        app.skill("writing").await;
        let other = gateway(&app, &person, "writing").await;
        for round in 0..workload("PROVOST_TEST_REVOCATIONS", 60, 500) {
            let token = gateway(&app, &person, "reading").await;
            let path = "/skill-registry/reading/manifest";
            let probe = app.on_the_wire("GET", path, &token, &json!(null));
            let probe = String::from_utf8(probe)
                .unwrap()
                .replace("content-length: 4\r\n\r\nnull", "\r\n")
                .replace("content-type: application/json\r\n", "");
            if dice.chance(2) {
                let (status, answer) = exchange(served.address, probe.as_bytes()).await.json();
                assert_eq!(status, 200, "round {round}: {answer}");
            }
            let gone = app.uninstall(&person, "reading").await;
            assert_eq!(gone.ok()["gatewayToken"]["revokedCount"], 1, "round {round}");
            let (status, answer) = exchange(served.address, probe.as_bytes()).await.json();
            assert_eq!(
                (status, &answer["code"]),
                (401, &json!("token_revoked")),
                "round {round}"
            );
        }
        assert_eq!(
            fetch(&app, &other, "writing").await.status,
            200,
            "other items keep working"
        );
        served.stop().await;
    });
}

/// Whatever comes at the same moment: at its end an install has one live token or is not there.
/// Proves SK-4.
#[test]
fn storms_of_installs_and_uninstalls_leave_one_truth() {
    each("gateway_storm", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "viewer", &[]).await;
        let (_, bystander) = app.account("a bystander", "viewer", &[]).await;
        app.skill("reading").await;
        let kept = gateway(&app, &bystander, "reading").await;
        for round in 0..number("PROVOST_TEST_STORMS", 5) {
            let mut storm = JoinSet::new();
            for n in 0..64 {
                let (app, person) = (app.clone(), person.clone());
                storm.spawn(async move {
                    if n % 2 == 0 {
                        return app.uninstall(&person, "reading").await;
                    }
                    app.install(&person, "reading", if n % 4 == 1 { "laptop" } else { "desktop" })
                        .await
                });
            }
            let (mut issued, mut revoked) = (Vec::new(), std::collections::BTreeSet::new());
            for reply in storm.join_all().await {
                reply.ok();
                if let Some(token) = reply.json["gatewayToken"].get("token") {
                    issued.push((text(&reply.json["gatewayToken"]["id"]), text(token)));
                }
                for token in reply.json["gatewayToken"]["tokens"]
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    assert!(revoked.insert(text(&token["id"])), "a token is revoked once");
                }
            }
            let own = app
                .request("GET", "/skill-installs/own?status=installed")
                .token(&person)
                .send()
                .await;
            let installed = own.ok()["installs"].as_array().unwrap().len();
            let mut live = 0;
            for (id, token) in &issued {
                let reply = fetch(&app, token, "reading").await;
                if reply.status == 200 {
                    live += 1;
                    assert!(!revoked.contains(id), "round {round}");
                } else {
                    reply.refused(401, "token_revoked");
                }
            }
            assert_eq!(live, installed, "round {round}: one live token for each install");
            app.uninstall(&person, "reading").await.ok();
            for (_, token) in &issued {
                fetch(&app, token, "reading").await.refused(401, "token_revoked");
            }
        }
        assert_eq!(fetch(&app, &kept, "reading").await.status, 200);
    });
}

/// Proves SK-7.
#[test]
fn a_gateway_token_works_while_its_principal_does() {
    each("gateway_principal", |app: Arc<App>| async move {
        let (id, person) = app.account("a person", "viewer", &[]).await;
        app.skill("reading").await;
        let token = gateway(&app, &person, "reading").await;
        assert_eq!(fetch(&app, &token, "reading").await.status, 200);
        let account = format!("/service-accounts/{id}");
        app.write("POST", &format!("{account}/disable"), json!({}))
            .await
            .ok();
        fetch(&app, &token, "reading")
            .await
            .refused(401, "unauthenticated");
        app.write("POST", &format!("{account}/enable"), json!({}))
            .await
            .ok();
        assert_eq!(fetch(&app, &token, "reading").await.status, 200);
        // The token of the account may be rotated; the gateway token is not that one.
        app.write("POST", &format!("{account}/tokens"), json!({}))
            .await
            .ok();
        assert_eq!(fetch(&app, &token, "reading").await.status, 200);
        let call = app.request("DELETE", &account).header("x-reason", "a test");
        let call = call
            .header("x-confirm", "true")
            .header("idempotency-key", &fresh_key());
        call.send().await.ok();
        fetch(&app, &token, "reading")
            .await
            .refused(401, "unauthenticated");
    });
}

#[test]
fn a_gateway_token_ends_with_its_time() {
    each("gateway_expiry", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "viewer", &[]).await;
        app.skill("reading").await;
        let body = json!({ "tokens": { "maxLifetimeSeconds": 7200 } });
        app.write("PATCH", "/automation/settings", body).await.ok();
        let token = gateway(&app, &person, "reading").await;
        app.clock.advance(std::time::Duration::from_millis(7_199_999));
        assert_eq!(fetch(&app, &token, "reading").await.status, 200);
        app.clock.advance(std::time::Duration::from_millis(1));
        fetch(&app, &token, "reading").await.refused(401, "token_expired");
    });
}

/// Proves SK-6.
#[test]
fn the_receipt_is_repeated_until_the_first_use_and_never_after_an_uninstall() {
    each("gateway_replay", |app: Arc<App>| async move {
        let (id, person) = app.account("a person", "viewer", &[]).await;
        app.skill("reading").await;
        let path = "/skill-registry/reading/cli-install";
        let install = |body: Value| app.request("POST", path).token(&person).json(body).send();
        let wanted = || with_trio(json!({ "client": "claude-code" }), &fresh_key());

        let body = wanted();
        let first = install(body.clone()).await;
        let token = text(&first.ok()["gatewayToken"]["token"]);
        let again = install(body.clone()).await;
        assert_eq!(
            (&again.bytes, again.header("idempotent-replayed")),
            (&first.bytes, "true")
        );
        assert_eq!(again.status, 201);
        assert_eq!(fetch(&app, &token, "reading").await.status, 200);
        install(body).await.refused(409, "secret_no_longer_retrievable");

        // Revoked by an uninstall before it was used: nothing repeats it.
        let body = wanted();
        let unused = text(&install(body.clone()).await.ok()["gatewayToken"]["token"]);
        app.uninstall(&person, "reading").await.ok();
        install(body).await.refused(409, "secret_no_longer_retrievable");

        // Replaced by the next install at the same place.
        let body = wanted();
        let replaced = text(&install(body.clone()).await.ok()["gatewayToken"]["token"]);
        let live = text(&install(wanted()).await.ok()["gatewayToken"]["token"]);
        install(body).await.refused(409, "secret_no_longer_retrievable");

        // Forgotten when the account is disabled.
        let body = wanted();
        let kept = text(&install(body.clone()).await.ok()["gatewayToken"]["token"]);
        let account = format!("/service-accounts/{id}");
        app.write("POST", &format!("{account}/disable"), json!({}))
            .await
            .ok();
        app.write("POST", &format!("{account}/enable"), json!({}))
            .await
            .ok();
        install(body).await.refused(409, "secret_no_longer_retrievable");
        assert_eq!(fetch(&app, &kept, "reading").await.status, 200);

        for token in [&token, &unused, &replaced, &live, &kept] {
            assert_nowhere(&app, token).await;
        }
    });
}

#[test]
fn a_dead_gateway_token_that_comes_back_is_told_once_a_minute() {
    each("gateway_reuse", |app: Arc<App>| async move {
        let (id, person) = app.account("a person", "viewer", &[]).await;
        let item = app.skill("reading").await;
        let receipt = app.install(&person, "reading", "laptop").await;
        let token = text(&receipt.ok()["gatewayToken"]["token"]);
        app.uninstall(&person, "reading").await.ok();
        for minutes in 1..=2 {
            for _ in 0..5 {
                fetch(&app, &token, "reading").await.refused(401, "token_revoked");
            }
            app.settle().await;
            let reuse: Vec<Value> = app
                .events(0)
                .await
                .into_iter()
                .filter(|(kind, _)| kind == "gateway_token.reuse_detected")
                .map(|(_, data)| data)
                .collect();
            assert_eq!(reuse.len(), minutes, "{reuse:?}");
            let expected = json!({
                "tokenId": receipt.json["gatewayToken"]["id"], "principalId": id, "itemId": item, "severity": "high",
            });
            assert_eq!(reuse[0], expected);
            let entries = app.entries(&app.organization, 0).await;
            let found = entries
                .iter()
                .filter(|e| e["action"] == "gateway_token.reuse_detected");
            assert_eq!(found.count(), minutes);
            app.advance(60);
        }
    });
}

/// An uninstall whose answer is lost is found by its key, and says the same.
#[test]
fn an_uninstall_with_a_key_says_the_same_again() {
    each("uninstall_key", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "viewer", &[]).await;
        app.skill("reading").await;
        gateway(&app, &person, "reading").await;
        let key = fresh_key();
        let uninstall = || {
            app.request("POST", "/skill-registry/reading/cli-uninstall")
                .token(&person)
                .header("idempotency-key", &key)
                .send()
        };
        let first = uninstall().await;
        assert_eq!(first.ok()["status"], "uninstalled");
        assert_eq!(uninstall().await.bytes, first.bytes);
        let member = app
            .request("POST", "/skill-registry/reading/cli-uninstall")
            .token(&person);
        member
            .json(json!({ "confirm": true }))
            .send()
            .await
            .refused(400, "invalid_request");
        let empty = app
            .request("POST", "/skill-registry/reading/cli-uninstall")
            .token(&person);
        assert_eq!(empty.json(json!({})).send().await.ok()["status"], "not_installed");
    });
}
