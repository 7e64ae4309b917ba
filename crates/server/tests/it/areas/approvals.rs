//! See the module above.

use super::{Fixture, Ids, Samples, inventory};
use crate::samples::Target;
use crate::support::{App, fresh_key};
use provost_kernel::id::TypedId;
use provost_kernel::{OperationContext, id, params};
use serde_json::{Value, json};

id!(DelegationId, "dlg", "Names a delegation.");

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent: |ulid| {
        vec![
            ("approvalId", format!("apr_{ulid}")),
            ("delegationId", format!("dlg_{ulid}")),
            (DIGEST, "0".repeat(64)),
        ]
    },
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    make_own: |app, meta, token| {
        Box::pin(async move {
            if meta.id == UNDELEGATE {
                let own = app.request("GET", "/capabilities").token(token).send().await;
                return match own.json["principal"]["id"].as_str() {
                    Some(own) => vec![("delegationId", lend(app, own).await)],
                    None => Vec::new(),
                };
            }
            if meta.id != CANCEL {
                return Vec::new();
            }
            let (id, _) = one(app).await;
            take(app, &id, token).await;
            vec![("approvalId", id)]
        })
    },
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| {
        Box::pin(async move {
            let approvals = app.get("/approvals?limit=100").await.ok().clone();
            json!([approvals, app.get("/approval-delegations?limit=100").await.ok()])
        })
    },
    ..Samples::NONE
};

/// The path parameter that no operation has: what a vote repeats.
const DIGEST: &str = "approvalDigest";
/// To whom a vote is lent, and until when.
const TO: &str = "delegateId";
/// Who lends a vote where it makes no difference who does.
const SOMEBODY: &str = "usr_01kaf9q2m4x7t8v3c5d6e0g1h3";
const UNTIL: &str = "delegationUntil";
const CANCEL: &str = "cancelHeadlessApproval";
const REVOKE: &str = "revokeHeadlessApproval";
const ROUTE: &str = "putHeadlessApprovalRoutes";
const PREVIEW: &str = "previewHeadlessApprovalRoute";
const ASK: &str = "createHeadlessApproval";
const DELEGATE: &str = "createHeadlessApprovalDelegation";
const UNDELEGATE: &str = "deleteHeadlessApprovalDelegation";

/// Makes a request for a call of a tool of its own, which a policy of its own asks about, and returns its id and digest.
pub async fn one(app: &App) -> (String, String) {
    let tool = format!("tool-{}", fresh_key().to_lowercase());
    let policy = json!({
        "id": tool, "name": tool, "action": "require_approval", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "eq", "value": tool },
    });
    app.write("POST", "/content-policies", json!({ "definition": policy }))
        .await
        .ok();
    let (subject, _) = app.account(&fresh_key(), "viewer", &["policies:read"]).await;
    let (_, hook) = app.account(&fresh_key(), "operator", &["policies:decide"]).await;
    let attributes =
        json!({ "identity.service_account_id": subject, "tool.id": tool, "tool.input": { "a": 1 } });
    let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] });
    let reply = app
        .request("POST", "/policies/decisions")
        .token(&hook)
        .json(body)
        .send()
        .await;
    let id = reply
        .ok()
        .pointer("/decisions/0/approval/requestId")
        .and_then(Value::as_str);
    let id = id.unwrap_or_else(|| panic!("{}", reply.text())).to_owned();
    let shown = app.get(&format!("/approvals/{id}")).await;
    let digest = shown
        .ok()
        .pointer("/approval/preview/bindingDigest")
        .and_then(Value::as_str);
    (id.clone(), digest.unwrap().to_owned())
}

provost_kernel::statements! {
    /// As if somebody had said yes.
    APPROVE = "UPDATE approvals SET state = 'approved', decided_at = ?3, grant_until = ?4, revision = revision + 1 WHERE organization_id = ?1 AND id = ?2 AND state = 'pending'";
    /// As if somebody had asked.
    TAKE = "UPDATE approvals SET asker_kind = 'service_account', asker_id = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// As if somebody had lent their vote: nobody signs in here.
    LEND = "INSERT INTO approval_delegations (organization_id, id, from_user_id, to_user_id, kinds, starts_at, until_at, created_at) VALUES (?1, ?2, ?3, ?4, '[\"tool_call\"]', ?5, ?6, ?5)";
    /// As if nobody had written any.
    FORGET_ROUTES = "DELETE FROM approval_routes WHERE organization_id = ?1";
}

/// Has a request be approved. People alone say yes, and the nets know no people: `policy/approvals*.rs` has them sign in.
pub async fn approve(app: &App, id: &str) {
    let id = id.to_owned();
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, now) = (ctx.org(), ctx.now());
        let until = now.plus_secs(900);
        ctx.execute(&APPROVE, params![org, id.as_str(), now, until])
            .map(drop)
    };
    app.kernel
        .system(app.org(), Some("approvals.settled"), run)
        .await
        .unwrap();
}

/// Has a request be that of the account that a token is of.
async fn take(app: &App, id: &str, token: &str) {
    let known = app.request("GET", "/capabilities").token(token).send().await;
    let (id, by) = (
        id.to_owned(),
        known.ok()["principal"]["id"].as_str().unwrap().to_owned(),
    );
    let run = move |ctx: &mut OperationContext<'_>| {
        let org = ctx.org();
        ctx.execute(&TAKE, params![org, id.as_str(), by.as_str()])
            .map(drop)
    };
    app.kernel
        .system(app.org(), Some("approvals.settled"), run)
        .await
        .unwrap();
}

async fn forget_routes(app: &App) {
    let run = |ctx: &mut OperationContext<'_>| {
        let org = ctx.org();
        ctx.execute(&FORGET_ROUTES, params![org]).map(drop)
    };
    app.kernel
        .system(app.org(), Some("approvals.settled"), run)
        .await
        .unwrap();
}

/// Has one person have lent another one their vote for a day, and returns the id of the delegation.
async fn lend(app: &App, from: &str) -> String {
    let now = app.kernel.latest();
    let id = DelegationId::mint(now, &mut app.kernel.rng());
    let (lent, from) = (id.clone(), from.to_owned());
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, until) = (ctx.org(), now.plus_secs(86_400));
        let to = "usr_01kaf9q2m4x7t8v3c5d6e0g1h4";
        ctx.execute(&LEND, params![org, lent.as_str(), from.as_str(), to, now, until])
            .map(drop)
    };
    let done = app.kernel.system(app.org(), Some("approvals.settled"), run);
    done.await.unwrap();
    id.as_str().to_owned()
}

/// What somebody says who has somebody else vote for a day.
fn delegation(to: &str, until: &str) -> Value {
    json!({ "toUserId": to, "kinds": ["tool_call"], "until": until })
}

/// Somebody who may vote, and the end of a day.
async fn delegate(app: &App) -> Ids {
    let login = format!("{}@acme.example", fresh_key().to_lowercase());
    let body = json!({ "loginName": login, "permissionRole": "admin" });
    let made = app.write("POST", "/directory/users", body).await;
    let to = made.ok()["user"]["id"].as_str().unwrap().to_owned();
    let until = app.kernel.latest().plus_secs(86_400).to_rfc3339();
    vec![(TO, to), (UNTIL, until)]
}

/// Routes of which nobody wrote any before.
fn routes(name: &str) -> Value {
    let route = json!({ "name": name, "match": { "tool": "a tool that nobody has" }, "approvers": { "roles": ["admin"] },
        "quorum": 1, "deadlineSeconds": 3_600, "onDeadline": "expire" });
    json!({ "routes": [route], "expectedRevision": 0 })
}

/// What somebody says who wants a server.
pub fn wish(server: &str) -> Value {
    json!({ "kind": "mcp_server", "serverId": server, "expiresInSeconds": 86_400, "justification": "my team needs it" })
}

async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    if operation == ASK {
        return vec![("serverId", inventory::one(app).await)];
    }
    if operation == ROUTE {
        forget_routes(app).await;
    }
    if operation == PREVIEW {
        let (id, _) = app.account(&fresh_key(), "viewer", &["policies:read"]).await;
        return vec![("requesterId", id)];
    }
    if operation == DELEGATE {
        return delegate(app).await;
    }
    if operation == UNDELEGATE {
        return vec![("delegationId", lend(app, SOMEBODY).await)];
    }
    if !parameters.contains(&"approvalId") {
        return vec![];
    }
    let (id, digest) = one(app).await;
    if operation == REVOKE {
        approve(app, &id).await;
    }
    vec![("approvalId", id), (DIGEST, digest)]
}

fn body(operation: &str, target: &Target) -> Option<Value> {
    match operation {
        "decideHeadlessApproval" => {
            let nothing = "0".repeat(64);
            let digest = target.others.get(DIGEST).unwrap_or(&nothing);
            // What a service account may say.
            Some(json!({ "decision": "deny", "bindingDigest": digest }))
        }
        // The revision is that of an organization whose routes nobody wrote: `make` has them be forgotten.
        ROUTE => Some(routes("one")),
        PREVIEW => {
            let by = target.others.get("requesterId").map_or("", String::as_str);
            Some(json!({ "kind": "tool_call", "tool": "Bash", "requestedBy": by }))
        }
        DELEGATE => {
            let said = |name: &str, none: &'static str| {
                let known = target.others.get(name);
                known.map_or(none, String::as_str).to_owned()
            };
            let to = said(TO, "usr_01kaf9q2m4x7t8v3c5d6e0g1h2");
            Some(delegation(&to, &said(UNTIL, "2026-10-12T08:00:00.000Z")))
        }
        CANCEL | REVOKE => Some(json!({})),
        ASK => Some(wish(target.others.get("serverId").map_or("", String::as_str))),
        _ => None,
    }
}

async fn fixture(app: &App, operation: &str, _: &str) -> Option<Fixture> {
    if operation == ASK {
        let body = wish(&inventory::one(app).await);
        return Some(Fixture::json(
            "POST",
            "/approvals",
            body,
            Some("approval.requested"),
        ));
    }
    if operation == DELEGATE {
        let ids: std::collections::BTreeMap<_, _> = delegate(app).await.into_iter().collect();
        let body = delegation(&ids[TO], &ids[UNTIL]);
        let event = Some("approval.delegation_created");
        return Some(Fixture::json("POST", "/approval-delegations", body, event));
    }
    if operation == UNDELEGATE {
        let path = format!("/approval-delegations/{}", lend(app, SOMEBODY).await);
        let event = Some("approval.delegation_ended");
        return Some(Fixture::json("DELETE", path, json!({}), event));
    }
    if operation == ROUTE {
        forget_routes(app).await;
        let event = Some("approval.routes_changed");
        return Some(Fixture::json("PUT", "/approval-routes", routes("one"), event));
    }
    let (verb, event) = match operation {
        "decideHeadlessApproval" => ("decision", "approval.denied"),
        CANCEL => ("cancel", "approval.canceled"),
        REVOKE => ("revoke", "grant.revoked"),
        _ => return None,
    };
    let (id, digest) = one(app).await;
    if operation == REVOKE {
        approve(app, &id).await;
    }
    let body = match verb {
        "decision" => json!({ "decision": "deny", "bindingDigest": digest }),
        _ => json!({}),
    };
    let path = format!("/approvals/{id}/{verb}");
    Some(Fixture::json("POST", path, body, Some(event)))
}

fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    let mut body = body.clone();
    body[member] = match (operation, member) {
        ("decideHeadlessApproval", "decision") => json!("abstain"),
        ("decideHeadlessApproval", "bindingDigest") => json!("f".repeat(64)),
        (ROUTE, "routes") => routes("other")["routes"].clone(),
        (ROUTE, "expectedRevision") => json!(7),
        (DELEGATE, "toUserId") => json!("usr_01kaf9q2m4x7t8v3c5d6e0g1h2"),
        (DELEGATE, "kinds") => json!(["mcp_server"]),
        (DELEGATE, "until") => json!("2026-10-12T08:00:00.000Z"),
        (ASK, "kind") => json!("skill"),
        // Of the other kind: refused, and never taken for what was said before.
        (ASK, "policyId") => json!("no-tools"),
        (ASK, "conditions") => json!({ "field": "tool.id", "op": "exists" }),
        (ASK, "serverId") => json!("srv_01kaf9q2m4x7t8v3c5d6e0g1h2"),
        (ASK, "expiresInSeconds") => json!(7_200),
        (ASK, "justification") => json!("another team needs it"),
        _ => return None,
    };
    Some(body)
}
