//! The program without the server, for the machines of people: its size, what it links, and what it costs while it runs.
//!
//! The figures of F4.5 and §17 of the design: 15 MB, 30 MB resident, 1 % of a core. A server of the ordinary build answers it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{self, Bootstrap, Installation, Server, Store, Workplace};
use crate::record::Record;
use crate::{clock, process};

/// Build the program without the server, and measure it
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this program without a server instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Use this program with a server instead of building one
    #[arg(long)]
    server: Option<PathBuf>,
    /// How long the agent runs while it is measured; an hour for the record
    #[arg(long, default_value_t = 1)]
    minutes: u64,
    /// Only check the types of the program for the targets that are installed, instead of measuring it
    #[arg(long)]
    cross: bool,
    /// Keep the figures for the page of assurance
    #[arg(long)]
    record: bool,
}

/// LIMIT: bytes of the program (issue 27, F4.2).
const MOST_BYTES: u64 = 15_000_000;
/// LIMIT: kilobytes resident (F4.5).
const MOST_RESIDENT: u64 = 30_000;
/// LIMIT: hundredths of a per cent of a core over the run (F4.5).
const MOST_CPU: u64 = 100;
/// What the program must not link (F4.2).
const FORBIDDEN: [&str; 7] = [
    "rusqlite",
    "tokio-postgres",
    "parquet",
    "object_store",
    "regorus",
    "axum",
    "provost-kernel",
];
/// The systems of F4.2 that the program could be for: folders, sockets and accounts are those of Unix, and there is none for Windows
/// (ADR 0134).
const TARGETS: [&str; 2] = ["x86_64-apple-darwin", "aarch64-apple-darwin"];
const WORDS: [&str; 5] = [
    "--package",
    "provost-server",
    "--no-default-features",
    "--features",
    "agent",
];

pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.cross {
        return cross();
    }
    must_link_no_server()?;
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => build()?,
    };
    let binary = std::path::absolute(binary).context("cannot find the program")?;
    let bytes = std::fs::metadata(&binary).context(binary.display())?.len();
    let mut missed = Vec::new();
    let mut compare = |what: &str, unit: &str, found: u64, most: u64| {
        println!("{what}: {found} {unit}, and at most {most} {unit} is the goal");
        if found > most {
            missed.push(what.to_owned());
        }
    };
    compare("size of the program", "kB", bytes / 1000, MOST_BYTES / 1000);
    let server = product::given(arguments.server.as_ref(), "ci")?;
    let server = std::path::absolute(server).context("cannot find the server")?;
    let cost = measure(&binary, &server, Duration::from_mins(arguments.minutes))?;
    compare("resident at most", "kB", cost.resident, MOST_RESIDENT);
    compare("processor", "hundredths of a per cent", cost.cpu, MOST_CPU);
    if !missed.is_empty() {
        return Err(Failure::new(format!("not reached: {}", missed.join(", "))));
    }
    if arguments.record {
        let figure = format!(
            "The agent's program has {} kB; in {} minutes it had at most {} kB resident and took {} hundredths of a per cent of a core.",
            bytes / 1000,
            arguments.minutes,
            cost.resident,
            cost.cpu
        );
        let command = format!("cargo xtask agent-build --minutes {} --record", arguments.minutes);
        Record::new(&["R53"], figure, command).write("agent-build")?;
    }
    Ok(())
}

fn build() -> Outcome<PathBuf> {
    eprintln!("building provost without the server, with the profile agent");
    let mut build = process::cargo();
    build.args(["build", "--quiet", "--profile", "agent", "--bin", "provost"]);
    process::run(build.args(WORDS))?;
    Ok(process::target().join("agent").join("provost"))
}

/// Fails where the program links what belongs to a server.
fn must_link_no_server() -> Outcome {
    let mut tree = process::cargo();
    tree.args(["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let linked = process::output(tree.args(WORDS))?;
    let mut names: Vec<&str> = linked
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.sort_unstable();
    names.dedup();
    let found: Vec<&str> = FORBIDDEN
        .into_iter()
        .filter(|name| names.contains(name))
        .collect();
    if found.is_empty() {
        println!("{} crates, none of a server", names.len());
        return Ok(());
    }
    Err(Failure::new(format!(
        "the program without a server links {}",
        found.join(", ")
    )))
}

/// What the agent cost.
struct Cost {
    /// Units: kilobytes.
    resident: u64,
    /// Units: hundredths of a per cent of a core.
    cpu: u64,
}

/// Enrols a machine at a server and has its agent run for a while.
fn measure(binary: &Path, server: &Path, time: Duration) -> Outcome<Cost> {
    let workplace = Workplace::create("agent-build")?;
    let data = workplace.folder.join("data");
    let installation = Installation::new(server, Store::Sqlite { data }, &workplace.folder);
    let bootstrap = installation.initialize()?;
    let running = installation.serve()?;
    let home = workplace.folder.join("home");
    furnish(&home)?;
    let token = workplace.folder.join("enrolment.token");
    std::fs::write(&token, enrolment_token(&running, &bootstrap)?).context(token.display())?;
    let url = format!("http://{}", running.address);
    let agent = |words: &[&str]| {
        let mut command = Command::new(binary);
        process::without_settings(&mut command);
        command.arg("agent").args(words).env("HOME", &home);
        command
    };
    let mut enrol = agent(&[
        "enrol",
        "--server",
        &url,
        "--organization",
        &bootstrap.organization,
    ]);
    process::output(enrol.arg("--token-file").arg(&token))?;
    let log = workplace.file("agent.log")?;
    let mut run = agent(&["run"]);
    let mut child = run
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share the log")?)
        .stderr(log)
        .spawn()
        .context("cannot start the agent")?;
    let cost = watch(&mut child, time);
    process::signal(child.id(), "TERM");
    let ended = child.wait().context("cannot wait for the agent")?;
    let cost = cost?;
    if !ended.success() {
        return Err(Failure::new(format!("the agent ended with {ended}")));
    }
    drop(running);
    workplace.remove()?;
    Ok(cost)
}

/// A home with what a scan reads.
fn furnish(home: &Path) -> Outcome {
    std::fs::create_dir_all(home).context(home.display())?;
    let servers = (0..25).map(|number| {
        let server = json!({ "command": "npx", "args": ["-y", format!("@acme/server-{number}@1.2.3")] });
        (format!("server-{number}"), server)
    });
    let settings = json!({ "mcpServers": servers.collect::<serde_json::Map<_, _>>() });
    let file = home.join(".claude.json");
    std::fs::write(&file, settings.to_string()).context(file.display())
}

fn enrolment_token(server: &Server, bootstrap: &Bootstrap) -> Outcome<String> {
    let body =
        json!({ "name": "desk", "mode": "user", "reason": "a measurement", "idempotencyKey": "agent-build" });
    let path = bootstrap.path("devices/enrolment-tokens");
    let request = Request::new("POST", path, &bootstrap.token).with_body(body);
    let made = Connection::new(server.address).fetch(&request)?;
    let token = made["token"].as_str().map(str::to_owned);
    token.context("an answer without an enrolment token")
}

/// Looks at the agent twice a second until time is up.
fn watch(child: &mut Child, time: Duration) -> Outcome<Cost> {
    let (begin, pid) = (clock::now(), child.id());
    let mut resident = 0;
    while begin.elapsed() < time {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Failure::new(format!("the agent ended by itself with {status}")));
        }
        resident = resident.max(resident_of(pid)?);
        std::thread::sleep(Duration::from_millis(500));
    }
    let spent = spent_by(pid)?;
    let lived = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    // Ten milliseconds a tick; ten thousand hundredths of a per cent are the whole.
    let cpu = spent.saturating_mul(10 * 10_000) / lived.max(1);
    Ok(Cost { resident, cpu })
}

/// Returns what a process has resident. Units: kilobytes.
fn resident_of(pid: u32) -> Outcome<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).context(&path)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.context("a process without a size")
}

/// Returns how long a process and its threads worked. Units: ticks, of which Linux has a hundred a second for every program.
fn spent_by(pid: u32) -> Outcome<u64> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).context(&path)?;
    // The name of the program stands in brackets and may hold anything.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
    ticks(11)
        .zip(ticks(12))
        .map(|(user, system)| user + system)
        .context("a process without times")
}

/// Checks the types of the program for other systems. No C is compiled: a compiler that makes empty files stands in for one.
fn cross() -> Outcome {
    let installed = process::output(Command::new("rustup").args(["target", "list", "--installed"]))?;
    let folder = process::target().join("xtask").join("no-compiler");
    std::fs::create_dir_all(&folder).context(folder.display())?;
    let stub = folder.join("cc");
    std::fs::write(&stub, STUB).context(stub.display())?;
    process::run(Command::new("chmod").arg("755").arg(&stub))?;
    let mut failed = Vec::new();
    for target in TARGETS {
        if !installed.lines().any(|line| line.trim() == target) {
            println!("{target}: not installed (rustup target add {target})");
            continue;
        }
        let mut check = process::cargo();
        check.args(["check", "--quiet", "--bin", "provost", "--target", target]);
        let name = target.replace('-', "_");
        for tool in ["CC", "CXX", "AR", "RANLIB"] {
            check.env(format!("{tool}_{name}"), &stub);
        }
        let is_sound = process::status(check.args(WORDS))?.success();
        println!("{target}: {}", if is_sound { "sound" } else { "not sound" });
        if !is_sound {
            failed.push(target);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("not sound: {}", failed.join(", "))))
}

/// Makes the file that it is asked for, with nothing in it.
const STUB: &str = r#"#!/bin/sh
out=
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    -o*) out=${1#-o} ;;
    *.a) out=$1 ;;
  esac
  shift
done
if [ -n "$out" ]; then : > "$out"; fi
exit 0
"#;
