//! The engine against the naive evaluator, in every count, however events lie and however often it is killed.

use crate::expected::Naive;
use crate::naive::Plain;
use crate::random::{self, Dice, START_MS};
use crate::support::*;
use provost_backtest::run::{Control, Filters, Job, Outcome, Question, RunEnd, RunStart, Tuning, run};
use provost_history::scan::Watch;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// How many cases there are at a change, and how many at night, unless the environment says how many.
const CASES: [u64; 2] = [150, 500];
/// The first seed, unless the environment asks for another; it is printed, and stands in every failure.
const FIRST_SEED: u64 = 50_000;

#[expect(
    clippy::disallowed_methods,
    reason = "a test, told by its environment how long to search"
)]
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Events of some seconds, days or months; most behave like an earlier one.
fn history(dice: &mut Dice, events: usize) -> Vec<Plain> {
    let scale = dice.pick(&[1, 1, 24, 700]);
    let mut history = random::history(dice, events, false);
    let distinct = 1 + dice.below(events);
    for at in 0..events {
        let at_ms = START_MS + (history[at].at_ms - START_MS) * scale;
        if at >= distinct {
            history[at] = history[dice.below(distinct)].clone();
        }
        history[at].at_ms = at_ms;
    }
    history
}

/// Lets a policy be excepted wherever it matches, until the instant of some event.
fn except(dice: &mut Dice, policy: &mut Value, history: &[Plain]) {
    let at_ms = history[dice.below(history.len())].at_ms;
    let end = jiff::Timestamp::from_millisecond(at_ms).unwrap().to_string();
    if let Some(conditions) = policy.get("conditions").cloned() {
        policy["exceptions"] =
            json!([{"id": "until", "reason": "wait", "conditions": conditions, "expiresAt": end}]);
    }
}

fn question(dice: &mut Dice, history: &[Plain]) -> Question {
    let mut question = everything();
    let instant = |dice: &mut Dice| history[dice.below(history.len())].at_ms + dice.pick(&[0, 0, 1]);
    if dice.one_in(3) {
        question.from_ms = instant(dice);
    }
    if dice.one_in(3) {
        question.to_ms = instant(dice);
    }
    if question.from_ms >= question.to_ms {
        (question.from_ms, question.to_ms) = (history[0].at_ms, i64::MAX);
    }
    if dice.one_in(4) {
        question.max_events = 1 + dice.below(history.len()) as u64;
    }
    let some = |dice: &mut Dice, all: &[&str], rarely: usize| -> Vec<String> {
        if dice.one_in(rarely) {
            all.iter()
                .filter(|_| dice.one_in(2))
                .map(|text| (*text).to_owned())
                .collect()
        } else {
            Vec::new()
        }
    };
    question.filters = Filters {
        subject_ids: some(dice, &["ann", "bob", "sa1", "d1", "nobody"], 6),
        tools: some(dice, &["shell", "mail", "read"], 8),
        resource_ids: some(dice, &["ledger", "wiki"], 12),
    };
    question
}

/// Runs, is killed after some checkpoints, goes on from the last, and so on.
fn with_kills(job: &Job, kills: &[usize]) -> Outcome {
    let mut saved: Option<Vec<u8>> = None;
    for after in kills {
        let watch = Watch::default();
        let last = Mutex::new((0, None));
        let outcome = run(
            job,
            saved.as_deref(),
            &Control {
                watch: &watch,
                is_expired: &|| false,
                checkpoint: &|part| {
                    let mut last = last.lock().unwrap();
                    // What happens after the kill is lost.
                    if last.0 <= *after {
                        *last = (last.0 + 1, Some(part.bytes()));
                    }
                    if last.0 > *after {
                        watch.cancel.store(true, Ordering::Relaxed);
                    }
                },
            },
        )
        .unwrap();
        check(&outcome.results);
        saved = last.into_inner().unwrap().1.or(saved);
    }
    let watch = Watch::default();
    let control = Control {
        watch: &watch,
        is_expired: &|| false,
        checkpoint: &|_| {},
    };
    let outcome = run(job, saved.as_deref(), &control).unwrap();
    let began = if saved.is_some() {
        RunStart::Resumed
    } else {
        RunStart::Anew
    };
    assert_eq!((outcome.began, outcome.finished), (began, RunEnd::Whole));
    assert_eq!(watch.processed.load(Ordering::Relaxed), outcome.events_total);
    outcome
}

/// Proves RP-1, RP-2.
#[test]
fn the_engine_equals_the_naive_evaluator_in_every_count() {
    let first = asked("PROVOST_BACKTEST_SEED").unwrap_or(FIRST_SEED);
    let is_night = asked("PROVOST_TEST_NIGHTLY") == Some(1);
    let cases = asked("PROVOST_BACKTEST_CASES").unwrap_or(CASES[usize::from(is_night)]);
    println!("seeds {first} to {}", first + cases - 1);
    let seen = RefCell::new([0_u64; 5]);
    for seed in first..first + cases {
        let mut dice = Dice::new(seed);
        let before = policies(&mut dice, 8);
        let mut after = before.clone();
        // Most candidates change something of the baseline, some are another set.
        if dice.one_in(3) {
            after = policies(&mut dice, 8);
        } else {
            for _ in 0..2 {
                let at = dice.below(after.len());
                after[at] = random::policy(&mut dice, &format!("p{at}"));
            }
        }
        let history = history(&mut dice, 60);
        for (_, policy) in &mut after {
            if dice.one_in(3) {
                except(&mut dice, policy, &history);
            }
        }
        let question = question(&mut dice, &history);
        let sets = [compile(&before), compile(&after)];
        let expected = Naive {
            policies: [&before, &after],
            sets: [&sets[0], &sets[1]],
            events: &history,
            question: &question,
        }
        .results();
        let storage = Arc::new(Memory::default());
        let layouts = [
            vec![false],
            vec![true; 3],
            (0..5).map(|_| dice.one_in(2)).collect(),
        ];
        let mut digests = Vec::new();
        for sealed in layouts {
            let sources = sources(&storage, &history, &sealed);
            let mut job = job(&sets[0], &sets[1], sources, &question);
            job.threads = 1 + dice.below(2);
            job.tuning = Tuning {
                stripe_events: dice.pick(&[1, 4, 20, 1_000_000]),
                symbol_bytes: dice.pick(&[1, 2_000, 1_000_000]),
                may_group: dice.one_in(2),
            };
            let outcome = whole(&job);
            check(&outcome.results);
            let found = plain(serde_json::to_value(&outcome.results).unwrap());
            assert_eq!(found, expected, "seed {seed}, {sealed:?}, {:?}", job.tuning);
            digests.push(outcome.results.digest());
            job.threads = 3 - job.threads;
            let kills: Vec<usize> = (0..dice.below(4)).map(|_| dice.below(4)).collect();
            digests.push(with_kills(&job, &kills).results.digest());
        }
        assert!(digests.iter().all(|digest| *digest == digests[0]), "seed {seed}");
        let count = |name: &str| expected[name].as_u64().unwrap();
        let seen = &mut *seen.borrow_mut();
        let past = sets.iter().any(|set| set.has_history());
        let met = [
            count("changed"),
            count("unknown"),
            count("unchanged"),
            u64::from(past),
            u64::from(!past),
        ];
        seen.iter_mut().zip(met).for_each(|(sum, one)| *sum += one);
    }
    // The cases meet everything that they are for.
    let [changed, unknown, unchanged, past, groupable] = *seen.borrow();
    println!(
        "changed {changed}, unknown {unknown}, unchanged {unchanged}, with history {past}, without {groupable}"
    );
    assert!(changed > cases && unknown > cases && unchanged > 2 * cases);
    assert!(past > cases / 10 && groupable > cases / 10);
}

/// Proves RP-2.
#[test]
fn thousands_of_events_give_the_same_results_however_they_are_judged() {
    // Repeated eight times, and all distinct: too many to group.
    for (seed, has_past, repeats) in [(70_001, false, 8), (70_002, true, 8), (70_003, false, 1)] {
        let mut dice = Dice::new(seed);
        let [before, after] = loop {
            let sets = [0, 1].map(|_| compile(&policies(&mut dice, 12)));
            if sets.iter().any(|set| set.has_history()) == has_past {
                break sets;
            }
        };
        let mut history = random::history(&mut dice, 12_000 / repeats, false);
        // The same again and again: distinct behaviours have many events, at many instants.
        let once = history.clone();
        for again in 1..repeats {
            let mut copies = once.clone();
            for event in &mut copies {
                event.at_ms += i64::try_from(again).unwrap() * 30 * 3_600_000;
            }
            history.extend(copies);
        }
        history.sort_by_key(|event| event.at_ms);
        let storage = Arc::new(Memory::default());
        let mut expected = None;
        for sealed in [vec![true], vec![true, true, false, true], vec![false; 9]] {
            let sources = sources(&storage, &history, &sealed);
            for (threads, may_group) in [(1, true), (2, true), (1, false), (2, false)] {
                let mut job = job(&before, &after, sources.clone(), &everything());
                job.threads = threads;
                job.tuning.may_group = may_group;
                let results = whole(&job).results;
                check(&results);
                assert_eq!(results.events_evaluated, 12_000);
                assert!(results.changed > 100, "{}", results.changed);
                let expected = expected.get_or_insert_with(|| results.clone());
                assert_eq!(&results, expected, "{sealed:?} {threads} {may_group}");
            }
        }
    }
}
