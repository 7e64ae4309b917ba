//! The policies and events of the benchmark.

use std::ops::Range;

use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, Server};

/// So many different requests are sent in turn.
const REQUESTS: usize = 64;
/// Every so many policies one looks at every tool call; the others are about one tool each.
const BROAD: usize = 20;
const TOOLS: usize = 500;
const ACTIONS: [&str; 4] = ["flag_for_review", "nudge", "require_approval", "block"];

/// What a reader has to know of them.
pub const EXPLANATION: &str = "Load generator (one thread) and server share the cores; rate limits are off. Policies are about \
one of 500 tools each, with conditions on its input, the model and the server; every twentieth looks at every tool call. \
Events are tool calls with user, groups, server, model and arguments. Each durable answer is on the disk (SQLite: WAL with \
synchronous=FULL; PostgreSQL: fsync and synchronous_commit on). Judging is the server's histogram \
`provost_decision_judge_seconds`: the upper bound of the bucket that holds the 99th of 100 events. The raw fdatasync is \
measured just before each load, on the same disk. How judging grows is told by the mean of the same histogram, over 4 \
connections.";

/// Makes the policies of these numbers.
pub fn add_policies(server: &Server, bootstrap: &Bootstrap, numbers: Range<usize>) -> Outcome {
    add_definitions(server, bootstrap, numbers, definition)
}

/// Makes the policies that these numbers define.
pub fn add_definitions(
    server: &Server,
    bootstrap: &Bootstrap,
    numbers: Range<usize>,
    definition: impl Fn(usize) -> Value,
) -> Outcome {
    let mut connection = Connection::new(server.address);
    for number in numbers {
        let body = json!({ "definition": definition(number), "reason": "benchmark",
            "idempotencyKey": format!("benchmark-policy-{number:08}") });
        let path = bootstrap.path("content-policies");
        connection.fetch(&Request::new("POST", path, &bootstrap.token).with_body(body))?;
    }
    Ok(())
}

fn definition(number: usize) -> Value {
    let conditions = if number.is_multiple_of(BROAD) {
        json!({ "all": [
            { "field": "tool.input.command", "op": "matches", "value": format!("rm -rf /{number}(/|$)") },
            { "not": { "field": "llm.model", "op": "eq", "value": "small" } },
        ] })
    } else {
        json!({ "all": [
            { "field": "tool.id", "op": "eq", "value": format!("tool-{}", number % TOOLS) },
            { "any": [
                { "field": "tool.input.command", "op": "contains", "value": "--force" },
                { "field": "mcp.server_id", "op": "in", "value": ["production", format!("server-{number}")] },
                { "field": "llm.input_tokens", "op": "gt", "value": 100_000 },
            ] },
        ] })
    };
    json!({
        "id": format!("policy-{number}"), "name": format!("Policy {number}"), "action": ACTIONS[number % ACTIONS.len()],
        "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true, "message": "ask the platform team first",
        "conditions": conditions,
    })
}

/// Returns the requests of one load.
pub fn requests(bootstrap: &Bootstrap, events: usize, record: &str, policies: usize) -> Vec<Vec<u8>> {
    let request = |number: usize| {
        let events: Vec<Value> = (0..events)
            .map(|at| event(number * events + at, policies))
            .collect();
        request(bootstrap, &events, record)
    };
    (0..REQUESTS).map(request).collect()
}

/// Returns requests of one event each, all about one tool.
pub fn requests_about(bootstrap: &Bootstrap, tool: &str) -> Vec<Vec<u8>> {
    let about = |number: usize| {
        let mut event = event(number, TOOLS);
        event["attributes"]["tool.id"] = json!(tool);
        request(bootstrap, &[event], "buffered")
    };
    (0..REQUESTS).map(about).collect()
}

fn request(bootstrap: &Bootstrap, events: &[Value], record: &str) -> Vec<u8> {
    let body = json!({ "events": events, "record": record });
    Request::new("POST", bootstrap.path("policies/decisions"), &bootstrap.token)
        .with_body(body)
        .bytes()
}

/// Returns the event of this number, about tools that so many policies know.
pub fn event(number: usize, policies: usize) -> Value {
    let command = match number % 10 {
        0 => format!("deploy --force service-{number}"),
        1 => format!("rm -rf /{}/cache", number % policies),
        _ => format!("status service-{number} --output json"),
    };
    json!({
        "occasion": "pre_tool", "session": format!("session-{}", number % 50), "callId": format!("call-{number}"),
        "attributes": {
            "identity.user_id": format!("okta|{}", number % 200),
            "identity.group_ids": ["engineering", "on-call"],
            "tool.id": format!("tool-{}", number * 7 % TOOLS.min(policies)),
            "tool.input": { "command": command, "workdir": "/srv/app", "retries": number % 4 },
            "mcp.server_id": if number.is_multiple_of(8) { "production" } else { "staging" },
            "llm.model": "large", "llm.provider": "anthropic", "llm.input_tokens": 900 + number % 4000,
        },
    })
}
