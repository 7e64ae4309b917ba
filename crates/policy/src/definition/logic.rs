//! What decides whether a policy matches: native conditions or a Rego module, exactly one.
//!
//! Source: client contract §3.4 `logic`/`conditions`, §3.9, §3.10.

use crate::condition::{Condition, CustomField, Parser};
use crate::contract::{REGO_LANGUAGE_VERSION, rego_entrypoint};
use crate::digest::sha256_hex;
use crate::family::Family;
use crate::read::Object;
use crate::rego::Module;
use crate::violation::Violations;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What decides.
#[derive(Clone, Debug)]
pub(crate) enum Logic {
    Native(Condition),
    Rego(Arc<Module>),
}

/// Returns what decides in a definition.
pub(super) fn read(
    definition: Object<'_>,
    family: Family,
    custom: &BTreeMap<String, Arc<CustomField>>,
    faults: &mut Violations,
) -> Option<Logic> {
    match (definition.get("logic"), definition.get("conditions")) {
        (None, Some(conditions)) => {
            let path = definition.at("conditions");
            let condition = Parser::new(family, custom, faults).condition(conditions, &path)?;
            Some(Logic::Native(condition))
        }
        (Some(logic), None) => {
            let path = definition.at("logic");
            if definition.has("customFields") {
                faults.add(definition.at("customFields"), "needs native conditions");
            }
            module(Object::of(logic, &path, faults)?, family, faults).map(Logic::Rego)
        }
        _ => {
            faults.add(definition.path, "must have exactly one of logic and conditions");
            None
        }
    }
}

fn module(logic: Object<'_>, family: Family, faults: &mut Violations) -> Option<Arc<Module>> {
    logic.only(
        &["kind", "languageVersion", "entrypoint", "module", "moduleSha256"],
        faults,
    );
    for (name, word) in [
        ("kind", "rego"),
        ("languageVersion", REGO_LANGUAGE_VERSION),
        ("entrypoint", rego_entrypoint(family).unwrap_or_default()),
    ] {
        logic.required(name, faults);
        logic.word(name, &[word], faults);
    }
    let digest = logic.required_text("moduleSha256", 64..=64, faults);
    let source = logic.required_text("module", 1..=crate::rego::MODULE_LIMIT_CHARS, faults)?;
    if digest.is_some_and(|digest| digest != sha256_hex(source.as_bytes())) {
        faults.add(
            logic.at("moduleSha256"),
            "must be the SHA-256 of the module in hexadecimal",
        );
    }
    match Module::compile(family, source) {
        Ok(module) => Some(Arc::new(module)),
        Err(diagnostics) => {
            for diagnostic in diagnostics {
                faults.add(logic.at("module"), diagnostic.to_string());
            }
            None
        }
    }
}
