//! What a credential looks like.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// LIMIT: a text without a known form is a credential from this length on. Ours.
const LONG: usize = 20;
/// Bits of each character, of the same. Ours.
const BITS: f64 = 3.5;

/// The form of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Pattern {
    /// `sk-ant-…`
    AnthropicApiKey,
    /// `sk-…`
    OpenaiApiKey,
    /// `ghp_…`, `github_pat_…`
    GithubToken,
    /// `AKIA…`
    AwsAccessKey,
    /// `AIza…`
    GcpKey,
    /// A key of a storage account.
    AzureKey,
    /// `xoxb-…`
    SlackToken,
    /// Three parts of base64url.
    Jwt,
    /// PEM.
    PrivateKey,
    /// One of ours.
    ProvostToken,
    /// A text that nobody would say, in a member whose name says that it is secret.
    GenericSecret,
}

/// The beginnings, what may follow, and how much of it must.
const FORMS: &[(&str, Pattern, usize)] = &[
    ("sk-ant-", Pattern::AnthropicApiKey, 16),
    ("sk-", Pattern::OpenaiApiKey, 20),
    ("github_pat_", Pattern::GithubToken, 20),
    ("ghp_", Pattern::GithubToken, 20),
    ("gho_", Pattern::GithubToken, 20),
    ("ghu_", Pattern::GithubToken, 20),
    ("ghs_", Pattern::GithubToken, 20),
    ("ghr_", Pattern::GithubToken, 20),
    ("AKIA", Pattern::AwsAccessKey, 16),
    ("ASIA", Pattern::AwsAccessKey, 16),
    ("AIza", Pattern::GcpKey, 30),
    ("AccountKey=", Pattern::AzureKey, 40),
    ("xoxb-", Pattern::SlackToken, 10),
    ("xoxp-", Pattern::SlackToken, 10),
    ("xoxa-", Pattern::SlackToken, 10),
    ("xapp-", Pattern::SlackToken, 10),
    ("prov_", Pattern::ProvostToken, 20),
];

/// Says whether a credential of a known form stands in a text.
pub fn holds_credential(text: &str) -> bool {
    known(text).is_some()
}

/// Returns the credential of a known form that stands in a text.
pub(crate) fn known(text: &str) -> Option<(Pattern, &str)> {
    if let Some(at) = text.find("-----BEGIN ")
        && text[at..].contains("PRIVATE KEY-----")
    {
        return Some((Pattern::PrivateKey, &text[at..]));
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_+/=.".contains(c);
    for &(begin, pattern, least) in FORMS {
        for (at, _) in text.match_indices(begin) {
            // `task-…` is no `sk-…`.
            let stands_alone = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let rest = &text[at + begin.len()..];
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if stands_alone && length >= least {
                return Some((pattern, &text[at..at + begin.len() + length]));
            }
        }
    }
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .find(|word| is_jwt(word))
        .map(|word| (Pattern::Jwt, word))
}

fn is_jwt(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    parts.len() == 3 && word.starts_with("eyJ") && parts[1].starts_with("eyJ") && parts[2].len() >= 16
}

/// Returns the credential in a member's text, of no known form, by what the member is called. `is_strict` leaves out what only a person
/// may have written there: words with blanks.
pub(crate) fn by_name<'a>(member: &str, text: &'a str, is_strict: bool) -> Option<&'a str> {
    let text = text.trim();
    let mut schemes = ["Bearer ", "bearer ", "Basic ", "basic ", "token "].iter();
    let scheme = schemes.find_map(|scheme| Some((*scheme, text.strip_prefix(scheme)?.trim())));
    let (scheme, text) = scheme.unwrap_or(("", text));
    let has_blank = text.contains(char::is_whitespace);
    // `${TOKEN}` names a credential; a text with blanks is words, one with slashes is a path if it is no base64.
    let is_word = !has_blank
        && !text.contains(|c: char| "${}\\".contains(c))
        && (!text.contains('/') || is_base64(text));
    let is_basic = scheme.eq_ignore_ascii_case("basic ") && !has_blank;
    let is_password = (is_basic && sounds_secret(member)) || says_password(member);
    let is_found = (sounds_secret(member) && is_word && is_hard_to_guess(text))
        || (is_password && is_literal(text) && !is_path(text) && !(is_strict && has_blank));
    is_found.then_some(text)
}

/// Says whether a text is one that nobody finds by trying.
pub(crate) fn is_hard_to_guess(text: &str) -> bool {
    !text.contains(char::is_whitespace) && text.len() >= LONG && bits(text) >= BITS
}

/// Says whether a text is a value itself: none that says where the value is (`${PASSWORD}`, `%PASSWORD%`, `op://vault/db`), and none that
/// stands for one (`<password>`, `****`, `true`).
pub(crate) fn is_literal(text: &str) -> bool {
    let is_within = |begin, end| text.len() > 1 && text.starts_with(begin) && text.ends_with(end);
    let is_reference = text.starts_with('$')
        || ["${", "{{", "$(", "://"].iter().any(|sign| text.contains(sign))
        || text.starts_with("env:");
    let is_of_windows = is_within('%', '%')
        && text
            .bytes()
            .all(|b| b == b'%' || b == b'_' || b.is_ascii_alphanumeric());
    let mut signs = text.chars();
    let first = signs.next();
    let is_one_sign = signs.all(|sign| Some(sign) == first);
    let is_truth = ["true", "false", "null", "none"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    !(is_reference || is_of_windows || is_within('<', '>') || is_one_sign || is_truth)
}

/// Says whether a text begins as a path does.
pub(crate) fn is_path(text: &str) -> bool {
    let mut signs = text.chars();
    let has_drive = signs.next().is_some_and(|c| c.is_ascii_alphabetic())
        && signs.next() == Some(':')
        && signs.next().is_some_and(|c| "/\\".contains(c));
    has_drive
        || ["/", "~/", "./", "../", "\\"]
            .iter()
            .any(|begin| text.starts_with(begin))
}

/// Says whether a text with a slash is rather base64 than a path: with capitals, others and digits, and without a dot.
fn is_base64(text: &str) -> bool {
    is_mixed(text)
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
        && !is_path(text)
}

/// Says whether a member is called a password. People choose these, so that a short one is one.
pub(crate) fn says_password(member: &str) -> bool {
    let member = member.trim_start_matches('-').to_ascii_lowercase();
    let asks = ["no", "ask", "prompt", "show", "use", "has", "is", "hide"];
    let mut parts = member.split(['_', '-', '.', ':', ' ']);
    let first = parts.next().unwrap_or_default();
    let last = parts.next_back().unwrap_or(first);
    // `PWD` is the folder in which a program runs.
    let is_folder = ["pwd", "oldpwd"].contains(&member.as_str());
    let ends = ["password", "passwd", "passphrase", "passcode"];
    let is_called = ends.iter().any(|end| last.ends_with(end)) || ["pass", "pwd", "pw"].contains(&last);
    is_called && !is_folder && !(asks.contains(&first) && first != last)
}

/// Returns `prov_sat_` and the lookup id of one of our tokens.
pub(crate) fn public_part(token: &str) -> Option<String> {
    let mut parts = token.splitn(4, '_');
    let (lead, kind, lookup) = (parts.next()?, parts.next()?, parts.next()?);
    let is_id = lookup.len() == 12 && lookup.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_id && kind.len() == 3 && parts.next().is_some()).then(|| format!("{lead}_{kind}_{lookup}"))
}

pub(crate) fn sounds_secret(member: &str) -> bool {
    let member = member.to_ascii_lowercase();
    [
        "key",
        "token",
        "secret",
        "passw",
        "pwd",
        "credential",
        "auth",
        "bearer",
        "cookie",
        "dsn",
    ]
    .iter()
    .any(|word| member.contains(word))
}

/// Says whether a part of a name or an address looks like something that only who was told can know.
pub(crate) fn looks_secret(part: &str) -> bool {
    if known(part).is_some() || is_hex(&part.replace('-', "")) {
        return true;
    }
    let runs = part.split(|c: char| !c.is_ascii_alphanumeric());
    runs.into_iter().any(is_hex)
        || is_mixed(part)
        || part
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|run| run.len() >= LONG && has_digits(run) && bits(run) >= 3.2)
}

/// Says whether so many letters and digits follow each other: longer than a word, it may be a secret that has no digit, or no letter.
pub(crate) fn has_long_run(part: &str, least: usize) -> bool {
    part.split(|c: char| !c.is_alphanumeric())
        .any(|run| run.chars().count() >= least)
}

fn has_digits(run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    digits >= 3 && digits < run.len()
}

fn is_hex(run: &str) -> bool {
    run.len() >= 16 && has_digits(run) && run.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_mixed(part: &str) -> bool {
    let has = |of: fn(&u8) -> bool| part.as_bytes().iter().any(of);
    part.len() >= LONG
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && bits(part) >= BITS
}

/// Returns the entropy of a text by how often its characters stand in it. Units: bits a character.
fn bits(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let all = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let part = |&count: &u32| {
        let share = f64::from(count) / all;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(part).sum()
}
