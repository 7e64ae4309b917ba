//! Removes what is needed no more: what is older than the retention, chunks that a segment stands for, files of
//! segments that were given up.
//!
//! INVARIANT HS-12: no chunk goes whose segment was not read back before, whole, with the size and digest that the store knows.
//!
//! A file goes an hour after its row said so, and a chunk two hours after its segment was sealed: whoever began to
//! read before has long finished, or finds the same events in the other form.

use super::model::DAY_MS;
use super::{Place, retention_days, store, vault};
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::Error;
use provost_kernel::{Cx, Kernel, Result, Timestamp};
use std::sync::Arc;

/// How long a chunk outlives its sealing.
const CHUNK_SECS: i64 = 2 * 3_600;
/// How long a file outlives its row's word.
const FILE_SECS: i64 = 3_600;
/// How many pieces of work a round does for one organization; the rest is the next round's.
const PIECES: usize = 100;

/// Removes what is needed no more, of every organization.
pub async fn retain(kernel: &Arc<Kernel>) -> Result<()> {
    for organization in kernel.read_system(store::organizations).await? {
        if let Err(error) = retain_one(kernel, &organization).await {
            tracing::warn!(
                organization = organization.as_str(),
                cause = ?error.private(),
                "old history could not be removed: {error}"
            );
        }
    }
    Ok(())
}

async fn retain_one(kernel: &Arc<Kernel>, organization: &OrganizationId) -> Result<()> {
    let now = kernel.clock.now();
    let org = organization.clone();
    let days = kernel
        .read_system(move |tx| retention_days(tx, org.as_str(), now))
        .await?;
    let oldest = now.plus_ms(-days * DAY_MS);
    let expire = move |cx: &mut Cx<'_>| store::expire(cx, oldest).map(drop);
    kernel.system(organization.clone(), None, expire).await?;
    remove_sealed_chunks(kernel, organization, now).await?;
    remove_chunks(kernel, organization, now, oldest).await?;
    remove_files(kernel, organization, now).await
}

/// Removes chunks that a segment stands for, once the segment was read back: they are the last other copy (HS-12).
async fn remove_sealed_chunks(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    now: Timestamp,
) -> Result<()> {
    let Some(place) = kernel.extra::<Place>() else {
        return Ok(());
    };
    let org = organization.clone();
    let sealed = now.plus_secs(-CHUNK_SECS);
    let standing = kernel
        .read_system(move |tx| store::standing(tx, org.as_str(), sealed))
        .await?;
    for (segment, file) in standing {
        let place = place.clone();
        let fault = kernel.blocking(move || vault::verify(&place, &file)).await?;
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
    let delete = move |cx: &mut Cx<'_>| {
        gone.iter()
            .try_for_each(|sequence| store::delete_chunk(cx, *sequence))
    };
    kernel.system(organization.clone(), None, delete).await
}

async fn remove_chunks(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    now: Timestamp,
    oldest: Timestamp,
) -> Result<()> {
    for _ in 0..PIECES {
        let org = organization.clone();
        let sealed = now.plus_secs(-CHUNK_SECS);
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

async fn remove_files(kernel: &Arc<Kernel>, organization: &OrganizationId, now: Timestamp) -> Result<()> {
    let Some(place) = kernel.extra::<Place>() else {
        return Ok(());
    };
    for _ in 0..PIECES {
        let org = organization.clone();
        let removable = kernel
            .read_system(move |tx| store::removable(tx, org.as_str(), now.plus_secs(-FILE_SECS)))
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
        let forget = move |cx: &mut Cx<'_>| gone.iter().try_for_each(|id| store::forget_segment(cx, id));
        kernel.system(organization.clone(), None, forget).await?;
    }
    Ok(())
}
