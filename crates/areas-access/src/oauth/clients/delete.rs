//! `DELETE …/mcp/clients/{mcpClientId}`

use super::model::ClientPath;
use super::store;
use crate::mcp_sessions;
use crate::oauth::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct DeleteMcpClient;

impl Operation for DeleteMcpClient {
    const META: Meta = Meta::write(
        "deleteHeadlessMcpClient",
        Method::Delete,
        "/mcp/clients/{mcpClientId}",
        "mcp",
    )
    .access("mcp:write", &[Admin])
    .command("mcp-clients", "delete")
    .confirmed()
    .status(204)
    .of_two(&["removals"])
    .says("Delete a registered MCP client", "All of its sessions end.");
    type Path = ClientPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        store::standing(ctx, &input.path.mcp_client_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.mcp_client_id;
        ctx.target(&fences::CLIENT, id.as_str());
        let client = store::get(ctx, id)?;
        mcp_sessions::end_all_of_client(ctx, id.as_str(), "client_blocked")?;
        store::delete(ctx, id)?;
        ctx.change("/name", client.name, Value::Null);
        ctx.emit(
            &fences::CLIENT_DELETED,
            &fences::OfClient {
                mcp_client_id: id.clone(),
            },
        );
        Ok(NoContent {})
    }
}
