#![forbid(unsafe_code)]
//! The composition root of Provost: areas, configuration, command line.
//!
//! Without the feature `server` nothing of it is there: the program is the client then, with the agent (ADR 0114).
#![cfg(feature = "server")]

pub mod app;
pub mod areas;
pub mod background;
pub mod closing;
pub mod commands;
pub mod config;
pub mod mcp;
mod opening;
mod pages;
pub mod proofs;
mod readiness;
pub mod rotation;
