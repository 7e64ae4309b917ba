//! Bodies: types, members, strict JSON, size, media type.

use super::{ACCOUNTS, account_with, effects};
use crate::samples::Target;
use crate::support::{App, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_wrong_member_is_named_and_nothing_happens() {
    each("members", |app: Arc<App>| async move {
        let (key, long) = ("one-key-for-every-refusal", "x".repeat(1025));
        let mut cases: Vec<(&str, Option<Value>)> = vec![];
        for member in ["name", "permissionRole", "scopes", "reason", "idempotencyKey"] {
            cases.push((member, None));
            cases.push((member, Some(json!(1))));
            cases.push((member, Some(json!({}))));
            cases.push((member, Some(json!(true))));
            cases.push((member, Some(json!(""))));
        }
        for member in ["name", "permissionRole", "reason", "idempotencyKey", "confirm"] {
            cases.push((member, Some(json!(null))));
            cases.push((member, Some(json!(["x"]))));
        }
        for text in ["name", "tokenName", "ownerConsoleUserId"] {
            for bad in [
                "\0",
                "a\0b",
                "a\nb",
                "a\u{1b}[0m",
                "a\u{7f}",
                "a\u{9b}",
                "a\u{2028}",
                " a",
                "a ",
                &long[..129],
            ] {
                cases.push((text, Some(json!(bad))));
            }
        }
        for bad in ["\0", "a\nb", "a\rb", "   ", "a\u{1b}", "a\u{2029}b", &long[..501]] {
            cases.push(("reason", Some(json!(bad))));
        }
        for bad in ["a b", "a\n", "\0", "ü", &long[..256]] {
            cases.push(("idempotencyKey", Some(json!(bad))));
        }
        for bad in ["\0", "a\rb", "a\u{1b}", long.as_str()] {
            cases.push(("description", Some(json!(bad))));
        }
        for bad in [json!(5), json!([]), json!(false)] {
            cases.push(("description", Some(bad)));
        }
        for bad in ["root", "Admin", "admin ", "ADMIN"] {
            cases.push(("permissionRole", Some(json!(bad))));
        }
        for bad in [
            json!("fleet:read"),
            json!([]),
            json!([1]),
            json!(["fleet:reed"]),
            json!(["*"]),
            json!(["fleet:*"]),
            json!([null]),
            json!([["fleet:read"]]),
            json!(vec!["fleet:read"; 129]),
        ] {
            cases.push(("scopes", Some(bad)));
        }
        for bad in [
            json!("3600"),
            json!(3600.5),
            json!(3599),
            json!(31_536_001),
            json!(-1),
            json!(0),
            json!(true),
            json!(u64::MAX),
        ] {
            cases.push(("expiresInSeconds", Some(bad)));
        }
        for bad in [json!("true"), json!(1), json!(null), json!(true)] {
            cases.push(("allOfRole", Some(bad)));
        }
        for bad in [json!("true"), json!(1)] {
            cases.push(("confirm", Some(bad)));
        }
        for unknown in [
            "comfirm",
            "approvalId",
            "id",
            "organizationId",
            "status",
            "tokens",
            "__proto__",
            "createdAt",
        ] {
            cases.push((unknown, Some(json!("x"))));
        }
        let before = effects(&app).await;
        for (member, value) in cases {
            let body = account_with(member, value, key);
            let reply = app.request("POST", ACCOUNTS).json(body.clone()).send().await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (400, "invalid_request"),
                "{body}\n{}",
                reply.text()
            );
            assert!(
                reply.json["message"].as_str().unwrap().contains(member),
                "{body}\n{}",
                reply.text()
            );
            assert!(
                !reply.json["errors"].as_array().unwrap().is_empty(),
                "{body}\n{}",
                reply.text()
            );
            assert!(
                reply.bytes.len() < 1000,
                "the refusal quotes the request: {}",
                reply.text()
            );
        }
        assert_eq!(effects(&app).await, before);
        // None of the refusals was remembered for its key.
        let body = account_with("name", Some(json!("someone")), key);
        let made = app.request("POST", ACCOUNTS).json(body).send().await;
        assert_eq!(
            (made.status.as_u16(), made.header("idempotent-replayed")),
            (201, "")
        );
    });
}

fn nested(levels: usize) -> String {
    // The body's own object is the first level.
    format!(
        "{{\"deep\":{}{}}}",
        "[".repeat(levels - 1),
        "]".repeat(levels - 1)
    )
}

#[test]
fn a_body_that_is_not_strict_json_is_refused() {
    each("json", |app: Arc<App>| async move {
        let valid = account_with("name", Some(json!("strict")), "a-key-of-some-length-1").to_string();
        let inner = &valid[1..valid.len() - 1];
        let with = |extra: &[u8]| [b"{", extra, b",", inner.as_bytes(), b"}"].concat();
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("a member twice", with(b"\"name\":\"other\"")),
            ("the reason twice", with(b"\"reason\":\"a test\"")),
            ("a member twice, escaped", with(b"\"n\\u0061me\":\"other\"")),
            ("a member twice below", with(b"\"x\":{\"a\":1,\"a\":1}")),
            (
                "a member twice far below",
                with(b"\"x\":[{\"y\":{\"z\":[{\"a\":1,\"b\":2,\"a\":3}]}}]"),
            ),
            ("33 levels", nested(33).into_bytes()),
            ("10000 levels", nested(10_000).into_bytes()),
            ("not UTF-8", with(b"\"description\":\"\xff\"")),
            ("an overlong form", with(b"\"description\":\"\xc0\x80\"")),
            ("a surrogate in UTF-8", with(b"\"description\":\"\xed\xa0\x80\"")),
            ("a lone surrogate", with(b"\"description\":\"\\ud800\"")),
            (
                "surrogates in the wrong order",
                with(b"\"description\":\"\\udc00\\ud800\""),
            ),
            ("a control character in a text", with(b"\"description\":\"\x01\"")),
            ("a byte order mark", [b"\xef\xbb\xbf", valid.as_bytes()].concat()),
            (
                "UTF-16",
                valid.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            ),
            ("more behind it", format!("{valid} {{}}").into_bytes()),
            ("a comma behind it", format!("{valid},").into_bytes()),
            ("a NUL behind it", format!("{valid}\0").into_bytes()),
            ("NaN", with(b"\"expiresInSeconds\":NaN")),
            ("Infinity", with(b"\"expiresInSeconds\":-Infinity")),
            (
                "a number beyond every double",
                with(b"\"expiresInSeconds\":1e999"),
            ),
            (
                "a number with a leading zero",
                with(b"\"expiresInSeconds\":07200"),
            ),
            ("a hexadecimal number", with(b"\"expiresInSeconds\":0x1c20")),
            (
                "a trailing comma",
                with(b"")
                    .into_iter()
                    .rev()
                    .skip(1)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .chain(*b",}")
                    .collect(),
            ),
            ("a comment", with(b"/* x */ \"description\":\"x\"")),
            ("single quotes", valid.replace('"', "'").into_bytes()),
            ("half of it", valid.as_bytes()[..valid.len() / 2].to_vec()),
            ("no body", Vec::new()),
            ("a space", b" ".to_vec()),
            ("an array", format!("[{valid}]").into_bytes()),
            ("a text", json!(valid).to_string().into_bytes()),
            ("null", b"null".to_vec()),
            ("a number", b"1".to_vec()),
            ("a form", b"name=x&permissionRole=viewer".to_vec()),
        ];
        let before = effects(&app).await;
        for (name, bytes) in cases {
            let reply = app.request("POST", ACCOUNTS).bytes(bytes).send().await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (400, "invalid_request"),
                "{name}: {}",
                reply.text()
            );
        }
        let settings = [
            r#"{"tokens":{"defaultGraceSeconds":1,"defaultGraceSeconds":2},"reason":"x","idempotencyKey":"a-key-of-some-length-2"}"#,
            r#"{"tokens":{"defaultGraceSecond":1},"reason":"x","idempotencyKey":"a-key-of-some-length-2"}"#,
            r#"{"tokens":[],"reason":"x","idempotencyKey":"a-key-of-some-length-2"}"#,
            r#"{"tokens":null,"reason":"x","idempotencyKey":"a-key-of-some-length-2"}"#,
        ];
        for body in settings {
            let reply = app
                .request("PUT", "/automation/settings")
                .bytes(body)
                .send()
                .await;
            reply.refused(400, "invalid_request");
            assert!(reply.text().contains("tokens"), "{}", reply.text());
        }
        // 32 levels are read: what is refused is the member, not the depth.
        let reply = app.request("POST", ACCOUNTS).bytes(nested(33)).send().await;
        assert!(reply.text().contains("deeper than 32 levels"), "{}", reply.text());
        let body = format!("{{{},{inner}}}", &nested(32)[1..nested(32).len() - 1]);
        let reply = app.request("POST", ACCOUNTS).bytes(body).send().await;
        reply.refused(400, "invalid_request");
        assert!(reply.text().contains("unknown member `deep`"), "{}", reply.text());
        assert_eq!(effects(&app).await, before);
        app.request("POST", ACCOUNTS).bytes(valid).send().await.ok();
    });
}

#[test]
fn a_body_has_256_kibibytes() {
    each("size", |app: Arc<App>| async move {
        let valid = account_with("name", Some(json!("large")), "a-key-of-some-length-1").to_string();
        let padded = |length: usize| format!("{valid}{}", " ".repeat(length - valid.len()));
        let before = effects(&app).await;
        for length in [262_145, 300_000, 4_000_000] {
            let reply = app.request("POST", ACCOUNTS).bytes(padded(length)).send().await;
            reply.refused(413, "payload_too_large");
            assert_eq!(reply.header("connection"), "close");
            // Size is judged before the token (D1.4).
            let reply = app
                .request("POST", ACCOUNTS)
                .anonymous()
                .bytes(padded(length))
                .send()
                .await;
            reply.refused(413, "payload_too_large");
        }
        assert_eq!(effects(&app).await, before);
        let made = app.request("POST", ACCOUNTS).bytes(padded(262_144)).send().await;
        assert_eq!(made.status.as_u16(), 201, "{}", made.text());
    });
}

#[test]
fn a_body_is_json_by_its_media_type() {
    each("media", |app: Arc<App>| async move {
        let before = effects(&app).await;
        let body = |name: &str| account_with("name", Some(json!(name)), &fresh_key()).to_string();
        for media in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "text/json",
            "application/merge-patch+json",
            "",
            "json",
            "application/json2; charset=utf-8",
        ] {
            let reply = app
                .request("POST", ACCOUNTS)
                .header("content-type", media)
                .bytes(body("x"))
                .send()
                .await;
            reply.refused(415, "unsupported_media_type");
            assert_eq!(reply.header("accept-post"), "application/json", "{media}");
        }
        let reply = app
            .request("POST", ACCOUNTS)
            .bytes(body("x"))
            .without("content-type")
            .send()
            .await;
        reply.refused(415, "unsupported_media_type");
        for coding in ["gzip", "br", "identity, gzip", "x"] {
            let call = app
                .request("POST", ACCOUNTS)
                .header("content-type", "application/json");
            let reply = call
                .header("content-encoding", coding)
                .bytes(body("x"))
                .send()
                .await;
            reply.refused(415, "unsupported_media_type");
            assert_eq!(reply.header("accept-encoding"), "identity", "{coding}");
        }
        for rest in [ACCOUNTS, "/capabilities", "/audit/events"] {
            let reply = app.request("GET", rest).json(json!({})).send().await;
            reply.refused(400, "invalid_request");
        }
        let path = format!("{ACCOUNTS}/{}", Target::absent().account);
        let call = app
            .request("DELETE", &path)
            .json(with_trio(json!({ "confirm": true }), &fresh_key()));
        call.send().await.refused(400, "invalid_request");
        assert_eq!(effects(&app).await, before);
        for (name, media) in [
            ("a", "application/json; charset=utf-8"),
            ("b", "APPLICATION/JSON"),
            ("c", "application/json ; x=y"),
        ] {
            let made = app
                .request("POST", ACCOUNTS)
                .header("content-type", media)
                .bytes(body(name))
                .send()
                .await;
            assert_eq!(made.status.as_u16(), 201, "{media}");
        }
        let call = app
            .request("POST", ACCOUNTS)
            .header("content-type", "application/json");
        let made = call
            .header("content-encoding", "identity")
            .bytes(body("d"))
            .send()
            .await;
        assert_eq!(made.status.as_u16(), 201);
        app.request("GET", ACCOUNTS)
            .header("content-type", "text/plain")
            .send()
            .await
            .ok();
    });
}
