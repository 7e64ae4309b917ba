//! One exchange with a provider: no redirects, bounded in size and time.
//!
//! No guard against inner addresses: the operator names the provider, and many stand in the same house.

use http_body_util::{BodyExt, Full, Limited};
use openidconnect::{HttpRequest, HttpResponse};
use provost_outbound::{Patience, Pool, client_config, pool};
use rustls::RootCertStore;
use std::pin::Pin;
use std::time::Duration;

/// LIMIT: bytes of an answer. Metadata and keys of the largest providers have 20 KiB.
const MAX_ANSWER_BYTES: usize = 512 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client that keeps connections.
#[derive(Clone)]
pub struct Http(Pool<Full<bytes::Bytes>>);

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
        let patience = Patience {
            connect: CONNECT_TIMEOUT,
            idle: Duration::from_secs(30),
        };
        Ok(Self(pool(client_config(roots)?, patience)))
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
