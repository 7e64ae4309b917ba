//! The messages of OTLP, as far as they are read: other fields are skipped in either encoding.
//!
//! Source: `opentelemetry-proto` 1.10 (common, resource, logs, trace). One set of structs serves both encodings: field
//! numbers are protocol buffers', member names JSON's. A value of bytes is none: no attribute of the catalogue is bytes.

use prost::{Message, Oneof};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt;

#[derive(Clone, PartialEq, Message, Deserialize)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    #[serde(default, deserialize_with = "nullable")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogRecord {
    #[prost(fixed64, tag = "1")]
    #[serde(default, deserialize_with = "whole")]
    pub time_unix_nano: u64,
    #[prost(message, optional, tag = "5")]
    #[serde(default, deserialize_with = "nullable")]
    pub body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    #[serde(default, deserialize_with = "nullable")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "11")]
    #[serde(default, deserialize_with = "whole")]
    pub observed_time_unix_nano: u64,
    #[prost(string, tag = "12")]
    #[serde(default, deserialize_with = "nullable")]
    pub event_name: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(rename = "traceId", default, deserialize_with = "identifier")]
    pub trace: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(rename = "spanId", default, deserialize_with = "identifier")]
    pub id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(rename = "parentSpanId", default, deserialize_with = "identifier")]
    pub parent: Vec<u8>,
    #[prost(string, tag = "5")]
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    #[prost(int32, tag = "6")]
    #[serde(default, deserialize_with = "kind")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(default, deserialize_with = "whole")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(default, deserialize_with = "whole")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(default, deserialize_with = "nullable")]
    pub attributes: Vec<KeyValue>,
}

/// `SPAN_KIND_SERVER`.
pub const SERVER: i32 = 2;

#[derive(Clone, PartialEq, Message, Deserialize)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    #[serde(default, deserialize_with = "nullable")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    #[serde(default, deserialize_with = "nullable")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(int64, tag = "3")]
    Whole(i64),
    #[prost(double, tag = "4")]
    Number(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    #[prost(message, tag = "6")]
    Map(KeyValueList),
}

#[derive(Clone, PartialEq, Message, Deserialize)]
pub struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    #[serde(default, deserialize_with = "nullable")]
    pub values: Vec<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
pub struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    #[serde(default, deserialize_with = "nullable")]
    pub values: Vec<KeyValue>,
}

/// Reads null as the default: the JSON of protocol buffers allows it everywhere.
fn nullable<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A 64-bit number: a number or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Whole<T> {
    Number(T),
    Text(String),
}

impl<T: std::str::FromStr> Whole<T> {
    fn get<E: Error>(self) -> Result<T, E> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Text(text) => text.parse().map_err(|_| E::custom("no whole number")),
        }
    }
}

fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Option::<Whole<u64>>::deserialize(from)?.map_or(Ok(0), Whole::get)
}

/// An enumeration is a number in OTLP/JSON; some exporters send its name, which says nothing here.
fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    Ok(match Option::<Whole<i32>>::deserialize(from)? {
        Some(Whole::Number(kind)) => kind,
        Some(Whole::Text(name)) if name == "SPAN_KIND_SERVER" => SERVER,
        _ => 0,
    })
}

/// An identifier in hexadecimal; any other text is none.
fn identifier<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    let digit = |byte: u8| {
        (byte as char)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let bytes = text
        .as_bytes()
        .chunks(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?))
        .collect::<Option<Vec<u8>>>();
    Ok(bytes.unwrap_or_default())
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(AnyValueVisitor)
    }
}

struct AnyValueVisitor;

impl<'de> Visitor<'de> for AnyValueVisitor {
    type Value = AnyValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyValue, A::Error> {
        /// A number that JSON cannot write is a text.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Double {
            Number(f64),
            Text(String),
        }
        let (mut value, mut values) = (None, 0);
        while let Some(key) = map.next_key::<String>()? {
            let found = match key.as_str() {
                "stringValue" => map.next_value::<Option<String>>()?.map(Value::Text),
                "boolValue" => map.next_value::<Option<bool>>()?.map(Value::Boolean),
                "intValue" => match map.next_value::<Option<Whole<i64>>>()? {
                    Some(whole) => Some(Value::Whole(whole.get()?)),
                    None => None,
                },
                "doubleValue" => map.next_value::<Option<Double>>()?.map(|double| {
                    Value::Number(match double {
                        Double::Number(number) => number,
                        // No number: whoever reads it finds none, and takes it for missing.
                        Double::Text(text) => text.parse().unwrap_or(f64::NAN),
                    })
                }),
                "arrayValue" => map.next_value::<Option<ArrayValue>>()?.map(Value::Array),
                "kvlistValue" => map.next_value::<Option<KeyValueList>>()?.map(Value::Map),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            values += usize::from(found.is_some());
            value = found.or(value);
        }
        // Of several values readers differ about which counts: like bytes, it is none that can be read.
        Ok(AnyValue {
            value: value.filter(|_| values == 1),
        })
    }
}
