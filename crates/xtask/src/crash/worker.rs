//! One connection of the driver: chooses, sends, remembers; and after the crash asks again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::atomicity::{Presence, presence};
use super::model::{Account, Intent, Model, issued};
use super::request_log::RequestLog;
use crate::failure::{Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;
use crate::random::Random;

/// An account shows 20 ended tokens at most (D5.2); beyond that a check would be a guess.
const MOST_TOKENS: usize = 18;
const MOST_ACCOUNTS: usize = 12;
const ROLES: [&str; 4] = ["viewer", "operator", "auditor", "admin"];

/// What all connections share.
pub struct Scene {
    pub bootstrap: Bootstrap,
    pub seed: u64,
    pub ledger: RequestLog,
    /// The account that everybody rotates, and every token that it was answered with; the secret is
    /// absent when a later rotation erased it before the retry (D4.8).
    pub shared_account: String,
    pub shared_tokens: Mutex<BTreeMap<String, Option<String>>>,
    /// Set just before the kill: an answer lost earlier is the server's fault.
    pub killing: AtomicBool,
    /// The settings as first read, to be sent back with another lifetime limit.
    pub settings: Value,
    /// An instant of this installation's life, for records of the past.
    pub began: String,
}

/// A request whose answer did not arrive.
struct UnansweredRequest {
    intent: Intent,
    request: Request,
    key: String,
    /// The status line arrived before the connection broke: the effect is durable.
    acknowledged: bool,
    /// The whole effect was there after the restart, before the request was sent again.
    present: bool,
}

#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub acknowledged: u64,
    pub unanswered: u64,
    pub replayed: u64,
    pub first_answers: u64,
}

pub struct Worker {
    number: usize,
    random: Random,
    keys: u64,
    pub model: Model,
    unanswered: Option<UnansweredRequest>,
    pub counts: Counts,
}

impl Worker {
    pub fn new(seed: u64, number: usize) -> Self {
        let random = Random::part(seed, number as u64 + 1);
        Self {
            number,
            random,
            keys: 0,
            model: Model::default(),
            unanswered: None,
            counts: Counts::default(),
        }
    }

    /// Sends one mutation after the other until an answer is lost.
    pub fn mutate_until_lost(&mut self, scene: &Scene, connection: &mut Connection) -> Outcome {
        loop {
            if self.random.chance(10) && !self.probe(scene, connection)? {
                return Ok(());
            }
            let intent = self.choose(scene);
            self.keys += 1;
            // More than 22 characters, so that a self-rotation can be repaired (D5.5).
            let key = format!("crash-{:016x}-{:03}-{:08}", scene.seed, self.number, self.keys);
            let request = intent.request(&scene.bootstrap, &self.model, &key);
            let answer = match connection.send(&request) {
                Ok(answer) => answer,
                Err(lost) => {
                    if !scene.killing.load(Ordering::SeqCst) {
                        return Err(Failure::new(format!(
                            "{intent:?} was not answered by a living server: {}",
                            lost.why
                        )));
                    }
                    scene.ledger.note(self.number, "unanswered", &key, &intent, None);
                    let acknowledged = lost.status.is_some_and(|status| (200..300).contains(&status));
                    self.counts.unanswered += 1;
                    self.unanswered = Some(UnansweredRequest {
                        intent,
                        request,
                        key,
                        acknowledged,
                        present: false,
                    });
                    return Ok(());
                }
            };
            scene
                .ledger
                .note(self.number, "acknowledged", &key, &intent, Some(&answer));
            self.accept(scene, &intent, &answer)?;
            if self.random.chance(10) && !self.repeat(scene, connection, &intent, &request, &answer)? {
                return Ok(());
            }
        }
    }

    /// Looks at the restarted server's accounts for the effect of the unanswered request, and says what
    /// of it is there in part.
    pub fn look_for_effect(&mut self, shown: &BTreeMap<String, Value>) -> Option<String> {
        let unanswered = self.unanswered.as_mut()?;
        match presence(&unanswered.intent, &self.model, shown) {
            Presence::Whole => unanswered.present = true,
            Presence::Partial(what) => return Some(format!("{:?}: {what}", unanswered.intent)),
            Presence::Absent | Presence::Unknown => {}
        }
        None
    }

    /// Sends the unanswered request again, byte for byte, and takes the answer as the first one.
    pub fn retry(&mut self, scene: &Scene, connection: &mut Connection) -> Outcome {
        let Some(UnansweredRequest {
            intent,
            request,
            key,
            acknowledged,
            present,
        }) = self.unanswered.take()
        else {
            return Ok(());
        };
        let answer = connection.send(&request).map_err(|lost| {
            Failure::new(format!("the retry of {intent:?} was not answered: {}", lost.why))
        })?;
        scene
            .ledger
            .note(self.number, "retried", &key, &intent, Some(&answer));
        let erased = answer.code() == "secret_no_longer_retrievable";
        if !answer.replayed && !erased && (acknowledged || present) {
            let known = if present {
                "was there after the restart"
            } else {
                "was acknowledged before the crash"
            };
            return Err(Failure::new(format!(
                "{intent:?} {known}, but its retry acted anew: {}",
                answer.summary()
            )));
        }
        if answer.replayed || erased {
            self.counts.replayed += 1;
        } else {
            self.counts.first_answers += 1;
        }
        self.accept(scene, &intent, &answer)
    }

    fn accept(&mut self, scene: &Scene, intent: &Intent, answer: &crate::http::Answer) -> Outcome {
        if let Intent::RotateShared { .. } = intent {
            let mut tokens = scene.shared_tokens.lock().unwrap_or_else(PoisonError::into_inner);
            if answer.status == 409 && answer.code() == "secret_no_longer_retrievable" {
                // Somebody else rotated in between: the effect is there, its secret is not.
                if let Some(id) = answer.json()?["tokenId"].as_str() {
                    tokens.entry(id.to_owned()).or_insert(None);
                }
                return Ok(());
            }
            self.model.apply(intent, answer)?;
            let body = answer.json()?;
            let (_, token) = issued(&body)?;
            if tokens.insert(token.id.clone(), Some(token.secret)).is_some() {
                return Err(Failure::new(format!(
                    "HALF-APPLIED: two rotations were answered with token {}",
                    token.id
                )));
            }
        } else {
            self.model.apply(intent, answer)?;
        }
        self.counts.acknowledged += 1;
        Ok(())
    }

    /// An answered request again, with the same key: the same answer, and no second effect.
    fn repeat(
        &mut self,
        scene: &Scene,
        connection: &mut Connection,
        intent: &Intent,
        request: &Request,
        first: &crate::http::Answer,
    ) -> Outcome<bool> {
        let Ok(second) = connection.send(request) else {
            return Ok(false);
        };
        if matches!(intent, Intent::RotateShared { .. }) && second.code() == "secret_no_longer_retrievable" {
            return Ok(true);
        }
        scene
            .ledger
            .note(self.number, "repeated", "", intent, Some(&second));
        if second.status != first.status || second.body != first.body || !second.replayed {
            return Err(Failure::new(format!(
                "the repetition of {intent:?} was answered {} (replayed: {}) after {}",
                second.summary(),
                second.replayed,
                first.summary()
            )));
        }
        Ok(true)
    }

    /// Uses the current token of an account, which also ends the replay of its secret; false when lost.
    fn probe(&mut self, scene: &Scene, connection: &mut Connection) -> Outcome<bool> {
        let ids: Vec<_> = self.model.accounts.keys().cloned().collect();
        let Some(account) = self.random.pick(&ids).and_then(|id| self.model.accounts.get(id)) else {
            return Ok(true);
        };
        let Some(token) = account.current() else {
            return Ok(true);
        };
        match connection.send(&Request::get(scene.bootstrap.path("capabilities"), &token.secret)) {
            Ok(answer) if (answer.status == 200) != account.disabled => Ok(true),
            Ok(answer) => Err(Failure::new(format!(
                "the current token of {} (disabled: {}) was answered {}",
                account.name,
                account.disabled,
                answer.summary()
            ))),
            Err(_) => Ok(false),
        }
    }

    fn choose(&mut self, scene: &Scene) -> Intent {
        let count = self.model.accounts.len();
        if self.random.chance(8) {
            return Intent::RotateShared {
                account: scene.shared_account.clone(),
            };
        }
        if self.number == 0 && self.random.chance(8) {
            let seconds = self.random.between(31_000_000, 31_536_000);
            return Intent::LimitLifetime {
                seconds,
                settings: with_lifetime(&scene.settings, seconds),
            };
        }
        let ids: Vec<_> = self.model.accounts.keys().cloned().collect();
        let wants_another = count < MOST_ACCOUNTS && self.random.chance(15);
        let chosen = if wants_another {
            None
        } else {
            self.random.pick(&ids).cloned()
        };
        let Some(id) = chosen else {
            let name = self.fresh_name();
            return Intent::Create {
                name,
                role: self.random.pick(&ROLES).copied().unwrap_or("viewer"),
            };
        };
        let Some(account) = self.model.accounts.get(&id).cloned() else {
            return Intent::RotateShared {
                account: scene.shared_account.clone(),
            };
        };
        self.choose_for(id, &account)
    }

    fn choose_for(&mut self, id: String, account: &Account) -> Intent {
        let die = self.random.between(1, 100);
        if account.tokens.len() >= MOST_TOKENS || die <= 8 {
            return Intent::Delete { account: id };
        }
        if account.disabled {
            return if die <= 60 {
                Intent::Enable { account: id }
            } else {
                self.update(id)
            };
        }
        match (die, account.current()) {
            (..=33, Some(_)) => Intent::Rotate {
                account: id,
                by_itself: true,
            },
            (..=60, _) => Intent::Rotate {
                account: id,
                by_itself: false,
            },
            (..=66, Some(token)) => Intent::Revoke {
                account: id,
                token: token.id.clone(),
            },
            (..=78, _) => Intent::Disable { account: id },
            _ => self.update(id),
        }
    }

    fn update(&mut self, account: String) -> Intent {
        let name = self.random.chance(30).then(|| self.fresh_name());
        let description = (name.is_none() || self.random.chance(50)).then(|| {
            if self.random.chance(80) {
                json!(format!("as of key {}", self.keys))
            } else {
                Value::Null
            }
        });
        Intent::Update {
            account,
            name,
            description,
        }
    }

    fn fresh_name(&self) -> String {
        format!("Robot {}-{}", self.number, self.keys)
    }
}

/// The settings to send for another limit: what was read, without the members that only reading shows.
fn with_lifetime(settings: &Value, seconds: u64) -> Value {
    let mut settings = settings.clone();
    if let Some(members) = settings.as_object_mut() {
        members.retain(|_, member| member.is_object());
    }
    let wrapped = settings["settings"].is_object();
    let tokens = if wrapped {
        &mut settings["settings"]["tokens"]
    } else {
        &mut settings["tokens"]
    };
    tokens["maxLifetimeSeconds"] = json!(seconds);
    settings
}

/// The lifetime limit in the settings as read.
pub fn lifetime_in(settings: &Value) -> Option<u64> {
    let settings = if settings["settings"].is_object() {
        &settings["settings"]
    } else {
        settings
    };
    settings["tokens"]["maxLifetimeSeconds"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_their_other_members() {
        let read = json!({"tokens": {"maxLifetimeSeconds": 5, "defaultGraceSeconds": 0}, "updatedAt": "x"});
        let sent = with_lifetime(&read, 7);
        assert_eq!(
            sent,
            json!({"tokens": {"maxLifetimeSeconds": 7, "defaultGraceSeconds": 0}})
        );
        assert_eq!(lifetime_in(&sent), Some(7));
        assert_eq!(
            lifetime_in(&json!({"settings": {"tokens": {"maxLifetimeSeconds": 3}}})),
            Some(3)
        );
        assert_eq!(lifetime_in(&json!({})), None);
    }

    #[test]
    fn an_account_with_many_tokens_is_deleted() {
        let mut worker = Worker::new(1, 0);
        let token = super::super::model::Token {
            id: String::new(),
            secret: String::new(),
            state: super::super::model::TokenState::Ended,
        };
        let account = Account {
            name: String::new(),
            role: String::new(),
            description: Value::Null,
            disabled: false,
            tokens: vec![token; MOST_TOKENS],
        };
        for _ in 0..50 {
            assert!(matches!(
                worker.choose_for("sa_1".into(), &account),
                Intent::Delete { .. }
            ));
        }
    }
}
