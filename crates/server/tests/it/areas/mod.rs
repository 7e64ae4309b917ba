//! What the nets over every operation must know of the areas: records that paths name, bodies, fixtures.
//!
//! A file each, which says it in one value, and the list of them; a new path parameter or a new mutation that stands in none of
//! them fails the nets.

pub mod approvals;
mod assignments;
pub mod backtests;
mod decisions;
pub mod device_judging;
pub mod directory;
pub mod dpop;
pub mod fleet;
pub mod history;
pub mod inventory;
mod managed_config;
pub mod mcp_sessions;
pub mod oauth;
mod otlp;
pub mod policies;
pub mod resources;
mod restore;
pub mod skills;
pub mod violations;
mod words;
pub mod workload_trusts;

use crate::samples::Target;
use crate::support::{App, Reply};
use provost_kernel::operation::Meta;
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::Pin;

/// A mutation that has an effect when it is sent, and none when it is repeated under its key.
pub struct Fixture {
    pub method: &'static str,
    pub path: String,
    /// Without the mutation metadata; `Null` sends none, and the mutation metadata in headers.
    pub body: Value,
    /// The event that its effect emits.
    pub event: Option<&'static str>,
    /// Content that is not JSON: its media type and bytes.
    pub content: Option<Content>,
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

/// What comes when it is asked for.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Content that is not JSON: its media type and bytes.
pub type Content = (&'static str, Vec<u8>);

/// Ids by path parameter.
pub type Ids = Vec<(&'static str, String)>;

/// What the nets must know of one area.
pub struct Samples {
    /// Returns well-formed ids of nothing. The text is the part behind the prefix.
    pub absent: fn(&str) -> Ids,
    /// Makes the records that the operation's path names, each of them to be done with as one likes.
    pub make: for<'a> fn(&'a App, &'a Meta) -> Later<'a, Ids>,
    /// Makes the records that belong to one caller alone, as that caller.
    pub make_own: for<'a> fn(&'a App, &'a Meta, &'a str) -> Later<'a, Ids>,
    /// Returns ids of records that were deleted.
    pub deleted: for<'a> fn(&'a App) -> Later<'a, Ids>,
    /// Returns a body, without the mutation metadata, with which the operation succeeds on this target.
    pub body: fn(&str, &Target) -> Option<Value>,
    /// Returns content that is not JSON with which the operation succeeds: its media type and bytes.
    pub content: fn(&str) -> Option<Content>,
    /// Returns the query without which the operation refuses every call.
    pub query: fn(&str) -> Option<&'static str>,
    /// Calls an operation whose path names no record so that it answers 404 nevertheless.
    pub missed: for<'a> fn(&'a App, &'a str) -> Later<'a, Option<Reply>>,
    /// Makes what a mutation needs and returns it.
    pub fixture: for<'a> fn(&'a App, &'a str, &'a str) -> Later<'a, Option<Fixture>>,
    /// Returns the fixture's body with another, valid value of one member, where no general rule finds one.
    pub varied: fn(&str, &str, &Value) -> Option<Value>,
    /// Returns what no refused call may change.
    pub state: for<'a> fn(&'a App) -> Later<'a, Value>,
}

impl Samples {
    /// Of an area whose operations name no records and take no bodies.
    pub const NONE: Self = Self {
        absent: |_| Vec::new(),
        make: |_, _| Box::pin(std::future::ready(Vec::new())),
        make_own: |_, _, _| Box::pin(std::future::ready(Vec::new())),
        deleted: |_| Box::pin(std::future::ready(Vec::new())),
        body: |_, _| None,
        content: |_| None,
        query: |_| None,
        missed: |_, _| Box::pin(std::future::ready(None)),
        fixture: |_, _, _| Box::pin(std::future::ready(None)),
        varied: |_, _, _| None,
        state: |_| Box::pin(std::future::ready(Value::Null)),
    };
}

/// Returns what is known of the areas of the product, and of those that the application, or any, has beside them.
fn all(app: Option<&App>) -> impl Iterator<Item = &'static Samples> {
    const PRODUCT: &[Samples] = &[
        approvals::SAMPLES,
        backtests::SAMPLES,
        decisions::SAMPLES,
        device_judging::SAMPLES,
        directory::SAMPLES,
        fleet::SAMPLES,
        history::SAMPLES,
        inventory::SAMPLES,
        managed_config::SAMPLES,
        mcp_sessions::SAMPLES,
        oauth::SAMPLES,
        otlp::SAMPLES,
        policies::SAMPLES,
        resources::SAMPLES,
        restore::SAMPLES,
        skills::SAMPLES,
        violations::SAMPLES,
        words::SAMPLES,
        workload_trusts::SAMPLES,
        // Behind the areas whose records it pairs: the pair is its own.
        assignments::SAMPLES,
    ];
    PRODUCT.iter().chain(crate::beside(app))
}

/// Returns well-formed ids of nothing, by path parameter. `ulid` is the part behind the prefix.
pub fn absent(ulid: &str) -> BTreeMap<&'static str, String> {
    all(None).flat_map(|area| (area.absent)(ulid)).collect()
}

/// Makes the records that the operation's path names, each of them to be done with as one likes, and puts their
/// ids in place. Parameters that are not an area's stay as they are.
pub async fn make(app: &App, meta: &Meta, others: &mut BTreeMap<&'static str, String>) {
    for area in all(Some(app)) {
        others.extend((area.make)(app, meta).await);
    }
}

/// Makes the records that belong to one caller alone, as that caller, and puts their ids in place.
pub async fn make_own(app: &App, meta: &Meta, token: &str, others: &mut BTreeMap<&'static str, String>) {
    for area in all(Some(app)) {
        others.extend((area.make_own)(app, meta, token).await);
    }
}

/// Returns ids of records that were deleted; where nothing can be deleted, ids of nothing.
pub async fn deleted(app: &App) -> BTreeMap<&'static str, String> {
    let mut ids = absent("01kadh5j9v0000000000000001");
    for area in all(Some(app)) {
        ids.extend((area.deleted)(app).await);
    }
    ids
}

/// Returns a body, without the mutation metadata, with which the operation succeeds on this target.
pub fn body(operation: &str, target: &Target) -> Option<Value> {
    all(None).find_map(|area| (area.body)(operation, target))
}

/// Returns content that is not JSON with which the operation succeeds: its media type and bytes.
pub fn content(operation: &str) -> Option<Content> {
    all(None).find_map(|area| (area.content)(operation))
}

/// Returns the query without which the operation refuses every call.
pub fn query(operation: &str) -> Option<&'static str> {
    all(None).find_map(|area| (area.query)(operation))
}

/// Calls an operation whose path names no record so that it answers 404 nevertheless; `None` where nothing can be missed.
pub async fn missed(app: &App, operation: &str) -> Option<Reply> {
    for area in all(Some(app)) {
        if let Some(reply) = (area.missed)(app, operation).await {
            return Some(reply);
        }
    }
    None
}

/// Says whether the operation's body may hold no member at all, so that the mutation metadata travels in headers.
pub fn takes_no_member(operation: &str) -> bool {
    ["uninstallHeadlessSkillRegistryItem", "renewHeadlessDeviceToken"].contains(&operation)
}

/// Makes what a mutation needs and returns it; `None` for an operation of no area here.
pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    for area in all(Some(app)) {
        if let Some(made) = (area.fixture)(app, operation, unique).await {
            return Some(made);
        }
    }
    None
}

/// Returns the fixture's body with another, valid value of one member, where no general rule finds one.
pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    all(None).find_map(|area| (area.varied)(operation, member, body))
}

/// Returns what no refused call may change.
pub async fn state(app: &App) -> Value {
    let mut states = Vec::new();
    for area in all(Some(app)) {
        states.push((area.state)(app).await);
    }
    states.into()
}
