//! Gateways of others that stand before the same server and pass its tools on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::load::Script;
use super::{TOOL, with_mcp_headers};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::product::{self, Bootstrap, Server};
use crate::{clock, process, python};

const MCP_PROXY: &str = "0.6.0";
pub const VERSIONS: &str = "mcp-proxy 0.6.0 (crates.io), ContextForge 1.0.7.post20260921 (PyPI, \
                            mcp-contextforge-gateway; one process); rate limits off, logs of errors alone";

/// A running gateway of somebody else; killed when dropped.
pub struct Peer {
    pub name: &'static str,
    pub address: SocketAddr,
    /// What the tool is called there.
    pub tool: String,
    path: &'static str,
    token: Option<String>,
    process: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Installs and starts both before the server's toolset of service accounts.
pub fn start(server: &Server, bootstrap: &Bootstrap, folder: &Path) -> Outcome<Vec<Peer>> {
    let url = format!("http://{}/mcp?toolsets=service_accounts", server.address);
    Ok(vec![
        mcp_proxy(&url, bootstrap, folder)?,
        context_forge(&url, bootstrap, folder)?,
    ])
}

impl Peer {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The messages as one client sends them: after its handshake, with the session that it was given, if any.
    pub fn script(&self, messages: &[Value]) -> Outcome<Script> {
        let session = self.open()?;
        let requests = messages.iter().map(|message| {
            let mut request = self.request(message);
            request
                .headers
                .extend(session.clone().map(|session| ("Mcp-Session-Id", session)));
            request.bytes()
        });
        Ok(Script::new(requests))
    }

    fn request(&self, message: &Value) -> Request {
        with_mcp_headers(Request {
            token: self.token.clone(),
            ..Request::new("POST", self.path, "")
        })
        .with_body(message.clone())
    }

    /// Opens a session and returns its name, if the gateway keeps any.
    fn open(&self) -> Outcome<Option<String>> {
        let params = json!({
            "protocolVersion": super::REVISION, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = self.send(&self.request(&hello))?;
        let session = answer.session;
        let mut ready = self.request(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        ready
            .headers
            .extend(session.clone().map(|session| ("Mcp-Session-Id", session)));
        self.send(&ready)?;
        Ok(session)
    }

    fn send(&self, request: &Request) -> Outcome<Answer> {
        let answer = Connection::new(self.address)
            .send(request)
            .map_err(|lost| Failure::new(format!("{} does not answer: {}", self.name, lost.why)))?;
        if answer.is_success() {
            Ok(answer)
        } else {
            Err(Failure::new(format!(
                "{} answers {}",
                self.name,
                answer.summary()
            )))
        }
    }

    /// Waits until a path is answered with a success.
    fn wait_for(&self, path: &str) -> Outcome {
        let request = Request {
            token: None,
            ..Request::get(path, "")
        };
        let is_there = || {
            Connection::new(self.address)
                .send(&request)
                .is_ok_and(|answer| answer.is_success())
        };
        if clock::poll_until(Duration::from_mins(2), Duration::from_millis(100), is_there) {
            Ok(())
        } else {
            Err(Failure::new(format!("{} does not come up", self.name)))
        }
    }
}

fn launch(command: &mut Command, log: &Path) -> Outcome<Child> {
    let log = std::fs::File::create(log).context("cannot create a gateway's log")?;
    let errors = log.try_clone().context("cannot share a gateway's log")?;
    command
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .context("cannot start a gateway")
}

fn mcp_proxy(url: &str, bootstrap: &Bootstrap, folder: &Path) -> Outcome<Peer> {
    let program = install_mcp_proxy()?;
    let address = product::free_address()?;
    let settings = folder.join("mcp-proxy.toml");
    let text = format!(
        "[proxy]\nname = \"bench\"\nseparator = \"_\"\n[proxy.listen]\nhost = \"{}\"\nport = {}\n\
         [[backends]]\nname = \"provost\"\ntransport = \"http\"\nurl = \"{url}\"\nbearer_token = \"{}\"\n",
        address.ip(),
        address.port(),
        bootstrap.token
    );
    std::fs::write(&settings, text).context("cannot write the settings of mcp-proxy")?;
    let mut command = Command::new(program);
    let process = launch(
        // It logs every message otherwise.
        command.arg("--config").arg(settings).env("RUST_LOG", "error"),
        &folder.join("mcp-proxy.log"),
    )?;
    let peer = Peer {
        name: "mcp-proxy",
        address,
        tool: format!("provost_{TOOL}"),
        path: "/",
        token: None,
        process,
    };
    peer.wait_for("/health")?;
    Ok(peer)
}

/// Builds the gateway from crates.io into the build folder, once.
fn install_mcp_proxy() -> Outcome<PathBuf> {
    let root = process::target().join("tools/mcp-proxy");
    let program = root.join("bin/mcp-proxy");
    if !program.is_file() {
        eprintln!("building mcp-proxy {MCP_PROXY} into {}", root.display());
        let mut install = process::cargo();
        install.args([
            "install",
            "mcp-proxy",
            "--version",
            MCP_PROXY,
            "--locked",
            "--no-default-features",
        ]);
        process::output(install.arg("--root").arg(&root))?;
    }
    Ok(program)
}

fn context_forge(url: &str, bootstrap: &Bootstrap, folder: &Path) -> Outcome<Peer> {
    let programs = python::programs(
        "contextforge",
        &process::root().join("crates/xtask/bench/contextforge.txt"),
    )?;
    let address = product::free_address()?;
    // It refuses to start with words that are known or short; these guard nothing but this run.
    let secret = "a-benchmark-of-provost-signs-with-0123456789abcdef";
    let password = "Benchmark-0123-of-provost!";
    let settings = [
        (
            "DATABASE_URL",
            format!("sqlite:///{}", folder.join("contextforge.db").display()),
        ),
        ("JWT_SECRET_KEY", secret.to_owned()),
        ("AUTH_ENCRYPTION_SECRET", secret.replace("signs", "seals")),
        ("BASIC_AUTH_PASSWORD", password.to_owned()),
        ("PLATFORM_ADMIN_EMAIL", "admin@acme.example".to_owned()),
        ("PLATFORM_ADMIN_PASSWORD", password.to_owned()),
        ("DEFAULT_USER_PASSWORD", password.to_owned()),
        ("MCPGATEWAY_UI_ENABLED", "false".to_owned()),
        ("MCPGATEWAY_ADMIN_API_ENABLED", "true".to_owned()),
        ("SSRF_ALLOW_LOCALHOST", "true".to_owned()),
        ("RATE_LIMITING_ENABLED", "false".to_owned()),
        ("TOOL_RATE_LIMIT", "100000000".to_owned()),
        ("CACHE_TYPE", "memory".to_owned()),
        ("LOG_LEVEL", "ERROR".to_owned()),
    ];
    let mut make_token = Command::new(programs.join("python"));
    make_token
        .args([
            "-m",
            "mcpgateway.utils.create_jwt_token",
            "--username",
            "admin@acme.example",
        ])
        .args(["--admin", "--exp", "600", "--secret", secret])
        .envs(settings.clone())
        .current_dir(folder);
    let token = process::output(&mut make_token)?.trim().to_owned();
    let mut command = Command::new(programs.join("mcpgateway"));
    command
        .args([
            "--host",
            &address.ip().to_string(),
            "--port",
            &address.port().to_string(),
        ])
        .envs(settings)
        .current_dir(folder);
    let process = launch(&mut command, &folder.join("contextforge.log"))?;
    let mut peer = Peer {
        name: "ContextForge",
        address,
        tool: String::new(),
        path: "/mcp/",
        token: Some(token.clone()),
        process,
    };
    peer.wait_for("/health")?;
    let registration = json!({
        "name": "provost", "url": url, "transport": "STREAMABLEHTTP", "auth_type": "bearer",
        "auth_token": bootstrap.token,
    });
    peer.send(&Request::new("POST", "/gateways", &token).with_body(registration))?;
    let tools = peer.send(&Request::get("/tools", &token))?.json()?;
    let mut known = tools.as_array().into_iter().flatten();
    let found = known.find(|tool| tool["originalName"] == TOOL);
    found
        .and_then(|tool| tool["name"].as_str())
        .context("ContextForge did not take the tools over")?
        .clone_into(&mut peer.tool);
    Ok(peer)
}
