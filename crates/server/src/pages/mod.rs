//! The pages that need no token: `/` says what this is, `/docs` is the reference of the API.
//!
//! Both say what the API document says to everybody, and whether requests are taken, as `/readyz` does; neither names an organization, a
//! version or a store. They hold no script, ask nobody for anything, and their policy allows their own style alone.
//!
//! The reference is made of the document when somebody first asks for a page of it, and kept, packed and plain: what a stranger can cause
//! afterwards is to send bytes that lie there.
//!
//! Absent on purpose: tags for caches, because every answer of this server is `no-store`; a search other than the browser's own, and a way to try an operation from the page. Both need scripts, and the second a token in a browser.

mod examples;
mod fields;
mod reference;
mod start;

use crate::app::{method_not_allowed, refusal};
use crate::readiness::{Probe, is_ready};
use aws_lc_rs::digest::{SHA256, digest};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use provost_kernel::Kernel;
use provost_kernel::error::{Code, Error};
use provost_kernel::expose::edge::Page;
use provost_kernel::expose::mcp::is_offered;
use provost_kernel::expose::openapi;
use provost_kernel::operation::Registry;
use provost_words::html::Html;
use reference::Reference;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, OnceLock};
use tokio::sync::Mutex;

const STYLE: &str = include_str!("style.css");

/// Where the reference begins.
const DOCS: &str = "/docs";

struct Pages {
    kernel: Arc<Kernel>,
    probe: Arc<Probe>,
    reference: OnceLock<Reference>,
    /// Whose turn it is to make the reference.
    turn: Arc<Mutex<()>>,
}

impl Pages {
    /// Returns the reference, which is made when somebody first asks: one at a time, on a thread that nobody else waits for, and to its
    /// end, so that who hangs up cannot have it begun again.
    async fn reference(self: &Arc<Self>) -> Option<&Reference> {
        if self.reference.get().is_none() {
            let turn = self.turn.clone().lock_owned().await;
            let pages = self.clone();
            let make = move || {
                pages.reference.get_or_init(|| {
                    let registry = &pages.kernel.registry;
                    Reference::of(&openapi::document(registry), &offered(registry))
                });
                drop(turn);
            };
            drop(self.kernel.blocking(make).await);
        }
        self.reference.get()
    }
}

/// The operations that are tools of MCP.
fn offered(registry: &Registry) -> BTreeSet<&'static str> {
    let offered = registry.entries().iter().filter(|entry| is_offered(entry.meta));
    offered.map(|entry| entry.meta.id).collect()
}

/// Returns the routes.
pub fn routes(kernel: &Arc<Kernel>, probe: &Arc<Probe>) -> Router {
    let pages = Pages {
        kernel: kernel.clone(),
        probe: probe.clone(),
        reference: OnceLock::new(),
        turn: Arc::default(),
    };
    Router::new()
        .route("/", get(first))
        .route(DOCS, get(contents))
        .route("/docs/{chapter}", get(chapter))
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Arc::new(pages))
}

async fn first(State(pages): State<Arc<Pages>>) -> Response {
    let is_ready = is_ready(&pages.kernel, &pages.probe).await;
    answer(Body::from(start::page(is_ready)))
}

async fn contents(State(pages): State<Arc<Pages>>, request: Request) -> Response {
    chapter_of(pages.reference().await, "", &request)
}

async fn chapter(State(pages): State<Arc<Pages>>, Path(name): Path<String>, request: Request) -> Response {
    chapter_of(pages.reference().await, &name, &request)
}

fn chapter_of(reference: Option<&Reference>, name: &str, request: &Request) -> Response {
    let Some(reference) = reference else {
        return refusal(&Error::internal("the reference could not be made"), request);
    };
    let Some(chapter) = reference
        .chapter(name)
        .filter(|_| !name.is_empty() || is_first(request))
    else {
        return refusal(
            &Error::new(Code::NotFound, "there is no such chapter; /docs lists them"),
            request,
        );
    };
    let is_packed = takes_packed(request.headers());
    let body = if is_packed {
        &chapter.packed
    } else {
        &chapter.plain
    };
    let mut response = answer(Body::from(body.clone()));
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Whether a request is for the first page, and not for a chapter without a name.
fn is_first(request: &Request) -> bool {
    request.uri().path() == DOCS
}

/// Whether a caller names gzip among what it takes, and not as what it does not take.
fn takes_packed(headers: &HeaderMap) -> bool {
    let named = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    named.is_some_and(|named| named.split(',').any(|coding| coding.trim() == "gzip"))
}

/// Returns a whole page.
fn document(title: &str, class: &'static str, main: impl FnOnce(&mut Html)) -> String {
    let mut html = Html::default();
    html.raw(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"robots\" content=\"noindex\">\n<meta name=\"color-scheme\" \
         content=\"light dark\">\n",
    );
    html.words("title", "", title);
    html.raw("<style>");
    html.raw(STYLE);
    html.raw("</style>\n</head>\n<body>\n");
    html.element("header", &[], |html| {
        html.element("p", &[("class", "brand")], |html| {
            html.element("a", &[("href", "/")], |html| html.text("Provost"));
            html.text(" ");
            html.element("a", &[("href", DOCS)], |html| html.text("API reference"));
        });
    });
    html.element("main", &[("class", class)], main);
    html.raw("</body>\n</html>\n");
    html.into_string()
}

fn answer(body: Body) -> Response {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
        )
    });
    let mut response = Response::new(body);
    response.extensions_mut().insert(Page);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(CONTENT_TYPE, "text/html; charset=utf-8");
    set(REFERRER_POLICY, "no-referrer");
    set(X_FRAME_OPTIONS, "DENY");
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}
