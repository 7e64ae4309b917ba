//! How the address of a server may be written, and where its documents are.

use super::granted::access;
use super::refresh::refreshing;
use super::*;
use crate::support::each;

fn claims(token: &str) -> Value {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

#[test]
fn tokens_of_another_spelling_of_the_address_serve_until_they_end() {
    each("oauth_spelled", |app| async move {
        let old = app.restarted_as("https://Provost.Example:443").unwrap();
        let (client, _, first) = signed_in(&old).await;
        let text = |name: &str| first[name].as_str().unwrap().to_owned();
        let (first, refresh) = (text("access_token"), text("refresh_token"));
        assert_eq!(claims(&first)["iss"], "https://Provost.Example:443");
        old.kernel.stop().await;

        let new = app.restarted_as("https://provost.example").unwrap();
        read(&new, &first).await.ok();
        let form = refreshing(&client, &refresh);
        let elsewhere = [
            "https://provost.example:8443/mcp",
            "http://provost.example/mcp",
            "https://provost.example/mcp/",
            "https://provost.example/MCP",
            "https://provost.example",
        ];
        for resource in elsewhere {
            let form = [&form[..], &[("resource", resource)]].concat();
            refused(&post(&new, "/oauth/token", &form).await, 400, "invalid_target");
        }
        let api = "https://PROVOST.example:443/api/headless/v1";
        let form = [&form[..], &[("resource", api)]].concat();
        let second = access(&post(&new, "/oauth/token", &form).await);
        // What is issued has the spelling of today, and no other.
        assert_eq!(claims(&second)["iss"], "https://provost.example");
        assert_eq!(
            claims(&second)["aud"],
            json!("https://provost.example/api/headless/v1")
        );
        read(&new, &second).await.ok();
        // Whoever has a token of the old spelling can give it back.
        let back = [("client_id", client.as_str()), ("token", &first)];
        assert_eq!(post(&new, "/oauth/revoke", &back).await.status.as_u16(), 200);
        read(&new, &second).await.refused(401, "token_revoked");
        new.kernel.stop().await;
    });
}

/// Proves OC-1.
#[test]
fn a_token_of_another_address_is_no_token_here() {
    each("oauth_address", |app| async move {
        let here = app.restarted_as("https://provost.example").unwrap();
        let (_, _, first) = signed_in(&here).await;
        let token = first["access_token"].as_str().unwrap();
        read(&here, token).await.ok();
        here.kernel.stop().await;
        for other in [
            "https://provost.example:8443",
            "http://provost.example",
            "https://provost.example.net",
            "https://provost.example/base",
        ] {
            let there = app.restarted_as(other).unwrap();
            read(&there, token).await.refused(401, "unauthenticated");
            there.kernel.stop().await;
        }
    });
}

#[test]
fn a_server_behind_a_path_has_its_documents_behind_it_too() {
    each("oauth_path", |app| async move {
        const URL: &str = "https://provost.example/base";
        let app = app.restarted_as(URL).unwrap();
        let get = async |path: &str| answer(&app, Request::get(path).body(Body::empty()).unwrap()).await;
        let resource = "/.well-known/oauth-protected-resource";
        for base in ["", "/base"] {
            for (path, of) in [
                ("/mcp", "/mcp"),
                ("/api/headless/v1", "/api/headless/v1"),
                ("", "/mcp"),
            ] {
                let reply = get(&format!("{resource}{base}{path}")).await;
                assert_eq!(reply.ok()["resource"], format!("{URL}{of}"));
                assert_eq!(reply.json["authorization_servers"], json!([URL]));
            }
            let server = get(&format!("/.well-known/oauth-authorization-server{base}")).await;
            assert_eq!(server.ok()["issuer"], URL);
            assert_eq!(server.json["token_endpoint"], format!("{URL}/oauth/token"));
        }
        for path in [
            "/.well-known/oauth-authorization-server/other",
            "/.well-known/oauth-authorization-server/base/mcp",
            "/.well-known/oauth-protected-resource/base/other",
        ] {
            assert_eq!(get(path).await.status.as_u16(), 404, "{path}");
        }
        app.kernel.stop().await;
    });
}
