//! A clock that is wrong removes nothing and dates nothing (CK-1 to CK-4).

use crate::support::{App, each, fresh_key, with_trio};
use http::StatusCode;
use provost_areas_platform::removal;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::doubt::Doubt;
use provost_kernel::kernel::Extras;
use provost_kernel::time::{Clock, ManualClock, SystemClock};
use provost_kernel::{OperationContext, Result, Timestamp, doubt, params};
use provost_server::areas::{directory, history, mcp_sessions, service_accounts};
use provost_server::background;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

provost_kernel::statements! {
    /// Counts what ends by time.
    EVENTS = "SELECT COUNT(*) FROM outbox WHERE organization_id = ?1";
    /// Counts records of keys.
    KEYS = "SELECT COUNT(*) FROM idempotency_keys WHERE organization_id = ?1";
    /// Makes many events.
    ADD_EVENTS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) INSERT INTO outbox (organization_id, sequence, id, type, time, data) SELECT ?1, 1000000 + CAST(?2 AS BIGINT) + i, 'evt_' || CAST(i AS TEXT), 'directory.user.updated', CAST(?2 AS BIGINT), '{\"userId\":\"usr_01kaf9q2m4x7t8v3c5d6e0g1h2\"}' FROM n";
    /// Finds an account, also a deleted one.
    ACCOUNT = unscoped("an id is unique") "SELECT 1 FROM service_accounts WHERE id = ?1";
}

const DAY: u64 = 86_400;
const DAY_MS: i64 = 86_400_000;

/// Does something beside the server.
fn beside<T: Send>(location: &Location, act: impl FnOnce(&mut Conn) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| act(&mut Conn::open(location, Access::Write).unwrap()));
        run.join().unwrap()
    })
}

/// How much there is of what ends by time: events, records of keys, day keys.
async fn kept(app: &App) -> (i64, i64, usize) {
    let org = app.organization.clone();
    let (events, keys) = app
        .kernel
        .read_system(move |tx| {
            let mut count = |statement| {
                let found = tx.query_opt(statement, params![org.as_str()], |row| row.get::<i64>(0));
                found.map(Option::unwrap)
            };
            Ok((count(&EVENTS)?, count(&KEYS)?))
        })
        .await
        .unwrap();
    let is_day = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("day-");
    let days = std::fs::read_dir(&app.keys_dir).unwrap().filter_map(Result::ok);
    (events, keys, days.filter(is_day).count())
}

async fn every_round(app: &App) {
    background::retain(&app.kernel).await.unwrap();
    history::retain(&app.kernel).await.unwrap();
    mcp_sessions::sweep(&app.kernel).await.unwrap();
    mcp_sessions::retain(&app.kernel).await.unwrap();
    directory::tidy(&app.kernel).await.unwrap();
    service_accounts::warn_of_expiry(&app.kernel).await.unwrap();
}

/// Runs for so often ten minutes.
async fn run(app: &App, times: u32) {
    for _ in 0..times {
        app.advance(600);
        app.kernel.keep_time().await.unwrap();
    }
}

fn accept(ctx: &mut OperationContext<'_>) -> Result<()> {
    let now = ctx.now();
    doubt::accept(&mut ctx.tx(), now)
}

/// Proves CK-1.
#[test]
fn a_clock_that_jumps_ahead_removes_nothing_and_goes_on_serving() {
    each("jump", |app: Arc<App>| async move {
        let (_, short) = app.account("short", "auditor", &["audit:read"]).await;
        app.kernel.keep_time().await.unwrap();
        let before = kept(&app).await;
        assert!(before.0 > 0 && before.1 > 0 && before.2 > 0, "{before:?}");
        app.clock.step_ms(401 * DAY_MS);
        every_round(&app).await;
        app.kernel.keep_time().await.unwrap();
        assert_eq!(kept(&app).await, before);
        assert_eq!(app.kernel.doubt(), Some(Doubt::Moved(401 * DAY_MS)));
        // Nobody is told of an end that there was none of.
        let told = app.events(0).await;
        assert!(told.iter().all(|(kind, _)| !kind.contains("expired")), "{told:?}");
        app.clock.step_ms(-401 * DAY_MS);
        assert_eq!(app.kernel.doubt(), None);
        assert_eq!(app.used(&short).await.0, 200, "a doubted instant is not kept");
        app.account("after", "auditor", &[]).await;
        // The same time, passed: everything goes that has run out.
        app.advance(401 * DAY);
        every_round(&app).await;
        let after = kept(&app).await;
        assert_eq!((after.1, after.2), (0, 0));
    });
}

/// Proves CK-1.
#[test]
fn a_start_after_a_long_stop_removes_nothing_for_a_day_of_running() {
    each("long_stop", |app: Arc<App>| async move {
        app.account("a", "auditor", &[]).await;
        app.kernel.keep_time().await.unwrap();
        let before = kept(&app).await;
        app.advance(40 * DAY);
        let late = app.restarted(Extras::default()).unwrap();
        assert!(matches!(late.kernel.doubt(), Some(Doubt::Stopped(_))));
        run(&late, 70).await;
        every_round(&late).await;
        assert_eq!(kept(&late).await, before);
        // Another start goes on with the count.
        let later = late.restarted(Extras::default()).unwrap();
        run(&later, 74).await;
        assert!(later.kernel.doubt().is_some());
        run(&later, 1).await;
        assert_eq!(later.kernel.doubt(), None);
        every_round(&later).await;
        let after = kept(&later).await;
        assert_eq!((after.1, after.2), (0, 0));
        later.kernel.stop().await;
        late.kernel.stop().await;
    });
}

#[test]
fn an_operator_ends_the_doubt_of_every_server() {
    each("accepted", |app: Arc<App>| async move {
        app.kernel.keep_time().await.unwrap();
        app.clock.step_ms(-10 * DAY_MS);
        assert!(matches!(app.kernel.doubt(), Some(Doubt::Moved(_))));
        let other = app.restarted(Extras::default()).unwrap();
        assert!(matches!(other.kernel.doubt(), Some(Doubt::Behind(_))));
        other
            .kernel
            .system(
                OrganizationId::installation(),
                Some("store.clock_accepted"),
                accept,
            )
            .await
            .unwrap();
        for app in [&*app, &other] {
            app.kernel.keep_time().await.unwrap();
            assert_eq!(app.kernel.doubt(), None);
            assert!(app.kernel.undoubted().await.unwrap().is_some());
        }
        other.kernel.stop().await;
    });
}

/// Proves CK-3.
#[test]
fn what_had_run_out_by_a_kept_instant_stays_so_until_an_operator_sets_it_back() {
    each("kept_instant", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let body = json!({ "expiresInSeconds": 3600 });
        let made = app
            .write("POST", &format!("/service-accounts/{id}/tokens"), body)
            .await;
        let token = made.ok()["token"]["token"].as_str().unwrap().to_owned();
        assert_eq!(app.used(&token).await.0, 200);
        app.advance(3_600);
        app.kernel.keep_time().await.unwrap();
        assert_eq!(app.used(&token).await, (401, "token_expired".into()));
        app.clock.step_ms(-7_200_000);
        assert_eq!(app.used(&token).await, (401, "token_expired".into()));
        let unit = app
            .kernel
            .system(OrganizationId::installation(), Some("test"), accept);
        unit.await.unwrap();
        app.kernel.keep_time().await.unwrap();
        assert_eq!(app.used(&token).await.0, 200);
    });
}

fn add_events(app: &App, at: Timestamp, count: i64) {
    let org = app.organization.clone();
    beside(&app.location(), move |conn| {
        conn.begin(&[]).unwrap();
        let call = provost_kernel::db::Call {
            statement: &ADD_EVENTS,
            params: vec![
                provost_kernel::db::Param::from(org),
                provost_kernel::db::Param::from(at.as_ms()),
                provost_kernel::db::Param::from(count),
            ],
        };
        conn.commit(&[call]).unwrap();
    });
}

/// Proves CK-4.
#[test]
fn a_round_that_would_remove_most_events_waits_a_day_of_running() {
    each("large_round", |app: Arc<App>| async move {
        add_events(&app, app.now(), 1_500);
        app.advance(8 * DAY);
        app.account("newer", "auditor", &[]).await;
        let count = kept(&app).await.0;
        background::retain(&app.kernel).await.unwrap();
        assert_eq!(kept(&app).await.0, count, "it waits");
        for _ in 0..143 {
            app.advance(600);
            background::retain(&app.kernel).await.unwrap();
        }
        assert_eq!(kept(&app).await.0, count, "it still waits");
        app.advance(600);
        background::retain(&app.kernel).await.unwrap();
        assert!(kept(&app).await.0 < count - 1_499);
        // Few of many go at once.
        background::retain(&app.kernel).await.unwrap();
        add_events(&app, app.now(), 1_001);
        app.advance(8 * DAY);
        add_events(&app, app.now(), 9_100);
        background::retain(&app.kernel).await.unwrap();
        assert!(kept(&app).await.0 < 9_200);
    });
}

/// Proves CK-4.
#[test]
fn an_operator_releases_a_large_round() {
    each("released_round", |app: Arc<App>| async move {
        add_events(&app, app.now(), 1_500);
        app.advance(8 * DAY);
        background::retain(&app.kernel).await.unwrap();
        assert!(kept(&app).await.0 >= 1_500);
        let release = |ctx: &mut provost_kernel::OperationContext<'_>| {
            assert_eq!(removal::release(ctx)?, ["removal.events"]);
            Ok(())
        };
        let unit = app
            .kernel
            .system(OrganizationId::installation(), Some("test"), release);
        unit.await.unwrap();
        background::retain(&app.kernel).await.unwrap();
        assert!(kept(&app).await.0 < 1_500);
        // The word was for that round.
        background::retain(&app.kernel).await.unwrap();
        add_events(&app, app.now(), 1_500);
        app.advance(8 * DAY);
        background::retain(&app.kernel).await.unwrap();
        assert!(kept(&app).await.0 >= 1_500);
    });
}

/// Proves CK-1.
#[test]
fn an_account_is_not_purged_by_a_doubted_clock() {
    each("purge_in_doubt", |app: Arc<App>| async move {
        let (id, _) = app.account("gone", "auditor", &[]).await;
        let path = format!("/service-accounts/{id}");
        let gone = app.request("DELETE", &path).header("x-confirm", "true");
        let gone = gone
            .header("x-reason", "r")
            .header("idempotency-key", &fresh_key());
        gone.send().await.ok();
        app.clock.step_ms(401 * DAY_MS);
        let handlers = Arc::new(app.kernel.areas().jobs());
        assert!(
            provost_kernel::jobs::run_due(&app.kernel, &handlers)
                .await
                .unwrap()
                > 0
        );
        let there = || {
            let id = id.clone();
            app.kernel.read_system(move |tx| {
                let found = tx.query_opt(&ACCOUNT, params![id.as_str()], |_| Ok(()))?;
                Ok(found.is_some())
            })
        };
        assert!(there().await.unwrap());
        app.clock.step_ms(-401 * DAY_MS);
        app.advance(402 * DAY);
        provost_kernel::jobs::run_due(&app.kernel, &handlers)
            .await
            .unwrap();
        assert!(!there().await.unwrap());
    });
}

/// The machine's clock, set forward by so much.
struct ShiftedClock {
    true_time: SystemClock,
    by_ms: AtomicI64,
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        self.true_time.now().plus_ms(self.by_ms.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.true_time.monotonic()
    }

    fn keeps_common_time(&self) -> bool {
        true
    }
}

/// Proves CK-2.
#[test]
fn beside_a_database_with_another_time_reads_go_on_and_changes_wait() {
    each("database_time", |app: Arc<App>| async move {
        let clock = Arc::new(ShiftedClock {
            true_time: SystemClock::new(),
            by_ms: AtomicI64::new(0),
        });
        let settings = app.kernel.settings.clone();
        let server = app.beside(Vec::new(), clock.clone(), settings, app.location());
        let is_postgres = matches!(app.location(), Location::Postgres(_));
        let (_, admin) = server.other_organization("Other").await;
        let make = async |key: &str| {
            let body = json!({ "name": key, "permissionRole": "auditor", "allOfRole": true });
            let other = server.view_of("other".to_owned(), admin.clone());
            let call = other.request("POST", "/service-accounts");
            call.json(with_trio(body, key)).send().await
        };
        let (first, second, third) = (fresh_key(), fresh_key(), fresh_key());
        make(&first).await.ok();
        // Also between two questions: nobody asked the database since.
        clock.by_ms.store(61_000, Ordering::SeqCst);
        let refused = make(&second).await;
        let ready = server.request("GET", "").anonymous().at("/readyz").send().await;
        let other = server.view_of("other".to_owned(), admin.clone());
        other.get("/capabilities").await.ok();
        if is_postgres {
            refused.refused(503, "unavailable");
            assert!(refused.text().contains("disagree"), "{}", refused.text());
            assert_eq!(refused.header("retry-after"), "30");
            assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(ready.text().contains("disagree"), "{}", ready.text());
            // What leaves an entry of its reading is a change as well.
            other.get("/service-accounts").await.refused(503, "unavailable");
        } else {
            refused.ok();
            assert_eq!(ready.status, StatusCode::OK);
        }
        // By this clock the token has run out. Who is told so throws it away.
        clock.by_ms.store(401 * DAY_MS, Ordering::SeqCst);
        for refused in [make(&third).await, other.get("/capabilities").await] {
            if is_postgres {
                refused.refused(503, "unavailable");
            } else {
                refused.refused(401, "token_expired");
            }
        }
        clock.by_ms.store(59_000, Ordering::SeqCst);
        make(&third).await.ok();
        make(&second).await.ok();
        server.kernel.stop().await;
    });
}

/// Proves CK-2.
#[test]
fn a_server_with_a_wrong_clock_starts_beside_its_database_and_changes_nothing() {
    each("wrong_start", |app: Arc<App>| async move {
        if matches!(app.location(), Location::Sqlite(_)) {
            return;
        }
        let clock = Arc::new(ShiftedClock {
            true_time: SystemClock::new(),
            by_ms: AtomicI64::new(-401 * DAY_MS),
        });
        let server = app.beside(
            Vec::new(),
            clock.clone(),
            app.kernel.settings.clone(),
            app.location(),
        );
        assert!(matches!(server.kernel.doubt(), Some(Doubt::Database(_))));
        assert!(server.kernel.disagreement().is_some());
        assert!(server.kernel.undoubted().await.unwrap().is_none());
        let unit = server
            .kernel
            .system(OrganizationId::installation(), None, |_| Ok(()));
        assert!(unit.await.is_err());
        clock.by_ms.store(0, Ordering::SeqCst);
        assert!(server.kernel.disagreement().is_none());
        server.kernel.stop().await;
    });
}

#[test]
fn a_manual_clock_is_nobodys_time() {
    assert!(!ManualClock::new(Timestamp::EPOCH).keeps_common_time());
    assert!(SystemClock::new().keeps_common_time());
    let clock = SystemClock::new();
    assert!(clock.since_boot() > Duration::ZERO);
}
