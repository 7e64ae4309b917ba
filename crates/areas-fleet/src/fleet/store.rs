//! All SQL of devices.

use super::bypass::{Bypass, BypassId};
use super::clones::{Heartbeat, TamperReason, TamperState};
use super::coverage::{CountedLevel, Said};
use super::kept::ToldBy;
use super::model::{Device, DeviceId, EnrolmentTokenId, KeyProtection, Mode, Owner, Platform, Status};
use super::taken;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, Timestamp, params, statements};
use std::collections::BTreeSet;

/// The columns of a device, in the order that [`device`] expects.
macro_rules! devices {
    () => {
        "SELECT d.id, d.organization_id, d.seq, d.name, d.status, d.needs_approval, d.mode, d.platform, d.arch, \
         d.key_thumbprint, d.key_protection, d.enrolment_token_id, d.created_at, d.updated_at, d.quarantined_at, \
         d.retired_at, d.retire_reason, d.held_at, d.tamper_reason, d.tamper_at, h.at, h.agent_version, h.os_version, \
         h.counter, h.boot_id, h.earlier_boot_id, d.labels, \
         d.owner_user_id, d.owner_reach_role, d.owner_reach_scopes, v.said_at, v.clients, v.bundle, \
         b.id, b.clients, b.created_by, b.created_at, b.expires_at FROM devices d \
         LEFT JOIN device_bypasses b ON b.organization_id = d.organization_id AND b.device_id = d.id AND b.ended_at IS NULL \
         LEFT JOIN device_coverage v ON v.organization_id = d.organization_id AND v.device_id = d.id \
         LEFT JOIN device_heartbeats h ON h.organization_id = d.organization_id AND h.device_id = d.id "
    };
}

/// Whether what a device said of its clients counts: it is active, not held back, was heard of since `?14`, and said it within a day of its
/// last call. As [`Said`] has it.
macro_rules! counts {
    () => {
        "d.status = 'active' AND d.held_at IS NULL AND h.at > ?14 AND v.said_at >= h.at - 86400000"
    };
}

/// As what a client of a device is counted whose word counts: no more than observed while a bypass of it is live at `?16`. As [`Said`] has it.
macro_rules! level {
    () => {
        "CASE WHEN c.level IN ('enforced', 'bypassable') AND b.expires_at > ?16 AND (b.clients = '[]' OR REPLACE(b.clients, '\"' || c.client || '\"', '') <> b.clients) THEN 'observed' ELSE c.level END"
    };
}

statements! {
    /// One device.
    GET = concat!(devices!(), "WHERE d.organization_id = ?1 AND d.id = ?2");
    /// The device of a key.
    OF_KEY = concat!(devices!(), "WHERE d.organization_id = ?1 AND d.key_thumbprint = ?2");
    /// A page of devices, the newest first.
    LIST = concat!(devices!(), "WHERE d.organization_id = ?1 AND d.seq < ?2 AND (CAST(?3 AS TEXT) IS NULL OR d.status = CAST(?3 AS TEXT)) AND (CAST(?4 AS TEXT) IS NULL OR d.platform = CAST(?4 AS TEXT)) AND (CAST(?5 AS TEXT) IS NULL OR d.enrolment_token_id = CAST(?5 AS TEXT)) AND (CAST(?6 AS TEXT) IS NULL OR REPLACE(d.labels, CAST(?6 AS TEXT), '') <> d.labels) AND (CAST(?7 AS TEXT) IS NULL OR REPLACE(LOWER(d.name), CAST(?7 AS TEXT), '') <> LOWER(d.name)) AND (CAST(?11 AS TEXT) IS NULL OR d.owner_user_id = CAST(?11 AS TEXT)) AND CASE WHEN d.status = 'retired' THEN 0 ELSE COALESCE(h.at, 0) END > ?8 AND CASE WHEN d.status = 'retired' THEN 0 ELSE COALESCE(h.at, 0) END <= ?9 AND (CAST(?12 AS TEXT) IS NULL OR (CAST(?12 AS TEXT) = 'unknown' AND d.status <> 'retired' AND NOT COALESCE(", counts!(), " AND EXISTS (SELECT 1 FROM device_coverage_levels c WHERE c.organization_id = d.organization_id AND c.device_id = d.id AND (CAST(?13 AS TEXT) IS NULL OR c.client = CAST(?13 AS TEXT))), FALSE)) OR (", counts!(), " AND EXISTS (SELECT 1 FROM device_coverage_levels c WHERE c.organization_id = d.organization_id AND c.device_id = d.id AND ", level!(), " = CAST(?12 AS TEXT) AND (CAST(?13 AS TEXT) IS NULL OR c.client = CAST(?13 AS TEXT))))) AND (CAST(?13 AS TEXT) IS NULL OR CAST(?12 AS TEXT) IS NOT NULL OR EXISTS (SELECT 1 FROM device_coverage_levels c WHERE c.organization_id = d.organization_id AND c.device_id = d.id AND c.client = CAST(?13 AS TEXT))) AND (CAST(?15 AS TEXT) IS NULL OR (CAST(?15 AS TEXT) = 'suspected') = (d.tamper_reason IS NOT NULL)) ORDER BY d.seq DESC, d.id LIMIT ?10");
    /// A page of the devices of an owner, the newest first.
    OWN = concat!(devices!(), "WHERE d.organization_id = ?1 AND d.owner_user_id = ?2 AND d.seq < ?3 ORDER BY d.seq DESC LIMIT ?4");
    /// How many devices of an organization are not retired.
    COUNT = "SELECT COUNT(*) FROM devices WHERE organization_id = ?1 AND status <> 'retired'";
    /// How many devices that are not retired enrolled by a token.
    COUNT_BY_TOKEN = "SELECT COUNT(*) FROM devices WHERE organization_id = ?1 AND enrolment_token_id = ?2 AND status <> 'retired'";
    /// The devices that are quarantined.
    QUARANTINED = "SELECT id FROM devices WHERE organization_id = ?1 AND status = 'quarantined' ORDER BY id || ''";
    /// How many devices that enrolled by a token wait for their first call or for approval.
    COUNT_PENDING = "SELECT COUNT(*) FROM devices WHERE organization_id = ?1 AND enrolment_token_id = ?2 AND status = 'pending'";
    /// Makes a device.
    INSERT = "INSERT INTO devices (organization_id, id, seq, name, status, needs_approval, mode, platform, arch, key_thumbprint, key_protection, enrolment_token_id, created_at, updated_at) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM devices WHERE organization_id = ?1), ?3, 'pending', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)";
    /// Replaces what can change of a device.
    SAVE = "UPDATE devices SET status = ?3, needs_approval = ?4, updated_at = ?5, quarantined_at = ?6, retired_at = ?7, retire_reason = ?8, tamper_reason = ?9, tamper_at = ?10 WHERE organization_id = ?1 AND id = ?2";
    /// Gives a device another key.
    ROTATE = "UPDATE devices SET key_thumbprint = ?3, updated_at = ?4 WHERE organization_id = ?1 AND id = ?2";
    /// Replaces what people say of a device.
    /// Since when the owner has it, and how much it had told by then, change with the owner and by nothing else.
    DESCRIBE = "UPDATE devices SET name = ?3, labels = ?4, updated_at = ?5, owner_user_id = ?6, owner_reach_role = ?7, owner_reach_scopes = ?8, owned_since = CASE WHEN owner_user_id = CAST(?6 AS TEXT) THEN owned_since WHEN CAST(?6 AS TEXT) IS NULL THEN NULL ELSE CAST(?5 AS BIGINT) END, owned_events = CASE WHEN owner_user_id = CAST(?6 AS TEXT) THEN owned_events WHEN CAST(?6 AS TEXT) IS NULL THEN NULL ELSE CAST(?9 AS BIGINT) END, owned_passed = CASE WHEN owner_user_id = CAST(?6 AS TEXT) THEN owned_passed WHEN CAST(?6 AS TEXT) IS NULL THEN NULL ELSE CAST(?10 AS BIGINT) END WHERE organization_id = ?1 AND id = ?2";
    /// Keeps the last heartbeat of a device.
    BEAT = "INSERT INTO device_heartbeats (organization_id, device_id, at, agent_version, os_version, counter, boot_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (organization_id, device_id) DO UPDATE SET at = excluded.at, agent_version = excluded.agent_version, os_version = excluded.os_version, counter = CASE WHEN device_heartbeats.counter < excluded.counter THEN excluded.counter ELSE device_heartbeats.counter END, earlier_boot_id = CASE WHEN device_heartbeats.boot_id <> excluded.boot_id THEN device_heartbeats.boot_id ELSE device_heartbeats.earlier_boot_id END, boot_id = excluded.boot_id";
    /// Has the next heartbeat of a device be as good as its first.
    RESTART_COUNT = "UPDATE device_heartbeats SET counter = 0, boot_id = '', earlier_boot_id = NULL WHERE organization_id = ?1 AND device_id = ?2";
    /// Devices that were never heard of and that nobody touched since an instant, and those that nobody approved since another.
    ABANDONED = unscoped("the sweep is everybody's") "SELECT d.organization_id, d.id FROM devices d LEFT JOIN device_heartbeats h ON h.organization_id = d.organization_id AND h.device_id = d.id WHERE d.status = 'pending' AND d.held_at IS NULL AND ((d.updated_at <= ?1 AND h.at IS NULL) OR d.updated_at <= ?2) ORDER BY d.organization_id, d.id LIMIT 100";
}

fn device(row: &Row<'_>) -> Result<Device> {
    let heard = row.get::<Option<Timestamp>>(20)?;
    let heartbeat = match heard {
        Some(at) => Some(Heartbeat {
            at,
            agent_version: row.get(21)?,
            os_version: row.get(22)?,
            counter: row.get(23)?,
            boot_id: row.get(24)?,
            earlier_boot_id: row.get(25)?,
        }),
        None => None,
    };
    Ok(Device {
        id: DeviceId::from_store(row.get(0)?),
        organization_id: row.get(1)?,
        seq: row.get(2)?,
        name: row.get(3)?,
        status: Status::from_store(row.str(4)?)?,
        needs_approval: row.get(5)?,
        mode: Mode::from_store(row.str(6)?)?,
        platform: Platform::from_store(row.str(7)?)?,
        arch: row.get(8)?,
        key_thumbprint: row.get(9)?,
        key_protection: KeyProtection::from_store(row.str(10)?)?,
        enrolment_token_id: EnrolmentTokenId::from_store(row.get(11)?),
        created_at: row.get(12)?,
        updated_at: row.get(13)?,
        quarantined_at: row.get(14)?,
        retired_at: row.get(15)?,
        retire_reason: row.get(16)?,
        held_at: row.get(17)?,
        labels: labels(row.str(26)?)?,
        owner: owner(row)?,
        tamper: tamper(row)?,
        heartbeat,
        coverage: coverage(row)?,
        bypass: bypass(row)?,
    })
}

/// Returns the bypass that did not end.
fn bypass(row: &Row<'_>) -> Result<Option<Bypass>> {
    let Some(id) = row.get::<Option<String>>(33)? else {
        return Ok(None);
    };
    Ok(Some(Bypass {
        id: BypassId::from_store(id),
        device_id: DeviceId::from_store(row.get(0)?),
        clients: serde_json::from_str(row.str(34)?).map_err(Error::internal)?,
        created_by: row.get(35)?,
        created_at: row.get(36)?,
        expires_at: row.get(37)?,
        ended_at: None,
        end_reason: None,
    }))
}

fn labels(text: &str) -> Result<Vec<String>> {
    serde_json::from_str(text).map_err(Error::internal)
}

fn owner(row: &Row<'_>) -> Result<Option<Owner>> {
    let Some(user_id) = row.get::<Option<String>>(27)? else {
        return Ok(None);
    };
    let (role, scopes) = (row.get::<Option<String>>(28)?, row.get::<Option<String>>(29)?);
    let reach = taken::reach(role.as_deref(), scopes.as_deref());
    Ok(Some(Owner { user_id, reach }))
}

fn coverage(row: &Row<'_>) -> Result<Option<Said>> {
    let Some(at) = row.get::<Option<Timestamp>>(30)? else {
        return Ok(None);
    };
    let bundle = row.get::<Option<String>>(32)?;
    Said::from_store(at, row.str(31)?, bundle.as_deref()).map(Some)
}

fn tamper(row: &Row<'_>) -> Result<Option<(TamperReason, Timestamp)>> {
    let reason = row.get::<Option<String>>(18)?;
    match (reason, row.get::<Option<Timestamp>>(19)?) {
        (Some(reason), Some(since)) => Ok(Some((TamperReason::from_store(&reason)?, since))),
        _ => Ok(None),
    }
}

/// Returns the ids of the devices that are quarantined.
pub fn quarantined(tx: &mut Tx<'_>, org: &str) -> Result<BTreeSet<String>> {
    let ids = tx.query(&QUARANTINED, params![org], |row| row.get::<String>(0))?;
    Ok(ids.into_iter().collect())
}

/// Returns a device.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Device> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], device)?
        .ok_or_else(|| Error::not_found("device"))
}

/// Returns the device of a key, also a retired one.
pub fn of_key(ctx: &mut OperationContext<'_>, thumbprint: &str) -> Result<Option<Device>> {
    let org = ctx.org();
    ctx.query_opt(&OF_KEY, params![org, thumbprint], device)
}

/// What a list of devices is narrowed to.
pub struct Filter<'a> {
    pub status: Option<Status>,
    pub platform: Option<Platform>,
    pub enrolment_token: Option<&'a str>,
    pub label: Option<&'a str>,
    pub owner: Option<&'a str>,
    /// A part of the name.
    pub part: Option<&'a str>,
    /// After which instant it was heard of, and until which.
    pub heard: (Timestamp, Timestamp),
    /// How far a client of it is guarded.
    pub coverage: Option<CountedLevel>,
    /// A client of which it said something.
    pub client: Option<&'a str>,
    /// Whether it is suspected that there are two of it.
    pub tamper: Option<TamperState>,
    /// Since when a device was heard of whose word counts.
    pub heard_since: Timestamp,
}

/// Returns devices before a place, the newest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    before: i64,
    limit: i64,
) -> Result<Vec<Device>> {
    let (org, now) = (ctx.org(), ctx.latest());
    let (status, platform) = (
        filter.status.map(Status::as_str),
        filter.platform.map(Platform::as_str),
    );
    // A label as it stands in the list of JSON: no label has a quotation mark.
    let label = filter.label.map(|label| format!("\"{label}\""));
    let part = filter.part.map(str::to_ascii_lowercase);
    let (after, until) = filter.heard;
    let params = params![
        org,
        before,
        status,
        platform,
        filter.enrolment_token,
        label.as_deref(),
        part.as_deref(),
        after,
        until,
        limit,
        filter.owner,
        filter.coverage.map(CountedLevel::as_str),
        filter.client,
        filter.heard_since,
        filter.tamper.map(TamperState::as_str),
        now,
    ];
    ctx.query(&LIST, params, device)
}

/// Returns devices of an owner before a place, the newest first.
pub fn own(ctx: &mut OperationContext<'_>, owner: &str, before: i64, limit: i64) -> Result<Vec<Device>> {
    let org = ctx.org();
    ctx.query(&OWN, params![org, owner, before, limit], device)
}

/// Stores a new device, which waits for its first heartbeat.
///
/// Errors: `Conflict` when there are too many.
pub fn insert(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let org = ctx.org();
    let known = ctx.query_opt(&COUNT, params![org], |row| row.get::<i64>(0))?;
    if known.unwrap_or(0) >= super::model::MOST_DEVICES {
        let message = "the organization has as many devices as it may have; retire one first";
        return Err(Error::new(Code::Conflict, message));
    }
    ctx.queue(
        &INSERT,
        params![
            org,
            device.id.as_str(),
            device.name.as_str(),
            device.needs_approval,
            device.mode.as_str(),
            device.platform.as_str(),
            device.arch.as_str(),
            device.key_thumbprint.as_str(),
            device.key_protection.as_str(),
            device.enrolment_token_id.as_str(),
            device.created_at,
        ],
    )
}

/// Stores what changed of a device.
pub fn save(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &SAVE,
        params![
            org,
            device.id.as_str(),
            device.status.as_str(),
            device.needs_approval,
            device.updated_at,
            device.quarantined_at,
            device.retired_at,
            device.retire_reason.as_deref(),
            device.tamper.map(|(reason, _)| reason.as_str()),
            device.tamper.map(|(_, since)| since),
        ],
    )
}

/// Stores the key of a device, which is another one than before. What was said by the former key says nothing of it.
pub fn rotate(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let org = ctx.org();
    let (id, key) = (device.id.as_str(), device.key_thumbprint.as_str());
    ctx.queue(&ROTATE, params![org, id, key, device.updated_at])?;
    restart_count(ctx, &device.id)
}

/// Has the next heartbeat of a device be as good as its first: whatever a copy of it said before counts no more.
pub fn restart_count(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&RESTART_COUNT, params![org, id.as_str()])
}

/// Stores what people say of a device. From when on another owner owns it, and how much it had told by then, is kept with it: the instant of
/// this change, which is later than every one before, whatever a clock shows.
///
/// Keeps FL-15.
pub fn describe(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let asked = ToldBy {
        devices: vec![device.id.clone()],
    };
    let told = ctx.ask(&asked)?.into_iter().next();
    let (events, passed) = told.map_or((0, 0), |(_, told)| (told.events, told.passed));
    let org = ctx.org();
    let owner = device.owner.as_ref();
    let labels = serde_json::to_string(&device.labels).map_err(Error::internal)?;
    ctx.queue(
        &DESCRIBE,
        params![
            org,
            device.id.as_str(),
            device.name.as_str(),
            labels.as_str(),
            device.updated_at,
            owner.map(|owner| owner.user_id.as_str()),
            owner.map(|owner| owner.reach.role()),
            owner.and_then(|owner| owner.reach.scopes()),
            events,
            passed,
        ],
    )
}

/// Keeps what a device said last.
pub fn beat(ctx: &mut OperationContext<'_>, id: &DeviceId, heartbeat: &Heartbeat) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &BEAT,
        params![
            org,
            id.as_str(),
            heartbeat.at,
            heartbeat.agent_version.as_str(),
            heartbeat.os_version.as_str(),
            heartbeat.counter,
            heartbeat.boot_id.as_str(),
        ],
    )
}

/// Returns a hundred devices that enrolled until an instant and were never heard of, or until another and were never approved,
/// of whatever organization.
pub fn abandoned(
    tx: &mut Tx<'_>,
    silent_until: Timestamp,
    waiting_until: Timestamp,
) -> Result<Vec<(String, DeviceId)>> {
    tx.query(&ABANDONED, params![silent_until, waiting_until], |row| {
        Ok((row.get(0)?, DeviceId::from_store(row.get(1)?)))
    })
}

/// Returns how many devices that are not retired enrolled by a token.
pub fn count_by_token(ctx: &mut OperationContext<'_>, id: &EnrolmentTokenId) -> Result<i64> {
    let org = ctx.org();
    let found = ctx.query_opt(&COUNT_BY_TOKEN, params![org, id.as_str()], |row| {
        row.get::<i64>(0)
    })?;
    Ok(found.unwrap_or(0))
}

/// Returns how many devices that enrolled by a token wait for their first call or for approval.
pub fn count_pending(ctx: &mut OperationContext<'_>, id: &EnrolmentTokenId) -> Result<i64> {
    let org = ctx.org();
    let found = ctx.query_opt(&COUNT_PENDING, params![org, id.as_str()], |row| row.get::<i64>(0))?;
    Ok(found.unwrap_or(0))
}
