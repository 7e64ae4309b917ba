//! For whom the details of records and of events are: see [`crate::fence`].

use crate::auth::Actor;
use crate::db::Tx;
use crate::error::Result;
use std::collections::BTreeSet;

/// Who reads the details.
#[derive(Clone, Copy, Debug)]
pub enum Readers {
    /// Everybody who reads the log or the events.
    Everybody,
    /// Those whose role reads everything: admins and auditors.
    Overseers,
    /// Overseers, and those to whom the record is assigned.
    Assignees(&'static Assignment),
}

impl Readers {
    /// Returns the word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Everybody => "everybody",
            Self::Overseers => "overseers",
            Self::Assignees(_) => "assignees",
        }
    }
}

/// How it is known whether a record is assigned to a caller.
#[derive(Debug)]
pub struct Assignment {
    /// The member of an event's data that holds the record's id.
    pub member: &'static str,
    /// Returns the ids of all records that are assigned to the caller.
    pub of_caller: fn(&mut Tx<'_>, &Actor) -> Result<BTreeSet<String>>,
}
