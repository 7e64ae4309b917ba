//! All SQL of what devices say of their clients.

use super::coverage::{BundleReport, ClientCoverage, CoverageLevel, KnownLevel, MOST_CLIENTS};
use super::model::DeviceId;
use provost_kernel::error::{Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use std::collections::BTreeMap;

/// Whether what a device said counts: it is active, not held back, was heard of since `?2`, and told it within a day of its last call.
macro_rules! counts {
    () => {
        "d.status = 'active' AND d.held_at IS NULL AND h.at > ?2 AND v.said_at >= h.at - 86400000"
    };
}

statements! {
    /// Keeps what a device said last.
    SAY = "INSERT INTO device_coverage (organization_id, device_id, said_at, clients, bundle) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (organization_id, device_id) DO UPDATE SET said_at = excluded.said_at, clients = excluded.clients, bundle = excluded.bundle";
    /// The levels of a device.
    LEVELS = "SELECT client, level, told_level, told_at FROM device_coverage_levels WHERE organization_id = ?1 AND device_id = ?2 ORDER BY client LIMIT 64";
    /// Keeps the level of a client.
    KEEP = "INSERT INTO device_coverage_levels (organization_id, device_id, client, level, told_level, told_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (organization_id, device_id, client) DO UPDATE SET level = excluded.level, told_level = excluded.told_level, told_at = excluded.told_at";
    /// Forgets the level of a client.
    FORGET = "DELETE FROM device_coverage_levels WHERE organization_id = ?1 AND device_id = ?2 AND client = ?3";
    /// Forgets the levels of a device.
    FORGET_LEVELS = "DELETE FROM device_coverage_levels WHERE organization_id = ?1 AND device_id = ?2";
    /// Forgets what a device said.
    FORGET_SAID = "DELETE FROM device_coverage WHERE organization_id = ?1 AND device_id = ?2";
    /// How many devices at work have a client of each level.
    COUNTS = concat!("SELECT c.client, CASE WHEN ", counts!(), " THEN CASE WHEN c.level IN ('enforced', 'bypassable') AND b.expires_at > ?3 AND (b.clients = '[]' OR REPLACE(b.clients, '\"' || c.client || '\"', '') <> b.clients) THEN 'observed' ELSE c.level END ELSE 'unknown' END AS counted, COUNT(*) FROM device_coverage_levels c JOIN devices d ON d.organization_id = c.organization_id AND d.id = c.device_id JOIN device_coverage v ON v.organization_id = c.organization_id AND v.device_id = c.device_id LEFT JOIN device_heartbeats h ON h.organization_id = c.organization_id AND h.device_id = c.device_id LEFT JOIN device_bypasses b ON b.organization_id = c.organization_id AND b.device_id = c.device_id AND b.ended_at IS NULL WHERE c.organization_id = ?1 AND d.status IN ('active', 'quarantined') GROUP BY c.client, counted ORDER BY c.client, counted");
    /// How many devices are at work, and how many of them never said anything.
    AT_WORK = "SELECT COUNT(*), COUNT(v.device_id) FROM devices d LEFT JOIN device_coverage v ON v.organization_id = d.organization_id AND v.device_id = d.id WHERE d.organization_id = ?1 AND d.status IN ('active', 'quarantined')";
}

/// Keeps what a device said, and says whether somebody is to be told of a drop.
pub fn say(
    ctx: &mut OperationContext<'_>,
    id: &DeviceId,
    clients: &[ClientCoverage],
    bundle: Option<&BundleReport>,
) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    let text = serde_json::to_string(clients).map_err(Error::internal)?;
    let bundle = bundle
        .map(serde_json::to_string)
        .transpose()
        .map_err(Error::internal)?;
    ctx.queue(&SAY, params![org, id.as_str(), now, text, bundle])?;
    let mut before: BTreeMap<String, KnownLevel> = levels(ctx, id)?
        .into_iter()
        .map(|known| (known.client.clone(), known))
        .collect();
    let mut has_dropped = false;
    for said in clients {
        let known = match before.remove(&said.client) {
            Some(mut known) => {
                known.says(said.level);
                known
            }
            None => KnownLevel::new(&said.client, said.level),
        };
        has_dropped |= known.has_dropped(now);
        keep(ctx, id, &known)?;
    }
    // Of what is not said any more it is not known that it is guarded; where somebody thought so, that is a drop.
    let room = MOST_CLIENTS.saturating_sub(clients.len());
    for (place, mut known) in before.into_values().enumerate() {
        known.says(CoverageLevel::None);
        if known.told.rank() > CoverageLevel::Observed.rank() && place < room {
            has_dropped |= known.has_dropped(now);
            keep(ctx, id, &known)?;
        } else {
            ctx.queue(&FORGET, params![org, id.as_str(), known.client])?;
        }
    }
    Ok(has_dropped)
}

/// Returns what is known of the levels of a device.
pub fn levels(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Vec<KnownLevel>> {
    let org = ctx.org();
    ctx.query(&LEVELS, params![org, id.as_str()], |row| {
        Ok(KnownLevel {
            client: row.get(0)?,
            level: CoverageLevel::from_store(row.str(1)?)?,
            told: CoverageLevel::from_store(row.str(2)?)?,
            told_at: row.get(3)?,
        })
    })
}

/// Keeps what is known of the level of a client.
pub fn keep(ctx: &mut OperationContext<'_>, id: &DeviceId, known: &KnownLevel) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &KEEP,
        params![
            org,
            id.as_str(),
            known.client.as_str(),
            known.level.as_str(),
            known.told.as_str(),
            known.told_at,
        ],
    )
}

/// Forgets what a device said: it is retired.
pub fn forget(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_LEVELS, params![org, id.as_str()])?;
    ctx.queue(&FORGET_SAID, params![org, id.as_str()])
}

/// Returns how many devices have a client of a level, in the words of the store; those count that were heard of since an instant.
pub fn counts(ctx: &mut OperationContext<'_>, heard_since: Timestamp) -> Result<Vec<(String, String, i64)>> {
    let (org, now) = (ctx.org(), ctx.latest());
    ctx.query(&COUNTS, params![org, heard_since, now], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}

/// Returns how many devices are at work, and how many of them said something.
pub fn at_work(ctx: &mut OperationContext<'_>) -> Result<(i64, i64)> {
    let org = ctx.org();
    let found = ctx.query_opt(&AT_WORK, params![org], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.unwrap_or_default())
}
