//! What `--candidate` names: a stored draft, one definition, changes, or a whole set (§ `candidate` of the run).

use super::saved;
use crate::cli::{Failure, Terminal};
use serde_json::{Value, json};
use std::path::Path;

/// The families' words on the wire.
pub const FAMILIES: [&str; 4] = ["content", "access", "resource", "skill_acl"];

/// Returns the candidate as the server takes it.
///
/// Errors: usage, when the file is none, or does not say its family and nobody else does.
pub fn candidate(named: &str, family: Option<&str>, terminal: &Terminal) -> Result<Value, Failure> {
    if let Some(id) = named.strip_prefix("draft:") {
        let mut draft = json!({ "kind": "draft", "policyId": id });
        if let Some(family) = family {
            draft["family"] = family.into();
        }
        return Ok(draft);
    }
    let json = saved::json(Path::new(named), terminal)?;
    of_json(json, family).map_err(|why| Failure::usage(format!("{named}: {why}")))
}

fn of_json(mut json: Value, family: Option<&str>) -> Result<Value, String> {
    if !json.is_object() {
        return Err(
            "a candidate is a JSON object: a definition, {\"changes\":[…]} or {\"policies\":[…]}".into(),
        );
    }
    for (member, kind) in [("changes", "changes"), ("policies", "set")] {
        if json.get(member).is_some_and(Value::is_array) {
            if family.is_some() {
                return Err(format!("--family is for one definition; {member} say their own"));
            }
            return Ok(json!({ "kind": kind, member: json[member].take() }));
        }
    }
    let (family, definition) = definition_of(json, family)?;
    Ok(json!({ "kind": "inline", "family": family, "definition": definition }))
}

/// Returns the family and the definition that a file holds: a definition alone, one beside its family, or what the server answers to
/// the question for a policy.
///
/// Errors: a sentence, when nothing says the family.
pub fn definition_of(mut json: Value, family: Option<&str>) -> Result<(String, Value), String> {
    if let Some(item) = json
        .get_mut("item")
        .map(Value::take)
        .filter(|item| item.get("definition").is_some())
    {
        json = item;
    }
    let said = json.get("family").and_then(Value::as_str).map(str::to_owned);
    if json.get("definition").is_some_and(Value::is_object) {
        json = json["definition"].take();
    }
    let family = family
        .map(str::to_owned)
        .or(said)
        .or_else(|| family_of(&json).map(str::to_owned));
    let family =
        family.ok_or("say what family of policy it is: --family content, access, resource or skill_acl")?;
    Ok((family, json))
}

/// Returns the family that only a definition of it looks like.
fn family_of(definition: &Value) -> Option<&'static str> {
    let has = |member: &str| definition.get(member).is_some();
    let entrypoint = definition.pointer("/logic/entrypoint").and_then(Value::as_str);
    match entrypoint {
        Some("data.forge.content.match") => return Some("content"),
        Some("data.forge.access.match") => return Some("access"),
        Some("data.forge.resource.match") => return Some("resource"),
        _ => {}
    }
    if has("evaluateOn") {
        Some("content")
    } else if has("enforcementSurfaces") {
        Some("access")
    } else if has("skillId") {
        Some("skill_acl")
    } else if has("dataTarget") || has("enforcement") || definition.pointer("/appliesTo/resources").is_some()
    {
        Some("resource")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_by_its_form_what_it_is() {
        let change = json!({ "op": "remove", "policyId": "p" });
        assert_eq!(
            of_json(json!({ "changes": [change] }), None).unwrap(),
            json!({ "kind": "changes", "changes": [change] })
        );
        assert_eq!(
            of_json(json!({ "policies": [] }), None).unwrap(),
            json!({ "kind": "set", "policies": [] })
        );
        let definition = json!({ "id": "p", "evaluateOn": ["prompt"] });
        let inline = json!({ "kind": "inline", "family": "content", "definition": definition });
        assert_eq!(of_json(definition.clone(), None).unwrap(), inline);
        for wrapped in [
            json!({ "item": { "family": "content", "definition": definition } }),
            json!({ "family": "content", "definition": definition }),
        ] {
            assert_eq!(of_json(wrapped, None).unwrap(), inline);
        }
    }

    #[test]
    fn the_family_is_recognized_where_only_one_has_the_member() {
        for (definition, family) in [
            (json!({ "evaluateOn": [] }), Some("content")),
            (json!({ "enforcementSurfaces": [] }), Some("access")),
            (json!({ "skillId": "s" }), Some("skill_acl")),
            (json!({ "dataTarget": "postgres_result" }), Some("resource")),
            (json!({ "appliesTo": { "resources": [] } }), Some("resource")),
            (
                json!({ "logic": { "entrypoint": "data.forge.resource.match" } }),
                Some("resource"),
            ),
            (json!({ "id": "p", "action": "block" }), None),
        ] {
            assert_eq!(family_of(&definition), family, "{definition}");
        }
        let said = of_json(json!({ "id": "p" }), Some("access")).unwrap();
        assert_eq!(said["family"], "access");
        assert!(
            of_json(json!({ "id": "p" }), None)
                .unwrap_err()
                .contains("--family")
        );
    }

    #[test]
    fn what_is_no_candidate_is_refused() {
        for json in [json!([]), json!("x"), json!(null)] {
            assert!(of_json(json, None).is_err());
        }
        assert!(of_json(json!({ "changes": [] }), Some("content")).is_err());
    }
}
