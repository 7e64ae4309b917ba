//! Takes spans.

use super::receive::{self, MEDIA_TYPES, PlainPayload, SECONDS};
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::operation::{Content, Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use provost_otlp::{MAX_EXPANDED, Signal};
use schemars::JsonSchema;
use serde::Serialize;

pub struct Receive;

/// `ExportTraceServiceResponse`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct TraceExportAnswer {
    /// What was not accepted; absent when everything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_success: Option<Partial>,
}

/// What was not accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Partial {
    /// How many spans, in decimal digits.
    rejected_spans: String,
    /// Why the first of them was not.
    error_message: String,
}

impl Operation for Receive {
    const META: Meta = Meta::ingest("receiveHeadlessPolicyTraces", "/otlp/v1/traces", "policies")
        .access("policies:decide", &[Admin, Operator])
        .consumes(MEDIA_TYPES, MAX_EXPANDED, SECONDS)
        .expands()
        .command("otlp", "traces")
        .says(
            "Receive spans of agents",
            "An OTLP/HTTP receiver: ExportTraceServiceRequest in protocol buffers or JSON, gzip or not, at most 16 MiB expanded \
             and 10000 spans. Tool calls and model calls after the conventions for generative AI and MCP become two recorded \
             events each, of their begin and their end; other spans are skipped. The answer comes after the commit, in the \
             media type of the request. Spans of more than 1 MiB, older than the retention or more than five minutes ahead \
             are rejected.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = PlainPayload;
    type Output = TraceExportAnswer;

    fn read_content(content: Content) -> Result<PlainPayload> {
        PlainPayload::of(&content)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<TraceExportAnswer> {
        receive::receive(ctx, Signal::Traces, &input.body)?;
        Ok(TraceExportAnswer {
            partial_success: None,
        })
    }
}
