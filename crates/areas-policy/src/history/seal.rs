//! Seals chunks into segments: the reconciler that turns rows into files.
//!
//! ```text
//! unit: claim (a segment row, writing) ─ read the oldest chunks ─ write the file, durable ─ unit: sealed + covered
//!   crash:  overdue after a while,             the same,               the same: the row     then both or none
//!           the row is given up                                        names the file
//! ```
//!
//! The claim is the fence (HS-3): at most one row of an organization is `writing`, and only the one whose row still is
//! may finish. A row that was given up keeps its name until its file is removed, an hour later (HS-4).
//!
//! Keeps HS-3, HS-4, HS-12.

use super::model::SegmentId;
use super::store::{self, SealBacklog, UnsealedChunk};
use super::{SegmentPlace, place_standing, segment_files};
use provost_backtest::record;
use provost_history::{Sealer, SegmentSummary, Storage, chunk};
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Code, Error};
use provost_kernel::id::TypedId;
use provost_kernel::threads::Threads;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// So many events are sealed at once.
const MANY_EVENTS: i64 = 262_144;
/// So many chunks are sealed even if they are small: readers open each of them.
const MANY_CHUNKS: i64 = 2_000;
/// Fewer events are sealed once they have waited so long.
const SOME_EVENTS: i64 = 4_096;
const SOME_TIME_SECS: i64 = 600;
/// How long a writer has for a segment.
const LEASE_SECS: i64 = 600;
/// How many chunks one segment takes at most.
const CHUNKS_AT_ONCE: i64 = 4_000;
/// How many segments of one organization a round makes.
const SEGMENTS_A_ROUND: usize = 4;

impl SealBacklog {
    /// Says whether it is worth a segment.
    fn is_due(&self, now: Timestamp) -> bool {
        let is_old = self.oldest.plus_secs(SOME_TIME_SECS) <= now;
        self.events >= MANY_EVENTS || self.chunks >= MANY_CHUNKS || (is_old && self.events >= SOME_EVENTS)
    }
}

/// Seals what is due, of every organization. Without a place of the store's own for segments nothing is (HS-13).
pub async fn seal(kernel: &Arc<Kernel>) -> Result<()> {
    if kernel.extra::<SegmentPlace>().is_none() {
        return Ok(());
    }
    for _ in 0..SEGMENTS_A_ROUND {
        let waiting = kernel.read_system(store::waiting).await?;
        let events: i64 = waiting.iter().map(|waiting| waiting.events).sum();
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("provost_history_unsealed_events").set(events as f64);
        let now = kernel.clock.now();
        let due: Vec<SealBacklog> = waiting
            .into_iter()
            .filter(|waiting| waiting.is_due(now))
            .collect();
        if due.is_empty() {
            break;
        }
        let Some(place) = place_standing::ours(kernel).await? else {
            break;
        };
        let storage: Arc<dyn Storage> = place.0;
        let mut made = false;
        for waiting in due {
            let sealed = seal_one(kernel, &storage, &waiting.organization).await;
            made |= sealed.unwrap_or_else(|error| {
                tracing::warn!(
                    organization = waiting.organization.as_str(),
                    cause = ?error.private(),
                    "a segment could not be sealed: {error}"
                );
                false
            });
        }
        if !made {
            break;
        }
    }
    Ok(())
}

/// Seals the oldest chunks of an organization into one segment; says whether it did.
async fn seal_one(
    kernel: &Arc<Kernel>,
    storage: &Arc<dyn Storage>,
    organization: &OrganizationId,
) -> Result<bool> {
    let started = kernel.clock.monotonic();
    let id = SegmentId::mint(kernel.clock.now(), &mut kernel.rng());
    // Names of organizations may hold dots, and a file's name may not begin with one.
    let name = format!("segment-{}-{}.parquet", organization.as_str(), id.as_str());
    if !claim(kernel, organization, &id, &name).await? {
        return Ok(false);
    }
    let written = write(kernel, storage, organization, name).await;
    let (sealed, chunks) = match written {
        Ok(Some(written)) => written,
        Ok(None) => {
            abandon(kernel, organization, &id).await?;
            return Ok(false);
        }
        Err(error) => {
            abandon(kernel, organization, &id).await?;
            return Err(error);
        }
    };
    let (segment, events, bytes) = (id.clone(), sealed.rows, sealed.size_bytes);
    let finish = move |ctx: &mut OperationContext<'_>| {
        if store::sealed(ctx, &segment, &sealed, &chunks)? {
            return Ok(());
        }
        let message = "the claim on the segment was lost, or its chunks count no more";
        Err(Error::new(Code::Conflict, message))
    };
    if let Err(error) = kernel.system(organization.clone(), None, finish).await {
        if error.code() == Code::Conflict {
            abandon(kernel, organization, &id).await?;
        }
        // Otherwise nobody knows whether it was committed: the row says so to the next round.
        return Err(error);
    }
    let took = kernel.clock.monotonic().saturating_sub(started);
    metrics::histogram!("provost_history_seal_seconds").record(took.as_secs_f64());
    tracing::debug!(
        organization = organization.as_str(),
        events,
        bytes,
        "a segment was sealed"
    );
    Ok(true)
}

async fn claim(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    id: &SegmentId,
    name: &str,
) -> Result<bool> {
    let claimed = Arc::new(AtomicBool::new(false));
    let (sink, id, name) = (claimed.clone(), id.clone(), name.to_owned());
    let run = move |ctx: &mut OperationContext<'_>| {
        let overdue = ctx.now().plus_secs(-LEASE_SECS);
        store::abandon_overdue(ctx, overdue)?;
        sink.store(store::claim(ctx, &id, &name)?, Ordering::SeqCst);
        Ok(())
    };
    kernel.system(organization.clone(), None, run).await?;
    Ok(claimed.load(Ordering::SeqCst))
}

async fn abandon(kernel: &Arc<Kernel>, organization: &OrganizationId, id: &SegmentId) -> Result<()> {
    let id = id.clone();
    kernel
        .system(organization.clone(), None, move |ctx| store::abandon(ctx, &id))
        .await
}

/// Writes the file on a thread of its own, at low priority: requests come first.
async fn write(
    kernel: &Arc<Kernel>,
    storage: &Arc<dyn Storage>,
    organization: &OrganizationId,
    name: String,
) -> Result<Option<(SegmentSummary, Vec<UnsealedChunk>)>> {
    let (kernel, storage, organization) = (kernel.clone(), storage.clone(), organization.clone());
    if let Threads::Inline(_) = kernel.settings.threads {
        return collect(&kernel, &storage, &organization, &name);
    }
    let (reply, answer) = oneshot::channel();
    let work = move || {
        // The priority is the thread's own; where it cannot be lowered, sealing is merely less polite.
        let _ = rustix::process::setpriority_process(None, POLITE);
        let _ = reply.send(collect(&kernel, &storage, &organization, &name));
    };
    std::thread::Builder::new()
        .name("history-sealer".into())
        .spawn(work)
        .map_err(Error::internal)?;
    answer
        .await
        .map_err(|_| Error::internal("the sealer's thread panicked"))?
}

const POLITE: i32 = 10;

fn collect(
    kernel: &Arc<Kernel>,
    storage: &Arc<dyn Storage>,
    organization: &OrganizationId,
    name: &str,
) -> Result<Option<(SegmentSummary, Vec<UnsealedChunk>)>> {
    let org = organization.clone();
    let waiting = kernel.read_blocking(move |tx| store::unsealed(tx, org.as_str(), CHUNKS_AT_ONCE))?;
    let schema = record::schema();
    let mut sealer = Sealer::new(schema.clone());
    let mut taken: Vec<UnsealedChunk> = Vec::new();
    for unsealed in waiting {
        let (org, id) = (organization.clone(), unsealed.id.clone());
        let content = kernel.read_blocking(move |tx| store::content(tx, org.as_str(), &id))?;
        let batch = match content.map(|content| chunk::decode(&schema, &content)) {
            Some(Ok(batch)) => batch,
            // Removed beside, for its age: what was taken before it makes a segment of its own.
            None if taken.is_empty() => continue,
            None => break,
            Some(Err(error)) => {
                tracing::error!(
                    organization = organization.as_str(),
                    name = unsealed.id,
                    "a chunk cannot be sealed: {error}"
                );
                metrics::counter!("provost_history_unreadable_total").increment(1);
                // A segment stands for a run of chunks, so it ends before this one or begins behind it (HS-7).
                if taken.is_empty() {
                    continue;
                }
                break;
            }
        };
        if !sealer.fits(&batch) {
            break;
        }
        sealer.add(&batch).map_err(Error::internal)?;
        taken.push(unsealed);
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let segment = sealer.seal(storage.as_ref(), name).map_err(Error::internal)?;
    // A storage that says yes and keeps nothing, or something else, must cost nothing (HS-12).
    match segment_files::fault(storage, name, segment.size_bytes, &segment.digest) {
        None => Ok(Some((segment, taken))),
        Some(fault) => {
            metrics::counter!("provost_history_not_kept_total").increment(1);
            let said =
                format!("the segment {name} {fault}, although its storage took it; nothing was sealed");
            Err(Error::internal(said))
        }
    }
}
