//! Gateway tokens beside service-account tokens as the kernel's credentials (D10.6).

use super::model::GatewayTokenId;
use crate::areas::service_accounts::{self, ServiceAccountCredentials};
use provost_kernel::auth::OrganizationId;
use provost_kernel::credential::{Credential, Credentials, Sessions, Use};
use provost_kernel::db::{Row, Statement, Tx};
use provost_kernel::error::Result;
use provost_kernel::id::TypedId;
use provost_kernel::{Cx, params, statements};
use serde_json::json;

statements! {
    /// Finds a gateway token by its public lookup id.
    LOOKUP = unscoped("the lookup id is unique everywhere and says whose the token is") "SELECT organization_id, id, token_prefix, mac, pepper_id, principal_id, item_id, expires_at, revoked_at, replay_pending, last_used_at FROM gateway_tokens WHERE lookup_id = ?1";
    /// Ends the replay of a token.
    FIRST_USE = "UPDATE gateway_tokens SET replay_pending = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Notes a use.
    TOUCH = "UPDATE gateway_tokens SET last_used_at = ?3, last_used_ip = ?4 WHERE organization_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)";
    /// Whose token it is, and for what.
    OWNER = "SELECT principal_id, item_id FROM gateway_tokens WHERE organization_id = ?1 AND id = ?2";
}

/// The port [`Credentials`] over the tokens of service accounts and of installs, and the sessions beside them.
pub struct TokenCredentials {
    sessions: &'static dyn Sessions,
}

impl TokenCredentials {
    /// Returns the tokens, beside these sessions.
    pub fn beside(sessions: &'static dyn Sessions) -> Self {
        Self { sessions }
    }

    fn is_gateway(token_id: &str) -> bool {
        provost_kernel::id::parse(GatewayTokenId::PREFIX, token_id).is_some()
    }
}

impl Credentials for TokenCredentials {
    fn lookup(&self) -> &'static Statement {
        ServiceAccountCredentials.lookup()
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        ServiceAccountCredentials.read(row)
    }

    fn gateway(&self, tx: &mut Tx<'_>, lookup_id: &str) -> Result<Option<Credential>> {
        let found = tx.query_opt(&LOOKUP, params![lookup_id], read)?;
        let Some(token) = found else { return Ok(None) };
        // INVARIANT SK-7: the principal is read in the snapshot that reads the token.
        let principal = service_accounts::principal(tx, token.organization.as_str(), &token.principal_id)?;
        let Some(principal) = principal else {
            return Ok(None);
        };
        Ok(Some(Credential {
            organization: token.organization,
            kind: "service_account",
            principal_id: token.principal_id,
            display: principal.display,
            role: Some(principal.role),
            account_scopes: principal.scopes,
            token_scopes: None,
            enabled: principal.enabled,
            token_id: token.id,
            prefix: token.prefix,
            mac: token.mac,
            pepper_id: token.pepper_id,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            self_rotated: false,
            replay_pending: token.replay_pending,
            last_used_at: token.last_used_at,
            item: Some(token.item_id),
        }))
    }

    fn first_use(&self, cx: &mut Cx<'_>, token_id: &str) -> Result<()> {
        if !Self::is_gateway(token_id) {
            return ServiceAccountCredentials.first_use(cx, token_id);
        }
        let org = cx.org();
        cx.queue(&FIRST_USE, params![org, token_id, false])
    }

    fn touch(&self, cx: &mut Cx<'_>, used: &Use) -> Result<()> {
        if !Self::is_gateway(&used.token_id) {
            return ServiceAccountCredentials.touch(cx, used);
        }
        let org = cx.org();
        cx.queue(
            &TOUCH,
            params![org, used.token_id.as_str(), used.at, used.source_ip.to_string()],
        )
    }

    fn reused(&self, cx: &mut Cx<'_>, token_id: &str) -> Result<()> {
        if !Self::is_gateway(token_id) {
            return ServiceAccountCredentials.reused(cx, token_id);
        }
        let org = cx.org();
        let owner = cx.query_opt(&OWNER, params![org, token_id], |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?))
        })?;
        let (principal, item) = owner.unzip();
        cx.emit(
            "gateway_token.reuse_detected",
            json!({ "tokenId": token_id, "principalId": principal, "itemId": item, "severity": "high" }),
        );
        Ok(())
    }

    fn sessions(&self) -> Option<&dyn Sessions> {
        Some(self.sessions)
    }
}

struct Token {
    organization: OrganizationId,
    id: String,
    prefix: String,
    mac: Vec<u8>,
    pepper_id: String,
    principal_id: String,
    item_id: String,
    expires_at: provost_kernel::Timestamp,
    revoked_at: Option<provost_kernel::Timestamp>,
    replay_pending: bool,
    last_used_at: Option<provost_kernel::Timestamp>,
}

fn read(row: &Row<'_>) -> Result<Token> {
    Ok(Token {
        organization: OrganizationId::from_store(row.get(0)?),
        id: row.get(1)?,
        prefix: row.get(2)?,
        mac: row.get(3)?,
        pepper_id: row.get(4)?,
        principal_id: row.get(5)?,
        item_id: row.get(6)?,
        expires_at: row.get(7)?,
        revoked_at: row.get(8)?,
        replay_pending: row.get(9)?,
        last_used_at: row.get(10)?,
    })
}
