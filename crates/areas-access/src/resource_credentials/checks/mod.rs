//! Checks: proof that a credential's secret can be had, without showing it.
//!
//! ```text
//! pending → succeeded | failed        gone after 7 days
//! ```
//!
//! A check is a durable job: whichever server claims it asks, and a server that dies leaves it to the next.

mod get;
mod job;
pub mod model;
mod verify;

pub use get::GetCheck;
pub use job::handler;
pub use verify::VerifyCredential;
