//! Writes of a managing program wait for their rate bucket (client contract §1.5).

use crate::support::{App, Reply, each_with, fresh_key, with_trio};
use provost_kernel::kernel::Settings;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Makes a gateway, as Terraform or as anybody.
async fn make(app: Arc<App>, name: String, is_managed: bool) -> Reply {
    let body = json!({ "name": name, "hostname": "gw.corp.example" });
    let mut call = app
        .request("POST", "/resource-gateways")
        .json(with_trio(body, &fresh_key()));
    if is_managed {
        call = call
            .header("x-forge-terraform-manager", "platform")
            .header("x-forge-terraform-instance", "production");
    }
    call.send().await
}

/// Takes what is left of the bucket.
async fn drain(app: &Arc<App>) {
    while app.write("POST", "/resource-gateways", json!({})).await.status != 429 {}
}

#[test]
fn writes_of_a_manager_wait_for_their_bucket_and_others_do_not() {
    each_with("throttled", &Settings::default(), |app: Arc<App>| async move {
        drain(&app).await;
        let refused = make(app.clone(), "plain".into(), false).await;
        refused.refused(429, "rate_limited");
        let mut writes = JoinSet::new();
        for n in 0..17 {
            writes.spawn(make(app.clone(), format!("gateway {n}"), true));
        }
        // One is too many; the others wait for the clock.
        let refused = writes.join_next().await.unwrap().unwrap();
        refused.refused(429, "rate_limited");
        assert!(["1", "2"].contains(&refused.header("retry-after")));
        // Who waits is in nobody's way.
        app.get("/resource-gateways").await.ok();
        app.clock.advance(Duration::from_millis(200));
        for _ in 0..4 {
            assert_eq!(writes.join_next().await.unwrap().unwrap().status, 201);
        }
        app.clock.advance(Duration::from_secs(1));
        while let Some(made) = writes.join_next().await {
            assert_eq!(made.unwrap().status, 201);
        }
        // Nobody waits for ever.
        drain(&app).await;
        let late = make(app.clone(), "late".into(), true).await;
        late.refused(429, "rate_limited");
        assert!(["1", "2"].contains(&late.header("retry-after")));
    });
}
