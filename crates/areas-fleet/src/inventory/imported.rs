//! What other scanners found, beside what devices say: who brought it, and since when.
//!
//! Keeps IN-12.

use super::evidence::{Evidence, EvidenceView};
use super::known;
use super::model::ServerId;
use provost_kernel::error::Result;
use provost_kernel::{OperationContext, params, statements};
use std::collections::BTreeMap;

provost_kernel::word! {
    /// Another scanner.
    pub enum Source {
        /// Snyk Agent Scan, `inspect --json`.
        SnykAgentScan = "snyk_agent_scan",
        /// Something else.
        Other = "other",
    }
}

impl Source {
    /// Returns what stands where the device stands that found a server first.
    pub const fn finder(self) -> &'static str {
        match self {
            Self::SnykAgentScan => "import:snyk_agent_scan",
            Self::Other => "import:other",
        }
    }
}

statements! {
    /// Keeps that a scanner found a server.
    KEEP = "INSERT INTO inventory_imported (organization_id, server_id, source, name, imported_by, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (organization_id, server_id, source) DO UPDATE SET name = excluded.name, imported_by = excluded.imported_by, last_at = excluded.last_at";
    /// By which scanners fifty servers are known.
    OF_SERVERS = "SELECT server_id, source, first_at, last_at FROM inventory_imported WHERE organization_id = ?1 AND server_id IN (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51) ORDER BY organization_id, server_id, source";
}

/// Keeps that a scanner found a server, under a name that is its own.
pub fn keep(ctx: &mut OperationContext<'_>, source: Source, server: &ServerId, name: &str) -> Result<()> {
    let (org, now, by) = (ctx.org(), ctx.now(), ctx.actor().id.clone());
    ctx.queue(
        &KEEP,
        params![org, server.as_str(), source.as_str(), name, by.as_str(), now],
    )
}

/// Adds by which scanners servers are known.
pub fn add_evidence(
    ctx: &mut OperationContext<'_>,
    servers: &[&str],
    found: &mut BTreeMap<ServerId, Vec<EvidenceView>>,
) -> Result<()> {
    let org = ctx.org();
    for chunk in servers.chunks(known::KEYS) {
        let rows = ctx.query(&OF_SERVERS, &known::of_keys(&[org], chunk), |row| {
            let view = EvidenceView {
                evidence: Evidence::Import,
                source: Some(Source::from_store(row.str(1)?)?),
                certainty: None,
                events: None,
                first_seen_at: row.get(2)?,
                last_seen_at: row.get(3)?,
            };
            Ok((ServerId::from_store(row.get(0)?), view))
        })?;
        for (id, view) in rows {
            found.entry(id).or_default().push(view);
        }
    }
    Ok(())
}
