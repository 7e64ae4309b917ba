//! What an entry of a configuration may ask for or start, for denials alone.
//!
//! ```text
//! entry ──► texts: members, words of the command, values of variables, documents within a text
//!             ├─► addresses, as those who fetch read them ──► keys ─┐
//!             └─► words that name a package or an image   ──► keys ─┴─► what it may be
//!       what nobody can read ──► doubts: it may be any server whose key begins so
//! ```
//!
//! The key of an entry says what runs, and is strict: what it does not know is a form. Here it is the other way around: whatever may be meant
//! counts, and what nobody can read may be anything. A plain word that is called like a denied package counts as that one.
//!
//! Absent on purpose: what an entry says of itself (descriptions, names of tools, headers), which leads nowhere; what stands in a script or in the
//! environment of a client; names beyond ASCII, whose tables change with each client's release: such a host may be any.
//!
//! Keeps IV-7.

mod address;
mod package;

use crate::launch::base;
use crate::server::{ADDRESSES, HARMLESS};
use crate::syntax::{Format, value};
use crate::wire::is_always_weak;
use serde_json::Value;
use std::collections::BTreeSet;

/// LIMIT: bytes of the texts of one entry, its words, and documents within documents. Ours; what has more may be any server.
const MOST_BYTES: usize = 64 * 1024;
const MOST_WORDS: usize = 512;
const MOST_LEVELS: usize = 3;
/// Members of an entry that are sent and not followed.
const SENT: [&str; 4] = ["headers", "http_headers", "env_http_headers", "requestOptions"];
/// Members whose values are of variables: one that is taken over from somewhere else is no word of the command.
const VARIABLES: [&str; 5] = ["env", "envs", "environment", "env_keys", "env_vars"];
/// Programs that start packages and images by their names.
const LAUNCHERS: [&str; 17] = [
    "bun", "bunx", "deno", "dnx", "docker", "go", "nerdctl", "npm", "npx", "pipx", "pnpm", "pnpx", "podman",
    "uv", "uvx", "volta", "yarn",
];

/// Why nobody can read from an entry which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Odd {
    /// The host of its address is written in signs that clients turn into others.
    Host,
    /// A variable stands where its address leads.
    Address,
    /// A variable stands in a command that starts packages by their names.
    Command,
    /// There is more of it than is read.
    Size,
}

/// The servers that an entry may be, where nobody can read which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    begins: String,
    /// Why.
    pub odd: Odd,
}

impl Doubt {
    fn any(odd: Odd) -> Self {
        Self {
            begins: String::new(),
            odd,
        }
    }

    fn any_address(odd: Odd) -> Self {
        Self {
            begins: "url:".to_owned(),
            odd,
        }
    }

    /// Says whether a key may be the one.
    pub fn is_of(&self, key: &str) -> bool {
        let rest = key.strip_prefix(self.begins.as_str());
        let is_whole = self.begins.is_empty() || self.begins.ends_with(':');
        rest.is_some_and(|rest| is_whole || rest.is_empty() || rest.starts_with('/'))
    }
}

/// What an entry may be, besides what its key says.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    pub(crate) keys: BTreeSet<String>,
    pub(crate) doubts: BTreeSet<Doubt>,
}

/// Where a text of an entry stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What a client takes for an address as it is.
    Address,
    /// Words of a command.
    Command,
    /// The value of a variable, or a member that nobody knows.
    Other,
    /// What the entry says of itself: an address in it is looked at, as it always was, and no word of it.
    Said,
}

/// What is read of an entry.
struct Reading<'a> {
    own: &'a str,
    meant: Meant,
    bytes: usize,
    /// How many bytes of addresses are read yet.
    left: usize,
    words: usize,
    has_launcher: bool,
    has_variable: bool,
    has_open_address: bool,
}

/// Returns what an entry of a configuration may be; `own` is its key.
///
/// Keeps IV-7.
pub(crate) fn meant(written: &Value, own: &str) -> Meant {
    let mut reading = Reading {
        own,
        meant: Meant::default(),
        bytes: 0,
        left: address::MOST_READ,
        words: 0,
        has_launcher: false,
        has_variable: false,
        has_open_address: false,
    };
    reading.entry(written);
    // What is started by its name is the key, or nobody knows the form; what a bridge leads to is known where its address is.
    let is_bridge = ["npm:", "pypi:", "deno:"]
        .iter()
        .any(|kind| own.starts_with(kind))
        && is_always_weak(own);
    let is_launched = own.starts_with("cmd:") && reading.has_launcher;
    if reading.has_variable && (is_bridge || is_launched) || reading.has_open_address && is_launched {
        reading.meant.doubts.insert(Doubt::any(Odd::Command));
    }
    if reading.bytes > MOST_BYTES || reading.words > MOST_WORDS {
        reading.meant.doubts.insert(Doubt::any(Odd::Size));
    }
    reading.meant
}

impl Reading<'_> {
    fn entry(&mut self, written: &Value) {
        for (name, member) in written.as_object().into_iter().flatten() {
            let name = name.as_str();
            let part = match name {
                _ if SENT.contains(&name) => continue,
                _ if ADDRESSES.contains(&name) => Part::Address,
                "command" | "cmd" | "args" => Part::Command,
                _ if VARIABLES.contains(&name) => Part::Other,
                _ if HARMLESS.contains(&name) => Part::Said,
                _ => Part::Other,
            };
            match (part, member) {
                // Continue has the server in a member of its own.
                (Part::Other, Value::Object(_)) if name == "transport" => self.entry(member),
                // What it says of itself has no parts.
                (Part::Said, Value::Object(_)) => {}
                _ => self.value(member, part, 0),
            }
        }
    }

    fn value(&mut self, written: &Value, part: Part, level: usize) {
        match written {
            Value::String(text) => self.text(text, part, level),
            Value::Array(items) => items.iter().for_each(|item| self.value(item, part, level)),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                let part = match part {
                    // In a document within a text, and in the member of Zed.
                    _ if ADDRESSES.contains(&name.as_str()) => Part::Address,
                    Part::Command if name == "env" => Part::Other,
                    part => part,
                };
                self.value(member, part, level);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, part: Part, level: usize) {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MOST_BYTES {
            return;
        }
        for asked in address::asked_in(text, part == Part::Address, &mut self.left) {
            self.meant.keys.extend(asked.keys);
            if part != Part::Said {
                self.meant.doubts.extend(asked.doubts);
            }
        }
        if matches!(part, Part::Address | Part::Said) {
            return;
        }
        for word in package::words(text) {
            self.words += 1;
            if self.words > MOST_WORDS {
                return;
            }
            let is_launcher = LAUNCHERS.contains(&base(&word).as_str());
            self.has_launcher |= is_launcher;
            // What starts packages is a program, and no package of the name.
            if !is_launcher {
                self.word(&word);
            }
        }
        if part == Part::Command && has_open_word(text) {
            // A bridge goes where an address leads; what starts packages may take one from there.
            let is_address = ["http:", "https:", "ws:", "wss:"]
                .iter()
                .any(|scheme| text.starts_with(scheme));
            self.has_open_address |= is_address;
            self.has_variable |= !is_address;
        }
        if text.trim_start().starts_with(['{', '[']) {
            if level >= MOST_LEVELS {
                self.bytes = MOST_BYTES + 1;
            } else if let Ok(inner) = value(text.as_bytes(), Format::Json, &|| false) {
                self.value(&inner, part, level + 1);
            }
        }
    }

    /// Takes the keys of a word; the one that names the package of the entry's own key is no other package of that name.
    fn word(&mut self, word: &str) {
        let Some(mut keys) = package::keys(word) else {
            self.words = MOST_WORDS + 1;
            return;
        };
        let plain = |key: &str| key.strip_prefix("deno:").unwrap_or(key).to_owned();
        if keys.contains(self.own) {
            let own = plain(self.own);
            keys.retain(|key| plain(key) == own);
        }
        self.meant.keys.extend(keys);
    }
}

/// Says whether somebody else fills in a word of a command: not what is wholly given to a variable, or wholly a header, where no shell reads it.
fn has_open_word(text: &str) -> bool {
    let is_of_shell = text.contains([';', '&', '|', '`', '\n']) || text.contains("$(");
    let is_name = |name: &str| {
        let signs = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        signs && !name.is_empty() && !name.starts_with('-')
    };
    let is_given = text
        .split_once('=')
        .is_some_and(|(name, value)| is_name(name) && !value.contains(char::is_whitespace));
    let is_header = text.split_once(": ").is_some_and(|(name, _)| is_name(name));
    if !is_of_shell && (is_given || is_header) {
        return false;
    }
    address::variable(text).is_some()
        || ["$(", "`", "$'"].iter().any(|begin| text.contains(begin))
        || is_filled_by_windows(text)
}

/// Says whether a text has a name between percent signs. One of two letters may be a sign of an address.
fn is_filled_by_windows(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        let begins = bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins && name.len() > 2 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let between: Vec<&str> = parts.collect();
    between
        .split_last()
        .is_some_and(|(_, between)| between.iter().any(|name| is_name(name)))
}
