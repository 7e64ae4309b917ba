//! Answers of the endpoints: nobody keeps them.

use super::issue::TokenAnswer;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use provost_kernel::Kernel;
use provost_kernel::kernel::buckets;
use provost_kernel::write_behind::network;
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use serde_json::json;
use std::net::IpAddr;

/// Returns an answer of JSON that is kept nowhere (RFC 6749 §5.1).
pub fn head(status: u16, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// Answers other methods than POST.
pub async fn only_post(method: Method) -> Response {
    let mut response = if method == Method::OPTIONS {
        head(204, String::new())
    } else {
        let error = TokenError::new(Code::InvalidRequest, "this endpoint takes POST alone");
        head(405, error.json())
    };
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static("POST, OPTIONS"));
    response
}

/// Returns the answer that holds the tokens.
pub fn issued(token: &TokenAnswer) -> Response {
    let mut body = json!({
        "access_token": token.access.expose(),
        "token_type": if token.is_bound { "DPoP" } else { "Bearer" },
        "expires_in": token.expires_in,
        "scope": token.scopes.to_list().join(" "),
    });
    if let Some(refresh) = &token.refresh {
        body["refresh_token"] = refresh.expose().as_str().into();
    }
    if token.is_exchanged {
        body["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token".into();
    }
    head(200, body.to_string())
}

/// Returns a refusal in the words of the registry.
pub fn refused(error: &TokenError) -> Response {
    let mut response = head(error.status(), error.json());
    let headers = response.headers_mut();
    if error.status() == 401 {
        // RFC 9110 §11.6.1: a 401 names a scheme; clients prove themselves in the form.
        headers.insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer error=\"invalid_client\""),
        );
    }
    let wait = match error.code() {
        Code::TemporarilyUnavailable => Some("1"),
        Code::SlowDown => Some("3600"),
        _ => None,
    };
    if let Some(secs) = wait {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(secs));
    }
    response
}

/// Returns the refusal of a request whose sender is not who they say; beyond the limit of its network with 429 (D1.11).
pub fn failed(kernel: &Kernel, from: Option<IpAddr>, error: &TokenError) -> Response {
    let is_failure = matches!(error.code(), Code::InvalidClient | Code::InvalidGrant);
    let Some(from) = from.filter(|_| is_failure) else {
        return refused(error);
    };
    match kernel.limit(&buckets::AUTHENTICATION, &[&network(from)]) {
        Ok(_) => refused(error),
        Err(limited) => {
            let slow = TokenError::new(Code::TemporarilyUnavailable, limited.message());
            let mut response = head(429, slow.json());
            let wait = HeaderValue::from(limited.retry_after_secs().unwrap_or(1));
            response.headers_mut().insert(header::RETRY_AFTER, wait);
            response
        }
    }
}
