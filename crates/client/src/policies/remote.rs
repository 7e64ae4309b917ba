//! What these commands ask of a server.

use crate::cli::{Client, Consent, Exit, Failure, Request};
use http::Method;
use serde_json::{Value, json};

/// Returns the collection of a family.
pub fn collection(family: &str) -> &'static str {
    match family {
        "access" => "access-policies",
        "resource" => "resource-policies",
        "skill_acl" => "skill-acls",
        _ => "content-policies",
    }
}

/// Asks what a definition, or the live policies, say of cases.
pub async fn test(client: &Client<'_>, body: &Value) -> Result<Value, Failure> {
    let request = Request::new(Method::POST, &["policies", "test"]).json(body);
    client.send(&request).await?.json()
}

/// Returns a request about a policy by its id, which may hold slashes; one that no path carries is named in the query.
pub fn about(method: Method, family: &str, id: &str) -> Request {
    let collection = collection(family);
    if provost_words::url::fits_path(id) {
        return Request::new(method, &[collection, id]);
    }
    Request::new(method, &[collection, provost_words::url::IN_QUERY]).query("policyId", id)
}

/// Returns a stored policy; nothing where there is none.
pub async fn stored(client: &Client<'_>, family: &str, id: &str) -> Result<Option<Value>, Failure> {
    match client.send(&about(Method::GET, family, id)).await {
        Ok(answer) => {
            let mut json = answer.json()?;
            let item = json.get_mut("item").map(Value::take).filter(Value::is_object);
            let item = item.filter(|item| item["id"] == id);
            let other = || {
                Failure::new(
                    Exit::ServerFault,
                    format!("the answer is not about the policy {id}"),
                )
            };
            item.map(Some).ok_or_else(other)
        }
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Plans the write of a definition; returns what the server says of it.
pub async fn plan(
    client: &Client<'_>,
    family: &str,
    definition: &Value,
    revision: u64,
) -> Result<Value, Failure> {
    let body = json!({ "family": family, "definition": definition, "expectedRevision": revision });
    let request = Request::new(Method::POST, &["policy-plans", "validate"]).json(&body);
    client.send(&request).await?.json()
}

/// Writes what was planned.
pub async fn write(
    client: &Client<'_>,
    family: &str,
    (definition, revision): (&Value, u64),
    token: &Value,
    consent: &Consent,
) -> Result<Value, Failure> {
    let mut body = json!({ "definition": definition, "validationToken": token });
    let id = definition["id"].as_str().unwrap_or_default();
    let request = if revision == 0 {
        Request::new(Method::POST, &[collection(family)])
    } else {
        body["expectedRevision"] = revision.into();
        about(Method::PUT, family, id)
    };
    let request = request.json(&body).consent(consent)?;
    client.send(&request).await?.json()
}

/// Deletes a policy as it was seen.
pub async fn delete(
    client: &Client<'_>,
    family: &str,
    id: &str,
    revision: u64,
    consent: &Consent,
) -> Result<(), Failure> {
    let request = about(Method::DELETE, family, id).query("expectedRevision", revision.to_string());
    client.send(&request.consent(consent)?).await.map(drop)
}

/// Returns what the author should change, a line each.
pub fn warnings(answer: &Value) -> Vec<String> {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    warnings
        .map(|warning| {
            let text = |member: &str| warning[member].as_str().unwrap_or_default();
            let place = match warning["line"].as_u64() {
                Some(line) => format!(" line {line}"),
                None => String::new(),
            };
            let figures = warning["near"].as_array().into_iter().flatten();
            let figures: Vec<String> = figures
                .filter_map(|near| {
                    Some(format!(
                        "{} {}",
                        near["value"].as_str()?,
                        near["events"].as_u64()?
                    ))
                })
                .collect();
            let seen = if figures.is_empty() {
                String::new()
            } else {
                format!(" (events: {})", figures.join(", "))
            };
            format!(
                "{}{place}: {}{seen} [{}]",
                text("path"),
                text("message"),
                text("code")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_lines_with_place_figures_and_word() {
        let answer = json!({ "warnings": [
            { "code": "value_never_seen", "path": "/definition/conditions/value", "message": "no event", "near": [{ "value": "Bash", "events": 4 }] },
            { "code": "text_compared_with_id", "path": "/p", "line": 3, "message": "m" } ] });
        assert_eq!(
            warnings(&answer),
            [
                "/definition/conditions/value: no event (events: Bash 4) [value_never_seen]",
                "/p line 3: m [text_compared_with_id]"
            ]
        );
        assert_eq!(warnings(&json!({})), [""; 0]);
    }
}
