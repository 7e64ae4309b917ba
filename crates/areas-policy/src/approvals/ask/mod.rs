//! `POST …/approvals`: somebody asks by hand.
//!
//! ```text
//!   asked for ──► what it is now, frozen and shown ──votes──► the voter does it, in the commit of the vote ──► used
//!                                                       └─ it is another by now: 409, and the request waits on
//! ```
//!
//! INVARIANT AP-11: what somebody asks for by hand is done in the commit of the vote that decides it, by somebody who could do it without
//! being asked, and only while it stands as it did when it was asked for.
//!
//! Keeps AP-17, AP-18.

mod exception;
mod server;

use super::model::{Approval, Kind};
use super::view::{ApprovalView, CallView, OneApproval};
use super::{expire, fences, store};
use crate::policies::Document;
use provost_areas_fleet::inventory::ServerId;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::{Code, Error};
use provost_kernel::json::{self, ExactNumbers};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{IntegerBetween, LongName, Reason};
use provost_kernel::{OperationContext, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

pub use server::drift;

pub struct AskApproval;

provost_kernel::word! {
    /// What can be asked for.
    pub enum Wish {
        /// That an MCP server of the inventory is approved.
        McpServer = "mcp_server",
        /// A tool of a server; nobody here knows what it does.
        McpTool = "mcp_tool",
        /// A call; a decision asks for it, and nobody by hand.
        ToolCall = "tool_call",
        /// A skill; nothing would hold it to a version and an end.
        Skill = "skill",
        /// A membership or a role; not yet.
        Access = "access",
        /// An exception to a policy.
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
    /// What is asked for: `mcp_server` or `exception`. The other kinds are refused by name, with the way to what they are for.
    kind: Wish,
    /// With `mcp_server`: the MCP server of the inventory.
    #[schemars(with = "Option<String>")]
    server_id: Option<ServerId>,
    /// With `exception`: the policy.
    policy_id: Option<LongName>,
    /// With `exception`: when it is to hold, as policies say it; it holds for the caller alone whatever this says. Absent: whenever the policy
    /// judges the caller.
    conditions: Option<Narrowing>,
    /// How long it is to hold: of a server from the approval on, of an exception from now on, so that who decides sees its end. At most 366 days.
    expires_in_seconds: IntegerBetween<3_600, 31_622_400>,
    /// Why, for who decides; an exception keeps it as its reason.
    justification: Reason,
}

/// A condition, with the numbers that its author wrote.
#[derive(Clone, Debug)]
struct Narrowing {
    condition: Value,
    /// Whether a number of it is none of 64-bit floating point.
    is_inexact: bool,
}

impl Narrowing {
    /// Returns the condition.
    ///
    /// Errors: `unfit` where what it would be compared with is another number than the one that was written. No schema says so: it is
    /// refused by who reads it, not while it is decoded.
    fn exact(&self) -> Result<&Value> {
        if self.is_inexact {
            let message = "must have no number that 64-bit floating point rounds";
            return Err(Error::unfit("/conditions", message));
        }
        Ok(&self.condition)
    }
}

impl<'de> Deserialize<'de> for Narrowing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let ExactNumbers(Document(members)) = ExactNumbers::<Document>::deserialize(deserializer)?;
        let mut condition = Value::Object(members);
        let is_inexact = json::mark_whole(&mut condition);
        Ok(Self {
            condition,
            is_inexact,
        })
    }
}

impl JsonSchema for Narrowing {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Narrowing".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Document::json_schema(generator)
    }
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
        "For the caller: that an MCP server of the inventory is approved, or that a policy has an exception for the caller until an instant \
         (policies:read as well). Whoever decides it sees what is done with the vote, and the justification: the server \
         stands approved for as long as was asked, or the exception is in the next revision of the policy. The same request again joins the one \
         that waits, for seven days at most.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = AskBody;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        let body = &input.body;
        let approval = match body.kind {
            Wish::McpServer => {
                let is_of_other = body.policy_id.is_some() || body.conditions.is_some();
                must_be_absent(
                    is_of_other,
                    "/policyId",
                    "and conditions are of exceptions; leave them out",
                )?;
                let none = || Error::unfit("/serverId", "must name the MCP server that is asked for");
                let id = body.server_id.as_ref().ok_or_else(none)?;
                store::keep_time(ctx)?;
                server::ask(ctx, id, body)?
            }
            Wish::Exception => {
                must_be_absent(
                    body.server_id.is_some(),
                    "/serverId",
                    "is of mcp_server; leave it out",
                )?;
                let none = || {
                    let message = "must name the policy of which an exception is asked for";
                    Error::unfit("/policyId", message)
                };
                let id = body.policy_id.as_ref().ok_or_else(none)?;
                must_hold(ctx, "policies:read")?;
                store::keep_time(ctx)?;
                exception::ask(ctx, id.as_str(), body)?
            }
            kind => return Err(Error::unfit("/kind", unasked(kind))),
        };
        Ok(OneApproval {
            approval: ApprovalView::of(ctx, approval, None)?,
        })
    }
}

/// Returns why nobody asks for a kind by hand, and what to do instead.
const fn unasked(kind: Wish) -> &'static str {
    match kind {
        Wish::ToolCall => "tool_call is asked for by the decision about the call, and not by hand",
        Wish::Operation => {
            "operation is asked for by the request itself, with the query requestApproval=true"
        }
        Wish::McpTool => {
            "mcp_tool cannot be asked for: nothing here reads what the tools of a server say of themselves, so that nobody could say when one is \
             another; ask for its server (mcp_server), or for an exception of the policy that stops the tool"
        }
        Wish::Skill => {
            "skill cannot be asked for: what a device gets is the latest version and has no end, so that nothing would hold an approval of one \
             version until then; an admin assigns the skill (skills assign) or names you in its skill ACL"
        }
        Wish::Access => {
            "access cannot be asked for yet: an admin changes roles (users update) and members of groups, and takes them back"
        }
        Wish::McpServer | Wish::Exception => "cannot be asked for",
    }
}

fn must_be_absent(is_there: bool, path: &str, message: &str) -> Result<()> {
    if is_there {
        return Err(Error::unfit(path, message));
    }
    Ok(())
}

/// Refuses a voter who could not do it without being asked: the operations that do it are those of admins.
///
/// Errors: `RoleForbidden`, `InsufficientScope`.
fn may_do(ctx: &OperationContext<'_>, scope: &'static str) -> Result<()> {
    if ctx.actor().permission.role != Admin {
        let message = "who says yes to this may do it without being asked, which this role may not";
        return Err(Error::new(Code::RoleForbidden, message));
    }
    must_hold(ctx, scope)
}

/// Refuses a token that may not read what it asks about, or not do what it says yes to.
///
/// Errors: `InsufficientScope`.
fn must_hold(ctx: &OperationContext<'_>, scope: &'static str) -> Result<()> {
    if ctx.actor().permission.scopes.has(scope) {
        return Ok(());
    }
    let message = format!("this needs the scope {scope} as well, which this token does not have");
    Err(Error::new(Code::InsufficientScope, message).with("scope", scope))
}

/// Returns the request for the same that waits already; one that waited too long makes room.
fn joined(ctx: &mut OperationContext<'_>, call_mac: &str) -> Result<Option<Approval>> {
    let org = ctx.org();
    for mut open in store::of_call(&mut ctx.tx(), org, call_mac)? {
        if !expire(ctx, &mut open)? {
            ctx.target(&fences::APPROVAL, open.id.as_str());
            return Ok(Some(open));
        }
    }
    Ok(None)
}

/// Does what was asked for by hand, in the unit of the vote that approved it; of a call or an operation there is nothing to do until it comes again.
///
/// Keeps AP-11. Errors: `InsufficientScope` for a voter who could not do it; `Conflict` when it stands otherwise than it did.
pub fn perform(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    shown: Option<&CallView>,
) -> Result<()> {
    match approval.kind {
        Kind::ToolCall | Kind::Operation => Ok(()),
        Kind::McpServer => server::perform(ctx, approval, shown),
        Kind::Exception => exception::perform(ctx, approval, shown),
    }
}
