//! Which MCP servers recorded events name, and whose: what was used is told to whoever knows what is configured.
//!
//! Imported events are left out: somebody tells of them, and this server did not see them. A call that was decided about and that
//! telemetry tells of is one event here too (HS-16).

use provost_areas_platform::announcements::{ServerUse, ServersUsed, UseWitness};
use provost_backtest::record::{self, DECISIONS, Imports, OTLP, is_device};
use provost_history::{Batch, Column, Entry};
use provost_kernel::{Timestamp, id};
use provost_policy::Field;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

/// Units: milliseconds.
const DAY_MS: i64 = 24 * 3_600 * 1_000;
/// LIMIT: servers of people that one count tells of. Ours: a count is a minute, and whoever listens writes a row for each.
const USES: usize = 500;
/// LIMIT: of these, servers that devices alone tell of: they say what they like, and room is left for what was seen. Ours.
const USES_OF_DEVICES: usize = 100;
/// LIMIT: characters of a name that is told; a longer one is no name. Ours, as of the values of attributes.
const CHARACTERS: usize = 128;

/// A day, who witnesses, a user and a name.
type UseKey = (i64, UseWitness, Option<String>, String);

/// How often, since when and until when.
#[derive(Clone, Copy)]
struct Span {
    events: i64,
    first_ms: i64,
    last_ms: i64,
}

impl Span {
    fn join(&mut self, other: Self) {
        self.events += other.events;
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
    }
}

/// What events say of servers. By days: what came late is told apart from what happens now.
#[derive(Default)]
pub struct Uses(BTreeMap<UseKey, Span>);

impl Uses {
    /// Adds what the events of a chunk say that happened within days.
    pub fn add(&mut self, batch: &Batch, days: RangeInclusive<i64>) {
        let column = |at: usize| batch.columns.get(at);
        let [source, imported] = Imports::positions().map(column);
        let [server, user, gateway] = [Field::MCP_SERVER, Field::USER, Field::MCP_ENDPOINT]
            .map(|field| column(record::position(field)));
        let (Some(source), Some(imported), Some(server), Some(user), Some(gateway)) =
            (source, imported, server, user, gateway)
        else {
            return;
        };
        let Ok(imports) = Imports::new([source, imported]) else {
            return;
        };
        let code = |column: &Column, row: usize| column.codes.get(row).copied().unwrap_or(0);
        let mut spans: HashMap<(i64, u32, u32, u32, bool), Span> = HashMap::new();
        for (row, at_ms) in batch.at.iter().copied().enumerate() {
            let (named, from) = (code(server, row), code(source, row));
            let day = at_ms.div_euclid(DAY_MS);
            if named == 0 || !days.contains(&day) || imports.is_imported([from, code(imported, row)]) {
                continue;
            }
            let one = Span {
                events: 1,
                first_ms: at_ms,
                last_ms: at_ms,
            };
            let key = (day, named, code(user, row), from, code(gateway, row) > 0);
            spans.entry(key).and_modify(|span| span.join(one)).or_insert(one);
        }
        for ((day, named, whose, from, is_gateway), span) in spans {
            let witness = match text(source, from).as_deref() {
                Some(DECISIONS) if is_gateway => UseWitness::Gateway,
                Some(DECISIONS) => UseWitness::Hook,
                Some(OTLP) => UseWitness::Telemetry,
                Some(device) if is_device(device) => UseWitness::Device,
                _ => continue,
            };
            let name = text(server, named).filter(|name| (1..=CHARACTERS).contains(&name.chars().count()));
            let Some(name) = name else { continue };
            // A word that names no record is somebody's name, which is not kept.
            let user = text(user, whose).filter(|user| id::parse("usr", user).is_some());
            self.0
                .entry((day, witness, user, name))
                .and_modify(|other| other.join(span))
                .or_insert(span);
        }
    }

    /// Returns what is told of it: what most events say first, as far as there is room.
    pub fn told(self) -> ServersUsed {
        let mut all: Vec<(UseKey, Span)> = self.0.into_iter().collect();
        all.sort_by_key(|(_, span)| std::cmp::Reverse(span.events));
        let count = all.len();
        let mut of_devices = 0;
        all.retain(|((_, by, _, _), _)| {
            of_devices += usize::from(*by == UseWitness::Device);
            *by != UseWitness::Device || of_devices <= USES_OF_DEVICES
        });
        let not_kept = count - all.len().min(USES);
        let told = all.into_iter().take(USES);
        let uses = told.map(|((_, by, user, name), span)| ServerUse {
            by,
            user,
            name,
            events: span.events,
            first_at: Timestamp::from_ms(span.first_ms),
            last_at: Timestamp::from_ms(span.last_ms),
        });
        ServersUsed {
            uses: uses.collect(),
            not_kept: i64::try_from(not_kept).unwrap_or(i64::MAX),
        }
    }
}

fn text(column: &Column, code: u32) -> Option<String> {
    match column.dictionary.entry(code) {
        Ok(Entry::Text(text)) => Some(text.to_owned()),
        _ => None,
    }
}
