//! A thousand secrets go through every route and failure of credentials, and none is found anywhere (R30, RC-1).

use crate::areas::resources::{make_check, make_resource};
use crate::mechanisms::replay_cell::everything;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use provost_areas_access::resource_credentials;
use provost_areas_access::resource_credentials::model::CredentialId;
use provost_kernel::jobs;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Stands at both ends of every secret, so that one search finds any of them, or either half.
const MARK: &str = "Zk7~canary>w9Qx?hJ4_vT2b";
const SECRETS: usize = 1000;

fn secret(n: usize) -> String {
    format!("{MARK}{n:06}{MARK}")
}

/// The forms in which the mark could stand somewhere.
fn forms() -> Vec<Vec<u8>> {
    let hex = provost_kernel::audit::hex(MARK.as_bytes());
    let quoted = json!(MARK).to_string();
    let mut forms = vec![MARK.into(), quoted[1..quoted.len() - 1].into()];
    forms.extend([hex.to_uppercase().into_bytes(), hex.into_bytes()]);
    for shift in 0..3 {
        let padded = [&b"\0\0"[..shift], MARK.as_bytes()].concat();
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let encoded = engine.encode(&padded);
            // What neighbours would change at both ends is left out.
            forms.push(encoded.as_bytes()[4..encoded.len() - 4].to_vec());
        }
    }
    // Half of it would be a leak as well.
    forms.push(MARK.as_bytes()[..12].to_vec());
    forms.push(MARK.as_bytes()[12..].to_vec());
    forms
}

#[track_caller]
fn assert_nowhere(bytes: &[u8], place: &str) {
    for form in forms() {
        let found = bytes.windows(form.len()).position(|window| window == form);
        let around = found.map(|at| {
            String::from_utf8_lossy(&bytes[at.saturating_sub(120)..(at + 80).min(bytes.len())]).into_owned()
        });
        assert!(found.is_none(), "a secret stands in {place}: {around:?}");
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

struct Canary {
    app: Arc<App>,
    resource: String,
    credential: String,
    owned: String,
    viewer: String,
    answers: Vec<u8>,
    statuses: Vec<u16>,
}

impl Canary {
    fn body(n: usize) -> Value {
        json!({ "name": "canary", "kind": "bearer_token", "secret": secret(n) })
    }

    fn keep(&mut self, reply: &Reply) {
        self.answers.extend_from_slice(&reply.bytes);
        self.answers
            .extend_from_slice(format!("{:?}", reply.headers).as_bytes());
        self.statuses.push(reply.status.as_u16());
    }

    async fn send(&mut self, method: &str, path: &str, body: Value) -> Reply {
        let reply = self.app.write(method, path, body).await;
        self.keep(&reply);
        reply
    }

    #[expect(clippy::too_many_lines, reason = "a table of routes and failures")]
    async fn push(&mut self, n: usize) {
        let app = self.app.clone();
        let base = format!("/resources/{}/credentials", self.resource);
        let one = format!("{base}/{}", self.credential);
        let with = |change: Value| {
            let mut body = Self::body(n);
            for (member, value) in change.as_object().unwrap() {
                body[member] = value.clone();
            }
            body
        };
        match n % 25 {
            0 => {
                let made = self.send("POST", &base, Self::body(n)).await;
                let gone = made.ok()["id"].as_str().unwrap().to_owned();
                let reply = app.delete(&format!("{base}/{gone}")).await;
                self.keep(&reply);
            }
            1 => drop(self.send("PUT", &one, Self::body(n)).await.ok().clone()),
            2 => {
                // The lost answer, the replay, and the key with another secret.
                let body = with_trio(Self::body(n), &fresh_key());
                let mut other = body.clone();
                other["secret"] = secret(n + SECRETS).into();
                for body in [body.clone(), body, other] {
                    let reply = app.request("PUT", &one).json(body).send().await;
                    self.keep(&reply);
                }
            }
            3 => {
                let absent = "/resources/res_01kadh5j9v0000000000000000/credentials";
                self.send("POST", absent, Self::body(n))
                    .await
                    .refused(404, "not_found");
            }
            4 => {
                let absent = format!("{base}/cred_01kadh5j9v0000000000000000");
                self.send("PUT", &absent, Self::body(n))
                    .await
                    .refused(404, "not_found");
            }
            5 => {
                let body = with(
                    json!({ "kind": "aws_rds_iam", "username": "x", "authentication": { "region": "r" } }),
                );
                self.send("POST", &base, body)
                    .await
                    .refused(422, "invalid_definition");
            }
            6 => {
                let body = with(json!({ "kind": "username_password", "username": "x" }));
                self.send("PUT", &one, body)
                    .await
                    .refused(422, "invalid_definition");
            }
            7 => {
                let body = with(
                    json!({ "managementMode": "external", "managerInstance": "x", "externalPath": "x" }),
                );
                self.send("POST", &base, body).await.refused(409, "conflict");
            }
            8 => {
                let body = with(json!({ "secret": format!("{}{}", secret(n), "x".repeat(65_536)) }));
                self.send("POST", &base, body)
                    .await
                    .refused(400, "invalid_request");
            }
            9 => {
                for wrong in [
                    json!([secret(n)]),
                    json!({ "value": secret(n) }),
                    json!({ secret(n): 1 }),
                ] {
                    let body = with(json!({ "secret": wrong }));
                    self.send("PUT", &one, body).await.refused(400, "invalid_request");
                }
            }
            10 => {
                let body = with(json!({ "default": true }));
                self.send("POST", &base, body).await.refused(409, "conflict");
            }
            11 => {
                let body = with(json!({ "secrt": secret(n) }));
                self.send("POST", &base, body)
                    .await
                    .refused(400, "invalid_request");
            }
            12 => {
                for member in [
                    "kind",
                    "default",
                    "managementMode",
                    "assignedTo",
                    "authentication",
                    "confirm",
                ] {
                    let body = with(json!({ member: secret(n) }));
                    self.send("PUT", &one, body).await.refused(400, "invalid_request");
                }
            }
            13 => {
                for member in ["tokenEndpoint", "region", "clientId"] {
                    let body = with(
                        json!({ "kind": "oauth2_client_credentials", "authentication": { member: secret(n) } }),
                    );
                    let reply = self.send("PUT", &one, body).await;
                    assert!([400, 422].contains(&reply.status.as_u16()), "{}", reply.text());
                }
            }
            14 => {
                let whole = with_trio(Self::body(n), &fresh_key()).to_string();
                for cut in [
                    whole.len() - 1,
                    whole.find("canary>").unwrap() + 9,
                    whole.len() / 2,
                ] {
                    let reply = app
                        .request("POST", &base)
                        .bytes(&whole.as_bytes()[..cut])
                        .send()
                        .await;
                    self.keep(&reply);
                    reply.refused(400, "invalid_request");
                }
            }
            15 => {
                let call = app.request("POST", &base).header("content-type", "text/plain");
                let reply = call.json(with_trio(Self::body(n), &fresh_key())).send().await;
                self.keep(&reply);
                reply.refused(415, "unsupported_media_type");
            }
            16 => {
                let call = app.request("POST", &base).token(&self.viewer);
                let reply = call.json(with_trio(Self::body(n), &fresh_key())).send().await;
                self.keep(&reply);
                let call = app.request("PUT", &one).anonymous();
                let reply = call.json(with_trio(Self::body(n), &fresh_key())).send().await;
                self.keep(&reply);
                // As if it were a token.
                let reply = app.request("GET", &base).token(&secret(n)).send().await;
                self.keep(&reply);
                reply.refused(401, "unauthenticated");
            }
            17 => {
                let path = format!("{base}/{}", self.owned);
                self.send("PUT", &path, Self::body(n))
                    .await
                    .refused(409, "conflict");
            }
            18 => {
                let call = app
                    .request("DELETE", &one)
                    .json(with_trio(Self::body(n), &fresh_key()));
                let reply = call.send().await;
                self.keep(&reply);
                reply.refused(400, "invalid_request");
            }
            19 => {
                let path = format!("{one}/verify");
                self.send("POST", &path, json!({ "secret": secret(n) }))
                    .await
                    .refused(400, "invalid_request");
            }
            20 => {
                // Duplicate members, in both orders.
                let text = with_trio(Self::body(n), &fresh_key()).to_string();
                let twice = format!("{{\"secret\":\"x\",{}", &text[1..]);
                let reply = app.request("POST", &base).bytes(twice).send().await;
                self.keep(&reply);
                reply.refused(400, "invalid_request");
            }
            21 => {
                let mut body = with_trio(Self::body(n), &fresh_key());
                body.as_object_mut().unwrap().remove("idempotencyKey");
                let reply = app.request("POST", &base).json(body).send().await;
                self.keep(&reply);
                reply.refused(400, "invalid_request");
            }
            22 => {
                // Too large to be read at all.
                let body = with(json!({ "secret": format!("{}{}", secret(n), "x".repeat(300_000)) }));
                self.send("POST", &base, body)
                    .await
                    .refused(413, "payload_too_large");
            }
            23 => {
                let body = with(json!({ "kind": "header", "headerName": "X-Api-Key" }));
                drop(self.send("PUT", &one, body).await.ok().clone());
                drop(self.send("PUT", &one, Self::body(n)).await.ok().clone());
            }
            _ => {
                self.send("PUT", &one, Self::body(n)).await.ok();
                make_check(&app, &self.resource, &self.credential).await;
                jobs::run_due(&app.kernel, &Arc::new(app.kernel.areas().jobs()))
                    .await
                    .unwrap();
            }
        }
    }
}

/// Proves RC-1.
#[test]
fn a_thousand_secrets_are_found_nowhere() {
    let log = Log::default();
    let sink = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || sink.clone())
        .finish();
    // In a process of its own, as nextest gives each test one, both are the first.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let shown = metrics.handle();
    let _ = metrics::set_global_recorder(metrics);
    each("canary", |app: Arc<App>| {
        let (log, shown) = (log.clone(), shown.clone());
        async move {
            let resource = make_resource(&app).await;
            let base = format!("/resources/{resource}/credentials");
            let visible = "a-name-that-is-kept-in-the-open";
            let default =
                json!({ "name": visible, "kind": "bearer_token", "secret": secret(0), "default": true });
            app.write("POST", &base, default).await.ok();
            let made = app.write("POST", &base, Canary::body(0)).await;
            let credential = made.ok()["id"].as_str().unwrap().to_owned();
            let call = app
                .request("POST", &base)
                .header("x-forge-terraform-manager", "m");
            let call = call.header("x-forge-terraform-instance", "i");
            let owned = call.json(with_trio(Canary::body(0), &fresh_key())).send().await;
            let owned = owned.ok()["id"].as_str().unwrap().to_owned();
            let (_, viewer) = app.account("viewer", "viewer", &["fleet:read"]).await;
            let mut canary = Canary {
                app: app.clone(),
                resource: resource.clone(),
                credential: credential.clone(),
                owned,
                viewer,
                answers: Vec::new(),
                statuses: Vec::new(),
            };
            tracing::trace!("the finest level");
            for n in 0..SECRETS {
                canary.push(n).await;
            }
            for path in [
                base.clone(),
                format!("{base}/{credential}"),
                "/events?limit=100".into(),
            ] {
                let reply = app.get(&path).await;
                canary.keep(&reply);
            }
            let mut after = "0".to_owned();
            while !after.is_empty() {
                let page = app.get(&format!("/audit/export?limit=1000&after={after}")).await;
                assert!(page.status.is_success());
                page.header("x-provost-next-after").clone_into(&mut after);
                canary.answers.extend_from_slice(&page.bytes);
            }
            app.settle().await;
            for status in [200, 201, 204, 400, 401, 403, 404, 409, 413, 415, 422] {
                assert!(canary.statuses.contains(&status), "{status} was not answered");
            }
            assert_nowhere(&canary.answers, "an answer");
            let store = everything(&app).await;
            assert!(
                store
                    .windows(visible.len())
                    .any(|window| window == visible.as_bytes()),
                "the search finds what is there"
            );
            assert_nowhere(&store, "the store or the keys folder");
            let lines = log.0.lock().unwrap().clone();
            let has = |text: &str| lines.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(has("the finest level"), "the log is taken");
            assert_nowhere(&lines, "the log");
            let figures = shown.render();
            assert_nowhere(figures.as_bytes(), "the metrics");
            // And yet it is kept: the last one that was stored opens.
            let id = CredentialId::from_text(&credential);
            let opened = Arc::new(Mutex::new(None));
            let sink = opened.clone();
            app.kernel
                .system(app.org(), None, move |ctx| {
                    *sink.lock().unwrap() = resource_credentials::open_secret(ctx, &id)?;
                    Ok(())
                })
                .await
                .unwrap();
            let opened = opened.lock().unwrap().take().unwrap();
            assert_eq!(opened.expose(), secret(SECRETS - 1).as_bytes());
        }
    });
}
