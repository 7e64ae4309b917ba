//! What takes away from workload trusts, and how it is taken away again (EN-3).

use super::model::TrustId;
use super::{end_sessions, fences, store};
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side};
use provost_kernel::{OperationContext, Result, Timestamp};

const TRUST: &str = "workload_trust";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[Right::ending("workload_trusts", trust)];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[RepeatedRevocation {
    what: TRUST,
    again: trust_again,
}];

fn is_shorter(was: &Side, is: &Side, column: &str) -> Result<bool> {
    Ok(is.number(column)? < was.number(column)?)
}

fn lost_a_scope(was: &Side, is: &Side) -> Result<bool> {
    let words = |side: &Side| -> Result<Vec<String>> {
        let text = side.text("scopes")?.unwrap_or_default();
        Ok(text.split(' ').map(str::to_owned).collect())
    };
    let after = words(is)?;
    Ok(words(was)?.iter().any(|word| !after.contains(word)))
}

fn trust(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    if was.has("suspended_at")? {
        return Ok(Vec::new());
    }
    let how = match &change.is {
        None => "deleted",
        Some(is) if is.has("suspended_at")? => "suspended",
        // Other workloads than before: those that it named are let in no more.
        Some(is) if !was.agrees(is, &["claims", "audience", "jwks"])? => "narrowed",
        Some(is) if lost_a_scope(was, is)? => "narrowed",
        Some(is) if is_shorter(was, is, "lifetime_secs")? || is_shorter(was, is, "max_token_age_secs")? => {
            "narrowed"
        }
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: TRUST,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn trust_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let id = TrustId::from_store(id.clone());
    let mut trust = store::get(ctx, &id)?;
    if trust.suspended_at.is_some() {
        return Ok(Again::Already);
    }
    ctx.target(&fences::TRUST, id.as_str());
    trust.suspended_at = Some(ctx.now());
    trust.updated_at = ctx.now().max(trust.updated_at.plus_ms(1));
    store::save(ctx, &trust)?;
    end_sessions(ctx, &id)?;
    ctx.change("/suspended", false, true);
    Ok(Again::Done(match how {
        "deleted" => "suspended; delete it by hand",
        "narrowed" => "suspended; change it by hand before it is let in",
        _ => "suspended",
    }))
}
