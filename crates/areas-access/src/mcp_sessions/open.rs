//! How sessions begin and live on; for the areas that accept tokens.

use super::model::{
    ACCOUNT_DISABLED, IDLE_SECS, LASTING_GRANT, MAX_A_DAY, NewSession, SUPERSEDED, Session, SessionActor,
    SessionId, State, instant_behind,
};
use super::store;
use crate::mcp_sessions::fences;
use provost_areas_platform::announcements::AccountRotatesItself;
use provost_kernel::auth::{Permission, ScopeSet};
use provost_kernel::credential::{Admission, Credential, McpClient, cut_at_mcp};
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result, Timestamp, params};
use serde_json::json;

/// LIMIT: ids tried until one has a number of its own; one in two million others of a millisecond takes it.
const TRIES: usize = 8;

/// Opens a session and returns its id; a grant that is known has one already, ended or not.
///
/// INVARIANT MS-7: of one user or account no more than 2 000 sessions begin within a day.
///
/// Errors: `Conflict` for a grant of another organization, `TokenRevoked` for one whose session ended and was forgotten,
/// `RateLimited`.
#[expect(clippy::needless_pass_by_value, reason = "a session is opened once")]
pub fn open(ctx: &mut OperationContext<'_>, new: NewSession) -> Result<SessionId> {
    let org = ctx.org();
    if let Some((organization, id)) = store::by_grant(ctx, &new.grant_key)? {
        if organization != org {
            return Err(Error::new(Code::Conflict, "this grant belongs to somebody else"));
        }
        return Ok(id);
    }
    if new.grant_key.starts_with(LASTING_GRANT) && store::is_buried(ctx, &new.grant_key)? {
        return Err(has_ended());
    }
    let yesterday = ctx.now().plus_secs(-86_400);
    if store::begun(ctx, &new.actor, yesterday, MAX_A_DAY)? >= MAX_A_DAY {
        let message =
            "2000 sessions of this user or account began within a day; see to what keeps opening new ones";
        return Err(Error::new(Code::RateLimited, message).retry_after(3600));
    }
    // Behind every end of many sessions that is not written down yet: it is not about this one (MS-4).
    let cuts = store::cuts(&mut ctx.tx(), org)?;
    let behind = cuts.iter().map(|cut| instant_behind(cut.seq)).max();
    let at = behind.map_or(ctx.now(), |behind| behind.max(ctx.now()));
    let kind = store::kind(ctx, new.actor.word(), new.scopes)?;
    for _ in 0..TRIES {
        let id = provost_kernel::id::mint("mcps", at, ctx.rng());
        let id = SessionId::from_store(id);
        if store::insert(ctx, &id, kind, at, &new)? {
            ctx.target(&fences::SESSION, id.as_str());
            ctx.emit(
                &fences::ISSUED,
                &fences::NewSession {
                    session_id: id.clone(),
                    actor_type: new.actor.word(),
                    expires_at: new.expires_at,
                },
            );
            return Ok(id);
        }
    }
    Err(Error::unavailable(
        "too many sessions are opened at once; try again",
    ))
}

fn has_ended() -> Error {
    Error::new(Code::TokenRevoked, "the session of this grant has ended")
}

/// How many characters of a client's id were kept by programs that did not know the keys of today.
const FORMER_CLIENT_CHARS: usize = 128;

/// Takes over what there is of a new session under the key that earlier programs gave its grant, which named neither
/// subject nor client: the session, if it is this user's and client's.
///
/// INVARIANT MS-8: a session that ended is not opened again under its issuer's name: neither under the key of today nor
/// under that of earlier programs.
///
/// Errors: `TokenRevoked` when it ended, whoever's it was.
pub fn take_over(ctx: &mut OperationContext<'_>, former_key: &str, new: &NewSession) -> Result<()> {
    if store::by_grant(ctx, &new.grant_key)?.is_some() {
        return Ok(());
    }
    if has_ended_under(ctx, former_key)? {
        return Err(has_ended());
    }
    let org = ctx.org();
    let known = store::by_grant(ctx, former_key)?.filter(|(organization, _)| organization == org);
    let Some((_, id)) = known else { return Ok(()) };
    let session = store::get(ctx, &id)?;
    let is_same = session.actor_type == new.actor.word()
        && session.console_user_id.as_deref() == new.actor.console_user()
        && session.service_account_id.as_deref() == new.actor.service_account();
    let client = new.client_id.as_deref().unwrap_or_default();
    if is_same && session.mcp_client_id.as_deref() == new.client_id.as_deref() {
        let until = ctx.now().plus_secs(IDLE_SECS);
        let keys = params![org, former_key, new.grant_key.as_str(), until];
        ctx.queue(&store::REKEY, keys)?;
        let user = new.actor.console_user();
        let children = params![org, former_key, new.grant_key.as_str(), user];
        ctx.queue(&store::REPOINT, children)?;
    } else if is_same && is_beginning(session.mcp_client_id.as_deref(), client) {
        // Its client's name was cut, so that it may be another's as well: the new one is whole.
        super::end(ctx, &id, SUPERSEDED)?;
        ctx.queue(&store::FREE_GRANT, params![org, former_key])?;
    }
    Ok(())
}

fn is_beginning(known: Option<&str>, client: &str) -> bool {
    let cut: String = client.chars().take(FORMER_CLIENT_CHARS).collect();
    cut.len() < client.len() && known == Some(cut.as_str())
}

/// Says whether the session of a grant has ended, also if it is forgotten.
pub fn has_ended_under(ctx: &mut OperationContext<'_>, grant_key: &str) -> Result<bool> {
    if store::is_buried(ctx, grant_key)? {
        return Ok(true);
    }
    match store::by_grant(ctx, grant_key)? {
        Some((organization, id)) if organization == ctx.org() => {
            Ok(store::get(ctx, &id)?.state != State::Active)
        }
        _ => Ok(false),
    }
}

/// Returns the session of a grant of this organization, and whether it still stands.
pub fn standing(ctx: &mut OperationContext<'_>, grant_key: &str) -> Result<Option<(Session, bool)>> {
    match store::by_grant(ctx, grant_key)? {
        Some((organization, id)) if organization == ctx.org() => {
            let session = store::get(ctx, &id)?;
            let stands = session.state == State::Active;
            Ok(Some((session, stands)))
        }
        _ => Ok(None),
    }
}

/// Has a session list what one more of its tokens had; one that has ended stays as it is.
pub fn widen(ctx: &mut OperationContext<'_>, id: &SessionId, scopes: ScopeSet) -> Result<()> {
    let session = store::get(ctx, id)?;
    if session.state != State::Active || session.scopes.closed().covers(scopes) {
        return Ok(());
    }
    let kind = store::kind(ctx, &session.actor_type, session.scopes.or(scopes))?;
    let org = ctx.org();
    ctx.target(&fences::SESSION, id.as_str());
    ctx.change(
        "/scopes",
        json!(session.scopes.to_list()),
        json!(session.scopes.or(scopes).to_list()),
    );
    ctx.queue(&store::SET_KIND, params![org, id.as_str(), kind])
}

/// Notes of which session's token the token of a session was made: it ends with that one.
pub fn descend(ctx: &mut OperationContext<'_>, id: &SessionId, parent_key: &str) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&store::SET_PARENT, params![org, id.as_str(), parent_key])
}

/// Extends the life of a session to `expires_at`. A session that already lives longer keeps its end.
///
/// Errors: `NotFound`; `AlreadyTerminal` for one that has ended.
pub fn extend(ctx: &mut OperationContext<'_>, id: &SessionId, expires_at: Timestamp) -> Result<()> {
    if store::get(ctx, id)?.state != State::Active {
        return Err(Error::new(Code::AlreadyTerminal, "the session has ended"));
    }
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&store::EXTEND, params![org, id.as_str(), expires_at, now])
}

/// Says whether a service-account token may come to the MCP endpoint as this client.
///
/// INVARIANT MS-5: a token of which one session was revoked, for whatever but the disabling of its account, comes to the
/// MCP endpoint under no client's name.
pub fn admit_at_mcp(tx: &mut Tx<'_>, credential: &Credential, client: &McpClient) -> Result<Admission> {
    let (org, token) = (credential.organization.as_str(), credential.token_id.as_str());
    let grant = grant_key(token, client);
    let mut is_blamed = false;
    let mut are_ending = false;
    // A session lives as long as its token, whose time was judged before: no instant is needed here.
    let known = tx.query_opt(&store::ADMITTED, params![org, token, grant.as_str()], |row| {
        (is_blamed, are_ending) = (row.get(0)?, row.get(1)?);
        let last_used_at = row.get::<Option<Timestamp>>(3)?;
        Ok(row.get::<Option<String>>(2)?.zip(last_used_at))
    })?;
    if is_blamed {
        return Ok(Admission::Refused);
    }
    if are_ending {
        return admit_of_ending(tx, credential, &grant);
    }
    Ok(match known.flatten() {
        Some((session_id, last_used_at)) => Admission::Known {
            session_id,
            last_used_at,
        },
        None => Admission::New,
    })
}

/// The same while ends of many sessions are being written down: rare, and then all is read as it will be written.
fn admit_of_ending(tx: &mut Tx<'_>, credential: &Credential, grant: &str) -> Result<Admission> {
    let now = Timestamp::EPOCH;
    let (org, token) = (credential.organization.as_str(), credential.token_id.as_str());
    let cuts = store::cuts(tx, org)?;
    let of_token = params![org, token, State::Active.code(), i64::MAX, i64::MAX];
    let all = tx.query(&store::OF_TOKEN, of_token, store::read)?;
    if all.into_iter().any(|session| is_blamed(session, &cuts)) {
        return Ok(Admission::Refused);
    }
    let known = tx.query_opt(&store::GRANTED, params![org, grant], store::read)?;
    let known = known.map(|session| session.at(now, &cuts));
    Ok(match known.filter(|session| session.state == State::Active) {
        Some(session) => Admission::Known {
            session_id: session.id.as_str().to_owned(),
            last_used_at: session.last_used_at,
        },
        None => Admission::New,
    })
}

/// Says whether a session of a service-account token was revoked, for whatever but the disabling of its account: the token
/// comes to the MCP endpoint no more (MS-5), and gives itself no successor that does.
fn is_cut(tx: &mut Tx<'_>, organization: &str, token: &str) -> Result<bool> {
    let known = tx.query_opt(&store::ADMITTED, params![organization, token, ""], |row| {
        Ok((row.get::<bool>(0)?, row.get::<bool>(1)?))
    })?;
    let Some((false, are_ending)) = known else {
        return Ok(known.is_some());
    };
    if !are_ending {
        return Ok(false);
    }
    let cuts = store::cuts(tx, organization)?;
    let of_token = params![organization, token, State::Active.code(), i64::MAX, i64::MAX];
    let all = tx.query(&store::OF_TOKEN, of_token, store::read)?;
    Ok(all.into_iter().any(|session| is_blamed(session, &cuts)))
}

fn is_blamed(session: Session, cuts: &[super::model::RevocationWatermark]) -> bool {
    let session = session.at(Timestamp::EPOCH, cuts);
    session.state == State::Revoked
        && session
            .ended
            .is_some_and(|ended| ended.reason != ACCOUNT_DISABLED)
}

/// Refuses that an account gives itself a successor of a token of which a session was revoked (SA-12).
///
/// Errors: `EscalationForbidden`.
pub fn account_rotates_itself(ctx: &mut OperationContext<'_>, rotation: &AccountRotatesItself) -> Result<()> {
    let org = ctx.org();
    if !is_cut(&mut ctx.tx(), org, &rotation.token_id)? {
        return Ok(());
    }
    Err(Error::new(
        Code::EscalationForbidden,
        "a session of this token was revoked; somebody else with the scope service_accounts:rotate rotates the account",
    ))
}

/// Opens the session of a service-account token with a client, unless it has one.
///
/// Errors: `TokenRevoked` when the session was revoked meanwhile.
pub fn open_at_mcp(
    ctx: &mut OperationContext<'_>,
    credential: &Credential,
    client: &McpClient,
) -> Result<()> {
    let org = ctx.org();
    let grant_key = grant_key(&credential.token_id, client);
    match admit_at_mcp(&mut ctx.tx(), credential, client)? {
        Admission::Known { .. } => return Ok(()),
        Admission::Refused => return Err(cut_at_mcp()),
        // An earlier one ended by its time or with its account: the new one takes its key.
        Admission::New => ctx.queue(&store::FREE_GRANT, params![org, grant_key.as_str()])?,
    }
    let permission = credential.role.map_or_else(Permission::none, |role| {
        Permission::effective(role, credential.account_scopes, credential.token_scopes)
    });
    open(
        ctx,
        NewSession {
            grant_key,
            actor: SessionActor::ServiceAccount {
                id: credential.principal_id.clone(),
                display: credential.display.clone(),
            },
            client_id: Some(client.id.clone()),
            client_display: client.display.clone(),
            scopes: permission.scopes,
            token_id: Some(credential.token_id.clone()),
            expires_at: credential.expires_at,
        },
    )
    .map(drop)
}

fn grant_key(token_id: &str, client: &McpClient) -> String {
    format!("mcp {token_id} {}", client.id)
}
