#![forbid(unsafe_code)]
//! The binary `provost`.

use std::process::ExitCode;

#[cfg(feature = "server")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "server")]
fn main() -> ExitCode {
    provost_server::commands::main()
}

/// Without the server: the client's commands, hooks and the agent.
#[cfg(not(feature = "server"))]
fn main() -> ExitCode {
    provost_client::main()
}
