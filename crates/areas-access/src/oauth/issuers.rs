//! The public keys of trusted issuers.
//!
//! ```text
//! age     0 ..... 10 min ............ 1 h ............
//! keys    used  | used and renewed  | fetched, or 503
//! ```
//!
//! A token that names an unknown key makes them be fetched at most once a minute. Whoever waits for a fetch holds up nobody
//! else: tokens whose key is known go on.

use super::settings::{KeySource, TrustedIssuer};
use provost_kernel::error::{Error, Result};
use provost_kernel::time::Clock;
use provost_oauth::KeySet;
use provost_oauth::access_token::{Issuer, TokenPreview};
use provost_outbound::{FetchRefusal, Fetcher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From this age on keys are renewed while they are used.
const FRESH: Duration = Duration::from_mins(10);
/// LIMIT: the age at which keys are not used any more (an issuer that is down stops its tokens after this).
const STALE: Duration = Duration::from_hours(1);
/// Between two fetches.
const PAUSE: Duration = Duration::from_mins(1);
/// Between two fetches as long as there are no keys at all.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// How long an issuer that did not answer about a token is not asked about another: whoever comes meanwhile does not wait.
const SILENCE: Duration = Duration::from_secs(5);

/// A trusted issuer and what is known of its keys.
pub struct IssuerTrust {
    pub declared: TrustedIssuer,
    state: Mutex<State>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct State {
    keys: Option<(Arc<KeySet>, Duration)>,
    tried: Option<Duration>,
    /// When it last did not answer about a token.
    silent: Option<Duration>,
}

impl State {
    /// Returns the keys, unless they are too old, and whether they are to be renewed.
    fn usable(&self, now: Duration) -> Option<(Arc<KeySet>, bool)> {
        let (keys, fetched) = self.keys.as_ref()?;
        let age = now.saturating_sub(*fetched);
        (age <= STALE).then(|| (keys.clone(), age > FRESH))
    }

    fn may_try(&self, now: Duration) -> bool {
        let pause = if self.keys.is_none() { FIRST_PAUSE } else { PAUSE };
        self.tried.is_none_or(|tried| now.saturating_sub(tried) >= pause)
    }
}

impl IssuerTrust {
    pub fn new(declared: TrustedIssuer) -> Self {
        Self {
            declared,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Says whether it did not answer about a token a moment ago.
    pub fn is_silent(&self, clock: &dyn Clock) -> bool {
        let since = |at| clock.monotonic().saturating_sub(at);
        self.lock().silent.is_some_and(|at| since(at) < SILENCE)
    }

    /// Notes why there was no answer about a token. What it answered, a refusal too, says nothing of other tokens: nobody
    /// makes it silent for others with a token of theirs.
    pub fn note_silence(&self, clock: &dyn Clock, cause: &FetchRefusal) {
        if matches!(
            cause,
            FetchRefusal::Unresolved
                | FetchRefusal::Unreachable
                | FetchRefusal::Tls
                | FetchRefusal::TooSlow
                | FetchRefusal::Broken
        ) {
            self.lock().silent = Some(clock.monotonic());
        }
    }

    /// Returns the issuer with the keys to verify a token with.
    ///
    /// Errors: `Unavailable` when there are none that may be used.
    pub async fn with_keys(
        self: &Arc<Self>,
        fetcher: impl Fn() -> Result<Arc<Fetcher>>,
        clock: &Arc<dyn Clock>,
        peeked: &TokenPreview,
    ) -> Result<Issuer> {
        let keys = match &self.declared.keys {
            KeySource::Set(keys) => keys.clone(),
            KeySource::None => Arc::new(KeySet::default()),
            KeySource::Url(url) => self.current(url, fetcher, clock, peeked).await?,
        };
        Ok(Issuer {
            url: self.declared.url.clone(),
            algorithms: self.declared.algorithms.clone(),
            keys,
        })
    }

    async fn current(
        self: &Arc<Self>,
        url: &str,
        fetcher: impl Fn() -> Result<Arc<Fetcher>>,
        clock: &Arc<dyn Clock>,
        peeked: &TokenPreview,
    ) -> Result<Arc<KeySet>> {
        let holds = |keys: &KeySet| keys.find(peeked.kid.as_deref(), peeked.algorithm).is_ok();
        let known = self.lock().usable(clock.monotonic());
        if let Some((keys, is_old)) = known
            && holds(&keys)
        {
            if is_old && self.lock().may_try(clock.monotonic()) {
                let (own, clock, fetcher, url) = (self.clone(), clock.clone(), fetcher()?, url.to_owned());
                #[expect(
                    clippy::disallowed_methods,
                    reason = "one bounded fetch, at most once a minute; a server that stops may drop it"
                )]
                tokio::spawn(async move {
                    let _turn = own.fetching.lock().await;
                    own.renew(&url, &fetcher, clock.as_ref()).await;
                });
            }
            return Ok(keys);
        }
        let _turn = self.fetching.lock().await;
        // Somebody may have fetched them meanwhile.
        let known = self.lock().usable(clock.monotonic());
        if !known.is_some_and(|(keys, _)| holds(&keys)) {
            self.renew(url, fetcher()?.as_ref(), clock.as_ref()).await;
        }
        let known = self.lock().usable(clock.monotonic());
        known.map(|(keys, _)| keys).ok_or_else(|| {
            Error::unavailable("the issuer of this token cannot be asked for its keys; try again")
        })
    }

    /// Fetches the keys, unless that was tried a moment ago. The caller holds the turn.
    async fn renew(&self, url: &str, fetcher: &Fetcher, clock: &dyn Clock) {
        {
            let mut state = self.lock();
            if !state.may_try(clock.monotonic()) {
                return;
            }
            state.tried = Some(clock.monotonic());
        }
        let found = fetcher.get(url, provost_oauth::jwks::FETCH).await;
        let parsed = found
            .map_err(|refused| refused.to_string())
            .and_then(|bytes| KeySet::parse(&bytes).map_err(|refusal| refusal.to_string()));
        match parsed {
            Ok(keys) => self.lock().keys = Some((Arc::new(keys), clock.monotonic())),
            Err(cause) => {
                tracing::warn!(issuer = %self.declared.url, "the keys of an issuer were not fetched: {cause}");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
