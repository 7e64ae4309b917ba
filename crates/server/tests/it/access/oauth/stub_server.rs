//! Issuers that are asked: for keys, and about opaque tokens. Each is a real server on loopback.

use super::*;
use crate::support::each;
use provost_areas_access::oauth::settings::{Fetch, Introspection};
use provost_kernel::Secret;
use provost_outbound::Network;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that answers every request with what `answer` makes of it, as long as it is up.
pub struct StubServer {
    pub url: String,
    count: Arc<AtomicUsize>,
    pub is_up: Arc<AtomicBool>,
}

impl StubServer {
    #[expect(clippy::disallowed_methods, reason = "a server of the test's own")]
    pub async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (count, is_up) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
        let (counted, up) = (count.clone(), is_up.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                if !up.load(Ordering::SeqCst) {
                    continue;
                }
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !is_whole(&request) {
                    match stream.read(&mut buffer).await {
                        Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                        _ => break,
                    }
                }
                let body = answer(&String::from_utf8_lossy(&request));
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        Self { url, count, is_up }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.trim().parse().unwrap_or(0))
}

/// A server that trusts the workshop's issuer as `change` says.
fn declared(app: &App, workshop: &Workshop, change: impl FnOnce(&mut TrustedIssuer)) -> Arc<App> {
    let mut settings = settings(app, workshop);
    settings.fetch = Fetch {
        allow: vec![Network::parse("127.0.0.0/8").unwrap()],
        roots: Vec::new(),
        plain_loopback: true,
    };
    change(&mut settings.issuers[0]);
    Arc::new(app.restarted(Extras::default().with(settings)).unwrap())
}

#[test]
fn keys_are_fetched_once_a_minute_at_most_and_outlive_their_issuer_for_an_hour() {
    each("oauth_keys", |app| async move {
        let workshop = Arc::new(workshop(&app));
        let keys = workshop.key_set().to_string();
        let issuer = StubServer::start(move |_| keys.clone()).await;
        let url = issuer.url.clone();
        let app = declared(&app, &workshop, |issuer| issuer.keys = KeySource::Url(url));
        user(&app, "ann@acme.example", Some("viewer")).await;
        // Later tokens are new ones: what was verified before is believed for five minutes.
        let fresh = |id: &str| {
            let (now, id) = (app.now().as_ms() / 1000, id.to_owned());
            token(&workshop, move |claims| {
                claims["jti"] = id.into();
                (claims["iat"], claims["nbf"], claims["exp"]) = (now.into(), now.into(), (now + 300).into());
            })
        };
        for id in ["a", "b", "a"] {
            read(&app, &fresh(id)).await.ok();
        }
        assert_eq!(issuer.count(), 1);
        // A key that nobody knows: asked for again, and then not for a minute.
        let claims = workshop.claims();
        let unknown =
            |kid: &str| workshop.signed(&json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid }), &claims);
        app.advance(60);
        for kid in ["x", "y", "z"] {
            assert_eq!(read(&app, &unknown(kid)).await.status.as_u16(), 401);
        }
        assert_eq!(issuer.count(), 2);
        // The issuer is down: its keys serve for an hour, then its tokens wait, and nobody else's.
        issuer.is_up.store(false, Ordering::SeqCst);
        app.advance(3600);
        read(&app, &fresh("c")).await.ok();
        app.advance(61);
        read(&app, &fresh("d")).await.refused(503, "unavailable");
        app.get(READ).await.ok();
        issuer.is_up.store(true, Ordering::SeqCst);
        app.advance(60);
        read(&app, &fresh("e")).await.ok();
        app.kernel.stop().await;
    });
}

#[test]
fn an_opaque_token_is_what_its_issuer_says_of_it_for_thirty_seconds() {
    each("oauth_introspection", |app| async move {
        let workshop = workshop(&app);
        let mut said = workshop.claims();
        said["active"] = true.into();
        said["email"] = "ann@acme.example".into();
        said["email_verified"] = true.into();
        let said = said.to_string();
        let is_active = Arc::new(AtomicBool::new(true));
        let active = is_active.clone();
        let issuer = StubServer::start(move |request| {
            let basic = base64::engine::general_purpose::STANDARD.encode("provost:hunter2");
            let asks = request.contains("token=opaque-1&") && request.contains(&format!("Basic {basic}"));
            if asks && active.load(Ordering::SeqCst) {
                said.clone()
            } else {
                r#"{"active":false}"#.to_owned()
            }
        })
        .await;
        let url = issuer.url.clone();
        let app = declared(&app, &workshop, |issuer| {
            issuer.keys = KeySource::None;
            issuer.introspection = Some(Introspection {
                url,
                client_id: "provost".into(),
                client_secret: Secret::new("hunter2".into()),
            });
        });
        user(&app, "ann@acme.example", Some("viewer")).await;
        for _ in 0..3 {
            read(&app, "opaque-1").await.ok();
        }
        assert_eq!(issuer.count(), 1);
        // What it refuses stays refused for ten seconds, and it is asked once.
        for _ in 0..3 {
            read(&app, "opaque-2").await.refused(401, "unauthenticated");
        }
        assert_eq!(issuer.count(), 2);
        app.advance(10);
        read(&app, "opaque-2").await.refused(401, "unauthenticated");
        assert_eq!(issuer.count(), 3);
        read(&app, "not an opaque token")
            .await
            .refused(401, "unauthenticated");
        is_active.store(false, Ordering::SeqCst);
        app.advance(19);
        read(&app, "opaque-1").await.ok();
        app.advance(1);
        read(&app, "opaque-1").await.refused(401, "unauthenticated");
        issuer.is_up.store(false, Ordering::SeqCst);
        read(&app, "opaque-3").await.refused(503, "unavailable");
        // It is not asked again for five seconds, and whoever comes does not wait.
        let asked = issuer.count();
        is_active.store(true, Ordering::SeqCst);
        issuer.is_up.store(true, Ordering::SeqCst);
        app.advance(4);
        read(&app, "opaque-4").await.refused(503, "unavailable");
        assert_eq!(issuer.count(), asked);
        app.advance(6);
        read(&app, "opaque-1").await.ok();
        app.kernel.stop().await;
    });
}

/// OC-11, of tokens that say nothing themselves.
#[test]
fn an_opaque_token_with_the_session_of_somebody_else_acts_for_its_own_subject() {
    each("oauth_opaque_sid", |app| async move {
        let workshop = workshop(&app);
        let claims = workshop.claims();
        let issuer = StubServer::start(move |request| {
            let Some(subject) = ["alice", "bob"]
                .into_iter()
                .find(|name| request.contains(&format!("token={name}&")))
            else {
                return r#"{"active":false}"#.to_owned();
            };
            let mut said = claims.clone();
            said["active"] = true.into();
            said["sub"] = subject.into();
            said["sid"] = "s".into();
            said["email"] = format!("{subject}@acme.example").into();
            said["email_verified"] = true.into();
            said.to_string()
        })
        .await;
        let url = issuer.url.clone();
        let app = declared(&app, &workshop, |issuer| {
            issuer.keys = KeySource::None;
            issuer.introspection = Some(Introspection {
                url,
                client_id: "provost".into(),
                client_secret: Secret::new("hunter2".into()),
            });
        });
        user(&app, "alice@acme.example", Some("admin")).await;
        user(&app, "bob@acme.example", Some("viewer")).await;
        for (token, status) in [("alice", 200), ("bob", 403), ("alice", 200)] {
            let call = app.request("GET", "/directory/users").token(token);
            assert_eq!(call.send().await.status.as_u16(), status, "{token}");
        }
        assert_eq!(app.get("/mcp/sessions").await.ok()["total"], 2);
        app.kernel.stop().await;
    });
}

#[test]
fn a_clients_document_is_not_fetched_from_inside() {
    each("oauth_documents_inside", |app| async move {
        let issuer = StubServer::start(|_| "{}".to_owned()).await;
        let port = issuer.url.rsplit(':').next().unwrap().to_owned();
        for url in [
            format!("https://127.0.0.1:{port}/client.json"),
            format!("https://[::1]:{port}/client.json"),
            format!("https://[::ffff:127.0.0.1]:{port}/client.json"),
            format!("http://127.0.0.1:{port}/client.json"),
            "https://10.0.0.1/client.json".to_owned(),
            "https://169.254.169.254/latest/meta-data".to_owned(),
            "https://client.example".to_owned(),
            "https://client.example/a/../b".to_owned(),
        ] {
            let form = [
                ("grant_type", "authorization_code"),
                ("client_id", url.as_str()),
                ("code", "x"),
            ];
            refused(&post(&app, "/oauth/token", &form).await, 401, "invalid_client");
        }
        assert_eq!(issuer.count(), 0);
    });
}
