//! The receiver of OpenTelemetry, with bodies that real exporters sent (invariants OT-1 to OT-7).

use crate::areas::directory::{group, user};
use crate::support::{App, Reply, each};
use provost_otlp::MAX_EXPANDED;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;

const LOGS: &[u8] = include_bytes!("../../../../otlp/tests/fixtures/logs.pb");
const LOGS_GZIP: &[u8] = include_bytes!("../../../../otlp/tests/fixtures/logs.pb.gz");
const TRACES: &[u8] = include_bytes!("../../../../otlp/tests/fixtures/traces.pb");
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

async fn export(app: &App, signal: &str, media_type: &'static str, body: &[u8]) -> Reply {
    let call = app.request("POST", &format!("/otlp/v1/{signal}"));
    call.content(media_type, body.to_vec()).send().await
}

/// Exports a payload in JSON that is accepted as a whole.
async fn accept(app: &App, signal: &str, payload: &Value) {
    let reply = export(app, signal, JSON, payload.to_string().as_bytes()).await;
    assert_eq!(reply.ok(), &json!({}));
}

fn tool_call(app: &App, ago_secs: i64, attributes: &Value) -> Value {
    let at = app.now().plus_secs(-ago_secs).as_ms() * 1_000_000;
    let attributes = attributes.as_object().unwrap().iter();
    let attributes: Vec<Value> = attributes
        .map(|(key, text)| json!({ "key": key, "value": { "stringValue": text } }))
        .collect();
    json!({ "eventName": "codex.tool_result", "timeUnixNano": at.to_string(), "attributes": attributes })
}

fn logs(records: &[Value]) -> Value {
    json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] })
}

async fn events(app: &App, query: &str) -> Vec<Value> {
    let page = app.get(&format!("/policies/history?limit=100{query}")).await;
    assert!(page.ok().get("nextCursor").is_none());
    page.json["events"].as_array().unwrap().clone()
}

async fn details(app: &App, event: &Value) -> Value {
    let id = event["eventId"].as_str().unwrap();
    app.get(&format!("/policies/history/{id}")).await.ok().clone()
}

#[test]
fn what_real_exporters_send_becomes_history() {
    each("otlp_recorded", |app: Arc<App>| async move {
        let reply = export(&app, "logs", PROTOBUF, LOGS).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("content-type")),
            (200, PROTOBUF)
        );
        assert!(reply.bytes.is_empty(), "a full success is an empty message");
        let reply = export(&app, "traces", PROTOBUF, TRACES).await;
        assert_eq!(reply.status.as_u16(), 200);
        assert!(reply.bytes.is_empty());

        let all = events(&app, "&source=otlp").await;
        assert_eq!(all.len(), 15 + 10);
        let calls = events(&app, "&tool=cancel").await;
        // The model asked for the tool with other arguments than its own record tells: both are kept.
        let [after, before, asked] = &calls[..] else {
            panic!("{calls:?}")
        };
        assert_eq!(asked["occasion"], "pre_tool");
        assert!(asked["externalId"].as_str().unwrap().contains('.'), "{asked}");
        assert_eq!(
            (&before["occasion"], &after["occasion"]),
            (&json!("pre_tool"), &json!("post_tool"))
        );
        assert_eq!(
            (&before["at"], &before["session"], &before["callId"]),
            (
                &json!("2026-09-23T12:00:02.000Z"),
                &json!("conv-9"),
                &json!("call_1")
            )
        );
        assert_eq!(before["externalId"].as_str().unwrap().len(), 16);
        assert_eq!(before["subject"], json!({ "kind": "user", "id": "cleo" }));
        let whole = details(&app, after).await;
        assert_eq!(
            whole["attributes"]["tool.input"],
            json!({ "amount": 12.5, "order": "A-1" })
        );
        assert_eq!(whole["attributes"]["tool.result"], json!({ "ok": true }));
        assert_eq!(whole["missing"], json!(["identity.group_ids"]));
        assert!(!whole.to_string().contains("of-the-resource"));
    });
}

/// Proves OT-1.
#[test]
fn a_compressed_body_is_expanded_within_its_limit() {
    each("otlp_gzip", |app: Arc<App>| async move {
        let send = |encoding: &'static str, body: Vec<u8>| {
            let call = app
                .request("POST", "/otlp/v1/logs")
                .header("content-encoding", encoding);
            call.content(PROTOBUF, body).send()
        };
        assert_eq!(send("gzip", LOGS_GZIP.to_vec()).await.status.as_u16(), 200);
        assert_eq!(events(&app, "").await.len(), 15);
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(&vec![0; MAX_EXPANDED + 1]).unwrap();
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < 64 << 10);
        send("gzip", bomb).await.refused(413, "payload_too_large");
        send("gzip", LOGS.to_vec()).await.refused(400, "invalid_request");
        send("br", LOGS.to_vec())
            .await
            .refused(415, "unsupported_media_type");
        send("identity", vec![0; MAX_EXPANDED + 1])
            .await
            .refused(413, "payload_too_large");
        assert_eq!(events(&app, "").await.len(), 15);
    });
}

/// Says whether an event has an attribute whose value nobody can say. Members of a missing input are missing as well.
fn is_missing(event: &Value, name: &str) -> bool {
    event["missing"]
        .as_array()
        .is_some_and(|names| names.iter().any(|known| known == name))
}

#[test]
fn people_of_the_directory_are_recognized() {
    each("otlp_people", |app: Arc<App>| async move {
        let (ada, team) = (user(&app, "ada@example.com").await, group(&app, "team").await);
        let member = format!("/directory/groups/{team}/members/{ada}");
        app.write("PUT", &member, json!({})).await.ok();
        let known = tool_call(
            &app,
            5,
            &json!({ "tool_name": "shell", "user.email": "Ada@example.com", "user.id": "0f3a" }),
        );
        let unknown = tool_call(&app, 4, &json!({ "tool_name": "shell", "user.id": "nobody" }));
        let nobody = tool_call(&app, 3, &json!({ "tool_name": "shell" }));
        accept(&app, "logs", &logs(&[known, unknown, nobody])).await;

        let found = events(&app, &format!("&subjectId={ada}")).await;
        assert_eq!(found.len(), 2);
        let whole = details(&app, &found[1]).await;
        assert_eq!(whole["attributes"]["identity.group_ids"], json!([team]));
        assert!(is_missing(&whole, "tool.input") && !is_missing(&whole, "identity.group_ids"));
        let found = events(&app, "&subjectId=nobody&occasion=pre_tool").await;
        let whole = details(&app, &found[0]).await;
        assert!(is_missing(&whole, "tool.input") && is_missing(&whole, "identity.group_ids"));
        assert_eq!(events(&app, "").await.len(), 6);
    });
}

#[test]
fn what_is_rejected_is_told_in_the_encoding_of_the_request() {
    each("otlp_partial", |app: Arc<App>| async move {
        let days = 400 * 86_400;
        let records = [
            tool_call(&app, days + 1, &json!({ "tool_name": "old" })),
            tool_call(&app, days, &json!({ "tool_name": "oldest" })),
            tool_call(&app, -301, &json!({ "tool_name": "future" })),
            tool_call(&app, -300, &json!({ "tool_name": "newest" })),
            json!({ "attributes": 5 }),
            json!({ "eventName": "codex.conversation_starts" }),
        ];
        let reply = export(&app, "logs", JSON, logs(&records).to_string().as_bytes()).await;
        let why = "a record is older than events are kept, or of the future";
        assert_eq!(
            reply.ok(),
            &json!({ "partialSuccess": { "rejectedLogRecords": "3", "errorMessage": why } })
        );
        let tools: Vec<Value> = events(&app, "&occasion=pre_tool")
            .await
            .iter()
            .map(|e| e["tool"].clone())
            .collect();
        assert_eq!(tools, ["newest", "oldest"]);

        // One span that is cut off: field 2 of a span of 3 bytes claims 9.
        let broken = [0x0a, 7, 0x12, 5, 0x12, 3, 0x12, 9, 0];
        let reply = export(&app, "traces", PROTOBUF, &broken).await;
        let why = "a record is malformed";
        let length = u8::try_from(why.len()).unwrap();
        let partial = [&[0x08, 1, 0x12, length][..], why.as_bytes()].concat();
        let answer = [&[0x0a, u8::try_from(partial.len()).unwrap()][..], &partial].concat();
        assert_eq!((reply.status.as_u16(), reply.bytes), (200, answer));
    });
}

#[test]
fn what_is_no_payload_or_comes_from_nobody_is_refused() {
    each("otlp_refused", |app: Arc<App>| async move {
        for (media_type, body) in [
            (JSON, &b"{"[..]),
            (JSON, b"[]"),
            (PROTOBUF, &[0x0a, 9]),
            (PROTOBUF, b"{}"),
        ] {
            export(&app, "logs", media_type, body)
                .await
                .refused(400, "invalid_request");
        }
        export(&app, "logs", "text/plain", b"{}")
            .await
            .refused(415, "unsupported_media_type");
        export(&app, "metrics", JSON, b"{}")
            .await
            .refused(404, "not_found");

        let (_, writer) = app.account("exporter", "operator", &["policies:decide"]).await;
        let (_, reader) = app.account("reader", "operator", &["policies:read"]).await;
        let (_, viewer) = app.account("viewer", "viewer", &[]).await;
        let send = |token: &str| {
            let call = app.request("POST", "/otlp/v1/logs").token(token);
            call.content(PROTOBUF, LOGS.to_vec()).send()
        };
        assert_eq!(send(&writer).await.status.as_u16(), 200);
        assert_eq!(send(&reader).await.status.as_u16(), 403);
        assert_eq!(send(&viewer).await.status.as_u16(), 403);
        let anonymous = app.request("POST", "/otlp/v1/logs").anonymous();
        let anonymous = anonymous.content(PROTOBUF, LOGS.to_vec()).send().await;
        assert_eq!(anonymous.status.as_u16(), 401);
        assert_eq!(events(&app, "").await.len(), 15);
    });
}

/// Proves OT-7.
#[test]
fn nothing_of_a_batch_that_could_not_be_recorded_is_there_and_it_may_be_sent_again() {
    each("otlp_stopping", |app: Arc<App>| async move {
        provost_areas_policy::history::recorder(&app.kernel).close().await;
        let reply = export(&app, "logs", PROTOBUF, LOGS).await;
        // One of the statuses after which an exporter tries again.
        assert_eq!(reply.status.as_u16(), 503, "{}", reply.text());
        assert_eq!(events(&app, "").await, [] as [Value; 0]);
    });
}
