//! An application in a test: a store of its own, a clock that moves by hand, seeded entropy, and a client
//! whose every answer is checked against the OpenAPI document.

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Location;
use provost_kernel::db::testing::locations;
use provost_kernel::entropy::SeededEntropy;
use provost_kernel::expose::edge::{Edge, EdgeSettings};
use provost_kernel::expose::http::Reading;
use provost_kernel::expose::openapi;
use provost_kernel::kernel::Settings;
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, ManualClock};
use provost_kernel::{Kernel, Timestamp};
use provost_server::app;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

/// 2026-11-20T03:15:00.000Z
pub const START: Timestamp = Timestamp::from_ms(1_795_144_500_000);

pub struct App {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<ManualClock>,
    pub router: Router,
    pub organization: String,
    pub admin_id: String,
    pub admin: String,
    pub keys_dir: PathBuf,
    contract: Arc<Contract>,
    location: Location,
}

/// Runs a scenario on every engine.
pub fn each<F: Future<Output = ()>>(name: &str, scenario: impl Fn(Arc<App>) -> F) {
    each_with(
        name,
        Settings {
            rate_limits: false,
            ..Settings::default()
        },
        scenario,
    );
}

/// Runs a scenario on every engine with settings of its own.
pub fn each_with<F: Future<Output = ()>>(name: &str, settings: &Settings, scenario: impl Fn(Arc<App>) -> F) {
    for store in locations(name) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let app = Arc::new(App::start(store.location(), settings.clone()).await);
            scenario(app.clone()).await;
            app.kernel.stop().await;
            let _ = std::fs::remove_dir_all(&app.keys_dir);
        });
    }
}

impl App {
    pub async fn start(location: Location, settings: Settings) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let unique = format!(
            "provost_keys_{}_{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let keys_dir = std::env::temp_dir().join(unique);
        let clock = Arc::new(ManualClock::new(START));
        let entropy = Arc::new(SeededEntropy::new(NEXT.load(Ordering::Relaxed)));
        let keys = Keys::create(&keys_dir, START, &*entropy).unwrap();
        let installation = app::Installation {
            location: location.clone(),
            keys,
            clock: clock.clone(),
            entropy: entropy.clone(),
            settings,
        };
        let kernel = app::start(installation).unwrap();
        let made = app::bootstrap(&kernel, "Acme", None).await.unwrap();
        let reading = Reading {
            max_body_bytes: 256 * 1024,
            timeout: Duration::from_secs(10),
        };
        let edge = Edge::new(EdgeSettings::default(), clock.clone(), entropy);
        let router = edge.wrap(app::router(&kernel, reading));
        let contract = Arc::new(Contract::of(&openapi::document(&kernel.registry)));
        Self {
            router,
            clock,
            organization: made.organization_id.as_str().to_owned(),
            admin_id: made.service_account_id,
            admin: made.token.expose().clone(),
            keys_dir,
            contract,
            location,
            kernel,
        }
    }

    /// Makes one more organization; returns its key and its admin's token.
    pub async fn other_organization(&self, name: &str) -> (String, String) {
        let made = app::bootstrap(&self.kernel, name, None).await.unwrap();
        (
            made.organization_id.as_str().to_owned(),
            made.token.expose().clone(),
        )
    }

    pub fn location(&self) -> Location {
        self.location.clone()
    }

    /// Returns the path of a resource of the first organization.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/headless/v1/organizations/{}{rest}", self.organization)
    }

    /// Begins a request as the first admin.
    pub fn request(&self, method: &str, rest: &str) -> Call<'_> {
        Call {
            app: self,
            method: method.into(),
            path: self.path(rest),
            token: Some(self.admin.clone()),
            headers: HeaderMap::new(),
            body: None,
        }
    }

    /// A read as the first admin.
    pub async fn get(&self, rest: &str) -> Reply {
        self.request("GET", rest).send().await
    }

    /// A write as the first admin with a new key.
    pub async fn write(&self, method: &str, rest: &str, body: Value) -> Reply {
        self.request(method, rest)
            .json(with_trio(body, &fresh_key()))
            .send()
            .await
    }

    /// Makes an account; returns its id and its token.
    pub async fn account(&self, name: &str, role: &str, scopes: &[&str]) -> (String, String) {
        let rights = if scopes.is_empty() {
            json!({ "allOfRole": true })
        } else {
            json!({ "scopes": scopes })
        };
        let mut body = json!({ "name": name, "permissionRole": role });
        body.as_object_mut()
            .unwrap()
            .extend(rights.as_object().unwrap().clone());
        let reply = self.write("POST", "/service-accounts", body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        // The next account is younger, so that lists have an order that a test can name.
        self.clock.advance(Duration::from_millis(1));
        let id = reply.json["serviceAccount"]["id"].as_str().unwrap().to_owned();
        (id, reply.json["token"]["token"].as_str().unwrap().to_owned())
    }

    pub fn advance(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn org(&self) -> OrganizationId {
        OrganizationId::parse(&self.organization).unwrap()
    }
}

/// Returns a key that nobody used.
pub fn fresh_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(
        "test-key-of-some-length-{:08}",
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Adds reason and key to a body.
pub fn with_trio(mut body: Value, key: &str) -> Value {
    body["reason"] = "a test".into();
    body["idempotencyKey"] = key.into();
    body
}

pub struct Call<'a> {
    app: &'a App,
    method: String,
    path: String,
    token: Option<String>,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Call<'_> {
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub fn anonymous(mut self) -> Self {
        self.token = None;
        self
    }

    /// Replaces the whole path.
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, value.parse().unwrap());
        self
    }

    pub fn json(mut self, body: Value) -> Self {
        self.headers
            .entry("content-type")
            .or_insert("application/json".parse().unwrap());
        self.body = Some(body.to_string().into_bytes());
        self
    }

    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.headers
            .entry("content-type")
            .or_insert("application/json".parse().unwrap());
        self.body = Some(body.into());
        self
    }

    pub async fn send(self) -> Reply {
        let mut request = Request::builder().method(self.method.as_str()).uri(&self.path);
        let headers = request.headers_mut().unwrap();
        headers.extend(self.headers);
        if let Some(token) = &self.token {
            headers.append("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let request = request.body(Body::from(self.body.unwrap_or_default())).unwrap();
        let response = self.app.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        let reply = Reply {
            status: parts.status,
            headers: parts.headers,
            json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            bytes,
        };
        let method: Method = self.method.parse().unwrap();
        self.app.contract.check(&method, &self.path, &reply);
        reply
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub json: Value,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or("")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }

    /// Asserts a refusal: status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status.as_u16(), self.code()),
            (status, code),
            "{}",
            self.text()
        );
    }

    /// Asserts success and returns the body.
    #[track_caller]
    pub fn ok(&self) -> &Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text());
        &self.json
    }
}

type Schemas = HashMap<(String, String, String), Arc<jsonschema::Validator>>;

/// The OpenAPI document as a judge of answers.
pub struct Contract {
    document: Value,
    compiled: Mutex<Schemas>,
}

impl Contract {
    pub fn of(document: &Value) -> Self {
        Self {
            document: document.clone(),
            compiled: Mutex::default(),
        }
    }

    fn check(&self, method: &Method, path: &str, reply: &Reply) {
        assert!(
            reply.header("x-request-id").starts_with("req_"),
            "no request id: {reply:?}"
        );
        assert_eq!(reply.header("cache-control"), "no-store");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        if reply.status.as_u16() >= 400 && method != Method::HEAD {
            assert!(
                reply.json["message"].is_string(),
                "not the envelope: {}",
                reply.text()
            );
            assert_eq!(
                reply.json["requestId"].as_str(),
                Some(reply.header("x-request-id"))
            );
        }
        let path = path.split('?').next().unwrap();
        let Some((template, item)) = self.find(path) else {
            return;
        };
        let verb = method.as_str().to_lowercase();
        let Some(operation) = item.get(&verb) else { return };
        let status = reply.status.as_u16().to_string();
        let responses = &operation["responses"];
        let declared = if responses.get(&status).is_some() {
            status
        } else {
            "default".to_owned()
        };
        assert!(
            declared != "default" || reply.status.as_u16() >= 400,
            "undeclared success {}",
            reply.status
        );
        let Some(schema) = responses[&declared].pointer("/content/application~1json/schema") else {
            return;
        };
        let validator = self.validator((template, verb, declared), schema);
        let errors: Vec<String> = validator
            .iter_errors(&reply.json)
            .map(|e| format!("{e} at {}", e.instance_path()))
            .collect();
        assert!(
            errors.is_empty(),
            "{method} {path} {}: {errors:?}\n{}",
            reply.status,
            reply.text()
        );
    }

    fn find(&self, path: &str) -> Option<(String, &Value)> {
        let segments: Vec<&str> = path.split('/').collect();
        let paths = self.document["paths"].as_object().unwrap();
        let fits = |template: &str| {
            let parts: Vec<&str> = template.split('/').collect();
            parts.len() == segments.len()
                && parts
                    .iter()
                    .zip(&segments)
                    .all(|(p, s)| p.starts_with('{') || p == s)
        };
        paths
            .iter()
            .find(|(t, _)| fits(t))
            .map(|(t, item)| (t.clone(), item))
    }

    fn validator(&self, key: (String, String, String), schema: &Value) -> Arc<jsonschema::Validator> {
        let mut compiled = self.compiled.lock().unwrap();
        let build = || {
            let mut root = schema.clone();
            root["components"] = self.document["components"].clone();
            Arc::new(jsonschema::draft202012::new(&root).unwrap())
        };
        compiled.entry(key).or_insert_with(build).clone()
    }
}
