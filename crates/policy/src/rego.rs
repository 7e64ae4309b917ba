//! Rego modules: the escape hatch of the condition language, on the `regorus` virtual machine.
//!
//! A module is a predicate only: the rule `match` of its family's package says `{matched, reasonCode?}`; what
//! then happens stands in the definition. `input` is the nested form of the attributes' names, with `stage`.
//!
//! ```text
//!   match is an object with a boolean `matched`            that is the answer
//!   match is undefined                                     not matched
//!   anything else, rules that disagree, a limit reached    a failure: the policy counts as matched (D9.10)
//! ```
//!
//! An error of a built-in (`count(5)`) is undefined, as it is in OPA: `default` and `not` see it. An author who wants
//! it to match says so.
//!
//! How a module is stopped:
//!
//! - Instructions are counted: the same module on the same input is stopped at the same place on every machine,
//!   so that a backtest gives the same result twice. Time is limited too, as a second line.
//! - Built-ins whose single call can make something much larger than its input (`numbers.range`, `replace`,
//!   `concat`, `sprintf`, …) are refused when the module is compiled, as are those that would read a clock, the
//!   network or a random number: what remains grows step by step, and steps are counted and timed.
//!
//! - What would make the engine call itself until the stack ends, and with it the whole program, is refused when the
//!   module is compiled: expressions of hundreds of operators, and rules that call themselves or one another too deep.
//!
//! - Numbers are exact, and so as long as their exponents say: large ones are refused in a module, and so are the
//!   built-ins that read numbers from texts (`json.unmarshal`). An event's numbers are those of its document.
//!
//! Not stopped: one instruction that works long by itself. A module can build a value that holds the same part twice, 24
//! times over, and compare it with another one; the comparison takes 2^24 steps inside one instruction, and 2^40 would
//! take hours. The engine has no limit for it. Only somebody who may write policies can do this to the organization's
//! own decisions; who evaluates modules of strangers has to do it in a process that can be ended.
//!
//! Rules that disagree are an error in OPA, and undefined on the virtual machine. A module that has such rules (several
//! definitions of one rule, with different values) is therefore asked again by the interpreter, which reports the
//! error, whenever the machine says that it does not match.
//!
//! Source: client contract §3.10; D9.10.
//!
//! INVARIANT RG-2: no module ends the program: compiling and evaluating need a bounded part of a thread's stack.
//! INVARIANT RG-1: a module that is stopped, contradicts itself or gives no answer is never "not matched".
//!
//! Absent on purpose: data documents, several modules in one policy, tracing, a limit on bytes (it would need an
//! allocator of its own for the whole program; time and steps bound what a module can allocate).

mod calls;
mod input;
mod nesting;

pub(crate) use input::value as input;

use crate::contract::{REGO_LANGUAGE_VERSION, rego_entrypoint, rego_package};
use crate::digest::sha256_hex;
use crate::family::Family;
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::program::{RuleInfo, RuleType};
use regorus::rvm::{Program, RegoVM};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{CompiledPolicy, Engine, PolicyLengthConfig, Value};
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
/// How often the clock stops a module before it counts as stopped.
const TIME_ATTEMPTS: u32 = 3;
/// The version of the engine; part of every fingerprint.
const ENGINE: &str = "regorus 0.14.1";
/// The version of OPA whose language the engine speaks.
pub const OPA_VERSION: &str = "1.2.0";
/// The built-ins that a module can call: none makes more than it is given.
const BUILTINS: [&str; 60] = [
    "__builtin_sets.intersection",
    "__builtin_sets.union",
    "abs",
    "array.reverse",
    "array.slice",
    "bits.and",
    "bits.negate",
    "bits.or",
    "bits.xor",
    "ceil",
    "contains",
    "count",
    "endswith",
    "floor",
    "format_int",
    "glob.match",
    "glob.quote_meta",
    "indexof",
    "indexof_n",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "json.filter",
    "json.remove",
    "lower",
    "max",
    "min",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "object.subset",
    "object.union",
    "regex.find_n",
    "regex.is_valid",
    "regex.match",
    "regex.split",
    "round",
    "sort",
    "split",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "strings.reverse",
    "substring",
    "sum",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "upper",
];

/// A compiled module.
pub struct Module {
    family: Family,
    source_sha256: String,
    entrypoint: &'static str,
    program: Arc<Program>,
    policy: CompiledPolicy,
    /// The interpreter, where rules may disagree.
    interpreter: Option<Box<Engine>>,
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

/// Why a module said nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was stopped: too many steps, or too much time.
    Stopped,
    /// Two rules disagreed, or the machine gave up.
    Failed,
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
        "{INSTRUCTION_LIMIT} {} {nesting} {chain} {calls} {exponent}",
        TIME_LIMIT.as_millis()
    );
    sha256_hex(
        format!(
            "{ENGINE}\n{REGO_LANGUAGE_VERSION}\n{limits}\n{}",
            BUILTINS.join(" ")
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
        if nesting::is_too_much(source) {
            let message =
                "the module nests brackets deeper than 10 levels, or too much of it stands in brackets";
            return Err(vec![Diagnostic::whole(message)]);
        }
        if nesting::is_too_long(source) {
            let message = "an expression of the module has more than 128 operators, references and brackets";
            return Err(vec![Diagnostic::whole(message)]);
        }
        if nesting::has_large_exponent(source) {
            let message = "a number of the module has an exponent of more than three digits";
            return Err(vec![Diagnostic::whole(message)]);
        }
        let refused = |error: &dyn fmt::Display| vec![diagnostic(&error.to_string())];
        let mut engine = Engine::new();
        engine.set_policy_length_config(lengths());
        engine.set_execution_timer_config(timer());
        let found = engine
            .add_policy("module.rego".into(), source.into())
            .map_err(|e| refused(&e))?;
        if found != format!("data.{package}") {
            return Err(vec![Diagnostic::whole(format!("the package must be {package}"))]);
        }
        let policy = engine
            .compile_with_entrypoint(&entrypoint.into())
            .map_err(|e| refused(&e))?;
        let program = Compiler::compile_from_policy(&policy, &[entrypoint]).map_err(|e| refused(&e))?;
        let mut forbidden: Vec<&str> = program
            .builtin_info_table
            .iter()
            .map(|b| b.name.as_str())
            .collect();
        forbidden.retain(|name| BUILTINS.binary_search(name).is_err());
        forbidden.sort_unstable();
        forbidden.dedup();
        if !forbidden.is_empty() {
            let message = |name| Diagnostic::whole(format!("the built-in {name} cannot be used in a policy"));
            return Err(forbidden.into_iter().map(message).collect());
        }
        if let Some(fault) = calls::fault(&program) {
            return Err(vec![Diagnostic::whole(fault)]);
        }
        let may_disagree = program.rule_infos.iter().any(may_disagree);
        Ok(Self {
            family,
            source_sha256: sha256_hex(source.as_bytes()),
            entrypoint,
            program,
            policy,
            interpreter: may_disagree.then(|| Box::new(engine)),
        })
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

    /// Returns what the module says of an input.
    ///
    /// Errors: it was stopped, it failed, or it gave no answer; the caller counts it as matched (RG-1).
    pub fn evaluate(&self, input: &serde_json::Value) -> Result<Answer, Failure> {
        // INVARIANT RG-1: the engine's own conversion can make a whole document undefined.
        self.evaluate_value(&input::value(input))
    }

    pub(crate) fn evaluate_value(&self, input: &Value) -> Result<Answer, Failure> {
        use regorus::rvm::vm::VmError as E;
        let run = || {
            let mut vm = RegoVM::new_with_policy(self.policy.clone());
            vm.set_max_instructions(INSTRUCTION_LIMIT);
            vm.set_execution_timer_config(Some(timer()));
            vm.load_program(Arc::clone(&self.program));
            vm.set_input(input.clone());
            vm.execute_entry_point_by_name(self.entrypoint)
        };
        let is_late = |error: &E| matches!(error, E::TimeLimitExceeded { .. });
        let value = patiently(run, is_late).map_err(|error| match error {
            E::InstructionLimitExceeded { .. } | E::TimeLimitExceeded { .. } => Failure::Stopped,
            _ => Failure::Failed,
        })?;
        match (answer(&value)?, &self.interpreter) {
            // INVARIANT RG-1: rules that disagree look undefined.
            (Answer { matched: false, .. }, Some(interpreter)) => self.interpret(interpreter, input),
            (answer, _) => Ok(answer),
        }
    }

    fn interpret(&self, interpreter: &Engine, input: &Value) -> Result<Answer, Failure> {
        let run = || {
            let mut engine = interpreter.clone();
            engine.set_input(input.clone());
            let value = engine.eval_rule(self.entrypoint.to_owned());
            value.map_err(|error| match error.downcast_ref::<regorus::LimitError>() {
                Some(limit) => (
                    Failure::Stopped,
                    matches!(limit, regorus::LimitError::TimeLimitExceeded { .. }),
                ),
                None => (Failure::Failed, false),
            })
        };
        let value = patiently(run, |(_, is_late)| *is_late).map_err(|(failure, _)| failure)?;
        answer(&value)
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

/// Returns whether a rule has several values to choose from.
fn may_disagree(rule: &RuleInfo) -> bool {
    matches!(rule.rule_type, RuleType::Complete)
        && rule.definitions.len() > 1
        && !rule.early_exit_on_first_success
}

fn timer() -> ExecutionTimerConfig {
    ExecutionTimerConfig {
        limit: TIME_LIMIT,
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
        Some(code) => Some(code.as_string().map_err(|_| Failure::NoAnswer)?.to_string()),
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

/// Returns the place and the sentence of an error of the engine, whose text shows the source between them.
fn diagnostic(text: &str) -> Diagnostic {
    let place = text.split_once("--> ").and_then(|(_, rest)| rest.lines().next());
    let mut numbers = place
        .into_iter()
        .flat_map(|place| place.rsplit(':'))
        .map(|n| n.trim().parse().unwrap_or(0));
    let column = numbers.next().unwrap_or(0);
    let line = numbers.next().unwrap_or(0);
    let sentence = text.rsplit_once("error: ").map_or(text, |(_, sentence)| sentence);
    let message: String = sentence.trim().chars().take(400).collect();
    Diagnostic {
        line,
        column,
        message,
    }
}

#[cfg(test)]
mod tests;
