//! Growing a recording of real tool calls to any size, for benchmarks and tests.
//!
//! A recording is JSON Lines with `user`, `tool`, `model`, `arguments`, `result`, and `task` and `trial` that name
//! the run. Users are multiplied: each new user is a recorded one under another name, who makes that user's runs.
//! Runs of many users interleave. A call repeats the recorded one, or, at the rate asked for, is made anew: its
//! numbers and codes are drawn at random, so that hardly two of those agree.
//!
//! The same recording, shape and seed give the same events. Times and ids are made up, as the recording has none.

mod random;
mod recording;

pub use random::mixed;
pub use recording::Recording;

use crate::batch::Value;
use crate::error::{Result, invalid};
use crate::schema::{ColumnSpec, Kind, Schema};
use random::{Random, ulid};
use std::collections::HashSet;

/// What is grown from a recording.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many events.
    pub events: u64,
    /// How many users make them.
    pub users: u32,
    /// How many tools they call, at least those of the recording.
    pub tools: u32,
    /// The share of calls that repeat a recorded one, from 0 to 1.
    pub repetition: f64,
    /// The first instant. Units: milliseconds since the Unix epoch.
    pub from: i64,
    /// The instant that is not reached any more.
    pub to: i64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// One event that was made up.
#[derive(Clone, Debug, Default)]
pub struct SyntheticEvent {
    /// A ULID.
    pub id: String,
    /// When it happened. Units: milliseconds since the Unix epoch.
    pub at: i64,
    user: String,
    groups: Vec<&'static str>,
    tool: String,
    model: String,
    result: String,
    resource: Option<String>,
    amount: Option<f64>,
    session: String,
    arguments: String,
}

/// The groups of users; a user is in one or two of them.
const GROUPS: [&str; 6] = [
    "agents",
    "care",
    "finance",
    "night-shift",
    "supervisors",
    "trainees",
];
/// How many runs are going on at the same time.
const OPEN_RUNS: usize = 64;

/// Returns the schema of grown events.
///
/// Errors: none; the names are right.
pub fn schema() -> Result<Schema> {
    Schema::new(
        1,
        vec![
            ColumnSpec::of("subject", Kind::Text),
            ColumnSpec::of("groups", Kind::TextSet),
            ColumnSpec::of("tool", Kind::Text),
            ColumnSpec::of("model", Kind::Text),
            ColumnSpec::of("result", Kind::Text),
            ColumnSpec::of("resource", Kind::Text),
            ColumnSpec::of("amount", Kind::Number),
            ColumnSpec::detail("session", Kind::Text),
            ColumnSpec::detail("arguments", Kind::Json),
        ],
    )
}

impl Recording {
    /// Returns the grown events, in the order of time.
    ///
    /// Errors: `Invalid` when the shape has no users, no time, or a share that is none.
    pub fn grow(&self, shape: Shape) -> Result<Growth<'_>> {
        if shape.users == 0 || shape.from >= shape.to || !(0.0..=1.0).contains(&shape.repetition) {
            return invalid("a shape has users, time, and a repetition from 0 to 1");
        }
        Ok(Growth {
            recording: self,
            shape,
            random: Random(shape.seed),
            made: 0,
            open: Vec::new(),
            runs: 0,
        })
    }
}

/// Made up events, one after the other.
#[derive(Debug)]
pub struct Growth<'a> {
    recording: &'a Recording,
    shape: Shape,
    random: Random,
    made: u64,
    open: Vec<Run>,
    runs: u64,
}

/// A run that is going on.
#[derive(Debug)]
struct Run {
    number: u64,
    user: u64,
    index: usize,
    step: usize,
}

impl Iterator for Growth<'_> {
    type Item = SyntheticEvent;

    fn next(&mut self) -> Option<SyntheticEvent> {
        if self.made == self.shape.events {
            return None;
        }
        while self.open.len() < OPEN_RUNS {
            let run = self.begin();
            self.open.push(run);
        }
        let place = self.random.below(OPEN_RUNS as u64);
        let place = usize::try_from(place).unwrap_or(0);
        let event = self.event(place);
        self.open[place].step += 1;
        if self.open[place].step == self.recording.runs[self.open[place].index].len() {
            self.open[place] = self.begin();
        }
        self.made += 1;
        Some(event)
    }
}

impl Growth<'_> {
    fn begin(&mut self) -> Run {
        self.runs += 1;
        let user = self.random.below(self.shape.users.into());
        let runs = &self.recording.runs_of[self.recorded(user)];
        let index = runs[usize::try_from(self.random.below(runs.len() as u64)).unwrap_or(0)];
        Run {
            number: self.runs,
            user,
            index,
            step: 0,
        }
    }

    /// Returns the place of the recorded user whom this user follows.
    fn recorded(&self, user: u64) -> usize {
        usize::try_from(user % self.recording.users.len() as u64).unwrap_or(0)
    }

    fn event(&mut self, place: usize) -> SyntheticEvent {
        let run = &self.open[place];
        let call = &self.recording.runs[run.index][run.step];
        let recorded = self.recording.users[self.recorded(run.user)].as_str();
        let copy = run.user / self.recording.users.len() as u64;
        let user = if copy == 0 {
            recorded.to_owned()
        } else {
            format!("{recorded}_{copy}")
        };
        let group = usize::try_from(run.user).unwrap_or(0);
        let mut groups = vec![GROUPS[group % GROUPS.len()]];
        if group.is_multiple_of(5) {
            groups.push(GROUPS[(group / 5 + 1) % GROUPS.len()]);
        }
        // Each event has a slot of equal length and happens somewhere inside of it.
        let span = i128::from(self.shape.to) - i128::from(self.shape.from);
        let slot = i128::from(self.made) << 16 | i128::from(self.random.below(1 << 16));
        let since = span * slot / (i128::from(self.shape.events) << 16);
        let at = self.shape.from + i64::try_from(since).unwrap_or(0);
        let extra = u64::from(self.shape.tools).saturating_sub(self.recording.tools as u64);
        // Further tools are variants of the recorded ones: each tool of the recording has as many as it takes.
        let variants = 1 + extra.div_ceil(self.recording.tools as u64);
        let variant = (run.user / 7 + run.index as u64) % variants;
        let tool = if variant == 0 {
            call.tool.clone()
        } else {
            format!("{}_v{variant}", call.tool)
        };
        let own = |text: &str| {
            if copy == 0 {
                text.to_owned()
            } else {
                text.replace(recorded, &user)
            }
        };
        let mut event = SyntheticEvent {
            id: ulid(at, &mut self.random),
            at,
            groups,
            tool,
            model: call.model.clone(),
            result: call.result.clone(),
            resource: call.resource.as_deref().map(own),
            amount: call.amount,
            session: format!("run-{}", run.number),
            arguments: own(&call.arguments),
            user,
        };
        if !self.random.chance(self.shape.repetition) {
            event.resource = Some(ulid(at, &mut self.random)[16..].to_owned());
            event.amount = Some(f64::from(u32::try_from(self.random.below(1 << 31)).unwrap_or(0)) / 100.0);
            event.arguments = anew(&event.arguments, &mut self.random);
        }
        event
    }
}

impl SyntheticEvent {
    /// Calls `each` with the values in the order of the columns of [`schema`].
    pub fn with_values<T>(&self, each: impl FnOnce(&[Value<'_>]) -> T) -> T {
        let is_blocked = self.tool.starts_with("cancel_reservation") && self.result == "error";
        let (action, policies): (_, &[&str]) = if is_blocked {
            ("block", &["pol_cancellations"])
        } else {
            ("allow", &[])
        };
        each(&[
            Value::Text(action),
            Value::Set(policies),
            Value::Text("psv_1"),
            Value::Text("enforce"),
            Value::Text(&self.user),
            Value::Set(&self.groups),
            Value::Text(&self.tool),
            Value::Text(&self.model),
            Value::Text(&self.result),
            self.resource.as_deref().map_or(Value::Missing, Value::Text),
            self.amount.map_or(Value::Missing, Value::Number),
            Value::Text(&self.session),
            Value::Json(&self.arguments),
        ])
    }
}

/// Counts which share of events is distinct.
#[derive(Debug, Default)]
pub struct Census {
    behaviours: HashSet<u64>,
    events: u64,
}

impl Census {
    /// Counts an event: user, tool, result, resource, amount and arguments; not id, instant and session.
    pub fn count(&mut self, event: &SyntheticEvent) {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (
            &event.user,
            &event.tool,
            &event.result,
            &event.resource,
            &event.arguments,
        )
            .hash(&mut hasher);
        event.amount.map(f64::to_bits).hash(&mut hasher);
        self.behaviours.insert(hasher.finish());
        self.events += 1;
    }

    /// Returns how many events are distinct, by a hash of 64 bits, of how many.
    pub fn distinct(&self) -> (u64, u64) {
        (self.behaviours.len() as u64, self.events)
    }
}

/// Returns the document with other digits and other capital letters.
fn anew(arguments: &str, random: &mut Random) -> String {
    if arguments.contains('\\') {
        return arguments.to_owned();
    }
    let mut was_digit = false;
    let mut other = |c: char| {
        let is_first = !std::mem::replace(&mut was_digit, c.is_ascii_digit());
        let (first, count) = match c {
            '0'..='9' if is_first => (b'1', 9),
            '0'..='9' => (b'0', 10),
            'A'..='Z' => (b'A', 26),
            _ => return c,
        };
        char::from(first + u8::try_from(random.below(count)).unwrap_or(0))
    };
    arguments.chars().map(&mut other).collect()
}
