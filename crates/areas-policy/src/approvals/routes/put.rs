//! `PUT …/approval-routes`

use super::model::{MOST, Route};
use super::store::{self, StoredRoutes};
use super::weaker::weaker;
use crate::approvals::fences;
use crate::approvals::model::Party;
use crate::approvals::rights;
use crate::approvals::second_person;
use crate::approvals::verbs::WRITE;
use provost_areas_access::resources::definition::AtMost;
use provost_areas_identity::directory;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{IntegerBetween, LongName};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// LIMIT: different users and groups that all routes name together. Ours: each is looked up in the unit of the write.
const MOST_NAMES: usize = 500;
/// LIMIT: what a refusal says of what gets weaker; the rest is counted.
const MOST_SAID: usize = 5;

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

/// The routes as they were written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WrittenRoutes {
    /// They, in the order in which they are looked at: the first that fits counts.
    routes: Vec<Route>,
    /// How often they were written. The next write repeats it.
    revision: i64,
    /// When they were written.
    updated_at: Timestamp,
    /// What does not do now what it seems to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<RouteWarning>,
}

/// A route that does not do now what it seems to: what is asked for while it is so is decided by all who may decide.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RouteWarning {
    /// The name of the route.
    route: String,
    /// What it is.
    code: WarningCode,
    /// The ids of the users whom the route names and who may not decide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    user_ids: Vec<String>,
}

provost_kernel::word! {
    /// Why a route does not do now what it seems to. More may come.
    #[schemars(extend("x-open" = true))]
    pub enum WarningCode {
        /// Some whom it names may not decide now: they have another role, or are suspended.
        CannotDecide = "names_who_cannot_decide",
        /// Fewer of its approvers may decide now than have to say yes: all who may decide would.
        FallsToAdmins = "falls_to_admins",
    }
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
    .of_deciders()
    .says(
        "Say who decides about what is asked for",
        "All routes at once, in their order. A route gives nobody a right: of those who may decide anyway it says which do, how many \
         of them and until when. What waits keeps the route that it had when it was asked for. Users and groups that there are not are \
         422. To take a route away, to have fewer or others decide by it, to have it fit something else, or to put one before it that could \
         be weaker needs confirm: true. Routes whose approvers cannot decide now are named in the answer.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = PutBody;
    type Output = WrittenRoutes;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<WrittenRoutes> {
        let (org, body) = (ctx.org(), &input.body);
        ctx.target(&fences::ROUTES, org);
        let before = store::load(&mut ctx.tx(), org)?;
        let revision = before.as_ref().map_or(0, |stored| stored.revision);
        if revision != body.expected_revision.get() {
            let message =
                format!("the routes are at revision {revision}; look at them again before you replace them");
            return Err(Error::new(Code::Conflict, message).with("revision", revision));
        }
        let warnings = must_be_fit(ctx, &body.routes)?;
        let (was, is) = (
            before.map_or_else(Vec::new, |stored| stored.routes),
            body.routes.to_vec(),
        );
        if !input.confirm {
            let falls = |warning: &&RouteWarning| warning.code == WarningCode::FallsToAdmins;
            let falling = warnings.iter().filter(falls).map(|warning| warning.route.clone());
            must_not_be_weaker(&was, &is, &falling.collect())?;
        }
        let after = StoredRoutes {
            routes: is,
            revision: revision + 1,
            updated_at: ctx.now(),
        };
        store::save(ctx, &after)?;
        second_person::must_leave_a_way(ctx, "/routes")?;
        ctx.change("/routes", json!(was), json!(after.routes));
        ctx.emit(
            &fences::ROUTES_CHANGED,
            &fences::OfRoutes {
                revision: after.revision,
            },
        );
        Ok(WrittenRoutes {
            routes: after.routes,
            revision: after.revision,
            updated_at: after.updated_at,
            warnings,
        })
    }
}

/// Refuses a change by which something passes more easily than before.
///
/// Keeps AP-14. Errors: `ConfirmationRequired`.
fn must_not_be_weaker(was: &[Route], is: &[Route], falling: &BTreeSet<String>) -> Result<()> {
    let weaker = weaker(was, is, falling);
    if weaker.is_empty() {
        return Ok(());
    }
    let said = weaker[..weaker.len().min(MOST_SAID)].join("; ");
    let more = match weaker.len().saturating_sub(MOST_SAID) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let message = format!(
        "what is asked for from now on could pass more easily: {said}{more}; say confirm: true if that is meant, or send the routes as \
         they were with what you add"
    );
    Err(Error::new(Code::ConfirmationRequired, message))
}

/// Refuses routes that would not do what they say, and returns which do not do now what they seem to.
///
/// Errors: `InvalidDefinition` for two of one name, for one that names nobody or a tool without a letter that is seen, for users and groups
/// that there are not, and for too many of them.
/// Cost: one statement for each user, one for each group, and one more for each group of approvers.
fn must_be_fit(ctx: &mut OperationContext<'_>, routes: &[Route]) -> Result<Vec<RouteWarning>> {
    let mut names = BTreeSet::new();
    // Where each user and each group is named first.
    let (mut users, mut groups) = (BTreeMap::new(), BTreeMap::new());
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
        if route.names_nothing_seen() {
            let message = "must have a character that is seen, or be * alone";
            return Err(Error::unfit(format!("{place}/match/tool"), message));
        }
        for (user, id) in route.approvers.users.iter().enumerate() {
            let place = || format!("{place}/approvers/users/{user}");
            users.entry(id.as_str()).or_insert_with(place);
        }
        for (below, id) in route.groups() {
            groups.entry(id).or_insert_with(|| format!("{place}{below}"));
        }
    }
    if users.len() + groups.len() > MOST_NAMES {
        let message = format!(
            "must name at most {MOST_NAMES} different users and groups in all; name groups in the place of their members"
        );
        return Err(Error::unfit("/routes", message));
    }
    let known = Known::of(ctx, &users, &groups, routes)?;
    Ok(routes.iter().flat_map(|route| known.warnings_of(route)).collect())
}

/// Which of those whom routes name may decide now.
struct Known<'a> {
    /// Users.
    deciding: BTreeSet<&'a str>,
    /// Of groups of approvers their members.
    members: BTreeMap<&'a str, Vec<String>>,
    /// How many may decide, whoever names them.
    everybody: usize,
}

impl<'a> Known<'a> {
    /// Errors: `InvalidDefinition` for users and groups that there are not.
    fn of(
        ctx: &mut OperationContext<'_>,
        users: &BTreeMap<&'a str, String>,
        groups: &BTreeMap<&'a str, String>,
        routes: &'a [Route],
    ) -> Result<Self> {
        let org = ctx.org();
        let mut tx = ctx.tx();
        let (mut deciding, mut members) = (BTreeSet::new(), BTreeMap::new());
        for (id, place) in users {
            if directory::principal(&mut tx, org, id)?.is_none() {
                return Err(Error::unfit(place, "names no user by its id"));
            }
            if rights::may_decide(&mut tx, org, &Party::person((*id).to_owned()))? {
                deciding.insert(*id);
            }
        }
        for (id, place) in groups {
            if !directory::has_group(&mut tx, org, id)? {
                return Err(Error::unfit(place, "names no group by its id"));
            }
        }
        for id in routes.iter().flat_map(|route| route.approvers.groups.iter()) {
            if !members.contains_key(id.as_str()) {
                members.insert(
                    id.as_str(),
                    directory::with_role_in(&mut tx, org, Admin, id.as_str())?,
                );
            }
        }
        Ok(Self {
            deciding,
            members,
            everybody: directory::with_role(&mut tx, org, Admin)?.len(),
        })
    }

    fn warnings_of(&self, route: &Route) -> Vec<RouteWarning> {
        let users = route.approvers.users.iter().map(LongName::as_str);
        let (mut can, cannot): (BTreeSet<&str>, BTreeSet<&str>) =
            users.partition(|id| self.deciding.contains(id));
        let members = route
            .approvers
            .groups
            .iter()
            .filter_map(|id| self.members.get(id.as_str()));
        can.extend(members.flatten().map(String::as_str));
        let reached = if route.approvers.name_everybody() {
            self.everybody
        } else {
            can.len()
        };
        let warning = |code, user_ids| RouteWarning {
            route: route.name.as_str().to_owned(),
            code,
            user_ids,
        };
        let mut found = Vec::new();
        if !cannot.is_empty() {
            found.push(warning(
                WarningCode::CannotDecide,
                cannot.into_iter().map(str::to_owned).collect(),
            ));
        }
        if usize::try_from(route.quorum()).is_ok_and(|quorum| reached < quorum) {
            found.push(warning(WarningCode::FallsToAdmins, Vec::new()));
        }
        found
    }
}
