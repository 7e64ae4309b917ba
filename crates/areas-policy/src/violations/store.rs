//! All SQL of the area.

use super::model::{Dimension, Line, NAMES, Outcome, SOURCES};
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Param, Row, Tx};
use provost_kernel::{OperationContext, Result, SureTime, Timestamp, params};
use std::collections::BTreeSet;

/// The outcome of a line: [`Outcome::of`] in the words of the store. Of what passed by an approval the mode says so, since it is enforced.
macro_rules! outcome {
    () => {
        "CASE WHEN mode = 'approved' THEN 'approved' WHEN mode = 'monitor' THEN 'monitored' WHEN mode = 'bypass' THEN 'bypassed' WHEN action = 'block' THEN 'blocked' WHEN action = 'require_approval' \
         THEN 'asked' WHEN action = 'redact' OR action = 'filter' THEN 'redacted' ELSE 'flagged' END"
    };
}

/// The lines of a dimension in a time that fit: ?3 is the first day and ?4 the last; the others are nothing where everything fits.
macro_rules! fitting {
    ($dimension:literal) => {
        concat!(
            "FROM violation_days WHERE organization_id = ?1 AND dimension = ",
            $dimension,
            " AND day >= ?3 AND day <= ?4 AND (CAST(?5 AS TEXT) IS NULL OR name = CAST(?5 AS TEXT)) AND (CAST(?6 AS TEXT) IS NULL OR \
             action = CAST(?6 AS TEXT)) AND (CAST(?7 AS TEXT) IS NULL OR mode = CAST(?7 AS TEXT) OR mode = 'approved' AND CAST(?7 AS TEXT) = 'enforce') AND (CAST(?8 AS TEXT) IS NULL OR \
             source = CAST(?8 AS TEXT)) AND (CAST(?9 AS TEXT) IS NULL OR ",
            outcome!(),
            " = CAST(?9 AS TEXT))"
        )
    };
}

/// How many of them had an outcome.
macro_rules! with_outcome {
    ($word:literal) => {
        concat!(
            "CAST(COALESCE(SUM(CASE WHEN ",
            outcome!(),
            " = '",
            $word,
            "' THEN event_count ELSE 0 END), 0) AS BIGINT)"
        )
    };
}

/// How many there are, and of each outcome, in the order of [`Outcome::ALL`].
macro_rules! sums {
    () => {
        concat!(
            "CAST(COALESCE(SUM(event_count), 0) AS BIGINT), ",
            with_outcome!("blocked"),
            ", ",
            with_outcome!("approved"),
            ", ",
            with_outcome!("asked"),
            ", ",
            with_outcome!("redacted"),
            ", ",
            with_outcome!("flagged"),
            ", ",
            with_outcome!("monitored"),
            ", ",
            with_outcome!("bypassed")
        )
    };
}

provost_kernel::statements! {
    /// The number of the last chunk that was counted, the day of the first count, and how many chunks were not counted.
    HEAD = "SELECT sequence, since_day, uncounted_chunks FROM violation_heads WHERE organization_id = ?1";
    /// Notes that; the day is kept of the first time.
    SET_HEAD = "INSERT INTO violation_heads (organization_id, sequence, since_day, uncounted_chunks) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (organization_id) DO UPDATE SET sequence = excluded.sequence, uncounted_chunks = excluded.uncounted_chunks";
    /// The names of a day.
    NAMES_OF_DAY = "SELECT DISTINCT name FROM violation_days WHERE organization_id = ?1 AND dimension = ?2 AND day = ?3 ORDER BY name LIMIT ?4";
    /// The sources of a day.
    SOURCES_OF_DAY = "SELECT DISTINCT source FROM violation_days WHERE organization_id = ?1 AND dimension = 'all' AND day = ?2 AND source <> '' ORDER BY source LIMIT ?3";
    /// Adds to what a day has.
    ADD = "INSERT INTO violation_days (organization_id, dimension, day, name, action, mode, source, event_count) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (organization_id, dimension, day, name, action, mode, source) DO UPDATE SET event_count = violation_days.event_count + excluded.event_count";
    /// Forgets lines of old days, those of the oldest first.
    FORGET_DAYS = "DELETE FROM violation_days WHERE organization_id = ?1 AND (dimension, day, name, action, mode, source) IN (SELECT d.dimension, d.day, d.name, d.action, d.mode, d.source FROM violation_days d WHERE d.organization_id = ?1 AND d.day < ?2 ORDER BY d.day LIMIT ?3)";
    /// Forgets what was said of decisions that are forgotten, the oldest first.
    FORGET_FEEDBACK = "DELETE FROM violation_feedback WHERE organization_id = ?1 AND event_id IN (SELECT f.event_id FROM violation_feedback f WHERE f.organization_id = ?1 AND f.event_at < ?2 ORDER BY f.event_at, f.event_id LIMIT ?3)";
    /// Forgets of which policies those were.
    FORGET_FEEDBACK_POLICIES = "DELETE FROM violation_feedback_policies WHERE organization_id = ?1 AND (policy_id, event_id) IN (SELECT p.policy_id, p.event_id FROM violation_feedback_policies p WHERE p.organization_id = ?1 AND p.event_at < ?2 ORDER BY p.event_at, p.event_id, p.policy_id LIMIT ?3)";
    /// Of how many decisions a subject said something, at most `?4`.
    SAID_BY = "SELECT COUNT(*) FROM (SELECT 1 FROM violation_feedback WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3 LIMIT ?4) AS said";
    /// The oldest day that is counted.
    OLDEST = "SELECT MIN(day) FROM violation_days WHERE organization_id = ?1";
    /// When the oldest decision happened of which somebody said something.
    OLDEST_FEEDBACK = "SELECT MIN(event_at) FROM violation_feedback WHERE organization_id = ?1";
    /// Forgets of which policies somebody said something.
    FORGET_POLICIES_OF = "DELETE FROM violation_feedback_policies WHERE organization_id = ?1 AND event_id IN (SELECT f.event_id FROM violation_feedback f WHERE f.organization_id = ?1 AND f.subject_kind = ?2 AND f.subject_id = ?3)";
    /// Forgets what somebody said.
    FORGET_OF = "DELETE FROM violation_feedback WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3";
    /// The groups of a dimension, the greatest first.
    GROUPS = concat!("SELECT name, ", sums!(), " ", fitting!("?2"), " GROUP BY name ORDER BY CAST(COALESCE(SUM(event_count), 0) AS BIGINT) DESC, name LIMIT ?10");
    /// The days of a dimension, the newest first.
    DAYS = concat!("SELECT day, ", sums!(), " ", fitting!("?2"), " GROUP BY day ORDER BY day DESC LIMIT ?10");
    /// How many names, days and events of a dimension there are.
    SIZE = concat!("SELECT COUNT(DISTINCT name), COUNT(DISTINCT day), CAST(COALESCE(SUM(event_count), 0) AS BIGINT) ", fitting!("?2"));
    /// What was said of a decision.
    FEEDBACK = "SELECT text, given_at FROM violation_feedback WHERE organization_id = ?1 AND event_id = ?2";
    /// Keeps what is said of a decision.
    SAY = "INSERT INTO violation_feedback (organization_id, event_id, subject_kind, subject_id, text, event_at, given_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    /// Keeps that it was a policy's.
    SAY_OF_POLICY = "INSERT INTO violation_feedback_policies (organization_id, policy_id, event_id, event_at) VALUES (?1, ?2, ?3, ?4)";
    /// Of how many decisions of a policy somebody said something.
    SAID_OF_POLICY = "SELECT COUNT(*) FROM violation_feedback_policies WHERE organization_id = ?1 AND policy_id = ?2";
    /// Days with numbers that no count makes.
    BAD_DAYS = unscoped("a check looks at every organization") "SELECT organization_id, dimension FROM violation_days WHERE event_count < 1 OR action = 'allow' AND mode <> 'approved' GROUP BY organization_id, dimension ORDER BY organization_id, dimension";
    /// What was said of policies about no decision.
    LOOSE = unscoped("a check looks at every organization") "SELECT p.organization_id, p.event_id FROM violation_feedback_policies p WHERE NOT EXISTS (SELECT 1 FROM violation_feedback f WHERE f.organization_id = p.organization_id AND f.event_id = p.event_id) GROUP BY p.organization_id, p.event_id ORDER BY p.organization_id, p.event_id";
}

/// How far an organization is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the last chunk.
    pub sequence: i64,
    /// The day of the first count: of what was before nothing is known.
    pub since_day: i64,
    /// Chunks that were gone before they were counted, or could not be read.
    pub uncounted: i64,
}

/// Returns how far an organization is counted; nothing before the first count.
pub fn head(tx: &mut Tx<'_>, org: &str) -> Result<Option<Head>> {
    tx.query_opt(&HEAD, params![org], |row| {
        Ok(Head {
            sequence: row.get(0)?,
            since_day: row.get(1)?,
            uncounted: row.get(2)?,
        })
    })
}

/// Notes how far the organization is counted.
pub fn set_head(ctx: &mut OperationContext<'_>, head: &Head) -> Result<()> {
    let org = ctx.org();
    ctx.queue(
        &SET_HEAD,
        params![org, head.sequence, head.since_day, head.uncounted],
    )
}

/// Returns the names that a day of a dimension has, up to as many as it may.
pub fn names_of_day(
    ctx: &mut OperationContext<'_>,
    dimension: Dimension,
    day: i64,
) -> Result<BTreeSet<String>> {
    let (org, most) = (ctx.org(), i64::try_from(NAMES).unwrap_or(i64::MAX));
    let params = params![org, dimension.as_str(), day, most];
    let names = ctx.query(&NAMES_OF_DAY, params, |row| row.get::<String>(0))?;
    Ok(names.into_iter().collect())
}

/// Returns the sources that a day has, up to as many as it may.
pub fn sources_of_day(ctx: &mut OperationContext<'_>, day: i64) -> Result<BTreeSet<String>> {
    let (org, most) = (ctx.org(), i64::try_from(SOURCES).unwrap_or(i64::MAX));
    let sources = ctx.query(&SOURCES_OF_DAY, params![org, day, most], |row| {
        row.get::<String>(0)
    })?;
    Ok(sources.into_iter().collect())
}

/// Adds to a line.
pub fn add(ctx: &mut OperationContext<'_>, line: &Line, events: i64) -> Result<()> {
    let org = ctx.org();
    let (dimension, name) = match &line.name {
        Some(name) => (line.dimension.as_str(), name.as_str()),
        None => (line.dimension.rest(), ""),
    };
    let source = line.source.as_str();
    ctx.queue(
        &ADD,
        params![
            org,
            dimension,
            line.day,
            name,
            line.action,
            line.mode,
            source,
            events
        ],
    )
}

/// Says whether a day before one is counted, or something was said of a decision before an instant.
pub fn is_due(tx: &mut Tx<'_>, org: &str, day: i64, before: SureTime) -> Result<bool> {
    let counted = tx.query_opt(&OLDEST, params![org], |row| row.get::<Option<i64>>(0))?;
    let said = tx.query_opt(&OLDEST_FEEDBACK, params![org], |row| {
        row.get::<Option<Timestamp>>(0)
    })?;
    Ok(counted.flatten().is_some_and(|oldest| oldest < day)
        || said.flatten().is_some_and(|oldest| oldest < before.instant()))
}

/// Forgets lines of the days before one, and what was said of decisions before an instant, as much as one unit removes.
pub fn forget(ctx: &mut OperationContext<'_>, day: i64, before: SureTime) -> Result<()> {
    let (org, before) = (ctx.org(), before.instant());
    ctx.prune(&FORGET_FEEDBACK_POLICIES, params![org, before, PRUNED_ROWS])?;
    // What is kept of a policy is of a decision of which something is said: the words go last.
    if !ctx.has_more_to_prune() {
        ctx.prune(&FORGET_FEEDBACK, params![org, before, PRUNED_ROWS])?;
    }
    ctx.prune(&FORGET_DAYS, params![org, day, PRUNED_ROWS])
}

/// Returns of how many decisions a subject said something, at most as many as are asked for.
pub fn said_by(ctx: &mut OperationContext<'_>, kind: &str, subject: &str, most: i64) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&SAID_BY, params![org, kind, subject, most], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Forgets what somebody said who is deleted: their words and their id.
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.how != Departure::Deleted {
        return Ok(());
    }
    let (org, kind, id) = (ctx.org(), ended.kind.as_str(), ended.id.as_str());
    ctx.queue(&FORGET_POLICIES_OF, params![org, kind, id])?;
    ctx.queue(&FORGET_OF, params![org, kind, id])
}

/// What groups are asked for.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub dimension: Dimension,
    pub first_day: i64,
    pub last_day: i64,
    pub name: Option<&'a str>,
    pub action: Option<&'a str>,
    pub mode: Option<&'a str>,
    pub source: Option<&'a str>,
    pub outcome: Option<Outcome>,
}

impl Wanted<'_> {
    /// Returns it as the statements that list want it.
    fn params<'a>(&'a self, org: &'a str, limit: i64) -> [Param<'a>; 10] {
        [
            org.into(),
            self.dimension.as_str().into(),
            self.first_day.into(),
            self.last_day.into(),
            self.name.into(),
            self.action.into(),
            self.mode.into(),
            self.source.into(),
            self.outcome.map(Outcome::as_str).into(),
            limit.into(),
        ]
    }
}

/// How many events there are, and how many of each outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub events: i64,
    pub outcomes: [i64; Outcome::ALL.len()],
}

fn sums(row: &Row<'_>) -> Result<Sums> {
    let mut sums = Sums {
        events: row.get(1)?,
        ..Sums::default()
    };
    for (place, sum) in sums.outcomes.iter_mut().enumerate() {
        *sum = row.get(place + 2)?;
    }
    Ok(sums)
}

/// Returns the greatest groups by their names.
pub fn groups(
    ctx: &mut OperationContext<'_>,
    wanted: &Wanted<'_>,
    limit: i64,
) -> Result<Vec<(String, Sums)>> {
    let org = ctx.org();
    ctx.query(&GROUPS, &wanted.params(org, limit), |row| {
        Ok((row.get(0)?, sums(row)?))
    })
}

/// Returns the newest days that have something.
pub fn days(ctx: &mut OperationContext<'_>, wanted: &Wanted<'_>, limit: i64) -> Result<Vec<(i64, Sums)>> {
    let org = ctx.org();
    ctx.query(&DAYS, &wanted.params(org, limit), |row| {
        Ok((row.get(0)?, sums(row)?))
    })
}

/// Returns how many names and how many days fit, and how many events are counted beside them because their days had no room for their
/// names.
pub fn size(ctx: &mut OperationContext<'_>, wanted: &Wanted<'_>) -> Result<(i64, i64, i64)> {
    let (names, days, _) = sizes(ctx, wanted.dimension.as_str(), wanted)?;
    let rest = Wanted {
        name: None,
        ..*wanted
    };
    let (.., unnamed) = sizes(ctx, wanted.dimension.rest(), &rest)?;
    Ok((names, days, unnamed))
}

/// Returns how many events fit.
pub fn events(ctx: &mut OperationContext<'_>, wanted: &Wanted<'_>) -> Result<i64> {
    Ok(sizes(ctx, wanted.dimension.as_str(), wanted)?.2)
}

fn sizes(
    ctx: &mut OperationContext<'_>,
    dimension: &'static str,
    wanted: &Wanted<'_>,
) -> Result<(i64, i64, i64)> {
    let (org, outcome) = (ctx.org(), wanted.outcome.map(Outcome::as_str));
    let params = params![
        org,
        dimension,
        wanted.first_day,
        wanted.last_day,
        wanted.name,
        wanted.action,
        wanted.mode,
        wanted.source,
        outcome,
    ];
    let found = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<i64>(2)?));
    Ok(ctx.query_opt(&SIZE, params, found)?.unwrap_or_default())
}

/// Returns what was said of a decision, and when.
pub fn feedback(ctx: &mut OperationContext<'_>, event: &str) -> Result<Option<(String, Timestamp)>> {
    let org = ctx.org();
    ctx.query_opt(&FEEDBACK, params![org, event], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// A decision of which its subject says something.
pub struct Said<'a> {
    pub event: &'a str,
    pub event_at: Timestamp,
    pub subject: (&'a str, &'a str),
    pub policies: &'a [String],
    pub text: &'a str,
}

/// Keeps what is said of a decision.
pub fn say(ctx: &mut OperationContext<'_>, said: &Said<'_>) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let (kind, subject) = said.subject;
    ctx.queue(
        &SAY,
        params![org, said.event, kind, subject, said.text, said.event_at, now],
    )?;
    for policy in said.policies {
        ctx.queue(
            &SAY_OF_POLICY,
            params![org, policy.as_str(), said.event, said.event_at],
        )?;
    }
    Ok(())
}

/// Returns of how many decisions of a policy somebody said something.
pub fn said_of(ctx: &mut OperationContext<'_>, policy: &str) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&SAID_OF_POLICY, params![org, policy], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Returns a sentence for everything that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>, _: Timestamp) -> Result<Vec<String>> {
    let found = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
    let mut broken = Vec::new();
    for (organization, dimension) in tx.query(&BAD_DAYS, params![], found)? {
        broken.push(format!(
            "violations of {organization} are counted by {dimension} in a number that no count makes"
        ));
    }
    for (organization, event) in tx.query(&LOOSE, params![], found)? {
        broken.push(format!(
            "feedback of {organization} about a policy is of the decision {event}, of which nobody said anything"
        ));
    }
    Ok(broken)
}
