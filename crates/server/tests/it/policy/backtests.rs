//! Backtests over their operations: what is asked, refused, pinned, listed, canceled and forgotten. No worker runs
//! here; `backtests_worker.rs` has those.

use crate::areas::backtests::question;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::Timestamp;
use provost_server::background;
use serde_json::{Value, json};
use std::sync::Arc;

const RUNS: &str = "/policies/backtests";
const DAY_SECS: i64 = 86_400;

async fn ask(app: &App, body: Value) -> Reply {
    app.write("POST", RUNS, body).await
}

async fn asked(app: &App) -> String {
    let made = ask(app, question()).await;
    made.ok()["id"].as_str().unwrap().to_owned()
}

async fn cancel(app: &App, id: &str) -> Reply {
    let path = format!("{RUNS}/{id}/cancel");
    app.write("POST", &path, json!({ "confirm": true })).await
}

fn with(pointer: &str, value: Value) -> Value {
    let mut body = question();
    match pointer.rsplit_once('/') {
        Some(("", name)) => body[name] = value,
        Some((parent, name)) => {
            let (_, top) = parent.split_at(1);
            if body.get(top).is_none() {
                body[top] = json!({});
            }
            body[top][name] = value;
        }
        None => panic!("{pointer}"),
    }
    body
}

pub fn window(from: Timestamp, to: Timestamp) -> Value {
    with("/window", json!({ "from": from, "to": to }))
}

pub fn content(id: &str, action: &str, tool: &str) -> Value {
    json!({
        "id": id, "name": format!("Policy {id}"), "enabled": true, "action": action, "evaluateOn": ["pre_tool"],
        "conditions": { "field": "tool.id", "op": "eq", "value": tool }, "acknowledgeBroadScope": true,
    })
}

/// Asserts a refusal that names these members, in this order.
#[track_caller]
fn refuses(reply: &Reply, status: u16, code: &str, pointers: &[&str]) {
    reply.refused(status, code);
    let errors = reply.json["errors"].as_array().cloned().unwrap_or_default();
    let paths: Vec<&str> = errors
        .iter()
        .map(|error| error["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, pointers, "{}", reply.text());
}

#[test]
fn a_run_waits_with_all_that_it_asks() {
    each("asked", |app: Arc<App>| async move {
        let mut body = question();
        body["name"] = "Last week".into();
        body["candidate"] = json!({ "kind": "inline", "family": "content", "definition": content("no-mail", "block", "mail") });
        body["filters"] = json!({ "tools": ["mail", "call", "mail"] });
        let made = ask(&app, body).await;
        assert_eq!(made.status.as_u16(), 201, "{}", made.text());
        let id = made.json["id"].as_str().unwrap();
        assert_eq!(made.header("location"), app.path(&format!("{RUNS}/{id}")));
        let expected = json!({
            "organizationId": app.organization, "name": "Last week", "status": "queued", "reason": "a test",
            "createdBy": { "type": "service_account", "id": app.admin_id },
            "window": { "from": "2026-11-13T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" },
            "filters": { "tools": ["call", "mail"] },
            "limits": { "maxEvents": 1_000_000_000, "maxDurationSeconds": 300 },
            "progress": { "eventsProcessed": 0, "percent": 0 },
            "partial": false, "truncated": false, "attempt": 0, "liveEnforcementChanged": false,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(made.json[name], *value, "{name}");
        }
        let sets = &made.json["policySet"];
        assert_eq!(sets["baseline"]["kind"], "live");
        assert_eq!(sets["baseline"]["versionId"], "psv_00000000000000000000000000");
        assert_eq!(sets["baseline"]["policyIds"], json!([]));
        assert_eq!(sets["candidate"]["kind"], "inline");
        assert_eq!(sets["candidate"]["policyIds"], json!(["no-mail"]));
        assert_ne!(sets["candidate"]["digest"], sets["baseline"]["digest"]);
        for absent in [
            "startedAt",
            "finishedAt",
            "results",
            "resultDigest",
            "expiresAt",
            "failure",
            "canceledAt",
        ] {
            assert!(made.json.get(absent).is_none(), "{absent}");
        }
        let read = app.get(&format!("{RUNS}/{id}")).await;
        assert_eq!(read.bytes, made.bytes);
        assert_eq!(read.header("etag"), made.header("etag"));
        assert_eq!(read.header("retry-after"), "2");
        let (kind, data) = app.events(0).await.pop().unwrap();
        assert_eq!(
            (kind.as_str(), data),
            (
                "policy.backtest.queued",
                json!({ "runId": id, "status": "queued" })
            )
        );
        let samples = app.get(&format!("{RUNS}/{id}/samples")).await;
        assert_eq!(*samples.ok(), json!({ "samples": [] }));
    });
}

#[test]
fn every_limit_holds_to_the_last_unit() {
    each("limits", |app: Arc<App>| async move {
        let now = app.now();
        let oldest = now.plus_secs(-400 * DAY_SECS);
        let words = |count: usize| json!((0..count).map(|n| format!("tool {n}")).collect::<Vec<_>>());
        let policies = |count: usize| {
            let one = |n: usize| json!({ "family": "content", "definition": content(&format!("p{n}"), "block", "t") });
            with(
                "/candidate",
                json!({ "kind": "set", "policies": (0..count).map(one).collect::<Vec<_>>() }),
            )
        };
        let allowed = [
            with("/limits/maxEvents", json!(1)),
            with("/limits/maxEvents", json!(1_000_000_000)),
            with("/limits/maxDurationSeconds", json!(1)),
            with("/limits/maxDurationSeconds", json!(3600)),
            with("/filters/subjectIds", words(1)),
            with("/filters/tools", words(256)),
            with("/filters/resourceIds", json!(["x".repeat(256)])),
            with("/name", "n".repeat(128).into()),
            window(now.plus_secs(-90 * DAY_SECS), now),
            window(now.plus_ms(-1), now),
            window(oldest, oldest.plus_secs(90 * DAY_SECS)),
            policies(0),
            policies(1000),
        ];
        for body in allowed {
            let made = ask(&app, body).await;
            assert_eq!(made.status.as_u16(), 201, "{}", made.text());
            cancel(&app, made.json["id"].as_str().unwrap()).await.ok();
        }
        let refused = [
            (with("/limits/maxEvents", json!(0)), "/limits/maxEvents"),
            (
                with("/limits/maxEvents", json!(1_000_000_001)),
                "/limits/maxEvents",
            ),
            (
                with("/limits/maxDurationSeconds", json!(0)),
                "/limits/maxDurationSeconds",
            ),
            (
                with("/limits/maxDurationSeconds", json!(3601)),
                "/limits/maxDurationSeconds",
            ),
            (with("/filters/subjectIds", words(0)), "/filters/subjectIds"),
            (with("/filters/tools", words(257)), "/filters/tools"),
            (
                with("/filters/resourceIds", json!(["x".repeat(257)])),
                "/filters/resourceIds/0",
            ),
            (with("/name", "n".repeat(129).into()), "/name"),
            (
                window(now.plus_secs(-90 * DAY_SECS).plus_ms(-1), now),
                "/window/from",
            ),
            (window(now, now), "/window/from"),
            (window(now, now.plus_ms(-1)), "/window/from"),
            (window(now.plus_secs(-60), now.plus_ms(1)), "/window/to"),
            (
                window(oldest.plus_ms(-1), oldest.plus_secs(DAY_SECS)),
                "/window/from",
            ),
            (policies(1001), "/candidate/policies"),
        ];
        for (body, pointer) in refused {
            refuses(&ask(&app, body).await, 400, "invalid_request", &[pointer]);
        }
        // The organization may allow more, as far as its history goes.
        let shorter = json!({ "retention": { "historyDays": 300 }, "confirm": true });
        app.write("PATCH", "/automation/settings", shorter).await.ok();
        app.advance(7 * 86_400);
        let now = app.now();
        for (setting, days, status) in [
            (120, 120, 201),
            (120, 121, 400),
            (3650, 300, 201),
            (3650, 301, 400),
            (1, 2, 400),
        ] {
            let settings = json!({ "policies": { "maxBacktestDays": setting } });
            app.write("PATCH", "/automation/settings", settings).await.ok();
            let made = ask(&app, window(now.plus_secs(-days * DAY_SECS), now)).await;
            assert_eq!(made.status.as_u16(), status, "{setting} {days} {}", made.text());
        }
    });
}

#[test]
fn a_question_of_no_form_is_refused_where_it_breaks() {
    each("forms", |app: Arc<App>| async move {
        let definition = content("one", "block", "mail");
        let candidates = [
            (json!({ "kind": "draft" }), "/candidate/policyId"),
            (json!({ "kind": "draft", "policyId": "" }), "/candidate/policyId"),
            (
                json!({ "kind": "draft", "policyId": "one", "changes": [] }),
                "/candidate/changes",
            ),
            (
                json!({ "kind": "inline", "family": "content" }),
                "/candidate/definition",
            ),
            (
                json!({ "kind": "inline", "definition": definition }),
                "/candidate/family",
            ),
            (
                json!({ "kind": "inline", "family": "mail", "definition": definition }),
                "/candidate/family",
            ),
            (
                json!({ "kind": "inline", "family": "content", "definition": "one" }),
                "/candidate/definition",
            ),
            (json!({ "kind": "changes" }), "/candidate/changes"),
            (json!({ "kind": "changes", "changes": [] }), "/candidate/changes"),
            (
                json!({ "kind": "changes", "changes": [{ "op": "set", "family": "content" }] }),
                "/candidate/changes/0/definition",
            ),
            (
                json!({ "kind": "changes", "changes": [{ "op": "remove" }] }),
                "/candidate/changes/0/policyId",
            ),
            (
                json!({ "kind": "changes", "changes": [{ "op": "move" }] }),
                "/candidate/changes/0/op",
            ),
            (
                json!({ "kind": "changes", "changes": [{ "op": "remove", "policyId": "one", "definition": definition }] }),
                "/candidate/changes/0/definition",
            ),
            (json!({ "kind": "set" }), "/candidate/policies"),
            (
                json!({ "kind": "set", "policies": [], "family": "content" }),
                "/candidate/family",
            ),
            (
                json!({ "kind": "set", "policies": [{ "family": "content" }] }),
                "/candidate/policies/0/definition",
            ),
            (json!({ "kind": "whole" }), "/candidate/kind"),
            (json!({}), "/candidate/kind"),
        ];
        for (candidate, pointer) in candidates {
            refuses(
                &ask(&app, with("/candidate", candidate)).await,
                400,
                "invalid_request",
                &[pointer],
            );
        }
        let others = [
            (
                with("/baseline", json!({ "kind": "version" })),
                "/baseline/versionId",
            ),
            (
                with("/baseline", json!({ "kind": "live", "versionId": "psv_1" })),
                "/baseline/versionId",
            ),
            (
                with("/window", json!({ "from": "2026-11-13T00:00:00.000Z" })),
                "/window/to",
            ),
            (
                with(
                    "/window",
                    json!({ "from": "yesterday", "to": "2026-11-13T00:00:00.000Z" }),
                ),
                "/window/from",
            ),
            (with("/filters/users", json!(["one"])), "/filters/users"),
            (with("/limits/maxSeconds", json!(1)), "/limits/maxSeconds"),
            (with("/wait", json!(true)), "/wait"),
        ];
        for (body, pointer) in others {
            refuses(&ask(&app, body).await, 400, "invalid_request", &[pointer]);
        }
    });
}

#[test]
fn a_fault_of_a_definition_is_named_where_it_stands() {
    each("faults", |app: Arc<App>| async move {
        let good = content("one", "block", "mail");
        let mut no_action = good.clone();
        no_action["action"] = "explode".into();
        let mut deep = good.clone();
        deep["conditions"] = json!({ "all": [{ "field": "tool.id", "op": "like", "value": "x" }] });
        let inline =
            |definition: &Value| json!({ "kind": "inline", "family": "content", "definition": definition });
        let set = |definition: &Value| json!({ "op": "set", "family": "content", "definition": definition });
        let policy = |definition: &Value| json!({ "family": "content", "definition": definition });
        let refused = [
            (inline(&no_action), "/candidate/definition/action"),
            (inline(&deep), "/candidate/definition/conditions/all/0/op"),
            (
                json!({ "kind": "changes", "changes": [set(&good), set(&no_action)] }),
                "/candidate/changes/1/definition/action",
            ),
            (
                json!({ "kind": "changes", "changes": [{ "op": "remove", "policyId": "absent" }] }),
                "/candidate/changes/0/policyId",
            ),
            (
                json!({ "kind": "set", "policies": [policy(&content("two", "block", "mail")), policy(&no_action)] }),
                "/candidate/policies/1/definition/action",
            ),
            (
                json!({ "kind": "set", "policies": [policy(&good), policy(&good)] }),
                "/candidate/policies/1/definition/id",
            ),
            (
                json!({ "kind": "draft", "policyId": "absent" }),
                "/candidate/policyId",
            ),
        ];
        for (candidate, pointer) in refused {
            refuses(
                &ask(&app, with("/candidate", candidate)).await,
                422,
                "invalid_definition",
                &[pointer],
            );
        }
        let absent = with(
            "/baseline",
            json!({ "kind": "version", "versionId": "psv_01kadh5j9v0000000000000000" }),
        );
        refuses(
            &ask(&app, absent).await,
            422,
            "invalid_definition",
            &["/baseline/versionId"],
        );
        let listed = app.get(RUNS).await;
        assert_eq!(listed.ok()["backtests"], json!([]));
    });
}

/// Proves BT-6.
#[test]
fn a_run_judges_what_was_pinned_when_it_was_made() {
    each("pinned", |app: Arc<App>| async move {
        let mut draft = content("draft", "block", "mail");
        draft["enabled"] = false.into();
        // To be acknowledged when it is enabled; a trial needs no such word.
        draft.as_object_mut().unwrap().remove("acknowledgeBroadScope");
        for definition in [content("kept", "nudge", "mail"), draft.clone()] {
            app.write("POST", "/content-policies", json!({ "definition": definition }))
                .await
                .ok();
        }
        let by_draft = ask(
            &app,
            with("/candidate", json!({ "kind": "draft", "policyId": "draft" })),
        )
        .await;
        let sets = by_draft.ok()["policySet"].clone();
        assert_eq!(sets["baseline"]["policyIds"], json!(["kept"]));
        assert_eq!(sets["candidate"]["policyIds"], json!(["draft", "kept"]));
        // The same set, however it is said.
        draft["enabled"] = true.into();
        draft["acknowledgeBroadScope"] = true.into();
        let change = json!({ "op": "set", "family": "content", "definition": draft });
        let by_change = ask(
            &app,
            with("/candidate", json!({ "kind": "changes", "changes": [change] })),
        )
        .await;
        let policies: Vec<Value> = [&draft, &content("kept", "nudge", "mail")]
            .map(|definition| json!({ "family": "content", "definition": definition }))
            .to_vec();
        let by_set = ask(
            &app,
            with("/candidate", json!({ "kind": "set", "policies": policies })),
        )
        .await;
        for same in [by_change, by_set] {
            assert_eq!(
                same.ok()["policySet"]["candidate"]["digest"],
                sets["candidate"]["digest"]
            );
        }
        let id = by_draft.json["id"].as_str().unwrap();
        let path = "/content-policies/kept?expectedRevision=1";
        assert_eq!(app.delete(path).await.status.as_u16(), 204);
        assert_eq!(app.get(&format!("{RUNS}/{id}")).await.bytes, by_draft.bytes);
        // What was live then can be named as a version.
        let version = sets["baseline"]["versionId"].clone();
        let named = ask(
            &app,
            with("/baseline", json!({ "kind": "version", "versionId": version })),
        )
        .await;
        assert_eq!(
            named.ok()["policySet"]["baseline"]["digest"],
            sets["baseline"]["digest"]
        );
        assert_eq!(named.json["policySet"]["baseline"]["kind"], "version");
        let live = ask(&app, question()).await;
        assert_ne!(
            live.ok()["policySet"]["baseline"]["digest"],
            sets["baseline"]["digest"]
        );
    });
}

/// Proves BT-2.
#[test]
fn cancel_ends_a_waiting_run_once() {
    each("cancel", |app: Arc<App>| async move {
        let id = asked(&app).await;
        let path = format!("{RUNS}/{id}/cancel");
        for body in [json!({}), json!({ "confirm": false })] {
            app.write("POST", &path, body)
                .await
                .refused(400, "confirmation_required");
        }
        let canceled = cancel(&app, &id).await;
        let run = canceled.ok();
        assert_eq!(
            (&run["status"], &run["partial"]),
            (&json!("canceled"), &json!(false))
        );
        assert_eq!(run["liveEnforcementChanged"], false);
        assert_eq!(
            run["canceledBy"],
            json!({ "type": "service_account", "id": app.admin_id })
        );
        assert_eq!(
            (&run["cancelReason"], &run["canceledAt"]),
            (&json!("a test"), &run["finishedAt"])
        );
        assert!(run.get("startedAt").is_none() && run.get("results").is_none());
        let events = app.events(0).await;
        app.advance(60);
        let again = cancel(&app, &id).await;
        assert_eq!((again.status.as_u16(), &again.bytes), (200, &canceled.bytes));
        assert_eq!(app.events(0).await.len(), events.len());
        let read = app.get(&format!("{RUNS}/{id}")).await;
        assert_eq!(read.bytes, canceled.bytes);
        assert_eq!(read.header("retry-after"), "");
        let (kind, data) = events.last().unwrap();
        assert_eq!(kind, "policy.backtest.canceled");
        assert_eq!(
            *data,
            json!({ "runId": id, "status": "canceled", "partial": false })
        );
    });
}

#[test]
fn an_entity_tag_names_one_state_of_a_record() {
    each("etag", |app: Arc<App>| async move {
        let id = asked(&app).await;
        let path = format!("{RUNS}/{id}");
        let first = app.get(&path).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        for list in [
            tag.clone(),
            format!("\"other\", {tag}"),
            format!("W/{tag}"),
            "*".to_owned(),
        ] {
            let same = app
                .request("GET", &path)
                .header("if-none-match", &list)
                .send()
                .await;
            assert_eq!((same.status.as_u16(), same.bytes.len()), (304, 0), "{list}");
            assert_eq!(
                (same.header("etag"), same.header("retry-after")),
                (tag.as_str(), "2")
            );
        }
        // As long as the document says, and not one longer; what is not printable is not skipped either.
        let longest = format!("{tag}, \"{}\"", "o".repeat(1024 - tag.len() - 4));
        for (list, status) in [
            (longest.clone(), 304),
            (format!("{longest},"), 400),
            (format!("{tag},\t\"other\""), 400),
            (format!("{tag}, \"é\""), 400),
        ] {
            let got = app
                .request("GET", &path)
                .header("if-none-match", &list)
                .send()
                .await;
            assert_eq!(got.status.as_u16(), status, "{list}");
        }
        let other = app
            .request("GET", &path)
            .header("if-none-match", "\"other\"")
            .send()
            .await;
        assert_eq!(other.bytes, first.bytes);
        let twin = app.get(&format!("{RUNS}/{}", asked(&app).await)).await;
        assert_ne!(twin.header("etag"), tag);

        let cancel = |tags: &str| {
            let body = with_trio(json!({ "confirm": true }), &fresh_key());
            let call = app
                .request("POST", &format!("{path}/cancel"))
                .header("if-match", tags)
                .json(body);
            call.send()
        };
        let stale = cancel("\"other\"").await;
        stale.refused(412, "precondition_failed");
        assert_eq!(stale.header("etag"), tag);
        assert_eq!(app.get(&path).await.bytes, first.bytes);
        let canceled = cancel(&format!("\"other\", {tag}")).await;
        assert_eq!(canceled.ok()["status"], "canceled");
        assert_ne!(canceled.header("etag"), tag);
        cancel(&tag).await.refused(412, "precondition_failed");
        cancel("*").await.ok();
        let changed = app
            .request("GET", &path)
            .header("if-none-match", &tag)
            .send()
            .await;
        assert_eq!(changed.ok()["status"], "canceled");
        assert_eq!(changed.header("etag"), canceled.header("etag"));
    });
}

#[test]
fn twenty_runs_wait_and_no_more() {
    each("queue", |app: Arc<App>| async move {
        let mut runs = Vec::new();
        for _ in 0..20 {
            runs.push(asked(&app).await);
        }
        let full = ask(&app, question()).await;
        full.refused(429, "rate_limited");
        assert_eq!(full.header("retry-after"), "30");
        let broken = with("/candidate", json!({ "kind": "draft", "policyId": "absent" }));
        refuses(
            &ask(&app, broken).await,
            422,
            "invalid_definition",
            &["/candidate/policyId"],
        );
        cancel(&app, &runs[7]).await.ok();
        asked(&app).await;
        ask(&app, question()).await.refused(429, "rate_limited");
        let (organization, admin) = app.other_organization("Umbrella").await;
        asked(&app.view_of(organization, admin)).await;
    });
}

#[test]
fn runs_are_listed_the_newest_first_by_status() {
    each("listed", |app: Arc<App>| async move {
        let mut runs = Vec::new();
        for place in 0..5 {
            runs.push(asked(&app).await);
            if place % 2 == 0 {
                cancel(&app, &runs[place]).await.ok();
            }
        }
        let ids = |reply: &Reply| -> Vec<String> {
            let all = reply.ok()["backtests"].as_array().unwrap().iter();
            all.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
        };
        let pick = |places: &[usize]| {
            places
                .iter()
                .map(|place| runs[*place].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&app.get(RUNS).await), pick(&[4, 3, 2, 1, 0]));
        assert_eq!(
            ids(&app.get(&format!("{RUNS}?status=queued")).await),
            pick(&[3, 1])
        );
        assert_eq!(
            ids(&app.get(&format!("{RUNS}?status=succeeded")).await),
            pick(&[])
        );
        let first = app.get(&format!("{RUNS}?status=canceled&limit=2")).await;
        assert_eq!(ids(&first), pick(&[4, 2]));
        let cursor = first.json["nextCursor"].as_str().unwrap();
        let rest = app
            .get(&format!("{RUNS}?status=canceled&limit=2&cursor={cursor}"))
            .await;
        assert_eq!(ids(&rest), pick(&[0]));
        assert!(rest.json.get("nextCursor").is_none());
        let strayed = app.get(&format!("{RUNS}?status=queued&cursor={cursor}")).await;
        refuses(&strayed, 400, "invalid_request", &["/query/cursor"]);
        let one = app.get(&format!("{RUNS}/{}", runs[2])).await;
        assert_eq!(first.json["backtests"][1], one.json);
        for (query, path) in [
            ("change=allow_to_allow", "/query/change"),
            ("change=up", "/query/change"),
        ] {
            let reply = app.get(&format!("{RUNS}/{}/samples?{query}", runs[0])).await;
            refuses(&reply, 400, "invalid_request", &[path]);
        }
    });
}

/// Proves BT-9.
#[test]
fn a_record_goes_away_thirty_days_after_the_end_and_its_question_stays() {
    each("expiry", |app: Arc<App>| async move {
        let (ended, waiting) = (asked(&app).await, asked(&app).await);
        let canceled = cancel(&app, &ended).await;
        let finished = Timestamp::parse(canceled.ok()["finishedAt"].as_str().unwrap()).unwrap();
        let expires = finished.plus_secs(30 * DAY_SECS);
        assert_eq!(canceled.json["expiresAt"], expires.to_rfc3339());
        let left = (expires.as_ms() - app.now().as_ms()).unsigned_abs();
        app.clock.advance(std::time::Duration::from_millis(left - 1));
        app.get(&format!("{RUNS}/{ended}")).await.ok();
        background::retain(&app.kernel).await.unwrap();
        app.get(&format!("{RUNS}/{ended}")).await.ok();
        app.clock.advance(std::time::Duration::from_millis(1));
        for pruned in [false, true] {
            app.get(&format!("{RUNS}/{ended}"))
                .await
                .refused(404, "not_found");
            app.get(&format!("{RUNS}/{ended}/samples"))
                .await
                .refused(404, "not_found");
            cancel(&app, &ended).await.refused(404, "not_found");
            let listed = app.get(RUNS).await;
            let ids = listed.ok()["backtests"].as_array().unwrap();
            assert_eq!(ids.len(), 1);
            assert_eq!(ids[0]["id"], waiting.as_str());
            let rows = app
                .kernel
                .read_system(|tx| tx.query_opt(&ROWS, &[], |row| row.get::<i64>(0)));
            assert_eq!(rows.await.unwrap(), Some(4), "{pruned}");
            let asked = app.get(&format!("{RUNS}/{ended}/definitions")).await;
            assert_eq!(asked.ok()["runId"], ended.as_str());
            background::retain(&app.kernel).await.unwrap();
        }
    });
}

provost_kernel::statements! {
    /// The rows of runs and of their questions, of every organization.
    ROWS = unscoped("a test looks at all rows") "SELECT (SELECT COUNT(*) FROM backtests) + (SELECT COUNT(*) FROM backtest_questions)";
}
