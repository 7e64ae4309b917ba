//! The unit of work under test operations: what goes wrong in one unit, clients that leave, lost connections,
//! two servers on one store, jobs and warnings (invariants WK-1 to WK-3, JB-1).

use crate::support::{App, Dice, each, fresh_key, with_trio, workload};
use provost_kernel::db::{Access as Mode, Conn, Location, PostgresUrl};
use provost_kernel::error::{Code, Error};
use provost_kernel::event::{EventData, EventOf};
use provost_kernel::fence::{Readers, TargetKind};
use provost_kernel::jobs::{self, Handler, NewJob, Work};
use provost_kernel::kernel::Settings;
use provost_kernel::operation::{Access, Empty, Entry, Input, Meta, Method, Operation};
use provost_kernel::time::SystemClock;
use provost_kernel::{OperationContext, Result, Secret, Timestamp, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

provost_kernel::statements! {
    /// A statement that takes part in the unit.
    ONE = unscoped("reads nothing") "SELECT 1";
    /// One that fails on both engines: the least number has no opposite.
    BROKEN = "SELECT 1 FROM organizations WHERE organization_id = ?1 AND ABS(CAST(?2 AS BIGINT)) > 0";
    /// The jobs of an organization.
    JOBS = "SELECT kind, state, attempts, run_at, last_error FROM jobs WHERE organization_id = ?1 ORDER BY kind";
    /// Another worker takes the lease of the jobs of a kind.
    STEAL = "UPDATE jobs SET lease_epoch = lease_epoch + 1 WHERE organization_id = ?1 AND kind = ?2";
    /// The rows of an account.
    ACCOUNT_ROWS = "SELECT (SELECT COUNT(*) FROM service_accounts WHERE organization_id = ?1 AND id = ?2) + (SELECT COUNT(*) FROM service_account_tokens WHERE organization_id = ?1 AND service_account_id = ?2)";
    /// Ends the connections of one server.
    TERMINATE = unscoped("a test ends its own server's connections") "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = ?1 AND pid <> pg_backend_pid()";
}

/// A write that does what its body says, and leaves one event when it is done.
struct Act;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActBody {
    act: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActQuery {
    word: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct WriteOutcome {
    id: String,
}

static ACT: TargetKind = TargetKind::new("act", Readers::Everybody);
static ACTED: EventOf<Anything> = EventOf::new("test.acted", Readers::Everybody, "Somebody acted.");

/// Data of any shape.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Anything(Value);

impl EventData for Anything {
    const EXAMPLE: &'static str = "{}";
}

impl Operation for Act {
    const META: Meta =
        Meta::write("actInTest", Method::Post, "/acts", "operations").rule(Access::Authenticated);
    type Path = Empty;
    type Query = ActQuery;
    type Body = ActBody;
    type Output = WriteOutcome;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<WriteOutcome> {
        let mut bytes = [0; 8];
        ctx.rng().fill(&mut bytes);
        let id = format!("{:016x}", u64::from_be_bytes(bytes));
        ctx.target(&ACT, id.as_str());
        ctx.emit(
            &ACTED,
            &Anything(json!({ "id": id, "act": input.body.act, "word": input.query.word })),
        );
        match input.body.act.as_str() {
            "panic" => panic!("a unit that panics"),
            "refuse" => return Err(Error::new(Code::Conflict, "a unit that is refused")),
            "slow" => {
                std::thread::sleep(Duration::from_millis(300));
                ctx.query(&ONE, params![], |_| Ok(()))?;
            }
            // A unit that ignores a storage error must not be kept.
            "ignore" => {
                let organization = ctx.org();
                drop(ctx.query(&BROKEN, params![organization, i64::MIN], |_| Ok(())));
            }
            _ => drop(ctx.query(&ONE, params![], |_| Ok(()))?),
        }
        Ok(WriteOutcome { id })
    }
}

fn settings() -> Settings {
    Settings {
        rate_limits: false,
        max_in_flight: 1024,
        ..Settings::default()
    }
}

/// The application on the same store with the test operation and a real clock.
fn acting(app: &App, settings: Settings) -> Arc<App> {
    Arc::new(app.beside(
        vec![Entry::of::<Act>()],
        Arc::new(SystemClock::new()),
        settings,
        app.location(),
    ))
}

async fn act(app: &App, what: &str, key: &str) -> crate::support::Reply {
    app.request("POST", "/acts")
        .json(with_trio(json!({ "act": what }), key))
        .send()
        .await
}

async fn acted(app: &App) -> Vec<Value> {
    let events = app.events(0).await;
    events
        .into_iter()
        .filter(|(kind, _)| kind == "test.acted")
        .map(|(_, data)| data)
        .collect()
}

#[test]
fn a_unit_that_fails_costs_only_itself() {
    each("units", |outer: Arc<App>| async move {
        let app = acting(&outer, settings());
        let mut dice = Dice::new("units");
        let mut ok = 0;
        for _ in 0..10 {
            let mut storm = JoinSet::new();
            for _ in 0..40 {
                let what = *dice.pick(&["ok", "ok", "ok", "panic", "refuse"]);
                let app = app.clone();
                storm.spawn(async move { (what, act(&app, what, &fresh_key()).await) });
            }
            for (what, reply) in storm.join_all().await {
                let expected = match what {
                    "ok" => (200, ""),
                    "panic" => (500, "internal"),
                    _ => (409, "conflict"),
                };
                assert_eq!(
                    (reply.status.as_u16(), reply.code()),
                    expected,
                    "{}",
                    reply.text()
                );
                ok += usize::from(what == "ok");
            }
        }
        let done = acted(&app).await;
        assert_eq!(done.len(), ok);
        assert!(done.iter().all(|data| data["act"] == "ok"));
        assert_gap_free(&app).await;
        app.kernel.stop().await;
    });
}

#[test]
fn a_unit_that_ignores_a_storage_error_is_not_kept() {
    each("ignored", |outer: Arc<App>| async move {
        let app = acting(&outer, settings());
        let reply = act(&app, "ignore", &fresh_key()).await;
        reply.refused(500, "internal");
        assert!(acted(&app).await.is_empty());
        assert_eq!(act(&app, "ok", &fresh_key()).await.status.as_u16(), 200);
        app.kernel.stop().await;
    });
}

#[test]
fn a_unit_that_takes_too_long_is_refused_and_its_key_is_free() {
    each("slow", |outer: Arc<App>| async move {
        let app = acting(&outer, settings());
        let key = fresh_key();
        let (slow, quick) = tokio::join!(
            act(&app, "slow", &key),
            act(&app, "ok", "a-quick-one-of-22-chars")
        );
        slow.refused(503, "unavailable");
        assert_eq!(slow.header("retry-after"), "1");
        quick.ok();
        assert_eq!(acted(&app).await.len(), 1);
        act(&app, "ok", &key).await.ok();
        app.kernel.stop().await;
    });
}

#[test]
fn the_query_is_part_of_the_fingerprint() {
    each("query", |outer: Arc<App>| async move {
        let app = acting(&outer, settings());
        let body = with_trio(json!({ "act": "ok" }), &fresh_key());
        let send = |path: &'static str| app.request("POST", path).json(body.clone()).send();
        let first = send("/acts?word=a%20b").await;
        first.ok();
        assert_eq!(
            send("/acts?word=a+b").await.bytes,
            first.bytes,
            "the same word, written otherwise"
        );
        send("/acts?word=other")
            .await
            .refused(422, "idempotency_mismatch");
        send("/acts").await.refused(422, "idempotency_mismatch");
        assert_eq!(acted(&app).await.len(), 1);
        app.kernel.stop().await;
    });
}

/// Keeps the writer of the organization busy for a while.
fn occupy(app: &App, ms: u64) -> impl Future<Output = Result<()>> + use<> {
    let (kernel, org) = (app.kernel.clone(), app.org());
    async move {
        kernel
            .system(org, None, move |_| {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(())
            })
            .await
    }
}

#[test]
fn a_client_that_left_is_not_served() {
    each("gone", |outer: Arc<App>| async move {
        let app = acting(&outer, settings());
        let mut busy = JoinSet::new();
        busy.spawn(occupy(&app, 500));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut storm = JoinSet::new();
        for _ in 0..20 {
            let app = app.clone();
            storm.spawn(async move { act(&app, "ok", &fresh_key()).await });
        }
        while app.kernel.waiting_units() < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        storm.shutdown().await;
        busy.join_next().await.unwrap().unwrap().unwrap();
        act(&app, "ok", &fresh_key()).await.ok();
        assert_eq!(acted(&app).await.len(), 1, "only the one that waited");
        app.kernel.stop().await;
    });
}

#[test]
fn a_unit_that_waited_too_long_is_refused() {
    each("waited", |outer: Arc<App>| async move {
        let app = acting(
            &outer,
            Settings {
                queue_deadline: Duration::from_millis(100),
                ..settings()
            },
        );
        let mut busy = JoinSet::new();
        busy.spawn(occupy(&app, 400));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let key = fresh_key();
        act(&app, "ok", &key).await.refused(503, "unavailable");
        busy.join_next().await.unwrap().unwrap().unwrap();
        assert!(acted(&app).await.is_empty());
        act(&app, "ok", &key).await.ok();
        app.kernel.stop().await;
    });
}

/// Asserts that the numbers of entries and events have no gap.
async fn assert_gap_free(app: &App) {
    app.settle().await;
    let entries = app.entries(&app.organization, 0).await;
    let numbers: Vec<_> = entries.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
    let lines = app.get("/audit/export?limit=10000").await;
    crate::platform::audit_complete::assert_chain(
        &lines.text().lines().map(str::to_owned).collect::<Vec<_>>(),
    );
}

#[test]
fn two_servers_on_one_store_act_as_one() {
    each("two_servers", |outer: Arc<App>| async move {
        if matches!(outer.location(), Location::Sqlite(_)) {
            return; // one server owns a file (D12.10)
        }
        let servers = [acting(&outer, settings()), acting(&outer, settings())];
        let (mut storm, mut answers) = (JoinSet::new(), Vec::new());
        let keys: Vec<String> = (0..workload("PROVOST_TEST_TWO_SERVERS", 50, 150))
            .map(|_| fresh_key())
            .collect();
        for key in &keys {
            for server in &servers {
                let (server, key) = (server.clone(), key.clone());
                storm.spawn(async move { (key.clone(), act(&server, "ok", &key).await) });
            }
            while storm.len() > 100 {
                answers.push(storm.join_next().await.unwrap().unwrap());
            }
        }
        answers.extend(storm.join_all().await);
        for key in &keys {
            answers.push((key.clone(), act(&servers[0], "ok", key).await));
        }
        answers.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(answers.len(), keys.len() * 3);
        for pair in answers.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            pair[0].1.ok();
            assert_eq!(pair[0].1.bytes, pair[1].1.bytes);
        }
        assert_eq!(acted(&servers[0]).await.len(), keys.len());
        assert_gap_free(&servers[1]).await;
        for server in &servers {
            server.kernel.stop().await;
        }
    });
}

/// Proves WK-3.
#[test]
fn a_lost_connection_loses_and_doubles_nothing() {
    each("lost_connections", |outer: Arc<App>| async move {
        let Location::Postgres(url) = outer.location() else {
            return; // a file has no connection to lose
        };
        let name = format!("provost_test_{}", fresh_key());
        let own = if url.expose().contains("://") {
            format!("{}&application_name={name}", url.expose())
        } else {
            format!("{} application_name={name}", url.expose())
        };
        let location = Location::Postgres(PostgresUrl::new(Secret::new(own)));
        let app = outer.beside(
            vec![Entry::of::<Act>()],
            Arc::new(SystemClock::new()),
            settings(),
            location,
        );
        let app = Arc::new(app);
        let mut clients = JoinSet::new();
        for _ in 0..8 {
            let app = app.clone();
            clients.spawn(async move {
                let mut ids = Vec::new();
                for _ in 0..workload("PROVOST_TEST_LOST", 20, 60) {
                    let key = fresh_key();
                    // A client that is told to try again does so with its key.
                    let reply = loop {
                        let reply = act(&app, "ok", &key).await;
                        if reply.status.as_u16() != 503 {
                            break reply;
                        }
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    };
                    ids.push(reply.ok()["id"].as_str().unwrap().to_owned());
                    // A repetition tells the same.
                    if ids.len().is_multiple_of(10) {
                        let again = act(&app, "ok", &key).await;
                        assert!(again.status.as_u16() == 503 || again.bytes == reply.bytes);
                    }
                }
                ids
            });
        }
        let plain = outer.location();
        let killer = tokio::task::spawn_blocking(move || {
            let mut conn = Conn::open(&plain, Mode::Read).unwrap();
            let mut killed = 0;
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(25));
                let ask = |tx: &mut provost_kernel::db::Tx<'_>| {
                    tx.query_opt(&TERMINATE, params![name.as_str()], |row| row.get::<i64>(0))
                };
                killed += conn.read(ask).unwrap().unwrap_or(0);
            }
            killed
        });
        let mut ids = clients.join_all().await.concat();
        assert!(killer.await.unwrap() > 0, "connections were ended");
        let mut done: Vec<_> = acted(&outer)
            .await
            .iter()
            .map(|d| d["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort_unstable();
        done.sort_unstable();
        assert_eq!(ids, done, "every acknowledged effect is there once, and no other");
        assert_gap_free(&outer).await;
        app.kernel.stop().await;
    });
}

async fn jobs_of(app: &App) -> Vec<(String, String, i64, i64, Option<String>)> {
    let org = app.organization.clone();
    let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
        tx.query(&JOBS, params![org.as_str()], |row| {
            let run_at: Timestamp = row.get(3)?;
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, run_at.as_ms(), row.get(4)?))
        })
    };
    app.kernel.read_system(read).await.unwrap()
}

async fn enqueue(app: &App, kinds: &'static [&'static str]) {
    let run = move |ctx: &mut OperationContext<'_>| {
        for kind in kinds {
            ctx.enqueue(NewJob {
                kind,
                payload: json!({ "kind": kind }),
                run_at: ctx.now(),
            });
        }
        Ok(())
    };
    app.kernel.system(app.org(), None, run).await.unwrap();
}

fn handlers() -> Arc<Vec<Handler>> {
    #[expect(clippy::unnecessary_wraps, reason = "the signature of every handler")]
    fn done(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
        ctx.emit(&ACTED, &Anything(payload.clone()));
        Ok(())
    }
    fn fails(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
        ctx.emit(&ACTED, &Anything(payload.clone()));
        Err(Error::new(Code::Conflict, "not yet"))
    }
    fn panics(_: &mut OperationContext<'_>, _: &Value) -> Result<()> {
        panic!("a job that panics")
    }
    fn steals(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
        let org = ctx.org();
        let other = if payload["kind"] == "thief-a" {
            "thief-b"
        } else {
            "thief-a"
        };
        ctx.execute(&STEAL, params![org, other])?;
        ctx.emit(&ACTED, &Anything(payload.clone()));
        Ok(())
    }
    let handler = |kind, run| Handler {
        kind,
        action: "test.job",
        work: Work::Inside(run),
    };
    Arc::new(vec![
        handler("fails", fails),
        handler("panics", panics),
        handler("thief-a", steals),
        handler("thief-b", steals),
        handler("works", done),
    ])
}

#[test]
fn a_job_runs_once_and_a_failing_one_rests_longer_each_time_until_it_is_dead() {
    each("jobs", |app: Arc<App>| async move {
        let handlers = handlers();
        enqueue(&app, &["works", "fails", "panics", "unknown"]).await;
        let workers = (
            jobs::run_due(&app.kernel, &handlers),
            jobs::run_due(&app.kernel, &handlers),
        );
        let (one, other) = tokio::join!(workers.0, workers.1);
        assert_eq!(one.unwrap() + other.unwrap(), 4, "no job is claimed twice");
        let left = jobs_of(&app).await;
        let names: Vec<_> = left.iter().map(|j| j.0.as_str()).collect();
        assert_eq!(names, ["fails", "panics", "unknown"]);
        assert_eq!(acted(&app).await.len(), 1, "what failed left nothing");
        for attempt in 1..=jobs::MAX_ATTEMPTS {
            let pause_ms = (10 << attempt) * 1000;
            for (kind, state, attempts, run_at, error) in jobs_of(&app).await {
                let expected = if attempt == jobs::MAX_ATTEMPTS {
                    "dead"
                } else {
                    "queued"
                };
                assert_eq!((state.as_str(), attempts), (expected, attempt), "{kind}");
                assert_eq!(run_at, app.now().as_ms() + pause_ms);
                assert!(error.is_some_and(|e| !e.is_empty()));
            }
            app.clock
                .advance(Duration::from_millis(u64::try_from(pause_ms - 1).unwrap()));
            assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), 0);
            app.clock.advance(Duration::from_millis(1));
            let due = if attempt == jobs::MAX_ATTEMPTS { 0 } else { 3 };
            assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), due);
        }
        assert_eq!(acted(&app).await.len(), 1);
    });
}

/// Proves JB-1.
#[test]
fn a_job_whose_lease_passed_on_has_no_effect() {
    each("fencing", |app: Arc<App>| async move {
        enqueue(&app, &["thief-a", "thief-b"]).await;
        assert_eq!(jobs::run_due(&app.kernel, &handlers()).await.unwrap(), 2);
        let done = acted(&app).await;
        assert_eq!(done.len(), 1);
        let left = jobs_of(&app).await;
        let (kind, state, attempts, _, error) = &left[0];
        assert_ne!(
            done[0]["kind"],
            kind.as_str(),
            "whoever came first stole the other's lease"
        );
        assert_eq!(
            (left.len(), state.as_str(), *attempts, error),
            (1, "queued", 1, &None)
        );
        // The lease is held for a minute; then whoever comes runs the job.
        assert_eq!(jobs::run_due(&app.kernel, &handlers()).await.unwrap(), 0);
        app.advance(60);
        assert_eq!(jobs::run_due(&app.kernel, &handlers()).await.unwrap(), 1);
        assert_eq!(acted(&app).await.len(), 2);
        assert!(jobs_of(&app).await.is_empty());
    });
}

#[test]
fn a_deleted_account_is_removed_after_thirty_days() {
    each("purge", |app: Arc<App>| async move {
        let handlers = Arc::new(app.kernel.areas().jobs());
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let rows = async || {
            let (org, id) = (app.organization.clone(), id.clone());
            let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
                tx.query_opt(&ACCOUNT_ROWS, params![org.as_str(), id.as_str()], |row| {
                    row.get::<i64>(0)
                })
            };
            app.kernel.read_system(read).await.unwrap().unwrap()
        };
        assert_eq!(
            app.delete(&format!("/service-accounts/{id}"))
                .await
                .status
                .as_u16(),
            204
        );
        app.clock.advance(Duration::from_millis(30 * 86_400_000 - 1));
        assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), 0);
        assert_eq!(rows().await, 2);
        app.clock.advance(Duration::from_millis(1));
        assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), 1);
        assert_eq!(rows().await, 0);
        let last = app.entries(&app.organization, 0).await.pop().unwrap();
        assert_eq!(
            (&last["action"], &last["target"]["id"]),
            (&json!("service_account.purged"), &json!(id))
        );
        assert_eq!(last["actor"]["type"], "system");
        assert_eq!(jobs::run_due(&app.kernel, &handlers).await.unwrap(), 0);
    });
}

#[test]
fn an_owner_is_warned_once_at_each_distance_from_the_end() {
    each("warnings", |app: Arc<App>| async move {
        let body = |name: &str, secs: i64| json!({ "name": name, "permissionRole": "viewer", "allOfRole": true, "expiresInSeconds": secs });
        let made = app
            .write("POST", "/service-accounts", body("long", 20 * 86_400))
            .await;
        let id = made.ok()["token"]["id"].as_str().unwrap().to_owned();
        let start = app.now().as_ms();
        let mut told: Vec<(i64, String)> = Vec::new();
        let mut seen = app.events(0).await.len();
        for _ in 0..(21 * 24) {
            app.advance(3600);
            // Two reconcilers at once, as two servers have them.
            let (one, other) = tokio::join!(
                provost_areas_identity::service_accounts::warn_of_expiry(&app.kernel),
                provost_areas_identity::service_accounts::warn_of_expiry(&app.kernel)
            );
            assert!(one.is_ok() && other.is_ok());
            let events = app.events(i64::try_from(seen).unwrap()).await;
            seen += events.len();
            for (kind, data) in events {
                assert_eq!(data["tokenId"], id.as_str());
                told.push(((app.now().as_ms() - start) / 3_600_000, kind));
            }
        }
        let (expiring, expired) = ("service_account.token.expiring", "service_account.token.expired");
        let days = |left: i64, kind: &str| ((20 - left) * 24, kind.to_owned());
        assert_eq!(
            told,
            [
                days(14, expiring),
                days(7, expiring),
                days(1, expiring),
                days(0, expired)
            ]
        );
        // A life shorter than the last warning is warned of once; a revoked one not at all.
        app.write("POST", "/service-accounts", body("short", 3600))
            .await
            .ok();
        let gone = app
            .write("POST", "/service-accounts", body("revoked", 3600))
            .await;
        let token = gone.ok()["token"]["id"].as_str().unwrap();
        let account = gone.json["serviceAccount"]["id"].as_str().unwrap();
        let revoke = format!("/service-accounts/{account}/tokens/{token}/revoke");
        app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
        let before = i64::try_from(app.events(0).await.len()).unwrap();
        for _ in 0..3 {
            provost_areas_identity::service_accounts::warn_of_expiry(&app.kernel)
                .await
                .unwrap();
            app.advance(3600);
        }
        let kinds: Vec<_> = app
            .events(before)
            .await
            .into_iter()
            .map(|(kind, _)| kind)
            .collect();
        assert_eq!(kinds, [expiring, expired]);
        // No entry of the log claims a warning that was not given.
        let entries = app.entries(&app.organization, 0).await;
        let claimed = entries.iter().filter(|e| e["action"] == expiring).count();
        assert_eq!(claimed, 4);
    });
}
