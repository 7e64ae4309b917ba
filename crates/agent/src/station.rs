//! What is done between the heartbeat and the queue, which who calls brings along: managed configuration, skills.
//!
//! A station asks the server in the name of the device and no other way. What stands in its way ends neither heartbeats nor reports.

use crate::Agent;
use crate::caller::Caller;
use crate::quarantine::QuarantineWord;
use crate::trouble::Trouble;
use provost_words::time::{Clock, Timestamp};
use serde_json::Value;
use std::pin::Pin;

/// What a station does comes later.
pub type Visited<'a> = Pin<Box<dyn Future<Output = Result<(), Trouble>> + 'a>>;

/// One thing that the agent does at each round.
pub trait Station {
    /// Returns the kind of the command by which the server asks for it out of turn.
    fn command(&self) -> &'static str;

    /// Does it; a command asks for all of it, else what is up to date may be left alone.
    ///
    /// Errors: whatever stood in the way.
    fn visit<'a>(&'a self, visit: &'a Visit<'a>) -> Visited<'a>;

    /// Begins, once a process that stays has the folder for itself.
    ///
    /// Errors: whatever stands in the way of this station; the others work.
    fn begin(&self, _agent: &Agent, _say: &dyn Fn(&str)) -> Result<(), Trouble> {
        Ok(())
    }

    /// Begins, where a process makes one round and ends, and has the folder for itself.
    ///
    /// Errors: whatever stands in the way of this station; the others work.
    fn begin_once(&self, _agent: &Agent, _say: &dyn Fn(&str)) -> Result<(), Trouble> {
        Ok(())
    }

    /// Takes back what rests on the trust of the server, which answered with a refusal before any station was visited. What can be done
    /// without it is done afterwards.
    ///
    /// Errors: whatever stood in the way.
    fn refused(&self, _agent: &Agent, _why: &Trouble) -> Result<(), Trouble> {
        Ok(())
    }

    /// Does what can be done without the server, which does not answer.
    ///
    ///
    /// Errors: whatever stood in the way.
    fn alone<'a>(&'a self, agent: &'a Agent, say: &'a dyn Fn(&str)) -> Visited<'a>;
}

/// The way to the server, in the name of the device.
pub struct Visit<'a> {
    /// The machine.
    pub agent: &'a Agent,
    /// Its clock.
    pub clock: &'a dyn Clock,
    /// Tells whoever reads the log.
    pub say: &'a dyn Fn(&str),
    /// Whether a command asks for it.
    pub is_commanded: bool,
    /// What the heartbeat of this round was answered about a quarantine.
    pub quarantine: QuarantineWord,
    pub(crate) caller: &'a Caller<'a>,
}

impl Visit<'_> {
    /// Returns what lies below the device.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn get(&self, below: &str) -> Result<Value, Trouble> {
        self.caller.get(&self.below(below)).await
    }

    /// Returns the bytes of what lies below the device.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn bytes(&self, below: &str) -> Result<Vec<u8>, Trouble> {
        self.caller.bytes(&self.below(below)).await
    }

    /// Returns the bytes of what lies below the device with their tag; `None` where it still has the tag that is known.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn bytes_unless(
        &self,
        below: &str,
        known: Option<&str>,
    ) -> Result<Option<(Vec<u8>, Option<String>)>, Trouble> {
        self.caller.bytes_unless(&self.below(below), known).await
    }

    /// Returns how far the server's clock is ahead, as far as it is known. Units: milliseconds.
    pub fn skew_ms(&self) -> i64 {
        self.caller.skew_ms.get()
    }

    /// Returns the present by the last answer of the server in this round; nothing where none said it.
    pub fn heard(&self) -> Option<Timestamp> {
        self.caller.heard()
    }

    /// Sends JSON to what lies below the device.
    ///
    /// Errors: refused, gone, unreachable.
    pub async fn post(&self, below: &str, body: &Value) -> Result<Value, Trouble> {
        let (_, answer) = self
            .caller
            .post(&self.below(below), body.to_string().as_bytes())
            .await?;
        Ok(answer)
    }

    /// Returns a document of the server that is nobody's in particular, by its path from the root.
    ///
    /// Errors: refused, unreachable.
    pub async fn document(&self, path: &str) -> Result<Value, Trouble> {
        self.caller.document(path).await
    }

    fn below(&self, below: &str) -> String {
        format!("devices/{}/{below}", self.agent.device.device_id)
    }
}
