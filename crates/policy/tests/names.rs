//! Names of events: by their records, in any spelling, and what is not matched all the same.

#![cfg(test)]

use provost_policy::{
    Action, Definition, Event, EventWindow, Family, Field, Occasion, PolicySet, Record, Register,
    SubjectStates, Symbols,
};
use serde_json::{Value, json};
use std::sync::Arc;

const MINUTE: i64 = 60_000;

fn ada() -> Record {
    Record {
        id: "usr_ada".into(),
        words: vec!["ada".into(), "Ada.Lovelace@Acme.test".into()],
        groups: Some(vec!["grp_eng".into()]),
        ..Record::default()
    }
}

fn bob() -> Record {
    Record {
        id: "usr_bob".into(),
        words: vec!["bob".into()],
        groups: Some(Vec::new()),
        ..Record::default()
    }
}

/// The users, each by all words; `is_complete` as in the directory's setting.
fn users(records: &[Record], is_complete: bool) -> Register {
    let mut register = Register::new(is_complete);
    for word in records
        .iter()
        .flat_map(|record| record.words.iter().chain([&record.id]))
    {
        let meant: Vec<Record> = records
            .iter()
            .filter(|record| record.id == *word || record.words.contains(word))
            .cloned()
            .collect();
        register.put(Field::USER, word, &meant);
    }
    register
}

fn set(members: Value) -> PolicySet {
    let mut policy = json!({"id": "p", "name": "p", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": {"field": "tool.id", "op": "exists"}});
    let (Value::Object(policy_members), Value::Object(members)) = (&mut policy, members) else {
        unreachable!();
    };
    policy_members.extend(members);
    let definition = Definition::read(Family::Content, &policy).unwrap_or_else(|e| panic!("{e}"));
    PolicySet::new([Arc::new(definition)]).unwrap()
}

fn call(symbols: &mut Symbols, attributes: &Value) -> Event {
    Event::read(
        symbols,
        0,
        Occasion::PreTool,
        attributes.as_object().unwrap(),
        &[],
    )
    .unwrap()
}

fn judged(set: &PolicySet, register: Register, user: &str) -> (Action, bool) {
    let mut symbols = Symbols::knowing(Arc::new(register));
    let event = call(
        &mut symbols,
        &json!({"tool.id": "Bash", "identity.user_id": user}),
    );
    let outcome = set.judge(&event, &symbols, &SubjectStates::new());
    (outcome.action, outcome.unknown)
}

const BLOCKED: (Action, bool) = (Action::Block, false);
const ALLOWED: (Action, bool) = (Action::Allow, false);
const UNKNOWN: (Action, bool) = (Action::Block, true);

fn is(op: &str, value: &Value) -> PolicySet {
    set(json!({"conditions": {"field": "identity.user_id", "op": op, "value": value}}))
}

/// Proves NW-1.
#[test]
fn a_record_is_matched_by_its_id_and_by_every_word() {
    let policies = [
        set(json!({"appliesTo": {"users": ["usr_ada"]}})),
        set(json!({"appliesTo": {"users": [" ADA"]}})),
        is("eq", &json!("Ada")),
        is("in", &json!(["usr_x", "ada.lovelace@acme.test"])),
        is("starts_with", &json!("ADA.L")),
        is("ends_with", &json!("@acme.TEST")),
        is("contains", &json!("LoveLace")),
        is("matches", &json!("^Ada[.]")),
        is("matches", &json!("^ada[.]")),
    ];
    for set in policies {
        for word in [
            "ada",
            "usr_ada",
            "ADA",
            "\u{200b} ada\u{a0}",
            "ada.lovelace@acme.test",
        ] {
            let register = users(&[ada(), bob()], false);
            assert_eq!(
                judged(&set, register, word),
                BLOCKED,
                "{word} {:?}",
                set.policies()[0].authored()
            );
        }
    }
}

/// Proves NW-1.
#[test]
fn somebody_else_is_not_matched() {
    for set in [
        set(json!({"appliesTo": {"users": ["usr_ada"]}})),
        is("eq", &json!("ada")),
        is("contains", &json!("lovelace")),
        is("matches", &json!("^ada")),
    ] {
        for word in ["bob", "usr_bob", "somebody", "a\u{301}da", "\u{430}da"] {
            assert_eq!(
                judged(&set, users(&[ada(), bob()], false), word),
                ALLOWED,
                "{word}"
            );
        }
    }
}

#[test]
fn a_negative_operator_is_the_negation_of_its_positive_one() {
    for (op, value) in [
        ("neq", json!("ada")),
        ("not_in", json!(["x", "ada.lovelace@acme.test"])),
    ] {
        let set = is(op, &value);
        assert_eq!(judged(&set, users(&[ada(), bob()], false), "usr_ada"), ALLOWED);
        assert_eq!(judged(&set, users(&[ada(), bob()], false), "bob"), BLOCKED);
    }
}

#[test]
fn a_word_of_several_is_what_all_of_them_agree_on() {
    let namesake = Record {
        words: vec!["ada".into()],
        ..bob()
    };
    let both = || users(&[ada(), namesake.clone()], false);
    let of = |users: Value| set(json!({"appliesTo": {"users": users}}));
    assert_eq!(judged(&of(json!(["usr_ada"])), both(), "Ada"), UNKNOWN);
    assert_eq!(judged(&of(json!(["usr_ada", "usr_bob"])), both(), "ada"), BLOCKED);
    assert_eq!(judged(&of(json!(["usr_cid"])), both(), "ada"), ALLOWED);
    // Each condition alone says nothing, both together are so for each of them.
    let either = json!({"any": [{"field": "identity.user_id", "op": "eq", "value": "usr_ada"},
        {"field": "identity.user_id", "op": "eq", "value": "usr_bob"}]});
    assert_eq!(
        judged(&set(json!({"conditions": either})), both(), "ada"),
        BLOCKED
    );
    // Their groups are those of each.
    let groups = |group: &str| set(json!({"appliesTo": {"groups": [group]}}));
    let judge = |group: &str| {
        let mut symbols = Symbols::knowing(Arc::new(both()));
        let attributes = json!({"tool.id": "Bash", "identity.user_id": "ada"});
        let missing = ["identity.group_ids"];
        let event = Event::read(
            &mut symbols,
            0,
            Occasion::PreTool,
            attributes.as_object().unwrap(),
            &missing,
        )
        .unwrap();
        let outcome = groups(group).judge(&event, &symbols, &SubjectStates::new());
        (outcome.action, outcome.unknown)
    };
    assert_eq!(judge("grp_eng"), UNKNOWN);
    assert_eq!(judge("grp_law"), ALLOWED);
}

/// Proves NW-1.
#[test]
fn a_namesake_opens_no_exception() {
    let set = set(json!({"except": {"field": "identity.user_id", "op": "eq", "value": "ada"}}));
    let shares = |record: Record| Record {
        words: vec!["ada".into()],
        shared: vec!["ada".into()],
        ..record
    };
    let both = || users(&[shares(ada()), shares(bob())], false);
    assert_eq!(judged(&set, users(&[ada(), bob()], false), "usr_ada"), ALLOWED);
    assert_eq!(judged(&set, users(&[ada(), bob()], false), "bob"), BLOCKED);
    for word in ["ada", "usr_ada", "usr_bob"] {
        assert_eq!(judged(&set, both(), word), UNKNOWN, "{word}");
    }
}

#[test]
fn a_stranger_is_missing_only_where_everybody_has_a_record() {
    let set = set(json!({"appliesTo": {"users": ["usr_ada"]}}));
    assert_eq!(judged(&set, users(&[ada()], false), "eve"), ALLOWED);
    assert_eq!(judged(&set, users(&[ada()], true), "eve"), UNKNOWN);
    assert_eq!(
        judged(&is("neq", &json!("ada")), users(&[ada()], true), "eve"),
        UNKNOWN
    );
    assert_eq!(
        judged(&is("eq", &json!("Eve")), users(&[ada()], false), "eve"),
        BLOCKED
    );
}

#[test]
fn a_word_that_nobody_sees_is_missing() {
    let set = set(json!({"appliesTo": {"users": ["usr_ada"]}}));
    for word in ["", " ", "\u{200b}\u{feff} "] {
        assert_eq!(judged(&set, users(&[ada()], false), word), UNKNOWN);
    }
    let groups = Definition::read(
        Family::Content,
        &json!({"id": "g", "name": "g", "action": "block", "evaluateOn": ["pre_tool"],
            "appliesTo": {"groups": ["eng"]}, "conditions": {"field": "tool.id", "op": "exists"}}),
    );
    let groups = PolicySet::new([Arc::new(groups.unwrap())]).unwrap();
    for (sent, expected) in [
        (json!(["law", "\u{ad}"]), UNKNOWN),
        (json!(["ENG ", ""]), BLOCKED),
        (json!(["law"]), ALLOWED),
    ] {
        let mut symbols = Symbols::new();
        let event = call(
            &mut symbols,
            &json!({"tool.id": "x", "identity.user_id": "eve", "identity.group_ids": sent}),
        );
        let outcome = groups.judge(&event, &symbols, &SubjectStates::new());
        assert_eq!((outcome.action, outcome.unknown), expected, "{sent}");
    }
}

#[test]
fn tools_servers_and_devices_are_matched_in_any_spelling_and_never_missing() {
    let set = set(json!({"conditions": {"field": "tool.id", "op": "eq", "value": "Bash"}}));
    for (tool, expected) in [("bash ", BLOCKED), ("BASH", BLOCKED), ("Bash2", ALLOWED)] {
        let mut symbols = Symbols::knowing(Arc::new(Register::new(true)));
        let event = call(&mut symbols, &json!({"tool.id": tool}));
        let outcome = set.judge(&event, &symbols, &SubjectStates::new());
        assert_eq!((outcome.action, outcome.unknown), expected, "{tool}");
    }
}

#[test]
fn what_is_not_resolved_is_named() {
    let namesake = Record {
        words: vec!["ada".into()],
        ..bob()
    };
    let mut symbols = Symbols::knowing(Arc::new(users(&[ada(), namesake], false)));
    for (user, expected) in [("ada", true), ("eve", true), ("usr_ada", false)] {
        let event = call(
            &mut symbols,
            &json!({"identity.user_id": user, "device.id": "laptop"}),
        );
        let expected: &[Field] = if expected { &[Field::USER] } else { &[] };
        assert_eq!(event.unresolved(&symbols), expected, "{user}");
    }
}

#[test]
fn modules_are_given_the_id_and_every_word() {
    let mut symbols = Symbols::knowing(Arc::new(users(&[ada()], false)));
    let event = call(&mut symbols, &json!({"identity.user_id": "ADA"}));
    let words = json!(["ada", "ada.lovelace@acme.test", "usr_ada"]);
    assert_eq!(
        event.nested(&symbols),
        json!({"stage": "pre_tool", "identity": {"user_id": "usr_ada", "user_words": words}})
    );
    assert!(event.missing_paths(&symbols).is_empty());
    let event = call(
        &mut symbols,
        &json!({"identity.user_id": " Eve", "skill.id": "Deploy@1.0"}),
    );
    assert_eq!(
        event.nested(&symbols),
        json!({"stage": "pre_tool", "identity": {"user_id": " Eve", "user_words": ["eve"]},
            "skill": {"id": "Deploy@1.0", "words": ["deploy"]}})
    );
    let namesake = Record {
        words: vec!["ada".into()],
        ..bob()
    };
    symbols.know(Arc::new(users(&[ada(), namesake], false)));
    let event = call(&mut symbols, &json!({"identity.user_id": "ada"}));
    assert_eq!(event.nested(&symbols), json!({"stage": "pre_tool"}));
    assert_eq!(
        event.missing_paths(&symbols),
        [vec!["identity", "user_id"], vec!["identity", "user_words"]]
    );
}

/// Blocks whoever called the tool `x` within the hour.
fn after_x() -> PolicySet {
    set(
        json!({"conditions": {"all": [{"field": "tool.id", "op": "eq", "value": "y"},
        {"eventCount": {"within": "1h", "where": {"field": "tool.id", "op": "eq", "value": "X"}, "op": "gte", "value": 2}}]}}),
    )
}

/// Proves CH-4.
#[test]
fn what_somebody_did_before_the_directory_knew_them_counts_once_it_does() {
    let set = Arc::new(after_x());
    let mut past = EventWindow::new(Arc::clone(&set));
    let mut observe = |register: Register, user: &str, at_ms: i64| {
        let mut symbols = Symbols::knowing(Arc::new(register));
        let attributes = json!({"tool.id": "x", "identity.user_id": user});
        let event = Event::read(
            &mut symbols,
            at_ms,
            Occasion::PreTool,
            attributes.as_object().unwrap(),
            &[],
        );
        assert!(past.observe(&event.unwrap(), &symbols));
    };
    observe(Register::default(), "Ada ", MINUTE);
    observe(users(&[ada()], false), "usr_ada", 2 * MINUTE);
    let judge = |register: Register, user: &str| {
        let mut symbols = Symbols::knowing(Arc::new(register));
        let attributes = json!({"tool.id": "y", "identity.user_id": user});
        let event = Event::read(
            &mut symbols,
            3 * MINUTE,
            Occasion::PreTool,
            attributes.as_object().unwrap(),
            &[],
        )
        .unwrap();
        let chronicle = past.recall(std::slice::from_ref(&event), &mut symbols);
        let outcome = set.judge(&event, &symbols, &chronicle);
        (outcome.action, outcome.unknown)
    };
    assert_eq!(judge(users(&[ada()], false), "usr_ada"), BLOCKED);
    assert_eq!(judge(users(&[ada()], false), "ADA"), BLOCKED);
    // One call each, as long as nobody says that the two are one.
    assert_eq!(judge(Register::default(), "ada"), ALLOWED);
    assert_eq!(judge(users(&[bob()], false), "bob"), ALLOWED);
}

fn module(condition: &str) -> PolicySet {
    let source = format!(
        "package forge.content\nimport rego.v1\ndefault match := {{\"matched\": false}}\nmatch := {{\"matched\": true}} if {condition}"
    );
    set(
        json!({"conditions": null, "logic": {"kind": "rego", "languageVersion": "forge.rego.v1",
        "entrypoint": "data.forge.content.match", "moduleSha256": provost_policy::sha256_hex(source.as_bytes()),
        "module": source}}),
    )
}

/// The decision by rows, which the columns of a batch must agree with.
fn both(set: &PolicySet, register: Register, attributes: &Value) -> (Action, bool) {
    let mut symbols = Symbols::knowing(Arc::new(register));
    let event = call(&mut symbols, attributes);
    let outcome = set.judge(&event, &symbols, &SubjectStates::new());
    let mut scan = provost_policy::Scan::new(set);
    let fields = provost_policy::Projection::of(&[set]);
    let batch = provost_policy::Batch::of(&[event], fields.fields()).unwrap();
    scan.judge(&batch, &symbols);
    assert_eq!(scan.decision(0), (outcome.action, outcome.unknown));
    (outcome.action, outcome.unknown)
}

/// Proves RG-5.
#[test]
fn a_module_that_compares_a_users_id_with_a_word_holds_for_whom_has_the_word() {
    let by = |user: &str, condition: &str| {
        let attributes = json!({"tool.id": "Bash", "identity.user_id": user});
        both(&module(condition), users(&[ada(), bob()], false), &attributes)
    };
    for condition in [
        "input.identity.user_id == \"ada\"",
        "input.identity.user_id == \"ADA.Lovelace@acme.test\"",
        "input.identity.user_id in {\"usr_x\", \" Ada \"}",
        // Patterns are asked of words as they stand and of their keys.
        "regex.match(\"^Ada[.]\", input.identity.user_id)",
        "regex.match(\"^ada[.]\", input.identity.user_id)",
        "{ input.tool.id == \"Bash\"; endswith(input.identity.user_id, \"@acme.test\") }",
    ] {
        for word in [
            "ada",
            "usr_ada",
            "ADA",
            "\u{200b} ada\u{a0}",
            "ada.lovelace@acme.test",
        ] {
            assert_eq!(by(word, condition), BLOCKED, "{word} {condition}");
        }
        for word in ["bob", "usr_bob", "eve"] {
            assert_eq!(by(word, condition), ALLOWED, "{word} {condition}");
        }
    }
    // Who has no record is called as the event says, in any spelling.
    assert_eq!(by(" EVE", "input.identity.user_id == \"Eve\""), BLOCKED);
    // What was so with the id stays so.
    assert_eq!(by("ada", "not input.identity.user_id in {\"ada\"}"), BLOCKED);
}

/// Proves RG-5.
#[test]
fn a_module_that_compares_ids_of_groups_with_names_holds_for_their_members() {
    let mut register = Register::new(false);
    for (id, name) in [("grp_1", "Contractors"), ("grp_2", "Dev")] {
        let record = Record {
            id: id.into(),
            words: vec![name.into()],
            ..Record::default()
        };
        register.put(Field::GROUPS, id, std::slice::from_ref(&record));
    }
    let register = Arc::new(register);
    let in_groups = |condition: &str, groups: Value| {
        let set = module(condition);
        let mut symbols = Symbols::knowing(Arc::clone(&register));
        let attributes = json!({"tool.id": "Bash", "identity.group_ids": groups});
        let event = call(&mut symbols, &attributes);
        set.judge(&event, &symbols, &SubjectStates::new()).action
    };
    let each = "every g in input.identity.group_ids { g in {\"contractors\", \"Dev\"} }";
    let mixed = "every g in input.identity.group_ids { g in {\"grp_1\", \"Dev\"} }";
    let neither = "not \"Contractors\" in input.identity.group_ids";
    for condition in [
        "\"contractors\" in input.identity.group_ids",
        each,
        mixed,
        neither,
    ] {
        let found = in_groups(condition, json!(["grp_1", "grp_2"]));
        assert_eq!(found, Action::Block, "{condition}");
    }
    let one = "\"Contractors\" in input.identity.group_ids";
    assert_eq!(in_groups(one, json!(["grp_2"])), Action::Allow);
    assert_eq!(in_groups(one, json!(["grp_3"])), Action::Allow);
    assert_eq!(in_groups(each, json!(["grp_1", "grp_3"])), Action::Allow);
}

#[test]
fn a_module_that_compares_a_word_is_unknown_where_somebody_may_be_several() {
    let twin = Record {
        id: "usr_twin".into(),
        words: vec!["ada".into()],
        ..Record::default()
    };
    let attributes = json!({"tool.id": "Bash", "identity.user_id": "ada"});
    let condition = "input.identity.user_id == \"bob\"";
    let found = both(
        &module(condition),
        users(&[ada(), bob(), twin], false),
        &attributes,
    );
    assert_eq!(found, UNKNOWN);
}
