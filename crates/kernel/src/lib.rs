#![forbid(unsafe_code)]
//! Mechanisms of Provost.
//!
//! The kernel knows how a thing is exposed, authorized, stored, audited and repeated safely. It knows no
//! area's word: what a service account or a backtest is, the areas say.

pub mod announcement;
pub mod answer;
pub mod area;
pub mod arrival;
pub mod audit;
pub mod auth;
pub mod checkpoint;
pub mod context;
pub mod credential;
pub mod db;
pub mod dispatch;
pub mod doubt;
pub mod effects;
pub mod ends;
pub mod event;
pub mod expose;
pub mod fence;
pub mod held;
pub mod hex;
pub mod idempotency;
pub mod job;
pub mod jobs;
pub mod kernel;
pub mod keys;
pub mod listing;
pub mod maintenance;
pub mod manager;
pub mod merkle;
pub mod mutation_metadata;
pub mod operation;
pub mod outbox;
pub mod page;
pub mod patch;
pub mod proofs;
pub mod rate;
pub mod readers;
pub mod readiness;
#[cfg(test)]
mod schedules;
pub mod second_person;
pub mod services;
pub mod supervisor;
mod sync;
pub mod threads;
pub mod token;
pub mod witness;
pub mod work;
pub mod write_behind;

/// The vocabulary without drivers, which stands in a crate of its own.
pub use provost_words::{dsse, durable, entropy, error, id, json, secret, text, time, word};

pub use context::OperationContext;
pub use doubt::SureTime;
pub use error::{Code, Error, Result};
pub use kernel::Kernel;
pub use secret::Secret;
pub use services::Services;
pub use time::Timestamp;
