//! The offline verification of the audit log.

use crate::harness::{Home, bare, home, homes, post, refuse, succeed};
use provost_kernel::db::{Access, Conn};

/// Makes a store whose organization has five entries, and leaves no server behind.
fn filled(home: &Home) {
    let server = home.serve(&[]);
    let token = server.token();
    for name in ["a", "b", "c", "d"] {
        let body = format!(r#"{{"name":"{name}","permissionRole":"viewer","scopes":["audit:read"]}}"#);
        let (status, answer) = post(
            server.port,
            "/api/headless/v1/organizations/default/service-accounts",
            &token,
            &body,
        );
        assert_eq!(status, 201, "{answer}");
    }
    let (status, export) = crate::harness::get(
        server.port,
        "/api/headless/v1/organizations/default/audit/export",
        Some(&token),
    );
    assert_eq!(status, 200, "{export}");
    std::fs::write(home.path("audit.jsonl"), export).unwrap();
    assert_eq!(server.stop(), 0);
}

#[test]
fn an_untouched_log_verifies_and_the_limits_are_named() {
    for home in homes("verify") {
        filled(&home);
        let said = home.run(&["audit", "verify"]);
        assert!(
            said.contains("the audit log of default has 6 entries in an unbroken chain"),
            "{said}"
        );
        assert!(
            said.contains("its head carries this installation's MAC"),
            "{said}"
        );
        assert!(said.contains("rolled back as a whole"), "{said}");
        let export = succeed(bare(&[
            "audit",
            "verify",
            "--export",
            home.path("audit.jsonl").to_str().unwrap(),
        ]));
        assert!(export.contains("no checkpoint was given"), "{export}");
        let (_, said) = home.refuse(&["audit", "verify", "--organization", "nobody"]);
        assert!(said.contains("no such organization"), "{said}");
    }
}

#[test]
fn a_changed_export_names_the_first_change() {
    let home = home("exported");
    filled(&home);
    let original = std::fs::read_to_string(home.path("audit.jsonl")).unwrap();
    let lines: Vec<&str> = original.lines().collect();
    assert_eq!(lines.len(), 5);
    let edited = lines[2].replace(
        "\"createHeadlessServiceAccount\"",
        "\"createHeadlessServiceAccounT\"",
    );
    for (changed, expected) in [
        (
            vec![lines[0], lines[1], &edited, lines[3], lines[4]],
            "(number 3) was edited",
        ),
        (
            vec![lines[0], lines[1], lines[3], lines[4]],
            "number 3 was deleted",
        ),
        (
            vec![lines[0], lines[1], lines[1], lines[2]],
            "(number 2) was inserted",
        ),
        (vec![lines[0], lines[2], lines[1], lines[3]], "(number 3)"),
    ] {
        std::fs::write(home.path("changed.jsonl"), changed.join("\n")).unwrap();
        let (code, said) = refuse(bare(&[
            "audit",
            "verify",
            "--export",
            home.path("changed.jsonl").to_str().unwrap(),
        ]));
        assert!(code == 1 && said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn a_changed_store_names_the_first_change() {
    for home in homes("stored") {
        filled(&home);
        let change = |sql: &str| {
            Conn::open(&home.location(), Access::Write)
                .unwrap()
                .batch(sql)
                .unwrap();
        };
        for (sql, expected) in [
            (
                "UPDATE chain_heads SET seq = seq + 1 WHERE organization_id = 'default'",
                "MAC",
            ),
            (
                "DELETE FROM audit_entries WHERE organization_id = 'default' AND seq = 6",
                "head",
            ),
            (
                "UPDATE audit_entries SET entry = REPLACE(entry, '\"a\"', '\"A\"') WHERE organization_id = 'default' AND seq = 2",
                "(number 2) was edited",
            ),
            (
                "DELETE FROM audit_entries WHERE organization_id = 'default' AND seq = 1",
                "number 1 was deleted",
            ),
        ] {
            change(sql);
            let (code, said) = home.refuse(&["audit", "verify"]);
            assert!(code == 1 && said.contains(expected), "{sql}: {said}");
            assert!(said.ends_with("provost: the audit log was changed\n"), "{said}");
        }
    }
}

#[test]
fn a_checkpoint_that_was_kept_elsewhere_shows_a_truncation() {
    for (home, target) in homes("kept").into_iter().zip(homes("keptrestored")) {
        filled(&home);
        home.run(&["store", "backup", "backup.db"]);
        // A restore signs checkpoints over every chain.
        let mut restore = target.command(&["store", "restore", home.path("backup.db").to_str().unwrap()]);
        restore.env("PROVOST_KEYS_DIR", home.path("keys"));
        succeed(restore);
        let verify = |words: &[&str]| {
            let mut all = vec!["audit", "verify"];
            all.extend(words);
            let mut command = target.command(&all);
            command.env("PROVOST_KEYS_DIR", home.path("keys"));
            command
        };
        let said = succeed(verify(&[]));
        assert!(
            said.contains(
                "1 signed checkpoints agree, the largest over the first 7 entries; no entry came after it"
            ),
            "{said}"
        );
        let checkpoints = home.path("keys/checkpoints.jsonl");
        let lines = std::fs::read_to_string(&checkpoints).unwrap();
        let line = lines
            .lines()
            .find(|line| line.contains("\"organizationId\":\"default\""))
            .unwrap();
        std::fs::write(home.path("anchor"), line).unwrap();
        let anchor = home.path("anchor");
        let export = [
            "--export",
            home.path("audit.jsonl").to_str().unwrap(),
            "--checkpoint",
            anchor.to_str().unwrap(),
        ]
        .map(str::to_owned);
        let export: Vec<&str> = export.iter().map(String::as_str).collect();
        let (_, said) = refuse(verify(&export));
        assert!(said.contains('7'), "{said}");
        let mut unsigned = bare(&["audit", "verify"]);
        unsigned.args(&export).current_dir(&home.dir);
        let (code, said) = refuse(unsigned);
        assert!(code == 2 && said.contains("--public-keys"), "{said}");
    }
}
