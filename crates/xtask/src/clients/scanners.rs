//! What `provost scan` finds, beside what others find and write.
//!
//! Snyk Agent Scan reads the same home without contacting a server (nobody consents); what only one of the two finds, by client, kind,
//! name, what runs and file, must be in a committed list with its reason, and a reason without its difference fails as well. The clients' own commands add servers, whose keys are known. And a home full of marked secrets is
//! scanned: none of them may come out, no program may be started and no socket opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;

use super::terminal::{CLAUDE, CODEX};
use super::{Scene, install};
use crate::failure::{Context, Failure, Outcome};
use crate::random::mixed;
use crate::{homes, process, python};

/// What the scan's own differences from Snyk Agent Scan are, each with its reason.
const DIFFERENCES: &str = "crates/xtask/clients/scanners/differences.txt";
/// How long a look at a home may take. Ours: a hundred times what each of them takes.
const LONGEST: Duration = Duration::from_mins(5);
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

/// Something that a scanner found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Find {
    client: String,
    kind: &'static str,
    name: String,
    /// What runs, with its version, or its address, as the scan's keys say it; nothing of a skill.
    what: String,
    /// The file or folder, below the home.
    file: String,
}

impl Display for Find {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            client,
            kind,
            name,
            what,
            file,
        } = self;
        write!(to, "{kind} {name} of {client}, ")?;
        if !what.is_empty() {
            write!(to, "{what}, ")?;
        }
        write!(to, "in {file}")
    }
}

fn compare(scene: &Scene<'_>) -> Outcome {
    let home = homes::of_many_clients(&scene.folder)?;
    let ours = found_by_us(scene, &home)?;
    let theirs = found_by_snyk(&home)?;
    let mut differences = BTreeSet::new();
    for find in ours.difference(&theirs) {
        differences.insert(format!("only provost scan: {find}"));
    }
    for find in theirs.difference(&ours) {
        differences.insert(format!("only Snyk Agent Scan: {find}"));
    }
    println!(
        "    {} things by provost scan, {} by Snyk Agent Scan, {} by both",
        ours.len(),
        theirs.len(),
        ours.intersection(&theirs).count()
    );
    let file = process::root().join(DIFFERENCES);
    let text = std::fs::read_to_string(&file).context(file.display())?;
    let problems = unexplained(&text, &differences);
    if problems.is_empty() {
        println!("    {} differences, each with its reason", differences.len());
        return Ok(());
    }
    Err(Failure::new(format!("{DIFFERENCES}:\n{}", problems.join("\n"))))
}

/// Returns what is wrong between a list of explanations and the differences that there are: each one has its line with a reason, and no line
/// stands for one that there is not.
fn unexplained(text: &str, differences: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut explained = BTreeSet::new();
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (difference, reason) = line.split_once(" — ").unwrap_or((line, ""));
        if reason.trim().is_empty() {
            problems.push(format!("no reason: {line}"));
        }
        if !explained.insert(difference.to_owned()) {
            problems.push(format!("twice: {difference}"));
        }
    }
    let missing = differences.difference(&explained);
    problems.extend(missing.map(|difference| format!("not explained: {difference}")));
    let stale = explained.difference(differences);
    problems.extend(stale.map(|difference| format!("explained, and no difference any more: {difference}")));
    problems
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
    command.args(["scan", "--output", "json"]);
    let text = process::output_within(&mut command, LONGEST, "provost scan, which looks at the home")?;
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

/// The file of the home that a class of files stands for: a report has no paths, and the home has one file of each class.
const FILES: [(&str, &str); 23] = [
    ("~/.claude.json", ".claude.json"),
    ("~/.claude/skills", ".claude/skills"),
    (
        "~/.claude/plugins/**/.mcp.json",
        ".claude/plugins/cache/acme/tools/1.0.0/.mcp.json",
    ),
    (
        "~/.claude/plugins/**/skills",
        ".claude/plugins/cache/acme/tools/1.0.0/skills",
    ),
    ("P/.claude/skills", "work/shop/.claude/skills"),
    ("P/.mcp.json", "work/shop/.mcp.json"),
    ("P/.cursor/mcp.json", "work/shop/.cursor/mcp.json"),
    ("P/.vscode/mcp.json", "work/shop/.vscode/mcp.json"),
    (
        "claude_desktop_config.json",
        ".config/Claude/claude_desktop_config.json",
    ),
    (
        "Claude Extensions/*/manifest.json",
        ".config/Claude/Claude Extensions/local.mcpb.acme.ledger/manifest.json",
    ),
    ("~/.codex/config.toml", ".codex/config.toml"),
    ("~/.codex/skills", ".codex/skills"),
    ("~/.cursor/mcp.json", ".cursor/mcp.json"),
    ("~/.cursor/skills", ".cursor/skills"),
    ("Code/User/mcp.json", ".config/Code/User/mcp.json"),
    (
        "~/.vscode/extensions/*/package.json",
        ".vscode/extensions/acme.shelves-1.4.0/package.json",
    ),
    (
        "~/.codeium/windsurf/mcp_config.json",
        ".codeium/windsurf/mcp_config.json",
    ),
    ("~/.gemini/settings.json", ".gemini/settings.json"),
    ("~/.gemini/skills", ".gemini/skills"),
    ("~/.config/zed/settings.json", ".config/zed/settings.json"),
    ("~/.config/goose/config.yaml", ".config/goose/config.yaml"),
    (
        "~/.config/opencode/opencode.json",
        ".config/opencode/opencode.json",
    ),
    ("~/.continue/config.yaml", ".continue/config.yaml"),
];

fn found_by_us(scene: &Scene<'_>, home: &Path) -> Outcome<BTreeSet<Find>> {
    let report = scan(scene, home)?;
    let mut finds = BTreeSet::new();
    for (client, observation) in observations(&report) {
        let text = |member: &str| observation[member].as_str().unwrap_or_default().to_owned();
        let (kind, name, what) = match observation["kind"].as_str() {
            Some("mcp_server") => {
                let version = observation["version"]
                    .as_str()
                    .map(|version| format!(" {version}"));
                let what = text("key") + &version.unwrap_or_default();
                ("mcp_server", text("configuredName"), what)
            }
            Some("skill") => ("skill", text("name"), String::new()),
            _ => continue,
        };
        let class = observation["place"]["class"].as_str().unwrap_or_default();
        let file = FILES.iter().find(|(of, _)| *of == class).map(|(_, file)| *file);
        let file = file.context(format_args!("the home has no file of the class {class}"))?;
        let file = if kind == "skill" {
            format!("{file}/{name}")
        } else {
            file.to_owned()
        };
        finds.insert(Find {
            client: client.to_owned(),
            kind,
            name,
            what,
            file,
        });
    }
    Ok(finds)
}

fn found_by_snyk(home: &Path) -> Outcome<BTreeSet<Find>> {
    let mut command = in_home(&snyk()?, home);
    let what = "Snyk Agent Scan, which looks at the home";
    let text = process::output_within(command.args(["inspect", "--json"]), LONGEST, what)?;
    let report: Value = serde_json::from_str(&text).context("the other report is not JSON")?;
    let mut finds = BTreeSet::new();
    let below = |path: &Value| {
        let path = Path::new(path.as_str().unwrap_or_default());
        path.strip_prefix(home).unwrap_or(path).display().to_string()
    };
    for of_client in report
        .as_object()
        .context("the other report has no clients")?
        .values()
    {
        let client = of_client["client"].as_str().unwrap_or_default().replace(' ', "_");
        for (member, kind, place) in [
            ("servers", "mcp_server", "config_path"),
            ("skills", "skill", "installation_path"),
        ] {
            for one in of_client[member].as_array().into_iter().flatten() {
                // What it did look into, it started or called.
                let category = one["error"]["category"].as_str();
                if kind == "mcp_server" && category != Some("user_declined") {
                    return Err(Failure::new(format!("a server was not declined: {one}")));
                }
                finds.insert(Find {
                    client: client.clone(),
                    kind,
                    name: one["name"].as_str().unwrap_or_default().to_owned(),
                    what: if kind == "skill" {
                        String::new()
                    } else {
                        what_runs(&one["server"])?
                    },
                    file: below(&one[place]),
                });
            }
        }
    }
    Ok(finds)
}

/// Returns what runs as the scan's keys would say it, for the plain commands of the home: made from the words of the other report alone, so
/// that the scan's own rules are compared and not asked.
fn what_runs(server: &Value) -> Outcome<String> {
    if let Some(url) = server["url"].as_str() {
        return Ok(format!("url:{url}"));
    }
    let words: Vec<&str> = server["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let last = words.last().copied().unwrap_or_default();
    let (kind, split) = match server["command"].as_str() {
        // The first character may be the `@` of a scope.
        Some("npx") => ("npm:", last.rfind('@').filter(|at| *at > 0).map(|at| (at, 1))),
        Some("uvx") => ("pypi:", last.find("==").map(|at| (at, 2))),
        Some("docker") => ("oci:docker.io/", last.rfind(':').map(|at| (at, 1))),
        _ => {
            return Err(Failure::new(format!(
                "a command that no rule here is for: {server}"
            )));
        }
    };
    let name = split.and_then(|(at, _)| last.get(..at)).unwrap_or(last);
    let version = split.and_then(|(at, long)| last.get(at + long..));
    // `@3` is whatever is the newest of a range, which the scan calls no version.
    let is_one = |version: &&str| kind != "npm:" || version.matches('.').count() == 2;
    let version = version.filter(is_one);
    let version = version.map(|version| format!(" {version}")).unwrap_or_default();
    Ok(format!("{kind}{name}{version}"))
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
    let mut shown = process::output_within(&mut traced, LONGEST, "provost scan below strace")?;
    let report: Value = serde_json::from_str(&shown).context("the scan's report is not JSON")?;
    let seen = observations(&report).len();
    for form in ["csv", "wide", "yaml"] {
        let mut command = in_home(&scene.installation.binary, &home);
        command.args(["scan", "--output", form]);
        shown += &process::output_within(&mut command, LONGEST, "provost scan, which looks at the home")?;
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
        let what = format!("{}, which adds {}", addition.client, addition.name);
        process::output_within(&mut command, LONGEST, &what).context(addition.name)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_difference_has_its_reason_and_each_reason_its_difference() {
        let differences: BTreeSet<String> = ["only a: x".to_owned(), "only b: y".to_owned()].into();
        let right = "# a list\nonly a: x — it cannot\nonly b: y — nor it\n";
        assert_eq!(unexplained(right, &differences), [""; 0]);
        let wrong = "only a: x\nonly c: z — it could once\nonly c: z — it could once\n";
        assert_eq!(
            unexplained(wrong, &differences),
            [
                "no reason: only a: x",
                "twice: only c: z",
                "not explained: only b: y",
                "explained, and no difference any more: only c: z",
            ]
        );
    }

    #[test]
    fn commands_of_the_other_report_read_as_keys() {
        for (server, key) in [
            (
                json!({ "command": "npx", "args": ["-y", "@acme/files@1.2.3"] }),
                "npm:@acme/files 1.2.3",
            ),
            (
                json!({ "command": "npx", "args": ["@acme/files"] }),
                "npm:@acme/files",
            ),
            (
                json!({ "command": "npx", "args": ["acme-orders@3"] }),
                "npm:acme-orders",
            ),
            (
                json!({ "command": "uvx", "args": ["acme-till==2.0"] }),
                "pypi:acme-till 2.0",
            ),
            (
                json!({ "command": "docker", "args": ["run", "acme/deploy:2"] }),
                "oci:docker.io/acme/deploy 2",
            ),
            (
                json!({ "url": "https://a.example/mcp" }),
                "url:https://a.example/mcp",
            ),
        ] {
            assert_eq!(what_runs(&server).unwrap(), key);
        }
        assert!(what_runs(&json!({ "command": "sh" })).is_err());
    }
}
