//! SQL of what devices said: scans, sections, observations.

use super::called::called;
use super::model::{
    AssetId, FoundStanding, MOST_REMOVED, ObservationId, ObservationView, SectionView, Server, ServerId,
    Standing, is_replaceable,
};
use super::sections::{Ready, Scan};
use super::skills::{self, SkillStanding, beside_registry};
use crate::fleet::{self, DeviceId, Owned, Sight};
use provost_kernel::db::{Param, Row, Statement};
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// The columns of an observation, in the order that [`observation`] expects.
macro_rules! observations {
    () => {
        concat!(
            "SELECT o.id, o.seq, o.device_id, o.client, o.account, o.server_id, o.asset_id, o.is_weak, o.facts, o.first_seen_at, \
             o.removed_at, s.standing, s.standing_until, o.project_name, t.looked_at, ",
            beside_registry!("a"),
            " FROM inventory_observations o LEFT JOIN inventory_servers s ON s.organization_id = o.organization_id AND s.id = o.server_id \
             LEFT JOIN inventory_assets a ON a.organization_id = o.organization_id AND a.id = o.asset_id \
             LEFT JOIN inventory_sections t ON t.organization_id = o.organization_id AND t.device_id = o.device_id \
             AND t.client = o.client AND t.account = o.account "
        )
    };
}

/// Whether the owner of a device (`d`) reads an observation (`x`) of a section (`y`): nobody had the device before, or the look at the section that
/// was taken last began since the owner has it, and found this. A look with faults says nothing of what was known before it.
///
/// Keeps FL-15.
macro_rules! owners {
    () => {
        "COALESCE(COALESCE(d.owned_since, d.updated_at) <= d.created_at OR (y.looked_at > COALESCE(d.owned_since, d.updated_at) AND \
         (y.is_complete OR x.first_seen_at > COALESCE(d.owned_since, d.updated_at))), FALSE)"
    };
}

statements! {
    /// The last scan of a device that was taken.
    LAST_SCAN = "SELECT scan_id, counter, started_at, finished_at, received_at, taking FROM inventory_scans WHERE organization_id = ?1 AND device_id = ?2";
    /// Keeps the last scan of a device.
    SAVE_SCAN = "INSERT INTO inventory_scans (organization_id, device_id, scan_id, counter, started_at, finished_at, not_kept, received_at, taking) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (organization_id, device_id) DO UPDATE SET scan_id = excluded.scan_id, counter = COALESCE(excluded.counter, inventory_scans.counter), started_at = excluded.started_at, finished_at = excluded.finished_at, not_kept = excluded.not_kept, received_at = excluded.received_at, taking = excluded.taking";
    /// The digests of a device's sections, and which of them are complete.
    DIGESTS = "SELECT client, account, digest, is_complete FROM inventory_sections WHERE organization_id = ?1 AND device_id = ?2 ORDER BY client, account";
    /// Keeps what is said of a section.
    SAVE_SECTION = "INSERT INTO inventory_sections (organization_id, device_id, client, account, digest, is_complete, not_kept, faults, received_at, looked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (organization_id, device_id, client, account) DO UPDATE SET digest = excluded.digest, is_complete = excluded.is_complete, not_kept = excluded.not_kept, faults = excluded.faults, received_at = excluded.received_at, looked_at = excluded.looked_at";
    /// Keeps that a section is as it was.
    TOUCH = "UPDATE inventory_sections SET received_at = ?5, looked_at = ?6 WHERE organization_id = ?1 AND device_id = ?2 AND client = ?3 AND account = ?4";
    /// The sections of a device.
    SECTIONS = "SELECT client, account, is_complete, not_kept, faults, received_at, looked_at FROM inventory_sections WHERE organization_id = ?1 AND device_id = ?2 ORDER BY client, account";
    /// How many sections of each client there are, and how many of them are not complete, on devices that are not retired.
    BY_CLIENT = "SELECT c.client, COUNT(DISTINCT c.device_id), COUNT(CASE WHEN c.is_complete THEN NULL ELSE 1 END) FROM inventory_sections c JOIN devices d ON d.organization_id = c.organization_id AND d.id = c.device_id WHERE c.organization_id = ?1 AND d.status <> 'retired' GROUP BY c.client ORDER BY c.client";
    /// What is known of a section's observations behind one of them, removed ones among them. By the index of the section, and without what
    /// was found: a unit reads this again, and a section may hold megabytes.
    OF_SECTION = "SELECT id, ident, facts_digest, removed_at, server_id, asset_id, bound_at, kind, project_name FROM inventory_observations WHERE organization_id = ?1 AND device_id = ?2 AND client = ?3 AND account = ?4 AND ident > ?5 ORDER BY ident";
    /// What was found.
    FACTS = "SELECT facts FROM inventory_observations WHERE organization_id = ?1 AND id = ?2";
    /// How many observations of a device are not removed.
    COUNT = "SELECT COUNT(*) FROM inventory_observations WHERE organization_id = ?1 AND device_id = ?2 AND removed_at IS NULL";
    /// Makes an observation.
    INSERT = "INSERT INTO inventory_observations (organization_id, id, seq, device_id, client, account, kind, ident, server_id, asset_id, transport, version_pin, is_weak, facts, first_seen_at, configured_name, bound_at, facts_digest, project_name) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM inventory_observations WHERE organization_id = ?1), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    /// Replaces what is known of an observation.
    UPDATE = "UPDATE inventory_observations SET server_id = ?3, asset_id = ?4, transport = ?5, version_pin = ?6, is_weak = ?7, facts = ?8, configured_name = ?9, bound_at = ?10, facts_digest = ?11, project_name = ?12, removed_at = NULL WHERE organization_id = ?1 AND id = ?2";
    /// Keeps that an observation is no longer there.
    REMOVE = "UPDATE inventory_observations SET removed_at = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Removed observations of a device beyond so many, those that went last left out.
    OVER = "SELECT id FROM inventory_observations WHERE organization_id = ?1 AND device_id = ?2 AND removed_at IS NOT NULL ORDER BY removed_at DESC, id LIMIT ?3 OFFSET ?4";
    /// Forgets an observation.
    FORGET = "DELETE FROM inventory_observations WHERE organization_id = ?1 AND id = ?2";
    /// A page of a server's instances, the newest first.
    OF_SERVER = concat!(observations!(), "WHERE o.organization_id = ?1 AND o.server_id = ?2 AND o.seq < ?3 ORDER BY o.seq DESC LIMIT ?4");
    /// A page of a device's observations that are not removed, the newest first.
    OF_DEVICE = concat!(observations!(), "WHERE o.organization_id = ?1 AND o.device_id = ?2 AND o.seq < ?3 AND o.removed_at IS NULL ORDER BY o.seq DESC LIMIT ?4");
    /// A page of what is there on the devices of an owner, or on one of them, the newest first. Which rows these are an index says alone, so that
    /// none but theirs is read.
    OF_OWNER = concat!(observations!(), "WHERE o.organization_id = ?1 AND o.seq IN (SELECT x.seq FROM devices d CROSS JOIN inventory_observations x LEFT JOIN inventory_sections y ON y.organization_id = x.organization_id AND y.device_id = x.device_id AND y.client = x.client AND y.account = x.account WHERE d.organization_id = ?1 AND d.owner_user_id = ?2 AND (CAST(?3 AS TEXT) IS NULL OR d.id = CAST(?3 AS TEXT)) AND x.organization_id = d.organization_id AND x.device_id = d.id AND x.removed_at IS NULL AND x.seq < ?4 AND ", owners!(), " ORDER BY x.seq + 0 DESC LIMIT ?5) ORDER BY o.seq + 0 DESC");
    /// The devices of an owner of which something is there that the owner does not read.
    WITHHELD = concat!("SELECT d.id FROM devices d WHERE d.organization_id = ?1 AND d.owner_user_id = ?2 AND EXISTS (SELECT 1 FROM inventory_observations x LEFT JOIN inventory_sections y ON y.organization_id = x.organization_id AND y.device_id = x.device_id AND y.client = x.client AND y.account = x.account WHERE x.organization_id = d.organization_id AND x.device_id = d.id AND x.removed_at IS NULL AND NOT ", owners!(), ") ORDER BY d.id || ''");
}

/// A section by its device, client and account.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub device: &'a str,
    pub client: &'a str,
    pub account: &'a str,
    /// When the look at it began, by the machine's clock.
    pub looked_at: Timestamp,
}

/// An observation of the section that is there already.
pub struct Kept {
    pub id: String,
    /// Of what was found; nothing where it was stored before there was one.
    pub digest: Option<String>,
    pub is_removed: bool,
    pub server: Option<String>,
    pub asset: Option<String>,
    /// Since when a server is there without a break.
    pub since: Option<Timestamp>,
    pub is_credential: bool,
    /// What its project's folder is called.
    pub project_name: Option<String>,
}

/// An observation on its way into the store.
pub struct Fresh<'a> {
    pub kind: &'static str,
    pub ident: &'a str,
    pub server: Option<ServerId>,
    pub asset: Option<AssetId>,
    pub transport: Option<&'static str>,
    pub version_pin: Option<&'static str>,
    pub is_weak: bool,
    pub facts: &'a str,
    pub digest: &'a str,
    /// Under which name a server is there, and since when without a break.
    pub name: Option<&'a str>,
    pub since: Option<Timestamp>,
    pub project_name: Option<&'a str>,
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(Error::internal)
}

fn observation(row: &Row<'_>, now: Timestamp, shows_projects: bool) -> Result<ObservationView> {
    let is_weak = row.get::<bool>(7)?;
    let of_server = match row.get::<Option<String>>(11)? {
        Some(word) => {
            let standing = Standing::from_store(&word)?;
            Some(FoundStanding::Server(Server::standing_of(
                standing,
                row.get(12)?,
                is_weak,
                now,
            )))
        }
        None => None,
    };
    let of_digest = row.get::<Option<String>>(15)?;
    let of_skill = of_digest.as_deref().map(SkillStanding::from_store).transpose()?;
    let found = read(row.str(8)?)?;
    Ok(ObservationView {
        replaceable_by_project: is_replaceable(&found),
        id: ObservationId::from_store(row.get(0)?),
        seq: row.get(1)?,
        device_id: DeviceId::from_store(row.get(2)?),
        client: row.get(3)?,
        account: row.get(4)?,
        server_id: row.get::<Option<String>>(5)?.map(ServerId::from_store),
        asset_id: row.get::<Option<String>>(6)?.map(AssetId::from_store),
        standing: of_server.or(of_skill.map(FoundStanding::Skill)),
        name: called(&found),
        found,
        // Keeps PV-2: what is hidden is not shown from the moment on at which the settings say so; it is forgotten soon after.
        project_name: row.get::<Option<String>>(13)?.filter(|_| shows_projects),
        first_seen_at: row.get(9)?,
        removed_at: row.get(10)?,
    })
}

/// The last scan of a device that was taken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventoryScan")]
pub struct LastScan {
    /// The digest of the name that the device gave it.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) id: String,
    /// The highest count of its scans that the device named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counter: Option<i64>,
    /// The device's clock when it began, whatever that showed.
    pub(super) started_at: Timestamp,
    /// The device's clock when it ended.
    finished_at: Timestamp,
    /// When it was taken.
    pub(super) received_at: Timestamp,
    /// Which taking of a report writes, or wrote last.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) taking: Option<String>,
}

impl LastScan {
    /// Says whether a scan was counted before this one: what is sent again is none, and who does not count sends in order.
    ///
    /// Keeps IN-3.
    pub fn is_after(&self, scan: &Scan) -> bool {
        match (self.counter, scan.counter) {
            (Some(last), Some(counter)) => counter < last || (counter == last && scan.id != self.id),
            _ => false,
        }
    }
}

/// Returns the last scan of a device that was taken.
pub fn last_scan(ctx: &mut OperationContext<'_>, device: &str) -> Result<Option<LastScan>> {
    let org = ctx.org();
    ctx.query_opt(&LAST_SCAN, params![org, device], |row| {
        Ok(LastScan {
            id: row.get(0)?,
            counter: row.get(1)?,
            started_at: row.get(2)?,
            finished_at: row.get(3)?,
            received_at: row.get(4)?,
            taking: row.get(5)?,
        })
    })
}

/// Keeps the last scan of a device, and how much of it there was no room for in no section.
pub fn save_scan(ctx: &mut OperationContext<'_>, device: &str, scan: &Scan, not_kept: i64) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(
        &SAVE_SCAN,
        params![
            org,
            device,
            scan.id.as_str(),
            scan.counter,
            scan.started_at,
            scan.finished_at,
            not_kept,
            now,
            scan.taking.as_str(),
        ],
    )
}

/// Returns the digests of a device's sections as they were sent, by client and account, and which of them are complete.
pub fn digests(
    ctx: &mut OperationContext<'_>,
    device: &str,
) -> Result<BTreeMap<(String, String), (String, bool)>> {
    let org = ctx.org();
    let found = ctx.query(&DIGESTS, params![org, device], |row| {
        Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?)))
    })?;
    Ok(found.into_iter().collect())
}

/// Keeps what is said of a section. Of one that is not wholly kept (`is_whole`, and what there was no room for) the digest is not: the next
/// look at it is to be sent whole, since there may be room by then, or names may be shown.
pub fn save_section(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    section: &Ready,
    (is_whole, not_kept): (bool, i64),
) -> Result<()> {
    let digest = if is_whole && not_kept == 0 {
        section.digest.as_str()
    } else {
        ""
    };
    save(ctx, of, (digest, section.is_complete, not_kept), &section.faults)
}

/// Keeps that a section is being taken: should the rest never come, it says of itself that it is not all.
pub fn begin_section(ctx: &mut OperationContext<'_>, of: Of<'_>, section: &Ready) -> Result<()> {
    let all = i64::try_from(section.found.len()).unwrap_or(i64::MAX);
    save(ctx, of, ("", false, all), &section.faults)
}

fn save(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    (digest, is_complete, not_kept): (&str, bool, i64),
    faults: &str,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let params = params![
        org,
        of.device,
        of.client,
        of.account,
        digest,
        is_complete,
        not_kept,
        faults,
        now,
        began(of.looked_at, now),
    ];
    ctx.queue(&SAVE_SECTION, params)
}

/// LIMIT: how far a machine's clock may be ahead before nobody can say when its look began. Units: seconds.
pub const MOST_AHEAD: i64 = 60;

/// Returns when a look began that was taken at an instant; nothing where the machine's clock is so far ahead that it may have been at any time.
///
/// Keeps FL-15.
pub fn began(started_at: Timestamp, taken_at: Timestamp) -> Option<Timestamp> {
    (started_at <= taken_at.plus_secs(MOST_AHEAD)).then(|| started_at.min(taken_at))
}

/// Keeps that a section is as it was.
pub fn touch(ctx: &mut OperationContext<'_>, of: Of<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let looked_at = began(of.looked_at, now);
    ctx.queue(
        &TOUCH,
        params![org, of.device, of.client, of.account, now, looked_at],
    )
}

/// Returns the sections of a device, as the caller sees them.
///
/// Keeps PV-1.
pub fn sections(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<Vec<SectionView>> {
    let accounts = Accounts::load(ctx)?;
    let org = ctx.org();
    let mut sections = ctx.query(&SECTIONS, params![org, device.as_str()], |row| {
        Ok(SectionView {
            client: row.get(0)?,
            account: accounts.of(device, row.get(6)?, row.get(1)?),
            complete: row.get(2)?,
            truncated: row.get::<i64>(3)? > 0,
            not_kept: row.get(3)?,
            faults: read(row.str(4)?)?,
            reported_at: row.get(5)?,
        })
    })?;
    // The order of what is hidden would say something of it.
    sections.sort_by(|one, other| (&one.client, &one.account).cmp(&(&other.client, &other.account)));
    Ok(sections)
}

/// Returns each client, on how many devices it is, and how many of its sections are not complete.
pub fn by_client(ctx: &mut OperationContext<'_>) -> Result<Vec<(String, i64, i64)>> {
    let org = ctx.org();
    ctx.query(&BY_CLIENT, params![org], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}

/// Returns what is known of a section's observations behind one of them, by what makes them the same.
pub fn of_section(
    ctx: &mut OperationContext<'_>,
    of: Of<'_>,
    after: Option<&str>,
) -> Result<BTreeMap<String, Kept>> {
    let org = ctx.org();
    let params = params![org, of.device, of.client, of.account, after.unwrap_or_default()];
    let found = ctx.query(&OF_SECTION, params, |row| {
        let kept = Kept {
            id: row.get(0)?,
            digest: row.get(2)?,
            is_removed: row.get::<Option<Timestamp>>(3)?.is_some(),
            server: row.get(4)?,
            asset: row.get(5)?,
            since: row.get(6)?,
            is_credential: row.str(7)? == "credential",
            project_name: row.get(8)?,
        };
        Ok((row.get::<String>(1)?, kept))
    })?;
    Ok(found.into_iter().collect())
}

/// Returns what was found, as it is stored.
pub fn facts(ctx: &mut OperationContext<'_>, id: &str) -> Result<String> {
    let org = ctx.org();
    let facts = ctx.query_opt(&FACTS, params![org, id], |row| row.get(0))?;
    Ok(facts.unwrap_or_default())
}

/// Returns how many observations of a device are not removed.
pub fn count(ctx: &mut OperationContext<'_>, device: &str) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT, params![org, device], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Stores a new observation.
pub fn insert(ctx: &mut OperationContext<'_>, of: Of<'_>, fresh: &Fresh<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let id: ObservationId = ctx.new_id();
    ctx.queue(
        &INSERT,
        params![
            org,
            id.as_str(),
            of.device,
            of.client,
            of.account,
            fresh.kind,
            fresh.ident,
            fresh.server.as_ref().map(ServerId::as_str),
            fresh.asset.as_ref().map(AssetId::as_str),
            fresh.transport,
            fresh.version_pin,
            fresh.is_weak,
            fresh.facts,
            now,
            fresh.name,
            fresh.since,
            fresh.digest,
            fresh.project_name,
        ],
    )
}

/// Stores what changed of an observation, which is there again if it was removed.
pub fn update(ctx: &mut OperationContext<'_>, id: &str, fresh: &Fresh<'_>) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &UPDATE,
        params![
            org,
            id,
            fresh.server.as_ref().map(ServerId::as_str),
            fresh.asset.as_ref().map(AssetId::as_str),
            fresh.transport,
            fresh.version_pin,
            fresh.is_weak,
            fresh.facts,
            fresh.name,
            fresh.since,
            fresh.digest,
            fresh.project_name,
        ],
    )
}

/// Keeps that an observation is no longer there.
pub fn remove(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&REMOVE, params![org, id, now])
}

/// Forgets the oldest removed observations of a device beyond those that it may have, and returns how many it were; at most so many. What
/// then stands nowhere stays for as long as what is removed: nobody has a server forgotten sooner by removing something else.
pub fn forget(ctx: &mut OperationContext<'_>, device: &str, most: i64) -> Result<i64> {
    let org = ctx.org();
    let over = ctx.query(&OVER, params![org, device, most, MOST_REMOVED], |row| {
        row.get::<String>(0)
    })?;
    let mut count = 0;
    for id in over {
        ctx.queue(&FORGET, params![org, id.as_str()])?;
        count += 1;
    }
    Ok(count)
}

/// Returns instances of a server before a place, the newest first, as the caller sees them.
///
/// Keeps PV-1.
pub fn of_server(
    ctx: &mut OperationContext<'_>,
    id: &ServerId,
    before: i64,
    limit: i64,
) -> Result<Vec<ObservationView>> {
    page(ctx, &OF_SERVER, id.as_str(), (before, limit))
}

/// Returns observations of a device before a place, the newest first, as the caller sees them.
///
/// Keeps PV-1.
pub fn of_device(
    ctx: &mut OperationContext<'_>,
    id: &DeviceId,
    before: i64,
    limit: i64,
) -> Result<Vec<ObservationView>> {
    page(ctx, &OF_DEVICE, id.as_str(), (before, limit))
}

/// Returns the devices of the caller of which something is there that the caller does not read: nobody looked at it since they are the caller's.
///
/// Keeps FL-15.
pub fn withheld(ctx: &mut OperationContext<'_>) -> Result<Vec<DeviceId>> {
    let (org, me) = (ctx.org(), ctx.actor().id.clone());
    ctx.query(&WITHHELD, params![org, me.as_str()], |row| {
        Ok(DeviceId::from_store(row.get(0)?))
    })
}

/// Returns what is there on the devices of the caller, or on one of them, and was found since they are the caller's, before a place, the newest
/// first.
///
/// Keeps FL-15.
pub fn of_own(
    ctx: &mut OperationContext<'_>,
    device: Option<&DeviceId>,
    before: i64,
    limit: i64,
) -> Result<Vec<ObservationView>> {
    let (org, me) = (ctx.org(), ctx.actor().id.clone());
    let device = device.map(DeviceId::as_str);
    seen(ctx, &OF_OWNER, params![org, me.as_str(), device, before, limit])
}

fn page(
    ctx: &mut OperationContext<'_>,
    of: &'static Statement,
    id: &str,
    (before, limit): (i64, i64),
) -> Result<Vec<ObservationView>> {
    let org = ctx.org();
    seen(ctx, of, params![org, id, before, limit])
}

/// Returns observations as the caller sees them.
fn seen(
    ctx: &mut OperationContext<'_>,
    of: &'static Statement,
    asked: &[Param<'_>],
) -> Result<Vec<ObservationView>> {
    let accounts = Accounts::load(ctx)?;
    let now = ctx.latest();
    let shows_projects = accounts.sight.privacy().shows_projects();
    let mut found = ctx.query(of, asked, |row| {
        let found = observation(row, now, shows_projects)?;
        let account = accounts.of(&found.device_id, row.get(14)?, found.account);
        Ok(ObservationView { account, ..found })
    })?;
    judge_skills(ctx, &mut found)?;
    Ok(found)
}

/// Says of skills by the names of their folders which of them are modified, to whoever may know how they stand.
///
/// Keeps IN-14.
fn judge_skills(ctx: &mut OperationContext<'_>, found: &mut [ObservationView]) -> Result<()> {
    let of_skill = |one: &ObservationView| match one.standing {
        Some(FoundStanding::Skill(of_digest)) => Some(of_digest),
        _ => None,
    };
    let are_judged = skills::are_judged(ctx);
    let names = found
        .iter()
        .filter(|one| are_judged && of_skill(one) == Some(SkillStanding::Unregistered))
        .filter_map(name_of);
    let names = skills::Names::look_up(ctx, names)?;
    for one in found {
        let Some(of_digest) = of_skill(one) else { continue };
        let standing = names.judge(of_digest, name_of(one).unwrap_or_default());
        one.standing = are_judged.then_some(FoundStanding::Skill(standing));
    }
    Ok(())
}

/// Returns how what was found is called there.
fn name_of(found: &ObservationView) -> Option<&str> {
    found.found.get("name").and_then(Value::as_str)
}

/// What the caller sees of accounts of devices.
struct Accounts<'a> {
    sight: Sight<'a>,
    own: Vec<Owned>,
}

impl<'a> Accounts<'a> {
    fn load(ctx: &mut OperationContext<'a>) -> Result<Self> {
        Ok(Self {
            sight: Sight::load(ctx)?,
            own: fleet::own_devices(ctx)?,
        })
    }

    /// Returns what the caller sees of an account of which a look was taken that began at an instant.
    ///
    /// Keeps FL-15.
    fn of(&self, device: &DeviceId, looked_at: Option<Timestamp>, account: String) -> String {
        let is_own = |owned: &Owned| owned.id == *device && owned.covers(looked_at);
        self.sight.account(device, self.own.iter().any(is_own), account)
    }
}
