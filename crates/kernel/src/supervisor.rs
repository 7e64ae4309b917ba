//! Who owns every task and every thread, and how they end.
//!
//! Nothing else spawns (clippy.toml). A task learns of the stop from the [`CancellationToken`]; one that has
//! not ended when the grace is over is dropped at its next await. A thread cannot be dropped: it is waited
//! for, and named in the log when it does not end.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The owner of all tasks and threads of the process. Clones own the same ones.
#[derive(Clone, Default)]
pub struct Supervisor(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tasks: TaskTracker,
    stop: CancellationToken,
    kill: CancellationToken,
    roster: Mutex<Roster>,
}

#[derive(Default)]
struct Roster {
    next: u64,
    running: BTreeMap<u64, &'static str>,
    threads: Vec<(&'static str, std::thread::JoinHandle<()>)>,
}

impl Supervisor {
    /// Returns a supervisor that owns nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the token that is cancelled when the process stops.
    pub fn token(&self) -> CancellationToken {
        self.0.stop.clone()
    }

    /// Runs a task until it ends or the grace of the stop is over. Needs a Tokio runtime.
    ///
    /// A panic, and an end that nobody asked for, are logged; neither touches the other tasks.
    pub fn spawn<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let entry = Entry::new(Arc::clone(&self.0), name);
        self.0.tasks.spawn(async move {
            let entry = entry;
            tokio::select! {
                biased;
                outcome = catch_panic(future) => entry.log_end(outcome),
                () = entry.inner.kill.cancelled() => {}
            }
        });
    }

    /// Runs a function on a thread of its own; it must return soon after the token is cancelled.
    ///
    /// Errors: those of the system when it has no thread left.
    pub fn spawn_thread<F>(&self, name: &'static str, run: F) -> std::io::Result<()>
    where
        F: FnOnce(CancellationToken) + Send + 'static,
    {
        let entry = Entry::new(Arc::clone(&self.0), name);
        let (stop, tracked) = (self.token(), self.0.tasks.token());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _tracked = tracked;
            let outcome = catch_unwind(AssertUnwindSafe(|| run(stop)));
            entry.log_end(outcome.map_err(|panic| panic_text(&*panic)));
        })?;
        self.0.roster().threads.push((name, thread));
        Ok(())
    }

    /// Stops everything and returns when it has ended: asks, waits for `grace`, then drops the tasks.
    ///
    /// Returns the names of what had to be dropped or left behind; none after a clean stop.
    pub async fn stop(&self, grace: Duration) -> Vec<&'static str> {
        self.0.stop.cancel();
        self.0.tasks.close();
        let mut overdue = Vec::new();
        if tokio::time::timeout(grace, self.0.tasks.wait()).await.is_err() {
            overdue = self.0.roster().running.values().copied().collect();
            tracing::warn!(?overdue, "tasks outlived the shutdown grace");
            self.0.kill.cancel();
        }
        let threads = std::mem::take(&mut self.0.roster().threads);
        for (name, thread) in threads {
            if !overdue.contains(&name) {
                // Its function has returned; what is left of the thread takes microseconds.
                let _ = thread.join();
            }
        }
        // What was just dropped gets a moment to run its destructors; what blocks its thread is left behind.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.0.tasks.wait()).await;
        overdue
    }
}

impl Inner {
    fn roster(&self) -> std::sync::MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line of one task or thread in the roster; dropping it takes the line out.
struct Entry {
    inner: Arc<Inner>,
    number: u64,
    name: &'static str,
}

impl Entry {
    fn new(inner: Arc<Inner>, name: &'static str) -> Self {
        let mut roster = inner.roster();
        let number = roster.next;
        roster.next += 1;
        roster.running.insert(number, name);
        drop(roster);
        Self { inner, number, name }
    }

    fn log_end(&self, outcome: Result<(), String>) {
        match outcome {
            Err(panic) => tracing::error!(task = self.name, panic, "a task panicked"),
            Ok(()) if self.inner.stop.is_cancelled() => tracing::debug!(task = self.name, "a task ended"),
            Ok(()) => tracing::info!(task = self.name, "a task ended by itself"),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.inner.roster().running.remove(&self.number);
    }
}

/// Returns what the future returns, or the text of its panic.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    std::future::poll_fn(
        |ctx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(ctx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic_text(&*panic))),
        },
    )
    .await
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    const GRACE: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_stop_waits_for_tasks_and_threads_that_heed_it() {
        let supervisor = Supervisor::new();
        let (task_ended, thread_ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (token, ended) = (supervisor.token(), Arc::clone(&task_ended));
        supervisor.spawn("task", async move {
            token.cancelled().await;
            ended.store(true, Ordering::SeqCst);
        });
        let ended = Arc::clone(&thread_ended);
        let run = move |stop: CancellationToken| {
            while !stop.is_cancelled() {
                std::thread::yield_now();
            }
            ended.store(true, Ordering::SeqCst);
        };
        supervisor.spawn_thread("thread", run).unwrap();
        assert!(supervisor.stop(GRACE).await.is_empty());
        assert!(task_ended.load(Ordering::SeqCst) && thread_ended.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn what_does_not_heed_the_stop_is_named_and_dropped() {
        struct OnDrop(Arc<AtomicBool>);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let supervisor = Supervisor::new();
        let dropped = Arc::new(AtomicBool::new(false));
        let guard = OnDrop(Arc::clone(&dropped));
        supervisor.spawn("deaf", async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        assert_eq!(supervisor.stop(Duration::from_millis(50)).await, ["deaf"]);
        assert!(dropped.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_task() {
        let supervisor = Supervisor::new();
        supervisor.spawn("broken", async { panic!("on purpose") });
        supervisor
            .spawn_thread("broken thread", |_| panic!("on purpose"))
            .unwrap();
        let token = supervisor.token();
        supervisor.spawn("sound", async move { token.cancelled().await });
        assert!(supervisor.stop(GRACE).await.is_empty());
    }

    #[tokio::test]
    async fn a_stuck_thread_is_left_behind() {
        let supervisor = Supervisor::new();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let stuck = move |_: CancellationToken| {
            let _ = wait.recv();
        };
        supervisor.spawn_thread("stuck", stuck).unwrap();
        assert_eq!(supervisor.stop(Duration::from_millis(50)).await, ["stuck"]);
        drop(release);
    }
}
