//! One connection of a mixed load: reads, changes, decisions, imports, calls of tools, lists of sessions, backtests.
//!
//! It has at most one request without an answer, remembers what it was told, and sends a lost request again, byte for
//! byte. A success is the only answer that it takes; who expects refusals has another driver.

mod asks;

pub use asks::{days_ago, import};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::known::{Account, KnownRecords};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::product::Bootstrap;
use crate::random::Random;

/// What all hands share.
pub struct Scene {
    pub bootstrap: Bootstrap,
    pub seed: u64,
}

/// What a hand was answered so far, for whoever looks while it works.
#[derive(Default)]
pub struct WorkloadAnswers {
    pub known: KnownRecords,
    pub answers: u64,
    pub changes: u64,
    pub latencies: Vec<Duration>,
    /// Backtests that were seen to succeed.
    pub judged: u64,
}

#[derive(Clone, Debug)]
enum Act {
    Look,
    Create,
    Describe { account: String, count: u64 },
    Rotate { account: String },
    Delete { account: String },
    Decide,
    Import,
    Backtest,
    Poll,
}

/// A request whose answer did not arrive.
struct LostRequest {
    act: Act,
    request: Request,
    /// A part of the answer arrived.
    is_cut: bool,
}

/// How a lost request was answered when it was sent again.
#[derive(Debug)]
pub struct RetryAnswer {
    pub what: String,
    /// The server had acted the first time.
    pub was_done: bool,
    pub is_cut: bool,
}

/// What happened to one request.
pub enum Step {
    Answered,
    Lost,
}

pub struct Workload<'a> {
    scene: &'a Scene,
    number: usize,
    random: Random,
    keys: u64,
    /// Whether this one also makes backtests; a few do.
    makes_backtests: bool,
    /// How many parts of the past that backtests ask about it has imported.
    past: u64,
    running: Option<String>,
    lost: Option<LostRequest>,
    told: Arc<Mutex<WorkloadAnswers>>,
}

impl<'a> Workload<'a> {
    pub fn new(scene: &'a Scene, number: usize) -> Self {
        Self {
            scene,
            number,
            random: Random::part(scene.seed, 40_000 + number as u64),
            keys: 0,
            makes_backtests: number < 2,
            past: 0,
            running: None,
            lost: None,
            told: Arc::default(),
        }
    }

    pub fn bootstrap(&self) -> &'a Bootstrap {
        &self.scene.bootstrap
    }

    /// What it was told, to be looked at while it works.
    pub fn told(&self) -> Arc<Mutex<WorkloadAnswers>> {
        Arc::clone(&self.told)
    }

    pub fn look(&self) -> MutexGuard<'_, WorkloadAnswers> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The backtest that had not ended when it was last seen.
    pub fn running(&self) -> Option<&str> {
        self.running.as_deref()
    }

    /// Sends one request.
    pub fn step(&mut self, connection: &mut Connection) -> Outcome<Step> {
        let (act, request) = self.choose();
        let start = clock::now();
        match connection.send(&request) {
            Ok(answer) if answer.is_success() => {
                let taken = start.elapsed();
                self.learn(&act, &answer).context(answer.summary())?;
                let mut told = self.look();
                told.answers += 1;
                told.latencies.push(taken);
                Ok(Step::Answered)
            }
            Ok(answer) => Err(refused(&act, &request, &answer)),
            Err(lost) => {
                self.lost = Some(LostRequest {
                    act,
                    request,
                    is_cut: lost.status.is_some(),
                });
                Ok(Step::Lost)
            }
        }
    }

    /// Sends the lost request again, if it can be sent twice.
    pub fn retry(&mut self, connection: &mut Connection) -> Outcome<Option<RetryAnswer>> {
        let Some(LostRequest { act, request, is_cut }) = self.lost.take() else {
            return Ok(None);
        };
        let what = format!("{act:?}");
        // These have no key: nobody can tell the first one from the second.
        if matches!(act, Act::Decide | Act::Look | Act::Poll) {
            return Ok(is_cut.then_some(RetryAnswer {
                what,
                was_done: false,
                is_cut,
            }));
        }
        let answer = connection.send(&request).map_err(|lost| lost.why);
        let answer = answer.context(format_args!("the retry of {what}"))?;
        if !answer.is_success() {
            return Err(refused(&act, &request, &answer));
        }
        let is_known_import = matches!(act, Act::Import) && answer.json()?["duplicate"] == true;
        let was_done = answer.replayed || is_known_import;
        self.learn(&act, &answer).context(answer.summary())?;
        Ok(Some(RetryAnswer {
            what,
            was_done,
            is_cut,
        }))
    }

    fn choose(&mut self) -> (Act, Request) {
        self.keys += 1;
        if self.makes_backtests && self.random.chance(10) {
            return self.backtest();
        }
        match self.random.between(1, 100) {
            ..=38 => (Act::Look, self.question()),
            39..=70 => self.change(),
            71..=85 => (Act::Decide, self.decision()),
            86..=90 => (Act::Import, self.import()),
            _ => (Act::Look, self.call()),
        }
    }

    fn learn(&mut self, act: &Act, answer: &Answer) -> Outcome {
        let is_change = !matches!(act, Act::Look | Act::Poll);
        let body = if is_change && !answer.body.is_empty() {
            answer.json()?
        } else {
            Value::Null
        };
        let running = match act {
            Act::Backtest => Some(
                body["id"]
                    .as_str()
                    .context("a backtest without an id")?
                    .to_owned(),
            ),
            Act::Poll => self.watch(&answer.json()?)?,
            _ => self.running.clone(),
        };
        self.running.clone_from(&running);
        let mut told = self.look();
        told.changes += u64::from(is_change);
        let known = &mut told.known;
        match act {
            Act::Look | Act::Import => {}
            Act::Create => {
                let id = body["serviceAccount"]["id"].as_str().context("no id")?;
                let token = body["token"]["token"].as_str().context("no token")?.to_owned();
                known
                    .accounts
                    .insert(id.to_owned(), Account { token, described: 0 });
            }
            Act::Describe { account, count } => {
                known.accounts.get_mut(account).context("no account")?.described = *count;
            }
            Act::Rotate { account } => {
                let token = body["token"]["token"].as_str().context("no token")?.to_owned();
                let known_one = known.accounts.get_mut(account).context("no account")?;
                let old = std::mem::replace(&mut known_one.token, token);
                known.end(old);
            }
            Act::Delete { account } => {
                let gone = known.accounts.remove(account).context("no account")?;
                known.end(gone.token);
            }
            Act::Decide => {
                let event = body["decisions"][0]["eventId"].as_str().context("no eventId")?;
                known.decide(event.to_owned());
            }
            Act::Backtest => known.backtest(running.context("no backtest")?),
            Act::Poll => told.judged += u64::from(running.is_none()),
        }
        Ok(())
    }

    /// The backtest goes on, or has succeeded; nothing else may become of it.
    fn watch(&self, run: &Value) -> Outcome<Option<String>> {
        match run["status"].as_str() {
            Some("succeeded") => Ok(None),
            Some("queued" | "running") => Ok(self.running.clone()),
            _ => Err(Failure::new(format!("a backtest that does not succeed: {run}"))),
        }
    }

    /// Waits until the backtest that was not over is; says whether there was one.
    pub fn finish_backtest(&mut self, connection: &mut Connection) -> Outcome<bool> {
        let Some(id) = self.running.clone() else {
            return Ok(false);
        };
        let request = self.get(&format!("policies/backtests/{id}"));
        let mut outcome = Ok(());
        clock::poll_until(Duration::from_mins(1), Duration::from_millis(20), || {
            outcome = connection.fetch(&request).and_then(|run| {
                self.running = self.watch(&run)?;
                Ok(())
            });
            outcome.is_err() || self.running.is_none()
        });
        outcome?;
        match &self.running {
            None => Ok(true),
            Some(id) => Err(Failure::new(format!("backtest {id} is not over after a minute"))),
        }
    }
}

fn refused(act: &Act, request: &Request, answer: &Answer) -> Failure {
    Failure::new(format!(
        "{act:?} ({} {}) was answered {}",
        request.method,
        request.path,
        answer.summary()
    ))
}
