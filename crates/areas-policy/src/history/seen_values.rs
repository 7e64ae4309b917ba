//! Which names the events of the last 30 days had: counted behind the recorder, kept by days, read into the process.
//!
//! ```text
//!   chunk 7 committed ──┐
//!   chunk 8 committed ──┴─ within a minute: counted to the days of their events, and "8" noted, in one unit of work
//!                                           └─ the sums of 30 days, in the process ─ asked by whoever writes a policy
//! ```
//!
//! INVARIANT HS-15: each chunk is counted once: the unit of work that counts it notes its number, and one that finds another number
//! than it began with counts nothing. In the same unit it is announced which MCP servers its events name (`server_uses.rs`).
//!
//! Absent on purpose: content, people and groups (a name of theirs is nobody's to guess); exact figures, of which the history itself
//! has them.

use super::server_uses::Uses;
use super::store;
use provost_backtest::record;
use provost_history::chunk;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, OperationContext, Result, Services};
use provost_policy::{Field, name_key};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The attributes whose values are kept.
pub const WATCHED: [Field; 10] = [
    Field::LLM_MODEL,
    Field::LLM_PROVIDER,
    Field::MCP_ENDPOINT,
    Field::MCP_PACKAGE,
    Field::MCP_SERVER,
    Field::MCP_TOOL,
    Field::PRODUCT,
    Field::RESOURCE,
    Field::SKILL,
    Field::TOOL,
];
/// How far back an author is told of values. Units: days.
const DAYS: i64 = 30;
/// Units: milliseconds.
const DAY_MS: i64 = 24 * 3_600 * 1_000;
/// LIMIT: values of one attribute and day; whoever sends more of them has no names but data. Ours.
const VALUES: usize = 512;
/// LIMIT: characters of a value that is kept. Ours.
const CHARACTERS: usize = 128;
/// LIMIT: batches of chunks that one round counts for an organization; the next one goes on.
const ROUNDS: usize = 50;

/// A value that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenValue {
    /// Its match key.
    pub key: String,
    /// One of its spellings.
    pub value: String,
    /// How many events had it.
    pub events: i64,
}

/// What was seen of an organization.
#[derive(Clone, Debug, Default)]
pub struct SeenValues {
    /// How many days that is: fewer than [`DAYS`] where counting began later.
    pub days: i64,
    /// The values by attribute, the most frequent first.
    pub values: HashMap<Field, Vec<SeenValue>>,
}

/// What this process knows of every organization.
#[derive(Debug, Default)]
struct Census(Mutex<HashMap<OrganizationId, Arc<SeenValues>>>);

/// Returns what was seen of an organization; nothing before it was looked at. It is read from memory: no statement.
pub fn seen_values(services: &Services, organization: &OrganizationId) -> Option<Arc<SeenValues>> {
    let known = services.own(Census::default);
    let known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(organization).cloned()
}

/// Counts what was recorded since the last round, and reads the sums. A reconciler.
pub async fn count_values(kernel: &Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let today = now.instant().as_ms().div_euclid(DAY_MS);
    let mut round = Ok(());
    for organization in kernel.read_system(store::organizations).await? {
        // One that cannot be counted keeps nobody behind it from being counted (ADR 0067).
        if let Err(error) = count_one(kernel, &organization, today).await {
            tracing::warn!(
                organization = organization.as_str(),
                cause = ?error.private(),
                "the values of events could not be counted: {error}"
            );
            round = round.and(Err(error));
        }
    }
    round
}

async fn count_one(kernel: &Arc<Kernel>, organization: &OrganizationId, today: i64) -> Result<()> {
    for _ in 0..ROUNDS {
        if !count_some(kernel, organization, today).await? {
            break;
        }
    }
    let org = organization.clone();
    let read = kernel.read_system(move |tx| {
        let counted = store::counted(tx, org.as_str())?;
        Ok((counted, store::seen_since(tx, org.as_str(), today - DAYS)?))
    });
    let (counted, rows) = read.await?;
    let Some((_, since)) = counted else {
        return Ok(());
    };
    let mut seen = SeenValues {
        days: (today - since + 1).clamp(1, DAYS),
        values: HashMap::new(),
    };
    for (field, value) in rows {
        if let Some(field) = Field::named(&field) {
            seen.values.entry(field).or_default().push(value);
        }
    }
    let known = kernel.own(Census::default);
    let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    known.insert(organization.clone(), Arc::new(seen));
    Ok(())
}

/// How many events had a value on a day.
type DayCounts = BTreeMap<(i64, Field, String), (String, i64)>;

/// Counts the next chunks; says whether there were some.
async fn count_some(kernel: &Arc<Kernel>, organization: &OrganizationId, today: i64) -> Result<bool> {
    let org = organization.clone();
    let read = kernel.read_system(move |tx| {
        let before = store::counted(tx, org.as_str())?;
        Ok((
            before,
            store::chunks_after(tx, org.as_str(), before.map_or(0, |(sequence, _)| sequence))?,
        ))
    });
    let (before, chunks) = read.await?;
    let Some(last) = chunks.last().map(|chunk| chunk.sequence) else {
        return Ok(false);
    };
    let (counts, uses) = kernel.blocking(move || counts(&chunks, today)).await?;
    let announced = uses.told();
    let write = move |ctx: &mut OperationContext<'_>| {
        let org = ctx.org();
        // INVARIANT HS-15: another server may have counted them.
        if store::counted(&mut ctx.tx(), org)? != before {
            return Ok(());
        }
        let mut there: HashMap<(i64, Field), usize> = HashMap::new();
        for ((day, field, key), (value, events)) in &counts {
            let place = (*day, *field);
            let kept = match there.entry(place) {
                Entry::Occupied(kept) => kept.into_mut(),
                Entry::Vacant(open) => open.insert(store::values_of_day(ctx, *day, field.name())?),
            };
            let is_full = *kept >= VALUES;
            let is_new = store::add_value(ctx, *day, field.name(), (key, value), *events, is_full)?;
            *kept += usize::from(is_new);
        }
        store::forget_values(ctx, today - DAYS - 1)?;
        if !announced.uses.is_empty() {
            ctx.announce(&announced)?;
        }
        store::set_counted(ctx, last, today)
    };
    kernel.system(organization.clone(), None, write).await?;
    Ok(true)
}

/// Counts the values of chunks, and what they say of servers. A chunk that cannot be read is left out here, and reported where it is
/// read for its events.
fn counts(chunks: &[store::LiveChunk], today: i64) -> (DayCounts, Uses) {
    let schema = record::schema();
    let mut all = DayCounts::new();
    let mut uses = Uses::default();
    for live in chunks {
        let Ok(batch) = chunk::decode(&schema, &live.content) else {
            tracing::warn!(
                chunk = live.sequence,
                "a chunk cannot be read; its values are not counted"
            );
            continue;
        };
        uses.add(&batch, today - DAYS..=today + 1);
        for field in WATCHED {
            let Some(column) = batch.columns.get(record::position(field)) else {
                continue;
            };
            let Some(texts) = column.dictionary.texts() else {
                continue;
            };
            let texts: Vec<&str> = texts.iter().collect();
            let mut by_code: HashMap<(i64, u32), i64> = HashMap::new();
            for (at, code) in batch.at.iter().zip(&column.codes) {
                let day = at.div_euclid(DAY_MS);
                if *code > 0 && (today - DAYS..=today + 1).contains(&day) {
                    *by_code.entry((day, *code)).or_default() += 1;
                }
            }
            for ((day, code), events) in by_code {
                let Some(text) = texts.get(code as usize - 1) else {
                    continue;
                };
                let key = name_key(field, text);
                // PostgreSQL takes no NUL in a text, and no name of something has one.
                if key.is_empty() || text.contains('\0') || text.chars().count() > CHARACTERS {
                    continue;
                }
                let place = (day, field, key.into_owned());
                let entry = all.entry(place).or_insert_with(|| ((*text).to_owned(), 0));
                entry.1 += events;
            }
        }
    }
    (all, uses)
}
