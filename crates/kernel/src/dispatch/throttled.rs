//! Writes of a managing program wait for their rate bucket, instead of being refused: Terraform writes as fast as it is answered, and
//! takes a 429 that comes back for a failure of the whole apply (client contract §1.5).
//!
//! A request that waits takes no thread, no place among those that are worked on, and no place among the writes in flight.
//! Nobody else waits: whoever sends no labels is told at once when to come back.

use super::{Outcome, Rate};
use crate::auth::{Actor, Origin};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::rate::Bucket;
use crate::work::InFlight;
use std::time::Duration;

/// LIMIT: writes of one principal that wait.
const PLACES: usize = 16;
/// LIMIT: writes that wait; each keeps its body.
const ALL_PLACES: usize = 512;
/// How often a write that waits looks.
const STEP: Duration = Duration::from_millis(50);
/// How often it does so at most: for five seconds.
const STEPS: u32 = 100;
/// That client waits as long as it is told, if that is not longer. Units: seconds.
const MOST_RETRY_AFTER: u32 = 2;

/// A write that its bucket refused, and whose caller may wait.
pub(super) struct Throttled {
    actor: Actor,
    buckets: (&'static Bucket, &'static Bucket),
    outcome: Outcome,
}

impl Throttled {
    /// Returns a write that these buckets refused.
    pub fn new(actor: Actor, buckets: (&'static Bucket, &'static Bucket), error: Error, rate: Rate) -> Self {
        let retry_after = error.retry_after_secs().unwrap_or(1).min(MOST_RETRY_AFTER);
        Self {
            actor,
            buckets,
            outcome: Outcome::refused(error.retry_after(retry_after), rate),
        }
    }
}

/// How long one request has waited; it has its place as long as this lives.
pub(super) struct WaitingWrite {
    _place: InFlight,
    steps_left: u32,
}

/// Waits until the buckets of a write have a token for it. Somebody else may take that, so a request waits more than once, and
/// `waiting` keeps how long.
///
/// Errors: the outcome that answers the request when too many wait or it has waited too long.
pub(super) async fn wait(
    kernel: &Kernel,
    origin: &Origin,
    throttled: Throttled,
    waiting: &mut Option<WaitingWrite>,
) -> Result<(), Outcome> {
    let Throttled {
        actor,
        buckets: (own, organization),
        outcome,
    } = throttled;
    if waiting.is_none() {
        let place = kernel.waits.take_of(&actor, PLACES, ALL_PLACES).ok();
        *waiting = place.map(|place| WaitingWrite {
            _place: place,
            steps_left: STEPS,
        });
    }
    let Some(waiting) = waiting else {
        return Err(outcome);
    };
    let key = [actor.organization.as_str(), &actor.id];
    let is_free =
        || kernel.limiter.peek(own, &key).allowed && kernel.limiter.peek(organization, &key[..1]).allowed;
    origin.arrival.step_aside();
    let mut is_over = true;
    while is_over && waiting.steps_left > 0 {
        waiting.steps_left -= 1;
        tokio::time::sleep(STEP).await;
        is_over = !is_free();
    }
    if let Err(error) = origin.arrival.step_in() {
        return Err(Outcome::refused(error, None));
    }
    if is_over { Err(outcome) } else { Ok(()) }
}
