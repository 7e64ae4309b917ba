//! The command lines of Claude Code and Codex as the guide has them (`docs/guide/connect-mcp-clients.md`).
//!
//! They connect, list and are refused with their own code; a model is never asked.

use std::process::Command;

use super::Scene;
use super::program::Program;
use super::served::{self, Row};
use super::sign_in;
use super::terminal::{CLAUDE, CODEX, Terminal};
use crate::failure::{Context, Failure, Outcome};

/// Where Claude Code listens for the answer to its authorization request.
const CALLBACK_PORT: &str = "38533";

pub fn run(scene: &mut Scene<'_>) -> Outcome<Vec<Row>> {
    claude(scene).context("Claude Code")?;
    codex(scene).context("Codex")?;
    codex_of_a_program(scene).context("Codex with a program")?;
    sign_in::person(&mut scene.administrator())?;
    claude_of_a_person(scene).context("Claude Code of a person")?;
    codex_of_a_person(scene).context("Codex of a person")?;
    let row = |package: &str, way: &str, works: &str| -> Outcome<Row> {
        Ok([
            served::named(package, "commands/package.json")?,
            way.to_owned(),
            "as it agrees".to_owned(),
            works.to_owned(),
        ])
    };
    let (claude, codex) = ("@anthropic-ai/claude-code", "@openai/codex");
    let signs_in = "signs a person in by OAuth 2.1";
    Ok(vec![
        row(
            claude,
            "http, stdio",
            "connects with a token as the guide has it; 401 after the revocation",
        )?,
        row(
            claude,
            "http",
            &format!("{signs_in}; asks to sign in again after the revocation"),
        )?,
        row(
            codex,
            "http, stdio",
            "connects with a token, lists tools, reads, writes, reads a resource; is refused after the revocation",
        )?,
        row(
            codex,
            "http",
            &format!("{signs_in}, reads, reads a resource; is refused after the revocation"),
        )?,
    ])
}

fn claude(scene: &Scene<'_>) -> Outcome {
    let terminal = Terminal::open(scene, "claude")?;
    let endpoint = format!("{}/mcp", scene.origin());
    let header = "Authorization: Bearer ${PROVOST_TOKEN}";
    terminal.types(
        CLAUDE,
        &[
            "mcp",
            "add",
            "--transport",
            "http",
            "provost",
            &endpoint,
            "--header",
            header,
        ],
    )?;
    let binary = scene.installation.binary.display().to_string();
    terminal.types(CLAUDE, &["mcp", "add", "provost-stdio", "--", &binary, "mcp"])?;
    for name in ["provost", "provost-stdio"] {
        terminal.reads(CLAUDE, &["mcp", "get", name], "✔ Connected")?;
    }
    terminal.reads(CLAUDE, &["mcp", "list"], "✔ Connected")?;
    terminal.ends_its_sessions()?;
    let said = terminal.reads(CLAUDE, &["mcp", "list"], "401")?;
    if said.contains("✔") {
        return Err(Failure::new(format!(
            "it is connected after the revocation: {said}"
        )));
    }
    Ok(())
}

fn codex(scene: &Scene<'_>) -> Outcome {
    let terminal = Terminal::open(scene, "codex")?;
    let endpoint = format!("{}/mcp?toolsets=all", scene.origin());
    let variable = "--bearer-token-env-var";
    terminal.types(
        CODEX,
        &[
            "mcp",
            "add",
            "provost",
            "--url",
            &endpoint,
            variable,
            "PROVOST_TOKEN",
        ],
    )?;
    terminal.reads(CODEX, &["mcp", "list"], "Bearer token")?;
    terminal.reads(CODEX, &["mcp", "get", "provost"], &endpoint)?;
    codex_works(scene, &terminal)
}

/// Codex starts programs without most of its own environment: the token is that of a profile.
fn codex_of_a_program(scene: &Scene<'_>) -> Outcome {
    let terminal = Terminal::open(scene, "codex-program")?;
    terminal.keeps_a_profile("work")?;
    let binary = scene.installation.binary.display().to_string();
    let relay = ["--", &binary, "mcp", "--profile", "work", "--toolsets", "all"];
    terminal.types(CODEX, &[&["mcp", "add", "provost"], &relay[..]].concat())?;
    terminal.reads(CODEX, &["mcp", "get", "provost"], "transport: stdio")?;
    codex_works(scene, &terminal)
}

/// Reads and writes until the account's sessions are revoked.
fn codex_works(scene: &Scene<'_>, terminal: &Terminal<'_>) -> Outcome {
    let mut script = scene.tools.command_script("codex.mjs");
    script.arg("provost");
    let mut program = Program::start(terminal.set(&mut script))?;
    for step in ["connected", "tools", "read", "write", "resource", "waiting"] {
        program.step(step)?;
    }
    terminal.ends_its_sessions()?;
    program.tell("go")?;
    program.step("refused")?;
    program.ends()
}

/// Nobody has a token: the client finds out where to send its user.
fn claude_of_a_person(scene: &Scene<'_>) -> Outcome {
    let terminal = Terminal::open(scene, "claude-person")?;
    let endpoint = format!("{}/mcp", scene.origin());
    // It names the machine, not its address.
    let redirect = format!("http://localhost:{CALLBACK_PORT}/callback");
    let client = sign_in::client(&mut scene.administrator(), "Claude Code", &[&redirect])?;
    let add = ["mcp", "add", "--transport", "http", "provost", &endpoint];
    let known = ["--client-id", &client, "--callback-port", CALLBACK_PORT];
    terminal.types(CLAUDE, &[&add[..], &known].concat())?;
    println!("    $ claude mcp login provost --no-browser");
    // It only asks people, so it gets a terminal.
    let login = scene.tools.command(CLAUDE);
    let words: Vec<_> = std::iter::once(login.get_program())
        .chain(login.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command"])
        .arg(format!("{} mcp login provost --no-browser", words.join(" ")))
        .arg("/dev/null");
    let mut program = Program::start(terminal.set(&mut script))?;
    let asked = program.authorization(&scene.origin())?;
    terminal.consents(&asked)?;
    let said = program.rest();
    program.ends().context(said)?;
    terminal.reads(CLAUDE, &["mcp", "get", "provost"], "✔ Connected")?;
    terminal.ends_sessions("clientId", &client)?;
    terminal.reads(CLAUDE, &["mcp", "list"], "Needs authentication")?;
    Ok(())
}

fn codex_of_a_person(scene: &Scene<'_>) -> Outcome {
    let terminal = Terminal::open(scene, "codex-person")?;
    let endpoint = format!("{}/mcp", scene.origin());
    let redirect = "http://127.0.0.1/callback";
    let client = sign_in::client(&mut scene.administrator(), "Codex", &[redirect])?;
    let words = [
        "mcp",
        "add",
        "provost",
        "--url",
        &endpoint,
        "--oauth-client-id",
        &client,
    ];
    println!("    $ codex {}", words.join(" "));
    let mut add = scene.tools.command(CODEX);
    let mut program = Program::start(terminal.set(add.args(words)))?;
    let asked = program.authorization(&scene.origin())?;
    terminal.consents(&asked)?;
    let said = program.rest();
    program.ends().context(said)?;
    terminal.reads(CODEX, &["mcp", "list"], "OAuth")?;
    let mut script = scene.tools.command_script("codex.mjs");
    let mut program = Program::start(terminal.set(script.args(["provost", "reader"])))?;
    for step in ["connected", "tools", "read", "resource", "waiting"] {
        program.step(step)?;
    }
    terminal.ends_sessions("clientId", &client)?;
    program.tell("go")?;
    program.step("refused")?;
    program.ends()
}
