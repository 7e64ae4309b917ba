//! The hourly round over the rows that decide rights.
//!
//! Keeps PF-3.

use super::{Finding, ends, page};
use crate::areas::restore::fences;
use provost_areas_platform::store;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Kernel, OperationContext, Result, keys};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many findings an event names; the log and `store check` name all.
const NAMED: usize = 20;

/// Between two slices: a round takes its time, and readers are there for others.
const PAUSE: Duration = Duration::from_millis(20);

/// What this process has told already.
#[derive(Default)]
struct ReportedFindings(Mutex<BTreeSet<Finding>>);

/// Verifies every row in slices, then the sum in one snapshot; names what disagrees and returns it.
///
/// Each finding is logged and counted each time. An event and an audit entry of their organization, or of the installation, name those that this process
/// has not told before. Nothing else changes: whoever can change rows from outside must not be able to stop the server by it.
///
/// Errors: those of the store.
pub async fn verify(kernel: &Arc<Kernel>) -> Result<Vec<Finding>> {
    // What a key that is yet to come would explain is no finding.
    let known = kernel.read_system(store::known).await?;
    let is_missing = |label: &str| label.starts_with("audit/") && !kernel.keys.has(label);
    if let Some((label, _)) = known.iter().find(|(label, _)| is_missing(label)) {
        return Err(keys::missing(label));
    }
    let mut found = Vec::new();
    for deciding in kernel.areas().rights() {
        let mut after = None;
        loop {
            let (shared, start) = (kernel.clone(), after);
            let page = kernel
                .read_system(move |tx| page(shared.areas(), tx, &shared.keys, deciding, start.as_deref()))
                .await?;
            found.extend(page.found);
            after = page.last;
            if after.is_none() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    let shared = kernel.clone();
    found.extend(
        kernel
            .read_system(move |tx| ends(shared.areas(), tx, &shared.keys))
            .await?,
    );
    found.sort();
    found.dedup();
    tell(kernel, &found).await?;
    Ok(found)
}

#[expect(clippy::cast_precision_loss, reason = "no store has 2^52 rows")]
async fn tell(kernel: &Arc<Kernel>, found: &[Finding]) -> Result<()> {
    metrics::gauge!("provost_rights_disagreeing").set(found.len() as f64);
    for finding in found {
        tracing::error!("{finding}");
    }
    let told = kernel.own(ReportedFindings::default);
    let new: Vec<Finding> = {
        let mut told = told.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|known| found.contains(known));
        found.iter().filter(|one| !told.contains(one)).cloned().collect()
    };
    if new.is_empty() {
        return Ok(());
    }
    let known = kernel.read_system(store::organizations).await?;
    let mut chains: BTreeMap<OrganizationId, Vec<&Finding>> = BTreeMap::new();
    for finding in &new {
        // A row may name an organization that was never there: that gets no chain by it.
        let own = known
            .iter()
            .find(|known| finding.organization.as_deref() == Some(known.as_str()));
        let chain = own.cloned().unwrap_or_else(OrganizationId::installation);
        chains.entry(chain).or_default().push(finding);
    }
    for (organization, findings) in chains {
        let data = fences::Disagreement {
            count: findings.len(),
            findings: findings.iter().take(NAMED).map(|one| of_event(one)).collect(),
        };
        let run = move |ctx: &mut OperationContext<'_>| {
            ctx.emit(&fences::DISAGREED, &data);
            Ok(())
        };
        kernel.system(organization, Some("rights.disagreed"), run).await?;
    }
    told.0.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
    Ok(())
}

fn of_event(finding: &Finding) -> fences::DisagreeingRow {
    let row = finding.organization.clone().zip(finding.row.clone());
    let (organization_id, row) = row.unzip();
    let (table, row) = row.unzip();
    fences::DisagreeingRow {
        fault: finding.fault.word(),
        message: finding.to_string(),
        organization_id,
        table,
        row,
    }
}
