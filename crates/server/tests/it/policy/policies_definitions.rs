//! Definitions come back as they were sent; those that break a rule are refused with the place (client contract §3.3 to §3.11).

use crate::areas::policies::definition;
use crate::support::{App, Dice, each, fresh_key, number};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Numbers that a hasty reader or writer of JSON gets wrong.
const NUMBERS: [&str; 22] = [
    "0.1",
    "0.2",
    "0.30000000000000004",
    "0.3",
    "1e2",
    "1E-7",
    "100",
    "1.0",
    "-0.0",
    "0",
    "5e-324",
    "1.7976931348623157e308",
    "2.2250738585072011e-308",
    "9007199254740991",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "31.245270191439438",
    "123456789.01234567",
    "4.35",
    "0.000001",
];

/// Says whether two spellings of a number are the same number, by readers that do not round twice.
fn same_number(a: &str, b: &str) -> bool {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a == b;
    }
    let (a, b): (f64, f64) = (a.parse().unwrap(), b.parse().unwrap());
    a.partial_cmp(&b) == Some(Ordering::Equal)
}

fn random_number(dice: &mut Dice) -> String {
    let bits = (dice.below(1 << 32) as u64) << 32 | dice.below(1 << 32) as u64;
    match dice.below(4) {
        0 => (*dice.pick(&NUMBERS)).to_owned(),
        1 => i64::from_le_bytes(bits.to_le_bytes()).to_string(),
        2 => format!("{}.{}", dice.below(100_000), dice.below(1_000_000)),
        _ => {
            let number = f64::from_bits(bits);
            if number.is_finite() {
                format!("{number:e}")
            } else {
                "1.5".into()
            }
        }
    }
}

fn random_text(dice: &mut Dice) -> String {
    let pieces = [
        "a", "é", "e\u{301}", "注文", "🚫", "\"", "\\", "/", "\u{0}", "\u{7f}", "\u{2028}", "\t", "<",
        "\u{feff}",
    ];
    let count = dice.below(6);
    (0..count).map(|_| *dice.pick(&pieces)).collect()
}

/// An answer whose numbers are still as they were spelled.
#[derive(serde::Deserialize)]
struct Reply {
    item: Item,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    definition: Definition,
    source_ref: Source,
}

#[derive(serde::Deserialize)]
struct Definition {
    runtime: BTreeMap<String, Box<RawValue>>,
}

#[derive(serde::Deserialize)]
struct Source {
    selectors: BTreeMap<String, Box<RawValue>>,
}

/// Proves PO-4.
#[test]
fn a_definition_comes_back_value_for_value() {
    each("value_identity", |app: Arc<App>| async move {
        let mut dice = Dice::new("value identity");
        let mut fixed = NUMBERS.iter();
        for _ in 0..number("PROVOST_TEST_CASES", 40) {
            // Free-form members hold anything; the text is sent as it stands here.
            let mut numbers = BTreeMap::new();
            let mut members = String::new();
            for place in 0..24 {
                let number = fixed
                    .next()
                    .map_or_else(|| random_number(&mut dice), |n| (*n).to_owned());
                write!(members, r#""n{place}": {number}, "#).unwrap();
                numbers.insert(format!("n{place}"), number);
            }
            let texts: Vec<String> = (0..8).map(|_| random_text(&mut dice)).collect();
            let id = fresh_key();
            let others = json!({ "nested": { "list": [null, true, [], {}], "texts": texts } });
            let others = others.to_string();
            let others = &others[1..others.len() - 1];
            let name = serde_json::to_string(&format!("n{}", random_text(&mut dice))).unwrap();
            let definition = format!(
                r#"{{ "runtime": {{ {members} {others} }}, "name": {name}, "id": "{id}", "action": "allow", "description": null,
                   "enforcementSurfaces": ["provider"], "conditions": {{ "field": "destination.port", "op": "lt", "value": 1e2 }} }}"#
            );
            let source = format!(r#"{{ "tool": "terraform", "selectors": {{ {members} {others} }} }}"#);
            let body = format!(
                r#"{{ "definition": {definition}, "sourceRef": {source}, "reason": "a test", "idempotencyKey": "{}" }}"#,
                fresh_key()
            );
            let made = app.request("POST", "/access-policies").bytes(body).send().await;
            made.ok();
            let read = app.get(&format!("/access-policies/{id}")).await;
            assert_eq!(read.bytes, made.bytes);
            // Members and texts, by value.
            let sent: Value = serde_json::from_str(&definition).unwrap();
            assert_eq!(
                read.json["item"]["definition"]["runtime"]["nested"],
                sent["runtime"]["nested"]
            );
            assert_eq!(read.json["item"]["definition"]["name"], sent["name"]);
            assert_eq!(
                read.json["item"]["definition"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .collect::<Vec<_>>(),
                sent.as_object().unwrap().keys().collect::<Vec<_>>()
            );
            // Numbers, by their spelling, with a reader of our own.
            let found: Reply = serde_json::from_slice(&read.bytes).unwrap();
            for (name, number) in &numbers {
                for found in [
                    &found.item.definition.runtime[name],
                    &found.item.source_ref.selectors[name],
                ] {
                    assert!(same_number(found.get(), number), "{number} came back as {found}");
                }
            }
        }
    });
}

/// A rule, a definition that breaks it, and the place of which the refusal speaks.
#[expect(clippy::too_many_lines, reason = "a table")]
fn broken() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let tree = |depth: usize| {
        let leaf = json!({ "field": "tool.id", "op": "eq", "value": "a" });
        (1..depth).fold(leaf, |node, _| json!({ "not": node }))
    };
    let rego = |module: &str| {
        json!({ "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
            "module": module, "moduleSha256": provost_policy::sha256_hex(module.as_bytes()) })
    };
    let prompt = |op: &str, value: Value| json!({ "field": "request.prompt", "op": op, "value": value });
    let content = "content-policies";
    vec![
        ("an id is required", content, json!({ "id": null }), "/id"),
        (
            "an id begins with a letter or digit",
            content,
            json!({ "id": "-a" }),
            "/id",
        ),
        (
            "an id has at most 256 characters",
            content,
            json!({ "id": "a".repeat(257) }),
            "/id",
        ),
        ("an id has no space", content, json!({ "id": "a b" }), "/id"),
        ("a name is required", content, json!({ "name": null }), "/name"),
        ("a name has a character", content, json!({ "name": "" }), "/name"),
        (
            "a name has at most 4096 characters",
            content,
            json!({ "name": "a".repeat(4097) }),
            "/name",
        ),
        (
            "a description is text",
            content,
            json!({ "description": 1 }),
            "/description",
        ),
        (
            "a rationale has a character",
            content,
            json!({ "rationale": "" }),
            "/rationale",
        ),
        (
            "use cases are words",
            content,
            json!({ "useCases": ["Anything"] }),
            "/useCases/0",
        ),
        (
            "frameworks are words",
            content,
            json!({ "complianceFrameworks": ["XYZ"] }),
            "/complianceFrameworks/0",
        ),
        (
            "labels are a set",
            content,
            json!({ "labels": ["a", "a"] }),
            "/labels/1",
        ),
        (
            "there are at most 256 labels",
            content,
            json!({ "labels": (0..257).map(|n| n.to_string()).collect::<Vec<_>>() }),
            "/labels",
        ),
        (
            "enabled is a boolean",
            content,
            json!({ "enabled": "yes" }),
            "/enabled",
        ),
        ("members are known", content, json!({ "foo": 1 }), "/foo"),
        (
            "the scope's members are the family's",
            content,
            json!({ "appliesTo": { "devices": ["a"] } }),
            "/appliesTo/devices",
        ),
        (
            "a scope's list has at most 256 items",
            content,
            json!({ "appliesTo": { "products": (0..257).map(|n| n.to_string()).collect::<Vec<_>>() } }),
            "/appliesTo/products",
        ),
        (
            "an action is required",
            content,
            json!({ "action": null }),
            "/action",
        ),
        (
            "an action is the family's",
            content,
            json!({ "action": "delete" }),
            "/action",
        ),
        (
            "stages are required",
            content,
            json!({ "evaluateOn": null }),
            "/evaluateOn",
        ),
        (
            "stages are not empty",
            content,
            json!({ "evaluateOn": [] }),
            "/evaluateOn",
        ),
        (
            "stages are the family's",
            content,
            json!({ "evaluateOn": ["inline_hook"] }),
            "/evaluateOn/0",
        ),
        (
            "a broad scope is acknowledged",
            content,
            json!({ "action": "block" }),
            "/acknowledgeBroadScope",
        ),
        (
            "an approval goes with require_approval",
            content,
            json!({ "approval": { "autoApproveOnRequest": true } }),
            "/approval",
        ),
        (
            "conditions or logic, not both",
            content,
            json!({ "logic": rego("package forge.content") }),
            "",
        ),
        (
            "conditions or logic, one of them",
            content,
            json!({ "conditions": null }),
            "",
        ),
        (
            "a field is the family's",
            content,
            json!({ "conditions": { "field": "device.id", "op": "eq", "value": "a" } }),
            "/conditions/field",
        ),
        (
            "an operator is the type's",
            content,
            json!({ "conditions": prompt("gt", json!(1)) }),
            "/conditions/op",
        ),
        (
            "exists has no value",
            content,
            json!({ "conditions": prompt("exists", json!(true)) }),
            "/conditions/value",
        ),
        (
            "a pattern is RE2",
            content,
            json!({ "conditions": prompt("matches", json!("(?=a)")) }),
            "/conditions/value",
        ),
        (
            "in has a list",
            content,
            json!({ "conditions": { "field": "tool.id", "op": "in", "value": [] } }),
            "/conditions/value",
        ),
        (
            "all has a child",
            content,
            json!({ "conditions": { "all": [] } }),
            "/conditions/all",
        ),
        (
            "conditions are 16 deep",
            content,
            json!({ "conditions": tree(17) }),
            "/conditions/not/not/not/not/not/not/not/not/not/not/not/not/not/not/not/not",
        ),
        (
            "a window has a unit",
            content,
            json!({ "conditions": { "eventCount": { "within": "5", "where": tree(1), "op": "gt", "value": 1 } } }),
            "/conditions/eventCount/within",
        ),
        (
            "a window is at most 30 days",
            content,
            json!({ "conditions": { "eventCount": { "within": "31d", "where": tree(1), "op": "gt", "value": 1 } } }),
            "/conditions/eventCount/within",
        ),
        (
            "a sequence has two events",
            content,
            json!({ "conditions": { "hasEventSequence": { "within": "5m", "ordered": true, "events": [tree(1)] } } }),
            "/conditions/hasEventSequence/events",
        ),
        (
            "a module compiles",
            content,
            json!({ "conditions": null, "logic": rego("package forge.content\nmatch := {") }),
            "/logic/module",
        ),
        (
            "a module's package is the family's",
            content,
            json!({ "conditions": null, "logic": rego("package forge.access") }),
            "/logic/module",
        ),
        (
            "an exception has a reason",
            content,
            json!({ "exceptions": [{ "id": "a", "conditions": tree(1) }] }),
            "/exceptions/0/reason",
        ),
        (
            "an exception ends at an instant",
            content,
            json!({ "exceptions": [{ "id": "a", "reason": "b", "expiresAt": "soon", "conditions": tree(1) }] }),
            "/exceptions/0/expiresAt",
        ),
        (
            "a custom field is below tool.input",
            content,
            json!({ "customFields": [{ "field": "tool.id", "label": "a", "valueType": "string", "sourceType": "known_schema", "toolName": "b", "schemaVersionId": "c" }] }),
            "/customFields/0/field",
        ),
        (
            "redact says how",
            content,
            json!({ "action": "redact", "acknowledgeBroadScope": true }),
            "/redaction",
        ),
        (
            "surfaces are required",
            "access-policies",
            json!({ "enforcementSurfaces": null }),
            "/enforcementSurfaces",
        ),
        (
            "severities are words",
            "access-policies",
            json!({ "severity": "huge" }),
            "/severity",
        ),
        (
            "no history in access",
            "access-policies",
            json!({ "conditions": { "hasPriorEvent": { "field": "product.id", "op": "eq", "value": "a" } } }),
            "/conditions/hasPriorEvent",
        ),
        (
            "enforcement is a word",
            "resource-policies",
            json!({ "enforcement": "maybe" }),
            "/enforcement",
        ),
        (
            "a data target goes with redact and filter",
            "resource-policies",
            json!({ "dataTarget": "mysql_result" }),
            "/dataTarget",
        ),
        (
            "an effect is a word",
            "skill-acls",
            json!({ "effect": "nudge" }),
            "/effect",
        ),
        (
            "everyone excludes users",
            "skill-acls",
            json!({ "subjects": { "everyone": true, "users": ["a"] } }),
            "/subjects",
        ),
        (
            "somebody is named",
            "skill-acls",
            json!({ "subjects": {} }),
            "/subjects",
        ),
        (
            "a skill is named",
            "skill-acls",
            json!({ "skillId": null }),
            "/skillId",
        ),
    ]
}

#[test]
fn a_definition_that_breaks_a_rule_is_refused_with_its_place() {
    each("broken_definitions", |app: Arc<App>| async move {
        for (rule, collection, change, place) in broken() {
            let mut definition = definition(collection, "broken", "skill");
            let members = definition.as_object_mut().unwrap();
            members.extend(change.as_object().unwrap().clone());
            members.retain(|_, value| !value.is_null());
            let family = match collection {
                "content-policies" => "content",
                "access-policies" => "access",
                "resource-policies" => "resource",
                _ => "skill_acl",
            };
            let plan = json!({ "family": family, "definition": definition, "expectedRevision": 0 });
            let plan = app
                .request("POST", "/policy-plans/validate")
                .json(plan)
                .send()
                .await;
            let made = app
                .write(
                    "POST",
                    &format!("/{collection}"),
                    json!({ "definition": definition }),
                )
                .await;
            let changed = json!({ "definition": definition, "expectedRevision": 1 });
            let changed = app.write("PUT", &format!("/{collection}/broken"), changed).await;
            for reply in [plan, made, changed] {
                reply.refused(422, "invalid_definition");
                let errors = reply.json["errors"].as_array().unwrap();
                let paths: Vec<&str> = errors.iter().map(|e| e["path"].as_str().unwrap()).collect();
                assert!(
                    paths.contains(&format!("/definition{place}").as_str()),
                    "{rule}: {}",
                    reply.text()
                );
            }
        }
        // Every breach at once.
        let several = json!({ "definition": { "id": "-", "action": "x", "evaluateOn": [] } });
        let reply = app.write("POST", "/content-policies", several).await;
        reply.refused(422, "invalid_definition");
        assert!(
            reply.json["errors"].as_array().unwrap().len() >= 4,
            "{}",
            reply.text()
        );
        // What the schema says is 400.
        for body in [
            json!({ "definition": [] }),
            json!({}),
            json!({ "definition": {}, "expectedRevision": -1 }),
        ] {
            app.write("POST", "/content-policies", body)
                .await
                .refused(400, "invalid_request");
        }
        assert_eq!(app.get("/policies").await.ok()["policies"], json!([]));
        assert_eq!(app.get("/policies/versions").await.ok()["versions"], json!([]));
    });
}

#[test]
fn a_definition_may_be_large_and_not_larger() {
    each("large_definitions", |app: Arc<App>| async move {
        let module = format!(
            "package forge.content\ndefault match := {{\"matched\": false}}\n# {}\n",
            "注".repeat(262_000)
        );
        let mut large = definition("content-policies", "large", "");
        large.as_object_mut().unwrap().remove("conditions");
        large["logic"] = json!({ "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
            "module": module, "moduleSha256": provost_policy::sha256_hex(module.as_bytes()) });
        let made = app
            .write("POST", "/content-policies", json!({ "definition": large }))
            .await;
        assert_eq!(made.ok()["item"]["definition"], large);
        let mut larger = definition("content-policies", "larger", "");
        larger["description"] = "a".repeat(2 << 20).into();
        let refused = app
            .write("POST", "/content-policies", json!({ "definition": larger }))
            .await;
        refused.refused(413, "payload_too_large");
        let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
        let body =
            format!(r#"{{"definition":{{"id":"a","runtime":{deep}}},"reason":"a","idempotencyKey":"b"}}"#);
        let refused = app.request("POST", "/access-policies").bytes(body).send().await;
        refused.refused(400, "invalid_request");
    });
}
