//! What the traced server is asked for, when it acknowledged what, and whether that is there.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::history::{self, Lot};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;
use crate::random::Random;
use crate::traffic::{self, archive, text_in};

/// How many send changes at the same time: several share a commit then.
const CLIENTS: usize = 4;
/// How much of a skill cannot be compressed: its content fills several pages of the store. Units: bytes.
const SKILL_BYTES: usize = 64 << 10;

/// What a change was about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChangeKind {
    /// A user of this name is there.
    User(String),
    /// This token works.
    Alive(String),
    /// This token is refused.
    Dead(String),
    /// The content of this skill is this.
    Skill(String, Arc<[u8]>),
}

/// One acknowledged change. Units: time since the Unix epoch.
struct AcknowledgedChange {
    sent: Duration,
    answered: Duration,
    what: ChangeKind,
}

/// Everything that was acknowledged.
#[derive(Default)]
pub struct AcknowledgedChanges {
    lines: Vec<AcknowledgedChange>,
    lots: Vec<Lot>,
}

/// What must be there when the power goes at a moment.
#[derive(Default)]
pub struct ExpectedState {
    users: Vec<String>,
    alive: Vec<String>,
    dead: Vec<String>,
    skills: Vec<(String, Arc<[u8]>)>,
    lots: Vec<usize>,
}

impl ExpectedState {
    pub fn len(&self) -> usize {
        self.users.len() + self.alive.len() + self.dead.len() + self.skills.len() + self.lots.len()
    }
}

impl AcknowledgedChanges {
    pub fn changes(&self) -> usize {
        self.lines.len()
    }

    pub fn imports(&self) -> usize {
        self.lots.len()
    }

    /// What was acknowledged before a moment, and not in question again by then.
    pub fn at(&self, moment: Duration) -> ExpectedState {
        let mut known = ExpectedState::default();
        let lots = self.lots.iter().filter(|lot| lot.answered < moment);
        known.lots.extend(lots.map(|lot| lot.number));
        for line in self.lines.iter().filter(|line| line.answered < moment) {
            match &line.what {
                ChangeKind::User(name) => known.users.push(name.clone()),
                ChangeKind::Dead(token) => known.dead.push(token.clone()),
                ChangeKind::Skill(item, content) => known.skills.push((item.clone(), content.clone())),
                ChangeKind::Alive(token) => {
                    let ends = |other: &&AcknowledgedChange| {
                        other.what == ChangeKind::Dead(token.clone()) && other.sent < moment
                    };
                    if self.lines.iter().find(ends).is_none() {
                        known.alive.push(token.clone());
                    }
                }
            }
        }
        known
    }
}

/// Makes changes from several connections, with archives of skills built in `folder`, and imports what another one recorded until a segment is sealed.
///
/// Errors: a change that did not succeed.
pub fn make(
    address: SocketAddr,
    bootstrap: &Bootstrap,
    seed: u64,
    changes: u64,
    folder: &Path,
) -> Outcome<AcknowledgedChanges> {
    let each = changes.div_ceil(CLIENTS as u64);
    let (ledgers, lots): (Vec<Outcome<AcknowledgedChanges>>, _) = std::thread::scope(|scope| {
        let importing = scope.spawn(|| history::import(address, bootstrap));
        let running: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || of_client(address, bootstrap, seed, number, each, folder)))
            .collect();
        let panicked = || Failure::new("a client panicked");
        let ended = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
        let ledgers = ended.collect();
        (ledgers, importing.join().unwrap_or_else(|_| Err(panicked())))
    });
    let mut all = AcknowledgedChanges {
        lots: lots?,
        ..AcknowledgedChanges::default()
    };
    for ledger in ledgers {
        all.lines.extend(ledger?.lines);
    }
    Ok(all)
}

fn of_client(
    address: SocketAddr,
    bootstrap: &Bootstrap,
    seed: u64,
    number: usize,
    changes: u64,
    folder: &Path,
) -> Outcome<AcknowledgedChanges> {
    let mut connection = Connection::new(address);
    let mut random = Random::part(seed, 100 + number as u64);
    let mut ledger = AcknowledgedChanges::default();
    // The accounts of this client with the token that works.
    let mut accounts: Vec<(String, String)> = Vec::new();
    for count in 0..changes {
        let name = format!("power-{number}-{count}");
        let key = format!("the-key-of-{name}");
        let write = |path: &str, body: Value| bootstrap.act("POST", path, &key, &name).with_body(body);
        let mut ask = |request: Request| -> Outcome<(Duration, Duration, Value)> {
            let sent = clock::since_epoch();
            let answer = connection
                .send(&request)
                .map_err(|lost| lost.why)
                .context(&name)?;
            let answered = clock::since_epoch();
            if !answer.is_success() {
                return Err(Failure::new(format!("{}: {}", request.path, answer.summary())));
            }
            let body = if answer.body.is_empty() {
                Value::Null
            } else {
                answer.json()?
            };
            Ok((sent, answered, body))
        };
        let mut note = |(sent, answered): (Duration, Duration), what: ChangeKind| {
            ledger.lines.push(AcknowledgedChange { sent, answered, what });
        };
        let choice = random.between(1, 10);
        match choice {
            1..=2 => {
                let body = traffic::account(&name, "viewer");
                let (sent, answered, made) = ask(write("service-accounts", body))?;
                let (id, token) = (
                    text_in(&made, "/serviceAccount/id")?,
                    text_in(&made, "/token/token")?,
                );
                note((sent, answered), ChangeKind::Alive(token.clone()));
                accounts.push((id, token));
            }
            3..=4 if !accounts.is_empty() => {
                let (id, old) = accounts.swap_remove(0);
                let (sent, answered, made) = ask(write(
                    &format!("service-accounts/{id}/tokens"),
                    json!({ "gracePeriodSeconds": 0 }),
                ))?;
                let token = text_in(&made, "/token/token")?;
                note((sent, answered), ChangeKind::Dead(old));
                note((sent, answered), ChangeKind::Alive(token.clone()));
                accounts.push((id, token));
            }
            5 if !accounts.is_empty() => {
                let (id, token) = accounts.swap_remove(0);
                let (sent, answered, _) = ask(write(&format!("service-accounts/{id}/disable"), json!({})))?;
                note((sent, answered), ChangeKind::Dead(token));
            }
            6 => {
                let skill = archive(&name, folder, SKILL_BYTES)?;
                let (sent, answered, made) = ask(bootstrap.publish(skill, &key, &name))?;
                let item = text_in(&made, "/item/id")?;
                let content = content(&mut connection, bootstrap, &item)?;
                let content = content.context(format_args!("the skill {item} that was just published"))?;
                note((sent, answered), ChangeKind::Skill(item, content.into()));
            }
            _ => {
                let login = format!("{name}@example.com");
                let body = json!({ "loginName": login });
                let (sent, answered, _) = ask(write("directory/users", body))?;
                note((sent, answered), ChangeKind::User(login));
            }
        }
    }
    Ok(ledger)
}

/// Looks for what must be there; returns what is not, and what is there by half.
pub fn missing(
    connection: &mut Connection,
    bootstrap: &Bootstrap,
    moment: &ExpectedState,
) -> Outcome<Vec<String>> {
    let users = listed(connection, bootstrap, "directory/users", "users", |user| {
        user["loginName"].as_str().map(str::to_owned)
    })?;
    let made = listed(connection, bootstrap, "audit/events", "events", |event| {
        let is_user = event["action"] == "createHeadlessDirectoryUser"
            && event.pointer("/outcome/decision") == Some(&json!("allowed"));
        let reason = event["reason"].as_str().filter(|_| is_user)?;
        Some(format!("{reason}@example.com"))
    })?;
    let lost = moment.users.iter().filter(|name| !users.contains(*name));
    let mut wrong: Vec<String> = lost.map(|name| format!("the user {name} is gone")).collect();
    let ours = |name: &&String| name.starts_with("power-");
    let halves = users.iter().filter(ours).filter(|name| !made.contains(*name));
    wrong.extend(halves.map(|name| format!("the user {name} has no audit entry")));
    let halves = made.iter().filter(|name| !users.contains(*name));
    wrong.extend(halves.map(|name| format!("the audit entry of the user {name} has no user")));
    for (tokens, expected) in [(&moment.alive, 200), (&moment.dead, 401)] {
        for (place, token) in tokens.iter().enumerate() {
            let answer = connection
                .send(&Request::get(bootstrap.path("capabilities"), token))
                .map_err(|lost| lost.why)
                .context("a token")?;
            if answer.status != expected {
                wrong.push(format!(
                    "token {place} is answered {} instead of {expected}",
                    answer.status
                ));
            }
        }
    }
    for (item, expected) in &moment.skills {
        match content(connection, bootstrap, item)? {
            None => wrong.push(format!("the skill {item} is gone")),
            Some(found) if found != **expected => wrong.push(format!("the skill {item} has another content")),
            Some(_) => {}
        }
    }
    wrong.extend(history::missing(connection, bootstrap, &moment.lots)?);
    let request = bootstrap.act(
        "POST",
        "directory/users",
        "the-key-after-the-loss",
        "after the loss",
    );
    let after = connection.fetch(&request.with_body(json!({ "loginName": "after-the-loss@example.com" })));
    wrong.extend(after.err().map(|failure| failure.to_string()));
    Ok(wrong)
}

/// The archive of a skill; `None` if there is no such skill.
fn content(connection: &mut Connection, bootstrap: &Bootstrap, item: &str) -> Outcome<Option<Vec<u8>>> {
    let path = bootstrap.path(&format!("skill-registry/{item}/content"));
    let answer = connection
        .send(&Request::get(path, &bootstrap.token))
        .map_err(|lost| lost.why)
        .context("the content of a skill")?;
    match answer.status {
        200 => Ok(Some(answer.body)),
        404 => Ok(None),
        _ => Err(Failure::new(format!(
            "the content of {item}: {}",
            answer.summary()
        ))),
    }
}

/// All pages of a list.
fn listed(
    connection: &mut Connection,
    bootstrap: &Bootstrap,
    path: &str,
    member: &str,
    name: impl Fn(&Value) -> Option<String>,
) -> Outcome<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = format!("{path}?limit=100{cursor}");
        let shown = connection.fetch(&Request::get(bootstrap.path(&page), &bootstrap.token))?;
        let items = shown[member]
            .as_array()
            .context(format_args!("{path} shows no {member}"))?;
        found.extend(items.iter().filter_map(&name));
        match shown["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(found),
        }
    }
}
