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
use provost_oauth::access_token::{Issuer, TokenPreview};
use provost_oauth::{KeySet, Refusal, workload_token};
use provost_outbound::{FetchRefusal, Fetcher};
use std::collections::HashMap;
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

/// Between two lines of the log about tokens that are refused for the same cause. Units: seconds.
const TOLD_SECS: i64 = 60;

/// A trusted issuer and what is known of its keys.
pub struct IssuerTrust {
    pub declared: TrustedIssuer,
    state: Mutex<State>,
    /// When a refusal was last told in the log, by its cause, of which there are few: nobody's forged token hides another cause.
    told: Mutex<HashMap<Refusal, i64>>,
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
            told: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Tells the log which claim of a token that names this issuer failed, once in a minute for each cause; says whether it did. Whoever
    /// sent the token learns no more than that it is not accepted.
    pub fn note_refusal(&self, refusal: Refusal, now: i64) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back does not silence the log.
        let is_recent = |at: &i64| (0..TOLD_SECS).contains(&now.saturating_sub(*at));
        if told.get(&refusal).is_some_and(is_recent) {
            return false;
        }
        told.insert(refusal, now);
        tracing::warn!(
            issuer = %self.declared.url,
            claim = refusal.claim(),
            "a token of a trusted issuer is refused: {refusal}"
        );
        true
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

    /// Says whether any keys are known, however old they are.
    pub fn has_keys(&self) -> bool {
        self.lock().keys.is_some()
    }

    /// Lets it have keys, of which there are none.
    #[cfg(test)]
    pub fn hold_keys(&self) {
        self.lock().keys = Some((Arc::default(), Duration::ZERO));
    }

    /// Says whether the key that a token names is among those that are known: nothing has to be asked for it.
    pub fn knows(&self, clock: &dyn Clock, peeked: &TokenPreview) -> bool {
        let known = self.lock().usable(clock.monotonic());
        known.is_some_and(|(keys, _)| keys.find(peeked.kid.as_deref(), peeked.algorithm).is_ok())
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
            KeySource::Url(_) | KeySource::Discovered => self.current(fetcher, clock, peeked).await?,
        };
        Ok(Issuer {
            url: self.declared.url.clone(),
            algorithms: self.declared.algorithms.clone(),
            keys,
        })
    }

    async fn current(
        self: &Arc<Self>,
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
                let (own, clock, fetcher) = (self.clone(), clock.clone(), fetcher()?);
                #[expect(
                    clippy::disallowed_methods,
                    reason = "one bounded fetch, at most once a minute; a server that stops may drop it"
                )]
                tokio::spawn(async move {
                    let _turn = own.fetching.lock().await;
                    own.renew(&fetcher, clock.as_ref()).await;
                });
            }
            return Ok(keys);
        }
        let _turn = self.fetching.lock().await;
        // Somebody may have fetched them meanwhile.
        let known = self.lock().usable(clock.monotonic());
        if !known.is_some_and(|(keys, _)| holds(&keys)) {
            self.renew(fetcher()?.as_ref(), clock.as_ref()).await;
        }
        let known = self.lock().usable(clock.monotonic());
        known.map(|(keys, _)| keys).ok_or_else(|| {
            Error::unavailable("the issuer of this token cannot be asked for its keys; try again")
        })
    }

    /// Fetches the keys, unless that was tried a moment ago. The caller holds the turn.
    async fn renew(&self, fetcher: &Fetcher, clock: &dyn Clock) {
        {
            let mut state = self.lock();
            if !state.may_try(clock.monotonic()) {
                return;
            }
            state.tried = Some(clock.monotonic());
        }
        match self.fetched(fetcher).await {
            Ok(keys) => self.lock().keys = Some((Arc::new(keys), clock.monotonic())),
            Err(cause) => {
                tracing::warn!(issuer = %self.declared.url, "the keys of an issuer were not fetched: {cause}");
            }
        }
    }

    async fn fetched(&self, fetcher: &Fetcher) -> std::result::Result<KeySet, String> {
        let get = async |url: &str| {
            let found = fetcher.get(url, provost_oauth::jwks::FETCH).await;
            found.map_err(|refused| refused.to_string())
        };
        let told = |refusal: Refusal| refusal.to_string();
        let url = if let KeySource::Url(url) = &self.declared.keys {
            url.clone()
        } else {
            let issuer = &self.declared.url;
            let document = get(&workload_token::discovery_url(issuer)).await?;
            workload_token::keys_url(&document, issuer).map_err(told)?
        };
        KeySet::parse(&get(&url).await?).map_err(told)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once_in_a_minute_and_none_hides_another() {
        let trust = IssuerTrust::new(TrustedIssuer {
            url: "https://issuer.example".into(),
            organizations: Vec::new(),
            algorithms: Vec::new(),
            keys: KeySource::None,
            introspection: None,
            authoritative_for: None,
            audiences: Vec::new(),
        });
        let (audience, subject) = (Refusal::Audience, Refusal::Mismatch("sub"));
        assert!(trust.note_refusal(audience, 100));
        assert!(!trust.note_refusal(audience, 159));
        assert!(trust.note_refusal(subject, 159) && trust.note_refusal(Refusal::Missing("sub"), 159));
        assert!(trust.note_refusal(audience, 160));
        // The clock was set back.
        assert!(trust.note_refusal(audience, 100));
        assert_eq!((audience.claim(), subject.claim()), ("aud", "sub"));
    }
}
