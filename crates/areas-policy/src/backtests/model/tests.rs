use super::*;
use proptest::prelude::*;

const START: Timestamp = Timestamp::from_ms(1_795_144_500_000);

fn run() -> Run {
    let by = Principal {
        kind: "service_account".to_owned(),
        id: "sa_1".to_owned(),
    };
    Run::queued(BacktestId::from_store("btr_1".to_owned()), by, "a test", START)
}

fn somebody() -> Principal {
    Principal {
        kind: "service_account".to_owned(),
        id: "sa_2".to_owned(),
    }
}

fn verdict(cut: Option<CutReason>) -> Verdict {
    Verdict {
        progress: Progress {
            processed: 7,
            total: 7,
            evaluated: 7,
        },
        errors: 0,
        cut,
        dataset_digest: "data".to_owned(),
        result_digest: Some("results".to_owned()),
    }
}

fn failure() -> Failure {
    Failure {
        code: "internal".to_owned(),
        message: "a test".to_owned(),
    }
}

/// What may happen to a run, at some time, under some worker.
#[derive(Clone, Debug)]
enum Act {
    Claim,
    Advance(i64, Progress),
    Release(i64),
    Succeed(i64, Option<CutReason>),
    Fail(i64),
    Cancel,
}

fn acts() -> impl Strategy<Value = Vec<(i64, Act)>> {
    let counter = || 0_i64..100;
    let progress = (counter(), counter(), counter()).prop_map(|(processed, total, evaluated)| Progress {
        processed,
        total,
        evaluated,
    });
    let cut = prop_oneof![
        Just(None),
        Just(Some(CutReason::Events)),
        Just(Some(CutReason::Duration))
    ];
    let act = prop_oneof![
        4 => Just(Act::Claim),
        4 => (0_i64..7, progress).prop_map(|(epoch, progress)| Act::Advance(epoch, progress)),
        1 => (0_i64..7).prop_map(Act::Release),
        1 => (0_i64..7, cut).prop_map(|(epoch, cut)| Act::Succeed(epoch, cut)),
        1 => (0_i64..7).prop_map(Act::Fail),
        1 => Just(Act::Cancel),
    ];
    // Clocks of several servers: now and then one goes back.
    prop::collection::vec((-2_000_i64..12_000, act), 0..60)
}

/// What is written down of a run in every state, by hand.
fn allowed(from: Status, to: Status) -> bool {
    use Status::{Canceled, Failed, Queued, Running, Succeeded};
    matches!(
        (from, to),
        (Queued, Running | Canceled) | (Running, Running | Succeeded | Failed | Canceled)
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Proves BT-1, BT-3, BT-4.
    #[test]
    fn no_order_of_acts_breaks_a_rule(acts in acts()) {
        let mut now = START;
        let mut run = run();
        for (ms, act) in acts {
            now = now.plus_ms(ms);
            let before = run.clone();
            match act {
                Act::Claim => {
                    let was_free = before.status() == Status::Queued
                        || (before.status() == Status::Running && before.lease_until <= Some(now));
                    let claim = run.claim(now);
                    prop_assert_eq!(claim == Claim::Refused, !was_free);
                    prop_assert_eq!(claim == Claim::GaveUp, was_free && before.attempt == MAX_ATTEMPTS);
                    prop_assert_eq!(run.epoch, before.epoch + i64::from(was_free));
                }
                Act::Advance(epoch, progress) => {
                    prop_assert_eq!(run.advance(epoch, progress, 1, now), before.is_held(epoch));
                }
                Act::Release(epoch) => prop_assert_eq!(run.release(epoch, now), before.is_held(epoch)),
                Act::Succeed(epoch, cut) => {
                    prop_assert_eq!(run.conclude(epoch, verdict(cut), 1, now), before.is_held(epoch));
                }
                Act::Fail(epoch) => prop_assert_eq!(run.fail(epoch, failure(), now), before.is_held(epoch)),
                Act::Cancel => match run.cancel(somebody(), "enough", now) {
                    Ok(changed) => {
                        prop_assert_eq!(run.status(), Status::Canceled);
                        prop_assert_eq!(changed, before.status() != Status::Canceled);
                    }
                    Err(error) => {
                        prop_assert_eq!(error.code(), Code::AlreadyTerminal);
                        prop_assert_eq!(error.member("status"), Some(&before.status().as_str().into()));
                        prop_assert!(matches!(before.status(), Status::Succeeded | Status::Failed));
                    }
                },
            }
            if run == before {
                continue;
            }
            // BT-1: what has ended stays as it is, in one state.
            prop_assert!(!before.status().is_terminal());
            prop_assert!(allowed(before.status(), run.status()), "{:?} to {:?}", before.status(), run.status());
            prop_assert_eq!(run.revision, before.revision + 1);
            prop_assert!(run.updated_at > before.updated_at);
            // BT-3
            prop_assert!(run.progress.processed >= before.progress.processed);
            prop_assert!(run.progress.total >= before.progress.total);
            prop_assert!(run.progress.evaluated >= before.progress.evaluated);
            prop_assert!(run.attempt >= before.attempt && run.attempt <= MAX_ATTEMPTS);
            prop_assert!(run.epoch >= before.epoch);
            prop_assert_eq!(run.status().is_terminal(), run.finished_at.is_some());
            prop_assert_eq!(run.status() == Status::Running, run.lease_until.is_some());
            prop_assert_eq!(run.expires_at(), run.finished_at.map(|at| at.plus_secs(KEEP_SECS)));
            // BT-5
            let has_digest = run.status() == Status::Succeeded && run.cut != Some(CutReason::Duration);
            prop_assert_eq!(run.result_digest.is_some(), has_digest);
        }
    }
}

/// Proves BT-2.
#[test]
fn every_state_that_is_not_terminal_accepts_cancel() {
    let mut queued = run();
    assert!(queued.cancel(somebody(), "enough", START).unwrap());
    let mut running = run();
    assert_eq!(running.claim(START), Claim::Started);
    assert!(running.cancel(somebody(), "enough", START).unwrap());
    // A worker that did not hear of it writes nothing any more.
    let ended = running.clone();
    assert!(!running.advance(1, Progress::default(), 1, START));
    assert!(!running.conclude(1, verdict(None), 1, START));
    assert!(!running.fail(1, failure(), START));
    assert!(!running.release(1, START));
    assert_eq!(running.claim(START.plus_secs(3600)), Claim::Refused);
    assert_eq!(running, ended);
}

#[test]
fn a_run_is_taken_up_three_times_and_then_fails() {
    let mut run = run();
    let mut now = START;
    assert_eq!(run.claim(now), Claim::Started);
    for attempt in 2..=MAX_ATTEMPTS {
        assert_eq!(run.claim(now.plus_ms(LEASE_MS - 1)), Claim::Refused);
        now = now.plus_ms(LEASE_MS);
        assert_eq!(run.claim(now), Claim::Resumed);
        assert_eq!((run.attempt, run.epoch), (attempt, attempt));
    }
    now = now.plus_ms(LEASE_MS);
    assert_eq!(run.claim(now), Claim::GaveUp);
    let State::Failed(failure) = &run.state else {
        panic!("{:?}", run.state)
    };
    assert_eq!(failure.code, "interrupted");
    assert!(!run.is_held(MAX_ATTEMPTS));
    assert!(!run.is_held(run.epoch));
}

#[test]
fn a_run_is_partial_iff_it_ended_early_with_something_evaluated() {
    let some = Progress {
        processed: 3,
        total: 7,
        evaluated: 3,
    };
    for evaluated in [0, 3] {
        let progress = Progress { evaluated, ..some };
        let mut canceled = run();
        canceled.claim(START);
        canceled.advance(1, progress, 1, START);
        assert!(!canceled.is_partial() && !canceled.shows_results());
        let mut failed = canceled.clone();
        canceled.cancel(somebody(), "enough", START).unwrap();
        failed.fail(1, failure(), START);
        for ended in [canceled, failed] {
            assert_eq!(
                (ended.is_partial(), ended.shows_results()),
                (evaluated > 0, evaluated > 0)
            );
        }
    }
    let mut succeeded = run();
    succeeded.claim(START);
    succeeded.conclude(1, verdict(Some(CutReason::Duration)), 1, START);
    assert!(!succeeded.is_partial() && succeeded.shows_results());
    assert_eq!(succeeded.result_digest, None);
}

/// Proves BT-10.
#[test]
fn what_could_not_be_read_is_not_a_success() {
    for (errors, evaluated, succeeds) in [
        (0, 0, true),
        (0, 100, true),
        (1, 100, true),
        (2, 200, true),
        (1, 99, false),
        (3, 200, false),
        (2_080, 2_080, false),
        (i64::MAX, i64::MAX, false),
    ] {
        let mut run = run();
        run.claim(START);
        let found = Verdict {
            progress: Progress {
                processed: evaluated,
                total: evaluated,
                evaluated,
            },
            errors,
            ..verdict(None)
        };
        assert!(run.conclude(run.epoch, found, 1, START));
        let expected = if succeeds {
            Status::Succeeded
        } else {
            Status::Failed
        };
        assert_eq!(run.status(), expected, "{errors} of {evaluated}");
        assert_eq!(run.result_digest.is_some(), succeeds, "{errors} of {evaluated}");
        assert!(run.shows_results(), "{errors} of {evaluated}");
        if let State::Failed(failure) = run.state {
            assert_eq!(failure.code, "unreadable_history");
            assert!(
                failure.message.contains("provost store check"),
                "{}",
                failure.message
            );
        }
    }
}
