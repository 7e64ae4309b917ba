//! `PUT …/approval-routes`

use super::get::RoutesView;
use super::model::{MOST, Route};
use super::store::{self, StoredRoutes};
use crate::approvals::fences;
use crate::approvals::verbs::WRITE;
use provost_areas_access::resources::definition::AtMost;
use provost_areas_identity::directory;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

pub struct PutRoutes;

/// All routes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PutBody {
    /// They, in the order in which they are looked at: the first that fits counts.
    routes: AtMost<Route, MOST>,
    /// The revision that the caller saw.
    expected_revision: IntegerBetween<0, 9_007_199_254_740_991>,
}

impl Operation for PutRoutes {
    const META: Meta = Meta::write(
        "putHeadlessApprovalRoutes",
        Method::Put,
        "/approval-routes",
        "mcp_approvals",
    )
    .rule(Access::ScopedBoth {
        scope: WRITE,
        other: "automation_settings:write",
        roles: &[Admin],
    })
    .command("approval-routes", "replace")
    // Whom the vote is kept from takes no route away that asks for two.
    .for_people()
    .example(
        r#"{"routes": [{"name": "production", "match": {"kind": "tool_call", "tool": "Bash"}, "approvers": {"roles": ["admin"]},
           "quorum": 2, "deadlineSeconds": 3600, "onDeadline": "deny"}], "expectedRevision": 0}"#,
    )
    .says(
        "Say who decides about what is asked for",
        "All routes at once, in their order. A route gives nobody a right: of those who may decide anyway it says which do, how many \
         of them and until when. What waits keeps the route that it had when it was asked for. Users and groups that there are not are \
         422.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = PutBody;
    type Output = RoutesView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RoutesView> {
        let (org, body) = (ctx.org(), &input.body);
        ctx.target(&fences::ROUTES, org);
        let before = store::load(&mut ctx.tx(), org)?;
        let revision = before.as_ref().map_or(0, |stored| stored.revision);
        if revision != body.expected_revision.get() {
            let message =
                format!("the routes are at revision {revision}; look at them again before you replace them");
            return Err(Error::new(Code::Conflict, message).with("revision", revision));
        }
        must_be_fit(ctx, &body.routes)?;
        let (was, is) = (
            before.map_or_else(Vec::new, |stored| stored.routes),
            body.routes.to_vec(),
        );
        let after = StoredRoutes {
            routes: is,
            revision: revision + 1,
            updated_at: ctx.now(),
        };
        store::save(ctx, &after)?;
        ctx.change("/routes", json!(was), json!(after.routes));
        ctx.emit(
            &fences::ROUTES_CHANGED,
            &fences::OfRoutes {
                revision: after.revision,
            },
        );
        Ok(RoutesView::of(Some(after)))
    }
}

/// Refuses routes that would not do what they say.
///
/// Errors: `InvalidDefinition` for two of one name, for one that names nobody, and for users and groups that there are not.
fn must_be_fit(ctx: &mut OperationContext<'_>, routes: &[Route]) -> Result<()> {
    let (org, mut names) = (ctx.org(), BTreeSet::new());
    let mut tx = ctx.tx();
    for (at, route) in routes.iter().enumerate() {
        let place = format!("/routes/{at}");
        if !names.insert(route.name.as_str()) {
            return Err(Error::unfit(
                format!("{place}/name"),
                "is the name of an earlier route",
            ));
        }
        if route.approvers.name_nobody() {
            let message = "must name a user, a group or a role";
            return Err(Error::unfit(format!("{place}/approvers"), message));
        }
        for (user, id) in route.approvers.users.iter().enumerate() {
            if directory::principal(&mut tx, org, id.as_str())?.is_none() {
                let place = format!("{place}/approvers/users/{user}");
                return Err(Error::unfit(place, "names no user by its id"));
            }
        }
        for (below, id) in route.groups() {
            if !directory::has_group(&mut tx, org, id)? {
                return Err(Error::unfit(
                    format!("{place}{below}"),
                    "names no group by its id",
                ));
            }
        }
    }
    Ok(())
}
