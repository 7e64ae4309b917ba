//! What threads share and meet at: locks, counters, channels, threads.
//!
//! The files that coordinate threads by hand (`work/queue.rs`, `ledger/notes.rs`, `rate/limiter.rs`, `db/crew.rs`) take
//! it from their parent as `super::sync`, so that a test can read the same files beside a `sync` of its own.

pub(crate) use flume as channel;
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use std::thread;
