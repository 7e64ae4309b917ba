//! The first sight of another issuer's token: who it is, and the session that it gets (D7.1).

use super::grants::{VerifiedLogin, user_of};
use super::issuers::Trusted;
use crate::areas::mcp_sessions::{self, NewSession, SessionActor};
use provost_kernel::auth::ScopeSet;
use provost_kernel::credential::invalid_token;
use provost_kernel::{Cx, Result, Timestamp};
use provost_oauth::Claims;

/// How long the session of an issuer's session lives: as long as ours do. Its tokens end before. Units: seconds.
const SESSION_SECS: i64 = 90 * 86_400;

/// What the session of a token is made of. The kernel hands it back when the session is not there.
pub struct Opening {
    grant: String,
    issuer: String,
    subject: String,
    login: Option<VerifiedLogin>,
    client_id: String,
    actor: Option<String>,
    scopes: ScopeSet,
    /// The end of the token, where it is the whole session.
    expires_at: Option<Timestamp>,
}

impl Opening {
    /// Returns what a verified token says about its session.
    pub fn of(
        grant: &str,
        claims: &Claims,
        email: Option<&str>,
        issuer: &Trusted,
        scopes: ScopeSet,
        expires_at: Timestamp,
    ) -> Self {
        Self {
            grant: grant.to_owned(),
            issuer: claims.issuer.clone(),
            subject: claims.subject.clone(),
            login: login(issuer, email),
            client_id: claims.client_id.chars().take(128).collect(),
            actor: claims.actor.clone(),
            scopes,
            expires_at: claims.session.is_none().then_some(expires_at),
        }
    }

    /// Opens the session.
    ///
    /// Errors: `Unauthenticated` when the organization knows no such active user.
    pub fn open(&self, cx: &mut Cx<'_>) -> Result<()> {
        let user = user_of(cx, &self.issuer, &self.subject, self.login.as_ref())?;
        let user = user.filter(|user| user.is_active).ok_or_else(invalid_token)?;
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
        // A session of the issuer has many tokens, and a later one may be asked for with more scopes, or its user be given
        // a role: each token says its own scopes, and the role is read at every request (D3.3).
        let scopes = if self.expires_at.is_some() {
            self.scopes
        } else {
            ScopeSet::all()
        };
        let end = cx.now().plus_secs(SESSION_SECS);
        cx.action("oauth.session.opened");
        mcp_sessions::open(
            cx,
            NewSession {
                grant_key: self.grant.clone(),
                actor,
                client_id: Some(self.client_id.clone()),
                client_display: None,
                scopes,
                token_id: None,
                expires_at: self.expires_at.unwrap_or(end),
            },
        )
        .map(drop)
    }
}

/// Returns the login name that an issuer vouches for (OC-7).
pub fn login(issuer: &Trusted, email: Option<&str>) -> Option<VerifiedLogin> {
    Some(VerifiedLogin {
        directory_id: issuer.declared.authoritative_for.clone()?,
        login_name: email?.to_owned(),
    })
}
