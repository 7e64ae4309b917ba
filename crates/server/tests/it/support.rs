//! An application in a test: a store of its own, a clock that moves by hand, seeded entropy, and a client
//! whose every answer is checked against the OpenAPI document.

use crate::areas::dpop;
use crate::areas::fleet::Machines;
use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use provost_areas_access::oauth;
use provost_areas_policy::history::SegmentPlace;
use provost_kernel::area::Areas;
use provost_kernel::auth::{OrganizationId, ScopeSet};
use provost_kernel::db::testing::{TestStore, migrated, migrated_file};
use provost_kernel::db::{Location, Tx};
use provost_kernel::entropy::{Entropy, SeededEntropy, SystemEntropy, UnitRng};
use provost_kernel::expose::edge::{self, Edge, Tls};
use provost_kernel::expose::http::BodyLimits;
use provost_kernel::expose::{mcp, openapi};
use provost_kernel::kernel::{Extras, Parts, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::operation::{Entry, Registry};
use provost_kernel::time::{Clock, ManualClock};
use provost_kernel::{Kernel, Timestamp};
use provost_server::app;
use provost_server::areas::ALL;
use provost_server::proofs::entries;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// The product's own: what is tried is what runs, and 40 % more of it in the same time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// 2026-11-20T03:15:00.000Z
pub const START: Timestamp = Timestamp::from_ms(1_795_144_500_000);

const READING: BodyLimits = BodyLimits {
    max_body_bytes: 256 * 1024,
    timeout: Duration::from_secs(10),
};

pub struct App {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<ManualClock>,
    pub router: Router,
    pub organization: String,
    pub admin_id: String,
    pub admin: String,
    pub keys_dir: PathBuf,
    pub contract: Arc<Contract>,
    pub location: Location,
    /// See [`App::machine`].
    pub machine: tokio::sync::OnceCell<String>,
    /// See [`App::person`].
    pub person: tokio::sync::Mutex<Option<(Timestamp, String)>>,
    /// The machines that enrolled, and the keys that belong beside their tokens.
    pub machines: Arc<Machines>,
}

/// Runs a scenario on every engine.
pub fn each<F: Future<Output = ()>>(name: &str, scenario: impl Fn(Arc<App>) -> F) {
    each_with(
        name,
        &Settings {
            rate_limits: false,
            ..Settings::default()
        },
        scenario,
    );
}

/// Runs a scenario of a program of these areas on SQLite, and at night on every engine: for what no engine makes a difference
/// to.
pub fn once_of<F: Future<Output = ()>>(areas: &'static Areas, name: &str, scenario: impl Fn(Arc<App>) -> F) {
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    let stores = if at_night() {
        migrated(name, areas.migrations(), START)
    } else {
        vec![migrated_file(name, areas.migrations(), START)]
    };
    on(areas, stores, &settings, scenario);
}

/// Runs a scenario on every engine with settings of its own.
pub fn each_with<F: Future<Output = ()>>(name: &str, settings: &Settings, scenario: impl Fn(Arc<App>) -> F) {
    on(&ALL, migrated(name, ALL.migrations(), START), settings, scenario);
}

/// Runs a scenario of a program of these areas on every engine.
pub fn each_of<F: Future<Output = ()>>(areas: &'static Areas, name: &str, scenario: impl Fn(Arc<App>) -> F) {
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    on(
        areas,
        migrated(name, areas.migrations(), START),
        &settings,
        scenario,
    );
}

fn on<F: Future<Output = ()>>(
    areas: &'static Areas,
    stores: Vec<TestStore>,
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    for store in stores {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let app = Arc::new(App::start_of(areas, store.location(), settings.clone()).await);
            scenario(app.clone()).await;
            app.agrees_with_its_entries().await;
            app.tells_what_is_declared().await;
            app.did_what_is_declared().await;
            app.kernel.stop().await;
            let _ = std::fs::remove_dir_all(&app.keys_dir);
        });
    }
}

impl App {
    /// Expects that each row is what the newest entry about it says (PF-7), as far as the store can still be read.
    async fn agrees_with_its_entries(&self) {
        let kernel = self.kernel.clone();
        let found = self
            .kernel
            .read_system(move |tx| entries::every_contradiction(kernel.areas(), tx, &kernel.keys))
            .await;
        if let Ok(found) = found {
            assert_eq!(found, []);
        }
    }

    /// Expects that each event is of a declared kind and has the shape of its data (EV-3), as far as the store can still be
    /// read. A test's own kinds begin with `test.`.
    async fn tells_what_is_declared(&self) {
        let told = |tx: &mut Tx<'_>| tx.query(&TOLD, &[], |row| Ok((row.get(0)?, row.get(1)?)));
        let told: Vec<(String, String)> = self.kernel.read_system(told).await.unwrap_or_default();
        for (kind, data) in told.iter().filter(|(kind, _)| !kind.starts_with("test.")) {
            self.contract.check_event(kind, data);
        }
    }

    /// Expects that each act in the audit log is an operation or declared by an area, as far as the store can still be read: a
    /// list of the log asks about the names of others. A test's own acts say so in their names.
    async fn did_what_is_declared(&self) {
        let done = |tx: &mut Tx<'_>| tx.query(&DONE, &[], |row| row.get::<String>(0));
        let done = self.kernel.read_system(done).await.unwrap_or_default();
        let fences = self.kernel.registry.fences();
        for act in done {
            let is_known = fences.acts().any(|(known, _)| known == act);
            let is_a_tests = act.starts_with("test") || act.ends_with("InTest");
            assert!(is_known || is_a_tests, "no area declares the act {act}");
        }
    }

    pub async fn start(location: Location, settings: Settings) -> Self {
        Self::start_of(&ALL, location, settings).await
    }

    /// Starts a program of these areas on a store without records.
    pub async fn start_of(areas: &'static Areas, location: Location, settings: Settings) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // The operations are the same in all stores of this process.
        static CONTRACT: OnceLock<Arc<Contract>> = OnceLock::new();
        let unique = format!(
            "provost-test-keys-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let keys_dir = std::env::temp_dir().join(unique);
        // A killed run may have left one under a number that came round again.
        let _ = std::fs::remove_dir_all(&keys_dir);
        let clock = Arc::new(ManualClock::new(START));
        let entropy = Arc::new(SeededEntropy::new(NEXT.load(Ordering::Relaxed)));
        let keys = Keys::create(&keys_dir, START, &*entropy).unwrap();
        let installation = app::Installation {
            areas,
            extras: Extras::default().with(segments(&keys_dir)),
            location: location.clone(),
            keys,
            clock: clock.clone(),
            entropy: entropy.clone(),
            settings,
        };
        let kernel = app::start(installation).unwrap();
        let made = app::bootstrap(&kernel, "Acme", None).await.unwrap();
        // The first account is the oldest, so that lists have an order that a test can name.
        clock.advance(Duration::from_millis(1));
        let edge = Edge::new(app::edge_settings(), clock.clone(), entropy);
        let router = edge.wrap(app::router(&kernel, READING));
        let judged = || Arc::new(Contract::of(&kernel.registry));
        let contract = if std::ptr::eq(areas, &raw const ALL) {
            CONTRACT.get_or_init(judged).clone()
        } else {
            judged()
        };
        Self {
            machine: tokio::sync::OnceCell::new(),
            person: tokio::sync::Mutex::default(),
            machines: Arc::default(),
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

    /// Gives the store its id, as a server does when it starts.
    pub async fn named(&self) {
        let given = provost_areas_platform::audit::verify_start(
            &self.kernel,
            provost_areas_platform::audit::ForeignStorePolicy::Refuse,
        );
        given.await.unwrap();
    }

    /// Makes one more organization; returns its key and its admin's token.
    pub async fn other_organization(&self, name: &str) -> (String, String) {
        let made = app::bootstrap(&self.kernel, name, None).await.unwrap();
        (
            made.organization_id.as_str().to_owned(),
            made.token.expose().clone(),
        )
    }

    /// Returns the same application as the admin of another organization sees it.
    pub fn view_of(&self, organization: String, admin: String) -> Self {
        Self {
            machine: tokio::sync::OnceCell::new(),
            person: tokio::sync::Mutex::default(),
            machines: self.machines.clone(),
            kernel: self.kernel.clone(),
            clock: self.clock.clone(),
            router: self.router.clone(),
            organization,
            admin_id: String::new(),
            admin,
            keys_dir: self.keys_dir.clone(),
            contract: self.contract.clone(),
            location: self.location.clone(),
        }
    }

    /// Starts one more server on the same store, with more operations than the product's.
    pub fn beside(
        &self,
        more: Vec<Entry>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        location: Location,
    ) -> Self {
        let entropy = Arc::new(SystemEntropy);
        let keys = Keys::open(&self.keys_dir).unwrap();
        let extras = Extras::default()
            .with(segments(&self.keys_dir))
            .with(self.kernel.areas());
        // Without it no machine is let in: its token goes with a proof, which somebody has to check.
        let extras = oauth::prepare(extras, &keys, &clock, &settings).unwrap();
        let kernel = Kernel::start(Parts {
            extras,
            rights: self.kernel.rights,
            endings: self.kernel.endings.clone(),
            registry: app::registry().unwrap().with(more),
            schemes: self.kernel.areas().schemes(),
            keys,
            location,
            clock: clock.clone(),
            entropy: entropy.clone(),
            settings,
        });
        let kernel = kernel.unwrap();
        let edge = Edge::new(app::edge_settings(), clock, entropy);
        let router = edge.wrap(app::router(&kernel, READING));
        Self {
            kernel,
            router,
            admin_id: self.admin_id.clone(),
            ..self.view_of(self.organization.clone(), self.admin.clone())
        }
    }

    /// Starts one more server on the same store, with the keys that are there now and with declarations.
    ///
    /// Errors: what the start refuses.
    pub fn restarted(&self, extras: Extras) -> provost_kernel::Result<Self> {
        self.started(self.location.clone(), extras)
    }

    /// Starts one more server on the same store, which is reached otherwise.
    ///
    /// Errors: what the start refuses.
    pub fn restarted_at(&self, location: Location) -> provost_kernel::Result<Self> {
        self.started(location, Extras::default())
    }

    /// Starts one more server on the same store, which clients reach under another address.
    ///
    /// Errors: what the start refuses.
    pub fn restarted_as(&self, public_url: &str) -> provost_kernel::Result<Self> {
        let settings = Settings {
            public_url: public_url.into(),
            ..self.kernel.settings.clone()
        };
        self.started_with(self.location.clone(), Extras::default(), settings)
    }

    fn started(&self, location: Location, extras: Extras) -> provost_kernel::Result<Self> {
        self.started_with(location, extras, self.kernel.settings.clone())
    }

    fn started_with(
        &self,
        location: Location,
        extras: Extras,
        settings: Settings,
    ) -> provost_kernel::Result<Self> {
        let entropy = Arc::new(SystemEntropy);
        let kernel = app::start(app::Installation {
            areas: &ALL,
            location: location.clone(),
            keys: Keys::open(&self.keys_dir)?,
            clock: self.clock.clone(),
            entropy: entropy.clone(),
            settings,
            extras,
        })?;
        let edge = Edge::new(app::edge_settings(), self.clock.clone(), entropy);
        let router = edge.wrap(app::router(&kernel, READING));
        Ok(Self {
            kernel,
            router,
            admin_id: self.admin_id.clone(),
            location,
            ..self.view_of(self.organization.clone(), self.admin.clone())
        })
    }

    pub fn keys_dir(&self) -> &Path {
        &self.keys_dir
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
            by: None,
            headers: HeaderMap::new(),
            body: None,
            peer: None,
        }
    }

    /// The token of an account that machines pull and report with, made when it is first asked for: no admin has that scope
    /// (ADR 0046).
    pub async fn machine(&self) -> String {
        let make = || async {
            let body = json!({
                "name": format!("machines {}", fresh_key()), "permissionRole": "auditor", "expiresInSeconds": 31_536_000,
                "scopes": ["managed_config:pull", "managed_config:read"],
            });
            let reply = self.write("POST", "/service-accounts", body).await;
            reply.ok()["token"]["token"].as_str().unwrap().to_owned()
        };
        self.machine.get_or_init(make).await.clone()
    }

    /// The token of an admin of the directory who signs in, anew where the last one is of ten minutes before: service accounts do not do
    /// everything.
    pub async fn person(&self) -> String {
        let (mut known, now) = (self.person.lock().await, self.kernel.latest());
        if let Some((since, token)) = &*known
            && now < since.plus_secs(600)
        {
            return token.clone();
        }
        let token = crate::person(self).await;
        *known = Some((now, token.clone()));
        token
    }

    /// Answers a request as it stands; the answer is checked against the OpenAPI document.
    pub async fn answer(&self, request: Request<Body>) -> Reply {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        let reply = Reply {
            status: parts.status,
            headers: parts.headers,
            json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            bytes,
        };
        self.contract.check(&method, &path, &reply);
        reply
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
        // Accounts differ in age, so that lists have an order that a test can name.
        self.clock.advance(Duration::from_millis(1));
        let reply = self.write("POST", "/service-accounts", body).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        self.clock.advance(Duration::from_millis(1));
        let id = reply.json["serviceAccount"]["id"].as_str().unwrap().to_owned();
        (id, reply.json["token"]["token"].as_str().unwrap().to_owned())
    }

    pub fn advance(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    /// As [`App::advance`], in milliseconds.
    pub fn advance_ms(&self, ms: i64) {
        self.clock.advance(Duration::from_millis(ms.try_into().unwrap()));
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn org(&self) -> OrganizationId {
        OrganizationId::parse(&self.organization).unwrap()
    }
}

/// Returns the place of the segments of an application: a folder beside its keys, which goes with them.
pub fn segments(keys_dir: &Path) -> SegmentPlace {
    SegmentPlace::folder(&keys_dir.join("history")).unwrap()
}

thread_local! {
    /// The number of this thread, and of its next key. A run on one thread is repeated from the same numbers.
    pub static KEYS: Cell<(u64, u64)> = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Cell::new((NEXT.fetch_add(1, Ordering::Relaxed), 0))
    };
}

/// Returns a key that nobody used.
pub fn fresh_key() -> String {
    let (thread, next) = KEYS.get();
    KEYS.set((thread, next + 1));
    format!("test-key-of-some-length-{thread:03}{next:05}")
}

/// Returns the names of the scopes of the product.
pub fn every_scope() -> Vec<&'static str> {
    ALL.install_scopes().unwrap();
    ScopeSet::all().to_list()
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
    /// Who calls, where that is found or made when the call is sent.
    by: Option<LateCaller>,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    peer: Option<SocketAddr>,
}

/// A caller that is found or made when a call is sent.
enum LateCaller {
    /// As [`App::machine`].
    Machine,
    /// As [`App::person`].
    Person,
    /// A principal without a role: the one of this id, or of none, another of its kind.
    OfKind(&'static str, Option<String>),
}

impl Call<'_> {
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self.by = None;
        self
    }

    pub fn anonymous(mut self) -> Self {
        self.token = None;
        self.by = None;
        self
    }

    /// Calls as [`App::machine`].
    pub fn by_machine(mut self) -> Self {
        self.by = Some(LateCaller::Machine);
        self
    }

    /// Calls as [`App::person`].
    pub fn by_person(mut self) -> Self {
        self.by = Some(LateCaller::Person);
        self
    }

    /// Calls as a principal of a kind that has no role: the one of this id, or another where it is none of the organization's.
    pub fn by_kind(mut self, kind: &'static str, id: Option<String>) -> Self {
        self.by = Some(LateCaller::OfKind(kind, id));
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

    /// Has it come over a connection from there.
    pub fn from(mut self, address: &str) -> Self {
        self.peer = Some(SocketAddr::new(address.parse().unwrap(), 4_711));
        self
    }

    /// Takes a header away.
    pub fn without(mut self, name: &'static str) -> Self {
        self.headers.remove(name);
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers make the body in place")]
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

    /// Sends content that is not JSON.
    pub fn content(mut self, media_type: &'static str, body: Vec<u8>) -> Self {
        self.headers.insert("content-type", media_type.parse().unwrap());
        self.body = Some(body);
        self
    }

    pub async fn send(mut self) -> Reply {
        // In boxes, because this is how they are made.
        match self.by.take() {
            None => {}
            Some(LateCaller::Machine) => self.token = Some(Box::pin(self.app.machine()).await),
            Some(LateCaller::Person) => self.token = Some(Box::pin(self.app.person()).await),
            Some(LateCaller::OfKind(kind, id)) => {
                let token = Box::pin(crate::areas::fleet::caller(self.app, kind, id.as_deref()));
                self.token = Some(token.await);
            }
        }
        let mut request = Request::builder().method(self.method.as_str()).uri(&self.path);
        let headers = request.headers_mut().unwrap();
        headers.extend(self.headers);
        if let Some(token) = &self.token {
            headers.append("authorization", format!("Bearer {token}").parse().unwrap());
            // A machine proves its key at each request, unless the test does so itself.
            if let Some(key) = self.app.machines.key(token)
                && !headers.contains_key("dpop")
            {
                let url = format!("{}{}", self.app.kernel.settings.public_url, path_of(&self.path));
                let now = self.app.now().as_ms() / 1000;
                let proof = dpop::proof_of(&self.method, &key, token, now, &fresh_key(), &url);
                headers.append("dpop", proof.parse().unwrap());
            }
        }
        if let Some(peer) = self.peer {
            request = request.extension(edge::Peer(peer));
        }
        let request = request.body(Body::from(self.body.unwrap_or_default())).unwrap();
        self.app.answer(request).await
    }
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or(target)
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

/// The OpenAPI document, and the tools that are made of the same operations, as judges of answers.
pub struct Contract {
    document: Value,
    /// The operations by their ids: what a tool says of an answer is made when one is checked.
    operations: HashMap<&'static str, Entry>,
    compiled: Mutex<Schemas>,
}

impl Contract {
    pub fn of(registry: &Registry) -> Self {
        let operations = registry.entries().iter();
        Self {
            document: openapi::document(registry),
            operations: operations.map(|entry| (entry.meta.id, entry.clone())).collect(),
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
        // An answer in another form is told by its media type, and is no JSON.
        let media_type = reply
            .headers
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        if media_type == Some("application/x-protobuf") {
            return;
        }
        // INVARIANT MT-2: clients of tools check structured content.
        let id = operation["operationId"].as_str().unwrap();
        // That a second person was asked is told as a refusal.
        let asks = |tool: &&Entry| tool.meta.second_person.is_some() && reply.status.as_u16() == 202;
        let tool = self.operations.get(id).filter(|_| reply.status.is_success());
        let tool = tool.filter(|tool| !asks(tool));
        if let Some(tool) = tool {
            let key = (id.to_owned(), "tool".to_owned(), declared.clone());
            // A tool without one says nothing of its answers.
            let told = || match mcp::tool(tool)["outputSchema"].take() {
                Value::Null => json!({}),
                schema => schema,
            };
            fits(&self.validator(key, told), method, path, reply);
        }
        fits(
            &self.validator((template, verb, declared), || schema.clone()),
            method,
            path,
            reply,
        );
    }

    /// Expects that the document tells of this kind of event, and that the stored data have the shape that it says.
    fn check_event(&self, kind: &str, data: &str) {
        let item = &self.document["webhooks"][kind];
        let schema =
            &item["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["data"];
        assert!(schema.is_object(), "nobody declares the kind {kind}");
        let mut data: Value = serde_json::from_str(data).unwrap();
        data["sequence"] = 1.into();
        let key = (kind.to_owned(), "event".to_owned(), String::new());
        let faults: Vec<String> = self
            .validator(key, || schema.clone())
            .iter_errors(&data)
            .map(|fault| format!("{fault} at {}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{kind}: {faults:?}\n{data}");
        let members = schema["properties"].as_object().unwrap();
        let known = data
            .as_object()
            .unwrap()
            .keys()
            .all(|name| members.contains_key(name));
        assert!(known, "{kind} says more than it declares: {data}");
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

    fn validator(
        &self,
        key: (String, String, String),
        schema: impl FnOnce() -> Value,
    ) -> Arc<jsonschema::Validator> {
        let mut compiled = self.compiled.lock().unwrap();
        let build = || {
            let mut root = schema();
            root["components"] = self.document["components"].clone();
            Arc::new(jsonschema::draft202012::new(&root).unwrap())
        };
        compiled.entry(key).or_insert_with(build).clone()
    }
}

fn fits(validator: &jsonschema::Validator, method: &Method, path: &str, reply: &Reply) {
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

/// Reproducible dice. The seed is printed; `PROVOST_TEST_SEED` repeats a run.
pub struct Dice(UnitRng);

impl Dice {
    pub fn new(name: &str) -> Self {
        Self::of(seed(name))
    }

    /// The dice that belong to a seed.
    pub fn of(seed: u64) -> Self {
        Self(UnitRng::new(SeededEntropy::new(seed).seed()))
    }

    pub fn below(&mut self, count: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        usize::try_from(u64::from_le_bytes(bytes) % count as u64).unwrap()
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Returns the seed of a run and prints it: `PROVOST_TEST_SEED`, else a fresh one.
pub fn seed(name: &str) -> u64 {
    let mut fresh = [0; 8];
    fresh.copy_from_slice(&SystemEntropy.seed()[..8]);
    let seed = number("PROVOST_TEST_SEED", u64::from_le_bytes(fresh) >> 1);
    eprintln!("{name}: PROVOST_TEST_SEED={seed}");
    seed
}

/// Returns how much a test does: a number of the environment, else `default`.
#[expect(
    clippy::disallowed_methods,
    reason = "how much a test does is no configuration of the product"
)]
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Says whether the run has the night for it (`PROVOST_TEST_NIGHTLY=1`), and not only the time of a change.
pub fn at_night() -> bool {
    number("PROVOST_TEST_NIGHTLY", 0) == 1
}

/// How much a test does at a change and at night, unless the variable of this name says otherwise.
pub fn workload(name: &str, at_a_change: u64, at_night: u64) -> u64 {
    number(name, if self::at_night() { at_night } else { at_a_change })
}

provost_kernel::statements! {
    /// The chain of an organization, or what comes after a place of it.
    ENTRIES = "SELECT seq, entry FROM audit_entries WHERE organization_id = ?1 AND seq > ?2 ORDER BY seq";
    /// What was done, by every organization.
    DONE = unscoped("a test looks at all of it") "SELECT DISTINCT action FROM audit_entries ORDER BY action";
    /// The events of every organization.
    TOLD = unscoped("a test looks at all of them") "SELECT type, data FROM outbox ORDER BY organization_id, sequence";
    /// The events of an organization after a sequence.
    EVENTS = "SELECT type, data, sequence FROM outbox WHERE organization_id = ?1 AND sequence > ?2 ORDER BY sequence";
}

impl App {
    /// Returns the audit entries of a chain behind a place, as the store holds them.
    pub async fn entries(&self, organization: &str, after: i64) -> Vec<Value> {
        let organization = organization.to_owned();
        let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
            tx.query(
                &ENTRIES,
                provost_kernel::params![organization.as_str(), after],
                |row| Ok(serde_json::from_str(row.str(1)?).unwrap()),
            )
        };
        self.kernel.read_system(read).await.unwrap()
    }

    /// Returns the events of the first organization behind a sequence.
    pub async fn events(&self, after: i64) -> Vec<(String, Value)> {
        let organization = self.organization.clone();
        let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
            tx.query(
                &EVENTS,
                provost_kernel::params![organization.as_str(), after],
                |row| Ok((row.get(0)?, serde_json::from_str(row.str(1)?).unwrap())),
            )
        };
        self.kernel.read_system(read).await.unwrap()
    }

    /// Waits until the notes and units that were accepted so far are written.
    pub async fn settle(&self) {
        self.kernel.system(self.org(), None, |_| Ok(())).await.unwrap();
        self.kernel
            .system(OrganizationId::installation(), None, |_| Ok(()))
            .await
            .unwrap();
    }

    /// One account as its reader sees it.
    pub async fn seen(&self, id: &str) -> Value {
        self.get(&format!("/service-accounts/{id}")).await.ok()["serviceAccount"].clone()
    }

    /// Says with which status a token is answered on an operation that every principal may call.
    pub async fn used(&self, token: &str) -> (u16, String) {
        let reply = self.request("GET", "/capabilities").token(token).send().await;
        (reply.status.as_u16(), reply.code().to_owned())
    }

    /// Deletes with a new key.
    pub async fn delete(&self, rest: &str) -> Reply {
        self.request("DELETE", rest)
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "a test")
            .header("x-confirm", "true")
            .send()
            .await
    }

    /// Sets the automation settings' group `tokens`.
    pub async fn token_settings(&self, tokens: Value) {
        let body = json!({ "tokens": tokens });
        self.write("PATCH", "/automation/settings", body).await.ok();
    }

    /// Serves the application on a real socket until the returned value is stopped.
    pub async fn serve(&self) -> TestServer {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (router, token) = (self.router.clone(), stop.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let settings = app::edge_settings();
            edge::serve(listener, router, &settings, Tls::Off, token)
                .await
                .unwrap();
        });
        TestServer { address, stop, task }
    }

    /// Returns the bytes of a request as they go over a socket.
    pub fn on_the_wire(&self, method: &str, rest: &str, token: &str, body: &Value) -> Vec<u8> {
        let (path, body) = (self.path(rest), body.to_string());
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: provost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// The application behind a socket.
pub struct TestServer {
    pub address: SocketAddr,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl TestServer {
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.task.join_next().await.unwrap().unwrap();
    }
}

/// An answer as it came over a socket, whole or cut.
pub struct RawReply {
    pub bytes: Vec<u8>,
}

impl RawReply {
    fn parts(&self) -> Option<(String, &[u8])> {
        let end = self.bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&self.bytes[..end]).to_lowercase();
        Some((head, &self.bytes[end + 4..]))
    }

    /// The status and the body, if the answer is complete.
    pub fn whole(&self) -> Option<(u16, &[u8])> {
        let (head, body) = self.parts()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        if status == 204 {
            return body.is_empty().then_some((status, body));
        }
        let length = head.split("content-length: ").nth(1)?.lines().next()?;
        (body.len() == length.trim().parse::<usize>().ok()?).then_some((status, body))
    }

    /// The part of the body that came.
    pub fn body(&self) -> &[u8] {
        self.parts().map_or(&[], |(_, body)| body)
    }

    #[track_caller]
    pub fn json(&self) -> (u16, Value) {
        let (status, body) = self.whole().unwrap();
        (status, serde_json::from_slice(body).unwrap_or(Value::Null))
    }
}

/// Sends bytes over a new connection and reads to its end.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> RawReply {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut may end with an error; what came before it counts.
    let _ = stream.read_to_end(&mut bytes).await;
    RawReply { bytes }
}

/// Runs a future for so many polls and drops it then.
pub async fn cut_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        let polled = future.as_mut().poll(context).map(Some);
        if polled.is_pending() && left == 0 {
            context.waker().wake_by_ref();
        }
        polled
    })
    .await
}
