//! All SQL of the area.

use super::entries::Place;
use super::room::Used;
use provost_areas_fleet::fleet::{self, DeviceId};
use provost_areas_platform::settings::{self, Judging};
use provost_areas_platform::store as installation;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params, statements};
use std::collections::{BTreeMap, BTreeSet};

statements! {
    /// How many entries the log of the organization has: it grows with every change.
    CHANGES = "SELECT seq FROM chain_heads WHERE organization_id = ?1";
    /// How far a device has told.
    CHAIN = "SELECT next_entry, head, taking, taken_at, events, passed, dropped, refused, foreign_events, mismatches, told_day, told_units FROM device_decision_chains WHERE organization_id = ?1 AND device_id = ?2 AND ended_at IS NULL";
    /// Begins what a device tells.
    BEGIN = "INSERT INTO device_decision_chains (organization_id, device_id, next_entry, head, taking, taken_at, events, passed, dropped, refused, foreign_events, mismatches) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, 0, 0) ON CONFLICT (organization_id, device_id) DO NOTHING";
    /// Moves on what a device told, from a place.
    MOVE_ON = "UPDATE device_decision_chains SET next_entry = ?5, head = ?6, taking = ?7, taken_at = ?8, events = events + ?9, passed = passed + ?10, dropped = dropped + ?11, refused = refused + ?12, foreign_events = foreign_events + ?13, mismatches = mismatches + ?14, told_day = ?15, told_units = ?16 WHERE organization_id = ?1 AND device_id = ?2 AND next_entry = ?3 AND head = ?4 AND ended_at IS NULL";
    /// Says whether a device of an organization that is not retired told something.
    TELLS = "SELECT 1 FROM device_decision_chains WHERE organization_id = ?1 AND ended_at IS NULL LIMIT 1";
    /// The devices of an organization that told something and are retired.
    ENDED = "SELECT device_id FROM device_decision_chains WHERE organization_id = ?1 AND ended_at IS NOT NULL ORDER BY device_id";
    /// How many counts of a device there are.
    COUNT = "SELECT COUNT(*) FROM device_decision_counts WHERE organization_id = ?1 AND device_id = ?2";
    /// Adds to a count.
    ADD = "INSERT INTO device_decision_counts (organization_id, device_id, seq, hour, user_word, client, tool, passed) VALUES (?1, ?2, (SELECT COALESCE(MAX(c.seq), 0) + 1 FROM device_decision_counts c WHERE c.organization_id = ?1 AND c.device_id = ?2), ?3, ?4, ?5, ?6, ?7) ON CONFLICT (organization_id, device_id, hour, user_word, client, tool) DO UPDATE SET passed = device_decision_counts.passed + excluded.passed";
    /// A page of the counts of a device, what began to be counted last first.
    LIST = "SELECT seq, hour, user_word, client, tool, passed FROM device_decision_counts WHERE organization_id = ?1 AND device_id = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
    /// Adds to how often something passed on a day.
    ADD_DAY = "INSERT INTO device_decision_days (organization_id, day, passed) VALUES (?1, ?2, ?3) ON CONFLICT (organization_id, day) DO UPDATE SET passed = device_decision_days.passed + excluded.passed";
    /// How often something passed within days.
    COUNTED = "SELECT CAST(COALESCE(SUM(passed), 0) AS BIGINT) FROM device_decision_days WHERE organization_id = ?1 AND day >= ?2 AND day <= ?3";
    /// Forgets the counts of a device.
    FORGET_COUNTS = "DELETE FROM device_decision_counts WHERE organization_id = ?1 AND device_id = ?2";
    /// Forgets how far a device told that is retired, and how much that was: all but that it told.
    END_CHAIN = "UPDATE device_decision_chains SET ended_at = ?3, events = 0, passed = 0, dropped = 0, refused = 0, foreign_events = 0, mismatches = 0, told_day = 0, told_units = 0 WHERE organization_id = ?1 AND device_id = ?2 AND ended_at IS NULL";
    /// Forgets devices that were retired before an instant: no past goes back so far.
    FORGET_ENDED = unscoped("the round is everybody's") "DELETE FROM device_decision_chains WHERE (organization_id, device_id) IN (SELECT c.organization_id, c.device_id FROM device_decision_chains c WHERE c.ended_at < ?1 ORDER BY c.ended_at, c.organization_id, c.device_id LIMIT ?2)";
    /// Forgets the counts of a user.
    FORGET_USER = "DELETE FROM device_decision_counts WHERE organization_id = ?1 AND user_word = ?2";
    /// Forgets days before one.
    FORGET_DAYS = unscoped("the round is everybody's") "DELETE FROM device_decision_days WHERE (organization_id, day) IN (SELECT d.organization_id, d.day FROM device_decision_days d WHERE d.day < ?1 ORDER BY d.day, d.organization_id LIMIT ?2)";
    /// Forgets counts of hours before an instant.
    FORGET = unscoped("the round is everybody's") "DELETE FROM device_decision_counts WHERE (organization_id, device_id, seq) IN (SELECT c.organization_id, c.device_id, c.seq FROM device_decision_counts c WHERE c.hour < ?1 ORDER BY c.hour, c.organization_id, c.device_id, c.seq LIMIT ?2)";
    /// Chains whose place is none.
    TORN = unscoped("a check looks at every organization") "SELECT organization_id, device_id FROM device_decision_chains WHERE next_entry < 1 OR LENGTH(head) <> 64 OR told_units < 0 ORDER BY organization_id, device_id";
    /// Counts that no count makes.
    BAD = unscoped("a check looks at every organization") "SELECT organization_id, device_id FROM device_decision_counts WHERE passed < 1 ORDER BY organization_id, device_id, seq";
}

/// How long counts are kept. Units: seconds. Ours: a month, in which somebody asks why a device was so busy.
pub const KEPT_SECS: i64 = 30 * 86_400;
/// How long it is known of a retired device that it told. Units: seconds. Ours: longer than any past goes back (30 days).
const ENDED_KEPT_SECS: i64 = 32 * 86_400;
/// How long days are kept: as long as a history may go back (SE-4). Units: days.
const KEPT_DAYS: i64 = 3_650;
/// Units: milliseconds.
const DAY_MS: i64 = 86_400_000;
/// LIMIT: counts of a device. Ours: with a handful of tools an hour, more than a month of days at work; what is beyond is counted without
/// names, so that no device fills the store.
const MOST_COUNTS: i64 = 5_000;

/// Returns the epoch of the store.
pub fn epoch(ctx: &mut OperationContext<'_>) -> Result<u64> {
    let fact = installation::fact(&mut ctx.tx(), "store_epoch")?;
    fact.map_or(Ok(0), |text| text.parse().map_err(Error::internal))
}

/// Returns how many changes the organization had.
pub fn changes(ctx: &mut OperationContext<'_>) -> Result<u64> {
    let org = ctx.org();
    let changes = ctx.query_opt(&CHANGES, params![org], |row| row.get::<i64>(0))?;
    Ok(changes.unwrap_or(0).unsigned_abs())
}

/// What a device told so far.
#[derive(Clone, Debug)]
pub struct Chain {
    /// How far.
    pub place: Place,
    /// The taking that came last.
    pub taking: String,
    /// When that was.
    pub taken_at: Timestamp,
    /// How much it was.
    pub sums: Sums,
    /// How much it was on the last day.
    pub used: Used,
}

/// How much was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Events.
    pub events: i64,
    /// How often something passed of which no event was told.
    pub passed: i64,
    /// Events that were lost on the device.
    pub dropped: i64,
    /// Entries that could not be read.
    pub refused: i64,
    /// Events that named somebody else than the device's own people.
    pub foreign: i64,
    /// Decisions that were found to be other ones.
    pub mismatches: i64,
}

impl Sums {
    /// Reads those that stand in a row from a place on.
    fn behind(row: &Row<'_>, place: usize) -> Result<Self> {
        let mut numbers = [0; 6];
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = row.get(place + at)?;
        }
        let [events, passed, dropped, refused, foreign, mismatches] = numbers;
        Ok(Self {
            events,
            passed,
            dropped,
            refused,
            foreign,
            mismatches,
        })
    }
}

/// Returns what a device told so far; nothing of one that told nothing.
pub fn chain(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<Option<Chain>> {
    let org = ctx.org();
    ctx.query_opt(&CHAIN, params![org, device.as_str()], |row| {
        Ok(Chain {
            place: Place {
                next: row.get(0)?,
                head: row.get(1)?,
            },
            taking: row.get(2)?,
            taken_at: row.get(3)?,
            sums: Sums::behind(row, 4)?,
            used: Used {
                day: row.get(10)?,
                units: row.get(11)?,
            },
        })
    })
}

/// Moves on what a device told, from one place to another, and says whether it was still at the first.
pub fn move_on(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    [from, to]: [&Place; 2],
    taking: &str,
    (sums, used): (&Sums, Used),
) -> Result<bool> {
    let (org, now, device) = (ctx.org(), ctx.now(), device.as_str());
    if *from == Place::first() {
        ctx.execute(
            &BEGIN,
            params![org, device, from.next, from.head.as_str(), taking, now],
        )?;
    }
    let moved = ctx.execute(
        &MOVE_ON,
        params![
            org,
            device,
            from.next,
            from.head.as_str(),
            to.next,
            to.head.as_str(),
            taking,
            now,
            sums.events,
            sums.passed,
            sums.dropped,
            sums.refused,
            sums.foreign,
            sums.mismatches,
            used.day,
            used.units,
        ],
    )?;
    Ok(moved == 1)
}

/// Returns what devices told is part of the past: none of it where nobody switched on that they judge, or none tells anything; else all
/// but that of these devices, which are quarantined or retired.
///
/// Keeps DJ-7, DJ-9.
pub fn tells(tx: &mut Tx<'_>, org: &str) -> Result<Option<BTreeSet<String>>> {
    let found = tx.query_opt(&TELLS, params![org], |row| row.get::<i64>(0))?;
    if found.is_none() || settings::of(tx, org)?.fleet.hooks.judging == Judging::Off {
        return Ok(None);
    }
    let mut left_out = fleet::quarantined(tx, org)?;
    left_out.extend(tx.query(&ENDED, params![org], |row| row.get::<String>(0))?);
    Ok(Some(left_out))
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountKey {
    /// When the hour begins.
    pub hour: Timestamp,
    /// Who used it; empty where nobody is known.
    pub user: String,
    /// The client; empty of what is counted without names.
    pub client: String,
    /// The tool; empty where there is none.
    pub tool: String,
}

/// Adds to the counts of a device; without names where it has as many as it may have.
pub fn add(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    counts: &BTreeMap<CountKey, i64>,
) -> Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    let (org, device) = (ctx.org(), device.as_str());
    let mut days: BTreeMap<i64, i64> = BTreeMap::new();
    for (key, count) in counts {
        *days.entry(key.hour.as_ms().div_euclid(DAY_MS)).or_default() += count;
    }
    for (day, passed) in days {
        ctx.queue(&ADD_DAY, params![org, day, passed])?;
    }
    let known = ctx.query_opt(&COUNT, params![org, device], |row| row.get::<i64>(0))?;
    let new = i64::try_from(counts.len()).unwrap_or(i64::MAX);
    let has_room = known.unwrap_or(0).saturating_add(new) <= MOST_COUNTS;
    let mut added: BTreeMap<CountKey, i64> = BTreeMap::new();
    for (key, count) in counts {
        let key = if has_room {
            key.clone()
        } else {
            CountKey {
                hour: key.hour,
                user: String::new(),
                client: String::new(),
                tool: String::new(),
            }
        };
        *added.entry(key).or_default() += count;
    }
    for (key, count) in added {
        ctx.queue(
            &ADD,
            params![
                org,
                device,
                key.hour,
                key.user.as_str(),
                key.client.as_str(),
                key.tool.as_str(),
                count
            ],
        )?;
    }
    Ok(())
}

/// Returns how often something passed on devices of which no event was told, on the days that a span of time touches.
pub fn counted(tx: &mut Tx<'_>, org: &str, from: Timestamp, to: Timestamp) -> Result<i64> {
    let day = |at: Timestamp| at.as_ms().div_euclid(DAY_MS);
    let counted = tx.query_opt(&COUNTED, params![org, day(from), day(to)], |row| {
        row.get::<i64>(0)
    })?;
    Ok(counted.unwrap_or(0))
}

/// Returns a page of the counts of a device, with their numbers.
pub fn list(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    before: i64,
    limit: i64,
) -> Result<Vec<(i64, CountKey, i64)>> {
    let org = ctx.org();
    ctx.query(&LIST, params![org, device.as_str(), before, limit], |row| {
        let key = CountKey {
            hour: row.get(1)?,
            user: row.get(2)?,
            client: row.get(3)?,
            tool: row.get(4)?,
        };
        Ok((row.get(0)?, key, row.get(5)?))
    })
}

/// Forgets what a device counted that is retired, and how far it told.
pub fn forget_device(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.latest());
    ctx.queue(&FORGET_COUNTS, params![org, device.as_str()])?;
    ctx.queue(&END_CHAIN, params![org, device.as_str(), now])
}

/// Forgets what was counted of a user.
pub fn forget_user(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_USER, params![org, user])
}

/// Forgets counts that were kept long enough, of every organization.
pub fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let until = now.earlier_by(KEPT_SECS).instant();
    ctx.prune(&FORGET, params![until, PRUNED_ROWS])?;
    let until = now.earlier_by(ENDED_KEPT_SECS).instant();
    ctx.prune(&FORGET_ENDED, params![until, PRUNED_ROWS])?;
    let day = now.instant().as_ms().div_euclid(DAY_MS) - KEPT_DAYS;
    ctx.prune(&FORGET_DAYS, params![day, PRUNED_ROWS])
}

/// Returns a sentence for everything that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>, _: Timestamp) -> Result<Vec<String>> {
    let found = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
    let mut broken = Vec::new();
    for (organization, device) in tx.query(&TORN, params![], found)? {
        broken.push(format!(
            "the device {device} of {organization} has told decisions up to a place that is none"
        ));
    }
    for (organization, device) in tx.query(&BAD, params![], found)? {
        broken.push(format!(
            "a count of decisions of the device {device} of {organization} is a number that no count makes"
        ));
    }
    Ok(broken)
}
