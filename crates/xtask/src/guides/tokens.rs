//! A text as the words that are compared, with those that differ from run to run by their kind.

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Has to be the same. A part of it may be `…`.
    Word,
    /// `…`: whatever stands there, or nothing.
    Anything,
    /// An id, with its prefix.
    Id(String),
    /// A token.
    Secret,
    /// An instant, a date, a duration, an amount of something that depends on the machine.
    Time,
    /// A digest or a signature.
    Digest,
}

const PUNCTUATION: &str = "{}[](),;|/\"'`\\<>";

/// Divides a text into words. Blanks and line breaks count for nothing: what one program prints on one line, a page may show on three.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let opaque = |letter: char| letter.is_whitespace() || "{}[](),;|\"'`\\<>".contains(letter);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        // A digest of base64 may hold slashes.
        let whole = rest.split(opaque).next().unwrap_or_default();
        let end = if is_blob(whole) || PUNCTUATION.contains(first) {
            whole.len().max(first.len_utf8())
        } else {
            rest.find(|letter: char| opaque(letter) || letter == '/')
                .unwrap_or(rest.len())
        };
        let end = if PUNCTUATION.contains(first) && !is_blob(whole) {
            first.len_utf8()
        } else {
            end
        };
        let (word, behind) = rest.split_at(end);
        push(&mut found, word);
        rest = behind;
    }
    join_amounts(found)
}

/// Pushes a word, with colons and dots at its ends as words of their own.
fn push(found: &mut Vec<Token>, word: &str) {
    let trimmed = word.trim_start_matches(':');
    (trimmed.len()..word.len()).for_each(|_| found.push(plain(":")));
    let body = trimmed.trim_end_matches([':', '.', '=']);
    // The padding of base64 belongs to it.
    let body = if is_blob(trimmed) { trimmed } else { body };
    if !body.is_empty() {
        found.push(Token {
            kind: kind(body),
            text: body.to_owned(),
        });
    }
    let tail = &trimmed[body.len()..];
    found.extend(tail.chars().map(|letter| plain(&letter.to_string())));
}

fn plain(text: &str) -> Token {
    Token {
        kind: Kind::Word,
        text: text.to_owned(),
    }
}

fn kind(word: &str) -> Kind {
    if word == "…" {
        return Kind::Anything;
    }
    if word.starts_with("prov_") {
        return Kind::Secret;
    }
    if let Some((prefix, rest)) = word.split_once('_')
        && (2..=5).contains(&prefix.len())
        && prefix.bytes().all(|byte| byte.is_ascii_lowercase())
        && is_id(rest)
    {
        return Kind::Id(prefix.to_owned());
    }
    if is_instant(word) {
        return Kind::Time;
    }
    let hex = word.trim_end_matches('…');
    let is_hex = hex
        .bytes()
        .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let long_enough = hex.len() >= if hex.len() < word.len() { 8 } else { 32 };
    if (is_hex && long_enough) || is_blob(word) {
        return Kind::Digest;
    }
    Kind::Word
}

/// 26 letters of Crockford's alphabet, or fewer with `…` behind them.
fn is_id(rest: &str) -> bool {
    let letters = rest.trim_end_matches('…');
    let is_cut = letters.len() < rest.len();
    (letters.len() == 26 || is_cut)
        && letters
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (byte.is_ascii_lowercase() && !b"ilou".contains(&byte)))
}

fn is_instant(word: &str) -> bool {
    let shape: String = word
        .chars()
        .take(11)
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    shape == "0000-00-00T" || (shape == "0000-00-00" && word.len() == 10)
}

/// Whether a word is so long and so mixed that nobody chose it.
fn is_blob(word: &str) -> bool {
    word.len() >= 40
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

const UNITS: &[&str] = &["s", "ms", "min", "h", "d", "B", "KiB", "MiB", "kB", "MB"];
const MONTHS: &[&str] = &[
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Makes one token of a date, of a number with a unit of time or size, and of a rate.
fn join_amounts(words: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::new();
    for word in words {
        let is_number = |token: &Token| {
            token.kind == Kind::Word
                && token.text.starts_with(|letter: char| letter.is_ascii_digit())
                && token
                    .text
                    .chars()
                    .all(|letter| letter.is_ascii_digit() || letter == '.')
        };
        let ends = |back: usize, is: &dyn Fn(&Token) -> bool| {
            joined.len() >= back && is(&joined[joined.len() - back])
        };
        let is_slash = |token: &Token| token.text == "/";
        let is_unit = UNITS.contains(&word.text.as_str()) && ends(1, &is_number);
        let is_amount = |token: &Token| token.kind == Kind::Time || is_number(token);
        let is_rate = word.text == "s" && ends(1, &is_slash) && ends(2, &is_amount);
        let is_year = is_number(&word)
            && word.text.len() == 4
            && ends(1, &|token| MONTHS.contains(&token.text.as_str()))
            && ends(2, &is_number);
        if !(is_unit || is_rate || is_year) {
            joined.push(word);
            continue;
        }
        let length = if is_unit { 1 } else { 2 };
        joined.truncate(joined.len() - length);
        // 291 000/s: groups of digits.
        while is_rate && joined.last().is_some_and(is_number) {
            joined.pop();
        }
        joined.push(Token {
            kind: Kind::Time,
            text: word.text,
        });
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn what_differs_from_run_to_run_is_told_apart() {
        let id = Kind::Id("sa".into());
        assert_eq!(kinds("sa_01m7vtxjtx8qjtcka6tev678wv."), [id.clone(), Kind::Word]);
        assert_eq!(kinds("sa_01m7…"), [id]);
        assert_eq!(kinds("prov_sat_syDpHTQtvg3r_pcAk…zeQr"), [Kind::Secret]);
        assert_eq!(kinds("2026-11-20T13:24:14.169Z"), [Kind::Time]);
        assert_eq!(kinds("21 Sep 2026"), [Kind::Time]);
        assert_eq!(kinds("9093/s"), [Kind::Time]);
        assert_eq!(kinds("291 000/s"), [Kind::Time]);
        assert_eq!(kinds("2.0 MB/s"), [Kind::Time]);
        assert_eq!(kinds("89 d"), [Kind::Time]);
        assert_eq!(kinds("2d2f9dc5ff76…"), [Kind::Digest]);
        assert_eq!(
            kinds("3RwBfqmGw2eCA9yV4242UfFci7vT3QB1M3oYfU9F/oA="),
            [Kind::Digest]
        );
        assert_eq!(kinds("service_accounts"), [Kind::Word]);
        assert_eq!(kinds("…"), [Kind::Anything]);
    }

    #[test]
    fn blanks_and_the_form_of_json_count_for_nothing() {
        assert_eq!(tokens("{\"a\": 1,\n \"b\": []}"), tokens("{\"a\":1,\"b\":[]}"));
        assert_ne!(tokens("1164 lines"), tokens("1165 lines"));
        assert_eq!(tokens("http://a.b/c").len(), 7);
    }
}
