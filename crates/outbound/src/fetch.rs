//! What may be fetched, from where, and how much.
//!
//! INVARIANT OA-6: a fetch connects only to a checked address, and to none if any is not public.

use crate::address::{Address, WrongUrl};
use crate::exchange::{self, OutgoingRequest};
use crate::network::{Network, is_public};
use crate::resolve::{Resolve, System};
use crate::tls;
use bytes::Bytes;
use http::HeaderValue;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How much of an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the body.
    pub max_bytes: usize,
    /// From the resolution of the name to the last byte.
    pub timeout: Duration,
}

/// What an installation allows besides the public Internet.
#[derive(Default)]
pub struct Options {
    /// Inner networks whose servers may be asked, such as an identity provider's.
    pub allow: Vec<Network>,
    /// Roots besides the system's, such as the company's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Whether `http:` is served on loopback addresses of `allow`: for issuers on this machine, and tests.
    pub plain_loopback: bool,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedDocument {
    /// The JSON.
    pub body: Bytes,
    /// How long its server allows it to be used again; `None` when it does not say.
    pub max_age: Option<Duration>,
}

/// Why nothing was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchRefusal {
    /// The URL is none that is fetched.
    Url(WrongUrl),
    /// The name has no address, or its resolver did not answer.
    Unresolved,
    /// An address of the name is not public; nothing was connected.
    NotPublic,
    /// Nobody answered at the addresses.
    Unreachable,
    /// The certificate is not one for the name, or not trusted, or TLS failed.
    Tls,
    /// No whole answer in time.
    TooSlow,
    /// A redirect, which is never followed.
    Redirect,
    /// Another status than 200.
    Status(u16),
    /// Not JSON, or encoded.
    ContentType,
    /// Longer than the limit.
    TooLarge,
    /// Not HTTP, or cut off.
    Broken,
}

impl fmt::Display for FetchRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::Url(wrong) => return wrong.fmt(out),
            Self::Status(status) => return write!(out, "the answer has the status {status}, not 200"),
            Self::Unresolved => "the host name was not resolved",
            Self::NotPublic => "the host has an address that is not public",
            Self::Unreachable => "the host was not reached",
            Self::Tls => "the host proved no trusted certificate for its name",
            Self::TooSlow => "the host did not answer in time",
            Self::Redirect => "the host answered with a redirect",
            Self::ContentType => "the answer is not JSON",
            Self::TooLarge => "the answer is too large",
            Self::Broken => "the answer is broken",
        };
        out.write_str(sentence)
    }
}

impl std::error::Error for FetchRefusal {}

impl From<WrongUrl> for FetchRefusal {
    fn from(wrong: WrongUrl) -> Self {
        Self::Url(wrong)
    }
}

/// Fetches JSON from where it is allowed.
pub struct Fetcher {
    tls: TlsConnector,
    allow: Vec<Network>,
    plain_loopback: bool,
    resolver: Box<dyn Resolve>,
}

impl Fetcher {
    /// Makes a fetcher that asks the system's resolver.
    ///
    /// Errors: TLS cannot be set up, or an extra root is no certificate.
    pub fn new(options: Options) -> Result<Self, rustls::Error> {
        Self::with_resolver(options, Box::new(System))
    }

    /// Makes a fetcher that asks another resolver.
    ///
    /// Errors: as [`Self::new`].
    pub fn with_resolver(options: Options, resolver: Box<dyn Resolve>) -> Result<Self, rustls::Error> {
        let mut roots = tls::system_roots();
        for root in options.extra_roots {
            roots.add(root)?;
        }
        Ok(Self {
            tls: TlsConnector::from(Arc::new(tls::client_config(roots)?)),
            allow: options.allow,
            plain_loopback: options.plain_loopback,
            resolver,
        })
    }

    /// Fetches a JSON document: `GET`, without credentials.
    pub async fn get(&self, url: &str, limits: Limits) -> Result<Bytes, FetchRefusal> {
        self.get_with_age(url, limits).await.map(|found| found.body)
    }

    /// Fetches a JSON document and says how long it may be used again.
    pub async fn get_with_age(&self, url: &str, limits: Limits) -> Result<FetchedDocument, FetchRefusal> {
        self.ask(url, OutgoingRequest::Document, limits).await
    }

    /// Sends a form and returns the JSON that answers it; for the introspection at the operator's own issuers.
    pub async fn post_form(
        &self,
        url: &str,
        form: Bytes,
        mut authorization: Option<HeaderValue>,
        limits: Limits,
    ) -> Result<Bytes, FetchRefusal> {
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        let answer = self
            .ask(url, OutgoingRequest::Form { form, authorization }, limits)
            .await;
        answer.map(|found| found.body)
    }

    async fn ask(
        &self,
        url: &str,
        asked: OutgoingRequest,
        limits: Limits,
    ) -> Result<FetchedDocument, FetchRefusal> {
        let address = Address::parse(url)?;
        if !address.is_https && !self.plain_loopback {
            return Err(WrongUrl("it must begin with https://").into());
        }
        let exchange = async {
            let targets = self.targets(&address).await?;
            let stream = exchange::connect(&targets).await?;
            if !address.is_https {
                return exchange::run(stream, &address, asked, limits.max_bytes).await;
            }
            let stream = exchange::encrypt(&self.tls, stream, &address).await?;
            exchange::run(stream, &address, asked, limits.max_bytes).await
        };
        let waited = tokio::time::timeout(limits.timeout, exchange).await;
        waited.unwrap_or(Err(FetchRefusal::TooSlow))
    }

    /// INVARIANT OA-6: the only source of addresses to connect to; one that is not allowed spoils them all.
    async fn targets(&self, address: &Address<'_>) -> Result<Vec<SocketAddr>, FetchRefusal> {
        let found = if let Some(ip) = address.ip() {
            vec![ip]
        } else {
            let answer = self.resolver.resolve(address.host).await;
            answer.map_err(|_| FetchRefusal::Unresolved)?
        };
        if found.is_empty() {
            return Err(FetchRefusal::Unresolved);
        }
        if !found.iter().all(|ip| self.may_connect(*ip, address.is_https)) {
            return Err(FetchRefusal::NotPublic);
        }
        Ok(found
            .into_iter()
            .map(|ip| SocketAddr::new(ip, address.port()))
            .collect())
    }

    fn may_connect(&self, ip: IpAddr, is_https: bool) -> bool {
        let allowed = self.allow.iter().any(|network| network.contains(ip));
        if is_https {
            allowed || is_public(ip)
        } else {
            allowed && ip.is_loopback()
        }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fetcher")
            .field("allow", &self.allow)
            .field("plain_loopback", &self.plain_loopback)
            .finish_non_exhaustive()
    }
}
