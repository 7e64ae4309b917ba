//! All SQL of the directory, by subject.
//!
//! A version is *visible* iff `valid_from <= generation < valid_to`, *live* iff it is visible or staged
//! (`generation < valid_to`), and *dead* otherwise (DI-1).

pub mod clashes;
pub mod ended;
pub mod groups;
pub mod held;
pub mod imports;
mod lists;
pub mod maintenance;
pub mod memberships;
pub mod removals;
pub mod staging;
pub mod users;

pub use lists::padded;
pub(crate) use lists::{list_1, list_16, list_256};

/// The generation of the organization `?1`.
#[macro_export]
macro_rules! generation {
    () => {
        "COALESCE((SELECT generation FROM directory_state WHERE organization_id = ?1), 0)"
    };
}
pub(crate) use generation;

/// Visible, of the row `$row`. The sum keeps the engines from reading the index of all versions.
#[macro_export]
macro_rules! visible {
    ($row:literal) => {
        concat!(
            $row,
            ".valid_from + 0 <= ",
            $crate::generation!(),
            " AND ",
            $row,
            ".valid_to > ",
            $crate::generation!()
        )
    };
}
pub(crate) use visible;

/// Live, of the row `$row`.
macro_rules! live {
    ($row:literal) => {
        concat!($row, ".valid_to > ", $crate::generation!())
    };
}
pub(crate) use live;
