//! Reading leaves a trace, whoever else is there (LE-1).

use crate::support::{App, each};
use axum::body::Body;
use http::Request;
use provost_kernel::auth::OrganizationId;
use provost_kernel::expose::edge::Peer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// More than are counted one by one.
const NETWORKS: u32 = 10_050;

/// Proves LE-1.
#[test]
fn reads_stand_in_the_summary_however_many_networks_strangers_come_from() {
    each("summary_networks", |app: Arc<App>| async move {
        let (viewer, token) = app.account("viewer", "viewer", &["policies:read"]).await;
        app.kernel.flush_counts();
        app.settle().await;
        let before = app.entries(&app.organization, 0).await.len();
        for number in 0..NETWORKS {
            let address = IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number));
            let request = Request::builder()
                .uri(app.path("/policies"))
                .header("authorization", "Bearer nobody's")
                .extension(Peer(SocketAddr::new(address, 4_711)));
            let reply = app.answer(request.body(Body::empty()).unwrap()).await;
            assert_eq!(reply.status.as_u16(), 401);
        }
        for _ in 0..3 {
            let call = app.request("GET", "/policies").token(&token);
            call.send().await.ok();
        }
        app.kernel.flush_counts();
        // The writer takes so many notes a commit.
        for _ in 0..=NETWORKS / 1_000 {
            app.settle().await;
        }
        let entries = app.entries(&app.organization, 0).await;
        let summaries: Vec<&Value> = entries[before..]
            .iter()
            .filter(|entry| entry["action"] == "access.summary")
            .collect();
        let [summary] = summaries[..] else {
            panic!("{summaries:?}")
        };
        let target = summary["target"]["id"].as_str().unwrap();
        assert!(target.ends_with(&viewer), "{target}");
        assert_eq!(summary["count"], 3);
        // The strangers are counted too, those beyond the bound together.
        let installation = app.entries(OrganizationId::INSTALLATION, 0).await;
        let mut strangers: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in installation
            .iter()
            .filter(|entry| entry["action"] == "authentication.failed")
        {
            *strangers
                .entry(entry["target"]["id"].as_str().unwrap())
                .or_default() += entry["count"].as_u64().unwrap();
        }
        assert_eq!(strangers.values().sum::<u64>(), u64::from(NETWORKS));
        assert_eq!(strangers["other"], u64::from(NETWORKS) - 10_000);
        assert_eq!(
            installation.last().unwrap()["organizationId"],
            json!(OrganizationId::INSTALLATION)
        );
    });
}
