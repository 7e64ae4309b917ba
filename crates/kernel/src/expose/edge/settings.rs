//! The numbers of the edge (D1.10, D1.11).

use super::address::Network;
use std::time::Duration;

/// What one network, an IPv4 address or an IPv6 /64, may have at a time without having shown a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Requests that are worked on.
    pub requests: usize,
    /// Connections.
    pub connections: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            requests: 32,
            connections: 64,
        }
    }
}

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
    /// How many of these places are for callers alone that were recognized within the last ten minutes.
    pub kept_for_known: usize,
    /// What a network may have without a valid token; none where nothing limits it. Peers in `trusted_proxies` have no share: the
    /// networks that they speak for have.
    pub allowance: Option<Allowance>,
    /// What paths begin with whose requests have places and shares of their own: whoever fills those takes none of the others.
    pub apart: &'static [&'static str],
    /// How many requests for those may be worked on at once.
    pub max_apart: usize,
    /// Paths that are no part of that count: whoever watches over the server hears of it, also while it is full.
    pub uncounted: &'static [&'static str],
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
            kept_for_known: 64,
            allowance: Some(Allowance::default()),
            apart: &[],
            max_apart: 128,
            uncounted: &[],
            refusal_pause: Duration::from_millis(200),
            trusted_proxies: Vec::new(),
            tls_is_ours: false,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
