//! What another hand does to rows that decide rights is found, and nothing else is (PF-1 to PF-4).

use crate::support::{App, Reply, each, fresh_key};
use provost_kernel::db::{Access, Conn};
use provost_server::areas::ALL;
use provost_server::proofs::{self, Fault, Finding};
use serde_json::json;
use std::sync::Arc;

/// Does something beside the server, as whoever runs the database could.
fn beside(app: &App, sql: &str) {
    let location = app.location();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Conn::open(&location, Access::Write).unwrap().batch(sql));
        let done = run.join().unwrap();
        done.unwrap_or_else(|error| panic!("{sql}: {:?}", error.private()));
    });
}

/// Returns what `store check` finds.
pub async fn found(app: &App) -> Vec<Finding> {
    let kernel = app.kernel.clone();
    app.kernel
        .read_system(move |tx| proofs::findings(kernel.areas(), tx, &kernel.keys))
        .await
        .unwrap()
}

/// Returns what both the check and the round find, as the words of the fault and the table.
async fn named(app: &App) -> Vec<(&'static str, String)> {
    let (checked, round) = (
        found(app).await,
        proofs::round::verify(&app.kernel).await.unwrap(),
    );
    assert_eq!(checked, round);
    let table = |finding: &Finding| finding.row.clone().map(|(table, _)| table).unwrap_or_default();
    checked
        .iter()
        .map(|finding| (finding.fault.word(), table(finding)))
        .collect()
}

async fn disable(app: &App, id: &str) {
    app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
        .await
        .ok();
}

async fn delete(app: &App, id: &str) {
    let reply = app
        .request("DELETE", &format!("/service-accounts/{id}"))
        .header("idempotency-key", &fresh_key())
        .header("x-reason", "a test")
        .header("x-confirm", "true")
        .send()
        .await;
    assert!(reply.status.is_success(), "{}", reply.text());
}

/// Has something done by another hand, expects what is named, and takes it back.
async fn expect(app: &App, sql: &str, back: &str, expected: &[(&'static str, &str)]) {
    assert_eq!(named(app).await, [], "before {sql}");
    beside(app, sql);
    let expected: Vec<_> = expected
        .iter()
        .map(|(fault, table)| (*fault, (*table).to_owned()))
        .collect();
    let mut found = named(app).await;
    // One account leaves several words behind.
    if expected.len() == 1 {
        found.dedup();
    }
    assert_eq!(found, expected, "{sql}");
    beside(app, back);
    assert_eq!(named(app).await, [], "after {back}");
}

/// Proves PF-3.
#[test]
fn each_kind_of_change_by_another_hand_is_named() {
    each("proofs", |app: Arc<App>| async move {
        let (weak, _) = app.account("weak", "viewer", &[]).await;
        let (strong, _) = app.account("strong", "operator", &[]).await;
        let (gone, _) = app.account("gone", "viewer", &[]).await;
        let (off, _) = app.account("off", "operator", &[]).await;
        delete(&app, &gone).await;
        disable(&app, &off).await;
        // A role.
        expect(
            &app,
            &format!("UPDATE service_accounts SET permission_role = 'admin' WHERE id = '{weak}'"),
            &format!("UPDATE service_accounts SET permission_role = 'viewer' WHERE id = '{weak}'"),
            &[("changed", "service_accounts")],
        )
        .await;
        // One row in the place of another: the tokens of two accounts.
        let swap = format!(
            "UPDATE service_account_tokens SET service_account_id = CASE WHEN service_account_id = '{weak}' THEN '{strong}' \
             ELSE '{weak}' END WHERE service_account_id IN ('{weak}', '{strong}')"
        );
        let both = [
            ("changed", "service_account_tokens"),
            ("changed", "service_account_tokens"),
        ];
        expect(&app, &swap, &swap, &both).await;
        // A row more.
        let insert = "INSERT INTO directory_memberships (organization_id, group_id, user_id, valid_from, valid_to, user_seq) \
                      SELECT organization_id, 'grp_1', 'usr_1', 1, 9007199254740991, 1 FROM organizations";
        let inserted = [("inserted", "directory_memberships")];
        expect(&app, insert, "DELETE FROM directory_memberships", &inserted).await;
        // The row less that keeps the word of what was deleted from meaning somebody else.
        beside(&app, "CREATE TABLE kept AS SELECT * FROM ended_words");
        let back = "INSERT INTO ended_words SELECT * FROM kept";
        expect(
            &app,
            "DELETE FROM ended_words",
            back,
            &[("removed", "ended_words")],
        )
        .await;
        // The same, its proof too.
        beside(
            &app,
            "CREATE TABLE kept_proofs AS SELECT * FROM right_proofs WHERE table_name = 'ended_words'",
        );
        expect(
            &app,
            "DELETE FROM ended_words; DELETE FROM right_proofs WHERE table_name = 'ended_words'",
            &format!("{back}; INSERT INTO right_proofs SELECT * FROM kept_proofs"),
            &[("sum", "")],
        )
        .await;
        beside(&app, "DROP TABLE kept; DROP TABLE kept_proofs");
        // What only records what was seen is nobody's right.
        beside(
            &app,
            "UPDATE service_account_tokens SET last_used_ip = '192.0.2.1'",
        );
        assert_eq!(named(&app).await, []);
        // No server stops for it.
        app.get("/service-accounts").await.ok();
    });
}

/// Proves PF-3, PF-7.
#[test]
fn a_row_put_back_as_it_once_was_is_missed_by_the_sum() {
    each("proofs_back", |app: Arc<App>| async move {
        let (leaver, token) = app.account("leaver", "operator", &[]).await;
        let keep = format!(
            "CREATE TABLE kept AS SELECT * FROM service_accounts WHERE id = '{leaver}'; \
             CREATE TABLE kept_proofs AS SELECT * FROM right_proofs WHERE row_key LIKE '%{leaver}%'"
        );
        beside(&app, &keep);
        disable(&app, &leaver).await;
        assert_eq!(app.used(&token).await.0, 401);
        assert_eq!(named(&app).await, []);
        let put_back = format!(
            "UPDATE service_accounts SET status = (SELECT k.status FROM kept k), disabled_at = (SELECT k.disabled_at FROM kept k), \
             updated_at = (SELECT k.updated_at FROM kept k), disabled_reason = (SELECT k.disabled_reason FROM kept k) WHERE id = '{leaver}'; \
             UPDATE right_proofs SET mac = (SELECT k.mac FROM kept_proofs k WHERE k.table_name = 'service_accounts') \
             WHERE table_name = 'service_accounts' AND row_key LIKE '%{leaver}%'"
        );
        beside(&app, &put_back);
        assert_eq!(app.used(&token).await.0, 200, "it works again");
        let found = found(&app).await;
        let sums: Vec<_> = found
            .iter()
            .filter(|finding| finding.fault == Fault::Together { more: 0 })
            .collect();
        assert_eq!(sums.len(), 1, "{found:?}");
        assert!(
            sums[0].to_string().contains("put back as they once were"),
            "{}",
            sums[0]
        );
        assert_eq!(contradicted(&found), ["service_accounts /status"]);
        take_as_it_is(&app);
        assert_eq!(named(&app).await, []);
    });
}

/// Returns the tables and members of which the log says something else.
fn contradicted(found: &[Finding]) -> Vec<String> {
    let told = found
        .iter()
        .filter_map(|finding| match (&finding.fault, &finding.row) {
            (Fault::Contradicted { path, entry }, Some((table, _))) => {
                assert!(entry.starts_with("aud_"), "{entry}");
                assert!(finding.to_string().contains(entry), "{finding}");
                Some(format!("{table} {path}"))
            }
            _ => None,
        });
    told.collect()
}

/// The operator takes the rows as they are.
fn take_as_it_is(app: &App) -> u64 {
    let (location, kernel) = (app.location(), app.kernel.clone());
    let renewed = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut conn = Conn::open(&location, Access::Write).unwrap();
            proofs::renew(kernel.areas(), &mut conn, &kernel.keys, kernel.clock.now())
        });
        run.join().unwrap()
    });
    renewed.unwrap().unwrap()
}

/// Keeps a row and its proof, has something done, puts columns and proof back, and returns what the log says of it.
async fn put_back(
    app: &App,
    (table, columns): (&str, &[&str]),
    path: &str,
    body: serde_json::Value,
) -> Vec<String> {
    let id = path.rsplit('/').next().unwrap();
    let proof = format!("table_name = '{table}' AND row_key LIKE '%{id}%'");
    beside(
        app,
        &format!(
            "CREATE TABLE kept AS SELECT * FROM {table} WHERE id = '{id}'; \
             CREATE TABLE kept_proofs AS SELECT * FROM right_proofs WHERE {proof}"
        ),
    );
    let reply = app.write("PATCH", path, body).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    assert_eq!(named(app).await, [], "{path}");
    let set: Vec<String> = columns
        .iter()
        .map(|column| format!("{column} = (SELECT k.{column} FROM kept k)"))
        .collect();
    beside(
        app,
        &format!(
            "UPDATE {table} SET {} WHERE id = '{id}'; \
             UPDATE right_proofs SET mac = (SELECT k.mac FROM kept_proofs k) WHERE {proof}; \
             DROP TABLE kept; DROP TABLE kept_proofs",
            set.join(", ")
        ),
    );
    let found = found(app).await;
    assert!(
        found
            .iter()
            .any(|finding| finding.fault == Fault::Together { more: 0 }),
        "{found:?}"
    );
    contradicted(&found)
}

fn id_of(reply: &Reply) -> String {
    let made = reply.ok();
    let id = ["user", "client"]
        .iter()
        .find_map(|member| made[member]["id"].as_str());
    id.or(made["id"].as_str()).unwrap().to_owned()
}

/// Proves PF-7.
#[test]
fn the_newest_entry_names_the_row_that_was_put_back() {
    each("proofs_entries", |app: Arc<App>| async move {
        let user = json!({ "loginName": "ada", "permissionRole": "admin" });
        let user = id_of(&app.write("POST", "/directory/users", user).await);
        let users: (&str, &[&str]) = ("directory_users", &["permission_role", "updated_at"]);
        let none = json!({ "permissionRole": null });
        let told = put_back(&app, users, &format!("/directory/users/{user}"), none).await;
        assert_eq!(told, ["directory_users /permissionRole"]);
        take_as_it_is(&app);
        assert_eq!(named(&app).await, [], "the operator took it as it is");
        // What comes later is compared as ever.
        let client = json!({
            "name": "shop", "redirectUris": ["https://app.example/back"], "grantTypes": ["authorization_code"],
            "tokenEndpointAuthMethod": "none", "scopes": ["events:read", "policies:read"],
        });
        let client = id_of(&app.write("POST", "/mcp/clients", client).await);
        let clients: (&str, &[&str]) = ("oauth_clients", &["scopes", "ceiling", "updated_at"]);
        let narrower = json!({ "scopes": ["events:read"] });
        let told = put_back(&app, clients, &format!("/mcp/clients/{client}"), narrower).await;
        assert_eq!(told, ["oauth_clients /ceiling", "oauth_clients /scopes"]);
        take_as_it_is(&app);
        let (account, _) = app.account("strong", "operator", &[]).await;
        let accounts: (&str, &[&str]) = (
            "service_accounts",
            &["permission_role", "updated_at", "former_role", "former_scopes"],
        );
        let weaker = json!({ "permissionRole": "viewer" });
        let told = put_back(&app, accounts, &format!("/service-accounts/{account}"), weaker).await;
        assert_eq!(told, ["service_accounts /permissionRole"]);
        // From where on entries count carries a MAC: nobody switches the comparison off.
        beside(
            &app,
            "UPDATE installation SET value = '{\"all\":{}} 00' WHERE name = 'rights_counted_from'",
        );
        let found = found(&app).await;
        assert!(
            found
                .iter()
                .any(|finding| matches!(&finding.fault, Fault::Unreadable(why) if why.contains("count"))),
            "{found:?}"
        );
        take_as_it_is(&app);
        assert_eq!(named(&app).await, []);
    });
}

/// Proves PF-2.
#[test]
fn a_later_change_does_not_vouch_for_what_another_hand_did() {
    each("proofs_launder", |app: Arc<App>| async move {
        let (weak, _) = app.account("weak", "viewer", &[]).await;
        beside(
            &app,
            &format!("UPDATE service_accounts SET permission_role = 'admin' WHERE id = '{weak}'"),
        );
        let rename = json!({ "name": "renamed" });
        let reply = app
            .write("PATCH", &format!("/service-accounts/{weak}"), rename)
            .await;
        assert!(reply.status.is_success(), "{}", reply.text());
        assert_eq!(
            named(&app).await,
            [("changed", "service_accounts".to_owned())],
            "as before"
        );
        // Other rows are proven as ever.
        app.account("other", "viewer", &[]).await;
        assert_eq!(named(&app).await.len(), 1);
        delete(&app, &weak).await;
        let left = named(&app).await;
        assert!(
            left.iter().all(|(_, table)| table == "service_accounts"),
            "{left:?}"
        );
    });
}

/// Proves PF-6.
#[test]
fn a_trigger_of_another_hand_is_named_and_so_is_one_that_is_gone() {
    each("proofs_triggers", |app: Arc<App>| async move {
        let is_sqlite = matches!(app.location(), provost_kernel::db::Location::Sqlite(_));
        let (strange, gone) = if is_sqlite {
            let strange = "CREATE TRIGGER another AFTER UPDATE ON policies BEGIN SELECT 1; END";
            (strange, None)
        } else {
            let strange = "CREATE TRIGGER another BEFORE UPDATE ON policies FOR EACH ROW EXECUTE FUNCTION \
                           suppress_redundant_updates_trigger()";
            (
                strange,
                Some("ALTER TABLE policies DISABLE TRIGGER note_rights_of_update"),
            )
        };
        let drop = if is_sqlite {
            "DROP TRIGGER another"
        } else {
            "DROP TRIGGER another ON policies"
        };
        expect(&app, strange, drop, &[("trigger", "")]).await;
        if let Some(gone) = gone {
            let back = "ALTER TABLE policies ENABLE TRIGGER note_rights_of_update";
            expect(&app, gone, back, &[("trigger", "")]).await;
        }
        // What acts on any other table acts in the same transaction.
        let (strange, drop) = if is_sqlite {
            let strange = "CREATE TRIGGER another AFTER INSERT ON jobs BEGIN SELECT 1; END";
            (strange, "DROP TRIGGER another")
        } else {
            let strange = "CREATE RULE another AS ON INSERT TO jobs DO ALSO NOTHING";
            (strange, "DROP RULE another ON jobs")
        };
        expect(&app, strange, drop, &[("trigger", "")]).await;
    });
}

/// Returns the text that makes something in the migrations of an engine, from its first words to its last.
fn made(is_sqlite: bool, begin: &str, end: &str) -> String {
    let texts = ALL.migrations().iter().rev();
    let mut texts = texts.map(|one| if is_sqlite { one.sqlite } else { one.postgres });
    let text = texts.find_map(|text| Some(&text[text.find(begin)?..]));
    let text = text.unwrap_or_else(|| panic!("no migration has {begin}"));
    text[..text.find(end).unwrap() + end.len()].to_owned()
}

/// Proves PF-6.
#[test]
fn a_trigger_or_function_that_another_hand_replaced_is_named() {
    each("proofs_replaced", |app: Arc<App>| async move {
        if matches!(app.location(), provost_kernel::db::Location::Sqlite(_)) {
            let whole = made(true, "CREATE TRIGGER mcp_session_parts_insert", "\nEND;");
            let other = "DROP TRIGGER mcp_session_parts_insert; \
                         CREATE TRIGGER mcp_session_parts_insert AFTER INSERT ON mcp_sessions BEGIN SELECT 1; END";
            let back = format!("DROP TRIGGER mcp_session_parts_insert; {whole}");
            expect(&app, other, &back, &[("trigger", "")]).await;
            expect(
                &app,
                "DROP TRIGGER mcp_session_parts_insert",
                &whole,
                &[("trigger", "")],
            )
            .await;
            return;
        }
        // The function notes nothing any more.
        let whole = made(false, "CREATE FUNCTION note_touched_rights()", "$$;\n");
        let quiet = "CREATE OR REPLACE FUNCTION note_touched_rights() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$";
        let back = whole.replacen("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1);
        let every: Vec<_> = (0..3 * ALL.rights().len()).map(|_| ("trigger", "")).collect();
        assert_eq!(named(&app).await, []);
        beside(&app, quiet);
        assert_eq!(named(&app).await.len(), every.len(), "each table's");
        beside(&app, &back);
        assert_eq!(named(&app).await, []);
        for other in [
            // The same text with the rights of another.
            "ALTER FUNCTION note_touched_rights() SECURITY DEFINER",
            "ALTER FUNCTION note_touched_rights() SET search_path = pg_temp",
        ] {
            beside(&app, other);
            assert_eq!(named(&app).await.len(), every.len(), "{other}");
            beside(
                &app,
                "ALTER FUNCTION note_touched_rights() SECURITY INVOKER; ALTER FUNCTION note_touched_rights() RESET ALL",
            );
        }
        // The trigger is there and acts, and not as it was made: without a word about the rows, for some columns, for another key,
        // with another function.
        let note = "REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights";
        let drop = "DROP TRIGGER note_rights_of_update ON policies";
        let back = format!(
            "{drop}; CREATE TRIGGER note_rights_of_update AFTER UPDATE ON policies {note}('organization_id', 'id')"
        );
        let act =
            "CREATE FUNCTION another() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$";
        beside(&app, act);
        for other in [
            format!("CREATE TRIGGER note_rights_of_update AFTER UPDATE ON policies {note}('organization_id')"),
            "CREATE TRIGGER note_rights_of_update AFTER UPDATE ON policies FOR EACH STATEMENT EXECUTE FUNCTION another()".to_owned(),
            "CREATE TRIGGER note_rights_of_update AFTER UPDATE OF name ON policies FOR EACH STATEMENT EXECUTE FUNCTION \
             note_touched_rights('organization_id', 'id')"
                .to_owned(),
            format!("CREATE TRIGGER note_rights_of_update AFTER INSERT ON policies {}", note.replace("OLD TABLE AS former ", ""))
                + "('organization_id', 'id')",
        ] {
            expect(&app, &format!("{drop}; {other}"), &back, &[("trigger", "")]).await;
        }
    });
}

/// Proves PF-3.
#[test]
fn a_disagreement_is_told_once_by_event_and_entry() {
    each("proofs_told", |app: Arc<App>| async move {
        let (weak, _) = app.account("weak", "viewer", &[]).await;
        beside(
            &app,
            &format!("UPDATE service_accounts SET permission_role = 'admin' WHERE id = '{weak}'"),
        );
        for _ in 0..2 {
            proofs::round::verify(&app.kernel).await.unwrap();
        }
        let told = app.kernel.read_system(|tx| {
            tx.query(&TOLD, &[], |row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?))
            })
        });
        let told = told.await.unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        let data: serde_json::Value = serde_json::from_str(&told[0].1).unwrap();
        assert_eq!(data["findings"][0]["table"], "service_accounts");
        assert_eq!(data["findings"][0]["fault"], "changed");
        let entry = app.kernel.read_system(|tx| tx.query(&ENTRY, &[], |_| Ok(())));
        assert_eq!(entry.await.unwrap().len(), 1);
    });
}

/// Proves PF-4.
#[test]
fn taking_the_rows_as_they_are_ends_the_disagreement() {
    each("proofs_taken", |app: Arc<App>| async move {
        let (weak, _) = app.account("weak", "viewer", &[]).await;
        beside(
            &app,
            &format!(
                "UPDATE service_accounts SET permission_role = 'admin' WHERE id = '{weak}'; DELETE FROM ended_words"
            ),
        );
        assert!(!named(&app).await.is_empty());
        assert!(take_as_it_is(&app) > 3);
        assert_eq!(named(&app).await, []);
        app.account("after", "viewer", &[]).await;
        assert_eq!(named(&app).await, []);
    });
}

provost_kernel::statements! {
    /// The events of a disagreement.
    TOLD = unscoped("a test") "SELECT type, data FROM outbox WHERE type = 'rights.disagreed'";
    /// The entry of one.
    ENTRY = unscoped("a test") "SELECT seq FROM audit_entries WHERE action = 'rights.disagreed'";
}
