//! A proxy between the client and a server: it makes the tunnel, and sees nothing of what passes.

use crate::http::{Server, json};
use crate::provost::{Outcome, Provost, TOKEN};
use crate::tls;
use provost_client::cli::Surroundings;
use provost_kernel::Secret;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A proxy that leads everything to one server, and keeps what it is told before the tunnel.
struct Proxy {
    address: String,
    told: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn to(server: &Server, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let target = server.url.split_once("://").expect("a URL").1.to_owned();
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let kept = told.clone();
        tasks.spawn(async move {
            while let Ok((mut inner, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = inner.read_u8().await else { break };
                    head.push(byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                kept.lock().expect("no panic").push(head);
                let answered = inner
                    .write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes())
                    .await;
                if answered.is_err() || !answer.starts_with("200") {
                    continue;
                }
                if let Ok(mut outer) = TcpStream::connect(&target).await {
                    let _ = copy_bidirectional(&mut inner, &mut outer).await;
                }
            }
        });
        Self {
            address,
            told,
            _tasks: tasks,
        }
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().expect("no panic").clone()
    }
}

async fn list(proxy: &str, no_proxy: &str) -> Outcome {
    let surroundings = Surroundings {
        https_proxy: Some(Secret::new(proxy.to_owned())),
        no_proxy: Some(no_proxy.to_owned()),
        ca_cert: Some(tls::file("named.pem")),
        ..Surroundings::default()
    };
    let to = ["widgets", "list", "--organization", "acme", "--retries", "0"];
    let url = ["--url", "https://provost.invalid"];
    let provost = Provost::script().surroundings(surroundings);
    provost.runs(&[&to[..], &url].concat()).await
}

fn none() -> crate::http::Answer {
    json(200, &json!({ "widgets": [], "total": 0 }))
}

/// What passes through the proxy is encrypted for the server.
///
/// Proves CL-1.
#[tokio::test]
async fn a_server_is_reached_through_the_proxy_which_never_sees_the_token() {
    let server = Server::encrypted([none()], tls::acceptor_of("named")).await;
    let proxy = Proxy::to(&server, "200 Connection established").await;
    let outcome = list(&format!("http://ada:p%40ss@{}", proxy.address), "other.invalid").await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        server.asked()[0].header("authorization"),
        format!("Bearer {TOKEN}")
    );
    let told = proxy.told();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("CONNECT provost.invalid:443 HTTP/1.1\r\n"),
        "{told:?}"
    );
    assert!(
        told[0].contains("Proxy-Authorization: Basic YWRhOnBAc3M=\r\n"),
        "{told:?}"
    );
    assert!(!told[0].contains(TOKEN), "{told:?}");
}

#[tokio::test]
async fn what_no_proxy_names_is_reached_without_it() {
    let server = Server::playing([]).await;
    let proxy = Proxy::to(&server, "200 OK").await;
    let outcome = list(&proxy.address, ".invalid").await;
    assert_eq!((outcome.code, proxy.told().len()), (7, 0), "{outcome:?}");
    assert!(
        outcome.err.contains("no address is known for provost.invalid"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_proxy_that_lets_nobody_through_is_named() {
    let server = Server::playing([]).await;
    for (answer, says) in [
        (
            "407 Proxy Authentication Required",
            "wants a user name and a password",
        ),
        (
            "403 Forbidden",
            "does not let this machine through to provost.invalid",
        ),
    ] {
        let proxy = Proxy::to(&server, answer).await;
        let outcome = list(&format!("http://ada:secret@{}", proxy.address), "").await;
        assert_eq!(outcome.code, 7, "{outcome:?}");
        assert!(
            outcome.err.contains(says) && outcome.err.contains(&proxy.address),
            "{}",
            outcome.err
        );
        assert!(
            outcome.err.contains("PROXY") && !outcome.err.contains("secret"),
            "{}",
            outcome.err
        );
    }
    let outcome = list("http://127.0.0.1:1", "").await;
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(
        outcome
            .err
            .contains("the proxy http://127.0.0.1:1 of HTTPS_PROXY cannot be reached"),
        "{}",
        outcome.err
    );
}
