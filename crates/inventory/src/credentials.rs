//! Which values of a document are credentials.
//!
//! The rows of a report, the number that a server has and the shapes of its arguments come from here and from nowhere else, so that they
//! say the same.
//!
//! ```text
//! a document, or a server of it ──► Search ──► of_words (a list: each word, and the flag before it) ──► judged (one text) ──► Credential
//! ```
//!
//! INVARIANT IV-8: what is a credential in a list of arguments, an address, a variable or a header counts for its server, is a row, and
//! has the shape of one; what is none is nothing of these. What could be guessed has a fingerprint of where it stands, and not of itself:
//! every machine of an organization has the key.
//!
//! Absent on purpose: a judgement by length and disorder of a value whose name says that it is something else (`MODEL`, `PROJECT_ID`); only
//! what has no name of its own, as an argument or a part of an address, is judged so.

use crate::fingerprint::InventoryKey;
use crate::hide::{flag, is_wordy};
use crate::secrets::{self, Pattern, is_hard_to_guess, known, looks_secret, says_password};
use crate::server::ADDRESSES;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Members that hold a command line or its arguments.
const LINES: [&str; 3] = ["args", "command", "cmd"];
/// Members that hold variables or headers by their names.
const NAMED: [&str; 5] = ["env", "envs", "environment", "headers", "http_headers"];
/// A member of Codex that holds names of variables, by the headers that they fill.
const NAMES: &str = "env_http_headers";

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// In a member that may be anything.
    Document,
    /// Among variables or headers.
    Named,
    /// In a command line.
    Line,
    /// In the address of a server.
    Address,
    /// Among names.
    Names,
}

impl Stand {
    /// Returns where the value of a member stands.
    fn of(self, member: &str, value: &Value) -> Self {
        match value {
            Value::Object(_) if NAMED.contains(&member) => Self::Named,
            Value::Object(_) if member == NAMES => Self::Names,
            Value::Object(_) => Self::Document,
            _ if matches!(self, Self::Named | Self::Names) => self,
            _ if LINES.contains(&member) => Self::Line,
            _ if ADDRESSES.contains(&member) => Self::Address,
            _ => self,
        }
    }
}

/// A credential. It holds the value, and so has no `Debug`.
pub(crate) struct Credential {
    pub(crate) pattern: Pattern,
    /// The member, variable, header or flag that holds it.
    pub(crate) member: String,
    text: String,
    /// The way to it from the top of the document, where it could be guessed.
    way: Option<String>,
}

impl Credential {
    /// Returns its fingerprint in a file; of one of our own tokens the part that may be shown.
    pub(crate) fn fingerprint(&self, key: &InventoryKey, file: &str) -> String {
        let shown = match self.pattern {
            Pattern::ProvostToken => secrets::public_part(&self.text),
            _ => None,
        };
        shown.unwrap_or_else(|| match &self.way {
            Some(way) => key.of("credential place", &format!("{file}\n{way}")),
            None => key.of("credential", &self.text),
        })
    }
}

/// Returns the credentials in a value, each once, and whether all of it was looked at: what lies deeper than so many levels is not.
pub(crate) fn credentials(value: &Value, levels: usize) -> (Vec<Credential>, bool) {
    let mut search = Search {
        found: Vec::new(),
        seen: BTreeSet::new(),
        way: Vec::new(),
        is_whole: true,
    };
    search.value("", value, Stand::Document, levels);
    (search.found, search.is_whole)
}

struct Search<'a> {
    found: Vec<Credential>,
    /// The member and the text, or the way where it could be guessed.
    seen: BTreeSet<(String, String)>,
    way: Vec<Cow<'a, str>>,
    is_whole: bool,
}

impl<'a> Search<'a> {
    fn value(&mut self, member: &str, value: &'a Value, stand: Stand, levels: usize) {
        let Some(levels) = levels.checked_sub(1) else {
            self.is_whole = false;
            return;
        };
        match value {
            Value::String(text) if stand == Stand::Line => self.words(member, &[text.as_str().into()], stand),
            Value::String(text) => self.text(member, text, stand),
            Value::Number(number) if says_password(member) => self.text(member, &number.to_string(), stand),
            Value::Array(items) => {
                let words: Vec<Cow<'_, str>> = items.iter().map(word).collect();
                self.words(member, &words, stand);
                for (at, item) in items.iter().enumerate() {
                    if item.is_array() || item.is_object() {
                        self.way.push(at.to_string().into());
                        self.value(member, item, stand.of("", item), levels);
                        self.way.pop();
                    }
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.way.push(name.into());
                    self.value(name, value, stand.of(name, value), levels);
                    self.way.pop();
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, member: &str, text: &str, stand: Stand) {
        if let Some((pattern, text)) = judged(member, text, stand) {
            let judged = Judged {
                member,
                pattern,
                text,
            };
            self.note(&judged, 0);
        }
    }

    fn words(&mut self, member: &str, words: &[Cow<'_, str>], stand: Stand) {
        for (at, judged) in of_words(member, words, stand).into_iter().enumerate() {
            if let Some(judged) = judged {
                self.note(&judged, at);
            }
        }
    }

    fn note(&mut self, judged: &Judged<'_>, at: usize) {
        // People choose what is called a password, however long.
        let can_be_guessed = judged.pattern == Pattern::GenericSecret
            && (says_password(judged.member) || !is_hard_to_guess(judged.text));
        let way = can_be_guessed.then(|| format!("{}\n{at}\n{}", self.way.join("\n"), judged.member));
        let member = judged.member.to_owned();
        let told_by = way.clone().unwrap_or_else(|| judged.text.to_owned());
        if self.seen.insert((member.clone(), told_by)) {
            self.found.push(Credential {
                pattern: judged.pattern,
                member,
                text: judged.text.to_owned(),
                way,
            });
        }
    }
}

/// Returns an item of a list as its client passes it on.
fn word(item: &Value) -> Cow<'_, str> {
    match item {
        Value::String(text) => text.into(),
        Value::Number(number) => number.to_string().into(),
        _ => "".into(),
    }
}

/// A text that is a credential, the name under which it stands, and its form.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    member: &'a str,
    pattern: Pattern,
    text: &'a str,
}

/// Judges each word of a list: by itself, by the name that stands in it, and by the flag before it.
pub(crate) fn of_words<'a>(
    member: &'a str,
    words: &'a [Cow<'_, str>],
    stand: Stand,
) -> Vec<Option<Judged<'a>>> {
    let mut before = None;
    let judge = |word: &'a Cow<'_, str>| one(member, word.as_ref(), stand, &mut before);
    words.iter().map(judge).collect()
}

/// Judges a word of a list; `before` is the flag that stood before it.
fn one<'a>(member: &'a str, word: &'a str, stand: Stand, before: &mut Option<&'a str>) -> Option<Judged<'a>> {
    let flag_before = before.take();
    let of = |member: &'a str, (pattern, text): (Pattern, &'a str)| Judged {
        member,
        pattern,
        text,
    };
    // A flag that is no word may itself be a part of a secret.
    let named = |name: &'a str| {
        let name = name.trim_start_matches('-');
        if is_wordy(name) { name } else { member }
    };
    if let Some(found) = known(word) {
        let name = assigned(word).map(|(name, _)| name).or(flag_before);
        return Some(of(name.map_or(member, named), found));
    }
    // In a list that is no command line, what the list is called decides first.
    if stand != Stand::Line
        && let Some(found) = judged(member, word, stand)
    {
        return Some(of(member, found));
    }
    // What stands behind a password's flag is one, also where it begins like a flag: a flag is a word.
    if let Some(name) = flag_before.filter(|name| says_password(name))
        && word.starts_with('-')
        && !is_wordy(word.trim_start_matches('-'))
        && let Some(found) = judged(name, word, Stand::Named)
    {
        return Some(of(named(name), found));
    }
    match flag(word).filter(|_| stand != Stand::Address) {
        Some((flag, None)) => {
            *before = Some(flag);
            return None;
        }
        Some((flag, Some(value))) => {
            let is_long = flag.starts_with("--");
            let found = judged(flag, value, Stand::Named).map(|found| of(named(flag), found));
            return found.or_else(|| by_name(value, &of, &named).0).or_else(|| {
                judged(member, value, stand)
                    .filter(|_| !is_long)
                    .map(|found| of(member, found))
            });
        }
        None => {}
    }
    // A name that stands with the value says more than the flag before it; where neither says anything, a variable is none.
    let (own, is_named) = match stand {
        Stand::Address => (None, false),
        _ => by_name(word, &of, &named),
    };
    let by_flag = || Some(of(named(flag_before?), judged(flag_before?, word, Stand::Named)?));
    let found = own.or_else(by_flag);
    if found.is_some() || is_named {
        return found;
    }
    let found = judged(member, word, stand).map(|found| of(member, found));
    if found.is_some() || stand != Stand::Line || !word.contains(char::is_whitespace) {
        return found;
    }
    // A line of a shell, or a header.
    let mut before = None;
    let mut pieces = word
        .split_whitespace()
        .map(|piece| piece.trim_matches(['"', '\'']));
    pieces.find_map(|piece| one(member, piece, stand, &mut before))
}

/// Judges `NAME=value` and `Name: value` by their names, and says whether the name decides: that of a variable does.
fn by_name<'a>(
    word: &'a str,
    of: &impl Fn(&'a str, (Pattern, &'a str)) -> Judged<'a>,
    named: &impl Fn(&'a str) -> &'a str,
) -> (Option<Judged<'a>>, bool) {
    let judge =
        |name: &'a str, value: &'a str| judged(name, value, Stand::Named).map(|found| of(named(name), found));
    if let Some((name, value)) = assigned(word) {
        return (judge(name, value), true);
    }
    let header = word.split_once(':').filter(|(name, _)| is_name(name));
    let found = header
        .map(|(name, value)| (name, value.trim()))
        .filter(|(_, value)| !value.starts_with("//"))
        .and_then(|(name, value)| judge(name, value));
    (found, found.is_some())
}

/// Returns the name and the value of `NAME=value`; padding is no value.
fn assigned(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    (is_name(name) && value.contains(|c| c != '=')).then_some((name, value))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// Returns the credential in one text, by what the member is called that holds it and by where it stands.
fn judged<'a>(member: &str, text: &'a str, stand: Stand) -> Option<(Pattern, &'a str)> {
    if let Some(found) = known(text) {
        return Some(found);
    }
    if stand == Stand::Names {
        return None;
    }
    let text = text.trim();
    let found = in_address(member, text, stand)
        .or_else(|| in_pairs(text, stand))
        .or_else(|| secrets::by_name(member, text, stand == Stand::Document))
        .or_else(|| without_name(text, stand));
    found.map(|text| (Pattern::GenericSecret, text))
}

/// Returns what stands in an address that not everybody may know: the password before its host, and, of what a server is started with or
/// reached at, parts of the host, of the path and of the query.
fn in_address<'a>(member: &str, text: &'a str, stand: Stand) -> Option<&'a str> {
    let at = text.find("://")?;
    // Texts that people read have addresses as examples.
    if stand == Stand::Document && text.contains(char::is_whitespace) {
        return None;
    }
    let rest = &text[at + 3..];
    let rest = &rest[..rest
        .find(|c: char| c.is_whitespace() || "\"'".contains(c))
        .unwrap_or(rest.len())];
    let mut end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // What follows the host is a port, or else a password with such a sign in it.
    let port = rest[..end].rsplit_once(':').map_or("", |(_, port)| port);
    if !rest[..end].contains(['@', '$']) && !port.bytes().all(|b| b.is_ascii_digit()) {
        end = rest.rfind('@').map_or(end, |at| {
            rest[at..]
                .find(['/', '?', '#'])
                .map_or(rest.len(), |slash| at + slash)
        });
    }
    let (authority, behind) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    if secrets::is_literal(password) {
        return Some(password);
    }
    if looks_secret(user) || secrets::by_name(member, user, true).is_some() {
        return Some(user);
    }
    let is_of_git = text[..at].ends_with("git+https") || text[..at].ends_with("git+ssh");
    if stand == Stand::Document || is_of_git {
        return None;
    }
    let mut labels = host.split(['.', ':']);
    if let Some(label) = labels.find(|label| is_odd(&label.to_ascii_lowercase())) {
        return Some(label);
    }
    let (path, query) = behind.split_once(['?', '#']).unwrap_or((behind, ""));
    path.split('/').find(|part| is_odd(part)).or_else(|| {
        query.split(['?', '&', '#', ';']).find_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            secrets::by_name(name, value, true).or_else(|| Some(value).filter(|value| is_odd(value)))
        })
    })
}

/// Returns the password of a text such as `Server=db;Password=…`, with which programs are told how to connect.
fn in_pairs(text: &str, stand: Stand) -> Option<&str> {
    if stand == Stand::Document {
        return None;
    }
    text.split(|c: char| c.is_whitespace() || "?&;,".contains(c))
        .find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = value.trim_matches(['"', '\'']);
            (says_password(name) && secrets::is_literal(value) && !secrets::is_path(value)).then_some(value)
        })
}

/// Returns a part of an argument that nobody would say, where no name says what it is.
fn without_name(text: &str, stand: Stand) -> Option<&str> {
    // A line is judged by its words.
    let is_judged = matches!(stand, Stand::Line | Stand::Address)
        && !text.contains("://")
        && !text.contains(char::is_whitespace);
    if !is_judged || secrets::is_path(text) {
        return None;
    }
    text.split(['/', '?', '&', '=', ',', ';'])
        .find(|part| is_odd(part) && !is_uuid(part) && !is_content(part))
}

/// Says whether a text looks like something that only who was told can know, and not like a name with a date in it.
fn is_odd(part: &str) -> bool {
    let is_word = |run: &str| {
        let is_date = run.len() <= 8 && run.bytes().all(|b| b.is_ascii_digit());
        is_date || (run.len() <= 12 && run.bytes().all(|b| b.is_ascii_alphabetic()) && is_wordy(run))
    };
    looks_secret(part) && !part.split(['-', '_', '.', '~']).all(is_word)
}

/// Says whether a text names a thing, as most programs name things.
fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

/// Says whether a text ends in the digest of a content or the name of a commit, by which people hold a package or an image to what it is.
fn is_content(text: &str) -> bool {
    let is_hex = |hex: &str, length| hex.len() == length && hex.bytes().all(|b| b.is_ascii_hexdigit());
    let is_digest = text
        .rsplit_once("sha256:")
        .is_some_and(|(_, hex)| is_hex(hex, 64));
    is_digest
        || text
            .rsplit_once(['@', '#'])
            .is_some_and(|(_, hex)| is_hex(hex, 40))
}
