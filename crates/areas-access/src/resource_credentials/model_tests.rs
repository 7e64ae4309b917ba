//! The table of D11.2, kind by kind.

use super::*;
use serde_json::{Value, json};

fn body(kind: &str) -> Value {
    let endpoint = "https://login.example.com/token";
    let mut body = match kind {
        "username_password" => json!({ "username": "app", "secret": "s" }),
        "bearer_token" => json!({ "secret": "s" }),
        "header" => json!({ "headerName": "X-Api-Key", "secret": "s" }),
        "aws_rds_iam" => json!({ "username": "app", "authentication": { "region": "eu-west-1" } }),
        "oauth2_client_credentials" => {
            json!({ "authentication": { "tokenEndpoint": endpoint, "clientId": "c" }, "secret": "s" })
        }
        _ => json!({ "authentication": { "tokenEndpoint": endpoint, "clientId": "" } }),
    };
    body["name"] = "one".into();
    body["kind"] = kind.into();
    body
}

fn breaches(body: Value, protocol: Protocol, has_secret: bool) -> Vec<String> {
    let body: CredentialBody = serde_json::from_value(body).unwrap();
    let found = body.breaches(&Surroundings {
        protocol,
        has_secret,
        by_terraform: false,
        manager: Some("vault").filter(|_| body.manager_instance.is_some()),
    });
    found.paths().into_iter().map(str::to_owned).collect()
}

fn fitting(kind: Kind) -> Protocol {
    Protocol::ALL
        .into_iter()
        .find(|protocol| kind.fits(*protocol))
        .unwrap()
}

const NONE: [&str; 0] = [];

#[test]
fn each_kind_fits_the_protocols_of_the_table() {
    use Protocol::{Http, Mysql, Postgres, Redis};
    let table = [
        (Kind::UsernamePassword, vec![Postgres, Mysql, Redis]),
        (Kind::BearerToken, vec![Http]),
        (Kind::Header, vec![Http]),
        (Kind::AwsRdsIam, vec![Postgres, Mysql]),
        (Kind::Oauth2ClientCredentials, vec![Http]),
        (Kind::Oauth2TokenExchange, vec![Http]),
    ];
    for (kind, protocols) in table {
        for protocol in Protocol::ALL {
            assert_eq!(kind.fits(protocol), protocols.contains(&protocol));
            let found = breaches(body(kind.as_str()), protocol, false);
            assert_eq!(found.is_empty(), kind.fits(protocol), "{found:?}");
        }
    }
}

#[test]
fn each_kind_has_its_own_members_and_no_others() {
    for kind in Kind::ALL {
        let (word, protocol) = (kind.as_str(), fitting(kind));
        assert_eq!(breaches(body(word), protocol, false), NONE, "{word}");
        for (member, value) in [
            ("username", json!("app")),
            ("headerName", json!("X-A")),
            (
                "authentication",
                json!({ "region": "r", "tokenEndpoint": "https://a.example", "clientId": "c" }),
            ),
            ("secret", json!("s")),
        ] {
            let whole = body(word);
            let mut changed = whole.clone();
            let pointer = if whole.get(member).is_some() {
                changed.as_object_mut().unwrap().remove(member);
                format!("/{member}")
            } else {
                changed[member] = value;
                format!("/{member}")
            };
            let found = breaches(changed, protocol, false);
            assert!(
                found.iter().all(|path| path.starts_with(&pointer)),
                "{word} {found:?}"
            );
            assert!(!found.is_empty(), "{word} {member}");
        }
        // A null is as good as absent.
        let mut nulls = body(word);
        for member in ["username", "headerName", "authentication", "secret"] {
            if nulls.get(member).is_none() {
                nulls[member] = Value::Null;
            }
        }
        assert_eq!(breaches(nulls, protocol, false), NONE, "{word}");
        let mut kept = body(word);
        kept.as_object_mut().unwrap().remove("secret");
        assert_eq!(
            breaches(kept, protocol, true),
            NONE,
            "{word}: the stored secret stays"
        );
    }
}

#[test]
fn authentication_is_judged_member_by_member() {
    let with = |kind: &str, authentication: Value| {
        let mut body = body(kind);
        body["authentication"] = authentication;
        breaches(body, fitting(Kind::parse(kind).unwrap()), false)
    };
    let iam = "aws_rds_iam";
    assert_eq!(
        with(iam, json!({ "region": "r", "roleArn": "arn:aws:iam::1:role/x" })),
        NONE
    );
    assert_eq!(with(iam, json!({})), ["/authentication/region"]);
    assert_eq!(
        with(iam, json!({ "region": "r", "scopes": [], "audience": "a" })),
        ["/authentication/audience", "/authentication/scopes"]
    );
    let client = "oauth2_client_credentials";
    assert_eq!(
        with(client, json!({ "clientId": "" })),
        ["/authentication/tokenEndpoint", "/authentication/clientId"]
    );
    assert_eq!(
        with(
            client,
            json!({ "clientId": "c", "tokenEndpoint": "https://10.0.0.1/t" })
        ),
        ["/authentication/tokenEndpoint"]
    );
}

#[test]
fn an_external_secret_is_named_and_not_sent() {
    let external = |change: Value| {
        let mut body = json!({
            "name": "one", "kind": "bearer_token", "managementMode": "external",
            "managerInstance": "corp", "externalPath": "orders/api",
        });
        for (member, value) in change.as_object().unwrap() {
            body[member] = value.clone();
        }
        breaches(body, Protocol::Http, false)
    };
    assert_eq!(external(json!({})), NONE);
    assert_eq!(external(json!({ "externalPath": null })), ["/externalPath"]);
    assert_eq!(external(json!({ "managerInstance": null })), ["/managerInstance"]);
    assert_eq!(
        external(json!({ "managementMode": "service", "externalField": "x", "secret": "s" })),
        ["/managerInstance", "/externalPath", "/externalField"]
    );
    let kind = json!({ "kind": "oauth2_token_exchange", "authentication": { "tokenEndpoint": "https://a.example" } });
    assert_eq!(external(kind), ["/managementMode"]);
}

/// Proves RC-7.
#[test]
fn a_path_leads_nowhere_above_its_prefix() {
    for good in ["a", "team/orders/db", "a.b/c-d_e", "-"] {
        assert!(ExternalPath::try_from(good.to_owned()).is_ok(), "{good}");
    }
    let long = "a".repeat(513);
    for bad in [
        "", "/a", "a/", "a//b", "..", "a/../b", ".hidden", "a/.b", "a%2fb", "a\\b", "a b", "a?b", "a#b", "ä",
        "a\n", &long,
    ] {
        assert!(ExternalPath::try_from(bad.to_owned()).is_err(), "{bad}");
    }
}

/// Proves RC-1.
#[test]
fn a_secret_shows_itself_in_no_debug() {
    let body: CredentialBody = serde_json::from_value(body("bearer_token")).unwrap();
    assert!(
        format!("{body:?}").contains("secret: Some(SecretText(…))"),
        "{body:?}"
    );
}
