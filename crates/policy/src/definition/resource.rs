//! The family `resource`: requests to databases and HTTP resources. Source: client contract §3.7.

use super::access::severity_and_approval;
use super::content::acknowledged;
use super::{Rule, Scope, exception, head, logic, transform};
use crate::action::Action;
use crate::catalogue::Field;
use crate::family::Family;
use crate::read::Object;
use crate::violation::Violations;
use std::collections::BTreeMap;

pub(crate) const OWN: [&str; 8] = [
    "enforcement",
    "severity",
    "acknowledgeBroadScope",
    "message",
    "approval",
    "dataTarget",
    "redaction",
    "filter",
];
pub(crate) const ACTIONS: [&str; 6] = [
    "allow",
    "block",
    "flag_for_review",
    "redact",
    "filter",
    "require_approval",
];
pub(crate) const DISRUPTIVE: [&str; 4] = ["block", "redact", "filter", "require_approval"];
/// Whom and what a scope can name.
pub(crate) const SCOPE: [&str; 5] = ["users", "groups", "devices", "serviceAccounts", "resources"];
/// Whether it is enforced.
pub(crate) const ENFORCEMENTS: [&str; 2] = ["enforce", "monitor"];
/// What a redaction or filter works on.
pub(crate) const TARGETS: [&str; 4] = [
    "http_request_body",
    "http_response_body",
    "postgres_result",
    "mysql_result",
];

pub(super) fn read(definition: Object<'_>, enabled: bool, faults: &mut Violations) -> Option<Rule> {
    head::check(definition, &OWN, faults);
    let scope = Scope::read(definition, &SCOPE, faults);
    definition.required("action", faults);
    let action = definition.word("action", &ACTIONS, faults);
    acknowledged(definition, enabled, scope.as_ref(), action, &DISRUPTIVE, faults);
    severity_and_approval(definition, action, faults);
    let enforcement = definition.word("enforcement", &ENFORCEMENTS, faults);
    let message = definition.text("message", 1..=4096, faults);
    let transform = transform::read(definition, action, faults);
    target(definition, action, scope.as_ref(), faults);
    let custom = BTreeMap::new();
    let logic = logic::read(definition, Family::Resource, &custom, faults);
    let exceptions = exception::read(definition, Family::Resource, &custom, faults);
    Some(Rule {
        action: Action::named(action?)?,
        occasions: Family::Resource.occasions(),
        scope: scope?,
        logic: logic?,
        exceptions,
        monitored: enforcement == Some("monitor"),
        transform,
        message: message.map(str::to_owned),
    })
}

/// Checks what the redaction or filter works on.
fn target(definition: Object<'_>, action: Option<&str>, scope: Option<&Scope>, faults: &mut Violations) {
    let path = definition.at("dataTarget");
    let is_transform = matches!(action, Some("redact" | "filter"));
    if !definition.has("dataTarget") {
        if is_transform {
            faults.add(path, "is required with the actions redact and filter");
        }
        return;
    }
    let target = definition.word("dataTarget", &TARGETS, faults);
    if action.is_some() && !is_transform {
        faults.add(path.clone(), "needs the action redact or filter");
    }
    if scope.is_some_and(|scope| scope.named(Field::RESOURCE).is_empty()) {
        faults.add(path.clone(), "needs at least one resource in appliesTo");
    }
    if action == Some("filter") && target == Some("http_request_body") {
        faults.add(path, "does not go with the action filter");
    }
    if matches!(target, Some("postgres_result" | "mysql_result")) {
        sql_result(definition, action, faults);
    }
}

fn sql_result(definition: Object<'_>, action: Option<&str>, faults: &mut Violations) {
    let inner = |name: &str, member: &str| definition.get(name).and_then(|value| value.get(member));
    if action == Some("redact") && inner("redaction", "paths").is_none_or(serde_json::Value::is_null) {
        faults.add("/redaction/paths", "is required for the results of a database");
    }
    let collection = inner("filter", "collectionPath").and_then(serde_json::Value::as_str);
    if action == Some("filter") && collection.is_some_and(|path| path != "$.rows") {
        faults.add(
            "/filter/collectionPath",
            "must be $.rows for the results of a database",
        );
    }
}
