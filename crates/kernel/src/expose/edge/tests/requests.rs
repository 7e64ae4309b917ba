//! What wraps the router, without sockets.

use super::super::{ClientIp, Network, Peer};
use super::*;
use crate::{Code, Error};
use http::header::ACCEPT;
use http::{HeaderValue, Method};
use http_body_util::BodyExt;
use std::sync::Mutex;
use tower::ServiceExt;
use tracing::field::{Field, Visit};

async fn call(router: &Router, request: Request<Body>) -> Answer {
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let lines = parts
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
    Answer {
        status: parts.status.as_u16(),
        head: format!("status\r\n{}", lines.collect::<String>()),
        body: String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap(),
    }
}

fn request(method: Method, target: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(target)
        .body(Body::empty())
        .unwrap()
}

fn wrapped(settings: EdgeSettings, router: Router) -> Router {
    edge(settings).wrap(router)
}

fn plain() -> Router {
    wrapped(
        EdgeSettings::default(),
        Router::new().route("/ok", get(|| async { "ok" })),
    )
}

/// Keeps the text of every event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 = format!("{}{field}={value:?} ", self.0);
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::ERROR {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let router = plain();
    let first = call(&router, request(Method::GET, "/ok")).await;
    assert_eq!(first.header("cache-control"), Some("no-store"));
    assert_eq!(first.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(first.header("vary"), Some("Authorization"));
    assert_eq!(first.header("strict-transport-security"), None);
    assert_eq!(first.header("server"), None);
    let second = call(&router, request(Method::POST, "/ok")).await;
    assert_eq!(second.header("vary"), None);
    assert_ne!(
        first.header("x-request-id").unwrap(),
        second.header("x-request-id").unwrap()
    );
}

#[tokio::test]
async fn refusals_of_the_router_become_envelopes() {
    let router = plain();
    let answer = call(&router, request(Method::GET, "/nowhere")).await;
    assert_eq!(answer.envelope(404), "there is no such route");
    let answer = call(&router, request(Method::DELETE, "/ok")).await;
    assert_eq!(answer.envelope(405), "this route does not have this method");
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
}

#[tokio::test]
async fn text_of_a_refusal_is_replaced_and_json_is_kept() {
    let text = || async { (http::StatusCode::CONFLICT, "secret internals") };
    let json = || async {
        let header = [(http::header::CONTENT_TYPE, "application/json")];
        (
            http::StatusCode::BAD_REQUEST,
            header,
            r#"{"error":"invalid_grant"}"#,
        )
    };
    let router = Router::new().route("/text", get(text)).route("/json", get(json));
    let router = wrapped(EdgeSettings::default(), router);
    let answer = call(&router, request(Method::GET, "/text")).await;
    assert_eq!(answer.envelope(409), "the request is not valid");
    let answer = call(&router, request(Method::GET, "/json")).await;
    assert_eq!(answer.body, r#"{"error":"invalid_grant"}"#);
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let router = plain();
    for target in ["/ok", "/nowhere"] {
        let full = call(&router, request(Method::GET, target)).await;
        let bare = call(&router, request(Method::HEAD, target)).await;
        assert_eq!(bare.body, "");
        let without_id = |answer: &Answer| {
            let lines = answer
                .head
                .lines()
                .filter(|line| !line.starts_with("x-request-id"));
            let mut lines: Vec<String> = lines.map(str::to_owned).collect();
            lines.sort();
            (answer.status, lines)
        };
        assert_eq!(without_id(&full), without_id(&bare));
    }
}

#[test]
fn a_panic_is_an_envelope_and_one_log_entry() {
    async fn explode() -> &'static str {
        panic!("the secret reason")
    }
    let log = Log::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answer = tracing::subscriber::with_default(log.clone(), || {
        let router = wrapped(
            EdgeSettings::default(),
            Router::new().route("/panic", get(explode)),
        );
        runtime.block_on(call(&router, request(Method::GET, "/panic")))
    });
    answer.envelope(500);
    assert!(!answer.body.contains("secret"), "{}", answer.body);
    let entries = log.0.lock().unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(entries[0].contains("the secret reason"), "{entries:?}");
    assert!(
        entries[0].contains(answer.header("x-request-id").unwrap()),
        "{entries:?}"
    );
}

#[tokio::test]
async fn too_many_requests_at_once_are_shed() {
    let running = start(EdgeSettings {
        max_in_flight: 1,
        ..EdgeSettings::default()
    })
    .await;
    let mut first = Raw::connect(&running).await;
    first.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await;
    running.entered.acquire().await.unwrap().forget();
    let mut second = Raw::connect(&running).await;
    let get = "GET /ok HTTP/1.1\r\nhost: a\r\n\r\n";
    let post = "POST /ok HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    for refused in [get, post] {
        let asked = tokio::time::Instant::now();
        let answer = second.ask(refused).await;
        assert_eq!(answer.envelope(503), "the server is busy; try again");
        assert_eq!(answer.header("retry-after"), Some("1"));
        // Who was refused asks no sooner again than this, on the connection that there is.
        assert!(asked.elapsed() >= EdgeSettings::default().refusal_pause);
        assert_eq!(answer.header("connection"), None);
    }
    let mut third = Raw::connect(&running).await;
    let answer = third
        .ask("POST /ok HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhel")
        .await;
    assert_eq!(answer.envelope(503), "the server is busy; try again");
    assert_eq!(answer.header("connection"), Some("close"));
    running.go_on.add_permits(1);
    assert_eq!(first.answer().await.body, "slow");
    assert_eq!(second.ask("GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await.body, "ok");
}

#[tokio::test]
async fn problem_details_are_served_on_request_only() {
    let router = plain();
    for accept in [
        "application/problem+json",
        "application/json, Application/Problem+JSON;q=0.5",
    ] {
        let mut asked = request(Method::GET, "/nowhere");
        asked
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static(accept));
        let answer = call(&router, asked).await;
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json; charset=utf-8")
        );
        let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (&problem["type"], &problem["title"]),
            (&"about:blank".into(), &"Not Found".into())
        );
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&404.into(), &"not_found".into())
        );
        assert_eq!(
            (&problem["detail"], &problem["message"]),
            (&problem["message"], &"there is no such route".into())
        );
        assert_eq!(problem["instance"].as_str(), answer.header("x-request-id"));
    }
    for accept in [
        "*/*",
        "application/json",
        "application/problem+json;q=0",
        "text/application/problem+json",
    ] {
        let mut asked = request(Method::GET, "/nowhere");
        asked
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static(accept));
        call(&router, asked).await.envelope(404);
    }
}

#[tokio::test]
async fn errors_keep_their_members_and_their_wait() {
    let fail = |request: Request<Body>| async move {
        let error = Error::new(Code::RateLimited, "too many rotations")
            .retry_after(120)
            .and_field("/a", "is wrong");
        respond(&error, request.extensions().get::<RequestId>().unwrap(), None)
    };
    let router = wrapped(EdgeSettings::default(), Router::new().route("/fail", get(fail)));
    let answer = call(&router, request(Method::GET, "/fail")).await;
    assert_eq!(answer.envelope(429), "too many rotations");
    assert_eq!(answer.header("retry-after"), Some("120"));
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        body["errors"],
        serde_json::json!([{ "path": "/a", "message": "is wrong" }])
    );
}

#[tokio::test]
async fn limits_hold_without_a_socket_too() {
    let router = plain();
    let long = format!("/ok?{}", "q".repeat(8_192 - 3));
    call(&router, request(Method::GET, &long)).await.envelope(414);
    let mut large = request(Method::GET, "/ok");
    large
        .headers_mut()
        .insert("x", "v".repeat(16_384).parse().unwrap());
    call(&router, large).await.envelope(431);
}

#[tokio::test]
async fn the_client_address_reaches_the_route() {
    let settings = EdgeSettings {
        trusted_proxies: vec!["10.0.0.0/8".parse::<Network>().unwrap()],
        ..EdgeSettings::default()
    };
    let show =
        |request: Request<Body>| async move { request.extensions().get::<ClientIp>().unwrap().0.to_string() };
    let router = wrapped(settings, Router::new().route("/ip", get(show)));
    for (peer, client) in [("10.0.0.1:1", "203.0.113.7"), ("198.51.100.1:1", "198.51.100.1")] {
        let mut asked = request(Method::GET, "/ip");
        asked.extensions_mut().insert(Peer(peer.parse().unwrap()));
        asked
            .headers_mut()
            .insert("x-forwarded-for", HeaderValue::from_static("203.0.113.7"));
        assert_eq!(call(&router, asked).await.body, client);
    }
}
