//! CI jobs and pods act as service accounts, by tokens of their platform: the claims are those that GitHub, GitLab and
//! Kubernetes really send, signed by an issuer of the test's own.

mod again;
mod audited;
mod claims;
mod ends;
mod held;
mod keys;
mod written;

use crate::access::oauth::granted::EXCHANGE;
use crate::access::oauth::{URL, post, refused, workshop};
use crate::support::{App, Reply, fresh_key};
use claims::Platform;
use provost_oauth::corpus::Workshop;
use serde_json::{Value, json};

pub const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
pub const TRUSTS: &str = "/workload-trusts";

/// An account, a trust of it, and the platform whose keys the trust has.
pub struct Scene {
    pub workshop: Workshop,
    pub platform: Platform,
    pub account: String,
    pub trust: String,
}

impl Scene {
    /// A trust with the platform's keys inside, of an account with these rights.
    pub async fn of(app: &App, platform: Platform, role: &str, scopes: &[&str]) -> Self {
        let workshop = workshop(app);
        let (account, _) = app.account(&fresh_key(), role, scopes).await;
        let mut body = platform.trust(&account);
        body["jwks"] = workshop.key_set();
        let trust = trusted(app, body).await;
        Self {
            workshop,
            platform,
            account,
            trust,
        }
    }

    /// A token of the platform for this server, with other claims.
    pub fn token(&self, app: &App, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.platform.claims(app.now().as_ms() / 1000);
        change(&mut claims);
        self.workshop.signed(&self.platform.header(), &claims)
    }

    pub async fn exchange(&self, app: &App, token: &str) -> Reply {
        exchange(app, &self.trust, token, &[]).await
    }

    /// Exchanges a new token and returns the session's.
    pub async fn session(&self, app: &App) -> String {
        let reply = self.exchange(app, &self.token(app, |_| {})).await;
        access(&reply)
    }

    pub async fn update(&self, app: &App, body: Value) -> Reply {
        app.write("PATCH", &format!("{TRUSTS}/{}", self.trust), body)
            .await
    }
}

/// Makes a trust and returns its id.
pub async fn trusted(app: &App, body: Value) -> String {
    let reply = app.write("POST", TRUSTS, body).await;
    reply.ok()["workloadTrust"]["id"].as_str().unwrap().to_owned()
}

pub async fn exchange(app: &App, trust: &str, token: &str, more: &[(&str, &str)]) -> Reply {
    let mut form = vec![
        ("grant_type", EXCHANGE),
        ("client_id", trust),
        ("subject_token", token),
        ("subject_token_type", JWT),
    ];
    form.extend_from_slice(more);
    post(app, "/oauth/token", &form).await
}

#[track_caller]
pub fn access(reply: &Reply) -> String {
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    reply.json["access_token"].as_str().unwrap().to_owned()
}

/// The one sentence of every refusal.
#[track_caller]
pub fn not_accepted(reply: &Reply) {
    refused(reply, 400, "invalid_grant");
    let said = reply.json["error_description"].as_str().unwrap();
    let sentence = "the workload's token is not accepted by this trust";
    assert!(said.starts_with(sentence), "{said}");
}
