//! Tables that fit the terminal. Nothing in a cell can steer it.

use super::cell::{self, Times};
use super::column::Column;
use super::layout::{self, Cell, Colour};
use crate::directory::table::write;
use provost_words::visible::visible;
use serde_json::Value;

/// What a person looks for first in one object.
const FIRST: [&str; 4] = ["id", "name", "status", "outcome"];
/// Members that say how something is.
const STATES: [&str; 4] = ["status", "state", "decision", "outcome"];
/// Their words for what is as it should be, what is on its way, and what is stopped.
const GOOD: [&str; 9] = [
    "active",
    "allow",
    "allowed",
    "applied",
    "available",
    "installed",
    "succeeded",
    "success",
    "verified",
];
const OPEN: [&str; 8] = [
    "canceled",
    "drifted",
    "log",
    "pending",
    "pending_cleanup",
    "queued",
    "require_approval",
    "running",
];
const BAD: [&str; 11] = [
    "archived",
    "block",
    "deny",
    "denied",
    "disabled",
    "error",
    "failed",
    "refused",
    "revoked",
    "suspended",
    "withdrawn",
];

/// How a list is shown.
pub(super) struct View {
    pub(super) times: Times,
    pub(super) colours: bool,
    /// Columns of the terminal.
    pub(super) width: Option<u16>,
    /// Shows every column, also where it has no room or is empty.
    pub(super) whole: bool,
}

/// Returns the table of a list, and the names of the columns for which there was no room.
pub(super) fn list(items: &[Value], columns: &[Column], view: &View) -> (String, Vec<String>) {
    let is_seen = |column: &&Column| view.whole || items.iter().any(|item| column.seen(item).is_some());
    let columns: Vec<&Column> = columns.iter().filter(is_seen).collect();
    let heads = columns.iter().map(|column| Cell::from(column.title())).collect();
    let row = |item: &Value| columns.iter().map(|column| cell_of(item, column, view)).collect();
    let mut rows: Vec<Vec<Cell>> = std::iter::once(heads).chain(items.iter().map(row)).collect();
    if view.whole {
        return (layout::text(&rows, None), Vec::new());
    }
    let count = layout::fitting(&rows, view.width);
    for row in &mut rows {
        row.truncate(count);
    }
    let left_out = columns.iter().skip(count).map(|column| column.path().to_owned());
    (layout::text(&rows, view.width), left_out.collect())
}

fn cell_of(item: &Value, column: &Column, view: &View) -> Cell {
    let text = cell::of_item(item, column, view.times);
    let colour = (view.colours && STATES.contains(&column.member())).then(|| colour(&text));
    Cell {
        text,
        colour: colour.flatten(),
    }
}

fn colour(word: &str) -> Option<Colour> {
    let is = |words: &[&str]| words.contains(&word);
    match word {
        _ if is(&GOOD) => Some(Colour::Green),
        _ if is(&OPEN) => Some(Colour::Yellow),
        _ if is(&BAD) => Some(Colour::Red),
        _ => None,
    }
}

/// Returns the list as RFC 4180 has it, under the names of its columns.
pub(super) fn csv(items: &[Value], columns: &[Column], times: Times) -> Vec<u8> {
    let mut bytes = Vec::new();
    let names: Vec<String> = columns.iter().map(|column| column.path().to_owned()).collect();
    write(&names, &mut bytes);
    for item in items {
        let row = columns
            .iter()
            .map(|column| cell::of_spreadsheet(item, column, times));
        write(&row.collect::<Vec<_>>(), &mut bytes);
    }
    bytes
}

/// Returns the table of one object: a row per member, members of members with dotted names.
pub(super) fn object(object: &Value, width: Option<u16>) -> String {
    let mut rows = Vec::new();
    flatten(unwrapped(object), String::new(), &mut rows);
    let row = |(name, value): (String, String)| vec![Cell::from(visible(&name).into_owned()), value.into()];
    layout::text(&rows.into_iter().map(row).collect::<Vec<_>>(), width)
}

/// Returns facts about one thing, each with its name before it.
pub(super) fn facts(rows: &[(String, String)], width: Option<u16>) -> String {
    let row = |(name, value): &(String, String)| {
        let text = |text: &str| Cell::from(visible(text).into_owned());
        vec![text(name), text(value)]
    };
    layout::text(&rows.iter().map(row).collect::<Vec<_>>(), width)
}

/// Returns a table with these heads and cells, whatever they hold.
pub fn plain(heads: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let heads = heads.iter().map(|head| Cell::from((*head).to_owned())).collect();
    let row = |row: &Vec<String>| row.iter().map(|text| visible(text).into_owned().into()).collect();
    let rows: Vec<Vec<Cell>> = std::iter::once(heads).chain(rows.iter().map(row)).collect();
    layout::text(&rows, width)
}

/// `{"serviceAccount": {…}}` says nothing more than what stands inside.
fn unwrapped(object: &Value) -> &Value {
    match object.as_object() {
        Some(members) if members.len() == 1 => members.values().find(|v| v.is_object()).unwrap_or(object),
        _ => object,
    }
}

fn flatten(value: &Value, name: String, rows: &mut Vec<(String, String)>) {
    let inner = |member: &str| {
        if name.is_empty() {
            member.to_owned()
        } else {
            format!("{name}.{member}")
        }
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| {
                FIRST
                    .iter()
                    .position(|first| first == name)
                    .unwrap_or(FIRST.len())
            });
            for (member, value) in members {
                flatten(value, inner(member), rows);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (place, item) in items.iter().enumerate() {
                flatten(item, inner(&place.to_string()), rows);
            }
        }
        plain => rows.push((name, cell::of_value(plain))),
    }
}
