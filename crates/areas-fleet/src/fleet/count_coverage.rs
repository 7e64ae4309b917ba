//! `GET …/devices/coverage`

use super::coverage::CountedLevel;
use super::coverage_store;
use super::presence::{AwaySecs, Presence};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub struct CountCoverage;

/// How many devices have a client that is guarded so far.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClientCounts {
    /// The client, by the word of the inventory. Open.
    client: String,
    /// On so many every step is proven.
    enforced: i64,
    /// On so many it refuses, and a way around is known, or whether it fires cannot be seen.
    bypassable: i64,
    /// On so many it is asked, and that it refuses is not proven.
    observed: i64,
    /// On so many nothing is in effect.
    none: i64,
    /// On so many nobody knows: the device is silent, lost, quarantined or held back, or does not say it any more.
    unknown: i64,
}

/// How far the clients of the organization's devices are guarded.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CoverageCounts {
    /// Of when it is.
    as_of: Timestamp,
    /// How many devices are at work, the quarantined ones among them.
    devices: i64,
    /// How many of them never said anything.
    unreported: i64,
    /// By clients.
    clients: Vec<ClientCounts>,
}

impl Operation for CountCoverage {
    const META: Meta = Meta::read("countHeadlessDeviceCoverage", "/devices/coverage", "fleet")
        .access("fleet:read", &[Admin, Operator, Auditor, Viewer])
        .command("devices", "coverage")
        .columns(&["client", "enforced", "bypassable", "observed", "none", "unknown"])
        .says(
            "Count how far clients are guarded",
            "By what the devices say: how many have a client of each level. A device that is silent, lost, quarantined or held back counts as \
             unknown, and so does one that has not said it for a day of its calls; a retired one and one that waits count as nothing.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = CoverageCounts;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<CoverageCounts> {
        let now = ctx.now();
        let away = AwaySecs::load(ctx)?;
        let (heard_since, _) = Presence::Away.window(now, away);
        let mut clients: Vec<ClientCounts> = Vec::new();
        for (client, level, count) in coverage_store::counts(ctx, heard_since)? {
            if clients.last().is_none_or(|last| last.client != client) {
                clients.push(ClientCounts {
                    client,
                    ..ClientCounts::default()
                });
            }
            let Some(last) = clients.last_mut() else { continue };
            let place = match CountedLevel::from_store(&level)? {
                CountedLevel::Enforced => &mut last.enforced,
                CountedLevel::Bypassable => &mut last.bypassable,
                CountedLevel::Observed => &mut last.observed,
                CountedLevel::None => &mut last.none,
                CountedLevel::Unknown => &mut last.unknown,
            };
            *place += count;
        }
        let (devices, reported) = coverage_store::at_work(ctx)?;
        Ok(CoverageCounts {
            as_of: now,
            devices,
            unreported: devices - reported,
            clients,
        })
    }
}
