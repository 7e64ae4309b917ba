//! What a preview, a diff and a listing never show (D8.6).
//!
//! A value is hidden when a name on its way says that it may be a secret, when the argument before it or a name beside it does,
//! and when it looks like one itself (`secret_words.rs`). Hidden values are compared as they are and shown as a mark: that they
//! differ is seen, nothing about them is. Where a caller brings one of the two contents, even that is an answer to a guess:
//! who may not read the values sees them left uncompared.
//!
//! Keeps MC-5.

use super::changes::Change;
use super::content::{Class, Content, Fault, step};
use super::secret_words::{hides, holds_secret, is_flag};
use serde_json::{Map, Value};

/// Stands for a hidden value.
pub const MARK: &str = "[redacted]";
/// Stands for a hidden value that differs from the one before, in a text that is compared by lines.
const CHANGED: &str = "[redacted, changed]";
/// Stands for a hidden value that nobody compared, in such a text.
const NOT_COMPARED: &str = "[redacted, not compared]";

/// Names of members whose text is the name of what stands beside them: `{"name": "Authorization", "value": …}`.
const NAMING: [&str; 4] = ["name", "key", "header", "variable"];
/// Names of members that hold what such a name is of.
const NAMED: [&str; 5] = ["value", "values", "default", "data", "content"];

/// Returns a change's two values as they are shown, out of the two contents as they are shown.
pub fn shown_change(change: &Change, before: &Value, after: &Value) -> (Option<Value>, Option<Value>) {
    let find = |content: &Value| {
        let mut names = change.names.iter();
        names
            .try_fold(content, |value, name| value.get(name.as_str()))
            .cloned()
    };
    (find(before), find(after))
}

/// Returns a content as it may be shown.
pub fn shown_content(content: &Content) -> Content {
    pair(content, content).1
}

/// Returns two contents as they may be compared line by line: hidden values that differ have marks that do.
pub fn pair(before: &Content, after: &Content) -> (Content, Content) {
    let side = |class: Class, other: &Content, mine: &Content, mark: &str| -> Map<String, Value> {
        match marked(Some(&other.of(class)), &mine.of(class), false, mark) {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    };
    let both = |other: &Content, mine: &Content, mark: &str| Content {
        enforced: side(Class::Enforced, other, mine, mark),
        defaults: side(Class::Defaults, other, mine, mark),
    };
    (both(after, before, MARK), both(before, after, CHANGED))
}

/// Returns two contents for a caller who could try out hidden values by comparing: the marks of the two are never the same,
/// whatever they stand for. Neither content has a mark of its own: none can be published.
pub fn uncompared(before: &Content, after: &Content) -> (Content, Content) {
    let mut after = shown_content(after);
    for members in [&mut after.enforced, &mut after.defaults] {
        members.values_mut().for_each(leave_uncompared);
    }
    (shown_content(before), after)
}

fn leave_uncompared(value: &mut Value) {
    match value {
        Value::String(text) if text == MARK => NOT_COMPARED.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(leave_uncompared),
        Value::Object(members) => members.values_mut().for_each(leave_uncompared),
        _ => {}
    }
}

/// Says whether a value holds the mark of a hidden one.
pub fn holds_mark(value: &Value) -> bool {
    match value {
        Value::String(text) => is_mark(text),
        Value::Array(items) => items.iter().any(holds_mark),
        Value::Object(members) => members.values().any(holds_mark),
        _ => false,
    }
}

fn is_mark(text: &str) -> bool {
    [MARK, CHANGED, NOT_COMPARED].contains(&text)
}

/// Returns a value as it may be shown beside another one; `hidden` says whether something above it hides it.
fn marked(other: Option<&Value>, mine: &Value, hidden: bool, mark: &str) -> Value {
    match mine {
        Value::Array(items) => {
            let mut is_behind_flag = false;
            let items = items.iter().enumerate().map(|(place, item)| {
                let other = other.and_then(|o| o.get(place));
                let shown = marked(other, item, hidden || is_behind_flag, mark);
                is_behind_flag = item.as_str().is_some_and(is_flag);
                shown
            });
            items.collect()
        }
        Value::Object(members) => {
            let is_named = NAMING
                .iter()
                .filter_map(|name| members.get(*name)?.as_str())
                .any(hides);
            members
                .iter()
                .map(|(name, member)| {
                    let other = other.and_then(|o| o.get(name));
                    let hidden = hidden || hides(name) || (is_named && NAMED.contains(&name.as_str()));
                    (name.clone(), marked(other, member, hidden, mark))
                })
                .collect::<Map<_, _>>()
                .into()
        }
        Value::String(text) if !hidden && !holds_secret(text) => mine.clone(),
        _ if !hidden && !mine.is_string() => mine.clone(),
        _ if other.is_none_or(|other| other == mine) => MARK.into(),
        _ => mark.into(),
    }
}

/// Returns the places where a mark stands for a value that nobody knows any more: somebody publishes what a
/// preview showed.
pub fn marks(content: &Content) -> Vec<Fault> {
    let mut faults = Vec::new();
    for class in [Class::Enforced, Class::Defaults] {
        find_marks(&content.of(class), &format!("/{}", class.as_str()), &mut faults);
    }
    faults
}

fn find_marks(value: &Value, path: &str, faults: &mut Vec<Fault>) {
    match value {
        Value::String(text) if is_mark(text) => {
            faults.push(Fault::new(
                path,
                "is the mark that stands for a hidden value; give the value itself",
            ));
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                find_marks(item, &format!("{path}/{place}"), faults);
            }
        }
        Value::Object(members) => members
            .iter()
            .for_each(|(name, member)| find_marks(member, &step(path, name), faults)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed_config::changes::{self, tests::contents};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_hidden_value_is_a_mark_wherever_it_lies() {
        let value = json!({
            "env": { "A": "s3cret", "N": 7, "deep": [{ "x": "s3cret" }] },
            "hooks": [{ "headers": { "Authorization": "s3cret" }, "url": "https://x" }],
            "proxy": "https://bob:s3cret@proxy.example/", "mail": "bob@example.com",
            "args": ["--port", 1, "--api-key", "s3cret", "--api-key=s3cret", "-H", "X-Thing: s3cret", "plain"],
            "header": { "name": "X-Api-Key", "value": "s3cret" },
            "list": [{ "name": "Authorization", "value": "s3cret" }, { "name": "Accept", "value": "text" }],
            "authorization": "Bearer s3cret", "privateKey": "s3cret", "passphrase": "s3cret", "passwd": "s3cret",
            "cookie": "s3cret", "auth": { "deep": ["s3cret"] }, "url": "https://h/x?access_token=s3cret",
        });
        let text = marked(None, &value, false, MARK).to_string();
        assert!(!text.contains("s3cret") && !text.contains('7'), "{text}");
        assert!(
            [
                "Authorization",
                "https://x",
                "bob@example.com",
                "--port",
                "plain",
                "text"
            ]
            .iter()
            .all(|shown| text.contains(shown)),
            "{text}"
        );
    }

    /// Replaces every hidden value of a content by a word that can be searched for.
    fn with_canaries(value: &mut Value, hidden: bool, count: &mut usize) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|v| with_canaries(v, hidden, count)),
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    with_canaries(member, hidden || hides(name), count);
                }
            }
            other if hidden => {
                *count += 1;
                *other = format!("canary-{count}").into();
            }
            _ => {}
        }
    }

    fn seeded(content: &Content, count: &mut usize) -> Content {
        let mut document = content.document();
        with_canaries(&mut document, false, count);
        serde_json::from_value(document).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves MC-5.
        #[test]
        fn nothing_hidden_is_ever_shown(before in contents(), after in contents()) {
            let mut count = 0;
            let (before, after) = (seeded(&before, &mut count), seeded(&after, &mut count));
            let (left, right) = pair(&before, &after);
            let mut seen = left.canonical() + &right.canonical() + &shown_content(&after).canonical();
            for change in changes::between(&before, &after) {
                let (old, new) = shown_change(&change, &left.document(), &shown_content(&after).document());
                seen += &json!([old, new]).to_string();
            }
            prop_assert!(!seen.contains("canary"), "{}", seen);
        }

        #[test]
        fn what_differs_looks_different(before in contents(), after in contents()) {
            let (left, right) = pair(&before, &after);
            prop_assert_eq!(left == right, before == after);
        }
    }

    #[test]
    fn what_is_not_compared_says_the_same_of_every_guess() {
        let of = |key: &str, port: u16| -> Content {
            let enforced =
                json!({ "apiKey": key, "list": [{ "name": "Authorization", "value": key }], "port": port });
            serde_json::from_value(json!({ "enforced": enforced })).unwrap()
        };
        let stored = of("4711", 1);
        let seen = |guess: &Content| {
            let (before, after) = uncompared(&stored, guess);
            let paths: Vec<String> = changes::between(&before, &after)
                .into_iter()
                .map(|change| change.path)
                .collect();
            (before, after, paths)
        };
        assert_eq!(seen(&of("4711", 1)), seen(&of("4712", 1)));
        assert_eq!(seen(&of("4711", 1)).2, ["/enforced/apiKey", "/enforced/list"]);
        assert_eq!(seen(&of("4711", 2)).2.len(), 3);
    }

    #[test]
    fn a_guard_with_a_hidden_value_counts_as_weakened_by_every_guess() {
        let of = |key: &str| -> Content {
            let hook = json!({ "type": "http", "url": "https://x", "headers": { "Authorization": key } });
            let hooks = json!({ "PreToolUse": [{ "hooks": [hook] }] });
            let enforced = json!({ "hooks": hooks, "permissions": { "deny": ["Bash"] } });
            serde_json::from_value(json!({ "enforced": enforced })).unwrap()
        };
        let stored = of("4711");
        let weakened = |guess: &Content| {
            let (shown, _) = uncompared(&stored, guess);
            crate::managed_config::targets::Target::ClaudeCode.weakened(&shown, guess)
        };
        assert_eq!(weakened(&of("4711")), weakened(&of("4712")));
        let [only] = weakened(&of("4711")).try_into().unwrap();
        assert_eq!(only.path, "/enforced/hooks/PreToolUse");
    }

    #[test]
    fn a_mark_cannot_be_published() {
        let document = json!({ "enforced": { "env": { "A": MARK } }, "defaults": { "x": [CHANGED, "fine", NOT_COMPARED] } });
        let content: Content = serde_json::from_value(document).unwrap();
        let paths: Vec<String> = marks(&content).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["/enforced/env/A", "/defaults/x/0", "/defaults/x/2"]);
    }
}
