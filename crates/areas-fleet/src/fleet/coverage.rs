//! How far the clients of a device are guarded, as the device says it (F4.13).
//!
//! ```text
//! the agent proves it on its machine ──► a report ──► kept as its word ──► shown, counted; a drop is told once
//! counts as what it says      an active device, heard of lately, that still tells it
//! counts as unknown           everything else: silent, lost, waiting, quarantined, held back, or no longer told
//! retired                     counts as nothing: what it said is forgotten
//! ```
//!
//! INVARIANT CV-1: a device says something of itself alone, and it changes nothing for any other; what it says decides about no right.
//! INVARIANT CV-2: no device counts as enforced that is not active, was not heard of, has not said so for a day of its calls, has a bypass, or
//! whose agent is a person's.
//! INVARIANT CV-3: a level that is lower than the last one that somebody knew is told by one entry and one event, and not again while it
//! stays.
//!
//! Absent on purpose: a history of levels (entries have the drops); paths, people and conversations, of which a report has no member.

use super::command_result::ResultCode;
use super::model::{Device, Mode, Status};
use super::presence::{AwaySecs, Presence};
use provost_kernel::error::{Error, Result};
use provost_kernel::{Timestamp, word};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// LIMIT: clients of a report. Ours: more than there are.
pub const MOST_CLIENTS: usize = 16;
/// LIMIT: reasons of a client. Ours: more than there are.
const MOST_REASONS: usize = 32;
/// LIMIT: characters of a version. Ours.
const LONGEST_VERSION: usize = 64;
/// How old what a device said may be when it calls. Units: milliseconds. It says it again after six hours.
pub const STALE_MS: i64 = 86_400_000;
/// How soon after it was told of somebody is told of a drop again. Units: seconds.
pub const AGAIN_SECS: i64 = 3_600;
/// Why a client of a person's agent is not taken for more than it can be.
const PERSON_AGENT: &str = "person_agent";

word! {
    /// How far a client is guarded.
    pub enum CoverageLevel {
        /// Nothing of Provost is in effect, or nobody can say that it is.
        None = "none",
        /// Provost is asked and records; that it refuses is not proven.
        Observed = "observed",
        /// Provost refuses, and a way around it is known, or whether hooks fire cannot be seen.
        Bypassable = "bypassable",
        /// It is registered, in effect, executed and fires.
        Enforced = "enforced",
    }
}

impl CoverageLevel {
    /// Returns its place among the levels, the least first.
    pub const fn rank(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Observed => 1,
            Self::Bypassable => 2,
            Self::Enforced => 3,
        }
    }

    /// Returns as what it counts while a bypass lets calls of the client pass, or while none does.
    const fn under_bypass(self, is_let_pass: bool) -> Self {
        match self {
            Self::Enforced | Self::Bypassable if is_let_pass => Self::Observed,
            level => level,
        }
    }
}

word! {
    /// As what a client of a device is counted.
    pub enum CountedLevel {
        /// Nothing of Provost is in effect, or nobody can say that it is.
        None = "none",
        /// Provost is asked and records; that it refuses is not proven.
        Observed = "observed",
        /// Provost refuses, and a way around it is known, or whether hooks fire cannot be seen.
        Bypassable = "bypassable",
        /// It is registered, in effect, executed and fires.
        Enforced = "enforced",
        /// What the device said is old, or the device is not at work.
        Unknown = "unknown",
    }
}

impl From<CoverageLevel> for CountedLevel {
    fn from(level: CoverageLevel) -> Self {
        match level {
            CoverageLevel::None => Self::None,
            CoverageLevel::Observed => Self::Observed,
            CoverageLevel::Bypassable => Self::Bypassable,
            CoverageLevel::Enforced => Self::Enforced,
        }
    }
}

word! {
    /// By what it is known how a client obeys its hooks.
    pub enum CoverageBasis {
        /// It was measured with the client.
        Measured = "measured",
        /// The client's documents say it.
        Documents = "documents",
    }
}

/// The version of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientVersion(String);

impl TryFrom<String> for ClientVersion {
    type Error = &'static str;
    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        if begins && text.len() <= LONGEST_VERSION && text.bytes().all(is_plain) {
            return Ok(Self(text));
        }
        Err("must have 1 to 64 characters of a version and begin with a digit")
    }
}

impl From<ClientVersion> for String {
    fn from(version: ClientVersion) -> Self {
        version.0
    }
}

impl JsonSchema for ClientVersion {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ClientVersion".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9][0-9A-Za-z.+-]{0,63}$" })
    }
}

/// At most so many of something.
#[derive(Clone, Debug)]
pub struct AtMost<T, const MOST: usize>(pub Vec<T>);

impl<T, const MOST: usize> Default for AtMost<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let list = Vec::<T>::deserialize(deserializer)?;
        if list.len() <= MOST {
            return Ok(Self(list));
        }
        Err(serde::de::Error::custom(format!(
            "must be {MOST} of them at most"
        )))
    }
}

impl<T: JsonSchema, const MOST: usize> JsonSchema for AtMost<T, MOST> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "AtMost".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": items, "maxItems": MOST })
    }
}

/// What a device says of one client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ClientReport {
    /// The client, by the word of the inventory. Open.
    client: ResultCode,
    /// The least of its versions that are installed, where one is known.
    client_version: Option<ClientVersion>,
    /// How far it is guarded.
    level: CoverageLevel,
    /// By what it is known how it obeys.
    basis: CoverageBasis,
    /// What is missing of a proof; none with `enforced`, and there alone. Open.
    reasons: AtMost<ResultCode, MOST_REASONS>,
    /// When the line that it registers was executed last and answered, by the device's clock.
    executed_at: Option<Timestamp>,
    /// When it asked last, by the device's clock.
    fired_at: Option<Timestamp>,
}

/// What is known of one client of a device, by the device's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClientCoverage {
    /// The client, by the word of the inventory. Open.
    pub client: String,
    /// The least of its versions that are installed, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// How far it is guarded, as the device said it.
    pub level: CoverageLevel,
    /// By what it is known how it obeys.
    pub basis: CoverageBasis,
    /// What is missing of a proof; none with `enforced`, and there alone. Open.
    pub reasons: Vec<String>,
    /// When the line that it registers was executed last and answered, by the device's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_at: Option<Timestamp>,
    /// When it asked last, to the hour, by the device's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<Timestamp>,
}

/// A client of a device as it is shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ShownCoverage {
    #[serde(flatten)]
    said: ClientCoverage,
    /// As what it counts: `unknown` where what the device said is old, or the device is not at work, and no more than `observed` while a bypass
    /// of the client is live.
    counts_as: CountedLevel,
}

/// The bundle of policies that a device says it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct BundleReport {
    /// The epoch of the store that made it.
    store_epoch: u32,
    /// Its number.
    sequence: u64,
    /// The version of the policies in it.
    policy_set_version: VersionName,
    /// When it was made.
    issued_at: Timestamp,
    /// Until when it lets anything pass.
    not_after: Timestamp,
    /// The entity tag under which it was fetched, where the agent still knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<BundleName>,
}

/// What a bundle of a device is, beside the newest.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct HeldBundle {
    /// The epoch of the store that made it.
    store_epoch: u32,
    /// Its number.
    sequence: u64,
    /// The version of the policies in it.
    policy_set_version: String,
    /// When it was made.
    issued_at: Timestamp,
    /// Until when it lets anything pass.
    not_after: Timestamp,
    /// Whether it is the one that the device would be given now; absent in lists, and where no device judges or this one is given none.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_newest: Option<bool>,
}

macro_rules! pattern {
    ($(#[$about:meta])* $name:ident, $most:literal, $pattern:literal, $is:expr, $refusal:literal) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
                let is: fn(u8) -> bool = $is;
                if (1..=$most).contains(&text.len()) && text.bytes().all(is) {
                    return Ok(Self(text));
                }
                Err($refusal)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

pattern! {
    /// The name of a version of policies.
    VersionName, 64, "^[a-z0-9_]{1,64}$", |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_',
    "must have 1 to 64 characters of a to z, 0 to 9 and _"
}

pattern! {
    /// The name of a bundle, as its entity tag has it.
    BundleName, 64, "^[0-9a-f]{1,64}$", |byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    "must have 1 to 64 hexadecimal digits in lower case"
}

/// What a device said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// When, by the server's clock.
    pub at: Timestamp,
    /// Of each client.
    pub clients: Vec<ClientCoverage>,
    /// The bundle that it holds.
    pub bundle: Option<BundleReport>,
}

impl Said {
    /// Reads what was stored.
    ///
    /// Errors: it is no such thing.
    pub fn from_store(at: Timestamp, clients: &str, bundle: Option<&str>) -> Result<Self> {
        Ok(Self {
            at,
            clients: serde_json::from_str(clients).map_err(Error::internal)?,
            bundle: bundle
                .map(serde_json::from_str)
                .transpose()
                .map_err(Error::internal)?,
        })
    }

    /// Says whether it still counts, of a device of this kind.
    ///
    /// Keeps CV-2.
    fn counts(&self, device: &Device, now: Timestamp, away: AwaySecs) -> bool {
        let heard = device.heartbeat.as_ref().map(|beat| beat.at);
        let is_heard = matches!(Presence::of(heard, now, away), Presence::Online | Presence::Away);
        let is_told = heard.is_some_and(|heard| self.at.as_ms() >= heard.as_ms() - STALE_MS);
        device.status == Status::Active && device.held_at.is_none() && is_heard && is_told
    }

    /// Returns what is shown of a device's clients.
    pub fn shown(&self, device: &Device, now: Timestamp, away: AwaySecs) -> Vec<ShownCoverage> {
        let counts = self.counts(device, now, away);
        let bypass = device.live_bypass(now);
        let shown = |said: &ClientCoverage| ShownCoverage {
            said: said.clone(),
            counts_as: if counts {
                let is_let_pass = bypass.is_some_and(|bypass| bypass.is_of(&said.client));
                said.level.under_bypass(is_let_pass).into()
            } else {
                CountedLevel::Unknown
            },
        };
        self.clients.iter().map(shown).collect()
    }
}

impl BundleReport {
    /// Returns what is shown of it; `newest` is the name of the one that the device would be given, where that is known.
    pub fn shown(&self, newest: Option<&str>) -> HeldBundle {
        let name = self.name.as_ref().map(|name| name.0.as_str());
        HeldBundle {
            store_epoch: self.store_epoch,
            sequence: self.sequence,
            policy_set_version: self.policy_set_version.0.clone(),
            issued_at: self.issued_at,
            not_after: self.not_after,
            is_newest: newest.map(|newest| name == Some(newest)),
        }
    }
}

/// Returns what is kept of a report.
///
/// Keeps CV-2.
///
/// Errors: `InvalidDefinition` for a report that contradicts itself.
pub fn kept(mode: Mode, clients: &[ClientReport]) -> Result<Vec<ClientCoverage>> {
    let mut names = BTreeSet::new();
    let mut kept = Vec::with_capacity(clients.len());
    for (at, said) in clients.iter().enumerate() {
        let path = |member: &str| format!("/clients/{at}/{member}");
        if !names.insert(said.client.as_str()) {
            return Err(Error::unfit(
                path("client"),
                "stands twice; say one level of each client",
            ));
        }
        let is_enforced = said.level == CoverageLevel::Enforced;
        if is_enforced != said.reasons.0.is_empty() {
            let message = "a level below enforced has a reason, and enforced has none";
            return Err(Error::unfit(path("reasons"), message));
        }
        if is_enforced && said.basis == CoverageBasis::Documents {
            let message = "what documents say is no proof: it cannot be enforced";
            return Err(Error::unfit(path("level"), message));
        }
        let mut one = ClientCoverage {
            client: said.client.as_str().to_owned(),
            client_version: said.client_version.clone().map(String::from),
            level: said.level,
            basis: said.basis,
            reasons: said
                .reasons
                .0
                .iter()
                .map(|reason| reason.as_str().to_owned())
                .collect(),
            executed_at: said.executed_at,
            fired_at: said.fired_at,
        };
        // A person changes what their own agent says: its word proves no more than that something is asked.
        if mode == Mode::User && one.level.rank() > CoverageLevel::Observed.rank() {
            one.level = CoverageLevel::Observed;
            if !one.reasons.iter().any(|reason| reason == PERSON_AGENT) {
                one.reasons.push(PERSON_AGENT.to_owned());
            }
        }
        kept.push(one);
    }
    Ok(kept)
}

/// What is known of the level of one client, and what somebody was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLevel {
    /// The client.
    pub client: String,
    /// The level that the device said last.
    pub level: CoverageLevel,
    /// The level that somebody knows of.
    pub told: CoverageLevel,
    /// When somebody was told.
    pub told_at: Option<Timestamp>,
}

impl KnownLevel {
    /// Returns that of a client of which nothing was known.
    pub fn new(client: &str, level: CoverageLevel) -> Self {
        Self {
            client: client.to_owned(),
            level,
            told: level,
            told_at: None,
        }
    }

    /// Takes what the device says now; one that rises is known as it is.
    pub fn says(&mut self, level: CoverageLevel) {
        self.level = level;
        if level.rank() > self.told.rank() {
            self.told = level;
        }
    }

    /// Says whether somebody is to be told that it dropped.
    ///
    /// Keeps CV-3: one that goes up and down is told once an hour.
    pub fn has_dropped(&self, now: Timestamp) -> bool {
        let is_long_ago = self
            .told_at
            .is_none_or(|at| now < at || now >= at.plus_secs(AGAIN_SECS));
        self.level.rank() < self.told.rank() && is_long_ago
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(level: &str, basis: &str, reasons: &[&str]) -> ClientReport {
        let said = serde_json::json!({ "client": "claude_code", "level": level, "basis": basis, "reasons": reasons });
        serde_json::from_value(said).unwrap()
    }

    /// Proves CV-2.
    #[test]
    fn a_report_that_contradicts_itself_is_refused_and_a_persons_agent_proves_no_more_than_observed() {
        let whole = kept(Mode::System, &[report("enforced", "measured", &[])]).unwrap();
        assert_eq!(whole[0].level, CoverageLevel::Enforced);
        for (bad, path) in [
            (
                report("enforced", "measured", &["monitor_mode"]),
                "/clients/0/reasons",
            ),
            (report("observed", "measured", &[]), "/clients/0/reasons"),
            (report("enforced", "documents", &[]), "/clients/0/level"),
        ] {
            let refused = kept(Mode::System, &[bad]).unwrap_err();
            assert!(format!("{refused:?}").contains(path), "{refused:?}");
        }
        let twice = [
            report("none", "measured", &["not_registered"]),
            report("none", "measured", &["not_registered"]),
        ];
        assert!(kept(Mode::System, &twice).is_err());
        for (level, reasons) in [("enforced", &[][..]), ("bypassable", &["gap_environment"])] {
            let own = kept(Mode::User, &[report(level, "measured", reasons)]).unwrap();
            assert_eq!(own[0].level, CoverageLevel::Observed);
            assert!(own[0].reasons.iter().any(|reason| reason == PERSON_AGENT));
        }
        let none = kept(Mode::User, &[report("none", "measured", &["not_registered"])]).unwrap();
        assert_eq!(none[0].reasons, ["not_registered"]);
    }

    /// Proves CV-3.
    #[test]
    fn a_drop_is_told_once_and_one_that_flutters_once_an_hour() {
        let at = |secs: i64| Timestamp::EPOCH.plus_secs(1_800_000_000 + secs);
        let mut known = KnownLevel::new("codex", CoverageLevel::Enforced);
        assert!(!known.has_dropped(at(0)));
        known.says(CoverageLevel::Observed);
        assert!(known.has_dropped(at(0)));
        (known.told, known.told_at) = (known.level, Some(at(0)));
        known.says(CoverageLevel::Observed);
        assert!(!known.has_dropped(at(7_200)), "it stays");
        // Further down is another drop, after an hour.
        known.says(CoverageLevel::None);
        assert!(!known.has_dropped(at(3_599)) && known.has_dropped(at(3_600)));
        // Up is no news, and down again is.
        known.says(CoverageLevel::Enforced);
        assert!(!known.has_dropped(at(3_600)));
        known.says(CoverageLevel::Bypassable);
        assert!(!known.has_dropped(at(60)) && known.has_dropped(at(3_600)));
    }
}
