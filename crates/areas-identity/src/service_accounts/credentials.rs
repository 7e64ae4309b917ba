//! The tokens of service accounts as a scheme of the kernel.

use super::model::{Status, TokenId};
use super::store::{self, TokenEnd};
use crate::service_accounts::fences;
use provost_areas_platform::settings;
use provost_kernel::auth::OrganizationId;
use provost_kernel::credential::{Credential, Reach, TokenScheme, Use};
use provost_kernel::db::{Row, Statement};
use provost_kernel::token::Form;
use provost_kernel::{OperationContext, Result, params};

/// What the tokens look like.
pub const FORM: Form = Form::new("prov_sat_");

/// The scheme of the tokens.
pub struct AccountTokens;

impl TokenScheme for AccountTokens {
    fn name(&self) -> &'static str {
        "service_account"
    }

    fn form(&self) -> Option<Form> {
        Some(FORM)
    }

    fn reach(&self) -> Reach {
        Reach::Principal
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&store::LOOKUP)
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        let self_rotated: bool = row.get(13)?;
        let successor_unused: Option<bool> = row.get(14)?;
        Ok(Credential {
            organization: OrganizationId::from_store(row.get(0)?),
            kind: "service_account",
            principal_id: row.get(1)?,
            display: row.get(2)?,
            role: Some(store::role(row, 3)?),
            account_scopes: store::scopes(row, 4)?,
            token_scopes: store::scopes(row, 5)?,
            enabled: row.str(6)? == Status::Active.as_str(),
            token_id: row.get(7)?,
            prefix: row.get(8)?,
            is_own: true,
            mac: row.get(9)?,
            pepper_id: row.get(10)?,
            issued_at: row.get(17)?,
            expires_at: row.get(11)?,
            revoked_at: row.get(12)?,
            self_rotated: self_rotated && successor_unused == Some(true),
            replay_pending: row.get(15)?,
            last_used_at: row.get(16)?,
            item: None,
            client: None,
            binding: provost_kernel::credential::Binding::Bearer,
        })
    }

    fn first_use(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        let org = ctx.org();
        ctx.queue(&store::FIRST_USE, params![org, token_id, false])
    }

    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
        let org = ctx.org();
        ctx.queue(
            &store::TOUCH,
            params![org, used.token_id.as_str(), used.at, used.source_ip.to_string()],
        )
    }

    fn reuse(&self) -> Option<&'static str> {
        Some("service_account.token.reuse_detected")
    }

    fn reused(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()> {
        let org = ctx.org();
        let account = ctx.query_opt(&store::ACCOUNT_OF, params![org, token_id], |row| {
            row.get::<String>(0)
        })?;
        ctx.emit(
            &fences::TOKEN_REUSE_DETECTED,
            &fences::TokenReuse {
                service_account_id: account.clone(),
                token_id: token_id.to_owned(),
                severity: "high",
            },
        );
        let Some(account) = account else { return Ok(()) };
        if !settings::load(ctx)?.tokens.revoke_family_on_reuse {
            return Ok(());
        }
        let id = super::model::ServiceAccountId::from_text(&account);
        let (account, mut tokens) = store::get(ctx, &id)?;
        // A presented stolen token must not be a way to lock everybody out.
        if store::keep_a_governor(ctx, &account).is_err() {
            return Ok(());
        }
        let now = ctx.now();
        for token in tokens.iter_mut().filter(|t| t.is_usable(now)) {
            store::revoke(
                ctx,
                token,
                &TokenEnd {
                    reason: "token_reuse",
                    successor: None,
                    by_itself: false,
                },
            )?;
            let token_id = TokenId::from_text(token.id.as_str());
            ctx.emit(&fences::TOKEN_REVOKED, &fences::OfToken::of(&id, &token_id));
        }
        Ok(())
    }
}
