//! An authorization request: what a client asks for (OAuth 2.1 §4.1.1, RFC 7636, 8707, 9207, 9449).
//!
//! ```text
//! client_id ─► client ─► redirect_uri is one of its own ─► everything else
//!   └──────── wrong: a page (SI-1) ────────┘                 └─ wrong: an error for the client
//! ```
//!
//! Parameters that are not known are ignored (RFC 6749 §3.1); those that would change who is asked what are refused.

use super::PendingWork;
use super::answer::{Stop, Target};
use super::page::Notice;
use super::parameters::Parameters;
use crate::oauth::grants::{self, Client};
use crate::oauth::{Oauth, audiences, command_line};
use http::StatusCode;
use provost_kernel::Kernel;
use provost_kernel::auth::ScopeSet;
use provost_oauth::error::Code;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// LIMIT: bytes of `state`; it travels with every step.
const MAX_STATE: usize = 1024;
/// LIMIT: bytes of `login_hint`; an address of mail has 254 at most.
const MAX_HINT: usize = 256;
/// LIMIT: bytes of `client_id`, that of a URL.
const MAX_CLIENT_ID: usize = 512;

/// What a client asked for, checked.
#[derive(Clone, Serialize, Deserialize)]
pub struct AuthorizationRequest {
    /// Its id.
    pub client_id: String,
    /// One of its redirect targets.
    pub redirect_uri: String,
    /// As it came.
    pub state: Option<String>,
    /// The challenge of PKCE, S256.
    pub challenge: String,
    /// Names of scopes, known ones; none when it did not say.
    pub scopes: Vec<String>,
    /// How many names it said that are no scopes here.
    #[serde(default)]
    pub unknown_scopes: usize,
    /// The resources that its tokens are to be for.
    pub audiences: Vec<String>,
    /// The thumbprint of the key that its tokens are to be bound to.
    pub jkt: Option<String>,
    /// What the provider is asked to do.
    pub prompt: Option<Prompt>,
    /// Who is expected, in the words of the provider.
    pub login_hint: Option<String>,
}

/// What a client may ask of the sign-in. `consent` needs no word: people are always asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prompt {
    /// Sign in anew.
    Login,
    /// Choose among accounts.
    SelectAccount,
}

impl AuthorizationRequest {
    /// Returns where answers go.
    pub fn target(&self) -> Target {
        Target {
            redirect_uri: self.redirect_uri.clone(),
            state: self.state.clone(),
        }
    }

    /// Returns the scopes that were asked for.
    pub fn scopes(&self) -> ScopeSet {
        let names: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        ScopeSet::of(&names)
    }
}

/// Says whether a request has, once each, what every one that can be answered has. Whose it is and what it may is not looked at.
pub fn is_whole(parameters: &Parameters) -> bool {
    let is_there = |name| parameters.only(name).is_some();
    parameters.repeated().is_none()
        && parameters
            .only("client_id")
            .is_some_and(|id| id.len() <= MAX_CLIENT_ID)
        && is_there("redirect_uri")
        && is_there("response_type")
        && provost_oauth::pkce::check_challenge(
            parameters.only("code_challenge_method"),
            parameters.only("code_challenge").unwrap_or_default(),
        )
        .is_ok()
}

/// Checks a request; returns it and its client.
pub fn read<'a>(
    kernel: &'a Arc<Kernel>,
    parameters: &'a Parameters,
    network: Option<String>,
) -> PendingWork<'a, Result<(AuthorizationRequest, Client), Stop>> {
    Box::pin(async move {
        let client = client(kernel, parameters, network).await?;
        let redirect_uri = redirect_uri(&client, parameters)?;
        let state = parameters.only("state").map(str::to_owned);
        let is_too_long = state.as_ref().is_some_and(|state| state.len() > MAX_STATE);
        let target = Target {
            redirect_uri,
            state: state.filter(|_| !is_too_long),
        };
        if is_too_long {
            return Err(target.error("invalid_request", "state must have 1024 bytes at most"));
        }
        if let Some(name) = parameters.repeated() {
            // Only a name that is known is repeated back.
            let known = KNOWN.iter().find(|known| **known == name);
            let name = known.copied().unwrap_or("a parameter");
            return Err(target.error("invalid_request", format!("{name} must not be there twice")));
        }
        details(kernel, &client, target, parameters).map(|asked| (asked, client))
    })
}

const KNOWN: [&str; 14] = [
    "response_type",
    "response_mode",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "login_hint",
    "dpop_jkt",
    "nonce",
    "request",
    "request_uri",
];

/// Finds the client.
async fn client(
    kernel: &Arc<Kernel>,
    parameters: &Parameters,
    network: Option<String>,
) -> Result<Client, Stop> {
    let id = parameters
        .only("client_id")
        .filter(|id| id.len() <= MAX_CLIENT_ID)
        .ok_or_else(|| wrong_client("The request does not say, in one way, which application sends it."))?;
    let found = grants::client(kernel, id, network).await;
    found.map_err(|error| match error.code() {
        Code::TemporarilyUnavailable => Notice::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The application cannot be looked up now",
            "What it says about itself could not be read. Try again in a minute.",
        )
        .into(),
        _ => wrong_client(
            "The application is not known here, or it was blocked. If you expected to sign in, tell an administrator of \
             your organization which application you used.",
        ),
    })
}

fn wrong_client(words: &'static str) -> Stop {
    Notice::new(StatusCode::BAD_REQUEST, "This application cannot be used", words).into()
}

/// INVARIANT SI-1: the only source of redirect targets.
fn redirect_uri(client: &Client, parameters: &Parameters) -> Result<String, Stop> {
    let uri = parameters.only("redirect_uri");
    let uri = uri.filter(|uri| client.redirects_to(uri));
    uri.map(str::to_owned).ok_or_else(|| {
        Notice::new(
            StatusCode::BAD_REQUEST,
            "The way back is not a known one",
            "The request wants its answer sent to an address that is not registered for this application. Nothing was \
             sent. Start again in the application; if this stays, its maker must correct it.",
        )
        .into()
    })
}

/// Checks what can be answered to the client when it is wrong.
fn details(
    kernel: &Kernel,
    client: &Client,
    target: Target,
    parameters: &Parameters,
) -> Result<AuthorizationRequest, Stop> {
    let wrong = |code, words: &'static str| Err(target.error(code, words));
    if !client.may_use("authorization_code") {
        return wrong(
            "unauthorized_client",
            "the client is not registered for authorization_code",
        );
    }
    match parameters.only("response_type") {
        Some("code") => {}
        Some(_) => return wrong("unsupported_response_type", "response_type must be code"),
        None => return wrong("invalid_request", "response_type is missing"),
    }
    if parameters
        .only("response_mode")
        .is_some_and(|mode| mode != "query")
    {
        return wrong("invalid_request", "response_mode must be query");
    }
    if parameters.only("request").is_some() {
        return wrong("request_not_supported", "request objects are not supported");
    }
    if parameters.only("request_uri").is_some() {
        return wrong("request_uri_not_supported", "request_uri is not supported");
    }
    let Some(challenge) = parameters.only("code_challenge") else {
        return wrong("invalid_request", "code_challenge is missing (PKCE)");
    };
    let method = parameters.only("code_challenge_method");
    if provost_oauth::pkce::check_challenge(method, challenge).is_err() {
        return wrong(
            "invalid_request",
            "code_challenge_method must be S256, and code_challenge a SHA-256 in base64url",
        );
    }
    let jkt = parameters.only("dpop_jkt").map(str::to_owned);
    if jkt.as_deref().is_some_and(|jkt| !is_thumbprint(jkt)) {
        return wrong("invalid_request", "dpop_jkt must be a SHA-256 in base64url");
    }
    let (scopes, unknown_scopes) = scopes(client, &target, parameters)?;
    let oauth = Oauth::of(kernel)?;
    let audiences = audiences(oauth, parameters.all("resource"))
        .map_err(|error| target.error("invalid_target", error.description().to_owned()))?;
    // Keeps OC-19.
    if client.id == command_line::ID && audiences != oauth.resources()[..1] {
        return wrong(
            "invalid_target",
            "the command line is given tokens for the API alone",
        );
    }
    let prompt = prompt(&target, parameters)?;
    let login_hint = parameters.only("login_hint").map(str::to_owned);
    if login_hint
        .as_deref()
        .is_some_and(|hint| hint.len() > MAX_HINT || hint.chars().any(char::is_control))
    {
        return wrong(
            "invalid_request",
            "login_hint must have 256 printable bytes at most",
        );
    }
    Ok(AuthorizationRequest {
        client_id: client.id.clone(),
        challenge: challenge.to_owned(),
        redirect_uri: target.redirect_uri,
        state: target.state,
        scopes,
        unknown_scopes,
        audiences,
        jkt,
        prompt,
        login_hint,
    })
}

fn is_thumbprint(text: &str) -> bool {
    // The form of a thumbprint is that of a challenge: 32 bytes in base64url.
    provost_oauth::pkce::check_challenge(Some(provost_oauth::pkce::METHOD), text).is_ok()
}

/// Returns the scopes that are known, and how many names are not: what nobody knows is passed over, and gives nothing (RFC 6749 §3.3).
fn scopes(client: &Client, target: &Target, parameters: &Parameters) -> Result<(Vec<String>, usize), Stop> {
    let wrong = |words: &'static str| target.error("invalid_scope", words);
    let Some(words) = parameters.only("scope") else {
        return Ok((Vec::new(), 0));
    };
    let names =
        provost_oauth::scopes(words).map_err(|_| wrong("scope must be names with one space between them"))?;
    let asked = names.len();
    let names: Vec<String> = names
        .into_iter()
        .filter(|name| ScopeSet::is_known(name))
        .collect();
    // Whoever asks for nothing is offered what reads: to ask for what is unknown alone is not that.
    if names.is_empty() {
        return Err(wrong("scope holds no name that this server knows"));
    }
    let unknown = asked - names.len();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let asked = ScopeSet::of(&texts).closed();
    let possible = client.scopes.map_or(asked, |most| most.closed().and(asked));
    if possible == ScopeSet::default() {
        return Err(wrong("the client is registered for none of these scopes"));
    }
    Ok((names, unknown))
}

fn prompt(target: &Target, parameters: &Parameters) -> Result<Option<Prompt>, Stop> {
    let mut prompt = None;
    for word in parameters
        .only("prompt")
        .unwrap_or_default()
        .split_ascii_whitespace()
    {
        match word {
            "none" => return Err(target.error("interaction_required", "people are always asked")),
            "login" => prompt = Some(Prompt::Login),
            "select_account" => prompt = prompt.or(Some(Prompt::SelectAccount)),
            "consent" => {}
            _ => return Err(target.error("invalid_request", "prompt holds a word that is not known")),
        }
    }
    Ok(prompt)
}
