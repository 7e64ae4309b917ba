//! A policy-set version: all enabled policies of an organization at one moment, compiled once, never changed.
//!
//! How the answers of several policies combine (D9.10):
//!
//! - The strongest action of all that match wins: see `Action`. Nothing matched is `allow`.
//! - A policy whose answer is unknown counts as matched, with its own action, as `evaluation_failed`; the outcome
//!   says `unknown`, which is what a backtest counts.
//! - A policy in monitor mode is reported and changes neither the action nor `unknown`.
//! - An exception that holds suppresses its own policy. One whose answer is unknown does not.
//! - ACLs: where an allow list names the skill, or the server (and tool), everybody whom none of the lists that
//!   name it covers is blocked, as `not_allowed`. A block list blocks whom it covers, allowed or not.
//!
//! - A name that means several records is judged as each of them: where all agree, that is a policy's answer, else it is
//!   unknown. A word that no record has stands for itself.
//!
//! INVARIANT PS-1: a failed evaluation never makes an action weaker.
//! INVARIANT PS-2: two policy-set versions have the same digest iff they hold the same enabled definitions.
//!
//! Absent on purpose: numbers of versions and when one became live (the server's).

mod explain;
mod index;
mod outcome;
mod program;

pub use explain::{Explanation, Part};
pub use outcome::{Finding, Outcome, Reason};
pub(crate) use program::{HistoryQuestion, Node, NodeId, Program, Question, Test};

use crate::action::Action;
use crate::contract::POLICY_SCHEMA_VERSION;
use crate::definition::{Definition, Logic, SCOPE_LISTS};
use crate::digest::document_sha256;
use crate::eval::{Ahead, ModuleCalls, NameChoice, Row, SubjectStates, ahead};
use crate::event::Event;
use crate::family::{Family, Occasion};
use crate::register::name_key;
use crate::rego::{InProcess, Runner};
use crate::symbols::Symbols;
use crate::truth::Truth;
use index::Index;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Two policies of one family have the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicatePolicy {
    /// The family.
    pub family: Family,
    /// The id.
    pub id: String,
}

impl fmt::Display for DuplicatePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two {} policies have the id {}", self.family.word(), self.id)
    }
}

impl std::error::Error for DuplicatePolicy {}

/// A policy-set version.
#[derive(Debug)]
pub struct PolicySet {
    policies: Vec<Arc<Definition>>,
    digest: String,
    pub(crate) program: Program,
    pub(crate) rules: Vec<Rule>,
    index: Index,
}

/// Something that gives an action when it is so.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Whose rule it is; several for those whom no allow list covers.
    pub policies: Vec<u32>,
    pub action: Action,
    pub reason: Reason,
    pub monitored: bool,
    pub verdict: NodeId,
}

impl PolicySet {
    /// Returns the version that holds the enabled ones of these definitions.
    ///
    /// Errors: two of one family have the same id.
    pub fn new(definitions: impl IntoIterator<Item = Arc<Definition>>) -> Result<Self, DuplicatePolicy> {
        let mut policies: Vec<Arc<Definition>> = definitions.into_iter().filter(|d| d.is_enabled()).collect();
        policies.sort_by(|a, b| (a.family(), a.id()).cmp(&(b.family(), b.id())));
        for pair in policies.windows(2) {
            if pair[0].family() == pair[1].family() && pair[0].id() == pair[1].id() {
                return Err(DuplicatePolicy {
                    family: pair[0].family(),
                    id: pair[0].id().to_owned(),
                });
            }
        }
        let digest = set_digest(policies.iter().map(|p| (p.family(), p.id(), p.sha256())));
        let mut program = Program::default();
        let mut rules = Vec::new();
        let mut occasions = Vec::new();
        for (at, policy) in policies.iter().enumerate() {
            rules.push(Rule {
                policies: vec![u32::try_from(at).unwrap_or(u32::MAX)],
                action: policy.action(),
                reason: Reason::Matched,
                monitored: policy.is_monitored(),
                verdict: verdict(&mut program, policy),
            });
            occasions.push(policy.rule.occasions);
        }
        for (bits, rule) in not_allowed(&mut program, &policies) {
            rules.push(rule);
            occasions.push(bits);
        }
        let entries: Vec<(u16, NodeId)> = occasions
            .into_iter()
            .zip(rules.iter().map(|rule| rule.verdict))
            .collect();
        let index = Index::new(&program, &entries);
        Ok(Self {
            policies,
            digest,
            program,
            rules,
            index,
        })
    }

    /// Returns the policies that take part, by family and id.
    pub fn policies(&self) -> &[Arc<Definition>] {
        &self.policies
    }

    /// Returns whether this very definition takes part.
    pub fn holds(&self, policy: &Definition) -> bool {
        let place = (policy.family(), policy.id());
        let found = self
            .policies
            .binary_search_by(|own| (own.family(), own.id()).cmp(&place));
        found.is_ok_and(|at| self.policies[at].sha256() == policy.sha256())
    }

    /// Returns the digest of the version: 64 hexadecimal digits over families, ids and definitions.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns whether some decision depends on earlier events of the subject.
    pub fn has_history(&self) -> bool {
        !self.program.trackers.is_empty()
    }

    /// Returns how long an event can matter to a later decision; 0 without history conditions. Units: milliseconds.
    ///
    /// A history condition inside another one asks about the past of a past event, so that times add up.
    pub fn reach_ms(&self) -> i64 {
        self.program.reach_ms()
    }

    /// Returns whether a Rego module decides somewhere.
    pub fn has_rego(&self) -> bool {
        self.policies.iter().any(|policy| policy.is_rego())
    }

    /// Returns the decision on one event; `chronicle` knows the earlier ones (an empty one if there are none).
    ///
    /// Cost: the rules that can match by occasion, tool, server, resource or subject, not all.
    /// Source: D9.10.
    pub fn judge(&self, event: &Event, symbols: &Symbols, chronicle: &SubjectStates) -> Outcome {
        self.judge_within(event, symbols, chronicle, &InProcess, &|| true, None)
    }

    /// Returns what the modules of this set say of some events, asked together; for [`Self::judge_within`].
    pub fn ask_ahead(
        &self,
        events: &[Event],
        symbols: &Symbols,
        modules: &dyn Runner,
        has_time: &dyn Fn() -> bool,
    ) -> Vec<Ahead> {
        let asking = ModuleCalls {
            runner: modules,
            has_time,
        };
        let candidates = |event: &Event| {
            let all = self.index.candidates(event, symbols).into_iter();
            all.map(|at| self.rules[at as usize].verdict).collect()
        };
        ahead(self, events, symbols, &candidates, asking)
    }

    /// As [`Self::judge`], with Rego modules run by somebody, and only while there is time; one that is not asked counts as
    /// matched.
    pub fn judge_within(
        &self,
        event: &Event,
        symbols: &Symbols,
        chronicle: &SubjectStates,
        modules: &dyn Runner,
        has_time: &dyn Fn() -> bool,
        ahead: Option<&Ahead>,
    ) -> Outcome {
        let asking = ModuleCalls {
            runner: modules,
            has_time,
        };
        let row = Row::within(self, event, symbols, chronicle, asking, ahead);
        self.outcome(&row, event, symbols)
    }

    /// Returns the decision where nothing is known of the past and no module is asked: what depends on either is unknown, and so counts
    /// as matched.
    ///
    /// What is known of a policy here is so whatever the past was and modules say.
    pub fn judge_unaided(&self, event: &Event, symbols: &Symbols) -> Outcome {
        let nothing = SubjectStates::new();
        let unknown = |_: NodeId, _: Option<&NameChoice<'_>>| Truth::Unknown;
        let row = Row::told(self, event, symbols, &unknown, &nothing);
        self.outcome(&row, event, symbols)
    }

    fn outcome(&self, row: &Row<'_>, event: &Event, symbols: &Symbols) -> Outcome {
        let mut outcome = Outcome::default();
        for at in self.index.candidates(event, symbols) {
            let rule = &self.rules[at as usize];
            let truth = row.verdict(rule.verdict);
            if truth != Truth::False {
                outcome.add(self, rule, truth, row.reason_code().as_deref());
            }
        }
        outcome.finish();
        outcome
    }

    /// Returns how many rules are asked for an event; the cost of `judge`.
    pub fn candidates(&self, event: &Event, symbols: &Symbols) -> usize {
        self.index.candidates(event, symbols).len()
    }
}

/// Returns the digest of the version that holds these policies, each by family, id and its definition's digest, in any
/// order: what [`PolicySet::digest`] of the compiled version is, without compiling it.
pub fn set_digest<'a>(policies: impl IntoIterator<Item = (Family, &'a str, &'a str)>) -> String {
    // INVARIANT PS-2: the digest is over the sorted list of families, ids and digests of definitions.
    let mut list: Vec<(Family, &str, &str)> = policies.into_iter().collect();
    list.sort_unstable();
    let list: Vec<_> = list
        .into_iter()
        .map(|(family, id, sha256)| [family.word(), id, sha256])
        .collect();
    document_sha256(&serde_json::json!({"schema": POLICY_SCHEMA_VERSION, "policies": list}))
}

/// Returns the node that is so where a policy matches.
fn verdict(program: &mut Program, policy: &Definition) -> NodeId {
    let rule = &policy.rule;
    let mut parts = vec![program.occasions(rule.occasions)];
    parts.extend(scope(program, policy));
    let guard = program.all(parts.clone());
    parts.push(match &rule.logic {
        Logic::Native(condition) => program.condition(policy.family(), condition),
        Logic::Rego(module) => program.module(module, guard),
    });
    let mut exceptions = Vec::new();
    for exception in &rule.exceptions {
        let condition = program.condition(policy.family(), &exception.condition);
        let node = match exception.expires_at_ms {
            Some(at_ms) => {
                let before = program.before(at_ms);
                program.all(vec![before, condition])
            }
            None => condition,
        };
        exceptions.push(node);
    }
    if !exceptions.is_empty() {
        let any = program.any(exceptions);
        parts.push(program.not(any));
    }
    program.all(parts)
}

/// Returns the nodes that all are so where a policy's scope covers the event.
fn scope(program: &mut Program, policy: &Definition) -> Vec<NodeId> {
    let lists = scope_lists(program, policy).into_iter();
    let (who, what): (Vec<_>, Vec<_>) = lists.partition(|(member, _)| WHO.contains(member));
    let node = |(_, node): (&'static str, NodeId)| node;
    let who: Vec<NodeId> = who.into_iter().map(node).collect();
    let mut parts: Vec<NodeId> = what.into_iter().map(node).collect();
    if !who.is_empty() {
        parts.insert(0, program.any(who));
    }
    parts
}

/// The lists of a scope of which one has to hold; each of the others has to.
const WHO: [&str; 3] = ["users", "groups", "serviceAccounts"];

/// Returns the lists of a policy's scope that name something, by their members.
fn scope_lists(program: &mut Program, policy: &Definition) -> Vec<(&'static str, NodeId)> {
    let scope = policy.scope();
    let mut nodes = Vec::new();
    for (member, field) in SCOPE_LISTS {
        let names = scope.named(field).iter();
        let names: Vec<Box<str>> = names.map(|r| r.name.as_str().into()).collect();
        if !names.is_empty() {
            nodes.push((member, program.names(field, names)));
        }
    }
    nodes
}

/// Returns a rule for each skill or server that an allow list names: it blocks whom no such list covers.
fn not_allowed(program: &mut Program, policies: &[Arc<Definition>]) -> Vec<(u16, Rule)> {
    let mut lists: BTreeMap<(Family, Cow<'_, str>), Vec<usize>> = BTreeMap::new();
    for (at, policy) in policies.iter().enumerate() {
        if let Some(acl) = policy.acl().filter(|acl| acl.allows) {
            // Lists of one thing are one list, however each of them spells its name.
            let names = name_key(acl.field, &acl.names);
            lists.entry((policy.family(), names)).or_default().push(at);
        }
    }
    let mut rules = Vec::new();
    for ((family, _), members) in lists {
        let occasions = match family {
            Family::Content => Occasion::PreTool.bit(),
            family => family.occasions(),
        };
        let (mut named, mut covered) = (Vec::new(), Vec::new());
        for at in &members {
            let policy = &policies[*at];
            let Logic::Native(condition) = &policy.rule.logic else {
                continue;
            };
            let naming = program.condition(family, condition);
            named.push(naming);
            let mut parts = vec![naming];
            parts.extend(scope(program, policy));
            covered.push(program.all(parts));
        }
        let covered = program.any(covered);
        let parts = vec![
            program.occasions(occasions),
            program.any(named),
            program.not(covered),
        ];
        rules.push((
            occasions,
            Rule {
                policies: members
                    .iter()
                    .map(|at| u32::try_from(*at).unwrap_or(u32::MAX))
                    .collect(),
                action: Action::Block,
                reason: Reason::NotAllowed,
                monitored: false,
                verdict: program.all(parts),
            },
        ));
    }
    rules
}
