//! The threads that read.

use super::explore;
use super::sync::thread;
use super::worker_pool::{JobRejection, WorkerPool};
use shuttle::sync::Mutex;
use std::sync::Arc;

/// Two readers, a thread that submits, and a stop. What was let in has run when the stop is over.
/// Proves RD-1.
#[test]
fn a_job_that_was_let_in_runs_and_a_stop_ends() {
    explore("readers", "readers", || {
        let (crew, jobs) = WorkerPool::new(2);
        let (crew, done) = (Arc::new(crew), Arc::new(Mutex::new(Vec::new())));
        for name in ["one", "two"] {
            let (jobs, done) = (jobs.clone(), done.clone());
            let work = move || {
                while let Some(job) = jobs.next() {
                    done.lock().unwrap().push(job);
                }
            };
            crew.spawn(name.to_owned(), work).unwrap();
        }
        drop(jobs);
        let caller = crew.clone();
        let submitted = thread::spawn(move || {
            let let_in = (1..=4).filter(|job| caller.submit(*job).is_ok());
            let_in.collect::<Vec<i32>>()
        });
        let here = crew.submit(5);
        crew.stop();
        assert_eq!(crew.submit(6), Err(JobRejection::Stopped));
        let mut let_in = submitted.join().unwrap();
        match here {
            Ok(()) => let_in.push(5),
            Err(refused) => assert_eq!(refused, JobRejection::Full, "nobody had stopped it"),
        }
        let mut done = done.lock().unwrap().clone();
        done.sort_unstable();
        assert_eq!(done, let_in);
    });
}
