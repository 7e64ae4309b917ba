//! The token endpoint (RFC 6749 §3.2; D2.7).
//!
//! ```text
//! form ─► client proves itself ─► grant is checked ─┬─► one unit: assertion spent, session, codes and refresh tokens, audit
//!                                                   └─► refusal in the words of the registry
//! ```
//!
//! What is refused inside of a unit is a result, not an error: that an assertion was spent, or that a session ended because
//! a token came twice, must stay written.

mod answer;
mod assertion;
mod authenticate;
mod client_credentials;
mod code;
mod exchange;
mod exchanged;
mod id_jag;
mod issue;
mod refresh;
mod scope;
mod workload;

pub(super) use answer::{failed, head, only_post, refused};
pub(super) use authenticate::{AuthenticatedClient, authenticate};
pub(super) use issue::{REFRESH, of_store, unit};
pub(super) use refresh::find as find_refresh;
pub use scope::audiences;

use super::form::{Form, MAX_BYTES, PATIENCE};
use super::state::Oauth;
use super::verifier::proof;
use answer::issued;
use authenticate::Spendable;
use axum::extract::{Request, State};
use axum::response::Response;
use issue::TokenAnswer;
use provost_kernel::arrival::Arrival;
use provost_kernel::expose::edge::{ClientIp, read_body};
use provost_kernel::{Kernel, write_behind};
use provost_oauth::error::Code;
use provost_oauth::{TokenError, id_jag as jag, subject_token};
use std::net::IpAddr;
use std::sync::Arc;

/// The path of the endpoint.
pub const PATH: &str = "/oauth/token";
/// The grants that are served, in the words of their registry.
pub const GRANT_TYPES: [&str; 5] = [
    "authorization_code",
    "refresh_token",
    "client_credentials",
    subject_token::GRANT_TYPE,
    jag::GRANT_TYPE,
];

/// A request to an endpoint that takes forms.
pub(super) struct FormRequest {
    pub(super) form: Form,
    pub(super) headers: http::HeaderMap,
    /// Where it comes from.
    pub(super) network: Option<String>,
}

/// Serves the endpoint.
pub async fn serve(State(kernel): State<Arc<Kernel>>, request: Request) -> Response {
    let network = network(&request);
    let arrival = request.extensions().get::<Arrival>().cloned().unwrap_or_default();
    match read(request).await {
        Ok(asked) => match grant(&kernel, &asked).await {
            Ok(token) => {
                arrival.recognized();
                issued(&token)
            }
            Err(error) => failed(&kernel, network, &error),
        },
        Err(error) => refused(&error),
    }
}

/// Returns where a request comes from, for the limit of failures.
pub(super) fn network(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ClientIp>().map(|ip| ip.0)
}

/// Reads a form.
///
/// Errors: `invalid_request`.
pub(super) async fn read(request: Request) -> Result<FormRequest, TokenError> {
    let wrong = |sentence: &str| TokenError::new(Code::InvalidRequest, sentence);
    let media_type = request.headers().get(http::header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok()?.split(';').next());
    if !media_type.is_some_and(|name| {
        name.trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    }) {
        return Err(wrong(
            "the body must be a form: application/x-www-form-urlencoded",
        ));
    }
    if request.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(wrong("parameters stand in the body, not in the URL"));
    }
    let network = network(&request).map(write_behind::network);
    let read = read_body(request, MAX_BYTES, PATIENCE).await;
    let (parts, body) = read.map_err(|error| wrong(error.message()))?;
    Ok(FormRequest {
        form: Form::parse(&body)?,
        headers: parts.headers,
        network,
    })
}

async fn grant(kernel: &Arc<Kernel>, asked: &FormRequest) -> Result<TokenAnswer, TokenError> {
    let oauth = Oauth::of(kernel).map_err(of_store)?.clone();
    let grant_type = asked.form.need("grant_type")?;
    if !GRANT_TYPES.contains(&grant_type) {
        return Err(TokenError::new(
            Code::UnsupportedGrantType,
            "this grant is not served here",
        ));
    }
    if let Some(trust) = workload::trust(&asked.form, grant_type) {
        return workload::serve(kernel, &oauth, asked, trust).await;
    }
    let known = authenticate(kernel, &oauth, asked).await?;
    // INVARIANT OC-5: an assertion that was sent is spent, also where what it was sent with is refused.
    let rest = known.rest();
    let client = known.client.clone();
    let done = granted(kernel, &oauth, known, grant_type, asked).await;
    if done.is_err() {
        rest.spend(kernel).await;
    } else {
        oauth.note_given(&client);
    }
    done
}

async fn granted(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    mut known: AuthenticatedClient,
    grant_type: &str,
    asked: &FormRequest,
) -> Result<TokenAnswer, TokenError> {
    if !known.client.may_use(grant_type) {
        return Err(TokenError::new(
            Code::UnauthorizedClient,
            "this client may not use this grant",
        ));
    }
    let url = format!("{}{PATH}", oauth.url);
    // INVARIANT OC-8: it is remembered by the store, in the unit of the grant. Whoever has no grant fills no memory with proofs.
    let proof = proof(&asked.headers, "POST", &url, None, oauth.now_secs());
    let proof = proof.map_err(|refusal| refusal.answer(Code::InvalidDpopProof))?;
    known.proof = proof.as_ref().map(Spendable::of_proof);
    let jkt = proof.map(|proof| proof.thumbprint);
    let form = &asked.form;
    match grant_type {
        "authorization_code" => code::serve(kernel, oauth, known, form, jkt).await,
        "refresh_token" => refresh::serve(kernel, oauth, known, asked, jkt).await,
        "client_credentials" => client_credentials::serve(kernel, oauth, known, form, jkt).await,
        subject_token::GRANT_TYPE => exchange::serve(kernel, oauth, known, form, jkt).await,
        _ => id_jag::serve(kernel, oauth, known, form, jkt).await,
    }
}
