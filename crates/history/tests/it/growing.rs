//! A grown history is as asked for, and the same for the same seed.

use provost_history::synthetic::{Census, Recording, Shape, SyntheticEvent, schema};
use provost_history::{Entry, Event, Recorder};
use std::collections::BTreeSet;
use std::sync::Arc;

const RECORDING: &str = r#"{"task":0,"trial":0,"step":0,"user":"ana","model":"m","tool":"find_order","arguments":{"reservation_id":"AB12"},"result":"ok"}
{"task":0,"trial":0,"step":1,"user":"ana","model":"m","tool":"refund","arguments":{"user_id":"ana","payments":[{"amount":250},{"amount":5.5}]},"result":"error"}
{"task":1,"trial":0,"step":0,"user":"bo","model":"m","tool":"find_order","arguments":{"origin":"JFK","destination":"SEA","date":"2024-05-20"},"result":null}"#;

const SHAPE: Shape = Shape {
    events: 20_000,
    users: 10,
    tools: 4,
    repetition: 1.0,
    from: 1_000_000,
    to: 2_000_000,
    seed: 7,
};

fn grow(shape: Shape) -> Vec<SyntheticEvent> {
    Recording::read(RECORDING).unwrap().grow(shape).unwrap().collect()
}

fn distinct(shape: Shape) -> u64 {
    let mut census = Census::default();
    for event in grow(shape) {
        census.count(&event);
    }
    assert_eq!(census.distinct().1, shape.events);
    census.distinct().0
}

/// Returns the texts of a column, and the numbers of the amounts, of all events.
fn recorded(events: &[SyntheticEvent]) -> (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>) {
    let schema = Arc::new(schema().unwrap());
    let (tool, subject) = (
        schema.position("tool").unwrap(),
        schema.position("subject").unwrap(),
    );
    let (amount, mut found) = (
        schema.position("amount").unwrap(),
        <(BTreeSet<_>, BTreeSet<_>, BTreeSet<_>)>::default(),
    );
    for events in events.chunks(5_000) {
        let mut recorder = Recorder::new(Arc::clone(&schema));
        for event in events {
            event
                .with_values(|values| {
                    recorder.record(&Event {
                        id: &event.id,
                        at: event.at,
                        values,
                    })
                })
                .unwrap();
        }
        let batch = recorder.finish().unwrap();
        found.0.extend(
            batch.columns[tool]
                .dictionary
                .texts()
                .unwrap()
                .iter()
                .map(str::to_owned),
        );
        found.1.extend(
            batch.columns[subject]
                .dictionary
                .texts()
                .unwrap()
                .iter()
                .map(str::to_owned),
        );
        let entry = |code: u32| match batch.columns[amount].dictionary.entry(code).unwrap() {
            Entry::Number(number) => number.to_string(),
            _ => "missing".into(),
        };
        found
            .2
            .extend(batch.columns[amount].codes.iter().map(|code| entry(*code)));
    }
    found
}

#[test]
fn the_same_seed_grows_the_same_events_in_the_order_of_time() {
    let ids = |shape: Shape| {
        grow(shape)
            .into_iter()
            .map(|event| (event.at, event.id))
            .collect::<Vec<_>>()
    };
    let once = ids(SHAPE);
    assert_eq!(once, ids(SHAPE));
    assert_ne!(once, ids(Shape { seed: 8, ..SHAPE }));
    assert!(once.is_sorted_by_key(|(at, _)| *at));
    assert!(
        once.iter()
            .all(|(at, id)| (1_000_000..2_000_000).contains(at) && id.len() == 26)
    );
    assert_eq!(
        once.iter().map(|(_, id)| id).collect::<BTreeSet<_>>().len(),
        once.len()
    );
}

#[test]
fn users_and_tools_are_as_many_as_asked_for() {
    let (tools, users, amounts) = recorded(&grow(SHAPE));
    assert_eq!((tools.len(), users.len()), (4, 10), "{tools:?} {users:?}");
    assert!(tools.contains("refund") && users.contains("ana") && users.contains("bo_4"));
    assert_eq!(amounts.into_iter().collect::<Vec<_>>(), ["255.5", "missing"]);
}

#[test]
fn repetition_decides_how_many_events_are_distinct() {
    assert_eq!(
        distinct(SHAPE),
        15,
        "each user repeats the recorded calls of one of two users"
    );
    assert_eq!(
        distinct(Shape {
            repetition: 0.0,
            ..SHAPE
        }),
        20_000
    );
    let tenth = distinct(Shape {
        repetition: 0.9,
        ..SHAPE
    });
    assert!((1_800..2_200).contains(&tenth), "{tenth}");
}

#[test]
fn a_recording_or_shape_that_makes_no_sense_is_refused() {
    assert!(Recording::read("").is_err() && Recording::read("{}").is_err());
    let recording = Recording::read(RECORDING).unwrap();
    for bad in [
        Shape { users: 0, ..SHAPE },
        Shape {
            to: 1_000_000,
            ..SHAPE
        },
        Shape {
            repetition: 1.1,
            ..SHAPE
        },
    ] {
        assert!(recording.grow(bad).is_err(), "{bad:?}");
    }
}
