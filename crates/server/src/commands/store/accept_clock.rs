//! `provost store accept --clock` and `--removals`: what an operator says of time.

use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store_flags::{StoreLocation, block_on, brief};
use provost_areas_platform::removal;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{OperationContext, doubt};
use std::sync::{Arc, Mutex, PoisonError};

/// Says that the clock of this machine is right.
///
/// Errors: as starting on the store does; a clock that is not the database's, which is put right and not accepted.
pub(super) fn clock(place: StoreLocation) -> Outcome {
    act(place, "store.clock_accepted", |ctx| {
        let now = ctx.now();
        doubt::accept(&mut ctx.tx(), now)
    })?;
    show::out(
        "The clock of this machine is taken as right, and the audit log says so. Servers that run take it within a minute.\n",
    )
}

/// Lets every round go that waits because it would remove very much.
///
/// Errors: as starting on the store does.
pub(super) fn removals(place: StoreLocation) -> Outcome {
    let released = Arc::new(Mutex::new(Vec::new()));
    let sink = released.clone();
    act(place, "store.removals_released", move |ctx| {
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = removal::release(ctx)?;
        Ok(())
    })?;
    let released = std::mem::take(&mut *released.lock().unwrap_or_else(PoisonError::into_inner));
    if released.is_empty() {
        return show::out("Nothing waits to be removed.\n");
    }
    show::out(&format!(
        "Released, and removed by the next round of a server: {}.\n",
        released.join(", ")
    ))
}

fn act(
    place: StoreLocation,
    action: &'static str,
    run: impl Fn(&mut OperationContext<'_>) -> provost_kernel::Result<()> + Send + 'static,
) -> Result<(), Failure> {
    let kernel = place.start(brief())?;
    let done = block_on(async {
        let done = kernel
            .system(OrganizationId::installation(), Some(action), run)
            .await;
        kernel.stop().await;
        done
    })?;
    Ok(done?)
}
