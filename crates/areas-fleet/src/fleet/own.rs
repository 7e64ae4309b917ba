//! `GET …/devices/own`

use super::kept::{self, Kept};
use super::presence::AwaySecs;
use super::view::DeviceView;
use super::{enrolment, store};
use provost_areas_platform::settings::{self, Privacy};
use provost_kernel::auth::Role;
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListOwnDevices;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct OwnQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

/// One page of devices.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OwnPage {
    /// The caller's devices, the newest first.
    devices: Vec<DeviceView>,
    /// How the caller and these devices are shown to others.
    privacy: Privacy,
    /// What is kept about these devices, and for how long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    retention: Vec<Kept>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

const LIST: &str = "listHeadlessOwnDevices";

impl Operation for ListOwnDevices {
    const META: Meta = Meta::read(LIST, "/devices/own", "fleet")
        .rule(Access::ScopedEither {
            scope: "fleet:enrol_self",
            other: "fleet:read",
            roles: &Role::ALL,
        })
        .command("devices", "own")
        .columns(&[
            "name",
            "status",
            "presence",
            "bypass.expiresAt as bypass until",
            "lastHeartbeatAt as heard of",
            "platform",
            "labels",
            "enrolledWith as enrolled with",
            "id",
        ])
        .says(
            "List the devices of the caller",
            "What is held here about the devices that the caller owns, newest first, by which application the caller had them enrolled, \
             how they are shown to others, and how long what is kept. \
             Only people own devices, and a person without a role calls no operation: the role member is enough.",
        );
    type Path = Empty;
    type Query = OwnQuery;
    type Body = Empty;
    type Output = OwnPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OwnPage> {
        let query = &input.query;
        let me = ctx.actor().id.clone();
        let list = format!("{LIST}|{me}");
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::own(ctx, &me, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |device| device.seq);
        let (now, away) = (ctx.now(), AwaySecs::load(ctx)?);
        let mut devices = Vec::with_capacity(found.len());
        for device in found {
            let by = enrolment::get(ctx, &device.enrolment_token_id)?;
            // What an application is called by which somebody else made a token is not the caller's to know.
            let with = by.made_with.filter(|_| by.created_by == me);
            devices.push(DeviceView::of(device, now, away).enrolled_with(with));
        }
        Ok(OwnPage {
            devices,
            privacy: settings::load(ctx)?.fleet.privacy,
            retention: kept::kept(ctx)?,
            next_cursor,
        })
    }
}
