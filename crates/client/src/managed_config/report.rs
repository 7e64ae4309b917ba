//! The server, as a round of a pull asks it and tells it what is in place.

use crate::cli::{Client, Consent, Failure, Signer};
use http::Method;
use serde_json::{Value, json};

/// Where releases come from and reports go.
pub(crate) trait Origin: Signer {
    /// Returns the organization's key.
    fn organization(&self) -> &str;

    /// Returns the current release of a profile.
    ///
    /// Errors: why there is none.
    async fn current(&self, profile_id: &str) -> Result<Value, Failure>;

    /// Sends a report.
    ///
    /// Errors: why it was not taken.
    async fn report(&self, profile_id: &str, report: Report<'_>) -> Result<(), Failure>;
}

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

impl Report<'_> {
    /// Returns it as it is sent.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "releaseId": self.release_id, "contentDigest": self.content_digest, "state": self.state,
        });
        if let Some(message) = &self.message {
            body["message"] = message.chars().take(MAX_MESSAGE).collect::<String>().into();
        }
        body
    }
}

/// A machine that pulls by the token of a service account.
pub struct MachineAccount<'a> {
    pub client: &'a Client<'a>,
    pub target: &'a Target,
}

impl Signer for MachineAccount<'_> {
    async fn keys(&self, path: &str) -> Result<Value, Failure> {
        self.client.keys(path).await
    }

    fn note(&self, line: &str) {
        self.client.note(line);
    }
}

impl Origin for MachineAccount<'_> {
    fn organization(&self) -> &str {
        self.client.organization()
    }

    async fn current(&self, profile_id: &str) -> Result<Value, Failure> {
        let path = ["managed-config", "profiles", profile_id, "current"];
        self.client.get_json(&path, &[]).await
    }

    async fn report(&self, profile_id: &str, report: Report<'_>) -> Result<(), Failure> {
        let mut body = report.body();
        body["targetId"] = self.target.id.as_str().into();
        if let Some(name) = &self.target.name {
            body["targetName"] = name.as_str().into();
        }
        let consent = Consent::new("report of managed configuration");
        let path = ["managed-config", "profiles", profile_id, "reports"];
        self.client
            .send_json(Method::POST, &path, &body, &consent)
            .await
            .map(drop)
    }
}
