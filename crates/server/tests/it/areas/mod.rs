//! What the nets over every operation must know of the areas: records that paths name, bodies, fixtures.
//!
//! One file each; a new path parameter or a new mutation that stands in none of them fails the nets.

pub mod backtests;
mod decisions;
pub mod directory;
pub mod history;
mod managed_config;
pub mod mcp_sessions;
pub mod oauth;
mod otlp;
pub mod policies;
pub mod resources;
mod restore;
pub mod skills;
mod words;

use crate::samples::Target;
use crate::support::{App, Reply};
use provost_kernel::operation::Meta;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A mutation that has an effect when it is sent, and none when it is repeated under its key.
pub struct Fixture {
    pub method: &'static str,
    pub path: String,
    /// Without the trio; `Null` sends none, and the trio in headers.
    pub body: Value,
    /// The event that its effect emits.
    pub event: Option<&'static str>,
    /// Content that is not JSON: its media type and bytes.
    pub content: Option<(&'static str, Vec<u8>)>,
}

impl Fixture {
    pub fn json(
        method: &'static str,
        path: impl Into<String>,
        body: Value,
        event: Option<&'static str>,
    ) -> Self {
        Self {
            method,
            path: path.into(),
            body,
            event,
            content: None,
        }
    }
}

/// Returns well-formed ids of nothing, by path parameter. `ulid` is the part behind the prefix.
pub fn absent(ulid: &str) -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::new();
    all.extend(backtests::absent(ulid));
    all.extend(directory::absent(ulid));
    all.extend(history::absent(ulid));
    all.extend(managed_config::absent(ulid));
    all.extend(mcp_sessions::absent(ulid));
    all.extend(oauth::absent(ulid));
    all.extend(policies::absent(ulid));
    all.extend(resources::absent(ulid));
    all.extend(skills::absent(ulid));
    all.extend(words::absent(ulid));
    all
}

/// Makes the records that the operation's path names, each of them to be done with as one likes, and puts their
/// ids in place. Parameters that are not an area's stay as they are.
pub async fn make(app: &App, meta: &Meta, others: &mut BTreeMap<&'static str, String>) {
    let parameters = meta.path_parameters();
    others.extend(backtests::make(app, meta.id, &parameters).await);
    others.extend(directory::make(app, meta.id, &parameters).await);
    others.extend(history::make(app, &parameters).await);
    others.extend(managed_config::make(app, meta.id, &parameters).await);
    others.extend(mcp_sessions::make(app, meta.id, &parameters).await);
    others.extend(oauth::make(app, meta.id, &parameters).await);
    others.extend(policies::make(app, meta.id, &parameters).await);
    others.extend(resources::make(app, meta.id, &parameters).await);
    others.extend(skills::make(app, meta.id, &parameters).await);
    others.extend(words::make(app, meta.id, &parameters).await);
}

/// Makes the records that belong to one caller alone, as that caller, and puts their ids in place.
pub async fn make_own(app: &App, meta: &Meta, token: &str, others: &mut BTreeMap<&'static str, String>) {
    others.extend(skills::make_own(app, meta.id, &meta.path_parameters(), token).await);
}

/// Returns ids of records that were deleted; where nothing can be deleted, ids of nothing.
pub async fn deleted(app: &App) -> BTreeMap<&'static str, String> {
    let mut all = absent("01kadh5j9v0000000000000001");
    all.extend(directory::deleted(app).await);
    all.extend(oauth::deleted(app).await);
    all.extend(policies::deleted(app).await);
    all.extend(resources::deleted(app).await);
    all.extend(skills::deleted(app).await);
    all.extend(words::deleted(app).await);
    all
}

/// Returns a body, without the trio, with which the operation succeeds on this target.
pub fn body(operation: &str, target: &Target) -> Option<Value> {
    backtests::body(operation, target)
        .or_else(|| decisions::body(operation, target))
        .or_else(|| directory::body(operation, target))
        .or_else(|| managed_config::body(operation, target))
        .or_else(|| mcp_sessions::body(operation, target))
        .or_else(|| oauth::body(operation, target))
        .or_else(|| policies::body(operation, target))
        .or_else(|| resources::body(operation, target))
        .or_else(|| restore::body(operation))
        .or_else(|| skills::body(operation, target))
        .or_else(|| words::body(operation, target))
}

/// Returns content that is not JSON with which the operation succeeds: its media type and bytes.
pub fn content(operation: &str) -> Option<(&'static str, Vec<u8>)> {
    directory::content(operation)
        .or_else(|| history::content(operation))
        .or_else(|| managed_config::content(operation))
        .or_else(|| otlp::content(operation))
        .or_else(|| resources::content(operation))
        .or_else(|| skills::content(operation))
}

/// Returns the query without which the operation refuses every call.
pub fn query(operation: &str) -> Option<&'static str> {
    directory::query(operation)
        .or_else(|| history::query(operation))
        .or_else(|| policies::query(operation))
}

/// Calls an operation whose path names no record so that it answers 404 nevertheless; `None` where nothing can be missed.
pub async fn missed(app: &App, operation: &str) -> Option<Reply> {
    directory::missed(app, operation).await
}

/// Says whether the operation's body may hold no member at all, so that the trio travels in headers.
pub fn takes_no_member(operation: &str) -> bool {
    operation == "uninstallHeadlessSkillRegistryItem"
}

/// Makes what a mutation needs and returns it; `None` for an operation of no area here.
pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    if let Some(made) = backtests::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = directory::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = managed_config::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = mcp_sessions::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = oauth::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = policies::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = resources::fixture(app, operation, unique).await {
        return Some(made);
    }
    if let Some(made) = restore::fixture(operation) {
        return Some(made);
    }
    if let Some(made) = words::fixture(app, operation, unique).await {
        return Some(made);
    }
    skills::fixture(app, operation, unique).await
}

/// Returns the fixture's body with another, valid value of one member, where no general rule finds one.
pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    backtests::varied(operation, member, body)
        .or_else(|| directory::varied(operation, member, body))
        .or_else(|| managed_config::varied(operation, member, body))
        .or_else(|| mcp_sessions::varied(operation, member, body))
        .or_else(|| oauth::varied(operation, member, body))
        .or_else(|| policies::varied(operation, member, body))
        .or_else(|| resources::varied(operation, member, body))
        .or_else(|| restore::varied(operation, member))
        .or_else(|| skills::varied(operation, member, body))
}

/// Returns what no refused call may change.
pub async fn state(app: &App) -> Value {
    json!([
        backtests::state(app).await,
        directory::state(app).await,
        history::state(app).await,
        managed_config::state(app).await,
        mcp_sessions::state(app).await,
        oauth::state(app).await,
        policies::state(app).await,
        resources::state(app).await,
        skills::state(app).await,
        words::state(app).await,
    ])
}
