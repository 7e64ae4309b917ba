//! The family of skill ACLs: who may, or may not, use one skill. Source: client contract §3.11.

use super::{Logic, Rule, Scope};
use crate::action::Action;
use crate::catalogue::Field;
use crate::condition::{Check, Condition, Operand, Predicate};
use crate::family::Family;
use crate::read::Object;
use crate::violation::Violations;

/// Its members.
pub(crate) const MEMBERS: [&str; 5] = ["id", "skillId", "enabled", "subjects", "effect"];
/// What it does.
pub(crate) const EFFECTS: [&str; 2] = ["allow", "block"];
/// Whom it can name.
pub(crate) const SCOPE: [&str; 2] = ["users", "groups"];

pub(super) fn read(definition: Object<'_>, faults: &mut Violations) -> Option<Rule> {
    definition.only(&MEMBERS, faults);
    let skill = definition.required_text("skillId", 1..=4096, faults);
    definition.required("effect", faults);
    let effect = definition.word("effect", &EFFECTS, faults);
    let path = definition.at("subjects");
    let subjects = definition
        .required("subjects", faults)
        .and_then(|value| Object::of(value, &path, faults));
    let scope = subjects.and_then(|subjects| who(subjects, faults));
    let skill = skill?;
    let condition = Condition::Is(Predicate {
        operand: Operand::Field(Field::SKILL),
        check: Check::Text {
            is: skill.into(),
            negated: false,
        },
        key: format!("skill.id {skill}"),
    });
    Some(Rule {
        action: Action::named(effect?)?,
        occasions: Family::SkillAcl.occasions(),
        scope: scope?,
        logic: Logic::Native(condition),
        exceptions: Vec::new(),
        monitored: false,
        transform: None,
        message: None,
    })
}

fn who(subjects: Object<'_>, faults: &mut Violations) -> Option<Scope> {
    subjects.only(&["everyone", "users", "groups"], faults);
    let before = faults.found();
    let everyone = subjects.boolean("everyone", faults) == Some(true);
    let scope = Scope::lists(subjects, &SCOPE, faults);
    if faults.found() == before && everyone != scope.is_empty() {
        let message = "must have either everyone, or at least one user or group";
        faults.add(subjects.path, message);
        return None;
    }
    Some(scope)
}
