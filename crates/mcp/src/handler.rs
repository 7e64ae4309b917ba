//! The methods of the protocol, behind `rmcp`. Who calls stands in the request's extensions ([`Caller`]).

use crate::answer;
use crate::call;
use crate::catalogue::Tool;
use crate::content::{Document, Prompt, cut};
use crate::endpoint::{Caller, Effect, SharedState};
use provost_kernel::dispatch::{self, Outcome};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, Reference, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Revisions that are served. The one before had another transport.
pub(crate) const REVISIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// Methods whose parameters can be wrong; another method is unknown.
const METHODS: [&str; 11] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "ping",
];

/// Answers one request.
pub(crate) struct Handler(pub Arc<SharedState>);

type Context = RequestContext<RoleServer>;

fn caller(context: &Context) -> Result<Arc<Caller>, ErrorData> {
    let parts = context.extensions.get::<http::request::Parts>();
    let caller = parts.and_then(|parts| parts.extensions.get::<Arc<Caller>>());
    // INVARIANT ME-1: no method is answered for nobody.
    caller
        .cloned()
        .ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

/// Says whether a request is of the revision that has no `initialize`. The library has compared header and message.
fn is_newest(context: &Context) -> bool {
    let parts = context.extensions.get::<http::request::Parts>();
    let version = parts.and_then(|parts| parts.headers.get("mcp-protocol-version"));
    version.is_some_and(|version| version == ProtocolVersion::V_2026_07_28.as_str())
}

fn unknown_cursor() -> ErrorData {
    let message = "/params/cursor is not a cursor that this list returned: it has one page; list again without a cursor";
    ErrorData::invalid_params(message, None)
}

/// Every list has one page, and gives out no cursor. There are clients that send an empty one at first.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(cursor) if !cursor.is_empty() => Err(unknown_cursor()),
        Some(_) | None => Ok(()),
    }
}

impl Handler {
    /// Calls a tool.
    ///
    /// Errors: `invalid params` for a tool that is not listed for the caller, which names the address that lists it, if there is
    /// one.
    pub async fn call(
        &self,
        request: CallToolRequestParams,
        caller: &Caller,
    ) -> Result<CallToolResult, ErrorData> {
        let shared = &self.0;
        let found = shared
            .catalogue()
            .find(&request.name, &caller.actor, &caller.selection);
        // INVARIANT ME-2: one answer for what does not exist and for what the caller may not know of.
        let Some((place, tool)) = found else {
            let sentence = if let Some(meta) = shared.catalogue().offered(&request.name, &caller.actor) {
                caller.selection.says_where(meta)
            } else {
                self.note_denial(&request.name, caller).await;
                format!("unknown tool: {}", cut(&request.name))
            };
            return Err(ErrorData::invalid_params(sentence, None));
        };
        let started = shared.kernel.clock.monotonic();
        let entry = &shared.kernel.registry.entries()[place];
        let arguments = request.arguments.unwrap_or_default();
        let outcome = match call::request(entry, place, tool, arguments, caller.by()) {
            Ok(request) => dispatch::dispatch(&shared.kernel, request).await,
            Err(error) => refused(error),
        };
        Ok(self.conclude(tool, outcome, started, caller))
    }

    /// Turns the outcome of a tool's operation, which began at `started`, into the tool's result.
    pub fn conclude(
        &self,
        tool: &Tool,
        outcome: Outcome,
        started: Duration,
        caller: &Caller,
    ) -> CallToolResult {
        let status = outcome
            .result
            .as_ref()
            .map_or_else(|error| error.code().status(), |answer| answer.status);
        count(
            tool.meta.id,
            status,
            self.0.kernel.clock.monotonic().saturating_sub(started),
        );
        // INVARIANT ME-1: who was revoked since the request was authenticated is told so by HTTP.
        if status == 401 {
            caller.effect(Effect::Refused(outcome));
            return CallToolResult::error(Vec::new());
        }
        let effect = outcome
            .result
            .and_then(|answer| answer::of_answer(tool.meta, &answer));
        match effect {
            Ok(effect) => {
                caller.effect(effect);
                CallToolResult::success(Vec::new())
            }
            Err(error) => answer::of_error(tool.meta, &error, &caller.request_id.0),
        }
    }
}

impl Handler {
    /// Lets the kernel refuse, so that the audit log holds who tried what. The caller hears nothing of it.
    async fn note_denial(&self, name: &str, caller: &Caller) {
        let Some(place) = self.0.catalogue().forbidden(name, &caller.actor) else {
            return;
        };
        let refused = dispatch::dispatch(&self.0.kernel, call::bare(place, caller.by())).await;
        if refused
            .result
            .as_ref()
            .is_err_and(|error| error.code().status() == 401)
        {
            caller.effect(Effect::Refused(refused));
        }
    }
}

fn refused(error: provost_kernel::Error) -> Outcome {
    Outcome {
        result: Err(error),
        rate: None,
    }
}

fn count(operation: &'static str, status: u16, took: Duration) {
    metrics::counter!("provost_requests_total", "operation" => operation, "status" => status.to_string())
        .increment(1);
    metrics::histogram!("provost_request_seconds", "operation" => operation).record(took.as_secs_f64());
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.0.info.clone()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(REVISIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = caller(&context)?;
        one_page(request)?;
        let tools = self.0.catalogue().list(&caller.actor, &caller.selection);
        caller.effect(Effect::Tools(tools));
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context)?;
        self.call(request, &caller).await.map(CallToolResponse::Complete)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        caller(&context)?;
        one_page(request)?;
        Ok(ListResourcesResult {
            resources: self.0.documents.iter().map(Document::described).collect(),
            ..ListResourcesResult::default()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        caller(&context)?;
        let document = self
            .0
            .documents
            .iter()
            .find(|document| document.uri == request.uri);
        let document = document.ok_or_else(|| {
            // The library turns the code into that of the caller's revision; the newest wants the URI beside it.
            let message = format!("there is no resource {}", cut(&request.uri));
            ErrorData::resource_not_found(message, Some(serde_json::json!({ "uri": request.uri })))
        })?;
        Ok(document.read().into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        caller(&context)?;
        one_page(request)?;
        Ok(ListPromptsResult {
            prompts: self.0.prompts.iter().map(Prompt::described).collect(),
            ..ListPromptsResult::default()
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        caller(&context)?;
        let prompt = self.0.prompts.iter().find(|prompt| prompt.name == request.name);
        let unknown = || ErrorData::invalid_params(format!("unknown prompt: {}", cut(&request.name)), None);
        Ok(prompt.ok_or_else(unknown)?.get(request.arguments)?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        caller(&context)?;
        let Reference::Prompt(reference) = &request.r#ref else {
            return Ok(CompleteResult::default());
        };
        // Whoever types is not interrupted: what is unknown has no proposals.
        let prompt = self.0.prompts.iter().find(|prompt| prompt.name == reference.name);
        Ok(prompt
            .map(|prompt| prompt.complete(&request.argument.name, &request.argument.value))
            .unwrap_or_default())
    }

    /// What the library could not read as one of its methods: another method, or parameters of another form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        let is_removed = request.method == "initialize" && is_newest(&context);
        if METHODS.contains(&request.method.as_str()) && !is_removed {
            let message = format!(
                "the parameters of {} do not have the form of the protocol",
                request.method
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            cut(&request.method),
            None,
        ))
    }
}
