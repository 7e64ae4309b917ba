// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! Built-ins that read one text: numbers, amounts, times, versions, and two encodings, one of which is also written.

use super::{json, refuse, text, too_large};
use crate::ast::{Expr, Ref};
use crate::builtins::admitted::{NUMBER_BYTES, TEXT_BYTES};
use crate::lexer::Span;
use crate::number::Number;
use crate::value::Value;
use alloc::string::String;
use alloc::vec::Vec;
use anyhow::Result;
use core::cmp::Ordering;
use num_bigint::BigInt;
use num_traits::Zero as _;

/// A text is read as Go's `strconv.ParseFloat` does, but for hexadecimal numbers, which are refused.
pub fn to_number(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    match args[0] {
        Value::Null | Value::Bool(false) => Ok(Value::from(0_u64)),
        Value::Bool(true) => Ok(Value::from(1_u64)),
        Value::Number(_) => Ok(args[0].clone()),
        Value::String(ref written) => {
            let number = if is_decimal(written) { json::number(written)? } else { None };
            // Go refuses what a float cannot hold, and keeps the number as it is written.
            let number = number.filter(|number| match *number {
                Number::BigInt(ref whole) => whole.bits() <= 1_024,
                _ => true,
            });
            match number {
                Some(number) => Ok(Value::from(number)),
                None => refuse(params, 0, "it is no decimal number"),
            }
        }
        _ => refuse(params, 0, "it is no number, text, boolean or null"),
    }
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a text is a decimal number: a sign, digits with or without a point among them, an exponent.
fn is_decimal(written: &str) -> bool {
    let unsigned = written.strip_prefix(['+', '-']).unwrap_or(written);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    };
    are_digits(whole)
        && are_digits(part)
        && !(whole.is_empty() && part.is_empty())
        && exponent.is_none_or(is_exponent)
}

/// An amount is digits, with or without a point among them, and a unit in any case. What is below one byte is cut off.
pub fn parse_bytes(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let written = text("units.parse_bytes", params, args, 0)?;
    if written.len() > NUMBER_BYTES {
        return Err(too_large());
    }
    let amount = written.to_lowercase().replace('"', "");
    let end = amount
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(amount.len());
    let (digits, unit) = amount.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let factor = match unit {
        "" => Some(1_u64),
        "kb" | "k" => Some(1_000),
        "kib" | "ki" => Some(1 << 10),
        "mb" | "m" => Some(1_000_000),
        "mib" | "mi" => Some(1 << 20),
        "gb" | "g" => Some(1_000_000_000),
        "gib" | "gi" => Some(1 << 30),
        "tb" | "t" => Some(1_000_000_000_000),
        "tib" | "ti" => Some(1 << 40),
        "pb" | "p" => Some(1_000_000_000_000_000),
        "pib" | "pi" => Some(1 << 50),
        "eb" | "e" => Some(1_000_000_000_000_000_000),
        "eib" | "ei" => Some(1 << 60),
        _ => None,
    };
    let Some(factor) = factor else {
        return refuse(params, 0, "its unit is none");
    };
    let all = alloc::format!("{whole}{part}");
    let Some(number) = Some(all.as_bytes())
        .filter(|all| !all.is_empty())
        .and_then(|all| BigInt::parse_bytes(all, 10))
    else {
        return refuse(params, 0, "it is no amount");
    };
    let scale = u32::try_from(part.len()).unwrap_or(u32::MAX);
    let bytes = truncated(number, BigInt::from(10_u8).pow(scale), factor);
    Ok(Value::from(Number::from(bytes)))
}

/// Returns the whole part of a quotient times a factor. OPA computes with floats of 64 bits, which round a product like
/// 0.3 * 1000 to a whole number and a large one away from it; this does the same.
fn truncated(number: BigInt, scale: BigInt, factor: u64) -> BigInt {
    let (quotient, shift) = rounded(number, scale);
    let (product, more) = rounded(quotient * factor, BigInt::from(1_u8));
    let shift = shift + more;
    if shift >= 0 {
        product << usize::try_from(shift).unwrap_or(0)
    } else {
        product >> usize::try_from(shift.unsigned_abs()).unwrap_or(0)
    }
}

/// Returns a quotient, rounded to 64 bits, and how far these have to be shifted to the left.
fn rounded(number: BigInt, scale: BigInt) -> (BigInt, i64) {
    if number.is_zero() {
        return (number, 0);
    }
    let bits = |n: &BigInt| i64::try_from(n.bits()).unwrap_or(i64::MAX);
    // So that the quotient has 66 or 67 bits: all that count, and what rounding needs.
    let shift = bits(&scale) - bits(&number) + 66;
    let by = |n: i64| usize::try_from(n).unwrap_or(0);
    let (number, scale) = (number << by(shift), scale << by(-shift));
    let (quotient, rest) = (&number / &scale, &number % &scale);
    let drop = bits(&quotient) - 64;
    let mut kept = &quotient >> by(drop);
    let below = &quotient - (&kept << by(drop));
    let half = BigInt::from(1_u8) << by(drop - 1);
    let is_odd = kept.bit(0);
    let is_up = match below.cmp(&half) {
        Ordering::Greater => true,
        Ordering::Equal => !rest.is_zero() || is_odd,
        Ordering::Less => false,
    };
    if is_up {
        kept += 1;
    }
    (kept, drop - shift)
}

/// A time is read as RFC 3339 says, with `T` and `Z` in upper case; further digits than nine of a second are cut off.
pub fn parse_rfc3339_ns(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let written = text("time.parse_rfc3339_ns", params, args, 0)?;
    let Some(nanoseconds) = instant(&written) else {
        return refuse(params, 0, "it is no RFC 3339 time");
    };
    match i64::try_from(nanoseconds) {
        Ok(nanoseconds) => Ok(Value::from(nanoseconds)),
        Err(_) => refuse(params, 0, "it is before 1677 or after 2262"),
    }
}

/// Returns the nanoseconds from 1970 to a time.
fn instant(written: &str) -> Option<i128> {
    let number = |from: usize, to: usize| {
        let digits = written.get(from..to)?;
        are_digits(digits).then(|| digits.parse::<i128>().ok()).flatten()
    };
    let sign = |at: usize| written.as_bytes().get(at).copied();
    let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if signs.iter().any(|(at, wanted)| sign(*at) != Some(*wanted)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = written.get(19..)?;
    let mut nanoseconds = 0;
    if let Some(part) = rest.strip_prefix(['.', ',']) {
        let end = part.find(|c: char| !c.is_ascii_digit())?;
        let digits = part.get(..end)?;
        if digits.is_empty() {
            return None;
        }
        let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
        nanoseconds = nine.parse().ok()?;
        rest = part.get(end..)?;
    }
    let offset = match rest.as_bytes() {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let at = written.len() - 5;
            let (hours, minutes) = (number(at, at + 2)?, number(at + 3, at + 5)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3_600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    // Days since 1970-01-01, with years that begin in March.
    let shifted = if month > 2 { year } else { year - 1 };
    let (era, month) = (shifted.div_euclid(400), (month + 9) % 12);
    let year = shifted.rem_euclid(400);
    let day = era * 146_097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = day * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    Some(seconds * 1_000_000_000 + nanoseconds)
}

/// Versions are read and compared as OPA's package `semver` does.
pub fn semver_compare(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "semver.compare";
    let (first, second) = (text(name, params, args, 0)?, text(name, params, args, 1)?);
    let Some(first) = Version::read(&first) else {
        return refuse(params, 0, "it is no version of three numbers");
    };
    let Some(second) = Version::read(&second) else {
        return refuse(params, 1, "it is no version of three numbers");
    };
    Ok(Value::from(match first.compare(&second) {
        Ordering::Less => -1_i64,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// Returns whether a value is a version. A `v` in front is refused: some versions of OPA take it, and some do not.
pub fn semver_is_valid(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    match args[0] {
        Value::String(ref written) if written.starts_with('v') => refuse(params, 0, "it begins with a v"),
        Value::String(ref written) => Ok(Value::from(Version::read(written).is_some())),
        _ => Ok(Value::from(false)),
    }
}

struct Version<'a> {
    numbers: [i64; 3],
    pre_release: &'a str,
}

impl<'a> Version<'a> {
    fn read(written: &'a str) -> Option<Self> {
        let (rest, build) = written.split_once('+').unwrap_or((written, ""));
        let (numbers, pre_release) = rest.split_once('-').unwrap_or((rest, ""));
        let is_identifier =
            |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
        let mut parts = numbers.split('.').map(|part| {
            let is_number = !part.is_empty() && are_digits(part);
            part.parse::<i64>().ok().filter(|_| is_number)
        });
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        let is_version = parts.next().is_none() && is_identifier(build) && is_identifier(pre_release);
        is_version.then_some(Self { numbers, pre_release })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let pre_release = || match (self.pre_release, other.pre_release) {
            ("", "") => Ordering::Equal,
            ("", _) => Ordering::Greater,
            (_, "") => Ordering::Less,
            (mine, theirs) => pre_releases(mine, theirs),
        };
        self.numbers.cmp(&other.numbers).then_with(pre_release)
    }
}

fn pre_releases(mine: &str, theirs: &str) -> Ordering {
    let (mut mine, mut theirs) = (mine.split('.'), theirs.split('.'));
    loop {
        let (a, b) = match (mine.next(), theirs.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => (a, b),
        };
        let order = match (a.parse::<i64>(), b.parse::<i64>()) {
            (Ok(x), Ok(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Line ends are passed over, as Go does, and the padding has to be there. What is no UTF-8 is refused: Rego in Go holds the
/// bytes, and no text of this engine can.
pub fn base64_decode(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let written = text("base64.decode", params, args, 0)?;
    let Some(bytes) = base64(&written) else {
        return refuse(params, 0, "it is no base64");
    };
    match String::from_utf8(bytes) {
        Ok(decoded) => Ok(Value::String(decoded.into())),
        Err(_) => refuse(params, 0, "its bytes are no UTF-8"),
    }
}

fn base64(written: &str) -> Option<Vec<u8>> {
    let signs: Vec<u8> = written.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let mut bytes = Vec::with_capacity(signs.len() / 4 * 3);
    let mut groups = signs.chunks(4).peekable();
    while let Some(group) = groups.next() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if group.len() != 4 || padding > 2 || padding > 0 && groups.peek().is_some() {
            return None;
        }
        let mut all = 0_u32;
        for sign in &group[..4 - padding] {
            let six = match sign {
                b'A'..=b'Z' => sign - b'A',
                b'a'..=b'z' => sign - b'a' + 26,
                b'0'..=b'9' => sign - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            all = all << 6 | u32::from(six);
        }
        all <<= 6 * padding;
        bytes.extend_from_slice(&all.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

/// Returns a text in base64, with its padding.
pub fn base64_encode(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let plain = text("base64.encode", params, args, 0)?;
    if plain.len() / 3 * 4 + 4 > TEXT_BYTES {
        return Err(too_large());
    }
    let mut made = String::with_capacity(plain.len() / 3 * 4 + 4);
    for group in plain.as_bytes().chunks(3) {
        let byte = |nth: usize| u32::from(group.get(nth).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for nth in 0..4_usize {
            let sign = SIGNS[(all >> (18 - 6 * nth) & 63) as usize];
            made.push(if nth > group.len() { '=' } else { char::from(sign) });
        }
    }
    Ok(Value::String(made.into()))
}

/// `+` is a blank and `%41` a byte; what is no UTF-8 is refused.
pub fn urlquery_decode(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let written = text("urlquery.decode", params, args, 0)?;
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
                match (digit(), digit()) {
                    (Some(high), Some(low)) => u8::try_from(high << 4 | low).unwrap_or(0),
                    _ => return refuse(params, 0, "an escape in it is none"),
                }
            }
            byte => byte,
        });
    }
    match String::from_utf8(bytes) {
        Ok(decoded) => Ok(Value::String(decoded.into())),
        Err(_) => refuse(params, 0, "its bytes are no UTF-8"),
    }
}
