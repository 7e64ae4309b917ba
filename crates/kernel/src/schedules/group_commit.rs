//! The queue before a writer: units.

use super::audit_buffer::AuditBuffer;
use super::explore;
use super::queue::{Limits, UnitRejection};
use super::sync::thread;
use super::writer::{Scene, Store, Writer, assert_in_order, sorted};
use std::sync::Arc;

const ROOMY: Limits = Limits {
    waiting: 16,
    batch: 2,
    notes: 2,
};

/// Two threads submit while a third stops the writer. What was let in has run when the stop is over, what was not was
/// given back at once, and nothing is counted as waiting.
/// Proves WK-5.
#[test]
fn what_was_let_in_runs_once_also_when_a_stop_comes_between() {
    explore("queue", "stopped units", || {
        let scene = Scene::begin(ROOMY);
        let (a, b) = (scene.caller("a"), scene.caller("b"));
        let first = thread::spawn(move || a.submit_to(2));
        let second = thread::spawn(move || b.submit_to(3));
        let late = scene.caller("c");
        scene.lane.stop();
        scene.thread.join().unwrap();
        let mut let_in = first.join().unwrap();
        let_in.extend(second.join().unwrap());
        assert_eq!(late.submit(1), Err(UnitRejection::Stopped));
        scene.store.fates(|fates| {
            assert_in_order(&fates.ran);
            assert_eq!(sorted(fates.ran.clone()), sorted(let_in));
            assert_eq!(fates.ran.len() + fates.dropped.len(), 6);
            assert!(
                fates.batches.iter().all(|batch| batch.0 <= 2),
                "{:?}",
                fates.batches
            );
        });
        assert_eq!(scene.lane.waiting(), 0);
    });
}

/// Three threads submit, and the writer is stopped when they are done.
/// Proves WK-6.
#[test]
fn units_of_one_sender_run_in_order_in_batches_of_the_limit() {
    explore("queue", "batches", || {
        let scene = Scene::begin(ROOMY);
        let (a, b) = (scene.caller("a"), scene.caller("b"));
        let first = thread::spawn(move || a.submit_to(3));
        let second = thread::spawn(move || b.submit_to(2));
        let here = scene.caller("c").submit_to(2);
        assert_eq!(
            (
                first.join().unwrap().len(),
                second.join().unwrap().len(),
                here.len()
            ),
            (3, 2, 2)
        );
        let (lane, store, _) = scene.stop();
        store.fates(|fates| {
            assert_in_order(&fates.ran);
            assert_eq!((fates.ran.len(), fates.dropped.len()), (7, 0));
            assert!(
                fates.batches.iter().all(|batch| batch.0 <= 2),
                "{:?}",
                fates.batches
            );
        });
        assert_eq!(lane.waiting(), 0);
    });
}

/// Three threads submit more than may wait. Whoever is refused is told so, and there is room again when the others ran.
/// Proves WK-6.
#[test]
fn no_more_units_wait_than_may_and_the_room_comes_back() {
    explore("queue", "full queues", || {
        let limits = Limits {
            waiting: 2,
            batch: 1,
            notes: 2,
        };
        let scene = Scene::begin(limits);
        let threads = ["a", "b"].map(|name| {
            let (caller, lane) = (scene.caller(name), scene.lane.clone());
            thread::spawn(move || {
                let refusals = (1..=3).filter_map(|number| {
                    let refused = caller.submit(number).err();
                    assert!(lane.waiting() <= 2, "{} wait", lane.waiting());
                    refused
                });
                let refusals: Vec<UnitRejection> = refusals.collect();
                assert!(refusals.iter().all(|refused| *refused == UnitRejection::Full));
                3 - refusals.len()
            })
        });
        let let_in: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(let_in >= 2, "there was room for two");
        scene.store.wait_until(|fates| fates.ran.len() == let_in);
        assert_eq!(scene.lane.waiting(), 0);
        let again = scene.caller("c");
        assert_eq!((again.submit(1), again.submit(2)), (Ok(()), Ok(())));
        let (lane, store, _) = scene.stop();
        store.fates(|fates| {
            assert_in_order(&fates.ran);
            assert_eq!(fates.ran.len(), let_in + 2);
        });
        assert_eq!(lane.waiting(), 0);
    });
}

/// The writer ends unasked, with a unit in its hands, while two threads submit. Every unit was refused or dropped: nobody
/// waits for an answer beside a channel that nobody reads.
/// Proves WK-5.
#[test]
fn what_waits_for_a_writer_that_is_gone_is_dropped() {
    explore("queue", "writers that end", || {
        let writer = Writer {
            store: Store::refusing(0),
            notes: Arc::new(AuditBuffer::new(8)),
            chain: None,
        };
        let scene = Scene::of(writer, ROOMY, |_, queue| drop(queue.wait()));
        let (a, b) = (scene.caller("a"), scene.caller("b"));
        let first = thread::spawn(move || a.submit_to(2).len());
        let second = thread::spawn(move || b.submit_to(2).len());
        assert!(first.join().unwrap() + second.join().unwrap() >= 1);
        scene.thread.join().unwrap();
        scene
            .store
            .fates(|fates| assert_eq!((fates.ran.len(), fates.dropped.len()), (0, 4)));
        assert_eq!(scene.lane.waiting(), 0);
    });
}
