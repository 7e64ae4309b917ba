//! `provost history adopt`: segments from another folder.

mod adopt;

pub use adopt::Adopt;
