//! Removes what is needed no more: what is older than the retention, chunks that a segment stands for, files of
//! segments that were given up.
//!
//! A file goes an hour after its row said so, and a chunk two hours after its segment was sealed: whoever began to
//! read before has long finished, or finds the same events in the other form.

use super::model::DAY_MS;
use super::{Place, retention_days, store};
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
    remove_chunks(kernel, organization, now, oldest).await?;
    remove_files(kernel, organization, now).await
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
        let delete = move |cx: &mut Cx<'_>| {
            gone.iter()
                .try_for_each(|sequence| store::delete_chunk(cx, *sequence))
        };
        kernel.system(organization.clone(), None, delete).await?;
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
