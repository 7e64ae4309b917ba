//! Nobody asks content out of recorded events without the scope for it (BT-8), and what was asked is kept (BT-9).

use crate::access::oauth;
use crate::policy::backtests::content;
use crate::policy::backtests_worker::{Worker, ended};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_areas_policy::history::{self, Durability, EventId, NewEvent};
use provost_backtest::record::OwnedRecord;
use provost_policy::{Family, Field, Occasion, sha256_hex};
use provost_server::background;
use serde_json::{Value, json};
use std::sync::Arc;

const RUNS: &str = "/policies/backtests";
const SECRET: &str = "hunter2-7f3a";
const INSPECTS: [&str; 3] = ["policies:backtest", "policies:read", "policies:inspect"];

/// Records calls of the shell with these commands, one a second.
async fn record(app: &App, commands: impl IntoIterator<Item = &str>) {
    let begin = crate::support::START.as_ms() - 3_600_000;
    let event = |(n, command): (usize, &str)| {
        let at = begin + i64::try_from(n).unwrap() * 1000;
        let attributes = json!({ "identity.user_id": format!("user {}", n % 2), "tool.id": "shell",
            "tool.input.command": command });
        NewEvent {
            id: EventId::at(at, n as u64, 9).as_str().to_owned(),
            record: OwnedRecord::read(at, Occasion::PreTool, attributes.as_object().unwrap(), &[]).unwrap(),
        }
    };
    let events = commands.into_iter().enumerate().map(event).collect();
    let recorder = history::recorder(&app.kernel);
    recorder
        .append(&app.org(), events, Durability::Durable)
        .await
        .unwrap();
}

/// A question over all of the recorded past.
#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn asking(candidate: Value) -> Value {
    json!({ "candidate": candidate, "window": { "from": "2026-11-19T00:00:00.000Z", "to": "2026-11-20T03:15:00.000Z" } })
}

/// A policy with these conditions.
fn policy(id: &str, conditions: Value) -> Value {
    let mut definition = content(id, "block", "");
    definition["conditions"] = conditions;
    definition
}

fn begins(with: &str) -> Value {
    json!({ "field": "tool.input.command", "op": "starts_with", "value": with })
}

fn plain(id: &str) -> Value {
    content(id, "nudge", "shell")
}

#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn inline(definition: Value) -> Value {
    json!({ "kind": "inline", "family": "content", "definition": definition })
}

fn set(definitions: &[Value]) -> Value {
    let one = |definition| json!({ "family": "content", "definition": definition });
    json!({ "kind": "set", "policies": definitions.iter().map(one).collect::<Vec<_>>() })
}

#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn change(definition: Value) -> Value {
    json!({ "kind": "changes", "changes": [{ "op": "set", "family": "content", "definition": definition }] })
}

async fn ask(app: &App, token: &str, body: Value) -> Reply {
    let call = app.request("POST", RUNS).token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

async fn get(app: &App, token: &str, rest: &str) -> Reply {
    app.request("GET", &format!("{RUNS}{rest}"))
        .token(token)
        .send()
        .await
}

/// Asserts that the scope is missing, and that the answer says which.
#[track_caller]
fn lacks_the_scope(reply: &Reply) {
    reply.refused(403, "insufficient_scope");
    let challenge = reply.header("www-authenticate");
    assert!(challenge.contains("scope=\"policies:inspect\""), "{challenge}");
    assert!(
        reply.text().contains("needs the scope policies:inspect"),
        "{}",
        reply.text()
    );
}

/// Makes a run that is asked by the first admin and returns its id once it has ended.
async fn judged(app: &App, body: Value) -> String {
    let made = ask(app, &app.admin, body).await;
    let id = made.ok()["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(app, &id).await["status"], "succeeded");
    id
}

/// Spells what recorded commands begin with, one letter a run: each letter is a policy, and the figures name the one
/// that matched.
async fn spelled(app: &App, token: &str) -> String {
    let mut known = String::new();
    while known.len() < 5 {
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789".chars();
        let letters: Vec<Value> = letters
            .map(|letter| policy(&letter.to_string(), begins(&format!("{known}{letter}"))))
            .collect();
        let made = ask(app, token, asking(set(&letters))).await;
        if made.status.as_u16() != 201 {
            lacks_the_scope(&made);
            break;
        }
        let id = made.json["id"].as_str().unwrap();
        ended(app, id).await;
        let run = get(app, token, &format!("/{id}")).await;
        let Some(policies) = run.ok()["results"]["byPolicy"].as_array().cloned() else {
            break;
        };
        let matched = policies.iter().find(|row| row["matched"].as_u64() > Some(0));
        known += matched.unwrap()["policyId"].as_str().unwrap();
    }
    known
}

/// Proves BT-8.
#[test]
fn nobody_spells_a_recorded_secret_without_the_scope() {
    each("inspect_spelled", |app: Arc<App>| async move {
        record(&app, [SECRET]).await;
        let worker = Worker::start(&app);
        let (_, operator) = app.account("operator", "operator", &[]).await;
        assert_eq!(spelled(&app, &operator).await, "");
        let (_, admin) = app
            .account("narrow", "admin", &["policies:backtest", "policies:write"])
            .await;
        assert_eq!(spelled(&app, &admin).await, "");
        // Whoever was chosen for it may.
        let (_, inspector) = app.account("inspector", "operator", &INSPECTS).await;
        assert_eq!(spelled(&app, &inspector).await, SECRET[..5]);
        // Nothing of what was refused is there.
        let runs = app.get(&format!("{RUNS}?limit=100")).await;
        assert_eq!(runs.ok()["backtests"].as_array().unwrap().len(), 5);
        worker.stop().await;
    });
}

fn rego() -> Value {
    let module = "package forge.content\nimport rego.v1\nmatch := {\"matched\": input.tool.id == \"shell\"}";
    let mut definition = plain("module");
    definition.as_object_mut().unwrap().remove("conditions");
    definition["logic"] = json!({
        "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
        "module": module, "moduleSha256": sha256_hex(module.as_bytes()),
    });
    definition
}

fn with(mut definition: Value, member: &str, value: Value) -> Value {
    definition[member] = value;
    definition
}

/// Definitions that read content somewhere.
fn readers() -> Vec<(&'static str, Value)> {
    let fact = json!({ "field": "tool.id", "op": "exists" });
    let custom = json!([{ "field": "tool.input.order", "label": "Order", "valueType": "string",
        "sourceType": "known_schema", "toolName": "shell", "schemaVersionId": "1" }]);
    let exception = json!([{ "id": "e", "reason": "r", "conditions": begins("a") }]);
    let within = |mut past: Value| {
        past["within"] = "1h".into();
        past["op"] = "gte".into();
        past["value"] = 1.into();
        past
    };
    vec![
        ("a condition", policy("p", begins("a"))),
        (
            "existence",
            policy("p", json!({ "field": "tool.result", "op": "exists" })),
        ),
        (
            "one of many",
            policy(
                "p",
                json!({ "all": [fact, { "any": [fact, { "not": begins("a") }] }] }),
            ),
        ),
        ("a custom field", {
            let condition = json!({ "field": "tool.input.order", "op": "eq", "value": "a" });
            with(policy("p", condition), "customFields", custom)
        }),
        ("except", with(plain("p"), "except", begins("a"))),
        ("an exception", with(plain("p"), "exceptions", exception)),
        (
            "an earlier event",
            policy("p", json!({ "hasPriorEvent": begins("a") })),
        ),
        (
            "a sequence",
            policy(
                "p",
                json!({ "hasEventSequence": { "within": "1h", "ordered": true, "events": [fact, begins("a")] } }),
            ),
        ),
        (
            "a count",
            policy(
                "p",
                json!({ "eventCount": within(json!({ "where": begins("a") })) }),
            ),
        ),
        (
            "distinct values",
            policy(
                "p",
                json!({ "priorDistinctValues": within(json!({ "field": "tool.input.command" })) }),
            ),
        ),
        (
            "distinct values where",
            policy(
                "p",
                json!({ "priorDistinctValues": within(json!({ "field": "tool.id", "where": begins("a") })) }),
            ),
        ),
        ("a module", rego()),
        (
            "what is not enabled yet",
            with(policy("p", begins("a")), "enabled", false.into()),
        ),
    ]
}

async fn live(app: &App, definition: &Value) {
    let body = json!({ "definition": definition });
    app.write("POST", "/content-policies", body).await.ok();
}

/// The version of the policy set that is live.
async fn version(app: &App) -> String {
    let made = ask(app, &app.admin, asking(set(&[]))).await;
    let sets = &made.ok()["policySet"];
    sets["baseline"]["versionId"].as_str().unwrap().to_owned()
}

/// Proves BT-8.
#[test]
fn no_form_of_a_question_leads_around_the_scope() {
    each("inspect_detours", |app: Arc<App>| async move {
        let (_, operator) = app.account("operator", "operator", &[]).await;
        for (name, definition) in readers() {
            let made = ask(&app, &operator, asking(inline(definition))).await;
            assert_eq!(made.code(), "insufficient_scope", "{name}: {}", made.text());
            lacks_the_scope(&made);
        }
        // A version that held another guard, the guard of now, and a draft that nobody enabled.
        let (gone, guard) = (policy("gone", begins("a")), policy("guard", begins("b")));
        live(&app, &gone).await;
        let former = version(&app).await;
        app.delete("/content-policies/gone?expectedRevision=1").await;
        live(&app, &guard).await;
        live(&app, &with(policy("draft", begins("c")), "enabled", false.into())).await;
        let now = version(&app).await;
        let against = |version: &str, candidate: Value| {
            let mut body = asking(candidate);
            body["baseline"] = json!({ "kind": "version", "versionId": version });
            body
        };
        let mut many: Vec<Value> = (0..998).map(|n| plain(&format!("p{n}"))).collect();
        many.extend([guard.clone(), policy("last", begins("a"))]);
        // The baseline and the candidate of this one are the same: what both have is a question still, once it is not live.
        let same = against(&former, set(std::slice::from_ref(&gone)));
        let made = ask(&app, &app.admin, same.clone()).await;
        let sets = &made.ok()["policySet"];
        assert_eq!(sets["baseline"]["digest"], sets["candidate"]["digest"]);
        let refused = [
            (
                "a stored draft",
                asking(json!({ "kind": "draft", "policyId": "draft" })),
            ),
            ("a change", asking(change(policy("p", begins("a"))))),
            ("a guard's other scope", {
                asking(change(with(
                    guard.clone(),
                    "appliesTo",
                    json!({ "agents": ["a"] }),
                )))
            }),
            (
                "a guard that is taken out",
                asking(json!({ "kind": "changes", "changes": [{ "op": "remove", "policyId": "guard" }] })),
            ),
            (
                "a guard that is switched off",
                asking(change(with(guard.clone(), "enabled", false.into()))),
            ),
            ("a set without the guard", asking(set(&[]))),
            ("the last of a thousand", asking(set(&many))),
            ("another baseline", against(&former, change(plain("p")))),
            ("an empty baseline", {
                against("psv_00000000000000000000000000", change(plain("p")))
            }),
            ("a guard of both that is not live", same),
            ("a filtered question", {
                let mut body = asking(inline(policy("p", begins("a"))));
                body["filters"] = json!({ "subjectIds": ["user 0"], "tools": ["shell"] });
                body["limits"] = json!({ "maxEvents": 1 });
                body
            }),
        ];
        let before = app.get(&format!("{RUNS}?limit=100")).await.bytes;
        for (name, body) in refused {
            let made = ask(&app, &operator, body).await;
            assert_eq!(made.code(), "insufficient_scope", "{name}: {}", made.text());
            lacks_the_scope(&made);
        }
        assert_eq!(app.get(&format!("{RUNS}?limit=100")).await.bytes, before);
        // What is live could be the question of whoever may write policies.
        let (_, author) = app
            .account("author", "admin", &["policies:backtest", "policies:write"])
            .await;
        lacks_the_scope(&ask(&app, &author, asking(inline(plain("p")))).await);
        // What does not differ is no question of the caller's.
        many.pop();
        let allowed = [
            ("a fact beside the guard", asking(inline(plain("p")))),
            ("a change of facts", asking(change(plain("p")))),
            ("a set with the guard", asking(set(&[guard.clone(), plain("p")]))),
            ("a thousand, but for one", asking(set(&many))),
            ("the version of now", against(&now, change(plain("p")))),
            (
                "a reader that takes no part",
                asking(change(with(policy("p", begins("a")), "enabled", false.into()))),
            ),
            ("the past of facts", {
                asking(inline(policy(
                    "p",
                    json!({ "hasPriorEvent": { "field": "tool.id", "op": "exists" } }),
                )))
            }),
        ];
        for (name, body) in allowed {
            let made = ask(&app, &operator, body).await;
            assert_eq!(made.status.as_u16(), 201, "{name}: {}", made.text());
            assert_eq!(made.json["readsContent"], false, "{name}");
            let digest = &made.json["policySet"]["candidate"]["digest"];
            assert!(digest.is_string() && made.json["filters"].is_object(), "{name}");
        }
    });
}

/// The attributes that are content, as this test knows them.
fn is_content(name: &str) -> bool {
    let others = [
        "event.summary",
        "event.title",
        "mcp.remote_url",
        "request.http.path",
        "request.mysql.fingerprint",
        "request.postgres.fingerprint",
        "request.prompt",
        "response.content",
        "tool.result",
    ];
    name.starts_with("tool.input") || others.contains(&name)
}

fn of_family(family: Family, id: &str, field: &str) -> Value {
    let mut definition = json!({ "id": id, "name": id, "enabled": true, "action": "flag_for_review",
        "acknowledgeBroadScope": true, "conditions": { "field": field, "op": "exists" } });
    match family {
        Family::Content => definition["evaluateOn"] = json!(["pre_tool"]),
        Family::Access => definition["enforcementSurfaces"] = json!(["inline_hook"]),
        Family::Resource | Family::SkillAcl => {}
    }
    definition
}

/// Proves BT-8, PC-2.
#[test]
fn each_attribute_that_is_content_needs_the_scope_and_no_fact_does() {
    each("inspect_fields", |app: Arc<App>| async move {
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let mut refused = 0;
        for family in [Family::Content, Family::Access, Family::Resource] {
            let fields = Field::all().filter(|field| field.is_in(family));
            let (content, facts): (Vec<Field>, Vec<Field>) =
                fields.partition(|field| is_content(field.name()));
            for field in content {
                let definition = of_family(family, "p", field.name());
                let candidate =
                    json!({ "kind": "inline", "family": family.word(), "definition": definition });
                let made = ask(&app, &operator, asking(candidate)).await;
                assert_eq!(
                    made.code(),
                    "insufficient_scope",
                    "{}: {}",
                    field.name(),
                    made.text()
                );
                refused += 1;
            }
            let all = facts.iter().enumerate().map(|(n, field)| {
                json!({ "family": family.word(), "definition": of_family(family, &format!("p{n}"), field.name()) })
            });
            let candidate = json!({ "kind": "set", "policies": all.collect::<Vec<_>>() });
            let made = ask(&app, &operator, asking(candidate)).await;
            assert_eq!(made.status.as_u16(), 201, "{} {}", family.word(), made.text());
        }
        assert_eq!(refused, 19);
    });
}

/// What a run of content looks like to those who may not read content.
fn is_restricted(run: &Value, results: &Value) {
    assert_eq!(run["readsContent"], true, "{run}");
    assert_eq!(&run["results"], results, "{run}");
    let progress = run["progress"].as_object().unwrap();
    assert!(progress.len() == 1 && progress["percent"].is_i64(), "{run}");
    let text = run.to_string();
    for absent in [
        "igest\"",
        "eventsProcessed",
        "eventsTotal",
        "filters",
        "samples",
        "bySubject",
        "byTool",
        "byDay",
        "byPolicy",
        "byFailure",
        "user 0",
    ] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

async fn by_mcp(app: &App, token: &str, id: &str) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "getHeadlessPolicyBacktest", "arguments": { "runId": id } } });
    let request = http::Request::post("/mcp?toolsets=all")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    let reply = oauth::answer(app, request.body(call.to_string().into()).unwrap()).await;
    let text = reply.text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap_or(&text);
    let answer: Value = serde_json::from_str(line).unwrap();
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(text).unwrap()
}

/// Proves BT-8.
#[test]
fn who_may_not_read_content_sees_totals_and_no_small_one() {
    each("inspect_sight", |app: Arc<App>| async move {
        record(&app, [&["ab"; 6][..], &["b", "c"], &["d"; 6]].concat()).await;
        let worker = Worker::start(&app);
        let mut body = asking(inline(policy("p", begins("a"))));
        body["filters"] = json!({ "tools": ["shell"], "subjectIds": ["user 0", "user 1"] });
        let totals = judged(&app, body).await;
        let small = judged(&app, asking(inline(policy("p", begins("b"))))).await;
        let facts = judged(&app, asking(inline(plain("p")))).await;
        let of_totals = json!({ "restricted": true, "eventsEvaluated": 14, "changed": 6, "unchanged": 8, "errors": 0,
            "unknown": 0, "byChange": { "allow_to_block": 6 } });
        let of_small = json!({ "restricted": true });

        let (_, operator) = app.account("operator", "operator", &[]).await;
        let (_, auditor) = app.account("auditor", "auditor", &[]).await;
        let (_, viewer) = app.account("viewer", "viewer", &[]).await;
        let narrow = ["policies:backtest", "policies:write", "audit:read"];
        let (_, admin) = app.account("narrow", "admin", &narrow).await;
        let whole = get(&app, &app.admin, &format!("/{totals}")).await;
        for token in [&operator, &auditor, &viewer, &admin] {
            for (id, results) in [(&totals, &of_totals), (&small, &of_small)] {
                let path = format!("/{id}");
                let run = get(&app, token, &path).await;
                is_restricted(run.ok(), results);
                is_restricted(&by_mcp(&app, token, id).await, results);
                lacks_the_scope(&get(&app, token, &format!("{path}/samples")).await);
                lacks_the_scope(&get(&app, token, &format!("{path}/samples?tool=shell&limit=1")).await);
                // Nobody is told that a form which others see is the one that they have.
                let admins = app.get(&format!("{RUNS}{path}")).await.header("etag").to_owned();
                assert_ne!(run.header("etag"), admins);
                for (tag, status) in [(admins.as_str(), 200), (run.header("etag"), 304)] {
                    let call = app.request("GET", &format!("{RUNS}{path}")).token(token);
                    let again = call.header("if-none-match", tag).send().await;
                    assert_eq!(again.status.as_u16(), status);
                }
            }
            let listed = get(&app, token, "?status=succeeded").await;
            let runs = listed.ok()["backtests"].as_array().unwrap();
            let of = |id: &str| runs.iter().find(|run| run["id"] == id).unwrap();
            is_restricted(of(&totals), &of_totals);
            is_restricted(of(&small), &of_small);
            // A run that reads no content is as it was.
            assert_eq!(of(&facts)["results"]["bySubject"].as_array().unwrap().len(), 2);
            assert!(of(&facts)["resultDigest"].is_string());
            let samples = get(&app, token, &format!("/{facts}/samples")).await;
            assert_eq!(samples.ok()["samples"].as_array().unwrap().len(), 2);
        }
        let (_, inspector) = app.account("inspector", "operator", &INSPECTS).await;
        let run = get(&app, &inspector, &format!("/{totals}")).await;
        assert_eq!(
            (&run.bytes, run.header("etag")),
            (&whole.bytes, whole.header("etag"))
        );
        assert_eq!(run.json["results"]["bySubject"].as_array().unwrap().len(), 2);
        assert!(run.json["resultDigest"].is_string() && run.json["results"]["restricted"].is_null());
        let samples = get(&app, &inspector, &format!("/{small}/samples")).await;
        assert_eq!(samples.ok()["samples"].as_array().unwrap().len(), 1);
        // What was asked is for those who answer for it.
        for (token, code) in [
            (&operator, "role_forbidden"),
            (&inspector, "role_forbidden"),
            (&viewer, "role_forbidden"),
        ] {
            let path = format!("/{totals}/definitions");
            get(&app, token, &path).await.refused(403, code);
        }
        for token in [&auditor, &admin, &app.admin] {
            let asked = get(&app, token, &format!("/{totals}/definitions")).await;
            assert_eq!(asked.ok()["changes"][0]["definition"], policy("p", begins("a")));
            assert_eq!(asked.json["filters"]["subjectIds"], json!(["user 0", "user 1"]));
        }
        worker.stop().await;
    });
}

/// Proves BT-8.
#[test]
fn neither_events_nor_the_audit_log_say_more_than_the_run() {
    each("inspect_sideways", |app: Arc<App>| async move {
        record(&app, ["ab", "ab", "b"]).await;
        let worker = Worker::start(&app);
        let id = judged(&app, asking(inline(policy("p", begins("a"))))).await;
        let run = app.get(&format!("{RUNS}/{id}")).await.ok().clone();
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let (_, auditor) = app.account("auditor", "auditor", &[]).await;
        let mut said = String::new();
        for path in ["/audit/events?limit=100", "/events?limit=100"] {
            let reply = app.request("GET", path).token(&operator).send().await;
            reply.ok();
            said += &reply.text();
        }
        for (kind, data) in app.events(0).await {
            if kind.starts_with("policy.backtest.") {
                let status = kind.rsplit('.').next().unwrap().replace("started", "running");
                assert_eq!(data, json!({ "runId": id, "status": status }));
            }
        }
        assert!(said.contains(&id), "{said}");
        let candidate = run["policySet"]["candidate"]["digest"].as_str().unwrap();
        for secret in [
            candidate,
            run["resultDigest"].as_str().unwrap(),
            run["datasetDigest"].as_str().unwrap(),
        ] {
            assert!(!said.contains(secret), "{secret}");
        }
        // Who reads what was asked finds the entry true.
        let asked = get(&app, &auditor, &format!("/{id}/definitions")).await;
        let seal = asked.ok()["seal"].as_str().unwrap();
        assert_eq!(asked.json["policySet"]["candidate"]["digest"], candidate);
        let sealed = sha256_hex(format!("{seal} {candidate}").as_bytes());
        let entries = app.entries(&app.organization, 0).await;
        let made = entries.iter().find(|entry| {
            entry.to_string().contains(&id) && entry.to_string().contains("createHeadlessPolicyBacktest")
        });
        assert!(made.unwrap().to_string().contains(&sealed), "{made:?}");
        assert!(!made.unwrap().to_string().contains(seal));
        worker.stop().await;
    });
}

/// Proves BT-8.
#[test]
fn a_scope_that_was_taken_away_shows_nothing_from_the_next_request_on() {
    each("inspect_narrowed", |app: Arc<App>| async move {
        let (account, inspector) = app.account("inspector", "operator", &INSPECTS).await;
        let made = ask(&app, &inspector, asking(inline(policy("p", begins("a"))))).await;
        let id = made.ok()["id"].as_str().unwrap().to_owned();
        let key = fresh_key();
        let cancel = || {
            let call = app
                .request("POST", &format!("{RUNS}/{id}/cancel"))
                .token(&inspector);
            call.header("if-match", made.header("etag"))
                .json(with_trio(json!({ "confirm": true }), &key))
                .send()
        };
        let canceled = cancel().await;
        assert_eq!(canceled.ok()["status"], "canceled");
        let whole = get(&app, &inspector, &format!("/{id}")).await;
        assert!(whole.ok()["policySet"]["candidate"]["digest"].is_string());
        let narrower = json!({ "scopes": ["policies:backtest", "policies:read"] });
        app.write("PATCH", &format!("/service-accounts/{account}"), narrower)
            .await
            .ok();
        let run = get(&app, &inspector, &format!("/{id}")).await;
        is_restricted(run.ok(), &Value::Null);
        // The repeat of a request is answered as the first one was, which had nothing more.
        let again = cancel().await;
        assert_eq!(again.bytes, canceled.bytes);
        assert_eq!(
            (&again.bytes, again.header("etag")),
            (&run.bytes, run.header("etag"))
        );
        lacks_the_scope(&get(&app, &inspector, &format!("/{id}/samples")).await);
        lacks_the_scope(&ask(&app, &inspector, asking(inline(policy("p", begins("b"))))).await);
    });
}

provost_kernel::statements! {
    /// What a run asks.
    QUESTION = "SELECT question FROM backtest_questions WHERE organization_id = ?1 AND backtest_id = ?2";
    /// Makes a run ask something else.
    FORGET = "UPDATE backtest_questions SET question = ?3 WHERE organization_id = ?1 AND backtest_id = ?2";
    /// How many runs have results.
    RESULTS = "SELECT COUNT(*) FROM backtest_results WHERE organization_id = ?1";
}

/// Proves BT-8.
#[test]
fn a_run_that_does_not_say_what_it_reads_is_taken_for_one_that_reads_content() {
    each("inspect_before", |app: Arc<App>| async move {
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let made = ask(&app, &operator, asking(inline(plain("p")))).await;
        let id = made.ok()["id"].as_str().unwrap().to_owned();
        let run = id.clone();
        let unit = app.kernel.system(app.org(), Some("test.done"), move |ctx| {
            let (org, id) = (ctx.org(), run.as_str());
            let read = |row: &provost_kernel::db::Row<'_>| row.get::<String>(0);
            let found = ctx.query_opt(&QUESTION, provost_kernel::params![org, id], read)?;
            let mut question: Value = serde_json::from_str(&found.unwrap()).unwrap();
            question.as_object_mut().unwrap().remove("readsContent").unwrap();
            let question = question.to_string();
            ctx.execute(&FORGET, provost_kernel::params![org, id, question.as_str()])
                .map(drop)
        });
        unit.await.unwrap();
        is_restricted(get(&app, &operator, &format!("/{id}")).await.ok(), &Value::Null);
        lacks_the_scope(&get(&app, &operator, &format!("/{id}/samples")).await);
        assert!(app.get(&format!("{RUNS}/{id}")).await.ok()["policySet"]["candidate"]["digest"].is_string());
    });
}

/// Proves BT-9.
#[test]
fn what_a_run_asked_outlives_what_came_of_it() {
    each("inspect_kept", |app: Arc<App>| async move {
        record(&app, ["ab", "b"]).await;
        let worker = Worker::start(&app);
        let id = judged(&app, asking(inline(policy("p", begins("a"))))).await;
        worker.stop().await;
        let (_, auditor) = app.account("auditor", "auditor", &[]).await;
        let path = format!("/{id}/definitions");
        let asked = get(&app, &auditor, &path).await;
        assert_eq!(asked.ok()["changes"][0]["definition"], policy("p", begins("a")));
        let results = async || {
            let org = app.organization.clone();
            let read = app.kernel.read_system(move |tx| {
                let params = provost_kernel::params![org.as_str()];
                tx.query_opt(&RESULTS, params, |row| row.get::<i64>(0))
            });
            read.await.unwrap()
        };
        assert_eq!(results().await, Some(1));
        for days in [30, 30] {
            app.advance(days * 86_400);
            background::retain(&app.kernel).await.unwrap();
            assert_eq!(results().await, Some(0));
            app.get(&format!("{RUNS}/{id}")).await.refused(404, "not_found");
            app.get(&format!("{RUNS}/{id}/samples"))
                .await
                .refused(404, "not_found");
            assert_eq!(get(&app, &auditor, &path).await.bytes, asked.bytes);
        }
        // Each look is an entry.
        app.settle().await;
        let entries = app.entries(&app.organization, 0).await;
        let looks = entries
            .iter()
            .filter(|entry| entry.to_string().contains("getHeadlessPolicyBacktestDefinitions"));
        assert_eq!(looks.count(), 3);
    });
}
