//! Policies, decisions, history, telemetry and backtests.

pub mod approvals;
pub mod approvals_by_hand;
pub mod approvals_guards;
pub mod approvals_hands;
pub mod approvals_hook;
pub mod approvals_operations;
pub mod approvals_people;
pub mod approvals_routes;
pub mod backtests;
pub mod backtests_inspect;
pub mod backtests_worker;
pub mod decisions;
pub mod history;
pub mod history_store;
pub mod module_workers;
pub mod otlp;
pub mod otlp_decided;
pub mod policies;
pub mod policies_client;
pub mod policies_definitions;
pub mod policies_plans;
pub mod policies_trial;
pub mod policies_versions;
pub mod policies_warnings;
pub mod violations;
pub mod violations_bounds;
