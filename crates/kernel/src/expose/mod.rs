//! The derivations: what one declaration becomes on each surface.

pub mod edge;
pub mod http;
pub mod mcp;
pub mod openapi;
mod template;
