#![forbid(unsafe_code)]
//! The composition root of Provost: areas, configuration, command line.

pub mod announcements;
pub mod app;
pub mod areas;
pub mod background;
pub mod closing;
pub mod commands;
pub mod config;
pub mod ends;
pub mod held;
pub mod identity;
pub mod mcp;
pub mod modules;
mod opening;
pub mod proofs;
mod readiness;
pub mod removal;
pub mod rotation;
pub mod store;
