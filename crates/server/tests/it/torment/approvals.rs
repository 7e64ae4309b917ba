//! Whether more calls pass by an approval than it says, in whatever order things happen (AP-1, F8.5).
//!
//! ```text
//! hands: plan (what is there now) ···· apply: at once, late, beside others, twice, or with the process gone before the commit
//! people: approve · deny · take back · revoke · cancel          machine: time passes · the clock is set back · the sweep · rights change
//! ```
//!
//! An interleaving is one call of one subject and some twenty such steps, drawn by its seed alone, on the real store; on PostgreSQL half of
//! the steps are another server's on the same store. What passed is what a hand was told after its commit: that has to be what the record
//! says was used, one by one, and no more than the grant says; and nothing passes that nobody approved, or that has ended.
//!
//! Absent on purpose: the machine below, which `cargo xtask crash` and `power` kill; the order within one unit, which the model's own
//! test has (`no_interleaving_lets_more_pass_than_the_grant_says`).

use super::run::{self, Progress};
use crate::policy::approvals::{Scene, rm, scene};
use crate::policy::approvals_people::Person;
use crate::support::{App, Dice, Reply, fresh_key, seed};
use provost_areas_policy::approvals::{self, Answer, BoundPolicy, Call, Party, Plan, Question};
use provost_areas_policy::history::IncomingEvent;
use provost_kernel::db::Location;
use provost_kernel::error::Error;
use provost_kernel::{OperationContext, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Interleavings of one hour of the clock: as many as its share of requests is enough for.
const OF_AN_HOUR: u64 = 24;
/// Subjects of an hour.
const SUBJECTS: usize = 12;
/// Hours of one store.
const HOURS: u64 = 40;
const STEPS: usize = 20;
/// What is asked for by this tool takes two people.
const GUARDED: &str = "Write";

/// How often something happened.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

/// Proves AP-1, AP-5, AP-7, AP-12.
#[test]
fn no_order_of_what_happens_lets_more_pass_than_was_approved() {
    let (seed, whole) = (seed("approvals"), run::count(96));
    let mut figures = Map::new();
    for place in 0..run::stores("approvals_engines").len() {
        let progress = Progress::of("approvals", whole);
        let (mut done, mut counts, mut engine) = (0, Counts::default(), "");
        while done < whole {
            let store = run::stores("approvals").swap_remove(place);
            let location = store.location();
            engine = run::engine(&location);
            let part = (OF_AN_HOUR * HOURS).min(whole - done);
            run::runtime().block_on(async {
                let app = Arc::new(App::start(location.clone(), run::roomy()).await);
                let mut servers = vec![app.clone()];
                if matches!(location, Location::Postgres(_)) {
                    let second = app.beside(vec![], app.clock.clone(), run::roomy(), location.clone());
                    servers.push(Arc::new(second));
                }
                let mut world = World::of(servers).await;
                for n in done..done + part {
                    if n % OF_AN_HOUR == 0 {
                        world.begins_an_hour().await;
                    }
                    Interleaving::run(&mut world, seed.wrapping_add(n), &mut counts).await;
                    progress.add(1);
                }
                for server in &world.servers {
                    server.kernel.stop().await;
                }
                let _ = std::fs::remove_dir_all(&app.keys_dir);
            });
            done += part;
        }
        // So that a run in which hardly anything passes, meets or ends is none.
        for what in ["passed", "moved", "repeated", "died", "revoked", "expired"] {
            assert!(
                whole < 96 || counts.of(what) >= whole / 48,
                "{what}: {:?}",
                counts.0
            );
        }
        assert!(whole < 24 || counts.of("passed") > 0, "{:?}", counts.0);
        let mut found = json!({ "seed": seed, "interleavings": whole, "tooMany": 0 });
        for (what, count) in &counts.0 {
            found[*what] = json!(count);
        }
        figures.insert(engine.to_owned(), found);
    }
    run::report("approvals", &Value::Object(figures));
}

/// Whoever says something of requests.
struct Voter {
    person: Person,
    token: String,
}

/// What interleavings share.
struct World {
    servers: Vec<Arc<App>>,
    scene: Scene,
    asker: Party,
    voters: Vec<Voter>,
    policies: Vec<BoundPolicy>,
    subjects: Vec<String>,
    /// How many calls there were: each has arguments of its own.
    calls: u64,
    events: u64,
}

impl World {
    async fn of(servers: Vec<Arc<App>>) -> Self {
        let app = &servers[0];
        let scene = scene(app).await;
        let two = json!({ "name": "two", "match": { "tool": GUARDED }, "approvers": { "roles": ["admin"] }, "quorum": 2,
            "deadlineSeconds": 3_600, "onDeadline": "expire" });
        let routes = json!({ "routes": [two], "expectedRevision": 0 });
        app.write("PUT", "/approval-routes", routes).await.ok();
        let mut voters = Vec::new();
        for name in ["cay", "dan"] {
            let person = Person::of(app, name, "admin").await;
            let token = person.token(app).await;
            voters.push(Voter { person, token });
        }
        let id = scene.waits(&rm("/first")).await;
        let policies = serde_json::from_value(scene.shown(&id).await["policies"].clone()).unwrap();
        let asker = Party {
            kind: "service_account".into(),
            id: scene.hook_id.clone(),
        };
        Self {
            servers,
            scene,
            asker,
            voters,
            policies,
            subjects: Vec::new(),
            calls: 0,
            events: 0,
        }
    }

    fn app(&self) -> &Arc<App> {
        &self.servers[0]
    }

    /// Has what was asked for in the hour before count no more, and others be asked for.
    async fn begins_an_hour(&mut self) {
        self.app().advance(3_700);
        self.subjects.clear();
        for number in 0..SUBJECTS {
            let (id, _) = self
                .app()
                .account(
                    &format!("subject {number} {}", fresh_key()),
                    "operator",
                    &["policies:read"],
                )
                .await;
            self.subjects.push(id);
        }
    }

    /// Has somebody say something; whoever's session has ended signs in again.
    async fn says(&mut self, who: usize, id: &str, verb: &str, body: Value) -> Reply {
        let reply = self
            .scene
            .act(&self.voters[who].token, id, verb, body.clone())
            .await;
        if reply.status != 401 {
            return reply;
        }
        let app = self.servers[0].clone();
        self.voters[who].token = self.voters[who].person.token(&app).await;
        self.scene.act(&self.voters[who].token, id, verb, body).await
    }
}

/// A plan that a hand holds.
#[derive(Clone)]
struct Held {
    event: String,
    plan: Plan,
    /// Whether its unit was committed.
    is_done: bool,
}

/// What is known of one approval.
#[derive(Default)]
struct Known {
    digest: Value,
    quorum: usize,
    /// Who said yes.
    yes: BTreeSet<usize>,
    /// Whether somebody was told that it ended.
    has_ended: bool,
    /// Until when what was approved holds.
    until: Option<Timestamp>,
    /// The decisions that were told that they pass.
    passed: BTreeSet<String>,
}

struct Interleaving<'a> {
    world: &'a mut World,
    counts: &'a mut Counts,
    dice: Dice,
    seed: u64,
    subject: String,
    tool: &'static str,
    input: Value,
    held: Vec<Held>,
    known: BTreeMap<String, Known>,
    /// The requests in the order in which they were heard of.
    ids: Vec<String>,
    trace: Vec<String>,
    was_narrowed: bool,
}

impl<'a> Interleaving<'a> {
    async fn run(world: &'a mut World, seed: u64, counts: &'a mut Counts) {
        let mut dice = Dice::of(seed);
        world.calls += 1;
        let input = rm(&format!("/{}", world.calls));
        let subject = dice.pick(&world.subjects).clone();
        let tool = if dice.chance(3) { GUARDED } else { "Bash" };
        let mut one = Interleaving {
            world,
            counts,
            dice,
            seed,
            subject,
            tool,
            input,
            held: Vec::new(),
            known: BTreeMap::new(),
            ids: Vec::new(),
            trace: Vec::new(),
            was_narrowed: false,
        };
        for _ in 0..STEPS {
            one.step().await;
        }
        one.judge().await;
    }

    fn note(&mut self, line: String) {
        self.trace.push(line);
    }

    fn must(&self, is_so: bool, what: &str) {
        assert!(
            is_so,
            "{what}\n{}\nrun it again with: cargo xtask torment approvals --count 1 --seed {}",
            self.trace.join("\n"),
            self.seed
        );
    }

    fn event(&self) -> Value {
        let mut event = self.world.scene.event(&self.input);
        event["attributes"]["identity.service_account_id"] = json!(self.subject);
        event["attributes"]["tool.id"] = json!(self.tool);
        event
    }

    fn server(&mut self) -> Arc<App> {
        self.dice.pick(&self.world.servers).clone()
    }

    async fn step(&mut self) {
        match self.dice.below(24) {
            0..=5 => self.plan().await,
            6..=9 => self.apply_one().await,
            10 | 11 => self.apply_all().await,
            12 => self.die().await,
            13 | 14 => self.ask().await,
            15..=18 => self.vote().await,
            19 => self.end().await,
            20 | 21 => self.wait().await,
            22 => self.sweep().await,
            _ => self.disturb().await,
        }
    }

    async fn plan(&mut self) {
        let server = self.server();
        self.world.events += 1;
        let event = format!("hev_{}", self.world.events);
        let incoming = IncomingEvent::parse(&self.event()).unwrap();
        let questions = Arc::new(vec![Question {
            event_id: event.clone(),
            call: Call::of(&incoming),
            policies: self.world.policies.clone(),
            call_number: 0,
        }]);
        let plan = approvals::plan(&server.kernel, &server.org(), &self.world.asker, &questions)
            .await
            .unwrap();
        self.note(format!("{event} plans {:?}", plan.answers[0]));
        self.held.push(Held {
            event,
            plan,
            is_done: false,
        });
    }

    /// A hand writes what it planned, and may do so again: whoever got no answer does not know that it was committed.
    async fn apply_one(&mut self) {
        if self.held.is_empty() {
            return self.plan().await;
        }
        let (place, server) = (self.dice.below(self.held.len()), self.server());
        let held = self.held[place].clone();
        let done = apply(&server, &held.plan, false).await;
        self.settled(&held, done).await;
        if done && self.dice.chance(2) {
            self.held[place].is_done = true;
        } else {
            self.held.remove(place);
        }
    }

    /// Every hand writes at once.
    async fn apply_all(&mut self) {
        let held = std::mem::take(&mut self.held);
        let mut hands = JoinSet::new();
        for one in held {
            let server = self.server();
            hands.spawn(async move {
                let done = apply(&server, &one.plan, false).await;
                (one, done)
            });
        }
        let mut settled = hands.join_all().await;
        // Whichever came first: what follows is drawn by the seed alone.
        settled.sort_by(|(one, _), (other, _)| one.event.cmp(&other.event));
        for (one, done) in settled {
            self.settled(&one, done).await;
        }
    }

    /// The process ends before the commit of what a hand wrote.
    async fn die(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let (place, server) = (self.dice.below(self.held.len()), self.server());
        let held = self.held.remove(place);
        let done = apply(&server, &held.plan, true).await;
        self.must(!done, "a unit that failed was committed");
        self.counts.add("died");
        self.note(format!("{} dies before its commit", held.event));
    }

    /// Notes what a hand was told after its commit.
    async fn settled(&mut self, held: &Held, done: bool) {
        self.note(format!("{} is written: {done}", held.event));
        if !done {
            self.counts.add("moved");
            return;
        }
        self.counts.add(if held.is_done { "repeated" } else { "written" });
        match &held.plan.answers[0] {
            Answer::Granted { id, .. } => self.passes(id.as_str(), &held.event),
            Answer::Waiting { id, .. } => self.hears_of(id.as_str()).await,
            Answer::Unbound(_) => self.counts.add("refused"),
        }
    }

    /// Asks as a hook does.
    async fn ask(&mut self) {
        let decision = self.world.scene.decide(&self.event()).await;
        self.note(format!("a hook is told {decision}"));
        if let Some(id) = decision["grant"]["requestId"].as_str() {
            self.must(decision["action"] == "allow", "a grant that does not allow");
            let event = decision["eventId"].as_str().unwrap().to_owned();
            self.passes(id, &event);
            return;
        }
        self.must(
            decision["action"] == "require_approval",
            "a call passes without a grant",
        );
        if let Some(id) = decision["approval"]["requestId"].as_str() {
            self.hears_of(id).await;
        }
    }

    fn passes(&mut self, id: &str, event: &str) {
        let now = self.world.app().kernel.latest();
        let Some(known) = self.known.get_mut(id) else {
            return self.must(false, "a call passes by an approval that nobody asked for here");
        };
        if !known.passed.insert(event.to_owned()) {
            return;
        }
        let is_due = known.yes.len() >= known.quorum && known.until.is_some_and(|until| now < until);
        let has_ended = known.has_ended;
        self.counts.add("passed");
        self.must(is_due, "a call passes that too few approved, or too late");
        self.must(!has_ended, "a call passes by an approval that has ended");
    }

    async fn hears_of(&mut self, id: &str) {
        if self.known.contains_key(id) {
            return;
        }
        let shown = self.world.scene.shown(id).await;
        let known = Known {
            digest: shown["preview"]["bindingDigest"].clone(),
            quorum: if self.tool == GUARDED { 2 } else { 1 },
            ..Known::default()
        };
        self.known.insert(id.to_owned(), known);
        self.ids.push(id.to_owned());
    }

    async fn vote(&mut self) {
        let Some(id) = self.ids.last().cloned() else {
            return;
        };
        let who = self.dice.below(self.world.voters.len());
        let decision = match self.dice.below(16) {
            0 => "deny",
            1 => "abstain",
            _ => "approve",
        };
        let body = json!({ "decision": decision, "bindingDigest": self.known[&id].digest });
        let reply = self.world.says(who, &id, "decision", body).await;
        self.note(format!("{who} says {decision} of {id}: {}", reply.text()));
        if reply.status != 200 {
            self.counts.add("voteRefused");
            return;
        }
        let approval = &reply.json["approval"];
        let known = self.known.get_mut(&id).unwrap();
        match decision {
            "approve" => drop(known.yes.insert(who)),
            _ => drop(known.yes.remove(&who)),
        }
        known.has_ended |= decision == "deny";
        if let Some(until) = approval["grant"]["expiresAt"].as_str() {
            known.until = Some(Timestamp::parse(until).unwrap());
        }
        self.counts.add("votes");
    }

    /// Somebody takes back what was asked for, or approved.
    async fn end(&mut self) {
        if self.ids.is_empty() {
            return;
        }
        let id = self.dice.pick(&self.ids).clone();
        let (verb, what) = if self.dice.chance(3) {
            ("cancel", "canceled")
        } else {
            ("revoke", "revoked")
        };
        let reply = self.world.says(0, &id, verb, json!({})).await;
        self.note(format!("{verb} of {id}: {}", reply.text()));
        if reply.status == 200 {
            self.known.get_mut(&id).unwrap().has_ended = true;
            self.counts.add(what);
        }
    }

    async fn wait(&mut self) {
        let secs = *self.dice.pick(&[1, 60, 300, 901]);
        self.world.app().advance(secs);
        self.note(format!("{secs} s pass"));
        if self.dice.chance(2) {
            self.world.app().kernel.keep_time().await.unwrap();
        }
    }

    async fn sweep(&mut self) {
        let server = self.server();
        for area in server
            .kernel
            .areas()
            .iter()
            .filter(|area| area.name == "approvals")
        {
            for timer in area.timers {
                (timer.run)(server.kernel.clone(), false).await.unwrap();
            }
        }
        self.note("the sweep".to_owned());
    }

    /// What seldom happens.
    async fn disturb(&mut self) {
        if self.dice.chance(2) && !self.was_narrowed {
            self.was_narrowed = true;
            let path = format!("/service-accounts/{}", self.subject);
            let role = if self.dice.chance(2) { "viewer" } else { "operator" };
            let reply = self
                .world
                .app()
                .write("PATCH", &path, json!({ "permissionRole": role }))
                .await;
            self.note(format!("the subject becomes {role}: {}", reply.status));
            self.counts.add("rightsChanged");
            return;
        }
        // Whatever is planned, applied or said meanwhile, and the clock comes there again.
        let app = self.world.app().clone();
        for server in &self.world.servers {
            server.kernel.keep_time().await.unwrap();
        }
        app.clock.step_ms(-1_800_000);
        self.note("the clock is set back".to_owned());
        let passed = self.counts.of("passed");
        self.plan().await;
        self.apply_all().await;
        self.ask().await;
        self.sweep().await;
        self.must(
            passed == self.counts.of("passed"),
            "a call passes by a clock that was set back",
        );
        self.world.app().clock.step_ms(1_800_000);
        self.note("the clock is right again".to_owned());
        self.counts.add("setBack");
    }

    /// Compares what passed with what the records say was used.
    async fn judge(mut self) {
        for id in self.ids.clone() {
            let shown = self.world.scene.shown(&id).await;
            let grant = &shown["grant"];
            let uses: BTreeSet<String> = grant["uses"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| one["eventId"].as_str().unwrap().to_owned())
                .collect();
            let listed = grant["uses"].as_array().map_or(0, Vec::len);
            self.note(format!("at the end: {shown}"));
            let most = grant["maxUses"].as_u64().unwrap_or_default();
            let passed = &self.known[&id].passed;
            self.must(uses.len() == listed, "a use is recorded twice");
            self.must(listed as u64 <= most, "more uses than the grant says");
            self.must(passed.len() as u64 <= most, "more calls pass than the grant says");
            self.must(*passed == uses, "what passed is not what was used");
            self.must(
                (shown["state"] == "used") == (!passed.is_empty() && listed as u64 == most),
                "the state is not that of its uses",
            );
            if shown["state"] == "expired" || shown["state"] == "void" {
                self.counts.add(if shown["state"] == "void" {
                    "void"
                } else {
                    "expired"
                });
            }
            self.counts.add("approvals");
        }
    }
}

/// Writes what a plan needs in a unit of its own, and says whether it was committed.
async fn apply(server: &App, plan: &Plan, dies: bool) -> bool {
    let plan = plan.clone();
    let write = move |ctx: &mut OperationContext<'_>| {
        approvals::apply(ctx, &plan)?;
        if dies {
            return Err(Error::internal("the process ended"));
        }
        Ok(())
    };
    let done = server
        .kernel
        .system(server.org(), Some("approvals.settled"), write)
        .await;
    done.is_ok()
}
