//! What used servers stand for: names that wait are joined with the machines of whoever used them, by a round behind the count of events.
//!
//! ```text
//! recorded events ── counted once ──► wait, in the unit of the count ── a minute later, some at a time ──► joined by a reader ──► rows, in a unit
//! ```
//!
//! What machines have may be much, and is read and compared where nobody waits for it; a unit writes some dozens of rows. The unit that
//! writes them ends their waiting first: what does not wait any more was joined by another server, or was of somebody who is deleted by now. An organization that fails stops no other one.
//!
//! Keeps IN-8, IN-9.

use super::evidence::{Certainty, Evidence, Machines, Named};
use super::observations::MOST_AHEAD;
use super::uses::WITHHELD;
use provost_areas_identity::directory;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::error::Result;
use provost_kernel::{Kernel, OperationContext, Timestamp, params, statements};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// LIMIT: rows of an organization. Ours: as of servers.
const MOST_USES: i64 = 50_000;
/// LIMIT: rows of one user. Ours: whoever may tell of events names no end of servers in somebody's name.
const MOST_OF_USER: usize = 200;
/// LIMIT: rows of those whom the directory does not know, together. Ours.
const MOST_OF_NOBODY: usize = 1_000;
/// LIMIT: uses that one unit joins, each with up to eight candidates. Ours.
const AT_ONCE: i64 = 40;
/// LIMIT: servers of a person's machines that are looked at. Ours; beyond it nothing is said to be the only one.
const MOST_OF_MACHINES: i64 = 5_000;
/// LIMIT: units of an organization in one round; the next one goes on.
const ROUNDS: usize = 100;

statements! {
    /// Who has something that waits.
    ORGANIZATIONS = unscoped("a round looks at every organization") "SELECT DISTINCT organization_id FROM inventory_use_queue ORDER BY organization_id";
    /// What waits first.
    WAITING = "SELECT id, user_id, evidence, name, events, first_at, last_at FROM inventory_use_queue WHERE organization_id = ?1 ORDER BY id LIMIT ?2";
    /// Whether a server is there.
    IS_THERE = "SELECT 1 FROM inventory_servers WHERE organization_id = ?1 AND id = ?2";
    /// Ends the waiting.
    DONE = "DELETE FROM inventory_use_queue WHERE organization_id = ?1 AND id = ?2";
    /// The servers that devices of a user have or had, and under which names: devices first, or SQLite walks the organization.
    /// What was removed before the user had the device was never under a name of theirs.
    NAMED = "SELECT o.configured_name, o.server_id, o.is_weak, o.bound_at, o.removed_at, COALESCE(d.owned_since, d.updated_at), d.created_at FROM devices d CROSS JOIN inventory_observations o WHERE o.organization_id = d.organization_id AND o.device_id = d.id AND d.organization_id = ?1 AND d.owner_user_id = ?2 AND o.kind = 'mcp_server' AND (o.removed_at IS NULL OR o.removed_at >= COALESCE(d.owned_since, d.updated_at)) ORDER BY o.id || '' LIMIT ?3";
    /// How the devices of a user were looked at last, the retired ones left out.
    /// No look of before the user had it is one at theirs.
    LOOKED = "SELECT CASE WHEN COALESCE(d.owned_since, d.updated_at) <= d.created_at THEN c.received_at WHEN c.started_at > COALESCE(d.owned_since, d.updated_at) AND c.received_at > COALESCE(d.owned_since, d.updated_at) AND c.started_at <= c.received_at + ?3 THEN c.received_at END, c.not_kept, (SELECT COUNT(*) FROM inventory_sections s WHERE s.organization_id = d.organization_id AND s.device_id = d.id AND (NOT s.is_complete OR s.not_kept > 0)) FROM devices d LEFT JOIN inventory_scans c ON c.organization_id = d.organization_id AND c.device_id = d.id WHERE d.organization_id = ?1 AND d.owner_user_id = ?2 AND d.status <> 'retired' ORDER BY d.id || ''";
    /// What is kept of a user.
    KEPT = "SELECT evidence, name, server_id, certainty FROM inventory_uses WHERE organization_id = ?1 AND user_id = ?2 ORDER BY seq + 0";
    /// How many rows an organization has.
    COUNT = "SELECT COUNT(*) FROM inventory_uses WHERE organization_id = ?1";
    /// Keeps that something was used, or was once more.
    SAVE = "INSERT INTO inventory_uses (organization_id, seq, user_id, evidence, name, server_id, certainty, events, first_at, last_at) VALUES (?1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM inventory_uses WHERE organization_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (organization_id, user_id, evidence, name, server_id, certainty) DO UPDATE SET events = inventory_uses.events + excluded.events, first_at = CASE WHEN excluded.first_at < inventory_uses.first_at THEN excluded.first_at ELSE inventory_uses.first_at END, last_at = CASE WHEN excluded.last_at > inventory_uses.last_at THEN excluded.last_at ELSE inventory_uses.last_at END";
    /// Keeps how much more there was no room for.
    LEAVE_OUT = "INSERT INTO inventory_use_bounds (organization_id, not_kept) VALUES (?1, ?2) ON CONFLICT (organization_id) DO UPDATE SET not_kept = inventory_use_bounds.not_kept + excluded.not_kept";
}

/// A use that waits.
struct Waiting {
    id: String,
    user: String,
    evidence: Evidence,
    name: String,
    events: i64,
    first_at: Timestamp,
    last_at: Timestamp,
}

/// What tells rows of one user apart: evidence, name, server and certainty.
type RowKey = (Evidence, String, String, Certainty);

/// What a unit writes.
struct Joined {
    waiting: Vec<Waiting>,
    rows: Vec<JoinedRow>,
}

/// What something that waits means.
struct JoinedRow {
    /// The place of what waits.
    at: usize,
    user: String,
    /// Nothing where there is no room for the row.
    key: Option<RowKey>,
}

/// What is known of a user while names are joined.
struct Person {
    /// Empty for whomever the directory does not know.
    id: String,
    machines: Machines,
}

/// Joins everything that waits. A reconciler.
///
/// Errors: the first that an organization has, after all others were joined.
pub async fn join(kernel: &Arc<Kernel>) -> Result<()> {
    let organizations = kernel.read_system(|tx| {
        tx.query(&ORGANIZATIONS, params![], |row| {
            Ok(OrganizationId::from_store(row.get(0)?))
        })
    });
    let mut outcome = Ok(());
    for organization in organizations.await? {
        let joined = join_organization(kernel, &organization).await;
        outcome = outcome.and(joined);
    }
    outcome
}

async fn join_organization(kernel: &Arc<Kernel>, organization: &OrganizationId) -> Result<()> {
    for _ in 0..ROUNDS {
        if !join_some(kernel, organization).await? {
            break;
        }
    }
    Ok(())
}

/// Joins some of what waits, and says whether there was something.
async fn join_some(kernel: &Arc<Kernel>, organization: &OrganizationId) -> Result<bool> {
    let org = organization.clone();
    let joined = kernel
        .read_system(move |tx| Joined::read(tx, org.as_str()))
        .await?;
    if joined.waiting.is_empty() {
        return Ok(false);
    }
    let write = move |ctx: &mut OperationContext<'_>| joined.write(ctx);
    kernel.system(organization.clone(), None, write).await?;
    Ok(true)
}

impl Joined {
    /// Reads what waits first, and what it stands for.
    fn read(tx: &mut Tx<'_>, org: &str) -> Result<Self> {
        let waiting = tx.query(&WAITING, params![org, AT_ONCE], |row| {
            Ok(Waiting {
                id: row.get(0)?,
                user: row.get(1)?,
                evidence: Evidence::from_store(row.str(2)?)?,
                name: row.get(3)?,
                events: row.get(4)?,
                first_at: row.get(5)?,
                last_at: row.get(6)?,
            })
        })?;
        let all = tx.query_opt(&COUNT, params![org], |row| row.get::<i64>(0))?;
        let mut room = MOST_USES - all.unwrap_or(0);
        let mut people: BTreeMap<String, Person> = BTreeMap::new();
        let mut kept: BTreeMap<String, BTreeSet<RowKey>> = BTreeMap::new();
        let mut rows = Vec::new();
        for (at, one) in waiting.iter().enumerate() {
            let person = match people.entry(one.user.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(open) => open.insert(Person::read(tx, org, &one.user)?),
            };
            let of_person = match kept.entry(person.id.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(open) => open.insert(rows_of(tx, org, &person.id)?),
            };
            for key in person.meaning(one) {
                let most = if person.id.is_empty() {
                    MOST_OF_NOBODY
                } else {
                    MOST_OF_USER
                };
                // What a device says that it judged takes no more than the half: it names what it likes.
                let is_told = key.0 == Evidence::Device;
                let (most, least) = if is_told {
                    (most / 2, MOST_USES / 2)
                } else {
                    (most, 0)
                };
                let is_new = !of_person.contains(&key);
                let has_room = !is_new || (of_person.len() < most && room > least);
                if is_new && has_room {
                    room -= 1;
                    of_person.insert(key.clone());
                }
                rows.push(JoinedRow {
                    at,
                    user: person.id.clone(),
                    key: has_room.then_some(key),
                });
            }
        }
        Ok(Self { waiting, rows })
    }

    /// Writes what is known of what waits still.
    ///
    /// Keeps IN-8: between the reading and the writing a person is deleted, another server joins, and a server is forgotten.
    fn write(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        let org = ctx.org();
        let mut ended = BTreeSet::new();
        for (at, one) in self.waiting.iter().enumerate() {
            if ctx.execute(&DONE, params![org, one.id.as_str()])? > 0 {
                ended.insert(at);
            }
        }
        let mut known = BTreeMap::from([(String::new(), true)]);
        let mut not_kept = 0;
        for row in &self.rows {
            let Some(one) = self.waiting.get(row.at).filter(|_| ended.contains(&row.at)) else {
                continue;
            };
            let Some((evidence, name, server, certainty)) = &row.key else {
                not_kept += 1;
                continue;
            };
            if !known.contains_key(server) {
                let found = ctx.query_opt(&IS_THERE, params![org, server.as_str()], |_| Ok(()))?;
                known.insert(server.clone(), found.is_some());
            }
            if known.get(server) != Some(&true) {
                not_kept += 1;
                continue;
            }
            ctx.queue(
                &SAVE,
                params![
                    org,
                    row.user.as_str(),
                    evidence.as_str(),
                    name.as_str(),
                    server.as_str(),
                    certainty.as_str(),
                    one.events,
                    one.first_at,
                    one.last_at,
                ],
            )?;
        }
        if not_kept > 0 {
            ctx.queue(&LEAVE_OUT, params![org, not_kept])?;
        }
        Ok(())
    }
}

impl Person {
    /// Reads what is known of a user's machines; of one whom the directory does not know, or does not know any more, nothing is.
    fn read(tx: &mut Tx<'_>, org: &str, user: &str) -> Result<Self> {
        if user.is_empty() || directory::principal(tx, org, user)?.is_none() {
            return Ok(Self {
                id: String::new(),
                machines: Machines::default(),
            });
        }
        let servers = tx.query(&NAMED, params![org, user, MOST_OF_MACHINES], |row| {
            let name: Option<String> = row.get(0)?;
            // What was reported before names were kept may have any.
            let name = name.unwrap_or_else(|| WITHHELD.to_owned());
            let (server, is_weak) = (row.get(1)?, row.get(2)?);
            let (owned, enrolled): (Timestamp, Timestamp) = (row.get(5)?, row.get(6)?);
            let owned = if owned <= enrolled {
                Timestamp::EPOCH
            } else {
                owned
            };
            Ok(Named::new(
                name,
                server,
                is_weak,
                owned,
                (row.get(3)?, row.get(4)?),
            ))
        })?;
        let looks = tx.query(&LOOKED, params![org, user, MOST_AHEAD * 1000], |row| {
            let looked_at: Option<Timestamp> = row.get(0)?;
            let not_kept: Option<i64> = row.get(1)?;
            Ok((looked_at, not_kept.unwrap_or(0) > 0 || row.get::<i64>(2)? > 0))
        })?;
        let is_cut = i64::try_from(servers.len()).unwrap_or(i64::MAX) >= MOST_OF_MACHINES;
        let all: Option<Vec<Timestamp>> = looks.iter().map(|(looked_at, _)| *looked_at).collect();
        let machines = Machines {
            servers,
            looked_at: all.and_then(|all| all.into_iter().min()),
            has_gaps: is_cut || looks.iter().any(|(_, has_gaps)| *has_gaps),
        };
        Ok(Self {
            id: user.to_owned(),
            machines,
        })
    }

    /// Returns what a use stands for: a row for each candidate.
    fn meaning(&self, one: &Waiting) -> Vec<RowKey> {
        let (certainty, mut servers) = if self.id.is_empty() || one.name == WITHHELD {
            (Certainty::Unresolved, Vec::new())
        } else {
            self.machines.meant(&one.name, one.first_at, one.last_at)
        };
        if servers.is_empty() {
            servers.push("");
        }
        let row = |server: &str| (one.evidence, one.name.clone(), server.to_owned(), certainty);
        servers.into_iter().map(row).collect()
    }
}

/// Returns the rows that a user has.
fn rows_of(tx: &mut Tx<'_>, org: &str, user: &str) -> Result<BTreeSet<RowKey>> {
    let rows = tx.query(&KEPT, params![org, user], |row| {
        let evidence = Evidence::from_store(row.str(0)?)?;
        let certainty = Certainty::from_store(row.str(3)?)?;
        Ok((evidence, row.get(1)?, row.get(2)?, certainty))
    })?;
    Ok(rows.into_iter().collect())
}
