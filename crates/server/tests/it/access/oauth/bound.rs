//! Codes and refresh tokens that are bound to a key (RFC 9449), and what the token endpoint does not read at all.

use super::dpop::{proof_of, thumbprint};
use super::refresh::refreshing;
use super::*;
use crate::support::{each, each_with, fresh_key};
use aws_lc_rs::signature::Ed25519KeyPair;
use provost_kernel::expose::edge::Peer;
use provost_kernel::kernel::Settings;
use provost_kernel::kernel::buckets::AUTHENTICATION;

const TOKEN: &str = "/oauth/token";

/// Sends a form with a proof of a key, if there is one.
async fn send(app: &App, form: &[(&str, &str)], key: Option<&Ed25519KeyPair>) -> Reply {
    let now = app.now().as_ms() / 1000;
    let of = |key| proof_of("POST", key, "", now, &fresh_key(), &format!("{URL}{TOKEN}"));
    match key.map(of) {
        Some(proof) => post_with(app, TOKEN, form, &[("dpop", &proof)]).await,
        None => post(app, TOKEN, form).await,
    }
}

#[test]
fn a_stolen_code_or_refresh_token_is_worth_nothing_without_its_key() {
    each("oauth_bound", |app| async move {
        let client = register(&app, public_client("one")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let (key, thief) = (
            Ed25519KeyPair::generate().unwrap(),
            Ed25519KeyPair::generate().unwrap(),
        );
        let jkt = Some(thumbprint(&key));
        let code = code(&app, &client, &ann, &["policies:read"], jkt).await;
        let form = redeeming(&client, &code);
        for hands in [None, Some(&thief)] {
            refused(&send(&app, &form, hands).await, 400, "invalid_dpop_proof");
        }
        let reply = send(&app, &form, Some(&key)).await;
        assert_eq!(reply.ok()["token_type"], "DPoP", "a theft that failed spent it");

        let refresh = reply.json["refresh_token"].as_str().unwrap().to_owned();
        let form = refreshing(&client, &refresh);
        for hands in [None, Some(&thief)] {
            refused(&send(&app, &form, hands).await, 400, "invalid_dpop_proof");
        }
        let reply = send(&app, &form, Some(&key)).await;
        assert_eq!(
            reply.ok()["token_type"],
            "DPoP",
            "a theft that failed ended the session"
        );
        // The new one is bound as the old one was.
        let refresh = reply.json["refresh_token"].as_str().unwrap().to_owned();
        let form = refreshing(&client, &refresh);
        refused(&send(&app, &form, Some(&thief)).await, 400, "invalid_dpop_proof");
    });
}

#[test]
fn other_methods_are_told_what_the_endpoint_takes() {
    each("oauth_methods", |app| async move {
        for path in [TOKEN, "/oauth/revoke"] {
            for (method, status) in [("GET", 405), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 204)] {
                let request = Request::builder().method(method).uri(path);
                let reply = answer(&app, request.body(Body::empty()).unwrap()).await;
                assert_eq!(reply.status.as_u16(), status, "{method} {path}");
                assert_eq!(reply.header("allow"), "POST, OPTIONS", "{method} {path}");
                let error = if status == 405 {
                    json!("invalid_request")
                } else {
                    Value::Null
                };
                assert_eq!(reply.json["error"], error, "{method} {path}");
            }
        }
    });
}

#[test]
fn who_fails_too_often_waits_and_others_do_not() {
    each_with("oauth_failures", &Settings::default(), |app| async move {
        let client = register(&app, public_client("one")).await;
        let ask = async |network: [u8; 4]| {
            let mut request = Request::post(TOKEN)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(Body::from(encoded(&redeeming(&client, "unknown"))))
                .unwrap();
            request.extensions_mut().insert(Peer((network, 4711).into()));
            answer(&app, request).await
        };
        for _ in 0..AUTHENTICATION.burst {
            refused(&ask([192, 0, 2, 1]).await, 400, "invalid_grant");
        }
        let limited = ask([192, 0, 2, 1]).await;
        refused(&limited, 429, "temporarily_unavailable");
        let wait: u64 = limited.header("retry-after").parse().unwrap();
        assert!((1..=2).contains(&wait), "{wait} s");
        refused(&ask([198, 51, 100, 7]).await, 400, "invalid_grant");
    });
}

#[test]
fn a_code_of_somebody_who_may_not_act_any_more_begins_nothing() {
    each("oauth_code_suspended", |app| async move {
        let client = register(&app, public_client("one")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let code = code(&app, &client, &ann, &["policies:read"], None).await;
        app.write("POST", &format!("/directory/users/{ann}/suspend"), json!({}))
            .await
            .ok();
        let reply = post(&app, TOKEN, &redeeming(&client, &code)).await;
        refused(&reply, 400, "invalid_grant");
        assert_eq!(app.get("/mcp/sessions").await.ok()["total"], 0);
    });
}

#[test]
fn what_is_no_form_of_the_body_is_not_read() {
    each("oauth_forms", |app| async move {
        let client = register(&app, public_client("one")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let code = code(&app, &client, &ann, &["policies:read"], None).await;
        let text = encoded(&redeeming(&client, &code));
        let form = "application/x-www-form-urlencoded";
        for (path, media_type, body) in [
            (TOKEN, Some("application/json"), text.as_str()),
            (TOKEN, None, text.as_str()),
            // A code in a URL stands in the logs of every proxy.
            (&*format!("{TOKEN}?{text}"), Some(form), ""),
            (&*format!("{TOKEN}?a=b"), Some(form), text.as_str()),
        ] {
            let mut request = Request::post(path);
            if let Some(media_type) = media_type {
                request = request.header("content-type", media_type);
            }
            let reply = answer(&app, request.body(Body::from(body.to_owned())).unwrap()).await;
            refused(&reply, 400, "invalid_request");
        }
        let request =
            Request::post(TOKEN).header("content-type", "Application/X-WWW-Form-URLEncoded; charset=UTF-8");
        let reply = answer(&app, request.body(Body::from(text)).unwrap()).await;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    });
}
