//! Tests over real sockets: a listener on a free port, and clients that write bytes.

mod bodies;
mod connections;
mod heads;
mod http_2;
mod requests;
mod strangers;
mod tls;

use super::{Edge, EdgeSettings, RequestId, Tls, read_body, respond, serve};
use crate::arrival::Arrival;
use crate::entropy::SeededEntropy;
use crate::supervisor::Supervisor;
use crate::time::SystemClock;
use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::{Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_secs(20);

/// A server of the test router, and what the tests steer it with.
struct RunningServer {
    address: SocketAddr,
    stop: CancellationToken,
    supervisor: Supervisor,
    /// `/slow` adds a permit to the first when it is entered, and takes one of the second to go on.
    entered: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

fn edge(settings: EdgeSettings) -> Edge {
    let entropy = Arc::new(SeededEntropy::new(7));
    Edge::new(settings, Arc::new(SystemClock::new()), entropy)
}

async fn start(settings: EdgeSettings) -> RunningServer {
    start_with(settings, Tls::Off).await
}

async fn start_with(settings: EdgeSettings, tls: Tls) -> RunningServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let running = RunningServer {
        address: listener.local_addr().unwrap(),
        stop: CancellationToken::new(),
        supervisor: Supervisor::new(),
        entered: Arc::new(Semaphore::new(0)),
        go_on: Arc::new(Semaphore::new(0)),
    };
    let router = edge(settings.clone()).wrap(router(&running, &settings));
    let stop = running.stop.clone();
    running.supervisor.spawn("server", async move {
        serve(listener, router, &settings, tls, stop).await.unwrap();
    });
    running
}

fn router(running: &RunningServer, settings: &EdgeSettings) -> Router {
    let (entered, go_on) = (Arc::clone(&running.entered), Arc::clone(&running.go_on));
    let slow = move || async move {
        entered.add_permits(1);
        go_on.acquire().await.unwrap().forget();
        "slow"
    };
    let (limit, timeout) = (settings.max_body_bytes, settings.request_timeout);
    let count = move |request: Request<Body>| async move {
        let id = request.extensions().get::<RequestId>().unwrap().clone();
        match read_body(request, limit, timeout).await {
            Ok((_, body)) => Response::new(Body::from(body.len().to_string())),
            Err(error) => respond(&error, &id, None),
        }
    };
    Router::new()
        .route("/ok", get(|| async { "ok" }).post(|| async { "unread" }))
        .route("/count", post(count))
        .route("/known", get(recognized))
        .route("/slow", get(slow))
        .route("/big", get(|| async { vec![b'x'; 64 << 20] }))
}

/// Takes whoever asks for somebody who showed a valid token.
async fn recognized(request: Request<Body>) -> &'static str {
    request.extensions().get::<Arrival>().unwrap().recognized();
    "known"
}

/// One answer as it stood on the wire.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Asserts that this is an envelope of this status and returns its message.
    fn envelope(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/json; charset=utf-8"),
            "{self:?}"
        );
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(
            body["requestId"].as_str(),
            self.header("x-request-id"),
            "{self:?}"
        );
        assert!(
            body["requestId"].as_str().unwrap().starts_with("req_"),
            "{self:?}"
        );
        assert!(body["code"].is_string(), "{self:?}");
        body["message"].as_str().unwrap().to_owned()
    }
}

/// A client that writes bytes.
struct Raw<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
}

impl Raw {
    async fn connect(running: &RunningServer) -> Self {
        Self {
            stream: TcpStream::connect(running.address).await.unwrap(),
            buffer: Vec::new(),
        }
    }
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Raw<S> {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads one answer; `None` when the server closes instead.
    async fn try_answer(&mut self) -> Option<Answer> {
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.read().await == 0 {
                assert!(
                    self.buffer.is_empty(),
                    "{}",
                    String::from_utf8_lossy(&self.buffer)
                );
                return None;
            }
        };
        let head = String::from_utf8(self.buffer.drain(..head_end).collect()).unwrap();
        let mut answer = Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body: String::new(),
        };
        let length: usize = answer.header("content-length").unwrap_or("0").parse().unwrap();
        while self.buffer.len() < length {
            assert_ne!(self.read().await, 0, "the body ended early");
        }
        answer.body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        Some(answer)
    }

    async fn answer(&mut self) -> Answer {
        self.try_answer()
            .await
            .expect("the server closed without an answer")
    }

    async fn read(&mut self) -> usize {
        let read = self.stream.read_buf(&mut self.buffer);
        tokio::time::timeout(HANG, read)
            .await
            .expect("the server hangs")
            .unwrap()
    }

    /// Asserts that the server says nothing more and closes.
    async fn expect_close(&mut self) {
        let more = self.try_answer().await;
        assert!(more.is_none(), "{more:?}");
    }

    async fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Answer {
        self.send(bytes).await;
        self.answer().await
    }
}

/// Sends bytes on a new connection and returns the first answer.
async fn ask(running: &RunningServer, bytes: impl AsRef<[u8]>) -> Answer {
    Raw::connect(running).await.ask(bytes).await
}
