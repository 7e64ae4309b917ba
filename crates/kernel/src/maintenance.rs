//! What the kernel does from time to time without a request: it writes what was counted, and keeps the time.

use crate::auth::OrganizationId;
use crate::context::OperationContext;
use crate::credential::{Scheme, Use};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::write_behind::summary_note;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// LIMIT: units of work by which one round removes what is due for its age. Ours: two hundred thousand rows of each table; the next
/// round goes on.
const PRUNING_UNITS: usize = 200;

impl Kernel {
    /// Removes what is due for its age, a part in each unit of work, until nothing is left or the round has had its units. Whoever else
    /// writes gets between them: [`OperationContext::prune`] says how much one removes.
    ///
    /// Errors: those of a unit of work; what the units before removed is gone.
    pub async fn prune(
        &self,
        organization: &OrganizationId,
        run: impl Fn(&mut OperationContext<'_>) -> Result<()> + Clone + Send + 'static,
    ) -> Result<()> {
        for _ in 0..PRUNING_UNITS {
            let (run, is_more) = (run.clone(), Arc::new(AtomicBool::new(false)));
            let more = is_more.clone();
            let part = move |ctx: &mut OperationContext<'_>| {
                run(ctx)?;
                // A unit may run again, and the last time counts.
                more.store(ctx.has_more_to_prune(), Ordering::SeqCst);
                Ok(())
            };
            self.system(organization.clone(), None, part).await?;
            if !is_more.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    /// Writes the access summary: one entry for every counted thing (D12.4). Runs every minute and at the end.
    pub fn flush_counts(&self) {
        // Counts wait while their entries would get a false date (CK-2).
        if self.disagreement().is_some() {
            return;
        }
        let now = self.clock.now();
        for (what, count) in self.write_behind.take_counts() {
            let mut note = summary_note(what.clone(), now);
            note.count = Some(count);
            let organization = note.organization.clone();
            match self.write_behind.notes.add(note) {
                Ok(_) => self.notify(&organization),
                // The audit log takes nothing now: the count goes on into the next minute.
                Err(error) => {
                    tracing::warn!("an access summary waits: {error}");
                    self.write_behind.put_back(what, count);
                }
            }
        }
        // Notes that could not be written when they were taken have nobody else who asks for them again.
        for organization in self.write_behind.notes.chains() {
            self.notify(&organization);
        }
    }

    /// Writes the last use of tokens in batches. Runs every few seconds and at the end.
    ///
    /// Errors: as writing does; what could not be written waits for the next time, and the other organizations' is written.
    pub async fn flush_uses(&self) -> Result<()> {
        let mut failed = Ok(());
        let mut by_organization: BTreeMap<OrganizationId, Vec<(Scheme, Use)>> = BTreeMap::new();
        for (scheme, used) in self.write_behind.take_uses() {
            by_organization
                .entry(used.organization.clone())
                .or_default()
                .push((scheme, used));
        }
        for (organization, uses) in by_organization {
            for chunk in uses.chunks(200) {
                let (waiting, chunk) = (chunk, chunk.to_vec());
                let written = self
                    .system(organization.clone(), None, move |ctx| {
                        chunk
                            .iter()
                            .try_for_each(|(scheme, used)| scheme.touch(ctx, used))
                    })
                    .await;
                if let Err(error) = written {
                    waiting
                        .iter()
                        .cloned()
                        .for_each(|(scheme, used)| self.write_behind.used(scheme, used));
                    failed = Err(error);
                }
            }
        }
        failed
    }

    /// Keeps the present in the store, or counts how long the clock has been doubted. A reconciler, once a minute.
    ///
    /// Errors: those of a unit of work, which there is none of beside a database that says another time.
    pub async fn keep_time(&self) -> Result<()> {
        let watch = self.clockwatch.clone();
        let now = self.read_system(move |tx| watch.look(tx, false)).await?;
        let Some(count) = self.clockwatch.count(now) else {
            return Ok(());
        };
        let (watch, is_over) = (self.clockwatch.clone(), Arc::new(AtomicBool::new(false)));
        let over = is_over.clone();
        let keep = move |ctx: &mut OperationContext<'_>| {
            over.store(watch.keep(&mut ctx.tx(), count)?, Ordering::SeqCst);
            Ok(())
        };
        self.system(OrganizationId::installation(), None, keep).await?;
        if is_over.load(Ordering::SeqCst) {
            self.clockwatch.believe(now);
        }
        let watch = self.clockwatch.clone();
        self.read_system(move |tx| watch.look(tx, false).map(drop)).await
    }
}
