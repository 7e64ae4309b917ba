//! The log: standard error, for people on a terminal, JSON for everything else.

use super::failure::Failure;
use crate::config::{Log, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// The target of the lines that drivers wait for; no filter takes them out.
pub const ANNOUNCE: &str = "provost::announce";

/// What the server logs when nobody says what.
pub const SERVER: &str = "info,rmcp=warn";

/// What other commands log.
pub const BRIEF: &str = "warn,provost::fatal=off";

/// Starts the log.
///
/// Errors: a filter that cannot be understood.
pub fn start(log: &Log, default_filter: &str) -> Result<(), Failure> {
    let words = log.filter.as_deref().unwrap_or(default_filter);
    let filter = EnvFilter::try_new(words).ok().and_then(|filter| {
        let announced = format!("{ANNOUNCE}=info").parse().ok()?;
        Some(filter.add_directive(announced))
    });
    let filter = filter.ok_or_else(|| {
        Failure::usage(format!(
            "log.filter: {words:?} is no filter; try info, warn or provost_kernel=debug"
        ))
    })?;
    let is_terminal = std::io::stderr().is_terminal();
    let is_human = match log.format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => is_terminal,
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = if is_human {
        lines
            .with_ansi(is_terminal)
            .with_target(false)
            .finish()
            .try_init()
    } else {
        lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .finish()
            .try_init()
    };
    started.map_err(|_| Failure::new("the log was started twice"))
}
