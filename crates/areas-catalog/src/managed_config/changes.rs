//! What differs between two contents, exactly and in the order of the paths (D8.6).
//!
//! Objects are compared member by member; an array is one value, because the place of an item in a list of
//! rules says nothing. Applying every change to the first content gives the second one (MC-4).
//!
//! Keeps MC-4.

use super::content::{Class, Content, step};
use serde_json::{Map, Value};

/// One change from a content to another. `None` stands for "is not there".
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// JSON Pointer into the content.
    pub path: String,
    /// The class that it belongs to.
    pub class: Class,
    /// The names on the way, the class first.
    pub names: Vec<String>,
    /// The value before.
    pub before: Option<Value>,
    /// The value after.
    pub after: Option<Value>,
}

/// Returns every change from `before` to `after`, sorted by path.
pub fn between(before: &Content, after: &Content) -> Vec<Change> {
    let mut changes = Vec::new();
    for (class, before, after) in [
        (Class::Enforced, &before.enforced, &after.enforced),
        (Class::Defaults, &before.defaults, &after.defaults),
    ] {
        let mut names = vec![class.as_str().to_owned()];
        members(class, &mut names, before, after, &mut changes);
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn members(
    class: Class,
    names: &mut Vec<String>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    for name in gone.chain(after.keys()) {
        names.push(name.clone());
        match (before.get(name), after.get(name)) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                members(class, names, before, after, changes);
            }
            (before, after) if before != after => changes.push(Change {
                path: names.iter().fold(String::new(), |path, name| step(&path, name)),
                class,
                names: names.clone(),
                before: before.cloned(),
                after: after.cloned(),
            }),
            _ => {}
        }
        names.pop();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A content as an editor of settings could write it: few names, so that two contents share some.
    pub fn contents() -> impl Strategy<Value = Content> {
        let name = prop::sample::select(vec![
            "a",
            "b",
            "env",
            "headers",
            "apiKeyHelper",
            "x/y",
            "~",
            "token",
            "",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3_i64..3).prop_map(Value::from),
            prop::sample::select(vec!["", "one", "two", "zwölf"]).prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..4).prop_map(|m| m
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        });
        let top = prop::sample::select(vec!["a", "b", "c", "env", "mcp", "password"]);
        let class = prop::collection::btree_map(top, value, 0..5).prop_map(|m| {
            m.into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<Map<_, _>>()
        });
        (class.clone(), class).prop_map(|(enforced, defaults)| Content { enforced, defaults })
    }

    /// Applies changes as a stranger would who reads the preview: by path alone.
    fn applied(content: &Content, changes: &[Change]) -> Value {
        let mut document = content.document();
        for change in changes {
            let (parent, name) = change.path.rsplit_once('/').unwrap();
            let name = name.replace("~1", "/").replace("~0", "~");
            let parent = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            assert_eq!(parent.get(&name), change.before.as_ref(), "{}", change.path);
            match &change.after {
                Some(value) => drop(parent.insert(name, value.clone())),
                None => drop(parent.remove(&name)),
            }
        }
        document
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves MC-4.
        #[test]
        fn the_changes_are_exactly_the_difference(before in contents(), after in contents()) {
            let changes = between(&before, &after);
            prop_assert_eq!(applied(&before, &changes), after.document());
            prop_assert!(changes.windows(2).all(|pair| pair[0].path < pair[1].path));
            prop_assert_eq!(changes.is_empty(), before.canonical() == after.canonical());
            prop_assert!(changes.iter().all(|c| c.before != c.after));
            prop_assert_eq!(between(&after, &before).len(), changes.len());
        }
    }

    #[test]
    fn a_list_is_one_value_and_an_object_is_not() {
        let of = |v: Value| Content {
            enforced: v.as_object().unwrap().clone(),
            defaults: Map::new(),
        };
        let before = of(json!({ "rules": ["a", "b"], "deep": { "x": 1, "y": {} } }));
        let after = of(json!({ "rules": ["b"], "deep": { "x": 1, "y": { "z": null } } }));
        let changes = between(&before, &after);
        let shown: Vec<_> = changes
            .iter()
            .map(|c| (c.path.as_str(), c.before.clone(), c.after.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("/enforced/deep/y/z", None, Some(Value::Null)),
                ("/enforced/rules", Some(json!(["a", "b"])), Some(json!(["b"]))),
            ]
        );
    }
}
