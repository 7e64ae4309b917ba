//! The least HTTP/1.1 client that keeps a connection and tells a lost answer from a given one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::traffic::machine::Key;

/// One request, kept as it is so that a retry sends the same bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub token: Option<String>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    /// A body that is not JSON: its media type and bytes.
    pub content: Option<(&'static str, Vec<u8>)>,
    /// The key of the machine that sends it. A retry brings a new proof, because a server takes each proof once.
    pub proof: Option<Key>,
}

impl Request {
    pub fn new(method: &'static str, path: impl Into<String>, token: &str) -> Self {
        Self {
            method,
            path: path.into(),
            token: Some(token.to_owned()),
            headers: Vec::new(),
            body: None,
            content: None,
            proof: None,
        }
    }

    pub fn get(path: impl Into<String>, token: &str) -> Self {
        Self::new("GET", path, token)
    }

    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The request as it goes over the wire, without a proof: that one is made for an address.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(None)
    }

    fn bytes_to(&self, address: SocketAddr) -> Vec<u8> {
        let proof = self.proof.as_ref().map(|key| key.proof(address, self));
        self.bytes_with(proof.as_deref())
    }

    fn bytes_with(&self, proof: Option<&str>) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.path);
        if let Some(token) = &self.token {
            head.extend(["Authorization: Bearer ", token, "\r\n"]);
        }
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if let Some(proof) = proof {
            head.extend(["DPoP: ", proof, "\r\n"]);
        }
        let (media_type, body) = match (&self.content, &self.body) {
            (Some((media_type, bytes)), _) => (*media_type, bytes.clone()),
            (None, Some(body)) => ("application/json", body.to_string().into_bytes()),
            (None, None) => ("", Vec::new()),
        };
        if !body.is_empty() {
            let length = body.len().to_string();
            head.extend([
                "Content-Type: ",
                media_type,
                "\r\nContent-Length: ",
                &length,
                "\r\n",
            ]);
        } else if self.method == "POST" {
            head += "Content-Length: 0\r\n";
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend(body);
        bytes
    }
}

/// One complete answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub replayed: bool,
    pub body: Vec<u8>,
    pub closes: bool,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Outcome<Value> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::new(format!("status {}: the body is not JSON: {error}", self.status)))
    }

    /// The stable code of an error's envelope.
    pub fn code(&self) -> String {
        let envelope = self.json().unwrap_or_default();
        envelope["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and the beginning of the body, for a message.
    pub fn summary(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        format!("{} {}", self.status, text.chars().take(300).collect::<String>())
    }
}

/// Why there is no complete answer.
#[derive(Debug)]
pub struct MissingAnswer {
    /// The status line, when that much arrived.
    pub status: Option<u16>,
    pub why: String,
}

/// A connection that is opened when needed and kept while the server keeps it.
pub struct Connection {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Connection {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
        }
    }

    pub fn send(&mut self, request: &Request) -> Result<Answer, MissingAnswer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).map_err(|error| lost(None, &error))?,
        };
        let written = stream.get_mut().write_all(&request.bytes_to(self.address));
        // An early answer (413, say) may be waiting although the rest could not be written.
        let answer = match read_answer(&mut stream, request.method == "HEAD") {
            Ok(answer) => answer,
            Err(loss) => return Err(written.err().map_or(loss, |error| lost(None, &error))),
        };
        if !answer.closes {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    /// Sends and expects success with a JSON body.
    pub fn fetch(&mut self, request: &Request) -> Outcome<Value> {
        let name = format!("{} {}", request.method, request.path);
        let answer = self
            .send(request)
            .map_err(|lost| Failure::new(format!("{name}: {}", lost.why)))?;
        if answer.is_success() {
            return answer.json();
        }
        Err(Failure::new(format!("{name}: {}", answer.summary())))
    }
}

fn connect(address: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    Ok(BufReader::new(stream))
}

fn lost(status: Option<u16>, why: &dyn std::fmt::Display) -> MissingAnswer {
    MissingAnswer {
        status,
        why: why.to_string(),
    }
}

/// Reads one answer. The product sends a `Content-Length` with all of these; others send chunks.
fn read_answer(stream: &mut impl BufRead, without_body: bool) -> Result<Answer, MissingAnswer> {
    let line = read_line(stream).map_err(|error| lost(None, &error))?;
    let status = parse_status(&line).ok_or_else(|| lost(None, &format!("not a status line: {line:?}")))?;
    let (mut length, mut is_chunked) = (0, false);
    let (mut replayed, mut closes) = (false, false);
    loop {
        let line = read_line(stream).map_err(|error| lost(Some(status), &error))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "idempotent-replayed" => replayed = value == "true",
            "connection" => closes = value.eq_ignore_ascii_case("close"),
            "transfer-encoding" => is_chunked = true,
            _ => {}
        }
    }
    let body = match (without_body, is_chunked) {
        (true, _) => Ok(Vec::new()),
        (false, true) => read_chunks(stream),
        (false, false) => read_bytes(stream, length),
    };
    Ok(Answer {
        status,
        replayed,
        body: body.map_err(|error| lost(Some(status), &error))?,
        closes,
    })
}

fn read_bytes(stream: &mut impl BufRead, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads a body of chunks, without trailers (RFC 9112 §7.1).
fn read_chunks(stream: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = read_line(stream)?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidData))?;
        body.extend(read_bytes(stream, size)?);
        read_line(stream)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn read_line(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    stream.take(16 * 1024).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            "the connection ended",
        ));
    }
    Ok(line.trim_end().to_owned())
}

fn parse_status(line: &str) -> Option<u16> {
    let rest = line
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| line.strip_prefix("HTTP/1.0 "))?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str =
        "HTTP/1.1 201 Created\r\nContent-Length: 7\r\nIdempotent-Replayed: true\r\n\r\n{\"a\":1}";

    #[test]
    fn an_answer_is_read_whole() {
        let answer = read_answer(&mut WHOLE.as_bytes(), false).unwrap();
        assert_eq!(
            (answer.status, answer.replayed, answer.closes),
            (201, true, false)
        );
        assert_eq!(answer.json().unwrap()["a"], 1);
    }

    #[test]
    fn an_answer_cut_anywhere_is_lost_and_its_status_is_known_once_it_arrived() {
        for cut in 0..WHOLE.len() {
            let lost = read_answer(&mut &WHOLE.as_bytes()[..cut], false).unwrap_err();
            assert_eq!(
                lost.status.is_some(),
                cut >= "HTTP/1.1 201 Created\r\n".len(),
                "cut after {cut}"
            );
        }
    }

    #[test]
    fn chunks_are_joined_and_a_cut_is_a_loss() {
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nMcp-Session-Id: s\r\n\r\n\
                     3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n";
        let answer = read_answer(&mut whole.as_bytes(), false).unwrap();
        assert_eq!(answer.json().unwrap()["a"], 1);
        for cut in 0..whole.len() {
            read_answer(&mut &whole.as_bytes()[..cut], false).unwrap_err();
        }
    }

    #[test]
    fn a_request_states_its_length() {
        let request = Request::new("PATCH", "/x", "t").with_body(serde_json::json!({"name": "é"}));
        let text = String::from_utf8(request.bytes()).unwrap();
        assert!(text.starts_with("PATCH /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n"));
        assert!(
            text.ends_with("Content-Length: 13\r\n\r\n{\"name\":\"é\"}"),
            "{text}"
        );
    }

    #[test]
    fn the_code_of_an_envelope_is_found() {
        let text = "HTTP/1.1 409 Conflict\r\nContent-Length: 18\r\n\r\n{\"code\":\"disabled\"";
        assert!(
            read_answer(&mut text.as_bytes(), false)
                .unwrap()
                .code()
                .is_empty()
        );
        let text = "HTTP/1.1 409 Conflict\r\nContent-Length: 19\r\n\r\n{\"code\":\"disabled\"}";
        assert_eq!(
            read_answer(&mut text.as_bytes(), false).unwrap().code(),
            "disabled"
        );
    }
}
