//! See the module above.

use super::{Ids, Samples};
use crate::samples::Target;
use crate::support::App;
use provost_kernel::operation::Meta;
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    make: |app, meta| Box::pin(async move { make(app, meta, &app.admin).await }),
    make_own: |app, meta, token| Box::pin(make(app, meta, token)),
    body,
    state: |app| {
        Box::pin(async move {
            let groups = app.get("/policies/violations?groupBy=policy").await.ok().clone();
            groups["groups"].clone()
        })
    },
    ..Samples::NONE
};

/// The tool that the policy of [`stopped`] blocks.
const TOOL: &str = "a tool that a net stops";

/// Has a call of an account be blocked; returns the id of the event.
async fn stopped(app: &App, account: &str) -> String {
    let definition = json!({
        "id": "net-stops", "name": "net-stops", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "eq", "value": TOOL },
    });
    let made = app
        .write("POST", "/content-policies", json!({ "definition": definition }))
        .await;
    // It is there after the first time.
    assert!([201, 409].contains(&made.status.as_u16()), "{}", made.text());
    let attributes = json!({ "tool.id": TOOL, "identity.service_account_id": account });
    let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] });
    let decided = app.request("POST", "/policies/decisions").json(body).send().await;
    let decision = &decided.ok()["decisions"][0];
    assert_eq!(decision["action"], "block");
    decision["eventId"].as_str().unwrap().to_owned()
}

async fn make(app: &App, meta: &Meta, token: &str) -> Ids {
    if !meta.path.starts_with("/policies/violations/") {
        return Vec::new();
    }
    let own = app.request("GET", "/capabilities").token(token).send().await;
    // Whoever may read no capabilities may say nothing of a decision either.
    let Some(account) = own.json["principal"]["id"].as_str() else {
        return Vec::new();
    };
    vec![("eventId", stopped(app, account).await)]
}

fn body(operation: &str, _: &Target) -> Option<Value> {
    (operation == "createHeadlessPolicyViolationFeedback")
        .then(|| json!({ "text": "this is our own folder" }))
}
