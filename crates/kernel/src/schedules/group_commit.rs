//! The queue before a writer: units.

use super::explore;
use super::queue::Limits;
use super::sync::thread;
use super::writer::{Scene, assert_in_order};

const ROOMY: Limits = Limits {
    waiting: 16,
    batch: 2,
    notes: 2,
};

/// Three threads submit, and the writer is stopped when they are done.
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
