//! Steps 7 and 8: the media type, the strict JSON, the mutation metadata, the schema.
//!
//! Keeps PO-9.

use super::Request;
use crate::auth::Actor;
use crate::error::{Code, Error, Result};
use crate::idempotency::KeyUse;
use crate::json;
use crate::kernel::Kernel;
use crate::mutation_metadata::{MANAGER_HEADERS, MutationMetadata};
use crate::operation::{Consent, Content, Entry, IN_QUERY, Meta, Precondition, Raw, authorize_performance};
use crate::second_person::{Asked, PARAMETERS, SaidOfSecondPerson};
use crate::text::IdempotencyKey;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::{Map, Value, json};

pub(super) struct DecodedRequest {
    pub bound: Box<dyn crate::operation::BoundCall>,
    pub path: Value,
    pub key: Option<KeyUse>,
    /// The call only shows what it would do (D8.5).
    pub is_preview: bool,
    /// What the request says where a second person may be wanted.
    pub second_person: Option<Asked>,
}

/// Steps 7 and 8: the media type, the strict JSON, the mutation metadata, the schema.
pub(super) fn decode(
    kernel: &Kernel,
    entry: &Entry,
    request: &Request,
    actor: &Actor,
    path: Value,
) -> Result<DecodedRequest> {
    let meta = entry.meta;
    let content = content_of(entry, request)?;
    let mut body = match content {
        Some(_) => Map::new(),
        None => body_of(entry, request)?,
    };
    let mut query = query_of(entry, request)?;
    let said = meta
        .second_person
        .map(|_| said_of_second_person(&mut query))
        .transpose()?;
    let mut metadata = MutationMetadata::take(meta, &request.headers, &mut body)?;
    let is_asked_for = meta.previews_where_asked && query["preview"] == "true";
    let is_unconfirmed = meta.performance.is_some() && !metadata.confirm;
    if !is_unconfirmed {
        authorize_performance(meta, actor)?;
    }
    let is_preview = is_asked_for || is_unconfirmed;
    if is_asked_for {
        // A preview never consumes the key: the same one performs it afterwards (decision C).
        metadata.key = None;
    }
    if metadata.key.is_none() && meta.consent == Consent::OptionalHeaders {
        metadata.key = Some(made_key(kernel));
    }
    // Members of the fingerprint: D4.4.
    let fingerprint = || {
        let mut fingerprint = Value::Object(body.clone());
        if let Some(content) = &content {
            fingerprint["mediaType"] = content.media_type.as_str().into();
            fingerprint["content"] = crate::hex::hex(&sha256(&content.bytes)).into();
        }
        fingerprint["reason"] = json!(metadata.reason.as_ref().map(crate::text::Reason::as_str));
        fingerprint["confirm"] = metadata.confirm.into();
        let manager = |name: &str| {
            request
                .headers
                .get(name)
                .map(|v| String::from_utf8_lossy(v.as_bytes()))
        };
        json!({
            "path": path,
            "query": query,
            "body": fingerprint,
            "manager": MANAGER_HEADERS.map(manager),
        })
    };
    let key = metadata.key.as_ref().map(|key| {
        KeyUse::new(
            &kernel.keys,
            key.as_str(),
            actor.organization.as_str(),
            actor.key.as_deref(),
            meta.id,
            &fingerprint(),
        )
    });
    let if_match = precondition(meta, request, Precondition::Match)?;
    let if_none_match = precondition(meta, request, Precondition::NoneMatch)?;
    let second_person = said.map(|said| {
        let mut request = fingerprint();
        // No part of the fingerprint, and part of what somebody says yes to.
        request["ifMatch"] = json!(if_match);
        request["ifNoneMatch"] = json!(if_none_match);
        Asked {
            said,
            request,
            is_unconfirmed: meta.confirm && !metadata.confirm,
        }
    });
    let raw = Raw {
        path: path.clone(),
        query,
        body: Value::Object(body),
        content,
        reason: metadata.reason,
        confirm: metadata.confirm,
        if_match,
        if_none_match,
        manager: crate::mutation_metadata::manager(&request.headers)?,
    };
    Ok(DecodedRequest {
        bound: (entry.bind)(raw)?,
        path,
        key,
        is_preview,
        second_person,
    })
}

/// Takes out of the query what it says of a second person.
///
/// Errors: `InvalidRequest` for what is neither an id nor `true` or `false`; `InvalidDefinition` for both at once.
fn said_of_second_person(query: &mut Value) -> Result<SaidOfSecondPerson> {
    let mut said = Map::new();
    if let Some(members) = query.as_object_mut() {
        for name in PARAMETERS {
            said.extend(members.remove(name).map(|value| (name.to_owned(), value)));
        }
    }
    let said: SaidOfSecondPerson = json::decode(Value::Object(said), "/query")?;
    if said.approval_id.is_some() && said.request_approval {
        let message = "is there already: send the request with approvalId alone, or ask anew without it";
        return Err(Error::unfit("/query/approvalId", message));
    }
    Ok(said)
}

/// Returns a precondition of an operation that honours it, as sent; several headers are one list (RFC 9110).
///
/// Errors: `InvalidRequest` for one that cannot be read: to act without it would be to act against it.
fn precondition(meta: &Meta, request: &Request, precondition: Precondition) -> Result<Option<String>> {
    if meta.precondition != Some(precondition) {
        return Ok(None);
    }
    let name = precondition.header();
    let refuse = |message: String| Error::invalid(format!("/header/{}", name.to_lowercase()), message);
    let mut list: Option<String> = None;
    for value in request.headers.get_all(name) {
        let text = value.to_str().ok().filter(|text| !text.contains('\t'));
        let text = text.ok_or_else(|| refuse("must be printable ASCII".to_owned()))?;
        list = Some(match list {
            Some(before) => format!("{before}, {text}"),
            None => text.to_owned(),
        });
    }
    let longest = Precondition::LONGEST;
    if list.as_ref().is_some_and(|list| list.len() > longest) {
        return Err(refuse(format!("must be at most {longest} characters")));
    }
    Ok(list)
}

/// The client's key, where it may go without one: every write has a key, so that it can be run again (WK-3).
fn made_key(kernel: &Kernel) -> IdempotencyKey {
    let text = crate::hex::hex(&kernel.entropy.seed());
    #[expect(clippy::expect_used, reason = "64 hexadecimal digits are a key")]
    text.parse().expect("a key")
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    hash
}

/// Returns the body of an operation that does not take JSON.
fn content_of(entry: &Entry, request: &Request) -> Result<Option<Content>> {
    let Some(consumes) = entry.meta.consumes else {
        return Ok(None);
    };
    let media_type = essence(request).to_ascii_lowercase();
    if !consumes.media_types.contains(&media_type.as_str()) {
        let message = format!("the body must be {}", consumes.media_types.join(" or "));
        return Err(Error::new(Code::UnsupportedMediaType, message));
    }
    if !consumes.expands {
        refuse_encoded(request)?;
    }
    let encoding = request.headers.get(CONTENT_ENCODING);
    let encoding = encoding.and_then(|v| v.to_str().ok()).map(str::to_owned);
    Ok(Some(Content {
        media_type,
        encoding,
        bytes: request.body.clone(),
    }))
}

/// What is encoded is refused and not read as if it were not (RFC 9110 section 8.4).
fn refuse_encoded(request: &Request) -> Result<()> {
    let mut codings = request.headers.get_all(CONTENT_ENCODING).iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let error = Error::new(
        Code::UnsupportedMediaType,
        "the body must not be encoded: send it without Content-Encoding",
    );
    // RFC 9110 section 12.5.3: the answer to a request says which codings the next one may have.
    Err(error.with_header("accept-encoding", "identity"))
}

fn essence(request: &Request) -> &str {
    let media_type = request.headers.get(CONTENT_TYPE);
    let media_type = media_type.and_then(|v| v.to_str().ok()).unwrap_or("");
    media_type.split(';').next().unwrap_or("").trim()
}

/// Returns the parameters of the path. The one that may hold slashes comes from the query where the path says so.
pub(super) fn path_of(entry: &Entry, request: &Request) -> Value {
    let members = request.path.iter().map(|(name, value)| {
        let said = is_in_query(entry, request, name).then(|| said_in_query(request, name));
        let value = said.flatten().unwrap_or_else(|| value.clone());
        ((*name).to_owned(), Value::from(value))
    });
    Value::Object(members.collect())
}

/// Says whether the path leaves the word to the query: it has a dash where an id with slashes may stand.
fn is_in_query(entry: &Entry, request: &Request, name: &str) -> bool {
    entry.meta.greedy_parameter() == Some(name)
        && request
            .path
            .iter()
            .any(|(known, value)| *known == name && value == IN_QUERY)
}

/// Returns the first value of this name in the query. What is wrong with the query is said when the rest of it is read, after
/// the rights of the caller were judged (DP-2).
fn said_in_query(request: &Request, wanted: &str) -> Option<String> {
    pairs(request)
        .find_map(|(name, value)| (decode_query(name).ok()? == wanted).then(|| decode_query(value).ok())?)
}

/// Returns the names and values of the query as they were sent.
fn pairs(request: &Request) -> impl Iterator<Item = (&str, &str)> {
    let query = request.query.as_deref().unwrap_or_default();
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').unwrap_or((part, "")))
}

fn body_of(entry: &Entry, request: &Request) -> Result<Map<String, Value>> {
    if request.body.is_empty() {
        return Ok(Map::new());
    }
    if !entry.meta.method.has_body() {
        return Err(Error::invalid("", "this method takes no body"));
    }
    if !essence(request).eq_ignore_ascii_case("application/json") {
        return Err(Error::new(
            Code::UnsupportedMediaType,
            "the body must be application/json",
        ));
    }
    refuse_encoded(request)?;
    match json::parse(&request.body, entry.meta.limit.depth)? {
        Value::Object(members) => Ok(members),
        _ => Err(Error::invalid("", "the body must be a JSON object")),
    }
}

fn query_of(entry: &Entry, request: &Request) -> Result<Value> {
    let mut members = Map::new();
    let mut is_named = false;
    for (name, value) in pairs(request) {
        let (name, value) = (decode_query(name)?, decode_query(value)?);
        if entry.meta.greedy_parameter() == Some(name.as_str()) {
            let refused = |message: &str| Err(Error::invalid(format!("/query/{name}"), message));
            if !is_in_query(entry, request, &name) {
                return refused(
                    "the path names it already; with - in its place the path leaves it to the query",
                );
            }
            if value.is_empty() {
                return refused("must not be empty");
            }
            if std::mem::replace(&mut is_named, true) {
                return refused("is given twice");
            }
            continue;
        }
        if !entry.query_names.contains(&name) {
            let known = if entry.query_names.is_empty() {
                "none".into()
            } else {
                entry.query_names.join(", ")
            };
            let message = format!("this query parameter does not exist here; known: {known}");
            return Err(Error::new(Code::UnknownParameter, message));
        }
        if value.is_empty() {
            return Err(Error::invalid(format!("/query/{name}"), "must not be empty"));
        }
        // An id may be any text, because in a path every text is an answer of 404; here the schema's limit holds.
        let limit = entry.query_lengths.iter().find(|(known, _)| *known == name);
        if limit.is_some_and(|(_, limit)| value.chars().count() > *limit) {
            return Err(Error::invalid(format!("/query/{name}"), "is too long"));
        }
        if members.insert(name.clone(), Value::from(value)).is_some() {
            return Err(Error::invalid(format!("/query/{name}"), "is given twice"));
        }
    }
    Ok(Value::Object(members))
}

fn decode_query(text: &str) -> Result<String> {
    percent_decode(&text.replace('+', " "))
        .ok_or_else(|| Error::invalid("/query", "is not valid percent-encoded UTF-8"))
}

/// Decodes a percent-encoded text once; `None` when an escape is broken or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| char::from(b?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}
