//! Request bodies: limits to the byte, time, and what follows a body that nobody read.

use super::*;

const LIMIT: usize = 256 * 1024;

fn sized(length: usize) -> String {
    format!("POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")
}

const CHUNKED: &str = "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_declared_length_is_limited_to_the_byte() {
    let running = start(EdgeSettings::default()).await;
    for length in [0, 1, LIMIT - 1, LIMIT] {
        let answer = ask(&running, sized(length) + &"x".repeat(length)).await;
        assert_eq!((answer.status, answer.body), (200, length.to_string()));
    }
    // The refusal comes before the body.
    let mut client = Raw::connect(&running).await;
    let answer = client.ask(sized(LIMIT + 1)).await;
    assert_eq!(answer.envelope(413), "the body is larger than 262144 bytes");
    assert_eq!(answer.header("connection"), Some("close"));
    client.expect_close().await;
}

#[tokio::test]
async fn a_chunked_body_is_limited_to_the_byte() {
    let running = start(EdgeSettings::default()).await;
    for (length, status) in [(0, 200), (1, 200), (LIMIT, 200), (LIMIT + 1, 413)] {
        let mut client = Raw::connect(&running).await;
        client.send(CHUNKED).await;
        for start in (0..length).step_by(10_000) {
            let size = 10_000.min(length - start);
            client.send(format!("{size:x}\r\n{}\r\n", "x".repeat(size))).await;
        }
        client.send("0\r\n\r\n").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 413 {
            answer.envelope(413);
        }
        assert_eq!(answer.header("connection"), Some("close"));
        client.expect_close().await;
    }
}

#[tokio::test]
async fn a_client_that_sends_far_too_much_still_reads_the_refusal() {
    let running = start(EdgeSettings {
        allowance: None,
        ..EdgeSettings::default()
    })
    .await;
    let length = 8 << 20;
    let mut client = Raw::connect(&running).await;
    client.send(sized(length) + &"x".repeat(length)).await;
    client.answer().await.envelope(413);
    client.expect_close().await;
}

#[tokio::test]
async fn a_refusal_saves_the_client_that_waits_for_100_continue_from_sending() {
    let running = start(EdgeSettings::default()).await;
    for (length, first) in [(LIMIT + 1, 413), (4, 100)] {
        let head = sized(length).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
        let mut client = Raw::connect(&running).await;
        assert_eq!(client.ask(head).await.status, first);
        if first == 100 {
            assert_eq!(client.ask("abcd").await.body, "4");
        }
    }
}

#[tokio::test]
async fn a_slow_body_is_refused_and_the_connection_closed() {
    let running = start(EdgeSettings {
        request_timeout: Duration::from_millis(200),
        ..EdgeSettings::default()
    })
    .await;
    for head in [sized(10), CHUNKED.to_owned() + "a\r\n"] {
        let mut client = Raw::connect(&running).await;
        let answer = client.ask(head + "abc").await;
        assert_eq!(answer.envelope(400), "the request was not complete in time");
        assert_eq!(answer.header("connection"), Some("close"));
        client.expect_close().await;
    }
}

#[tokio::test]
async fn a_broken_chunk_is_refused() {
    let running = start(EdgeSettings::default()).await;
    for chunks in [
        "x\r\n",
        "3\r\nabcd\r\n",
        "3\r\nabc0\r\n\r\n",
        "-1\r\n",
        "fffffffffffffffff\r\n",
        "3 3\r\n",
    ] {
        let mut client = Raw::connect(&running).await;
        let answer = client.ask(CHUNKED.to_owned() + chunks).await;
        assert_eq!(
            answer.envelope(400),
            "the body is broken or ended early",
            "{chunks:?}"
        );
        client.expect_close().await;
    }
}

/// Proves HT-1.
#[tokio::test]
async fn an_unread_body_never_becomes_a_request() {
    let running = start(EdgeSettings::default()).await;
    let smuggled = "GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n";
    let length = smuggled.len();
    let mut client = Raw::connect(&running).await;
    let post = format!("POST /ok HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{smuggled}");
    let answer = client.ask(post).await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    client.expect_close().await;
}

#[tokio::test]
async fn nothing_after_a_chunked_body_is_answered() {
    let running = start(EdgeSettings::default()).await;
    let mut client = Raw::connect(&running).await;
    let bytes = format!("{CHUNKED}1\r\na\r\n0\r\n\r\nGET /ok HTTP/1.1\r\nhost: a\r\n\r\n");
    let answer = client.ask(bytes).await;
    assert_eq!(
        (answer.body.as_str(), answer.header("connection")),
        ("1", Some("close"))
    );
    client.expect_close().await;
}
