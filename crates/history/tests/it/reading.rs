//! Windows, the cut to the newest, order, threads, cancel and progress.

use crate::support::*;
use proptest::prelude::*;
use provost_history::scan::{Projection, Watch};
use provost_history::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn question(from: i64, to: i64, max_events: u64) -> Question {
    Question { from, to, max_events }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Proves HI-6.
    #[test]
    fn a_window_has_its_beginning_and_not_its_end(
        (schema, rows) in histories(plain(), 120),
        choices in prop::collection::vec(any::<bool>(), 1..5),
        edges: (prop::sample::Index, prop::sample::Index),
        shift in -1_i64..=1,
    ) {
        let from = rows[edges.0.index(rows.len())].at;
        let to = (rows[edges.1.index(rows.len())].at + shift).max(from + 1);
        let plan = Plan::new(Arc::clone(&schema), sources(&schema, &rows, &choices), question(from, to, 1_000)).unwrap();
        let want: Vec<Row> = expected(&rows).into_iter().filter(|row| from <= row.at && row.at < to).collect();
        prop_assert_eq!((plan.events(), plan.is_truncated()), (want.len() as u64, false));
        prop_assert_eq!(read(&plan), want);
    }

    /// Proves HI-6.
    #[test]
    fn the_newest_events_count_and_of_one_instant_those_with_the_highest_ids(
        (schema, rows) in histories(plain(), 120),
        choices in prop::collection::vec(any::<bool>(), 1..5),
        max_events in 1_usize..130,
        is_one_instant: bool,
    ) {
        let rows: Vec<Row> =
            rows.into_iter().map(|row| Row { at: if is_one_instant { i64::MIN } else { row.at }, ..row }).collect();
        let question = question(i64::MIN, 1 << 40, max_events as u64);
        let plan = Plan::new(Arc::clone(&schema), sources(&schema, &rows, &choices), question).unwrap();
        let all = expected(&rows);
        let want = &all[all.len().saturating_sub(max_events)..];
        prop_assert_eq!((plan.events(), plan.is_truncated()), (want.len() as u64, max_events < rows.len()));
        prop_assert_eq!(read(&plan), want);
    }

    #[test]
    fn threads_read_every_event_once(
        (schema, rows) in histories(plain(), 120),
        choices in prop::collection::vec(any::<bool>(), 1..9),
        threads in 1_usize..4,
    ) {
        let plan = whole(&schema, sources(&schema, &rows, &choices));
        let columns: Vec<usize> = (0..schema.columns().len()).collect();
        let (watch, projection) = (Watch::default(), Projection { columns: &columns, with_ids: true });
        let read = scan::fold(&plan, projection, threads, &watch, Vec::new, |all: &mut Vec<Row>, unit, batch| {
            assert_eq!(unit.rows.len(), batch.rows());
            all.extend(batch.pieces(9).flat_map(|range| support_rows(batch, range)));
            Ok(())
        });
        let mut read: Vec<Row> = read.unwrap().into_iter().flatten().collect();
        read.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        prop_assert_eq!(read, expected(&rows));
        prop_assert_eq!(watch.processed.load(Ordering::Relaxed), rows.len() as u64);
    }
}

fn support_rows(batch: &Batch, range: std::ops::Range<usize>) -> Vec<Row> {
    rows(batch, range)
}

#[test]
fn single_ids_are_found_in_every_page_and_instants_of_every_size_come_back() {
    let schema = plain();
    let mix = |number: i64| number.wrapping_mul(0x1e37_79b9_7f4a_7c15);
    // From neighbours to the ends of what an instant can be.
    let at = |number: i64| (number * 3).max(mix(number) >> (number % 64));
    let all: Vec<Row> = (0..140_000)
        .map(|number| row(&format!("{:x}-{number}", mix(number)), at(number), "search"))
        .collect();
    let storage = Arc::new(Memory::default());
    let plan = whole(&schema, vec![segment(&storage, &schema, "all", &all)]);
    assert_eq!(plan.units().len(), 2);
    let want = expected(&all);
    assert_eq!(read(&plan), want);
    let place = |row: usize| match row.checked_sub(plan.units()[0].rows.len()) {
        None => plan.units()[0].place(row),
        Some(row) => plan.units()[1].place(row),
    };
    for step in [1, 7, 8_191, 8_192, 70_001] {
        let rows: Vec<usize> = (0..want.len()).rev().step_by(step).chain([5, 5]).collect();
        let places: Vec<EventPosition> = rows.iter().map(|row| place(*row)).collect();
        let ids = plan.ids(&places).unwrap();
        assert!(
            ids.iter().eq(rows.iter().map(|row| &want[*row].id)),
            "step {step}"
        );
    }
}

#[test]
fn a_question_without_a_window_or_events_is_refused() {
    for bad in [
        question(5, 5, 1),
        question(6, 5, 1),
        question(0, 5, 0),
        question(0, 5, MAX_EVENTS + 1),
    ] {
        assert!(
            matches!(Plan::new(plain(), Vec::new(), bad), Err(Error::Invalid(_))),
            "{bad:?}"
        );
    }
    let empty = Plan::new(plain(), Vec::new(), question(0, 5, 1)).unwrap();
    assert_eq!((empty.events(), read(&empty)), (0, Vec::new()));
    assert!(empty.columns(&["tool", "nothing"]).is_err());
}

#[test]
fn nothing_is_read_after_the_cancel_flag_is_set() {
    let schema = plain();
    let rows: Vec<Row> = (0..90)
        .map(|index| row(&format!("{index}"), index, "search"))
        .collect();
    let plan = whole(
        &schema,
        sources(&schema, &rows, &[true, false, true, false, true, false]),
    );
    for threads in [1, 2] {
        let watch = Watch::default();
        let projection = Projection {
            columns: &[4],
            with_ids: false,
        };
        let stopped = scan::fold(
            &plan,
            projection,
            threads,
            &watch,
            || (),
            |(), _, _| {
                watch.cancel.store(true, Ordering::Relaxed);
                Ok(())
            },
        );
        assert!(matches!(stopped, Err(Error::Canceled)));
        let processed = watch.processed.load(Ordering::Relaxed);
        assert!(
            processed > 0 && processed <= 20 * threads as u64,
            "{processed} with {threads} threads"
        );
        let grouped = group::group(&plan, &[4], group::Limits::default(), threads, &watch);
        assert!(matches!(grouped, Err(Error::Canceled)));
    }
    let (watch, mut runs) = (Watch::default(), 0);
    let stopped = scan::ordered(&plan, &[4], &watch, |_, _| {
        runs += 1;
        watch.cancel.store(true, Ordering::Relaxed);
        Ok(())
    });
    assert!(matches!(stopped, Err(Error::Canceled)) && runs == 1);
}

#[test]
fn a_chunk_that_is_not_what_the_database_says_is_refused() {
    let (schema, storage) = (plain(), Arc::new(Memory::default()));
    chunk(&storage, &schema, "a", &[row("1", 5, "search")]);
    let wrong = chunk::Summary {
        schema_version: 1,
        rows: 1,
        min_at: 4,
        max_at: 5,
    };
    let source = Source::Chunk(Chunk::new(Arc::clone(&storage) as Arc<dyn Storage>, "a", wrong));
    let plan = Plan::new(Arc::clone(&schema), vec![source], question(0, 10, 10)).unwrap();
    let stopped = scan::ordered(&plan, &[4], &Watch::default(), |_, _| Ok(()));
    assert!(matches!(stopped, Err(Error::Corrupt(_))));
}

#[test]
fn a_segment_of_several_row_groups_reads_in_order() {
    let (schema, storage) = (plain(), Arc::new(Memory::default()));
    let mut sealer = Sealer::new(Arc::clone(&schema));
    let count = 140_000_i64;
    for first in (0..count).step_by(5_000) {
        let rows: Vec<Row> = (first..first + 5_000)
            .map(|index| row(&format!("{index:06}"), index * 11 % count, "search"))
            .collect();
        sealer.add(&batch(&schema, &rows)).unwrap();
    }
    sealer.seal(storage.as_ref(), "s").unwrap();
    let segment = Segment::open(Arc::clone(&storage) as Arc<dyn Storage>, "s", &schema).unwrap();
    let plan = Plan::new(
        Arc::clone(&schema),
        vec![Source::Segment(segment)],
        question(100, 139_000, 130_000),
    )
    .unwrap();
    assert_eq!((plan.units().len(), plan.events()), (2, 130_000));
    let mut next = 9_000;
    scan::ordered(&plan, &[4], &Watch::default(), |batch, range| {
        for row in range {
            assert_eq!(batch.at[row], next);
            next += 1;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(next, 139_000);
    let places = [(1, 3), (0, 130_000), (1, 0), (0, 9_000)].map(|(group, row)| EventPosition {
        source: 0,
        group,
        row,
    });
    let ids = plan.ids(&places).unwrap();
    let at = ids.iter().map(|id| id.parse::<i64>().unwrap() * 11 % count);
    assert_eq!(at.collect::<Vec<_>>(), [131_075, 130_000, 131_072, 9_000]);
}
