//! Revokes one session (D7.10).

use super::model::cause;
use super::view::{OneSession, SessionPath};
use super::{end, store};
use crate::mcp_sessions::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Reason;
use provost_kernel::{OperationContext, Result};

pub struct RevokeMcpSession;

impl Operation for RevokeMcpSession {
    const META: Meta = Meta::write(
        "revokeHeadlessMcpSession",
        Method::Post,
        "/mcp/sessions/{sessionId}/revoke",
        "mcp",
    )
    .access("mcp:revoke", &[Admin])
    .command("mcp-sessions", "revoke")
    .says(
        "Revoke an MCP session",
        "Its tokens are refused from the next request on; a service account's token is refused at the MCP endpoint until \
         it is rotated. The reason, at most 256 characters, is kept as revokeReason. A session that has ended stays as \
         it is.",
    );
    type Path = SessionPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneSession;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneSession> {
        let id = &input.path.session_id;
        ctx.target(&fences::SESSION, id.as_str());
        let reason = cause(input.reason.as_ref().map(Reason::as_str))?;
        if end::end(ctx, id, reason)? {
            ctx.change("/status", "active", "revoked");
        }
        Ok(OneSession {
            session: store::get(ctx, id)?.into(),
        })
    }
}
