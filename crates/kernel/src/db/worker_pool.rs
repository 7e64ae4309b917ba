//! Threads that take jobs from one bounded queue, until they are stopped. It knows no store; what is done with a job, the
//! threads say.
//!
//! The sender stands behind a lock that callers share. A stop takes it away, and with that the last sender: the threads
//! receive what was let in before, then hear that there will be no more, and end.
//!
//! INVARIANT RD-1: a read that was let in is run, also when a stop comes between; a stop ends when the readers have
//! ended. Proof: `cargo xtask endure schedules`.
//!
//! Absent on purpose: a message that says stop. A job could be let in behind it.

use super::sync::channel::{self, Receiver, Sender};
use super::sync::thread::{self, JoinHandle};
use super::sync::{Mutex, PoisonError, RwLock};

/// Why a job was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobRejection {
    /// Too many wait, or no thread is left.
    Full,
    /// The threads were stopped.
    Stopped,
}

/// The threads, for those who have jobs.
pub(super) struct WorkerPool<J> {
    /// Absent once the threads were stopped.
    queue: RwLock<Option<Sender<J>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The jobs, for one of the threads.
pub(super) struct Jobs<J>(Receiver<J>);

impl<J: Send + 'static> WorkerPool<J> {
    /// Returns a crew of no threads, before which at most `bound` jobs may wait, and the jobs for its threads.
    pub fn new(bound: usize) -> (Self, Jobs<J>) {
        let (queue, receiver) = channel::bounded(bound);
        let crew = Self {
            queue: RwLock::new(Some(queue)),
            threads: Mutex::default(),
        };
        (crew, Jobs(receiver))
    }

    /// Starts a thread.
    pub fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = thread::Builder::new().name(name).spawn(work)?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(thread);
        Ok(())
    }

    /// Lets a job in for the next idle thread.
    pub fn submit(&self, job: J) -> Result<(), JobRejection> {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let sent = queue.as_ref().map(|queue| queue.try_send(job));
        // A job that is sent back is dropped without the lock: it may be the last owner of these threads, and stop them.
        drop(queue);
        match sent {
            Some(sent) => sent.map_err(|_| JobRejection::Full),
            None => Err(JobRejection::Stopped),
        }
    }

    /// Says whether no more jobs are let in.
    pub fn is_stopped(&self) -> bool {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        queue.is_none()
    }

    /// Lets the threads run what waits, ends them and waits for them.
    pub fn stop(&self) {
        let queue = self.queue.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(queue);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that drops the last owner cannot wait for itself. A panic was caught and told before.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl<J> Jobs<J> {
    /// Blocks until there is a job; `None` says that there will be no more.
    pub fn next(&self) -> Option<J> {
        self.0.recv().ok()
    }
}

impl<J> Clone for Jobs<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
