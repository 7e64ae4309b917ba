//! Messages between the server and its workers: a kind, a length, bytes.
//!
//! ```text
//!   worker  HELLO    version · compiler · what could not be taken away from it
//!   server  LOAD     number · family · source
//!   worker  LOADED                                    also where it does not compile: then it fails when it is asked
//!   server  FORGET                                    every module
//!   server  ASK      count · each: number · question
//!   worker  ANSWERS  sayings, in order, as many as are there; messages of them until every question has one
//! ```

use std::io::{self, IoSlice, Read, Write};

/// The version of this protocol.
pub const VERSION: &str = "provost modules 1";

pub const HELLO: u8 = 1;
pub const LOAD: u8 = 2;
pub const FORGET: u8 = 3;
pub const ASK: u8 = 4;
pub const ANSWERS: u8 = 5;
pub const LOADED: u8 = 6;

/// LIMIT: bytes of a message to a worker; more than a request may have, several times over.
pub const QUESTIONS_BYTES: usize = 64 << 20;
/// LIMIT: bytes of a message from a worker, which nobody trusts.
pub const ANSWERS_BYTES: usize = 4 << 20;
const HEAD: usize = 5;

/// Writes a message.
pub fn write(to: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&length.to_le_bytes());
    // One call for both, where the socket takes them.
    let sent = to.write_vectored(&[IoSlice::new(&head), IoSlice::new(bytes)])?;
    if sent < HEAD {
        to.write_all(&head[sent..])?;
    }
    to.write_all(&bytes[sent.saturating_sub(HEAD).min(bytes.len())..])
}

/// Returns the next message; nothing at the end.
///
/// Errors: those of reading, and `InvalidData` for one that is longer than the limit.
pub fn read(from: &mut impl Read, limit: usize) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; HEAD];
    match from.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = length(head, limit)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Some((head[0], bytes)))
}

/// Returns the length that a head says.
///
/// Errors: `InvalidData` when it is beyond the limit.
fn length(head: [u8; HEAD], limit: usize) -> io::Result<usize> {
    let [_, a, b, c, d] = head;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > limit {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(length)
}

/// What arrived of messages, whole or not.
#[derive(Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
}

impl FrameBuffer {
    /// Notes bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next whole message, if there is one.
    ///
    /// Errors: `InvalidData` when it would be longer than the limit.
    pub fn next(&mut self, limit: usize) -> io::Result<Option<(u8, Vec<u8>)>> {
        let Some(head) = self.bytes.first_chunk::<HEAD>().copied() else {
            return Ok(None);
        };
        let end = HEAD + length(head, limit)?;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let rest = self.bytes.split_off(end);
        let mut message = std::mem::replace(&mut self.bytes, rest);
        message.drain(..HEAD);
        Ok(Some((head[0], message)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let mut sent = Vec::new();
        write(&mut sent, ASK, b"one").unwrap();
        write(&mut sent, LOAD, b"").unwrap();
        let mut arriving = FrameBuffer::default();
        let mut found = Vec::new();
        for byte in &sent {
            arriving.push(&[*byte]);
            found.extend(arriving.next(10).unwrap());
        }
        assert_eq!(found, [(ASK, b"one".to_vec()), (LOAD, Vec::new())]);
        let mut reader = &sent[..];
        assert_eq!(read(&mut reader, 10).unwrap(), Some((ASK, b"one".to_vec())));
        assert_eq!(read(&mut reader, 10).unwrap(), Some((LOAD, Vec::new())));
        assert_eq!(read(&mut reader, 10).unwrap(), None);
    }

    #[test]
    fn a_message_beyond_the_limit_is_refused_before_room_is_made_for_it() {
        let mut arriving = FrameBuffer::default();
        arriving.push(&[ANSWERS, 0xff, 0xff, 0xff, 0xff]);
        assert!(arriving.next(ANSWERS_BYTES).is_err());
        assert!(read(&mut &[ANSWERS, 0xff, 0xff, 0xff, 0xff][..], ANSWERS_BYTES).is_err());
    }
}
