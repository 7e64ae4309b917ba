//! The error envelope (D1.5) in words.

use super::advice;
use super::failure::{Exit, Failure};
use super::server::Reply;
use http::{HeaderMap, header};
use serde_json::Value;

/// Describes an answer that is no success.
pub(super) fn describe(reply: &Reply, envelope: &Value, url: &str) -> Failure {
    let mut refusal = envelope.clone();
    if let (Some(members), Some(scope)) = (refusal.as_object_mut(), needed(&reply.headers)) {
        members.insert(advice::NEEDED_SCOPE.to_owned(), scope.into());
    }
    Failure {
        status: Some(reply.status.as_u16()),
        refusal: refusal.is_object().then(|| Box::new(refusal)),
        ..words(reply, envelope, url)
    }
}

/// Returns the scopes that a refusal asks for (RFC 6750 §3), if they are names of scopes.
fn needed(headers: &HeaderMap) -> Option<&str> {
    let challenge = headers.get(header::WWW_AUTHENTICATE)?.to_str().ok()?;
    let scope = challenge.split("scope=\"").nth(1)?.split('"').next()?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || b"_: ".contains(&byte);
    (!scope.is_empty() && scope.bytes().all(is_name)).then_some(scope)
}

fn words(reply: &Reply, envelope: &Value, url: &str) -> Failure {
    let status = reply.status;
    let exit = Exit::of_status(status.as_u16());
    if status.is_redirection() {
        let target = reply
            .headers
            .get(header::LOCATION)
            .and_then(|l| l.to_str().ok())
            .unwrap_or("elsewhere");
        let line = format!("{url} redirects to {target}; redirects are not followed, the token stays here");
        return Failure::new(exit, line).and("if that is the server, name it with --url");
    }
    let text = |member: &str| envelope.get(member).and_then(Value::as_str);
    let Some(message) = text("message") else {
        return Failure::new(
            exit,
            format!("{url} answered {status} without words; is it a Provost server?"),
        );
    };
    let mut failure = Failure::new(exit, message);
    for error in envelope
        .get("errors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let part = |member: &str| error.get(member).and_then(Value::as_str).unwrap_or_default();
        failure = failure.and(format!("  {}: {}", part("path"), part("message")));
    }
    // What a code adds, such as `tokenId` or `assignees`.
    let known = [
        "message",
        "code",
        "requestId",
        "retryable",
        "errors",
        advice::TOKEN_ORGANIZATION,
    ];
    for (member, value) in envelope
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(m, _)| !known.contains(&m.as_str()))
    {
        failure = failure.and(format!(
            "  {member}: {}",
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        ));
    }
    let code = text("code").unwrap_or("no code");
    let request = text("requestId").or_else(|| reply.headers.get("x-request-id")?.to_str().ok());
    failure.and(format!(
        "{} {code}, request {}",
        status.as_u16(),
        request.unwrap_or("unknown")
    ))
}
