//! The formats of clients' files, all read as one kind of value. What is wrong with a text is not said: words about it would quote it.

use granit_parser::{Event, Parser};
use serde_json::{Map, Value};

/// LIMIT: levels of a YAML document. Ours; JSON and TOML have limits of their own.
const LEVELS: usize = 64;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    /// With comments and commas at the end.
    Jsonc,
    Toml,
    Yaml,
}

/// Returns what a file says; `None` when it is malformed. An empty file says nothing.
pub(crate) fn value(bytes: &[u8], format: Format) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    match format {
        Format::Json => serde_json::from_str(text).ok(),
        Format::Jsonc => serde_json::from_str(&plain(text)).ok(),
        Format::Toml => toml::from_str(text).ok(),
        Format::Yaml => yaml(text),
    }
}

/// Returns a text without comments and without commas before an end.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    // Where the last comma stands, if only blanks came after it.
    let mut comma = None;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('/', Some('/')) => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut last = ' ';
                rest.next();
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                plain.push(' ');
            }
            ('"', _) => {
                comma = None;
                plain.push('"');
                while let Some(c) = rest.next() {
                    plain.push(c);
                    match c {
                        '\\' => plain.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(c);
            }
            _ => {
                if c == ',' {
                    comma = Some(plain.len());
                } else if !c.is_whitespace() {
                    comma = None;
                }
                plain.push(c);
            }
        }
    }
    plain
}

/// Reads one document. Anchors and aliases are refused: they let a small file become a large one.
fn yaml(text: &str) -> Option<Value> {
    let mut parser = Parser::new_from_str(text);
    let mut next = move || parser.next_event()?.ok().map(|(event, _)| owned(event));
    loop {
        match next()? {
            Step::Other => {}
            Step::End => return Some(Value::Object(Map::new())),
            step => {
                let value = node(step, &mut next, 0)?;
                return matches!((next()?, next()?), (Step::Other, Step::End)).then_some(value);
            }
        }
    }
}

enum Step {
    Other,
    End,
    Map,
    MapEnd,
    List,
    ListEnd,
    Scalar(Value),
    Refused,
}

fn owned(event: Event<'_>) -> Step {
    match event {
        Event::StreamEnd => Step::End,
        Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => Step::Other,
        Event::MappingStart(_, 0, None) => Step::Map,
        Event::SequenceStart(_, 0, None) => Step::List,
        Event::MappingEnd => Step::MapEnd,
        Event::SequenceEnd => Step::ListEnd,
        Event::Scalar(text, style, 0, None) => {
            let is_plain = matches!(style, granit_parser::ScalarStyle::Plain);
            Step::Scalar(match text.as_ref() {
                "true" if is_plain => true.into(),
                "false" if is_plain => false.into(),
                "null" | "~" | "" if is_plain => Value::Null,
                text => text.into(),
            })
        }
        _ => Step::Refused,
    }
}

fn node(step: Step, next: &mut dyn FnMut() -> Option<Step>, level: usize) -> Option<Value> {
    if level > LEVELS {
        return None;
    }
    match step {
        Step::Scalar(value) => Some(value),
        Step::List => {
            let mut items = Vec::new();
            loop {
                match next()? {
                    Step::ListEnd => return Some(items.into()),
                    step => items.push(node(step, next, level + 1)?),
                }
            }
        }
        Step::Map => {
            let mut members = Map::new();
            loop {
                match next()? {
                    Step::MapEnd => return Some(members.into()),
                    Step::Scalar(name) => {
                        let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
                        let step = next()?;
                        let value = node(step, next, level + 1)?;
                        if members.insert(name, value).is_some() {
                            return None;
                        }
                    }
                    _ => return None,
                }
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_last_commas_are_no_part_of_a_document() {
        let text = "\u{feff}{ // one\n \"a\": [1, 2, /* three */ ], \"b//\": \"/* \\\" */,}\", }";
        assert_eq!(
            value(text.as_bytes(), Format::Jsonc),
            Some(json!({"a": [1, 2], "b//": "/* \" */,}"}))
        );
        assert_eq!(value(text.as_bytes(), Format::Json), None);
        assert_eq!(value(b"{\"a\": 1,, }", Format::Jsonc), None);
    }

    #[test]
    fn yaml_is_one_document_without_aliases_or_repeated_names() {
        let text = "a:\n  - b: 'true'\n    c: true\n  - [x, ~]\n";
        assert_eq!(
            value(text.as_bytes(), Format::Yaml),
            Some(json!({"a": [{"b": "true", "c": true}, ["x", null]]}))
        );
        for bad in [
            "a: 1\na: 2",
            "a: &x 1\nb: *x",
            "--- 1\n--- 2",
            "a: [",
            "a: !!binary x",
        ] {
            assert_eq!(value(bad.as_bytes(), Format::Yaml), None, "{bad}");
        }
        let deep = "[".repeat(5_000) + &"]".repeat(5_000);
        for format in [Format::Json, Format::Jsonc, Format::Toml, Format::Yaml] {
            assert_eq!(value(deep.as_bytes(), format), None);
        }
        assert_eq!(value(b" \n", Format::Yaml), Some(json!({})));
    }
}
