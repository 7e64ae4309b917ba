//! Putting a key to use that waits.
//!
//! Keeps KY-3.

use super::ROTATING;
use crate::areas::ALL;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store_flags::{StoreFlags, look_around, opening};
use crate::rotation;
use provost_kernel::db::{Access, Conn, Location, is_migrated};
use provost_kernel::error::Result;
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};

/// Use the key of a purpose that `provost keys rotate` made.
///
/// It is refused while a running server has not read the key: what others made with it would be refused there.
#[derive(clap::Parser)]
#[command(
    name = "activate",
    after_help = "Examples:
  provost keys activate pepper
  provost keys activate signing --now"
)]
pub struct Activate {
    /// Which key
    #[arg(value_parser = ROTATING)]
    purpose: String,
    /// Do not ask the store which servers have read the key
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl Activate {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let keys = Keys::open(&config.store.keys_dir().0)?;
        let id = keys.pending_of(&self.purpose)?;
        if !self.now {
            let location = config.store.location()?;
            look_around(&location)?;
            let fingerprint = keys.fingerprint(&id).unwrap_or_default();
            let lacking = lacking(&location, &fingerprint).map_err(|error| opening(error, &location))?;
            if lacking > 0 {
                let has = if lacking == 1 { "has" } else { "have" };
                return Err(Failure::new(format!(
                    "{lacking} of the running servers {has} not read {id} yet, which takes them 15 seconds; where they have folders of \
                     their own, bring the key and its mark {id}.pending into each, and try again. A server that stopped without a \
                     word counts for five minutes; --now does not ask"
                )));
            }
        }
        keys.activate(&id)?;
        show::out(&format!(
            "{id} is active: running servers use it within 15 seconds. Export the keys again.\n"
        ))?;
        Ok(())
    }
}

/// Returns how many running servers have not read the key of a fingerprint.
fn lacking(location: &Location, fingerprint: &str) -> Result<usize> {
    if let Location::Sqlite(file) = location
        && !file.is_file()
    {
        return Ok(0);
    }
    let mut conn = Conn::open(location, Access::Write)?;
    // A store of an earlier build: no server of this one has started on it.
    if !is_migrated(&mut conn, ALL.migrations())? {
        return Ok(0);
    }
    let now = SystemClock::new().now();
    let readers = conn.read(|tx| rotation::readers(tx, now))?;
    Ok(readers.iter().filter(|reader| !reader.has(fingerprint)).count())
}
