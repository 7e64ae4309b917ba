//! One request to a server: TLS, time limit, size limit; no redirects, no retries.
//!
//! Keeps CL-5.

use super::connection::{Connection, Place, TokenSource};
use super::failure::Failure;
use super::proxy::Proxy;
use super::send::unanswered;
use super::sign_in::Renewal;
use super::trouble::{self, Addressee, Trouble};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::ResponseFuture;
use provost_outbound::{
    Patience, Pool, ProxiedPool, client_config, pool, proxied_pool, roots_of_file, system_roots,
};
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
    way: Way,
    url: String,
    authorization: Authorization,
    timeout: Duration,
    proxy: Option<String>,
    has_own_roots: bool,
}

/// In whose name requests are sent.
enum Authorization {
    Nobody,
    Token(HeaderValue),
    SignIn(Renewal),
}

/// How requests travel.
enum Way {
    Direct(Pool<Full<Bytes>>),
    Proxied(ProxiedPool<Full<Bytes>>),
}

impl Way {
    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Self::Direct(pool) => pool.request(request),
            Self::Proxied(pool) => pool.request(request),
        }
    }
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
    NotSent(Trouble),
    /// Nobody listens now; nothing was sent.
    NobodyThere(Trouble),
    /// The request may have reached the server.
    Lost(Trouble),
    /// The server answered, with more than is read: the next time it would as well.
    TooLong(Trouble),
    /// Nothing was sent: there is no token to send it with.
    Refused(Failure),
}

impl Server {
    pub(super) fn new(connection: &Connection) -> Result<Self, Failure> {
        let mut server = Self::anonymous(&connection.place)?;
        server.authorization = match &connection.token_source {
            TokenSource::SignIn {
                profile,
                file,
                expires_at,
                began_at,
            } => Authorization::SignIn(Renewal::new(
                (file.clone(), profile.clone()),
                connection.place.clock.clone(),
                (connection.token.clone(), *expires_at, *began_at),
            )),
            _ => Authorization::Token(authorization(&connection.token)?),
        };
        Ok(server)
    }

    /// Returns a server that is asked without a token.
    pub(super) fn anonymous(place: &Place) -> Result<Self, Failure> {
        let roots = if place.url.starts_with("https:") {
            trusted(place)?
        } else {
            RootCertStore::empty()
        };
        let config = client_config(roots);
        let config = config.map_err(|_| Failure::usage("TLS cannot be set up in this program"))?;
        let way = match &place.proxy {
            Some(Proxy { uri, authorization }) => {
                Way::Proxied(proxied_pool(config, PATIENCE, uri.clone(), authorization.clone()))
            }
            None => Way::Direct(pool(config, PATIENCE)),
        };
        Ok(Self {
            way,
            url: place.url.clone(),
            authorization: Authorization::Nobody,
            timeout: place.timeout,
            proxy: place.proxy.as_ref().map(Proxy::shown),
            has_own_roots: place.ca_cert.is_some(),
        })
    }

    fn addressee(&self) -> Addressee<'_> {
        Addressee {
            url: &self.url,
            proxy: self.proxy.as_deref(),
            has_own_roots: self.has_own_roots,
        }
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
        // A request may carry a token of its own, such as a gateway token.
        let authorization = if call.headers.contains_key(header::AUTHORIZATION) {
            None
        } else {
            self.authorization()?
        };
        self.sent(call, authorization).await
    }

    /// Sends the request once without a token, and reads the whole answer.
    pub(super) async fn ask_as_nobody(&self, call: &Call) -> Result<Reply, Silence> {
        self.sent(call, None).await
    }

    /// Renews the token of a sign-in if it is about to end. Nobody's limit cuts that short.
    pub(super) async fn renew(&self) -> Result<(), Failure> {
        match &self.authorization {
            Authorization::SignIn(renewal) => {
                let renewed = renewal.renew(self).await;
                renewed.map_err(|silence| unanswered(silence, &self.url))
            }
            Authorization::Nobody | Authorization::Token(_) => Ok(()),
        }
    }

    fn authorization(&self) -> Result<Option<HeaderValue>, Silence> {
        match &self.authorization {
            Authorization::Nobody => Ok(None),
            Authorization::Token(value) => Ok(Some(value.clone())),
            Authorization::SignIn(renewal) => authorization(&renewal.token())
                .map(Some)
                .map_err(Silence::Refused),
        }
    }

    async fn sent(&self, call: &Call, authorization: Option<HeaderValue>) -> Result<Reply, Silence> {
        let request = self
            .request(call, authorization)
            .map_err(|error| Silence::NotSent(Trouble::new(error.to_string())))?;
        let response = self.way.request(request).await;
        let response = response.map_err(|error| silence(&error, self.addressee()))?;
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
                    let says = format!("the answer is longer than {} MiB", most >> 20);
                    return Silence::TooLong(Trouble::new(says));
                }
                Silence::Lost(trouble::of_body(error.as_ref()))
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
        let authorization = self.authorization().map_err(|silence| {
            let failure = unanswered(silence, &self.url);
            failure.lines.join("; ")
        })?;
        if let Some(authorization) = authorization {
            parts.headers.insert(header::AUTHORIZATION, authorization);
        }
        let request = Request::from_parts(parts, Full::new(body));
        // What is sent over an answer may take its time; that there is one may not.
        let answer = tokio::time::timeout(self.timeout, self.way.request(request)).await;
        let silent = || format!("{} did not answer within {} s", self.url, self.timeout.as_secs());
        answer.map_err(|_| silent())?.map_err(|error| {
            let trouble = trouble::of_request(&error, self.addressee());
            let steps = trouble.steps.iter().map(|step| format!("; {step}"));
            let steps: String = steps.collect();
            format!("{} cannot be reached: {trouble}{steps}", self.url)
        })
    }

    fn request(&self, call: &Call, authorization: Option<HeaderValue>) -> http::Result<Request<Full<Bytes>>> {
        let uri = format!("{}{}", self.url, call.target);
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        if let Some(headers) = request.headers_mut() {
            headers.extend(call.headers.clone());
            if let Some(authorization) = authorization {
                headers.insert(header::AUTHORIZATION, authorization);
            }
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

fn trusted(place: &Place) -> Result<RootCertStore, Failure> {
    if let Some(path) = &place.ca_cert {
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

fn silence(error: &hyper_util::client::legacy::Error, to: Addressee<'_>) -> Silence {
    let trouble = trouble::of_request(error, to);
    if !error.is_connect() {
        return Silence::Lost(trouble);
    }
    // Only a server that is just starting makes waiting worthwhile; a name or a certificate stays wrong.
    if is_refused(error) {
        Silence::NobodyThere(trouble)
    } else {
        Silence::NotSent(trouble)
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
