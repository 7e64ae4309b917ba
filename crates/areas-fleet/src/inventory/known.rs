//! What one report makes known: servers and assets by their keys, as far as there is room.

use super::model::{AssetId, AssetKind, MOST_OF_DEVICE, MOST_SERVERS, ServerId, beginning};
use provost_kernel::db::{Param, Row, Statement};
use provost_kernel::error::Result;
use provost_kernel::{OperationContext, params, statements};
use std::collections::{BTreeMap, BTreeSet};

statements! {
    /// The servers of fifty keys.
    OF_KEYS = "SELECT key, id FROM inventory_servers WHERE organization_id = ?1 AND key IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51) ORDER BY key";
    /// Those of fifty keys about which somebody decided what holds still.
    DECIDED_OF_KEYS = "SELECT key FROM inventory_servers WHERE organization_id = ?1 AND standing_by IS NOT NULL AND (standing_until IS NULL OR standing_until > ?52) AND key IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51) ORDER BY key";
    /// How many servers an organization knows.
    COUNT = "SELECT COUNT(*) FROM inventory_servers WHERE organization_id = ?1";
    /// How many servers one device made known and nobody decided about, and how many it made known since an instant.
    COUNT_OWN = "SELECT COUNT(CASE WHEN standing_by IS NULL THEN 1 END), COUNT(CASE WHEN first_seen_at > ?3 THEN 1 END) FROM inventory_servers WHERE organization_id = ?1 AND found_on = ?2";
    /// How many assets an organization knows.
    COUNT_ASSETS = "SELECT COUNT(*) FROM inventory_assets WHERE organization_id = ?1";
    /// How many assets one device made known.
    COUNT_OWN_ASSETS = "SELECT COUNT(*) FROM inventory_assets WHERE organization_id = ?1 AND found_on = ?2";
    /// Makes a server.
    INSERT = "INSERT INTO inventory_servers (organization_id, id, seq, key, name, search, standing, found_on, standing_at, first_seen_at, last_seen_at, updated_at) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM inventory_servers WHERE organization_id = ?1), ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?8, ?8)";
    /// The assets of fifty keys of a kind.
    ASSETS_OF_KEYS = "SELECT key, id FROM inventory_assets WHERE organization_id = ?1 AND kind = ?2 AND key IN (?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51, ?52) ORDER BY key";
    /// Makes an asset.
    INSERT_ASSET = "INSERT INTO inventory_assets (organization_id, id, seq, kind, key, name, found_on, first_seen_at, last_seen_at) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM inventory_assets WHERE organization_id = ?1), ?3, ?4, ?5, ?6, ?7, ?7)";
}

/// LIMIT: servers that one device makes known within five hours, each an event. Ours; a laptop has a few dozen. It is counted in the store
/// and no limit of requests, so that it holds where those are switched off, after a restart, and beside another server.
const DISCOVERIES: i64 = 500;
const DISCOVERIES_SECS: i64 = 5 * 3600;
/// How many keys are looked up at once.
pub(super) const KEYS: usize = 50;

/// Returns those of these keys that are keys of servers about which somebody decided, letter by letter: what a device alone made known is no word
/// of the organization, and an approval that ended is none any more.
pub fn decided_among(ctx: &mut OperationContext<'_>, keys: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
    let (org, now) = (ctx.org(), ctx.latest());
    let keys: Vec<&str> = keys.iter().copied().collect();
    let mut known = BTreeSet::new();
    for chunk in keys.chunks(KEYS) {
        let mut params = of_keys(&[org], chunk);
        params.push(Param::from(now));
        let rows = ctx.query(&DECIDED_OF_KEYS, &params, |row| row.get::<String>(0))?;
        known.extend(rows);
    }
    Ok(known)
}

/// What one unit of a report may still make known. It is counted when it names the first unknown thing, and once a unit: counting again for
/// each would be work without end for a report that names thousands in an organization that is full, and between two units others write.
#[derive(Clone, Copy, Default)]
pub struct Room {
    servers: Option<i64>,
    assets: Option<i64>,
}

impl Room {
    /// Takes the place of a server that a device makes known, and says whether there was one.
    fn take_server(&mut self, ctx: &mut OperationContext<'_>, device: &str) -> Result<bool> {
        let left = match self.servers {
            Some(left) => left,
            None => count_servers(ctx, device)?,
        };
        self.servers = Some(left - i64::from(left > 0));
        Ok(left > 0)
    }

    /// The same of an asset.
    fn take_asset(&mut self, ctx: &mut OperationContext<'_>, device: &str) -> Result<bool> {
        let left = match self.assets {
            Some(left) => left,
            None => count_assets(ctx, device)?,
        };
        self.assets = Some(left - i64::from(left > 0));
        Ok(left > 0)
    }
}

/// Returns how many servers a device may still make known.
///
/// Keeps IN-8.
fn count_servers(ctx: &mut OperationContext<'_>, device: &str) -> Result<i64> {
    let (org, since) = (ctx.org(), ctx.now().plus_secs(-DISCOVERIES_SECS));
    let all = count(ctx, &COUNT, params![org])?;
    let counts = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?));
    let (own, lately) = ctx
        .query_opt(&COUNT_OWN, params![org, device, since], counts)?
        .unwrap_or_default();
    Ok((MOST_SERVERS - all)
        .min(MOST_OF_DEVICE - own)
        .min(DISCOVERIES - lately))
}

/// The same of assets.
fn count_assets(ctx: &mut OperationContext<'_>, device: &str) -> Result<i64> {
    let org = ctx.org();
    let all = count(ctx, &COUNT_ASSETS, params![org])?;
    let own = count(ctx, &COUNT_OWN_ASSETS, params![org, device])?;
    Ok((MOST_SERVERS - all).min(MOST_OF_DEVICE - own))
}

fn count(ctx: &mut OperationContext<'_>, of: &'static Statement, params: &[Param<'_>]) -> Result<i64> {
    let found = ctx.query_opt(of, params, |row| row.get::<i64>(0))?;
    Ok(found.unwrap_or(0))
}

/// Servers by their keys, as far as the organization knows them.
#[derive(Default)]
pub struct Known {
    servers: BTreeMap<String, ServerId>,
    assets: BTreeMap<(AssetKind, String), AssetId>,
}

impl Known {
    /// Looks up keys, some at once: a store may be a network away.
    pub fn look_up(
        ctx: &mut OperationContext<'_>,
        servers: &BTreeSet<&str>,
        assets: &BTreeSet<(AssetKind, String)>,
    ) -> Result<Self> {
        let mut known = Self::default();
        let org = ctx.org();
        let found = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
        let keys: Vec<&str> = servers.iter().copied().collect();
        for chunk in keys.chunks(KEYS) {
            let params = of_keys(&[org], chunk);
            let rows = ctx.query(&OF_KEYS, &params, found)?;
            let rows = rows.into_iter().map(|(key, id)| (key, ServerId::from_store(id)));
            known.servers.extend(rows);
        }
        for kind in AssetKind::ALL {
            let of_kind = assets.iter().filter(|(of, _)| *of == kind);
            let keys: Vec<&str> = of_kind.map(|(_, key)| key.as_str()).collect();
            for chunk in keys.chunks(KEYS) {
                let params = of_keys(&[org, kind.as_str()], chunk);
                let rows = ctx.query(&ASSETS_OF_KEYS, &params, found)?;
                let rows = rows
                    .into_iter()
                    .map(|(key, id)| ((kind, key), AssetId::from_store(id)));
                known.assets.extend(rows);
            }
        }
        Ok(known)
    }

    /// Returns the server of a key, which is made where there is none, and whether it was; `None` where there is no room for it.
    pub fn server(
        &mut self,
        ctx: &mut OperationContext<'_>,
        device: &str,
        (key, name): (&str, &str),
        room: &mut Room,
    ) -> Result<Option<(ServerId, bool)>> {
        if let Some(id) = self.servers.get(key) {
            return Ok(Some((id.clone(), false)));
        }
        if !room.take_server(ctx, device)? {
            return Ok(None);
        }
        let (org, now) = (ctx.org(), ctx.now());
        let id: ServerId = ctx.new_id();
        let search = format!("{name}\n{key}").to_lowercase();
        let standing = beginning(key).as_str();
        let params = params![
            org,
            id.as_str(),
            key,
            name,
            search.as_str(),
            standing,
            device,
            now
        ];
        ctx.queue(&INSERT, params)?;
        self.servers.insert(key.to_owned(), id.clone());
        Ok(Some((id, true)))
    }

    /// Returns the asset of a key, which is made where there is none; `None` where there is no room for it.
    pub fn asset(
        &mut self,
        ctx: &mut OperationContext<'_>,
        device: &str,
        (of, name): (&(AssetKind, String), &str),
        room: &mut Room,
    ) -> Result<Option<AssetId>> {
        if let Some(id) = self.assets.get(of) {
            return Ok(Some(id.clone()));
        }
        if !room.take_asset(ctx, device)? {
            return Ok(None);
        }
        let (org, now) = (ctx.org(), ctx.now());
        let id: AssetId = ctx.new_id();
        let (kind, key) = (of.0.as_str(), of.1.as_str());
        ctx.queue(
            &INSERT_ASSET,
            params![org, id.as_str(), kind, key, name, device, now],
        )?;
        self.assets.insert(of.clone(), id.clone());
        Ok(Some(id))
    }
}

/// Returns the parameters of a look at some keys, the last of which stands for those that are missing.
pub(super) fn of_keys<'a>(first: &[&'a str], keys: &[&'a str]) -> Vec<Param<'a>> {
    let missing = std::iter::repeat_n(keys.last().copied().unwrap_or_default(), KEYS - keys.len());
    let all = first.iter().copied().chain(keys.iter().copied()).chain(missing);
    all.map(Param::from).collect()
}
