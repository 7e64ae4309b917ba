//! Reads one service account.

use super::model::{AccountPath, OneAccount, view};
use super::store;
use crate::service_accounts::fences;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetServiceAccount;

impl Operation for GetServiceAccount {
    const META: Meta = Meta::read(
        "getHeadlessServiceAccount",
        "/service-accounts/{serviceAccountId}",
        "service_accounts",
    )
    .access("service_accounts:read", &[Admin, Auditor])
    .command("service-accounts", "get")
    .sensitive()
    .says(
        "Read a service account",
        "Token metadata only; the value of a token is never readable.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneAccount;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAccount> {
        let id = &input.path.service_account_id;
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (account, tokens) = store::get(ctx, id)?;
        Ok(OneAccount {
            service_account: view(account, tokens, ctx.now()),
            warnings: Vec::new(),
        })
    }
}
