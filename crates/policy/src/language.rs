//! The language of policies, told from the tables that the compiler reads: for the reference, and as a JSON Schema.
//!
//! Absent on purpose: a second list of anything. What is said here follows from what is refused elsewhere.

use crate::catalogue::{Field, FieldType};
use crate::condition::{
    CHILD_LIMIT, COMPARISONS, COUNT_LIMIT, CUSTOM_MEMBERS, CUSTOM_TYPES, DEPTH_LIMIT, FORMS, NODE_LIMIT,
    PATTERN_LIMIT_BYTES,
};
use crate::contract::{REGO_LANGUAGE_VERSION, rego_entrypoint};
use crate::definition::{access, content, head, resource, skill_acl, transform};
use crate::family::Family;
use crate::rego::MODULE_LIMIT_CHARS;
use serde_json::{Map, Value, json};

/// What a definition of a family can say.
#[derive(Clone, Debug)]
pub struct Form {
    /// Its members, the describing ones among them.
    pub members: Vec<&'static str>,
    /// What it does with what it matches.
    pub actions: &'static [&'static str],
    /// Those of them that need `acknowledgeBroadScope` where the scope is empty.
    pub acknowledged: &'static [&'static str],
    /// The member that names whom and what it is about, and what that can name.
    pub scope: (&'static str, &'static [&'static str]),
    /// The member that says when it judges, and its words; none where there is one occasion alone.
    pub occasions: Option<(&'static str, &'static [&'static str])>,
}

/// The forms of conditions beside a predicate on one attribute.
pub const CONDITION_FORMS: [&str; 7] = FORMS;
/// How many levels, nodes, and members of `all` and `any` a condition has at most.
pub const CONDITION_LIMITS: (usize, usize, usize) = (DEPTH_LIMIT, NODE_LIMIT, CHILD_LIMIT);

/// Returns the strategies of a redaction, each with the members that it has and those that it needs.
pub fn redactions() -> impl Iterator<Item = (&'static str, &'static [&'static str], &'static [&'static str])>
{
    transform::STRATEGIES.into_iter()
}

/// Returns what a definition of a family can say.
pub fn form(family: Family) -> Form {
    let with_head = |own: &'static [&'static str]| {
        let shared = head::MEMBERS.into_iter().chain(["exceptions"]);
        let mut members: Vec<&str> = shared.collect();
        members.extend(
            own.iter()
                .filter(|name| !head::MEMBERS.contains(name) && **name != "exceptions"),
        );
        members
    };
    match family {
        Family::Content => Form {
            members: with_head(&content::OWN),
            actions: &content::ACTIONS,
            acknowledged: &content::DISRUPTIVE,
            scope: ("appliesTo", &content::SCOPE),
            occasions: Some(("evaluateOn", &content::STAGES)),
        },
        Family::Access => Form {
            members: with_head(&access::OWN),
            actions: &access::ACTIONS,
            acknowledged: &[],
            scope: ("appliesTo", &access::SCOPE),
            occasions: Some(("enforcementSurfaces", &access::SURFACES)),
        },
        Family::Resource => Form {
            members: with_head(&resource::OWN),
            actions: &resource::ACTIONS,
            acknowledged: &resource::DISRUPTIVE,
            scope: ("appliesTo", &resource::SCOPE),
            occasions: None,
        },
        Family::SkillAcl => Form {
            members: skill_acl::MEMBERS.to_vec(),
            actions: &skill_acl::EFFECTS,
            acknowledged: &[],
            scope: ("subjects", &skill_acl::SCOPE),
            occasions: None,
        },
    }
}

/// Returns a JSON Schema (2020-12) of a family's definitions. What it refuses the compiler refuses; rules about several members
/// together (a scope that is empty and not acknowledged, the digest of a module) are the compiler's alone.
pub fn schema(family: Family) -> Value {
    let form = form(family);
    let mut properties = Map::new();
    for name in &form.members {
        properties.insert((*name).to_owned(), member(family, name, &form));
    }
    let mut required = match family {
        Family::SkillAcl => vec!["id", "skillId", "subjects", "effect"],
        _ => vec!["id", "name", "action"],
    };
    required.extend(form.occasions.map(|(name, _)| name));
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("{} policy", family.word()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if family != Family::SkillAcl {
        schema["oneOf"] = json!([{ "required": ["conditions"] }, { "required": ["logic"] }]);
        schema["$defs"] = json!({ "condition": condition(family) });
    }
    schema
}

fn text(min: usize, max: usize) -> Value {
    json!({ "type": "string", "minLength": min, "maxLength": max })
}

fn words(words: &[&str], least: usize) -> Value {
    json!({ "type": "array", "items": { "enum": words }, "uniqueItems": true, "minItems": least })
}

fn texts(least: usize, most: usize) -> Value {
    json!({ "type": "array", "items": text(1, 4096), "uniqueItems": true, "minItems": least, "maxItems": most })
}

fn member(family: Family, name: &str, form: &Form) -> Value {
    let is_content = family == Family::Content;
    match name {
        "id" => {
            json!({ "type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@/-]*$" })
        }
        "name" | "description" | "rationale" | "message" | "skillId" => text(1, 4096),
        "useCases" => words(&head::USE_CASES, 0),
        "complianceFrameworks" => words(&head::FRAMEWORKS, 0),
        "labels" | "enforcedBy" => texts(0, 256),
        "enabled" | "acknowledgeBroadScope" => json!({ "type": "boolean" }),
        "appliesTo" | "subjects" => scope(family, form.scope.1),
        "action" | "effect" => json!({ "enum": form.actions }),
        "evaluateOn" | "enforcementSurfaces" => words(form.occasions.map_or(&[][..], |(_, words)| words), 1),
        "conditions" | "except" => json!({ "$ref": "#/$defs/condition" }),
        "exceptions" => exceptions(),
        "logic" => logic(family),
        "severity" => json!({ "enum": access::SEVERITIES }),
        "enforcement" => json!({ "enum": resource::ENFORCEMENTS }),
        "dataTarget" => json!({ "enum": resource::TARGETS }),
        "approval" if is_content => {
            json!({ "type": "object", "properties": { "autoApproveOnRequest": { "type": "boolean" } }, "additionalProperties": false })
        }
        "approval" => {
            json!({ "type": "object", "properties": { "mode": { "enum": access::APPROVALS } }, "additionalProperties": false })
        }
        "customFields" => custom_fields(),
        "redaction" => redaction(),
        "filter" => filter(),
        _ => json!({ "type": "object" }),
    }
}

fn scope(family: Family, lists: &[&str]) -> Value {
    let reference = json!({ "type": "object", "properties": { "name": text(1, 4096), "directoryId": text(1, 4096) },
        "required": ["name"], "additionalProperties": false });
    let mut properties = Map::new();
    if family == Family::SkillAcl {
        properties.insert("everyone".to_owned(), json!({ "type": "boolean" }));
    }
    for list in lists {
        let item = match *list {
            "users" | "groups" => json!({ "anyOf": [text(1, 4096), reference] }),
            _ => text(1, 4096),
        };
        let items = json!({ "type": "array", "items": item, "uniqueItems": true, "maxItems": 256 });
        properties.insert((*list).to_owned(), items);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn exceptions() -> Value {
    let item = json!({
        "type": "object",
        "properties": {
            "id": text(1, 256),
            "reason": text(1, 4096),
            "expiresAt": { "type": "string", "format": "date-time" },
            "conditions": { "$ref": "#/$defs/condition" },
        },
        "required": ["id", "reason", "conditions"],
        "additionalProperties": false,
    });
    json!({ "type": "array", "items": item, "maxItems": 256 })
}

fn logic(family: Family) -> Value {
    json!({
        "type": "object",
        "properties": {
            "kind": { "const": "rego" },
            "languageVersion": { "const": REGO_LANGUAGE_VERSION },
            "entrypoint": { "const": rego_entrypoint(family) },
            "module": text(1, MODULE_LIMIT_CHARS),
            "moduleSha256": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
        },
        "required": ["kind", "languageVersion", "entrypoint", "module", "moduleSha256"],
        "additionalProperties": false,
    })
}

fn custom_fields() -> Value {
    let mut properties = Map::new();
    for name in CUSTOM_MEMBERS {
        let schema = match name {
            "field" => json!({ "type": "string", "maxLength": 1024, "pattern": CUSTOM_PATH }),
            "valueType" => json!({ "enum": CUSTOM_TYPES }),
            "sourceType" => json!({ "const": "known_schema" }),
            _ => text(1, 4096),
        };
        properties.insert(name.to_owned(), schema);
    }
    let item = json!({ "type": "object", "properties": properties, "required": CUSTOM_MEMBERS, "additionalProperties": false });
    json!({ "type": "array", "items": item, "maxItems": 256 })
}

/// The form of a declared field's name.
const CUSTOM_PATH: &str = r"^tool\.input(\.[A-Za-z_][A-Za-z0-9_-]*(\[[0-9]+\])?)+$";
/// The form of a path into what is transformed.
const DATA_PATH: &str = r"^\$(\.[A-Za-z_][A-Za-z0-9_-]*|\[[0-9]+\])+$";

fn redaction() -> Value {
    let strategies = transform::STRATEGIES.map(|(name, _, _)| name);
    json!({
        "type": "object",
        "properties": {
            "strategy": { "enum": strategies },
            "paths": { "type": "array", "items": { "type": "string", "pattern": DATA_PATH }, "uniqueItems": true, "minItems": 1, "maxItems": 64 },
            "applyTo": { "const": "matches" },
            "pattern": text(1, 512),
            "replacement": text(0, 4096),
            "maskCharacter": text(1, 1),
            "saltRef": text(1, 4096),
            "subtype": { "enum": transform::SUBTYPES },
            "keepStart": { "type": "integer", "minimum": 0, "maximum": 256 },
            "keepEnd": { "type": "integer", "minimum": 0, "maximum": 256 },
        },
        "dependentRequired": { "applyTo": ["pattern"], "pattern": ["applyTo"] },
        "additionalProperties": false,
    })
}

fn filter() -> Value {
    json!({
        "type": "object",
        "properties": {
            "collectionPath": { "type": "string", "pattern": DATA_PATH },
            "removeWhere": {
                "type": "object",
                "properties": {
                    "path": { "type": "string", "pattern": DATA_PATH },
                    "op": { "enum": transform::FILTER_OPERATORS },
                    "value": {},
                },
                "required": ["path", "op", "value"],
                "additionalProperties": false,
            },
            "onUnavailable": { "enum": ["allow", "block"] },
        },
        "required": ["collectionPath", "removeWhere", "onUnavailable"],
        "additionalProperties": false,
    })
}

/// Returns the schema of a condition of a family.
fn condition(family: Family) -> Value {
    let node = json!({ "$ref": "#/$defs/condition" });
    let nodes = json!({ "type": "array", "items": node, "minItems": 1, "maxItems": CHILD_LIMIT });
    let only = |name: &str, schema: Value| json!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false });
    let mut forms = vec![
        only("all", nodes.clone()),
        only("any", nodes),
        only("not", node.clone()),
    ];
    if matches!(family, Family::Content | Family::Resource) {
        forms.extend(past(family).into_iter().map(|(name, schema)| only(name, schema)));
    }
    for kind in [
        FieldType::Text,
        FieldType::Set,
        FieldType::Number,
        FieldType::Boolean,
        FieldType::Content,
    ] {
        let names = Field::all().filter(|field| field.is_in(family) && field.kind() == kind);
        let names: Vec<&str> = names.map(Field::name).collect();
        if !names.is_empty() {
            forms.extend(predicates(&json!({ "enum": names }), kind));
        }
    }
    if family == Family::Content {
        let declared = json!({ "type": "string", "pattern": CUSTOM_PATH });
        for kind in CUSTOM_TYPES.into_iter().filter_map(FieldType::named) {
            forms.extend(predicates(&declared, kind));
        }
    }
    json!({ "anyOf": forms })
}

/// Returns the schemas of the predicates on attributes of a type.
fn predicates(field: &Value, kind: FieldType) -> Vec<Value> {
    let mut groups: Vec<(Value, Vec<&str>)> = Vec::new();
    for op in kind.operators().iter().filter(|op| **op != "exists") {
        let value = operand(kind, op);
        match groups.iter_mut().find(|(other, _)| *other == value) {
            Some((_, ops)) => ops.push(op),
            None => groups.push((value, vec![op])),
        }
    }
    let mut all: Vec<Value> = groups
        .into_iter()
        .map(|(value, ops)| {
            json!({ "type": "object", "properties": { "field": field, "op": { "enum": ops }, "value": value },
                "required": ["field", "op", "value"], "additionalProperties": false })
        })
        .collect();
    all.push(
        json!({ "type": "object", "properties": { "field": field, "op": { "const": "exists" } },
        "required": ["field", "op"], "additionalProperties": false }),
    );
    all
}

fn operand(kind: FieldType, op: &str) -> Value {
    let one = match kind {
        FieldType::Number => json!({ "type": "number" }),
        FieldType::Boolean => json!({ "type": "boolean" }),
        _ => json!({ "type": "string" }),
    };
    match (kind, op) {
        (_, "in" | "not_in" | "contains_any" | "contains_all") => {
            json!({ "type": "array", "items": one, "minItems": 1 })
        }
        (FieldType::Set, "eq" | "neq") => json!({ "type": "array", "items": one }),
        (_, "matches") => json!({ "type": "string", "maxLength": PATTERN_LIMIT_BYTES }),
        _ => one,
    }
}

/// Returns the schemas of the conditions on the past.
fn past(family: Family) -> [(&'static str, Value); 4] {
    let node = json!({ "$ref": "#/$defs/condition" });
    let within = json!({ "type": "string", "pattern": "^[1-9][0-9]*[smhd]$", "maxLength": 32 });
    let op = json!({ "enum": COMPARISONS });
    let value = json!({ "type": "integer", "minimum": 0, "maximum": COUNT_LIMIT });
    let counted = Field::all().filter(|field| field.is_in(family) && field.kind() != FieldType::Content);
    let mut counted = vec![json!({ "enum": counted.map(Field::name).collect::<Vec<_>>() })];
    if family == Family::Content {
        counted.push(json!({ "type": "string", "pattern": CUSTOM_PATH }));
    }
    [
        ("hasPriorEvent", node.clone()),
        (
            "hasEventSequence",
            json!({
                "type": "object",
                "properties": {
                    "within": within,
                    "ordered": { "type": "boolean" },
                    "events": { "type": "array", "items": node, "minItems": 2, "maxItems": 16 },
                },
                "required": ["within", "ordered", "events"],
                "additionalProperties": false,
            }),
        ),
        (
            "eventCount",
            json!({
                "type": "object",
                "properties": { "within": within, "where": node, "op": op, "value": value },
                "required": ["within", "where", "op", "value"],
                "additionalProperties": false,
            }),
        ),
        (
            "priorDistinctValues",
            json!({
                "type": "object",
                "properties": { "within": within, "field": { "anyOf": counted }, "where": node, "op": op, "value": value },
                "required": ["within", "field", "op", "value"],
                "additionalProperties": false,
            }),
        ),
    ]
}

/// Returns the milliseconds of a time like `15m`, at most 30 days; none of anything else.
pub fn within_ms(text: &str) -> Option<i64> {
    crate::condition::parse_within(text)
}
