//! `provost demo`: what it says works, and nothing of it stays behind.

use crate::harness::{Home, bare, home, refuse, succeed};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A demo whose temporary files lie in a home; it is killed when it is dropped.
struct Demo {
    child: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
}

impl Demo {
    fn start(home: &Home, words: &[&str]) -> Self {
        let mut command = demo(home, words);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdout,
            said: String::new(),
        }
    }

    /// Reads on until a line has these words.
    fn wait_for(&mut self, words: &str) {
        while !self.said.contains(words) {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the demo ended: {:?}, {}", self.child.wait(), self.said);
            self.said.push_str(&line);
        }
    }

    /// Sends a signal and returns the exit code.
    fn end(mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        self.stdout.read_to_string(&mut self.said).unwrap();
        self.child.wait().unwrap().code()
    }

    /// What stands behind a word at the beginning of a line.
    fn value(&self, word: &str) -> String {
        let mut lines = self.said.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(&format!("{word} "))).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn demo(home: &Home, words: &[&str]) -> Command {
    let mut command = bare(&[&["demo"], words].concat());
    command.current_dir(&home.dir).env("TMPDIR", temporary(home));
    // Neither another store nor another server may be reached by a demo.
    command.env("PROVOST_DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing");
    command
        .env("PROVOST_PROFILE", "work")
        .env("PROVOST_URL", "http://127.0.0.1:1");
    command
}

fn temporary(home: &Home) -> PathBuf {
    let path = home.path("tmp");
    fs::create_dir_all(&path).unwrap();
    path
}

fn left(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(temporary(home)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_commands_of_a_demo_work_and_its_end_leaves_nothing() {
    let home = home("demo");
    let mut demo = Demo::start(&home, &[]);
    demo.wait_for("Ctrl-C ends the demo");
    // Nobody looks at a terminal: the token is in a file.
    let token_file = PathBuf::from(demo.value("token"));
    let token = fs::read_to_string(&token_file).unwrap();
    assert!(!demo.said.contains(token.trim()));
    assert_eq!(
        fs::metadata(&token_file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let report = fs::read_to_string(demo.value("report")).unwrap();
    for words in [
        "would have been blocked",
        "would have needed approval",
        "would have passed",
    ] {
        assert!(report.contains(words), "{words}");
    }
    let lines: Vec<&str> = demo.said.lines().map(str::trim_start).collect();
    let export = lines.iter().find(|line| line.starts_with("export ")).unwrap();
    let program = env!("CARGO_BIN_EXE_provost");
    let commands: Vec<&&str> = lines.iter().filter(|line| line.starts_with(program)).collect();
    assert_eq!(commands.len(), 5, "{}", demo.said);
    let answers: Vec<String> = commands
        .into_iter()
        .map(|command| {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("{export}\n{command}"));
            shell
                .current_dir(&home.dir)
                .env_clear()
                .env("PATH", "/usr/bin:/bin");
            succeed(shell)
        })
        .collect();
    let json = |place: usize| -> Value { serde_json::from_str(&answers[place]).unwrap() };
    assert_eq!(json(0)["policies"].as_array().unwrap().len(), 9);
    assert_eq!(json(1)["decisions"][0]["action"], "block");
    assert_eq!(json(2)["events"].as_array().unwrap().len(), 5);
    assert!(json(3)["results"]["changed"].as_u64().unwrap() > 100);
    let posture = fs::read_to_string(home.path("posture.html")).unwrap();
    for words in [
        "Ada Lindqvist",
        "finance/figures",
        "ci-pipeline",
        "no room on the disk",
        "2 active",
    ] {
        assert!(posture.contains(words), "{words}");
    }
    assert_eq!(demo.end("-TERM"), Some(0));
    assert_eq!(left(&home), Vec::<PathBuf>::new());
}

/// Proves DM-1.
#[test]
fn the_next_demo_removes_what_a_killed_one_left_and_nothing_else() {
    let home = home("demo_killed");
    let foreign = temporary(&home).join("provost-demo-0123456789abcdef");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("notes"), "mine").unwrap();
    let mut killed = Demo::start(&home, &[]);
    killed.wait_for("Making a sample organization");
    assert_eq!(killed.end("-KILL"), None);
    assert_eq!(left(&home).len(), 2);
    // Asked to end before there is a server, a demo ends as well, and leaves nothing.
    let mut next = Demo::start(&home, &[]);
    next.wait_for("Making a sample organization");
    assert_eq!(next.end("-INT"), Some(0));
    assert_eq!(left(&home), [foreign.as_path()]);
    assert_eq!(fs::read_to_string(foreign.join("notes")).unwrap(), "mine");
}

#[test]
fn a_demo_that_is_kept_can_be_served_later() {
    let home = home("demo_kept");
    let mut kept = Demo::start(&home, &["--keep", "kept"]);
    kept.wait_for(" serve --data-dir ");
    // A terminal that is closed ends it, too.
    assert_eq!(kept.end("-HUP"), Some(0));
    assert_eq!(left(&home), Vec::<PathBuf>::new());
    let token = fs::read_to_string(home.path("kept/token")).unwrap();
    let mut command = bare(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
    command.args(["--data-dir", "kept/data"]).current_dir(&home.dir);
    let server = crate::harness::Server::start(command, &home.path("stdout"));
    let (status, accounts) = server.accounts("acme", token.trim());
    assert_eq!((status, accounts["total"].as_i64()), (200, Some(5)));
    let (code, said) = refuse(demo(&home, &["--keep", "kept"]));
    assert_eq!(code, 1);
    assert!(said.contains("holds something already"), "{said}");
}
