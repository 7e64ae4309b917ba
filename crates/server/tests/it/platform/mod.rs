//! The audit log, settings, and what a restore and the keys hold back.

pub mod audit_complete;
pub mod ends;
pub mod keys_beside;
pub mod pages;
pub mod restore_held;
pub mod settings;
pub mod summaries;
