//! Text and whole numbers with limits in the type (D1.10).
//!
//! One definition drives the reading of a body, the published schema and the sentence of the refusal. No
//! refusal quotes the value.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use unicode_normalization::UnicodeNormalization;

/// Why a value is not one of its type. The sentence names the limits and not the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(Cow<'static, str>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

/// Returns the form in which names are compared: NFC and full Unicode case folding (D5.9).
///
/// Folding can undo a composition and composing can make a folded sequence anew, so both are repeated
/// until nothing changes; two rounds are enough for every assigned character.
pub fn name_key(name: &str) -> String {
    let fold =
        |text: &str| -> String { unicase::UniCase::unicode(text.nfc().collect::<String>()).to_folded_case() };
    fold(&fold(name)).nfc().collect()
}

/// Control characters, and the two separators that some readers of logs take for a line's end.
fn breaks_a_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// What nobody sees at the end of a text: Unicode's spaces, and the zero-width one that JavaScript counts in.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

macro_rules! text {
    ($name:ident, $doc:literal, $must:literal, $read:expr, $schema:tt) => {
        #[doc = $doc]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the text that `text` spells, or the sentence of the refusal.
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                let read: fn(&str) -> Option<String> = $read;
                read(text).map(Self).ok_or(Invalid(Cow::Borrowed($must)))
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// Returns a text in NFC, if it is one line of at most `max` characters without spaces at its ends.
fn line(text: &str, max: usize) -> Option<String> {
    let line: String = text.nfc().collect();
    // Composing shortens most texts and lengthens a few. The schema counts what was sent, and so does this.
    let fits = (1..=max).contains(&text.chars().count());
    let is_trimmed = !line.starts_with(is_blank) && !line.ends_with(is_blank);
    (fits && is_trimmed && !line.contains(breaks_a_line)).then_some(line)
}

text!(
    Name,
    "A name: 1–128 characters in NFC, on one line, without spaces at its ends.",
    "must have 1 to 128 characters, no control character and no space at either end",
    |text| line(text, 128),
    {
        "type": "string", "minLength": 1, "maxLength": 128,
        "pattern": r"^[^\u0020\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\uFEFF\u0000-\u001F\u007F-\u009F\u2028\u2029]([^\u0000-\u001F\u007F-\u009F\u2028\u2029]*[^\u0020\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\uFEFF\u0000-\u001F\u007F-\u009F\u2028\u2029])?$",
    }
);

text!(
    LongName,
    "A name as long as the longest e-mail address: 1–320 characters, otherwise as [`Name`] (D1.10).",
    "must have 1 to 320 characters, no control character and no space at either end",
    |text| line(text, 320),
    {
        "type": "string", "minLength": 1, "maxLength": 320,
        "pattern": r"^[^\u0020\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\uFEFF\u0000-\u001F\u007F-\u009F\u2028\u2029]([^\u0000-\u001F\u007F-\u009F\u2028\u2029]*[^\u0020\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\uFEFF\u0000-\u001F\u007F-\u009F\u2028\u2029])?$",
    }
);

text!(
    Description,
    "A description: at most 1024 characters; the only control characters are newline and tab.",
    "must have at most 1024 characters and no control character but newline and tab",
    |text| {
        let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
        (text.chars().count() <= 1024 && text.chars().all(allowed)).then(|| text.to_owned())
    },
    {
        "type": "string", "maxLength": 1024,
        "pattern": r"^[^\u0000-\u0008\u000B-\u001F\u007F-\u009F]*$",
    }
);

text!(
    Reason,
    "Why somebody acts: 1–500 characters on one line, trimmed.",
    "must have 1 to 500 characters besides spaces at its ends, on one line without control characters",
    |text| {
        let reason = text.trim_matches(is_blank);
        let fits = matches!(reason.chars().count(), 1..=500);
        (fits && !text.contains(breaks_a_line)).then(|| reason.to_owned())
    },
    {
        "type": "string", "minLength": 1, "maxLength": 500,
        "pattern": r"^[^\u0000-\u001F\u007F-\u009F\u2028\u2029]*[^\u0020\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\uFEFF\u0000-\u001F\u007F-\u009F\u2028\u2029][^\u0000-\u001F\u007F-\u009F\u2028\u2029]*$",
    }
);

text!(
    IdempotencyKey,
    "A caller's name for one intent: 1–255 visible ASCII characters. It opens replay cells, so it is shown nowhere.",
    "must have 1 to 255 characters, each a visible ASCII character",
    |text| {
        let allowed = matches!(text.len(), 1..=255) && text.bytes().all(|byte| byte.is_ascii_graphic());
        allowed.then(|| text.to_owned())
    },
    { "type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7E]+$" }
);

macro_rules! shown {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

shown!(Name LongName Description Reason);

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A whole number from `MIN` to `MAX`: an integer in a body, digits alone in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntegerBetween<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> IntegerBetween<MIN, MAX> {
    /// Returns the number, if it lies between the bounds.
    pub const fn new(value: i64) -> Option<Self> {
        if value < MIN || value > MAX {
            return None;
        }
        Some(Self(value))
    }

    /// Returns the number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Reads an integer or digits from a deserializer that knows what it holds.
    ///
    /// Only for types that stand in queries alone: a body that says `"5"` for 5 is refused elsewhere.
    pub fn deserialize_either<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whole::<MIN, MAX>)
    }

    fn refusal() -> Invalid {
        Invalid(Cow::Owned(format!("must be a whole number from {MIN} to {MAX}")))
    }
}

impl<const MIN: i64, const MAX: i64> FromStr for IntegerBetween<MIN, MAX> {
    type Err = Invalid;

    /// Reads digits alone: no sign, no exponent, no space.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|_| digits);
        value.and_then(Self::new).ok_or_else(Self::refusal)
    }
}

impl<const MIN: i64, const MAX: i64> Serialize for IntegerBetween<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for IntegerBetween<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A body's deserializer hands over integers alone, that of a query (`json::decode`) its text.
        deserializer.deserialize_i64(Whole::<MIN, MAX>)
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for IntegerBetween<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Bounded_{MIN}_{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

struct Whole<const MIN: i64, const MAX: i64>;

impl<const MIN: i64, const MAX: i64> Visitor<'_> for Whole<MIN, MAX> {
    type Value = IntegerBetween<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        IntegerBetween::new(value).ok_or_else(|| E::custom(Self::Value::refusal()))
    }

    /// JSON Schema counts `3.0` among the integers, and RFC 8785 writes it as `3`.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        let whole = (value.fract() == 0.0).then(|| format!("{value:.0}"));
        let value = whole
            .and_then(|digits| digits.parse().ok())
            .and_then(IntegerBetween::new);
        value.ok_or_else(|| E::custom(Self::Value::refusal()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        let value = i64::try_from(value).ok().and_then(IntegerBetween::new);
        value.ok_or_else(|| E::custom(Self::Value::refusal()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests;
