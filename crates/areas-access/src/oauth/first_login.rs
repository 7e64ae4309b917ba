//! The first sight of another issuer's token: who it is, and the session that it gets (D7.1).

use super::foreign::Keys;
use super::grants::{VerifiedLogin, recognize};
use super::issuers::IssuerTrust;
use crate::mcp_sessions::{self, NewSession, SessionActor};
use provost_kernel::auth::ScopeSet;
use provost_kernel::credential::invalid_token;
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_oauth::{Claims, Refusal};
use std::sync::Arc;

/// What the session of a token is made of. The kernel hands it back when the session is not there.
pub struct FirstLogin {
    trust: Arc<IssuerTrust>,
    keys: Keys,
    issuer: String,
    subject: String,
    login: Option<VerifiedLogin>,
    client_id: String,
    actor: Option<String>,
    scopes: ScopeSet,
    /// The end of the token, where it is the whole session.
    expires_at: Option<Timestamp>,
}

impl FirstLogin {
    /// Returns what a verified token says about its session.
    pub fn of(
        keys: Keys,
        claims: &Claims,
        email: Option<&str>,
        issuer: &Arc<IssuerTrust>,
        scopes: ScopeSet,
        expires_at: Timestamp,
    ) -> Self {
        Self {
            trust: issuer.clone(),
            keys,
            issuer: claims.issuer.clone(),
            subject: claims.subject.clone(),
            login: login(issuer, email),
            client_id: claims.client_id.clone(),
            actor: claims.actor.clone(),
            scopes,
            expires_at: claims.session.is_none().then_some(expires_at),
        }
    }

    /// Opens the session.
    ///
    /// Errors: `Unauthenticated` when the organization knows no such active user.
    pub fn open(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        let user = recognize(ctx, &self.issuer, &self.subject, self.login.as_ref())?;
        let user = user.user().filter(|user| user.is_active).ok_or_else(|| {
            let now = ctx.now().as_ms().div_euclid(1000);
            self.trust.note_refusal(Refusal::Mismatch("sub"), now);
            invalid_token()
        })?;
        let actor = match &self.actor {
            None => SessionActor::ConsoleUser {
                id: user.id,
                display: user.display,
            },
            Some(actor) => SessionActor::Agent {
                console_user: Some(user.id),
                service_account: None,
                display: actor.clone(),
            },
        };
        ctx.action("oauth.session.opened");
        let new = NewSession {
            grant_key: self.keys.own.clone(),
            actor,
            client_id: Some(self.client_id.clone()),
            client_display: None,
            scopes: self.scopes,
            token_id: None,
            // A session of the issuer has many tokens: it lives while it is used, as ours do.
            expires_at: self
                .expires_at
                .unwrap_or_else(|| ctx.now().plus_secs(mcp_sessions::IDLE_SECS)),
        };
        mcp_sessions::take_over(ctx, &self.keys.former, &new)?;
        let is_lasting = self.expires_at.is_none();
        let id = mcp_sessions::open(ctx, new)?;
        if is_lasting {
            // A later token may be asked for with more scopes: each says its own, and the session lists all of them.
            mcp_sessions::widen(ctx, &id, self.scopes)?;
        }
        Ok(())
    }
}

/// Returns the login name that an issuer vouches for (OC-7).
pub fn login(issuer: &IssuerTrust, email: Option<&str>) -> Option<VerifiedLogin> {
    Some(VerifiedLogin {
        directory_id: issuer.declared.authoritative_for.clone()?,
        login_name: email?.to_owned(),
    })
}
