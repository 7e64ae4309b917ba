//! `GET` and `POST /oauth/consent`: somebody is asked, and answers.
//!
//! Keeps SI-4.

use super::answer::{Stop, stopped};
use super::authorize::read;
use super::browser::Browser;
use super::callback::Question;
use super::offer::{Offer, offer};
use super::page::{self, ConsentQuestion, Notice};
use super::parameters::Parameters;
use super::sealed::{self, Purpose};
use super::{Step, count};
use crate::oauth::form::{MAX_BYTES, PATIENCE};
use crate::oauth::grants::{self, Client, User};
use crate::oauth::links;
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use provost_areas_identity::directory;
use provost_kernel::auth::{OrganizationId, ScopeSet};
use provost_kernel::expose::edge::read_body;
use provost_kernel::{Code, Error, Kernel, OperationContext, Result, Secret};
use std::sync::{Arc, Mutex, PoisonError};

/// Shows what is asked for.
pub async fn ask(State(kernel): State<Arc<Kernel>>, head: Parts) -> Response {
    let step = asked(&kernel, &head).await;
    step.unwrap_or_else(|stop| stopped(&kernel, stop))
}

async fn asked(kernel: &Arc<Kernel>, head: &Parts) -> Step {
    let parameters = read(head)?;
    let (text, question) = question(kernel, &head.headers, &parameters)?;
    count(kernel, &head.extensions)?;
    let client = client(kernel, &question).await?;
    let Some((organization, user_id)) = chosen(&question, &parameters) else {
        let keys: Vec<&str> = question.users.iter().map(|(key, _)| key.as_str()).collect();
        return Ok(page::organizations(&client.name, text, &keys));
    };
    let user = user(kernel, &organization, user_id).await?;
    let user = user.ok_or_else(page::stranger)?;
    let role = user.acting_role.filter(|_| user.is_active);
    let role = role.ok_or_else(|| page::unusable(&organization, &user))?;
    Ok(page::consent(&ConsentQuestion {
        client: &client,
        asked: &question.asked,
        organization: &organization,
        user: &user,
        role,
        offer: &offer(&question.asked, &client, role),
        question: text,
    }))
}

/// Takes the answer.
pub async fn decide(State(kernel): State<Arc<Kernel>>, request: Request) -> Response {
    let step = decided(&kernel, request).await;
    step.unwrap_or_else(|stop| stopped(&kernel, stop))
}

async fn decided(kernel: &Arc<Kernel>, request: Request) -> Step {
    check_origin(request.headers())?;
    let (head, body) = read_body(request, MAX_BYTES, PATIENCE).await?;
    let form = std::str::from_utf8(&body).map_err(|_| page::gone())?;
    let form = Parameters::parse(form).map_err(|_| page::gone())?;
    if form.repeated().is_some() {
        return Err(page::gone().into());
    }
    let (_, question) = question(kernel, &head.headers, &form)?;
    count(kernel, &head.extensions)?;
    let target = question.asked.target();
    match form.only("decision") {
        Some("deny") => return Err(target.error("access_denied", "the user did not consent")),
        Some("allow") => {}
        _ => return Err(page::gone().into()),
    }
    let client = client(kernel, &question).await?;
    let (organization, user_id) = chosen(&question, &form).ok_or_else(page::gone)?;
    let shown = shown(&form)?;
    let code = code(kernel, organization, &question, client, user_id, shown).await?;
    Ok(target.redirect(kernel, &[("code", code.expose())]))
}

/// INVARIANT SI-2: an answer comes from a page of this server. `Origin` says nothing here: browsers make it `null` where
/// no referrer is sent.
fn check_origin(headers: &HeaderMap) -> std::result::Result<(), Stop> {
    let site = headers.get("sec-fetch-site");
    let is_foreign = site.is_some_and(|site| site != "same-origin");
    let form = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let is_form = form.is_some_and(|form| {
        let essence = form.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
    });
    if is_foreign || !is_form {
        return Err(page::gone().into());
    }
    Ok(())
}

fn question<'a>(
    kernel: &Kernel,
    headers: &HeaderMap,
    parameters: &'a Parameters,
) -> std::result::Result<(&'a str, Question), Stop> {
    let browser = Browser::of(kernel, headers).ok_or_else(page::gone)?;
    let text = parameters.only("question").ok_or_else(page::gone)?;
    let opened = sealed::open(kernel, Purpose::Consent, &browser, text);
    Ok((text, opened.ok_or_else(page::gone)?))
}

/// Returns the client as it is now.
async fn client(kernel: &Arc<Kernel>, question: &Question) -> std::result::Result<Client, Stop> {
    let client = grants::client(kernel, &question.asked.client_id, None).await;
    let client = client.map_err(|_| page::gone())?;
    // Its targets may have changed since the question was made.
    if !client.redirects_to(&question.asked.redirect_uri) {
        return Err(page::gone().into());
    }
    Ok(client)
}

/// Returns the organization that consent is for: the one that was chosen, or the only one.
fn chosen<'a>(question: &'a Question, parameters: &Parameters) -> Option<(OrganizationId, &'a str)> {
    let (key, user_id) = match (parameters.only("organization"), question.users.as_slice()) {
        (Some(wanted), users) => users.iter().find(|(key, _)| key == wanted)?,
        (None, [only]) => only,
        (None, _) => return None,
    };
    OrganizationId::parse(key).map(|organization| (organization, user_id.as_str()))
}

/// Returns the scopes that the page showed. They narrow what is given and never widen it.
fn shown(form: &Parameters) -> std::result::Result<ScopeSet, Stop> {
    let names = form.only("scopes").unwrap_or_default();
    let names: Vec<&str> = names.split(' ').filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err(page::gone().into());
    }
    Ok(ScopeSet::of(&names))
}

async fn user(kernel: &Kernel, organization: &OrganizationId, user_id: &str) -> Result<Option<User>> {
    let found = Arc::new(Mutex::new(None));
    let (sink, id) = (found.clone(), user_id.to_owned());
    let run = move |ctx: &mut OperationContext<'_>| {
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = grants::user(ctx, &id)?;
        Ok(())
    };
    kernel.system(organization.clone(), None, run).await?;
    Ok(found.lock().unwrap_or_else(PoisonError::into_inner).take())
}

/// Makes the code of the user as the store has it now (SI-5). An answer that was lost on its way, or whose commit was not
/// confirmed, is given again: the same code, as long as it stands for the same and was not used (SI-4).
async fn code(
    kernel: &Kernel,
    organization: OrganizationId,
    question: &Question,
    client: Client,
    user_id: &str,
    shown: ScopeSet,
) -> std::result::Result<Secret<String>, Stop> {
    let made: Arc<Mutex<Option<ConsentOutcome>>> = Arc::default();
    let sink = made.clone();
    let (asked, text) = (question.asked.clone(), Secret::new(question.code.clone()));
    let (user_id, identity) = (user_id.to_owned(), question.identity.clone());
    let place = organization.clone();
    let run = move |ctx: &mut OperationContext<'_>| {
        let outcome = 'made: {
            // INVARIANT IL-2: whose link was taken away since allows nothing any more.
            let known = grants::user(ctx, &user_id)?;
            let is_linked = match &known {
                Some(user) => links::is_linked(ctx, &identity, user)?,
                None => false,
            };
            let Some(user) = known.filter(|_| is_linked) else {
                break 'made ConsentOutcome::Stranger;
            };
            let Some(role) = user.acting_role.filter(|_| user.is_active) else {
                break 'made ConsentOutcome::Unusable(user);
            };
            let Offer { scopes, .. } = offer(&asked, &client, role);
            let scopes = scopes.and(shown);
            if scopes == ScopeSet::default() {
                break 'made ConsentOutcome::Nothing;
            }
            let new = grants::Code {
                client: client.clone(),
                redirect_uri: asked.redirect_uri.clone(),
                challenge: asked.challenge.clone(),
                scopes,
                audiences: asked.audiences.clone(),
                user_id: user.id.clone(),
                user_display: user.display,
                jkt: asked.jkt.clone(),
            };
            match grants::make_code(ctx, &text, &new)? {
                grants::CodeOutcome::New => {
                    ctx.action("oauth.consent.given");
                    ctx.target(&directory::fences::USER, user.id);
                    ctx.change("clientId", serde_json::Value::Null, client.id.as_str());
                    ctx.change("scopes", serde_json::Value::Null, scopes.to_list());
                    ConsentOutcome::Code
                }
                grants::CodeOutcome::Same => ConsentOutcome::Code,
                grants::CodeOutcome::Other => ConsentOutcome::Before,
            }
        };
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        Ok(())
    };
    kernel.system(organization, None, run).await?;
    let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
    match made {
        Some(ConsentOutcome::Code) => Ok(Secret::new(question.code.clone())),
        Some(ConsentOutcome::Stranger) => Err(page::stranger().into()),
        Some(ConsentOutcome::Unusable(user)) => Err(page::unusable(&place, &user).into()),
        Some(ConsentOutcome::Nothing) => {
            let target = question.asked.target();
            Err(target.error("invalid_scope", "the user may do nothing of what was asked for"))
        }
        Some(ConsentOutcome::Before) => Err(Notice::new(
            StatusCode::CONFLICT,
            "This was answered already",
            "The application has got its answer. If it still waits, start again there.",
        )
        .into()),
        None => Err(Error::new(Code::Internal, "a code was neither made nor refused").into()),
    }
}

/// What became of a consent.
enum ConsentOutcome {
    Code,
    Stranger,
    Unusable(User),
    Nothing,
    Before,
}
