//! The log goes to standard error, and whoever reads that is another program.

use crate::harness::{Home, Server, get, home, homes_once, post};
use provost_kernel::time::{Clock, SystemClock};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Long enough for a checkpoint, which comes every 15 seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server whose log nobody reads any more.
struct UnreadLog {
    child: Child,
    port: u16,
    metrics: u16,
    token: String,
}

impl UnreadLog {
    /// Starts a server that logs everything, and takes its reader away when it is ready.
    fn start(home: &Home, token: &str) -> Self {
        let words = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "127.0.0.1:0",
        ];
        let mut command: Command = home.command(&words);
        command
            .env("PROVOST_LOG", "trace")
            .env("PROVOST_RATE_LIMITS_ENABLED", "false");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stderr.take().unwrap());
        let (mut port, mut metrics, mut line) = (0, 0, String::new());
        while !line.contains("\"ready\"") {
            line.clear();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0, "{:?}", child.wait());
            let number = |words: &str| {
                let (_, after) = line.split_once(words)?;
                let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            };
            port = number("listening on http://127.0.0.1:").unwrap_or(port);
            metrics = number("metrics on http://127.0.0.1:").unwrap_or(metrics);
        }
        drop(child.stdout.take());
        drop(reader);
        Self {
            child,
            port,
            metrics,
            token: token.to_owned(),
        }
    }

    fn change(&self, name: &str) -> u16 {
        let body = format!(r#"{{"name":"{name}","permissionRole":"viewer","allOfRole":true}}"#);
        let path = "/api/headless/v1/organizations/acme/service-accounts";
        post(self.port, path, &self.token, &body).0
    }

    fn lost(&self) -> u64 {
        let (_, text) = get(self.metrics, "/metrics", None);
        let line = text
            .lines()
            .find(|line| line.starts_with("provost_log_lines_lost_total "));
        line.and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .unwrap()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(status.unwrap().success());
    }

    fn end(mut self) -> i32 {
        self.signal("TERM");
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for UnreadLog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn checkpoints(home: &Home) -> usize {
    let file = std::fs::read_to_string(home.path("keys/checkpoints.jsonl"));
    file.unwrap_or_default().lines().count()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let clock = SystemClock::new();
    while !is_so() {
        assert!(clock.monotonic() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Proves LG-1.
#[test]
fn a_log_that_nobody_reads_any_more_stops_nothing() {
    for home in homes_once("log_closed") {
        let token = home.init();
        let server = UnreadLog::start(&home, &token);
        let before = checkpoints(&home);
        // So many that a checkpoint is due before a minute has passed.
        for n in 0..1_000 {
            assert_eq!(server.change(&format!("account {n}")), 201);
        }
        // The counts of what is lost are told where counts are.
        until("a loss that is counted", || {
            server.signal("HUP");
            server.lost() > 0
        });
        until("a checkpoint", || checkpoints(&home) > before);
        assert_eq!(get(server.port, "/readyz", None).0, 200);
        assert_eq!(server.end(), 0);
        // Everything was closed as it should be.
        let again: Server = home.serve(&[]);
        assert_eq!(again.accounts("acme", &token).0, 200);
    }
}

#[test]
fn a_command_whose_answer_nobody_reads_does_not_panic() {
    let home = home("unread");
    home.init();
    for words in [
        &["store", "check"][..],
        &["store", "backup", "copy.db"],
        &["audit", "verify"],
    ] {
        let mut child = home
            .command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words:?}");
    }
    let mut child = home
        .command(&["store", "backup", "copy.db"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "it is there already");
}
