//! The agent that judges, before the server itself and before one that lies: what is no bundle of this device judges nothing.

use super::Laptop;
use crate::areas::device_judging::set;
use crate::areas::directory::user;
use crate::areas::fleet::enrolment_token;
use crate::policy::decisions::{content, policy};
use crate::support::{App, each, fresh_key};
use provost_agent::desk::{Asked, Intent, Told, reply_of};
use provost_agent::{Agent, Loop, Mode, Once, Quarantine, Station, Trouble, once};
use provost_client::agent::{Judging, Use};
use provost_client::cli::{Surroundings, Terminal};
use provost_hooks::Client;
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::time::SystemClock;
use provost_policy::Family;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const ADA: &str = "ada@acme.test";

/// A person's laptop whose agent judges, with a clock of its own.
struct Guard {
    laptop: Laptop,
    id: String,
    said: RefCell<Vec<String>>,
}

fn terminal(home: &Path) -> Terminal {
    Terminal {
        surroundings: Surroundings {
            home: Some(home.to_owned()),
            ..Surroundings::default()
        },
        ..Terminal::system()
    }
}

impl Guard {
    /// Returns one that enrolled, of somebody.
    async fn new(app: &Arc<App>, owner: &str) -> Self {
        let laptop = Laptop::new(app);
        let (_, secret) = enrolment_token(app, json!({ "mode": "user" })).await;
        let id = laptop.enrols(&secret, false).await.unwrap();
        let body = json!({ "ownerUserId": owner });
        app.write("PATCH", &format!("/devices/{id}"), body).await.ok();
        let folder = laptop.home.join(".config/provost");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .unwrap();
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(folder.join("hook.toml"))
            .unwrap();
        let (url, organization) = (&laptop.road.url, &app.organization);
        let text = format!(
            "url = \"{url}\"\norganization = \"{organization}\"\ntoken_file = \"/nowhere\"\nuser = \"{ADA}\"\nallow_plain_http = true\n"
        );
        file.write_all(text.as_bytes()).unwrap();
        Self {
            laptop,
            id,
            said: RefCell::default(),
        }
    }

    /// Starts the agent, as after a restart.
    fn begins(&self, judges: Use) -> Judging {
        let judging = Judging::new(Mode::User, judges, &terminal(&self.laptop.home));
        let agent = Agent::open(&self.laptop.folder()).unwrap();
        judging
            .begin(&agent, &|line| self.said.borrow_mut().push(line.to_owned()))
            .unwrap();
        judging
    }

    async fn round(&self, judging: &Judging) -> Result<Once, Trouble> {
        let agent = Agent::open(&self.laptop.folder())?;
        once(&Loop {
            agent: &agent,
            door: &self.laptop.road,
            home: &self.laptop.home,
            clock: &SystemClock::new(),
            entropy: &SystemEntropy,
            say: &|line| self.said.borrow_mut().push(line.to_owned()),
            stations: &[judging],
            stop: Arc::default(),
        })
        .await
    }

    async fn goes_on(&self, judging: &Judging) {
        assert_eq!(self.round(judging).await.unwrap().problem, None);
    }

    /// A round in which something is in the way, and what.
    async fn stumbles(&self, judging: &Judging) -> String {
        self.round(judging).await.unwrap().problem.unwrap().line
    }

    fn socket(&self) -> PathBuf {
        self.laptop.home.join(".config/provost/agent.sock")
    }

    fn bundle(&self) -> PathBuf {
        self.laptop.folder().file("policy-bundle.json")
    }

    /// Asks as a hook does before a tool.
    fn asks(&self, tool: &str) -> Told {
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s1", "tool_use_id": "c1", "tool_name": tool,
            "cwd": "/", "tool_input": { "command": "ls" } })
        .to_string();
        let asked = Asked {
            intent: Intent::Judge,
            client: Client::ClaudeCode,
            mode: provost_hooks::Mode::Enforce,
            length: payload.len(),
            by_hand: false,
            preloaded: false,
        };
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(asked.head().as_bytes()).unwrap();
        stream.write_all(payload.as_bytes()).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        serde_json::from_slice(reply_of(&reply).unwrap()).unwrap()
    }

    /// Returns the strongest action that the device decided by itself.
    fn decides(&self, tool: &str) -> Option<String> {
        let told = self.asks(tool);
        let decisions = told.decided.as_ref()?["decisions"].as_array()?.clone();
        let mut actions = decisions.iter().filter_map(|one| one["action"].as_str());
        let strongest = if actions.clone().any(|action| action == "block") {
            "block"
        } else {
            actions.next_back()?
        };
        Some(strongest.to_owned())
    }

    fn hears(&self, status: u16, body: &[u8]) {
        let mut says = self.laptop.road.says.borrow_mut();
        says.insert("policy-bundle".to_owned(), (status, body.to_vec()));
    }

    fn silence(&self) {
        self.laptop.road.says.borrow_mut().clear();
    }
}

async fn recorded(app: &App, id: &str) -> Vec<Value> {
    let page = app
        .get(&format!("/policies/history?source=device:{id}&limit=100"))
        .await;
    page.ok()["events"].as_array().unwrap().clone()
}

async fn no_bash(app: &App) {
    let change = json!({ "conditions": { "field": "tool.id", "op": "eq", "value": "Bash" } });
    policy(app, Family::Content, content("no-bash", "block", &change)).await;
}

/// Proves LJ-2, LJ-5.
#[test]
fn what_is_no_bundle_of_this_device_is_refused_by_name_and_judges_nothing() {
    each("agent_judging_lies", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, ADA).await;
        let (guard, other) = (Guard::new(&app, &ada).await, Guard::new(&app, &ada).await);
        // Of before there was any policy.
        let judging = guard.begins(Use::On);
        guard.goes_on(&judging).await;
        let older = fs::read(guard.bundle()).unwrap();
        assert_eq!(guard.decides("Bash").as_deref(), Some("allow"));
        no_bash(&app).await;
        guard.goes_on(&judging).await;
        let newest = fs::read(guard.bundle()).unwrap();
        assert_ne!(older, newest);
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        let others = other.begins(Use::On);
        other.goes_on(&others).await;
        let foreign = fs::read(other.bundle()).unwrap();
        let mut forged: Value = serde_json::from_slice(&newest).unwrap();
        forged["signatures"] = serde_json::from_slice::<Value>(&older).unwrap()["signatures"].clone();
        let large = vec![b' '; (5 << 20) + 1];
        let lies: [(&str, Vec<u8>, &str); 5] = [
            ("older", older, "older"),
            ("foreign", foreign, "device"),
            ("garbage", b"garbage".to_vec(), "no signed document"),
            ("forged", forged.to_string().into_bytes(), "sign"),
            ("large", large, "3 mib"),
        ];
        for (lie, bytes, why) in &lies {
            // From a server, or from whoever stands in its place: what it judged by is not trusted any more, and hooks ask.
            guard.hears(200, bytes);
            let line = guard.stumbles(&judging).await;
            assert!(line.to_lowercase().contains(why), "{lie}: {line}");
            assert_eq!(guard.decides("Bash"), None, "{lie}");
            assert_eq!(guard.decides("Read"), None, "{lie}");
            guard.silence();
            guard.goes_on(&judging).await;
            assert_eq!(guard.decides("Bash").as_deref(), Some("block"), "{lie}");
        }
        // No answer at all is another thing: the bundle in date goes on.
        guard.hears(503, b"{}");
        guard.stumbles(&judging).await;
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        guard.silence();
        drop(judging);
        for (lie, bytes, why) in &lies {
            fs::write(guard.bundle(), bytes).unwrap();
            guard.said.borrow_mut().clear();
            let judging = guard.begins(Use::On);
            let said = guard.said.borrow().join("; ").to_lowercase();
            // One that is too large is not read to its end.
            assert!(
                said.contains(why) || (*lie == "large" && !said.is_empty()),
                "{lie}: {said}"
            );
            assert_eq!(guard.decides("Bash"), None, "{lie}");
            guard.goes_on(&judging).await;
            assert_eq!(guard.decides("Bash").as_deref(), Some("block"), "{lie}");
        }
        app.kernel.stop().await;
    });
}

/// Proves DJ-7, LJ-5.
#[test]
fn an_agent_without_the_word_clears_what_it_judged_by_and_one_that_is_switched_off_asks() {
    each("agent_judging_off", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, ADA).await;
        no_bash(&app).await;
        let guard = Guard::new(&app, &ada).await;
        let judging = guard.begins(Use::On);
        guard.goes_on(&judging).await;
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        set(&app, "off").await;
        guard.goes_on(&judging).await;
        let told = guard.asks("Bash");
        assert!(told.decided.is_none() && !told.holds, "{told:?}");
        assert!(!guard.bundle().exists());
        set(&app, "on").await;
        guard.goes_on(&judging).await;
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        drop(judging);
        let judging = guard.begins(Use::Off);
        let mode = guard.laptop.home.join(".config/provost/mode.json");
        assert!(!guard.socket().exists() && !guard.bundle().exists() && !mode.exists());
        // What was judged goes to the server all the same, once.
        guard.goes_on(&judging).await;
        let events = recorded(&app, &guard.id).await;
        let blocked = events
            .iter()
            .filter(|event| event["decision"]["action"] == "block");
        assert!(blocked.count() >= 2, "{events:?}");
        guard.goes_on(&judging).await;
        assert_eq!(recorded(&app, &guard.id).await.len(), events.len());
        app.kernel.stop().await;
    });
}

/// What a device knows of itself the hook of another machine cannot say: the server counts it as unknown, which matches (ADR 0125).
#[test]
fn a_policy_of_another_device_lets_pass_here_and_denies_where_nobody_says_which_machine_asks() {
    each("agent_judging_device", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, ADA).await;
        let (guard, other) = (Guard::new(&app, &ada).await, Guard::new(&app, &ada).await);
        let of_other = json!({
            "id": "not-there", "name": "not-there", "action": "block", "enforcementSurfaces": ["inline_hook"],
            "acknowledgeBroadScope": true, "conditions": { "field": "device.id", "op": "eq", "value": other.id },
        });
        policy(&app, Family::Access, of_other).await;
        for (guard, expected) in [(&guard, "allow"), (&other, "block")] {
            let judging = guard.begins(Use::On);
            guard.goes_on(&judging).await;
            assert_eq!(guard.decides("Read").as_deref(), Some(expected));
        }
        let event = json!({ "occasion": "inline_hook", "attributes": { "product.id": "claude-code", "identity.user_id": ADA }, "missing": ["device.id"] });
        let asked = app
            .request("POST", "/policies/decisions")
            .json(json!({ "events": [event] }));
        assert_eq!(asked.send().await.ok()["decisions"][0]["action"], "block");
        app.kernel.stop().await;
    });
}

/// Proves LJ-5.
///
/// Of a device that is held apart nothing is left by which it judged, neither on its disk nor at its desk, and what it comes
/// back with is no older.
#[test]
fn a_bundle_is_gone_after_the_quarantine_of_its_device_and_comes_back_after_the_release() {
    each("agent_judging_quarantine", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, ADA).await;
        no_bash(&app).await;
        let guard = Guard::new(&app, &ada).await;
        let judging = guard.begins(Use::On);
        guard.goes_on(&judging).await;
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        let before = fs::read(guard.bundle()).unwrap();
        let verb = |verb: &str| format!("/devices/{}/{verb}", guard.id);
        app.write("POST", &verb("quarantine"), json!({})).await.ok();
        app.advance(60);
        guard.stumbles(&judging).await;
        assert!(!guard.bundle().exists(), "it lies on the disk");
        // Hooks look at the mark, whatever becomes of the agent (LJ-13).
        let mark = guard.laptop.home.join(".config/provost/quarantine.json");
        assert!(fs::read_to_string(&mark).unwrap().contains("block"));
        assert_eq!(guard.asks("Bash").quarantine, Some(Quarantine::Block));
        assert!(guard.laptop.folder().file("policy-bundle.floor.json").exists());
        let told = guard.asks("Bash");
        assert!(told.decided.is_none() && !told.holds, "{told:?}");
        // Nothing of it comes back by a restart, nor by whoever kept the file: what is refused anew goes anew.
        drop(judging);
        let judging = guard.begins(Use::On);
        assert!(guard.asks("Bash").decided.is_none());
        drop(judging);
        fs::write(guard.bundle(), &before).unwrap();
        let judging = guard.begins(Use::On);
        guard.stumbles(&judging).await;
        assert!(!guard.bundle().exists() && guard.asks("Bash").decided.is_none());
        app.write("POST", &verb("release"), json!({})).await.ok();
        app.advance(60);
        guard.goes_on(&judging).await;
        assert!(!mark.exists(), "it is still held apart");
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        app.kernel.stop().await;
    });
}

/// Proves LJ-15, FL-14.
///
/// Whoever is locked out works on with the next round, and is stopped again with the one behind the end; nothing of before brings it back.
#[test]
fn a_bypass_lets_a_machine_work_on_and_is_over_with_its_end() {
    each("agent_bypass", |app: Arc<App>| async move {
        set(&app, "on").await;
        let body = json!({ "fleet": { "hooks": { "mode": "enforce" } } });
        app.write("PATCH", "/automation/settings", body).await.ok();
        let ada = user(&app, ADA).await;
        no_bash(&app).await;
        let guard = Guard::new(&app, &ada).await;
        let judging = guard.begins(Use::On);
        guard.goes_on(&judging).await;
        let bypass = || guard.asks("Bash").bypass.map(|bypass| bypass.id);
        assert_eq!(bypass(), None);
        let path = format!("/devices/{}/bypass", guard.id);
        let give = async || {
            app.write("POST", &path, json!({ "minutes": 60 }))
                .await
                .json
                .clone()
        };
        let given = give().await;
        let id = given["bypass"]["id"].as_str().map(str::to_owned);
        guard.goes_on(&judging).await;
        assert_eq!(bypass(), id);
        assert!(judging.bypass(Client::Codex).is_some());
        let with = fs::read(guard.bundle()).unwrap();
        // A restart, and the server away, change nothing.
        drop(judging);
        let judging = guard.begins(Use::On);
        assert_eq!(bypass(), id);
        guard.hears(503, b"{}");
        guard.stumbles(&judging).await;
        assert_eq!(bypass(), id);
        guard.silence();
        let call = app.request("DELETE", &path);
        let call = call.header("idempotency-key", &fresh_key());
        assert_eq!(
            call.header("x-reason", "he is back").send().await.status.as_u16(),
            204
        );
        guard.goes_on(&judging).await;
        assert_eq!(bypass(), None);
        assert_eq!(guard.decides("Bash").as_deref(), Some("block"));
        let modes: Vec<Value> = recorded(&app, &guard.id)
            .await
            .iter()
            .map(|event| event["decision"]["mode"].clone())
            .collect();
        assert!(
            modes.contains(&json!("bypass")) && modes.contains(&json!("enforce")),
            "{modes:?}"
        );
        // The bundle of before, from a server that lies and from the disk.
        guard.hears(200, &with);
        guard.stumbles(&judging).await;
        assert_eq!(bypass(), None);
        guard.silence();
        guard.goes_on(&judging).await;
        drop(judging);
        fs::write(guard.bundle(), &with).unwrap();
        let judging = guard.begins(Use::On);
        assert_eq!(bypass(), None);
        guard.goes_on(&judging).await;
        // Held apart with what only looks on: the server gives none, and the mark is stronger than one that is there.
        let body = json!({ "fleet": { "quarantineAction": "monitor" }, "confirm": true });
        app.write("PATCH", "/automation/settings", body).await.ok();
        give().await;
        guard.goes_on(&judging).await;
        assert!(bypass().is_some());
        app.write("POST", &format!("/devices/{}/quarantine", guard.id), json!({}))
            .await
            .ok();
        app.advance(60);
        guard.stumbles(&judging).await;
        assert_eq!(bypass(), None);
        app.kernel.stop().await;
    });
}
