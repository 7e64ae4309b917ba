//! What was decided, by which policies, and why.

use super::{PolicySet, Rule};
use crate::action::Action;
use crate::definition::{Definition, Transform};
use crate::truth::Truth;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why a policy has a part in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It matched.
    Matched,
    /// It is an allow list that names the skill or tool, and no such list covers the subject.
    NotAllowed,
    /// Whether it matches could not be said; it counts as matched.
    EvaluationFailed,
}

/// The part of one policy.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The policy.
    pub policy: Arc<Definition>,
    /// What it asks for.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Its author's word for why; of Rego modules.
    pub reason_code: Option<String>,
    /// Whether it counts; not in monitor mode.
    pub enforced: bool,
    /// Whether its action is the decision.
    pub decides: bool,
}

/// A decision.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What happens.
    pub action: Action,
    /// Whether an enforced policy could not be evaluated: a backtest counts the event as unknown.
    pub unknown: bool,
    /// Every policy that has a part, by family and id.
    pub findings: Vec<Finding>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            action: Action::Allow,
            unknown: false,
            findings: Vec::new(),
        }
    }
}

impl Outcome {
    // INVARIANT PS-1: unknown is added like true, with the rule's own action.
    pub(super) fn add(&mut self, set: &PolicySet, rule: &Rule, truth: Truth, reason_code: Option<&str>) {
        let is_known = truth == Truth::True;
        if !rule.monitored {
            self.action = self.action.max(rule.action);
            self.unknown |= !is_known;
        }
        for at in &rule.policies {
            self.findings.push(Finding {
                policy: Arc::clone(&set.policies[*at as usize]),
                action: rule.action,
                reason: if is_known {
                    rule.reason
                } else {
                    Reason::EvaluationFailed
                },
                reason_code: reason_code.map(str::to_owned),
                enforced: !rule.monitored,
                decides: false,
            });
        }
    }

    pub(super) fn finish(&mut self) {
        for finding in &mut self.findings {
            finding.decides = finding.enforced && finding.action == self.action;
        }
    }

    /// Makes the parts of some policies ones that nobody could evaluate: their own actions count, as those of what matched.
    pub fn doubt(&mut self, is_doubted: impl Fn(&Definition) -> bool) {
        for finding in &mut self.findings {
            if is_doubted(&finding.policy) && finding.reason != Reason::NotAllowed {
                finding.reason = Reason::EvaluationFailed;
                self.unknown |= finding.enforced;
            }
        }
    }

    /// Raises the action to one that nobody could evaluate, of policies that are not among the findings.
    pub fn raise(&mut self, action: Action) {
        self.unknown = true;
        self.action = self.action.max(action);
        self.finish();
    }

    /// Makes it a refusal that rests on none of the policies: what asks for less decides no longer.
    pub fn refuse(&mut self) {
        self.action = Action::Block;
        self.finish();
    }

    /// Adds what another judgement of the same event by the same policies says, that knew of another past: each policy has the part that it
    /// has in one of the two, so that nothing is weaker than either says.
    pub fn join(&mut self, other: Self) {
        for finding in other.findings {
            let place = (finding.policy.family(), finding.policy.id());
            let is_known = self.findings.iter().any(|known| {
                (known.policy.family(), known.policy.id()) == place && known.action == finding.action
            });
            if !is_known {
                self.findings.push(finding);
            }
        }
        self.findings
            .sort_by(|a, b| (a.policy.family(), a.policy.id()).cmp(&(b.policy.family(), b.policy.id())));
        self.action = self.action.max(other.action);
        self.unknown |= other.unknown;
        self.finish();
    }

    /// Returns the ids of the policies whose action is the decision; none when nothing matched.
    pub fn deciding(&self) -> impl Iterator<Item = &str> {
        self.findings.iter().filter(|f| f.decides).map(|f| f.policy.id())
    }

    /// Returns the decision of all other policies than those whose findings are answered.
    ///
    /// Somebody said yes to what those ask for; what the others say stands as if those were not there.
    #[must_use]
    pub fn without(&self, is_answered: impl Fn(&Finding) -> bool) -> Self {
        let mut other = Self::default();
        other.findings.extend(
            self.findings
                .iter()
                .filter(|finding| !is_answered(finding))
                .cloned(),
        );
        for finding in other.findings.iter().filter(|finding| finding.enforced) {
            other.action = other.action.max(finding.action);
            other.unknown |= finding.reason == Reason::EvaluationFailed;
        }
        other.finish();
        other
    }

    /// Returns how a request that passes has to be changed, by whom; nothing when it is blocked.
    pub fn obligations(&self) -> impl Iterator<Item = (&str, &Transform)> {
        let is_blocked = self.action == Action::Block;
        let enforced = self.findings.iter().filter(move |f| f.enforced && !is_blocked);
        enforced.filter_map(|f| Some((f.policy.id(), f.policy.transform()?)))
    }
}
