//! What a module was refused, in a sentence for its author: the place, and the operand as it is written.
//!
//! The sentence holds no value of the input, but the key of a step, which the author wrote or computed.

use super::Diagnostic;
use regorus::rvm::vm::{Cause, Failure};
use regorus::rvm::{Instruction, Program};

/// LIMIT: characters of an expression that are shown.
const SHOWN_CHARS: usize = 80;

/// Returns where something failed, and why.
pub(super) fn diagnostic(program: &Program, failure: &Failure) -> Diagnostic {
    let span = program.instruction_spans.get(failure.pc).and_then(Option::as_ref);
    let number = |n: usize| u32::try_from(n).unwrap_or(0);
    let found = a(failure.found);
    let operand = failure.operand.map(|at| match written(program, failure.pc, at) {
        Some(written) => format!("operand {}, `{}`", at + 1, one_line(written)),
        None => format!("operand {}", at + 1),
    });
    let message = match (&failure.cause, operand) {
        (Cause::Builtin { name, said }, Some(operand)) => {
            format!("{} refuses {operand}, which is {found}: {said}", sign(name))
        }
        (Cause::Builtin { name, said }, None) => format!("{} refuses what it was given: {said}", sign(name)),
        (Cause::Operator(sign), operand) => {
            format!("{sign} refuses {}, which is {found}", operand.unwrap_or_default())
        }
        (Cause::Zero(sign), operand) => {
            format!("{sign} divides by {}, which is 0", operand.unwrap_or_default())
        }
        (Cause::Members, operand) => {
            format!(
                "{} is {found}, which has no members to go through",
                operand.unwrap_or_default()
            )
        }
        (Cause::Step { key }, _) => {
            let key: String = key.to_string().chars().take(SHOWN_CHARS).collect();
            let written = written(program, failure.pc, 0)
                .map_or_else(String::new, |written| format!("`{}` ", one_line(written)));
            format!("{written}looks for the member {key} in {found}, which has no members")
        }
        (Cause::Disagreement, _) => {
            "two definitions of a rule, or two members of the same name, have different values".to_owned()
        }
    };
    Diagnostic {
        line: span.map_or(0, |span| number(span.line)),
        column: number(column(program, failure.pc).unwrap_or(0)),
        message,
    }
}

/// Returns how an operand of an instruction is written.
fn written(program: &Program, pc: usize, at: usize) -> Option<&str> {
    program.operands.get(&pc)?.get(at).map(String::as_str)
}

/// Returns where the expression of an instruction begins: the engine places a reference at its last step.
fn column(program: &Program, pc: usize) -> Option<usize> {
    let span = program.instruction_spans.get(pc)?.as_ref()?;
    let begins = || {
        let source = span.get_source(&program.sources)?;
        let line: Vec<char> = source.lines().nth(span.line.checked_sub(1)?)?.chars().collect();
        let written: Vec<char> = one_line(written(program, pc, 0)?).chars().collect();
        let at = span.column.checked_sub(1)?;
        let is_there = |start: &usize| line.get(*start..).is_some_and(|rest| rest.starts_with(&written));
        (at.saturating_sub(written.len())..=at).rev().find(is_there)
    };
    match program.instructions.get(pc)? {
        Instruction::Index { .. }
        | Instruction::IndexLiteral { .. }
        | Instruction::ChainedIndex { .. }
        | Instruction::LoopStart { .. } => Some(begins().map_or(span.column, |start| start + 1)),
        _ => Some(span.column),
    }
}

fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns how a built-in is written.
fn sign(name: &str) -> &str {
    match name {
        "__builtin_sets.intersection" => "&",
        "__builtin_sets.union" => "|",
        name => name,
    }
}

/// Returns a type with its article.
fn a(type_name: &str) -> &str {
    match type_name {
        "object" => "an object",
        "array" => "an array",
        "set" => "a set",
        "string" => "a string",
        "number" => "a number",
        "boolean" => "a boolean",
        other => other,
    }
}
