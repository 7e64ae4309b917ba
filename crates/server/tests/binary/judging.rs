//! The agent that judges: the real binary as agent and as the hook of a client, before a real server that is there and is not.

use crate::harness::{Home, Server, bare, get, homes, patch, post};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const BASE: &str = "/api/headless/v1/organizations/default";
const ADA: &str = "ada@acme.test";
/// Far beyond anything that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ada's laptop, with the server of her organization.
struct Laptop {
    home: Home,
    server: Option<Server>,
    port: u16,
    admin: String,
    id: String,
}

/// An agent that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

impl Laptop {
    /// Returns one that enrolled, whose hook is installed, where a policy blocks `rm -rf`.
    fn new(home: Home) -> Self {
        let server = home.serve_unlimited();
        let (port, admin) = (server.port, server.token());
        let mut laptop = Self {
            home,
            server: Some(server),
            port,
            admin,
            id: String::new(),
        };
        laptop.settings(&json!({ "judging": "on", "mode": "enforce" }));
        laptop.created(
            "content-policies",
            &json!({ "definition": { "id": "no-rm", "name": "no rm", "action": "block", "message": "ask the platform team first",
                "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
                "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -rf" } } }),
        );
        let made = laptop.created(
            "devices/enrolment-tokens",
            &json!({ "name": "laptop", "mode": "user" }),
        );
        private(
            &laptop.home.path("enrolment.token"),
            made["token"].as_str().unwrap(),
        );
        let made = laptop.created(
            "service-accounts",
            &json!({ "name": "hooks", "permissionRole": "operator", "scopes": ["policies:decide"] }),
        );
        private(
            &laptop.home.path("hook.token"),
            made["token"]["token"].as_str().unwrap(),
        );
        let url = format!("http://127.0.0.1:{port}");
        let enrolled = laptop.ok(&[
            "agent",
            "enrol",
            "--server",
            &url,
            "--organization",
            "default",
            "--token-file",
            "enrolment.token",
        ]);
        let enrolled: Value = serde_json::from_str(&enrolled).unwrap();
        enrolled["deviceId"].as_str().unwrap().clone_into(&mut laptop.id);
        let ada = laptop.created("directory/users", &json!({ "loginName": ADA }));
        let owner = json!({ "ownerUserId": ada["user"]["id"] });
        let path = format!("{BASE}/devices/{}", laptop.id);
        let (status, answer) = patch(port, &path, &laptop.admin, &owner.to_string());
        assert_eq!(status, 200, "{answer}");
        laptop.ok(&[
            "hook",
            "install",
            "claude-code",
            "--url",
            &url,
            "--organization",
            "default",
            "--token-file",
            "hook.token",
            "--user",
            ADA,
        ]);
        laptop
    }

    fn created(&self, what: &str, body: &Value) -> Value {
        let (status, answer) = post(
            self.port,
            &format!("{BASE}/{what}"),
            &self.admin,
            &body.to_string(),
        );
        assert!((200..300).contains(&status), "{what}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn settings(&self, hooks: &Value) {
        let body = json!({ "fleet": { "hooks": hooks }, "confirm": true }).to_string();
        let (status, answer) = patch(
            self.port,
            &format!("{BASE}/automation/settings"),
            &self.admin,
            &body,
        );
        assert_eq!(status, 200, "{answer}");
    }

    fn seen(&self, path: &str) -> Value {
        let (status, answer) = get(self.port, &format!("{BASE}/{path}"), Some(&self.admin));
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(words);
        command.env("HOME", &self.home.dir).env("PATH", "/usr/bin:/bin");
        command.current_dir(&self.home.dir);
        command
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the agent, and returns when it has made its first round.
    fn starts(&self, flags: &[&str]) -> (Running, String) {
        let words = [&["agent", "run"], flags].concat();
        let mut child = self.command(&words).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let running = Running(child);
        let (sender, heard) = channel();
        thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)));
        });
        let mut said = String::new();
        while !said.contains("next in") {
            said += &heard
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no round: {said}"));
            said.push('\n');
        }
        (running, said)
    }

    /// What Claude Code hears that is about to run a command.
    fn hook(&self, command: &str) -> Output {
        let event = json!({ "session_id": "s-1", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "c-1",
            "tool_input": { "command": command } });
        let mut child = self
            .command(&["hook", "run", "claude-code", "--mode", "enforce"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(event.to_string().as_bytes());
        child.wait_with_output().unwrap()
    }

    fn denies(&self, command: &str) {
        let output = self.hook(command);
        let said = text(&output);
        assert!(output.status.code() == Some(0) && said.contains("deny"), "{said}");
        assert!(said.contains("ask the platform team first"), "{said}");
    }

    fn lets_pass(&self, command: &str) {
        let output = self.hook(command);
        assert!(
            output.status.code() == Some(0) && !text(&output).contains("deny"),
            "{}",
            text(&output)
        );
    }

    /// Refuses, because nobody could say anything.
    fn knows_nothing(&self, command: &str) {
        let output = self.hook(command);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    }

    /// Returns what this device told of commands, by action.
    fn told(&self, action: &str) -> usize {
        let events = self.seen(&format!("policies/history?source=device:{}&limit=100", self.id));
        let events = events["events"].as_array().unwrap().clone();
        let of = |event: &&Value| event["occasion"] == "pre_tool" && event["decision"]["action"] == action;
        events.iter().filter(of).count()
    }

    /// Returns how many events any server decided about.
    fn decided(&self) -> usize {
        let events = self.seen("policies/history?source=decisions&limit=100");
        events["events"].as_array().unwrap().len()
    }

    fn stops(&mut self) {
        assert_eq!(self.server.take().unwrap().stop(), 0);
    }

    fn serves_again(&mut self) {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = self
            .home
            .command(&["serve", "--listen", &listen, "--metrics-listen", "off"]);
        command.env("PROVOST_RATE_LIMITS_ENABLED", "false");
        self.server = Some(Server::start(command, &self.home.path("stdout2")));
    }

    fn socket(&self) -> std::path::PathBuf {
        self.home.path(".config/provost/agent.sock")
    }
}

fn text(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{:?} {out}{err}", output.status.code())
}

/// A word that stands in commands.
const CANARY: &str = "cnry-8t2k";

/// Says whether a file below a folder holds a word.
fn is_below(folder: &Path, word: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|found| {
        let path = found.unwrap().path();
        let Ok(kind) = fs::symlink_metadata(&path).map(|found| found.file_type()) else {
            return false;
        };
        // What is written now may be gone.
        let holds = || String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(word);
        kind.is_dir() && is_below(&path, word) || kind.is_file() && holds()
    })
}

/// Proves LJ-7, LJ-14, DJ-3, DJ-7.
#[test]
fn a_laptop_judges_with_and_without_its_server_and_tells_all_of_it_once() {
    for home in homes("judging") {
        let mut laptop = Laptop::new(home);
        let (agent, said) = laptop.starts(&["--judge"]);
        assert!(laptop.socket().exists(), "{said}");
        laptop.denies("rm -rf /");
        laptop.lets_pass("ls");
        assert_eq!(laptop.decided(), 0, "the device decided");
        // The same without the server, for one that started without it as well.
        laptop.stops();
        laptop.denies(&format!("rm -rf /srv/{CANARY}"));
        laptop.lets_pass(&format!("ls -l {CANARY}"));
        drop(agent);
        let (agent, said) = laptop.starts(&["--judge"]);
        assert!(said.contains("cannot reach"), "{said}");
        laptop.denies("rm -rf /tmp");
        laptop.lets_pass("pwd");
        drop(agent);
        laptop.knows_nothing("pwd");
        laptop.serves_again();
        for _ in 0..2 {
            let (agent, said) = laptop.starts(&["--judge"]);
            assert!(said.contains("heartbeat taken"), "{said}");
            drop(agent);
            // Once, however often the agent starts; and it executed what is registered, once, to see whether it answers.
            assert_eq!((laptop.told("block"), laptop.told("allow")), (3, 4));
        }
        let sums = laptop.seen(&format!("devices/{}/decisions", laptop.id))["told"].clone();
        let expected = sums["events"].as_i64().unwrap() + 1;
        assert_eq!(
            (&sums["expected"], &sums["dropped"]),
            (&json!(expected), &json!(0)),
            "{sums}"
        );
        assert_eq!(
            (&sums["refused"], &sums["foreign"]),
            (&json!(0), &json!(0)),
            "{sums}"
        );
        // By the factory values nothing of what was called is on a disk: not of the agent, of the server, or in what either of them said.
        let kept = |word: &str| is_below(&laptop.home.dir, word);
        assert!(kept("callId") && !kept(CANARY), "what was judged is not told");
        // A policy that is withdrawn holds until the next round.
        let (agent, _) = laptop.starts(&["--judge"]);
        laptop.denies("rm -rf /");
        let admin = &laptop.admin;
        let disabled = laptop
            .command(&[
                "content-policies",
                "delete",
                "no-rm",
                "--expected-revision",
                "1",
                "--reason",
                "a test",
            ])
            .args([
                "--url",
                &format!("http://127.0.0.1:{}", laptop.port),
                "--organization",
                "default",
            ])
            .env("PROVOST_TOKEN", admin)
            .output()
            .unwrap();
        assert!(disabled.status.success(), "{}", text(&disabled));
        laptop.denies("rm -rf /");
        drop(agent);
        let (agent, _) = laptop.starts(&["--judge"]);
        laptop.lets_pass("rm -rf /");
        assert_eq!(laptop.decided(), 0);
        // Switched off, the hook asks the server as before.
        laptop.settings(&json!({ "judging": "off" }));
        drop(agent);
        let (agent, _) = laptop.starts(&["--judge"]);
        laptop.lets_pass("ls");
        let decided = laptop.decided();
        assert!(decided > 0, "the server decided");
        drop(agent);
        // An agent without the word has no desk.
        let (_agent, _) = laptop.starts(&[]);
        assert!(!laptop.socket().exists());
        laptop.lets_pass("ls");
        assert!(laptop.decided() > decided);
    }
}
