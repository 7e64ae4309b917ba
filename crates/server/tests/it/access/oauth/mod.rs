//! Delegated access over the router: issuers' tokens, grants, sessions (D2.6–D2.9).

mod accepted;
mod bound;
mod ceiling;
pub use crate::areas::dpop;
mod ended;
pub mod granted;
mod identity;
mod links;
mod refresh;
mod revoked;
mod seeded_bugs;
mod spelled;
pub mod stub_server;

use crate::areas::oauth::{public_client, register};
use crate::support::{App, Reply};
use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Request;
use http_body_util::BodyExt;
use provost_areas_access::oauth::grants::{Client, Code, CodeOutcome, draw_code, make_code};
use provost_areas_access::oauth::settings::{KeySource, Settings, TrustedIssuer};
use provost_areas_access::oauth::{Oauth, grants};
use provost_kernel::auth::ScopeSet;
use provost_kernel::kernel::Extras;
use provost_kernel::{OperationContext, Result, Secret};
use provost_oauth::corpus::{ALLOWED, Template, Workshop};
use provost_oauth::{Algorithm, KeySet};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tower::ServiceExt;

pub const ISSUER: &str = "https://issuer.example";
pub const URL: &str = "http://127.0.0.1:8080";
pub const API: &str = "http://127.0.0.1:8080/api/headless/v1";
pub const MCP: &str = "http://127.0.0.1:8080/mcp";
pub const BACK: &str = "http://127.0.0.1/callback";
const VERIFIER: &str = "a-verifier-of-some-length-a-verifier-of-some-length";
/// An operation that every role may call with `policies:read`.
pub const READ: &str = "/policies";

/// Holds back what the area has of those who act, as a restore does.
fn hold_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let mut held = provost_areas_access::oauth::AREA.held.iter();
    held.try_for_each(|held| (held.hold)(ctx))
}

/// An issuer with keys; tokens are for user `subject-1`.
pub fn workshop(app: &App) -> Workshop {
    let template = Template {
        issuer: ISSUER.into(),
        audience: API.into(),
        organization: app.organization.clone(),
        subject: "subject-1".into(),
        client_id: "client-1".into(),
        scope: "policies:read directory:read".into(),
        now: app.now().as_ms() / 1000,
    };
    Workshop::new(template).unwrap()
}

/// Declares the workshop's issuer for the first organization.
pub fn settings(app: &App, workshop: &Workshop) -> Settings {
    let keys = KeySet::parse(workshop.key_set().to_string().as_bytes()).unwrap();
    let issuer = TrustedIssuer {
        url: ISSUER.into(),
        organizations: vec![app.org()],
        algorithms: ALLOWED.to_vec(),
        keys: KeySource::Set(Arc::new(keys)),
        introspection: None,
        authoritative_for: Some("default".into()),
        audiences: vec!["provost-at-the-issuer".into()],
    };
    Settings {
        issuers: vec![issuer],
        ..Settings::default()
    }
}

/// One more server on the store that trusts the workshop.
pub fn trusting(app: &App, workshop: &Workshop) -> Arc<App> {
    Arc::new(
        app.restarted(Extras::default().with(settings(app, workshop)))
            .unwrap(),
    )
}

/// Makes a user; returns its id.
pub async fn user(app: &App, login: &str, role: Option<&str>) -> String {
    let mut body = json!({ "loginName": login });
    if let Some(role) = role {
        body["permissionRole"] = role.into();
    }
    let reply = app.write("POST", "/directory/users", body).await;
    let made = reply.ok();
    made["user"]["id"]
        .as_str()
        .or(made["id"].as_str())
        .unwrap()
        .to_owned()
}

/// A token of the workshop with other claims.
pub fn token(workshop: &Workshop, change: impl FnOnce(&mut Value)) -> String {
    let mut claims = workshop.claims();
    claims["email"] = "ann@acme.example".into();
    claims["email_verified"] = true.into();
    change(&mut claims);
    workshop.signed(&Workshop::header(Algorithm::EdDsa), &claims)
}

/// Reads with a token.
pub async fn read(app: &App, token: &str) -> Reply {
    app.request("GET", READ).token(token).send().await
}

/// Sends a form; endpoints of OAuth answer in their own words.
pub async fn post(app: &App, path: &str, form: &[(&str, &str)]) -> Reply {
    post_with(app, path, form, &[]).await
}

/// A form as it stands in a body.
pub fn encoded(form: &[(&str, &str)]) -> String {
    let encode = |text: &str| -> String {
        let of = |byte: u8| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        };
        text.bytes().map(of).collect()
    };
    let body: Vec<String> = form
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    body.join("&")
}

pub async fn post_with(app: &App, path: &str, form: &[(&str, &str)], headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answer(app, request.body(Body::from(encoded(form))).unwrap()).await
}

pub async fn answer(app: &App, request: Request<Body>) -> Reply {
    let response = app.router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes().to_vec();
    Reply {
        status: parts.status,
        headers: parts.headers,
        json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        bytes,
    }
}

/// Asserts a refusal of OAuth.
#[track_caller]
pub fn refused(reply: &Reply, status: u16, error: &str) {
    let said = reply.json["error"].as_str().unwrap_or_default();
    assert_eq!((reply.status.as_u16(), said), (status, error), "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    // RFC 9110 §11.6.1: a 401 names a scheme, and nothing else does.
    let challenges = reply.headers.get_all("www-authenticate").iter().count();
    assert_eq!(challenges, usize::from(status == 401), "{:?}", reply.headers);
}

/// Runs a unit of the organization and returns what it leaves.
pub async fn unit<T: Send + 'static>(
    app: &App,
    run: impl Fn(&mut OperationContext<'_>) -> Result<T> + Send + 'static,
) -> T {
    let sink = Arc::new(Mutex::new(None));
    let place = sink.clone();
    let unit = app.kernel.system(app.org(), None, move |ctx| {
        *place.lock().unwrap() = Some(run(ctx)?);
        Ok(())
    });
    unit.await.unwrap();
    let left = sink.lock().unwrap().take();
    left.unwrap()
}

/// Makes a code as the consent page does.
pub async fn code(app: &App, client: &str, user_id: &str, scopes: &[&str], jkt: Option<String>) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, VERIFIER.as_bytes());
    let client: Client = grants::client(&app.kernel, client, None).await.unwrap();
    assert!(client.redirects_to("http://127.0.0.1:4711/callback"));
    let new = Code {
        client,
        redirect_uri: BACK.into(),
        challenge: URL_SAFE_NO_PAD.encode(digest),
        scopes: ScopeSet::of(scopes),
        audiences: Oauth::of(&app.kernel).unwrap().resources().to_vec(),
        user_id: user_id.to_owned(),
        user_display: "Ann".into(),
        jkt,
    };
    let text = draw_code(&app.kernel);
    let made = Secret::new(text.expose().clone());
    let making = unit(app, move |ctx| make_code(ctx, &made, &new)).await;
    assert_eq!(making, CodeOutcome::New);
    text.expose().clone()
}

/// The form that redeems a code.
pub fn redeeming<'a>(client: &'a str, code: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
    ]
}

/// A client, a user with a role, and the answer to a code that was redeemed.
pub async fn signed_in(app: &App) -> (String, String, Value) {
    signed_in_as(app, "viewer", &["policies:read"]).await
}

/// The same with other rights.
pub async fn signed_in_as(app: &App, role: &str, scopes: &[&str]) -> (String, String, Value) {
    let unique = crate::support::fresh_key();
    let client = register(app, public_client(&unique)).await;
    let user = user(app, &format!("{unique}@acme.example"), Some(role)).await;
    let code = code(app, &client, &user, scopes, None).await;
    let reply = post(app, "/oauth/token", &redeeming(&client, &code)).await;
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    (client, user, reply.json)
}
