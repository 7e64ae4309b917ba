//! Sessions behind the kernel's port, beside the tokens of accounts and installs.

use super::opening::Opening;
use crate::areas::mcp_sessions;
use crate::areas::skill_registry::TokenCredentials;
use provost_kernel::credential::{Admission, Credential, McpClient, Sessions, Use, Verified, invalid_token};
use provost_kernel::db::{Row, Statement, Tx};
use provost_kernel::{Cx, Result};

/// Returns every credential of the server.
pub fn credentials() -> TokenCredentials {
    TokenCredentials::beside(&DelegatedSessions)
}

struct DelegatedSessions;

impl Sessions for DelegatedSessions {
    fn lookup(&self) -> &'static Statement {
        &mcp_sessions::LOOKUP
    }

    fn read(&self, row: &Row<'_>) -> Result<Credential> {
        mcp_sessions::credential(row)
    }

    fn open(&self, cx: &mut Cx<'_>, verified: &Verified) -> Result<()> {
        let opening = verified
            .opening
            .as_ref()
            .and_then(|any| any.downcast_ref::<Opening>());
        opening.ok_or_else(invalid_token)?.open(cx)
    }

    fn admit(&self, tx: &mut Tx<'_>, credential: &Credential, client: &McpClient) -> Result<Admission> {
        mcp_sessions::admit_at_mcp(tx, credential, client)
    }

    fn join(&self, cx: &mut Cx<'_>, credential: &Credential, client: &McpClient) -> Result<()> {
        mcp_sessions::open_at_mcp(cx, credential, client)
    }

    fn touch(&self, cx: &mut Cx<'_>, used: &Use) -> Result<()> {
        mcp_sessions::touch(cx, used)
    }
}
