//! A store of a drill, its administrator, and what both are asked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::bench_store::BenchStore;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::product::{Bootstrap, Installation, Server, Store};
use crate::traffic;

pub struct Scene {
    pub installation: Installation,
    pub bootstrap: Bootstrap,
    seed: u64,
    count: AtomicU64,
}

/// An account and its token.
pub struct Account {
    pub id: String,
    pub token: String,
}

impl Scene {
    /// A new store with its first organization.
    pub fn create(place: &BenchStore, name: &str, seed: u64) -> Outcome<Self> {
        Self::of(place.beside(name)?, seed)
    }

    /// The same of an installation that is not there yet.
    pub fn of(installation: Installation, seed: u64) -> Outcome<Self> {
        let bootstrap = installation.initialize()?;
        Ok(Self {
            installation,
            bootstrap,
            seed,
            count: AtomicU64::new(0),
        })
    }

    /// The folder of the keys.
    pub fn keys(&self) -> PathBuf {
        match &self.installation.store {
            Store::Sqlite { data } => data.join("keys"),
            Store::Postgres { keys, .. } => keys.clone(),
        }
    }

    /// What the log says so far; empty when there is none.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.installation.log).unwrap_or_default()
    }

    /// A change by the administrator, with a reason and a key of its own.
    pub fn change(&self, method: &'static str, rest: &str, body: Value) -> Request {
        let serial = self.count.fetch_add(1, Ordering::SeqCst);
        let key = format!("surroundings-{:016x}-{serial:08}", self.seed);
        self.bootstrap.change(method, rest, body, &key, "surroundings")
    }

    /// The request that makes an account.
    pub fn account(&self, name: &str) -> Request {
        self.change("POST", "service-accounts", traffic::account(name, "viewer"))
    }

    pub fn make_account(&self, address: SocketAddr, name: &str) -> Outcome<Account> {
        let made = Connection::new(address).fetch(&self.account(name))?;
        let text = |place: &str| {
            let found = made.pointer(place).and_then(Value::as_str);
            found
                .map(str::to_owned)
                .context(format_args!("no {place} in {made}"))
        };
        Ok(Account {
            id: text("/serviceAccount/id")?,
            token: text("/token/token")?,
        })
    }

    /// The request that ends an account.
    pub fn disable(&self, account: &Account) -> Request {
        self.change(
            "POST",
            &format!("service-accounts/{}/disable", account.id),
            json!({}),
        )
    }

    /// Asks as whoever a token belongs to, and expects this status.
    pub fn acts(&self, address: SocketAddr, token: &str, statuses: &[u16], when: &str) -> Outcome {
        let request = Request::get(self.bootstrap.path("capabilities"), token);
        expect(address, &request, statuses, when).map(drop)
    }
}

/// Has an installation keep its keys in this folder.
pub fn keep_keys_in(installation: &mut Installation, folder: &Path) {
    match &mut installation.store {
        Store::Postgres { keys, .. } => *keys = folder.to_path_buf(),
        Store::Sqlite { .. } => {
            let name = folder.display().to_string();
            installation.environment.push(("PROVOST_KEYS_DIR", name.into()));
        }
    }
}

/// Sends a request that is answered.
pub fn ask(address: SocketAddr, request: &Request) -> Outcome<Answer> {
    Connection::new(address)
        .send(request)
        .map_err(|lost| Failure::new(format!("{} {}: {}", request.method, request.path, lost.why)))
}

/// Sends a request that has to be answered with one of these.
pub fn expect(address: SocketAddr, request: &Request, statuses: &[u16], when: &str) -> Outcome<Answer> {
    let answer = ask(address, request)?;
    if statuses.contains(&answer.status) {
        return Ok(answer);
    }
    Err(Failure::new(format!(
        "VIOLATION: {} {} {when} is answered {}, and has to be {statuses:?}",
        request.method,
        request.path,
        answer.summary()
    )))
}

/// Whether the server takes requests.
pub fn readiness(address: SocketAddr) -> Outcome<u16> {
    let request = Request {
        token: None,
        ..Request::get("/readyz", "")
    };
    Ok(ask(address, &request)?.status)
}

/// Waits until something is so.
pub fn wait(limit: Duration, what: &str, is_so: impl FnMut() -> bool) -> Outcome {
    if clock::poll_until(limit, Duration::from_millis(50), is_so) {
        return Ok(());
    }
    Err(Failure::new(format!("VIOLATION: {what} within {limit:?}")))
}

/// Fails unless a text holds these words.
pub fn says(text: &str, words: &str, what: &str) -> Outcome {
    if text.contains(words) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "VIOLATION: {what} does not say {words:?}:\n{text}"
    )))
}

/// The lines of a metric.
pub fn metric(server: &Server, name: &str) -> Outcome<String> {
    let request = Request {
        token: None,
        ..Request::get("/metrics", "")
    };
    let answer = ask(server.metrics, &request)?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let lines = text.split_inclusive('\n').filter(|line| line.starts_with(name));
    Ok(lines.collect())
}

/// Starts a server that has to end by itself with a failure; returns what it said.
pub fn refusal(installation: &Installation) -> Outcome<String> {
    let begin = installation.log.metadata().map_or(0, |log| log.len());
    let server = installation.launch()?;
    let status = server
        .await_end(Duration::from_secs(30))
        .context("VIOLATION: a server that has to refuse to start goes on")?;
    let bytes = std::fs::read(&installation.log).context("cannot read the log")?;
    let begin = usize::try_from(begin).unwrap_or_default().min(bytes.len());
    let said = String::from_utf8_lossy(&bytes[begin..]).into_owned();
    if status.success() {
        return Err(Failure::new(format!(
            "VIOLATION: a server that has to refuse ended with 0:\n{said}"
        )));
    }
    Ok(said)
}
