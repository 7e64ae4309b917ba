//! Doubt of the clock: a wrong clock must neither remove anything nor date anything.
//!
//! ```text
//! doubted while   the database's clock says another time (PostgreSQL, from 60 s on)          changes are refused as well
//!                 the clock was moved by more than 60 s while the server ran
//!                 entries or kept instants lie more than 60 s ahead of it
//!                 the server was started more than 48 h after the last kept instant
//! no longer       when the clocks agree; after 24 h of running time in which the clock ran evenly;
//!                 by `provost store accept --clock`
//! ```
//!
//! Once a minute an undoubted server keeps the instant in the store. What ends by time, ends by the later of the clock and
//! that instant, so that a clock which was set back revives nothing.
//!
//! INVARIANT CK-1: what removes, prunes, sweeps or writes down an expiry by time has a [`SureTime`] instant, which
//! only a clock that is not doubted gives.
//! INVARIANT CK-2: no entry is dated by a clock that is more than 60 seconds from the database's.
//! INVARIANT CK-3: what had run out by an instant that an undoubted clock kept has run out, whatever the clock says
//! later.
//!
//! Absent on purpose: asking a time server. Who runs one has its answer in the machine's clock.

mod model;

pub(crate) use model::ClockReading;
pub use model::Doubt;

use crate::db::{Conn, Engine, Tx, Watch};
use crate::error::{Error, Result};
use crate::params;
use crate::time::{Clock, Timestamp};
use crate::witness::Witness;
use model::{Mind, Record, TOLERANCE_MS};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

crate::statements! {
    /// What time the database's machine has. SQLite has none of its own.
    DATABASE_TIME = unscoped("time is everybody's") {
        sqlite: "SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000",
        postgres: "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    };
    /// When the newest entry of any chain was written.
    NEWEST = unscoped("the clock is everybody's") "SELECT MAX(e.time) FROM chain_heads h JOIN audit_entries e ON e.organization_id = h.organization_id AND e.seq = h.seq";
    /// What is kept of the time.
    KEPT = "SELECT value FROM installation WHERE name = 'clock'";
    /// Keeps it.
    KEEP = "INSERT INTO installation (name, value) VALUES ('clock', ?1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
}

/// An instant that a clock said which nobody doubts. Whatever removes by time takes one, and there is no other way to it
/// than [`crate::services::Services::undoubted`] (CK-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SureTime(Timestamp);

impl SureTime {
    /// Returns the instant.
    pub fn instant(self) -> Timestamp {
        self.0
    }

    /// Returns the instant so many seconds earlier, never a later one: before it, something has run out.
    #[must_use]
    pub fn earlier_by(self, secs: i64) -> Self {
        Self(self.0.plus_secs(-secs.max(0)))
    }

    /// Returns the number of its day since the Unix epoch.
    pub fn day(self) -> i64 {
        self.0.as_ms().div_euclid(86_400_000)
    }

    #[cfg(test)]
    pub(crate) fn for_test(instant: Timestamp) -> Self {
        Self(instant)
    }
}

/// What one server thinks of its clock.
pub(crate) struct Clockwatch {
    clock: Arc<dyn Clock>,
    /// Whether there is a clock of a database to compare with.
    compares: bool,
    mind: Mutex<Mind>,
    /// The last kept instant that is known. Units: milliseconds.
    kept: AtomicI64,
}

impl Clockwatch {
    pub fn new(clock: Arc<dyn Clock>, engine: Engine) -> Self {
        Self {
            compares: engine == Engine::Postgres && clock.keeps_common_time(),
            clock,
            mind: Mutex::default(),
            kept: AtomicI64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mind> {
        self.mind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the later of an instant and the last kept one (CK-3).
    pub fn latest(&self, now: Timestamp) -> Timestamp {
        now.max(Timestamp::from_ms(self.kept.load(Ordering::Relaxed)))
    }

    /// Says whether a clock shows so much less than the last kept instant that it was set back; where it shows less at all, by the sum of
    /// what it was set back since it was believed, or one that is set back again and again by less would be no other than one that is
    /// right. Until it has come there again, what ends by time neither ends nor comes nearer to its end.
    pub fn is_set_back(&self, now: Timestamp) -> bool {
        let behind = self.latest(now).as_ms().saturating_sub(now.as_ms());
        behind > TOLERANCE_MS
            || behind > 0 && self.lock().moved_back_ms(ClockReading::of(self.clock.as_ref())) > TOLERANCE_MS
    }

    /// Returns why no change can be dated now, if it is so.
    pub fn refusal(&self) -> Option<Error> {
        if !self.compares {
            return None;
        }
        let doubt = self.lock().disagreement(ClockReading::of(self.clock.as_ref()))?;
        Some(refusal(doubt))
    }

    /// Returns why a unit that was made at an instant cannot have it as its date, if it is so (CK-2).
    ///
    /// Units of `waited_ms`: how long a unit may have waited, in milliseconds.
    pub fn refusal_of(&self, made: Timestamp, waited_ms: i64) -> Option<Error> {
        if !self.compares {
            return None;
        }
        let reading = ClockReading::of(self.clock.as_ref());
        let is_plausible = self.lock().is_plausible(made, waited_ms, reading);
        (!is_plausible)
            .then(|| Error::unavailable("the clock of the server was set while this waited; try again"))
    }

    /// Compares with the clock of the database that a connection reached.
    pub fn ask(&self, tx: &mut Tx<'_>) -> Result<()> {
        if !self.compares {
            return Ok(());
        }
        let said = tx.query_opt(&DATABASE_TIME, params![], |row| row.get::<Timestamp>(0))?;
        let said = said.ok_or_else(|| Error::internal("the database does not say what time it is"))?;
        self.lock().asked(said, ClockReading::of(self.clock.as_ref()));
        Ok(())
    }

    /// Reads what the store says and judges the clock.
    pub fn look(&self, tx: &mut Tx<'_>, is_first: bool) -> Result<ClockReading> {
        self.ask(tx)?;
        let (record, newest) = (kept(tx)?, newest(tx)?);
        let now = ClockReading::of(self.clock.as_ref());
        let mut mind = self.lock();
        let before = mind.reason;
        if is_first {
            mind.begin(record, newest, now);
        } else {
            mind.read(record, newest, now);
            mind.judge(now);
        }
        self.kept.store(record.kept, Ordering::Relaxed);
        tell(before, mind.reason);
        Ok(now)
    }

    /// Returns the instant that was just read, if the clock is not doubted.
    pub fn sure(&self, now: ClockReading) -> Option<SureTime> {
        match self.lock().reason {
            None => Some(SureTime(now.wall)),
            Some(doubt) => {
                tracing::debug!("a round was left out, because the clock is doubted: {doubt}");
                None
            }
        }
    }

    /// Returns why the clock is doubted, by what was last heard of the store and the database.
    pub fn doubt(&self) -> Option<Doubt> {
        self.lock().doubt(ClockReading::of(self.clock.as_ref()))
    }

    /// Counts the time since the last count; there is nothing to be kept beside a database that says another time.
    pub fn count(&self, now: ClockReading) -> Option<Count> {
        let mut mind = self.lock();
        let (ran_ms, is_even) = mind.count(now);
        let reason = mind.reason;
        (!matches!(reason, Some(Doubt::Database(_)))).then_some(Count {
            now,
            reason,
            ran_ms,
            is_even,
        })
    }

    /// Keeps the present in the store, or how long the clock has been doubted. Says whether doubt has ended with that.
    pub fn keep(&self, tx: &mut Tx<'_>, count: Count) -> Result<bool> {
        let Count {
            now,
            reason,
            ran_ms,
            is_even,
        } = count;
        let record = kept(tx)?;
        let waiting = record.after_doubt(now.wall, ran_ms, is_even);
        let (is_patient, newest) = {
            let mind = self.lock();
            (mind.is_patient_enough(waiting), mind.newest)
        };
        let record = match reason {
            None => record.after_undoubted(now.wall),
            Some(_) if is_patient => waiting.after_patience(now.wall, newest),
            Some(_) => waiting,
        };
        tx.queue(&KEEP, params![record.to_text().as_str()])?;
        Ok(reason.is_some() && is_patient)
    }

    /// Believes the clock from a reading on.
    pub fn believe(&self, now: ClockReading) {
        self.lock().believe(now);
    }
}

/// What a round counted: how long the clock ran since the last one, and whether evenly.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    now: ClockReading,
    reason: Option<Doubt>,
    ran_ms: i64,
    is_even: bool,
}

fn refusal(doubt: Doubt) -> Error {
    Error::unavailable(
        "the clock of this server and that of its database disagree by more than a minute, so that no change can be dated; \
         an operator must set the wrong one right",
    )
    .retry_after(30)
    .caused_by(format!("the clock is doubted: {doubt}"))
}

fn kept(tx: &mut Tx<'_>) -> Result<Record> {
    let text = tx.query_opt(&KEPT, params![], |row| row.get::<String>(0))?;
    match text {
        None => Ok(Record::default()),
        Some(text) => Record::parse(&text)
            .ok_or_else(|| Error::internal(format!("the store's note of the time cannot be read: {text:?}"))),
    }
}

fn newest(tx: &mut Tx<'_>) -> Result<i64> {
    let newest = tx.query_opt(&NEWEST, params![], |row| row.get::<Option<i64>>(0))?;
    Ok(newest.flatten().unwrap_or(0))
}

/// Says in the log and in the metric what changed.
fn tell(before: Option<Doubt>, after: Option<Doubt>) {
    let is = |doubt: Option<Doubt>, word: &str| doubt.is_some_and(|doubt| doubt.word() == word);
    for word in Doubt::WORDS {
        metrics::gauge!("provost_clock_doubted", "reason" => word).set(f64::from(u8::from(is(after, word))));
    }
    match after {
        Some(doubt) if !is(before, doubt.word()) => tracing::error!(
            "the clock of this machine is doubted: {doubt}. Nothing is removed, and nothing is written down as expired, until \
             the clocks agree, the clock has run evenly for 24 hours, or `provost store accept --clock` says that it is right"
        ),
        None if before.is_some() => tracing::warn!("the clock of this machine is believed again"),
        Some(_) | None => {}
    }
}

/// What watches over the connections of a server: that the store has not gone back, and what time its machine has.
pub(crate) struct Guard {
    pub witness: Arc<Witness>,
    pub clockwatch: Arc<Clockwatch>,
}

impl Watch for Guard {
    fn permit(&self) -> Result<()> {
        self.witness.permit()
    }

    fn look(&self, conn: &mut Conn) -> Result<()> {
        self.witness.look(conn)?;
        self.clockwatch.ask(&mut conn.tx())
    }
}

/// Says that the clock is right, in the unit of an operator's command: doubt ends, and the kept instant is the present.
pub fn accept(tx: &mut Tx<'_>, now: Timestamp) -> Result<()> {
    let (record, newest) = (kept(tx)?, newest(tx)?);
    let accepted = record.after_acceptance(now, newest);
    tx.queue(&KEEP, params![accepted.to_text().as_str()])
}
