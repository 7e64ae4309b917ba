//! Questions and answers as bytes, for a runner in another process.
//!
//! ```text
//!   value     tag · what it is: a length in front of texts and members, eight bytes for numbers
//!   question  value · count of missing paths · each: count of names · each a text
//!   saying    whether what is missing was read · tag of the answer · reason, or place and sentence
//! ```
//!
//! Both ends are the same program: there are no versions here. Yet what comes from a process that ran a stranger's module is
//! read as bytes of a stranger: nothing is allocated that did not arrive, and depth has an end.

use super::runner::Question;
use super::{Answer, Diagnostic, Failure, ModuleAnswer};
use regorus::{Plain, Value};
use std::collections::BTreeMap;

/// LIMIT: levels of a value that is read; an event has at most half of them.
const LEVELS: usize = 256;

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatError;

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the message of a worker for modules cannot be read")
    }
}

impl std::error::Error for FormatError {}

/// A question as it arrives.
#[derive(Debug)]
pub struct QuestionMessage {
    input: Value,
    missing: Vec<Vec<String>>,
}

impl QuestionMessage {
    /// Returns what a module is asked.
    pub fn question<'a>(&'a self, module: &'a super::Module) -> Question<'a> {
        Question {
            module,
            input: &self.input,
            missing: &self.missing,
        }
    }
}

/// Bytes that are read from their start.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Returns the next bytes.
    ///
    /// Errors: there are not so many.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(FormatError)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Returns the next byte.
    ///
    /// Errors: there is none.
    pub fn byte(&mut self) -> Result<u8, FormatError> {
        Ok(self.take(1)?[0])
    }

    /// Returns the next number of 32 bits.
    ///
    /// Errors: it is not whole.
    pub fn number(&mut self) -> Result<u32, FormatError> {
        let bytes = self.take(4)?.try_into().map_err(|_| FormatError)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn eight(&mut self) -> Result<[u8; 8], FormatError> {
        self.take(8)?.try_into().map_err(|_| FormatError)
    }

    /// Returns a count of things of which each takes at least a byte.
    fn count(&mut self) -> Result<usize, FormatError> {
        let count = usize::try_from(self.number()?).map_err(|_| FormatError)?;
        if count > self.0.len() {
            Err(FormatError)
        } else {
            Ok(count)
        }
    }

    /// Returns the next text.
    ///
    /// Errors: it is not whole, or no UTF-8.
    pub fn text(&mut self) -> Result<&'a str, FormatError> {
        let count = self.count()?;
        std::str::from_utf8(self.take(count)?).map_err(|_| FormatError)
    }

    /// Returns the next question.
    ///
    /// Errors: it is not whole, or its input is nested too deep.
    pub fn question(&mut self) -> Result<QuestionMessage, FormatError> {
        let input = self.value(LEVELS)?;
        let count = self.count()?;
        let mut missing = Vec::with_capacity(count);
        for _ in 0..count {
            let names = self.count()?;
            let path: Result<Vec<String>, FormatError> =
                (0..names).map(|_| self.text().map(str::to_owned)).collect();
            missing.push(path?);
        }
        Ok(QuestionMessage { input, missing })
    }

    /// Returns the next answer.
    ///
    /// Errors: it is none.
    pub fn saying(&mut self) -> Result<ModuleAnswer, FormatError> {
        let has_read_missing = self.byte()? != 0;
        let answer = match self.byte()? {
            tag @ (0 | 1) => {
                let reason_code = match self.byte()? {
                    0 => None,
                    _ => Some(self.text()?.to_owned()),
                };
                let matched = tag == 1;
                Ok(Answer { matched, reason_code })
            }
            2 => Err(Failure::Stopped),
            3 => Err(Failure::Failed),
            4 => Err(Failure::NoAnswer),
            5 => Err(Failure::Disagreement(self.diagnostic()?)),
            6 => Err(Failure::Refused(self.diagnostic()?)),
            7 => Err(Failure::Ended),
            _ => return Err(FormatError),
        };
        Ok(ModuleAnswer {
            answer,
            has_read_missing,
        })
    }

    fn diagnostic(&mut self) -> Result<Diagnostic, FormatError> {
        Ok(Diagnostic {
            line: self.number()?,
            column: self.number()?,
            message: self.text()?.to_owned(),
        })
    }

    fn value(&mut self, levels: usize) -> Result<Value, FormatError> {
        let below = levels.checked_sub(1).ok_or(FormatError)?;
        Ok(match self.byte()? {
            0 => Value::Null,
            1 => Value::from(false),
            2 => Value::from(true),
            3 => Value::from(u64::from_le_bytes(self.eight()?)),
            4 => Value::from(i64::from_le_bytes(self.eight()?)),
            5 => Value::from(f64::from_le_bytes(self.eight()?)),
            6 => Value::from(self.text()?),
            7 => {
                let count = self.count()?;
                let items: Result<Vec<Value>, FormatError> = (0..count).map(|_| self.value(below)).collect();
                Value::from(items?)
            }
            8 => {
                let count = self.count()?;
                let members: Result<Vec<(Value, Value)>, FormatError> = (0..count)
                    .map(|_| Ok((Value::from(self.text()?), self.value(below)?)))
                    .collect();
                Value::from(members?.into_iter().collect::<BTreeMap<Value, Value>>())
            }
            _ => return Err(FormatError),
        })
    }
}

/// Writes a question.
pub fn put_question(into: &mut Vec<u8>, question: &Question<'_>) {
    put_value(into, question.input);
    put_count(into, question.missing.len());
    for path in question.missing {
        put_count(into, path.len());
        for name in path {
            put_text(into, name);
        }
    }
}

/// Writes an answer.
pub fn put_saying(into: &mut Vec<u8>, saying: &ModuleAnswer) {
    into.push(u8::from(saying.has_read_missing));
    let place = |into: &mut Vec<u8>, tag: u8, found: &Diagnostic| {
        into.push(tag);
        into.extend_from_slice(&found.line.to_le_bytes());
        into.extend_from_slice(&found.column.to_le_bytes());
        put_text(into, &found.message);
    };
    match &saying.answer {
        Ok(answer) => {
            into.push(u8::from(answer.matched));
            into.push(u8::from(answer.reason_code.is_some()));
            if let Some(code) = &answer.reason_code {
                put_text(into, code);
            }
        }
        Err(Failure::Stopped) => into.push(2),
        Err(Failure::Failed) => into.push(3),
        Err(Failure::NoAnswer) => into.push(4),
        Err(Failure::Disagreement(found)) => place(into, 5, found),
        Err(Failure::Refused(found)) => place(into, 6, found),
        Err(Failure::Ended) => into.push(7),
    }
}

/// Writes a text.
pub fn put_text(into: &mut Vec<u8>, text: &str) {
    put_count(into, text.len());
    into.extend_from_slice(text.as_bytes());
}

/// What is counted here came in requests that are far below 4 GiB.
fn put_count(into: &mut Vec<u8>, count: usize) {
    into.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_value(into: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null | Value::Undefined | Value::Set(_) => into.push(0),
        Value::Bool(is) => into.push(1 + u8::from(*is)),
        Value::Number(number) => {
            // As it is kept, not as what it equals: a float goes on as one.
            let (tag, bytes) = match number.plain() {
                Some(Plain::Unsigned(whole)) => (3, whole.to_le_bytes()),
                Some(Plain::Signed(whole)) => (4, whole.to_le_bytes()),
                Some(Plain::Float(part)) => (5, part.to_le_bytes()),
                // No document gives one.
                None => return into.push(0),
            };
            into.push(tag);
            into.extend_from_slice(&bytes);
        }
        Value::String(text) => {
            into.push(6);
            put_text(into, text);
        }
        Value::Array(items) => {
            into.push(7);
            put_count(into, items.len());
            items.iter().for_each(|item| put_value(into, item));
        }
        Value::Object(members) => {
            into.push(8);
            put_count(into, members.len());
            for (name, member) in members.iter() {
                // The input of a module is a document, whose members have names.
                put_text(into, name.as_string().map_or("", |name| name));
                put_value(into, member);
            }
        }
    }
}
