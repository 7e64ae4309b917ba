//! Request heads: limits to the byte, and everything that two parsers could read differently.

use super::*;
use crate::entropy::UnitRng;

/// A head whose fields count exactly `size` bytes in the measure of D1.10.
fn head_of(size: usize) -> String {
    let counted = "host".len() + "a".len() + 4 + "x".len() + 4;
    format!(
        "GET /ok HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
        "v".repeat(size - counted)
    )
}

fn target_of(size: usize) -> String {
    format!(
        "GET /ok?{} HTTP/1.1\r\nhost: a\r\n\r\n",
        "q".repeat(size - "/ok?".len())
    )
}

#[tokio::test]
async fn headers_are_limited_to_the_byte() {
    let running = start(EdgeSettings::default()).await;
    for (size, status) in [
        (16_383, 200),
        (16_384, 200),
        (16_385, 431),
        (20_000, 431),
        (200_000, 431),
    ] {
        let mut client = Raw::connect(&running).await;
        let answer = client.ask(head_of(size)).await;
        assert_eq!(answer.status, status, "{size}");
        if status == 431 {
            assert!(answer.envelope(431).starts_with("the headers are "));
            assert_eq!(answer.header("connection"), Some("close"));
            client.expect_close().await;
        }
    }
}

#[tokio::test]
async fn targets_are_limited_to_the_byte() {
    let running = start(EdgeSettings::default()).await;
    for (size, status) in [(8_191, 200), (8_192, 200), (8_193, 414), (70_000, 414)] {
        let mut client = Raw::connect(&running).await;
        let answer = client.ask(target_of(size)).await;
        assert_eq!(answer.status, status, "{size}");
        if status == 414 {
            assert_eq!(
                answer.envelope(414),
                "the request target is longer than 8192 bytes"
            );
            assert_eq!(answer.header("connection"), Some("close"));
            client.expect_close().await;
        }
    }
}

#[tokio::test]
async fn header_fields_are_counted() {
    let running = start(EdgeSettings::default()).await;
    for (fields, status) in [(100, 200), (101, 431)] {
        let more = "x: 1\r\n".repeat(fields - 1);
        let answer = ask(&running, format!("GET /ok HTTP/1.1\r\nhost: a\r\n{more}\r\n")).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn ambiguous_and_malformed_heads_are_refused_with_an_envelope() {
    let running = start(EdgeSettings::default()).await;
    let heads = [
        // The request line.
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET /ok\r\n\r\n",
        "GET /ok HTTP/1.1 \r\nhost: a\r\n\r\n",
        "GET  /ok HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET\t/ok\tHTTP/1.1\r\nhost: a\r\n\r\n",
        " GET /ok HTTP/1.1\r\nhost: a\r\n\r\n",
        "G{T /ok HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET ok HTTP/1.1 x\r\nhost: a\r\n\r\n",
        "GET http://[ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /ok HTTP/2.0\r\nhost: a\r\n\r\n",
        "GET /ok HTTP/1.2\r\nhost: a\r\n\r\n",
        "GET /ok http/1.1\r\nhost: a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
        // Host.
        "GET /ok HTTP/1.1\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\nHost: b\r\n\r\n",
        // Line ends.
        "GET /ok HTTP/1.1\nhost: a\n\n",
        "GET /ok HTTP/1.1\r\nhost: a\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\n\n",
        "GET /ok HTTP/1.1\r\nhost: a\rx: b\r\n\r\n",
        "GET /ok HTTP/1.1\r\r\nhost: a\r\n\r\n",
        "\nGET /ok HTTP/1.1\r\nhost: a\r\n\r\n",
        // Header lines.
        "GET /ok HTTP/1.1\r\nhost: a\r\nx: 1\r\n 2\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\nx: 1\r\n\t2\r\n\r\n",
        "GET /ok HTTP/1.1\r\n host: a\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost : a\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\n: b\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\nx\u{e9}: b\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\nx: b\0c\r\n\r\n",
        "GET /ok HTTP/1.1\r\nhost: a\r\nx: b\x7fc\r\n\r\n",
        // The length of the body.
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 1, 1\r\n\r\na",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n\r\na",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\na",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 0x1\r\n\r\na",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length:\r\n\r\na",
        "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: x\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n\r\n",
        "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        "POST /count HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    for head in heads {
        let mut client = Raw::connect(&running).await;
        // What follows a refused head must never be answered.
        client
            .send(format!("{head}GET /ok HTTP/1.1\r\nhost: a\r\n\r\n"))
            .await;
        let answer = client.answer().await;
        let message = answer.envelope(400);
        assert!(
            message.starts_with("the request is not valid HTTP: "),
            "{head:?}: {message}"
        );
        assert_eq!(answer.header("connection"), Some("close"), "{head:?}");
        client.expect_close().await;
    }
    let endless = "POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\n";
    ask(&running, endless).await.envelope(413);
}

#[tokio::test]
async fn unusual_but_clear_heads_are_served() {
    let running = start(EdgeSettings::default()).await;
    let heads = [
        ("\r\n\r\nGET /ok HTTP/1.1\r\nhost: a\r\n\r\n", 200),
        ("GET /ok HTTP/1.0\r\n\r\n", 200),
        ("GET http://a/ok HTTP/1.1\r\nHOST:a\r\n\r\n", 200),
        (
            "GET /ok HTTP/1.1\r\nhost: a\r\nx:\r\ny: \t b \t \r\nz: caf\u{e9}\r\n\r\n",
            200,
        ),
        (
            "POST /count HTTP/1.1\r\nhost: a\r\nContent-Length:  002 \r\n\r\nab",
            200,
        ),
        (
            "POST /count HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            200,
        ),
        ("BREW /ok HTTP/1.1\r\nhost: a\r\n\r\n", 405),
        ("BREW /nowhere HTTP/1.1\r\nhost: a\r\n\r\n", 404),
        ("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", 404),
        ("CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n", 404),
        (
            "GET /ok HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            200,
        ),
    ];
    for (head, status) in heads {
        let answer = ask(&running, head).await;
        assert_eq!(answer.status, status, "{head:?} {answer:?}");
        if status >= 400 {
            answer.envelope(status);
        }
    }
}

/// Draws numbers below a bound from a printed seed.
fn dice(seed: u8) -> impl FnMut(usize) -> usize {
    println!("seed {seed}");
    let mut rng = UnitRng::new([seed; 32]);
    move |below| {
        let mut bytes = [0; 4];
        rng.fill(&mut bytes);
        u32::from_le_bytes(bytes) as usize % below
    }
}

fn mutated(draw: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let seeds: [&[u8]; 3] = [
        b"GET /ok?a=b HTTP/1.1\r\nhost: a\r\naccept: */*\r\n\r\n",
        b"POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc",
        b"POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ];
    let mut bytes = seeds[draw(seeds.len())].to_vec();
    for _ in 0..=draw(3) {
        let at = draw(bytes.len());
        match draw(4) {
            0 => bytes[at] = u8::try_from(draw(256)).unwrap(),
            1 => bytes.insert(at, b"\r\n\t :,\0\x7f\xff\"<>\\^`{|}#%;"[draw(21)]),
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, bytes[draw(bytes.len())]),
        }
    }
    bytes
}

#[tokio::test]
async fn no_mutation_of_a_head_gets_a_bare_answer() {
    let mut draw = dice(11);
    let settings = EdgeSettings {
        request_timeout: Duration::from_millis(100),
        ..EdgeSettings::default()
    };
    let running = Arc::new(start(settings).await);
    for _ in 0..20 {
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let bytes = mutated(&mut draw);
            let running = Arc::clone(&running);
            clients.spawn(async move {
                // What is only incomplete is answered when the time is over.
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                let mut client = Raw::connect(&running).await;
                client.send(&bytes).await;
                let answer = client.try_answer().await;
                let answer = answer.unwrap_or_else(|| panic!("no answer to {shown:?}"));
                assert!(answer.header("x-request-id").is_some(), "{shown:?} {answer:?}");
                assert!(answer.status < 500, "{shown:?} {answer:?}");
                if answer.status >= 400 {
                    answer.envelope(answer.status);
                }
            });
        }
        while let Some(outcome) = clients.join_next().await {
            outcome.unwrap();
        }
    }
}

/// Proves HT-1.
#[tokio::test]
async fn any_pipeline_in_any_pieces_is_answered_exactly() {
    let mut draw = dice(12);
    let running = start(EdgeSettings::default()).await;
    for _ in 0..300 {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..=draw(6) {
            // Bodies look like requests.
            let body = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n".repeat(draw(3));
            if draw(2) == 0 {
                bytes.extend(b"GET /ok HTTP/1.1\r\nhost: a\r\n\r\n");
                expected.push("ok".to_owned());
            } else {
                let length = body.len();
                let head = format!("POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
                bytes.extend((head + &body).bytes());
                expected.push(length.to_string());
            }
        }
        if draw(2) == 0 {
            let chunks =
                "23\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n\r\n0\r\n\r\nGET /after HTTP/1.1\r\n\r\n";
            bytes.extend(
                format!("POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunks}")
                    .bytes(),
            );
            expected.push("35".to_owned());
        } else {
            bytes.extend(
                b"GET /ok HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\nGET /after HTTP/1.1\r\n\r\n",
            );
            expected.push("ok".to_owned());
        }
        let mut client = Raw::connect(&running).await;
        client.stream.set_nodelay(true).unwrap();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, left) = rest.split_at((1 + draw(120)).min(rest.len()));
            // The server may have closed after the last answer.
            if client.stream.write_all(piece).await.is_err() {
                break;
            }
            rest = left;
            tokio::task::yield_now().await;
        }
        for body in expected {
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.body), (200, body));
        }
        client.expect_close().await;
    }
}
