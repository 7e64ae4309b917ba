//! What lies around a PostgreSQL store and would make it another one: a pooler that shares sessions, an encoding that cannot
//! hold every text, a search path that leads elsewhere.
//!
//! INVARIANT DB-1: what is set for a session of PostgreSQL holds for all of it, and every connection of a store reads
//! and writes the one schema that was found at its start.
//!
//! A pooler in session mode is nobody's concern. In transaction or statement mode, `lock_timeout` and all else that this
//! program sets goes to whoever is served next, and what others set comes here. It cannot be asked for its mode; but two
//! connections that are both open never have one session, unless somebody shares it out.

use super::fault::Fault;
use super::postgres::Postgres;
use super::{Access, Location};
use crate::error::{Class, Result};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often each of the two is asked. A pooler gives out the session that was used last, or in turn: it is caught the first
/// time, unless many others use it at that moment.
const TURNS: usize = 4;

const SHARED: &str = "a pooler stands between this program and PostgreSQL and gives a session to several connections, as PgBouncer \
                      does in transaction and statement mode; have it use session mode (pool_mode = session), or go to PostgreSQL \
                      itself";

/// Looks at what a store lies in, before anything is read from it. SQLite's lies in nothing.
///
/// Errors: `Unavailable`, with a sentence for the operator ([`crate::Error::told`]).
pub fn look_around(location: &Location) -> Result<()> {
    let Location::Postgres(url) = location else {
        return Ok(());
    };
    let open = || Postgres::open(url, Access::Read, None);
    let mut first = open()?;
    if let Some(encoding) = first.text("SHOW server_encoding")?
        && encoding != "UTF8"
    {
        return Err(Fault::told(format!(
            "the PostgreSQL database has the encoding {encoding}, which cannot hold every text; make one with CREATE DATABASE \
             provost TEMPLATE template0 ENCODING 'UTF8'"
        ))
        .into());
    }
    Ok(tell_apart([first, open()?])?)
}

/// Refuses a pooler that shares sessions: each connection writes its name into its session and reads it back.
fn tell_apart(mut connections: [Postgres; 2]) -> Result<(), Fault> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = [0, 1].map(|_| format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    for _ in 0..TURNS {
        for (connection, name) in connections.iter_mut().zip(&own) {
            match connection.name_session(name) {
                Ok(()) => {}
                // An engine without settings of others cannot be asked so.
                Err(fault) if fault.class == Class::Refused => return Ok(()),
                Err(fault) => return Err(fault),
            }
            if connection.session_name()?.as_ref() != Some(name) {
                return Err(Fault::told(SHARED));
            }
        }
        for (connection, name) in connections.iter_mut().zip(&own) {
            if connection.session_name()?.as_ref() != Some(name) {
                return Err(Fault::told(SHARED));
            }
        }
    }
    Ok(())
}
