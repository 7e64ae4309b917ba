//! The formats of clients' files, all read as one kind of value. What is wrong with a text is not said: words about it would quote it.
//!
//! INVARIANT IV-5: no document takes more memory than a fixed part of what the agent has, whatever stands in it: what would is refused
//! before a tree is made of it.

mod cost;
mod head;

use crate::disk::{Fault, MAX_FILE};
use cost::{Cost, NODE, OBJECT, fits_json, takes_toml};
use granit_parser::{Event, Parser};
use serde_json::{Map, Value};

/// LIMIT: levels of a YAML document. Ours; JSON has a limit of its own.
const LEVELS: usize = 64;
/// LIMIT: levels that a TOML document can have. Ours. Its parser allows 80 brackets and 80 parts of a key in each, so that a small file
/// has 6 400.
const TOML_LEVELS: usize = 128;

/// LIMIT: bytes of a TOML and of a YAML document. Ours: their parsers take more for a byte than that of JSON does.
const MAX_SLOW: u64 = 256 << 10;
/// How often time is asked for, in events of YAML.
const ASKED: usize = 256;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    /// With comments and commas at the end.
    Jsonc,
    Toml,
    Yaml,
    /// The head of a text: YAML between two lines of three hyphens.
    Head,
}

impl Format {
    /// Returns how many bytes of a file are read.
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::Json | Self::Jsonc => MAX_FILE,
            Self::Toml | Self::Yaml | Self::Head => MAX_SLOW,
        }
    }
}

/// Returns what a file says.
///
/// Errors: malformed; too large, where more stands in it than is kept; truncated, where time is up.
pub(crate) fn value(bytes: &[u8], format: Format, is_over: &dyn Fn() -> bool) -> Result<Value, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|_| Fault::Malformed)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match format {
        Format::Json => json(text),
        Format::Jsonc => json(&plain(text)),
        Format::Toml => {
            is_small(text)?;
            toml::from_str(text).map_err(|_| Fault::Malformed)
        }
        Format::Yaml => yaml(text, is_over),
        Format::Head => head::value(text, is_over),
    }
}

fn json(text: &str) -> Result<Value, Fault> {
    if !fits_json(text) {
        return Err(Fault::TooLarge);
    }
    serde_json::from_str(text).map_err(|_| Fault::Malformed)
}

/// Looks at a TOML text before a value is made of it: the value may have no more than so many levels, because what is deeper would overflow
/// the stack of who reads it and of who drops it, and take no more than so much memory. Tokens are those of the parser; a bracket that does
/// not fit is too deep.
///
/// Errors: malformed, too large.
fn is_small(text: &str) -> Result<(), Fault> {
    let mut cost = Cost::default();
    let (mut open, mut deepest, mut parts, mut longest) = (Vec::new(), 0, 1_usize, 1);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut end = first.len_utf8();
        if !takes_toml(&mut cost, first) {
            return Err(Fault::TooLarge);
        }
        match first {
            '[' | '{' => {
                open.push(if first == '[' { ']' } else { '}' });
                deepest = deepest.max(open.len());
            }
            ']' | '}' if open.pop() != Some(first) => return Err(Fault::Malformed),
            '.' => parts += 1,
            '#' => end = rest.find(['\r', '\n']).unwrap_or(rest.len()),
            '"' | '\'' => end = string(rest, first),
            '=' | ',' | ' ' | '\t' | '\r' | '\n' | ']' | '}' => {}
            _ => {
                let is_end = |c| ".=,[]{} \t#\r\n".contains(c);
                end = rest.find(is_end).unwrap_or(rest.len());
            }
        }
        longest = longest.max(parts);
        // A key is of one line; blanks may stand between its parts.
        if "=,[]{}\r\n".contains(first) {
            parts = 1;
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    // A table's own header counts its parts twice: each may be an array of tables.
    if open.is_empty() && (deepest + 3) * longest <= TOML_LEVELS {
        return Ok(());
    }
    Err(Fault::Malformed)
}

/// Returns where a string of TOML ends, which begins with a quote.
fn string(text: &str, quote: char) -> usize {
    let is_long = text.chars().take(3).filter(|c| *c == quote).count() == 3;
    let long = quote.to_string().repeat(3);
    let mut at = if is_long { 3 } else { 1 };
    while let Some(next) = text[at..].chars().next() {
        if next == '\\' && quote == '"' {
            at += 1;
            // Only these two matter: behind any other the string goes on.
            at += usize::from(text[at..].starts_with(['\\', '"']));
        } else if is_long && text[at..].starts_with(&long) {
            // Up to two quotes may stand behind the three that end it.
            let more = text[at + 3..].chars().take(2).take_while(|c| *c == quote);
            return at + 3 + more.count();
        } else if !is_long && next == quote {
            return at + 1;
        } else if !is_long && next == '\n' {
            return at;
        } else {
            at += next.len_utf8();
        }
    }
    text.len()
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
fn yaml(text: &str, is_over: &dyn Fn() -> bool) -> Result<Value, Fault> {
    let mut parser = Parser::new_from_str(text);
    let (mut cost, mut count) = (Cost::default(), 0_usize);
    let mut next = move || {
        count += 1;
        if count.is_multiple_of(ASKED) && is_over() {
            return Err(Fault::Truncated);
        }
        let event = parser.next_event().and_then(Result::ok);
        let step = event.map(|(event, _)| owned(event)).ok_or(Fault::Malformed)?;
        let bytes = if matches!(step, Step::Map) { OBJECT } else { NODE };
        if !cost.take(bytes) {
            return Err(Fault::TooLarge);
        }
        Ok(step)
    };
    loop {
        match next()? {
            Step::Other => {}
            Step::End => return Ok(Value::Object(Map::new())),
            step => {
                let value = node(step, &mut next, 0)?;
                return match (next()?, next()?) {
                    (Step::Other, Step::End) => Ok(value),
                    _ => Err(Fault::Malformed),
                };
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

fn node(step: Step, next: &mut dyn FnMut() -> Result<Step, Fault>, level: usize) -> Result<Value, Fault> {
    if level > LEVELS {
        return Err(Fault::Malformed);
    }
    match step {
        Step::Scalar(value) => Ok(value),
        Step::List => {
            let mut items = Vec::new();
            loop {
                match next()? {
                    Step::ListEnd => return Ok(items.into()),
                    step => items.push(node(step, next, level + 1)?),
                }
            }
        }
        Step::Map => {
            let mut members = Map::new();
            loop {
                match next()? {
                    Step::MapEnd => return Ok(members.into()),
                    Step::Scalar(name) => {
                        let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
                        let step = next()?;
                        let value = node(step, next, level + 1)?;
                        if members.insert(name, value).is_some() {
                            return Err(Fault::Malformed);
                        }
                    }
                    _ => return Err(Fault::Malformed),
                }
            }
        }
        _ => Err(Fault::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str, format: Format) -> Option<Value> {
        value(text.as_bytes(), format, &|| false).ok()
    }

    #[test]
    fn comments_and_last_commas_are_no_part_of_a_document() {
        let text = "\u{feff}{ // one\n \"a\": [1, 2, /* three */ ], \"b//\": \"/* \\\" */,}\", }";
        assert_eq!(
            read(text, Format::Jsonc),
            Some(json!({"a": [1, 2], "b//": "/* \" */,}"}))
        );
        assert_eq!(read(text, Format::Json), None);
        assert_eq!(read("{\"a\": 1,, }", Format::Jsonc), None);
    }

    #[test]
    fn yaml_is_one_document_without_aliases_or_repeated_names() {
        let text = "a:\n  - b: 'true'\n    c: true\n  - [x, ~]\n";
        assert_eq!(
            read(text, Format::Yaml),
            Some(json!({"a": [{"b": "true", "c": true}, ["x", null]]}))
        );
        for bad in [
            "a: 1\na: 2",
            "a: &x 1\nb: *x",
            "--- 1\n--- 2",
            "a: [",
            "a: !!binary x",
        ] {
            assert_eq!(read(bad, Format::Yaml), None, "{bad}");
        }
        let deep = "[".repeat(5_000) + &"]".repeat(5_000);
        for format in [Format::Json, Format::Jsonc, Format::Toml, Format::Yaml] {
            assert_eq!(read(&deep, format), None);
        }
        assert_eq!(read(" \n", Format::Yaml), Some(json!({})));
    }

    /// Proves IV-5.
    #[test]
    fn no_document_takes_more_than_its_part() {
        let many = |text: &str, most: u64| text.repeat(usize::try_from(most).unwrap() / text.len() - 10);
        let (fast, slow) = (Format::Json.most(), Format::Yaml.most());
        let lists = |items: &str, most| format!(r#"{{"mcpServers": {{}}, "a": [{}0]}}"#, many(items, most));
        for items in [
            "0,",
            "[],",
            "[0],",
            "{},",
            r#"{"":0},"#,
            r#"{"a":{"b":{}}},"#,
            r#""","#,
        ] {
            for format in [Format::Json, Format::Jsonc] {
                let read = value(lists(items, fast).as_bytes(), format, &|| false);
                assert_eq!(read, Err(Fault::TooLarge), "{items}");
            }
        }
        for text in [
            format!("a = [{}0]", many("0,", slow)),
            format!("a = [{}0]", many("[],", slow)),
            many("[[a]]\n", slow),
            (0..30_000)
                .map(|at| format!("{at:x}=0\n"))
                .collect::<Vec<_>>()
                .concat(),
        ] {
            let read = value(text.as_bytes(), Format::Toml, &|| false);
            assert_eq!(read, Err(Fault::TooLarge), "{}", &text[..8]);
        }
        for text in [
            // A value in two bytes: of `- 0`, which has four, a file holds no more than a tree may take.
            many("-\n", slow),
            format!("a: [{}0]", many("0,", slow)),
            format!("a: [{}0]", many("[0],", slow)),
        ] {
            let read = value(text.as_bytes(), Format::Yaml, &|| false);
            assert_eq!(read, Err(Fault::TooLarge), "{}", &text[..8]);
        }
        // What people have: a thousand projects with their members, and long words.
        let members: Vec<String> = (0..20).map(|at| format!(r#""member{at}": false,"#)).collect();
        let members = members.concat();
        let projects: Vec<String> = (0..1_000)
            .map(|at| format!(r#""/home/ada/{at}": {{{members} "b": []}}"#))
            .collect();
        let usual = format!(
            r#"{{"projects": {{{}}}, "words": "{}"}}"#,
            projects.join(","),
            "[{,:".repeat(1 << 18)
        );
        assert!(read(&usual, Format::Json).is_some());
    }

    #[test]
    fn time_is_asked_for_within_a_document() {
        let read = value("- 0\n".repeat(2_000).as_bytes(), Format::Yaml, &|| true);
        assert_eq!(read, Err(Fault::Truncated));
    }

    #[test]
    fn a_toml_document_is_refused_before_it_is_too_deep() {
        let key = vec!["a"; 79].join(".");
        let deep = format!("{key} = {{ ").repeat(40) + "a = 1" + &" }".repeat(40);
        // Quotes that hide nothing from the parser hide nothing here.
        for begin in [
            "",
            "b = '''\\''' \n",
            "b = \"\\\\\" #'\n",
            "b = \"\"\"\\\"\"\"\"\"\n",
            "b = 'x\n",
            "b = a'''\n",
        ] {
            let text = format!("{begin}{deep}");
            assert_eq!(read(&text, Format::Toml), None, "{begin}");
        }
        let tables = format!("[[{key}]]\n{key} = 1");
        assert_eq!(read(&tables, Format::Toml), None);
        let most = "a.a.a.a = { ".repeat(29) + "b = '''[{[{...........'''" + &" }".repeat(29);
        assert!(read(&most, Format::Toml).is_some());
        let usual = "[a.\"b.c.d.e.f.g\".c] # [{....\nx = [1.5, { y.z = \"..]\" }]\nd = 2026-11-27T00:00:00.5Z\n\
            s = \"\"\"\n[ \\\" ....\"\"\"\"\nt = ''\n";
        assert!(read(usual, Format::Toml).is_some());
    }
}
