//! The answer, and how it follows from the registry.
//!
//! Keeps CP-1.

use provost_kernel::Timestamp;
use provost_kernel::auth::{self, Actor, Role};
use provost_kernel::expose::edge::EdgeSettings;
use provost_kernel::kernel::{Settings, buckets};
use provost_kernel::operation::BodyLimit;
use provost_kernel::operation::{Access, Meta, Registry, authorize};
use provost_kernel::rate::Bucket;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// What a caller may do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capabilities {
    pub organization_id: String,
    pub principal: Principal,
    pub permission_role: Role,
    /// The effective scopes: those of the role, the account and the token in common.
    pub scopes: Vec<&'static str>,
    /// Whether the scopes grow with the role.
    pub all_of_role: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// The toolsets of which the caller may call something.
    pub toolsets: Vec<Toolset>,
    pub limits: Limits,
    /// The version of the server.
    pub server_version: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Principal {
    /// `service_account`; more may come.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub id: String,
    pub name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[expect(
    clippy::struct_field_names,
    reason = "the public part of a token is called so everywhere"
)]
pub(super) struct Token {
    pub id: String,
    pub token_prefix: String,
    /// Whether it is the principal's own token, and not that of a session or of one item.
    pub is_own: bool,
    /// Absent where it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued_at: Option<Timestamp>,
    /// The end of its life. A session that is used may get more.
    pub expires_at: Timestamp,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Toolset {
    pub name: &'static str,
    /// The operations that the caller may call.
    pub operations: Vec<&'static str>,
}

/// The limits of an ordinary request. Units: bytes, characters, items, as the names say.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Limits {
    body_bytes: usize,
    nesting_levels: usize,
    reason_characters: u32,
    idempotency_key_characters: u32,
    page_items: u32,
    /// How many writes of one principal may be under way at a time.
    writes_in_flight: usize,
    /// Absent when this installation does not limit rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rates>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Rates {
    read: Rate,
    write: Rate,
    resolve: Rate,
    /// Decisions and telemetry.
    decide: Rate,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Rate {
    per_second: u32,
    burst: u32,
}

impl Rate {
    const fn of(bucket: &Bucket) -> Self {
        Self {
            per_second: bucket.per_second_num / bucket.per_second_den,
            burst: bucket.burst,
        }
    }
}

impl Limits {
    /// Returns the limits under these settings.
    pub(super) fn of(settings: &Settings) -> Self {
        let rate = || Rates {
            read: Rate::of(&buckets::READ),
            write: Rate::of(&buckets::WRITE),
            resolve: Rate::of(&buckets::RESOLVE),
            decide: Rate::of(&buckets::DECIDE),
        };
        Self {
            body_bytes: EdgeSettings::default().max_body_bytes,
            nesting_levels: BodyLimit::ORDINARY.depth,
            // D1.10; the types of text that refuse more are the kernel's.
            reason_characters: 500,
            idempotency_key_characters: 255,
            page_items: 100,
            writes_in_flight: settings.max_in_flight,
            rate: settings.rate_limits.then(rate),
        }
    }
}

/// Returns the operations that an actor may call, by toolset in declared order (CP-1).
pub(super) fn toolsets(registry: &Registry, actor: &Actor) -> Vec<Toolset> {
    let callable: Vec<&Meta> = registry
        .entries()
        .iter()
        .map(|entry| entry.meta)
        .filter(|meta| may_call(meta, actor))
        .collect();
    let toolset = |toolset: &auth::Toolset| {
        let name = toolset.name;
        let operations = callable
            .iter()
            .filter(|meta| meta.toolset == name)
            .map(|meta| meta.id)
            .collect();
        Toolset { name, operations }
    };
    auth::toolsets()
        .iter()
        .map(toolset)
        .filter(|toolset| !toolset.operations.is_empty())
        .collect()
}

fn may_call(meta: &Meta, actor: &Actor) -> bool {
    let path = match meta.access {
        Access::ScopedOrSelf { parameter, .. } => json!({ parameter: actor.id }),
        Access::Authenticated
        | Access::OfKind { .. }
        | Access::Scoped { .. }
        | Access::ScopedEither { .. }
        | Access::ScopedBoth { .. } => Value::Null,
    };
    authorize(meta, actor, &path).is_ok()
}
