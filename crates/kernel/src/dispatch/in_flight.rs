//! How many writes of one principal wait or run (D1.11).

use crate::auth::Actor;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use std::sync::{Arc, PoisonError};

/// Counts the writes of one principal that wait or run.
pub(crate) struct InFlight {
    kernel: std::sync::Weak<Kernel>,
    principal: String,
}

impl InFlight {
    pub(super) fn take(kernel: &Arc<Kernel>, actor: &Actor) -> Result<Self> {
        let principal = format!("{}/{}", actor.organization, actor.id);
        let mut in_flight = kernel.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let count = in_flight.entry(principal.clone()).or_default();
        if *count >= kernel.settings.max_in_flight {
            return Err(Error::unavailable(
                "too many changes of this principal are in flight; try again",
            ));
        }
        *count += 1;
        Ok(Self {
            kernel: Arc::downgrade(kernel),
            principal,
        })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(kernel) = self.kernel.upgrade() else {
            return;
        };
        let mut in_flight = kernel.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_flight.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.principal);
            }
        }
    }
}
