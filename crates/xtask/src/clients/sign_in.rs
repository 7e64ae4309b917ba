//! The whole way of a person: found from a 401, signed in at a real `OpenID` provider, consented, called, refreshed, ended.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Scene;
use super::administrator::{Administrator, escaped, sorted, text};
use super::install::Tools;
use super::program::Program;
use super::served::{self, Row};
use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// The key that `provost init` makes of the organization's name.
const ORGANIZATION: &str = "acme";
/// A client of `crates/xtask/oidc/serve.mjs`, and its secret.
const CLIENT: &str = "provost-es256";
const CLIENT_SECRET: &str = "a secret / with + signs: and more";
/// The most that a client may be granted; what it asks for, it finds out itself.
pub const SCOPES: &[&str] = &[
    "capabilities:read",
    "policies:read",
    "registry:read",
    "service_accounts:read",
];
const KEY: &str = "client.key";
const CERTIFICATE: &str = "client.crt";
pub const REDIRECT: &str = "http://127.0.0.1:38531/callback";
const STEPS: &[&str] = &[
    "discovered",
    "denied",
    "authorized",
    "token",
    "called",
    "refreshed",
    "waiting",
];

/// A running `OpenID` provider.
pub struct Provider {
    program: Program,
    issuer: String,
}

impl Provider {
    pub fn start(tools: &Tools, server: SocketAddr) -> Outcome<Self> {
        let mut command = Command::new(&tools.node);
        command
            .arg(tools.provider.join("serve.mjs"))
            .arg(format!("http://{server}/oauth/callback"))
            // It warns of being the toy that it is here.
            .stderr(Stdio::null());
        let mut program = Program::start(&mut command)?;
        let issuer = program.line().context("the OpenID provider does not start")?;
        Ok(Self { program, issuer })
    }

    pub fn stop(self) -> Outcome {
        self.program.ends()
    }
}

/// The server's configuration: where it is, where people sign in, and that clients' documents may be on this machine.
pub fn configuration(folder: &Path, server: SocketAddr, provider: &Provider) -> Outcome<String> {
    let secret = folder.join("provider.secret");
    std::fs::write(&secret, CLIENT_SECRET).context("cannot write a file")?;
    let mut certify = Command::new("openssl");
    certify
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-nodes", "-days", "2", "-subj", "/CN=a client", "-addext"])
        .args([
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-keyout", KEY, "-out", CERTIFICATE])
        .current_dir(folder);
    process::output(&mut certify).context("cannot make a certificate")?;
    let mut text = String::new();
    writeln!(
        text,
        "[http]\npublic_url = \"http://{server}\"\n\n[oauth]\nallow_networks = [\"127.0.0.0/8\"]\nca_file = {:?}\n\n\
         [[oauth.sign_in]]\nname = \"People of Acme\"\nissuer = \"{}\"\n\
         client_id = \"{CLIENT}\"\nclient_secret_file = {:?}\norganizations = [\"{ORGANIZATION}\"]\n\
         authoritative_for = \"default\"",
        folder.join(CERTIFICATE).display().to_string(),
        provider.issuer,
        secret.display().to_string(),
    )
    .context("cannot write a text")?;
    Ok(text)
}

/// The person who signs in when nobody is named, with the role of an auditor.
pub fn person(administrator: &mut Administrator) -> Outcome<String> {
    colleague(administrator, "ada")
}

/// A person whom the provider knows by that name.
pub fn colleague(administrator: &mut Administrator, name: &str) -> Outcome<String> {
    let login = format!("{name}@acme.example");
    let body = json!({
        "loginName": login, "displayName": name, "email": login, "permissionRole": "auditor",
    });
    text(&administrator.post("directory/users", body)?, "/user/id")
}

/// A public client that was registered beforehand.
pub fn client(administrator: &mut Administrator, name: &str, redirects: &[&str]) -> Outcome<String> {
    let body = json!({
        "name": name,
        "redirectUris": redirects,
        "grantTypes": ["authorization_code", "refresh_token"],
        "tokenEndpointAuthMethod": "none",
        "scopes": SCOPES,
    });
    text(&administrator.post("mcp/clients", body)?, "/id")
}

pub fn run(scene: &mut Scene<'_>) -> Outcome<Vec<Row>> {
    let mut administrator = scene.administrator();
    let user = person(&mut administrator)?;
    println!("a registered client, whose session is revoked");
    let registered = client(&mut administrator, "oauth", &[REDIRECT])?;
    let mut program = sign_in(scene, &registered)?;
    let session = judge(&administrator, &registered, &user, &mut program)?;
    administrator.revoke(&text(&session, "/id")?, "a laptop is lost")?;
    ends(&administrator, program, &registered, "a laptop is lost")?;

    println!("a client with a metadata document, whose user is suspended");
    let mut serve = scene.tools.script("document.mjs");
    serve
        .arg(scene.folder.join(CERTIFICATE))
        .arg(scene.folder.join(KEY))
        .arg(REDIRECT);
    let mut server = Program::start(&mut serve)?;
    let documented = server.line()?;
    let mut program = sign_in(scene, &documented)?;
    judge(&administrator, &documented, &user, &mut program)?;
    administrator.post(&format!("directory/users/{}/suspend", escaped(&user)), json!({}))?;
    ends(&administrator, program, &documented, "user_suspended")?;
    server.ends()?;
    println!("a person was asked, and nobody came in after the revocation or the suspension");
    Ok(vec![[
        served::named("@modelcontextprotocol/client", "package.json")?,
        "http".to_owned(),
        "as it agrees".to_owned(),
        "signs a person in by OAuth 2.1, as a registered client and by a client's metadata document; is refused once the session is revoked \
         or the person suspended"
            .to_owned(),
    ]])
}

fn sign_in(scene: &Scene<'_>, client: &str) -> Outcome<Program> {
    let mut command = scene.tools.script("oauth.mjs");
    process::without_settings(&mut command);
    command
        .args([client, REDIRECT])
        .env("PROVOST_MCP_URL", format!("{}/mcp", scene.origin()));
    Program::start(&mut command)
}

/// Follows the steps up to the call, and compares the session with what the client was told.
fn judge(administrator: &Administrator, client: &str, user: &str, program: &mut Program) -> Outcome<Value> {
    let mut granted = Vec::new();
    for step in STEPS {
        let said = program.step(step)?;
        if *step == "token" {
            let scopes = text(&said, "/scope")?;
            granted = scopes.split(' ').map(str::to_owned).collect();
            granted.sort_unstable();
        }
    }
    let session = only_session(administrator, client)?;
    let is_right = session["status"] == "active"
        && session["actorType"] == "console_user"
        && session["consoleUserId"] == user
        && sorted(&session["scopes"]) == granted;
    if is_right {
        return Ok(session);
    }
    Err(Failure::new(format!(
        "this session is not right, {granted:?} were granted: {session:#}"
    )))
}

fn ends(administrator: &Administrator, mut program: Program, client: &str, reason: &str) -> Outcome {
    program.tell("go")?;
    program.step("refused")?;
    program.ends()?;
    let session = only_session(administrator, client)?;
    if session["revokeReason"] == reason {
        return Ok(());
    }
    Err(Failure::new(format!("it did not end so: {session:#}")))
}

fn only_session(administrator: &Administrator, client: &str) -> Outcome<Value> {
    let mut sessions = administrator.sessions(&[("clientId", client)])?;
    match (sessions.pop(), sessions.is_empty()) {
        (Some(session), true) => Ok(session),
        (last, _) => Err(Failure::new(format!(
            "one session is expected: {last:#?} {sessions:#?}"
        ))),
    }
}
