//! What a client can be granted: what could be handed out when it was made, and what is left of that now.

use super::granted::{Confidential, access};
use super::*;
use crate::support::{each, fresh_key, with_trio};
use provost_areas_access::oauth as area;
use provost_kernel::db::{Access, Call, Conn, Statement};

const CLIENTS: &str = "/mcp/clients";
const CREDENTIALS: &str = "client_credentials";

/// Has the clients be as a program before 0016 left them.
fn forget_ceilings(app: &App) {
    static FORGET: Statement = Statement {
        name: "forget",
        sqlite: "UPDATE oauth_clients SET ceiling = NULL",
        postgres: "UPDATE oauth_clients SET ceiling = NULL",
        unscoped: Some("a test"),
    };
    let location = app.location();
    let work = move || {
        let mut conn = Conn::open(&location, Access::Write).unwrap();
        conn.begin(&[]).unwrap();
        let call = Call {
            statement: &FORGET,
            params: vec![],
        };
        conn.commit(&[call]).unwrap();
    };
    std::thread::spawn(work).join().unwrap();
}

async fn wider(app: &App) -> Vec<String> {
    app.kernel.read_system(area::wider_than_granted).await.unwrap()
}

/// Proves OC-15.
#[test]
fn a_client_gains_nothing_when_its_account_is_promoted_until_somebody_who_holds_it_says_so() {
    each("oauth_ceiling", |first| async move {
        let (account, _) = first.account("robot", "viewer", &["policies:read"]).await;
        let client = Confidential::register(&first, &[CREDENTIALS], Some(&account)).await;
        forget_ceilings(&first);
        let app = first.restarted(Extras::default()).unwrap();
        let path = format!("{CLIENTS}/{}", client.id);
        // Its scopes were wider than what its account may do.
        let shown = app.get(&path).await.ok().clone();
        assert_eq!(shown["scopes"], json!(["directory:read", "policies:read"]));
        assert_eq!(shown["ceiling"], json!(["policies:read"]));
        let found = wider(&app).await;
        assert!(found.len() == 1 && found[0].contains(&client.id), "{found:?}");
        let promotion = json!({ "permissionRole": "admin", "allOfRole": true });
        app.write("PATCH", &format!("/service-accounts/{account}"), promotion)
            .await
            .ok();
        let form = |scope: &'static str| [("grant_type", CREDENTIALS), ("scope", scope)];
        let asked = client.ask(&app, &form("policies:read directory:read")).await;
        assert_eq!(asked.ok()["scope"], "policies:read");
        refused(
            &client.ask(&app, &form("directory:read")).await,
            400,
            "invalid_scope",
        );
        // Who does not hold the scope does not lift the ceiling; who does, does.
        let (_, narrow) = app
            .account("narrow", "admin", &["mcp:write", "policies:read"])
            .await;
        let given = json!({ "scopes": ["policies:read", "directory:read"] });
        let call = app.request("PATCH", &path).token(&narrow);
        call.json(with_trio(given.clone(), &fresh_key()))
            .send()
            .await
            .refused(403, "escalation_forbidden");
        let lifted = app.write("PATCH", &path, given).await;
        assert!(lifted.ok().get("ceiling").is_none());
        access(&client.ask(&app, &form("directory:read")).await);
        assert_eq!(wider(&app).await, Vec::<String>::new());
        // The maker of the ceiling is no condition of it.
        let (maker, token) = app.account("maker", "admin", &[]).await;
        let made = json!({ "scopes": ["policies:read"] });
        let call = app.request("PATCH", &path).token(&token);
        call.json(with_trio(made, &fresh_key())).send().await.ok();
        app.write("POST", &format!("/service-accounts/{maker}/disable"), json!({}))
            .await
            .ok();
        access(&client.ask(&app, &form("policies:read")).await);
        app.kernel.stop().await;
    });
}

/// Proves OC-14.
#[test]
fn who_writes_clients_alone_neither_widens_nor_points_elsewhere_an_admins_client() {
    each("oauth_client_gifts", |app| async move {
        let admins = json!({
            "name": "the admin's", "redirectUris": ["https://app.example/back", "https://app.example/other"],
            "grantTypes": ["authorization_code"], "tokenEndpointAuthMethod": "private_key_jwt",
            "jwksUri": "https://app.example/keys.json", "scopes": ["policies:write", "mcp:read"],
        });
        let id = register(&app, admins.clone()).await;
        let (_, narrow) = app.account("narrow", "admin", &["mcp:write"]).await;
        let path = format!("{CLIENTS}/{id}");
        let change = async |token: Option<&str>, body: Value| {
            let mut call = app.request("PATCH", &path).json(with_trio(body, &fresh_key()));
            if let Some(token) = token {
                call = call.token(token);
            }
            call.send().await
        };
        let mine = Some(narrow.as_str());
        let gifts = [
            json!({ "scopes": ["policies:write", "mcp:read", "audit:read"] }),
            json!({ "redirectUris": ["https://evil.example/back"] }),
            json!({ "redirectUris": ["https://app.example/back", "https://evil.example/back"] }),
            json!({ "jwksUri": "https://evil.example/keys.json" }),
            json!({ "jwks": { "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": URL_SAFE_NO_PAD.encode([7; 32]) }] } }),
            json!({ "grantTypes": ["authorization_code", "refresh_token"] }),
        ];
        let before = app.get(&path).await.ok().clone();
        for gift in &gifts {
            change(mine, gift.clone())
                .await
                .refused(403, "escalation_forbidden");
        }
        assert_eq!(app.get(&path).await.ok(), &before);
        // Nor is one registered that does more than its maker may.
        let mut own = admins;
        own["name"] = "mine".into();
        let made = app.request("POST", CLIENTS).token(&narrow);
        made.json(with_trio(own, &fresh_key()))
            .send()
            .await
            .refused(403, "escalation_forbidden");
        // Taking away needs nothing more, also what its taker does not hold.
        for taken in [
            json!({ "redirectUris": ["https://app.example/back"] }),
            json!({ "scopes": ["policies:write"] }),
            json!({ "name": "another name" }),
            json!({ "blocked": true }),
        ] {
            change(mine, taken).await.ok();
        }
        let revived = json!({ "blocked": false });
        change(mine, revived.clone())
            .await
            .refused(403, "escalation_forbidden");
        change(None, revived).await.ok();
        // What was taken away is given back by somebody who holds it.
        let back = json!({ "scopes": ["policies:write", "mcp:read"] });
        change(mine, back.clone())
            .await
            .refused(403, "escalation_forbidden");
        for gift in [back].into_iter().chain(gifts) {
            change(None, gift).await.ok();
        }
    });
}

/// Proves OC-10.
#[test]
fn what_was_narrowed_is_narrower_from_the_next_request_on() {
    each("oauth_narrowed", |app| async move {
        let body = json!({
            "name": fresh_key(), "redirectUris": [BACK], "tokenEndpointAuthMethod": "none",
            "grantTypes": ["authorization_code", "refresh_token"], "scopes": ["policies:read", "directory:read"],
        });
        let client = register(&app, body).await;
        let ann = user(&app, "ann@acme.example", Some("operator")).await;
        let code = code(&app, &client, &ann, &["policies:read", "directory:read"], None).await;
        let answer = post(&app, "/oauth/token", &redeeming(&client, &code))
            .await
            .ok()
            .clone();
        let text = |member: &str| answer[member].as_str().unwrap().to_owned();
        let (token, refresh) = (text("access_token"), text("refresh_token"));
        read(&app, &token).await.ok();
        let people = async || {
            let call = app.request("GET", "/directory/users").token(&token);
            call.send().await.status.as_u16()
        };
        let change = async |scopes: Value| {
            let body = json!({ "scopes": scopes });
            app.write("PATCH", &format!("{CLIENTS}/{client}"), body)
                .await
                .ok();
        };
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", client.as_str()),
            ("refresh_token", refresh.as_str()),
        ];
        // The client.
        change(json!(["directory:read"])).await;
        assert_eq!(read(&app, &token).await.status.as_u16(), 403);
        let answer = post(&app, "/oauth/token", &form).await;
        assert_eq!(answer.ok()["scope"], "directory:read");
        assert_eq!(people().await, 200);
        // The user.
        let role = json!({ "permissionRole": null });
        app.write("PATCH", &format!("/directory/users/{ann}"), role)
            .await
            .ok();
        assert_eq!(people().await, 403);
        let refresh = answer.json["refresh_token"].as_str().unwrap();
        let mut again = form;
        again[2].1 = refresh;
        refused(&post(&app, "/oauth/token", &again).await, 400, "invalid_grant");
        // The account.
        let (account, _) = app
            .account("robot", "viewer", &["policies:read", "fleet:read"])
            .await;
        let robot = Confidential::register(&app, &[CREDENTIALS], Some(&account)).await;
        let given = access(&robot.ask(&app, &[("grant_type", CREDENTIALS)]).await);
        read(&app, &given).await.ok();
        let less = json!({ "scopes": ["fleet:read"] });
        app.write("PATCH", &format!("/service-accounts/{account}"), less)
            .await
            .ok();
        assert_eq!(read(&app, &given).await.status.as_u16(), 403);
        let asked = [("grant_type", CREDENTIALS), ("scope", "policies:read")];
        refused(&robot.ask(&app, &asked).await, 400, "invalid_scope");
    });
}

#[test]
fn scopes_that_the_account_of_a_client_cannot_use_are_said_to_who_changes_it() {
    each("oauth_idle", |app| async move {
        let (account, _) = app.account("robot", "viewer", &["policies:read"]).await;
        let client = Confidential::register(&app, &[CREDENTIALS], Some(&account)).await;
        let path = format!("{CLIENTS}/{}", client.id);
        let said = app.write("PATCH", &path, json!({ "name": "pipeline" })).await;
        let warning = &said.ok()["warnings"][0];
        assert_eq!(warning["code"], "scopes_beyond_account");
        let message = warning["message"].as_str().unwrap();
        assert!(
            message.contains("directory:read") && !message.contains("policies:read"),
            "{message}"
        );
        assert!(app.get(&path).await.ok().get("warnings").is_none());
        // What an account can do is for those who may read accounts.
        let (_, other) = app.account("clients", "admin", &["mcp:write"]).await;
        let call = app.request("PATCH", &path).token(&other);
        let said = call
            .json(with_trio(json!({ "name": "robots" }), &fresh_key()))
            .send()
            .await;
        assert!(said.ok().get("warnings").is_none());
        let fits = app
            .write("PATCH", &path, json!({ "scopes": ["policies:read"] }))
            .await;
        assert!(fits.ok().get("warnings").is_none());
    });
}
