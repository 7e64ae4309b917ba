//! The client of `provost mcp`: sends the messages of a program on a pipe to a server's MCP endpoint.

use super::connection::Connection;
use super::failure::Failure;
use super::server::Server;
use super::terminal::Terminal;
use crate::bridge::{HttpSend, bridge};
use bytes::Bytes;
use clap::ArgMatches;
use http::{Request, Response};
use hyper::body::Incoming;

struct Endpoint(Server);

impl HttpSend for Endpoint {
    type Body = Incoming;

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Incoming>, String> {
        self.0.stream(request).await
    }
}

/// Relays lines between standard input and output and the server until the input ends.
///
/// Errors: usage, when server or token are not said.
pub async fn relay(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let endpoint = Endpoint(Server::new(&Connection::resolve_unbound(matches, terminal)?)?);
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    let relayed = bridge(input, tokio::io::stdout(), endpoint).await;
    relayed.map_err(|error| Failure::usage(format!("standard input or output failed: {error}")))
}
