//! Sessions as the kernel's credentials: what a delegated token may do now.

use super::model::{SessionId, State};
use provost_kernel::auth::{OrganizationId, Role, ScopeSet};
use provost_kernel::credential::Credential;
use provost_kernel::db::Row;
use provost_kernel::error::Error;
use provost_kernel::{Result, Timestamp, statements};

statements! {
    /// Finds a session by its grant's key, with what its user or account is now, and an end that is not written down.
    LOOKUP = unscoped("a grant's key is unique everywhere and says whose it is") concat!("SELECT s.organization_id, s.id, k.actor_type, k.scopes, s.actor_display, s.console_user_id, s.service_account_id, s.expires_at, s.state, s.ended_at, (SELECT MIN(c.ended_at) FROM mcp_session_cuts c WHERE c.organization_id = s.organization_id AND c.subject IN ('client:' || s.mcp_client_id, 'account:' || s.service_account_id, 'user:' || s.console_user_id) AND c.cut_seq >= s.seq AND c.ended_at < s.expires_at), s.last_used_at, u.status, u.permission_role, a.status, a.permission_role, a.scopes FROM mcp_sessions s JOIN mcp_session_kinds k ON k.organization_id = s.organization_id AND k.kind = s.kind ", crate::areas::directory::joined_user!("s.organization_id", "s.console_user_id"), crate::areas::service_accounts::joined_account!("s.organization_id", "s.service_account_id"), "WHERE s.grant_key = ?1");
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
        (role(row, 13)?, None)
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
    // Ended is ended, also when the clock was set back since.
    let expires_at = if state == State::Expired {
        Timestamp::EPOCH
    } else {
        row.get(7)?
    };
    let id = SessionId::from_store(row.get(1)?);
    Ok(Credential {
        organization: OrganizationId::from_store(row.get(0)?),
        kind,
        principal_id: user.or(account).unwrap_or_default(),
        display: row.get::<Option<String>>(4)?.unwrap_or_default(),
        role,
        account_scopes: scopes,
        token_scopes: Some(ScopeSet::from_store(row.str(3)?)),
        enabled,
        prefix: id.as_str().to_owned(),
        token_id: id.as_str().to_owned(),
        mac: Vec::new(),
        pepper_id: String::new(),
        expires_at,
        revoked_at,
        self_rotated: false,
        replay_pending: false,
        last_used_at: Some(row.get(11)?),
        item: None,
    })
}

fn role(row: &Row<'_>, place: usize) -> Result<Option<Role>> {
    let Some(word) = row.get::<Option<String>>(place)? else {
        return Ok(None);
    };
    let role = Role::parse(&word);
    role.map(Some)
        .ok_or_else(|| Error::internal("a stored role is not a role"))
}
