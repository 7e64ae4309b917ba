//! TLS with a certificate of our own; it is valid for 100 years.

use super::*;
use crate::Error;
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

async fn start_tls(settings: EdgeSettings) -> Running {
    let (cert, key) = (
        File::copy("localhost.pem", 0o644),
        File::copy("localhost.key", 0o600),
    );
    let running = start_with(settings, files(&cert, &key)).await;
    // The files are read before the first connection is accepted, and then no more.
    drop(shake(&running, &[]).await);
    running
}

async fn shake(running: &Running, alpn: &[&[u8]]) -> TlsStream<TcpStream> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls/localhost.pem");
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
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
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
