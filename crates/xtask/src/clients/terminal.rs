//! A person's terminal: a home of its own, a token in the environment, and the commands that are typed.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::Scene;
use super::administrator::{Account, text};
use super::program::Program;
use crate::failure::{Context, Failure, Outcome};
use crate::process;

pub const CLAUDE: &str = "@anthropic-ai/claude-code/cli-wrapper.cjs";
pub const CODEX: &str = "@openai/codex/bin/codex.js";
const SCOPES: &[&str] = &["capabilities:read", "directory:write", "service_accounts:read"];
const REASON: &str = "a laptop is lost";

/// A person at a terminal with a token.
pub struct Terminal<'a> {
    scene: &'a Scene<'a>,
    home: PathBuf,
    account: Account,
}

impl<'a> Terminal<'a> {
    /// Opens a terminal of somebody who has an account of that name.
    pub fn open(scene: &'a Scene<'a>, name: &str) -> Outcome<Self> {
        let home = scene.folder.join(name);
        std::fs::create_dir_all(&home).context("cannot make a home")?;
        let account = scene.administrator().account(name, "admin", SCOPES)?;
        Ok(Self { scene, home, account })
    }

    /// Gives a command what this person's shell has.
    pub fn set<'c>(&self, command: &'c mut Command) -> &'c mut Command {
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

    /// Types a command; it must succeed.
    pub fn types(&self, program: &str, words: &[&str]) -> Outcome<String> {
        let name = if program == CLAUDE { "claude" } else { "codex" };
        println!("    $ {name} {}", words.join(" "));
        let mut command = self.scene.tools.command(program);
        let said = process::output(self.set(command.args(words)))?;
        for line in said.lines().filter(|line| !line.trim().is_empty()) {
            println!("      {line}");
        }
        Ok(said)
    }

    /// Keeps server, organization and token under a name.
    pub fn keeps_a_profile(&self, name: &str) -> Outcome {
        println!("    $ provost profile set {name} --url … --organization … < token");
        let mut command = Command::new("sh");
        command.args([
            "-c",
            r#"printf %s "$PROVOST_TOKEN" | "$0" profile set "$1" --url "$PROVOST_URL" --organization "$PROVOST_ORGANIZATION""#,
        ]);
        command.arg(&self.scene.installation.binary).arg(name);
        process::output(self.set(&mut command)).map(drop)
    }

    /// Types a command whose answer must hold a text.
    pub fn reads(&self, program: &str, words: &[&str], expected: &str) -> Outcome<String> {
        let said = self.types(program, words)?;
        if said.contains(expected) {
            return Ok(said);
        }
        Err(Failure::new(format!("expected {expected:?} in: {said}")))
    }

    /// What a person does in a browser with an address that a program printed.
    pub fn consents(&self, asked: &str) -> Outcome {
        let mut browser = self.scene.tools.script("browser.mjs");
        let mut browser = Program::start(browser.arg(asked))?;
        browser.step("arrived")?;
        browser.ends()
    }

    /// Revokes what the account's clients have open.
    pub fn ends_its_sessions(&self) -> Outcome {
        self.ends_sessions("serviceAccountId", &self.account.id)
    }

    /// Revokes the active sessions that a filter finds.
    pub fn ends_sessions(&self, filter: &str, value: &str) -> Outcome {
        let mut administrator = self.scene.administrator();
        let sessions: Vec<Value> = administrator.sessions(&[(filter, value), ("status", "active")])?;
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
