//! What a violation is, and how it is counted; pure.

use crate::history::{self, Decided, LiveChunk};
use provost_backtest::record::{self, Basis, Decision, Mode, OwnedRecord};
use provost_history::{Batch, Entry, chunk};
use provost_policy::Action;
use std::collections::BTreeMap;

/// Milliseconds in a day.
pub(super) use crate::history::DAY_MS;

/// LIMIT: how far back counts go. Ours: a quarter. Units: days.
pub const DAYS: i64 = 90;
/// LIMIT: names of a day and dimension that are counted by themselves. Ours; the rest is one number.
pub const NAMES: usize = 1_000;
/// LIMIT: sources of a day that are told apart. Ours: an organization has a handful; each import may have a name of its own.
pub const SOURCES: usize = 50;
/// Under which source counts have what devices told; no import has such a name (HS-10).
pub const DEVICES: &str = "device";
/// LIMIT: characters of a name that is counted by itself: ids, and names of tools. Ours.
const CHARACTERS: usize = 320;
/// LIMIT: policies of one event that are counted by themselves. Ours: a decision has a handful.
pub const POLICIES: usize = 64;
/// LIMIT: lines that one unit of work writes. Ours: it has a quarter of a second.
const LINES: usize = 1_000;
/// So many lines are enough for a unit.
const ENOUGH: usize = 400;
/// LIMIT: lines of one chunk, the rest of its days among them: more than that is no history but a table of all that there can be, and is
/// not counted. Ours: with what is there already it is written within half of the time that a unit has.
const LINES_OF_CHUNK: usize = 2_000;

provost_kernel::word! {
    /// What became of a request.
    pub enum Outcome {
        /// It did not pass.
        Blocked = "blocked",
        /// It passed by somebody's approval.
        Approved = "approved",
        /// It waited for somebody's approval.
        Asked = "asked",
        /// Parts of it were replaced or left out.
        Redacted = "redacted",
        /// It passed; somebody looks at it, or its author was told something.
        Flagged = "flagged",
        /// It passed: whoever asked did not enforce what was decided.
        Monitored = "monitored",
        /// It passed: a bypass of the device was on.
        Bypassed = "bypassed",
    }
}

impl Outcome {
    /// Returns the outcome of a decision; `None` of one that allows without an approval, which is no violation.
    ///
    /// What passes by an approval and is changed or marked as well is approved: that it was stopped before is more than that. What one's own yes
    /// is asked for beside it waits still.
    ///
    /// Keeps VI-1.
    pub fn of(action: Action, mode: Mode, basis: Option<Basis>) -> Option<Self> {
        let is_approved = basis == Some(Basis::Approved);
        match (action, mode) {
            (Action::Allow, _) if !is_approved => None,
            (_, Mode::Monitor) => Some(Self::Monitored),
            (_, Mode::Bypass) => Some(Self::Bypassed),
            (Action::Block, Mode::Enforce) => Some(Self::Blocked),
            (Action::RequireApproval, Mode::Enforce) => Some(Self::Asked),
            (_, Mode::Enforce) if is_approved => Some(Self::Approved),
            (Action::Allow, Mode::Enforce) => None,
            (Action::Redact | Action::Filter, Mode::Enforce) => Some(Self::Redacted),
            (Action::FlagForReview | Action::Nudge, Mode::Enforce) => Some(Self::Flagged),
        }
    }

    /// Returns the decision of an event and its outcome, if it is a violation.
    pub fn of_event(event: &OwnedRecord) -> Option<(Self, &Decision)> {
        let decision = event.decision.as_ref()?;
        Some((
            Self::of(decision.action, decision.mode, decision.basis)?,
            decision,
        ))
    }
}

/// Returns the actions of violations that a filter leaves, with and without an approval: nothing where nothing can fit.
pub fn fitting(action: Option<Action>, mode: Option<Mode>, outcome: Option<Outcome>) -> Option<Decided> {
    let with = |basis: Option<Basis>| {
        let fits = |one: &Action| {
            let modes = [Mode::Enforce, Mode::Monitor, Mode::Bypass].into_iter();
            let mut outcomes = modes
                .filter(|of| mode.is_none_or(|mode| mode == *of))
                .filter_map(|of| Outcome::of(*one, of, basis));
            action.is_none_or(|action| action == *one)
                && outcomes.any(|found| outcome.is_none_or(|outcome| outcome == found))
        };
        Action::ALL.into_iter().filter(fits).map(Action::word).collect()
    };
    let decided = Decided {
        plain: with(None),
        approved: with(Some(Basis::Approved)),
    };
    // What passed by an approval was enforced: in another mode nothing fits that fits with an approval alone.
    let can_fit = !decided.plain.is_empty()
        || !decided.approved.is_empty() && mode.is_none_or(|mode| mode == Mode::Enforce);
    can_fit.then_some(decided)
}

/// How a line of the counts says that its events passed by an approval: these are enforced, always.
const APPROVED: &str = "approved";

/// Returns the word of the mode under which an event is counted.
const fn counted_mode(outcome: Outcome, decision: &Decision) -> &'static str {
    match outcome {
        Outcome::Approved => APPROVED,
        _ => decision.mode.word(),
    }
}

provost_kernel::word! {
    /// By what violations are counted.
    #[derive(PartialOrd, Ord)]
    pub enum Dimension {
        /// All of a day.
        All = "all",
        /// By the policies whose action it was.
        Policy = "policy",
        /// By whose event it was.
        Subject = "subject",
        /// By the tool.
        Tool = "tool",
    }
}

impl Dimension {
    /// Returns the word under which what a day has no room to name is counted.
    pub const fn rest(self) -> &'static str {
        match self {
            Self::All => "all_rest",
            Self::Policy => "policy_rest",
            Self::Subject => "subject_rest",
            Self::Tool => "tool_rest",
        }
    }
}

/// What is counted together. Without a name it is the rest of its dimension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    pub dimension: Dimension,
    pub day: i64,
    pub name: Option<String>,
    pub action: &'static str,
    /// The mode; `approved` of what was enforced and passed by an approval.
    pub mode: &'static str,
    pub source: String,
}

/// How many violations some chunks hold.
#[derive(Debug, Default)]
pub struct Tally {
    pub lines: BTreeMap<Line, i64>,
    /// Chunks that cannot be read, or hold more than a unit can write.
    pub uncounted: i64,
    /// The number of the last chunk that is counted here.
    pub last: i64,
}

impl Tally {
    /// Counts chunks, in their order, until one unit of work has enough of them; at least the first.
    pub fn of(chunks: &[LiveChunk], today: i64) -> Self {
        let mut tally = Self::default();
        for live in chunks {
            if tally.lines.len() >= ENOUGH {
                break;
            }
            tally.last = live.sequence;
            let counted = Self::of_chunk(live, today);
            let Some(chunk) = counted.filter(|chunk| chunk.lines.len() <= LINES_OF_CHUNK) else {
                tracing::warn!(
                    chunk = live.sequence,
                    "a chunk cannot be read, or holds too much; its violations are not counted"
                );
                tally.uncounted += 1;
                continue;
            };
            for (line, events) in chunk.lines {
                *tally.lines.entry(line).or_default() += events;
            }
        }
        tally
    }

    fn of_chunk(live: &LiveChunk, today: i64) -> Option<Self> {
        let schema = record::schema();
        let batch = chunk::decode(&schema, &live.content).ok()?;
        let of_action = rows_where(&batch, provost_history::ACTION, |word| {
            word != Action::Allow.word()
        })?;
        let of_basis = rows_where(&batch, history::BASIS, |word| word == Basis::Approved.word())?;
        let rows = of_action.iter().zip(&of_basis).enumerate();
        let rows = rows.filter(|(_, (is_other, is_approved))| **is_other || **is_approved);
        // All of a chunk or nothing: half of it would be a wrong number.
        let events: Option<Vec<OwnedRecord>> = rows.map(|(row, _)| read(&batch, row)).collect();
        let mut tally = Self::default();
        for event in events? {
            tally.add(&event, today);
        }
        Some(tally)
    }

    fn add(&mut self, event: &OwnedRecord, today: i64) {
        let day = event.at_ms.div_euclid(DAY_MS);
        let Some((outcome, decision)) = Outcome::of_event(event) else {
            return;
        };
        let mode = counted_mode(outcome, decision);
        if !(today - DAYS..=today + 1).contains(&day) {
            return;
        }
        let subject = history::subject(event).map_or("", |(_, id)| id);
        let tool = history::tool(event).unwrap_or_default();
        let mut named = vec![
            (Dimension::All, ""),
            (Dimension::Subject, subject),
            (Dimension::Tool, tool),
        ];
        let policies = decision.policy_ids.iter().take(POLICIES);
        named.extend(policies.map(|id| (Dimension::Policy, id.as_str())));
        if decision.policy_ids.is_empty() {
            named.push((Dimension::Policy, ""));
        }
        for (dimension, name) in named {
            let line = Line {
                dimension,
                day,
                name: is_kept(name).then(|| name.to_owned()),
                action: decision.action.word(),
                mode,
                source: source(event),
            };
            self.raise(line, 1);
        }
        let unnamed = decision.policy_ids.len().saturating_sub(POLICIES);
        if unnamed > 0 {
            let rest = Line {
                dimension: Dimension::Policy,
                day,
                name: None,
                action: decision.action.word(),
                mode,
                source: source(event),
            };
            self.raise(rest, i64::try_from(unnamed).unwrap_or(i64::MAX));
        }
    }

    fn raise(&mut self, mut line: Line, by: i64) {
        if self.lines.len() >= LINES && line.dimension != Dimension::All && !self.lines.contains_key(&line) {
            line.name = None;
        }
        *self.lines.entry(line).or_default() += by;
    }
}

/// Says of each row whether the word that it has in a column fits; one without a word fits never.
fn rows_where(batch: &Batch, column: &str, fits: impl Fn(&str) -> bool) -> Option<Vec<bool>> {
    let column = batch.columns.get(record::schema().position(column)?)?;
    let codes = 0..=u32::try_from(column.dictionary.len()).ok()?;
    let fitting = |code| matches!(column.dictionary.entry(code), Ok(Entry::Text(word)) if fits(word));
    let fitting: Vec<bool> = codes.map(fitting).collect();
    let rows = column.codes.iter();
    Some(
        rows.map(|code| fitting.get(*code as usize).copied().unwrap_or(false))
            .collect(),
    )
}

/// Returns under which source an event is counted: all devices under one, so that they leave room for the others.
fn source(event: &OwnedRecord) -> String {
    let source = event.source.clone().unwrap_or_default();
    if record::is_device(&source) {
        return DEVICES.to_owned();
    }
    source
}

/// Says whether a name is counted by itself: PostgreSQL takes no NUL in a text, and no name of something has one.
fn is_kept(name: &str) -> bool {
    name.chars().count() <= CHARACTERS && !name.contains('\0')
}

fn read(batch: &Batch, row: usize) -> Option<OwnedRecord> {
    record::owned(batch, row).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves VI-1.
    #[test]
    fn what_allows_is_no_violation_and_everything_else_has_one_outcome() {
        for basis in Basis::ALL.map(Some).into_iter().chain([None]) {
            for action in Action::ALL {
                for mode in [Mode::Enforce, Mode::Monitor, Mode::Bypass] {
                    let outcome = Outcome::of(action, mode, basis);
                    let is_approved = basis == Some(Basis::Approved);
                    assert_eq!(outcome.is_none(), action == Action::Allow && !is_approved);
                    let Some(outcome) = outcome else { continue };
                    assert_eq!(outcome == Outcome::Monitored, mode == Mode::Monitor);
                    assert_eq!(outcome == Outcome::Bypassed, mode == Mode::Bypass);
                    let passes = ![Action::Block, Action::RequireApproval].contains(&action);
                    let is_enforced = mode == Mode::Enforce;
                    assert_eq!(
                        outcome == Outcome::Approved,
                        is_approved && passes && is_enforced,
                        "{action:?} {mode:?} {basis:?}"
                    );
                    let fitting = fitting(Some(action), Some(mode), Some(outcome));
                    assert_eq!(fitting.is_some(), is_enforced || action != Action::Allow);
                    let Some(fitting) = fitting else { continue };
                    let side = if is_approved {
                        fitting.approved
                    } else {
                        fitting.plain
                    };
                    assert_eq!(side, [action.word()]);
                }
            }
        }
    }

    /// Proves VI-1.
    #[test]
    fn a_filter_leaves_what_can_fit_with_an_approval_and_without_one() {
        let words = |actions: &[Action]| actions.iter().map(|action| action.word()).collect::<Vec<_>>();
        let all = fitting(None, None, None).unwrap();
        assert_eq!((all.plain.len(), all.approved.len()), (6, 7));
        let approved = fitting(None, None, Some(Outcome::Approved)).unwrap();
        assert_eq!((approved.plain.len(), approved.approved.len()), (0, 5));
        let blocked = fitting(None, None, Some(Outcome::Blocked)).unwrap();
        assert_eq!(blocked.plain, words(&[Action::Block]));
        // What was redacted and approved is approved.
        let redacted = fitting(None, None, Some(Outcome::Redacted)).unwrap();
        assert_eq!((redacted.plain.len(), redacted.approved.len()), (2, 0));
        let allowed = fitting(Some(Action::Allow), None, None).unwrap();
        assert_eq!(
            (allowed.plain, allowed.approved),
            (vec![], words(&[Action::Allow]))
        );
        for (action, mode, outcome) in [
            (Some(Action::Block), None, Some(Outcome::Asked)),
            (Some(Action::Block), None, Some(Outcome::Approved)),
            (Some(Action::RequireApproval), None, Some(Outcome::Approved)),
            (Some(Action::Allow), Some(Mode::Monitor), None),
            (None, Some(Mode::Monitor), Some(Outcome::Blocked)),
            (None, Some(Mode::Monitor), Some(Outcome::Approved)),
        ] {
            assert_eq!(fitting(action, mode, outcome), None);
        }
    }
}
