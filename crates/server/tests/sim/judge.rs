//! The book of a run: what was asked, what the log says of it, and whether every answer agrees with both.

use crate::model::{Act, Model};
use crate::simulated_faults::SimulatedFaults;
use crate::support::{App, Reply};
use provost_kernel::db::Tx;
use provost_kernel::{Result, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hasher;

provost_kernel::statements! {
    /// The chain of an organization behind a place of it.
    ENTRIES = "SELECT entry FROM audit_entries WHERE organization_id = ?1 AND seq > ?2 ORDER BY seq";
}

/// A request that can be repeated.
#[derive(Clone, Debug)]
pub struct RepeatableRequest {
    /// Its name: the reason that it gives, so that the log tells which entry is about it.
    pub tag: String,
    pub act: Act,
    pub method: &'static str,
    pub path: String,
    /// Without the mutation metadata; `Null` sends none.
    pub body: Value,
    pub content: Option<(&'static str, Vec<u8>)>,
    pub token: String,
    pub key: String,
}

impl RepeatableRequest {
    /// Sends the request; its mutation metadata travels in headers where there is no JSON body for it.
    pub async fn send(&self, app: &App) -> Reply {
        let call = app.request(self.method, &self.path).token(&self.token);
        if self.method == "DELETE" || self.content.is_some() || self.body.is_null() {
            let call = call
                .header("idempotency-key", &self.key)
                .header("x-reason", &self.tag)
                .header("x-confirm", "true");
            return match &self.content {
                Some((media_type, bytes)) => call.content(media_type, bytes.clone()).send().await,
                None => call.send().await,
            };
        }
        let mut body = self.body.clone();
        body["reason"] = self.tag.as_str().into();
        body["idempotencyKey"] = self.key.as_str().into();
        call.json(body).send().await
    }
}

/// What is known of a request.
#[derive(Debug)]
pub struct RequestState {
    pub asked: RepeatableRequest,
    /// How long the log was when it was first sent.
    pub from: i64,
    /// The entry of its effect.
    pub effect: Option<Entry>,
    /// How the log says that it was refused.
    refusals: Vec<Refusal>,
    pub answer: Option<(u16, Vec<u8>)>,
    /// Its key may be forgotten: the clock was in another year.
    pub is_stale: bool,
}

/// An entry of the log about one attempt that was refused.
#[derive(Debug)]
struct Refusal {
    status: u64,
    request: String,
    seq: i64,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub id: String,
    pub seq: i64,
}

/// What was known when a request was sent.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    pub log: i64,
    strikes: u64,
    now: i64,
    /// How often the wall clock had been set.
    moves: u64,
    was_over: bool,
}

/// When the token of the first admin ends: after ninety days.
const FIRST_ENDS: i64 = crate::world::START.as_ms() + 90 * 86_400_000;

/// See the module's text.
#[derive(Default)]
pub struct Book {
    pub model: Model,
    pub known: BTreeMap<String, RequestState>,
    /// The last entry that was read.
    pub last: Option<Entry>,
    pub trace: Vec<String>,
    pub answers: u64,
    pub skipped: u64,
    /// How often the wall clock was set.
    pub moves: u64,
}

impl Book {
    pub fn log(&self) -> i64 {
        self.last.as_ref().map_or(0, |entry| entry.seq)
    }

    pub fn before(&self, app: &App, weather: &SimulatedFaults) -> Before {
        Before {
            log: self.log(),
            strikes: weather.strikes(),
            now: app.kernel.latest().as_ms(),
            moves: self.moves,
            was_over: weather.end().is_some(),
        }
    }

    pub fn line(&mut self, line: String) {
        self.trace.push(line);
    }

    /// Writes an answer into the trace.
    pub fn answered(&mut self, who: &str, reply: &Reply) {
        let mut line = format!("{who} {}", reply.status.as_u16());
        let id = reply.header("x-request-id").to_owned();
        let _ = write!(line, " {} {:016x} {id}", reply.code(), hash(&reply.bytes));
        self.answers += 1;
        self.line(line);
    }

    /// Puts a request into the book, if it is new.
    pub fn enter(&mut self, asked: &RepeatableRequest) {
        let from = self.log();
        self.known
            .entry(asked.tag.clone())
            .or_insert_with(|| RequestState {
                asked: asked.clone(),
                from,
                effect: None,
                refusals: Vec::new(),
                answer: None,
                is_stale: false,
            });
    }

    /// Gives up every key: in another year keys are older than their retention.
    pub fn forget_keys(&mut self) {
        self.known.values_mut().for_each(|known| known.is_stale = true);
    }

    /// Takes one more entry of the log.
    fn apply(&mut self, entry: &Value) {
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
        let seq = entry["seq"].as_i64().unwrap();
        assert_eq!(seq, self.log() + 1, "the log has a gap");
        let here = Entry {
            id: text("/id").unwrap().to_owned(),
            seq,
        };
        self.last = Some(here.clone());
        let decision = text("/outcome/decision").unwrap();
        let status = entry["outcome"]["status"].as_u64().unwrap();
        self.trace.push(format!(
            "log {seq} {} {decision} {status} {}",
            text("/action").unwrap(),
            text("/reason").unwrap_or("-")
        ));
        let Some(known) = text("/reason").and_then(|tag| self.known.get_mut(tag)) else {
            return;
        };
        let (tag, act) = (known.asked.tag.clone(), known.asked.act.clone());
        let now = Timestamp::parse(text("/time").unwrap()).unwrap().as_ms();
        assert!(seq > known.from, "{tag}: it is in the log before it was asked");
        match decision {
            "allowed" => {
                assert!(
                    known.effect.is_none() || known.is_stale,
                    "{tag}: one key had two effects"
                );
                known.effect = Some(here);
                let refusal = self.model.refusal(&act);
                assert_eq!(refusal, None, "{tag}: {act:?} was done");
                let alive = self.model.answer(&known.asked.token, now);
                assert!(
                    alive.is_none_or(|(answer, _)| answer.0 == 200),
                    "{tag}: a dead token did something: {alive:?}"
                );
                self.model.perform(&act, &tag, text("/target/id"), now);
            }
            "idempotent_replay" => {
                let effect = known.effect.as_ref().map(|effect| effect.id.as_str());
                assert_eq!(effect, text("/replayOf"), "{tag}: the replay of something else");
            }
            _ => {
                known.refusals.push(Refusal {
                    status,
                    request: text("/requestId").unwrap_or_default().to_owned(),
                    seq,
                });
                if known.effect.is_none() && !matches!(act, Act::Other) {
                    let refusal = self.model.refusal(&act).map(u64::from);
                    assert_eq!(refusal, Some(status), "{tag}: {act:?} was refused");
                }
            }
        }
    }

    /// Reads what came to the log since.
    ///
    /// Errors: of a server that stops.
    pub async fn read(app: &App, log: i64) -> Result<Vec<Value>> {
        let organization = app.organization.clone();
        let read = move |tx: &mut Tx<'_>| {
            let params = provost_kernel::params![organization.as_str(), log];
            tx.query(&ENTRIES, params, |row| {
                Ok(serde_json::from_str(row.str(0)?).unwrap())
            })
        };
        app.kernel.read_system(read).await
    }

    pub fn take(&mut self, entries: &[Value]) {
        for entry in entries {
            if entry["seq"].as_i64().unwrap() > self.log() {
                self.apply(entry);
            }
        }
    }

    /// Judges the answer to a request; the log has been read behind it.
    pub fn judge(
        &mut self,
        app: &App,
        weather: &SimulatedFaults,
        asked: &RepeatableRequest,
        before: Before,
        reply: &Reply,
    ) {
        let (status, tag) = (reply.status.as_u16(), asked.tag.as_str());
        judge_status(weather, tag, (before, self.moves), reply);
        if status == 401 {
            self.judge_token(app, &asked.token, before, reply);
            return;
        }
        let Some(known) = self.known.get_mut(tag) else {
            return;
        };
        if reply.status.is_success() {
            let effect = known.effect.as_ref();
            assert!(effect.is_some(), "{tag}: acknowledged and not in the log");
            if let Some(first) = &known.answer {
                assert!(
                    *first == (status, reply.bytes.clone()),
                    "{tag}: two answers to one key\n{}\n{}",
                    String::from_utf8_lossy(&first.1),
                    reply.text()
                );
            } else {
                known.answer = Some((status, reply.bytes.clone()));
                self.learn(tag, reply);
            }
        } else if matches!(status, 403 | 404 | 409 | 412 | 422) {
            let request = reply.header("x-request-id");
            let said = known
                .refusals
                .iter()
                .find(|refusal| (refusal.status, refusal.request.as_str()) == (u64::from(status), request));
            let Some(said) = said else {
                panic!(
                    "{tag}: refused with {status} and not in the log: {}",
                    reply.text()
                );
            };
            // Rights are judged again before a replay, so what is gone answers as such.
            let account = known
                .asked
                .act
                .account()
                .and_then(|id| self.model.accounts.get(id));
            let is_gone = status == 404 && account.is_none_or(|account| account.deleted);
            let is_lost = reply.code() == "secret_no_longer_retrievable";
            assert!(
                known.effect.as_ref().is_none_or(|effect| said.seq < effect.seq) || is_lost || is_gone,
                "{tag}: refused after its effect: {}",
                reply.text()
            );
        }
    }

    /// Remembers an acknowledgement of which the log could not be asked any more.
    pub fn keep(&mut self, tag: &str, reply: &Reply) {
        let Some(known) = self.known.get_mut(tag) else {
            return;
        };
        if reply.status.is_success() && known.answer.is_none() {
            known.answer = Some((reply.status.as_u16(), reply.bytes.clone()));
        }
    }

    /// Whatever was acknowledged, in whichever life, is in the log.
    pub fn acknowledged(&self) {
        for (tag, known) in &self.known {
            assert!(
                known.answer.is_none() || known.effect.is_some(),
                "{tag}: acknowledged and lost"
            );
        }
    }

    /// Judges what a token was answered against what the model says of it.
    pub fn judge_token(&mut self, app: &App, token: &str, before: Before, reply: &Reply) {
        let now = app.kernel.latest().as_ms();
        let seen = (reply.status.as_u16(), reply.code());
        if before.moves != self.moves {
            self.skipped += 1;
            return;
        }
        let Some((then_or, changes)) = self.model.answer(token, before.now) else {
            let is_admin = token == app.admin;
            // The first admin's token lives for ninety days.
            assert!(
                !is_admin || now.max(before.now) >= FIRST_ENDS || seen.0 != 401,
                "{seen:?}"
            );
            return;
        };
        let (after, _) = self.model.answer(token, now).unwrap();
        if then_or != after || self.changed(token, before.log) {
            self.skipped += 1;
            return;
        }
        let seen = if seen.0 == 401 { seen } else { (200, "") };
        assert_eq!(seen, after, "the token was answered otherwise; {changes} changes");
    }

    /// Says whether the account of a token changed behind a place of the log.
    fn changed(&self, token: &str, log: i64) -> bool {
        let Some((account, _)) = self.model.find(token) else {
            return true;
        };
        self.known.values().any(|known| {
            known.effect.as_ref().is_some_and(|effect| effect.seq > log)
                && known.asked.act.account() == Some(account.id.as_str())
        })
    }

    /// Remembers what only the answer says: the secret of a token.
    fn learn(&mut self, tag: &str, reply: &Reply) {
        let Some(token) = self.model.issued(tag) else {
            return;
        };
        let text = |pointer: &str| reply.json.pointer(pointer).and_then(Value::as_str);
        token.secret = Some(text("/token/token").unwrap().to_owned());
        token.id = Some(text("/token/id").unwrap().to_owned());
        let shown = Timestamp::parse(text("/token/expiresAt").unwrap())
            .unwrap()
            .as_ms();
        // The grace of a rotation that came since ends it sooner.
        assert!(token.expires <= shown, "{tag}");
        assert!(token.expires == shown || token.is_superseded(), "{tag}");
    }

    pub fn digest(&self) -> u64 {
        let mut whole = std::hash::DefaultHasher::new();
        for line in &self.trace {
            whole.write(line.as_bytes());
        }
        whole.finish()
    }
}

/// What is unavailable is so for a reason, and nothing else fails.
fn judge_status(weather: &SimulatedFaults, tag: &str, (before, moves): (Before, u64), reply: &Reply) {
    let status = reply.status.as_u16();
    if status < 500 {
        return;
    }
    assert_eq!(status, 503, "{tag}: {}", reply.text());
    let is_over = before.was_over || weather.end().is_some() || weather.is_stopping();
    // Of approvals nobody can say how long they would last while the clock is behind itself (AP-12).
    let is_behind = moves > 0 && is_behind(reply);
    let struck = is_over || is_behind || weather.strikes() > before.strikes;
    assert!(struck, "{tag}: unavailable without a fault: {}", reply.text());
}

/// Says whether nothing was done because the server's clock is behind what it showed.
pub fn is_behind(reply: &Reply) -> bool {
    reply.text().contains("the clock of this server was set back")
}

/// A hash that is the same in every process.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
