//! Settings over the wire: nothing is reset without a word, and nothing is erased at once (SE-4, SE-5).

use crate::policy::history::{import, lines};
use crate::support::{App, each};
use provost_areas_policy::history;
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/automation/settings";
const DAY: u64 = 86_400;

fn keeping(days: i64) -> Value {
    json!({ "retention": { "historyDays": days } })
}

fn confirmed(mut body: Value) -> Value {
    body["confirm"] = true.into();
    body
}

async fn kept(app: &App) -> i64 {
    let status = app.get("/policies/history/status").await;
    status.ok()["retentionDays"].as_i64().unwrap()
}

#[test]
fn a_patch_changes_what_it_names_and_nothing_else() {
    each("settings_patch", |app: Arc<App>| async move {
        app.write("PATCH", PATH, json!({ "tokens": { "defaultGraceSeconds": 5 } }))
            .await
            .ok();
        let changed = app
            .write(
                "PATCH",
                PATH,
                json!({ "managedConfig": { "requirePreview": true } }),
            )
            .await;
        let changed = changed.ok();
        assert_eq!(changed["tokens"]["defaultGraceSeconds"], 5);
        assert_eq!(changed["managedConfig"]["requirePreview"], true);
        assert_eq!(changed["retention"]["historyDays"], 400);
        for (bad, path) in [
            (
                json!({ "tokens": { "defaultGraceSeconds": null } }),
                "/tokens/defaultGraceSeconds",
            ),
            (
                json!({ "tokens": { "defaultGraceSecond": 5 } }),
                "/tokens/defaultGraceSecond",
            ),
            (
                json!({ "retention": { "historyDays": 0 } }),
                "/retention/historyDays",
            ),
        ] {
            let reply = app.write("PATCH", PATH, bad).await;
            reply.refused(400, "invalid_request");
            assert_eq!(reply.json["errors"][0]["path"], path);
        }
        let (_, auditor) = app.account("auditor", "auditor", &[]).await;
        let call = app.request("PATCH", PATH).token(&auditor);
        call.json(crate::support::with_trio(json!({}), &crate::support::fresh_key()))
            .send()
            .await
            .refused(403, "role_forbidden");
    });
}

/// Proves SE-5.
#[test]
fn a_put_that_would_reset_what_it_does_not_name_is_refused() {
    each("settings_put", |app: Arc<App>| async move {
        let set = json!({ "tokens": { "defaultGraceSeconds": 5 }, "llmGateway": { "enabled": false } });
        app.write("PUT", PATH, set.clone()).await.ok();
        for short in [json!({}), json!({ "tokens": { "defaultGraceSeconds": 7 } })] {
            let reply = app.write("PUT", PATH, short).await;
            reply.refused(409, "conflict");
            assert!(reply.text().contains("/llmGateway/enabled"), "{}", reply.text());
        }
        let reply = app
            .write("PUT", PATH, json!({ "llmGateway": { "enabled": true } }))
            .await;
        reply.refused(409, "conflict");
        assert_eq!(
            reply.json["errors"],
            json!([{
                "path": "/tokens/defaultGraceSeconds", "message": "is set, and the body does not name it",
            }])
        );
        let now = app.get(PATH).await.ok().clone();
        assert_eq!(
            (
                &now["tokens"]["defaultGraceSeconds"],
                &now["llmGateway"]["enabled"]
            ),
            (&json!(5), &json!(false))
        );
        // Named, everything can be what it was; in the factory state there is nothing to name.
        let back = json!({ "tokens": { "defaultGraceSeconds": 0 }, "llmGateway": { "enabled": true } });
        app.write("PUT", PATH, back).await.ok();
        app.write("PUT", PATH, json!({})).await.ok();
    });
}

/// Proves SE-4.
#[test]
fn a_shorter_retention_waits_a_week_and_is_taken_back() {
    each("settings_retention", |app: Arc<App>| async move {
        import(&app, "old", lines(&app, 0, 10)).await.ok();
        app.advance(40 * DAY);
        for method in ["PUT", "PATCH"] {
            let reply = app.write(method, PATH, keeping(30)).await;
            reply.refused(400, "confirmation_required");
            assert_eq!(app.get(PATH).await.ok()["retention"]["historyDays"], 400);
        }
        let set = app
            .write("PATCH", PATH, confirmed(keeping(30)))
            .await
            .ok()
            .clone();
        let acts_at = app.now().plus_secs(7 * 86_400).to_rfc3339();
        assert_eq!(set["retention"]["historyDays"], 30);
        assert_eq!(
            set["retentionShortening"],
            json!({ "historyDays": 400, "actsAt": acts_at })
        );
        // Everything that reads the retention still has the old one.
        assert_eq!(kept(&app).await, 400);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(app.get("/policies/history/status").await.ok()["events"], 10);
        app.advance(7 * DAY - 1);
        // Said again, it neither begins anew nor acts earlier.
        app.write("PATCH", PATH, keeping(30)).await.ok();
        assert_eq!(app.get(PATH).await.ok()["retentionShortening"]["actsAt"], acts_at);
        assert_eq!(kept(&app).await, 400);
        // A longer one takes it back, and needs no confirmation.
        let back = app.write("PATCH", PATH, keeping(400)).await.ok().clone();
        assert_eq!(back.get("retentionShortening"), None);
        app.advance(2);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(
            (
                kept(&app).await,
                app.get("/policies/history/status").await.ok()["events"].clone()
            ),
            (400, json!(10))
        );
        // What is not taken back acts.
        app.write("PATCH", PATH, confirmed(keeping(30))).await.ok();
        app.advance(7 * DAY);
        assert_eq!(kept(&app).await, 30);
        assert_eq!(app.get(PATH).await.ok().get("retentionShortening"), None);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(app.get("/policies/history/status").await.ok()["events"], 0);
        let entries = app.entries(&app.organization, 0).await;
        let noted = entries.iter().filter(|entry| {
            let changes = entry["changes"].as_array();
            changes.is_some_and(|all| all.iter().any(|change| change["path"] == "/retentionShortening"))
        });
        assert_eq!(noted.count(), 3, "begun, taken back, begun");
    });
}
