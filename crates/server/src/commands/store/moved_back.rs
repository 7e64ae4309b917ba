//! Taking a moved store back into service, while the database that it was moved to holds nothing newer (D12.9).
//!
//! ```text
//! compare the ends of every chain → mark the database as moved → a line with the next epoch → the store is live, in that epoch
//! ```
//!
//! Whenever this is cut off, no more than one of the two can be served; run it again.

use crate::areas::ALL;
use crate::closing;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::store_flags::opening;
use provost_areas_platform::audit::{Event, Register};
use provost_areas_platform::identity::{self, Identity, State};
use provost_kernel::db::{Access, Conn, Location, Tx, is_migrated};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use provost_kernel::{Result, params};
use std::collections::BTreeMap;

type Ends = BTreeMap<String, (i64, Vec<u8>)>;

fn ends(tx: &mut Tx<'_>) -> Result<Ends> {
    let rows = tx.query(&closing::HEADS, params![], |row| {
        Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))
    })?;
    Ok(rows.into_iter().collect())
}

/// Makes a moved store the one that is served again; `to` is the database that it was moved to.
///
/// Errors: a sentence for a store that was not moved, and for a database that holds entries which the store lacks.
pub fn take_back(conn: &mut Conn, keys: &Keys, to: &Location) -> Outcome {
    let (known, own) = conn.read(|tx| Ok((identity::read(tx, keys)?, ends(tx)?)))?;
    let Some(known) = known.filter(|known| known.state == State::Moved) else {
        return Err(Failure::new(
            "this store is not marked as moved; there is nothing to take back",
        ));
    };
    let mut target = Conn::open(to, Access::Write).map_err(|error| opening(error, to))?;
    if is_migrated(&mut target, ALL.migrations()).map_err(|error| opening(error, to))? {
        mark(&mut target, keys, &known, &own)?;
    }
    let register = Register::of(&keys.checkpoint_lines()?)?;
    let epoch = register.highest_epoch().max(known.epoch) + 1;
    // The line first: from it on the database is of an epoch that was given up, also one that a server still has open.
    let line = Event::Accepted.line(&known.id, epoch, SystemClock::new().now());
    keys.append_checkpoint_line(&line)?;
    let back = Identity {
        epoch,
        ..known.with(State::Live)
    };
    Ok(back.write(conn, keys)?)
}

fn mark(target: &mut Conn, keys: &Keys, known: &Identity, own: &Ends) -> Outcome {
    let (there, theirs) = target.read(|tx| Ok((identity::read(tx, keys)?, ends(tx)?)))?;
    if there.as_ref().is_some_and(|there| there.id != known.id) {
        return Err(Failure::new(
            "that database holds another store than the one that this one was moved to",
        ));
    }
    for (organization, (seq, hash)) in &theirs {
        if own.get(organization) != Some(&(*seq, hash.clone())) {
            return Err(Failure::new(format!(
                "the database holds changes that this store lacks: its audit log of {organization} ends with entry {seq}, and \
                 this store's with {}; start the server there",
                own.get(organization).map_or(0, |(seq, _)| *seq)
            )));
        }
    }
    if there.is_some() {
        known.write(target, keys)?;
    }
    Ok(())
}
