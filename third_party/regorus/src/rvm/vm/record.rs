// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! What an evaluation says of itself beside its value: whether it read what is missing of its input, and what failed.
//!
//! Reads. The host names paths of the input that exist, and whose values it does not know. The nodes that lie on such a
//! path are known by their addresses: a value moves through registers, rules and functions and stays the same node. A
//! step by a literal member that leads along no missing path reads nothing that is missing; every other use of such a
//! node (a comparison, a built-in, a loop, a step by a computed key, to become a part of something else) reads what is
//! missing below it. Whatever is not listed as harmless reads.
//!
//! Failures. A built-in that refuses its operands, and a reference into a value that is no collection, have no value, as
//! in OPA; the first of them is kept. One under `not`, or below a rule that has a default, is not: there the author said
//! what then holds. A rule keeps its own failure beside its value, so that who asks it later hears of it too.
//!
//! Keeps RG-3, RG-4.

use crate::rvm::instructions::{Instruction, LiteralOrRegister};
use crate::rvm::program::Program;
use crate::value::Value;
use crate::Rc;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::machine::RegoVM;

/// Something that has no value because of what it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The instruction.
    pub pc: usize,
    /// What failed.
    pub cause: Cause,
    /// Which operand, from 0; none where no single one is at fault.
    pub operand: Option<usize>,
    /// The type of that operand.
    pub found: &'static str,
}

/// What failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A built-in, and what it said.
    Builtin { name: String, said: String },
    /// An operator of arithmetic.
    Operator(&'static str),
    /// A division by zero.
    Zero(&'static str),
    /// A step to a member of a value that has none.
    Step { key: Value },
    /// `in`, or a loop, over a value that has no members.
    Members,
    /// Two definitions of a rule, or two members of the same name, that have different values.
    Disagreement,
}

/// A node on the way to something missing.
#[derive(Debug, Default)]
struct Node {
    /// Members that lie on the way; true for those that are themselves missing.
    next: BTreeMap<String, bool>,
    /// The node is no object, so that nobody knows what lies below it.
    is_leaf: bool,
}

/// What the evaluation says of itself.
#[derive(Debug, Default)]
pub(super) struct Record {
    nodes: BTreeMap<usize, Node>,
    /// The objects of the input, once a computed key asked for them.
    objects: Option<BTreeSet<usize>>,
    has_read_missing: bool,
    failure: Option<Failure>,
    disagreement: Option<Failure>,
    rule_failures: BTreeMap<u16, Failure>,
}

/// Returns the address of what a value shares with its copies.
fn address(value: &Value) -> Option<usize> {
    match *value {
        Value::Object(ref object) => Some(Rc::as_ptr(object).cast::<()>().addr()),
        Value::Array(ref array) => Some(Rc::as_ptr(array).cast::<()>().addr()),
        Value::Set(ref set) => Some(Rc::as_ptr(set).cast::<()>().addr()),
        Value::String(ref text) => Some(Rc::as_ptr(text).cast::<()>().addr()),
        Value::Number(_) | Value::Bool(_) | Value::Null | Value::Undefined => None,
    }
}

/// Returns the name of a value's type, as Rego's `type_name` says it.
pub(super) const fn type_name(value: &Value) -> &'static str {
    match *value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::Set(_) => "set",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
        Value::Undefined => "undefined",
    }
}

/// Returns whether a value has members.
pub(super) const fn has_members(value: &Value) -> bool {
    matches!(
        *value,
        Value::Object(_) | Value::Array(_) | Value::Set(_) | Value::Undefined
    )
}

impl Record {
    fn watch(&mut self, input: &Value, paths: &[Vec<&str>]) {
        for path in paths {
            let mut at = input;
            for (depth, member) in path.iter().enumerate() {
                let Some(place) = address(at) else { break };
                let node = self.nodes.entry(place).or_default();
                let Value::Object(ref object) = *at else {
                    node.is_leaf = true;
                    break;
                };
                let is_missing = depth.saturating_add(1) == path.len();
                *node.next.entry((*member).into()).or_default() |= is_missing;
                match object.get(&Value::from(*member)) {
                    Some(inner) if !is_missing => at = inner,
                    _ => break,
                }
            }
        }
    }

    /// A value is used as a whole.
    fn use_whole(&mut self, value: &Value) {
        // What is no object was sent as it is; only what lies below it is missing.
        let node = address(value).and_then(|place| self.nodes.get(&place));
        self.has_read_missing |= node.is_some_and(|node| !node.is_leaf);
    }

    /// The members of a value are gone through.
    fn use_members(&mut self, value: &Value) {
        self.has_read_missing |= address(value).is_some_and(|place| self.nodes.contains_key(&place));
    }

    fn step(&mut self, input: &Value, container: &Value, key: &Value, is_literal: bool) {
        let Some(place) = address(container) else {
            // It has no address, and may be where the way to something missing ends.
            self.has_read_missing |= !matches!(*container, Value::Undefined);
            return;
        };
        self.has_read_missing |= match (self.nodes.get(&place), container, key) {
            (Some(node), &Value::Object(ref object), &Value::String(ref name)) if is_literal => node
                .next
                .get(name.as_ref())
                .is_some_and(|is_missing| *is_missing || object.get(key).is_none()),
            (Some(node), &Value::Object(_), _) if is_literal => node.is_leaf,
            (Some(_), _, _) => true,
            (None, &Value::Object(_), _) if !is_literal => self
                .objects
                .get_or_insert_with(|| objects(input))
                .contains(&place),
            (None, _, _) => false,
        };
    }
}

/// Returns the addresses of the objects of a document.
fn objects(document: &Value) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = alloc::vec![document];
    while let Some(value) = open.pop() {
        match *value {
            Value::Object(ref object) => {
                found.extend(address(value));
                open.extend(object.iter().map(|(_, member)| member));
            }
            Value::Array(ref items) => open.extend(items.iter()),
            _ => {}
        }
    }
    found
}

impl RegoVM {
    /// Names paths of the input that exist and whose values nobody knows; after `set_input`.
    pub fn set_missing(&mut self, paths: &[Vec<&str>]) {
        self.record = Record::default();
        self.record.watch(&self.input, paths);
    }

    /// Returns whether the evaluation read what is missing.
    pub const fn has_read_missing(&self) -> bool {
        self.record.has_read_missing
    }

    /// Returns what contradicts itself, if something did; else the first failure that nobody took care of.
    pub fn failure(&self) -> Option<&Failure> {
        self.record
            .disagreement
            .as_ref()
            .or(self.record.failure.as_ref())
    }

    pub(super) fn has_missing(&self) -> bool {
        !self.record.nodes.is_empty() && !self.record.has_read_missing
    }

    /// Notes what an instruction is about to read. Called only where something is missing.
    pub(super) fn note_read(&mut self, program: &Program, instruction: &Instruction) {
        use Instruction::*;
        let data = &program.instruction_data;
        let value = |register: u8| self.registers.get(usize::from(register));
        let mut wholes: Vec<u8> = Vec::new();
        match *instruction {
            // A value moves on, or it only counts whether it is there.
            Load { .. } | LoadTrue { .. } | LoadFalse { .. } | LoadNull { .. } | LoadBool { .. } | LoadData { .. }
            | LoadInput { .. } | LoadContext { .. } | LoadMetadata { .. } | Move { .. } | Not { .. }
            | Guard { .. } | FunctionCall { .. } | CallRule { .. } | RuleInit { .. } | RuleReturn {}
            | DestructuringSuccess {} | LoopNext { .. } | ComprehensionEnd {} | ArrayNew { .. } | SetNew { .. } => return,
            Return { value } => wholes.push(value),
            Halt {} => wholes.push(0),
            Add { left, right, .. } | Sub { left, right, .. } | Mul { left, right, .. } | Div { left, right, .. }
            | Mod { left, right, .. } | Eq { left, right, .. } | Ne { left, right, .. } | Lt { left, right, .. }
            | Le { left, right, .. } | Gt { left, right, .. } | Ge { left, right, .. } | And { left, right, .. }
            | Or { left, right, .. } | AssertEq { left, right } => wholes.extend([left, right]),
            Contains { collection, value, .. } => {
                if let Some(collection) = self.registers.get(usize::from(collection)) {
                    self.record.use_members(collection);
                }
                wholes.push(value);
            }
            Count { collection, .. } => wholes.push(collection),
            ObjectSet { key, value, .. } => wholes.extend([key, value]),
            ArrayPush { value, .. } | ArrayPushDefined { value, .. } | SetAdd { value, .. } => wholes.push(value),
            ComprehensionYield { value_reg, key_reg } => {
                wholes.push(value_reg);
                wholes.extend(key_reg);
            }
            BuiltinCall { params_index } => match data.get_builtin_call_params(params_index) {
                Some(params) => wholes.extend(params.arg_registers()),
                None => self.record.has_read_missing = true,
            },
            ObjectCreate { params_index } => match data.get_object_create_params(params_index) {
                Some(params) => {
                    wholes.extend(params.literal_key_field_pairs().iter().map(|pair| pair.1));
                    wholes.extend(params.field_pairs().iter().flat_map(|pair| [pair.0, pair.1]));
                }
                None => self.record.has_read_missing = true,
            },
            ArrayCreate { params_index } => match data.get_array_create_params(params_index) {
                Some(params) => wholes.extend(params.element_registers()),
                None => self.record.has_read_missing = true,
            },
            SetCreate { params_index } => match data.get_set_create_params(params_index) {
                Some(params) => wholes.extend(params.element_registers()),
                None => self.record.has_read_missing = true,
            },
            LoopStart { params_index } => {
                let collection = data.get_loop_params(params_index).and_then(|params| value(params.collection));
                match collection {
                    Some(collection) => self.record.use_members(collection),
                    None => self.record.has_read_missing = true,
                }
            }
            ComprehensionBegin { params_index } => {
                match data.get_comprehension_begin_params(params_index) {
                    Some(params) if params.collection_reg == params.result_reg => {}
                    Some(params) => match value(params.collection_reg) {
                        Some(collection) => self.record.use_members(collection),
                        None => self.record.has_read_missing = true,
                    },
                    None => self.record.has_read_missing = true,
                }
            }
            Index { container, key, .. } => match (value(container), value(key)) {
                (Some(container), Some(key)) => self.record.step(&self.input, container, key, false),
                _ => self.record.has_read_missing = true,
            },
            IndexLiteral { container, literal_idx, .. } => {
                match (value(container), program.literals.get(usize::from(literal_idx))) {
                    (Some(container), Some(key)) => self.record.step(&self.input, container, key, true),
                    _ => self.record.has_read_missing = true,
                }
            }
            ChainedIndex { params_index } => {
                let params = data.get_chained_index_params(params_index);
                let Some((params, mut at)) = params.and_then(|params| Some((params, value(params.root)?))) else {
                    self.record.has_read_missing = true;
                    return;
                };
                for component in &params.path_components {
                    let (key, is_literal) = match *component {
                        LiteralOrRegister::Literal(literal) => (program.literals.get(usize::from(literal)), true),
                        LiteralOrRegister::Register(register) => (value(register), false),
                    };
                    let Some(key) = key else {
                        self.record.has_read_missing = true;
                        return;
                    };
                    self.record.step(&self.input, at, key, is_literal);
                    at = &at[key];
                }
            }
            // No Rego module has these, and whatever comes later is not known here.
            HostAwait { .. } | VirtualDataDocumentLookup { .. } | ReturnUndefinedIfNotTrue { .. }
            | CoalesceUndefinedToNull { .. } | PolicyCondition { .. } | LogicalBlockStart { .. } | AllOfNext { .. }
            | AnyOfNext { .. } | LogicalBlockEnd { .. } => self.record.has_read_missing = true,
        }
        for register in wholes {
            if let Some(value) = self.registers.get(usize::from(register)) {
                self.record.use_whole(value);
            }
        }
    }

    /// Notes that two values are compared that no instruction names.
    pub(super) fn note_comparison(&mut self, left: &Value, right: &Value) {
        self.record.use_whole(left);
        self.record.use_whole(right);
    }

    /// Notes that the instruction at hand has no value because of an operand.
    pub(super) fn note_failure(&mut self, operand: Option<usize>, found: &Value, cause: Cause) {
        if self.record.failure.is_none() && !self.program.is_negated(self.pc) {
            self.record.failure = Some(Failure {
                pc: self.pc,
                cause,
                operand,
                found: type_name(found),
            });
        }
    }

    /// Notes that something has two values; nothing forgives it.
    pub(super) fn note_disagreement(&mut self, pc: usize) {
        self.record.disagreement.get_or_insert(Failure {
            pc,
            cause: Cause::Disagreement,
            operand: None,
            found: "",
        });
    }

    /// Begins a rule: returns what failed around it.
    pub(super) fn begin_rule_record(&mut self) -> Option<Failure> {
        self.record.failure.take()
    }

    /// Ends a rule that was asked by the instruction at hand.
    pub(super) fn end_rule_record(&mut self, around: Option<Failure>, rule: u16, forgives: bool, keeps: bool) {
        let own = self.record.failure.take().filter(|_| !forgives);
        if let (true, Some(own)) = (keeps, &own) {
            self.record.rule_failures.insert(rule, own.clone());
        }
        let is_negated = self.program.is_negated(self.pc);
        self.record.failure = around.or_else(|| own.filter(|_| !is_negated));
    }

    /// Notes what failed when a rule whose value is kept was evaluated.
    pub(super) fn note_rule_again(&mut self, rule: u16) {
        if self.record.failure.is_none() && !self.program.is_negated(self.pc) {
            self.record.failure = self.record.rule_failures.get(&rule).cloned();
        }
    }
}
