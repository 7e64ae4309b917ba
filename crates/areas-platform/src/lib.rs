#![forbid(unsafe_code)]
//! Areas that everything stands on: the audit log, events, settings, capabilities.

pub mod announcements;
pub mod audit;
pub mod capabilities;
pub mod ends;
pub mod events;
pub mod identity;
pub mod removal;
pub mod settings;
pub mod store;
