//! From an outcome to the result of a tool.
//!
//! JSON is handed over as it stands in the answer, without being read again: as structured content, and as text for
//! clients that know none. Other text is text; bytes are an embedded resource.

use crate::endpoint::Effect;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use provost_kernel::expose::mcp::{is_text, scopes};
use provost_kernel::operation::{Answer, Meta};
use provost_kernel::{Code, Error};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

/// The member of `_meta` in which a refusal carries the envelope of the HTTP API.
const ENVELOPE: &str = "dev.provost/error";
/// LIMIT: bytes of an answer that is not JSON. More is no use to a model, and HTTP hands it over.
const MAX_BYTES: usize = 1024 * 1024;

/// What becomes of an answer: the members that stand in the place of an empty `content`.
pub(crate) fn of_answer(meta: &Meta, answer: &Answer) -> Result<Effect, Error> {
    if answer.status == 202 && meta.second_person.is_some() {
        return Err(asked(&answer.body));
    }
    let text = || std::str::from_utf8(&answer.body).map_err(|_| Error::internal("an answer that is no text"));
    if answer.body.is_empty() {
        return Ok(members(&json!([{ "type": "text", "text": "done" }]), None));
    }
    if answer.media_type == "application/json" {
        let text = text()?;
        let structured = text.starts_with('{').then_some(text);
        return Ok(members(&json!([{ "type": "text", "text": text }]), structured));
    }
    if answer.body.len() > MAX_BYTES {
        let message = format!(
            "the answer has {} bytes, and a tool hands over {MAX_BYTES} at most; ask for less, or fetch it by HTTP: {} {}",
            answer.body.len(),
            meta.method.as_str(),
            meta.shown_path()
        );
        return Err(Error::new(Code::PayloadTooLarge, message));
    }
    if is_text(answer.media_type) {
        return Ok(members(&json!([{ "type": "text", "text": text()? }]), None));
    }
    let resource = json!({
        "uri": format!("provost://answers/{}", meta.id),
        "mimeType": answer.media_type,
        "blob": BASE64.encode(&answer.body),
    });
    Ok(members(
        &json!([{ "type": "resource", "resource": resource }]),
        None,
    ))
}

/// Returns that a second person was asked, and nothing else was done. As a refusal: what is no answer of the tool must not look like one,
/// and clients judge answers by the tool's output schema.
fn asked(body: &[u8]) -> Error {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| asked[name].as_str().unwrap_or_default();
    let message = format!(
        "nothing was done: a second person has to say yes, and was asked by the approval {id} ({state}, until {until}); tell the person you \
         work for, and once somebody has said yes call again with the same arguments and approvalId {id}, without requestApproval",
        id = text("approvalId"),
        state = text("state"),
        until = text("deadlineAt"),
    );
    Error::new(Code::ApprovalRequired, message)
        .with("approvalId", text("approvalId"))
        .with("status", text("state"))
}

fn members(content: &Value, structured: Option<&str>) -> Effect {
    let structured = structured.map(|text| format!(",\"structuredContent\":{text}"));
    Effect::Content(format!("\"content\":{content}{}", structured.unwrap_or_default()))
}

/// Returns the result of a call that was refused: the envelope, in the words of arguments.
pub(crate) fn of_error(meta: &Meta, error: &Error, request_id: &str) -> CallToolResult {
    if error.code().status() >= 500 {
        tracing::error!(
            request_id,
            code = error.code().as_str(),
            message = error.message(),
            cause = error.private(),
            "a request failed"
        );
    }
    let mut envelope = error.envelope(request_id);
    let mut text = error.message().to_owned();
    for field in envelope["errors"].as_array_mut().into_iter().flatten() {
        let (path, message) = (
            field["path"].as_str().unwrap_or_default(),
            field["message"].as_str().unwrap_or_default(),
        );
        let (name, message) = (
            argument(path),
            message
                .split(", here or in the header")
                .next()
                .unwrap_or_default(),
        );
        let line = format!("{name}: {message}");
        // The message of one broken member is that member's.
        if text.starts_with(&format!("{path}: ")) {
            text = line;
        } else {
            text = format!("{text}\n{line}");
        }
        (field["message"], field["path"]) = (message.into(), name.into());
    }
    envelope["message"] = text.chars().take(500).collect::<String>().into();
    if error.code() == Code::InsufficientScope {
        let needed = needed(meta, error);
        text = format!("{text}\nscopes that this needs: {}", needed.join(" "));
        envelope["requiredScopes"] = needed.into();
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    // Not as structured content: that must fit the tool's output schema, and clients check it of refusals too.
    let meta = serde_json::Map::from_iter([(ENVELOPE.to_owned(), envelope)]);
    result.meta = Some(MetaObject(meta));
    result
}

/// All scopes together, so that nobody has to ask again for the next one.
fn needed(meta: &Meta, error: &Error) -> Vec<String> {
    let named = error.member("scope").and_then(Value::as_str).unwrap_or_default();
    let mut needed: Vec<String> = scopes(meta)
        .into_iter()
        .chain(named.split(' '))
        .map(str::to_owned)
        .collect();
    needed.retain(|scope| !scope.is_empty());
    needed.sort_unstable();
    needed.dedup();
    needed
}

/// Returns the argument behind a pointer into a request of HTTP.
fn argument(pointer: &str) -> String {
    let header = |name| match name {
        "x-reason" => "/reason",
        "idempotency-key" => "/idempotencyKey",
        "x-confirm" => "/confirm",
        _ => "",
    };
    if let Some(name) = pointer.strip_prefix("/header/") {
        return header(name).to_owned();
    }
    let inner = pointer
        .strip_prefix("/path/")
        .or_else(|| pointer.strip_prefix("/query/"));
    inner.map_or_else(|| pointer.to_owned(), |inner| format!("/{inner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_name_arguments() {
        for (pointer, name) in [
            ("/path/thingId", "/thingId"),
            ("/query/limit", "/limit"),
            ("/header/x-reason", "/reason"),
            ("/members/0/name", "/members/0/name"),
            ("", ""),
        ] {
            assert_eq!(argument(pointer), name);
        }
    }
}
