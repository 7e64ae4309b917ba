//! The same secrets over HTTP/2, whose library tells its frames to the log.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::endure::wire::resets::frame;
use crate::failure::{Context, Failure, Outcome};

const HEADERS: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 0x5;

/// Asks for a path with a token and an `X-Api-Key`, and waits for the head of the answer.
pub fn ask(address: SocketAddr, path: &str, token: &str, key: &str) -> Outcome {
    let mut stream = TcpStream::connect(address).context("cannot connect")?;
    let patience = Some(Duration::from_secs(10));
    stream
        .set_read_timeout(patience)
        .context("cannot set a timeout")?;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    // RFC 7541: GET and http by their index, then literals that are not indexed.
    let mut block = vec![0x82, 0x86, 0x04];
    block.extend(text(path));
    block.push(0x01);
    block.extend(text("a"));
    block.extend([0x0f, 0x08]);
    block.extend(text(&format!("Bearer {token}")));
    block.push(0x00);
    block.extend(text("x-api-key"));
    block.extend(text(key));
    bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 1, &block));
    stream.write_all(&bytes).context("cannot send frames")?;
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).context("no answer over HTTP/2")?;
        if count == 0 {
            return Err(Failure::new("the connection of HTTP/2 ends without an answer"));
        }
        said.extend_from_slice(&buffer[..count]);
        if has_head(&said) {
            return Ok(());
        }
    }
}

/// Whether there is a HEADERS frame among complete frames.
fn has_head(mut said: &[u8]) -> bool {
    while let [a, b, c, kind, rest @ ..] = said {
        if *kind == HEADERS {
            return true;
        }
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        said = rest.get(5 + length..).unwrap_or_default();
    }
    false
}

/// A string without Huffman coding; its length is an integer of seven bits and more.
fn text(value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut left = value.len();
    if left < 0x7f {
        bytes.push(u8::try_from(left).unwrap_or_default());
    } else {
        bytes.push(0x7f);
        left -= 0x7f;
        while left >= 0x80 {
            bytes.push(u8::try_from(left % 0x80).unwrap_or_default() | 0x80);
            left /= 0x80;
        }
        bytes.push(u8::try_from(left).unwrap_or_default());
    }
    bytes.extend(value.bytes());
    bytes
}
