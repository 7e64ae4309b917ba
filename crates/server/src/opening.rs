//! Opening a store: its migrations, and the bond between store and keys.
//!
//! INVARIANT ST-1: a store opens only with the keys that it was made with (D12.8): each key's check value is kept in
//! the store, and a start with a wrong or missing key refuses with a sentence that names the key.

use crate::{closing, proofs};
use provost_areas_platform::store::{self, ADD_KEY_CHECK, FORGET_KEY_CHECK, KeyCheck};
use provost_kernel::area::Areas;
use provost_kernel::db::{Access, Call, Conn, Location, Param, migrate};
use provost_kernel::keys::Keys;
use provost_kernel::{Result, Timestamp};

/// Migrates a store, binds it to its keys, compares it with what it was when it was closed, and writes what migrations cannot
/// say: the match keys of earlier words (WD-2), the ceilings of earlier clients, the scope of accounts that machines pull with, the proofs of rows of
/// a store that has none (PF-4). Triggers that are not those of the migrations are named in the log (PF-6).
///
/// Errors: a sentence for a store that is newer than the program, edited, damaged, or made with other keys; `Broken` when it
/// cannot be written.
pub fn prepare(areas: &Areas, location: &Location, keys: &Keys, now: Timestamp) -> Result<()> {
    // Preparing the store reads rights already, and some of it is done only once.
    areas.install_scopes()?;
    let mut conn = Conn::open(location, Access::Write)?;
    conn.checkpoint()?;
    migrate(&mut conn, areas.migrations(), now)?;
    let (spent, known) = split_spent(areas, &mut conn, keys)?;
    keys.verify(&known)?;
    closing::check(areas, &mut conn, keys)?;
    for prepare in areas.iter().filter_map(|area| area.prepare) {
        prepare(&mut conn, now)?;
    }
    if let Some(count) = proofs::write_once(areas, &mut conn, keys, now)? {
        tracing::warn!(
            rows = count,
            "the rows that decide rights carry proofs from now on; what was there is trusted"
        );
    }
    for finding in conn.read(|tx| proofs::triggers::findings(areas, tx))? {
        tracing::error!("{finding}");
    }
    let values = keys.check_values_in_use();
    let mut new: Vec<Call<'_>> = values
        .iter()
        .filter(|(id, _)| !known.iter().any(|(known, _)| known == id))
        .map(|(id, value)| Call {
            statement: &ADD_KEY_CHECK,
            params: vec![
                Param::from(id.as_str()),
                Param::from(value.as_slice()),
                Param::from(now),
            ],
        })
        .collect();
    new.extend(spent.iter().map(|id| Call {
        statement: &FORGET_KEY_CHECK,
        params: vec![Param::from(id.as_str())],
    }));
    if new.is_empty() {
        return Ok(());
    }
    conn.change(&new)?;
    // Another server may have been first, with other keys: then its check values stand and ours were ignored.
    keys.verify(&store::known_keys(&mut conn)?)
}

/// Splits the keys that the store knows into sealing keys that were taken out of the folder and that nothing in the
/// store needs any more, and all others.
fn split_spent(areas: &Areas, conn: &mut Conn, keys: &Keys) -> Result<(Vec<String>, Vec<KeyCheck>)> {
    let here = keys.check_values();
    let used = conn.read(|tx| {
        let mut used = Vec::new();
        for keys_in_use in areas.iter().filter_map(|area| area.sealing_keys) {
            used.extend(keys_in_use(tx)?);
        }
        Ok(used)
    })?;
    let is_spent = |label: &str| {
        let id = label.strip_prefix("sealing/");
        id.is_some_and(|id| !used.iter().any(|used| used == id))
            && !here.iter().any(|(known, _)| known == label)
    };
    let (spent, known): (Vec<KeyCheck>, Vec<KeyCheck>) = store::known_keys(conn)?
        .into_iter()
        .partition(|(label, _)| is_spent(label));
    Ok((spent.into_iter().map(|(label, _)| label).collect(), known))
}
