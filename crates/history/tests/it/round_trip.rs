//! What is recorded reads back as it was, from chunks and from segments, with this schema and with later ones.

use crate::support::*;
use proptest::prelude::*;
use provost_history::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn events_read_back_as_recorded(
        (schema, rows) in schemas().prop_flat_map(|schema| histories(schema, 120)),
        choices in prop::collection::vec(any::<bool>(), 1..5),
    ) {
        let plan = whole(&schema, sources(&schema, &rows, &choices));
        prop_assert_eq!(plan.events(), rows.len() as u64);
        prop_assert_eq!(read(&plan), expected(&rows));
    }

    /// Proves HI-2.
    #[test]
    fn a_later_schema_reads_what_an_earlier_one_wrote(
        (schema, rows) in schemas().prop_flat_map(|schema| histories(schema, 60)),
        is_sealed: bool,
    ) {
        let storage = Arc::new(Memory::default());
        let make = if is_sealed { segment } else { chunk };
        make(&storage, &schema, "old", &rows);
        let mut columns = schema.columns()[4..].to_vec();
        columns.push(ColumnSpec::of("added", Kind::TextSet));
        let later = Arc::new(Schema::new(schema.version() + 1, columns).unwrap());
        let stored = Arc::clone(&storage) as Arc<dyn Storage>;
        let source = if is_sealed {
            Source::Segment(Segment::open(stored, "old", &later).unwrap())
        } else {
            let bytes = stored.read("old", 0, usize::try_from(stored.size("old").unwrap()).unwrap()).unwrap();
            let summary = chunk::summary(&bytes).unwrap();
            Source::Chunk(Chunk::new(stored, "old", summary))
        };
        let mut want = expected(&rows);
        for row in &mut want {
            row.values.push(OwnedValue::Missing);
        }
        let plan = whole(&later, vec![source]);
        prop_assert_eq!(read(&plan), want);
        let added = [later.columns().len() - 1];
        let groups = group::group(&plan, &added, group::Limits::default(), 1, &scan::Watch::default()).unwrap();
        prop_assert_eq!(groups.counts, vec![rows.len() as u64]);
    }
}

/// Proves HI-2.
#[test]
fn what_a_later_schema_wrote_is_not_read() {
    let (old, storage) = (plain(), Arc::new(Memory::default()));
    let mut columns = old.columns()[4..].to_vec();
    columns.push(ColumnSpec::of("added", Kind::Text));
    let later = Arc::new(Schema::new(2, columns).unwrap());
    let mut new_row = row("1", 5, "search");
    new_row.values.push(OwnedValue::Missing);
    segment(&storage, &later, "new", std::slice::from_ref(&new_row));
    let opened = Segment::open(Arc::clone(&storage) as Arc<dyn Storage>, "new", &old);
    assert!(matches!(opened, Err(Error::Newer)));
    let bytes = chunk::encode(&later, &batch(&later, &[new_row])).unwrap();
    assert!(matches!(chunk::decode(&old, &bytes), Err(Error::Newer)));
    let retyped = Schema::new(
        2,
        vec![
            ColumnSpec::of("tool", Kind::Json),
            ColumnSpec::of("cost", Kind::Text),
        ],
    )
    .unwrap();
    assert!(
        chunk::decode(
            &retyped,
            &chunk::encode(&old, &batch(&old, &[row("1", 5, "x")])).unwrap()
        )
        .is_err()
    );
}

#[test]
fn an_event_that_breaks_a_rule_leaves_nothing_behind() {
    let schema = plain();
    let mut recorder = Recorder::new(Arc::clone(&schema));
    let with = |column: usize, value: OwnedValue| {
        let mut row = row("1", 5, "search");
        row.values[column] = value;
        row
    };
    let mut short = row("1", 5, "search");
    short.values.pop();
    for bad in [
        with(5, OwnedValue::Number(f64::NAN)),
        with(5, OwnedValue::Number(f64::INFINITY)),
        with(5, OwnedValue::Text("x".into())),
        with(4, OwnedValue::Json("{}".into())),
        with(4, OwnedValue::Text("x".repeat(300_000))),
        short,
        row("", 5, "search"),
        row(&"x".repeat(129), 5, "search"),
    ] {
        assert!(
            matches!(record(&mut recorder, &bad), Err(Error::Invalid(_))),
            "{bad:?}"
        );
    }
    record(&mut recorder, &row("1", 5, "only")).unwrap();
    let batch = recorder.finish().unwrap();
    assert_eq!(
        (
            batch.rows(),
            batch.columns[4].dictionary.len(),
            batch.columns[5].dictionary.len()
        ),
        (1, 1, 0)
    );
}

#[test]
fn a_recorder_is_full_at_five_thousand_events() {
    let schema = plain();
    let mut recorder = Recorder::new(Arc::clone(&schema));
    for index in 0..CHUNK_EVENTS {
        assert!(!recorder.is_full());
        record(&mut recorder, &row(&format!("{index:05}"), 5, "search")).unwrap();
    }
    assert!(recorder.is_full() && record(&mut recorder, &row("x", 5, "search")).is_err());
    let batch = recorder.finish().unwrap();
    let bytes = chunk::encode(&schema, &batch).unwrap();
    assert_eq!(chunk::decode(&schema, &bytes).unwrap(), batch);
}

#[test]
fn the_same_events_seal_to_the_same_bytes() {
    let schema = plain();
    let rows: Vec<Row> = (0..500)
        .map(|index| row(&format!("{index}"), index % 50, "search"))
        .collect();
    let seal = || {
        let storage = Arc::new(Memory::default());
        segment(&storage, &schema, "s", &rows);
        storage.0.lock().unwrap().remove("s").unwrap()
    };
    assert_eq!(seal(), seal());
}

#[test]
fn a_column_gives_bitmaps_sets_and_numbers() {
    let schema = Arc::new(Schema::new(1, vec![ColumnSpec::of("cost", Kind::Number)]).unwrap());
    let rows: Vec<Row> = (0_i32..70)
        .map(|index| {
            let mut values = row(&format!("{index:02}"), index.into(), "x").values;
            values.truncate(4);
            values[1] = OwnedValue::Set(vec!["b".into(), "a".into(), "b".into()]);
            values.push(if index == 65 {
                OwnedValue::Missing
            } else {
                OwnedValue::Number(index.into())
            });
            Row {
                id: format!("{index:02}"),
                at: index.into(),
                values,
            }
        })
        .collect();
    let batch = batch(&schema, &rows);
    assert_eq!(batch.columns[4].missing_bitmap(), vec![0, 2]);
    assert_eq!(batch.columns[4].dictionary.numbers().unwrap().len(), 69);
    let sets = batch.columns[1].dictionary.sets().unwrap().unwrap();
    assert_eq!(
        (sets.members.iter().collect::<Vec<_>>(), sets.ends),
        (vec!["a", "b"], vec![2])
    );
    assert_eq!(batch.pieces(32).collect::<Vec<_>>(), vec![0..32, 32..64, 64..70]);
}

#[test]
fn a_segment_knows_its_behaviours_where_events_repeat() {
    let schema = plain();
    let seal = |tools: usize| {
        let tool = |index: usize| row(&format!("{index:03}"), 5, &format!("tool {}", index % tools));
        let rows: Vec<Row> = (0..100).map(tool).collect();
        let mut sealer = Sealer::new(Arc::clone(&schema));
        sealer.add(&batch(&schema, &rows)).unwrap();
        sealer.seal(&Memory::default(), "s").unwrap().behaviours
    };
    assert_eq!((seal(3), seal(50), seal(51)), (Some(3), Some(50), None));
}
