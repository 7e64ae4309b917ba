use super::*;
use crate::json::decode;
use proptest::prelude::*;
use serde_json::json;

fn read<T: de::DeserializeOwned>(text: &str) -> Option<T> {
    decode(json!(text), "").ok()
}

/// Proves SA-6.
#[test]
fn names_are_compared_folded_and_composed() {
    for (one, two) in [
        ("Deploy", "dEPLOY"),
        ("Straße", "STRASSE"),
        ("Å", "A\u{30a}"),
        ("\u{212b}", "å"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ﬁn", "FIN"),
        ("\u{1e9e}", "ss"),
        ("ǰ", "J\u{30c}"),
        ("\u{3b1}\u{345}", "\u{1fb3}"),
    ] {
        assert_eq!(name_key(one), name_key(two), "{one} {two}");
    }
    for (one, two) in [
        ("a", "ä"),
        ("ı", "i"),
        ("deploy", "deploy2"),
        ("a b", "ab"),
        ("ｆ", "f"),
    ] {
        assert_ne!(name_key(one), name_key(two), "{one} {two}");
    }
}

#[test]
fn the_key_of_every_character_is_its_own_key() {
    for c in '\0'..=char::MAX {
        let key = name_key(&c.to_string());
        assert_eq!(name_key(&key), key, "{c:?} {:x}", c as u32);
    }
}

#[test]
fn a_name_has_one_line_of_1_to_128_characters() {
    for good in ["a", "deploy bot", "ü", &"😀".repeat(128), "a\u{a0}b"] {
        assert_eq!(Name::parse(good).unwrap().as_str(), good);
        assert_eq!(read::<Name>(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        " ",
        " a",
        "a ",
        "a\u{a0}",
        "\u{feff}a",
        "\ta",
        "a\nb",
        "a\tb",
        "a\0",
        "a\u{7f}b",
        "a\u{85}b",
        "a\u{2028}b",
        &"x".repeat(129),
    ] {
        assert!(Name::parse(bad).is_err(), "{bad:?}");
        assert!(read::<Name>(bad).is_none(), "{bad:?}");
    }
    assert_eq!(Name::parse("A\u{30a}").unwrap().as_str(), "Å");
    assert!(
        Name::parse(&"A\u{30a}".repeat(128)).is_err(),
        "counted as sent, like the schema does"
    );
    let grows = "\u{958}".repeat(128);
    assert_eq!(grows.nfc().count(), 256);
    assert!(Name::parse(&grows).is_ok(), "counted as sent");
}

#[test]
fn a_description_may_have_lines() {
    for good in ["", "a\nb\tc", " ", &"ü".repeat(1024)] {
        assert_eq!(Description::parse(good).unwrap().as_str(), good);
    }
    for bad in ["a\rb", "\0", "\u{1b}[0m", "\u{9b}", &"x".repeat(1025)] {
        assert!(Description::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_reason_is_trimmed_and_stays_on_one_line() {
    assert_eq!(Reason::parse("  leaver’s day ").unwrap().as_str(), "leaver’s day");
    let longest = "x".repeat(500);
    assert_eq!(Reason::parse(&format!(" {longest} ")).unwrap().as_str(), longest);
    for bad in [
        "",
        "   ",
        "\u{3000}",
        "\u{feff}",
        "a\nb",
        "a\n",
        "\ta",
        "a\rb",
        "a\u{1b}b",
        "a\u{2029}",
        &"x".repeat(501),
    ] {
        assert!(Reason::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn an_idempotency_key_is_visible_ascii_and_never_shown() {
    let all: String = ('!'..='~').collect();
    for good in ["a", &all, &"~".repeat(255)] {
        assert_eq!(IdempotencyKey::parse(good).unwrap().as_str(), good);
    }
    for bad in ["", " ", "a b", "a\n", "ü", "\u{7f}", &"x".repeat(256)] {
        assert!(IdempotencyKey::parse(bad).is_err(), "{bad:?}");
    }
    let key = IdempotencyKey::parse("hunter2").unwrap();
    assert_eq!(format!("{key:?}"), "…");
}

#[test]
fn a_refusal_names_the_limits_and_not_the_value() {
    for refusal in [
        Name::parse(" hunter2").unwrap_err(),
        Description::parse("hunter2\0").unwrap_err(),
        Reason::parse("hunter2\n").unwrap_err(),
        IdempotencyKey::parse("hunter2 ").unwrap_err(),
        "hunter2".parse::<IntegerBetween<1, 128>>().unwrap_err(),
    ] {
        let sentence = refusal.to_string();
        assert!(
            sentence.starts_with("must ") && !sentence.contains("hunter2"),
            "{sentence}"
        );
        assert!(
            ["128", "1024", "500", "255"]
                .iter()
                .any(|limit| sentence.contains(limit)),
            "{sentence}"
        );
    }
    let error = decode::<Reason>(json!("hunter2\n"), "").unwrap_err();
    assert!(error.message().contains("1 to 500") && !error.message().contains("hunter2"));
}

#[test]
fn a_number_in_a_body_is_an_integer_between_the_bounds() {
    type Percent = IntegerBetween<-5, 100>;
    for good in [-5, 0, 100] {
        assert_eq!(decode::<Percent>(json!(good), "").unwrap().get(), good);
    }
    // JSON Schema counts these among the integers.
    assert_eq!(decode::<Percent>(json!(5.0), "").unwrap().get(), 5);
    assert_eq!(decode::<Percent>(json!(1e1), "").unwrap().get(), 10);
    for bad in [
        json!(-6),
        json!(101),
        json!(u64::MAX),
        json!(5.5),
        json!(101.0),
        json!(1e300),
        json!("5"),
        json!(null),
        json!(true),
        json!([5]),
    ] {
        assert!(decode::<Percent>(bad.clone(), "").is_err(), "{bad}");
    }
    let error = decode::<Percent>(json!(101), "").unwrap_err();
    assert_eq!(error.message(), "the body must be a whole number from -5 to 100");
    assert_eq!((Percent::new(101), Percent::new(-6)), (None, None));
    assert_eq!(serde_json::to_value(Percent::new(7).unwrap()).unwrap(), json!(7));
}

#[test]
fn a_number_in_a_query_is_digits() {
    type Percent = IntegerBetween<0, 100>;
    for (text, value) in [("0", 0), ("100", 100), ("007", 7)] {
        assert_eq!(decode::<Percent>(json!(text), "/query").unwrap().get(), value);
        assert_eq!(text.parse::<Percent>().unwrap().get(), value);
    }
    for bad in [
        "",
        "+5",
        "-0",
        "-1",
        "1e1",
        "5.0",
        " 5",
        "5 ",
        "0x5",
        "٣",
        "101",
        "99999999999999999999999",
    ] {
        assert!(decode::<Percent>(json!(bad), "/query").is_err(), "{bad:?}");
        assert!(bad.parse::<Percent>().is_err(), "{bad:?}");
    }
}

#[test]
fn schemas_publish_the_limits() {
    let schema = |schema: Schema| serde_json::to_value(schema).unwrap();
    let mut generator = SchemaGenerator::default();
    for (name, shown, max) in [
        ("Name", schema(generator.subschema_for::<Name>()), 128),
        (
            "Description",
            schema(generator.subschema_for::<Description>()),
            1024,
        ),
        ("Reason", schema(generator.subschema_for::<Reason>()), 500),
        (
            "IdempotencyKey",
            schema(generator.subschema_for::<IdempotencyKey>()),
            255,
        ),
    ] {
        assert_eq!(
            (&shown["type"], &shown["maxLength"]),
            (&json!("string"), &json!(max)),
            "{name}"
        );
        assert!(shown["pattern"].as_str().unwrap().starts_with('^'));
    }
    let shown = schema(generator.subschema_for::<IntegerBetween<1, 9>>());
    assert_eq!(shown, json!({ "type": "integer", "minimum": 1, "maximum": 9 }));
}

proptest! {
    #[test]
    fn equal_names_have_equal_keys(name in "\\PC{0,20}") {
        let key = name_key(&name);
        prop_assert_eq!(name_key(&key), key.clone());
        prop_assert_eq!(name_key(&name.nfd().collect::<String>()), key.clone());
        prop_assert_eq!(name_key(&name.nfc().collect::<String>()), key);
    }

    #[test]
    fn what_a_text_type_accepts_it_accepts_again(text in any::<String>()) {
        if let Ok(name) = Name::parse(&text) {
            prop_assert_eq!(Name::parse(name.as_str()), Ok(name.clone()));
        }
        if let Ok(reason) = Reason::parse(&text) {
            prop_assert_eq!(Reason::parse(reason.as_str()), Ok(reason.clone()));
        }
        let in_body = read::<Reason>(&text);
        prop_assert_eq!(in_body, Reason::parse(&text).ok());
    }

    #[test]
    fn digits_and_integers_agree(value: i64) {
        type Some = IntegerBetween<0, 1_000_000_000_000>;
        prop_assert_eq!(value.to_string().parse::<Some>().ok(), Some::new(value));
        prop_assert_eq!(decode::<Some>(json!(value), "").ok(), Some::new(value));
    }
}

#[test]
fn a_long_name_is_a_name_of_more_characters() {
    assert!(LongName::parse(&"n".repeat(320)).is_ok());
    for refused in ["", " n", "n ", "n\nm", &"n".repeat(321)] {
        assert!(LongName::parse(refused).is_err(), "{refused:?}");
    }
}
