//! Every statement about the machines that report what they applied.

use super::digest::ContentDigest;
use super::model::{Machine, Principal, Profile, ProfileId, Release, ReleaseId, ReportedState, TargetState};
use super::views::MachineCounts;
use provost_kernel::auth::OrganizationId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, SureTime, Timestamp, params, statements};

statements! {
    /// A machine.
    GET_MACHINE = "SELECT target_id, seq, name, release_id, content_digest, digest_since, state, message, first_reported_at, last_reported_at, reported_by_type, reported_by_id FROM managed_config_targets WHERE organization_id = ?1 AND profile_id = ?2 AND target_id = ?3";
    /// One page of machines and where each stands; the same rule as `Machine::state`.
    LIST_MACHINES = "SELECT target_id, seq, name, release_id, content_digest, digest_since, state, message, \
        first_reported_at, last_reported_at, reported_by_type, reported_by_id, standing \
        FROM (SELECT target_id, seq, name, release_id, content_digest, digest_since, state, message, \
        first_reported_at, last_reported_at, reported_by_type, reported_by_id, CASE WHEN state = 'failed' \
        AND release_id = ?3 THEN 'failed' WHEN content_digest = ?4 THEN CASE \
        WHEN state = 'verified' THEN 'verified' ELSE 'applied' END WHEN ?5 > CASE \
        WHEN digest_since > ?6 THEN digest_since ELSE ?6 END + ?7 THEN 'drifted' \
        ELSE 'pending' END AS standing FROM managed_config_targets WHERE organization_id = ?1 \
        AND profile_id = ?2) AS machines \
        WHERE (CAST(?8 AS TEXT) IS NULL OR standing = CAST(?8 AS TEXT)) AND seq > ?9 ORDER BY seq, target_id \
        LIMIT ?10";
    /// How many machines stand where, and how many of them are heard of.
    TALLY = "SELECT CASE WHEN state = 'failed' \
        AND release_id = ?3 THEN 'failed' WHEN content_digest = ?4 THEN CASE \
        WHEN state = 'verified' THEN 'verified' ELSE 'applied' END WHEN ?5 > CASE \
        WHEN digest_since > ?6 THEN digest_since ELSE ?6 END + ?7 THEN 'drifted' ELSE 'pending' END, \
        COUNT(*), SUM(CASE WHEN last_reported_at + ?7 >= ?5 THEN 1 ELSE 0 END) \
        FROM managed_config_targets \
        WHERE organization_id = ?1 AND profile_id = ?2 GROUP BY 1 ORDER BY 1";
    /// How many machines still hold a release that says something else than the current one.
    BEHIND = "SELECT release_id, state, COUNT(*) FROM managed_config_targets WHERE organization_id = ?1 AND profile_id = ?2 AND content_digest <> ?3 GROUP BY release_id, state ORDER BY release_id, state";
    /// Keeps a machine's report.
    PUT_MACHINE = "\
        INSERT INTO managed_config_targets (organization_id, profile_id, target_id, seq, name, release_id, \
        content_digest, digest_since, state, message, first_reported_at, last_reported_at, reported_by_type, \
        reported_by_id, drift_told) \
        SELECT ?1, ?2, ?3, COALESCE(MAX(seq), 0) + 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 \
        FROM managed_config_targets \
        WHERE organization_id = ?1 AND profile_id = ?2 \
        ON CONFLICT (organization_id, profile_id, target_id) DO UPDATE \
        SET name = excluded.name, release_id = excluded.release_id, content_digest = excluded.content_digest, \
        digest_since = excluded.digest_since, state = excluded.state, message = excluded.message, \
        last_reported_at = excluded.last_reported_at, reported_by_type = excluded.reported_by_type, \
        reported_by_id = excluded.reported_by_id, drift_told = CASE \
        WHEN excluded.drift_told THEN managed_config_targets.drift_told ELSE excluded.drift_told END";
    /// Forgets a machine.
    REMOVE_MACHINE = "DELETE FROM managed_config_targets WHERE organization_id = ?1 AND profile_id = ?2 AND target_id = ?3";
    /// How many machines a profile has.
    COUNT_MACHINES = "SELECT COUNT(*) FROM managed_config_targets WHERE organization_id = ?1 AND profile_id = ?2";
    /// Machines that drifted and of which nobody was told yet.
    DRIFTED = unscoped("the reconciler serves every organization") "\
        SELECT t.organization_id, t.profile_id, t.target_id \
        FROM managed_config_targets t JOIN managed_config_profiles p ON p.organization_id = t.organization_id \
        AND p.id = t.profile_id JOIN managed_config_releases r ON r.organization_id = p.organization_id \
        AND r.id = p.current_release_id \
        WHERE NOT t.drift_told AND t.content_digest <> r.content_digest \
        AND NOT (t.state = 'failed' AND t.release_id = r.id) \
        AND ?1 > CASE WHEN t.digest_since > r.created_at THEN t.digest_since \
        ELSE r.created_at END + p.poll_interval_secs * 2000 \
        ORDER BY t.organization_id, t.profile_id, t.target_id LIMIT 200";
    /// Remembers that somebody was told of a machine's drift.
    TOLD = "UPDATE managed_config_targets SET drift_told = ?4 WHERE organization_id = ?1 AND profile_id = ?2 AND target_id = ?3 AND NOT drift_told";
    /// Forgets machines that have been silent for long.
    FORGET = unscoped("the reconciler serves every organization") "DELETE FROM managed_config_targets WHERE (organization_id, profile_id, target_id) IN (SELECT t.organization_id, t.profile_id, t.target_id FROM managed_config_targets t WHERE t.last_reported_at < ?1 ORDER BY t.last_reported_at, t.organization_id, t.profile_id, t.target_id LIMIT ?2)";
}

/// LIMIT: machines of one profile; a client that makes up a new id for each report stops here.
const MAX_MACHINES: i64 = 100_000;

fn machine(row: &Row<'_>) -> Result<Machine> {
    Ok(Machine {
        target_id: row.get(0)?,
        seq: row.get(1)?,
        name: row.get(2)?,
        release_id: ReleaseId::from_store(row.get(3)?),
        content_digest: ContentDigest::from_text(row.get::<String>(4)?),
        digest_since: row.get(5)?,
        state: ReportedState::from_store(row.str(6)?)?,
        message: row.get(7)?,
        first_reported_at: row.get(8)?,
        last_reported_at: row.get(9)?,
        reported_by: Principal {
            kind: row.get(10)?,
            id: row.get(11)?,
        },
    })
}

/// What the machines of a profile are compared with.
struct ExpectedRelease<'a> {
    release: &'a str,
    digest: &'a str,
    since: Timestamp,
}

impl<'a> ExpectedRelease<'a> {
    /// Without a release every machine is waiting for the first one.
    fn of(current: Option<&'a Release>, now: Timestamp) -> Self {
        current.map_or(
            Self {
                release: "",
                digest: "",
                since: now,
            },
            |release| Self {
                release: release.id.as_str(),
                digest: release.content_digest.clear(),
                since: release.created_at,
            },
        )
    }
}

/// Returns a machine's last report.
pub fn get(ctx: &mut OperationContext<'_>, profile: &ProfileId, target_id: &str) -> Result<Option<Machine>> {
    let org = ctx.org();
    ctx.query_opt(&GET_MACHINE, params![org, profile.as_str(), target_id], machine)
}

/// Returns the machines behind a place and where each stands, in the order of their first reports.
pub fn list(
    ctx: &mut OperationContext<'_>,
    profile: &Profile,
    current: Option<&Release>,
    state: Option<TargetState>,
    after: i64,
    limit: i64,
) -> Result<Vec<(Machine, TargetState)>> {
    let (org, now) = (ctx.org(), ctx.now());
    let expected = ExpectedRelease::of(current, now);
    ctx.query(
        &LIST_MACHINES,
        params![
            org,
            profile.id.as_str(),
            expected.release,
            expected.digest,
            now,
            expected.since,
            profile.patience_ms(),
            state.map(TargetState::as_str),
            after,
            limit
        ],
        |row| Ok((machine(row)?, TargetState::from_store(row.str(12)?)?)),
    )
}

/// Returns how many machines stand where, and how many are heard of.
pub fn tally(
    ctx: &mut OperationContext<'_>,
    profile: &Profile,
    current: Option<&Release>,
) -> Result<MachineCounts> {
    let (org, now) = (ctx.org(), ctx.now());
    let expected = ExpectedRelease::of(current, now);
    let mut tally = MachineCounts::default();
    let sought = params![
        org,
        profile.id.as_str(),
        expected.release,
        expected.digest,
        now,
        expected.since,
        profile.patience_ms()
    ];
    ctx.query(&TALLY, sought, |row| {
        tally.add(TargetState::from_store(row.str(0)?)?, row.get(1)?);
        tally.online += row.get::<i64>(2)?;
        Ok(())
    })?;
    Ok(tally)
}

/// Returns, by release, how many machines still hold something else than the current content.
pub fn behind(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    current: &Release,
) -> Result<Vec<(String, MachineCounts)>> {
    let org = ctx.org();
    let mut found: Vec<(String, MachineCounts)> = Vec::new();
    let sought = params![org, profile.as_str(), current.content_digest.clear()];
    ctx.query(&BEHIND, sought, |row| {
        let (release, count) = (row.get::<String>(0)?, row.get(2)?);
        let state = match ReportedState::from_store(row.str(1)?)? {
            ReportedState::Applied => TargetState::Applied,
            ReportedState::Verified => TargetState::Verified,
            ReportedState::Failed => TargetState::Failed,
        };
        match found.last_mut() {
            Some((last, tally)) if *last == release => tally.add(state, count),
            _ => {
                let mut tally = MachineCounts::default();
                tally.add(state, count);
                found.push((release, tally));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Keeps a report. `heals` says that the machine holds what it should, so that its next drift is told again.
///
/// Errors: `Conflict` when the profile has too many machines.
pub fn put(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    machine: &Machine,
    is_new: bool,
    heals: bool,
) -> Result<()> {
    let org = ctx.org();
    if is_new {
        let count = ctx.query_opt(&COUNT_MACHINES, params![org, profile.as_str()], |row| {
            row.get::<i64>(0)
        })?;
        if count.unwrap_or(0) >= MAX_MACHINES {
            let message = format!("a profile has at most {MAX_MACHINES} machines");
            return Err(Error::new(Code::Conflict, message));
        }
    }
    ctx.queue(
        &PUT_MACHINE,
        params![
            org,
            profile.as_str(),
            machine.target_id.as_str(),
            machine.name.as_deref(),
            machine.release_id.as_str(),
            machine.content_digest.clear(),
            machine.digest_since,
            machine.state.as_str(),
            machine.message.as_deref(),
            machine.first_reported_at,
            machine.last_reported_at,
            machine.reported_by.kind.as_str(),
            machine.reported_by.id.as_str(),
            !is_new && !heals,
        ],
    )
}

/// Forgets a machine.
pub fn remove(ctx: &mut OperationContext<'_>, profile: &ProfileId, target_id: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&REMOVE_MACHINE, params![org, profile.as_str(), target_id])
}

/// A machine of some organization.
pub struct MachineReference {
    /// The organization.
    pub organization: OrganizationId,
    /// The profile.
    pub profile: ProfileId,
    /// The machine.
    pub target_id: String,
}

/// Returns machines that drifted and of which nobody was told yet.
pub fn drifted(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<MachineReference>> {
    tx.query(&DRIFTED, params![now], |row| {
        Ok(MachineReference {
            organization: OrganizationId::from_store(row.get(0)?),
            profile: ProfileId::from_store(row.get(1)?),
            target_id: row.get(2)?,
        })
    })
}

/// Remembers that somebody is told of a machine's drift; says whether nobody was before.
pub fn tell(ctx: &mut OperationContext<'_>, profile: &ProfileId, target_id: &str) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.execute(&TOLD, params![org, profile.as_str(), target_id, true])? == 1)
}

/// Forgets machines of every organization that were last heard of before an instant.
pub fn forget(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    ctx.prune(&FORGET, params![before.instant(), PRUNED_ROWS])
}
