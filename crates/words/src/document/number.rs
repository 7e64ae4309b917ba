//! Numbers as they are written, read if they are exactly that.

use serde_json::Number;

/// Returns a number of JSON as it is written; nothing where the nearest one is another number.
pub(super) fn number(written: &str) -> Option<Number> {
    let is_whole = !written.contains(['.', 'e', 'E']) && written != "-0";
    // Of 64 bits, a whole number is exact.
    if let Some(whole) = is_whole.then(|| written.parse::<i64>().ok()).flatten() {
        return Some(whole.into());
    }
    if let Some(whole) = is_whole.then(|| written.parse::<u64>().ok()).flatten() {
        return Some(whole.into());
    }
    exact_number(written).and_then(Number::from_f64)
}

/// Returns the number that is written, if it is the one that its shortest decimal form spells.
pub fn exact_number(written: &str) -> Option<f64> {
    let number: f64 = written.parse().ok()?;
    // Whole numbers of 15 digits and fewer are exact.
    let is_short = written.len() <= 15 && written.bytes().all(|byte| byte.is_ascii_digit());
    let is_same = is_short || (number.is_finite() && decimal(written) == decimal(&format!("{number:e}")));
    // Adding zero turns minus zero into zero.
    is_same.then_some(number + 0.0)
}

/// Returns the digits of a decimal number without zeros at their ends, and the power of ten of the last one.
///
/// The sign is that of the number, which is never lost.
fn decimal(written: &str) -> (String, i64) {
    let (mantissa, power) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = whole
        .chars()
        .chain(fraction.chars())
        .filter(char::is_ascii_digit)
        .collect();
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return (String::new(), 0);
    }
    let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    // A power beyond 64 bits is that of no finite number but zero.
    let power: i64 = power.parse().unwrap_or(i64::MAX);
    let power = power.saturating_sub(count(fraction.len()));
    (
        kept.to_owned(),
        power.saturating_add(count(digits.len() - kept.len())),
    )
}
