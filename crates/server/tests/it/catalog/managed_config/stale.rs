//! A performance is bound to what was previewed (D8.7).

use super::{perform, preview, profile, publish, traces};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::kernel::Settings;
use serde_json::{Value, json};
use std::sync::Arc;

async fn with_if_match(app: &App, path: &str, source: &Value, tag: &str) -> Reply {
    let body = with_trio(
        json!({ "sourceReleaseId": source, "confirm": true }),
        &fresh_key(),
    );
    let call = app
        .request("POST", &format!("{path}/rollback"))
        .header("if-match", tag);
    call.json(body).send().await
}

fn stale(reply: &Reply, etag_of_now: &str) {
    reply.refused(412, "precondition_failed");
    assert_eq!(reply.header("etag"), etag_of_now, "{}", reply.text());
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story from its beginning to its end")]
fn a_preview_token_is_good_for_what_it_was_made_from_and_nothing_else() {
    each("mc_stale", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let (first, second) = (
            publish(&app, &path, json!({ "x": 1 })).await,
            publish(&app, &path, json!({ "x": 2 })).await,
        );
        publish(&app, &path, json!({ "x": 3 })).await;
        let shown = preview(&app, &path, json!({ "sourceReleaseId": first["id"] })).await;
        let (token, etag) = (
            shown.ok()["previewToken"].clone(),
            shown.header("etag").to_owned(),
        );
        let before = traces(&app, &path).await;

        // Another source, another principal, another text, another profile.
        let elsewhere = preview(&app, &path, json!({ "sourceReleaseId": second["id"] })).await;
        let other_etag = elsewhere.header("etag").to_owned();
        assert_ne!(etag, other_etag);
        stale(
            &perform(
                &app,
                &path,
                json!({ "sourceReleaseId": second["id"], "previewToken": token }),
            )
            .await,
            &other_etag,
        );
        let (_, colleague) = app.account("colleague", "admin", &[]).await;
        let call = |body: Value| {
            app.request("POST", &format!("{path}/rollback"))
                .token(&colleague)
                .json(body)
                .send()
        };
        let body = json!({ "sourceReleaseId": first["id"], "previewToken": token });
        let mut performing = with_trio(body.clone(), &fresh_key());
        performing["confirm"] = true.into();
        stale(&call(performing).await, &etag);
        // A preview refuses what its performance would refuse.
        stale(&call(body).await, &etag);
        let text = token.as_str().unwrap();
        let mut flipped = text.to_owned();
        flipped.replace_range(12..13, if &text[12..13] == "A" { "B" } else { "A" });
        for bad in ["x", "!", "AAAAAAAAAAA", &text[..text.len() - 1], &flipped] {
            stale(
                &perform(
                    &app,
                    &path,
                    json!({ "sourceReleaseId": first["id"], "previewToken": bad }),
                )
                .await,
                &etag,
            );
        }
        let third = profile(&app, "generic_json").await;
        let own = publish(&app, &third, json!({ "x": 1 })).await;
        publish(&app, &third, json!({ "x": 3 })).await;
        perform(
            &app,
            &third,
            json!({ "sourceReleaseId": own["id"], "previewToken": token }),
        )
        .await
        .refused(412, "precondition_failed");
        for tag in [
            "\"x\"",
            "W/\"x\"",
            "",
            &etag.replace('"', ""),
            &format!("W/{etag}"),
            &other_etag,
        ] {
            stale(&with_if_match(&app, &path, &first["id"], tag).await, &etag);
        }
        let after = traces(&app, &path).await;
        assert_eq!(
            (&after["releases"], &after["profile"]),
            (&before["releases"], &before["profile"])
        );

        // It ends fifteen minutes after it was made, to the millisecond; its tag does not.
        let shown = preview(&app, &path, json!({ "sourceReleaseId": first["id"] })).await;
        let token = shown.ok()["previewToken"].clone();
        let ends = provost_kernel::Timestamp::parse(shown.json["expiresAt"].as_str().unwrap()).unwrap();
        assert_eq!(ends.as_ms() - app.now().as_ms(), 900_000);
        let again = json!({ "sourceReleaseId": first["id"], "previewToken": token });
        app.clock.advance(std::time::Duration::from_millis(899_999));
        preview(&app, &path, again.clone()).await.ok();
        app.clock.advance(std::time::Duration::from_millis(1));
        stale(&preview(&app, &path, again).await, &etag);

        // It outlives a restart, because its key does.
        let shown = preview(&app, &path, json!({ "sourceReleaseId": first["id"] })).await;
        let body = json!({ "sourceReleaseId": first["id"], "previewToken": shown.ok()["previewToken"] });
        let beside = app.beside(vec![], app.clock.clone(), Settings::default(), app.location());
        assert_eq!(
            preview(&beside, &path, json!({ "sourceReleaseId": first["id"] }))
                .await
                .header("etag"),
            etag
        );
        preview(&beside, &path, body.clone()).await.ok();

        // Something else is current: nothing that was shown is true any more.
        publish(&app, &path, json!({ "x": 4 })).await;
        let now = preview(&app, &path, json!({ "sourceReleaseId": first["id"] }))
            .await
            .header("etag")
            .to_owned();
        assert_ne!(now, etag);
        stale(&perform(&app, &path, body).await, &now);
        stale(&with_if_match(&app, &path, &first["id"], &etag).await, &now);
        let list = format!("\"other\", {now}");
        let done = with_if_match(&app, &path, &first["id"], &list).await;
        assert_eq!(done.ok()["release"]["version"], 5);
    });
}

#[test]
fn an_organization_can_demand_previews() {
    each("mc_require", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let first = publish(&app, &path, json!({ "x": 1 })).await;
        publish(&app, &path, json!({ "x": 2 })).await;
        let settings = json!({ "managedConfig": { "requirePreview": true } });
        app.write("PATCH", "/automation/settings", settings).await.ok();
        for reply in [
            perform(&app, &path, json!({ "sourceReleaseId": first["id"] })).await,
            // Anything that exists is not something that was seen.
            with_if_match(&app, &path, &first["id"], "*").await,
        ] {
            reply.refused(400, "invalid_request");
            assert_eq!(reply.json["errors"][0]["path"], "/previewToken");
        }
        let shown = preview(&app, &path, json!({ "sourceReleaseId": first["id"] })).await;
        let etag = shown.header("etag").to_owned();
        let done = with_if_match(&app, &path, &first["id"], &etag).await;
        assert_eq!(done.ok()["created"], true);
        let shown = preview(&app, &path, json!({})).await;
        let body = json!({ "sourceReleaseId": shown.ok()["sourceRelease"]["id"], "previewToken": shown.json["previewToken"] });
        assert_eq!(perform(&app, &path, body).await.ok()["release"]["version"], 4);
    });
}

/// Proves MC-3.
#[test]
fn a_preview_uses_up_no_key() {
    each("mc_key", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let first = publish(&app, &path, json!({ "x": 1 })).await;
        publish(&app, &path, json!({ "x": 2 })).await;
        let mut body = with_trio(json!({ "sourceReleaseId": first["id"] }), &fresh_key());
        for _ in 0..2 {
            assert_eq!(preview(&app, &path, body.clone()).await.ok()["mode"], "preview");
        }
        body["confirm"] = false.into();
        assert_eq!(preview(&app, &path, body.clone()).await.ok()["mode"], "preview");
        body["confirm"] = true.into();
        let done = preview(&app, &path, body.clone()).await;
        assert_eq!(done.ok()["created"], true);
        let again = preview(&app, &path, body).await;
        assert_eq!(
            (&again.bytes, again.header("idempotent-replayed")),
            (&done.bytes, "true")
        );
    });
}
