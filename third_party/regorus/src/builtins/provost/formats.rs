// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! `sprintf`: Go's `fmt.Sprintf` of what OPA hands to it, which is whole numbers, floats and texts; all else is a text in the
//! form in which Rego writes it. What Go says of a wrong verb or a missing operand (`%!d(string=a)`, `%!s(MISSING)`) is the
//! result here too. Refused are widths and operands out of the list (`%*d`, `%[1]d`), `%#`, `%U`, `%p`, quoted and hexadecimal
//! numbers with fractions, and zeros before a text.

use super::{go_is_print, refuse, text, too_large, Made};
use crate::ast::{Expr, Ref};
use crate::builtins::utils::ensure_array;
use crate::lexer::Span;
use crate::number::Number;
use crate::value::Value;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use anyhow::Result;
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive as _;

/// LIMIT: a width or a precision.
const WIDTH: usize = 1_000;

/// What Go formats.
enum Operand {
    Whole(BigInt),
    Float(f64),
    Text(String),
}

/// A directive between `%` and its verb.
#[derive(Clone, Copy, Default)]
struct Flags {
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// Why no text comes out.
enum Fault {
    /// The form is one that is refused.
    Form,
    /// An error of a limit.
    Limit(anyhow::Error),
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Limit(error)
    }
}

type Done = core::result::Result<(), Fault>;

pub fn sprintf(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "sprintf";
    let form = text(name, params, args, 0)?;
    let values = ensure_array(name, &params[1], args[1].clone())?;
    let mut operands = Vec::with_capacity(values.len());
    for value in values.iter() {
        operands.push(operand(value)?);
    }
    let mut made = Made::default();
    match write(&mut made, &form, &operands) {
        Ok(()) => Ok(made.value()),
        Err(Fault::Form) => refuse(params, 0, "it has a verb, a flag or a width that is not supported"),
        Err(Fault::Limit(error)) => Err(error),
    }
}

fn operand(value: &Value) -> Result<Operand> {
    Ok(match *value {
        Value::Number(ref number) if is_whole(number) => Operand::Whole((*number.to_big()?).clone()),
        Value::Number(ref number) => match number.as_f64() {
            Some(float) => Operand::Float(float),
            None => return Err(too_large()),
        },
        Value::String(ref text) => Operand::Text(text.to_string()),
        ref other => {
            let mut made = Made::default();
            write_value(&mut made, other)?;
            Operand::Text(made.0)
        }
    })
}

/// Returns whether OPA takes a number for a whole one: a float from 10^21 on is written with an exponent, and is none.
fn is_whole(number: &Number) -> bool {
    match *number {
        Number::Float(float) => number.is_integer() && float.abs() < 1e21,
        _ => true,
    }
}

/// Writes a value in Rego's form.
fn write_value(made: &mut Made, value: &Value) -> Result<()> {
    match *value {
        Value::Null => made.push("null"),
        Value::Bool(is) => made.push(if is { "true" } else { "false" }),
        Value::Number(ref number) => made.push(&written(number)),
        Value::String(ref text) => quote(made, text),
        Value::Array(ref items) => {
            made.push("[")?;
            for (nth, item) in items.iter().enumerate() {
                made.push(if nth > 0 { ", " } else { "" })?;
                write_value(made, item)?;
            }
            made.push("]")
        }
        Value::Set(ref items) if items.is_empty() => made.push("set()"),
        Value::Set(ref items) => {
            made.push("{")?;
            for (nth, item) in items.iter_sorted().enumerate() {
                made.push(if nth > 0 { ", " } else { "" })?;
                write_value(made, item)?;
            }
            made.push("}")
        }
        Value::Object(ref members) => {
            made.push("{")?;
            for (nth, (key, member)) in members.iter_sorted().enumerate() {
                made.push(if nth > 0 { ", " } else { "" })?;
                write_value(made, key)?;
                made.push(": ")?;
                write_value(made, member)?;
            }
            made.push("}")
        }
        Value::Undefined => Ok(()),
    }
}

fn written(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if !number.is_integer() => shortest(float, 21),
        _ => number.format_decimal(),
    }
}

/// Writes a text in quotes, as Go's `strconv.Quote`.
fn quote(made: &mut Made, text: &str) -> Result<()> {
    made.push("\"")?;
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '"' => made.push("\\\"")?,
            '\\' => made.push("\\\\")?,
            '\u{7}' => made.push("\\a")?,
            '\u{8}' => made.push("\\b")?,
            '\u{c}' => made.push("\\f")?,
            '\n' => made.push("\\n")?,
            '\r' => made.push("\\r")?,
            '\t' => made.push("\\t")?,
            '\u{b}' => made.push("\\v")?,
            c if go_is_print::is_print(c) => made.push(c.encode_utf8(&mut buffer))?,
            c if c < '\u{80}' => made.push(&format!("\\x{:02x}", u32::from(c)))?,
            c if c < '\u{10000}' => made.push(&format!("\\u{:04x}", u32::from(c)))?,
            c => made.push(&format!("\\U{:08x}", u32::from(c)))?,
        }
    }
    made.push("\"")
}

fn write(made: &mut Made, form: &str, operands: &[Operand]) -> Done {
    let mut rest = form;
    let mut operands = operands.iter();
    while let Some((plain, directive)) = rest.split_once('%') {
        made.push(plain)?;
        let (flags, after) = flags(directive)?;
        let mut after = after.chars();
        let Some(verb) = after.next() else {
            made.push("%!(NOVERB)")?;
            rest = "";
            break;
        };
        rest = after.as_str();
        match verb {
            '%' => made.push("%")?,
            '*' | '[' | '#' => return Err(Fault::Form),
            verb => match operands.next() {
                Some(operand) => write_operand(made, operand, verb, flags)?,
                None => made.push(&format!("%!{verb}(MISSING)"))?,
            },
        }
    }
    made.push(rest)?;
    let mut more = operands.peekable();
    if more.peek().is_none() {
        return Ok(());
    }
    made.push("%!(EXTRA ")?;
    for (nth, operand) in more.enumerate() {
        made.push(if nth > 0 { ", " } else { "" })?;
        made.push(type_name(operand))?;
        made.push("=")?;
        write_operand(made, operand, 'v', Flags::default())?;
    }
    made.push(")")?;
    Ok(())
}

/// Returns the flags, the width and the precision of a directive, and what stands behind them.
fn flags(directive: &str) -> core::result::Result<(Flags, &str), Fault> {
    let mut flags = Flags::default();
    let mut rest = directive;
    loop {
        let mut after = rest.chars();
        match after.next() {
            Some('-') => flags.minus = true,
            Some('+') => flags.plus = true,
            Some(' ') => flags.space = true,
            Some('0') => flags.zero = true,
            _ => break,
        }
        rest = after.as_str();
    }
    let (width, after) = digits(rest)?;
    flags.width = width;
    rest = after;
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = digits(after)?;
        flags.precision = Some(precision);
        rest = after;
    }
    Ok((flags, rest))
}

fn digits(written: &str) -> core::result::Result<(usize, &str), Fault> {
    let end = written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len());
    let (digits, rest) = written.split_at(end);
    if digits.is_empty() {
        return Ok((0, rest));
    }
    let number = digits.parse().ok().filter(|number| *number <= WIDTH);
    number.map(|number| (number, rest)).ok_or(Fault::Form)
}

fn type_name(operand: &Operand) -> &'static str {
    match operand {
        Operand::Whole(whole) if whole.to_i64().is_some() => "int",
        Operand::Whole(_) => "*big.Int",
        Operand::Float(_) => "float64",
        Operand::Text(_) => "string",
    }
}

fn write_operand(made: &mut Made, operand: &Operand, verb: char, mut flags: Flags) -> Done {
    if verb == 'v' {
        flags.plus = false;
    }
    match (operand, verb) {
        (_, 'U' | 'p' | 'w') => Err(Fault::Form),
        (_, 'T') => pad(made, type_name(operand), flags),
        // A number beyond 64 bits writes itself, and takes these verbs as well.
        (Operand::Whole(whole), 's' | 'v') if whole.to_i64().is_none() => write_whole(made, whole, 'd', flags),
        (Operand::Whole(whole), 'c' | 'q' | 'O') if whole.to_i64().is_none() => Err(Fault::Form),
        (Operand::Whole(whole), 'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X') => write_whole(made, whole, verb, flags),
        (Operand::Whole(whole), 'c') => {
            let c = whole.to_u32().and_then(char::from_u32);
            pad(made, c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]), flags)
        }
        (Operand::Float(float), 'v' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => write_float(made, *float, verb, flags),
        (Operand::Text(text), 'v' | 's') => pad(made, cut(text, flags.precision), flags),
        (Operand::Text(text), 'q') if !flags.plus => {
            let mut quoted = Made::default();
            quote(&mut quoted, cut(text, flags.precision))?;
            pad(made, &quoted.0, flags)
        }
        (Operand::Text(text), 'x' | 'X') if !flags.plus && !flags.space && flags.precision.is_none() => {
            let mut digits = Made::default();
            for byte in text.bytes() {
                digits.push(&if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") })?;
            }
            pad(made, &digits.0, flags)
        }
        (Operand::Text(_), 'q' | 'x' | 'X') | (Operand::Whole(_), 'q') | (Operand::Float(_), 'x' | 'X' | 'b') => {
            Err(Fault::Form)
        }
        // Go writes the operand in the flags of the wrong verb.
        (Operand::Whole(whole), verb) if whole.to_i64().is_none() => {
            made.push(&format!("%!{verb}(big.Int={whole})"))?;
            Ok(())
        }
        (operand, verb) => {
            made.push(&format!("%!{verb}({}=", type_name(operand)))?;
            write_operand(made, operand, 'v', flags)?;
            made.push(")")?;
            Ok(())
        }
    }
}

/// Returns the first characters of a text.
fn cut(text: &str, precision: Option<usize>) -> &str {
    let end = precision.and_then(|most| text.char_indices().nth(most));
    end.map_or(text, |(end, _)| &text[..end])
}

/// Writes a text in its width.
fn pad(made: &mut Made, text: &str, flags: Flags) -> Done {
    let more = flags.width.saturating_sub(text.chars().count());
    if flags.zero && !flags.minus && more > 0 {
        return Err(Fault::Form);
    }
    if !flags.minus {
        made.repeat(' ', more)?;
    }
    made.push(text)?;
    if flags.minus {
        made.repeat(' ', more)?;
    }
    Ok(())
}

fn sign(is_negative: bool, flags: Flags) -> &'static str {
    match (is_negative, flags.plus, flags.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

fn write_whole(made: &mut Made, whole: &BigInt, verb: char, flags: Flags) -> Done {
    let is_negative = whole.sign() == Sign::Minus;
    let size = whole.magnitude();
    let digits = match verb {
        'b' => size.to_str_radix(2),
        'o' | 'O' => size.to_str_radix(8),
        'x' => size.to_str_radix(16),
        'X' => size.to_str_radix(16).to_uppercase(),
        _ => size.to_str_radix(10),
    };
    let plain = Flags {
        zero: false,
        ..flags
    };
    if flags.precision == Some(0) && digits == "0" {
        return pad(made, "", plain);
    }
    let sign = sign(is_negative, flags);
    let least = match flags.precision {
        Some(precision) => precision,
        None if flags.zero && !flags.minus => flags.width.saturating_sub(sign.len()),
        None => 0,
    };
    let zeros = "0".repeat(least.saturating_sub(digits.len()));
    let prefix = if verb == 'O' { "0o" } else { "" };
    pad(made, &format!("{sign}{prefix}{zeros}{digits}"), plain)
}

fn write_float(made: &mut Made, float: f64, verb: char, flags: Flags) -> Done {
    let size = float.abs();
    let digits = match (verb, flags.precision) {
        ('f' | 'F', precision) => format!("{size:.*}", precision.unwrap_or(6)),
        ('e' | 'E', precision) => exponent(&format!("{size:.*e}", precision.unwrap_or(6))),
        (_, None) => shortest(size, 6),
        (_, Some(precision)) => {
            let precision = precision.max(1);
            significant(&format!("{size:.*e}", precision - 1), precision)
        }
    };
    let digits = if matches!(verb, 'E' | 'G') { digits.to_uppercase() } else { digits };
    let sign = sign(float.is_sign_negative(), flags);
    if flags.zero && !flags.minus {
        let zeros = flags.width.saturating_sub(sign.len() + digits.len());
        made.push(sign)?;
        made.repeat('0', zeros)?;
        made.push(&digits)?;
        return Ok(());
    }
    pad(made, &format!("{sign}{digits}"), flags)
}

/// Returns a number in as few digits as tell it from every other; with an exponent from this one on.
fn shortest(float: f64, least_exponent: i32) -> String {
    let written = format!("{float:e}");
    let (_, power) = written.split_once('e').unwrap_or((&written, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    if power < -4 || power >= least_exponent {
        exponent(&written)
    } else {
        format!("{float}")
    }
}

/// Returns a number in the form of `%g`, from its digits and its exponent.
fn significant(written: &str, precision: usize) -> String {
    let (mantissa, power) = written.split_once('e').unwrap_or((written, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let mut most = i32::try_from(precision).unwrap_or(i32::MAX);
    if most > count && count > power {
        most = count;
    }
    if power < -4 || power >= most {
        return exponent(&format!("{mantissa}e{power}"));
    }
    let zeros = |times: i32| "0".repeat(usize::try_from(times).unwrap_or(0));
    if power < 0 {
        return format!("0.{}{digits}", zeros(-power - 1));
    }
    let at = usize::try_from(power + 1).unwrap_or(0);
    if digits.len() <= at {
        return format!("{digits}{}", zeros(power + 1 - count));
    }
    let (whole, part) = digits.split_at(at);
    format!("{whole}.{part}")
}

/// Returns a number with its exponent in Go's form: a sign and two digits at least.
fn exponent(written: &str) -> String {
    let (mantissa, power) = written.split_once('e').unwrap_or((written, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}
