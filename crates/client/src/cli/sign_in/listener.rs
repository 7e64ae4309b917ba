//! Where the browser brings the answer: a listener on this computer for one answer, for five minutes at most.

use super::super::failure::{Exit, Failure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use provost_words::Secret;
use provost_words::url::decoded_form;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The path of the answer, at every server.
const PATH: &str = "/callback";
/// LIMIT: how long somebody has to sign in and to allow it; a step of the server's pages opens for ten minutes.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// LIMIT: how long a connection has to say what it wants. Browsers open some that say nothing.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// LIMIT: bytes of a request's head.
const MAX_HEAD: usize = 32 << 10;
/// LIMIT: connections at a time.
const MAX_CONNECTIONS: usize = 16;

/// A place for one answer.
pub(super) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// What the browser brought.
#[derive(Debug)]
pub(super) enum Answer {
    /// The code, which nobody but this command can use.
    Code(Secret<String>),
    /// Why there is none, in the words of RFC 6749.
    Refused { error: String, description: String },
}

impl Listener {
    /// Opens one on this computer alone, on a port that is free or the one that is named.
    pub(super) async fn open(port: u16) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            let line = format!("cannot wait for the browser's answer on 127.0.0.1:{port}: {error}");
            Failure::new(Exit::Output, line).and("--with-token needs no browser")
        };
        let socket = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(socket) => socket,
            // A port that somebody has is not looked for elsewhere: what was forwarded leads there.
            Err(first) if first.kind() == ErrorKind::AddrNotAvailable => {
                let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await;
                second.map_err(|_| cannot(first))?
            }
            Err(first) => return Err(cannot(first)),
        };
        let address = socket.local_addr().map_err(cannot)?;
        Ok(Self { socket, address })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for the answer to the question of this `state`, from this issuer; whatever else comes changes nothing.
    ///
    /// Errors: usage, when nobody answers in time.
    pub(super) async fn answer(self, state: &Secret<String>, issuer: &str) -> Result<Answer, Failure> {
        let waiting = tokio::time::timeout(PATIENCE, self.first(state, issuer)).await;
        waiting.map_err(|_| {
            let minutes = PATIENCE.as_secs() / 60;
            let line = format!("nobody signed in within {minutes} minutes; nothing was kept");
            Failure::new(Exit::Unreachable, line).and("repeat the command when you are at the browser")
        })
    }

    async fn first(self, state: &Secret<String>, issuer: &str) -> Answer {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.socket.accept(), if connections.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let heard = heard(stream, self.address, state, issuer);
                        connections.push(tokio::time::timeout(HEAD_PATIENCE, heard));
                    }
                }
                Some(done) = connections.next() => {
                    if let Ok(Some(answer)) = done {
                        return answer;
                    }
                }
            }
        }
    }
}

/// Says whether a host is the address of the listener. Browsers leave out the port that every address of theirs has.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let whole = address.to_string();
    let short = whole.strip_suffix(":80").filter(|_| address.port() == 80);
    host == whole || short == Some(host)
}

/// Answers one connection; returns what it brought, if that is the answer.
async fn heard(
    mut stream: TcpStream,
    address: SocketAddr,
    state: &Secret<String>,
    issuer: &str,
) -> Option<Answer> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok()?;
        if count == 0 || head.len() + count > MAX_HEAD {
            return None;
        }
        head.extend_from_slice(&part[..count]);
    }
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    // A page under another name is told nothing, not even that somebody waits here.
    let is_named = lines
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| name.eq_ignore_ascii_case("host") && is_ours(value.trim(), address));
    if !is_named {
        return None;
    }
    let answer = understood(line, state, issuer);
    let (status, words) = match &answer {
        Some(Answer::Code(_)) => (
            "200 OK",
            "The command line has the answer. You can close this page.",
        ),
        Some(Answer::Refused { .. }) => (
            "200 OK",
            "The command line was given nothing. You can close this page.",
        ),
        None => ("404 Not Found", "The command line waits for another answer."),
    };
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Provost</title><h1>Provost</h1><p>{words}</p></html>\n"
    );
    let whole = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         content-security-policy: default-src 'none'; frame-ancestors 'none'\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // The answer counts, whether or not the browser still shows the page.
    let _ = stream.write_all(whole.as_bytes()).await;
    let _ = stream.shutdown().await;
    answer
}

/// Reads the first line of a request.
///
/// INVARIANT CL-8: only an answer that knows the question, and says that it comes from the server that was asked (RFC 9207).
fn understood(line: &str, state: &Secret<String>, issuer: &str) -> Option<Answer> {
    let target = line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    let mut members = BTreeMap::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=')?;
        if members
            .insert(decoded_form(name)?, decoded_form(value)?)
            .is_some()
        {
            return None;
        }
    }
    if members.get("state") != Some(state.expose()) || members.get("iss").map(String::as_str) != Some(issuer)
    {
        return None;
    }
    if let Some(error) = members.remove("error") {
        let description = members.remove("error_description").unwrap_or_default();
        return Some(Answer::Refused { error, description });
    }
    members.remove("code").map(Secret::new).map(Answer::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_address_without_the_port_that_browsers_leave_out() {
        for (host, address, is_it) in [
            ("127.0.0.1:4711", "127.0.0.1:4711", true),
            ("127.0.0.1", "127.0.0.1:4711", false),
            ("127.0.0.1", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1", "127.0.0.1:4780", false),
            ("[::1]", "[::1]:80", true),
            ("rebound.example", "127.0.0.1:80", false),
        ] {
            assert_eq!(is_ours(host, address.parse().unwrap()), is_it, "{host} {address}");
        }
    }

    /// Proves CL-8.
    #[test]
    fn only_the_answer_to_this_question_from_this_server_is_one() {
        let state = Secret::new("st/ate".to_owned());
        let read = |target: &str| {
            let line = format!("GET {target} HTTP/1.1");
            understood(&line, &state, "https://provost.example")
        };
        let whole = "/callback?code=c%2Fd&state=st%2Fate&iss=https%3A%2F%2Fprovost.example";
        assert!(matches!(read(whole), Some(Answer::Code(code)) if code.expose() == "c/d"));
        let refused = "/callback?error=access_denied&error_description=not+now&state=st%2Fate&iss=https%3A%2F%2Fprovost.example";
        assert!(
            matches!(read(refused), Some(Answer::Refused { error, description })
                if (error.as_str(), description.as_str()) == ("access_denied", "not now"))
        );
        for other in [
            "/callback?code=c&state=state&iss=https%3A%2F%2Fprovost.example",
            "/callback?code=c&iss=https%3A%2F%2Fprovost.example",
            "/callback?code=c&state=st%2Fate",
            "/callback?code=c&state=st%2Fate&iss=https%3A%2F%2Fother.example",
            "/callback?code=c&code=d&state=st%2Fate&iss=https%3A%2F%2Fprovost.example",
            "/callback?state=st%2Fate&iss=https%3A%2F%2Fprovost.example",
            "/callback/?code=c&state=st%2Fate&iss=https%3A%2F%2Fprovost.example",
            "/?code=c&state=st%2Fate&iss=https%3A%2F%2Fprovost.example",
            "/favicon.ico",
        ] {
            assert!(read(other).is_none(), "{other}");
        }
        assert!(
            understood(
                &format!("POST {whole} HTTP/1.1"),
                &state,
                "https://provost.example"
            )
            .is_none()
        );
    }

    #[tokio::test]
    async fn a_port_that_somebody_has_is_not_looked_for_elsewhere() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(Listener::open(port).await.is_err());
        assert_ne!(Listener::open(0).await.unwrap().port(), port);
    }

    /// Proves CL-8.
    #[tokio::test]
    async fn a_page_under_another_name_is_told_nothing_and_the_answer_counts_behind_it() {
        let listener = Listener::open(0).await.unwrap();
        let address = listener.address;
        let asks = async |host: String, query: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!("GET {PATH}{query} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer).await;
            answer
        };
        let state = Secret::new("s".to_owned());
        let played = async {
            let whole = "?code=c&state=s&iss=i";
            assert_eq!(asks("attacker.example".to_owned(), whole).await, "");
            assert!(asks(address.to_string(), "").await.starts_with("HTTP/1.1 404 "));
            asks(address.to_string(), whole).await
        };
        let (answer, page) = tokio::join!(listener.answer(&state, "i"), played);
        assert!(matches!(answer.unwrap(), Answer::Code(code) if code.expose() == "c"));
        assert!(
            page.starts_with("HTTP/1.1 200 ") && page.contains("has the answer"),
            "{page}"
        );
    }
}
