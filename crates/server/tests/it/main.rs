//! Scenarios over the whole application, in process, on both engines.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod accounts;
mod areas;
mod audit_complete;
mod backtests;
mod backtests_worker;
mod clock;
mod contract;
mod decisions;
mod directory;
mod directory_import;
mod escalation;
mod history;
mod history_store;
mod idempotency;
mod input;
mod invariants;
mod later;
mod managed_config;
mod mcp_sessions;
mod model;
mod oauth;
mod openapi;
mod otlp;
mod permissions;
mod policies;
mod policies_client;
mod policies_definitions;
mod policies_plans;
mod policies_versions;
mod replay_cell;
mod resource_canary;
mod resource_client;
mod resource_credentials;
mod resource_secrets;
mod revocation;
mod rotation;
mod samples;
mod schema_parity;
mod skill_registry;
mod skill_tokens;
mod statements;
mod subjects;
mod support;
mod writer;
