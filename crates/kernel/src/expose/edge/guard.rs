//! The stream between the socket and the HTTP library.
//!
//! On HTTP/1 the guard holds every request head back until it is complete and has passed [`head::check`].
//! Only then does the library see it, followed by exactly as many body bytes as the head declares; so two
//! requests are never in the library's buffer at once, and no byte of a body can become a head. A head that
//! is refused is replaced by a harmless one of our own that stands for the refusal (see `link.rs`): the
//! library orders, writes and closes as always, and the answer is an envelope like any other.
//!
//! ```text
//! peer:     good head A | body A | bad head B | …
//! library:  good head A | body A | "GET / … Connection: close" → answered with the refusal of B; the end
//! ```
//!
//! After a chunked head the guard no longer knows where the next head starts. It passes everything on, and
//! the connection closes after that response: that is simpler and safer than a second chunk parser.

use super::alarm::Alarm;
use super::head::{self, End, Framing};
use super::inbox::Inbox;
use super::linger::Linger;
use super::link::Link;
use super::settings::EdgeSettings;
use crate::{Code, Error};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

/// The language of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// What may go from the peer to the HTTP library now.
enum Inward {
    /// Nothing: a head is being collected, and is free of line ends before this offset.
    Collecting(usize),
    /// So many bytes more of the current message.
    Passing(u64),
    /// Everything: HTTP/2, or the rest of a connection whose last request is chunked.
    Open,
    /// Nothing any more: the current request is the last one.
    Shut,
}

pub(super) struct Guard<S> {
    stream: S,
    inbox: Inbox,
    inward: Inward,
    link: Arc<Link>,
    is_refused: bool,
    max_target_bytes: usize,
    max_head_bytes: usize,
    head_patience: Duration,
    head_alarm: Alarm,
    write_patience: Duration,
    write_alarm: Alarm,
    linger: Option<Linger>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Guard<S> {
    pub(super) fn new(stream: S, link: Arc<Link>, settings: &EdgeSettings) -> Self {
        Self {
            stream,
            inbox: Inbox::default(),
            inward: Inward::Collecting(0),
            link,
            is_refused: false,
            max_target_bytes: settings.max_target_bytes,
            // Generous: the exact limits are checked on the parsed head, alike for both protocols; blanks
            // around values and the words of the request line are not counted there.
            max_head_bytes: settings.max_target_bytes + 2 * settings.max_header_bytes + 4096,
            head_patience: settings.request_timeout,
            head_alarm: Alarm::default(),
            write_patience: settings.write_timeout,
            write_alarm: Alarm::default(),
            linger: None,
        }
    }

    /// Reads as far as it takes to know the protocol; `None` when the peer closes without a word.
    ///
    /// The time of the first head starts with its first byte, which is read here.
    pub(super) async fn protocol(&mut self) -> io::Result<Option<Protocol>> {
        loop {
            let seen = self.inbox.bytes();
            if seen.starts_with(HTTP_2_PREFACE) {
                self.expect_nothing();
                self.inward = Inward::Open;
                return Ok(Some(Protocol::Http2));
            }
            if !HTTP_2_PREFACE.starts_with(seen) {
                return Ok(Some(Protocol::Http1));
            }
            let more = std::future::poll_fn(|ctx| match self.inbox.fill(&mut self.stream, ctx) {
                Poll::Pending => self.head_alarm.poll(ctx).map(|()| Ok(0)),
                count @ Poll::Ready(_) => count,
            });
            if more.await? == 0 {
                // The rest of a preface will not come: HTTP/1 has the words for what that is.
                let is_silent = self.inbox.bytes().is_empty();
                return Ok((!is_silent).then_some(Protocol::Http1));
            }
            self.expect_head();
        }
    }

    /// Collects a head; is ready when something may pass, or the peer has closed (`false`).
    fn poll_head(&mut self, mut scanned: usize, ctx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            // RFC 9112 §2.2: empty lines before a request line are ignored.
            while self.inbox.bytes().starts_with(b"\r\n") {
                self.inbox.discard(2);
                scanned = 0;
                if self.inbox.bytes().is_empty() {
                    self.expect_nothing();
                }
            }
            match head::find_end(self.inbox.bytes(), scanned) {
                Err(error) => return Poll::Ready(Ok(self.refuse(error))),
                Ok(End::At(length)) => return Poll::Ready(Ok(self.judge(length))),
                Ok(End::NotYet(next)) => scanned = next,
            }
            if self.inbox.bytes().len() >= self.max_head_bytes {
                let error = head::overgrown(self.inbox.bytes(), self.max_target_bytes);
                return Poll::Ready(Ok(self.refuse(error)));
            }
            self.inward = Inward::Collecting(scanned);
            match self.inbox.fill(&mut self.stream, ctx)? {
                Poll::Ready(0) if self.inbox.bytes().is_empty() => return Poll::Ready(Ok(false)),
                Poll::Ready(0) => return Poll::Ready(Ok(self.refuse(unfinished()))),
                Poll::Ready(_) => self.expect_head(),
                Poll::Pending => {
                    ready!(self.head_alarm.poll(ctx));
                    return Poll::Ready(Ok(self.refuse(late())));
                }
            }
        }
    }

    fn expect_head(&mut self) {
        self.head_alarm.set_once(self.head_patience);
        self.link.set_head_coming(true);
    }

    fn expect_nothing(&mut self) {
        self.head_alarm.clear();
        self.link.set_head_coming(false);
    }

    fn judge(&mut self, length: usize) -> bool {
        match head::check(&self.inbox.bytes()[..length], self.max_target_bytes) {
            Err(error) => return self.refuse(error),
            Ok(Framing::Chunked) => {
                self.link.deliver(true);
                self.inward = Inward::Open;
            }
            Ok(Framing::Sized(body)) => {
                self.link.deliver(false);
                self.inward = Inward::Passing(length as u64 + body);
            }
        }
        self.head_alarm.clear();
        true
    }

    fn refuse(&mut self, error: Error) -> bool {
        self.is_refused = true;
        self.link.refuse(error);
        self.inbox.replace(STAND_IN);
        self.inward = Inward::Passing(STAND_IN.len() as u64);
        self.head_alarm.clear();
        true
    }

    /// Fails when the peer takes nothing for too long.
    fn watch_write<T>(&mut self, outcome: Poll<io::Result<T>>, ctx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.write_alarm.clear();
            return outcome;
        }
        self.write_alarm.set_once(self.write_patience);
        ready!(self.write_alarm.poll(ctx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guard<S> {
    fn poll_read(self: Pin<&mut Self>, ctx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.inward {
                Inward::Shut => return Poll::Pending,
                Inward::Passing(0) if this.is_refused => this.inward = Inward::Shut,
                Inward::Passing(0) => {
                    this.inward = Inward::Collecting(0);
                    if !this.inbox.bytes().is_empty() {
                        this.expect_head();
                    }
                }
                Inward::Collecting(scanned) => {
                    if !ready!(this.poll_head(scanned, ctx))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                Inward::Open if this.inbox.bytes().is_empty() => {
                    return Pin::new(&mut this.stream).poll_read(ctx, to);
                }
                Inward::Open => {
                    this.inbox.hand_on(u64::MAX, to);
                    return Poll::Ready(Ok(()));
                }
                Inward::Passing(left) if this.inbox.bytes().is_empty() && to.remaining() as u64 <= left => {
                    // No more can come than may pass: the bytes of large bodies are not copied.
                    let before = to.filled().len();
                    ready!(Pin::new(&mut this.stream).poll_read(ctx, to))?;
                    let count = to.filled().len() - before;
                    this.inward = Inward::Passing(left - count as u64);
                    return Poll::Ready(Ok(()));
                }
                Inward::Passing(left) => {
                    if this.inbox.bytes().is_empty() && ready!(this.inbox.fill(&mut this.stream, ctx))? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                    let count = this.inbox.hand_on(left, to);
                    this.inward = Inward::Passing(left - count as u64);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(ctx, bytes);
        this.watch_write(outcome, ctx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(ctx, bytes);
        this.watch_write(outcome, ctx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(ctx);
        this.watch_write(outcome, ctx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            let outcome = Pin::new(&mut this.stream).poll_shutdown(ctx);
            ready!(this.watch_write(outcome, ctx))?;
            let is_between_requests = matches!(this.inward, Inward::Collecting(_) | Inward::Passing(0));
            if is_between_requests && this.inbox.bytes().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        let linger = this.linger.get_or_insert_default();
        ready!(linger.poll(&mut this.stream, this.link.is_stranger(), ctx));
        Poll::Ready(Ok(()))
    }
}

fn late() -> Error {
    Error::new(Code::InvalidRequest, "the request was not complete in time")
}

fn unfinished() -> Error {
    Error::new(Code::InvalidRequest, "the request ended before it was complete")
}
