//! The endpoint over real sockets: raw HTTP, the protocol's own client in both lifecycles, and the bridge.

mod area;
mod bridge;
mod calls;
mod clients;
mod doors;
mod lists;
mod protocol;
mod support;
