//! Who works on runs: claims them, watches them, writes down how far they are (D9.5 to D9.8).
//!
//! ```text
//! claim ─▶ sets, sources ─▶ engine thread ───────────────▶ end
//!            every 100 ms, and when one is canceled here: is the run still ours?   no ─▶ stop, write nothing more
//!            every second: progress, partial results, checkpoint, lease
//!            too long:     stop ─▶ succeeded, cut by duration      shutdown: stop ─▶ checkpoint, lease given back
//! ```
//!
//! The database alone says who works on what: a worker that lost its run learns of it by asking, and what it writes
//! too late is refused (BT-4). So a cancel on this server and one on another are the same to it; the first is seen sooner.
//!
//! ```text
//! worker A   claim (epoch 1) ── frozen ──────────────────── save(1) ─▶ refused, A stops
//! worker B                      lease ends ─ claim (2) ──── save(2) ─▶ counts
//! ```

use super::engine::{self, Control, End, Engine, Snapshot, Task};
use super::model::{BacktestId, Claim, Failure, MAX_RUNNING, Run, State, Status};
use super::question::Question;
use super::sources::{PinnedSources, to_store};
use super::store;
use crate::backtests::fences;
use crate::history;
use provost_backtest::run::RunEnd;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Class, Code, Error};
use provost_kernel::event::EventOf;
use provost_kernel::supervisor::Supervisor;
use provost_kernel::{Kernel, OperationContext, Result};
use provost_policy::WITHIN_LIMIT_MS;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The worker's name; a unit of work that gives it something to do wakes it.
pub const NAME: &str = "backtests";
/// How long a worker sleeps that nobody wakes: other servers make runs too.
const IDLE: Duration = Duration::from_secs(1);
/// How often a worker asks whether its run is still its own.
const WATCH: Duration = Duration::from_millis(100);
/// After how many of these it writes down how far it is (D9.7: at most once a second), for the first time soon.
const SAVE_EVERY: u32 = 10;
const SAVE_FIRST: u32 = 3;

/// Starts the worker and its threads under a supervisor.
///
/// Errors: those of the system when it has no thread left.
pub fn start(kernel: &Arc<Kernel>, supervisor: &Supervisor) -> std::io::Result<()> {
    let engine = Engine::start(kernel, supervisor)?;
    let (kernel, stop) = (kernel.clone(), supervisor.token());
    supervisor.spawn(NAME, async move { serve(kernel, engine, stop).await });
    Ok(())
}

/// Claims runs as long as there are threads for them, until the server stops.
async fn serve(kernel: Arc<Kernel>, engine: Engine, stop: CancellationToken) {
    let engine = Arc::new(engine);
    let mut mine: Vec<BacktestId> = Vec::new();
    let mut at_work: JoinSet<BacktestId> = JoinSet::new();
    let notify = Arc::new(Notify::new());
    loop {
        while !stop.is_cancelled() && mine.len() < engine::SLOTS {
            match claim(&kernel, &mine).await {
                Ok(Some(claimed)) => {
                    mine.push(claimed.id.clone());
                    let (kernel, engine) = (kernel.clone(), engine.clone());
                    let (stop, notify) = (stop.clone(), notify.clone());
                    at_work.spawn(async move {
                        let id = claimed.id.clone();
                        if let Err(error) = tend(&kernel, &engine, claimed, &stop, &notify).await {
                            tracing::warn!(run = %id, cause = ?error.private(), "the work on a backtest stopped: {error}");
                        }
                        id
                    });
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(cause = ?error.private(), "no backtest could be claimed: {error}");
                    break;
                }
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled(), if at_work.is_empty() => return,
            Some(done) = at_work.join_next() => {
                // A panic of the task leaves its run to the lease; its id goes with the others that are not at work.
                match done {
                    Ok(id) => mine.retain(|other| *other != id),
                    Err(_) if at_work.is_empty() => mine.clear(),
                    Err(_) => {}
                }
            }
            () = kernel.work_notified(NAME), if !stop.is_cancelled() => notify.notify_waiters(),
            () = tokio::time::sleep(IDLE), if !stop.is_cancelled() => {}
        }
    }
}

/// A run that this worker has.
struct ClaimedRun {
    organization: OrganizationId,
    id: BacktestId,
    epoch: i64,
    /// How long it was worked on before. Units: milliseconds.
    worked_ms: i64,
}

/// Runs a unit of the program's own work and returns what it gave.
async fn unit<T: Send + 'static>(
    kernel: &Kernel,
    organization: &OrganizationId,
    run: impl Fn(&mut OperationContext<'_>) -> Result<T> + Send + 'static,
) -> Result<Option<T>> {
    let given = Arc::new(Mutex::new(None));
    let sink = given.clone();
    kernel
        .system(organization.clone(), None, move |ctx| {
            let value = run(ctx)?;
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            Ok(())
        })
        .await?;
    Ok(given.lock().unwrap_or_else(PoisonError::into_inner).take())
}

/// Takes the run that is next, if there is one: the organization with the fewest at work first, then the oldest run.
async fn claim(kernel: &Arc<Kernel>, mine: &[BacktestId]) -> Result<Option<ClaimedRun>> {
    let now = kernel.clock.now();
    let mut due = kernel.read_system(move |tx| store::due(tx, now)).await?;
    due.retain(|due| due.left > 0 || (due.waiting > 0 && due.running < MAX_RUNNING));
    due.sort_by_key(|due| (due.running, due.since));
    for due in due {
        let organization = OrganizationId::from_store(due.organization);
        let (mine, of) = (mine.to_vec(), organization.clone());
        let claimed = unit(kernel, &organization, move |ctx| claim_one(ctx, &of, &mine)).await?;
        if let Some(claimed) = claimed.flatten() {
            return Ok(Some(claimed));
        }
    }
    Ok(None)
}

fn claim_one(
    ctx: &mut OperationContext<'_>,
    organization: &OrganizationId,
    mine: &[BacktestId],
) -> Result<Option<ClaimedRun>> {
    let may_start = store::count(ctx, Status::Running)? < MAX_RUNNING;
    let Some(id) = store::next(ctx, mine, may_start)? else {
        return Ok(None);
    };
    let mut run = store::get(ctx, &id)?;
    let revision = run.revision;
    let claim = run.claim(ctx.now());
    if claim == Claim::Refused {
        return Ok(None);
    }
    store::save(ctx, &run, revision)?;
    match claim {
        Claim::Started => say(ctx, &fences::STARTED, &run),
        Claim::Resumed => {
            ctx.action("policy.backtest.resumed");
            ctx.target(&fences::RUN, id.as_str());
        }
        Claim::GaveUp | Claim::Refused => say(ctx, &fences::FAILED, &run),
    }
    Ok((claim != Claim::GaveUp).then(|| ClaimedRun {
        organization: organization.clone(),
        id,
        epoch: run.epoch,
        worked_ms: run.worked_ms,
    }))
}

/// Leaves the audit entry and the event of a transition that nobody asked for.
fn say(ctx: &mut OperationContext<'_>, event: &'static EventOf<fences::RunStanding>, run: &Run) {
    ctx.action(event.word());
    ctx.target(&fences::RUN, run.id.as_str());
    let code = match &run.state {
        State::Failed(failure) => Some(failure.code.clone()),
        _ => None,
    };
    let data = fences::RunStanding {
        run_id: run.id.clone(),
        status: run.status(),
        code,
    };
    ctx.emit(event, &data);
}

/// Works on a run until it ends, is lost, or the server stops.
async fn tend(
    kernel: &Arc<Kernel>,
    engine: &Engine,
    claimed: ClaimedRun,
    stop: &CancellationToken,
    notify: &Notify,
) -> Result<()> {
    let control = Arc::new(Control::default());
    let (done, mut end) = oneshot::channel();
    let began = kernel.clock.monotonic();
    let max_duration = match prepare(kernel, &claimed, &control, done).await {
        Ok(task) => {
            let max_duration = Duration::from_secs(task.question.max_duration_secs.unsigned_abs());
            engine.submit(task)?;
            max_duration
        }
        Err(error) => return fail(kernel, &claimed, &error).await,
    };
    let worked = || {
        let now = kernel.clock.monotonic().saturating_sub(began);
        Duration::from_millis(claimed.worked_ms.unsigned_abs()) + now
    };
    let mut ticks = tokio::time::interval(WATCH);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut count = 0_u32;
    let ended = loop {
        let is_tick = tokio::select! {
            biased;
            ended = &mut end => break ended,
            () = stop.cancelled(), if !control.is_stopped() => {
                control.stop();
                continue;
            }
            _ = ticks.tick() => true,
            () = notify.notified() => false,
        };
        match is_held(kernel, &claimed).await {
            Ok(true) => {}
            Ok(false) => {
                control.stop();
                let _ = end.await;
                return Ok(());
            }
            // Whoever cannot ask goes on: what it writes is judged then.
            Err(error) => tracing::debug!(cause = ?error.private(), "a backtest could not be asked about"),
        }
        if worked() >= max_duration {
            control.expire();
        }
        count += u32::from(is_tick);
        if is_tick && count % SAVE_EVERY == SAVE_FIRST && !control.is_stopped() {
            let saved = save(kernel, &claimed, &control, worked(), false).await;
            if let Err(error) = saved {
                tracing::warn!(run = %claimed.id, cause = ?error.private(), "the progress of a backtest was not written: {error}");
            }
        }
    };
    let ended = ended.unwrap_or_else(|_| Err(Error::internal("the engine's thread ended")));
    match ended {
        Err(error) => fail(kernel, &claimed, &error).await,
        // Nobody but a stopping server stops a run that is still its own; another may go on at once.
        Ok(end) if end.finished == RunEnd::Canceled => save(kernel, &claimed, &control, worked(), true).await,
        Ok(end) if end.lacks_engine => {
            let failure = Failure {
                code: "engine_unavailable".to_owned(),
                message: "no process for modules could be started for a minute; the server's log says why"
                    .to_owned(),
            };
            end_failed(kernel, &claimed, failure).await
        }
        Ok(end) => conclude(kernel, &claimed, end, worked()).await,
    }
}

/// Reads what the engine needs.
async fn prepare(
    kernel: &Arc<Kernel>,
    claimed: &ClaimedRun,
    control: &Arc<Control>,
    done: oneshot::Sender<Result<End>>,
) -> Result<Task> {
    let (org, id) = (claimed.organization.clone(), claimed.id.clone());
    let read = kernel.read_system(move |tx| {
        let org = org.as_str();
        let work = store::work(tx, org, &id)?;
        let question = Question::from_store(&work.question)?;
        let sets = question.sets(tx, org, &work.changes)?;
        let (from, to) = (question.window.from.as_ms(), question.window.to.as_ms());
        // Conditions on earlier events ask about some that lie before the window.
        let looks_back = sets.iter().any(|set| set.has_history());
        let from = if looks_back {
            from.saturating_sub(WITHIN_LIMIT_MS)
        } else {
            from
        };
        let sources = history::sources(tx, org, from, to)?;
        let pinned = work
            .pinned
            .map(|(sources, checkpoint)| PinnedSources::from_store(&sources, checkpoint));
        Ok((question, sets, sources, pinned.transpose()?))
    });
    let (question, sets, sources, pinned) = read.await?;
    Ok(Task {
        organization: claimed.organization.as_str().to_owned(),
        question,
        sets,
        sources,
        pinned,
        control: control.clone(),
        done,
    })
}

async fn is_held(kernel: &Kernel, claimed: &ClaimedRun) -> Result<bool> {
    let (org, id, epoch) = (claimed.organization.clone(), claimed.id.clone(), claimed.epoch);
    kernel
        .read_system(move |tx| store::is_held(tx, org.as_str(), &id, epoch))
        .await
}

fn in_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Changes a run in a unit of its own, unless this worker counts no more.
async fn change(
    kernel: &Kernel,
    claimed: &ClaimedRun,
    change: impl Fn(&mut OperationContext<'_>, &mut Run, i64) -> Result<bool> + Send + 'static,
) -> Result<()> {
    let (id, epoch) = (claimed.id.clone(), claimed.epoch);
    let run = move |ctx: &mut OperationContext<'_>| {
        let mut run = store::get(ctx, &id)?;
        let revision = run.revision;
        if change(ctx, &mut run, epoch)? {
            store::save(ctx, &run, revision)?;
        }
        Ok(())
    };
    unit(kernel, &claimed.organization, run).await.map(drop)
}

/// Writes down how far the work is, and keeps the lease or gives it back.
async fn save(
    kernel: &Kernel,
    claimed: &ClaimedRun,
    control: &Control,
    worked: Duration,
    gives_back: bool,
) -> Result<()> {
    let mut progress = control.progress();
    let written = control.take().map(|snapshot| {
        progress.evaluated = snapshot.evaluated;
        StoredSnapshot::of(snapshot)
    });
    let written = written.transpose()?;
    change(kernel, claimed, move |ctx, run, epoch| {
        let counts = run.advance(epoch, progress, in_ms(worked), ctx.now());
        if let Some(written) = written.as_ref().filter(|_| counts) {
            store::save_results(ctx, &run.id, &written.results, &written.samples)?;
            store::save_checkpoint(ctx, &run.id, &written.sources, &written.checkpoint)?;
        }
        Ok(counts)
    })
    .await?;
    if gives_back {
        change(kernel, claimed, |ctx, run, epoch| {
            Ok(run.release(epoch, ctx.now()))
        })
        .await?;
    }
    Ok(())
}

/// A snapshot as it is stored.
struct StoredSnapshot {
    results: String,
    samples: String,
    sources: String,
    checkpoint: Vec<u8>,
}

impl StoredSnapshot {
    fn of(snapshot: Snapshot) -> Result<Self> {
        let (results, samples) = snapshot.results.into_store()?;
        let PinnedSources { sources, checkpoint } = snapshot.pinned;
        Ok(Self {
            results,
            samples,
            sources: to_store(&sources)?,
            checkpoint,
        })
    }
}

/// Ends a run with what came of it: it has succeeded, or failed because too much could not be read.
async fn conclude(kernel: &Kernel, claimed: &ClaimedRun, end: End, worked: Duration) -> Result<()> {
    if end.verdict.errors > 0 {
        tracing::error!(
            run = %claimed.id,
            events = end.verdict.errors,
            names = ?end.results.unreadable.iter().map(|lost| lost.name.as_str()).collect::<Vec<_>>(),
            "a backtest could not read all of the history; `provost store check` says what is wrong"
        );
    }
    let (results, samples) = end.results.into_store()?;
    change(kernel, claimed, move |ctx, run, epoch| {
        let counts = run.conclude(epoch, end.verdict.clone(), in_ms(worked), ctx.now());
        if counts {
            store::save_results(ctx, &run.id, &results, &samples)?;
            let is_success = run.status() == Status::Succeeded;
            say(
                ctx,
                if is_success {
                    &fences::SUCCEEDED
                } else {
                    &fences::FAILED
                },
                run,
            );
        }
        Ok(counts)
    })
    .await
}

/// Ends a run that cannot be finished. What may go better soon is left to the lease instead: the run is taken up again.
async fn fail(kernel: &Kernel, claimed: &ClaimedRun, error: &Error) -> Result<()> {
    let id = &claimed.id;
    if matches!(
        error.work_class(),
        Class::Unavailable | Class::Lost | Class::Retry
    ) {
        tracing::warn!(run = %id, cause = ?error.private(), "a backtest waits to be taken up again: {error}");
        return Ok(());
    }
    tracing::error!(run = %id, cause = ?error.private(), "a backtest failed: {error}");
    let failure = match error.code() {
        Code::Internal => Failure {
            code: "internal".to_owned(),
            message: "the work could not be finished; the server's log says why".to_owned(),
        },
        code => Failure {
            code: code.as_str().to_owned(),
            message: error.message().to_owned(),
        },
    };
    end_failed(kernel, claimed, failure).await
}

/// Ends a run as failed, unless this worker counts no more.
async fn end_failed(kernel: &Kernel, claimed: &ClaimedRun, failure: Failure) -> Result<()> {
    change(kernel, claimed, move |ctx, run, epoch| {
        let counts = run.fail(epoch, failure.clone(), ctx.now());
        if counts {
            say(ctx, &fences::FAILED, run);
        }
        Ok(counts)
    })
    .await
}
