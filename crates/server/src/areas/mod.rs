//! The areas: one folder each, one line each.
//!
//! Deleting an area's folder and its line leaves a program that compiles, apart from areas that name it.

pub mod audit;
pub mod backtests;
pub mod capabilities;
pub mod decisions;
pub mod directory;
pub mod events;
pub mod history;
pub mod managed_config;
pub mod mcp_sessions;
pub mod oauth;
pub mod otlp;
pub mod policies;
pub mod resource_credentials;
pub mod resources;
pub mod restore;
pub mod service_accounts;
pub mod settings;
pub mod skill_registry;
pub mod subjects;
pub mod words;
