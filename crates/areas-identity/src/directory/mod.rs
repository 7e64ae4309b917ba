//! Users and groups of an organization, with memberships, and their import from files (D6, D5.9,
//! D5.10, D13).
//!
//! ```text
//! user    active ⇄ suspended        * → deleted
//! group   there → deleted
//! import  open → applying → applied     open, applying → aborting → aborted
//! ```
//!
//! Rows are versions. A version is visible iff `valid_from <= generation < valid_to`; an organization has one current
//! generation. An import writes versions of a generation that nobody else has, and its swap moves the generation.
//! Operations change rows in place, both the visible version of a record and the one that an open import staged.
//!
//! ```text
//! generation 4                 import of generation 5           swap
//! a  [4, ∞)                    a [4, 5)  a' [5, ∞)              4 → 5: a' is visible, a is dead
//! ```
//!
//! INVARIANT DI-1: of one record at most one version is visible and at most one is staged.
//! INVARIANT DI-2: nothing of an import is visible before its swap, and everything behind it; the swap is one row.
//! INVARIANT DI-3: a refused line writes nothing, and an unchanged one stages nothing.
//! INVARIANT DI-4: what an operation changes while an import is open is not lost with the swap: suspensions and
//! deletions whatever the file says, anything else unless a later line says otherwise.
//! INVARIANT DI-5: nobody gives, re-points or revives what could do more than they can: neither a role, nor the login
//! name, address or external id of a user that has one, nor its life after a suspension (D3.3).
//! INVARIANT DI-6: a line of a file lifts no suspension that the API made.
//! INVARIANT DI-7: a file of which a line was refused is applied only if the import says partial, and then removes
//! nobody: mode replace is never partial.
//! INVARIANT DI-8: an organization has one unfinished import at most.
//! INVARIANT DI-9: deleting a user or group ends its memberships and its assignments.
//! INVARIANT DI-10: a line that would need more than its caller holds changes nothing but what it takes away; the
//! rest is held, and made later of the very record that the line found, or not at all.
//! INVARIANT DI-11: a record that comes back within 90 days has its old id and nothing that gives: no role, session,
//! membership or assignment; one with another external id is somebody else.
//! INVARIANT DI-13: what is deleted or withdrawn says before and afterwards which policies name it, each loss is an
//! event, and lists of policies show it.
//! INVARIANT DI-12: a file that would remove much of a directory is applied only with the number of what goes.
//! INVARIANT DI-14: by the API, and by settling held changes, no user gets an e-mail address that is a login name or
//! address of another user of the directory, nor a login name that is another's address.
//! INVARIANT DI-15: no file gives a user a new address that is a word of another user of the directory when the file
//! is applied; that is judged over the whole file, whatever the order of its lines.
//! INVARIANT DI-16: who deletes a record is told by id of what names it only as far as they may read it, and of the
//! rest how many there are.
//!
//! Absent on purpose: roles in files (rights are given one by one, by somebody who holds them); renaming by a file without
//! an external id (a new login name is a new user then); two records of a file that swap their names; groups in groups.

mod deciders;
mod ends;
pub mod fences;
mod groups;
mod hands;
mod held;
mod imports;
pub mod model;
mod restored;
mod returning;
mod rights;
pub(crate) mod store;
mod users;

pub(crate) use crate::joined_user;
pub use deciders::{SignInsAsked, is_one as is_decider, standing as standing_of, who_they_are};
pub use hands::{hands_since, note_hand, note_hand_on_everybody};
pub use imports::tidy;
pub use rights::{HeldLink, RoleGiven};
pub use store::users::{Principal, principal, with_role, with_role_in};

use provost_kernel::Result;
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Role, Toolset, scope};
use provost_kernel::db::{Statement, Tx};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::page::{Cursor, Limit};
use schemars::JsonSchema;
use serde::Deserialize;

/// The roles that may look.
const READERS: &[Role] = &[Role::Admin, Role::Operator, Role::Auditor];

/// Every list of statements of the area.
const STATEMENTS: [&[&Statement]; 14] = [
    deciders::STATEMENTS,
    hands::STATEMENTS,
    ends::STATEMENTS,
    restored::STATEMENTS,
    store::users::STATEMENTS,
    store::groups::STATEMENTS,
    store::memberships::STATEMENTS,
    store::imports::STATEMENTS,
    store::staging::STATEMENTS,
    store::maintenance::STATEMENTS,
    store::held::STATEMENTS,
    store::ended::STATEMENTS,
    store::removals::STATEMENTS,
    store::clashes::STATEMENTS,
];

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 19,
        name: "directory",
        says: "Users, groups and memberships, and their import from files.",
        title: "Directory",
        holds: "users and groups",
    }],
    scopes: &[
        scope("directory:read").readers(),
        scope("directory:write").lasting(),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0004_directory",
        "0015_directory_return",
        "0020_import_warnings",
        "0048_directory_hands"
    ],
    statements: &STATEMENTS,
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    records: &[
        (
            "directory_hands",
            "notes of what was done, which keep somebody from voting and give nobody anything",
        ),
        (
            "directory_import_names",
            "an import that is not finished shows nothing",
        ),
        ("directory_import_refusals", "sentences about a file"),
        ("directory_import_warnings", "sentences about a file"),
        (
            "directory_imports",
            "an import that is not finished shows nothing",
        ),
    ],
    testimonies: &[&fences::USERS],
    jobs: || vec![imports::HANDLER],
    timers: &[every(60, "imports", |kernel, _| {
        Box::pin(async move { imports::tidy(&kernel).await.map(drop) })
    })],
    held: &[restored::KIND],
    prune: Some(hands::forget),
    check: Check::Nothing("versions, memberships and generations are held by keys and checks of the schema"),
    guides: &[provost_kernel::guide!("directory", "Users and groups")],
    floor: 2,
    ..Area::named(
        "directory",
        "Users and groups of an organization, and their import from files",
    )
};

fn operations() -> Vec<Entry> {
    let mut all = users::operations();
    all.extend(groups::operations());
    all.extend(imports::operations());
    all.extend(held::operations());
    all
}

/// Returns the ids of the groups that a user is in, sorted.
pub fn groups_of(tx: &mut Tx<'_>, org: &str, user_id: &str) -> Result<Vec<String>> {
    store::memberships::of_user(tx, org, user_id)
}

/// Says whether there is a group of this id.
pub fn has_group(tx: &mut Tx<'_>, org: &str, group_id: &str) -> Result<bool> {
    store::groups::is_there(tx, org, group_id)
}

/// The query of lists that nothing narrows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct PageQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}
