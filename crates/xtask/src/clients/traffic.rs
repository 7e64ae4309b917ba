//! Random traffic: clients come, accounts rotate and rest, sessions end; the ledger and the server must agree.

use serde_json::{Value, json};

use super::Scene;
use super::administrator::{Account, Administrator, text};
use super::ledger::Ledger;
use super::program::Program;
use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::random::{self, Random};

const ACCOUNTS: u64 = 6;
const CLIENTS: &[&str] = &[
    "claude-code",
    "codex-mcp-client",
    "Visual Studio Code",
    "100% %_ 'x'",
];
/// Read scopes that the role grants: none of them includes another one.
const ROLES: &[(&str, &[&str])] = &[
    (
        "admin",
        &[
            "policies:read",
            "directory:read",
            "mcp:read",
            "audit:read",
            "policies:backtest",
        ],
    ),
    (
        "operator",
        &["policies:read", "managed_config:read", "directory:read"],
    ),
    (
        "auditor",
        &["policies:read", "audit:read", "service_accounts:read"],
    ),
    ("viewer", &["policies:read", "inventory:read"]),
];
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

struct Traffic {
    random: Random,
    administrator: Administrator,
    visitor: Program,
    accounts: Vec<(Account, bool)>,
    ledger: Ledger,
}

pub fn run(scene: &mut Scene<'_>, seed: Option<u64>, acts: u32) -> Outcome {
    let seed = seed.unwrap_or_else(random::fresh_seed);
    println!("seed {seed}");
    let mut command = scene.tools.script("traffic.mjs");
    process::without_settings(&mut command);
    command.env("PROVOST_MCP_URL", format!("{}/mcp", scene.origin()));
    let mut traffic = Traffic {
        random: Random::new(seed),
        administrator: scene.administrator(),
        visitor: Program::start(&mut command)?,
        accounts: Vec::new(),
        ledger: Ledger::default(),
    };
    let outcome = traffic.happen(acts);
    outcome.context(format_args!("with --seed {seed}"))?;
    traffic.visitor.ends()
}

impl Traffic {
    fn happen(&mut self, acts: u32) -> Outcome {
        for number in 0..ACCOUNTS {
            let account = self.hire(number)?;
            self.accounts.push((account, true));
        }
        let mut questions = 0;
        for act in 1..=acts {
            self.act().context(format_args!("act {act}"))?;
            if act % 50 == 0 || act == acts {
                let compared = self.ledger.compare(&self.administrator);
                questions += compared.context(format_args!("after act {act}"))?;
            }
        }
        println!(
            "{acts} acts, {} sessions, {questions} lists: the ledger and the server agree",
            self.ledger.len()
        );
        Ok(())
    }

    fn hire(&mut self, number: u64) -> Outcome<Account> {
        let (role, pool) = self.random.pick(ROLES).context("there are roles")?;
        let mut scopes: Vec<&str> = pool.iter().copied().filter(|_| self.random.chance(60)).collect();
        if scopes.is_empty() {
            scopes.push(pool[0]);
        }
        self.administrator
            .account(&format!("traffic {number}"), role, &scopes)
    }

    fn act(&mut self) -> Outcome {
        let index = usize::try_from(self.random.between(0, ACCOUNTS - 1)).unwrap_or_default();
        match self.random.between(1, 100) {
            1..=70 => self.come(index),
            71..=79 => self.revoke_one(),
            80..=83 => self.revoke_many(index),
            84..=93 => self.rotate(index),
            _ => self.rest(index),
        }
    }

    fn come(&mut self, index: usize) -> Outcome {
        let (account, is_enabled) = &self.accounts[index];
        let client = *self.random.pick(CLIENTS).context("there are clients")?;
        let revision = *self.random.pick(REVISIONS).context("there are revisions")?;
        let line = json!({ "token": account.token, "client": client, "revision": revision });
        self.visitor.tell(&line.to_string())?;
        let said = self.visitor.object()?;
        let is_welcome = *is_enabled && self.ledger.is_welcome(&account.token);
        let expected = if is_welcome { 200 } else { 401 };
        if said["status"] != expected || (is_welcome && said["isAnswered"] != true) {
            return Err(Failure::new(format!(
                "{} as {client} ({revision}) was answered {said}, not {expected}",
                account.name
            )));
        }
        if is_welcome {
            // A name is shown without blanks.
            self.ledger.came(account, &client.replace(' ', "-"));
        }
        Ok(())
    }

    fn revoke_one(&mut self) -> Outcome {
        let sessions = self.administrator.sessions(&[("status", "active")])?;
        let Some(session) = self.random.pick(&sessions) else {
            return Ok(());
        };
        let (id, account) = (text(session, "/id")?, text(session, "/serviceAccountId")?);
        let client = text(session, "/mcpClientId")?;
        self.administrator.revoke(&id, "one is lost")?;
        self.ledger
            .end("one is lost", |e| e.account == account && e.client == client);
        // A second time changes nothing, whatever it says.
        self.administrator.revoke(&id, "once more").map(drop)
    }

    fn revoke_many(&mut self, index: usize) -> Outcome {
        let account = self.accounts[index].0.id.clone();
        let client = *self.random.pick(CLIENTS).context("there are clients")?;
        let shown = client.replace(' ', "-");
        let is_by_account = self.random.chance(50);
        let whose = if is_by_account {
            ("serviceAccountId", account.as_str())
        } else {
            ("clientId", shown.as_str())
        };
        let mut body = json!({ "reason": "all are lost", "confirm": true });
        body[whose.0] = whose.1.into();
        self.administrator.post("mcp/sessions/revoke", body)?;
        self.ledger.end("all are lost", |entry| {
            if is_by_account {
                entry.account == account
            } else {
                entry.client == shown
            }
        });
        Ok(())
    }

    fn rotate(&mut self, index: usize) -> Outcome {
        let (account, is_enabled) = &mut self.accounts[index];
        if !*is_enabled {
            return Ok(());
        }
        let rotated = self
            .administrator
            .post(&format!("service-accounts/{}/tokens", account.id), json!({}))?;
        account.token = text(&rotated, "/token/token")?;
        let id = account.id.clone();
        self.ledger.end("superseded", |entry| entry.account == id);
        Ok(())
    }

    fn rest(&mut self, index: usize) -> Outcome {
        let (account, is_enabled) = &mut self.accounts[index];
        let (id, verb) = (account.id.clone(), if *is_enabled { "disable" } else { "enable" });
        let answer: Value = self
            .administrator
            .post(&format!("service-accounts/{id}/{verb}"), json!({}))?;
        *is_enabled = answer["serviceAccount"]["status"] == "active";
        if verb == "disable" {
            self.ledger
                .end("service_account_disabled", |entry| entry.account == id);
        }
        Ok(())
    }
}
