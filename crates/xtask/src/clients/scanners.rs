//! What `provost scan` finds, beside what others find and write.
//!
//! Snyk Agent Scan reads the same home without contacting a server (nobody consents); what only one of the two finds must be in a
//! committed list with its reason. The clients' own commands add servers, whose keys are known. And a home full of marked secrets is
//! scanned: none of them may come out, no program may be started and no socket opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;

use super::terminal::{CLAUDE, CODEX};
use super::{Scene, install};
use crate::failure::{Context, Failure, Outcome};
use crate::random::mixed;
use crate::{homes, process, python};

/// What the scan's own differences from Snyk Agent Scan are, each with its reason.
const DIFFERENCES: &str = "crates/xtask/clients/scanners/differences.txt";
/// With what each planted secret begins.
const CANARY: &str = "cnry";
/// How many have to be planted: fleet.md's number.
const CANARIES: u64 = 10_000;
const GEMINI: &str = "@google/gemini-cli/bundle/gemini.js";

/// Returns the program of Snyk Agent Scan; installs it when it is not there.
pub fn snyk() -> Outcome<PathBuf> {
    let requirements = install::sources().join("scanners/requirements.txt");
    Ok(python::programs("scanners", &requirements)?.join("snyk-agent-scan"))
}

/// Compares with the other scanner, and looks for what must not come out.
pub(super) fn run(scene: &Scene<'_>) -> Outcome {
    compare(scene)?;
    keep_silent(scene)
}

/// A kind of thing and its name; the fixture names each thing once.
type Find = (String, String);

fn compare(scene: &Scene<'_>) -> Outcome {
    let home = homes::of_many_clients(&scene.folder)?;
    let ours = found_by_us(scene, &home)?;
    let theirs = found_by_snyk(&home)?;
    let mut differences = Vec::new();
    for (kind, name) in ours.difference(&theirs) {
        differences.push(format!("only provost scan: {kind} {name}"));
    }
    for (kind, name) in theirs.difference(&ours) {
        differences.push(format!("only Snyk Agent Scan: {kind} {name}"));
    }
    println!(
        "    {} things by provost scan, {} by Snyk Agent Scan, {} by both",
        ours.len(),
        theirs.len(),
        ours.intersection(&theirs).count()
    );
    let file = process::root().join(DIFFERENCES);
    let text = std::fs::read_to_string(&file).context(file.display())?;
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let explained: Vec<&str> = lines
        .map(|line| {
            line.split_once(" — ")
                .map_or("a line without a reason", |(left, _)| left)
        })
        .collect();
    for line in &differences {
        println!("      {line}");
    }
    if explained == differences {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{DIFFERENCES} explains other differences: {explained:?} instead of {differences:?}"
    )))
}

fn in_home(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", home)
        .current_dir(home)
        .stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn scan(scene: &Scene<'_>, home: &Path) -> Outcome<Value> {
    let mut command = in_home(&scene.installation.binary, home);
    let text = process::output(command.args(["scan", "--output", "json"]))?;
    serde_json::from_str(&text).context("the scan's report is not JSON")
}

/// Every observation with its client.
fn observations(report: &Value) -> Vec<(&str, &Value)> {
    let sections = report["sections"].as_array().into_iter().flatten();
    let of = |section: &'_ Value| section["observations"].as_array().map(Vec::len);
    let mut all = Vec::new();
    for section in sections.filter(|section| of(section).is_some()) {
        let client = section["client"].as_str().unwrap_or_default();
        all.extend(
            section["observations"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|observation| (client, observation)),
        );
    }
    all
}

fn found_by_us(scene: &Scene<'_>, home: &Path) -> Outcome<BTreeSet<Find>> {
    let report = scan(scene, home)?;
    let find = |observation: &Value| {
        let kind = observation["kind"].as_str()?;
        let name = match kind {
            "mcp_server" => &observation["configuredName"],
            "skill" => &observation["name"],
            _ => return None,
        };
        Some((kind.to_owned(), name.as_str()?.to_owned()))
    };
    let finds = observations(&report);
    Ok(finds
        .iter()
        .filter_map(|(_, observation)| find(observation))
        .collect())
}

fn found_by_snyk(home: &Path) -> Outcome<BTreeSet<Find>> {
    let mut command = in_home(&snyk()?, home);
    let text = process::output(command.args(["inspect", "--json"]))?;
    let report: Value = serde_json::from_str(&text).context("the other report is not JSON")?;
    let mut finds = BTreeSet::new();
    for client in report
        .as_object()
        .context("the other report has no clients")?
        .values()
    {
        for (member, kind) in [("servers", "mcp_server"), ("skills", "skill")] {
            let all = client[member].as_array().into_iter().flatten();
            let names = all.filter_map(|one| one["name"].as_str());
            finds.extend(names.map(|name| (kind.to_owned(), name.to_owned())));
        }
    }
    Ok(finds)
}

/// INVARIANT of the scan: no program is started, no socket opened, and no value leaves.
fn keep_silent(scene: &Scene<'_>) -> Outcome {
    process::find_or_install("strace")?;
    let mut planted = Vec::new();
    let home = homes::crowded(&scene.folder, &mut || {
        let canary = format!("{CANARY}{:016x}", mixed(planted.len() as u64));
        planted.push(canary.clone());
        canary
    })?;
    if (planted.len() as u64) < CANARIES {
        return Err(Failure::new(format!(
            "only {} secrets were planted",
            planted.len()
        )));
    }
    let calls = scene.folder.join("calls");
    let mut traced = in_home(Path::new("strace"), &home);
    traced.args([
        "-f",
        "-qq",
        "-e",
        "trace=execve,execveat,socket,connect,sendto,sendmsg",
        "-e",
        "signal=none",
        "-o",
    ]);
    traced
        .arg(&calls)
        .arg(&scene.installation.binary)
        .args(["scan", "--output", "json"]);
    let mut shown = process::output(&mut traced)?;
    let report: Value = serde_json::from_str(&shown).context("the scan's report is not JSON")?;
    let seen = observations(&report).len();
    for form in ["csv", "wide", "yaml"] {
        let mut command = in_home(&scene.installation.binary, &home);
        shown += &process::output(command.args(["scan", "--output", form]))?;
    }
    let trace = std::fs::read_to_string(&calls).context(calls.display())?;
    let calls: Vec<&str> = trace.lines().filter(|line| !line.contains("exited")).collect();
    if calls.len() != 1 || !calls[0].contains("execve") {
        return Err(Failure::new(format!(
            "the scan started or asked something: {calls:?}"
        )));
    }
    // A digest without a key is as good as the secret to whoever can guess it.
    let hashed = |canary: &String| {
        let hash = digest(&SHA256, canary.as_bytes());
        hash.as_ref().iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let is_out = |canary: &&String| shown.contains(canary.as_str()) || shown.contains(&hashed(canary));
    let out: Vec<&String> = planted.iter().filter(is_out).collect();
    println!(
        "    {seen} things in a home with {} planted secrets: {} came out; 1 program ran, no socket was opened",
        planted.len(),
        out.len()
    );
    if out.is_empty() && seen > homes::PROJECTS + homes::SERVERS + homes::SKILLS {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{seen} things; these secrets came out: {out:?}"
    )))
}

/// What is typed: the program, its words, and the key that the scan must give the server of the first word after `add`'s flags.
struct Addition {
    client: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    name: &'static str,
    key: &'static str,
}

const fn addition(
    (client, program): (&'static str, &'static str),
    words: &'static [&'static str],
    name: &'static str,
    key: &'static str,
) -> Addition {
    Addition {
        client,
        program,
        words,
        name,
        key,
    }
}

const OF_CLAUDE: (&str, &str) = ("claude_code", CLAUDE);
const OF_CODEX: (&str, &str) = ("codex", CODEX);
const OF_GEMINI: (&str, &str) = ("gemini_cli", GEMINI);
const ADDITIONS: [Addition; 9] = [
    addition(
        OF_CLAUDE,
        &[
            "mcp",
            "add",
            "--scope",
            "user",
            "files",
            "--",
            "npx",
            "-y",
            "@acme/files@1.2.3",
        ],
        "files",
        "npm:@acme/files",
    ),
    addition(
        OF_CLAUDE,
        &[
            "mcp",
            "add",
            "--scope",
            "user",
            "--transport",
            "http",
            "tickets",
            "https://Tickets.acme.example:443/mcp",
        ],
        "tickets",
        "url:https://tickets.acme.example/mcp",
    ),
    addition(
        OF_CLAUDE,
        &[
            "mcp",
            "add",
            "--scope",
            "project",
            "orders",
            "--",
            "uvx",
            "acme-orders==3.1",
        ],
        "orders",
        "pypi:acme-orders",
    ),
    addition(
        OF_CLAUDE,
        &[
            "mcp",
            "add",
            "till",
            "--env",
            "TILL_KEY=cnry-till",
            "--",
            "docker",
            "run",
            "-i",
            "--rm",
            "ghcr.io/acme/till:2",
        ],
        "till",
        "oci:ghcr.io/acme/till",
    ),
    addition(
        OF_CODEX,
        &["mcp", "add", "search", "--", "uvx", "acme-search"],
        "search",
        "pypi:acme-search",
    ),
    addition(
        OF_CODEX,
        &["mcp", "add", "wiki", "--url", "https://wiki.acme.example/mcp"],
        "wiki",
        "url:https://wiki.acme.example/mcp",
    ),
    addition(
        OF_GEMINI,
        &["mcp", "add", "--scope", "user", "sketch", "npx", "acme-sketch"],
        "sketch",
        "npm:acme-sketch",
    ),
    addition(
        OF_GEMINI,
        &[
            "mcp",
            "add",
            "--scope",
            "user",
            "--transport",
            "http",
            "mail",
            "https://mail.acme.example/mcp",
        ],
        "mail",
        "url:https://mail.acme.example/mcp",
    ),
    addition(
        OF_GEMINI,
        &[
            "mcp",
            "add",
            "--scope",
            "user",
            "--transport",
            "sse",
            "feed",
            "https://feed.acme.example/sse",
        ],
        "feed",
        "url:https://feed.acme.example/sse",
    ),
];

/// Adds servers with the clients' own commands and compares their keys.
pub(super) fn additions(scene: &Scene<'_>) -> Outcome {
    let home = scene.folder.join("added");
    let project = home.join("work/shop");
    std::fs::create_dir_all(&project).context("cannot make a home")?;
    std::fs::create_dir_all(home.join(".codex")).context("cannot make a home")?;
    // Claude Code takes the root of a repository for the project, and this home may lie in one.
    process::output(Command::new("git").args(["init", "--quiet"]).arg(&project))?;
    for addition in &ADDITIONS {
        let mut command = if addition.program == GEMINI {
            scene.tools.hook_client(GEMINI)
        } else {
            scene.tools.command(addition.program)
        };
        command
            .args(addition.words)
            .env_clear()
            .env("HOME", &home)
            .current_dir(&project);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        println!("    $ {} {}", addition.client, addition.words.join(" "));
        process::output(command.stdin(Stdio::null())).context(addition.name)?;
    }
    let report = scan(scene, &home)?;
    let mut keys = BTreeMap::new();
    for (client, observation) in observations(&report) {
        if let (Some(name), Some(key)) = (
            observation["configuredName"].as_str(),
            observation["key"].as_str(),
        ) {
            keys.insert((client, name), key);
        }
    }
    let expected: BTreeMap<_, _> = ADDITIONS
        .iter()
        .map(|addition| ((addition.client, addition.name), addition.key))
        .collect();
    if report.to_string().contains(CANARY) {
        return Err(Failure::new("the value of a variable came out"));
    }
    if keys == expected {
        println!(
            "    {} servers that three clients added have their keys",
            keys.len()
        );
        return Ok(());
    }
    Err(Failure::new(format!(
        "the keys are {keys:?} instead of {expected:?}"
    )))
}
