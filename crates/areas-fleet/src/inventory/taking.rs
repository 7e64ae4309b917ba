//! How a report is written: by the one that writes, in one unit.

use super::fences;
use super::model::{AssetId, AssetKind, MOST_OBSERVATIONS, ServerId};
use super::observations::{self, Fresh, Of};
use super::report::{Answer, Ignored, may_report};
use super::sections::{Found, Ready, Scan};
use super::store::{self, Room};
use crate::fleet::DeviceId;
use provost_inventory::wire::{Sighting, Unchanged};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::{Kernel, OperationContext, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: sections of a device. Ours: twice those of a report.
const MOST_SECTIONS: i64 = 512;
/// LIMIT: servers that one report makes known, each an event. Ours: more is no laptop.
const MOST_DISCOVERIES: i64 = 500;
/// LIMIT: skills and extensions that one report makes known. Ours.
const MOST_NEW_ASSETS: i64 = 500;

/// One report on its way into the store.
pub struct Taking {
    pub organization: OrganizationId,
    pub actor: Actor,
    pub origin: Option<Origin>,
    pub id: DeviceId,
    pub scan: Scan,
    pub sections: Vec<Ready>,
    pub unchanged: Vec<Unchanged>,
}

/// What a report may still make known, and what it did.
struct News {
    servers: Room,
    assets: Room,
    discovered: BTreeSet<ServerId>,
}

impl Taking {
    /// Takes the report.
    ///
    /// Errors: those of [`may_report`], and of the store.
    pub async fn keep(self, kernel: Arc<Kernel>) -> Result<Answer> {
        let answer: Arc<Mutex<Answer>> = Arc::default();
        let (organization, given) = (self.organization.clone(), answer.clone());
        let run = move |ctx: &mut OperationContext<'_>| {
            let taken = self.take(ctx)?;
            *given.lock().unwrap_or_else(PoisonError::into_inner) = taken;
            Ok(())
        };
        kernel.system(organization, None, run).await?;
        let taken = answer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(taken.clone())
    }

    /// Takes the report. Only what was never seen before is an entry of the audit log.
    fn take(&self, ctx: &mut OperationContext<'_>) -> Result<Answer> {
        // It may have been retired since a reader looked.
        may_report(ctx, &self.id)?;
        let device = self.id.as_str();
        let mut answer = Answer::default();
        let last = observations::last_scan(ctx, device)?;
        if let Some(last) = last.filter(|last| last.is_after(&self.scan)) {
            answer.ignored = Some(Ignored::OlderScan);
            answer.last_counter = last.counter;
            return Ok(answer);
        }
        for section in &self.unchanged {
            self.take_unchanged(ctx, section, &mut answer)?;
        }
        let mut news = News {
            servers: Room::for_servers(MOST_DISCOVERIES),
            assets: Room::for_assets(MOST_NEW_ASSETS),
            discovered: BTreeSet::new(),
        };
        let mut without_room = 0;
        let mut taken = BTreeSet::new();
        for section in &self.sections {
            let of = self.of(section.client, &section.account);
            let is_new = observations::digest(ctx, of)?.is_none();
            // Two accounts whose names are not kept would stand for one.
            let is_another = taken.insert((section.client, section.account.as_str()));
            if !is_another || (is_new && observations::count_sections(ctx, device)? >= MOST_SECTIONS) {
                without_room += counted(section.found.len());
                answer.truncated = true;
                continue;
            }
            let not_kept = replace(ctx, of, section, &mut news)?;
            observations::save_section(ctx, of, section, not_kept)?;
            if section.is_complete {
                store::see(ctx, of.device, of.client, of.account)?;
            }
            answer.truncated |= not_kept > 0;
            answer.not_kept += not_kept;
            answer.accepted += 1;
        }
        answer.not_kept += without_room;
        observations::save_scan(ctx, device, &self.scan, without_room)?;
        observations::forget(ctx, device)?;
        self.tell(ctx, news.discovered);
        Ok(answer)
    }

    fn take_unchanged(
        &self,
        ctx: &mut OperationContext<'_>,
        section: &Unchanged,
        answer: &mut Answer,
    ) -> Result<()> {
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
        Ok(())
    }

    fn tell(&self, ctx: &mut OperationContext<'_>, discovered: BTreeSet<ServerId>) {
        if discovered.is_empty() {
            return;
        }
        ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
        ctx.action(fences::DISCOVERY);
        ctx.target(&fences::INVENTORY, self.id.as_str());
        for server_id in discovered {
            ctx.emit(&fences::DISCOVERED, &fences::OfServer { server_id });
        }
    }

    fn of<'a>(&'a self, client: &'static str, account: &'a str) -> Of<'a> {
        Of {
            device: self.id.as_str(),
            client,
            account,
        }
    }
}

fn counted(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Replaces what is known of a section, and returns how many observations there was no room for.
///
/// Keeps IN-2, IN-8.
fn replace(ctx: &mut OperationContext<'_>, of: Of<'_>, section: &Ready, news: &mut News) -> Result<i64> {
    let mut known = observations::of_section(ctx, of)?;
    let mut count = observations::count(ctx, of.device)?;
    if section.is_complete {
        for (ident, kept) in &known {
            if !kept.is_removed && !section.found.contains_key(ident) {
                observations::remove(ctx, &kept.id)?;
                count -= 1;
            }
        }
    }
    let mut not_kept = 0;
    for (ident, found) in &section.found {
        let kept = known.remove(ident);
        let is_there = kept.as_ref().is_some_and(|kept| !kept.is_removed);
        if let Some(kept) = kept.as_ref().filter(|kept| is_there && kept.facts == found.facts) {
            if !section.is_complete {
                store::see_one(ctx, kept.server.as_deref(), kept.asset.as_deref())?;
            }
            continue;
        }
        if !is_there && count >= MOST_OBSERVATIONS {
            not_kept += 1;
            continue;
        }
        let Some(fresh) = fresh(ctx, ident, found, of, news)? else {
            not_kept += 1;
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
    Ok(not_kept)
}

/// Returns what is stored of an observation; `None` where there is no room for what it makes known.
fn fresh<'a>(
    ctx: &mut OperationContext<'_>,
    ident: &'a str,
    found: &'a Found,
    of: Of<'_>,
    news: &mut News,
) -> Result<Option<Fresh<'a>>> {
    let mut fresh = Fresh {
        kind: found.sighting.kind(),
        ident,
        server: None,
        asset: None,
        transport: None,
        version_pin: None,
        is_weak: false,
        facts: &found.facts,
    };
    let asset = match &found.sighting {
        Sighting::McpServer {
            key,
            configured_name,
            transport,
            version_pin,
            weak,
            ..
        } => {
            let known = store::server_of(ctx, of.device, key, configured_name, &mut news.servers)?;
            let Some((id, is_new)) = known else {
                return Ok(None);
            };
            if is_new {
                news.discovered.insert(id.clone());
            }
            fresh.server = Some(id);
            fresh.transport = Some(transport.as_str());
            fresh.version_pin = Some(version_pin.word());
            fresh.is_weak = *weak;
            None
        }
        Sighting::Skill { name, digest, .. } => {
            let key = digest.clone().unwrap_or_else(|| format!("name:{name}"));
            Some((AssetKind::Skill, key, name))
        }
        Sighting::Extension { name, .. } => {
            Some((AssetKind::Extension, format!("{}/{name}", of.client), name))
        }
        _ => None,
    };
    if let Some((kind, key, name)) = asset {
        let known = store::asset_of(ctx, of.device, (kind, &key), name, &mut news.assets)?;
        let Some(id) = known else {
            return Ok(None);
        };
        fresh.asset = Some(id);
    }
    Ok(Some(fresh))
}
