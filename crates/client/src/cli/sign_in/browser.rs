//! A person signs in and allows it, in a browser.

use super::super::connection::Place;
use super::super::failure::{Exit, Failure};
use super::super::send::unanswered;
use super::super::server::Server;
use super::super::terminal::Terminal;
use super::listener::{Answer, Listener, PATIENCE};
use super::metadata::Offer;
use super::tokens::{self, CLIENT_ID, Tokens};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_words::Secret;
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::url::encoded;
use std::process::{Command, Stdio};

/// How a person wants to sign in.
pub(in crate::cli) struct Wish {
    /// Names of scopes; none: all that only looks.
    pub(in crate::cli) scopes: Vec<String>,
    /// Whether the browser is opened, and not only named its address.
    pub(in crate::cli) opens: bool,
    /// The port of the answer; 0: one that is free.
    pub(in crate::cli) port: u16,
}

/// Has somebody sign in.
///
/// Errors: usage, `Forbidden` when it was not allowed, why the server gave no tokens.
pub(in crate::cli) async fn sign_in(
    offer: &Offer,
    wish: &Wish,
    place: &Place,
    terminal: &Terminal,
) -> Result<Tokens, Failure> {
    if offer.client_id != CLIENT_ID {
        let line = format!("{} knows the command line by another name", place.url);
        return Err(Failure::new(Exit::Refused, line).and("install the version of the server here"));
    }
    let scope = offer.scope(&wish.scopes)?;
    let (state, verifier) = (random(), random());
    let listener = Listener::open(wish.port).await?;
    let redirect_uri = listener.redirect_uri();
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.expose().as_bytes()));
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", redirect_uri.as_str()),
        ("state", state.expose().as_str()),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    if let Some(scope) = &scope {
        query.push(("scope", scope));
    }
    let pairs = query
        .iter()
        .map(|(name, value)| format!("{name}={}", encoded(value)));
    let url = format!("{}?{}", offer.authorize, pairs.collect::<Vec<_>>().join("&"));
    let opened = wish.opens && open(&url, terminal);
    terminal.note(if opened {
        "a browser opens; if it does not, open this address on this computer:"
    } else {
        "open this address in a browser on this computer:"
    });
    terminal.note(&url);
    if !opened {
        terminal.note(&format!(
            "a browser elsewhere reaches this command through: ssh -L {0}:127.0.0.1:{0} THIS-COMPUTER",
            listener.port()
        ));
    }
    terminal.note(&format!(
        "waiting for the answer for {} minutes (Ctrl-C ends it)",
        PATIENCE.as_secs() / 60
    ));
    let code = match listener.answer(&state, &offer.issuer).await? {
        Answer::Code(code) => code,
        Answer::Refused { error, description } => return Err(not_allowed(&error, &description)),
    };
    let server = Server::anonymous(place)?;
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("code", code.expose().as_str()),
        ("redirect_uri", redirect_uri.as_str()),
        ("code_verifier", verifier.expose().as_str()),
    ];
    let asked = tokens::asked(&server, &fields, terminal.clock.now());
    // A code serves once: whether the server took it, nobody knows when there is no answer.
    match tokio::time::timeout(place.timeout, asked).await {
        Ok(done) => done.map_err(|silence| unanswered(silence, &place.url).and("nothing was kept")),
        Err(_) => Err(Failure::new(
            Exit::Unreachable,
            format!("{} did not answer in time; nothing was kept", place.url),
        )),
    }
}

fn not_allowed(error: &str, description: &str) -> Failure {
    let (exit, line) = match error {
        "access_denied" => (Exit::Forbidden, "it was not allowed in the browser".to_owned()),
        "temporarily_unavailable" => (
            Exit::Unavailable,
            format!("nobody can sign in now: {description}"),
        ),
        _ if description.is_empty() => (Exit::Refused, format!("the server refused it: {error}")),
        _ => (Exit::Refused, format!("the server refused it: {description}")),
    };
    Failure::new(exit, line).and("nothing was kept")
}

/// Returns 256 random bits as text.
fn random() -> Secret<String> {
    Secret::new(URL_SAFE_NO_PAD.encode(SystemEntropy.seed()))
}

/// Opens the address; says whether a program for that was started. No shell reads it.
fn open(url: &str, terminal: &Terminal) -> bool {
    let Some(program) = &terminal.surroundings.browser else {
        return false;
    };
    let mut command = Command::new(program);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}
