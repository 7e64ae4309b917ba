//! The threads that judge: few, long-lived, and modest.
//!
//! A run is minutes of computing beside live decisions, which must not notice. So its threads are this server's own,
//! never those that answer requests, and on Linux they run at the lowest priority: they take what is left of the
//! processors, and a decision that becomes ready takes its place at once. Threads that an engine starts inherit it.
//!
//! INVARIANT BT-11: after a module was killed nothing is kept of a run from which another attempt could go on, and
//! its results have no digest.

use super::model::{CutReason, Progress, Verdict};
use super::question::Question;
use super::results::Results;
use super::sources::PinnedSources;
use crate::history::{self, OpenSources, SourceRow};
use crate::modules::Runs;
use provost_areas_identity::words::{self, Kind, WordQuery};
use provost_backtest::record;
use provost_backtest::run::{self, Job, Part, RunEnd, Tuning, Unreadable};
use provost_history::Plan;
use provost_history::scan::Watch;
use provost_kernel::Kernel;
use provost_kernel::error::{Error, Result};
use provost_kernel::supervisor::Supervisor;
use provost_kernel::threads::Threads;
use provost_policy::{PolicySet, Register};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

pub use provost_backtest::run::ENGINE_VERSION as VERSION;

/// LIMIT: runs that this server works on at a time.
pub const SLOTS: usize = 2;
/// How hard checkpoints are compressed: they are made every second.
const ZSTD_LEVEL: i32 = 1;
/// The lowest priority there is.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;

/// What is to be judged.
pub struct Task {
    /// Whose history it is.
    pub organization: String,
    /// What is asked.
    pub question: Question,
    /// Baseline and candidate.
    pub sets: [Arc<PolicySet>; 2],
    /// Where the events lie now.
    pub sources: Vec<SourceRow>,
    /// Where they lay when the work began, and from where it goes on.
    pub pinned: Option<PinnedSources>,
    /// How it is watched and stopped.
    pub control: Arc<Control>,
    /// Who waits for its end.
    pub done: oneshot::Sender<Result<End>>,
}

/// What is kept of a work that may be interrupted.
pub struct Snapshot {
    /// Events that stand in the results.
    pub evaluated: i64,
    /// What came of it so far.
    pub results: Results,
    /// From where it can go on.
    pub pinned: PinnedSources,
}

/// How the work ended.
pub struct End {
    /// Whether everything was read, its time was over, or it was stopped.
    pub finished: RunEnd,
    /// What came of it.
    pub results: Results,
    /// What it says about the run.
    pub verdict: Verdict,
    /// Whether there was nobody to run modules: then what came of it is nothing.
    pub lacks_engine: bool,
}

/// The hand on a work that is done on another thread.
#[derive(Default)]
pub struct Control {
    watch: Watch,
    is_expired: AtomicBool,
    total: AtomicU64,
    wants: AtomicBool,
    latest: Mutex<Option<Snapshot>>,
}

impl Control {
    /// Asks the work to stop; it does so within a batch.
    pub fn stop(&self) {
        self.watch.cancel.store(true, Ordering::Relaxed);
    }

    /// Says whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.watch.cancel.load(Ordering::Relaxed)
    }

    /// Tells the work that its time is over: it ends with what it has.
    pub fn expire(&self) {
        self.is_expired.store(true, Ordering::Relaxed);
    }

    /// Returns how far the work is.
    pub fn progress(&self) -> Progress {
        Progress {
            processed: whole(self.watch.processed.load(Ordering::Relaxed)),
            total: whole(self.total.load(Ordering::Relaxed)),
            evaluated: 0,
        }
    }

    /// Returns what was kept of the work since it was last asked for, and asks for the next.
    pub fn take(&self) -> Option<Snapshot> {
        self.wants.store(true, Ordering::Relaxed);
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, snapshot: Snapshot) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How many of this server's threads judge at this moment.
#[derive(Default)]
struct AtWork(AtomicUsize);

impl AtWork {
    fn of(kernel: &Kernel) -> &Self {
        kernel.own(Self::default)
    }

    fn note(count: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a handful of threads")]
        metrics::gauge!("provost_backtests_at_work").set(count as f64);
    }
}

/// Returns how many runs the threads of this server judge at this moment.
pub fn at_work(kernel: &Kernel) -> usize {
    AtWork::of(kernel).0.load(Ordering::SeqCst)
}

/// The threads, as long as this stands.
pub struct Engine {
    tasks: Sender<Task>,
    kernel: Arc<Kernel>,
}

impl Engine {
    /// Starts the threads under a supervisor; they end when the engine is dropped.
    ///
    /// Errors: those of the system when it has no thread left.
    pub fn start(kernel: &Arc<Kernel>, supervisor: &Supervisor) -> std::io::Result<Self> {
        let (tasks, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let threads = match kernel.settings.threads {
            Threads::Os => SLOTS,
            Threads::Inline(_) => 0,
        };
        for _ in 0..threads {
            let (kernel, waiting) = (kernel.clone(), waiting.clone());
            supervisor.spawn_thread("backtest", move |_| work(&kernel, &waiting))?;
        }
        let kernel = kernel.clone();
        Ok(Self { tasks, kernel })
    }

    /// Gives a task to the next free thread.
    ///
    /// Errors: `Internal` when the threads have ended.
    pub fn submit(&self, task: Task) -> Result<()> {
        if let Threads::Inline(_) = self.kernel.settings.threads {
            perform(&self.kernel, task);
            return Ok(());
        }
        self.tasks
            .send(task)
            .map_err(|_| Error::internal("the threads of backtests have ended"))
    }
}

fn work(kernel: &Arc<Kernel>, waiting: &Mutex<Receiver<Task>>) {
    step_back();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = next else { return };
        perform(kernel, task);
    }
}

fn perform(kernel: &Arc<Kernel>, mut task: Task) {
    let (done, closed) = oneshot::channel();
    drop(closed);
    let done = std::mem::replace(&mut task.done, done);
    let at_work = &AtWork::of(kernel).0;
    AtWork::note(at_work.fetch_add(1, Ordering::SeqCst) + 1);
    let end = catch_unwind(AssertUnwindSafe(|| judge(kernel, task)));
    AtWork::note(at_work.fetch_sub(1, Ordering::SeqCst) - 1);
    let _ = done.send(end.unwrap_or_else(|_| Err(Error::internal("a backtest panicked"))));
}

/// Gives this thread, and those that it will start, the lowest priority.
fn step_back() {
    #[cfg(target_os = "linux")]
    {
        // On Linux a priority belongs to a thread, not to its process.
        let this = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(this), NICE) {
            tracing::warn!(%error, "backtests run at the priority of everything else");
        }
    }
}

fn judge(kernel: &Arc<Kernel>, task: Task) -> Result<End> {
    let (opened, sources, resume) = open(kernel, &task);
    let (control, question) = (&*task.control, &task.question);
    let [baseline, candidate] = task.sets;
    let (from_ms, to_ms) = (question.window.from.as_ms(), question.window.to.as_ms());
    let is_asked = |lost: &history::Unreadable| lost.max_at >= from_ms && lost.min_at < to_ms;
    let unreadable = opened
        .unreadable
        .into_iter()
        .filter(is_asked)
        .map(|lost| Unreadable {
            name: lost.name,
            rows: lost.rows.into(),
        });
    let mut job = Job {
        baseline,
        candidate,
        sources: opened.sources,
        unreadable: unreadable.collect(),
        question: run::Question {
            from_ms,
            to_ms,
            max_events: question.max_events.unsigned_abs(),
            filters: question.filters.to_engine(),
        },
        register: Arc::default(),
        threads: threads(),
        tuning: Tuning::default(),
    };
    job.register = register(kernel, &task.organization, &job, control)?;
    let modules = Runs::backtest(kernel);
    let keep = |part: &Part<'_>| {
        // INVARIANT BT-11: after a module was killed nothing is kept from which another attempt could go on without a trace of it.
        if modules.was_killed() || modules.is_unavailable() {
            return;
        }
        if control.wants.swap(false, Ordering::Relaxed) {
            match snapshot(part, &sources) {
                Ok(snapshot) => control.put(snapshot),
                Err(error) => {
                    tracing::warn!(cause = ?error.private(), "no checkpoint of a backtest was made");
                }
            }
        }
    };
    control.total.store(total(&job), Ordering::Relaxed);
    let outcome = run::run_by(
        &job,
        resume.as_deref(),
        &run::Control {
            watch: &control.watch,
            is_expired: &|| control.is_expired.load(Ordering::Relaxed) || modules.is_unavailable(),
            checkpoint: &keep,
        },
        &modules,
    )
    .map_err(refusal)?;
    let cut = match outcome.finished {
        RunEnd::Duration => Some(CutReason::Duration),
        RunEnd::Whole | RunEnd::Canceled => outcome.truncated_by_events.then_some(CutReason::Events),
    };
    Ok(End {
        lacks_engine: modules.is_unavailable(),
        finished: outcome.finished,
        verdict: Verdict {
            progress: Progress {
                processed: whole(outcome.events_processed),
                total: whole(outcome.events_total),
                evaluated: whole(outcome.results.events_evaluated),
            },
            errors: whole(outcome.results.errors),
            cut,
            dataset_digest: outcome.dataset_digest,
            result_digest: (!modules.was_killed()).then(|| outcome.results.digest()),
        },
        results: Results::of(&outcome.results)?,
    })
}

/// Opens the sources that the work began with, if they all are still there, and returns from where it goes on; else those
/// of now, and the work begins anew. What was sealed meanwhile holds the same events, but a checkpoint names places.
fn open(kernel: &Arc<Kernel>, task: &Task) -> (OpenSources, Vec<SourceRow>, Option<Vec<u8>>) {
    if let Some(pinned) = &task.pinned
        && let Ok(checkpoint) = zstd::decode_all(&pinned.checkpoint[..])
    {
        let opened = history::open(kernel, &task.organization, pinned.sources.clone());
        if opened.unreadable.is_empty() {
            return (opened, pinned.sources.clone(), Some(checkpoint));
        }
    }
    let opened = history::open(kernel, &task.organization, task.sources.clone());
    (opened, task.sources.clone(), None)
}

/// Returns what the words of the run mean now: what a live decision about the same events would go by.
fn register(kernel: &Kernel, organization: &str, job: &Job, control: &Control) -> Result<Arc<Register>> {
    let found = match run::words(job, &control.watch.beside()) {
        Ok(found) => found,
        // The run itself says that it was stopped.
        Err(provost_history::Error::Canceled) => return Ok(Arc::default()),
        Err(cause) => return Err(refusal(cause)),
    };
    let mut asked = WordQuery::default();
    for kind in Kind::ALL {
        let words = found.get(&kind.field()).into_iter().flatten();
        words.for_each(|word| asked.add(kind, word));
    }
    let (organization, now) = (organization.to_owned(), kernel.clock.now());
    let register = kernel.read_blocking(move |tx| words::register(tx, &organization, &asked, now))?;
    Ok(Arc::new(register))
}

/// One processor is left to everything else.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

/// Returns how many events the question is about, as soon as that can be said: headers tell it. 0 when it cannot.
fn total(job: &Job) -> u64 {
    let question = provost_history::Question {
        from: job.question.from_ms,
        to: job.question.to_ms,
        max_events: job.question.max_events,
    };
    let lost: u64 = job.unreadable.iter().map(|lost| lost.rows).sum();
    Plan::new(record::schema(), job.sources.clone(), question).map_or(0, |plan| plan.events() + lost)
}

fn snapshot(part: &Part<'_>, sources: &[SourceRow]) -> Result<Snapshot> {
    let results = part.results().map_err(Error::internal)?;
    Ok(Snapshot {
        evaluated: whole(results.events_evaluated),
        results: Results::of(&results)?,
        pinned: PinnedSources {
            sources: sources.to_vec(),
            checkpoint: zstd::encode_all(&part.bytes()[..], ZSTD_LEVEL).map_err(Error::internal)?,
        },
    })
}

fn refusal(cause: provost_history::Error) -> Error {
    match cause {
        // What a storage refuses now it may give later: the run is taken up again.
        provost_history::Error::Storage(_) => {
            Error::unavailable("the history cannot be read at the moment").caused_by(cause)
        }
        cause => Error::internal(cause),
    }
}
