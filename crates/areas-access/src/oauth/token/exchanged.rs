//! One subject token: what was given for it, and when nothing is any more.
//!
//! INVARIANT OC-12: a token whose session has ended is exchanged for nothing, also when that session is forgotten.
//! INVARIANT OC-13: all exchanges of one subject token by one client belong to one session, whose end ends them all.

use super::super::foreign::{ForeignSession, Id, Keys, hexadecimal};
use super::super::store;
use super::super::verifier::{LEEWAY_SECS, own_grant};
use super::assertion::no;
use super::issue::{SessionStart, begin_named};
use crate::mcp_sessions::{self, SessionActor};
use provost_kernel::{OperationContext, Result as Stored, Timestamp};
use provost_oauth::TokenError;
use provost_oauth::subject_token::Subject;

/// LIMIT: how often a subject token is exchanged in an organization. A lost answer is asked for again, and a client that
/// wants one token for each task has its own.
pub const MAX_EXCHANGES: i64 = 10;

/// A subject token that a client brings.
pub struct Exchange {
    /// The token's own session, if it can have one.
    session: Option<Keys>,
    /// What makes the token the one.
    digest: String,
    /// The end of the token.
    expires_at: Timestamp,
}

impl Exchange {
    /// Returns the one of a verified token of `text`.
    pub fn of(subject: &Subject, text: &str, organization: &str) -> Self {
        // An identity token of one audience need not name the client again.
        let client = subject
            .client_id
            .as_deref()
            .or(match subject.audiences.as_slice() {
                [only] => Some(only.as_str()),
                _ => None,
            });
        let id = match (subject.session.as_deref(), subject.id.as_deref()) {
            (Some(session), _) => Some(Id::Session(session)),
            (None, Some(token)) => Some(Id::Token(token)),
            (None, None) => None,
        };
        let session = client.zip(id).map(|(client, id)| {
            let named = ForeignSession {
                organization,
                issuer: &subject.issuer,
                subject: &subject.subject,
                client,
                id,
            };
            named.keys()
        });
        // Without an id the token is what was signed: a signature can have more than one form.
        let signed = text.rsplit_once('.').map_or(text, |(signed, _)| signed);
        let digest = match subject.id.as_deref() {
            Some(id) => hexadecimal(&["id", organization, &subject.issuer, id]),
            None => hexadecimal(&["token", organization, &subject.issuer, signed]),
        };
        let end = subject.expires_at.saturating_add(LEEWAY_SECS);
        Self {
            session,
            digest,
            expires_at: Timestamp::from_ms(end.saturating_mul(1000)),
        }
    }

    /// Refuses a token whose session ended, or that was exchanged too often.
    ///
    /// INVARIANT OC-12: a token whose session has ended is exchanged for nothing, also when that session is forgotten.
    pub fn admit(&self, ctx: &mut OperationContext<'_>) -> Stored<Result<(), TokenError>> {
        for key in self.session.iter().flat_map(|keys| [&keys.own, &keys.former]) {
            if mcp_sessions::has_ended_under(ctx, key)? {
                return Ok(Err(no("the session of the subject token has ended")));
            }
        }
        if store::exchanges(ctx, self.digest.as_bytes())? >= MAX_EXCHANGES {
            let sentence = "the subject token was exchanged 10 times; ask its issuer for another";
            return Ok(Err(no(sentence)));
        }
        Ok(Ok(()))
    }

    /// Returns by what the tokens name the one session of all exchanges of this token by a client: begun now, or before.
    ///
    /// INVARIANT OC-13: all exchanges of one subject token by one client belong to one session, whose end ends them all.
    pub fn begin(
        &self,
        ctx: &mut OperationContext<'_>,
        new: SessionStart,
    ) -> Stored<Result<String, TokenError>> {
        let name = format!("exchange-{}", hexadecimal(&[&self.digest, &new.client_id]));
        let known = mcp_sessions::standing(ctx, &own_grant(&name))?;
        let id = match known {
            None => begin_named(ctx, &name, self.expires_at, new)?,
            Some((_, false)) => {
                return Ok(Err(no("the session of this token's exchanges has ended")));
            }
            Some((session, true)) if !is_of(&new.actor, &session) => {
                return Ok(Err(no("this token was exchanged for another actor")));
            }
            Some((session, true)) => {
                ctx.target(&mcp_sessions::fences::SESSION, session.id.as_str());
                mcp_sessions::widen(ctx, &session.id, new.scopes)?;
                session.id
            }
        };
        if let Some(keys) = &self.session {
            let is_former = mcp_sessions::standing(ctx, &keys.own)?.is_none()
                && mcp_sessions::standing(ctx, &keys.former)?.is_some();
            let parent = if is_former { &keys.former } else { &keys.own };
            mcp_sessions::descend(ctx, &id, parent)?;
        }
        store::note_exchange(ctx, self.digest.as_bytes(), self.expires_at)?;
        Ok(Ok(name))
    }
}

fn is_of(actor: &SessionActor, session: &mcp_sessions::Session) -> bool {
    let is_same_agent = !matches!(actor, SessionActor::Agent { .. })
        || session.actor_display.as_deref() == Some(actor.display());
    session.actor_type == actor.word()
        && session.console_user_id.as_deref() == actor.console_user()
        && is_same_agent
}
