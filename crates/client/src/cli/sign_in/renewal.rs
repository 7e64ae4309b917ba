//! Renewing the token of a sign-in, beside other commands that do the same.
//!
//! ```text
//! A: the token ends soon ─► lock ─► file: old ─► server ─► file: new ─► unlock
//! B: the token ends soon ─► waits for the lock ──────────────────────────────► file: new, taken
//! ```
//!
//! A renewal whose answer is lost, or that a kill interrupts before the file is written, is asked for again with the same token:
//! the server answers it again for a while (ADR 0093).

use super::super::connection::normal;
use super::super::failure::{Exit, Failure};
use super::super::profile::{Profiles, SignIn};
use super::super::server::{Server, Silence};
use super::super::trouble::Trouble;
use super::tokens::{CLIENT_ID, asked};
use provost_words::Secret;
use provost_words::time::{Clock, Timestamp};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A token that ends within this time is renewed before it is used: a request with its repetitions takes a minute.
const MARGIN_SECS: i64 = 120;
/// LIMIT: an access token lives for an hour (D2.7).
const MOST_SECS: i64 = 3600 + MARGIN_SECS;
/// LIMIT: how long a renewal may take, with the wait for another process's.
const LIMIT: Duration = Duration::from_secs(30);
/// How often a renewal is tried.
const ATTEMPTS: u32 = 3;
/// How often a lock that another process has is asked for.
const PAUSE: Duration = Duration::from_millis(50);

/// The token of a sign-in, as long as a command runs.
pub(in crate::cli) struct Renewal {
    pub(in crate::cli) file: PathBuf,
    pub(in crate::cli) profile: String,
    pub(in crate::cli) clock: Arc<dyn Clock>,
    began_at: Option<Timestamp>,
    known: Mutex<(Secret<String>, Timestamp)>,
}

impl Renewal {
    pub(in crate::cli) fn new(
        (file, profile): (PathBuf, String),
        clock: Arc<dyn Clock>,
        (token, expires_at, began_at): (Secret<String>, Timestamp, Option<Timestamp>),
    ) -> Self {
        Self {
            began_at,
            file,
            profile,
            clock,
            known: Mutex::new((token, expires_at)),
        }
    }

    /// Returns the token as it is known.
    pub(in crate::cli) fn token(&self) -> Secret<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.0.clone()
    }

    /// Renews the token if it is about to end.
    ///
    /// It has a limit of its own, longer than those of commands: one that is cut between the server's answer and the file has spent
    /// what it renews by.
    ///
    /// Errors: why it cannot be renewed; nothing was sent then but that.
    pub(in crate::cli) async fn renew(&self, server: &Server) -> Result<(), Silence> {
        let (_, expires_at) = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if self.lasts(expires_at) {
            return Ok(());
        }
        let renewed = tokio::time::timeout(LIMIT, self.insisting(server)).await;
        let known = renewed.unwrap_or_else(|_| {
            let says = "the sign-in could not be renewed in time";
            Err(Silence::NotSent(Trouble::new(says)))
        })?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// A time that lies further away than any token lives was written by a clock that was ahead.
    fn lasts(&self, expires_at: Timestamp) -> bool {
        let now = self.clock.now();
        now.plus_secs(MARGIN_SECS) < expires_at && expires_at <= now.plus_secs(MOST_SECS)
    }

    /// Asks again where an answer was lost, or the server cannot answer now.
    async fn insisting(&self, server: &Server) -> Result<(Secret<String>, Timestamp), Silence> {
        for _ in 1..ATTEMPTS {
            match self.renewed(server).await {
                Err(Silence::NobodyThere(_)) => tokio::time::sleep(PAUSE * 10).await,
                done => return done,
            }
        }
        self.renewed(server).await
    }

    async fn renewed(&self, server: &Server) -> Result<(Secret<String>, Timestamp), Silence> {
        // INVARIANT CL-9: one process renews, and the others take what it got.
        let _lock = loop {
            match Profiles::try_lock(&self.file).map_err(Silence::Refused)? {
                Some(lock) => break lock,
                None => tokio::time::sleep(PAUSE).await,
            }
        };
        let mut profiles = Profiles::load(&self.file)
            .map_err(Silence::Refused)?
            .unwrap_or_default();
        let profile = profiles.by_name.get(&self.profile);
        let profile = profile.filter(|profile| {
            let url = profile.url.as_deref().map(normal);
            url.is_some_and(|url| url.is_ok_and(|url| url == server.url()))
        });
        let known = profile.and_then(|profile| Some((profile.token.clone()?, profile.sign_in.clone()?)));
        let Some((token, sign_in)) = known else {
            let line = format!("the profile {} was logged out meanwhile", self.profile);
            return Err(Silence::Refused(
                Failure::new(Exit::Forbidden, line).and(self.again()),
            ));
        };
        // A command does not go on as somebody else, or with other rights, than it began.
        if sign_in.began_at != self.began_at {
            let line = format!(
                "somebody signed in anew in the profile {} meanwhile",
                self.profile
            );
            return Err(Silence::Refused(
                Failure::new(Exit::Forbidden, line).and("repeat the command"),
            ));
        }
        if self.lasts(sign_in.expires_at) {
            return Ok((token, sign_in.expires_at));
        }
        // What cannot be written is not spent: the file is replaced by itself first.
        profiles.save(&self.file).map_err(|error| {
            let line = format!(
                "the sign-in cannot be renewed: {} cannot be written: {error}; nothing was sent",
                self.file.display()
            );
            Silence::Refused(Failure::new(Exit::Output, line))
        })?;
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", CLIENT_ID),
            ("refresh_token", sign_in.refresh_token.expose().as_str()),
        ];
        let got = asked(server, &fields, self.clock.now()).await;
        let got = got.map_err(|silence| match silence {
            // Nobody knows whether the token was renewed: it is asked for again, and the request behind it was not sent.
            Silence::Lost(trouble) => Silence::NobodyThere(trouble),
            Silence::Refused(failure) => Silence::Refused(failure.and(self.again())),
            other => other,
        })?;
        let expires_at = got.sign_in.expires_at;
        let profile = profiles.by_name.entry(self.profile.clone()).or_default();
        profile.token = Some(got.access.clone());
        profile.sign_in = Some(SignIn {
            began_at: self.began_at,
            ..got.sign_in
        });
        profiles.save(&self.file).map_err(|error| {
            let line = format!(
                "cannot write the renewed sign-in to {}: {error}",
                self.file.display()
            );
            Silence::Refused(Failure::new(Exit::Output, line))
        })?;
        Ok((got.access, expires_at))
    }

    /// Returns what leads on.
    fn again(&self) -> String {
        format!("sign in again: provost login --profile {}", self.profile)
    }
}
