//! What is kept about a person's device, and for how long: a question to the areas that keep it (F5.4).
//!
//! Each area says it from what it forgets by, so that nobody is told a number that nothing obeys.

use super::command::KEPT_SECS as COMMANDS_SECS;
use super::maintenance::KEPT_SECS as TOKENS_SECS;
use super::model::DeviceId;
use provost_kernel::announcement::{Announcement, Question};
use provost_kernel::{OperationContext, Result, Timestamp, word};
use schemars::JsonSchema;
use serde::Serialize;

word! {
    /// What is kept about a device.
    #[derive(PartialOrd, Ord)]
    pub enum KeptKind {
        /// What it is called, whose it is, how it stands.
        Record = "record",
        /// How far its clients are guarded, as it said last.
        Coverage = "coverage",
        /// Its tokens, without their secrets.
        Tokens = "tokens",
        /// What it was told to do.
        Commands = "commands",
        /// What was found on it.
        Inventory = "inventory",
        /// Which servers its owner used.
        Uses = "uses",
        /// What it judged, in the history.
        Decisions = "decisions",
        /// How often something passed of which it told no event.
        DecisionCounts = "decision_counts",
        /// Who did what to it, in the audit log.
        Audit = "audit",
    }
}

word! {
    /// From when on days are counted.
    pub enum KeptFrom {
        /// From when it happened.
        Happened = "happened",
        /// From when it ended, was no longer found, or its device was retired.
        Ended = "ended",
    }
}

/// How long something is kept about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "KeptAboutDevice")]
pub struct Kept {
    /// What. Open.
    pub kind: KeptKind,
    /// For how many days; absent where nothing ends it by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<i64>,
    /// From when on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<KeptFrom>,
}

impl Kept {
    /// Returns what is kept for so long. Units: seconds, whole days of them.
    pub const fn for_secs(kind: KeptKind, secs: i64, from: KeptFrom) -> Self {
        Self {
            kind,
            days: Some(secs / 86_400),
            from: Some(from),
        }
    }

    /// Returns what nothing ends by time.
    const fn for_good(kind: KeptKind) -> Self {
        Self {
            kind,
            days: None,
            from: None,
        }
    }
}

/// Asks each area what it keeps about devices, and for how long.
pub struct WhatIsKept;

impl Announcement for WhatIsKept {}

impl Question for WhatIsKept {
    type Answer = Kept;
}

/// Asks what devices of the caller told of what they judged.
pub struct ToldBy {
    /// The devices.
    pub devices: Vec<DeviceId>,
}

impl Announcement for ToldBy {}

impl Question for ToldBy {
    type Answer = (DeviceId, ToldOfDevice);
}

/// How much a device told of what it judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ToldOfDevice {
    /// Events; the history has those that are not older than it keeps them.
    pub events: i64,
    /// How often something passed of which it told no event.
    pub passed: i64,
    /// When it told last.
    pub taken_at: Timestamp,
}

/// Returns what is kept about a device, and for how long.
pub fn kept(ctx: &mut OperationContext<'_>) -> Result<Vec<Kept>> {
    let mut kept = vec![
        Kept::for_good(KeptKind::Record),
        Kept::for_good(KeptKind::Coverage),
        Kept::for_secs(KeptKind::Tokens, TOKENS_SECS, KeptFrom::Ended),
        Kept::for_secs(KeptKind::Commands, COMMANDS_SECS, KeptFrom::Ended),
        Kept::for_good(KeptKind::Audit),
    ];
    kept.extend(ctx.ask(&WhatIsKept)?);
    kept.sort_by_key(|kept| kept.kind);
    Ok(kept)
}
