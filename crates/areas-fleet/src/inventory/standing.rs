//! `POST …/inventory/mcp-servers/{serverId}/standing`

use super::model::{Server, ServerId, ServerPath, ServerView, Standing, Verdict};
use super::{fences, store, uses};
use crate::fleet::Sight;
use provost_areas_platform::settings::{self, HookMode, Judging};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, Timestamp, word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

word! {
    /// Where calls of a server that is denied are refused.
    #[schemars(extend("x-open" = true))]
    pub enum DenialEffect {
        /// On devices that judge, with their next heartbeat, and in decisions about events that name the key.
        DevicesRefuse = "devices_refuse",
        /// In decisions about events that name the key, and by hooks that are registered to enforce: the organization only monitors.
        Monitoring = "monitoring",
        /// In decisions about events that name the key alone: no device judges (fleet.hooks.judging is off), and hooks know a server by its name.
        JudgingOff = "judging_off",
    }
}

impl DenialEffect {
    fn of(ctx: &mut OperationContext<'_>, verdict: Verdict) -> Result<Option<Self>> {
        if verdict != Verdict::Denied {
            return Ok(None);
        }
        let hooks = settings::load(ctx)?.fleet.hooks;
        Ok(Some(match (hooks.judging, hooks.mode) {
            (Judging::Off, _) => Self::JudgingOff,
            (Judging::On, HookMode::Monitor) => Self::Monitoring,
            (Judging::On, HookMode::Enforce) => Self::DevicesRefuse,
        }))
    }
}

/// A server as it stands from now on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ServerThatStands {
    server: ServerView,
    /// Of a denial: where calls are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<DenialEffect>,
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
    type Output = ServerThatStands;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ServerThatStands> {
        let id = &input.path.server_id;
        ctx.target(&fences::SERVER, id.as_str());
        let mut server = store::get(ctx, id)?;
        let now = ctx.latest();
        stand(ctx, &mut server, input.body.standing, input.body.expires_at)?;
        let used = uses::of_servers(ctx, &[id])?.remove(id).unwrap_or_default();
        let effect = DenialEffect::of(ctx, input.body.standing)?;
        let sight = Sight::load(ctx)?;
        Ok(ServerThatStands {
            server: ServerView::of(server, now, used, &sight),
            effect,
        })
    }
}

/// Has a server stand otherwise from now on, in the name of the caller.
fn stand(
    ctx: &mut OperationContext<'_>,
    server: &mut Server,
    verdict: Verdict,
    until: Option<Timestamp>,
) -> Result<()> {
    let (now, by) = (ctx.latest(), ctx.actor().id.as_str());
    let (was, was_until) = (server.decided(now), server.standing_until);
    if server.decide(verdict, until, by, now)? {
        store::save_decision(ctx, server)?;
        let stands = server.decided(now);
        ctx.change("/standing", was.as_str(), stands.as_str());
        let text = |until: Option<Timestamp>| until.map(Timestamp::to_rfc3339);
        ctx.change("/standingUntil", text(was_until), text(server.standing_until));
        let of = fences::OfStanding {
            server_id: server.id.clone(),
            standing: stands,
        };
        ctx.emit(&fences::STANDING_CHANGED, &of);
    }
    Ok(())
}

/// What an approval of a server would be of.
pub struct Candidate {
    /// What it is.
    pub key: String,
    /// How the first client that had it calls it.
    pub name: String,
    /// What is decided about it now.
    pub standing: &'static str,
}

/// Returns what an approval of a server until an instant would be of.
///
/// Errors: `NotFound`; `Conflict` for what cannot be approved, and what is for as long; `InvalidDefinition` for an end that does not fit.
pub fn approvable(ctx: &mut OperationContext<'_>, id: &ServerId, until: Timestamp) -> Result<Candidate> {
    let mut server = store::get(ctx, id)?;
    let now = ctx.latest();
    let stands = server.decided(now);
    let is_for_as_long = server.standing_until.is_some_and(|end| end >= until);
    if stands == Standing::Approved && is_for_as_long {
        return Err(Error::new(
            Code::Conflict,
            "the MCP server is approved for as long already",
        ));
    }
    server.decide(Verdict::Approved, Some(until), "", now)?;
    Ok(Candidate {
        key: server.key,
        name: server.name,
        standing: stands.as_str(),
    })
}

/// Approves a server until an instant in the name of the caller, if it stands as it did when somebody asked for that.
///
/// Errors: as [`approvable`], and `Conflict` when it stands otherwise.
pub fn approve(ctx: &mut OperationContext<'_>, id: &ServerId, until: Timestamp, was: &str) -> Result<()> {
    let mut server = store::get(ctx, id)?;
    if server.decided(ctx.latest()).as_str() != was {
        let message = "the MCP server stands otherwise than when its approval was asked for; deny the request, whoever needs it asks again";
        return Err(Error::new(Code::Conflict, message));
    }
    stand(ctx, &mut server, Verdict::Approved, Some(until))
}
