//! The real binary, as operators and drivers run it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[path = "binary/agent.rs"]
mod agent;
#[path = "binary/approvals.rs"]
mod approvals;
#[path = "binary/audit.rs"]
mod audit;
#[path = "binary/backtests.rs"]
mod backtests;
#[path = "binary/backup_series.rs"]
mod backup_series;
#[path = "binary/canaries.rs"]
mod canaries;
#[path = "binary/closing.rs"]
mod closing;
#[path = "binary/decisions.rs"]
mod decisions;
#[path = "binary/demo.rs"]
mod demo;
#[path = "binary/descent.rs"]
mod descent;
#[path = "binary/event_epochs.rs"]
mod event_epochs;
#[path = "binary/export.rs"]
mod export;
#[path = "binary/files.rs"]
mod files;
#[path = "binary/first_start.rs"]
mod first_start;
#[path = "binary/harness.rs"]
mod harness;
#[path = "binary/history.rs"]
mod history;
#[path = "binary/hooks.rs"]
mod hooks;
#[path = "binary/judging.rs"]
mod judging;
#[path = "binary/keys.rs"]
mod keys;
#[path = "binary/keys_full.rs"]
mod keys_full;
#[path = "binary/log.rs"]
mod log;
#[path = "binary/login.rs"]
mod login;
#[path = "binary/lost.rs"]
mod lost;
#[path = "binary/monitoring.rs"]
mod monitoring;
#[path = "binary/policy_files.rs"]
mod policy_files;
#[path = "binary/refusals.rs"]
mod refusals;
#[path = "binary/skills.rs"]
mod skills;
#[path = "binary/store.rs"]
mod store;
#[path = "binary/strangers.rs"]
mod strangers;
#[path = "binary/telemetry.rs"]
mod telemetry;
#[path = "binary/tls.rs"]
mod tls;
#[path = "binary/unreachable.rs"]
mod unreachable;
