//! A client that sends what it is told to, and reads answers one by one without believing anything.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::random::Random;

/// Longer than the server gives a request; a conversation that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(15);

/// How bytes are cut into segments.
#[derive(Clone, Copy, Debug)]
pub enum Segmentation {
    Whole,
    Bytes,
    Pieces(u64),
}

/// One complete answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// It has an `X-Request-Id`, so it is the product's own and not a library's.
    pub is_ours: bool,
    /// The beginning of the body.
    pub text: String,
}

pub struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Socket {
    pub fn connect(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .context("cannot set a timeout")?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends as much as is taken: a server that has refused the beginning need not take the rest.
    pub fn send(&mut self, bytes: &[u8], cut: Segmentation) {
        let mut random = Random::new(if let Segmentation::Pieces(seed) = cut {
            seed
        } else {
            0
        });
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = match cut {
                Segmentation::Whole => rest.len(),
                Segmentation::Bytes => 1,
                Segmentation::Pieces(_) => usize::try_from(random.between(1, 90)).unwrap_or(1),
            };
            let (piece, left) = rest.split_at(size.min(rest.len()));
            if self.stream.write_all(piece).is_err() {
                return;
            }
            rest = left;
        }
    }

    /// Reads one answer; none when the connection ends before its first byte.
    pub fn answer(&mut self, has_no_body: bool) -> Outcome<Option<Answer>> {
        let head = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill()? {
                return match self.buffer.len() {
                    0 => Ok(None),
                    _ => Err(Failure::new(format!(
                        "the connection ends within a head: {:?}",
                        self.text(200)
                    ))),
                };
            }
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]).into_owned();
        let status = text
            .strip_prefix("HTTP/1.1 ")
            .or_else(|| text.strip_prefix("HTTP/1.0 "))
            .and_then(|rest| rest.get(..3)?.parse().ok());
        let status: u16 = status.context(format_args!("not an answer: {text:?}"))?;
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
        };
        let is_bare = has_no_body || status < 200 || status == 204 || status == 304;
        let length = match value("content-length") {
            _ if is_bare => 0,
            Some(length) => length.parse().context(format_args!("Content-Length: {length}"))?,
            None => return Err(Failure::new(format!("an answer without a length: {text:?}"))),
        };
        while self.buffer.len() < head + length {
            if !self.fill()? {
                return Err(Failure::new(format!(
                    "the connection ends within a body: {:?}",
                    self.text(400)
                )));
            }
        }
        let body = String::from_utf8_lossy(&self.buffer[head..head + length])
            .chars()
            .take(300)
            .collect();
        self.buffer.drain(..head + length);
        Ok(Some(Answer {
            status,
            is_ours: status == 100 || value("x-request-id").is_some(),
            text: body,
        }))
    }

    fn text(&self, most: usize) -> String {
        let shown = &self.buffer[..self.buffer.len().min(most)];
        String::from_utf8_lossy(shown).into_owned()
    }

    /// Reads more; false when the connection has ended, by whatever way.
    fn fill(&mut self) -> Outcome<bool> {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.buffer.extend_from_slice(&bytes[..count]);
                Ok(true)
            }
            // An answer that a reset destroys is missed by the case that expects it.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                Ok(false)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Failure::new(format!("nothing comes within {PATIENCE:?}")))
            }
            Err(error) => Err(Failure::new(format!("cannot read: {error}"))),
        }
    }
}
