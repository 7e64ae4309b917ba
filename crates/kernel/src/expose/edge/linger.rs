//! Closing without losing the answer.
//!
//! A socket that is closed while bytes of the peer are unread is reset, and a reset destroys what the peer
//! has not read yet, for example our 413. So the sending side is closed first, and what the peer still sends
//! is read and thrown away for a moment.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long and how much the peer may go on sending.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A timer that is only made when somebody waits for it.
#[derive(Default)]
pub(super) struct Alarm {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Sets the alarm unless it is set.
    pub(super) fn set_once(&mut self, after: Duration) {
        self.at.get_or_insert_with(|| Instant::now() + after);
    }

    pub(super) fn clear(&mut self) {
        self.at = None;
    }

    /// Is ready when the alarm is set and its time has come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }
}

/// The reading after the last byte was sent.
#[derive(Default)]
pub(super) struct Linger {
    alarm: Alarm,
    discarded: usize,
}

impl Linger {
    /// Is ready when the peer has closed, or has used up what it may.
    pub(super) fn poll<S: AsyncRead + Unpin>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.set_once(PATIENCE);
        let mut waste = [0; 8192];
        while self.discarded < MOST_BYTES {
            let mut buffer = ReadBuf::new(&mut waste);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return self.alarm.poll(cx),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => self.discarded += buffer.filled().len(),
            }
        }
        Poll::Ready(())
    }
}

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
        cx: &mut Context<'_>,
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
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        let count = buffer.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }
}
