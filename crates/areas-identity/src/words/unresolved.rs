//! How many events had a word that names nobody, or several.
//!
//! Counts are kept for each organization and hour, in memory until the reconciler adds them to the store's: at most ten
//! rows an hour, kept for two days. A server that is killed loses those of the last minute; a policy's reader needs the
//! size of the number, and the decisions themselves say `unresolved` one by one.

use super::Kind;
use provost_kernel::auth::OrganizationId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::{Kernel, OperationContext, Result, Services, SureTime, Timestamp, params, statements};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

const HOUR_MS: i64 = 3_600_000;
/// What a reader is told about. Units: hours.
const TOLD_HOURS: i64 = 24;
const KEPT_HOURS: i64 = 48;

statements! {
    /// Adds to the count of an hour.
    ADD = "INSERT INTO unresolved_events (organization_id, hour, kind, outcome, events) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (organization_id, hour, kind, outcome) DO UPDATE SET events = unresolved_events.events + excluded.events";
    /// The counts since an hour.
    SINCE = "SELECT kind, outcome, CAST(SUM(events) AS BIGINT) FROM unresolved_events WHERE organization_id = ?1 AND hour > ?2 GROUP BY kind, outcome ORDER BY kind, outcome";
    /// Forgets the counts of long ago.
    PRUNE = unscoped("every organization's are kept for the same time") "DELETE FROM unresolved_events WHERE (organization_id, hour, kind, outcome) IN (SELECT e.organization_id, e.hour, e.kind, e.outcome FROM unresolved_events e WHERE e.hour <= ?1 ORDER BY e.hour, e.organization_id, e.kind, e.outcome LIMIT ?2)";
}

/// Why a word is not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnresolvedReason {
    /// Nothing has it.
    Unknown,
    /// Several have it.
    Ambiguous,
}

impl UnresolvedReason {
    /// Returns the word in the store and in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// Events of one kind and outcome in an hour.
type Key = (OrganizationId, i64, Kind, UnresolvedReason);

/// What is counted and not stored yet.
#[derive(Debug, Default)]
pub struct Counts(Mutex<HashMap<Key, i64>>);

impl Counts {
    /// Returns those of this process.
    pub fn of(services: &Services) -> &Arc<Self> {
        services.own(Arc::<Self>::default)
    }

    /// Counts an event whose words of these kinds are not resolved.
    pub fn count(&self, organization: &OrganizationId, now: Timestamp, kind: Kind, why: UnresolvedReason) {
        metrics::counter!("provost_unresolved_words_total", "kind" => kind.word(), "outcome" => why.word())
            .increment(1);
        let key = (organization.clone(), hour(now), kind, why);
        *self.lock().entry(key).or_default() += 1;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hour(now: Timestamp) -> i64 {
    now.as_ms().div_euclid(HOUR_MS)
}

/// Writes the counts before the kernel stops; what could not be written is a line in the log.
pub async fn write_at_the_end(kernel: &Arc<Kernel>) {
    if let Err(error) = flush(kernel).await {
        tracing::warn!(cause = ?error.private(), "some counts of unresolved events were not written: {error}");
    }
}

/// Adds to the store what was counted. A reconciler.
pub async fn flush(kernel: &Arc<Kernel>) -> Result<()> {
    let counts = Counts::of(kernel);
    let taken: HashMap<Key, i64> = std::mem::take(&mut *counts.lock());
    let mut by_organization: BTreeMap<OrganizationId, Vec<(i64, Kind, UnresolvedReason, i64)>> =
        BTreeMap::new();
    for ((organization, hour, kind, why), events) in taken {
        let list = by_organization.entry(organization).or_default();
        list.push((hour, kind, why, events));
    }
    let mut failed = None;
    for (organization, list) in by_organization {
        let added = list.clone();
        let run = move |ctx: &mut OperationContext<'_>| {
            let org = ctx.org();
            added.iter().try_for_each(|(hour, kind, why, events)| {
                ctx.queue(&ADD, params![org, *hour, kind.word(), why.word(), *events])
            })
        };
        if let Err(error) = kernel.system(organization.clone(), None, run).await {
            let mut waiting = counts.lock();
            for (hour, kind, why, events) in list {
                *waiting
                    .entry((organization.clone(), hour, kind, why))
                    .or_default() += events;
            }
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Returns how many events of the last 24 hours were not resolved, by kind and reason.
pub fn of_last_day(
    tx: &mut Tx<'_>,
    services: &Services,
    organization: &OrganizationId,
    now: Timestamp,
) -> Result<BTreeMap<(Kind, UnresolvedReason), i64>> {
    let after = hour(now) - TOLD_HOURS;
    let stored = tx.query(&SINCE, params![organization.as_str(), after], |row| {
        let kind = Kind::parse(row.str(0)?);
        let why = [UnresolvedReason::Unknown, UnresolvedReason::Ambiguous];
        let why = why
            .into_iter()
            .find(|why| why.word() == row.str(1).unwrap_or_default());
        let damaged = || Error::internal("unresolved_events has a word of no kind");
        Ok(((kind.ok_or_else(damaged)?, why.ok_or_else(damaged)?), row.get(2)?))
    })?;
    let mut counts: BTreeMap<(Kind, UnresolvedReason), i64> = stored.into_iter().collect();
    for ((whose, hour, kind, why), events) in Counts::of(services).lock().iter() {
        if whose == organization && *hour > after {
            *counts.entry((*kind, *why)).or_default() += events;
        }
    }
    Ok(counts)
}

/// Forgets the counts of long ago.
pub(super) fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    ctx.prune(&PRUNE, params![hour(now.instant()) - KEPT_HOURS, PRUNED_ROWS])
}
