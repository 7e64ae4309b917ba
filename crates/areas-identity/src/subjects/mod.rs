//! Who can be named: users, groups and service accounts, found by their exact names (specification §2.5, §4.2;
//! D6; client contract §6).
//!
//! INVARIANT SU-1: a name resolves to an active subject of this organization whose folded name equals the folded
//! request, and only if there is exactly one (D6.2, D6.3, D6.6).
//! INVARIANT SU-2: what is not resolved is omitted, and nothing says why (D6.4).
//! INVARIANT SU-3: an answer echoes names byte by byte, in the order of their first occurrence, once each (D6.5,
//! D6.6).
//! INVARIANT SU-4: names that are asked for are recorded as keyed hashes alone.
//! INVARIANT SU-5: an operation gives a group or a service account no name that another subject has (D6.6).
//!
//! The area owns no table. The areas that do say in macros beside their statements what may be asked of them.
//!
//! Absent on purpose: prefixes, aliases and display names (a gateway that guesses grants the wrong budget).

pub mod fences;
mod lost;
mod model;
mod reference;
mod resolve;
mod store;

pub use lost::{
    DeletionAnswer, LostReference, LostWith, Mention, Record, losing, lost_with, shown, tell, weighed,
};
pub use provost_areas_platform::announcements::SubjectKind;
pub use reference::{AskedKind, ReferenceAsked, ReferenceFound};
pub use store::{missing, name_taken};

use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Role, scope};
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    scopes: &[scope("llm_gateway:resolve")
        .says("Find out who people and groups are by their names")
        .held_by(&[Role::Operator])],
    operations,
    fences: Some(&fences::FENCES),
    statements: &[store::STATEMENTS],
    check: Check::Nothing("it owns no table"),
    floor: 2,
    ..Area::named(
        "subjects",
        "Who can be named: users, groups and service accounts, found by their exact names",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<resolve::ResolveSubjects>(),
        Entry::of::<reference::ResolveReference>(),
    ]
}
