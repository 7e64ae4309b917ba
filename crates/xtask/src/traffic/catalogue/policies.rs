//! Policies, decisions, recorded history and backtests.

use serde_json::{Value, json};

use super::{Effect, Operation, keyed};
use crate::failure::{Context, Outcome};
use crate::traffic::maker::{Maker, Ready};

const CONTENT: &str = "content-policies";
const ACCESS: &str = "access-policies";
const RESOURCE: &str = "resource-policies";
const SKILL: &str = "skill-acls";

const fn recorded(id: &'static str, events: usize, prepare: super::Prepare) -> Operation {
    Operation {
        id,
        prepare,
        effect: Effect::Records(events),
        holds: None,
        overtaken: None,
    }
}

pub const OPERATIONS: &[Operation] = &[
    keyed("createHeadlessContentPolicy", |maker| create(maker, CONTENT)),
    keyed("updateHeadlessContentPolicy", |maker| update(maker, CONTENT)),
    keyed("deleteHeadlessContentPolicy", |maker| delete(maker, CONTENT)),
    keyed("createHeadlessAccessPolicy", |maker| create(maker, ACCESS)),
    keyed("updateHeadlessAccessPolicy", |maker| update(maker, ACCESS)),
    keyed("deleteHeadlessAccessPolicy", |maker| delete(maker, ACCESS)),
    keyed("createHeadlessResourcePolicy", |maker| create(maker, RESOURCE)),
    keyed("updateHeadlessResourcePolicy", |maker| update(maker, RESOURCE)),
    keyed("deleteHeadlessResourcePolicy", |maker| delete(maker, RESOURCE)),
    keyed("createHeadlessSkillAcl", |maker| create(maker, SKILL)),
    keyed("updateHeadlessSkillAcl", |maker| update(maker, SKILL)),
    keyed("deleteHeadlessSkillAcl", |maker| delete(maker, SKILL)),
    keyed("claimHeadlessPolicyAuthority", |maker| {
        let id = made(maker, CONTENT)?.1;
        Ok(maker.call("POST", &format!("policy-authority/{id}/claim"), claim()))
    }),
    keyed("releaseHeadlessPolicyAuthority", |maker| {
        let id = made(maker, CONTENT)?.1;
        claim_for_somebody_gone(maker, &id)?;
        Ok(maker.call(
            "POST",
            &format!("policy-authority/{id}/release"),
            json!({ "expectedRevision": 1 }),
        ))
    }),
    recorded("createHeadlessPolicyDecisions", 1, |maker| {
        let event = json!({ "occasion": "pre_tool", "attributes": { "tool.id": maker.unique } });
        Ok(maker.call("POST", "policies/decisions", json!({ "events": [event] })))
    }),
    recorded("importHeadlessPolicyHistory", 1, |maker| {
        let line = json!({ "at": "2026-11-20T03:00:00Z", "occasion": "pre_tool", "attributes": { "tool.id": maker.unique } });
        let path = format!("policies/history/import?source={}", maker.unique);
        Ok(maker.content(&path, "application/x-ndjson", line.to_string().into_bytes()))
    }),
    recorded("receiveHeadlessPolicyLogs", 2, |maker| {
        let body =
            json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [tool_call(maker.unique)] }] }] });
        Ok(maker.call("POST", "otlp/v1/logs", body))
    }),
    recorded("receiveHeadlessPolicyTraces", 2, |maker| {
        let span = json!({
            "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "execute_tool",
            "startTimeUnixNano": "1795000000000000000", "endTimeUnixNano": "1795000001000000000",
            "attributes": [
                { "key": "gen_ai.operation.name", "value": { "stringValue": "execute_tool" } },
                { "key": "gen_ai.tool.name", "value": { "stringValue": maker.unique } },
            ],
        });
        Ok(maker.call(
            "POST",
            "otlp/v1/traces",
            json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] }),
        ))
    }),
    keyed("createHeadlessPolicyBacktest", |maker| {
        Ok(maker.call("POST", "policies/backtests", question(maker.unique)))
    }),
    Operation {
        // The run would end before anybody could cancel it, and does end once the server was restarted.
        holds: Some("backtest"),
        overtaken: Some("already_terminal"),
        ..keyed("cancelHeadlessPolicyBacktest", |maker| {
            let id = maker.make("policies/backtests", question(maker.unique))?;
            Ok(maker.bare("POST", &format!("policies/backtests/{id}/cancel")))
        })
    },
];

fn claim() -> Value {
    json!({ "expectedRevision": 1, "managerId": "platform", "managerInstance": "one" })
}

/// Claims a policy with an account that is deleted then: whoever may write may release it.
fn claim_for_somebody_gone(maker: &mut Maker<'_>, policy: &str) -> Outcome {
    let body = json!({ "name": format!("for {}", maker.unique), "permissionRole": "admin", "scopes": ["policies:write"] });
    let made = maker.write("POST", "service-accounts", body)?;
    let text = |place: &str| {
        made.pointer(place)
            .and_then(Value::as_str)
            .context("an account without id and token")
    };
    let mut request = maker
        .mutation("POST", &format!("policy-authority/{policy}/claim"))
        .with_body(claim());
    request.token = Some(text("/token/token")?.to_owned());
    maker.send(&request)?;
    let gone = maker.mutation(
        "DELETE",
        &format!("service-accounts/{}", text("/serviceAccount/id")?),
    );
    maker.send(&gone).map(drop)
}

fn question(name: &str) -> Value {
    json!({
        "name": name, "candidate": { "kind": "set", "policies": [] },
        "window": { "from": "2026-11-13T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" },
    })
}

fn tool_call(name: &str) -> Value {
    json!({
        "timeUnixNano": "1795000000000000000", "eventName": "claude_code.tool_result",
        "body": { "stringValue": "claude_code.tool_result" },
        "attributes": [{ "key": "tool_name", "value": { "stringValue": name } }],
    })
}

fn definition(collection: &str, id: &str, name: &str, skill: &str) -> Value {
    let condition = |field: &str, value: &str| json!({ "field": field, "op": "eq", "value": value });
    match collection {
        CONTENT => json!({
            "id": id, "name": name, "enabled": true, "action": "flag_for_review", "evaluateOn": ["pre_tool"],
            "conditions": condition("tool.id", "shell"),
        }),
        ACCESS => json!({
            "id": id, "name": name, "enabled": true, "action": "flag_for_review",
            "enforcementSurfaces": ["inline_hook"], "conditions": condition("product.id", "openai/codex"),
        }),
        RESOURCE => json!({
            "id": id, "name": name, "enabled": true, "action": "flag_for_review",
            "conditions": condition("resource.protocol", "redis"),
        }),
        _ => {
            json!({ "id": id, "skillId": skill, "enabled": true, "effect": "block", "subjects": { "everyone": true } })
        }
    }
}

fn skill_for(maker: &mut Maker<'_>, collection: &str) -> Outcome<String> {
    if collection == SKILL {
        maker.skill()
    } else {
        Ok(String::new())
    }
}

fn create(maker: &mut Maker<'_>, collection: &str) -> Outcome<Ready> {
    let skill = skill_for(maker, collection)?;
    let definition = definition(collection, maker.unique, maker.unique, &skill);
    Ok(maker.call(
        "POST",
        collection,
        json!({ "definition": definition, "expectedRevision": 0 }),
    ))
}

/// A policy's path, its id and its skill.
fn made(maker: &mut Maker<'_>, collection: &str) -> Outcome<(String, String, String)> {
    let skill = skill_for(maker, collection)?;
    let id = format!("for-{}", maker.unique);
    let definition = definition(collection, &id, &id, &skill);
    maker.write("POST", collection, json!({ "definition": definition }))?;
    Ok((format!("{collection}/{id}"), id, skill))
}

fn update(maker: &mut Maker<'_>, collection: &str) -> Outcome<Ready> {
    let (path, id, skill) = made(maker, collection)?;
    let mut definition = definition(collection, &id, maker.unique, &skill);
    definition["enabled"] = false.into();
    Ok(maker.call(
        "PUT",
        &path,
        json!({ "definition": definition, "expectedRevision": 1 }),
    ))
}

fn delete(maker: &mut Maker<'_>, collection: &str) -> Outcome<Ready> {
    let (path, _, _) = made(maker, collection)?;
    Ok(maker.bare("DELETE", &format!("{path}?expectedRevision=1")))
}
