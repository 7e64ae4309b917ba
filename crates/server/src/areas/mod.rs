//! The areas: one folder each, one line each.
//!
//! Deleting an area's folder and its line leaves a program that compiles, apart from areas that name it.

pub mod audit;
pub mod capabilities;
pub mod events;
pub mod service_accounts;
pub mod settings;
