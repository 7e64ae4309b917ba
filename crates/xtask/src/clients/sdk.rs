//! The official SDKs and the Inspector: each lists, reads, writes, and is refused once its session is revoked.

use std::collections::BTreeSet;
use std::process::Command;

use super::Scene;
use super::administrator::{Account, sorted, text};
use super::install::{self, Python};
use super::program::Program;
use super::served::{self, Row};
use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// What the steps need.
const SCOPES: &[&str] = &["directory:write", "service_accounts:read"];
/// What a session then has: who writes may read.
const GRANTED: &[&str] = &["directory:read", "directory:write", "service_accounts:read"];
const STEPS: &[&str] = &[
    "connected",
    "tools",
    "read",
    "write",
    "unconfirmed",
    "deleted",
    "resource",
    "prompt",
    "waiting",
];
/// The steps in words.
const WORKS: &str = "connects, lists tools, reads, writes, is asked to confirm a deletion, deletes, reads a resource, gets a prompt; is refused once \
                     its session is revoked";
const REASON: &str = "a client was lost";

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// One client on one way with one revision.
struct Case {
    sdk: Sdk,
    way: &'static str,
    revision: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sdk {
    TypeScript1,
    TypeScript2,
    Python1,
    Python2,
    Rust,
    Inspector,
}

impl Sdk {
    /// The name that the client gives itself; the Inspector has one of its own.
    fn name(self) -> &'static str {
        match self {
            Self::TypeScript1 => "typescript-1",
            Self::TypeScript2 => "typescript-2",
            Self::Python1 => "python-1",
            Self::Python2 => "python-2",
            Self::Rust => "rmcp",
            Self::Inspector => "inspector",
        }
    }
}

impl Sdk {
    /// The package that is pinned, and the file that pins it.
    fn package(self) -> &'static str {
        match self {
            Self::TypeScript1 => "@modelcontextprotocol/sdk",
            Self::TypeScript2 => "@modelcontextprotocol/client",
            Self::Python1 | Self::Python2 => "mcp",
            Self::Rust => "rmcp",
            Self::Inspector => "@modelcontextprotocol/inspector",
        }
    }

    fn requirements(self) -> &'static str {
        match self {
            Self::Python1 => "python-1.txt",
            Self::Python2 => "python-2.txt",
            Self::Rust => served::LOCK,
            _ => "package.json",
        }
    }
}

/// The first line of either SDK does not know the second revision.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for way in ["http", "stdio"] {
        for (sdk, revisions) in [
            (Sdk::TypeScript1, &[OLD][..]),
            (Sdk::TypeScript2, &[OLD, NEW]),
            (Sdk::Python1, &[OLD]),
            (Sdk::Python2, &[OLD, NEW]),
        ] {
            cases.extend(revisions.iter().map(|revision| Case { sdk, way, revision }));
        }
    }
    for sdk in [Sdk::Rust, Sdk::Inspector] {
        cases.extend([OLD, NEW].map(|revision| Case {
            sdk,
            way: "http",
            revision,
        }));
    }
    cases
}

pub fn run(scene: &mut Scene<'_>) -> Outcome<Vec<Row>> {
    let cases = cases();
    for case in &cases {
        let name = format!("{} {} {}", case.sdk.name(), case.way, case.revision);
        println!("{name}");
        connect(scene, case, &name).context(name)?;
    }
    println!(
        "{} clients were served, and refused after the revocation",
        cases.len()
    );
    rows(&cases)
}

/// What was seen, for the table: each client with its ways and revisions.
fn rows(cases: &[Case]) -> Outcome<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for sdk in [
        Sdk::TypeScript1,
        Sdk::TypeScript2,
        Sdk::Python1,
        Sdk::Python2,
        Sdk::Rust,
        Sdk::Inspector,
    ] {
        let of_it: Vec<&Case> = cases.iter().filter(|case| case.sdk == sdk).collect();
        let unique = |words: Vec<&str>| {
            words
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join(", ")
        };
        rows.push([
            served::named(sdk.package(), sdk.requirements())?,
            unique(of_it.iter().map(|case| case.way).collect()),
            unique(of_it.iter().map(|case| case.revision).collect()),
            WORKS.to_owned(),
        ]);
    }
    Ok(rows)
}

fn connect(scene: &Scene<'_>, case: &Case, name: &str) -> Outcome {
    let mut administrator = scene.administrator();
    let account = administrator.account(name, "admin", SCOPES)?;
    let mut program = Program::start(&mut command(scene, case, &account)?)?;
    for step in STEPS {
        program.step(step)?;
    }
    let sessions = administrator.sessions(&[("serviceAccountId", &account.id)])?;
    let [session] = &sessions[..] else {
        return Err(Failure::new(format!(
            "one session is expected, not {sessions:#?}"
        )));
    };
    let is_named = case.sdk == Sdk::Inspector || session["mcpClientId"] == case.sdk.name();
    let is_right = session["status"] == "active"
        && session["actorType"] == "service_account"
        && sorted(&session["scopes"]) == GRANTED;
    if !is_named || !is_right {
        return Err(Failure::new(format!("this session is not right: {session:#}")));
    }
    let id = text(session, "/id")?;
    administrator.revoke(&id, REASON)?;
    program.tell("go")?;
    program.step("refused")?;
    program.ends()?;
    let sessions = administrator.sessions(&[("serviceAccountId", &account.id)])?;
    let ended = sessions.iter().map(|s| (&s["status"], &s["revokeReason"]));
    if !ended.eq([(&"revoked".into(), &REASON.into())]) {
        return Err(Failure::new(format!(
            "a session that is not ended: {sessions:#?}"
        )));
    }
    // D7.11: the token stays good for what is not MCP.
    match administrator.status_of(&account.token)? {
        200 => Ok(()),
        status => Err(Failure::new(format!("an HTTP operation answers {status}"))),
    }
}

fn command(scene: &Scene<'_>, case: &Case, account: &Account) -> Outcome<Command> {
    let tools = scene.tools;
    let name = case.sdk.name();
    let mut command = match case.sdk {
        Sdk::TypeScript1 | Sdk::TypeScript2 => tools.script("typescript.mjs"),
        Sdk::Inspector => tools.script("inspector.mjs"),
        Sdk::Rust => Command::new(install::rust()?),
        Sdk::Python1 => Command::new(install::python(Python::One)?),
        Sdk::Python2 => Command::new(install::python(Python::Two)?),
    };
    match case.sdk {
        Sdk::TypeScript1 => command.args(["1", case.way, case.revision, name]),
        Sdk::TypeScript2 => command.args(["2", case.way, case.revision, name]),
        Sdk::Rust => command.args([case.revision, name]),
        Sdk::Inspector => command.arg(if case.revision == OLD { "legacy" } else { "modern" }),
        Sdk::Python1 | Sdk::Python2 => {
            command.arg(install::sources().join("python_client.py"));
            command.args([case.way, case.revision, name])
        }
    };
    process::without_settings(&mut command);
    command
        .env("PROVOST_URL", scene.origin())
        .env("PROVOST_MCP_URL", format!("{}/mcp?toolsets=all", scene.origin()))
        .env("PROVOST_ORGANIZATION", &scene.bootstrap.organization)
        .env("PROVOST_TOKEN", &account.token)
        .env("PROVOST_ADMIN_TOKEN", &scene.bootstrap.token)
        .env("PROVOST_BINARY", &scene.installation.binary)
        .env("HOME", &scene.folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(&scene.folder);
    Ok(command)
}
