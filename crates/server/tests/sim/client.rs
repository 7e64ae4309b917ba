//! Clients: they ask, repeat, race, leave in the middle, and try every token that was ever issued.

use crate::areas::{self, Fixture};
use crate::dice::Dice;
use crate::judge::{Book, RepeatableRequest};
use crate::life::Life;
use crate::model::{Act, Model};
use crate::samples::{self, Target};
use crate::support::{App, cut_after};
use serde_json::{Value, json};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;
use std::task::Poll;
use std::time::Duration;

thread_local! {
    /// Whether this thread makes what a mutation needs.
    static PREPARING: Cell<bool> = const { Cell::new(false) };
}

/// What of a client outlives the server.
#[derive(Debug)]
pub struct Client {
    pub number: usize,
    pub dice: Dice,
    pub steps: usize,
    next: usize,
    /// Sent, and not answered.
    pub pending: Option<String>,
}

impl Client {
    pub fn new(seed: u64, number: usize) -> Self {
        let mut dice = Dice::new(seed, 100 + number as u64);
        let steps = 8 + dice.below(16);
        Self {
            number,
            dice,
            steps,
            next: 0,
            pending: None,
        }
    }

    fn tag(&mut self) -> String {
        self.next += 1;
        format!("c{}-{}", self.number, self.next)
    }

    fn key(&self, tag: &str) -> String {
        format!(
            "simulated-key-of-{tag}-{:08x}",
            self.dice.clone().between(0, u32::MAX.into())
        )
    }
}

/// Does the steps of a client until they are done or the life is over.
pub async fn run(life: &Life, place: usize) {
    loop {
        let rest = {
            let mut book = life.lock();
            let client = &mut book.clients[place];
            if client.steps == 0 {
                return;
            }
            let long = client.dice.percent(6);
            client.dice.between(0, if long { 20_000 } else { 60 })
        };
        tokio::time::sleep(Duration::from_millis(rest)).await;
        step(life, place).await;
        life.lock().clients[place].steps -= 1;
    }
}

async fn step(life: &Life, place: usize) {
    let (roll, pending) = {
        let mut state = life.lock();
        let client = &mut state.clients[place];
        (client.dice.below(100), client.pending.clone())
    };
    if life.is_far() && roll < 35 && !life.weather.is_calm() {
        return life.come_back();
    }
    if let Some(tag) = pending {
        return repeat(life, place, &tag).await;
    }
    match roll {
        0..4 => life.move_clock(place),
        4..5 => life.end_workers(),
        5..6 => life.ask_for_restart(),
        6..27 => probe(life, place).await,
        27..37 => again(life, place).await,
        37..41 => mismatch(life, place).await,
        41..47 => look(life, place).await,
        47..57 => other(life, place).await,
        _ => ask(life, place).await,
    }
}

/// Sends a new request, perhaps several times at once, perhaps not to its end.
async fn ask(life: &Life, place: usize) {
    let asked = {
        let mut state = life.lock();
        let crate::life::State { clients, book, .. } = &mut *state;
        let asked = invent(&mut clients[place], &book.model, &life.app.admin);
        book.enter(&asked);
        asked
    };
    send(life, place, &asked).await;
}

async fn send(life: &Life, place: usize, asked: &RepeatableRequest) {
    let (copies, cut) = {
        let mut state = life.lock();
        let client = &mut state.clients[place];
        client.pending = Some(asked.tag.clone());
        let copies = if client.dice.percent(12) {
            client.dice.between(2, 4)
        } else {
            1
        };
        let cut = client.dice.percent(12).then(|| client.dice.between(1, 9));
        (copies, cut)
    };
    if let Some(polls) = cut {
        life.weather.count("disconnect");
        life.lock()
            .book
            .line(format!("{} leaves after {polls}", asked.tag));
        let reply = cut_after(usize::try_from(polls).unwrap(), deliver(life, asked)).await;
        if reply.is_some() {
            life.lock().clients[place].pending = None;
        }
        return;
    }
    if copies > 1 {
        life.weather.count("at once");
    }
    let mut done = false;
    let mut waiting: Vec<_> = (0..copies).map(|_| Box::pin(deliver(life, asked))).collect();
    // The copies are under way together; each is polled in its turn.
    std::future::poll_fn(|context| {
        waiting.retain_mut(|one| match one.as_mut().poll(context) {
            Poll::Ready(status) => {
                done |= status < 500;
                false
            }
            Poll::Pending => true,
        });
        if waiting.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    if done {
        life.lock().clients[place].pending = None;
    }
}

/// Sends a request to its end and judges its answer; returns the status.
async fn deliver(life: &Life, asked: &RepeatableRequest) -> u16 {
    life.read_log().await;
    let before = life.lock().book.before(&life.app, &life.weather);
    let reply = asked.send(&life.app).await;
    if life.is_dead() {
        return 503;
    }
    let has_log = life.read_log().await;
    let mut state = life.lock();
    state.book.answered(&asked.tag, &reply);
    if !has_log {
        state.book.keep(&asked.tag, &reply);
        return 503;
    }
    state.book.judge(&life.app, &life.weather, asked, before, &reply);
    reply.status.as_u16()
}

/// Sends once more what was not answered.
async fn repeat(life: &Life, place: usize, tag: &str) {
    let asked = {
        let mut state = life.lock();
        if state.book.known[tag].is_stale {
            state.clients[place].pending = None;
            return;
        }
        state.book.known[tag].asked.clone()
    };
    life.weather.count("repeated");
    send(life, place, &asked).await;
}

/// Sends once more what was answered.
async fn again(life: &Life, place: usize) {
    let asked = {
        let mut state = life.lock();
        let crate::life::State { clients, book, .. } = &mut *state;
        let client = &mut clients[place];
        let own = format!("c{}-", client.number);
        let mine: Vec<&RepeatableRequest> = answered(book, &own).collect();
        client.dice.pick(&mine).map(|asked| (*asked).clone())
    };
    if let Some(asked) = asked {
        deliver(life, &asked).await;
    }
}

fn answered<'a>(book: &'a Book, own: &str) -> impl Iterator<Item = &'a RepeatableRequest> {
    let own = own.to_owned();
    book.known
        .values()
        .filter(move |known| known.asked.tag.starts_with(&own) && known.answer.is_some() && !known.is_stale)
        .map(|known| &known.asked)
}

/// Uses a key that is taken for something else.
async fn mismatch(life: &Life, place: usize) {
    let asked = {
        let mut state = life.lock();
        let crate::life::State { clients, book, .. } = &mut *state;
        let client = &mut clients[place];
        let own = format!("c{}-", client.number);
        let is_json = |asked: &&RepeatableRequest| asked.method != "DELETE" && asked.body.is_object();
        let mine: Vec<&RepeatableRequest> = answered(book, &own)
            .filter(is_json)
            .filter(|asked| matches!(asked.act, Act::Create { .. } | Act::Patch(_)))
            .collect();
        client.dice.pick(&mine).map(|asked| (*asked).clone())
    };
    let Some(mut asked) = asked else { return };
    asked.tag = format!("other-{}", asked.tag);
    asked.body["description"] = "something else".into();
    let before = life.lock().book.before(&life.app, &life.weather);
    let reply = asked.send(&life.app).await;
    if !life.read_log().await {
        return;
    }
    let mut state = life.lock();
    state.book.answered(&asked.tag, &reply);
    let status = reply.status.as_u16();
    assert!(
        matches!(status, 401 | 422 | 503),
        "{}: {status} {}",
        asked.tag,
        reply.text()
    );
    state.book.judge(&life.app, &life.weather, &asked, before, &reply);
}

/// Tries a token, dead or alive.
async fn probe(life: &Life, place: usize) {
    let token = {
        let mut state = life.lock();
        let crate::life::State { clients, book, .. } = &mut *state;
        let all: Vec<&String> = book.model.secrets().collect();
        clients[place].dice.pick(&all).map(|token| (*token).clone())
    };
    let Some(token) = token else { return };
    life.read_log().await;
    let before = life.lock().book.before(&life.app, &life.weather);
    let reply = life
        .app
        .request("GET", "/capabilities")
        .token(&token)
        .send()
        .await;
    if !life.read_log().await {
        return;
    }
    let mut state = life.lock();
    state.book.answered("probe", &reply);
    match reply.status.as_u16() {
        503 => {
            let asked = reading(&token);
            state.book.judge(&life.app, &life.weather, &asked, before, &reply);
        }
        _ => state.book.judge_token(&life.app, &token, before, &reply),
    }
}

/// A read, any one that the registry has and that needs no record of its own: lists, decisions, names, exports.
async fn look(life: &Life, place: usize) {
    if life.is_far() {
        return;
    }
    let read = {
        let mut state = life.lock();
        *state.clients[place].dice.pick(&life.calls.reads).unwrap()
    };
    let entry = &life.app.kernel.registry.entries()[read];
    let before = life.lock().book.before(&life.app, &life.weather);
    let reply = samples::call(&life.app, entry, &Target::absent()).send().await;
    if life.is_dead() {
        return;
    }
    let mut state = life.lock();
    state.book.answered(entry.meta.id, &reply);
    let asked = reading(&life.app.admin);
    state.book.judge(&life.app, &life.weather, &asked, before, &reply);
}

fn reading(token: &str) -> RepeatableRequest {
    RepeatableRequest {
        tag: "a read".into(),
        act: Act::Other,
        method: "GET",
        path: String::new(),
        body: Value::Null,
        content: None,
        token: token.to_owned(),
        key: String::new(),
    }
}

/// Calls any mutation of the registry; what it needs is made while nothing goes wrong.
async fn other(life: &Life, place: usize) {
    if life.weather.end().is_some() || life.is_far() || life.is_stopping() {
        return;
    }
    let (operation, tag, key) = {
        let mut state = life.lock();
        let client = &mut state.clients[place];
        let operation = *client.dice.pick(&life.calls.writes).unwrap();
        let tag = client.tag();
        let key = client.key(&tag);
        (operation, tag, key)
    };
    let Some((made, token)) = prepared(life, operation, &key).await else {
        return;
    };
    let asked = RepeatableRequest {
        tag,
        act: Act::Other,
        method: made.method,
        path: made.path,
        body: made.body,
        content: made.content,
        token,
        key,
    };
    {
        let mut state = life.lock();
        state.book.line(format!("{} is {operation}", asked.tag));
        state.book.enter(&asked);
    }
    send(life, place, &asked).await;
}

/// Makes what a mutation needs, in calm, and says with which token it is called; `None` when another client just has what there is one of, an open import for
/// example.
async fn prepared(life: &Life, operation: &str, key: &str) -> Option<(Fixture, String)> {
    let _calm = life.weather.calm();
    let mut made = Box::pin(made(&life.app, operation, key));
    let made = std::future::poll_fn(|context| {
        PREPARING.set(true);
        let polled = catch_unwind(AssertUnwindSafe(|| made.as_mut().poll(context)));
        PREPARING.set(false);
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    });
    made.await.unwrap_or_else(|panic| {
        if is_taken(&*panic) {
            return None;
        }
        resume_unwind(panic)
    })
}

async fn made(app: &App, operation: &str, key: &str) -> Option<(Fixture, String)> {
    let entry = app.kernel.registry.find(operation);
    // The model knows nothing of tokens of machines; and a machine is made with proofs that a clock which goes ahead and back
    // makes old. Nobody signs in here.
    if entry.is_some_and(|entry| entry.meta.toolset == "fleet" || samples::needs_a_person(entry.meta)) {
        return None;
    }
    let made = areas::fixture(app, operation, key).await?;
    let is_machine = entry.is_some_and(|entry| samples::needs_a_name(entry.meta));
    let token = if is_machine {
        app.machine().await
    } else {
        app.admin.clone()
    };
    Some((made, token))
}

/// Whether what was to be made is somebody's already, needs a machine whose proof the clock made old, or is an approval, which nobody gets
/// while the clock is behind itself (AP-12).
fn is_taken(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>();
    text.is_some_and(|text| {
        let names = |word: &str| text.contains(word);
        text.starts_with("409 ")
            || names("the DPoP proof is missing or not accepted")
            || names("clock_set_back")
    })
}

/// Keeps panics that [`prepared`] takes for an answer out of what a run prints.
pub fn hush_what_is_taken() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !(PREPARING.get() && is_taken(panic.payload())) {
                usual(panic);
            }
        }));
    });
}

/// Thinks of a request about accounts.
fn invent(client: &mut Client, model: &Model, admin: &str) -> RepeatableRequest {
    let tag = client.tag();
    let accounts: Vec<&String> = model.accounts.keys().collect();
    let account = client.dice.pick(&accounts).map(|id| (*id).clone());
    let roll = client.dice.below(100);
    let (act, method, path, body) = match (account, roll) {
        (None, _) | (_, 0..18) => {
            let hours = i64::try_from(client.dice.between(1, 80)).unwrap();
            let body = json!({ "name": tag, "permissionRole": "viewer", "allOfRole": true, "expiresInSeconds": hours * 3600 });
            (
                Act::Create { hours },
                "POST",
                "/service-accounts".to_owned(),
                body,
            )
        }
        (_, 18..24) => {
            let grace = i64::try_from(client.dice.between(0, 4000)).unwrap();
            let body = json!({ "tokens": { "defaultGraceSeconds": grace } });
            (Act::Grace(grace), "PUT", "/automation/settings".to_owned(), body)
        }
        (Some(id), _) => about(client, model, id, roll, &tag),
    };
    let key = client.key(&tag);
    RepeatableRequest {
        tag,
        act,
        method,
        path,
        body,
        content: None,
        token: admin.to_owned(),
        key,
    }
}

fn about(
    client: &mut Client,
    model: &Model,
    id: String,
    roll: usize,
    tag: &str,
) -> (Act, &'static str, String, Value) {
    let path = format!("/service-accounts/{id}");
    let known: Vec<&String> = model.accounts[&id]
        .tokens
        .iter()
        .filter_map(|t| t.id.as_ref())
        .collect();
    let token = client.dice.pick(&known).map(|token| (*token).clone());
    match (roll, token) {
        (24..34, _) => (Act::Patch(id), "PATCH", path, json!({ "description": tag })),
        (34..44, _) => (Act::Disable(id), "POST", format!("{path}/disable"), json!({})),
        (44..58, _) => (Act::Enable(id), "POST", format!("{path}/enable"), json!({})),
        (58..63, _) => (Act::Delete(id), "DELETE", path, json!({})),
        (63..72, Some(token)) => {
            let path = format!("{path}/tokens/{token}/revoke");
            let act = Act::Revoke { account: id, token };
            (act, "POST", path, json!({ "confirm": true }))
        }
        _ => {
            let hours = i64::try_from(client.dice.between(1, 80)).unwrap();
            let mut body = json!({ "expiresInSeconds": hours * 3600 });
            let grace = client
                .dice
                .percent(60)
                .then(|| i64::try_from(client.dice.between(0, 9000)).unwrap());
            if let Some(grace) = grace {
                body["gracePeriodSeconds"] = grace.into();
            }
            let act = Act::Rotate {
                account: id,
                grace,
                hours,
            };
            (act, "POST", format!("{path}/tokens"), body)
        }
    }
}
