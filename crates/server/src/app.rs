//! The program without its command line: registry, kernel, routes, first organization.

use crate::areas;
use crate::{opening, readiness};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use provost_areas_access::oauth;
use provost_areas_identity::service_accounts;
use provost_areas_platform::{settings, store};
use provost_kernel::area::{Areas, Statements};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Location;
use provost_kernel::dsse::{PublicKey, SignedKind};
use provost_kernel::entropy::Entropy;
use provost_kernel::error::{Error, Result};
use provost_kernel::expose::edge::EdgeSettings;
use provost_kernel::expose::{http as routes, openapi};
use provost_kernel::kernel::{Extras, Parts, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::operation::Registry;
use provost_kernel::time::Clock;
use provost_kernel::{Kernel, Secret, params};
use serde_json::json;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Returns every operation of the product, whose scopes are those of the program from then on.
///
/// Errors: `Internal` in a program that has other scopes.
pub fn registry() -> Result<Registry> {
    areas::ALL.install_scopes()?;
    Ok(areas::ALL.registry())
}

/// Returns every statement catalogue of a program of these areas, for the test that prepares them on both engines.
pub fn catalogues(areas: &Areas) -> Vec<Statements> {
    areas.statements().chain(crate::commands::statements()).collect()
}

/// Where an installation lies and how it behaves.
pub struct Installation {
    /// What the program is made of.
    pub areas: &'static Areas,
    /// The store.
    pub location: Location,
    /// The key material that belongs to it.
    pub keys: Keys,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Seeds.
    pub entropy: Arc<dyn Entropy>,
    /// Behaviour.
    pub settings: Settings,
    /// What the operator declared for areas.
    pub extras: Extras,
}

/// Migrates the store, checks its bond to the keys, and starts the kernel.
///
/// Errors: a sentence about what is wrong and what to do.
pub fn start(installation: Installation) -> Result<Arc<Kernel>> {
    let Installation {
        areas,
        location,
        keys,
        clock,
        entropy,
        settings,
        extras,
    } = installation;
    areas.check_schemes()?;
    // A connection is used on a storage thread only: callers may be inside an async runtime.
    let now = clock.now();
    let prepared = std::thread::scope(|scope| {
        scope
            .spawn(|| opening::prepare(areas, &location, &keys, now))
            .join()
    });
    prepared.unwrap_or_else(|_| Err(Error::internal("preparing the store panicked")))?;
    let keys = keys.timed_by(clock.clone());
    let extras = oauth::prepare(extras.with(areas), &keys, &clock, &settings)?;
    Kernel::start(Parts {
        registry: areas.registry(),
        schemes: areas.schemes(),
        keys,
        location,
        clock,
        entropy,
        settings,
        extras,
        rights: areas.rights(),
        endings: areas.endings(provost_areas_platform::ends::store_of),
    })
}

/// What a new organization's owner needs.
#[derive(Debug)]
pub struct NewOrganization {
    /// The organization's key.
    pub organization_id: OrganizationId,
    /// The admin account.
    pub service_account_id: String,
    /// Its token, shown once.
    pub token: Secret<String>,
}

/// Makes an organization and its first admin account in one unit of work.
///
/// Errors: `AlreadyExists` when the key is taken, `InvalidRequest` when no key can be made from the name.
pub async fn bootstrap(kernel: &Arc<Kernel>, name: &str, key: Option<&str>) -> Result<NewOrganization> {
    make_organization(kernel, name, key, false).await
}

/// Makes the first organization of an installation, once: of several servers that start together on one
/// store, one makes it.
///
/// Errors: `Unavailable` when there is an organization; otherwise as [`bootstrap`].
pub async fn bootstrap_first(kernel: &Arc<Kernel>, name: &str, key: Option<&str>) -> Result<NewOrganization> {
    make_organization(kernel, name, key, true).await
}

async fn make_organization(
    kernel: &Arc<Kernel>,
    name: &str,
    key: Option<&str>,
    only_if_first: bool,
) -> Result<NewOrganization> {
    let organization_id = match key {
        Some(key) => OrganizationId::parse(key)
            .ok_or_else(|| Error::invalid("", "an organization's key is 1 to 63 of a-z, 0-9, '.', '_', '-' and begins with a letter or digit"))?,
        None => OrganizationId::slug(name)
            .ok_or_else(|| Error::invalid("", "no key can be made from this name; give one"))?,
    };
    if name.trim().is_empty() || name.chars().count() > 128 || name.chars().any(char::is_control) {
        return Err(Error::invalid(
            "",
            "an organization's name has 1 to 128 characters and no control characters",
        ));
    }
    let issued = Arc::new(Mutex::new(None));
    let (sink, name) = (issued.clone(), name.to_owned());
    let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        if only_if_first {
            store::take_bootstrap(ctx)?;
        }
        store::add_organization(ctx, &name)?;
        let made = service_accounts::issue_admin(ctx, service_accounts::FIRST_ADMIN)?;
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(())
    };
    kernel
        .system(organization_id.clone(), Some("organization.created"), run)
        .await?;
    let made = issued.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (id, token) = made.ok_or_else(|| Error::internal("the organization was made without an account"))?;
    Ok(NewOrganization {
        organization_id,
        service_account_id: id.as_str().to_owned(),
        token,
    })
}

/// Makes a new admin account in an organization that is there, and leaves an audit entry of it (D3.3); where `lifts`, no act needs a second
/// person there any more.
///
/// Errors: `NotFound` for an unknown organization, which gets no chain by being asked for.
pub async fn recover(kernel: &Arc<Kernel>, organization: &str, lifts: bool) -> Result<NewOrganization> {
    let wanted = organization.to_owned();
    let known = kernel.read_system(store::organizations).await?;
    let organization_id = known
        .into_iter()
        .find(|known| known.as_str() == wanted)
        .ok_or_else(|| {
            Error::new(
                provost_kernel::Code::NotFound,
                format!("there is no organization with the key {organization:?}"),
            )
        })?;
    let issued = Arc::new(Mutex::new(None));
    let sink = issued.clone();
    let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        if lifts {
            settings::lift_acts_of_two(ctx)?;
        }
        let name = format!("recovered-admin {}", ctx.now());
        let made = service_accounts::issue_admin(ctx, &name)?;
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(())
    };
    kernel
        .system(organization_id.clone(), Some("organization.recovered"), run)
        .await?;
    let made = issued.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (id, token) =
        made.ok_or_else(|| Error::internal("the organization was recovered without an account"))?;
    Ok(NewOrganization {
        organization_id,
        service_account_id: id.as_str().to_owned(),
        token,
    })
}

/// Returns how many organizations the store holds.
pub async fn count_organizations(kernel: &Kernel) -> Result<i64> {
    let count = kernel
        .read_system(|tx| tx.query_opt(&store::COUNT_ORGANIZATIONS, params![], |row| row.get::<i64>(0)))
        .await?;
    Ok(count.unwrap_or(0))
}

/// Returns the limits of the edge in front of [`router`].
pub fn edge_settings() -> EdgeSettings {
    EdgeSettings {
        uncounted: &[readiness::ALIVE, readiness::READY],
        apart: &[oauth::ENDPOINTS],
        ..EdgeSettings::default()
    }
}

/// Returns every route: the operations, and what needs no token.
pub fn router(kernel: &Arc<Kernel>, reading: routes::BodyLimits) -> Router {
    let document = api_document(kernel);
    let endpoint = crate::mcp::router(kernel, document.clone());
    // Whoever asks whether requests are taken, by whichever route, is answered together with the others.
    let probe = Arc::default();
    // Few ask for this form, so it is made when somebody does.
    let form_3_0: Arc<OnceLock<bytes::Bytes>> = Arc::default();
    let public: Router = Router::new()
        .route("/.well-known/provost-keys.json", get(public_keys))
        .route(
            "/api/headless/v1/openapi.json",
            get(move || std::future::ready(json_bytes(document()))),
        )
        .route(
            "/api/headless/v1/openapi-3.0.json",
            get(async move |State(kernel): State<Arc<Kernel>>| {
                let made = || {
                    openapi::as_3_0(&openapi::document(&kernel.registry))
                        .to_string()
                        .into()
                };
                json_bytes(form_3_0.get_or_init(made).clone())
            }),
        )
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(kernel.clone());
    routes::router(kernel, reading)
        .merge(public)
        .merge(readiness::routes(kernel, &probe).method_not_allowed_fallback(method_not_allowed))
        .merge(crate::pages::routes(kernel, &probe))
        .merge(endpoint)
        .merge(oauth::routes(kernel).method_not_allowed_fallback(method_not_allowed))
}

/// Returns the API's document, which is made when somebody first asks: a server is ready before anybody reads it.
fn api_document(kernel: &Arc<Kernel>) -> crate::mcp::ApiDocument {
    let (kernel, made) = (kernel.clone(), OnceLock::<bytes::Bytes>::new());
    Arc::new(move || {
        made.get_or_init(|| openapi::document(&kernel.registry).to_string().into())
            .clone()
    })
}

/// Answers `OPTIONS` with the methods, and every other method with a refusal that names them (D1.8).
pub(crate) async fn method_not_allowed(request: axum::extract::Request) -> Response {
    let allow = http::HeaderValue::from_static("GET, HEAD, OPTIONS");
    if request.method() == http::Method::OPTIONS {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, allow)]).into_response();
    }
    let error = Error::new(
        provost_kernel::Code::MethodNotAllowed,
        "this route does not have this method",
    );
    let mut response = refusal(&error, &request);
    response.headers_mut().insert(header::ALLOW, allow);
    response
}

/// Answers with the envelope of an error.
pub(crate) fn refusal(error: &Error, request: &axum::extract::Request) -> Response {
    let id = request.extensions().get().cloned();
    let id = id.unwrap_or_else(|| provost_kernel::expose::edge::RequestId(String::new()));
    provost_kernel::expose::edge::respond(error, &id, request.headers().get(header::ACCEPT))
}

pub(crate) fn json_bytes(body: bytes::Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], body).into_response()
}

/// The public halves of the keys that sign checkpoints, releases and skills (D12.8).
///
/// `signed` is the list once more, signed by every signing key: who trusts an older one can take a newer one.
async fn public_keys(State(kernel): State<Arc<Kernel>>) -> Response {
    use base64::Engine;
    let encode = |key: &[u8; 32]| base64::engine::general_purpose::STANDARD.encode(key);
    let keys = &kernel.keys;
    let checkpoint = keys.checkpoint_public_keys().into_iter().map(|(name, key)| {
        let id = name.rsplit('/').next().unwrap_or_default();
        json!({ "id": id, "name": name, "use": "checkpoint", "alg": "Ed25519", "key": encode(&key) })
    });
    let signing = keys.signing_public_keys().into_iter().map(|PublicKey { id, key }| {
        json!({ "id": id, "name": format!("provost/{id}"), "use": "signing", "alg": "Ed25519", "key": encode(&key) })
    });
    let list: Vec<_> = checkpoint.chain(signing).collect();
    let payload = json!({ "keys": list }).to_string();
    let signed = keys.sign(SignedKind::Keys, payload.as_bytes());
    json_bytes(json!({ "keys": list, "signed": signed }).to_string().into())
}
