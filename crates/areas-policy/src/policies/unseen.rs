//! What a definition compares with and nothing was called in the last 30 days.
//!
//! Read from memory: nothing is asked of the store while a policy is written, and what is found changes neither the record nor what a
//! plan is compared by.

use super::views::{NearValue, Warning};
use crate::history::{SeenValue, SeenValues, WATCHED, seen_values};
use provost_kernel::{OperationContext, id};
use provost_policy::{Definition, Field, name_key};
use serde_json::Value;

/// The scope of figures about recorded events.
const HISTORY: &str = "policies:history";
/// LIMIT: values of a definition that are looked up. Ours: 20 milliseconds.
const COMPARED: usize = 64;
/// LIMIT: warnings of one definition. Ours: a person reads them.
const WARNINGS: usize = 20;
/// LIMIT: values that are offered for one, and all that are as near and as frequent as the last of them, up to a bound.
const NEAR: usize = 3;
const NEAR_WITH_TIES: usize = 8;
/// LIMIT: warnings that offer something, values that each looks at, the most frequent first, and characters of a name that is compared
/// letter by letter: 20 milliseconds. Ours.
const OFFERS: usize = 10;
const LOOKED_AT: usize = 500;
const LETTERS: usize = 40;

/// A place of a definition that compares an attribute with a text.
struct Comparison<'a> {
    field: Field,
    pointer: String,
    text: &'a str,
}

/// Returns a warning for each value of a definition that no event of the last days had. `bound` is the definition with ids in place of
/// names.
pub fn unseen(ctx: &OperationContext<'_>, definition: &Definition, bound: &Value) -> Vec<Warning> {
    let Some(seen) = seen_values(ctx.services(), ctx.organization()) else {
        return Vec::new();
    };
    let counts = ctx.actor().permission.scopes.has(HISTORY);
    among(&seen, definition.authored(), bound, counts)
}

/// Returns a warning for each id of a server in the inventory that a definition compares with the server of a call: events name servers as
/// clients call them, and what a definition says is compared as it is written (ADR 0113).
pub fn by_inventory_id(definition: &Definition) -> Vec<Warning> {
    let mut places = Vec::new();
    collect(definition.authored(), "", &mut places);
    let is_id =
        |place: &Comparison<'_>| place.field == Field::MCP_SERVER && id::parse("srv", place.text).is_some();
    let named = places.into_iter().filter(is_id).take(WARNINGS);
    let warnings = named.map(|place| Warning {
        code: "id_of_inventory",
        path: format!("/definition{}", place.pointer),
        line: None,
        column: None,
        message: format!(
            "{} is the id of a server in the inventory, and no event of a client has it: events name a server as the client calls it",
            place.text
        ),
        near: Vec::new(),
    });
    warnings.collect()
}

fn among(seen: &SeenValues, authored: &Value, bound: &Value, counts: bool) -> Vec<Warning> {
    let mut places = Vec::new();
    collect(authored, "", &mut places);
    let mut warnings = Vec::new();
    for place in places.into_iter().take(COMPARED) {
        // Where nothing at all was seen, nobody has sent events of this kind yet: that is said elsewhere, and no mistake.
        let Some(values) = seen.values.get(&place.field) else {
            continue;
        };
        let key = name_key(place.field, place.text);
        // What names a record is no mistake, whether it was used or not.
        let is_bound = bound.pointer(&place.pointer).and_then(Value::as_str) != Some(place.text);
        if is_bound || values.iter().any(|value| key == value.key) {
            continue;
        }
        let offered = if warnings.len() < OFFERS {
            values.as_slice()
        } else {
            &[]
        };
        warnings.push(warning(&place, seen.days, offered, counts));
        if warnings.len() == WARNINGS {
            break;
        }
    }
    warnings
}

fn warning(place: &Comparison<'_>, days: i64, values: &[SeenValue], counts: bool) -> Warning {
    let near = nearest(&name_key(place.field, place.text), values);
    let name = place.field.name();
    let days = match days {
        1 => "day".to_owned(),
        days => format!("{days} days"),
    };
    let mut message = format!("no event of the last {days} had {name} {:?}", place.text);
    if !near.is_empty() {
        let offered: Vec<String> = near.iter().map(|near| format!("{:?}", near.value)).collect();
        message.push_str("; did you mean ");
        message.push_str(&offered.join(" or "));
        message.push('?');
    }
    let near = near.into_iter().map(|near| NearValue {
        value: near.value.clone(),
        events: counts.then_some(near.events),
    });
    Warning {
        code: "value_never_seen",
        path: format!("/definition{}", place.pointer),
        line: None,
        column: None,
        message,
        near: near.collect(),
    }
}

/// Returns the values that somebody may have meant by a key, the nearest first.
fn nearest<'a>(key: &str, values: &'a [SeenValue]) -> Vec<&'a SeenValue> {
    let letters: Vec<char> = key.chars().collect();
    let most = match letters.len() {
        0..=3 => 1,
        4..=7 => 2,
        _ => 3,
    };
    let mut found: Vec<(usize, &SeenValue)> = Vec::new();
    for value in values.iter().take(LOOKED_AT) {
        let other: Vec<char> = value.key.chars().collect();
        if is_part(&letters, &other) {
            found.push((most, value));
        } else if letters.len() <= LETTERS && letters.len().abs_diff(other.len()) <= most {
            let steps = strsim::osa_distance(key, &value.key);
            if steps <= most {
                found.push((steps, value));
            }
        }
    }
    found.sort_by(|(a, x), (b, y)| (a, -x.events, &x.key).cmp(&(b, -y.events, &y.key)));
    // Nothing but the alphabet tells equal ones apart, which says nothing of what somebody meant.
    let last = found.get(NEAR - 1).map(|(steps, value)| (*steps, value.events));
    let offered = found
        .iter()
        .enumerate()
        .take_while(|(at, (steps, value))| *at < NEAR || last == Some((*steps, value.events)));
    offered
        .take(NEAR_WITH_TIES)
        .map(|(_, (_, value))| *value)
        .collect()
}

/// Returns whether one of the two is a word of the other: `bash` of `mcp__local__bash`.
fn is_part(one: &[char], other: &[char]) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let words = |letters: &[char]| -> Vec<String> {
        let text: String = letters.iter().collect();
        let parts = text.split(|letter: char| !letter.is_alphanumeric());
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let short: String = short.iter().collect();
    short.chars().count() >= 3 && words(long).contains(&short)
}

/// Adds every text that a definition compares a watched attribute with. The walk is as deep as the engine lets conditions be.
fn collect<'a>(definition: &'a Value, pointer: &str, places: &mut Vec<Comparison<'a>>) {
    for (member, field) in [("resources", Field::RESOURCE), ("products", Field::PRODUCT)] {
        let listed = definition["appliesTo"][member].as_array().into_iter().flatten();
        for (at, item) in listed.enumerate() {
            places.extend(item.as_str().map(|text| Comparison {
                field,
                pointer: format!("{pointer}/appliesTo/{member}/{at}"),
                text,
            }));
        }
    }
    places.extend(definition["skillId"].as_str().map(|text| Comparison {
        field: Field::SKILL,
        pointer: format!("{pointer}/skillId"),
        text,
    }));
    for member in ["conditions", "except", "exceptions"] {
        compared(&definition[member], &format!("{pointer}/{member}"), places);
    }
}

fn compared<'a>(node: &'a Value, pointer: &str, places: &mut Vec<Comparison<'a>>) {
    match node {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                compared(item, &format!("{pointer}/{at}"), places);
            }
        }
        Value::Object(members) => {
            let field = members
                .get("field")
                .and_then(Value::as_str)
                .and_then(Field::named);
            let is_whole = matches!(
                members.get("op").and_then(Value::as_str),
                Some("eq" | "neq" | "in" | "not_in")
            );
            if let (Some(field), Some(value), true) = (field, members.get("value"), is_whole)
                && WATCHED.contains(&field)
            {
                let items = value.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate();
                let items = items.map(|(at, item)| (format!("{pointer}/value/{at}"), item));
                let whole = std::iter::once((format!("{pointer}/value"), value));
                places.extend(whole.chain(items).filter_map(|(pointer, item)| {
                    Some(Comparison {
                        field,
                        pointer,
                        text: item.as_str()?,
                    })
                }));
            }
            for (name, member) in members.iter().filter(|(name, _)| *name != "value") {
                compared(member, &format!("{pointer}/{name}"), places);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(values: &[(&str, i64)]) -> SeenValues {
        let values = values.iter().map(|(value, events)| SeenValue {
            key: name_key(Field::TOOL, value).into_owned(),
            value: (*value).to_owned(),
            events: *events,
        });
        SeenValues {
            days: 30,
            values: [(Field::TOOL, values.collect())].into(),
        }
    }

    fn told(definition: &Value, counts: bool) -> Vec<Warning> {
        let seen = seen(&[("Bash", 40), ("Read", 90), ("mcp__web__get_page", 3)]);
        among(&seen, definition, definition, counts)
    }

    fn on(field: &str, op: &str, value: &Value) -> Value {
        json!({ "conditions": { "all": [{ "not": { "field": field, "op": op, "value": value } }] } })
    }

    #[test]
    fn a_value_that_nothing_had_is_told_with_what_is_near() {
        let found = told(
            &on(
                "tool.id",
                "in",
                &json!(["Bsah", "bash", "read", "get_page", "browser"]),
            ),
            false,
        );
        let found: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|one| {
                (
                    one.path.as_str(),
                    one.near.iter().map(|near| near.value.as_str()).collect(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("/definition/conditions/all/0/not/value/0", vec!["Bash"]),
                ("/definition/conditions/all/0/not/value/3", vec![]),
                ("/definition/conditions/all/0/not/value/4", vec![]),
            ]
        );
    }

    #[test]
    fn figures_are_for_those_who_may_read_the_history() {
        let definition = on("tool.id", "eq", &json!("bahs"));
        assert_eq!(told(&definition, false)[0].near[0].events, None);
        assert_eq!(told(&definition, true)[0].near[0].events, Some(40));
    }

    #[test]
    fn nothing_is_said_of_other_attributes_operators_and_of_what_nobody_sent() {
        for definition in [
            on("tool.input.command", "eq", &json!("Bsah")),
            on("identity.user_id", "eq", &json!("Bsah")),
            on("tool.id", "starts_with", &json!("Bsah")),
            on("mcp.server_id", "eq", &json!("web")),
            json!({ "logic": { "module": "input.tool.id == \"Bsah\"" } }),
        ] {
            assert_eq!(told(&definition, true), [], "{definition}");
        }
    }

    #[test]
    fn all_that_are_as_near_and_as_frequent_are_offered_in_one_order() {
        let value = |key: &str, events: i64| SeenValue {
            key: key.to_owned(),
            value: key.to_owned(),
            events,
        };
        let offered = |values: &[SeenValue]| -> Vec<String> {
            let near = nearest("bash", values).into_iter();
            near.map(|value| value.value.clone()).collect()
        };
        let mut values: Vec<SeenValue> = ('b'..='k')
            .map(|letter| value(&format!("bas{letter}"), 5))
            .collect();
        values.retain(|value| value.key != "bash");
        values.truncate(5);
        values.push(value("ba", 90));
        let all = ["basb", "basc", "basd", "base", "basf"];
        assert_eq!(offered(&values), all);
        values.reverse();
        assert_eq!(offered(&values), all);
        // One that is more frequent than the others leaves two places, which all of the others share.
        values.push(value("cash", 6));
        assert_eq!(offered(&values), [&["cash"], &all[..]].concat());
        // Three that are nearer or more frequent than the rest are all that is told.
        values.extend([value("rash", 7), value("dash", 8)]);
        assert_eq!(offered(&values), ["dash", "rash", "cash"]);
        let many: Vec<SeenValue> = ('a'..='z')
            .map(|letter| value(&format!("bash{letter}"), 5))
            .collect();
        assert_eq!(offered(&many).len(), NEAR_WITH_TIES);
    }
}
