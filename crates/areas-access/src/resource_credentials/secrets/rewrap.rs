//! Moving every organization under the newest sealing key, in small steps that may be killed anywhere.
//!
//! ```text
//! step  newest key under an old sealing key?  → make the next version (old ones stay)
//!       secrets under older versions?         → re-wrap 100 data keys
//!       neither                               → remove versions that wrap nothing; done
//! ```
//!
//! Each step is one unit of work. Between any two, each secret names the version that wraps it and that version's
//! row is there, so it opens (RC-3). Which step is next follows from the rows alone: a restart goes on by itself.
//!
//! Keeps RC-3.

use super::{SecretBinding, StoredKey, make_key, store};
use crate::resource_credentials::fences;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Error, Result};
use provost_kernel::{Kernel, OperationContext};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// LIMIT: data keys of one unit of work, which has 250 ms; a hundred take about ten.
const CHUNK: i64 = 100;

/// Moves every organization that is not under the current sealing key yet; returns how many steps it took.
///
/// A server that lacks the newest sealing key (it was started before the rotation) leaves alone what another
/// server has moved already.
pub async fn rewrap(kernel: &Arc<Kernel>) -> Result<usize> {
    let mut steps = 0;
    for holder in kernel.read_system(store::holders).await? {
        let Some(is_superseded) = kernel.keys.is_sealing_key_superseded(&holder.sealing_key_id) else {
            tracing::warn!(
                organization = %holder.organization,
                sealing_key = %holder.sealing_key_id,
                "an organization's key needs a sealing key that this server does not have; restart it with the newest keys"
            );
            continue;
        };
        if !is_superseded && holder.keys == 1 {
            continue;
        }
        let mut is_done = false;
        while !is_done {
            is_done = step(kernel, &holder.organization).await?;
            steps += 1;
        }
    }
    Ok(steps)
}

/// Takes one step for one organization and says whether it was the last.
pub async fn step(kernel: &Arc<Kernel>, organization: &OrganizationId) -> Result<bool> {
    let is_done = Arc::new(AtomicBool::new(false));
    let sink = is_done.clone();
    kernel
        .system(organization.clone(), None, move |ctx| {
            sink.store(take(ctx)?, Ordering::SeqCst);
            Ok(())
        })
        .await?;
    Ok(is_done.load(Ordering::SeqCst))
}

fn take(ctx: &mut OperationContext<'_>) -> Result<bool> {
    let stored = store::keys(ctx)?;
    let Some(newest) = stored.last() else {
        return Ok(true);
    };
    if ctx
        .services()
        .keys
        .is_sealing_key_superseded(&newest.sealing_key_id)
        == Some(true)
    {
        let made = make_key(ctx, newest.version + 1)?;
        ctx.action("organization_key.created");
        ctx.target(&fences::KEY, made.version().to_string());
        return Ok(false);
    }
    let behind = store::behind(ctx, newest.version, CHUNK)?;
    if !behind.is_empty() {
        move_chunk(ctx, &stored, newest, &behind)?;
        return Ok(false);
    }
    if store::retire(ctx, newest.version)? > 0 {
        ctx.action("organization_key.retired");
        ctx.target(&fences::KEY, newest.version.to_string());
        tracing::info!(
            organization = ctx.org(),
            "every secret is under the newest sealing key"
        );
    }
    Ok(true)
}

fn move_chunk(
    ctx: &mut OperationContext<'_>,
    stored: &[StoredKey],
    newest: &StoredKey,
    behind: &[store::OutdatedSecret],
) -> Result<()> {
    let (kernel, org) = (ctx.services(), ctx.org());
    let to = newest.open(&kernel.keys, org)?;
    let mut opened = HashMap::new();
    for secret in behind {
        let from = match opened.entry(secret.key_version) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let key = stored.iter().find(|key| key.version == secret.key_version);
                let key = key.ok_or_else(|| Error::internal("the key that wraps a secret is gone"))?;
                unknown.insert(key.open(&kernel.keys, org)?)
            }
        };
        let place = SecretBinding::new(org, &secret.resource, &secret.credential, secret.version);
        let moved = from.rewrap(&to, &place.aad(), &secret.wrapped_key, ctx.rng())?;
        store::rewrap(ctx, &secret.credential, newest.version, &moved)?;
    }
    let left = store::count_behind(ctx, newest.version)?;
    tracing::info!(
        organization = org,
        moved = behind.len(),
        left,
        "secrets were put under the newest sealing key"
    );
    Ok(())
}
