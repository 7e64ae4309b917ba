//! One request as the edge sees it, for those who find out who sent it.
//!
//! What is done for somebody unknown is bounded for each network (`expose/edge/share.rs`). Whoever recognizes the caller says so
//! here, and the request counts as nobody unknown any more.

use crate::Result;
use std::sync::Arc;

/// What a request came through.
pub trait NetworkGate: Send + Sync {
    /// Says whether the token of the request was valid a moment ago: a reason to give it a place, and none to let it do anything.
    fn knows(&self) -> bool;

    /// Hears that the caller was recognized.
    fn recognized(&self);

    /// Hears that the token is not valid.
    fn refused(&self);

    /// Gives the place among the requests that are worked on back, until [`Self::step_in`].
    fn step_aside(&self);

    /// Takes a place again.
    ///
    /// Errors: `Unavailable` when there is none.
    fn step_in(&self) -> Result<()>;
}

/// The door of a request; that of the program's own work is none.
#[derive(Clone, Default)]
pub struct Arrival(Option<Arc<dyn NetworkGate>>);

impl Arrival {
    /// Returns the arrival through a door.
    pub fn through(door: Arc<dyn NetworkGate>) -> Self {
        Self(Some(door))
    }

    /// Says whether the token of the request was valid a moment ago. It may have been revoked since.
    pub fn is_known(&self) -> bool {
        self.0.as_ref().is_some_and(|door| door.knows())
    }

    /// Says that the caller was recognized.
    pub fn recognized(&self) {
        if let Some(door) = &self.0 {
            door.recognized();
        }
    }

    /// Says that the token is not valid.
    pub fn refused(&self) {
        if let Some(door) = &self.0 {
            door.refused();
        }
    }

    /// Says that the request waits, and takes no place among those that are worked on.
    pub fn step_aside(&self) {
        if let Some(door) = &self.0 {
            door.step_aside();
        }
    }

    /// Says that the request goes on.
    ///
    /// Errors: `Unavailable` when there is no place for it.
    pub fn step_in(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |door| door.step_in())
    }
}

impl std::fmt::Debug for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Arrival(…)")
    }
}
