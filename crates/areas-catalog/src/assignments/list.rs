//! `GET …/managed-config/profiles/{profileId}/devices`

use super::store::{self, Assignment};
use crate::managed_config::READERS;
use crate::managed_config::model::ProfilePath;
use crate::managed_config::store as profiles;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListProfileDevices;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct AssignmentPage {
        /// The devices, in the order in which they got the profile.
        devices: Assignment,
    }
}

impl Operation for ListProfileDevices {
    const META: Meta = Meta::read(
        "listHeadlessProfileDevices",
        "/managed-config/profiles/{profileId}/devices",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "devices")
    .columns(&[
        "deviceId as device",
        "inClear as in clear",
        "assignedAt as since",
        "assignedBy.id as by",
    ])
    .says(
        "List the devices that get a profile",
        "How far each is, the list of the profile's machines says: a device stands there by its id once it reported.",
    );
    type Path = ProfilePath;
    type Query = ListQuery;
    type Body = Empty;
    type Output = AssignmentPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AssignmentPage> {
        let query = &input.query;
        let profile = profiles::get(ctx, &input.path.profile_id)?.profile;
        // A cursor of another profile would be a place in another list.
        let list = format!("{} {}", Self::META.id, profile.id);
        let after = page::start(ctx, &list, query.cursor.as_ref(), 0)?;
        let mut devices = store::of_profile(ctx, &profile.id, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut devices, |last| last.seq);
        Ok(AssignmentPage { devices, next_cursor })
    }
}
