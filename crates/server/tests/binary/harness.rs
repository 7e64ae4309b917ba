//! Running the real binary: homes, servers, one-shot commands, a few bytes of HTTP.

use provost_areas_platform::audit;
use provost_kernel::db::Location;
use provost_kernel::db::testing::{TestStore, locations};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, ManualClock, SystemClock};
use provost_server::app;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_provost");
/// Far beyond anything that works; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder of its own, and an empty store: in the folder, or a PostgreSQL schema.
pub struct Home {
    pub dir: PathBuf,
    store: TestStore,
}

/// Returns an empty home for each engine.
pub fn homes(name: &str) -> Vec<Home> {
    let stores = locations(&format!("bin_{name}")).into_iter();
    stores
        .enumerate()
        .map(|(place, store)| {
            let dir = std::env::temp_dir().join(format!("provost-bin-{name}-{}-{place}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir).unwrap();
            Home { dir, store }
        })
        .collect()
}

/// Returns an empty home for SQLite, and at night (`PROVOST_TEST_NIGHTLY=1`) one for each engine: for what no engine makes a
/// difference to.
pub fn homes_once(name: &str) -> Vec<Home> {
    let is_night = std::env::var_os("PROVOST_TEST_NIGHTLY").is_some_and(|value| value == "1");
    let mut homes = homes(name);
    homes.truncate(if is_night { homes.len() } else { 1 });
    homes
}

/// Returns an empty home for SQLite.
pub fn home(name: &str) -> Home {
    homes(name).remove(0)
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Home {
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self.store.location(), Location::Sqlite(_))
    }

    /// The file in the data folder, or the schema.
    pub fn location(&self) -> Location {
        match self.store.location() {
            Location::Sqlite(_) => Location::Sqlite(self.path("data/provost.db")),
            postgres @ Location::Postgres(_) => postgres,
        }
    }

    /// Returns a command on this home's store, without the environment of the test.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(words);
        command.current_dir(&self.dir);
        match self.store.location() {
            Location::Sqlite(_) => command.env("PROVOST_DATA_DIR", self.path("data")),
            Location::Postgres(url) => command.env("PROVOST_DATABASE_URL", url.expose()),
        };
        command.env("PROVOST_KEYS_DIR", self.path("keys"));
        command
    }

    /// Runs a command that succeeds and returns its standard output.
    pub fn run(&self, words: &[&str]) -> String {
        succeed(self.command(words))
    }

    /// Runs a command that fails and returns its exit code and its standard error.
    pub fn refuse(&self, words: &[&str]) -> (i32, String) {
        refuse(self.command(words))
    }

    /// Starts a server that becomes ready.
    pub fn serve(&self, words: &[&str]) -> Server {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];
        all.extend(words);
        Server::start(self.command(&all), &self.path("stdout"))
    }

    /// Starts a server without rate limits.
    pub fn serve_unlimited(&self) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        command.env("PROVOST_RATE_LIMITS_ENABLED", "false");
        Server::start(command, &self.path("stdout"))
    }

    /// Makes the organization `acme` and returns its token.
    pub fn init(&self) -> String {
        let made = self.run(&["init", "--organization", "Acme", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(made["organizationId"], "acme");
        made["token"].as_str().unwrap().to_owned()
    }
}

/// Returns a command without any environment.
pub fn bare(words: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(words).env_clear().stdin(Stdio::null());
    command
}

pub fn succeed(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub fn refuse(mut command: Command) -> (i32, String) {
    let output = command.output().unwrap();
    let code = output.status.code().unwrap();
    assert_ne!(code, 0, "{command:?}: {}", text(&output));
    (code, String::from_utf8(output.stderr).unwrap())
}

fn text(output: &Output) -> String {
    [&output.stdout[..], b"\n", &output.stderr]
        .concat()
        .escape_ascii()
        .to_string()
}

/// A running server; it is killed when it is dropped.
pub struct Server {
    pub child: Child,
    pub port: u16,
    pub stdout: String,
    pub log: String,
    lines: Receiver<String>,
}

impl Server {
    pub fn start(mut command: Command, stdout: &Path) -> Self {
        let file = File::create(stdout).unwrap();
        let mut child = command.stdout(file).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)));
        });
        let mut server = Self {
            child,
            port: 0,
            stdout: String::new(),
            log: String::new(),
            lines,
        };
        server.wait_for("\"ready\"");
        let (_, after) = server.log.split_once("listening on http").unwrap();
        let port = after.split("127.0.0.1:").nth(1).unwrap();
        server.port = port
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap();
        server.stdout = std::fs::read_to_string(stdout).unwrap();
        server
    }

    /// Waits until the log has a line with these words.
    pub fn wait_for(&mut self, words: &str) {
        while !self.log.contains(words) {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.log.push_str(&(line + "\n")),
                Err(RecvTimeoutError::Timeout) => panic!("no {words:?} in: {}", self.log),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the server ended ({:?}): {}", self.child.wait(), self.log)
                }
            }
        }
    }

    /// Returns all that was logged until now.
    pub fn log_so_far(&mut self) -> &str {
        while let Ok(line) = self.lines.try_recv() {
            self.log.push_str(&(line + "\n"));
        }
        &self.log
    }

    /// Returns the file that the log of a first start names, where it has written the token.
    pub fn token_file(&self) -> Option<PathBuf> {
        let (_, after) = self.log.split_once("the token of the first admin is in ")?;
        Some(PathBuf::from(after.split('"').next()?))
    }

    /// Returns the token of the first start.
    pub fn token(&self) -> String {
        let file = self.token_file().unwrap();
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(status.unwrap().success());
    }

    /// Stops the server gracefully and returns its exit code.
    pub fn stop(mut self) -> i32 {
        self.signal("TERM");
        self.child.wait().unwrap().code().unwrap()
    }

    /// Returns status and body of an authenticated list of service accounts.
    pub fn accounts(&self, organization: &str, token: &str) -> (u16, Value) {
        let path = format!("/api/headless/v1/organizations/{organization}/service-accounts");
        let (status, body) = get(self.port, &path, Some(token));
        (status, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns status and body of a GET.
pub fn get(port: u16, path: &str, token: Option<&str>) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let authorization = token
        .map(|token| format!("Authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

/// Returns status and body of what answers a request with this head, which closes its connection.
pub fn ask(port: u16, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// Returns status and body of a POST.
pub fn post(port: u16, path: &str, token: &str, body: &str) -> (u16, String) {
    send("POST", port, path, token, body)
}

/// Returns status and body of a PATCH.
pub fn patch(port: u16, path: &str, token: &str, body: &str) -> (u16, String) {
    send("PATCH", port, path, token, body)
}

fn send(method: &str, port: u16, path: &str, token: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // One key for each body: the same body again is the same request.
    let key: String = body
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(64)
        .collect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nX-Reason: a test\r\n\
         Idempotency-Key: {key}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// Signs checkpoints over all that a store holds, as a server does within a minute.
pub fn sign(home: &Home) {
    let clock = ManualClock::new(SystemClock::new().now().plus_secs(120));
    let kernel = app::start(app::Installation {
        areas: &provost_server::areas::ALL,
        location: home.location(),
        keys: Keys::open(&home.path("keys")).unwrap(),
        clock: Arc::new(clock),
        entropy: Arc::new(SystemEntropy),
        settings: Settings::default(),
        extras: Extras::default(),
    })
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        assert!(audit::make_checkpoints(&kernel).await.unwrap() > 0);
        kernel.stop().await;
    });
}
