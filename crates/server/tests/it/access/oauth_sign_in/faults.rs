//! What is wrong with a request, an answer or a token, and who is told.

use super::liar::{key, public, signed};
use super::steps::stage;
use super::visitor::Visitor;
use super::*;
use crate::support::each;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;

/// Parameters of a request that are taken away or have another value.
type ChangedParameters<'a> = &'a [(&'a str, Option<&'a str>)];

/// Proves SI-1.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_wrong_request_is_answered_where_it_belongs() {
    each("sign_in_requests", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let narrow = client(&stage.app, "Narrow", &[REDIRECT], &["fleet:read"]).await;
        let long = "x".repeat(1025);
        let long_hint = "x".repeat(257);
        let for_the_client: [(&str, ChangedParameters<'_>); 25] = [
            ("invalid_request", &[("response_type", None)]),
            ("invalid_request", &[("response_type", Some(""))]),
            ("unsupported_response_type", &[("response_type", Some("token"))]),
            (
                "unsupported_response_type",
                &[("response_type", Some("code id_token"))],
            ),
            ("invalid_request", &[("response_mode", Some("fragment"))]),
            ("invalid_request", &[("response_mode", Some("form_post"))]),
            ("invalid_request", &[("code_challenge", None)]),
            ("invalid_request", &[("code_challenge", Some("short"))]),
            ("invalid_request", &[("code_challenge_method", None)]),
            ("invalid_request", &[("code_challenge_method", Some("plain"))]),
            ("invalid_request", &[("code_challenge_method", Some("s256"))]),
            ("invalid_scope", &[("scope", Some("everything openid"))]),
            ("invalid_scope", &[("scope", Some("policies:read  audit:read"))]),
            ("invalid_scope", &[("scope", Some("openid"))]),
            ("invalid_scope", &[("scope", Some("policies:read,audit:read"))]),
            (
                "invalid_target",
                &[("resource", Some("https://other.example/mcp"))],
            ),
            ("invalid_target", &[("resource", Some("http://127.0.0.1:8080"))]),
            (
                "invalid_target",
                &[("resource", Some("http://127.0.0.1:8080/mcp/"))],
            ),
            ("invalid_request", &[("dpop_jkt", Some("short"))]),
            ("interaction_required", &[("prompt", Some("none"))]),
            ("invalid_request", &[("prompt", Some("everything"))]),
            ("invalid_request", &[("login_hint", Some(&long_hint))]),
            ("invalid_request", &[("login_hint", Some("a\r\nb"))]),
            ("request_not_supported", &[("request", Some("e30.e30."))]),
            (
                "request_uri_not_supported",
                &[("request_uri", Some("https://a.example"))],
            ),
        ];
        for (code, changes) in for_the_client {
            let target = authorize(&stage.client, changes);
            let seen = visitor.get(&stage.app, &target).await;
            seen.error(code);
            assert_eq!(
                parameter(seen.to(""), "state").as_deref(),
                Some("s t/a&te"),
                "{changes:?}"
            );
        }
        let beyond = authorize(&narrow, &[("scope", Some("audit:read"))]);
        visitor.get(&stage.app, &beyond).await.error("invalid_scope");
        // A state that is too long, or there twice, is not sent back.
        let target = authorize(&stage.client, &[("state", Some(&long))]);
        let seen = visitor.get(&stage.app, &target).await;
        seen.error("invalid_request");
        assert_eq!(parameter(seen.to(""), "state"), None);
        let right = authorize(&stage.client, &[]);
        for name in [
            "response_type=code",
            "scope=audit%3Aread",
            "state=x",
            "code_challenge=x",
            "prompt=login",
            "code_challenge_method=S256",
            "response_mode=query",
            "%73tate=x",
            "unheard=of&unheard=of",
            "state",
        ] {
            let seen = visitor.get(&stage.app, &format!("{right}&{name}&{name}")).await;
            seen.error("invalid_request");
        }

        // Nothing of the kind for whoever is no client, or has another target.
        let unknown = "This application cannot be used";
        for changes in [
            [("client_id", None)],
            [("client_id", Some("ocl_01kadh5j9v0000000000000001"))],
            [("client_id", Some(&*long))],
            [("client_id", Some("https://127.0.0.1/client.json"))],
            [("client_id", Some("http://app.example/client.json"))],
        ] {
            let seen = visitor.get(&stage.app, &authorize(&stage.client, &changes)).await;
            seen.page(400, unknown);
        }
        let twice = format!("{right}&{}", query(&[("client_id", &stage.client)]));
        visitor.get(&stage.app, &twice).await.page(400, unknown);
        for broken in ["/oauth/authorize?client_id=%ff", "/oauth/authorize?a=%4"] {
            visitor
                .get(&stage.app, broken)
                .await
                .page(400, "This request is not understood");
        }
        // Right ones, with all that may be said.
        for changes in [
            &[("resource", Some("http://127.0.0.1:8080/mcp"))][..],
            &[("resource", Some("http://127.0.0.1:8080/api/headless/v1"))],
            &[("scope", None), ("state", None), ("unheard", Some("of"))],
            &[("dpop_jkt", Some(CHALLENGE)), ("response_mode", Some("query"))],
        ] {
            let target = authorize(&stage.client, changes);
            visitor.get(&stage.app, &target).await.to(&stage.liar.issuer);
        }
        let both = format!(
            "{right}&{}&{}",
            query(&[("resource", "http://127.0.0.1:8080/mcp")]),
            query(&[("resource", "http://127.0.0.1:8080/api/headless/v1")])
        );
        visitor.get(&stage.app, &both).await.to(&stage.liar.issuer);
        let changes = [
            ("prompt", Some("login consent")),
            ("login_hint", Some("ada@acme.example")),
        ];
        let seen = visitor.get(&stage.app, &authorize(&stage.client, &changes)).await;
        let asked = seen.to(&stage.liar.issuer);
        assert_eq!(parameter(asked, "prompt").as_deref(), Some("login"));
        assert_eq!(
            parameter(asked, "login_hint").as_deref(),
            Some("ada@acme.example")
        );
    });
}

/// Proves SI-1.
#[test]
fn nobody_is_sent_to_a_place_that_is_not_registered() {
    each("sign_in_redirects", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        for uri in [
            "https://app.example/callback",
            "https://app.example/callback?fixed=1&more=2",
            "https://app.example/callback?fixed=1#here",
            "https://app.example/callback?fixed=1%23",
            "https://app.example/callback/?fixed=1",
            "https://app.example/callback/../evil?fixed=1",
            "https://app.example//callback?fixed=1",
            "https://APP.example/callback?fixed=1",
            "HTTPS://app.example/callback?fixed=1",
            "https://app.example:443/callback?fixed=1",
            "https://app.example:444/callback?fixed=1",
            "http://app.example/callback?fixed=1",
            "https://app.example.evil.example/callback?fixed=1",
            "https://app.example@evil.example/callback?fixed=1",
            "https://evil.example/https://app.example/callback?fixed=1",
            "https://evil.example\\@app.example/callback?fixed=1",
            "//app.example/callback?fixed=1",
            "/callback?fixed=1",
            "javascript:alert(1)//https://app.example/callback?fixed=1",
            "data:text/html,x",
            "https://app.example/callback?fixed=1\r\nset-cookie: a=b",
            "https://app.example/callback?fixed=1 ",
            " https://app.example/callback?fixed=1",
            "https://app.example/callb\u{0430}ck?fixed=1",
            "http://127.0.0.1:8080/oauth/callback",
            "*",
            "",
        ] {
            for also_wrong in [None, Some("token")] {
                let changes = [("redirect_uri", Some(uri)), ("response_type", also_wrong)];
                let seen = visitor.get(&stage.app, &authorize(&stage.client, &changes)).await;
                seen.page(400, "The way back is not a known one");
            }
        }
        for target in [
            authorize(&stage.client, &[("redirect_uri", None)]),
            format!("{}&redirect_uri=x", authorize(&stage.client, &[])),
            format!("{}&redirect%5Furi=x", authorize(&stage.client, &[])),
        ] {
            let seen = visitor.get(&stage.app, &target).await;
            seen.page(400, "The way back is not a known one");
        }
        // A program on the machine learns its port when it starts.
        let native = client(&stage.app, "Native", &["http://127.0.0.1/cb"], &[]).await;
        let ported = [("redirect_uri", Some("http://127.0.0.1:50123/cb"))];
        visitor
            .get(&stage.app, &authorize(&native, &ported))
            .await
            .to(&stage.liar.issuer);
        for uri in [
            "http://127.0.0.1:50123/cb/x",
            "http://127.0.0.2/cb",
            "http://localhost/cb",
            "https://127.0.0.1/cb",
        ] {
            let seen = visitor
                .get(&stage.app, &authorize(&native, &[("redirect_uri", Some(uri))]))
                .await;
            seen.page(400, "The way back is not a known one");
        }
    });
}

/// Proves SI-3.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_token_that_is_not_right_signs_nobody_in() {
    each("sign_in_tokens", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let right = json!({ "alg": "ES256", "kid": "one" });
        let now = stage.app.now().as_ms() / 1000;
        for (name, value) in [
            ("nonce", json!("another")),
            ("nonce", Value::Null),
            ("nonce", json!("")),
            ("iss", json!("https://other.example")),
            ("iss", json!(format!("{}/", stage.liar.issuer))),
            ("iss", Value::Null),
            ("aud", json!("another")),
            ("aud", json!([])),
            ("aud", json!(["another"])),
            ("aud", json!(["provost", "another"])),
            ("aud", Value::Null),
            ("azp", json!("another")),
            ("exp", json!(now - 60)),
            ("exp", json!(0)),
            ("exp", Value::Null),
            ("exp", json!("soon")),
            ("iat", json!(now + 61)),
            ("iat", json!(now - 601)),
            ("iat", Value::Null),
            ("sub", Value::Null),
            ("sub", json!("")),
            ("sub", json!("x".repeat(256))),
            ("sub", json!("a\u{0}da")),
            ("at_hash", json!("AAAAAAAAAAAAAAAAAAAAAA")),
        ] {
            let asked = visitor.begin(&stage.app, &stage.client).await;
            let mut claims = stage.liar.claims(&stage.app, &asked, "ada");
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                ref value => claims[name] = value.clone(),
            }
            stage.liar.says(&right, &claims);
            let seen = visitor.get(&stage.app, &stage.liar.target(&asked)).await;
            // A token that cannot even be read makes the provider one that cannot be used.
            let is_refused = seen.body.contains("<title>The sign-in cannot be trusted")
                || seen.headers.get("location").is_some_and(|to| {
                    parameter(to.to_str().unwrap(), "error").as_deref() == Some("temporarily_unavailable")
                });
            assert!(is_refused, "{name} = {value}: {seen:?}");
        }
        let asked = visitor.begin(&stage.app, &stage.client).await;
        let claims = stage.liar.claims(&stage.app, &asked, "ada");
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let unsigned = |alg: &str| format!("{}.{}.", encode(&json!({ "alg": alg })), encode(&claims));
        let symmetric = |secret: &[u8]| {
            let text = format!("{}.{}", encode(&json!({ "alg": "HS256" })), encode(&claims));
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
            format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag))
        };
        let stranger = key();
        let whole = signed(&stranger, &right, &claims);
        let jwk = public(&stranger, "one");
        let published = stage.liar.said.lock().unwrap().keys["keys"][0].to_string();
        let (head, rest) = whole.split_once('.').unwrap();
        for token in [
            unsigned("none"),
            unsigned("None"),
            unsigned("NONE"),
            unsigned("ES256"),
            symmetric(b"a secret / with + signs: and more"),
            symmetric(published.as_bytes()),
            whole.clone(),
            signed(&stranger, &json!({ "alg": "ES256" }), &claims),
            signed(&stranger, &json!({ "alg": "ES256", "kid": "two" }), &claims),
            signed(&stranger, &json!({ "alg": "ES256", "jwk": jwk }), &claims),
            signed(&stranger, &json!({ "alg": "ES384", "kid": "one" }), &claims),
            signed(&stranger, &json!({ "alg": "RS256", "kid": "one" }), &claims),
            format!("{head}.{rest}."),
            head.to_owned(),
            String::new(),
        ] {
            stage.liar.says_token(&token);
            let seen = visitor.get(&stage.app, &stage.liar.target(&asked)).await;
            assert!(!seen.headers.contains_key("set-cookie"));
            let leads = seen
                .headers
                .get("location")
                .map(|to| to.to_str().unwrap().to_owned());
            assert!(!leads.is_some_and(|to| to.contains("/consent")), "{token}");
        }
        // No ID token at all, and none but an access token.
        let bare = json!({ "access_token": "a", "token_type": "Bearer" });
        for answer in [
            (200, bare),
            (200, json!({})),
            (400, json!({ "error": "invalid_grant" })),
            (500, json!("x")),
        ] {
            stage.liar.said.lock().unwrap().token = answer;
            let seen = visitor.get(&stage.app, &stage.liar.target(&asked)).await;
            assert!(
                !seen
                    .headers
                    .get("location")
                    .is_some_and(|to| to.to_str().unwrap().contains("/consent"))
            );
        }
        // The same request with a right one goes on: none of it was about anything else. Clocks may differ a little.
        let mut late = claims.clone();
        late["exp"] = (now - 59).into();
        late["iat"] = (now + 60).into();
        late["azp"] = "provost".into();
        stage.liar.says(&right, &late);
        visitor.return_to(&stage.app, &stage.liar.target(&asked)).await;
    });
}

/// Proves SI-3.
#[test]
fn an_answer_is_from_the_provider_that_was_asked() {
    each("sign_in_answers", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let asked = visitor.begin(&stage.app, &stage.client).await;
        let right = stage.liar.answers(&stage.app, &asked, "ada");
        let ours = parameter(&asked, "state").unwrap();
        let target = |more: &[(&str, &str)]| {
            let mut all = vec![("state", ours.as_str())];
            all.extend(more);
            format!("/oauth/callback?{}", query(&all))
        };
        let untrusted = "The sign-in cannot be trusted";
        for iss in [&[][..], &[("iss", "https://other.example")], &[("iss", "")]] {
            let mut more = vec![("code", "a-code")];
            more.extend(iss);
            visitor.get(&stage.app, &target(&more)).await.page(400, untrusted);
            let error = [&[("error", "access_denied")], iss].concat();
            visitor
                .get(&stage.app, &target(&error))
                .await
                .page(400, untrusted);
        }
        let iss = ("iss", stage.liar.issuer.as_str());
        for (error, code) in [
            ("access_denied", "access_denied"),
            ("login_required", "access_denied"),
            ("server_error", "temporarily_unavailable"),
            ("temporarily_unavailable", "temporarily_unavailable"),
            ("invalid_request", "server_error"),
            ("unauthorized_client", "server_error"),
            ("<script>", "server_error"),
        ] {
            let seen = visitor.get(&stage.app, &target(&[("error", error), iss])).await;
            seen.error(code);
            assert!(!seen.to("").contains("%3Cscript"));
        }
        let gone = "This sign-in is not valid any more";
        visitor.get(&stage.app, &target(&[iss])).await.page(400, gone);
        visitor
            .get(&stage.app, &format!("{right}&code=b"))
            .await
            .page(400, gone);
        visitor.return_to(&stage.app, &right).await;
    });
}

#[test]
fn a_provider_that_is_away_or_is_another_one_is_not_used() {
    each("sign_in_provider", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        let good = stage.liar.said.lock().unwrap().metadata.clone();
        for (name, value) in [
            ("issuer", json!("https://other.example")),
            ("issuer", json!(format!("{}/", stage.liar.issuer))),
            ("authorization_endpoint", json!("javascript:alert(1)")),
            ("authorization_endpoint", Value::Null),
            ("token_endpoint", json!("ftp://x")),
            ("jwks_uri", json!(format!("{}/elsewhere", stage.liar.issuer))),
        ] {
            stage.liar.said.lock().unwrap().metadata[name] = value;
            let seen = visitor.get(&stage.app, &authorize(&stage.client, &[])).await;
            seen.error("temporarily_unavailable");
            stage.liar.said.lock().unwrap().metadata = good.clone();
            // Whoever comes within ten seconds is told at once, and nobody is asked.
            let asked = stage.liar.said.lock().unwrap().asked;
            first.advance(9);
            let seen = visitor.get(&stage.app, &authorize(&stage.client, &[])).await;
            seen.error("temporarily_unavailable");
            assert_eq!(stage.liar.said.lock().unwrap().asked, asked);
            first.advance(1);
        }
        // Once it is there it is asked once an hour, and a new key is found within a minute.
        stage.liar.said.lock().unwrap().asked = (0, 0);
        let asked = visitor.begin(&stage.app, &stage.client).await;
        visitor.begin(&stage.app, &stage.client).await;
        assert_eq!(stage.liar.said.lock().unwrap().asked, (1, 1));
        let rolled = key();
        let claims = stage.liar.claims(&stage.app, &asked, "ada");
        let token = signed(&rolled, &json!({ "alg": "ES256", "kid": "two" }), &claims);
        stage.liar.says_token(&token);
        let target = stage.liar.target(&asked);
        visitor
            .get(&stage.app, &target)
            .await
            .page(400, "The sign-in cannot be trusted");
        stage.liar.said.lock().unwrap().keys = json!({ "keys": [public(&rolled, "two")] });
        visitor
            .get(&stage.app, &target)
            .await
            .page(400, "The sign-in cannot be trusted");
        assert_eq!(
            stage.liar.said.lock().unwrap().asked,
            (1, 1),
            "not more often than once a minute"
        );
        first.advance(60);
        visitor.return_to(&stage.app, &target).await;
        assert_eq!(stage.liar.said.lock().unwrap().asked, (2, 2));
        // While it is away, what it last said serves for a day.
        stage.liar.said.lock().unwrap().metadata = Value::Null;
        first.advance(23 * 3600);
        visitor.begin(&stage.app, &stage.client).await;
        first.advance(3600);
        let seen = visitor.get(&stage.app, &authorize(&stage.client, &[])).await;
        seen.error("temporarily_unavailable");
    });
}

#[test]
fn without_a_provider_nobody_signs_in() {
    each("sign_in_none", |first: Arc<App>| async move {
        let client = client(&first, "Notes", &[REDIRECT], &[]).await;
        let mut visitor = Visitor::default();
        let seen = visitor.get(&first, &authorize(&client, &[])).await;
        seen.page(404, "Nobody can sign in here");
        // Nor at that of another organization.
        let (key, admin) = first.other_organization("Umbrella").await;
        let mut provider = declared(&first, "https://idp.example", "provost");
        provider.organizations = vec![OrganizationId::parse(&key).unwrap()];
        let app = with_providers(&first, vec![provider]);
        let seen = visitor.get(&app, &authorize(&client, &[])).await;
        seen.page(404, "Nobody can sign in here");
        drop(admin);
    });
}

#[test]
fn the_secret_goes_where_the_provider_takes_it() {
    each("sign_in_secret", |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let mut visitor = Visitor::default();
        for (methods, stands_in_form) in [
            (json!(["client_secret_basic", "client_secret_post"]), false),
            (json!(["client_secret_post"]), true),
        ] {
            stage.liar.said.lock().unwrap().metadata["token_endpoint_auth_methods_supported"] = methods;
            first.advance(3600);
            stage.signed_in(&mut visitor, "ada").await;
            let heard = format!("/?{}", stage.liar.said.lock().unwrap().heard);
            let secret = parameter(&heard, "client_secret");
            let expected = stands_in_form.then_some("a secret / with + signs: and more");
            assert_eq!(secret.as_deref(), expected);
        }
    });
}

#[test]
fn sign_ins_are_counted_by_network_once_they_are_well_formed() {
    let settings = provost_kernel::kernel::Settings::default();
    assert!(settings.rate_limits);
    crate::support::each_with("sign_in_counts", &settings, |first: Arc<App>| async move {
        let stage = stage(&first).await;
        let from = |address: &str| Visitor {
            address: Some(address.parse().unwrap()),
            ..Visitor::default()
        };
        let whole = authorize(&stage.client, &[]);
        // What cannot become a sign-in takes nothing from those that can, and is bounded itself.
        let mut stray = from("2001:db8:0:1::1");
        for _ in 0..120 {
            let seen = stray.get(&stage.app, "/oauth/authorize?client_id=nobody").await;
            assert_eq!(seen.status.as_u16(), 400, "{}", seen.body);
        }
        let seen = stray.get(&stage.app, "/oauth/authorize?client_id=nobody").await;
        assert_eq!(seen.status.as_u16(), 429, "{}", seen.body);
        for target in [
            "/oauth/callback?state=x",
            "/oauth/consent?question=x",
            "/oauth/choose?choice=x",
        ] {
            for _ in 0..130 {
                let seen = stray.get(&stage.app, target).await;
                assert_ne!(seen.status.as_u16(), 429, "{target}: {}", seen.body);
            }
        }
        // One network of IPv6 is one caller, whichever of its addresses asks.
        for n in 0..120 {
            let mut visitor = from(&format!("2001:db8:0:1::{n:x}"));
            visitor.get(&stage.app, &whole).await.to("http://127.0.0.1:");
        }
        let seen = from("2001:db8:0:1:ffff::1").get(&stage.app, &whole).await;
        assert_eq!(seen.status.as_u16(), 429, "{}", seen.body);
        from("2001:db8:0:2::1")
            .get(&stage.app, &whole)
            .await
            .to("http://127.0.0.1:");
        // Addresses of IPv4 are callers of their own, however they are written.
        for n in 0..120 {
            let address = if n % 2 == 0 {
                "192.0.2.1"
            } else {
                "::ffff:192.0.2.1"
            };
            from(address)
                .get(&stage.app, &whole)
                .await
                .to("http://127.0.0.1:");
        }
        assert_eq!(
            from("192.0.2.1").get(&stage.app, &whole).await.status.as_u16(),
            429
        );
        from("192.0.2.2")
            .get(&stage.app, &whole)
            .await
            .to("http://127.0.0.1:");
    });
}
