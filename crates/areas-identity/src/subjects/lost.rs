//! What a record's deletion takes from others: policies that name it guard it no more, and what was assigned to it is not.
//!
//! Who knows what names a record stands above this area, and answers [`LostWith`].
//!
//! Keeps DI-13.

use crate::subjects::fences;
use crate::words::Kind;
use provost_kernel::announcement::{Announcement, Question};
use provost_kernel::event::EventData;
use provost_kernel::{OperationContext, Result};
use provost_policy::Family;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The member under which answers and refusals say it.
const MEMBER: &str = "lostReferences";
/// With it, policies of every family are read.
const READS_POLICIES: &str = "policies:read";
/// With it, credentials are read.
const READS_CREDENTIALS: &str = "resource_credentials:read";

/// A record that policies may name.
#[derive(Clone, Debug)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// Its names and addresses.
    pub words: Vec<String>,
}

/// A policy that names a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The policy.
    pub policy_id: String,
    /// Its family.
    pub family: Family,
    /// What it does with a request that it matches.
    pub action: String,
    /// Whether it takes part in decisions.
    pub enabled: bool,
    /// The record's id.
    pub record_id: String,
    /// The record's kind.
    pub kind: Kind,
    /// Where in the definition the record stands.
    pub places: Vec<String>,
}

/// Asks what is lost with records.
pub struct LostWith {
    /// The records that go.
    pub records: Vec<Record>,
}

impl Announcement for LostWith {}
impl Question for LostWith {
    type Answer = LostReference;
}

/// What names a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum By {
    /// A policy of any family, enabled or a draft.
    Policy,
    /// A credential that is assigned to the record.
    Credential,
}

/// A reference that is lost with the record that it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LostReference {
    /// `policy` or `credential`.
    by: By,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<String>,
    /// The policy's family.
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    /// What the policy does with a request that it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// Whether the policy takes part in decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    /// JSON Pointers into the policy's definition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    places: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential_id: Option<String>,
    /// How many there are, in place of each of them: the caller may not read policies, or credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// `user`, `group`, `service_account`, `resource` or `skill`.
    kind: &'static str,
    /// The record that goes.
    id: String,
}

impl EventData for LostReference {
    const EXAMPLE: &'static str = r#"{"by":"policy","policyId":"no-uploads","family":"access","action":"deny","enabled":true,"places":["/who/groups/0"],"kind":"group","id":"grp_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;
}

impl From<Mention> for LostReference {
    fn from(mention: Mention) -> Self {
        Self {
            by: By::Policy,
            policy_id: Some(mention.policy_id),
            family: Some(mention.family.word()),
            action: Some(mention.action),
            enabled: Some(mention.enabled),
            places: mention.places,
            credential_id: None,
            count: None,
            kind: mention.kind.word(),
            id: mention.record_id,
        }
    }
}

impl LostReference {
    /// Returns the assignment of a credential to a record.
    pub fn to_credential(credential_id: String, record: &Record) -> Self {
        Self {
            by: By::Credential,
            policy_id: None,
            family: None,
            action: None,
            enabled: None,
            places: Vec::new(),
            credential_id: Some(credential_id),
            count: None,
            kind: record.kind.word(),
            id: record.id.clone(),
        }
    }
}

/// The answer of a deletion: nothing, or what was lost by it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DeletionAnswer {
    /// What named the record.
    lost_references: Vec<LostReference>,
}

/// Returns what names these records: policies, and behind them credentials.
pub fn lost_with(ctx: &mut OperationContext<'_>, records: Vec<Record>) -> Result<Vec<LostReference>> {
    let mut lost = ctx.ask(&LostWith { records })?;
    lost.sort_by_key(|reference| reference.by);
    Ok(lost)
}

/// Returns what the caller sees of lost references: each where they may read what names the record, and otherwise how many there
/// are of a kind for a record.
///
/// INVARIANT DI-16: whether there are any is shown to whoever may delete the record; what they are is not.
pub fn shown(ctx: &OperationContext<'_>, lost: Vec<LostReference>) -> Vec<LostReference> {
    let scopes = ctx.actor().permission.scopes;
    let (mut seen, mut counted): (Vec<LostReference>, Vec<LostReference>) = Default::default();
    for reference in lost {
        let is_read = scopes.has(match reference.by {
            By::Policy => READS_POLICIES,
            By::Credential => READS_CREDENTIALS,
        });
        if is_read {
            seen.push(reference);
            continue;
        }
        let known = counted
            .iter_mut()
            .find(|known| known.by == reference.by && known.id == reference.id);
        match known {
            Some(known) => known.count = known.count.map(|count| count + 1),
            None => counted.push(LostReference {
                policy_id: None,
                family: None,
                action: None,
                enabled: None,
                places: Vec::new(),
                credential_id: None,
                count: Some(1),
                ..reference
            }),
        }
    }
    seen.extend(counted);
    seen
}

/// Returns the member of a refusal that says what would be lost.
pub fn weighed(ctx: &mut OperationContext<'_>, record: Record) -> Result<Option<(&'static str, Value)>> {
    let lost = lost_with(ctx, vec![record])?;
    Ok(Some((MEMBER, json!(shown(ctx, lost)))))
}

/// Tells of what is lost: an event for each policy, and the audit entry.
pub fn tell(ctx: &mut OperationContext<'_>, lost: &[LostReference]) -> Result<()> {
    for reference in lost.iter().filter(|reference| reference.by == By::Policy) {
        ctx.emit(&fences::REFERENCE_LOST, reference);
    }
    if !lost.is_empty() {
        ctx.change("/lostReferences", json!([]), json!(lost));
    }
    Ok(())
}

/// Notes what is lost with a record that is about to be deleted, and returns the answer that says so.
pub fn losing(ctx: &mut OperationContext<'_>, record: Record) -> Result<DeletionAnswer> {
    let lost_references = lost_with(ctx, vec![record])?;
    tell(ctx, &lost_references)?;
    if !lost_references.is_empty() {
        ctx.status(200);
    }
    Ok(DeletionAnswer {
        lost_references: shown(ctx, lost_references),
    })
}
