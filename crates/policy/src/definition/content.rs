//! The family `content`: prompts, tool calls, tool results, responses. Source: client contract §3.5.

use super::{Rule, Scope, exception, head, logic, transform};
use crate::action::Action;
use crate::family::{Family, Occasion};
use crate::read::Object;
use crate::violation::Violations;

pub(crate) const OWN: [&str; 8] = [
    "evaluateOn",
    "acknowledgeBroadScope",
    "message",
    "approval",
    "customFields",
    "redaction",
    "filter",
    "exceptions",
];
pub(crate) const ACTIONS: [&str; 7] = [
    "allow",
    "block",
    "flag_for_review",
    "redact",
    "filter",
    "nudge",
    "require_approval",
];
/// Whom and what a scope can name.
pub(crate) const SCOPE: [&str; 5] = ["users", "groups", "serviceAccounts", "agents", "products"];
/// When a policy judges.
pub(crate) const STAGES: [&str; 4] = ["prompt", "pre_tool", "post_tool", "response"];
/// Actions that hurt when they meet everybody.
pub(crate) const DISRUPTIVE: [&str; 5] = ["block", "redact", "filter", "nudge", "require_approval"];

pub(super) fn read(definition: Object<'_>, enabled: bool, faults: &mut Violations) -> Option<Rule> {
    head::check(definition, &OWN, faults);
    let scope = Scope::read(definition, &SCOPE, faults);
    definition.required("action", faults);
    let action = definition.word("action", &ACTIONS, faults);
    acknowledged(definition, enabled, scope.as_ref(), action, &DISRUPTIVE, faults);
    definition.required("evaluateOn", faults);
    let occasions = definition.words("evaluateOn", 1..=4, &STAGES, faults);
    let message = definition.text("message", 1..=4096, faults);
    approval(definition, action, faults);
    let transform = transform::read(definition, action, faults);
    let custom = crate::condition::parse_custom(definition, faults);
    let logic = logic::read(definition, Family::Content, &custom, faults);
    let exceptions = exception::read(definition, Family::Content, &custom, faults);
    Some(Rule {
        action: Action::named(action?)?,
        occasions: occasions_of(Family::Content, &occasions?),
        scope: scope?,
        logic: logic?,
        exceptions,
        monitored: false,
        transform,
        message: message.map(str::to_owned),
    })
}

/// Returns the bits of the named occasions.
pub(super) fn occasions_of(family: Family, words: &[&str]) -> u16 {
    let named = words.iter().filter_map(|word| Occasion::named(family, word));
    named.fold(0, |bits, occasion| bits | occasion.bit())
}

/// Refuses an enabled policy that would hurt everybody and does not say that this is meant.
pub(super) fn acknowledged(
    definition: Object<'_>,
    enabled: bool,
    scope: Option<&Scope>,
    action: Option<&str>,
    disruptive: &[&str],
    faults: &mut Violations,
) {
    let is_said = definition.boolean("acknowledgeBroadScope", faults) == Some(true);
    let is_broad = scope.is_some_and(Scope::is_empty) && action.is_some_and(|a| disruptive.contains(&a));
    if enabled && is_broad && !is_said {
        faults.add(
            definition.at("acknowledgeBroadScope"),
            "must be true for an enabled policy with this action and an empty scope",
        );
    }
}

fn approval(definition: Object<'_>, action: Option<&str>, faults: &mut Violations) {
    let Some(value) = definition.get("approval") else {
        return;
    };
    let path = definition.at("approval");
    if action.is_some_and(|action| action != "require_approval") {
        faults.add(path.clone(), "needs the action require_approval");
    }
    if let Some(object) = Object::of(value, &path, faults) {
        object.only(&["autoApproveOnRequest"], faults);
        object.boolean("autoApproveOnRequest", faults);
    }
}
