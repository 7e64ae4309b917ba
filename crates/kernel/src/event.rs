//! Kinds of events, declared like operations: what an event of a kind says, who reads that, and an example.
//!
//! An area declares the shapes of its data with [`crate::event_data!`] and its kinds with [`crate::fences!`]. Emitting takes
//! the declaration and data of its type, so that neither an unknown kind nor data of another shape can be emitted. The
//! catalogue, `webhooks` of the API document and the guide are made of the same declarations.
//!
//! INVARIANT EV-3: an event is of a kind that an area declares, and its data have the declared shape.

use crate::readers::Readers;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};
use std::marker::PhantomData;

/// The data of events: a type for each shape.
pub trait EventData: Serialize + JsonSchema {
    /// Data as they may be, as a JSON object.
    const EXAMPLE: &'static str;
}

/// What is known of a kind of event, whatever its data.
#[derive(Debug)]
pub struct EventKind {
    word: &'static str,
    readers: Readers,
    says: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    example: &'static str,
}

impl EventKind {
    /// Returns the event's type.
    pub const fn word(&self) -> &'static str {
        self.word
    }

    /// Returns who reads the data of such events.
    pub const fn readers(&self) -> Readers {
        self.readers
    }

    /// Returns what has happened when there is such an event, in a sentence.
    pub fn says(&self) -> &'static str {
        self.says.trim()
    }

    /// Returns the schema of the data as they are read: what the area declares, and the event's number.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Value {
        let mut schema = (self.schema)(generator).to_value();
        schema["properties"]["sequence"] = json!({
            "type": "integer", "minimum": 1, "description": "the event's number in its organization",
        });
        match schema["required"].as_array_mut() {
            Some(required) => required.push("sequence".into()),
            None => schema["required"] = json!(["sequence"]),
        }
        schema
    }

    /// Returns an event of this kind as it may be read.
    pub fn example(&self) -> Value {
        // A test parses every example.
        let mut data: Value = serde_json::from_str(self.example).unwrap_or_default();
        data["sequence"] = 17.into();
        json!({
            "id": "evt_01kaf9q2m4x7t8v3c5d6e0g1h2", "type": self.word, "timestamp": "2026-11-20T03:15:00.000Z", "data": data,
        })
    }
}

/// A kind of event whose data are of the type `D`.
#[derive(Debug)]
pub struct EventOf<D> {
    kind: EventKind,
    data: PhantomData<fn(&D)>,
}

impl<D: EventData> EventOf<D> {
    /// Returns the kind with this word, whose data are for these readers; `says` is a sentence.
    pub const fn new(word: &'static str, readers: Readers, says: &'static str) -> Self {
        let kind = EventKind {
            word,
            readers,
            says,
            schema: D::json_schema,
            example: D::EXAMPLE,
        };
        Self {
            kind,
            data: PhantomData,
        }
    }

    /// Gives the kind an example of its own.
    #[must_use]
    pub const fn like(mut self, example: &'static str) -> Self {
        self.kind.example = example;
        self
    }
}

impl<D> EventOf<D> {
    /// Returns what is known of it, whatever its data.
    pub const fn kind(&self) -> &EventKind {
        &self.kind
    }

    /// Returns the event's type.
    pub const fn word(&self) -> &'static str {
        self.kind.word
    }
}

/// Declares shapes of events' data, each with an example.
///
/// ```text
/// provost_kernel::event_data! {
///     /// A thing.
///     OfThing {
///         /// The thing.
///         thing_id: ThingId,
///     } like r#"{"thingId":"th_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;
/// }
/// ```
#[macro_export]
macro_rules! event_data {
    ($(
        $(#[$about:meta])+
        $name:ident { $($(#[$of:meta])+ $member:ident: $type:ty),+ $(,)? } like $example:literal;
    )+) => {$(
        $(#[$about])+
        #[derive(Debug, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(inline)]
        pub struct $name {
            $($(#[$of])+ pub $member: $type),+
        }

        impl $crate::event::EventData for $name {
            const EXAMPLE: &'static str = $example;
        }
    )+};
}
