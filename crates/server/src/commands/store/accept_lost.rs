//! `provost store accept --lost`: goes on with a store that went back, and takes away again what it forgot (D12.9).
//!
//! ```text
//! show · ask → a line with the next epoch → for each organization: a new epoch of its events, and what ends.jsonl names and
//! the store lacks is taken away again, in units of a hundred → the store is of the next epoch
//! ```
//!
//! The line comes first: from it on the store is of an epoch that was given up, and no server serves it until its own epoch
//! is the next one, which comes last. Whenever this is cut off, it is run again.
//!
//! INVARIANT EN-4: a store that went back is served again only after whatever `ends.jsonl` names and it lacks is away
//! again, or everybody of the organization is held back, where that file cannot say all of it.

use super::restore;
use crate::app::NewOrganization;
use crate::areas::restore as held;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store_flags::{StoreLocation, block_on, brief};
use crate::proofs::entries;
use provost_areas_access::oauth;
use provost_areas_platform::audit::{self, Event, Register, Remainder};
use provost_areas_platform::ends;
use provost_areas_platform::events;
use provost_areas_platform::identity::{self, Identity, State};
use provost_areas_platform::store;
use provost_kernel::area::Again;
use provost_kernel::auth::OrganizationId;
use provost_kernel::ends::{EndJournal, EndLine};
use provost_kernel::kernel::Settings;
use provost_kernel::{Kernel, OperationContext, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the entries are called.
const ACT: &str = "store.loss_accepted";
/// How much one unit takes away again.
const CHUNK: usize = 100;

/// Something that is to be taken away again.
#[derive(Clone)]
struct Item {
    what: String,
    how: String,
    ids: Vec<String>,
    said: String,
}

/// What is done with an organization.
enum Plan {
    /// What the file names is taken away again.
    TakeAgain(Vec<Item>),
    /// Everybody is held back, for this reason.
    HoldBack(String),
}

/// What is known before anything is done.
struct Outlook {
    known: Identity,
    register: Register,
    chains: Vec<Remainder>,
    lost: Vec<EndLine>,
    is_accepted: bool,
    organizations: Vec<OrganizationId>,
    whole: BTreeMap<String, Result<(), String>>,
}

/// Goes on with a store that went back.
///
/// Errors: a sentence for a store that is not served with these keys; without `--yes`, where nobody can be asked.
pub(super) fn lost(place: StoreLocation, yes: bool) -> Outcome {
    let kernel = place.start(Settings {
        // A unit that holds everybody back touches every token of an organization.
        unit_deadline: Duration::from_hours(1),
        ..brief()
    })?;
    block_on(async {
        let done = accept(&kernel, yes).await;
        kernel.stop().await;
        done
    })?
}

async fn accept(kernel: &Arc<Kernel>, yes: bool) -> Outcome {
    let outlook = look(kernel).await?;
    let is_evident = outlook.chains.iter().any(|chain| chain.is_behind)
        || !outlook.lost.is_empty()
        || outlook.register.epoch_of(&outlook.known.id) > Some(outlook.known.epoch);
    if !is_evident && outlook.is_accepted {
        return show::out("The loss is accepted already; start the server.\n");
    }
    let plans = plans(&outlook);
    tell(&outlook, &plans)?;
    if !is_evident {
        show::note("nothing beside the keys says that this store lost anything");
    }
    agree(yes)?;
    let epoch = outlook.register.highest_epoch().max(outlook.known.epoch) + 1;
    let line = Event::Accepted.line(&outlook.known.id, epoch, kernel.clock.now());
    kernel.keys.append_checkpoint_line(&line)?;
    let mut made = Vec::new();
    for organization in &outlook.organizations {
        match plans.get(organization.as_str()) {
            Some(Plan::HoldBack(_)) => made.push(hold_back(kernel, organization, epoch).await?),
            Some(Plan::TakeAgain(items)) => take_again(kernel, organization, epoch, items).await?,
            None => take_again(kernel, organization, epoch, &[]).await?,
        }
    }
    for (organization, plan) in &plans {
        let is_there = outlook
            .organizations
            .iter()
            .any(|one| one.as_str() == organization);
        if let (Plan::TakeAgain(items), false) = (plan, is_there) {
            for item in items {
                show::out(&format!(
                    "{organization}: {}: the organization is gone\n",
                    item.said
                ))?;
            }
        }
    }
    let (before, next) = (
        outlook.known.epoch,
        Identity {
            epoch,
            ..outlook.known
        },
    );
    let raise = move |ctx: &mut OperationContext<'_>| {
        ctx.target(&held::fences::STORE, epoch.to_string());
        ctx.change("/storeEpoch", before, epoch);
        next.set(ctx)
    };
    kernel
        .system(OrganizationId::installation(), Some(ACT), raise)
        .await?;
    show::out(&format!(
        "The store is taken as it is (epoch {epoch}), and the audit logs say so. Start the server.\n"
    ))?;
    tell_tokens(&made)
}

async fn look(kernel: &Arc<Kernel>) -> Result<Outlook, Failure> {
    let texts = kernel.keys.checkpoint_lines()?;
    let register = Register::of(&texts)?;
    let ends = kernel.keys.end_lines().map_err(|error| {
        Failure::new(format!(
            "ends.jsonl in the keys folder cannot be read: {error}; make it readable, or move it away, and everybody is held \
             back"
        ))
    })?;
    let journal = EndJournal::of(&ends);
    let (shared, lines, named) = (kernel.clone(), register.clone(), journal.lines.clone());
    let found = kernel
        .read_system(move |tx| {
            let Some(known) = identity::read(tx, &shared.keys)? else {
                return Ok(None);
            };
            let own = named.iter().filter(|line| line.store_id == known.id);
            let alive_at = own.map(|line| line.time).max();
            let chains = audit::remainders(tx, &shared.keys, &texts, &lines, &known, alive_at)?;
            let mut lost = Vec::new();
            for line in &named {
                if line.store_id != known.id || line.store_epoch < known.epoch {
                    continue;
                }
                // What an epoch behind the store's own took away is not in it, whatever its numbers are.
                if line.store_epoch > known.epoch || audit::is_lost(tx, line)? {
                    lost.push(line.clone());
                }
            }
            let installation = OrganizationId::installation();
            let is_accepted = audit::last_act(tx, installation.as_str())?.as_deref() == Some(ACT);
            let organizations = store::organizations(tx)?;
            Ok(Some((known, chains, lost, is_accepted, organizations)))
        })
        .await?;
    let Some((known, chains, lost, is_accepted, organizations)) = found else {
        return Err(Failure::new(
            "no server of this version has opened this store yet: start it, and accept what it lost if it is refused",
        ));
    };
    must_be_live(&known, &register)?;
    let whole = |chain: &Remainder| match journal.since {
        _ if !journal.damaged.is_empty() => Err(format!(
            "line {} of ends.jsonl says nothing that this version understands",
            journal.damaged[0]
        )),
        None => Err("ends.jsonl is not in the keys folder".to_owned()),
        Some(since) if since > chain.lost_after => Err(format!(
            "ends.jsonl is whole from {since} on, and something of {} may be lost",
            chain.lost_after
        )),
        Some(_) => Ok(()),
    };
    Ok(Outlook {
        whole: chains
            .iter()
            .map(|chain| (chain.organization.clone(), whole(chain)))
            .collect(),
        known,
        register,
        chains,
        lost,
        is_accepted,
        organizations,
    })
}

fn must_be_live(known: &Identity, register: &Register) -> Outcome {
    if let Some(time) = register.retired(&known.id) {
        return Err(Failure::new(format!(
            "this store was given up at {time}, when a backup was restored in its place; start the restored store"
        )));
    }
    match known.state {
        State::Live => Ok(()),
        State::Rehearsal => Err(Failure::new(
            "this store is a rehearsal, of which nothing lies beside the keys; rehearse the restore again",
        )),
        State::Moved => Err(Failure::new(
            "this store was moved to another database, which is served in its place; start the server there, or take this one \
             back with `provost store accept --moved-back`",
        )),
    }
}

/// Says for each organization of which something is lost what is done.
fn plans(outlook: &Outlook) -> BTreeMap<String, Plan> {
    let mut plans = BTreeMap::new();
    for organization in &outlook.organizations {
        // What the installation's own chain lost may be about anybody.
        let installation = OrganizationId::installation();
        let chains = [organization.as_str(), installation.as_str()];
        let reason = chains
            .iter()
            .find_map(|chain| outlook.whole.get(*chain)?.as_ref().err());
        if let Some(reason) = reason {
            plans.insert(organization.as_str().to_owned(), Plan::HoldBack(reason.clone()));
        }
    }
    let mut seen = BTreeSet::new();
    for line in &outlook.lost {
        let plan = plans
            .entry(line.organization_id.clone())
            .or_insert_with(|| Plan::TakeAgain(Vec::new()));
        let Plan::TakeAgain(items) = plan else { continue };
        for ids in &line.ids {
            let item = Item {
                what: line.what.clone(),
                how: line.how.clone(),
                ids: ids.clone(),
                said: format!("{} {} ({} at {})", line.what, ids.join(" "), line.how, line.time),
            };
            if seen.insert((
                line.organization_id.clone(),
                item.what.clone(),
                item.how.clone(),
                ids.clone(),
            )) {
                items.push(item);
            }
        }
    }
    plans
}

fn tell(outlook: &Outlook, plans: &BTreeMap<String, Plan>) -> Outcome {
    let mut rows = Vec::new();
    for chain in &outlook.chains {
        let lines = outlook.lost.iter();
        let known = lines.filter(|line| line.chain() == chain.organization);
        let reached = known.map(|line| line.sequence.unsigned_abs()).max().unwrap_or(0);
        let done = match plans.get(&chain.organization) {
            None => "nothing was taken away".to_owned(),
            Some(Plan::TakeAgain(items)) => format!("{} taken away again", items.len()),
            Some(Plan::HoldBack(_)) => "everybody is held back".to_owned(),
        };
        rows.push(vec![
            chain.organization.clone(),
            chain.held.to_string(),
            chain.proven.max(reached).to_string(),
            done,
        ]);
    }
    show::out(&show::table(
        ["ORGANIZATION", "ENTRIES LEFT", "PROVEN", "WHAT IS DONE"],
        &rows,
    ))?;
    for (organization, plan) in plans {
        if let Plan::HoldBack(reason) = plan {
            show::out(&format!("{organization}: everybody is held back: {reason}\n"))?;
        }
    }
    Ok(())
}

fn agree(yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    let refuse = || {
        Failure::usage(
            "nothing was changed: what the store lost is given up with this; say so with --yes. Where a copy of the database has \
             the newer entries, start that one instead",
        )
    };
    if !std::io::stdin().is_terminal() {
        return Err(refuse());
    }
    let mut answer = String::new();
    // Who reads standard output need not see the question.
    let asked = write!(std::io::stderr(), "Give up what was lost, and go on? [y/N] ");
    let read = asked.and_then(|()| std::io::stdin().read_line(&mut answer));
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(refuse())
}

/// What every unit of an organization's acceptance does first, and again when it runs again.
fn begin(ctx: &mut OperationContext<'_>, epoch: i64) -> Result<()> {
    ctx.target(&held::fences::STORE, epoch.to_string());
    ctx.invalidate_cached_credentials();
    // What is taken away from here on leaves entries of the store, not of each row.
    entries::note_loss(ctx)?;
    events::begin_epoch(ctx)?;
    // What was used once since would serve again.
    oauth::forget_allowed(ctx)?;
    oauth::void_codes(ctx)
}

async fn take_again(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    epoch: i64,
    items: &[Item],
) -> Outcome {
    let run = move |ctx: &mut OperationContext<'_>| begin(ctx, epoch);
    kernel.system(organization.clone(), Some(ACT), run).await?;
    for chunk in items.chunks(CHUNK) {
        let done = Arc::new(Mutex::new(Vec::new()));
        let (sink, chunk) = (done.clone(), chunk.to_vec());
        let run = move |ctx: &mut OperationContext<'_>| {
            ctx.target(&held::fences::STORE, epoch.to_string());
            ctx.invalidate_cached_credentials();
            let mut outcomes = Vec::new();
            for item in &chunk {
                let again = ends::take_again(ctx, &item.what, &item.how, &item.ids)?;
                outcomes.push((item.said.clone(), again));
            }
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = outcomes;
            Ok(())
        };
        kernel.system(organization.clone(), Some(ACT), run).await?;
        let outcomes = std::mem::take(&mut *done.lock().unwrap_or_else(PoisonError::into_inner));
        for (said, again) in outcomes {
            let words = match &again {
                Again::Done(words) => words,
                Again::Already => "away already",
                Again::Gone => "gone with what was lost",
                Again::ByHand(words) => &format!("do this by hand: {words}"),
            };
            show::out(&format!("{organization}: {said}: {words}\n"))?;
        }
    }
    Ok(())
}

async fn hold_back(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    epoch: i64,
) -> Result<NewOrganization, Failure> {
    let issued = Arc::new(Mutex::new(None));
    let sink = issued.clone();
    let run = move |ctx: &mut OperationContext<'_>| {
        begin(ctx, epoch)?;
        ctx.queue(
            &provost_kernel::idempotency::ERASE_EVERY_CELL,
            provost_kernel::params![ctx.org()],
        )?;
        let account = restore::hold_back(ctx, "accepted-admin")?;
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(account);
        Ok(())
    };
    kernel.system(organization.clone(), Some(ACT), run).await?;
    let account = issued.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (id, token) =
        account.ok_or_else(|| Failure::new("the organization was held back without an account"))?;
    Ok(NewOrganization {
        organization_id: organization.clone(),
        service_account_id: id.as_str().to_owned(),
        token,
    })
}

fn tell_tokens(made: &[NewOrganization]) -> Outcome {
    let words = "What was taken away here is not known, so every token is revoked, and everybody who could act is held back: \
                 `provost restore held` lists them, `provost restore release` lets them act again. These tokens are new, and \
                 shown this once:";
    show::accounts(words, made)
}
