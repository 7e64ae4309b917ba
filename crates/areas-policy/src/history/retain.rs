//! Removes what is needed no more: what is older than the retention, chunks that a segment stands for, files of
//! segments that were given up.
//!
//! INVARIANT HS-12: no segment counts, and no row that it stands for goes, before it was read back whole, with the
//! size and digest that the store knows.
//! Keeps CK-1, CK-4, HS-4.
//!
//! A file goes an hour after its row said so, and a chunk two hours after its segment was sealed: whoever began to
//! read before has long finished, or finds the same events in the other form.

use super::model::DAY_MS;
use super::{SegmentPlace, decided_calls, place_standing, segment_files, store};
use provost_areas_platform::removal;
use provost_areas_platform::settings;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::Error;
use provost_kernel::{Kernel, OperationContext, Result, SureTime, Timestamp};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a chunk outlives its sealing.
const CHUNK_SECS: i64 = 2 * 3_600;
/// How long a file outlives its row's word.
const FILE_SECS: i64 = 3_600;
/// How long a file that no row names stays: whoever has to go back to a newer copy of the store finds it there. Units: seconds.
const ORPHAN_SECS: u64 = 7 * 86_400;
/// LIMIT: files without a row that are removed at once.
const ORPHANS_AT_ONCE: usize = 1_000;
/// How many pieces of work a round does for one organization; the rest is the next round's.
const PIECES: usize = 100;

/// Removes what is needed no more, of every organization, unless the clock is doubted (CK-1); nothing while the place is not the
/// store's (HS-13).
pub async fn retain(kernel: &Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    if kernel.extra::<SegmentPlace>().is_some() && place_standing::ours(kernel).await?.is_none() {
        return Ok(());
    }
    for organization in kernel.read_system(store::organizations).await? {
        if let Err(error) = retain_one(kernel, &organization, now).await {
            tracing::warn!(
                organization = organization.as_str(),
                cause = ?error.private(),
                "old history could not be removed: {error}"
            );
        }
    }
    Ok(())
}

async fn retain_one(kernel: &Arc<Kernel>, organization: &OrganizationId, now: SureTime) -> Result<()> {
    let oldest = oldest(kernel, organization, now).await?;
    let expire = move |ctx: &mut OperationContext<'_>| {
        decided_calls::forget(ctx, now)?;
        store::expire(ctx, oldest)
    };
    kernel.prune(organization, expire).await?;
    remove_sealed_chunks(kernel, organization, now).await?;
    remove_chunks(kernel, organization, now, oldest).await?;
    remove_files(kernel, organization, now).await
}

/// Returns the instant before which events go now: that of the retention, or where that would take very much and nobody
/// released it, that of the last confirmed shortening (CK-4).
async fn oldest(kernel: &Arc<Kernel>, organization: &OrganizationId, now: SureTime) -> Result<SureTime> {
    let org = organization.clone();
    let (oldest, released, removal) = kernel
        .read_system(move |tx| {
            let settings = settings::of(tx, org.as_str())?;
            let days = settings.acting_history_days(now.instant());
            let oldest = now.earlier_by(days.saturating_mul(DAY_MS / 1_000));
            let released = settings.released_before(now.instant());
            let removal = store::old(tx, org.as_str(), oldest, released.unwrap_or(Timestamp::EPOCH))?;
            Ok((oldest, released, removal))
        })
        .await?;
    let name = format!("history.{}", organization.as_str());
    if removal::may_go(kernel, name, removal, now).await? {
        return Ok(oldest);
    }
    let released = released.unwrap_or(Timestamp::EPOCH);
    let ago_ms = now.instant().as_ms().saturating_sub(released.as_ms());
    Ok(now.earlier_by(ago_ms / 1_000 + 1))
}

/// Removes chunks that a segment stands for, once the segment was read back: they are the last other copy (HS-12).
async fn remove_sealed_chunks(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    now: SureTime,
) -> Result<()> {
    let Some(place) = kernel.extra::<SegmentPlace>() else {
        return Ok(());
    };
    let org = organization.clone();
    let sealed = now.earlier_by(CHUNK_SECS);
    let standing = kernel
        .read_system(move |tx| store::standing(tx, org.as_str(), sealed))
        .await?;
    for (segment, file) in standing {
        let place = place.clone();
        let fault = kernel
            .blocking(move || segment_files::verify(&place, &file))
            .await?;
        if let Some(fault) = fault {
            metrics::counter!("provost_history_not_kept_total").increment(1);
            tracing::error!(
                organization = organization.as_str(),
                "{fault}; its events are still in the database and stay there: see that the place of the history is the right \
                 one and keeps what it takes"
            );
            continue;
        }
        loop {
            let (org, of) = (organization.clone(), segment.clone());
            let gone = kernel
                .read_system(move |tx| store::chunks_of(tx, org.as_str(), &of))
                .await?;
            if gone.is_empty() {
                break;
            }
            delete_chunks(kernel, organization, gone).await?;
        }
    }
    Ok(())
}

async fn delete_chunks(kernel: &Arc<Kernel>, organization: &OrganizationId, gone: Vec<i64>) -> Result<()> {
    let delete = move |ctx: &mut OperationContext<'_>| {
        gone.iter()
            .try_for_each(|sequence| store::delete_chunk(ctx, *sequence))
    };
    kernel.system(organization.clone(), None, delete).await
}

async fn remove_chunks(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    now: SureTime,
    oldest: SureTime,
) -> Result<()> {
    for _ in 0..PIECES {
        let org = organization.clone();
        let sealed = now.earlier_by(CHUNK_SECS);
        let gone = kernel
            .read_system(move |tx| store::gone_chunks(tx, org.as_str(), sealed, oldest))
            .await?;
        if gone.is_empty() {
            break;
        }
        delete_chunks(kernel, organization, gone).await?;
    }
    Ok(())
}

async fn remove_files(kernel: &Arc<Kernel>, organization: &OrganizationId, now: SureTime) -> Result<()> {
    let Some(place) = kernel.extra::<SegmentPlace>() else {
        return Ok(());
    };
    for _ in 0..PIECES {
        let org = organization.clone();
        let removable = kernel
            .read_system(move |tx| store::removable(tx, org.as_str(), now.earlier_by(FILE_SECS)))
            .await?;
        if removable.is_empty() {
            break;
        }
        let storage = place.0.clone();
        let remove = move || -> std::io::Result<Vec<String>> {
            let mut gone = Vec::with_capacity(removable.len());
            for (id, name) in removable {
                storage.remove(&name)?;
                gone.push(id);
            }
            Ok(gone)
        };
        let gone = kernel.blocking(remove).await?.map_err(Error::internal)?;
        // A share that went away meanwhile has no files either, and they would come back with it.
        if place_standing::ours(kernel).await?.is_none() {
            return Ok(());
        }
        let forget = move |ctx: &mut OperationContext<'_>| {
            gone.iter().try_for_each(|id| store::forget_segment(ctx, id))
        };
        kernel.system(organization.clone(), None, forget).await?;
    }
    Ok(())
}

/// Removes segments from the store's own place that no row names and that have lain there for a week, unless the clock is
/// doubted (CK-1).
pub(super) async fn sweep(kernel: &Arc<Kernel>, place: &SegmentPlace) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let at = place.clone();
    // Listed before the rows are read: a file has a row from before it is there (HS-4).
    let listed = kernel
        .blocking(move || at.0.list())
        .await?
        .map_err(Error::internal)?;
    let known: HashSet<String> = kernel.read_system(store::names).await?.into_iter().collect();
    let now = Duration::from_millis(now.instant().as_ms().unsigned_abs());
    let is_old = |modified: SystemTime| {
        let modified = modified
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        modified + Duration::from_secs(ORPHAN_SECS) < now
    };
    let orphans: Vec<String> = listed
        .into_iter()
        .filter(|stored| is_segment(&stored.name) && is_old(stored.modified) && !known.contains(&stored.name))
        .map(|stored| stored.name)
        .take(ORPHANS_AT_ONCE)
        .collect();
    if orphans.is_empty() {
        return Ok(());
    }
    let Some(place) = place_standing::ours(kernel).await? else {
        return Ok(());
    };
    let count = orphans.len();
    let remove = move || orphans.iter().try_for_each(|name| place.0.remove(name));
    kernel.blocking(remove).await?.map_err(Error::internal)?;
    metrics::counter!("provost_history_orphans_removed_total").increment(count as u64);
    tracing::info!(
        count,
        "segments that no row names were removed from the place of the history"
    );
    Ok(())
}

/// Whether a name is one that sealing gives.
fn is_segment(name: &str) -> bool {
    name.starts_with("segment-") && name.ends_with(".parquet")
}
