//! Request bodies: read whole, within a limit and a time.

use crate::{Code, Error, Result};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{Request, request};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Returns the request's head and its whole body.
///
/// Errors: `PayloadTooLarge` before anything is read when the body's declared length exceeds `limit`, else as
/// soon as more than `limit` bytes have come; `InvalidRequest` when it is broken, or not complete in `timeout`.
/// The connection of a body that was not read to its end is closed after the response (HTTP/1), or its stream
/// reset (HTTP/2).
pub async fn read_body(
    request: Request<Body>,
    limit: usize,
    timeout: Duration,
) -> Result<(request::Parts, Bytes)> {
    check_declared(&request, limit)?;
    let (parts, body) = request.into_parts();
    match tokio::time::timeout(timeout, collect(body, limit)).await {
        Ok(bytes) => Ok((parts, bytes?)),
        Err(_) => Err(Error::new(
            Code::InvalidRequest,
            "the request was not complete in time",
        )),
    }
}

/// Refuses a body whose declared length exceeds `limit`, before anything of it is read.
///
/// Errors: `PayloadTooLarge`.
pub fn check_declared(request: &Request<Body>, limit: usize) -> Result<()> {
    let declared = request.headers().get(http::header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse().ok());
    if request.body().size_hint().lower().max(declared.unwrap_or(0)) > limit as u64 {
        return Err(too_large(limit));
    }
    Ok(())
}

/// Takes what comes of a body within a time, and keeps nothing of it: a connection whose body was read goes on.
pub(super) async fn skip(mut body: Body, limit: usize, time: Duration) {
    let mut left = limit;
    let skipped = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = match frame.data_ref() {
                Some(data) if data.len() > left => return,
                Some(data) => left - data.len(),
                None => left,
            };
        }
    };
    let _ = tokio::time::timeout(time, skipped).await;
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes> {
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Error::new(Code::InvalidRequest, "the body is broken or ended early").caused_by(error)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + joined.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        if whole.is_empty() && joined.is_empty() {
            whole = data;
            continue;
        }
        joined.extend_from_slice(&std::mem::take(&mut whole));
        joined.extend_from_slice(&data);
    }
    Ok(if joined.is_empty() { whole } else { joined.freeze() })
}

fn too_large(limit: usize) -> Error {
    Error::new(
        Code::PayloadTooLarge,
        format!("the body is larger than {limit} bytes"),
    )
}

/// Tells whether a request's body was read to its end.
#[derive(Clone)]
pub(super) struct ReadProgress(Option<Arc<AtomicBool>>);

impl ReadProgress {
    /// Returns the body, observed, and the observation.
    pub(super) fn of(body: Body) -> (Body, Self) {
        if body.is_end_stream() {
            return (body, Self(None));
        }
        let ended = Arc::new(AtomicBool::new(false));
        let observed = ObservedBody {
            body,
            ended: Arc::clone(&ended),
        };
        (Body::new(observed), Self(Some(ended)))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(|ended| ended.load(Ordering::Acquire))
    }
}

struct ObservedBody {
    body: Body,
    ended: Arc<AtomicBool>,
}

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(ctx));
        if frame.is_none() || (matches!(frame, Some(Ok(_))) && self.body.is_end_stream()) {
            self.ended.store(true, Ordering::Release);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
