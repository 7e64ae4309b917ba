//! The desk before hooks, with a bundle of its own.

mod bypass;
mod gemini;
mod logs;
mod servers;
mod told;
mod verdicts;

use super::bench::{Bench, Registered, Standing, Told, Word};
use super::frame::{Asked, Intent, reply_of};
use super::log::Log;
use super::place::Place;
use super::serve::{Desk, Registrar, Work};
use super::servers::Servers;
use crate::Folder;
use crate::coverage::SharedFired;
use crate::quarantine::Quarantine;
use crate::tests::Scratch;
use provost_bundle::{
    BundleInputs, BundleUser, HookMode, Hooks, Judge, OnUnknown, PolicyBundle, Recording, ToldContent,
};
use provost_hooks::{Client, Mode};
use provost_inventory::InventoryKey;
use provost_inventory::traces::SessionFile;
use provost_policy::{Definition, Family, PolicySet};
use provost_words::time::{Clock, SystemClock, Timestamp};
use rustix::process::geteuid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A policy that blocks calls of a tool; `change` replaces members.
pub(super) fn block(id: &str, change: &Value) -> Value {
    let mut policy = json!({
        "id": id, "name": id, "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "eq", "value": "Bash" },
    });
    for (name, value) in change.as_object().unwrap() {
        policy[name] = value.clone();
    }
    policy
}

/// What a device of Ada judges by.
pub(super) fn bench(policies: &[Value], change: impl FnOnce(&mut PolicyBundle)) -> Bench {
    let read = policies.iter().map(|policy| {
        Arc::new(Definition::read(Family::Content, policy).unwrap_or_else(|why| panic!("{policy}: {why}")))
    });
    let set = PolicySet::new(read).unwrap();
    let now = SystemClock::new().now();
    let inputs = BundleInputs {
        organization_id: "acme".into(),
        device_id: "dev_1".into(),
        store_epoch: 1,
        sequence: 7,
        version: ("psv_1".into(), 3),
        issued_at: now.plus_secs(-60),
        not_after: now.plus_secs(86_400),
        mode: HookMode::Enforce,
        hooks: Hooks {
            deadline_ms: 400,
            on_unknown: OnUnknown::Block,
        },
        record: Recording::Counted,
        told: ToldContent::ALL,
        users: vec![BundleUser {
            user_id: "usr_ada".into(),
            words: vec!["ada".into()],
            shared: vec![],
            group_ids: Some(vec![]),
        }],
        groups: vec![],
        denied: vec![],
        bypass: None,
    };
    let mut bundle = PolicyBundle::of(&set, inputs).unwrap();
    change(&mut bundle);
    Bench::new(Judge::new(bundle).unwrap())
}

/// A call of a tool, as Claude Code says it.
pub(super) fn call(tool: &str) -> Vec<u8> {
    json!({ "hook_event_name": "PreToolUse", "session_id": "s1", "tool_use_id": "c1", "tool_name": tool, "cwd": "/srv",
        "tool_input": { "command": "ls" }, "user": "root", "identity.user_id": "bob" })
    .to_string()
    .into_bytes()
}

/// What registers the hook, and the home of whoever asks.
struct Says(Result<Registered, String>, Option<PathBuf>);

impl Registrar for Says {
    fn registered(&self) -> Result<Registered, String> {
        self.0.clone()
    }

    fn account(&self, uid: u32) -> Option<String> {
        (uid == geteuid().as_raw()).then(|| "ada".to_owned())
    }

    fn home(&self, uid: u32) -> Option<PathBuf> {
        let home = self.1.clone();
        home.filter(|_| uid == geteuid().as_raw())
    }
}

fn looked_up() -> Servers {
    Servers::new(Path::new("/"), InventoryKey::new(&[7; 32])).without_haste()
}

/// A desk that is open.
pub(super) struct Open {
    pub desk: Option<Desk>,
    pub place: Place,
    pub folder: Folder,
    pub standing: Arc<Mutex<Standing>>,
    pub log: Arc<Mutex<Log>>,
    pub fired: SharedFired,
    pub scratch: Scratch,
}

pub(super) fn registered(word: Word) -> Registered {
    Registered {
        url: "https://provost.test".into(),
        organization: "acme".into(),
        word,
    }
}

pub(super) fn open(bench: Option<Bench>, registered: Registered) -> Open {
    open_as(bench, Ok(registered))
}

fn open_as(bench: Option<Bench>, registered: Result<Registered, String>) -> Open {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let place = Place::of_machine(&scratch.0, geteuid().as_raw());
    let log = Arc::new(Mutex::new(Log::open(&folder, &|line| panic!("{line}")).unwrap()));
    let standing = Arc::new(Mutex::new(Standing {
        quarantine: None,
        mode: bench.as_ref().map(|_| HookMode::Enforce),
        bench: bench.map(Arc::new),
        skew_ms: 0,
        latest: None,
    }));
    let fired = SharedFired::default();
    let desk = Desk::open(Work {
        place: place.clone(),
        server: "https://provost.test".into(),
        organization: "acme".into(),
        standing: standing.clone(),
        log: log.clone(),
        fired: fired.clone(),
        servers: looked_up(),
        registrar: Box::new(Says(registered, Some(scratch.0.join("home")))),
        clock: Box::new(SystemClock::new()),
    });
    Open {
        desk: Some(desk.unwrap()),
        place,
        folder,
        standing,
        log,
        fired,
        scratch,
    }
}

impl Open {
    pub fn ask(&self, intent: Intent, payload: &[u8]) -> Told {
        self.ask_in(Mode::Monitor, intent, payload)
    }

    fn ask_in(&self, mode: Mode, intent: Intent, payload: &[u8]) -> Told {
        self.ask_as((mode, false), intent, payload)
    }

    fn ask_as(&self, (mode, by_hand): (Mode, bool), intent: Intent, payload: &[u8]) -> Told {
        let asked = Asked {
            intent,
            client: Client::ClaudeCode,
            mode,
            length: payload.len(),
            by_hand,
            preloaded: false,
        };
        self.ask_of(asked, payload)
    }

    fn ask_of(&self, asked: Asked, payload: &[u8]) -> Told {
        let mut stream = UnixStream::connect(&self.place.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(asked.head().as_bytes()).unwrap();
        stream.write_all(payload).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        serde_json::from_slice(reply_of(&reply).unwrap()).unwrap()
    }

    /// Returns what the log has, after what was counted is in it.
    pub fn entries(&self) -> Vec<Value> {
        let mut log = self.log.lock().unwrap();
        log.settle().unwrap();
        let batch = log.batch(&|line| panic!("{line}")).unwrap();
        let entries = batch.map(|batch| batch.entries).unwrap_or_default();
        entries
            .iter()
            .map(|entry| serde_json::from_str(entry).unwrap())
            .collect()
    }
}

pub(super) fn action(told: &Told) -> Option<&str> {
    told.decided.as_ref()?["decisions"][0]["action"].as_str()
}

/// Proves FH-8.
#[test]
fn a_hook_that_says_that_it_was_preloaded_is_answered_and_remembered_for_a_day() {
    let open = open(
        Some(bench(&[block("no-shell", &json!({}))], |_| {})),
        registered(Word::OfAccount),
    );
    let payload = call("Bash");
    let asked = |by_hand: bool, preloaded: bool| Asked {
        intent: Intent::Judge,
        client: Client::ClaudeCode,
        mode: Mode::Enforce,
        length: payload.len(),
        by_hand,
        preloaded,
    };
    let now = SystemClock::new().now();
    let is_known = |client: Client| open.fired.is_preloaded(client, now);
    open.ask_of(asked(false, false), &payload);
    // Who tries it by hand says nothing of what a client starts.
    open.ask_of(asked(true, true), &payload);
    assert!(!is_known(Client::ClaudeCode));
    let told = open.ask_of(asked(false, true), &payload);
    assert_eq!(action(&told), Some("block"));
    assert!(is_known(Client::ClaudeCode) && !is_known(Client::Codex));
    assert!(
        !open
            .fired
            .is_preloaded(Client::ClaudeCode, now.plus_secs(2 * 86_400))
    );
    // It outlives the process.
    open.fired.save(&open.folder, now).unwrap();
    let again = SharedFired::default();
    again.load(&open.folder).unwrap();
    assert!(again.is_preloaded(Client::ClaudeCode, now));
}

/// Proves LJ-4, LJ-7.
#[test]
fn a_hook_is_told_what_the_bundle_says_and_all_of_it_is_in_the_log() {
    let open = open(
        Some(bench(&[block("no-shell", &json!({}))], |_| {})),
        registered(Word::OfAccount),
    );
    let told = open.ask(Intent::Judge, &call("Read"));
    assert_eq!(
        (action(&told), told.mode),
        (Some("allow"), Some(HookMode::Enforce)),
        "{told:?}"
    );
    open.ask(Intent::Judge, &call("Read"));
    let told = open.ask(Intent::Judge, &call("Bash"));
    assert_eq!(action(&told), Some("block"), "{told:?}");
    let entries = open.entries();
    let of = |kind: &str| {
        entries
            .iter()
            .filter(|entry| entry["kind"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("count")
            .iter()
            .filter_map(|entry| entry["count"].as_u64())
            .sum::<u64>(),
        2
    );
    assert!(
        of("count")
            .iter()
            .all(|entry| entry["user"] == "ada" && entry["tool"] == "Read")
    );
    let events = of("event");
    assert_eq!(
        events.len(),
        2,
        "the content and the use of the product: {events:?}"
    );
    // Who it is the kernel said, and nothing that stands in the event.
    assert!(
        events
            .iter()
            .all(|event| event["attributes"]["identity.user_id"] == "ada"),
        "{events:?}"
    );
    assert_eq!(events[0]["decision"]["action"], "block");
    assert_eq!(
        events[0]["decision"]["mode"], "enforce",
        "the organization's, whatever the registration says"
    );
    assert_eq!(
        (&events[0]["basis"], &events[0]["session"]),
        (&json!("judged"), &json!("s1"))
    );
    assert_eq!(events[1]["attributes"]["device.id"], "dev_1");
}

/// Proves LJ-7.
#[test]
fn what_passes_is_an_event_unless_the_organization_only_counts() {
    for (record, kind) in [(Recording::All, "event"), (Recording::Counted, "count")] {
        let policies = bench(&[block("no-shell", &json!({}))], |bundle| bundle.record = record);
        let open = open(Some(policies), registered(Word::OfAccount));
        assert_eq!(action(&open.ask(Intent::Judge, &call("Read"))), Some("allow"));
        let entries = open.entries();
        assert!(
            !entries.is_empty() && entries.iter().all(|entry| entry["kind"] == kind),
            "{entries:?}"
        );
    }
}

/// Proves LJ-13.
#[test]
fn a_desk_of_a_machine_that_is_held_apart_decides_nothing_whatever_it_has() {
    let policies = bench(&[block("no-shell", &json!({}))], |_| {});
    let open = open(Some(policies), registered(Word::OfAccount));
    let holds = |quarantine| open.standing.lock().unwrap().quarantine = quarantine;
    holds(Some(Quarantine::Monitor));
    let told = open.ask(Intent::Judge, &call("Read"));
    assert_eq!(
        (action(&told), told.quarantine),
        (Some("allow"), Some(Quarantine::Monitor))
    );
    holds(Some(Quarantine::Block));
    for intent in [Intent::Judge, Intent::Hold] {
        let told = open.ask(intent, &call("Read"));
        assert_eq!((&told.decided, told.quarantine), (&None, Some(Quarantine::Block)));
        assert!(!told.holds, "{told:?}");
    }
    holds(None);
    let told = open.ask(Intent::Judge, &call("Read"));
    assert_eq!((action(&told), told.quarantine), (Some("allow"), None));
}

/// Proves LJ-4.
#[test]
fn whoever_cannot_be_told_and_whoever_is_none_of_the_devices_people_is_asked_about() {
    let policies = || bench(&[block("no-shell", &json!({}))], |_| {});
    for word in [Word::Unsaid, Word::Named("bob".into())] {
        let open = open(Some(policies()), registered(word.clone()));
        let told = open.ask(Intent::Judge, &call("Read"));
        assert!(told.decided.is_none() && told.why.is_some(), "{word:?}: {told:?}");
        assert!(open.entries().is_empty());
    }
    let other = Registered {
        organization: "other".into(),
        ..registered(Word::OfAccount)
    };
    for registered in [Ok(other), Err("somebody else wrote it".to_owned())] {
        let open = open_as(Some(policies()), registered);
        assert_eq!(open.ask(Intent::Judge, &call("Bash")).decided, None);
    }
    let open = open(None, registered(Word::OfAccount));
    let told = open.ask(Intent::Judge, &call("Read"));
    assert!(told.decided.is_none() && !told.holds, "{told:?}");
}

/// Proves LJ-6.
#[test]
fn who_connects_and_says_nothing_or_writes_for_ever_keeps_nobody_waiting() {
    let open = open(Some(bench(&[], |_| {})), registered(Word::OfAccount));
    let silent: Vec<UnixStream> = (0..100)
        .map(|_| UnixStream::connect(&open.place.socket).unwrap())
        .collect();
    let mut slow: Vec<UnixStream> = (0..20)
        .map(|_| UnixStream::connect(&open.place.socket).unwrap())
        .collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"provost-desk 1 judge claude-code enforce 1048576\nhalf");
    }
    let mut rude = UnixStream::connect(&open.place.socket).unwrap();
    let _ = rude.write_all(&[b'x'; 4096]);
    let clock = SystemClock::new();
    let began = clock.monotonic();
    assert_eq!(action(&open.ask(Intent::Judge, &call("Read"))), Some("allow"));
    let took = clock.monotonic().saturating_sub(began);
    assert!(took < Duration::from_secs(10), "{took:?}");
    drop((silent, slow));
}

#[test]
fn a_desk_that_closes_takes_its_socket_along_and_another_one_takes_its_place() {
    let mut open = open(Some(bench(&[], |_| {})), registered(Word::OfAccount));
    // What a process that was killed left is no hindrance.
    open.desk.take();
    assert!(!open.place.socket.exists());
    std::fs::write(&open.place.socket, b"left").unwrap();
    let work = Work {
        place: open.place.clone(),
        server: "https://provost.test".into(),
        organization: "acme".into(),
        standing: open.standing.clone(),
        log: open.log.clone(),
        fired: open.fired.clone(),
        servers: looked_up(),
        registrar: Box::new(Says(Ok(registered(Word::OfAccount)), None)),
        clock: Box::new(SystemClock::new()),
    };
    open.desk = Some(Desk::open(work).unwrap());
    assert_eq!(action(&open.ask(Intent::Judge, &call("Read"))), Some("allow"));
    assert!(open.folder.path().exists());
}

/// Proves FH-6.
///
/// What is compared with conversations is what came to the desk, judged or not, and no word of another account.
#[test]
fn the_desk_notes_which_conversation_asked_whatever_it_answers() {
    let now = SystemClock::new().now();
    let files = [SessionFile {
        stem: "0d7c5a4e-1111-2222-3333-444455556666".to_owned(),
        account: 0,
        modified_ms: now.as_ms(),
    }];
    let me = geteuid().as_raw();
    let later = now.plus_secs(300);
    let silent = |open: &Open, account, now| {
        let of_account = files.clone().map(|file| SessionFile { account, ..file });
        open.fired
            .silence(Client::ClaudeCode, Mode::Enforce, &of_account, now)
            .silent
    };
    let said = json!({ "hook_event_name": "PreToolUse", "session_id": files[0].stem, "tool_name": "Bash", "tool_input": {},
        "transcript_path": "/data/claude/projects/-work/x.jsonl" });
    let said = said.to_string().into_bytes();
    // Neither a bundle nor a registration is needed for a hook to have been started.
    for open in [
        open(Some(bench(&[], |_| {})), registered(Word::OfAccount)),
        open(None, registered(Word::OfAccount)),
        open_as(None, Err("it is not believed".to_owned())),
    ] {
        assert_eq!((silent(&open, me, now), silent(&open, me, later)), (0, 1));
        // What somebody tries by hand is judged as any other, and no proof that the client starts it.
        let tried = open.ask_as((Mode::Enforce, true), Intent::Judge, &said);
        assert_eq!(silent(&open, me, later), 1);
        assert_eq!(open.fired.last(Client::ClaudeCode, Mode::Enforce), None);
        let homes = [std::path::PathBuf::from("/home/ada")];
        assert!(!open.fired.is_elsewhere(Client::ClaudeCode, &homes, now));
        // One that looks on is another registration than the one that refuses; who asked it is known.
        open.ask(Intent::Judge, &said);
        assert_eq!(silent(&open, me, later), 1);
        assert_eq!(open.fired.accounts(), BTreeSet::from([me]));
        let asked = open.ask_in(Mode::Enforce, Intent::Judge, &said);
        assert_eq!((tried.decided, tried.why), (asked.decided, asked.why));
        assert_eq!(silent(&open, me, later), 0);
        assert!(open.fired.is_elsewhere(Client::ClaudeCode, &homes, now));
        assert_eq!((silent(&open, me + 1, now), silent(&open, me + 1, later)), (0, 1));
    }
}

/// An instant that lies before the present.
pub(super) fn past() -> Timestamp {
    SystemClock::new().now().plus_secs(-10)
}
