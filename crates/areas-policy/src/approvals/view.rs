//! An approval as its readers see it.

use super::model::{Approval, ApprovalId, BoundPolicy, GrantId, Kind, Party, State, Use, Vote};
use super::rights::DECIDE;
use super::routes::{Approvers, OnDeadline};
use provost_areas_fleet::inventory::{ServerFacts, ServerId};
use provost_areas_platform::settings;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_policy::Field;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The scope of who reads the approvals of others.
const READ: &str = "mcp_approvals:read";

/// An approval.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Approval")]
pub struct ApprovalView {
    id: ApprovalId,
    kind: Kind,
    /// Where it stands now. Open.
    state: State,
    /// Who asked: the principal whose questions it answers.
    requested_by: Party,
    /// Whose call it is, or who wants it.
    requested_for: Party,
    /// The tool of the call, the key of the server, or the id of the policy or the operation.
    tool: String,
    /// What it answers: the policies that asked for it, as they were; of an exception the one that is to have it.
    policies: Vec<BoundPolicy>,
    /// Distinct people who have to say yes.
    quorum: i64,
    /// Who of those who may decide does, as a route said when it was asked for; absent where none fitted: all who may.
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<RouteView>,
    votes: Vec<Vote>,
    created_at: Timestamp,
    /// Until when it waits for its decision.
    deadline_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Timestamp>,
    /// What it gives; absent before it is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// Why it is denied, where nobody said no: `deadline`. Why it is void: `policies_changed`, `subject_changed`, `subject_ended`, `voter_behind`, `voter_ended`,
    /// `clock_set_back`, `restored` or `lost`. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<String>,
    /// What is decided about, of one approval, for who decides and who asked; absent elsewhere, and 30 days after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<CallView>,
}

/// Who decides about an approval.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RouteView {
    /// What the route was called.
    name: String,
    /// Whom it named; for callers with `mcp_approvals:read` or `mcp_approvals:decide`: who only asks learns nothing of the directory by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approvers: Option<Approvers>,
    /// What becomes of the request at its deadline. Open.
    on_deadline: OnDeadline,
    /// Fewer of the approvers could be reached than have to say yes: all who may decide do. Absent of operations where people are pseudonyms.
    #[serde(skip_serializing_if = "Option::is_none")]
    falls_to_admins: Option<bool>,
}

/// What an approval gives.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct GrantView {
    id: GrantId,
    /// How often the call passes.
    max_uses: i64,
    /// The decisions that let it pass.
    uses: Vec<Use>,
    expires_at: Timestamp,
}

/// The call, without the values of credentials, or what was asked for by hand.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CallView {
    /// A keyed hash of all that is bound; a vote repeats it.
    binding_digest: String,
    #[serde(flatten)]
    said: SealedCall,
    /// Of a server: what is known of it otherwise than when it was asked for, each with path, then, now, and isWeighty, by which no vote approves it;
    /// for callers with `inventory:read`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, with = "Vec<serde_json::Map<String, Value>>")]
    drift: Vec<Drift>,
}

/// Something that is known otherwise than it was. A model that reads the list of tools reads no schema of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// A JSON Pointer into `server.facts`.
    pub path: String,
    /// What it was when it was asked for.
    pub then: Value,
    /// What it is.
    pub now: Value,
    /// Whether the server may be another thing by it, so that no vote approves it.
    pub is_weighty: bool,
}

/// What is sealed of a call: all that is bound of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct SealedCall {
    /// The attributes of the call. `[hidden]` stands for the value of a credential, and for nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<Value>,
    /// The server that somebody asked for by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerWish>,
    /// The exception that somebody asked for by hand: policyId, family, name, action, description, message, revision and definitionSha256 of the policy
    /// as it was, leavesDevices where devices judge it by themselves until then, expiresAt, and exception as the policy gets it with the vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    exception: Option<ExceptionWish>,
    /// The request that one person alone does not perform.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<OperationWish>,
    /// Why, as who asked by hand says.
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<String>,
    /// Attributes that it has and whose values nobody can say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// Where it runs, as who asked says.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// The machine on which it runs, as who asked says.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// The session in which it runs, as who asked says.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

/// A request for an operation, as it will be performed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OperationWish {
    /// The operation.
    pub operation_id: String,
    /// What it does, in a line.
    pub summary: String,
    /// All that the request says (path, query, body with its reason), and to who may read that what of the store it is about (standing).
    pub request: Value,
}

/// A server that is asked for, as it was then.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerWish {
    /// The server.
    pub id: ServerId,
    /// What it is: one key for every spelling of the same thing.
    pub key: String,
    /// How the first client that had it calls it.
    pub name: String,
    /// How it stood.
    pub standing: String,
    /// How long the approval is to hold, from the decision on.
    pub expires_in_seconds: i64,
    /// What was known of it: devices, accounts, instances, weakInstances, lookedAt, clients, transports, versionPins, versions, credentials. Absent of
    /// what was asked for before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub facts: Option<ServerFacts>,
}

/// An exception that is asked for, and the policy as it was then. A model that reads the list of tools reads no schema of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionWish {
    /// The policy.
    pub policy_id: String,
    /// Its family.
    pub family: String,
    /// Its name.
    pub name: String,
    /// What it does with what it matches.
    pub action: String,
    /// What its author says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What people are told by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The number of its revision.
    pub revision: i64,
    /// The SHA-256 of its definition.
    pub definition_sha256: String,
    /// Devices judge the policy by themselves so far. With its first exception the server alone does, for everybody, also when the exception has
    /// ended, until who writes policies takes it away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_devices: bool,
    /// For how long it was asked, from then on. Units: seconds.
    pub expires_in_seconds: i64,
    /// When it ends.
    pub expires_at: Timestamp,
    /// To the letter what the policy gets with the vote: an id, the justification as its reason, its end, and its conditions, of which the first is
    /// for whom it is.
    pub exception: Value,
}

/// One approval.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OneApproval {
    /// It.
    pub approval: ApprovalView,
}

/// The path of operations on one approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ApprovalPath {
    /// The approval.
    pub approval_id: ApprovalId,
}

impl CallView {
    /// Returns the device that the call names.
    pub fn device(&self) -> Option<&str> {
        self.said.call.as_ref()?.get(Field::DEVICE.name())?.as_str()
    }

    /// Returns the server that is asked for.
    pub fn server(&self) -> Option<&ServerWish> {
        self.said.server.as_ref()
    }

    /// Returns the exception that is asked for.
    pub fn exception(&self) -> Option<&ExceptionWish> {
        self.said.exception.as_ref()
    }

    /// Takes away what of the store a request for an operation is about: a session that asks for something learns by that nothing which it may not
    /// read.
    pub fn without_standing(mut self) -> Self {
        let request = self.said.operation.as_mut().map(|wish| &mut wish.request);
        if let Some(Value::Object(request)) = request {
            request.remove("standing");
        }
        self
    }

    /// Adds what is known otherwise than when it was asked for.
    pub fn with_drift(mut self, drift: Vec<Drift>) -> Self {
        self.drift = drift;
        self
    }
}

impl ApprovalView {
    /// Returns how an approval looks to the caller now.
    pub fn of(ctx: &mut OperationContext<'_>, approval: Approval, preview: Option<CallView>) -> Result<Self> {
        let hides = tells_of_machines(&approval) && are_hidden(ctx)?;
        Ok(Self::seen(ctx, approval, preview, hides))
    }

    /// Returns how approvals look to the caller now, without what they are about.
    pub fn of_all(ctx: &mut OperationContext<'_>, approvals: Vec<Approval>) -> Result<Vec<Self>> {
        let hides = approvals.iter().any(tells_of_machines) && are_hidden(ctx)?;
        let seen = |approval| Self::seen(ctx, approval, None, hides);
        Ok(approvals.into_iter().map(seen).collect())
    }

    fn seen(ctx: &OperationContext<'_>, approval: Approval, preview: Option<CallView>, hides: bool) -> Self {
        let hides = hides && tells_of_machines(&approval);
        let state = approval.state_at(ctx.latest());
        let scopes = ctx.actor().permission.scopes;
        let sees_approvers = scopes.has(READ) || scopes.has(DECIDE);
        // Who owns a machine says no yes about it: this would say whose it is.
        let route = approval.route.map(|route| RouteView {
            name: route.name,
            approvers: sees_approvers.then_some(route.approvers),
            on_deadline: route.on_deadline,
            falls_to_admins: (!hides).then_some(route.falls_to_admins),
        });
        let grant = approval.grant_until.map(|expires_at| GrantView {
            id: approval.grant_id,
            max_uses: approval.max_uses,
            uses: approval.uses,
            expires_at,
        });
        Self {
            state,
            id: approval.id,
            kind: approval.kind,
            requested_by: approval.asker,
            requested_for: approval.subject,
            tool: approval.tool,
            policies: approval.policies,
            quorum: approval.quorum,
            route,
            votes: approval.votes,
            created_at: approval.created_at,
            deadline_at: approval.deadline_at,
            decided_at: approval.decided_at,
            grant,
            ended_at: approval.ended_at,
            end_reason: approval.end_reason,
            preview,
        }
    }
}

/// Says whether who could be reached for an approval may say whose a machine is.
fn tells_of_machines(approval: &Approval) -> bool {
    approval.kind == Kind::Operation && approval.route.is_some()
}

/// Says whether the settings have nobody be told whose a machine is.
fn are_hidden(ctx: &mut OperationContext<'_>) -> Result<bool> {
    Ok(settings::load(ctx)?.fleet.privacy.is_pseudonymous())
}

/// Returns where a sealed view belongs, so that one that is moved to another row does not open.
pub fn place<'a>(org: &'a str, id: &'a ApprovalId) -> [&'a [u8]; 3] {
    [org.as_bytes(), b"approval", id.as_str().as_bytes()]
}

/// Returns the call of an approval, unless it was erased.
///
/// Errors: `Unavailable` when the sealing key is not here.
pub fn call_of(ctx: &OperationContext<'_>, approval: &Approval) -> Result<Option<CallView>> {
    let Some((key, sealed)) = &approval.sealed else {
        return Ok(None);
    };
    let opened = ctx
        .services()
        .keys
        .open_sealed(key, &place(ctx.org(), &approval.id), sealed);
    let opened = opened
        .ok_or_else(|| Error::unavailable("the sealed view of the call cannot be opened on this server"))?;
    let said = serde_json::from_slice(opened.expose()).map_err(Error::internal)?;
    Ok(Some(CallView {
        binding_digest: approval.binding_mac.clone(),
        said,
        drift: Vec::new(),
    }))
}
