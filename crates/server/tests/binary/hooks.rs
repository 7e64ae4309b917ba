//! The hook of agents' clients: the real binary as a client starts it, before a real server.

use crate::harness::{Home, Server, bare, home, post};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

const BASE: &str = "/api/headless/v1/organizations/default";

/// A person's machine: a home, a server, the token of a hook.
struct Machine {
    home: Home,
    server: Server,
    admin: String,
}

fn machine(name: &str) -> Machine {
    let home = home(name);
    let server = home.serve_unlimited();
    let admin = server.token();
    let machine = Machine { home, server, admin };
    machine.created(
        "content-policies",
        &json!({ "definition": { "id": "no-rm", "name": "no rm", "action": "block", "message": "ask the platform team first",
            "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -rf" } } }),
    );
    let made = machine.created(
        "service-accounts",
        &json!({ "name": "hooks", "permissionRole": "operator", "scopes": ["policies:decide"] }),
    );
    machine.keep_token(made["token"]["token"].as_str().unwrap());
    machine
}

impl Machine {
    fn created(&self, what: &str, body: &Value) -> Value {
        let (status, answer) = post(
            self.server.port,
            &format!("{BASE}/{what}"),
            &self.admin,
            &body.to_string(),
        );
        assert!((200..300).contains(&status), "{answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn keep_token(&self, token: &str) {
        let path = self.home.path("hook.token");
        fs::write(&path, format!("{token}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(words);
        command.env("HOME", &self.home.dir).env("PATH", "/usr/bin:/bin");
        command.current_dir(&self.home.dir);
        command
    }

    fn installs(&self, client: &str, flags: &[&str]) -> Output {
        let url = self.url();
        let mut words = vec![
            "hook",
            "install",
            client,
            "--url",
            &url,
            "--organization",
            "default",
        ];
        words.extend(["--token-file", "hook.token", "--user", "ada@acme.test"]);
        words.extend(flags);
        self.command(&words).output().unwrap()
    }

    /// What a client hears that starts the hook with these words.
    fn hears(&self, words: &[&str], event: &str) -> Output {
        let mut command = self.command(&[&["hook", "run"], words].concat());
        with_input(&mut command, event)
    }

    fn hook_toml(&self) -> std::path::PathBuf {
        self.home.path(".config/provost/hook.toml")
    }
}

fn with_input(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A hook that refuses at once does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn event(client: &str, command: &str) -> String {
    let name = if client == "gemini" {
        "BeforeTool"
    } else {
        "PreToolUse"
    };
    json!({ "session_id": "s-1", "cwd": "/", "hook_event_name": name, "tool_name": "Bash", "tool_use_id": "c-1",
            "tool_input": { "command": command } })
    .to_string()
}

fn said(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{:?} {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn settings(machine: &Machine) -> Value {
    let text = fs::read_to_string(machine.home.path(".claude/settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn an_installed_hook_stops_what_a_policy_blocks_and_lets_the_rest_run() {
    let machine = machine("hooked");
    fs::create_dir_all(machine.home.path(".claude")).unwrap();
    fs::write(machine.home.path(".claude/settings.json"), r#"{"model":"opus"}"#).unwrap();
    let installed = machine.installs("claude-code", &[]);
    assert!(installed.status.success(), "{}", text(&installed));
    let kept = settings(&machine);
    assert_eq!(kept["model"], "opus");
    let hook = &kept["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!(
        (&hook["timeout"], &hook["onFailure"]),
        (&json!(5), &json!("block"))
    );
    // As Claude Code starts it.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", hook["command"].as_str().unwrap()]);
    shell.env_clear().env("HOME", &machine.home.dir).current_dir("/");
    let blocked = said(&with_input(&mut shell, &event("claude-code", "rm -rf /srv")));
    let blocked = &blocked["hookSpecificOutput"];
    assert_eq!(blocked["permissionDecision"], "deny");
    assert_eq!(
        blocked["permissionDecisionReason"],
        "Blocked by the policy no-rm: ask the platform team first"
    );
    assert_eq!(
        said(&machine.hears(&["claude-code"], &event("claude-code", "ls"))),
        json!({})
    );
    let gemini = said(&machine.hears(&["gemini"], &event("gemini", "rm -rf /srv")));
    assert_eq!(gemini["decision"], "deny");
    let monitored = machine.hears(&["codex", "--mode", "monitor"], &event("codex", "rm -rf /srv"));
    assert_eq!(said(&monitored), json!({}));
    // Again changes nothing, and uninstalling leaves what was there.
    let again = machine.installs("claude-code", &[]);
    assert!(text(&again).contains("unchanged"), "{}", text(&again));
    assert_eq!(settings(&machine), kept);
    let gone = machine
        .command(&["hook", "uninstall", "claude-code"])
        .output()
        .unwrap();
    assert!(gone.status.success(), "{}", text(&gone));
    assert_eq!(settings(&machine), json!({ "model": "opus" }));
}

/// Answers every connection with these bytes, or never.
fn stand_in(answer: Option<&'static str>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            match answer {
                None => kept.push(stream),
                Some(answer) => {
                    let mut read = [0; 4096];
                    let _ = stream.read(&mut read);
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        }
    });
    port
}

/// With the real program.
///
/// Proves HK-2, HK-6.
#[test]
fn whatever_fails_nothing_runs_in_enforce_and_everything_in_monitor() {
    let machine = machine("failing");
    assert!(machine.installs("claude-code", &[]).status.success());
    let good = fs::read_to_string(machine.hook_toml()).unwrap();
    let url = machine.url();
    let other = |port: u16| good.replace(&url, &format!("http://127.0.0.1:{port}"));
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let garbage = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>";
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"decisions\":[";
    let empty = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"decisions\":[]}";
    let full = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 40\r\n\r\n{\"message\":\"the disk of the store full\"}";
    let elsewhere = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let rows = [
        ("nobody listens", other(free), "cannot be reached"),
        ("never answers", other(stand_in(None)), "did not answer within"),
        (
            "garbage",
            other(stand_in(Some(garbage))),
            "not one of a Provost server",
        ),
        ("half an answer", other(stand_in(Some(half))), "cannot be reached"),
        (
            "no decision",
            other(stand_in(Some(empty))),
            "does not decide about every event",
        ),
        (
            "a full disk",
            other(stand_in(Some(full))),
            "the disk of the store full",
        ),
        ("a redirect", other(stand_in(Some(elsewhere))), "without words"),
        (
            "no token",
            good.replace("hook.token", "gone.token"),
            "cannot be read",
        ),
        (
            "another organization",
            good.replace("\"default\"", "\"other\""),
            "does not belong to the organization",
        ),
        (
            "plain HTTP elsewhere",
            good.replace("127.0.0.1", "192.0.2.1"),
            "unencrypted",
        ),
        ("broken settings", "url = ".to_owned(), "not understood"),
    ];
    let event = event("claude-code", "echo harmless");
    for (what, file, cause) in rows {
        fs::write(machine.hook_toml(), file).unwrap();
        let enforced = machine.hears(&["claude-code", "--timeout", "2"], &event);
        let words = String::from_utf8_lossy(&enforced.stderr).into_owned();
        assert_eq!(enforced.status.code(), Some(2), "{what}: {}", text(&enforced));
        assert!(enforced.stdout.is_empty(), "{what}");
        assert!(
            words.contains(cause) && words.contains("provost hook doctor"),
            "{what}: {words}"
        );
        let watched = said(&machine.hears(&["claude-code", "--mode", "monitor", "--timeout", "2"], &event));
        assert!(
            watched["systemMessage"].as_str().unwrap().contains(cause),
            "{what}: {watched}"
        );
    }
    fs::remove_file(machine.hook_toml()).unwrap();
    assert_eq!(machine.hears(&["codex"], &event).status.code(), Some(2));
    fs::write(machine.hook_toml(), good).unwrap();
    for (words, input) in [
        (vec!["claude-code"], "garbage"),
        (vec!["claude-code"], ""),
        (vec!["cursor"], event.as_str()),
        (vec!["claude-code", "--quiet", "yes"], event.as_str()),
    ] {
        let refused = machine.hears(&words, input);
        assert_eq!(refused.status.code(), Some(2), "{words:?} {input}");
        assert!(refused.stdout.is_empty() && !refused.stderr.is_empty());
    }
}

/// Proves HK-7.
#[test]
fn the_environment_of_the_agent_chooses_no_server_and_no_token() {
    let machine = machine("environment");
    assert!(machine.installs("claude-code", &[]).status.success());
    let mut command = machine.command(&["hook", "run", "claude-code"]);
    command
        .env("PROVOST_URL", "http://127.0.0.1:1")
        .env("PROVOST_TOKEN", "other")
        .env("PROVOST_ORGANIZATION", "other");
    let blocked = said(&with_input(&mut command, &event("claude-code", "rm -rf /srv")));
    assert_eq!(blocked["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn a_decision_is_kept_under_the_session_and_the_call_of_the_client() {
    let machine = machine("one_event");
    assert!(machine.installs("claude-code", &[]).status.success());
    said(&machine.hears(&["claude-code"], &event("claude-code", "ls")));
    let path = format!("{BASE}/policies/history?limit=10");
    let (status, listed) = crate::harness::get(machine.server.port, &path, Some(&machine.admin));
    assert_eq!(status, 200);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let events = listed["events"].as_array().unwrap();
    assert_eq!(events.len(), 2, "{listed}");
    for event in events {
        let path = format!("{BASE}/policies/history/{}", event["eventId"].as_str().unwrap());
        let (_, event) = crate::harness::get(machine.server.port, &path, Some(&machine.admin));
        let event: Value = serde_json::from_str(&event).unwrap();
        assert_eq!(
            (&event["session"], &event["callId"]),
            (&json!("s-1"), &json!("c-1")),
            "{event}"
        );
        assert_eq!(event["attributes"]["identity.user_id"], "ada@acme.test");
    }
}

#[test]
fn an_installation_says_what_is_missing_and_writes_nothing_then() {
    let machine = machine("refusing");
    let url = machine.url();
    let connection = ["--url", &url, "--organization", "default"];
    let refused = |words: &[&str], cause: &str| {
        let output = machine
            .command(&[&["hook", "install"], words, &connection].concat())
            .output()
            .unwrap();
        assert!(
            !output.status.success() && text(&output).contains(cause),
            "{words:?}: {}",
            text(&output)
        );
        assert!(
            !machine.hook_toml().exists() && !machine.home.path(".claude").exists(),
            "{words:?}"
        );
    };
    refused(&["claude-code"], "say --token-file FILE");
    refused(
        &["claude-code", "--token-file", "hook.token"],
        "say whose agent it is",
    );
    refused(
        &["codex", "--token-file", "hook.token", "--user", "a"],
        "--system",
    );
    let root = machine.home.path("image");
    let system = ["--system", "--root", root.to_str().unwrap()];
    let installed = machine.installs("codex", &system);
    assert!(installed.status.success(), "{}", text(&installed));
    let written = fs::read_to_string(root.join("etc/codex/requirements.toml")).unwrap();
    assert!(
        written.contains("[[hooks.PreToolUse.hooks]]") && written.contains("exit 2; }"),
        "{written}"
    );
    // Or a person switches the machine's hooks off.
    assert!(written.contains("[features]\nhooks = true\n"), "{written}");
    let file = fs::read_to_string(root.join("etc/provost/hook.toml")).unwrap();
    assert!(file.contains("token_file = \"~/hook.token\""), "{file}");
    machine.keep_token("provost_nobody");
    let other = machine.installs("claude-code", &[]);
    assert!(
        !other.status.success() && text(&other).contains("nothing was written"),
        "{}",
        text(&other)
    );
    // Settings that cannot be read are never replaced.
    fs::create_dir_all(machine.home.path(".claude")).unwrap();
    let broken = r#"{"model":"a","model":"b"}"#;
    fs::write(machine.home.path(".claude/settings.json"), broken).unwrap();
    assert!(!machine.installs("claude-code", &["--unchecked"]).status.success());
    assert_eq!(
        fs::read_to_string(machine.home.path(".claude/settings.json")).unwrap(),
        broken
    );
}

#[test]
fn doctor_runs_what_is_registered_and_says_what_is_guarded() {
    let machine = machine("doctor");
    let doctor = || {
        let output = machine.command(&["hook", "doctor"]).output().unwrap();
        (output.status.code(), text(&output))
    };
    assert_eq!(doctor().0, Some(1));
    assert!(machine.installs("claude-code", &[]).status.success());
    let (code, said) = doctor();
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "may do nothing but ask for decisions",
        "its owner alone can read the token",
        "the user is ada@acme.test, which names nobody",
        "asks at PostToolUse, PreToolUse, UserPromptSubmit (enforce)",
        "lets a harmless call run",
        "guarded",
        "not guarded",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    machine.keep_token(&machine.admin);
    fs::set_permissions(machine.home.path("hook.token"), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, said) = doctor();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("other users of this machine") && said.contains("may do more"),
        "{said}"
    );
    machine.keep_token("provost_nobody");
    let (code, said) = doctor();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the registered command ended with"), "{said}");
    let path: &Path = &machine.home.path(".claude/settings.json");
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replacen("\"onFailure\"", "\"onFail\"", 1)).unwrap();
    assert!(doctor().1.contains("lacks onFailure"));
}

/// Proves FH-6.
#[test]
fn doctor_calls_nothing_guarded_that_is_registered_otherwise_than_it_was_written() {
    let machine = machine("doctor_changed");
    assert!(machine.installs("claude-code", &[]).status.success());
    let doctor = |folder: &Path| {
        let mut command = machine.command(&["hook", "doctor"]);
        let output = command.current_dir(folder).output().unwrap();
        (output.status.code(), text(&output))
    };
    let path = machine.home.path(".claude/settings.json");
    let whole: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let folder = machine.home.path("repository");
    fs::create_dir_all(folder.join(".claude")).unwrap();
    let (code, said) = doctor(&folder);
    assert_eq!(
        (code, said.contains("nothing runs without a decision")),
        (Some(0), true),
        "{said}"
    );
    let hook = "/hooks/PreToolUse/0/hooks/0";
    let line = whole
        .pointer(&format!("{hook}/command"))
        .unwrap()
        .as_str()
        .unwrap();
    let set = |pointer: &str, member: &str, value: Value| {
        let mut other = whole.clone();
        other.pointer_mut(pointer).unwrap()[member] = value;
        other
    };
    for changed in [
        set("/hooks/PreToolUse/0", "matcher", "Bash".into()),
        set("/hooks/PreToolUse/0", "if", "Bash(ls *)".into()),
        set(hook, "async", true.into()),
        set(hook, "timeout", 0.into()),
        set(hook, "command", format!("true || {line}").into()),
        set(hook, "command", line.replace("exit 2", "exit 0").into()),
        set("", "disableAllHooks", true.into()),
    ] {
        fs::write(&path, changed.to_string()).unwrap();
        let (code, said) = doctor(&folder);
        assert_eq!(code, Some(1), "{changed}: {said}");
        assert!(
            said.contains("FAILED") && !said.contains("nothing runs without a decision"),
            "{changed}: {said}"
        );
    }
    fs::write(&path, whole.to_string()).unwrap();
    // What a repository brings along switches a person's hooks off there, and only there.
    fs::write(
        folder.join(".claude/settings.json"),
        r#"{"disableAllHooks":true}"#,
    )
    .unwrap();
    let (code, said) = doctor(&folder);
    assert!(code == Some(1) && said.contains("switches hooks off"), "{said}");
    assert_eq!(doctor(&machine.home.path(".")).0, Some(0));
    // So do files of the machine, which say nothing of ours.
    let settings = machine.home.path("etc/claude-code/managed-settings.json");
    let parts = machine.home.path("etc/claude-code/managed-settings.d/10.json");
    fs::create_dir_all(parts.parent().unwrap()).unwrap();
    let root = machine.home.path(".");
    for (file, says, word) in [
        (
            &settings,
            r#"{"allowManagedHooksOnly":true}"#,
            "allowManagedHooksOnly",
        ),
        (&parts, r#"{"disableAllHooks":true}"#, "switch hooks off"),
        (&settings, "{", "cannot be read"),
    ] {
        fs::write(file, says).unwrap();
        let mut command = machine.command(&["hook", "doctor", "--root", root.to_str().unwrap()]);
        let output = command.output().unwrap();
        let said = text(&output);
        assert!(
            output.status.code() == Some(1) && said.contains(word),
            "{says}: {said}"
        );
        assert!(
            !said.contains("nothing runs without a decision"),
            "{says}: {said}"
        );
        fs::remove_file(file).unwrap();
    }
}

/// Proves FH-6.
#[test]
fn doctor_sees_what_switches_the_hooks_of_gemini_cli_off() {
    let machine = machine("doctor_gemini");
    assert!(machine.installs("gemini", &[]).status.success());
    let folder = machine.home.path("repository");
    fs::create_dir_all(folder.join(".gemini")).unwrap();
    let doctor = || {
        let mut command = machine.command(&["hook", "doctor", "gemini"]);
        let output = command.current_dir(&folder).output().unwrap();
        (output.status.code(), text(&output))
    };
    assert_eq!(doctor().0, Some(0), "{}", doctor().1);
    for off in [
        r#"{"hooksConfig":{"enabled":false}}"#,
        r#"{"hooksConfig":{"disabled":["provost"]}}"#,
    ] {
        fs::write(folder.join(".gemini/settings.json"), off).unwrap();
        let (code, said) = doctor();
        assert!(
            code == Some(1) && said.contains("switches hooks off"),
            "{off}: {said}"
        );
    }
}
