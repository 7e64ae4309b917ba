//! `POST …/devices/{deviceId}/scans`

use super::model::{AssetId, AssetKind, MOST_OBSERVATIONS, ServerId, is_always_weak};
use super::observations::{self, Fresh, Of};
use super::{fences, store};
use crate::fleet::{self, DeviceId, DevicePath};
use provost_inventory::wire::{MAX_BYTES, Report, Section, Sighting};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::rate::Bucket;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: sections of a device. Ours: twice those of a report.
const MOST_SECTIONS: i64 = 512;
/// LIMIT: reports of one device. Ours: it sends one an hour, and some again; each may write thousands of rows.
const REPORTS: Bucket = Bucket {
    name: "device-scans",
    burst: 120,
    per_second_num: 120,
    per_second_den: 3600,
};
/// LIMIT: servers that one report makes known, each an event. Ours: more is no laptop.
const MOST_DISCOVERIES: usize = 500;
/// LIMIT: levels of a report; it has seven.
const LEVELS: usize = 12;

pub struct ReportScan;

provost_kernel::word! {
    /// Why nothing of a report was taken.
    pub enum Ignored {
        /// A scan that began later was taken before.
        OlderScan = "older_scan",
    }
}

/// What became of a report.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Answer {
    /// How many sections were taken.
    accepted: usize,
    /// Digests of unchanged sections that are not known: these sections are to be sent whole.
    unknown_digests: Vec<String>,
    /// Why nothing was taken; absent where something could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<Ignored>,
    /// Whether the device has more than is kept of it.
    truncated: bool,
}

impl Operation for ReportScan {
    const META: Meta = Meta::ingest(
        "reportHeadlessDeviceScan",
        "/devices/{deviceId}/scans",
        "inventory",
    )
    .rule(Access::OfKind {
        kind: fleet::DEVICE_KIND,
        parameter: "deviceId",
    })
    .errors(&[400, 401, 403])
    .reads_up_to(MAX_BYTES, LEVELS)
    .example(
        r#"{"scanId": "scan-1", "startedAt": "2026-11-27T10:00:00.000Z", "finishedAt": "2026-11-27T10:00:01.000Z", "sections": []}"#,
    )
    .says(
        "Report what a scan found",
        "A device calls this for itself. A complete section replaces what is known of its client and account; one with faults \
         adds to it and removes nothing. Sections of which nothing is said stay. A scan that began before the last one that was \
         taken is ignored, and the answer says so.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Report;
    type Output = Answer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Answer> {
        let id = &input.path.device_id;
        if let Some(refusal) = input.body.refusal() {
            return Err(Error::invalid("/body", refusal));
        }
        let org = ctx.org();
        ctx.limit(&REPORTS, &[org, id.as_str()])?;
        reports(ctx, id)?;
        let call = Taking {
            organization: ctx.organization().clone(),
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
            id: id.clone(),
            report: input.body.clone().kept(),
            answer: Arc::default(),
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move { call.keep(kernel).await }))
    }
}

/// Refuses a device that may not report.
fn reports(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    match fleet::standing(ctx, id)? {
        fleet::Standing::Ended => Err(provost_kernel::credential::invalid_token()),
        fleet::Standing::Waits => {
            let message = "the device is not active yet: it has to be heard of, and to be approved where that is asked for";
            Err(Error::new(Code::Conflict, message).with("status", "pending"))
        }
        fleet::Standing::Works => Ok(()),
    }
}

/// One report on its way into the store.
struct Taking {
    organization: OrganizationId,
    actor: Actor,
    origin: Option<Origin>,
    id: DeviceId,
    report: Report,
    answer: Arc<Mutex<Answer>>,
}

impl Taking {
    async fn keep(self, kernel: Arc<Kernel>) -> Result<Answer> {
        let (organization, answer) = (self.organization.clone(), self.answer.clone());
        let run = move |ctx: &mut OperationContext<'_>| {
            let taken = self.take(ctx)?;
            *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = taken;
            Ok(())
        };
        kernel.system(organization, None, run).await?;
        let taken = answer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(taken.clone())
    }

    /// Takes the report. Only what was never seen before is an entry of the audit log.
    fn take(&self, ctx: &mut OperationContext<'_>) -> Result<Answer> {
        // It may have been retired since a reader looked.
        reports(ctx, &self.id)?;
        let mut answer = Answer::default();
        let place = place(&self.report, ctx.now());
        if observations::last_scan(ctx, self.id.as_str())?.is_some_and(|last| last > place) {
            answer.ignored = Some(Ignored::OlderScan);
            return Ok(answer);
        }
        observations::save_scan(ctx, self.id.as_str(), &self.report, place)?;
        for section in &self.report.unchanged {
            let of = self.of(section.client.word(), &section.user);
            match observations::digest(ctx, of)? {
                Some((digest, is_complete)) if digest == section.digest => {
                    observations::touch(ctx, of)?;
                    if is_complete {
                        store::see(ctx, of.device, of.client, of.account)?;
                    }
                }
                _ => answer.unknown_digests.push(section.digest.clone()),
            }
        }
        let mut discovered = BTreeSet::new();
        for section in &self.report.sections {
            let of = self.of(section.client.word(), &section.user);
            let is_new = observations::digest(ctx, of)?.is_none();
            if is_new && observations::count_sections(ctx, of.device)? >= MOST_SECTIONS {
                answer.truncated = true;
                continue;
            }
            let is_truncated = replace(ctx, of, section, &mut discovered)?;
            observations::save_section(ctx, of, section, is_truncated)?;
            if section.complete {
                store::see(ctx, of.device, of.client, of.account)?;
            }
            answer.truncated |= is_truncated;
            answer.accepted += 1;
        }
        if observations::forget(ctx, self.id.as_str())? {
            store::forget_orphans(ctx)?;
        }
        if !discovered.is_empty() {
            ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
            ctx.action(fences::DISCOVERY);
            ctx.target(&fences::INVENTORY, self.id.as_str());
            for server_id in discovered {
                ctx.emit(&fences::DISCOVERED, &fences::OfServer { server_id });
            }
        }
        Ok(answer)
    }

    fn of<'a>(&'a self, client: &'static str, account: &'a str) -> Of<'a> {
        Of {
            device: self.id.as_str(),
            client,
            account,
        }
    }
}

/// Returns the place of a scan in the order of a device's scans: when it began by the device's clock, and never later than it came, so
/// that a clock which was ahead for a while makes no later scan an older one.
fn place(report: &Report, now: Timestamp) -> Timestamp {
    report.started_at.min(now)
}

/// Replaces what is known of a section, and says whether there is more than is kept.
///
/// Keeps IN-2.
fn replace(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    section: &Section,
    discovered: &mut BTreeSet<ServerId>,
) -> Result<bool> {
    let mut known = observations::of_section(ctx, of)?;
    let found = identified(&section.observations);
    let mut count = observations::count(ctx, of.device)?;
    if section.complete {
        for (ident, kept) in &known {
            if !kept.is_removed && !found.contains_key(ident) {
                observations::remove(ctx, &kept.id)?;
                count -= 1;
            }
        }
    }
    let mut is_truncated = false;
    for (ident, sighting) in &found {
        let facts = serde_json::to_string(sighting).map_err(Error::internal)?;
        let kept = known.remove(ident);
        if kept
            .as_ref()
            .is_some_and(|kept| !kept.is_removed && kept.facts == facts)
        {
            if let Some(kept) = kept.filter(|_| !section.complete) {
                store::see_one(ctx, kept.server.as_deref(), kept.asset.as_deref())?;
            }
            continue;
        }
        let is_there = kept.as_ref().is_some_and(|kept| !kept.is_removed);
        if !is_there && count >= MOST_OBSERVATIONS {
            is_truncated = true;
            continue;
        }
        let Some(fresh) = fresh(ctx, ident, facts, sighting, of, discovered)? else {
            is_truncated = true;
            continue;
        };
        match kept {
            Some(kept) => observations::update(ctx, &kept.id, &fresh)?,
            None => observations::insert(ctx, of, &fresh)?,
        }
        // What else stands in the section was not seen by a look with faults.
        let (server, asset) = (fresh.server.as_ref(), fresh.asset.as_ref());
        store::see_one(ctx, server.map(ServerId::as_str), asset.map(AssetId::as_str))?;
        count += i64::from(!is_there);
    }
    Ok(is_truncated)
}

/// Returns the observations by what makes each of them the same one in the next scan.
fn identified(observations: &[Sighting]) -> BTreeMap<String, &Sighting> {
    let mut found = BTreeMap::new();
    for sighting in observations {
        let ident = sighting.ident();
        // Two entries of one name in one file are two things.
        let mut one = ident.clone();
        let mut number = 1;
        while found.contains_key(&one) {
            number += 1;
            one = format!("{ident}#{number}");
        }
        found.insert(one, sighting);
    }
    found
}

/// Returns what is stored of an observation; `None` where the organization knows too much already.
fn fresh<'a>(
    ctx: &mut OperationContext<'_>,
    ident: &'a str,
    facts: String,
    sighting: &'a Sighting,
    of: Of<'_>,
    discovered: &mut BTreeSet<ServerId>,
) -> Result<Option<Fresh<'a>>> {
    let mut fresh = Fresh {
        kind: sighting.kind(),
        ident,
        server: None,
        asset: None,
        transport: None,
        version_pin: None,
        is_weak: false,
        facts,
    };
    match sighting {
        Sighting::McpServer {
            key,
            configured_name,
            transport,
            version_pin,
            weak,
            ..
        } => {
            let may_make = discovered.len() < MOST_DISCOVERIES;
            let Some((id, is_new)) = store::server_of(ctx, key, configured_name, may_make)? else {
                return Ok(None);
            };
            if is_new {
                discovered.insert(id.clone());
            }
            fresh.server = Some(id);
            fresh.transport = Some(transport);
            fresh.version_pin = Some(version_pin.word().to_owned());
            fresh.is_weak = *weak || is_always_weak(key);
        }
        Sighting::Skill { name, digest, .. } => {
            let key = digest.clone().unwrap_or_else(|| format!("name:{name}"));
            let Some(id) = store::asset_of(ctx, AssetKind::Skill, &key, name)? else {
                return Ok(None);
            };
            fresh.asset = Some(id);
        }
        Sighting::Extension { name, .. } => {
            let key = format!("{}/{name}", of.client);
            let Some(id) = store::asset_of(ctx, AssetKind::Extension, &key, name)? else {
                return Ok(None);
            };
            fresh.asset = Some(id);
        }
        _ => {}
    }
    Ok(Some(fresh))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves IN-3.
    #[test]
    fn a_clock_that_was_ahead_makes_no_later_scan_an_older_one() {
        let report = |secs: i64| Report {
            scan_id: "s".into(),
            started_at: Timestamp::EPOCH.plus_secs(secs),
            finished_at: Timestamp::EPOCH.plus_secs(secs),
            sections: vec![],
            unchanged: vec![],
        };
        let now = Timestamp::EPOCH.plus_secs(1_000);
        let ahead = place(&report(1_000_000), now);
        assert_eq!(ahead, now);
        assert!(place(&report(1_001), now.plus_secs(2)) >= ahead);
        assert!(place(&report(10), now) < ahead);
    }
}
