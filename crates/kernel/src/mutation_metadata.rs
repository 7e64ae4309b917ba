//! The header spellings of the mutation metadata `reason`, `idempotencyKey`, `confirm` (D4.1).
//!
//! The published client of this API family sends two of them under names of its own. Those names are wire
//! constants of that client and stand in this file alone.

use crate::error::{Error, Result};
use crate::operation::{Consent, Kind, Manager, Meta, unconfirmed};
use crate::text::{IdempotencyKey, Reason};
use http::HeaderMap;
use serde_json::{Map, Value};

/// Header spellings of the idempotency key.
pub const KEY_HEADERS: [&str; 1] = ["idempotency-key"];
/// Header spellings of the reason.
pub const REASON_HEADERS: [&str; 2] = ["x-reason", "x-forge-reason"];
/// Header spellings of the confirmation.
pub const CONFIRM_HEADERS: [&str; 2] = ["x-confirm", "x-forge-confirm"];

/// The labels of a managing program and of its workspace.
pub const MANAGER_HEADERS: [&str; 2] = ["x-forge-terraform-manager", "x-forge-terraform-instance"];

/// What accompanies every write.
#[derive(Debug, Default)]
pub struct MutationMetadata {
    /// Why.
    pub reason: Option<Reason>,
    /// The key under which the write acts once.
    pub key: Option<IdempotencyKey>,
    /// The caller said that they know that it cannot be undone.
    pub confirm: bool,
}

impl MutationMetadata {
    /// Takes the mutation metadata out of a body and merges it with the headers.
    ///
    /// Errors: `InvalidRequest` when a member is malformed, missing, or differs between body and header;
    /// `ConfirmationRequired` when the operation demands it.
    pub fn take(meta: &Meta, headers: &HeaderMap, body: &mut Map<String, Value>) -> Result<Self> {
        if meta.kind == Kind::Read {
            return Ok(Self::default());
        }
        if meta.consent == Consent::OptionalHeaders {
            return Self::from_headers(headers);
        }
        let reason = merge("reason", text(body, "reason")?, header(headers, &REASON_HEADERS)?)?;
        let key_header = header(headers, &KEY_HEADERS)?.as_deref().map(unquote);
        let key = merge("idempotencyKey", text(body, "idempotencyKey")?, key_header)?;
        let confirm = merge("confirm", boolean(body, "confirm")?, confirm_header(headers)?)?.unwrap_or(false);
        let is_preview = meta.performance.is_some() && !confirm;
        if !is_preview {
            reason.as_ref().ok_or_else(|| missing("reason", "X-Reason"))?;
            key.as_ref()
                .ok_or_else(|| missing("idempotencyKey", "Idempotency-Key"))?;
        }
        let mut metadata = Self::parse(reason, key, confirm)?;
        if is_preview {
            // A preview never consumes the key: the same one performs it afterwards (decision C).
            metadata.key = None;
        }
        if meta.confirm && !confirm && !meta.weighs {
            return Err(unconfirmed());
        }
        Ok(metadata)
    }

    fn from_headers(headers: &HeaderMap) -> Result<Self> {
        let key = header(headers, &KEY_HEADERS)?.as_deref().map(unquote);
        let confirm = confirm_header(headers)?.unwrap_or(false);
        Self::parse(header(headers, &REASON_HEADERS)?, key, confirm)
    }

    fn parse(reason: Option<String>, key: Option<String>, confirm: bool) -> Result<Self> {
        let reason = reason.map(|text| text.parse::<Reason>()).transpose();
        let key = key.map(|text| text.parse::<IdempotencyKey>()).transpose();
        Ok(Self {
            reason: reason.map_err(|e| Error::invalid("/reason", e.to_string()))?,
            key: key.map_err(|e| Error::invalid("/idempotencyKey", e.to_string()))?,
            confirm,
        })
    }
}

/// Returns the labels of the managing program, if it sent both.
///
/// Errors: `InvalidRequest` when one is given twice differently or is not text of 1 to 256 characters.
pub fn manager(headers: &HeaderMap) -> Result<Option<Manager>> {
    let label = |name: &'static str| -> Result<Option<String>> {
        let text = header(headers, &[name])?;
        let fits = |t: &String| (1..=256).contains(&t.chars().count()) && !t.contains(char::is_control);
        if text.as_ref().is_some_and(|t| !fits(t)) {
            let message = "must have 1 to 256 characters and no control character";
            return Err(Error::invalid(format!("/header/{name}"), message));
        }
        Ok(text)
    };
    let [id, instance] = MANAGER_HEADERS;
    Ok(label(id)?
        .zip(label(instance)?)
        .map(|(id, instance)| Manager { id, instance }))
}

fn missing(member: &str, header: &str) -> Error {
    Error::invalid(
        format!("/{member}"),
        format!("is required, here or in the header {header}"),
    )
}

fn text(body: &mut Map<String, Value>, member: &str) -> Result<Option<String>> {
    match body.remove(member) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::invalid(format!("/{member}"), "must be a string")),
    }
}

fn boolean(body: &mut Map<String, Value>, member: &str) -> Result<Option<bool>> {
    match body.remove(member) {
        None => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(value)),
        Some(_) => Err(Error::invalid(format!("/{member}"), "must be true or false")),
    }
}

fn header(headers: &HeaderMap, names: &[&str]) -> Result<Option<String>> {
    let mut found: Option<String> = None;
    for name in names {
        for value in headers.get_all(*name) {
            let text = std::str::from_utf8(value.as_bytes());
            let text = text
                .map_err(|_| Error::invalid(format!("/header/{name}"), "must be UTF-8 text"))?
                .to_owned();
            if found.as_ref().is_some_and(|earlier| *earlier != text) {
                return Err(Error::invalid(
                    format!("/header/{name}"),
                    "is given twice, differently",
                ));
            }
            found = Some(text);
        }
    }
    Ok(found)
}

fn confirm_header(headers: &HeaderMap) -> Result<Option<bool>> {
    match header(headers, &CONFIRM_HEADERS)?.as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Error::invalid("/header/x-confirm", "must be true or false")),
    }
}

/// A structured-field string keeps its key between quotes; a bare key is taken as it is.
fn unquote(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inner.map_or_else(
        || text.to_owned(),
        |inner| inner.replace("\\\"", "\"").replace("\\\\", "\\"),
    )
}

fn merge<T: PartialEq>(member: &str, body: Option<T>, header: Option<T>) -> Result<Option<T>> {
    match (body, header) {
        (Some(body), Some(header)) if body != header => Err(Error::invalid(
            format!("/{member}"),
            "is given in the body and in a header, differently",
        )),
        (body, header) => Ok(body.or(header)),
    }
}
