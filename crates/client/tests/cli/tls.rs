//! Encrypted connections: the certificate decides who gets the token.

use crate::http::{Server, json};
use crate::provost::{Outcome, Provost, TOKEN, folder};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs};

/// Returns the path of a certificate or a key of the tests.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/tls")
        .join(name)
}

fn acceptor() -> TlsAcceptor {
    acceptor_of("localhost")
}

/// Returns what shows the certificate of this name.
pub fn acceptor_of(name: &str) -> TlsAcceptor {
    let cert = CertificateDer::from_pem_file(file(&format!("{name}.pem"))).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .expect("a certificate and its key");
    TlsAcceptor::from(Arc::new(config))
}

async fn list_of(server: &Server, trusted: &Path) -> Outcome {
    let trusted = trusted.to_str().expect("UTF-8");
    Provost::script()
        .asks(server, &["widgets", "list", "--ca-cert", trusted])
        .await
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_gets_the_token() {
    let server = Server::encrypted([json(200, &json!({ "widgets": [], "total": 0 }))], acceptor()).await;
    let outcome = list_of(&server, &file("localhost.pem")).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        server.asked()[0].header("authorization"),
        format!("Bearer {TOKEN}")
    );
}

#[tokio::test]
async fn a_server_with_another_certificate_gets_nothing_and_is_not_asked_again() {
    let server = Server::encrypted([], acceptor()).await;
    let outcome = list_of(&server, &file("other.pem")).await;
    assert_eq!((outcome.code, server.asked().len()), (7, 0));
    assert!(
        outcome.err.contains("certificate") && !outcome.err.contains("trying again"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_file_without_certificates_is_refused() {
    let server = Server::encrypted([], acceptor()).await;
    let empty = folder().join("empty.pem");
    std::fs::write(&empty, "").expect("a file");
    let outcome = list_of(&server, &empty).await;
    assert_eq!(outcome.code, 2);
    assert!(outcome.err.contains("no certificate"), "{}", outcome.err);
}

/// What stands between here and a server is named in words, with what mends it, and without the words of a library.
#[tokio::test]
async fn each_trouble_with_a_certificate_says_what_mends_it() {
    for (shown, trusted, says, step) in [
        (
            "localhost",
            "other.pem",
            "nobody in the file of --ca-cert",
            "name the file with the certificate",
        ),
        (
            "named",
            "named.pem",
            "is for provost.invalid, not for 127.0.0.1",
            "a name of the certificate",
        ),
        (
            "authority",
            "authority.pem",
            "the certificate of an authority",
            "basicConstraints=critical,CA:FALSE",
        ),
    ] {
        let server = Server::encrypted([], acceptor_of(shown)).await;
        let outcome = list_of(&server, &file(trusted)).await;
        assert_eq!((outcome.code, server.asked().len()), (7, 0), "{shown}");
        for words in [says, step] {
            assert!(outcome.err.contains(words), "{shown}: {}", outcome.err);
        }
        assert!(
            !outcome.err.contains('"') && !outcome.err.contains('('),
            "{}",
            outcome.err
        );
    }
}

#[tokio::test]
async fn a_server_that_speaks_with_tls_or_without_it_is_named_as_it_speaks() {
    let plain = Server::playing([json(200, &json!({}))]).await;
    let url = plain.url.replace("http:", "https:");
    let to = ["widgets", "list", "--organization", "acme", "--retries", "0"];
    let trusted = file("localhost.pem");
    let trusted = ["--ca-cert", trusted.to_str().expect("UTF-8")];
    let outcome = Provost::script()
        .runs(&[&to[..], &["--url", &url], &trusted].concat())
        .await;
    assert_eq!((outcome.code, plain.asked().len()), (7, 0), "{outcome:?}");
    assert!(
        outcome.err.contains("does not speak TLS") && outcome.err.contains(&plain.url),
        "{}",
        outcome.err
    );
    let encrypted = Server::encrypted([], acceptor()).await;
    let url = encrypted.url.replace("https:", "http:");
    let outcome = Provost::script()
        .runs(&[&to[..], &["--url", &url]].concat())
        .await;
    assert_eq!((outcome.code, encrypted.asked().len()), (7, 0), "{outcome:?}");
    assert!(
        outcome.err.contains("does not speak HTTP") && outcome.err.contains(&encrypted.url),
        "{}",
        outcome.err
    );
}
