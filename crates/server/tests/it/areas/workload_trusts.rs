//! See the module above.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, fresh_key};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent: |ulid| vec![("workloadTrustId", format!("wtr_{ulid}"))],
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    deleted: |app| Box::pin(deleted(app)),
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(async move { app.get("/workload-trusts?limit=100").await.ok().clone() }),
    ..Samples::NONE
};

const TRUSTS: &str = "/workload-trusts";
/// The path parameter that no operation has: the account that a new trust is of.
const ACCOUNT: &str = "workloadAccountId";

/// A trust of a job that deploys.
pub fn trust_of(account: &str, name: &str) -> Value {
    json!({
        "name": name, "kind": "github", "issuer": "https://token.actions.githubusercontent.com",
        "serviceAccountId": account,
        "claims": [
            { "claim": "repository_id", "value": "74" },
            { "claim": "sub", "value": "repo:acme/shop:environment:production" },
        ],
    })
}

/// An account that whoever may write trusts holds in any case.
async fn account(app: &App) -> String {
    app.account(&fresh_key(), "auditor", &["workload_trusts:read"])
        .await
        .0
}

/// Makes a trust of an account and returns its id.
pub async fn one_of(app: &App, account: &str) -> String {
    let reply = app.write("POST", TRUSTS, trust_of(account, &fresh_key())).await;
    reply.ok()["workloadTrust"]["id"].as_str().unwrap().to_owned()
}

async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    if operation == "createHeadlessWorkloadTrust" {
        return vec![(ACCOUNT, account(app).await)];
    }
    if parameters.contains(&"workloadTrustId") {
        return vec![("workloadTrustId", one_of(app, &account(app).await).await)];
    }
    vec![]
}

async fn deleted(app: &App) -> Ids {
    let id = one_of(app, &account(app).await).await;
    app.delete(&format!("{TRUSTS}/{id}")).await.ok();
    vec![("workloadTrustId", id)]
}

fn body(operation: &str, target: &Target) -> Option<Value> {
    match operation {
        "createHeadlessWorkloadTrust" => {
            let nobody = "sa_01kadh5j9v0000000000000000".to_owned();
            let account = target.others.get(ACCOUNT).unwrap_or(&nobody);
            Some(trust_of(account, &fresh_key()))
        }
        "updateHeadlessWorkloadTrust" => Some(json!({ "name": fresh_key() })),
        _ => None,
    }
}

async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let name = format!("trust {unique}");
    match operation {
        "createHeadlessWorkloadTrust" => Some(Fixture::json(
            "POST",
            TRUSTS,
            trust_of(&account(app).await, &name),
            Some("workload_trust.created"),
        )),
        "updateHeadlessWorkloadTrust" => {
            let id = one_of(app, &account(app).await).await;
            let path = format!("{TRUSTS}/{id}");
            let body = json!({ "name": name, "lifetimeSeconds": 600 });
            Some(Fixture::json("PATCH", path, body, Some("workload_trust.updated")))
        }
        "deleteHeadlessWorkloadTrust" => {
            let id = one_of(app, &account(app).await).await;
            let path = format!("{TRUSTS}/{id}");
            Some(Fixture::json(
                "DELETE",
                path,
                json!({}),
                Some("workload_trust.deleted"),
            ))
        }
        _ => None,
    }
}

fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    let mut body = body.clone();
    match member {
        "lifetimeSeconds" => body[member] = json!(601),
        _ if operation != "createHeadlessWorkloadTrust" => return None,
        "kind" => body[member] = json!("gitlab"),
        "claims" => body[member] = json!([{ "claim": "repository_id", "value": "75" }]),
        "issuer" => body[member] = json!("https://github.example/_services/token"),
        "serviceAccountId" => body[member] = json!("sa_01kadh5j9v0000000000000000"),
        _ => return None,
    }
    Some(body)
}
