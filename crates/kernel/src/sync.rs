//! What threads share and meet at: locks, counters, channels, threads.
//!
//! The files that coordinate threads by hand (`work/queue.rs`, `write_behind/notes.rs`, `rate/limiter.rs`, `db/crew.rs`) take
//! it from their parent as `super::sync`. The tests in `schedules` read the same files a second time beside a `sync` that
//! holds shuttle's primitives, so that a test decides who goes next.
//!
//! Absent on purpose: a feature or a cfg that swaps it. Shuttle is a dependency of the tests alone, and no build of the
//! product can hold it.

pub(crate) use flume as channel;
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, atomic};
pub(crate) use std::thread;
