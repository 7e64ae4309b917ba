// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! Built-ins that make something out of texts, written anew: each ends where its row of the table ends, and says what OPA
//! 1.2.0 says. Where it cannot say the same it refuses: a wrong value would be a wrong verdict.

mod formats;
mod go_is_print;
mod json;
mod network;
mod patterns;
mod readings;
mod walks;

pub use patterns::as_go_reads;
pub use walks::nodes as walked_nodes;

use super::admitted::{RANGE_ELEMENTS, TEXT_BYTES};
use super::utils::{ensure_array, ensure_numeric, ensure_string, ensure_string_collection};
use crate::ast::{Expr, Ref};
use crate::lexer::Span;
use crate::number::Number;
use crate::utils::limits::LimitError;
use crate::value::Value;
use crate::{builtins, Rc};
use alloc::string::String;
use alloc::vec::Vec;
use anyhow::{bail, Result};
use num_bigint::BigInt;
use num_traits::ToPrimitive as _;

pub fn register(m: &mut builtins::BuiltinsMap<&'static str, builtins::BuiltinFcn>) {
    m.insert("array.concat", (array_concat, 2));
    m.insert("base64.decode", (readings::base64_decode, 1));
    m.insert("base64.encode", (readings::base64_encode, 1));
    m.insert("concat", (concat, 2));
    m.insert("json.is_valid", (json::is_valid, 1));
    m.insert("json.marshal", (json::marshal, 1));
    m.insert("json.unmarshal", (json::unmarshal, 1));
    m.insert("net.cidr_contains", (network::cidr_contains, 2));
    m.insert("numbers.range", (range, 2));
    m.insert("object.union_n", (union_n, 1));
    m.insert("regex.find_all_string_submatch_n", (submatches, 3));
    m.insert("regex.replace", (regex_replace, 3));
    m.insert("replace", (replace, 3));
    m.insert("semver.compare", (readings::semver_compare, 2));
    m.insert("semver.is_valid", (readings::semver_is_valid, 1));
    m.insert("sprintf", (formats::sprintf, 2));
    m.insert("time.parse_rfc3339_ns", (readings::parse_rfc3339_ns, 1));
    m.insert("to_number", (readings::to_number, 1));
    m.insert("units.parse_bytes", (readings::parse_bytes, 1));
    m.insert("urlquery.decode", (readings::urlquery_decode, 1));
    m.insert("trace", (trace, 1));
    m.insert("walk", (walks::walk, 1));
}

/// Returns that a built-in refuses one of its operands.
fn refuse<T>(params: &[Ref<Expr>], operand: usize, said: &str) -> Result<T> {
    bail!(params[operand].span().error(said))
}

/// Returns that a result would be larger than its row allows.
fn too_large() -> anyhow::Error {
    anyhow::Error::new(LimitError::ValueLimitExceeded)
}

/// Returns the text of an operand.
fn text(name: &str, params: &[Ref<Expr>], args: &[Value], operand: usize) -> Result<Rc<str>> {
    ensure_string(name, &params[operand], &args[operand])
}

/// A text that grows up to the limit.
#[derive(Default)]
struct Made(String);

impl Made {
    fn push(&mut self, more: &str) -> Result<()> {
        if self.0.len().saturating_add(more.len()) > TEXT_BYTES {
            return Err(too_large());
        }
        self.0.push_str(more);
        Ok(())
    }

    fn repeat(&mut self, c: char, times: usize) -> Result<()> {
        let more = times.saturating_mul(c.len_utf8());
        if self.0.len().saturating_add(more) > TEXT_BYTES {
            return Err(too_large());
        }
        self.0.extend(core::iter::repeat_n(c, times));
        Ok(())
    }

    fn value(self) -> Value {
        Value::String(self.0.into())
    }
}

fn array_concat(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "array.concat";
    let first = ensure_array(name, &params[0], args[0].clone())?;
    let second = ensure_array(name, &params[1], args[1].clone())?;
    Ok(Value::from(first.iter().chain(second.iter()).cloned().collect::<Vec<Value>>()))
}

fn concat(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "concat";
    let delimiter = text(name, params, args, 0)?;
    let parts = ensure_string_collection(name, &params[1], &args[1])?;
    let mut made = Made::default();
    for (nth, part) in parts.into_iter().enumerate() {
        if nth > 0 {
            made.push(&delimiter)?;
        }
        made.push(part)?;
    }
    Ok(made.value())
}

fn replace(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "replace";
    let (whole, old, new) = (
        text(name, params, args, 0)?,
        text(name, params, args, 1)?,
        text(name, params, args, 2)?,
    );
    let (mut made, mut end) = (Made::default(), 0);
    for (at, found) in whole.match_indices(old.as_ref()) {
        made.push(&whole[end..at])?;
        made.push(&new)?;
        end = at + found.len();
    }
    made.push(&whole[end..])?;
    Ok(made.value())
}

fn regex_replace(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "regex.replace";
    let (whole, pattern, new) = (
        text(name, params, args, 0)?,
        text(name, params, args, 1)?,
        text(name, params, args, 2)?,
    );
    let pattern = super::regex::compile_regex_for_builtin(params[1].span(), &pattern)?;
    let (mut made, mut end) = (Made::default(), 0);
    let mut read: usize = 0;
    for found in pattern.captures_iter(&whole) {
        let Some(all) = found.get(0) else { continue };
        // The replacement is read for each match, also where its groups are empty and nothing is made of it.
        read = read.saturating_add(new.len());
        if read > 4 * TEXT_BYTES {
            return Err(too_large());
        }
        made.push(&whole[end..all.start()])?;
        // Each reference to a group gives at most the whole match.
        let most = new.len().saturating_add(new.matches('$').count().saturating_mul(all.len()));
        if made.0.len().saturating_add(most) > TEXT_BYTES {
            return Err(too_large());
        }
        found.expand(&new, &mut made.0);
        end = all.end();
    }
    made.push(&whole[end..])?;
    Ok(made.value())
}

/// Returns the matches, at most so many of them unless the number is negative, each with its groups.
fn submatches(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "regex.find_all_string_submatch_n";
    let (pattern, whole) = (text(name, params, args, 0)?, text(name, params, args, 1)?);
    let most = ensure_numeric(name, &params[2], &args[2])?;
    let Some(most) = most.as_i64().filter(|_| most.is_integer()) else {
        return refuse(params, 2, "it is no whole number of 64 bits");
    };
    let pattern = super::regex::compile_regex_for_builtin(params[0].span(), &pattern)?;
    let (mut all, mut bytes) = (Vec::new(), 0_usize);
    for found in pattern.captures_iter(&whole).take(usize::try_from(most).unwrap_or(usize::MAX)) {
        let mut groups = Vec::with_capacity(found.len());
        for group in found.iter() {
            let group = group.map_or("", |group| group.as_str());
            // A group of a group is written once more, and an empty one is a value as well.
            bytes = bytes.saturating_add(group.len()).saturating_add(16);
            if bytes > TEXT_BYTES {
                return Err(too_large());
            }
            groups.push(Value::from(group));
        }
        all.push(Value::from(groups));
    }
    Ok(Value::from(all))
}

/// Returns true: the note goes nowhere.
fn trace(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    text("trace", params, args, 0).map(|_| Value::from(true))
}

fn range(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "numbers.range";
    let mut ends = Vec::with_capacity(2);
    for (param, arg) in params.iter().zip(args) {
        let number = ensure_numeric(name, param, arg)?;
        if !number.is_integer() {
            bail!(param.span().error("operand must be integer"));
        }
        ends.push(number.to_big()?);
    }
    let (first, last) = (ends[0].as_ref(), ends[1].as_ref());
    let steps = (last - first).magnitude().to_usize().ok_or_else(too_large)?;
    // A range of numbers of thousands of digits is large although it is short.
    let bytes = first.bits().max(last.bits()) / 8;
    if steps >= RANGE_ELEMENTS || bytes.saturating_mul(steps as u64 + 1) > TEXT_BYTES as u64 {
        return Err(too_large());
    }
    let step = BigInt::from(if last < first { -1 } else { 1 });
    let mut at = first.clone();
    let mut numbers = Vec::with_capacity(steps + 1);
    for _ in 0..=steps {
        numbers.push(Value::from(Number::from(at.clone())));
        at += &step;
    }
    Ok(Value::from(numbers))
}

fn union_n(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let objects = ensure_array("object.union_n", &params[0], args[0].clone())?;
    let mut all = Value::new_object();
    for (nth, object) in objects.iter().enumerate() {
        if object.as_object().is_err() {
            return refuse(params, 0, &alloc::format!("item at index {nth} is not an object"));
        }
        all = super::objects::union(&all, object)?;
    }
    Ok(all)
}
