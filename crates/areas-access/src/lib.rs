#![forbid(unsafe_code)]
//! Areas of what may be reached: sessions, sign-in, resources and their credentials.

mod jwks;
pub mod mcp_sessions;
pub mod oauth;
pub mod resource_credentials;
pub mod resources;
pub mod workload_trusts;
