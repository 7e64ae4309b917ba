//! The role `member`: what everybody may do for themselves, and that it is never more.

use super::oauth::{code, post, redeeming, token, trusting, user, workshop};
use crate::areas::oauth::{public_client, register};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

const ANN: &str = "ann@acme.example";
const SETTINGS: &str = "/automation/settings";
const OWN: &str = "/devices/own";

async fn give_everybody(app: &App, role: &str) {
    let body = json!({ "directory": { "defaultRole": role } });
    app.write("PATCH", SETTINGS, body).await.ok();
}

async fn get(app: &App, token: &str, path: &str) -> Reply {
    app.request("GET", path).token(token).send().await
}

#[test]
fn whoever_has_no_role_is_a_member_where_an_admin_says_so_and_nothing_more() {
    each("member_default", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, None).await;
        let wide = "fleet:enrol_self fleet:read policies:read directory:read registry:install";
        let hers = token(&workshop, |claims| claims["scope"] = wide.into());
        get(&app, &hers, OWN).await.refused(403, "role_forbidden");
        give_everybody(&app, "member").await;
        assert_eq!(get(&app, &hers, OWN).await.ok()["devices"], json!([]));
        let shown = get(&app, &hers, "/capabilities").await.ok().clone();
        assert_eq!(shown["permissionRole"], "member");
        assert_eq!(shown["scopes"], json!(["fleet:enrol_self"]));
        for path in [
            "/devices",
            "/policies",
            "/service-accounts",
            "/directory/users",
            SETTINGS,
            "/audit/events",
            "/inventory/mcp-servers",
        ] {
            get(&app, &hers, path).await.refused(403, "role_forbidden");
        }
        // A role that somebody gave is hers, whatever everybody has.
        let path = format!("/directory/users/{ann}");
        let body = json!({ "permissionRole": "viewer" });
        app.write("PATCH", &path, body).await.ok();
        get(&app, &hers, "/devices").await.ok();
        let body = json!({ "permissionRole": null });
        app.write("PATCH", &path, body).await.ok();
        get(&app, &hers, "/devices").await.refused(403, "role_forbidden");
        get(&app, &hers, OWN).await.ok();
        give_everybody(&app, "none").await;
        get(&app, &hers, OWN).await.refused(403, "role_forbidden");
        give_everybody(&app, "member").await;
        get(&app, &hers, OWN).await.ok();
        // Whoever is suspended is nobody, and what was signed in before stays ended.
        app.write("POST", &format!("{path}/suspend"), json!({}))
            .await
            .ok();
        get(&app, &hers, OWN).await.refused(401, "token_revoked");
        app.write("POST", &format!("{path}/reactivate"), json!({}))
            .await
            .ok();
        get(&app, &hers, OWN).await.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

/// Proves SE-6.
#[test]
fn nobody_gives_everybody_what_they_could_not_give_to_one() {
    each("member_given", |app: Arc<App>| async move {
        let scopes = ["automation_settings:write", "directory:write"];
        let (_, narrow) = app.account("narrow", "admin", &scopes).await;
        let patch = async |path: &str, body: Value| {
            let body = with_trio(body, &fresh_key());
            app.request("PATCH", path).token(&narrow).json(body).send().await
        };
        let give = |role: &str| json!({ "directory": { "defaultRole": role } });
        let reply = patch(SETTINGS, give("member")).await;
        reply.refused(403, "escalation_forbidden");
        let other = patch(SETTINGS, json!({ "directory": { "complete": true } })).await;
        assert_eq!(other.ok()["directory"]["defaultRole"], "none");
        let user = user(&app, ANN, None).await;
        let of_one = format!("/directory/users/{user}");
        let to_one = patch(&of_one, json!({ "permissionRole": "member" })).await;
        to_one.refused(403, "escalation_forbidden");
        // Taking it back, and leaving it as it is, needs nothing.
        give_everybody(&app, "member").await;
        patch(SETTINGS, give("member")).await.ok();
        patch(SETTINGS, give("none")).await.ok();
        for more in ["viewer", "admin", "operator", "auditor"] {
            let body = give(more);
            let reply = app.write("PATCH", SETTINGS, body).await;
            reply.refused(400, "invalid_request");
        }
        app.kernel.stop().await;
    });
}

#[test]
fn a_member_signs_in_for_what_members_may_and_no_longer_than_they_are_one() {
    each("member_signs_in", |app: Arc<App>| async move {
        let scopes = ["fleet:enrol_self", "fleet:read"];
        let mut body = public_client(&fresh_key());
        body["scopes"] = json!(scopes);
        let client = register(&app, body).await;
        let ann = user(&app, ANN, None).await;
        let redeem = async |code: &str| post(&app, "/oauth/token", &redeeming(&client, code)).await;
        let unusable = code(&app, &client, &ann, &scopes, None).await;
        assert_eq!(redeem(&unusable).await.status.as_u16(), 400);
        give_everybody(&app, "member").await;
        let given = redeem(&code(&app, &client, &ann, &scopes, None).await).await;
        assert_eq!(given.status.as_u16(), 200, "{}", given.text());
        assert_eq!(given.json["scope"], "fleet:enrol_self");
        let access = given.json["access_token"].as_str().unwrap().to_owned();
        let refresh = given.json["refresh_token"].as_str().unwrap().to_owned();
        get(&app, &access, OWN).await.ok();
        give_everybody(&app, "none").await;
        get(&app, &access, OWN).await.refused(403, "role_forbidden");
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", client.as_str()),
            ("refresh_token", refresh.as_str()),
        ];
        let refused = post(&app, "/oauth/token", &form).await;
        assert_eq!(refused.status.as_u16(), 400, "{}", refused.text());
        app.kernel.stop().await;
    });
}
