//! Certificates that are renewed while the server works.

use crate::harness::{Home, Server, get, home};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn put(home: &Home, pem: &str, key: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/tests/tls");
    for (name, to, mode) in [(pem, "tls.pem", 0o644), (key, "tls.key", 0o600)] {
        let to = home.path(to);
        std::fs::copy(from.join(name), &to).unwrap();
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn serve(home: &Home) -> Server {
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
    ];
    let files = ["--tls-cert", "tls.pem", "--tls-key", "tls.key"];
    let command = home.command(&[&words[..], &files].concat());
    Server::start(command, &home.path("stdout"))
}

/// Returns how many seconds the metrics say are left of the certificate.
fn left(server: &Server) -> f64 {
    let (_, after) = server.log.split_once("metrics on http://127.0.0.1:").unwrap();
    let port = after.split('/').next().unwrap().parse().unwrap();
    let (_, text) = get(port, "/metrics", None);
    let name = "provost_tls_certificate_expires_in_seconds ";
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().parse().unwrap()
}

/// Proves TC-1.
#[test]
fn a_signal_reads_the_certificate_anew_and_what_is_unusable_changes_nothing() {
    let home = home("tls_anew");
    put(&home, "localhost.pem", "localhost.key");
    let mut server = serve(&home);
    assert!(!server.log.contains("expired"), "{}", server.log);
    let first = left(&server);
    assert!(first > 50.0 * 365.0 * 86400.0, "{first}");
    put(&home, "other.pem", "localhost.key");
    server.signal("HUP");
    server.wait_for("the TLS key does not belong to the TLS certificate; the TLS certificate and the key that were read before");
    let line = server
        .log
        .lines()
        .find(|line| line.contains("does not belong to"))
        .unwrap();
    assert!(line.contains("\"level\":\"ERROR\""), "{line}");
    assert!((first - left(&server)).abs() < 3600.0);
    put(&home, "other.pem", "other.key");
    server.signal("HUP");
    server.wait_for("the TLS certificate and its key were read anew");
    assert!((first - left(&server)).abs() > 86400.0, "another end is told");
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_certificate_that_has_expired_is_a_warning_and_a_figure() {
    let home = home("tls_expired");
    put(&home, "expired.pem", "other.key");
    let server = serve(&home);
    let line = server
        .log
        .lines()
        .find(|line| line.contains("the TLS certificate expired at 2021-01-01"))
        .unwrap();
    assert!(line.contains("\"level\":\"WARN\""), "{line}");
    assert!(left(&server) < 0.0);
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_signal_without_tls_ends_nothing() {
    let home = home("tls_off");
    let mut server = home.serve(&[]);
    server.signal("HUP");
    server.wait_for("SIGHUP: there is no TLS certificate to read anew");
    let token = server.token();
    assert_eq!(server.accounts("default", &token).0, 200);
    assert_eq!(server.stop(), 0);
}
