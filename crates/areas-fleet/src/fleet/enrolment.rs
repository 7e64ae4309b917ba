//! Enrolment tokens: what they are, and all SQL of them.

use super::bounds::Bounds;
use super::model::{EnrolmentTokenId, Mode, Owner};
use super::sight::Sight;
use super::taken;
use provost_kernel::db::{Param, Row};
use provost_kernel::error::{Error, Result};
use provost_kernel::token::NewToken;
use provost_kernel::{OperationContext, Timestamp, params, statements};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The columns of an enrolment token, in the order that [`enrolment_token`] expects.
macro_rules! enrolment_tokens {
    () => {
        "SELECT id, seq, name, token_prefix, mode, max_uses, uses, require_approval, created_by, created_at, \
         expires_at, revoked_at, revoke_reason, owner_user_id, owner_reach_role, owner_reach_scopes, is_own, \
         made_with, labels, bounds FROM enrolment_tokens "
    };
}

statements! {
    /// One enrolment token.
    ENROLMENT_TOKEN = concat!(enrolment_tokens!(), "WHERE organization_id = ?1 AND id = ?2");
    /// A page of enrolment tokens, the newest first.
    ENROLMENT_TOKENS = concat!(enrolment_tokens!(), "WHERE organization_id = ?1 AND seq < ?2 ORDER BY seq DESC, id LIMIT ?3");
    /// Makes an enrolment token.
    INSERT_ENROLMENT_TOKEN = "INSERT INTO enrolment_tokens (organization_id, id, seq, name, lookup_id, token_prefix, mac, pepper_id, mode, max_uses, uses, require_approval, created_by_kind, created_by, created_at, expires_at, replay_pending, came_by, owner_user_id, owner_reach_role, owner_reach_scopes, is_own, made_with, labels, bounds) VALUES (?1, ?2, (SELECT COALESCE(MAX(seq), 0) + 1 FROM enrolment_tokens WHERE organization_id = ?1), ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";
    /// What the application of a session is called.
    APPLICATION = "SELECT COALESCE(client_display, mcp_client_id) FROM mcp_sessions WHERE organization_id = ?1 AND id = ?2";
    /// Counts a use of an enrolment token that has one left.
    USE = "UPDATE enrolment_tokens SET uses = uses + 1 WHERE organization_id = ?1 AND id = ?2 AND uses < max_uses AND revoked_at IS NULL";
    /// Revokes an enrolment token.
    REVOKE_ENROLMENT_TOKEN = "UPDATE enrolment_tokens SET revoked_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND id = ?2 AND revoked_at IS NULL";
    /// The enrolment tokens that somebody made and that still make devices.
    MADE_BY = "SELECT id FROM enrolment_tokens WHERE organization_id = ?1 AND created_by = ?2 AND revoked_at IS NULL AND expires_at > ?3 AND uses < max_uses ORDER BY id";
    /// How many enrolment tokens of one use somebody made since an instant, ended ones too.
    MADE_LATELY = "SELECT COUNT(*) FROM enrolment_tokens WHERE organization_id = ?1 AND created_by = ?2 AND expires_at > ?3 AND created_at > ?3 AND max_uses = 1";
    /// How many devices are not retired that enrolled by a token of one use which somebody made, at most `?3`.
    LIVING_OF = "SELECT COUNT(*) FROM (SELECT 1 FROM enrolment_tokens e CROSS JOIN devices d WHERE e.organization_id = ?1 AND e.created_by = ?2 AND e.max_uses = 1 AND d.organization_id = e.organization_id AND d.enrolment_token_id = e.id AND d.status <> 'retired' LIMIT ?3) AS living";
    /// Revokes the tokens that somebody made.
    REVOKE_MADE_BY = "UPDATE enrolment_tokens SET revoked_at = ?3, revoke_reason = ?4, replay_pending = ?5 WHERE organization_id = ?1 AND created_by = ?2 AND revoked_at IS NULL AND expires_at > ?3 AND uses < max_uses";
    /// The enrolment tokens that came by a credential and that still make devices.
    OF_ORIGIN = "SELECT id FROM enrolment_tokens WHERE organization_id = ?1 AND came_by = ?2 AND revoked_at IS NULL AND expires_at > ?3 AND uses < max_uses ORDER BY seq";
    /// Those that came by a session that ended at an instant for a reason.
    OF_ENDED = "SELECT id FROM enrolment_tokens WHERE organization_id = ?1 AND revoked_at IS NULL AND expires_at > ?4 AND uses < max_uses AND came_by IN (SELECT s.id FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.ended_at = ?2 AND s.state = 1 AND s.revoke_reason = ?3) ORDER BY seq + 0";
    /// Revokes every enrolment token of an organization.
    REVOKE_EVERY = "UPDATE enrolment_tokens SET revoked_at = ?2, revoke_reason = ?3, replay_pending = ?4 WHERE organization_id = ?1 AND revoked_at IS NULL";
}

/// An enrolment token as it is stored and shown, without its secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EnrolmentToken")]
pub struct EnrolmentToken {
    /// Its id.
    pub id: EnrolmentTokenId,
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) seq: i64,
    /// Its name; where names of machines are hidden, what stands for it, for everybody but its maker.
    pub name: String,
    /// The part of the token that may be shown.
    pub token_prefix: String,
    /// For whom the agents work that enrol by it.
    pub mode: Mode,
    /// How many devices may enrol by it.
    pub max_uses: i64,
    /// How many did.
    pub uses: i64,
    /// Whether an admin approves each of them.
    pub require_approval: bool,
    /// The labels that each device gets that enrols by it.
    pub labels: Vec<String>,
    /// Which machines enrol by it.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// The id of whoever made it; where people are pseudonymous, what stands for somebody else.
    pub created_by: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The end of its life.
    pub expires_at: Timestamp,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// `restored`: a restore of the store revoked it; `maker_ended`: whoever made it acts no more, or can do less;
    /// `origin_ended`: the token or the session by which it was made was ended. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoke_reason: Option<String>,
    /// The application by which the caller made it for a machine of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_with: Option<String>,
    /// Whether its maker made it for a machine of their own.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) is_own: bool,
    /// Whose machine it enrols; whoever may see that sees it of the machine.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) owner: Option<Owner>,
}

/// The path of operations on one enrolment token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct EnrolmentTokenPath {
    /// The enrolment token.
    pub enrolment_token_id: EnrolmentTokenId,
}

fn owner(row: &Row<'_>) -> Result<Option<Owner>> {
    let Some(user_id) = row.get::<Option<String>>(13)? else {
        return Ok(None);
    };
    let (role, scopes) = (row.get::<Option<String>>(14)?, row.get::<Option<String>>(15)?);
    let reach = taken::reach(role.as_deref(), scopes.as_deref());
    Ok(Some(Owner { user_id, reach }))
}

fn enrolment_token(row: &Row<'_>) -> Result<EnrolmentToken> {
    Ok(EnrolmentToken {
        id: EnrolmentTokenId::from_store(row.get(0)?),
        seq: row.get(1)?,
        name: row.get(2)?,
        token_prefix: row.get(3)?,
        mode: Mode::from_store(row.str(4)?)?,
        max_uses: row.get(5)?,
        uses: row.get(6)?,
        require_approval: row.get(7)?,
        created_by: row.get(8)?,
        created_at: row.get(9)?,
        expires_at: row.get(10)?,
        revoked_at: row.get(11)?,
        revoke_reason: row.get(12)?,
        owner: owner(row)?,
        is_own: row.get(16)?,
        made_with: row.get(17)?,
        labels: serde_json::from_str(row.str(18)?).map_err(Error::internal)?,
        bounds: Bounds::from_store(row.get::<Option<String>>(19)?.as_deref())?,
    })
}

impl EnrolmentToken {
    /// Returns what the caller sees of it: which application somebody else uses is not the caller's to know.
    ///
    /// Keeps PV-1.
    pub fn seen(self, sight: &Sight<'_>) -> Self {
        Self {
            made_with: self.made_with.filter(|_| sight.is_me(&self.created_by)),
            name: sight.name(
                sight.is_me(&self.created_by),
                ("token", self.id.as_str()),
                self.name,
            ),
            // Whose machine an own one enrols is its maker, and the machine says so: as what somebody did it would join the two pseudonyms.
            created_by: if self.is_own {
                sight.maker_of_own(self.id.as_str(), self.created_by)
            } else {
                sight.maker(self.created_by)
            },
            ..self
        }
    }
}

/// Returns what the application is called by whose session the caller acts; nothing where it is none.
pub fn application(ctx: &mut OperationContext<'_>) -> Result<Option<String>> {
    let (org, session) = (ctx.org(), ctx.actor().token.clone());
    let Some(session) = session else {
        return Ok(None);
    };
    let found = ctx.query_opt(&APPLICATION, params![org, session.id.as_str()], |row| {
        row.get::<Option<String>>(0)
    })?;
    Ok(found.flatten())
}

/// Returns an enrolment token.
///
/// Errors: `NotFound` for an unknown and another organization's token alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &EnrolmentTokenId) -> Result<EnrolmentToken> {
    let org = ctx.org();
    ctx.query_opt(&ENROLMENT_TOKEN, params![org, id.as_str()], enrolment_token)?
        .ok_or_else(|| Error::not_found("enrolment token"))
}

/// Returns enrolment tokens before a place, the newest first.
pub fn list(ctx: &mut OperationContext<'_>, before: i64, limit: i64) -> Result<Vec<EnrolmentToken>> {
    let org = ctx.org();
    ctx.query(&ENROLMENT_TOKENS, params![org, before, limit], enrolment_token)
}

/// Stores a new enrolment token.
pub fn insert(ctx: &mut OperationContext<'_>, token: &EnrolmentToken, minted: &NewToken) -> Result<()> {
    let (org, actor) = (ctx.org(), ctx.actor());
    // INVARIANT FL-10: it ends with what it came by.
    let owner = token.owner.as_ref();
    let came_by = actor.token.as_ref().map(|token| token.id.as_str());
    let (pepper, mac) = ctx.services().keys.token_mac_current(minted.token.expose());
    let labels = serde_json::to_string(&token.labels).map_err(Error::internal)?;
    let bounds = token.bounds.stored()?;
    ctx.queue(
        &INSERT_ENROLMENT_TOKEN,
        params![
            org,
            token.id.as_str(),
            token.name.as_str(),
            minted.lookup_id.as_str(),
            minted.prefix.as_str(),
            mac.as_slice(),
            pepper.as_str(),
            token.mode.as_str(),
            token.max_uses,
            token.require_approval,
            actor.kind,
            actor.id.as_str(),
            token.created_at,
            token.expires_at,
            true,
            came_by,
            owner.map(|owner| owner.user_id.as_str()),
            owner.map(|owner| owner.reach.role()),
            owner.and_then(|owner| owner.reach.scopes()),
            token.is_own,
            token.made_with.as_deref(),
            labels.as_str(),
            bounds.as_deref(),
        ],
    )
}

/// Counts a use of an enrolment token, and says whether it had one left.
pub fn use_up(ctx: &mut OperationContext<'_>, id: &EnrolmentTokenId) -> Result<bool> {
    let org = ctx.org();
    Ok(ctx.execute(&USE, params![org, id.as_str()])? == 1)
}

/// Revokes an enrolment token, and says whether it was not yet.
pub fn revoke(ctx: &mut OperationContext<'_>, id: &EnrolmentTokenId, reason: Option<&str>) -> Result<bool> {
    let (org, now) = (ctx.org(), ctx.now());
    let params: &[Param<'_>] = params![org, id.as_str(), now, reason, false];
    let revoked = ctx.execute(&REVOKE_ENROLMENT_TOKEN, params)?;
    ctx.erase_replay(id.as_str())?;
    Ok(revoked == 1)
}

/// Returns the enrolment tokens that somebody made and that still make devices; at most [`super::model::MOST_TOKENS`].
pub fn made_by(ctx: &mut OperationContext<'_>, maker: &str) -> Result<Vec<EnrolmentTokenId>> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.query(&MADE_BY, params![org, maker, now], |row| {
        Ok(EnrolmentTokenId::from_store(row.get(0)?))
    })
}

/// Returns how many devices are not retired that enrolled by a token of one use which somebody made, at most as many as are asked for.
pub fn living_of(ctx: &mut OperationContext<'_>, maker: &str, most: usize) -> Result<usize> {
    let (org, most) = (ctx.org(), i64::try_from(most).unwrap_or(i64::MAX));
    let living = ctx.query_opt(&LIVING_OF, params![org, maker, most], |row| row.get::<i64>(0))?;
    Ok(usize::try_from(living.unwrap_or(0)).unwrap_or(usize::MAX))
}

/// Returns how many enrolment tokens of one use somebody made since an instant, those that were used or ended too.
pub fn made_since(ctx: &mut OperationContext<'_>, maker: &str, since: Timestamp) -> Result<i64> {
    let org = ctx.org();
    let made = ctx.query_opt(&MADE_LATELY, params![org, maker, since], |row| row.get(0))?;
    Ok(made.unwrap_or(0))
}

/// Revokes the enrolment tokens that somebody made and that still make devices, and returns their ids.
pub fn revoke_made_by(ctx: &mut OperationContext<'_>, maker: &str) -> Result<Vec<EnrolmentTokenId>> {
    let made = made_by(ctx, maker)?;
    if made.is_empty() {
        return Ok(made);
    }
    let (org, now) = (ctx.org(), ctx.now());
    let params: &[Param<'_>] = params![org, maker, now, "maker_ended", false];
    ctx.execute(&REVOKE_MADE_BY, params)?;
    for id in &made {
        ctx.erase_replay(id.as_str())?;
    }
    // Who enrols by one of them in the same batch was looked up before.
    ctx.invalidate_cached_credentials();
    Ok(made)
}

/// Returns the enrolment tokens that came by a credential and that still make devices: the token of an account, or a session.
pub fn of_origin(ctx: &mut OperationContext<'_>, credential: &str) -> Result<Vec<EnrolmentTokenId>> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.query(&OF_ORIGIN, params![org, credential, now], |row| {
        Ok(EnrolmentTokenId::from_store(row.get(0)?))
    })
}

/// Returns the enrolment tokens that came by sessions which ended at an instant for a reason, and that still make devices.
pub fn of_ended(
    ctx: &mut OperationContext<'_>,
    at: Timestamp,
    reason: &str,
) -> Result<Vec<EnrolmentTokenId>> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.query(&OF_ENDED, params![org, at, reason, now], |row| {
        Ok(EnrolmentTokenId::from_store(row.get(0)?))
    })
}

/// Revokes every enrolment token of the organization.
pub fn revoke_every(ctx: &mut OperationContext<'_>, reason: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&REVOKE_EVERY, params![org, now, reason, false])
}
