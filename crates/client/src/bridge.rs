//! The endpoint for clients that start a program and talk to it by lines (the transport "stdio").
//!
//! [`bridge`] relays each line as a `POST /mcp` and writes what comes back, a JSON body or the events of a stream, as
//! lines. It adds what HTTP wants said in headers and a client on a pipe does not know: the revision, the method, the
//! name, the session. It keeps no message and judges none; what the server refuses becomes a JSON-RPC error with the
//! server's sentence.
//!
//! States: `initialize` is waited for, because the session and the revision are known by its answer alone; all other
//! requests are under way at once. `notifications/cancelled` ends the request that it names.

mod headers;
mod relay;
mod sse;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use http_body::Body;
use relay::{ClientLine, Link};
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// LIMIT: requests under way; the next line is read when one has ended.
const MAX_IN_FLIGHT: usize = 64;
/// LIMIT: bytes of a line, as of a message at the server.
const MAX_LINE: usize = 1024 * 1024;

/// Sends a request to the server: adds its address and the token, and follows no redirect.
pub trait HttpSend {
    /// What comes back.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>;

    /// Sends a request for the path `/mcp`.
    ///
    /// Errors: a sentence about why the server was not reached, and what to do.
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> impl Future<Output = Result<http::Response<Self::Body>, String>>;
}

/// Relays lines until the input ends and everything that was asked is answered.
///
/// Errors: those of the input and the output; what goes wrong with the server is told to the client instead.
pub async fn bridge<I, O, S>(input: I, mut output: O, send: S) -> io::Result<()>
where
    I: AsyncBufRead + Unpin,
    O: AsyncWrite + Unpin,
    S: HttpSend,
{
    let (lines, mut written) = mpsc::unbounded_channel();
    let link = Link::new(send, lines);
    let write = async {
        while let Some(ClientLine(mut line)) = written.recv().await {
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await?;
        }
        io::Result::Ok(())
    };
    let read = async {
        let result = relay_lines(input, &link).await;
        link.close();
        result
    };
    tokio::pin!(write);
    tokio::pin!(read);
    tokio::select! {
        // A client that is gone needs no answers.
        written = &mut write => written,
        read = &mut read => {
            read?;
            write.await
        }
    }
}

async fn relay_lines<I: AsyncBufRead + Unpin, S: HttpSend>(mut input: I, link: &Link<S>) -> io::Result<()> {
    let mut under_way = FuturesUnordered::new();
    let mut cancels: HashMap<String, AbortHandle> = HashMap::new();
    let mut begun = Vec::new();
    loop {
        if under_way.len() >= MAX_IN_FLIGHT {
            forget(&mut cancels, under_way.next().await.flatten());
        }
        let read = tokio::select! {
            read = next_line(&mut input, &mut begun) => read?,
            Some(ended) = under_way.next() => {
                forget(&mut cancels, ended);
                continue;
            }
        };
        let Some(is_whole) = read else { break };
        let bytes = Bytes::from(std::mem::take(&mut begun));
        if bytes.iter().all(u8::is_ascii_whitespace) && is_whole {
            continue;
        }
        let message = if is_whole {
            serde_json::from_slice::<Value>(&bytes).ok()
        } else {
            None
        };
        let Some(message) = message.filter(Value::is_object) else {
            link.refuse(
                &Value::Null,
                -32700,
                "parse error: each line must be one JSON-RPC message of at most 1 MiB",
            );
            continue;
        };
        if message["method"] == "initialize" {
            link.relay(bytes, &message).await;
            continue;
        }
        if message["method"] == "notifications/cancelled"
            && let Some(handle) = cancels.remove(&message["params"]["requestId"].to_string())
        {
            handle.abort();
        }
        let key = message.get("id").map(Value::to_string);
        let (handle, registration) = AbortHandle::new_pair();
        if let Some(key) = &key {
            cancels.insert(key.clone(), handle);
        }
        under_way.push(async move {
            let relayed = Abortable::new(link.relay(bytes, &message), registration);
            let _ = relayed.await;
            key
        });
    }
    while under_way.next().await.is_some() {}
    Ok(())
}

fn forget(cancels: &mut HashMap<String, AbortHandle>, ended: Option<String>) {
    if let Some(key) = ended {
        cancels.remove(&key);
    }
}

/// Reads on to the end of a line; what was read before stays in `line` when the future is dropped. Says whether the
/// line is whole; nothing at the end of the input.
async fn next_line<I: AsyncBufRead + Unpin>(input: &mut I, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            return Ok((!line.is_empty()).then_some(line.len() <= MAX_LINE));
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(read.len());
        // Of a line that is too long the beginning is kept, which is enough to know that.
        let room = (MAX_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(&read[..taken.min(room)]);
        input.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            let is_whole = line.len() <= MAX_LINE;
            return Ok(Some(is_whole));
        }
    }
}
