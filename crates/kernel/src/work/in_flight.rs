//! How many writes of one principal wait or run (D1.11).

use crate::auth::Actor;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The writes that wait or run, by their principals.
#[derive(Default)]
pub(crate) struct Flights(Arc<Mutex<HashMap<String, usize>>>);

/// One write that waits or runs; it is counted as long as this lives.
pub(crate) struct InFlight {
    flights: Arc<Mutex<HashMap<String, usize>>>,
    principal: String,
}

impl Flights {
    /// Counts one more write of a principal.
    ///
    /// Errors: `Unavailable` when there are `max` of them.
    pub fn take(&self, actor: &Actor, max: usize) -> Result<InFlight> {
        self.take_of(actor, max, usize::MAX)
    }

    /// Counts one more write of a principal, and of all.
    ///
    /// Errors: `Unavailable` when there are `max` of the principal, or `most` of all.
    pub fn take_of(&self, actor: &Actor, max: usize, most: usize) -> Result<InFlight> {
        let principal = format!("{}/{}", actor.organization, actor.id);
        let mut in_flight = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if most < usize::MAX && in_flight.values().sum::<usize>() >= most {
            return Err(Error::unavailable("too many changes wait; try again"));
        }
        let count = in_flight.entry(principal.clone()).or_default();
        if *count >= max {
            return Err(Error::unavailable(
                "too many changes of this principal are in flight; try again",
            ));
        }
        *count += 1;
        Ok(InFlight {
            flights: self.0.clone(),
            principal,
        })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut in_flight = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_flight.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.principal);
            }
        }
    }
}
