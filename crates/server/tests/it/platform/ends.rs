//! What takes away is written beside the keys before it is answered, whatever does it (EN-1, EN-2).

use crate::areas::directory::{end, group, import, user};
use crate::areas::mcp_sessions::{self, new_session};
use crate::areas::oauth;
use crate::areas::resources::{make_resource, resource_body};
use crate::support::{App, each};
use http::StatusCode;
use provost_areas_platform::ends;
use provost_kernel::OperationContext;
use provost_kernel::area::Again;
use provost_kernel::auth::OrganizationId;
use provost_kernel::ends::{EndJournal, EndLine};
use provost_server::areas::{audit, directory, restore};
use provost_server::proofs::entries;
use serde_json::{Value, json};
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

/// Proves EN-1.
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

/// Proves EN-1.
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

/// Proves EN-1.
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
            provost_areas_platform::ends::trim(&app.kernel).await.unwrap();
        }
        app.advance(86_400 + 3_600);
        app.kernel.keep_time().await.unwrap();
        provost_areas_platform::ends::trim(&app.kernel).await.unwrap();
        assert_eq!(about(&app, "service_account", "disabled", &id).len(), 0);
        let journal = EndJournal::of(&app.kernel.keys.end_lines().unwrap());
        let whole = journal.since.unwrap();
        assert_eq!(whole, app.now().plus_secs(-30 * 86_400));
    });
}

/// Takes away what a line says, of these ids, as `provost store accept --lost` does.
async fn again(app: &App, line: &EndLine, ids: Vec<String>) -> Again {
    let (sink, shared) = std::sync::mpsc::channel();
    let (what, how) = (line.what.clone(), line.how.clone());
    let organization = OrganizationId::parse(&app.organization).unwrap();
    let run = move |ctx: &mut OperationContext<'_>| {
        ctx.target(&restore::fences::STORE, "1");
        ctx.invalidate_cached_credentials();
        // The entry is about the store, and none says of the row what becomes of it.
        entries::note_loss(ctx)?;
        let _ = sink.send(ends::take_again(ctx, &what, &how, &ids)?);
        Ok(())
    };
    let unit = app.kernel.system(organization, Some("store.loss_accepted"), run);
    unit.await.unwrap();
    shared.recv().unwrap()
}

/// Two of a kind: the first is ended by its door, and the second as the line of the first says.
struct Twins<'a> {
    app: &'a App,
    ids: [&'a str; 2],
}

impl Twins<'_> {
    /// Ends both; `act` ends the first.
    async fn end(&self, act: impl Future<Output = ()>) {
        let before = lines(self.app).len();
        act.await;
        let made = lines(self.app).split_off(before);
        let named = |line: &&EndLine| line.ids.iter().flatten().any(|id| id == self.ids[0]);
        let line = made.iter().find(named).unwrap_or_else(|| panic!("{made:?}"));
        let of = |other: &str| -> Vec<String> {
            let ids = line.ids.iter().find(|ids| ids.iter().any(|id| id == self.ids[0]));
            let swap = |id: &String| {
                if id == self.ids[0] {
                    other.to_owned()
                } else {
                    id.clone()
                }
            };
            ids.unwrap().iter().map(swap).collect()
        };
        let done = again(self.app, line, of(self.ids[1])).await;
        assert!(matches!(done, Again::Done(_)), "{line:?}: {done:?}");
        let twice = again(self.app, line, of(self.ids[1])).await;
        assert!(
            matches!(twice, Again::Already | Again::Gone),
            "{line:?}, a second time: {twice:?}"
        );
        let mut unknown = self.ids[1].to_owned();
        unknown.replace_range(unknown.len() - 4.., "zzzz");
        let gone = again(self.app, line, of(&unknown)).await;
        assert!(
            matches!(gone, Again::Gone | Again::Already) || line.what == "first_identity_link",
            "{line:?}, of nothing: {gone:?}"
        );
    }

    /// Says that both are as the first became.
    async fn agree(&self, path: &str, pointer: &str, is: impl Fn(&Value) -> bool) {
        for id in self.ids {
            let reply = self.app.get(&format!("{path}/{id}")).await;
            let value = reply.ok().pointer(pointer).cloned().unwrap_or_default();
            assert!(is(&value), "{path}/{id}{pointer}: {value}");
        }
    }
}

async fn made(app: &App, path: &str, body: Value, pointer: &str) -> String {
    let reply = app.write("POST", path, body).await;
    reply.ok().pointer(pointer).unwrap().as_str().unwrap().to_owned()
}

/// Proves EN-3.
#[test]
fn what_a_line_names_is_taken_away_again() {
    each("ends_again", |app: Arc<App>| async move {
        app.named().await;
        let changed = async |method: &str, path: String, body: Value| {
            app.write(method, &path, body).await.ok();
        };

        let (one, other) = (make_resource(&app).await, make_resource(&app).await);
        let twins = Twins {
            app: &app,
            ids: [&one, &other],
        };
        let mut body = resource_body("disabled");
        body["enabled"] = false.into();
        twins.end(changed("PUT", format!("/resources/{one}"), body)).await;
        twins
            .agree("/resources", "/enabled", |value| value == false)
            .await;

        let gateway = |name: &str| json!({ "name": name, "hostname": "gateway.internal", "enabled": true });
        let one = made(&app, "/resource-gateways", gateway("one"), "/id").await;
        let other = made(&app, "/resource-gateways", gateway("other"), "/id").await;
        let twins = Twins {
            app: &app,
            ids: [&one, &other],
        };
        let mut body = gateway("one");
        body["enabled"] = false.into();
        twins
            .end(changed("PUT", format!("/resource-gateways/{one}"), body))
            .await;
        twins
            .agree("/resource-gateways", "/enabled", |value| value == false)
            .await;

        let one = oauth::register(&app, oauth::public_client("one")).await;
        let other = oauth::register(&app, oauth::public_client("other")).await;
        let twins = Twins {
            app: &app,
            ids: [&one, &other],
        };
        let body = json!({ "blocked": true });
        twins
            .end(changed("PATCH", format!("/mcp/clients/{one}"), body))
            .await;
        twins.agree("/mcp/clients", "/blockedAt", Value::is_string).await;

        let (one, other) = (
            user(&app, "one@acme.test").await,
            user(&app, "other@acme.test").await,
        );
        let twins = Twins {
            app: &app,
            ids: [&one, &other],
        };
        let body = json!({ "issuer": "https://issuer.example", "subject": "one", "userId": one });
        twins
            .end(changed("POST", "/directory/identity-links".to_owned(), body))
            .await;

        let sessions = vec![new_session(&app, "one"), new_session(&app, "other")];
        let ids = mcp_sessions::open(&app, sessions).await;
        let twins = Twins {
            app: &app,
            ids: [&ids[0], &ids[1]],
        };
        twins
            .end(changed(
                "POST",
                format!("/mcp/sessions/{}/revoke", ids[0]),
                json!({}),
            ))
            .await;
        twins
            .agree("/mcp/sessions", "/state", |value| value != "active")
            .await;
    });
}

/// Proves EN-3.
#[test]
fn what_a_line_names_of_skills_and_words_is_taken_away_again() {
    each("ends_again_too", |app: Arc<App>| async move {
        app.named().await;
        let changed = async |method: &str, path: String, body: Value| {
            app.write(method, &path, body).await.ok();
        };

        let (one, other) = (app.skill("one").await, app.skill("other").await);
        let twins = Twins {
            app: &app,
            ids: [&one, &other],
        };
        let path = format!("/skill-registry/{one}/withdraw");
        twins.end(changed("POST", path, json!({ "confirm": true }))).await;

        let (left, kept) = (app.skill("left").await, app.skill("kept").await);
        let issued = async |item: &str| {
            let reply = app.install(&app.admin, item, "laptop").await;
            let token = &reply.ok()["gatewayToken"];
            let text = |name: &str| {
                token[name]
                    .as_str()
                    .unwrap_or_else(|| panic!("{token}"))
                    .to_owned()
            };
            (text("id"), text("token"))
        };
        let (first, second) = (issued(&left).await, issued(&kept).await);
        let content = async |item: &str, token: &str| {
            let path = format!("/skill-registry/{item}/content");
            let reply = app.request("GET", &path).token(token).send().await;
            reply.status.as_u16()
        };
        assert_eq!(content(&kept, &second.1).await, 200);
        let twins = Twins {
            app: &app,
            ids: [&first.0, &second.0],
        };
        twins
            .end(async {
                app.uninstall(&app.admin, &left).await.ok();
            })
            .await;
        let after = (content(&left, &first.1).await, content(&kept, &second.1).await);
        assert_eq!(after, (401, 401));

        let ada = user(&app, "ada@acme.test").await;
        let word = |word: &str| json!({ "word": word, "userId": ada });
        let one = made(&app, "/directory/identities", word("ada one"), "/mapping/id").await;
        let other = made(&app, "/directory/identities", word("ada other"), "/mapping/id").await;
        let twins = Twins {
            app: &app,
            ids: [&one, &other],
        };
        twins
            .end(async {
                app.delete(&format!("/directory/identities/{one}")).await.ok();
            })
            .await;
        let left = app.get("/directory/identities").await.ok().to_string();
        assert!(!left.contains(&one) && !left.contains(&other), "{left}");
    });
}
