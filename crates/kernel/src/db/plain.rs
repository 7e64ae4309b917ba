//! A connection to another machine without TLS: no password goes over it in clear.
//!
//! Who answers there may be anybody, and the driver hands the password to whoever asks for it. What it calls TLS is therefore,
//! here, the bare socket with somebody who reads along until the server has let the client in: the request for a password in
//! clear never reaches the driver.
//!
//! Keeps TL-1.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// What the operator is told when a server asks.
pub(super) const ASKED_IN_CLEAR: &str = "the PostgreSQL server asks for the password in clear without TLS, and it was not sent; \
                                         use sslmode=require, or have the server ask with scram-sha-256";

/// Says whether this is what a [`PlaintextStream`] ended with.
pub(super) fn is_asked_in_clear(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    source
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|error| {
            error
                .get_ref()
                .is_some_and(|inner| inner.to_string() == ASKED_IN_CLEAR)
        })
}

/// Stands where TLS would.
#[derive(Clone, Copy)]
pub(super) struct PlaintextConnector;

impl MakeTlsConnect<Socket> for PlaintextConnector {
    type Stream = PlaintextStream<Socket>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(*self)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for PlaintextConnector {
    type Stream = PlaintextStream<S>;
    type Error = Infallible;
    type Future = Ready<Result<PlaintextStream<S>, Infallible>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(PlaintextStream {
            stream,
            watch: Watch::default(),
        }))
    }
}

/// A stream without TLS that ends where a password is asked for in clear.
pub(super) struct PlaintextStream<S> {
    stream: S,
    watch: Watch,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for PlaintextStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PlaintextStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(ctx, buf))?;
        if self
            .watch
            .sees_request_in_clear(buf.filled().get(before..).unwrap_or_default())
        {
            buf.set_filled(before);
            return Poll::Ready(Err(io::Error::other(ASKED_IN_CLEAR)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PlaintextStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(ctx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(ctx)
    }
}

/// Follows a server's messages: a letter, the length of what follows in four bytes, itself included, and for `R` what the
/// server wants, in four more.
#[derive(Default)]
struct Watch {
    head: Vec<u8>,
    /// How much of a message goes by unread.
    rest: usize,
    is_let_in: bool,
}

impl Watch {
    const LET_IN: usize = 0;
    const PASSWORD_IN_CLEAR: usize = 3;

    fn sees_request_in_clear(&mut self, mut bytes: &[u8]) -> bool {
        while !self.is_let_in {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let Some((byte, after)) = bytes.split_first() else {
                return false;
            };
            self.head.push(*byte);
            bytes = after;
            if self.wish() == Some(Self::PASSWORD_IN_CLEAR) {
                return true;
            }
        }
        false
    }

    /// Returns what the server wants, once the head of a message says it, and passes over what is left of the message.
    fn wish(&mut self) -> Option<usize> {
        let size = number(self.head.get(1..5)?);
        let is_wish = self.head.first() == Some(&b'R') && size >= 8;
        if !is_wish {
            self.pass(size.saturating_sub(4));
            return None;
        }
        let wish = number(self.head.get(5..9)?);
        self.is_let_in = wish == Self::LET_IN;
        self.pass(size - 8);
        Some(wish)
    }

    fn pass(&mut self, rest: usize) {
        self.head.clear();
        self.rest = rest;
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        [&[letter], &size[..], body].concat()
    }

    /// Says after how many bytes the watch saw the request, when they come in pieces of this size.
    fn seen(talk: &[u8], piece: usize) -> Option<usize> {
        let mut watch = Watch::default();
        let mut read = 0;
        for piece in talk.chunks(piece) {
            read += piece.len();
            if watch.sees_request_in_clear(piece) {
                return Some(read);
            }
        }
        None
    }

    /// Proves TL-1.
    #[test]
    fn the_request_is_seen_however_it_comes() {
        let wish = |wish: u32| message(b'R', &wish.to_be_bytes());
        let md5 = message(b'R', &[&5_u32.to_be_bytes()[..], b"salt"].concat());
        let sasl = message(b'R', &[&10_u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat());
        let notice = message(b'N', &[b'R', 0, 0, 0, 8, 0, 0, 0, 3, 0]);
        let empty = message(b'x', b"");
        for piece in 1..40 {
            for before in [&b""[..], &md5, &sasl, &notice, &empty] {
                let talk = [before, &wish(3)].concat();
                assert_eq!(seen(&talk, piece), Some(talk.len()), "in pieces of {piece}");
            }
            // What only looks like it, and what follows once the client is in.
            for talk in [&notice, &md5, &sasl, &[wish(0), wish(3)].concat()] {
                assert_eq!(seen(talk, piece), None, "in pieces of {piece}");
            }
        }
    }
}
