//! `GET …/devices/bypasses`

use super::bypass::BypassView;
use super::model::DeviceId;
use super::sight::Sight;
use super::{bypass_store, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListBypasses;

const LIST: &str = "listHeadlessDeviceBypasses";

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only those of this device.
    device_id: Option<DeviceId>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page of bypasses.
    pub struct BypassPage {
        /// The bypasses, the newest first.
        bypasses: BypassView,
    }
}

impl Operation for ListBypasses {
    const META: Meta = Meta::read(LIST, "/devices/bypasses", "fleet")
        .access("fleet:read", &[Admin, Operator, Auditor])
        .command("devices", "bypasses")
        .columns(&[
            "state",
            "deviceId as device",
            "clients",
            "expiresAt as until",
            "createdBy as by",
            "createdAt as begun",
            "id",
            "endedAt as ended",
            "endReason as why",
        ])
        .says(
            "List bypasses",
            "Newest first, those of the last ninety days that ended among them.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = BypassPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<BypassPage> {
        let query = &input.query;
        let device = query.device_id.as_ref();
        if let Some(device) = device {
            store::get(ctx, device)?;
        }
        let list = format!("{LIST}|{}", device.map_or("", DeviceId::as_str));
        let before = match &query.cursor {
            // Behind every id.
            None => "~".to_owned(),
            Some(cursor) => {
                let place = cursor.open_bytes(&ctx.services().keys, ctx.org(), &list)?;
                String::from_utf8(place).map_err(Error::internal)?
            }
        };
        let limit = query.limit.get();
        let mut found = bypass_store::list(ctx, device, &before, limit + 1)?;
        let goes_on = i64::try_from(found.len()).unwrap_or(i64::MAX) > limit;
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let shown_last = found.last().filter(|_| goes_on);
        let next_cursor = shown_last.map(|bypass| {
            let place = bypass.id.as_str().as_bytes();
            Cursor::issue_bytes(&ctx.services().keys, ctx.org(), &list, place)
        });
        let (now, sight) = (ctx.latest(), Sight::load(ctx)?);
        Ok(BypassPage {
            bypasses: found
                .into_iter()
                .map(|bypass| BypassView::seen(bypass, now, &sight))
                .collect(),
            next_cursor,
        })
    }
}
