//! Closing without losing the answer.
//!
//! A socket that is closed while bytes of the peer are unread is reset, and a reset destroys what the peer
//! has not read yet, for example our 413. So the sending side is closed first, and what the peer still sends
//! is read and thrown away for a moment.

use super::alarm::Alarm;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// How long and how much the peer may go on sending.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// LIMIT: the same of somebody who has shown no valid token.
const MOST_BYTES_OF_A_STRANGER: usize = 64 * 1024;

/// The reading after the last byte was sent.
#[derive(Default)]
pub(super) struct Linger {
    alarm: Alarm,
    discarded: usize,
}

impl Linger {
    /// Is ready when the peer has closed, or has used up what it may.
    pub(super) fn poll<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        is_stranger: bool,
        ctx: &mut Context<'_>,
    ) -> Poll<()> {
        self.alarm.set_once(PATIENCE);
        let most = if is_stranger {
            MOST_BYTES_OF_A_STRANGER
        } else {
            MOST_BYTES
        };
        let mut waste = [0; 8192];
        while self.discarded < most {
            let mut buffer = ReadBuf::new(&mut waste);
            match Pin::new(&mut *stream).poll_read(ctx, &mut buffer) {
                Poll::Pending => return self.alarm.poll(ctx),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(()),
                Poll::Ready(Ok(())) => self.discarded += buffer.filled().len(),
            }
        }
        Poll::Ready(())
    }
}
