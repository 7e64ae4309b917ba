//! OAuth: delegated access tokens, of this server's own making and of configured issuers, and what clients need to get
//! them (specification §5; D2.6 to D2.9).
//!
//! ```text
//! code      made → used | expired           used again: its session ends
//! refresh   live → superseded → gone        superseded and shown again: its session ends, apart from a retry in time
//! client    active ⇄ blocked → deleted      blocked: its sessions end
//! ```
//!
//! Tokens stand for sessions (`mcp_sessions`): an access token is checked by its signature or by its issuer's word and
//! then judged by its session's row, which is read at every request.
//!
//! INVARIANT OC-1: a delegated token is accepted only from the issuer that its organization is pinned to, for the
//! resource that was called, with the proof that it asks for.
//! INVARIANT OC-2: what an access token may do is never more than was asked for, the client, the role and the
//! assertion allow.
//! INVARIANT OC-3: a code serves once; shown again, it ends the session that it began.
//! INVARIANT OC-4: a refresh token that was used before ends its session, unless its successor was not used and it comes within
//! the leeway: then it is answered with that successor, and with no other.
//! INVARIANT OC-5: an assertion serves once at all servers of a store, and one that was sent is spent whatever became
//! of the request.
//! INVARIANT OC-6: no token, code, assertion, verifier or proof stands in a row, a log, an audit entry or an error.
//! INVARIANT OC-7: a subject is linked to a user by login name only on the word of an issuer that is authoritative
//! for the user's directory and says that the address is verified.
//! INVARIANT OC-8: a proof of possession serves the token endpoint once, at all servers of a store. At a resource it
//! serves once at each server, within a minute of its time (ADR 0022).
//! INVARIANT OC-9: a blocked client gets nothing, and what it was given is refused.
//!
//! Absent on purpose: dynamic registration of clients (RFC 7591), client secrets, implicit and password grants, opaque
//! access tokens of our own, certificate-bound tokens (no client certificates here: such a token is refused).

mod clients;
pub mod command_line;
mod credentials;
mod documents;
mod ends;
pub mod fences;
mod first_login;
mod foreign;
mod form;
pub mod grants;
mod held;
mod issuers;
mod links;
mod maintenance;
mod metadata;
mod revoke;
pub mod settings;
mod shares;
pub mod sign_in;
mod state;
mod store;
mod token;
mod ttl_cache;
mod turns;
mod verified_email;
mod verifier;
mod workloads;

pub use clients::{ids_of_account as clients_of_account, wider_than_granted};
pub use ends::void_codes;
pub use form::Form;
pub use held::forget_allowed;
pub use maintenance::tidy;
pub use settings::Settings;
pub use state::Oauth;
pub use token::audiences;

use axum::Router;
use axum::routing::post;
use provost_kernel::announcement::{Answers, Subscriber};
use provost_kernel::area::{Area, Check};
use provost_kernel::credential::Verifier;
use provost_kernel::kernel::{Extras, Settings as KernelSettings};
use provost_kernel::keys::Keys;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::time::Clock;
use provost_kernel::{Kernel, Result};
use std::sync::Arc;

/// The paths of the two resources that tokens are for, the API first (D2.6).
pub const AUDIENCES: [&str; 2] = ["/api/headless/v1", "/mcp"];

/// What the paths of the endpoints for clients and browsers begin with.
pub const ENDPOINTS: &str = "/oauth/";

/// The area.
pub static AREA: Area = Area {
    sessions: Some(&credentials::DelegatedTokens),
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0012_oauth",
        "0016_sessions_and_links",
        "0022_makers_of_links_and_tokens",
        "0029_refresh_repeats"
    ],
    statements: &[
        store::STATEMENTS,
        clients::STATEMENTS,
        links::STATEMENTS,
        held::STATEMENTS,
        ends::STATEMENTS,
    ],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    testimonies: &[&fences::CLIENTS],
    prepare: Some(|conn, _| clients::write_ceilings(conn)),
    check: Check::Nothing(
        "what a token may do is computed from its session, client and user at every request",
    ),
    notes: Some(wider_than_granted),
    on: &[
        &Subscriber(links::principal_ended),
        &Subscriber(links::login_name_changed),
        &Subscriber(links::import_applied),
        &Answers(links::role_given),
        &Answers(links::sign_ins),
    ],
    held: &[held::CLIENTS_KIND, held::LINKS_KIND],
    prune: Some(tidy),
    floor: 5,
    ..Area::named(
        "oauth",
        "Delegated access tokens, and what clients need to get them",
    )
};

fn operations() -> Vec<Entry> {
    let mut all = clients::operations();
    all.extend(links::operations());
    all
}

/// Adds the state and the verifier of tokens to what the operator declared.
///
/// Errors: `Internal` when a signing key makes no key for tokens.
pub fn prepare(
    extras: Extras,
    keys: &Keys,
    clock: &Arc<dyn Clock>,
    settings: &KernelSettings,
) -> Result<Extras> {
    let declared = extras.get::<Settings>().cloned().unwrap_or_default();
    let state = Arc::new(Oauth::new(declared, &settings.public_url, keys, clock.clone())?);
    let verifier: Arc<dyn Verifier> = Arc::new(verifier::TokenVerifier(state.clone()));
    Ok(extras.with(state).with(verifier))
}

/// Returns the routes that need no token: documents, and the endpoints for clients.
pub fn routes(kernel: &Arc<Kernel>) -> Router {
    // A kernel that was started without the area has no delegated tokens.
    let Ok(oauth) = Oauth::of(kernel) else {
        return Router::new();
    };
    let router = metadata::routes(oauth);
    if !oauth.settings.authorization_server {
        return router;
    }
    let endpoints = Router::new()
        .route(token::PATH, post(token::serve).fallback(token::only_post))
        .route(revoke::PATH, post(revoke::serve).fallback(token::only_post))
        .with_state(kernel.clone());
    router.merge(endpoints).merge(sign_in::routes(kernel))
}
