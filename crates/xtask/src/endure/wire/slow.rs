//! Peers that never finish: heads and bodies that come byte by byte, over many connections, while others work.
//!
//! The server cuts each of them off after its ten seconds; a new one takes its place at once, so that there are always
//! as many as were asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::bench::load::{self, Script};
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::product::Bootstrap;

const OTHERS: usize = 8;
/// Between two bytes of a slow peer.
const DRIP: Duration = Duration::from_millis(500);
const HEAD: &[u8] = b"GET /readyz HTTP/1.1\r\nHost: a\r\nX: ";

/// Measures others without and with slow connections; returns a clause for the record.
pub fn check(
    address: SocketAddr,
    bootstrap: &Bootstrap,
    count: usize,
    secs: Duration,
    rounds: u32,
) -> Outcome<String> {
    let script = Script::new([b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()]);
    // A body that is read to its end before it is looked at.
    let body = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 200000\r\n\r\n{{\"",
        bootstrap.path("service-accounts"),
        bootstrap.token
    );
    let body: Arc<[u8]> = body.into_bytes().into();
    let measure = || load::send(address, OTHERS, secs, &script);
    measure()?;
    let (mut before, mut during) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let alone = measure()?.p99;
        let beside = beside_slow(address, &body, count, &measure)?;
        eprintln!("round {round}/{rounds}: p99 {alone:?} alone, {beside:?} beside {count} slow connections");
        before.push(alone);
        during.push(beside);
    }
    before.sort_unstable();
    during.sort_unstable();
    let (before, during) = (load::quantile(&before, 50), load::quantile(&during, 50));
    let ratio = during.as_secs_f64() / before.as_secs_f64().max(1e-9);
    if ratio >= 2.0 {
        return Err(Failure::new(format!(
            "beside {count} slow connections the others' p99 is {during:?}, {ratio:.2} times the {before:?} of before"
        )));
    }
    Ok(format!(
        "beside {count} slow connections the others' p99 is {during:.1?} after {before:.1?} without ({ratio:.2} times)"
    ))
}

fn beside_slow(
    address: SocketAddr,
    body: &Arc<[u8]>,
    count: usize,
    measure: &dyn Fn() -> Outcome<load::LoadFigures>,
) -> Outcome<Duration> {
    let (over, open) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    std::thread::scope(|scope| {
        let peers = {
            let (over, open) = (Arc::clone(&over), Arc::clone(&open));
            scope.spawn(move || drip_all(address, body, count, &over, &open))
        };
        let all_there = clock::poll_until(Duration::from_secs(20), Duration::from_millis(10), || {
            open.load(Ordering::SeqCst) >= count
        });
        let measured = measure();
        let at_end = open.load(Ordering::SeqCst);
        over.store(true, Ordering::SeqCst);
        peers
            .join()
            .map_err(|_| Failure::new("the slow connections panicked"))??;
        // A few are always being replaced.
        if !all_there || at_end * 100 < count * 90 {
            return Err(Failure::new(format!(
                "only {at_end} of {count} slow connections were open at the end of the measurement"
            )));
        }
        Ok(measured?.p99)
    })
}

fn drip_all(
    address: SocketAddr,
    body: &Arc<[u8]>,
    count: usize,
    over: &Arc<AtomicBool>,
    open: &Arc<AtomicUsize>,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    runtime.block_on(async {
        let mut peers = JoinSet::new();
        for number in 0..count {
            let (over, open, body) = (Arc::clone(over), Arc::clone(open), Arc::clone(body));
            peers.spawn(async move {
                while !over.load(Ordering::SeqCst) {
                    let begin = if number % 2 == 0 { HEAD } else { &body };
                    drip(address, begin, &over, &open).await;
                }
            });
        }
        while let Some(ended) = peers.join_next().await {
            ended.context("a slow connection panicked")?;
        }
        Ok(())
    })
}

/// One slow connection, until the server ends it.
async fn drip(address: SocketAddr, begin: &[u8], over: &AtomicBool, open: &AtomicUsize) {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        tokio::time::sleep(DRIP).await;
        return;
    };
    if stream.write_all(begin).await.is_err() {
        return;
    }
    open.fetch_add(1, Ordering::SeqCst);
    let mut bytes = [0; 512];
    while !over.load(Ordering::SeqCst) && stream.write_all(b"x").await.is_ok() {
        tokio::time::sleep(DRIP).await;
        // The refusal, and then the end.
        if stream.try_read(&mut bytes).is_ok() {
            break;
        }
    }
    open.fetch_sub(1, Ordering::SeqCst);
}
