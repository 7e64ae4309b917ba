//! SQL of servers, of other assets, and of how old the data are.

use super::evidence::EvidenceView;
use super::known;
use super::model::{
    Asset, AssetId, AssetKind, Counts, MOST_SERVERS, REPORTING_SECS, Server, ServerId, Standing,
};
use super::skills::{self, SkillStanding, beside_registry};
use provost_kernel::db::{Row, Statement};
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The columns of a server, in the order that [`server`] expects.
macro_rules! servers {
    () => {
        // What another scanner found first is configured once a device says so.
        "SELECT s.id, s.seq, s.key, s.name, s.standing, s.standing_at, s.standing_until, s.standing_by, s.first_seen_at, s.last_seen_at, \
         (s.found_on NOT LIKE 'import:%' OR EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = s.organization_id \
         AND o.server_id = s.id)) FROM inventory_servers s "
    };
}

/// The columns of an asset, in the order that [`asset`] expects.
macro_rules! assets {
    () => {
        concat!(
            "SELECT s.id, s.seq, s.kind, s.key, s.name, s.first_seen_at, s.last_seen_at, ",
            beside_registry!("s"),
            " FROM inventory_assets s "
        )
    };
}

/// How often fifty servers or assets are there, in one look for all of them. With its retirement nothing is on a device any more. A device is
/// counted by a text of its own: SQLite would walk the organization otherwise, in an order that has devices one behind the other.
macro_rules! counting {
    ($column:literal) => {
        concat!(
            "SELECT o.",
            $column,
            " || '', COUNT(DISTINCT o.device_id || ''), COUNT(DISTINCT o.device_id || '/' || o.account), COUNT(*), \
             COUNT(CASE WHEN o.is_weak THEN 1 END) FROM inventory_observations o WHERE o.organization_id = ?1 AND o.",
            $column,
            " IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, \
             ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51) \
             AND o.removed_at IS NULL GROUP BY o.",
            $column,
            " || '' ORDER BY o.",
            $column,
            " || ''"
        )
    };
}

/// What an instance of a server must fit to.
macro_rules! has_instance {
    ($condition:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = s.organization_id AND o.server_id = s.id AND \
             o.removed_at IS NULL AND ",
            $condition,
            ")"
        )
    };
}

/// How a server stands at an instant: one that is weak wherever it is configured is shadow, as is one whose approval ended.
macro_rules! stands {
    ($now:literal) => {
        concat!(
            "CASE WHEN (s.standing = 'approved' AND s.standing_until <= ",
            $now,
            ") OR (s.standing IN ('approved', 'builtin') AND ",
            has_instance!("o.is_weak"),
            " AND NOT ",
            has_instance!("NOT o.is_weak"),
            ") THEN 'shadow' ELSE s.standing END"
        )
    };
}

statements! {
    /// One server.
    GET = concat!(servers!(), "WHERE s.organization_id = ?1 AND s.id = ?2");
    /// A page of servers, the newest first.
    LIST = concat!(servers!(), "WHERE s.organization_id = ?1 AND s.seq < ?2 AND (CAST(?3 AS TEXT) IS NULL OR ", stands!("?4"), " = CAST(?3 AS TEXT)) AND (CAST(?5 AS TEXT) IS NULL OR ", has_instance!("o.client = CAST(?5 AS TEXT)"), ") AND (CAST(?6 AS TEXT) IS NULL OR ", has_instance!("o.transport = CAST(?6 AS TEXT)"), ") AND (CAST(?7 AS TEXT) IS NULL OR ", has_instance!("o.version_pin = CAST(?7 AS TEXT)"), ") AND (CAST(?8 AS TEXT) IS NULL OR s.search LIKE CAST(?8 AS TEXT) ESCAPE '!') AND (CAST(?9 AS TEXT) IS NULL OR (CAST(?9 AS TEXT) = 'no') <> EXISTS (SELECT 1 FROM inventory_uses u WHERE u.organization_id = s.organization_id AND u.server_id = s.id AND u.last_at >= ?10)) ORDER BY s.seq DESC, s.id LIMIT ?11");
    /// How often servers are there.
    COUNTS = counting!("server_id");
    /// The same of assets.
    ASSET_COUNTS = counting!("asset_id");
    /// How many servers of each standing there are.
    BY_STANDING = concat!("SELECT ", stands!("?2"), " AS stands, COUNT(*) FROM inventory_servers s WHERE s.organization_id = ?1 GROUP BY stands ORDER BY stands");
    /// Keeps what was decided about a server.
    DECIDE = "UPDATE inventory_servers SET standing = ?3, standing_at = ?4, standing_until = ?5, standing_by = ?6, updated_at = ?4 WHERE organization_id = ?1 AND id = ?2";
    /// Keeps that the servers of a section were seen.
    SEE_SERVERS = "UPDATE inventory_servers SET last_seen_at = ?5 WHERE organization_id = ?1 AND last_seen_at < ?5 AND id IN (SELECT server_id FROM inventory_observations WHERE organization_id = ?1 AND device_id = ?2 AND client = ?3 AND account = ?4 AND removed_at IS NULL)";
    /// Keeps that a server was seen.
    SEE_SERVER = "UPDATE inventory_servers SET last_seen_at = ?3 WHERE organization_id = ?1 AND id = ?2 AND last_seen_at < ?3";
    /// Keeps that an asset was seen.
    SEE_ASSET = "UPDATE inventory_assets SET last_seen_at = ?3 WHERE organization_id = ?1 AND id = ?2 AND last_seen_at < ?3";
    /// A page of assets, the newest first, of those whose digest stands so in the registry.
    ASSETS = concat!(assets!(), "WHERE s.organization_id = ?1 AND s.seq < ?2 AND (CAST(?3 AS TEXT) IS NULL OR s.kind = CAST(?3 AS TEXT)) AND (CAST(?4 AS TEXT) IS NULL OR ", beside_registry!("s"), " = CAST(?4 AS TEXT)) ORDER BY s.seq DESC, s.id LIMIT ?5");
    /// Keeps that the assets of a section were seen.
    SEE_ASSETS = "UPDATE inventory_assets SET last_seen_at = ?5 WHERE organization_id = ?1 AND last_seen_at < ?5 AND id IN (SELECT asset_id FROM inventory_observations WHERE organization_id = ?1 AND device_id = ?2 AND client = ?3 AND account = ?4 AND removed_at IS NULL)";
    /// How many devices are not retired.
    KNOWN = "SELECT COUNT(*) FROM devices WHERE organization_id = ?1 AND status <> 'retired'";
    /// How many of them reported since an instant.
    REPORTING = "SELECT COUNT(*) FROM inventory_scans c JOIN devices d ON d.organization_id = c.organization_id AND d.id = c.device_id WHERE c.organization_id = ?1 AND d.status <> 'retired' AND c.received_at >= ?2";
    /// When the one of them that reported longest ago did.
    OLDEST = "SELECT MIN(c.received_at) FROM inventory_scans c JOIN devices d ON d.organization_id = c.organization_id AND d.id = c.device_id WHERE c.organization_id = ?1 AND d.status <> 'retired'";
    /// How many observations of devices are not kept.
    NOT_KEPT = "SELECT CAST(COALESCE((SELECT SUM(c.not_kept) FROM inventory_sections c WHERE c.organization_id = ?1), 0) + COALESCE((SELECT SUM(c.not_kept) FROM inventory_scans c WHERE c.organization_id = ?1), 0) AS BIGINT)";
    /// How many servers, assets and uses there are.
    SIZE = "SELECT (SELECT COUNT(*) FROM inventory_servers WHERE organization_id = ?1), (SELECT COUNT(*) FROM inventory_assets WHERE organization_id = ?1), (SELECT COUNT(*) FROM inventory_uses WHERE organization_id = ?1)";
}

provost_kernel::word! {
    /// Of what an organization knows as much as it may.
    pub enum Full {
        /// Identities of servers.
        Servers = "mcp_servers",
        /// Skills and extensions.
        Assets = "assets",
        /// What events of hooks and telemetry name.
        Uses = "uses",
    }
}

/// How old the data are: an inventory that leaves this out lies by it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DataAge")]
pub struct Age {
    /// How long ago the device reported that did so longest ago; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_seconds: Option<i64>,
    /// How many devices reported within seven days.
    devices_reporting: i64,
    /// How many devices there are, the retired ones left out.
    devices_known: i64,
    /// How many things that devices reported last are not kept, because a bound was reached: they are in no list.
    not_kept: i64,
    /// Of what the organization knows as much as it may, so that nothing new of it is kept.
    full: Vec<Full>,
}

fn server(row: &Row<'_>) -> Result<Server> {
    Ok(Server {
        id: ServerId::from_store(row.get(0)?),
        seq: row.get(1)?,
        key: row.get(2)?,
        name: row.get(3)?,
        standing: Standing::from_store(row.str(4)?)?,
        standing_at: row.get(5)?,
        standing_until: row.get(6)?,
        standing_by: row.get(7)?,
        first_seen_at: row.get(8)?,
        last_seen_at: row.get(9)?,
        counts: Counts::default(),
        is_configured: row.get(10)?,
    })
}

fn asset(row: &Row<'_>) -> Result<Asset> {
    let (first_seen_at, last_seen_at) = (row.get(5)?, row.get(6)?);
    let of_digest = row.get::<Option<String>>(7)?;
    Ok(Asset {
        id: AssetId::from_store(row.get(0)?),
        seq: row.get(1)?,
        kind: AssetKind::from_store(row.str(2)?)?,
        key: row.get(3)?,
        name: row.get(4)?,
        standing: of_digest.as_deref().map(SkillStanding::from_store).transpose()?,
        first_seen_at,
        last_seen_at,
        devices: 0,
        instances: 0,
        evidence: vec![EvidenceView::configured(first_seen_at, last_seen_at)],
    })
}

/// Returns a server.
///
/// Errors: `NotFound` for an unknown and another organization's server alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ServerId) -> Result<Server> {
    let org = ctx.org();
    let mut server = ctx
        .query_opt(&GET, params![org, id.as_str()], server)?
        .ok_or_else(|| Error::not_found("MCP server"))?;
    let counts = counts(ctx, &COUNTS, &[id.as_str()])?;
    server.counts = counts.get(id.as_str()).copied().unwrap_or_default();
    Ok(server)
}

/// Returns how often things are there, by their ids; what is nowhere is left out.
fn counts(
    ctx: &mut OperationContext<'_>,
    statement: &'static Statement,
    ids: &[&str],
) -> Result<BTreeMap<String, Counts>> {
    let org = ctx.org();
    let mut found = BTreeMap::new();
    for chunk in ids.chunks(known::KEYS) {
        let rows = ctx.query(statement, &known::of_keys(&[org], chunk), |row| {
            let counts = Counts {
                devices: row.get(1)?,
                accounts: row.get(2)?,
                instances: row.get(3)?,
                weak: row.get(4)?,
            };
            Ok((row.get::<String>(0)?, counts))
        })?;
        found.extend(rows);
    }
    Ok(found)
}

/// What a list of servers is narrowed to.
pub struct Filter<'a> {
    pub standing: Option<Standing>,
    pub client: Option<&'a str>,
    pub transport: Option<&'a str>,
    pub version_pin: Option<&'a str>,
    pub query: Option<&'a str>,
    pub used: Option<Used>,
}

provost_kernel::word! {
    /// Whether events named something of which it may have been used.
    pub enum Used {
        /// In the last 90 days.
        Yes = "yes",
        /// As far as is known, never.
        No = "no",
        /// In the last 30 days.
        Month = "30d",
    }
}

/// Returns servers before a place, the newest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    before: i64,
    limit: i64,
) -> Result<Vec<Server>> {
    let (org, now) = (ctx.org(), ctx.latest());
    let pattern = filter.query.map(pattern);
    let since = match filter.used {
        Some(Used::Month) => now.plus_secs(-MONTH_SECS),
        _ => Timestamp::EPOCH,
    };
    let params = params![
        org,
        before,
        filter.standing.map(Standing::as_str),
        now,
        filter.client,
        filter.transport,
        filter.version_pin,
        pattern.as_deref(),
        filter.used.map(Used::as_str),
        since,
        limit,
    ];
    let mut servers = ctx.query(&LIST, params, server)?;
    let ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    let counts = counts(ctx, &COUNTS, &ids)?;
    for server in &mut servers {
        server.counts = counts.get(server.id.as_str()).copied().unwrap_or_default();
    }
    Ok(servers)
}

/// Returns what `LIKE` finds a text by, whatever stands in it.
fn pattern(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for c in text.to_lowercase().chars() {
        if "!%_".contains(c) {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern + "%"
}

/// Returns how many servers of each standing there are.
pub fn by_standing(ctx: &mut OperationContext<'_>) -> Result<Vec<(Standing, i64)>> {
    let (org, now) = (ctx.org(), ctx.latest());
    ctx.query(&BY_STANDING, params![org, now], |row| {
        Ok((Standing::from_store(row.str(0)?)?, row.get(1)?))
    })
}

/// How long something counts as used lately. Units: seconds (F3.10).
const MONTH_SECS: i64 = 30 * 86_400;

/// What a list of assets is narrowed to.
#[derive(Clone, Copy)]
pub struct AssetFilter {
    pub kind: Option<AssetKind>,
    /// Only skills that stand so beside the registry.
    pub standing: Option<SkillStanding>,
}

/// LIMIT: skills whose names are compared with those of the registry for one page. Ours: a unit has a quarter of a second. The names of none
/// may fit; the page then has fewer than it may have, and says where the list goes on.
const MOST_COMPARED: i64 = 1_000;
/// How many of them are read at once.
const COMPARED_AT_ONCE: i64 = 250;

/// Returns at most so many assets before a place, the newest first, and the place at which the list goes on.
///
/// Keeps IN-14.
pub fn assets(
    ctx: &mut OperationContext<'_>,
    filter: AssetFilter,
    mut before: i64,
    limit: i64,
) -> Result<(Vec<Asset>, Option<i64>)> {
    let is_named = |standing| matches!(standing, SkillStanding::Modified | SkillStanding::Unregistered);
    // Where the name decides, more is read than is shown.
    let step = match filter.standing {
        Some(standing) if is_named(standing) => COMPARED_AT_ONCE,
        _ => limit + 1,
    };
    let mut found: Vec<Asset> = Vec::new();
    let mut compared = 0;
    let goes_on = 'pages: loop {
        let read = assets_of_digest(ctx, filter, before, step)?;
        let is_last = counted(&read) < step;
        for asset in judged(ctx, read)? {
            if counted(&found) == limit {
                break 'pages Some(before);
            }
            before = asset.seq;
            if filter
                .standing
                .is_none_or(|standing| asset.standing == Some(standing))
            {
                found.push(asset);
            }
        }
        compared += step;
        if is_last {
            break None;
        }
        if compared >= MOST_COMPARED {
            break Some(before);
        }
    };
    count_assets(ctx, &mut found)?;
    Ok((found, goes_on))
}

fn counted<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// Returns assets before a place whose digest stands as that of what is asked for, the newest first.
fn assets_of_digest(
    ctx: &mut OperationContext<'_>,
    filter: AssetFilter,
    before: i64,
    limit: i64,
) -> Result<Vec<Asset>> {
    let (org, kind) = (ctx.org(), filter.kind.map(AssetKind::as_str));
    let of_digest = filter.standing.map(|standing| match standing {
        SkillStanding::Modified => SkillStanding::Unregistered.as_str(),
        standing => standing.as_str(),
    });
    ctx.query(&ASSETS, params![org, before, kind, of_digest, limit], asset)
}

/// Says of skills by their names which of them are modified, to whoever may know how they stand.
fn judged(ctx: &mut OperationContext<'_>, mut assets: Vec<Asset>) -> Result<Vec<Asset>> {
    if !skills::are_judged(ctx) {
        for asset in &mut assets {
            asset.standing = None;
        }
        return Ok(assets);
    }
    let of_no_version = |asset: &&Asset| asset.standing == Some(SkillStanding::Unregistered);
    let names = assets
        .iter()
        .filter(of_no_version)
        .map(|asset| asset.name.as_str());
    let names = skills::Names::look_up(ctx, names)?;
    for asset in &mut assets {
        asset.standing = asset.standing.map(|standing| names.judge(standing, &asset.name));
    }
    Ok(assets)
}

fn count_assets(ctx: &mut OperationContext<'_>, assets: &mut [Asset]) -> Result<()> {
    let ids: Vec<&str> = assets.iter().map(|asset| asset.id.as_str()).collect();
    let counts = counts(ctx, &ASSET_COUNTS, &ids)?;
    for asset in assets {
        let of_asset = counts.get(asset.id.as_str()).copied().unwrap_or_default();
        (asset.devices, asset.instances) = (of_asset.devices, of_asset.instances);
    }
    Ok(())
}

/// Stores what was decided about a server.
pub fn save_decision(ctx: &mut OperationContext<'_>, server: &Server) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &DECIDE,
        params![
            org,
            server.id.as_str(),
            server.standing.as_str(),
            server.standing_at,
            server.standing_until,
            server.standing_by.as_deref(),
        ],
    )
}

/// Keeps that what stands in a section was seen now.
pub fn see(ctx: &mut OperationContext<'_>, device: &str, client: &str, account: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&SEE_SERVERS, params![org, device, client, account, now])?;
    ctx.queue(&SEE_ASSETS, params![org, device, client, account, now])
}

/// Keeps that a server or an asset was seen now.
pub fn see_one(ctx: &mut OperationContext<'_>, server: Option<&str>, asset: Option<&str>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    if let Some(id) = server {
        ctx.queue(&SEE_SERVER, params![org, id, now])?;
    }
    if let Some(id) = asset {
        ctx.queue(&SEE_ASSET, params![org, id, now])?;
    }
    Ok(())
}

/// Returns how old the data are, and what is missing in them.
pub fn age(ctx: &mut OperationContext<'_>) -> Result<Age> {
    let (org, now) = (ctx.org(), ctx.latest());
    let count = |row: &Row<'_>| row.get::<i64>(0);
    let known = ctx.query_opt(&KNOWN, params![org], count)?;
    let since = now.plus_secs(-REPORTING_SECS);
    let reporting = ctx.query_opt(&REPORTING, params![org, since], count)?;
    let oldest = ctx.query_opt(&OLDEST, params![org], |row| row.get::<Option<Timestamp>>(0))?;
    let not_kept = ctx.query_opt(&NOT_KEPT, params![org], count)?;
    let sizes = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<i64>(2)?));
    let (servers, assets, uses) = ctx.query_opt(&SIZE, params![org], sizes)?.unwrap_or_default();
    let full = [
        (Full::Servers, servers),
        (Full::Assets, assets),
        (Full::Uses, uses),
    ];
    Ok(Age {
        oldest_seconds: oldest
            .flatten()
            .map(|at| (now.as_ms() - at.as_ms()).max(0) / 1000),
        devices_reporting: reporting.unwrap_or(0),
        devices_known: known.unwrap_or(0),
        not_kept: not_kept.unwrap_or(0),
        full: full
            .into_iter()
            .filter(|(_, size)| *size >= MOST_SERVERS)
            .map(|(kind, _)| kind)
            .collect(),
    })
}
