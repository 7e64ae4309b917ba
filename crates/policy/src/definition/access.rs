//! The family `access`: the use of an AI product or provider at all. Source: client contract §3.6.
//!
//! `runtime`, `notification` and `remediation` are carried as written: clients pass them through unchecked.

use super::content::occasions_of;
use super::{Rule, Scope, exception, head, logic};
use crate::action::Action;
use crate::family::Family;
use crate::read::Object;
use crate::violation::Violations;
use std::collections::BTreeMap;

pub(crate) const OWN: [&str; 8] = [
    "severity",
    "enforcementSurfaces",
    "acknowledgeBroadScope",
    "enforcedBy",
    "approval",
    "runtime",
    "notification",
    "remediation",
];
pub(crate) const SEVERITIES: [&str; 4] = ["low", "medium", "high", "critical"];
/// What it does.
pub(crate) const ACTIONS: [&str; 4] = ["allow", "block", "flag_for_review", "require_approval"];
/// Whom a scope can name.
pub(crate) const SCOPE: [&str; 4] = ["users", "groups", "devices", "serviceAccounts"];
/// Where a policy judges.
pub(crate) const SURFACES: [&str; 3] = ["inline_hook", "endpoint_route", "provider"];
/// How an approval comes about.
pub(crate) const APPROVALS: [&str; 2] = ["admin_approval", "self_serve"];

pub(super) fn read(definition: Object<'_>, faults: &mut Violations) -> Option<Rule> {
    head::check(definition, &OWN, faults);
    let scope = Scope::read(definition, &SCOPE, faults);
    definition.required("action", faults);
    let action = definition.word("action", &ACTIONS, faults);
    definition.boolean("acknowledgeBroadScope", faults);
    severity_and_approval(definition, action, faults);
    definition.required("enforcementSurfaces", faults);
    let occasions = definition.words("enforcementSurfaces", 1..=3, &SURFACES, faults);
    definition.texts("enforcedBy", 0..=256, &(1..=4096), faults);
    for name in ["runtime", "notification", "remediation"] {
        if let Some(value) = definition.get(name) {
            Object::of(value, &definition.at(name), faults);
        }
    }
    let custom = BTreeMap::new();
    let logic = logic::read(definition, Family::Access, &custom, faults);
    let exceptions = exception::read(definition, Family::Access, &custom, faults);
    Some(Rule {
        action: Action::named(action?)?,
        occasions: occasions_of(Family::Access, &occasions?),
        scope: scope?,
        logic: logic?,
        exceptions,
        monitored: false,
        transform: None,
        message: None,
    })
}

/// Checks the two members that the families access and resource share.
pub(super) fn severity_and_approval(definition: Object<'_>, action: Option<&str>, faults: &mut Violations) {
    definition.word("severity", &SEVERITIES, faults);
    let Some(value) = definition.get("approval") else {
        return;
    };
    let path = definition.at("approval");
    if action.is_some_and(|action| action != "require_approval") {
        faults.add(path.clone(), "needs the action require_approval");
    }
    if let Some(object) = Object::of(value, &path, faults) {
        object.only(&["mode"], faults);
        object.word("mode", &APPROVALS, faults);
    }
}
