//! A store that went back while its keys stayed, and what accepting the loss takes away again (EN-4).

mod lost_trusts;

use crate::harness::{Home, Server, homes, homes_once, refuse, sign, succeed};
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

const ACME: &str = "/api/headless/v1/organizations/acme";

/// Calls an operation and returns the status and the body.
fn call(server: &Server, token: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    let key = KEYS.fetch_add(1, Ordering::Relaxed);
    let kind = if path.contains("/chunks") {
        "application/x-ndjson"
    } else {
        "application/json"
    };
    let body = if method == "DELETE" { "" } else { body };
    let trio = if method == "GET" {
        String::new()
    } else if method == "DELETE" {
        format!("X-Reason: a test\r\nX-Confirm: true\r\nIdempotency-Key: lost-test-key-{key:08}\r\n")
    } else {
        format!(
            "Content-Type: {kind}\r\nContent-Length: {}\r\nX-Reason: a test\r\nX-Confirm: true\r\n\
             Idempotency-Key: lost-test-key-{key:08}\r\n",
            body.len()
        )
    };
    let request = format!(
        "{method} {ACME}{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{trio}\
         Connection: close\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn done(server: &Server, token: &str, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() {
        "{}".to_owned()
    } else {
        body.to_string()
    };
    let (status, answer) = call(server, token, method, path, &body);
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    answer
}

fn id(answer: &Value, of: &str) -> String {
    answer[of]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

/// Makes an account and returns its id, its token's id and its token.
fn account(server: &Server, token: &str, name: &str) -> (String, String, String) {
    let body = json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
    let made = done(server, token, "POST", "/service-accounts", &body);
    let account = &made["serviceAccount"];
    (
        account["id"].as_str().unwrap().to_owned(),
        account["tokens"][0]["id"].as_str().unwrap().to_owned(),
        made["token"]["token"].as_str().unwrap().to_owned(),
    )
}

fn user(server: &Server, token: &str, name: &str, directory: &str) -> String {
    let body = json!({ "loginName": name, "directoryId": directory });
    id(&done(server, token, "POST", "/directory/users", &body), "user")
}

/// Replaces a directory by one user.
fn import(server: &Server, token: &str, directory: &str, name: &str) {
    let open = json!({ "format": "jsonl", "mode": "replace", "directoryId": directory });
    let import = id(
        &done(server, token, "POST", "/directory/imports", &open),
        "import",
    );
    let path = format!("/directory/imports/{import}");
    let line = json!({ "type": "user", "loginName": name });
    done(server, token, "POST", &format!("{path}/chunks?sequence=1"), &line);
    done(server, token, "POST", &format!("{path}/apply"), &Value::Null);
    for _ in 0..200 {
        let (_, shown) = call(server, token, "GET", &path, "");
        if shown["import"]["state"] == "applied" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the import is never applied");
}

/// The whole store, kept elsewhere.
fn keep(home: &Home) {
    match home.location() {
        Location::Sqlite(file) => {
            std::fs::copy(file, home.path("kept.db")).unwrap();
        }
        Location::Postgres(_) => batch(
            home,
            "DO $$ DECLARE t text; kept text := current_schema() || '_kept'; BEGIN \
               EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', kept); EXECUTE format('CREATE SCHEMA %I', kept); \
               FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP \
                 EXECUTE format('CREATE TABLE %I.%I AS TABLE %I.%I', kept, t, current_schema(), t); END LOOP; END $$",
        ),
    }
}

/// The store as it was kept, in place of what it is.
fn go_back(home: &Home) {
    match home.location() {
        Location::Sqlite(file) => {
            for end in ["-wal", "-shm"] {
                let mut log = file.clone().into_os_string();
                log.push(end);
                let _ = std::fs::remove_file(log);
            }
            std::fs::copy(home.path("kept.db"), file).unwrap();
        }
        Location::Postgres(_) => batch(
            home,
            "SET session_replication_role = replica; \
             DO $$ DECLARE t text; kept text := current_schema() || '_kept'; BEGIN \
               FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP \
                 EXECUTE format('TRUNCATE %I.%I CASCADE', current_schema(), t); END LOOP; \
               FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP \
                 EXECUTE format('INSERT INTO %I.%I SELECT * FROM %I.%I', current_schema(), t, kept, t); END LOOP; \
               EXECUTE format('DROP SCHEMA %I CASCADE', kept); END $$",
        ),
    }
}

fn batch(home: &Home, sql: &str) {
    let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
    conn.batch(sql).unwrap();
}

fn ends(home: &Home) -> String {
    std::fs::read_to_string(home.path("keys/ends.jsonl")).unwrap()
}

/// An installation from which much is taken away after it was kept, and which then went back.
struct LostInstallation {
    admin: String,
    /// Of an account that was disabled, one whose token was revoked, and one that nothing happened to.
    disabled: String,
    revoked: String,
    stays: String,
    ada: String,
    dora: String,
    dev: String,
    made: String,
}

impl LostInstallation {
    fn of(home: &Home) -> Self {
        let admin = home.init();
        let server = home.serve_unlimited();
        let (leaver, _, disabled) = account(&server, &admin, "leaver");
        let (other, token, revoked) = account(&server, &admin, "other");
        let (_, _, stays) = account(&server, &admin, "stays");
        let ada = user(&server, &admin, "ada@acme.test", "default");
        let bob = user(&server, &admin, "bob@acme.test", "default");
        let dora = user(&server, &admin, "dora@acme.test", "elsewhere");
        let dev = id(
            &done(
                &server,
                &admin,
                "POST",
                "/directory/groups",
                &json!({ "name": "dev" }),
            ),
            "group",
        );
        let member = format!("/directory/groups/{dev}/members/{ada}");
        done(&server, &admin, "PUT", &member, &Value::Null);
        let definition = json!({
            "id": "shells", "name": "shells", "enabled": true, "action": "flag_for_review", "evaluateOn": ["pre_tool"],
            "conditions": { "field": "tool.id", "op": "eq", "value": "shell" },
        });
        let policy = json!({ "definition": definition });
        done(&server, &admin, "POST", "/content-policies", &policy);
        server.stop();
        keep(home);
        let server = home.serve_unlimited();
        let (made, _, _) = account(&server, &admin, "made and disabled later");
        let disable = |id: &str| format!("/service-accounts/{id}/disable");
        done(&server, &admin, "POST", &disable(&made), &Value::Null);
        done(&server, &admin, "POST", &disable(&leaver), &Value::Null);
        let revoke = format!("/service-accounts/{other}/tokens/{token}/revoke");
        done(&server, &admin, "POST", &revoke, &Value::Null);
        done(&server, &admin, "DELETE", &member, &Value::Null);
        let policy = "/content-policies/shells?expectedRevision=1";
        done(&server, &admin, "DELETE", policy, &Value::Null);
        done(
            &server,
            &admin,
            "DELETE",
            &format!("/directory/users/{bob}"),
            &Value::Null,
        );
        import(&server, &admin, "elsewhere", "eve@acme.test");
        server.stop();
        sign(home);
        let named = ends(home);
        for id in [&leaver, &token, &ada, &dora, &bob, &made] {
            assert!(named.contains(id.as_str()), "{id} is missing from {named}");
        }
        for value in ["acme.test", "leaver", "prov_sat_", "flag_for_review"] {
            assert!(!named.contains(value), "{value} stands in {named}");
        }
        go_back(home);
        Self {
            admin,
            disabled,
            revoked,
            stays,
            ada,
            dora,
            dev,
            made,
        }
    }
}

/// Something that happens to the keys folder.
type Spoil = fn(&Home);

fn may(server: &Server, token: &str) -> u16 {
    call(server, token, "GET", "/capabilities", "").0
}

/// Proves EN-2, EN-4.
#[test]
fn what_was_taken_away_stays_away_when_the_store_goes_back_and_the_loss_is_accepted() {
    for home in homes("lost") {
        let lost = LostInstallation::of(&home);
        let (code, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        assert!(code == 1 && said.contains("store accept --lost"), "{said}");
        let lines = std::fs::read_to_string(home.path("keys/checkpoints.jsonl")).unwrap();
        let (code, said) = home.refuse(&["store", "accept", "--lost"]);
        assert!(code == 2 && said.contains("--yes"), "{said}");
        let after = std::fs::read_to_string(home.path("keys/checkpoints.jsonl")).unwrap();
        assert_eq!(after, lines, "nothing is done without a word");
        // One that was cut off behind its first line is run again, and not served before.
        let newest: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(home.path("keys/checkpoints.jsonl"))
            .unwrap();
        let cut = json!({
            "event": "accepted", "storeId": newest["storeId"], "storeEpoch": 1, "time": newest["time"],
        });
        writeln!(file, "{cut}").unwrap();
        let (_, said) = home.refuse(&["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"]);
        assert!(said.contains("store accept --lost"), "{said}");

        let said = home.run(&["store", "accept", "--lost", "--yes"]);
        for expected in [
            "(disabled at",
            ": disabled\n",
            ": revoked\n",
            "membership",
            ": removed\n",
            "policy shells (deleted",
            ": deleted\n",
            ": suspended; delete it by hand\n",
            "(epoch 2)",
        ] {
            assert!(said.contains(expected), "{expected} is missing from {said}");
        }
        let gone = format!("{} (disabled", lost.made);
        let gone = said.lines().find(|line| line.contains(&gone)).unwrap();
        assert!(gone.ends_with("gone with what was lost"), "{gone}");
        assert_eq!(
            home.run(&["store", "accept", "--lost", "--yes"]),
            "The loss is accepted already; start the server.\n"
        );

        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
        let server = home.serve_unlimited();
        assert_eq!(may(&server, &lost.stays), 200, "tokens live on");
        assert_eq!(may(&server, &lost.admin), 200);
        assert_eq!(may(&server, &lost.disabled), 401);
        assert_eq!(may(&server, &lost.revoked), 401);
        let shown = |path: &str| call(&server, &lost.admin, "GET", path, "");
        let members = shown(&format!("/directory/groups/{}/members", lost.dev)).1;
        assert_eq!(members["users"], json!([]), "{}", lost.ada);
        assert_eq!(shown("/content-policies/shells").0, 404);
        let dora = shown(&format!("/directory/users/{}", lost.dora)).1;
        assert_eq!(dora["user"]["status"], "suspended", "{dora}");
        let entries = shown("/audit/events?limit=100").1.to_string();
        assert!(entries.contains("store.loss_accepted"), "{entries}");
        server.stop();
        sign(&home);
        let lines = std::fs::read_to_string(home.path("keys/checkpoints.jsonl")).unwrap();
        let newest: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(newest["storeEpoch"], 2, "checkpoints go on in the new epoch");
        assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
    }
}

/// Proves EN-4.
#[test]
fn where_the_file_cannot_say_all_everybody_is_held_back() {
    let spoils: [(&str, Spoil, &str); 3] = [
        (
            "lost_nofile",
            |home| std::fs::remove_file(home.path("keys/ends.jsonl")).unwrap(),
            "ends.jsonl is not in the keys folder",
        ),
        (
            "lost_damaged",
            |home| std::fs::write(home.path("keys/ends.jsonl"), ends(home) + "{}\n").unwrap(),
            "of ends.jsonl says nothing that this version understands",
        ),
        (
            "lost_late",
            |home| {
                let since = json!({ "event": "since", "time": SystemClock::new().now().plus_secs(3_600) });
                std::fs::write(home.path("keys/ends.jsonl"), format!("{}{since}\n", ends(home))).unwrap();
            },
            "ends.jsonl is whole from",
        ),
    ];
    for (name, spoil, expected) in spoils {
        for home in homes_once(name) {
            let lost = LostInstallation::of(&home);
            spoil(&home);
            let said = home.run(&["store", "accept", "--lost", "--yes"]);
            assert!(said.contains(expected), "{said}");
            let admin = said.split_whitespace().find(|word| word.starts_with("prov_sat_"));
            let server = home.serve_unlimited();
            for token in [&lost.stays, &lost.admin, &lost.disabled, &lost.revoked] {
                assert_eq!(may(&server, token), 401);
            }
            let (status, held) = call(&server, admin.unwrap(), "GET", "/restore/held", "");
            assert_eq!(status, 200);
            assert!(held.to_string().contains("leaver"), "{held}");
            server.stop();
            assert_eq!(home.run(&["store", "check"]), "the store is whole\n");
        }
    }
}

#[test]
fn a_store_that_nothing_is_known_to_have_lost_is_taken_as_it_is_and_a_rehearsal_is_not() {
    for (home, target) in homes("lost_nothing").into_iter().zip(homes("lost_rehearsed")) {
        let admin = home.init();
        let said = home.run(&["store", "accept", "--lost", "--yes"]);
        assert!(said.contains("nothing was taken away"), "{said}");
        let server = home.serve_unlimited();
        assert_eq!(may(&server, &admin), 200);
        server.stop();

        home.run(&["store", "backup", "backup.db"]);
        // What a rehearsal takes away is nobody's loss.
        let with_keys = |words: &[&str]| {
            let mut command = target.command(words);
            command
                .current_dir(&home.dir)
                .env("PROVOST_KEYS_DIR", home.path("keys"))
                .env("PROVOST_RATE_LIMITS_ENABLED", "false");
            command
        };
        let before = ends(&home);
        let restore = ["store", "restore", "backup.db", "--rehearse", "--json"];
        let printed = succeed(with_keys(&restore));
        let made: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
        let token = made["token"].as_str().unwrap();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];
        let server = Server::start(with_keys(&serve), &target.path("stdout"));
        let (id, _, _) = account(&server, token, "leaver");
        done(
            &server,
            token,
            "POST",
            &format!("/service-accounts/{id}/disable"),
            &Value::Null,
        );
        server.stop();
        assert_eq!(ends(&home), before);
        let (code, said) = refuse(with_keys(&["store", "accept", "--lost", "--yes"]));
        assert!(code == 1 && said.contains("is a rehearsal"), "{said}");
    }
}
