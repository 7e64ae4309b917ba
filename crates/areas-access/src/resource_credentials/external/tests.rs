//! Files and a vault that speaks over a real socket.

use super::*;
use crate::resource_credentials::checks::model::Reason;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("provost-external-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Proves RC-7.
#[test]
fn files_are_read_below_the_root_alone_and_no_link_is_followed() {
    let folder = Folder::new("files");
    let root = folder.path().join("acme");
    fs::create_dir_all(root.join("team/orders")).unwrap();
    fs::create_dir_all(folder.path().join("umbrella")).unwrap();
    fs::write(root.join("team/orders/db"), "hunter2\n").unwrap();
    fs::write(root.join("two"), "a\n\n").unwrap();
    fs::write(root.join("empty"), "\n").unwrap();
    fs::write(root.join("large"), vec![b'x'; MAX_BYTES + 1]).unwrap();
    fs::write(folder.path().join("umbrella/foreign"), "theirs").unwrap();
    symlink("../umbrella/foreign", root.join("link")).unwrap();
    symlink("../umbrella", root.join("linked")).unwrap();
    symlink("team", root.join("inner")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let read = |path: &str| file::read(&root, path).map(|secret| secret.expose().clone());
    assert_eq!(read("team/orders/db"), Ok(b"hunter2".to_vec()));
    assert_eq!(read("two"), Ok(b"a\n".to_vec()));
    assert_eq!(read("none"), Err(Reason::NotFound));
    assert_eq!(read("two/none"), Err(Reason::NotFound));
    assert_eq!(read("link"), Err(Reason::Denied));
    for (path, name) in [
        ("linked/foreign", "a folder outside"),
        ("inner/orders/db", "a folder inside"),
    ] {
        assert_eq!(read(path), Err(Reason::NotFound), "a link to {name} is followed");
    }
    for path in ["empty", "large", "pipe", "team"] {
        assert_eq!(read(path), Err(Reason::InvalidAnswer), "{path}");
    }
    assert_eq!(
        file::read(&folder.path().join("gone"), "x").map(drop),
        Err(Reason::NotFound)
    );
}

/// A server that answers each connection with the same bytes and keeps what it was sent.
async fn answering(answer: String) -> (std::net::SocketAddr, tokio::task::JoinSet<Vec<String>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut task = tokio::task::JoinSet::new();
    task.spawn(async move {
        let mut seen = Vec::new();
        // One request more than is expected would be a redirect that was followed.
        while let Ok(Ok((mut stream, _))) =
            tokio::time::timeout(Duration::from_millis(300), listener.accept()).await
        {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).await.unwrap() == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            seen.push(String::from_utf8(head).unwrap());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        seen
    });
    (address, task)
}

fn vault(folder: &Folder, address: std::net::SocketAddr, allow_private_address: bool) -> ExternalManagers {
    let token_file = folder.path().join("token");
    fs::write(&token_file, "s.token\n").unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    ExternalManagers::new(vec![SecretManager {
        name: "corp".into(),
        backend: Backend::Vault(Vault {
            address: format!("http://{address}").parse().unwrap(),
            mount: "kv".into(),
            namespace: Some("team".into()),
            token_file,
            tls: Arc::new(tls),
            allow_private_address,
        }),
        prefixes: BTreeMap::from([("acme".to_owned(), "provost/acme".to_owned())]),
    }])
}

async fn fetched(answer: String, field: Option<&str>) -> (Result<Vec<u8>, Reason>, Vec<String>) {
    let folder = Folder::new(&format!("vault-{}", answer.len()));
    let (address, mut task) = answering(answer).await;
    let managers = vault(&folder, address, true);
    let place = managers.place("acme", "corp").unwrap();
    let secret = place.fetch("orders/db", field).await;
    let seen = task.join_next().await.unwrap().unwrap();
    (secret.map(|secret| secret.expose().clone()), seen)
}

fn json_answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_secret_is_fetched_as_the_key_value_store_documents() {
    let body = r#"{"request_id":"1","lease_id":"","renewable":false,"lease_duration":0,"data":{"data":{"value":"hunter2","user":"app"},"metadata":{"created_time":"2026-01-01T00:00:00Z","custom_metadata":null,"deletion_time":"","destroyed":false,"version":3}},"wrap_info":null,"warnings":null,"auth":null}"#;
    let (secret, seen) = fetched(json_answer("200 OK", body), None).await;
    assert_eq!(secret, Ok(b"hunter2".to_vec()));
    let head = seen[0].to_lowercase();
    assert!(
        head.starts_with("get /v1/kv/data/provost/acme/orders/db http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("x-vault-token: s.token\r\n") && head.contains("x-vault-namespace: team\r\n"));
    let (secret, _) = fetched(json_answer("200 OK", body), Some("user")).await;
    assert_eq!(secret, Ok(b"app".to_vec()));
    let (secret, _) = fetched(json_answer("200 OK", body), Some("none")).await;
    assert_eq!(secret, Err(Reason::NotFound));
}

#[tokio::test]
async fn every_refusal_has_its_reason() {
    let deleted = r#"{"data":{"data":null,"metadata":{"deletion_time":"2026-01-01T00:00:00Z"}}}"#;
    for (status, body, expected) in [
        ("404 Not Found", r#"{"errors":[]}"#, Reason::NotFound),
        ("404 Not Found", deleted, Reason::NotFound),
        (
            "403 Forbidden",
            r#"{"errors":["permission denied"]}"#,
            Reason::Denied,
        ),
        (
            "400 Bad Request",
            r#"{"errors":["missing client token"]}"#,
            Reason::Denied,
        ),
        (
            "503 Service Unavailable",
            r#"{"errors":["Vault is sealed"]}"#,
            Reason::Unreachable,
        ),
        ("200 OK", "hello", Reason::InvalidAnswer),
        (
            "200 OK",
            r#"{"data":{"data":{"value":7}}}"#,
            Reason::InvalidAnswer,
        ),
        (
            "200 OK",
            r#"{"data":{"value":"a version 1 store"}}"#,
            Reason::InvalidAnswer,
        ),
    ] {
        let (secret, _) = fetched(json_answer(status, body), None).await;
        assert_eq!(secret, Err(expected), "{status} {body}");
    }
    let large = format!(r#"{{"data":{{"data":{{"value":"{}"}}}}}}"#, "x".repeat(MAX_BYTES));
    let (secret, _) = fetched(json_answer("200 OK", &large), None).await;
    assert_eq!(secret, Err(Reason::InvalidAnswer));
    let redirect = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /v1/elsewhere\r\ncontent-length: 0\r\n\r\n";
    let (secret, seen) = fetched(redirect.to_owned(), None).await;
    assert_eq!((secret, seen.len()), (Err(Reason::InvalidAnswer), 1));
    let (secret, _) = fetched(String::new(), None).await;
    assert_eq!(secret, Err(Reason::Unreachable));
}

/// Proves RC-7.
#[tokio::test]
async fn a_private_address_is_reached_only_when_it_is_allowed() {
    let folder = Folder::new("private");
    let (address, mut task) = answering(json_answer("200 OK", "{}")).await;
    let managers = vault(&folder, address, false);
    let place = managers.place("acme", "corp").unwrap();
    assert_eq!(place.fetch("x", None).await.map(drop), Err(Reason::NotConfigured));
    assert!(
        task.join_next().await.unwrap().unwrap().is_empty(),
        "nothing was sent"
    );
    assert!(managers.place("umbrella", "corp").is_none() && managers.place("acme", "other").is_none());
}
