//! Words about what went wrong, without the secrets that somebody put into what they are about: a token where a path belongs, a password in an
//! address.
//!
//! Absent on purpose: secrets of others, whose form nobody here knows, and answers, of which a secret may be the point.

use std::borrow::Cow;

/// What every token that we issue starts with.
pub const TOKEN_LEAD: &str = "prov_";
/// The three letters of a kind, and the sign behind them.
const KIND_LEN: usize = 4;
/// The public part by which a token is found.
const LOOKUP_LEN: usize = 12;

/// Returns a text in which of each token of ours the part that may be shown is left, and of addresses no user and no password.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains(TOKEN_LEAD) && !text.contains('@') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(without_users(&without_tokens(text)))
}

/// Keeps `prov_sat_<lookup id>` of a token, however much of the rest is there.
fn without_tokens(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(TOKEN_LEAD) {
        let (before, token) = rest.split_at(at);
        out.push_str(before);
        let is_of_token = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = token.find(|c| !is_of_token(c)).unwrap_or(token.len());
        let (token, behind) = token.split_at(end);
        let shown = TOKEN_LEAD.len() + KIND_LEN + LOOKUP_LEN;
        match token.split_at_checked(shown) {
            Some((public, secret)) if !secret.is_empty() && has_form(public) => {
                out.push_str(public);
                out.push('…');
            }
            _ => out.push_str(token),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Says whether it is the public part of a token.
fn has_form(public: &str) -> bool {
    let kind = public
        .strip_prefix(TOKEN_LEAD)
        .and_then(|rest| rest.split_at_checked(KIND_LEN));
    kind.is_some_and(|(kind, lookup)| {
        let letters = kind.strip_suffix('_').unwrap_or_default();
        letters.len() + 1 == KIND_LEN
            && letters.bytes().all(|byte| byte.is_ascii_lowercase())
            && lookup.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Replaces what stands before the `@` of an address: behind `//`, or with a colon in it. A login name has neither.
fn without_users(text: &str) -> String {
    // A password may hold any sign but a blank, so that nothing else ends an address.
    let is_end = char::is_whitespace;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word_end = rest.find(is_end).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word_end);
        out.push_str(&without_user(word));
        let sign = behind.chars().next();
        out.extend(sign);
        rest = &behind[sign.map_or(0, char::len_utf8)..];
    }
    out
}

fn without_user(word: &str) -> Cow<'_, str> {
    let (scheme, rest) = match word.find("//") {
        Some(at) => word.split_at(at + 2),
        None => ("", word),
    };
    // A password may hold a slash that nobody spelled out, so the last one counts that stands before no other slash than those.
    let Some(at) = rest.rfind('@') else {
        return Cow::Borrowed(word);
    };
    let user = &rest[..at];
    if scheme.is_empty() && !user.contains(':') {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("{scheme}…{}", &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    const TOKEN: &str = "prov_sat_0123456789ABabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqABCDEF";

    #[test]
    fn of_a_token_its_public_part_is_left_and_of_an_address_no_user() {
        let whole = format!("prov_sat_0123456789AB_{}", "s".repeat(49));
        for (said, shown) in [
            (
                format!("cannot read {whole}: no such file"),
                "cannot read prov_sat_0123456789AB…: no such file",
            ),
            (
                format!("cannot read ./{whole}, or {whole}"),
                "cannot read ./prov_sat_0123456789AB…, or prov_sat_0123456789AB…",
            ),
            // A token that lost its end or its sign is one all the same.
            ("prov_enr_0123456789AB_s".to_owned(), "prov_enr_0123456789AB…"),
            (TOKEN.to_owned(), "prov_sat_0123456789AB…"),
            ("http://adm:pw@host:1/a".to_owned(), "http://…@host:1/a"),
            (
                "\"http://adm:p@w/x@host\" is no URL".to_owned(),
                "\"http://…@host\" is no URL",
            ),
            ("https://secret@host".to_owned(), "https://…@host"),
            ("adm:pw@host".to_owned(), "…@host"),
            ("http:adm:pw@host".to_owned(), "…@host"),
            (
                "(see 'http://adm:p(w\"'<`@host')".to_owned(),
                "(see 'http://…@host')",
            ),
        ] {
            assert_eq!(without_secrets(&said), shown);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for said in [
            "the token prov_sat_0123456789AB was revoked",
            "prov_token_file_of_the_laptop is missing",
            "there is no user ada@acme.example (ada)",
            "say https://provost.example:8443/a, or look at PROVOST_URL",
            "",
        ] {
            assert_eq!(without_secrets(said), said);
        }
    }
}
