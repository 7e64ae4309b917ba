//! What was found last, as it is told to the server and shown on the machine.

use crate::folder::Folder;
use crate::trouble::Trouble;
use provost_hooks::{Coverage, Reason};
use provost_inventory::traces::SessionFile;
use provost_words::digest::sha256_hex;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const NAME: &str = "coverage.json";
/// How often it is told, where nothing of it changed. Units: seconds.
const AGAIN_SECS: i64 = 6 * 3_600;
/// When what changed is told a second time: the server says one drop of a client an hour, and a further one that came within it only when it
/// hears of it again. Units: seconds; an hour, and what two calls may differ in.
const SETTLES_SECS: i64 = 3_660;
/// An hour. Units: milliseconds.
const HOUR_MS: i64 = 3_600_000;
/// For how long it is known that no agent worked. Units: milliseconds; a day, as conversations are looked at.
const GAPS_MS: i64 = 24 * HOUR_MS;
/// How long an agent may have worked behind its last look. Units: milliseconds; ours: two rounds of five minutes.
const BEHIND_MS: i64 = 600_000;
/// LIMIT: spans without an agent that are remembered. Ours: one that is started anew more often is seen by its log.
const MOST_GAPS: usize = 64;

/// What is known of how a client obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It was measured with the client itself.
    Measured,
    /// Its documents say it.
    Documents,
}

/// How far one client is guarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientCoverage {
    /// The client, by the word of the inventory.
    pub client: String,
    /// The least version that is installed, where one is known.
    #[serde(rename = "clientVersion", default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How far.
    pub level: String,
    /// By what that is known.
    pub basis: Basis,
    /// What is missing.
    pub reasons: Vec<String>,
    /// When the registered line was executed last and answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_at: Option<Timestamp>,
    /// When a conversation asked last, to the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<Timestamp>,
}

impl ClientCoverage {
    /// Returns what is told of a client.
    pub fn of(client: &str, version: Option<String>, basis: Basis, coverage: &Coverage) -> Self {
        Self {
            client: client.to_owned(),
            version,
            level: coverage.level.word().to_owned(),
            basis,
            reasons: coverage
                .reasons
                .iter()
                .map(|reason| reason.word().to_owned())
                .collect(),
            executed_at: None,
            fired_at: None,
        }
    }

    /// Says when it fired, to the hour: nobody's working hours are told to the minute.
    #[must_use]
    pub fn fired(self, at: Option<Timestamp>) -> Self {
        let hour = |at: Timestamp| Timestamp::from_ms(at.as_ms().div_euclid(HOUR_MS) * HOUR_MS);
        Self {
            fired_at: at.map(hour),
            ..self
        }
    }

    /// Returns what can be done about it, a sentence for each reason.
    pub fn steps(&self) -> Vec<String> {
        let known = self.reasons.iter().filter_map(|word| Reason::named(word));
        known
            .map(|reason| {
                let client = self.client.replace('_', "-");
                let client = client.strip_suffix("-cli").unwrap_or(&client);
                let step = reason.step().replace("CLIENT", client);
                format!("{}: {step}", reason.word())
            })
            .collect()
    }

    /// Says whether something is wrong that somebody on the machine can mend.
    pub fn has_fault(&self) -> bool {
        let mut known = self.reasons.iter().filter_map(|word| Reason::named(word));
        known.any(Reason::is_fault)
    }

    /// Returns what has to be told anew where it is another one.
    fn weight(&self) -> Value {
        json!([self.client, self.version, self.level, self.basis, self.reasons])
    }
}

/// What was found last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeptCoverage {
    /// When, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The clients that are there.
    pub clients: Vec<ClientCoverage>,
    /// When the server had it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
    /// The digest of what it had then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Whether it had the same the time before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_settled: bool,
    /// Whether a unit of systemd for the agent was ever seen here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_service: bool,
    /// When no agent worked within the last day.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// A span in which no agent worked: from its last look to the next one's beginning. Units: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap(pub i64, pub i64);

impl Gap {
    /// Says whether something was written while surely no agent worked.
    fn has(self, at_ms: i64) -> bool {
        self.0.saturating_add(BEHIND_MS) < at_ms && at_ms < self.1
    }
}

impl KeptCoverage {
    /// Returns the digest of what is told, with the bundle that the device holds.
    pub fn digest(&self, bundle: Option<&Value>) -> String {
        let clients: Vec<Value> = self.clients.iter().map(ClientCoverage::weight).collect();
        sha256_hex(json!([clients, bundle]).to_string().as_bytes())
    }

    /// Says whether the server has to be told: something changed, or it has not heard of it for hours.
    pub fn is_due(&self, digest: &str, now: Timestamp) -> bool {
        let is_known = self.told.as_deref() == Some(digest);
        let again = if self.is_settled { AGAIN_SECS } else { SETTLES_SECS };
        let is_fresh = self
            .told_at
            .is_some_and(|at| at <= now && now < at.plus_secs(again));
        !(is_known && is_fresh)
    }

    /// Notes a span without an agent, and forgets those of more than a day ago.
    pub fn note_gap(&mut self, gap: Option<Gap>, now: Timestamp) {
        self.gaps
            .extend(gap.filter(|gap| gap.1.saturating_sub(gap.0) > BEHIND_MS));
        self.gaps
            .retain(|gap| now.as_ms().saturating_sub(gap.1) < GAPS_MS);
        let over = self.gaps.len().saturating_sub(MOST_GAPS);
        self.gaps.drain(..over);
    }

    /// Says whether one of these conversations was last written while no agent worked.
    pub fn was_silent(&self, conversations: &[SessionFile]) -> bool {
        let is_within = |file: &SessionFile| self.gaps.iter().any(|gap| gap.has(file.modified_ms));
        conversations.iter().any(is_within)
    }

    /// Says whether the agent is not started with the machine and was installed to be.
    pub fn lacks_service(&self, is_there: bool, is_enabled: bool) -> bool {
        !is_enabled && (is_there || self.has_service)
    }

    /// Notes that the server has it.
    pub fn was_told(&mut self, digest: String, now: Timestamp) {
        self.is_settled = self.told.as_deref() == Some(&digest);
        (self.told, self.told_at) = (Some(digest), Some(now));
    }

    /// Keeps it.
    ///
    /// Errors: disk.
    pub fn save(&self, folder: &Folder) -> Result<(), Trouble> {
        folder.replace(NAME, &serde_json::to_vec_pretty(self).unwrap_or_default())
    }
}

/// Returns what was found last; nothing of what cannot be read.
///
/// Errors: folder.
pub fn kept_coverage(folder: &Folder) -> Result<KeptCoverage, Trouble> {
    let bytes = folder.read(NAME)?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}
