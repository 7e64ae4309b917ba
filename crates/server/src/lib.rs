#![forbid(unsafe_code)]
//! The composition root of Provost: areas, configuration, command line.

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
