//! Tables that fit the terminal. Nothing in a cell can steer it.

use super::flags::kebab;
use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};
use provost_words::visible::{lines_visible, visible};
use serde_json::Value;

/// What a person looks for first.
const FIRST: [&str; 4] = ["id", "name", "status", "outcome"];
/// What is the same in every row, or of least use in a narrow table.
const LAST: [&str; 4] = ["description", "createdAt", "updatedAt", "organizationId"];
/// Columns narrower than this are no pleasure to read.
const MIN_WIDTH: usize = 10;
/// Words up to this length, such as ids and times, are not broken: they are copied with a double click.
const WORD_WIDTH: usize = 40;

/// Returns the table of a list, and the names of the columns for which there was no room.
pub(super) fn list(items: &[Value], width: Option<u16>) -> (String, Vec<String>) {
    let all = columns(items);
    let needed: Vec<usize> = all.iter().map(|column| least_width(column, items)).collect();
    let room = width.map_or(usize::MAX, usize::from);
    let mut used = 0;
    let fits = needed.iter().take_while(|needed| {
        used += **needed + 2;
        used <= room
    });
    // The first column is shown whatever its width.
    let count = fits.count().max(1);
    let mut table = blank(width);
    table.set_header(all[..count].iter().map(|column| title(column)));
    for item in items {
        table.add_row(
            all[..count]
                .iter()
                .map(|column| item.get(column).map_or_else(String::new, cell)),
        );
    }
    let minimum = |width: &usize| {
        let width = u16::try_from(*width).unwrap_or(u16::MAX);
        ColumnConstraint::LowerBoundary(Width::Fixed(width.saturating_add(2)))
    };
    if width.is_some() {
        table.set_constraints(needed[..count].iter().map(minimum));
    }
    (text(&table), all[count..].to_vec())
}

/// Returns the table of one object: a row per member, members of members with dotted names.
pub(super) fn object(object: &Value, width: Option<u16>) -> String {
    let mut rows = Vec::new();
    flatten(unwrapped(object), String::new(), &mut rows);
    let mut table = blank(width);
    for (name, value) in rows {
        table.add_row([visible(&name).into_owned(), value]);
    }
    text(&table)
}

/// Returns a table with these heads and cells, whatever they hold.
pub fn plain(heads: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = blank(width);
    table.set_header(heads);
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell).into_owned()));
    }
    text(&table)
}

fn blank(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    match width {
        Some(width) => table
            .set_width(width)
            .set_content_arrangement(ContentArrangement::Dynamic),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table
}

fn text(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// Returns the members that at least one item has and that fit a cell, in the order of their use.
fn columns(items: &[Value]) -> Vec<String> {
    let mut names: Vec<&String> = Vec::new();
    for (name, value) in items.iter().filter_map(Value::as_object).flatten() {
        if !value.is_null() && !names.contains(&name) {
            names.push(name);
        }
    }
    let is_nested = |name: &str| {
        items
            .iter()
            .filter_map(|item| item.get(name))
            .any(|value| match value {
                Value::Object(_) => true,
                Value::Array(values) => values.iter().any(|v| v.is_object() || v.is_array()),
                _ => false,
            })
    };
    let is_list = |name: &str| {
        items
            .iter()
            .any(|item| item.get(name).is_some_and(Value::is_array))
    };
    let rank = |name: &str| {
        if let Some(place) = FIRST.iter().position(|first| *first == name) {
            return place;
        }
        let last = LAST.iter().position(|last| *last == name);
        let plain = if is_nested(name) {
            12
        } else {
            10 + usize::from(is_list(name))
        };
        last.map_or(plain, |place| 20 + place)
    };
    names.sort_by_key(|name| (rank(name), name.as_str()));
    names.into_iter().cloned().collect()
}

fn least_width(column: &str, items: &[Value]) -> usize {
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| item.get(column))
        .map(cell)
        .collect();
    let longest = |width: fn(&str) -> usize| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let natural = longest(|text| text.lines().map(|line| line.chars().count()).max().unwrap_or(0));
    let word = longest(|text| {
        text.split_whitespace()
            .map(|word| word.chars().count())
            .max()
            .unwrap_or(0)
    });
    let heading = title(column).split(' ').map(str::len).max().unwrap_or(0);
    natural.min(word.clamp(MIN_WIDTH, WORD_WIDTH)).max(heading)
}

/// `permissionRole` reads `PERMISSION ROLE`.
fn title(column: &str) -> String {
    visible(&kebab(column)).replace('-', " ").to_uppercase()
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
        plain => rows.push((name, cell(plain))),
    }
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => return lines_visible(text).into_owned(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(cell).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    visible(&text).into_owned()
}
