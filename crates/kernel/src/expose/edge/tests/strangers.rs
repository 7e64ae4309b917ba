//! What a network may have without a valid token, and what is kept for those who have one.

use super::*;
use crate::expose::edge::Allowance;

const GET: &str = "GET /ok HTTP/1.1\r\nhost: a\r\n\r\n";
const SLOW: &str = "GET /slow HTTP/1.1\r\nhost: a\r\n\r\n";

fn known(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer one\r\n\r\n")
}

fn allowing(requests: usize, connections: usize) -> EdgeSettings {
    EdgeSettings {
        allowance: Some(Allowance {
            requests,
            connections,
        }),
        ..EdgeSettings::default()
    }
}

/// Sends a request that waits until it is let go on, on a connection of its own.
async fn slow(running: &RunningServer, bytes: &str) -> Raw {
    let mut client = Raw::connect(running).await;
    client.send(bytes).await;
    running.entered.acquire().await.unwrap().forget();
    client
}

/// Asserts that a connection was closed, cleanly or not.
async fn gone(client: &mut Raw) {
    let mut bytes = [0; 64];
    let read = tokio::time::timeout(HANG, client.stream.read(&mut bytes));
    assert!(matches!(read.await.expect("the server keeps it"), Ok(0) | Err(_)));
}

/// Proves SH-1.
#[tokio::test]
async fn the_oldest_request_of_a_full_share_makes_room() {
    let running = start(allowing(2, 64)).await;
    let mut first = slow(&running, SLOW).await;
    let mut second = slow(&running, SLOW).await;
    assert_eq!(ask(&running, GET).await.body, "ok");
    let said = first.answer().await.envelope(429);
    assert!(said.starts_with("too many requests of this network"), "{said}");
    running.go_on.add_permits(1);
    assert_eq!(second.answer().await.body, "slow");
}

/// Proves SH-1.
#[tokio::test]
async fn who_was_recognized_is_in_no_share() {
    let running = start(allowing(1, 64)).await;
    assert_eq!(ask(&running, known("/known")).await.body, "known");
    let mut one = slow(&running, &known("/slow")).await;
    let mut two = slow(&running, &known("/slow")).await;
    let mut stranger = slow(&running, SLOW).await;
    assert_eq!(ask(&running, GET).await.body, "ok");
    stranger.answer().await.envelope(429);
    running.go_on.add_permits(2);
    assert_eq!(one.answer().await.body, "slow");
    assert_eq!(two.answer().await.body, "slow");
}

/// Proves SH-1.
#[tokio::test]
async fn the_oldest_connection_of_a_full_share_makes_room_and_no_recognized_one() {
    let running = start(allowing(32, 2)).await;
    let mut recognized = Raw::connect(&running).await;
    assert_eq!(recognized.ask(known("/known")).await.body, "known");
    let mut silent = Vec::new();
    for _ in 0..5 {
        let mut client = Raw::connect(&running).await;
        // The server has it once it has answered it.
        assert_eq!(client.ask(GET).await.body, "ok");
        silent.push(client);
    }
    for client in &mut silent[..3] {
        gone(client).await;
    }
    for client in &mut silent[3..] {
        assert_eq!(client.ask(GET).await.body, "ok");
    }
    assert_eq!(recognized.ask(GET).await.body, "ok");
}

#[tokio::test]
async fn connections_that_ended_take_no_place() {
    let running = start(allowing(32, 2)).await;
    let mut first = Raw::connect(&running).await;
    assert_eq!(first.ask(GET).await.body, "ok");
    for _ in 0..5 {
        let closing = "GET /ok HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let mut other = Raw::connect(&running).await;
        assert_eq!(other.ask(closing).await.body, "ok");
        other.expect_close().await;
    }
    assert_eq!(first.ask(GET).await.body, "ok");
}

#[tokio::test]
async fn some_places_are_kept_for_callers_that_were_recognized() {
    let running = start(EdgeSettings {
        max_in_flight: 4,
        kept_for_known: 2,
        ..EdgeSettings::default()
    })
    .await;
    assert_eq!(ask(&running, known("/known")).await.body, "known");
    let _first = slow(&running, SLOW).await;
    let _second = slow(&running, SLOW).await;
    let busy = "the server is busy; try again";
    assert_eq!(ask(&running, GET).await.envelope(503), busy);
    let other = known("/ok").replace("one", "another");
    assert_eq!(ask(&running, other).await.envelope(503), busy);
    assert_eq!(ask(&running, known("/ok")).await.body, "ok");
    let _third = slow(&running, &known("/slow")).await;
    let _fourth = slow(&running, &known("/slow")).await;
    assert_eq!(ask(&running, known("/ok")).await.envelope(503), busy);
    running.go_on.add_permits(4);
}

/// Proves RY-1.
#[tokio::test]
async fn what_is_not_counted_is_answered_by_a_full_server() {
    let running = start(EdgeSettings {
        max_in_flight: 1,
        uncounted: &["/ok"],
        ..EdgeSettings::default()
    })
    .await;
    let _first = slow(&running, SLOW).await;
    ask(&running, SLOW).await.envelope(503);
    assert_eq!(ask(&running, GET).await.body, "ok");
    running.go_on.add_permits(1);
}

#[tokio::test]
async fn what_is_apart_takes_nobody_elses_place() {
    let running = start(EdgeSettings {
        apart: &["/slow"],
        max_apart: 3,
        ..allowing(2, 64)
    })
    .await;
    let mut first = slow(&running, SLOW).await;
    let mut second = slow(&running, SLOW).await;
    // Not even the place of the oldest: its share is another one.
    for _ in 0..3 {
        assert_eq!(ask(&running, GET).await.body, "ok");
    }
    let mut third = slow(&running, SLOW).await;
    first.answer().await.envelope(429);
    running.go_on.add_permits(2);
    assert_eq!(second.answer().await.body, "slow");
    assert_eq!(third.answer().await.body, "slow");
}

#[tokio::test]
async fn behind_a_proxy_the_forwarded_address_has_the_share() {
    let running = start(EdgeSettings {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..allowing(1, 1)
    })
    .await;
    let from = |path: &str, address: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {address}\r\n\r\n")
    };
    let mut first = slow(&running, &from("/slow", "203.0.113.7")).await;
    let mut other = slow(&running, &from("/slow", "203.0.113.8")).await;
    let mut own = slow(&running, SLOW).await;
    assert_eq!(ask(&running, from("/ok", "203.0.113.7")).await.body, "ok");
    first.answer().await.envelope(429);
    assert_eq!(ask(&running, GET).await.body, "ok");
    running.go_on.add_permits(2);
    assert_eq!(other.answer().await.body, "slow");
    assert_eq!(own.answer().await.body, "slow");
}

#[tokio::test]
async fn of_what_a_stranger_sends_after_a_refusal_little_is_read() {
    let running = start(EdgeSettings::default()).await;
    let length = 256 << 20;
    let mut client = Raw::connect(&running).await;
    let head = format!("POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    client.send(head).await;
    let (piece, mut sent) = (vec![b'x'; 1 << 16], 0);
    let write = async {
        while sent < length && client.stream.write_all(&piece).await.is_ok() {
            sent += piece.len();
        }
    };
    tokio::time::timeout(HANG, write).await.expect("the server hangs");
    // What lies in the buffers of both sockets is never read.
    assert!(sent < 64 << 20, "{sent}");
    // A little is read, so that the answer arrives.
    let mut client = Raw::connect(&running).await;
    let length = 300_000;
    let head = format!("POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    client.send(head + &"x".repeat(60_000)).await;
    client.answer().await.envelope(413);
}
