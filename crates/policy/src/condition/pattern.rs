//! The patterns of `matches` and of redactions: RE2's language, in time linear in the text.

use super::PATTERN_LIMIT_BYTES;
use regex::{Regex, RegexBuilder};

/// LIMIT: bytes of a compiled pattern; far above what 1024 bytes of ordinary pattern need.
const COMPILED_LIMIT_BYTES: usize = 1 << 20;
/// LIMIT: bytes that one thread keeps to run a pattern faster; beyond it the slower way is taken.
const CACHE_LIMIT_BYTES: usize = 1 << 20;

/// Returns the compiled pattern.
///
/// Errors: a sentence, when it is too long, too large, or not of the language.
/// Source: client contract §3.9 (`matches` ≤ 1024 bytes, RE2).
pub fn pattern(source: &str) -> Result<Regex, &'static str> {
    if source.is_empty() || source.len() > PATTERN_LIMIT_BYTES {
        return Err("must have 1 to 1024 bytes");
    }
    if has_more_than_re2(source) {
        return Err("must be a pattern of the RE2 language");
    }
    let built = RegexBuilder::new(&in_ascii(source))
        .size_limit(COMPILED_LIMIT_BYTES)
        .dfa_size_limit(CACHE_LIMIT_BYTES)
        .nest_limit(64)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "must be a smaller pattern: it grows too large when compiled",
        _ => "must be a pattern of the RE2 language",
    })
}

/// Returns a compiled pattern as one that does not tell cases apart; nothing where that grows too large.
pub(super) fn in_any_case(pattern: &Regex) -> Option<Regex> {
    // Each letter becomes a class of a few.
    let built = RegexBuilder::new(pattern.as_str())
        .case_insensitive(true)
        .size_limit(8 * COMPILED_LIMIT_BYTES)
        .dfa_size_limit(CACHE_LIMIT_BYTES)
        .nest_limit(64)
        .build();
    // The caller says what holds then: nothing is taken for a pattern that does not match.
    built.ok()
}

/// Returns the pattern with RE2's meaning of `\\d`, `\\w` and `\\s`: they are of ASCII there, and of Unicode here.
fn in_ascii(source: &str) -> String {
    let mut ascii = String::with_capacity(source.len());
    let mut rest = source.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            ascii.push(c);
            continue;
        }
        match rest.next() {
            Some('d') => ascii.push_str("[0-9]"),
            Some('D') => ascii.push_str("[^0-9]"),
            Some('w') => ascii.push_str("[0-9A-Za-z_]"),
            Some('W') => ascii.push_str("[^0-9A-Za-z_]"),
            Some('s') => ascii.push_str(r"[\t\n\f\r ]"),
            Some('S') => ascii.push_str(r"[^\t\n\f\r ]"),
            Some('b') => ascii.push_str("(?-u:\\b)"),
            Some(other) => ascii.extend(['\\', other]),
            None => ascii.push('\\'),
        }
    }
    ascii
}

/// Returns whether the pattern uses what our engine has and RE2 has not: set operations inside a class, and
/// the flags `x`, `u` and `R`.
///
/// A policy has to mean the same wherever it is compiled.
fn has_more_than_re2(source: &str) -> bool {
    let mut rest = source.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '[' if in_class && rest.peek() != Some(&':') => return true,
            '[' => {
                in_class = true;
                // A closing bracket at the start stands for itself.
                rest.next_if_eq(&'^');
                rest.next_if_eq(&']');
            }
            ']' => in_class = false,
            '&' | '-' | '~' if in_class && rest.peek() == Some(&c) => return true,
            '(' if !in_class && rest.next_if_eq(&'?').is_some() => {
                while let Some(flag) = rest.next_if(|c| c.is_ascii_alphabetic() || *c == '-') {
                    if matches!(flag, 'x' | 'u' | 'R') {
                        return true;
                    }
                    if flag == 'P' {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn re2_passes_and_more_than_re2_does_not() {
        for good in [
            r"^a+b$",
            r"(?i)drop\s+table",
            r"[^]a]",
            r"[[:alpha:]_]+",
            r"(?P<n>x)",
            r"a{2,3}?",
            r"\[\[",
            r"[\[a]",
        ] {
            assert!(pattern(good).is_ok(), "{good}");
        }
        for bad in [
            r"(?=a)",
            r"(a)\1",
            r"[a&&b]",
            r"[a--b]",
            r"[[a]b]",
            r"(?x) a",
            r"(",
            "",
            r"(?-u)a",
            r"a{1000}{1000}",
        ] {
            assert!(pattern(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn classes_are_those_of_re2() {
        let is = |source: &str, text: &str| pattern(source).unwrap().is_match(text);
        for (source, ascii, other) in [
            (r"^\d$", "7", "٧"),
            (r"^\w$", "e", "é"),
            (r"^\s$", "\t", "\u{a0}"),
        ] {
            assert!(is(source, ascii) && !is(source, other), "{source}");
            let negated = source.to_uppercase();
            assert!(!is(&negated, ascii) && is(&negated, other), "{negated}");
        }
        assert!(is(r"^[\d\-x]+$", "1-x") && is(r"^[^\s]$", "é") && is(r"\\d", r"\d") && is(r"\bm\b", "ém"));
        assert!(is(r"(?i)ÉTÉ", "été") && is("^.$", "é"));
    }

    #[test]
    fn length_is_limited_at_1024_bytes() {
        assert!(pattern(&"a".repeat(PATTERN_LIMIT_BYTES)).is_ok());
        assert!(pattern(&"a".repeat(PATTERN_LIMIT_BYTES + 1)).is_err());
    }

    #[test]
    fn a_pattern_that_ruins_backtracking_engines_is_quick() {
        assert!(
            !pattern(r"^(a|a)*$")
                .unwrap()
                .is_match(&("a".repeat(100_000) + "b"))
        );
    }
}
