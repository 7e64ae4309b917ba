//! A member of a PATCH body: absent stays, `null` clears, a value sets (D13). What has always a value cannot be
//! cleared: there `null` is refused.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// What a PATCH says about one member. Give the field `#[serde(default)]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The member is not there: nothing changes.
    #[default]
    Absent,
    /// The member is `null`: the value goes away.
    Clear,
    /// The member has a value.
    Set(T),
}

impl<T> Patch<T> {
    /// Applies the patch to a stored value.
    pub fn apply<U>(&self, stored: &mut Option<U>, convert: impl FnOnce(&T) -> U) {
        match self {
            Patch::Absent => {}
            Patch::Clear => *stored = None,
            Patch::Set(value) => *stored = Some(convert(value)),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Patch::Clear, Patch::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Patch_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Option<T>>::json_schema(generator)
    }
}

/// What a PATCH says about a member that always has a value: absent stays, a value sets, `null` is refused.
/// Give the field `#[serde(default)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredChange<T>(Option<T>);

impl<T> Default for RequiredChange<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> RequiredChange<T> {
    /// Returns the value, if one was given.
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for RequiredChange<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

impl<T: JsonSchema> JsonSchema for RequiredChange<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Given_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        note: Patch<String>,
        #[serde(default)]
        name: RequiredChange<String>,
    }

    #[test]
    fn what_always_has_a_value_cannot_be_cleared() {
        let name = |text: &str| serde_json::from_str::<Body>(text).map(|body| body.name.get().cloned());
        assert_eq!(name("{}").unwrap(), None);
        assert_eq!(name(r#"{"name":"x"}"#).unwrap().as_deref(), Some("x"));
        assert!(name(r#"{"name":null}"#).is_err());
    }

    #[test]
    fn absent_null_and_value_are_three_things() {
        let note = |text: &str| serde_json::from_str::<Body>(text).unwrap().note;
        assert_eq!(note("{}"), Patch::Absent);
        assert_eq!(note(r#"{"note":null}"#), Patch::Clear);
        assert_eq!(note(r#"{"note":"x"}"#), Patch::Set("x".into()));
        let mut stored = Some(1);
        Patch::Absent::<i32>.apply(&mut stored, |v| *v);
        assert_eq!(stored, Some(1));
        Patch::Clear::<i32>.apply(&mut stored, |v| *v);
        assert_eq!(stored, None);
    }
}
