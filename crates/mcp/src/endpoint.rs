//! The route `/mcp`: everything around the protocol. See the crate's text for the order.

use crate::call::{self, By};
use crate::catalogue::Catalogue;
use crate::content::{Document, Prompt};
use crate::fast_path::{FastMessage, FastQuestion};
use crate::guard::Guard;
use crate::handler::Handler;
use crate::selection::Selection;
use crate::session::{self, Session};
use crate::splice::splice;
use crate::{Options, client, explain, media, message};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http::header::{ACCEPT, ALLOW};
use http::{HeaderMap, HeaderValue, Method, request};
use http_body::Body as _;
use http_body_util::Full;
use provost_kernel::auth::{Actor, Origin};
use provost_kernel::credential::BearerToken;
use provost_kernel::dispatch::{
    self, EntryPoint, McpClient, Outcome, UnauthenticatedRequest, identify_and_call, recognize,
};
use provost_kernel::expose::edge::{RequestId, check_declared, read_body, respond};
use provost_kernel::expose::http::{AT_ONCE, answer, origin};
use provost_kernel::kernel::buckets;
use provost_kernel::{Code, Error, Kernel};
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// LIMIT: bytes of a message.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// A message must be complete within this time.
const READING: Duration = Duration::from_secs(10);
const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";

/// What all requests share. Nothing in it is anybody's.
pub(crate) struct SharedState {
    pub kernel: Arc<Kernel>,
    catalogue: OnceLock<Catalogue>,
    pub documents: Vec<Document>,
    pub prompts: Vec<Prompt>,
    pub info: ServerConfig,
    default: Selection,
    guard: Guard,
}

/// Where one request came from.
#[derive(Clone)]
pub(crate) struct Sender {
    pub entry_point: EntryPoint,
    pub origin: Origin,
    pub line: (Method, String),
}

/// Who sent one request, for the time of that request.
pub(crate) struct Caller {
    pub actor: Actor,
    pub presented: Arc<BearerToken>,
    pub sender: Sender,
    pub selection: Selection,
    pub request_id: RequestId,
    effect: Mutex<Option<Effect>>,
}

/// What one request says, before it is known who says it.
struct RequestHead {
    shared: Arc<SharedState>,
    headers: HeaderMap,
    sender: Sender,
    session: SessionReference,
    /// Nothing for a body that was not read.
    message: Option<Result<Value, message::Refusal>>,
    selection: Result<Selection, Error>,
}

impl RequestHead {
    /// Returns the request of a call in the usual form of a tool that is listed for its caller; nothing for every
    /// other message, right or wrong.
    fn wanted(&self, actor: &Actor, presented: &Arc<BearerToken>) -> Option<dispatch::Request> {
        let shared = &*self.shared;
        if self.sender.line.0 != Method::POST
            || media::check(&self.headers).is_err()
            || self.session.is_refused(&shared.kernel, actor)
        {
            return None;
        }
        let message = self.message.as_ref()?.as_ref().ok()?;
        let FastQuestion::Call(call) = FastMessage::read(message, &self.headers)?.ask else {
            return None;
        };
        let (place, tool) = shared
            .catalogue()
            .find(call.name, actor, self.selection.as_ref().ok()?)?;
        let entry = &shared.kernel.registry.entries()[place];
        let arguments = call.request().arguments.unwrap_or_default();
        let by = By {
            actor,
            presented,
            sender: &self.sender,
        };
        call::request(entry, place, tool, arguments, by).ok()
    }
}

/// What a method does to the response beside its result.
pub(crate) enum Effect {
    /// The request is refused after all.
    Refused(Outcome),
    /// The tools of a list, as an array's text.
    Tools(Bytes),
    /// The members in the place of a result's empty `content`.
    Content(String),
}

impl Caller {
    pub fn by(&self) -> By<'_> {
        By {
            actor: &self.actor,
            presented: &self.presented,
            sender: &self.sender,
        }
    }

    pub fn effect(&self, effect: Effect) {
        *self.effect.lock().unwrap_or_else(PoisonError::into_inner) = Some(effect);
    }
}

impl SharedState {
    /// Returns the tools, which are prepared when somebody first asks: a server that nobody asks for tools starts without them.
    pub fn catalogue(&self) -> &Catalogue {
        self.catalogue
            .get_or_init(|| Catalogue::of(&self.kernel.registry))
    }
}

type Protocol = StreamableHttpService<Handler, NeverSessionManager>;

/// Returns the route of the MCP endpoint. It goes through the edge like every other.
pub fn service(kernel: Arc<Kernel>, options: Options) -> Router {
    let shared = Arc::new(SharedState {
        catalogue: OnceLock::new(),
        guard: Guard::new(&options.allowed_hosts, &options.allowed_origins),
        info: info(&options),
        documents: options.documents,
        prompts: options.prompts,
        default: Selection::of(options.default_tools),
        kernel,
    });
    // Neither hosts nor origins are asked about here: the guard stands before the authentication.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .with_sse_retry(None)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .disable_allowed_hosts();
    let handlers = shared.clone();
    let protocol = Protocol::new(
        move || Ok(Handler(handlers.clone())),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let handler = move |request: Request| {
        let (shared, protocol) = (shared.clone(), protocol.clone());
        async move { handle(&shared, &protocol, request).await }
    };
    Router::new()
        .route("/mcp", any(handler.clone()))
        .route("/mcp/", any(handler))
}

fn info(options: &Options) -> ServerConfig {
    let mut capabilities = ServerCapabilities::builder().enable_tools().build();
    if !options.documents.is_empty() {
        capabilities.resources = Some(rmcp::model::ResourcesCapability::default());
    }
    if !options.prompts.is_empty() {
        capabilities.prompts = Some(rmcp::model::PromptsCapability::default());
        capabilities.completions = Some(serde_json::Map::new());
    }
    let mut server = Implementation::new(options.server_name.clone(), options.server_version.clone());
    server.title = Some(options.server_title.clone());
    ServerConfig::new(capabilities)
        .with_server_info(server)
        .with_instructions(options.instructions.clone())
}

async fn handle(shared: &Arc<SharedState>, protocol: &Protocol, request: Request) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    let id = id.unwrap_or_else(|| RequestId(String::new()));
    let accept = request.headers().get(ACCEPT).cloned();
    // INVARIANT ME-5: before all else.
    if let Err(error) = shared.guard.check(request.uri(), request.headers()) {
        return respond(&error, &id, accept.as_ref());
    }
    match serve(shared, protocol, request, &id, accept.as_ref()).await {
        Ok(response) | Err(response) => response,
    }
}

/// Authenticates, reads, hands over to the protocol, and finishes its response.
///
/// Errors: the response of a request that does not get that far.
async fn serve(
    shared: &Arc<SharedState>,
    protocol: &Protocol,
    request: Request,
    id: &RequestId,
    accept: Option<&HeaderValue>,
) -> Result<Response, Response> {
    let declared = check_declared(&request, MAX_BODY_BYTES);
    declared.map_err(|error| respond(&error, id, accept))?;
    let (parts, body) = request.into_parts();
    let head = head(&parts, id);
    // INVARIANT ME-1, ED-1: before anything of the body is read, let alone parsed.
    let (presented, body) = receive(&shared.kernel, &head, body)
        .await
        .map_err(|outcome| answer(&shared.kernel, outcome, id, accept, &head.entry_point))?;
    let message = body.as_ref().ok().map(|bytes| message::read(bytes));
    let session = SessionReference::read(&shared.kernel, &parts.headers);
    let known = message.as_ref().and_then(|read| read.as_ref().ok());
    let client = client_of(known, &session, &parts.headers).map_err(|client::TooLong| {
        let message = "the client's name must not have more than 2048 bytes";
        respond(&Error::new(Code::InvalidRequest, message), id, accept)
    })?;
    let entry_point = EntryPoint::Mcp(client.clone());
    let knock = UnauthenticatedRequest {
        entry_point: entry_point.clone(),
        ..head
    };
    let sender = Sender {
        entry_point: entry_point.clone(),
        origin: knock.origin.clone(),
        line: knock.line.clone(),
    };
    let asked = Arc::new(RequestHead {
        shared: shared.clone(),
        headers: parts.headers.clone(),
        sender,
        session,
        message,
        selection: Selection::read(parts.uri.query(), &parts.headers, &shared.default),
    });
    let started = shared.kernel.clock.monotonic();
    let want = asked.clone();
    // INVARIANT ME-1: before anything is said about the request.
    let known = identify_and_call(&shared.kernel, knock, presented, move |actor, presented| {
        want.wanted(actor, presented)
    })
    .await;
    let (identity, outcome) =
        known.map_err(|outcome| answer(&shared.kernel, outcome, id, accept, &entry_point))?;
    let refused = |error: &Error| respond(error, id, accept);
    if let Some(refusal) = refusal_of_head(&parts, id, accept) {
        return Err(refusal);
    }
    let body = body.map_err(|error| refused(&error))?;
    if asked.session.is_refused(&shared.kernel, &identity.actor) {
        let message = "there is no such MCP session; initialize again, without the header Mcp-Session-Id";
        return Err(refused(&Error::new(Code::NotFound, message)));
    }
    let selection = asked.selection.as_ref().map_err(&refused)?.clone();
    let message = match &asked.message {
        Some(Ok(message)) => message,
        Some(Err(refusal)) => return Err(refusal.respond()),
        None => &Value::Null,
    };
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    if method != "tools/call" {
        // Calls take from the bucket of their operation.
        let key = [identity.actor.organization.as_str(), identity.actor.id.as_str()];
        let limited = |error| Outcome {
            result: Err(error),
            rate: None,
        };
        shared
            .kernel
            .limit(&buckets::READ, &key)
            .map_err(|error| answer(&shared.kernel, limited(error), id, accept, &entry_point))?;
    }
    let opens = (method == "initialize").then_some(client);
    let caller = Arc::new(Caller {
        actor: identity.actor,
        presented: identity.presented,
        sender: asked.sender.clone(),
        selection,
        request_id: id.clone(),
        effect: Mutex::default(),
    });
    let is_done = outcome.is_some();
    let begun = outcome.map(|outcome| (outcome, started));
    let mut response = match express(shared, message, &parts.headers, &caller, begun).await {
        Some(response) => response,
        // What was done is not done again.
        None if is_done => return Err(refused(&Error::internal("the result of a call was not written"))),
        None => {
            let has_revision = parts.headers.contains_key(REVISION);
            let response = hand_over(protocol, parts, body, caller.clone()).await;
            explain::library(response, &message["id"], has_revision)
        }
    };
    if let Some(client) = opens.filter(|_| response.status().is_success()) {
        let session = session::open(&shared.kernel, &caller.actor, &client);
        if let Some(value) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
            response.headers_mut().insert(SESSION, value);
        }
    }
    finish(shared, response, &caller, accept).await
}

/// Answers a list, or a call of a tool that is listed for its caller, in the usual form, the call with its outcome if it
/// was done when its caller was found; nothing for every other message.
async fn express(
    shared: &Arc<SharedState>,
    message: &Value,
    headers: &HeaderMap,
    caller: &Caller,
    begun: Option<(Outcome, Duration)>,
) -> Option<Response> {
    let express = FastMessage::read(message, headers)?;
    let catalogue = shared.catalogue();
    let call = match &express.ask {
        FastQuestion::List => {
            caller.effect(Effect::Tools(catalogue.list(&caller.actor, &caller.selection)));
            return express.answer_list();
        }
        FastQuestion::Call(call) => call,
    };
    let (_, tool) = catalogue.find(call.name, &caller.actor, &caller.selection)?;
    let handler = Handler(shared.clone());
    let result = match begun {
        Some((outcome, started)) => handler.conclude(tool, outcome, started, caller),
        None => handler.call(call.request(), caller).await.ok()?,
    };
    express.answer(result)
}

/// Does to a response what its method wanted beside its result.
///
/// Errors: the response in its place.
async fn finish(
    shared: &SharedState,
    response: Response,
    caller: &Caller,
    accept: Option<&HeaderValue>,
) -> Result<Response, Response> {
    let effect = caller
        .effect
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let id = &caller.request_id;
    let spliced = match effect {
        None => Ok(response),
        Some(Effect::Refused(outcome)) => {
            return Err(answer(
                &shared.kernel,
                outcome,
                id,
                accept,
                &caller.sender.entry_point,
            ));
        }
        Some(Effect::Tools(tools)) => {
            let name = Bytes::from_static(b"\"tools\":");
            splice(response, b"\"tools\":[]", [name, tools]).await
        }
        Some(Effect::Content(members)) => {
            splice(response, b"\"content\":[]", [Bytes::new(), members.into()]).await
        }
    };
    spliced.map_err(|error| respond(&error, id, accept))
}

/// Returns what is known of a request before it is known which client sends it: its door, with a client without a name.
fn head(parts: &request::Parts, id: &RequestId) -> UnauthenticatedRequest {
    let nobody = McpClient {
        id: String::new(),
        display: None,
    };
    UnauthenticatedRequest {
        headers: parts.headers.clone(),
        origin: origin(parts, id),
        entry_point: EntryPoint::Mcp(nobody),
        line: (parts.method.clone(), parts.uri.path().to_owned()),
    }
}

/// Reads the body of a request that may have one, after its caller was recognized; a body that comes with its head, from a caller
/// whose token was valid a moment ago, before: that caller is looked at when the message is known.
///
/// Errors: the outcome that answers a request whose caller is not recognized.
async fn receive(
    kernel: &Arc<Kernel>,
    head: &UnauthenticatedRequest,
    body: Body,
) -> Result<ReceivedBody, Outcome> {
    if head.line.0 != Method::POST || body.is_end_stream() {
        return Ok((None, Ok(Bytes::new())));
    }
    let mut read = pin!(read_body(Request::new(body), MAX_BODY_BYTES, READING));
    let mut early = None;
    if head.origin.arrival.is_known() {
        early = tokio::time::timeout(AT_ONCE, read.as_mut()).await.ok();
    }
    let presented = match early {
        Some(Ok(_)) => None,
        Some(Err(_)) | None => Some(recognize(kernel, head).await?),
    };
    let read = match early {
        Some(read) => read,
        None => read.await,
    };
    Ok((presented, read.map(|(_, bytes)| bytes)))
}

/// The token of a request, where its caller was recognized already, and its body.
type ReceivedBody = (Option<Arc<BearerToken>>, Result<Bytes, Error>);

/// What a request says of its session.
enum SessionReference {
    None,
    Unknown,
    Session(Session),
}

impl SessionReference {
    fn read(kernel: &Kernel, headers: &HeaderMap) -> Self {
        let mut ids = headers.get_all(SESSION).iter();
        let Some(id) = ids.next() else { return Self::None };
        let id = id.to_str().ok().filter(|_| ids.next().is_none());
        id.and_then(|id| session::read(kernel, id))
            .map_or(Self::Unknown, Self::Session)
    }

    // INVARIANT ME-4: a session is its opener's.
    fn is_refused(&self, kernel: &Kernel, actor: &Actor) -> bool {
        match self {
            Self::None => false,
            Self::Unknown => true,
            Self::Session(session) => !session.is_of(kernel, actor),
        }
    }
}

/// The client in its own words: of this message, of the session, of the program that sends.
///
/// Errors: a name that is too long to be kept whole.
fn client_of(
    message: Option<&Value>,
    session: &SessionReference,
    headers: &HeaderMap,
) -> Result<McpClient, client::TooLong> {
    let named = message.map_or(Ok(None), client::of_message)?;
    let named = named.or_else(|| match session {
        SessionReference::Session(session) => Some(session.client.clone()),
        SessionReference::None | SessionReference::Unknown => None,
    });
    named.map_or_else(|| client::of_headers(headers), Ok)
}

/// Returns the response to a request whose method or media types do not fit. There is no stream to get and no session to delete; the
/// revisions allow a server to say so.
fn refusal_of_head(parts: &request::Parts, id: &RequestId, accept: Option<&HeaderValue>) -> Option<Response> {
    if parts.method != Method::POST {
        let message = "MCP messages are sent with POST; this server opens no stream and keeps no session";
        let mut response = respond(&Error::new(Code::MethodNotAllowed, message), id, accept);
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
        return Some(response);
    }
    let (status, message) = media::check(&parts.headers).err()?;
    let mut response = respond(&Error::new(Code::InvalidRequest, message), id, accept);
    *response.status_mut() = status;
    Some(response)
}

async fn hand_over(
    protocol: &Protocol,
    mut parts: request::Parts,
    body: Bytes,
    caller: Arc<Caller>,
) -> Response {
    parts.extensions.insert(caller);
    media::put_usual(&mut parts.headers);
    let request = http::Request::from_parts(parts, Full::new(body));
    protocol.handle(request).await.map(Body::new)
}
