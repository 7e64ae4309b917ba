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

/// Returns the credential in a member's text, also of no known form.
pub(crate) fn found<'a>(member: &str, text: &'a str) -> Option<(Pattern, &'a str)> {
    if let Some(found) = known(text) {
        return Some(found);
    }
    let text = text.trim();
    let text = ["Bearer ", "bearer ", "Basic ", "token "]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .unwrap_or(text);
    // `${TOKEN}` names a credential; a text with blanks is words, one with slashes is a path.
    let is_word = !text.contains(|c: char| c.is_whitespace() || "${}/\\".contains(c));
    (sounds_secret(member) && is_word && text.len() >= LONG && bits(text) >= BITS)
        .then_some((Pattern::GenericSecret, text))
}

fn sounds_secret(member: &str) -> bool {
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
