//! A create of Terraform that is said again under another key, because its answer was lost (client contract §1.5).

use crate::access::resource_client::Client;
use crate::support::{App, each};
use serde_json::{Value, json};
use std::sync::Arc;

/// Says a create and expects the record that is there.
async fn again(client: &mut Client, path: &str, body: &Value) -> Value {
    let reply = client.write("POST", path, Some(body)).await;
    let record = reply.is(200);
    assert!(reply.head.contains("idempotent-replayed: true"), "{}", reply.head);
    record
}

/// Says a create and expects to hear what is there, and whose it is.
async fn taken(client: &mut Client, path: &str, body: &Value, owner: &Value) {
    let refused = client.write("POST", path, Some(body)).await.is(409);
    for member in ["id", "managerId", "managerInstance"] {
        assert_eq!(refused.get(member), owner.get(member), "{refused}");
    }
}

fn with(base: &Value, member: &str, value: Value) -> Value {
    let mut body = base.clone();
    body[member] = value;
    body
}

async fn client(app: &Arc<App>) -> (crate::support::TestServer, Client) {
    let (_, token) = app.account("terraform", "admin", &[]).await;
    let served = app.serve().await;
    let client = Client::of(app, served.address, &token).await;
    (served, client)
}

/// Proves RS-4.
#[test]
fn a_create_that_is_said_again_within_a_day_makes_nothing() {
    each("again_records", |app: Arc<App>| async move {
        let (served, mut client) = client(&app).await;
        let gateway = json!({ "name": "edge", "hostname": "gw.corp.example", "enabled": true });
        let resource = json!({ "name": "orders", "protocol": "http", "upstreamHost": "orders.internal", "upstreamPort": 443 });
        for (path, body, member, value) in [
            ("/resource-gateways", gateway, "hostname", json!("other.example")),
            ("/resources", resource, "upstreamPort", json!(444)),
        ] {
            let made = client.write("POST", path, Some(&body)).await.is(201);
            app.advance(3_600);
            assert_eq!(again(&mut client, path, &body).await, made);
            let owner =
                json!({ "id": made["id"], "managerId": "platform-team", "managerInstance": "production" });
            taken(&mut client, path, &with(&body, member, value.clone()), &owner).await;
            taken(
                &mut client,
                path,
                &with(
                    &body,
                    "name",
                    made["name"].as_str().unwrap().to_uppercase().into(),
                ),
                &owner,
            )
            .await;
            // Another workspace, another principal, and somebody without labels.
            client.instance = "staging";
            taken(&mut client, path, &body, &owner).await;
            client.instance = "production";
            let own = std::mem::replace(&mut client.token, app.admin.clone());
            taken(&mut client, path, &body, &owner).await;
            client.token = own;
            let plain = app.write("POST", path, body.clone()).await;
            plain.refused(409, "already_exists");
            // Once it was changed, it is another one, also when it was changed back.
            let place = format!("{path}/{}", made["id"].as_str().unwrap());
            client
                .write("PUT", &place, Some(&with(&body, member, value)))
                .await
                .is(200);
            client.write("PUT", &place, Some(&body)).await.is(200);
            taken(&mut client, path, &body, &owner).await;
            // A day is over.
            let second = with(&body, "name", "second".into());
            let made = client.write("POST", path, Some(&second)).await.is(201);
            app.advance(86_399);
            again(&mut client, path, &second).await;
            app.advance(2);
            let owner = with(&owner, "id", made["id"].clone());
            taken(&mut client, path, &second, &owner).await;
            // What the service made is nobody's of Terraform.
            let third = with(&body, "name", "third".into());
            let made = app.write("POST", path, third.clone()).await.ok().clone();
            taken(&mut client, path, &third, &json!({ "id": made["id"] })).await;
        }
        served.stop().await;
    });
}

#[test]
fn a_credential_that_is_said_again_has_the_new_secret_and_is_one() {
    each("again_credentials", |app: Arc<App>| async move {
        let (served, mut client) = client(&app).await;
        let body = json!({ "name": "orders", "protocol": "http", "upstreamHost": "orders.internal", "upstreamPort": 443 });
        let resource = client.write("POST", "/resources", Some(&body)).await.is(201);
        let path = format!("/resources/{}/credentials", resource["id"].as_str().unwrap());
        let body = json!({ "name": "token", "kind": "bearer_token", "default": true, "secret": "first" });
        let made = client.write("POST", &path, Some(&body)).await.is(201);
        app.advance(60);
        // The same secret and another one are answered alike.
        let mut rotated = Value::Null;
        for secret in ["first", "second"] {
            let replaced = again(&mut client, &path, &with(&body, "secret", secret.into())).await;
            assert_eq!(replaced["id"], made["id"]);
            assert_eq!(replaced["rotatedAt"], replaced["updatedAt"]);
            assert_ne!(replaced["rotatedAt"], rotated);
            rotated = replaced["rotatedAt"].clone();
        }
        let owner =
            json!({ "id": made["id"], "managerId": "platform-team", "managerInstance": "production" });
        for (member, value) in [("default", json!(false)), ("kind", json!("header"))] {
            let mut other = with(&body, member, value);
            if member == "kind" {
                other["headerName"] = "X-Key".into();
            }
            taken(&mut client, &path, &other, &owner).await;
        }
        // The name of others need not differ, nor that of another workspace.
        let plain = with(&body, "default", false.into());
        app.write("POST", &path, plain.clone()).await.ok();
        client.instance = "staging";
        client.write("POST", &path, Some(&plain)).await.is(201);
        client.instance = "production";
        let all = client.read(&path).await.is(200);
        assert_eq!(all["items"].as_array().unwrap().len(), 3, "{all}");
        // The secret is never in an entry; that it was replaced is.
        let entries = app.get("/audit/events?limit=50").await.ok().to_string();
        assert!(
            entries.contains("/secretVersion") && !entries.contains("\"second\""),
            "{entries}"
        );
        app.advance(86_400);
        taken(&mut client, &path, &body, &owner).await;
        served.stop().await;
    });
}

/// Proves PO-5.
#[test]
fn a_policy_that_is_said_again_stays_at_its_first_revision() {
    each("again_policies", |app: Arc<App>| async move {
        let (served, mut client) = client(&app).await;
        let definition = crate::areas::policies::definition("content-policies", "one", "");
        let source = json!({ "tool": "terraform", "resource": "forge_content_policy.one", "selectors": {} });
        let question = json!({ "family": "content", "definition": definition, "sourceRef": source, "expectedRevision": 0 });
        let planned = client
            .write("POST", "/policy-plans/validate", Some(&question))
            .await
            .is(200);
        let body = json!({ "definition": definition, "sourceRef": source, "expectedRevision": 0,
            "validationToken": planned["validationToken"] });
        let path = "/content-policies";
        let made = client.write("POST", path, Some(&body)).await.is(201);
        let versions = app.get("/policies/versions").await.text();
        app.advance(3_600);
        let later = client
            .write("POST", "/policy-plans/validate", Some(&question))
            .await
            .is(200);
        assert_eq!(later["validationToken"], planned["validationToken"]);
        assert_eq!(again(&mut client, path, &body).await, made);
        assert_eq!(
            app.get("/policies/versions").await.text(),
            versions,
            "nothing was written"
        );
        let owner = json!({ "id": "one", "managerId": "platform-team", "managerInstance": "production" });
        // Without a plan, or with another, nothing is said again.
        client
            .write("POST", path, Some(&with(&body, "validationToken", "AAAA".into())))
            .await
            .is(409);
        let mut other = body.clone();
        other["definition"]["name"] = "another".into();
        taken(&mut client, path, &other, &owner).await;
        taken(&mut client, path, &with(&body, "sourceRef", json!({})), &owner).await;
        client.instance = "staging";
        taken(&mut client, path, &body, &owner).await;
        client.instance = "production";
        let plain = json!({ "definition": definition, "expectedRevision": 0 });
        app.write("POST", path, plain).await.refused(409, "conflict");
        app.advance(86_400);
        taken(&mut client, path, &body, &owner).await;
        served.stop().await;
    });
}
