//! Who says who they are, badly.

use super::{ACCOUNTS, account_with, effects};
use crate::areas_beside::every_area;
use crate::samples::{self, masked};
use crate::support::{App, Call, each, each_of, fresh_key, with_trio};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The checksum of a token, so that a forgery passes it: CRC-32 in base62 (D2.2).
fn checksum(text: &str) -> String {
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 * (crc & 1));
        }
    }
    let alphabet: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    let mut rest = usize::try_from(!crc).unwrap();
    let mut digits = vec!['0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = alphabet[rest % 62];
        rest /= 62;
    }
    digits.into_iter().collect()
}

/// Another character at a place.
fn flipped(token: &str, place: usize) -> String {
    let other = if token.as_bytes()[place] == b'x' { "y" } else { "x" };
    let mut token = token.to_owned();
    token.replace_range(place..=place, other);
    token
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn only_one_bearer_header_authenticates() {
    each("bearer", |app: Arc<App>| async move {
        let token = app.admin.clone();
        let body = &token[..token.len() - 6];
        assert_eq!(checksum(body), token[token.len() - 6..]);
        let forged = |place: usize| {
            let body = flipped(body, place);
            format!("{body}{}", checksum(&body))
        };
        let mut presented: Vec<String> = (0..token.len())
            .map(|place| format!("Bearer {}", flipped(&token, place)))
            .collect();
        // The right checksum, and a lookup id or a secret that is not.
        for place in 9..body.len() {
            if place != 21 {
                presented.push(format!("Bearer {}", forged(place)));
            }
        }
        let gateway = format!("prov_gwt_{}", &body[9..]);
        presented.extend([
            format!("Bearer {gateway}{}", checksum(&gateway)),
            format!("Bearer  {token}"),
            format!("Bearer\t{token}"),
            format!("Bearer{token}"),
            format!("Bearer: {token}"),
            format!("Bearer {token} x"),
            format!("Bearer {token},{token}"),
            format!("Bearer \"{token}\""),
            format!("Bearer {}", token.to_uppercase()),
            format!("Bearer {}", &token[..token.len() - 1]),
            format!("Bearer {token}0"),
            format!("Basic {token}"),
            format!("Token {token}"),
            token.clone(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            String::new(),
            format!("Bearer {}", "a".repeat(8000)),
            "Bearer a.b.c".to_owned(),
        ]);
        let mut answers = BTreeSet::new();
        for value in &presented {
            let reply = app
                .request("GET", ACCOUNTS)
                .anonymous()
                .header("authorization", value)
                .send()
                .await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (401, "unauthenticated"),
                "{value}: {}",
                reply.text()
            );
            let challenge = reply.header("www-authenticate");
            assert!(
                challenge.contains("error=\"invalid_token\""),
                "{value}: {challenge}"
            );
            answers.insert(masked(&reply));
        }
        let two = app
            .request("GET", ACCOUNTS)
            .header("authorization", &format!("Bearer {token}"))
            .send()
            .await;
        two.refused(401, "unauthenticated");
        answers.insert(masked(&two));
        assert_eq!(answers.len(), 1, "a guess can be told from another: {answers:#?}");

        let elsewhere: Vec<Call<'_>> = vec![
            app.request("GET", ACCOUNTS),
            app.request("GET", &format!("{ACCOUNTS}?access_token={token}")),
            app.request("GET", ACCOUNTS)
                .header("cookie", &format!("token={token}")),
            app.request("GET", ACCOUNTS)
                .header("proxy-authorization", &format!("Bearer {token}")),
            app.request("GET", ACCOUNTS).header("x-api-key", &token),
        ];
        for call in elsewhere {
            let reply = call.anonymous().send().await;
            reply.refused(401, "unauthenticated");
            let challenge = reply.header("www-authenticate");
            assert!(
                challenge.starts_with("Bearer realm=\"headless\", resource_metadata=\"http"),
                "{challenge}"
            );
            assert!(!challenge.contains("error"), "{challenge}");
        }
        let before = effects(&app).await;
        let body =
            json!({ "name": "x", "permissionRole": "viewer", "allOfRole": true, "access_token": token });
        let call = app
            .request("POST", ACCOUNTS)
            .anonymous()
            .json(with_trio(body, &fresh_key()));
        call.send().await.refused(401, "unauthenticated");
        assert_eq!(effects(&app).await, before);
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            let call = app.request("GET", ACCOUNTS).anonymous();
            call.header("authorization", &format!("{scheme} {token}"))
                .send()
                .await
                .ok();
        }
    });
}

#[test]
fn a_dead_token_says_what_it_died_of_to_its_holder_alone() {
    each("dead", |app: Arc<App>| async move {
        let body = json!({ "name": "short", "permissionRole": "admin", "allOfRole": true, "expiresInSeconds": 3600 });
        let made = app.write("POST", ACCOUNTS, body).await;
        let short = made.ok()["token"]["token"].as_str().unwrap().to_owned();
        let as_short = || app.request("GET", ACCOUNTS).token(&short).send();
        app.advance(3599);
        as_short().await.ok();
        app.advance(1);
        as_short().await.refused(401, "token_expired");
        let (id, token) = app.account("other", "admin", &[]).await;
        let path = format!("{ACCOUNTS}/{id}");
        app.write("POST", &format!("{path}/tokens"), json!({})).await.ok();
        let call = || app.request("GET", ACCOUNTS).token(&token).send();
        call().await.refused(401, "token_revoked");
        let forged = flipped(&token, token.len() - 20);
        let forged = format!(
            "{}{}",
            &forged[..forged.len() - 6],
            checksum(&forged[..forged.len() - 6])
        );
        app.request("GET", ACCOUNTS)
            .token(&forged)
            .send()
            .await
            .refused(401, "unauthenticated");
        // A dead token changes nothing either.
        let before = effects(&app).await;
        let call = app.request("POST", ACCOUNTS).token(&token).json(account_with(
            "name",
            Some(json!("x")),
            &fresh_key(),
        ));
        call.send().await.refused(401, "token_revoked");
        assert_eq!(effects(&app).await, before);
    });
}

#[test]
fn a_token_that_rotated_itself_is_dead_to_everything_else() {
    each_of(every_area(), "self_rotated", |app: Arc<App>| async move {
        let (id, token) = app
            .account("itself", "viewer", &["service_accounts:rotate_self"])
            .await;
        let path = format!("{ACCOUNTS}/{id}/tokens");
        let key = fresh_key();
        let rotate = || {
            app.request("POST", &path)
                .token(&token)
                .json(with_trio(json!({}), &key))
                .send()
        };
        let first = rotate().await;
        first.ok();
        let target = samples::fresh_target(&app).await;
        let before = effects(&app).await;
        for entry in app.kernel.registry.entries() {
            let reply = samples::call(&app, entry, &target).token(&token).send().await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (401, "token_revoked"),
                "{}",
                entry.meta.id
            );
        }
        let call = app.request("POST", &path).token(&token);
        let fresh = call.json(with_trio(json!({}), &fresh_key())).send().await;
        fresh.refused(401, "token_revoked");
        assert_eq!(effects(&app).await, before);
        assert_eq!(rotate().await.bytes, first.bytes);
    });
}
