//! What a reader sees of profiles, releases and machines.

use super::model::{
    AutoPublish, Machine, OnUnavailable, Principal, Profile, ProfileId, ProfileStatus, Release, ReleaseId,
    ReleaseKind, TargetState,
};
use super::targets::Target;
use provost_kernel::{OperationContext, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// A profile (D8.1).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ManagedConfigProfile")]
pub struct ProfileView {
    id: ProfileId,
    organization_id: String,
    name: String,
    target: Target,
    /// The version of the program whose rules hold for its releases; absent: the newest that Provost knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_version: Option<String>,
    auto_publish: AutoPublish,
    on_unavailable: OnUnavailable,
    poll_interval_seconds: i64,
    status: ProfileStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_release_id: Option<ReleaseId>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl ProfileView {
    /// Returns the view of a profile.
    pub fn of(organization: &str, profile: &Profile) -> Self {
        Self {
            id: profile.id.clone(),
            organization_id: organization.to_owned(),
            name: profile.name.clone(),
            target: profile.target,
            client_version: profile.client_version.clone(),
            auto_publish: profile.auto_publish,
            on_unavailable: profile.on_unavailable,
            poll_interval_seconds: profile.poll_interval_secs,
            status: profile.status,
            current_release_id: profile.current_release_id.clone(),
            created_at: profile.created_at,
            updated_at: profile.updated_at,
        }
    }
}

/// The answer of operations on one profile.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneProfile {
    /// The profile.
    pub profile: ProfileView,
}

/// How many machines stand where (D8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct MachineCounts {
    /// All of them.
    pub total: i64,
    /// See [`TargetState`].
    pub pending: i64,
    /// See [`TargetState`].
    pub applied: i64,
    /// See [`TargetState`].
    pub verified: i64,
    /// See [`TargetState`].
    pub failed: i64,
    /// See [`TargetState`].
    pub drifted: i64,
    /// Machines that reported within two of their intervals.
    #[serde(skip)]
    pub online: i64,
}

impl MachineCounts {
    /// Adds machines of one state.
    pub fn add(&mut self, state: TargetState, count: i64) {
        self.total += count;
        match state {
            TargetState::Pending => self.pending += count,
            TargetState::Applied => self.applied += count,
            TargetState::Verified => self.verified += count,
            TargetState::Failed => self.failed += count,
            TargetState::Drifted => self.drifted += count,
        }
    }
}

/// Whether the releases of a profile are delivered, and where.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Rollout {
    /// `all`: every machine of the profile at once. Open: `percent` may follow.
    strategy: &'static str,
    percent: i64,
    /// `pending`, `rolling_out` or `complete`. Open. A superseded release is complete: nothing more is done for it.
    state: &'static str,
    targets: MachineCounts,
}

/// A release (D8.1).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ManagedConfigRelease")]
pub struct ReleaseView {
    id: ReleaseId,
    profile_id: ProfileId,
    organization_id: String,
    version: i64,
    store_epoch: i64,
    kind: ReleaseKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_release_id: Option<ReleaseId>,
    /// `sha256:…` of the content for callers with `managed_config:pull`; for others `hmac-sha256:…`, a keyed hash of it: the same
    /// for the same content, and nobody can try out with it what the content holds.
    content_digest: String,
    schema_version: i64,
    /// `active` or `superseded`.
    status: &'static str,
    created_at: Timestamp,
    created_by: Principal,
    reason: String,
    rollout: Rollout,
}

impl ReleaseView {
    /// Returns the view of a release; `tally` counts the machines that it concerns.
    pub fn of(
        ctx: &OperationContext<'_>,
        profile: &Profile,
        release: &Release,
        tally: MachineCounts,
    ) -> Self {
        let is_active = profile.current_release_id.as_ref() == Some(&release.id);
        let state = match tally {
            _ if !is_active => "complete",
            MachineCounts {
                total,
                applied,
                verified,
                ..
            } if total > 0 && applied + verified == total => "complete",
            MachineCounts {
                applied: 0,
                verified: 0,
                ..
            } => "pending",
            _ => "rolling_out",
        };
        Self {
            id: release.id.clone(),
            profile_id: profile.id.clone(),
            organization_id: ctx.org().to_owned(),
            version: release.version,
            store_epoch: release.store_epoch,
            kind: release.kind,
            source_release_id: release.source_release_id.clone(),
            content_digest: release.content_digest.shown(ctx),
            schema_version: release.schema_version,
            status: if is_active { "active" } else { "superseded" },
            created_at: release.created_at,
            created_by: release.created_by.clone(),
            reason: release.reason.clone(),
            rollout: Rollout {
                strategy: "all",
                percent: 100,
                state,
                targets: tally,
            },
        }
    }
}

/// What is allowed and may still not be what somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ManagedConfigWarning")]
pub struct Warning {
    /// Of a content: `unknown_member`, `unknown_word`, `misplaced_member`, `denies_nothing`, `guard_can_be_changed`,
    /// `more_warnings`. Of what it replaces: `weakens_enforcement`. Of a rollback: `schema_migrated`,
    /// `auto_publish_will_pause`, `targets_offline`. Open.
    pub code: &'static str,
    pub message: String,
    /// JSON Pointers into the content, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub paths: Vec<String>,
}

impl Warning {
    /// Returns a warning about one place.
    pub fn at(code: &'static str, path: &str, message: String) -> Self {
        Self {
            code,
            message,
            paths: vec![path.to_owned()],
        }
    }
}

/// A release by what identifies it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ManagedConfigReleaseRef")]
pub struct ReleaseRef {
    id: ReleaseId,
    version: i64,
    store_epoch: i64,
    /// `sha256:…` of the content for callers with `managed_config:pull`; for others `hmac-sha256:…`, a keyed hash of it: the same
    /// for the same content, and nobody can try out with it what the content holds.
    content_digest: String,
}

impl ReleaseRef {
    /// Returns the short form of a release.
    pub fn of(ctx: &OperationContext<'_>, release: &Release) -> Self {
        Self {
            id: release.id.clone(),
            version: release.version,
            store_epoch: release.store_epoch,
            content_digest: release.content_digest.shown(ctx),
        }
    }
}

/// A machine that reports.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ManagedConfigTarget")]
pub struct MachineView {
    target_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_name: Option<String>,
    release_id: ReleaseId,
    /// What is in place, in the form of a release's: equal to that of the release whose content it is.
    content_digest: String,
    state: TargetState,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    first_reported_at: Timestamp,
    last_reported_at: Timestamp,
    reported_by: Principal,
}

impl MachineView {
    /// Returns the view of a machine that stands somewhere.
    pub fn of(ctx: &OperationContext<'_>, machine: Machine, state: TargetState) -> Self {
        Self {
            target_id: machine.target_id,
            target_name: machine.name,
            release_id: machine.release_id,
            content_digest: machine.content_digest.shown(ctx),
            state,
            message: machine.message,
            first_reported_at: machine.first_reported_at,
            last_reported_at: machine.last_reported_at,
            reported_by: machine.reported_by,
        }
    }
}
