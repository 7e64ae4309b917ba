//! The bridge from lines to the endpoint, over a real socket.

use crate::support::{App, REVISION, each};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use provost_client::bridge::{HttpSend, bridge};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};
use tokio::net::TcpStream;

#[derive(Clone)]
struct Sender {
    address: SocketAddr,
    token: String,
    seen: Arc<Mutex<Vec<Request<()>>>>,
}

impl HttpSend for Sender {
    type Body = hyper::body::Incoming;

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Self::Body>, String> {
        let (mut parts, body) = request.into_parts();
        let mut seen = Request::new(());
        *seen.headers_mut() = parts.headers.clone();
        self.seen.lock().unwrap().push(seen);
        parts
            .headers
            .insert("host", HeaderValue::from_static("provost.test"));
        parts
            .headers
            .insert("authorization", format!("Bearer {}", self.token).parse().unwrap());
        let unreachable = |error: &dyn std::fmt::Display| {
            format!("the server cannot be reached: {error}; check its address")
        };
        let stream = TcpStream::connect(self.address)
            .await
            .map_err(|error| unreachable(&error))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| unreachable(&error))?;
        tokio::spawn(connection);
        let request = Request::from_parts(parts, Full::new(body));
        sender
            .send_request(request)
            .await
            .map_err(|error| unreachable(&error))
    }
}

/// A client that started the bridge.
struct Client {
    to: Option<WriteHalf<DuplexStream>>,
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    bridge: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn start(sender: Sender) -> Self {
        let (ours, theirs) = duplex(1 << 16);
        let (input, output) = split(theirs);
        let (from, to) = split(ours);
        let local = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(bridge(BufReader::new(input), output, sender))
        });
        let bridge = tokio::task::spawn_blocking(move || local.join().unwrap());
        Self {
            to: Some(to),
            from: BufReader::new(from).lines(),
            bridge,
        }
    }

    async fn say(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line.as_bytes()).await.unwrap();
        to.write_all(b"\n").await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.from.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Ends the input; returns what was still said.
    async fn end(mut self) -> Vec<Value> {
        self.to.take().unwrap().shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.from.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.bridge.await.unwrap().unwrap();
        rest
    }
}

fn sender(app: &App) -> Sender {
    Sender {
        address: app.address,
        token: app.admin.clone(),
        seen: Arc::default(),
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"piped","version":"1"}}}"#;

#[test]
fn lines_of_the_older_lifecycle_are_relayed() {
    each("mcp_bridge_old", |app: Arc<App>| async move {
        let sender = sender(&app);
        let mut client = Client::start(sender.clone());
        client.say(INITIALIZE).await;
        assert_eq!(client.hear().await["result"]["protocolVersion"], "2025-11-25");
        client
            .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        client.say("").await;
        client
            .say(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"listThings"}}"#)
            .await;
        let answer = client.hear().await;
        assert_eq!(
            (&answer["id"], &answer["result"]["structuredContent"]),
            (&json!("a"), &json!({ "things": [] }))
        );
        client.say("nonsense").await;
        assert_eq!(client.hear().await["error"]["code"], -32700);
        for id in 1..=100 {
            client
                .say(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string())
                .await;
        }
        let mut ids: Vec<u64> = client
            .end()
            .await
            .iter()
            .map(|answer| answer["id"].as_u64().unwrap())
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, (1..=100).collect::<Vec<_>>());
        let seen = std::mem::take(&mut *sender.seen.lock().unwrap());
        assert!(
            seen[1..]
                .iter()
                .all(|request| request.headers()["mcp-protocol-version"] == "2025-11-25")
        );
        assert!(
            seen[1..]
                .iter()
                .all(|request| request.headers().contains_key("mcp-session-id"))
        );
        assert_eq!(app.clients("root").await[0].0, "piped");
    });
}

#[test]
fn lines_of_the_newest_revision_are_relayed() {
    each("mcp_bridge_new", |app: Arc<App>| async move {
        let mut client = Client::start(sender(&app));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        client.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } }).to_string()).await;
        assert!(client.hear().await["result"]["supportedVersions"].is_array());
        client.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "listThings", "_meta": meta } }).to_string()).await;
        assert_eq!(
            client.hear().await["result"]["structuredContent"],
            json!({ "things": [] })
        );
        client
            .say(
                &json!({ "jsonrpc": "2.0", "id": 3, "method": "no/such", "params": { "_meta": meta } })
                    .to_string(),
            )
            .await;
        assert_eq!(client.hear().await["error"]["code"], -32601);
        assert!(client.end().await.is_empty());
    });
}

#[test]
fn refusals_are_told_with_what_to_do() {
    each("mcp_bridge_refusals", |app: Arc<App>| async move {
        let mut revoked = sender(&app);
        revoked.token = app.token("acme", "leaver", "admin", &["policies:read"]).await;
        let mut client = Client::start(revoked);
        client.say(INITIALIZE).await;
        client.hear().await;
        app.revoke("acme", "leaver").await;
        client
            .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        client
            .say(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#)
            .await;
        let answer = client.hear().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            answer["id"] == 7
                && message.contains("the token was revoked")
                && message.contains("sign in again"),
            "{answer}"
        );
        assert!(client.end().await.is_empty());

        let mut away = sender(&app);
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        away.address = closed.local_addr().unwrap();
        drop(closed);
        let mut client = Client::start(away);
        client.say(INITIALIZE).await;
        assert!(
            client.hear().await["error"]["message"]
                .as_str()
                .unwrap()
                .contains("check its address")
        );
        client.say(&"x".repeat((1 << 20) + 1)).await;
        assert!(
            client.hear().await["error"]["message"]
                .as_str()
                .unwrap()
                .contains("1 MiB")
        );
        assert!(client.end().await.is_empty());
    });
}

/// A server of one answer, to say what ours does not say.
async fn scripted(answers: Vec<Response<Full<Bytes>>>) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        for answer in answers {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = Mutex::new(Some(answer));
            let service = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| {
                let answer = answer.lock().unwrap().take().unwrap();
                async move {
                    request.into_body().collect().await.unwrap();
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    });
    (address, task)
}

fn answer(status: StatusCode, media_type: &'static str, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static(media_type));
    response
}

#[test]
fn streams_and_lost_sessions_are_lines_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut opened = answer(StatusCode::OK, "application/json", r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
        opened.headers_mut().insert("mcp-session-id", HeaderValue::from_static("s1"));
        let stream = "id: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n";
        let (address, task) = scripted(vec![
            opened,
            answer(StatusCode::OK, "text/event-stream", stream),
            answer(StatusCode::NOT_FOUND, "application/json", "{}"),
            answer(StatusCode::OK, "application/json", r#"{"jsonrpc":"2.0","id":2,"result":{}}"#),
            answer(StatusCode::OK, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"),
        ])
        .await;
        let sender = Sender { address, token: "t".into(), seen: Arc::default() };
        let mut client = Client::start(sender.clone());
        client.say(INITIALIZE).await;
        client.hear().await;
        client.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
        assert_eq!(client.hear().await["method"], "notifications/progress");
        assert_eq!(client.hear().await["id"], 1);
        client.say(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
        assert_eq!(client.hear().await["id"], 2);
        client.say(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
        assert_eq!(client.hear().await["method"], "x");
        let lost = client.hear().await;
        assert!(lost["id"] == 3 && lost["error"]["message"].as_str().unwrap().contains("without answering"), "{lost}");
        assert!(client.end().await.is_empty());
        task.await.unwrap();
        let sessions: Vec<bool> = sender.seen.lock().unwrap().iter().map(|r| r.headers().contains_key("mcp-session-id")).collect();
        assert_eq!(sessions, [false, true, true, false, false]);
    });
}

#[test]
fn a_cancelled_request_is_given_up() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, mut was_asked) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = asked.clone();
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let asked = asked.clone();
                    async move {
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        if body.windows(4).any(|window| window == b"ping") {
                            asked.send(()).unwrap();
                            std::future::pending::<()>().await;
                        }
                        Ok::<_, std::convert::Infallible>(answer(StatusCode::ACCEPTED, "text/plain", ""))
                    }
                });
                tokio::spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    let _ = connection.await;
                });
            }
        });
        let sender = Sender {
            address,
            token: "t".into(),
            seen: Arc::default(),
        };
        let mut client = Client::start(sender);
        client.say(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).await;
        was_asked.recv().await.unwrap();
        client
            .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#)
            .await;
        // The bridge ends only when nothing is under way any more.
        assert!(client.end().await.is_empty());
        task.abort();
    });
}
