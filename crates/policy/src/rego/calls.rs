//! How deep a module's rules call each other.
//!
//! The machine calls itself for every rule that a rule asks, some kilobytes of stack each, and knows no end: a function
//! that calls itself, which OPA refuses, would end the whole program. Realistic modules stay below ten.
//!
//! Keeps RG-2.

use regorus::rvm::{Instruction, Program};

/// LIMIT: rules that wait for one another.
pub(super) const CALL_LIMIT: usize = 32;

/// Returns why the calls of a module are refused.
pub(super) fn fault(program: &Program) -> Option<&'static str> {
    let data = &program.instruction_data;
    if !data.virtual_data_document_lookup_params.is_empty() {
        // It may ask any rule, so that nobody can say how deep.
        return Some("rules cannot be looked up in data by a computed name");
    }
    let mut starts: Vec<(usize, usize)> = Vec::new();
    for (rule, info) in program.rule_infos.iter().enumerate() {
        let bodies = info.definitions.iter().flatten();
        let all = bodies.chain(info.destructuring_blocks.iter().flatten());
        starts.extend(all.map(|start| (*start as usize, rule)));
    }
    starts.sort_unstable();
    let mut calls = Calls {
        of: vec![Vec::new(); program.rule_infos.len()],
        heights: vec![None; program.rule_infos.len()],
    };
    for (at, instruction) in program.instructions.iter().enumerate() {
        let called = match instruction {
            Instruction::CallRule { rule_index, .. } => *rule_index,
            Instruction::FunctionCall { params_index } => {
                match data.function_call_params.get(usize::from(*params_index)) {
                    Some(params) => params.func_rule_index,
                    None => continue,
                }
            }
            _ => continue,
        };
        // What stands before every rule is the entry, which nobody calls.
        let before = starts.partition_point(|(start, _)| *start <= at);
        if let Some((_, rule)) = before.checked_sub(1).and_then(|last| starts.get(last)) {
            calls.of[*rule].push(called.into());
        }
    }
    let is_too_deep = (0..calls.of.len()).any(|rule| calls.height(rule, 1).is_none());
    is_too_deep.then_some("the rules of the module call themselves, or one another more than 32 deep")
}

struct Calls {
    /// For each rule those that it asks.
    of: Vec<Vec<usize>>,
    heights: Vec<Option<usize>>,
}

impl Calls {
    /// Returns how many rules wait at most when this one, at this depth, is asked; none above the limit, which a
    /// circle reaches.
    fn height(&mut self, rule: usize, depth: usize) -> Option<usize> {
        let known = self.heights.get(rule).copied().flatten();
        if depth > CALL_LIMIT || known.is_some_and(|height| depth + height > CALL_LIMIT + 1) {
            return None;
        }
        if known.is_some() {
            return known;
        }
        let mut height = 0;
        for called in self.of.get(rule)?.clone() {
            height = height.max(self.height(called, depth + 1)?);
        }
        self.heights[rule] = Some(height + 1);
        Some(height + 1)
    }
}
