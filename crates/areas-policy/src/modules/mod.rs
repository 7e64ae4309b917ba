//! Modules run in processes that can be killed.
//!
//! A Rego module is code of whoever may write policies, and it runs beside the tokens, keys and rows of every organization. Its
//! steps, sizes and time are bounded where it runs; what slips through these bounds is ended with its process.
//!
//! ```text
//!   decision, check ──► a worker of the live crew ───┐ idle ones are taken, else one is started
//!   backtest ─────────► a worker of the crew behind ─┘ answered: idle again · too long, or dead: killed, the question failed
//! ```
//!
//! Questions go over in one message, as many as there are of a batch. When a worker ends over several, the first without an
//! answer is asked once more alone: whoever ends two workers has failed, and the others are asked as if nothing had been.
//!
//! INVARIANT MW-1: a module that does not end is killed with its process and counts as matched; the others of the
//! same batch are judged.
//! INVARIANT MW-2: a process for modules has no environment, no descriptor but its socket, opens none, and has
//! bounded memory.
//! INVARIANT MW-3: where no process for modules can be started, modules count as matched in decisions, and backtests
//! wait and then fail; nothing runs them in the server instead, and `/readyz` says so.
//!
//! Absent on purpose: a fallback to this process. It would be the way around everything above.

mod cores;
mod frames;
mod process;
mod worker;

pub use cores::core;
pub use process::WORD;
pub use worker::run_if_asked;

use process::{End, Process};
use provost_kernel::Kernel;
use provost_policy::rego::{self, Failure, InProcess, ModuleAnswer, Question, Runner};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long one question of a decision may take: what the engine allows, and a tenth of a second.
const LIVE_PATIENCE: Duration = rego::EVALUATION_LIMIT.saturating_add(Duration::from_millis(100));
/// The same of a backtest, whose workers run at the lowest priority and wait for a processor as long as others need it.
const BACKTEST_PATIENCE: Duration = Duration::from_secs(5);
/// LIMIT: questions, and about how many bytes of them, in one message.
const MESSAGE_QUESTIONS: usize = 64;
const MESSAGE_BYTES: usize = 8 << 20;
/// LIMIT: how long a backtest waits for a worker that cannot be started.
const START_PATIENCE: Duration = Duration::from_mins(1);
const START_AGAIN: Duration = Duration::from_millis(250);

/// The workers of a server.
pub struct Workers {
    image: PathBuf,
    /// How long one question of a backtest may take.
    backtest_patience: Duration,
    /// How long a backtest waits for a worker that cannot be started.
    start_patience: Duration,
    live: Crew,
    backtests: Crew,
    trouble: Mutex<Option<String>>,
}

/// Workers that wait to be asked.
#[derive(Default)]
struct Crew(Mutex<Vec<Process>>);

impl Crew {
    fn idle(&self) -> MutexGuard<'_, Vec<Process>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Process> {
        self.idle().pop()
    }

    /// Keeps a worker for the next question; one for each processor.
    fn put(&self, process: Process) {
        let most = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut idle = self.idle();
        if idle.len() < most {
            idle.push(process);
            return;
        }
        // It is ended without the lock.
        drop(idle);
        drop(process);
    }
}

impl Workers {
    /// Returns the workers of this program's own image.
    ///
    /// Errors: those of the system where it says what that is.
    pub fn own() -> std::io::Result<Self> {
        Ok(Self::of(process::image()?, BACKTEST_PATIENCE, START_PATIENCE))
    }

    /// Returns the workers of an image: of this program in a test, which is another one.
    pub fn of(image: PathBuf, backtest_patience: Duration, start_patience: Duration) -> Self {
        Self {
            image,
            backtest_patience,
            start_patience,
            live: Crew::default(),
            backtests: Crew::default(),
            trouble: Mutex::default(),
        }
    }

    /// Starts the first worker, and says in the log what the system does not allow.
    pub fn begin(&self) {
        let Some(process) = self.start() else { return };
        if !process.left.is_empty() {
            tracing::warn!(
                left = process.left,
                "the processes that run modules keep some freedom: the system did not allow to take it away"
            );
        }
        self.live.put(process);
    }

    /// Returns why no worker can be started, if that is so.
    pub fn trouble(&self) -> Option<String> {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn start(&self) -> Option<Process> {
        let started = Process::start(&self.image);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match started {
            Ok(process) => {
                *trouble = None;
                metrics::gauge!("provost_module_workers_unavailable").set(0.0);
                Some(process)
            }
            Err(error) => {
                metrics::counter!("provost_module_worker_starts_failed_total").increment(1);
                metrics::gauge!("provost_module_workers_unavailable").set(1.0);
                if trouble.is_none() {
                    tracing::error!(%error, "no process for modules can be started: decisions count modules as matched");
                }
                *trouble = Some(format!("no process for modules can be started: {error}"));
                None
            }
        }
    }
}

/// Returns why modules cannot be run, if that is so.
pub fn trouble(kernel: &Kernel) -> Option<String> {
    kernel.extra::<Workers>().and_then(Workers::trouble)
}

/// What runs the modules of one piece of work.
pub struct Runs<'a> {
    workers: Option<&'a Workers>,
    is_backtest: bool,
    was_killed: AtomicBool,
    is_unavailable: AtomicBool,
}

impl<'a> Runs<'a> {
    /// Returns what runs modules in these workers, for who measures them.
    pub fn of_workers(workers: &'a Workers) -> Self {
        Self {
            workers: Some(workers),
            is_backtest: false,
            was_killed: AtomicBool::new(false),
            is_unavailable: AtomicBool::new(false),
        }
    }

    /// Returns what runs modules for somebody who waits. Without workers (a simulation, a test) it is this process.
    pub fn live(kernel: &'a Kernel) -> Self {
        Self::of(kernel, false)
    }

    /// Returns what runs the modules of a backtest.
    pub fn backtest(kernel: &'a Kernel) -> Self {
        Self::of(kernel, true)
    }

    fn of(kernel: &'a Kernel, is_backtest: bool) -> Self {
        Self {
            workers: kernel.extra::<Workers>(),
            is_backtest,
            was_killed: AtomicBool::new(false),
            is_unavailable: AtomicBool::new(false),
        }
    }

    /// Says whether a worker ended over a question: then another run could find something else.
    pub fn was_killed(&self) -> bool {
        self.was_killed.load(Ordering::Relaxed)
    }

    /// Says whether there was nobody to run modules.
    pub fn is_unavailable(&self) -> bool {
        self.is_unavailable.load(Ordering::Relaxed)
    }

    /// Returns a worker, a fresh one where that matters; a backtest waits for one.
    fn worker(&self, workers: &Workers, is_fresh: bool, has_time: &dyn Fn() -> bool) -> Option<Process> {
        let crew = self.crew(workers);
        let mut waited = Duration::ZERO;
        while !self.is_unavailable() {
            let idle = if is_fresh { None } else { crew.take() };
            if let Some(process) = idle.or_else(|| workers.start()) {
                return Some(process);
            }
            if !self.is_backtest || waited >= workers.start_patience {
                self.is_unavailable.store(true, Ordering::Relaxed);
                break;
            }
            if !has_time() {
                break;
            }
            std::thread::sleep(START_AGAIN);
            waited += START_AGAIN;
        }
        None
    }

    fn crew<'w>(&self, workers: &'w Workers) -> &'w Crew {
        if self.is_backtest {
            &workers.backtests
        } else {
            &workers.live
        }
    }

    /// Asks some questions; says whether to go on.
    fn ask_some(
        &self,
        workers: &Workers,
        questions: &[Question<'_>],
        has_time: &dyn Fn() -> bool,
        sayings: &mut Vec<ModuleAnswer>,
    ) -> bool {
        let patience = if self.is_backtest {
            workers.backtest_patience
        } else {
            LIVE_PATIENCE
        };
        let (start, mut alone) = (sayings.len(), false);
        while let Some(open) = questions
            .get(sayings.len() - start..)
            .filter(|open| !open.is_empty())
        {
            let Some(mut process) = self.worker(workers, alone, has_time) else {
                return false;
            };
            let now = if alone { &open[..1] } else { open };
            match process.ask(now, patience, has_time, sayings) {
                End::Whole => {
                    self.crew(workers).put(process);
                    alone = false;
                }
                End::NoTime => return false,
                // It may have been another question of the message, or a worker that somebody ended while it was idle.
                End::Ended if !alone => alone = true,
                End::Ended => {
                    self.was_killed.store(true, Ordering::Relaxed);
                    metrics::counter!("provost_module_workers_killed_total").increment(1);
                    tracing::warn!(
                        module = now[0].module.source_sha256(),
                        "a module was ended with its process: it takes too long or too much memory"
                    );
                    sayings.push(ModuleAnswer::failed(Failure::Ended));
                    alone = false;
                }
            }
        }
        true
    }
}

/// Returns how many of these questions go over together: at least one.
fn message(questions: &[Question<'_>]) -> usize {
    let mut bytes = 0_usize;
    let fits = |question: &&Question<'_>| {
        bytes = bytes.saturating_add(question.bytes());
        bytes <= MESSAGE_BYTES
    };
    let count = questions.iter().take(MESSAGE_QUESTIONS).take_while(fits).count();
    count.max(1)
}

impl Runner for Runs<'_> {
    fn ask(&self, questions: &[Question<'_>], has_time: &dyn Fn() -> bool) -> Vec<ModuleAnswer> {
        let Some(workers) = self.workers else {
            return InProcess.ask(questions, has_time);
        };
        let mut sayings = Vec::with_capacity(questions.len());
        let mut rest = questions;
        while !rest.is_empty() && has_time() {
            let (some, later) = rest.split_at(message(rest));
            if !self.ask_some(workers, some, has_time, &mut sayings) {
                break;
            }
            rest = later;
        }
        sayings
    }
}
