//! What counting endures, and whom it tells of whom (invariants VI-2, VI-3, VI-4).

use super::violations::{ACTIONS, PATH, count, grouped, id_of, listed, policies, say};
use crate::access::oauth::{token, trusting, user, workshop};
use crate::policy::decisions::{content, decide_one, policy};
use crate::policy::history::import;
use crate::support::{App, each};
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SubjectKind};
use provost_areas_policy::history::count_values;
use provost_areas_policy::violations::count_days;
use provost_kernel::db::Statement;
use provost_kernel::time::SystemClock;
use provost_kernel::{OperationContext, params};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

provost_kernel::statements! {
    /// Has the counts of an organization be so great that nothing can be added to them.
    FILL_DAYS = "UPDATE violation_days SET event_count = 9223372036854775807 WHERE organization_id = ?1";
    /// The same of values.
    FILL_VALUES = "UPDATE history_values SET event_count = 9223372036854775807 WHERE organization_id = ?1";
    /// How many values of an organization are known.
    VALUES = "SELECT COUNT(*) FROM history_values WHERE organization_id = ?1";
    /// How many sources are told apart, and the one of all others.
    SOURCES = unscoped("a test") "SELECT COUNT(DISTINCT source) FROM violation_days";
    /// How many rows are kept of what was said.
    SAID = unscoped("a test") "SELECT (SELECT COUNT(*) FROM violation_feedback) + (SELECT COUNT(*) FROM violation_feedback_policies)";
    /// Has a subject have said something of many decisions.
    SAY_MUCH = "INSERT INTO violation_feedback (organization_id, event_id, subject_kind, subject_id, text, event_at, given_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT CAST(?1 AS TEXT), 'hev_' || CAST(?2 AS TEXT) || CAST(i AS TEXT), 'user', CAST(?2 AS TEXT), 'no', CAST(?4 AS BIGINT) + i, CAST(?4 AS BIGINT) FROM n";
    /// The same of two policies each.
    SAY_MUCH_OF_POLICIES = "INSERT INTO violation_feedback_policies (organization_id, policy_id, event_id, event_at) SELECT f.organization_id, p.id, f.event_id, f.event_at FROM violation_feedback f CROSS JOIN (SELECT 'one' AS id UNION ALL SELECT 'two' AS id) p WHERE f.organization_id = ?1 AND f.subject_id = ?2";
    /// Has many uses of somebody wait.
    USE_MUCH = "INSERT INTO inventory_use_queue (organization_id, id, user_id, evidence, name, events, first_at, last_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT CAST(?1 AS TEXT), 'iob_' || CAST(i AS TEXT), CAST(?2 AS TEXT), 'hook', 'name', 1, 1, 1 FROM n";
    /// Has sixty days have many lines.
    COUNT_MUCH = "INSERT INTO violation_days (organization_id, dimension, day, name, action, mode, source, event_count) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?2 AS BIGINT)) SELECT CAST(?1 AS TEXT), 'tool', i % 60 + 1, 'tool' || CAST(i AS TEXT), 'block', 'enforce', '', 1 FROM n";
    /// How many lines of those days there are.
    LINES = unscoped("a test") "SELECT COUNT(*) FROM violation_days WHERE day < 100";
}

async fn values(app: &App) -> i64 {
    let organization = app.organization.clone();
    let read = app.kernel.read_system(move |tx| {
        tx.query_opt(&VALUES, params![organization.as_str()], |row| row.get::<i64>(0))
    });
    read.await.unwrap().unwrap()
}

/// A store takes no such text everywhere, and nobody behind it goes uncounted for it.
#[test]
fn a_name_that_no_store_takes_is_counted_without_it() {
    each("violations_nul", |app: Arc<App>| async move {
        policy(&app, Family::Content, content("block", "block", &json!({}))).await;
        let decided = decide_one(&app, &json!({ "tool.id": "B\0ash" })).await;
        assert_eq!(decided["action"], "block");
        count(&app).await;
        count_values(&app.kernel).await.unwrap();
        let by_tool = grouped(&app, "tool").await;
        assert_eq!(
            (&by_tool["groups"], &by_tool["counts"]["unnamedEvents"]),
            (&json!([]), &json!(1))
        );
        assert_eq!(grouped(&app, "day").await["groups"][0]["events"], 1);
        assert_eq!(values(&app).await, 0);
        app.kernel.stop().await;
    });
}

#[test]
fn an_organization_that_cannot_be_counted_keeps_nobody_behind_it_from_being_counted() {
    each("violations_round", |app: Arc<App>| async move {
        let (organization, admin) = app.other_organization("Stark").await;
        let there = app.view_of(organization, admin);
        // Rounds go by their ids.
        let (ill, well) = if app.organization < there.organization {
            (&*app, &there)
        } else {
            (&there, &*app)
        };
        for app in [ill, well] {
            policies(app).await;
        }
        decide_one(ill, &json!({ "tool.id": "block" })).await;
        count(&app).await;
        count_values(&app.kernel).await.unwrap();
        let fill = |ctx: &mut OperationContext<'_>| {
            let org = ctx.org();
            ctx.execute(&FILL_DAYS, params![org])?;
            ctx.execute(&FILL_VALUES, params![org]).map(drop)
        };
        app.kernel.system(ill.org(), None, fill).await.unwrap();
        for app in [ill, well] {
            decide_one(app, &json!({ "tool.id": "block" })).await;
        }
        assert!(count_days(&app.kernel).await.is_err());
        assert!(count_values(&app.kernel).await.is_err());
        assert_eq!(grouped(well, "policy").await["groups"][0]["events"], 1);
        assert_eq!(values(well).await, 1);
        app.kernel.stop().await;
    });
}

/// Proves VI-2.
#[test]
fn a_chunk_that_holds_too_much_for_one_count_is_said_and_the_next_one_is_counted() {
    each("violations_lines", |app: Arc<App>| async move {
        let mut lines = Vec::new();
        for day in 0..90 {
            let at = app.now().plus_secs(-day * 86_400).to_rfc3339();
            for action in ACTIONS {
                for mode in ["enforce", "monitor"] {
                    let decision = json!({ "action": action, "mode": mode, "policyIds": ["one"] });
                    let event = json!({ "at": at, "occasion": "pre_tool", "attributes": { "tool.id": "t" },
                        "decision": decision });
                    lines.push(event.to_string());
                }
            }
        }
        import(&app, "elsewhere", lines.join("\n")).await.ok();
        policies(&app).await;
        decide_one(&app, &json!({ "tool.id": "block" })).await;
        count(&app).await;
        let counted = grouped(&app, "policy").await;
        assert_eq!(counted["counts"]["uncountedChunks"], 1);
        assert_eq!(
            (
                &counted["counts"]["groups"],
                &counted["groups"][0]["policyId"],
                &counted["groups"][0]["events"]
            ),
            (&json!(1), &json!("block"), &json!(1))
        );
        // All of it is in the list.
        assert_eq!(listed(&app, "").await.len(), 100);
        app.kernel.stop().await;
    });
}

/// Proves VI-2.
#[test]
fn sources_beyond_so_many_are_one_and_the_answer_says_so() {
    each("violations_sources", |app: Arc<App>| async move {
        for number in 0..60 {
            let decision = json!({ "action": "block", "policyIds": ["one"] });
            let at = app.now().to_rfc3339();
            let line = json!({ "at": at, "occasion": "pre_tool", "attributes": { "tool.id": "t" }, "decision": decision });
            import(&app, &format!("source-{number}"), line.to_string())
                .await
                .ok();
        }
        count(&app).await;
        let all = grouped(&app, "policy").await;
        assert_eq!(
            (&all["groups"][0]["events"], &all["counts"]["unsourcedEvents"]),
            (&json!(60), &json!(10))
        );
        let sources = app
            .kernel
            .read_system(|tx| tx.query_opt(&SOURCES, params![], |row| row.get::<i64>(0)));
        assert_eq!(sources.await.unwrap(), Some(51));
        app.kernel.stop().await;
    });
}

/// Says whether a name stands anywhere in an answer.
fn has_name(answer: &Value) -> bool {
    match answer {
        Value::Object(members) => members
            .iter()
            .any(|(member, value)| ["name", "deleted"].contains(&member.as_str()) || has_name(value)),
        Value::Array(values) => values.iter().any(has_name),
        _ => false,
    }
}

/// Proves VI-5.
#[test]
fn names_of_people_and_accounts_are_for_who_may_read_those() {
    each("violations_names_seen", |app: Arc<App>| async move {
        policies(&app).await;
        let ann = user(&app, "ann@acme.example", None).await;
        let (robot, _) = app.account("a robot", "viewer", &["policies:feedback"]).await;
        let anns = id_of(&decide_one(&app, &json!({ "tool.id": "block", "identity.user_id": ann })).await);
        decide_one(
            &app,
            &json!({ "tool.id": "nudge", "identity.service_account_id": robot }),
        )
        .await;
        count(&app).await;
        let reading = ["policies:read", "policies:history"];
        let whole = format!("{PATH}/{anns}");
        for (more, people, accounts) in [
            (None, false, false),
            (Some("directory:read"), true, false),
            (Some("service_accounts:read"), false, true),
        ] {
            let scopes: Vec<&str> = reading.into_iter().chain(more).collect();
            let (_, token) = app.account(&scopes.join(" "), "auditor", &scopes).await;
            let read = async |path: &str| app.request("GET", path).token(&token).send().await.ok().clone();
            assert_eq!(has_name(&read(&whole).await), people, "{scopes:?}");
            let by_tool = |tool: &str| format!("{PATH}?tool={tool}");
            assert_eq!(has_name(&read(&by_tool("block")).await), people, "{scopes:?}");
            assert_eq!(has_name(&read(&by_tool("nudge")).await), accounts, "{scopes:?}");
            let of = |id: &str| format!("{PATH}?groupBy=subject&subjectId={id}");
            assert_eq!(has_name(&read(&of(&ann)).await), people, "{scopes:?}");
            assert_eq!(has_name(&read(&of(&robot)).await), accounts, "{scopes:?}");
        }
        app.kernel.stop().await;
    });
}

/// Proves VI-4.
#[test]
fn what_somebody_said_goes_with_them() {
    each("violations_forgotten", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let may = token(&workshop, |claims| claims["scope"] = "policies:feedback".into());
        policies(&app).await;
        let event = id_of(&decide_one(&app, &json!({ "tool.id": "block", "identity.user_id": ann })).await);
        say(&app, &may, &event, "this is our own build folder").await.ok();
        let said = async || {
            let read = app
                .kernel
                .read_system(|tx| tx.query_opt(&SAID, params![], |row| row.get::<i64>(0)));
            read.await.unwrap().unwrap()
        };
        assert_eq!(said().await, 2);
        let gone = app.delete(&format!("/directory/users/{ann}")).await;
        assert!(gone.status.is_success(), "{}", gone.text());
        assert_eq!(said().await, 0);
        assert!(
            app.get(&format!("{PATH}/{event}"))
                .await
                .ok()
                .get("feedback")
                .is_none()
        );
        app.kernel.stop().await;
    });
}

/// Proves VI-4.
#[test]
fn what_is_said_of_a_decision_of_many_policies_stands_under_some_of_them() {
    each("violations_many", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let may = token(&workshop, |claims| claims["scope"] = "policies:feedback".into());
        for at in 0..70 {
            let body = content(&format!("block-{at}"), "block", &json!({}));
            policy(&app, Family::Content, body).await;
        }
        let event = id_of(&decide_one(&app, &json!({ "tool.id": "Bash", "identity.user_id": ann })).await);
        say(&app, &may, &event, "this is our own build folder").await.ok();
        assert_eq!(number(&app, &SAID).await, 1 + 64);
        app.kernel.stop().await;
    });
}

async fn number(app: &App, statement: &'static Statement) -> i64 {
    let read = app
        .kernel
        .read_system(move |tx| tx.query_opt(statement, params![], |row| row.get::<i64>(0)));
    read.await.unwrap().unwrap()
}

/// A hundred users whom an import takes away are ended in one unit; here they are fewer, as a database that is asked costs time of its own.
/// Each of them would have everything read that others said, and whatever waits of others, so that the unit would be refused at every try.
#[test]
fn who_leaves_has_nothing_read_that_others_said() {
    each("violations_leavers", |app: Arc<App>| async move {
        let fill = |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            ctx.execute(&SAY_MUCH, params![org, "usr_stays", 20_000, now])?;
            ctx.execute(&SAY_MUCH_OF_POLICIES, params![org, "usr_stays"])?;
            ctx.execute(&USE_MUCH, params![org, "usr_stays", 10_000])?;
            ctx.execute(&SAY_MUCH, params![org, "usr_7", 50, now])?;
            ctx.execute(&SAY_MUCH_OF_POLICIES, params![org, "usr_7"])
                .map(drop)
        };
        app.kernel.system(app.org(), None, fill).await.unwrap();
        assert_eq!(number(&app, &SAID).await, 3 * 20_050);
        // The limit is one of time: this server has a clock that goes.
        let server = app.beside(
            Vec::new(),
            Arc::new(SystemClock::new()),
            app.kernel.settings.clone(),
            app.location(),
        );
        let leave = |ctx: &mut OperationContext<'_>| {
            for number in 0..25 {
                ctx.announce(&PrincipalEnded {
                    kind: SubjectKind::User,
                    id: format!("usr_{number}"),
                    how: Departure::Deleted,
                })?;
            }
            Ok(())
        };
        // A machine that does much else may need another try; seconds of reading would need another one for ever.
        let mut refused = 0;
        while let Err(error) = server.kernel.system(server.org(), None, leave).await {
            refused += 1;
            assert!(refused < 4, "{error}");
        }
        assert_eq!(number(&app, &SAID).await, 3 * 20_000);
        server.kernel.stop().await;
        app.kernel.stop().await;
    });
}

/// A retention that is shortened makes months due at once, and a day has no bound on its lines.
///
/// Proves VI-3.
#[test]
fn what_is_old_goes_in_parts_until_nothing_is_left() {
    each("violations_parts", |app: Arc<App>| async move {
        policies(&app).await;
        decide_one(&app, &json!({ "tool.id": "block" })).await;
        let fill = |ctx: &mut OperationContext<'_>| {
            let org = ctx.org();
            ctx.execute(&COUNT_MUCH, params![org, 20_500])?;
            ctx.execute(&SAY_MUCH, params![org, "usr_1", 2_500, 1])?;
            ctx.execute(&SAY_MUCH_OF_POLICIES, params![org, "usr_1"])
                .map(drop)
        };
        app.kernel.system(app.org(), None, fill).await.unwrap();
        let today = app.now();
        let recent = move |ctx: &mut OperationContext<'_>| {
            let org = ctx.org();
            ctx.execute(&SAY_MUCH, params![org, "usr_2", 3, today])?;
            ctx.execute(&SAY_MUCH_OF_POLICIES, params![org, "usr_2"])
                .map(drop)
        };
        app.kernel.system(app.org(), None, recent).await.unwrap();
        assert_eq!(
            (number(&app, &LINES).await, number(&app, &SAID).await),
            (20_500, 3 * 2_503)
        );
        count(&app).await;
        assert_eq!(
            (number(&app, &LINES).await, number(&app, &SAID).await),
            (0, 3 * 3)
        );
        app.kernel.stop().await;
    });
}

/// All of it goes in the unit in which its subject goes.
///
/// Proves VI-4.
#[test]
fn nobody_says_something_of_more_decisions_than_go_with_them() {
    each("violations_much_said", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let may = token(&workshop, |claims| claims["scope"] = "policies:feedback".into());
        policies(&app).await;
        let decided =
            async || id_of(&decide_one(&app, &json!({ "tool.id": "block", "identity.user_id": ann })).await);
        let (first, second) = (decided().await, decided().await);
        let whose = ann.clone();
        let fill = move |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            ctx.execute(&SAY_MUCH, params![org, whose.as_str(), 49, now])
                .map(drop)
        };
        app.kernel.system(app.org(), None, fill).await.unwrap();
        let given = say(&app, &may, &first, "this is our own build folder")
            .await
            .ok()
            .clone();
        say(&app, &may, &second, "this too")
            .await
            .refused(409, "conflict");
        // What was said before is answered as the first time.
        let again = say(&app, &may, &first, "this is our own build folder").await;
        assert_eq!(again.ok(), &given);
        assert_eq!(number(&app, &SAID).await, 51);
        app.kernel.stop().await;
    });
}

/// Proves VI-3.
#[test]
fn days_that_are_not_listed_are_counted() {
    each("violations_days", |app: Arc<App>| async move {
        policies(&app).await;
        for _ in 0..3 {
            decide_one(&app, &json!({ "tool.id": "block" })).await;
            app.advance(86_400);
        }
        count(&app).await;
        let page = app.get(&format!("{PATH}?groupBy=day&limit=2")).await.ok().clone();
        assert_eq!(
            (
                page["groups"].as_array().unwrap().len(),
                &page["counts"]["groups"]
            ),
            (2, &json!(3))
        );
        app.kernel.stop().await;
    });
}
