//! Processes, one after the other, from their start to the end of their output.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::Arguments;
use super::laptop::Laptop;
use crate::bench::bench_store::BenchStore;
use crate::bench::load::quantile;
use crate::bench::machine;
use crate::bench::report::{Goal, Row, median};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::product::{Bootstrap, Server};

/// What runs, and what its p99 and its processor time have to be. Units: milliseconds.
struct Kind {
    name: &'static str,
    p99: Goal,
    cpu: Goal,
    /// Whether the call is stopped; nothing where it is none.
    stops: Option<bool>,
}

const fn kind(name: &'static str, p99: Goal, stops: Option<bool>) -> Kind {
    Kind {
        name,
        p99,
        cpu: Goal::None,
        stops,
    }
}

const KINDS: [Kind; 6] = [
    kind("a program that does nothing", Goal::None, None),
    kind("`provost --version`", Goal::None, None),
    Kind {
        cpu: Goal::AtMost(1.0),
        ..kind("hook by the agent, allowed", Goal::AtMost(5.0), Some(false))
    },
    kind("hook by the agent, blocked and recorded", Goal::None, Some(true)),
    kind(
        "hook asked of the server, allowed",
        Goal::AtMost(400.0),
        Some(false),
    ),
    kind("hook with nobody to ask, refused", Goal::None, Some(true)),
];
/// From here on there is no agent.
const WITHOUT_AGENT: usize = 4;

#[derive(Default)]
struct Figures {
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// A process. Units: milliseconds.
    cpu: Vec<f64>,
    /// Of the agent beside it.
    agent: Vec<f64>,
}

pub fn measure(
    arguments: &Arguments,
    place: &BenchStore,
    laptop: &mut Laptop,
    server: &Server,
    bootstrap: &Bootstrap,
) -> Outcome<Vec<Row>> {
    let policies = u64::from(arguments.policies);
    let mut figures: Vec<Figures> = KINDS.iter().map(|_| Figures::default()).collect();
    let (mut resident, mut judged) = (Vec::new(), Vec::new());
    let file = laptop.registration();
    let text = std::fs::read_to_string(&file).context("cannot read the registration")?;
    for round in 1..=arguments.rounds.count {
        laptop.judges()?;
        for (number, kind) in KINDS.iter().enumerate() {
            if number == WITHOUT_AGENT {
                resident.extend(machine::resident_mib(laptop.agent()?));
                judged.push(told(laptop, arguments.runs)?);
                laptop.rest()?;
            }
            if number == WITHOUT_AGENT + 1 {
                // Nobody listens at this port.
                std::fs::write(&file, text.replace(&server.address.to_string(), "127.0.0.1:9"))
                    .context("cannot write the registration")?;
            }
            let one = of_kind(laptop, number, kind, arguments.runs).context(kind.name)?;
            eprintln!(
                "{} round {round}/{}: {}: p50 {:.2} ms, p99 {:.2} ms",
                place.engine.name(),
                arguments.rounds.count,
                kind.name,
                one.0.as_secs_f64() * 1e3,
                one.1.as_secs_f64() * 1e3,
            );
            figures[number].p50.push(one.0.as_secs_f64() * 1e3);
            figures[number].p99.push(one.1.as_secs_f64() * 1e3);
            figures[number].cpu.push(one.2);
            figures[number].agent.extend(one.3);
        }
        std::fs::write(&file, &text).context("cannot write the registration")?;
    }
    laptop.judges()?;
    must_be_recorded(laptop, server, bootstrap)?;
    let engine = place.engine.name();
    let mut rows = Vec::new();
    for (kind, figures) in KINDS.iter().zip(figures) {
        let mut row = Row::new(
            &format!("p99: {}", kind.name),
            engine,
            " ms",
            kind.p99,
            figures.p99.clone(),
        );
        row.latencies = Some((median(&figures.p50), median(&figures.p99)));
        let cpu: Vec<String> = [&figures.cpu, &figures.agent]
            .into_iter()
            .filter(|values| !values.is_empty())
            .map(|values| format!("{:.0}", median(values) * 1e3))
            .collect();
        row.cpu = cpu.join(" + ");
        rows.push(row);
        if matches!(kind.cpu, Goal::AtMost(_)) {
            let name = format!("CPU of a process: {}", kind.name);
            rows.push(Row::new(&name, engine, " ms", kind.cpu, figures.cpu));
        }
    }
    rows.push(Row::new(
        &format!("p99 at the socket, {policies} policies, without a process"),
        engine,
        " ms",
        Goal::None,
        judged,
    ));
    rows.push(Row::new(
        "memory of the agent",
        engine,
        " MiB",
        Goal::AtMost(30.0),
        resident,
    ));
    Ok(rows)
}

/// Returns p50, p99, the processor time of a process, and that of the agent beside it.
fn of_kind(
    laptop: &Laptop,
    number: usize,
    kind: &Kind,
    runs: u32,
) -> Outcome<(Duration, Duration, f64, Option<f64>)> {
    let payload = payload(if kind.name.contains("blocked") {
        super::BLOCKED
    } else {
        "ls -la /srv/app"
    });
    let agent = laptop.agent().ok().filter(|_| kind.stops.is_some());
    let spent = || agent.and_then(machine::cpu_time);
    let ended = || machine::cpu_time_of_ended_children().context("there is no /proc");
    let mut latencies = Vec::new();
    let (before, agents) = (ended()?, spent());
    for _ in 0..runs {
        let mut command = match number {
            0 => {
                let mut command = Command::new("/bin/true");
                command.env_clear();
                command
            }
            1 => laptop.command(&["--version"]),
            _ => laptop.command(&["hook", "run", "claude-code", "--mode", "enforce"]),
        };
        let start = clock::now();
        let (said, code) = run(&mut command, &payload)?;
        latencies.push(start.elapsed());
        let stops = code == 2 || said.contains("\"deny\"");
        if kind.stops.is_some_and(|due| due != stops) || (kind.stops.is_none() && code != 0) {
            return Err(Failure::new(format!("it ended with {code} and said {said}")));
        }
    }
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(runs);
    let cpu = each(ended()?.saturating_sub(before));
    let agents = agents
        .zip(spent())
        .map(|(before, after)| each(after.saturating_sub(before)));
    latencies.sort_unstable();
    Ok((quantile(&latencies, 50), quantile(&latencies, 99), cpu, agents))
}

/// Runs a process to the end of its output.
fn run(command: &mut Command, input: &[u8]) -> Outcome<(String, i32)> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a process")?;
    // One that reads nothing has ended before.
    drop(child.stdin.take().context("no input")?.write_all(input));
    let mut said = String::new();
    child
        .stdout
        .take()
        .context("no output")?
        .read_to_string(&mut said)
        .context("cannot read")?;
    let status = child.wait().context("cannot wait for a process")?;
    Ok((said, status.code().unwrap_or(-1)))
}

/// Returns the p99 of as many questions at the socket. Units: milliseconds.
fn told(laptop: &Laptop, runs: u32) -> Outcome<f64> {
    let payload = payload("ls -la /srv/app");
    let mut latencies = Vec::new();
    for _ in 0..runs {
        let start = clock::now();
        let told = laptop.tells("judge", &payload)?;
        latencies.push(start.elapsed());
        if told["decided"].is_null() {
            return Err(Failure::new(format!("the agent decides nothing: {told}")));
        }
    }
    latencies.sort_unstable();
    Ok(quantile(&latencies, 99).as_secs_f64() * 1e3)
}

fn payload(command: &str) -> Vec<u8> {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "6a1d6f3e-4f0c-4c66-9a4c-0d3b4f5a1c11", "cwd": "/srv/app",
        "transcript_path": "/home/ada/.claude/projects/app/6a1d6f3e.jsonl", "permission_mode": "default", "tool_name": "Bash",
        "tool_use_id": "toolu_01", "tool_input": { "command": command, "description": "Look at what is there before anything is done with it" },
        "padding": "x".repeat(100),
    })
    .to_string()
    .into_bytes()
}

/// What was judged has reached the server, each call as an event: measured was what is recorded.
fn must_be_recorded(laptop: &Laptop, server: &Server, bootstrap: &Bootstrap) -> Outcome {
    let administrator = crate::clients::administrator::Administrator::new(server, bootstrap);
    let mut said = Value::Null;
    let is_told = clock::poll_until(Duration::from_mins(1), Duration::from_millis(100), || {
        said = administrator
            .get(&format!("devices/{}/decisions", laptop.id))
            .unwrap_or_default();
        said["told"]["events"].as_u64().is_some_and(|events| events > 0)
    });
    if is_told && said["told"]["refused"] == 0 && said["told"]["mismatches"] == 0 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the server has nothing of what was judged: {said}"
    )))
}
