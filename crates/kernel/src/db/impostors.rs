//! Who answers in PostgreSQL's place: what it hears of a password, and of anything else.

use super::plain::ASKED_IN_CLEAR;
use super::round_trips::{Talk, behind_proxy};
use super::tests::COUNT;
use super::*;
use crate::secret::Secret;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// `R`, eight bytes, 3: a password in clear.
const ASK_IN_CLEAR: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];
const STOP: &[u8] = b"that is all";

/// Returns an address of this machine that is not known to be one: its own in a network, or a spelling of loopback.
fn far() -> String {
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        // Nothing is sent: the address is one for documentation.
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    match own {
        Ok(address) if !address.ip().is_loopback() && !address.ip().is_unspecified() => {
            address.ip().to_string()
        }
        _ => "127.1".to_owned(),
    }
}

/// A listener that answers the question for TLS with a letter, and everything else with a wish for the password in clear.
struct Impostor {
    host: String,
    port: u16,
    heard: JoinHandle<Vec<Vec<u8>>>,
}

impl Impostor {
    fn at(host: &str, tls: u8) -> Self {
        let listener = TcpListener::bind((host, 0)).expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let heard = std::thread::spawn(move || {
            let mut all = Vec::new();
            loop {
                let (caller, _) = listener.accept().expect("somebody calls");
                match listen(caller, tls) {
                    words if words == STOP => return all,
                    words => all.push(words),
                }
            }
        });
        let host = host.to_owned();
        Self { host, port, heard }
    }

    /// Connects as the server would, and returns what the operator is told and what was heard, call by call.
    fn meet(self, options: &str, may_be_plain: bool) -> (String, Vec<Vec<u8>>) {
        let url = format!(
            "postgres://provost:hunter2@{}:{}/x{options}",
            self.host, self.port
        );
        let url = PostgresUrl::new(Secret::new(url)).allow_plaintext(may_be_plain);
        let Err(error) = Conn::open(&Location::Postgres(url), Access::Write) else {
            panic!("a stranger was let in with {options}");
        };
        let mut last = TcpStream::connect((self.host.as_str(), self.port)).expect("it listens");
        last.write_all(STOP).expect("it reads");
        drop(last);
        let said = error.told().map(str::to_owned).or_else(|| error.private());
        (said.unwrap_or_default(), self.heard.join().expect("no panic"))
    }
}

/// Lets one caller speak until it goes away.
fn listen(mut caller: TcpStream, tls: u8) -> Vec<u8> {
    let wait = Some(Duration::from_secs(20));
    caller.set_read_timeout(wait).expect("a socket");
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    let mut turns = 0;
    let offer = [tls];
    while let Ok(size @ 1..) = caller.read(&mut buffer) {
        let words = &buffer[..size];
        heard.extend_from_slice(words);
        let answer: &[u8] = match words {
            STOP => break,
            _ if words == SSL_REQUEST && tls == b'S' => b"S and then nothing that is TLS",
            _ if words == SSL_REQUEST => &offer,
            _ => &ASK_IN_CLEAR,
        };
        turns += 1;
        // Whoever answers with a password has said what there is to hear.
        if turns > 2 || words.starts_with(b"p") || caller.write_all(answer).is_err() {
            break;
        }
    }
    heard
}

fn has(heard: &[Vec<u8>], word: &[u8]) -> bool {
    heard
        .iter()
        .any(|words| words.windows(word.len()).any(|part| part == word))
}

/// Proves TL-1.
#[test]
fn no_password_goes_in_clear_to_whoever_answers_elsewhere() {
    let far = far();
    for (options, may_be_plain, expected, calls) in [
        ("", false, "offers no TLS", 1),
        ("", true, "offers no TLS", 1),
        ("?sslmode=require", true, "offers no TLS", 1),
        ("?sslmode=disable", false, "--database-plaintext", 0),
        ("?sslmode=prefer", false, "--database-plaintext", 0),
        ("?sslmode=allow", false, "--database-plaintext", 0),
        ("?sslmode=disable", true, ASKED_IN_CLEAR, 1),
        ("?sslmode=prefer", true, ASKED_IN_CLEAR, 2),
        ("?sslmode=allow", true, ASKED_IN_CLEAR, 2),
    ] {
        let (said, heard) = Impostor::at(&far, b'N').meet(options, may_be_plain);
        assert!(said.contains(expected), "{options}: {said}");
        assert_eq!(heard.len(), calls, "{options}");
        assert!(!has(&heard, b"hunter2"), "{options}");
        // Who it is for is said only where no TLS is what the operator wants.
        assert_eq!(
            has(&heard, b"provost"),
            expected == ASKED_IN_CLEAR,
            "{options}: {heard:?}"
        );
    }
}

#[test]
fn over_loopback_a_password_may_be_asked_for_in_clear() {
    for (options, calls) in [("", 1), ("?sslmode=disable", 1), ("?sslmode=prefer", 2)] {
        let (_, heard) = Impostor::at("127.0.0.1", b'N').meet(options, false);
        assert!(has(&heard, b"hunter2"), "{options}");
        assert_eq!(heard.len(), calls, "{options}");
    }
    let (said, heard) = Impostor::at("127.0.0.1", b'N').meet("?sslmode=require", false);
    assert!(
        said.contains("offers no TLS") && !has(&heard, b"hunter2"),
        "{said}"
    );
}

/// Proves TL-1.
#[test]
fn after_a_failed_handshake_nothing_is_said_in_clear() {
    let far = far();
    for host in [far.as_str(), "127.0.0.1"] {
        for options in ["?sslmode=prefer", "?sslmode=allow", "?sslmode=require"] {
            let (said, heard) = Impostor::at(host, b'S').meet(options, true);
            assert!(said.contains("no TLS with the PostgreSQL server"), "{said}");
            assert_eq!(heard.len(), 1, "{host} {options}");
            assert!(
                !has(&heard, b"hunter2") && !has(&heard, b"user\0provost"),
                "{host} {options}"
            );
        }
    }
}

#[test]
fn a_root_certificate_asks_for_tls() {
    let own = std::env::temp_dir().join(format!("provost-root-{}.pem", std::process::id()));
    std::fs::write(&own, "no certificate").expect("the temporary folder is writable");
    let options = format!("?sslrootcert={}", own.display());
    let (said, heard) = Impostor::at("127.0.0.1", b'N').meet(&options, true);
    assert!(said.contains("holds no readable certificate"), "{said}");
    assert_eq!(heard, [] as [Vec<u8>; 0]);
    std::fs::remove_file(own).expect("it was written");
}

/// Who allowed it gets it: the watch lets through what a server says.
#[test]
fn a_server_elsewhere_is_used_without_tls_where_that_is_allowed() {
    for store in testing::locations("elsewhere") {
        let Location::Postgres(url) = store.location() else {
            continue;
        };
        let mut near = store.open();
        near.batch("CREATE TABLE things (id BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)")
            .expect("creates");
        let talk = Arc::new(Mutex::new(Talk::default()));
        let elsewhere = behind_proxy(&far(), url.expose(), talk);
        let mut conn = Conn::open(&elsewhere, Access::Write).expect("opens");
        let count = conn.read(|tx| tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0)));
        assert_eq!(count.expect("reads"), Some(0));
    }
}
