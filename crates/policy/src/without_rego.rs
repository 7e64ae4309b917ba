//! What stands for modules of Rego in a program that has none of their engine: a device asks its server about them.
//!
//! There is no such module here: a definition that has one is refused, and whoever is asked about one says nothing.

use crate::catalogue::Field;
use crate::family::Family;
use std::collections::BTreeSet;
use std::fmt;

/// LIMIT: characters of a module. Source: client contract §3.4.
pub const MODULE_LIMIT_CHARS: usize = 262_144;

/// What a module is asked about; nobody reads it here.
#[derive(Clone, Copy, Debug)]
pub struct Input;

/// A module, which nothing here is.
#[derive(Debug)]
pub enum Module {}

/// Why a module is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1; 0 when the whole module is meant.
    pub line: u32,
    /// The column, from 1; 0 when the whole line is meant.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Module {
    /// Refuses every module.
    ///
    /// Errors: always.
    pub fn compile(_: Family, _: &str) -> Result<Self, Vec<Diagnostic>> {
        Err(vec![Diagnostic {
            line: 0,
            column: 0,
            message: "this program reads no modules of Rego".to_owned(),
        }])
    }

    /// Returns what its author should change.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        match *self {}
    }

    pub(crate) fn spoken(&self) -> &BTreeSet<Field> {
        match *self {}
    }

    pub(crate) fn others(&self, _: &Input, _: &[AttributeNames]) -> OtherInputs {
        match *self {}
    }

    /// Returns what tells it from every other one.
    pub fn artifact_fingerprint(&self) -> String {
        match *self {}
    }
}

/// What a module says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the policy matches.
    pub matched: bool,
    /// Why, in the author's word.
    pub reason_code: Option<String>,
}

/// Why a module said nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure;

/// What a module says, and whether it looked at what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleAnswer {
    pub(crate) answer: Result<Answer, Failure>,
    pub(crate) has_read_missing: bool,
}

/// What a module is asked.
pub struct Question<'a> {
    /// The module.
    pub module: &'a Module,
    /// What it is asked about.
    pub input: &'a Input,
    /// What is there of it and nobody knows.
    pub missing: &'a [Vec<String>],
}

/// Who runs modules.
pub trait Runner: Sync {
    /// Returns what modules say, in the order of the questions; what was not asked is unknown.
    fn ask(&self, questions: &[Question<'_>], has_time: &dyn Fn() -> bool) -> Vec<ModuleAnswer>;
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub struct InProcess;

impl Runner for InProcess {
    fn ask(&self, _: &[Question<'_>], _: &dyn Fn() -> bool) -> Vec<ModuleAnswer> {
        Vec::new()
    }
}

/// The names that an attribute of an event has.
#[derive(Debug)]
pub struct AttributeNames {
    /// The attribute.
    pub field: Field,
    /// Whether it has several.
    pub is_set: bool,
    /// They.
    pub names: Vec<Forms>,
}

/// A name, and what else it could be called.
#[derive(Debug)]
pub struct Forms {
    /// The id; the word itself where no record has it.
    pub id: String,
    /// Every word as it stands, and its match key.
    pub words: Vec<String>,
    /// The match keys of the id and of every word.
    pub keys: Vec<String>,
}

/// The inputs of a module for one event, the event's own left out.
#[derive(Debug, Default)]
pub struct OtherInputs {
    /// They.
    pub inputs: Vec<Input>,
    /// Whether there are more than are asked.
    pub is_cut: bool,
}

/// Returns what a module would be asked about.
pub(crate) fn input(_: &serde_json::Value) -> Input {
    Input
}
