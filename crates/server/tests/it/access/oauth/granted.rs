//! Every grant: its good path, and each registered error.

use super::dpop::{proof_of, thumbprint};
use super::*;
use crate::support::{each, fresh_key, with_trio};
use aws_lc_rs::signature::Ed25519KeyPair;
use aws_lc_rs::signature::KeyPair;
use provost_oauth::assertion;

pub const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// A client with a key of its own.
pub struct Confidential {
    pub id: String,
    key: Ed25519KeyPair,
}

impl Confidential {
    pub async fn register(app: &App, grants: &[&str], account: Option<&str>) -> Self {
        let key = Ed25519KeyPair::generate().unwrap();
        let x = URL_SAFE_NO_PAD.encode(key.public_key());
        let mut body = json!({
            "name": fresh_key(), "grantTypes": grants, "tokenEndpointAuthMethod": "private_key_jwt",
            "jwks": { "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x }] },
            "scopes": ["policies:read", "directory:read"],
        });
        if let Some(account) = account {
            body["serviceAccountId"] = account.into();
        }
        Self {
            id: register(app, body).await,
            key,
        }
    }

    /// Returns one that is known elsewhere, with a key of its own.
    pub fn of(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            key: Ed25519KeyPair::generate().unwrap(),
        }
    }

    /// Returns its public key under a name.
    pub fn key_set(&self, kid: &str) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.key.public_key());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x }] })
    }

    pub fn assertion(&self, app: &App, change: impl FnOnce(&mut Value)) -> String {
        let now = app.now().as_ms() / 1000;
        let mut claims = json!({
            "iss": self.id, "sub": self.id, "aud": URL, "jti": fresh_key(), "iat": now, "exp": now + 60,
        });
        change(&mut claims);
        self.signed("k", &claims)
    }

    /// Returns an assertion under a key's name.
    pub fn signed(&self, kid: &str, claims: &Value) -> String {
        let header = json!({ "alg": "EdDSA", "kid": kid });
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    pub async fn ask(&self, app: &App, form: &[(&str, &str)]) -> Reply {
        let assertion = self.assertion(app, |_| {});
        self.ask_with(app, form, &assertion).await
    }

    async fn ask_with(&self, app: &App, form: &[(&str, &str)], assertion: &str) -> Reply {
        self.send(app, "/oauth/token", form, assertion).await
    }

    pub async fn send(&self, app: &App, path: &str, form: &[(&str, &str)], assertion: &str) -> Reply {
        let mut form = form.to_vec();
        form.push(("client_assertion_type", assertion::TYPE));
        form.push(("client_assertion", assertion));
        post(app, path, &form).await
    }
}

pub fn form_of(assertion: &str) -> [(&str, &str); 3] {
    [
        ("grant_type", JWT_BEARER),
        ("assertion", assertion),
        ("scope", "policies:read directory:read"),
    ]
}

pub fn access(reply: &Reply) -> String {
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    reply.json["access_token"].as_str().unwrap().to_owned()
}

/// Proves OC-3.
#[test]
fn a_code_is_redeemed_once_by_its_client_with_its_verifier() {
    each("oauth_codes", |app| async move {
        let client = register(&app, public_client("one")).await;
        let other = register(&app, public_client("two")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let new = || code(&app, &client, &ann, &["policies:read", "policies:write"], None);
        let fresh = new().await;
        let form = redeeming(&client, &fresh);
        let changed = |name: &str, value: &'static str| {
            let pairs = form.iter();
            let pairs = pairs.map(|(known, old)| (*known, if *known == name { value } else { *old }));
            pairs.collect::<Vec<(&str, &str)>>()
        };
        for (name, value, status, error) in [
            ("redirect_uri", "http://127.0.0.1/other", 400, "invalid_grant"),
            (
                "code_verifier",
                "another-verifier-of-some-length-another-verifier",
                400,
                "invalid_grant",
            ),
            ("code", "unknown", 400, "invalid_grant"),
            ("code", "", 400, "invalid_request"),
            ("code_verifier", "", 400, "invalid_request"),
            ("client_id", "ocl_unknown", 401, "invalid_client"),
            (
                "client_id",
                "https://127.0.0.1/client.json",
                401,
                "invalid_client",
            ),
            ("grant_type", "password", 400, "unsupported_grant_type"),
            ("grant_type", "", 400, "invalid_request"),
            ("grant_type", "client_credentials", 400, "unauthorized_client"),
        ] {
            refused(
                &post(&app, "/oauth/token", &changed(name, value)).await,
                status,
                error,
            );
        }
        let mut twice = form.clone();
        twice.push(("code", "x"));
        refused(&post(&app, "/oauth/token", &twice).await, 400, "invalid_request");
        let mut elsewhere = form.clone();
        elsewhere.push(("resource", "https://elsewhere.example"));
        refused(
            &post(&app, "/oauth/token", &elsewhere).await,
            400,
            "invalid_target",
        );
        let mut secret = form.clone();
        secret.push(("client_secret", "hunter2"));
        refused(&post(&app, "/oauth/token", &secret).await, 401, "invalid_client");
        refused(
            &post(&app, "/oauth/token", &redeeming(&other, &fresh)).await,
            400,
            "invalid_grant",
        );

        let reply = post(&app, "/oauth/token", &form).await;
        let token = access(&reply);
        // Of what was consented to, the client may look alone.
        assert_eq!(reply.json["scope"], "policies:read");
        assert_eq!(reply.json["token_type"], "Bearer");
        read(&app, &token).await.ok();
        // OC-3: the second use ends the session.
        refused(&post(&app, "/oauth/token", &form).await, 400, "invalid_grant");
        read(&app, &token).await.refused(401, "token_revoked");
        // Who does not say the redirect target proves with the verifier that the code is theirs.
        let unsaid = new().await;
        let mut form = redeeming(&client, &unsaid);
        form.retain(|(name, _)| *name != "redirect_uri");
        let mut wrong = form.clone();
        wrong.retain(|(name, _)| *name != "code_verifier");
        refused(&post(&app, "/oauth/token", &wrong).await, 400, "invalid_request");
        wrong.push((
            "code_verifier",
            "another-verifier-of-some-length-another-verifier",
        ));
        refused(&post(&app, "/oauth/token", &wrong).await, 400, "invalid_grant");
        access(&post(&app, "/oauth/token", &form).await);
        let late = new().await;
        app.advance(61);
        refused(
            &post(&app, "/oauth/token", &redeeming(&client, &late)).await,
            400,
            "invalid_grant",
        );
    });
}

/// Proves OC-5.
#[test]
fn a_client_that_is_an_account_proves_itself_each_time_anew() {
    each("oauth_client_credentials", |app| async move {
        let (account, _) = app.account("robot", "viewer", &["policies:read"]).await;
        let client = Confidential::register(&app, &["client_credentials"], Some(&account)).await;
        let form = [("grant_type", "client_credentials")];
        let assertion = client.assertion(&app, |_| {});
        let reply = client.ask_with(&app, &form, &assertion).await;
        let token = access(&reply);
        assert_eq!(reply.json["scope"], "policies:read");
        assert!(reply.json.get("refresh_token").is_none());
        read(&app, &token).await.ok();
        refused(
            &client.ask_with(&app, &form, &assertion).await,
            401,
            "invalid_client",
        );
        for (name, value) in [
            ("aud", json!("https://elsewhere.example")),
            ("sub", json!("ocl_other")),
            ("exp", json!(1)),
        ] {
            let wrong = client.assertion(&app, |claims| claims[name] = value);
            let mut form = form.to_vec();
            form.push(("client_id", &client.id));
            refused(&client.ask_with(&app, &form, &wrong).await, 401, "invalid_client");
        }
        let mut named = form.to_vec();
        named.push(("client_id", &client.id));
        refused(&post(&app, "/oauth/token", &named).await, 401, "invalid_client");
        let too_much = [("grant_type", "client_credentials"), ("scope", "audit:read")];
        refused(&client.ask(&app, &too_much).await, 400, "invalid_scope");
        // What nobody knows is passed over, and the answer says what was granted; alone it is not taken for nothing.
        let more = [
            ("grant_type", "client_credentials"),
            ("scope", "openid policies:read unheard:of"),
        ];
        assert_eq!(client.ask(&app, &more).await.ok()["scope"], "policies:read");
        let unknown = [
            ("grant_type", "client_credentials"),
            ("scope", "openid unheard:of"),
        ];
        refused(&client.ask(&app, &unknown).await, 400, "invalid_scope");
        let mut registered = public_client("unknown");
        registered["scopes"] = json!(["policies:read", "openid"]);
        let registered = app.write("POST", "/mcp/clients", registered).await;
        assert_eq!(registered.status.as_u16(), 400, "{}", registered.text());
        let elsewhere = [
            ("grant_type", "client_credentials"),
            ("resource", "https://elsewhere.example"),
        ];
        refused(&client.ask(&app, &elsewhere).await, 400, "invalid_target");
        // For both, of which one is named twice.
        let both = [("resource", API), ("resource", MCP), ("resource", API)];
        let for_both = [&form[..], &both].concat();
        let for_both = access(&client.ask(&app, &for_both).await);
        let claims = for_both.split('.').nth(1).unwrap();
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        assert_eq!(claims["aud"], json!([API, MCP]));
        read(&app, &for_both).await.ok();
        // For MCP alone: the API refuses it.
        let mcp = [("grant_type", "client_credentials"), ("resource", MCP)];
        let for_mcp = access(&client.ask(&app, &mcp).await);
        read(&app, &for_mcp).await.refused(401, "unauthenticated");
        let disable = format!("/service-accounts/{account}/disable");
        app.write("POST", &disable, json!({})).await.ok();
        assert_eq!(read(&app, &token).await.status.as_u16(), 401);
        refused(&client.ask(&app, &form).await, 400, "invalid_grant");
        let block = json!({ "blocked": true });
        app.write("PATCH", &format!("/mcp/clients/{}", client.id), block)
            .await
            .ok();
        refused(&client.ask(&app, &form).await, 401, "invalid_client");
    });
}

/// OC-5: what was spent is known as spent for as long as it would be taken.
/// Proves OC-5.
#[test]
fn an_assertion_is_spent_until_its_last_moment() {
    each("oauth_spent", |app| async move {
        let (account, _) = app.account("robot", "viewer", &["policies:read"]).await;
        let client = Confidential::register(&app, &["client_credentials"], Some(&account)).await;
        let form = [("grant_type", "client_credentials")];
        let (spent, fresh) = (client.assertion(&app, |_| {}), client.assertion(&app, |_| {}));
        access(&client.ask_with(&app, &form, &spent).await);
        // It lives a minute, and clocks may differ by one more.
        app.advance(119);
        refused(&client.ask_with(&app, &form, &spent).await, 401, "invalid_client");
        access(&client.ask_with(&app, &form, &fresh).await);
        app.advance(1);
        let ended = app.now().as_ms() / 1000 - 60;
        let last = client.assertion(&app, |claims| claims["exp"] = ended.into());
        refused(&client.ask_with(&app, &form, &last).await, 401, "invalid_client");
    });
}

/// Proves OC-14, SA-10.
#[test]
fn who_may_not_be_an_account_registers_no_client_that_is_it() {
    each("oauth_clients_escalation", |app| async move {
        let (strong, _) = app
            .account("strong", "admin", &["policies:write", "mcp:write"])
            .await;
        let (_, narrow) = app.account("narrow", "admin", &["mcp:read", "mcp:write"]).await;
        let body = |scopes: &[&str], account: &str| {
            let client = json!({
                "name": fresh_key(), "grantTypes": ["client_credentials"], "tokenEndpointAuthMethod": "private_key_jwt",
                "jwksUri": "https://keys.example/jwks.json", "scopes": scopes, "serviceAccountId": account,
            });
            with_trio(client, &fresh_key())
        };
        let send = async |method: &'static str, path: &str, body: Value| {
            app.request(method, path).token(&narrow).json(body).send().await
        };
        let clients = "/mcp/clients";
        send("POST", clients, body(&["policies:write"], &strong))
            .await
            .refused(403, "escalation_forbidden");
        send("POST", clients, body(&["mcp:write"], "sa_unknown"))
            .await
            .refused(404, "not_found");
        // Whoever has the client is the account, whatever the client's scopes: what it made is theirs.
        send("POST", clients, body(&["mcp:write"], &strong))
            .await
            .refused(403, "escalation_forbidden");
        let (weak, _) = app.account("weak", "viewer", &["policies:read"]).await;
        send("POST", clients, body(&["policies:read"], &weak))
            .await
            .refused(403, "escalation_forbidden");
        let (own, _) = app.account("own", "admin", &["mcp:write"]).await;
        let made = send("POST", clients, body(&["mcp:write"], &own)).await;
        let path = format!("{clients}/{}", made.ok()["id"].as_str().unwrap());
        let wider = with_trio(json!({ "scopes": ["mcp:write", "policies:write"] }), &fresh_key());
        send("PATCH", &path, wider)
            .await
            .refused(403, "escalation_forbidden");
        assert_eq!(app.get(clients).await.ok()["total"], 1);
    });
}

/// Proves CR-2, OC-2.
#[test]
fn a_token_of_a_trusted_issuer_is_exchanged_for_what_its_user_may() {
    each("oauth_exchange", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "ann@acme.example", Some("viewer")).await;
        let client = Confidential::register(&app, &[EXCHANGE], None).await;
        let identity = |changes: &[(&str, Value)]| {
            let mut claims = workshop.claims();
            claims["aud"] = "provost-at-the-issuer".into();
            claims["email"] = "ann@acme.example".into();
            claims["email_verified"] = true.into();
            for (name, value) in changes {
                claims[*name] = value.clone();
            }
            workshop.signed(&json!({ "alg": "EdDSA", "typ": "JWT", "kid": "ed" }), &claims)
        };
        let good = identity(&[]);
        let form = [
            ("grant_type", EXCHANGE),
            ("subject_token", good.as_str()),
            ("subject_token_type", ID_TOKEN),
        ];
        let reply = client.ask(&app, &form).await;
        let token = access(&reply);
        assert_eq!(
            reply.json["issued_token_type"],
            "urn:ietf:params:oauth:token-type:access_token"
        );
        assert_eq!(reply.json["scope"], "policies:read");
        read(&app, &token).await.ok();
        // Another token: what is given for one token is one session, of one actor.
        let second = identity(&[("jti", fresh_key().into())]);
        let mut acting = form.to_vec();
        acting[1].1 = &second;
        acting.extend([("actor_token", good.as_str()), ("actor_token_type", ID_TOKEN)]);
        let acting = access(&client.ask(&app, &acting).await);
        read(&app, &acting).await.ok();
        let sessions = app.get("/mcp/sessions?actorType=agent").await;
        assert_eq!(sessions.ok()["total"], 1);
        let bound = json!({ "jkt": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" });
        for (name, value, error) in [
            ("aud", json!("elsewhere"), "invalid_grant"),
            ("iss", json!("https://other.example"), "invalid_grant"),
            ("organization_id", json!("other"), "invalid_grant"),
            ("exp", json!(1), "invalid_grant"),
            ("cnf", bound, "invalid_dpop_proof"),
        ] {
            let wrong = identity(&[(name, value)]);
            let mut form = form;
            form[1].1 = &wrong;
            refused(&client.ask(&app, &form).await, 400, error);
        }
        let stranger = identity(&[("sub", json!("nobody")), ("email_verified", json!(false))]);
        let mut strange = form;
        strange[1].1 = &stranger;
        refused(&client.ask(&app, &strange).await, 400, "invalid_grant");
        let mut typed = form;
        typed[2].1 = "urn:ietf:params:oauth:token-type:jwt";
        refused(&client.ask(&app, &typed).await, 400, "invalid_request");
        for (name, value, error) in [
            ("requested_token_type", ID_TOKEN, "invalid_request"),
            ("audience", API, "invalid_target"),
            ("actor_token", good.as_str(), "invalid_request"),
            ("actor_token_type", ID_TOKEN, "invalid_request"),
        ] {
            let mut more = form.to_vec();
            more.push((name, value));
            refused(&client.ask(&app, &more).await, 400, error);
        }
        // Who was not registered for exchanges exchanges nothing, whoever's word it brings.
        let public = register(&app, public_client("public")).await;
        let mut unproved = form.to_vec();
        unproved.push(("client_id", &public));
        refused(
            &post(&app, "/oauth/token", &unproved).await,
            400,
            "unauthorized_client",
        );
        app.kernel.stop().await;
    });
}

/// Proves OC-2, OC-5.
#[test]
fn an_enterprises_assertion_serves_once_and_limits_what_is_granted() {
    each("oauth_id_jag", |app| async move {
        let workshop = workshop(&app);
        let (app, other) = (trusting(&app, &workshop), trusting(&app, &workshop));
        user(&app, "ann@acme.example", Some("operator")).await;
        let client = Confidential::register(&app, &[JWT_BEARER], None).await;
        let grant = |change: &dyn Fn(&mut Value)| {
            let now = app.now().as_ms() / 1000;
            let mut claims = json!({
                "iss": ISSUER, "sub": "subject-1", "aud": URL, "client_id": client.id, "resource": API,
                "scope": "policies:read", "jti": fresh_key(), "iat": now, "exp": now + 300,
                "email": "ann@acme.example", "email_verified": true,
            });
            change(&mut claims);
            workshop.signed(
                &json!({ "alg": "EdDSA", "typ": "oauth-id-jag+jwt", "kid": "ed" }),
                &claims,
            )
        };
        let good = grant(&|_| {});
        let reply = client.ask(&app, &form_of(&good)).await;
        let token = access(&reply);
        assert_eq!(reply.json["scope"], "policies:read");
        read(&app, &token).await.ok();
        // OC-5: at the other server as well.
        refused(&client.ask(&app, &form_of(&good)).await, 400, "invalid_grant");
        refused(&client.ask(&other, &form_of(&good)).await, 400, "invalid_grant");
        for (name, value) in [
            ("aud", json!("https://elsewhere.example")),
            ("client_id", json!("ocl_other")),
            ("resource", json!("https://elsewhere.example")),
            ("iss", json!("https://other.example")),
            ("exp", json!(1)),
        ] {
            let wrong = grant(&|claims| claims[name] = value.clone());
            refused(&client.ask(&app, &form_of(&wrong)).await, 400, "invalid_grant");
        }
        // What the request does not say, the assertion does; and what neither says is what only looks.
        for (named, granted) in [
            (json!("directory:read"), "directory:read"),
            (Value::Null, "directory:read policies:read"),
        ] {
            let said = grant(&|claims| {
                claims["scope"] = named.clone();
                claims
                    .as_object_mut()
                    .unwrap()
                    .retain(|_, value| !value.is_null());
            });
            let reply = client.ask(&app, &form_of(&said)[..2]).await;
            assert_eq!(reply.ok()["scope"], granted, "{}", reply.text());
        }
        // Bound to a key that the request proves to hold.
        let key = Ed25519KeyPair::generate().unwrap();
        let bound = grant(&|claims| claims["cnf"] = json!({ "jkt": thumbprint(&key) }));
        refused(
            &client.ask(&app, &form_of(&bound)).await,
            400,
            "invalid_dpop_proof",
        );
        // What was sent without the proof is spent by it.
        let bound = grant(&|claims| claims["cnf"] = json!({ "jkt": thumbprint(&key) }));
        let now = app.now().as_ms() / 1000;
        let proof = proof_of("POST", &key, "", now, &fresh_key(), &format!("{URL}/oauth/token"));
        let assertion = client.assertion(&app, |_| {});
        let mut form = form_of(&bound).to_vec();
        form.push(("client_assertion_type", assertion::TYPE));
        form.push(("client_assertion", &assertion));
        let reply = post_with(&app, "/oauth/token", &form, &[("dpop", &proof)]).await;
        assert_eq!(reply.ok()["token_type"], "DPoP", "{}", reply.text());
        let nothing = grant(&|claims| claims["scope"] = "audit:read".into());
        refused(&client.ask(&app, &form_of(&nothing)).await, 400, "invalid_scope");
        app.kernel.stop().await;
        other.kernel.stop().await;
    });
}
