//! What stands in a cell: values of the API as a person or a spreadsheet reads them.

use super::column::Column;
use provost_words::Timestamp;
use provost_words::visible::{lines_visible, visible};
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
/// A spreadsheet takes a text that begins with one of these for a formula, the wide forms of East Asian keyboards among them.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// What may end a cell for a spreadsheet of another locale, which does not know that the cell is quoted.
const CELL_ENDS: [char; 5] = [';', '\t', '|', '\r', '\n'];

/// How instants are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times {
    /// As the time from now: `in 12 d`, for a person who looks at it now.
    Relative(Timestamp),
    /// As the server says them, for what is kept. What has ended is counted by now.
    Exact(Timestamp),
}

impl Times {
    fn now(self) -> Timestamp {
        match self {
            Self::Relative(now) | Self::Exact(now) => now,
        }
    }

    /// Returns an instant; text that is none as it is.
    pub(super) fn write(self, text: &str) -> String {
        match (self, Timestamp::parse(text)) {
            (Self::Relative(now), Some(at)) => relative(at, now),
            _ => text.to_owned(),
        }
    }
}

/// Returns the text of an item's cell; nothing in it can steer a terminal.
pub(super) fn of_item(item: &Value, column: &Column, times: Times) -> String {
    let raw = raw(column.seen(item), column, times);
    lines_visible(&raw).into_owned()
}

/// Returns the text of an item's cell for a spreadsheet, which must not run it as a formula.
///
/// A quote around the cell would not help: it is gone before the text is looked at. An apostrophe before the text is what
/// spreadsheets themselves write to say that a cell holds text. Numbers of the answer stay numbers, the negative too.
/// Spreadsheets of many locales separate cells by another sign than the comma: what follows such a sign is a text of its own.
pub(super) fn of_spreadsheet(item: &Value, column: &Column, times: Times) -> String {
    // A program that reads the column finds in it what its name says, or nothing.
    let raw = raw(column.value(item), column, times);
    let is_number = column.value(item).is_some_and(Value::is_number);
    if is_number { raw } else { guarded(&raw) }
}

/// Returns the text with an apostrophe before every sign with which a formula could begin.
fn guarded(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len() + 1);
    let mut is_begin = true;
    for (place, sign) in raw.char_indices() {
        // Whitespace is no formula by itself behind another cell: only the sign after it is.
        if is_begin && FORMULA.contains(&sign) && (place == 0 || !sign.is_whitespace()) {
            text.push('\'');
        }
        text.push(sign);
        // A quote may be gone before the text behind it is looked at.
        is_begin = CELL_ENDS.contains(&sign) || (is_begin && sign == '"');
    }
    text
}

fn raw(value: Option<&Value>, column: &Column, times: Times) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) if column.is_time() => times.write(text),
        Some(Value::Array(items)) if is_nested(items) => summary(items, column.member(), times),
        Some(value) => plain(value),
    }
}

/// Returns a value as text on its own, without a column.
pub(super) fn of_value(value: &Value) -> String {
    let text = plain(value);
    match value {
        Value::String(_) => lines_visible(&text).into_owned(),
        _ => visible(&text).into_owned(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn is_nested(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(Value::is_object)
}

/// Returns how many there are and when the next of them expires: `2 tokens, next expires in 12 d`. What was revoked or has
/// expired is counted apart.
fn summary(items: &[Value], name: &str, times: Times) -> String {
    let instant = |item: &Value, member: &str| Timestamp::parse(item.get(member)?.as_str()?);
    let has_ended = |item: &&Value| {
        item.get("revokedAt").is_some_and(|at| !at.is_null())
            || instant(item, "expiresAt").is_some_and(|at| at <= times.now())
    };
    let ended = items.iter().filter(has_ended).count();
    let living = items.iter().filter(|item| !has_ended(item));
    let mut text = counted(items.len() - ended, name);
    let next =
        living.filter_map(|item| Some((instant(item, "expiresAt")?, item.get("expiresAt")?.as_str()?)));
    if let Some((_, at)) = next.min() {
        text = format!("{text}, next expires {}", times.write(at));
    }
    if ended > 0 {
        text = format!("{text}; {ended} ended");
    }
    text
}

/// Returns a number with what it counts, of which the plural is given: `1 report`, `3 policies`.
pub fn counted(count: usize, name: &str) -> String {
    let name = super::flags::kebab(name).replace('-', " ");
    match (count, name.strip_suffix("ies"), name.strip_suffix('s')) {
        (1, Some(stem), _) => format!("1 {stem}y"),
        (1, None, Some(one)) => format!("1 {one}"),
        _ => format!("{count} {name}"),
    }
}

/// Returns an instant as a person says it: `3 min ago`, `in 12 d`. What is left is never said longer than it is.
fn relative(at: Timestamp, now: Timestamp) -> String {
    let ms = at.as_ms().saturating_sub(now.as_ms());
    let secs = ms.saturating_abs() / 1000;
    let (count, unit) = match secs {
        0 => return "now".to_owned(),
        _ if secs < MINUTE => (secs, "s"),
        _ if secs < HOUR => (secs / MINUTE, "min"),
        _ if secs < 2 * DAY => (secs / HOUR, "h"),
        _ if secs < 2 * YEAR => (secs / DAY, "d"),
        _ => (secs / YEAR, "y"),
    };
    if ms < 0 {
        format!("{count} {unit} ago")
    } else {
        format!("in {count} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: &str = "2026-11-26T12:00:00.000Z";

    fn now() -> Timestamp {
        Timestamp::parse(NOW).unwrap()
    }

    #[test]
    fn one_thing_is_said_as_one() {
        for (count, name, said) in [
            (0, "reports", "0 reports"),
            (1, "reports", "1 report"),
            (1, "policies", "1 policy"),
            (2, "policies", "2 policies"),
        ] {
            assert_eq!(counted(count, name), said);
        }
    }

    #[test]
    fn an_instant_is_said_from_now() {
        for (at, said) in [
            (NOW, "now"),
            ("2026-11-26T11:59:59.000Z", "1 s ago"),
            ("2026-11-26T11:56:01.000Z", "3 min ago"),
            ("2026-11-26T12:59:59.999Z", "in 59 min"),
            ("2026-11-25T00:00:00.000Z", "36 h ago"),
            ("2026-12-09T11:59:59.000Z", "in 12 d"),
            ("2024-11-25T00:00:00.000Z", "2 y ago"),
            ("9999-12-31T23:59:59.999Z", "in 7978 y"),
        ] {
            assert_eq!(relative(Timestamp::parse(at).unwrap(), now()), said, "{at}");
        }
        assert_eq!(Times::Relative(now()).write("soon"), "soon");
        assert_eq!(Times::Exact(now()).write(NOW), NOW);
    }

    #[test]
    fn a_list_inside_an_item_is_a_count_with_the_nearest_end() {
        let tokens = json!({ "tokens": [
            { "id": "t_1", "expiresAt": "2027-01-01T00:00:00.000Z" },
            { "id": "t_2", "expiresAt": "2026-12-08T23:00:00.000Z" },
        ]});
        let column = Column::declared("tokens");
        let said = |item: &Value| of_item(item, &column, Times::Relative(now()));
        assert_eq!(said(&tokens), "2 tokens, next expires in 12 d");
        let exact = of_item(&tokens, &column, Times::Exact(now()));
        assert_eq!(exact, "2 tokens, next expires 2026-12-08T23:00:00.000Z");
        // What has ended neither counts nor expires next.
        let ended = json!({ "tokens": [
            { "id": "t_1" },
            { "id": "t_2", "expiresAt": "2026-11-26T11:00:00.000Z" },
            { "id": "t_3", "expiresAt": "2026-12-01T00:00:00.000Z", "revokedAt": "2026-11-01T00:00:00.000Z" },
        ]});
        assert_eq!(said(&ended), "1 token; 2 ended");
        assert_eq!(said(&json!({ "tokens": [] })), "");
        let policies = json!({ "policies": [{ "id": "p" }] });
        let column = Column::declared("policies");
        assert_eq!(of_item(&policies, &column, Times::Exact(now())), "1 policy");
    }

    #[test]
    fn a_spreadsheet_runs_no_cell() {
        let cell = |value: Value| {
            let item = json!({ "a": value });
            of_spreadsheet(&item, &Column::declared("a"), Times::Exact(now()))
        };
        for text in [
            "=1+1", "+1", "-1", "@SUM(A1)", "\ta", "\ra", "\na", "＝1", "＋1", "－1", "＠A",
        ] {
            assert_eq!(cell(json!(text)), format!("'{text}"));
        }
        // A second separator begins a cell as well, and so does a line end in a cell that counts as not quoted.
        for (text, safe) in [
            ("x;=1", "x;'=1"),
            ("x\t+1", "x\t'+1"),
            ("x|-1", "x|'-1"),
            ("x;＠A;=2", "x;'＠A;'=2"),
            ("x;\"=1;", "x;\"'=1;"),
            ("x\r\n=1", "x\r\n'=1"),
            ("\t=1", "'\t'=1"),
            ("=1;=1", "'=1;'=1"),
            ("x;'=1", "x;'=1"),
            ("x;y=1|z-2", "x;y=1|z-2"),
        ] {
            assert_eq!(cell(json!(text)), safe);
        }
        assert_eq!(cell(json!(["=1", "b"])), "'=1, b");
        assert_eq!(cell(json!(-5)), "-5");
        assert_eq!(cell(json!("a=b")), "a=b");
        assert_eq!(cell(json!(null)), "");
    }
}
