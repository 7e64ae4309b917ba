//! Requests for approvals, which a decision opens.

use serde_json::{Value, json};

use super::{Operation, keyed};
use crate::failure::{Context, Outcome};
use crate::http::Request;
use crate::traffic::machine::Machine;
use crate::traffic::maker::Maker;

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessApproval", |maker| {
        let machine = Machine::enrol(maker, false)?;
        machine.call(maker)?;
        let server = machine.report(maker)?;
        let id = server.trim_start_matches("inventory/mcp-servers/");
        let body = json!({
            "kind": "mcp_server", "serverId": id, "expiresInSeconds": 86_400, "justification": maker.unique,
        });
        Ok(maker
            .call("POST", "approvals", body)
            .showing("approvals?limit=100"))
    }),
    keyed("decideHeadlessApproval", |maker| {
        let path = waiting(maker)?;
        let shown = maker.send(&Request::get(maker.bootstrap.path(&path), &maker.bootstrap.token))?;
        let digest = shown.pointer("/approval/preview/bindingDigest");
        let digest = digest.context("an approval without a digest")?.clone();
        // What an account may say: people alone say yes.
        let body = json!({ "decision": "deny", "bindingDigest": digest });
        Ok(maker
            .call("POST", &format!("{path}/decision"), body)
            .showing(path))
    }),
    keyed("cancelHeadlessApproval", |maker| {
        let path = waiting(maker)?;
        Ok(maker.bare("POST", &format!("{path}/cancel")).showing(path))
    }),
    keyed("putHeadlessApprovalRoutes", |maker| {
        let path = maker.bootstrap.path("approval-routes");
        let shown = maker.send(&Request::get(path, &maker.bootstrap.token))?;
        let revision = shown
            .pointer("/revision")
            .context("routes without a revision")?
            .clone();
        let route = json!({
            "name": maker.unique, "match": { "tool": maker.unique }, "approvers": { "roles": ["admin"] },
            "quorum": 1, "deadlineSeconds": 3_600, "onDeadline": "expire",
        });
        // The one of the traffic before is taken away.
        let body = json!({ "routes": [route], "expectedRevision": revision, "confirm": true });
        Ok(maker
            .call("PUT", "approval-routes", body)
            .showing("approval-routes"))
    }),
];

/// The path of a request for a call of a tool of its own, which an account of its own asks about.
fn waiting(maker: &mut Maker<'_>) -> Outcome<String> {
    let id = format!("for-{}", maker.unique);
    let definition = json!({
        "id": id, "name": id, "action": "require_approval", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "eq", "value": id },
    });
    maker.write("POST", "content-policies", json!({ "definition": definition }))?;
    let subject = maker.account()?;
    let body = json!({ "name": format!("hook of {}", maker.unique), "permissionRole": "operator", "scopes": ["policies:decide"] });
    let made = maker.write("POST", "service-accounts", body)?;
    let token = made.pointer("/token/token").and_then(Value::as_str);
    let token = token.context("an account without a token")?.to_owned();
    let attributes =
        json!({ "identity.service_account_id": subject, "tool.id": id, "tool.input": { "a": 1 } });
    let mut request = maker
        .mutation("POST", "policies/decisions")
        .with_body(json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] }));
    request.token = Some(token);
    let decided = maker.send(&request)?;
    let request = decided
        .pointer("/decisions/0/approval/requestId")
        .and_then(Value::as_str)
        .context("a call that waits for no approval")?;
    Ok(format!("approvals/{request}"))
}
