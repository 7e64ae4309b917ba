//! What takes away, area by area, and how each is taken away again in a store that went back (D12.9).
//!
//! Each table that decides rights says in its area's `ends.rs` which of its changes take away, or the reason why none does. What
//! each such change is called is the key under which the same file says how `provost store accept --lost` takes it away again.
//!
//! INVARIANT EN-3: each table that decides rights says which of its changes take away, or why none does; and whatever
//! can stand in a line has its way of being taken away again.

use crate::identity::{self, State};
use provost_kernel::area::Again;
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange, Side, StoreName, is_kept};
use provost_kernel::keys::Keys;
use provost_kernel::{Code, Kernel, OperationContext, Result, Timestamp};
use std::sync::Arc;

/// Returns the store that lines are about; nothing for a rehearsal, and for one that has no id yet.
pub fn store_of(tx: &mut Tx<'_>, keys: &Keys) -> Result<Option<StoreName>> {
    let known = identity::read(tx, keys)?;
    Ok(known
        .filter(|known| known.state == State::Live)
        .map(|known| (known.id, known.epoch)))
}

/// Takes something away again, in a unit of its organization.
///
/// Errors: those of the store. What the rules of an area refuse is left to a person.
pub fn take_again(ctx: &mut OperationContext<'_>, what: &str, how: &str, ids: &[String]) -> Result<Again> {
    let Some(retaking) = ctx
        .services()
        .areas()
        .retakings()
        .find(|retaking| retaking.what == what)
    else {
        let message = "this version does not know what it is; take it away by hand, or run the newer version";
        return Ok(Again::ByHand(message.to_owned()));
    };
    match (retaking.again)(ctx, how, ids) {
        Err(error) if error.code() == Code::NotFound => Ok(Again::Gone),
        Err(error) if error.is_refusal() => Ok(Again::ByHand(error.message().to_owned())),
        outcome => outcome,
    }
}

/// How long a line is kept. Units: seconds.
const KEPT_SECS: i64 = 30 * 86_400;
/// A file is put in place anew when something is a day older than that, so once a day at most. Units: seconds.
const DUE_SECS: i64 = 31 * 86_400;

/// Removes the lines that are older than 30 days by a clock that nobody doubts (CK-1).
///
/// Errors: those of the store. A keys folder that cannot be written keeps them.
pub async fn trim(kernel: &Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let (due, before) = (now.earlier_by(DUE_SECS), now.earlier_by(KEPT_SECS));
    let shared = kernel.clone();
    let trim = move || {
        let lines = shared.keys.end_lines()?;
        let is_old = |line: &String| !is_kept(line, due.instant());
        if !lines.iter().any(is_old) {
            return Ok(0);
        }
        let before = before.instant();
        shared.keys.trim_ends(before, |line| is_kept(line, before))
    };
    match kernel.blocking(trim).await? {
        Ok(0) => {}
        Ok(lines) => tracing::info!(lines, "lines of ends.jsonl that are older than 30 days are gone"),
        Err::<_, std::io::Error>(error) => {
            tracing::warn!(cause = %error, "ends.jsonl in the keys folder keeps its old lines: it cannot be written");
        }
    }
    Ok(())
}

/// Returns until when a token works, by the columns that tokens of every kind have; nothing for one that does not. Units:
/// milliseconds.
///
/// Errors: `Internal` for a row without these columns.
pub fn works_until(side: &Side, now: Timestamp) -> Result<Option<i64>> {
    let until = side.number("expires_at")?.unwrap_or(i64::MAX);
    let works = !side.has("revoked_at")? && until > now.as_ms();
    Ok(works.then_some(until))
}

/// Returns what a change of a document that an organization has one of takes away: any change is one, since what gives less than before may
/// be a value in it, which no line holds. Nothing where the document is the same.
///
/// Errors: `Internal` for a row without a document.
pub fn of_document(what: &'static str, change: &RowChange) -> Result<Vec<Revocation>> {
    let is_same = match (&change.was, &change.is) {
        (Some(was), Some(is)) => was.agrees(is, &["document"])?,
        _ => false,
    };
    if is_same {
        return Ok(Vec::new());
    }
    Ok(vec![Revocation {
        what,
        how: "changed",
        ids: vec![change.organization.clone()],
    }])
}

/// What is said of ids that are not those of their kind.
pub fn unclear() -> Again {
    Again::ByHand("its ids are not those of its kind; look at it by hand".to_owned())
}

/// Returns what somebody has to do.
pub fn by_hand(words: &str) -> Result<Again> {
    Ok(Again::ByHand(words.to_owned()))
}
