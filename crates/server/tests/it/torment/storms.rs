//! One request sent many times at once by clients that come and go, for every operation that changes anything (R10),
//! and other requests under its key (R13).
//!
//! The storm itself is the test `a_storm_of_one_request_has_one_effect_and_one_answer` of `idempotency.rs`.

use super::run::{self, Progress};
use crate::mechanisms::idempotency::{RepeatableRequest, assert_one_effect, ends, fixture, writes};
use crate::support::{App, Dice, Reply, at_night, cut_after, seed};
use provost_kernel::operation::{Access, Kind};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Storms over one store.
const EPOCH: u64 = 400;

#[derive(Default)]
struct Counts {
    /// Requests, those included whose clients left.
    sent: u64,
    left: u64,
    answered: u64,
}

/// Storms over all operations in turn, on every engine of this run.
pub fn rage() {
    let seed = seed("storms");
    let mut figures = Map::new();
    // Each operation once, at night three times, unless somebody wants more.
    let rounds = if at_night() { 3 } else { 1 };
    let registry = provost_server::app::registry().unwrap();
    let changing = registry
        .entries()
        .iter()
        .filter(|entry| entry.meta.kind == Kind::Write);
    let whole = run::count(rounds * changing.count() as u64);
    for place in 0..run::stores("storms_engines").len() {
        let progress = Progress::of("storms", whole);
        let (mut total, mut done, mut engine) = (Counts::default(), 0, "");
        let mut operations = BTreeSet::new();
        while done < whole {
            let store = run::stores("storms").swap_remove(place);
            engine = run::engine(&store.location());
            run::runtime().block_on(async {
                let app = Arc::new(App::start(store.location(), run::roomy()).await);
                let writes = writes(&app);
                for n in done..whole.min(done + EPOCH) {
                    let operation = writes[usize::try_from(n).unwrap() % writes.len()];
                    let round = n / writes.len() as u64;
                    storm(&app, operation, round, seed.wrapping_add(n), &mut total).await;
                    operations.insert(operation);
                    progress.add(1);
                }
                app.kernel.stop().await;
                let _ = std::fs::remove_dir_all(&app.keys_dir);
            });
            done = whole.min(done + EPOCH);
        }
        assert!(
            total.left > 0 && total.answered > total.left,
            "{} {}",
            total.left,
            total.answered
        );
        let found = json!({
            "seed": seed, "storms": whole, "operations": operations.len(), "requests": total.sent,
            "disconnects": total.left, "answers": total.answered, "doubleEffects": 0,
        });
        figures.insert(engine.to_owned(), found);
    }
    run::report("storms", &Value::Object(figures));
}

/// Clients that send one request together and again, and leave when they like.
async fn storm(app: &Arc<App>, operation: &str, round: u64, seed: u64, counts: &mut Counts) {
    let mut dice = Dice::of(seed);
    let wanted = fixture(app, operation).await;
    let from = ends(app).await;
    let size = [2, 64, 2 + dice.below(63)][usize::try_from(round % 3).unwrap()];
    let mut clients = JoinSet::new();
    for client in 0..size {
        let (app, wanted) = (app.clone(), wanted.clone());
        let mut dice = Dice::of(seed ^ ((client as u64 + 1) << 40));
        clients.spawn(async move {
            let (mut answers, mut sent) = (Vec::new(), 0);
            for _ in 0..=dice.below(3) {
                let polls = if dice.chance(3) {
                    1 + dice.below(3)
                } else {
                    usize::MAX
                };
                sent += 1;
                answers.extend(cut_after(polls, wanted.send(&app)).await);
            }
            (answers, sent)
        });
    }
    let mut answers: Vec<Reply> = Vec::new();
    for (some, sent) in clients.join_all().await {
        counts.sent += sent;
        counts.left += sent - some.len() as u64;
        answers.extend(some);
    }
    // The last one is not cut off: there is an answer in any case.
    answers.push(wanted.send(app).await);
    counts.sent += 1;
    counts.answered += answers.len() as u64;
    for answer in &answers {
        answer.ok();
        assert_eq!(
            (answer.status, &answer.bytes),
            (answers[0].status, &answers[0].bytes),
            "{operation}, seed {seed}"
        );
    }
    let firsts = answers
        .iter()
        .filter(|answer| answer.header("idempotent-replayed") != "true");
    assert!(firsts.count() <= 1, "{operation}, seed {seed}");
    assert_one_effect(app, operation, &wanted, from, answers.len()).await;
}

/// Every value of a body that is no container, by its JSON pointer.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                leaves(item, &format!("{at}/{place}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                leaves(member, &format!("{at}/{name}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// Another value of the same type.
fn other(value: &Value, dice: &mut Dice) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(_) => json!(value.as_i64().unwrap_or(0) + 1 + i64::try_from(dice.below(50)).unwrap()),
        Value::String(text) => format!("{text}{}", dice.below(1000)).into(),
        _ => json!("x"),
    }
}

#[test]
fn another_request_under_a_key_is_refused_whatever_differs() {
    let (seed, times) = (seed("misuse"), run::count(2));
    run::each("misuse", &run::roomy(), |app: Arc<App>| async move {
        let mut dice = Dice::of(seed);
        let (mut fields, mut mismatched, mut invalid) = (0, 0, 0);
        for operation in writes(&app) {
            let wanted = fixture(&app, operation).await;
            let first = wanted.send(&app).await;
            first.ok();
            let mut others: Vec<(String, RepeatableRequest)> = Vec::new();
            let elsewhere = fixture(&app, operation).await;
            // Who calls for itself is refused another's path before anybody looks at keys.
            let entry = app.kernel.registry.find(operation).unwrap();
            let is_of_kind = matches!(entry.meta.access, Access::OfKind { .. });
            if elsewhere.path != wanted.path && !is_of_kind {
                let path = elsewhere.path.clone();
                others.push((
                    "path".to_owned(),
                    RepeatableRequest {
                        path,
                        ..wanted.clone()
                    },
                ));
            }
            if let Some((media_type, mut bytes)) = wanted.content.clone() {
                bytes.push(b'\n');
                let content = Some((media_type, bytes));
                others.push((
                    "content".to_owned(),
                    RepeatableRequest {
                        content,
                        ..wanted.clone()
                    },
                ));
            }
            if wanted.path.contains("=1") {
                let path = wanted.path.replace("=1", "=2");
                others.push((
                    "query".to_owned(),
                    RepeatableRequest {
                        path,
                        ..wanted.clone()
                    },
                ));
            }
            let mut places = Vec::new();
            leaves(&wanted.body, "", &mut places);
            // Without confirmation some operations show what they would do, which is another question.
            places.retain(|place| place != "/confirm" && !place.is_empty());
            for place in &places {
                for _ in 0..times {
                    let mut changed = wanted.clone();
                    let leaf = changed.body.pointer_mut(place).unwrap();
                    *leaf = other(leaf, &mut dice);
                    others.push((place.clone(), changed));
                }
            }
            fields += places.len();
            for (what, changed) in others {
                let reply = changed.send(&app).await;
                match reply.status.as_u16() {
                    422 if reply.code() == "idempotency_mismatch" => mismatched += 1,
                    400 => invalid += 1,
                    422 if reply.code() == "invalid_definition" => invalid += 1,
                    _ => panic!("{operation} {what}: {} {}", reply.status, reply.text()),
                }
                assert_ne!(reply.bytes, first.bytes, "{operation} {what}");
            }
        }
        assert!(mismatched > fields, "{mismatched} of {fields} fields");
        json!({ "seed": seed, "fields": fields, "mismatched": mismatched, "invalid": invalid })
    });
}
