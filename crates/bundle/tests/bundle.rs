//! Which bundles a device believes, what is in them, and what it says by them.

#![cfg(test)]

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_bundle::{
    Addressee, AskedEvent, BundleGroup, BundleInputs, BundleUser, Floor, HookMode, Hooks, Judge, Judgement,
    OnUnknown, PAYLOAD_LIMIT, PolicyBundle, Recording, Refusal, SERVERS_LIMIT, ToldContent, Verdict, open,
    read,
};
use provost_policy::{Action, Definition, Event, Family, Occasion, PolicySet, Symbols, sha256_hex};
use provost_words::Timestamp;
use provost_words::dsse::{Envelope, PublicKey, Signature, SignedKind, signed_bytes};
use serde_json::{Value, json};
use std::sync::Arc;

const ADDRESSEE: Addressee<'static> = Addressee {
    organization_id: "org_1",
    device_id: "dev_1",
    floor: None,
};

/// The device of Ada, who is in the group engineering.
fn inputs() -> BundleInputs {
    BundleInputs {
        organization_id: "org_1".into(),
        device_id: "dev_1".into(),
        store_epoch: 2,
        sequence: 7,
        version: ("psv_1".into(), 3),
        issued_at: Timestamp::from_ms(1_000),
        not_after: Timestamp::from_ms(2_000),
        mode: HookMode::Enforce,
        hooks: Hooks {
            deadline_ms: 400,
            on_unknown: OnUnknown::Block,
        },
        record: Recording::All,
        told: ToldContent::LEAST,
        users: vec![BundleUser {
            user_id: "usr_ada".into(),
            words: vec!["ada".into(), "ada@acme.test".into(), "info@acme.test".into()],
            shared: vec!["info@acme.test".into()],
            group_ids: Some(vec!["grp_eng".into()]),
        }],
        groups: vec![BundleGroup {
            group_id: "grp_eng".into(),
            words: vec!["engineering".into()],
            shared: vec![],
        }],
        denied: vec![],
        bypass: None,
    }
}

fn set(policies: &[(Family, Value)]) -> PolicySet {
    let read = policies.iter().map(|(family, policy)| {
        Arc::new(Definition::read(*family, policy).unwrap_or_else(|e| panic!("{policy}: {e}")))
    });
    PolicySet::new(read).unwrap()
}

/// Returns a content policy that blocks calls of a tool; `change` replaces members, and null takes one away.
fn block(id: &str, change: &Value) -> (Family, Value) {
    let mut policy = json!({
        "id": id, "name": format!("name of {id}"), "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": {"field": "tool.id", "op": "eq", "value": "Bash"},
    });
    for (name, value) in change.as_object().unwrap() {
        policy[name] = value.clone();
        if value.is_null() {
            policy.as_object_mut().unwrap().remove(name);
        }
    }
    (Family::Content, policy)
}

fn bundle(policies: &[(Family, Value)]) -> PolicyBundle {
    PolicyBundle::of(&set(policies), inputs()).unwrap()
}

fn say(judge: &Judge, attributes: &Value) -> Judgement {
    let event = json!({"occasion": "pre_tool", "attributes": attributes, "missing": []});
    let event = AskedEvent::of(&event).unwrap();
    judge.judge(Timestamp::from_ms(1_500), &event).unwrap()
}

/// Returns what is said of a call of the shell by somebody: the action, and whether the server is asked.
fn of_user(policies: &[(Family, Value)], user: &str) -> (Action, bool) {
    let judge = Judge::new(bundle(policies)).unwrap();
    let said = say(&judge, &json!({"tool.id": "Bash", "identity.user_id": user}));
    (said.verdict().action(), matches!(said, Judgement::Ask(_)))
}

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn trusted(key: &Ed25519KeyPair) -> PublicKey {
    PublicKey {
        id: "key_1".into(),
        key: key.public_key().as_ref().try_into().unwrap(),
    }
}

fn signed(kind: SignedKind, payload: &str, key: &Ed25519KeyPair) -> Envelope {
    let sig = key.sign(&signed_bytes(kind, payload.as_bytes()));
    Envelope {
        payload_type: kind.payload_type().into(),
        payload: STANDARD.encode(payload),
        signatures: vec![Signature {
            keyid: "key_1".into(),
            sig: STANDARD.encode(sig),
        }],
    }
}

/// Proves LJ-2.
#[test]
fn a_bundle_is_believed_where_it_is_signed_for_this_device() {
    let bundle = bundle(&[block("one", &json!({}))]);
    let key = key();
    let envelope = signed(SignedKind::PolicyBundle, &bundle.canonical(), &key);
    let opened = open(&envelope, &[trusted(&key)], &ADDRESSEE).unwrap();
    assert_eq!(opened, bundle);
    assert!(!opened.is_expired(Timestamp::from_ms(2_000)) && opened.is_expired(Timestamp::from_ms(2_001)));

    let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    assert_eq!(
        open(&envelope, &[trusted(&other)], &ADDRESSEE),
        Err(Refusal::Untrusted)
    );
    // What was signed as another kind of document is no bundle, whatever it says of itself.
    let mut release = signed(SignedKind::Release, &bundle.canonical(), &key);
    assert_eq!(
        open(&release, &[trusted(&key)], &ADDRESSEE),
        Err(Refusal::Malformed)
    );
    release.payload_type = SignedKind::PolicyBundle.payload_type().into();
    assert_eq!(
        open(&release, &[trusted(&key)], &ADDRESSEE),
        Err(Refusal::Untrusted)
    );
    let mut broken = envelope;
    broken.payload = STANDARD.encode(bundle.canonical().replace("enforce", "monitor"));
    assert_eq!(
        open(&broken, &[trusted(&key)], &ADDRESSEE),
        Err(Refusal::Untrusted)
    );
    broken.payload = "not base64!".into();
    assert_eq!(
        open(&broken, &[trusted(&key)], &ADDRESSEE),
        Err(Refusal::Malformed)
    );
}

/// Proves LJ-2.
#[test]
fn another_ones_bundle_and_an_older_one_are_refused_by_name() {
    let text = bundle(&[]).canonical();
    let refusal = |addressee: Addressee<'_>| read(text.as_bytes(), &addressee).unwrap_err();
    let of_another = Addressee {
        device_id: "dev_2",
        ..ADDRESSEE
    };
    assert_eq!(refusal(of_another).code(), "bundle_of_another_device");
    let elsewhere = Addressee {
        organization_id: "org_2",
        ..ADDRESSEE
    };
    assert_eq!(refusal(elsewhere).code(), "bundle_of_another_organization");

    let floor = |store_epoch, sequence, issued_at_ms| Addressee {
        floor: Some(Floor {
            store_epoch,
            sequence,
            issued_at_ms,
        }),
        ..ADDRESSEE
    };
    for newer in [floor(2, 7, 1_001), floor(2, 8, 0), floor(3, 0, 0)] {
        assert_eq!(refusal(newer).code(), "bundle_older", "{newer:?}");
    }
    // The same once more, one after it, and one of a store that was restored.
    for older in [floor(2, 7, 1_000), floor(2, 6, 9_000), floor(1, 99, 9_000)] {
        assert!(read(text.as_bytes(), &older).is_ok(), "{older:?}");
    }
}

/// Proves LJ-14.
#[test]
fn what_is_told_is_what_the_signed_bundle_says_and_no_older_or_foreign_one_says_more() {
    let of = |told| PolicyBundle::of(&set(&[]), BundleInputs { told, ..inputs() }).unwrap();
    let (least, all) = (of(ToldContent::LEAST), of(ToldContent::ALL));
    let read_of = |bundle: &PolicyBundle| read(bundle.canonical().as_bytes(), &ADDRESSEE).unwrap().told;
    assert_eq!(
        (read_of(&least), read_of(&all)),
        (ToldContent::LEAST, ToldContent::ALL)
    );
    // A server that does not know of it has not said that anything is told.
    let member = r#""told":{"prompts":"full","toolArguments":"full"},"#;
    let unsaid = all.canonical().replace(member, "");
    assert_ne!(unsaid, all.canonical());
    assert_eq!(
        read(unsaid.as_bytes(), &ADDRESSEE).unwrap().told,
        ToldContent::LEAST
    );
    let key = key();
    let mut envelope = signed(SignedKind::PolicyBundle, &least.canonical(), &key);
    envelope.payload = STANDARD.encode(all.canonical());
    assert_eq!(
        open(&envelope, &[trusted(&key)], &ADDRESSEE),
        Err(Refusal::Untrusted)
    );
    // What told more once is not taken again after what tells less, and neither is what tells more elsewhere.
    let floor = Some(Floor {
        store_epoch: 2,
        sequence: 8,
        issued_at_ms: 1_000,
    });
    let known = Addressee { floor, ..ADDRESSEE };
    let code = |addressee: &Addressee<'_>| read(all.canonical().as_bytes(), addressee).unwrap_err().code();
    assert_eq!(code(&known), "bundle_older");
    let elsewhere = Addressee {
        organization_id: "org_2",
        ..ADDRESSEE
    };
    assert_eq!(code(&elsewhere), "bundle_of_another_organization");
}

/// Proves LJ-14.
#[test]
fn an_event_without_what_a_policy_reads_there_is_not_judged_again() {
    let by_command =
        json!({ "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm" } });
    let event = |occasion: &str, content: &str| {
        let event = json!({ "occasion": occasion, "attributes": { "tool.id": "Bash", content: { "command": "rm" } }, "missing": ["llm.model"] });
        AskedEvent::of(&event).unwrap()
    };
    let with = |told, policies: &[(Family, Value)]| {
        Judge::new(PolicyBundle::of(&set(policies), BundleInputs { told, ..inputs() }).unwrap()).unwrap()
    };
    let reads = [block("shell", &by_command), block("one", &json!({}))];
    let judge = with(ToldContent::LEAST, &reads);
    for (occasion, content, is_whole) in [
        ("pre_tool", "tool.input", false),
        ("pre_tool", "tool.result", false),
        // No policy judges there.
        ("post_tool", "tool.input", true),
    ] {
        let mut event = event(occasion, content);
        assert_eq!(judge.withhold(&mut event), is_whole, "{occasion} {content}");
        assert_eq!(json!(event.attributes), json!({ "tool.id": "Bash" }));
        assert_eq!(event.missing, ["llm.model", content]);
    }
    let blind = with(ToldContent::LEAST, &[block("one", &json!({}))]);
    assert!(blind.withhold(&mut event("pre_tool", "tool.input")));
    let open = with(ToldContent::ALL, &reads);
    let mut whole = event("pre_tool", "tool.input");
    assert!(open.withhold(&mut whole));
    assert_eq!(whole.attributes["tool.input"], json!({ "command": "rm" }));
}

/// Proves LJ-2.
#[test]
fn what_is_no_bundle_is_refused_by_name() {
    let text = bundle(&[]).canonical();
    let code = |text: &str| read(text.as_bytes(), &ADDRESSEE).unwrap_err().code();
    for (from, to, expected) in [
        ("\"format\":1", "\"format\":2", "bundle_other_format"),
        ("\"format\":1", "\"format\":\"1\"", "bundle_unreadable"),
        ("\"mode\":\"enforce\"", "\"mode\":\"off\"", "bundle_unreadable"),
        (
            "\"deviceId\":\"dev_1\"",
            "\"deviceId\":\"dev_2\",\"deviceId\":\"dev_1\"",
            "bundle_unreadable",
        ),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert_eq!(code(&changed), expected, "{to}");
    }
    assert_eq!(code("{}"), "bundle_unreadable");
    assert_eq!(code(&text[..text.len() - 1]), "bundle_unreadable");
    assert_eq!(code(&" ".repeat(PAYLOAD_LIMIT + 1)), "bundle_too_large");
    // One whose policy nobody reads judges nothing.
    let mut spoilt = bundle(&[block("one", &json!({}))]);
    spoilt.policies[0].definition["action"] = "explode".into();
    assert_eq!(Judge::new(spoilt).unwrap_err().code(), "bundle_unreadable");
}

/// Proves LJ-3.
#[test]
fn a_bundle_names_nobody_but_the_people_of_its_device() {
    let of_bob = json!({"appliesTo": {"users": ["usr_bob"]}, "message": "dear bob"});
    let of_both = json!({"appliesTo": {"users": ["usr_bob", "usr_ada"], "groups": [{"name": "grp_law", "directoryId": "dir_1"}]}});
    let by_name = json!({
        "description": "because of bob", "labels": ["bob"],
        "conditions": {"all": [
            {"field": "tool.id", "op": "eq", "value": "Bash"},
            {"not": {"field": "identity.user_id", "op": "in", "value": ["usr_bob", "bob@acme.test"]}},
            {"field": "identity.group_ids", "op": "contains_any", "value": ["grp_law", "engineering"]},
        ]},
    });
    let by_part = json!({"conditions": {"field": "identity.user_id", "op": "starts_with", "value": "bo"}});
    let acl = json!({
        "id": "acl", "name": "acl", "enabled": true, "evaluateOn": ["pre_tool"], "action": "allow",
        "conditions": {"field": "mcp.server_id", "op": "eq", "value": "git"}, "appliesTo": {"users": ["usr_bob"]},
    });
    let bundle = bundle(&[
        block("of.bob", &of_bob),
        block("of.both", &of_both),
        block("by.name", &by_name),
        block("by.part", &by_part),
        (Family::Content, acl),
        (
            Family::SkillAcl,
            json!({"id": "skill", "skillId": "pdf", "enabled": true, "effect": "block", "subjects": {"groups": ["grp_law"]}}),
        ),
    ]);
    let text = bundle.canonical();
    for other in [
        "usr_bob",
        "bob@acme",
        "grp_law",
        "dir_1",
        "dear bob",
        "because of",
        "\"bob\"",
        "of.bob",
        "\"bo\"",
    ] {
        assert!(!text.contains(other), "{other} stands in {text}");
    }
    let ids: Vec<&str> = bundle.policies.iter().map(|policy| policy.id.as_str()).collect();
    // A list that lets others in keeps the device's people out, and so it is there.
    assert_eq!(ids, ["acl", "by.name", "by.part", "of.both"]);
    let needing = bundle.policies.iter().filter(|policy| policy.needs_server);
    assert_eq!(
        needing.map(|policy| policy.id.as_str()).collect::<Vec<_>>(),
        ["by.part"]
    );

    let judge = Judge::new(bundle).unwrap();
    let server = say(
        &judge,
        &json!({"mcp.server_id": "git", "tool.id": "x", "identity.user_id": "usr_ada"}),
    );
    let reasons = serde_json::to_value(server.verdict()).unwrap()["reasons"].clone();
    let not_allowed = reasons.as_array().unwrap().iter();
    let not_allowed: Vec<&Value> = not_allowed
        .filter(|reason| reason["reason"] == "not_allowed")
        .collect();
    assert_eq!(not_allowed.len(), 1, "{reasons}");
    assert_eq!(not_allowed[0]["policyId"], "acl");
    assert_eq!(server.verdict().action(), Action::Block);
}

/// Proves LJ-1, DE-5.
#[test]
fn who_is_known_is_judged_and_who_is_not_is_asked_about() {
    let of_bob = [block("one", &json!({"appliesTo": {"users": ["usr_bob"]}}))];
    let of_ada = [block("one", &json!({"appliesTo": {"users": ["usr_ada"]}}))];
    let of_all = [block("one", &json!({}))];
    for word in ["usr_ada", "ADA", " ada@acme.test"] {
        assert_eq!(of_user(&of_bob, word), (Action::Allow, false), "{word}");
        assert_eq!(of_user(&of_ada, word), (Action::Block, false), "{word}");
    }
    // A word that somebody else has as well, another account of the machine, a name that nobody sees.
    for word in ["info@acme.test", "bob", "root", "\u{200b}"] {
        assert_eq!(of_user(&of_bob, word), (Action::Block, true), "{word}");
        assert_eq!(of_user(&of_ada, word), (Action::Block, true), "{word}");
        // Whoever it is.
        assert_eq!(of_user(&of_all, word), (Action::Block, false), "{word}");
    }
    let judge = Judge::new(bundle(&of_bob)).unwrap();
    let said = say(&judge, &json!({"tool.id": "Bash", "identity.user_id": "root"}));
    let said = serde_json::to_value(said.verdict()).unwrap();
    assert_eq!(
        (&said["basis"], &said["unknown"], &said["unresolved"]),
        (
            &json!("policies"),
            &json!(true),
            &json!(["/attributes/identity.user_id"])
        )
    );
    // Of nobody at all it is known that it is not of Bob.
    assert!(matches!(
        say(&judge, &json!({"tool.id": "Bash"})),
        Judgement::Verdict(_)
    ));
}

/// Proves LJ-1, DE-5.
#[test]
fn what_needs_the_server_is_asked_about_where_it_can_match() {
    let past = json!({"conditions": {"all": [
        {"field": "tool.id", "op": "eq", "value": "Bash"},
        {"hasPriorEvent": {"field": "tool.id", "op": "eq", "value": "Read"}},
    ]}});
    let excepted = json!({"except": {"field": "mcp.server_id", "op": "eq", "value": "git"}});
    let module = "package forge.content\nimport rego.v1\nmatch := {\"matched\": true}\n";
    let module = json!({"conditions": null, "logic": {
        "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
        "module": module, "moduleSha256": sha256_hex(module.as_bytes()),
    }});
    let approval = json!({"action": "require_approval"});
    for (change, elsewhere) in [
        (&past, false),
        (&excepted, false),
        (&module, true),
        (&approval, false),
    ] {
        let judge = Judge::new(bundle(&[block("one", change)])).unwrap();
        let said = say(&judge, &json!({"tool.id": "Bash", "identity.user_id": "ada"}));
        assert!(matches!(said, Judgement::Ask(_)), "{change}");
        assert!(said.verdict().action() >= Action::RequireApproval, "{change}");
        assert_eq!(said.verdict().policy_ids(), ["one"]);
        // A module reads what it likes; of the others a part says that they cannot match.
        let other = say(&judge, &json!({"tool.id": "Read", "identity.user_id": "ada"}));
        assert_eq!(matches!(other, Judgement::Ask(_)), elsewhere, "{change}");
    }
    assert!(
        !bundle(&[block("one", &module)])
            .canonical()
            .contains("package forge")
    );
}

/// An agent lies in memory as long as its machine is on, with up to 2 MiB of policies.
#[test]
fn what_judges_holds_each_document_once() {
    let made = bundle(&[block("one", &json!({})), block("two", &json!({}))]);
    assert!(made.policies.iter().all(|policy| policy.definition.is_object()));
    let judge = Judge::new(made).unwrap();
    let kept = judge.bundle().policies.iter();
    let kept: Vec<_> = kept
        .map(|policy| (policy.id.as_str(), policy.definition.is_null()))
        .collect();
    assert_eq!(kept, [("one", true), ("two", true)]);
}

/// The documents are let go of, and verdicts say of approvals and of what is changed what whole documents say.
#[test]
fn verdicts_say_the_same_by_what_is_kept_of_policies() {
    let redaction = json!({"strategy": "nullify"});
    for change in [
        json!({}),
        json!({"message": "ask first"}),
        json!({"action": "require_approval"}),
        json!({"action": "require_approval", "approval": {"autoApproveOnRequest": true}}),
        json!({"action": "redact", "redaction": redaction}),
        json!({"action": "nudge", "message": "think"}),
    ] {
        let policies = [block("one", &change)];
        let whole = set(&policies);
        let mut symbols = Symbols::default();
        let attributes = json!({"tool.id": "Bash"});
        let event = Event::read(
            &mut symbols,
            1_500,
            Occasion::PreTool,
            attributes.as_object().unwrap(),
            &[],
        )
        .unwrap();
        let outcome = whole.judge_unaided(&event, &symbols);
        let by_whole = Verdict::of_event(&outcome, &event, &symbols).unwrap();
        let judge = Judge::new(bundle(&policies)).unwrap();
        let by_kept = say(&judge, &attributes);
        let said = |verdict: &Verdict| serde_json::to_value(verdict).unwrap();
        assert_eq!(said(by_kept.verdict()), said(&by_whole), "{change}");
        assert_eq!(said(&by_whole)["action"], *policies[0].1.get("action").unwrap());
    }
}

#[test]
fn what_has_no_room_is_asked_about_always() {
    let message = "x".repeat(4_000);
    let many: Vec<(Family, Value)> = (0..600)
        .map(|n| block(&format!("p{n:03}"), &json!({"message": message})))
        .collect();
    let bundle = bundle(&many);
    assert!(bundle.canonical().len() <= PAYLOAD_LIMIT && bundle.policies.len() < 600);
    let judge = Judge::new(bundle).unwrap();
    let said = say(&judge, &json!({"tool.id": "Read", "identity.user_id": "ada"}));
    assert!(matches!(said, Judgement::Ask(_)));
    assert_eq!(said.verdict().action(), Action::Block);
}

/// Proves LJ-1.
#[test]
fn an_allow_list_that_has_no_room_keeps_out_whom_the_server_would_keep_out() {
    let message = "x".repeat(4_000);
    let weak = |n: usize| {
        block(
            &format!("p{n:03}"),
            &json!({"action": "nudge", "message": message}),
        )
    };
    let mut many: Vec<(Family, Value)> = (0..600).map(weak).collect();
    let list = json!({
        "action": "allow", "appliesTo": {"users": ["bob"]}, "message": message,
        "conditions": {"field": "mcp.server_id", "op": "eq", "value": "srv_1"},
    });
    many.push(block("z", &list));
    let bundle = bundle(&many);
    assert!(bundle.policies.iter().all(|policy| policy.id != "z"));
    let judge = Judge::new(bundle).unwrap();
    let call = json!({"tool.id": "read", "mcp.server_id": "srv_1", "identity.user_id": "ada"});
    let said = say(&judge, &call);
    assert!(matches!(said, Judgement::Ask(_)));
    assert_eq!(said.verdict().action(), Action::Block);
}

/// Proves LJ-1.
#[test]
fn what_has_no_room_and_would_change_a_request_lets_it_pass_nowhere() {
    let redaction = json!({"action": "redact", "redaction": {"strategy": "nullify", "paths": ["$.secret"]}});
    let policies = [block("one", &redaction)];
    let of = |room: usize| PolicyBundle::within(&set(&policies), inputs(), room).unwrap();
    let call = json!({"tool.id": "Bash", "identity.user_id": "ada"});
    let kept = say(&Judge::new(of(4_000)).unwrap(), &call);
    assert_eq!(kept.verdict().action(), Action::Redact);
    // Nobody on the device can say how.
    let said = say(&Judge::new(of(0)).unwrap(), &call);
    assert!(matches!(said, Judgement::Ask(_)));
    assert_eq!(said.verdict().action(), Action::Block);
}

#[test]
fn thousands_of_small_policies_have_room_with_all_that_stands_around_them() {
    let long = "x".repeat(200);
    let many: Vec<(Family, Value)> = (0..9_000)
        .map(|n| block(&format!("{long}{n:04}"), &json!({})))
        .collect();
    let bundle = bundle(&many);
    assert!(bundle.policies.len() < 9_000 && bundle.canonical().len() <= PAYLOAD_LIMIT);
}

#[test]
fn everything_is_told_where_a_policy_looks_at_the_past() {
    let past = json!({"conditions": {"hasPriorEvent": {"field": "tool.id", "op": "eq", "value": "Read"}}, "appliesTo": {"users": ["usr_bob"]}});
    assert!(!bundle(&[block("one", &json!({}))]).record_all);
    let of_others = bundle(&[block("one", &past)]);
    assert!(of_others.policies.is_empty() && of_others.record_all);
    // A bundle of an earlier server does not say it.
    let mut document: Value = serde_json::from_str(&bundle(&[]).canonical()).unwrap();
    document.as_object_mut().unwrap().remove("recordAll");
    let read = read(document.to_string().as_bytes(), &ADDRESSEE).unwrap();
    assert!(read.record_all);
}

#[test]
fn an_event_that_nobody_reads_is_an_error_and_no_verdict() {
    let judge = Judge::new(bundle(&[])).unwrap();
    for event in [
        json!({"occasion": "pre_tool", "attributes": {"tool.id": 7}}),
        json!({"occasion": "pre_tool", "attributes": {"no.such": "x"}}),
        json!({"occasion": "pre_tool", "attributes": {"identity.group_ids": "eng", "identity.user_id": "ada"}}),
    ] {
        let asked = AskedEvent::of(&event).unwrap();
        assert!(judge.judge(Timestamp::from_ms(0), &asked).is_err(), "{event}");
    }
    for event in [
        json!({}),
        json!({"occasion": "nowhere"}),
        json!({"occasion": "prompt", "attributes": []}),
        json!({"occasion": "prompt", "missing": [1]}),
    ] {
        assert!(AskedEvent::of(&event).is_err(), "{event}");
    }
    assert!(AskedEvent::all(&json!({"events": []})).is_err());
}

fn of_server(judge: &Judge, attributes: &Value, missing: &Value, may_be: &[&str]) -> (Action, bool, bool) {
    let event = json!({"occasion": "pre_tool", "attributes": attributes, "missing": missing});
    let may_be: Vec<String> = may_be.iter().map(|key| (*key).to_owned()).collect();
    let said = judge.judge_among(
        Timestamp::from_ms(1_500),
        &AskedEvent::of(&event).unwrap(),
        &may_be,
    );
    let said = said.unwrap();
    let verdict = said.verdict();
    (
        verdict.action(),
        verdict.is_by_standing(),
        matches!(said, Judgement::Ask(_)),
    )
}

/// Proves LJ-12.
#[test]
fn a_denied_server_is_refused_by_its_key_and_no_other_one_is() {
    let denied = |keys: Vec<String>| BundleInputs {
        denied: keys,
        bypass: None,
        ..inputs()
    };
    let look = block(
        "look",
        &json!({"action": "flag_for_review", "conditions": {"field": "tool.id", "op": "exists"}}),
    );
    let of =
        |inputs| Judge::new(PolicyBundle::of(&set(std::slice::from_ref(&look)), inputs).unwrap()).unwrap();
    let judge = of(denied(vec![
        "npm:evil".into(),
        "url:https://evil.example/mcp".into(),
    ]));
    let call = |key: &str| json!({"tool.id": "mcp__a__b", "mcp.server_id": "a", "mcp.package_id": key, "identity.user_id": "ada"});
    let unsaid = json!({"tool.id": "mcp__a__b", "mcp.server_id": "a", "identity.user_id": "ada"});
    let (none, missing) = (json!([]), json!(["mcp.package_id"]));
    let (refused, passes) = (
        (Action::Block, true, false),
        (Action::FlagForReview, false, false),
    );
    assert_eq!(of_server(&judge, &call("npm:evil"), &none, &[]), refused);
    assert_eq!(
        of_server(&judge, &call("url:https://evil.example/mcp"), &none, &[]),
        refused
    );
    for key in ["npm:evil2", "npm:evi", "npm:nice", ""] {
        assert_eq!(of_server(&judge, &call(key), &none, &[]), passes, "{key}");
    }
    // In another spelling it may be it, or another server: the server knows.
    for key in [
        "NPM:evil",
        " npm:evil\u{200b}",
        "npm:\u{ad}Evil",
        "URL:https://evil.example/MCP",
    ] {
        let asked = (Action::Block, false, true);
        assert_eq!(of_server(&judge, &call(key), &none, &[]), asked, "{key}");
        assert_eq!(of_server(&judge, &call(key), &missing, &[]), passes, "{key}");
    }
    // Nobody can say which one it is, and one that is denied may be it.
    assert_eq!(of_server(&judge, &unsaid, &missing, &[]), passes);
    assert_eq!(
        of_server(&judge, &unsaid, &missing, &["npm:nice", "npm:evil"]),
        refused
    );
    // What an event says and says to be missing is missing.
    assert_eq!(of_server(&judge, &call("npm:evil"), &missing, &[]), passes);
    // A call of no server is of no server, whatever may be configured.
    let shell = json!({"tool.id": "Bash", "identity.user_id": "ada"});
    assert_eq!(of_server(&judge, &shell, &none, &["npm:evil"]), passes);
    // It is certain where policies are not: nobody has to be asked.
    let stranger = json!({"mcp.server_id": "a", "mcp.package_id": "npm:evil", "identity.user_id": "bob"});
    assert_eq!(of_server(&judge, &stranger, &none, &[]), refused);
    // It says why, and nothing of what a policy would have had changed or approved.
    let event = json!({"occasion": "pre_tool", "attributes": call("npm:evil"), "missing": []});
    let said = judge
        .judge(Timestamp::from_ms(1_500), &AskedEvent::of(&event).unwrap())
        .unwrap();
    let said = serde_json::to_value(said.verdict()).unwrap();
    assert_eq!(
        (&said["basis"], &said["policyIds"]),
        (&json!("standing"), &json!([]))
    );
    assert_eq!(
        said["mcpServer"],
        json!({"key": "npm:evil", "standing": "denied"})
    );
    assert_eq!(said["reasons"][0]["decides"], false);
    assert!(said.get("approval").is_none());
}

/// Proves LJ-12.
#[test]
fn denied_servers_beyond_the_bound_are_said_and_asked_about() {
    let keys: Vec<String> = (0..3_000).map(|n| format!("npm:{n:0>96}")).collect();
    let cut = PolicyBundle::of(
        &set(&[]),
        BundleInputs {
            denied: keys.clone(),
            bypass: None,
            ..inputs()
        },
    )
    .unwrap();
    assert!(cut.servers_withheld && cut.servers.len() < 3_000);
    let bytes: usize = cut.servers.iter().map(|server| server.key.len()).sum();
    assert!(bytes <= SERVERS_LIMIT && bytes > SERVERS_LIMIT - 200, "{bytes}");
    let judge = Judge::new(cut).unwrap();
    let call = |key: &str| json!({"mcp.server_id": "a", "mcp.package_id": key, "identity.user_id": "ada"});
    let none = json!([]);
    assert_eq!(
        of_server(&judge, &call(&keys[0]), &none, &[]),
        (Action::Block, true, false)
    );
    // Until the server says otherwise it counts as one that is denied.
    assert_eq!(
        of_server(&judge, &call(&keys[2_999]), &none, &[]),
        (Action::Block, false, true)
    );
    let shell = json!({"tool.id": "Bash", "identity.user_id": "ada"});
    assert_eq!(
        of_server(&judge, &shell, &none, &[]),
        (Action::Allow, false, false)
    );
}

/// A device of an earlier release does not know of servers, and a server of one says nothing of them.
#[test]
fn servers_are_a_member_without_which_a_bundle_is_read_as_before() {
    let plain = PolicyBundle::of(&set(&[]), inputs()).unwrap().canonical();
    assert!(!plain.contains("servers"));
    let read: PolicyBundle = serde_json::from_str(&plain).unwrap();
    assert!(read.servers.is_empty() && !read.servers_withheld);
    let full = PolicyBundle::of(
        &set(&[]),
        BundleInputs {
            denied: vec!["npm:evil".into()],
            bypass: None,
            ..inputs()
        },
    )
    .unwrap();
    let mut value: Value = serde_json::from_str(&full.canonical()).unwrap();
    assert_eq!(
        value["servers"],
        json!([{"key": "npm:evil", "standing": "denied"}])
    );
    assert_eq!(
        serde_json::from_value::<PolicyBundle>(value.clone()).unwrap(),
        full
    );
    // A standing of tomorrow is none that this version understands, and nothing is judged without it.
    value["servers"][0]["standing"] = "paused".into();
    assert!(serde_json::from_value::<PolicyBundle>(value).is_err());
}
