//! A fixed number of threads that read, each with its own connection; or one connection that reads inline.

use super::{Access, Conn, Location};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What a reader runs. It answers its caller by itself, for example through a one-shot channel.
pub type Job = Box<dyn FnOnce(&mut Conn) + Send>;

enum Work {
    Job(Job),
    Stop,
}

/// The threads that serve reads.
pub struct Readers {
    queue: flume::Sender<Work>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The connection of a simulation, which has no threads.
    inline: Option<Mutex<Conn>>,
    stopped: AtomicBool,
}

impl Readers {
    /// Starts `threads` readers behind a queue of `queue` waiting jobs.
    ///
    /// Errors: those of [`Conn::open`], if one of the connections cannot be opened.
    pub fn start(location: Location, threads: usize, queue: usize) -> Result<Self> {
        let location = Arc::new(location);
        let (sender, receiver) = flume::bounded(queue);
        let readers = Self {
            queue: sender,
            threads: Mutex::default(),
            inline: None,
            stopped: AtomicBool::new(false),
        };
        let (opened, outcomes) = flume::bounded(threads);
        for index in 0..threads {
            let (location, receiver, opened) = (Arc::clone(&location), receiver.clone(), opened.clone());
            let thread = std::thread::Builder::new()
                .name(format!("reader-{index}"))
                .spawn(move || serve(&location, &receiver, opened))
                .map_err(Error::internal)?;
            readers.lock().push(thread);
        }
        // Only the threads hold these from here on, so that their end is seen.
        drop((receiver, opened));
        outcomes.iter().collect::<Result<Vec<()>>>()?;
        Ok(readers)
    }

    /// Opens a connection on which every job runs inside the call that submits it.
    ///
    /// Errors: those of [`Conn::open`].
    pub fn inline(location: &Location) -> Result<Self> {
        Ok(Self {
            queue: flume::bounded(0).0,
            threads: Mutex::default(),
            inline: Some(Mutex::new(Conn::open(location, Access::Read)?)),
            stopped: AtomicBool::new(false),
        })
    }

    /// Hands a job to the next idle reader.
    ///
    /// Errors: `Unavailable` when the queue is full or the readers are stopped.
    pub fn submit(&self, job: Job) -> Result<()> {
        if self.stopped.load(Ordering::Acquire) {
            return Err(Error::unavailable("the server is stopping"));
        }
        if let Some(conn) = &self.inline {
            run(&mut conn.lock().unwrap_or_else(PoisonError::into_inner), job);
            return Ok(());
        }
        self.queue
            .try_send(Work::Job(job))
            .map_err(|_| Error::unavailable("too many requests are waiting; try again"))
    }

    /// Serves what is waiting, then ends the threads and waits for them.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let threads = std::mem::take(&mut *self.lock());
        for _ in &threads {
            // Without receivers there is nobody to stop.
            let _ = self.queue.send(Work::Stop);
        }
        for thread in threads {
            // A reader that drops the last owner cannot wait for itself. A panic was caught and told before.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A lost connection is opened again by the next job's own read, which also answers when that fails.
fn serve(location: &Location, receiver: &flume::Receiver<Work>, opened: flume::Sender<Result<()>>) {
    let mut conn = match Conn::open(location, Access::Read) {
        Ok(conn) => conn,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    let _ = opened.send(Ok(()));
    drop(opened);
    while let Ok(Work::Job(job)) = receiver.recv() {
        run(&mut conn, job);
    }
}

/// The connection is whole after a panic because `rollback` leaves it so.
fn run(conn: &mut Conn, job: Job) {
    if catch_unwind(AssertUnwindSafe(|| job(conn))).is_err() {
        conn.rollback();
    }
}
