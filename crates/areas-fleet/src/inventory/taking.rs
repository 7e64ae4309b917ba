//! How a report is written: by the one that writes, in as many units as it takes.
//!
//! A unit has a quarter of a second, others wait for it, and a report may hold thousands of rows. So a unit writes some hundreds, and the
//! next one goes on where it ended. A section has no digest while it is taken: should the rest never come, it is asked for as a whole.

use super::credentials::{self, CredentialChange};
use super::fences;
use super::known::{Known, Room};
use super::model::{AssetId, AssetKind, MOST_OBSERVATIONS, ServerId};
use super::observations::{self, Fresh, Kept, Of};
use super::report::{Answer, Ignored, may_report};
use super::sections::{Found, Ready, Scan};
use super::store;
use crate::fleet::DeviceId;
use provost_areas_platform::settings;
use provost_inventory::wire::{Sighting, Unchanged};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::error::Error;
use provost_kernel::{Kernel, OperationContext, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: sections of a device. Ours: twice those of a report.
const MOST_SECTIONS: usize = 512;
/// LIMIT: things that one unit writes about. Ours: a fraction of the time that it has.
const MOST_OF_UNIT: usize = 250;
/// What a section costs of it, and one that is as it was: statements that are not about a thing.
const OF_SECTION: usize = 10;
const OF_UNCHANGED: usize = 4;
/// LIMIT: how far a device counts on from one scan to the next: beyond it a mistake would end its counting for ever.
const MOST_COUNTED: i64 = 1_000_000;

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

/// How far it is taken.
#[derive(Clone, Default)]
struct Progress {
    answer: Answer,
    room: Room,
    /// How many observations of the device are not removed, once that is counted.
    count: Option<i64>,
    /// Observations of sections for which there was no room.
    without_room: i64,
    is_begun: bool,
    unchanged: usize,
    section: usize,
    within: Within,
    is_done: bool,
}

/// How far a section is taken.
#[derive(Clone, Default)]
struct Within {
    is_begun: bool,
    /// Whether its row says that it is not all.
    is_marked: bool,
    /// The last observation that was taken.
    after: Option<String>,
    not_kept: i64,
    /// Whether a unit left names of projects out of it: another one may have shown them.
    is_without_names: bool,
}

/// What one unit may still do, and what it found.
struct Unit {
    left: usize,
    /// Whether names of projects are kept, as the settings say in this unit.
    shows_projects: bool,
    discovered: BTreeSet<ServerId>,
    credentials: Vec<CredentialChange>,
}

impl Kept {
    /// Says whether it is what was found, named as that is to be kept.
    fn is_of(&self, found: &Found, shows_projects: bool) -> bool {
        self.digest.as_ref() == Some(&found.digest)
            && self.project_name.as_deref() == found.kept_name(shows_projects)
    }
}

impl Unit {
    /// Takes so much of what it may still do, and says whether there was any.
    fn spend(&mut self, cost: usize) -> bool {
        let has = self.left > 0;
        self.left = self.left.saturating_sub(cost);
        has
    }
}

/// The digests of the sections of a device, and which of them are complete.
type Digests = BTreeMap<(String, String), (String, bool)>;

impl Taking {
    /// Takes the report.
    ///
    /// Errors: those of [`may_report`], and of the store.
    pub async fn keep(self, kernel: Arc<Kernel>) -> Result<Answer> {
        let taking = Arc::new(self);
        let mut progress = Progress::default();
        while !progress.is_done {
            progress = taking.go_on(&kernel, progress).await?;
        }
        Ok(progress.answer)
    }

    /// Goes on by one unit.
    async fn go_on(self: &Arc<Self>, kernel: &Kernel, before: Progress) -> Result<Progress> {
        let after: Arc<Mutex<Option<Progress>>> = Arc::default();
        let (taking, given) = (self.clone(), after.clone());
        let run = move |ctx: &mut OperationContext<'_>| {
            // It may run again, and then begins where the unit before it ended.
            let mut progress = before.clone();
            // Others of the device, and of the organization, wrote in between.
            (progress.count, progress.room) = (None, Room::default());
            let mut unit = Unit {
                left: MOST_OF_UNIT,
                shows_projects: settings::load(ctx)?.fleet.privacy.shows_projects(),
                discovered: BTreeSet::new(),
                credentials: Vec::new(),
            };
            let is_done = taking.take(ctx, &mut progress, &mut unit)?;
            progress.is_done = is_done;
            taking.tell(ctx, unit.discovered, &unit.credentials);
            *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
            Ok(())
        };
        kernel.system(self.organization.clone(), None, run).await?;
        let done = after.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.ok_or_else(|| Error::internal("a unit did nothing"))
    }

    /// Goes on taking the report, and says whether it is done. Only what was never seen before is an entry of the audit log.
    fn take(&self, ctx: &mut OperationContext<'_>, progress: &mut Progress, unit: &mut Unit) -> Result<bool> {
        // It may have been retired since a reader looked.
        may_report(ctx, &self.id)?;
        if self.is_late(ctx, progress)? {
            return Ok(true);
        }
        let device = self.id.as_str();
        let mut digests = observations::digests(ctx, device)?;
        if !progress.is_begun {
            observations::save_scan(ctx, device, &self.scan, 0)?;
            progress.is_begun = true;
        }
        while let Some(section) = self.unchanged.get(progress.unchanged) {
            if !unit.spend(OF_UNCHANGED) {
                return Ok(false);
            }
            self.take_unchanged(ctx, section, &digests, &mut progress.answer)?;
            progress.unchanged += 1;
        }
        while let Some(section) = self.sections.get(progress.section) {
            if !progress.within.is_begun && !self.has_room(progress.section, section, &digests) {
                progress.without_room += counted(section.found.len());
                progress.answer.truncated = true;
                progress.section += 1;
                continue;
            }
            if !self.take_section(ctx, section, progress, unit)? {
                return Ok(false);
            }
            digests.entry(section.place()).or_default();
        }
        let most = counted(MOST_OF_UNIT);
        if observations::forget(ctx, device, most)? == most {
            return Ok(false);
        }
        observations::save_scan(ctx, device, &self.scan, progress.without_room)?;
        progress.answer.not_kept += progress.without_room;
        Ok(true)
    }

    /// Says whether another scan came before this one, or another taking between two of its units: of two at once the later one goes on, were
    /// they of one scan.
    fn is_late(&self, ctx: &mut OperationContext<'_>, progress: &mut Progress) -> Result<bool> {
        let last = observations::last_scan(ctx, self.id.as_str())?;
        let came_between = |last: &observations::LastScan| {
            progress.is_begun && last.taking.as_deref() != Some(self.scan.taking.as_str())
        };
        if let Some(last) = last.as_ref()
            && (came_between(last) || last.is_after(&self.scan))
        {
            progress.answer = Answer {
                ignored: Some(Ignored::OlderScan),
                last_counter: last.counter,
                ..Answer::default()
            };
            return Ok(true);
        }
        let most = last
            .and_then(|last| last.counter)
            .unwrap_or(0)
            .saturating_add(MOST_COUNTED);
        if self.scan.counter.is_some_and(|counter| counter > most) {
            let message = "must lie at most 1000000 above that of the scan before";
            return Err(Error::invalid("/counter", message));
        }
        Ok(false)
    }

    /// Says whether there is room for a section. Two accounts whose names are not kept would stand for one.
    fn has_room(&self, at: usize, section: &Ready, digests: &Digests) -> bool {
        let is_same = |other: &Ready| (other.client, &other.account) == (section.client, &section.account);
        let is_first = !self.sections.iter().take(at).any(is_same);
        is_first && (digests.contains_key(&section.place()) || digests.len() < MOST_SECTIONS)
    }

    fn take_unchanged(
        &self,
        ctx: &mut OperationContext<'_>,
        section: &Unchanged,
        digests: &Digests,
        answer: &mut Answer,
    ) -> Result<()> {
        let of = self.of(section.client.word(), &section.user);
        match digests.get(&(of.client.to_owned(), of.account.to_owned())) {
            Some((digest, is_complete)) if *digest == section.digest => {
                observations::touch(ctx, of)?;
                if *is_complete {
                    store::see(ctx, of.device, of.client, of.account)?;
                }
            }
            _ => answer.unknown_digests.push(section.digest.clone()),
        }
        Ok(())
    }

    /// Replaces what is known of a section, as far as the unit goes, and says whether that is done.
    ///
    /// Keeps IN-2, IN-8.
    fn take_section(
        &self,
        ctx: &mut OperationContext<'_>,
        section: &Ready,
        progress: &mut Progress,
        unit: &mut Unit,
    ) -> Result<bool> {
        let of = self.of(section.client, &section.account);
        if !progress.within.is_begun {
            if !unit.spend(OF_SECTION) {
                return Ok(false);
            }
            progress.within.is_begun = true;
        }
        progress.within.is_without_names |= !unit.shows_projects && section.names_projects();
        if !take_part(ctx, of, section, progress, unit)? {
            if !progress.within.is_marked {
                observations::begin_section(ctx, of, section)?;
                progress.within.is_marked = true;
            }
            return Ok(false);
        }
        let within = std::mem::take(&mut progress.within);
        // An agent that has not heard yet that names are hidden loses nothing but these, and is asked for the section again.
        let is_whole = !within.is_without_names;
        observations::save_section(ctx, of, section, (is_whole, within.not_kept))?;
        if section.is_complete && !section.found.is_empty() {
            store::see(ctx, of.device, of.client, of.account)?;
        }
        progress.answer.truncated |= within.not_kept > 0;
        progress.answer.not_kept += within.not_kept;
        progress.answer.accepted += 1;
        progress.section += 1;
        Ok(true)
    }

    fn tell(
        &self,
        ctx: &mut OperationContext<'_>,
        discovered: BTreeSet<ServerId>,
        credentials: &[CredentialChange],
    ) {
        if discovered.is_empty() && credentials.is_empty() {
            return;
        }
        ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
        ctx.action(if discovered.is_empty() {
            fences::CREDENTIALS
        } else {
            fences::DISCOVERY
        });
        ctx.target(&fences::INVENTORY, self.id.as_str());
        for server_id in discovered {
            ctx.emit(&fences::DISCOVERED, &fences::OfServer { server_id });
        }
        credentials::tell(ctx, &self.id, credentials);
    }

    fn of<'a>(&'a self, client: &'static str, account: &'a str) -> Of<'a> {
        Of {
            device: self.id.as_str(),
            client,
            account,
            looked_at: self.scan.started_at,
        }
    }
}

/// Takes the observations of a section, as far as the unit goes, and says whether these are all.
fn take_part(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    section: &Ready,
    progress: &mut Progress,
    unit: &mut Unit,
) -> Result<bool> {
    let after = progress.within.after.clone();
    let mut known = observations::of_section(ctx, of, after.as_deref())?;
    if progress.count.is_none() {
        progress.count = Some(observations::count(ctx, of.device)?);
    }
    // What is gone goes before anything is taken, so that there is room; the units behind that do not look again.
    let is_first = after.is_none();
    if is_first && section.is_complete && !remove_gone(ctx, section, &known, progress, unit)? {
        return Ok(false);
    }
    let (part, is_last) = part_of(section, &known, after.as_ref(), unit);
    let mut keys = look_up(ctx, of, &part)?;
    for &(ident, found) in &part {
        let kept = known.remove(ident);
        let of_one = (ident.as_str(), found);
        if !take_one(ctx, of, of_one, kept.as_ref(), progress, &mut keys, unit)? {
            progress.within.not_kept += 1;
        }
        progress.within.after = Some(ident.clone());
    }
    Ok(is_last)
}

fn counted(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Removes what a complete look at a section no longer found, as far as the unit goes, and says whether that is all.
fn remove_gone(
    ctx: &mut OperationContext<'_>,
    section: &Ready,
    known: &BTreeMap<String, Kept>,
    progress: &mut Progress,
    unit: &mut Unit,
) -> Result<bool> {
    for (ident, kept) in known {
        if kept.is_removed || section.found.contains_key(ident) {
            continue;
        }
        if !unit.spend(1) {
            return Ok(false);
        }
        if kept.is_credential {
            let facts = observations::facts(ctx, &kept.id)?;
            unit.credentials.extend(CredentialChange::gone(&facts));
        }
        observations::remove(ctx, &kept.id)?;
        progress.count = progress.count.map(|count| count - 1);
    }
    Ok(true)
}

/// Returns the observations with which a unit goes on, those left out of which a complete look says what is known, and whether they are
/// the last ones.
fn part_of<'a>(
    section: &'a Ready,
    known: &BTreeMap<String, Kept>,
    after: Option<&String>,
    unit: &mut Unit,
) -> (Vec<(&'a String, &'a Found)>, bool) {
    let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut part = Vec::new();
    for (ident, found) in section.found.range::<String, _>((begin, Bound::Unbounded)) {
        let is_as_it_was = |kept: &Kept| !kept.is_removed && kept.is_of(found, unit.shows_projects);
        if section.is_complete && known.get(ident).is_some_and(is_as_it_was) {
            continue;
        }
        if !unit.spend(1) {
            return (part, false);
        }
        part.push((ident, found));
    }
    (part, true)
}

/// Takes one observation, and says whether there was room for it.
fn take_one(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    (ident, found): (&str, &Found),
    kept: Option<&Kept>,
    progress: &mut Progress,
    keys: &mut Known,
    unit: &mut Unit,
) -> Result<bool> {
    let is_there = kept.is_some_and(|kept| !kept.is_removed);
    if let Some(kept) = kept.filter(|kept| is_there && kept.is_of(found, unit.shows_projects)) {
        store::see_one(ctx, kept.server.as_deref(), kept.asset.as_deref())?;
        return Ok(true);
    }
    let count = progress.count.unwrap_or(MOST_OBSERVATIONS);
    if !is_there && count >= MOST_OBSERVATIONS {
        return Ok(false);
    }
    let Some(mut fresh) = fresh(ctx, of, (ident, found), &mut progress.room, keys, unit)? else {
        return Ok(false);
    };
    // What comes back was something else in between, for all that is known.
    let since = kept.filter(|_| is_there).and_then(|kept| kept.since);
    fresh.since = fresh.name.map(|_| since.unwrap_or_else(|| ctx.now()));
    match kept {
        Some(kept) => observations::update(ctx, &kept.id, &fresh)?,
        None => observations::insert(ctx, of, &fresh)?,
    }
    // What else stands in the section was not seen by a look with faults.
    let (server, asset) = (fresh.server.as_ref(), fresh.asset.as_ref());
    store::see_one(ctx, server.map(ServerId::as_str), asset.map(AssetId::as_str))?;
    progress.count = Some(count + i64::from(!is_there));
    if !is_there {
        unit.credentials
            .extend(CredentialChange::of(&found.sighting, true));
    }
    Ok(true)
}

/// Returns what else than a server an observation is of, and its name.
fn asset_of<'a>(of: Of<'_>, sighting: &'a Sighting) -> Option<((AssetKind, String), &'a str)> {
    match sighting {
        Sighting::Skill { name, digest, .. } => {
            let key = digest.clone().unwrap_or_else(|| format!("name:{name}"));
            Some(((AssetKind::Skill, key), name))
        }
        Sighting::Extension { name, .. } => {
            Some(((AssetKind::Extension, format!("{}/{name}", of.client)), name))
        }
        _ => None,
    }
}

/// Looks up what observations are of.
fn look_up(ctx: &mut OperationContext<'_>, of: Of<'_>, part: &[(&String, &Found)]) -> Result<Known> {
    let (mut servers, mut assets) = (BTreeSet::new(), BTreeSet::new());
    for (_, found) in part {
        if let Sighting::McpServer { key, .. } = &found.sighting {
            servers.insert(key.as_str());
        }
        assets.extend(asset_of(of, &found.sighting).map(|(asset, _)| asset));
    }
    Known::look_up(ctx, &servers, &assets)
}

/// Returns what is stored of an observation; `None` where there is no room for what it makes known.
fn fresh<'a>(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    (ident, found): (&'a str, &'a Found),
    room: &mut Room,
    keys: &mut Known,
    unit: &mut Unit,
) -> Result<Option<Fresh<'a>>> {
    let mut fresh = Fresh {
        kind: found.sighting.kind(),
        ident,
        server: None,
        asset: None,
        transport: None,
        version_pin: None,
        is_weak: false,
        project_name: found.kept_name(unit.shows_projects),
        facts: &found.facts,
        digest: &found.digest,
        name: None,
        since: None,
    };
    if let Sighting::McpServer {
        key,
        configured_name,
        transport,
        version_pin,
        weak,
        ..
    } = &found.sighting
    {
        let Some((id, is_new)) = keys.server(ctx, of.device, (key, configured_name), room)? else {
            return Ok(None);
        };
        if is_new {
            unit.discovered.insert(id.clone());
        }
        fresh.server = Some(id);
        fresh.transport = Some(transport.as_str());
        fresh.version_pin = Some(version_pin.word());
        fresh.is_weak = *weak;
        fresh.name = Some(configured_name);
    }
    if let Some((asset, name)) = asset_of(of, &found.sighting) {
        let Some(id) = keys.asset(ctx, of.device, (&asset, name), room)? else {
            return Ok(None);
        };
        fresh.asset = Some(id);
    }
    Ok(Some(fresh))
}
