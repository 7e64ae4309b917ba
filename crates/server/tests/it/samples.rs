//! How every operation of the registry is called, and the records that it can be aimed at.
//!
//! A new operation works here as it stands when its body may be empty; a path parameter of a new kind
//! fails until it is named here.

use crate::areas;
use crate::support::{App, Call, fresh_key};
use provost_areas_platform::audit;
use provost_kernel::auth::Role;
use provost_kernel::operation::{Access, Entry, Kind, Meta, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The records that a path can name.
#[derive(Clone, Debug)]
pub struct Target {
    pub account: String,
    pub token: String,
    pub entry: String,
    /// Records of the areas in `areas/`, by the path parameter that names them.
    pub others: BTreeMap<&'static str, String>,
}

impl Target {
    /// Well-formed ids of nothing.
    pub fn absent() -> Self {
        let ulid = "01kadh5j9v0000000000000000";
        Self {
            account: format!("sa_{ulid}"),
            token: format!("sat_{ulid}"),
            entry: format!("aud_{ulid}"),
            others: areas::absent(ulid),
        }
    }

    /// Text that is no id.
    pub fn malformed() -> Self {
        let text = "no%20id%00%2F".to_owned();
        let mut others = areas::absent("");
        for value in others.values_mut() {
            value.clone_from(&text);
        }
        Self {
            account: text.clone(),
            token: text.clone(),
            entry: text,
            others,
        }
    }
}

/// Says whether a call of this operation names a record.
pub fn names_a_record(entry: &Entry) -> bool {
    !entry.meta.path_parameters().is_empty() || entry.query_names.iter().any(|name| name == "entryId")
}

/// Returns the path behind the organization, with its query.
pub fn path(meta: &Meta, target: &Target) -> String {
    let mut path = meta.shown_path();
    for name in meta.path_parameters() {
        let value = match name {
            "serviceAccountId" => &target.account,
            "tokenId" => &target.token,
            "entryId" => &target.entry,
            other => target
                .others
                .get(other)
                .unwrap_or_else(|| panic!("say in areas/ what {other} names")),
        };
        path = path.replace(&format!("{{{name}}}"), value);
    }
    if meta.id == "getHeadlessAuditProof" {
        path.push_str("?entryId=");
        path.push_str(&target.entry);
    }
    if let Some(query) = areas::query(meta.id) {
        path.push('?');
        path.push_str(query);
    }
    path
}

/// Returns a body, without the mutation metadata, with which the operation succeeds on this target.
pub fn body(meta: &Meta, target: &Target) -> Value {
    if let Some(body) = areas::body(meta.id, target) {
        return body;
    }
    match meta.id {
        "createHeadlessServiceAccount" => {
            json!({ "name": fresh_key(), "permissionRole": "viewer", "scopes": ["service_accounts:rotate_self"] })
        }
        "updateHeadlessServiceAccount" => json!({ "description": fresh_key() }),
        // It names what the samples of another operation set: nothing is reset without a word (SE-5).
        "updateHeadlessAutomationSettings" => {
            json!({ "fleet": { "enrolment": { "selfEnrol": "signed_in" }, "hooks": { "judging": "on" } }, "confirm": true })
        }
        _ => json!({}),
    }
}

/// Says whether an operation needs a scope that no admin holds who does not name it.
pub fn needs_a_name(meta: &Meta) -> bool {
    matches!(meta.access, Access::Scoped { scope, .. } if !Role::Admin.all_scopes().has(scope))
}

/// Says whether an operation is one of people alone: a service account is refused whatever it may do otherwise.
pub fn needs_a_person(meta: &Meta) -> bool {
    meta.id == "createHeadlessApprovalDelegation"
}

/// Returns what a path of this operation has in the place of one of its parameters.
pub fn named(meta: &Meta, path: &str, parameter: &str) -> Option<String> {
    let pattern = meta.shown_path();
    let path = path.split('?').next()?;
    let mut places = pattern.split('/').zip(path.split('/'));
    let is_it = |place: &str| place.trim_matches(['{', '}']) == parameter && place.starts_with('{');
    places.find_map(|(place, value)| is_it(place).then(|| value.to_owned()))
}

/// Begins a request as the first admin; as a machine where no admin may call.
pub fn request<'a>(app: &'a App, meta: &Meta, path: &str) -> Call<'a> {
    let call = app.request(meta.method.as_str(), path);
    if let Access::OfKind { kind, parameter } = meta.access {
        return call.by_kind(kind, named(meta, path, parameter));
    }
    if needs_a_person(meta) {
        call.by_person()
    } else if needs_a_name(meta) {
        call.by_machine()
    } else {
        call
    }
}

/// Returns a call of [`request`] that breaks no rule, with a key of its own.
pub fn call<'a>(app: &'a App, entry: &Entry, target: &Target) -> Call<'a> {
    let meta = entry.meta;
    let call = request(app, meta, &path(meta, target));
    if meta.kind == Kind::Read {
        return match areas::content(meta.id) {
            Some((media_type, bytes)) => call.content(media_type, bytes),
            None if meta.method == Method::Post => call.json(body(meta, target)),
            None => call,
        };
    }
    let content = areas::content(meta.id);
    if meta.trio_in_headers() {
        let call = call
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "a test");
        let call = if meta.confirm {
            call.header("x-confirm", "true")
        } else {
            call
        };
        return match content {
            Some((media_type, bytes)) => call.content(media_type, bytes),
            None if entry.has_body && !areas::takes_no_member(meta.id) => call.json(body(meta, target)),
            None => call,
        };
    }
    let mut body = crate::support::with_trio(body(meta, target), &fresh_key());
    if meta.confirm {
        body["confirm"] = true.into();
    }
    call.json(body)
}

/// Makes the records that the operation's path names; they can be done with as one likes.
pub async fn fresh_target_of(app: &App, entry: &Entry) -> Target {
    let parameters = entry.meta.path_parameters();
    let mut target = if parameters.contains(&"serviceAccountId")
        || entry.query_names.iter().any(|n| n == "entryId")
        || parameters.contains(&"entryId")
    {
        fresh_target(app).await
    } else {
        Target::absent()
    };
    areas::make(app, entry.meta, &mut target.others).await;
    target
}

/// Makes an account that can be done with as one likes.
pub async fn fresh_target(app: &App) -> Target {
    let body = json!({ "name": fresh_key(), "permissionRole": "viewer", "scopes": ["service_accounts:rotate_self"] });
    let made = app.write("POST", "/service-accounts", body).await;
    // The oldest entry, so that a checkpoint covers it.
    let oldest = app.get("/audit/export?limit=1").await;
    let oldest: Value = serde_json::from_slice(&oldest.bytes).unwrap();
    Target {
        account: made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned(),
        token: made.json["token"]["id"].as_str().unwrap().to_owned(),
        entry: oldest["id"].as_str().unwrap().to_owned(),
        others: Target::absent().others,
    }
}

/// Makes the audit log provable up to now.
pub async fn checkpoint(app: &App) {
    app.advance(61);
    audit::make_checkpoints(&app.kernel).await.unwrap();
}

/// Returns what no refused call may change.
pub async fn state(app: &App) -> Value {
    let mut accounts = Vec::new();
    loop {
        let page = app
            .get(&format!("/service-accounts?limit=100&offset={}", accounts.len()))
            .await;
        let found = page.ok()["serviceAccounts"].as_array().unwrap().clone();
        if found.is_empty() {
            break;
        }
        accounts.extend(found);
    }
    let settings = app.get("/automation/settings").await;
    let mut state =
        json!({ "accounts": accounts, "settings": settings.ok(), "areas": areas::state(app).await });
    forget_uses(&mut state);
    state
}

/// A use is noted whatever comes of the request (D2.5).
fn forget_uses(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(forget_uses),
        Value::Object(members) => {
            members.remove("lastUsedAt");
            members.values_mut().for_each(forget_uses);
        }
        _ => {}
    }
}

/// Returns a body and the header set, without what differs between any two answers.
pub fn masked(reply: &crate::support::Reply) -> (u16, String, Vec<(String, String)>) {
    let id = reply.header("x-request-id").to_owned();
    assert!(id.starts_with("req_"));
    // Whether a connection goes on after a refusal says how much of the body had come, and nothing of a record.
    let kept = reply
        .headers
        .iter()
        .filter(|(name, _)| *name != http::header::CONNECTION);
    let headers = kept.map(|(name, value)| {
        let value = value.to_str().unwrap().replace(&id, "req_…");
        (name.to_string(), value)
    });
    let mut headers: Vec<_> = headers.collect();
    headers.sort();
    (reply.status.as_u16(), reply.text().replace(&id, "req_…"), headers)
}

/// Compares a text with a committed file; `UPDATE_GOLDENS=1` rewrites the file.
pub fn assert_golden(path_in_repository: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path_in_repository);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let line = committed.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        committed == text,
        "{path_in_repository} differs, first at line {:?}; UPDATE_GOLDENS=1 rewrites it",
        line.map(|line| line + 1)
    );
}
