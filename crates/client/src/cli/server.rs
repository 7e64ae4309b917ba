//! One request to a server: TLS, time limit, size limit; no redirects, no retries.
//!
//! Keeps CL-5.

use super::connection::Connection;
use super::failure::Failure;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use provost_outbound::{Patience, Pool, client_config, pool, roots_of_file, system_roots};
use provost_words::Secret;
use rustls::RootCertStore;
use std::error::Error;
use std::time::Duration;

/// LIMIT: an answer is held in memory before it is shown. The largest are pages of a list, a few MiB.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// LIMIT: what somebody asked to have: an archive, a page of an export.
const MAX_DOWNLOAD_BYTES: usize = 256 << 20;
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(10),
    idle: Duration::from_secs(90),
};

/// A server that can be asked.
pub(super) struct Server {
    client: Pool<Full<Bytes>>,
    url: String,
    authorization: HeaderValue,
    timeout: Duration,
}

/// A request that can be sent any number of times.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Path and query, from the root of the API.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    /// The answer is content that was asked for, which may be large.
    pub(super) is_download: bool,
}

/// A complete answer.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// Nothing was sent, and trying again is no use.
    NotSent(String),
    /// Nobody listens now; nothing was sent.
    NobodyThere(String),
    /// The request may have reached the server.
    Lost(String),
    /// The server answered, with more than is read: the next time it would as well.
    TooLong(String),
}

impl Server {
    pub(super) fn new(connection: &Connection) -> Result<Self, Failure> {
        let tls = if connection.url.starts_with("https:") {
            trusted(connection)?
        } else {
            RootCertStore::empty()
        };
        let config = client_config(tls);
        let config = config.map_err(|error| Failure::usage(format!("TLS cannot be set up: {error}")))?;
        let client = pool(config, PATIENCE);
        let authorization = authorization(&connection.token)?;
        Ok(Self {
            client,
            url: connection.url.clone(),
            authorization,
            timeout: connection.timeout,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns how long one request may take, its repetitions and the waits between them included.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends the request once and reads the whole answer, however long that takes: whoever asks has the clock.
    pub(super) async fn ask(&self, call: &Call) -> Result<Reply, Silence> {
        let request = self
            .request(call)
            .map_err(|error| Silence::NotSent(error.to_string()))?;
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| silence(&error))?;
        let (parts, body) = response.into_parts();
        let most = if call.is_download {
            MAX_DOWNLOAD_BYTES
        } else {
            MAX_ANSWER_BYTES
        };
        let body = Limited::new(body, most).collect().await;
        let body = body
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    return Silence::TooLong(format!("the answer is longer than {} MiB", most >> 20));
                }
                Silence::Lost(cause(error.as_ref()))
            })?
            .to_bytes();
        Ok(Reply {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    }

    /// Sends a request for a path from the root of the server, and returns the answer while it comes in.
    ///
    /// Errors: a sentence about why there is none.
    pub(super) async fn stream(&self, request: Request<Bytes>) -> Result<Response<Incoming>, String> {
        let (mut parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        parts.uri = format!("{}{target}", self.url)
            .parse()
            .map_err(|_| format!("{} is not the URL of a server", self.url))?;
        parts
            .headers
            .insert(header::AUTHORIZATION, self.authorization.clone());
        let request = Request::from_parts(parts, Full::new(body));
        // What is sent over an answer may take its time; that there is one may not.
        let answer = tokio::time::timeout(self.timeout, self.client.request(request)).await;
        let silent = || format!("{} did not answer within {} s", self.url, self.timeout.as_secs());
        answer.map_err(|_| silent())?.map_err(|error| {
            format!(
                "{} cannot be reached: {}; is the server running?",
                self.url,
                cause(&error)
            )
        })
    }

    fn request(&self, call: &Call) -> http::Result<Request<Full<Bytes>>> {
        let uri = format!("{}{}", self.url, call.target);
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        if let Some(headers) = request.headers_mut() {
            headers.extend(call.headers.clone());
            // A request may carry a token of its own, such as a gateway token.
            headers
                .entry(header::AUTHORIZATION)
                .or_insert_with(|| self.authorization.clone());
            headers.insert(
                header::USER_AGENT,
                HeaderValue::from_static(concat!("provost/", env!("CARGO_PKG_VERSION"))),
            );
            if call.body.is_some() {
                headers
                    .entry(header::CONTENT_TYPE)
                    .or_insert(HeaderValue::from_static("application/json"));
            }
        }
        request.body(Full::new(call.body.clone().unwrap_or_default()))
    }
}

/// Returns the header that carries a token.
pub(super) fn authorization(token: &Secret<String>) -> Result<HeaderValue, Failure> {
    let bearer = Secret::new(format!("Bearer {}", token.expose()));
    let mut authorization = HeaderValue::from_str(bearer.expose())
        .map_err(|_| Failure::usage("the token has characters that no token has"))?;
    authorization.set_sensitive(true);
    Ok(authorization)
}

fn trusted(connection: &Connection) -> Result<RootCertStore, Failure> {
    if let Some(path) = &connection.ca_cert {
        let roots = roots_of_file(path);
        return roots.map_err(|error| Failure::usage(format!("{}: {error}", path.display())));
    }
    let roots = system_roots();
    if roots.is_empty() {
        return Err(Failure::usage(
            "this system has no trusted certificates: name them with --ca-cert FILE",
        ));
    }
    Ok(roots)
}

fn silence(error: &hyper_util::client::legacy::Error) -> Silence {
    let words = cause(error);
    if !error.is_connect() {
        return Silence::Lost(words);
    }
    // Only a server that is just starting makes waiting worthwhile; a name or a certificate stays wrong.
    if is_refused(error) {
        Silence::NobodyThere(words)
    } else {
        Silence::NotSent(words)
    }
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    use std::io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut, UnexpectedEof,
    };
    let mut next = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if matches!(
            kind,
            Some(ConnectionAborted | ConnectionRefused | ConnectionReset | TimedOut | UnexpectedEof)
        ) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns the innermost cause; the outer ones say "client error".
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
