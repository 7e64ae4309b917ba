//! Gateway tokens as a scheme of the kernel (D10.6).

use crate::skill_registry::fences;
use provost_areas_identity::directory::{self, model::UserId};
use provost_areas_identity::service_accounts;
use provost_kernel::auth::{OrganizationId, Role, ScopeSet};
use provost_kernel::credential::{Credential, Reach, TokenScheme, Use};
use provost_kernel::db::{Row, Statement, Tx};
use provost_kernel::error::{Error, Result};
use provost_kernel::id::TypedId;
use provost_kernel::token::Form;
use provost_kernel::{OperationContext, params, statements};

statements! {
    /// Finds a gateway token by its public lookup id, and when the session ended by which it came.
    LOOKUP = unscoped("the lookup id is unique everywhere and says whose the token is") concat!("SELECT t.organization_id, t.id, t.token_prefix, t.mac, t.pepper_id, t.principal_id, t.item_id, t.expires_at, t.revoked_at, t.replay_pending, t.last_used_at, CASE s.state WHEN 0 THEN ", provost_areas_access::cut!("s"), " WHEN 1 THEN s.ended_at END FROM gateway_tokens t LEFT JOIN mcp_sessions s ON s.organization_id = t.organization_id AND s.id = t.came_by WHERE t.lookup_id = ?1");
    /// Ends the replay of a token.
    FIRST_USE = "UPDATE gateway_tokens SET replay_pending = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Notes a use.
    TOUCH = "UPDATE gateway_tokens SET last_used_at = ?3, last_used_ip = ?4 WHERE organization_id = ?1 AND id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)";
    /// Whose token it is, and for what.
    OWNER = "SELECT principal_id, item_id FROM gateway_tokens WHERE organization_id = ?1 AND id = ?2";
}

/// What the tokens look like.
pub const FORM: Form = Form::new("prov_gwt_");

/// The scheme of the tokens of installs.
pub struct GatewayTokens;

impl TokenScheme for GatewayTokens {
    fn name(&self) -> &'static str {
        "gateway"
    }

    fn form(&self) -> Option<Form> {
        Some(FORM)
    }

    fn reach(&self) -> Reach {
        Reach::Item
    }

    /// Whose a token is says which of two tables its principal is in: one statement does not find both.
    fn lookup(&self) -> Option<&'static Statement> {
        None
    }

    fn read(&self, _row: &Row<'_>) -> Result<Credential> {
        Err(Error::internal("a gateway token is not read from one row"))
    }

    fn find(&self, tx: &mut Tx<'_>, lookup_id: &str) -> Result<Option<Credential>> {
        let found = tx.query_opt(&LOOKUP, params![lookup_id], read)?;
        let Some(token) = found else { return Ok(None) };
        // INVARIANT SK-7: the principal is read in the snapshot that reads the token.
        let Some(principal) = principal(tx, token.organization.as_str(), &token.principal_id)? else {
            return Ok(None);
        };
        Ok(Some(Credential {
            organization: token.organization,
            kind: principal.kind,
            principal_id: token.principal_id,
            display: principal.display,
            role: principal.role,
            account_scopes: principal.scopes,
            token_scopes: None,
            enabled: principal.enabled,
            token_id: token.id,
            prefix: token.prefix,
            is_own: false,
            mac: token.mac,
            pepper_id: token.pepper_id,
            issued_at: None,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            self_rotated: false,
            replay_pending: token.replay_pending,
            last_used_at: token.last_used_at,
            item: Some(token.item_id),
            client: None,
            binding: provost_kernel::credential::Binding::Bearer,
        }))
    }

    fn first_use(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        let org = ctx.org();
        ctx.queue(&FIRST_USE, params![org, token_id, false])
    }

    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
        let org = ctx.org();
        ctx.queue(
            &TOUCH,
            params![org, used.token_id.as_str(), used.at, used.source_ip.to_string()],
        )
    }

    fn reuse(&self) -> Option<&'static str> {
        Some("gateway_token.reuse_detected")
    }

    fn reused(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        let org = ctx.org();
        let owner = ctx.query_opt(&OWNER, params![org, token_id], |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?))
        })?;
        let (principal, item) = owner.unzip();
        ctx.emit(
            &fences::GATEWAY_TOKEN_REUSE_DETECTED,
            &fences::GatewayTokenReuse {
                token_id: token_id.to_owned(),
                principal_id: principal,
                item_id: item,
                severity: "high",
            },
        );
        Ok(())
    }
}

/// For whom a gateway token acts.
struct Principal {
    kind: &'static str,
    display: String,
    role: Option<Role>,
    scopes: Option<ScopeSet>,
    enabled: bool,
}

/// Says whether a role can hold what an install needs: a token of an item lets its holder in whatever the scopes, so that it must
/// serve nobody who has come to a role without installs.
fn may_install(role: Role) -> bool {
    role.grants().has("registry:install")
}

/// Returns what the person or the account that installed a skill is now; `None` for one that is gone.
fn principal(tx: &mut Tx<'_>, organization: &str, id: &str) -> Result<Option<Principal>> {
    if provost_kernel::id::parse(UserId::PREFIX, id).is_some() {
        let user = directory::principal(tx, organization, id)?;
        return Ok(user.map(|user| Principal {
            kind: "console_user",
            display: user.display,
            role: user.role.filter(|role| may_install(*role)),
            scopes: None,
            enabled: user.enabled,
        }));
    }
    let account = service_accounts::principal(tx, organization, id)?;
    Ok(account.map(|account| Principal {
        kind: "service_account",
        display: account.display,
        role: Some(account.role).filter(|role| may_install(*role)),
        scopes: account.scopes,
        enabled: account.enabled,
    }))
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
        // INVARIANT SK-8: also while a job is still to write the end down.
        revoked_at: row.get::<Option<_>>(8)?.or(row.get(11)?),
        replay_pending: row.get(9)?,
        last_used_at: row.get(10)?,
    })
}
