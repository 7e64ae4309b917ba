//! What events say that people use, kept by person, name and what that person's machines had under it.
//!
//! ```text
//! recorded events ── counted once, within a minute ──► announced ──► what the machines of the person had then ──► a row, or one more in it
//! ```
//!
//! A name is looked up when its events are counted, and never again: what is configured later says nothing of what was used before. So
//! a row that names a server is not moved to another one, and a read looks at no event.
//!
//! Keeps IN-8, IN-9.

use super::evidence::{Certainty, Evidence, EvidenceView, Machines, Named};
use super::imported;
use super::known;
use super::model::ServerId;
use provost_areas_platform::announcements::{ServerUse, ServersUsed};
use provost_inventory::wire;
use provost_kernel::db::{Param, Row};
use provost_kernel::error::Result;
use provost_kernel::{OperationContext, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// LIMIT: rows of an organization. Ours: as of servers.
const MOST_USES: i64 = 50_000;
/// LIMIT: rows of one user. Ours: whoever may tell of events names no end of servers in somebody's name.
const MOST_OF_USER: usize = 200;
/// LIMIT: rows of those whom the directory does not know, together. Ours.
const MOST_OF_NOBODY: usize = 1_000;
/// How many users are looked up at once.
const USERS: usize = 10;
/// What stands for a name that is not kept.
const WITHHELD: &str = "hidden:withheld";

statements! {
    /// The servers that devices of ten users have or had, and under which names: devices first, or SQLite walks the organization.
    NAMED = "SELECT d.owner_user_id, o.configured_name, o.server_id, o.is_weak, o.bound_at, o.removed_at FROM devices d CROSS JOIN inventory_observations o WHERE o.organization_id = d.organization_id AND o.device_id = d.id AND d.organization_id = ?1 AND d.owner_user_id IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) AND o.kind = 'mcp_server' ORDER BY d.seq + 0, o.seq + 0";
    /// How the devices of ten users were looked at last, the retired ones left out.
    LOOKED = "SELECT d.owner_user_id, c.received_at, c.not_kept, (SELECT COUNT(*) FROM inventory_sections s WHERE s.organization_id = d.organization_id AND s.device_id = d.id AND (NOT s.is_complete OR s.not_kept > 0)) FROM devices d LEFT JOIN inventory_scans c ON c.organization_id = d.organization_id AND c.device_id = d.id WHERE d.organization_id = ?1 AND d.owner_user_id IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) AND d.status <> 'retired' ORDER BY d.seq + 0";
    /// What is kept of ten users.
    KEPT = "SELECT user_id, evidence, name, server_id, certainty FROM inventory_uses WHERE organization_id = ?1 AND user_id IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ORDER BY seq + 0";
    /// How many rows an organization has.
    COUNT = "SELECT COUNT(*) FROM inventory_uses WHERE organization_id = ?1";
    /// Keeps that something was used once more.
    RAISE = "UPDATE inventory_uses SET events = events + ?7, first_at = CASE WHEN first_at > ?8 THEN ?8 ELSE first_at END, last_at = CASE WHEN last_at < ?9 THEN ?9 ELSE last_at END WHERE organization_id = ?1 AND user_id = ?2 AND evidence = ?3 AND name = ?4 AND server_id = ?5 AND certainty = ?6";
    /// Keeps that something was used.
    INSERT = "INSERT INTO inventory_uses (organization_id, seq, user_id, evidence, name, server_id, certainty, events, first_at, last_at) VALUES (?1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM inventory_uses WHERE organization_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    /// Keeps how much more there was no room for.
    LEAVE_OUT = "INSERT INTO inventory_use_bounds (organization_id, not_kept) VALUES (?1, ?2) ON CONFLICT (organization_id) DO UPDATE SET not_kept = inventory_use_bounds.not_kept + excluded.not_kept";
    /// How much there was no room for.
    LEFT_OUT = "SELECT not_kept FROM inventory_use_bounds WHERE organization_id = ?1";
    /// By what else than configurations fifty servers are known.
    OF_SERVERS = "SELECT server_id, evidence, certainty, CAST(SUM(events) AS BIGINT), MIN(first_at), MAX(last_at) FROM inventory_uses WHERE organization_id = ?1 AND server_id IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51) GROUP BY server_id, evidence, certainty ORDER BY server_id, evidence, certainty";
    /// A page of what is used, what was used first by somebody last first.
    LIST = "SELECT seq, user_id, evidence, name, server_id, certainty, events, first_at, last_at FROM inventory_uses WHERE organization_id = ?1 AND seq < ?2 AND (CAST(?3 AS TEXT) IS NULL OR certainty = CAST(?3 AS TEXT)) AND (CAST(?4 AS TEXT) IS NULL OR evidence = CAST(?4 AS TEXT)) AND (CAST(?5 AS TEXT) IS NULL OR server_id = CAST(?5 AS TEXT)) ORDER BY seq DESC LIMIT ?6";
    /// How many names are used that no device of whoever uses them has, and no other row says what they may stand for.
    UNRESOLVED = "SELECT COUNT(DISTINCT name) FROM inventory_uses WHERE organization_id = ?1 AND certainty = 'unresolved'";
    /// Forgets what a user used.
    FORGET_USER = "DELETE FROM inventory_uses WHERE organization_id = ?1 AND user_id = ?2";
}

/// What tells rows of one user apart: evidence, name, server and certainty.
type RowKey = (Evidence, String, String, Certainty);

/// Keeps what events said. It runs behind the recorder, in the unit that counts the events, and no decision waits for it.
pub fn servers_used(ctx: &mut OperationContext<'_>, used: &ServersUsed) -> Result<()> {
    let mut by_user: BTreeMap<&str, Vec<&ServerUse>> = BTreeMap::new();
    for one in &used.uses {
        by_user
            .entry(one.user.as_deref().unwrap_or_default())
            .or_default()
            .push(one);
    }
    let mut room = None;
    let mut not_kept = used.not_kept;
    let users: Vec<&str> = by_user.keys().copied().collect();
    for some in users.chunks(USERS) {
        let machines = machines(ctx, some)?;
        let mut kept = kept(ctx, some)?;
        for &user in some {
            let of_user = machines.get(user).cloned().unwrap_or_default();
            let rows = kept.entry(user.to_owned()).or_default();
            for one in by_user.get(user).into_iter().flatten().copied() {
                not_kept += keep(ctx, (user, &of_user), one, rows, &mut room)?;
            }
        }
    }
    if not_kept > 0 {
        let org = ctx.org();
        ctx.queue(&LEAVE_OUT, params![org, not_kept])?;
    }
    Ok(())
}

/// Keeps one use; returns for how many rows there was no room.
fn keep(
    ctx: &mut OperationContext<'_>,
    (user, machines): (&str, &Machines),
    one: &ServerUse,
    rows: &mut BTreeSet<RowKey>,
    room: &mut Option<i64>,
) -> Result<i64> {
    let now = ctx.now();
    // The clock of an exporter may be ahead.
    let (first_at, last_at) = (one.first_at.min(now), one.last_at.min(now));
    let is_shown = wire::is_shown_name(&one.name);
    let name = if is_shown { one.name.as_str() } else { WITHHELD };
    let (certainty, mut servers) = if is_shown && !user.is_empty() {
        machines.meant(name, first_at, last_at)
    } else {
        (Certainty::Unresolved, Vec::new())
    };
    if servers.is_empty() {
        servers.push("");
    }
    let evidence = Evidence::from(one.by);
    let most = if user.is_empty() {
        MOST_OF_NOBODY
    } else {
        MOST_OF_USER
    };
    let org = ctx.org();
    let mut left_out = 0;
    for server in servers {
        let params: &[Param<'_>] = params![
            org,
            user,
            evidence.as_str(),
            name,
            server,
            certainty.as_str(),
            one.events,
            first_at,
            last_at,
        ];
        let key = (evidence, name.to_owned(), server.to_owned(), certainty);
        if rows.contains(&key) {
            ctx.queue(&RAISE, params)?;
        } else if rows.len() < most && has_room(ctx, room)? {
            ctx.queue(&INSERT, params)?;
            rows.insert(key);
        } else {
            left_out += 1;
        }
    }
    Ok(left_out)
}

/// Takes the place of a row, and says whether there was one.
fn has_room(ctx: &mut OperationContext<'_>, room: &mut Option<i64>) -> Result<bool> {
    let left = match *room {
        Some(left) => left,
        None => MOST_USES - size(ctx)?,
    };
    *room = Some(left - i64::from(left > 0));
    Ok(left > 0)
}

fn size(ctx: &mut OperationContext<'_>) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT, params![org], |row| row.get::<i64>(0))?;
    Ok(count.unwrap_or(0))
}

/// Returns the parameters of a look at some users, the last of whom stands for those that are missing.
fn of_users<'a>(org: &'a str, users: &[&'a str]) -> Vec<Param<'a>> {
    let last = users.last().copied().unwrap_or_default();
    let missing = std::iter::repeat_n(last, USERS.saturating_sub(users.len()));
    let all = std::iter::once(org).chain(users.iter().copied()).chain(missing);
    all.map(Param::from).collect()
}

/// Returns what is known of the machines of users.
fn machines(ctx: &mut OperationContext<'_>, users: &[&str]) -> Result<BTreeMap<String, Machines>> {
    let org = ctx.org();
    let params = of_users(org, users);
    let mut found: BTreeMap<String, Machines> = BTreeMap::new();
    let looks = ctx.query(&LOOKED, &params, |row| {
        let looked_at: Option<Timestamp> = row.get(1)?;
        let not_kept: Option<i64> = row.get(2)?;
        Ok((
            row.get::<String>(0)?,
            looked_at,
            not_kept.unwrap_or(0) > 0 || row.get::<i64>(3)? > 0,
        ))
    })?;
    for (user, looked_at, has_gaps) in looks {
        let is_first = !found.contains_key(&user);
        let machines = found.entry(user).or_default();
        machines.looked_at = match (is_first, machines.looked_at) {
            (true, _) => looked_at,
            (false, before) => before.zip(looked_at).map(|(one, other)| one.min(other)),
        };
        machines.has_gaps |= has_gaps;
    }
    let named = ctx.query(&NAMED, &params, |row| {
        let name: Option<String> = row.get(1)?;
        let named = Named {
            // What was reported before names were kept may have any.
            name: name.unwrap_or_else(|| WITHHELD.to_owned()),
            server: row.get(2)?,
            is_weak: row.get(3)?,
            since: row.get(4)?,
            removed_at: row.get(5)?,
        };
        Ok((row.get::<String>(0)?, named))
    })?;
    for (user, one) in named {
        found.entry(user).or_default().servers.push(one);
    }
    Ok(found)
}

/// Returns the rows that users have.
fn kept(ctx: &mut OperationContext<'_>, users: &[&str]) -> Result<BTreeMap<String, BTreeSet<RowKey>>> {
    let org = ctx.org();
    let rows = ctx.query(&KEPT, &of_users(org, users), |row| {
        let evidence = Evidence::from_store(row.str(1)?)?;
        let certainty = Certainty::from_store(row.str(4)?)?;
        Ok((
            row.get::<String>(0)?,
            (evidence, row.get(2)?, row.get(3)?, certainty),
        ))
    })?;
    let mut found: BTreeMap<String, BTreeSet<RowKey>> = BTreeMap::new();
    for (user, key) in rows {
        found.entry(user).or_default().insert(key);
    }
    Ok(found)
}

/// Returns by what else than configurations servers are known.
pub fn of_servers(
    ctx: &mut OperationContext<'_>,
    servers: &[&ServerId],
) -> Result<BTreeMap<ServerId, Vec<EvidenceView>>> {
    let org = ctx.org();
    let mut found: BTreeMap<ServerId, Vec<EvidenceView>> = BTreeMap::new();
    let ids: Vec<&str> = servers.iter().map(|id| id.as_str()).collect();
    for chunk in ids.chunks(known::KEYS) {
        let rows = ctx.query(&OF_SERVERS, &known::of_keys(&[org], chunk), |row| {
            let view = EvidenceView {
                evidence: Evidence::from_store(row.str(1)?)?,
                source: None,
                certainty: Some(Certainty::from_store(row.str(2)?)?),
                events: row.get(3)?,
                first_seen_at: row.get(4)?,
                last_seen_at: row.get(5)?,
            };
            Ok((ServerId::from_store(row.get(0)?), view))
        })?;
        for (id, view) in rows {
            found.entry(id).or_default().push(view);
        }
    }
    imported::add_evidence(ctx, &ids, &mut found)?;
    Ok(found)
}

/// What somebody used under a name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InventoryUse")]
pub struct UseView {
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) seq: i64,
    /// What the client calls the server: it says nothing of what runs.
    name: String,
    evidence: Evidence,
    certainty: Certainty,
    /// What the person's devices had under this name when the events were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_id: Option<ServerId>,
    /// Whose events they are; absent where they name nobody whom the directory knows, and for those who do not see whose machines devices
    /// are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_id: Option<String>,
    /// How many events named it.
    events: i64,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

/// What a list of uses is narrowed to.
pub struct Filter<'a> {
    pub certainty: Option<Certainty>,
    pub evidence: Option<Evidence>,
    pub server: Option<&'a str>,
}

/// Returns uses before a place, the newest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    before: i64,
    limit: i64,
) -> Result<Vec<UseView>> {
    let org = ctx.org();
    let (certainty, evidence) = (
        filter.certainty.map(Certainty::as_str),
        filter.evidence.map(Evidence::as_str),
    );
    let params = params![org, before, certainty, evidence, filter.server, limit];
    ctx.query(&LIST, params, |row| {
        let some = |text: String| (!text.is_empty()).then_some(text);
        Ok(UseView {
            seq: row.get(0)?,
            user_id: some(row.get(1)?),
            evidence: Evidence::from_store(row.str(2)?)?,
            name: row.get(3)?,
            server_id: some(row.get(4)?).map(ServerId::from_store),
            certainty: Certainty::from_store(row.str(5)?)?,
            events: row.get(6)?,
            first_seen_at: row.get(7)?,
            last_seen_at: row.get(8)?,
        })
    })
}

/// Returns for how much of what events named there was no room.
pub fn not_kept(ctx: &mut OperationContext<'_>) -> Result<i64> {
    count(ctx, &LEFT_OUT)
}

/// Returns how many names are used that no device of whoever uses them has.
pub fn unresolved(ctx: &mut OperationContext<'_>) -> Result<i64> {
    count(ctx, &UNRESOLVED)
}

fn count(ctx: &mut OperationContext<'_>, statement: &'static provost_kernel::db::Statement) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(statement, params![org], |row: &Row<'_>| row.get::<i64>(0))?;
    Ok(count.unwrap_or(0))
}

/// Forgets what a user used.
pub fn forget_user(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_USER, params![org, user])
}
