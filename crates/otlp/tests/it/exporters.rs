//! What instrumentations of frameworks send, in their own forms; the spans are written by hand after what the real ones sent.

use super::{assert_readable, json};
use provost_otlp::{Event, Signal, SkipReason};
use provost_policy::Occasion::{PostTool, PreTool, Prompt, Response};
use serde_json::{Value, json};

fn text(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

fn whole(name: &str, value: u32) -> Value {
    json!({ "key": name, "value": { "intValue": value.to_string() } })
}

/// Spans of one agent, one after the other.
fn spans(spans: &[(&str, Vec<Value>)]) -> Value {
    let span = |(place, (name, attributes)): (usize, &(&str, Vec<Value>))| {
        json!({ "spanId": format!("{:016x}", place + 1), "name": name, "kind": 3, "attributes": attributes,
            "startTimeUnixNano": "1790164800000000000", "endTimeUnixNano": "1790164801000000000" })
    };
    let spans: Vec<Value> = spans.iter().enumerate().map(span).collect();
    let who = [
        text("service.name", "weather-agent"),
        text("user.email", "ann@acme.test"),
        text("session.id", "s-1"),
    ];
    json!({ "resourceSpans": [{ "resource": { "attributes": who }, "scopeSpans": [{ "spans": spans }] }] })
}

fn read(of: &[(&str, Vec<Value>)]) -> Vec<Event> {
    let reading = json(Signal::Traces, &spans(of));
    assert_eq!(reading.rejected, 0, "{}", reading.why);
    for event in &reading.events {
        assert_readable(event);
        assert_eq!(event.attributes["identity.user_id"], "ann@acme.test");
        assert_eq!(event.session.as_deref(), Some("s-1"));
    }
    reading.events
}

fn chat(input: &Value, output: &Value) -> Vec<Value> {
    vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.provider.name", "anthropic"),
        text("gen_ai.request.model", "m-1"),
        whole("gen_ai.usage.input_tokens", 11),
        whole("gen_ai.usage.output_tokens", 7),
        text("gen_ai.input.messages", &input.to_string()),
        text("gen_ai.output.messages", &output.to_string()),
    ]
}

fn asked_for(id: &str) -> Value {
    json!([{ "role": "assistant", "parts": [
        { "type": "tool_call", "id": id, "name": "get_weather", "arguments": { "city": "Oslo" } },
    ] }])
}

fn question() -> Value {
    json!([{ "role": "user", "parts": [{ "type": "text", "content": "Weather in Oslo?" }] }])
}

/// Proves OT-4, OT-5.
#[test]
fn a_tool_that_a_model_asks_for_is_a_call_and_no_text() {
    let events = read(&[("chat", chat(&question(), &asked_for("t1")))]);
    let [prompt, response, call] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (prompt.occasion, response.occasion, call.occasion),
        (Prompt, Response, PreTool)
    );
    assert_eq!(response.missing, ["response.content"]);
    assert_eq!(call.attributes["tool.id"], "get_weather");
    assert_eq!(call.attributes["tool.input"], r#"{"city":"Oslo"}"#);
    assert_eq!(call.call_id.as_deref(), Some("t1"));
    assert_eq!(call.id.as_deref(), Some("0000000000000001.2"));
    // The other two forms of a request for a tool.
    let block = json!([{ "role": "assistant", "content": [
        { "type": "text", "text": "I look." }, { "type": "tool_use", "id": "t1", "name": "get_weather", "input": { "city": "Oslo" } },
    ] }]);
    let beside = json!([{ "role": "assistant", "content": "I look.", "tool_calls": [
        { "id": "t1", "type": "function", "function": { "name": "get_weather", "arguments": "{\"city\": \"Oslo\"}" } },
    ] }]);
    for output in [block, beside] {
        let events = read(&[("chat", chat(&question(), &output))]);
        assert_eq!(events[1].attributes["response.content"], "I look.", "{output}");
        assert_eq!(events[2].attributes, call.attributes, "{output}");
    }
    // One without a name is a call of a tool that nobody knows.
    let nameless = json!([{ "role": "assistant", "parts": [{ "type": "tool_call", "id": "t1" }] }]);
    let events = read(&[("chat", chat(&question(), &nameless))]);
    assert!(events[2].missing.contains(&"tool.id") && events[2].missing.contains(&"tool.input"));
    assert!(events[2].missing.contains(&"mcp.server_id"));
}

/// Proves OT-4.
#[test]
fn a_tool_with_a_record_of_its_own_is_one_call() {
    let tool = |id: &str, arguments: Option<&str>| {
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", "get_weather"),
            text("gen_ai.tool.call.id", id),
            text("gen_ai.tool.call.result", "rain"),
        ];
        attributes.extend(arguments.map(|arguments| text("gen_ai.tool.call.arguments", arguments)));
        ("execute_tool get_weather", attributes)
    };
    let model = ("chat", chat(&question(), &asked_for("t1")));
    let calls = |of: &[(&str, Vec<Value>)]| -> Vec<Event> {
        read(of)
            .into_iter()
            .filter(|event| event.occasion == PreTool)
            .collect()
    };
    // The model knows the arguments that the tool's record does not tell.
    for of in [
        [model.clone(), tool("t1", None)],
        [tool("t1", None), model.clone()],
    ] {
        let [call] = &calls(&of)[..] else { panic!("{of:?}") };
        assert_eq!(call.attributes["tool.input"], r#"{"city":"Oslo"}"#);
        assert!(call.missing.is_empty(), "{:?}", call.missing);
    }
    // The one argument without its name is what the model wrote, at the end of the call as at its begin; any other text is what the
    // tool was called with.
    let short = [model.clone(), tool("t1", Some("Oslo"))];
    assert_eq!(calls(&short).len(), 1);
    let told = read(&short)
        .into_iter()
        .filter(|event| matches!(event.occasion, PreTool | PostTool));
    let inputs: Vec<_> = told.map(|event| event.attributes["tool.input"].clone()).collect();
    assert_eq!(inputs, [r#"{"city":"Oslo"}"#; 2]);
    assert_eq!(calls(&[model.clone(), tool("t1", Some("Rome"))]).len(), 2);
    // Another call, and one that contradicts: both stay.
    assert_eq!(calls(&[model.clone(), tool("t2", None)]).len(), 2);
    assert_eq!(calls(&[model, tool("t1", Some(r#"{"city":"Rome"}"#))]).len(), 2);
    // Two records of tools with one id are two calls.
    assert_eq!(calls(&[tool("t1", None), tool("t1", None)]).len(), 2);
}

/// A library of a provider tells of its calls without a message, inside the span of an instrumentation.
///
/// Proves OT-4.
#[test]
fn a_silent_span_inside_one_that_tells_the_messages_is_the_same_call() {
    let silent_as = |id: &str| {
        let mut attributes = chat(&Value::Null, &Value::Null);
        attributes
            .retain(|one| one["key"] != "gen_ai.input.messages" && one["key"] != "gen_ai.output.messages");
        attributes.push(text("gen_ai.response.id", id));
        ("messages.create", attributes)
    };
    let silent = || silent_as("m1");
    let answer = json!([{ "role": "assistant", "content": "It rains." }]);
    let told = ("chat", chat(&question(), &answer));
    let inside = |of: &[(&str, Vec<Value>)], parents: &[(usize, usize)]| {
        let mut payload = spans(of);
        for (child, parent) in parents {
            payload["resourceSpans"][0]["scopeSpans"][0]["spans"][*child]["parentSpanId"] =
                format!("{:016x}", parent + 1).into();
        }
        let events = json(Signal::Traces, &payload).events;
        events
            .into_iter()
            .map(|event| (event.occasion, event.missing.is_empty()))
            .collect::<Vec<_>>()
    };
    let once = [(Prompt, true), (Response, true)];
    for (of, parents) in [
        ([silent(), told.clone()], (0, 1)),
        ([told.clone(), silent()], (1, 0)),
    ] {
        let mut found = inside(&of, &[parents]);
        found.sort_by_key(|(occasion, _)| occasion.word());
        assert_eq!(found, once);
    }
    // What answers a tool's result is no prompt, which only one of the two can know.
    let mut asked = question().as_array().unwrap().clone();
    asked.push(json!({ "role": "user", "parts": [{ "type": "tool_call_response", "id": "t1", "response": "rain" }] }));
    let second = ("chat", chat(&asked.into(), &answer));
    assert_eq!(inside(&[silent(), second.clone()], &[(0, 1)]), [(Response, true)]);
    // Elsewhere, of another model, or a second one inside: calls of their own.
    assert_eq!(inside(&[silent(), second.clone()], &[]).len(), 3);
    let mut other = silent();
    other.1.retain(|one| one["key"] != "gen_ai.request.model");
    other.1.push(text("gen_ai.request.model", "m-2"));
    assert_eq!(inside(&[other, second.clone()], &[(0, 1)]).len(), 3);
    assert_eq!(
        inside(&[silent(), silent_as("m2"), second.clone()], &[(0, 2), (1, 2)]).len(),
        3
    );
    assert_eq!(
        inside(&[second.clone(), silent(), silent_as("m2")], &[(1, 0), (2, 0)]).len(),
        3
    );
    let uncounted = |(name, attributes): (&'static str, Vec<Value>)| {
        let is_count = |one: &Value| {
            one["key"]
                .as_str()
                .is_some_and(|key| key.starts_with("gen_ai.usage."))
        };
        (
            name,
            attributes
                .into_iter()
                .filter(|one| !is_count(one))
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(inside(&[silent(), uncounted(second.clone())], &[(0, 1)]).len(), 3);
    // Another service in the same payload, and another trace, know the id and have no say.
    let mut foreign = spans(&[silent()]);
    let mut telling = spans(std::slice::from_ref(&second))["resourceSpans"][0].clone();
    telling["scopeSpans"][0]["spans"][0]["spanId"] = "00000000000000ff".into();
    telling["scopeSpans"][0]["spans"][0]["parentSpanId"] = "0000000000000001".into();
    foreign["resourceSpans"].as_array_mut().unwrap().push(telling);
    assert_eq!(json(Signal::Traces, &foreign).events.len(), 3);
    let mut traces = spans(&[silent(), second.clone()]);
    let both = traces["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array_mut()
        .unwrap();
    both[0]["parentSpanId"] = "0000000000000002".into();
    for (place, span) in both.iter_mut().enumerate() {
        span["traceId"] = format!("{:032x}", place + 1).into();
    }
    assert_eq!(json(Signal::Traces, &traces).events.len(), 3);
    // An agent's answer and that of the model which it asked both tell messages: two.
    assert_eq!(inside(&[told.clone(), told], &[(0, 1)]).len(), 4);
}

/// A small record does not become an endless number of events.
#[test]
fn an_answer_asks_for_as_many_tools_as_are_read() {
    let reading = |calls: usize| {
        let part = json!({ "type": "tool_call", "name": "x" });
        let output = json!([{ "role": "assistant", "parts": vec![part; calls] }]);
        json(Signal::Traces, &spans(&[("chat", chat(&question(), &output))]))
    };
    assert_eq!((reading(128).events.len(), reading(128).rejected), (130, 0));
    assert_eq!((reading(129).events.len(), reading(129).rejected), (0, 1));
    let part = json!({ "type": "tool_call", "name": "x" });
    let most = chat(
        &question(),
        &json!([{ "role": "assistant", "parts": vec![part; 128] }]),
    );
    let reading = json(Signal::Traces, &spans(&vec![("chat", most); 160]));
    assert_eq!((reading.read, reading.rejected), (153, 7));
    assert_eq!(reading.why, "a payload tells of more than 20000 events");
}

#[test]
fn a_result_in_the_name_of_a_user_is_no_prompt() {
    let prompts = |last: Value| {
        let mut input = question().as_array().unwrap().clone();
        input.push(json!({ "role": "user", "parts": last }));
        let events = read(&[(
            "chat",
            chat(
                &input.into(),
                &json!([{ "role": "assistant", "content": "It rains." }]),
            ),
        )]);
        events
            .into_iter()
            .filter(|event| event.occasion == Prompt)
            .collect::<Vec<_>>()
    };
    let result = json!({ "type": "tool_call_response", "id": "t1", "response": "rain" });
    assert_eq!(prompts(json!([result])), []);
    // Words beside it are somebody's.
    let both = prompts(json!([result, { "type": "text", "content": "and tomorrow?" }]));
    assert_eq!(both[0].attributes["request.prompt"], "and tomorrow?");
    // What is no result may be a prompt, and so may nothing.
    assert_eq!(
        prompts(json!([{ "type": "blob", "data": "AA==" }]))[0].missing,
        ["request.prompt"]
    );
    assert_eq!(prompts(json!([]))[0].missing, ["request.prompt"]);
}

#[test]
fn openinference_tells_of_tools_and_models() {
    let tool = vec![
        text("openinference.span.kind", "TOOL"),
        text("tool.name", "get_weather"),
        text("input.value", r#"{"city":"Oslo"}"#),
        text("input.mime_type", "application/json"),
        text("output.value", "rain"),
    ];
    let message = |place: u32, role: &str, content: &str| {
        [
            text(&format!("llm.input_messages.{place}.message.role"), role),
            text(&format!("llm.input_messages.{place}.message.content"), content),
        ]
    };
    let mut model = vec![
        text("openinference.span.kind", "LLM"),
        text("llm.model_name", "gpt-5"),
        text("llm.provider", "openai"),
        whole("llm.token_count.prompt", 11),
        whole("llm.token_count.completion", 7),
        text("llm.output_messages.0.message.role", "assistant"),
        text("llm.output_messages.0.message.tool_calls.0.tool_call.id", "t1"),
        text(
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
            "get_weather",
        ),
        text(
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments",
            r#"{"city": "Oslo"}"#,
        ),
    ];
    model.extend(message(0, "system", "Be short."));
    model.extend(message(10, "user", "Weather in Oslo?"));
    model.extend(message(9, "assistant", "Where?"));
    let events = read(&[("ChatCompletion", model), ("get_weather", tool)]);
    let [prompt, response, before, after] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(prompt.attributes["request.prompt"], "Weather in Oslo?");
    assert_eq!(
        (
            &response.attributes["llm.model"],
            &response.attributes["llm.provider"]
        ),
        (&json!("gpt-5"), &json!("openai"))
    );
    assert_eq!(response.attributes["llm.input_tokens"], 11.0);
    assert_eq!(response.missing, ["response.content"]);
    // The tool's record has no call's id: the same tool with the same arguments is the one that the model asks for.
    assert_eq!(
        (before.occasion, &before.attributes["tool.id"]),
        (PreTool, &json!("get_weather"))
    );
    assert_eq!(before.attributes["tool.input"], r#"{"city":"Oslo"}"#);
    assert_eq!(before.call_id.as_deref(), Some("t1"));
    assert_eq!(
        (after.occasion, &after.attributes["tool.result"]),
        (PostTool, &json!("rain"))
    );
    // Other kinds are known and tell of no call; a kind that is not known may.
    let of = |kind: &str| {
        json(
            Signal::Traces,
            &spans(&[("x", vec![text("openinference.span.kind", kind)])]),
        )
    };
    assert_eq!(of("CHAIN").skipped[&SkipReason::Other], 1);
    assert_eq!(of("tool").rejected, 1);
    // A part whose text is not found makes the text missing.
    let pictured = vec![
        text("openinference.span.kind", "LLM"),
        text("llm.input_messages.0.message.role", "user"),
        text(
            "llm.input_messages.0.message.contents.0.message_content.type",
            "text",
        ),
        text(
            "llm.input_messages.0.message.contents.0.message_content.text",
            "What is it?",
        ),
        text(
            "llm.input_messages.0.message.contents.1.message_content.type",
            "image",
        ),
    ];
    assert_eq!(
        read(&[("x", pictured.clone())])[0].attributes["request.prompt"],
        "What is it?"
    );
    let mut unknown = pictured;
    unknown.push(text(
        "llm.input_messages.0.message.contents.2.message_content.text",
        "a secret",
    ));
    assert!(read(&[("x", unknown)])[0].missing.contains(&"request.prompt"));
}

#[test]
fn openllmetry_tells_of_tools_and_models() {
    let tool = |input: &Value| {
        vec![
            text("traceloop.span.kind", "tool"),
            text("traceloop.entity.name", "get_weather"),
            text("traceloop.entity.input", &input.to_string()),
            text("traceloop.entity.output", "rain"),
        ]
    };
    let input = |of: &Value| read(&[("get_weather.tool", tool(of))])[0].attributes["tool.input"].clone();
    let city = json!({ "city": "Oslo" });
    let deeper =
        json!({ "input_str": "{'city': 'Oslo'}", "tags": [], "metadata": {}, "inputs": city, "kwargs": {} });
    for lifted in [&city, &deeper, &json!({ "args": [], "kwargs": city })] {
        assert_eq!(input(lifted), r#"{"city":"Oslo"}"#, "{lifted}");
    }
    // What has a member more, or no members by name, stays what it is.
    for kept in [
        json!({ "inputs": city }),
        json!({ "args": ["Oslo"], "kwargs": {} }),
        json!({ "args": [], "kwargs": city, "x": 1 }),
    ] {
        assert_eq!(input(&kept), kept.to_string(), "{kept}");
    }
    let model = vec![
        text("llm.request.type", "chat"),
        text("gen_ai.system", "OpenAI"),
        text("gen_ai.request.model", "gpt-5"),
        text("gen_ai.prompt.0.role", "user"),
        text("gen_ai.prompt.0.content", "Weather in Oslo?"),
        text("gen_ai.completion.0.role", "assistant"),
        text("gen_ai.completion.0.content", "It rains."),
        whole("gen_ai.usage.prompt_tokens", 11),
        whole("gen_ai.usage.completion_tokens", 7),
    ];
    let events = read(&[("openai.chat", model)]);
    assert_eq!(events[0].attributes["request.prompt"], "Weather in Oslo?");
    assert_eq!(events[1].attributes["response.content"], "It rains.");
    assert_eq!(events[1].attributes["llm.output_tokens"], 7.0);
}

/// Proves OT-3.
#[test]
fn a_payload_of_which_nothing_is_known_is_remarked() {
    let foreign = ("GET /", vec![text("http.request.method", "GET")]);
    let reading = json(Signal::Traces, &spans(std::slice::from_ref(&foreign)));
    assert_eq!((reading.skipped[&SkipReason::Foreign], reading.rejected), (1, 0));
    assert!(reading.remark().is_some());
    let known = ("embeddings", vec![text("gen_ai.operation.name", "embeddings")]);
    assert_eq!(
        json(Signal::Traces, &spans(&[foreign.clone(), known])).remark(),
        None
    );
    let read = ("chat", chat(&question(), &asked_for("t1")));
    assert_eq!(json(Signal::Traces, &spans(&[foreign, read])).remark(), None);
    assert_eq!(json(Signal::Traces, &spans(&[])).remark(), None);
}

/// A tool of a server has the name by which hooks call it, whoever tells of it.
#[test]
fn a_tool_of_a_server_has_one_name() {
    let id = |attributes: Vec<Value>| {
        let event = read(&[("tools/call refund", attributes)]).remove(0);
        (
            event.attributes["tool.id"].clone(),
            event.attributes.get("mcp.tool_id").cloned(),
        )
    };
    let call = |server: Option<&str>, tool: &str| {
        let mut attributes = vec![
            text("mcp.method.name", "tools/call"),
            text("gen_ai.tool.name", tool),
        ];
        attributes.extend(server.map(|server| text("mcp.server.name", server)));
        id(attributes)
    };
    assert_eq!(
        call(Some("billing"), "refund"),
        (json!("mcp__billing__refund"), Some(json!("refund")))
    );
    assert_eq!(
        call(Some("my billing.v2"), "re:fund").0,
        "mcp__my_billing_v2__re_fund"
    );
    assert_eq!(
        call(None, "mcp__billing__refund"),
        (json!("mcp__billing__refund"), Some(json!("refund")))
    );
    assert_eq!(call(None, "refund"), (json!("refund"), Some(json!("refund"))));
}
