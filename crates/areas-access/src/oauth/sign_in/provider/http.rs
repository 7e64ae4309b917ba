//! One exchange with a provider: hyper over rustls, no redirects, bounded in size and time.
//!
//! No guard against inner addresses: the operator names the provider, and many stand in the same house.

use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use openidconnect::{HttpRequest, HttpResponse};
use rustls::{ClientConfig, RootCertStore};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// LIMIT: bytes of an answer. Metadata and keys of the largest providers have 20 KiB.
const MAX_ANSWER_BYTES: usize = 512 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client that keeps connections.
#[derive(Clone)]
pub struct Http(Client<HttpsConnector<HttpConnector>, Full<bytes::Bytes>>);

/// An exchange.
type ProviderCall = Pin<Box<dyn Future<Output = Result<HttpResponse, Silence>> + Send>>;

/// Why there is no answer.
#[derive(Debug)]
pub struct Silence(&'static str);

impl std::fmt::Display for Silence {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for Silence {}

impl Http {
    /// Makes a client that trusts these certificates.
    ///
    /// Errors: TLS cannot be set up.
    pub fn new(roots: RootCertStore) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let mut client = Client::builder(TokioExecutor::new());
        client
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30));
        Ok(Self(client.build(connector)))
    }

    /// Returns the function that the library asks: its futures borrow nothing.
    pub fn asker(&self) -> impl Fn(HttpRequest) -> ProviderCall + Send + Sync + use<> {
        let client = self.clone();
        move |request| {
            let client = client.clone();
            Box::pin(async move { client.send(request).await })
        }
    }

    /// Sends a request and reads its whole answer.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Silence> {
        let exchange = async {
            let request = request.map(|body| Full::new(bytes::Bytes::from(body)));
            let answer = self.0.request(request).await;
            let (head, body) = answer.map_err(|_| Silence("it was not reached"))?.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|_| Silence("its answer is too large or broke off"))?;
            Ok(HttpResponse::from_parts(head, body.to_bytes().to_vec()))
        };
        let waited = tokio::time::timeout(TIMEOUT, exchange).await;
        waited.unwrap_or(Err(Silence("it did not answer in time")))
    }
}
