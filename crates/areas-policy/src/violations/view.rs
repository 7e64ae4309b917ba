//! What a reader sees of a violation.

use super::model::Outcome;
use super::own::STOPPED;
use crate::history::{self, as_sent};
use provost_areas_identity::directory::{self, model::UserId};
use provost_areas_identity::service_accounts::{self, model::ServiceAccountId};
use provost_backtest::record::{Basis, Decision, OwnedRecord};
use provost_kernel::db::Tx;
use provost_kernel::id::{self, TypedId};
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_policy::{Action, Field};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A decision that did not simply allow.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Violation {
    event_id: String,
    /// When it happened.
    #[schemars(with = "Timestamp")]
    at: String,
    /// `blocked`, `approved` where it passed by somebody's approval, `asked`, `redacted`, `flagged`, `monitored` where whoever asked did not enforce it, or `bypassed` where a bypass of the device
    /// let it pass.
    outcome: String,
    /// What was decided.
    action: String,
    /// `enforce`, `monitor` or `bypass`, as whoever asked said.
    mode: String,
    /// The policies whose action it was; none where it rests on something else, and where it was approved those too that had asked for it.
    policy_ids: Vec<String>,
    /// On what it rests: `policies`; `standing`, where an MCP server is denied, whatever policies say; `approved`, where an approval was used; and of a device that could not judge for
    /// certain `unanswered`, `expired` (by old policies too), `no_bundle` or `failed`, or `bypass` where one let it pass and no policy is named. Absent
    /// where nobody said it. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<&'static str>,
    /// Of a `standing`: the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_server: Option<DeniedServer>,
    /// The version of the policies that decided; absent of a decision that was made elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_set_version_id: Option<String>,
    /// Whose event it was; absent where nobody can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<String>,
    /// The tool, by its own id or by the one it has at its MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Where it was judged.
    occasion: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The name under which it came: `decisions`, `device:` and the id of a device that judged it, or the source of an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Whether it was imported: somebody told of it, and this server did not decide it.
    imported: bool,
}

/// The MCP server by whose standing it was a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct DeniedServer {
    /// Its key, as the event says it.
    key: String,
}

/// Returns on what a decision rests, and which server was denied where it is that.
///
/// Keeps VI-7.
fn basis(event: &OwnedRecord, decision: &Decision) -> (Option<&'static str>, Option<DeniedServer>) {
    let named = (!decision.policy_ids.is_empty()).then_some("policies");
    let server = || {
        let key = history::text(event, Field::MCP_PACKAGE)?.to_owned();
        Some(DeniedServer { key })
    };
    match decision.basis {
        Some(basis @ Basis::Standing) => (Some(basis.word()), server()),
        Some(basis) => (Some(basis.word()), None),
        None => (named, None),
    }
}

/// Somebody or something in a record: who it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct SubjectView {
    /// `user`, `service_account` or `device`; absent in counts, which know the id alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    id: String,
    /// What it is called now; for who may read the directory, or accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// It is not there any more; for the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    deleted: bool,
}

impl SubjectView {
    /// Returns what a record says.
    pub fn of(kind: Option<&str>, id: &str) -> Self {
        Self {
            kind: kind.map(str::to_owned),
            id: id.to_owned(),
            ..Self::default()
        }
    }

    /// Takes what is known of it now.
    pub fn tell(&mut self, names: &Names) {
        if let Some(name) = names.0.get(&self.id) {
            self.name.clone_from(name);
            self.deleted = name.is_none();
        }
    }
}

/// What users and accounts are called now, by their ids; nothing where one is not there any more.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, Option<String>>);

/// Whose names a caller may read, whatever it may read of decisions.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    users: bool,
    accounts: bool,
}

impl Sight {
    /// Returns what the caller's scopes open, beside the role that reads violations at all.
    pub fn of(ctx: &OperationContext<'_>) -> Self {
        let scopes = ctx.actor().permission.scopes;
        Self {
            users: scopes.has("directory:read"),
            accounts: scopes.has("service_accounts:read"),
        }
    }
}

impl Names {
    /// Reads the names of these subjects, as far as the caller may: no copy of a name stands in a record. What is no id of a user or an
    /// account is left out.
    ///
    /// Cost: one indexed read for each; a page has at most a hundred.
    pub fn of(tx: &mut Tx<'_>, org: &str, ids: &BTreeSet<String>, sight: Sight) -> Result<Self> {
        let mut names = BTreeMap::new();
        for id in ids {
            let name = if sight.users && id::parse(UserId::PREFIX, id).is_some() {
                directory::principal(tx, org, id)?.map(|user| user.display)
            } else if sight.accounts && id::parse(ServiceAccountId::PREFIX, id).is_some() {
                service_accounts::principal(tx, org, id)?.map(|account| account.display)
            } else {
                continue;
            };
            names.insert(id.clone(), name);
        }
        Ok(Self(names))
    }
}

impl Violation {
    /// Returns what an event says, if it is a violation.
    pub fn of(id: &str, event: &OwnedRecord) -> Option<Self> {
        let (outcome, decision) = Outcome::of_event(event)?;
        let (basis, mcp_server) = basis(event, decision);
        Some(Self {
            event_id: id.to_owned(),
            at: Timestamp::from_ms(event.at_ms).to_rfc3339(),
            outcome: outcome.as_str().to_owned(),
            action: decision.action.word().to_owned(),
            mode: decision.mode.word().to_owned(),
            policy_ids: decision.policy_ids.clone(),
            basis,
            mcp_server,
            policy_set_version_id: decision.policy_set_version.clone(),
            subject: history::subject(event).map(|(kind, id)| SubjectView::of(Some(kind), id)),
            device_id: history::text(event, Field::DEVICE).map(str::to_owned),
            tool: history::tool(event).map(str::to_owned),
            occasion: event.occasion.word().to_owned(),
            session: event.session.clone(),
            source: event.source.clone(),
            imported: event.is_imported(),
        })
    }

    /// Returns the id of its subject.
    pub fn subject_id(&self) -> Option<&str> {
        self.subject.as_ref().map(|subject| subject.id.as_str())
    }

    /// Takes what is known of its subject now.
    pub fn tell(&mut self, names: &Names) {
        if let Some(subject) = &mut self.subject {
            subject.tell(names);
        }
    }
}

/// A decision about whoever asks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OwnViolation {
    event_id: String,
    /// When it happened.
    #[schemars(with = "Timestamp")]
    at: String,
    /// `blocked`, `approved`, `asked` or `redacted`.
    outcome: String,
    /// What was decided; `allow` of what was approved and only marked.
    action: String,
    /// The policies whose action it was; none where it rests on something else, and none of what was approved: `approvals own` has its request.
    policy_ids: Vec<String>,
    /// On what it rests: `policies`, `standing` where an MCP server is denied, `approved` where an approval was used, or why a device could not judge for certain. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<&'static str>,
    /// Of a `standing`: the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_server: Option<DeniedServer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Where it was judged.
    occasion: String,
    /// Whether it was imported: feedback is given where it was decided.
    imported: bool,
}

impl OwnViolation {
    /// Returns what its subject sees of an event, if it is a violation. What marks an approved call beside is told to nobody whom it watches: neither
    /// that it does, nor which policies that are.
    ///
    /// Keeps VI-6.
    pub fn of(id: &str, event: &OwnedRecord) -> Option<Self> {
        let mut whole = Violation::of(id, event)?;
        let (outcome, decision) = Outcome::of_event(event)?;
        if outcome == Outcome::Approved {
            whole.policy_ids.clear();
            if !STOPPED.contains(&decision.action) {
                Action::Allow.word().clone_into(&mut whole.action);
            }
        }
        Some(Self {
            event_id: whole.event_id,
            at: whole.at,
            outcome: whole.outcome,
            action: whole.action,
            policy_ids: whole.policy_ids,
            basis: whole.basis,
            mcp_server: whole.mcp_server,
            tool: whole.tool,
            occasion: whole.occasion,
            imported: whole.imported,
        })
    }
}

/// What the subject of a decision said of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ViolationFeedback")]
pub struct Feedback {
    /// In the subject's words.
    pub text: String,
    pub given_at: Timestamp,
}

/// A violation with everything that is known of it.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WholeViolation {
    #[serde(flatten)]
    pub violation: Violation,
    /// By their flat names.
    attributes: Map<String, Value>,
    /// Attributes that the event has and whose values nobody can say.
    missing: Vec<String>,
    /// What its subject said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Feedback>,
}

impl WholeViolation {
    /// Returns an event whole.
    pub fn of(violation: Violation, event: &OwnedRecord, feedback: Option<Feedback>) -> Self {
        let missing = event.missing().iter().map(|field| field.name().to_owned());
        Self {
            violation,
            attributes: as_sent(event.flat()),
            missing: missing.collect(),
            feedback,
        }
    }
}
