//! The server, as stations of the agent ask it in the name of the device.

use super::places::failure;
use crate::cli::{Failure, Signer};
use crate::managed_config::report::{Origin, Report};
use provost_agent::{Cause, Trouble, Visit};
use serde_json::Value;
use std::cell::RefCell;

/// The keys that this device trusts, in the folder of the agent.
pub const KNOWN_KEYS: &str = "known-keys.json";

/// A trouble on this machine.
pub fn disk(line: impl Into<String>) -> Trouble {
    Trouble::new(Cause::Disk, line)
}

/// A failure as a trouble.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub fn of_failure(failure: Failure) -> Trouble {
    disk(failure.lines.join("; "))
}

/// The server, as this device asks it.
pub struct Device<'a> {
    pub visit: &'a Visit<'a>,
    /// Why the last request was not answered.
    lost: RefCell<Option<Trouble>>,
}

impl<'a> Device<'a> {
    pub fn new(visit: &'a Visit<'a>) -> Self {
        Self {
            visit,
            lost: RefCell::default(),
        }
    }

    /// Returns why the last request that was not answered was not.
    pub fn lost(&self) -> Option<Trouble> {
        self.lost.take()
    }

    /// Returns an answer, or its trouble as a failure, which is remembered.
    pub fn heard<T>(&self, answer: Result<T, Trouble>) -> Result<T, Failure> {
        answer.map_err(|trouble| {
            self.lost.replace(Some(trouble.clone()));
            failure(trouble)
        })
    }

    /// Returns the bytes of what lies below the device.
    ///
    /// Errors: why there are none.
    pub async fn bytes(&self, below: &str) -> Result<Vec<u8>, Failure> {
        self.heard(self.visit.bytes(below).await)
    }
}

impl Signer for Device<'_> {
    async fn keys(&self, path: &str) -> Result<Value, Failure> {
        self.heard(self.visit.document(path).await)
    }

    fn note(&self, line: &str) {
        (self.visit.say)(line);
    }
}

impl Origin for Device<'_> {
    fn organization(&self) -> &str {
        &self.visit.agent.device.organization
    }

    async fn current(&self, profile_id: &str) -> Result<Value, Failure> {
        self.heard(self.visit.get(&format!("profiles/{profile_id}")).await)
    }

    async fn report(&self, profile_id: &str, report: Report<'_>) -> Result<(), Failure> {
        let path = format!("profiles/{profile_id}/reports");
        self.heard(self.visit.post(&path, &report.body()).await).map(drop)
    }
}
