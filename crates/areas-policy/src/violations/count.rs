//! Counts what was recorded since the last round, and forgets what is too old. A reconciler.
//!
//! ```text
//!   chunk 7 committed ──┐
//!   chunk 8 committed ──┴─ within a minute: added to the days of their events, and "8" noted, in one unit of work
//! ```
//!
//! A chunk is there for two hours after it was sealed. What was gone before it was counted, and what cannot be read, is a number that
//! every answer with counts has.

use super::model::{DAY_MS, DAYS, DEVICES, Dimension, Line, NAMES, SOURCES, Tally};
use super::store::{self, Head};
use crate::history;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, OperationContext, Result, SureTime};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// LIMIT: units of work that one round has for an organization; the next one goes on.
const ROUNDS: usize = 50;

/// Counts the days of every organization.
pub async fn count_days(kernel: &Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let mut round = Ok(());
    for organization in kernel.read_system(history::organizations).await? {
        // One that cannot be counted keeps nobody behind it from being counted (ADR 0067).
        if let Err(error) = count_one(kernel, &organization, now).await {
            tracing::warn!(
                organization = organization.as_str(),
                cause = ?error.private(),
                "violations could not be counted: {error}"
            );
            round = round.and(Err(error));
        }
    }
    round
}

async fn count_one(kernel: &Arc<Kernel>, organization: &OrganizationId, now: SureTime) -> Result<()> {
    let today = now.instant().as_ms().div_euclid(DAY_MS);
    for _ in 0..ROUNDS {
        if !count_some(kernel, organization, today).await? {
            break;
        }
    }
    forget(kernel, organization, now).await
}

/// Counts the next chunks; says whether there were some.
async fn count_some(kernel: &Arc<Kernel>, organization: &OrganizationId, today: i64) -> Result<bool> {
    let org = organization.clone();
    let read = kernel.read_system(move |tx| {
        let before = store::head(tx, org.as_str())?;
        let chunks =
            history::chunks_after(tx, org.as_str(), before.as_ref().map_or(0, |head| head.sequence))?;
        Ok((before, chunks))
    });
    let (before, chunks) = read.await?;
    if chunks.is_empty() {
        return Ok(false);
    }
    let numbers: Vec<i64> = chunks.iter().map(|chunk| chunk.sequence).collect();
    let tally = kernel.blocking(move || Tally::of(&chunks, today)).await?;
    let head = Head {
        sequence: tally.last,
        since_day: before.map_or(today, |head| head.since_day),
        uncounted: before.map_or(0, |head| head.uncounted)
            + tally.uncounted
            + before.map_or(0, |head| gone(head.sequence, &numbers, tally.last)),
    };
    let write = move |ctx: &mut OperationContext<'_>| {
        let org = ctx.org();
        // INVARIANT VI-2: another server may have counted them.
        if store::head(&mut ctx.tx(), org)? != before {
            return Ok(());
        }
        let mut known = Known::default();
        for (line, events) in &tally.lines {
            add(ctx, line.clone(), *events, &mut known)?;
        }
        store::set_head(ctx, &head)
    };
    kernel.system(organization.clone(), None, write).await?;
    Ok(true)
}

/// Returns how many numbers of chunks are missing between the last that was counted and the last that is now: numbers have no gap
/// (HS-6), so these chunks are gone.
fn gone(before: i64, numbers: &[i64], last: i64) -> i64 {
    let there = numbers.iter().filter(|number| **number <= last).count();
    (last - before - i64::try_from(there).unwrap_or(i64::MAX)).max(0)
}

/// What the days have already that a unit adds to.
#[derive(Default)]
struct Known {
    names: BTreeMap<(Dimension, i64), BTreeSet<String>>,
    sources: BTreeMap<i64, BTreeSet<String>>,
}

/// Adds to a line, or to the rest of its day where that has no room for its name or its source.
fn add(ctx: &mut OperationContext<'_>, mut line: Line, events: i64, known: &mut Known) -> Result<()> {
    let sources = match known.sources.entry(line.day) {
        Entry::Occupied(sources) => sources.into_mut(),
        Entry::Vacant(open) => open.insert(store::sources_of_day(ctx, line.day)?),
    };
    if sources.len() >= SOURCES && !sources.contains(&line.source) {
        line.source.clear();
    } else if !line.source.is_empty() {
        sources.insert(line.source.clone());
    }
    let place = (line.dimension, line.day);
    if let Some(name) = line.name.clone() {
        let names = match known.names.entry(place) {
            Entry::Occupied(names) => names.into_mut(),
            Entry::Vacant(open) => open.insert(store::names_of_day(ctx, line.dimension, line.day)?),
        };
        // A device names what it likes: the half of the room is for what others name.
        let most = if line.source == DEVICES { NAMES / 2 } else { NAMES };
        if names.len() >= most && !names.contains(&name) {
            line.name = None;
        } else {
            names.insert(name);
        }
    }
    store::add(ctx, &line, events)
}

/// Forgets what is older than the history, and counts that are older than they may be.
async fn forget(kernel: &Arc<Kernel>, organization: &OrganizationId, now: SureTime) -> Result<()> {
    let org = organization.clone();
    let read = kernel.read_system(move |tx| {
        let kept_days = history::retention_days(tx, org.as_str(), now.instant())?;
        let before = now.earlier_by(kept_days.saturating_mul(DAY_MS / 1_000));
        let day = before
            .instant()
            .as_ms()
            .div_euclid(DAY_MS)
            .max(now.instant().as_ms().div_euclid(DAY_MS) - DAYS);
        Ok(store::is_due(tx, org.as_str(), day, before)?.then_some((day, before)))
    });
    let Some((day, before)) = read.await? else {
        return Ok(());
    };
    // A retention that is shortened makes many days due at once, and a day has no bound on its lines.
    let run = move |ctx: &mut OperationContext<'_>| store::forget(ctx, day, before);
    kernel.prune(organization, run).await
}
