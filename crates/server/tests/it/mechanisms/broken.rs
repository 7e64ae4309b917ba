//! A store that failed: nothing more is acknowledged until a restart, not even when it looks well again (WK-2).
//!
//! The failure is a chain head whose MAC does not fit: the writer meets it as it meets a failed write, and a test can
//! bring it about on both engines and take it back.

use crate::support::{App, Reply, each};
use provost_kernel::db::{Access, Conn};
use provost_kernel::kernel::Extras;
use serde_json::json;
use std::sync::Arc;

/// Runs a statement beside the server.
fn beside(app: &App, sql: &'static str) {
    let location = app.location();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Conn::open(&location, Access::Write).unwrap().batch(sql).unwrap());
        run.join().unwrap();
    });
}

async fn create(app: &App, name: &str) -> Reply {
    let body = json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
    app.write("POST", "/service-accounts", body).await
}

/// Proves WK-2.
#[test]
fn after_a_failed_write_nothing_is_acknowledged_until_a_restart() {
    each("broken", |app: Arc<App>| async move {
        create(&app, "before").await.ok();
        app.settle().await;
        let entries = app.entries(&app.organization, 0).await.len();

        beside(&app, "UPDATE chain_heads SET event_sequence = event_sequence + 1");
        create(&app, "while it fails").await.refused(503, "unavailable");
        assert!(app.kernel.is_broken());
        beside(&app, "UPDATE chain_heads SET event_sequence = event_sequence - 1");
        create(&app, "when it is well again")
            .await
            .refused(503, "unavailable");
        // Whoever only reads is served, and nothing was written.
        assert_eq!(app.used(&app.admin).await.0, 200);
        assert_eq!(app.entries(&app.organization, 0).await.len(), entries);

        let server = app.restarted(Extras::default()).unwrap();
        create(&server, "behind a restart").await.ok();
        server.kernel.stop().await;
    });
}
