use super::*;
use crate::error::Code;
use crate::json::decode;
use crate::keys::tests::Scratch;
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

#[test]
fn a_page_has_fifty_items_from_the_start_unless_told_otherwise() {
    let page: Page = decode(json!({}), "/query").unwrap();
    assert_eq!((page.limit.get(), page.offset.get()), (50, 0));
    let page: Page = decode(json!({ "limit": "100", "offset": "9007199254740991" }), "/query").unwrap();
    assert_eq!(
        (page.limit.get(), page.offset.get()),
        (100, 9_007_199_254_740_991)
    );
    let page: Page = decode(json!({ "limit": 1, "offset": 7 }), "/query").unwrap();
    assert_eq!((page.limit.get(), page.offset.get()), (1, 7));
}

#[test]
fn what_is_no_plain_number_in_range_is_refused() {
    for limit in [
        "",
        "0",
        "101",
        "+5",
        "1e1",
        " 5",
        "5 ",
        "-1",
        "5.0",
        "0x1",
        "five",
        "٥",
        "1_0",
        "99999999999999999999",
    ] {
        let error = decode::<Page>(json!({ "limit": limit }), "/query").unwrap_err();
        assert_eq!(
            error.message(),
            "/query/limit: must be a whole number from 1 to 100",
            "{limit:?}"
        );
    }
    for offset in ["", "-1", "9007199254740992", "+0", "1e3", "0.0"] {
        assert!(
            decode::<Page>(json!({ "offset": offset }), "/query").is_err(),
            "{offset:?}"
        );
    }
    for limit in [
        json!(0),
        json!(101),
        json!(5.5),
        json!(null),
        json!(["5"]),
        json!(true),
    ] {
        assert!(
            decode::<Page>(json!({ "limit": limit }), "/query").is_err(),
            "{limit}"
        );
    }
}

#[test]
fn limit_and_offset_survive_being_flattened() {
    #[derive(Deserialize)]
    struct Listing {
        #[serde(flatten)]
        page: Page,
    }
    let listing: Listing = decode(json!({ "limit": "7", "offset": "8" }), "/query").unwrap();
    assert_eq!((listing.page.limit.get(), listing.page.offset.get()), (7, 8));
}

#[test]
fn schemas_publish_bounds_and_default() {
    let mut generator = SchemaGenerator::default();
    let limit = serde_json::to_value(generator.subschema_for::<Limit>()).unwrap();
    assert_eq!(
        limit,
        json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 50 })
    );
    let offset = serde_json::to_value(generator.subschema_for::<Offset>()).unwrap();
    assert_eq!(offset["maximum"], json!(9_007_199_254_740_991_i64));
}

#[test]
fn a_cursor_opens_in_its_own_list_only() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let keys = scratch.create(1);
    let cursor = Cursor::issue(&keys, "acme", "listBacktests", 42);
    assert_eq!(cursor.as_str().len(), 32);
    assert_eq!(cursor.open(&keys, "acme", "listBacktests").unwrap(), 42);
    for (organization, operation) in [
        ("acmf", "listBacktests"),
        ("acme", "listUsers"),
        ("acmel", "istBacktests"),
    ] {
        let error = cursor.open(&keys, organization, operation).unwrap_err();
        assert_eq!(error.code(), Code::InvalidRequest);
    }
    assert!(cursor.open(&other.create(2), "acme", "listBacktests").is_err());
}

#[test]
fn every_changed_character_of_a_cursor_is_refused() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let cursor = Cursor::issue(&keys, "acme", "listBacktests", 42);
    for at in 0..cursor.as_str().len() {
        for other in ["A", "b", "_", "=", "é", ""] {
            let mut text = cursor.as_str().to_owned();
            text.replace_range(at..=at, other);
            if text != cursor.as_str() {
                assert!(
                    Cursor(text).open(&keys, "acme", "listBacktests").is_err(),
                    "{other:?} at {at}"
                );
            }
        }
    }
}

#[test]
fn a_cursor_travels_as_text() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let cursor = Cursor::issue(&keys, "acme", "listBacktests", -1);
    let sent = serde_json::to_value(&cursor).unwrap();
    assert_eq!(decode::<Cursor>(sent, "/query").unwrap(), cursor);
    assert!(decode::<Cursor>(json!("x".repeat(128)), "/query").is_ok());
    for bad in [json!(""), json!("x".repeat(129)), json!(7)] {
        assert!(decode::<Cursor>(bad, "/query").is_err());
    }
    assert!(
        decode::<Cursor>(json!("hello"), "/query")
            .unwrap()
            .open(&keys, "acme", "listBacktests")
            .is_err()
    );
}

#[test]
fn every_position_comes_back() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    proptest!(|(position: i64, organization in "[a-z]{1,9}", operation in "[a-zA-Z]{1,9}")| {
        let cursor = Cursor::issue(&keys, &organization, &operation, position);
        prop_assert_eq!(cursor.open(&keys, &organization, &operation).unwrap(), position);
    });
}

#[test]
fn a_page_that_was_read_too_long_says_where_it_goes_on() {
    let limit = Limit::new(2).unwrap();
    let mut found = vec![1, 2, 3];
    assert_eq!(cut(&mut found, limit), Some(&2));
    assert_eq!(found, [1, 2]);
    assert_eq!(cut(&mut found, limit), None);
    assert_eq!(cut(&mut vec![1], limit), None);
    assert_eq!(cut(&mut Vec::<i64>::new(), limit), None);
}
