use super::*;
use crate::error::{Code, Error};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

fn refused(text: &[u8]) -> Error {
    let error = parse(text, 32).expect_err("must be refused");
    assert_eq!(error.code(), Code::InvalidRequest);
    error
}

/// The JSON Pointer and the message of the only field error.
fn field(error: &Error) -> (String, String) {
    let envelope = error.envelope("req_1");
    let fields = envelope["errors"].as_array().expect("field errors");
    assert_eq!(fields.len(), 1);
    let text = |name: &str| fields[0][name].as_str().unwrap().to_owned();
    (text("path"), text("message"))
}

#[test]
fn a_document_is_read_as_it_stands() {
    let text = br#" {"a":[1,-2,2.5,1e3,true,false,null,"\u00fc\ud83d\ude00"],"":{"b":{}},"n":18446744073709551615} "#;
    let expected = json!({
        "a": [1, -2, 2.5, 1000.0, true, false, null, "ü😀"], "": { "b": {} }, "n": u64::MAX,
    });
    assert_eq!(parse(text, 32).unwrap(), expected);
}

#[test]
fn what_is_not_strict_json_is_refused() {
    let cases: &[&[u8]] = &[
        b"",
        b" ",
        b"{",
        b"{}{}",
        b"{} x",
        b"{}\0",
        b"\xEF\xBB\xBF{}",
        b"\xFE\xFF\x00{",
        b"{\"a\":\"\xFF\"}",
        b"{\"a\":\"\xED\xA0\x80\"}",
        b"{'a':1}",
        b"{a:1}",
        b"{\"a\":1,}",
        b"[1,]",
        b"[,]",
        b"{\"a\"}",
        b"{1:2}",
        b"// c\n{}",
        b"/* c */{}",
        b"NaN",
        b"[NaN]",
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e400]",
        b"[-1e400]",
        b"[01]",
        b"[+1]",
        b"[.5]",
        b"[1.]",
        b"[0x10]",
        b"[1e]",
        b"\"\\ud800\"",
        b"\"\\udc00\"",
        b"\"\\ud800\\ud800\"",
        b"\"\\ud800x\"",
        b"{\"\\ud800\":1}",
        b"\"\\x41\"",
        b"\"a\nb\"",
        b"\"a\x00b\"",
        b"\"open",
        b"tru",
        b"nul",
    ];
    for text in cases {
        refused(text);
    }
}

#[test]
fn a_member_given_twice_is_refused_at_every_level() {
    for (text, pointer) in [
        (r#"{"a":1,"a":1}"#, ""),
        (r#"{"a":1,"\u0061":2}"#, ""),
        (r#"{"x":{"a":1,"b":2,"a":3}}"#, "/x"),
        (r#"[0,{"y/z":[{"a":null,"a":null}]}]"#, "/1/y~1z/0"),
    ] {
        let error = refused(text.as_bytes());
        let (path, message) = field(&error);
        assert_eq!(path, pointer);
        assert!(message.ends_with("has the member `a` twice"), "{message}");
    }
}

#[test]
fn nesting_is_counted_exactly() {
    for depth in [1, 2, 32, 64] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let leaf = if open == "[" { "" } else { "1" };
            let nested = |levels| format!("{}{leaf}{}", open.repeat(levels), close.repeat(levels));
            assert!(parse(nested(depth).as_bytes(), depth).is_ok(), "{open} {depth}");
            let error = parse(nested(depth + 1).as_bytes(), depth).unwrap_err();
            assert!(
                error.message().contains(&format!("deeper than {depth} levels")),
                "{error}"
            );
            assert!(parse(nested(100_000).as_bytes(), depth).is_err());
        }
    }
    assert!(parse(b"1", 0).is_ok());
    assert!(parse(b"[]", 0).is_err());
}

#[test]
fn a_refusal_says_where_and_shows_no_value() {
    for (text, pointer) in [
        (r#"{"a":{"b":["hunter2",tru]}}"#, "/a/b/1"),
        (r#"{"a":"hunter2\ud800"}"#, "/a"),
        (r#"{"a":"hunter2","b":1e999}"#, "/b"),
        (r#"{"m~n":"hunter2"#, "/m~0n"),
        (r#"{"a":"hunter2"} hunter2"#, ""),
        ("hunter2", ""),
    ] {
        let error = refused(text.as_bytes());
        let (path, message) = field(&error);
        assert_eq!(path, pointer, "{text}");
        assert!(
            message.contains("is not valid JSON at line 1, column "),
            "{message}"
        );
        assert!(!error.message().contains("hunter2"), "{error}");
    }
}

#[test]
fn unparsed_text_cannot_be_smuggled_in() {
    for name in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        refused(
            json!({ "a": { name: "{\"b\":1,\"b\":2}" } })
                .to_string()
                .as_bytes(),
        );
    }
}

#[test]
fn a_long_or_wild_member_name_is_shown_short() {
    let name = "é\\u0007".repeat(200);
    let error = refused(format!("{{\"{name}\":1,\"{name}\":1}}").as_bytes());
    assert!(error.message().chars().count() < 120, "{error}");
    assert!(!error.message().contains('\u{7}'));
}

#[test]
fn canonical_text_is_that_of_rfc_8785() {
    // The sample of RFC 8785 §3.2.2 and the sorting sample of §3.2.3.
    let sample = br#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    let mut sample = parse(sample, 32).unwrap();
    super::round(&mut sample);
    assert_eq!(canonical(&sample), expected);
    let names = json!({ "\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "😀": 5, "\u{80}": 6, "ö": 7 });
    let sorted = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}";
    assert_eq!(canonical(&names), sorted);
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    reason: String,
    #[serde(default)]
    confirm: Option<bool>,
    #[serde(default)]
    count: Option<u8>,
    #[serde(default)]
    items: Vec<Item>,
    #[serde(default)]
    labels: BTreeMap<String, i64>,
    #[serde(default)]
    choice: Option<Choice>,
    #[serde(default)]
    price: Option<f64>,
    #[serde(default)]
    extra: serde_json::Map<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    name: Word,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    FirstWord,
    SecondWord,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Choice {
    One(u8),
    Many(Vec<u8>),
}

fn order(value: Value) -> Result<Order, Error> {
    decode(value, "")
}

fn complaint(value: Value) -> (String, String) {
    let error = order(value).unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest);
    field(&error)
}

#[test]
fn a_body_becomes_its_type() {
    let full = json!({
        "reason": "because", "confirm": true, "count": 255, "labels": { "a": -1 }, "choice": [1, 2],
        "items": [{ "name": "first_word" }, { "name": "second_word" }], "price": 2,
    });
    let read = order(full).unwrap();
    assert_eq!(
        read.items,
        [
            Item {
                name: Word::FirstWord
            },
            Item {
                name: Word::SecondWord
            }
        ]
    );
    assert_eq!(
        (read.confirm, read.count, read.price),
        (Some(true), Some(255), Some(2.0))
    );
    assert_eq!(read.choice, Some(Choice::Many(vec![1, 2])));
    assert_eq!(read.labels["a"], -1);
    let least = order(json!({ "reason": "because", "confirm": null })).unwrap();
    assert_eq!(least.confirm, None);
}

/// Sets one member of a good body and compares the refusal, which must show no value.
fn assert_complaint(member: &str, value: Value, path: &str, message: &str) {
    let mut body = json!({ "reason": "x" });
    body[member] = value;
    assert_eq!(complaint(body.clone()), (path.to_owned(), message.to_owned()));
    let error = order(body).unwrap_err();
    let shown = format!("{error} {error:?} {}", error.envelope("req_1"));
    assert!(!shown.contains("hunter2") && !shown.contains("1234"), "{shown}");
}

#[test]
fn a_value_of_the_wrong_type_is_named_and_not_shown() {
    for (member, value, message) in [
        ("reason", json!(1234), "must be a string, not a number"),
        ("reason", json!(null), "must be a string, not null"),
        ("reason", json!(["hunter2"]), "must be a string, not an array"),
        ("confirm", json!("hunter2"), "must be a boolean, not a string"),
        ("confirm", json!("true"), "must be a boolean, not a string"),
        ("count", json!(256), "must be a whole number from 0 to 255"),
        ("count", json!(-1), "must be a whole number from 0 to 255"),
        (
            "count",
            json!(1.5),
            "must be a whole number from 0 to 255, not a number",
        ),
        (
            "count",
            json!("5"),
            "must be a whole number from 0 to 255, not a string",
        ),
        ("items", json!({}), "must be an array, not an object"),
        ("labels", json!([]), "must be an object, not an array"),
        ("labels", json!(null), "must be an object, not null"),
        ("extra", json!(null), "must be an object, not null"),
        ("choice", json!("hunter2"), "has none of the accepted forms"),
        ("price", json!("hunter2"), "must be a number, not a string"),
    ] {
        assert_complaint(member, value, &format!("/{member}"), message);
    }
    assert_eq!(
        complaint(json!({})),
        ("/reason".into(), "the member `reason` is required".into())
    );
    assert_eq!(
        complaint(json!([1])).1,
        "the body must be an object, not an array"
    );
    assert_eq!(
        complaint(json!(["because", true])).1,
        "the body must be an object, not an array"
    );
    assert_eq!(
        complaint(json!("hunter2")),
        (String::new(), "the body must be an object, not a string".into())
    );
}

#[test]
fn a_refusal_points_at_the_member_however_deep() {
    let words = "must be one of `first_word`, `second_word`";
    let second = json!([{ "name": "first_word" }, { "name": "hunter2" }]);
    let unknown = json!([{ "name": "first_word", "a/b~": 1 }]);
    assert_complaint("comfirm", json!(true), "/comfirm", "unknown member `comfirm`");
    assert_complaint(
        "items",
        json!(["hunter2"]),
        "/items/0",
        "must be an object, not a string",
    );
    assert_complaint(
        "items",
        json!([{}]),
        "/items/0/name",
        "the member `name` is required",
    );
    assert_complaint("items", second, "/items/1/name", words);
    assert_complaint(
        "items",
        json!([{ "name": 5 }]),
        "/items/0/name",
        "has none of the accepted forms",
    );
    assert_complaint("items", unknown, "/items/0/a~1b~0", "unknown member `a/b~`");
    let label = json!({ "k": "hunter2" });
    assert_complaint(
        "labels",
        label,
        "/labels/k",
        "must be a whole number in range, not a string",
    );
}

#[test]
fn an_externally_tagged_choice_names_the_path_through_its_tag() {
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Shape {
        Point,
        Circle { radius: u8 },
        Pair(u8, u8),
    }
    let shape = |value| decode::<Shape>(value, "");
    assert!(matches!(shape(json!("point")).unwrap(), Shape::Point));
    assert!(matches!(
        shape(json!({ "circle": { "radius": 3 } })).unwrap(),
        Shape::Circle { radius: 3 }
    ));
    assert!(matches!(
        shape(json!({ "pair": [1, 2] })).unwrap(),
        Shape::Pair(1, 2)
    ));
    let error = shape(json!({ "circle": { "radius": "hunter2" } })).unwrap_err();
    assert_eq!(field(&error).0, "/circle/radius");
    for wrong in [
        json!({ "pair": [1] }),
        json!({ "pair": [1, 2, 3] }),
        json!({ "point": {}, "circle": {} }),
    ] {
        assert!(shape(wrong).is_err());
    }
    assert!(
        field(&shape(json!("hunter2")).unwrap_err())
            .1
            .contains("`point`, `circle`, `pair`")
    );
}

#[test]
fn a_tagged_choice_shows_no_value() {
    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
    enum Credential {
        Password { username: String },
    }
    let read = |value| decode::<Credential>(value, "");
    let Credential::Password { username } = read(json!({ "kind": "password", "username": "u" })).unwrap();
    assert_eq!(username, "u");
    for wrong in [
        json!({ "kind": "hunter2" }),
        json!({ "kind": "password", "username": ["hunter2"] }),
        json!({ "kind": "password", "username": "u", "more": "hunter2" }),
        json!({ "username": "hunter2" }),
        json!(["hunter2"]),
    ] {
        let error = read(wrong).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(!error.message().contains("Credential"), "{error}");
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    #[serde(default)]
    status: Option<Word>,
    #[serde(default)]
    size: u32,
    #[serde(default)]
    deep: bool,
    #[serde(default)]
    ids: Vec<String>,
}

#[test]
fn a_query_spells_numbers_and_truth_as_text() {
    let read = |value| decode::<Filter>(value, "/query");
    let filter =
        read(json!({ "status": "first_word", "size": "007", "deep": "true", "ids": ["1", "x"] })).unwrap();
    assert_eq!(
        (filter.status, filter.size, filter.deep),
        (Some(Word::FirstWord), 7, true)
    );
    assert_eq!(filter.ids, ["1", "x"]);
    assert_eq!(read(json!({ "ids": "only" })).unwrap().ids, ["only"]);
    assert!(read(json!({ "size": ["1", "2"] })).is_err());
    assert!(decode::<Filter>(json!({ "ids": "only" }), "").is_err());
    for (name, text) in [
        ("size", "+5"),
        ("size", ""),
        ("size", "1e1"),
        ("size", "-1"),
        ("size", "4294967296"),
        ("size", " 5"),
        ("size", "٣"),
        ("deep", "True"),
        ("deep", "1"),
        ("deep", ""),
        ("status", ""),
        ("status", "hunter2"),
    ] {
        let error = read(json!({ name: text })).unwrap_err();
        let (path, message) = field(&error);
        assert_eq!(path, format!("/query/{name}"));
        assert!(message.starts_with("must be "), "{message}");
    }
}

#[test]
fn an_unknown_parameter_has_a_code_of_its_own() {
    let error = decode::<Filter>(json!({ "stauts": "first_word" }), "/query").unwrap_err();
    assert_eq!(error.code(), Code::UnknownParameter);
    assert_eq!(
        field(&error),
        ("/query/stauts".into(), "unknown parameter `stauts`".into())
    );
    let error = decode::<Order>(json!({}), "/query").unwrap_err();
    assert_eq!(
        field(&error),
        (
            "/query/reason".into(),
            "the parameter `reason` is required".into()
        )
    );
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn parsing_answers_as_serde_json_does(value in document()) {
        let text = value.to_string();
        let plain: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(parse(text.as_bytes(), 32).unwrap(), plain);
    }

    #[test]
    fn canonical_text_is_a_fixed_point(value in document()) {
        let text = canonical(&value);
        prop_assert_eq!(canonical(&parse(text.as_bytes(), 32).unwrap()), text);
    }

    #[test]
    fn parsing_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\":,\\\\u0-9a-f .eE+-]{0,60}") {
        let _ = parse(&bytes, 32);
        let parsed = parse(text.as_bytes(), 32);
        prop_assert!(parsed.is_err() || serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn decoding_never_shows_a_value(value in document(), secret in "[a-z]{12}") {
        fn plant(value: &mut Value, secret: &str) {
            match value {
                Value::String(text) => *text = secret.to_owned(),
                Value::Array(items) => items.iter_mut().for_each(|item| plant(item, secret)),
                Value::Object(members) => members.values_mut().for_each(|member| plant(member, secret)),
                _ => {}
            }
        }
        let mut value = value;
        plant(&mut value, &secret);
        let body = json!({ "reason": "x", "items": value, "choice": value, "confirm": value });
        for base in ["", "/query"] {
            for error in [
                decode::<Order>(body.clone(), base).err(),
                decode::<Order>(value.clone(), base).err(),
                decode::<Choice>(value.clone(), base).err(),
            ].into_iter().flatten() {
                prop_assert!(!format!("{error:?}").contains(&secret), "{error:?}");
            }
        }
    }
}

/// Proves BY-5.
#[test]
fn a_number_that_no_double_is_is_kept_as_it_is_written() {
    let body = r#"{"1.23456789012345678901":[1,-2,1.5,1e2,-0,0.1,18446744073709551615,"\"9.99999999999999999999"],
        "a":9007199254740993.5,"b":{"c":[18446744073709551616,0.1000000000000000055511151231257827]}}"#;
    let document = parse(body.as_bytes(), 8).unwrap();
    let kept = |number: &str| json!({ super::INEXACT: number });
    assert_eq!(document["a"], kept("9007199254740993.5"));
    assert_eq!(document["b"]["c"][0], kept("18446744073709551616"));
    assert_eq!(
        document["b"]["c"][1],
        kept("0.1000000000000000055511151231257827")
    );
    assert_eq!(document["1.23456789012345678901"][2], json!(1.5));
    // It is written as it was read.
    let written = serde_json::to_string(&super::ExactDocument(&document)).unwrap();
    assert_eq!(parse(written.as_bytes(), 8).unwrap(), document);
    assert!(
        written.contains("0.1000000000000000055511151231257827"),
        "{written}"
    );
    // Who does not ask for it as it is written gets the nearest one; so does who asks for the value alone.
    let number: f64 = decode(document["a"].clone(), "").unwrap();
    assert_eq!(number.to_bits(), 9_007_199_254_740_994.0_f64.to_bits());
    let value: Value = decode(document["b"].clone(), "").unwrap();
    assert_eq!(value["c"][1], json!(0.1));
    let super::ExactNumbers(value): super::ExactNumbers<Value> = decode(document["b"].clone(), "").unwrap();
    assert_eq!(value, document["b"]);
    let mut rounded = document.clone();
    super::round(&mut rounded);
    assert_eq!(rounded["a"], json!(9_007_199_254_740_994.0));
    assert!(!super::mark_whole(&mut rounded["b"]));
    let mut whole = json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]);
    assert!(super::mark_whole(&mut whole));
    assert_eq!(
        whole,
        json!([kept("9007199254740993"), 9_007_199_254_740_992_i64])
    );
    // No body spells the object that stands for it.
    let forged = format!("{{\"a\":{{\"{}\":\"1\"}}}}", super::INEXACT);
    assert!(parse(forged.as_bytes(), 8).is_err());
    assert_eq!(super::INEXACT, "$serde_json::private::provost::number");
}
