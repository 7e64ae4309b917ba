//! What an area of the product is: one value, which says everything that the rest has to know of it.
//!
//! A program is a list of areas ([`Areas`]). The registry of operations, the schema, the statements that tests prepare, the
//! background work, `store check`, `restore`, the seal of a closed store, the proofs of rows and what is written beside the
//! keys are read from that list, so that no place has to be told of a new area and none can forget it.
//!
//! ```text
//! pub static AREA: Area = Area {
//!     migrations: &migrations!["0027_notes"],                sql files lie in the area's folder
//!     toolsets: &[NOTES],
//!     scopes: &[scope("notes:read").readers(), scope("notes:write")],
//!     operations,
//!     fences: Some(&fences::FENCES),
//!     statements: &[store::STATEMENTS],
//!     rights: &[Right::lasting("notes", "a note gives nobody anything")],
//!     timers: &[every(60, "notes", |kernel, _| Box::pin(sweep(kernel)))],
//!     check: Check::Find(broken_invariants),
//!     floor: 3,
//!     ..Area::named("notes", "Short texts that people keep")
//! };
//! ```
//!
//! INVARIANT RW-1: each table of the store either decides rights, and then the note of a closed store covers it, or
//! is listed with the reason why it does not.
//!
//! Keeps EN-3.
//!
//! Absent on purpose: columns of these tables. All of them count, those of later migrations included, except for what only
//! records what was seen. And areas that are switched on and off. What the binary holds it serves.

use crate::announcement::{Announcement, Listener, Question};
use crate::auth::{Scope, Scopes, Toolset};
use crate::context::OperationContext;
use crate::credential::{Schemes, Sessions, TokenScheme};
use crate::db::{Conn, Migration, RightsTable, Statement, Tx};
use crate::doubt::SureTime;
use crate::ends::{Endings, Find, StoreOf};
use crate::error::{Error, Result};
use crate::fence::Fences;
use crate::held::HeldKind;
use crate::jobs::{BoxFuture, Handler};
use crate::kernel::Kernel;
use crate::operation::{Entry, Registry};
use crate::proofs::Testimony;
use crate::services::Services;
use crate::supervisor::Supervisor;
use crate::time::Timestamp;
use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};

/// A list of statements, as [`crate::statements!`] makes it.
pub type Statements = &'static [&'static Statement];

/// Runs once in a while; is told whether this is the first time since the start.
pub type Round = fn(Arc<Kernel>, bool) -> BoxFuture<'static, Result<()>>;

/// Begins work under a supervisor.
pub type Start = fn(&Arc<Kernel>, &Supervisor) -> Result<()>;

/// Writes what is buffered.
pub type Finish = fn(Arc<Kernel>) -> BoxFuture<'static, ()>;

/// Says what is wrong with rows at an instant, in sentences.
pub type FindFaults = fn(&mut Tx<'_>, Timestamp) -> Result<Vec<String>>;

/// Ends credentials of the unit's organization for a reason.
pub type EndCredentials = fn(&mut OperationContext<'_>, &'static str) -> Result<()>;

/// Returns texts from the store.
pub type ListTexts = fn(&mut Tx<'_>) -> Result<Vec<String>>;

/// A table, and the reason why nobody's rights hang on its rows.
pub type Record = (&'static str, &'static str);

/// What the rest of the program knows of an area.
pub struct Area {
    /// The word of the area, as its folder is called.
    pub name: &'static str,
    /// What it is for, in one sentence.
    pub says: &'static str,
    /// Its layer: it knows areas of lower floors, and of its own. Those above it hear what it announces.
    pub floor: u8,
    /// Its steps of the schema; those of all areas together are numbered without a gap.
    pub migrations: &'static [Migration],
    /// Its scopes, each with the roles that hold it.
    pub scopes: &'static [Scope],
    /// The toolsets that those are of, unless another area declares them.
    pub toolsets: &'static [Toolset],
    /// Its kinds of tokens that are told by their form.
    pub schemes: &'static [&'static dyn TokenScheme],
    /// The sessions behind delegated tokens; one area of a program has them.
    pub sessions: Option<&'static dyn Sessions>,
    /// Makes its operations.
    pub operations: fn() -> Vec<Entry>,
    /// Who reads the details of what it does; none for one that does nothing that is recorded.
    pub fences: Option<&'static Fences>,
    /// Its statements.
    pub statements: &'static [Statements],
    /// Makes the handlers of its jobs.
    pub jobs: fn() -> Vec<Handler>,
    /// What it does again and again.
    pub timers: &'static [Timer],
    /// Begins what is neither a job nor a timer.
    pub start: Option<Start>,
    /// How it acts on what areas below it announce, and what it answers them, in the same unit of work.
    pub on: &'static [&'static dyn Listener],
    /// Writes what is buffered, before the kernel stops.
    pub finish: Option<Finish>,
    /// Its tables that decide what somebody may do.
    pub rights: &'static [Right],
    /// Its other tables, each with the reason why nobody's rights hang on its rows.
    pub records: &'static [Record],
    /// What the entries of the audit log say of its rows.
    pub testimonies: &'static [&'static Testimony],
    /// How what it took away is taken away again in a store that went back.
    pub retakings: &'static [RepeatedRevocation],
    /// Writes what migrations cannot say, before a store is served.
    pub prepare: Option<fn(&mut Conn, Timestamp) -> Result<()>>,
    /// Finds what is wrong with its rows.
    pub check: Check,
    /// Says what is no damage and should be known, in sentences.
    pub notes: Option<ListTexts>,
    /// Ends every credential of the organization for a reason, in the unit that restores a backup.
    pub restore: Option<EndCredentials>,
    /// Its records that act, which a restore holds back until somebody releases them.
    pub held: &'static [HeldKind],
    /// Removes what has been kept long enough, in units of its own: by [`OperationContext::prune`], which goes on in another unit where there
    /// is more than one may remove.
    pub prune: Option<fn(&mut OperationContext<'_>, SureTime) -> Result<()>>,
    /// Returns the ids of the sealing keys that its rows need.
    pub sealing_keys: Option<ListTexts>,
    /// What agents and people read about it.
    pub guides: &'static [Guide],
}

/// Whether `store check` asks an area.
#[derive(Clone, Copy)]
pub enum Check {
    /// Returns what is wrong with its rows at an instant, in sentences.
    Find(FindFaults),
    /// It is not asked, for this reason.
    Nothing(&'static str),
    /// The area does not say, which a test refuses.
    Unsaid,
}

/// A text about an area.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    /// The last part of its address.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Markdown.
    pub text: &'static str,
}

/// What is done again and again, under a supervisor.
#[derive(Clone, Copy)]
pub struct Timer {
    /// Its name in logs.
    pub name: &'static str,
    /// How long it waits between rounds. Units: seconds.
    pub secs: u64,
    /// Whether the first round is at the start.
    pub begins_now: bool,
    /// One round; harmless when it runs twice.
    pub run: Round,
}

/// Returns what is done for the first time after so many seconds.
pub const fn every(secs: u64, name: &'static str, run: Round) -> Timer {
    Timer {
        name,
        secs,
        begins_now: false,
        run,
    }
}

/// Returns what is done at the start and from then on.
pub const fn now_and_every(secs: u64, name: &'static str, run: Round) -> Timer {
    Timer {
        begins_now: true,
        ..every(secs, name, run)
    }
}

/// What became of something that is to be taken away again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It is taken away; the words say how.
    Done(&'static str),
    /// It is away already.
    Already,
    /// The store that went back has nothing of this id.
    Gone,
    /// Nobody but a person can: the words say what is to be done.
    ByHand(String),
}

/// How something is taken away again.
#[derive(Clone, Copy)]
pub struct RepeatedRevocation {
    /// What, as the line says it.
    pub what: &'static str,
    /// Takes it away, by what became of it and its ids, in a unit of its organization.
    pub again: fn(&mut OperationContext<'_>, &str, &[String]) -> Result<Again>,
}

/// A table that decides what somebody may do, and what its changes take away: neither can be declared without the other, nor
/// the reason why nothing is taken away.
#[derive(Clone, Copy)]
pub struct Right {
    /// The table.
    pub table: RightsTable,
    /// What its changes take away.
    pub ends: Ends,
}

/// What changes of a table take away.
#[derive(Clone, Copy)]
pub enum Ends {
    /// Says it of one change.
    By(Find),
    /// Nothing by themselves, for this reason.
    Never(&'static str),
}

impl Right {
    /// Returns a table whose changes can take something away.
    pub const fn ending(table: &'static str, find: Find) -> Self {
        Self::of(table, Ends::By(find))
    }

    /// Returns a table of which no change takes anything away by itself, for a reason.
    pub const fn lasting(table: &'static str, why: &'static str) -> Self {
        Self::of(table, Ends::Never(why))
    }

    const fn of(table: &'static str, ends: Ends) -> Self {
        let table = RightsTable {
            table,
            without: &[],
            loose: &[],
        };
        Self { table, ends }
    }

    /// Names columns that record what was seen and decide nothing.
    #[must_use]
    pub const fn loose(mut self, columns: &'static [&'static str]) -> Self {
        self.table.loose = columns;
        self
    }
}

impl Area {
    /// Returns an area that has nothing yet.
    pub const fn named(name: &'static str, says: &'static str) -> Self {
        Self {
            name,
            says,
            floor: 0,
            migrations: &[],
            scopes: &[],
            toolsets: &[],
            schemes: &[],
            sessions: None,
            operations: Vec::new,
            fences: None,
            statements: &[],
            jobs: Vec::new,
            timers: &[],
            start: None,
            on: &[],
            finish: None,
            rights: &[],
            records: &[],
            testimonies: &[],
            retakings: &[],
            prepare: None,
            check: Check::Unsaid,
            notes: None,
            restore: None,
            held: &[],
            prune: None,
            sealing_keys: None,
            guides: &[],
        }
    }
}

/// Reads the steps of an area's schema from the folders `migrations/sqlite` and `migrations/postgres` beside the file.
///
/// Each name begins with its number: `0027_notes`.
#[macro_export]
macro_rules! migrations {
    ($($name:literal),+ $(,)?) => {
        [$($crate::db::Migration {
            number: $crate::db::Migration::number_of($name),
            name: $name,
            sqlite: include_str!(concat!("migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("migrations/postgres/", $name, ".sql")),
        }),+]
    };
}

/// Reads a guide of `docs/guide`, for an area of the crates beside this one.
#[macro_export]
macro_rules! guide {
    ($name:literal, $title:literal) => {
        $crate::area::Guide {
            name: $name,
            title: $title,
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../docs/guide/",
                $name,
                ".md"
            )),
        }
    };
}

/// The areas of a program.
pub struct Areas {
    all: &'static [&'static Area],
    rights: OnceLock<Vec<RightsTable>>,
    migrations: OnceLock<Vec<Migration>>,
    schemes: OnceLock<Vec<&'static dyn TokenScheme>>,
    /// A good answer of each operation by its id, as JSON.
    answers: &'static str,
}

impl Services {
    /// Returns the areas of the running program, which its start gave as an extra; none where it gave none.
    pub fn areas(&self) -> &'static Areas {
        static NONE: Areas = Areas::of(&[]);
        self.extra::<&'static Areas>().copied().unwrap_or(&NONE)
    }
}

impl OperationContext<'_> {
    /// Tells every area that acts on an announcement, in the order of the areas.
    ///
    /// Errors: those of the first that fails or refuses; `Internal` in a program that was started without its areas, where
    /// nobody would hear what has to be ended.
    pub fn announce<A: Announcement>(&mut self, announcement: &A) -> Result<()> {
        self.tell(announcement, &mut ())
    }

    /// Returns what the areas answer that know an answer, in the order of the areas.
    ///
    /// Errors: those of [`OperationContext::announce`].
    pub fn ask<Q: Question>(&mut self, question: &Q) -> Result<Vec<Q::Answer>> {
        let mut answers = Vec::new();
        self.tell(question, &mut answers)?;
        Ok(answers)
    }

    fn tell<A: Announcement>(&mut self, announcement: &A, answers: &mut dyn Any) -> Result<()> {
        let areas = self.services().extra::<&'static Areas>().copied();
        let areas = areas.ok_or_else(|| Error::internal("the program was started without its areas"))?;
        if A::IS_DECISIVE && !areas.has_listener::<A>() {
            return Err(Error::internal(
                "the program was started without the area that decides about this",
            ));
        }
        for listener in areas.listeners() {
            listener.hear(self, announcement, answers)?;
        }
        Ok(())
    }
}

impl Areas {
    /// Returns a program of these areas.
    pub const fn of(all: &'static [&'static Area]) -> Self {
        Self {
            all,
            rights: OnceLock::new(),
            migrations: OnceLock::new(),
            schemes: OnceLock::new(),
            answers: "{}",
        }
    }

    /// Returns the same program with examples of its answers: an object of one good answer of each operation, by its id.
    #[must_use]
    pub const fn answering(mut self, answers: &'static str) -> Self {
        self.answers = answers;
        self
    }

    /// Returns each area in declared order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'static Area> {
        self.all.iter().copied()
    }

    /// Returns the operations, in declared order.
    pub fn registry(&self) -> Registry {
        self.iter()
            .fold(Registry::answering(self.answers), |registry, area| {
                match area.fences {
                    Some(fences) => registry.area((area.operations)(), fences),
                    None => registry.with((area.operations)()),
                }
            })
    }

    /// Makes the scopes of these areas those of the running program; before that nobody may do anything.
    ///
    /// Errors: `Internal` for declarations that are wrong, and in a program that has other scopes.
    pub fn install_scopes(&self) -> Result<()> {
        let toolsets = self.iter().flat_map(|area| area.toolsets).copied().collect();
        let scopes = self.iter().flat_map(|area| area.scopes).copied().collect();
        Scopes::of(toolsets, scopes)?.install()
    }

    /// Returns whether an area listens to announcements of a type.
    pub fn has_listener<A: Announcement>(&self) -> bool {
        self.listeners()
            .any(|listener| listener.hears() == TypeId::of::<A>())
    }

    /// Checks that tokens of different kinds can be told apart.
    ///
    /// Errors: `Internal` for two kinds with one name or one form, for a kind without a form, and for sessions of two areas.
    pub fn check_schemes(&'static self) -> Result<()> {
        let sessions: Vec<_> = self.iter().filter_map(|area| area.sessions).collect();
        if sessions.len() > 1 {
            return Err(Error::internal("two areas have sessions"));
        }
        let mut names: Vec<&str> = Vec::new();
        for one in sessions {
            names.push(one.name());
        }
        let mut forms = Vec::new();
        for scheme in self.schemes().own {
            let Some(form) = scheme.form() else {
                return Err(Error::internal(format!(
                    "the kind of tokens {} has no form",
                    scheme.name()
                )));
            };
            if names.contains(&scheme.name()) || forms.contains(&form) {
                return Err(Error::internal(format!(
                    "the kind of tokens {} cannot be told from another one",
                    scheme.name()
                )));
            }
            names.push(scheme.name());
            forms.push(form);
        }
        Ok(())
    }

    /// Returns the kinds of tokens that call, in the order of the areas.
    pub fn schemes(&'static self) -> Schemes {
        let own = || self.iter().flat_map(|area| area.schemes).copied().collect();
        Schemes {
            own: self.schemes.get_or_init(own),
            delegated: self.iter().find_map(|area| area.sessions),
        }
    }

    /// Returns the schema, in the order of its numbers.
    pub fn migrations(&self) -> &[Migration] {
        self.migrations.get_or_init(|| {
            let mut all: Vec<Migration> = self.iter().flat_map(|area| area.migrations).copied().collect();
            all.sort_by_key(|migration| migration.number);
            all
        })
    }

    /// Returns every list of statements.
    pub fn statements(&self) -> impl Iterator<Item = Statements> {
        self.iter().flat_map(|area| area.statements.iter().copied())
    }

    /// Returns the tables whose rows decide what somebody may do, in alphabetical order.
    pub fn rights(&self) -> &[RightsTable] {
        self.rights.get_or_init(|| {
            let rights = self.iter().flat_map(|area| area.rights);
            let mut all: Vec<RightsTable> = rights.map(|right| right.table).collect();
            all.sort_by_key(|table| table.table);
            all
        })
    }

    /// Returns every other table, and why nobody's rights hang on its rows.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.iter().flat_map(|area| area.records.iter().copied())
    }

    /// Returns what says which changes take away, and of which store.
    pub fn endings(&self, store: StoreOf) -> Endings {
        let rights = self.iter().flat_map(|area| area.rights);
        let tables = rights.filter_map(|right| match right.ends {
            Ends::By(find) => Some((right.table.table, find)),
            Ends::Never(_) => None,
        });
        Endings {
            tables: tables.collect(),
            store,
        }
    }

    /// Returns what the entries of the audit log say of rows.
    pub fn testimonies(&self) -> impl Iterator<Item = &'static Testimony> {
        self.iter().flat_map(|area| area.testimonies.iter().copied())
    }

    /// Returns who acts on announcements, in the order of the areas.
    pub fn listeners(&self) -> impl Iterator<Item = &'static dyn Listener> {
        self.iter().flat_map(|area| area.on.iter().copied())
    }

    /// Returns every way of taking away again.
    pub fn retakings(&self) -> impl Iterator<Item = &'static RepeatedRevocation> {
        self.iter().flat_map(|area| area.retakings)
    }

    /// Returns the handlers of all jobs.
    pub fn jobs(&self) -> Vec<Handler> {
        self.iter().flat_map(|area| (area.jobs)()).collect()
    }
}
