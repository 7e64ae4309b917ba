//! Errors as responses (D1.5, D1.7).

use super::layer::RequestId;
use crate::{Code, Error};
use axum::body::Body;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

const ENVELOPE: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json; charset=utf-8");

/// Says, as an extension of a response, that its refusal is a page for people and stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Page;

/// Returns the response that tells the caller of an error; a server error is logged here and nowhere else.
///
/// The body is the envelope, or an RFC 9457 problem when `accept` names `application/problem+json`.
pub fn respond(error: &Error, request_id: &RequestId, accept: Option<&HeaderValue>) -> Response<Body> {
    let status = StatusCode::from_u16(error.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status.is_server_error() {
        log(error, request_id);
    }
    let mut response = Response::new(Body::empty());
    write(&mut response, error, status, request_id, accept);
    response
}

/// Turns a refusal that the router itself made, and that has no JSON body and is no [`Page`], into an envelope.
///
/// Status and headers stay, so that for example `Allow` survives.
pub(super) fn normalize_error_response(
    response: &mut Response<Body>,
    request_id: &RequestId,
    accept: Option<&HeaderValue>,
) {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || has_json(response) || response.extensions().get::<Page>().is_some() {
        return;
    }
    let (code, message) = words(status);
    let error = Error::new(code, message);
    if status.is_server_error() {
        log(&error, request_id);
    }
    write(response, &error, status, request_id, accept);
}

fn write(
    response: &mut Response<Body>,
    error: &Error,
    status: StatusCode,
    request_id: &RequestId,
    accept: Option<&HeaderValue>,
) {
    let mut body = error.envelope(&request_id.0);
    let mut content_type = ENVELOPE;
    if accept.is_some_and(wants_problem) {
        content_type = PROBLEM;
        make_problem(&mut body, status, request_id);
    }
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    if let Some(secs) = error.retry_after_secs() {
        response.headers_mut().insert(RETRY_AFTER, secs.into());
    }
    let body = body.to_string();
    response.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    *response.body_mut() = Body::from(body);
}

/// RFC 9457; the members of the envelope stay, except where both have one of that name.
fn make_problem(body: &mut Value, status: StatusCode, request_id: &RequestId) {
    let message = body["message"].clone();
    body["type"] = "about:blank".into();
    body["title"] = status.canonical_reason().unwrap_or("Error").into();
    body["status"] = status.as_u16().into();
    body["detail"] = message;
    body["instance"] = request_id.0.as_str().into();
}

fn wants_problem(accept: &HeaderValue) -> bool {
    let Ok(accept) = accept.to_str() else { return false };
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts
            .next()
            .is_some_and(|media| media.eq_ignore_ascii_case("application/problem+json"));
        is_named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn has_json(response: &Response<Body>) -> bool {
    let media = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    media.is_some_and(|media| {
        let media = media.split(';').next().unwrap_or_default().trim();
        media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
    })
}

fn words(status: StatusCode) -> (Code, &'static str) {
    match status.as_u16() {
        401 => (Code::Unauthenticated, "a valid bearer token is needed"),
        403 => (Code::RoleForbidden, "this is not allowed"),
        404 => (Code::NotFound, "there is no such route"),
        405 => (Code::MethodNotAllowed, "this route does not have this method"),
        413 => (Code::PayloadTooLarge, "the body is too large"),
        414 => (Code::UriTooLong, "the request target is too long"),
        415 => (
            Code::UnsupportedMediaType,
            "the media type of the body is not supported",
        ),
        429 => (Code::RateLimited, "there are too many requests; try again later"),
        431 => (Code::HeadersTooLarge, "the headers are too large"),
        503 => (
            Code::Unavailable,
            "the server is not available now; try again later",
        ),
        500..=599 => (
            Code::Internal,
            "the server could not answer; the request id names the log entry",
        ),
        _ => (Code::InvalidRequest, "the request is not valid"),
    }
}

fn log(error: &Error, request_id: &RequestId) {
    tracing::error!(
        request_id = %request_id.0,
        code = error.code().as_str(),
        message = error.message(),
        cause = error.private(),
        "a request failed"
    );
}
