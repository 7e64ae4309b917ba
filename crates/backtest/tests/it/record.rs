//! What is recorded reads back as it was judged (RE-1).

use proptest::prelude::*;
use provost_backtest::record::{
    self, AttributeProjection, Basis, Codes, Decision, Mode, OwnedRecord, RowBatch, View,
};
use provost_history::{Recorder, Schema, chunk};
use provost_policy::{Action, Event, Field, FieldType, Occasion, Symbols, Value};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c]{0,2}", 1 => "\\PC{0,12}", 1 => prop::sample::select(vec![
        "{\"a\":1}".to_owned(), "{ \"a\": 1}".into(), "[1,2]".into(), "[".into(), "5".into(), "🧭\u{2028}\0".into()])]
}

fn input() -> impl Strategy<Value = Json> {
    prop_oneof![
        text().prop_map(Json::from),
        (text(), -3_i64..3)
            .prop_map(|(command, n)| json!({"command": command, "url": n, "env": {"a": null}})),
        Just(json!({"command": ["rm", "-rf"], "script": {"x": 1}})),
        Just(json!({"command": ["rm", 1], "url": ["a"], "n": 9_007_199_254_740_993_i64})),
        Just(json!("{\"command\":\"ls\",}")),
        Just(json!("{\"command\":1,\"command\":2}")),
        Just(json!([1, {"b": 2.5}])),
        Just(json!(7)),
    ]
}

fn json(kind: FieldType) -> BoxedStrategy<Json> {
    match kind {
        FieldType::Text => text().prop_map(Json::from).boxed(),
        FieldType::Set => prop::collection::vec(text(), 0..4).prop_map(Json::from).boxed(),
        FieldType::Number => prop_oneof![
            Just(json!(-0.0)),
            Just(json!(1e300)),
            Just(json!(0.1)),
            any::<i64>().prop_map(Json::from)
        ]
        .boxed(),
        FieldType::Boolean => any::<bool>().prop_map(Json::from).boxed(),
        FieldType::Content | FieldType::Object => input().boxed(),
    }
}

/// Attributes, names of missing ones, an instant, an occasion.
type Wire = (Map<String, Json>, Vec<&'static str>, i64, Occasion);

fn wire() -> impl Strategy<Value = Wire> {
    let fields: Vec<Field> = Field::all().collect();
    let each = prop::sample::subsequence(fields, 0..12).prop_flat_map(|fields| {
        let one = |field: Field| (Just(field), json(field.kind()), 0_u8..5);
        fields.into_iter().map(one).collect::<Vec<_>>()
    });
    let occasion = prop::sample::select(Occasion::ALL.to_vec());
    (each, -10_i64..2_000_000_000_000, occasion).prop_map(|(each, at_ms, occasion)| {
        let (missing, given): (Vec<_>, Vec<_>) = each.into_iter().partition(|(_, _, state)| *state == 0);
        let given = given
            .into_iter()
            .map(|(field, json, _)| (field.name().to_owned(), json));
        let missing = missing.into_iter().map(|(field, ..)| field.name()).collect();
        (given.collect(), missing, at_ms, occasion)
    })
}

fn decision() -> impl Strategy<Value = Option<Decision>> {
    let some = (
        prop::sample::select(Action::ALL.to_vec()),
        any::<bool>(),
        any::<bool>(),
        prop::option::of(prop::sample::select(Basis::ALL.to_vec())),
    );
    prop::option::of(some.prop_map(|(action, monitored, known, basis)| Decision {
        action,
        policy_ids: if known {
            vec!["a/b".into(), "c".into()]
        } else {
            Vec::new()
        },
        policy_set_version: known.then(|| "psv_1".into()),
        mode: if monitored { Mode::Monitor } else { Mode::Enforce },
        basis,
    }))
}

/// Returns the events in the order of the batch that reads them back.
fn through_a_chunk(events: &[OwnedRecord]) -> Vec<OwnedRecord> {
    let mut recorder = Recorder::new(record::schema());
    for (nth, event) in events.iter().enumerate() {
        record::put(event, &format!("{nth:03}"), &mut recorder).unwrap();
    }
    let bytes = chunk::encode(&record::schema(), &recorder.finish().unwrap()).unwrap();
    let batch = chunk::decode(&record::schema(), &bytes).unwrap();
    let mut back: Vec<(String, OwnedRecord)> = (0..batch.rows())
        .map(|row| (batch.ids.get(row).to_owned(), record::owned(&batch, row).unwrap()))
        .collect();
    back.sort_by(|a, b| a.0.cmp(&b.0));
    back.into_iter().map(|(_, event)| event).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Proves RE-1.
    #[test]
    fn an_event_reads_back_as_it_was_judged(
        wires in prop::collection::vec((wire(), decision(), prop::option::of(text())), 1..20),
    ) {
        let mut symbols = Symbols::new();
        let mut judged = Vec::new();
        let mut recorded = Vec::new();
        for ((attributes, missing, at_ms, occasion), decision, name) in wires {
            let event = Event::read(&mut symbols, at_ms, occasion, &attributes, &missing).unwrap();
            let mut owned = OwnedRecord::of(&event, &symbols);
            prop_assert_eq!(&owned, &OwnedRecord::read(at_ms, occasion, &attributes, &missing).unwrap());
            owned.decision = decision;
            owned.source.clone_from(&name);
            owned.principal.clone_from(&name);
            owned.imported = name.as_ref().map(|name| name.len() % 2 == 0);
            owned.session.clone_from(&name);
            owned.call_id.clone_from(&name);
            owned.external_id = name;
            judged.push(event);
            recorded.push(owned);
        }
        let back = through_a_chunk(&recorded);
        prop_assert_eq!(&back, &recorded);
        for (owned, event) in back.iter().zip(&judged) {
            prop_assert_eq!(&owned.event(&mut symbols), event);
        }
    }

    /// Proves RE-1.
    #[test]
    fn the_flat_document_of_an_event_reads_as_the_event((attributes, missing, at_ms, occasion) in wire()) {
        let owned = OwnedRecord::read(at_ms, occasion, &attributes, &missing).unwrap();
        let names: Vec<&str> = owned.missing().iter().map(|field| field.name()).collect();
        prop_assert_eq!(OwnedRecord::read(at_ms, occasion, &owned.flat(), &names).unwrap(), owned);
    }
}

#[test]
fn content_is_shown_as_the_document_that_it_is() {
    let sent =
        json!({"tool.id": "shell", "tool.input": {"command": ["ls", "-l"], "n": 1}, "request.prompt": "{}"});
    let owned = OwnedRecord::read(0, Occasion::PreTool, sent.as_object().unwrap(), &[]).unwrap();
    let mut shown = sent.as_object().unwrap().clone();
    shown.insert("tool.input.command".into(), "ls -l".into());
    assert_eq!(owned.flat(), shown);
}

#[test]
fn what_breaks_the_catalogue_is_refused_with_its_place() {
    let sent = json!({"tool.id": 5, "no.such": "x", "llm.model": "m"});
    let attributes = sent.as_object().unwrap();
    let faults = OwnedRecord::read(0, Occasion::PreTool, attributes, &["llm.model"]).unwrap_err();
    let paths: Vec<&str> = faults.kept().iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(paths, ["/no.such", "/tool.id", "/missing/0"]);
}

#[test]
fn an_event_that_no_chunk_holds_is_refused_whole() {
    let mut recorder = Recorder::new(record::schema());
    let large = json!({"request.prompt": "x".repeat(300_000)});
    let large = OwnedRecord::read(0, Occasion::Prompt, large.as_object().unwrap(), &[]).unwrap();
    assert!(record::put(&large, "hev_1", &mut recorder).is_err());
    let mut endless = Event::new(0, Occasion::Prompt);
    endless.set(
        Field::named("llm.input_tokens").unwrap(),
        Value::Number(f64::INFINITY),
    );
    assert!(
        record::put(
            &OwnedRecord::of(&endless, &Symbols::new()),
            "hev_2",
            &mut recorder
        )
        .is_err()
    );
    assert_eq!(recorder.rows(), 0);
}

/// Returns the columns of version 1: those of today without the two behind them.
fn version_1() -> Arc<Schema> {
    let now = record::schema();
    // The first four are the decision's, which every schema has.
    let columns = now.columns()[4..103].to_vec();
    Arc::new(Schema::new(1, columns).unwrap())
}

/// Proves HS-10.
#[test]
fn a_chunk_of_version_1_is_read_and_its_sources_tell_what_was_imported() {
    let (old, now) = (version_1(), record::schema());
    let mut recorder = Recorder::new(old.clone());
    let source = now.position("source").unwrap();
    let occasion = now.position("occasion").unwrap();
    let told = [("decisions", false), ("laptops", true), ("otlp", false)];
    for (number, (name, _)) in told.iter().enumerate() {
        let mut values = vec![provost_history::Value::Missing; old.columns().len()];
        values[source] = provost_history::Value::Text(name);
        values[occasion] = provost_history::Value::Text("pre_tool");
        recorder
            .record(&provost_history::Event {
                id: &format!("hev_{number:026}"),
                at: 1_000,
                values: &values,
            })
            .unwrap();
    }
    let batch = recorder.finish().unwrap();
    let content = chunk::encode(&old, &batch).unwrap();
    let read = chunk::decode(&now, &content).unwrap();
    for (row, (name, is_imported)) in told.into_iter().enumerate() {
        let event = record::owned(&read, row).unwrap();
        assert_eq!(event.source.as_deref(), Some(name));
        assert_eq!((&event.principal, event.imported), (&None, None));
        assert_eq!(event.is_imported(), is_imported, "{name}");
    }
}

/// Returns what a command is, in words of this test.
fn told(value: Value, symbols: &Symbols) -> String {
    match value {
        Value::Absent => "-".to_owned(),
        Value::Missing => "?".to_owned(),
        Value::Text(symbol) => symbols.text(symbol).to_owned(),
        Value::Line { whole, words } => {
            let mut words: Vec<&str> = symbols
                .set(words)
                .iter()
                .map(|word| symbols.text(*word))
                .collect();
            words.sort_unstable();
            format!("{}|{}", symbols.text(whole), words.join(","))
        }
        other => format!("{other:?}"),
    }
}

/// Proves BY-2.
#[test]
fn whatever_was_kept_of_an_input_rows_and_columns_judge_what_it_says_today() {
    let (missing, nothing) = (Some(Value::Missing), None);
    let kept = |text: &'static str| Some(text);
    // The input, what a former version kept of its command, and what it is.
    let cases: [(&str, Option<&str>, &str); 15] = [
        (r#"{"command":"ls"}"#, kept("ls"), "ls"),
        (r#"{"command":"ls"}"#, None, "ls"),
        (r#"{"command":["rm","-rf"]}"#, kept("rm -rf"), "rm -rf|-rf,rm"),
        (r#"{"command":["rm",1]}"#, kept(r#"["rm",1]"#), "?"),
        (r#"{"command":{"run":"rm"}}"#, kept(r#"{"run":"rm"}"#), "?"),
        (r#"{"command":7}"#, kept("7"), "7"),
        (r#"{"command":"rm","command":"ls"}"#, kept("ls"), "?"),
        (r#"{"command":"rm",}"#, None, "?"),
        (r#"[{"command":"rm"}]"#, None, "?"),
        ("rm -rf", None, "?"),
        (" ", None, "-"),
        (r#"{"command":null}"#, None, "-"),
        // What was sent beside the input is not what follows from it.
        ("rm -rf", kept("ls"), "ls"),
        (r#"{"command":"ls"}"#, kept("rm"), "rm"),
        (r#"{"command":["a","b"]}"#, kept("rm"), "rm"),
    ];
    let mut recorder = Recorder::new(record::schema());
    let mut expected = Vec::new();
    for (nth, (input, command, is)) in cases.into_iter().enumerate() {
        // An input and its command as they are, and without one of the two.
        for (with_input, lost) in [(true, nothing), (true, missing), (false, nothing)] {
            let mut symbols = Symbols::new();
            let mut event = Event::new(5, Occasion::PreTool);
            if with_input {
                event.set(Field::TOOL_INPUT, Value::Text(symbols.intern(input)));
            }
            let command = lost.or(command.map(|text| Value::Text(symbols.intern(text))));
            event.set(Field::TOOL_COMMAND, command.unwrap_or(Value::Absent));
            let owned = OwnedRecord::of(&event, &symbols);
            record::put(
                &owned,
                &format!("hev_{nth:024}{:02}", expected.len()),
                &mut recorder,
            )
            .unwrap();
            expected.push(match (with_input, lost) {
                (true, None) => is.to_owned(),
                (_, Some(_)) => "?".to_owned(),
                (false, None) => told(event.get(Field::TOOL_COMMAND), &symbols),
            });
        }
    }
    let batch = recorder.finish().unwrap();
    for (row, expected) in expected.iter().enumerate() {
        let mut symbols = Symbols::new();
        let event = record::event(&batch, row, &mut symbols).unwrap();
        assert_eq!(
            told(event.get(Field::TOOL_COMMAND), &symbols),
            *expected,
            "row {row}"
        );
        let again = OwnedRecord::of(&event, &symbols).event(&mut symbols);
        assert_eq!(again, event);
    }
    let lens = AttributeProjection::new([Field::TOOL_COMMAND]);
    let columns = lens
        .positions()
        .iter()
        .map(|place| batch.columns[*place].clone())
        .collect();
    let batch = provost_history::Batch { columns, ..batch };
    let mut symbols = Symbols::new();
    let view = View::new(&lens, &batch, &mut symbols).unwrap();
    let place = lens.fields().binary_search(&Field::TOOL_COMMAND).unwrap();
    let (mut piece, mut codes) = (RowBatch::new(&lens), Codes::default());
    piece.push(&view, &mut codes, &batch, 0..20);
    piece.push(&view, &mut codes, &batch, 20..expected.len());
    let judged = piece.take(&lens).unwrap();
    for (row, expected) in expected.iter().enumerate() {
        let value = view.value(&batch, place, row).unwrap();
        assert_eq!(told(value, &symbols), *expected, "column, row {row}");
        assert_eq!(judged.value(Field::TOOL_COMMAND, row), value);
    }
}
