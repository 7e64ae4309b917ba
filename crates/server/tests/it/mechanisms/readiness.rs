//! `/readyz` and `/healthz`: what they depend on, and what they do not.

use crate::support::{App, Reply, each};
use http::StatusCode;
use std::sync::{Arc, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

async fn ask(app: &App, path: &str) -> Reply {
    app.request("GET", "").anonymous().at(path).send().await
}

/// Proves RY-1.
#[test]
fn a_server_whose_readers_stand_still_is_alive_and_not_ready() {
    each("readers_stand_still", |app: Arc<App>| async move {
        assert_eq!(ask(&app, "/readyz").await.status, StatusCode::OK);
        // One that stands still is no reason: the others answer.
        let (mut go_on, mut reads) = (Vec::new(), JoinSet::new());
        for nth in 0..app.kernel.settings.readers {
            assert_eq!(
                ask(&app, "/readyz").await.status,
                StatusCode::OK,
                "{nth} stand still"
            );
            let (entered, enters) = tokio::sync::oneshot::channel();
            let (goes, waits) = mpsc::channel::<()>();
            go_on.push(goes);
            let kernel = app.kernel.clone();
            let parts = std::sync::Mutex::new((Some(entered), waits));
            reads.spawn(async move {
                let still = move |_: &mut provost_kernel::db::Tx<'_>| {
                    let mut parts = parts.lock().unwrap();
                    if let Some(entered) = parts.0.take() {
                        entered.send(()).unwrap();
                    }
                    // It ends when the sender goes.
                    let _ = parts.1.recv();
                    Ok(())
                };
                kernel.read_system(still).await.unwrap();
            });
            enters.await.unwrap();
        }
        let asked = Instant::now();
        assert_eq!(ask(&app, "/healthz").await.status, StatusCode::OK);
        assert!(asked.elapsed().as_secs() < 1, "it waits for nobody");
        // Questions that come together are answered together.
        let asked = Instant::now();
        let mut many = JoinSet::new();
        for _ in 0..20 {
            let app = app.clone();
            many.spawn(async move { ask(&app, "/readyz").await });
        }
        for reply in many.join_all().await {
            reply.refused(503, "unavailable");
            assert!(
                reply.text().contains("its readers do not answer"),
                "{}",
                reply.text()
            );
        }
        let took = asked.elapsed().as_secs_f32();
        assert!((1.9..10.0).contains(&took), "{took} s");
        // The first page says the same to people, and the reference asks the store nothing.
        let page = ask(&app, "/").await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.text().contains("It is not ready") && !page.text().contains("It is ready"));
        assert_eq!(ask(&app, "/docs").await.status, StatusCode::OK);
        go_on.clear();
        reads.join_all().await;
        assert_eq!(ask(&app, "/readyz").await.status, StatusCode::OK);
    });
}
