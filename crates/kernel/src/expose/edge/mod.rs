//! The HTTP edge: everything between the socket and the router, the same for every route.
//!
//! [`serve`] owns sockets: it accepts, shakes hands (TLS), checks every HTTP/1 head before the HTTP library
//! sees it, and closes what is slow. [`Edge::wrap`] owns requests: it mints the request id, applies the
//! size limits, sheds load, catches panics, and makes every refusal an envelope (D1.4 step 1, D1.5, D1.8).
//! What a network may have at a time without a valid token is a share of its own, in both (ADR 0071).
//! A router that is served must have gone through `wrap`.
//!
//! Absent on purpose: CORS (the product is headless), compression, upgrades, HTTP/1 keep-alive after a
//! chunked request (`guard.rs` says why).

mod address;
mod alarm;
mod body;
mod callers;
mod guard;
mod head;
mod inbox;
mod layer;
mod linger;
mod link;
mod respond;
mod serve;
mod settings;
mod share;
mod tls;
mod visit;

#[cfg(test)]
mod tests;

pub use address::{ClientIp, Network, Peer, UnknownProxy};
pub use body::{check_declared, read_body};
pub use layer::{Edge, RequestId};
pub use respond::{Page, respond};
pub use serve::serve;
pub use settings::{Allowance, EdgeSettings};
pub use tls::{Certificates, Tls};
