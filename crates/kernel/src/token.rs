//! The text of the tokens that we issue (D2.2).
//!
//! ```text
//! prov_sat_<12 base62: lookup id>_<43 base62: secret><6 base62: CRC32 of everything before>
//! ```
//!
//! The checksum lets a scanner, and our own edge, refuse a typo or a random string without a look at the
//! store. The part before the secret is the token's public prefix: no secret bit is in it.

use crate::entropy::UnitRng;
use crate::secret::Secret;
use zeroize::Zeroizing;

/// What every token that we issue starts with.
pub const LEAD: &str = provost_words::withheld::TOKEN_LEAD;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// `prov_`, three letters, `_`.
const LEAD_LEN: usize = LEAD.len() + 4;
const LOOKUP_LEN: usize = 12;
/// 43 characters of 62 hold 256.03 bits.
const SECRET_LEN: usize = 43;
/// 62^6 is more than 2^32.
const CHECKSUM_LEN: usize = 6;

/// What the tokens of one kind look like: each starts with `prov_`, three letters of its kind, and `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form(&'static str);

impl Form {
    /// Returns the form of the kind with these three letters.
    #[expect(
        clippy::missing_panics_doc,
        reason = "forms are constants: it panics the compiler"
    )]
    pub const fn new(lead: &'static str) -> Self {
        assert!(lead.len() == LEAD_LEN, "a form is prov_, three letters, and _");
        Self(lead)
    }

    /// Returns what every token of this form starts with.
    pub const fn lead(self) -> &'static str {
        self.0
    }
}

/// A token that was just made.
#[derive(Debug)]
pub struct NewToken {
    /// The whole token, shown to its holder once.
    pub token: Secret<String>,
    /// The public part by which the store finds the token.
    pub lookup_id: String,
    /// `prov_sat_<lookup id>`, the part that may be shown.
    pub prefix: String,
}

/// A well-formed token that somebody presents. The secret part is in none of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedToken<'a> {
    /// What tokens of its kind start with.
    lead: &'a str,
    /// The public part by which the store finds the token.
    pub lookup_id: &'a str,
    /// `prov_sat_<lookup id>`, the part that may be shown.
    pub prefix: &'a str,
}

impl ParsedToken<'_> {
    /// Says whether the token has this form.
    pub fn is_of(&self, form: Form) -> bool {
        self.lead == form.lead()
    }
}

/// Makes a token from the unit's generator.
pub fn mint(form: Form, rng: &mut UnitRng) -> NewToken {
    let mut token = Zeroizing::new(String::with_capacity(80));
    token.push_str(form.lead());
    push_random(&mut token, LOOKUP_LEN, rng);
    let prefix = token.as_str().to_owned();
    token.push('_');
    push_random(&mut token, SECRET_LEN, rng);
    let checksum = checksum(&token);
    token.push_str(as_text(&checksum));
    NewToken {
        lookup_id: prefix[LEAD_LEN..].to_owned(),
        prefix,
        token: Secret::new(std::mem::take(&mut *token)),
    }
}

/// Returns the public parts of a token whose format and checksum are right.
pub fn parse(text: &str) -> Option<ParsedToken<'_>> {
    let lead = text.get(..LEAD_LEN)?;
    let letters = lead.strip_prefix(LEAD)?.strip_suffix('_')?;
    if !letters.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let prefix_len = LEAD_LEN + LOOKUP_LEN;
    if text.len() != prefix_len + 1 + SECRET_LEN + CHECKSUM_LEN {
        return None;
    }
    let (prefix, secret) = text.split_at_checked(prefix_len)?;
    let lookup_id = &prefix[LEAD_LEN..];
    let secret = secret.strip_prefix('_')?;
    if !is_base62(lookup_id) || !is_base62(secret) {
        return None;
    }
    let (checked, given) = text.split_at(text.len() - CHECKSUM_LEN);
    (checksum(checked) == given.as_bytes()).then_some(ParsedToken {
        lead,
        lookup_id,
        prefix,
    })
}

fn is_base62(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Appends `count` base62 characters, each equally likely: bytes from 248 = 4 · 62 on are drawn again.
fn push_random(token: &mut String, count: usize, rng: &mut UnitRng) {
    let end = token.len() + count;
    let mut drawn = Zeroizing::new([0; 64]);
    while token.len() < end {
        rng.fill(drawn.as_mut_slice());
        let fair = drawn.iter().filter(|byte| **byte < 248);
        for byte in fair.take(end - token.len()) {
            token.push(char::from(ALPHABET[usize::from(byte % 62)]));
        }
    }
}

fn checksum(text: &str) -> [u8; CHECKSUM_LEN] {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_LEN];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

#[expect(clippy::expect_used, reason = "the alphabet is ASCII")]
fn as_text(digits: &[u8; CHECKSUM_LEN]) -> &str {
    std::str::from_utf8(digits).expect("ASCII digits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const FORM: Form = Form::new("prov_sat_");
    const OTHER: Form = Form::new("prov_gwt_");

    fn minted(seed: u8) -> NewToken {
        mint(FORM, &mut UnitRng::new([seed; 32]))
    }

    #[test]
    fn a_hundred_thousand_minted_tokens_parse_and_are_distinct() {
        let mut rng = UnitRng::new([3; 32]);
        let (mut tokens, mut lookups) = (HashSet::new(), HashSet::new());
        for n in 0..100_000 {
            let (form, other) = if n % 2 == 0 { (FORM, OTHER) } else { (OTHER, FORM) };
            let minted = mint(form, &mut rng);
            let presented = parse(minted.token.expose()).expect("a minted token parses");
            assert!(presented.is_of(form) && !presented.is_of(other));
            assert_eq!(presented.lookup_id, minted.lookup_id);
            assert_eq!(presented.prefix, minted.prefix);
            let shown = provost_words::withheld::without_secrets(minted.token.expose()).into_owned();
            assert_eq!(shown, format!("{}…", minted.prefix));
            lookups.insert(minted.lookup_id);
            tokens.insert(minted.token.expose().clone());
        }
        assert_eq!((tokens.len(), lookups.len()), (100_000, 100_000));
    }

    #[test]
    fn every_changed_character_is_refused() {
        for seed in 0..4 {
            let token = minted(seed).token.expose().clone();
            for at in 0..token.len() {
                for other in (0..128)
                    .map(char::from)
                    .filter(|other| !token[at..].starts_with(*other))
                {
                    let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
                    assert_eq!(parse(&changed), None, "{other:?} at {at}");
                }
            }
        }
    }

    #[test]
    fn every_cut_and_every_swap_of_neighbours_is_refused() {
        let token = minted(9).token.expose().clone();
        for at in 0..token.len() {
            assert_eq!(parse(&token[..at]), None);
            assert_eq!(parse(&token[at + 1..]), None);
            let mut bytes = token.clone().into_bytes();
            if at + 1 < bytes.len() && bytes[at] != bytes[at + 1] {
                bytes.swap(at, at + 1);
                assert_eq!(parse(std::str::from_utf8(&bytes).unwrap()), None, "swap at {at}");
            }
        }
        assert_eq!(parse(&format!("{token} ")), None);
        assert_eq!(parse(&token.replacen("prov", "Prov", 1)), None);
    }

    #[test]
    fn a_right_checksum_does_not_make_other_characters_right() {
        let token = minted(6).token.expose().clone();
        let checked = &token[..token.len() - CHECKSUM_LEN];
        let with = |at: usize, letter: char| {
            let changed = format!("{}{letter}{}", &checked[..at], &checked[at + 1..]);
            let checksum = checksum(&changed);
            format!("{changed}{}", as_text(&checksum))
        };
        let lookup_at = LEAD_LEN;
        let secret_at = lookup_at + LOOKUP_LEN + 1;
        for at in [lookup_at, secret_at] {
            assert!(parse(&with(at, 'x')).is_some());
            assert_eq!(parse(&with(at, '-')), None, "at {at}");
        }
        assert_eq!(parse(&with(secret_at - 1, 'x')), None, "the place of the line");
    }

    #[test]
    fn text_that_is_not_ascii_is_refused() {
        let token = minted(1).token.expose().clone();
        for at in 0..token.len() - 1 {
            let changed = format!("{}ü{}", &token[..at], &token[at + 2..]);
            assert_eq!(changed.len(), token.len());
            assert_eq!(parse(&changed), None);
        }
    }

    #[test]
    fn a_token_has_the_published_form() {
        let token = minted(5).token.expose().clone();
        let parts: Vec<_> = token.split('_').collect();
        assert_eq!(parts[..2], ["prov", "sat"]);
        assert_eq!((parts[2].len(), parts[3].len(), parts.len()), (12, 49, 4));
        assert!(is_base62(parts[2]) && is_base62(parts[3]));
    }

    #[test]
    fn the_checksum_is_the_ieee_crc_in_base62() {
        // 0xCBF43926, the check value of CRC-32/ISO-HDLC, is 3421780262 = 3·62⁵ + 45·62⁴ + 35·62³ + ….
        let digits = checksum("123456789");
        let value = digits.iter().fold(0_u64, |sum, digit| {
            sum * 62 + ALPHABET.iter().position(|letter| letter == digit).unwrap() as u64
        });
        assert_eq!(value, 0xCBF4_3926);
        assert_eq!(checksum(""), *b"000000");
    }

    #[test]
    fn characters_are_evenly_likely() {
        let mut text = String::new();
        push_random(&mut text, 62_000, &mut UnitRng::new([8; 32]));
        for letter in ALPHABET {
            let count = text.bytes().filter(|byte| byte == letter).count();
            // 1000 expected, standard deviation 31: six of them.
            assert!((810..1190).contains(&count), "{}: {count}", char::from(*letter));
        }
    }

    #[test]
    fn debug_shows_the_public_parts_only() {
        let minted = minted(2);
        let secret = &minted.token.expose()[minted.prefix.len() + 1..];
        assert!(!format!("{minted:?}").contains(secret));
    }
}
