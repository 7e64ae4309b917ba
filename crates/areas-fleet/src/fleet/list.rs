//! `GET …/devices`

use super::clones::TamperState;
use super::command_result::ResultCode;
use super::coverage::CountedLevel;
use super::labels::Label;
use super::model::{EnrolmentTokenId, Platform, Status};
use super::owners;
use super::presence::{AwaySecs, Presence};
use super::sight::Sight;
use super::store::{self, Filter};
use super::view::DeviceView;
use provost_areas_identity::directory::model::UserId;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListDevices;

/// What can be asked; a device must fit all of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only devices that stand there.
    status: Option<Status>,
    /// Only devices that were heard of so long ago.
    presence: Option<Presence>,
    /// Only devices with this label.
    label: Option<Label>,
    /// Only devices whose name has this in it, small and capital letters of English alike; not where names are hidden.
    query: Option<Name>,
    /// Only devices of this platform.
    platform: Option<Platform>,
    /// Only devices that enrolled by this token.
    enrolment_token_id: Option<EnrolmentTokenId>,
    /// Only devices of this owner; for callers who may read the directory. Where people are pseudonymous, only of the caller.
    owner_user_id: Option<UserId>,
    /// Only devices of which a client, or the one that is named, counts as guarded so far. `unknown` has those that wait or said nothing, too.
    coverage: Option<CountedLevel>,
    /// Only devices that said something of this client, by the word of the inventory.
    client: Option<ResultCode>,
    /// Only devices of which it is suspected that there are two, or only the others.
    tamper: Option<TamperState>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page of devices.
    pub struct DevicePage {
        /// The devices, the newest first.
        devices: DeviceView,
    }
}

impl Operation for ListDevices {
    const META: Meta = Meta::read("listHeadlessDevices", "/devices", "fleet")
        .access("fleet:read", &[Admin, Operator, Auditor, Viewer])
        .command("devices", "list")
        .columns(&[
            "name",
            "status",
            "presence",
            "lastHeartbeatAt as heard of",
            "platform",
            "labels",
            "ownerUserId as owner",
            "id",
            "osVersion as system",
            "agentVersion as agent",
            "arch",
            "mode",
            "needsApproval as waits",
            "tamper.state as tampered",
            "bypass.expiresAt as bypass until",
            "enrolledAt as enrolled",
            "enrolmentTokenId as by",
            "keyThumbprint as key",
            "keyProtection as key kept",
            "quarantinedAt as quarantined",
            "retiredAt as retired",
            "retireReason as why retired",
            "heldAt as held",
            "updatedAt as changed",
        ])
        .says("List devices", "Newest first, the retired ones among them.");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = DevicePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DevicePage> {
        let query = &input.query;
        let sight = Sight::load(ctx)?;
        if let Some(owner) = &query.owner_user_id {
            owners::may_find(ctx)?;
            sight.may_find_by_owner(owner.as_str())?;
        }
        if query.query.is_some() {
            sight.may_find_by_name()?;
        }
        let away = AwaySecs::load(ctx)?;
        let filter = Filter {
            status: query.status,
            platform: query.platform,
            enrolment_token: query.enrolment_token_id.as_ref().map(EnrolmentTokenId::as_str),
            owner: query.owner_user_id.as_ref().map(UserId::as_str),
            label: query.label.as_ref().map(Label::as_str),
            part: query.query.as_ref().map(Name::as_str),
            heard: match query.presence {
                Some(presence) => presence.window(ctx.now(), away),
                None => (Timestamp::from_ms(i64::MIN), Timestamp::from_ms(i64::MAX)),
            },
            coverage: query.coverage,
            client: query.client.as_ref().map(ResultCode::as_str),
            tamper: query.tamper,
            heard_since: Presence::Away.window(ctx.now(), away).0,
        };
        // A cursor is a place in the list that it was made for: with other filters it is another list.
        let list = [
            "listHeadlessDevices",
            query.status.map_or("", Status::as_str),
            query.platform.map_or("", Platform::as_str),
            filter.enrolment_token.unwrap_or_default(),
            query.presence.map_or("", Presence::as_str),
            filter.label.unwrap_or_default(),
            filter.part.unwrap_or_default(),
            filter.owner.unwrap_or_default(),
            query.coverage.map_or("", CountedLevel::as_str),
            filter.client.unwrap_or_default(),
            query.tamper.map_or("", TamperState::as_str),
        ];
        let list = list.join("|");
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::list(ctx, &filter, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |device| device.seq);
        Ok(DevicePage {
            devices: found
                .into_iter()
                .map(|device| DeviceView::among(ctx, device, (away, &sight)))
                .collect(),
            next_cursor,
        })
    }
}
