// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! `json.unmarshal`, `json.is_valid` and `json.marshal`, as Go's package `encoding/json` reads a text: the last of two members of one name
//! counts, half of a surrogate pair is U+FFFD, nothing may follow. The general reader takes an object with the member
//! `$serde_json::private::Number` for a number; this one does not.

use super::{refuse, text, too_large, Made};
use crate::ast::{Expr, Ref};
use crate::builtins::admitted::{DOCUMENT_LEVELS, DOCUMENT_NODES, NUMBER_BYTES, TEXT_BYTES};
use crate::lexer::Span;
use crate::number::Number;
use crate::value::Value;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use anyhow::Result;

pub fn unmarshal(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let document = text("json.unmarshal", params, args, 0)?;
    match read(&document)? {
        Some(value) => Ok(value),
        None => refuse(params, 0, "it is no JSON"),
    }
}

pub fn is_valid(_: &Span, _params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    match args[0] {
        Value::String(ref document) => Ok(Value::from(read(document)?.is_some())),
        _ => Ok(Value::from(false)),
    }
}

/// Writes a value as Go does: names in order, `<`, `>` and `&` escaped. Fractions and numbers beyond 64 bits are refused, because
/// OPA writes one with the digits and the exponent in which it was sent, and no value of this engine has those; names that are no texts as
/// well.
pub fn marshal(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let mut made = Made::default();
    if write(&mut made, &args[0])? {
        Ok(made.value())
    } else {
        refuse(params, 0, "a fraction, a number beyond 64 bits, or a name that is no text stands in it")
    }
}

/// Returns whether the value could be written.
fn write(made: &mut Made, value: &Value) -> Result<bool> {
    match *value {
        Value::Null => made.push("null")?,
        Value::Bool(is) => made.push(if is { "true" } else { "false" })?,
        Value::Number(ref number) if number.is_integer() && (number.as_i64().is_some() || number.as_u64().is_some()) => {
            made.push(&number.format_decimal())?;
        }
Value::String(ref text) => write_text(made, text)?,
        Value::Array(ref items) => return write_items(made, items.iter()),
        Value::Set(ref items) => return write_items(made, items.iter_sorted()),
        Value::Object(ref members) => {
            made.push("{")?;
            for (nth, (name, member)) in members.iter_sorted().enumerate() {
                made.push(if nth > 0 { "," } else { "" })?;
                let Value::String(ref name) = *name else {
                    return Ok(false);
                };
                write_text(made, name)?;
                made.push(":")?;
                if !write(made, member)? {
                    return Ok(false);
                }
            }
            made.push("}")?;
        }
        Value::Number(_) | Value::Undefined => return Ok(false),
    }
    Ok(true)
}

fn write_items<'a>(made: &mut Made, items: impl Iterator<Item = &'a Value>) -> Result<bool> {
    made.push("[")?;
    for (nth, item) in items.enumerate() {
        made.push(if nth > 0 { "," } else { "" })?;
        if !write(made, item)? {
            return Ok(false);
        }
    }
    made.push("]")?;
    Ok(true)
}

fn write_text(made: &mut Made, text: &str) -> Result<()> {
    made.push("\"")?;
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '"' => made.push("\\\"")?,
            '\\' => made.push("\\\\")?,
            '\u{8}' => made.push("\\b")?,
            '\u{c}' => made.push("\\f")?,
            '\n' => made.push("\\n")?,
            '\r' => made.push("\\r")?,
            '\t' => made.push("\\t")?,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                made.push(&alloc::format!("\\u{:04x}", u32::from(c)))?;
            }
            c => made.push(c.encode_utf8(&mut buffer))?,
        }
    }
    made.push("\"")
}

/// Returns the number that a text in JSON's form is.
///
/// Errors: it is larger, or nearer to nothing, than an evaluation may hold.
pub(super) fn number(written: &str) -> Result<Option<Number>> {
    let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, ""));
    let digits = exponent.trim_start_matches(['+', '-']);
    if written.len() > NUMBER_BYTES || digits.len() > 3 {
        return Err(too_large());
    }
    let Ok(number) = written.parse::<Number>() else {
        return Ok(None);
    };
    let is_nothing = number == Number::from(0_u64);
    if is_nothing && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9')) {
        return Err(too_large());
    }
    Ok(Some(number))
}

/// Returns the value of a text; nothing where it is no JSON.
fn read(document: &str) -> Result<Option<Value>> {
    if document.len() > TEXT_BYTES {
        return Err(too_large());
    }
    let mut reader = Reader {
        rest: document,
        nodes: 0,
    };
    let value = reader.value(1)?;
    reader.skip();
    Ok(value.filter(|_| reader.rest.is_empty()))
}

struct Reader<'a> {
    rest: &'a str,
    nodes: usize,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self, word: &str) -> bool {
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes a character, and the blanks before it.
    fn sign(&mut self, sign: &str) -> bool {
        self.skip();
        self.take(sign)
    }

    fn value(&mut self, level: usize) -> Result<Option<Value>> {
        self.skip();
        self.nodes = self.nodes.saturating_add(1);
        if level > DOCUMENT_LEVELS || self.nodes > DOCUMENT_NODES {
            return Err(too_large());
        }
        match self.rest.bytes().next() {
            Some(b'{') => self.object(level),
            Some(b'[') => self.array(level),
            Some(b'"') => Ok(self.text().map(|text| Value::String(text.into()))),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.take("true") => Ok(Some(Value::from(true))),
            _ if self.take("false") => Ok(Some(Value::from(false))),
            _ if self.take("null") => Ok(Some(Value::Null)),
            _ => Ok(None),
        }
    }

    fn object(&mut self, level: usize) -> Result<Option<Value>> {
        let mut members = BTreeMap::new();
        self.take("{");
        if self.sign("}") {
            return Ok(Some(Value::from_map(members)));
        }
        loop {
            self.skip();
            self.nodes = self.nodes.saturating_add(1);
            let Some(name) = self.text() else {
                return Ok(None);
            };
            if !self.sign(":") {
                return Ok(None);
            }
            let Some(member) = self.value(level.saturating_add(1))? else {
                return Ok(None);
            };
            members.insert(Value::String(name.into()), member);
            if self.sign("}") {
                return Ok(Some(Value::from_map(members)));
            }
            if !self.sign(",") {
                return Ok(None);
            }
        }
    }

    fn array(&mut self, level: usize) -> Result<Option<Value>> {
        let mut items = Vec::new();
        self.take("[");
        if self.sign("]") {
            return Ok(Some(Value::from(items)));
        }
        loop {
            let Some(item) = self.value(level.saturating_add(1))? else {
                return Ok(None);
            };
            items.push(item);
            if self.sign("]") {
                return Ok(Some(Value::from(items)));
            }
            if !self.sign(",") {
                return Ok(None);
            }
        }
    }

    fn number(&mut self) -> Result<Option<Value>> {
        let end = self
            .rest
            .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .unwrap_or(self.rest.len());
        let (written, rest) = self.rest.split_at(end);
        self.rest = rest;
        if !is_number(written) {
            return Ok(None);
        }
        Ok(number(written)?.map(Value::from))
    }

    /// Returns the text that begins here.
    fn text(&mut self) -> Option<String> {
        if !self.take("\"") {
            return None;
        }
        let mut made = String::new();
        loop {
            let end = self.rest.find(|c: char| c == '"' || c == '\\' || c < ' ')?;
            let (plain, rest) = self.rest.split_at(end);
            made.push_str(plain);
            self.rest = rest;
            if self.take("\"") {
                return Some(made);
            }
            if !self.take("\\") {
                return None;
            }
            let mut after = self.rest.chars();
            let escaped = after.next()?;
            self.rest = after.as_str();
            made.push(match escaped {
                '"' | '\\' | '/' => escaped,
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => self.code_point()?,
                _ => return None,
            });
        }
    }

    /// Returns the character whose digits begin here, with those of its second half if it has one.
    fn code_point(&mut self) -> Option<char> {
        let first = self.unit()?;
        if (0xd800..0xdc00).contains(&first) {
            let before = self.rest;
            if self.take("\\u") {
                let second = self.unit()?;
                if (0xdc00..0xe000).contains(&second) {
                    return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                }
                self.rest = before;
            }
        }
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Returns whether a text has the form of a JSON number.
fn is_number(written: &str) -> bool {
    let unsigned = written.strip_prefix('-').unwrap_or(written);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, part) = match mantissa.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (mantissa, None),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && part.is_none_or(are_digits)
        && exponent.is_none_or(|exponent| are_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
