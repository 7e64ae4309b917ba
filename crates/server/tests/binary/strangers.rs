//! Strangers: what somebody without a token can do, all at once and from one address, while callers with one are answered.
//!
//! `PROVOST_TEST_STRANGERS_SECS` makes it last longer, `PROVOST_TEST_STRANGERS` makes them more.

use super::harness::{Home, homes_once};
use provost_kernel::time::{Clock, SystemClock};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// LIMIT: how long a caller with a valid token waits at most.
const MOST: Duration = Duration::from_secs(1);

fn number(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var_os(name).and_then(|set| set.into_string().ok());
    set.and_then(|set| set.parse().ok()).unwrap_or(otherwise)
}

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    Some(stream)
}

/// Reads one answer and returns its status; none where the connection ended before.
fn status(stream: &mut TcpStream) -> Option<u16> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some(end) = text.find("\r\n\r\n") {
            let head = text[..end].to_lowercase();
            let length = head.split("content-length: ").nth(1)?.lines().next()?;
            if bytes.len() >= end + 4 + length.trim().parse::<usize>().ok()? {
                return head.split(' ').nth(1)?.parse().ok();
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// One kind of flood: what is sent on each connection, and whether an answer is waited for.
struct Flood {
    name: &'static str,
    bytes: Box<dyn Fn(u64) -> Vec<u8> + Send + Sync>,
    awaits: bool,
}

fn flood(name: &'static str, bytes: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static, awaits: bool) -> Flood {
    Flood {
        name,
        bytes: Box::new(bytes),
        awaits,
    }
}

fn request(line: &str, headers: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A token whose checksum is right and that nobody was given.
fn forged(nth: u64) -> String {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&nth.to_le_bytes());
    let mut rng = provost_kernel::entropy::UnitRng::new(seed);
    let form = provost_areas_identity::service_accounts::FORM;
    provost_kernel::token::mint(form, &mut rng).token.expose().clone()
}

const API: &str = "POST /api/headless/v1/organizations/acme/service-accounts";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// Hosts that take connections and never say a word, on every address of the loopback network; returns their port.
fn silence() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let held: Vec<_> = listener.incoming().flatten().collect();
        drop(held);
    });
    port
}

/// Settings by which strangers can send the server to such hosts: about clients, and about opaque tokens.
fn settings(home: &Home, silent: u16) -> String {
    let secret = home.path("issuer-secret");
    std::fs::write(&secret, "a secret of a test").unwrap();
    let file = home.path("strangers.toml");
    let text = format!(
        "[oauth]\nallow_networks = [\"127.0.0.0/8\"]\n[[oauth.issuers]]\nurl = \"https://idp.example\"\n\
         organizations = [\"acme\"]\nintrospection_url = \"http://127.0.0.1:{silent}/introspect\"\n\
         client_id = \"provost\"\nclient_secret_file = \"{}\"\n",
        secret.display()
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// What makes the server wait for hosts that hang.
fn sent_elsewhere(silent: u16) -> Vec<Flood> {
    vec![
        flood(
            "a client at a host that hangs",
            move |nth| {
                // Each is a host of its own.
                let (third, last) = (nth / 250 % 250, 1 + nth % 250);
                let body = format!(
                    "grant_type=authorization_code&client_id=https%3A%2F%2F127.1.{third}.{last}%3A{silent}%2Fc{nth}&code=x\
                     &redirect_uri=x&code_verifier=x"
                );
                request("POST /oauth/token", FORM, body.len(), body.as_bytes())
            },
            false,
        ),
        flood(
            "a token that only an issuer that hangs could know",
            |nth| {
                request(
                    "GET /api/headless/v1/organizations/acme/capabilities",
                    &format!("Authorization: Bearer opaque{nth}\r\n"),
                    0,
                    b"",
                )
            },
            false,
        ),
    ]
}

fn floods() -> Vec<Flood> {
    vec![
        flood("silent connections", |_| Vec::new(), false),
        flood(
            "half a head",
            |_| b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec(),
            false,
        ),
        flood("a body without a token", |_| request(API, "", 1000, b"{"), false),
        flood(
            "a body with a forged token",
            |nth| {
                request(
                    API,
                    &format!("Authorization: Bearer {}\r\n", forged(nth)),
                    1000,
                    b"{",
                )
            },
            false,
        ),
        flood(
            "a mebibyte of JSON at /mcp",
            |nth| {
                let headers = format!(
                    "Authorization: Bearer {}\r\nContent-Type: application/json\r\n\
                     Accept: application/json, text/event-stream\r\n",
                    forged(nth)
                );
                let body = format!("[{}1]", "[1],".repeat(200_000));
                request("POST /mcp", &headers, body.len(), body.as_bytes())
            },
            true,
        ),
        flood(
            "a form that does not end",
            |_| request("POST /oauth/token", FORM, 16_000, b"a=b"),
            false,
        ),
        flood(
            "a grant that is none, with a proof",
            |nth| {
                let body = format!("grant_type=authorization_code&client_id=ocl_{nth}&code={nth}");
                let headers = format!("{FORM}DPoP: a.b.{nth}\r\n");
                request("POST /oauth/token", &headers, body.len(), body.as_bytes())
            },
            true,
        ),
        flood(
            "a client at a host that does not answer",
            |nth| {
                let body = format!(
                    "grant_type=authorization_code&client_id=https%3A%2F%2Fh{nth}.invalid%2Fc&code=x&redirect_uri=x&code_verifier=x"
                );
                request("POST /oauth/token", FORM, body.len(), body.as_bytes())
            },
            false,
        ),
        flood(
            "garbage for a token",
            |nth| {
                request(
                    "GET /api/headless/v1/organizations/acme/capabilities",
                    &format!("Authorization: Bearer a.b{nth}.c\r\n"),
                    0,
                    b"",
                )
            },
            true,
        ),
        flood(
            "questions whether it is ready",
            |_| request("GET /readyz", "", 0, b""),
            true,
        ),
        flood(
            "a document that nobody reads",
            |_| request("GET /api/headless/v1/openapi.json", "", 0, b""),
            false,
        ),
    ]
}

/// Floods until it is told to stop; keeps so many connections open as long as the server does.
fn storm(port: u16, flood: &Flood, number: usize, stop: &AtomicBool, sent: &AtomicUsize) {
    let (mut open, mut nth) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        nth += 1;
        let Some(mut stream) = connect(port) else {
            open.clear();
            continue;
        };
        if stream.write_all(&(flood.bytes)(nth)).is_ok() {
            sent.fetch_add(1, Ordering::Relaxed);
        }
        if flood.awaits {
            let _ = status(&mut stream);
        } else {
            open.push(stream);
        }
        if open.len() > number {
            open.remove(0);
        }
        // A thousand a second and a flood are enough, and leave ports for the caller.
        thread::sleep(Duration::from_millis(1));
    }
}

/// What a caller saw.
#[derive(Debug, Default)]
struct CallerView {
    answers: usize,
    again: usize,
    longest: Duration,
}

impl CallerView {
    /// Asks on a connection of its own. One that is closed is opened anew, as every client does.
    fn ask(&mut self, port: u16, head: &str) {
        let clock = SystemClock::new();
        loop {
            let answered = connect(port).and_then(|mut stream| {
                stream.write_all(head.as_bytes()).ok()?;
                status(&mut stream)
            });
            if let Some(status) = answered {
                assert_eq!(status, 200, "{head}");
                break;
            }
            self.again += 1;
            assert!(clock.monotonic() < 10 * MOST, "no answer: {self:?}");
        }
        self.longest = self.longest.max(clock.monotonic());
        self.answers += 1;
    }
}

/// What callers saw while some floods went on.
#[derive(Debug)]
struct Outcome {
    /// Connections of strangers.
    connections: usize,
    known: CallerView,
    /// Somebody who came for the first time meanwhile.
    first: Option<CallerView>,
}

impl Outcome {
    fn is_good(&self) -> bool {
        let is_soon = |seen: &CallerView| seen.answers > 0 && seen.longest < MOST;
        self.connections > 0 && is_soon(&self.known) && self.first.as_ref().is_none_or(is_soon)
    }
}

/// Lets floods go on together while callers ask; with `fresh`, one of them for the first time in the midst of it.
fn under(port: u16, together: &[&Flood], token: &str, fresh: Option<&str>) -> Outcome {
    let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let each = if together.len() > 1 {
        1
    } else {
        usize::try_from(number("PROVOST_TEST_STRANGERS", 2)).unwrap()
    };
    let half = Duration::from_secs(number("PROVOST_TEST_STRANGERS_SECS", 1)) / 2;
    let head = |token: &str| {
        format!(
            "GET /api/headless/v1/organizations/acme/capabilities HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        )
    };
    let (known, first) = thread::scope(|scope| {
        for flood in together {
            // As many as were seen to stop everybody, and fewer than this process may have.
            let (number, stop, sent) = (600 / (each * together.len()), &stop, &sent);
            for _ in 0..each {
                scope.spawn(move || storm(port, flood, number, stop, sent));
            }
        }
        let known = scope.spawn(|| {
            let mut seen = CallerView::default();
            while !stop.load(Ordering::Relaxed) {
                seen.ask(port, &head(token));
                thread::sleep(Duration::from_millis(20));
            }
            seen
        });
        thread::sleep(half);
        let first = fresh.map(|fresh| {
            scope.spawn(move || {
                let mut seen = CallerView::default();
                seen.ask(port, &head(fresh));
                seen
            })
        });
        thread::sleep(half);
        stop.store(true, Ordering::Relaxed);
        (known.join().unwrap(), first.map(|first| first.join().unwrap()))
    });
    Outcome {
        connections: sent.load(Ordering::Relaxed),
        known,
        first,
    }
}

#[test]
fn strangers_keep_no_caller_with_a_token_waiting() {
    for home in homes_once("strangers") {
        let token = home.init();
        let silent = silence();
        let server = home.serve(&["--config", &settings(&home, silent)]);
        assert_eq!(server.accounts("acme", &token).0, 200);
        let made = super::harness::post(
            server.port,
            "/api/headless/v1/organizations/acme/service-accounts",
            &token,
            r#"{"name":"latecomer","permissionRole":"viewer","allOfRole":true}"#,
        );
        assert_eq!(made.0, 201, "{}", made.1);
        let made: serde_json::Value = serde_json::from_str(&made.1).unwrap();
        let fresh = made["token"]["token"].as_str().unwrap().to_owned();
        // Each by itself, and then all of them.
        let mut floods = floods();
        floods.extend(sent_elsewhere(silent));
        let mut stages: Vec<Vec<&Flood>> = floods.iter().map(|flood| vec![flood]).collect();
        stages.push(floods.iter().collect());
        for (nth, stage) in stages.iter().enumerate() {
            let fresh = (nth + 1 == stages.len()).then_some(fresh.as_str());
            let names: Vec<&str> = stage.iter().map(|flood| flood.name).collect();
            // A machine that does something else for a second is no finding; three times in a row it is one.
            let mut outcomes = Vec::new();
            for _ in 0..3 {
                outcomes.push(under(server.port, stage, &token, fresh));
                if outcomes.last().is_some_and(Outcome::is_good) {
                    break;
                }
            }
            println!("{names:?}: {outcomes:?}");
            assert!(
                outcomes.last().is_some_and(Outcome::is_good),
                "{names:?}: {outcomes:?}"
            );
        }
        // Nothing of it outlives it.
        assert_eq!(server.accounts("acme", &token).0, 200);
        assert_eq!(server.stop(), 0);
    }
}
