//! Who reads the details of audit entries and events.
//!
//! Whoever may read the log or the events sees that something happened: place, sequence, time, action and outcome. The
//! details (what changed, the data of an event, whom it was about, who did it) are for the readers that the kind of the
//! record, the kind of the event and the area of the act declare. An area declares them with [`crate::fences!`]; the
//! areas that read ask [`DeclaredKinds`] and [`Reader`].
//!
//! INVARIANT FE-1: a kind of record or of event without readers does not compile, an operation belongs to an area
//! that says who reads what it does, and what nobody declared is for admins and auditors. An entry names a
//! [`TargetKind`] and an event is of an [`EventKind`], and neither can be made without its readers; what the registry
//! does not know is for overseers alone. Proof: the compiler, by `TargetKind::new` and `EventOf::new`.
//!
//! Absent on purpose: readers that depend on the content of an entry. What somebody may read is the same for every entry
//! of its kind, except for records that are assigned to the reader.

use crate::auth::{Actor, Role};
use crate::db::Tx;
use crate::error::Result;
use crate::event::EventKind;
use std::collections::{BTreeMap, BTreeSet};

pub use crate::readers::{Assignment, Readers};

/// A kind of record that audit entries are about.
#[derive(Debug)]
pub struct TargetKind {
    word: &'static str,
    readers: Readers,
}

impl TargetKind {
    /// Returns the kind with this word, whose details are for these readers.
    pub const fn new(word: &'static str, readers: Readers) -> Self {
        Self { word, readers }
    }

    /// Returns the word in the entry.
    pub const fn word(&self) -> &'static str {
        self.word
    }

    /// Returns who reads the details of entries about such a record.
    pub const fn readers(&self) -> Readers {
        self.readers
    }
}

/// What an area declares; [`crate::fences!`] makes it.
#[derive(Debug)]
pub struct Fences {
    /// Who reads the details of entries about the area's operations and its own acts, whatever their target.
    pub acts: Readers,
    /// The names of acts that are no operations.
    pub own_acts: &'static [&'static str],
    /// The names of own acts whose details are for overseers, whoever reads those of the others.
    pub overseen_acts: &'static [&'static str],
    /// The records.
    pub targets: &'static [&'static TargetKind],
    /// The events.
    pub events: &'static [&'static EventKind],
    /// Paths of changes that name records of other kinds than the entry's own, and who reads these changes.
    pub members: &'static [(&'static str, Readers)],
}

/// Declares who reads the details of an area's entries and events.
///
/// ```text
/// provost_kernel::fences! {
///     acts Readers::Everybody, ["thing.expired"];
///     targets { THING = "thing" => Readers::Everybody; }
///     events {
///         /// A thing was made.
///         THING_MADE: OfThing = "thing.made" => Readers::Everybody;
///     }
///     members { "/tokens" => Readers::Overseers; }
/// }
/// ```
#[macro_export]
macro_rules! fences {
    (
        acts $acts:expr, [$($own:expr),* $(,)?];
        $(overseen [$($overseen:expr),* $(,)?];)?
        $(targets { $($(#[$target_doc:meta])* $target:ident = $target_word:expr => $target_readers:expr;)* })?
        $(events {$(
            $(#[doc = $says:literal])+
            $event:ident: $data:ty = $event_word:literal => $event_readers:expr $(, like $example:literal)?;
        )*})?
        $(members { $($path:expr => $member_readers:expr;)* })?
    ) => {
        $($($(#[$target_doc])*
        pub static $target: $crate::fence::TargetKind =
            $crate::fence::TargetKind::new($target_word, $target_readers);)*)?
        $($($(#[doc = $says])+
        pub static $event: $crate::event::EventOf<$data> =
            $crate::event::EventOf::new($event_word, $event_readers, concat!($($says),+)) $(.like($example))?;)*)?
        /// Who reads the details of what this area does.
        pub static FENCES: $crate::fence::Fences = $crate::fence::Fences {
            acts: $acts,
            own_acts: &[$($own),*],
            overseen_acts: &[$($($overseen),*)?],
            targets: &[$($(&$target),*)?],
            events: &[$($($event.kind()),*)?],
            members: &[$($(($path, $member_readers)),*)?],
        };
    };
}

fences! {
    acts Readers::Overseers, [
        "access.summary",
        "authentication.failed",
    ];
    targets {
        /// A token of any kind.
        TOKEN = "token" => Readers::Overseers;
        /// An operation and who called it, in the summary of reads: it names accounts.
        OPERATION = "operation" => Readers::Overseers;
        /// What a replayed operation was about: its operation says whose details they are.
        RECORD = "record" => Readers::Everybody;
        /// A network that strangers came from.
        NETWORK = "network" => Readers::Overseers;
    }
}

/// What all areas declare.
#[derive(Clone, Debug)]
pub struct DeclaredKinds {
    acts: BTreeMap<&'static str, Readers>,
    fences: Vec<&'static Fences>,
}

impl Default for DeclaredKinds {
    fn default() -> Self {
        let mut declared = Self {
            acts: BTreeMap::new(),
            fences: Vec::new(),
        };
        declared.add(std::iter::empty(), &FENCES);
        declared
    }
}

impl DeclaredKinds {
    /// Adds an area with the ids of its operations.
    pub(crate) fn add(&mut self, operations: impl Iterator<Item = &'static str>, fences: &'static Fences) {
        let acts = operations.chain(fences.own_acts.iter().copied());
        self.acts.extend(acts.map(|act| (act, fences.acts)));
        let overseen = fences.overseen_acts.iter().copied();
        self.acts.extend(overseen.map(|act| (act, Readers::Overseers)));
        self.fences.push(fences);
    }

    /// Returns who reads the details of what an operation or an own act did.
    pub fn act(&self, action: &str) -> Readers {
        self.acts.get(action).copied().unwrap_or(Readers::Overseers)
    }

    /// Returns who reads the details of entries about a kind of record.
    pub fn target(&self, word: &str) -> Readers {
        let found = self.targets().find(|kind| kind.word == word);
        found.map_or(Readers::Overseers, |kind| kind.readers)
    }

    /// Returns who reads the data of a kind of event.
    pub fn event(&self, word: &str) -> Readers {
        let found = self.events().find(|kind| kind.word() == word);
        found.map_or(Readers::Overseers, EventKind::readers)
    }

    /// Returns who reads a change; one that nobody declares is as its entry.
    pub fn member(&self, path: &str) -> Readers {
        let mut members = self.fences.iter().flat_map(|fences| fences.members);
        let found = members.find(|(declared, _)| *declared == path);
        found.map_or(Readers::Everybody, |(_, readers)| *readers)
    }

    /// Returns every act that is declared, with its readers.
    pub fn acts(&self) -> impl Iterator<Item = (&'static str, Readers)> + '_ {
        self.acts.iter().map(|(act, readers)| (*act, *readers))
    }

    /// Returns every kind of record.
    pub fn targets(&self) -> impl Iterator<Item = &'static TargetKind> + '_ {
        self.fences
            .iter()
            .flat_map(|fences| fences.targets.iter().copied())
    }

    /// Returns every kind of event.
    pub fn events(&self) -> impl Iterator<Item = &'static EventKind> + '_ {
        self.fences
            .iter()
            .flat_map(|fences| fences.events.iter().copied())
    }

    /// Returns every path of changes that is declared.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, Readers)> + '_ {
        self.fences
            .iter()
            .flat_map(|fences| fences.members.iter().copied())
    }
}

/// What one caller may read. What is assigned to the caller is asked once, when it is first needed.
#[derive(Debug)]
pub struct Reader<'a> {
    actor: &'a Actor,
    assigned: Vec<(&'static Assignment, BTreeSet<String>)>,
}

impl<'a> Reader<'a> {
    /// Returns the reader that an actor is.
    pub fn of(actor: &'a Actor) -> Self {
        Self {
            actor,
            assigned: Vec::new(),
        }
    }

    /// Says whether nothing is withheld.
    pub fn oversees(&self) -> bool {
        oversees(self.actor.permission.role)
    }

    /// Says whether details for these readers are for this one; `record` is the id of the record that they are about.
    pub fn admits(&mut self, tx: &mut Tx<'_>, readers: Readers, record: Option<&str>) -> Result<bool> {
        if self.oversees() {
            return Ok(true);
        }
        Ok(match (readers, record) {
            (Readers::Everybody, _) => true,
            (Readers::Overseers, _) | (Readers::Assignees(_), None) => false,
            (Readers::Assignees(assignment), Some(id)) => self.assigned(tx, assignment)?.contains(id),
        })
    }

    fn assigned(&mut self, tx: &mut Tx<'_>, assignment: &'static Assignment) -> Result<&BTreeSet<String>> {
        let known = self.assigned.iter();
        let place = known
            .enumerate()
            .find(|(_, (known, _))| std::ptr::eq(*known, assignment))
            .map(|(place, _)| place);
        let place = if let Some(place) = place {
            place
        } else {
            let ids = (assignment.of_caller)(tx, self.actor)?;
            self.assigned.push((assignment, ids));
            self.assigned.len() - 1
        };
        Ok(&self.assigned[place].1)
    }
}

/// Says whether a role reads the details of everything that it reads at all.
const fn oversees(role: Role) -> bool {
    match role {
        Role::Admin | Role::Auditor => true,
        Role::Operator | Role::Viewer | Role::Member => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::event_data! {
        /// A thing.
        OfThing {
            /// Its name.
            name: String,
        } like r#"{"name":"thing"}"#;
    }

    fences! {
        acts Readers::Everybody, ["thing.expired"];
        targets {
            THING = "thing" => Readers::Everybody;
        }
        events {
            /// A thing was made.
            THING_MADE: OfThing = "thing.made" => Readers::Everybody;
        }
        members {
            "/tokens" => Readers::Overseers;
        }
    }

    fn is_open(readers: Readers) -> bool {
        matches!(readers, Readers::Everybody)
    }

    /// Proves FE-1.
    #[test]
    fn what_nobody_declared_is_for_overseers() {
        let mut declared = DeclaredKinds::default();
        for readers in [
            declared.act("makeThing"),
            declared.act("thing.expired"),
            declared.target("thing"),
            declared.event("thing.made"),
        ] {
            assert_eq!(readers.word(), "overseers");
        }
        declared.add(["makeThing"].into_iter(), &FENCES);
        for readers in [
            declared.act("makeThing"),
            declared.act("thing.expired"),
            declared.target("thing"),
            declared.event("thing.made"),
            declared.member("/name"),
        ] {
            assert!(is_open(readers));
        }
        for readers in [
            declared.act("thing"),
            declared.target("thing.made"),
            declared.target(""),
            declared.event("thing"),
            declared.member("/tokens"),
        ] {
            assert_eq!(readers.word(), "overseers");
        }
    }
}
