//! What the answers of a server make of the bundle of before.

use super::*;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_agent::{Call, Door, Enrolment, Loop, Reply, enrol, once};
use provost_bundle::ToldContent;
use provost_words::Secret;
use provost_words::dsse::{Envelope, Signature, signed_bytes};
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::time::Timestamp;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DEVICE: &str = "dev_01kaf9q2m4x7t8v3c5d6e0g1h2";

/// A server that answers by the end of a path; where nothing is said of a path nobody answers. Beside it what it was told.
#[derive(Default)]
pub struct Server {
    answers: RefCell<BTreeMap<&'static str, (u16, Vec<u8>)>>,
    told: RefCell<Vec<(String, Vec<u8>)>>,
    /// What its heartbeats say the present is, by this clock, which is set back at once by so many seconds.
    heartbeats: RefCell<Option<(Set, i64)>>,
}

impl Server {
    /// Returns what was told at the end of a path.
    pub fn told(&self, end: &str) -> Vec<Value> {
        let told = self.told.borrow();
        let of_path = told.iter().filter(|(path, _)| path.ends_with(end));
        of_path
            .map(|(_, body)| serde_json::from_slice(body).unwrap())
            .collect()
    }

    pub fn says(&self, end: &'static str, status: u16, body: &Value) {
        let body = body.to_string().into_bytes();
        self.answers.borrow_mut().insert(end, (status, body));
    }

    fn is_silent_at(&self, end: &str) {
        self.answers.borrow_mut().remove(end);
    }
}

impl Server {
    fn date(&self, call: &Call<'_>) -> Option<Timestamp> {
        let heartbeats = self.heartbeats.borrow();
        let is_said = call.path.ends_with("/heartbeat");
        let (clock, back) = heartbeats.as_ref().filter(|_| is_said)?;
        let date = clock.now();
        clock.jump(-back);
        Some(date)
    }
}

impl Door for Server {
    fn url(&self) -> &'static str {
        "https://provost.test"
    }

    fn send<'a>(&'a self, call: &'a Call<'a>) -> Pin<Box<dyn Future<Output = Result<Reply, String>> + 'a>> {
        let answers = self.answers.borrow();
        self.told
            .borrow_mut()
            .push((call.path.to_owned(), call.body.to_vec()));
        let found = answers.iter().find(|(end, _)| call.path.ends_with(*end));
        let answer = found.map(|(_, (status, body))| Reply {
            status: *status,
            date: self.date(call),
            retry_after: None,
            etag: None,
            body: body.clone(),
        });
        Box::pin(std::future::ready(
            answer.ok_or_else(|| "nobody listens".to_owned()),
        ))
    }
}

/// A clock of which the test says what it reads.
#[derive(Clone)]
pub struct Set(Arc<Mutex<(Timestamp, Duration)>>);

impl Set {
    /// Goes on, both by what anybody can set and by what nobody can.
    pub fn pass(&self, seconds: u64) {
        let mut now = self.0.lock().unwrap();
        *now = (
            now.0.plus_secs(seconds.cast_signed()),
            now.1 + Duration::from_secs(seconds),
        );
    }

    /// Is set ahead or back.
    fn jump(&self, seconds: i64) {
        let mut now = self.0.lock().unwrap();
        now.0 = now.0.plus_secs(seconds);
    }
}

impl Clock for Set {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

/// An enrolled machine that judges by a bundle that its server gave it.
pub struct World {
    pub path: PathBuf,
    pub server: Server,
    pub clock: Set,
    pub agent: Agent,
    judging: Judging,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

pub fn now<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(work)
}

pub fn refusal(code: &str) -> Value {
    json!({ "code": code, "message": "no" })
}

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

/// The bundle of a device; `change` replaces members.
fn bundle(change: &Value) -> Value {
    let now = SystemClock::new().now();
    let mut bundle = json!({
        "format": provost_bundle::FORMAT, "organizationId": "acme", "deviceId": DEVICE, "storeEpoch": 1, "sequence": 7,
        "policySetVersion": { "id": "psv_1", "sequence": 3, "digest": "0".repeat(64) },
        "issuedAt": now.plus_secs(-60), "notAfter": now.plus_secs(7 * 86_400), "mode": "enforce",
        "hooks": { "deadlineMs": 400, "onUnknown": "block" }, "recordAll": false,
        "users": [], "groups": [], "policies": [], "withheld": [],
    });
    for (name, value) in change.as_object().unwrap() {
        bundle[name] = value.clone();
    }
    bundle
}

fn signed(bundle: &Value) -> Value {
    let payload = bundle.to_string();
    let signature = key().sign(&signed_bytes(SignedKind::PolicyBundle, payload.as_bytes()));
    let envelope = Envelope {
        payload_type: SignedKind::PolicyBundle.payload_type().into(),
        payload: STANDARD.encode(payload),
        signatures: vec![Signature {
            keyid: "key_1".into(),
            sig: STANDARD.encode(signature),
        }],
    };
    serde_json::to_value(envelope).unwrap()
}

impl World {
    pub fn new() -> Self {
        let seed = SystemEntropy.seed();
        let name = seed[..8].iter().map(u8::to_string).collect::<Vec<_>>().join("-");
        let path = std::env::temp_dir().join(format!("provost-judging-{name}"));
        std::fs::create_dir(&path).unwrap();
        let folder = Folder::make(&path.join("state")).unwrap();
        let server = Server::default();
        let enrolled = json!({
            "device": { "id": DEVICE, "name": "laptop", "mode": "system", "needsApproval": false },
            "token": { "id": "dvt_1", "token": "prov_dvt_canary", "expiresAt": "2099-01-01T00:00:00.000Z" },
        });
        server.says("/devices/enrol", 201, &enrolled);
        let clock = Set(Arc::new(Mutex::new((SystemClock::new().now(), Duration::ZERO))));
        let enrolment = Enrolment {
            door: &server,
            organization: "acme",
            token: &Secret::new("prov_ent_canary".to_owned()),
            name: "laptop",
            // It scans nothing.
            mode: Mode::System,
            allow_plain_http: false,
            ca_cert: None,
            anew: false,
            clock: &clock,
            entropy: &SystemEntropy,
        };
        now(enrol(&folder, &enrolment)).unwrap();
        let known = json!({ "keys": [
            { "id": "key_1", "use": "signing", "key": STANDARD.encode(key().public_key().as_ref()) } ] });
        server.says("provost-keys.json", 200, &known);
        server.says(
            "/heartbeat",
            200,
            &json!({ "now": "2026-11-27T10:00:00.000Z", "nextHeartbeatSeconds": 300 }),
        );
        server.says("/policy-bundle", 200, &signed(&bundle(&json!({}))));
        let agent = Agent::open(&folder).unwrap();
        let judging = Judging::at(None, None, Use::On, Box::new(clock.clone()));
        let world = Self {
            path,
            server,
            clock,
            agent,
            judging,
        };
        world.round();
        assert_eq!(world.judges(), (true, true), "the bundle came");
        world
    }

    fn round(&self) {
        let done = now(once(&Loop {
            agent: &self.agent,
            door: &self.server,
            home: &self.path,
            clock: &self.clock,
            entropy: &SystemEntropy,
            say: &|_| {},
            stations: &[&self.judging],
            stop: Arc::default(),
        }));
        drop(done);
    }

    /// Says whether a bundle lies on the disk, and whether the desk judges by one.
    fn judges(&self) -> (bool, bool) {
        let is_kept = kept_bundle(&self.agent.folder).unwrap().is_some();
        (is_kept, self.judging.standing.now().bench.is_some())
    }

    fn problem(&self) -> Option<String> {
        last_look(&self.agent.folder).unwrap().problem
    }
}

/// Proves LJ-5.
///
/// A restore of the server, a token that ended and a device that is not known any more refuse the heartbeat.
#[test]
fn a_refusal_of_the_heartbeat_takes_the_bundle_away() {
    for (status, code) in [
        (401, "token_expired"),
        (401, "invalid_token"),
        (401, "token_revoked"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
    ] {
        let world = World::new();
        world.server.says("/heartbeat", status, &refusal(code));
        world.round();
        assert_eq!(world.judges(), (false, false), "{status} {code}");
        if code != "token_revoked" {
            assert!(world.problem().is_some(), "{status} {code}");
        }
    }
}

#[test]
fn a_server_that_does_not_answer_the_heartbeat_leaves_the_bundle() {
    let world = World::new();
    for status in [429, 500, 502, 503] {
        world.server.says("/heartbeat", status, &refusal("busy"));
        world.round();
        assert_eq!(world.judges(), (true, true), "{status}");
    }
    world.server.is_silent_at("/heartbeat");
    world.round();
    assert_eq!(world.judges(), (true, true));
}

/// Nothing is said of an owner where there is one.
#[test]
fn doctor_says_that_policies_know_nobody() {
    let world = World::new();
    let found = super::bundle_finding(&world.agent);
    assert!(found.good && found.says.contains("no owner"), "{}", found.says);
    world.server.says(
        "/policy-bundle",
        200,
        &signed(&bundle(
            &json!({ "sequence": 8, "users": [{ "userId": "usr_ada", "words": ["ada"], "shared": [] }] }),
        )),
    );
    world.round();
    let found = super::bundle_finding(&world.agent);
    assert!(found.good && !found.says.contains("no owner"), "{}", found.says);
}

/// Whoever declared that the agent judges reads which setting has it not, and another cause is not taken for that one.
#[test]
fn where_the_settings_have_no_device_judge_the_agent_says_so() {
    let world = World::new();
    let off = json!({ "code": "not_found", "status": "judging_off", "message": "no" });
    world.server.says("/policy-bundle", 404, &off);
    world.round();
    assert_eq!(world.judges(), (false, false));
    assert!(world.problem().unwrap().contains("fleet.hooks.judging"));
    let found = super::bundle_finding(&world.agent);
    assert!(
        !found.good && found.says.contains("judging is off"),
        "{}",
        found.says
    );
    assert!(
        found
            .fix
            .unwrap()
            .contains("provost settings set --fleet-hooks-judging on")
    );
    world.server.says("/policy-bundle", 404, &refusal("not_found"));
    world.round();
    let found = super::bundle_finding(&world.agent);
    assert!(
        !found.good && found.says.contains("has no bundle"),
        "{}",
        found.says
    );
    assert!(found.fix.unwrap().contains("run --once --judge"));
    // Beside an agent that works another one is refused.
    let _works = world.agent.folder.lock().unwrap();
    let found = super::bundle_finding(&world.agent);
    assert!(!found.fix.unwrap().contains("--once"));
}

/// Proves LJ-5.
///
/// Each answer in the place of the bundle.
#[test]
fn what_is_answered_instead_of_the_bundle_decides_whether_it_stays() {
    let old = json!({ "sequence": 6 });
    let answers = [
        ("taken away", 404, refusal("judging_off"), false),
        ("no such operation", 405, refusal("method_not_allowed"), false),
        ("refused", 403, refusal("forbidden"), false),
        ("expired", 401, refusal("token_expired"), false),
        (
            "quarantined",
            409,
            json!({ "code": "conflict", "message": "no", "status": "quarantined" }),
            false,
        ),
        // It fails, and says meanwhile what it knows.
        (
            "quarantined and ill",
            503,
            json!({ "code": "unavailable", "message": "no", "status": "quarantined" }),
            false,
        ),
        (
            "another device's",
            200,
            signed(&bundle(&json!({ "deviceId": "dev_2" }))),
            false,
        ),
        (
            "another organization's",
            200,
            signed(&bundle(&json!({ "organizationId": "other" }))),
            false,
        ),
        ("older", 200, signed(&bundle(&old)), false),
        ("garbage", 200, json!({ "payload": "garbage" }), false),
        ("not changed, unasked", 304, json!({}), false),
        ("busy", 429, refusal("too_many_requests"), true),
        ("ill", 500, refusal("internal"), true),
        ("away behind a proxy", 502, json!("bad gateway"), true),
        ("later", 200, signed(&bundle(&json!({ "sequence": 8 }))), true),
    ];
    for (what, status, body, stays) in answers {
        let world = World::new();
        world.server.says("/policy-bundle", status, &body);
        world.round();
        assert_eq!(world.judges(), (stays, stays), "{what}");
        assert_eq!(world.problem().is_none(), what == "later", "{what}");
    }
    let world = World::new();
    world.server.is_silent_at("/policy-bundle");
    world.round();
    assert_eq!(world.judges(), (true, true), "silence");
}

#[test]
fn one_round_of_an_agent_that_does_not_judge_leaves_nothing_of_one_that_did() {
    let world = World::new();
    let others = Judging::at(None, None, Use::Off, Box::new(world.clock.clone()));
    let round = |judging: &Judging| {
        let done = now(once(&Loop {
            agent: &world.agent,
            door: &world.server,
            home: &world.path,
            clock: &world.clock,
            entropy: &SystemEntropy,
            say: &|_| {},
            stations: &[judging],
            stop: Arc::default(),
        }));
        done.unwrap();
        kept_bundle(&world.agent.folder).unwrap().is_some()
    };
    // A command that is no agent's changes nothing.
    assert!(round(&Judging::at(
        None,
        None,
        Use::Apart,
        Box::new(world.clock.clone())
    )));
    assert!(!round(&others));
    assert_eq!(world.problem(), None);
}

/// Proves LJ-5.
///
/// Heartbeats are taken, so hooks that ask the server are answered; the bundle is not confirmed for ever by silence.
#[test]
fn a_bundle_that_is_not_answered_for_an_hour_of_heartbeats_is_taken_away() {
    let world = World::new();
    for (status, body) in [(503, refusal("unavailable")), (429, refusal("too_many_requests"))] {
        world.server.says("/policy-bundle", status, &body);
        for _ in 0..6 {
            world.round();
            world.clock.pass(600);
        }
        assert_eq!(world.judges(), (true, true), "{status}: fifty minutes");
        // One answer in between, and the hour begins again.
        let again = if status == 503 {
            signed(&bundle(&json!({})))
        } else {
            continue;
        };
        world.server.says("/policy-bundle", 200, &again);
        world.round();
    }
    world.round();
    assert_eq!(world.judges(), (false, false), "an hour");
    // A machine that slept, or a server that is wholly away, says nothing of the bundle.
    let world = World::new();
    world.server.is_silent_at("/policy-bundle");
    world.round();
    world.clock.pass(7_200);
    world.round();
    assert_eq!(world.judges(), (true, true), "two looks");
    world.server.is_silent_at("/heartbeat");
    for _ in 0..20 {
        world.clock.pass(600);
        world.round();
    }
    assert_eq!(world.judges(), (true, true), "away");
}

/// Proves LJ-5.
///
/// The latest instant is kept, grows without a server, and only the server makes it earlier.
#[test]
fn the_latest_instant_outlives_the_process_and_a_clock_that_is_set_back() {
    const DAY: u64 = 86_400;
    let world = World::new();
    let kept = || latest(&world.agent.folder).unwrap().unwrap();
    let first = kept();
    world.server.is_silent_at("/heartbeat");
    world.clock.pass(6 * DAY);
    world.round();
    assert_eq!(kept(), first.plus_secs(6 * 86_400));
    // Set back, it goes on by the time since the start.
    world.clock.jump(-5 * 86_400);
    world.clock.pass(3_600);
    world.round();
    assert_eq!(kept(), first.plus_secs(6 * 86_400 + 3_600));
    // The next process knows it.
    let begun = || {
        let registrar = HooksFile {
            path: world.path.join("hooks/hook.toml"),
            top: world.path.clone(),
            owner: geteuid().as_raw(),
            home: None,
        };
        let place = Place::of_person(&world.path.join("hooks"), geteuid().as_raw());
        let clock = Box::new(world.clock.clone());
        let next = Judging::at(Some(place), Some(registrar), Use::On, clock);
        next.begin(&world.agent, &|_| {}).unwrap();
        next.standing.now()
    };
    let standing = begun();
    assert!(standing.bench.is_some());
    assert_eq!(standing.latest, Some(Latest::new(kept(), &world.clock)));
    assert!(is_behind(world.clock.now(), kept()));
    // Where it cannot be read nothing is judged.
    let file = "judging.latest.json";
    world.agent.folder.replace(file, b"{").unwrap();
    assert!(begun().bench.is_none());
    world
        .server
        .says("/heartbeat", 200, &json!({ "nextHeartbeatSeconds": 300 }));
    // An answer that does not say the present puts nothing right but what could not be read.
    world.round();
    let before = kept();
    assert!(is_behind(world.clock.now(), before));
    world.clock.jump(-86_400);
    world.round();
    assert_eq!(kept(), before);
    // One that says it does, where a clock had been ahead as well; and what is set back behind it makes nothing earlier.
    let due = world.clock.now();
    *world.server.heartbeats.borrow_mut() = Some((world.clock.clone(), 3 * 86_400));
    world.round();
    assert_eq!(kept(), due);
    assert!(is_behind(world.clock.now(), kept()));
}

#[test]
fn nothing_judges_unless_it_was_declared() {
    let read = |words: &[&str]| {
        let command = clap::Command::new("run").arg(arg());
        Use::declared(&command.try_get_matches_from(words).unwrap())
    };
    assert_eq!((read(&["run"]), read(&["run", "--judge"])), (Use::Off, Use::On));
}

/// A log of one entry, as an agent writes it.
fn log_of(agent: &Agent, entry: &str) -> String {
    let nothing = "0".repeat(64);
    let hash = provost_words::digest::sha256_hex(format!("{nothing}{entry}").as_bytes());
    let text = format!("provost-decisions 1 1 {nothing}\n{hash} {entry}\n");
    let log = agent.folder.below("decisions").unwrap();
    log.replace(&format!("{:020}", 1), text.as_bytes()).unwrap();
    hash
}

fn decisions(agent: &Agent) -> Vec<(&'static str, Value)> {
    let all = provost_agent::uploads(&agent.folder).unwrap();
    let told = all.into_iter().filter(|upload| upload.kind == "decisions");
    told.map(|upload| (upload.state, serde_json::from_slice(&upload.body).unwrap()))
        .collect()
}

/// Proves LJ-14.
#[test]
fn the_words_of_a_newer_bundle_hold_from_then_on_and_those_of_an_older_one_never_again() {
    let world = World::new();
    let telling = || telling(&world.agent.folder);
    let least = ToldContent::LEAST;
    let full = |sequence: u64| {
        let told = json!({ "prompts": "full", "toolArguments": "full" });
        signed(&bundle(&json!({ "told": told, "sequence": sequence })))
    };
    world.server.says("/policy-bundle", 200, &full(9));
    world.round();
    assert_eq!(telling(), Telling::Events(ToldContent::ALL));
    let off = json!({ "prompts": "off", "toolArguments": "none" });
    world.server.says(
        "/policy-bundle",
        200,
        &signed(&bundle(&json!({ "told": off, "sequence": 11 }))),
    );
    world.round();
    assert_eq!(telling(), Telling::Events(least));
    world.server.says("/policy-bundle", 200, &full(10));
    world.round();
    assert!(matches!(telling(), Telling::Nothing), "{:?}", telling());
}

#[test]
fn what_this_machine_tells_of_calls_is_said_as_it_is_and_shown_as_it_was_sent() {
    let world = World::new();
    let telling = || telling(&world.agent.folder);
    // Of a bundle that says nothing of contents.
    let least = ToldContent::LEAST;
    assert_eq!(telling(), Telling::Events(least));
    let counted = |all: bool| {
        signed(&bundle(
            &json!({ "record": "counted", "recordAll": all, "sequence": 8 }),
        ))
    };
    for (is_all, said) in [(true, Telling::Events(least)), (false, Telling::Counts(least))] {
        world.server.says("/policy-bundle", 200, &counted(is_all));
        world.round();
        assert_eq!(telling(), said);
    }
    world.server.says("/policy-bundle", 404, &refusal("judging_off"));
    world.round();
    assert_eq!((telling(), decisions(&world.agent)), (Telling::Nothing, vec![]));
    // What waits is there before anybody took it.
    let entry = r#"{"kind":"event","attributes":{"prompt":"my secret plan"}}"#;
    let head = log_of(&world.agent, entry);
    assert_eq!(telling(), Telling::Rest);
    let sent = json!({ "from": 1, "previous": "0".repeat(64), "head": head, "entries": [entry] });
    assert_eq!(decisions(&world.agent), [("waits", sent.clone())]);
    world.round();
    assert_eq!(
        decisions(&world.agent),
        [("waits", sent.clone())],
        "nobody answered"
    );
    world
        .server
        .says("/decisions", 200, &json!({ "expected": 2, "head": head }));
    world.round();
    assert_eq!(decisions(&world.agent), [("taken", sent)]);
    let kept = provost_agent::uploads(&world.agent.folder).unwrap();
    let kept = kept.iter().find(|upload| upload.kind == "decisions").unwrap();
    let posts = world.server.told.borrow();
    let post = posts
        .iter()
        .rfind(|(path, _)| path.ends_with("/decisions"))
        .unwrap();
    assert_eq!(kept.body, post.1, "byte for byte");
    assert_eq!(telling(), Telling::Nothing);
    // Nobody can say by what a bundle makes this machine judge that is not believed.
    world.agent.folder.replace("policy-bundle.json", b"{}").unwrap();
    assert_eq!(telling(), Telling::Unsure);
    // What may hold prompts says so, and what holds none says that.
    let all = ToldContent::ALL;
    for (telling, says) in [
        (Telling::Nothing, "nothing is sent"),
        (
            Telling::Rest,
            "the prompt or the tool's arguments and result as far as",
        ),
        (
            Telling::Events(all),
            "the prompt, as the client says it (prompts: full)",
        ),
        (
            Telling::Counts(all),
            "a tool's arguments and results, as the client says them (toolArguments: full)",
        ),
        (Telling::Events(least), "no prompt (prompts: off)"),
        (
            Telling::Counts(least),
            "nothing of a tool's arguments and results (toolArguments: none)",
        ),
        (
            Telling::Unsure,
            "the prompt or the tool's arguments and result as far as",
        ),
    ] {
        let rules = provost_agent::rules(telling);
        let of_calls: Vec<_> = rules.iter().filter(|rule| rule.contains("…/decisions")).collect();
        assert_eq!(of_calls.len(), 1, "{telling:?}");
        assert!(of_calls[0].contains(says), "{telling:?}: {}", of_calls[0]);
        // No rule says of everything that prompts stay here.
        let never = rules
            .iter()
            .filter(|rule| rule.starts_with("never sent") && rule.contains("prompts"));
        assert!(
            never
                .into_iter()
                .all(|rule| rule.contains("of what is configured here")),
            "{telling:?}"
        );
    }
}

/// A place of hooks beside the world's folder, and a station that marks there.
fn held_by(world: &World, judges: Use) -> (Place, Judging) {
    let owner = geteuid().as_raw();
    let folder = world.path.join("hooks");
    let place = Place::of_person(&folder, owner);
    let registrar = HooksFile {
        path: folder.join("hook.toml"),
        top: world.path.clone(),
        owner,
        home: None,
    };
    let judging = Judging::at(
        Some(place.clone()),
        Some(registrar),
        judges,
        Box::new(world.clock.clone()),
    );
    (place, judging)
}

fn round_of(world: &World, judging: &Judging) {
    let done = now(once(&Loop {
        agent: &world.agent,
        door: &world.server,
        home: &world.path,
        clock: &world.clock,
        entropy: &SystemEntropy,
        say: &|_| {},
        stations: &[judging],
        stop: Arc::default(),
    }));
    drop(done);
}

/// Proves LJ-13.
#[test]
fn a_machine_that_is_held_apart_is_marked_until_a_heartbeat_takes_it_back() {
    const MARK: &str = "quarantine.json";
    let world = World::new();
    let us = of(&world.agent);
    let (place, judging) = held_by(&world, Use::On);
    let says = |word: &str| {
        let answer = json!({ "nextHeartbeatSeconds": 300, "quarantine": word });
        world.server.says("/heartbeat", 200, &answer);
    };
    let known = |judging: &Judging| {
        let noted = kept_quarantine(&world.agent.folder, us).unwrap();
        (
            place.quarantine(Some(us)),
            noted,
            judging.standing.now().quarantine,
        )
    };
    let (block, monitor) = (Some(Quarantine::Block), Some(Quarantine::Monitor));
    round_of(&world, &judging);
    assert_eq!(known(&judging), (None, None, None));
    assert!(judging.standing.now().bench.is_some());
    says("block");
    let held = json!({ "code": "conflict", "message": "no", "status": "quarantined" });
    world.server.says("/policy-bundle", 409, &held);
    round_of(&world, &judging);
    assert_eq!(known(&judging), (block, block, block));
    assert!(judging.standing.now().bench.is_none());
    // No answer without the word takes it back, and none at all.
    let unsaid = json!({ "nextHeartbeatSeconds": 300 });
    for (status, answer) in [
        (200, unsaid),
        (401, refusal("token_expired")),
        (503, refusal("busy")),
    ] {
        world.server.says("/heartbeat", status, &answer);
        round_of(&world, &judging);
        assert_eq!(known(&judging), (block, block, block), "{status}");
    }
    world.server.is_silent_at("/heartbeat");
    round_of(&world, &judging);
    assert_eq!(known(&judging), (block, block, block));
    // Whatever is lost of it is there again after a restart: by the mark, by the note, and where the note cannot be read.
    let begins = || {
        let (_, next) = held_by(&world, Use::On);
        next.begin(&world.agent, &|_| {}).unwrap();
        known(&next)
    };
    std::fs::remove_file(place.quarantine_mark()).unwrap();
    assert_eq!(begins(), (block, block, block));
    world.agent.folder.remove(MARK).unwrap();
    assert_eq!(begins(), (block, block, block));
    world.agent.folder.replace(MARK, b"{").unwrap();
    std::fs::remove_file(place.quarantine_mark()).unwrap();
    assert_eq!(begins(), (block, block, block));
    // An agent without the word, and a command that is none, take nothing back.
    for judges in [Use::Off, Use::Apart] {
        let (_, other) = held_by(&world, judges);
        other.begin_once(&world.agent, &|_| {}).unwrap();
        says("block");
        round_of(&world, &other);
        assert_eq!(place.quarantine(Some(us)), block, "{judges:?}");
    }
    says("none");
    let (_, apart) = held_by(&world, Use::Apart);
    round_of(&world, &apart);
    assert_eq!(place.quarantine(Some(us)), block);
    says("monitor");
    round_of(&world, &judging);
    assert_eq!(known(&judging), (monitor, monitor, monitor));
    says("isolate");
    round_of(&world, &judging);
    assert_eq!(
        known(&judging),
        (block, block, block),
        "an unknown word is the strongest"
    );
    says("none");
    world
        .server
        .says("/policy-bundle", 200, &signed(&bundle(&json!({ "sequence": 9 }))));
    round_of(&world, &judging);
    assert_eq!(known(&judging), (None, None, None));
    assert!(judging.standing.now().bench.is_some());
    // The one without the word takes back what the other one marked, and makes no mark.
    says("block");
    round_of(&world, &judging);
    let (_, off) = held_by(&world, Use::Off);
    says("none");
    round_of(&world, &off);
    assert_eq!(place.quarantine(Some(us)), None);
    says("block");
    round_of(&world, &off);
    assert_eq!(place.quarantine(Some(us)), None);
}

/// Proves LJ-13.
#[test]
fn a_machine_that_is_held_apart_hears_that_its_organization_enforces_and_keeps_it_with_the_mark() {
    let world = World::new();
    let us = of(&world.agent);
    let (place, judging) = held_by(&world, Use::On);
    let block = Some(Quarantine::Block);
    let held = json!({ "code": "conflict", "message": "no", "status": "quarantined" });
    // An organization that enforces afterwards is heard, without a bundle, and one that does not weakens nothing.
    world.server.says("/policy-bundle", 409, &held);
    let mode = || place.known_mode(Some(us));
    let kept = KeptMode {
        server: us.0.into(),
        organization: us.1.into(),
        mode: HookMode::Monitor,
        denies: false,
    };
    place.keep_mode(&kept).unwrap();
    for (word, known) in [
        ("monitor", HookMode::Monitor),
        ("enforce", HookMode::Enforce),
        ("monitor", HookMode::Enforce),
    ] {
        let answer = json!({ "nextHeartbeatSeconds": 300, "quarantine": "block", "hooksMode": word });
        world.server.says("/heartbeat", 200, &answer);
        round_of(&world, &judging);
        assert_eq!(mode(), Some(known), "{word}");
    }
    assert_eq!(judging.standing.now().mode, Some(HookMode::Enforce));
    // One that does not judge leaves the mode as long as the mark is there.
    let (_, off) = held_by(&world, Use::Off);
    off.begin_once(&world.agent, &|_| {}).unwrap();
    assert_eq!(
        (mode(), place.quarantine(Some(us))),
        (Some(HookMode::Enforce), block)
    );
    let free = json!({ "nextHeartbeatSeconds": 300, "quarantine": "none" });
    world.server.says("/heartbeat", 200, &free);
    round_of(&world, &off);
    assert_eq!((mode(), place.quarantine(Some(us))), (None, None));
}

/// Proves LJ-12.
///
/// A bundle that is lost takes nothing back; the server's word that nothing is judged here does, or calls of servers were refused for ever.
#[test]
fn that_servers_are_denied_is_known_until_a_bundle_or_the_server_says_otherwise() {
    let world = World::new();
    let us = of(&world.agent);
    let (place, judging) = held_by(&world, Use::On);
    let known = || (place.known_mode(Some(us)), place.knows_denials(Some(us)));
    let says = |status, body: &Value| {
        world.server.says("/policy-bundle", status, body);
        round_of(&world, &judging);
        known()
    };
    let enforces = Some(HookMode::Enforce);
    let denied = json!([{ "key": "npm:@evil/files", "standing": "denied" }]);
    let steps = [
        (
            "one is denied",
            200,
            signed(&bundle(&json!({ "servers": denied, "sequence": 8 }))),
            true,
        ),
        ("refused", 403, refusal("forbidden"), true),
        ("garbage", 200, json!({ "payload": "garbage" }), true),
        ("ill", 500, refusal("internal"), true),
        ("none is", 200, signed(&bundle(&json!({ "sequence": 9 }))), false),
        (
            "more than have room",
            200,
            signed(&bundle(&json!({ "serversWithheld": true, "sequence": 10 }))),
            true,
        ),
        ("no such operation", 404, refusal("not_found"), true),
        (
            "nothing is judged here",
            404,
            json!({ "code": "conflict", "message": "no", "status": IS_OFF }),
            false,
        ),
    ];
    for (what, status, body, denies) in steps {
        assert_eq!(says(status, &body), (enforces, denies), "{what}");
    }
}

/// Proves LJ-11.
#[test]
fn of_whom_the_list_of_accounts_knows_nothing_the_owners_home_alone_is_known() {
    let nobody = u32::MAX - 7;
    let registrar = HooksFile {
        path: "/none".into(),
        top: "/".into(),
        owner: nobody,
        home: Some("/net/ada".into()),
    };
    assert_eq!(registrar.home(nobody), Some("/net/ada".into()));
    assert_eq!(registrar.home(nobody - 1), None);
    // Where the list has one, that counts.
    assert_eq!(registrar.home(0), home_of(0, Path::new(ACCOUNTS)));
}
