//! The words and rules of profiles and releases, without storage.

use super::content::Content;
use super::digest::ContentDigest;
use super::targets::{Findings, Target};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{Timestamp, id};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

id!(ProfileId, "prof", "Names a profile of managed configuration.");
id!(ReleaseId, "mcr", "Names a release of a profile.");

/// How often a machine asks when the profile does not say. Units: seconds (D8.2: hourly).
pub const DEFAULT_POLL_SECS: i64 = 3600;
/// How often a machine asks. Units: seconds.
pub type PollIntervalSecs = IntegerBetween<60, 86_400>;

provost_kernel::word! {
    /// Whether an automatic publication is taken (D8.10).
    pub enum AutoPublish {
        /// It is not.
        Off = "off",
        /// It is.
        On = "on",
        /// It was, until a rollback: the next run would undo it.
        Paused = "paused",
    }
}

provost_kernel::word! {
    /// What a machine does that cannot get or check the current release (D8.2).
    pub enum OnUnavailable {
        /// It keeps the last release that it applied.
        LastKnown = "last_known",
        /// It refuses to start the program.
        FailClosed = "fail_closed",
    }
}

provost_kernel::word! {
    /// Whether a profile changes.
    pub enum ProfileStatus {
        /// It does.
        Active = "active",
        /// It does not; what was released last is still delivered.
        Archived = "archived",
    }
}

provost_kernel::word! {
    /// How a release came to be.
    pub enum ReleaseKind {
        /// Somebody published a content.
        Publish = "publish",
        /// Somebody restored the content of an earlier release.
        Rollback = "rollback",
    }
}

provost_kernel::word! {
    /// What a machine says of the release that it names.
    pub enum ReportedState {
        /// The files are written.
        Applied = "applied",
        /// They were read back and are the release's.
        Verified = "verified",
        /// They could not be written.
        Failed = "failed",
    }
}

provost_kernel::word! {
    /// Where a machine stands, as the server sees it (D8.1, D8.12).
    pub enum TargetState {
        /// It has not applied the current release yet.
        Pending = "pending",
        /// It wrote the current release.
        Applied = "applied",
        /// It read the current release back.
        Verified = "verified",
        /// It could not write the current release.
        Failed = "failed",
        /// It holds something else for more than two of its intervals.
        Drifted = "drifted",
    }
}

/// A profile as it is stored.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// Its place in the list.
    pub seq: i64,
    /// Its name.
    pub name: String,
    /// The program that it is for.
    pub target: Target,
    /// The version of the program, if the profile pins one.
    pub client_version: Option<String>,
    /// Whether it takes automatic publications.
    pub auto_publish: AutoPublish,
    /// What a machine does without it.
    pub on_unavailable: OnUnavailable,
    /// How often a machine asks. Units: seconds.
    pub poll_interval_secs: i64,
    /// Whether it changes.
    pub status: ProfileStatus,
    /// What is delivered, once something was published.
    pub current_release_id: Option<ReleaseId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Profile {
    /// Returns the instant of a change: never before the last one (D1.2).
    pub fn changed_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at.plus_ms(1))
    }

    /// Refuses a change of an archived profile (D8.11).
    ///
    /// Errors: `Conflict`.
    pub fn must_be_active(&self) -> Result<()> {
        if self.status == ProfileStatus::Archived {
            return Err(Error::new(
                Code::Conflict,
                "the profile is archived; restore it first",
            ));
        }
        Ok(())
    }

    /// Returns what its program makes of a content.
    pub fn findings(&self, content: &Content) -> Findings {
        self.target.findings(content, self.client_version.as_deref())
    }

    /// Returns the time after which a difference is drift and a silence is absence. Units: milliseconds.
    pub fn patience_ms(&self) -> i64 {
        self.poll_interval_secs * 2000
    }
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Principal {
    /// `service_account`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The principal's id.
    pub id: String,
}

/// A release as it is stored; it never changes (MC-1).
#[derive(Clone, Debug)]
pub struct Release {
    /// Its id.
    pub id: ReleaseId,
    /// Its number within the profile, from 1 on without a gap.
    pub version: i64,
    /// The epoch of the store that made it (D12.9).
    pub store_epoch: i64,
    /// How it came to be.
    pub kind: ReleaseKind,
    /// The release whose content it restored.
    pub source_release_id: Option<ReleaseId>,
    /// The hash of its canonical content.
    pub content_digest: ContentDigest,
    /// The schemas that it was checked against.
    pub schema_version: i64,
    /// Why it was made.
    pub reason: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: Principal,
}

/// A machine's last report.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its own name for itself.
    pub target_id: String,
    /// Its place in the list.
    pub seq: i64,
    /// Its name for people.
    pub name: Option<String>,
    /// The release that it applied last.
    pub release_id: ReleaseId,
    /// The digest of what is in place.
    pub content_digest: ContentDigest,
    /// Since when it reports this digest.
    pub digest_since: Timestamp,
    /// What it says of the release.
    pub state: ReportedState,
    /// What it says besides.
    pub message: Option<String>,
    /// Its first report.
    pub first_reported_at: Timestamp,
    /// Its last report.
    pub last_reported_at: Timestamp,
    /// Who sent the last report.
    pub reported_by: Principal,
}

impl Machine {
    /// Returns where the machine stands when `current` should be in place (D8.12).
    pub fn state(&self, profile: &Profile, current: Option<&Release>, now: Timestamp) -> TargetState {
        let Some(current) = current else {
            return TargetState::Pending;
        };
        if self.state == ReportedState::Failed && self.release_id == current.id {
            return TargetState::Failed;
        }
        if self.content_digest == current.content_digest {
            return match self.state {
                ReportedState::Verified => TargetState::Verified,
                // A failure of another release with this content in place: nothing says it was checked.
                ReportedState::Applied | ReportedState::Failed => TargetState::Applied,
            };
        }
        let since = self.digest_since.max(current.created_at);
        if now.as_ms() > since.as_ms() + profile.patience_ms() {
            return TargetState::Drifted;
        }
        TargetState::Pending
    }
}

macro_rules! pattern {
    ($name:ident, $doc:literal, $max:literal, $pattern:literal, $example:expr, $must:literal, $fits:expr) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> std::result::Result<Self, &'static str> {
                let fits: fn(&str) -> bool = $fits;
                if fits(&text) { Ok(Self(text)) } else { Err($must) }
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
                json_schema!({
                    "type": "string", "minLength": 1, "maxLength": $max, "pattern": $pattern, "examples": [$example],
                })
            }
        }
    };
}

pattern!(
    ClientVersion,
    "A version of the program that a profile is for.",
    32,
    "^[0-9]+(\\.[0-9]+)*$",
    "2.1.329",
    "must be numbers with dots between them, such as 2.1.329",
    |text| text.len() <= 32
        && text
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
);

pattern!(
    MachineId,
    "A machine's own name for itself: the same at every report.",
    128,
    "^[A-Za-z0-9._:@-]+$",
    "laptop-7",
    "must have 1 to 128 characters of A-Z, a-z, 0-9, '.', '_', ':', '@' and '-'",
    |text| matches!(text.len(), 1..=128)
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b))
);

pattern!(
    Digest,
    "The digest of a content, or of what stands in its place.",
    71,
    "^sha256:[0-9a-f]{64}$",
    ContentDigest::of("").clear(),
    "must be `sha256:` and 64 digits of 0-9 and a-f",
    |text| text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
);

/// The id of a release in a body: what is no id names nothing, what is longer than any is refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct NamedRelease(ReleaseId);

impl NamedRelease {
    /// Returns the id.
    pub fn id(&self) -> &ReleaseId {
        &self.0
    }
}

impl TryFrom<String> for NamedRelease {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, &'static str> {
        if matches!(text.chars().count(), 1..=256) {
            return Ok(Self(ReleaseId::from_text(&text)));
        }
        Err("must have 1 to 256 characters")
    }
}

impl JsonSchema for NamedRelease {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "NamedRelease".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ReleaseId::json_schema(generator)
    }
}

/// What a preview returned; anything else is stale (D8.7). LIMIT: 512 characters.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct PreviewToken(String);

impl PreviewToken {
    /// Returns the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PreviewToken {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, &'static str> {
        if matches!(text.chars().count(), 1..=512) {
            return Ok(Self(text));
        }
        Err("must be what a preview returned")
    }
}

impl JsonSchema for PreviewToken {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PreviewToken".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 512 })
    }
}

/// The path of operations on one profile.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ProfilePath {
    /// The profile.
    pub profile_id: ProfileId,
}

/// The path of operations on one machine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct TargetPath {
    /// The profile.
    pub profile_id: ProfileId,
    /// The machine's own name for itself. Text that is none names no machine.
    #[schemars(with = "MachineId")]
    pub target_id: String,
}

/// The path of operations on one release.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ReleasePath {
    /// The profile.
    pub profile_id: ProfileId,
    /// The release.
    pub release_id: ReleaseId,
}

#[cfg(test)]
mod tests;
