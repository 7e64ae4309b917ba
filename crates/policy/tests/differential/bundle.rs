//! What a device says by its bundle against what the server says: the same, or that the server has to be asked.

use crate::naive::Plain;
use crate::random::{self, Dice};
use crate::words::{NamedPerson, told};
use crate::{case::family, compile, seeds};
use provost_bundle::{
    Addressee, AskedEvent, BundleInputs, HookMode, Hooks, Judge, Judgement, OnUnknown, People, PolicyBundle,
    Recording, ToldContent, Verdict, read,
};
use provost_policy::{
    Event, Occasion, PolicySet, Register, SentAttributes, SubjectStates, Symbols, without_missing,
};
use provost_words::Timestamp;
use serde_json::Value;
use std::sync::Arc;

const DEVICE: &str = "d1";

/// Returns what the server says of an event, and lets it be a part of the past.
fn server(
    set: &PolicySet,
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
    let outcome = set.judge(&event, symbols, chronicle);
    chronicle.observe(set, &event, symbols);
    Verdict::of_event(&outcome, &event, symbols).unwrap()
}

fn judge(set: &PolicySet, register: &Register, owner: Option<&str>, room: usize) -> Judge {
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
            denied: vec![],
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

/// Returns what is said without the words that nobody on a device can resolve.
fn told_of(verdict: &Verdict) -> Value {
    let mut said = serde_json::to_value(verdict).unwrap();
    said.as_object_mut().unwrap().remove("unresolved");
    said
}

/// Proves LJ-1.
#[test]
fn a_device_says_what_the_server_says_or_asks_it() {
    let (mut pairs, mut certain, mut blocked, mut strangers) = (0_u64, 0_u64, 0_u64, 0_u64);
    for seed in seeds(90_000, 150) {
        let NamedPerson {
            mut world,
            policies,
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
        let set = compile(&policies);
        // One in three has not room for every policy.
        let room = if dice.one_in(3) {
            dice.below(4_000)
        } else {
            2 << 20
        };
        let judge = judge(&set, &register, owner, room);
        let mut symbols = Symbols::knowing(Arc::clone(&register));
        let mut chronicle = SubjectStates::new();
        for (at, plain) in history.iter().enumerate() {
            let mut plain = plain.clone();
            // Most of what is judged on a machine is of its own people.
            if let Some(owner) = owner.filter(|_| dice.one_in(2)) {
                plain.missing.retain(|name| *name != "identity.user_id");
                plain.attributes.insert("identity.user_id".into(), owner.into());
            }
            let occasion = Occasion::named(family(plain.family), plain.occasion).unwrap();
            let expected = server(&set, &mut symbols, &mut chronicle, &plain, occasion);
            let asked = AskedEvent {
                occasion,
                attributes: plain.attributes.clone(),
                missing: plain.missing.iter().map(|name| (*name).to_owned()).collect(),
            };
            let said = judge.judge(Timestamp::from_ms(plain.at_ms), &asked).unwrap();
            let place = format!("seed {seed}, event {at}: {plain:?}");
            pairs += 1;
            match &said {
                Judgement::Verdict(verdict) => {
                    assert_eq!(told_of(verdict), told_of(&expected), "{place}");
                    certain += 1;
                    blocked += u64::from(verdict.action() > provost_policy::Action::Allow);
                }
                // What holds without an answer is never weaker than what the server would say.
                Judgement::Ask(verdict) => {
                    assert!(verdict.action() >= expected.action(), "{place}");
                    strangers += u64::from(verdict.action() > expected.action());
                }
            }
        }
    }
    // The cases meet everything that they are for.
    println!(
        "{pairs} pairs, {certain} certain, {blocked} of them not allowed, {strangers} stronger without an answer"
    );
    assert!(certain > pairs / 50 && blocked > 50, "{certain} {blocked}");
    assert!(certain < pairs && strangers > 0, "{certain} {strangers}");
}
