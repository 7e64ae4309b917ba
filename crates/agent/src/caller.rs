//! Requests of a device: signed, and with one more try where this machine's clock is wrong.

use crate::door::{Call, Door, Reply};
use crate::key::{DeviceKey, Purpose};
use crate::trouble::{ANEW, Cause, Trouble};
use provost_words::Secret;
use provost_words::entropy::Entropy;
use provost_words::time::{Clock, Timestamp};
use provost_words::url::{BASE, encoded};
use serde_json::Value;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// How far the clocks may be apart before the server's is taken. A proof is good for a minute. Units: milliseconds.
const SKEW_MS: i64 = 20_000;

/// What a machine asks with.
pub struct Caller<'a> {
    /// The way to the server.
    pub door: &'a dyn Door,
    /// The key of the organization.
    pub organization: &'a str,
    /// The key of the device.
    pub key: Arc<DeviceKey>,
    /// Its token, or the enrolment token.
    pub token: Secret<String>,
    /// The machine's clock.
    pub clock: &'a dyn Clock,
    /// Where randomness comes from.
    pub entropy: &'a dyn Entropy,
    /// How far the server's clock is ahead, as far as it is known. Units: milliseconds.
    pub skew_ms: Cell<i64>,
    /// What the last answer said the present was, and when that was by a clock that nobody can set; nothing before one said it.
    pub heard: Cell<Option<(Timestamp, Duration)>>,
}

impl Caller<'_> {
    /// Returns the present by the server's clock, as far as it is known.
    pub fn now(&self) -> Timestamp {
        self.clock.now().plus_ms(self.skew_ms.get())
    }

    /// Returns the present by the last answer of the server, whatever became of this machine's clock since; nothing where none said it.
    pub fn heard(&self) -> Option<Timestamp> {
        let (date, noted) = self.heard.get()?;
        let gone = self.clock.since_boot().saturating_sub(noted);
        Some(date.plus_ms(i64::try_from(gone.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Sends JSON to what lies below the organization, and returns the answer of success with its status.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn post(&self, below: &str, body: &[u8]) -> Result<(u16, Value), Trouble> {
        self.send("POST", &self.path(below), body).await
    }

    /// Returns what lies below the organization.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn get(&self, below: &str) -> Result<Value, Trouble> {
        self.document(&self.path(below)).await
    }

    /// Returns what lies at a path from the root of the server.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn document(&self, path: &str) -> Result<Value, Trouble> {
        let (_, answer) = self.send("GET", path, b"").await?;
        Ok(answer)
    }

    fn path(&self, below: &str) -> String {
        let base = BASE.replacen("{organizationId}", &encoded(self.organization).to_string(), 1);
        format!("{base}/{below}")
    }

    /// Returns the bytes of what lies below the organization.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn bytes(&self, below: &str) -> Result<Vec<u8>, Trouble> {
        let reply = self.answered("GET", &self.path(below), b"").await?;
        Ok(reply.body)
    }

    /// Returns the bytes of what lies below the organization with its tag, unless it still has the tag that is known.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn bytes_unless(
        &self,
        below: &str,
        known: Option<&str>,
    ) -> Result<Option<(Vec<u8>, Option<String>)>, Trouble> {
        let reply = self.answered_unless("GET", &self.path(below), b"", known).await?;
        Ok((reply.status != 304).then_some((reply.body, reply.etag)))
    }

    async fn send(&self, method: &'static str, path: &str, body: &[u8]) -> Result<(u16, Value), Trouble> {
        let reply = self.answered(method, path, body).await?;
        let answer = serde_json::from_slice(&reply.body).map_err(|_| self.no_provost(reply.status))?;
        Ok((reply.status, answer))
    }

    /// Returns the answer of success.
    async fn answered(&self, method: &'static str, path: &str, body: &[u8]) -> Result<Reply, Trouble> {
        self.answered_unless(method, path, body, None).await
    }

    async fn answered_unless(
        &self,
        method: &'static str,
        path: &str,
        body: &[u8],
        known: Option<&str>,
    ) -> Result<Reply, Trouble> {
        let mut reply = self.ask(method, path, body, known).await?;
        if reply.status == 401 && self.learn(&reply) {
            // The proof was of another time: once more, by the server's clock.
            reply = self.ask(method, path, body, known).await?;
        }
        self.learn(&reply);
        // That nothing changed is no answer to who did not ask for it.
        if (200..300).contains(&reply.status) || (reply.status == 304 && known.is_some()) {
            return Ok(reply);
        }
        Err(self.refused(&reply))
    }

    /// Returns a proof of another key for a `POST` to what lies below the organization.
    pub fn proof_of(&self, key: &DeviceKey, below: &str) -> Secret<String> {
        let base = BASE.replacen("{organizationId}", &encoded(self.organization).to_string(), 1);
        let url = format!("{}{base}/{below}", self.door.url());
        let purpose = Purpose {
            method: "POST",
            url: &url,
            token: &self.token,
            now: self.now(),
        };
        Secret::new(key.proof(&purpose, self.entropy))
    }

    async fn ask(
        &self,
        method: &'static str,
        path: &str,
        body: &[u8],
        known: Option<&str>,
    ) -> Result<Reply, Trouble> {
        let url = format!("{}{path}", self.door.url());
        let purpose = Purpose {
            method,
            url: &url,
            token: &self.token,
            now: self.now(),
        };
        let proof = Secret::new(self.key.proof(&purpose, self.entropy));
        let call = Call {
            method,
            path,
            token: &self.token,
            proof: &proof,
            body,
            known,
        };
        let sent = self.door.send(&call).await;
        sent.map_err(|line| {
            Trouble::new(Cause::Unreachable, line)
                .fix("look at the network, the proxy and the server's address")
        })
    }

    /// Learns the server's clock, and says whether it was another one than was thought.
    fn learn(&self, reply: &Reply) -> bool {
        let Some(date) = reply.date else { return false };
        self.heard.set(Some((date, self.clock.since_boot())));
        let ahead = date.as_ms() - self.clock.now().as_ms();
        // An answer says whole seconds, and took its time.
        let ahead = if ahead.abs() <= SKEW_MS { 0 } else { ahead };
        let is_news = (ahead - self.skew_ms.get()).abs() > SKEW_MS;
        if is_news || ahead == 0 {
            self.skew_ms.set(ahead);
        }
        is_news
    }

    fn no_provost(&self, status: u16) -> Trouble {
        let line = format!(
            "{} answered {status} without words; is it a Provost server?",
            self.door.url()
        );
        Trouble::new(Cause::Refused(status), line)
    }

    fn refused(&self, reply: &Reply) -> Trouble {
        let envelope: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = |member: &str| envelope.get(member).and_then(Value::as_str);
        let Some(message) = text("message") else {
            return self.no_provost(reply.status);
        };
        let cause = match text("code") {
            Some("token_revoked") => Cause::Gone,
            Some("token_expired") => Cause::Expired,
            _ => Cause::Refused(reply.status),
        };
        let line = format!("{} refused: {message} ({})", self.door.url(), reply.status);
        let mut trouble = Trouble::new(cause, line);
        trouble.wait = reply.retry_after;
        trouble.is_servers = true;
        trouble.key = text("keyThumbprint").map(str::to_owned);
        trouble.status = text("status").map(Box::from);
        let expected = envelope.get("expected").and_then(Value::as_u64);
        trouble.resume = expected.zip(text("head").map(str::to_owned)).map(Box::new);
        if cause == Cause::Expired {
            return trouble.fix(format!("look at the clock; if it is right, {ANEW}"));
        }
        if reply.status == 401 && cause != Cause::Gone {
            return trouble.fix(format!(
                "look at the clock; after a restore of the server an admin releases the device (provost restore release), and one whose token is \
                 younger than the backup has to {ANEW}"
            ));
        }
        trouble
    }
}
