//! The client of `provost mcp`: sends the messages of a program on a pipe to a server's MCP endpoint.

use super::connection::{Connection, TokenSource};
use super::failure::Failure;
use super::server::Server;
use super::terminal::Terminal;
use crate::bridge::{HttpSend, bridge};
use bytes::Bytes;
use clap::ArgMatches;
use http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::Incoming;

struct Endpoint {
    server: Server,
    selection: HeaderMap,
}

impl HttpSend for Endpoint {
    type Body = Incoming;

    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Incoming>, String> {
        request.headers_mut().extend(self.selection.clone());
        self.server.stream(request).await
    }
}

/// Returns the headers that say which tools are wanted.
///
/// Errors: usage, for words that no header can hold.
fn selection(matches: &ArgMatches) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if let Some(list) = matches.get_one::<String>("toolsets") {
        let list = HeaderValue::from_str(list).map_err(|_| {
            Failure::usage(
                "--toolsets takes names of toolsets with commas between; the server's 400 lists them",
            )
        })?;
        headers.insert("x-mcp-toolsets", list);
    }
    if matches.get_flag("readonly") {
        headers.insert("x-mcp-readonly", HeaderValue::from_static("true"));
    }
    Ok(headers)
}

/// Relays lines between standard input and output and the server until the input ends.
///
/// Errors: usage, when server or token are not said.
pub async fn relay(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let connection = Connection::resolve_unbound(matches, terminal)?;
    if let TokenSource::SignIn { profile, .. } = &connection.token_source {
        let line = format!("the sign-in of the profile {profile} is for the API, and not for MCP");
        return Err(Failure::usage(line)
            .and(format!(
                "let the MCP client sign in itself: its URL is {}/mcp",
                connection.place.url
            ))
            .and("or name a token: --token-file FILE, PROVOST_TOKEN"));
    }
    let endpoint = Endpoint {
        server: Server::new(&connection)?,
        selection: selection(matches)?,
    };
    let input = tokio::io::BufReader::new(tokio::io::stdin());
    let relayed = bridge(input, tokio::io::stdout(), endpoint).await;
    relayed.map_err(|error| Failure::usage(format!("standard input or output failed: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<HeaderMap, Failure> {
        let words = ["mcp"].iter().chain(words);
        selection(&crate::mcp::command().get_matches_from(words))
    }

    #[test]
    fn a_selection_travels_in_headers() {
        assert!(of(&[]).unwrap().is_empty());
        let headers = of(&["--toolsets", "default,policies", "--readonly"]).unwrap();
        assert_eq!(headers["x-mcp-toolsets"], "default,policies");
        assert_eq!(headers["x-mcp-readonly"], "true");
        assert!(of(&["--toolsets", "a\nb"]).is_err());
    }
}
