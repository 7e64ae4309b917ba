//! Revokes all sessions of a client, a service account or a user, or shows which that would be.

use super::end::end_all;
use super::find::{self, Filter, SessionPage};
use super::model::{Subject, cause};
use super::view::{SessionView, StatusFilter};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::listing::FilterText;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Reason;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// LIMIT: sessions that a preview names.
const MAX_NAMED: i64 = 20;
/// LIMIT: what a preview and an answer say exactly.
const COUNTED: i64 = 10_000;

pub struct RevokeMcpSessions;

/// Whose sessions; exactly one member.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend(
    "oneOf" = [
        { "required": ["clientId"], "properties": { "clientId": { "type": "string" } } },
        { "required": ["serviceAccountId"], "properties": { "serviceAccountId": { "type": "string" } } },
        { "required": ["consoleUserId"], "properties": { "consoleUserId": { "type": "string" } } },
    ],
    "if" = { "required": ["confirm"], "properties": { "confirm": { "const": true } } },
    "then" = { "required": ["reason", "idempotencyKey"] },
))]
#[expect(clippy::struct_field_names, reason = "the names on the wire")]
pub struct RevokeBody {
    /// Those of this MCP client.
    client_id: Option<FilterText<2048>>,
    /// Those of this service account, and of agents that act for it.
    service_account_id: Option<FilterText<256>>,
    /// Those of this user, and of agents that act for it.
    console_user_id: Option<FilterText<256>>,
}

impl RevokeBody {
    fn subject(&self) -> Result<Subject> {
        match (&self.client_id, &self.service_account_id, &self.console_user_id) {
            (Some(id), None, None) => Ok(Subject::Client(id.as_str().to_owned())),
            (None, Some(id), None) => Ok(Subject::ServiceAccount(id.as_str().to_owned())),
            (None, None, Some(id)) => Ok(Subject::ConsoleUser(id.as_str().to_owned())),
            _ => Err(Error::invalid(
                "",
                "needs exactly one of clientId, serviceAccountId and consoleUserId",
            )),
        }
    }
}

/// Either what would be revoked or what was.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[schemars(inline, extend("type" = "object"))]
pub enum RevokeOutcome {
    /// Nothing was done.
    Preview(Preview),
    /// They have ended, all of them.
    Completed(RevocationResult),
}

/// Why an answer is perhaps not what was meant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Warning {
    /// `nothing_to_revoke`. Open.
    code: &'static str,
    /// A sentence for people.
    message: &'static str,
}

/// Says that a revocation that names somebody ends nothing.
fn warnings(found: &SessionPage) -> Option<Vec<Warning>> {
    let warning = || Warning {
        code: "nothing_to_revoke",
        message: "there is no active session of this client, service account or user; compare the id with those that the list shows",
    };
    (found.total == 0).then(|| vec![warning()])
}

/// What would be revoked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Preview {
    /// How many, at most 10 000.
    count: i64,
    /// `false` when there are more.
    count_is_exact: bool,
    /// The newest of them, at most 20.
    sessions: Vec<SessionView>,
    /// Present when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Warning>>,
}

/// What was revoked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RevocationResult {
    /// How many, at most 10 000.
    count: i64,
    /// `false` when there were more.
    count_is_exact: bool,
    /// Present when nothing was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Warning>>,
}

impl Operation for RevokeMcpSessions {
    const META: Meta = Meta::write(
        "revokeHeadlessMcpSessions",
        Method::Post,
        "/mcp/sessions/revoke",
        "mcp",
    )
    .access("mcp:read", &[Admin])
    .previews("mcp:revoke", &[Admin])
    .command("mcp-sessions", "revoke-all")
    .example(r#"{"clientId": "https://editor.example/client.json"}"#)
    .says(
        "Preview or perform the revocation of all sessions of a client, a service account or a user",
        "Without confirm true it shows how many sessions that would be and writes nothing. With it all of them are \
         refused from the next request on; the events of very many follow. The reason, at most 256 characters, is kept as \
         revokeReason. Sessions opened later are not touched.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = RevokeBody;
    type Output = RevokeOutcome;

    fn validate(input: &Input<Self>) -> Result<()> {
        cause(input.reason.as_ref().map(Reason::as_str))?;
        input.body.subject().map(drop)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RevokeOutcome> {
        let subject = input.body.subject()?;
        ctx.target(subject.kind(), subject.id());
        let found = active(ctx, &subject)?;
        if !input.confirm {
            return Ok(RevokeOutcome::Preview(Preview {
                count: found.total,
                count_is_exact: found.is_exact,
                warnings: warnings(&found),
                sessions: found.sessions.into_iter().map(SessionView::from).collect(),
            }));
        }
        end_all(ctx, &subject, cause(input.reason.as_ref().map(Reason::as_str))?)?;
        ctx.change("/activeSessions", found.total, 0);
        Ok(RevokeOutcome::Completed(RevocationResult {
            count: found.total,
            count_is_exact: found.is_exact,
            warnings: warnings(&found),
        }))
    }
}

fn active(ctx: &mut OperationContext<'_>, subject: &Subject) -> Result<SessionPage> {
    let mut filter = Filter {
        status: Some(StatusFilter::Active),
        ..Filter::default()
    };
    match subject {
        Subject::Client(id) => filter.client = Some(id),
        Subject::ServiceAccount(id) => filter.account = Some(id),
        Subject::ConsoleUser(id) => filter.user = Some(id),
    }
    find::page(ctx, &filter, (MAX_NAMED, 0), COUNTED)
}
