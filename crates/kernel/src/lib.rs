#![forbid(unsafe_code)]
//! Vocabulary and mechanisms of Provost.
//!
//! The kernel knows how a thing is exposed, authorized, stored, audited and repeated safely. It knows no
//! area's word: what a service account or a backtest is, the areas say.

pub mod checkpoint;
pub mod db;
pub mod entropy;
pub mod error;
pub mod expose;
pub mod id;
pub mod json;
pub mod keys;
pub mod merkle;
pub mod page;
pub mod secret;
pub mod text;
pub mod rate;
pub mod secret;
pub mod supervisor;
pub mod time;
pub mod token;

pub use error::{Code, Error, Result};
pub use secret::Secret;
pub use time::Timestamp;
