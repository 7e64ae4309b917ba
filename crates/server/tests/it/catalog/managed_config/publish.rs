//! Publishing: what is refused, what is warned of, and what a look at it shows.

use super::{PROFILES, profile, publish, traces};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

fn warned(answer: &Value) -> Vec<(&str, &str)> {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    warnings
        .map(|warning| {
            (
                warning["code"].as_str().unwrap_or(""),
                warning["paths"][0].as_str().unwrap_or(""),
            )
        })
        .collect()
}

/// Publishes with a precondition.
async fn bound(app: &App, path: &str, content: &Value, tag: &str) -> Reply {
    let body = with_trio(json!({ "content": content }), &fresh_key());
    let call = app
        .request("POST", &format!("{path}/releases"))
        .header("if-match", tag);
    call.json(body).send().await
}

/// Proves MC-3.
#[test]
fn a_publication_is_bound_to_its_preview_where_that_was_said() {
    each("mc_publish_bound", |app: Arc<App>| async move {
        let path = profile(&app, "claude_code").await;
        let wanted = json!({ "enforced": { "permissions": { "deny": ["Bash(rm *)"] } } });
        let other = json!({ "enforced": { "permissions": { "deny": ["Bash"] } } });
        let look = async |content: &Value| {
            let releases = format!("{path}/releases?preview=true");
            let shown = app.write("POST", &releases, json!({ "content": content })).await;
            shown.ok();
            shown.header("etag").to_owned()
        };
        let (first, again) = (look(&wanted).await, look(&wanted).await);
        assert!(first.len() > 30 && first == again, "{first}");
        assert_ne!(first, look(&other).await);
        // Another content than the one that was shown.
        let refused = bound(&app, &path, &other, &first).await;
        refused.refused(412, "precondition_failed");
        assert_eq!(refused.header("etag"), look(&other).await);
        // Somebody else published meanwhile.
        publish(&app, &path, json!({ "model": "opus" })).await;
        let before = traces(&app, &path).await;
        for tag in [first.as_str(), "\"nothing\"", "W/\"nothing\", \"other\""] {
            let refused = bound(&app, &path, &wanted, tag).await;
            refused.refused(412, "precondition_failed");
            assert_eq!(refused.header("etag"), look(&wanted).await);
        }
        assert_eq!(traces(&app, &path).await, before);
        let now = look(&wanted).await;
        let done = bound(&app, &path, &wanted, &format!("{first}, {now}")).await;
        assert_eq!(
            (&done.ok()["created"], &done.json["release"]["version"]),
            (&json!(true), &json!(2))
        );
        // What was published is not published again by the name of what was before it.
        bound(&app, &path, &wanted, &now)
            .await
            .refused(412, "precondition_failed");
        let same = bound(&app, &path, &wanted, &look(&wanted).await).await;
        assert_eq!(same.ok()["created"], false);
        // Whoever binds it to nothing publishes as before.
        assert_eq!(bound(&app, &path, &other, "*").await.ok()["created"], true);
        publish(&app, &path, json!({ "model": "opus" })).await;
        // The name is the profile's: the first release of another one has another.
        let second = profile(&app, "claude_code").await;
        bound(&app, &second, &wanted, &first)
            .await
            .refused(412, "precondition_failed");
    });
}

#[test]
fn a_preview_of_a_publication_shows_it_and_does_nothing() {
    each("mc_publish_preview", |app: Arc<App>| async move {
        let path = profile(&app, "claude_code").await;
        let releases = format!("{path}/releases?preview=true");
        let content = json!({ "content": { "enforced": { "permissions": { "deny": ["Bash(rm *)"] }, "env": { "A": "hunter2" } } } });
        let first = app.write("POST", &releases, content.clone()).await.ok().clone();
        assert_eq!(
            (&first["mode"], &first["wouldCreate"]),
            (&json!("preview"), &json!(true))
        );
        assert_eq!(first.get("currentRelease"), None);
        assert_eq!(
            (&first["changesTotal"], &first["weakensEnforcement"]),
            (&json!(2), &json!([]))
        );
        assert!(!first.to_string().contains("hunter2"), "{first}");

        publish(&app, &path, content["content"]["enforced"].clone()).await;
        let before = traces(&app, &path).await;
        let less = json!({ "content": { "enforced": { "permisions": { "deny": ["Bash(rm *)"] }, "env": { "A": "hunter2" } } } });
        let shown = app.write("POST", &releases, less.clone()).await.ok().clone();
        assert_eq!(shown["currentRelease"]["version"], 1);
        assert_eq!(
            shown["weakensEnforcement"][0]["path"],
            "/enforced/permissions/deny"
        );
        assert_eq!(
            warned(&shown),
            [
                ("unknown_member", "/enforced/permisions"),
                ("weakens_enforcement", "/enforced/permissions/deny")
            ]
        );
        // The admin reads no hidden value, so a hidden one may always be another one.
        let same = app.write("POST", &releases, content.clone()).await.ok().clone();
        assert_eq!(
            (&same["wouldCreate"], &same["changesTotal"]),
            (&json!(true), &json!(1))
        );
        let expected = json!({
            "op": "replace", "path": "/enforced/env/A", "class": "enforced", "before": "[redacted]", "after": "[redacted]",
        });
        assert_eq!(same["changes"][0], expected);
        // A preview refuses what the publication refuses, and its key stays unused.
        let bad = json!({ "content": { "enforced": { "model": 7 } } });
        app.write("POST", &releases, bad)
            .await
            .refused(422, "invalid_definition");
        let automatic = json!({ "content": { "enforced": {} }, "automatic": true });
        app.write("POST", &releases, automatic)
            .await
            .refused(409, "conflict");
        let key = fresh_key();
        let sent = with_trio(less, &key);
        app.request("POST", &releases)
            .json(sent.clone())
            .send()
            .await
            .ok();
        assert_eq!(traces(&app, &path).await, before);
        // The value is that of a query: only the word true asks for a preview, and nothing else is taken for one.
        for odd in [
            "preview=TRUE",
            "preview=1",
            "preview=",
            "preview=true&preview=false",
        ] {
            let call = app
                .request("POST", &format!("{path}/releases?{odd}"))
                .json(sent.clone());
            assert_eq!(call.send().await.status.as_u16(), 400, "{odd}");
        }
        assert_eq!(traces(&app, &path).await, before);
        let done = app
            .request("POST", &format!("{path}/releases?preview=false"))
            .json(sent)
            .send()
            .await;
        assert_eq!(
            (&done.ok()["created"], &done.json["release"]["version"]),
            (&json!(true), &json!(2))
        );
        assert_eq!(warned(&done.json), [("unknown_member", "/enforced/permisions")]);
        // A rollback to it is warned of the same.
        let source = json!({ "sourceReleaseId": done.json["release"]["id"] });
        let back = super::preview(&app, &path, source).await;
        assert_eq!(warned(back.ok()), [("unknown_member", "/enforced/permisions")]);
    });
}

#[test]
fn strict_refuses_what_is_otherwise_warned_of() {
    each("mc_publish_strict", |app: Arc<App>| async move {
        let path = profile(&app, "claude_code").await;
        let releases = format!("{path}/releases");
        let body = |strict: bool| json!({ "strict": strict, "content": { "enforced": { "permissions": { "deny": ["Write(src/**)"] } } } });
        let refused = app.write("POST", &releases, body(true)).await;
        refused.refused(422, "invalid_definition");
        assert_eq!(
            refused.json["errors"][0]["path"],
            "/content/enforced/permissions/deny/0"
        );
        let taken = app.write("POST", &releases, body(false)).await.ok().clone();
        assert_eq!(
            warned(&taken),
            [("denies_nothing", "/enforced/permissions/deny/0")]
        );
        let good = json!({ "strict": true, "content": { "enforced": { "permissions": { "deny": ["Edit(src/**)"] } } } });
        let taken = app.write("POST", &releases, good).await.ok().clone();
        assert_eq!((&taken["created"], taken.get("warnings")), (&json!(true), None));
    });
}

#[test]
fn a_profile_pins_a_version_that_is_known() {
    each("mc_client_version", |app: Arc<App>| async move {
        let body = |target: &str, version: &str| json!({ "name": fresh_key(), "target": target, "clientVersion": version });
        for (target, version) in [
            ("claude_code", "0.0.1"),
            ("codex", "2.1.329"),
            ("generic_json", "1"),
        ] {
            app.write("POST", PROFILES, body(target, version))
                .await
                .refused(422, "invalid_definition");
        }
        app.write("POST", PROFILES, body("codex", "latest"))
            .await
            .refused(400, "invalid_request");
        let made = app.write("POST", PROFILES, body("codex", "0.169.0")).await;
        assert_eq!(made.json["profile"]["clientVersion"], "0.169.0");
        let path = format!("{PROFILES}/{}", made.json["profile"]["id"].as_str().unwrap());
        let listed = app.get(&format!("{PROFILES}?limit=100")).await.ok().clone();
        let listed = listed["profiles"].as_array().unwrap().iter();
        assert_eq!(
            listed
                .filter(|profile| profile["clientVersion"] == "0.169.0")
                .count(),
            1
        );
        let bad = json!({ "content": { "enforced": { "allow_login_shell": "no" } } });
        app.write("POST", &format!("{path}/releases"), bad)
            .await
            .refused(422, "invalid_definition");
        publish(&app, &path, json!({ "allow_login_shell": false })).await;
        app.write("PATCH", &path, json!({ "clientVersion": "0.0.1" }))
            .await
            .refused(422, "invalid_definition");
        let freed = app
            .write("PATCH", &path, json!({ "clientVersion": null }))
            .await
            .ok()
            .clone();
        assert_eq!(freed["profile"].get("clientVersion"), None);
        let pinned = app
            .write("PATCH", &path, json!({ "clientVersion": "0.169.0" }))
            .await
            .ok()
            .clone();
        assert_eq!(pinned["profile"]["clientVersion"], "0.169.0");
        let kept = app
            .write("PATCH", &path, json!({ "pollIntervalSeconds": 600 }))
            .await
            .ok()
            .clone();
        assert_eq!(kept["profile"]["clientVersion"], "0.169.0");
    });
}
