//! Rego modules: the escape hatch of the condition language, on the `regorus` virtual machine.
//!
//! A module is a predicate only: the rule `match` of its family's package says `{matched, reasonCode?}`; what
//! then happens stands in the definition. `input` is the nested form of the attributes' names, with `stage`.
//!
//! ```text
//!   match is an object with `matched: true`                that is the answer, whatever else happened
//!   anything else, rules that disagree, a limit reached    a failure: the policy counts as matched (D9.10)
//!   a built-in or a reference refused what it was given    the same
//!   match is an object with `matched: false`, or undefined not matched
//! ```
//!
//! What a built-in refuses (`count(5)`), and a step into a value that has no members, is undefined, as it is in OPA:
//! `default` and `not` see it, and there the author has said what then holds. `not` sees what it negates itself; the operands
//! of that have their values before. Anywhere else nobody has, and the module
//! failed: it would otherwise not match whatever is sent in another form. The rule `match` does not count as one with a
//! default, because nearly every module has that one. A module that expects several forms asks for the type first.
//!
//! A module is unknown where it reads what is missing, and only there: the machine records it. A path that is read meets
//! one that is missing if either is the start of the other; a computed key, and `input` as a whole, meet all.
//!
//! A module that compares the id of a record with a text that is none would match nobody whom the register knows. Its author is
//! told so when it is compiled, and until it is changed it is also asked with each word in place of the id.
//!
//! How a module is stopped:
//!
//! - Instructions are counted: the same module on the same input is stopped at the same place on every machine,
//!   so that a backtest gives the same result twice. Time is limited too, as a second line.
//! - The built-ins stand in one table (`regorus::admitted`): for each what one call can make at most, what it costs, what it
//!   refuses, and how it joins texts. Those that can make more than they are given (`sprintf`, `replace`, `json.unmarshal`, …)
//!   end the evaluation above their bound, and are charged for what they made. Whatever would read a clock, the network or
//!   a random number is not in it. A statement that prints is left out.
//!
//! - What would make the engine call itself until the stack ends, and with it the whole program, is refused when the
//!   module is compiled: expressions of hundreds of operators, and rules that call themselves or one another too deep.
//!
//! - Numbers are exact, and so as long as their exponents say: large ones are refused in a module, and end the evaluation where
//!   a built-in reads them from a text. An event's numbers are those of its document.
//!
//! - Values share their parts, and whatever compares or searches them walks every part as often as it is reached. Each value
//!   knows how large it is as a tree and how deep, and none is built above a limit; and what an evaluation walks inside of its
//!   instructions is charged before it does, up to a limit of its own. Both end it at the same place on every machine.
//!
//! Not counted exactly: what a pattern costs on a long text. It is linear in the text, and the clock stops the module after it.
//!
//! The machine is a copy of regorus in this repository, which records what it reads and what fails (ADR 0036).
//!
//! Source: client contract §3.10; D9.10.
//!
//! INVARIANT RG-2: no module ends the program: compiling and evaluating need a bounded part of a thread's stack.
//! INVARIANT RG-7: one instruction of a module walks a bounded part of what its values are as trees, and where a
//! module is stopped for it is the same on every machine.
//! INVARIANT RG-1: a module that is stopped, contradicts itself or gives no answer is never "not matched".
//! INVARIANT RG-3: a module whose built-in or reference failed is never "not matched", unless a `not` negates what failed or it is
//! below a rule with a default; a match that was found stands.
//! INVARIANT RG-4: a module's answer that is not unknown is its answer whatever the missing attributes are, and what
//! it does not read makes it not unknown.
//! INVARIANT RG-5: a module that compares the id of a record with a text matches if it does with the id or with any
//! word of the record in place of the id, and is unknown if none matches and one is unknown; one that compares any
//! other name with a text matches if it does with its own text of the same match key; in decisions, backtests and
//! `rego/validate`.
//!
//! INVARIANT RG-8: in a module, what has no value ends its query, and what found nothing asks the next `else`, as in OPA; nothing under
//! `not` looks for values.
//!
//! Absent on purpose: data documents, several modules in one policy, tracing, a limit on bytes (it would need an
//! allocator of its own for the whole program; steps, and the sizes of values, bound what a module can allocate).

mod attribute_names;
mod calls;
mod diagnostics;
mod input;
mod literals;
mod nesting;
mod refusal;
mod runner;
pub mod wire;

pub(crate) use attribute_names::{AttributeNames, Forms, OtherInputs};
pub(crate) use input::value as input;
pub(crate) use regorus::Value as Input;
pub use regorus::admitted::{ADMITTED as BUILT_INS, Admitted as BuiltIn};
pub use runner::{InProcess, Question, Runner};

use crate::catalogue::Field;
use crate::contract::{REGO_LANGUAGE_VERSION, rego_entrypoint, rego_package};
use crate::digest::sha256_hex;
use crate::family::Family;
use literals::NamedLiteral;
use regorus::admitted::{
    ADMITTED, DOCUMENT_LEVELS, DOCUMENT_NODES, NUMBER_BYTES, RANGE_ELEMENTS, TEXT_BYTES, WALK_NODES,
};
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::{Program, RegoVM};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Bounds, Engine, PolicyLengthConfig, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

/// LIMIT: characters of a module. Source: client contract §3.4.
pub const MODULE_LIMIT_CHARS: usize = 262_144;
/// LIMIT: instructions of one evaluation; a realistic module needs some hundreds.
pub const INSTRUCTION_LIMIT: usize = 100_000;
/// LIMIT: time of one evaluation; the instructions end it long before on any machine that is not overloaded.
pub const TIME_LIMIT: Duration = Duration::from_millis(100);
/// LIMIT: nodes of a value as a tree; twice what the largest event can have. 64 bytes of text count as one more.
const TREE_LIMIT_NODES: u64 = 1 << 20;
/// LIMIT: levels of a value; twice what an event can have, and what a thread's stack surely holds.
const TREE_LIMIT_LEVELS: u64 = 256;
/// LIMIT: bits of a number: some twenty thousand digits, which are still multiplied in less than a millisecond.
const NUMBER_LIMIT_BITS: u64 = 1 << 16;
/// LIMIT: nodes that one evaluation walks inside of its instructions: some ten milliseconds; realistic modules walk thousands.
const WORK_LIMIT_NODES: u64 = 1 << 22;
/// LIMIT: bytes of the word that a module gives for why.
const REASON_LIMIT_BYTES: usize = 65_536;
/// How often the clock stops a module before it counts as stopped.
const TIME_ATTEMPTS: u32 = 3;
/// How long one evaluation takes at most where nothing holds its thread up.
pub const EVALUATION_LIMIT: Duration = TIME_LIMIT.saturating_mul(TIME_ATTEMPTS);
/// The version of the engine; part of every fingerprint.
const ENGINE: &str = "regorus 0.14.1, recording reads and failures 1, names as words 2, trees bounded 1, built-ins of texts 1, \
     values as OPA 1, patterns as Go 1";
/// The version of OPA whose language the engine speaks.
pub const OPA_VERSION: &str = "1.2.0";
/// A compiled module.
pub struct Module {
    family: Family,
    source: String,
    source_sha256: String,
    key: String,
    entrypoint: &'static str,
    program: Arc<Program>,
    /// The texts that it compares with names.
    literals: Vec<NamedLiteral>,
    warnings: Vec<Diagnostic>,
    /// The attributes of those records.
    spoken: BTreeSet<Field>,
}

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

impl Diagnostic {
    fn whole(message: impl Into<String>) -> Self {
        Self {
            line: 0,
            column: 0,
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}, column {}: {}", self.column, self.message),
        }
    }
}

/// What a module says of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the policy matches.
    pub matched: bool,
    /// Why, in the author's word.
    pub reason_code: Option<String>,
}

/// What a module says, and whether it looked at what is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleAnswer {
    pub(crate) answer: Result<Answer, Failure>,
    pub(crate) has_read_missing: bool,
}

impl ModuleAnswer {
    /// Returns that a module said nothing.
    pub fn failed(failure: Failure) -> Self {
        Self {
            answer: Err(failure),
            // What it would have read nobody knows.
            has_read_missing: true,
        }
    }
}

/// Why a module said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was stopped: too many steps, too large a value, or too much time.
    Stopped,
    /// The machine gave up.
    Failed,
    /// It was ended with the process in which it ran.
    Ended,
    /// Two rules disagreed.
    Disagreement(Diagnostic),
    /// A built-in refused its operands, or a reference went into a value that has no members.
    Refused(Diagnostic),
    /// `match` is not an object with a boolean `matched` and, if there, a text `reasonCode`.
    NoAnswer,
}

/// Returns the fingerprint of this compiler: engine, language and limits. Units: 64 hexadecimal digits.
///
/// Source: client contract §3.1 `regoCompilerFingerprint`.
pub fn compiler_fingerprint() -> String {
    let (nesting, chain, calls) = (nesting::NESTING_LIMIT, nesting::CHAIN_LIMIT, calls::CALL_LIMIT);
    let exponent = nesting::EXPONENT_DIGITS;
    let limits = format!(
        "{INSTRUCTION_LIMIT} {} {nesting} {chain} {calls} {exponent} {TREE_LIMIT_NODES} {TREE_LIMIT_LEVELS} \
         {NUMBER_LIMIT_BITS} {WORK_LIMIT_NODES} {TEXT_BYTES} {RANGE_ELEMENTS} {DOCUMENT_NODES} {DOCUMENT_LEVELS} \
         {NUMBER_BYTES} {WALK_NODES}",
        TIME_LIMIT.as_millis()
    );
    let builtins: Vec<&str> = ADMITTED.iter().map(|row| row.name).collect();
    sha256_hex(
        format!(
            "{ENGINE}\n{REGO_LANGUAGE_VERSION}\n{limits}\n{}",
            builtins.join(" ")
        )
        .as_bytes(),
    )
}

impl Module {
    /// Returns the compiled module.
    ///
    /// Errors: what is wrong with it, each with its place.
    pub fn compile(family: Family, source: &str) -> Result<Self, Vec<Diagnostic>> {
        let (Some(package), Some(entrypoint)) = (rego_package(family), rego_entrypoint(family)) else {
            return Err(vec![Diagnostic::whole("this family has no Rego modules")]);
        };
        let chars = source.chars().count();
        if chars == 0 || chars > MODULE_LIMIT_CHARS {
            return Err(vec![Diagnostic::whole(
                "the module must have 1 to 262144 characters",
            )]);
        }
        if let Some(fault) = diagnostics::of_text(source) {
            return Err(vec![fault]);
        }
        let parsed = literals::parse(source);
        let refused =
            |error: &dyn fmt::Display| diagnostics::of_compiler(parsed.as_ref(), package, &error.to_string());
        let mut engine = Engine::new();
        engine.set_policy_length_config(lengths());
        engine.set_execution_timer_config(timer(TIME_LIMIT));
        engine
            .add_policy("module.rego".into(), source.into())
            .map_err(|e| refused(&e))?;
        let Some(parsed_module) = &parsed else {
            return Err(vec![Diagnostic::whole("the module cannot be read")]);
        };
        if let Some(fault) = diagnostics::of_module(parsed_module, package) {
            return Err(vec![fault]);
        }
        let policy = engine
            .compile_with_entrypoint(&entrypoint.into())
            .map_err(|e| refused(&e))?;
        let program = Compiler::compile_from_policy(&policy, &[entrypoint]).map_err(|e| refused(&e))?;
        let forbidden = diagnostics::forbidden(&program);
        if !forbidden.is_empty() {
            return Err(forbidden);
        }
        if let Some(fault) = calls::fault(&program) {
            return Err(vec![Diagnostic::whole(fault)]);
        }
        let names: Vec<&str> = package.split('.').collect();
        let literals::ModuleLiterals { literals, warnings } = literals::of(parsed_module, &names);
        let source_sha256 = sha256_hex(source.as_bytes());
        Ok(Self {
            family,
            source: source.to_owned(),
            key: format!("{} {source_sha256}", family.word()),
            source_sha256,
            entrypoint,
            program,
            spoken: literals.iter().map(|literal| literal.field).collect(),
            literals,
            warnings,
        })
    }

    /// Returns what the author should change although the module compiles: texts that it compares with ids of records, and
    /// texts that no match key is and that it looks for among match keys.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.warnings.clone()
    }

    /// Returns the attributes whose records the module has to be asked about by each of their words.
    pub(crate) fn spoken(&self) -> &BTreeSet<Field> {
        &self.spoken
    }

    /// Returns the inputs that the module is asked about as well, when this is an event's own (RG-5).
    pub(crate) fn others(&self, input: &Value, spoken: &[AttributeNames]) -> OtherInputs {
        attribute_names::others(&self.literals, input, spoken)
    }

    /// Returns whose package it is.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the module as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns what tells it from every other module of this program.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the SHA-256 of the module's UTF-8 bytes, in hexadecimal.
    pub fn source_sha256(&self) -> &str {
        &self.source_sha256
    }

    /// Returns what tells this compiled module from every other: compiler, family and source.
    pub fn artifact_fingerprint(&self) -> String {
        let parts = [&compiler_fingerprint(), self.family.word(), &self.source_sha256];
        sha256_hex(parts.join("\n").as_bytes())
    }

    /// Returns what the module says of an input, in this process; see [`Self::evaluate_by`].
    ///
    /// Errors: it was stopped, it failed, or it gave no answer; the caller counts it as matched (RG-1).
    pub fn evaluate(&self, input: &serde_json::Value) -> Result<Answer, Failure> {
        self.evaluate_by(&InProcess, input)
    }

    /// Returns what the module says of an input. Where it compares an id with a text, it is also asked with each of the words
    /// that stand beside the id (`identity.user_words`, …) in place of it.
    ///
    /// Errors: it was stopped, it failed, or it gave no answer; the caller counts it as matched (RG-1).
    pub fn evaluate_by(&self, runner: &dyn Runner, input: &serde_json::Value) -> Result<Answer, Failure> {
        // INVARIANT RG-1: the engine's own conversion can make a whole document undefined.
        let own = input::value(input);
        let ask = |input: &Value| {
            let question = Question {
                module: self,
                input,
                missing: &[],
            };
            let said = runner.ask(&[question], &|| true).pop();
            // There is nobody who runs modules.
            said.map_or(Err(Failure::Ended), |saying| saying.answer)
        };
        let mut said = ask(&own);
        if self.spoken.is_empty() {
            return said;
        }
        let others = self.others(&own, &attribute_names::of_input(input, &self.spoken));
        for other in others.inputs {
            if said.as_ref().is_ok_and(|answer| answer.matched) {
                return said;
            }
            let answer = ask(&other);
            if answer.as_ref().is_ok_and(|answer| answer.matched) {
                return answer;
            }
            // The first failure stays, unless another input matches.
            said = said.and(answer);
        }
        if others.is_cut && said.as_ref().is_ok_and(|answer| !answer.matched) {
            return Err(Failure::Stopped);
        }
        said
    }

    /// Returns what the module says of an input of which these paths exist, and nobody knows their values.
    pub(crate) fn ask(&self, input: &Value, missing: &[Vec<&str>]) -> ModuleAnswer {
        self.ask_within(TIME_LIMIT, input, missing)
    }

    fn ask_within(&self, limit: Duration, input: &Value, missing: &[Vec<&str>]) -> ModuleAnswer {
        use regorus::rvm::vm::{Cause, VmError as E};
        let run = || {
            let mut vm = RegoVM::new();
            vm.set_max_instructions(INSTRUCTION_LIMIT);
            vm.set_execution_timer_config(Some(timer(limit)));
            vm.set_bounds(bounds());
            vm.load_program(Arc::clone(&self.program));
            vm.set_input(input.clone());
            vm.set_missing(missing);
            let value = vm.execute_entry_point_by_name(self.entrypoint)?;
            Ok((value, vm.failure().cloned(), vm.has_read_missing()))
        };
        let is_late = |error: &E| matches!(error, E::TimeLimitExceeded { .. });
        let (value, failure, has_read_missing) = match patiently(run, is_late) {
            Ok(found) => found,
            Err(error) => {
                let failure = match error {
                    E::InstructionLimitExceeded { .. }
                    | E::ValueTooLarge { .. }
                    | E::WorkLimitExceeded { .. }
                    | E::TimeLimitExceeded { .. } => Failure::Stopped,
                    _ => Failure::Failed,
                };
                // What it would have read nobody knows.
                return ModuleAnswer {
                    answer: Err(failure),
                    has_read_missing: !missing.is_empty(),
                };
            }
        };
        let answer = match (answer(&value), failure) {
            // INVARIANT RG-3: a match that was found stands.
            (Ok(answer), _) if answer.matched => Ok(answer),
            (_, Some(failure)) => {
                let place = refusal::diagnostic(&self.program, &failure);
                Err(match failure.cause {
                    Cause::Disagreement => Failure::Disagreement(place),
                    _ => Failure::Refused(place),
                })
            }
            (answer, None) => answer,
        };
        ModuleAnswer {
            answer,
            has_read_missing,
        }
    }
}

/// Runs a module again that the clock stopped: a thread that had to wait for a processor is no module that takes long.
fn patiently<T, E>(run: impl Fn() -> Result<T, E>, is_late: impl Fn(&E) -> bool) -> Result<T, E> {
    let mut result = run();
    for _ in 1..TIME_ATTEMPTS {
        if !result.as_ref().is_err_and(&is_late) {
            break;
        }
        result = run();
    }
    result
}

fn bounds() -> Bounds {
    Bounds {
        nodes: TREE_LIMIT_NODES,
        depth: TREE_LIMIT_LEVELS,
        number_bits: NUMBER_LIMIT_BITS,
        work: WORK_LIMIT_NODES,
    }
}

fn timer(limit: Duration) -> ExecutionTimerConfig {
    ExecutionTimerConfig {
        limit,
        check_interval: NonZeroU32::MIN,
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({} {})", self.family.word(), self.source_sha256)
    }
}

fn answer(value: &Value) -> Result<Answer, Failure> {
    if *value == Value::Undefined {
        return Ok(Answer {
            matched: false,
            reason_code: None,
        });
    }
    let object = value.as_object().map_err(|_| Failure::NoAnswer)?;
    let member = |name: &str| object.get(&Value::from(name));
    let matched = member("matched").and_then(|v| v.as_bool().ok().copied());
    let reason_code = match member("reasonCode") {
        None => None,
        Some(code) => {
            let code = code.as_string().map_err(|_| Failure::NoAnswer)?;
            if code.len() > REASON_LIMIT_BYTES {
                return Err(Failure::NoAnswer);
            }
            Some(code.to_string())
        }
    };
    Ok(Answer {
        matched: matched.ok_or(Failure::NoAnswer)?,
        reason_code,
    })
}

fn lengths() -> PolicyLengthConfig {
    // The contract limits the whole module; it says nothing of lines.
    PolicyLengthConfig {
        max_col: NonZeroU32::MAX,
        max_file_bytes: NonZeroUsize::MAX,
        max_lines: NonZeroUsize::MAX,
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod builtins_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;
