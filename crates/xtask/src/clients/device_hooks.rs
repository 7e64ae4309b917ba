//! Whether a device that judges for hooks holds, whatever fails on it: real Claude Code, Codex and Gemini CLI, a model that is a script and
//! asks for one command that removes a file, the agent of the machine or of a person, and a real server that is there or away.
//!
//! ```text
//! client ──► registered line ──► agent.sock ──► agent ──► bundle      what fails is one of these, or the disk below the agent
//!                   └──────────────────────────► server               there, or away
//! ```
//!
//! What is looked at is the file: where the organization enforces, a call that a policy blocks leaves it there, whatever fails; where it only
//! looks on, every call removes it. A call is a command, or a tool of a server of MCP that is denied in the inventory. Beside the clients the
//! line that stands in their settings is run as they run it, more often than a client can be.
//!
//! A slow disk is one whose every sync takes longer than a client waits: strace holds those calls of the agent back. A file system that is slow
//! at everything needs a module of the kernel (`dm-delay`) or a daemon (FUSE), which are not everywhere. No memory is a limit of the kernel on
//! what a process may have: the agent's from a moment on, the hook's another one at each start, from one with which it does not start to one with
//! which it does. A day without a server is the clock of the agent, a day ahead.

mod approved;
mod coverage;
mod device;
mod fault;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::administrator::{Administrator, text};
use super::hooks::{called, program};
use super::{Scene, sign_in};
use crate::failure::{Context, Failure, Outcome};
use crate::record::Record;
use crate::{clock, process};
use device::Device;
use fault::Fault;

/// How often each row is tried.
#[derive(clap::Args)]
pub struct Repeats {
    /// How often a client runs for each row of device-hooks
    #[arg(long = "repeats", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,
    /// How often the line of its settings runs for each row of device-hooks
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lines: u32,
    /// Only where the organization enforces, or only looks on
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Only columns of device-hooks with these words in their names, such as codex or "the machine's"; clients, of the other two parts
    #[arg(long)]
    column: Option<String>,
}

/// What the organization does with what its policies say.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Monitor,
    Enforce,
}

impl Mode {
    /// From the weaker to the stronger: the other way has to be confirmed.
    const ALL: [Self; 2] = [Self::Monitor, Self::Enforce];

    fn word(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Enforce => "enforce",
        }
    }
}

/// How many calls had to be stopped or to run, and how many were or did, over all rows.
#[derive(Default)]
struct Sums {
    /// Of clients and of their lines.
    stopped: [u64; 2],
    passed: [u64; 2],
    rows: u32,
}

/// A client, and whose settings and agent it has.
pub struct Client {
    pub word: &'static str,
    pub is_of_the_machine: bool,
    /// What a policy is about. Codex refuses `rm -f` of its own accord.
    guarded: &'static str,
}

const CLIENTS: [Client; 4] = [
    Client {
        word: "claude-code",
        is_of_the_machine: false,
        guarded: "rm -rf",
    },
    Client {
        word: "claude-code",
        is_of_the_machine: true,
        guarded: "rm -rf",
    },
    Client {
        word: "codex",
        is_of_the_machine: true,
        guarded: "rm -r",
    },
    Client {
        word: "gemini",
        is_of_the_machine: true,
        guarded: "rm -rf",
    },
];

/// What no policy is about.
const ALLOWED: &str = "unlink";
/// The conversation in which the line of a client's settings asks.
const LINE_SESSION: &str = "0d7c5a4e-line";
/// How long a client waits for its hook. Units: milliseconds.
const CLIENT_MS: f64 = 5_000.0;

/// How the person's server of MCP is started, which is denied in the inventory, and its key there.
const SERVER: [&str; 3] = ["npx", "-y", "@evil/files@1.0.0"];
const SERVER_KEY: &str = "npm:@evil/files";

/// What the model asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    /// A command that a policy blocks.
    Guarded,
    /// A command that no policy is about.
    Allowed,
    /// A tool of a server that is denied.
    OfDenied,
}

/// What fails, while the server is there or away, and what is asked for meanwhile.
struct Row {
    fault: Fault,
    call: Call,
    /// Whether the call runs where the organization enforces.
    runs: bool,
}

const fn holds(fault: Fault) -> Row {
    Row {
        fault,
        call: Call::Guarded,
        runs: false,
    }
}

const fn allowed(fault: Fault, runs: bool) -> Row {
    Row {
        fault,
        call: Call::Allowed,
        runs,
    }
}

const fn denied(fault: Fault, runs: bool) -> Row {
    Row {
        fault,
        call: Call::OfDenied,
        runs,
    }
}

/// The rows while the server is there. The disk is filled last: what the agent kept on it is lost.
///
/// Which server a call is for the agent alone says (ADR 0135): where it does not answer and servers are denied, the hook lets none be called.
const THERE: [Row; 22] = [
    holds(Fault::Nothing),
    allowed(Fault::Nothing, true),
    denied(Fault::Nothing, false),
    holds(Fault::Killed),
    denied(Fault::Killed, false),
    holds(Fault::Frozen),
    holds(Fault::Garbage),
    holds(Fault::ProgramMissing),
    holds(Fault::ProgramClosed),
    holds(Fault::ProgramKilled),
    holds(Fault::ProgramStarved),
    holds(Fault::SocketOpen),
    holds(Fault::ModeOpen),
    holds(Fault::RegistrationOpen),
    holds(Fault::SocketNone),
    holds(Fault::BundleGarbage),
    denied(Fault::BundleGarbage, false),
    holds(Fault::Starved),
    allowed(Fault::Starved, true),
    holds(Fault::DiskSlow),
    allowed(Fault::DiskSlow, true),
    holds(Fault::DiskFull),
];

/// The rows while the server is away: what a bundle in date allows passes, and nothing else does.
const AWAY: [Row; 27] = [
    holds(Fault::Nothing),
    allowed(Fault::Nothing, true),
    denied(Fault::Nothing, false),
    holds(Fault::Killed),
    denied(Fault::Killed, false),
    holds(Fault::Frozen),
    holds(Fault::Garbage),
    holds(Fault::ProgramStarved),
    holds(Fault::SocketOpen),
    holds(Fault::ModeOpen),
    holds(Fault::RegistrationOpen),
    holds(Fault::SocketNone),
    holds(Fault::BundleGarbage),
    allowed(Fault::BundleGarbage, false),
    denied(Fault::BundleGarbage, false),
    holds(Fault::DayLater),
    allowed(Fault::DayLater, true),
    denied(Fault::DayLater, false),
    holds(Fault::Expired),
    allowed(Fault::Expired, false),
    denied(Fault::Expired, false),
    holds(Fault::Early),
    allowed(Fault::Early, false),
    allowed(Fault::Killed, false),
    holds(Fault::Starved),
    holds(Fault::DiskSlow),
    holds(Fault::DiskFull),
];

/// Who works at the devices, and by whose token their hooks ask.
pub struct People {
    ada: String,
    token: String,
}

impl People {
    fn make(scene: &Scene<'_>) -> Outcome<Self> {
        let mut administrator = scene.administrator();
        Ok(Self {
            ada: sign_in::colleague(&mut administrator, "ada")?,
            token: administrator
                .account("hooks of devices", "operator", &["policies:decide"])?
                .token,
        })
    }
}

/// What was seen of a row.
struct Seen {
    /// Calls of the client that ran.
    ran: u32,
    /// Calls of the line that the client would have let run.
    passed: u64,
    /// Units: milliseconds.
    slowest: f64,
    /// What the line said last.
    last: String,
}

/// A line of the table.
struct Line {
    name: String,
    cells: Vec<String>,
}

pub fn run(scene: &mut Scene<'_>, repeats: &Repeats, record: bool) -> Outcome {
    let mut administrator = scene.administrator();
    let people = People::make(scene)?;
    administrator.post(
        "content-policies",
        json!({ "definition": { "id": "no-rm", "name": "no rm -r", "action": "block", "message": "ask the platform team first",
            "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -r" } } }),
    )?;
    deny(&mut administrator)?;
    let clients = possible();
    let mut table: Vec<Line> = Vec::new();
    let mut columns = Vec::new();
    let mut wrong = Vec::new();
    let mut sums = Vec::new();
    for mode in Mode::ALL {
        if repeats.mode.is_some_and(|only| only != mode) {
            continue;
        }
        let (mode, mut sum) = (mode.word(), Sums::default());
        judged(scene, mode)?;
        for client in &clients {
            let column = format!("{} by {} settings, {mode}", client.word, client.whose());
            if repeats
                .column
                .as_ref()
                .is_some_and(|words| !column.contains(words))
            {
                continue;
            }
            println!("    {column}");
            columns.push(column.clone());
            let mut device = Device::make(scene, client, mode, &people)?;
            device.name_home()?;
            let mut number = 0;
            for (is_away, rows) in [(false, &THERE[..]), (true, &AWAY[..])] {
                if is_away {
                    stop(scene)?;
                }
                for row in rows {
                    let runs = mode == "monitor" || row.runs;
                    let name = row.name(is_away);
                    let cell = if let Some(why) = row.fault.unlikely() {
                        format!("NOT run: {why}")
                    } else {
                        let seen = tried(scene, client, &mut device, row, repeats).context(&name)?;
                        let cell = seen.cell(repeats);
                        sum.add(&seen, repeats);
                        if let Some(why) = seen.fault(runs, repeats) {
                            let last = seen.last.trim();
                            wrong.push(format!("{column}: {name}: {cell}: {why} (it said: {last})"));
                        }
                        cell
                    };
                    println!("      {name}: {cell}");
                    if table.len() <= number {
                        let cells = Vec::new();
                        table.push(Line { name, cells });
                    }
                    table[number].cells.push(cell);
                    number += 1;
                }
            }
            start(scene)?;
            device
                .tells(scene)
                .context("what the device judged does not reach the server")?;
        }
        sums.push(sum.sentence(mode));
    }
    if columns.is_empty() {
        return Err(Failure::new(
            "no column of device-hooks has the words of --column in its name",
        ));
    }
    print(&columns, &table);
    println!("{}", sums.join("\n"));
    if wrong.is_empty() {
        if record {
            let mode = repeats
                .mode
                .map_or(String::new(), |mode| format!(" --mode {}", mode.word()));
            let column = repeats.column.as_ref();
            let column = column.map_or(String::new(), |words| format!(" --column {words:?}"));
            let command = format!(
                "cargo xtask clients device-hooks --repeats {} --lines {}{mode}{column}",
                repeats.clients, repeats.lines
            );
            let record = Record::new(&["R55"], sums.join(" "), command);
            record.write("clients-device-hooks")?;
        }
        return Ok(());
    }
    Err(Failure::new(format!("wrong:\n  {}", wrong.join("\n  "))))
}

/// Lets real clients ask for a call that needs a yes, on devices that judge.
pub fn approve(scene: &Scene<'_>, repeats: &Repeats) -> Outcome {
    judged(scene, "enforce")?;
    approved::run(scene, &repeats.wanted()?, &People::make(scene)?)
}

/// Looks at what the agent says of how far real clients are guarded, beside what they do.
pub fn look(scene: &Scene<'_>, repeats: &Repeats) -> Outcome {
    scene.administrator().post(
        "content-policies",
        json!({ "definition": { "id": "no-rm", "name": "no rm -r", "action": "block", "message": "ask the platform team first",
            "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -r" } } }),
    )?;
    judged(scene, "enforce")?;
    coverage::run(scene, &repeats.wanted()?, &People::make(scene)?)
}

/// Has the inventory know the person's server of MCP, and denies it.
fn deny(administrator: &mut Administrator) -> Outcome {
    let found = json!({ "source": "snyk_agent_scan", "servers": [{ "key": SERVER_KEY, "name": "files" }] });
    administrator.post("inventory/imports", found)?;
    let listed = administrator.get("inventory/mcp-servers")?;
    let all = listed["servers"].as_array().context("no list of servers")?;
    let server = all.iter().find(|one| one["key"] == SERVER_KEY);
    let id = text(server.context("the inventory does not know the server")?, "/id")?;
    let path = format!("inventory/mcp-servers/{id}/standing");
    administrator
        .post(&path, json!({ "standing": "denied" }))
        .map(drop)
}

/// Has devices judge, in this mode of the organization.
fn judged(scene: &Scene<'_>, mode: &str) -> Outcome {
    let hooks = json!({ "fleet": { "hooks": { "judging": "on", "mode": mode } }, "confirm": true });
    scene
        .administrator()
        .change("PATCH", "automation/settings", hooks)
        .map(drop)
}

/// Returns the clients that can be tried here, and says which cannot.
fn possible() -> Vec<&'static Client> {
    if process::is_root() {
        return CLIENTS.iter().collect();
    }
    println!(
        "    NOT run: what the machine's settings register. Their agent is root's, whose program and folders have to be root's."
    );
    CLIENTS
        .iter()
        .filter(|client| !client.is_of_the_machine)
        .collect()
}

/// Applies what fails, lets the client and its line ask, and takes the fault back.
fn tried(
    scene: &Scene<'_>,
    client: &Client,
    device: &mut Device,
    row: &Row,
    repeats: &Repeats,
) -> Outcome<Seen> {
    let before = row.fault.happens(device)?;
    let command = if row.call == Call::Guarded {
        client.guarded
    } else {
        ALLOWED
    };
    let command = format!("{command} {}", device.victim());
    let server = (row.call == Call::OfDenied).then_some(SERVER);
    let mut ran = 0;
    for _ in 0..repeats.clients {
        ran += u32::from(asked_of(scene, client, device, (&command, server), 0)?.0);
    }
    let said = line(client, device, (&command, server.is_some()), repeats.lines)?;
    let seen = Seen {
        ran,
        passed: said["passed"].as_u64().context("no count of the line")?,
        slowest: said["slowest"].as_f64().context("no time of the line")?,
        last: said["last"].as_str().unwrap_or_default().to_owned(),
    };
    before.restore(device)?;
    Ok(seen)
}

/// Lets the model ask the client for a command that takes the victim away, and says whether it ran.
/// `turn` counts those of one session from 1; 0 is a session of its own.
pub fn asked(
    scene: &Scene<'_>,
    client: &Client,
    device: &Device,
    command: &str,
    turn: u32,
) -> Outcome<(bool, String)> {
    asked_of(scene, client, device, (command, None), turn)
}

/// As [`asked`], for a tool of a server that is started so, where there is one.
fn asked_of(
    scene: &Scene<'_>,
    client: &Client,
    device: &Device,
    (command, server): (&str, Option<[&str; 3]>),
    turn: u32,
) -> Outcome<(bool, String)> {
    device.put_victim()?;
    let said = called(&json!({
        "client": client.word, "program": program(scene, client.word), "place": device.folder, "victim": device.victim(),
        "command": command, "server": server, "only_tools": true, "over": device::OVER, "turn": turn,
    }))?;
    let ran = said["ran"]
        .as_bool()
        .context(format_args!("no answer in {said}"))?;
    Ok((ran, said["said"].as_str().unwrap_or_default().to_owned()))
}

/// Runs the line of the client's settings as often as this, about a command or a tool of the person's server, and returns what came of it.
fn line(client: &Client, device: &Device, (command, is_server): (&str, bool), times: u32) -> Outcome<Value> {
    let mut python = device.command("python3");
    python
        .arg(super::install::sources().join("hooks/lines.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = python.spawn().context("the clients need Python 3")?;
    let input = child.stdin.take().context("a script without input")?;
    let payload = event(client, device, command, is_server);
    serde_json::to_writer(
        input,
        &json!({ "line": device.registered_line(client)?, "payload": payload, "times": times }),
    )
    .context("a script does not listen")?;
    let output = child.wait_with_output().context("cannot wait for a script")?;
    serde_json::from_slice(&output.stdout).context(format_args!("the script ended with {}", output.status))
}

/// The event that the client writes before a tool: a command, or the one of the person's server.
fn event(client: &Client, device: &Device, command: &str, is_server: bool) -> Value {
    let work = device.folder.join("work");
    if client.word == "gemini" {
        let mut event = json!({
            "session_id": LINE_SESSION, "transcript_path": format!("/home/.gemini/tmp/work/chats/session-2026-11-28T10-00-{}.jsonl", &LINE_SESSION[..8]),
            "cwd": work, "hook_event_name": "BeforeTool", "timestamp": "2026-11-28T10:00:00.000Z",
            "tool_name": "run_shell_command", "tool_input": { "command": command, "description": "Tidy up" },
        });
        if is_server {
            event["tool_name"] = "mcp_files_remove".into();
            event["tool_input"] = json!({});
            event["mcp_context"] = json!({ "server_name": "files", "tool_name": "remove", "command": SERVER[0], "args": SERVER[1..] });
        }
        return event;
    }
    let mut event = json!({
        "hook_event_name": "PreToolUse", "session_id": LINE_SESSION, "cwd": work, "permission_mode": "default",
        "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": "call_line",
    });
    let is_claude = client.word == "claude-code";
    if is_claude {
        event["tool_input"]["description"] = "Tidy up".into();
    }
    if is_server {
        event["tool_name"] = "mcp__files__remove".into();
        event["tool_input"] = json!({ "path": "." });
        // Codex does not say whose configuration a server is of.
        if is_claude {
            event["mcp_server"] = json!({ "name": "files", "source": "user" });
        }
    }
    event
}

/// Has the server away.
fn stop(scene: &mut Scene<'_>) -> Outcome {
    process::signal(scene.server.pid(), "TERM");
    let ended = clock::poll_until(Duration::from_secs(20), Duration::from_millis(5), || {
        scene.server.has_ended()
    });
    if ended {
        return Ok(());
    }
    Err(Failure::new("the server does not stop"))
}

/// Has the server back where it was.
fn start(scene: &mut Scene<'_>) -> Outcome {
    scene.server = scene.installation.launch_at(scene.server.address)?;
    scene.server.wait_until_ready(Duration::from_mins(1))
}

impl Repeats {
    /// Returns the clients that can be tried here and whose columns are wanted.
    fn wanted(&self) -> Outcome<Vec<&'static Client>> {
        let words = self.column.as_deref().unwrap_or_default();
        let clients: Vec<_> = possible()
            .into_iter()
            .filter(|client| format!("{} by {} settings", client.word, client.whose()).contains(words))
            .collect();
        if clients.is_empty() {
            return Err(Failure::new("no client has the words of --column in its name"));
        }
        Ok(clients)
    }
}

impl Client {
    fn whose(&self) -> &'static str {
        if self.is_of_the_machine {
            "the machine's"
        } else {
            "a person's"
        }
    }
}

impl Row {
    fn name(&self, is_away: bool) -> String {
        let call = match self.call {
            Call::Guarded => "a blocked call",
            Call::Allowed => "an allowed call",
            Call::OfDenied => "a call of a denied server",
        };
        let server = if is_away { "server stopped" } else { "server there" };
        format!("{}, {server}, {call}", self.fault.name())
    }
}

impl Sums {
    fn add(&mut self, seen: &Seen, repeats: &Repeats) {
        let tried = [
            (u64::from(seen.ran), u64::from(repeats.clients)),
            (seen.passed, u64::from(repeats.lines)),
        ];
        for (of, (passed, of_all)) in tried.into_iter().enumerate() {
            self.passed[of] += passed;
            self.stopped[of] += of_all.saturating_sub(passed);
        }
        self.rows += 1;
    }

    fn sentence(&self, mode: &str) -> String {
        let Self {
            stopped: [stopped, stopped_lines],
            passed: [passed, passed_lines],
            rows,
        } = self;
        format!(
            "{mode}: {rows} rows of what fails; {stopped} calls of clients were stopped and {passed} ran, {stopped_lines} runs of their lines \
             stopped a call and {passed_lines} let one pass, each as its row says."
        )
    }
}

impl Seen {
    fn cell(&self, repeats: &Repeats) -> String {
        format!(
            "ran {}/{}; line {}/{}, {:.0} ms at most",
            self.ran, repeats.clients, self.passed, repeats.lines, self.slowest
        )
    }

    /// Says what is wrong with it.
    fn fault(&self, runs: bool, repeats: &Repeats) -> Option<&'static str> {
        let (ran, passed) = if runs {
            (repeats.clients, u64::from(repeats.lines))
        } else {
            (0, 0)
        };
        if self.ran != ran {
            return Some(if runs {
                "the tool was stopped"
            } else {
                "the tool RAN"
            });
        }
        if self.passed != passed {
            return Some(if runs {
                "the line stops the call"
            } else {
                "the line lets the call pass"
            });
        }
        (self.slowest >= CLIENT_MS).then_some("the line is later than its client waits")
    }
}

fn print(columns: &[String], table: &[Line]) {
    println!("\n| what fails | {} |", columns.join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
    for line in table {
        println!("| {} | {} |", line.name, line.cells.join(" | "));
    }
    println!(
        "\n\"ran 0/1; line 0/20\": of one call of the client none ran, and of twenty runs of the registered line none let the call pass."
    );
}
