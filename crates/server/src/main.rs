#![forbid(unsafe_code)]
//! The binary `provost`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    provost_server::commands::main()
}
