//! The command lines of Claude Code and Codex as the guide has them (`docs/guide/connect-mcp-clients.md`).
//!
//! They connect, list and are refused with their own code; a model is never asked.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::Scene;
use super::administrator::{Account, text};
use super::program::Program;
use crate::failure::{Context, Failure, Outcome};
use crate::process;

const CLAUDE: &str = "@anthropic-ai/claude-code/cli-wrapper.cjs";
const CODEX: &str = "@openai/codex/bin/codex.js";
const SCOPES: &[&str] = &["directory:write", "service_accounts:read"];
const REASON: &str = "a laptop is lost";

/// A person at a terminal with a token.
struct Terminal<'a> {
    scene: &'a Scene<'a>,
    home: PathBuf,
    account: Account,
}

pub fn run(scene: &mut Scene<'_>) -> Outcome {
    claude(scene).context("Claude Code")?;
    codex(scene).context("Codex")
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
        terminal.reads(CLAUDE, &["mcp", "get", name], "Connected")?;
    }
    terminal.reads(CLAUDE, &["mcp", "list"], "Connected")?;
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
    let endpoint = format!("{}/mcp", scene.origin());
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
    let mut script = scene.tools.script("codex.mjs");
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

impl<'a> Terminal<'a> {
    fn open(scene: &'a Scene<'a>, name: &str) -> Outcome<Self> {
        let home = scene.folder.join(name);
        std::fs::create_dir_all(&home).context("cannot make a home")?;
        let account = scene.administrator().account(name, "admin", SCOPES)?;
        Ok(Self { scene, home, account })
    }

    fn set<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        process::without_settings(command);
        command
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join(".config"))
            .env("PROVOST_URL", self.scene.origin())
            .env("PROVOST_ORGANIZATION", &self.scene.bootstrap.organization)
            .env("PROVOST_TOKEN", &self.account.token)
            // Nothing here is about these programs' makers.
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .current_dir(&self.home)
    }

    fn types(&self, program: &str, words: &[&str]) -> Outcome<String> {
        let name = if program == CLAUDE { "claude" } else { "codex" };
        println!("    $ {name} {}", words.join(" "));
        let mut command = self.scene.tools.package(program);
        let said = process::output(self.set(command.args(words)))?;
        for line in said.lines().filter(|line| !line.trim().is_empty()) {
            println!("      {line}");
        }
        Ok(said)
    }

    fn reads(&self, program: &str, words: &[&str], expected: &str) -> Outcome<String> {
        let said = self.types(program, words)?;
        if said.contains(expected) {
            return Ok(said);
        }
        Err(Failure::new(format!("expected {expected:?} in: {said}")))
    }

    /// Revokes what the account's clients have open.
    fn ends_its_sessions(&self) -> Outcome {
        let mut administrator = self.scene.administrator();
        let query = [
            ("serviceAccountId", self.account.id.as_str()),
            ("status", "active"),
        ];
        let sessions: Vec<Value> = administrator.sessions(&query)?;
        if sessions.is_empty() {
            return Err(Failure::new("the client has no session"));
        }
        for session in &sessions {
            println!("    revoked: the session of {}", text(session, "/mcpClientId")?);
            administrator.revoke(&text(session, "/id")?, REASON)?;
        }
        Ok(())
    }
}
