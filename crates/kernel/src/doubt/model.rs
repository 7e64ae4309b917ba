//! When a clock is doubted, and when no longer. No I/O: readings go in, reasons come out.

use crate::time::{Clock, Timestamp};
use std::fmt;
use std::time::Duration;

/// How far a clock may be from another one, and may jump, before it is doubted. Units: milliseconds.
pub(super) const TOLERANCE_MS: i64 = 60_000;
/// After so long a stop nobody can say whether the clock still tells the time. Units: milliseconds.
pub(super) const STOP_MS: i64 = 48 * 3_600_000;
/// After so much running time a clock that ran evenly is believed. Units: milliseconds.
pub(super) const PATIENCE_MS: i64 = 24 * 3_600_000;

/// What the clocks of the machine said at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    /// What time it is.
    pub wall: Timestamp,
    /// Since a fixed point, sleep included. Units: milliseconds.
    pub boot_ms: i64,
    /// Since a fixed point, sleep left out. Units: milliseconds.
    pub running_ms: i64,
}

impl ClockReading {
    pub fn of(clock: &dyn Clock) -> Self {
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self {
            wall: clock.now(),
            boot_ms: ms(clock.since_boot()),
            running_ms: ms(clock.monotonic()),
        }
    }

    /// Returns by how much the wall clock was moved since an earlier reading, forward or back.
    pub fn moved_since(self, earlier: ClockReading) -> i64 {
        let wall = self.wall.as_ms().saturating_sub(earlier.wall.as_ms());
        wall.saturating_sub(self.boot_ms.saturating_sub(earlier.boot_ms))
    }
}

/// What the store keeps of the time. Units of every member but the last: milliseconds, of instants since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The last instant that an undoubted clock said; 0 before there was one.
    pub kept: i64,
    /// Entries and kept instants up to here are no reason for doubt any more.
    pub settled: i64,
    /// How long servers ran in doubt.
    pub waited: i64,
    /// Up to which instant that was counted; 0 while nobody doubts.
    pub counted_at: i64,
    /// How often an operator has accepted the clock.
    pub accepted: i64,
}

impl Record {
    /// Reads what [`Record::to_text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Option<Vec<i64>> = text.split(' ').map(|word| word.parse().ok()).collect();
        let [kept, settled, waited, counted_at, accepted] = numbers?.try_into().ok()?;
        Some(Self {
            kept,
            settled,
            waited,
            counted_at,
            accepted,
        })
    }

    pub fn to_text(self) -> String {
        let Self {
            kept,
            settled,
            waited,
            counted_at,
            accepted,
        } = self;
        format!("{kept} {settled} {waited} {counted_at} {accepted}")
    }

    /// Returns the record after an undoubted clock said what time it is.
    pub fn after_undoubted(self, wall: Timestamp) -> Self {
        Self {
            kept: self.kept.max(wall.as_ms()),
            waited: 0,
            counted_at: 0,
            ..self
        }
    }

    /// Returns the record after more running time in doubt. Several servers that doubt at once count the same time once.
    pub fn after_doubt(self, wall: Timestamp, ran_ms: i64, is_even: bool) -> Self {
        let wall = wall.as_ms();
        let is_counted = is_even && self.counted_at > 0 && wall >= self.counted_at;
        let more = ran_ms.clamp(0, (wall - self.counted_at).max(0));
        Self {
            waited: if is_counted { self.waited + more } else { 0 },
            counted_at: wall,
            ..self
        }
    }

    /// Returns the record after a doubted clock has run evenly for long enough.
    pub fn after_patience(self, wall: Timestamp, newest: i64) -> Self {
        Self {
            settled: self.settled.max(newest).max(self.kept),
            ..self.after_undoubted(wall)
        }
    }

    /// Returns the record after an operator said that the clock is right.
    pub fn after_acceptance(self, wall: Timestamp, newest: i64) -> Self {
        Self {
            kept: wall.as_ms(),
            settled: newest.max(wall.as_ms()),
            waited: 0,
            counted_at: 0,
            accepted: self.accepted + 1,
        }
    }
}

/// Why a clock is doubted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It is so far from the database's clock. Units: milliseconds, ahead when positive.
    Database(i64),
    /// It was moved so far while the server ran. Units: milliseconds, forward when positive.
    Moved(i64),
    /// What the store holds is so far ahead of it. Units: milliseconds.
    Behind(i64),
    /// The server was started so long after the last instant that was kept. Units: milliseconds.
    Stopped(i64),
}

impl Doubt {
    /// The kind, for a metric.
    pub fn word(self) -> &'static str {
        match self {
            Self::Database(_) => "database",
            Self::Moved(_) => "moved",
            Self::Behind(_) => "behind",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Every kind.
    pub const WORDS: [&'static str; 4] = ["database", "moved", "behind", "stopped"];
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |ms: i64, ahead, behind| if ms > 0 { ahead } else { behind };
        match *self {
            Self::Database(ms) => write!(
                f,
                "it is {} s {} the clock of the database",
                ms.abs() / 1000,
                side(ms, "ahead of", "behind")
            ),
            Self::Moved(ms) => write!(
                f,
                "it was set {} by {} s while the server ran",
                side(ms, "forward", "back"),
                ms.abs() / 1000
            ),
            Self::Behind(ms) => write!(f, "the store holds entries that are {} s ahead of it", ms / 1000),
            Self::Stopped(ms) => write!(
                f,
                "the server was started {} hours after the last instant that it had kept",
                ms / 3_600_000
            ),
        }
    }
}

/// What a server knows of its clock.
#[derive(Debug, Default)]
pub(super) struct Mind {
    pub record: Record,
    /// The newest entry that was ever seen; 0 before there was one.
    pub newest: i64,
    /// The clocks when they were first believed.
    anchor: Option<ClockReading>,
    /// How far the clock was from the database's, and when that was asked.
    database: Option<(i64, ClockReading)>,
    /// The server began long after the last instant that was kept.
    began_late: bool,
    /// When running time was last counted.
    counted: Option<ClockReading>,
    /// Running time in a doubt of this server's own.
    waited: i64,
    pub reason: Option<Doubt>,
}

impl Mind {
    /// Begins with what the store says.
    pub fn begin(&mut self, record: Record, newest: i64, now: ClockReading) {
        self.record = record;
        self.newest = newest;
        self.waited = record.waited;
        self.began_late = self.stop_ms(now) > STOP_MS;
        self.counted = Some(now);
        self.judge(now);
    }

    /// How long before now the last kept instant lies; a store of an earlier build has its newest entry instead.
    fn stop_ms(&self, now: ClockReading) -> i64 {
        let last = if self.record.kept > 0 {
            self.record.kept
        } else {
            self.newest
        };
        if last > 0 {
            now.wall.as_ms().saturating_sub(last)
        } else {
            0
        }
    }

    /// Takes what the store says now.
    pub fn read(&mut self, record: Record, newest: i64, now: ClockReading) {
        if record.accepted > self.record.accepted {
            self.believe(now);
            self.newest = 0;
        }
        self.record = record;
        self.newest = self.newest.max(newest);
    }

    /// Takes what the database said what time it is.
    pub fn asked(&mut self, database: Timestamp, now: ClockReading) {
        self.database = Some((now.wall.as_ms().saturating_sub(database.as_ms()), now));
    }

    /// Returns how far the clock is from the database's by now, if it was ever asked.
    fn database_offset(&self, now: ClockReading) -> Option<i64> {
        self.database
            .map(|(then, asked)| then.saturating_add(now.moved_since(asked)))
    }

    /// Returns what makes it impossible to date an entry.
    pub fn disagreement(&self, now: ClockReading) -> Option<Doubt> {
        let ms = self.database_offset(now)?;
        (ms.abs() > TOLERANCE_MS).then_some(Doubt::Database(ms))
    }

    /// Says whether an instant that was taken earlier can be the date of an entry.
    pub fn is_plausible(&self, taken: Timestamp, waited_ms: i64, now: ClockReading) -> bool {
        let Some(off) = self.database_offset(now) else {
            return true;
        };
        let true_now = now.wall.as_ms().saturating_sub(off);
        let age = true_now.saturating_sub(taken.as_ms());
        (-TOLERANCE_MS..=TOLERANCE_MS + waited_ms).contains(&age)
    }

    /// Says whether the clock is doubted, and why.
    pub fn judge(&mut self, now: ClockReading) -> Option<Doubt> {
        self.reason = self.doubt(now);
        self.reason
    }

    /// As [`Mind::judge`], for a question in between.
    pub fn doubt(&mut self, now: ClockReading) -> Option<Doubt> {
        if let Some(doubt) = self.disagreement(now) {
            return Some(doubt);
        }
        // On a machine that was corrected before it was ever believed, the first agreement is the beginning.
        let moved = now.moved_since(*self.anchor.get_or_insert(now));
        if moved.abs() > TOLERANCE_MS {
            return Some(Doubt::Moved(moved));
        }
        let newest = self.newest.max(self.record.kept);
        let behind = newest.saturating_sub(now.wall.as_ms());
        if behind > TOLERANCE_MS && newest > self.record.settled {
            return Some(Doubt::Behind(behind));
        }
        let stop = self.stop_ms(now);
        if self.began_late && stop > STOP_MS {
            return Some(Doubt::Stopped(stop));
        }
        self.began_late = false;
        None
    }

    /// Returns by how much the clock was set back in all since it was believed; zero where nothing is known. Units: milliseconds.
    pub fn moved_back_ms(&self, now: ClockReading) -> i64 {
        let moved = self.anchor.map_or(0, |anchor| now.moved_since(anchor));
        moved.saturating_neg().max(0)
    }

    /// Counts running time since it was last counted; returns it, and whether the clock ran evenly.
    pub fn count(&mut self, now: ClockReading) -> (i64, bool) {
        let Some(before) = self.counted.replace(now) else {
            return (0, true);
        };
        let is_even = now.moved_since(before).abs() <= TOLERANCE_MS;
        let ran = (now.running_ms - before.running_ms).max(0);
        match self.reason {
            None => self.waited = 0,
            Some(_) if !is_even => self.waited = 0,
            Some(_) => self.waited = self.waited.saturating_add(ran),
        }
        (ran, is_even)
    }

    /// Says whether the clock has run evenly for long enough to be believed. Beside a database that says another time it
    /// never has: an entry would get a false date.
    pub fn is_patient_enough(&self, record: Record) -> bool {
        !matches!(self.reason, None | Some(Doubt::Database(_)))
            && self.waited.max(record.waited) >= PATIENCE_MS
    }

    /// Believes the clock from here on.
    pub fn believe(&mut self, now: ClockReading) {
        self.anchor = Some(now);
        self.began_late = false;
        self.waited = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves AP-12.
    #[test]
    fn what_a_clock_is_set_back_by_again_and_again_is_summed() {
        let mut mind = Mind::default();
        assert_eq!(mind.moved_back_ms(at(0, 0)), 0, "nothing is known");
        assert_eq!(mind.judge(at(0, 0)), None);
        // Ten minutes in which it was set back by 59 s each minute.
        let set_back = |times: i64| at(times * MINUTE - times * 59_000, times * MINUTE);
        for times in 1..=10 {
            assert_eq!(mind.moved_back_ms(set_back(times)), times * 59_000);
        }
        // One that was set forward was not set back.
        assert_eq!(mind.moved_back_ms(at(2 * HOUR, HOUR)), 0);
        mind.believe(set_back(10));
        assert_eq!(mind.moved_back_ms(set_back(10)), 0);
    }

    const START: i64 = 1_795_000_000_000;
    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;

    fn at(wall: i64, passed: i64) -> ClockReading {
        ClockReading {
            wall: Timestamp::from_ms(START + wall),
            boot_ms: passed,
            running_ms: passed,
        }
    }

    fn mind(record: Record, newest: i64) -> Mind {
        let mut mind = Mind::default();
        mind.begin(record, newest, at(0, 0));
        mind
    }

    fn kept(ago: i64) -> Record {
        Record {
            kept: START - ago,
            ..Record::default()
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record {
            kept: START,
            settled: 2,
            waited: 3,
            counted_at: 4,
            accepted: 5,
        };
        assert_eq!(Record::parse(&record.to_text()), Some(record));
        for text in ["", "1 2 3 4", "1 2 3 4 5 6", "1 2 x 4 5"] {
            assert_eq!(Record::parse(text), None, "{text:?}");
        }
    }

    /// Proves CK-1.
    #[test]
    fn a_clock_that_moved_for_more_than_a_minute_is_doubted_until_it_is_back() {
        for moved in [MINUTE + 1, -MINUTE - 1, 401 * DAY] {
            let mut mind = mind(Record::default(), 0);
            assert_eq!(mind.judge(at(HOUR, HOUR)), None);
            assert_eq!(mind.judge(at(HOUR + moved.signum() * MINUTE, HOUR)), None);
            let doubt = mind.judge(at(HOUR + moved, HOUR));
            assert_eq!(doubt, Some(Doubt::Moved(moved)));
            assert_eq!(mind.judge(at(2 * HOUR, 2 * HOUR)), None);
        }
    }

    #[test]
    fn sleep_and_a_time_without_writes_are_no_doubt() {
        let mut mind = mind(kept(MINUTE), START - MINUTE);
        let slept = ClockReading {
            running_ms: MINUTE,
            ..at(40 * DAY, 40 * DAY)
        };
        assert_eq!(mind.judge(slept), None);
    }

    #[test]
    fn entries_ahead_are_a_doubt_until_the_clock_is_there_or_they_are_settled() {
        assert_eq!(mind(Record::default(), START + MINUTE).reason, None);
        let mut ahead = mind(Record::default(), START + MINUTE + 1);
        assert_eq!(ahead.reason, Some(Doubt::Behind(MINUTE + 1)));
        assert_eq!(ahead.judge(at(1, 1)), None);
        let settled = Record {
            settled: START + HOUR,
            ..Record::default()
        };
        assert_eq!(mind(settled, START + HOUR).reason, None);
        assert!(mind(settled, START + HOUR + 1).reason.is_some());
        // The kept instant says the same where newer entries are older.
        assert_eq!(mind(kept(-HOUR), START).reason, Some(Doubt::Behind(HOUR)));
    }

    #[test]
    fn a_start_after_a_long_stop_is_doubted_and_a_later_silence_is_not() {
        assert_eq!(mind(kept(2 * DAY), 0).reason, None);
        assert_eq!(
            mind(kept(2 * DAY + 1), 0).reason,
            Some(Doubt::Stopped(2 * DAY + 1))
        );
        assert_eq!(
            mind(Record::default(), START - 3 * DAY).reason,
            Some(Doubt::Stopped(3 * DAY)),
            "a store of an earlier build has its entries"
        );
        let mut mind = mind(kept(MINUTE), 0);
        assert_eq!(mind.judge(at(3 * DAY, 3 * DAY)), None);
    }

    #[test]
    fn another_server_that_keeps_the_time_ends_the_doubt_of_a_start() {
        let mut late = mind(kept(3 * DAY), 0);
        late.read(kept(-MINUTE), 0, at(MINUTE, MINUTE));
        assert_eq!(late.judge(at(MINUTE, MINUTE)), None);
    }

    /// Proves CK-2.
    #[test]
    fn a_database_that_says_another_time_is_believed_between_two_questions_as_well() {
        let mut mind = mind(Record::default(), 0);
        mind.asked(Timestamp::from_ms(START), at(0, 0));
        assert_eq!(mind.disagreement(at(MINUTE, 0)), None);
        assert_eq!(
            mind.disagreement(at(MINUTE + 1, 0)),
            Some(Doubt::Database(MINUTE + 1))
        );
        assert_eq!(mind.disagreement(at(HOUR, HOUR)), None);
        mind.asked(Timestamp::from_ms(START + 2 * HOUR), at(HOUR, HOUR));
        assert_eq!(mind.judge(at(HOUR, HOUR)), Some(Doubt::Database(-HOUR)));
        // An instant that was taken while the clock was wrong dates nothing when it is right again.
        mind.asked(Timestamp::from_ms(START + HOUR), at(HOUR, HOUR));
        let now = at(HOUR, HOUR);
        assert!(mind.is_plausible(now.wall, 0, now));
        assert!(mind.is_plausible(now.wall.plus_ms(-MINUTE - 5), 5, now));
        assert!(!mind.is_plausible(now.wall.plus_ms(-MINUTE - 6), 5, now));
        assert!(!mind.is_plausible(now.wall.plus_ms(MINUTE + 1), 5, now));
    }

    #[test]
    fn a_correction_before_anything_was_believed_is_no_move_and_a_later_one_is() {
        let mut mind = Mind::default();
        mind.asked(Timestamp::from_ms(START + HOUR), at(0, 0));
        mind.begin(Record::default(), 0, at(0, 0));
        assert_eq!(mind.reason, Some(Doubt::Database(-HOUR)));
        assert_eq!(mind.judge(at(HOUR, 0)), None);
        // Database and machine jump together: nobody can say who is right.
        mind.asked(Timestamp::from_ms(START + 400 * DAY), at(400 * DAY, 0));
        let doubt = mind.judge(at(400 * DAY, 0));
        assert_eq!(doubt, Some(Doubt::Moved(400 * DAY - HOUR)));
    }

    /// Runs a doubted clock by the minute; returns the minutes until it is believed.
    fn minutes(mind: &mut Mind, from: i64, most: i64) -> Option<i64> {
        for minute in 1..=most {
            let now = at(from + minute * MINUTE, minute * MINUTE);
            mind.judge(now);
            let (ran, is_even) = mind.count(now);
            mind.record = match mind.reason {
                None => return Some(minute),
                Some(_) => mind.record.after_doubt(now.wall, ran, is_even),
            };
            if mind.is_patient_enough(mind.record) {
                mind.record = mind.record.after_patience(now.wall, mind.newest);
                mind.believe(now);
                assert_eq!(mind.judge(now), None);
                return Some(minute);
            }
        }
        None
    }

    #[test]
    fn a_doubted_clock_is_believed_after_a_day_of_running_and_not_before() {
        let mut late = mind(kept(90 * DAY), 0);
        assert_eq!(minutes(&mut late, 0, 1440), Some(1440));
        assert_eq!(late.record.kept, START + DAY);
    }

    #[test]
    fn the_running_time_is_counted_across_starts_and_begins_again_after_a_move() {
        let mut first = mind(kept(90 * DAY), 0);
        assert_eq!(minutes(&mut first, 0, 1000), None);
        let mut second = Mind::default();
        second.begin(first.record, 0, at(1000 * MINUTE, 0));
        assert_eq!(minutes(&mut second, 1000 * MINUTE, 1440), Some(441));

        let mut moved = mind(kept(90 * DAY), 0);
        assert_eq!(minutes(&mut moved, 0, 1000), None);
        let now = at(2000 * MINUTE, 1001 * MINUTE);
        moved.judge(now);
        let (ran, is_even) = moved.count(now);
        assert!(!is_even);
        assert_eq!(moved.record.after_doubt(now.wall, ran, is_even).waited, 0);
    }

    #[test]
    fn two_servers_in_doubt_count_the_same_minute_once() {
        let mut record = kept(90 * DAY);
        for minute in 1..=100 {
            let wall = Timestamp::from_ms(START + minute * MINUTE);
            record = record.after_doubt(wall, MINUTE, true);
            record = record.after_doubt(wall, MINUTE, true);
        }
        assert_eq!(record.waited, 99 * MINUTE);
    }

    #[test]
    fn no_patience_dates_entries_against_the_database() {
        let mut mind = mind(Record::default(), 0);
        mind.asked(Timestamp::from_ms(START + HOUR), at(0, 0));
        assert_eq!(minutes(&mut mind, 0, 3000), None);
    }

    #[test]
    fn an_operator_sets_the_kept_instant_back() {
        let record = kept(-400 * DAY);
        let mut mind = mind(record, START + 400 * DAY);
        assert!(mind.reason.is_some());
        let accepted = record.after_acceptance(at(0, 0).wall, START + 400 * DAY);
        assert_eq!(accepted.kept, START);
        mind.read(accepted, START + 400 * DAY, at(0, 0));
        assert_eq!(mind.judge(at(0, 0)), None);
        // A newer entry ahead is a new reason.
        mind.read(accepted, START + 401 * DAY, at(0, 0));
        assert!(mind.judge(at(0, 0)).is_some());
    }
}
