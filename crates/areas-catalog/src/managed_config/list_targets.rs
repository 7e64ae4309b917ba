//! Lists the machines of a profile.

use super::model::{ProfilePath, TargetState};
use super::store::{self, ProfileWithRelease};
use super::views::MachineView;
use super::{READERS, machines};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListTargets;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only machines that stand here.
    state: Option<TargetState>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct TargetPage {
        /// The machines, in the order of their first reports.
        targets: MachineView,
    }
}

impl Operation for ListTargets {
    const META: Meta = Meta::read(
        "listHeadlessManagedConfigTargets",
        "/managed-config/profiles/{profileId}/targets",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "targets")
    .columns(&[
        "targetId as target",
        "targetName as name",
        "state",
        "lastReportedAt as reported",
        "releaseId as release",
        "message",
        "reportedBy.id as by",
        "firstReportedAt as first reported",
        "contentDigest as digest",
    ])
    .says("List the machines of a profile and where each stands", "");
    type Path = ProfilePath;
    type Query = ListQuery;
    type Body = Empty;
    type Output = TargetPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<TargetPage> {
        let query = &input.query;
        let ProfileWithRelease { profile, current } = store::get(ctx, &input.path.profile_id)?;
        // A cursor of another profile would be a place in another list.
        let list = format!("{} {}", Self::META.id, profile.id);
        let after = page::start(ctx, &list, query.cursor.as_ref(), 0)?;
        let mut found = machines::list(
            ctx,
            &profile,
            current.as_ref(),
            query.state,
            after,
            query.limit.get() + 1,
        )?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |(last, _)| last.seq);
        let targets = found
            .into_iter()
            .map(|(machine, state)| MachineView::of(ctx, machine, state));
        Ok(TargetPage {
            targets: targets.collect(),
            next_cursor,
        })
    }
}
