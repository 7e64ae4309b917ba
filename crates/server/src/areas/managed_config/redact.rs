//! What a preview, a diff and a listing never show (D8.6).
//!
//! A value is hidden when a name on its way says that it may be a secret. Hidden values are compared as they
//! are and shown as a mark: that they differ is seen, nothing about them is.

use super::changes::Change;
use super::content::{Class, Content, Fault, step};
use serde_json::{Map, Value};

/// Stands for a hidden value.
pub const MARK: &str = "[redacted]";
/// Stands for a hidden value that differs from the one before, in a text that is compared by lines.
const CHANGED: &str = "[redacted, changed]";

/// Says whether what lies under a member of this name is hidden.
pub fn hides(name: &str) -> bool {
    let lower = name.to_lowercase();
    let words = ["secret", "token", "password", "apikey", "api_key", "credential"];
    lower == "env"
        || lower.ends_with("headers")
        || name.ends_with("Helper")
        || words.iter().any(|word| lower.contains(word))
}

/// Returns a value as it may be shown; `hidden` says whether a name above it hides it.
pub fn shown(value: &Value, hidden: bool) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| shown(item, hidden)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), shown(member, hidden || hides(name))))
            .collect::<Map<_, _>>()
            .into(),
        _ if hidden => MARK.into(),
        Value::String(text) if names_a_user(text) => MARK.into(),
        other => other.clone(),
    }
}

/// Returns a change's two values as they may be shown.
pub fn shown_change(change: &Change) -> (Option<Value>, Option<Value>) {
    let hidden = change.names.iter().any(|name| hides(name));
    let show = |value: &Option<Value>| value.as_ref().map(|value| shown(value, hidden));
    (show(&change.before), show(&change.after))
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

fn marked(other: Option<&Value>, mine: &Value, hidden: bool, mark: &str) -> Value {
    match mine {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(place, item)| marked(other.and_then(|o| o.get(place)), item, hidden, mark))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| {
                let other = other.and_then(|o| o.get(name));
                (name.clone(), marked(other, member, hidden || hides(name), mark))
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::String(text) if !hidden && !names_a_user(text) => mine.clone(),
        _ if !hidden && !mine.is_string() => mine.clone(),
        _ if other.is_none_or(|other| other == mine) => MARK.into(),
        _ => mark.into(),
    }
}

/// Says whether a text is an address with a user and, maybe, a password in it.
fn names_a_user(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority.contains('@')
    })
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
        Value::String(text) if text == MARK || text == CHANGED => {
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
    use crate::areas::managed_config::changes::{self, tests::contents};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn names_hide_what_lies_under_them() {
        for name in [
            "env",
            "headers",
            "http_headers",
            "requestHeaders",
            "apiKeyHelper",
            "otelHeadersHelper",
            "clientSecret",
            "GITHUB_TOKEN",
            "password",
            "apiKey",
            "api_key",
            "API_KEY",
            "credentials",
        ] {
            assert!(hides(name), "{name}");
        }
        for name in [
            "environment",
            "deny",
            "helperCommand",
            "permissions",
            "key",
            "headersHidden",
        ] {
            assert!(!hides(name), "{name}");
        }
    }

    #[test]
    fn a_hidden_value_is_a_mark_wherever_it_lies() {
        let value = json!({
            "env": { "A": "s3cret", "N": 7, "deep": [{ "x": "s3cret" }] },
            "hooks": [{ "headers": { "Authorization": "s3cret" }, "url": "https://x" }],
            "proxy": "https://bob:s3cret@proxy.example/", "mail": "bob@example.com",
        });
        let text = shown(&value, false).to_string();
        assert!(!text.contains("s3cret") && !text.contains('7'), "{text}");
        assert!(
            text.contains("Authorization") && text.contains("https://x") && text.contains("bob@example.com")
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

        #[test]
        fn nothing_hidden_is_ever_shown(before in contents(), after in contents()) {
            let mut count = 0;
            let (before, after) = (seeded(&before, &mut count), seeded(&after, &mut count));
            let (left, right) = pair(&before, &after);
            let mut seen = left.canonical() + &right.canonical() + &shown_content(&after).canonical();
            for change in changes::between(&before, &after) {
                let (old, new) = shown_change(&change);
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
    fn a_mark_cannot_be_published() {
        let document =
            json!({ "enforced": { "env": { "A": MARK } }, "defaults": { "x": [CHANGED, "fine"] } });
        let content: Content = serde_json::from_value(document).unwrap();
        let paths: Vec<String> = marks(&content).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["/enforced/env/A", "/defaults/x/0"]);
    }
}
