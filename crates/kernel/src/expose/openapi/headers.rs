//! Headers of requests and answers in the document: what acts is declared (D1.7, D1.8, D1.9, D4.11).

use crate::operation::{Kind, Meta, Precondition};
use serde_json::{Map, Value, json};

/// Every header of answers: its name, its schema, what it says.
const ANSWERS: [(&str, &str, &str); 11] = [
    (
        "ETag",
        "string",
        "the state of the record, for If-Match and If-None-Match",
    ),
    (
        "Idempotent-Replayed",
        "string",
        "true when an earlier request with this key did it; absent otherwise",
    ),
    ("Location", "string", "where the new record is"),
    ("RateLimit", "string", "what is left of the caller's bucket"),
    ("RateLimit-Policy", "string", "the caller's bucket"),
    (
        "Retry-After",
        "integer",
        "seconds after which it is worth asking again",
    ),
    (
        "WWW-Authenticate",
        "string",
        "how to authenticate, and which scopes are needed",
    ),
    (
        "X-Policy-Id",
        "string",
        "the policy that the answer is about, which a rewritten path may have made another than was asked for",
    ),
    (
        "X-Provost-Next-After",
        "string",
        "the value of after for the next call; absent at the end",
    ),
    (
        "X-Request-Id",
        "string",
        "names the request in the audit log and in support",
    ),
    ("Allow", "string", "the methods that the path has"),
];

/// Returns the headers by their names, for references.
pub fn components() -> Value {
    let of = |(name, kind, about): &(&str, &str, &str)| {
        (
            (*name).to_owned(),
            json!({ "description": about, "schema": { "type": kind } }),
        )
    };
    Value::Object(ANSWERS.iter().map(of).collect())
}

fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    let of = |name: &str| {
        (
            name.to_owned(),
            json!({ "$ref": format!("#/components/headers/{name}") }),
        )
    };
    Value::Object(names.into_iter().map(of).collect::<Map<_, _>>())
}

/// Returns the headers of an answer that is a success.
pub fn of_success(meta: &Meta, status: u16) -> Value {
    let always = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];
    let replayed = (meta.kind == Kind::Write).then_some("Idempotent-Replayed");
    // Of another status the answer says the same but for where the new record is.
    let asks = status == 202 && meta.second_person.is_some();
    let own = meta
        .answers
        .iter()
        .copied()
        .filter(|name| !asks && (status != 304 || *name == "ETag"));
    named(always.into_iter().chain(replayed).chain(own))
}

/// Returns the headers of refusals, each where it says something.
pub fn of_errors() -> Value {
    named([
        "Allow",
        "ETag",
        "RateLimit",
        "RateLimit-Policy",
        "Retry-After",
        "WWW-Authenticate",
        "X-Request-Id",
    ])
}

/// Returns the parameter of a precondition.
pub fn precondition(precondition: Precondition) -> Value {
    let about = match precondition {
        Precondition::Match => {
            "acts only while the record has one of these ETags; otherwise 412 with the one of now"
        }
        Precondition::NoneMatch => "answers 304 without a body while the record has one of these ETags",
    };
    json!({
        "name": precondition.header(), "in": "header", "required": false,
        "schema": { "type": "string", "maxLength": Precondition::LONGEST, "pattern": "^[ -~]*$" },
        "description": about,
    })
}
