//! What a readable reference of a policy names in the inventory (client contract §6, ADR 0113).
//!
//! A name that a device reports resolves nothing: it would let a laptop say what a reference means, were it by being the first that reports
//! a server which somebody approves. Servers are found by their id and their key, which no device chooses for another server. Products are
//! those of a list in the program.
//!
//! Keeps IN-10.

use super::model::ServerId;
use provost_areas_identity::subjects::{AskedKind, ReferenceAsked, ReferenceFound};
use provost_inventory::Client;
use provost_kernel::error::Result;
use provost_kernel::{OperationContext, params, statements};

statements! {
    /// The server of an id or a key.
    EXACT = "SELECT id, key FROM inventory_servers WHERE organization_id = ?1 AND (id = ?2 OR key = ?2) ORDER BY seq + 0";
}

/// Returns what is called so.
pub fn references(ctx: &mut OperationContext<'_>, asked: &ReferenceAsked) -> Result<Vec<ReferenceFound>> {
    match asked.kind {
        AskedKind::McpServer => servers(ctx, &asked.selector),
        AskedKind::AiProduct => Ok(products(&asked.selector)),
        // A scan sees no tools, and nothing else names agents and integrations.
        AskedKind::McpTool | AskedKind::Agent | AskedKind::Integration => Ok(Vec::new()),
    }
}

fn servers(ctx: &mut OperationContext<'_>, selector: &str) -> Result<Vec<ReferenceFound>> {
    // PostgreSQL takes no NUL in a text, and no name has one.
    if selector.contains('\0') {
        return Ok(Vec::new());
    }
    let org = ctx.org();
    let found = |row: &provost_kernel::db::Row<'_>| {
        Ok(ReferenceFound {
            id: ServerId::from_store(row.get(0)?).as_str().to_owned(),
            qualifier: row.get(1)?,
        })
    };
    ctx.query(&EXACT, params![org, selector], found)
}

fn products(selector: &str) -> Vec<ReferenceFound> {
    let products = Client::ALL.into_iter().filter_map(Client::product);
    let called = products.filter(|(key, name)| {
        [key, name]
            .iter()
            .any(|called| called.eq_ignore_ascii_case(selector))
    });
    let found = called.map(|(key, _)| ReferenceFound {
        id: key.to_owned(),
        qualifier: None,
    });
    found.collect()
}
