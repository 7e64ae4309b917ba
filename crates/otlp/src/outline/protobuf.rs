//! The outline of a payload in protocol buffers.
//!
//! Both requests: 1 resource entries. An entry: 1 resource, 2 scopes. A scope: 2 records.

use super::Outline;
use crate::Error;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

const MALFORMED: Error = Error::Malformed("OTLP message in protocol buffers");

pub fn outline(payload: &[u8]) -> Result<Outline<'_>, Error> {
    let mut outline = Outline::default();
    each(payload, |tag, entry| {
        if tag != 1 {
            return Ok(());
        }
        if !outline.open() {
            return Err(Error::Malformed("payload of at most 1000 resources"));
        }
        each(entry, |tag, part| {
            if tag == 1 {
                outline.resource(part);
            } else if tag == 2 {
                each(part, |tag, record| {
                    if tag == 2 {
                        outline.record(record);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    })?;
    Ok(outline)
}

/// Gives every field of a message that has a length to `take`; skips the others.
fn each<'a>(
    mut message: &'a [u8],
    mut take: impl FnMut(u32, &'a [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    while !message.is_empty() {
        let (tag, wire) = decode_key(&mut message).map_err(|_| MALFORMED)?;
        if wire == WireType::LengthDelimited {
            let length = decode_varint(&mut message).map_err(|_| MALFORMED)?;
            let length = usize::try_from(length).map_err(|_| MALFORMED)?;
            let (field, rest) = message.split_at_checked(length).ok_or(MALFORMED)?;
            message = rest;
            take(tag, field)?;
        } else {
            skip_field(wire, tag, &mut message, DecodeContext::default()).map_err(|_| MALFORMED)?;
        }
    }
    Ok(())
}
