//! Payloads in JSON, written by hand after the specification's rules.

use super::{TIMES, assert_readable, json, logs};
use provost_otlp::{Encoding, Error, Signal, SkipReason, read};
use provost_policy::Occasion;
use serde_json::{Value, json};

/// Everything that only calls over MCP have.
const OF_MCP: [&str; 6] = [
    "mcp.gateway_endpoint_id",
    "mcp.package_id",
    "mcp.package_version",
    "mcp.remote_url",
    "mcp.server_id",
    "mcp.tool_id",
];

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
    assert_eq!(reading.skipped[&SkipReason::Foreign], 1);
    assert_eq!((reading.rejected, reading.why), (1, "a record is malformed"));
}

/// Proves OT-3.
#[test]
fn a_record_of_another_form_is_rejected_alone() {
    let good = json!({ "eventName": "codex.tool_result", "attributes": [text("tool_name", "shell")] });
    let records = json!([{ "attributes": "text" }, good, 5, { "timeUnixNano": "noon" }]);
    let reading = json(Signal::Logs, &logs(&records));
    assert_eq!((reading.read, reading.rejected), (1, 3));
    assert_eq!(reading.events[0].at_ms, TIMES.now_ms);
    assert_eq!(reading.events[0].missing, ["tool.input"]);
}

/// Proves OT-5.
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

/// Proves OT-5.
#[test]
fn what_is_told_and_cannot_be_read_is_missing_and_never_absent() {
    let whole = |name: &str| json!({ "key": name, "value": { "intValue": "7" } });
    let events = |attributes: Value| {
        let record = json!({ "eventName": "codex.tool_result", "attributes": attributes });
        json(Signal::Logs, &logs(&json!([record]))).events
    };
    let given = [
        text("tool_name", "shell"),
        text("arguments", "{}"),
        text("output", "ok"),
    ];
    let with = |more: Value| {
        let more = more.as_array().unwrap().clone();
        events(given.iter().cloned().chain(more).collect())
    };
    // The second name is somebody's; it may be somebody else's than the first one's.
    let second = text("user.id", "u7");
    for unreadable in [
        whole("user.email"),
        json!({ "key": "user.email", "value": { "bytesValue": "AAEC" } }),
        json!({ "key": "user.email", "value": { "arrayValue": { "values": [{ "stringValue": "ada@acme.test" }] } } }),
    ] {
        assert_eq!(
            with(json!([unreadable, second]))[0].missing,
            ["identity.user_id"],
            "{unreadable}"
        );
    }
    let twice = with(json!([
        text("user.email", "ada@acme.test"),
        text("user.email", "bob@acme.test")
    ]));
    assert_eq!(twice[0].missing, ["identity.user_id"]);
    // Told twice alike, or told as nothing, is no doubt.
    let alike = with(json!([
        text("user.email", "ada@acme.test"),
        text("user.email", "ada@acme.test")
    ]));
    assert_eq!(alike[0].attributes["identity.user_id"], "ada@acme.test");
    let empty = with(json!([text("user.email", ""), second]));
    assert_eq!(empty[0].attributes["identity.user_id"], "u7");
    assert!(with(json!([]))[0].missing.is_empty());
    for (name, field) in [("device.id", "device.id"), ("gen_ai.agent.id", "agent.id")] {
        assert_eq!(with(json!([whole(name)]))[0].missing, [field]);
    }
}

#[test]
fn arguments_about_which_readers_differ_stay_what_they_are() {
    let input = |tool: &str, arguments: Value| {
        let record =
            json!({ "eventName": "codex.tool_result", "attributes": [text("tool_name", tool), arguments] });
        let event = json(Signal::Logs, &logs(&json!([record]))).events.remove(0);
        assert_readable(&event);
        event.attributes.get("tool.input").cloned()
    };
    let written = |tool: &str, arguments: &str| input(tool, text("arguments", arguments));
    let twice = r#"{"command":"ls","command":"rm -rf /"}"#;
    assert_eq!(written("shell", twice).unwrap(), twice);
    assert_eq!(written("shell", r#"{"n":1e999}"#).unwrap(), r#"{"n":1e999}"#);
    assert_eq!(
        written("shell", r#"{"b": 9007199254740993, "a": 1.0}"#).unwrap(),
        r#"{"a":1,"b":9007199254740993}"#
    );
    let named_twice = json!({ "key": "arguments", "value": { "kvlistValue": { "values": [text("command", "ls"), text("command", "rm")] } } });
    assert_eq!(input("shell", named_twice), None);
    // Free text of a tool that takes it is a member of its input.
    let patch = "*** Begin Patch\n*** End Patch";
    assert_eq!(
        written("apply_patch", patch).unwrap(),
        json!({ "input": patch }).to_string()
    );
    assert_eq!(written("shell", patch).unwrap(), patch);
    assert_eq!(written("apply_patch", "<REDACTED>"), None);
}

#[test]
fn a_command_beside_parameters_that_cannot_be_read_is_missing() {
    let call = |parameters: Value| {
        let record = json!({ "eventName": "claude_code.tool_result",
            "attributes": [text("tool_name", "Bash"), text("tool_input", "{}"), parameters] });
        json(Signal::Logs, &logs(&json!([record]))).events.remove(0)
    };
    let fine = call(text("tool_parameters", r#"{"full_command":"rm -rf /"}"#));
    assert_eq!(fine.attributes["tool.input.command"], "rm -rf /");
    // Nobody knows either whether they named a server.
    let with_mcp = [&OF_MCP[..], &["tool.input.command"]].concat();
    for (unreadable, missing) in [
        (
            text("tool_parameters", r#"{"full_command":"rm -rf /""#),
            &with_mcp[..],
        ),
        (
            text(
                "tool_parameters",
                r#"{"full_command":"ls","full_command":"rm -rf /"}"#,
            ),
            &with_mcp,
        ),
        (
            text("tool_parameters", r#"{"full_command":["rm"]}"#),
            &["tool.input.command"],
        ),
        (
            json!({ "key": "tool_parameters", "value": { "intValue": 7 } }),
            &with_mcp,
        ),
    ] {
        assert_eq!(call(unreadable.clone()).missing, missing, "{unreadable}");
    }
    assert!(call(text("other", "x")).missing.is_empty());
}

/// Proves OT-5.
#[test]
fn messages_that_cannot_be_read_are_a_prompt_without_its_text() {
    let prompts = |messages: &str| {
        let record = json!({ "eventName": "gen_ai.client.inference.operation.details",
            "attributes": [text("gen_ai.request.model", "m"), text("gen_ai.provider.name", "p"), text("gen_ai.input.messages", messages)] });
        let events = json(Signal::Logs, &logs(&json!([record]))).events;
        let prompts = events.iter().filter(|event| event.occasion == Occasion::Prompt);
        prompts
            .map(|event| {
                (
                    event.attributes.get("request.prompt").cloned(),
                    event.missing.clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let user = r#"[{"role":"user","parts":[{"type":"text","content":"hello"}]}]"#;
    assert_eq!(prompts(user), [(Some(json!("hello")), vec![])]);
    assert_eq!(prompts(r#"[{"role":"assistant","content":"x"}]"#), []);
    // Of whom nobody knows that they are no user.
    for role in ["User", "human", ""] {
        let said = format!(r#"[{{"role":"{role}","parts":[{{"type":"text","content":"hello"}}]}}]"#);
        assert_eq!(prompts(&said), [(Some(json!("hello")), vec![])], "{role}");
    }
    let seen = r#"[{"role":"user","parts":[{"type":"text","content":"hello"},{"type":"blob","data":"AA=="},{"type":"tool_call","id":"1"}]}]"#;
    assert_eq!(prompts(seen), [(Some(json!("hello")), vec![])]);
    assert_eq!(prompts("[]"), []);
    for unreadable in [
        &user[..user.len() - 1],
        r#"[{"role":"user","role":"tool","content":"x"}]"#,
        r#"{"role":"user"}"#,
        r#"[{"role":7,"parts":[{"type":"text","content":8}]}]"#,
        r#"[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":8}]}]"#,
        // A part of which nobody knows that it has no text.
        r#"[{"role":"user","parts":[{"content":"a secret"}]}]"#,
        r#"[{"role":"user","parts":[{"type":"Text","content":"a secret"}]}]"#,
        r#"[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"input_text","text":"a secret"}]}]"#,
        r#"[{"role":"user","parts":"a secret","content":"hello"}]"#,
    ] {
        assert_eq!(
            prompts(unreadable),
            [(None, vec!["request.prompt"])],
            "{unreadable}"
        );
    }
}

/// The events of a log record.
fn told(name: &str, attributes: &Value) -> Vec<provost_otlp::Event> {
    let record = json!({ "eventName": name, "attributes": attributes });
    let reading = json(Signal::Logs, &logs(&json!([record])));
    reading.events.iter().for_each(assert_readable);
    reading.events
}

/// The events of a span.
fn spanned(name: &str, attributes: &Value) -> provost_otlp::PayloadReading {
    let span = json!({ "name": name, "spanId": "0102030405060708", "attributes": attributes });
    let payload = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] });
    json(Signal::Traces, &payload)
}

fn number(name: &str, value: i64) -> Value {
    json!({ "key": name, "value": { "intValue": value.to_string() } })
}

/// Proves OT-5.
#[test]
fn whether_a_call_went_over_mcp_is_missing_where_it_cannot_be_read() {
    let codex = |more: Value| {
        let mut given = vec![text("arguments", "{}"), text("output", "ok")];
        given.extend(more.as_array().unwrap().clone());
        told("codex.tool_result", &given.into())
    };
    let claude = |more: Value| {
        let mut given = vec![text("tool_input", "{}")];
        given.extend(more.as_array().unwrap().clone());
        told("claude_code.tool_result", &given.into())
    };
    let span = |more: Value| {
        let mut given = vec![text("gen_ai.operation.name", "execute_tool")];
        given.extend(more.as_array().unwrap().clone());
        spanned("execute_tool", &given.into()).events
    };
    let parameters = |text_of: &str| text("tool_parameters", text_of);
    let name = text("tool_name", "create_issue");
    for (case, events) in [
        (
            "two servers",
            codex(json!([
                name,
                text("mcp_server", "github"),
                text("mcp_server", "gitlab")
            ])),
        ),
        ("a number", codex(json!([name, number("mcp_server", 7)]))),
        (
            "two parameters",
            claude(json!([
                name,
                parameters(r#"{"mcp_server_name":"a","mcp_server_name":"b"}"#)
            ])),
        ),
        (
            "a list",
            claude(json!([name, parameters(r#"{"mcp_server_name":["a"]}"#)])),
        ),
        (
            "two names",
            claude(json!([
                text("tool_name", "mcp__github__create"),
                text("tool_name", "Bash")
            ])),
        ),
        (
            "a method that is a number",
            span(json!([
                text("gen_ai.tool.name", "create_issue"),
                number("mcp.method.name", 7)
            ])),
        ),
    ] {
        for of_mcp in OF_MCP {
            assert!(events[0].missing.contains(&of_mcp), "{case}: {:?}", events[0]);
            assert!(!events[0].attributes.contains_key(of_mcp), "{case}");
        }
    }
    // What is told of it is not forgotten because a part of it cannot be read.
    let beside = span(json!([
        text("gen_ai.tool.name", "create_issue"),
        number("mcp.method.name", 7),
        text("mcp.server.name", "github")
    ]));
    assert_eq!(beside[0].attributes["mcp.server_id"], "github");
    assert_eq!(beside[0].attributes["mcp.tool_id"], "create_issue");
    // What is no call over MCP has nothing of it.
    for events in [
        codex(json!([name, text("mcp_server", "")])),
        claude(json!([name, parameters("{}")])),
        span(json!([text("gen_ai.tool.name", "create_issue")])),
    ] {
        let of_mcp = |event: &provost_otlp::Event| event.missing.iter().any(|name| name.starts_with("mcp."));
        assert!(!of_mcp(&events[0]), "{:?}", events[0]);
    }
}

#[test]
fn a_name_of_mcp_is_split_in_logs_and_spans_alike() {
    let name = "mcp__github__create";
    let spans = spanned("claude_code.tool", &json!([text("tool_name", name)])).events;
    let logs = [
        told("claude_code.tool_result", &json!([text("tool_name", name)])),
        told("codex.tool_result", &json!([text("tool_name", name)])),
    ];
    let conventions = json!([
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", name)
    ]);
    let conventions = spanned("execute_tool", &conventions).events;
    for events in logs.iter().chain([&spans, &conventions]) {
        for event in events {
            assert_eq!(event.attributes["tool.id"], name);
            assert_eq!(event.attributes["mcp.server_id"], "github", "{event:?}");
            assert_eq!(event.attributes["mcp.tool_id"], "create");
        }
    }
}

/// Proves OT-5.
#[test]
fn a_text_that_may_be_cut_or_another_one_is_missing() {
    let cut = |size: &str| {
        let given = [
            text("tool_name", "Bash"),
            text("tool_input", "{\"command\":\"ls"),
            text("tool_input_size_bytes", size),
        ];
        told("claude_code.tool_result", &given.to_vec().into())
            .remove(0)
            .missing
    };
    assert!(cut("3").is_empty());
    for size in ["9000", "9 KB", "-1"] {
        assert_eq!(cut(size), ["tool.input"], "{size}");
    }
    let prompt = |given: Value| told("claude_code.user_prompt", &given).remove(0);
    let two = prompt(json!([
        text("prompt", "x"),
        text("prompt", "y"),
        text("prompt_text", "zz")
    ]));
    assert!(two.missing.contains(&"request.prompt"), "{two:?}");
    let other = prompt(json!([text("prompt_text", "zz")]));
    assert_eq!(other.attributes["request.prompt"], "zz");
    // Of two values of one attribute readers differ about which counts.
    let both = json!({ "key": "prompt", "value": { "stringValue": "x", "intValue": "7" } });
    assert!(prompt(json!([both])).missing.contains(&"request.prompt"));
    let response = |part: Value| {
        let given = json!([
            text("gen_ai.input.messages", "[]"),
            text(
                "gen_ai.output.messages",
                &json!([{ "role": "assistant", "parts": [part] }]).to_string()
            ),
        ]);
        told("gen_ai.client.inference.operation.details", &given).remove(0)
    };
    let kind = response(json!({ "type": 7, "content": "a secret" }));
    assert!(kind.missing.contains(&"response.content"), "{kind:?}");
    // Without a text the answer has none to tell: what it is made of is not told.
    let thought = response(json!({ "type": "reasoning", "content": "hm" }));
    assert!(thought.missing.contains(&"response.content"), "{thought:?}");
}

/// Proves OT-5.
#[test]
fn a_decision_that_cannot_be_read_may_be_a_rejection() {
    let decided = |given: Value| told("claude_code.tool_decision", &given).len();
    let name = text("tool_name", "Bash");
    assert_eq!(decided(json!([name, text("decision", "reject")])), 1);
    assert_eq!(
        decided(json!([
            name,
            text("decision", "reject"),
            text("decision", "accept")
        ])),
        1
    );
    assert_eq!(decided(json!([name, text("decision", "accept")])), 0);
}

/// Proves OT-5.
#[test]
fn a_record_of_which_nobody_can_read_what_it_tells_of_is_rejected() {
    let twice = json!([
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.operation.name", "execute_tool")
    ]);
    let reading = spanned("something", &twice);
    assert_eq!((reading.rejected, reading.events.len()), (1, 0));
    assert!(reading.why.contains("cannot be read"), "{}", reading.why);
    let reading = spanned("something", &json!([text("gen_ai.operation.name", "embeddings")]));
    assert_eq!((reading.rejected, reading.skipped[&SkipReason::Other]), (0, 1));
}
