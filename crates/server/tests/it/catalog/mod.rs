//! Managed settings and skills.

mod assignments;
pub mod managed_config;
pub mod skill_registry;
pub mod skill_tokens;
