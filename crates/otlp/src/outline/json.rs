//! The outline of a payload in JSON: records stay text.

use super::Outline;
use crate::{Error, Signal};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The names of the members that hold the next level, from the outermost on.
const LOGS: [&str; 3] = ["resourceLogs", "scopeLogs", "logRecords"];
const SPANS: [&str; 3] = ["resourceSpans", "scopeSpans", "spans"];

pub fn outline(signal: Signal, payload: &[u8]) -> Result<Outline<'_>, Error> {
    let mut outline = Outline::default();
    let level = Level {
        names: match signal {
            Signal::Logs => &LOGS,
            Signal::Traces => &SPANS,
        },
        depth: 0,
        outline: &mut outline,
    };
    let mut reader = serde_json::Deserializer::from_slice(payload);
    level
        .deserialize(&mut reader)
        .and_then(|()| reader.end())
        .map_err(|_| Error::Malformed("OTLP message in JSON"))?;
    Ok(outline)
}

/// An object at a depth: 0 is the request, 1 an entry of a resource, 2 a scope.
struct Level<'o, 'a> {
    names: &'static [&'static str; 3],
    depth: usize,
    outline: &'o mut Outline<'a>,
}

impl<'a> DeserializeSeed<'a> for Level<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Level<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == self.names[self.depth] {
                map.next_value_seed(List(Level {
                    outline: &mut *self.outline,
                    ..self
                }))?;
            } else if self.depth == 1 && name == "resource" {
                if let Some(resource) = map.next_value::<Option<&'a RawValue>>()? {
                    self.outline.resource(resource.get().as_bytes());
                }
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The list below an object.
struct List<'o, 'a>(Level<'o, 'a>);

impl<'a> DeserializeSeed<'a> for List<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for List<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let Self(Level {
            names,
            depth,
            outline,
        }) = self;
        if depth == 2 {
            while let Some(record) = list.next_element::<&'a RawValue>()? {
                outline.record(record.get().as_bytes());
            }
            return Ok(());
        }
        loop {
            if depth == 0 && !outline.open() {
                return match list.next_element::<IgnoredAny>()? {
                    None => Ok(()),
                    Some(_) => Err(A::Error::custom("too many resources")),
                };
            }
            let level = Level {
                names,
                depth: depth + 1,
                outline: &mut *outline,
            };
            if list.next_element_seed(level)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
