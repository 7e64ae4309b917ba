//! The recorded events of the benchmark: a recording of real tool calls, grown to any size and sealed.

use super::measure::count;
use super::policies::{LABELS, SERVERS, World};
use provost_backtest::record::{self, Decision, Mode, OwnedRecord};
use provost_history::synthetic::{Recording, Shape, SyntheticEvent, mixed};
use provost_history::{Recorder, Sealer, Storage, Value};
use provost_policy::{Action, Event, Field, Occasion, Symbols, Value as Attribute};
use std::collections::HashSet;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub const DAY_MS: i64 = 86_400_000;
pub const FROM: i64 = 1_780_000_000_000;
pub const DAYS: i64 = 90;
pub const SEED: u64 = 20_260_101;
const TOOLS: u32 = 40;
/// Into so many parts the time is divided: the events do not depend on the number of threads.
const PARTS: u64 = 4;

/// What is grown.
#[derive(Clone, Copy)]
pub struct Growth {
    pub events: u64,
    pub users: u32,
    /// Whether every event is made distinct: by its number of tokens, and its arguments are made anew.
    pub distinct: Distinct,
}

/// In what events differ that are no repetitions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Distinct {
    /// In nothing: calls repeat the recorded ones, whose numbers of tokens follow from their arguments.
    Nothing,
    /// In the number of tokens.
    Tokens,
    /// In the number of tokens and the arguments.
    Arguments,
}

/// What was written.
pub struct WrittenHistory {
    pub names: Vec<String>,
    pub bytes: u64,
    /// Events that differ in what policies of the benchmark can read.
    pub distinct: u64,
    /// Events that differ in the attributes that are part of the behaviour.
    pub behaviours: u64,
}

/// Grows the recording, by several threads, each for its part of the time, and seals it.
pub fn write(
    recording: &Recording,
    growth: Growth,
    storage: &dyn Storage,
    prefix: &str,
    threads: u64,
) -> Result<WrittenHistory, Box<dyn Error>> {
    let seen: [Mutex<HashSet<u64>>; 2] = Default::default();
    let bytes = AtomicU64::new(0);
    let next = AtomicU64::new(0);
    let work = || -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS {
                return Ok(names);
            }
            let (made, written) = write_part(recording, growth, storage, prefix, part, &seen)
                .map_err(|cause| cause.to_string())?;
            names.extend(made);
            bytes.fetch_add(written, Ordering::Relaxed);
        }
    };
    let made: Result<Vec<Vec<String>>, String> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("a thread"))
            .collect()
    });
    let mut names: Vec<String> = made?.into_iter().flatten().collect();
    names.sort_unstable();
    let [distinct, behaviours] = seen.map(|seen| seen.into_inner().expect("a lock").len() as u64);
    Ok(WrittenHistory {
        names,
        bytes: bytes.into_inner(),
        distinct,
        behaviours,
    })
}

/// Returns the part of a history.
fn shape(growth: Growth, part: u64) -> Result<Shape, Box<dyn Error>> {
    let span = DAYS * DAY_MS / i64::try_from(PARTS)?;
    let from = FROM + span * i64::try_from(part)?;
    Ok(Shape {
        events: growth.events * (part + 1) / PARTS - growth.events * part / PARTS,
        users: growth.users,
        tools: TOOLS,
        repetition: if growth.distinct == Distinct::Arguments {
            0.0
        } else {
            1.0
        },
        from,
        to: from + span,
        seed: SEED + part,
    })
}

fn write_part(
    recording: &Recording,
    growth: Growth,
    storage: &dyn Storage,
    prefix: &str,
    part: u64,
    seen: &[Mutex<HashSet<u64>>; 2],
) -> Result<(Vec<String>, u64), Box<dyn Error>> {
    let shape = shape(growth, part)?;
    let schema = record::schema();
    let mut sealer = Sealer::new(schema.clone());
    let (mut names, mut bytes) = (Vec::new(), 0);
    let mut seal = |sealer: Sealer| -> provost_history::Result<()> {
        let name = format!("{prefix}-{part}-{:03}.parquet", names.len());
        bytes += sealer.seal(storage, &name)?.size_bytes;
        names.push(name);
        Ok(())
    };
    let mut grown = recording.grow(shape)?.zip(0_u64..).peekable();
    while grown.peek().is_some() {
        let mut recorder = Recorder::new(schema.clone());
        // A table for each chunk: texts of distinct events are not kept.
        let mut symbols = Symbols::new();
        let mut hashes = [Vec::new(), Vec::new()];
        for (event, number) in grown.by_ref().take(5_000) {
            let owned = owned(
                &event,
                number + part * growth.events,
                growth.distinct,
                &mut symbols,
            );
            hashes[0].push(hash(&owned, true));
            hashes[1].push(hash(&owned, false));
            record::put(&owned, &event.id, &mut recorder)?;
        }
        for (seen, hashes) in seen.iter().zip(hashes) {
            seen.lock().expect("a lock").extend(hashes);
        }
        let batch = recorder.finish()?;
        if !sealer.fits(&batch) {
            seal(std::mem::replace(&mut sealer, Sealer::new(schema.clone())))?;
        }
        sealer.add(&batch)?;
    }
    seal(sealer)?;
    Ok((names, bytes))
}

/// Returns the event as the gateway in front of these tools would have recorded it.
fn owned(grown: &SyntheticEvent, number: u64, distinct: Distinct, symbols: &mut Symbols) -> OwnedRecord {
    grown.with_values(|values| {
        let text = |at: usize| match values[at] {
            Value::Text(text) | Value::Json(text) => text,
            _ => "",
        };
        let (user, tool, model, arguments) = (text(4), text(6), text(7), text(12));
        let mut event = Event::new(grown.at, Occasion::PreTool);
        let mut set = |field: &str, value: Attribute| {
            event.set(Field::named(field).expect("a field of the catalogue"), value);
        };
        set("identity.user_id", Attribute::Text(symbols.intern(user)));
        if let Value::Set(groups) = values[5] {
            set(
                "identity.group_ids",
                Attribute::Set(symbols.intern_set(groups.iter().copied())),
            );
        }
        set("tool.id", Attribute::Text(symbols.intern(tool)));
        set("llm.model", Attribute::Text(symbols.intern(model)));
        set("tool.input", Attribute::Text(symbols.intern(arguments)));
        let kind = usize::try_from(mixed(tool.bytes().map(u64::from).sum()) % 16).unwrap_or(0);
        set(
            "mcp.server_id",
            Attribute::Text(symbols.intern(SERVERS[kind % 4])),
        );
        let labels = &LABELS[kind / 4..(kind / 4 + kind % 3).min(4)];
        set(
            "classification.sensitivity_labels",
            Attribute::Set(symbols.intern_set(labels.iter().copied())),
        );
        let tokens = match distinct {
            Distinct::Nothing => 100 + 25 * arguments.len() as u64,
            Distinct::Tokens | Distinct::Arguments => 1 + mixed(number) % 2_000_000,
        };
        set("llm.input_tokens", Attribute::Number(count(tokens)));
        let mut owned = OwnedRecord::of(&event, symbols);
        owned.source = Some("gateway".into());
        owned.session = Some(text(11).into());
        owned.decision = Some(Decision {
            action: Action::named(text(0)).unwrap_or(Action::Allow),
            policy_ids: match values[1] {
                Value::Set(ids) => ids.iter().map(|id| (*id).to_owned()).collect(),
                _ => Vec::new(),
            },
            policy_set_version: Some("psv_01JAAAAAAAAAAAAAAAAAAAAAAA".into()),
            mode: Mode::Enforce,
            basis: None,
        });
        owned
    })
}

/// Returns a hash of what policies can read of an event: all, or what is part of its behaviour.
fn hash(event: &OwnedRecord, all: bool) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    for (field, attribute) in event.attributes() {
        if all || !matches!(field.name(), "llm.input_tokens" | "tool.input") {
            field.hash(&mut hasher);
            match attribute {
                record::Attribute::Text(text) => text.hash(&mut hasher),
                record::Attribute::Set(set) => set.hash(&mut hasher),
                record::Attribute::Number(number) => number.to_bits().hash(&mut hasher),
                record::Attribute::Boolean(is) => is.hash(&mut hasher),
            }
        }
    }
    hasher.finish()
}

/// Returns the first events of a history, as policies judge them.
pub fn sample(
    recording: &Recording,
    growth: Growth,
    count: u64,
    symbols: &mut Symbols,
) -> Result<Vec<Event>, Box<dyn Error>> {
    let events = recording.grow(shape(growth, 0)?)?.zip(0..count);
    Ok(events
        .map(|(event, number)| owned(&event, number, growth.distinct, symbols).event(symbols))
        .collect())
}

/// Returns what the first events are about.
pub fn world(recording: &Recording, users: u32) -> Result<World, Box<dyn Error>> {
    let shape = Shape {
        events: 20_000,
        users,
        tools: TOOLS,
        repetition: 1.0,
        from: FROM,
        to: FROM + DAY_MS,
        seed: SEED,
    };
    let mut lists: [Vec<String>; 3] = Default::default();
    for event in recording.grow(shape)? {
        event.with_values(|values| {
            let mut put = |list: usize, text: &str| lists[list].push(text.to_owned());
            if let (Value::Text(tool), Value::Text(user), Value::Set(groups)) =
                (values[6], values[4], values[5])
            {
                put(0, tool);
                put(1, user);
                for group in groups {
                    put(2, group);
                }
            }
        });
    }
    for list in &mut lists {
        list.sort_unstable();
        list.dedup();
    }
    let [tools, users, groups] = lists;
    Ok(World { tools, users, groups })
}
