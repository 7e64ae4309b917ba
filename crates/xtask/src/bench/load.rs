//! A load generator that leaves the cores to the server: one thread, requests prepared as bytes, of
//! an answer only the status and the length are looked at.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::clock;
use crate::failure::{Context, Failure, Outcome};

/// Replaced by a number that no other request has.
pub const SERIAL: &str = "################";

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// What all connections send, one after the other and from the beginning again.
#[derive(Clone)]
pub struct Script {
    requests: Arc<Vec<PreparedRequest>>,
}

#[derive(Clone)]
struct PreparedRequest {
    bytes: Vec<u8>,
    serials: Vec<usize>,
}

impl Script {
    pub fn new(requests: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let prepare = |bytes: Vec<u8>| {
            let places = bytes.windows(SERIAL.len()).enumerate();
            let serials = places
                .filter(|(_, window)| *window == SERIAL.as_bytes())
                .map(|(at, _)| at)
                .collect();
            PreparedRequest { bytes, serials }
        };
        Self {
            requests: Arc::new(requests.into_iter().map(prepare).collect()),
        }
    }
}

/// What a load was answered.
pub struct LoadFigures {
    pub answers: u64,
    pub duration: Duration,
    pub p50: Duration,
    pub p99: Duration,
}

impl LoadFigures {
    #[expect(clippy::cast_precision_loss, reason = "a rate of some millions is exact")]
    pub fn per_second(&self) -> f64 {
        self.answers as f64 / self.duration.as_secs_f64()
    }
}

/// Sends over so many connections for so long; any answer but a success is a failure.
pub fn send(
    address: SocketAddr,
    connections: usize,
    duration: Duration,
    script: &Script,
) -> Outcome<LoadFigures> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let mut streams = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await.context("cannot connect")?;
            stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
            streams.push((stream, script.clone()));
        }
        let start = clock::now();
        for (number, (stream, script)) in streams.into_iter().enumerate() {
            tasks.spawn(converse(stream, script, number, start + duration));
        }
        let mut latencies = Vec::new();
        while let Some(conversation) = tasks.join_next().await {
            latencies.extend(conversation.context("a connection panicked")??);
        }
        let duration = start.elapsed();
        latencies.sort_unstable();
        Ok(LoadFigures {
            answers: latencies.len() as u64,
            duration,
            p50: quantile(&latencies, 50),
            p99: quantile(&latencies, 99),
        })
    })
}

/// The latencies of one connection's requests.
async fn converse(
    mut stream: TcpStream,
    script: Script,
    number: usize,
    end: Instant,
) -> Outcome<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(1 << 16);
    let mut buffer = vec![0; 64 * 1024];
    let mut wire = script.wire(number);
    loop {
        let sent = clock::now();
        let answer = wire.ask(&mut stream, &mut buffer).await?;
        if answer.status / 100 != 2 {
            return Err(Failure::new(format!(
                "an answer other than success: {}",
                answer.beginning
            )));
        }
        let answered = clock::now();
        latencies.push(answered - sent);
        if answered >= end {
            break;
        }
    }
    Ok(latencies)
}

/// The requests of a script in the order of one connection.
pub struct Wire {
    requests: Vec<PreparedRequest>,
    next: usize,
}

impl Script {
    /// Connections start at different requests, so that they do not write the same record at once.
    pub fn wire(&self, number: usize) -> Wire {
        let mut requests: Vec<_> = self.requests.as_ref().clone();
        let count = requests.len().max(1);
        requests.rotate_left(number * 17 % count);
        Wire { requests, next: 0 }
    }
}

impl Wire {
    /// Sends the next request and reads its answer.
    pub async fn ask(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> Outcome<AnswerSummary> {
        let count = self.requests.len().max(1);
        let request = self
            .requests
            .get_mut(self.next % count)
            .context("nothing to send")?;
        self.next = (self.next + 1) % count;
        if !request.serials.is_empty() {
            let serial = format!("{:016}", NEXT_SERIAL.fetch_add(1, Ordering::Relaxed));
            for at in &request.serials {
                request.bytes[*at..*at + SERIAL.len()].copy_from_slice(serial.as_bytes());
            }
        }
        stream.write_all(&request.bytes).await.context("cannot send")?;
        read_answer(stream, buffer).await
    }
}

/// What is looked at of an answer.
#[derive(Debug)]
pub struct AnswerSummary {
    pub status: u16,
    pub has_retry_after: bool,
    /// The connection ends after it.
    pub closes: bool,
    /// Of an answer other than success: how it begins.
    pub beginning: String,
}

async fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> Outcome<AnswerSummary> {
    let mut filled = 0;
    let head = loop {
        let read = stream
            .read(&mut buffer[filled..])
            .await
            .context("cannot read the answer")?;
        if read == 0 {
            return Err(Failure::new("the server closed the connection"));
        }
        filled += read;
        if let Some(head) = Head::parse(&buffer[..filled]) {
            break head?;
        }
    };
    let mut answered = AnswerSummary {
        status: head.status,
        has_retry_after: head.has_retry_after,
        closes: head.closes,
        beginning: String::new(),
    };
    if head.status / 100 != 2 {
        answered.beginning = String::from_utf8_lossy(&buffer[..filled]).into_owned();
    }
    let Some(body_size) = head.body_size else {
        // With the end of the head, in case that nothing but the last chunk follows.
        read_chunks(stream, buffer, head.size - 2, filled).await?;
        return Ok(answered);
    };
    let mut missing = (head.size + body_size).saturating_sub(filled);
    while missing > 0 {
        let read = stream.read(buffer).await.context("cannot read the body")?;
        if read == 0 {
            return Err(Failure::new("the server closed the connection within a body"));
        }
        missing = missing.saturating_sub(read);
    }
    Ok(answered)
}

/// Reads a chunked body: its end is known by the last bytes, since nothing follows before the next request.
async fn read_chunks(stream: &mut TcpStream, buffer: &mut [u8], mut from: usize, mut to: usize) -> Outcome {
    let mut end: Vec<u8> = Vec::with_capacity(2 * LAST_CHUNK.len());
    loop {
        let read = &buffer[from..to];
        end.extend(&read[read.len().saturating_sub(LAST_CHUNK.len())..]);
        end.drain(..end.len().saturating_sub(LAST_CHUNK.len()));
        if end == LAST_CHUNK {
            return Ok(());
        }
        (from, to) = (0, stream.read(buffer).await.context("cannot read the body")?);
        if to == 0 {
            return Err(Failure::new("the server closed the connection within a body"));
        }
    }
}

/// With the end of the chunk before it.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    size: usize,
    /// None of a chunked body.
    body_size: Option<usize>,
    has_retry_after: bool,
    closes: bool,
}

impl Head {
    /// None while the head is not complete.
    fn parse(bytes: &[u8]) -> Option<Outcome<Self>> {
        let size = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        Some(Self::read(&bytes[..size]).context("an answer that is not understood"))
    }

    fn read(head: &[u8]) -> Option<Self> {
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.trim().parse::<usize>().ok();
        let status = u16::try_from(number(head.get(9..12)?)?).ok()?;
        let value = |name: &[u8]| {
            let mut lines = head.split(|byte| *byte == b'\n');
            let is_named =
                |line: &&[u8]| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name);
            lines.find(is_named).map(|line| &line[name.len()..])
        };
        let body_size = match (value(b"content-length:"), value(b"transfer-encoding:")) {
            (Some(length), _) => Some(number(length)?),
            (None, Some(_)) => None,
            // 204 has neither.
            (None, None) => Some(0),
        };
        Some(Self {
            status,
            size: head.len(),
            body_size,
            has_retry_after: value(b"retry-after:").is_some(),
            closes: value(b"connection:").is_some_and(|value| value.trim_ascii() == b"close"),
        })
    }
}

/// The value below which so many percent of the sorted values lie.
pub fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((sorted.len() * percent / 100).min(last))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_understood_once_it_is_complete() {
        let text = b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 12\r\n\r\n{\"a\":";
        let head = Head::parse(text).unwrap().unwrap();
        assert_eq!(
            head,
            Head {
                status: 200,
                size: text.len() - 5,
                body_size: Some(12),
                has_retry_after: false,
                closes: false
            }
        );
        assert!(Head::parse(&text[..30]).is_none());
        let empty = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(
            Head::parse(empty).unwrap().unwrap(),
            Head {
                status: 204,
                size: empty.len(),
                body_size: Some(0),
                has_retry_after: false,
                closes: false
            }
        );
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(Head::parse(chunked).unwrap().unwrap().body_size, None);
        assert!(Head::parse(b"HTTP/1.1 2x0 OK\r\n\r\n").unwrap().is_err());
    }

    #[test]
    fn answers_end_where_they_end_whatever_tells_their_length() {
        let bodies = [
            "Content-Length: 5\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut stream = listener.accept().unwrap().0;
            stream.set_nodelay(true).unwrap();
            for body in bodies {
                assert_eq!(stream.read(&mut [0; 3]).unwrap(), 3);
                // In two parts, so that an end is also looked for across them.
                let answer = format!("HTTP/1.1 200 OK\r\n{body}");
                let (first, second) = answer.split_at(answer.len() - 3);
                stream.write_all(first.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(5));
                stream.write_all(second.as_bytes()).unwrap();
            }
            // The last question is answered by the end of the connection.
            assert_eq!(stream.read(&mut [0; 3]).unwrap(), 3);
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut buffer = vec![0; 1024];
            for _ in bodies {
                stream.write_all(b"GET").await.unwrap();
                read_answer(&mut stream, &mut buffer).await.unwrap();
            }
            stream.write_all(b"GET").await.unwrap();
            read_answer(&mut stream, &mut buffer).await.unwrap_err();
        });
        server.join().unwrap();
    }

    #[test]
    fn every_place_of_a_serial_is_found() {
        let script = Script::new([format!("k={SERIAL}&d={SERIAL}").into_bytes(), b"GET".to_vec()]);
        assert_eq!(script.requests[0].serials, [2, 21]);
        assert!(script.requests[1].serials.is_empty());
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<_> = (0..100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&values, 50), Duration::from_millis(50));
        assert_eq!(quantile(&values, 99), Duration::from_millis(99));
        assert_eq!(quantile(&values[..1], 99), Duration::ZERO);
        assert_eq!(quantile(&[], 50), Duration::ZERO);
    }
}
