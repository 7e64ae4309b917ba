//! Random traffic: clients come, accounts rotate and rest, sessions end; the ledger and the server must agree.

use serde_json::{Value, json};

use super::Scene;
use super::administrator::{Account, Administrator, sorted, text};
use super::program::Program;
use super::session_log::{Entry, PERSON, SessionLog};
use super::sign_in;
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
const PEOPLE: &[&str] = &["ada", "berta", "carl"];

struct Person {
    id: String,
    name: &'static str,
    is_active: bool,
}

struct Traffic {
    random: Random,
    administrator: Administrator,
    visitor: Program,
    accounts: Vec<(Account, bool)>,
    people: Vec<Person>,
    /// What people were given at their sign-ins.
    tokens: Vec<String>,
    ledger: SessionLog,
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
        people: Vec::new(),
        tokens: Vec::new(),
        ledger: SessionLog::default(),
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
        for name in PEOPLE {
            self.people.push(Person {
                id: sign_in::colleague(&mut self.administrator, name)?,
                name,
                is_active: true,
            });
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
            1..=55 => self.come(index),
            56..=60 => self.sign_in(),
            61..=72 => self.come_again(),
            73..=80 => self.revoke_one(),
            81..=84 => self.revoke_many(index),
            85..=92 => self.rotate(index),
            93..=96 => self.rest(index),
            _ => self.leave(),
        }
    }

    /// Somebody signs in for a client that nobody used before, so that its name tells the session.
    fn sign_in(&mut self) -> Outcome {
        let active: Vec<&Person> = self.people.iter().filter(|person| person.is_active).collect();
        let Some(person) = self.random.pick(&active) else {
            return Ok(());
        };
        let name = format!("client {}", self.tokens.len());
        let client = sign_in::client(&mut self.administrator, &name, &[sign_in::REDIRECT])?;
        let mut scopes: Vec<&str> = sign_in::SCOPES.to_vec();
        scopes.retain(|_| self.random.chance(60));
        if scopes.is_empty() {
            scopes.push(sign_in::SCOPES[0]);
        }
        let line = json!({
            "signIn": client, "redirect": sign_in::REDIRECT, "login": person.name, "scopes": scopes,
        });
        self.visitor.tell(&line.to_string())?;
        let said = self.visitor.object()?;
        let token = text(&said, "/token").context(format_args!("nobody signed in: {said}"))?;
        let entry = Entry {
            kind: PERSON.to_owned(),
            principal: person.id.clone(),
            actor: person.name.to_owned(),
            client,
            scopes: sorted(&json!(scopes)),
            ended: None,
        };
        self.ledger.opened(entry, &token);
        self.tokens.push(token);
        Ok(())
    }

    /// A client comes with what somebody's sign-in gave it, under any name.
    fn come_again(&mut self) -> Outcome {
        let Some(token) = self.random.pick(&self.tokens).cloned() else {
            return Ok(());
        };
        let is_welcome = self.ledger.is_welcome(&token);
        self.visit(&token, is_welcome).map(drop)
    }

    /// Somebody is suspended, or comes back; no session does.
    fn leave(&mut self) -> Outcome {
        let last = self.people.len() as u64 - 1;
        let index = usize::try_from(self.random.between(0, last)).unwrap_or_default();
        let person = &mut self.people[index];
        let verb = if person.is_active { "suspend" } else { "reactivate" };
        self.administrator
            .post(&format!("directory/users/{}/{verb}", person.id), json!({}))?;
        if person.is_active {
            self.ledger
                .end("user_suspended", |entry| entry.principal == person.id);
        }
        person.is_active = !person.is_active;
        Ok(())
    }

    fn visit(&mut self, token: &str, is_welcome: bool) -> Outcome<&'static str> {
        let client = *self.random.pick(CLIENTS).context("there are clients")?;
        let revision = *self.random.pick(REVISIONS).context("there are revisions")?;
        let line = json!({ "token": token, "client": client, "revision": revision });
        self.visitor.tell(&line.to_string())?;
        let said = self.visitor.object()?;
        let expected = if is_welcome { 200 } else { 401 };
        if said["status"] != expected || (is_welcome && said["isAnswered"] != true) {
            return Err(Failure::new(format!(
                "{client} ({revision}) was answered {said}, not {expected}"
            )));
        }
        Ok(client)
    }

    fn come(&mut self, index: usize) -> Outcome {
        let (account, is_enabled) = self.accounts[index].clone();
        let is_welcome = is_enabled && self.ledger.is_welcome(&account.token);
        let client = self.visit(&account.token, is_welcome)?;
        if is_welcome {
            // A name is shown without blanks.
            self.ledger.came(&account, &client.replace(' ', "-"));
        }
        Ok(())
    }

    fn revoke_one(&mut self) -> Outcome {
        let sessions = self.administrator.sessions(&[("status", "active")])?;
        let Some(session) = self.random.pick(&sessions) else {
            return Ok(());
        };
        let (id, client) = (text(session, "/id")?, text(session, "/mcpClientId")?);
        let whose = session
            .get("serviceAccountId")
            .or_else(|| session.get("consoleUserId"));
        let whose = whose.and_then(Value::as_str).unwrap_or_default().to_owned();
        self.administrator.revoke(&id, "one is lost")?;
        self.ledger
            .end("one is lost", |e| e.principal == whose && e.client == client);
        // A second time changes nothing, whatever it says.
        self.administrator.revoke(&id, "once more").map(drop)
    }

    fn revoke_many(&mut self, index: usize) -> Outcome {
        let client = *self.random.pick(CLIENTS).context("there are clients")?;
        let person = self.random.pick(&self.people).context("there are people")?;
        let (name, value) = match self.random.between(1, 3) {
            1 => ("serviceAccountId", self.accounts[index].0.id.clone()),
            2 => ("consoleUserId", person.id.clone()),
            _ => ("clientId", client.replace(' ', "-")),
        };
        let mut body = json!({ "reason": "all are lost", "confirm": true });
        body[name] = value.as_str().into();
        self.administrator.post("mcp/sessions/revoke", body)?;
        self.ledger.end("all are lost", |entry| {
            let found = if name == "clientId" {
                &entry.client
            } else {
                &entry.principal
            };
            *found == value
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
        self.ledger.end("superseded", |entry| entry.principal == id);
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
                .end("service_account_disabled", |entry| entry.principal == id);
        }
        Ok(())
    }
}
