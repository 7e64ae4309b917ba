//! Whole numbers as some clients write them: those whose language has one kind of number write `10.0` for ten, and a schema takes
//! it as an integer. Only where the tool's own schema wants an integer is it one; everywhere else a number stays as it is written.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// LIMIT: 2⁵³ − 1. Beyond it neighbours are one double, and the number that was meant is not known.
const MAX: f64 = 9_007_199_254_740_991.0;

/// Where a tool's arguments hold whole numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WholeNumbers {
    is_here: bool,
    /// Something else than a whole number may stand here that is a number too.
    takes_fractions: bool,
    members: BTreeMap<String, WholeNumbers>,
    others: Option<Box<WholeNumbers>>,
    items: Option<Box<WholeNumbers>>,
}

impl WholeNumbers {
    /// Reads a schema.
    pub fn of(schema: &Value) -> Self {
        let mut found = Self::default();
        let has_type = |name: &str| match &schema["type"] {
            Value::String(one) => one == name,
            Value::Array(several) => several.iter().any(|one| one == name),
            _ => false,
        };
        found.is_here = has_type("integer");
        found.takes_fractions = has_type("number");
        let members = schema["properties"].as_object().into_iter().flatten();
        found.members = members
            .map(|(name, member)| (name.clone(), Self::of(member)))
            .filter(|(_, member)| !member.is_nowhere())
            .collect();
        let inner = |keyword: &str| {
            let inner = schema.get(keyword).map(Self::of).unwrap_or_default();
            (!inner.is_nowhere()).then(|| Box::new(inner))
        };
        found.others = inner("additionalProperties");
        found.items = inner("items");
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for alternative in schema[keyword].as_array().into_iter().flatten() {
                found.join(Self::of(alternative));
            }
        }
        found
    }

    /// Takes in what another alternative says of the same place. Where one takes fractions, all do.
    fn join(&mut self, other: Self) {
        self.is_here |= other.is_here;
        self.takes_fractions |= other.takes_fractions;
        for (name, member) in other.members {
            self.members.entry(name).or_default().join(member);
        }
        for (own, other) in [(&mut self.others, other.others), (&mut self.items, other.items)] {
            if let Some(other) = other {
                own.get_or_insert_default().join(*other);
            }
        }
    }

    fn is_nowhere(&self) -> bool {
        *self == Self::default()
    }

    /// Writes the whole numbers of a tool's arguments without a fraction.
    pub fn write(&self, arguments: &mut Map<String, Value>) {
        for (name, value) in arguments {
            if let Some(inner) = self.members.get(name).or(self.others.as_deref()) {
                inner.write_value(value);
            }
        }
    }

    fn write_value(&self, value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() && self.is_here && !self.takes_fractions => {
                if let Some(whole) = number.as_f64().and_then(whole) {
                    *value = whole.into();
                }
            }
            Value::Object(members) => self.write(members),
            Value::Array(items) => {
                if let Some(inner) = &self.items {
                    for item in items {
                        inner.write_value(item);
                    }
                }
            }
            _ => {}
        }
    }
}

fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && number.abs() <= MAX;
    is_whole.then(|| format!("{number:.0}").parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(schema: &Value, mut arguments: Value) -> Value {
        WholeNumbers::of(schema).write(arguments.as_object_mut().unwrap());
        arguments
    }

    #[test]
    fn a_whole_number_may_have_a_fraction_of_zero() {
        let integer = json!({ "type": "integer" });
        let schema = json!({ "properties": {
            "a": integer,
            "b": { "type": ["integer", "null"] },
            "c": { "type": "array", "items": { "properties": { "d": integer } } },
            "e": { "anyOf": [{ "type": "null" }, { "type": "object", "additionalProperties": integer }] },
        } });
        let given =
            json!({ "a": 10.0, "b": -0.0, "c": [{ "d": 2e3 }], "e": { "x": 9_007_199_254_740_991.0 } });
        let whole = json!({ "a": 10, "b": 0, "c": [{ "d": 2000 }], "e": { "x": 9_007_199_254_740_991_i64 } });
        assert_eq!(written(&schema, given), whole);
        assert_eq!(written(&schema, whole.clone()), whole);
    }

    #[test]
    fn every_other_number_stays_as_it_is() {
        let integer = json!({ "type": "integer" });
        let schema = json!({ "properties": {
            "whole": integer,
            "any": {},
            "number": { "type": "number" },
            "text": { "type": "string" },
            "either": { "anyOf": [integer, { "type": "number" }] },
            "open": { "type": "object" },
        } });
        for given in [
            json!({ "whole": 1.5 }),
            json!({ "whole": 9_007_199_254_740_992.0 }),
            json!({ "whole": 1e300 }),
            json!({ "whole": "1.0" }),
            json!({ "whole": [1.0] }),
            json!({ "whole": { "whole": 1.0 } }),
            json!({ "any": 1.0, "number": 1.0, "text": 1.0, "either": 1.0, "unknown": 1.0 }),
            json!({ "open": { "whole": 1.0 } }),
        ] {
            let unchanged = written(&schema, given.clone());
            assert_eq!(unchanged.to_string(), given.to_string());
        }
    }
}
