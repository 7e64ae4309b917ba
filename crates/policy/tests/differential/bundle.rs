//! What a device says by its bundle against what the server says: the same, or that the server has to be asked.

use crate::naive::{Plain, fold};
use crate::random::{self, Dice};
use crate::words::{NamedPerson, told};
use crate::{case::family, compile, seeds};
use provost_bundle::{
    Addressee, AskedEvent, BundleInputs, HookMode, Hooks, Judge, Judgement, OnUnknown, People, PolicyBundle,
    Recording, SERVERS_LIMIT, ToldContent, Verdict, read,
};
use provost_policy::{
    Event, Occasion, PolicySet, Register, SentAttributes, SubjectStates, Symbols, without_missing,
};
use provost_words::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

const DEVICE: &str = "d1";
const PACKAGE: &str = "mcp.package_id";
/// Keys of MCP servers; two of them are one name.
const SERVERS: [&str; 4] = ["npm:evil", "npm:Evil", "npm:nice", "pypi:odd"];

/// How MCP servers stand, by their keys.
struct Inventory {
    denied: Vec<String>,
    /// The same as names are compared.
    names: Vec<String>,
    /// Those about which somebody decided something else.
    allowed: Vec<&'static str>,
}

impl Inventory {
    fn of(dice: &mut Dice) -> Self {
        let (mut denied, mut allowed) = (Vec::new(), Vec::new());
        for key in SERVERS {
            match dice.below(3) {
                0 => denied.push(key.to_owned()),
                1 => allowed.push(key),
                _ => {}
            }
        }
        // One in six denies more than a bundle has room for, which comes before all others: it holds none of them.
        if dice.one_in(6) {
            denied.push(format!("git:{}", "x".repeat(SERVERS_LIMIT)));
        }
        denied.sort_unstable();
        let names = denied.iter().map(|key| fold(key)).collect();
        Self {
            denied,
            names,
            allowed,
        }
    }

    /// Returns the denied server that a call is of as the server sees it: by its key to the letter, else by another spelling of one that is
    /// nobody else's key.
    fn denied(&self, plain: &Plain) -> Option<&str> {
        if plain.missing.contains(&PACKAGE) {
            return None;
        }
        let key = plain.attributes.get(PACKAGE)?.as_str()?;
        let found = match self.denied.iter().position(|denied| denied == key) {
            None if self.allowed.contains(&key) => None,
            None => self.names.iter().position(|name| *name == fold(key)),
            found => found,
        };
        found.map(|at| self.denied[at].as_str())
    }
}

/// Returns a policy about servers by their keys.
fn about_servers(dice: &mut Dice) -> (&'static str, Value) {
    let key = dice.pick(&SERVERS);
    let one = random::respelt(dice, key);
    let conditions = match dice.below(3) {
        0 => json!({ "field": PACKAGE, "op": "eq", "value": one }),
        1 => json!({ "field": PACKAGE, "op": "neq", "value": one }),
        _ => json!({ "not": { "field": PACKAGE, "op": "in", "value": [one, "npm:known"] } }),
    };
    let action = dice.pick(&["flag_for_review", "nudge", "block"]);
    let policy = json!({ "id": "servers", "name": "servers", "enabled": true, "appliesTo": {}, "acknowledgeBroadScope": true,
        "evaluateOn": ["pre_tool", "post_tool"], "conditions": conditions, "action": action });
    ("content", policy)
}

/// Has an event be of a call of a server, in some spelling, or of one that nobody can say.
fn call_server(dice: &mut Dice, plain: &mut Plain) {
    match dice.below(6) {
        _ if plain.family != "content" => {}
        0 => plain.missing.push(PACKAGE),
        1..5 => {
            let key = dice.pick(&SERVERS);
            let key = random::respelt(dice, key);
            plain.attributes.insert(PACKAGE.to_owned(), key.into());
        }
        _ => {}
    }
}

/// Returns what the server says of an event, and lets it be a part of the past.
fn server(
    set: &PolicySet,
    inventory: &Inventory,
    symbols: &mut Symbols,
    chronicle: &mut SubjectStates,
    plain: &Plain,
    occasion: Occasion,
) -> Verdict {
    let mut given = plain.attributes.clone();
    let mut missing: Vec<String> = plain.missing.iter().map(|name| (*name).to_owned()).collect();
    let register = Arc::clone(symbols.register());
    SentAttributes {
        given: &mut given,
        missing: &mut missing,
    }
    .name(&register);
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    let attributes = without_missing(occasion, &given, &missing).unwrap();
    let event = Event::read(symbols, plain.at_ms, occasion, &attributes, &missing).unwrap();
    let mut outcome = set.judge(&event, symbols, chronicle);
    chronicle.observe(set, &event, symbols);
    let denied = inventory.denied(plain);
    if denied.is_some() {
        outcome.refuse();
    }
    let mut verdict = Verdict::of_event(&outcome, &event, symbols).unwrap();
    if let Some(key) = denied {
        verdict.deny(key);
    }
    verdict
}

fn judge(
    set: &PolicySet,
    register: &Register,
    owner: Option<&str>,
    room: usize,
    denied: Vec<String>,
) -> Judge {
    let people = owner.and_then(|owner| People::of(register, owner));
    let people = people.unwrap_or_default();
    let bundle = PolicyBundle::within(
        set,
        BundleInputs {
            organization_id: "org_1".into(),
            device_id: DEVICE.into(),
            store_epoch: 0,
            sequence: 1,
            version: ("psv_1".into(), 1),
            issued_at: Timestamp::from_ms(random::START_MS),
            not_after: Timestamp::from_ms(random::START_MS + 1),
            mode: HookMode::Enforce,
            hooks: Hooks {
                deadline_ms: 400,
                on_unknown: OnUnknown::Block,
            },
            record: Recording::All,
            told: ToldContent::LEAST,
            users: people.users,
            groups: people.groups,
            denied,
            bypass: None,
        },
        room,
    );
    let addressee = Addressee {
        organization_id: "org_1",
        device_id: DEVICE,
        floor: None,
    };
    // Over the wire.
    let bundle = read(bundle.unwrap().canonical().as_bytes(), &addressee).unwrap();
    Judge::new(bundle).unwrap()
}

/// Returns what is said without the words that nobody on a device can resolve, and of a refusal by the standing of a server the refusal: which
/// policies would have had a part in it the device may not know.
fn told_of(verdict: &Verdict) -> Value {
    let mut said = serde_json::to_value(verdict).unwrap();
    said.as_object_mut().unwrap().remove("unresolved");
    if verdict.is_by_standing() {
        said.as_object_mut()
            .unwrap()
            .retain(|name, _| ["action", "basis", "mcpServer", "obligations"].contains(&name.as_str()));
    }
    said
}

/// Proves LJ-1, LJ-12.
#[test]
fn a_device_says_what_the_server_says_or_asks_it() {
    let (mut pairs, mut certain, mut blocked, mut strangers) = (0_u64, 0_u64, 0_u64, 0_u64);
    // Calls of servers that are denied: what a device is sure of, and what it asks about, by another spelling or without room.
    let (mut denied, mut denied_asked) = (0_u64, 0_u64);
    for seed in seeds(90_000, 150) {
        let NamedPerson {
            mut world,
            mut policies,
            history,
        } = told(seed, 80);
        // The server's registers tell which words several have.
        world.tells_shared = true;
        let mut dice = Dice::new(seed);
        let register = Arc::new(random::register(&world));
        let users: Vec<&str> = world
            .all
            .iter()
            .filter(|one| one.field == "identity.user_id")
            .map(|one| one.id.as_str())
            .collect();
        // One in four devices is nobody's.
        let owner = (!users.is_empty() && !dice.one_in(4)).then(|| dice.pick(&users));
        if dice.one_in(2) {
            policies.push(about_servers(&mut dice));
        }
        let set = compile(&policies);
        // One in three has not room for every policy.
        let room = if dice.one_in(3) {
            dice.below(4_000)
        } else {
            2 << 20
        };
        let inventory = Inventory::of(&mut dice);
        let judge = judge(&set, &register, owner, room, inventory.denied.clone());
        let mut symbols = Symbols::knowing(Arc::clone(&register));
        let mut chronicle = SubjectStates::new();
        for (at, plain) in history.iter().enumerate() {
            let mut plain = plain.clone();
            call_server(&mut dice, &mut plain);
            // Most of what is judged on a machine is of its own people.
            if let Some(owner) = owner.filter(|_| dice.one_in(2)) {
                plain.missing.retain(|name| *name != "identity.user_id");
                plain.attributes.insert("identity.user_id".into(), owner.into());
            }
            let occasion = Occasion::named(family(plain.family), plain.occasion).unwrap();
            let expected = server(&set, &inventory, &mut symbols, &mut chronicle, &plain, occasion);
            let asked = AskedEvent {
                occasion,
                attributes: plain.attributes.clone(),
                missing: plain.missing.iter().map(|name| (*name).to_owned()).collect(),
            };
            let said = judge.judge(Timestamp::from_ms(plain.at_ms), &asked).unwrap();
            let place = format!("seed {seed}, event {at}: {plain:?}");
            pairs += 1;
            let is_denied = u64::from(expected.is_by_standing());
            match &said {
                Judgement::Verdict(verdict) => {
                    assert_eq!(told_of(verdict), told_of(&expected), "{place}");
                    certain += 1;
                    denied += is_denied;
                    blocked += u64::from(verdict.action() > provost_policy::Action::Allow);
                }
                // What holds without an answer is never weaker than what the server would say.
                Judgement::Ask(verdict) => {
                    assert!(verdict.action() >= expected.action(), "{place}");
                    strangers += u64::from(verdict.action() > expected.action());
                    denied_asked += is_denied;
                }
            }
        }
    }
    // The cases meet everything that they are for.
    println!(
        "{pairs} pairs, {certain} certain, {blocked} of them not allowed, {strangers} stronger without an answer; of servers that are denied \
         {denied} certain, {denied_asked} asked about"
    );
    assert!(certain > pairs / 50 && blocked > 50, "{certain} {blocked}");
    assert!(certain < pairs && strangers > 0, "{certain} {strangers}");
    assert!(
        denied > pairs / 100 && denied_asked > pairs / 200,
        "{denied} {denied_asked}"
    );
}
