//! `provost openapi`: the description of the API, without a server.

use super::failure::Outcome;
use super::show;
use crate::app;
use provost_kernel::expose::{mcp, openapi};

/// Print the OpenAPI 3.1 document of the API, or the descriptions of its MCP tools.
#[derive(clap::Parser)]
#[command(
    name = "openapi",
    after_help = "Examples:
  provost openapi > headless-v1.json
  provost openapi --mcp"
)]
pub struct OpenApi {
    /// Print the MCP tools instead
    #[arg(long)]
    mcp: bool,
}

impl OpenApi {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let registry = app::registry()?;
        let document = if self.mcp {
            serde_json::Value::Array(mcp::tools(&registry))
        } else {
            openapi::document(&registry)
        };
        show::out(&format!("{document:#}\n"))
    }
}
