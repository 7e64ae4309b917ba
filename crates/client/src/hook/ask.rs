//! One request of a hook: no repetition, no redirect, one limit of time.
//!
//! Keeps CL-1.

use super::settings::HookSettings;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use provost_outbound::{Patience, client_config, pool, roots_of_file, system_roots};
use provost_words::Secret;
use provost_words::url::{BASE, encoded};
use rustls::RootCertStore;
use serde_json::Value;
use std::error::Error;
use std::time::Duration;

/// LIMIT: bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// What is asked of a server.
pub struct Ask<'a> {
    pub settings: &'a HookSettings,
    pub token: &'a Secret<String>,
    /// Below the organization: `policies/decisions`.
    pub path: &'a str,
    pub body: Option<Value>,
    pub limit: Duration,
}

/// Returns the answer of success, from a thread that may wait.
///
/// Errors: a sentence with the cause.
pub fn ask_here(ask: &Ask<'_>) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime could be started: {error}"))?;
    let answer = runtime.block_on(ask.answer());
    // A name may still be looked up, which nobody waits for.
    runtime.shutdown_background();
    answer
}

impl Ask<'_> {
    /// Returns the answer of success.
    ///
    /// Errors: a sentence with the cause.
    pub async fn answer(&self) -> Result<Vec<u8>, String> {
        let url = &self.settings.url;
        let asked = tokio::time::timeout(self.limit, self.exchange()).await;
        asked.unwrap_or_else(|_| {
            Err(format!(
                "{url} did not answer within {} ms",
                self.limit.as_millis()
            ))
        })
    }

    async fn exchange(&self) -> Result<Vec<u8>, String> {
        let url = &self.settings.url;
        let roots = match (&self.settings.ca_cert, url.starts_with("https:")) {
            (_, false) => RootCertStore::empty(),
            (Some(path), true) => {
                roots_of_file(path).map_err(|error| format!("{}: {error}", path.display()))?
            }
            (None, true) => system_roots(),
        };
        let tls = client_config(roots).map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let patience = Patience {
            connect: self.limit,
            idle: self.limit,
        };
        let target = format!(
            "{url}{}/{}",
            BASE.replacen(
                "{organizationId}",
                &encoded(&self.settings.organization).to_string(),
                1
            ),
            self.path
        );
        let method = if self.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let bearer = Secret::new(format!("Bearer {}", self.token.expose()));
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::AUTHORIZATION, bearer.expose())
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::USER_AGENT,
                concat!("provost-hook/", env!("CARGO_PKG_VERSION")),
            )
            .body(Full::new(Bytes::from(
                self.body.as_ref().map(Value::to_string).unwrap_or_default(),
            )))
            .map_err(|_| format!("{url} is not the URL of a server"))?;
        let lost = |error: &(dyn Error + 'static)| format!("{url} cannot be reached: {}", innermost(error));
        let response = pool(tls, patience)
            .request(request)
            .await
            .map_err(|error| lost(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| lost(error.as_ref()))?.to_bytes();
        if status == StatusCode::OK {
            return Ok(body.to_vec());
        }
        Err(refused(url, status, &body))
    }
}

fn refused(url: &str, status: StatusCode, body: &[u8]) -> String {
    let envelope: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(message) = envelope["message"].as_str() else {
        return format!("{url} answered {status} without words; is it a Provost server?");
    };
    let whose = match status.as_u16() {
        401 => "the token of the hook is refused: ",
        403 => "the token of the hook may not ask for decisions: ",
        _ => "",
    };
    let first = &envelope["errors"][0];
    let place = match (first["path"].as_str(), first["message"].as_str()) {
        (Some(path), Some(why)) => format!(" ({path} {why})"),
        _ => String::new(),
    };
    format!("{whose}{message}{place} ({})", status.as_u16())
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
