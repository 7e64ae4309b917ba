//! Backtests: what a candidate set would have decided on recorded events, compared with a baseline.
//!
//! ```text
//!   plan ── cut into stripes ──► grouped: each distinct behaviour once, times its count ─┐
//!                           └──► event by event, by columns ────────────────────────────┼─► totals ─► Results
//!        ── history conditions: in the order of time, with the past of 30 days ─────────┘
//! ```
//!
//! INVARIANT RP-1: unchanged, changed, errors and unknown add up to the evaluated events, and the counts of all
//! changes to `changed`.
//! INVARIANT RP-2: results depend on the events, the sets, the register and the question alone: not on the number of
//! threads, nor on how events lie in chunks and segments, nor on interruptions. What is counted is added exactly, in
//! any order.
//! INVARIANT RP-3: while a run is at work its counters never decrease, and neither does `Watch::processed`.
//! INVARIANT RP-4: a backtest writes nothing. Proof: the compiler, since a `Source` gives no way to write.
//! INVARIANT RP-5: memory is bounded whatever the window: a stripe's groups, a row group for each thread, and the
//! behaviours, subjects and tools with the smallest digests; sets with history conditions remember, for each subject,
//! what their conditions can still ask. Proof: in part.
//!
//! Source: D9.1, D9.4 to D9.7, D9.10.
//!
//! Absent on purpose: what a run is called, who may start it, where its checkpoints are kept, and the clock.

mod checkpoint;
mod checkpoint_state;
mod failures;
mod fingerprints;
mod judge;
mod names;
mod ordered;
mod results;
mod run_context;
mod totals;
mod words;
mod work;

pub use failures::{ByFailure, FailureWord};
pub use results::{ByChange, ByDay, ByPolicy, BySubject, ByTool, Results, Sample, SampleDecision};
pub use totals::SubjectKind;
pub use words::words;

use checkpoint::Progress;
use provost_history::scan::Watch;
use provost_history::{Plan, Result, Source};
use provost_policy::rego::{InProcess, Runner};
use provost_policy::{PolicySet, Register, document_sha256};
use run_context::RunContext;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The version of what a run finds: raised when the same events and sets would give other results.
pub const ENGINE_VERSION: &str = "5";

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The first instant that counts. Units: milliseconds since the Unix epoch, UTC.
    pub from_ms: i64,
    /// The first instant that counts no more.
    pub to_ms: i64,
    /// How many events are read at most, the newest.
    pub max_events: u64,
    /// Which of them count.
    pub filters: Filters,
}

impl Question {
    /// Returns what is asked of the history.
    fn of_history(&self) -> provost_history::Question {
        provost_history::Question {
            from: self.from_ms,
            to: self.to_ms,
            max_events: self.max_events,
        }
    }
}

/// Which events count; an empty list lets all pass.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// Users, service accounts and devices whose events they are.
    pub subject_ids: Vec<String>,
    /// Tools.
    pub tools: Vec<String>,
    /// Resources.
    pub resource_ids: Vec<String>,
}

/// A chunk or segment that could not be opened; all its events count as errors.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Its name.
    pub name: String,
    /// How many events it has.
    pub rows: u64,
}

/// A run.
pub struct Job {
    /// What is compared with.
    pub baseline: Arc<PolicySet>,
    /// What is tried.
    pub candidate: Arc<PolicySet>,
    /// Everything that may hold events of the window, and, where a set has history conditions, of the 30 days before.
    pub sources: Vec<Source>,
    /// What should be among them and could not be opened.
    pub unreadable: Vec<Unreadable>,
    /// The question.
    pub question: Question,
    /// What the words of events and policies mean; of those of events it must know all that [`words`] returns.
    pub register: Arc<Register>,
    /// How many threads are at work; history conditions take one.
    pub threads: usize,
    /// How the work is done; results do not depend on it.
    pub tuning: Tuning,
}

/// How the work is done.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// About how many events are read between two checkpoints.
    pub stripe_events: usize,
    /// About how many bytes of texts each thread keeps before it forgets them.
    pub symbol_bytes: usize,
    /// Whether distinct behaviours may be judged once, where decisions depend on no other event.
    pub may_group: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            // As many as some segments have: what is grouped together is judged together.
            stripe_events: 4 * provost_history::SEGMENT_EVENTS,
            symbol_bytes: 24 * 1024 * 1024,
            may_group: true,
        }
    }
}

/// A run that is not at its end.
pub struct Part<'a> {
    engine: &'a Engine<'a>,
    plan: &'a Plan,
    progress: &'a Progress,
}

impl Part<'_> {
    /// Returns the bytes from which the run can go on.
    pub fn bytes(&self) -> Vec<u8> {
        self.engine.encode(self.progress)
    }

    /// Returns what was found so far.
    ///
    /// Errors: those of reading the ids of samples.
    pub fn results(&self) -> Result<Results> {
        Results::of(self.engine, self.progress.totals.clone(), self.plan)
    }
}

/// How a run is watched, stopped, and kept for later.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Stops the run, and counts the events that were read.
    pub watch: &'a Watch,
    /// Says whether the time of the run is over; asked at least every 4096 events, from all threads.
    pub is_expired: &'a (dyn Fn() -> bool + Sync),
    /// Called when a part is done, with what can be kept of the run; to ask it for something takes time.
    pub checkpoint: &'a (dyn Fn(&Part<'_>) + Sync),
}

impl Control<'_> {
    fn is_over(&self) -> bool {
        self.watch.cancel.load(Ordering::Relaxed) || (self.is_expired)()
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Every event was read.
    Whole,
    /// It was canceled.
    Canceled,
    /// Its time was over.
    Duration,
}

/// Where a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// At the beginning.
    Anew,
    /// Where the checkpoint was made.
    Resumed,
    /// At the beginning, because the checkpoint is not one of this run.
    Over,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub finished: RunEnd,
    /// Where it began.
    pub began: RunStart,
    /// What it found, as far as it came.
    pub results: Results,
    /// How many events the question is about.
    pub events_total: u64,
    /// How many of them were read, or could not be.
    pub events_processed: u64,
    /// Whether there were more than `max_events`.
    pub truncated_by_events: bool,
    /// The digest of the question and of the sources: with the same sets and engine the results are the same.
    pub dataset_digest: String,
}

/// What all parts of a run know beside the events.
struct Engine<'a> {
    baseline: &'a PolicySet,
    candidate: &'a PolicySet,
    question: &'a Question,
    threads: usize,
    tuning: Tuning,
    /// The digest of everything that decides about the results.
    identity: String,
}

/// Runs a backtest in this process, from a checkpoint if there is one; see [`run_by`].
pub fn run(job: &Job, resume: Option<&[u8]>, control: &Control<'_>) -> Result<Outcome> {
    run_by(job, resume, control, &InProcess)
}

/// Runs a backtest, from a checkpoint if there is one, with modules run by somebody.
///
/// Errors: `Invalid` when the window is empty or `max_events` is out of bounds; `Storage` when the storage fails in a
/// way that may pass. What is damaged is no error: its events are counted as `errors`.
pub fn run_by(
    job: &Job,
    resume: Option<&[u8]>,
    control: &Control<'_>,
    modules: &dyn Runner,
) -> Result<Outcome> {
    let dataset_digest = dataset(job);
    let identity = [
        ENGINE_VERSION,
        job.baseline.digest(),
        job.candidate.digest(),
        &dataset_digest,
        // The stripes that are done are told by their numbers.
        &job.tuning.stripe_events.to_string(),
    ];
    let engine = Engine {
        baseline: &job.baseline,
        candidate: &job.candidate,
        question: &job.question,
        threads: job.threads,
        tuning: job.tuning,
        identity: document_sha256(&json!(identity)),
    };
    let (plan, sources, lost) = plan(job, job.question.of_history())?;
    let (progress, began) = match resume.map(|bytes| engine.decode(bytes)) {
        None => (Progress::new(), RunStart::Anew),
        Some(Some(progress)) => (progress, RunStart::Resumed),
        Some(None) => (Progress::new(), RunStart::Over),
    };
    let unopened: u64 = lost.iter().map(|lost| lost.rows).sum();
    let done = usize::try_from(progress.totals.read + unopened).unwrap_or(usize::MAX);
    control.watch.add(done);
    let frame = RunContext::new(
        &job.baseline,
        &job.candidate,
        &job.question.filters,
        &job.register,
        modules,
    );
    let (mut totals, is_whole) = if frame.has_history {
        ordered::run(&engine, &plan, sources, &frame, progress, control)?
    } else {
        work::run(&engine, &plan, &frame, progress, control)?
    };
    for lost in &lost {
        totals.lose(&lost.name, lost.rows);
    }
    let finished = match is_whole {
        true => RunEnd::Whole,
        false if control.watch.cancel.load(Ordering::Relaxed) => RunEnd::Canceled,
        false => RunEnd::Duration,
    };
    Ok(Outcome {
        finished,
        began,
        events_total: plan.events() + unopened,
        events_processed: totals.read,
        truncated_by_events: plan.is_truncated(),
        dataset_digest,
        results: Results::of(&engine, totals, &plan)?,
    })
}

/// Returns the digest of the question, of what is read, and of what its words mean.
fn dataset(job: &Job) -> String {
    let mut sources: Vec<_> = job
        .sources
        .iter()
        .map(|source| (source.name(), source.rows(), source.span()))
        .collect();
    sources.sort_unstable();
    let mut unreadable: Vec<_> = job
        .unreadable
        .iter()
        .map(|lost| (&lost.name, lost.rows))
        .collect();
    unreadable.sort_unstable();
    let Question {
        from_ms,
        to_ms,
        max_events,
        filters,
    } = &job.question;
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list.dedup();
        list
    };
    document_sha256(&json!({
        "from": from_ms.to_string(),
        "to": to_ms.to_string(),
        "maxEvents": max_events,
        "subjects": sorted(&filters.subject_ids),
        "tools": sorted(&filters.tools),
        "resources": sorted(&filters.resource_ids),
        "sources": sources,
        "unreadable": unreadable,
        "register": job.register.digest(),
    }))
}

/// Returns the plan over what can be read, those sources, and what cannot be.
fn plan(job: &Job, question: provost_history::Question) -> Result<(Plan, Vec<Source>, Vec<Unreadable>)> {
    let schema = crate::record::schema();
    let lost = job.unreadable.clone();
    match Plan::new(Arc::clone(&schema), job.sources.clone(), question) {
        Ok(plan) => return Ok((plan, job.sources.clone(), lost)),
        Err(cause) if work::is_lost(&cause) => {}
        Err(cause) => return Err(cause),
    }
    // Some source cannot be read where the window or the cut goes through it: each is tried alone.
    let (mut sources, mut lost) = (Vec::new(), lost);
    for source in &job.sources {
        let all = provost_history::Question {
            max_events: 1,
            ..question
        };
        match Plan::new(Arc::clone(&schema), vec![source.clone()], all) {
            Ok(_) => sources.push(source.clone()),
            Err(cause) if work::is_lost(&cause) => lost.push(Unreadable {
                name: source.name().to_owned(),
                rows: source.rows().into(),
            }),
            Err(cause) => return Err(cause),
        }
    }
    Ok((Plan::new(schema, sources.clone(), question)?, sources, lost))
}
