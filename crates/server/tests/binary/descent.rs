//! Which store is served with which keys: lines of its own, rehearsals, restores in its place, moves and other stores.

use crate::harness::{Home, Server, get, home, homes, refuse, sign, succeed};
use provost_kernel::db::{Access, Conn, Location};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Returns a command on the store of `target` with the keys of `home`.
fn with_keys(home: &Home, target: &Home, words: &[&str]) -> Command {
    let mut command = target.command(words);
    command
        .current_dir(&home.dir)
        .env("PROVOST_KEYS_DIR", home.path("keys"));
    command
}

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];

fn serve_with(home: &Home, target: &Home) -> Server {
    Server::start(with_keys(home, target, &SERVE), &target.path("stdout"))
}

fn lines(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path("keys/checkpoints.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn put_lines(home: &Home, lines: &[Value]) {
    let texts: Vec<String> = lines.iter().map(Value::to_string).collect();
    let text = texts.join("\n") + "\n";
    std::fs::write(home.path("keys/checkpoints.jsonl"), text).unwrap();
}

fn change(home: &Home, sql: &str) {
    Conn::open(&home.location(), Access::Write)
        .unwrap()
        .batch(sql)
        .unwrap();
}

/// A store of which the keys know more than its backup holds.
fn ahead_of_its_backup(home: &Home) -> String {
    let token = home.init();
    home.run(&["store", "backup", "backup.db"]);
    home.run(&["recover", "--organization", "acme"]);
    sign(home);
    token
}

/// Proves WS-1, WS-4.
#[test]
fn a_rehearsed_restore_leaves_the_live_store_starting() {
    for (home, target) in homes("live").into_iter().zip(homes("rehearsed")) {
        let token = ahead_of_its_backup(&home);
        let before = lines(&home);
        let (code, said) = refuse(with_keys(&home, &target, &["store", "restore", "backup.db"]));
        assert!(code == 1 && said.contains("--replace-live"), "{said}");
        assert!(said.contains("acme: the backup has 1 entries"), "{said}");
        let said = succeed(with_keys(
            &home,
            &target,
            &["store", "restore", "backup.db", "--rehearse"],
        ));
        assert!(said.contains("as a rehearsal"), "{said}");
        let server = serve_with(&home, &target);
        assert!(
            server.log.contains("is a rehearsal of a restore"),
            "{}",
            server.log
        );
        let (status, body) = get(server.port, "/readyz", None);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["rehearsal"]), (200, &Value::Bool(true)));
        assert_eq!(server.accounts("acme", &token).0, 401);
        server.stop();
        let said = succeed(with_keys(&home, &target, &["store", "check"]));
        assert_eq!(said, "the store is whole\n");
        assert_eq!(lines(&home), before, "a rehearsal leaves no line");
        // By way of a backup of the rehearsal nothing is given up either.
        succeed(with_keys(&home, &target, &["store", "backup", "rehearsed.db"]));
        let again = crate::harness::home("rehearsedagain");
        let (code, said) = refuse(with_keys(&home, &again, &["store", "restore", "rehearsed.db"]));
        assert!(code == 1 && said.contains("a backup of a rehearsal"), "{said}");
        // The live one goes on, and says nothing of a rehearsal.
        let server = home.serve(&[]);
        assert_eq!(server.accounts("acme", &token).0, 200);
        assert_eq!(get(server.port, "/readyz", None).1, r#"{"status":"ready"}"#);
        server.stop();
        // Somebody who can write to the database does not make it a store that is measured against nothing.
        change(
            &home,
            "UPDATE installation SET value = replace(value, ' live ', ' rehearsal ') WHERE name = 'store_identity'",
        );
        for words in [
            &SERVE[..],
            &["store", "check"],
            &["recover", "--organization", "acme"],
        ] {
            let (code, said) = home.refuse(words);
            assert!(code == 1 && said.contains("does not carry"), "{words:?}: {said}");
        }
    }
}

/// Proves WS-3, WS-4.
#[test]
fn a_restore_in_place_of_the_live_store_retires_it() {
    for (place, home) in homes("replaced").into_iter().enumerate() {
        ahead_of_its_backup(&home);
        // One of each engine, where there are two.
        let first = homes("taken1").swap_remove(place);
        let second = crate::harness::home("taken2");
        let in_place = ["store", "restore", "backup.db", "--replace-live"];
        succeed(with_keys(&home, &first, &in_place));
        serve_with(&home, &first).stop();
        for words in [
            &SERVE[..],
            &["store", "check"],
            &["recover", "--organization", "acme"],
        ] {
            let (code, said) = home.refuse(words);
            assert!(code == 1 && said.contains("was given up"), "{words:?}: {said}");
        }
        // What was restored is ahead of the backup as well by now.
        let (code, said) = refuse(with_keys(&home, &second, &in_place[..3]));
        assert!(code == 1 && said.contains("--rehearse"), "{said}");
        succeed(with_keys(&home, &second, &in_place));
        let (code, said) = refuse(with_keys(&home, &first, &SERVE));
        assert!(code == 1 && said.contains("was given up"), "{said}");
        serve_with(&home, &second).stop();
        let said = succeed(with_keys(&home, &second, &["store", "check"]));
        assert_eq!(said, "the store is whole\n");
    }
}

/// Proves WS-3.
#[test]
fn keys_that_have_served_are_served_with_no_other_store_but_on_purpose() {
    for (home, other) in homes("served").into_iter().zip(homes("stranger")) {
        let token = home.init();
        for words in [&SERVE[..], &["init", "--organization", "Other"]] {
            let (code, said) = refuse(with_keys(&home, &other, words));
            assert!(
                code == 1 && said.contains("the store is empty"),
                "{words:?}: {said}"
            );
            assert!(said.contains("init --new"), "{said}");
            assert!(!other.path("data/provost.db").exists(), "nothing was made");
        }
        succeed(with_keys(
            &home,
            &other,
            &["init", "--organization", "Other", "--new"],
        ));
        serve_with(&home, &other).stop();
        assert_eq!(home.serve(&[]).accounts("acme", &token).0, 200);
        // Without its line it is a stranger, whatever it holds.
        let known = lines(&home);
        let own = &known[0]["storeId"];
        assert_eq!(known[0]["event"], "served");
        let kept: Vec<Value> = known
            .iter()
            .filter(|line| line["storeId"] == *own)
            .cloned()
            .collect();
        assert!(kept.len() < known.len());
        put_lines(&home, &kept);
        for words in [
            &SERVE[..],
            &["store", "check"],
            &["recover", "--organization", "other"],
        ] {
            let (code, said) = refuse(with_keys(&home, &other, words));
            assert!(
                code == 1 && said.contains("the keys have served another store"),
                "{words:?}: {said}"
            );
        }
        assert_eq!(home.serve(&[]).accounts("acme", &token).0, 200);
    }
}

#[test]
fn a_missing_file_of_checkpoints_is_said() {
    for home in homes("fileless") {
        let token = home.init();
        sign(&home);
        std::fs::remove_file(home.path("keys/checkpoints.jsonl")).unwrap();
        let server = home.serve(&[]);
        assert!(
            server
                .log
                .contains("checkpoints.jsonl is missing from the keys folder"),
            "{}",
            server.log
        );
        assert_eq!(server.accounts("acme", &token).0, 200);
        server.stop();
        assert_eq!(lines(&home)[0]["event"], "served");
        let server = home.serve(&[]);
        assert!(!server.log.contains("is missing"), "{}", server.log);
    }
}

#[test]
fn a_restore_in_place_of_a_store_without_an_id_leaves_its_lines_to_nobody() {
    let (home, target) = (home("unnamedlive"), crate::harness::home("unnamednew"));
    home.init();
    home.run(&["store", "backup", "backup.db"]);
    home.run(&["recover", "--organization", "acme"]);
    sign(&home);
    as_of_an_earlier_build(&home);
    without_an_id(&home.path("backup.db"));
    // Builds without ids wrote no MAC beside a backup either.
    std::fs::remove_file(home.path("backup.db.mac")).unwrap();
    let words = ["store", "restore", "backup.db", "--unsigned", "--replace-live"];
    let (code, said) = refuse(with_keys(&home, &target, &words[..4]));
    assert!(code == 1 && said.contains("--replace-live"), "{said}");
    succeed(with_keys(&home, &target, &words));
    serve_with(&home, &target).stop();
    let (code, said) = home.refuse(&SERVE);
    assert!(code == 1 && said.contains("another store"), "{said}");
}

/// Makes of a store and its lines what an earlier build would have left.
fn as_of_an_earlier_build(home: &Home) {
    change(
        home,
        "DELETE FROM installation WHERE name IN ('store_identity', 'closed')",
    );
    let mut kept: Vec<Value> = lines(home);
    kept.retain(|line| line.get("event").is_none());
    for line in &mut kept {
        let line = line.as_object_mut().unwrap();
        line.remove("storeId");
        line.remove("storeEpoch");
    }
    assert!(!kept.is_empty());
    put_lines(home, &kept);
}

fn without_an_id(backup: &Path) {
    let mut conn = Conn::open(&Location::Sqlite(backup.to_owned()), Access::Write).unwrap();
    conn.batch("DELETE FROM installation WHERE name = 'store_identity'; PRAGMA journal_mode = DELETE")
        .unwrap();
}

fn copy(from: &Path, to: &Home) {
    std::fs::create_dir_all(to.path("data")).unwrap();
    std::fs::copy(from, to.path("data/provost.db")).unwrap();
}

/// Proves WS-2.
#[test]
fn lines_without_a_name_belong_to_the_store_that_first_opens_with_them_and_fits() {
    for home in homes("unnamed") {
        let token = home.init();
        if home.is_sqlite() {
            home.run(&["store", "backup", "old.db"]);
            without_an_id(&home.path("old.db"));
        }
        home.run(&["recover", "--organization", "acme"]);
        sign(&home);
        as_of_an_earlier_build(&home);
        let old = crate::harness::home("unnamedold");
        if home.is_sqlite() {
            // One that is behind them adopts nothing.
            copy(&home.path("old.db"), &old);
            let (code, said) = refuse(with_keys(&home, &old, &SERVE));
            assert!(code == 1 && said.contains("behind its last checkpoint"), "{said}");
            let (code, said) = refuse(with_keys(&home, &old, &["recover", "--organization", "acme"]));
            assert!(code == 1 && said.contains("behind its last checkpoint"), "{said}");
        }
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
        let server = home.serve(&[]);
        assert_eq!(server.accounts("acme", &token).0, 200);
        server.stop();
        assert_eq!(lines(&home).last().unwrap()["event"], "adopted");
        if home.is_sqlite() {
            let (code, said) = refuse(with_keys(&home, &old, &SERVE));
            assert!(code == 1 && said.contains("another store"), "{said}");
        }
        // It stays measured against them.
        let mut longer = lines(&home);
        longer[0]["size"] = 1_000.into();
        put_lines(&home, &longer);
        let (code, said) = home.refuse(&SERVE);
        assert!(code == 1 && said.contains("contradicts its own note"), "{said}");
    }
}

/// Proves WS-3.
#[test]
fn a_store_that_was_moved_is_refused_until_it_is_taken_back() {
    let mut homes = homes("moveback").into_iter();
    let home = homes.next().unwrap();
    let Some(target) = homes.next() else { return };
    let token = home.init();
    sign(&home);
    let Location::Postgres(url) = target.location() else {
        panic!("the second engine is PostgreSQL")
    };
    std::fs::write(home.path("url"), url.expose()).unwrap();
    let data = home.path("data");
    let from = data.to_str().unwrap();
    let back = ["store", "accept", "--moved-back", "--moved-to-file", "url"];
    let (code, said) = home.refuse(&back);
    assert!(code == 1 && said.contains("not marked as moved"), "{said}");
    home.run(&["store", "move", "--from", from, "--to-file", "url"]);
    for words in [
        &SERVE[..],
        &["store", "check"],
        &["recover", "--organization", "acme"],
        &["store", "move", "--from", from, "--to-file", "url"],
    ] {
        let (code, said) = home.refuse(words);
        assert!(code == 1 && said.contains("was moved"), "{words:?}: {said}");
    }
    let (code, said) = home.refuse(&back[..3]);
    assert!(code == 2 && said.contains("--moved-to-file"), "{said}");
    // While the database holds nothing newer.
    home.run(&back);
    let server = home.serve(&[]);
    assert_eq!(server.accounts("acme", &token).0, 200);
    server.stop();
    let (code, said) = refuse(with_keys(&home, &target, &SERVE));
    assert!(code == 1, "{said}");
    // Moved again into an empty database, and changed there.
    let other = crate::harness::homes("movedagain").remove(1);
    let Location::Postgres(url) = other.location() else {
        panic!("the second engine is PostgreSQL")
    };
    std::fs::write(home.path("url"), url.expose()).unwrap();
    home.run(&["store", "move", "--from", from, "--to-file", "url"]);
    succeed(with_keys(&home, &other, &["recover", "--organization", "acme"]));
    let (code, said) = home.refuse(&back);
    assert!(
        code == 1 && said.contains("holds changes that this store lacks"),
        "{said}"
    );
    let server = serve_with(&home, &other);
    assert_eq!(server.accounts("acme", &token).0, 200);
}

#[test]
fn an_export_of_the_keys_takes_along_whose_lines_they_are() {
    let home = home("exported");
    let token = home.init();
    sign(&home);
    std::fs::write(home.path("passphrase"), "a passphrase of some length\n").unwrap();
    let passphrase = ["--passphrase-file", "passphrase"];
    home.run(&[&["keys", "export", "keys.age"][..], &passphrase].concat());
    std::fs::rename(home.path("keys"), home.path("former")).unwrap();
    home.run(&[&["keys", "import", "keys.age"][..], &passphrase].concat());
    let server = home.serve(&[]);
    assert!(!server.log.contains("is missing"), "{}", server.log);
    assert_eq!(server.accounts("acme", &token).0, 200);
}
