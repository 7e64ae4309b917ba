//! What strangers say about themselves: client documents, redirect targets; and what an issuer says about a token.

use crate::attacks::{NOW, RESOURCE, WORKSHOP};
use provost_oauth::client_document::{Authentication, check_url, parse};
use provost_oauth::{Confirmation, Refusal, introspection, redirect};
use serde_json::{Value, json};

const URL: &str = "https://client.example/oauth/id.json";

#[test]
fn a_client_id_is_an_https_url_with_a_path_and_one_reading() {
    for url in [
        URL,
        "https://client.example/",
        "https://client.example:8443/a",
        "https://a.b-c.example/%41",
        "https://[2001:db8::1]/a",
    ] {
        assert_eq!(check_url(url), Ok(()), "{url}");
    }
    let long = format!("https://client.example/{}", "a".repeat(490));
    for url in [
        "",
        "https",
        "https://",
        "https:///a",
        "https://client.example",
        "https://client.example?a",
        "http://client.example/a",
        "HTTPS://client.example/a",
        "ftp://client.example/a",
        "javascript:alert(1)",
        "data:application/json,{}",
        "//client.example/a",
        "https:/client.example/a",
        "https://user@client.example/a",
        "https://user:pass@client.example/a",
        "https://@client.example/a",
        "https://client.example/a#b",
        "https://client.example/#",
        "https://client.example/a?b=c",
        "https://client.example/.",
        "https://client.example/..",
        "https://client.example/a/../b",
        "https://client.example/a/./b",
        "https://client.example/%2e%2E/b",
        "https://client.example/.%2e",
        "https://client.example/%",
        "https://client.example/%2",
        "https://client.example/%zz",
        "https://client.example\\a",
        "https://client.example/a\\b",
        "https://client.example/a b",
        " https://client.example/a",
        "https://client.example/a\n",
        "https://client.example/\u{e9}",
        "https://cli\u{e9}nt.example/a",
        "https://client.example:/a",
        "https://client.example:0/a",
        "https://client.example:65536/a",
        "https://client.example:+1/a",
        "https://client.example:0443/a",
        "https://client.example:443:1/a",
        "https://-a.example/a",
        "https://a-.example/a",
        "https://a..example/a",
        "https://.example/a",
        "https://client.example./a",
        "https://a_b.example/a",
        "https://2130706433/a",
        "https://0x7f000001/a",
        "https://0x7f.1/a",
        "https://127.1/a",
        "https://127.0.0.01/a",
        "https://127.0.0.1.2/a",
        "https://1.2.3.4.5/a",
        "https://[::1/a",
        "https://::1/a",
        "https://[::1]x/a",
        "https://[::ffff:127.0.0.1%25lo]/a",
        "https://[fe80::1%lo]/a",
        "https://[]/a",
        "https://client.example%2f/a",
        "https://client%2eexample/a",
        "https://client.example/<a>",
        "https://client.example/\"",
        "https://*.example/a",
        &long,
    ] {
        assert!(check_url(url).is_err(), "{url}");
    }
}

fn document(change: impl FnOnce(&mut Value)) -> Value {
    let mut document = json!({
        "client_id": URL, "client_name": "Assistant", "client_uri": "https://client.example/",
        "redirect_uris": ["https://client.example/back", "http://127.0.0.1/back"],
        "token_endpoint_auth_method": "none", "logo_uri": "javascript:alert(1)", "scope": "mcp:read policies:read",
    });
    change(&mut document);
    document
}

fn outcome(
    change: impl FnOnce(&mut Value),
) -> Result<provost_oauth::client_document::ClientDocument, Refusal> {
    parse(document(change).to_string().as_bytes(), URL)
}

fn keyed(value: &mut Value, keys: Value) {
    value["token_endpoint_auth_method"] = "private_key_jwt".into();
    value["jwks"] = keys;
}

#[test]
fn a_client_document_says_what_it_says() {
    let read = outcome(|_| {}).unwrap();
    assert_eq!((read.client_id.as_str(), read.name.as_str()), (URL, "Assistant"));
    assert_eq!(read.redirect_uris.len(), 2);
    assert_eq!(read.grant_types, ["authorization_code"]);
    assert_eq!(read.scopes.unwrap(), ["mcp:read", "policies:read"]);
    assert!(matches!(read.authentication, Authentication::None));
    let keys = outcome(|document| keyed(document, WORKSHOP.key_set())).unwrap();
    assert!(matches!(keys.authentication, Authentication::Keys(keys) if keys.len() == 3));
    let elsewhere = outcome(|document| {
        document["token_endpoint_auth_method"] = "private_key_jwt".into();
        document["jwks_uri"] = "https://keys.client.example/jwks".into();
    });
    assert!(
        matches!(elsewhere.unwrap().authentication, Authentication::KeysAt(url) if url == "https://keys.client.example/jwks")
    );
    let minimal =
        json!({ "client_id": URL, "client_name": "A", "redirect_uris": ["https://client.example/back"] });
    assert!(
        parse(minimal.to_string().as_bytes(), URL)
            .unwrap()
            .scopes
            .is_none()
    );
    let machine = json!({ "client_id": URL, "client_name": "A", "grant_types": ["client_credentials"] });
    assert!(
        parse(machine.to_string().as_bytes(), URL)
            .unwrap()
            .redirect_uris
            .is_empty()
    );
}

#[test]
fn a_client_document_that_is_another_ones_or_has_a_secret_is_refused() {
    for (name, value) in [
        ("client_id", json!("https://client.example/oauth/ID.json")),
        ("client_id", json!("https://client.example:443/oauth/id.json")),
        ("client_id", json!("https://client.example/oauth/id.json/")),
        ("client_id", Value::Null),
        ("client_name", Value::Null),
        ("client_name", json!("")),
        ("client_name", json!("a\u{7}b")),
        ("client_uri", json!("javascript:alert(1)")),
        ("client_uri", json!("http://client.example")),
        ("redirect_uris", json!([])),
        ("redirect_uris", json!("https://client.example/back")),
        (
            "redirect_uris",
            json!(["https://client.example/back", "http://client.example/back"]),
        ),
        ("redirect_uris", json!(["javascript:alert(1)"])),
        ("redirect_uris", json!(vec!["https://client.example/back"; 17])),
        ("grant_types", json!("authorization_code")),
        ("grant_types", json!([1])),
        ("scope", json!(["a"])),
        ("scope", json!("a  b")),
        ("token_endpoint_auth_method", json!("client_secret_basic")),
        ("token_endpoint_auth_method", json!("client_secret_post")),
        ("token_endpoint_auth_method", json!("client_secret_jwt")),
        ("token_endpoint_auth_method", json!("tls_client_auth")),
        ("token_endpoint_auth_method", json!("private_key_jwt")),
        ("client_secret", json!("secret")),
        ("client_secret", Value::Null),
        ("client_secret_expires_at", json!(0)),
    ] {
        assert!(
            outcome(|document| document[name] = value.clone()).is_err(),
            "{name}: {value}"
        );
    }
    assert!(outcome(|document| drop(document.as_object_mut().unwrap().remove("client_id"))).is_err());
    assert!(outcome(|document| drop(document.as_object_mut().unwrap().remove("redirect_uris"))).is_err());
    for keys in [
        json!({ "keys": [] }),
        json!([]),
        json!("x"),
        json!({ "keys": [{ "kty": "oct", "k": "AA" }] }),
    ] {
        assert!(outcome(|document| keyed(document, keys)).is_err());
    }
    assert!(
        outcome(|document| {
            keyed(document, WORKSHOP.key_set());
            document["jwks_uri"] = "https://client.example/jwks".into();
        })
        .is_err(),
        "both"
    );
    let large = document(|document| document["x"] = "x".repeat(5 * 1024).into()).to_string();
    assert!(parse(large.as_bytes(), URL).is_err());
    let twice = document(|_| {})
        .to_string()
        .replacen('{', &format!("{{\"client_id\":\"{URL}\","), 1);
    assert_eq!(parse(twice.as_bytes(), URL).map(drop), Err(Refusal::Json));
    assert!(
        parse(
            document(|_| {}).to_string().as_bytes(),
            "http://client.example/oauth/id.json"
        )
        .is_err()
    );
}

#[test]
fn a_redirect_target_is_https_loopback_or_private() {
    for uri in [
        "https://client.example/back",
        "https://client.example/back?a=b",
        "https://client.example",
        "http://127.0.0.1/back",
        "http://127.0.0.1:8080/back",
        "http://[::1]:1/",
        "http://localhost:3000/callback",
        "com.example.app:/back",
        "com.example.app://back/x",
    ] {
        assert_eq!(redirect::check(uri), Ok(()), "{uri}");
    }
    for uri in [
        "",
        "back",
        "/back",
        "https:client.example",
        "https://",
        "http://client.example/back",
        "http://10.0.0.1/back",
        "http://localhost.attacker.example/",
        "http://127.0.0.1.attacker.example/",
        "http://127.0.0.1@attacker.example/",
        "http://LOCALHOST/",
        "http://0x7f.1/",
        "https://client.example/back#a",
        "https://client.example/back#",
        "javascript:alert(1)",
        "javascript.x:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "cursor://x",
        "app:/back",
        ".app:/back",
        "app.:/x",
        "a..b:/x",
        "Com.Example:/x",
        "1com.example:/x",
        "com.example.app:back",
        "com.example app:/x",
        "https://a b/",
        "https://client.example\\@x/",
        "https://*/back",
        "about:blank",
        "urn:ietf:wg:oauth:2.0:oob",
    ] {
        assert!(redirect::check(uri).is_err(), "{uri}");
    }
}

#[test]
fn a_redirect_target_matches_exactly_but_for_the_port_of_loopback() {
    for (registered, asked) in [
        ("https://client.example/back", "https://client.example/back"),
        ("http://127.0.0.1/back", "http://127.0.0.1:50123/back"),
        ("http://127.0.0.1:8080/back", "http://127.0.0.1:50123/back"),
        ("http://127.0.0.1:8080/back", "http://127.0.0.1/back"),
        ("http://[::1]/back", "http://[::1]:50123/back"),
        ("http://localhost:3000/back?a=b", "http://localhost:3001/back?a=b"),
        ("com.example.app:/back", "com.example.app:/back"),
    ] {
        assert!(redirect::matches(registered, asked), "{registered} {asked}");
    }
    for (registered, asked) in [
        ("https://client.example/back", "https://client.example:443/back"),
        ("https://client.example/back", "https://client.example/back/"),
        ("https://client.example/back", "https://client.example/back?x"),
        ("https://client.example/back", "https://client.example/Back"),
        ("https://client.example/back", "https://CLIENT.example/back"),
        ("https://client.example/back", "https://client.example/%62ack"),
        ("https://client.example/back", "https://client.example/back#x"),
        ("https://127.0.0.1/back", "https://127.0.0.1:1/back"),
        ("http://127.0.0.1/back", "http://localhost/back"),
        ("http://localhost/back", "http://127.0.0.1/back"),
        ("http://127.0.0.1/back", "http://127.0.0.2/back"),
        ("http://127.0.0.1/back", "https://127.0.0.1/back"),
        ("http://127.0.0.1/back", "http://127.0.0.1:1/back2"),
        ("http://127.0.0.1/back", "http://127.0.0.1:1/back?x"),
        (
            "http://127.0.0.1/back",
            "http://127.0.0.1:1@attacker.example/back",
        ),
        ("http://127.0.0.1/back", "http://127.0.0.1:99999/back"),
        ("http://client.example/back", "http://client.example:1/back"),
        ("http://client.example/back", "http://client.example/back"),
        ("com.example.app:/back", "com.example.app:/back2"),
        ("", ""),
    ] {
        assert!(!redirect::matches(registered, asked), "{registered} {asked}");
    }
}

fn answer(change: impl FnOnce(&mut Value)) -> Result<provost_oauth::Claims, Refusal> {
    let mut answer = WORKSHOP.claims();
    answer["active"] = true.into();
    answer["token_type"] = "Bearer".into();
    change(&mut answer);
    introspection::answer(
        answer.to_string().as_bytes(),
        "opaque",
        "https://issuer.example",
        &[RESOURCE],
        NOW,
    )
}

#[test]
fn an_issuers_answer_is_read_as_strictly_as_a_token() {
    assert_eq!(answer(|_| {}).unwrap().organization, "org_1");
    let without =
        |name: &'static str| move |answer: &mut Value| drop(answer.as_object_mut().unwrap().remove(name));
    let digest = answer(without("jti")).unwrap().id;
    assert!(digest.starts_with("sha256:") && digest.len() == 50);
    assert_eq!(answer(without("iss")).unwrap().issuer, "https://issuer.example");
    let jkt = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
    let bound = answer(|answer| answer["cnf"] = json!({ "jkt": jkt })).unwrap();
    assert_eq!(bound.confirmation, Some(Confirmation::Jkt(jkt.into())));
    assert_eq!(
        answer(|answer| answer["active"] = false.into()),
        Err(Refusal::Inactive)
    );
    for (name, value) in [
        ("active", json!("true")),
        ("active", json!(1)),
        ("active", Value::Null),
        ("iss", json!("https://other.example")),
        ("aud", json!("https://other.example")),
        ("aud", json!([])),
        ("exp", json!(NOW - 60)),
        ("exp", json!("x")),
        ("exp", json!(NOW + 90_000)),
        ("nbf", json!(NOW + 61)),
        ("token_type", json!("mac")),
        ("sub", json!("")),
        ("cnf", json!({ "x": 1 })),
        ("scope", json!(["a"])),
    ] {
        assert!(
            answer(|answer| answer[name] = value.clone()).is_err(),
            "{name}: {value}"
        );
    }
    for name in [
        "active",
        "aud",
        "exp",
        "iat",
        "sub",
        "client_id",
        "organization_id",
    ] {
        assert_eq!(answer(without(name)), Err(Refusal::Missing(name)));
    }
    let inactive = introspection::answer(
        br#"{"active":false}"#,
        "t",
        "https://issuer.example",
        &[RESOURCE],
        NOW,
    );
    assert_eq!(inactive, Err(Refusal::Inactive));
    let twice = br#"{"active":false,"active":true}"#;
    assert_eq!(
        introspection::answer(twice, "t", "https://issuer.example", &[RESOURCE], NOW),
        Err(Refusal::Json)
    );
}

#[test]
fn an_introspection_request_cannot_be_widened_by_its_token() {
    let form = introspection::request("a-b._~+/=").unwrap();
    assert_eq!(
        form.as_ref(),
        b"token=a-b._~%2B%2F%3D&token_type_hint=access_token"
    );
    assert_eq!(format!("{form:?}"), "Form(…)");
    for token in ["", "a&b", "a b", "a%26b", "a\n", "\u{e9}", "a;b"] {
        assert_eq!(
            introspection::request(token).map(drop),
            Err(Refusal::Shape),
            "{token}"
        );
    }
    assert_eq!(
        introspection::request(&"a".repeat(8193)).map(drop),
        Err(Refusal::TooLong)
    );
}
