//! `provost openapi`: the description of the API, without a server.

use super::failure::Outcome;
use super::show;
use crate::app;
use provost_kernel::expose::{mcp, openapi};

/// Print the OpenAPI document of the API, or the descriptions of its MCP tools.
#[derive(clap::Parser)]
#[command(
    name = "openapi",
    after_help = "Examples:
  provost openapi > headless-v1.json
  provost openapi --spec 3.0 > headless-v1-3.0.json
  provost openapi --mcp"
)]
pub struct OpenApi {
    /// Print the MCP tools instead
    #[arg(long)]
    mcp: bool,
    /// Print it in the form of this version of OpenAPI; 3.0 is for generators that read no newer one, and says less
    #[arg(long, value_enum, default_value = "3.1", conflicts_with = "mcp")]
    spec: Spec,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Spec {
    #[value(name = "3.1")]
    V3_1,
    #[value(name = "3.0")]
    V3_0,
}

impl OpenApi {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let registry = app::registry()?;
        let document = if self.mcp {
            serde_json::Value::Array(mcp::tools(&registry))
        } else {
            let document = openapi::document(&registry);
            match self.spec {
                Spec::V3_1 => document,
                Spec::V3_0 => openapi::as_3_0(&document),
            }
        };
        show::out(&format!("{document:#}\n"))
    }
}
