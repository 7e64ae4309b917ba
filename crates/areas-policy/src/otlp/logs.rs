//! Takes log records.

use super::receive::{self, MEDIA_TYPES, PlainPayload, SECONDS};
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::operation::{Content, Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use provost_otlp::{MAX_EXPANDED, Signal};
use schemars::JsonSchema;
use serde::Serialize;

pub struct Receive;

/// `ExportLogsServiceResponse`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LogsExportAnswer {
    /// What was not accepted; absent when everything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_success: Option<Partial>,
}

/// What was not accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Partial {
    /// How many records, in decimal digits.
    rejected_log_records: String,
    /// Why the first of them was not.
    error_message: String,
}

impl Operation for Receive {
    const META: Meta = Meta::ingest("receiveHeadlessPolicyLogs", "/otlp/v1/logs", "policies")
        .access("policies:decide", &[Admin, Operator])
        .consumes(MEDIA_TYPES, MAX_EXPANDED, SECONDS)
        .expands()
        .command("otlp", "logs")
        .says(
            "Receive log records of agents",
            "An OTLP/HTTP receiver: ExportLogsServiceRequest in protocol buffers or JSON, gzip or not, at most 16 MiB expanded \
             and 10000 records. The events that Claude Code and Codex export and those of the conventions for generative AI \
             become recorded events; other records are skipped. The answer comes after the commit, in the media type of the \
             request. Records of more than 1 MiB, older than the retention or more than five minutes ahead are rejected.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = PlainPayload;
    type Output = LogsExportAnswer;

    fn read_content(content: Content) -> Result<PlainPayload> {
        PlainPayload::of(&content)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<LogsExportAnswer> {
        receive::receive(ctx, Signal::Logs, &input.body)?;
        Ok(LogsExportAnswer {
            partial_success: None,
        })
    }
}
