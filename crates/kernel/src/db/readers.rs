//! A fixed number of threads that read, each with its own connection; or one connection that reads inline.

use super::worker_pool::{JobRejection, Jobs, WorkerPool};
use super::{Access, Conn, Location, Watch};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// What a reader runs. It answers its caller by itself, for example through a one-shot channel.
pub type Job = Box<dyn FnOnce(&mut Conn) + Send>;

/// The threads that serve reads.
pub struct Readers {
    crew: WorkerPool<Job>,
    /// The connection of a simulation, which has no threads.
    inline: Option<Mutex<Conn>>,
}

impl Readers {
    /// Starts `threads` readers behind a queue of `queue` waiting jobs, all watched.
    ///
    /// Errors: those of [`Conn::open`], if one of the connections cannot be opened.
    pub fn start(location: Location, threads: usize, queue: usize, watch: &Arc<dyn Watch>) -> Result<Self> {
        let location = Arc::new(location);
        let (crew, jobs) = WorkerPool::new(queue);
        let readers = Self { crew, inline: None };
        let (opened, outcomes) = flume::bounded(threads);
        for index in 0..threads {
            let (location, jobs, opened) = (Arc::clone(&location), jobs.clone(), opened.clone());
            let watch = Arc::clone(watch);
            let work = move || serve(&location, watch, &jobs, opened);
            let spawned = readers.crew.spawn(format!("reader-{index}"), work);
            spawned.map_err(Error::internal)?;
        }
        // Only the threads hold these from here on, so that their end is seen.
        drop((jobs, opened));
        outcomes.iter().collect::<Result<Vec<()>>>()?;
        Ok(readers)
    }

    /// Opens a connection on which every job runs inside the call that submits it.
    ///
    /// Errors: those of [`Conn::open`].
    pub fn inline(location: &Location, watch: &Arc<dyn Watch>) -> Result<Self> {
        let conn = Conn::open(location, Access::Read)?.watched(Arc::clone(watch));
        Ok(Self {
            crew: WorkerPool::new(0).0,
            inline: Some(Mutex::new(conn)),
        })
    }

    /// Hands a job to the next idle reader.
    ///
    /// Errors: `Unavailable` when the queue is full or the readers are stopped.
    pub fn submit(&self, job: Job) -> Result<()> {
        let submitted = match &self.inline {
            Some(_) if self.crew.is_stopped() => Err(JobRejection::Stopped),
            Some(conn) => {
                run(&mut conn.lock().unwrap_or_else(PoisonError::into_inner), job);
                Ok(())
            }
            None => self.crew.submit(job),
        };
        submitted.map_err(|refused| match refused {
            JobRejection::Stopped => Error::unavailable("the server is stopping"),
            JobRejection::Full => Error::unavailable("too many requests are waiting; try again"),
        })
    }

    /// Serves what is waiting, then ends the threads and waits for them.
    pub fn stop(&self) {
        self.crew.stop();
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A lost connection is opened again by the next job's own read, which also answers when that fails.
fn serve(location: &Location, watch: Arc<dyn Watch>, jobs: &Jobs<Job>, opened: flume::Sender<Result<()>>) {
    let mut conn = match Conn::open(location, Access::Read) {
        Ok(conn) => conn.watched(watch),
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    let _ = opened.send(Ok(()));
    drop(opened);
    while let Some(job) = jobs.next() {
        run(&mut conn, job);
    }
}

/// The connection is whole after a panic because `rollback` leaves it so.
fn run(conn: &mut Conn, job: Job) {
    if catch_unwind(AssertUnwindSafe(|| job(conn))).is_err() {
        conn.rollback();
    }
}
