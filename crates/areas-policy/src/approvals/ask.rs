//! `POST …/approvals`: somebody asks by hand.
//!
//! INVARIANT AP-11: what somebody asks for by hand is done in the commit of the vote that decides it, by somebody who could do it without
//! being asked, and only while it stands as it did when it was asked for.

use super::model::{
    Approval, ApprovalId, BY_HAND_SECS, GrantId, Kind, MOST, MOST_BY_HAND, MOST_OF_ASKER, Party, State,
};
use super::plan::QUORUM;
use super::routes::{self, Route, Wanted};
use super::view::{ApprovalView, CallView, OneApproval, ServerWish};
use super::{binding, expire, fences, rights, store};
use provost_areas_fleet::inventory::{self, ServerId};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::{Code, Error};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{IntegerBetween, Reason};
use provost_kernel::{Kernel, OperationContext, Result, hex::hex};
use provost_words::visible::lines_visible;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The hash of what is asked for by hand, under a key of the installation.
const REQUEST: MacPurpose = MacPurpose::Own("provost/mac/approval-request/v1");
/// With it somebody approves a server without being asked.
const APPROVING: &str = "inventory:write";
const REQUESTED_SERVER: &str = "/serverId";

pub struct AskApproval;

provost_kernel::word! {
    /// What can be asked for.
    pub enum Wish {
        /// That an MCP server of the inventory is approved.
        McpServer = "mcp_server",
        /// A tool of a server; not yet.
        McpTool = "mcp_tool",
        /// A call; a decision asks for it, and nobody by hand.
        ToolCall = "tool_call",
        /// A skill; not yet.
        Skill = "skill",
        /// A membership or a role; not yet.
        Access = "access",
        /// An exception to a policy; not yet.
        Exception = "exception",
        /// A request that needs two people; the request itself asks for it.
        Operation = "operation",
    }
}

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AskBody {
    /// What is asked for: `mcp_server`. The other kinds are refused by name until they are there.
    kind: Wish,
    /// The MCP server of the inventory.
    #[schemars(with = "Option<String>")]
    server_id: Option<ServerId>,
    /// How long it is to hold, from the approval on: at most 366 days.
    expires_in_seconds: IntegerBetween<3_600, 31_622_400>,
    /// Why, for who decides.
    justification: Reason,
}

impl Operation for AskApproval {
    const META: Meta = Meta::write(
        "createHeadlessApproval",
        Method::Post,
        "/approvals",
        "mcp_approvals",
    )
    .rule(Access::ScopedBoth {
        scope: "mcp_approvals:request",
        other: "inventory:read",
        roles: &[Admin, Operator, Auditor, Viewer],
    })
    .command("approvals", "ask")
    .status(201)
    .example(
        r#"{"kind": "mcp_server", "serverId": "srv_01kaf9q2m4x7t8v3c5d6e0g1h2", "expiresInSeconds": 2592000,
           "justification": "the tickets of my team are there"}"#,
    )
    .says(
        "Ask for an approval",
        "For the caller: that an MCP server of the inventory is approved. Whoever decides it sees the server and the justification; \
         with the vote the server stands approved, for as long as was asked. The same request again joins the one that waits, for \
         seven days at most.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = AskBody;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        let body = &input.body;
        let id = server_of(body)?;
        store::keep_time(ctx)?;
        let (org, now, actor) = (ctx.org(), ctx.latest(), ctx.actor());
        let asker = Party::of(actor);
        let expires_in_seconds = body.expires_in_seconds.get();
        let server =
            inventory::approvable(ctx, id, now.plus_secs(expires_in_seconds)).map_err(|error| match error
                .code()
            {
                Code::NotFound => unfit(REQUESTED_SERVER, "names no MCP server of the inventory"),
                _ => error,
            })?;
        let wish = ServerWish {
            id: id.clone(),
            key: lines_visible(&server.key).into_owned(),
            name: lines_visible(&server.name).into_owned(),
            standing: server.standing.to_owned(),
            expires_in_seconds,
        };
        let kernel = Kernel::behind(ctx.services())?;
        let call_mac = mac(&kernel.keys, org, &asker, &wish);
        for mut open in store::of_call(&mut ctx.tx(), org, &call_mac)? {
            // What waits is joined, and what waited too long makes room.
            if !expire(ctx, &mut open)? {
                ctx.target(&fences::APPROVAL, open.id.as_str());
                return Ok(OneApproval {
                    approval: ApprovalView::of(ctx, open, None),
                });
            }
        }
        let approval = opened(ctx, &kernel, asker, &wish, call_mac, body.justification.as_str())?;
        store::insert(ctx, &approval)?;
        ctx.target(&fences::APPROVAL, approval.id.as_str());
        ctx.change("/state", serde_json::Value::Null, approval.state.as_str());
        ctx.change("/serverId", serde_json::Value::Null, id.as_str());
        ctx.emit(&fences::REQUESTED, &fences::OfApproval::of(&approval));
        Ok(OneApproval {
            approval: ApprovalView::of(ctx, approval, None),
        })
    }
}

/// Returns the server that is asked for.
///
/// Errors: `InvalidDefinition` for a kind that cannot be asked for by hand, and without a server.
fn server_of(body: &AskBody) -> Result<&ServerId> {
    match (body.kind, &body.server_id) {
        (Wish::McpServer, Some(id)) => Ok(id),
        (Wish::McpServer, None) => Err(unfit(
            REQUESTED_SERVER,
            "must name the MCP server that is asked for",
        )),
        (Wish::ToolCall, _) => Err(unfit(
            "/kind",
            "tool_call is asked for by the decision about the call, and not by hand",
        )),
        (Wish::Operation, _) => Err(unfit(
            "/kind",
            "operation is asked for by the request itself, with the query requestApproval=true",
        )),
        (kind, _) => {
            let message = format!("{} cannot be asked for yet; mcp_server can", kind.as_str());
            Err(unfit("/kind", &message))
        }
    }
}

fn unfit(path: &str, message: &str) -> Error {
    Error::new(Code::InvalidDefinition, format!("{path}: {message}")).and_field(path, message)
}

fn mac(keys: &Keys, organization: &str, asker: &Party, wish: &ServerWish) -> String {
    let seconds = wish.expires_in_seconds.to_string();
    let parts: [&[u8]; 7] = [
        organization.as_bytes(),
        asker.kind.as_bytes(),
        asker.id.as_bytes(),
        wish.id.as_str().as_bytes(),
        wish.key.as_bytes(),
        wish.standing.as_bytes(),
        seconds.as_bytes(),
    ];
    hex(&keys.mac(REQUEST, &parts))
}

/// Returns a new request.
///
/// Keeps AP-8. Errors: `RateLimited` where too many wait, or were made within an hour.
fn opened(
    ctx: &mut OperationContext<'_>,
    kernel: &Kernel,
    asker: Party,
    wish: &ServerWish,
    call_mac: String,
    justification: &str,
) -> Result<Approval> {
    let (org, now) = (ctx.org(), ctx.latest());
    let owner_id = rights::owner_of(&mut ctx.tx(), org, &asker)?;
    let counts = store::counts(&mut ctx.tx(), org, (&asker, &owner_id), &asker, now)?;
    // What is asked for by hand waits for days, and leaves half of the queue to calls.
    if counts.by_hand >= MOST_BY_HAND || counts.of_asker >= MOST_OF_ASKER || counts.waiting >= MOST / 2 {
        let message = "too many approvals were asked for or wait; ask again when some are decided";
        return Err(Error::new(Code::RateLimited, message).retry_after(3_600));
    }
    let Some(subject_rights) = rights::of_party(&mut ctx.tx(), org, &asker)? else {
        return Err(Error::new(Code::Conflict, "the caller acts no more"));
    };
    let sought = Wanted {
        kind: Kind::McpServer,
        tool: &wish.key,
        asker: &asker,
        subject: &asker,
    };
    let mut tx = ctx.tx();
    let route = routes::fitting(&mut tx, org, &sought)?;
    let frozen = match &route {
        Some(route) => {
            let behind = rights::behind_parties(&mut tx, org, (&asker, &asker), None)?;
            Some(routes::freeze(&mut tx, org, route, &sought, &behind)?)
        }
        None => None,
    };
    let id: ApprovalId = ctx.new_id();
    let shown = json!({ "server": wish, "justification": lines_visible(justification) });
    let shown = serde_json::to_vec(&shown).map_err(Error::internal)?;
    let sealed = kernel
        .keys
        .seal(&super::view::place(org, &id), &shown, ctx.rng())?;
    let grant_id: GrantId = ctx.new_id();
    Ok(Approval {
        grant_id,
        kind: Kind::McpServer,
        state: State::Pending,
        subject: asker.clone(),
        asker,
        owner_id,
        subject_rights,
        binding_mac: binding::digest(&kernel.keys, org, &id, &call_mac, &[])?,
        call_mac,
        tool: wish.key.clone(),
        gains: Vec::new(),
        policies: Vec::new(),
        quorum: route.as_ref().map_or(QUORUM, Route::quorum),
        votes: Vec::new(),
        max_uses: 1,
        uses: Vec::new(),
        deadline_at: now.plus_secs(route.as_ref().map_or(BY_HAND_SECS, Route::deadline_secs)),
        route: frozen,
        grant_until: None,
        sealed: Some(sealed),
        created_at: now,
        decided_at: None,
        ended_at: None,
        end_reason: None,
        revision: 0,
        id,
    })
}

/// Does what was asked for by hand, in the unit of the vote that approved it; of a call or an operation there is nothing to do until it comes again.
///
/// Keeps AP-11. Errors: `InsufficientScope` for a voter who could not do it; `Conflict` when it stands otherwise than it did.
pub fn perform(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    shown: Option<&CallView>,
) -> Result<()> {
    if approval.kind != Kind::McpServer {
        return Ok(());
    }
    let wish = shown.and_then(CallView::server);
    let wish = wish.ok_or_else(|| Error::internal("a request of a server without the server"))?;
    let (org, now, actor) = (ctx.org(), ctx.latest(), ctx.actor());
    if !actor.permission.scopes.has(APPROVING) {
        let message = "who approves a server may approve it without being asked; this token may not";
        return Err(Error::new(Code::InsufficientScope, message).with("scope", APPROVING));
    }
    let kernel = Kernel::behind(ctx.services())?;
    if mac(&kernel.keys, org, &approval.asker, wish) != approval.call_mac {
        // The key of hashes is another since, or what was sealed is not what waits.
        return Err(moved());
    }
    let until = now.plus_secs(wish.expires_in_seconds);
    inventory::approve(ctx, &wish.id, until, &wish.standing).map_err(|error| match error.code() {
        Code::NotFound => moved(),
        _ => error,
    })?;
    approval.grant_until = Some(until);
    approval
        .consume(wish.id.as_str(), now)
        .map_err(|_| Error::internal("a request of a server that cannot be used"))?;
    Ok(())
}

fn moved() -> Error {
    let message = "the server is not known as it was when it was asked for; deny the request, whoever needs it asks again";
    Error::new(Code::Conflict, message)
}
