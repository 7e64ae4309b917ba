//! From the registry to HTTP routes.
//!
//! One handler serves every operation: it finds the operation by path template and method, reads the body,
//! and calls [`dispatch`]. Path parameters are taken from the raw path and decoded exactly once; a segment
//! that cannot be decoded names nothing (D1.1). Operations that differ only behind a greedy parameter share a
//! route of the framework and are told apart here (`template.rs`).
//!
//! INVARIANT ED-1: nothing of a body is waited for, parsed or acted on before its caller was authenticated and may
//! call; a declared length above the limit is refused before.

use super::edge::{ClientIp, RequestId, UnknownProxy, check_declared, read_body, respond};
use super::template::Template;
use crate::arrival::Arrival;
use crate::auth::Origin;
use crate::dispatch::{self, EntryPoint, Outcome, percent_decode};
use crate::error::{Code, Error};
use crate::kernel::Kernel;
use crate::mutation_metadata;
use crate::operation::Answer;
use crate::rate;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use http_body::Body as _;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

pub use provost_words::url::BASE;

/// How long the body of a caller whose token was valid a moment ago may take before that caller is looked at: a body that comes with
/// its head costs no second look.
pub const AT_ONCE: Duration = Duration::from_millis(50);

/// How the handler reads requests.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// LIMIT: bytes of a body (D1.10: 256 KiB).
    pub max_body_bytes: usize,
    /// A request must be complete within this time.
    pub timeout: Duration,
}

/// What one route of the framework leads to: one template, or several that differ behind a greedy parameter.
#[derive(Default)]
struct Route(Vec<Variant>);

struct Variant {
    template: Template,
    places: Vec<(&'static str, usize)>,
}

/// What a request names: an operation by its place, with the parameters of its path.
struct RouteMatch {
    operation_index: usize,
    parameters: Vec<(&'static str, String)>,
}

impl Route {
    fn add(&mut self, template: Template, method: &'static str, operation_index: usize) {
        match self.0.iter_mut().find(|variant| variant.template == template) {
            Some(variant) => variant.places.push((method, operation_index)),
            None => self.0.push(Variant {
                template,
                places: vec![(method, operation_index)],
            }),
        }
        // INVARIANT RT-1: most words first.
        self.0
            .sort_by_key(|variant| std::cmp::Reverse(variant.template.words_behind()));
    }

    fn find(&self, method: &str, uri: &http::Uri) -> Option<RouteMatch> {
        let segments = segments(uri);
        self.0.iter().find_map(|variant| {
            let (_, operation_index) = variant.places.iter().find(|(known, _)| *known == method)?;
            let parameters = variant.template.read(segments.get(1..)?)?;
            Some(RouteMatch {
                operation_index: *operation_index,
                parameters,
            })
        })
    }

    /// Returns the methods with which a path can be asked for.
    fn allow(&self, uri: &http::Uri) -> HeaderValue {
        let segments = segments(uri);
        let fits = |variant: &&Variant| {
            segments
                .get(1..)
                .is_some_and(|s| variant.template.read(s).is_some())
        };
        let places = self.0.iter().filter(fits).flat_map(|variant| &variant.places);
        let mut methods: Vec<&str> = places.map(|(method, _)| *method).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.push("OPTIONS");
        HeaderValue::from_str(&methods.join(", ")).unwrap_or(HeaderValue::from_static("OPTIONS"))
    }
}

/// Returns the raw segments of a path from the organization on.
fn segments(uri: &http::Uri) -> Vec<&str> {
    uri.path().split('/').skip(5).collect()
}

/// Returns the routes of every operation, with the envelope for unknown routes and methods.
pub fn router(kernel: &Arc<Kernel>, reading: BodyLimits) -> Router {
    let mut by_path: BTreeMap<String, Route> = BTreeMap::new();
    for (operation_index, entry) in kernel.registry.entries().iter().enumerate() {
        let template = Template::of(entry.meta.path);
        let route = by_path.entry(template.route()).or_default();
        route.add(template, entry.meta.method.as_str(), operation_index);
    }
    let mut router = Router::new();
    for (path, route) in by_path {
        let (kernel, route) = (kernel.clone(), Arc::new(route));
        let handler = move |request: Request| {
            let (kernel, route) = (kernel.clone(), route.clone());
            async move { handle(&kernel, &route, reading, request).await }
        };
        router = router.route(&format!("{BASE}{path}"), any(handler));
    }
    router.fallback(unknown_route)
}

/// Answers a path that no route has.
pub async fn unknown_route(request: Request) -> Response {
    let error = Error::new(Code::NotFound, "there is no such route");
    respond(
        &error,
        &request_id(&request),
        request.headers().get(header::ACCEPT),
    )
}

fn request_id(request: &Request) -> RequestId {
    request
        .extensions()
        .get::<RequestId>()
        .cloned()
        .unwrap_or_else(|| RequestId(String::new()))
}

async fn handle(kernel: &Arc<Kernel>, route: &Route, reading: BodyLimits, request: Request) -> Response {
    let id = request_id(&request);
    let accept = request.headers().get(header::ACCEPT).cloned();
    if request.method() == Method::OPTIONS {
        return allow_only(route.allow(request.uri()), StatusCode::NO_CONTENT);
    }
    let wanted = if request.method() == Method::HEAD {
        "GET"
    } else {
        request.method().as_str()
    };
    let Some(named) = route.find(wanted, request.uri()) else {
        let error = Error::new(Code::MethodNotAllowed, "this route does not have this method");
        let mut response = respond(&error, &id, accept.as_ref());
        response
            .headers_mut()
            .insert(header::ALLOW, route.allow(request.uri()));
        return response;
    };
    let started = kernel.clock.monotonic();
    let meta = kernel.registry.entries()[named.operation_index].meta;
    let outcome = match serve(kernel, &named, reading, request, &id).await {
        Ok(outcome) | Err(outcome) => outcome,
    };
    let response = answer(kernel, outcome, &id, accept.as_ref(), &EntryPoint::Http);
    count(
        meta.id,
        response.status(),
        kernel.clock.monotonic().saturating_sub(started),
    );
    response
}

/// Looks at the caller, reads the body, and dispatches.
///
/// INVARIANT ED-1: nothing is waited for, read or parsed of a body before its caller was authenticated and may call, but for
/// [`AT_ONCE`] and for a caller whose token was valid a moment ago; such a body is not parsed before either. A declared length
/// above the limit is refused first: that is known from the head.
///
/// Errors: the outcome that answers a request which is not dispatched.
async fn serve(
    kernel: &Arc<Kernel>,
    named: &RouteMatch,
    reading: BodyLimits,
    request: Request,
    id: &RequestId,
) -> Result<Outcome, Outcome> {
    let meta = kernel.registry.entries()[named.operation_index].meta;
    let refused = |error| Outcome {
        result: Err(error),
        rate: None,
    };
    let (limit, timeout) = match meta.consumes {
        Some(consumes) => (meta.limit.bytes, Duration::from_secs(consumes.timeout_secs)),
        None if meta.reads_late() => (meta.limit.bytes, reading.timeout),
        None => (reading.max_body_bytes, reading.timeout),
    };
    check_declared(&request, limit).map_err(refused)?;
    let (parts, body) = request.into_parts();
    let asked = call(named, &parts, id);
    if body.is_end_stream() && !meta.reads_late() {
        return Ok(dispatch::dispatch(kernel, asked).await);
    }
    let mut read = pin!(read_body(Request::new(body), limit, timeout));
    let mut early = None;
    if asked.origin.arrival.is_known() && !meta.reads_late() {
        early = tokio::time::timeout(AT_ONCE, read.as_mut()).await.ok();
    }
    let presented = match early {
        // It is authenticated with everything else, in one snapshot.
        Some(Ok(_)) => None,
        Some(Err(_)) | None => Some(dispatch::precheck(kernel, &asked).await?),
    };
    let read = match early {
        Some(read) => read,
        None => read.await,
    };
    let (_, body) = read.map_err(refused)?;
    let call = dispatch::Request {
        body,
        presented,
        ..asked
    };
    Ok(dispatch::dispatch(kernel, call).await)
}

/// Returns what a request asks for, without its body.
fn call(named: &RouteMatch, parts: &http::request::Parts, id: &RequestId) -> dispatch::Request {
    let organization = segments(&parts.uri).first().copied().unwrap_or_default();
    dispatch::Request {
        operation_index: named.operation_index,
        organization: percent_decode(organization).unwrap_or_else(|| "\u{fffd}".into()),
        path: named.parameters.clone(),
        query: parts.uri.query().map(str::to_owned),
        origin: origin(parts, id),
        headers: parts.headers.clone(),
        body: bytes::Bytes::new(),
        entry_point: EntryPoint::Http,
        line: (parts.method.clone(), parts.uri.path().to_owned()),
        presented: None,
    }
}

fn count(operation: &'static str, status: StatusCode, took: Duration) {
    metrics::counter!("provost_requests_total", "operation" => operation, "status" => status.as_u16().to_string())
        .increment(1);
    metrics::histogram!("provost_request_seconds", "operation" => operation).record(took.as_secs_f64());
}

fn allow_only(allow: HeaderValue, status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::ALLOW, allow);
    response
}

/// Returns where a request came from.
pub fn origin(parts: &http::request::Parts, id: &RequestId) -> Origin {
    let text = |name: &str, max: usize| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        (!value.is_empty()).then(|| value.chars().take(max).collect::<String>())
    };
    let visible = |value: &String| value.len() <= 128 && value.bytes().all(|b| (0x21..=0x7e).contains(&b));
    let client = text("x-request-id", 129)
        .filter(visible)
        .or_else(|| text("traceparent", 129).filter(visible));
    Origin {
        request_id: id.0.clone(),
        client_request_id: client,
        source_ip: parts
            .extensions
            .get::<ClientIp>()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ip| ip.0),
        is_of_unknown_proxy: parts.extensions.get::<UnknownProxy>().is_some(),
        user_agent: text("user-agent", 256),
        // Labels that are none are refused where the operation's input is read.
        manager: mutation_metadata::manager(&parts.headers).unwrap_or_default(),
        arrival: parts.extensions.get::<Arrival>().cloned().unwrap_or_default(),
    }
}

/// Turns an outcome into a response: the answer's bytes, or the envelope with its headers (D1.7). A challenge names the
/// metadata of the resource that was called (D2.8).
pub fn answer(
    kernel: &Kernel,
    outcome: Outcome,
    id: &RequestId,
    accept: Option<&HeaderValue>,
    entry_point: &EntryPoint,
) -> Response {
    let Outcome { result, rate } = outcome;
    let mut response = match result {
        Ok(answer) => success(answer),
        Err(error) => {
            let mut response = respond(&error, id, accept);
            challenge(kernel, &error, entry_point, response.headers_mut());
            for (name, value) in error.headers() {
                if let Ok(value) = HeaderValue::from_str(value) {
                    response
                        .headers_mut()
                        .insert(HeaderName::from_static(name), value);
                }
            }
            response
        }
    };
    if let Some((bucket, taken)) = rate {
        for (name, value) in rate::headers(bucket, &taken) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn success(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        let media_type = match answer.media_type {
            "application/json" => HeaderValue::from_static("application/json; charset=utf-8"),
            other => HeaderValue::from_static(other),
        };
        headers.insert(header::CONTENT_TYPE, media_type);
    }
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if answer.replayed {
        headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// Adds `WWW-Authenticate` to a 401 and to a missing scope, and to a 415 what would be read (D1.7).
fn challenge(kernel: &Kernel, error: &Error, entry_point: &EntryPoint, headers: &mut HeaderMap) {
    let (url, resource) = (&kernel.settings.public_url, entry_point.audience());
    let metadata = format!("resource_metadata=\"{url}/.well-known/oauth-protected-resource{resource}\"");
    let value = match error.code() {
        Code::Unauthenticated | Code::TokenExpired | Code::TokenRevoked => {
            let presented = error.member("presented").is_some();
            let reason = if presented {
                "error=\"invalid_token\", "
            } else {
                ""
            };
            format!("Bearer realm=\"headless\", {reason}{metadata}")
        }
        Code::InsufficientScope => {
            let scope = error.member("scope").and_then(|s| s.as_str()).unwrap_or_default();
            format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", {metadata}")
        }
        Code::UnsupportedMediaType => {
            headers.insert("accept-post", HeaderValue::from_static("application/json"));
            return;
        }
        _ => return,
    };
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
}
