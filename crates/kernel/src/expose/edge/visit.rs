//! One request between its head and its answer: which place it takes, and when it leaves the share of its network.
//!
//! Keeps SH-1.

use super::callers::{Callers, HeaderHash};
use super::link::Link;
use super::share::{Member, Share};
use crate::arrival::NetworkGate;
use crate::{Error, Result};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Places for requests that are worked on at once.
pub(super) struct Room {
    taken: AtomicUsize,
    /// For whoever comes.
    for_all: usize,
    /// For callers that were recognized a moment ago, the others included.
    for_known: usize,
    share: Option<Arc<Share>>,
}

impl Room {
    /// Returns an empty room of `places`, of which `kept` are for known callers.
    pub(super) fn new(places: usize, kept: usize, share: Option<Arc<Share>>) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            // Of a room that has hardly any, not all are kept.
            for_all: places - kept.min(places / 2),
            for_known: places,
            share,
        }
    }

    /// Takes a place.
    ///
    /// Errors: `Unavailable` when there is none for this caller.
    fn admit(self: &Arc<Self>, is_known: bool) -> Result<Admission> {
        let most = if is_known { self.for_known } else { self.for_all };
        let admission = Admission(Arc::clone(self));
        let before = self.taken.fetch_add(1, Ordering::AcqRel);
        if before >= most {
            return Err(Error::unavailable("the server is busy; try again"));
        }
        Ok(admission)
    }
}

/// One of the requests that are worked on at once.
struct Admission(Arc<Room>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Where a request is.
enum Place {
    /// It is worked on.
    Within(Admission),
    /// It waits, and comes back to this room.
    Aside(Arc<Room>),
}

/// See the module's text.
pub(super) struct Visit {
    callers: Arc<Callers>,
    mark: Option<HeaderHash>,
    is_known: bool,
    link: Option<Arc<Link>>,
    member: Mutex<Option<Member>>,
    place: Mutex<Option<Place>>,
}

impl Visit {
    /// Begins a visit. That of a known caller takes its connection out of the share at once.
    pub(super) fn begin(
        callers: &Arc<Callers>,
        mark: Option<HeaderHash>,
        link: Option<Arc<Link>>,
    ) -> Arc<Self> {
        let is_known = mark.is_some_and(|mark| callers.knows(&mark));
        if is_known && let Some(link) = &link {
            link.leave_share();
        }
        Arc::new(Self {
            callers: Arc::clone(callers),
            mark,
            is_known,
            link,
            member: Mutex::default(),
            place: Mutex::default(),
        })
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Takes a place in a room, for as long as the visit lasts.
    ///
    /// Errors: `Unavailable` when there is none.
    pub(super) fn enter(&self, room: &Arc<Room>) -> Result<()> {
        let admission = room.admit(self.is_known)?;
        *self.place() = Some(Place::Within(admission));
        Ok(())
    }

    fn place(&self) -> MutexGuard<'_, Option<Place>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the request in the share of its network; returns what is cancelled when it has to go.
    pub(super) fn join(&self, room: &Room, ip: IpAddr) -> Option<CancellationToken> {
        let member = room.share.as_ref().filter(|_| !self.is_known)?.join(ip);
        let closed = member.closed();
        *self.member.lock().unwrap_or_else(PoisonError::into_inner) = Some(member);
        Some(closed)
    }

    fn leave(&self) {
        let member = self.member.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(member);
    }
}

impl NetworkGate for Visit {
    fn knows(&self) -> bool {
        self.is_known
    }

    fn recognized(&self) {
        if let Some(mark) = &self.mark {
            self.callers.note(mark);
        }
        self.leave();
        if let Some(link) = &self.link {
            link.leave_share();
        }
    }

    fn refused(&self) {
        if let Some(mark) = &self.mark {
            self.callers.forget(mark);
        }
    }

    fn step_aside(&self) {
        let mut place = self.place();
        if let Some(Place::Within(admission)) = &*place {
            *place = Some(Place::Aside(Arc::clone(&admission.0)));
        }
    }

    fn step_in(&self) -> Result<()> {
        let mut place = self.place();
        if let Some(Place::Aside(room)) = &*place {
            // Whoever waited was recognized.
            *place = Some(Place::Within(room.admit(true)?));
        }
        Ok(())
    }
}

/// Ends a visit: what was written about it may remember it for longer than it takes a place.
pub(super) struct Stay(pub(super) Arc<Visit>);

impl Drop for Stay {
    fn drop(&mut self) {
        self.0.leave();
        *self.0.place() = None;
    }
}
