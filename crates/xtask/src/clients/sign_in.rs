//! The whole way of a person: found from a 401, signed in at a real `OpenID` provider, consented, called, refreshed, ended.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Scene;
use super::administrator::{Administrator, escaped, sorted, text};
use super::install::Tools;
use super::program::Program;
use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// The key that `provost init` makes of the organization's name.
const ORGANIZATION: &str = "acme";
/// A client of `crates/xtask/oidc/serve.mjs`, and its secret.
const CLIENT: &str = "provost-es256";
const CLIENT_SECRET: &str = "a secret / with + signs: and more";
/// Who signs in there when nobody is named.
const LOGIN: &str = "ada@acme.example";
const SCOPES: &[&str] = &["policies:read", "service_accounts:read"];
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
            .arg(format!("http://{server}/oauth/callback"));
        let mut program = Program::start(&mut command)?;
        let issuer = program.line().context("the OpenID provider does not start")?;
        Ok(Self { program, issuer })
    }

    pub fn stop(self) -> Outcome {
        self.program.ends()
    }
}

/// The server's configuration: where it is, and where people sign in.
pub fn configuration(folder: &Path, server: SocketAddr, provider: &Provider) -> Outcome<String> {
    let secret = folder.join("provider.secret");
    std::fs::write(&secret, CLIENT_SECRET).context("cannot write a file")?;
    let mut text = String::new();
    writeln!(
        text,
        "[http]\npublic_url = \"http://{server}\"\n\n[[oauth.sign_in]]\nname = \"People of Acme\"\nissuer = \"{}\"\n\
         client_id = \"{CLIENT}\"\nclient_secret_file = {:?}\norganizations = [\"{ORGANIZATION}\"]\n\
         authoritative_for = \"default\"",
        provider.issuer,
        secret.display().to_string(),
    )
    .context("cannot write a text")?;
    Ok(text)
}

/// A person who may sign in, with the role of an auditor.
pub fn person(administrator: &mut Administrator) -> Outcome<String> {
    let body =
        json!({ "loginName": LOGIN, "displayName": "Ada", "email": LOGIN, "permissionRole": "auditor" });
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
    text(&administrator.post("mcp/clients", body)?, "/client/id")
}

pub fn run(scene: &mut Scene<'_>) -> Outcome {
    let mut administrator = scene.administrator();
    let user = person(&mut administrator)?;
    let redirect = "http://127.0.0.1:38531/callback";
    for (ending, reason) in [("revoked", "a laptop is lost"), ("suspended", "user_suspended")] {
        println!("{ending}");
        let client = client(&mut administrator, &format!("oauth {ending}"), &[redirect])?;
        let mut command = scene.tools.script("oauth.mjs");
        process::without_settings(&mut command);
        command
            .args([&client, redirect])
            .env("PROVOST_MCP_URL", format!("{}/mcp", scene.origin()))
            .env("PROVOST_SCOPES", SCOPES.join(" "));
        let mut program = Program::start(&mut command)?;
        for step in STEPS {
            program.step(step)?;
        }
        let session = only_session(&administrator, &client)?;
        let is_right = session["status"] == "active"
            && session["actorType"] == "console_user"
            && session["consoleUserId"] == user.as_str()
            && sorted(&session["scopes"]) == SCOPES;
        if !is_right {
            return Err(Failure::new(format!("this session is not right: {session:#}")));
        }
        if ending == "revoked" {
            administrator.revoke(&text(&session, "/id")?, reason)?;
        } else {
            administrator.post(&format!("directory/users/{}/suspend", escaped(&user)), json!({}))?;
        }
        program.tell("go")?;
        program.step("refused")?;
        program.ends()?;
        let session = only_session(&administrator, &client)?;
        if session["revokeReason"] != reason {
            return Err(Failure::new(format!("it did not end so: {session:#}")));
        }
    }
    println!("a person was asked, and nobody came in after the revocation or the suspension");
    Ok(())
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
