//! Stores that change while no server has them.

use crate::harness::{Home, Server, homes, post};
use provost_kernel::db::{Access, Conn, Statement};

fn change(home: &Home, sql: &str) {
    let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
    conn.batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {:?}", error.private()));
}

fn count(home: &Home, sql: &'static str) -> i64 {
    let asked: &'static Statement = Box::leak(Box::new(Statement {
        name: "a test",
        sqlite: sql,
        postgres: sql,
        unscoped: Some("a test"),
    }));
    let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
    let found = conn.read(|tx| tx.query_opt(asked, &[], |row| row.get::<i64>(0)));
    found.unwrap().unwrap()
}

fn marks(home: &Home) -> i64 {
    count(
        home,
        "SELECT CAST(COUNT(*) AS BIGINT) FROM installation WHERE name = 'closed'",
    )
}

fn assert_serves(home: &Home, token: &str) {
    let server: Server = home.serve(&[]);
    assert_eq!(server.accounts("default", token).0, 200);
    assert_eq!(marks(home), 0);
    assert_eq!(server.stop(), 0);
}

/// What a disk or a hand may change, and how it is undone.
const CHANGES: [(&str, &str); 12] = [
    (
        "UPDATE directory_users SET permission_role = 'admin'",
        "UPDATE directory_users SET permission_role = NULL",
    ),
    (
        "UPDATE directory_users SET login_name = 'x@acme.test'",
        "UPDATE directory_users SET login_name = 'ada@acme.test'",
    ),
    (
        "INSERT INTO oauth_identities (organization_id, issuer, subject, user_id, created_at) VALUES ('default', 'https://idp.test', 'mallory', 'usr_1', 1)",
        "DELETE FROM oauth_identities",
    ),
    (
        "INSERT INTO mcp_session_tombstones (organization_id, grant_key) VALUES ('default', 'ext|1')",
        "DELETE FROM mcp_session_tombstones",
    ),
    (
        "INSERT INTO automation_settings (organization_id, document, updated_at) VALUES ('default', '{}', 1)",
        "DELETE FROM automation_settings",
    ),
    (
        "UPDATE service_accounts SET description = 'x'",
        "UPDATE service_accounts SET description = NULL",
    ),
    (
        "UPDATE service_accounts SET scopes = 'mcp:read'",
        "UPDATE service_accounts SET scopes = NULL",
    ),
    (
        "UPDATE service_accounts SET owner_console_user_id = ''",
        "UPDATE service_accounts SET owner_console_user_id = NULL",
    ),
    (
        "UPDATE service_account_tokens SET expires_at = expires_at + 1",
        "UPDATE service_account_tokens SET expires_at = expires_at - 1",
    ),
    (
        "UPDATE service_account_tokens SET replay_pending = NOT replay_pending",
        "UPDATE service_account_tokens SET replay_pending = NOT replay_pending",
    ),
    (
        "UPDATE organizations SET name = name || ' '",
        "UPDATE organizations SET name = substr(name, 1, length(name) - 1)",
    ),
    (
        "INSERT INTO organizations (organization_id, name, created_at) VALUES ('more', 'More', 1)",
        "DELETE FROM organizations WHERE organization_id = 'more'",
    ),
];

/// Proves RW-1, ST-2.
#[test]
fn a_store_that_changed_while_it_was_closed_is_not_served() {
    for home in homes("closed") {
        let server = home.serve(&[]);
        let token = server.token();
        let user = r#"{"loginName":"ada@acme.test"}"#;
        let users = "/api/headless/v1/organizations/default/directory/users";
        let (status, made) = post(server.port, users, &token, user);
        assert_eq!(status, 201, "{made}");
        assert_eq!(marks(&home), 0);
        assert_eq!(server.stop(), 0);
        assert_eq!(marks(&home), i64::from(home.is_sqlite()));
        for (done, undone) in CHANGES {
            change(&home, done);
            if home.is_sqlite() {
                for words in [
                    &["serve", "--listen", "127.0.0.1:0"][..],
                    &["init", "--organization", "New"],
                ] {
                    let (code, said) = home.refuse(words);
                    assert!(
                        code == 1
                            && said.contains("changed while it was closed")
                            && said.contains("store accept"),
                        "{done}: {code}: {said}"
                    );
                }
                let (code, said) = home.refuse(&["store", "check"]);
                assert!(
                    code == 1 && said.contains("are not those that were there"),
                    "{done}: {said}"
                );
            }
            change(&home, undone);
        }
        // As it was before, and as it was after another stop.
        assert_serves(&home, &token);
        assert_serves(&home, &token);
        // Where one table is not what it was in a way that no row shows: a name is missing from an index.
        if home.is_sqlite() {
            change(
                &home,
                "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'lookup_id)', 'id)') WHERE name = 'service_account_tokens_by_lookup'",
            );
            let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
            assert_eq!(code, 1, "{said}");
            change(
                &home,
                "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' (id)', ' (lookup_id)') WHERE name = 'service_account_tokens_by_lookup'",
            );
        }
        assert_serves(&home, &token);
    }
}

/// Proves ST-2.
#[test]
fn what_changed_is_served_once_it_is_accepted_or_nobody_knows_better() {
    for home in homes("accepted") {
        let server = home.serve(&[]);
        let token = server.token();
        assert_eq!(server.stop(), 0);
        // Provost's own commands act on a closed store.
        home.init();
        home.run(&["recover", "--organization", "default"]);
        assert_serves(&home, &token);
        change(&home, "UPDATE service_accounts SET description = 'by hand'");
        let said = home.run(&["store", "accept"]);
        let accepted = "SELECT CAST(COUNT(*) AS BIGINT) FROM audit_entries WHERE action = 'store.accepted'";
        // PostgreSQL has no note of what it was; the proofs of the rows say it on both engines.
        assert!(said.contains("taken as it is"), "{said}");
        assert_eq!(count(&home, accepted), 1);
        let said = home.run(&["store", "accept"]);
        assert!(said.contains("Nothing says"), "{said}");
        assert_eq!(count(&home, accepted), 1);
        assert_serves(&home, &token);
        // A server that is killed leaves no mark behind.
        let server = home.serve(&[]);
        server.signal("KILL");
        drop(server);
        change(&home, "UPDATE service_accounts SET description = 'by hand again'");
        assert_serves(&home, &token);
        // A mark of another version is of other tables; one that cannot be read is damage.
        if home.is_sqlite() {
            change(
                &home,
                "UPDATE installation SET value = '0' || substr(value, instr(value, ' ')) WHERE name = 'closed'; UPDATE service_accounts SET description = 'x'",
            );
            assert_serves(&home, &token);
            change(&home, "UPDATE installation SET value = '' WHERE name = 'closed'");
            let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
            assert!(code == 1 && said.contains("cannot be read"), "{said}");
            home.run(&["store", "accept"]);
            // A second server is kept out, and so is who would accept beside one.
            let server = home.serve(&[]);
            let (code, said) = home.refuse(&["store", "accept"]);
            assert!(code == 1 && said.contains("in use by"), "{code}: {said}");
            assert_eq!(server.stop(), 0);
        }
    }
}

/// Nobody waits three years: the store says that a clock which was ahead by them kept an instant.
#[test]
fn an_operator_says_that_the_clock_is_right() {
    const ACCEPTED: &str =
        "SELECT CAST(COUNT(*) AS BIGINT) FROM audit_entries WHERE action = 'store.clock_accepted'";
    for home in homes("clock_accepted") {
        let server = home.serve(&[]);
        let token = server.token();
        assert_eq!(server.stop(), 0);
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let ahead = now + 3 * 365 * 86_400_000;
        change(
            &home,
            &format!(
                "INSERT INTO installation (name, value) VALUES ('clock', '{ahead} 0 0 0 0') \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            ),
        );
        let mut server = home.serve(&[]);
        server.wait_for("the clock of this machine is doubted");
        // What had run out by the kept instant has run out (CK-3).
        assert_eq!(server.accounts("default", &token).0, 401);
        assert_eq!(server.stop(), 0);
        assert_eq!(count(&home, ACCEPTED), 0);
        let said = home.run(&["store", "accept", "--clock"]);
        assert!(
            said.starts_with("The clock of this machine is taken as right"),
            "{said}"
        );
        assert_eq!(count(&home, ACCEPTED), 1);
        let server = home.serve(&[]);
        assert!(!server.log.contains("is doubted"), "{}", server.log);
        // Nothing was written down as expired meanwhile.
        assert_eq!(server.accounts("default", &token).0, 200);
        assert_eq!(server.stop(), 0);
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}

#[test]
fn a_trigger_of_another_hand_is_said_at_a_start() {
    for home in homes("strange_trigger") {
        assert_eq!(home.serve(&[]).stop(), 0);
        let (made, gone) = if home.is_sqlite() {
            let made = "CREATE TRIGGER another AFTER INSERT ON audit_entries BEGIN SELECT 1; END";
            (made, "DROP TRIGGER another")
        } else {
            let made = "CREATE TRIGGER another BEFORE UPDATE ON service_accounts FOR EACH ROW EXECUTE FUNCTION \
                        suppress_redundant_updates_trigger()";
            (made, "DROP TRIGGER another ON service_accounts")
        };
        change(&home, made);
        let mut server = home.serve(&[]);
        server.wait_for("has a trigger or rule another that Provost did not make");
        assert_eq!(server.stop(), 0);
        let (code, said) = home.refuse(&["store", "check"]);
        assert!(
            code == 1 && said.contains("a trigger or rule another"),
            "{code}: {said}"
        );
        change(&home, gone);
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}
