//! The agent before a server that says what a test wants, in a folder of its own.

mod commands;
mod folders;
mod kills;
mod queues;
mod renewals;
mod reports;
mod rotations;
mod rounds;

use crate::door::{Call, Door, Reply};
use crate::{Agent, Enrolment, Folder, Loop, Mode, Once, Trouble, enrol, once};
use provost_words::Secret;
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A folder that ends with the test.
pub(super) struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let seed = SystemEntropy.seed();
        let name = seed[..8].iter().map(u8::to_string).collect::<Vec<_>>().join("-");
        let path = std::env::temp_dir().join(format!("provost-agent-{name}"));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn folder(&self) -> Folder {
        Folder::make(&self.0.join("state")).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What was asked: the path, the token, the proof, the body.
pub(super) type Asked = (String, String, String, Vec<u8>);

/// The end of a path, and what happens while a request goes there.
pub(super) type Meanwhile = (&'static str, Box<dyn Fn()>);

/// A server whose answers stand in a line; behind their end nobody answers.
#[derive(Default)]
pub(super) struct Told {
    pub answers: RefCell<VecDeque<Reply>>,
    pub asked: RefCell<Vec<Asked>>,
    pub date: Cell<Option<Timestamp>>,
    /// What happens while a request is on its way, by the end of its path.
    pub meanwhile: RefCell<Option<Meanwhile>>,
}

impl Told {
    pub fn will(&self, status: u16, body: &Value) {
        self.answers.borrow_mut().push_back(Reply {
            status,
            date: None,
            retry_after: None,
            etag: None,
            body: body.to_string().into_bytes(),
        });
    }
}

impl Door for Told {
    fn url(&self) -> &'static str {
        "https://provost.test"
    }

    fn send<'a>(&'a self, call: &'a Call<'a>) -> Pin<Box<dyn Future<Output = Result<Reply, String>> + 'a>> {
        let asked = (
            call.path.to_owned(),
            call.token.expose().clone(),
            call.proof.expose().clone(),
            call.body.to_vec(),
        );
        self.asked.borrow_mut().push(asked);
        if let Some((end, happens)) = &*self.meanwhile.borrow()
            && call.path.ends_with(end)
        {
            happens();
        }
        let next = self.answers.borrow_mut().pop_front();
        let answer = next.ok_or_else(|| "cannot reach https://provost.test: nobody listens".to_owned());
        let date = self.date.get();
        Box::pin(std::future::ready(answer.map(|reply| Reply { date, ..reply })))
    }
}

/// What a server answers to an enrolment.
pub(super) fn enrolled() -> Value {
    json!({
        "device": { "id": "dev_01kaf9q2m4x7t8v3c5d6e0g1h2", "name": "laptop", "mode": "user", "needsApproval": false },
        "token": { "id": "dvt_1", "token": "prov_dvt_canary", "expiresAt": "2099-01-01T00:00:00.000Z" },
    })
}

pub(super) fn now<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(work)
}

pub(super) fn try_enrol(folder: &Folder, door: &Told, clock: &dyn Clock) -> Result<Vec<String>, Trouble> {
    enrol_as(folder, door, clock, false)
}

pub(super) fn enrol_as(
    folder: &Folder,
    door: &Told,
    clock: &dyn Clock,
    anew: bool,
) -> Result<Vec<String>, Trouble> {
    let enrolment = Enrolment {
        door,
        organization: "acme",
        token: &Secret::new("prov_ent_canary".to_owned()),
        name: "laptop",
        mode: Mode::User,
        allow_plain_http: false,
        ca_cert: None,
        anew,
        clock,
        entropy: &SystemEntropy,
    };
    now(enrol(folder, &enrolment)).map(|(_, odd)| odd)
}

/// A machine that is enrolled.
pub(super) fn agent(folder: &Folder) -> Agent {
    let door = Told::default();
    door.will(201, &enrolled());
    try_enrol(folder, &door, &SystemClock::new()).unwrap();
    Agent::open(folder).unwrap()
}

/// A home in which one client has one server, and a value that must not leave.
pub(super) fn home(scratch: &Scratch) -> PathBuf {
    let home = scratch.0.join("home");
    std::fs::create_dir_all(&home).unwrap();
    let settings = json!({ "mcpServers": { "docs": { "command": "npx", "args": ["-y", "@acme/docs@1.2.3"],
        "env": { "TOKEN": "hunter2-canary" } } } });
    std::fs::write(home.join(".claude.json"), settings.to_string()).unwrap();
    home
}

pub(super) fn beat() -> Value {
    json!({ "now": "2026-11-27T10:00:00.000Z", "nextHeartbeatSeconds": 300 })
}

pub(super) fn taken() -> Value {
    json!({ "accepted": true, "unknownDigests": [] })
}

/// Makes one round.
pub(super) fn round(agent: &Agent, home: &Path, door: &Told) -> Result<Once, Trouble> {
    round_at(agent, home, door, &SystemClock::new())
}

/// Makes one round by a clock.
pub(super) fn round_at(agent: &Agent, home: &Path, door: &Told, clock: &dyn Clock) -> Result<Once, Trouble> {
    now(once(&Loop {
        agent,
        door,
        home,
        clock,
        entropy: &SystemEntropy,
        say: &|_| {},
        stations: &[],
        stop: Arc::default(),
    }))
}

/// Has a token end at an instant.
pub(super) fn ends_at(folder: &Folder, text: &str, end: Timestamp) {
    let line = format!("{text}\n{end}\n");
    folder.replace("token", line.as_bytes()).unwrap();
}

/// A clock of which the test says what it reads; asleep it goes on by as much as somebody waits.
pub(super) struct Jumping(pub Mutex<(Timestamp, Duration)>);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

pub(super) fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
