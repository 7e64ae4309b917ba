//! HTTP/2: the same limits and answers.

use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};

type Sender = SendRequest<Full<Bytes>>;

async fn connect(running: &RunningServer) -> Sender {
    let stream = TcpStream::connect(running.address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    running
        .supervisor
        .spawn("client", async move { drop(connection.await) });
    sender
}

fn get(target: &str) -> http::request::Builder {
    Request::get(format!("http://a{target}"))
}

async fn send(sender: &mut Sender, request: Request<Full<Bytes>>) -> Answer {
    let response = tokio::time::timeout(HANG, sender.send_request(request)).await;
    let (parts, body) = response.expect("the server hangs").unwrap().into_parts();
    let line = |(name, value): (&_, &http::HeaderValue)| format!("\r\n{name}: {}", value.to_str().unwrap());
    let lines: Vec<String> = parts.headers.iter().map(line).collect();
    Answer {
        status: parts.status.as_u16(),
        head: lines.concat(),
        body: String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap(),
    }
}

#[tokio::test]
async fn prior_knowledge_is_enough() {
    let running = start(EdgeSettings::default()).await;
    let mut sender = connect(&running).await;
    let answer = send(&mut sender, get("/ok").body(Full::default()).unwrap()).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("connection").is_none());
    send(&mut sender, get("/nowhere").body(Full::default()).unwrap())
        .await
        .envelope(404);
}

#[tokio::test]
async fn limits_are_those_of_http_1() {
    let running = start(EdgeSettings::default()).await;
    let mut sender = connect(&running).await;
    for (size, status) in [(16_384, 200), (16_385, 431), (40_000, 431)] {
        let request = get("/ok").header("x", "v".repeat(size - "x".len() - 4));
        let answer = send(&mut sender, request.body(Full::default()).unwrap()).await;
        assert_eq!(answer.status, status, "{size}");
        if status != 200 {
            answer.envelope(status);
        }
    }
    for (size, status) in [(8_192, 200), (8_193, 414)] {
        let request = get(&format!("/ok?{}", "q".repeat(size - "/ok?".len())));
        let answer = send(&mut sender, request.body(Full::default()).unwrap()).await;
        assert_eq!(answer.status, status, "{size}");
    }
    for (size, status) in [(256 * 1024, 200), (256 * 1024 + 1, 413)] {
        let request = Request::post("http://a/count").body(Full::from(vec![b'x'; size]));
        let answer = send(&mut sender, request.unwrap()).await;
        assert_eq!(answer.status, status, "{size}");
    }
    // None of it has cost the connection.
    assert_eq!(
        send(&mut sender, get("/ok").body(Full::default()).unwrap())
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_stop_finishes_the_streams_that_were_begun() {
    let running = start(EdgeSettings::default()).await;
    let mut idle = connect(&running).await;
    assert_eq!(
        send(&mut idle, get("/ok").body(Full::default()).unwrap())
            .await
            .status,
        200
    );
    let mut busy = connect(&running).await;
    let steer = async {
        running.entered.acquire().await.unwrap().forget();
        running.stop.cancel();
        while !idle.is_closed() {
            tokio::task::yield_now().await;
        }
        running.go_on.add_permits(1);
    };
    let slow = send(&mut busy, get("/slow").body(Full::default()).unwrap());
    let (answer, ()) = tokio::time::timeout(HANG, async { tokio::join!(slow, steer) })
        .await
        .unwrap();
    assert_eq!(answer.body, "slow");
    assert!(running.supervisor.stop(HANG).await.is_empty());
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let running = start(EdgeSettings {
        keep_alive: Duration::from_millis(200),
        ..EdgeSettings::default()
    })
    .await;
    let mut sender = connect(&running).await;
    assert_eq!(
        send(&mut sender, get("/ok").body(Full::default()).unwrap())
            .await
            .status,
        200
    );
    let closed = async {
        while !sender.is_closed() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, closed).await.unwrap();
}

/// A frame of RFC 9113 §4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[tokio::test]
async fn rapid_resets_cost_the_attacker_its_connection_and_nobody_else() {
    const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 0xb];
    let running = start(EdgeSettings::default()).await;
    let mut attack = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    attack.extend(frame(4, 0, 0, &[]));
    for stream in (1..20_000).step_by(2) {
        // GET http://a/, then CANCEL.
        attack.extend(frame(1, 0x5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'a']));
        attack.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    let mut attacker = TcpStream::connect(running.address).await.unwrap();
    let (mut from, mut to) = attacker.split();
    let mut said = Vec::new();
    // The server may close while the attacker is still sending.
    let both = async { tokio::join!(to.write_all(&attack), from.read_to_end(&mut said)) };
    let _ = tokio::time::timeout(HANG, both)
        .await
        .expect("the attacker is kept");
    assert!(
        said.windows(4).any(|bytes| bytes == ENHANCE_YOUR_CALM),
        "{said:?}"
    );

    let mut other = connect(&running).await;
    let answer = send(&mut other, get("/ok").body(Full::default()).unwrap()).await;
    assert_eq!(answer.body, "ok");
}
