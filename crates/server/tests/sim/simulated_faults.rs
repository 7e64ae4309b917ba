//! What befalls the application: pauses, transactions that fail, and the end of the process at any commit.

use crate::dice::Dice;
use provost_kernel::error::Class;
use provost_kernel::threads::{FaultInjector, SchedulePoint, TransactionPhase};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Of so many transactions in a thousand something befalls one.
const STRIKES_PERMILLE: u64 = 55;

/// What befalls a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The process is gone; what the file system holds at this moment is what the next life finds.
    Crash(TransactionPhase),
    /// A write or an fsync failed: nothing is acknowledged until a restart (WK-2).
    Broken(TransactionPhase),
    /// Another process holds the lock for too long.
    Busy,
    /// The engine wants the transaction once more.
    Retry,
    /// Nobody knows whether the COMMIT took place (WK-3).
    Lost(TransactionPhase),
}

impl Fault {
    fn draw(dice: &mut Dice) -> Self {
        let end = [TransactionPhase::BeforeCommit, TransactionPhase::AfterCommit][dice.below(2)];
        match dice.below(10) {
            0 => Self::Crash(TransactionPhase::Begin),
            1 | 2 => Self::Crash(end),
            3 => Self::Broken(end),
            4 | 5 => Self::Busy,
            6 | 7 => Self::Retry,
            _ => Self::Lost(end),
        }
    }

    fn moment(self) -> TransactionPhase {
        match self {
            Self::Crash(moment) | Self::Broken(moment) | Self::Lost(moment) => moment,
            Self::Busy => TransactionPhase::Begin,
            Self::Retry => TransactionPhase::BeforeCommit,
        }
    }

    fn class(self) -> Class {
        match self {
            Self::Crash(_) | Self::Broken(_) => Class::Broken,
            Self::Busy => Class::Unavailable,
            Self::Retry => Class::Retry,
            Self::Lost(_) => Class::Lost,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Crash(_) => "crash",
            Self::Broken(_) => "write failed",
            Self::Busy => "busy",
            Self::Retry => "retry",
            Self::Lost(_) => "lost",
        }
    }
}

/// How a life ended, as far as the weather had to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Crashed,
    Broken,
}

/// The weather of one life.
#[derive(Debug)]
pub struct SimulatedFaults {
    state: Mutex<State>,
    /// Rung when the life cannot go on.
    pub bell: Notify,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    calm: u32,
    is_stopping: bool,
    /// Where the store of this life lies, and that of the next one.
    folders: [PathBuf; 2],
    next: Option<Fault>,
    end: Option<End>,
    strikes: u64,
    counts: BTreeMap<&'static str, u64>,
    lines: Vec<String>,
}

impl SimulatedFaults {
    pub fn new(dice: Dice, folders: [PathBuf; 2]) -> Self {
        let state = State {
            dice,
            calm: 0,
            is_stopping: false,
            folders,
            next: None,
            end: None,
            strikes: 0,
            counts: BTreeMap::new(),
            lines: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            bell: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps every fault away as long as the returned value stands.
    pub fn calm(&self) -> NoFaults<'_> {
        self.lock().calm += 1;
        NoFaults(self)
    }

    pub fn is_calm(&self) -> bool {
        self.lock().calm > 0
    }

    /// Says that the server is being stopped, so that requests may be turned away.
    pub fn stop(&self) {
        self.lock().is_stopping = true;
    }

    pub fn is_stopping(&self) -> bool {
        self.lock().is_stopping
    }

    pub fn end(&self) -> Option<End> {
        self.lock().end
    }

    /// Returns how many transactions were struck.
    pub fn strikes(&self) -> u64 {
        self.lock().strikes
    }

    /// Counts a fault that is not one of a transaction.
    pub fn count(&self, name: &'static str) {
        *self.lock().counts.entry(name).or_default() += 1;
    }

    /// Returns what befell, and how often.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.lock().counts.clone()
    }

    /// Returns what happened since this was last asked.
    pub fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().lines)
    }
}

/// See [`SimulatedFaults::calm`].
pub struct NoFaults<'a>(&'a SimulatedFaults);

impl Drop for NoFaults<'_> {
    fn drop(&mut self) {
        self.0.lock().calm -= 1;
    }
}

impl FaultInjector for SimulatedFaults {
    fn pause(&self, turn: SchedulePoint) -> Duration {
        let mut state = self.lock();
        let often = match turn {
            SchedulePoint::Read => 15,
            SchedulePoint::Write => 40,
        };
        if !state.dice.percent(often) {
            return Duration::ZERO;
        }
        Duration::from_millis(state.dice.between(1, 12))
    }

    fn inject(&self, moment: TransactionPhase) -> Option<Class> {
        let mut state = self.lock();
        if state.end.is_some() {
            return None;
        }
        if moment == TransactionPhase::Begin {
            let struck = state.calm == 0 && state.dice.permille(STRIKES_PERMILLE);
            state.next = struck.then(|| Fault::draw(&mut state.dice));
        }
        let fault = state.next.filter(|fault| fault.moment() == moment)?;
        state.next = None;
        state.strikes += 1;
        *state.counts.entry(fault.name()).or_default() += 1;
        state.lines.push(format!("fault {fault:?}"));
        match fault {
            Fault::Crash(_) => {
                photograph(&state.folders[0], &state.folders[1]);
                state.end = Some(End::Crashed);
            }
            Fault::Broken(_) => state.end = Some(End::Broken),
            Fault::Busy | Fault::Retry | Fault::Lost(_) => {}
        }
        if state.end.is_some() {
            self.bell.notify_one();
        }
        Some(fault.class())
    }
}

/// Copies a store as a process that dies now would leave it: with its log, without its shared memory.
pub fn photograph(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["provost.db", "provost.db-wal"] {
        match std::fs::copy(from.join(name), to.join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => drop(outcome.unwrap()),
        }
    }
}
