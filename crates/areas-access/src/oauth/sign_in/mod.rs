//! Signing in and consenting: what happens in a browser before a client gets a code (D2.7).
//!
//! ```text
//! client ─► /oauth/authorize ─► [/oauth/choose] ─► OpenID provider ─► /oauth/callback
//!              refused: a page until the redirect target is trusted, an answer to the client from then on
//! /oauth/callback ─► who is this? ─► /oauth/consent ─► [choose an organization] ─► allow ─► code ─► client
//!                       nobody we know: a page                                     deny ─► error ─► client
//! ```
//!
//! Nothing of this is stored: what must be remembered travels with the browser, sealed ([`sealed`]), and any server of
//! the installation can go on with it. A sealed text opens for ten minutes, for the step that it was made for, in the
//! browser that began. Rows are written twice: a link and an audit entry when somebody has signed in, and the code.
//!
//! INVARIANT SI-1: nobody is sent to a URL that is not a registered redirect target of a known client.
//! INVARIANT SI-2: a step is taken only in the browser that took the one before it, within ten minutes, and from a
//! page of this server.
//! INVARIANT SI-3: who somebody is, an ID token says that answers this request and whose signature, issuer, audience,
//! time, nonce and code were checked; the answer came from the provider that was asked (RFC 9207).
//! INVARIANT SI-4: one consent makes one code, at all servers of a store together; sent again it leads to the same
//! one as long as that can be used.
//! INVARIANT SI-5: a code carries no more than the page showed, than the client may and than the user's role, which
//! is read in the transaction that makes the code.
//! INVARIANT SI-6: a page shows what strangers wrote as text, runs nothing, asks for nothing, and stands in no frame.
//!
//! Absent on purpose: passwords and accounts of our own; a session of this server in the browser (the provider has one);
//! consent that is remembered: people are asked each time, for nothing else would show them that a client asks again.

mod answer;
mod authorize;
mod browser;
mod callback;
mod consent;
mod offer;
mod page;
mod parameters;
mod provider;
mod request;
mod sealed;
mod words;

pub use provider::{Http, ProviderDeclaration, Providers};

use answer::Stop;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::Extensions;
use provost_kernel::expose::edge::ClientIp;
use provost_kernel::rate::Bucket;
use provost_kernel::{Kernel, Result, write_behind};
use std::pin::Pin;
use std::sync::Arc;

/// Where a client sends people.
pub const AUTHORIZE: &str = "/oauth/authorize";
/// Where a provider sends them back.
pub const CALLBACK: &str = "/oauth/callback";
const CHOOSE: &str = "/oauth/choose";
const CONSENT: &str = "/oauth/consent";

/// Steps of one network. One sign-in takes three or four.
const STEPS: Bucket = Bucket {
    name: "sign-in",
    burst: 120,
    per_second_num: 2,
    per_second_den: 1,
};

/// Requests of one network that cannot become a sign-in, apart from those that can: whoever sends them takes no sign-in from
/// somebody of the same network, or behind the same proxy.
const STRAY: Bucket = Bucket {
    name: "sign-in-stray",
    ..STEPS
};

/// Work that waits, with a type of its own: the compiler cannot see through nested ones that borrow whether they are `Send`.
type PendingWork<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A step: a page, a redirect, or why there is none.
type Step = std::result::Result<Response, Stop>;

/// Returns the routes. Without [`Providers`] among the kernel's extras they say that nobody can sign in here.
pub fn routes(kernel: &Arc<Kernel>) -> Router {
    Router::new()
        .route(AUTHORIZE, get(authorize::begin))
        .route(CHOOSE, get(authorize::choose))
        .route(CALLBACK, get(callback::receive))
        .route(CONSENT, get(consent::ask).post(consent::decide))
        .with_state(kernel.clone())
}

/// Returns the providers at which people can sign in, if there are any.
fn providers(kernel: &Kernel) -> Option<&Providers> {
    kernel.extra::<Providers>().filter(|all| !all.is_empty())
}

/// Counts a step of a network, once the request is known to be one.
fn count(kernel: &Kernel, extensions: &Extensions) -> Result<()> {
    limit(kernel, extensions, &STEPS)
}

/// Counts a request that is no step, before anything is looked up for it.
fn count_stray(kernel: &Kernel, extensions: &Extensions) -> Result<()> {
    limit(kernel, extensions, &STRAY)
}

fn limit(kernel: &Kernel, extensions: &Extensions, bucket: &Bucket) -> Result<()> {
    let network = network(extensions);
    kernel
        .limit(bucket, &[network.as_deref().unwrap_or_default()])
        .map(|_| ())
}

/// Returns the network of a request. One IPv6 caller has 2^64 addresses.
fn network(extensions: &Extensions) -> Option<String> {
    extensions.get::<ClientIp>().map(|ip| write_behind::network(ip.0))
}
