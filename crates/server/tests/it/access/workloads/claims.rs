//! What the three platforms send, and what of it is accepted.

use super::*;
use crate::mechanisms::replay_cell::everything;
use crate::support::each;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Github,
    Gitlab,
    Kubernetes,
}

impl Platform {
    pub const ALL: [Self; 3] = [Self::Github, Self::Gitlab, Self::Kubernetes];

    pub fn issuer(self) -> &'static str {
        match self {
            Self::Github => "https://token.actions.githubusercontent.com",
            Self::Gitlab => "https://gitlab.example.com",
            Self::Kubernetes => "https://kubernetes.default.svc.cluster.local",
        }
    }

    /// The header as it is sent: Kubernetes names no type, GitHub the digest of a certificate.
    pub fn header(self) -> Value {
        match self {
            Self::Github => {
                json!({ "typ": "JWT", "alg": "RS256", "x5t": "eBZ_cn3sXYAd0ch4THBKHIgOwOE", "kid": "rsa" })
            }
            Self::Gitlab => json!({ "kid": "rsa", "typ": "JWT", "alg": "RS256" }),
            Self::Kubernetes => json!({ "alg": "RS256", "kid": "rsa" }),
        }
    }

    pub fn claims(self, now: i64) -> Value {
        let jti = fresh_key();
        match self {
            Self::Github => json!({
                "jti": jti, "sub": "repo:octo-org/octo-repo:environment:prod", "environment": "prod",
                "aud": URL, "ref": "refs/heads/main", "sha": "6c5b4d3e2f1a", "repository": "octo-org/octo-repo",
                "repository_owner": "octo-org", "actor_id": "12", "repository_visibility": "private",
                "repository_id": "74", "repository_owner_id": "65", "run_id": "9876543210", "run_number": "10",
                "run_attempt": "2", "runner_environment": "github-hosted", "actor": "octocat",
                "workflow": "deploy", "head_ref": "", "base_ref": "", "event_name": "workflow_dispatch",
                "ref_protected": "true", "ref_type": "branch",
                "workflow_ref": "octo-org/octo-repo/.github/workflows/deploy.yml@refs/heads/main",
                "workflow_sha": "6c5b4d3e2f1a",
                "job_workflow_ref": "octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main",
                "job_workflow_sha": "6c5b4d3e2f1a",
                "iss": self.issuer(), "nbf": now - 600, "exp": now + 300, "iat": now,
            }),
            Self::Gitlab => json!({
                "namespace_id": "72", "namespace_path": "my-group", "project_id": "20",
                "project_path": "my-group/my-project", "user_id": "1", "user_login": "sample-user",
                "user_email": "sample-user@example.com",
                "user_identities": [{ "provider": "github", "extern_uid": "2435223452345" }],
                "pipeline_id": "574", "pipeline_source": "push", "job_id": "302", "ref": "main",
                "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
                "groups_direct": ["my-group/mygroup"], "environment": "production",
                "environment_protected": "false", "deployment_tier": "production", "environment_action": "start",
                "runner_id": 1, "runner_environment": "self-hosted",
                "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc", "project_visibility": "public",
                "ci_config_ref_uri": "gitlab.example.com/my-group/my-project//.gitlab-ci.yml@refs/heads/main",
                "ci_config_sha": "714a629c0b401fdce83e847fc9589983fc6f46bc",
                "jti": jti, "iat": now, "nbf": now - 5, "exp": now + 3600, "iss": self.issuer(),
                "sub": "project_path:my-group/my-project:ref_type:branch:ref:main", "aud": URL,
            }),
            Self::Kubernetes => json!({
                "aud": [URL], "exp": now + 600, "iat": now, "iss": self.issuer(), "jti": jti,
                "kubernetes.io": {
                    "namespace": "ci",
                    "node": { "name": "worker-1", "uid": "646e7c5e-32d6-4d42-9dbd-e504e6cbe6b1" },
                    "pod": { "name": "deploy-5d8c", "uid": "1a2ab60b-d4be-44e4-a4f9-3c80ea2b6cbb" },
                    "serviceaccount": { "name": "deploy", "uid": "7f7c1ad8-b1a7-4de8-9a43-d1d1a0ae1e1f" },
                    "warnafter": now + 480,
                },
                "nbf": now, "sub": "system:serviceaccount:ci:deploy",
            }),
        }
    }

    /// A trust that names the workload as narrowly as a careful person does.
    pub fn trust(self, account: &str) -> Value {
        let (kind, claims) = match self {
            Self::Github => (
                "github",
                json!([
                    { "claim": "repository_id", "value": "74" },
                    { "claim": "sub", "value": "repo:octo-org/octo-repo:environment:prod" },
                    { "claim": "ref", "value": "refs/heads/", "matches": "prefix" },
                ]),
            ),
            Self::Gitlab => (
                "gitlab",
                json!([
                    { "claim": "project_id", "value": "20" },
                    { "claim": "sub", "value": "project_path:my-group/my-project:ref_type:branch:", "matches": "prefix" },
                    { "claim": "ref_protected", "value": "true" },
                ]),
            ),
            Self::Kubernetes => (
                "kubernetes",
                json!([{ "claim": "sub", "value": "system:serviceaccount:ci:deploy" }]),
            ),
        };
        json!({
            "name": fresh_key(), "kind": kind, "issuer": self.issuer(), "serviceAccountId": account, "claims": claims,
        })
    }
}

/// Takes every log line of the process at the finest level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn holds(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

/// What is sent, refused and answered leaves no token anywhere, and the audit entry says which workload it was.
/// Proves WO-5, WO-6.
#[test]
fn each_platforms_token_is_a_session_of_the_account_and_stands_nowhere() {
    let log = Log::default();
    let sink = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || sink.clone())
        .finish();
    // In a process of its own, as nextest gives each test one, this is the first.
    let _ = tracing::subscriber::set_global_default(subscriber);
    each("workload_claims", |app| {
        let log = log.clone();
        async move {
            let mut secrets = Vec::new();
            for platform in Platform::ALL {
                let scene = Scene::of(&app, platform, "operator", &["policies:read", "directory:read"]).await;
                let token = scene.token(&app, |_| {});
                let reply = scene.exchange(&app, &token).await;
                let session = access(&reply);
                let answer = reply.json.as_object().unwrap();
                assert!(!answer.contains_key("refresh_token"), "{}", reply.text());
                assert_eq!(answer["token_type"], "Bearer");
                assert_eq!(answer["scope"], "directory:read policies:read");
                // The whole seconds until the token's `exp`, or the 15 minutes of the trust.
                let secs = answer["expires_in"].as_i64().unwrap();
                let most = match platform {
                    Platform::Github => 300,
                    Platform::Gitlab => 900,
                    Platform::Kubernetes => 600,
                };
                assert!((most - 1..=most).contains(&secs), "{platform:?}: {secs}");
                app.request("GET", "/policies").token(&session).send().await.ok();
                app.request("GET", "/audit/events")
                    .token(&session)
                    .send()
                    .await
                    .refused(403, "insufficient_scope");
                // It is a session like any other: of the account, under the trust.
                let sessions = app
                    .get(&format!("/mcp/sessions?serviceAccountId={}", scene.account))
                    .await;
                let listed = sessions.ok()["sessions"][0].clone();
                assert_eq!(listed["mcpClientId"], scene.trust.as_str(), "{listed}");
                assert_eq!(listed["actorType"], "service_account");
                // The audit entry says which workload it was.
                let entries = app.entries(&app.organization, 0).await;
                let entry = entries
                    .iter()
                    .rev()
                    .find(|entry| entry["action"] == "oauth.workload.admitted");
                let entry = entry.unwrap().to_string();
                for part in [scene.trust.as_str(), platform.issuer()] {
                    assert!(entry.contains(part), "{part}: {entry}");
                }
                let said = platform.claims(0);
                assert!(entry.contains(said["sub"].as_str().unwrap()), "{entry}");
                // What was refused leaves no token either.
                let other = scene.token(&app, |claims| claims["sub"] = "repo:other/other:ref:x".into());
                not_accepted(&scene.exchange(&app, &other).await);
                not_accepted(&scene.exchange(&app, &token.replace('.', "..")).await);
                secrets.extend([token, session, other]);
            }
            app.settle().await;
            let mut everywhere = everything(&app).await;
            everywhere.extend(log.0.lock().unwrap().iter());
            for entry in app.entries(&app.organization, 0).await {
                everywhere.extend(entry.to_string().into_bytes());
            }
            assert!(holds(&everywhere, "octo-org"), "the audit log is among it");
            for secret in secrets {
                for part in secret.split('.') {
                    assert!(!holds(&everywhere, part), "a token stands somewhere");
                }
            }
        }
    });
}

type Change = fn(&mut Value);

/// What makes another workload of the token that each platform sends, or one for another server.
fn changes() -> Vec<(Platform, &'static str, Change)> {
    vec![
        (Platform::Github, "another repository", |c| {
            c["repository_id"] = "75".into();
        }),
        (Platform::Github, "another repository of the owner", |c| {
            c["sub"] = "repo:octo-org/other:environment:prod".into();
        }),
        (Platform::Github, "a pull request", |c| {
            c["sub"] = "repo:octo-org/octo-repo:pull_request".into();
        }),
        (Platform::Github, "a branch in place of the environment", |c| {
            c["sub"] = "repo:octo-org/octo-repo:ref:refs/heads/main".into();
        }),
        (Platform::Github, "a tag", |c| c["ref"] = "refs/tags/v1".into()),
        (Platform::Github, "nothing behind the prefix", |c| {
            c["ref"] = "refs/heads/".into();
        }),
        (Platform::Github, "a number", |c| c["repository_id"] = 74.into()),
        (Platform::Github, "a list", |c| c["repository_id"] = json!(["74"])),
        (Platform::Github, "no such claim", |c| {
            c.as_object_mut().unwrap().remove("repository_id");
        }),
        (Platform::Github, "a fork", |c| {
            c["sub"] = "repo:mallory/octo-repo:environment:prod".into();
        }),
        (Platform::Github, "case", |c| {
            c["sub"] = "repo:Octo-Org/octo-repo:environment:prod".into();
        }),
        (Platform::Github, "another audience", |c| {
            c["aud"] = "https://github.com/octo-org".into();
        }),
        (Platform::Github, "two audiences", |c| {
            c["aud"] = json!([URL, "https://other.example"]);
        }),
        (Platform::Github, "an audience that begins alike", |c| {
            c["aud"] = format!("{URL}/x").into();
        }),
        (Platform::Github, "another issuer", |c| {
            c["iss"] = "https://gitlab.example.com".into();
        }),
        (Platform::Github, "an issuer that begins alike", |c| {
            c["iss"] = "https://token.actions.githubusercontent.com/".into();
        }),
        (Platform::Github, "who may act", |c| {
            c["may_act"] = json!({ "sub": "x" });
        }),
        (Platform::Gitlab, "a merge request", |c| {
            c["sub"] = "project_path:my-group/my-project:ref_type:tag:ref:main".into();
        }),
        (Platform::Gitlab, "an unprotected branch", |c| {
            c["ref_protected"] = "false".into();
        }),
        (Platform::Gitlab, "a fork", |c| c["project_id"] = "21".into()),
        (Platform::Kubernetes, "another account", |c| {
            c["sub"] = "system:serviceaccount:ci:deploy2".into();
        }),
        (Platform::Kubernetes, "another namespace", |c| {
            c["sub"] = "system:serviceaccount:prod:deploy".into();
        }),
    ]
}

/// Each claim that makes another workload, another server or another time of it.
/// Proves WO-1, WO-5.
#[test]
fn another_workload_or_audience_is_refused_in_one_sentence() {
    each("workload_refusals", |app| async move {
        for platform in Platform::ALL {
            let scene = Scene::of(&app, platform, "viewer", &["policies:read"]).await;
            for (of, what, change) in changes().into_iter().filter(|(of, ..)| *of == platform) {
                let reply = scene.exchange(&app, &scene.token(&app, change)).await;
                assert_eq!(reply.status.as_u16(), 400, "{of:?} {what}: {}", reply.text());
                not_accepted(&reply);
            }
            // A trust that is not there says no more than one that is.
            let nobody = "wtr_01kadh5j9v0000000000000000";
            not_accepted(&exchange(&app, nobody, &scene.token(&app, |_| {}), &[]).await);
        }
    });
}

/// Proves WO-5.
#[test]
fn another_time_or_signature_is_refused_in_the_same_sentence() {
    each("workload_forged", |app| async move {
        for platform in Platform::ALL {
            let scene = Scene::of(&app, platform, "viewer", &["policies:read"]).await;
            // Times: expired, from the future beyond the minute, too old, too long.
            let now = app.now().as_ms() / 1000;
            let timed = |iat: i64, nbf: i64, exp: i64| {
                scene.token(&app, |claims| {
                    (claims["iat"], claims["nbf"], claims["exp"]) = (iat.into(), nbf.into(), exp.into());
                })
            };
            for (what, token) in [
                ("expired", timed(now - 300, now - 300, now)),
                ("expired a while ago", timed(now - 3600, now - 3600, now - 100)),
                ("from the future", timed(now + 61, now, now + 300)),
                ("not yet", timed(now, now + 61, now + 300)),
                ("an hour and more old", timed(now - 3661, now - 3661, now + 300)),
                ("for a year", timed(now, now, now + 31_536_000)),
            ] {
                let reply = scene.exchange(&app, &token).await;
                assert_eq!(reply.status.as_u16(), 400, "{platform:?} {what}");
                not_accepted(&reply);
            }
            for token in [
                timed(now + 60, now + 60, now + 300),
                timed(now - 3600, now - 3600, now + 2),
            ] {
                access(&scene.exchange(&app, &token).await);
            }
            // Signatures: none, with the public key as a secret, of another key, of a key that the trust lacks.
            let claims = scene.platform.claims(now);
            let with = |header: Value| scene.workshop.signed(&header, &claims);
            for header in [
                json!({ "alg": "none", "kid": "rsa" }),
                json!({ "alg": "HS256", "kid": "rsa" }),
                json!({ "alg": "RS256", "kid": "ed" }),
                json!({ "alg": "RS256", "kid": "unheard" }),
                json!({ "alg": "RS256", "kid": "rsa", "typ": "at+jwt" }),
                json!({ "alg": "RS256", "kid": "rsa", "jku": "https://mallory.example" }),
            ] {
                not_accepted(&scene.exchange(&app, &with(header)).await);
            }
            let whole = with(json!({ "alg": "none", "kid": "rsa" }));
            let unsigned = format!("{}.", whole.rsplit_once('.').unwrap().0);
            not_accepted(&scene.exchange(&app, &unsigned).await);
            let strange = workshop(&app).signed(&scene.platform.header(), &claims);
            not_accepted(&scene.exchange(&app, &strange).await);
            for attack in symmetric(&scene, &claims) {
                not_accepted(&scene.exchange(&app, &attack).await);
            }
        }
    });
}

/// Tokens whose signature is a MAC under the public keys.
fn symmetric(scene: &Scene, claims: &Value) -> Vec<String> {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let key_set = scene.workshop.key_set();
    let modulus = key_set["keys"][2]["n"].as_str().unwrap();
    let secrets = [
        key_set.to_string().into_bytes(),
        key_set["keys"][2].to_string().into_bytes(),
        modulus.as_bytes().to_vec(),
        URL_SAFE_NO_PAD.decode(modulus).unwrap(),
    ];
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": "rsa" });
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let sign = |secret: &Vec<u8>| {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
        let mac = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac))
    };
    secrets.iter().map(sign).collect()
}

/// Proves WO-5.
#[test]
fn a_token_serves_once_and_its_lost_answer_is_given_again_for_thirty_seconds() {
    each("workload_replay", |app| async move {
        for platform in Platform::ALL {
            let scene = Scene::of(&app, platform, "viewer", &["policies:read"]).await;
            let token = scene.token(&app, |claims| {
                // Clusters of before 1.32 send no id.
                if platform == Platform::Kubernetes {
                    claims.as_object_mut().unwrap().remove("jti");
                }
            });
            let first = access(&scene.exchange(&app, &token).await);
            let mut other = scene.platform.trust(&scene.account);
            other["jwks"] = scene.workshop.key_set();
            let other = trusted(&app, other).await;
            app.advance(29);
            not_accepted(&exchange(&app, &other, &token, &[]).await);
            let again = scene.exchange(&app, &token).await;
            let second = access(&again);
            let left = again.json["expires_in"].as_i64().unwrap();
            assert!(left <= 871, "the session does not live longer: {left}");
            for session in [&first, &second] {
                app.request("GET", "/policies").token(session).send().await.ok();
            }
            // One session, which one act ends.
            let sessions = app
                .get(&format!("/mcp/sessions?serviceAccountId={}", scene.account))
                .await;
            assert_eq!(sessions.ok()["total"], 1);
            app.advance(1);
            not_accepted(&scene.exchange(&app, &token).await);
            let id = sessions.json["sessions"][0]["id"].as_str().unwrap();
            app.write("POST", &format!("/mcp/sessions/{id}/revoke"), json!({}))
                .await
                .ok();
            for session in [&first, &second] {
                let reply = app.request("GET", "/policies").token(session).send().await;
                reply.refused(401, "token_revoked");
            }
            // One whose session was ended is not given again, also within the time.
            let token = scene.token(&app, |_| {});
            access(&scene.exchange(&app, &token).await);
            let sessions = app
                .get(&format!(
                    "/mcp/sessions?serviceAccountId={}&status=active",
                    scene.account
                ))
                .await;
            let id = sessions.ok()["sessions"][0]["id"].as_str().unwrap();
            app.write("POST", &format!("/mcp/sessions/{id}/revoke"), json!({}))
                .await
                .ok();
            not_accepted(&scene.exchange(&app, &token).await);
        }
    });
}

#[test]
fn what_is_asked_beside_the_token_only_narrows() {
    each("workload_asked", |app| async move {
        let scene = Scene::of(
            &app,
            Platform::Github,
            "operator",
            &["policies:read", "directory:read"],
        )
        .await;
        let ask = async |more: &[(&str, &str)]| {
            let token = scene.token(&app, |_| {});
            exchange(&app, &scene.trust, &token, more).await
        };
        let narrowed = ask(&[(
            "scope",
            "policies:read audit:read service_accounts:write unheard:of",
        )])
        .await;
        assert_eq!(narrowed.ok()["scope"], "policies:read");
        refused(&ask(&[("scope", "audit:read")]).await, 400, "invalid_scope");
        refused(
            &ask(&[("scope", "service_accounts:rotate_self")]).await,
            400,
            "invalid_scope",
        );
        refused(
            &ask(&[("resource", "https://other.example")]).await,
            400,
            "invalid_target",
        );
        refused(&ask(&[("audience", URL)]).await, 400, "invalid_target");
        refused(&ask(&[("actor_token", "x")]).await, 400, "invalid_request");
        refused(&ask(&[("client_secret", "x")]).await, 400, "invalid_request");
        refused(
            &ask(&[("requested_token_type", JWT)]).await,
            400,
            "invalid_request",
        );
        // A token for MCP does not serve the API.
        let mcp = ask(&[("resource", crate::access::oauth::MCP)]).await;
        let reply = app.request("GET", "/policies").token(&access(&mcp)).send().await;
        reply.refused(401, "unauthenticated");
        // The trust is no client of any other grant.
        for grant in ["client_credentials", "authorization_code", "refresh_token"] {
            let form = [
                ("grant_type", grant),
                ("client_id", scene.trust.as_str()),
                ("code", "x"),
            ];
            refused(&post(&app, "/oauth/token", &form).await, 401, "invalid_client");
        }
        let documents = app
            .request("GET", "")
            .at("/.well-known/oauth-authorization-server")
            .anonymous();
        let grants = documents.send().await.ok()["grant_types_supported"].clone();
        assert!(grants.as_array().unwrap().contains(&EXCHANGE.into()), "{grants}");
    });
}
