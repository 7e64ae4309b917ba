//! Backups, restores, moves, checks.

use crate::harness::{Home, Server, bare, get, home, homes, post, refuse, succeed};
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Returns a command that restores a backup of `home` into `target`, with the keys of `home`.
fn restore(home: &Home, target: &Home, words: &[&str]) -> Command {
    let mut all = vec!["store", "restore"];
    all.extend(words);
    let mut command = target.command(&all);
    command
        .current_dir(&home.dir)
        .env("PROVOST_KEYS_DIR", home.path("keys"));
    command
}

fn serve_restored(home: &Home, target: &Home) -> Server {
    let mut command = target.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
    command.env("PROVOST_KEYS_DIR", home.path("keys"));
    Server::start(command, &target.path("stdout"))
}

/// Puts sessions of every state into a store, with and without a client.
fn put_sessions(home: &Home, organization: &str) {
    let session = |number: i64, client: &str, state: i64| {
        format!(
            "('{organization}', 'mcps_{number}', {number}, 'grant {number}', 1, 1, {client}, 1, 1, 9000000000000, {state})"
        )
    };
    let sessions = [
        session(1, "'client'", 0),
        session(2, "NULL", 0),
        session(3, "'client'", 1),
        session(4, "'other'", 2),
    ];
    let sql = format!(
        "INSERT INTO mcp_session_kinds (organization_id, kind, actor_type, scopes) VALUES ('{organization}', 1, 'agent', 'mcp:read'); \
         INSERT INTO mcp_session_actors (organization_id, actor, display, service_account_id, console_user_id, search) VALUES ('{organization}', 1, 'Robot', '', '', 'robot'); \
         INSERT INTO mcp_session_clients (organization_id, mcp_client_id, search) VALUES ('{organization}', 'client', 'client'), ('{organization}', 'other', 'other'); \
         INSERT INTO mcp_sessions (organization_id, id, seq, grant_key, kind, actor, mcp_client_id, issued_at, last_used_at, expires_at, state) VALUES {}",
        sessions.join(", ")
    );
    put(home, &sql);
}

/// Puts rows into a store as a server would, with their proofs.
fn put(home: &Home, sql: &str) {
    let keys = Keys::open(&home.path("keys")).unwrap();
    let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
    conn.batch(sql).unwrap();
    let now = SystemClock::new().now();
    assert!(
        provost_server::proofs::renew(&provost_server::areas::ALL, &mut conn, &keys, now)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_backup_of_a_running_server_is_restored_elsewhere_without_its_tokens() {
    for (home, targets) in homes("backup")
        .into_iter()
        .zip([homes("restored1"), homes("restored2")])
    {
        let server = home.serve(&[]);
        let old = server.token();
        let acme = home.init();
        put_sessions(&home, "acme");
        let said = home.run(&["store", "backup", "backup.db"]);
        for key in ["pepper/pepper-1", "checkpoint/checkpoint-1"] {
            assert!(said.contains(key), "{said}");
        }
        assert_eq!(
            std::fs::metadata(home.path("backup.db"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let (_, again) = home.refuse(&["store", "backup", "backup.db"]);
        assert!(again.contains("exists"), "{again}");
        server.stop();
        for target in &targets {
            let printed = succeed(restore(&home, target, &["backup.db", "--json", "--replace-live"]));
            let made: Vec<Value> = printed
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let organizations: Vec<_> = made
                .iter()
                .map(|account| account["organizationId"].as_str().unwrap())
                .collect();
            assert_eq!(organizations, ["acme", "default"]);
            let server = serve_restored(&home, target);
            assert_eq!(server.stdout, "");
            assert_eq!(server.accounts("default", &old).0, 401);
            assert_eq!(server.accounts("acme", &acme).0, 401);
            for account in &made {
                let organization = account["organizationId"].as_str().unwrap();
                let (status, body) = server.accounts(organization, account["token"].as_str().unwrap());
                assert_eq!((status, body["total"].as_i64()), (200, Some(2)));
            }
            server.stop();
            let mut check = target.command(&["store", "check"]);
            check.env("PROVOST_KEYS_DIR", home.path("keys"));
            assert_eq!(succeed(check), "the store is whole\n");
            let (_, said) = refuse(restore(&home, target, &["backup.db", "--replace-live"]));
            assert!(said.contains("already") || said.contains("not empty"), "{said}");
        }
        // The restored stores are measured against lines of their own; the first one was given up for the second.
        let lines = std::fs::read_to_string(home.path("keys/checkpoints.jsonl")).unwrap();
        let epochs: Vec<i64> = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["storeEpoch"].as_i64())
            .collect();
        assert_eq!(epochs.iter().max(), Some(&i64::try_from(targets.len()).unwrap()));
    }
}

#[test]
fn a_second_restore_takes_the_place_of_the_first() {
    let (home, first, second) = (
        home("overtaken"),
        crate::harness::home("one"),
        crate::harness::home("two"),
    );
    home.init();
    home.run(&["store", "backup", "backup.db"]);
    succeed(restore(&home, &first, &["backup.db"]));
    serve_restored(&home, &first).stop();
    let said = succeed(restore(&home, &second, &["backup.db", "--replace-live"]));
    assert!(said.starts_with("The store was restored (epoch 2).\n"), "{said}");
    let mut command = first.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
    command.env("PROVOST_KEYS_DIR", home.path("keys"));
    let (code, said) = refuse(command);
    assert!(code == 1 && said.contains("was given up"), "{said}");
    serve_restored(&home, &second);
    // The store that the backup was taken of is the past as well.
    let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 1 && said.contains("was given up"), "{said}");
}

#[test]
fn a_restore_into_a_store_that_is_there_changes_neither() {
    for (home, other) in homes("source").into_iter().zip(homes("occupied")) {
        home.init();
        home.run(&["store", "backup", "backup.db"]);
        let kept = other.init();
        let (code, said) = refuse(restore(&home, &other, &["backup.db"]));
        assert!(
            code == 1 && (said.contains("already") || said.contains("not empty")),
            "{said}"
        );
        assert_eq!(other.serve(&[]).accounts("acme", &kept).0, 200);
        home.serve(&[]);
        let lines = std::fs::read_to_string(home.path("keys/checkpoints.jsonl")).unwrap();
        assert!(
            !lines.contains("restored") && !lines.contains("retired"),
            "{lines}"
        );
    }
}

#[test]
fn a_restore_that_keeps_tokens_says_what_that_means() {
    let (home, target) = (home("keep"), home("kept"));
    let token = home.init();
    home.run(&["store", "backup", "."]);
    let backup = std::fs::read_dir(&home.dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let backup = backup
        .into_iter()
        .find(|name| {
            std::path::Path::new(name)
                .extension()
                .is_some_and(|end| end == "db")
        })
        .unwrap();
    let output = restore(&home, &target, &[&backup, "--keep-tokens"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .starts_with("warning: everybody and every token")
    );
    let server = serve_restored(&home, &target);
    assert_eq!(server.accounts("acme", &token).0, 200);
}

const API: &str = "/api/headless/v1/organizations/default";

/// Sends a change and returns what was answered.
fn change(server: &Server, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = post(server.port, &format!("{API}{path}"), token, &body.to_string());
    (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
}

fn read(server: &Server, token: &str, path: &str) -> (u16, Value) {
    let (status, answer) = get(server.port, &format!("{API}{path}"), Some(token));
    (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
}

/// Makes an account, a user with a role, a client and a link, and returns their ids and the account's token.
fn populate(home: &Home, server: &Server, admin: &str) -> ([String; 4], String) {
    let account = json!({ "name": "robot", "permissionRole": "operator", "scopes": ["policies:read"] });
    let (status, account) = change(server, admin, "/service-accounts", &account);
    assert_eq!(status, 201, "{account}");
    let user = json!({ "loginName": "ada@acme.test", "permissionRole": "operator" });
    let (status, user) = change(server, admin, "/directory/users", &user);
    assert_eq!(status, 201, "{user}");
    let client = json!({ "name": "Editor", "redirectUris": ["https://editor.test/back"],
        "grantTypes": ["authorization_code"], "scopes": ["policies:read"], "tokenEndpointAuthMethod": "none" });
    let (status, client) = change(server, admin, "/mcp/clients", &client);
    assert_eq!(status, 201, "{client}");
    let trust = json!({
        "name": "deploy", "kind": "github", "issuer": "https://token.actions.githubusercontent.com",
        "serviceAccountId": account["serviceAccount"]["id"],
        "claims": [{ "claim": "repository_id", "value": "74" }],
    });
    let (status, trust) = change(server, admin, "/workload-trusts", &trust);
    assert_eq!(status, 201, "{trust}");
    let ids = [
        &account["serviceAccount"]["id"],
        &user["user"]["id"],
        &client["id"],
        &trust["workloadTrust"]["id"],
    ];
    let ids = ids.map(|id| id.as_str().unwrap().to_owned());
    let sql = format!(
        "INSERT INTO oauth_identities (organization_id, issuer, subject, user_id, created_at) VALUES ('default', 'https://idp.test', 'ada', '{}', 1)",
        ids[1]
    );
    put(home, &sql);
    (ids, account["token"]["token"].as_str().unwrap().to_owned())
}

/// Proves RH-1, RH-3.
#[test]
fn a_restore_holds_back_everybody_until_an_administrator_releases_them() {
    for (home, target) in homes("holds").into_iter().zip(homes("held")) {
        let server = home.serve(&[]);
        let admin = server.token();
        let ([account, user, client, trust], token) = populate(&home, &server, &admin);
        home.run(&["store", "backup", "backup.db"]);
        server.stop();
        let printed = succeed(restore(&home, &target, &["backup.db", "--json"]));
        let made: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
        let new = made["token"].as_str().unwrap();
        let server = serve_restored(&home, &target);
        let (status, held) = read(&server, new, "/restore/held");
        assert_eq!((status, held["total"].as_i64()), (200, Some(6)), "{held}");
        let kinds: Vec<&str> = held["held"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["kind"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "service_account",
                "service_account",
                "user",
                "mcp_client",
                "identity_link",
                "workload_trust"
            ]
        );
        let (_, page) = read(&server, new, "/restore/held?limit=2&offset=2");
        assert_eq!(page["held"].as_array().unwrap().len(), 2);
        assert_eq!(page["held"][0]["id"], user.as_str());
        let (_, shown) = read(&server, new, &format!("/service-accounts/{account}"));
        let shown = &shown["serviceAccount"];
        assert_eq!(
            (&shown["status"], &shown["disabledReason"]),
            (&json!("disabled"), &json!("restored"))
        );
        assert_eq!(
            read(&server, new, &format!("/directory/users/{user}")).1["user"]["status"],
            "suspended"
        );
        assert_eq!(read(&server, &token, "/policies").0, 401);
        // Nobody acts by an accident: not without confirmation, not by a wrong id, not partly.
        let ids = json!({ "ids": [account] });
        assert_eq!(change(&server, new, "/restore/release", &ids).0, 400);
        let wrong = json!({ "ids": [account, "sa_00000000000000000000000000"], "confirm": true });
        assert_eq!(change(&server, new, "/restore/release", &wrong).0, 404);
        let both = json!({ "ids": [account], "all": true, "confirm": true });
        assert_eq!(change(&server, new, "/restore/release", &both).0, 400);
        assert_eq!(read(&server, new, "/restore/held").1["total"], 6);
        // One whom somebody keeps out stays out when the others are released.
        let disabled = change(
            &server,
            new,
            &format!("/service-accounts/{account}/disable"),
            &json!({ "reason": "a test" }),
        );
        assert_eq!(disabled.0, 200);
        assert_eq!(disabled.1["serviceAccount"].get("disabledReason"), None);
        let all = json!({ "all": true, "confirm": true });
        let (status, released) = change(&server, new, "/restore/release", &all);
        assert_eq!(status, 200, "{released}");
        assert_eq!(released["userIds"], json!([user]));
        assert_eq!(released["mcpClientIds"], json!([client]));
        assert_eq!(released["workloadTrustIds"], json!([trust]));
        assert_eq!(released["serviceAccountIds"].as_array().unwrap().len(), 1);
        assert_eq!(read(&server, new, "/restore/held").1["total"], 0);
        assert_eq!(
            read(&server, new, &format!("/directory/users/{user}")).1["user"]["status"],
            "active"
        );
        let (_, shown) = read(&server, new, &format!("/service-accounts/{account}"));
        assert_eq!(shown["serviceAccount"]["status"], "disabled");
        // One entry says who acts again.
        let (_, log) = read(
            &server,
            new,
            "/audit/events?action=releaseHeadlessRestoreHeld&outcome=allowed",
        );
        let entries: Vec<&Value> = log["events"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|entry| entry["outcome"]["status"] == 200)
            .collect();
        assert_eq!(entries.len(), 1, "{log}");
        server.stop();
    }
}

/// Proves RH-2.
#[test]
fn nobody_releases_what_could_do_more_than_they_can() {
    let (home, target) = (home("stronger"), crate::harness::home("weaker"));
    let server = home.serve(&[]);
    let admin = server.token();
    let ([account, ..], _) = populate(&home, &server, &admin);
    home.run(&["store", "backup", "backup.db"]);
    server.stop();
    let printed = succeed(restore(&home, &target, &["backup.db", "--json"]));
    let made: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    let new = made["token"].as_str().unwrap();
    let server = serve_restored(&home, &target);
    let clerk = json!({ "name": "clerk", "permissionRole": "admin", "scopes": ["service_accounts:write", "policies:read"] });
    let (status, clerk) = change(&server, new, "/service-accounts", &clerk);
    assert_eq!(status, 201, "{clerk}");
    let weak = clerk["token"]["token"].as_str().unwrap();
    let (status, refused) = change(
        &server,
        weak,
        "/restore/release",
        &json!({ "all": true, "confirm": true }),
    );
    assert_eq!((status, &refused["code"]), (403, &json!("escalation_forbidden")));
    assert_eq!(read(&server, weak, "/restore/held").1["total"], 6);
    let own = json!({ "ids": [account], "confirm": true });
    assert_eq!(change(&server, weak, "/restore/release", &own).0, 200);
}

#[test]
fn a_store_that_a_server_refuses_is_not_moved() {
    let mut homes = homes("behind").into_iter();
    let home = homes.next().unwrap();
    let Some(target) = homes.next() else { return };
    home.init();
    home.run(&["store", "backup", "backup.db"]);
    let other = crate::harness::home("ahead");
    // The restore takes the place of the store that the backup was taken of.
    succeed(restore(&home, &other, &["backup.db", "--replace-live"]));
    let Location::Postgres(url) = target.location() else {
        panic!("the second engine is PostgreSQL")
    };
    std::fs::write(home.path("url"), url.expose()).unwrap();
    let data = home.path("data");
    let words = [
        "store",
        "move",
        "--from",
        data.to_str().unwrap(),
        "--to-file",
        "url",
    ];
    let (code, said) = home.refuse(&words);
    assert!(code == 1 && said.contains("store restore"), "{said}");
    std::fs::rename(home.path("keys"), home.path("elsewhere")).unwrap();
    let (code, said) = home.refuse(&words);
    assert!(code == 1 && said.contains("--keys-dir"), "{said}");
}

#[test]
fn a_restore_without_the_keys_or_of_something_else_leaves_nothing() {
    let (home, target) = (home("nokeys"), home("nothing"));
    home.init();
    home.run(&["store", "backup", "backup.db"]);
    let mut other = bare(&["init", "--organization", "B"]);
    other
        .current_dir(&home.dir)
        .env("PROVOST_DATA_DIR", home.path("b"))
        .env("PROVOST_KEYS_DIR", home.path("b-keys"));
    succeed(other);
    let mut command = restore(&home, &target, &["backup.db"]);
    command.env("PROVOST_KEYS_DIR", home.path("b-keys"));
    let (_, said) = refuse(command);
    assert!(
        said.contains("the keys are those of another installation"),
        "{said}"
    );
    std::fs::write(
        home.path("text.db"),
        "this is no database, but it is long enough to be looked at",
    )
    .unwrap();
    let (_, said) = refuse(restore(
        &home,
        &target,
        &[home.path("text.db").to_str().unwrap(), "--unsigned"],
    ));
    assert_eq!(
        said,
        format!(
            "provost: {} is damaged, or is no SQLite file\n",
            home.path("text.db").display()
        )
    );
    let left: Vec<_> = std::fs::read_dir(target.path("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["provost.lock"]);
}

#[test]
fn a_moved_store_serves_the_same_tokens_from_postgresql() {
    let mut homes = homes("move").into_iter();
    let home = homes.next().unwrap();
    let Some(target) = homes.next() else { return };
    let server = home.serve(&[]);
    let token = server.token();
    home.init();
    put_sessions(&home, "default");
    server.stop();
    let Location::Postgres(url) = target.location() else {
        panic!("the second engine is PostgreSQL")
    };
    std::fs::write(home.path("url"), url.expose()).unwrap();
    let data = home.path("data");
    let words = [
        "store",
        "move",
        "--from",
        data.to_str().unwrap(),
        "--to-file",
        "url",
    ];
    let said = home.run(&words);
    assert!(said.contains("rows were copied and counted"), "{said}");
    let (_, again) = home.refuse(&words);
    assert!(again.contains("was moved"), "{again}");
    let server = serve_restored(&home, &target);
    let (status, body) = server.accounts("default", &token);
    assert_eq!((status, body["total"].as_i64()), (200, Some(1)));
    assert_eq!(body["serviceAccounts"][0]["allOfRole"], true);
    server.stop();
    for (words, expected) in [
        (["store", "check"], "the store is whole"),
        (["audit", "verify"], "in an unbroken chain"),
    ] {
        let mut command = target.command(&words);
        command.env("PROVOST_KEYS_DIR", home.path("keys"));
        let said = succeed(command);
        assert!(said.contains(expected), "{said}");
    }
}

/// Proves PF-5.
#[test]
fn a_backup_is_restored_as_it_was_written_or_by_the_operators_word() {
    for (home, targets) in homes("mac").into_iter().zip([homes("mac1"), homes("mac2")]) {
        home.init();
        home.run(&["store", "backup", "backup.db"]);
        let written = std::fs::read(home.path("backup.db")).unwrap();
        let mac = std::fs::read_to_string(home.path("backup.db.mac")).unwrap();
        let target = &targets[usize::from(!home.is_sqlite())];
        let refused = |words: &[&str], expected: &str| {
            let (code, said) = refuse(restore(&home, target, words));
            assert!(code == 1 && said.contains(expected), "{said}");
        };
        // One letter of a role, as an editor of the file would.
        let mut changed = written.clone();
        let place = changed.windows(5).position(|bytes| bytes == b"admin").unwrap();
        changed[place..place + 5].copy_from_slice(b"Admin");
        std::fs::write(home.path("backup.db"), &changed).unwrap();
        for words in [&["backup.db"][..], &["backup.db", "--unsigned"]] {
            refused(words, "is not the one that its MAC");
        }
        std::fs::write(home.path("backup.db"), &written).unwrap();
        for (text, expected) in [
            ("", "cannot be understood"),
            (
                &mac.replace("audit-1", "audit-7"),
                "the key audit-7, which is not",
            ),
            (
                &mac.replace("\"mac\":\"", "\"mac\":\"0"),
                "is not the one that its MAC",
            ),
        ] {
            std::fs::write(home.path("backup.db.mac"), text).unwrap();
            refused(&["backup.db", "--unsigned"], expected);
        }
        std::fs::remove_file(home.path("backup.db.mac")).unwrap();
        refused(&["backup.db"], "is restored with --unsigned");
        succeed(restore(&home, target, &["backup.db", "--unsigned"]));
        let said = Conn::open(&target.location(), Access::Write)
            .unwrap()
            .read(|tx| tx.query(&RESTORED, &[], |row| row.get::<String>(0)));
        let said = said.unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.iter().all(|entry| entry.contains("/unsigned")), "{said:?}");
    }
}

provost_kernel::statements! {
    /// What restores say of themselves.
    RESTORED = unscoped("a test") "SELECT entry FROM audit_entries WHERE action = 'store.restored'";
}

/// Proves PF-3.
#[test]
fn a_check_finds_what_is_wrong() {
    for home in homes("check") {
        home.init();
        put_sessions(&home, "acme");
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
        let change = |sql: &str| {
            Conn::open(&home.location(), Access::Write)
                .unwrap()
                .batch(sql)
                .unwrap();
        };
        for (sql, undo, expected) in [
            (
                "UPDATE chain_heads SET event_sequence = event_sequence + 1 WHERE organization_id = 'acme'",
                "UPDATE chain_heads SET event_sequence = event_sequence - 1 WHERE organization_id = 'acme'",
                "the head of the audit log of acme does not carry",
            ),
            (
                "UPDATE audit_entries SET seq = 7 WHERE organization_id = 'acme' AND seq = 1",
                "UPDATE audit_entries SET seq = 1 WHERE organization_id = 'acme' AND seq = 7",
                "the audit log of acme has 1 entries from number 7 to 7",
            ),
            (
                "UPDATE service_accounts SET permission_role = 'viewer'",
                "UPDATE service_accounts SET permission_role = 'admin'",
                "of the table service_accounts, of acme, was changed from outside",
            ),
            (
                "UPDATE service_accounts SET deleted_at = 1",
                "UPDATE service_accounts SET deleted_at = NULL",
                "belongs to a deleted account",
            ),
            (
                "INSERT INTO service_account_tokens (organization_id, id, service_account_id, lookup_id, name, token_prefix, mac, pepper_id, created_at, updated_at, expires_at, self_rotated, replay_pending) \
                 SELECT organization_id, 'sat_2', service_account_id, 'x', name, token_prefix, mac, pepper_id, created_at, updated_at, expires_at, self_rotated, replay_pending FROM service_account_tokens",
                "DELETE FROM service_account_tokens WHERE id = 'sat_2'",
                "has 2 current tokens",
            ),
        ] {
            change(sql);
            let (code, said) = home.refuse(&["store", "check"]);
            assert!(code == 1 && said.contains(expected), "{sql}: {said}");
            change(undo);
        }
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}

#[test]
fn a_check_fails_on_a_damaged_file() {
    let home = home("damaged");
    home.init();
    let file = home.path("data/provost.db");
    let mut bytes = std::fs::read(&file).unwrap();
    for place in (4096 * 3..bytes.len()).step_by(64) {
        bytes[place] ^= 0x55;
    }
    std::fs::write(&file, bytes).unwrap();
    let (code, said) = home.refuse(&["store", "check"]);
    assert_eq!(code, 1, "{said}");
    std::fs::write(
        &file,
        "no database at all, but long enough that somebody reads it as one",
    )
    .unwrap();
    assert_eq!(home.refuse(&["store", "check"]).0, 1);
    let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        code == 1 && said.contains("is damaged, or is no SQLite file"),
        "{said}"
    );
}

#[test]
fn a_backup_under_load_is_consistent() {
    for home in homes("load") {
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        command.env("PROVOST_RATE_LIMITS_ENABLED", "false");
        let server = Server::start(command, &home.path("stdout"));
        let token = server.token();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (token, done, port) = (&token, &done, server.port);
                scope.spawn(move || {
                    let mut count = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let body = format!(r#"{{"name":"w{writer}-{count}","permissionRole":"viewer","scopes":["audit:read"]}}"#);
                        let (status, answer) =
                            post(port, "/api/headless/v1/organizations/default/service-accounts", token, &body);
                        assert_eq!(status, 201, "{answer}");
                        count += 1;
                    }
                });
            }
            // The writers end even when a backup fails.
            let _end = End(&done);
            for round in 0..3 {
                home.run(&["store", "backup", &format!("backup{round}.db")]);
            }
        });
        for round in 0..3 {
            let folder = home.path(&format!("copy{round}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::copy(home.path(&format!("backup{round}.db")), folder.join("provost.db")).unwrap();
            // Without its marker the place of the history would be another one (HS-13).
            std::fs::create_dir(folder.join("history")).unwrap();
            let marker =
                ["data", "provost-data"].map(|data| home.path(&format!("{data}/history/place.json")));
            let marker = marker.iter().find(|marker| marker.exists()).unwrap();
            std::fs::copy(marker, folder.join("history/place.json")).unwrap();
            let mut check = bare(&["store", "check", "--data-dir", folder.to_str().unwrap()]);
            check.env("PROVOST_KEYS_DIR", home.path("keys"));
            assert_eq!(succeed(check), "the store is whole\n");
        }
    }
}

struct End<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
