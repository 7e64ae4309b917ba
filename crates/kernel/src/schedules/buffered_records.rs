//! The queue before a writer: notes, which lie in a buffer beside it.

use super::audit_buffer::AuditBuffer;
use super::explore;
use super::queue::Limits;
use super::sync::thread;
use super::writer::{Scene, Store, Writer, assert_in_order, mark_of, sorted};
use std::sync::Arc;

const NARROW: Limits = Limits {
    waiting: 16,
    batch: 2,
    notes: 2,
};

/// Two threads make notes of one chain and a third submits a unit. Then nobody calls any more: were a wake-up lost, the
/// wait for the last note would have no end.
/// Proves WK-7.
#[test]
fn a_note_is_written_without_another_call() {
    explore("queue", "notes", || {
        let scene = Scene::begin(NARROW);
        let (a, again) = (scene.caller("a"), scene.caller("a"));
        let first = thread::spawn(move || (1..=2).for_each(|number| a.note(number)));
        let second = thread::spawn(move || again.note(11));
        assert_eq!(scene.caller("c").submit_to(1).len(), 1);
        scene.store.wait_until(|fates| fates.written.len() == 3);
        first.join().unwrap();
        second.join().unwrap();
        let (_, store, _) = scene.stop();
        store.fates(|fates| {
            let of_first: Vec<_> = fates.written.iter().filter(|mark| mark.1 < 10).collect();
            assert_eq!(of_first, [&("a", 1), &("a", 2)]);
            assert_eq!((fates.written.len(), fates.ran.len()), (3, 1));
            assert!(
                fates.batches.iter().all(|batch| batch.1 <= 2),
                "{:?}",
                fates.batches
            );
        });
    });
}

/// Two writers share one buffer, and each owns a chain.
/// Proves WK-7.
#[test]
fn a_note_is_written_by_the_writer_of_its_chain() {
    explore("queue", "notes of two writers", || {
        let store = Store::refusing(0);
        let notes = Arc::new(AuditBuffer::new(8));
        let scenes = ["a", "b"].map(|chain| {
            let writer = Writer {
                store: store.clone(),
                notes: notes.clone(),
                chain: Some(chain),
            };
            let scene = Scene::of(writer, NARROW, Writer::work);
            let caller = scene.caller(chain);
            let thread = thread::spawn(move || (1..=3).for_each(|number| caller.note(number)));
            (scene, thread)
        });
        store.wait_until(|fates| fates.written.len() == 6);
        for (scene, thread) in scenes {
            thread.join().unwrap();
            scene.stop();
        }
        store.fates(|fates| {
            assert_in_order(&fates.written);
            assert_eq!(fates.written.len(), 6);
        });
    });
}

/// The store refuses once. What was put back is written when somebody asks for it, as the access summary does every
/// minute; what comes meanwhile goes with it, behind it.
/// Proves WK-7.
#[test]
fn what_was_put_back_is_written_in_its_order_when_it_is_asked_for() {
    explore("queue", "notes put back", || {
        let scene = Scene::over(Store::refusing(1), NARROW);
        let (a, b) = (scene.caller("a"), scene.caller("b"));
        let first = thread::spawn(move || (1..=3).for_each(|number| a.note(number)));
        let second = thread::spawn(move || (1..=2).for_each(|number| b.note(number)));
        scene.store.wait_until(|fates| fates.refused == 1);
        for _ in scene.notes.chains() {
            scene.lane.notify();
        }
        scene.store.wait_until(|fates| fates.written.len() == 5);
        first.join().unwrap();
        second.join().unwrap();
        let (_, store, _) = scene.stop();
        store.fates(|fates| {
            assert_in_order(&fates.written);
            assert_eq!(fates.written.len(), 5);
        });
    });
}

/// One thread is done before the stop, another goes on through it. The first one's notes are written; of the other's,
/// each is written or still there.
/// Proves WK-7.
#[test]
fn a_stop_writes_what_was_noted_before_it() {
    explore("queue", "notes at a stop", || {
        let scene = Scene::begin(NARROW);
        let (a, b) = (scene.caller("a"), scene.caller("b"));
        let second = thread::spawn(move || (1..=2).for_each(|number| b.note(number)));
        (1..=3).for_each(|number| a.note(number));
        let (_, store, notes) = scene.stop();
        let written = store.fates(|fates| fates.written.clone());
        assert_in_order(&written);
        assert_eq!(written.iter().filter(|mark| mark.0 == "a").count(), 3);
        second.join().unwrap();
        let left: Vec<_> = notes.take(8, |_| true).iter().map(mark_of).collect();
        let all = sorted([written, left].concat());
        assert_eq!(all, [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]);
    });
}

/// The store takes no notes at all. Nobody asks it more often than there were calls, a few last times apart, and the stop
/// ends; units run all the same.
/// Proves WK-7.
#[test]
fn a_store_that_takes_no_notes_keeps_no_stop_waiting_and_is_not_asked_without_end() {
    explore("queue", "notes refused", || {
        let scene = Scene::over(Store::refusing(usize::MAX), NARROW);
        let a = scene.caller("a");
        let first = thread::spawn(move || (1..=3).for_each(|number| a.note(number)));
        assert_eq!(scene.caller("c").submit_to(1).len(), 1);
        first.join().unwrap();
        // Time enough for a writer that does not wait to be called.
        (0..30).for_each(|_| thread::yield_now());
        let (_, store, notes) = scene.stop();
        store.fates(|fates| {
            assert_eq!((fates.ran.len(), fates.written.len()), (1, 0));
            // Three notes nudge at most, a unit and a stop call; then come the last attempts.
            assert!(fates.refused <= 5 + 3, "{} times", fates.refused);
        });
        let left: Vec<_> = notes.take(8, |_| true).iter().map(mark_of).collect();
        assert_eq!(left, [("a", 1), ("a", 2), ("a", 3)]);
    });
}
