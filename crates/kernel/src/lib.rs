#![forbid(unsafe_code)]
//! Vocabulary and mechanisms of Provost.
//!
//! The kernel knows how a thing is exposed, authorized, stored, audited and repeated safely. It knows no
//! area's word: what a service account or a backtest is, the areas say.

pub mod entropy;
pub mod error;
pub mod id;
pub mod secret;
pub mod time;

pub use error::{Code, Error, Result};
pub use secret::Secret;
pub use time::Timestamp;
