//! Telling the server what is in place.

use crate::cli::{Client, Consent, Failure};
use http::Method;
use serde_json::json;

/// Who reports.
pub struct Target {
    pub id: String,
    pub name: Option<String>,
}

/// What is in place.
pub struct Report<'a> {
    pub release_id: &'a str,
    pub content_digest: String,
    /// `verified` or `failed`.
    pub state: &'static str,
    pub message: Option<String>,
}

/// LIMIT: characters of a report's message.
const MAX_MESSAGE: usize = 1024;

/// Sends a report.
pub async fn send(
    client: &Client<'_>,
    profile_id: &str,
    target: &Target,
    report: Report<'_>,
) -> Result<(), Failure> {
    let mut body = json!({
        "targetId": target.id, "releaseId": report.release_id, "contentDigest": report.content_digest,
        "state": report.state,
    });
    if let Some(name) = &target.name {
        body["targetName"] = name.as_str().into();
    }
    if let Some(message) = report.message {
        body["message"] = message.chars().take(MAX_MESSAGE).collect::<String>().into();
    }
    let consent = Consent::new("report of managed configuration");
    let path = ["managed-config", "profiles", profile_id, "reports"];
    client
        .send_json(Method::POST, &path, &body, &consent)
        .await
        .map(drop)
}
