//! What the two ends of one connection, its guard and its service, tell each other.

use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The refusal that a request stands for; the edge answers it instead of asking the router.
#[derive(Clone)]
pub(super) struct Refusal(Arc<Mutex<Option<Error>>>);

impl Refusal {
    fn new(error: Error) -> Self {
        Self(Arc::new(Mutex::new(Some(error))))
    }

    pub(super) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Shared by the guard, the service and the task of one connection.
pub(super) struct Link {
    started: Instant,
    /// Heads that the guard let through; HTTP/1 only.
    delivered: AtomicU64,
    /// Requests that the HTTP library made of them.
    called: AtomicU64,
    refusal: Mutex<Option<Refusal>>,
    is_last: AtomicBool,
    in_flight: AtomicUsize,
    idle_since_ms: AtomicU64,
}

impl Link {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            delivered: AtomicU64::new(0),
            called: AtomicU64::new(0),
            refusal: Mutex::new(None),
            is_last: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            idle_since_ms: AtomicU64::new(0),
        })
    }

    /// Says that one more head goes to the HTTP library, and whether the connection ends after it.
    pub(super) fn deliver(&self, is_last: bool) {
        self.is_last.fetch_or(is_last, Ordering::AcqRel);
        self.delivered.fetch_add(1, Ordering::AcqRel);
    }

    /// Says that the head delivered next stands for a refusal and is the last one.
    pub(super) fn refuse(&self, error: Error) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(Refusal::new(error));
        self.deliver(true);
    }

    /// Counts an HTTP/1 request and returns its refusal if it stands for one.
    ///
    /// INVARIANT: the HTTP library makes at most one request of each head that the guard let through. More
    /// would mean that it takes bytes of a body for a head; those are refused.
    pub(super) fn take_call(&self) -> Option<Refusal> {
        let called = self.called.fetch_add(1, Ordering::AcqRel) + 1;
        let delivered = self.delivered.load(Ordering::Acquire);
        if called > delivered {
            let error = Error::new(crate::Code::InvalidRequest, "the request is not valid HTTP");
            self.is_last.store(true, Ordering::Release);
            return Some(Refusal::new(error));
        }
        if called < delivered {
            return None;
        }
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether the response to the current HTTP/1 request must close the connection.
    pub(super) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Acquire)
    }

    /// Counts a request until the returned value is dropped, which is when its response was taken over.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    /// Returns when the connection will have been idle for `keep_alive`; a busy one starts anew now.
    pub(super) fn idle_until(&self, keep_alive: Duration) -> Instant {
        if self.in_flight.load(Ordering::Acquire) > 0 {
            return Instant::now() + keep_alive;
        }
        let since = Duration::from_millis(self.idle_since_ms.load(Ordering::Acquire));
        self.started + since + keep_alive
    }
}

/// One request in flight on a connection.
pub(super) struct InFlight(Arc<Link>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let ms = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.idle_since_ms.store(ms, Ordering::Release);
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
