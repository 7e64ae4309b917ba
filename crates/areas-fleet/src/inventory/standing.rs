//! `POST …/inventory/mcp-servers/{serverId}/standing`

use super::model::{OneServer, ServerPath, ServerView, Verdict};
use super::{fences, store, uses};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct SetStanding;

/// What is decided.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct StandingBody {
    /// How the server stands from now on; `shadow` takes back what was decided.
    standing: Verdict,
    /// The end of an approval, which every approval has: at most 366 days ahead. Then the server is shadow again.
    expires_at: Option<Timestamp>,
}

impl Operation for SetStanding {
    const META: Meta = Meta::write(
        "setHeadlessInventoryMcpServerStanding",
        Method::Post,
        "/inventory/mcp-servers/{serverId}/standing",
        "inventory",
    )
    .access("inventory:write", &[Admin])
    .command("inventory", "set-standing")
    .example(r#"{"standing": "denied"}"#)
    .says(
        "Decide how an MCP server stands",
        "It holds for the key of the server, whatever clients call it. A server whose key is weak wherever it is configured cannot \
         be approved, because an approval would also hold for whatever takes its place.",
    );
    type Path = ServerPath;
    type Query = provost_kernel::operation::Empty;
    type Body = StandingBody;
    type Output = OneServer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneServer> {
        let id = &input.path.server_id;
        ctx.target(&fences::SERVER, id.as_str());
        let mut server = store::get(ctx, id)?;
        let (now, by) = (ctx.latest(), ctx.actor().id.clone());
        let (was, was_until) = (server.decided(now), server.standing_until);
        if server.decide(input.body.standing, input.body.expires_at, &by, now)? {
            store::save_decision(ctx, &server)?;
            let stands = server.decided(now);
            ctx.change("/standing", was.as_str(), stands.as_str());
            let text = |until: Option<Timestamp>| until.map(Timestamp::to_rfc3339);
            ctx.change("/standingUntil", text(was_until), text(server.standing_until));
            let of = fences::OfStanding {
                server_id: id.clone(),
                standing: stands,
            };
            ctx.emit(&fences::STANDING_CHANGED, &of);
        }
        let used = uses::of_servers(ctx, &[id])?.remove(id).unwrap_or_default();
        Ok(OneServer {
            server: ServerView::of(server, now, used),
        })
    }
}
