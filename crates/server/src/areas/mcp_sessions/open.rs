//! How sessions begin and live on; for the areas that accept tokens.

use super::model::{
    ACCOUNT_DISABLED, LASTING_GRANT, MAX_A_DAY, NewSession, Session, SessionActor, SessionId, State,
    instant_behind,
};
use super::store;
use provost_kernel::auth::Permission;
use provost_kernel::credential::{Admission, Credential, McpClient, cut_at_mcp};
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error};
use provost_kernel::{Cx, Result, Timestamp, params};
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
pub fn open(cx: &mut Cx<'_>, new: NewSession) -> Result<SessionId> {
    let org = cx.org();
    if let Some((organization, id)) = store::by_grant(cx, &new.grant_key)? {
        if organization != org {
            return Err(Error::new(Code::Conflict, "this grant belongs to somebody else"));
        }
        return Ok(id);
    }
    if new.grant_key.starts_with(LASTING_GRANT) && store::is_buried(cx, &new.grant_key)? {
        return Err(Error::new(
            Code::TokenRevoked,
            "the session of this grant has ended",
        ));
    }
    let yesterday = cx.now().plus_secs(-86_400);
    if store::begun(cx, &new.actor, yesterday, MAX_A_DAY)? >= MAX_A_DAY {
        let message =
            "2000 sessions of this user or account began within a day; see to what keeps opening new ones";
        return Err(Error::new(Code::RateLimited, message).retry_after(3600));
    }
    // Behind every end of many sessions that is not written down yet: it is not about this one (MS-4).
    let cuts = store::cuts(&mut cx.tx(), org)?;
    let behind = cuts.iter().map(|cut| instant_behind(cut.seq)).max();
    let at = behind.map_or(cx.now(), |behind| behind.max(cx.now()));
    let kind = store::kind(cx, new.actor.word(), new.scopes)?;
    for _ in 0..TRIES {
        let id = provost_kernel::id::mint("mcps", at, cx.rng());
        let id = SessionId::from_store(id);
        if store::insert(cx, &id, kind, at, &new)? {
            cx.target("mcp_session", id.as_str());
            cx.emit(
                "mcp.session.issued",
                json!({ "sessionId": id, "actorType": new.actor.word(), "expiresAt": new.expires_at }),
            );
            return Ok(id);
        }
    }
    Err(Error::unavailable(
        "too many sessions are opened at once; try again",
    ))
}

/// Lets a session live until `expires_at`; never shorter than it would.
///
/// Errors: `NotFound`; `AlreadyTerminal` for one that has ended.
pub fn extend(cx: &mut Cx<'_>, id: &SessionId, expires_at: Timestamp) -> Result<()> {
    if store::get(cx, id)?.state != State::Active {
        return Err(Error::new(Code::AlreadyTerminal, "the session has ended"));
    }
    let (org, now) = (cx.org(), cx.now());
    cx.queue(&store::EXTEND, params![org, id.as_str(), expires_at, now])
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
    let is_blamed = |session: Session| {
        let session = session.at(now, &cuts);
        session.state == State::Revoked
            && session
                .ended
                .is_some_and(|ended| ended.reason != ACCOUNT_DISABLED)
    };
    if all.into_iter().any(is_blamed) {
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

/// Opens the session of a service-account token with a client, unless it has one.
///
/// Errors: `TokenRevoked` when the session was revoked meanwhile.
pub fn open_at_mcp(cx: &mut Cx<'_>, credential: &Credential, client: &McpClient) -> Result<()> {
    let org = cx.org();
    let grant_key = grant_key(&credential.token_id, client);
    match admit_at_mcp(&mut cx.tx(), credential, client)? {
        Admission::Known { .. } => return Ok(()),
        Admission::Refused => return Err(cut_at_mcp()),
        // An earlier one ended by its time or with its account: the new one takes its key.
        Admission::New => cx.queue(&store::FREE_GRANT, params![org, grant_key.as_str()])?,
    }
    let permission = credential.role.map_or_else(Permission::none, |role| {
        Permission::effective(role, credential.account_scopes, credential.token_scopes)
    });
    open(
        cx,
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
