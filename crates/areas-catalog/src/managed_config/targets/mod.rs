//! The programs that a profile can be for: what they take, which files they read, what guards them.
//!
//! A module of one target is pure: a schema, the names of its files, a table of what weakens enforcement.
//!
//! Keeps MC-6.

mod claude_code;
mod codex;
mod generic_json;
mod toml_text;
mod weakening;

use super::content::{Class, Content, Fault, sha256, step};
use jsonschema::Validator;
use serde_json::Value;
pub use weakening::Weakening;

/// The version of the schemas below. A release remembers the one that it was checked against.
pub const SCHEMA_VERSION: i64 = 1;

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
    /// Returns everything that the target would not take; the paths are in the content.
    pub fn faults(self, content: &Content) -> Vec<Fault> {
        let mut faults = content.faults();
        match self {
            Target::ClaudeCode => faults.extend(claude_code::faults(content)),
            Target::Codex => faults.extend(codex::faults(content)),
            Target::GenericJson => {}
        }
        faults
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
        let rules = match self {
            Target::ClaudeCode => claude_code::RULES,
            Target::Codex => codex::RULES,
            Target::GenericJson => generic_json::RULES,
        };
        weakening::between(rules, &before.of(Class::Enforced), &after.of(Class::Enforced))
    }
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
mod tests;
