//! Calls that a hook asked about and that telemetry tells of again (HS-16).

use crate::areas::directory::user;
use crate::support::{App, each};
use provost_areas_policy::history;
use serde_json::{Value, json};
use std::sync::Arc;

const ADA: &str = "ada@example.com";

/// Tells of a call that ended `secondsAgo`, in the words of Claude Code, as whoever holds this token; `change` replaces attributes.
async fn tell(app: &App, token: &str, change: Value) {
    let mut said = json!({ "tool_name": "Bash", "tool_use_id": "c-1", "session.id": "s-1", "user.email": ADA,
        "tool_input": "{ \"description\": \"Tidy up\", \"command\": \"rm -rf /srv\" }", "duration_ms": "40" });
    said.as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    let name = said["event"]
        .as_str()
        .unwrap_or("claude_code.tool_result")
        .to_owned();
    let ago = said["secondsAgo"].as_str().map_or(0, |ago| ago.parse().unwrap());
    let is_told = |name: &str| !["event", "secondsAgo"].contains(&name);
    let members = said
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, value)| is_told(name) && !value.is_null());
    let attributes: Vec<Value> = members
        .map(|(key, text)| json!({ "key": key, "value": { "stringValue": text } }))
        .collect();
    let at = ((app.now().as_ms() - ago * 1_000) * 1_000_000).to_string();
    let record = json!({ "eventName": name, "timeUnixNano": at, "attributes": attributes });
    let payload = json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [record] }] }] });
    let call = app.request("POST", "/otlp/v1/logs").token(token);
    let reply = call
        .content("application/json", payload.to_string().into_bytes())
        .send()
        .await;
    assert_eq!(reply.ok(), &json!({}));
}

/// Asks as a hook does: about the content and about the use of the product.
async fn ask(app: &App, occasion: &str, change: Value) {
    let mut attributes = json!({ "identity.user_id": ADA, "tool.id": "Bash",
        "tool.input": r#"{"command":"rm -rf /srv","description":"Tidy up"}"# });
    attributes
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    let named = json!({ "session": "s-1", "callId": "c-1" });
    let mut events = json!([{ "occasion": occasion, "attributes": attributes, "missing": ["llm.provider"] },
        { "occasion": "inline_hook", "attributes": { "identity.user_id": ADA, "product.id": "claude_code" } }]);
    for event in events.as_array_mut().unwrap() {
        event
            .as_object_mut()
            .unwrap()
            .extend(named.as_object().unwrap().clone());
    }
    let body = json!({ "events": events });
    app.request("POST", "/policies/decisions")
        .json(body)
        .send()
        .await
        .ok();
}

/// Returns the sources of the events of an occasion, the newest first.
async fn sources(app: &App, occasion: &str) -> Vec<Value> {
    let page = app
        .get(&format!("/policies/history?limit=100&occasion={occasion}"))
        .await;
    let events = page.ok()["events"].as_array().unwrap().clone();
    events.into_iter().map(|event| event["source"].clone()).collect()
}

/// Proves HS-16.
#[test]
fn what_a_hook_asked_about_and_telemetry_tells_again_is_one_event() {
    each("otlp_decided", |app: Arc<App>| async move {
        user(&app, ADA).await;
        ask(&app, "pre_tool", json!({})).await;
        app.advance(1);
        // The address of the same user in another case; the input as another writer writes it; twice, as after a lost answer.
        for _ in 0..2 {
            tell(&app, &app.admin, json!({ "user.email": "Ada@example.com" })).await;
        }
        assert_eq!(sources(&app, "pre_tool").await, ["decisions"]);
        // Nobody asked about the end, which is an event of its own.
        assert_eq!(sources(&app, "post_tool").await, ["otlp", "otlp"]);
        assert_eq!(sources(&app, "inline_hook").await, ["decisions"]);

        // What its own telemetry does not show is no contradiction, nor is the result's form or another name of the shell.
        ask(
            &app,
            "post_tool",
            json!({ "tool.result": r#"{"stdout":"gone"}"# }),
        )
        .await;
        app.advance(1);
        let codex = json!({ "event": "codex.tool_result", "tool_name": "exec_command", "session.id": null, "conversation.id": "s-1",
            "tool_use_id": null, "call_id": "c-1", "tool_input": null, "arguments": r#"{"cmd":"rm -rf /srv"}"#, "output": "gone" });
        for again in [
            json!({ "tool_input": null }),
            json!({ "user.email": null }),
            codex,
        ] {
            tell(&app, &app.admin, again).await;
        }
        assert_eq!(sources(&app, "pre_tool").await, ["decisions"]);
        assert_eq!(sources(&app, "post_tool").await, ["decisions", "otlp", "otlp"]);

        // Another principal that tells of all of it, of the same user.
        let (_, collector) = app.account("collector", "operator", &[]).await;
        tell(&app, &collector, json!({})).await;
        assert_eq!(sources(&app, "pre_tool").await, ["decisions"]);
        // Its telemetry has no result, and the decision's event has.
        assert_eq!(
            sources(&app, "post_tool").await,
            ["otlp", "decisions", "otlp", "otlp"]
        );
    });
}

/// Proves HS-16.
#[test]
fn what_differs_from_what_was_asked_is_an_event_of_its_own() {
    each("otlp_undecided", |app: Arc<App>| async move {
        let admin = app.admin.clone();
        user(&app, ADA).await;
        user(&app, "ben@example.com").await;
        let (_, collector) = app.account("collector", "operator", &[]).await;
        ask(&app, "pre_tool", json!({})).await;
        app.advance(1);
        let tells = [
            (&admin, json!({ "user.email": "ben@example.com" })),
            (&admin, json!({ "user.email": "nobody@example.com" })),
            (&admin, json!({ "session.id": "s-2" })),
            (&admin, json!({ "session.id": null })),
            (&admin, json!({ "tool_use_id": "c-2" })),
            (&admin, json!({ "tool_use_id": null })),
            (&admin, json!({ "tool_name": "Write" })),
            // What ran is not what was asked about.
            (
                &admin,
                json!({ "tool_input": "{\"command\":\"rm -rf /\",\"description\":\"Tidy up\"}" }),
            ),
            (
                &admin,
                json!({ "tool_parameters": "{\"full_command\":\"rm -rf /\"}" }),
            ),
            // A command beside an input of another kind, and a shell that runs elsewhere or may do more.
            (
                &admin,
                json!({ "tool_name": "Write", "tool_input": "{\"file_path\":\"/etc/passwd\",\"content\":\"x\"}",
                    "tool_parameters": "{\"full_command\":\"rm -rf /srv\"}" }),
            ),
            (
                &admin,
                json!({ "event": "codex.tool_result", "tool_name": "exec_command", "session.id": null,
                    "conversation.id": "s-1", "tool_use_id": null, "call_id": "c-1", "tool_input": null,
                    "arguments": "{\"cmd\":\"rm -rf /srv\",\"workdir\":\"/etc\"}" }),
            ),
            // What ran before anybody asked.
            (&admin, json!({ "secondsAgo": "30" })),
            // It tells more.
            (&admin, json!({ "device.id": "laptop-7" })),
            // Somebody else's telemetry that does not show all of it.
            (&collector, json!({ "tool_input": null })),
            (&collector, json!({ "user.email": null })),
        ];
        for (place, (token, change)) in tells.into_iter().enumerate() {
            tell(&app, token, change.clone()).await;
            let told = sources(&app, "pre_tool").await;
            assert_eq!(told.len(), place + 2, "{change}");
        }
    });
}

/// Proves HS-16.
///
/// What was asked about is remembered for a day: an exporter that was away for longer tells of the call again.
#[test]
fn a_call_is_remembered_for_a_day() {
    each("otlp_forgotten", |app: Arc<App>| async move {
        user(&app, ADA).await;
        ask(&app, "pre_tool", json!({})).await;
        for hour in 1..=25 {
            app.advance(3_600);
            history::retain(&app.kernel).await.unwrap();
            if hour == 23 {
                tell(&app, &app.admin, json!({})).await;
                assert_eq!(sources(&app, "pre_tool").await, ["decisions"]);
            }
        }
        tell(&app, &app.admin, json!({})).await;
        assert_eq!(sources(&app, "pre_tool").await, ["otlp", "decisions"]);
    });
}

/// Proves HS-16.
///
/// What is told before hides no verdict, and is not taken back.
#[test]
fn a_verdict_is_recorded_whatever_was_told_before() {
    each("otlp_told_first", |app: Arc<App>| async move {
        user(&app, ADA).await;
        tell(&app, &app.admin, json!({})).await;
        app.advance(1);
        ask(&app, "pre_tool", json!({})).await;
        assert_eq!(sources(&app, "pre_tool").await, ["decisions", "otlp"]);
        // From now on it is the decision's.
        app.advance(1);
        tell(&app, &app.admin, json!({})).await;
        assert_eq!(sources(&app, "pre_tool").await, ["decisions", "otlp"]);
        // A decision that nobody waited for is there as well.
        let event = json!({ "occasion": "pre_tool", "session": "s-1", "callId": "c-9", "attributes": {
            "identity.user_id": ADA, "tool.id": "Bash", "tool.input": r#"{"command":"rm -rf /srv","description":"Tidy up"}"# } });
        let body = json!({ "events": [event], "record": "buffered" });
        app.request("POST", "/policies/decisions")
            .json(body)
            .send()
            .await
            .ok();
        tell(&app, &app.admin, json!({ "tool_use_id": "c-9" })).await;
        assert_eq!(
            sources(&app, "pre_tool").await,
            ["decisions", "decisions", "otlp"]
        );
    });
}
