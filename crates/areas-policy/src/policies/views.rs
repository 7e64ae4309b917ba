//! Policies, revisions and versions as their readers see them.
//!
//! Keeps PO-4.

use super::lost::LostName;
use super::model::{Policy, PolicyId, SetVersion, management_mode};
use super::store::{self, HistoryRow};
use super::unresolved::{Lately, UnresolvedEvents};
use super::unseen::{by_inventory_id, unseen};
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_policy::Definition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A JSON object as it was stored; it is sent on without being read (PO-4).
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct StoredObject(Box<RawValue>);

impl StoredObject {
    fn of(text: String) -> Result<Self> {
        RawValue::from_string(text).map(Self).map_err(Error::internal)
    }
}

impl JsonSchema for StoredObject {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Kept".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// Who did something.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Principal {
    /// `service_account`, …
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

impl From<(String, String)> for Principal {
    fn from((kind, id): (String, String)) -> Self {
        Self { kind, id }
    }
}

/// A policy with its definition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Policy")]
pub struct PolicyItem {
    id: PolicyId,
    /// `content`, `access`, `resource` or `skill_acl`.
    family: &'static str,
    /// The number of the newest revision; each write adds one.
    current_revision: i64,
    /// The SHA-256 of the definition's canonical JSON.
    definition_sha256: String,
    /// As authored.
    definition: StoredObject,
    /// Where the author keeps it, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_ref: Option<StoredObject>,
    /// `forge` (managed by the service) or `terraform`.
    management_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_instance: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// For each kind of record that it names, how many events of the last 24 hours had a word of that kind that was not
    /// resolved. Only where one policy is read, and only of one that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    unresolved_last_day: Option<Vec<UnresolvedEvents>>,
}

/// One policy in its envelope.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OnePolicy {
    item: PolicyItem,
    /// What the author of a definition that was written now should change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Warning>,
}

/// Something of a definition that its author should change although it is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PolicyWarning")]
pub struct Warning {
    /// `text_compared_with_id`: a Rego module compares a text with the id of a record. `bare_tool_name`: a condition asks for an MCP
    /// server and compares `tool.id` with a name that no tool of a server has. `never_matches`: the policy can match nothing.
    /// `value_never_seen`: no event of the last 30 days had this value. `id_of_inventory`: `mcp.server_id` is compared with the id of a
    /// server in the inventory, and events name servers as clients call them. Open.
    pub(super) code: &'static str,
    /// A JSON Pointer to the member that is meant.
    pub(super) path: String,
    /// The line of the module, from 1; where a module is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u32>,
    /// The column of that line, from 1; where a module is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<u32>,
    pub(super) message: String,
    /// With `value_never_seen`: values that were seen and may be meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) near: Vec<NearValue>,
}

/// A value that events had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct NearValue {
    /// One of its spellings.
    pub(super) value: String,
    /// How many events of the last 30 days had it; for callers with the scope `policies:history`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) events: Option<i64>,
}

/// Returns what the author of a definition should change.
pub fn warnings(definition: &Definition) -> Vec<Warning> {
    let some = |place: u32| (place > 0).then_some(place);
    let found = definition.advice().into_iter();
    found
        .map(|advice| Warning {
            code: advice.code,
            path: format!("/definition{}", advice.path),
            line: some(advice.diagnostic.line),
            column: some(advice.diagnostic.column),
            message: advice.diagnostic.message,
            near: Vec::new(),
        })
        .collect()
}

/// Returns what the author of a definition should change, the values that nothing had among it; `bound` is the definition with its
/// names resolved.
pub fn all_warnings(ctx: &OperationContext<'_>, definition: &Definition, bound: &Value) -> Vec<Warning> {
    let mut all = warnings(definition);
    all.extend(by_inventory_id(definition));
    all.extend(unseen(ctx, definition, bound));
    all
}

/// Returns what a reader of a policy sees.
pub fn policy(ctx: &mut OperationContext<'_>, policy: Policy) -> Result<OnePolicy> {
    let authored = store::authored(ctx, &policy.id, policy.revision)?;
    let (definition, source_ref) =
        authored.ok_or_else(|| Error::internal("a policy without its newest revision"))?;
    let [manager_id, manager_instance, _] = policy.owner.columns().map(|text| text.map(str::to_owned));
    Ok(OnePolicy {
        item: PolicyItem {
            family: policy.family.word(),
            current_revision: policy.revision,
            definition: StoredObject::of(definition)?,
            source_ref: source_ref.map(StoredObject::of).transpose()?,
            management_mode: management_mode(&policy.owner),
            manager_id,
            manager_instance,
            id: policy.id,
            definition_sha256: policy.definition_sha256,
            created_at: policy.created_at,
            updated_at: policy.updated_at,
            unresolved_last_day: None,
        },
        warnings: Vec::new(),
    })
}

impl OnePolicy {
    /// Adds what the author of the definition should change.
    pub fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings;
        self
    }

    /// Adds what was not resolved lately.
    pub fn with_unresolved(mut self, lately: &Lately) -> Self {
        self.item.unresolved_last_day = lately.of(&self.item.id);
        self
    }
}

/// A policy in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicySummary")]
pub struct PolicySummary {
    id: PolicyId,
    /// `content`, `access`, `resource` or `skill_acl`.
    family: &'static str,
    /// Its name; skill ACLs have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What it does with a request that it matches.
    action: String,
    enabled: bool,
    current_revision: i64,
    definition_sha256: String,
    /// `forge` (managed by the service) or `terraform`.
    management_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_instance: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// For each kind of record that it names, how many events of the last 24 hours had a word of that kind that was not
    /// resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    unresolved_last_day: Option<Vec<UnresolvedEvents>>,
    /// Records that it names by id and that are not there any more: for 90 days it holds for their words, then for nobody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    lost_references: Vec<LostName>,
}

impl PolicySummary {
    /// Adds what it names and nothing is any more.
    pub fn with_lost(mut self, lost: &mut BTreeMap<String, Vec<LostName>>) -> Self {
        self.lost_references = lost.remove(self.id.as_str()).unwrap_or_default();
        self
    }

    /// Returns the policy as a list shows it.
    pub fn of(policy: Policy, lately: &Lately) -> Self {
        let [manager_id, manager_instance, _] = policy.owner.columns().map(|text| text.map(str::to_owned));
        let unresolved_last_day = lately.of(&policy.id);
        Self {
            family: policy.family.word(),
            management_mode: management_mode(&policy.owner),
            manager_id,
            manager_instance,
            id: policy.id,
            name: policy.name,
            action: policy.action,
            enabled: policy.enabled,
            current_revision: policy.revision,
            definition_sha256: policy.definition_sha256,
            created_at: policy.created_at,
            updated_at: policy.updated_at,
            unresolved_last_day,
            lost_references: Vec::new(),
        }
    }
}

/// Who manages a policy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicyAuthority")]
pub struct Authority {
    id: PolicyId,
    current_revision: i64,
    /// `forge` (managed by the service) or `terraform`.
    management_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_instance: Option<String>,
}

/// One policy's authority in its envelope.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneAuthority {
    item: Authority,
}

impl From<Policy> for OneAuthority {
    fn from(policy: Policy) -> Self {
        let [manager_id, manager_instance, _] = policy.owner.columns().map(|text| text.map(str::to_owned));
        Self {
            item: Authority {
                current_revision: policy.revision,
                management_mode: management_mode(&policy.owner),
                manager_id,
                manager_instance,
                id: policy.id,
            },
        }
    }
}

/// A revision of a policy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicyRevision")]
pub struct RevisionView {
    /// Its number, from 1 on without a gap.
    revision: i64,
    /// The SHA-256 of what was authored, as canonical JSON.
    definition_sha256: String,
    /// The SHA-256 of what decides: the definition with ids in place of names.
    bound_sha256: String,
    action: String,
    enabled: bool,
    /// The number of the first version of the policy set that it decides in.
    #[serde(skip_serializing_if = "Option::is_none")]
    decides_from: Option<i64>,
    /// The number of the first version that it does not decide in any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    decides_until: Option<i64>,
    created_at: Timestamp,
    created_by: Principal,
    /// As authored; only when one revision is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<StoredObject>,
    /// Where the author keeps it; only when one revision is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_ref: Option<StoredObject>,
}

impl RevisionView {
    /// Adds what was authored.
    pub fn with_authored(mut self, ctx: &mut OperationContext<'_>, id: &PolicyId) -> Result<Self> {
        if let Some((definition, source_ref)) = store::authored(ctx, id, self.revision)? {
            self.definition = Some(StoredObject::of(definition)?);
            self.source_ref = source_ref.map(StoredObject::of).transpose()?;
        }
        Ok(self)
    }
}

impl From<HistoryRow> for RevisionView {
    fn from(past: HistoryRow) -> Self {
        Self {
            revision: past.revision,
            definition_sha256: past.definition_sha256,
            bound_sha256: past.bound_sha256,
            action: past.action,
            enabled: past.enabled,
            decides_from: past.set_from,
            decides_until: past.set_to,
            created_at: past.created_at,
            created_by: past.created_by.into(),
            definition: None,
            source_ref: None,
        }
    }
}

/// A version of the policy set.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicySetVersion")]
pub struct VersionView {
    id: String,
    /// Its number, from 1 on without a gap.
    sequence: i64,
    /// The digest of its policies as they decide: two versions with the same one decide alike.
    digest: String,
    created_at: Timestamp,
    created_by: Principal,
    /// How many policies it holds.
    policies: i64,
    /// Their ids, sorted; only when one version is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_ids: Option<Vec<String>>,
}

impl VersionView {
    /// Adds the ids of its policies.
    pub fn with_ids(mut self, ctx: &mut OperationContext<'_>) -> Result<Self> {
        self.policy_ids = Some(store::member_ids(ctx, self.sequence)?);
        Ok(self)
    }
}

impl From<SetVersion> for VersionView {
    fn from(version: SetVersion) -> Self {
        Self {
            id: version.id,
            sequence: version.sequence,
            digest: version.digest,
            created_at: version.created_at,
            created_by: version.created_by.into(),
            policies: version.policies,
            policy_ids: None,
        }
    }
}
