//! The programs that a profile can be for: what they take, which files they read, what guards them.
//!
//! A module of one target is pure: a schema, the names of its files, a table of what weakens enforcement.
//!
//! Keeps MC-6.

mod claude_code;
mod codex;
mod denials;
mod findings;
mod generic_json;
mod probed;
mod suggestion;
mod toml_text;
pub mod weakening;

use super::content::{Class, Content, Fault, sha256, step};
use crate::managed_config::views::Warning;
pub use findings::Findings;
use jsonschema::Validator;
use provost_kernel::error::{Code, Error, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use weakening::Rule;
pub use weakening::Weakening;

/// The version of the schemas below. A release remembers the one that it was checked against.
pub const SCHEMA_VERSION: i64 = 2;

provost_kernel::word! {
    /// The program that reads the rendered files.
    pub enum Target {
        /// Claude Code: `managed-settings.json`.
        ClaudeCode = "claude_code",
        /// Codex: `requirements.toml`.
        Codex = "codex",
        /// Any program that reads JSON.
        GenericJson = "generic_json",
    }
}

/// A file of a release, as it lies on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its plain name.
    pub name: &'static str,
    /// The class of members that it holds.
    pub role: Class,
    /// Its whole text.
    pub text: String,
}

impl File {
    /// Returns the hash of the file's bytes in lower-case hexadecimal.
    pub fn sha256(&self) -> String {
        sha256(&self.text)
    }
}

impl Target {
    /// Returns what the target's program makes of a content, in the version that is named or in the newest one; the paths are in the
    /// content.
    pub fn findings(self, content: &Content, version: Option<&str>) -> Findings {
        let general = content.faults();
        // Nobody looks at the members of what is too large: that would take as long as it is large.
        if general.iter().any(|fault| fault.path.is_empty()) {
            return Findings::of_faults(general);
        }
        let probed = probed::of(self.as_str(), version);
        let mut findings = probed.map_or_else(Findings::default, |probed| probed.judge(content));
        let denials = match (self, probed) {
            (Target::ClaudeCode, Some(probed)) => denials::warnings(probed, content),
            (Target::Codex, _) => denials::skipped_hooks(content),
            _ => Vec::new(),
        };
        for warning in denials {
            findings.warn(|| warning);
        }
        let by_rule = match self {
            Target::ClaudeCode => claude_code::faults(content),
            Target::Codex => codex::faults(content),
            Target::GenericJson => Vec::new(),
        };
        let judged: BTreeSet<String> = findings.faults.iter().map(|fault| fault.path.clone()).collect();
        let by_rule = general.into_iter().chain(by_rule);
        findings
            .faults
            .extend(by_rule.filter(|fault| !judged.contains(&fault.path)));
        for warning in self.loose_guards(content, &findings.warnings) {
            findings.warn(|| warning);
        }
        findings.close();
        findings
    }

    /// Refuses to pin a version that nobody asked what it takes: there would be no rules for it.
    ///
    /// Errors: `InvalidDefinition`.
    pub fn must_know(self, version: Option<&str>) -> Result<()> {
        let known = probed::versions(self.as_str());
        match version {
            Some(version) if !known.contains(&version) => {
                let message = if known.is_empty() {
                    "cannot be pinned: nothing is known of the versions of this target".to_owned()
                } else {
                    format!("must be a version that Provost knows: {}", known.join(", "))
                };
                let error = Error::new(Code::InvalidDefinition, "this version cannot be pinned");
                Err(error.and_field("/clientVersion", message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the guards among the starting values, which any user can take away again.
    fn loose_guards(self, content: &Content, known: &[Warning]) -> Vec<Warning> {
        let document = content.of(Class::Defaults);
        let found = self
            .rules()
            .iter()
            .filter(|(_, rule)| rule.is_guard())
            .flat_map(|(pattern, rule)| {
                let found = weakening::places(&document, pattern).into_iter();
                found.filter_map(move |(path, value)| rule.guards(value).then_some(path))
            })
            .filter_map(|path| {
                let place = format!("/defaults{path}");
                let mut known = known.iter().flat_map(|warning| &warning.paths);
                (!known.any(|known| lies_in(&place, known))).then(|| {
                    let message = format!(
                        "is a starting value that any user can take away; it binds as /enforced{path}"
                    );
                    Warning::at("guard_can_be_changed", &place, message)
                })
            });
        found.collect()
    }

    fn rules(self) -> &'static [(&'static str, Rule)] {
        match self {
            Target::ClaudeCode => claude_code::RULES,
            Target::Codex => codex::RULES,
            Target::GenericJson => generic_json::RULES,
        }
    }

    /// Returns the files that a machine gets: the enforced one always, the other only when it says something.
    ///
    /// The content has no fault; of a redacted one the files are for reading only.
    pub fn files(self, content: &Content) -> Vec<File> {
        let [enforced, defaults] = match self {
            Target::ClaudeCode => claude_code::FILES,
            Target::Codex => codex::FILES,
            Target::GenericJson => generic_json::FILES,
        };
        let file = |name, role: Class| {
            let members = content.of(role);
            let text = match self {
                Target::Codex => toml_text::render(&members),
                Target::ClaudeCode | Target::GenericJson => pretty(&members),
            };
            File { name, role, text }
        };
        let mut files = vec![file(enforced, Class::Enforced)];
        if !content.defaults.is_empty() {
            files.push(file(defaults, Class::Defaults));
        }
        files
    }

    /// Returns what the second content guards less than the first one, sorted by path.
    pub fn weakened(self, before: &Content, after: &Content) -> Vec<Weakening> {
        weakening::between(
            self.rules(),
            &before.of(Class::Enforced),
            &after.of(Class::Enforced),
        )
    }
}

/// Says whether a place is another one, or lies in it.
fn lies_in(place: &str, other: &str) -> bool {
    place
        .strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Compiles a schema that is part of the program.
#[expect(
    clippy::expect_used,
    reason = "the schemas are constants, and a test compiles each"
)]
fn compiled(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
    jsonschema::draft202012::new(&schema).expect("a schema is a schema")
}

/// Returns what a schema refuses of one class. No sentence quotes a value.
fn refused(validator: &Validator, content: &Content, class: Class) -> Vec<Fault> {
    let document = content.of(class);
    let base = format!("/{}", class.as_str());
    // LIMIT: more than these are not shown (D1.5).
    let errors = validator.iter_errors(&document).take(20);
    errors
        .map(|error| Fault::new(format!("{base}{}", error.instance_path()), sentence(&error)))
        .collect()
}

/// Says what a schema asks for, in its own words and without the value that was refused.
fn sentence(error: &jsonschema::ValidationError<'_>) -> String {
    use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
    match error.kind() {
        Kind::Type {
            kind: TypeKind::Single(wanted),
        } => format!("must be of the type {wanted}"),
        Kind::Type {
            kind: TypeKind::Multiple(wanted),
        } => {
            let wanted: Vec<String> = wanted.iter().map(|t| t.to_string()).collect();
            format!("must be of the type {}", wanted.join(" or "))
        }
        Kind::Enum { options } => format!("must be one of {options}"),
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::Required { property } => format!("must have the member {property}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::Pattern { .. } => "has not the form that the program asks for".to_owned(),
        Kind::AdditionalProperties { .. } => "has a member that the program does not know".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => {
            "has none of the forms that the program takes".to_owned()
        }
        _ => "is not what the program takes".to_owned(),
    }
}

/// Returns the faults of members that act only where a user cannot override them.
fn only_enforced(content: &Content, names: &[&str]) -> Vec<Fault> {
    let wrong = content
        .defaults
        .keys()
        .filter(|name| names.contains(&name.as_str()));
    wrong
        .map(|name| Fault::new(step("/defaults", name), "acts only among the enforced members"))
        .collect()
}

#[cfg(test)]
mod probed_tests;
#[cfg(test)]
mod tests;
