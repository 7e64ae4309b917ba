//! How much the inventory keeps, and how it says that it does not keep more.

use super::inventory::{decide, held, in_days, of_key, prune, servers};
use crate::areas::fleet::Machine;
use crate::areas::inventory::{SERVERS, report, section, server, skill};
use crate::support::{App, START, each, each_with};
use provost_kernel::db::Statement;
use provost_kernel::kernel::Settings;
use provost_kernel::time::Clock;
use provost_kernel::{OperationContext, Timestamp, params};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

provost_kernel::statements! {
    /// As many servers as an organization may know.
    FILL = "INSERT INTO inventory_servers (organization_id, id, seq, key, name, search, standing, found_on, standing_at, first_seen_at, last_seen_at, updated_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT CAST(?1 AS TEXT), 'srv_' || i, i, 'npm:full' || i, 'full', 'npm:full' || i, 'shadow', 'dev_other', CAST(?2 AS BIGINT), CAST(?2 AS BIGINT), CAST(?2 AS BIGINT), CAST(?2 AS BIGINT) FROM n";
    /// How many servers are known.
    LEFT = unscoped("a test") "SELECT COUNT(*) FROM inventory_servers";
    /// Has more be there of a device than it may have.
    OVERFILL = "INSERT INTO inventory_observations (organization_id, id, seq, device_id, client, account, kind, ident, is_weak, facts, first_seen_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT CAST(?1 AS TEXT), 'obs_' || CAST(i AS TEXT), i, CAST(?2 AS TEXT), 'claude_code', 'ada', 'hook', 'hook' || CAST(i AS TEXT), i < 0, '{}', CAST(?4 AS BIGINT) FROM n";
    /// Of how many devices something is still to be ended.
    LEFTOVERS = unscoped("a test") "SELECT COUNT(*) FROM inventory_leftovers";
    /// How many observations are removed.
    GONE = unscoped("a test") "SELECT COUNT(*) FROM inventory_observations WHERE removed_at IS NOT NULL";
}

/// A server that bounds what everybody asks.
fn limited() -> Settings {
    Settings {
        rate_limits: true,
        ..Settings::default()
    }
}

fn many(from: usize, to: usize) -> Value {
    (from..to)
        .map(|n| server(&format!("s{n}"), &format!("npm:s{n}"), false))
        .collect()
}

async fn age(app: &App) -> Value {
    app.get("/inventory/summary").await.ok()["dataAge"].clone()
}

/// Proves IN-8.
#[test]
fn a_device_has_no_more_than_its_part_and_what_is_not_kept_is_asked_for_again() {
    each("inventory_bounds", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let few = |from: usize, to: usize| -> Value {
            (from..to)
                .map(|n| server(&format!("s{n}"), &format!("npm:s{}", n % 7), false))
                .collect()
        };
        laptop.has(&app, "ada", &few(0, 1_500)).await.ok();
        let whole = section("bob", &few(0, 600), true);
        let body = report(&app, 0, &json!([whole]));
        let answer = laptop.report(&app, body.clone()).await.ok().clone();
        assert_eq!(
            (&answer["truncated"], &answer["notKept"]),
            (&json!(true), &json!(100))
        );
        let counted: i64 = servers(&app, "")
            .await
            .iter()
            .map(|one| one["instances"].as_i64().unwrap())
            .sum();
        assert_eq!(counted, 2_000);
        let sections = held(&app, &laptop).await["sections"].clone();
        assert_eq!(
            (
                &sections[0]["truncated"],
                &sections[1]["truncated"],
                &sections[1]["notKept"]
            ),
            (&json!(false), &json!(true), &json!(100))
        );
        assert_eq!(age(&app).await["notKept"], 100);
        // Of a section that is not wholly kept no digest is known, so that it is sent whole again, and then there is room.
        let unchanged = json!([{ "client": "claude_code", "user": "bob", "digest": whole["digest"] }]);
        let mut again = report(&app, 0, &json!([]));
        again["unchanged"] = unchanged;
        let asked = laptop.report(&app, again.clone()).await.ok().clone();
        assert_eq!(asked["unknownDigests"], json!([whole["digest"]]));
        laptop.has(&app, "ada", &json!([])).await.ok();
        let answer = laptop.report(&app, body).await.ok().clone();
        assert_eq!(
            (&answer["truncated"], &answer["notKept"]),
            (&json!(false), &json!(0))
        );
        assert_eq!(age(&app).await["notKept"], 0);
        assert_eq!(of_key(&app, "npm:s0").await["instances"], 86);
        let known = laptop.report(&app, again).await.ok().clone();
        assert_eq!(known["unknownDigests"], json!([]));
        // Two sections hold more than one report may.
        let two = json!([
            section("ada", &few(0, 1_500), true),
            section("bob", &few(0, 600), true)
        ]);
        let much = laptop.report(&app, report(&app, 0, &two)).await;
        much.refused(400, "invalid_request");
        app.kernel.stop().await;
    });
}

/// Proves IN-8.
#[test]
fn one_device_makes_only_so_much_known_and_hides_nothing_of_others() {
    // No limit of requests is on.
    each("inventory_of_device", |app: Arc<App>| async move {
        let (greedy, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let first = greedy.has(&app, "a", &many(0, 510)).await.ok().clone();
        assert_eq!(first["notKept"], 10, "500 are news within five hours");
        app.advance(5 * 3_600 - 1);
        let again = greedy.has(&app, "a", &many(0, 510)).await.ok().clone();
        assert_eq!(again["notKept"], 10, "in whatever reports they come");
        app.advance(2);
        greedy.has(&app, "b", &many(1_000, 1_500)).await.ok();
        let full = greedy.has(&app, "c", &many(2_000, 2_010)).await.ok().clone();
        assert_eq!(full["notKept"], 10, "one device makes 1000 known");
        assert_eq!(servers(&app, "?query=npm%3As2000").await.len(), 0);
        app.advance(5 * 3_600);
        let kept = other.has(&app, "c", &many(2_000, 2_010)).await.ok().clone();
        assert_eq!(kept["notKept"], 0);
        let seen = greedy.has(&app, "c", &many(2_000, 2_010)).await.ok().clone();
        assert_eq!(seen["notKept"], 0, "what is known it has like everybody");
        // What it had and has no more is kept up to a bound, and hides no server: that stays as long as what is removed.
        for account in ["a", "b"] {
            greedy.has(&app, account, &json!([])).await.ok();
        }
        let left = app
            .kernel
            .read_system(|tx| tx.query(&GONE, params![], |row| row.get::<i64>(0)));
        assert_eq!(left.await.unwrap(), [500]);
        assert_eq!(servers(&app, "?query=npm%3As499").await.len(), 1);
        assert_eq!(servers(&app, "?query=npm%3As1499").await.len(), 1);
        app.kernel.stop().await;
    });
}

/// Proves IN-8.
#[test]
fn an_organization_that_is_full_says_so_and_still_sees_what_it_knows() {
    each("inventory_full", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let run = move |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            ctx.execute(&FILL, params![org, now]).map(|_| ())
        };
        app.kernel
            .system(app.org(), Some("test.filled"), run)
            .await
            .unwrap();
        assert_eq!(age(&app).await["full"], json!(["mcp_servers"]));
        let mut found = many(0, 400);
        found
            .as_array_mut()
            .unwrap()
            .push(server("known", "npm:full7", false));
        found.as_array_mut().unwrap().push(skill("pdf", "a"));
        let answer = laptop.has(&app, "ada", &found).await.ok().clone();
        assert_eq!(
            (&answer["notKept"], &answer["truncated"]),
            (&json!(400), &json!(true))
        );
        let listed = app
            .get(&format!("{SERVERS}?query=full7&limit=1"))
            .await
            .ok()
            .clone();
        assert_eq!(listed["dataAge"]["notKept"], 400);
        assert_eq!(listed["dataAge"]["full"], json!(["mcp_servers"]));
        let kept = held(&app, &laptop).await["observations"].clone();
        assert_eq!(kept.as_array().unwrap().len(), 2);
        app.kernel.stop().await;
    });
}

/// A device has no more than its part, unless something went wrong; a round goes by the devices of which more was there, and there are none.
#[test]
fn what_is_there_of_a_retired_device_beyond_its_part_is_ended_by_rounds() {
    each("inventory_leftovers", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let device = laptop.id.clone();
        let run = move |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            ctx.execute(&OVERFILL, params![org, device.as_str(), 3_200, now])
                .map(|_| ())
        };
        app.kernel
            .system(app.org(), Some("test.filled"), run)
            .await
            .unwrap();
        for machine in [&laptop, &other] {
            let retire = format!("/devices/{}/retire", machine.id);
            app.write("POST", &retire, json!({ "confirm": true })).await.ok();
        }
        let count = async |statement: &'static Statement| {
            let counted = app
                .kernel
                .read_system(move |tx| tx.query_opt(statement, params![], |row| row.get::<i64>(0)));
            counted.await.unwrap()
        };
        for (gone, left) in [(2_500, 1), (3_000, 1), (3_200, 0)] {
            assert_eq!(
                (count(&GONE).await, count(&LEFTOVERS).await),
                (Some(gone), Some(left))
            );
            prune(&app).await;
        }
        assert_eq!(count(&GONE).await, Some(3_200));
        app.kernel.stop().await;
    });
}

#[test]
fn a_round_removes_so_much_that_others_have_time_left() {
    each("inventory_round", |app: Arc<App>| async move {
        let run = move |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            ctx.execute(&FILL, params![org, now]).map(|_| ())
        };
        app.kernel
            .system(app.org(), Some("test.filled"), run)
            .await
            .unwrap();
        app.advance(91 * 86_400);
        for left in [49_500, 49_000] {
            prune(&app).await;
            let counted = app
                .kernel
                .read_system(|tx| tx.query(&LEFT, params![], |row| row.get::<i64>(0)));
            assert_eq!(counted.await.unwrap(), [left]);
        }
        app.kernel.stop().await;
    });
}

/// Proves IN-6.
#[test]
fn a_server_that_is_weak_in_every_place_reads_shadow_everywhere() {
    each("inventory_weak", |app: Arc<App>| async move {
        let (one, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let mut inner = server("developer", "builtin:goose/developer", false);
        inner["transport"] = json!("stdio");
        one.has(
            &app,
            "ada",
            &json!([server("files", "npm:files", false), inner.clone()]),
        )
        .await
        .ok();
        assert_eq!(
            of_key(&app, "builtin:goose/developer").await["standing"],
            "shadow",
            "another client than Goose has nothing of Goose within itself"
        );
        let approve = json!({ "standing": "approved", "expiresAt": in_days(&app, 5) });
        decide(&app, &of_key(&app, "npm:files").await, approve).await.ok();
        let stand = async || {
            let summary = app.get("/inventory/summary").await.ok().clone();
            let path = format!(
                "{SERVERS}/{}",
                of_key(&app, "npm:files").await["id"].as_str().unwrap()
            );
            (
                app.get(&path).await.ok()["server"]["standing"].clone(),
                servers(&app, "?standing=approved").await.len(),
                servers(&app, "?standing=shadow").await.len(),
                summary["servers"].clone(),
            )
        };
        let both = json!([{ "standing": "approved", "servers": 1 }, { "standing": "shadow", "servers": 1 }]);
        assert_eq!(stand().await, (json!("approved"), 1, 1, both.clone()));
        one.has(&app, "ada", &json!([server("files", "npm:files", true), inner]))
            .await
            .ok();
        let all = json!([{ "standing": "shadow", "servers": 2 }]);
        assert_eq!(stand().await, (json!("shadow"), 0, 2, all));
        other
            .has(&app, "bob", &json!([server("files", "npm:files", false)]))
            .await
            .ok();
        assert_eq!(stand().await.0, json!("approved"));
        // A program that runs what it is told is weak whatever its device says.
        other
            .has(&app, "bob", &json!([server("run", "npm:tsx", false)]))
            .await
            .ok();
        assert_eq!(of_key(&app, "npm:tsx").await["weakInstances"], 1);
        app.kernel.stop().await;
    });
}

#[test]
fn what_is_no_report_costs_its_device_as_much_as_one() {
    each_with("inventory_limit", &limited(), |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let mut bad = report(&app, 0, &json!([]));
        bad["scanId"] = json!("not one");
        for _ in 0..20 {
            laptop
                .report(&app, bad.clone())
                .await
                .refused(400, "invalid_request");
        }
        laptop.report(&app, bad).await.refused(429, "rate_limited");
        app.kernel.stop().await;
    });
}

/// Proves IN-3.
#[test]
fn a_count_that_is_far_ahead_is_refused_and_ends_nothing() {
    each("inventory_counted", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let counted = |counter: i64| {
            let mut body = report(&app, 0, &json!([section("ada", &many(0, 1), true)]));
            (body["counter"], body["scanId"]) = (json!(counter), json!(format!("scan-{counter}")));
            body
        };
        let far = laptop.report(&app, counted(9_007_199_254_740_991)).await;
        far.refused(400, "invalid_request");
        laptop.report(&app, counted(12)).await.ok();
        let far = laptop.report(&app, counted(1_000_013)).await;
        far.refused(400, "invalid_request");
        assert_eq!(laptop.report(&app, counted(13)).await.ok()["accepted"], 1);
        app.kernel.stop().await;
    });
}

/// A clock that is further at each look than one unit may take.
#[derive(Default)]
struct SlowClock(AtomicU64);

impl Clock for SlowClock {
    fn now(&self) -> Timestamp {
        START
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(251 * self.0.fetch_add(1, Ordering::SeqCst))
    }
}

#[test]
fn a_report_that_takes_longer_than_one_unit_may_is_refused_and_taken_when_it_is_sent_again() {
    each("inventory_slow", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let slow = app.beside(
            Vec::new(),
            Arc::new(SlowClock::default()),
            app.kernel.settings.clone(),
            app.location(),
        );
        let body = report(&app, 0, &json!([section("ada", &many(0, 3), true)]));
        let reply = laptop.report(&slow, body.clone()).await;
        reply.refused(503, "unavailable");
        assert_eq!(reply.header("retry-after"), "1");
        assert!(
            reply.text().contains("longer than one unit of work may"),
            "{}",
            reply.text()
        );
        slow.kernel.stop().await;
        // No half of it is there, and nothing of it is taken for known.
        assert!(servers(&app, "").await.is_empty());
        assert_eq!(held(&app, &laptop).await["lastScan"], Value::Null);
        let taken = laptop.report(&app, body).await.ok().clone();
        assert_eq!((&taken["accepted"], &taken["notKept"]), (&json!(1), &json!(0)));
        assert_eq!(servers(&app, "").await.len(), 3);
        app.kernel.stop().await;
    });
}
