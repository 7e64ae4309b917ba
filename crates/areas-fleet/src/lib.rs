#![forbid(unsafe_code)]
//! Areas of the machines that people work on.

pub mod fleet;
pub mod inventory;
