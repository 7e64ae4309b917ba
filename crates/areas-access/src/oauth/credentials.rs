//! Delegated tokens as a scheme of the kernel: they act by sessions.

use super::first_login::FirstLogin;
use crate::mcp_sessions;
use provost_kernel::credential::{
    Admission, Credential, McpClient, Reach, Sessions, TokenScheme, Use, VerifiedToken, invalid_token,
};
use provost_kernel::db::{Row, Statement, Tx};
use provost_kernel::error::Error;
use provost_kernel::token::Form;
use provost_kernel::{OperationContext, Result};

/// The scheme of delegated tokens.
pub struct DelegatedTokens;

impl TokenScheme for DelegatedTokens {
    fn name(&self) -> &'static str {
        "session"
    }

    fn form(&self) -> Option<Form> {
        None
    }

    fn reach(&self) -> Reach {
        Reach::Session
    }

    fn lookup(&self) -> Option<&'static Statement> {
        Some(&mcp_sessions::LOOKUP)
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        mcp_sessions::credential(row)
    }

    fn first_use(&self, _cx: &mut OperationContext<'_>, _token_id: &str) -> Result<()> {
        Err(Error::internal(
            "no answer that issued a delegated token is replayed",
        ))
    }

    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()> {
        mcp_sessions::touch(ctx, used)
    }
}

impl Sessions for DelegatedTokens {
    fn began(&self) -> &'static str {
        "mcp.session.issued"
    }

    fn open(&self, ctx: &mut OperationContext<'_>, verified: &VerifiedToken) -> Result<()> {
        let opening = verified
            .opening
            .as_ref()
            .and_then(|any| any.downcast_ref::<FirstLogin>());
        opening.ok_or_else(invalid_token)?.open(ctx)
    }

    fn admit(&self, tx: &mut Tx<'_>, credential: &Credential, client: &McpClient) -> Result<Admission> {
        mcp_sessions::admit_at_mcp(tx, credential, client)
    }

    fn join(
        &self,
        ctx: &mut OperationContext<'_>,
        credential: &Credential,
        client: &McpClient,
    ) -> Result<()> {
        mcp_sessions::open_at_mcp(ctx, credential, client)
    }
}
