//! TLS with a certificate of our own; it is valid for 100 years.

use super::*;
use crate::{Error, Timestamp};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A copy with chosen permissions, which a checkout does not keep.
struct File(PathBuf);

impl File {
    fn copy(name: &str, mode: u32) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let to = std::env::temp_dir().join(format!("provost-tls-{}-{number}-{name}", std::process::id()));
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name);
        std::fs::copy(from, &to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode)).unwrap();
        Self(to)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn files(cert: &File, key: &File) -> Tls {
    Tls::Files {
        cert: cert.0.clone(),
        key: key.0.clone(),
    }
}

async fn start_tls(settings: EdgeSettings) -> RunningServer {
    let (cert, key) = (
        File::copy("localhost.pem", 0o644),
        File::copy("localhost.key", 0o600),
    );
    let running = start_with(settings, files(&cert, &key)).await;
    // The files are read before the first connection is accepted, and then no more.
    drop(shake(&running, &[]).await);
    running
}

async fn shake(running: &RunningServer, alpn: &[&[u8]]) -> TlsStream<TcpStream> {
    shaken(running, "localhost.pem", alpn).await.unwrap()
}

/// Connects with trust in one certificate alone.
async fn shaken(
    running: &RunningServer,
    trusted: &str,
    alpn: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(trusted);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(path).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(running.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Proves TC-1.
#[tokio::test]
async fn what_is_read_anew_is_used_from_the_next_connection_on_and_what_is_unusable_is_not() {
    let (cert, key) = (
        File::copy("localhost.pem", 0o644),
        File::copy("localhost.key", 0o600),
    );
    let certificates = files(&cert, &key).certificates().unwrap().unwrap();
    let running = start_with(EdgeSettings::default(), Tls::Read(certificates.clone())).await;
    let put = |file: &File, name: &str| {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name);
        std::fs::write(&file.0, std::fs::read(from).unwrap()).unwrap();
    };
    let now = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
    let first_end = certificates.expires_at().unwrap();
    assert_eq!(first_end.to_rfc3339(), "2126-10-27T05:59:32.000Z");
    drop(shake(&running, &[]).await);
    // The key of another certificate, none, one that has expired: the old ones stay.
    put(&cert, "other.pem");
    let error = certificates.read_anew(now).unwrap_err();
    assert_eq!(
        error.message(),
        "the TLS key does not belong to the TLS certificate"
    );
    std::fs::write(&key.0, "").unwrap();
    let error = certificates.read_anew(now).unwrap_err();
    assert_eq!(error.message(), "the TLS key file contains no PEM private key");
    put(&key, "other.key");
    put(&cert, "expired.pem");
    let error = certificates.read_anew(now).unwrap_err();
    assert_eq!(error.message(), "the new TLS certificate has expired");
    drop(shake(&running, &[]).await);
    assert_eq!(certificates.expires_at(), Some(first_end));
    assert!(shaken(&running, "other.pem", &[]).await.is_err());
    // Both at once: the next connection has them, an open one goes on.
    let open = shake(&running, &[b"http/1.1"]).await;
    put(&cert, "other.pem");
    certificates.read_anew(now).unwrap();
    drop(shaken(&running, "other.pem", &[]).await.unwrap());
    assert!(shaken(&running, "localhost.pem", &[]).await.is_err());
    let mut client = Raw {
        stream: open,
        buffer: Vec::new(),
    };
    let answer = client.ask("GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(answer.status, 200);
    // Where the old one has expired as well, the newer one is no worse.
    put(&cert, "expired.pem");
    let late = Timestamp::parse("2127-01-01T00:00:00Z").unwrap();
    certificates.read_anew(late).unwrap();
    assert_eq!(
        certificates.expires_at().unwrap().to_rfc3339(),
        "2021-01-01T00:00:00.000Z"
    );
}

#[tokio::test]
async fn https_is_served_and_says_so() {
    let running = start_tls(EdgeSettings {
        tls_is_ours: true,
        ..EdgeSettings::default()
    })
    .await;
    let stream = shake(&running, &[b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut client = Raw {
        stream,
        buffer: Vec::new(),
    };
    let answer = client.ask("GET /ok HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    assert_eq!(
        answer.header("strict-transport-security"),
        Some("max-age=31536000")
    );
    client.ask("GET /ok\r\n\r\n").await.envelope(400);
    client.expect_close().await;
}

#[tokio::test]
async fn http_2_is_preferred() {
    let running = start_tls(EdgeSettings::default()).await;
    let stream = shake(&running, &[b"http/1.1", b"h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn a_stalled_handshake_is_closed_and_stalls_nobody() {
    let running = start_tls(EdgeSettings {
        request_timeout: Duration::from_millis(500),
        ..EdgeSettings::default()
    })
    .await;
    let mut stalled = Raw::connect(&running).await;
    stalled.send(b"\x16\x03\x01").await;
    drop(shake(&running, &[]).await);
    stalled.expect_close().await;
}

async fn refusal(cert: &File, key: &File) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (tls, stop) = (files(cert, key), CancellationToken::new());
    let served = serve(listener, Router::new(), &EdgeSettings::default(), tls, stop).await;
    served.unwrap_err()
}

#[tokio::test]
async fn unusable_files_are_named() {
    let cert = File::copy("localhost.pem", 0o644);
    let key = File::copy("localhost.key", 0o600);
    let absent = File(PathBuf::from("/nonexistent/file"));

    let error = refusal(&cert, &File::copy("other.key", 0o600)).await;
    assert_eq!(
        error.message(),
        "the TLS key does not belong to the TLS certificate"
    );
    let error = refusal(&cert, &File::copy("localhost.key", 0o644)).await;
    assert!(
        error
            .message()
            .starts_with("the TLS key file is open to everybody"),
        "{error}"
    );
    let error = refusal(&cert, &absent).await;
    assert_eq!(error.message(), "the TLS key file cannot be read");
    assert!(error.private().unwrap().contains("/nonexistent/file"));
    let error = refusal(&absent, &key).await;
    assert_eq!(error.message(), "the TLS certificate file cannot be read");
    let error = refusal(&key, &key).await;
    assert_eq!(
        error.message(),
        "the TLS certificate file contains no certificate"
    );
    let error = refusal(&cert, &File::copy("localhost.pem", 0o600)).await;
    assert_eq!(error.message(), "the TLS key file contains no PEM private key");
}
