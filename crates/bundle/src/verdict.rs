//! What the policies say of one event, as whoever asked hears it. A server and a device put it together by this one function.

use provost_policy::{Action, Event, Family, Field, Finding, Outcome, Reason, Symbols, Transform};
use provost_words::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What the policies say of one event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Verdict {
    /// What has to happen: `allow`, `flag_for_review`, `nudge`, `redact`, `filter`, `require_approval` or `block`.
    action: &'static str,
    /// What that rests on: `policies`, `no_policy_matched` where no policy has a part in it, not even in monitor mode, or `standing` where
    /// the MCP server of the call is denied.
    basis: &'static str,
    /// Whether some policy could not be evaluated; it counted as matched.
    unknown: bool,
    /// Pointers to content that could not be read for certain, for example `/attributes/tool.input`.
    unreadable: Vec<String>,
    /// Pointers to words that name nobody whom the server knows, or several, for example `/attributes/identity.user_id`.
    unresolved: Vec<String>,
    /// The policies whose action this is, sorted; none when nothing matched.
    policy_ids: Vec<String>,
    /// Every policy that has a part in it.
    reasons: Vec<PolicyPart>,
    /// What has to be done to the request before it passes.
    obligations: Vec<Obligation>,
    /// What its author has to be told.
    messages: Vec<String>,
    /// How an approval comes about, when the action is `require_approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// The approval by which the call passes this once, as far as the policies go that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
    /// The MCP server by whose standing it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_server: Option<StandingServer>,
}

/// An MCP server whose standing decides.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct StandingServer {
    /// Its key in the inventory.
    key: String,
    /// How it stands: `denied`. Open.
    standing: &'static str,
}

/// An approval that was used.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Grant {
    id: String,
    /// The request that was approved.
    request_id: String,
    /// The policies that it answers.
    policy_ids: Vec<String>,
}

/// The part of one policy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct PolicyPart {
    policy_id: String,
    /// `content`, `access`, `resource` or `skill_acl`.
    family: &'static str,
    /// What it asks for.
    action: &'static str,
    /// `matched`, `not_allowed` (an allow list that does not cover the subject) or `evaluation_failed`.
    reason: &'static str,
    /// With `evaluation_failed`: pointers to the attributes that it reads and that the event has without a value that anybody can say; of a
    /// Rego module, which reads what it likes, to all of the event. None where something else failed: the module, or the past.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    missing: Vec<String>,
    /// The word of its Rego module.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code: Option<String>,
    /// False for a policy in monitor mode: it is only reported.
    enforced: bool,
    /// Whether its action is the decision.
    decides: bool,
}

/// How a request has to be changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Obligation {
    policy_id: String,
    /// `redaction` or `filter`.
    kind: &'static str,
    /// As authored; of resource policies with `dataTarget`.
    definition: Map<String, Value>,
}

/// How an approval comes about.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Approval {
    /// The policy that asks for it; of several the one that is hardest to satisfy.
    policy_id: String,
    /// `admin_approval` or `self_serve`; of access and resource policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// Whether asking suffices; of content policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_approve_on_request: Option<bool>,
    /// Whether the yes of the person who works is enough. Where it is not, nobody asks that person.
    self_serve: bool,
    /// The request that waits for somebody's yes: one that was there, or that this decision opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Where it stands: `pending`, or `approved`, and kept because something else of the same call does not pass. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// How long it waits, or can be used. Asking again is answered by what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_seconds: Option<i64>,
    /// Why there is no request: `not_a_tool_call`, `subject_unknown`, `call_not_certain`, `call_holds_credential`, `call_too_large`,
    /// `call_is_blocked` or `too_many_open`. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
}

impl Verdict {
    /// Returns what has to happen.
    pub fn action(&self) -> Action {
        // Of a word that is none, which nobody writes, the strongest.
        Action::named(self.action).unwrap_or(Action::Block)
    }

    /// Returns the policies whose action it is, sorted; none when nothing matched.
    pub fn policy_ids(&self) -> &[String] {
        &self.policy_ids
    }

    /// Returns whether nothing is to be said of it: it passes, no policy has a part in it, not even one that is only reported, and
    /// everybody whom it names is known.
    pub fn is_plain(&self) -> bool {
        let nobody = self.policy_ids.is_empty() && self.reasons.is_empty() && self.obligations.is_empty();
        let is_silent = nobody && self.messages.is_empty() && self.approval.is_none() && !self.unknown;
        self.action() == Action::Allow && is_silent && self.unresolved.is_empty()
    }

    /// Returns whether it names somebody of whom nobody here can say who it is.
    pub fn names_unknown(&self) -> bool {
        !self.unresolved.is_empty()
    }

    /// Returns whether some policy could not be evaluated, and so counted as matched.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// Says by which approval the call passes, as far as these policies go.
    pub fn grant(&mut self, id: &str, request_id: &str, policy_ids: Vec<String>) {
        // Its policies have no part in the decision any more, and had one.
        self.basis = "policies";
        self.grant = Some(Grant {
            id: id.to_owned(),
            request_id: request_id.to_owned(),
            policy_ids,
        });
    }

    /// Has it be the refusal of a call of an MCP server that is denied; the outcome that it says was refused as such.
    ///
    /// Keeps LJ-12.
    pub fn deny(&mut self, key: &str) {
        self.action = Action::Block.word();
        self.basis = "standing";
        self.obligations.clear();
        self.approval = None;
        self.messages.insert(
            0,
            format!("the MCP server {key} is denied in the inventory of this organization"),
        );
        self.mcp_server = Some(StandingServer {
            key: key.to_owned(),
            standing: "denied",
        });
    }

    /// Says why a call that is refused by the standing of a server may be for that one, where nobody can say for which it is.
    pub fn doubt_server(&mut self, key: &str, why: &str) {
        let is_by_it = self.mcp_server.as_ref().is_some_and(|server| server.key == key);
        if is_by_it && let Some(first) = self.messages.first_mut() {
            *first = format!(
                "for which MCP server it is cannot be said: of the client's configuration, {why}; {key} is denied in the inventory of this \
                 organization, and may be meant (`provost agent scan --print` names the file)"
            );
        }
    }

    /// Returns the key of the server by whose standing it is a refusal.
    pub fn denied_server(&self) -> Option<&str> {
        self.mcp_server.as_ref().map(|server| server.key.as_str())
    }

    /// Returns whether it is a refusal by the standing of an MCP server.
    pub fn is_by_standing(&self) -> bool {
        self.mcp_server.is_some()
    }

    /// Says under which request the call waits, where it stands and how long it waits; nothing where no approval is asked for.
    pub fn wait(&mut self, request_id: &str, state: &'static str, seconds: i64) {
        if let Some(approval) = &mut self.approval {
            approval.request_id = Some(request_id.to_owned());
            approval.state = Some(state);
            approval.waits_seconds = Some(seconds);
        }
    }

    /// Says why there is no request for the approval that is asked for.
    pub fn refuse(&mut self, why: &'static str) {
        if let Some(approval) = &mut self.approval {
            approval.refused = Some(why);
        }
    }

    /// Adds attributes whose words name somebody of whom nobody here can say who it is.
    pub(crate) fn leave_open(&mut self, fields: &[Field]) {
        self.unresolved.extend(pointers(fields));
        self.unresolved.sort_unstable();
        self.unresolved.dedup();
    }

    /// Returns what is said of an outcome of an event.
    ///
    /// Errors: as [`Self::of`].
    pub fn of_event(outcome: &Outcome, event: &Event, symbols: &Symbols) -> Result<Self> {
        let missing = event
            .values()
            .iter()
            .filter(|(_, value)| *value == provost_policy::Value::Missing);
        let missing: Vec<Field> = missing.map(|(field, _)| *field).collect();
        Self::of(
            outcome,
            &event.unreadable(symbols),
            &event.unresolved(symbols),
            &missing,
        )
    }

    /// Returns what is said of an outcome, and of attributes of the event that could not be read, not be resolved, or are missing.
    ///
    /// Errors: `Internal` when a policy's transformation is no object, which its contract excludes.
    fn of(outcome: &Outcome, unreadable: &[Field], unresolved: &[Field], missing: &[Field]) -> Result<Self> {
        let passes = outcome.action != Action::Block;
        let enforced = || outcome.findings.iter().filter(|finding| finding.enforced);
        let mut obligations = Vec::new();
        for finding in enforced().filter(|_| passes) {
            obligations.extend(obligation(finding)?);
        }
        let mut messages: Vec<String> = Vec::new();
        // What is blocked is not also nudged.
        for finding in enforced().filter(|finding| passes || finding.decides) {
            let message = finding.policy.message();
            if let Some(message) = message.filter(|message| !messages.iter().any(|told| told == message)) {
                messages.push(message.to_owned());
            }
        }
        Ok(Self {
            action: outcome.action.word(),
            // What a device was not told of is unknown without a finding.
            basis: if outcome.findings.is_empty() && !outcome.unknown {
                "no_policy_matched"
            } else {
                "policies"
            },
            unknown: outcome.unknown,
            unreadable: pointers(unreadable),
            unresolved: pointers(unresolved),
            policy_ids: deciding(outcome),
            reasons: outcome
                .findings
                .iter()
                .map(|finding| given(finding, missing))
                .collect(),
            obligations,
            messages,
            approval: approval(outcome),
            grant: None,
            mcp_server: None,
        })
    }
}

/// Returns the places of attributes. No name of an attribute has a character that a pointer escapes.
fn pointers(fields: &[Field]) -> Vec<String> {
    let pointer = |field: &Field| format!("/attributes/{}", field.name());
    fields.iter().map(pointer).collect()
}

/// Returns the ids of the policies whose action the decision is, sorted, once each.
pub fn deciding(outcome: &Outcome) -> Vec<String> {
    let mut ids: Vec<String> = outcome.deciding().map(str::to_owned).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn given(finding: &Finding, missing: &[Field]) -> PolicyPart {
    let read = finding.policy.fields();
    let is_read = |field: &&Field| finding.policy.is_rego() || read.contains(field);
    let missing: Vec<Field> = match finding.reason {
        Reason::EvaluationFailed => missing.iter().filter(is_read).copied().collect(),
        Reason::Matched | Reason::NotAllowed => Vec::new(),
    };
    PolicyPart {
        policy_id: finding.policy.id().to_owned(),
        family: finding.policy.family().word(),
        action: finding.action.word(),
        reason: match finding.reason {
            Reason::Matched => "matched",
            Reason::NotAllowed => "not_allowed",
            Reason::EvaluationFailed => "evaluation_failed",
        },
        missing: pointers(&missing),
        reason_code: finding.reason_code.clone(),
        enforced: finding.enforced,
        decides: finding.decides,
    }
}

fn obligation(finding: &Finding) -> Result<Option<Obligation>> {
    let (kind, authored) = match finding.policy.transform() {
        None => return Ok(None),
        Some(Transform::Redaction(authored)) => ("redaction", authored),
        Some(Transform::Filter(authored)) => ("filter", authored),
    };
    let mut definition = match authored {
        Value::Object(members) => members.clone(),
        _ => return Err(Error::internal("a transformation that is no object")),
    };
    if finding.policy.family() == Family::Resource
        && let Some(target) = finding.policy.authored().get("dataTarget")
    {
        definition.insert("dataTarget".to_owned(), target.clone());
    }
    Ok(Some(Obligation {
        policy_id: finding.policy.id().to_owned(),
        kind,
        definition,
    }))
}

fn approval(outcome: &Outcome) -> Option<Approval> {
    if outcome.action != Action::RequireApproval {
        return None;
    }
    let deciding = outcome.findings.iter().filter(|finding| finding.decides);
    // Of several the hardest: one person's word is not enough where another policy wants an administrator's.
    deciding
        .map(asked)
        .min_by_key(|asked| (asked.self_serve, asked.policy_id.clone()))
}

/// Returns what a policy asks for.
fn asked(finding: &Finding) -> Approval {
    let authored = finding.policy.authored().get("approval");
    let mode = authored.and_then(|authored| authored.get("mode")?.as_str().map(str::to_owned));
    let auto = authored.and_then(|authored| authored.get("autoApproveOnRequest")?.as_bool());
    // Source: client contract §3.6: `admin_approval` is what an access or resource policy means by nothing.
    let default = || (finding.policy.family() != Family::Content).then(|| "admin_approval".to_owned());
    let mode = mode.or_else(default);
    Approval {
        policy_id: finding.policy.id().to_owned(),
        self_serve: auto == Some(true) || mode.as_deref() == Some("self_serve"),
        mode,
        auto_approve_on_request: auto,
        request_id: None,
        state: None,
        waits_seconds: None,
        refused: None,
    }
}

/// Says whether a finding decides, and asks for the yes of somebody else than the person who works.
pub fn wants_somebody(finding: &Finding) -> bool {
    finding.decides && finding.action == Action::RequireApproval && !asked(finding).self_serve
}
