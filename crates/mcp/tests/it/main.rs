//! The endpoint over real sockets: raw HTTP, the protocol's own client in both lifecycles, and the bridge.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tasks of a test end with its runtime"
)]

mod area;
mod bridge;
mod calls;
mod clients;
mod doors;
mod fuzz;
mod lists;
mod protocol;
mod support;
