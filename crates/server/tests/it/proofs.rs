//! What another hand does to rows that decide rights is found, and nothing else is (PF-1 to PF-4).

use crate::support::{App, each, fresh_key};
use provost_kernel::db::{Access, Conn};
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
        .read_system(move |tx| proofs::findings(tx, &kernel.keys))
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
    });
}

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
    });
}

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
        let (location, kernel) = (app.location(), app.kernel.clone());
        let renewed = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let mut conn = Conn::open(&location, Access::Write).unwrap();
                proofs::renew(&mut conn, &kernel.keys, kernel.clock.now())
            });
            run.join().unwrap()
        });
        assert!(renewed.unwrap().unwrap() > 3);
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
