//! Sign-in, sessions, resources and their credentials, and the identities of workloads.

pub mod mcp_sessions;
mod member;
pub mod oauth;
pub mod oauth_sign_in;
pub mod person_gateway;
pub mod resource_canary;
pub mod resource_client;
pub mod resource_credentials;
pub mod resource_secrets;
pub mod workloads;
