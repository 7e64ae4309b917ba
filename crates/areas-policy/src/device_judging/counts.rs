//! `GET …/devices/{deviceId}/decisions`

use super::{fences, store};
use crate::history::READERS;
use crate::paging::PageQuery;
use provost_areas_fleet::fleet::{self, DevicePath};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListDecisionCounts;

/// How far a device has told what it judged, and how much that is since its first entry.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ToldSoFar {
    /// The number of the entry that comes next.
    expected: i64,
    /// When entries were taken last.
    taken_at: Timestamp,
    /// Events: they stand in the history under the source device:<id>.
    events: i64,
    /// How often something passed of which no event was told.
    passed: i64,
    /// Events that were lost on the device before they were told.
    dropped: i64,
    /// Entries that could not be read.
    refused: i64,
    /// Events that named anybody but the device's own people.
    foreign: i64,
    /// Of the hundredth that was judged again, how much was decided otherwise than the policies say; and how much passed by a bypass that nobody
    /// gave the device.
    mismatches: i64,
}

/// How often something passed on a device within an hour.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct HourCount {
    /// When the hour begins.
    hour: Timestamp,
    /// The id of the device's own user, seen by whoever sees whose the device is, and what stands for it where people are pseudonymous;
    /// absent where it named anybody else, and where it named nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The client; absent of what is counted without names, because there was no room for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// The tool; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// How often.
    passed: i64,
}

/// What a device told of what it judged.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CountsPage {
    /// How far it has told, and how much; absent of a device that told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<ToldSoFar>,
    /// What passed without a reason, by hours of the last thirty days; what began to be counted last first.
    counts: Vec<HourCount>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

const LIST: &str = "listHeadlessDeviceDecisionCounts";

impl Operation for ListDecisionCounts {
    const META: Meta = Meta::read(LIST, "/devices/{deviceId}/decisions", "policies")
        .access("policies:history", READERS)
        .command("devices", "decisions")
        .columns(&["hour", "user", "client", "tool", "passed"])
        .sensitive()
        .says(
            "See what a device told of what it judged",
            "How far it has told, and what passed without a reason, counted by hours; everything else stands in the history, under the source \
             device:<id>. It is what the device says. Who reads this is noted.",
        );
    type Path = DevicePath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = CountsPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CountsPage> {
        let (id, query) = (&input.path.device_id, &input.query);
        ctx.target(&fences::DECISIONS, id.as_str());
        fleet::standing(ctx, id)?;
        let list = format!("{LIST}|{}", id.as_str());
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::list(ctx, id, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |(seq, _, _)| *seq);
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        // Whose machine it is sees here who sees it of the device.
        let sees = fleet::owners_are_seen(ctx);
        let sight = fleet::Sight::load(ctx)?;
        let counts = found.into_iter().map(|(_, key, passed)| HourCount {
            hour: key.hour,
            user: some(key.user)
                .filter(|user| sees || sight.is_me(user))
                .map(|user| sight.person(user)),
            client: some(key.client),
            tool: some(key.tool),
            passed,
        });
        let chain = store::chain(ctx, id)?;
        Ok(CountsPage {
            told: chain.map(|chain| ToldSoFar {
                expected: chain.place.next,
                taken_at: chain.taken_at,
                events: chain.sums.events,
                passed: chain.sums.passed,
                dropped: chain.sums.dropped,
                refused: chain.sums.refused,
                foreign: chain.sums.foreign,
                mismatches: chain.sums.mismatches,
            }),
            counts: counts.collect(),
            next_cursor,
        })
    }
}
