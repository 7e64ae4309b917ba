//! All SQL of approvals.

use super::binding::set_of;
use super::model::{Approval, ApprovalId, COUNTED_SECS, GrantId, Kind, Party, State};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::{Param, Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, SureTime, Timestamp, params, statements};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The columns of an approval, in the order that [`read`] expects.
macro_rules! columns {
    () => {
        columns!("sealed")
    };
    ($sealed:literal) => {
        concat!(
            "id, grant_id, kind, state, asker_kind, asker_id, subject_kind, subject_id, subject_rights, call_mac, tool, policies, \
             votes, uses, quorum, max_uses, deadline_at, grant_until, sealing_key_id, ",
            $sealed,
            ", created_at, decided_at, ended_at, end_reason, revision, binding_mac, owner_id, route, gains"
        )
    };
}

statements! {
    /// One approval.
    GET = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND id = ?2");
    /// A page of approvals, the newest first: their ids say when they were made.
    LIST = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND id < ?2 AND (CAST(?3 AS TEXT) IS NULL OR state = CAST(?3 AS TEXT)) AND (CAST(?4 AS TEXT) IS NULL OR subject_id = CAST(?4 AS TEXT)) ORDER BY id DESC LIMIT ?5");
    /// A page of those that stand in one open state: of the few that are open, whatever has ended.
    LIST_OPEN = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND state IN ('pending', 'approved') AND id < ?2 AND state = CAST(?3 AS TEXT) AND (CAST(?4 AS TEXT) IS NULL OR subject_id = CAST(?4 AS TEXT)) ORDER BY id DESC LIMIT ?5");
    /// A page of those that wait, without what the calls say.
    LIST_WAITING = concat!("SELECT ", columns!("CASE WHEN 1 = 0 THEN sealed END"), " FROM approvals WHERE organization_id = ?1 AND state IN ('pending', 'approved') AND id < ?2 AND state = 'pending' AND (CAST(?3 AS TEXT) IS NULL OR subject_id = CAST(?3 AS TEXT)) ORDER BY id DESC LIMIT ?4");
    /// A page of what somebody asked for, the newest first.
    ASKED = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND asker_kind = ?2 AND asker_id = ?3 AND id < ?4 ORDER BY id DESC LIMIT ?5");
    /// A page of what was asked for somebody, the newest first.
    ASKED_FOR = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3 AND id < ?4 ORDER BY id DESC LIMIT ?5");
    /// The open ones of a call, the oldest first. By their ids SQLite would read all that are open.
    OF_CALL = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND call_mac = ?2 AND state IN ('pending', 'approved') ORDER BY id || '' LIMIT 64");
    /// The open ones.
    OPEN = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND state IN ('pending', 'approved') ORDER BY id");
    /// The open ones that somebody asked for, or that are for them.
    OF_PARTY = concat!("SELECT ", columns!(), " FROM approvals WHERE organization_id = ?1 AND id IN (SELECT id FROM approvals WHERE organization_id = ?1 AND subject_kind = ?2 AND subject_id = ?3 AND state IN ('pending', 'approved') UNION SELECT id FROM approvals WHERE organization_id = ?1 AND asker_kind = ?2 AND asker_id = ?3 AND state IN ('pending', 'approved')) ORDER BY id");
    /// How many somebody asked for since an instant, whatever became of them, and how many of these for one subject.
    COUNT_OF_ASKER = "SELECT COUNT(*), COUNT(CASE WHEN subject_kind = ?4 AND subject_id = ?5 THEN 1 END) FROM approvals WHERE organization_id = ?1 AND asker_kind = ?2 AND asker_id = ?3 AND created_at > ?6";
    /// The same of all that one person owns: the accounts of that person, and the person.
    COUNT_OF_OWNER = "SELECT COUNT(*), COUNT(CASE WHEN subject_kind = ?3 AND subject_id = ?4 THEN 1 END) FROM approvals WHERE organization_id = ?1 AND owner_id = ?2 AND created_at > ?5";
    /// How many of these wait that were asked for before an instant, for one subject, and how many that somebody asked for by hand.
    WAITING_OF_OWNER = "SELECT COUNT(CASE WHEN kind = 'tool_call' AND created_at <= ?6 THEN 1 END), COUNT(CASE WHEN kind = 'tool_call' AND created_at <= ?6 AND subject_kind = ?3 AND subject_id = ?4 THEN 1 END), COUNT(CASE WHEN kind <> 'tool_call' THEN 1 END) FROM approvals WHERE organization_id = ?1 AND owner_id = ?2 AND state = 'pending' AND deadline_at > ?5";
    /// How many operations somebody asked for since an instant, whatever became of them.
    OPERATIONS_ASKED = "SELECT COUNT(*) FROM approvals WHERE organization_id = ?1 AND asker_kind = ?2 AND asker_id = ?3 AND created_at > ?4 AND kind = 'operation'";
    /// How many operations wait that somebody asked for. Who asks for one owns what they ask for.
    OPERATIONS_WAITING = "SELECT COUNT(CASE WHEN kind = 'operation' AND asker_kind = ?2 AND asker_id = ?3 THEN 1 END) FROM approvals WHERE organization_id = ?1 AND owner_id = ?3 AND state = 'pending' AND deadline_at > ?4";
    /// How many wait, and how many of these for longer than so many milliseconds.
    COUNT = "SELECT COUNT(*), COUNT(CASE WHEN deadline_at - created_at > ?3 THEN 1 END), COUNT(CASE WHEN kind = 'operation' THEN 1 END) FROM approvals WHERE organization_id = ?1 AND state = 'pending' AND deadline_at > ?2";
    /// Adds one, unless another one is open for the same.
    INSERT = "INSERT INTO approvals (organization_id, id, grant_id, kind, state, asker_kind, asker_id, subject_kind, subject_id, subject_rights, call_mac, tool, policies, votes, uses, quorum, max_uses, use_count, deadline_at, sealing_key_id, sealed, created_at, revision, binding_mac, policies_sha256, owner_id, route, gains) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 0, ?18, ?19, ?20, ?21, 0, ?22, ?23, ?24, ?25, ?26) ON CONFLICT DO NOTHING";
    /// Stores what became of one, unless it is another by now.
    SAVE = "UPDATE approvals SET state = ?3, votes = ?4, uses = ?5, use_count = ?6, grant_until = ?7, decided_at = ?8, ended_at = ?9, end_reason = ?10, revision = ?11 + 1 WHERE organization_id = ?1 AND id = ?2 AND revision = ?11";
    /// Those that are open behind a place, of every organization.
    OPEN_OF_ALL = unscoped("the sweep works for every organization") "SELECT organization_id, id FROM approvals WHERE state IN ('pending', 'approved') AND (organization_id, id) > (?1, ?2) ORDER BY organization_id, id LIMIT 1000";
    /// Those behind a place whose time has run out, of every organization.
    OVERDUE = unscoped("the sweep works for every organization") "SELECT organization_id, id FROM approvals WHERE state IN ('pending', 'approved') AND ((state = 'pending' AND deadline_at <= ?3) OR (state = 'approved' AND grant_until <= ?3)) AND (organization_id, id) > (?1, ?2) ORDER BY organization_id, id LIMIT 1000";
    /// Erases what people were shown of calls whose approvals ended long ago.
    ERASE_SHOWN = unscoped("retention is the same for every organization") "UPDATE approvals SET sealed = NULL, sealing_key_id = NULL WHERE (organization_id, id) IN (SELECT organization_id, id FROM approvals WHERE ended_at < ?1 AND sealed IS NOT NULL ORDER BY ended_at LIMIT ?2)";
    /// Forgets what ended long ago.
    FORGET = unscoped("retention is the same for every organization") "DELETE FROM approvals WHERE (organization_id, id) IN (SELECT organization_id, id FROM approvals WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2)";
    /// The sealing keys that rows need.
    SEALING_KEYS = unscoped("keys serve every organization") "SELECT DISTINCT sealing_key_id FROM approvals WHERE sealed IS NOT NULL AND sealing_key_id IS NOT NULL ORDER BY sealing_key_id";
    /// Rows whose counts, states and instants contradict each other.
    TORN = unscoped("a check looks at every organization") "SELECT organization_id, id FROM approvals WHERE use_count > max_uses OR (state = 'used') <> (use_count = max_uses) OR (state IN ('pending', 'approved')) <> (ended_at IS NULL) OR (state IN ('approved', 'used', 'revoked') AND grant_until IS NULL) OR (use_count > 0 AND grant_until IS NULL) ORDER BY organization_id, id";
}

fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T> {
    serde_json::from_str(row.str(at)?).map_err(Error::internal)
}

fn text<T: Serialize>(list: &T) -> Result<String> {
    serde_json::to_string(list).map_err(Error::internal)
}

/// Reads an approval.
fn read(row: &Row<'_>) -> Result<Approval> {
    let party = |kind: usize, id: usize| -> Result<Party> {
        Ok(Party {
            kind: row.get(kind)?,
            id: row.get(id)?,
        })
    };
    let key: Option<String> = row.get(18)?;
    let sealed: Option<Vec<u8>> = row.get(19)?;
    Ok(Approval {
        id: ApprovalId::from_store(row.get(0)?),
        grant_id: GrantId::from_store(row.get(1)?),
        kind: Kind::from_store(row.str(2)?)?,
        state: State::from_store(row.str(3)?)?,
        asker: party(4, 5)?,
        subject: party(6, 7)?,
        subject_rights: row.get(8)?,
        call_mac: row.get(9)?,
        tool: row.get(10)?,
        policies: json(row, 11)?,
        votes: json(row, 12)?,
        uses: json(row, 13)?,
        quorum: row.get(14)?,
        max_uses: row.get(15)?,
        deadline_at: row.get(16)?,
        grant_until: row.get(17)?,
        sealed: key.zip(sealed),
        created_at: row.get(20)?,
        decided_at: row.get(21)?,
        ended_at: row.get(22)?,
        end_reason: row.get(23)?,
        revision: row.get(24)?,
        binding_mac: row.get(25)?,
        owner_id: row.get(26)?,
        route: row
            .get::<Option<String>>(27)?
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(Error::internal)?,
        gains: json(row, 28)?,
    })
}

/// Returns an approval, if it is there.
pub fn find(tx: &mut Tx<'_>, org: &str, id: &ApprovalId) -> Result<Option<Approval>> {
    tx.query_opt(&GET, params![org, id.as_str()], read)
}

/// Returns an approval.
///
/// Errors: `NotFound` for an unknown one and one of another organization alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ApprovalId) -> Result<Approval> {
    let org = ctx.org();
    find(&mut ctx.tx(), org, id)?.ok_or_else(|| Error::not_found("approval"))
}

/// Returns approvals before a place of the list, the newest first.
pub fn list(
    ctx: &mut OperationContext<'_>,
    before: &str,
    state: Option<State>,
    subject: Option<&str>,
    limit: i64,
) -> Result<Vec<Approval>> {
    let statement = match state {
        Some(open) if !open.is_ended() => &LIST_OPEN,
        _ => &LIST,
    };
    let (org, state) = (ctx.org(), state.map(State::as_str));
    ctx.query(statement, params![org, before, state, subject, limit], read)
}

/// Returns approvals that wait before a place of the list, the newest first, without what the calls say.
pub fn waiting(
    ctx: &mut OperationContext<'_>,
    before: &str,
    subject: Option<&str>,
    limit: i64,
) -> Result<Vec<Approval>> {
    let org = ctx.org();
    ctx.query(&LIST_WAITING, params![org, before, subject, limit], read)
}

/// Returns approvals before a place of the list that somebody asked for or that were asked for them, the newest first.
pub fn own(ctx: &mut OperationContext<'_>, party: &Party, before: &str, limit: i64) -> Result<Vec<Approval>> {
    let org = ctx.org();
    let mut found = Vec::new();
    for statement in [&ASKED, &ASKED_FOR] {
        let values = params![org, party.kind.as_str(), party.id.as_str(), before, limit];
        found.extend(ctx.query(statement, values, read)?);
    }
    found.sort_unstable_by(|one, other| other.id.as_str().cmp(one.id.as_str()));
    found.dedup_by(|one, other| one.id == other.id);
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// Returns the open approvals of a call, the oldest first.
pub fn of_call(tx: &mut Tx<'_>, org: &str, call_mac: &str) -> Result<Vec<Approval>> {
    tx.query(&OF_CALL, params![org, call_mac], read)
}

/// Returns the open approvals.
pub fn open(ctx: &mut OperationContext<'_>) -> Result<Vec<Approval>> {
    let org = ctx.org();
    ctx.query(&OPEN, params![org], read)
}

/// Returns the open approvals that somebody asked for, or that are for them.
pub fn of_party(ctx: &mut OperationContext<'_>, kind: &str, id: &str) -> Result<Vec<Approval>> {
    let org = ctx.org();
    ctx.query(&OF_PARTY, params![org, kind, id], read)
}

/// How many requests there are already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Those of one asker, or of all that its owner owns where these are more: within the time that counts, whatever became of them,
    /// and those of before that wait still.
    pub of_asker: i64,
    /// The same, for one subject.
    pub for_subject: i64,
    /// Those that the asker, or whatever its owner owns, made by hand and that wait.
    pub by_hand: i64,
    /// Those that wait, of everybody.
    pub waiting: i64,
    /// Those of these that wait for longer than the time that counts.
    pub waiting_long: i64,
    /// Those that wait for a second person.
    pub waiting_operations: i64,
}

/// Returns how many requests there are.
///
/// Keeps AP-8.
pub fn counts(
    tx: &mut Tx<'_>,
    org: &str,
    (asker, owner): (&Party, &str),
    subject: &Party,
    now: Timestamp,
) -> Result<Counts> {
    let since = Timestamp::from_ms(now.as_ms().saturating_sub(COUNTED_SECS * 1_000));
    let values = params![
        org,
        asker.kind.as_str(),
        asker.id.as_str(),
        subject.kind.as_str(),
        subject.id.as_str(),
        since,
    ];
    let own = tx.query_opt(&COUNT_OF_ASKER, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (kind, id) = (subject.kind.as_str(), subject.id.as_str());
    let of_owner = tx.query_opt(&COUNT_OF_OWNER, params![org, owner, kind, id, since], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let of_before = tx.query_opt(
        &WAITING_OF_OWNER,
        params![org, owner, kind, id, now, since],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let waiting = tx.query_opt(&COUNT, params![org, now, COUNTED_SECS * 1_000], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let (waiting, waiting_long, waiting_operations): (i64, i64, i64) = waiting.unwrap_or_default();
    let (own, of_owner): ((i64, i64), (i64, i64)) = (own.unwrap_or_default(), of_owner.unwrap_or_default());
    let (before, before_for, by_hand): (i64, i64, i64) = of_before.unwrap_or_default();
    Ok(Counts {
        of_asker: own.0.max(of_owner.0) + before,
        for_subject: own.1.max(of_owner.1) + before_for,
        by_hand,
        waiting,
        waiting_long,
        waiting_operations,
    })
}

/// Returns how many operations a person asked for that wait, and how many within the time that counts, whatever became of them. What accounts
/// ask for that somebody named theirs is not among them.
///
/// Keeps AP-8.
pub fn operations_of(tx: &mut Tx<'_>, org: &str, asker: &Party, now: Timestamp) -> Result<(i64, i64)> {
    let since = Timestamp::from_ms(now.as_ms().saturating_sub(COUNTED_SECS * 1_000));
    let (kind, id) = (asker.kind.as_str(), asker.id.as_str());
    let waiting = tx.query_opt(&OPERATIONS_WAITING, params![org, kind, id, now], |row| {
        row.get::<i64>(0)
    })?;
    let within = tx.query_opt(&OPERATIONS_ASKED, params![org, kind, id, since], |row| {
        row.get::<i64>(0)
    })?;
    Ok((waiting.unwrap_or_default(), within.unwrap_or_default()))
}

/// Adds an approval.
///
/// Errors: `Conflict` when another one is open for the same call and policies.
pub fn insert(ctx: &mut OperationContext<'_>, approval: &Approval) -> Result<()> {
    let org = ctx.org();
    let (key, sealed) = match &approval.sealed {
        Some((key, sealed)) => (Some(key.as_str()), Some(sealed.as_slice())),
        None => (None, None),
    };
    let values: Vec<Param<'_>> = params![
        org,
        approval.id.as_str(),
        approval.grant_id.as_str(),
        approval.kind.as_str(),
        approval.state.as_str(),
        approval.asker.kind.as_str(),
        approval.asker.id.as_str(),
        approval.subject.kind.as_str(),
        approval.subject.id.as_str(),
        approval.subject_rights.as_str(),
        approval.call_mac.as_str(),
        approval.tool.as_str(),
        text(&approval.policies)?,
        text(&approval.votes)?,
        text(&approval.uses)?,
        approval.quorum,
        approval.max_uses,
        approval.deadline_at,
        key,
        sealed,
        approval.created_at,
        approval.binding_mac.as_str(),
        set_of(&approval.policies)?,
        approval.owner_id.as_str(),
        approval.route.as_ref().map(text).transpose()?,
        text(&approval.gains)?,
    ]
    .into();
    if ctx.execute(&INSERT, &values)? == 1 {
        Ok(())
    } else {
        Err(moved())
    }
}

/// Stores what became of an approval.
///
/// Errors: `Conflict` when the row is another than the one that this was computed from; nothing is stored then.
pub fn save(ctx: &mut OperationContext<'_>, approval: &Approval) -> Result<()> {
    let org = ctx.org();
    let uses = i64::try_from(approval.uses.len()).map_err(Error::internal)?;
    let saved = ctx.execute(
        &SAVE,
        params![
            org,
            approval.id.as_str(),
            approval.state.as_str(),
            text(&approval.votes)?,
            text(&approval.uses)?,
            uses,
            approval.grant_until,
            approval.decided_at,
            approval.ended_at,
            approval.end_reason.as_deref(),
            approval.revision,
        ],
    )?;
    if saved == 1 { Ok(()) } else { Err(moved()) }
}

/// Returns the refusal of what was computed from a row that is another by now.
pub fn moved() -> Error {
    Error::new(
        Code::Conflict,
        "the approval changed in the meantime; look at it and try again",
    )
}

/// Refuses what would give something while the clock is behind what it showed before: nobody can say how long it would last.
///
/// Keeps AP-12. Errors: `Unavailable`.
pub fn keep_time(ctx: &OperationContext<'_>) -> Result<()> {
    if ctx.services().is_set_back() {
        let message = "the clock of this server was set back, so that nobody can say how long an approval would last; an operator sets it \
                       right, or says that it is right (provost store accept --clock)";
        return Err(Error::unavailable(message));
    }
    Ok(())
}

/// A place in the list of approvals of every organization, or of delegations: the organization, and the id there.
pub type Place = (String, String);

fn place(row: &Row<'_>) -> Result<Place> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Returns the place before all of them.
pub fn first_place() -> Place {
    (String::new(), String::new())
}

/// Returns the next open approvals behind a place, a thousand at most; none once there are no more.
pub fn open_of_all(tx: &mut Tx<'_>, (organization, id): &Place) -> Result<Vec<Place>> {
    tx.query(&OPEN_OF_ALL, params![organization.as_str(), id.as_str()], place)
}

/// Returns the next approvals behind a place whose time has run out, a thousand at most; none once there are no more.
pub fn overdue(tx: &mut Tx<'_>, (organization, id): &Place, now: Timestamp) -> Result<Vec<Place>> {
    tx.query(&OVERDUE, params![organization.as_str(), id.as_str(), now], place)
}

/// Erases what people were shown of calls, of approvals of every organization that ended before.
pub fn erase_shown(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    ctx.prune(&ERASE_SHOWN, params![before.instant(), PRUNED_ROWS])
}

/// Forgets approvals of every organization that ended before.
pub fn forget(ctx: &mut OperationContext<'_>, before: SureTime) -> Result<()> {
    ctx.prune(&FORGET, params![before.instant(), PRUNED_ROWS])
}

/// Returns the ids of the sealing keys that rows need.
pub fn sealing_keys(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query(&SEALING_KEYS, params![], |row| row.get(0))
}

/// Returns a sentence for each row that contradicts itself.
pub fn broken_invariants(tx: &mut Tx<'_>, _: Timestamp) -> Result<Vec<String>> {
    tx.query(&TORN, params![], |row| {
        let (organization, id) = (row.str(0)?, row.str(1)?);
        Ok(format!(
            "the approval {id} of {organization} has uses, a state and instants that contradict each other"
        ))
    })
}
