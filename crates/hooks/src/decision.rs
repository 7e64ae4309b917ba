//! What was decided about the events of one question: the strongest of all.

use serde::Deserialize;

/// On what a refusal rests that is of no policy.
const STANDING: &str = "standing";

/// What has to happen, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Nothing.
    Allow,
    /// Nothing that the person notices; it is recorded.
    FlagForReview,
    /// The person is told something.
    Nudge,
    /// Something is taken out before it passes.
    Redact,
    /// Some of it does not pass.
    Filter,
    /// Somebody has to say yes.
    RequireApproval,
    /// It does not happen.
    Block,
}

impl Action {
    /// Every action, the weakest first.
    pub const ALL: [Self; 7] = [
        Self::Allow,
        Self::FlagForReview,
        Self::Nudge,
        Self::Redact,
        Self::Filter,
        Self::RequireApproval,
        Self::Block,
    ];

    /// Returns the word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::FlagForReview => "flag_for_review",
            Self::Nudge => "nudge",
            Self::Redact => "redact",
            Self::Filter => "filter",
            Self::RequireApproval => "require_approval",
            Self::Block => "block",
        }
    }

    /// Returns the action of a word; a word that this version does not know is the strongest.
    fn named(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|action| action.word() == word).unwrap_or(Self::Block)
    }
}

/// On what a decision rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// On policies.
    Policies,
    /// On the standing of an MCP server, whatever policies say.
    Standing,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The strongest action of all events.
    pub action: Action,
    /// The policies whose action it is.
    pub policies: Vec<String>,
    /// What the person is told.
    pub messages: Vec<String>,
    /// Whether a policy counts as matched because it could not be evaluated.
    pub unknown: bool,
    /// Whether the person's own yes is the approval that is required.
    pub self_serve: bool,
    /// The requests that wait for somebody else's yes.
    pub requests: Vec<String>,
    /// Why there is no request where somebody else's yes is required, in the server's words.
    pub refusals: Vec<String>,
    /// On what it rests.
    pub basis: Basis,
    /// Whether the word of the user names nobody whom the server knows, or several.
    pub user_unresolved: bool,
}

#[derive(Deserialize)]
struct Reply {
    decisions: Vec<One>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    action: String,
    unknown: bool,
    policy_ids: Vec<String>,
    messages: Vec<String>,
    #[serde(default)]
    unresolved: Vec<String>,
    #[serde(default)]
    basis: String,
    approval: Option<Approval>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Approval {
    self_serve: Option<bool>,
    request_id: Option<String>,
    refused: Option<String>,
}

impl Approval {
    /// The server alone says whether the person's own yes is enough: one that says nothing about it means somebody else. What
    /// waits for somebody, or was refused to, is never asked of the person.
    fn is_self_serve(&self) -> bool {
        self.self_serve == Some(true) && self.request_id.is_none() && self.refused.is_none()
    }
}

impl Decision {
    /// Returns what the answer of a server says about this many events.
    ///
    /// Errors: it is no such answer.
    pub fn read(answer: &[u8], events: usize) -> Result<Self, &'static str> {
        let told: Reply =
            serde_json::from_slice(answer).map_err(|_| "the answer is not one of a Provost server")?;
        if told.decisions.len() != events || events == 0 {
            return Err("the answer does not decide about every event");
        }
        let actions = told.decisions.iter().map(|one| Action::named(&one.action));
        let action = actions.max().unwrap_or(Action::Block);
        let deciding = || {
            told.decisions
                .iter()
                .filter(|one| Action::named(&one.action) == action)
        };
        let once = |mut all: Vec<String>, text: &String| {
            if !all.contains(text) {
                all.push(text.clone());
            }
            all
        };
        // Where something is refused, what another event would have been told is not said as well.
        let told_of: Vec<&One> = if action == Action::Block {
            deciding().collect()
        } else {
            told.decisions.iter().collect()
        };
        Ok(Self {
            action,
            policies: deciding().flat_map(|one| &one.policy_ids).fold(Vec::new(), once),
            messages: told_of
                .iter()
                .flat_map(|one| &one.messages)
                .fold(Vec::new(), once),
            unknown: deciding().any(|one| one.unknown),
            self_serve: action == Action::RequireApproval
                && deciding().all(|one| one.approval.as_ref().is_some_and(Approval::is_self_serve)),
            requests: deciding()
                .filter_map(|one| one.approval.as_ref()?.request_id.as_ref())
                .fold(Vec::new(), once),
            refusals: deciding()
                .filter_map(|one| one.approval.as_ref()?.refused.as_ref())
                .fold(Vec::new(), once),
            basis: if deciding().any(|one| one.basis == STANDING) {
                Basis::Standing
            } else {
                Basis::Policies
            },
            user_unresolved: told
                .decisions
                .iter()
                .flat_map(|one| &one.unresolved)
                .any(|pointer| pointer == "/attributes/identity.user_id"),
        })
    }

    /// Returns what a person reads: which policy, and its author's words.
    pub(crate) fn said(&self) -> String {
        let policies = match self.policies.as_slice() {
            [] if self.basis == Basis::Standing => "the standing of an MCP server".to_owned(),
            [] => "a policy".to_owned(),
            [one] => format!("the policy {one}"),
            several => format!("the policies {}", several.join(", ")),
        };
        let unknown = if self.unknown {
            " (it could not be evaluated, and counts as matched)"
        } else {
            ""
        };
        let words = if self.messages.is_empty() {
            String::new()
        } else {
            format!(": {}", self.messages.join(" "))
        };
        format!("{policies}{unknown}{words}")
    }
}
