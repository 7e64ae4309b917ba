#![forbid(unsafe_code)]
//! Areas of what is handed out: skills and managed settings.

pub mod assignments;
pub mod managed_config;
pub mod skill_registry;
