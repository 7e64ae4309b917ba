//! Reads one session.

use super::store;
use super::view::{OneSession, SessionPath};
use crate::mcp_sessions::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetMcpSession;

impl Operation for GetMcpSession {
    const META: Meta = Meta::read("getHeadlessMcpSession", "/mcp/sessions/{sessionId}", "mcp")
        .access("mcp:read", &[Admin])
        .command("mcp-sessions", "get")
        .sensitive()
        .says("Read an MCP session", "Ended sessions can be read for 90 days.");
    type Path = SessionPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneSession;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneSession> {
        let id = &input.path.session_id;
        ctx.target(&fences::SESSION, id.as_str());
        Ok(OneSession {
            session: store::get(ctx, id)?.into(),
        })
    }
}
