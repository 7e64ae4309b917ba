//! `provost hook run CLIENT`: reads an event, asks, answers.
//!
//! Keeps HK-2, HK-4 and HK-6. The words are read by hand, because the command line of the program takes longer to make than all of this.

use super::ask::{Ask, ask_here};
use super::caller;
use super::desk::{Desk, quarantine_of_machine, strongest};
use super::settings::{self, Homes, HookSettings};
use crate::cli::{Failure, Terminal};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use provost_agent::Quarantine;
use provost_agent::desk::{Intent, MOST_PAYLOAD, Told};
use provost_bundle::{HookMode, OnUnknown};
use provost_hooks::{
    Answer, CLIENT_SECONDS, Client, Decision, Message, Mode, Question, answer, hear, let_pass, undecided,
};
use provost_words::withheld::without_secrets;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// LIMIT: bytes that are read of standard input; a longer event is not understood.
const MAX_INPUT: u64 = 17 << 20;
/// How much of the client's time the agent has. One that is absent fails at once; one that looks at a configuration for another call needs its
/// time, and a server that is asked in its place does not know for which MCP server a call is.
const SHARE_OF_DESK: f64 = 0.2;
const NEXT: &str = "run: provost hook doctor";
/// What a hook that only looks on says on a machine that is held apart.
const WOULD_BLOCK: &str = "provost (monitor): this machine is held apart (quarantined); a hook that enforces would let nothing pass";

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

/// Why a call of a server of MCP does not pass without the agent where some are denied.
const DENIES: &str = "MCP servers are denied here, and without the agent of this machine nobody can say whether this is one of them; run: provost agent doctor";

/// What is known of the work by whoever answers for it.
#[derive(Clone, Debug, Default)]
struct Heard {
    question: Option<Question>,
    /// What counts; unknown where not even the file of the mode could be looked at.
    mode: Option<Mode>,
}

/// Returns the answer in time, whatever becomes of the work.
///
/// ```text
/// 0 s        5 %                70 % behind it              3 % more          80 %                     client's limit
/// the agent ── else the server ── the request ends ── what holds ── answer    main answers for it      (never reached)
/// ```
fn answered(invocation: &Invocation, input: Box<dyn Read + Send>, homes: Homes) -> Answer {
    let heard: Arc<Mutex<Heard>> = Arc::default();
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
        let heard = std::mem::take(&mut *locked(&heard));
        // Whose mode nobody could look up may enforce.
        let mode = heard.mode.unwrap_or(Mode::Enforce);
        undecided(heard.question.as_ref(), mode, &format!("{why}; {NEXT}"))
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

fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn worked(
    invocation: &Invocation,
    input: Box<dyn Read + Send>,
    homes: &Homes,
    heard: &Mutex<Heard>,
) -> Answer {
    let registration = Registration::read(invocation, homes);
    decided_by(&registration, invocation, input, homes, heard)
}

/// Keeps LJ-9 and LJ-13: the agent first, then the server, then what holds, and then nothing passes where it is enforced.
fn decided_by(
    registration: &Registration,
    invocation: &Invocation,
    input: Box<dyn Read + Send>,
    homes: &Homes,
    heard: &Mutex<Heard>,
) -> Answer {
    let mode = registration.mode;
    locked(heard).mode = Some(mode);
    let mut bytes = Vec::new();
    let failed =
        |question: Option<&Question>, why: &str| undecided(question, mode, &format!("{why}; {NEXT}"));
    if let Err(error) = input.take(MAX_INPUT).read_to_end(&mut bytes) {
        return failed(None, &format!("the event cannot be read: {error}"));
    }
    let question = match hear(invocation.client, &bytes) {
        Ok(Message::Question(question)) => *question,
        Ok(Message::Remark) => return Answer::pass(),
        Err(unheard) => return failed(None, &unheard.0),
    };
    locked(heard).question = Some(question.clone());
    let told = registration.ask(invocation, Intent::Judge, &bytes, SHARE_OF_DESK);
    let mode = told.as_ref().map_or(mode, |told| strongest(mode, told.mode));
    locked(heard).mode = Some(mode);
    let held = registration
        .quarantine
        .max(told.as_ref().and_then(|told| told.quarantine));
    let Some(quarantine) = held else {
        if let Some(passed) = told.as_ref().and_then(|told| bypassed(told, &question)) {
            return passed;
        }
        return judged(registration, invocation, (&question, &bytes), (mode, told), homes);
    };
    match (quarantine, mode) {
        // Nobody is asked: what the server says of this person's calls on another machine is no word about this one.
        (Quarantine::Block, Mode::Enforce) => undecided(Some(&question), mode, quarantine.says()),
        // What only looks on stops nothing (ADR 0133), and says what it would do.
        (Quarantine::Block, Mode::Monitor) => {
            judged(registration, invocation, (&question, &bytes), (mode, told), homes).noted(WOULD_BLOCK)
        }
        (Quarantine::Monitor, _) => {
            judged(registration, invocation, (&question, &bytes), (mode, told), homes)
                .noted(quarantine.says())
        }
    }
}

/// Returns the answer to a call that passes by a bypass, of which the agent recorded what policies say; the person is told what would have been.
/// Nothing where no bypass lets it pass, and where the agent says only the half of it.
///
/// Keeps LJ-15.
fn bypassed(told: &Told, question: &Question) -> Option<Answer> {
    let bypass = told.bypass.as_ref()?;
    let decision = decision_of(told, question)?;
    Some(let_pass(&decision, &bypass.says()))
}

/// Keeps LJ-9: what the agent decided, then what the server says, then what holds.
fn judged(
    registration: &Registration,
    invocation: &Invocation,
    (question, bytes): (&Question, &[u8]),
    (mode, told): (Mode, Option<Told>),
    homes: &Homes,
) -> Answer {
    if let Some(decision) = told.as_ref().and_then(|told| decision_of(told, question)) {
        return answer(question, mode, &decision);
    }
    let judges = told.as_ref().is_some_and(|told| told.judges);
    if !judges && registration.denies && mode == Mode::Enforce && question.server.is_some() {
        return undecided(Some(question), mode, DENIES);
    }
    let why = match registration.ask_server(invocation, question, (mode, told.as_ref()), homes) {
        Ok(decision) => return answer(question, mode, &decision),
        Err(why) => why,
    };
    let unanswered = |mode: Mode| undecided(Some(question), mode, &format!("{why}; {NEXT}"));
    let Some(told) = told else {
        return unanswered(mode);
    };
    let held = told
        .holds
        .then(|| registration.ask(invocation, Intent::Hold, bytes, 0.03));
    let held = held.flatten().and_then(|held| decision_of(&held, question));
    match (mode, held) {
        (Mode::Enforce, Some(held)) => answer(question, mode, &held),
        // The organization says so of what its policies say nothing certain of any more. One that only looks on has not said it of
        // enforcement: a registration that enforces alone blocks.
        (Mode::Enforce, None)
            if !told.holds
                && told.mode == Some(HookMode::Enforce)
                && told.on_unknown == Some(OnUnknown::Allow) =>
        {
            unanswered(Mode::Monitor)
        }
        _ => unanswered(mode),
    }
}

/// Returns the decision that an agent tells.
fn decision_of(told: &Told, question: &Question) -> Option<Decision> {
    let text = told.decided.as_ref()?.to_string();
    Decision::read(text.as_bytes(), question.count()).ok()
}

/// What registers the hook, and what counts by it.
struct Registration {
    settings: Result<HookSettings, String>,
    desk: Option<Desk>,
    mode: Mode,
    /// Whether servers of MCP are denied, by what the agent knew last.
    denies: bool,
    /// How the machine is held apart, by the marks on its disk.
    quarantine: Option<Quarantine>,
}

impl Registration {
    fn read(invocation: &Invocation, homes: &Homes) -> Self {
        let place = settings::place(invocation.config.as_deref(), homes);
        let desk = place.as_ref().ok().and_then(|place| Desk::of(place, homes));
        let read = Self::with(
            desk,
            place.and_then(|place| HookSettings::load(&place)),
            invocation,
        );
        read.marked(quarantine_of_machine())
    }

    /// Returns the same on a machine that root's agent holds apart, or not.
    fn marked(self, of_machine: Option<Quarantine>) -> Self {
        Self {
            quarantine: self.quarantine.max(of_machine),
            ..self
        }
    }

    fn with(desk: Option<Desk>, settings: Result<HookSettings, String>, invocation: &Invocation) -> Self {
        let known = desk
            .as_ref()
            .and_then(|desk| desk.known_mode(settings.as_ref().ok()));
        let held = desk
            .as_ref()
            .and_then(|desk| desk.quarantine(settings.as_ref().ok()));
        let denies = desk
            .as_ref()
            .is_some_and(|desk| desk.knows_denials(settings.as_ref().ok()));
        Self {
            mode: strongest(invocation.mode, known),
            denies,
            quarantine: held,
            settings,
            desk,
        }
    }

    /// Returns what the agent says in time; `None` where nobody is believed, or nobody answers.
    fn ask(&self, invocation: &Invocation, intent: Intent, payload: &[u8], share: f64) -> Option<Told> {
        let (Some(desk), Ok(settings)) = (&self.desk, &self.settings) else {
            return None;
        };
        if payload.len() > MOST_PAYLOAD {
            return None;
        }
        let asked = (intent, invocation.client, self.mode);
        desk.ask(settings, asked, payload, invocation.timeout.mul_f64(share))
            .ok()
    }

    /// Asks the server. A question whose answer may use an approval up is waited for as long as there is time: nobody else hears of
    /// that answer.
    fn ask_server(
        &self,
        invocation: &Invocation,
        question: &Question,
        (mode, told): (Mode, Option<&Told>),
        homes: &Homes,
    ) -> Result<Decision, String> {
        let settings = self.settings.as_ref().map_err(Clone::clone)?;
        let kept = settings.token(homes)?;
        let user = caller::word(settings);
        let whole = invocation.timeout.mul_f64(0.7);
        let shorter = told.filter(|told| told.holds && !told.may_use_approval);
        let shorter = shorter.and_then(|told| told.deadline_ms);
        let limit = shorter.map_or(whole, |ms| whole.min(Duration::from_millis(ms.into())));
        let mut question = question.clone();
        if let Some(server) = told.and_then(|told| told.mcp_server.as_ref()) {
            question.know(server);
        }
        let answer = ask_here(&Ask {
            settings,
            token: &kept.token,
            path: "policies/decisions",
            body: Some(question.request(user.as_deref(), caller::host().as_deref(), mode)),
            limit,
        })?;
        Decision::read(&answer, question.count()).map_err(|why| format!("{}: {why}", settings.url))
    }
}

/// Writes the answer once, and returns the exit code. An answer that could not be written is a refusal.
fn spoken(answer: &Answer, stdout: &mut dyn Write, stderr: &mut dyn Write) -> u8 {
    // What went wrong may be about a token or an address that somebody wrote where it does not belong.
    let told = String::from_utf8_lossy(&answer.stdout);
    let written = stdout
        .write_all(without_secrets(&told).as_bytes())
        .and_then(|()| stdout.flush());
    if let Err(error) = written {
        let _ = stderr.write_all(format!("provost: the answer could not be written: {error}\n").as_bytes());
        return 2;
    }
    let _ = stderr.write_all(without_secrets(&answer.stderr).as_bytes());
    answer.exit
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_agent::desk::{Asked, KeptMode, Place, reply};
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

    /// A machine, or a home, with a hook whose server is away.
    struct Machine {
        root: PathBuf,
        owner: u32,
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    const URL: &str = "http://127.0.0.1:1";

    fn settings() -> HookSettings {
        HookSettings {
            url: URL.into(),
            organization: "acme".into(),
            token_file: "/nowhere".into(),
            user: Some("ada".into()),
            user_from: None,
            ca_cert: None,
            allow_plain_http: false,
        }
    }

    impl Machine {
        fn new() -> Self {
            let root = std::env::temp_dir().join(format!("provost-hook-{}-{}", std::process::id(), unique()));
            let machine = Self {
                root,
                owner: rustix::process::geteuid().as_raw(),
            };
            std::fs::create_dir_all(machine.root.join("etc/provost")).unwrap();
            let text = settings().text().unwrap();
            std::fs::write(machine.root.join("etc/provost/hook.toml"), text).unwrap();
            machine
        }

        /// The mode that the agent keeps.
        fn keeps(&self, mode: HookMode) -> &Self {
            let kept = KeptMode {
                server: URL.into(),
                organization: "acme".into(),
                mode,
                denies: false,
            };
            self.place().keep_mode(&kept).unwrap();
            self
        }

        /// The same, where servers are denied.
        fn denies(&self, mode: HookMode) -> &Self {
            let kept = KeptMode {
                server: URL.into(),
                organization: "acme".into(),
                mode,
                denies: true,
            };
            self.place().keep_mode(&kept).unwrap();
            self
        }

        /// The mark that the agent keeps of a machine that is held apart.
        fn holds(&self, quarantine: Quarantine) -> &Self {
            let kept = provost_agent::KeptQuarantine {
                server: URL.into(),
                organization: "acme".into(),
                quarantine,
            };
            self.place().keep_quarantine(&kept).unwrap();
            self
        }

        fn place(&self) -> Place {
            Place::of_machine(&self.root, self.owner)
        }

        /// An agent that tells these, one to each hook that comes.
        fn tells(&self, told: Vec<Told>) -> thread::JoinHandle<Vec<Asked>> {
            let socket = self.place().socket;
            std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
            let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            thread::spawn(move || {
                let mut asked = Vec::new();
                for told in told {
                    let (mut stream, _) = listener.accept().unwrap();
                    let (mut read, mut part) = (Vec::new(), [0; 4096]);
                    let head = loop {
                        let more = stream.read(&mut part).unwrap();
                        read.extend_from_slice(&part[..more]);
                        if let Ok(Some((head, end))) = Asked::read(&read)
                            && read.len() == end + head.length
                        {
                            break head;
                        }
                    };
                    asked.push(head);
                    stream
                        .write_all(&reply(&serde_json::to_vec(&told).unwrap()))
                        .unwrap();
                }
                asked
            })
        }

        fn answer(&self, mode: &str) -> Answer {
            let event =
                br#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
            self.answer_to(mode, event)
        }

        fn answer_to(&self, mode: &str, event: &'static [u8]) -> Answer {
            let invocation = invocation(&words(&format!("claude-code --mode {mode} --timeout 20"))).unwrap();
            let desk = Desk::of_machine(&self.root, self.owner);
            let registration = Registration::with(Some(desk), Ok(settings()), &invocation);
            let heard = Mutex::default();
            decided_by(
                &registration,
                &invocation,
                Box::new(event),
                &Homes::default(),
                &heard,
            )
        }
    }

    fn unique() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    fn told() -> Told {
        Told {
            server: URL.into(),
            organization: "acme".into(),
            mode: Some(HookMode::Enforce),
            quarantine: None,
            bypass: None,
            deadline_ms: Some(100),
            on_unknown: None,
            judges: true,
            decided: None,
            holds: false,
            may_use_approval: true,
            why: None,
            mcp_server: None,
        }
    }

    /// What was decided about both events of a call.
    fn decisions(action: &str) -> serde_json::Value {
        let one = serde_json::json!({ "action": action, "unknown": false, "policyIds": ["no-shell"], "messages": [] });
        serde_json::json!({ "decisions": [one, one] })
    }

    fn passes(answer: &Answer) -> bool {
        answer.exit == 0 && !String::from_utf8_lossy(&answer.stdout).contains("deny")
    }

    /// Proves LJ-12.
    #[test]
    fn without_the_agent_no_call_of_a_server_passes_where_some_are_denied() {
        let call = br#"{"hook_event_name":"PreToolUse","tool_name":"mcp__docs__find","tool_input":{}}"#;
        let refuses = |answer: &Answer| {
            let said = format!("{} {}", String::from_utf8_lossy(&answer.stdout), answer.stderr);
            !passes(answer) && said.contains("MCP servers are denied here")
        };
        let machine = Machine::new();
        machine.keeps(HookMode::Enforce);
        let answer = machine.answer_to("monitor", call);
        assert!(
            !passes(&answer) && !refuses(&answer),
            "nothing is known to be denied"
        );
        machine.denies(HookMode::Enforce);
        assert!(refuses(&machine.answer_to("monitor", call)));
        assert!(!refuses(&machine.answer("monitor")), "a tool of no server");
        // Who only looks on stops nothing.
        machine.denies(HookMode::Monitor);
        assert!(passes(&machine.answer_to("monitor", call)));
        machine.denies(HookMode::Enforce);
        let mut decided = told();
        decided.decided = Some(decisions("allow"));
        let lost = Told {
            judges: false,
            why: Some("the agent has no policies".to_owned()),
            ..told()
        };
        let agent = machine.tells(vec![decided, told(), lost]);
        assert!(passes(&machine.answer_to("enforce", call)), "it says so itself");
        let answer = machine.answer_to("enforce", call);
        assert!(
            !passes(&answer) && !refuses(&answer),
            "it knew the server, and the organization's server is away"
        );
        assert!(
            refuses(&machine.answer_to("enforce", call)),
            "an agent that lost its policies knows no server"
        );
        agent.join().unwrap();
    }

    /// Proves LJ-9.
    ///
    /// One that knows the word hears it, and one of before it hangs up and is asked again.
    #[test]
    fn an_agent_of_before_the_word_for_preloaded_code_is_asked_without_it() {
        let machine = Machine::new();
        let ask = || {
            let desk = Desk::of_machine(&machine.root, machine.owner).preloaded(true);
            let asked = (Intent::Judge, Client::Codex, Mode::Enforce);
            desk.ask(&settings(), asked, b"{}", Duration::from_secs(10))
        };
        let agent = machine.tells(vec![told()]);
        assert!(ask().is_ok());
        let heard = agent.join().unwrap();
        assert!(heard.iter().all(|asked| asked.preloaded) && heard.len() == 1);
        let socket = machine.place().socket;
        std::fs::remove_file(&socket).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let earlier = thread::spawn(move || {
            let mut heads = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut part = [0; 4096];
                let read = stream.read(&mut part).unwrap();
                let text = String::from_utf8_lossy(&part[..read]).into_owned();
                // It knows nothing behind the length but `by-hand`.
                if !text.contains("preloaded") {
                    stream
                        .write_all(&reply(&serde_json::to_vec(&told()).unwrap()))
                        .unwrap();
                }
                heads.push(text);
            }
            heads
        });
        assert!(ask().is_ok());
        let heads = earlier.join().unwrap();
        assert!(
            heads[0].contains(" preloaded\n") && !heads[1].contains("preloaded"),
            "{heads:?}"
        );
    }

    /// Proves LJ-9.
    #[test]
    fn an_organization_that_enforces_is_obeyed_where_nobody_answers_whatever_the_registration_says() {
        // Nobody is there, and nobody ever was: the registration counts.
        let machine = Machine::new();
        assert!(passes(&machine.answer("monitor")) && !passes(&machine.answer("enforce")));
        machine.keeps(HookMode::Enforce);
        assert_eq!(machine.answer("monitor").exit, 2);
        // An organization that only looks on makes no registration weaker.
        machine.keeps(HookMode::Monitor);
        assert!(passes(&machine.answer("monitor")) && !passes(&machine.answer("enforce")));
        // What somebody else could have written is nobody's word.
        machine.keeps(HookMode::Enforce);
        let other = Place::of_machine(&machine.root, machine.owner);
        std::fs::set_permissions(&other.mode, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert!(passes(&machine.answer("monitor")));
        // A file of the hook that cannot be read leaves the mode that was known.
        machine.keeps(HookMode::Enforce);
        let desk = Desk::of_machine(&machine.root, machine.owner);
        let broken = Registration::with(
            Some(desk),
            Err("broken".to_owned()),
            &invocation(&words("codex --mode monitor")).unwrap(),
        );
        assert_eq!(broken.mode, Mode::Enforce);
    }

    #[test]
    fn what_the_agent_decided_is_answered_and_what_it_holds_is_answered_where_the_server_is_away() {
        let machine = Machine::new();
        let decided = |action: &str| Told {
            decided: Some(decisions(action)),
            ..told()
        };
        let holds = Told {
            holds: true,
            ..told()
        };
        let expired = Told {
            on_unknown: Some(OnUnknown::Allow),
            ..told()
        };
        let agent = machine.tells(vec![
            decided("allow"),
            decided("block"),
            holds.clone(),
            decided("block"),
            holds.clone(),
            decided("allow"),
            // It could not record what it held.
            holds.clone(),
            told(),
            told(),
            expired.clone(),
            // It is the registration alone that enforces.
            Told {
                mode: Some(HookMode::Monitor),
                ..expired.clone()
            },
            Told {
                mode: None,
                ..expired
            },
        ]);
        assert!(passes(&machine.answer("monitor")));
        // The organization enforces, and says so by its agent.
        let blocked = machine.answer("monitor");
        assert!(
            String::from_utf8_lossy(&blocked.stdout).contains("deny"),
            "{blocked:?}"
        );
        assert!(!passes(&machine.answer("enforce")));
        assert!(passes(&machine.answer("enforce")));
        assert_eq!(machine.answer("enforce").exit, 2);
        assert_eq!(machine.answer("enforce").exit, 2);
        assert!(passes(&machine.answer("enforce")));
        assert_eq!(machine.answer("enforce").exit, 2);
        assert_eq!(machine.answer("enforce").exit, 2);
        let asked = agent.join().unwrap();
        let holds = asked.iter().filter(|asked| asked.intent == Intent::Hold);
        assert_eq!(holds.count(), 3);
    }

    /// Proves LJ-8.
    #[test]
    fn an_agent_of_another_server_or_in_a_place_that_others_can_change_is_not_believed() {
        let allow = || Told {
            decided: Some(decisions("allow")),
            ..told()
        };
        let other = Told {
            organization: "other".into(),
            ..allow()
        };
        let machine = Machine::new();
        let agent = machine.tells(vec![other, allow()]);
        assert!(!passes(&machine.answer("enforce")));
        assert!(passes(&machine.answer("enforce")));
        agent.join().unwrap();
        // From here on nobody would answer: nobody is asked either.
        let open = |path: &str, mode: u32| {
            let path = machine.root.join(path);
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        let desk = Desk::of_machine(&machine.root, machine.owner);
        let ask = |desk: &Desk| {
            let asked = (Intent::Judge, Client::Codex, Mode::Enforce);
            desk.ask(&settings(), asked, b"{}", Duration::from_millis(50))
                .unwrap_err()
        };
        for (path, sound) in [
            ("run/provost-agent", 0o755),
            ("etc/provost", 0o755),
            ("etc/provost/hook.toml", 0o644),
        ] {
            open(path, 0o777);
            assert!(ask(&desk).contains("alone can change"), "{path}");
            open(path, sound);
        }
        // Everything there is this account's, and another one's is asked for.
        let others = Desk::of_machine(&machine.root, machine.owner + 1);
        assert!(ask(&others).contains("alone can change"));
    }

    fn says_held(answer: &Answer) -> bool {
        let stdout: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        let told = stdout["systemMessage"].as_str().unwrap_or_default();
        told.contains("held apart") || answer.stderr.contains("held apart")
    }

    /// Proves LJ-13.
    #[test]
    fn on_a_machine_that_is_held_apart_nothing_passes_a_hook_that_enforces() {
        let decided = |action: &str| Told {
            decided: Some(decisions(action)),
            ..told()
        };
        // The agent is away, and the server would not have been asked.
        let machine = Machine::new();
        machine.keeps(HookMode::Enforce).holds(Quarantine::Block);
        for registered in ["monitor", "enforce"] {
            let refused = machine.answer(registered);
            assert!(
                refused.exit == 2 && says_held(&refused),
                "{registered}: {refused:?}"
            );
            assert!(!refused.stderr.contains("127.0.0.1"), "{refused:?}");
        }
        // An agent that does not judge any more takes nothing of it away, and the mode with the mark alone.
        machine.place().clear().unwrap();
        assert!(!passes(&machine.answer("monitor")));
        // Neither does what an agent decides let it pass, nor that it knows of nothing.
        let agent = machine.tells(vec![decided("allow"), decided("allow")]);
        assert!(!passes(&machine.answer("enforce")) && !passes(&machine.answer("monitor")));
        agent.join().unwrap();
        // Held by a monitoring organization, a registration that enforces refuses as well.
        let machine = Machine::new();
        machine.keeps(HookMode::Monitor).holds(Quarantine::Block);
        assert!(!passes(&machine.answer("enforce")));
        // One that only looks on stops nothing, and says so.
        let looks_on = machine.answer("monitor");
        assert!(passes(&looks_on) && says_held(&looks_on), "{looks_on:?}");
    }

    /// Proves LJ-13.
    #[test]
    fn a_mark_that_is_lost_is_the_agents_word_and_one_that_is_damaged_is_a_mark() {
        let allow = |quarantine: Option<Quarantine>| Told {
            decided: Some(decisions("allow")),
            quarantine,
            ..told()
        };
        let machine = Machine::new();
        let agent = machine.tells(vec![allow(Some(Quarantine::Block)), allow(None)]);
        assert!(!passes(&machine.answer("enforce")));
        assert!(passes(&machine.answer("enforce")), "it was released");
        agent.join().unwrap();
        let mark = |machine: &Machine| machine.place().quarantine_mark();
        let spoil = |what: &str, path: &std::path::Path| match what {
            "cut" => std::fs::write(path, b"{\"server\":").unwrap(),
            "empty" => std::fs::write(path, b"").unwrap(),
            "others can write it" => {
                std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
            }
            "a link to nowhere" => {
                std::fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/nowhere", path).unwrap();
            }
            _ => {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            }
        };
        for what in [
            "cut",
            "empty",
            "others can write it",
            "a link to nowhere",
            "a folder",
        ] {
            let machine = Machine::new();
            // It says less than what is left of it counts for.
            machine.holds(Quarantine::Monitor);
            spoil(what, &mark(&machine));
            let agent = machine.tells(vec![allow(None)]);
            assert!(!passes(&machine.answer("enforce")), "{what}");
            agent.join().unwrap();
        }
        // Another organization's mark is no word of this one.
        let machine = Machine::new();
        let other = provost_agent::KeptQuarantine {
            server: URL.into(),
            organization: "other".into(),
            quarantine: Quarantine::Block,
        };
        machine.place().keep_quarantine(&other).unwrap();
        let agent = machine.tells(vec![allow(None)]);
        assert!(passes(&machine.answer("enforce")));
        agent.join().unwrap();
        // Root's is every hook's, however that one spells the server.
        let other = HookSettings {
            url: "http://127.0.0.1:1/other".into(),
            ..settings()
        };
        let invocation = invocation(&words("codex --mode enforce --config /x")).unwrap();
        let of_machine = Desk::of_machine(&machine.root, machine.owner).quarantine(None);
        let marked = Registration::with(None, Ok(other), &invocation).marked(of_machine);
        assert_eq!(marked.quarantine, Some(Quarantine::Block));
        machine.place().remove_quarantine().unwrap();
        assert!(
            !mark(&machine).exists(),
            "whoever has the place now takes it away"
        );
    }

    /// Proves LJ-13.
    #[test]
    fn a_machine_that_is_held_apart_to_be_looked_at_is_judged_as_before_and_says_so() {
        let machine = Machine::new();
        machine.keeps(HookMode::Enforce).holds(Quarantine::Monitor);
        let decided = |action: &str| Told {
            decided: Some(decisions(action)),
            ..told()
        };
        let agent = machine.tells(vec![decided("allow"), decided("block")]);
        let passed = machine.answer("enforce");
        assert!(passes(&passed) && says_held(&passed), "{passed:?}");
        let blocked = machine.answer("enforce");
        assert!(!passes(&blocked) && says_held(&blocked), "{blocked:?}");
        agent.join().unwrap();
        machine.place().remove_quarantine().unwrap();
        let machine = &machine;
        std::fs::remove_file(machine.place().socket).unwrap();
        let agent = machine.tells(vec![decided("allow")]);
        let free = machine.answer("enforce");
        assert!(passes(&free) && !says_held(&free), "{free:?}");
        agent.join().unwrap();
    }

    /// Proves LJ-15.
    #[test]
    fn what_passes_by_a_bypass_says_so_and_none_passes_on_a_machine_that_is_held_apart() {
        let machine = Machine::new();
        machine.keeps(HookMode::Enforce);
        let by = |action: Option<&str>| Told {
            decided: action.map(decisions),
            bypass: Some(provost_agent::desk::ToldBypass {
                id: "byp_1".into(),
                until: provost_words::Timestamp::EPOCH,
            }),
            ..told()
        };
        let agent = machine.tells(vec![
            by(Some("block")),
            by(Some("allow")),
            by(None),
            by(Some("block")),
        ]);
        let passed = machine.answer("enforce");
        assert!(passes(&passed), "{passed:?}");
        let says = String::from_utf8_lossy(&passed.stdout).into_owned();
        assert!(says.contains("byp_1") && says.contains("1970-01-01"), "{says}");
        assert_eq!(machine.answer("enforce").stdout, Answer::pass().stdout);
        // What was not recorded passes by nothing.
        assert_eq!(machine.answer("enforce").exit, 2);
        machine.holds(Quarantine::Monitor);
        assert!(!passes(&machine.answer("enforce")), "held apart");
        agent.join().unwrap();
        // Nobody is there who says that it is on.
        assert_eq!(machine.answer("enforce").exit, 2);
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
