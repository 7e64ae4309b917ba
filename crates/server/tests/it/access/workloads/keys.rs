//! Where the keys of an issuer come from, and how often they are asked for.

use super::*;
use crate::access::oauth::answer;
use crate::access::oauth::stub_server::StubServer;
use crate::support::{each, each_with};
use axum::body::Body;
use http::Request;
use provost_areas_access::oauth::settings::{Fetch, Settings};
use provost_kernel::expose::edge::Peer;
use provost_kernel::kernel::Extras;
use provost_outbound::Network;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An issuer on loopback that says where its keys are.
pub async fn platform(keys: Value) -> StubServer {
    StubServer::start(move |request| {
        let host = request
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .unwrap_or_default();
        let host = host.trim();
        if request.starts_with("GET /.well-known/openid-configuration ") {
            json!({ "issuer": format!("http://{host}"), "jwks_uri": format!("http://{host}/keys") })
                .to_string()
        } else if request.starts_with("GET /keys ") {
            keys.to_string()
        } else {
            "{}".to_owned()
        }
    })
    .await
}

/// The application, with an operator who allows issuers on this machine.
pub fn allowing(app: &App) -> Arc<App> {
    let settings = Settings {
        fetch: Fetch {
            allow: vec![Network::parse("127.0.0.0/8").unwrap()],
            roots: Vec::new(),
            plain_loopback: true,
        },
        ..Settings::default()
    };
    Arc::new(app.restarted(Extras::default().with(settings)).unwrap())
}

#[test]
fn keys_are_discovered_and_a_storm_of_unknown_keys_asks_once_a_minute() {
    each("workload_keys", |app| async move {
        let workshop = workshop(&app);
        let issuer = platform(workshop.key_set()).await;
        let app = allowing(&app);
        let (account, _) = app.account(&fresh_key(), "viewer", &["policies:read"]).await;
        let mut body = Platform::Github.trust(&account);
        body["issuer"] = issuer.url.clone().into();
        let trust = trusted(&app, body).await;
        let token = |kid: &str| {
            let mut claims = Platform::Github.claims(app.now().as_ms() / 1000);
            claims["iss"] = issuer.url.clone().into();
            let mut header = Platform::Github.header();
            header["kid"] = kid.into();
            workshop.signed(&header, &claims)
        };
        // Nothing is fetched for a token that says that it is of another issuer.
        let foreign = workshop.signed(
            &Platform::Github.header(),
            &Platform::Github.claims(app.now().as_ms() / 1000),
        );
        not_accepted(&exchange(&app, &trust, &foreign, &[]).await);
        not_accepted(&exchange(&app, "wtr_01kadh5j9v0000000000000000", &token("rsa"), &[]).await);
        assert_eq!(issuer.count(), 0);
        for _ in 0..3 {
            access(&exchange(&app, &trust, &token("rsa"), &[]).await);
        }
        assert_eq!(issuer.count(), 2, "its document and its keys");
        app.advance(60);
        for nth in 0..20 {
            not_accepted(&exchange(&app, &trust, &token(&format!("storm-{nth}")), &[]).await);
        }
        assert_eq!(issuer.count(), 4, "once a minute");
        access(&exchange(&app, &trust, &token("rsa"), &[]).await);
        // An issuer that is down: its keys serve for an hour, and then its tokens wait.
        issuer.is_up.store(false, Ordering::SeqCst);
        app.advance(3600);
        access(&exchange(&app, &trust, &token("rsa"), &[]).await);
        app.advance(61);
        let waits = exchange(&app, &trust, &token("rsa"), &[]).await;
        refused(&waits, 503, "temporarily_unavailable");
        app.kernel.stop().await;
    });
}

#[test]
fn an_issuer_inside_is_not_asked_unless_the_operator_allows_it() {
    each("workload_inside", |app| async move {
        let workshop = workshop(&app);
        let issuer = platform(workshop.key_set()).await;
        let (account, _) = app.account(&fresh_key(), "viewer", &["policies:read"]).await;
        let mut body = Platform::Github.trust(&account);
        body["issuer"] = issuer.url.clone().into();
        let trust = trusted(&app, body).await;
        let mut claims = Platform::Github.claims(app.now().as_ms() / 1000);
        claims["iss"] = issuer.url.clone().into();
        let token = workshop.signed(&Platform::Github.header(), &claims);
        let reply = exchange(&app, &trust, &token, &[]).await;
        refused(&reply, 503, "temporarily_unavailable");
        assert_eq!(issuer.count(), 0);
    });
}

#[test]
fn a_network_that_asks_without_end_waits_before_anything_is_done_for_it() {
    let limited = provost_kernel::kernel::Settings::default();
    each_with("workload_limits", &limited, |app| async move {
        let scene = Scene::of(&app, Platform::Kubernetes, "viewer", &["policies:read"]).await;
        let ask = async |network: [u8; 4]| {
            let token = scene.token(&app, |_| {});
            let form = crate::access::oauth::encoded(&[
                ("grant_type", EXCHANGE),
                ("client_id", scene.trust.as_str()),
                ("subject_token", token.as_str()),
                ("subject_token_type", JWT),
            ]);
            let request =
                Request::post("/oauth/token").header("content-type", "application/x-www-form-urlencoded");
            let mut request = request.body(Body::from(form)).unwrap();
            request.extensions_mut().insert(Peer((network, 4711).into()));
            answer(&app, request).await
        };
        let mut statuses = Vec::new();
        for _ in 0..130 {
            statuses.push(ask([192, 0, 2, 1]).await.status.as_u16());
        }
        assert!(
            statuses[..100].iter().all(|status| *status == 200),
            "{statuses:?}"
        );
        assert_eq!(statuses.last(), Some(&503), "{statuses:?}");
        assert_eq!(ask([198, 51, 100, 7]).await.status.as_u16(), 200);
    });
}

/// Tokens that are accepted take from the trust's own bucket, wherever they come from; another trust of the account goes on.
#[test]
fn one_trust_does_not_use_up_the_sessions_of_its_account() {
    let limited = provost_kernel::kernel::Settings::default();
    each_with("workload_of_trust", &limited, |app| async move {
        let scene = Scene::of(&app, Platform::Kubernetes, "viewer", &["policies:read"]).await;
        let mut body = Platform::Kubernetes.trust(&scene.account);
        body["jwks"] = scene.workshop.key_set();
        let other = trusted(&app, body).await;
        let ask = async |trust: &str, network: [u8; 4], token: String| {
            let form = crate::access::oauth::encoded(&[
                ("grant_type", EXCHANGE),
                ("client_id", trust),
                ("subject_token", token.as_str()),
                ("subject_token_type", JWT),
            ]);
            let request =
                Request::post("/oauth/token").header("content-type", "application/x-www-form-urlencoded");
            let mut request = request.body(Body::from(form)).unwrap();
            request.extensions_mut().insert(Peer((network, 4711).into()));
            answer(&app, request).await.status.as_u16()
        };
        // What the trust does not accept takes nothing.
        for _ in 0..20 {
            let strange = scene.token(&app, |claims| claims["sub"] = "system:serviceaccount:ci:x".into());
            assert_eq!(ask(&scene.trust, [203, 0, 113, 1], strange).await, 400);
        }
        let mut statuses = Vec::new();
        for nth in 0..260_u32 {
            let network = [192, 0, 2, u8::try_from(nth / 50).unwrap()];
            statuses.push(ask(&scene.trust, network, scene.token(&app, |_| {})).await);
        }
        assert!(
            statuses[..240].iter().all(|status| *status == 200),
            "{statuses:?}"
        );
        assert_eq!(statuses.last(), Some(&503), "{statuses:?}");
        let token = scene.token(&app, |_| {});
        assert_eq!(ask(&other, [198, 51, 100, 7], token).await, 200);
    });
}
