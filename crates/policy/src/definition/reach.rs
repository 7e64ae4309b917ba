//! Whether a policy can match at all: what is said here is certain, and much that can never match is not found.
//!
//! Absent on purpose: names of records (two words may be one person's), content (a command may be a list of texts) and conditions on
//! the past; of these nothing is certain.

use super::{Definition, Logic};
use crate::catalogue::{Field, FieldType};
use crate::condition::{Check, Condition, Order, Predicate};
use crate::digest::canonical;
use crate::family::{Family, Occasion};
use crate::register::name_key;

/// Returns why a policy can never match.
pub(super) fn never(definition: &Definition) -> Option<String> {
    let rule = &definition.rule;
    let Logic::Native(condition) = &rule.logic else {
        return None;
    };
    let reader = Reader {
        family: definition.family(),
        occasions: rule.occasions,
    };
    reader.never(condition).or_else(|| excepted(definition))
}

/// Returns the sentence that an exception takes everything away that the condition matches.
fn excepted(definition: &Definition) -> Option<String> {
    let authored = definition.authored();
    let own = canonical(authored.get("conditions")?);
    let listed = authored.get("exceptions").and_then(serde_json::Value::as_array);
    let for_ever = listed
        .into_iter()
        .flatten()
        .filter(|exception| exception.get("expiresAt").is_none_or(serde_json::Value::is_null))
        .filter_map(|exception| exception.get("conditions"));
    let mut all = authored.get("except").into_iter().chain(for_ever);
    all.any(|exception| canonical(exception) == own).then(|| {
        "an exception asks for exactly what the conditions ask for, so that nothing is left".to_owned()
    })
}

struct Reader {
    family: Family,
    occasions: u16,
}

impl Reader {
    fn never(&self, condition: &Condition) -> Option<String> {
        match condition {
            Condition::Is(predicate) => self.unsent(predicate),
            Condition::All(nodes) => {
                let part = nodes.iter().find_map(|node| self.never(node));
                part.or_else(|| contradiction(nodes))
            }
            Condition::Any(nodes) => {
                let mut each = nodes.iter().map(|node| self.never(node));
                let first = each.next().flatten()?;
                each.all(|reason| reason.is_some()).then_some(first)
            }
            Condition::Not(_) | Condition::Past(_) => None,
        }
    }

    /// Says that nobody sends what a predicate asks about where the policy judges: every operator is then false.
    fn unsent(&self, predicate: &Predicate) -> Option<String> {
        let field = predicate.operand.field();
        let is_of_one_stage = field == Field::PROMPT
            || field == Field::RESPONSE
            || ["tool.", "mcp."]
                .iter()
                .any(|start| field.name().starts_with(start));
        if self.family != Family::Content || !is_of_one_stage || field.is_sent_at(self.family, self.occasions)
        {
            return None;
        }
        let words = |occasions: &mut dyn Iterator<Item = Occasion>| {
            let words: Vec<&str> = occasions.map(Occasion::word).collect();
            words.join(", ")
        };
        let asked = words(
            &mut Occasion::ALL
                .into_iter()
                .filter(|o| o.bit() & self.occasions != 0),
        );
        let sent = words(&mut field.occasions(self.family));
        Some(format!(
            "{} is never sent at {asked}, where this policy judges; it is sent at {sent}",
            field.name()
        ))
    }
}

/// Says that no value of an attribute is all that the members of `all` ask for.
fn contradiction(nodes: &[Condition]) -> Option<String> {
    let mut predicates = Vec::new();
    flatten(nodes, &mut predicates);
    for (at, predicate) in predicates.iter().enumerate() {
        let Some(field) = predicate.operand.as_field().filter(|field| is_plain(*field)) else {
            continue;
        };
        let others = predicates.iter().enumerate();
        let others = others.filter(|(other, p)| *other != at && p.operand.as_field() == Some(field));
        let others: Vec<&Check> = others.map(|(_, p)| &p.check).collect();
        if is_empty(field, &predicate.check, &others) {
            return Some(format!(
                "no value of {} is all that the conditions ask for together",
                field.name()
            ));
        }
    }
    None
}

fn is_plain(field: Field) -> bool {
    !field.is_content() && !field.has_register()
}

fn flatten<'a>(nodes: &'a [Condition], predicates: &mut Vec<&'a Predicate>) {
    for node in nodes {
        match node {
            Condition::Is(predicate) => predicates.push(predicate),
            Condition::All(nodes) => flatten(nodes, predicates),
            _ => {}
        }
    }
}

/// Returns whether none of the values that a check leaves passes all the others.
fn is_empty(field: Field, check: &Check, others: &[&Check]) -> bool {
    match (field.kind(), check) {
        (FieldType::Text, Check::Text { is, negated: false }) => !others.iter().all(|o| passes(field, o, is)),
        (FieldType::Text, Check::TextIn { list, negated: false }) => {
            !list.iter().any(|is| others.iter().all(|o| passes(field, o, is)))
        }
        (FieldType::Boolean, Check::Boolean { is, negated }) => others.iter().any(
            |o| matches!(o, Check::Boolean { is: other, negated: no } if (other ^ no) != (is ^ negated)),
        ),
        (
            FieldType::Number,
            Check::Number {
                order,
                value,
                negated,
            },
        ) => others.iter().any(|o| excludes(*order, *value, *negated, o)),
        _ => false,
    }
}

/// Returns whether a text passes a check; also where nothing is certain.
fn passes(field: Field, check: &Check, text: &str) -> bool {
    let key = |text: &str| {
        if field.is_name() {
            name_key(field, text).into_owned()
        } else {
            text.to_owned()
        }
    };
    let text = key(text);
    match check {
        Check::Text { is, negated } => (key(is) == text) != *negated,
        Check::TextIn { list, negated } => list.iter().any(|is| key(is) == text) != *negated,
        Check::Contains(part) if !field.is_name() => text.contains(&**part),
        Check::StartsWith(part) if !field.is_name() => text.starts_with(&**part),
        Check::EndsWith(part) if !field.is_name() => text.ends_with(&**part),
        _ => true,
    }
}

/// Returns whether no number passes both.
fn excludes(order: Order, value: f64, negated: bool, other: &Check) -> bool {
    let Check::Number {
        order: other_order,
        value: other_value,
        negated: other_negated,
    } = other
    else {
        return false;
    };
    if order == Order::Equal && !negated {
        return other_order.holds(&value, other_value) == *other_negated;
    }
    let is_lower = matches!(order, Order::Greater | Order::AtLeast);
    let is_upper = matches!(other_order, Order::Less | Order::AtMost);
    if !(is_lower && is_upper) {
        return false;
    }
    let touch = order == Order::AtLeast && *other_order == Order::AtMost;
    if touch {
        value > *other_value
    } else {
        value >= *other_value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(on: &str, conditions: &Value, more: &Value) -> Option<String> {
        let mut definition = json!({ "id": "p", "name": "p", "action": "flag_for_review", "evaluateOn": [on],
            "conditions": conditions });
        for (name, value) in more.as_object().unwrap() {
            definition[name] = value.clone();
        }
        never(&Definition::read(Family::Content, &definition).unwrap())
    }

    fn is(field: &str, op: &str, value: &Value) -> Value {
        json!({ "field": field, "op": op, "value": value })
    }

    #[test]
    fn what_can_never_match_is_said_and_what_can_is_not() {
        let tool = |op: &str, value: Value| is("tool.id", op, &value);
        let none = json!({});
        for (on, conditions) in [
            ("prompt", tool("eq", json!("Bash"))),
            ("pre_tool", is("request.prompt", "contains", &json!("x"))),
            ("pre_tool", is("tool.result", "contains", &json!("x"))),
            (
                "pre_tool",
                json!({ "all": [tool("eq", json!("Bash")), tool("eq", json!("Read"))] }),
            ),
            (
                "pre_tool",
                json!({ "all": [tool("in", json!(["Bash", "x"])), tool("not_in", json!(["bash", "X"]))] }),
            ),
            (
                "pre_tool",
                json!({ "any": [
                { "all": [tool("eq", json!("a")), { "all": [tool("neq", json!("A"))] }] },
                is("request.prompt", "contains", &json!("x")) ] }),
            ),
            (
                "response",
                json!({ "all": [is("llm.input_tokens", "gt", &json!(5)), is("llm.input_tokens", "lt", &json!(5))] }),
            ),
            (
                "response",
                json!({ "all": [is("llm.input_tokens", "eq", &json!(5)), is("llm.input_tokens", "gte", &json!(6))] }),
            ),
        ] {
            assert!(of(on, &conditions, &none).is_some(), "{conditions}");
        }
        for (on, conditions) in [
            ("pre_tool", tool("eq", json!("Bash"))),
            ("prompt", json!({ "not": tool("eq", json!("Bash")) })),
            (
                "prompt",
                json!({ "any": [tool("eq", json!("Bash")), is("request.prompt", "contains", &json!("x"))] }),
            ),
            ("prompt", json!({ "hasPriorEvent": tool("eq", json!("Bash")) })),
            (
                "pre_tool",
                json!({ "all": [tool("in", json!(["Bash", "x"])), tool("neq", json!("x"))] }),
            ),
            (
                "pre_tool",
                json!({ "all": [is("identity.user_id", "eq", &json!("ada")),
                is("identity.user_id", "eq", &json!("ada@acme.test"))] }),
            ),
            (
                "pre_tool",
                json!({ "all": [is("tool.input.command", "eq", &json!("a")),
                is("tool.input.command", "eq", &json!("b"))] }),
            ),
            (
                "response",
                json!({ "all": [is("llm.input_tokens", "gte", &json!(5)), is("llm.input_tokens", "lte", &json!(5))] }),
            ),
        ] {
            assert_eq!(of(on, &conditions, &none), None, "{conditions}");
        }
    }

    #[test]
    fn an_exception_that_takes_everything_away_is_said() {
        let bash = is("tool.id", "eq", &json!("Bash"));
        assert!(of("pre_tool", &bash, &json!({ "except": bash })).is_some());
        let listed = |more: Value| {
            let mut exception = json!({ "id": "e", "reason": "r", "conditions": bash });
            for (name, value) in more.as_object().unwrap() {
                exception[name] = value.clone();
            }
            of("pre_tool", &bash, &json!({ "exceptions": [exception] }))
        };
        assert!(listed(json!({})).is_some());
        assert_eq!(listed(json!({ "expiresAt": "2026-01-01T00:00:00Z" })), None);
    }
}
