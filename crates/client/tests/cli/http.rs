//! A real HTTP server that plays prepared answers and remembers what it was asked.

use axum::body::Body;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What the server does with a request.
#[derive(Clone)]
pub enum Answer {
    /// Reads it, acts for all that the client knows, and closes the connection.
    Lost,
    /// Reads it and never answers.
    Silent,
    /// Answers so much later.
    Late(Duration, Box<Answer>),
    /// Has something happen before it answers.
    After(Arc<dyn Fn() + Send + Sync>, Box<Answer>),
    /// Answers.
    Says {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
}

/// Returns an answer of JSON.
pub fn json(status: u16, body: &Value) -> Answer {
    let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
    Answer::Says {
        status,
        headers,
        body: body.to_string().into_bytes(),
    }
}

/// Returns an answer without a body.
pub fn empty(status: u16) -> Answer {
    Answer::Says {
        status,
        headers: Vec::new(),
        body: Vec::new(),
    }
}

impl Answer {
    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Says { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    pub method: String,
    pub target: String,
    pub headers: hyper::HeaderMap,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

/// A running server; dropping it ends its tasks.
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server that gives each request the next answer, and 500 behind the last.
    pub async fn playing(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::start(|_| answers, None).await
    }

    /// As `playing`, with answers that name the server.
    pub async fn playing_as<A: IntoIterator<Item = Answer>>(answers: impl FnOnce(&str) -> A) -> Self {
        Self::start(answers, None).await
    }

    /// Starts one that speaks TLS.
    pub async fn encrypted(answers: impl IntoIterator<Item = Answer>, tls: TlsAcceptor) -> Self {
        Self::start(|_| answers, Some(tls)).await
    }

    async fn start<A: IntoIterator<Item = Answer>>(
        answers: impl FnOnce(&str) -> A,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("a bound address"));
        let answers = answers(&url).into_iter().collect::<VecDeque<_>>();
        let answers = Arc::new(Mutex::new(answers));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, tls, answers, asked.clone()));
        Self {
            url,
            asked,
            _tasks: tasks,
        }
    }

    /// Returns every request so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().expect("no panic").clone()
    }
}

/// Either end of a connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

type Answers = Arc<Mutex<VecDeque<Answer>>>;

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answers: Answers,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (answers, asked) = (answers.clone(), asked.clone());
        let service = service_fn(move |request| answer(request, answers.clone(), asked.clone()));
        let tls = tls.clone();
        connections.spawn(async move {
            let stream: Box<dyn Stream> = match tls {
                // A client that does not trust the certificate goes away here.
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => Box::new(stream),
                    Err(_) => return,
                },
                None => Box::new(stream),
            };
            // An error is the connection that was broken on purpose.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    answers: Answers,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
) -> io::Result<Response> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(io::Error::other)?
        .to_bytes()
        .to_vec();
    asked.lock().expect("no panic").push(ReceivedRequest {
        method: parts.method.to_string(),
        target: parts.uri.to_string(),
        headers: parts.headers,
        body,
    });
    let next = answers.lock().expect("no panic").pop_front();
    let mut next = next.unwrap_or_else(|| empty(500));
    loop {
        next = match next {
            Answer::Late(wait, then) => {
                tokio::time::sleep(wait).await;
                *then
            }
            Answer::After(act, then) => {
                act();
                *then
            }
            _ => break,
        };
    }
    match next {
        Answer::Late(..) | Answer::After(..) => unreachable!("what comes before an answer is over"),
        Answer::Lost => Err(io::Error::other("lost on purpose")),
        Answer::Silent => std::future::pending().await,
        Answer::Says {
            status,
            headers,
            body,
        } => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            for (name, value) in headers {
                response
                    .headers_mut()
                    .insert(name, value.parse().expect("a header"));
            }
            Ok(response)
        }
    }
}

/// The body of a refusal (D1.5).
pub fn refusal(status: u16, code: &str, message: &str) -> Answer {
    json(
        status,
        &serde_json::json!({ "message": message, "code": code, "requestId": "req_1", "retryable": false }),
    )
}
