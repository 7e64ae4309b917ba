//! The outline of a payload: resources and their records as slices, nothing decoded (OT-2).
//!
//! Logs and traces have the same outline: resources hold scopes, scopes hold records. Decoding the whole payload into
//! structs would cost 60 times its size in memory where it consists of empty records.
//!
//! INVARIANT OT-2: a record of telemetry is decoded alone: memory follows the size of the body, not what its bytes
//! claim.

mod json;
mod protobuf;

use crate::{Encoding, Error, Signal};

/// How many records of one payload are read; the others are rejected. Collectors send 8 192 at once by default.
pub const MAX_RECORDS: usize = 10_000;

/// How many resources a payload may have.
const MAX_RESOURCES: usize = 1_000;

/// What one resource sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group<'a> {
    pub resource: Option<&'a [u8]>,
    pub records: Vec<&'a [u8]>,
}

/// The slices of a payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline<'a> {
    pub groups: Vec<Group<'a>>,
    records: usize,
    /// How many records are beyond [`MAX_RECORDS`].
    pub beyond: u64,
}

impl<'a> Outline<'a> {
    /// Returns the outline of a payload.
    ///
    /// Errors: `Malformed`.
    pub fn of(signal: Signal, encoding: Encoding, payload: &'a [u8]) -> Result<Self, Error> {
        match encoding {
            Encoding::Protobuf => protobuf::outline(payload),
            Encoding::Json => json::outline(signal, payload),
        }
    }

    /// Begins a resource; false when there are too many.
    fn open(&mut self) -> bool {
        let fits = self.groups.len() < MAX_RESOURCES;
        if fits {
            self.groups.push(Group::default());
        }
        fits
    }

    fn record(&mut self, record: &'a [u8]) {
        match self.groups.last_mut() {
            Some(group) if self.records < MAX_RECORDS => {
                self.records += 1;
                group.records.push(record);
            }
            _ => self.beyond += 1,
        }
    }

    fn resource(&mut self, resource: &'a [u8]) {
        if let Some(group) = self.groups.last_mut() {
            group.resource = Some(resource);
        }
    }
}
