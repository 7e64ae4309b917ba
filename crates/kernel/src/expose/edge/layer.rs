//! What happens to every request before and after its route.

use super::address::{ClientIp, Peer, UnknownProxy};
use super::body::{ReadProgress, skip};
use super::callers::Callers;
use super::head;
use super::link::Refusal;
use super::respond::{normalize_error_response, respond};
use super::serve::Connection;
use super::settings::EdgeSettings;
use super::share::Share;
use super::visit::{Room, Stay, Visit};
use crate::arrival::Arrival;
use crate::entropy::{Entropy, UnitRng};
use crate::supervisor::catch_panic;
use crate::time::Clock;
use crate::{Code, Error, Result, id};
use axum::body::Body;
use http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, SERVER, STRICT_TRANSPORT_SECURITY, VARY};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tower::ServiceExt;
use tracing::Instrument;

/// LIMIT: 100 header fields; the number up to which the HTTP/1 library parses without an allocation.
pub(super) const MAX_HEADER_FIELDS: usize = 100;

/// LIMIT: bytes that are read and dropped of a body of somebody who has shown no valid token.
const MOST_SKIPPED_OF_A_STRANGER: usize = 64 * 1024;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");

/// The name of one request, `req_<ulid>`: in the extensions, in the log, in `X-Request-Id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);

/// The part of the edge that a router is wrapped in.
#[derive(Clone)]
pub struct Edge(Arc<Inner>);

struct Inner {
    settings: EdgeSettings,
    clock: Arc<dyn Clock>,
    /// Request ids must be unique, not secret: one generator draws them all.
    ids: Mutex<UnitRng>,
    callers: Arc<Callers>,
    room: Arc<Room>,
    /// For the paths of `settings.apart`.
    apart: Arc<Room>,
}

impl Edge {
    /// Returns an edge with these limits.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "shared parts are handed over alike everywhere"
    )]
    pub fn new(settings: EdgeSettings, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let seed = entropy.seed();
        let share = |of| {
            let allowance = settings.allowance?;
            Some(Share::new(of, allowance.requests))
        };
        Self(Arc::new(Inner {
            callers: Arc::new(Callers::new(&seed, Arc::clone(&clock))),
            room: Arc::new(Room::new(
                settings.max_in_flight,
                settings.kept_for_known,
                share("requests"),
            )),
            apart: Arc::new(Room::new(settings.max_apart, 0, share("requests_apart"))),
            settings,
            clock,
            ids: Mutex::new(UnitRng::new(seed)),
        }))
    }

    /// Returns a router that does everything of the edge and then asks `router`.
    ///
    /// Wrap once, outside of everything else: fallbacks are inside.
    pub fn wrap(&self, router: axum::Router) -> axum::Router {
        let edge = self.clone();
        let service = tower::service_fn(move |request| {
            let (edge, router) = (edge.clone(), router.clone());
            async move { Ok::<_, Infallible>(edge.handle(router, request).await) }
        });
        axum::Router::new().fallback_service(service)
    }

    async fn handle(&self, router: axum::Router, mut request: Request<Body>) -> Response<Body> {
        let request_id = self.mint();
        let accept = request.headers().get(ACCEPT).cloned();
        let method = request.method().clone();
        let is_http_1 = request.version() <= Version::HTTP_11;
        let peer = request.extensions().get::<Peer>().copied();
        let trusted = &self.0.settings.trusted_proxies;
        let client = ClientIp::of(peer, request.headers(), trusted);
        let stranger = UnknownProxy::of(peer, request.headers(), trusted);
        let link = request
            .extensions()
            .get::<Connection>()
            .map(|over| Arc::clone(&over.0));
        let visit = Visit::begin(&self.0.callers, self.0.callers.mark(request.headers()), link);
        let _stay = Stay(Arc::clone(&visit));
        let network = peer
            .is_some()
            .then_some(client.0)
            .filter(|ip| !self.is_trusted(*ip));
        request.extensions_mut().insert(request_id.clone());
        request.extensions_mut().insert(client);
        if let Some(stranger) = stranger {
            request.extensions_mut().insert(stranger);
        }
        request.extensions_mut().insert(Arrival::through(visit.clone()));
        let (parts, body) = request.into_parts();
        let (body, reading) = ReadProgress::of(body);
        let span = tracing::info_span!("request", id = %request_id.0);

        let outcome = self
            .answer(router, Request::from_parts(parts, body), &visit, network)
            .instrument(span.clone())
            .await;
        let mut response = match outcome {
            Ok(mut response) => {
                span.in_scope(|| normalize_error_response(&mut response, &request_id, accept.as_ref()));
                response
            }
            Err(error) => span.in_scope(|| respond(&error, &request_id, accept.as_ref())),
        };
        self.add_headers(&mut response, &request_id, &method);
        if method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        if is_http_1 && (!reading.is_finished() || closes(response.status())) {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn answer(
        &self,
        router: axum::Router,
        request: Request<Body>,
        visit: &Visit,
        network: Option<IpAddr>,
    ) -> Result<Response<Body>> {
        if let Some(error) = request.extensions().get().and_then(Refusal::take) {
            return Err(error);
        }
        self.check_size(&request)?;
        let (settings, path) = (&self.0.settings, request.uri().path());
        if settings.uncounted.contains(&path) {
            return ask(router, request).await;
        }
        let is_apart = settings.apart.iter().any(|lead| path.starts_with(lead));
        let room = if is_apart { &self.0.apart } else { &self.0.room };
        let closed = network.and_then(|ip| visit.join(room, ip));
        if let Err(error) = visit.enter(room) {
            self.turn_away(request.into_body(), visit.is_known()).await;
            return Err(error);
        }
        let Some(closed) = closed else {
            return ask(router, request).await;
        };
        tokio::select! {
            biased;
            answered = ask(router, request) => answered,
            () = closed.cancelled() => Err(crowded_out()),
        }
    }

    fn is_trusted(&self, ip: IpAddr) -> bool {
        let proxies = &self.0.settings.trusted_proxies;
        proxies.iter().any(|network| network.contains(ip))
    }

    fn check_size(&self, request: &Request<Body>) -> Result<()> {
        let settings = &self.0.settings;
        let target = request
            .uri()
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        if target > settings.max_target_bytes {
            return Err(head::too_long(settings.max_target_bytes));
        }
        if request.headers().len() > MAX_HEADER_FIELDS {
            return Err(head::too_many_fields());
        }
        let fields = request.headers().iter();
        let size: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        if size > settings.max_header_bytes {
            let message = format!("the headers are larger than {} bytes", settings.max_header_bytes);
            return Err(Error::new(Code::HeadersTooLarge, message));
        }
        Ok(())
    }

    /// Keeps a request waiting that is not worked on: who is refused at once asks again at once, and refusing takes the time
    /// of those who are served. A connection whose body is read meanwhile goes on, which costs less than a new one.
    async fn turn_away(&self, body: Body, is_known: bool) {
        let settings = &self.0.settings;
        let pause = tokio::time::sleep(settings.refusal_pause);
        let most = if is_known {
            settings.max_body_bytes
        } else {
            settings.max_body_bytes.min(MOST_SKIPPED_OF_A_STRANGER)
        };
        tokio::join!(pause, skip(body, most, settings.refusal_pause));
    }

    fn mint(&self) -> RequestId {
        let mut ids = self.0.ids.lock().unwrap_or_else(PoisonError::into_inner);
        RequestId(id::mint("req", self.0.clock.now(), &mut ids))
    }

    fn add_headers(&self, response: &mut Response<Body>, request_id: &RequestId, method: &Method) {
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&request_id.0) {
            headers.insert(REQUEST_ID, value);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.remove(SERVER);
        if matches!(*method, Method::GET | Method::HEAD) {
            headers.append(VARY, HeaderValue::from_static("Authorization"));
        }
        if self.0.settings.tls_is_ours {
            let one_year = HeaderValue::from_static("max-age=31536000");
            headers.insert(STRICT_TRANSPORT_SECURITY, one_year);
        }
    }
}

async fn ask(router: axum::Router, request: Request<Body>) -> Result<Response<Body>> {
    match catch_panic(router.oneshot(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(never)) => match never {},
        Err(panic) => Err(Error::internal(format!("panic: {panic}"))),
    }
}

/// What is said to the oldest of a full share. It is no fault of the server, and stands in no log: whoever floods would fill that.
fn crowded_out() -> Error {
    let message = "too many requests of this network wait that have shown no valid token; try again";
    Error::new(Code::RateLimited, message).retry_after(1)
}

/// D1.7: after these the peer may still be sending what nobody will read.
fn closes(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}
