//! Connections: reuse, slowness, idleness, stopping.

use super::*;

const GET: &str = "GET /ok HTTP/1.1\r\nhost: a\r\n\r\n";

fn quick() -> EdgeSettings {
    EdgeSettings {
        request_timeout: Duration::from_millis(300),
        keep_alive: Duration::from_secs(1),
        write_timeout: Duration::from_millis(300),
        ..EdgeSettings::default()
    }
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let running = start(EdgeSettings::default()).await;
    let mut client = Raw::connect(&running).await;
    for n in 0..50 {
        let body = "x".repeat(n * 100);
        let post = format!(
            "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(client.ask(post).await.body, body.len().to_string());
        assert_eq!(client.ask(GET).await.body, "ok");
    }
}

#[tokio::test]
async fn a_head_may_come_byte_by_byte() {
    let running = start(EdgeSettings::default()).await;
    let mut client = Raw::connect(&running).await;
    client.stream.set_nodelay(true).unwrap();
    for byte in GET.as_bytes() {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.answer().await.body, "ok");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_up_to_the_first_bad_one() {
    let running = start(EdgeSettings::default()).await;
    let mut client = Raw::connect(&running).await;
    let post = "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc";
    client
        .send(format!("{GET}{post}{GET}GET /ok HTTP/9\r\n\r\n{GET}"))
        .await;
    assert_eq!(client.answer().await.body, "ok");
    assert_eq!(client.answer().await.body, "3");
    assert_eq!(client.answer().await.body, "ok");
    client.answer().await.envelope(400);
    client.expect_close().await;
}

#[tokio::test]
async fn slow_heads_are_refused_and_closed_while_others_are_served() {
    let running = start(EdgeSettings {
        allowance: None,
        ..quick()
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut client = Raw::connect(&running).await;
        client.send("GET /ok HTTP/1.1\r\nhost: a\r\nx: ").await;
        slow.push(client);
    }
    assert_eq!(ask(&running, GET).await.body, "ok");
    for mut client in slow {
        assert_eq!(
            client.answer().await.envelope(400),
            "the request was not complete in time"
        );
        client.expect_close().await;
    }
}

#[tokio::test]
async fn dripping_bytes_does_not_prolong_a_head() {
    let running = start(quick()).await;
    let mut client = Raw::connect(&running).await;
    client.send("GET /ok HTTP/1.1\r\nhost: a\r\nx: ").await;
    let dripping = async {
        let (mut from, mut to) = client.stream.split();
        let drip = async {
            while to.write_all(b"y").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let mut bytes = vec![0; 4096];
        tokio::select! {
            () = drip => panic!("the connection broke without an answer"),
            count = from.read(&mut bytes) => bytes.truncate(count.unwrap()),
        }
        bytes
    };
    let bytes = tokio::time::timeout(HANG, dripping).await.unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 400 "));
}

#[tokio::test]
async fn half_a_request_that_ends_is_refused() {
    let running = start(EdgeSettings::default()).await;
    let mut client = Raw::connect(&running).await;
    client.send("GET /ok HTTP/1.1\r\nho").await;
    client.stream.shutdown().await.unwrap();
    assert_eq!(
        client.answer().await.envelope(400),
        "the request ended before it was complete"
    );
}

#[tokio::test]
async fn idle_connections_are_closed_without_a_word() {
    let running = start(quick()).await;
    let mut silent = Raw::connect(&running).await;
    let mut used = Raw::connect(&running).await;
    assert_eq!(used.ask(GET).await.body, "ok");
    silent.expect_close().await;
    used.expect_close().await;
}

#[tokio::test]
async fn a_request_that_takes_longer_than_keep_alive_is_not_idle() {
    let running = start(quick()).await;
    let mut client = Raw::connect(&running).await;
    client.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await;
    running.entered.acquire().await.unwrap().forget();
    // Longer than keep-alive: the point is that nothing happens meanwhile.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    running.go_on.add_permits(1);
    assert_eq!(client.answer().await.body, "slow");
    assert_eq!(client.ask(GET).await.body, "ok");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let running = start(quick()).await;
    let mut client = Raw::connect(&running).await;
    client.send("GET /big HTTP/1.1\r\nhost: a\r\n\r\n").await;
    // More than both socket buffers hold; the server gives up and the stream ends early.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let mut received = 0;
    let mut bytes = vec![0; 1 << 20];
    while let Ok(Ok(count @ 1..)) = tokio::time::timeout(HANG, client.stream.read(&mut bytes)).await {
        received += count;
    }
    assert!(received < 64 << 20, "{received}");
}

#[tokio::test]
async fn a_stop_finishes_what_was_begun_and_closes_what_is_idle() {
    let running = start(EdgeSettings::default()).await;
    let mut idle = Raw::connect(&running).await;
    assert_eq!(idle.ask(GET).await.body, "ok");
    let mut silent = Raw::connect(&running).await;
    let mut half = Raw::connect(&running).await;
    half.send("GET /ok HT").await;
    let mut busy = Raw::connect(&running).await;
    busy.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await;
    running.entered.acquire().await.unwrap().forget();

    running.stop.cancel();

    idle.expect_close().await;
    silent.expect_close().await;
    half.expect_close().await;
    drop(half);
    assert!(TcpStream::connect(running.address).await.is_err());
    running.go_on.add_permits(1);
    let answer = busy.answer().await;
    assert_eq!(
        (answer.body.as_str(), answer.header("connection")),
        ("slow", Some("close"))
    );
    busy.expect_close().await;
    assert!(running.supervisor.stop(HANG).await.is_empty());
}

#[tokio::test]
async fn a_stop_cuts_off_what_outlives_the_grace() {
    let running = start(EdgeSettings {
        shutdown_grace: Duration::from_millis(100),
        ..EdgeSettings::default()
    })
    .await;
    let mut busy = Raw::connect(&running).await;
    busy.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await;
    running.entered.acquire().await.unwrap().forget();
    running.stop.cancel();
    busy.expect_close().await;
    assert!(running.supervisor.stop(HANG).await.is_empty());
}

#[tokio::test]
async fn half_a_preface_is_refused_in_time() {
    let running = start(quick()).await;
    let mut client = Raw::connect(&running).await;
    client.send("PRI * HT").await;
    assert_eq!(
        client.answer().await.envelope(400),
        "the request was not complete in time"
    );
    client.expect_close().await;
}

#[tokio::test]
async fn stray_empty_lines_are_no_request() {
    let running = start(quick()).await;
    let mut client = Raw::connect(&running).await;
    assert_eq!(client.ask(format!("{GET}\r\n")).await.body, "ok");
    assert_eq!(client.ask(GET).await.body, "ok");
    client.send("\r\n\r\n").await;
    client.expect_close().await;
}

#[tokio::test]
async fn head_sends_the_length_and_no_body() {
    let running = start(EdgeSettings::default()).await;
    for target in ["/ok", "/nowhere"] {
        let full = ask(&running, format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        let length = full.body.len();
        let mut client = Raw::connect(&running).await;
        let head = format!("HEAD {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        client.send(head).await;
        while client.read().await > 0 {}
        let answer = String::from_utf8(client.buffer).unwrap();
        assert!(
            answer.contains(&format!("\r\ncontent-length: {length}\r\n")),
            "{answer}"
        );
        assert_eq!(answer.find("\r\n\r\n").unwrap() + 4, answer.len(), "{answer}");
    }
}
