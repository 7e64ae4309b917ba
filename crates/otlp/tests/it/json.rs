//! Payloads in JSON, written by hand after the specification's rules.

use super::{TIMES, assert_readable, json, logs};
use provost_otlp::{Encoding, Error, Signal, Skipped, read};
use provost_policy::Occasion;
use serde_json::{Value, json};

fn text(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

#[test]
fn a_span_in_json_is_read_as_its_rules_say() {
    let payload = json!({
        // Written before its resource, as members of an object may be.
        "resourceSpans": [{
            "scopeSpans": [{
                "scope": { "name": "example", "unknown": [1] },
                "spans": [{
                    "traceId": "5B8EFFF798038103D269B633813FC60C",
                    "spanId": "EEE19B7EC3C1B174",
                    "parentSpanId": null,
                    "name": "execute_tool refund",
                    "kind": 1,
                    "startTimeUnixNano": "1790164800000000000",
                    "endTimeUnixNano": 1_790_164_801_500_000_000_u64,
                    "flags": 256,
                    "attributes": [
                        text("gen_ai.operation.name", "execute_tool"),
                        text("gen_ai.tool.name", "refund"),
                        { "key": "gen_ai.tool.call.arguments", "value": { "kvlistValue": { "values": [
                            { "key": "order", "value": { "stringValue": "A-1" } },
                            { "key": "cents", "value": { "intValue": "1250" } },
                            { "key": "share", "value": { "doubleValue": 0.5 } },
                            { "key": "tags", "value": { "arrayValue": { "values": [
                                { "boolValue": true }, { "intValue": 7 }, {}
                            ] } } }
                        ] } } },
                        { "key": "gen_ai.tool.call.result", "value": { "bytesValue": "AAEC" } },
                        { "key": "empty" }
                    ]
                }]
            }],
            "resource": { "attributes": [text("user.id", "ada")], "droppedAttributesCount": 0 },
            "schemaUrl": "https://opentelemetry.io/schemas/1.37.0"
        }]
    });
    let reading = json(Signal::Traces, &payload);
    assert_eq!((reading.read, reading.rejected), (1, 0));
    let [before, after] = &reading.events[..] else {
        panic!("{reading:?}")
    };
    assert_readable(before);
    assert_readable(after);
    assert_eq!(
        (before.occasion, before.at_ms),
        (Occasion::PreTool, 1_790_164_800_000)
    );
    assert_eq!(
        (after.occasion, after.at_ms),
        (Occasion::PostTool, 1_790_164_801_500)
    );
    assert_eq!(before.id.as_deref(), Some("eee19b7ec3c1b174"));
    assert_eq!(before.attributes["identity.user_id"], "ada");
    assert_eq!(
        before.attributes["tool.input"],
        r#"{"cents":1250,"order":"A-1","share":0.5,"tags":[true,7,null]}"#
    );
    assert_eq!(after.missing, ["tool.result"]);
}

#[test]
fn nulls_and_unknown_members_are_nothing() {
    let reading = json(
        Signal::Logs,
        &json!({ "resourceLogs": null, "resourceSpans": [1] }),
    );
    assert_eq!((reading.read, reading.rejected), (0, 0));
    let record = json!({ "timeUnixNano": null, "body": null, "attributes": null, "eventName": null });
    let reading = json(Signal::Logs, &logs(&json!([record, null])));
    assert_eq!(reading.skipped[&Skipped::Other], 1);
    assert_eq!((reading.rejected, reading.why), (1, "a record is malformed"));
}

#[test]
fn a_record_of_another_form_is_rejected_alone() {
    let good = json!({ "eventName": "codex.tool_result", "attributes": [text("tool_name", "shell")] });
    let records = json!([{ "attributes": "text" }, good, 5, { "timeUnixNano": "noon" }]);
    let reading = json(Signal::Logs, &logs(&records));
    assert_eq!((reading.read, reading.rejected), (1, 3));
    assert_eq!(reading.events[0].at_ms, TIMES.now_ms);
    assert_eq!(reading.events[0].missing, ["tool.input"]);
}

#[test]
fn a_content_beyond_its_limit_is_missing_and_a_name_too() {
    let long = "x".repeat(28 * 1024 + 1);
    let record = json!({ "eventName": "codex.tool_result", "attributes": [
        text("tool_name", &long), text("arguments", &long), text("output", &long[1..]),
        text("conversation.id", &long), text("call_id", &long), text("user.email", &long),
    ] });
    let reading = json(Signal::Logs, &logs(&json!([record])));
    let after = &reading.events[1];
    assert_readable(after);
    assert_eq!(after.missing, ["identity.user_id", "tool.id", "tool.input"]);
    assert_eq!(after.attributes["tool.result"].as_str().unwrap().len(), 28 * 1024);
    assert_eq!((&after.session, &after.call_id), (&None, &None));
}

#[test]
fn a_record_of_another_time_is_rejected_whole() {
    let at = |millis: i64| (millis * 1_000_000).to_string();
    let span = |begin: i64, end: i64| {
        json!({ "startTimeUnixNano": at(begin), "endTimeUnixNano": at(end),
                "attributes": [text("gen_ai.operation.name", "execute_tool")] })
    };
    let (oldest, newest) = (TIMES.oldest_ms, TIMES.newest_ms);
    let spans = [
        span(oldest, newest),
        span(oldest - 1, oldest + 5),
        span(newest, newest + 1),
        span(newest + 1, newest + 1),
    ];
    let payload = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
    let reading = json(Signal::Traces, &payload);
    assert_eq!((reading.read, reading.rejected, reading.events.len()), (1, 3, 2));
    assert_eq!(
        reading.why,
        "a record is older than events are kept, or of the future"
    );
}

#[test]
fn what_is_no_payload_is_refused() {
    for bytes in [&b"{"[..], b"[]", b"{\"resourceLogs\": 5}", b"{} {}", b"\xff"] {
        let outcome = read(Signal::Logs, Encoding::Json, bytes, TIMES);
        assert_eq!(
            outcome,
            Err(Error::Malformed("OTLP message in JSON")),
            "{bytes:?}"
        );
    }
    let cut = [0x0a, 5, 1];
    assert!(read(Signal::Logs, Encoding::Protobuf, &cut, TIMES).is_err());
    let empty = read(Signal::Logs, Encoding::Protobuf, b"", TIMES).unwrap();
    assert_eq!((empty.read, empty.rejected), (0, 0));
}
