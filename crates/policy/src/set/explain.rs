//! Why a policy matches an event, or does not: the answer of each of its parts, by the evaluator that decides.
//!
//! Absent on purpose: an evaluator of its own, which would agree with the other one until it does not; and what stands
//! below a condition on the past, which is asked of other events.

use super::index::Index;
use super::{NodeId, PolicySet, Program, scope_lists};
use crate::condition::Condition;
use crate::definition::{Definition, Logic};
use crate::eval::{ModuleCalls, Row, SubjectStates};
use crate::event::Event;
use crate::family::Family;
use crate::rego::Runner;
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::sync::Arc;

/// LIMIT: parts of a policy that are asked. Ours: a person reads them.
const PARTS: usize = 512;

/// A part of a policy, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// A JSON Pointer into the definition.
    pub path: String,
    /// Whether it holds of the event.
    pub truth: Truth,
}

/// A policy, taken apart.
#[derive(Debug)]
pub struct Explanation {
    set: PolicySet,
    parts: Vec<(String, NodeId)>,
}

impl Explanation {
    /// Takes a policy apart.
    pub fn of(policy: &Arc<Definition>) -> Self {
        let mut program = Program::default();
        let mut parts = Vec::new();
        let rule = &policy.rule;
        let (occasions, scope) = match policy.family() {
            Family::Content => (Some("/evaluateOn"), "/appliesTo"),
            Family::Access => (Some("/enforcementSurfaces"), "/appliesTo"),
            Family::Resource => (None, "/appliesTo"),
            Family::SkillAcl => (None, "/subjects"),
        };
        if let Some(path) = occasions {
            parts.push((path.to_owned(), program.occasions(rule.occasions)));
        }
        for (member, node) in scope_lists(&mut program, policy) {
            parts.push((format!("{scope}/{member}"), node));
        }
        match &rule.logic {
            Logic::Native(condition) => {
                let path = match policy.family() {
                    Family::SkillAcl => "/skillId",
                    _ => "/conditions",
                };
                walk(&mut program, policy.family(), condition, path, &mut parts);
            }
            Logic::Rego(module) => {
                let always = program.constant(Truth::True);
                parts.push(("/logic/module".to_owned(), program.module(module, always)));
            }
        }
        // The one without an id is the first.
        let has_bare = policy
            .authored()
            .get("except")
            .is_some_and(|except| !except.is_null());
        for (at, exception) in rule.exceptions.iter().enumerate() {
            let path = match at.checked_sub(usize::from(has_bare)) {
                None => "/except".to_owned(),
                Some(at) => format!("/exceptions/{at}/conditions"),
            };
            walk(
                &mut program,
                policy.family(),
                &exception.condition,
                &path,
                &mut parts,
            );
        }
        parts.truncate(PARTS);
        let index = Index::new(&program, &[]);
        Self {
            set: PolicySet {
                policies: vec![Arc::clone(policy)],
                digest: String::new(),
                program,
                rules: Vec::new(),
                index,
            },
            parts,
        }
    }

    /// Returns each part with its answer, in the order of the definition; `earlier` are the events before, oldest first.
    pub fn parts(
        &self,
        event: &Event,
        earlier: &[Event],
        symbols: &Symbols,
        runner: &dyn Runner,
        has_time: &dyn Fn() -> bool,
    ) -> Vec<Part> {
        let mut chronicle = SubjectStates::new();
        for before in earlier {
            chronicle.observe(&self.set, before, symbols);
        }
        let asking = ModuleCalls { runner, has_time };
        let row = Row::within(&self.set, event, symbols, &chronicle, asking, None);
        let parts = self.parts.iter();
        parts
            .map(|(path, node)| Part {
                path: path.clone(),
                truth: row.verdict(*node),
            })
            .collect()
    }
}

/// Adds a condition and everything below it that is asked of the same event.
fn walk(
    program: &mut Program,
    family: Family,
    condition: &Condition,
    path: &str,
    parts: &mut Vec<(String, NodeId)>,
) {
    parts.push((path.to_owned(), program.condition(family, condition)));
    let (word, nodes) = match condition {
        Condition::All(nodes) => ("all", nodes),
        Condition::Any(nodes) => ("any", nodes),
        Condition::Not(node) => return walk(program, family, node, &format!("{path}/not"), parts),
        Condition::Is(_) | Condition::Past(_) => return,
    };
    for (at, node) in nodes.iter().enumerate() {
        walk(program, family, node, &format!("{path}/{word}/{at}"), parts);
    }
}
