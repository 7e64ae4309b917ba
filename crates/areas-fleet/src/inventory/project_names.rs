//! What folders of projects are called is forgotten where the settings hide it: shown it is not from the same moment on.
//!
//! A round goes over the organizations that have such names, which it finds by one look at an index each; a unit forgets some hundreds, and
//! looks at the settings again before it does. What is kept of a section is not all that its device sent then: its digest goes, so that
//! the device is asked for the whole where names are shown once more.

use provost_areas_platform::settings;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Error, Result};
use provost_kernel::{Kernel, OperationContext, params, statements};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// LIMIT: observations that one unit writes. Ours: as many as a round of the inventory removes; these stand in one index.
const AT_ONCE: i64 = 500;
/// LIMIT: units of an organization in one round; the next one goes on.
const ROUNDS: usize = 100;

// No name is empty: by a range an index of names alone is the best one, and no walk over everything that was ever found is.
statements! {
    /// Who has names of projects.
    ORGANIZATIONS = unscoped("a round looks at every organization") "SELECT g.organization_id FROM organizations g WHERE EXISTS (SELECT 1 FROM inventory_observations o WHERE o.organization_id = g.organization_id AND o.project_name > '') ORDER BY g.organization_id";
    /// Has sections asked for again of which names are forgotten next.
    ASK_AGAIN = "UPDATE inventory_sections SET digest = '' WHERE organization_id = ?1 AND (device_id, client, account) IN (SELECT o.device_id, o.client, o.account FROM inventory_observations o WHERE o.organization_id = ?1 AND o.project_name > '' ORDER BY o.project_name, o.id LIMIT ?2)";
    /// Forgets what folders of projects are called.
    FORGET = "UPDATE inventory_observations SET project_name = NULL WHERE organization_id = ?1 AND id IN (SELECT o.id FROM inventory_observations o WHERE o.organization_id = ?1 AND o.project_name > '' ORDER BY o.project_name, o.id LIMIT ?2)";
}

/// Forgets what folders of projects are called, in each organization whose settings hide it. A reconciler.
///
/// Keeps PV-2.
///
/// Errors: the first that an organization has, after all others were looked at.
pub async fn forget_hidden(kernel: &Arc<Kernel>) -> Result<()> {
    let organizations = kernel.read_system(|tx| {
        tx.query(&ORGANIZATIONS, params![], |row| {
            Ok(OrganizationId::from_store(row.get(0)?))
        })
    });
    let mut outcome = Ok(());
    for organization in organizations.await? {
        let forgotten = forget_of(kernel, &organization).await;
        outcome = outcome.and(forgotten);
    }
    outcome
}

async fn forget_of(kernel: &Arc<Kernel>, organization: &OrganizationId) -> Result<()> {
    for _ in 0..ROUNDS {
        let is_done = Arc::new(AtomicBool::new(true));
        let said = is_done.clone();
        let run = move |ctx: &mut OperationContext<'_>| {
            said.store(forget_some(ctx)?, Ordering::Relaxed);
            Ok(())
        };
        kernel.system(organization.clone(), None, run).await?;
        if is_done.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

/// Forgets some, and says whether that is done.
///
/// Errors: those of the store.
fn forget_some(ctx: &mut OperationContext<'_>) -> Result<bool> {
    if settings::load(ctx)?.fleet.privacy.shows_projects() {
        return Ok(true);
    }
    let org = ctx.org();
    ctx.execute(&ASK_AGAIN, params![org, AT_ONCE])?;
    let forgotten = ctx.execute(&FORGET, params![org, AT_ONCE])?;
    let forgotten = i64::try_from(forgotten).map_err(Error::internal)?;
    Ok(forgotten < AT_ONCE)
}
