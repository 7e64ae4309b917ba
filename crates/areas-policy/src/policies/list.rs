//! `GET …/policies`

use super::lost;
use super::model::FamilyWord;
use super::store::{self, Filter};
use super::unresolved::Lately;
use super::views::PolicySummary;
use provost_areas_access::resources::definition::SingleLine;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

pub struct ListPolicies;

/// The parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this family.
    family: Option<FamilyWord>,
    /// Only with this in id or name, whatever its case.
    query: Option<SingleLine<1, 256>>,
    /// Only those that take part in decisions, or only the others.
    enabled: Option<bool>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct PolicyPage {
        /// The policies, the oldest first.
        policies: PolicySummary,
    }
}

impl Operation for ListPolicies {
    const META: Meta = Meta::read("listHeadlessPolicies", "/policies", "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .command("policies", "list").columns(&["name", "id", "family", "action", "enabled", "updatedAt as changed", "currentRevision as revision", "managementMode as managed", "managerId as manager", "managerInstance as instance", "unresolvedLastDay as unresolved", "lostReferences as lost", "createdAt as created"])
        .says(
            "List the policies of every family, the oldest first",
            "Definitions are read one by one. Deleted policies are not listed. A policy that names records which are not there \
             any more shows them as lostReferences.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = PolicyPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<PolicyPage> {
        let query = &input.query;
        let after = page::start(ctx, Self::META.id, query.cursor.as_ref(), 0)?;
        let filter = Filter {
            family: query.family.map(Into::into),
            enabled: query.enabled,
            query: query.query.as_ref().map(SingleLine::as_str),
        };
        let mut found = store::list(ctx, &filter, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |(place, _)| *place);
        let lately = Lately::read(ctx)?;
        let places = found.first().zip(found.last());
        let mut lost = match places.map(|(first, last)| (first.0, last.0)) {
            Some((from, to)) => lost::of_page(ctx, from, to)?,
            None => BTreeMap::new(),
        };
        let policies = found.into_iter();
        Ok(PolicyPage {
            policies: policies
                .map(|(_, policy)| PolicySummary::of(policy, &lately).with_lost(&mut lost))
                .collect(),
            next_cursor,
        })
    }
}
