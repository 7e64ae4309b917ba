//! A run as it is shown (D9.3).

use super::body::{BaselineKind, CandidateKind, Filters, Window};
use super::model::{BacktestId, Cut, Failure, Principal, Run, State, Status};
use super::question::Question;
use super::results::Results;
use provost_kernel::Timestamp;
use provost_policy::sha256_hex;
use schemars::JsonSchema;
use serde::Serialize;

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RunView {
    id: BacktestId,
    organization_id: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// `queued` → `running` → `succeeded`, `failed` or `canceled`; `queued` → `canceled`.
    status: Status,
    /// Why it was asked for.
    reason: String,
    created_at: Timestamp,
    created_by: Principal,
    updated_at: Timestamp,
    /// When a worker first began.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    /// When it ended, in whichever way.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled_by: Option<Principal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_reason: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    /// The two sets, as they were when the run was made.
    policy_set: PolicySetView,
    window: Window,
    filters: Filters,
    limits: LimitsView,
    progress: ProgressView,
    /// What came of it: when it has succeeded, or for the part that was evaluated when it failed or was canceled.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Results>,
    /// Whether the results are those of a part, because the run failed or was canceled.
    partial: bool,
    /// Whether a limit left events out.
    truncated: bool,
    /// Which limit: `events` or `duration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_by: Option<Cut>,
    /// How often a worker began or took the run up again; 0 while it waits.
    attempt: i64,
    /// The version of the engine that judges.
    engine_version: String,
    /// Names what was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset_digest: Option<String>,
    /// SHA-256 of the canonical results. The same sets, data and engine give the same; absent when the limit on the
    /// duration left events out.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_digest: Option<String>,
    /// Always false: a backtest judges the past.
    #[schemars(extend("const" = false))]
    live_enforcement_changed: bool,
    /// When the record goes away; absent until the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct PolicySetView {
    /// What the candidate is compared with.
    baseline: BaselineView,
    /// What is tried.
    candidate: CandidateView,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct BaselineView {
    kind: BaselineKind,
    /// The policy-set version that it is.
    version_id: String,
    /// Its policies, by family and id.
    policy_ids: Vec<String>,
    /// The version's digest: 64 hexadecimal digits.
    digest: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct CandidateView {
    kind: CandidateKind,
    /// Its policies, by family and id; those that are not enabled take no part.
    policy_ids: Vec<String>,
    /// The set's digest: 64 hexadecimal digits.
    digest: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct LimitsView {
    /// How many events are judged at most; the newest of the window.
    max_events: i64,
    /// How long workers may be at it. Units: seconds.
    max_duration_seconds: i64,
}

/// How far the work is; no counter ever decreases.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct ProgressView {
    /// Events that were read.
    events_processed: i64,
    /// Events of the question; absent until they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_total: Option<i64>,
    /// 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    percent: i64,
}

impl Run {
    /// Returns the entity tag of the record as it is now (D1.9): another one whenever it changed, and for every
    /// version of the program that may write it down differently.
    pub fn etag(&self, org: &str) -> String {
        let state = format!(
            "{org} {} {} {}",
            self.id,
            self.revision,
            env!("CARGO_PKG_VERSION")
        );
        format!("\"{}\"", &sha256_hex(state.as_bytes())[..32])
    }
}

impl RunView {
    /// Returns a run as it is shown.
    pub fn of(org: &str, run: Run, question: Question, results: Option<Results>) -> Self {
        let (expires_at, partial, status) = (run.expires_at(), run.is_partial(), run.status());
        let progress = ProgressView::of(&run);
        let (mut failure, mut canceled_by, mut cancel_reason) = (None, None, None);
        match run.state {
            State::Failed(why) => failure = Some(why),
            State::Canceled { by, reason } => (canceled_by, cancel_reason) = (Some(by), Some(reason)),
            State::Queued | State::Running | State::Succeeded => {}
        }
        Self {
            id: run.id,
            organization_id: org.to_owned(),
            name: run.name,
            status,
            reason: run.reason,
            created_at: run.created_at,
            created_by: run.created_by,
            updated_at: run.updated_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            canceled_at: run.finished_at.filter(|_| status == Status::Canceled),
            canceled_by,
            cancel_reason,
            failure,
            policy_set: PolicySetView {
                baseline: BaselineView {
                    kind: question.baseline.kind,
                    version_id: question.baseline.version_id,
                    policy_ids: question.baseline.policy_ids,
                    digest: question.baseline.digest,
                },
                candidate: CandidateView {
                    kind: question.candidate.kind,
                    policy_ids: question.candidate.policy_ids,
                    digest: question.candidate.digest,
                },
            },
            window: question.window,
            filters: question.filters,
            limits: LimitsView {
                max_events: question.max_events,
                max_duration_seconds: question.max_duration_secs,
            },
            progress,
            results,
            partial,
            truncated: run.cut.is_some(),
            truncated_by: run.cut,
            attempt: run.attempt,
            engine_version: run.engine_version,
            dataset_digest: run.dataset_digest,
            result_digest: run.result_digest,
            live_enforcement_changed: false,
            expires_at,
        }
    }
}

impl ProgressView {
    fn of(run: &Run) -> Self {
        let (processed, total) = (run.progress.processed, run.progress.total);
        let whole = if total > 0 {
            processed.min(total) * 100 / total
        } else {
            0
        };
        Self {
            events_processed: processed,
            events_total: (total > 0 || run.status() == Status::Succeeded).then_some(total),
            // What a cut left out is not to come; a question without events is answered as soon as it is asked.
            percent: if run.status() == Status::Succeeded {
                100
            } else {
                whole
            },
        }
    }
}
