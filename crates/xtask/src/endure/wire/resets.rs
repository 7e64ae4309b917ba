//! Rapid resets (HTTP/2): streams that are opened and reset at once, by attackers that come back, while others work.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::fixture::millis;
use crate::bench::load::{self, Script};
use crate::bench::machine;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::product::Server;

const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 0xb];
const MOST_MIB: f64 = 512.0;
const OTHERS: usize = 4;
const ATTACKERS: u64 = 4;
/// More than the server takes on one connection: it ends it, and the attacker comes back with another one.
const MOST_ON_ONE: u64 = 2_000;
/// Goal: so many resets a second, counted as they are offered.
const RATE: f64 = 10_000.0;

#[derive(Default)]
struct Attack {
    sent: u64,
    connections: u64,
    ended: u64,
    duration: Duration,
}

/// Attacks with so many resets; returns a clause for the record.
pub fn check(server: &Server, resets: u64) -> Outcome<String> {
    let script = Script::new([b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()]);
    let over = AtomicBool::new(false);
    let (attack, measured) = std::thread::scope(|scope| {
        let over = &over;
        let attacker = scope.spawn(move || {
            let attacked = attack_at_once(server.address, resets);
            over.store(true, Ordering::SeqCst);
            attacked
        });
        let mut others = Vec::new();
        // Any answer but a success ends this with a failure.
        let outcome = loop {
            match load::send(server.address, OTHERS, Duration::from_millis(200), &script) {
                Ok(measured) => others.push(measured),
                Err(failure) => break Err(failure),
            }
            if over.load(Ordering::SeqCst) {
                break Ok(());
            }
        };
        let attack = attacker
            .join()
            .map_err(|_| Failure::new("the attacker panicked"))?;
        outcome.context("beside rapid resets")?;
        Ok((attack?, others))
    })?;
    let answers: u64 = measured.iter().map(|load| load.answers).sum();
    let mut p99s: Vec<_> = measured.iter().map(|load| load.p99).collect();
    p99s.sort_unstable();
    let memory = machine::resident_mib(server.pid()).context("the server is gone")?;
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let rate = attack.sent as f64 / attack.duration.as_secs_f64();
    if attack.ended == 0 || rate < RATE || memory > MOST_MIB || answers == 0 {
        return Err(Failure::new(format!(
            "{} resets at {rate:.0}/s over {} connections, of which {} were ended with ENHANCE_YOUR_CALM; {answers} \
             answers of others, {memory:.0} MiB",
            attack.sent, attack.connections, attack.ended
        )));
    }
    Ok(format!(
        "{} streams reset at {rate:.0}/s over {} connections, {} of which were ended with ENHANCE_YOUR_CALM, while others \
         had {answers} answers, all with success (p99 {}), and {memory:.0} MiB at the end",
        attack.sent,
        attack.connections,
        attack.ended,
        millis(load::quantile(&p99s, 50))
    ))
}

fn attack_at_once(address: SocketAddr, resets: u64) -> Outcome<Attack> {
    let start = clock::now();
    std::thread::scope(|scope| {
        let one = || scope.spawn(move || attack(address, resets / ATTACKERS));
        let running: Vec<_> = (0..ATTACKERS).map(|_| one()).collect();
        let mut all = Attack::default();
        for thread in running {
            let one = thread
                .join()
                .map_err(|_| Failure::new("an attacker panicked"))??;
            all.sent += one.sent;
            all.connections += one.connections;
            all.ended += one.ended;
        }
        all.duration = start.elapsed();
        Ok(all)
    })
}

fn attack(address: SocketAddr, resets: u64) -> Outcome<Attack> {
    let mut attack = Attack::default();
    while attack.sent < resets {
        attack.connections += 1;
        let most = MOST_ON_ONE.min(resets - attack.sent);
        let (sent, is_ended) = one_connection(address, most)?;
        attack.sent += sent;
        attack.ended += u64::from(is_ended);
    }
    Ok(attack)
}

/// Resets streams until the server ends the connection; says how many, and whether the server said why.
fn one_connection(address: SocketAddr, most: u64) -> Outcome<(u64, bool)> {
    let mut stream = TcpStream::connect(address).context("an attacker cannot connect")?;
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .context("no timeout")?;
    let mut said = Vec::new();
    if stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").is_err()
        || stream.write_all(&frame(4, 0, 0, &[])).is_err()
    {
        return Ok((0, false));
    }
    let mut sent = 0;
    for first in (1..u32::MAX / 2).step_by(200) {
        let mut bytes = Vec::with_capacity(100 * 40);
        for stream in (first..first + 200).step_by(2) {
            // GET http://a/, then CANCEL.
            bytes.extend(frame(1, 0x5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'a']));
            bytes.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
        }
        if stream.write_all(&bytes).is_err() {
            break;
        }
        sent += 100;
        if sent >= most {
            break;
        }
    }
    drop(stream.shutdown(std::net::Shutdown::Write));
    let mut buffer = [0; 16 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(Failure::new(
                    "the server keeps a connection that resets everything",
                ));
            }
            Err(_) => break,
        }
    }
    Ok((sent, said.windows(4).any(|four| four == ENHANCE_YOUR_CALM)))
}

/// A frame of RFC 9113 §4.1.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
