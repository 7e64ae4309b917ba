//! One message to the server, and what comes back of it.

use super::HttpSend;
use super::headers;
use super::sse::Events;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// LIMIT: bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
const SESSION: &str = "mcp-session-id";
/// The code of what the server or the way to it refused; the protocol has none of its own.
const REFUSED: i32 = -32000;

/// A line for the client.
pub(super) struct ClientLine(pub Vec<u8>);

/// The way to the server, and what was negotiated on it.
pub(super) struct Link<S> {
    send: S,
    lines: Mutex<Option<UnboundedSender<ClientLine>>>,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    revision: Option<String>,
    session: Option<HeaderValue>,
}

impl<S: HttpSend> Link<S> {
    pub fn new(send: S, lines: UnboundedSender<ClientLine>) -> Self {
        Self {
            send,
            lines: Mutex::new(Some(lines)),
            state: Mutex::default(),
        }
    }

    /// Ends the output when everything that was said is written.
    pub fn close(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn say(&self, line: Vec<u8>) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = lines.as_ref() {
            let _ = lines.send(ClientLine(line));
        }
    }

    /// Tells the client that a request is not answered, and why.
    pub fn refuse(&self, id: &Value, code: i32, message: &str) {
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
        self.say(error.to_string().into_bytes());
    }

    /// Relays a message. A request is answered once, whatever happens; a notification never.
    pub async fn relay(&self, bytes: Bytes, message: &Value) {
        let id = message.get("id").filter(|_| message.get("method").is_some());
        let refuse = |sentence: &str| {
            if let Some(id) = id {
                self.refuse(id, REFUSED, sentence);
            }
        };
        let response = match self.post(bytes, message).await {
            Ok(response) => response,
            Err(sentence) => return refuse(&sentence),
        };
        if message["method"] == "initialize" && response.status().is_success() {
            self.state().session = response.headers().get(SESSION).cloned();
        }
        match self.take(response, message).await {
            Ok(true) => {}
            Ok(false) => refuse("the server ended its answer without answering this request"),
            Err(sentence) => refuse(&sentence),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message; when the server does not know the session, once more without it: it grants nothing.
    async fn post(&self, bytes: Bytes, message: &Value) -> Result<Response<S::Body>, String> {
        let State {
            revision,
            mut session,
        } = self.state().clone();
        if message["method"] == "initialize" {
            session = None;
        }
        loop {
            let mut request = Request::new(bytes.clone());
            *request.method_mut() = Method::POST;
            *request.uri_mut() = http::Uri::from_static("/mcp");
            *request.headers_mut() = headers::of(message, revision.as_deref());
            if let Some(session) = &session {
                request.headers_mut().insert(SESSION, session.clone());
            }
            let response = self.send.send(request).await?;
            if response.status() != StatusCode::NOT_FOUND || session.take().is_none() {
                return Ok(response);
            }
            self.state().session = None;
        }
    }

    /// Hands on what the server says; returns whether the request was answered.
    ///
    /// Errors: a sentence for the client.
    async fn take(&self, response: Response<S::Body>, message: &Value) -> Result<bool, String> {
        let status = response.status();
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if status.is_success() && media_type.starts_with("text/event-stream") {
            return self.stream(response, message).await;
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body = body
            .map_err(|error| format!("the server's answer could not be read: {error}"))?
            .to_bytes();
        let answer = serde_json::from_slice::<Value>(&body).ok();
        if let Some(answer) = answer.as_ref().filter(|answer| answer.get("jsonrpc").is_some()) {
            return Ok(self.hand_on(answer, &body, message));
        }
        if status.is_success() {
            // 202: what was sent wants no answer.
            return Ok(message.get("id").is_none() || message.get("method").is_none());
        }
        let sentence = answer.as_ref().and_then(|answer| answer["message"].as_str());
        Err(refusal(status, sentence.unwrap_or("it gave no reason")))
    }

    async fn stream(&self, response: Response<S::Body>, message: &Value) -> Result<bool, String> {
        let (mut events, mut is_answered) = (Events::default(), false);
        let mut body = pin!(response.into_body());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| format!("the server's answer broke off: {}", error.into()))?;
            let Ok(data) = frame.into_data() else { continue };
            let fed = events.feed(&data, |event| {
                if let Ok(said) = serde_json::from_slice::<Value>(&event) {
                    is_answered |= self.hand_on(&said, &event, message);
                }
            });
            fed.map_err(|_| "the server's answer is too long".to_owned())?;
        }
        Ok(is_answered || message.get("id").is_none())
    }

    /// Writes what the server said as one line; returns whether it answers the request.
    fn hand_on(&self, said: &Value, bytes: &[u8], message: &Value) -> bool {
        let is_answer = said.get("method").is_none();
        if is_answer && message["method"] == "initialize" {
            let revision = said["result"]["protocolVersion"].as_str();
            self.state().revision = revision.map(str::to_owned);
        }
        let is_one_line = !bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        self.say(if is_one_line {
            bytes.to_vec()
        } else {
            said.to_string().into_bytes()
        });
        is_answer
    }
}

fn refusal(status: StatusCode, sentence: &str) -> String {
    let advice = match status.as_u16() {
        401 => "; sign in again, or give this program a token that is valid, then restart it",
        403 => "; ask an administrator, or use a token that may",
        413 => "; send less at once",
        429 | 503 => "; try again in a moment",
        _ => "",
    };
    format!(
        "the server refused this request ({}): {sentence}{advice}",
        status.as_u16()
    )
}
