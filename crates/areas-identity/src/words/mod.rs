//! Words: whom and what the texts of events and definitions mean (ADR 0034).
//!
//! A word is what an event or a definition calls a user, a group, a service account, a skill or a resource: an id, a login
//! name, an address, a name, a word that an administrator mapped. Words are compared by their match key. The same question
//! is asked for live decisions, imports, telemetry, backtests and definitions; the answer is a set of records.
//!
//! INVARIANT WD-1: a word of an event or a definition means every record of its kind that has its match key, in
//! whatever state; only where none has it, those that had it when they were deleted, less than 90 days ago.
//! INVARIANT WD-2: a row that holds a word holds its match key; rows from before there were match keys, or with keys
//! of another version, get them before the first request.
//! INVARIANT WD-3: deleting a record keeps its words for 90 days, in the unit that deletes it or clears it away.
//! INVARIANT WD-4: a word is mapped to one user at most, never to one who shares it with another, and the audit log
//! names word and user.
//! INVARIANT WD-5: what is claimed of the groups of somebody unknown holds for nobody for sure, and groups of
//! somebody of whom nobody can say who it is are missing: neither opens an exception or an allow list, or passes by a
//! guard.
//! INVARIANT WD-6: the groups of a user who came back are missing for 90 days, or until somebody has set them, if it
//! was in groups when it was deleted.
//!
//! The area owns the tables of ended words, mappings and counts. What it asks of other areas' tables stands in `store.rs`.
//!
//! Absent on purpose: guesses. A word that nearly matches, a display name, a prefix, a former login name mean nobody.

mod ends;
pub mod fences;
mod find;
mod fold;
mod former;
mod identities;
mod register;
mod store;
mod twice;
mod unresolved;

pub use find::{NamedRecord, WordMatches, WordQuery, find, key_of, living};
pub use fold::fold;
pub use former::{GIVEN, end_memberships, former_groups, settle_imported, settle_memberships};
pub use register::register;
pub use twice::addresses_of_others;
pub use unresolved::{Counts, UnresolvedReason, flush, of_last_day};

use provost_areas_platform::announcements::SubjectKind;
use provost_kernel::area::{Area, Check, every};
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::Statement;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result, SureTime, params};

/// How long the words of a deleted record are remembered. Units: seconds. Source: ADR 0034.
pub const REMEMBERED_SECS: i64 = 90 * 86_400;

/// What a word can name that has records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A user of the directory.
    User,
    /// A group of the directory.
    Group,
    /// A service account.
    ServiceAccount,
    /// A skill of the registry.
    Skill,
    /// A resource.
    Resource,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::User,
        Self::Group,
        Self::ServiceAccount,
        Self::Skill,
        Self::Resource,
    ];

    /// Returns the word in the store, in metrics and on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
            Self::ServiceAccount => "service_account",
            Self::Skill => "skill",
            Self::Resource => "resource",
        }
    }

    /// Returns who can be named so, unless it is something that nothing is assigned to.
    pub const fn subject(self) -> Option<SubjectKind> {
        match self {
            Self::User => Some(SubjectKind::User),
            Self::Group => Some(SubjectKind::Group),
            Self::ServiceAccount => Some(SubjectKind::ServiceAccount),
            Self::Skill | Self::Resource => None,
        }
    }

    /// Returns the kind of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl From<SubjectKind> for Kind {
    fn from(kind: SubjectKind) -> Self {
        match kind {
            SubjectKind::User => Self::User,
            SubjectKind::Group => Self::Group,
            SubjectKind::ServiceAccount => Self::ServiceAccount,
        }
    }
}

/// Every list of statements of the area.
const STATEMENTS: [&[&Statement]; 6] = [
    store::STATEMENTS,
    fold::STATEMENTS,
    former::STATEMENTS,
    identities::STATEMENTS,
    twice::STATEMENTS,
    unresolved::STATEMENTS,
];

/// The area.
pub static AREA: Area = Area {
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0013_match_keys"],
    statements: &STATEMENTS,
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    records: &[(
        "unresolved_events",
        "how many events named nobody, for whoever reads a policy",
    )],
    timers: &[every(60, "unresolved", |kernel, _| {
        Box::pin(async move { flush(&kernel).await })
    })],
    finish: Some(|kernel| Box::pin(async move { unresolved::write_at_the_end(&kernel).await })),
    prepare: Some(|conn, _| fold::fold(conn)),
    check: Check::Nothing("a word that is written without its match key is folded at the next start"),
    notes: Some(addresses_of_others),
    prune: Some(prune),
    floor: 2,
    ..Area::named("words", "Whom and what the texts of events and definitions mean")
};

fn operations() -> Vec<Entry> {
    identities::operations()
}

/// Keeps the words of a record that is being deleted; those of users and groups are kept by [`end_user`] and
/// [`end_group`].
pub fn end<'a>(
    ctx: &mut OperationContext<'_>,
    kind: Kind,
    id: &'a str,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    for word in words.into_iter().chain([id]) {
        store::end(ctx, kind, id, &key_of(kind, word), word)?;
    }
    Ok(())
}

/// Keeps the words of a user, before the rows of its versions go.
pub fn end_user(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&store::END_USER, params![org, id, now])
}

/// Keeps the words of a group, before the rows of its versions go.
pub fn end_group(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&store::END_GROUP, params![org, id, now])
}

/// Forgets what nobody asks about any more, in the unit of the reconciler.
fn prune(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let before = now.earlier_by(REMEMBERED_SECS);
    ctx.prune(&store::PRUNE_ENDED, params![before.instant(), PRUNED_ROWS])?;
    ctx.queue(&store::PRUNE_MAPPINGS, params![])?;
    unresolved::prune(ctx, now)
}
