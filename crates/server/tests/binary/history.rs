//! Recorded events through kills, backups, restores and moves of the real binary.

use crate::harness::{Home, Server, get, homes, refuse, succeed};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const BASE: &str = "/api/headless/v1/organizations/default/policies/history";

/// Returns a body of events, one a millisecond, that end `ago_secs` before now.
fn body(name: &str, count: usize) -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    let line = |number: usize| {
        let at = provost_kernel::Timestamp::from_ms(now - 3_600_000 + i64::try_from(number).unwrap());
        json!({
            "id": format!("{name}-{number}"), "at": at.to_rfc3339(), "occasion": "pre_tool",
            "attributes": { "tool.id": format!("tool-{}", number % 5), "identity.user_id": format!("user-{}", number % 9) },
        })
        .to_string()
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

/// Sends a body; `None` when the server went away.
fn import(port: u16, token: &str, source: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!(
        "POST {BASE}/import?source={source} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/x-ndjson\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((
        status,
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?,
    ))
}

fn read(server: &Server, token: &str, rest: &str) -> Value {
    let (status, body) = get(server.port, &format!("{BASE}{rest}"), Some(token));
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Returns how many events a list shows on all its pages. One page looks at what it can in its time, so a loaded machine
/// has more of them.
fn listed(server: &Server, token: &str, query: &str) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = read(server, token, &format!("?{query}{cursor}"));
        count += page["events"].as_array().unwrap().len();
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return count,
        }
    }
}

/// Returns how many events of each source there are.
fn counts(server: &Server, token: &str) -> HashMap<String, usize> {
    let (mut counts, mut cursor) = (HashMap::new(), String::new());
    loop {
        let page = read(server, token, &format!("?limit=100{cursor}"));
        for event in page["events"].as_array().unwrap() {
            let source = event["source"].as_str().unwrap().to_owned();
            *counts.entry(source).or_default() += 1;
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return counts,
        }
    }
}

/// Proves HS-1.
#[test]
fn what_was_acknowledged_survives_kills() {
    for home in homes("history_kill") {
        let mut server = home.serve_unlimited();
        let token = server.token();
        let acknowledged: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut sent = 0;
        for round in 0..4 {
            let is_over = Arc::new(AtomicBool::new(false));
            let senders: Vec<_> = (0..4)
                .map(|sender| {
                    let (port, token, is_over) = (server.port, token.clone(), is_over.clone());
                    let acknowledged = acknowledged.clone();
                    thread::spawn(move || {
                        let mut sent = 0;
                        while !is_over.load(Ordering::SeqCst) {
                            let source = format!("r{round}s{sender}n{sent}");
                            sent += 1;
                            match import(port, &token, &source, &body(&source, 20)) {
                                Some((200, _)) => acknowledged.lock().unwrap().push(source),
                                Some((503, _)) | None => {}
                                Some((status, said)) => panic!("{status} {said}"),
                            }
                        }
                        sent
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(200 + 130 * round));
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            is_over.store(true, Ordering::SeqCst);
            sent += senders
                .into_iter()
                .map(|sender| sender.join().unwrap())
                .sum::<usize>();
            server = home.serve_unlimited();
        }
        let acknowledged = acknowledged.lock().unwrap().clone();
        assert!(acknowledged.len() > 20, "{} of {sent}", acknowledged.len());
        let counts = counts(&server, &token);
        for source in &acknowledged {
            assert_eq!(counts.get(source), Some(&20), "{source}");
        }
        assert!(counts.values().all(|count| *count == 20), "{counts:?}");
        // What was not acknowledged is there as a whole or not at all.
        let events = read(&server, &token, "/status")["events"].as_u64().unwrap();
        assert!(
            events.is_multiple_of(20) && events >= 20 * acknowledged.len() as u64,
            "{events}"
        );
        assert!(events <= 20 * sent as u64);
        assert_eq!(server.stop(), 0);
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}

/// Seals what is there: old chunks come of a clock that is ahead, and the real one is not; so there are many events.
fn sealed(server: &Server, token: &str) -> Value {
    for part in 0..53 {
        let source = format!("part{part}");
        let answer = import(server.port, token, &source, &body(&source, 5_000));
        assert_eq!(answer.unwrap().1["accepted"], 5_000);
    }
    for _ in 0..600 {
        let status = read(server, token, "/status");
        if status["segments"] == 1 {
            return status;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was sealed");
}

/// Returns where the marker of the place of a home's history lies.
fn marker_of(home: &Home) -> Option<std::path::PathBuf> {
    let places = ["data", "provost-data"].map(|data| home.path(&format!("{data}/history/place.json")));
    places.into_iter().find(|marker| marker.exists())
}

/// Returns what it says.
fn marked(home: &Home) -> Value {
    serde_json::from_slice(&std::fs::read(marker_of(home).unwrap()).unwrap()).unwrap()
}

fn soon(what: &str, is_so: impl Fn() -> bool) {
    let came = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(100));
        is_so()
    });
    assert!(came, "{what}");
}

/// Proves HS-13.
#[test]
fn the_marker_of_a_place_says_of_which_store_it_is() {
    let pairs = homes("history_marker").into_iter().zip(homes("history_marked"));
    for (home, target) in pairs {
        let server = home.serve(&[]);
        soon("the place is marked", || marker_of(&home).is_some());
        home.run(&["store", "backup", "backup.db"]);
        server.stop();
        // The marker of an earlier build says nothing of the store: it is as good, and the next start completes it.
        let whole = marked(&home);
        let earlier = json!({ "placeId": whole["placeId"] });
        std::fs::write(marker_of(&home).unwrap(), earlier.to_string()).unwrap();
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
        let server = home.serve(&[]);
        soon("the marker is completed", || marked(&home) == whole);
        server.stop();
        // Of another store it is not this one's, even if the place is.
        let other = json!({ "placeId": whole["placeId"], "storeId": "store_other" });
        std::fs::write(marker_of(&home).unwrap(), other.to_string()).unwrap();
        let (_, said) = home.refuse(&["store", "check"]);
        assert!(
            said.contains("carries the marker of another store, store_other"),
            "{said}"
        );
        std::fs::write(marker_of(&home).unwrap(), whole.to_string()).unwrap();
        let command = |words: &[&str]| {
            let mut command = target.command(words);
            command
                .current_dir(&home.dir)
                .env("PROVOST_KEYS_DIR", home.path("keys"))
                .env("PROVOST_HISTORY_FOLDER", target.path("segments"));
            command
        };
        succeed(command(&["store", "restore", "backup.db", "--replace-live"]));
        // In the place of the store of the backup it says whose that is, and takes it by the operator's word alone.
        let in_former = |words: &[&str]| {
            let mut command = command(words);
            command.env(
                "PROVOST_HISTORY_FOLDER",
                marker_of(&home).unwrap().parent().unwrap(),
            );
            command
        };
        let said_of = whole["storeId"].as_str().unwrap();
        let said_of = format!("{said_of}, from whose backup this one was restored");
        let serve = in_former(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        let mut server = Server::start(serve, &target.path("stdout"));
        server.wait_for(&said_of);
        server.wait_for("--take-over");
        server.stop();
        let (_, said) = refuse(in_former(&["history", "adopt"]));
        assert!(said.contains(&said_of) && said.contains("--take-over"), "{said}");
        succeed(in_former(&["history", "adopt", "--take-over"]));
        assert_ne!(marked(&home), whole);
        assert_eq!(succeed(in_former(&["store", "check"])), "the store is whole\n");
    }
}

/// Proves HS-7.
#[test]
fn backups_and_restores_take_the_segments_along() {
    for (home, targets) in homes("history_backup")
        .into_iter()
        .zip([homes("history_restored1"), homes("history_restored2")])
    {
        let server = home.serve_unlimited();
        let token = server.token();
        let before = sealed(&server, &token);
        let said = home.run(&["store", "backup", "backup.db"]);
        assert!(
            said.contains("backup.db.history  1 segments of recorded history"),
            "{said}"
        );
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
        server.stop();
        for target in &targets {
            let command = |words: &[&str]| {
                let mut command = target.command(words);
                command
                    .current_dir(&home.dir)
                    .env("PROVOST_KEYS_DIR", home.path("keys"));
                command.env("PROVOST_HISTORY_FOLDER", target.path("segments"));
                command
            };
            let folder = home.path("backup.db.history");
            let hidden = home.path("hidden");
            std::fs::rename(&folder, &hidden).unwrap();
            let (_, said) = refuse(command(&["store", "restore", "backup.db", "--replace-live"]));
            assert!(said.contains("segments of recorded history"), "{said}");
            std::fs::rename(&hidden, &folder).unwrap();
            let made = succeed(command(&[
                "store",
                "restore",
                "backup.db",
                "--json",
                "--replace-live",
            ]));
            let made: Value = serde_json::from_str(made.lines().next().unwrap()).unwrap();
            let token = made["token"].as_str().unwrap();
            let mut serve = command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
            serve.env("PROVOST_RATE_LIMITS_ENABLED", "false");
            let server = Server::start(serve, &target.path("stdout"));
            let after = read(&server, token, "/status");
            assert_eq!(
                (&after["events"], &after["segments"]),
                (&before["events"], &before["segments"])
            );
            assert_eq!(
                listed(&server, token, "limit=100&source=part0&tool=tool-3"),
                1_000
            );
            server.stop();
            assert_eq!(succeed(command(&["store", "check"])), "the store is whole\n");
            // A damaged and a missing file are named.
            let mut entries = std::fs::read_dir(target.path("segments")).unwrap();
            let file = entries
                .find_map(|entry| {
                    let path = entry.unwrap().path();
                    path.extension()
                        .is_some_and(|end| end == "parquet")
                        .then_some(path)
                })
                .unwrap();
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&file, &bytes).unwrap();
            let name = file.file_name().unwrap().to_str().unwrap();
            let (_, said) = refuse(command(&["store", "check"]));
            assert!(said.contains(name) && said.contains("is damaged"), "{said}");
            std::fs::remove_file(&file).unwrap();
            let (_, said) = refuse(command(&["store", "check"]));
            assert!(said.contains(name) && said.contains("is not there"), "{said}");
            // It comes back from the folder of the backup, and from nowhere else.
            let (_, said) = refuse(command(&["history", "adopt", "nowhere"]));
            assert!(said.contains("is no folder"), "{said}");
            std::fs::create_dir_all(home.path("empty")).unwrap();
            let (_, said) = refuse(command(&["history", "adopt", "empty"]));
            assert!(said.contains("hold none of the 1 segments"), "{said}");
            let said = succeed(command(&["history", "adopt", "backup.db.history"]));
            assert_eq!(
                said,
                "1 of 1 segments were brought in, and the place is this store's.\n"
            );
            assert_eq!(succeed(command(&["store", "check"])), "the store is whole\n");
            // The place of another store is not taken without a word.
            let marker = target.path("segments/place.json");
            std::fs::write(&marker, "{\"placeId\":\"plc_other\"}").unwrap();
            let (_, said) = refuse(command(&["store", "check"]));
            assert!(said.contains("carries the marker of another store"), "{said}");
            let serve = command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
            let mut server = Server::start(serve, &target.path("stdout"));
            server.wait_for("the place of the history carries the marker of another store");
            server.stop();
            let (_, said) = refuse(command(&["history", "adopt"]));
            assert!(said.contains("--take-over"), "{said}");
            let said = succeed(command(&["history", "adopt", "--take-over"]));
            assert!(said.starts_with("0 of 1 segments were brought in"), "{said}");
            assert_eq!(succeed(command(&["store", "check"])), "the store is whole\n");
        }
    }
}
