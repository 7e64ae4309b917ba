//! What an author is told of a module that does not compile: the place, and what to write instead.

use super::literals::path;
use super::{Diagnostic, nesting};
use regorus::admitted::admitted;
use regorus::rvm::{Instruction, Program};
use regorus::unstable::{Module, Rule, RuleHead, Span};

/// LIMIT: characters of a sentence of the engine.
const SENTENCE_CHARS: usize = 400;

/// Returns why a module is refused before it is parsed.
pub(super) fn of_text(source: &str) -> Option<Diagnostic> {
    let found = [
        (
            nesting::too_much(source),
            "the module nests brackets deeper than 10 levels, or too much of it stands in brackets",
        ),
        (
            nesting::too_long(source),
            "an expression of the module has more than 128 operators, references and brackets",
        ),
        (
            nesting::large_exponent(source),
            "a number of the module has an exponent of more than three digits",
        ),
    ];
    let (at, message) = found.into_iter().find_map(|(at, message)| Some((at?, message)))?;
    let before = source.as_bytes().get(..at).unwrap_or_default();
    let before = String::from_utf8_lossy(before);
    let column = before.lines().last().map_or(0, |line| line.chars().count());
    let is_new_line = before.ends_with('\n');
    let number = |n: usize| u32::try_from(n).unwrap_or(0);
    Some(Diagnostic {
        line: number(before.matches('\n').count() + 1),
        column: number(if is_new_line { 1 } else { column + 1 }),
        message: message.to_owned(),
    })
}

/// Returns why a module is refused whose form is right: its package, its rules and their names.
pub(super) fn of_module(module: &Module, package: &str) -> Option<Diagnostic> {
    if path(&module.package.refr).is_none_or(|found| found.join(".") != package) {
        let message = format!("the package must be {package}");
        return Some(at(&module.package.span, message));
    }
    let mut first = None;
    let mut has_match = false;
    for rule in &module.policy {
        let (Rule::Spec {
            span,
            head: RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } | RuleHead::Func { refr, .. },
            ..
        }
        | Rule::Default { span, refr, .. }) = rule.as_ref();
        let name = path(refr)
            .and_then(|steps| steps.into_iter().next())
            .unwrap_or_default();
        if name == "print" {
            let message = "a rule cannot be named print: statements that print are left out";
            return Some(at(span, message.to_owned()));
        }
        has_match |= name == "match";
        first = first.or(Some((name, span.line)));
    }
    if has_match {
        return None;
    }
    let other = first.map_or_else(String::new, |(name, line)| {
        format!("; it begins with the rule `{name}` in line {line}, which nobody asks")
    });
    let message = format!(
        "the module has no rule `match`, which is the one that is asked: write match := {{\"matched\": true}} if {{ … }}{other}"
    );
    Some(at(&module.package.span, message))
}

/// Returns why the compiler refused a module: what it imports that is nowhere, and the compiler's own sentence.
pub(super) fn of_compiler(module: Option<&Module>, package: &str, said: &str) -> Vec<Diagnostic> {
    let imports = module.into_iter().flat_map(|module| &module.imports);
    let mut found: Vec<Diagnostic> = imports
        .filter_map(|import| {
            let name = path(&import.refr)?.join(".");
            let rest = name.strip_prefix("data.")?;
            let is_own = rest.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            let message = format!(
                "import {name}: a policy is one module and has no data documents; put the rules of {name} into this module"
            );
            (!is_own).then(|| at(&import.span, message))
        })
        .collect();
    found.push(of_engine(said));
    found
}

/// Returns each place at which a built-in is called that a module cannot call.
pub(super) fn forbidden(program: &Program) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (pc, instruction) in program.instructions.iter().enumerate() {
        let Instruction::BuiltinCall { params_index } = instruction else {
            continue;
        };
        let params = program.instruction_data.get_builtin_call_params(*params_index);
        let name = params
            .and_then(|params| program.get_builtin_info(params.builtin_index))
            .map_or("", |info| info.name.as_str());
        if admitted(name).is_some() {
            continue;
        }
        let span = program.instruction_spans.get(pc).and_then(Option::as_ref);
        let number = |n: usize| u32::try_from(n).unwrap_or(0);
        found.push(Diagnostic {
            line: span.map_or(0, |span| number(span.line)),
            column: span.map_or(0, |span| number(span.column)),
            message: format!(
                "the built-in {name} cannot be used in a policy; the guide on policies lists those that can"
            ),
        });
    }
    found.dedup();
    found
}

fn at(span: &Span, message: String) -> Diagnostic {
    Diagnostic {
        line: span.line,
        column: span.col,
        message,
    }
}

/// Returns the place and the sentence of an error of the engine, whose text shows the source between them.
pub(super) fn of_engine(text: &str) -> Diagnostic {
    let place = text.split_once("--> ").and_then(|(_, rest)| rest.lines().next());
    let mut numbers = place
        .into_iter()
        .flat_map(|place| place.rsplit(':'))
        .map(|n| n.trim().parse().unwrap_or(0));
    let column = numbers.next().unwrap_or(0);
    let line = numbers.next().unwrap_or(0);
    let sentence = text.rsplit_once("error: ").map_or(text, |(_, sentence)| sentence);
    let unknown = sentence
        .trim()
        .strip_prefix("Unknown function: '")
        .and_then(|rest| rest.strip_suffix('\''));
    let message = match unknown {
        Some(name) => format!(
            "there is no function {name} in the module, and no built-in of that name; the guide on policies lists the built-ins"
        ),
        None => sentence.trim().chars().take(SENTENCE_CHARS).collect(),
    };
    Diagnostic {
        line,
        column,
        message,
    }
}
