//! The agent: the real binary on a person's machine, before a real server.

use crate::harness::{Home, Server, bare, get, home, post};
use provost_kernel::entropy::{Entropy, SystemEntropy};
use provost_kernel::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const BASE: &str = "/api/headless/v1/organizations/default";

/// An organization with a server, and the machines of its people: a home each.
struct Organization {
    home: Home,
    server: Server,
    admin: String,
}

impl Organization {
    fn new(name: &str) -> Self {
        let home = home(name);
        let server = home.serve_unlimited();
        let admin = server.token();
        Self { home, server, admin }
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        let path = format!("{BASE}/{what}");
        let (status, answer) = post(self.server.port, &path, &self.admin, &body.to_string());
        assert!((200..300).contains(&status), "{what}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn devices(&self) -> Vec<Value> {
        let (status, answer) = get(self.server.port, &format!("{BASE}/devices"), Some(&self.admin));
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["devices"].as_array().unwrap().clone()
    }

    /// A machine with a home, in which an enrolment token lies.
    fn machine(&self, name: &str) -> Machine {
        let dir = self.home.path(name);
        fs::create_dir_all(&dir).unwrap();
        let made = self.post(
            "devices/enrolment-tokens",
            &json!({ "name": name, "mode": "user" }),
        );
        let machine = Machine {
            dir,
            port: self.server.port,
            by: made["enrolmentToken"]["id"].as_str().unwrap().to_owned(),
        };
        machine.has("docs");
        machine.gets(made["token"].as_str().unwrap());
        machine
    }

    /// What is known of the only device, or of the one with this id.
    fn inventory(&self, id: &str) -> String {
        let path = format!("{BASE}/devices/{id}/inventory");
        let (status, answer) = get(self.server.port, &path, Some(&self.admin));
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

struct Machine {
    dir: PathBuf,
    port: u16,
    /// The enrolment token that lies in its home.
    by: String,
}

impl Machine {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(&[&["agent"], words].concat());
        command
            .env("HOME", &self.dir)
            .env("PATH", "/usr/bin:/bin")
            .current_dir(&self.dir);
        command
    }

    /// Runs a command, and returns its exit code, its standard output and its standard error.
    fn says(&self, words: &[&str]) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    /// Puts a token into the file of the enrolment token.
    fn gets(&self, token: &str) {
        let file = self.dir.join("enrolment.token");
        fs::write(&file, token).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn has(&self, server: &str) {
        let package = format!("@acme/{server}@1.2.3");
        let settings = json!({ "mcpServers": { server: { "command": "npx", "args": ["-y", package],
            "env": { "TOKEN": "hunter2-canary" } } } });
        fs::write(self.dir.join(".claude.json"), settings.to_string()).unwrap();
    }

    fn enrols_with(&self, flags: &[&str]) -> (i32, String, String) {
        self.says(
            &[
                &["enrol"],
                flags,
                &self.enrolment().each_ref().map(String::as_str),
            ]
            .concat(),
        )
    }

    fn enrolment(&self) -> [String; 6] {
        let url = format!("http://127.0.0.1:{}", self.port);
        [
            "--server",
            &url,
            "--organization",
            "default",
            "--token-file",
            "enrolment.token",
        ]
        .map(str::to_owned)
    }

    fn enrols(&self) -> (i32, String, String) {
        self.enrols_with(&[])
    }

    /// Runs a command and kills it after a while, if it has not ended by then.
    fn killed(&self, words: &[&str], after: Duration) {
        let mut child = self
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let (ends, ended) = channel();
        thread::spawn(move || {
            let _ = stderr.read_to_end(&mut Vec::new());
            let _ = ends.send(());
        });
        let _ = ended.recv_timeout(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Is a day later, for what was said of scans that were killed.
    fn forgets_killed_scans(&self) {
        let place = self.state("state.json");
        let mut state: Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
        state.as_object_mut().unwrap().remove("killedScans");
        fs::write(place, state.to_string()).unwrap();
    }

    /// Every file of the home outside the agent's folder, with its length, mode and time.
    fn others(&self) -> BTreeMap<PathBuf, (u64, u32, i64, i64)> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![self.dir.clone()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let stat = fs::symlink_metadata(&path).unwrap();
                if stat.is_dir() && !path.ends_with(".local") {
                    waiting.push(path.clone());
                }
                if !stat.is_dir() {
                    found.insert(path, (stat.len(), stat.mode(), stat.mtime(), stat.mtime_nsec()));
                }
            }
        }
        found
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.join(".local/state/provost-agent").join(name)
    }

    fn ok(&self, words: &[&str]) -> (String, String) {
        let (code, out, err) = self.says(words);
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        (out, err)
    }
}

#[test]
fn a_laptop_enrols_runs_is_seen_and_is_retired() {
    let organization = Organization::new("agent_life");
    let laptop = organization.machine("ada");
    let before = laptop.others();
    let (code, _, err) = laptop.says(&["status"]);
    assert!(code == 2 && err.contains("not enrolled"), "{err}");
    let (code, out, err) = laptop.enrols();
    assert_eq!(code, 0, "{err}");
    let enrolled: Value = serde_json::from_str(&out).unwrap();
    let devices = organization.devices();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0]["id"], enrolled["deviceId"]);
    assert_eq!(devices[0]["status"], "pending");
    assert_eq!(devices[0]["keyThumbprint"], enrolled["keyThumbprint"]);
    let (code, _, err) = laptop.enrols();
    assert!(code == 2 && err.contains("enrolled already"), "{err}");
    let (_, err) = laptop.ok(&["run", "--once"]);
    assert!(
        err.contains("heartbeat taken, the machine was scanned, 1 report sent"),
        "{err}"
    );
    let device = &organization.devices()[0];
    assert_eq!(
        (&device["status"], &device["presence"]),
        (&json!("active"), &json!("online"))
    );
    assert_eq!(device["agentVersion"], env!("CARGO_PKG_VERSION"));
    // What would be sent now, and what was: names, and no value.
    let (printed, _) = laptop.ok(&["scan", "--print"]);
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["unchanged"][0]["client"], "claude_code");
    let held = organization.inventory(enrolled["deviceId"].as_str().unwrap());
    assert!(
        held.contains("npm:@acme/docs") && !held.contains("hunter2"),
        "{held}"
    );
    let (explained, _) = laptop.ok(&["explain"]);
    let explained_json: Value = serde_json::from_str(&explained).unwrap();
    let sent: Value = serde_json::from_str(explained_json["uploads"][0]["body"].as_str().unwrap()).unwrap();
    assert_eq!(sent["sections"][0]["client"], "claude_code");
    assert!(!explained.contains("hunter2"), "{explained}");
    // It judges nothing, and says so of itself.
    let rules = explained_json["rules"].as_array().unwrap();
    let says = |what: &str| rules.iter().any(|rule| rule.as_str().unwrap().contains(what));
    assert!(says("nothing is sent to …/decisions"), "{explained}");
    // The report, what it was before, and how far its clients are guarded.
    assert_eq!(explained_json["uploads"].as_array().unwrap().len(), 3);
    let (status, _) = laptop.ok(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["nextHeartbeatSeconds"], 300);
    let (doctor, _) = laptop.ok(&["doctor", "-o", "json"]);
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    assert_eq!(doctor["findings"].as_array().unwrap().len(), 10, "{doctor}");
    assert_eq!(laptop.others(), before, "nothing outside its folder was touched");
    // Retired, it ends with a sentence, and asks nobody from then on.
    let id = enrolled["deviceId"].as_str().unwrap();
    organization.post(&format!("devices/{id}/retire"), &json!({ "confirm": true }));
    let (code, _, err) = laptop.says(&["run"]);
    assert!(
        code == 3 && err.contains("no longer takes this device"),
        "{code} {err}"
    );
    let (code, _, err) = laptop.says(&["run", "--once"]);
    assert!(
        code == 3 && err.contains("nothing is sent any more"),
        "{code} {err}"
    );
    let (code, out, _) = laptop.says(&["doctor", "-o", "json"]);
    assert!(code == 1 && out.contains("enrol anew"), "{out}");
    // Anew it is another device.
    let made = organization.post(
        "devices/enrolment-tokens",
        &json!({ "name": "again", "mode": "user" }),
    );
    laptop.gets(made["token"].as_str().unwrap());
    let (code, out, err) = laptop.enrols_with(&["--anew"]);
    assert_eq!(code, 0, "{err}");
    let again: Value = serde_json::from_str(&out).unwrap();
    assert_ne!(again["deviceId"], enrolled["deviceId"]);
    laptop.ok(&["run", "--once"]);
    let held = organization.inventory(again["deviceId"].as_str().unwrap());
    assert!(held.contains("npm:@acme/docs"), "{held}");
}

/// Proves AG-2, AG-3.
#[test]
fn a_kill_at_any_moment_costs_neither_the_device_nor_a_report() {
    let organization = Organization::new("agent_kills");
    let laptop = organization.machine("ada");
    let chance = |most: u64| Duration::from_millis(u64::from(SystemEntropy.seed()[0]) * most / 255);
    let enrolment = laptop.enrolment();
    let words = [&["enrol"], &enrolment.each_ref().map(String::as_str)[..]].concat();
    for _ in 0..10 {
        laptop.killed(&words, chance(60));
    }
    if !laptop.state("device.json").exists() {
        assert_eq!(
            laptop.enrols().0,
            0,
            "the token works once, and it is the same device"
        );
    }
    let devices = organization.devices();
    assert_eq!(devices.len(), 1, "{devices:?}");
    for number in 0..15 {
        laptop.has(&format!("server{number}"));
        laptop.killed(&["scan"], chance(120));
    }
    laptop.has("last");
    laptop.ok(&["scan"]);
    // Where two of them ended in the same file it is left out for a day, and the report says so.
    laptop.forgets_killed_scans();
    laptop.ok(&["scan"]);
    let held = organization.inventory(devices[0]["id"].as_str().unwrap());
    assert!(
        held.contains("npm:@acme/last") && !held.contains("npm:@acme/server"),
        "{held}"
    );
    assert_eq!(
        fs::read_dir(laptop.state("queue")).unwrap().count(),
        0,
        "nothing waits and nothing is torn"
    );
    assert_eq!(organization.devices().len(), 1);
    assert_eq!(organization.devices()[0]["tamper"]["state"], "none");
}

#[test]
fn what_is_no_enrolment_token_is_not_sent_and_a_dead_one_is_named() {
    let organization = Organization::new("agent_tokens");
    let laptop = organization.machine("ada");
    laptop.gets(&organization.admin);
    let (code, _, err) = laptop.enrols();
    assert!(
        code == 2 && err.contains("prov_ent_") && !err.contains(&organization.admin),
        "{err}"
    );
    let made = organization.post(
        "devices/enrolment-tokens",
        &json!({ "name": "dead", "mode": "user" }),
    );
    let id = made["enrolmentToken"]["id"].as_str().unwrap();
    organization.post(
        &format!("devices/enrolment-tokens/{id}/revoke"),
        &json!({ "reason": "a test" }),
    );
    laptop.gets(made["token"].as_str().unwrap());
    let (code, _, err) = laptop.enrols();
    assert!(
        code == 3 && err.contains("revoked") && err.contains("enrolment-tokens create"),
        "{code} {err}"
    );
    assert!(!laptop.state("device.json").exists() && !laptop.state("token").exists());
    assert!(laptop.by.starts_with("ent_") && organization.devices().is_empty());
}

#[test]
fn the_agent_of_the_machine_says_that_it_scans_nothing() {
    let organization = Organization::new("agent_system");
    let laptop = organization.machine("ada");
    let place = ["--system", "--state-dir", "state"];
    let (code, _, err) = laptop.enrols_with(&place);
    assert!(code == 0 && err.contains("scans no homes"), "{code} {err}");
    let (_, err) = laptop.ok(&[&["run", "--once"], &place[..]].concat());
    assert!(
        err.contains("scans no homes") && err.contains("0 reports"),
        "{err}"
    );
    let (code, _, err) = laptop.says(&[&["scan"], &place[..]].concat());
    assert!(code == 2 && err.contains("scans no homes"), "{code} {err}");
    let (status, _) = laptop.ok(&[&["status", "--json"], &place[..]].concat());
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(
        (&status["mode"], &status["scansHomes"]),
        (&json!("system"), &json!(false))
    );
}

#[test]
fn a_token_without_the_key_is_useless_and_a_copied_folder_is_one_device() {
    let organization = Organization::new("agent_stolen");
    let (laptop, thief) = (organization.machine("ada"), organization.machine("eve"));
    assert_eq!(laptop.enrols().0, 0);
    assert_eq!(thief.enrols().0, 0);
    laptop.ok(&["run", "--once"]);
    let id = organization
        .devices()
        .iter()
        .map(|device| device["id"].clone())
        .collect::<Vec<_>>();
    assert_eq!(id.len(), 2);
    // The token alone, in a header.
    let token = fs::read_to_string(laptop.state("token")).unwrap();
    let token = token.lines().next().unwrap();
    let enrolled: Value = serde_json::from_slice(&fs::read(laptop.state("device.json")).unwrap()).unwrap();
    let path = format!(
        "{BASE}/devices/{}/heartbeat",
        enrolled["deviceId"].as_str().unwrap()
    );
    let body = r#"{"agentVersion": "1", "osVersion": "1"}"#;
    assert_eq!(post(organization.server.port, &path, token, body).0, 401);
    let (status, _) = get(organization.server.port, &format!("{BASE}/devices"), Some(token));
    assert_eq!(status, 401);
    // The token and the device file, before another key.
    let own: Value = serde_json::from_slice(&fs::read(thief.state("device.json")).unwrap()).unwrap();
    let mut mixed = enrolled.clone();
    mixed["keyThumbprint"] = own["keyThumbprint"].clone();
    fs::copy(laptop.state("token"), thief.state("token")).unwrap();
    fs::write(thief.state("device.json"), mixed.to_string()).unwrap();
    let (code, _, err) = thief.says(&["run", "--once"]);
    assert!(code == 3 && !err.contains(token), "{code} {err}");
    fs::write(thief.state("device.json"), enrolled.to_string()).unwrap();
    let (code, _, err) = thief.says(&["run", "--once"]);
    assert!(code == 2 && err.contains("device.key"), "{err}");
    // The whole folder: one device in two places, which the server sees as one.
    fs::copy(laptop.state("device.key"), thief.state("device.key")).unwrap();
    thief.ok(&["run", "--once"]);
    laptop.ok(&["run", "--once"]);
    assert_eq!(organization.devices().len(), 2);
    // Open to others, it is not used.
    fs::set_permissions(laptop.state("device.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, err) = laptop.says(&["run", "--once"]);
    assert!(
        code == 2 && err.contains("device.key") && err.contains("chmod 600"),
        "{err}"
    );
}

#[test]
fn a_server_that_is_away_is_waited_for_and_a_signal_ends_the_wait_at_once() {
    let mut organization = Organization::new("agent_away");
    let laptop = organization.machine("ada");
    assert_eq!(laptop.enrols().0, 0);
    laptop.ok(&["run", "--once"]);
    let port = organization.server.port;
    organization.server.child.kill().unwrap();
    organization.server.child.wait().unwrap();
    let (code, _, err) = laptop.says(&["run", "--once"]);
    assert!(code == 7 && err.contains("cannot reach"), "{code} {err}");
    let (code, out, _) = laptop.says(&["doctor", "-o", "json"]);
    assert!(code == 1 && out.contains("cannot reach"), "{out}");
    // The loop waits, and a signal ends it.
    let mut agent = laptop.command(&["run"]).stderr(Stdio::piped()).spawn().unwrap();
    // It says so, and then it waits.
    let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines();
    let line = lines
        .find_map(|line| line.ok().filter(|line| line.contains("next in")))
        .unwrap();
    assert!(line.contains("cannot reach"), "{line}");
    // A heartbeat of before is no good one while the agent that works here reaches nobody.
    let (code, out, _) = laptop.says(&["doctor", "-o", "json"]);
    let doctor: Value = serde_json::from_str(&out).unwrap();
    let heartbeat = doctor["findings"].as_array().unwrap().iter();
    let heartbeat = heartbeat.clone().find(|one| one["check"] == "heartbeat").unwrap();
    assert!(code == 1 && heartbeat["good"] == false, "{out}");
    assert!(
        heartbeat["says"].as_str().unwrap().contains("cannot reach"),
        "{out}"
    );
    let clock = SystemClock::new();
    Command::new("kill").arg(agent.id().to_string()).status().unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(0));
    assert!(
        clock.monotonic() < Duration::from_secs(1),
        "{:?}",
        clock.monotonic()
    );
    let listen = format!("127.0.0.1:{port}");
    let mut command = organization
        .home
        .command(&["serve", "--listen", &listen, "--metrics-listen", "off"]);
    command.env("PROVOST_RATE_LIMITS_ENABLED", "false");
    organization.server = Server::start(command, &organization.home.path("stdout2"));
    laptop.ok(&["run", "--once"]);
    assert_eq!(organization.devices()[0]["status"], "active");
}

#[test]
fn units_and_texts_are_printed_and_installed_where_they_belong() {
    let organization = Organization::new("agent_units");
    let laptop = organization.machine("ada");
    let (unit, _) = laptop.ok(&["install", "--print"]);
    assert!(
        unit.contains("ExecStart=/") && unit.contains("agent run\n") && unit.contains("MemoryMax=64M"),
        "{unit}"
    );
    let (system, _) = laptop.ok(&["install", "--system", "--print"]);
    assert!(
        system.contains("ProtectSystem=strict") && system.contains("agent run --system\n"),
        "{system}"
    );
    // Root sees no home and has no capability; whatever ends it but a retirement, it comes back.
    for line in [
        "ProtectHome=yes\n",
        "CapabilityBoundingSet=\n",
        "RestartPreventExitStatus=3\n",
        "StartLimitIntervalSec=0\n",
    ] {
        assert!(system.contains(line), "{line}{system}");
    }
    let path = laptop.dir.join(".config/systemd/user/provost-agent.service");
    assert!(!path.exists());
    laptop.ok(&["install"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), unit);
    laptop.ok(&["install"]);
    fs::write(&path, "another").unwrap();
    assert_eq!(laptop.says(&["install"]).0, 5);
    laptop.ok(&["uninstall"]);
    assert!(!path.exists());
    laptop.ok(&["uninstall"]);
    for mdm in ["jamf", "intune", "ansible"] {
        let words = [
            "install",
            "--print-mdm",
            mdm,
            "--server",
            "https://provost.example",
            "--organization",
            "acme",
        ];
        let (text, _) = laptop.ok(&words);
        assert!(
            text.contains("UNTESTED") && text.contains("--server https://provost.example"),
            "{text}"
        );
    }
    let rolled_out = |mdm: &'static str| {
        let server = "https://provost.example";
        [
            "install",
            "--judge",
            "--print-mdm",
            mdm,
            "--server",
            server,
            "--organization",
            "acme",
        ]
    };
    for mdm in ["intune", "ansible"] {
        let (text, _) = laptop.ok(&rolled_out(mdm));
        assert!(text.contains("agent install --system --judge\n"), "{text}");
    }
    assert_eq!(
        laptop.says(&rolled_out("jamf")).0,
        2,
        "nothing believes an agent of a Mac"
    );
    let words = [
        "install",
        "--print-mdm",
        "jamf",
        "--server",
        "https://x;rm",
        "--organization",
        "acme",
    ];
    assert_eq!(laptop.says(&words).0, 2);
}
