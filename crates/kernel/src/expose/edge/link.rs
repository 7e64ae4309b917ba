//! What the two ends of one connection, its guard and its service, tell each other.
//!
//! INVARIANT HT-1: the HTTP library makes at most one request of each head that the guard let through.

use super::share::Member;
use crate::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

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

/// One HTTP/1 request, as far as its connection is concerned.
pub(super) struct Call {
    pub(super) refusal: Option<Refusal>,
    /// Whether its response must close the connection.
    pub(super) is_last: bool,
}

/// Shared by the guard, the service and the task of one connection.
pub(super) struct Link {
    started: Instant,
    /// Heads that the guard let through; HTTP/1 only.
    delivered: AtomicU64,
    /// Requests that the HTTP library made of them.
    called: AtomicU64,
    refusal: Mutex<Option<Refusal>>,
    /// The number of the request after which the connection closes.
    last: AtomicU64,
    is_head_coming: AtomicBool,
    in_flight: AtomicUsize,
    idle_since_ms: AtomicU64,
    /// The place in the share of its network, as long as nothing valid came over it.
    member: Mutex<Option<Member>>,
    is_stranger: AtomicBool,
}

impl Link {
    pub(super) fn new(member: Option<Member>) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            delivered: AtomicU64::new(0),
            called: AtomicU64::new(0),
            refusal: Mutex::new(None),
            last: AtomicU64::new(u64::MAX),
            is_head_coming: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            idle_since_ms: AtomicU64::new(0),
            is_stranger: AtomicBool::new(member.is_some()),
            member: Mutex::new(member),
        })
    }

    /// Returns what is cancelled when another connection of the network takes the place of this one.
    pub(super) fn closed(&self) -> Option<CancellationToken> {
        let member = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        member.as_ref().map(Member::closed)
    }

    /// Takes the connection out of the share of its network.
    pub(super) fn leave_share(&self) {
        self.is_stranger.store(false, Ordering::Release);
        let member = self.member.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(member);
    }

    /// Says whether nothing valid has come over the connection.
    pub(super) fn is_stranger(&self) -> bool {
        self.is_stranger.load(Ordering::Acquire)
    }

    /// Says whether a part of a head has come; until the rest has, the connection is not idle.
    pub(super) fn set_head_coming(&self, is_coming: bool) {
        self.is_head_coming.store(is_coming, Ordering::Release);
    }

    /// Says that one more head goes to the HTTP library, and whether the connection closes after it.
    pub(super) fn deliver(&self, is_last: bool) {
        let number = self.delivered.fetch_add(1, Ordering::AcqRel) + 1;
        if is_last {
            self.last.store(number, Ordering::Release);
        }
        self.set_head_coming(false);
    }

    /// Says that the head delivered next stands for a refusal and is the last one.
    pub(super) fn refuse(&self, error: Error) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(Refusal::new(error));
        self.deliver(true);
    }

    /// Counts an HTTP/1 request.
    ///
    /// INVARIANT HT-1: the HTTP library makes at most one request of each head that the guard let through. More
    /// would mean that it takes bytes of a body for a head; those are refused.
    pub(super) fn call(&self) -> Call {
        let number = self.called.fetch_add(1, Ordering::AcqRel) + 1;
        let delivered = self.delivered.load(Ordering::Acquire);
        let is_last = number >= self.last.load(Ordering::Acquire);
        let refusal = match number.cmp(&delivered) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take(),
            std::cmp::Ordering::Greater => {
                let error = Error::new(crate::Code::InvalidRequest, "the request is not valid HTTP");
                Some(Refusal::new(error))
            }
        };
        let is_last = is_last || refusal.is_some();
        Call { refusal, is_last }
    }

    /// Counts a request until the returned value is dropped, which is when its response was taken over.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    /// Returns when the connection will have been idle for `keep_alive`; a busy one starts anew now.
    pub(super) fn idle_until(&self, keep_alive: Duration) -> Instant {
        if self.in_flight.load(Ordering::Acquire) > 0 || self.is_head_coming.load(Ordering::Acquire) {
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
