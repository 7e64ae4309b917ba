//! Clients that are known by the URL of their document (D2.7), and the keys that clients keep at URLs of their own.
//!
//! A stranger decides what is fetched here, so little is: from public addresses, a few at a time ([`Slots`]), and what failed is
//! not tried again for a minute.

use super::grants::Client;
use super::state::Oauth;
use super::ttl_cache::Recent;
use super::turns::{Asker, Slots};
use aws_lc_rs::hmac;
use provost_kernel::auth::ScopeSet;
use provost_oauth::client_document::{self, ClientDocument};
use provost_oauth::error::Code;
use provost_oauth::{KeySet, TokenError};
use provost_outbound::{FetchedDocument, Limits};
use std::sync::Arc;
use std::time::Duration;

/// LIMIT: documents and key sets that are remembered.
const MAX_KNOWN: usize = 1000;
/// For how long a client is known that was given something. Units: seconds.
const KNOWN_SECS: i64 = 86_400;
/// How long a document is believed that does not say how long it may be used. Units: seconds.
const DOCUMENT_SECS: i64 = 3600;
/// LIMIT: a stranger's `Cache-Control` makes no document be fetched more often than every five minutes, and none be
/// believed longer than a day. Units: seconds.
const DOCUMENT_BOUNDS_SECS: (i64, i64) = (300, 86_400);
/// How long keys are believed. Units: seconds.
const KEYS_SECS: i64 = 300;
/// How long a failure is, and the time between two fetches of keys because one is not among them. Units: seconds.
const FAILURE_SECS: i64 = 60;

/// What is known of clients that are no rows.
pub struct Documents {
    clients: Recent<Result<Client, String>>,
    keys: Recent<Result<Arc<KeySet>, String>>,
    /// Places of keys that were asked again a moment ago.
    asked_again: Recent<()>,
    /// The URLs of clients that were given something.
    given: Recent<()>,
    turns: Slots,
}

impl Documents {
    /// Makes a memory of nobody.
    pub fn new(key: &hmac::Key) -> Self {
        Self {
            clients: Recent::new(MAX_KNOWN, key),
            keys: Recent::new(MAX_KNOWN, key),
            asked_again: Recent::new(MAX_KNOWN, key),
            given: Recent::new(MAX_KNOWN, key),
            turns: Slots::default(),
        }
    }
}

impl Oauth {
    /// Returns the client whose document is at a URL.
    ///
    /// Errors: `invalid_client`, `temporarily_unavailable`.
    pub(super) async fn client_at(&self, url: &str, network: Option<String>) -> Result<Client, TokenError> {
        let checked = client_document::check_url(url);
        checked.map_err(|refusal| refusal.answer(Code::InvalidClient))?;
        let now = self.now_secs();
        let known = self.documents.clients.get(url, now);
        let found = if let Some(known) = known {
            known
        } else {
            let asker = Asker {
                network,
                is_known: self.documents.given.get(url, now).is_some(),
            };
            let found = self.fetched(url, client_document::FETCH, &asker).await?;
            let mut secs = FAILURE_SECS;
            let found = found.and_then(|fetched| {
                let document = client_document::parse(&fetched.body, url);
                let document = document.map_err(|refusal| refusal.to_string())?;
                secs = document_secs(fetched.max_age);
                Ok(client(document))
            });
            self.documents.clients.put(url, found.clone(), now, now + secs);
            found
        };
        found.map_err(|cause| {
            TokenError::new(
                Code::InvalidClient,
                format!("the client's document is not accepted: {cause}"),
            )
        })
    }

    /// Returns the keys that a client keeps at a URL.
    ///
    /// Errors: `invalid_client`, `temporarily_unavailable`.
    pub(super) async fn keys_at(
        &self,
        url: &str,
        client: &Client,
        network: Option<String>,
    ) -> Result<Arc<KeySet>, TokenError> {
        let now = self.now_secs();
        let found = match self.documents.keys.get(url, now) {
            Some(known) => known,
            None => {
                self.fetched_keys(url, &self.asker(client, network, now), now)
                    .await?
            }
        };
        found.map_err(|cause| not_accepted(&cause))
    }

    /// Returns the keys that a client keeps at a URL as they are now, because an assertion names one that is not among those
    /// that are known: the client has others since. Nothing, when they were asked for that a minute ago.
    ///
    /// Errors: as [`Self::keys_at`].
    pub(super) async fn keys_anew(
        &self,
        url: &str,
        client: &Client,
        network: Option<String>,
    ) -> Result<Option<Arc<KeySet>>, TokenError> {
        let now = self.now_secs();
        if self.documents.asked_again.get(url, now).is_some() {
            return Ok(None);
        }
        self.documents.asked_again.put(url, (), now, now + FAILURE_SECS);
        let found = self
            .fetched_keys(url, &self.asker(client, network, now), now)
            .await?;
        found.map(Some).map_err(|cause| not_accepted(&cause))
    }

    /// Returns for whom something is fetched.
    fn asker(&self, client: &Client, network: Option<String>, now: i64) -> Asker {
        let is_known = client.organization.is_some() || self.documents.given.get(&client.id, now).is_some();
        Asker { network, is_known }
    }

    async fn fetched_keys(
        &self,
        url: &str,
        asker: &Asker,
        now: i64,
    ) -> Result<Result<Arc<KeySet>, String>, TokenError> {
        let found = self.fetched(url, provost_oauth::jwks::FETCH, asker).await?;
        let found = found.and_then(|fetched| {
            let keys = KeySet::parse(&fetched.body);
            keys.map(Arc::new).map_err(|refusal| refusal.to_string())
        });
        let secs = if found.is_ok() { KEYS_SECS } else { FAILURE_SECS };
        self.documents.keys.put(url, found.clone(), now, now + secs);
        Ok(found)
    }

    /// Notes that a client was given something: what is fetched for it does not wait behind what is fetched for strangers.
    pub(super) fn note_given(&self, client: &Client) {
        if client.organization.is_none() {
            let now = self.now_secs();
            self.documents.given.put(&client.id, (), now, now + KNOWN_SECS);
        }
    }

    async fn fetched(
        &self,
        url: &str,
        limits: Limits,
        asker: &Asker,
    ) -> Result<Result<FetchedDocument, String>, TokenError> {
        let busy = || TokenError::new(Code::TemporarilyUnavailable, "no other server can be asked now");
        let host = client_document::origin(url).map(|(host, _)| host);
        let turn = self.documents.turns.take(host.as_deref(), asker).await;
        let _turn = turn.ok_or_else(busy)?;
        let fetcher = self.fetcher().map_err(|_| busy())?;
        let found = fetcher.get_with_age(url, limits).await;
        Ok(found.map_err(|refused| refused.to_string()))
    }
}

fn not_accepted(cause: &str) -> TokenError {
    TokenError::new(
        Code::InvalidClient,
        format!("the client's keys are not accepted: {cause}"),
    )
}

/// Returns for how many seconds a document is believed.
fn document_secs(max_age: Option<Duration>) -> i64 {
    let (least, most) = DOCUMENT_BOUNDS_SECS;
    max_age.map_or(DOCUMENT_SECS, |age| {
        i64::try_from(age.as_secs()).unwrap_or(most).clamp(least, most)
    })
}

fn client(document: ClientDocument) -> Client {
    let scopes = document.scopes.map(|names| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        ScopeSet::of(&names)
    });
    Client {
        id: document.client_id,
        name: document.name,
        organization: None,
        redirect_uris: document.redirect_uris,
        grant_types: document.grant_types,
        scopes,
        authentication: document.authentication,
        service_account_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_believed_as_long_as_it_says_within_bounds() {
        for (said, secs) in [
            (None, 3600),
            (Some(0), 300),
            (Some(299), 300),
            (Some(7200), 7200),
            (Some(86_401), 86_400),
            (Some(u64::MAX), 86_400),
        ] {
            assert_eq!(document_secs(said.map(Duration::from_secs)), secs, "{said:?}");
        }
    }
}
