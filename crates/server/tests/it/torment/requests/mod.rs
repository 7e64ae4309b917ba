//! Requests made of the registry and the OpenAPI document, valid and mutated, as every kind of caller (R22, R25).
//!
//! Request `n` of a seed is always made by the same dice. What it holds also depends on the records that earlier
//! answers named, so that a finding prints the whole request: as a line for `corpus/requests.jsonl`, which the suite
//! replays. A store is begun anew every [`EPOCH`] requests, so that it stays small and every caller works again.

mod corpus;
mod form;
mod generate;
mod oracles;
mod scene;
mod values;

use super::run::{self, Progress};
use crate::policy::decisions::{ask as ask_about, call, decide_one};
use crate::samples;
use crate::support::{App, Dice, seed};
use form::Form;
use oracles::Counts;
use scene::Scene;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Requests for one store.
const EPOCH: u64 = 20_000;
/// Clients of one store at a time.
const CLIENTS: u64 = 6;
/// Of that many requests the last hundred are sent one by one and may change nothing.
const QUIET: u64 = 100;

#[test]
fn no_request_is_a_fault() {
    let (seed, whole) = (seed("requests"), run::count(3000));
    let progress = Progress::of("requests", whole * run::stores("requests_engines").len() as u64);
    let mut figures = Map::new();
    let engines = run::stores("requests_engines").len();
    for place in 0..engines {
        let (mut total, mut done, began) = (Counts::default(), 0, Instant::now());
        let mut engine = "";
        while done < whole {
            let store = run::stores("requests").swap_remove(place);
            engine = run::engine(&store.location());
            let part = done..(done + EPOCH).min(whole);
            run::runtime().block_on(async {
                let app = Arc::new(App::start(store.location(), run::roomy()).await);
                total.add(&epoch(&app, seed, part.clone(), &progress).await);
                app.kernel.stop().await;
                let _ = std::fs::remove_dir_all(&app.keys_dir);
            });
            done = part.end;
        }
        let per_second = total.requests.checked_div(began.elapsed().as_secs().max(1));
        let mut found = total.figures();
        found["perSecond"] = json!(per_second);
        found["seed"] = json!(seed);
        assert!(total.is_telling(), "{found}");
        figures.insert(engine.to_owned(), found);
    }
    run::report("requests", &Value::Object(figures));
}

/// One store's worth of requests.
async fn epoch(app: &Arc<App>, seed: u64, part: std::ops::Range<u64>, progress: &Progress) -> Counts {
    let scene = Arc::new(Scene::set(app.clone()).await);
    let next = Arc::new(AtomicU64::new(part.start));
    let loud = part.end - QUIET.min((part.end - part.start) / 4);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (scene, next) = (scene.clone(), next.clone());
        clients.spawn(async move {
            let mut counts = Counts::default();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= loud {
                    return counts;
                }
                let mut dice = Dice::of(seed.wrapping_add(n));
                let form = generate::request(&scene, &mut dice);
                ask(&scene, &form, &mut counts).await;
            }
        });
    }
    let mut total = Counts::default();
    for counts in clients.join_all().await {
        total.add(&counts);
    }
    quiet(&scene, seed, loud..part.end, &mut total).await;
    progress.add(part.end - part.start);
    total
}

/// Sends a request, judges the answer and keeps what later requests can use.
async fn ask(scene: &Scene, form: &Form, counts: &mut Counts) {
    let _shown = form::PanicReport::when_panicking(scene, form);
    let began = Instant::now();
    let Some(reply) = form.send(scene).await else {
        return;
    };
    oracles::judge(scene, form, &reply, began.elapsed(), counts);
    scene.learn(&reply);
}

/// WFC 114: writes that are refused change nothing.
async fn quiet(scene: &Scene, seed: u64, part: std::ops::Range<u64>, counts: &mut Counts) {
    let app = &scene.app;
    if app.used(&app.admin).await.0 != 200 {
        return; // the admin was disabled by a request of its own
    }
    // Decisions that nobody waited for are written up to 100 ms later (D9.11), and count as state then. One is always
    // under way here; whoever waits for the disk waits for those before it too.
    let asked = json!({ "events": [call(&json!({}))], "record": "buffered" });
    assert_eq!(ask_about(app, asked).await.ok()["recorded"], false);
    decide_one(app, &json!({})).await;
    let before = samples::state(app).await;
    let mut sent: Vec<String> = Vec::new();
    for n in part {
        let mut dice = Dice::of(seed.wrapping_add(n));
        let form = generate::refused(scene, &mut dice);
        ask(scene, &form, counts).await;
        sent.push(form.line(scene));
    }
    let now = samples::state(app).await;
    if let Some(changed) = difference(&before, &now) {
        panic!("one of these changed {changed}:\n{}", sent.join("\n"));
    }
    counts.unchanged += sent.len() as u64;
}

/// Where two values differ first, and how.
fn difference(before: &Value, now: &Value) -> Option<String> {
    let inside = |place: String, one: &Value, other: &Value| {
        difference(one, other).map(|found| format!("/{place}{found}"))
    };
    match (before, now) {
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut both = one.iter().zip(other).enumerate();
            both.find_map(|(place, (one, other))| inside(place.to_string(), one, other))
        }
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => one
            .iter()
            .find_map(|(name, value)| inside(name.clone(), value, &other[name])),
        _ => (before != now).then(|| format!(": {before} was, {now} is")),
    }
}

#[test]
fn a_difference_is_found_where_it_is() {
    let before = json!({ "a": [1, { "b": "x" }], "c": null });
    assert_eq!(difference(&before, &before), None);
    for (now, found) in [
        (
            json!({ "a": [1, { "b": "y" }], "c": null }),
            r#"/a/1/b: "x" was, "y" is"#,
        ),
        (json!({ "a": [1], "c": null }), r#"/a: [1,{"b":"x"}] was, [1] is"#),
        (
            json!({ "a": [1, {}], "c": null }),
            r#"/a/1: {"b":"x"} was, {} is"#,
        ),
        (
            json!({ "a": [1, { "b": "x" }], "d": null }),
            r#": {"a":[1,{"b":"x"}],"c":null} was, {"a":[1,{"b":"x"}],"d":null} is"#,
        ),
    ] {
        assert_eq!(difference(&before, &now).as_deref(), Some(found));
    }
}
