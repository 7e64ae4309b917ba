//! Stopping, going on, and what cannot be read.

use crate::naive::Plain;
use crate::random::{self, Dice};
use crate::support::*;
use provost_backtest::run::{Control, RunEnd, RunStart, Unreadable, run};
use provost_history::scan::Watch;
use provost_policy::PolicySet;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn blocking(tool: &str) -> Arc<PolicySet> {
    set(&json!({"field": "tool.id", "op": "eq", "value": tool}))
}

fn set(conditions: &Value) -> Arc<PolicySet> {
    compile(&vec![(
        "content",
        json!({"id": "one", "name": "one", "enabled": true, "acknowledgeBroadScope": true,
            "evaluateOn": ["pre_tool", "prompt", "post_tool", "response"], "action": "block", "conditions": conditions}),
    )])
}

fn history(seed: u64, events: usize) -> Vec<Plain> {
    random::history(&mut Dice::new(seed), events, true)
}

/// Both ways of work: without a past and with one.
fn candidates() -> [Arc<PolicySet>; 2] {
    let shell = json!({"field": "tool.id", "op": "eq", "value": "shell"});
    [
        blocking("shell"),
        set(&json!({"all": [shell, {"hasPriorEvent": shell}]})),
    ]
}

#[test]
fn a_run_stops_where_it_is_told_and_says_what_it_found_so_far() {
    let history = history(1, 3000);
    let storage = Arc::new(Memory::default());
    let sources = sources(&storage, &history, &[true, false, true, false]);
    for candidate in candidates() {
        let whole = whole(&job(
            &blocking("mail"),
            &candidate,
            sources.clone(),
            &everything(),
        ))
        .results;
        for stop_after in 0..12 {
            let mut job = job(&blocking("mail"), &candidate, sources.clone(), &everything());
            job.tuning.stripe_events = 400;
            job.threads = 1 + stop_after % 2;
            let watch = Watch::default();
            let asked = AtomicU64::new(0);
            let is_canceled = stop_after % 3 == 0;
            let control = Control {
                watch: &watch,
                is_expired: &|| {
                    let is_over = asked.fetch_add(1, Ordering::Relaxed) >= stop_after as u64;
                    if is_over && is_canceled {
                        watch.cancel.store(true, Ordering::Relaxed);
                    }
                    is_over
                },
                checkpoint: &|_| {},
            };
            let outcome = run(&job, None, &control).unwrap();
            check(&outcome.results);
            if outcome.finished == RunEnd::Whole {
                assert_eq!(outcome.results, whole);
                continue;
            }
            let expected = if is_canceled {
                RunEnd::Canceled
            } else {
                RunEnd::Duration
            };
            assert_eq!(outcome.finished, expected);
            assert!(outcome.events_processed < outcome.events_total);
            assert_eq!(outcome.results.events_evaluated, outcome.events_processed);
            assert!(outcome.results.changed <= whole.changed);
        }
    }
}

#[test]
fn a_cut_by_duration_keeps_the_newest() {
    let history = history(2, 2000);
    let storage = Arc::new(Memory::default());
    let sources = sources(&storage, &history, &[true; 4]);
    let mut job = job(&blocking("mail"), &blocking("shell"), sources, &everything());
    job.tuning.stripe_events = 500;
    let watch = Watch::default();
    let outcome = run(
        &job,
        None,
        &Control {
            watch: &watch,
            is_expired: &|| watch.processed.load(Ordering::Relaxed) > 0,
            checkpoint: &|_| {},
        },
    )
    .unwrap();
    assert_eq!(outcome.finished, RunEnd::Duration);
    let newest = history.last().unwrap().at_ms;
    let text = format!("{:.3}", jiff::Timestamp::from_millisecond(newest).unwrap());
    assert_eq!(outcome.results.newest_event_at, Some(text));
}

/// Proves RP-3.
#[test]
fn counters_never_decrease_and_a_checkpoint_of_something_else_starts_over() {
    let history = history(3, 2000);
    let storage = Arc::new(Memory::default());
    let sources = sources(&storage, &history, &[false, true, true]);
    for candidate in candidates() {
        let mut job = job(&blocking("mail"), &candidate, sources.clone(), &everything());
        job.tuning.stripe_events = 300;
        let watch = Watch::default();
        let saved = Mutex::new(Vec::new());
        let before = AtomicU64::new(0);
        let control = Control {
            watch: &watch,
            is_expired: &|| {
                let now = watch.processed.load(Ordering::Relaxed);
                assert!(before.swap(now, Ordering::Relaxed) <= now);
                false
            },
            checkpoint: &|part| saved.lock().unwrap().push(part.bytes()),
        };
        let expected = run(&job, None, &control).unwrap();
        let saved = saved.into_inner().unwrap();
        assert!(saved.len() > 3);
        let began = |bytes: &[u8], job: &provost_backtest::run::Job| {
            let watch = Watch::default();
            let control = Control {
                watch: &watch,
                is_expired: &|| false,
                checkpoint: &|_| {},
            };
            let outcome = run(job, Some(bytes), &control).unwrap();
            (outcome.began, outcome.results.digest())
        };
        let digest = expected.results.digest();
        for bytes in &saved {
            assert_eq!(began(bytes, &job), (RunStart::Resumed, digest.clone()));
        }
        let mut damaged = saved[1].clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        for bytes in [&damaged[..], b"", &saved[1][..100]] {
            assert_eq!(began(bytes, &job), (RunStart::Over, digest.clone()));
        }
        job.question.max_events = 1500;
        assert_eq!(began(&saved[1], &job).0, RunStart::Over);
        job.question.max_events = everything().max_events;
        job.baseline = blocking("book");
        assert_eq!(began(&saved[1], &job).0, RunStart::Over);
    }
}

/// Proves RP-1.
#[test]
fn what_cannot_be_read_counts_as_errors_and_nothing_else_is_lost() {
    let history = history(4, 1200);
    for candidate in candidates() {
        for (lost, how) in [(0, 0), (1, 1), (2, 2), (3, 0)] {
            let storage = Arc::new(Memory::default());
            let sources = sources(&storage, &history, &[true, false, true, false]);
            let name = sources[lost].name().to_owned();
            let rows = u64::from(sources[lost].rows());
            {
                let mut all = storage.0.lock().unwrap();
                let bytes = all.get_mut(&name).unwrap();
                match how {
                    0 => drop(all.remove(&name)),
                    1 => bytes.truncate(bytes.len() / 2),
                    _ => bytes
                        .iter_mut()
                        .skip(4)
                        .take(20_000)
                        .for_each(|byte| *byte ^= 0x55),
                }
            }
            let mut job = job(&blocking("mail"), &candidate, sources, &everything());
            job.tuning.stripe_events = 200;
            job.unreadable = vec![Unreadable {
                name: "gone".into(),
                rows: 7,
            }];
            let outcome = whole(&job);
            check(&outcome.results);
            assert_eq!(outcome.results.errors, rows + 7, "{name}, {how}");
            assert_eq!(outcome.events_total, 1207);
            let mut resumed = None;
            let watch = Watch::default();
            let saved = Mutex::new(None);
            let control = Control {
                watch: &watch,
                is_expired: &|| false,
                checkpoint: &|part| {
                    saved.lock().unwrap().get_or_insert_with(|| part.bytes());
                },
            };
            run(&job, None, &control).unwrap();
            if let Some(bytes) = saved.into_inner().unwrap() {
                let watch = Watch::default();
                let control = Control {
                    watch: &watch,
                    is_expired: &|| false,
                    checkpoint: &|_| {},
                };
                resumed = Some(run(&job, Some(&bytes), &control).unwrap().results);
            }
            assert_eq!(resumed, Some(outcome.results));
        }
    }
}
