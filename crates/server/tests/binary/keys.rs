//! Keys: listing, moving, rotating.

use crate::harness::{Home, get, home, homes};
use provost_kernel::db::{Access, Conn};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use std::os::unix::fs::PermissionsExt;

#[test]
fn exported_keys_open_the_store_after_an_import() {
    for home in homes("export") {
        let token = home.init();
        std::fs::write(home.path("passphrase"), "correct horse battery\n").unwrap();
        std::fs::write(home.path("wrong"), "wrong horse battery\n").unwrap();
        let export = ["keys", "export", "keys.age", "--passphrase-file", "passphrase"];
        home.run(&export);
        let bytes = std::fs::read(home.path("keys.age")).unwrap();
        assert!(bytes.starts_with(b"age-encryption.org/v1\n-> scrypt "));
        assert_eq!(
            std::fs::metadata(home.path("keys.age"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let (_, said) = home.refuse(&export);
        assert!(said.contains("exists"), "{said}");
        assert_eq!(std::fs::read(home.path("keys.age")).unwrap(), bytes);
        let import = ["keys", "import", "keys.age", "--passphrase-file", "passphrase"];
        let (_, said) = home.refuse(&import);
        assert!(said.contains("never overwritten"), "{said}");
        std::fs::rename(home.path("keys"), home.path("old")).unwrap();
        let (_, said) = home.refuse(&["keys", "import", "keys.age", "--passphrase-file", "wrong"]);
        assert!(said.contains("does not open with this passphrase"), "{said}");
        assert!(!home.path("keys").exists());
        home.run(&import);
        let server = home.serve(&[]);
        assert_eq!(server.accounts("acme", &token).0, 200);
    }
}

#[test]
fn a_passphrase_is_never_taken_from_a_pipe_or_too_short() {
    let home = home("phrase");
    home.init();
    let (code, said) = home.refuse(&["keys", "export", "keys.age"]);
    assert!(code == 2 && said.contains("--passphrase-file"), "{said}");
    std::fs::write(home.path("short"), "short\n").unwrap();
    let (_, said) = home.refuse(&["keys", "export", "keys.age", "--passphrase-file", "short"]);
    assert!(said.contains("at least 12"), "{said}");
    assert!(!home.path("keys.age").exists());
}

#[test]
fn old_tokens_work_after_a_rotation_of_the_pepper() {
    for home in homes("rotate") {
        let token = home.init();
        let said = home.run(&["keys", "rotate", "pepper", "--now"]);
        assert!(said.starts_with("pepper-2 was made and is active"), "{said}");
        let listed: serde_json::Value = serde_json::from_str(&home.run(&["keys", "list", "--json"])).unwrap();
        let current = |id: &str| {
            listed
                .as_array()
                .unwrap()
                .iter()
                .find(|key| key["id"] == id)
                .unwrap()["current"]
                .clone()
        };
        assert_eq!(
            (current("pepper-1"), current("pepper-2")),
            (false.into(), true.into())
        );
        let server = home.serve(&[]);
        assert_eq!(server.accounts("acme", &token).0, 200);
        let (code, _) = home.refuse(&["keys", "rotate", "request"]);
        assert_eq!(code, 2);
    }
}

fn state(home: &Home, id: &str) -> (bool, bool) {
    let listed: serde_json::Value = serde_json::from_str(&home.run(&["keys", "list", "--json"])).unwrap();
    let key = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["id"] == id)
        .unwrap();
    (key["current"] == true, key["pending"] == true)
}

/// Proves KY-3.
#[test]
fn a_new_key_waits_until_every_running_server_has_read_it() {
    for home in homes("activate") {
        let token = home.init();
        let (_, said) = home.refuse(&["keys", "activate", "pepper"]);
        assert!(
            said.contains("no pepper key waits; make one with `provost keys rotate pepper`"),
            "{said}"
        );
        let said = home.run(&["keys", "rotate", "pepper"]);
        assert!(
            said.starts_with("pepper-2 was made and waits") && said.contains("provost keys activate pepper"),
            "{said}"
        );
        assert_eq!(
            (state(&home, "pepper-1"), state(&home, "pepper-2")),
            ((true, false), (false, true))
        );
        assert!(home.run(&["keys", "list"]).contains("not yet"));
        let (_, said) = home.refuse(&["keys", "rotate", "pepper"]);
        assert!(said.contains("pepper-2 waits already"), "{said}");
        let running = |ids: &[&str]| {
            let (read, now) = (
                Keys::open(&home.path("keys")).unwrap(),
                SystemClock::new().now().as_ms(),
            );
            let keys: Vec<_> = ids.iter().map(|id| read.fingerprint(id).unwrap()).collect();
            let keys = serde_json::json!(keys);
            let sql = format!(
                "DELETE FROM key_readers; INSERT INTO key_readers (server_id, keys, since, seen_at) VALUES ('other', '{keys}', {now}, {now})"
            );
            Conn::open(&home.location(), Access::Write)
                .unwrap()
                .batch(&sql)
                .unwrap();
        };
        running(&["pepper-1"]);
        let (_, said) = home.refuse(&["keys", "activate", "pepper"]);
        assert!(
            said.contains("1 of the running servers has not read pepper-2 yet"),
            "{said}"
        );
        assert_eq!(state(&home, "pepper-2"), (false, true));
        running(&["pepper-1", "pepper-2"]);
        let said = home.run(&["keys", "activate", "pepper"]);
        assert!(said.starts_with("pepper-2 is active"), "{said}");
        assert_eq!(
            (state(&home, "pepper-1"), state(&home, "pepper-2")),
            ((false, false), (true, false))
        );
        // Nobody is asked.
        home.run(&["keys", "rotate", "pepper"]);
        home.run(&["keys", "activate", "pepper", "--now"]);
        assert_eq!(state(&home, "pepper-3"), (true, false));
        let server = home.serve(&[]);
        assert_eq!(server.accounts("acme", &token).0, 200);
    }
}

#[test]
fn a_key_that_waits_waits_after_an_import_too() {
    let home = home("waits");
    home.init();
    home.run(&["keys", "rotate", "sealing"]);
    std::fs::write(home.path("passphrase"), "correct horse battery\n").unwrap();
    home.run(&["keys", "export", "keys.age", "--passphrase-file", "passphrase"]);
    std::fs::rename(home.path("keys"), home.path("old")).unwrap();
    home.run(&["keys", "import", "keys.age", "--passphrase-file", "passphrase"]);
    assert_eq!(
        (state(&home, "sealing-1"), state(&home, "sealing-2")),
        ((true, false), (false, true))
    );
}

#[test]
fn a_recovery_with_a_new_key_beside_a_server_is_accepted_there() {
    for home in homes("beside") {
        home.init();
        let server = home.serve(&[]);
        for purpose in ["pepper", "audit"] {
            home.run(&["keys", "rotate", purpose, "--now"]);
        }
        let made = home.run(&["recover", "--organization", "acme", "--json"]);
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        assert_eq!(server.accounts("acme", made["token"].as_str().unwrap()).0, 200);
        assert_eq!(get(server.port, "/readyz", None).0, 200);
    }
}
