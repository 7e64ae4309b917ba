//! `--jq`: what a program of jq makes of an answer, read by jaq.
//!
//! A program sees the answer and nothing else: what reads the environment or more input, writes to standard error, or ends the process
//! is not there, and no file can be included. One that comes to no end is given up: the process ends with the command, and what still
//! runs with it.

use super::failure::Failure;
use super::terminal::Terminal;
use clap::{Arg, ArgMatches};
use jaq_core::load::{Arena, File, Loader, lex, parse};
use jaq_core::{Compiler, Ctx, Native, Vars, compile, data, load};
use jaq_json::{Val, read};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// LIMIT: bytes of a program, and of what comes out of one answer.
const MAX_PROGRAM: usize = 64 * 1024;
const MAX_OUTPUT: usize = 64 * 1024 * 1024;
/// LIMIT: how long a program may take for one answer. Ours: a page of the largest list takes less than a second.
const MAX_TIME: Duration = Duration::from_secs(20);
/// What a program may nest: as much as on the thread that the process begins with.
const STACK: usize = 8 * 1024 * 1024;

/// What a program must not do, by the names of what is built in, and what rests on them.
const CLOSED: [&str; 8] = [
    "env",
    "debug_empty",
    "stderr_empty",
    "halt",
    "halt_error",
    "debug",
    "stderr",
    "input_line_number",
];

type Data = data::JustLut<Val>;
type Program = compile::Filter<Native<Data>>;

/// A program that was read once, so that a wrong one is refused before anything is asked for.
#[derive(Clone, Debug)]
pub struct JqFilter {
    code: String,
    /// Whether it has read an answer.
    has_read: Arc<AtomicBool>,
}

/// Returns the flag.
pub fn jq_arg() -> Arg {
    Arg::new("global.jq")
        .long("jq")
        .value_name("EXPR")
        .value_parser(JqFilter::read)
        .help("Prints what this program of jq makes of the JSON; texts without quotes")
}

/// Makes the terminal print JSON through the program that was named, if one was.
///
/// Errors: usage, with a form of the answer that is not JSON.
pub fn prepare(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let Ok(Some(filter)) = matches.try_get_one::<JqFilter>("global.jq") else {
        return Ok(());
    };
    let form = matches.try_get_one::<String>("global.output").ok().flatten();
    if let Some(form) = form.filter(|form| *form != "json") {
        return Err(Failure::usage(format!(
            "--jq reads JSON: leave out --output {form}, or say --output json"
        )));
    }
    // A command runs once in a process; the first program stays.
    let _ = terminal.jq.set(filter.clone());
    Ok(())
}

/// Says it where a program was named and the command printed nothing that it could read.
pub fn warn_unread(terminal: &Terminal) {
    let filter = terminal.jq.get();
    if filter.is_some_and(|filter| !filter.has_read.load(Ordering::Relaxed)) {
        terminal.note("warning: --jq had nothing to read: this command printed no JSON document");
    }
}

impl JqFilter {
    /// Reads a program. Errors: a sentence that names the place in it.
    fn read(code: &str) -> Result<Self, String> {
        if code.len() > MAX_PROGRAM {
            return Err("a program has at most 64 KiB".to_owned());
        }
        program(code)?;
        Ok(Self {
            code: code.to_owned(),
            has_read: Arc::default(),
        })
    }

    /// Returns what comes out of an answer: a line for each value, texts as they are.
    ///
    /// Errors: a sentence about what cannot be done with this answer.
    pub fn apply(&self, answer: &Value) -> Result<String, String> {
        self.has_read.store(true, Ordering::Relaxed);
        self.within(MAX_TIME, answer)
    }

    fn within(&self, time: Duration, answer: &Value) -> Result<String, String> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (code, answer) = (self.code.clone(), answer.to_string());
        // It says nothing while it goes round, so that nothing but another thread can tell that the time is over.
        let work = move || drop(sender.send(run(&code, &answer)));
        let thread = thread::Builder::new().name("jq".to_owned()).stack_size(STACK);
        thread
            .spawn(work)
            .map_err(|error| format!("the system gives no thread for it: {error}"))?;
        match receiver.recv_timeout(time) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(format!(
                "the program came to no end within {} seconds",
                time.as_secs()
            )),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err("the program could not be run to its end".to_owned())
            }
        }
    }
}

fn run(code: &str, answer: &str) -> Result<String, String> {
    let program = program(code)?;
    let input = read::parse_single(answer.as_bytes()).map_err(|error| error.to_string())?;
    let context = Ctx::<Data>::new(&program.lut, Vars::new([]));
    let mut text = String::new();
    for value in program.id.run((context, input)) {
        match value {
            Ok(Val::TStr(value)) => text.push_str(&String::from_utf8_lossy(&value)),
            Ok(value) => text.push_str(&value.to_string()),
            Err(stop) => {
                let why = stop.get_err().map(|error| error.to_string());
                return Err(why.unwrap_or_else(|_| "the program ends outside of its loop".to_owned()));
            }
        }
        text.push('\n');
        if text.len() > MAX_OUTPUT {
            return Err("more than 64 MiB come out".to_owned());
        }
    }
    Ok(text)
}

fn program(code: &str) -> Result<Program, String> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let defs = defs.filter(|def| !CLOSED.contains(&def.name));
    let funs = jaq_core::funs::<Data>()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let funs = funs.filter(|(name, ..)| !CLOSED.contains(name));
    let arena = Arena::default();
    let file = File { code, path: () };
    let modules = Loader::new(defs).load(&arena, file);
    let modules = modules.map_err(|errors| {
        let first = errors.first().map(|(_, error)| match error {
            load::Error::Io(imports) => imports
                .first()
                .map(|(path, _)| at(code, path, "files cannot be included")),
            load::Error::Lex(errors) => errors.first().map(|error| unlexed(code, error)),
            load::Error::Parse(errors) => errors.first().map(|error| unparsed(code, error)),
        });
        first.flatten().unwrap_or_else(|| UNREADABLE.to_owned())
    })?;
    let compiled = Compiler::default().with_funs(funs).compile(modules);
    compiled.map_err(|errors| {
        let first = errors.first().and_then(|(_, errors)| errors.first());
        first.map_or_else(
            || UNREADABLE.to_owned(),
            |(name, kind)| at(code, name, &format!("there is no {} {name}", kind.as_str())),
        )
    })
}

const UNREADABLE: &str = "is no program of jq";

fn unlexed(code: &str, (expected, rest): &lex::Error<&str>) -> String {
    at(code, rest, &format!("expected {}", expected.as_str()))
}

fn unparsed(code: &str, (expected, found): &parse::Error<&str>) -> String {
    at(code, found, &format!("expected {}", expected.as_str()))
}

/// Says where in a program something is: the place of its first character, from 1.
fn at(code: &str, part: &str, what: &str) -> String {
    let offset = (part.as_ptr() as usize).wrapping_sub(code.as_ptr() as usize);
    let before = code.get(..offset).unwrap_or(code);
    format!("at character {}: {what}", before.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_program_that_comes_to_no_end_is_given_up() {
        let filter = |code: &str| JqFilter::read(code).unwrap();
        let soon = Duration::from_millis(300);
        for endless in ["last(repeat(1))", "[limit(1; repeat(1) | select(. == 2))]"] {
            let said = filter(endless).within(soon, &json!({})).unwrap_err();
            assert_eq!(said, "the program came to no end within 0 seconds");
        }
        let said = filter(".names[]").apply(&json!({ "names": ["a", 7] }));
        assert_eq!(said.unwrap(), "a\n7\n");
    }
}
