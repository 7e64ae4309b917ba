//! `GET /oauth/callback`: a provider sends somebody back.
//!
//! ```text
//! state opens in this browser ─► the answer is the asked provider's ─► code ─► ID token ─► user in each organization
//! ```

use super::answer::{Stop, see_other, stopped, with_query};
use super::authorize::{ProviderExchange, away, nobody, read};
use super::browser::Browser;
use super::page::{self, Notice};
use super::parameters::Parameters;
use super::provider::{Person, Provider, SignInFailure};
use super::request::AuthorizationRequest;
use super::sealed::{self, Purpose};
use super::{CONSENT, Step, count, providers};
use crate::oauth::foreign::hexadecimal;
use crate::oauth::grants::{self, Client, RecognizedUser, VerifiedLogin};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use provost_areas_identity::directory;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, Result};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// What consent is asked for.
#[derive(Serialize, Deserialize)]
pub struct Question {
    /// The code that allowing it makes, so that it makes one, however often it is answered (SI-4).
    pub code: String,
    /// What the client asked for.
    pub asked: AuthorizationRequest,
    /// The organizations that know the person, and which user it is there.
    pub users: Vec<(String, String)>,
    /// Who it is at the issuer, as a digest: whoever allows is asked for as long as that link stands (IL-2).
    pub identity: String,
}

/// Receives the person and asks for consent.
pub async fn receive(State(kernel): State<Arc<Kernel>>, head: Parts) -> Response {
    let step = received(&kernel, &head).await;
    step.unwrap_or_else(|stop| stopped(&kernel, stop))
}

async fn received(kernel: &Arc<Kernel>, head: &Parts) -> Step {
    let all = providers(kernel).ok_or_else(nobody)?;
    let parameters = read(head)?;
    if parameters.repeated().is_some() {
        return Err(page::gone().into());
    }
    let browser = Browser::of(kernel, &head.headers).ok_or_else(page::gone)?;
    let state = parameters.only("state").unwrap_or_default();
    let awaited: ProviderExchange =
        sealed::open(kernel, Purpose::Answer, &browser, state).ok_or_else(page::gone)?;
    count(kernel, &head.extensions)?;
    let ProviderExchange {
        asked,
        provider,
        trip,
    } = awaited;
    let provider = all.find(&provider).ok_or_else(page::gone)?;
    let code = answer(kernel, provider, &asked, &parameters).await?;
    let person = match provider.finish(kernel, trip, code).await {
        Ok(person) => person,
        Err(SignInFailure::Token(why)) => return Err(distrusted(provider, why)),
        Err(failed) => return Err(away(provider, &failed, &asked)),
    };
    let client = grants::client(kernel, &asked.client_id, None).await;
    let client = client.map_err(|_| page::gone())?;
    let users = users(kernel, provider, &client, &person).await?;
    let question = Question {
        code: grants::draw_code(kernel).expose().clone(),
        asked,
        users,
        identity: hexadecimal(&[provider.issuer(), &person.subject]),
    };
    let question = sealed::seal(kernel, Purpose::Consent, &browser, &question)?;
    // A page of its own, that can be loaded again: a provider's code serves once.
    Ok(see_other(&with_query(CONSENT, &[("question", &question)])))
}

/// Returns the code of an answer that is the asked provider's.
async fn answer<'a>(
    kernel: &Kernel,
    provider: &Provider,
    asked: &AuthorizationRequest,
    parameters: &'a Parameters,
) -> std::result::Result<&'a str, Stop> {
    let sent = provider.sent(kernel, parameters.only("iss")).await;
    if !sent.map_err(|failed| away(provider, &failed, asked))? {
        return Err(distrusted(provider, "the answer names another issuer, or none"));
    }
    if let Some(error) = parameters.only("error") {
        let target = asked.target();
        return Err(match error {
            "access_denied"
            | "login_required"
            | "interaction_required"
            | "account_selection_required"
            | "consent_required" => target.error("access_denied", "the sign-in was given up or refused"),
            "temporarily_unavailable" | "server_error" => target.error(
                "temporarily_unavailable",
                "the sign-in provider cannot be used now",
            ),
            _ => {
                tracing::warn!(
                    issuer = provider.issuer(),
                    "an OpenID provider refuses this server's requests"
                );
                target.error("server_error", "the sign-in provider refuses this server")
            }
        });
    }
    parameters.only("code").ok_or_else(|| page::gone().into())
}

fn distrusted(provider: &Provider, why: &'static str) -> Stop {
    tracing::warn!(
        issuer = provider.issuer(),
        why,
        "the answer of an OpenID provider is not believed"
    );
    Notice::new(
        StatusCode::BAD_REQUEST,
        "The sign-in cannot be trusted",
        "What the sign-in provider said about you did not stand up to a check. Nothing was given to the application. Start \
         again there; if this stays, tell whoever runs this server.",
    )
    .into()
}

/// Returns which users the person is. A first sign-in links them (OC-7).
async fn users(
    kernel: &Arc<Kernel>,
    provider: &Provider,
    client: &Client,
    person: &Person,
) -> std::result::Result<Vec<(String, String)>, Stop> {
    let (mut usable, mut known, mut is_withheld) = (Vec::new(), None, false);
    let bound = client.organization.as_ref();
    let organizations = provider.organizations().iter();
    for organization in organizations.filter(|one| bound.is_none_or(|bound| bound == *one)) {
        let user = match recognize(kernel, organization, provider, person).await? {
            RecognizedUser::User(user) => user,
            RecognizedUser::Withheld => {
                is_withheld = true;
                continue;
            }
            RecognizedUser::Stranger => continue,
        };
        if user.is_active && user.acting_role.is_some() {
            usable.push((organization.as_str().to_owned(), user.id));
        } else {
            known = known.or(Some((organization.clone(), user)));
        }
    }
    match known {
        _ if !usable.is_empty() => Ok(usable),
        Some((organization, user)) => Err(page::unusable(&organization, &user).into()),
        None if is_withheld => Err(page::withheld().into()),
        None => Err(page::stranger().into()),
    }
}

async fn recognize(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    provider: &Provider,
    person: &Person,
) -> Result<RecognizedUser> {
    let found = Arc::new(Mutex::new(RecognizedUser::Stranger));
    let sink = found.clone();
    let login = match (provider.authoritative_for(), &person.verified_email) {
        (Some(directory_id), Some(login_name)) => Some(VerifiedLogin {
            directory_id: directory_id.to_owned(),
            login_name: login_name.clone(),
        }),
        _ => None,
    };
    let (issuer, subject) = (provider.issuer().to_owned(), person.subject.clone());
    let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        let recognized = grants::recognize(ctx, &issuer, &subject, login.as_ref())?;
        if let RecognizedUser::User(user) = &recognized {
            ctx.action("oauth.user.signed_in");
            ctx.target(&directory::fences::USER, user.id.clone());
            ctx.change("issuer", serde_json::Value::Null, issuer.as_str());
        }
        if matches!(recognized, RecognizedUser::Withheld) {
            ctx.action("oauth.user.withheld");
            ctx.change("issuer", serde_json::Value::Null, issuer.as_str());
            ctx.change("subject", serde_json::Value::Null, subject.as_str());
        }
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = recognized;
        Ok(())
    };
    kernel.system(organization.clone(), None, run).await?;
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::replace(&mut *found, RecognizedUser::Stranger))
}
