//! Every rule of the contract: what passes, what does not, and where the fault is said to be.

#![cfg(test)]

use provost_policy::{Definition, Family, VIOLATIONS_KEPT, document_sha256, sha256_hex};
use serde_json::{Value, json};

fn content() -> Value {
    json!({"id": "c1", "name": "No shell", "enabled": true, "action": "block", "evaluateOn": ["pre_tool"],
        "appliesTo": {"users": ["ann@example.com", {"name": "bob", "directoryId": "dir1"}]},
        "conditions": {"field": "tool.id", "op": "eq", "value": "shell"}})
}

fn access() -> Value {
    json!({"id": "a1", "name": "Known AI", "action": "block", "enforcementSurfaces": ["inline_hook"],
        "conditions": {"field": "classification.state", "op": "eq", "value": "known_ai"}})
}

fn resource() -> Value {
    json!({"id": "r1", "name": "Ledger", "action": "flag_for_review", "appliesTo": {"resources": ["ledger"]},
        "conditions": {"field": "resource.protocol", "op": "eq", "value": "postgres"}})
}

fn skill() -> Value {
    json!({"id": "s1", "skillId": "pdf", "enabled": true, "subjects": {"everyone": true}, "effect": "allow"})
}

fn base(family: Family) -> Value {
    match family {
        Family::Content => content(),
        Family::Access => access(),
        Family::Resource => resource(),
        Family::SkillAcl => skill(),
    }
}

/// Returns the definition with some members set; `null` removes one.
fn with(family: Family, changes: &Value) -> Value {
    let mut definition = base(family);
    let members = definition.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    definition
}

fn faults(family: Family, definition: &Value) -> Vec<String> {
    match Definition::read(family, definition) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.kept().iter().map(|fault| fault.path.clone()).collect(),
    }
}

#[track_caller]
fn passes(family: Family, changes: &Value) {
    let read = Definition::read(family, &with(family, changes));
    assert!(read.is_ok(), "{changes}: {}", read.unwrap_err());
}

#[track_caller]
fn fails(family: Family, changes: &Value, place: &str) {
    assert_eq!(faults(family, &with(family, changes)), [place], "{changes}");
}

use Family::{Access, Content, Resource, SkillAcl};

fn names(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("n{n}")).collect()
}

/// Proves PD-2.
#[test]
fn a_definition_is_given_back_as_it_came() {
    for family in Family::ALL {
        let definition = base(family);
        let read = Definition::read(family, &definition).unwrap();
        assert_eq!(read.authored().to_string(), definition.to_string());
        assert_eq!(read.sha256(), document_sha256(&definition));
        assert_eq!((read.family(), read.is_enabled()), (family, true));
    }
    let odd = with(
        Content,
        &json!({"conditions": {"field": "llm.input_tokens", "op": "gt", "value": 1.0}}),
    );
    assert_eq!(
        Definition::read(Content, &odd).unwrap().authored()["conditions"]["value"].to_string(),
        "1.0"
    );
}

/// What verdicts read of a document stays, with the digest of the whole one.
#[test]
fn a_definition_that_is_only_judged_by_keeps_what_verdicts_say() {
    let approval = json!({"action": "require_approval", "approval": {"autoApproveOnRequest": true}});
    let approval = with(Content, &approval);
    let target = with(
        Resource,
        &json!({"action": "redact", "dataTarget": "http_request_body", "redaction": {"strategy": "nullify"}}),
    );
    for (family, definition, kept) in [
        (Content, &approval, json!({"approval": approval["approval"]})),
        (Resource, &target, json!({"dataTarget": "http_request_body"})),
        (Content, &base(Content), json!({})),
    ] {
        let mut read = Definition::read(family, definition).unwrap();
        read.keep_for_verdicts();
        assert_eq!(read.authored(), &kept);
        assert_eq!(read.sha256(), document_sha256(definition));
    }
}

#[test]
fn the_head_has_its_bounds() {
    for family in [Content, Access, Resource, SkillAcl] {
        passes(family, &json!({"id": "a".repeat(256)}));
        fails(family, &json!({"id": "a".repeat(257)}), "/id");
        passes(family, &json!({"id": "A9._:@/-"}));
        for bad in ["", ".a", "a b", "é", "-x"] {
            fails(family, &json!({"id": bad}), "/id");
        }
        fails(family, &json!({"id": 7}), "/id");
        fails(family, &json!({"enabled": "yes"}), "/enabled");
        fails(family, &json!({"colour": "red"}), "/colour");
    }
    for family in [Content, Access, Resource] {
        passes(
            family,
            &json!({"name": "é".repeat(4096), "description": "d", "rationale": "r"}),
        );
        fails(family, &json!({"name": "é".repeat(4097)}), "/name");
        fails(family, &json!({"name": ""}), "/name");
        fails(family, &json!({"name": null}), "/name");
        fails(family, &json!({"description": ""}), "/description");
        passes(
            family,
            &json!({"useCases": ["Shadow AI", "Resilience"], "complianceFrameworks": ["SOC 2"]}),
        );
        fails(family, &json!({"useCases": ["Shadow"]}), "/useCases/0");
        fails(
            family,
            &json!({"useCases": ["Shadow AI", "Shadow AI"]}),
            "/useCases/1",
        );
        fails(
            family,
            &json!({"complianceFrameworks": ["ISO"]}),
            "/complianceFrameworks/0",
        );
        passes(family, &json!({"labels": names(256)}));
        fails(family, &json!({"labels": names(257)}), "/labels");
        fails(family, &json!({"action": "explode"}), "/action");
        fails(family, &json!({"action": null}), "/action");
    }
}

#[test]
fn scopes_have_the_lists_of_their_family() {
    passes(
        Content,
        &json!({"appliesTo": {"users": names(256), "agents": ["x"], "products": ["p"]}}),
    );
    fails(
        Content,
        &json!({"appliesTo": {"users": names(257), "agents": ["x"]}}),
        "/appliesTo/users",
    );
    fails(
        Content,
        &json!({"appliesTo": {"users": ["a"], "devices": ["d"]}}),
        "/appliesTo/devices",
    );
    fails(
        Content,
        &json!({"appliesTo": {"users": ["a", "a"]}}),
        "/appliesTo/users/1",
    );
    fails(
        Content,
        &json!({"appliesTo": {"users": [{"directoryId": "d"}, "a"]}}),
        "/appliesTo/users/0/name",
    );
    fails(
        Content,
        &json!({"appliesTo": {"users": ["a"], "agents": [{"name": "x"}]}}),
        "/appliesTo/agents/0",
    );
    passes(
        Access,
        &json!({"appliesTo": {"devices": ["d"], "serviceAccounts": ["s"]}}),
    );
    fails(
        Access,
        &json!({"appliesTo": {"resources": ["r"]}}),
        "/appliesTo/resources",
    );
}

#[test]
fn broad_and_disruptive_has_to_be_meant() {
    for action in ["block", "redact", "filter", "nudge", "require_approval"] {
        let mut change = json!({"appliesTo": {}, "action": action});
        if action == "redact" {
            change["redaction"] = json!({"strategy": "nullify"});
        }
        if action == "filter" {
            change["filter"] = filter();
        }
        fails(Content, &change, "/acknowledgeBroadScope");
        change["appliesTo"] = json!({"users": []});
        fails(Content, &change, "/acknowledgeBroadScope");
        change["acknowledgeBroadScope"] = json!(true);
        passes(Content, &change);
        change["acknowledgeBroadScope"] = json!(false);
        change["enabled"] = json!(false);
        passes(Content, &change);
    }
    passes(Content, &json!({"appliesTo": {}, "action": "flag_for_review"}));
    passes(Resource, &json!({"appliesTo": null, "action": "allow"}));
    fails(
        Resource,
        &json!({"appliesTo": null, "action": "block"}),
        "/acknowledgeBroadScope",
    );
    passes(Access, &json!({"appliesTo": null, "action": "block"}));
}

#[test]
fn content_has_its_own_rules() {
    passes(
        Content,
        &json!({"evaluateOn": ["prompt", "pre_tool", "post_tool", "response"]}),
    );
    fails(Content, &json!({"evaluateOn": []}), "/evaluateOn");
    fails(Content, &json!({"evaluateOn": null}), "/evaluateOn");
    fails(
        Content,
        &json!({"evaluateOn": ["prompt", "prompt"]}),
        "/evaluateOn/1",
    );
    fails(Content, &json!({"evaluateOn": ["inline_hook"]}), "/evaluateOn/0");
    passes(Content, &json!({"message": "m".repeat(4096)}));
    fails(Content, &json!({"message": "m".repeat(4097)}), "/message");
    passes(
        Content,
        &json!({"action": "require_approval", "approval": {"autoApproveOnRequest": true}}),
    );
    fails(
        Content,
        &json!({"approval": {"autoApproveOnRequest": true}}),
        "/approval",
    );
    fails(
        Content,
        &json!({"action": "require_approval", "approval": {"mode": "x"}}),
        "/approval/mode",
    );
    fails(Content, &json!({"severity": "low"}), "/severity");
}

#[test]
fn custom_fields_have_their_rules() {
    let field = |name: &str| {
        json!({"field": name, "label": "l", "valueType": "number", "sourceType": "known_schema",
        "toolName": "book", "schemaVersionId": "v1"})
    };
    let one = |name: &str| json!({"customFields": [field(name)]});
    passes(Content, &one("tool.input.a[0].b"));
    fails(Content, &one("tool.input.userPassword"), "/customFields/0/field");
    fails(Content, &one("tool.result.a"), "/customFields/0/field");
    fails(
        Content,
        &json!({"customFields": [field("tool.input.a"), field("tool.input.a")]}),
        "/customFields/1/field",
    );
    let mut other = field("tool.input.a");
    other["valueType"] = json!("date");
    fails(
        Content,
        &json!({"customFields": [other]}),
        "/customFields/0/valueType",
    );
    let mut other = field("tool.input.a");
    other["label"] = Value::Null;
    fails(
        Content,
        &json!({"customFields": [other]}),
        "/customFields/0/label",
    );
    let many = |n: usize| {
        (0..n)
            .map(|n| field(&format!("tool.input.a{n}")))
            .collect::<Vec<_>>()
    };
    passes(Content, &json!({"customFields": many(256)}));
    fails(Content, &json!({"customFields": many(257)}), "/customFields");
    fails(Access, &one("tool.input.a"), "/customFields");
    let used = |op: &str| {
        json!({"customFields": [field("tool.input.a")],
        "conditions": {"field": "tool.input.a", "op": op, "value": 5}})
    };
    passes(Content, &used("gt"));
    fails(Content, &used("contains"), "/conditions/op");
}

#[test]
fn access_has_its_own_rules() {
    passes(
        Access,
        &json!({"enforcementSurfaces": ["inline_hook", "endpoint_route", "provider"], "severity": "critical",
        "enforcedBy": names(256), "runtime": {"x": [1]}, "notification": {}, "remediation": {"actions": []}}),
    );
    fails(
        Access,
        &json!({"enforcementSurfaces": ["resource_proxy"]}),
        "/enforcementSurfaces/0",
    );
    fails(
        Access,
        &json!({"enforcementSurfaces": []}),
        "/enforcementSurfaces",
    );
    fails(Access, &json!({"severity": "odd"}), "/severity");
    fails(Access, &json!({"enforcedBy": names(257)}), "/enforcedBy");
    fails(Access, &json!({"runtime": []}), "/runtime");
    fails(Access, &json!({"action": "redact", "enforcedBy": []}), "/action");
    passes(
        Access,
        &json!({"action": "require_approval", "approval": {"mode": "self_serve"}}),
    );
    fails(
        Access,
        &json!({"action": "block", "approval": {"mode": "self_serve"}}),
        "/approval",
    );
}

fn filter() -> Value {
    json!({"collectionPath": "$.rows", "removeWhere": {"path": "$.a", "op": "eq", "value": 1}, "onUnavailable": "block"})
}

#[test]
fn resource_has_its_own_rules() {
    let redact = |target: &str, paths: Value| {
        json!({"action": "redact", "dataTarget": target,
        "redaction": {"strategy": "nullify", "paths": paths}})
    };
    passes(Resource, &redact("http_request_body", Value::Null));
    passes(Resource, &redact("postgres_result", json!(["$.rows[0].card"])));
    fails(Resource, &redact("mysql_result", Value::Null), "/redaction/paths");
    fails(
        Resource,
        &json!({"action": "redact", "redaction": {"strategy": "nullify"}}),
        "/dataTarget",
    );
    fails(Resource, &json!({"dataTarget": "postgres_result"}), "/dataTarget");
    let mut broad = redact("http_response_body", Value::Null);
    broad["appliesTo"] = json!({"users": ["u"]});
    fails(Resource, &broad, "/dataTarget");
    let filtered = |target: &str, path: &str| {
        let mut filter = filter();
        filter["collectionPath"] = json!(path);
        json!({"action": "filter", "dataTarget": target, "filter": filter})
    };
    passes(Resource, &filtered("postgres_result", "$.rows"));
    passes(Resource, &filtered("http_response_body", "$.items"));
    fails(
        Resource,
        &filtered("mysql_result", "$.items"),
        "/filter/collectionPath",
    );
    fails(Resource, &filtered("http_request_body", "$.rows"), "/dataTarget");
    passes(
        Resource,
        &json!({"enforcement": "monitor", "severity": "low", "message": "m"}),
    );
    fails(Resource, &json!({"enforcement": "off"}), "/enforcement");
    fails(Resource, &json!({"action": "nudge"}), "/action");
}

#[test]
fn redactions_and_filters_have_their_rules() {
    let redaction = |redaction: Value| json!({"action": "redact", "redaction": redaction});
    let good = [
        json!({"strategy": "constant", "replacement": "***"}),
        json!({"replacement": "***"}),
        json!({"strategy": "partial", "keepStart": 0, "maskCharacter": "é"}),
        json!({"strategy": "partial", "keepEnd": 256}),
        json!({"strategy": "hash", "saltRef": "s"}),
        json!({"strategy": "nullify"}),
        json!({"strategy": "fake", "subtype": "ipv4"}),
        json!({"strategy": "hash", "applyTo": "matches", "pattern": "x".repeat(512)}),
    ];
    for one in good {
        passes(Content, &redaction(one));
    }
    let bad = [
        (json!({"strategy": "constant"}), "/redaction/replacement"),
        (json!({"strategy": "partial"}), "/redaction"),
        (
            json!({"strategy": "partial", "keepEnd": 257}),
            "/redaction/keepEnd",
        ),
        (
            json!({"strategy": "partial", "keepEnd": 1, "maskCharacter": "**"}),
            "/redaction/maskCharacter",
        ),
        (
            json!({"strategy": "hash", "replacement": "x"}),
            "/redaction/replacement",
        ),
        (json!({"strategy": "fake"}), "/redaction/subtype"),
        (
            json!({"strategy": "fake", "subtype": "name"}),
            "/redaction/subtype",
        ),
        (json!({"strategy": "shred"}), "/redaction/strategy"),
        (json!({"strategy": "hash", "pattern": "a"}), "/redaction"),
        (json!({"strategy": "hash", "applyTo": "matches"}), "/redaction"),
        (
            json!({"strategy": "hash", "applyTo": "all", "pattern": "a"}),
            "/redaction/applyTo",
        ),
        (
            json!({"strategy": "hash", "applyTo": "matches", "pattern": "x".repeat(513)}),
            "/redaction/pattern",
        ),
        (
            json!({"strategy": "hash", "applyTo": "matches", "pattern": "("}),
            "/redaction/pattern",
        ),
        (
            json!({"strategy": "nullify", "applyTo": "matches", "pattern": "a"}),
            "/redaction/applyTo",
        ),
        (json!({"strategy": "nullify", "paths": []}), "/redaction/paths"),
        (
            json!({"strategy": "nullify", "paths": ["$.a", "rows"]}),
            "/redaction/paths/1",
        ),
    ];
    for (one, place) in bad {
        fails(Content, &redaction(one), place);
    }
    let paths = |n: usize| {
        redaction(
            json!({"strategy": "nullify", "paths": (0..n).map(|n| format!("$.a{n}")).collect::<Vec<_>>()}),
        )
    };
    passes(Content, &paths(64));
    fails(Content, &paths(65), "/redaction/paths");
    fails(Content, &json!({"action": "redact"}), "/redaction");
    fails(
        Content,
        &json!({"redaction": {"strategy": "nullify"}}),
        "/redaction",
    );
    fails(Content, &json!({"filter": filter()}), "/filter");
    passes(Content, &json!({"action": "filter", "filter": filter()}));
    for (name, place) in [
        ("collectionPath", "/filter/collectionPath"),
        ("onUnavailable", "/filter/onUnavailable"),
        ("removeWhere", "/filter/removeWhere"),
    ] {
        let mut one = filter();
        one.as_object_mut().unwrap().remove(name);
        fails(Content, &json!({"action": "filter", "filter": one}), place);
    }
    let mut one = filter();
    one["removeWhere"]["op"] = json!("matches");
    fails(
        Content,
        &json!({"action": "filter", "filter": one}),
        "/filter/removeWhere/op",
    );
}

#[test]
fn exactly_one_of_logic_and_conditions() {
    let module = "package forge.content\nmatch := {\"matched\": true}";
    let logic = json!({"kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
        "module": module, "moduleSha256": sha256_hex(module.as_bytes())});
    passes(Content, &json!({"conditions": null, "logic": logic}));
    fails(Content, &json!({"logic": logic}), "");
    fails(Content, &json!({"conditions": null}), "");
    let changed = |name: &str, value: &str| {
        let mut logic = logic.clone();
        logic[name] = json!(value);
        json!({"conditions": null, "logic": logic})
    };
    fails(Content, &changed("kind", "cel"), "/logic/kind");
    fails(
        Content,
        &changed("languageVersion", "forge.rego.v2"),
        "/logic/languageVersion",
    );
    fails(
        Content,
        &changed("entrypoint", "data.forge.access.match"),
        "/logic/entrypoint",
    );
    fails(
        Content,
        &changed("moduleSha256", &"0".repeat(64)),
        "/logic/moduleSha256",
    );
    let other = "package forge.content\nmatch := {";
    let mut broken = changed("module", other);
    broken["logic"]["moduleSha256"] = json!(sha256_hex(other.as_bytes()));
    fails(Content, &broken, "/logic/module");
    let mut custom = json!({"conditions": null, "logic": logic, "customFields": []});
    fails(Content, &custom, "/customFields");
    custom["customFields"] = Value::Null;
    passes(Content, &custom);
}

#[test]
fn exceptions_have_their_rules() {
    let one = json!({"id": "e1", "reason": "r", "expiresAt": "2026-01-01T00:00:00Z",
        "conditions": {"field": "identity.user_id", "op": "eq", "value": "ann"}});
    let changed = |name: &str, value: Value| {
        let mut one = one.clone();
        one[name] = value;
        json!({"exceptions": [one]})
    };
    passes(Content, &json!({"exceptions": [one]}));
    passes(Content, &json!({"except": one["conditions"]}));
    fails(Content, &json!({"except": {}}), "/except");
    fails(Content, &json!({"exceptions": [one, one]}), "/exceptions/1/id");
    fails(Content, &changed("reason", Value::Null), "/exceptions/0/reason");
    fails(
        Content,
        &changed("conditions", Value::Null),
        "/exceptions/0/conditions",
    );
    for bad in [
        "2026-01-01",
        "tomorrow",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00",
    ] {
        fails(
            Content,
            &changed("expiresAt", json!(bad)),
            "/exceptions/0/expiresAt",
        );
    }
}

#[test]
fn skill_lists_are_for_everyone_or_for_some() {
    passes(SkillAcl, &json!({"subjects": {"users": ["a"]}}));
    passes(
        SkillAcl,
        &json!({"subjects": {"everyone": false, "groups": [{"name": "g", "directoryId": "d"}]}}),
    );
    fails(SkillAcl, &json!({"subjects": {}}), "/subjects");
    fails(SkillAcl, &json!({"subjects": {"users": []}}), "/subjects");
    fails(
        SkillAcl,
        &json!({"subjects": {"everyone": true, "users": ["a"]}}),
        "/subjects",
    );
    fails(SkillAcl, &json!({"subjects": null}), "/subjects");
    fails(SkillAcl, &json!({"effect": "hide"}), "/effect");
    fails(SkillAcl, &json!({"skillId": ""}), "/skillId");
}

#[test]
fn lists_of_servers_are_known_by_their_form() {
    let server = json!({"field": "mcp.server_id", "op": "eq", "value": "git"});
    let tools = json!({"field": "mcp.tool_id", "op": "in", "value": ["a"]});
    let is_list = |change: Value| {
        Definition::read(Content, &with(Content, &change))
            .unwrap()
            .acl()
            .is_some()
    };
    assert!(is_list(json!({"conditions": server})));
    assert!(is_list(
        json!({"conditions": {"all": [server]}, "action": "allow"})
    ));
    assert!(is_list(json!({"conditions": {"all": [server, tools]}})));
    assert!(!is_list(json!({"conditions": {"all": [tools, server]}})));
    assert!(!is_list(
        json!({"conditions": server, "evaluateOn": ["pre_tool", "prompt"]})
    ));
    assert!(!is_list(json!({"conditions": server, "action": "nudge"})));
    assert!(!is_list(
        json!({"conditions": server, "appliesTo": {"users": ["a"], "agents": ["b"]}})
    ));
    assert!(!is_list(json!({"conditions": server, "except": tools})));
    let list = Definition::read(SkillAcl, &skill()).unwrap();
    assert_eq!(
        list.acl().map(|acl| (acl.names.as_str(), acl.allows)),
        Some(("pdf", true))
    );
}

/// Proves PD-1.
#[test]
fn all_faults_are_found_and_twenty_are_kept() {
    let many = with(Content, &json!({"labels": vec![""; 30], "action": "x"}));
    let found = Definition::read(Content, &many).unwrap_err();
    assert_eq!(found.kept().len(), VIOLATIONS_KEPT);
    assert_eq!(found.found(), 31);
    for family in Family::ALL {
        for document in [json!(null), json!([]), json!("x"), json!({}), json!(1)] {
            assert!(Definition::read(family, &document).is_err());
        }
    }
}

/// A silent policy is told: no call to a server has a bare name.
#[test]
fn a_bare_tool_name_beside_an_mcp_server_is_advised_against() {
    let advice = |conditions: Value| {
        let definition = with(Family::Content, &json!({ "conditions": conditions }));
        let found = Definition::read(Family::Content, &definition).unwrap().advice();
        assert!(
            found
                .iter()
                .all(|advice| (advice.code, advice.path) == ("bare_tool_name", "/conditions"))
        );
        found.len()
    };
    let server = json!({ "field": "mcp.server_id", "op": "eq", "value": "billing" });
    let tool =
        |op: &str, value: Value| json!({ "all": [server, { "field": "tool.id", "op": op, "value": value }] });
    assert_eq!(advice(tool("eq", json!("refund"))), 1);
    assert_eq!(
        advice(tool("in", json!(["refund", "mcp__billing__pay", "pay"]))),
        2
    );
    assert_eq!(advice(tool("starts_with", json!("ref"))), 1);
    assert_eq!(advice(json!({ "not": tool("neq", json!("refund")) })), 1);
    // The whole name, its beginning, the tool's own name, and a tool of no server.
    assert_eq!(advice(tool("eq", json!("mcp__billing__refund"))), 0);
    for beginning in ["mcp__", "mc", "mcp__bil"] {
        assert_eq!(advice(tool("starts_with", json!(beginning))), 0);
    }
    let own = json!({ "field": "mcp.tool_id", "op": "eq", "value": "refund" });
    assert_eq!(advice(json!({ "all": [server, own] })), 0);
    assert_eq!(
        advice(json!({ "field": "tool.id", "op": "eq", "value": "refund" })),
        0
    );
}
