//! The numbers of the edge (D1.10, D1.11).

use super::address::Network;
use std::time::Duration;

/// Limits and times of the edge; the default is what the decisions name.
#[derive(Clone, Debug)]
pub struct EdgeSettings {
    /// The largest body of an operation that does not declare another limit. LIMIT: 256 KiB (D1.10).
    pub max_body_bytes: usize,
    /// The longest path with query. LIMIT: 8 KiB (D1.10).
    pub max_target_bytes: usize,
    /// The largest sum over header fields of name, value and four bytes of punctuation. LIMIT: 16 KiB (D1.10).
    pub max_header_bytes: usize,
    /// How long a request head, a TLS handshake, and then the body may each take to arrive.
    pub request_timeout: Duration,
    /// How long the peer may leave the response unread without any progress.
    pub write_timeout: Duration,
    /// How long a connection may be idle.
    pub keep_alive: Duration,
    /// How many requests may be worked on at once; more are answered 503.
    pub max_in_flight: usize,
    /// How long a request waits that is refused because there are too many (ADR 0031).
    pub refusal_pause: Duration,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// Whether callers reach this process by TLS that it terminates itself (adds HSTS).
    pub tls_is_ours: bool,
    /// How long requests that were accepted before a stop may take.
    pub shutdown_grace: Duration,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        Self {
            max_body_bytes: 256 * 1024,
            max_target_bytes: 8 * 1024,
            max_header_bytes: 16 * 1024,
            request_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            max_in_flight: 512,
            refusal_pause: Duration::from_millis(200),
            trusted_proxies: Vec::new(),
            tls_is_ours: false,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
