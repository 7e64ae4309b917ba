//! How entries of a device are written: with the events that they tell of, in one unit of work.
//!
//! Keeps DJ-3.

use super::again::Again;
use super::entries::Place;
use super::report::{Batch, ReportAnswer, may_tell, must_have_begun, refusal};
use super::room::Used;
use super::{fences, store};
use crate::{history, modules};
use provost_areas_fleet::fleet::DeviceId;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, OperationContext, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries on their way into the store.
pub struct Taking {
    pub organization: OrganizationId,
    pub device: DeviceId,
    /// The place behind which they stand, and the one that they lead to.
    pub places: [Place; 2],
    /// What tells this taking from another one of the same entries.
    pub mark: String,
    pub accepted: usize,
    /// How much the device has told today, with these.
    pub used: Used,
    pub batch: Batch,
    pub again: Again,
}

impl Taking {
    /// Takes the entries.
    ///
    /// Errors: `Conflict` where others came in between; those of the store, and then nothing is taken.
    pub async fn keep(self, kernel: Arc<Kernel>) -> Result<ReportAnswer> {
        let Self {
            organization,
            device,
            places,
            mark,
            accepted,
            used,
            batch,
            again,
        } = self;
        let Batch {
            events,
            counts,
            mut sums,
            refused,
            foreign,
            ..
        } = batch;
        // Nobody waits for a thread of the organization where there is nothing to judge.
        if !again.is_empty() {
            let core = modules::core(&kernel, &organization).await?;
            let judging = kernel.blocking(move || {
                let _core = core;
                again.mismatches()
            });
            sums.mismatches += judging.await?;
        }
        let answer = ReportAnswer {
            accepted,
            expected: places[1].next,
            head: places[1].head.clone(),
            refused,
            foreign,
        };
        let action = (sums.mismatches > 0).then_some(fences::MISMATCH);
        let writing = Writing {
            device,
            places,
            mark,
            used,
            counts,
            sums,
        };
        let run = move |ctx: &mut OperationContext<'_>| writing.write(ctx);
        let recorder = history::recorder(&kernel);
        recorder.append_in(&organization, events, action, run).await?;
        metrics::counter!("provost_device_decisions_total").increment(sums.events.unsigned_abs());
        Ok(answer)
    }
}

struct Writing {
    device: DeviceId,
    places: [Place; 2],
    mark: String,
    used: Used,
    counts: BTreeMap<store::CountKey, i64>,
    sums: store::Sums,
}

impl Writing {
    fn write(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        // It may have been retired since a reader looked.
        may_tell(ctx, &self.device)?;
        let chain = store::chain(ctx, &self.device)?;
        must_have_begun(ctx, chain.as_ref())?;
        let [before, after] = &self.places;
        if !store::move_on(
            ctx,
            &self.device,
            [before, after],
            &self.mark,
            (&self.sums, self.used),
        )? {
            let chain = store::chain(ctx, &self.device)?;
            // The unit ran before, and its commit went unanswered (WK-3).
            if chain.as_ref().is_some_and(|chain| chain.taking == self.mark) {
                return Ok(());
            }
            let place = chain.map_or_else(Place::first, |chain| chain.place);
            return Err(refusal("fork", &place));
        }
        store::add(ctx, &self.device, &self.counts)?;
        if self.sums.mismatches > 0 {
            ctx.target(&fences::DECISIONS, self.device.as_str());
            ctx.change("/mismatches", Value::Null, self.sums.mismatches);
            let data = fences::Mismatch {
                device_id: self.device.clone(),
                events: self.sums.mismatches,
            };
            ctx.emit(&fences::MISMATCHED, &data);
        }
        Ok(())
    }
}
