//! What events say that people use: what waits to be joined, and what is read of it.
//!
//! A name is joined with what the machines of the person had when its events are counted, and never again (`joining.rs`): what is
//! configured later says nothing of what was used before. So a row that names a server is not moved to another one, and a read looks at no
//! event.
//!
//! Keeps IN-8, IN-9.

use super::evidence::{Certainty, Evidence, EvidenceView};
use super::model::{ObservationId, ServerId};
use super::{imported, known};
use provost_areas_platform::announcements::{ServersUsed, UseWitness};
use provost_inventory::wire;
use provost_kernel::db::{Row, Statement};
use provost_kernel::error::Result;
use provost_kernel::{OperationContext, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// LIMIT: uses of an organization that wait. Ours: some ten minutes of a large one.
const MOST_WAITING: i64 = 10_000;
/// LIMIT: of these, the room that devices leave to what was seen. Ours.
const LEFT_BY_DEVICES: i64 = MOST_WAITING / 2;
/// What stands for a name that is not kept.
pub const WITHHELD: &str = "hidden:withheld";

statements! {
    /// Has a use wait.
    WAIT = "INSERT INTO inventory_use_queue (organization_id, id, user_id, evidence, name, events, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    /// How many wait.
    WAITING = "SELECT COUNT(*) FROM inventory_use_queue WHERE organization_id = ?1";
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
    /// The same of what waits.
    FORGET_WAITING = "DELETE FROM inventory_use_queue WHERE organization_id = ?1 AND user_id = ?2";
}

/// Has what events said wait until it is joined. It runs behind the recorder, in the unit that counts the events: no decision waits for it, and
/// it asks nothing about a machine, so that nothing that a machine has can hold up the count.
pub fn servers_used(ctx: &mut OperationContext<'_>, used: &ServersUsed) -> Result<()> {
    let mut room = MOST_WAITING - count(ctx, &WAITING)?;
    let (org, now) = (ctx.org(), ctx.now());
    let mut not_kept = used.not_kept;
    for one in &used.uses {
        // What a device says that it judged takes no room that what was seen may need.
        let left = if one.by == UseWitness::Device {
            LEFT_BY_DEVICES
        } else {
            0
        };
        if room <= left {
            not_kept += 1;
            continue;
        }
        room -= 1;
        let name = if wire::is_shown_name(&one.name) {
            one.name.as_str()
        } else {
            WITHHELD
        };
        let id: ObservationId = ctx.new_id();
        ctx.queue(
            &WAIT,
            params![
                org,
                id.as_str(),
                one.user.as_deref().unwrap_or_default(),
                Evidence::from(one.by).as_str(),
                name,
                one.events,
                // The clock of an exporter may be ahead.
                one.first_at.min(now),
                one.last_at.min(now),
            ],
        )?;
    }
    if not_kept > 0 {
        ctx.queue(&LEAVE_OUT, params![org, not_kept])?;
    }
    Ok(())
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
    /// are. Where people are pseudonymous, what stands for somebody else.
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

fn count(ctx: &mut OperationContext<'_>, statement: &'static Statement) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(statement, params![org], |row: &Row<'_>| row.get::<i64>(0))?;
    Ok(count.unwrap_or(0))
}

/// Forgets what a user used.
pub fn forget_user(ctx: &mut OperationContext<'_>, user: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_USER, params![org, user])?;
    ctx.queue(&FORGET_WAITING, params![org, user])
}
