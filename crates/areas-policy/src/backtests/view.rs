//! A run as it is shown (D9.3).

use super::body::{BaselineKind, CandidateKind, Filters, Window};
use super::model::{BacktestId, CutReason, Failure, Principal, Run, State, Status};
use super::question::{Baseline, Candidate, Question};
use super::results::Results;
use super::sight::{ResultsView, RunVisibility, SMALLEST_COUNT};
use provost_kernel::Timestamp;
use provost_policy::sha256_hex;
use schemars::JsonSchema;
use serde::Serialize;

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[expect(clippy::struct_excessive_bools, reason = "the members on the wire")]
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
    /// Whether what differs between the two sets can depend on content: a tool's input and result, prompts, responses,
    /// free text of requests. Of such a run, whoever lacks the scope `policies:inspect` sees neither digests nor filters
    /// nor samples, and of its results totals alone.
    reads_content: bool,
    /// The two sets, as they were when the run was made.
    policy_set: PolicySetView,
    #[serde(flatten)]
    asked: AskedView,
    /// How often something passed on devices without a reason and was only counted, on the days of the window, as far as it was told when
    /// the run was made: there are no events of it, so that this run does not judge it. Absent of runs from before this was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    counted_on_devices: Option<i64>,
    progress: ProgressView,
    /// What came of it: when it has succeeded, or for the part that was evaluated when it failed or was canceled.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<ResultsView>,
    /// Whether the results are those of a part: it failed, was canceled, or could not read all.
    partial: bool,
    /// Whether a limit left events out.
    truncated: bool,
    /// Which limit: `events` or `duration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_by: Option<CutReason>,
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
    /// When the record goes away, and with it what came of it; absent until the run has ended. What it asked stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// Which events a run is about, and how many.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AskedView {
    pub(super) window: Window,
    /// Which events of the window; absent where they are not shown to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filters: Option<Filters>,
    pub(super) limits: LimitsView,
}

/// The two sets of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct PolicySetView {
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
    /// The version's digest: 64 hexadecimal digits; absent where it is not shown to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct CandidateView {
    kind: CandidateKind,
    /// Its policies, by family and id; those that are not enabled take no part.
    policy_ids: Vec<String>,
    /// The set's digest: 64 hexadecimal digits; absent where it is not shown to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// How much work a run may be.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LimitsView {
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
    /// Events that were read; absent where the results are restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_processed: Option<i64>,
    /// Events of the question; absent until they were counted, and where the results are restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_total: Option<i64>,
    /// 0 to 100. Where the results are restricted and the events are few, 0 until the run has ended.
    #[schemars(range(min = 0, max = 100))]
    percent: i64,
}

impl Run {
    /// Returns the entity tag of the record as it is now (D1.9): another one whenever it changed, for every version of
    /// the program that may write it down differently, and for those who may see less of it.
    pub fn etag(&self, org: &str, sight: RunVisibility) -> String {
        let form = match sight {
            RunVisibility::Whole => "",
            RunVisibility::Restricted => " restricted",
        };
        let state = format!(
            "{org} {} {} {}{form}",
            self.id,
            self.revision,
            env!("CARGO_PKG_VERSION")
        );
        format!("\"{}\"", &sha256_hex(state.as_bytes())[..32])
    }
}

impl PolicySetView {
    /// Returns the two sets with everything that is known of them.
    pub fn whole(baseline: Baseline, candidate: Candidate) -> Self {
        Self {
            baseline: BaselineView {
                kind: baseline.kind,
                version_id: baseline.version_id,
                policy_ids: baseline.policy_ids,
                digest: Some(baseline.digest),
            },
            candidate: CandidateView {
                kind: candidate.kind,
                policy_ids: candidate.policy_ids,
                digest: Some(candidate.digest),
            },
        }
    }

    /// Leaves the digests out, which tell whether a guess at a definition is right.
    fn without_digests(mut self) -> Self {
        (self.baseline.digest, self.candidate.digest) = (None, None);
        self
    }
}

impl LimitsView {
    /// Returns limits as they are shown.
    pub fn of(max_events: i64, max_duration_seconds: i64) -> Self {
        Self {
            max_events,
            max_duration_seconds,
        }
    }
}

impl RunView {
    /// Says whether what differs between the two sets can depend on content.
    pub fn reads_content(&self) -> bool {
        self.reads_content
    }

    /// Returns a run as it is shown to somebody who sees this much of runs that read content.
    ///
    /// INVARIANT BT-8: every way to a run's results leads through here, the list of samples apart.
    pub fn of(
        org: &str,
        sight: RunVisibility,
        run: Run,
        question: Question,
        results: Option<Results>,
    ) -> Self {
        let sight = if question.reads_content {
            sight
        } else {
            RunVisibility::Whole
        };
        let is_whole = sight == RunVisibility::Whole;
        let policy_set = PolicySetView::whole(question.baseline, question.candidate);
        // Whether something could not be read depends on the history alone, so that everybody may know it.
        let lacks_some = results.as_ref().is_some_and(|results| results.errors > 0);
        let partial = run.is_partial() || (run.shows_results() && lacks_some);
        let (expires_at, status) = (run.expires_at(), run.status());
        let progress = ProgressView::of(&run, sight);
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
            reads_content: question.reads_content,
            policy_set: if is_whole {
                policy_set
            } else {
                policy_set.without_digests()
            },
            asked: AskedView {
                window: question.window,
                // The totals of one subject's, tool's or resource's events are figures of it.
                filters: is_whole.then_some(question.filters),
                limits: LimitsView::of(question.max_events, question.max_duration_secs),
            },
            counted_on_devices: question.counted_on_devices,
            progress,
            results: results.map(|results| ResultsView::of(results, sight)),
            partial,
            truncated: run.cut.is_some(),
            truncated_by: run.cut,
            attempt: run.attempt,
            engine_version: run.engine_version,
            dataset_digest: run.dataset_digest.filter(|_| is_whole),
            result_digest: run.result_digest.filter(|_| is_whole),
            live_enforcement_changed: false,
            expires_at,
        }
    }
}

impl ProgressView {
    /// INVARIANT BT-8: how many events there are is a figure of a run that reads content, and so is a percentage of few.
    fn of(run: &Run, sight: RunVisibility) -> Self {
        let (processed, total) = (run.progress.processed, run.progress.total);
        let is_whole = sight == RunVisibility::Whole;
        let whole = if total > 0 {
            processed.min(total) * 100 / total
        } else {
            0
        };
        Self {
            events_processed: is_whole.then_some(processed),
            events_total: (is_whole && (total > 0 || run.status() == Status::Succeeded)).then_some(total),
            // What a cut left out is not to come; a question without events is answered as soon as it is asked.
            percent: if run.status() == Status::Succeeded {
                100
            } else if is_whole || total >= i64::try_from(SMALLEST_COUNT).unwrap_or(i64::MAX) {
                whole
            } else {
                0
            },
        }
    }
}
