//! Judges some of what a device told again, by the policies that it names.
//!
//! A device that judges otherwise is wrong, was changed, or knew other people, or other standings of MCP servers, than are there now: it is
//! said, and nothing follows from it.

use super::denied::denied_servers;
use super::report::Batch;
use crate::policies::{self, Live};
use provost_areas_fleet::fleet::DeviceId;
use provost_kernel::keys::MacPurpose;
use provost_kernel::{OperationContext, Result};
use provost_policy::{Action, Event, PolicySet, Reason, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Of so many events one is judged again (F4.10). Which, no device can say: its hash is keyed.
const ONE_IN: u64 = 100;
const SAMPLE: MacPurpose = MacPurpose::Own("provost/mac/device-decision-sample/v1");
/// LIMIT: versions by which a request is judged again. Ours: a device judges by one at a time.
const VERSIONS: usize = 2;

/// One event.
#[derive(Debug)]
struct Case {
    set: Arc<PolicySet>,
    event: Event,
    /// What the device said.
    told: Action,
    /// Whether the MCP server that it names is denied.
    is_denied: bool,
}

/// What is judged again.
#[derive(Debug, Default)]
pub struct Again {
    cases: Vec<Case>,
    symbols: Symbols,
}

/// Returns what of a batch is judged again: of what came with everything by which it was judged, and by a version that is at hand. A device
/// names versions, and must not choose what a server compiles.
pub fn sample(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    batch: &Batch,
    hashes: &[String],
) -> Result<Again> {
    let keys = &ctx.services().keys;
    let is_drawn = |place: usize| {
        let hash = hashes.get(place).map_or("", String::as_str);
        let mac = keys.mac(SAMPLE, &[device.as_str().as_bytes(), hash.as_bytes()]);
        let mut first = [0; 8];
        first.copy_from_slice(&mac[..8]);
        u64::from_be_bytes(first).is_multiple_of(ONE_IN)
    };
    let told = batch.events.iter().zip(&batch.places).zip(&batch.servers);
    let drawn: Vec<_> = told
        .filter(|((_, (place, is_certain)), _)| *is_certain && is_drawn(*place))
        .map(|((event, _), server)| (&event.record, server.as_deref()))
        .collect();
    let servers: BTreeSet<&str> = drawn.iter().filter_map(|(_, server)| *server).collect();
    let denied = denied_servers(ctx, &servers)?;
    let mut again = Again {
        symbols: Symbols::knowing(Arc::clone(&batch.register)),
        ..Again::default()
    };
    let mut versions: BTreeMap<String, Option<Live>> = BTreeMap::new();
    let org = ctx.org();
    for (record, server) in drawn {
        let Some(decision) = &record.decision else {
            continue;
        };
        let Some(id) = &decision.policy_set_version else {
            continue;
        };
        if !versions.contains_key(id) {
            if versions.len() == VERSIONS {
                continue;
            }
            let live = policies::version_at_hand(&mut ctx.tx(), org, id)?;
            versions.insert(id.clone(), live);
        }
        let live = versions.get(id).and_then(Option::as_ref);
        if let Some(live) = live {
            let event = record.event(&mut again.symbols);
            again.cases.push(Case {
                set: live.set.clone(),
                event,
                told: decision.action,
                is_denied: server.is_some_and(|server| denied.contains_key(server)),
            });
        }
    }
    Ok(again)
}

impl Again {
    /// Says whether nothing is judged again.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Returns how many of the decisions are others than these policies come to, whatever the past was and whatever modules say.
    pub fn mismatches(&self) -> i64 {
        let judged = self.cases.len() as u64;
        metrics::counter!("provost_device_decisions_judged_again_total").increment(judged);
        let others = self.cases.iter().filter(|case| {
            let most = case.set.judge_unaided(&case.event, &self.symbols);
            let least = most.without(|finding| finding.reason == Reason::EvaluationFailed);
            // A standing is that of now: a device that had not heard of a denial says what the policies say.
            let by_standing = case.is_denied && case.told == Action::Block;
            !by_standing && !(least.action..=most.action).contains(&case.told)
        });
        let others = others.count();
        metrics::counter!("provost_device_decision_mismatches_total").increment(others as u64);
        i64::try_from(others).unwrap_or(i64::MAX)
    }
}
