//! `provost hook run CLIENT`: reads an event, asks, answers.
//!
//! Keeps HK-2, HK-4 and HK-6. The words are read by hand, because the command line of the program takes longer to make than all of this.

use super::ask::{Ask, ask_here};
use super::caller;
use super::settings::{self, Homes, HookSettings};
use crate::cli::{Failure, Terminal};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use provost_hooks::{
    Answer, CLIENT_SECONDS, Client, Decision, Message, Mode, Question, answer, hear, undecided,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// LIMIT: bytes that are read of standard input; a longer event is not understood.
const MAX_INPUT: u64 = 17 << 20;
const NEXT: &str = "run: provost hook doctor";

/// Returns the command, for its help: [`run_if_asked`] stands before it.
pub fn command() -> Command {
    Command::new("run")
        .about("Answer one event of a client; clients start this, people do not")
        .args([
            client_arg().required(true),
            super::install::mode_arg(),
            config_arg(),
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(1..=600))
                .help("How long the client waits; the hook answers after 80 % of it [default: 5]"),
        ])
}

/// Returns the argument that names a client.
pub fn client_arg() -> Arg {
    Arg::new("client")
        .value_name("CLIENT")
        .value_parser(PossibleValuesParser::new(Client::ALL.map(Client::word)))
        .help("The client")
}

/// Returns the flag that names the file of the hook.
pub fn config_arg() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help("The file of the hook [default: /etc/provost/hook.toml, else hook.toml beside the profiles]")
}

/// What the command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Invocation {
    client: Client,
    mode: Mode,
    config: Option<PathBuf>,
    timeout: Duration,
}

/// Answers a client when these are the words of a hook: `hook run CLIENT …`. `None` for all other words, and for those who ask for help.
pub fn run_if_asked(words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut words = words.skip(1);
    if words.next()? != "hook" || words.next()? != "run" {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    let asks_for_help = |word: &OsString| word == "--help" || word == "-h";
    if words.is_empty() || words.iter().any(asks_for_help) {
        return None;
    }
    let answer = match invocation(&words) {
        Ok(invocation) => answered(
            &invocation,
            Box::new(std::io::stdin()),
            Homes::of(&Terminal::system()),
        ),
        Err(why) => Answer::refusal(&format!("{why}; {NEXT}")),
    };
    Some(ExitCode::from(spoken(
        &answer,
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    )))
}

/// Does what the words of the command line say, through the terminal of other commands.
pub fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let mode = matches
        .get_one::<String>("mode")
        .and_then(|word| Mode::named(word));
    let client = matches
        .get_one::<String>("client")
        .and_then(|word| Client::named(word));
    let invocation = Invocation {
        client: client.ok_or_else(|| Failure::usage("say which client"))?,
        mode: mode.unwrap_or(Mode::Enforce),
        config: matches.get_one("config").cloned(),
        timeout: Duration::from_secs(matches.get_one("timeout").copied().unwrap_or(CLIENT_SECONDS)),
    };
    let (input, _) = terminal.input("-".as_ref())?;
    let answer = answered(&invocation, input, Homes::of(terminal));
    terminal.print(&answer.stdout)?;
    if answer.exit == 0 {
        return Ok(());
    }
    Err(Failure::usage(answer.stderr.trim_end()))
}

/// Reads the words of a client's command line.
///
/// Errors: what is wrong; then nobody knows the mode, and it is enforced.
fn invocation(words: &[OsString]) -> Result<Invocation, String> {
    let mut words = words.iter();
    let name = words.next().and_then(|word| word.to_str()).unwrap_or_default();
    let client =
        Client::named(name).ok_or("the client of the hook is not known: claude-code, codex, gemini")?;
    let mut invocation = Invocation {
        client,
        mode: Mode::Enforce,
        config: None,
        timeout: Duration::from_secs(CLIENT_SECONDS),
    };
    while let Some(flag) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{} needs a value", flag.display()))?;
        let text = value.to_str().unwrap_or_default();
        match flag.to_str().unwrap_or_default() {
            "--mode" => invocation.mode = Mode::named(text).ok_or("--mode is enforce or monitor")?,
            "--config" => invocation.config = Some(PathBuf::from(value)),
            "--timeout" => {
                let seconds = text.parse().ok().filter(|seconds| (1..=600).contains(seconds));
                invocation.timeout = Duration::from_secs(seconds.ok_or("--timeout is 1 to 600 seconds")?);
            }
            _ => return Err(format!("{} is no flag of the hook", flag.display())),
        }
    }
    Ok(invocation)
}

/// Returns the answer in time, whatever becomes of the work.
///
/// ```text
/// 0 s       70 %                        80 %                     client's limit
/// work ──── the request ends ── answer  main answers for it      (never reached)
/// ```
fn answered(invocation: &Invocation, input: Box<dyn Read + Send>, homes: Homes) -> Answer {
    let heard: Arc<Mutex<Option<Question>>> = Arc::default();
    let (sender, receiver) = sync_channel(1);
    let work = {
        let (invocation, heard) = (invocation.clone(), heard.clone());
        move || {
            let answer = worked(&invocation, input, &homes, &heard);
            // Nobody listens any more when it is late.
            let _ = sender.send(answer);
        }
    };
    let failed = |why: &str| {
        let question = heard.lock().unwrap_or_else(PoisonError::into_inner).take();
        undecided(question.as_ref(), invocation.mode, &format!("{why}; {NEXT}"))
    };
    if let Err(error) = thread::Builder::new().name("hook".to_owned()).spawn(work) {
        return failed(&format!("no thread could be started: {error}"));
    }
    match receiver.recv_timeout(invocation.timeout.mul_f64(0.8)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => failed("there was no decision in time"),
        Err(RecvTimeoutError::Disconnected) => failed("the hook broke"),
    }
}

fn worked(
    invocation: &Invocation,
    input: Box<dyn Read + Send>,
    homes: &Homes,
    heard: &Mutex<Option<Question>>,
) -> Answer {
    let mut bytes = Vec::new();
    let failed = |question: Option<&Question>, why: &str| {
        undecided(question, invocation.mode, &format!("{why}; {NEXT}"))
    };
    if let Err(error) = input.take(MAX_INPUT).read_to_end(&mut bytes) {
        return failed(None, &format!("the event cannot be read: {error}"));
    }
    let question = match hear(invocation.client, &bytes) {
        Ok(Message::Question(question)) => *question,
        Ok(Message::Remark) => return Answer::pass(),
        Err(unheard) => return failed(None, &unheard.0),
    };
    *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(question.clone());
    match decided(invocation, &question, homes) {
        Ok(decision) => answer(&question, invocation.mode, &decision),
        Err(why) => failed(Some(&question), &why),
    }
}

fn decided(invocation: &Invocation, question: &Question, homes: &Homes) -> Result<Decision, String> {
    let settings = HookSettings::load(&settings::place(invocation.config.as_deref(), homes)?)?;
    let kept = settings.token(homes)?;
    let user = caller::word(&settings);
    let answer = ask_here(&Ask {
        settings: &settings,
        token: &kept.token,
        path: "policies/decisions",
        body: Some(question.request(user.as_deref(), caller::host().as_deref(), invocation.mode)),
        limit: invocation.timeout.mul_f64(0.7),
    })?;
    Decision::read(&answer, question.count()).map_err(|why| format!("{}: {why}", settings.url))
}

/// Writes the answer once, and returns the exit code. An answer that could not be written is a refusal.
fn spoken(answer: &Answer, stdout: &mut dyn Write, stderr: &mut dyn Write) -> u8 {
    let written = stdout.write_all(&answer.stdout).and_then(|()| stdout.flush());
    if let Err(error) = written {
        let _ = stderr.write_all(format!("provost: the answer could not be written: {error}\n").as_bytes());
        return 2;
    }
    let _ = stderr.write_all(answer.stderr.as_bytes());
    answer.exit
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_words_of_a_client_are_read_and_others_are_refused() {
        let read = invocation(&words("codex --mode monitor --timeout 9 --config /x")).unwrap();
        assert_eq!(
            (read.client, read.mode, read.timeout.as_secs()),
            (Client::Codex, Mode::Monitor, 9)
        );
        assert_eq!(invocation(&words("gemini")).unwrap().mode, Mode::Enforce);
        for line in [
            "cursor",
            "codex --mode off",
            "codex --mode",
            "codex --quiet yes",
            "codex --timeout 0",
        ] {
            assert!(invocation(&words(line)).is_err(), "{line}");
        }
        for line in [
            "provost",
            "provost hook",
            "provost hook install codex",
            "provost hook run",
            "provost hook run codex --help",
        ] {
            assert!(run_if_asked(words(line).into_iter()).is_none(), "{line}");
        }
    }

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no space left"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_that_cannot_be_written_is_a_refusal() {
        let mut said = Vec::new();
        assert_eq!(spoken(&Answer::pass(), &mut Broken, &mut said), 2);
        assert!(!said.is_empty());
    }

    /// Never ends, as the input of a client that hangs.
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }
    }

    /// Proves HK-6.
    #[test]
    fn work_that_does_not_end_is_answered_for() {
        let invocation = Invocation {
            timeout: Duration::from_millis(50),
            ..invocation(&words("claude-code")).unwrap()
        };
        let late = answered(&invocation, Box::new(Endless), Homes::default());
        assert_eq!(late.exit, 2);
        assert!(late.stderr.contains("no decision in time"), "{late:?}");
    }
}
