//! Grouping equals counting in a map, whatever the threads and wherever the events lie.

use crate::support::*;
use proptest::prelude::*;
use provost_history::group::{Groups, Limits, group};
use provost_history::scan::Watch;
use provost_history::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const DAY_MS: i64 = 86_400_000;

#[derive(Debug, Default, PartialEq)]
struct CountedStorage {
    count: u64,
    newest: (i64, String),
    days: BTreeMap<i64, u32>,
}

/// Counts the rows in the plainest way.
fn naive(rows: &[Row], columns: &[usize]) -> BTreeMap<Vec<String>, CountedStorage> {
    let mut groups: BTreeMap<Vec<String>, CountedStorage> = BTreeMap::new();
    for row in rows {
        let key = columns.iter().map(|column| row.values[*column].key()).collect();
        let group = groups.entry(key).or_insert_with(|| CountedStorage {
            newest: (i64::MIN, String::new()),
            ..CountedStorage::default()
        });
        group.count += 1;
        group.newest = group.newest.clone().max((row.at, row.id.clone()));
        *group.days.entry(row.at.div_euclid(DAY_MS)).or_default() += 1;
    }
    groups
}

/// Brings a grouping into the same form.
fn counted(plan: &Plan, groups: &Groups) -> BTreeMap<Vec<String>, CountedStorage> {
    let entry = |column: &Column, index: usize| {
        OwnedValue::of(column.dictionary.entry(column.codes[index]).unwrap()).key()
    };
    let ids = plan.ids(&groups.newest).unwrap();
    (0..groups.len())
        .map(|index| {
            let key = groups.columns.iter().map(|column| entry(column, index)).collect();
            let days = (groups.first_day..).zip(&groups.days);
            let newest = (groups.newest_at[index], ids[index].clone());
            let days = days
                .map(|(day, counts)| (day, counts[index]))
                .filter(|(_, count)| *count > 0)
                .collect();
            (
                key,
                CountedStorage {
                    count: groups.counts[index],
                    newest,
                    days,
                },
            )
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Proves HI-7.
    #[test]
    fn grouping_equals_counting_in_a_map(
        (schema, rows) in schemas().prop_flat_map(|schema| histories(schema, 150)),
        choices in prop::collection::vec(any::<bool>(), 1..7),
        others in prop::collection::vec(any::<bool>(), 1..3),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        repeats in 1_usize..4,
    ) {
        // Some behaviour repeats: otherwise no segment would have a table of it.
        let rows: Vec<Row> = rows.iter().enumerate().flat_map(|(index, row)| {
            (0..repeats).map(move |copy| Row { id: format!("{}-{copy}-{index}", row.id), ..row.clone() })
        }).collect();
        let columns: Vec<usize> = picks.iter().map(|pick| pick.index(schema.columns().len())).collect();
        let want = naive(&rows, &columns);
        let plan = whole(&schema, sources(&schema, &rows, &choices));
        let watch = Watch::default();
        let one = group(&plan, &columns, Limits::default(), 1, &watch).unwrap();
        prop_assert_eq!(watch.processed.load(Ordering::Relaxed), rows.len() as u64);
        prop_assert_eq!(counted(&plan, &one), want);
        for threads in [2, 3] {
            prop_assert_eq!(&group(&plan, &columns, Limits::default(), threads, &watch).unwrap(), &one);
        }
        // Elsewhere the newest events have other places; everything else is the same, to the dictionaries.
        let elsewhere = whole(&schema, sources(&schema, &rows, &others));
        let mut other = group(&elsewhere, &columns, Limits::default(), 2, &watch).unwrap();
        prop_assert_eq!(counted(&elsewhere, &other), counted(&plan, &one));
        other.newest.clone_from(&one.newest);
        prop_assert_eq!(other, one);
    }

    /// Proves HI-7.
    #[test]
    fn a_limit_is_passed_by_the_number_of_groups_whatever_the_threads(
        (schema, rows) in histories(plain(), 60),
        choices in prop::collection::vec(any::<bool>(), 1..7),
        threads in 1_usize..4,
    ) {
        let plan = whole(&schema, sources(&schema, &rows, &choices));
        let columns = [4, 5];
        let count = naive(&rows, &columns).len();
        let limits = |groups| Limits { groups, ..Limits::default() };
        let watch = Watch::default();
        prop_assert!(group(&plan, &columns, limits(count), threads, &watch).is_ok());
        let refused = group(&plan, &columns, limits(count - 1), threads, &watch);
        prop_assert!(matches!(refused, Err(Error::TooDistinct)));
        let days = group(&plan, &columns, limits(count), threads, &watch).unwrap().days.len();
        let cells = |cells| Limits { cells, ..Limits::default() };
        prop_assert!(group(&plan, &columns, cells(count * days), threads, &watch).is_ok());
        let refused = group(&plan, &columns, cells(count * days - 1), threads, &watch);
        prop_assert!(matches!(refused, Err(Error::TooDistinct)));
    }

    #[test]
    fn only_events_of_the_window_are_grouped(
        (schema, rows) in histories(plain(), 120),
        choices in prop::collection::vec(any::<bool>(), 1..5),
        max_events in 1_u64..150,
        edges: (prop::sample::Index, prop::sample::Index),
    ) {
        let (from, to) = (rows[edges.0.index(rows.len())].at, rows[edges.1.index(rows.len())].at);
        let question = Question { from: from.min(to), to: from.max(to) + 1, max_events };
        let plan = Plan::new(Arc::clone(&schema), sources(&schema, &rows, &choices), question).unwrap();
        let want = naive(&read(&plan), &[4, 0]);
        let groups = group(&plan, &[4, 0], Limits::default(), 2, &Watch::default()).unwrap();
        prop_assert_eq!(counted(&plan, &groups), want);
    }
}

#[test]
fn a_projection_without_columns_is_refused() {
    let plan = whole(&plain(), Vec::new());
    assert!(matches!(
        group(&plan, &[], Limits::default(), 1, &Watch::default()),
        Err(Error::Invalid(_))
    ));
    assert!(
        group(&plan, &[4], Limits::default(), 2, &Watch::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn texts_beyond_the_limit_are_too_distinct() {
    let schema = plain();
    let rows: Vec<Row> = (0..50)
        .map(|index| row(&format!("{index}"), index, &format!("tool {index}")))
        .collect();
    let plan = whole(&schema, sources(&schema, &rows, &[true]));
    let limits = Limits {
        value_bytes: 100,
        ..Limits::default()
    };
    assert!(matches!(
        group(&plan, &[4], limits, 1, &Watch::default()),
        Err(Error::TooDistinct)
    ));
}

#[test]
fn events_from_the_beginning_to_the_end_of_time_are_too_many_days() {
    let schema = plain();
    let rows = [
        row("1", i64::MIN, "search"),
        row("2", i64::MAX, "search"),
        row("3", i64::MIN + 1, "book"),
    ];
    let source = || sources(&schema, &rows, &[true]);
    let question = Question {
        from: i64::MIN,
        to: i64::MAX,
        max_events: 9,
    };
    let all = Plan::new(Arc::clone(&schema), source(), question).unwrap();
    assert_eq!(all.events(), 2, "the window ends before the last instant");
    let one = group(&all, &[4], Limits::default(), 1, &Watch::default()).unwrap();
    assert_eq!(
        (one.counts, one.newest_at),
        (vec![1, 1], vec![i64::MIN + 1, i64::MIN])
    );
    let rows = [row("1", i64::MIN, "search"), row("2", i64::MAX - 1, "search")];
    let wide = Plan::new(Arc::clone(&schema), sources(&schema, &rows, &[false]), question).unwrap();
    assert!(matches!(
        group(&wide, &[4], Limits::default(), 2, &Watch::default()),
        Err(Error::TooDistinct)
    ));
}
