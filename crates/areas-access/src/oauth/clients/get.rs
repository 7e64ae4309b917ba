//! `GET …/mcp/clients/{mcpClientId}`

use super::model::{ClientPath, ClientView};
use super::store;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetMcpClient;

impl Operation for GetMcpClient {
    const META: Meta = Meta::read("getHeadlessMcpClient", "/mcp/clients/{mcpClientId}", "mcp")
        .access("mcp:read", &[Admin])
        .command("mcp-clients", "get")
        .says("Show a registered MCP client", "");
    type Path = ClientPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ClientView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ClientView> {
        store::get(ctx, &input.path.mcp_client_id).map(ClientView::from)
    }
}
