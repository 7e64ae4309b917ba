//! A store that cannot be reached: each cause has its own sentence, at serve and in every command of the store.

use crate::harness::{Home, bare, home, homes, refuse};
use crate::refusals::in_database;
use provost_kernel::db::Location;
use std::io::{Read, Write};
use std::net::TcpListener;

const COMMANDS: [&[&str]; 5] = [
    &["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"],
    &["store", "check"],
    &["store", "backup", "copy.db"],
    &["audit", "verify"],
    &["init", "--organization", "Acme"],
];

/// Runs every command on a store, and expects one line with these words.
fn all_say(home: &Home, variable: &str, value: &str, words: &str) {
    for command in COMMANDS {
        let mut asked = bare(command);
        asked
            .current_dir(&home.dir)
            .env("PROVOST_KEYS_DIR", home.path("keys"));
        asked.env(variable, value);
        let (code, said) = refuse(asked);
        let last = said.lines().last().unwrap_or_default();
        assert!((1..=2).contains(&code), "{command:?}: {said}");
        assert!(
            last.starts_with("provost: ") && last.contains(words),
            "{command:?}: {said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn an_unreachable_database_says_why() {
    let home = home("unreachable_pg");
    // The keys are there: it is the store that is not.
    home.init();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for caller in stranger.incoming() {
            // Whoever closes a socket without reading it resets the connection.
            let _ = caller.and_then(|mut caller| {
                let _ = caller.read(&mut [0; 4096])?;
                caller.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            });
        }
    });
    let nowhere = home.path("nowhere");
    let cases = [
        (
            format!("postgres://u:hunter2@127.0.0.1:{free}/x"),
            "nothing listens at host and port",
        ),
        (
            format!("postgres://u:hunter2@127.0.0.1:{port}/x"),
            "does not speak as PostgreSQL does",
        ),
        (
            format!("host={} user=u password=hunter2 dbname=x", nowhere.display()),
            "there is no socket of a PostgreSQL server",
        ),
        (
            "postgres://u:hunter2@127.0.0.1:port/x".to_owned(),
            "its port has a value",
        ),
        (
            "mysql://u:hunter2@127.0.0.1/x".to_owned(),
            "begins neither with postgres://",
        ),
        ("postgres://u:hunter2@/x".to_owned(), "names no host"),
    ];
    for (url, words) in cases {
        all_say(&home, "PROVOST_DATABASE_URL", &url, words);
    }
}

#[test]
fn a_database_that_is_not_there_says_so() {
    for home in homes("unreachable_db") {
        let Location::Postgres(url) = home.location() else {
            continue;
        };
        home.init();
        let url = in_database(url.expose(), "there_is_no_such_database");
        all_say(
            &home,
            "PROVOST_DATABASE_URL",
            &url,
            "has no database of the name in the url",
        );
    }
}

#[test]
fn a_store_file_that_cannot_be_opened_says_why() {
    let home = home("unreachable_file");
    home.init();
    let data = home.path("data");
    let file = data.join("provost.db");
    std::fs::rename(&file, home.path("kept.db")).unwrap();
    std::fs::write(
        &file,
        "This is no SQLite file, and long enough to be told from one.".repeat(20),
    )
    .unwrap();
    let said = |command: &[&str]| {
        let mut asked = home.command(command);
        asked.env("PROVOST_DATA_DIR", &data);
        refuse(asked).1
    };
    for command in [COMMANDS[0], COMMANDS[2], COMMANDS[3]] {
        assert!(
            said(command).contains("is damaged, or is no SQLite file"),
            "{command:?}"
        );
    }
}
