//! Policy definitions: what an author writes, checked against every rule of the client contract.
//!
//! ```text
//!   JSON ── Definition::read ──► Definition (typed, compiled module, digest)      or every violation with its place
//!                                    │ authored(): the same JSON value, member for member
//! ```
//!
//! Source: client contract §3.4 to §3.11.
//!
//! INVARIANT PD-2: a definition is given back as the same JSON value; what is read from it never replaces it.
//!
//! Absent on purpose: revisions, owners, references from names to ids (the server's), and MCP ACLs as a family:
//! clients write them as content policies of one form, which `Definition::acl` recognizes.

pub(crate) mod access;
mod acl;
mod advice;
pub(crate) mod content;
mod exception;
pub(crate) mod head;
mod logic;
mod reach;
pub(crate) mod resource;
mod scope;
pub(crate) mod skill_acl;
pub(crate) mod transform;

pub use acl::Acl;
pub use advice::Advice;
pub use scope::{Reference, Scope};
pub use transform::Transform;

pub(crate) use exception::Exception;
pub(crate) use logic::Logic;
pub use scope::LISTS as SCOPE_LISTS;

use crate::action::Action;
use crate::catalogue::Field;
use crate::condition::Condition;
use crate::digest::document_sha256;
use crate::family::{Family, Occasion};
use crate::read::Object;
use crate::violation::Violations;
use serde_json::Value;

/// The members of a document that verdicts say beside what was read from it.
const SAID: [&str; 2] = ["approval", "dataTarget"];

/// A policy definition that keeps every rule.
#[derive(Debug)]
pub struct Definition {
    authored: Value,
    sha256: String,
    family: Family,
    id: String,
    enabled: bool,
    acl: Option<Acl>,
    pub(crate) rule: Rule,
}

/// What of a definition decides.
#[derive(Debug)]
pub(crate) struct Rule {
    pub action: Action,
    /// Bits of `Occasion`.
    pub occasions: u16,
    pub scope: Scope,
    pub logic: Logic,
    pub exceptions: Vec<Exception>,
    /// The decision is reported and not enforced.
    pub monitored: bool,
    pub transform: Option<Transform>,
    pub message: Option<String>,
}

impl Definition {
    /// Returns the definition that a document spells.
    ///
    /// Errors: every broken rule, each with a JSON Pointer into the document.
    /// Source: client contract §3.4 to §3.11.
    pub fn read(family: Family, document: &Value) -> Result<Self, Violations> {
        let mut faults = Violations::default();
        let read = Object::of(document, "", &mut faults).and_then(|object| {
            let id = head::id(object, &mut faults);
            let enabled = object.boolean("enabled", &mut faults).unwrap_or(true);
            let rule = match family {
                Family::Content => content::read(object, enabled, &mut faults),
                Family::Access => access::read(object, &mut faults),
                Family::Resource => resource::read(object, enabled, &mut faults),
                Family::SkillAcl => skill_acl::read(object, &mut faults),
            };
            Some((id?.to_owned(), enabled, rule?))
        });
        let (id, enabled, rule) = faults.or(read)?;
        Ok(Self {
            // INVARIANT PD-2: the document itself is kept.
            authored: document.clone(),
            sha256: document_sha256(document),
            family,
            id,
            enabled,
            acl: acl::of(family, &rule),
            rule,
        })
    }

    /// Returns the document as it was written; less of it after [`Self::keep_for_verdicts`].
    pub fn authored(&self) -> &Value {
        &self.authored
    }

    /// Lets go of what no verdict says of the document, where definitions lie only to be judged by and never are given back: what was read from
    /// it and its digest stay, and [`Self::authored`] returns the rest.
    pub fn keep_for_verdicts(&mut self) {
        if let Value::Object(members) = &mut self.authored {
            members.retain(|name, _| SAID.contains(&name.as_str()));
        }
    }

    /// Returns the SHA-256 of the document's canonical JSON, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the policy's id, which its author chose.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the policy takes part in decisions.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns what the policy does with a request that it matches.
    pub fn action(&self) -> Action {
        self.rule.action
    }

    /// Returns whether the policy is only reported, never enforced. Source: client contract §3.7 `enforcement`.
    pub fn is_monitored(&self) -> bool {
        self.rule.monitored
    }

    /// Returns whether the policy judges at an occasion.
    pub fn judges_at(&self, occasion: Occasion) -> bool {
        self.rule.occasions & occasion.bit() != 0
    }

    /// Returns whether there are conditions under which it does not match.
    pub fn has_exceptions(&self) -> bool {
        !self.rule.exceptions.is_empty()
    }

    /// Returns to whom and what the policy applies.
    pub fn scope(&self) -> &Scope {
        &self.rule.scope
    }

    /// Returns the access list that the policy is, if it is one.
    pub fn acl(&self) -> Option<&Acl> {
        self.acl.as_ref()
    }

    /// Returns how the request is changed, for `redact` and `filter`.
    pub fn transform(&self) -> Option<&Transform> {
        self.rule.transform.as_ref()
    }

    /// Returns what people are told.
    pub fn message(&self) -> Option<&str> {
        self.rule.message.as_deref()
    }

    /// Returns whether a Rego module decides.
    pub fn is_rego(&self) -> bool {
        matches!(self.rule.logic, Logic::Rego(_))
    }

    /// Returns what the author should change although the definition is taken.
    pub fn advice(&self) -> Vec<Advice> {
        advice::advice(self)
    }

    /// Returns whether the decision depends on earlier events of the subject.
    pub fn has_history(&self) -> bool {
        self.conditions().any(Condition::has_past)
    }

    /// Returns whether the decision can depend on content: a condition, one on the past or one of an exception reads some,
    /// or a module decides, which reads what it likes.
    pub fn reads_content(&self) -> bool {
        // Every member is named, so that a new one is thought about. What a gateway redacts or filters after the decision
        // decides nothing, and a message is text as it was written.
        let Rule {
            action: _,
            occasions: _,
            scope,
            logic,
            exceptions: _,
            monitored: _,
            transform: _,
            message: _,
        } = &self.rule;
        let mut reads = matches!(logic, Logic::Rego(_)) || scope.fields().into_iter().any(Field::is_content);
        for condition in self.conditions() {
            condition.each_operand(&mut |operand| reads |= operand.is_content());
        }
        reads
    }

    /// Returns the attributes of the catalogue that the definition names, sorted.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = self.rule.scope.fields();
        for condition in self.conditions() {
            condition.each_operand(&mut |operand| fields.push(operand.field()));
        }
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let own = match &self.rule.logic {
            Logic::Native(condition) => Some(condition),
            Logic::Rego(_) => None,
        };
        own.into_iter()
            .chain(self.rule.exceptions.iter().map(|e| &e.condition))
    }
}
