//! The form in which names are matched: what looks the same to a person is the same here.
//!
//! ```text
//!   text ─ invisible characters off ─ NFC ─ full case folding ─ NFC ─ blanks at both ends off ─► key
//!          └────────────────────────── until nothing changes ──────────────────────────────┘
//! ```
//!
//! Invisible characters go first, so that no blank hides behind one. Each step can make work for another (folding
//! undoes a composition, composing makes a folded sequence anew), and so the steps are repeated.
//!
//! INVARIANT MK-1: a match key is its own key, and what looks the same has one.
//! INVARIANT MK-2: what nobody sees is no part of a match key: controls, formats, the empty pattern of Braille, marks
//! of annotations and embedded objects.
//!
//! Absent on purpose: letters that only look alike (`а` and `a`). Who reads a name tells them apart by its meaning, and
//! two people may be called so. This is no key for storing either: names that a table keeps unique have one of their own.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

/// LIMIT: repetitions; every assigned character needs three at most.
const ROUNDS: usize = 16;

/// The version of the keys: a store that holds keys of another one computes them anew at its start.
pub const MATCH_KEY_VERSION: u32 = 2;

/// What nobody sees: what Unicode lets be ignored, controls but for the three that are blanks, formats, the empty pattern of
/// Braille, and the marks of annotations and of embedded objects.
#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
static INVISIBLE: LazyLock<Regex> = LazyLock::new(|| {
    let unseen = r"[\p{Default_Ignorable_Code_Point}\p{Cf}\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x{9F}\x{2800}\x{FFF9}-\x{FFFC}]";
    Regex::new(unseen).expect("a pattern of the language")
});

/// Returns whether a character of ASCII is one that nobody sees.
fn is_unseen(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r')
}

/// Returns the form in which a name is matched.
pub fn match_key(text: &str) -> String {
    key(text).into_owned()
}

/// Returns the form in which the beginning of a name is looked for in match keys; it keeps the blanks at its end, which stand inside of a
/// name. Empty for a text of which nobody sees anything.
pub fn match_beginning(text: &str) -> String {
    part(text, str::trim_start)
}

/// Returns the same; what is its own key is not copied.
pub(crate) fn key(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return Cow::Owned(of_unicode(text, str::trim));
    }
    // ASCII has nothing to compose.
    if text.bytes().any(is_unseen) {
        let seen: String = text
            .chars()
            .filter(|letter| !u8::try_from(*letter).is_ok_and(is_unseen))
            .collect();
        return Cow::Owned(seen.trim().to_ascii_lowercase());
    }
    let trimmed = text.trim();
    if trimmed.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(trimmed.to_ascii_lowercase());
    }
    Cow::Borrowed(trimmed)
}

/// Returns the form in which a part of a name is looked for in keys; its ends are trimmed by `trim`.
pub(crate) fn part(text: &str, trim: fn(&str) -> &str) -> String {
    of_unicode(text, trim)
}

fn of_unicode(text: &str, trim: fn(&str) -> &str) -> String {
    let mut key = text.to_owned();
    for _ in 0..ROUNDS {
        let seen = INVISIBLE.replace_all(&key, "");
        let folded = unicase::UniCase::unicode(seen.nfc().collect::<String>()).to_folded_case();
        let composed: String = folded.nfc().collect();
        let next = trim(&composed).to_owned();
        if next == key {
            break;
        }
        key = next;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    /// Proves MK-1, MK-2.
    #[test]
    fn what_looks_the_same_has_one_key() {
        for (spelt, key) in [
            ("Ada@ACME.test", "ada@acme.test"),
            (" ada\t", "ada"),
            ("\u{a0}ada\u{3000}", "ada"),
            ("\u{200b} ada \u{feff}", "ada"),
            (" \u{200b} ada", "ada"),
            ("a\u{ad}d\u{2060}a", "ada"),
            ("Ame\u{301}lie", "am\u{e9}lie"),
            ("AM\u{c9}LIE", "am\u{e9}lie"),
            ("e\u{200d}\u{301}", "\u{e9}"),
            ("Stra\u{df}e", "strasse"),
            ("STRASSE", "strasse"),
            ("\u{1e9e}", "ss"),
            ("\u{212a}elvin", "kelvin"),
            ("\u{3a3}\u{3c2}", "\u{3c3}\u{3c3}"),
            ("\u{200b}\u{ad} \u{3164}", ""),
            ("a  b", "a  b"),
            ("ada\0", "ada"),
            ("\u{7}a\u{1}d\u{1f}a\u{7f}", "ada"),
            ("ada\u{85}", "ada"),
            ("a\u{9c}d\u{600}a\u{2800}", "ada"),
            ("ada\u{fff9}\u{fffc}", "ada"),
            ("\u{b}\u{1} ada \u{c}", "ada"),
            ("a\tb", "a\tb"),
            ("\u{1}\u{2800}", ""),
        ] {
            assert_eq!(match_key(spelt), key, "{spelt:?}");
        }
    }

    /// Proves MK-1.
    #[test]
    fn different_names_keep_different_keys() {
        let names = [
            "ada",
            "adá",
            "a da",
            "ada.",
            "ad\u{430}",
            "ad",
            "ada@acme.test",
            "1",
            "١",
        ];
        for (at, a) in names.iter().enumerate() {
            for b in &names[at + 1..] {
                assert_ne!(match_key(a), match_key(b), "{a} {b}");
            }
        }
    }

    /// Proves MK-1, MK-2.
    #[test]
    fn a_key_is_its_own_key() {
        let every = ('\0'..=char::MAX).map(String::from);
        let with_marks = ('\0'..=char::MAX).map(|c| format!("{c}\u{345}\u{301}"));
        let mut dice = ChaCha8Rng::seed_from_u64(7);
        let wild = [
            '\u{1}', '\u{345}', '\u{301}', '\u{130}', '\u{200b}', ' ', 'A', '\u{df}', '\u{1fb3}', '\u{1e9b}',
        ];
        let random = (0..200_000).map(|_| {
            let length = dice.next_u32() % 7;
            let mut one = || match dice.next_u32() % 3 {
                0 => wild[dice.next_u32() as usize % wild.len()],
                1 => char::from_u32(dice.next_u32() % 0x3000).unwrap_or('x'),
                _ => char::from_u32(dice.next_u32() % 0x11_0000).unwrap_or('x'),
            };
            (0..length).map(|_| one()).collect::<String>()
        });
        for text in every.chain(with_marks).chain(random) {
            let key = match_key(&text);
            assert_eq!(match_key(&key), key, "{text:?}");
            // What hides at the ends or inside changes nothing.
            assert_eq!(match_key(&format!("\u{200b} {text}\u{2060}")), key, "{text:?}");
        }
    }

    #[test]
    fn what_is_its_own_key_is_not_copied() {
        assert!(matches!(key("usr_01h8"), Cow::Borrowed(_)));
        assert_eq!(key("\x0bA\x1c"), "a");
    }
}
