//! What takes away is written beside the keys before it is answered, whatever does it (EN-1, EN-2).

use crate::areas::directory::{end, group, import, user};
use crate::support::{App, each};
use http::StatusCode;
use provost_kernel::ends::{EndJournal, EndLine};
use provost_server::areas::{audit, directory};
use serde_json::json;
use std::sync::Arc;

fn lines(app: &App) -> Vec<EndLine> {
    EndJournal::of(&app.kernel.keys.end_lines().unwrap()).lines
}

/// The lines about these words and this id.
fn about(app: &App, what: &str, how: &str, id: &str) -> Vec<EndLine> {
    let mut all = lines(app);
    all.retain(|line| line.what == what && line.how == how && line.ids.iter().flatten().any(|one| one == id));
    all
}

#[test]
fn a_line_names_the_act_its_entry_and_the_ids_alone() {
    each("ends_line", |app: Arc<App>| async move {
        app.named().await;
        let (id, token) = app.account("leaver", "viewer", &[]).await;
        let before = lines(&app).len();
        app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
            .await
            .ok();
        assert_eq!(app.used(&token).await.0, 401);
        assert_eq!(lines(&app).len(), before + 1);
        let line = about(&app, "service_account", "disabled", &id).remove(0);
        assert_eq!(line.acts, ["disableHeadlessServiceAccount"]);
        assert_eq!(
            (line.organization_id.as_str(), line.chain.as_deref()),
            (app.organization.as_str(), None)
        );
        let entries = app.entries(app.organization.as_str(), 0).await;
        let entry = entries
            .iter()
            .find(|entry| entry["action"] == "disableHeadlessServiceAccount");
        let entry = entry.unwrap();
        assert_eq!(entry["seq"].as_i64(), Some(line.sequence), "{entry}");
        // It is found by its hash, and would be missed in a chain that has another entry there.
        let other = EndLine {
            hash: Some("00".repeat(32)),
            ..line.clone()
        };
        for (line, is_lost) in [(line, false), (other, true)] {
            let found = app.kernel.read_system(move |tx| audit::is_lost(tx, &line)).await;
            assert_eq!(found.unwrap(), is_lost);
        }
        // Giving it back, and taking it away from somebody who had nothing, leaves no line.
        app.write("POST", &format!("/service-accounts/{id}/enable"), json!({}))
            .await
            .ok();
        assert_eq!(lines(&app).len(), before + 1);
    });
}

#[test]
fn a_folder_that_takes_no_line_refuses_what_takes_away_and_lets_everything_else_go() {
    each("ends_refused", |app: Arc<App>| async move {
        app.named().await;
        let (id, token) = app.account("leaver", "viewer", &[]).await;
        let file = app.keys_dir().join("ends.jsonl");
        let kept = app.keys_dir().join("kept.jsonl");
        let _ = std::fs::rename(&file, &kept);
        std::fs::create_dir(&file).unwrap();
        let path = format!("/service-accounts/{id}/disable");
        let refused = app.write("POST", &path, json!({})).await;
        refused.refused(503, "unavailable");
        assert!(refused.text().contains("beside the keys"), "{}", refused.text());
        assert_eq!(refused.header("retry-after"), "5");
        assert_eq!(app.used(&token).await.0, 200, "what was refused has not happened");
        app.account("newcomer", "viewer", &[]).await;
        let ready = app.request("GET", "").anonymous().at("/readyz").send().await;
        assert_eq!(ready.status, StatusCode::OK);
        // In one commit with others, those go on.
        let (one, two) = tokio::join!(
            app.write("POST", &path, json!({})),
            app.write("POST", "/directory/groups", json!({ "name": "dev" })),
        );
        one.refused(503, "unavailable");
        two.ok();
        std::fs::remove_dir(&file).unwrap();
        let _ = std::fs::rename(&kept, &file);
        app.write("POST", &path, json!({})).await.ok();
        assert_eq!(app.used(&token).await.0, 401);
        assert_eq!(about(&app, "service_account", "disabled", &id).len(), 1);
    });
}

#[test]
fn an_import_names_whom_it_ended_when_it_is_applied_and_not_before() {
    each("ends_import", |app: Arc<App>| async move {
        app.named().await;
        let ada = user(&app, "ada@acme.test").await;
        let bob = user(&app, "bob@acme.test").await;
        let dev = group(&app, "dev").await;
        app.write(
            "PUT",
            &format!("/directory/groups/{dev}/members/{bob}"),
            json!({}),
        )
        .await
        .ok();
        // A file ends who was there before it was opened.
        app.advance(1);
        let open = import(&app, json!({ "format": "jsonl", "mode": "replace" })).await;
        let text = json!({ "type": "user", "loginName": "bob@acme.test", "status": "suspended" }).to_string();
        crate::areas::directory::chunk(&app, &open, 1, &text).await.ok();
        let before = lines(&app).len();
        end(&app, &open, "abort").await.ok();
        crate::areas::directory::run_jobs(&app).await;
        assert_eq!(
            lines(&app).len(),
            before,
            "what was staged and never seen takes nothing away"
        );

        let open = import(&app, json!({ "format": "jsonl", "mode": "replace" })).await;
        crate::areas::directory::chunk(&app, &open, 1, &text).await.ok();
        assert_eq!(lines(&app).len(), before);
        end(&app, &open, "apply").await.ok();
        crate::areas::directory::run_jobs(&app).await;
        assert_eq!(about(&app, "user", "deleted", &ada).len(), 1);
        assert_eq!(about(&app, "user", "suspended", &bob).len(), 1);
        assert_eq!(about(&app, "membership", "removed", &bob).len(), 1);
        assert_eq!(about(&app, "group", "deleted", &dev).len(), 1);
        // Clearing the old versions away takes nothing away anew.
        let count = lines(&app).len();
        app.advance(100 * 86_400);
        let _ = directory::tidy(&app.kernel).await;
        crate::areas::directory::run_jobs(&app).await;
        assert_eq!(lines(&app).len(), count);
    });
}

#[test]
fn lines_go_after_thirty_days_by_a_clock_that_nobody_doubts() {
    each("ends_days", |app: Arc<App>| async move {
        app.named().await;
        let (id, _) = app.account("leaver", "viewer", &[]).await;
        app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
            .await
            .ok();
        app.kernel.keep_time().await.unwrap();
        for days in [1, 29] {
            assert_eq!(about(&app, "service_account", "disabled", &id).len(), 1, "{days}");
            for _ in 0..days {
                app.advance(86_400);
                app.kernel.keep_time().await.unwrap();
            }
            provost_server::ends::trim(&app.kernel).await.unwrap();
        }
        app.advance(86_400 + 3_600);
        app.kernel.keep_time().await.unwrap();
        provost_server::ends::trim(&app.kernel).await.unwrap();
        assert_eq!(about(&app, "service_account", "disabled", &id).len(), 0);
        let journal = EndJournal::of(&app.kernel.keys.end_lines().unwrap());
        let whole = journal.since.unwrap();
        assert_eq!(whole, app.now().plus_secs(-30 * 86_400));
    });
}
