//! What is read of a tool's input, against the other reader, on any text.

use super::document::{self, Input, Tree};
use super::random::Dice;
use provost_policy::{Event, Field, Occasion, Symbols, Value as Judged, exact_document};
use serde_json::{Map, Value, json};

/// Pieces of which texts are made that are nearly documents.
const PIECES: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    " ",
    "\n",
    "\"a\"",
    "\"b\":",
    "\"\\u0061\":",
    "{}",
    "[]",
    "\"\"",
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e9",
    "1e999",
    "9007199254740993",
    "\\ud800",
    "\\udc00",
    "é",
    "\u{feff}",
    "\u{1}",
    "\"command\":",
];

/// Any text is read without a panic, and what is read is what the other readers read.
pub fn inputs(data: &[u8]) {
    agrees(&String::from_utf8_lossy(data));
}

fn agrees(text: &str) {
    let mut symbols = Symbols::new();
    let attributes = Map::from_iter([("tool.input".to_owned(), json!(text))]);
    let event = Event::read(&mut symbols, 0, Occasion::PreTool, &attributes, &[]).unwrap();
    let command = event.get(Field::TOOL_COMMAND);
    let nested = event.nested(&symbols);
    let whole = exact_document(text);
    match document::input(&json!(text)) {
        Input::Nothing => {
            assert_eq!(command, Judged::Absent, "{text}");
            assert!(event.unreadable(&symbols).is_empty() && event.lost(&symbols).is_empty());
        }
        Input::Unsaid(_) => {
            assert_eq!(command, Judged::Missing, "{text}");
            assert_eq!(event.unreadable(&symbols), [Field::TOOL_INPUT], "{text}");
            assert!(
                event
                    .lost(&symbols)
                    .iter()
                    .any(|lost| lost.path == ["tool", "input"]),
                "{text}"
            );
        }
        Input::Object(tree) => {
            // What is taken out whole has at most 127 levels.
            let said = tree.exact().filter(|_| levels(&tree) <= 127);
            assert_eq!(whole, said, "{text}");
            assert_eq!(
                event.lost(&symbols).is_empty(),
                whole.is_some() && command != Judged::Missing,
                "{text}"
            );
            if let (Some(whole), Judged::Absent | Judged::Text(_)) = (&whole, command)
                && whole.get("command").is_none_or(Value::is_string)
            {
                assert_eq!(&nested["tool"]["input"], whole, "{text}");
            }
        }
    }
    // Where the parser that everybody uses reads an object, so does this one, unless it names a member twice.
    if let (Ok(theirs), Some(ours)) = (serde_json::from_str::<Value>(text), whole) {
        assert_eq!(
            provost_policy::exact_text(&theirs),
            provost_policy::exact_text(&ours),
            "{text}"
        );
    }
}

/// Proves BY-1.
#[test]
fn three_readers_agree_on_any_text() {
    let mut dice = Dice::new(90_000);
    let (mut objects, mut unread) = (0, 0);
    for _ in 0..60_000 {
        let mut text = match dice.below(3) {
            0 => String::new(),
            1 => "{\"a\":[1,{\"b\":\"x\"}],\"command\":\"ls\"}".to_owned(),
            _ => "{\"command\":[\"rm\",\"-rf\"],\"n\":-0.5e1,\"t\":\"\\ud83d\\ude00\"}".to_owned(),
        };
        for _ in 0..dice.below(4) {
            let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
            let at = dice.pick(&places);
            match dice.below(3) {
                0 => text.insert_str(at, dice.pick(&PIECES)),
                1 => text.truncate(at),
                _ => drop(text.drain(at..places.iter().copied().find(|next| *next > at).unwrap_or(at))),
            }
        }
        agrees(&text);
        match document::input(&json!(text)) {
            Input::Object(_) => objects += 1,
            _ => unread += 1,
        }
    }
    assert!(objects > 5_000 && unread > 5_000, "{objects} {unread}");
}

#[test]
fn what_a_module_cannot_see_of_an_event_is_named() {
    let paths = |attributes: &Value, missing: &[&str]| {
        let mut symbols = Symbols::new();
        let attributes = attributes.as_object().unwrap();
        let event = Event::read(&mut symbols, 0, Occasion::PreTool, attributes, missing).unwrap();
        let paths = event.missing_paths(&symbols).into_iter();
        paths.map(|path| path.join("/")).collect::<Vec<String>>()
    };
    let of = |input: &Value| paths(&json!({ "tool.input": input }), &[]);
    let nothing: [&str; 0] = [];
    for fine in [
        json!({"command": ["rm", "-rf"], "n": 1}),
        json!(""),
        json!(" {\"a\":[{}]}"),
        Value::Null,
    ] {
        assert_eq!(of(&fine), nothing, "{fine}");
    }
    // What is no object is seen whole, and nobody can say what is below it.
    for unread in [
        json!("rm -rf /"),
        json!("{\"a\":1,}"),
        json!("{\"a\":1,\"a\":1}"),
        json!([{"command": "rm"}]),
    ] {
        assert_eq!(of(&unread), ["tool/input/"], "{unread}");
    }
    let parts = r#"{"a":{"b":1e999,"c":2},"list":[1,"\ud800"],"command":{"run":"rm"}}"#;
    assert_eq!(
        of(&json!(parts)),
        ["tool/input/a/b", "tool/input/list", "tool/input/command"]
    );
    // Of two things at one place, the nested form has one.
    let beside = json!({"tool.input": "*** Begin Patch", "tool.input.command": "apply"});
    assert_eq!(paths(&beside, &[]), ["tool/input/", "tool/input"]);
    let more = json!({"tool.result": "ok", "tool.id": "t"});
    assert_eq!(
        paths(&more, &["identity.user_id"]),
        ["identity/user_id", "identity/user_words", "tool/result/"]
    );
    assert_eq!(paths(&json!({}), &["tool.input"]).len(), 10);
}

/// How deep it is.
fn levels(tree: &Tree) -> usize {
    match tree {
        Tree::List(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Tree::Object(members) => 1 + members.iter().map(|(_, value)| levels(value)).max().unwrap_or(0),
        _ => 0,
    }
}
