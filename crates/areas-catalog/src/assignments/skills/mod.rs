//! Which skills devices get.

pub mod assign;
pub mod own;
pub mod store;
