//! Names and kinds instead of values.

use crate::fingerprint::InventoryKey;
use crate::secrets::{has_long_run, looks_secret};
use provost_words::visible::visible;

/// LIMIT: characters of a name in a report. Ours.
const MAX_NAME: usize = 128;
/// LIMIT: arguments that are described. Ours.
const MAX_SHAPES: usize = 32;

/// LIMIT: letters and digits of one word of a name; `beforeShellExecution` has 20. Ours.
pub(crate) const LONG: usize = 24;

/// Returns the name of a variable or a header; `*` for what is none: a list of names may hold `NAME=value`.
pub(crate) fn identifier(key: &InventoryKey, text: &str) -> String {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if is_name { name(key, text) } else { "*".to_owned() }
}

/// Says whether a text is rather a path or an assignment than a name.
pub(crate) fn is_no_name(text: &str) -> bool {
    text.contains(['/', '\\', '='])
}

/// Words with more digits than words have.
const NUMBERED: [&str; 7] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "v1alpha1",
    "v1beta1",
    "v2beta1",
];

/// Says whether a text is made of words, as people name things in addresses and flags: with at most one number of three digits, as many
/// capitals within as a name has, and vowels. What is none may be a secret, although it is short.
pub(crate) fn is_wordy(text: &str) -> bool {
    let signs: Vec<u8> = text.bytes().filter(|b| !b"-_.~".contains(b)).collect();
    let digits = signs.iter().filter(|b| b.is_ascii_digit()).count();
    let (mut numbers, mut humps, mut consonants) = (0, 0, 0);
    let mut last = b' ';
    for sign in signs {
        numbers += u8::from(sign.is_ascii_digit() && !last.is_ascii_digit());
        let is_hump = sign.is_ascii_uppercase() && last.is_ascii_lowercase();
        humps += u8::from(is_hump);
        consonants = if !sign.is_ascii_alphabetic() || b"aeiouyAEIOUY".contains(&sign) {
            0
        } else if is_hump {
            1
        } else {
            consonants + 1
        };
        if digits > 3 || numbers > 1 || humps > 2 || consonants > 7 {
            return NUMBERED.contains(&text);
        }
        last = sign;
    }
    true
}

/// Returns the name of a flag; what is not made of words becomes its fingerprint.
fn flag_name(key: &InventoryKey, flag: &str) -> String {
    if is_wordy(flag) {
        return name(key, flag);
    }
    format!("hidden:{}", key.of("name", flag))
}

/// Returns the name of a member that holds a credential: one that is the address of a person becomes its fingerprint.
pub(crate) fn member(key: &InventoryKey, text: &str) -> String {
    if text.contains('@') {
        return format!("hidden:{}", key.of("name", text));
    }
    name(key, text)
}

/// Returns a name as a report may show it: what looks like a credential, a path or an assignment becomes its fingerprint.
pub(crate) fn name(key: &InventoryKey, text: &str) -> String {
    if looks_secret(text) || has_long_run(text, LONG) || is_no_name(text) {
        return format!("hidden:{}", key.of("name", text));
    }
    let shown = visible(text);
    match shown.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

/// Returns what kind of value a text is.
pub(crate) fn kind(text: &str) -> &'static str {
    if looks_secret(text) {
        "secret"
    } else {
        plain_kind(text)
    }
}

/// Returns what kind of value a text is that is no credential.
fn plain_kind(text: &str) -> &'static str {
    if text.contains("://") {
        "url"
    } else if text.contains("${") {
        "reference"
    } else if text.starts_with(['/', '~', '.', '\\']) || text.contains('/') {
        "path"
    } else if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        "number"
    } else if text.contains('=') {
        "assignment"
    } else {
        "word"
    }
}

/// An argument, and whether it holds a credential.
pub(crate) type Argument = (String, bool);

/// Returns arguments by their kinds; of a flag its name is kept.
pub(crate) fn shapes(key: &InventoryKey, arguments: &[Argument]) -> Vec<String> {
    let shape = |(text, is_secret): &Argument| {
        let kind = |text| if *is_secret { "secret" } else { plain_kind(text) };
        match flag(text) {
            Some((flag, Some(value))) => format!("{}=<{}>", flag_name(key, flag), kind(value)),
            Some((flag, None)) if !*is_secret => flag_name(key, flag),
            _ => format!("<{}>", kind(text)),
        }
    };
    arguments.iter().take(MAX_SHAPES).map(shape).collect()
}

/// Returns the name of a flag, and its value if that stands with it. A short flag may have its value behind its letter: `-ppassword`.
pub(crate) fn flag(text: &str) -> Option<(&str, Option<&str>)> {
    let is_name = |name: &str| {
        name.len() <= 40
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value)));
        return is_name(name).then_some((&text[..name.len() + 2], value));
    }
    let short = text.strip_prefix('-')?;
    let end = short.char_indices().nth(1).map_or(short.len(), |(at, _)| at);
    if !is_name(&short[..end]) {
        return None;
    }
    let value = (end < short.len()).then_some(&short[end..]);
    Some((&text[..=end], value))
}
