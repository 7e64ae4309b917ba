//! `GET /oauth/authorize`, and `GET /oauth/choose` where several providers are declared.

use super::answer::{Stop, remember, see_other, stopped, with_query};
use super::browser::Browser;
use super::page::{self, Notice};
use super::parameters::Parameters;
use super::provider::{Provider, SignInFailure, Trip};
use super::request::{self, AuthorizationRequest};
use super::sealed::{self, Purpose};
use super::{CHOOSE, Step, count, count_stray, network, providers};
use crate::oauth::grants;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use provost_kernel::Kernel;
use provost_kernel::auth::OrganizationId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the answer of a provider is for: it travels as the `state` of that exchange.
#[derive(Serialize, Deserialize)]
pub struct ProviderExchange {
    /// What the client asked for.
    pub asked: AuthorizationRequest,
    /// Who was asked.
    pub provider: super::provider::Reference,
    /// The secrets of the exchange.
    pub trip: Trip,
}

/// Begins: checks what the client asks for and sends the person to a provider.
pub async fn begin(State(kernel): State<Arc<Kernel>>, head: Parts) -> Response {
    let step = begun(&kernel, &head).await;
    step.unwrap_or_else(|stop| stopped(&kernel, stop))
}

async fn begun(kernel: &Arc<Kernel>, head: &Parts) -> Step {
    let all = providers(kernel).ok_or_else(nobody)?;
    let parameters = read(head)?;
    if request::is_whole(&parameters) {
        count(kernel, &head.extensions)?;
    } else {
        count_stray(kernel, &head.extensions)?;
    }
    let (asked, client) = request::read(kernel, &parameters, network(&head.extensions)).await?;
    let browser = Browser::of(kernel, &head.headers).unwrap_or_else(|| Browser::new(kernel));
    let response = match all.of(client.organization.as_ref()).as_slice() {
        [] => return Err(nobody()),
        [only] => send(kernel, &browser, only, asked).await?,
        several => {
            let choice = sealed::seal(kernel, Purpose::Choice, &browser, &asked)?;
            let links: Vec<_> = several
                .iter()
                .enumerate()
                .map(|(place, provider)| {
                    let place = place.to_string();
                    let link = with_query(CHOOSE, &[("choice", &choice), ("provider", &place)]);
                    (provider.name(), link)
                })
                .collect();
            page::providers(&client.name, &links)
        }
    };
    Ok(remember(response, &browser))
}

/// Goes on to the provider that was chosen.
pub async fn choose(State(kernel): State<Arc<Kernel>>, head: Parts) -> Response {
    let step = chosen(&kernel, &head).await;
    step.unwrap_or_else(|stop| stopped(&kernel, stop))
}

async fn chosen(kernel: &Arc<Kernel>, head: &Parts) -> Step {
    let all = providers(kernel).ok_or_else(nobody)?;
    let parameters = read(head)?;
    let browser = Browser::of(kernel, &head.headers).ok_or_else(page::gone)?;
    let choice = parameters.only("choice").unwrap_or_default();
    let asked: AuthorizationRequest =
        sealed::open(kernel, Purpose::Choice, &browser, choice).ok_or_else(page::gone)?;
    count(kernel, &head.extensions)?;
    let organization = organization_of(kernel, &asked).await?;
    let all = all.of(organization.as_ref());
    let place = parameters.only("provider").and_then(|place| place.parse().ok());
    let provider = place
        .and_then(|place: usize| all.get(place))
        .ok_or_else(page::gone)?;
    send(kernel, &browser, provider, asked).await
}

async fn organization_of(
    kernel: &Arc<Kernel>,
    asked: &AuthorizationRequest,
) -> Result<Option<OrganizationId>, Stop> {
    let client = grants::client(kernel, &asked.client_id, None).await;
    client
        .map(|client| client.organization)
        .map_err(|_| page::gone().into())
}

async fn send(
    kernel: &Arc<Kernel>,
    browser: &Browser,
    provider: &Provider,
    asked: AuthorizationRequest,
) -> Step {
    let awaited = ProviderExchange {
        asked,
        provider: provider.reference(),
        trip: Trip::new(kernel),
    };
    let state = sealed::seal(kernel, Purpose::Answer, browser, &awaited)?;
    let url = provider.start(kernel, &awaited.trip, &awaited.asked, state).await;
    url.map(|url| see_other(&url))
        .map_err(|failed| away(provider, &failed, &awaited.asked))
}

/// Logs what a provider did and answers that it cannot be used now.
pub fn away(provider: &Provider, failed: &SignInFailure, asked: &AuthorizationRequest) -> Stop {
    let why = match failed {
        SignInFailure::Provider(why) => why.as_str(),
        SignInFailure::Token(why) => why,
    };
    tracing::warn!(
        issuer = provider.issuer(),
        why,
        "nobody can sign in at an OpenID provider"
    );
    asked.target().error(
        "temporarily_unavailable",
        "the sign-in provider cannot be used now",
    )
}

/// Reads the query of a request.
pub fn read(head: &Parts) -> Result<Parameters, Notice> {
    Parameters::parse(head.uri.query().unwrap_or_default()).map_err(|_| {
        Notice::new(
            StatusCode::BAD_REQUEST,
            "This request is not understood",
            "The address is not one that an application should send you to. Start again in the application.",
        )
    })
}

/// Nobody can sign in here.
pub fn nobody() -> Stop {
    Notice::new(
        StatusCode::NOT_FOUND,
        "Nobody can sign in here",
        "This server has no sign-in provider for this application. Whoever runs the server can declare one.",
    )
    .into()
}
