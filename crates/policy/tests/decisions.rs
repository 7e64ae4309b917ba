//! How answers combine, and that a failed evaluation is never a silent allow.

#![cfg(test)]

use provost_policy::{
    Action, Batch, Definition, Event, Family, Field, Occasion, Outcome, PolicySet, Projection, Reason, Scan,
    SubjectStates, Symbols, Value as Held, set_digest, sha256_hex,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn set(policies: &[(Family, Value)]) -> PolicySet {
    let read = |(family, policy): &(Family, Value)| {
        Arc::new(Definition::read(*family, policy).unwrap_or_else(|e| panic!("{policy}: {e}")))
    };
    PolicySet::new(policies.iter().map(read)).unwrap()
}

fn content(id: &str, action: &str, change: &Value) -> (Family, Value) {
    let mut policy = json!({"id": id, "name": id, "action": action, "evaluateOn": ["pre_tool"],
        "acknowledgeBroadScope": true, "conditions": {"field": "tool.id", "op": "exists"}});
    match action {
        "redact" => policy["redaction"] = json!({"strategy": "nullify"}),
        "filter" => {
            policy["filter"] = json!({"collectionPath": "$.rows", "onUnavailable": "allow",
                "removeWhere": {"path": "$.a", "op": "eq", "value": 1}});
        }
        _ => {}
    }
    for (name, value) in change.as_object().unwrap() {
        policy[name] = value.clone();
    }
    (Family::Content, policy)
}

/// Judges one event row by row and column by column; both have to agree.
fn judge_at(
    set: &PolicySet,
    at_ms: i64,
    occasion: Occasion,
    attributes: &Value,
    missing: &[&str],
) -> Outcome {
    let mut symbols = Symbols::new();
    let empty = Map::new();
    let attributes = attributes.as_object().unwrap_or(&empty);
    let event = Event::read(&mut symbols, at_ms, occasion, attributes, missing).unwrap();
    let outcome = set.judge(&event, &symbols, &SubjectStates::new());
    let mut scan = Scan::new(set);
    let fields = Projection::of(&[set]);
    scan.judge(&Batch::of(&[event], fields.fields()).unwrap(), &symbols);
    assert_eq!(scan.decision(0), (outcome.action, outcome.unknown));
    outcome
}

fn judge(set: &PolicySet, attributes: &Value, missing: &[&str]) -> Outcome {
    judge_at(set, 1_000_000, Occasion::PreTool, attributes, missing)
}

fn action(set: &PolicySet, attributes: &Value) -> &'static str {
    judge(set, attributes, &[]).action.word()
}

#[test]
fn the_stronger_of_two_actions_wins() {
    let words = [
        "allow",
        "flag_for_review",
        "nudge",
        "redact",
        "filter",
        "require_approval",
        "block",
    ];
    for (weak, first) in words.iter().enumerate() {
        for (strong, second) in words.iter().enumerate() {
            let set = set(&[content("a", first, &json!({})), content("b", second, &json!({}))]);
            let outcome = judge(&set, &json!({"tool.id": "t"}), &[]);
            assert_eq!(outcome.action.word(), words[weak.max(strong)]);
            let expected: Vec<_> = [("a", weak), ("b", strong)]
                .into_iter()
                .filter(|(_, n)| *n == weak.max(strong))
                .collect();
            assert!(outcome.deciding().eq(expected.into_iter().map(|(id, _)| id)));
            assert_eq!(outcome.findings.len(), 2);
        }
    }
    assert_eq!(action(&set(&[]), &json!({"tool.id": "t"})), "allow");
}

#[test]
fn obligations_are_those_of_all_that_match_unless_it_is_blocked() {
    let both = [
        content("a", "redact", &json!({})),
        content("b", "filter", &json!({})),
    ];
    let outcome = judge(&set(&both), &json!({"tool.id": "t"}), &[]);
    assert!(outcome.obligations().map(|(id, _)| id).eq(["a", "b"]));
    let blocked = [both[0].clone(), content("c", "block", &json!({}))];
    assert_eq!(
        judge(&set(&blocked), &json!({"tool.id": "t"}), &[])
            .obligations()
            .count(),
        0
    );
}

#[test]
fn a_policy_judges_at_its_occasions_only() {
    let set = set(&[content(
        "a",
        "block",
        &json!({"evaluateOn": ["prompt", "response"]}),
    )]);
    for occasion in Occasion::ALL {
        let outcome = judge_at(&set, 0, occasion, &json!({"tool.id": "t"}), &[]);
        assert_eq!(
            outcome.action == Action::Block,
            matches!(occasion, Occasion::Prompt | Occasion::Response)
        );
    }
}

/// Proves PS-1.
#[test]
fn absent_is_false_and_missing_is_unknown_for_every_operator() {
    for (op, value) in [
        ("eq", json!("a")),
        ("neq", json!("a")),
        ("in", json!(["a"])),
        ("not_in", json!(["a"])),
        ("contains", json!("a")),
        ("starts_with", json!("a")),
        ("ends_with", json!("a")),
        ("matches", json!("a")),
        ("exists", Value::Null),
    ] {
        let mut node = json!({"field": "tool.id", "op": op});
        if !value.is_null() {
            node["value"] = value;
        }
        let of = |conditions: Value| set(&[content("a", "block", &json!({"conditions": conditions}))]);
        assert_eq!(
            judge(&of(node.clone()), &json!({}), &[]).action,
            Action::Allow,
            "{op}"
        );
        assert_eq!(
            judge(&of(json!({"not": node})), &json!({}), &[]).action,
            Action::Block,
            "not {op}"
        );
        for conditions in [node.clone(), json!({"not": node})] {
            let outcome = judge(&of(conditions), &json!({}), &["tool.id"]);
            assert_eq!((outcome.action, outcome.unknown), (Action::Block, true), "{op}");
            assert_eq!(outcome.findings[0].reason, Reason::EvaluationFailed);
        }
    }
}

#[test]
fn the_rest_may_decide_what_is_unknown() {
    let unknown = json!({"field": "llm.model", "op": "eq", "value": "m"});
    let tool = |name: &str| json!({"field": "tool.id", "op": "eq", "value": name});
    let is = |conditions: Value| {
        let set = set(&[content("a", "block", &json!({"conditions": conditions}))]);
        let outcome = judge(&set, &json!({"tool.id": "t"}), &["llm.model"]);
        (outcome.action == Action::Block, outcome.unknown)
    };
    assert_eq!(is(json!({"all": [unknown, tool("other")]})), (false, false));
    assert_eq!(is(json!({"all": [unknown, tool("t")]})), (true, true));
    assert_eq!(is(json!({"any": [unknown, tool("t")]})), (true, false));
    assert_eq!(is(json!({"any": [unknown, tool("other")]})), (true, true));
}

/// Proves PS-1.
#[test]
fn a_missing_subject_is_never_outside_a_scope() {
    let set = set(&[content("a", "block", &json!({"appliesTo": {"users": ["ann"]}}))]);
    assert_eq!(
        judge(&set, &json!({"tool.id": "t", "identity.user_id": "bob"}), &[]).action,
        Action::Allow
    );
    assert_eq!(judge(&set, &json!({"tool.id": "t"}), &[]).action, Action::Allow);
    let outcome = judge(&set, &json!({"tool.id": "t"}), &["identity.user_id"]);
    assert_eq!((outcome.action, outcome.unknown), (Action::Block, true));
}

#[test]
fn scopes_join_people_and_narrow_things() {
    let scope =
        json!({"appliesTo": {"users": ["ann"], "groups": [{"name": "eng"}], "products": ["p1", "p2"]}});
    let set = set(&[content("a", "block", &scope)]);
    let is = |user: &str, groups: &[&str], product: &str| {
        action(
            &set,
            &json!({"tool.id": "t", "identity.user_id": user, "identity.group_ids": groups, "product.id": product}),
        )
    };
    assert_eq!(is("ann", &[], "p1"), "block");
    assert_eq!(is("bob", &["law", "eng"], "p2"), "block");
    assert_eq!(is("bob", &["law"], "p2"), "allow");
    assert_eq!(is("ann", &["eng"], "p3"), "allow");
}

#[test]
fn an_exception_suppresses_its_own_policy_until_it_ends() {
    let exception = json!({"exceptions": [{"id": "e", "reason": "r", "expiresAt": "1970-01-01T00:16:40.000Z",
        "conditions": {"field": "identity.user_id", "op": "eq", "value": "ann"}}]});
    let set = set(&[
        content("a", "block", &exception),
        content("b", "nudge", &json!({})),
    ]);
    let ann = json!({"tool.id": "t", "identity.user_id": "ann"});
    let at = |at_ms| judge_at(&set, at_ms, Occasion::PreTool, &ann, &[]).action;
    assert_eq!(at(999_999), Action::Nudge);
    assert_eq!(at(1_000_000), Action::Block);
    assert_eq!(
        judge_at(&set, 0, Occasion::PreTool, &json!({"tool.id": "t"}), &[]).action,
        Action::Block
    );
    // An exception that nobody can judge does not suppress.
    let outcome = judge_at(
        &set,
        0,
        Occasion::PreTool,
        &json!({"tool.id": "t"}),
        &["identity.user_id"],
    );
    assert_eq!((outcome.action, outcome.unknown), (Action::Block, true));
}

#[test]
fn a_monitored_policy_reports_and_decides_nothing() {
    let policy = json!({"id": "r", "name": "r", "action": "block", "enforcement": "monitor",
        "acknowledgeBroadScope": true, "conditions": {"field": "resource.id", "op": "eq", "value": "ledger"}});
    let set = set(&[(Family::Resource, policy)]);
    let outcome = judge_at(
        &set,
        0,
        Occasion::Resource,
        &json!({"resource.id": "ledger"}),
        &[],
    );
    assert_eq!(
        (outcome.action, outcome.unknown, outcome.findings.len()),
        (Action::Allow, false, 1)
    );
    assert!(!outcome.findings[0].enforced && !outcome.findings[0].decides);
    let outcome = judge_at(&set, 0, Occasion::Resource, &json!({}), &["resource.id"]);
    assert_eq!((outcome.action, outcome.unknown), (Action::Allow, false));
    assert_eq!(outcome.findings[0].reason, Reason::EvaluationFailed);
}

fn skill(id: &str, effect: &str, subjects: &Value) -> (Family, Value) {
    (
        Family::SkillAcl,
        json!({"id": id, "skillId": "pdf", "subjects": subjects, "effect": effect}),
    )
}

#[test]
fn skill_lists_block_whom_none_allows() {
    let at = |set: &PolicySet, user: &str, skill: &str| {
        let attributes = json!({"skill.id": skill, "identity.user_id": user, "identity.group_ids": ["eng"]});
        judge_at(set, 0, Occasion::Skill, &attributes, &[])
    };
    let allowed = set(&[
        skill("a", "allow", &json!({"users": ["ann"]})),
        skill("b", "allow", &json!({"users": ["bob"]})),
    ]);
    assert_eq!(at(&allowed, "ann", "pdf").action, Action::Allow);
    let refused = at(&allowed, "cid", "pdf");
    assert_eq!(refused.action, Action::Block);
    assert!(
        refused
            .findings
            .iter()
            .all(|f| f.reason == Reason::NotAllowed && f.decides)
    );
    assert_eq!(at(&allowed, "cid", "other").action, Action::Allow);
    let blocked = set(&[
        skill("a", "allow", &json!({"everyone": true})),
        skill("b", "block", &json!({"groups": ["eng"]})),
    ]);
    assert_eq!(at(&blocked, "ann", "pdf").action, Action::Block);
    let only_blocked = set(&[skill("b", "block", &json!({"users": ["bob"]}))]);
    assert_eq!(at(&only_blocked, "ann", "pdf").action, Action::Allow);
    let missing = judge_at(
        &allowed,
        0,
        Occasion::Skill,
        &json!({"skill.id": "pdf"}),
        &["identity.user_id"],
    );
    assert_eq!((missing.action, missing.unknown), (Action::Block, true));
}

#[test]
fn server_lists_block_the_tools_that_they_name() {
    let acl = |id: &str, effect: &str, user: &str, tools: &[&str]| {
        let mut all = vec![json!({"field": "mcp.server_id", "op": "eq", "value": "git"})];
        if !tools.is_empty() {
            all.push(json!({"field": "mcp.tool_id", "op": "in", "value": tools}));
        }
        content(
            id,
            effect,
            &json!({"appliesTo": {"users": [user]}, "conditions": {"all": all}}),
        )
    };
    let at = |set: &PolicySet, user: &str, server: &str, tool: &str| {
        action(
            set,
            &json!({"identity.user_id": user, "mcp.server_id": server, "mcp.tool_id": tool}),
        )
    };
    let tools = set(&[acl("a", "allow", "ann", &["push"])]);
    assert_eq!(at(&tools, "ann", "git", "push"), "allow");
    assert_eq!(at(&tools, "bob", "git", "push"), "block");
    assert_eq!(at(&tools, "bob", "git", "pull"), "allow");
    assert_eq!(at(&tools, "bob", "crm", "push"), "allow");
    let server = set(&[acl("a", "allow", "ann", &[]), acl("b", "allow", "bob", &["pull"])]);
    assert_eq!(at(&server, "bob", "git", "pull"), "allow");
    assert_eq!(at(&server, "bob", "git", "push"), "block");
    assert_eq!(at(&server, "ann", "git", "push"), "allow");
    let blocked = set(&[acl("a", "allow", "ann", &[]), acl("b", "block", "ann", &["push"])]);
    assert_eq!(at(&blocked, "ann", "git", "push"), "block");
    // A call of no server is not touched by lists of servers.
    assert_eq!(
        action(&tools, &json!({"identity.user_id": "bob", "tool.id": "shell"})),
        "allow"
    );
}

/// Proves PS-1.
#[test]
fn a_module_that_fails_blocks_with_its_own_action() {
    let looping = "package forge.content\nimport rego.v1\nmatch := {\"matched\": false} if \
        { some a in input.event.labels; some b in input.event.labels; some c in input.event.labels; a == b; b != c; a == c }";
    let wrong = "package forge.content\nmatch := 7";
    for module in [looping, wrong] {
        let logic = json!({"kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
            "module": module, "moduleSha256": sha256_hex(module.as_bytes())});
        let (family, mut policy) = content("a", "require_approval", &json!({"logic": logic}));
        policy.as_object_mut().unwrap().remove("conditions");
        let labels: Vec<String> = (0..300).map(|n| format!("label{n}")).collect();
        let outcome = judge(&set(&[(family, policy)]), &json!({"event.labels": labels}), &[]);
        assert_eq!(
            (outcome.action, outcome.unknown),
            (Action::RequireApproval, true),
            "{module}"
        );
        assert_eq!(outcome.findings[0].reason, Reason::EvaluationFailed);
    }
}

#[test]
fn the_form_of_a_call_does_not_slip_past_a_policy() {
    let set = set(&[content(
        "a",
        "block",
        &json!({"conditions":
        {"field": "tool.input.command", "op": "contains", "value": "rm -rf"}}),
    )]);
    for input in [
        json!({"command": "rm -rf /"}),
        json!({"command": ["rm -rf", "/"]}),
        json!({"command": ["rm", "-rf", "/"]}),
        json!("{\"command\": \"rm -rf /\"}"),
        json!({"command": {"run": "rm -rf /"}}),
    ] {
        assert_eq!(action(&set, &json!({"tool.input": input})), "block", "{input}");
    }
    assert_eq!(action(&set, &json!({"tool.input": {"command": "ls"}})), "allow");
    assert_eq!(action(&set, &json!({"tool.input": {}})), "allow");
    assert_eq!(judge(&set, &json!({}), &["tool.input"]).action, Action::Block);
}

#[test]
fn a_number_sent_as_a_text_does_not_slip_past_a_policy() {
    let custom = json!([{"field": "tool.input.amount", "label": "l", "valueType": "number", "sourceType": "known_schema",
        "toolName": "refund", "schemaVersionId": "v1"}]);
    let set = set(&[content(
        "a",
        "block",
        &json!({"customFields": custom,
        "conditions": {"field": "tool.input.amount", "op": "gt", "value": 100}}),
    )]);
    let of = |amount: Value| {
        let outcome = judge(&set, &json!({"tool.input": {"amount": amount}}), &[]);
        (outcome.action.word(), outcome.unknown)
    };
    assert_eq!(of(json!(101)), ("block", false));
    assert_eq!(of(json!(100.0)), ("allow", false));
    assert_eq!(of(json!("101")), ("block", true));
    assert_eq!(of(Value::Null), ("allow", false));
}

/// Proves IX-1.
#[test]
fn cost_grows_with_what_can_match() {
    let policies: Vec<_> = (0..1000)
        .map(|n| {
            let conditions = json!({"all": [{"field": "llm.input_tokens", "op": "gt", "value": 5},
                {"field": "tool.id", "op": "in", "value": [format!("t{n}"), "shared"]}]});
            content(&format!("p{n}"), "block", &json!({"conditions": conditions}))
        })
        .collect();
    let set = set(&policies);
    let mut symbols = Symbols::new();
    let mut event = Event::new(0, Occasion::PreTool);
    let mut asked = |value: Held| {
        event.set(Field::TOOL, value);
        set.candidates(&event, &symbols)
    };
    assert_eq!(asked(Held::Absent), 0);
    assert_eq!(asked(Held::Missing), 1000);
    let (one, shared) = (symbols.intern("t7"), symbols.intern("shared"));
    let mut asked = |value: Held| {
        event.set(Field::TOOL, value);
        set.candidates(&event, &symbols)
    };
    assert_eq!(asked(Held::Text(one)), 1);
    assert_eq!(asked(Held::Text(shared)), 1000);
}

/// Proves PS-2.
#[test]
fn the_digest_names_the_definitions_and_nothing_else() {
    let (a, b) = (
        content("a", "block", &json!({})),
        content("b", "nudge", &json!({})),
    );
    let off = content("c", "block", &json!({"enabled": false}));
    let one = set(&[a.clone(), b.clone(), off.clone()]);
    let other = set(&[b.clone(), a.clone()]);
    assert_eq!((one.digest(), one.policies().len()), (other.digest(), 2));
    assert_ne!(
        one.digest(),
        set(&[a.clone(), content("b", "block", &json!({}))]).digest()
    );
    // Each policy counts by itself, also where two say the same.
    let (first, second) = ((Family::Content, "a", "1f"), (Family::Content, "b", "1f"));
    assert_eq!(set_digest([first, second]), set_digest([second, first]));
    assert_ne!(set_digest([first, second]), set_digest([first]));
    assert_ne!(set_digest([first]), set_digest([(Family::Resource, "a", "1f")]));
    let read = |(family, policy): &(Family, Value)| Arc::new(Definition::read(*family, policy).unwrap());
    assert_eq!(PolicySet::new([read(&a), read(&a)]).unwrap_err().id, "a");
    assert!(PolicySet::new([read(&off), read(&off)]).is_ok());
}

#[test]
fn events_survive_storage() {
    let mut symbols = Symbols::new();
    let attributes = json!({"tool.id": "t", "tool.input": {"command": "ls", "n": 1}, "llm.input_tokens": 5.5,
        "identity.group_ids": ["b", "a", "a"], "classification.has_unresolved_sensitive_content": true});
    let event = Event::read(
        &mut symbols,
        7,
        Occasion::PreTool,
        attributes.as_object().unwrap(),
        &["llm.model"],
    )
    .unwrap();
    let stored = serde_json::to_string(&(&event, &symbols)).unwrap();
    let (back, table): (Event, Symbols) = serde_json::from_str(&stored).unwrap();
    assert_eq!(back, event);
    assert!(back.fits(&table) && !back.fits(&Symbols::new()));
    assert_eq!(
        back.nested(&table),
        json!({"stage": "pre_tool", "tool": {"id": "t", "input": {"command": "ls", "n": 1}},
        "llm": {"input_tokens": 5.5}, "identity": {"group_ids": ["a", "b"], "group_words": ["a", "b"]},
        "classification": {"has_unresolved_sensitive_content": true}})
    );
    for damaged in [
        json!({"texts": ["a", "a"], "sets": []}),
        json!({"texts": ["a"], "sets": [[1]]}),
        json!({"texts": ["a", "b"], "sets": [[1, 0]]}),
        json!({"texts": ["a"], "sets": [[0], [0]]}),
    ] {
        assert!(serde_json::from_value::<Symbols>(damaged).is_err());
    }
    let faults = Event::read(
        &mut symbols,
        0,
        Occasion::Prompt,
        json!({"tool.id": 5, "tool.idd": "x"}).as_object().unwrap(),
        &["nope"],
    )
    .unwrap_err();
    let places: Vec<_> = faults.kept().iter().map(|f| f.path.as_str()).collect();
    assert_eq!(places, ["/tool.id", "/tool.idd", "/missing/0"]);
}

/// Proves PJ-1.
#[test]
fn a_projection_tells_before_and_after_the_end_of_an_exception() {
    let exception = json!({"exceptions": [{"id": "e", "reason": "r", "expiresAt": "1970-01-01T00:16:40Z",
        "conditions": {"field": "identity.user_id", "op": "eq", "value": "ann"}}]});
    let set = set(&[content("a", "block", &exception)]);
    let projection = Projection::of(&[&set]);
    assert!(projection.is_groupable());
    let mut symbols = Symbols::new();
    let mut event = |at_ms: i64, title: &str| {
        let attributes = json!({"tool.id": "t", "identity.user_id": "ann", "event.title": title});
        Event::read(
            &mut symbols,
            at_ms,
            Occasion::PreTool,
            attributes.as_object().unwrap(),
            &[],
        )
        .unwrap()
    };
    let events = [
        event(0, "x"),
        event(999_999, "y"),
        event(1_000_000, "x"),
        event(5_000_000, "z"),
    ];
    let keys = events.each_ref().map(|event| projection.key(event));
    let digests = events.each_ref().map(|event| projection.digest(event, &symbols));
    assert!(keys[0] == keys[1] && keys[1] != keys[2] && keys[2] == keys[3]);
    assert!(digests[0] == digests[1] && digests[1] != digests[2] && digests[2] == digests[3]);
}
