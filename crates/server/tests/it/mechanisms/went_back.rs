//! A store that goes back while the server runs: a failover to a copy that lags, a snapshot, a file put back (WT-1).

use crate::support::{App, Reply, each};
use http::StatusCode;
use provost_kernel::Secret;
use provost_kernel::db::{Access, Conn, Location, PostgresUrl};
use provost_kernel::kernel::Extras;
use provost_kernel::params;
use serde_json::json;
use std::sync::Arc;

provost_kernel::statements! {
    /// Reads a head.
    HEAD = "SELECT seq, hash, mac, event_sequence, rights_changes, rights_rows, rights_sum, rights_key FROM chain_heads WHERE organization_id = ?1";
    /// Puts a head back.
    PUT_HEAD = "UPDATE chain_heads SET seq = ?2, hash = ?3, mac = ?4, event_sequence = ?5, rights_changes = ?6, rights_rows = ?7, rights_sum = ?8, rights_key = ?9 WHERE organization_id = ?1";
    /// Removes the entries behind a place.
    CUT = "DELETE FROM audit_entries WHERE organization_id = ?1 AND seq > ?2";
    /// Removes the events behind a place.
    CUT_EVENTS = "DELETE FROM outbox WHERE organization_id = ?1 AND sequence > ?2";
    /// Lets every account act again.
    ENABLE = "UPDATE service_accounts SET status = 'active' WHERE organization_id = ?1";
    /// Ends the connections of a name, and waits until they have ended.
    TERMINATE = {
        sqlite: "SELECT 1 WHERE ?1 <> ''",
        postgres: "SELECT COUNT(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = ?1 AND pid <> pg_backend_pid()",
    };
}

/// What a head was.
#[derive(Clone)]
struct Before {
    seq: i64,
    hash: Vec<u8>,
    mac: Vec<u8>,
    events: i64,
    changes: i64,
    rows: i64,
    sum: Vec<u8>,
    key: String,
}

/// Does something beside the server, as whoever runs the database could.
fn beside<T: Send>(location: &Location, act: impl FnOnce(&mut Conn) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| act(&mut Conn::open(location, Access::Write).unwrap()));
        run.join().unwrap()
    })
}

fn remember(app: &App) -> Before {
    let organization = app.organization.clone();
    beside(&app.location(), move |conn| {
        let read = |tx: &mut provost_kernel::db::Tx<'_>| {
            tx.query_opt(&HEAD, params![organization.as_str()], |row| {
                Ok(Before {
                    seq: row.get(0)?,
                    hash: row.get(1)?,
                    mac: row.get(2)?,
                    events: row.get(3)?,
                    changes: row.get(4)?,
                    rows: row.get(5)?,
                    sum: row.get(6)?,
                    key: row.get(7)?,
                })
            })
        };
        conn.read(read).unwrap().unwrap()
    })
}

/// Takes away what came after, an end of an account included.
fn go_back(app: &App, before: &Before) {
    let (organization, before) = (app.organization.clone(), before.clone());
    beside(&app.location(), move |conn| {
        let org = organization.as_str();
        conn.begin(&[]).unwrap();
        let mut tx = conn.tx();
        tx.execute(&CUT, params![org, before.seq]).unwrap();
        tx.execute(&CUT_EVENTS, params![org, before.events]).unwrap();
        tx.execute(&ENABLE, params![org]).unwrap();
        tx.execute(
            &PUT_HEAD,
            params![
                org,
                before.seq,
                &before.hash,
                &before.mac,
                before.events,
                before.changes,
                before.rows,
                &before.sum,
                &before.key
            ],
        )
        .unwrap();
        conn.commit(&[]).unwrap();
    });
}

/// Ends the connections of one server; those of other tests have another name.
fn terminate(app: &App, name: &'static str) {
    beside(&app.location(), move |conn| {
        let counted = conn
            .tx()
            .query_opt(&TERMINATE, params![name], |row| row.get::<i64>(0));
        assert!(counted.unwrap().unwrap() > 0);
    });
}

/// A server on PostgreSQL alone, whose connections have a name. A file is not reached over a connection that can be lost.
fn each_on_postgres<F: Future<Output = ()>>(name: &'static str, scenario: impl Fn(Arc<App>) -> F) {
    each(name, |plain: Arc<App>| {
        let scenario = &scenario;
        async move {
            let Location::Postgres(url) = plain.location() else {
                return;
            };
            let separator = if url.expose().contains("://") { '&' } else { ' ' };
            let named = format!("{}{separator}application_name={name}", url.expose());
            let location = Location::Postgres(PostgresUrl::new(Secret::new(named)));
            let app = Arc::new(plain.restarted_at(location).unwrap());
            scenario(app.clone()).await;
            app.kernel.stop().await;
        }
    });
}

async fn create(app: &App, name: &str) -> Reply {
    let body = json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
    app.write("POST", "/service-accounts", body).await
}

async fn disable(app: &App, id: &str) -> Reply {
    app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
        .await
}

async fn ready(app: &App) -> Reply {
    app.request("GET", "").anonymous().at("/readyz").send().await
}

/// Everything is refused with the one sentence, also what only reads: a right that had ended may be back in the rows.
async fn serves_nothing(app: &App, token: &str) {
    for refused in [
        create(app, "behind").await,
        app.get("/service-accounts").await,
        app.request("GET", "/capabilities").token(token).send().await,
    ] {
        refused.refused(503, "unavailable");
        assert!(refused.text().contains("gone back"), "{}", refused.text());
    }
    let probe = ready(app).await;
    assert_eq!(probe.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(probe.text().contains("gone back"), "{}", probe.text());
    assert!(app.kernel.is_broken());
}

/// Proves WT-1.
#[test]
fn the_next_change_notices_a_store_that_went_back_and_nothing_is_served_then() {
    each("went_back", |app: Arc<App>| async move {
        let (id, token) = app.account("leaver", "viewer", &[]).await;
        let before = remember(&app);
        // What the commit itself confirmed is known: nothing has read the head since.
        disable(&app, &id).await.ok();
        assert_eq!(app.used(&token).await.0, 401);
        assert_eq!(ready(&app).await.status, StatusCode::OK);

        go_back(&app, &before);
        create(&app, "after").await.refused(503, "unavailable");
        serves_nothing(&app, &token).await;
        // What was seen once stays seen, also when the store grows again.
        assert!(
            provost_areas_platform::audit::make_checkpoints(&app.kernel)
                .await
                .is_err()
        );
        assert_eq!(app.kernel.keys.checkpoint_lines().unwrap(), Vec::<String>::new());
    });
}

/// Proves WT-1.
#[test]
fn a_lost_connection_serves_again_only_where_the_store_still_holds_what_was_answered() {
    each_on_postgres("went_back_lost", |app: Arc<App>| async move {
        let (id, token) = app.account("leaver", "viewer", &[]).await;
        let before = remember(&app);
        disable(&app, &id).await.ok();
        app.settle().await;

        // A restart of the database that loses nothing costs nothing.
        terminate(&app, "went_back_lost");
        assert_eq!(app.used(&token).await.0, 401);
        create(&app, "between").await.ok();
        app.settle().await;

        // The chain even grows beyond what it was, as it would under another server that never saw the end.
        go_back(&app, &before);
        terminate(&app, "went_back_lost");
        let read = app.request("GET", "/capabilities").token(&token).send().await;
        read.refused(503, "unavailable");
        serves_nothing(&app, &token).await;
    });
}

/// Proves WT-1.
#[test]
fn another_entry_at_a_known_place_is_noticed_although_the_chain_is_longer() {
    each_on_postgres("went_back_grown", |app: Arc<App>| async move {
        let (id, token) = app.account("leaver", "viewer", &[]).await;
        let before = remember(&app);
        disable(&app, &id).await.ok();
        app.settle().await;
        go_back(&app, &before);
        let other = app.restarted(Extras::default()).unwrap();
        for name in ["one", "two", "three"] {
            create(&other, name).await.ok();
        }
        other.kernel.stop().await;
        terminate(&app, "went_back_grown");
        let read = app.request("GET", "/capabilities").token(&token).send().await;
        read.refused(503, "unavailable");
        serves_nothing(&app, &token).await;
    });
}
