//! The way to the server, which who calls brings along.

use provost_words::Secret;
use provost_words::time::Timestamp;
use std::pin::Pin;
use std::time::Duration;

/// One request: a `POST` of JSON, or a `GET` without a body.
#[derive(Debug)]
pub struct Call<'a> {
    /// The method.
    pub method: &'static str,
    /// The path from the root of the server.
    pub path: &'a str,
    /// The token.
    pub token: &'a Secret<String>,
    /// The proof of the key, made for this request.
    pub proof: &'a Secret<String>,
    /// What is sent; nothing with a `GET`.
    pub body: &'a [u8],
    /// The tag of what is known already, with a `GET`.
    pub known: Option<&'a str>,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The server's clock, where the answer says it.
    pub date: Option<Timestamp>,
    /// How long to wait before the next request, where the server asks for it.
    pub retry_after: Option<Duration>,
    /// The tag of the body, where it has one.
    pub etag: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Asks the server, once, and within its own limit of time; redirects are not followed.
pub trait Door {
    /// Returns the URL of the server, without a slash at its end.
    fn url(&self) -> &str;

    /// Sends a request.
    ///
    /// Errors: a sentence about why there is no answer.
    fn send<'a>(&'a self, call: &'a Call<'a>) -> Pin<Box<dyn Future<Output = Result<Reply, String>> + 'a>>;
}
