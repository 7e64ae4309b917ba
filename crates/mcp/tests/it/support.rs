//! A server over a real socket, on each engine, and a client that speaks raw HTTP.

use crate::area;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use provost_kernel::auth::{OrganizationId, ScopeSet};
use provost_kernel::credential::Schemes;
use provost_kernel::db::Location;
use provost_kernel::db::testing::migrated;
use provost_kernel::entropy::SeededEntropy;
use provost_kernel::expose::edge::{Edge, EdgeSettings, Tls, serve};
use provost_kernel::kernel::{Extras, Parts, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::supervisor::Supervisor;
use provost_kernel::time::{Clock, ManualClock};
use provost_kernel::token;
use provost_kernel::{Kernel, Timestamp, params};
use provost_mcp::{Argument, Document, Options, Prompt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::{TcpListener, TcpStream};

const START: Timestamp = Timestamp::from_ms(1_795_144_500_000);
pub const REVISION: &str = "2026-07-28";

pub struct App {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<ManualClock>,
    pub address: SocketAddr,
    /// All of an admin's rights in the organization `acme`.
    pub admin: String,
    keys: PathBuf,
    supervisor: Supervisor,
}

/// An answer, read completely.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// Runs a scenario on every engine.
pub fn each<F: Future<Output = ()>>(name: &str, scenario: impl Fn(Arc<App>) -> F) {
    each_with(
        name,
        0,
        &Settings {
            rate_limits: false,
            ..Settings::default()
        },
        scenario,
    );
}

pub fn each_with<F: Future<Output = ()>>(
    name: &str,
    more: usize,
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    run(name, more, &[], settings, scenario);
}

/// Runs a scenario at an endpoint that lists these tools by default.
pub fn each_listing<F: Future<Output = ()>>(
    name: &str,
    default_tools: &'static [&'static str],
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    run(name, 0, default_tools, settings, scenario);
}

fn run<F: Future<Output = ()>>(
    name: &str,
    more: usize,
    default_tools: &'static [&'static str],
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    for store in migrated(name, area::MIGRATIONS, START) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let started = App::start(store.location(), more, default_tools, settings.clone());
            let app = Arc::new(started.await);
            scenario(app.clone()).await;
            app.supervisor.stop(std::time::Duration::from_secs(5)).await;
            app.kernel.stop().await;
            let _ = std::fs::remove_dir_all(&app.keys);
        });
    }
}

fn options(default_tools: &'static [&'static str]) -> Options {
    Options {
        allowed_hosts: vec!["127.0.0.1".into(), "provost.test".into()],
        allowed_origins: vec!["https://console.test".into()],
        documents: vec![Document {
            uri: "provost://guide".into(),
            name: "guide".into(),
            title: "The guide".into(),
            media_type: "text/markdown".into(),
            text: provost_mcp::Text::Static("# Guide"),
        }],
        prompts: vec![Prompt {
            name: "explain".into(),
            title: "Explain a toolset".into(),
            description: "Asks what a toolset is for.".into(),
            arguments: vec![
                Argument {
                    name: "toolset".into(),
                    description: "Which.".into(),
                    required: true,
                    proposals: vec!["audit".into(), "policies".into()],
                },
                Argument {
                    name: "tone".into(),
                    description: "How.".into(),
                    required: false,
                    proposals: Vec::new(),
                },
            ],
            render: |arguments: &BTreeMap<String, String>| format!("What is {} for?", arguments["toolset"]),
        }],
        server_name: "provost".into(),
        server_title: "Provost".into(),
        server_version: "0.1.0".into(),
        instructions: "Ask before you change.".into(),
        default_tools,
    }
}

impl App {
    async fn start(
        location: Location,
        more: usize,
        default_tools: &'static [&'static str],
        settings: Settings,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        area::install_scopes();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let keys_dir = std::env::temp_dir().join(format!("provost-mcp-keys-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&keys_dir);
        let clock = Arc::new(ManualClock::new(START));
        let entropy = Arc::new(SeededEntropy::new(number));
        let keys = Keys::create(&keys_dir, START, &*entropy).unwrap();
        let kernel = Kernel::start(Parts {
            rights: &[],
            endings: provost_kernel::ends::Endings::NONE,
            registry: area::registry(more),
            schemes: Schemes {
                own: &[&area::Tokens],
                delegated: Some(Box::leak(Box::new(area::SessionScheme::default()))),
            },
            keys,
            location,
            clock: clock.clone(),
            entropy: entropy.clone(),
            settings,
            extras: Extras::default(),
        })
        .unwrap();
        let edge_settings = EdgeSettings::default();
        let edge = Edge::new(edge_settings.clone(), clock.clone(), entropy);
        let router = edge.wrap(provost_mcp::service(kernel.clone(), options(default_tools)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, supervisor) = (listener.local_addr().unwrap(), Supervisor::new());
        let stop = supervisor.token();
        supervisor.spawn("server", async move {
            serve(listener, router, &edge_settings, Tls::Off, stop)
                .await
                .unwrap();
        });
        let mut app = Self {
            kernel,
            clock,
            address,
            admin: String::new(),
            keys: keys_dir,
            supervisor,
        };
        app.admin = app
            .token("acme", "root", "admin", &ScopeSet::all().to_list())
            .await;
        app
    }

    /// Makes a token. Its id is the principal's.
    pub async fn token(&self, organization: &str, principal: &str, role: &str, scopes: &[&str]) -> String {
        let minted = token::mint(area::FORM, &mut self.kernel.rng());
        let (pepper, mac) = self.kernel.keys.token_mac_current(minted.token.expose());
        let row = (
            minted.lookup_id.clone(),
            principal.to_owned(),
            role.to_owned(),
            scopes.join(" "),
            mac,
            pepper.clone(),
        );
        let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            let (org, (lookup, principal, role, scopes, mac, pepper)) = (ctx.org(), &row);
            ctx.execute(
                &area::ADD_TOKEN,
                params![
                    org,
                    principal.as_str(),
                    lookup.as_str(),
                    principal.as_str(),
                    role.as_str(),
                    scopes.as_str(),
                    mac.as_slice(),
                    pepper.as_str()
                ],
            )?;
            Ok(())
        };
        let organization = OrganizationId::parse(organization).unwrap();
        self.kernel.system(organization, None, run).await.unwrap();
        minted.token.expose().clone()
    }

    pub async fn revoke(&self, organization: &str, principal: &'static str) {
        let now = self.clock.now();
        let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            let org = ctx.org();
            ctx.execute(&area::REVOKE, params![org, principal, now])?;
            Ok(())
        };
        self.kernel
            .system(OrganizationId::parse(organization).unwrap(), None, run)
            .await
            .unwrap();
    }

    /// The clients that the sessions of a token name.
    pub async fn clients(&self, principal: &'static str) -> Vec<(String, Option<String>)> {
        let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
            tx.query(&area::SESSIONS, params!["acme", principal], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        };
        self.kernel.read_system(read).await.unwrap()
    }

    /// Who was refused what, as the audit log has it.
    pub async fn denied(&self) -> Vec<(String, String)> {
        let read = |tx: &mut provost_kernel::db::Tx<'_>| {
            tx.query(&area::DENIED, params!["acme"], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        };
        self.kernel.read_system(read).await.unwrap()
    }

    /// A request that is well formed; a test changes what it is about.
    pub fn request(&self, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        Request::post("/mcp")
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {}", self.admin))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(body.into()))
            .unwrap()
    }

    /// A request of the newest revision, with everything that it wants said twice.
    pub fn modern(&self, method: &str, mut params: Value) -> Request<Full<Bytes>> {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = REVISION.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "raw", "version": "1" });
        let name = params
            .get("name")
            .or_else(|| params.get("uri"))
            .and_then(Value::as_str)
            .map(str::to_owned);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut request = self.request(body);
        let headers = request.headers_mut();
        headers.insert("mcp-protocol-version", REVISION.parse().unwrap());
        headers.insert("mcp-method", method.parse().unwrap());
        if let Some(name) = name {
            headers.insert("mcp-name", name.parse().unwrap());
        }
        request
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        send(self.address, request).await
    }

    /// Calls a tool as somebody; returns the result.
    pub async fn call(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let request = self.modern("tools/call", json!({ "name": tool, "arguments": arguments }));
        let answer = self.send(by(token, request)).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let answer = answer.json();
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Returns the names of the tools that somebody sees.
    pub async fn names(&self, token: &str, target: &str) -> Vec<String> {
        let mut request = by(token, self.modern("tools/list", json!({})));
        *request.uri_mut() = target.parse().unwrap();
        let answer = self.send(request).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Returns a request as somebody sends it.
pub fn by(token: &str, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let value = format!("Bearer {token}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

pub async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let connection = async { connection.await.ok() };
    let exchange = async {
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        drop(sender);
        Answer {
            status: parts.status,
            headers: parts.headers,
            bytes,
        }
    };
    let (answer, _) = tokio::join!(exchange, connection);
    answer
}
