//! What this machine and its server know by name, for a shell that completes a word. Whatever goes wrong is no word.

use super::connection::{self, Connection, TokenSource, profile_path};
use super::kinds::kind_of;
use super::names;
use super::profile::Profiles;
use super::send::Sender;
use super::server::Server;
use super::terminal::Terminal;
use clap::Command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// LIMIT: a person who pressed a key waits no longer for the server.
const PATIENCE: Duration = Duration::from_millis(1500);
/// LIMIT: more words than this nobody looks through.
const MAX_WORDS: usize = 500;

/// A word, and what it stands for.
pub type KnownWord = (String, String);

/// Returns the names of the profiles, with their servers.
pub fn profiles(flags: &[String], terminal: &Terminal) -> Vec<KnownWord> {
    let Some(matches) = parsed(flags) else {
        return Vec::new();
    };
    let found = profile_path(&matches, terminal).and_then(|(path, _)| Profiles::load(&path).ok().flatten());
    let profiles = found.map(|profiles| profiles.by_name).unwrap_or_default();
    profiles
        .into_iter()
        .map(|(name, profile)| (name, profile.url.unwrap_or_default()))
        .collect()
}

/// Returns the records whose id a parameter takes: by their names, or by their ids where a name cannot be typed or is that of
/// several.
///
/// `flags` are those of the connection, as they were typed; `before` are the words of the path before this one.
pub async fn records(
    parameter: &str,
    flags: &[String],
    before: &BTreeMap<String, String>,
    terminal: &Terminal,
) -> Vec<KnownWord> {
    let asked = async {
        let kind = kind_of(parameter)?;
        let mut connection = Connection::resolve(&parsed(flags)?, terminal).ok()?;
        // Who waits for a word waits too short a time to renew anything.
        if let TokenSource::SignIn {
            profile, expires_at, ..
        } = &connection.token_source
        {
            if *expires_at <= terminal.clock.now() {
                return None;
            }
            connection.token_source = TokenSource::Profile(profile.clone());
        }
        let server = Server::new(&connection).ok()?;
        let sender = Sender {
            server: &server,
            terminal,
            retries: 0,
            quiet: true,
            repeat: None,
            unmodified: false,
            weighs: false,
        };
        let items = names::list(kind, None, before, &connection.place, &sender)
            .await
            .ok()?;
        Some(words(&items, kind.name))
    };
    let found = tokio::time::timeout(PATIENCE, asked).await;
    found.ok().flatten().unwrap_or_default()
}

fn parsed(flags: &[String]) -> Option<clap::ArgMatches> {
    let command = Command::new("provost").args(connection::args());
    let words = ["provost", "--quiet"]
        .into_iter()
        .chain(flags.iter().map(String::as_str));
    command.try_get_matches_from(words).ok()
}

fn words(items: &[Value], name: &str) -> Vec<KnownWord> {
    let text = |item: &Value, member: &str| {
        item.get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(text(item, name)).or_default() += 1;
    }
    let word = |item: &Value| {
        let (id, name) = (text(item, "id"), text(item, name));
        if is_typed_plainly(&name) && counts.get(&name) == Some(&1) {
            (name, id)
        } else {
            (id, name)
        }
    };
    items
        .iter()
        .map(word)
        .filter(|(word, _)| is_typed_plainly(word))
        .take(MAX_WORDS)
        .collect()
}

/// Says whether a shell takes a word as it is.
fn is_typed_plainly(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+/".contains(&byte);
    !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_offered_by_its_name_unless_the_name_is_not_its_own_or_cannot_be_typed() {
        let item = |id: &str, name: &str| json!({ "id": id, "name": name });
        let items = [
            item("sa_1", "deploy"),
            item("sa_2", "twice"),
            item("sa_3", "twice"),
            item("sa_4", "$(reboot)"),
            item("sa_5", "-rf"),
            item("`id`", "a b"),
        ];
        let offered: Vec<String> = words(&items, "name").into_iter().map(|(word, _)| word).collect();
        assert_eq!(offered, ["deploy", "sa_2", "sa_3", "sa_4", "sa_5"]);
    }
}
