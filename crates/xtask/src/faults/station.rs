//! One server on a copy of the base, and one point after the other on it.
//!
//! ```text
//! fixture · state before · strace attached to the writer ── the operation, with the fault in its n-th call
//!   the server lives:  state, a second mutation            kill -9 in any case
//! start again · audit entries · state · the operation again, twice · state · store check, audit verify
//! ```
//!
//! Only the thread that writes the store is traced: sockets and the runtime's events belong to others. The server
//! that the last point started serves the next one, on a fresh copy every so often.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::base::{self, Base};
use super::fault::Point;
use super::judge::{Observations, Violation, judge};
use super::strace::{self, Call};
use super::{state, threads};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, MissingAnswer, Request};
use crate::product::{Installation, Server};
use crate::traffic::archive;
use crate::traffic::catalogue::{self, Effect, Operation};
use crate::traffic::maker::{Maker, Ready};

/// After so many points the store is a fresh copy: lists stay short, and points alike.
const POINTS_OF_A_COPY: u32 = 16;

/// A server and what is known of it.
pub struct Station<'a> {
    base: &'a Base,
    seed: u64,
    folder: PathBuf,
    installation: Installation,
    server: Option<Server>,
    points: u32,
    secrets: Vec<String>,
}

/// What came of a point.
pub struct PointOutcome {
    pub calls: Vec<Call>,
    /// Whether the fault happened.
    pub hit: bool,
    pub violations: Vec<Violation>,
}

impl<'a> Station<'a> {
    pub fn new(base: &'a Base, seed: u64, folder: PathBuf) -> Self {
        let installation = base::installation(&base.binary, &folder);
        Self {
            base,
            seed,
            folder,
            installation,
            server: None,
            points: 0,
            secrets: Vec::new(),
        }
    }

    /// Tries one point of an operation; without one, what happens when the server is killed after its answer.
    pub fn attempt(&mut self, operation: &Operation, point: Option<&Point>) -> Outcome<PointOutcome> {
        let mut server = self.take_server()?;
        self.points += 1;
        let unique = format!("f{:x}-{}-{}", self.seed & 0xffff, self.folder_name(), self.points);
        let mut connection = Connection::new(server.address);
        let held = operation.holds.map(|name| self.hold(&server, name)).transpose()?;
        let ready = self.prepare(operation, &unique, &mut connection)?;
        let before = self
            .state(&mut connection, &ready)?
            .context("a healthy server shows no state")?;
        self.settle(&unique, &mut connection)?;

        let writer = threads::named(server.pid(), "writer-0")?;
        let injection = point.map(Point::injection);
        let traced = strace::attach(&writer, &self.folder.join("trace"), injection.as_deref())?;
        let answer = connection.send(&ready.request);
        let answered = clock::since_epoch();
        let mut live = None;
        let mut probe = None;
        if point.is_some() && !server.has_ended() {
            let mut other = Connection::new(server.address);
            // The server may die of what was injected at any moment.
            live = self.state(&mut other, &ready).ok().flatten();
            probe = other.send(&self.probe(&unique)).ok().map(|answer| answer.status);
        }
        drop((server, held));
        let calls = traced.ended()?;

        let seen = self.look_after(operation, &ready, &unique, before, live, probe, answer, answered)?;
        let is_ours = |call: &Call| self.is_ours(call);
        let verdict = judge(operation, point, &calls, &seen, is_ours);
        let mut violations = verdict.violations;
        violations.extend(self.check_offline());
        violations.extend(self.check_log());
        if !violations.is_empty() {
            // The next point must not inherit what is wrong with this one.
            self.keep(&unique)?;
        }
        Ok(PointOutcome {
            calls,
            hit: verdict.hit,
            violations,
        })
    }

    /// Whether a call is about a file of the installation.
    pub fn is_ours(&self, call: &Call) -> bool {
        Path::new(&call.place).starts_with(self.folder.join("data"))
    }

    fn folder_name(&self) -> String {
        self.folder
            .file_name()
            .map_or_else(String::new, |name| name.display().to_string())
    }

    fn take_server(&mut self) -> Outcome<Server> {
        if self.points.is_multiple_of(POINTS_OF_A_COPY) {
            self.server = None;
            self.installation = self.base.copy(&self.folder)?;
            self.secrets = vec![self.base.bootstrap.token.clone(), catalogue::SECRET.to_owned()];
        }
        match self.server.take() {
            Some(server) => Ok(server),
            None => self.installation.serve(),
        }
    }

    /// Threads that enter no system call any more stand still.
    fn hold(&self, server: &Server, name: &str) -> Outcome<strace::AttachedStrace> {
        let threads = threads::named(server.pid(), name)?;
        strace::hold(&threads, &self.folder.join("held"))
    }

    fn prepare(&self, operation: &Operation, unique: &str, connection: &mut Connection) -> Outcome<Ready> {
        let folder = self.folder.clone();
        let skill = move |name: &str, bytes: usize| archive(name, &folder, bytes);
        let log = self.folder.join("data/provost.db-wal");
        let log_bytes = move || std::fs::metadata(&log).map_or(0, |log| log.len());
        let mut maker = Maker {
            connection,
            bootstrap: &self.base.bootstrap,
            unique,
            archive: &skill,
            log_bytes: &log_bytes,
            sent: 0,
        };
        (operation.prepare)(&mut maker).context(operation.id)
    }

    fn state(&self, connection: &mut Connection, ready: &Ready) -> Outcome<Option<Value>> {
        state::read(connection, &self.base.bootstrap, &ready.shows)
    }

    /// Has everything written that waits: reads of sensitive lists leave notes, which travel with the next change. A
    /// refusal is such a change, and leaves nothing else.
    fn settle(&self, unique: &str, connection: &mut Connection) -> Outcome {
        let absent = "directory/users/usr_01kadh5j9v0000000000000000";
        let key = format!("{unique}-settles");
        let refused = self.base.bootstrap.act("DELETE", absent, &key, "settle");
        let answer = connection
            .send(&refused)
            .map_err(|lost| lost.why)
            .context("a refusal")?;
        if answer.status == 404 {
            return Ok(());
        }
        Err(Failure::new(format!(
            "a refusal was answered {}",
            answer.summary()
        )))
    }

    /// A mutation that a broken server must not acknowledge.
    fn probe(&self, unique: &str) -> Request {
        let key = format!("{unique}-the-probe");
        let request = self
            .base
            .bootstrap
            .act("POST", "directory/users", &key, "a probe");
        request.with_body(json!({ "loginName": probe_name(unique) }))
    }

    #[expect(clippy::too_many_arguments, reason = "what was seen before, in one place")]
    fn look_after(
        &mut self,
        operation: &Operation,
        ready: &Ready,
        unique: &str,
        before: Value,
        live: Option<Value>,
        probe: Option<u16>,
        answer: Result<Answer, MissingAnswer>,
        answered: Duration,
    ) -> Outcome<Observations> {
        let mut server = self.installation.launch()?;
        server
            .wait_until_ready(Duration::from_secs(30))
            .context("the start after the fault")?;
        let mut connection = Connection::new(server.address);
        let bootstrap = &self.base.bootstrap;
        let entries_before = state::entries(&mut connection, bootstrap, unique)?;
        let recorded_before = self.recorded(operation, unique, &mut connection)?;
        let after = self
            .state(&mut connection, ready)?
            .context("a restarted server shows no state")?;
        let mut send = || {
            connection
                .send(&ready.request)
                .map_err(|lost| lost.why)
                .context("the retry")
        };
        let (again, once_more) = (send()?, send()?);
        let end = self
            .state(&mut connection, ready)?
            .context("a restarted server shows no state")?;
        let entries = state::entries(&mut connection, bootstrap, unique)?;
        let recorded = self.recorded(operation, unique, &mut connection)?;
        self.server = Some(server);
        self.remember_secrets(&again);
        Ok(Observations {
            before,
            live,
            probe,
            probe_name: probe_name(unique),
            answer: answer.map_err(|lost| lost.status),
            answered,
            entries_before,
            after,
            again,
            once_more,
            end,
            entries,
            recorded_before,
            recorded,
        })
    }

    /// How often the recorded history shows what an operation recorded.
    fn recorded(&self, operation: &Operation, unique: &str, connection: &mut Connection) -> Outcome<usize> {
        if operation.effect == Effect::Keyed {
            return Ok(0);
        }
        let (mut count, mut cursor) = (0, String::new());
        loop {
            let path = self
                .base
                .bootstrap
                .path(&format!("policies/history?limit=100{cursor}"));
            let shown = connection.fetch(&Request::get(path, &self.base.bootstrap.token))?;
            let events = shown["events"].as_array().context("a history without events")?;
            count += events
                .iter()
                .filter(|event| event.to_string().contains(unique))
                .count();
            // A call looks at a part of the history.
            match shown["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(count),
            }
        }
    }

    fn remember_secrets(&mut self, answer: &Answer) {
        let body = answer.json().unwrap_or_default();
        for place in ["/token/token", "/gatewayToken/token"] {
            let secret = body.pointer(place).and_then(Value::as_str);
            self.secrets.extend(secret.map(str::to_owned));
        }
    }

    fn check_offline(&self) -> Vec<Violation> {
        let failed = |words: &[&str]| {
            self.installation
                .check(words)
                .err()
                .map(|failure| failure.to_string())
        };
        [&["store", "check"][..], &["audit", "verify"]]
            .into_iter()
            .filter_map(failed)
            .collect()
    }

    fn check_log(&self) -> Vec<Violation> {
        let log = std::fs::read_to_string(&self.installation.log).unwrap_or_default();
        let shown = self.secrets.iter().any(|secret| log.contains(secret.as_str()));
        shown
            .then(|| format!("{} shows a secret", self.installation.log.display()))
            .into_iter()
            .collect()
    }

    /// Keeps the folder as it is and goes on with a fresh copy.
    fn keep(&mut self, unique: &str) -> Outcome {
        base::copy_folder(
            &self.folder,
            &self.folder.with_extension(format!("kept-{unique}")),
        )?;
        self.begin_again();
        Ok(())
    }

    /// Has the next point begin with a fresh copy.
    pub fn begin_again(&mut self) {
        self.server = None;
        self.points = self.points.next_multiple_of(POINTS_OF_A_COPY);
    }
}

fn probe_name(unique: &str) -> String {
    format!("probe-{unique}@example.com")
}
