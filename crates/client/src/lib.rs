#![forbid(unsafe_code)]
//! Everything of the program that talks to a server: the commands of the API, those that are written by hand, and the relay
//! for MCP. Beside them what shows people their own machine, which talks to nobody.
//!
//! The program `provost` adds the commands of an operator to these. Absent on purpose: the areas, a store, Parquet, Rego. What
//! runs on employees' machines and in CI needs none of them, and a test keeps their drivers out of what is linked.

pub mod agent;
mod approvals;
mod backtests;
pub mod bridge;
pub mod cli;
mod commands;
pub mod complete;
mod directory;
pub mod events;
mod export;
mod history;
pub mod hook;
mod jobs;
mod managed_config;
pub mod mcp;
mod policies;
mod posture;
mod resource_credentials;
mod scan;
mod skills;

pub use commands::{add_to, ask, command, main, print_refusal, run};
pub use jobs::arranged;
