//! Keys: listing, moving, rotating.

use crate::harness::{home, homes};
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
        let said = home.run(&["keys", "rotate", "pepper"]);
        assert!(said.starts_with("pepper-2 was made. Restart"), "{said}");
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
