//! The bytes between reading and handing on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that were read from a stream and not yet handed on.
#[derive(Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn discard(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Replaces everything by `bytes`.
    pub(super) fn replace(&mut self, bytes: &[u8]) {
        self.bytes = bytes.to_vec();
        (self.start, self.end) = (0, bytes.len());
    }

    /// Hands at most `most` bytes on and returns how many they were.
    pub(super) fn hand_on(&mut self, most: u64, to: &mut ReadBuf<'_>) -> usize {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let count = self.bytes().len().min(most).min(to.remaining());
        to.put_slice(&self.bytes()[..count]);
        self.discard(count);
        count
    }

    /// Reads once from the stream and returns how many bytes came; 0 is the end.
    pub(super) fn fill<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        ctx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        const STEP: usize = 8 * 1024;
        if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end == self.bytes.len() {
                self.bytes.resize(self.end + STEP, 0);
            }
        }
        let mut buffer = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(Pin::new(stream).poll_read(ctx, &mut buffer))?;
        let count = buffer.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }
}
