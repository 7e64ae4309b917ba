//! Backups that a timer makes: named by store and time, of which the oldest go.

use crate::harness::{Home, home, homes, refuse};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn stems(folder: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(folder).unwrap();
    names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".db.mac").map(str::to_owned))
        .collect()
}

fn back_up(home: &Home, words: &[&str]) -> String {
    home.run(&[&["store", "backup"], words].concat())
}

#[test]
fn a_series_keeps_its_newest_and_the_newest_can_be_restored() {
    for home in homes("series") {
        let token = home.init();
        drop(token);
        let folder = home.path("backups");
        let mut made = Vec::new();
        for kept in [1, 2, 2, 2] {
            back_up(&home, &["--keep", "2", "--to", "backups"]);
            let stems = stems(&folder);
            assert_eq!(stems.len(), kept, "{stems:?}");
            made.push(stems.last().unwrap().clone());
        }
        let left: Vec<String> = stems(&folder).into_iter().collect();
        assert_eq!(left, made[2..]);
        // Nothing else is left of the others.
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(left.iter().any(|stem| name.starts_with(stem.as_str())), "{name}");
        }
        let newest = folder.join(format!("{}.db", left[1]));
        let target = crate::harness::home("series_target");
        let mut restore = target.command(&["store", "restore", newest.to_str().unwrap(), "--rehearse"]);
        restore.env("PROVOST_KEYS_DIR", home.path("keys"));
        crate::harness::succeed(restore);
    }
}

#[test]
fn two_stores_share_a_folder_and_neither_removes_the_others() {
    let (one, other) = (home("series_one"), home("series_other"));
    one.init();
    other.init();
    let folder = one.path("backups");
    let path = folder.to_str().unwrap();
    for home in [&one, &other, &one, &other] {
        back_up(home, &["--keep", "1", "--to", path]);
    }
    assert_eq!(stems(&folder).len(), 2);
    // Made by hand: nobody's to remove.
    back_up(
        &one,
        &[folder
            .join("provost-2020-01-01T00-00-00-000Z.db")
            .to_str()
            .unwrap()],
    );
    back_up(&one, &["--keep", "1", "--to", path]);
    assert_eq!(stems(&folder).len(), 3);
}

#[test]
fn a_series_is_called_as_it_is_meant() {
    let home = home("series_words");
    home.init();
    for (words, said) in [
        (&["--keep", "2", "a.db"][..], "--keep"),
        (&["--keep", "0", "--to", "backups"], "--keep"),
        (&["a.db", "--to", "backups"], "cannot be used with"),
        (&["--to", "https://example.com/b"], "--to takes a folder or s3://"),
        (&["--to", "s3://bucket/b"], "backup.access_key_id_file"),
        (&[], "<TARGET>"),
    ] {
        let (code, text) = refuse(home.command(&[&["store", "backup"], words].concat()));
        assert!(code == 2 && text.contains(said), "{words:?}: {code} {text}");
    }
    assert!(!home.path("backups").exists());
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where the server is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Asks the S3-compatible server, in which buckets can be made and listed without a signature.
fn ask(server: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    let head = format!("{head} HTTP/1.1\r\nhost: {server}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// `PROVOST_TEST_S3_ENDPOINT` names the server; `cargo xtask test` starts one.
#[test]
fn a_series_in_an_object_store_keeps_its_newest() {
    let Some(endpoint) = variable("PROVOST_TEST_S3_ENDPOINT") else {
        assert!(
            variable("PROVOST_TEST_REQUIRE_S3").as_deref() != Some("1"),
            "PROVOST_TEST_S3_ENDPOINT is not set, and PROVOST_TEST_REQUIRE_S3 is"
        );
        return;
    };
    let server = endpoint.strip_prefix("http://").unwrap();
    let home = home("series_s3");
    home.init();
    let bucket = format!("backups-{}", std::process::id());
    ask(server, &format!("PUT /{bucket}"));
    for (name, text) in [("id", "AKIAEXAMPLE\n"), ("secret", "the-secret-of-the-test\n")] {
        std::fs::write(home.path(name), text).unwrap();
    }
    let url = format!("s3://{bucket}/provost");
    for kept in [1, 2, 2] {
        let mut command = home.command(&["store", "backup", "--keep", "2", "--to", &url]);
        command
            .env("PROVOST_BACKUP_ENDPOINT", &endpoint)
            .env("PROVOST_BACKUP_ACCESS_KEY_ID_FILE", home.path("id"))
            .env("PROVOST_BACKUP_SECRET_ACCESS_KEY_FILE", home.path("secret"));
        let said = crate::harness::succeed(command);
        assert!(said.contains(&format!("{url}/provost-")), "{said}");
        let listed = ask(server, &format!("GET /{bucket}?list-type=2"));
        assert_eq!(listed.matches(".db</Key>").count(), kept, "{listed}");
        assert_eq!(listed.matches(".db.mac</Key>").count(), kept, "{listed}");
    }
    // What was staged beside the data is gone, and the metrics know of the last one.
    let data = std::fs::read_dir(home.path("data")).unwrap();
    let names: Vec<String> = data
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.ends_with(".partial")), "{names:?}");
    assert!(names.iter().any(|name| name == "last-backup.json"), "{names:?}");
}
