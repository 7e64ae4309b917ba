//! `POST …/approval-routes/preview`

use super::model::{OnDeadline, Route};
use super::{Wanted, fitting, freeze, reachable};
use crate::approvals::model::{Kind, Party};
use crate::approvals::rights;
use provost_areas_identity::{directory, service_accounts};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::Error;
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct PreviewRoute;

/// LIMIT: people of one answer.
const MOST_SHOWN: usize = 100;

/// What would be asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PreviewBody {
    /// What would be asked for.
    kind: Kind,
    /// The tool of the call, the key of the server, or the id of the operation.
    tool: LongName,
    /// Who would ask: the id of a user or service account.
    requested_by: LongName,
    /// For whom, by the id; absent: for who asks.
    requested_for: Option<LongName>,
}

/// Who would decide.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RoutePreview {
    /// The route that fits; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<Route>,
    /// How many people would have to say yes.
    quorum: i64,
    /// How long it would wait. Units: seconds.
    deadline_seconds: i64,
    /// What would become of it then. Open.
    on_deadline: OnDeadline,
    /// Fewer of the approvers can be reached than would have to say yes: all who may decide would.
    falls_to_admins: bool,
    /// The ids of people who could say yes now, 100 at most.
    voters: Vec<String>,
}

impl Operation for PreviewRoute {
    const META: Meta = Meta::query(
        "previewHeadlessApprovalRoute",
        "/approval-routes/preview",
        "mcp_approvals",
    )
    .rule(Access::ScopedBoth {
        scope: "mcp_approvals:read",
        other: "directory:read",
        roles: &[Admin, Operator, Auditor],
    })
    .command("approval-routes", "preview")
    .example(r#"{"kind": "tool_call", "tool": "Bash", "requestedBy": "usr_01m7w5fpg4ctwq7mvve86yenbr"}"#)
    .says(
        "Show who would decide",
        "Which route fits, and who could say yes now: of its approvers those who may decide and do not stand behind who asks or for \
         whom it is. Ids that are nobody's are 422.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = PreviewBody;
    type Output = RoutePreview;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RoutePreview> {
        let (org, body) = (ctx.org(), &input.body);
        let asker = somebody(ctx, "/requestedBy", &body.requested_by)?;
        let subject = match &body.requested_for {
            Some(id) => somebody(ctx, "/requestedFor", id)?,
            None => asker.clone(),
        };
        let wanted = Wanted {
            kind: body.kind,
            tool: body.tool.as_str(),
            asker: &asker,
            subject: &subject,
        };
        let mut tx = ctx.tx();
        let behind = rights::behind_parties(&mut tx, org, (&asker, &subject), None)?;
        let route = fitting(&mut tx, org, &wanted)?;
        let frozen = match &route {
            Some(route) => Some(freeze(&mut tx, org, route, &wanted, &behind)?),
            None => None,
        };
        let falls_to_admins = frozen.as_ref().is_some_and(|frozen| frozen.falls_to_admins);
        let approvers = frozen
            .as_ref()
            .filter(|_| !falls_to_admins)
            .map(|frozen| &frozen.approvers);
        let voters = reachable(&mut tx, org, approvers, &wanted, &behind, MOST_SHOWN)?;
        Ok(RoutePreview {
            quorum: route.as_ref().map_or(1, Route::quorum),
            deadline_seconds: route
                .as_ref()
                .map_or(body.kind.waits_secs(), Route::deadline_secs),
            on_deadline: route
                .as_ref()
                .map_or(OnDeadline::Expire, |route| route.on_deadline),
            route,
            falls_to_admins,
            voters,
        })
    }
}

/// Returns whom an id names.
///
/// Errors: `InvalidDefinition` where it is nobody's: a preview for nobody would show the routes of who is in no group.
fn somebody(ctx: &mut OperationContext<'_>, place: &str, id: &LongName) -> Result<Party> {
    let (org, party) = (ctx.org(), Party::named(id.as_str()));
    let mut tx = ctx.tx();
    let is_there = if party.is_person() {
        directory::principal(&mut tx, org, &party.id)?.is_some()
    } else {
        service_accounts::principal(&mut tx, org, &party.id)?.is_some()
    };
    if is_there {
        return Ok(party);
    }
    Err(Error::unfit(
        place,
        "must be the id of a user or service account that there is",
    ))
}
