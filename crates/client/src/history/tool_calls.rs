//! Recordings of what agents called: one call a line, in order, without times.
//!
//! ```text
//! {"task":15,"trial":0,"step":2,"user":"james","model":"gpt-4o","tool":"cancel","arguments":{…},"result":"ok"}
//! ```
//!
//! Who imports them says when they were: spread evenly over a time, or one millisecond after the other. The same
//! lines and the same flags are the same events, to the byte.

use provost_words::document::exact_document;
use provost_words::free_text::free_text;
use provost_words::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

const DAY_MS: i64 = 86_400_000;

/// When the calls were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Evenly over `span_ms` up to `end`, of so many lines.
    Spread {
        end: Timestamp,
        span_ms: i64,
        lines: u64,
    },
    /// The first at this instant, each next a millisecond later.
    From(Timestamp),
}

/// One line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    task: Value,
    trial: Value,
    step: Value,
    user: String,
    model: Option<String>,
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

impl Times {
    /// Returns when the call at this place was, counted from 0.
    fn at(self, place: u64) -> Timestamp {
        match self {
            Self::From(first) => first.plus_ms(i64::try_from(place).unwrap_or(i64::MAX)),
            Self::Spread { end, span_ms, lines } => {
                let after = i128::from(span_ms) * i128::from(place) / i128::from(lines.max(1));
                let after = i64::try_from(after).unwrap_or(span_ms);
                end.plus_ms(-span_ms).plus_ms(after)
            }
        }
    }
}

/// Returns what turns each line into an event, in the order of the file.
pub fn converter(times: Times) -> impl FnMut(&[u8]) -> Result<Vec<u8>, String> + Send {
    let mut place = 0;
    move |line| {
        // A line that is refused keeps its place in time.
        let at = times.at(place);
        place += 1;
        event(line, at).map(|event| event.to_string().into_bytes())
    }
}

fn event(line: &[u8], at: Timestamp) -> Result<Value, String> {
    let call: Call<'_> = serde_json::from_slice(line).map_err(|error| format!("no tool call: {error}"))?;
    let [task, trial, step] = [("task", &call.task), ("trial", &call.trial), ("step", &call.step)].map(
        |(name, value)| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(format!("no tool call: {name} is neither a number nor a text")),
        },
    );
    let session = format!("{}/{}", task?, trial?);
    let call_id = format!("{session}/{}", step?);
    let mut attributes = Map::new();
    let arguments = call
        .arguments
        .map(|written| free_text(Some(&call.tool), content(written)));
    attributes.insert("identity.user_id".into(), call.user.into());
    attributes.insert("tool.id".into(), call.tool.into());
    for (name, value) in [
        ("tool.input", arguments),
        ("llm.model", call.model.map(Value::from)),
        ("tool.result", call.result.map(content)),
    ] {
        // Null is nothing, as in an event.
        if let Some(value) = value.filter(|value| !value.is_null()) {
            attributes.insert(name.into(), value);
        }
    }
    Ok(json!({
        "id": call_id, "at": at, "occasion": "pre_tool", "session": session, "callId": call_id,
        "attributes": attributes,
    }))
}

/// Returns content as it is sent: a document about which readers of JSON differ as its text, so that none of them is
/// believed.
fn content(written: &RawValue) -> Value {
    let text = written.get();
    let simple = || {
        serde_json::from_str(text)
            .ok()
            .filter(|value: &Value| !value.is_object() && !value.is_array())
    };
    let read = exact_document(text).or_else(simple);
    read.unwrap_or_else(|| text.into())
}

/// Reads `90d`.
pub fn span(text: &str) -> Result<i64, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    match days.filter(|days| (1..=3650).contains(days)) {
        Some(days) => Ok(i64::from(days) * DAY_MS),
        None => Err("a span is a number of days such as 90d, 3650d at most".to_owned()),
    }
}

/// Returns the beginning of the day: the default end of a spread, so that the same command of the same day makes
/// the same events.
pub fn midnight(now: Timestamp) -> Timestamp {
    Timestamp::from_ms(now.as_ms().div_euclid(DAY_MS) * DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"task":15,"trial":0,"step":2,"user":"james","model":"gpt-4o","tool":"cancel","arguments":{"id":"GV1"},"result":"ok"}"#;

    fn converted(line: &str) -> Result<Value, String> {
        event(line.as_bytes(), Timestamp::EPOCH)
    }

    #[test]
    fn a_call_becomes_an_event_before_the_tool() {
        assert_eq!(
            converted(LINE).unwrap(),
            json!({
                "id": "15/0/2", "at": "1970-01-01T00:00:00.000Z", "occasion": "pre_tool", "session": "15/0",
                "callId": "15/0/2",
                "attributes": { "identity.user_id": "james", "tool.id": "cancel", "tool.input": { "id": "GV1" },
                    "llm.model": "gpt-4o", "tool.result": "ok" },
            })
        );
        let bare = converted(
            r#"{"task":"a","trial":1,"step":0,"user":"u","tool":"t","arguments":null,"result":null}"#,
        );
        assert_eq!(
            bare.unwrap()["attributes"],
            json!({ "identity.user_id": "u", "tool.id": "t" })
        );
    }

    #[test]
    fn a_patch_is_a_member_of_its_input_and_other_texts_stay() {
        let input = |tool: &str| {
            let line = json!({"task": 1, "trial": 0, "step": 2, "user": "u", "model": null, "tool": tool,
                "arguments": "*** Begin Patch", "result": null});
            converted(&line.to_string()).unwrap()["attributes"]["tool.input"].clone()
        };
        assert_eq!(input("apply_patch"), json!({ "input": "*** Begin Patch" }));
        assert_eq!(input("shell"), json!("*** Begin Patch"));
    }

    #[test]
    fn arguments_about_which_readers_differ_stay_a_text() {
        let input = |arguments: &str| {
            let line = format!(
                r#"{{"task":1,"trial":0,"step":2,"user":"u","model":null,"tool":"t","arguments":{arguments},"result":7}}"#
            );
            converted(&line).unwrap()["attributes"]["tool.input"].clone()
        };
        for text in [
            r#"{"command":"ls","command":"rm"}"#,
            r#"{"n":1e999}"#,
            r#"{"a":"\ud800"}"#,
            r#"[{"a":1,"a":1}]"#,
        ] {
            assert_eq!(input(text), json!(text));
        }
        assert_eq!(
            input(r#"{"n":9007199254740993}"#),
            json!({ "n": 9_007_199_254_740_993_i64 })
        );
        assert_eq!(input(r#""ls -l""#), json!("ls -l"));
        assert_eq!(input("[1]"), json!([1]));
        assert_eq!(input("null"), Value::Null);
    }

    #[test]
    fn what_is_no_call_is_refused_with_a_reason() {
        for line in [
            "",
            "x",
            "[]",
            "{}",
            r#"{"task":1,"trial":0,"step":2,"user":"u"}"#,
            r#"{"task":[],"trial":0,"step":2,"user":"u","tool":"t"}"#,
            r#"{"task":1,"trial":0,"step":2,"user":"u","tool":"t","more":1}"#,
        ] {
            assert!(converted(line).unwrap_err().starts_with("no tool call"), "{line}");
        }
    }

    #[test]
    fn calls_are_spread_evenly_in_order_up_to_the_end() {
        let end = Timestamp::parse("2026-11-20T00:00:00Z").unwrap();
        let times = Times::Spread {
            end,
            span_ms: span("90d").unwrap(),
            lines: 1164,
        };
        assert_eq!(times.at(0).to_string(), "2026-08-22T00:00:00.000Z");
        assert_eq!(times.at(582).to_string(), "2026-10-06T00:00:00.000Z");
        assert!(times.at(1163) < end && (0..1163).all(|place| times.at(place) < times.at(place + 1)));
        assert_eq!(Times::From(end).at(5), end.plus_ms(5));
    }

    #[test]
    fn a_refused_line_moves_no_other() {
        let mut convert = converter(Times::From(Timestamp::EPOCH));
        assert!(convert(b"x").is_err());
        let second = String::from_utf8(convert(LINE.as_bytes()).unwrap()).unwrap();
        assert!(second.contains("1970-01-01T00:00:00.001Z"), "{second}");
    }

    #[test]
    fn a_span_is_a_number_of_days() {
        assert_eq!(span("1d"), Ok(DAY_MS));
        for text in ["", "90", "0d", "-1d", "3651d", "1h", "d"] {
            assert!(span(text).is_err(), "{text}");
        }
        let noon = Timestamp::parse("2026-11-20T12:00:00Z").unwrap();
        assert_eq!(midnight(noon).to_string(), "2026-11-20T00:00:00.000Z");
    }
}
