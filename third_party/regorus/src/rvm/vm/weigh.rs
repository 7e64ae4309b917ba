//! Provost: what one instruction walks.
//!
//! An instruction counts as one whether it compares two numbers or two documents. What walks values is therefore charged for
//! their trees before it does, by the extents that they know, and the evaluation ends when it has walked more than the host
//! allows: at the same instruction on every machine. A charge is an upper bound in the order of what happens, no exact count.
//!
//! Keeps RG-7.

use super::errors::{Result, VmError};
use super::machine::RegoVM;
use crate::builtins::admitted::{admitted, Cost};
use crate::builtins::provost::walked_nodes;
use crate::rvm::instructions::{Instruction, LiteralOrRegister};
use crate::rvm::program::Program;
use crate::value::{Bounds, Value};

/// What it costs to make a pattern ready, in nodes; it is made anew for each call.
const PATTERN: u64 = 1000;

impl RegoVM {
    /// Sets what an evaluation may build and walk.
    pub const fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Notes that so many nodes are walked.
    pub(super) fn charge(&mut self, nodes: u64) -> Result<()> {
        self.walked = self.walked.saturating_add(nodes);
        if self.walked > self.bounds.work {
            return Err(VmError::WorkLimitExceeded { pc: self.pc });
        }
        Ok(())
    }

    /// Notes what an instruction is about to walk.
    pub(super) fn charge_instruction(&mut self, program: &Program, instruction: &Instruction) -> Result<()> {
        use Instruction as I;
        let nodes = match *instruction {
            I::Eq { left, right, .. }
            | I::Ne { left, right, .. }
            | I::Lt { left, right, .. }
            | I::Le { left, right, .. }
            | I::Gt { left, right, .. }
            | I::Ge { left, right, .. }
            | I::AssertEq { left, right } => {
                let (left, right) = (self.nodes(left), self.nodes(right));
                left.min(right)
            }
            // Of sets: each element is compared about twice.
            I::Sub { left, right, .. } | I::And { left, right, .. } | I::Or { left, right, .. } => {
                times(self.nodes(left).saturating_add(self.nodes(right)), 2)
            }
            // Of numbers: digit by digit.
            I::Mul { left, right, .. } | I::Div { left, right, .. } | I::Mod { left, right, .. } => {
                let (left, right) = (self.nodes(left), self.nodes(right));
                if left == 1 && right == 1 {
                    return Ok(());
                }
                times(left, right)
            }
            I::Add { left, right, .. } => self.nodes(left).saturating_add(self.nodes(right)),
            I::ObjectSet { obj, key, value } => {
                self.search(obj, self.nodes(key)).saturating_add(self.nodes(value))
            }
            I::ObjectCreate { params_index } => {
                let params = program.instruction_data.get_object_create_params(params_index);
                let fields = params.map_or(&[][..], |params| params.field_pairs());
                let keys = fields.iter().map(|&(key, _)| self.nodes(key));
                times(keys.fold(0, u64::saturating_add), steps(fields.len()))
            }
            I::SetCreate { params_index } => {
                let params = program.instruction_data.get_set_create_params(params_index);
                let elements = params.map_or(&[][..], |params| params.element_registers());
                let all = elements.iter().map(|&element| self.nodes(element));
                times(all.fold(0, u64::saturating_add), steps(elements.len()))
            }
            I::SetAdd { set, value } => self.search(set, self.nodes(value)),
            I::Index { container, key, .. } => self.search(container, self.nodes(key)),
            I::ChainedIndex { params_index } => self.chained(program, params_index),
            I::Contains { collection, value, .. } => match self.get_register(collection) {
                Ok(&Value::Set(ref set)) => times(self.nodes(value), steps(set.len())),
                _ => self.nodes(collection),
            },
            I::ComprehensionYield { value_reg, key_reg } => {
                let Some(context) = self.comprehension_stack.last() else {
                    return Ok(());
                };
                let result = context.result_reg;
                let key = key_reg.unwrap_or(context.key_reg);
                match self.get_register(result) {
                    Ok(&Value::Set(_)) => self.search(result, self.nodes(value_reg)),
                    Ok(&Value::Object(_)) => {
                        self.search(result, self.nodes(key)).saturating_add(self.nodes(value_reg))
                    }
                    _ => return Ok(()),
                }
            }
            I::Move { dest, src } if program.is_sole_value(self.pc) => self.nodes(dest).min(self.nodes(src)),
            I::BuiltinCall { params_index } => self.builtin(program, params_index),
            _ => return Ok(()),
        };
        // What is as small as this is what an instruction stands for.
        if nodes <= 8 {
            return Ok(());
        }
        self.charge(nodes)
    }

    fn nodes(&self, register: u8) -> u64 {
        self.get_register(register).map_or(0, |value| value.extent().nodes)
    }

    /// Returns what it costs to find a place among the members of a collection.
    fn search(&self, collection: u8, nodes: u64) -> u64 {
        let members = match self.get_register(collection) {
            Ok(value) => members(value),
            Err(_) => 0,
        };
        times(nodes, steps(members))
    }

    fn chained(&self, program: &Program, params_index: u16) -> u64 {
        let Some(params) = program.instruction_data.get_chained_index_params(params_index) else {
            return 0;
        };
        let computed = params.path_components.iter().map(|component| match *component {
            LiteralOrRegister::Literal(_) => 0,
            // Which collection it is looked for in shows only on the way.
            LiteralOrRegister::Register(register) => match self.nodes(register) {
                1 => 0,
                nodes => times(nodes, 20),
            },
        });
        computed.fold(0, u64::saturating_add)
    }

    fn builtin(&self, program: &Program, params_index: u16) -> u64 {
        let Some(params) = program.instruction_data.get_builtin_call_params(params_index) else {
            return 0;
        };
        let Some(info) = program.get_builtin_info(params.builtin_index) else {
            return 0;
        };
        let registers = params.arg_registers();
        let nodes = |nth: usize| registers.get(nth).map_or(0, |register| self.nodes(*register));
        let bytes = |nth: usize| match registers.get(nth).map(|register| self.get_register(*register)) {
            Some(Ok(&Value::String(ref text))) => u64::try_from(text.len()).unwrap_or(u64::MAX),
            _ => 0,
        };
        let count = |nth: usize| match registers.get(nth).map(|register| self.get_register(*register)) {
            Some(Ok(value)) => members(value),
            _ => 0,
        };
        let all = (0..registers.len()).map(nodes).fold(0, u64::saturating_add);
        let value = |nth: usize| registers.get(nth).and_then(|register| self.get_register(*register).ok());
        let Some(row) = admitted(&info.name) else {
            return all;
        };
        match row.cost {
            Cost::Outermost => 0,
            Cost::Members => u64::try_from(count(0)).unwrap_or(u64::MAX),
            Cost::BothMembers => wide(count(0)).saturating_add(wide(count(1))),
            Cost::Whole => all,
            Cost::Key => times(nodes(1), 20),
            Cost::Keys => times(nodes(0), 2),
            Cost::Sorting => times(nodes(0), steps(count(0))),
            Cost::Folding => times(nodes(0), u64::try_from(count(0)).unwrap_or(u64::MAX).max(2)),
            Cost::Pairs => all.saturating_add(times(wide(count(0)), wide(count(1))) / 4),
            Cost::Subset if count(0) > 1 && count(1) > 1 => times(nodes(0), nodes(1).min(wide(count(0)))),
            Cost::Subset => all,
            Cost::Paths => times(all, steps(count(0).max(count(1)))),
            Cost::Trimming => times(bytes(0), bytes(1).max(1)) / 64,
            Cost::Places => bytes(0) / 4 + times(bytes(0), bytes(1)) / 64,
            Cost::Pattern(operand) => {
                all.saturating_add(PATTERN).saturating_add(times(bytes(operand), 4))
            }
            Cost::Digits => match nodes(0) {
                1 => 1,
                nodes => times(nodes, nodes),
            },
            Cost::Written => all.saturating_add(registers.len().checked_sub(1).and_then(value).map_or(0, large_numbers)),
            // A text of digits is read digit by digit, each time through all of them.
            Cost::Read => (bytes(0).saturating_add(bytes(1)) / 8).saturating_add({
                let nodes = nodes(0).min(64);
                times(nodes, nodes)
            }),
            Cost::Walk => value(0).map_or(0, walked_nodes),
        }
    }
}

/// Returns what it costs to write the large numbers of a value, each of whose digits goes through all of them.
fn large_numbers(value: &Value) -> u64 {
    match *value {
        Value::Number(_) => match value.extent().nodes {
            1 => 0,
            nodes => times(nodes, nodes),
        },
        Value::Array(ref items) => items.iter().map(large_numbers).fold(0, u64::saturating_add),
        Value::Set(ref items) => items.iter().map(large_numbers).fold(0, u64::saturating_add),
        Value::Object(ref members) => members
            .iter()
            .map(|(key, member)| large_numbers(key).saturating_add(large_numbers(member)))
            .fold(0, u64::saturating_add),
        _ => 0,
    }
}

/// Returns how many members a value has.
fn members(value: &Value) -> usize {
    match *value {
        Value::Array(ref items) => items.len(),
        Value::Set(ref items) => items.len(),
        Value::Object(ref members) => members.len(),
        _ => 0,
    }
}

/// Returns how many comparisons find a place among so many.
pub(super) fn steps(members: usize) -> u64 {
    u64::from(usize::BITS.saturating_sub(members.leading_zeros())).saturating_add(1)
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).max(1)
}

const fn times(nodes: u64, factor: u64) -> u64 {
    nodes.saturating_mul(factor)
}
