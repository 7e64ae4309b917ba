//! `DELETE …/mcp/clients/{mcpClientId}`

use super::model::ClientPath;
use super::store;
use crate::mcp_sessions;
use crate::oauth::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{Cx, Result};
use serde_json::Value;

/// See [`Operation::META`].
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
    .says("Delete a registered MCP client", "All of its sessions end.");
    type Path = ClientPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.mcp_client_id;
        cx.target(&fences::CLIENT, id.as_str());
        let client = store::get(cx, id)?;
        mcp_sessions::end_all_of_client(cx, id.as_str(), "client_blocked")?;
        store::delete(cx, id)?;
        cx.change("/name", client.name, Value::Null);
        cx.emit(
            &fences::CLIENT_DELETED,
            &fences::OfClient {
                mcp_client_id: id.clone(),
            },
        );
        Ok(NoContent {})
    }
}
