//! One connection that asks for decisions and imports recorded calls.
//!
//! A durable decision that was answered is in the history for ever, as it was answered; an import that was answered is
//! there once, whether or not it is sent again. Neither has an idempotency key: a decision whose answer was lost may
//! or may not be recorded, and an import is told apart by its bytes.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::verdict::Verdict;
use super::worker::{Counts, Scene};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::random::Random;
use crate::traffic::{event, recorded};

/// So many events of earlier cycles are read again after every kill.
const EARLIER: usize = 20;

/// A decision as it was answered.
#[derive(Clone, Debug)]
struct DecisionRecord {
    event_id: String,
    action: Value,
    version: Value,
    call: String,
}

/// An import, by what tells it from others.
#[derive(Clone, Debug)]
struct ImportRecord {
    events: Vec<Value>,
    acknowledged: bool,
}

pub struct DecisionWorker {
    number: usize,
    random: Random,
    asked: u64,
    decided: Vec<DecisionRecord>,
    /// Where the decisions of this cycle begin.
    fresh: usize,
    imported: Vec<ImportRecord>,
    pub counts: Counts,
}

impl DecisionWorker {
    pub fn new(seed: u64, number: usize) -> Self {
        Self {
            number,
            random: Random::part(seed, 20_000 + number as u64),
            asked: 0,
            decided: Vec::new(),
            fresh: 0,
            imported: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Asks until an answer is lost.
    pub fn ask_until_lost(&mut self, scene: &Scene, connection: &mut Connection) -> Outcome {
        self.fresh = self.decided.len();
        loop {
            self.asked += 1;
            let is_import = self.random.chance(10);
            let request = if is_import {
                self.import(scene)
            } else {
                self.question(scene)
            };
            let answer = match connection.send(&request) {
                Ok(answer) => answer,
                Err(_) if scene.killing.load(Ordering::SeqCst) => {
                    self.counts.unanswered += 1;
                    return Ok(());
                }
                Err(lost) => {
                    return Err(Failure::new(format!(
                        "{} was not answered by a living server: {}",
                        request.path, lost.why
                    )));
                }
            };
            if !answer.is_success() {
                return Err(Failure::new(format!(
                    "{} was answered {}",
                    request.path,
                    answer.summary()
                )));
            }
            let body = answer.json()?;
            self.counts.acknowledged += 1;
            if is_import {
                let imported = self.imported.last_mut().context("an import without lines")?;
                imported.acknowledged = true;
                if body["accepted"] != json!(imported.events.len()) || body["duplicate"] != json!(false) {
                    return Err(Failure::new(format!(
                        "a new import was answered {}",
                        answer.summary()
                    )));
                }
            } else {
                self.remember(&body).context(answer.summary())?;
            }
        }
    }

    /// Reads every event of this cycle and some of earlier ones, and sends the last import again.
    pub fn judge(&mut self, scene: &Scene, connection: &mut Connection, verdict: &mut Verdict) -> Outcome {
        let mut wanted: Vec<DecisionRecord> = self.decided[self.fresh..].to_vec();
        let earlier = &self.decided[..self.fresh];
        wanted.extend((0..EARLIER).filter_map(|_| self.random.pick(earlier).cloned()));
        for decided in wanted {
            let path = format!("policies/history/{}", decided.event_id);
            let answer = connection
                .send(&scene.bootstrap.get(&path))
                .map_err(|lost| lost.why)
                .context(&path)?;
            if !answer.is_success() {
                verdict
                    .lost
                    .push(format!("{decided:?} was answered {}", answer.summary()));
                continue;
            }
            let event = answer.json()?;
            let is_same = event.pointer("/decision/action") == Some(&decided.action)
                && event.pointer("/decision/policySetVersionId") == Some(&decided.version)
                && event["callId"] == decided.call.as_str();
            if !is_same {
                verdict.lost.push(format!("{decided:?} is recorded as {event}"));
            }
        }
        if let Some(imported) = self.imported.last().cloned() {
            let answer = connection
                .send(&self.send(scene, &imported.events))
                .map_err(|lost| lost.why)
                .context("a repeated import")?;
            let body = answer.json()?;
            let is_duplicate = body["duplicate"] == json!(true);
            if imported.acknowledged && !is_duplicate {
                verdict.lost.push(format!(
                    "an import of {} was new once more",
                    imported.events.len()
                ));
            }
            if body["accepted"] != json!(imported.events.len()) {
                verdict
                    .half_applied
                    .push(format!("an import was answered {}", answer.summary()));
            }
            if is_duplicate {
                self.counts.replayed += 1;
            } else {
                self.counts.first_answers += 1;
            }
        }
        Ok(())
    }

    /// Returns how many decisions this connection was answered.
    pub fn known(&self) -> usize {
        self.decided.len()
    }

    fn question(&mut self, scene: &Scene) -> Request {
        let count = self.random.between(1, 3);
        let events: Vec<Value> = (0..count)
            .map(|at| {
                let tool = format!("tool-{}", self.random.between(1, 4));
                event("pre_tool", &format!("{}-{}-{at}", self.number, self.asked), &tool)
            })
            .collect();
        scene.bootstrap.decide(&events)
    }

    fn import(&mut self, scene: &Scene) -> Request {
        let events: Vec<Value> = (0..self.random.between(1, 50))
            .map(|at| {
                let id = format!("{}-{}-{at}", self.number, self.asked);
                recorded(&id, &scene.began, "imported")
            })
            .collect();
        let request = self.send(scene, &events);
        self.imported.push(ImportRecord {
            events,
            acknowledged: false,
        });
        request
    }

    fn send(&self, scene: &Scene, events: &[Value]) -> Request {
        scene.bootstrap.import(&format!("crash-{}", self.number), events)
    }

    fn remember(&mut self, body: &Value) -> Outcome {
        if body["recorded"] != json!(true) {
            return Err(Failure::new("a durable decision is not recorded"));
        }
        let decisions = body["decisions"].as_array().context("no decisions")?;
        for (at, decision) in decisions.iter().enumerate() {
            self.decided.push(DecisionRecord {
                event_id: decision["eventId"].as_str().context("no eventId")?.to_owned(),
                action: decision["action"].clone(),
                version: body["policySetVersion"]["id"].clone(),
                call: format!("{}-{}-{at}", self.number, self.asked),
            });
        }
        Ok(())
    }
}
