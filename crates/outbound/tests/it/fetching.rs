//! The guarded fetch against real servers on this machine: TLS, redirects, slow, large and wrong answers, mixed
//! addresses.

use provost_outbound::{FetchRefusal, Fetcher, Limits, Network, Options, Resolve};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kernel/tests/tls")
        .join(name)
}

fn acceptor() -> TlsAcceptor {
    let cert = CertificateDer::from_pem_file(file("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A server that answers every connection with the same bytes.
struct Server {
    port: u16,
    connections: Arc<AtomicU32>,
    heads: Arc<std::sync::Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
enum Answer {
    Bytes(String),
    /// The bytes, and then nothing, without an end.
    Never(String),
    /// The bytes before anything was asked.
    Greeting(&'static str),
    /// A body that goes on for ever.
    Endless,
}

impl Server {
    async fn start(answer: Answer, tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, heads) = (Arc::new(AtomicU32::new(0)), Arc::default());
        let mut tasks = JoinSet::new();
        let (count, seen) = (Arc::clone(&connections), Arc::clone(&heads));
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (answer, seen) = (answer.clone(), Arc::clone(&seen));
                open.spawn(async move {
                    if !tls {
                        return serve(stream, answer, &seen).await;
                    }
                    if let Ok(stream) = acceptor().accept(stream).await {
                        serve(stream, answer, &seen).await;
                    }
                });
            }
        });
        Self {
            port,
            connections,
            heads,
            _tasks: tasks,
        }
    }

    async fn says(head: &str, body: &str) -> Self {
        let text = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        Self::start(Answer::Bytes(text), true).await
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/id.json", self.port)
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve<S>(mut stream: S, answer: Answer, seen: &std::sync::Mutex<Vec<String>>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    if let Answer::Greeting(text) = answer {
        let _ = stream.write_all(text.as_bytes()).await;
        return;
    }
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&bytes[..count]),
        }
    }
    seen.lock().unwrap().push(String::from_utf8(head).unwrap());
    match answer {
        Answer::Bytes(text) => drop(stream.write_all(text.as_bytes()).await),
        Answer::Never(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.flush().await;
            pending::<()>().await;
        }
        Answer::Greeting(_) => {}
        Answer::Endless => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
                .await;
            while stream.write_all(&[b' '; 1024]).await.is_ok() {}
        }
    }
    let _ = stream.shutdown().await;
}

/// A resolver that gives the same addresses for every name, and counts how often it is asked.
struct FixedResolver(Vec<IpAddr>, Arc<AtomicU32>);

impl Resolve for FixedResolver {
    fn resolve<'a>(
        &'a self,
        _: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(self.0.clone()) })
    }
}

fn fetcher_for(addresses: &[&str], options: Options) -> (Fetcher, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let resolver = Box::new(FixedResolver(addresses, Arc::clone(&asked)));
    (Fetcher::with_resolver(options, resolver).unwrap(), asked)
}

fn trusting() -> Options {
    Options {
        allow: vec![Network::parse("127.0.0.1/32").unwrap()],
        extra_roots: vec![CertificateDer::from_pem_file(file("localhost.pem")).unwrap()],
        plain_loopback: false,
    }
}

fn fetcher() -> Fetcher {
    fetcher_for(&["127.0.0.1"], trusting()).0
}

const LIMITS: Limits = Limits {
    max_bytes: 1024,
    timeout: Duration::from_secs(30),
};

#[tokio::test]
async fn json_of_an_allowed_server_is_fetched_without_credentials() {
    for media_type in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/jwk-set+json",
    ] {
        let server = Server::says(
            &format!("200 OK\r\ncontent-type: {media_type}\r\nset-cookie: a=b"),
            "{\"a\":1}",
        )
        .await;
        assert_eq!(
            fetcher().get(&server.url(), LIMITS).await.unwrap(),
            "{\"a\":1}",
            "{media_type}"
        );
        let head = server.heads.lock().unwrap()[0].to_ascii_lowercase();
        assert!(head.starts_with("get /id.json http/1.1\r\n"), "{head}");
        assert!(
            head.contains(&format!("host: localhost:{}\r\n", server.port)),
            "{head}"
        );
        assert!(
            !head.contains("cookie") && !head.contains("authorization") && !head.contains("referer"),
            "{head}"
        );
    }
}

/// Proves OA-6.
#[tokio::test]
async fn a_name_is_resolved_once_and_a_second_fetch_is_a_second_connection() {
    let server = Server::start(Answer::Bytes(OK.into()), true).await;
    let (fetcher, asked) = fetcher_for(&["127.0.0.1"], trusting());
    for count in 1..=2 {
        fetcher.get(&server.url(), LIMITS).await.unwrap();
        assert_eq!(
            (asked.load(Ordering::SeqCst), server.connections()),
            (count, count)
        );
    }
}

/// Proves OA-6.
#[tokio::test]
async fn nothing_is_connected_when_any_address_is_not_public() {
    let server = Server::start(Answer::Bytes(OK.into()), true).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["127.0.0.1", "93.184.216.34"],
        &["2606:4700::1111", "::1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["0.0.0.0"],
        &["64:ff9b::7f00:1"],
    ] {
        let (fetcher, _) = fetcher_for(
            addresses,
            Options {
                allow: Vec::new(),
                ..trusting()
            },
        );
        assert_eq!(
            fetcher.get(&server.url(), LIMITS).await,
            Err(FetchRefusal::NotPublic),
            "{addresses:?}"
        );
    }
    // An allowed network allows its own addresses alone.
    let (fetcher, _) = fetcher_for(&["127.0.0.1", "127.0.0.2"], trusting());
    assert_eq!(
        fetcher.get(&server.url(), LIMITS).await,
        Err(FetchRefusal::NotPublic)
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn addresses_in_the_url_are_judged_like_resolved_ones() {
    let server = Server::start(Answer::Bytes(OK.into()), true).await;
    let (fetcher, asked) = fetcher_for(
        &[],
        Options {
            allow: Vec::new(),
            ..trusting()
        },
    );
    for host in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "169.254.169.254",
        "[fd00:ec2::254]",
    ] {
        let url = format!("https://{host}:{}/", server.port);
        assert_eq!(
            fetcher.get(&url, LIMITS).await,
            Err(FetchRefusal::NotPublic),
            "{host}"
        );
    }
    for host in [
        "2130706433",
        "0x7f.1",
        "127.1",
        "017700000001",
        "localhost@127.0.0.1",
        "127.0.0.1%00",
    ] {
        let url = format!("https://{host}:{}/", server.port);
        assert!(
            matches!(fetcher.get(&url, LIMITS).await, Err(FetchRefusal::Url(_))),
            "{host}"
        );
    }
    assert_eq!((asked.load(Ordering::SeqCst), server.connections()), (0, 0));
    assert!(
        self::fetcher()
            .get(&format!("https://127.0.0.1:{}/", server.port), LIMITS)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_name_without_addresses_is_refused() {
    let (fetcher, _) = fetcher_for(&[], trusting());
    assert_eq!(
        fetcher.get("https://nobody.example/", LIMITS).await,
        Err(FetchRefusal::Unresolved)
    );
}

#[tokio::test]
async fn the_certificate_must_be_trusted_and_for_the_name() {
    let server = Server::start(Answer::Bytes(OK.into()), true).await;
    let other = format!("https://other.example:{}/", server.port);
    assert_eq!(
        fetcher().get(&other, LIMITS).await,
        Err(FetchRefusal::Tls),
        "another name"
    );
    let (stranger, _) = fetcher_for(
        &["127.0.0.1"],
        Options {
            extra_roots: Vec::new(),
            ..trusting()
        },
    );
    assert_eq!(
        stranger.get(&server.url(), LIMITS).await,
        Err(FetchRefusal::Tls),
        "not trusted"
    );
    let plain = Server::start(Answer::Greeting("220 mail.example\r\n"), false).await;
    assert_eq!(
        fetcher().get(&plain.url(), LIMITS).await,
        Err(FetchRefusal::Tls),
        "no TLS"
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::start(Answer::Bytes(OK.into()), true).await;
    for status in [301, 302, 303, 307, 308] {
        let head = format!(
            "{status} Moved\r\nlocation: {}\r\ncontent-type: application/json",
            target.url()
        );
        let server = Server::says(&head, "{}").await;
        assert_eq!(
            fetcher().get(&server.url(), LIMITS).await,
            Err(FetchRefusal::Redirect),
            "{status}"
        );
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn another_status_and_another_type_are_refused() {
    for status in [201, 204, 206, 400, 401, 404, 500] {
        let server = Server::says(&format!("{status} X\r\ncontent-type: application/json"), "").await;
        assert_eq!(
            fetcher().get(&server.url(), LIMITS).await,
            Err(FetchRefusal::Status(status))
        );
    }
    for headers in [
        "content-type: text/html",
        "content-type: text/json",
        "content-type: application/+json",
        "content-type: application/jsonp",
        "content-type: image/svg+xml",
        "content-type: x-application/json",
        "x: y",
        "content-type: application/json\r\ncontent-type: text/html",
        "content-type: application/json\r\ncontent-encoding: gzip",
    ] {
        let server = Server::says(&format!("200 OK\r\n{headers}"), "{}").await;
        assert_eq!(
            fetcher().get(&server.url(), LIMITS).await,
            Err(FetchRefusal::ContentType),
            "{headers}"
        );
    }
}

#[tokio::test]
async fn a_large_answer_is_refused_at_the_limit() {
    let json = "200 OK\r\ncontent-type: application/json";
    let exact = Server::says(json, &" ".repeat(1024)).await;
    assert_eq!(fetcher().get(&exact.url(), LIMITS).await.unwrap().len(), 1024);
    let larger = Server::says(json, &" ".repeat(1025)).await;
    assert_eq!(
        fetcher().get(&larger.url(), LIMITS).await,
        Err(FetchRefusal::TooLarge)
    );
    let endless = Server::start(Answer::Endless, true).await;
    assert_eq!(
        fetcher().get(&endless.url(), LIMITS).await,
        Err(FetchRefusal::TooLarge)
    );
}

#[tokio::test]
async fn a_long_head_and_a_cut_answer_are_refused() {
    let head = format!(
        "200 OK\r\ncontent-type: application/json\r\nx: {}",
        "a".repeat(64 * 1024)
    );
    let server = Server::says(&head, "{}").await;
    assert_eq!(
        fetcher().get(&server.url(), LIMITS).await,
        Err(FetchRefusal::Broken)
    );
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{";
    let server = Server::start(Answer::Bytes(cut.into()), true).await;
    assert_eq!(
        fetcher().get(&server.url(), LIMITS).await,
        Err(FetchRefusal::Broken)
    );
    let server = Server::start(Answer::Bytes("SSH-2.0-OpenSSH_9.9\r\n".into()), true).await;
    assert_eq!(
        fetcher().get(&server.url(), LIMITS).await,
        Err(FetchRefusal::Broken)
    );
}

/// The time limit is what is tested: it passes while the server waits without an end.
#[tokio::test]
async fn an_answer_that_does_not_end_in_time_is_refused() {
    let limits = Limits {
        timeout: Duration::from_millis(400),
        ..LIMITS
    };
    for begun in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{",
    ] {
        let server = Server::start(Answer::Never(begun.into()), true).await;
        assert_eq!(
            fetcher().get(&server.url(), limits).await,
            Err(FetchRefusal::TooSlow),
            "{begun:?}"
        );
    }
}

#[tokio::test]
async fn plain_http_is_for_allowed_loopback_alone_and_only_when_it_is_switched_on() {
    let server = Server::start(Answer::Bytes(OK.into()), false).await;
    let url = format!("http://127.0.0.1:{}/keys", server.port);
    assert!(
        matches!(fetcher().get(&url, LIMITS).await, Err(FetchRefusal::Url(_))),
        "switched off"
    );
    let plain = |allow: &str| {
        let allow = vec![Network::parse(allow).unwrap()];
        fetcher_for(
            &["10.0.0.1"],
            Options {
                allow,
                extra_roots: Vec::new(),
                plain_loopback: true,
            },
        )
        .0
    };
    assert_eq!(
        plain("127.0.0.2/32").get(&url, LIMITS).await,
        Err(FetchRefusal::NotPublic),
        "not allowed"
    );
    assert_eq!(
        plain("10.0.0.0/8").get("http://inner.example/", LIMITS).await,
        Err(FetchRefusal::NotPublic),
        "not loopback"
    );
    assert_eq!(
        plain("10.0.0.0/8").get("http://93.184.216.34/", LIMITS).await,
        Err(FetchRefusal::NotPublic),
        "public"
    );
    assert_eq!(server.connections(), 0);
    assert_eq!(plain("127.0.0.1").get(&url, LIMITS).await.unwrap(), "{}");
}

#[tokio::test]
async fn a_form_is_sent_with_its_authorization() {
    let server = Server::start(Answer::Bytes(OK.into()), true).await;
    let form = bytes::Bytes::from_static(b"token=a");
    let authorization = Some(http::HeaderValue::from_static("Basic abc"));
    let answer = fetcher()
        .post_form(&server.url(), form, authorization, LIMITS)
        .await;
    assert_eq!(answer.unwrap(), "{}");
    let head = server.heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(
        head.starts_with("post /id.json http/1.1\r\n") && head.contains("authorization: basic abc\r\n"),
        "{head}"
    );
    assert!(
        head.contains("content-type: application/x-www-form-urlencoded\r\n"),
        "{head}"
    );
}
