//! Sessions as the kernel's credentials: what a delegated token may do now.
//!
//! INVARIANT OC-10: whatever was granted before, a registered client can do what it has now and its ceiling allows.
//! Keeps WO-3, WO-4: what a session of a workload can do is read from its trust as well.

use super::model::{SessionId, State};
use provost_areas_platform::settings;
use provost_kernel::auth::{OrganizationId, Role, ScopeSet};
use provost_kernel::credential::Credential;
use provost_kernel::db::Row;
use provost_kernel::error::Error;
use provost_kernel::{Result, Timestamp, statements};

/// When the sessions of which one is were ended that are not all written down.
#[macro_export]
macro_rules! cut {
    ($session:literal) => {
        concat!(
            "(SELECT MIN(c.ended_at) FROM mcp_session_cuts c WHERE c.organization_id = ",
            $session,
            ".organization_id AND c.subject IN ('client:' || ",
            $session,
            ".mcp_client_id, 'account:' || ",
            $session,
            ".service_account_id, 'user:' || ",
            $session,
            ".console_user_id) AND c.cut_seq >= ",
            $session,
            ".seq AND c.ended_at < ",
            $session,
            ".expires_at)"
        )
    };
}

statements! {
    /// Finds a session by its grant's key, with what its user, account and client are now, an end that is not written down,
    /// the end of the session whose token was exchanged for its own, and for a user without a role the settings, which may give
    /// everybody one.
    LOOKUP = unscoped("a grant's key is unique everywhere and says whose it is") concat!("SELECT s.organization_id, s.id, k.actor_type, k.scopes, (SELECT n.display FROM mcp_session_actors n WHERE n.organization_id = s.organization_id AND n.actor = s.actor), s.console_user_id, s.service_account_id, s.expires_at, s.state, s.ended_at, ", cut!("s"), ", s.last_used_at, u.status, u.permission_role, a.status, a.permission_role, a.scopes, s.mcp_client_id, CASE p.state WHEN 1 THEN p.ended_at WHEN 0 THEN ", cut!("p"), " END, o.id, o.scopes, o.ceiling, o.blocked_at, s.issued_at, w.scopes, w.suspended_at, ", provost_areas_platform::settings_where!("d", "d.organization_id = s.organization_id AND s.console_user_id IS NOT NULL AND u.permission_role IS NULL"), " FROM mcp_sessions s JOIN mcp_session_kinds k ON k.organization_id = s.organization_id AND k.kind = s.kind ", provost_areas_identity::joined_user!("s.organization_id", "s.console_user_id"), provost_areas_identity::joined_account!("s.organization_id", "s.service_account_id"), "LEFT JOIN mcp_sessions p ON p.grant_key = s.parent_grant ", "LEFT JOIN oauth_clients o ON o.organization_id = s.organization_id AND o.id = s.mcp_client_id ", "LEFT JOIN workload_trusts w ON w.organization_id = s.organization_id AND w.id = s.mcp_client_id WHERE s.grant_key = ?1");
}

/// Reads a row of [`LOOKUP`].
///
/// INVARIANT MS-6: a session acts iff it has not ended and everybody that it acts for is there and active, all read in
/// one snapshot.
pub fn credential(row: &Row<'_>) -> Result<Credential> {
    let kind = match row.str(2)? {
        "console_user" => "console_user",
        "service_account" => "service_account",
        "agent" => "agent",
        _ => {
            return Err(Error::internal(
                "mcp_session_kinds.actor_type is not a word of it",
            ));
        }
    };
    let (user, account) = (row.get::<Option<String>>(5)?, row.get::<Option<String>>(6)?);
    let is_active = |place| Ok::<_, Error>(row.get::<Option<String>>(place)?.as_deref() == Some("active"));
    let (user_active, account_active) = (is_active(12)?, is_active(14)?);
    let enabled = (user.is_some() || account.is_some())
        && (user.is_none() || user_active)
        && (account.is_none() || account_active);
    let (role, scopes) = if user.is_some() {
        (role(row, 13)?.or(default_role(row)?), None)
    } else {
        let scopes = row.get::<Option<String>>(16)?;
        (role(row, 15)?, scopes.map(|text| ScopeSet::from_store(&text)))
    };
    let (state, ended_at) = (State::of_code(row.get(8)?)?, row.get::<Option<Timestamp>>(9)?);
    let revoked_at = match state {
        State::Active => row.get(10)?,
        State::Revoked => ended_at,
        State::Expired => None,
    };
    // What ended with the session whose token was exchanged, and with its client, has ended (MS-4, OC-9).
    let parent_revoked_at = row.get::<Option<Timestamp>>(18)?;
    let blocked_at = row.get::<Option<Timestamp>>(22)?;
    let (last_use, issued_at) = (row.get::<Timestamp>(11)?, row.get::<Timestamp>(23)?);
    let (trust_scopes, trust_ended_at) = of_trust(row, issued_at)?;
    let revoked_at = revoked_at.or(parent_revoked_at).or(blocked_at).or(trust_ended_at);
    // Ended is ended, also when the clock was set back since.
    let expires_at = if state == State::Expired {
        Timestamp::EPOCH
    } else {
        row.get(7)?
    };
    // A session begins with its own beginning as its last use: then none was seen yet.
    let last_used_at = (last_use > issued_at).then_some(last_use);
    let id = SessionId::from_store(row.get(1)?);
    Ok(Credential {
        organization: OrganizationId::from_store(row.get(0)?),
        kind,
        principal_id: user.or(account).unwrap_or_default(),
        display: row.get::<Option<String>>(4)?.unwrap_or_default(),
        role,
        account_scopes: scopes,
        token_scopes: Some(within_client(row, ScopeSet::from_store(row.str(3)?))?.and(trust_scopes)),
        enabled,
        prefix: id.as_str().to_owned(),
        is_own: false,
        token_id: id.as_str().to_owned(),
        mac: Vec::new(),
        pepper_id: String::new(),
        issued_at: Some(issued_at),
        expires_at,
        revoked_at,
        self_rotated: false,
        replay_pending: false,
        last_used_at,
        item: None,
        client: row.get(17)?,
        binding: provost_kernel::credential::Binding::Bearer,
    })
}

/// How the ids of workload trusts begin, which are the clients of their sessions.
const TRUST: &str = "wtr_";

/// Returns what a workload trust leaves of the scopes of its session now, and since when it leaves nothing: it is gone, or
/// suspended. Nobody else's session is bounded, unless its client calls itself by such a name.
fn of_trust(row: &Row<'_>, issued_at: Timestamp) -> Result<(ScopeSet, Option<Timestamp>)> {
    let client = row.get::<Option<String>>(17)?;
    if !client.is_some_and(|client| client.starts_with(TRUST)) {
        return Ok((ScopeSet::all(), None));
    }
    let Some(scopes) = row.get::<Option<String>>(24)? else {
        return Ok((ScopeSet::default(), Some(issued_at)));
    };
    // INVARIANT WO-3: whatever a row lists, a workload has no scope with which something can be made that outlives its session.
    let scopes = ScopeSet::from_store(&scopes)
        .closed()
        .without(ScopeSet::lasting());
    Ok((scopes, row.get(25)?))
}

/// Returns what a registered client leaves of the scopes of its session, now.
///
/// INVARIANT OC-10: whatever was granted before, a registered client can do what it has now and its ceiling allows.
fn within_client(row: &Row<'_>, scopes: ScopeSet) -> Result<ScopeSet> {
    if row.get::<Option<String>>(19)?.is_none() {
        return Ok(scopes);
    }
    let most = |place| {
        let text = row.get::<Option<String>>(place)?;
        // Without a ceiling, which every start writes, there is nothing.
        Ok::<_, Error>(
            text.map_or_else(ScopeSet::default, |text| ScopeSet::from_store(&text))
                .closed(),
        )
    };
    Ok(scopes.closed().and(most(20)?).and(most(21)?))
}

/// Returns the role of whoever has none of their own; the row has the settings for such a user alone.
fn default_role(row: &Row<'_>) -> Result<Option<Role>> {
    match row.get::<Option<String>>(26)? {
        Some(document) => Ok(settings::read(&document)?.directory.default_role.role()),
        None => Ok(None),
    }
}

fn role(row: &Row<'_>, place: usize) -> Result<Option<Role>> {
    let Some(word) = row.get::<Option<String>>(place)? else {
        return Ok(None);
    };
    let role = Role::parse(&word);
    role.map(Some)
        .ok_or_else(|| Error::internal("a stored role is not a role"))
}
