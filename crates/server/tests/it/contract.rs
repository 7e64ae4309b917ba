//! The facts of the specification, as a table, against the document and against live answers (R24).

use crate::areas;
use crate::areas_beside::every_area;
use crate::samples::{self, Target};
use crate::support::{App, Reply, each, each_of, fresh_key, with_trio};
use provost_kernel::Timestamp;
use provost_kernel::expose::openapi;
use provost_kernel::operation::{Access, Entry, Method, PARAMETERS};
use provost_server::app;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const BASE: &str = "/api/headless/v1/organizations/{organizationId}";

/// The type of a member as the specification's tables name it.
#[derive(Clone, Copy, Debug)]
enum MemberType {
    Text,
    Texts,
    Time,
    OneOf(&'static [&'static str]),
    Object(Fields),
    Objects(Fields),
    /// Not in the specification's table; D5.8 adds it.
    Number,
}

/// Name, type, and whether every answer has it. What a table does not require, D5 does.
type Fields = &'static [(&'static str, MemberType, bool)];

/// Specification §2.2.
const ACCOUNT: Fields = &[
    ("id", MemberType::Text, true),
    ("organizationId", MemberType::Text, true),
    ("name", MemberType::Text, true),
    ("description", MemberType::Text, false),
    ("permissionRole", MemberType::Text, true),
    ("scopes", MemberType::Texts, true),
    ("status", MemberType::OneOf(&["active", "disabled"]), true),
    ("createdAt", MemberType::Time, true),
    ("updatedAt", MemberType::Time, true),
    ("ownerConsoleUserId", MemberType::Text, false),
    ("disabledAt", MemberType::Time, false),
    ("lastUsedAt", MemberType::Time, false),
    ("tokens", MemberType::Objects(TOKEN), true),
];

/// Specification §2.3.
const TOKEN: Fields = &[
    ("id", MemberType::Text, true),
    ("name", MemberType::Text, true),
    ("tokenPrefix", MemberType::Text, true),
    ("scopes", MemberType::Texts, true),
    ("createdAt", MemberType::Time, true),
    ("updatedAt", MemberType::Time, true),
    ("expiresAt", MemberType::Time, true),
    ("lastUsedAt", MemberType::Time, false),
    ("revokedAt", MemberType::Time, false),
];

/// Specification §2.4.
const ISSUED: Fields = &[
    ("id", MemberType::Text, true),
    ("name", MemberType::Text, true),
    ("token", MemberType::Text, true),
    ("tokenPrefix", MemberType::Text, true),
    ("expiresAt", MemberType::Time, true),
];

struct Parameter {
    name: &'static str,
    place: &'static str,
    words: &'static [&'static str],
    range: Option<(i64, Option<i64>)>,
}

struct Fact {
    section: &'static str,
    method: &'static str,
    path: &'static str,
    parameters: &'static [Parameter],
    /// Name, JSON type, required.
    request: &'static [(&'static str, &'static str, bool)],
    response: Fields,
    errors: &'static [&'static str],
}

const fn text(name: &'static str, place: &'static str) -> Parameter {
    Parameter {
        name,
        place,
        words: &[],
        range: None,
    }
}

const FACTS: [Fact; 2] = [
    Fact {
        section: "4.3",
        method: "post",
        path: "/service-accounts/{serviceAccountId}/tokens",
        parameters: &[text("organizationId", "path"), text("serviceAccountId", "path")],
        request: &[("reason", "string", true), ("idempotencyKey", "string", true)],
        response: &[
            ("serviceAccount", MemberType::Object(ACCOUNT), true),
            ("token", MemberType::Object(ISSUED), true),
        ],
        errors: &["400", "401", "403", "404"],
    },
    Fact {
        section: "4.6",
        method: "get",
        path: "/service-accounts",
        parameters: &[
            text("organizationId", "path"),
            Parameter {
                name: "status",
                place: "query",
                words: &["active", "disabled"],
                range: None,
            },
            Parameter {
                name: "limit",
                place: "query",
                words: &[],
                range: Some((1, Some(100))),
            },
            Parameter {
                name: "offset",
                place: "query",
                words: &[],
                range: Some((0, None)),
            },
        ],
        request: &[],
        response: &[
            ("serviceAccounts", MemberType::Objects(ACCOUNT), true),
            ("total", MemberType::Number, true),
            ("limit", MemberType::Number, true),
            ("offset", MemberType::Number, true),
        ],
        errors: &["401", "403"],
    },
];

fn document() -> Value {
    openapi::document(&app::registry().unwrap())
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// The words of an enumeration, however it is written.
fn words(schema: &Value) -> Vec<String> {
    if let Some(word) = schema.get("const") {
        return vec![word.as_str().unwrap().to_owned()];
    }
    let listed = schema.get("enum").and_then(Value::as_array);
    let listed = listed
        .into_iter()
        .flatten()
        .map(|w| w.as_str().unwrap().to_owned());
    let branches = schema.get("oneOf").and_then(Value::as_array);
    listed
        .chain(branches.into_iter().flatten().flat_map(words))
        .collect()
}

fn check_fields(document: &Value, schema: &Value, fields: Fields, place: &str) {
    let schema = resolved(document, schema);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, is, always) in fields {
        let place = format!("{place}.{name}");
        let member = resolved(document, &schema["properties"][name]);
        assert_eq!(
            required.iter().any(|r| r == name),
            *always,
            "{place} is required or not"
        );
        match is {
            MemberType::Text if member["type"] != "string" => {
                assert!(!words(member).is_empty(), "{place}: {member}");
            }
            MemberType::Text => {}
            MemberType::Number => assert_eq!(member["type"], "integer", "{place}"),
            MemberType::Time => assert_eq!(
                (&member["type"], &member["format"]),
                (&json!("string"), &json!("date-time")),
                "{place}"
            ),
            MemberType::OneOf(expected) => assert_eq!(words(member), *expected, "{place}"),
            MemberType::Texts => assert_eq!(
                (&member["type"], &member["items"]["type"]),
                (&json!("array"), &json!("string")),
                "{place}"
            ),
            MemberType::Object(fields) => check_fields(document, member, fields, &place),
            MemberType::Objects(fields) => {
                assert_eq!(member["type"], "array", "{place}");
                check_fields(document, &member["items"], fields, &place);
            }
        }
    }
}

#[test]
fn the_document_holds_the_facts_of_the_specification() {
    let document = document();
    assert_eq!(document["info"]["version"], "0.1.0");
    let bearer = &document["components"]["securitySchemes"]["bearer"];
    assert_eq!(
        (&bearer["type"], &bearer["scheme"]),
        (&json!("http"), &json!("bearer"))
    );
    assert_eq!(document["security"], json!([{ "bearer": [] }]));
    let envelope = &document["components"]["schemas"]["Error"];
    assert_eq!(envelope["type"], "object");
    assert_eq!(envelope["required"], json!(["message"]));
    assert_eq!(envelope["properties"]["message"]["type"], "string");
    for fact in FACTS {
        let operation = &document["paths"][format!("{BASE}{}", fact.path)][fact.method];
        assert!(operation.is_object(), "§{}", fact.section);
        assert_eq!(
            operation["tags"],
            json!(["service_accounts"]),
            "§{}",
            fact.section
        );
        check_parameters(operation, &fact);
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let required = body["required"].as_array().cloned().unwrap_or_default();
        for (name, kind, always) in fact.request {
            assert_eq!(
                body["properties"][name]["type"], *kind,
                "§{} {name}",
                fact.section
            );
            assert_eq!(
                required.iter().any(|r| r == name),
                *always,
                "§{} {name}",
                fact.section
            );
        }
        // What the table does not name is optional, or the specification's own callers would be refused.
        assert_eq!(
            required.len(),
            fact.request.len(),
            "§{} {required:?}",
            fact.section
        );
        let responses = operation["responses"].as_object().unwrap();
        let errors: Vec<&str> = responses
            .keys()
            .map(String::as_str)
            .filter(|s| s.starts_with('4'))
            .collect();
        assert_eq!(errors, fact.errors, "§{}", fact.section);
        let others: Vec<&str> = responses
            .keys()
            .map(String::as_str)
            .filter(|s| !s.starts_with('4'))
            // That a second person was asked is told where the organization wants one (ADR 0126).
            .filter(|s| !(*s == "202" && asks_for_second_person(operation)))
            .collect();
        assert_eq!(others, ["200", "default"], "§{}", fact.section);
        let success = &responses["200"]["content"]["application/json"]["schema"];
        check_fields(&document, success, fact.response, &format!("§{}", fact.section));
    }
}

fn asks_for_second_person(operation: &Value) -> bool {
    let parameters = operation["parameters"].as_array().unwrap();
    PARAMETERS
        .iter()
        .all(|name| parameters.iter().any(|found| found["name"] == *name))
}

/// Parameters beside those of the specification, by its section.
const ADDED: &[(&str, Option<&str>)] = &[("4.6", Some("cursor"))];

fn check_parameters(operation: &Value, fact: &Fact) {
    let declared = operation["parameters"].as_array().unwrap();
    // Headers may be sent beside what the specification names; none is needed.
    let (headers, declared): (Vec<&Value>, Vec<&Value>) = declared.iter().partition(|p| p["in"] == "header");
    assert!(
        headers.iter().all(|header| header["required"] == false),
        "§{}",
        fact.section
    );
    // So it is with what this server adds.
    let is_specified = |found: &&Value| fact.parameters.iter().any(|known| found["name"] == known.name);
    let added = declared.iter().copied().filter(|found| !is_specified(found));
    for found in added.clone() {
        assert_eq!(found["required"], false, "§{}", fact.section);
    }
    let added: Vec<_> = added
        .map(|found| (fact.section, found["name"].as_str()))
        .collect();
    // What is said of a second person is the same of whatever one may be wanted for (ADR 0126).
    let is_of_two = |name: Option<&str>| name.is_some_and(|name| PARAMETERS.contains(&name));
    let is_known = |added: &(&str, Option<&str>)| ADDED.contains(added) || is_of_two(added.1);
    assert!(added.iter().all(is_known), "{added:?}");
    for parameter in fact.parameters {
        let place = format!("§{} {}", fact.section, parameter.name);
        let found = declared
            .iter()
            .find(|p| p["name"] == parameter.name && p["in"] == parameter.place);
        let found = found.unwrap_or_else(|| panic!("{place} is not declared"));
        assert_eq!(found["required"], parameter.place == "path", "{place}");
        let schema = &found["schema"];
        assert_eq!(words(schema), parameter.words, "{place}");
        if let Some((min, max)) = parameter.range {
            assert_eq!(schema["type"], "integer", "{place}");
            assert_eq!(schema["minimum"], min, "{place}");
            // The specification's offset has no end; JSON's exact integers have.
            let end = max.unwrap_or((1 << 53) - 1);
            assert_eq!(schema["maximum"], end, "{place}");
        } else if parameter.words.is_empty() {
            assert_eq!(schema["type"], "string", "{place}");
        }
    }
}

fn assert_time(value: &Value, place: &str) -> Timestamp {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("{place} is no text: {value}"));
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{place}: {text}");
    Timestamp::parse(text).unwrap()
}

/// Every member has its type, none is `null`, and the required ones are there.
fn assert_fields(value: &Value, fields: Fields, place: &str) {
    let members = value
        .as_object()
        .unwrap_or_else(|| panic!("{place} is no object: {value}"));
    for (name, is, always) in fields {
        let place = format!("{place}.{name}");
        let Some(member) = members.get(*name) else {
            assert!(!always, "{place} is absent");
            continue;
        };
        let all = |of: fn(&Value) -> bool| member.as_array().is_some_and(|items| items.iter().all(of));
        match is {
            MemberType::Text => assert!(member.is_string(), "{place}: {member}"),
            MemberType::Number => assert!(member.is_u64(), "{place}: {member}"),
            MemberType::Time => drop(assert_time(member, &place)),
            MemberType::OneOf(words) => assert!(words.iter().any(|w| member == w), "{place}: {member}"),
            MemberType::Texts => assert!(all(Value::is_string), "{place}: {member}"),
            MemberType::Object(fields) => assert_fields(member, fields, &place),
            MemberType::Objects(fields) => {
                assert!(all(Value::is_object), "{place}: {member}");
                for item in member.as_array().unwrap() {
                    assert_fields(item, fields, &place);
                }
            }
        }
    }
    if let (Some(created), Some(updated)) = (members.get("createdAt"), members.get("updatedAt")) {
        assert!(
            assert_time(updated, place) >= assert_time(created, place),
            "{place}: {value}"
        );
    }
}

fn assert_no_null(value: &Value, place: &str) {
    match value {
        Value::Null => panic!("{place} is null"),
        Value::Array(items) => items.iter().for_each(|v| assert_no_null(v, place)),
        Value::Object(members) => {
            for (name, value) in members {
                assert_no_null(value, &format!("{place}.{name}"));
            }
        }
        _ => {}
    }
}

/// Proves MT-2.
#[test]
fn live_answers_hold_the_facts_of_the_specification() {
    each("facts", |app: Arc<App>| async move {
        let ada = crate::areas::directory::user(&app, "ada").await;
        let body = json!({
            "name": "whole", "description": "all members", "permissionRole": "admin",
            "scopes": ["audit:read", "fleet:read"], "ownerConsoleUserId": ada, "expiresInSeconds": 7200,
        });
        let made = app.write("POST", "/service-accounts", body).await;
        assert_eq!(made.status.as_u16(), 201);
        assert_fields(&made.json, FACTS[0].response, "create");
        let id = made.json["serviceAccount"]["id"].as_str().unwrap().to_owned();
        assert_eq!(
            made.header("location"),
            app.path(&format!("/service-accounts/{id}"))
        );
        app.advance(1);
        let path = format!("/service-accounts/{id}/tokens");
        let rotated = app.write("POST", &path, json!({})).await;
        assert_eq!(rotated.status.as_u16(), 200);
        assert_fields(rotated.ok(), FACTS[0].response, "§4.3");
        let account = &rotated.json["serviceAccount"];
        assert_eq!(account["organizationId"], app.organization);
        assert_eq!(account["tokens"].as_array().unwrap().len(), 2);
        assert_eq!(account["tokens"][0]["id"], rotated.json["token"]["id"]);
        assert_eq!(account["tokens"][1]["revokeReason"], "rotated");
        assert_eq!(
            account["tokens"][1]["supersededById"],
            rotated.json["token"]["id"]
        );
        app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
            .await
            .ok();
        let listed = app.get("/service-accounts").await;
        assert_eq!(listed.status.as_u16(), 200);
        assert_fields(listed.ok(), FACTS[1].response, "§4.6");
        assert_no_null(&listed.json, "§4.6");
        let whole = &listed.json["serviceAccounts"][0];
        for (name, _, _) in ACCOUNT.iter().filter(|(name, _, _)| *name != "lastUsedAt") {
            assert!(whole.get(*name).is_some(), "{name}");
        }
        assert_eq!(whole["status"], "disabled");
        let first = &listed.json["serviceAccounts"][1];
        for name in ["description", "ownerConsoleUserId", "disabledAt"] {
            assert!(
                first.get(name).is_none(),
                "{name} has no value and is there: {first}"
            );
        }
    });
}

/// Proves SA-2.
#[test]
fn a_token_is_shown_once_and_never_listed() {
    each("secret", |app: Arc<App>| async move {
        let (id, first) = app.account("keeper", "admin", &[]).await;
        let path = format!("/service-accounts/{id}");
        let rotated = app.write("POST", &format!("{path}/tokens"), json!({})).await;
        let second = rotated.ok()["token"]["token"].as_str().unwrap().to_owned();
        let secrets = [first.as_str(), second.as_str(), app.admin.as_str()];
        assert_eq!(rotated.text().matches(&second).count(), 1);
        let prefix = rotated.json["token"]["tokenPrefix"].as_str().unwrap();
        assert!(second.starts_with(&format!("{prefix}_")) && prefix.len() == "prov_sat_".len() + 12);
        let change = app.write("PATCH", &path, json!({ "description": "x" })).await;
        let mut answers = vec![change];
        for rest in [
            "/service-accounts",
            path.as_str(),
            "/audit/events",
            "/audit/export",
            "/events",
            "/capabilities",
        ] {
            answers.push(app.get(rest).await);
        }
        for reply in answers {
            let text = reply.text();
            assert!(reply.status.is_success(), "{text}");
            for secret in secrets {
                // What stands behind the prefix, and any half of it.
                let hidden = &secret[secret.len() - 49..];
                assert!(!text.contains(&hidden[..24]) && !text.contains(&hidden[25..]));
            }
            assert!(!text.contains("\"token\":\""), "{text}");
        }
    });
}

#[test]
fn accounts_are_listed_newest_first_in_pages() {
    each("pages", |app: Arc<App>| async move {
        let mut expected = vec![(app.now().plus_ms(-1), app.admin_id.clone())];
        for number in 0..57 {
            let body =
                json!({ "name": format!("bot {number}"), "permissionRole": "viewer", "allOfRole": true });
            let made = app.write("POST", "/service-accounts", body).await;
            let id = made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
            expected.push((app.now(), id));
            // Threes share an instant: their ids decide.
            if number % 3 == 0 {
                app.clock.advance(Duration::from_millis(1));
            }
        }
        expected.sort_by(|a, b| b.cmp(a));
        let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
        let ids = |reply: &Reply| {
            let accounts = reply.ok()["serviceAccounts"].as_array().unwrap().iter();
            accounts
                .map(|a| a["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let page = |limit: i64, offset: i64| json!([58, limit, offset]);
        let numbers = |reply: &Reply| json!([reply.json["total"], reply.json["limit"], reply.json["offset"]]);
        let whole = app.get("/service-accounts").await;
        assert_eq!(ids(&whole), expected[..50]);
        assert_eq!(numbers(&whole), page(50, 0));
        for (limit, offset) in [(1, 0), (7, 50), (100, 0), (100, 57), (20, 38)] {
            let reply = app
                .get(&format!("/service-accounts?limit={limit}&offset={offset}"))
                .await;
            let end = (offset + limit).min(58);
            assert_eq!(ids(&reply), expected[offset..end], "{limit} {offset}");
            assert_eq!(
                numbers(&reply),
                page(limit.try_into().unwrap(), offset.try_into().unwrap())
            );
        }
        for offset in [58, 59, 1_000_000, 9_007_199_254_740_991_i64] {
            let reply = app.get(&format!("/service-accounts?offset={offset}")).await;
            assert_eq!(ids(&reply), Vec::<String>::new());
            assert_eq!(numbers(&reply), page(50, offset));
        }
        let path = format!("/service-accounts/{}/disable", expected[3]);
        app.write("POST", &path, json!({})).await.ok();
        let disabled = app.get("/service-accounts?status=disabled").await;
        assert_eq!(ids(&disabled), [expected[3].clone()]);
        assert_eq!(disabled.json["total"], 1);
        let active = app.get("/service-accounts?status=active&limit=3&offset=2").await;
        assert_eq!(
            ids(&active),
            [&expected[2], &expected[4], &expected[5]].map(Clone::clone)
        );
        assert_eq!(active.json["total"], 57);
        let walk = async |mut at: Option<String>| {
            let mut found = Vec::new();
            loop {
                let cursor = at.map(|at| format!("&cursor={at}")).unwrap_or_default();
                let reply = app.get(&format!("/service-accounts?limit=7{cursor}")).await;
                found.extend(ids(&reply));
                at = reply.ok()["nextCursor"].as_str().map(str::to_owned);
                if at.is_none() {
                    return found;
                }
            }
        };
        assert_eq!(walk(None).await, expected);
        // What goes while somebody reads shifts no page of a cursor, and what comes stands before it.
        let first = app.get("/service-accounts?limit=7").await;
        let next = first.ok()["nextCursor"].as_str().unwrap().to_owned();
        let gone = format!("/service-accounts/{}", expected[6]);
        let deleted = app.request("DELETE", &gone).header("x-reason", "a test");
        let deleted = deleted
            .header("idempotency-key", "gone")
            .header("x-confirm", "true");
        assert_eq!(deleted.send().await.status.as_u16(), 204);
        let body = json!({ "name": "late", "permissionRole": "viewer", "allOfRole": true });
        app.write("POST", "/service-accounts", body).await.ok();
        assert_eq!(walk(Some(next.clone())).await, expected[7..]);
        for refused in [
            format!("cursor={next}&offset=1"),
            format!("cursor={next}&status=active"),
            format!("cursor={next}A"),
            "cursor=".to_owned(),
            "cursor=AAAA".to_owned(),
        ] {
            app.get(&format!("/service-accounts?{refused}"))
                .await
                .refused(400, "invalid_request");
        }
        app.get(&format!("/service-accounts?cursor={next}&offset=0"))
            .await
            .ok();
    });
}

/// One live answer for each declared status of each operation, `default` included. Works for every operation
/// that samples.rs can call, so a new one is either covered or fails.
/// Proves MT-2.
#[test]
fn every_declared_status_is_answered() {
    each_of(every_area(), "statuses", |app: Arc<App>| async move {
        let document = openapi::document(&app.kernel.registry);
        samples::fresh_target(&app).await;
        samples::checkpoint(&app).await;
        let (_, viewer) = app
            .account("viewer", "viewer", &["service_accounts:rotate_self"])
            .await;
        let (_, foreign) = app.other_organization("Umbrella").await;
        for entry in app.kernel.registry.entries() {
            let pointer = format!("{BASE}{}", entry.meta.shown_path());
            let item = &document["paths"][pointer][entry.meta.method.as_str().to_lowercase()];
            let mut declared: BTreeSet<String> =
                item["responses"].as_object().unwrap().keys().cloned().collect();
            if let Some(also) = entry.meta.also {
                // The answer to what is there already; the tests of its area know how to ask for it.
                assert!(declared.remove(&also.to_string()), "{}", entry.meta.id);
            }
            if entry.meta.second_person.is_some() {
                // The answer to who asks for a second person; the tests of that ask it of each.
                assert!(declared.remove("202"), "{}", entry.meta.id);
            }
            let mut observed = BTreeSet::new();
            let target = samples::fresh_target_of(&app, entry).await;
            let call = |target: &Target| samples::call(&app, entry, target);
            let mut see = |reply: &Reply, status: u16| {
                assert_eq!(
                    reply.status.as_u16(),
                    status,
                    "{} {}",
                    entry.meta.id,
                    reply.text()
                );
                let word = status.to_string();
                observed.insert(if declared.contains(&word) {
                    word
                } else {
                    "default".into()
                });
            };
            see(&call(&target).anonymous().send().await, 401);
            see(&call(&target).token(&foreign).send().await, 403);
            if entry.meta.id != "getHeadlessCapabilities" {
                see(&call(&target).token(&viewer).send().await, 403);
            }
            if samples::names_a_record(entry) {
                // Who calls for itself names nobody else.
                let is_of_kind = matches!(entry.meta.access, Access::OfKind { .. });
                let status = if is_of_kind { 403 } else { 404 };
                see(&call(&Target::absent()).send().await, status);
            }
            if declared.contains("410") {
                let beyond = format!("{}?after=9007199254740991", samples::path(entry.meta, &target));
                see(&app.get(&beyond).await, 410);
            }
            if let Some(reply) = crate::areas::missed(&app, entry.meta.id).await {
                see(&reply, 404);
            }
            for reply in breaches(&app, entry, &target).await {
                let status = reply.status.as_u16();
                assert!([400, 415].contains(&status), "{} {}", entry.meta.id, reply.text());
                see(&reply, status);
            }
            let success = call(&target).send().await;
            see(&success, entry.meta.status);
            check_success(entry, &success);
            // Without a body there is no 415, so that nothing may be left for `default`.
            if !entry.has_body && declared.contains("400") {
                declared.remove("default");
            }
            assert_eq!(observed, declared, "{}", entry.meta.id);
        }
    });
}

/// Requests that break a rule of the wire, by 400 and 415.
async fn breaches(app: &App, entry: &Entry, target: &Target) -> Vec<Reply> {
    let meta = entry.meta;
    let path = samples::path(meta, target);
    let request = |path: &str| samples::request(app, meta, path);
    if meta.method == Method::Delete {
        return vec![request(&path).send().await];
    }
    if let Some((media_type, bytes)) = areas::content(meta.id) {
        let send = |path: &str, media_type| {
            let call = request(path).header("x-reason", "a test");
            let call = call.header("idempotency-key", &fresh_key());
            call.content(media_type, bytes.clone()).send()
        };
        return vec![
            send(
                &format!("{path}{}unknown=1", if path.contains('?') { '&' } else { '?' }),
                media_type,
            )
            .await,
            send(&path, "text/plain").await,
        ];
    }
    if entry.has_body {
        let body = with_trio(samples::body(meta, target), &fresh_key());
        let unknown = {
            let mut body = body.clone();
            body["comfirm"] = true.into();
            request(&path).json(body).send().await
        };
        let form = request(&path).header("content-type", "text/plain").json(body);
        return vec![unknown, form.send().await];
    }
    let mark = if path.contains('?') { '&' } else { '?' };
    vec![request(&format!("{path}{mark}unknown=1")).send().await]
}

fn check_success(entry: &Entry, reply: &Reply) {
    let meta = entry.meta;
    if meta.status == 204 {
        assert!(reply.bytes.is_empty(), "{}", meta.id);
        assert_eq!(reply.header("content-type"), "", "{}", meta.id);
        return;
    }
    let expected = match meta.produces {
        "application/json" => "application/json; charset=utf-8",
        other => other,
    };
    assert_eq!(reply.header("content-type"), expected, "{}", meta.id);
    if meta.produces == "application/gzip" {
        assert!(reply.bytes.starts_with(&[0x1f, 0x8b]), "{}", meta.id);
        return;
    }
    // An audit entry says `null` where a change had no value before or has none after.
    if meta.toolset != "audit" {
        assert_no_null(&reply.json, meta.id);
    }
    assert_times(&reply.json, meta.id);
}

/// Whatever is named as an instant has exactly milliseconds and Z (D1.2).
fn assert_times(value: &Value, place: &str) {
    match value {
        Value::Array(items) => items.iter().for_each(|v| assert_times(v, place)),
        Value::Object(members) => {
            for (name, value) in members {
                let is_instant = (name.ends_with("At") && value.is_string()) || name == "timestamp";
                if is_instant {
                    assert_time(value, &format!("{place}.{name}"));
                }
                assert_times(value, place);
            }
        }
        _ => {}
    }
}
